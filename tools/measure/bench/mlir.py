#!/usr/bin/env python3
"""aton-opt beside mlir-opt on the same graph: time and memory to parse and print it, and to clean it up in between.

    python3 tools/measure/bench/mlir.py [--aton-opt bin/aton-opt] [--mlir-opt mlir-opt-19] [--ops 100000] [--runs 5]

The graph: additions, multiplications and a tanh on tensors, a fifth of them equal to earlier ones, all of them used.
Each command runs --runs times; the least processor time (user and system, of all threads) and wall time, and the
greatest resident memory are shown. mlir-opt works without threads, and once more with them.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time


def graph(n):
    """(name, kind, operands) of n operators; each fifth is an earlier one again."""
    ops, cur = [], "x"
    for i in range(n // 5):
        ops += [(f"a{i}", "add", (cur, "w")), (f"b{i}", "mul", (f"a{i}", "x")), (f"c{i}", "tanh", (f"b{i}",)),
                (f"d{i}", "mul", (f"a{i}", "x")), (f"e{i}", "add", (f"c{i}", f"d{i}"))]
        cur = f"e{i}"
    return ops, cur


def as_aton(ops, last):
    kind = {"add": "onnx::Add", "mul": "onnx::Mul", "tanh": "onnx::Tanh"}
    yield "graph(%x : Float(8, 16), %w : Float(8, 16)):\n"
    for name, k, args in ops:
        yield f"  %{name} : Float(8, 16) = {kind[k]}({', '.join('%' + a for a in args)})\n"
    yield f"  return (%{last})\n"


def as_mlir(ops, last):
    kind = {"add": "arith.addf", "mul": "arith.mulf", "tanh": "math.tanh"}
    t = "tensor<8x16xf32>"
    yield f"func.func @main(%x: {t}, %w: {t}) -> {t} {{\n"
    for name, k, args in ops:
        yield f"  %{name} = {kind[k]} {', '.join('%' + a for a in args)} : {t}\n"
    yield f"  return %{last} : {t}\n}}\n"


def measure(command, runs):
    cpu = wall = float("inf")
    peak = 0
    for _ in range(runs):
        start = time.monotonic()
        p = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, use = os.wait4(p.pid, 0)
        if status:
            sys.exit(f"{' '.join(command)}: exit status {os.waitstatus_to_exitcode(status)}")
        wall = min(wall, time.monotonic() - start)
        cpu = min(cpu, use.ru_utime + use.ru_stime)
        peak = max(peak, use.ru_maxrss)
    return cpu, wall, peak / 1024


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--aton-opt", default="bin/aton-opt")
    ap.add_argument("--mlir-opt", default="mlir-opt-19")
    ap.add_argument("--ops", type=int, default=100_000)
    ap.add_argument("--runs", type=int, default=5)
    opts = ap.parse_args()
    ops, last = graph(opts.ops)
    print(f"{len(ops)} operators, least of {opts.runs} runs\n\n| | processor | wall | peak MB |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as d:
        a, m = os.path.join(d, "graph.ir"), os.path.join(d, "graph.mlir")
        with open(a, "w") as f:
            f.writelines(as_aton(ops, last))
        with open(m, "w") as f:
            f.writelines(as_mlir(ops, last))
        for name, command in (
            ("aton-opt: parse, print", [opts.aton_opt, a, "--passes="]),
            ("mlir-opt: parse, print", [opts.mlir_opt, m, "--mlir-disable-threading"]),
            ("aton-opt: parse, cse, dce, simplify, print", [opts.aton_opt, a, "--passes=cse,dce,simplify"]),
            ("mlir-opt: parse, cse, canonicalize, print", [opts.mlir_opt, m, "--mlir-disable-threading", "--cse", "--canonicalize"]),
            ("mlir-opt with threads: parse, cse, canonicalize, print", [opts.mlir_opt, m, "--cse", "--canonicalize"]),
        ):
            cpu, wall, peak = measure(command, opts.runs)
            print(f"| {name} | {cpu:.2f} s | {wall:.2f} s | {peak:.0f} |", flush=True)


if __name__ == "__main__":
    main()
