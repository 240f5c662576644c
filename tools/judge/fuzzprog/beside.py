"""Runs the programs that `fuzzprog -kinds loops -write DIR` has written in PyTorch, and compares with what the eager evaluator gives.

    python tools/judge/fuzzprog/beside.py DIR

The inputs are those of loopData in loops.go. Where the evaluator says that the program raises, PyTorch raises too, or it has dropped the
statement because nothing reads what it writes: these are counted apart. Where TorchScript gives something else, the program is run as Python, whose
lists are lists: TorchScript drops some writes. Each run has a process of its own, since `n % 0` of integers ends PyTorch's (SIGFPE), which counts as
raising. Exit status 1 if what the evaluator gives differs from both.
"""

import glob
import os
import operator
import pickle
import re
import signal
import sys
import typing
import warnings
import zipfile

warnings.simplefilter("ignore")
import numpy as np
import torch

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../judge/python"))
import judge  # noqa: E402

SIZES = (2, 1, 0, 3)


def inputs(size):
    x = torch.tensor([float(i % 7 - 2) for i in range(3 * size)]).reshape(size, 3)
    return x, torch.tensor([1.0, -2.0, 3.0]), size


class Operators:
    """torch.NAME of the serialized code, in Python."""

    own = {
        "_set_item": operator.setitem,
        "append": lambda l, v: l.append(v),
        "insert": lambda l, i, v: l.insert(i, v),
        "pop": lambda l, i=-1: l.pop(i),
        "Delete": operator.delitem,
        "extend": lambda l, m: l.extend(m),
        "reverse": lambda l: l.reverse(),
        "copy": lambda l: l.copy(),
        "list": list,
        "keys": lambda d: list(d.keys()),
        "values": lambda d: list(d.values()),
        "len": len,
        "add": operator.add,
        "sub": operator.sub,
        "mul": operator.mul,
        "remainder": operator.mod,
        "gt": operator.gt,
        "ge": operator.ge,
        "lt": operator.lt,
        "le": operator.le,
        "eq": operator.eq,
        "ne": operator.ne,
        "__and__": lambda a, b: a and b,
        "__or__": lambda a, b: a or b,
        "__not__": operator.not_,
        "__contains__": lambda d, k: k in d,
    }

    def __getattr__(self, name):
        return self.own.get(name) or getattr(torch, name, None) or getattr(torch.ops.aten, name)


def as_python(path, size):
    """The outputs of the program as Python."""
    with zipfile.ZipFile(path) as z:
        code = next(z.read(n).decode() for n in z.namelist() if n.endswith("code/__torch__.py"))
    code = re.sub(r"^  (__\w+__ = .*|\w+ : .*[^,:])$", "", code, flags=re.M)  # declarations of attributes
    code = re.sub(r"\) -> .*:$", "):", code, flags=re.M).replace("class Program(Module)", "class Program").replace("__torch__.", "")
    names = {"torch": Operators(), "Tensor": torch.Tensor, "Program": object, "Box": object, "annotate": lambda t, v: v, "uninitialized": lambda t: None}
    names |= {n: getattr(typing, n) for n in ("Dict", "List", "Optional", "Tuple")}
    exec(code, names)
    program = names["Program"]()
    program.h = torch.jit.load(path).h
    with torch.no_grad():
        got = program.forward(*inputs(size))
    return [t.numpy() for t in ([got] if torch.is_tensor(got) else got)]


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


def difference(got, want):
    if isinstance(got, str):
        return f"PyTorch raises {got}, the evaluator gives numbers"
    why = judge.wrong(got, want)
    return f"what PyTorch gives is not what the evaluator gives: {why}" if why else None


def main(folder):
    torch.set_num_threads(1)
    programs = sorted(glob.glob(os.path.join(folder, "*.pt")))
    runs = wrong = dropped = script = 0
    for path in programs:
        for size in SIZES:
            recorded = f"{path[:-3]}.{size}.npz"
            got = apart(path, size)
            runs += 1
            if not os.path.exists(recorded):
                dropped += not isinstance(got, str)
                continue
            want = np.load(recorded)
            want = [want[n] for n in want.files]
            what = difference(got, want)
            if what is None:
                continue
            if difference(as_python(path, size), want) is None:
                script += 1
                print(f"{path}, N={size}, TorchScript alone, {what}")
                continue
            wrong += 1
            print(f"{path}, N={size}, {what}")
    print(f"{len(programs)} programs, {runs} runs, {wrong} differ, {script} differ from TorchScript and not from Python, {dropped} raise in the evaluator only")
    return wrong > 0 or not programs


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
