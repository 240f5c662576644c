#!/usr/bin/env python3
"""What a session costs whose weights lie transposed in the file, each behind a Transpose that onnxruntime folds, beside one whose weights lie as products read them.

    PYTHON tools/measure/bench/transposed.py --dir DIR [--products 16] [--rounds 3]

Each session is started in a process of its own, by turns, with one thread: processor time and wall time of the start, and the most memory. PYTHON has onnx,
onnxruntime and numpy; DIR has room for two files of 67 MB a product.
"""
import argparse
import os
import resource
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../judge/python"))
import judge  # noqa: E402

WIDTH, INNER = 2048, 8192


def make(path, products, transposed):
    import numpy as np
    import onnx
    from onnx import TensorProto, helper

    nodes, weights, at = [], [], 0
    value = "x"
    with open(path + ".data", "wb") as f:
        for i in range(products):
            shape = (WIDTH, INNER) if i % 2 == 0 else (INNER, WIDTH)
            w = ((np.random.default_rng(i).random(shape, np.float32) - 0.5) * 0.01)
            name = f"w{i}"
            if transposed:
                w = np.ascontiguousarray(w.T)
                nodes.append(helper.make_node("Transpose", [name], [name + ".T"], perm=[1, 0]))
                name += ".T"
            t = TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=w.shape, data_location=TensorProto.EXTERNAL)
            for key, v in (("location", os.path.basename(path) + ".data"), ("offset", at), ("length", w.nbytes)):
                t.external_data.add(key=key, value=str(v))
            f.write(w.tobytes())
            at += w.nbytes
            weights.append(t)
            nodes.append(helper.make_node("MatMul", [value, name], [f"y{i}"]))
            value = f"y{i}"
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, "n", WIDTH])]
    outputs = [helper.make_tensor_value_info(value, TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "products", inputs, outputs, weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)


def start(path):
    wall, cpu = time.perf_counter(), time.process_time()
    judge.session(path, threads=1)
    print(time.process_time() - cpu, time.perf_counter() - wall, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--dir", required=True)
    p.add_argument("--products", type=int, default=16)
    p.add_argument("--rounds", type=int, default=3)
    opts = p.parse_args()
    paths = {name: os.path.join(opts.dir, name + ".onnx") for name in ("as-read", "transposed")}
    for name, path in paths.items():
        make(path, opts.products, name == "transposed")
    runs = {name: [] for name in paths}
    for _ in range(opts.rounds):
        for name, path in paths.items():
            out = subprocess.run([sys.executable, __file__, "--start", path], check=True, capture_output=True, text=True).stdout
            runs[name].append([float(x) for x in out.split()])
    for name, path in paths.items():
        cpu, wall, most = (statistics.median(r) for r in zip(*runs[name]))
        print(f"{name}: {os.path.getsize(path + '.data') / 1e9:.2f} GB of weights, start {cpu:.2f} s of processor time, {wall:.2f} s, at most {most:.0f} MB")
        os.remove(path)
        os.remove(path + ".data")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--start"]:
        start(sys.argv[2])
    else:
        main()
