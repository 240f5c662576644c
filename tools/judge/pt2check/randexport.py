#!/usr/bin/env python3
"""Makes random programs with dynamic shapes, exports them with torch.export, and compares their ONNX models with PyTorch.

usage: randexport.py --aton PATH [--opset N] [--seed S] [--count N] [--length L] [--keep DIR] [--only WORD]

A program is a forward of a few statements drawn from a table: changes of shape, sizes as numbers, indexing, writes in place through
views, state, sizes that depend on data, cond, while_loop, map and scan. Statements that PyTorch refuses for the example are left out.
Each program is compared at several sizes. One line a failure, then a count of outcomes: ok, skipped (torch.export
refuses the program), refused (aton says why), wrong. --keep puts the archive and the source of each failure into DIR.

Needs torch, onnx and onnxruntime. Exit status 1 if a result is wrong.
"""
import argparse
import collections
import os
import random
import sys
import tempfile
import warnings

import torch
from torch.export import Dim

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../judge/python"))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../maker/randprog"))
import judge  # noqa: E402
from exported import Exported  # noqa: E402


def disagree(got, want):
    return judge.wrong(got, want, rtol=2e-3, atol=2e-4)


def one(a, seed, folder):
    """(outcome, text of it, source)."""
    rng = random.Random(seed)
    length = rng.randint(1, a.length)
    p = Exported(rng, a.only)
    p.grow(length, tries=60)
    if not p.lines:
        return "skipped", "nothing drawn", ""
    file = f"model{seed}.py"
    m, source = p.module(file), p.source()
    static = rng.random() < 0.15
    dyn = None if static else ({0: Dim.DYNAMIC, 1: Dim.AUTO}, {0: Dim.AUTO, 1: Dim.AUTO}, {0: Dim.AUTO}, None)
    archive = os.path.join(folder, "m.pt2")
    try:
        with torch.no_grad():
            ep = torch.export.export(m, p.inputs((4, 6, 3)), dynamic_shapes=dyn, strict=rng.random() < 0.2)
            decompose = rng.random()
            if decompose < 0.15:
                ep = ep.run_decompositions()
            elif decompose < 0.3:
                ep = ep.run_decompositions({})
            torch.export.save(ep, archive)
            program = torch.export.load(archive).module()
    except Exception as e:
        return "skipped", (str(e).strip().splitlines() or [""])[0][:100], source
    out = os.path.join(folder, "m.onnx")
    try:
        judge.export(a.aton, archive, out, opset=a.opset)
    except judge.Refused as e:
        return ("refused" if e.status == 1 else "wrong"), str(e), source
    try:
        session = judge.session(out)
    except Exception as e:
        return "wrong", "does not load: " + str(e).strip().splitlines()[0][:300], source
    compared = 0
    for size in [(4, 6, 3), (5, 6, 3), (7, 3, 4), (2, 4, 2), (4, 6, 3)]:
        args = p.inputs(size)
        try:
            with torch.no_grad():
                eager = p.module(file)(*[t.clone() for t in args])
                # state changes from call to call: the ONNX model starts anew
                want = torch.export.load(archive).module()(*[t.clone() for t in args])
        except Exception:  # the program, or its guards, do not take this size
            continue
        if disagree(want, eager):
            continue  # the program itself is not what the module computes
        try:
            got = judge.run(session, dict(zip("xyib", args)))
        except Exception as e:
            return "wrong", f"at {size}: does not run: " + str(e).strip().splitlines()[0][:300], source
        if why := disagree(got, want):
            return "wrong", f"at {size}: {why}", source
        compared += 1
    return ("ok" if compared else "skipped"), f"{compared} sizes", source


def main():
    p = argparse.ArgumentParser(description="Compares random programs of torch.export with their ONNX models.")
    p.add_argument("--aton", required=True, metavar="PATH", help="the command aton")
    p.add_argument("--opset", default="20", metavar="N")
    p.add_argument("--seed", type=int, default=0, metavar="S", help="of the first program")
    p.add_argument("--count", type=int, default=100, metavar="N", help="of programs")
    p.add_argument("--length", type=int, default=5, metavar="L", help="most statements in a program")
    p.add_argument("--only", default="", metavar="WORD", help="the first statement has this text")
    p.add_argument("--keep", metavar="DIR", help="where failures go")
    p.add_argument("--verbose", action="store_true", help="a line for each program")
    a = p.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    counts = collections.Counter()
    try:
        Exported(random.Random(0), a.only)
    except ValueError as e:
        p.error(f"--only: {e}")
    for seed in range(a.seed, a.seed + a.count):
        with tempfile.TemporaryDirectory() as folder:
            outcome, text, source = one(a, seed, folder)
            counts[outcome] += 1
            if outcome in ("wrong", "refused") or a.verbose:
                print(f"{seed:6} {outcome}: {text}", flush=True)
            if outcome in ("wrong", "refused") and a.keep:
                os.makedirs(a.keep, exist_ok=True)
                for end in ("pt2", "onnx"):
                    if os.path.exists(os.path.join(folder, "m." + end)):
                        os.replace(os.path.join(folder, "m." + end), os.path.join(a.keep, f"{seed}.{end}"))
                with open(os.path.join(a.keep, f"{seed}.py"), "w") as f:
                    f.write(source)
    print(", ".join(f"{n} {k}" for k, n in sorted(counts.items())))
    sys.exit(counts["wrong"] > 0)


if __name__ == "__main__":
    main()
