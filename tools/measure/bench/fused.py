"""What onnxruntime takes for its own operators beside those of the standard, and for a product in its forms.

    python3 tools/measure/bench/fused.py [--rounds 40]

It tells what `aton export --ort-operators` could gain by more operators. Attention of the standard (opset 23) stands beside
MultiHeadAttention, with and without a bias of the mask; a product of one row and constant weights, as in decoding, stands in its
forms, with the bytes of weights a second; residual sums and the normalizations behind them, 16 in a row, stand beside the operators that
join the two. One thread, runs in turn, medians of the calls. It needs onnx and onnxruntime.
"""

import argparse
import os
import sys
import time

import numpy
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../judge/python"))
import judge  # noqa: E402

HEADS, SIZE = 8, 64


def session(nodes, feeds, out, weights=()):
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, x.shape) for n, x in feeds.items()]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, out)], list(weights))
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
    return judge.session(helper.make_model(graph, opset_imports=opsets, ir_version=10), threads=1)


def medians(sessions, feeds, rounds):
    """Microseconds of a run of each session, and whether all give the same to 1e-4."""
    outs = [s.run(None, feeds)[0] for s in sessions]
    times = [[] for _ in sessions]
    for _ in range(rounds):
        for s, t in zip(sessions, times):
            began = time.perf_counter()
            s.run(None, feeds)
            t.append(time.perf_counter() - began)
    same = all(judge.distance(o, outs[0]) <= 1e-4 for o in outs)
    return [numpy.median(t) * 1e6 for t in times], same


def attention(rng, rounds):
    print(f"{'queries':>8} {'keys':>6} {'mask':>5} {'Attention us':>13} {'MultiHeadAttention us':>22}  same")
    for queries, keys in ((64, 64), (256, 256), (1024, 1024), (1, 65), (1, 1025)):
        for mask in (False, True):
            width = HEADS * SIZE
            feeds = {n: rng.standard_normal((1, k, width), dtype=numpy.float32) for n, k in (("q", queries), ("k", keys), ("v", keys))}
            if mask:
                feeds["m"] = numpy.where(rng.random((1, 1, queries, keys)) < 0.2, -1e4, 0).astype(numpy.float32)
            operands = ["m"] if mask else []
            nodes = (helper.make_node("Attention", ["q", "k", "v", *operands], ["y"], q_num_heads=HEADS, kv_num_heads=HEADS),
                     helper.make_node("MultiHeadAttention", ["q", "k", "v", *(["", ""] if mask else []), *operands], ["y"], num_heads=HEADS, domain="com.microsoft"))
            (a, b), same = medians([session([n], feeds, (1, queries, width)) for n in nodes], feeds, rounds)
            print(f"{queries:>8} {keys:>6} {'yes' if mask else 'no':>5} {a:>13.0f} {b:>22.0f}  {'yes' if same else 'NO'}", flush=True)


def products(rng, rounds, layers=16):
    print(f"\n{'weights':>12} {'MatMul us':>10} {'Gemm us':>8} {'Gemm, transB us':>16} {'FusedMatMul us':>15} {'GB/s, best':>11}  same")
    for k, n in ((512, 512), (512, 1376), (1376, 512), (512, 4000), (2048, 2048)):
        feeds = {"x": rng.standard_normal((1, k), dtype=numpy.float32)}
        weights = [rng.standard_normal((k, n), dtype=numpy.float32) for _ in range(layers)]
        sessions = []
        for op, attrs in (("MatMul", {}), ("Gemm", {}), ("Gemm", {"transB": 1}), ("FusedMatMul", {"transB": 1, "domain": "com.microsoft"})):
            inits = [numpy_helper.from_array(numpy.ascontiguousarray(w.T) if "transB" in attrs else w, f"w{i}") for i, w in enumerate(weights)]
            nodes = [helper.make_node(op, ["x", f"w{i}"], [f"o{i}"], **attrs) for i in range(layers)]
            nodes.append(helper.make_node("Sum", [f"o{i}" for i in range(layers)], ["y"]))
            sessions.append(session(nodes, feeds, (1, n), inits))
        took, same = medians(sessions, feeds, rounds)
        took = [t / layers for t in took]
        print(f"{f'{k} x {n}':>12} {took[0]:>10.0f} {took[1]:>8.0f} {took[2]:>16.0f} {took[3]:>15.0f} {4e-3 * k * n / min(took):>11.1f}  {'yes' if same else 'NO'}", flush=True)


def residuals(rng, rounds, layers=16):
    """A normalization's second result is the sum, which the next one takes; without it onnxruntime would join the two itself."""
    print(f"\n{'sum and normalization':>22} {'tokens':>7} {'columns':>8} {'two us':>7} {'one us':>7}  same")
    for kind, joined, vectors in (("LayerNormalization", "SkipLayerNormalization", "gb"), ("RMSNormalization", "SkipSimplifiedLayerNormalization", "g")):
        for tokens, columns in ((1, 64), (16, 64), (1, 512), (16, 512), (64, 512), (64, 768)):
            shape = (1, tokens, columns)
            feeds = {n: rng.standard_normal(shape, dtype=numpy.float32) for n in "xr"}
            inits = [numpy_helper.from_array(rng.random(columns, dtype=numpy.float32), n) for n in vectors]
            sums, two, one, x = [f"s{i}" for i in range(layers)], [], [], "x"
            for i in range(layers):
                two += [helper.make_node("Add", [x, "r"], [sums[i]]), helper.make_node(kind, [sums[i], *vectors], [f"o{i}"], epsilon=1e-5)]
                one.append(helper.make_node(joined, [x, "r", *vectors], [f"o{i}", "", "", sums[i]], epsilon=1e-5, domain="com.microsoft"))
                x = f"o{i}"
            last = helper.make_node("Sum", [*sums, x], ["y"])
            took, same = medians([session([*nodes, last], feeds, shape, inits) for nodes in (two, one)], feeds, rounds)
            print(f"{kind:>22} {tokens:>7} {columns:>8} {took[0] / layers:>7.1f} {took[1] / layers:>7.1f}  {'yes' if same else 'NO'}", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rounds", type=int, default=40)
    args = p.parse_args()
    rng = numpy.random.default_rng(0)
    attention(rng, args.rounds)
    products(rng, args.rounds)
    residuals(rng, args.rounds)


if __name__ == "__main__":
    main()
