#!/usr/bin/env python3
"""Converts archives of torch.export and compares what the ONNX models compute with recorded outputs.

usage: pt2check.py --aton PATH [--opset N] DIR [NAME ...]

DIR holds NAME.pt2 beside NAME.json, which records flattened inputs and outputs of the program:
{"inputs": [leaf ...] or null, "outputs": [leaf ...] or null}; a leaf is {"dtype", "shape", "data"} for a
tensor, else the plain value. Inputs of the program that are constants are no inputs of the model; outputs that
are None or text are no outputs; complex numbers are pairs in the model. Where nothing is recorded the model only has to load.

Needs numpy, onnx and onnxruntime. Prints one line an archive: ok, refused (with the message), or wrong.
"""
import argparse
import json
import os
import sys
import tempfile

import ml_dtypes
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../judge/python"))
import judge  # noqa: E402


def number(v):
    if isinstance(v, list):
        return complex(number(v[0]), number(v[1]))
    return float(v) if isinstance(v, str) else v


def value(leaf):
    """The value of a leaf: a number or an array; None for None and text."""
    if not isinstance(leaf, dict):
        return None if isinstance(leaf, str) else leaf
    data = np.asarray([number(v) for v in leaf["data"]], getattr(ml_dtypes, leaf["dtype"], leaf["dtype"])).reshape(leaf["shape"])
    return np.stack([data.real, data.imag], -1) if data.dtype.kind == "c" else data


def run(model, record):
    session = judge.session(model)
    if record["inputs"] is None or record["outputs"] is None:
        return "ok (loads)"
    wanted = [v for v in map(value, record["outputs"]) if v is not None]
    have = [v for v in map(value, record["inputs"]) if v is not None]
    needed = session.get_inputs()
    if len(needed) != len(have):  # constants among the inputs are baked in
        have = [value(leaf) for leaf in record["inputs"] if isinstance(leaf, dict)]
    if len(needed) != len(have):
        return f"wrong: {len(needed)} inputs for {len(have)}"
    got = judge.run(session, [np.asarray(v).astype(judge.dtype(i.type)) for i, v in zip(needed, have)])
    why = judge.wrong(got, wanted, rtol=1e-3, atol=1e-5)
    return f"wrong: {why}" if why else "ok"


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
            try:
                judge.export(a.aton, os.path.join(a.dir, name + ".pt2"), model, opset=a.opset)
                with open(os.path.join(a.dir, name + ".json")) as f:
                    record = json.load(f)
                verdict = run(model, record)
            except judge.Refused as e:
                verdict = f"refused: {e}"
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
