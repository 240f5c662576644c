"""Runs the programs that `fuzzprog -kinds loops -write DIR` has written in PyTorch, and compares with what the eager evaluator gives.

    python tools/fuzzprog/beside.py DIR

The inputs are those of loopData in loops.go. Where the evaluator says that the program raises, PyTorch raises too, or it has dropped the
statement because nothing reads what it writes: these are counted apart. Each run has a process of its own, since `n % 0` of integers ends
PyTorch's (SIGFPE), which counts as raising. Exit status 1 if anything differs.
"""

import glob
import os
import pickle
import signal
import sys
import warnings

warnings.simplefilter("ignore")
import numpy as np
import torch

SIZES = (2, 1, 0, 3)


def inputs(size):
    x = torch.tensor([float(i % 7 - 2) for i in range(3 * size)]).reshape(size, 3)
    return x, torch.tensor([1.0, -2.0, 3.0]), size


def run(path, size):
    """The outputs as arrays, or the last line of what PyTorch raises."""
    module = torch.jit.load(path)  # anew: programs change the state of the module
    with torch.no_grad(), torch.jit.optimized_execution(False):
        try:
            got = module(*inputs(size))
        except Exception as e:
            return str(e).strip().splitlines()[-1]
    return [t.numpy() for t in ([got] if torch.is_tensor(got) else got)]


def apart(path, size):
    """run in a process of its own."""
    r, w = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(r)
        with os.fdopen(w, "wb") as f:
            pickle.dump(run(path, size), f)
        os._exit(0)
    os.close(w)
    with os.fdopen(r, "rb") as f:
        data = f.read()
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGFPE:
        return "SIGFPE"
    if status:
        sys.exit(f"{path}, N={size}: the process of PyTorch ended with status {status}")
    return pickle.loads(data)


def main(folder):
    torch.set_num_threads(1)
    programs = sorted(glob.glob(os.path.join(folder, "*.pt")))
    runs = wrong = dropped = 0
    for path in programs:
        for size in SIZES:
            recorded = f"{path[:-3]}.{size}.npz"
            got = apart(path, size)
            runs += 1
            if not os.path.exists(recorded):
                dropped += not isinstance(got, str)
                continue
            if isinstance(got, str):
                wrong += 1
                print(f"{path}, N={size}: PyTorch raises {got}, the evaluator gives numbers")
                continue
            want = np.load(recorded)
            want = [want[n] for n in want.files]
            for i, (g, e) in enumerate(zip(got, want)):
                if g.dtype != e.dtype or g.shape != e.shape or not np.array_equal(g, e, equal_nan=g.dtype.kind == "f"):
                    wrong += 1
                    print(f"{path}, N={size}, output {i}: PyTorch gives {g.ravel()[:6]} {g.shape}, the evaluator {e.ravel()[:6]} {e.shape}")
                    break
    print(f"{len(programs)} programs, {runs} runs, {wrong} differ, {dropped} raise in the evaluator only")
    return wrong > 0 or not programs


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
