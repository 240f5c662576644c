"""Optimize the ONNX files of onnxmodels.py with aton, onnxsim and onnxslim: count nodes and processor seconds, compare numbers, print a table.

usage: onnxfiles.py DIR [--aton bin/aton] [--filter RE] [--only aton] [--ops] [--markdown] [--keep DIR]

Each program runs as a process of its own on the same file; what the others gave is kept in DIR/others.json. The numbers are those of onnxruntime before and after aton, at two
batch sizes, relative to the largest output. Exit status 1 if aton has more nodes than one of the others, or a number differs.
Needs onnx, onnxruntime, numpy, onnxsim and onnxslim.
"""

import argparse
import glob
import json
import os
import re
import resource
import sys
import tempfile

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../judge/python"))
import judge  # noqa: E402

# onnxsim runs the graph on fixed sizes unless it is told not to; both of the others are asked for their default optimizations.
OTHERS = {"onnxsim": ["-m", "onnxsim"], "onnxslim": ["-m", "onnxslim"]}
LIMIT = 600  # seconds that a program may take


def count(path):
    """The operators of a file; constants are no nodes, in whatever form a file has them."""
    return judge.operators(path, constants=False)


def difference(before, after, data, optimized=False):
    """The largest difference at two batch sizes, relative to the largest finite output; infinity where types or shapes differ.

    The second file runs with or without onnxruntime's own optimizations, the first one without.
    """
    x, y = judge.session(before, optimized=False), judge.session(after, optimized=optimized)
    if [o.name for o in x.get_outputs()] != [o.name for o in y.get_outputs()]:
        return float("inf")
    worst = 0.0
    for batch in "ab":
        feed = {i.name: data[f"{batch}.{i.name}"] for i in x.get_inputs()}
        try:
            wanted = judge.run(x, feed)
        except Exception:  # a size that the trace fixed
            if batch == "a":
                raise
            continue
        worst = max([worst, *map(judge.distance, judge.run(y, feed), wanted)])
    return worst


def run(command):
    """Processor seconds that a command took, or None and why it failed: what else the machine does matters less to them."""

    def used():
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return children.ru_utime + children.ru_stime

    began = used()
    try:
        judge.command(command, LIMIT)
    except judge.Refused as e:
        return None, str(e)[:160]
    return used() - began, ""


def cell(result):
    n, took = result
    return (str(n), f"{took:.1f} s") if n is not None else ("fails", "")


class Others:
    """What the other programs make of the files, each run once."""

    def __init__(self, path):
        self.path, self.known = path, {}
        if os.path.exists(path):
            with open(path) as f:
                self.known = json.load(f)

    def result(self, program, src, dst):
        """Count of nodes and seconds; the count is None where the program fails, with the reason in place of the seconds."""
        key = f"{os.path.basename(src)} {program}"
        if key not in self.known:
            took, why = run([sys.executable, *OTHERS[program], src, dst])
            self.known[key] = (sum(count(dst).values()), took) if took is not None else (None, why)
            with open(self.path, "w") as f:
                json.dump(self.known, f, indent=1)
        return self.known[key]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("dir")
    p.add_argument("--aton", default="bin/aton")
    p.add_argument("--filter", default="")
    p.add_argument("--only", choices=["aton"], help="do not run the others")
    p.add_argument("--ops", action="store_true", help="count each operator")
    p.add_argument("--markdown", action="store_true")
    p.add_argument("--keep", default="", help="where optimized files stay")
    args = p.parse_args()
    others = {} if args.only else OTHERS
    known = Others(f"{args.dir}/others.json")
    failed = False
    widths = [46, 6, 6, 8] + [8, 8] * len(others) + [10]

    def row(*cells):
        if args.markdown:
            print("| " + " | ".join(cells) + " |", flush=True)
        else:
            print(" ".join(f"{c:>{w}}" if i else f"{c:<{w}}" for i, (c, w) in enumerate(zip(cells, widths))), flush=True)

    row("file", "raw", "aton", "time", *[c for o in others for c in (o, "time")], "difference")
    if args.markdown:
        row(*["---"] * (5 + 2 * len(others)))
    with tempfile.TemporaryDirectory() as tmp:
        for src in sorted(glob.glob(f"{args.dir}/*.onnx")):
            name = os.path.basename(src)[: -len(".onnx")]
            if not re.search(args.filter, name):
                continue
            dst = f"{args.keep or tmp}/{name}.onnx"
            took, why = run([args.aton, "export", src, "-o", dst])
            if took is None:
                print(f"{name}: aton: {why}", flush=True)
                failed = True
                continue
            operators = count(dst)
            mine = (sum(operators.values()), took)
            theirs = [known.result(other, src, f"{tmp}/other.onnx") for other in others]
            data = numpy.load(f"{args.dir}/{name.split('.')[0]}.npz")
            diff = difference(src, dst, data)
            # detections change places where scores agree but for rounding: as many as by what onnxruntime itself optimizes
            rounding = 1e-3 if diff < 1e-3 else max(1e-3, 2 * difference(src, src, data, optimized=True))
            bad = not diff < rounding or any(n is not None and n < mine[0] for n, _ in theirs)
            failed |= bad
            row(name, str(sum(count(src).values())), *cell(mine), *[c for t in theirs for c in cell(t)], f"{diff:.0e}" + (" <--" if bad else ""))
            if args.ops:
                print("    " + ", ".join(f"{k} {v}" for k, v in sorted(operators.items(), key=lambda kv: (-kv[1], kv[0]))), flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
