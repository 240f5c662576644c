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

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../judge/python"))
import judge  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))


def unpacked(folder, package, version):
    into = os.path.join(folder, f"{package}-{version}")
    if not os.path.isdir(into):
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check", "-d", into, f"{package}=={version}"], check=True)
        for path in glob.glob(os.path.join(into, "*")):
            with zipfile.ZipFile(path) if path.endswith(".whl") else tarfile.open(path) as a:
                a.extractall(into)
    return into


def inputs(s, given):
    random, out = np.random.default_rng(0), {}
    for i in s.get_inputs():
        kind, text = judge.dtype(i.type), given.get(i.name, ",".join(map(str, i.shape)))
        if text[:1] == "@":
            out[i.name] = np.array(float(text[1:]), kind)
            continue
        shape = [int(n) for n in text.split(",") if n]
        out[i.name] = (random.integers(0, 200, shape) if np.issubdtype(kind, np.integer) else random.random(shape)).astype(kind)
    return out


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dir")
    p.add_argument("--aton", default="bin/aton")
    p.add_argument("--opsets", default="21,13")
    opts = p.parse_args()
    os.makedirs(opts.dir, exist_ok=True)
    bad = 0
    with open(os.path.join(HERE, "packaged.tsv"), newline="") as f:
        rows = list(csv.DictReader(f, delimiter="\t"))
    for row in rows:
        path = os.path.join(unpacked(opts.dir, row["package"], row["version"]), row["file"])
        given = dict(part.rsplit("=", 1) for part in row["inputs"].split())
        original = judge.session(path, optimized=False, threads=1)
        feed = inputs(original, given)
        want = judge.run(original, feed)
        most = float(row["most"] or 1e-9)
        said = []
        for opset in [None] + [int(n) for n in opts.opsets.split(",") if n]:
            out = os.path.join(opts.dir, "out.onnx")
            try:
                judge.export(opts.aton, path, out, opset=opset)
            except judge.Refused as e:
                said.append(str(e))
                bad += 1
                continue
            got = judge.run(judge.session(out, optimized=False, threads=1), feed)
            worst = max(judge.distance(g, w, of=max(judge.greatest(w), most)) for g, w in zip(got, want))
            bad += not worst <= 1e-5
            said.append(f"{len(judge.loaded(out).graph.node)} nodes, {worst:.0e}")
        print(f"{row['package']} {os.path.basename(path)}: {len(judge.loaded(path).graph.node)} nodes; " + "; ".join(said), flush=True)
    print(f"{len(rows)} files, {bad} exports refused or different by more than 1e-5")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
