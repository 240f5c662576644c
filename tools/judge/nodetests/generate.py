#!/usr/bin/env python3
"""Writes the node and model tests of the onnx package for backend/interp's TestNodes.

usage: generate.py OUT            (needs the Python packages onnx and numpy)

OUT/CASE/model.onnx, OUT/CASE/data_K/{input,output}_I.pb. An element of a sequence is input_I.seq/N.pb, an empty optional
input_I.none. OUT/CASE/case.json holds rtol and atol, as tools/lib/cases says.
"""
import json
import os
import sys
import warnings

import numpy as np
from onnx import TensorProto, numpy_helper

warnings.filterwarnings("ignore")
from onnx.backend.test.case.node import collect_testcases  # noqa: E402
from onnx.backend.test.case.model import collect_testcases as collect_models  # noqa: E402


def write(path, value):
    if value is None:
        open(path + ".none", "w").close()
    elif isinstance(value, (list, tuple)):
        os.makedirs(path + ".seq", exist_ok=True)
        for k, v in enumerate(value):
            write(f"{path}.seq/{k:04d}", v)
    else:
        t = value if isinstance(value, TensorProto) else numpy_helper.from_array(np.asarray(value))
        with open(path + ".pb", "wb") as f:
            f.write(t.SerializeToString())


def main(out):
    n = 0
    for case in list(collect_testcases()) + [c for c in collect_models() if c.kind == "simple"]:
        if case.model is None:
            continue
        folder = os.path.join(out, case.name)
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "model.onnx"), "wb") as f:
            f.write(case.model.SerializeToString())
        with open(os.path.join(folder, "case.json"), "w") as f:
            json.dump({"id": case.name, "suite": "nodes", "op": case.model.graph.node[0].op_type, "rtol": case.rtol, "atol": case.atol,
                       "data_sets": [{"dir": f"data_{k}"} for k in range(len(case.data_sets))]}, f)
        for k, (inputs, outputs) in enumerate(case.data_sets):
            data = os.path.join(folder, f"data_{k}")
            os.makedirs(data, exist_ok=True)
            for i, v in enumerate(inputs):
                write(os.path.join(data, f"input_{i}"), v)
            for i, v in enumerate(outputs):
                write(os.path.join(data, f"output_{i}"), v)
        n += 1
    print(n, "cases")


main(sys.argv[1])
