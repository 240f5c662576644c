#!/usr/bin/env python3
"""Converts archives of torch.export and compares what the ONNX models compute with recorded outputs.

usage: pt2check.py --aton PATH [--opset N] DIR [NAME ...]

DIR holds NAME.pt2 beside NAME.json, which records flattened inputs and outputs of the program:
{"inputs": [leaf ...] or null, "outputs": [leaf ...] or null}; a leaf is {"dtype", "shape", "data"} for a
tensor, else the plain value. Inputs of the program that are constants are no inputs of the model; outputs that
are None or text are no outputs. Where nothing is recorded the model only has to load.

Needs numpy and onnxruntime. Prints one line an archive: ok, refused (with the message), or wrong.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime as ort

DTYPES = {"bfloat16": None, "float8_e4m3fn": None, "float8_e5m2": None}


def number(v):
    if isinstance(v, list):
        return complex(number(v[0]), number(v[1]))
    return float(v) if isinstance(v, str) else v


def array(leaf):
    """The value of a leaf as an array, None for None and text."""
    if leaf is None or isinstance(leaf, str):
        return None
    if not isinstance(leaf, dict):
        return np.asarray(leaf)
    data = [number(v) for v in leaf["data"]]
    dtype = DTYPES.get(leaf["dtype"], leaf["dtype"]) or "float32"
    return np.asarray(data, dtype=dtype).reshape(leaf["shape"])


def run(model, record):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    if record["inputs"] is None or record["outputs"] is None:
        return "ok (loads)"
    wanted = [a for a in map(array, record["outputs"]) if a is not None]
    have = [a for a in map(array, record["inputs"]) if a is not None]
    needed = session.get_inputs()
    if len(needed) != len(have):  # constants among the inputs are baked in
        have = [array(leaf) for leaf in record["inputs"] if isinstance(leaf, dict)]
    if len(needed) != len(have):
        return f"wrong: {len(needed)} inputs for {len(have)}"
    kinds = {"tensor(float)": "float32", "tensor(int64)": "int64", "tensor(double)": "float64", "tensor(bool)": "bool"}
    feeds = {i.name: a.astype(kinds.get(i.type, a.dtype)) for i, a in zip(needed, have)}
    # numpy has no such types: compare what they stand for
    import onnx
    from onnx import helper
    graph = onnx.load(model)
    for i, out in enumerate(graph.graph.output):
        if out.type.tensor_type.elem_type in (10, 16, 17, 18, 19, 20):
            name = out.name
            graph.graph.node.append(helper.make_node("Cast", [name], [name + "_as_float"], to=1))
            out.name = name + "_as_float"
            out.type.tensor_type.elem_type = 1
    session = ort.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])
    got = session.run(None, feeds)
    if len(got) != len(wanted):
        return f"wrong: {len(got)} outputs for {len(wanted)}"
    for i, (g, w) in enumerate(zip(got, wanted)):
        if g.shape != w.shape:
            return f"wrong: output {i} has shape {list(g.shape)}, not {list(w.shape)}"
        if not np.allclose(g.astype("complex128"), w.astype("complex128"), rtol=1e-3, atol=1e-5, equal_nan=True):
            return f"wrong: output {i} is {g.reshape(-1)[:4]}, not {w.reshape(-1)[:4]}"
    return "ok"


def main():
    p = argparse.ArgumentParser(description="Compares converted archives of torch.export with recorded outputs.")
    p.add_argument("--aton", required=True, metavar="PATH", help="the command aton")
    p.add_argument("--opset", default="20", metavar="N")
    p.add_argument("dir", metavar="DIR")
    p.add_argument("names", nargs="*", metavar="NAME")
    a = p.parse_args()
    names = a.names or sorted(f[:-5] for f in os.listdir(a.dir) if f.endswith(".json"))
    wrong, counts = 0, {}
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            model = os.path.join(folder, name + ".onnx")
            done = subprocess.run([a.aton, "export", os.path.join(a.dir, name + ".pt2"), "-o", model, "--opset", a.opset],
                                  capture_output=True, text=True)
            if done.returncode:
                verdict = "refused: " + next((s for s in done.stderr.splitlines() if not s.startswith("warning: ")), "").replace(a.dir + os.sep, "")
            else:
                with open(os.path.join(a.dir, name + ".json")) as f:
                    record = json.load(f)
                try:
                    verdict = run(model, record)
                except Exception as e:  # a model that the runtime does not take is a result, too
                    verdict = "wrong: " + str(e).splitlines()[0]
            kind = verdict.split(" ")[0].rstrip(":")
            counts[kind] = counts.get(kind, 0) + 1
            wrong += kind == "wrong"
            print(f"{name:18} {verdict}")
    print(", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())))
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
