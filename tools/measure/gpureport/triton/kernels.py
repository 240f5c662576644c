#!/usr/bin/env python3
"""Kernels in Triton of the shapes that the report has, compiled to PTX without a GPU.

    PYTHON tools/measure/gpureport/triton/kernels.py      # writes *.ptx and launches.tsv beside itself

PYTHON has triton (PyTorch brings it). The kernels are written as Triton's users write them: a block takes a row, a tile or a stretch,
whose size is a power of two, and a product has, of the tiles below of which ptxas spills nothing, the largest one with the fewest registers. They are compiled for
sm_80, which all machines of the report run; ptxas, which Triton brings too, tells registers and spilled bytes for each machine's own target.
"""
import math
import os
import re
import struct
import subprocess
import tempfile

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler import compile as triton_compile

HERE = os.path.dirname(os.path.abspath(__file__))
TARGETS = ("sm_90", "sm_80", "sm_89")  # in the order of codegen/gpu/cost/machines.tsv


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def transpose(x, out, rows, columns, SIDE: tl.constexpr):
    i = tl.program_id(0) * SIDE + tl.arange(0, SIDE)
    j = tl.program_id(1) * SIDE + tl.arange(0, SIDE)
    tile = tl.load(x + j[:, None] * columns + i[None, :], mask=(j[:, None] < rows) & (i[None, :] < columns))
    tl.store(out + i[:, None] * rows + j[None, :], tl.trans(tile), mask=(i[:, None] < columns) & (j[None, :] < rows))


@triton.jit
def sum_rows(x, out, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(out + row, tl.sum(tl.load(x + row * columns + at, mask=at < columns, other=0.0), 0))


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < columns
    v = tl.load(x + row * columns + at, mask=inside, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * columns + at, e / tl.sum(e, 0), mask=inside)


@triton.jit
def layer_norm(x, scale, bias, out, columns, epsilon, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < columns
    v = tl.load(x + row * columns + at, mask=inside, other=0.0)
    d = tl.where(inside, v - tl.sum(v, 0) / columns, 0.0)
    r = 1 / tl.sqrt(tl.sum(d * d, 0) / columns + epsilon)
    y = d * r * tl.load(scale + at, mask=inside) + tl.load(bias + at, mask=inside)
    tl.store(out + row * columns + at, y, mask=inside)


@triton.jit
def rms_norm(x, scale, out, columns, epsilon, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < columns
    v = tl.load(x + row * columns + at, mask=inside, other=0.0)
    r = 1 / tl.sqrt(tl.sum(v * v, 0) / columns + epsilon)
    tl.store(out + row * columns + at, v * r * tl.load(scale + at, mask=inside), mask=inside)


@triton.jit
def matmul(a, b, out, m, n, k, TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr, GROUP: tl.constexpr):
    # blocks go down GROUP rows of tiles before they go to the next column, so that those of a wave share what they read
    block = tl.program_id(0)
    rows, columns = tl.cdiv(m, TM), tl.cdiv(n, TN)
    first = block // (GROUP * columns) * GROUP
    high = min(rows - first, GROUP)
    row, column = first + block % (GROUP * columns) % high, block % (GROUP * columns) // high
    i = (row * TM + tl.arange(0, TM)) % m
    j = (column * TN + tl.arange(0, TN)) % n
    l = tl.arange(0, TK)
    left, right = a + i[:, None] * k + l[None, :], b + l[:, None] * n + j[None, :]
    total = tl.zeros((TM, TN), tl.float32)
    for _ in range(0, tl.cdiv(k, TK)):
        total = tl.dot(tl.load(left), tl.load(right), total, input_precision="ieee")
        left += TK
        right += TK * n
    i = row * TM + tl.arange(0, TM)
    j = column * TN + tl.arange(0, TN)
    tl.store(out + i[:, None] * n + j[None, :], total.to(out.dtype.element_ty), mask=(i[:, None] < m) & (j[None, :] < n))


@triton.jit
def attention(q, k, v, out, length, scale, TQ: tl.constexpr, TK: tl.constexpr, SIZE: tl.constexpr):
    head = tl.program_id(1) * length * SIZE
    i = tl.program_id(0) * TQ + tl.arange(0, TQ)
    j, d = tl.arange(0, TK), tl.arange(0, SIZE)
    queries = tl.load(q + head + i[:, None] * SIZE + d[None, :])
    most = tl.full((TQ,), -float("inf"), tl.float32)
    weights = tl.zeros((TQ,), tl.float32)
    total = tl.zeros((TQ, SIZE), tl.float32)
    for at in range(0, length, TK):
        keys = tl.load(k + head + (at + j)[None, :] * SIZE + d[:, None])
        s = tl.dot(queries, keys, input_precision="ieee") * scale
        higher = tl.maximum(most, tl.max(s, 1))
        p = tl.exp2(s - higher[:, None])
        shrink = tl.exp2(most - higher)
        values = tl.load(v + head + (at + j)[:, None] * SIZE + d[None, :])
        total = tl.dot(p.to(values.dtype), values, total * shrink[:, None], input_precision="ieee")
        weights = weights * shrink + tl.sum(p, 1)
        most = higher
    tl.store(out + head + i[:, None] * SIZE + d[None, :], (total / weights[:, None]).to(out.dtype.element_ty))


def f32(*names):
    return {n: "*fp32" for n in names}


def f16(*names):
    return {n: "*fp16" for n in names}


def ints(*names):
    return {n: "i32" for n in names}


WIDE = 8192 * 4096 * 4
ROW = 4096 * 4
SQUARE = 4096 * 4096
LENGTH = 8 * 2048 * 64

# name in the report, function, types, constants, warps, stages, grid, arguments (the bytes of a buffer, with ! of one that is written; or =bits)
KERNELS = [
    ("Add f32 8192x4096", add, {**f32("x", "y", "out"), **ints("n")}, dict(BLOCK=1024), 4, 1, (8192 * 4, 1), [WIDE, WIDE, f"{WIDE}!", "=33554432"]),
    ("Transpose f32 8192x4096", transpose, {**f32("x", "out"), **ints("rows", "columns")}, dict(SIDE=64), 4, 1, (64, 128), [WIDE, f"{WIDE}!", "=8192", "=4096"]),
    ("ReduceSum of rows f32 8192x4096", sum_rows, {**f32("x", "out"), **ints("columns")}, dict(BLOCK=4096), 8, 1, (8192, 1), [WIDE, f"{8192 * 4}!", "=4096"]),
    ("Softmax f32 8192x4096", softmax, {**f32("x", "out"), **ints("columns")}, dict(BLOCK=4096), 8, 1, (8192, 1), [WIDE, f"{WIDE}!", "=4096"]),
    ("Softmax f32 1024x32000", softmax, {**f32("x", "out"), **ints("columns")}, dict(BLOCK=32768), 16, 1, (1024, 1), [1024 * 32000 * 4, f"{1024 * 32000 * 4}!", "=32000"]),
    ("LayerNormalization f32 8192x4096", layer_norm, {**f32("x", "scale", "bias", "out"), **ints("columns"), "epsilon": "fp32"}, dict(BLOCK=4096), 8, 1, (8192, 1),
     [WIDE, ROW, ROW, f"{WIDE}!", "=4096", 1e-5]),
    ("RMSNormalization f32 8192x4096", rms_norm, {**f32("x", "scale", "out"), **ints("columns"), "epsilon": "fp32"}, dict(BLOCK=4096), 8, 1, (8192, 1),
     [WIDE, ROW, f"{WIDE}!", "=4096", 1e-5]),
    ("MatMul f32 4096", matmul, {**f32("a", "b", "out"), **ints("m", "n", "k")}, [(dict(TM=128, TN=128, TK=t, GROUP=8), w, s) for t in (16, 32) for w in (4, 8) for s in (2, 3)]
     + [(dict(TM=128, TN=64, TK=32, GROUP=8), w, s) for w in (4, 8) for s in (2, 3)], 0, 0, lambda c: (4096 // c["TM"] * (4096 // c["TN"]), 1),
     [SQUARE * 4, SQUARE * 4, f"{SQUARE * 4}!", "=4096", "=4096", "=4096"]),
    ("MatMul f16 4096", matmul, {**f16("a", "b", "out"), **ints("m", "n", "k")}, [(dict(TM=128, TN=256, TK=64, GROUP=8), 8, 3), (dict(TM=128, TN=128, TK=32, GROUP=8), 4, 4)],
     0, 0, lambda c: (4096 // c["TM"] * (4096 // c["TN"]), 1), [SQUARE * 2, SQUARE * 2, f"{SQUARE * 2}!", "=4096", "=4096", "=4096"]),
    ("Attention f16, length 2048", attention, {**f16("q", "k", "v", "out"), **ints("length"), "scale": "fp32"}, dict(TQ=128, TK=64, SIZE=64), 4, 3, (2048 // 128, 8),
     [LENGTH * 2] * 3 + [f"{LENGTH * 2}!", "=2048", 0.125 * math.log2(math.e)]),
]


def argument(a):
    return f"={struct.unpack('<I', struct.pack('<f', a))[0]}" if isinstance(a, float) else str(a)


def assemble(ptx, target):
    tool = os.path.join(os.path.dirname(triton.__file__), "backends", "nvidia", "bin", "ptxas")
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as f:
        f.write(ptx)
        f.flush()
        said = subprocess.run([tool, "-arch=" + target, "-v", "-o", os.devnull, f.name], check=True, capture_output=True, text=True).stderr
    return int(re.search(r"Used (\d+) registers", said)[1]), int(re.search(r"(\d+) bytes spill stores", said)[1])


def plain(ptx):
    """The text without comments, debug information and empty lines."""
    ptx = ptx.split("\n\t.section")[0]
    lines = (re.sub(r"\s*//.*", "", line) for line in ptx.splitlines())
    return "\n".join(line for line in lines if line.strip() and not re.match(r"\s*(\.loc|\.file|\.global .* _\$_str|\$L__tmp\d+:|\$L__func_\w+:)", line)) + "\n"


def build(function, types, constants, warps, stages):
    aligned = {(i,): [["tt.divisibility", 16]] for i, t in enumerate(types.values()) if t != "fp32"}
    source = ASTSource(function, {**types, **{n: "constexpr" for n in constants}}, constexprs=constants, attrs=aligned)
    made = triton_compile(source, target=GPUTarget("cuda", 80, 32), options={"num_warps": warps, "num_stages": stages, "enable_fp_fusion": True})
    text = plain(made.asm["ptx"])
    return text, made.metadata.shared, [assemble(text, t) for t in TARGETS]


def main():
    rows = [f"kernel\tfile\tgrid\tthreads\tshared\targuments\tconfiguration\t{' '.join(TARGETS)}\tspilled"]
    for name, function, types, constants, warps, stages, grid, args in KERNELS:
        choices = constants if isinstance(constants, list) else [(constants, warps, stages)]
        made = [(c, w, s, *build(function, types, c, w, s)) for c, w, s in choices]
        for c, w, s, text, shared, used in made:
            print(name, c, w, s, "shared", shared, "registers, spilled:", used)
        made = [x for x in made if not any(spilled for _, spilled in x[5])] or made
        c, w, s, text, shared, used = max(made, key=lambda x: (math.prod(v for n, v in x[0].items() if n in ("TM", "TN")), -max(r for r, _ in x[5])))
        file = re.sub(r"\W+", "_", name).lower() + ".ptx"
        with open(os.path.join(HERE, file), "w") as f:
            f.write(text)
        at = grid(c) if callable(grid) else grid
        config = " ".join(f"{n}={v}" for n, v in c.items()) + f" warps={w} stages={s}"
        rows.append("\t".join([name, file, "x".join(map(str, at)), str(32 * w), str(shared), " ".join(map(argument, args)) + " =0 =0", config,
                               " ".join(str(r) for r, _ in used), str(max(n for _, n in used))]))
    with open(os.path.join(HERE, "launches.tsv"), "w") as f:
        f.write("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
