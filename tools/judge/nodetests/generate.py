#!/usr/bin/env python3
"""Writes the node and model tests of the onnx package for backend/interp's TestNodes.

usage: generate.py OUT            (needs the Python packages onnx and onnxruntime)

OUT/CASE/model.onnx, and OUT/CASE/data_K/{input,output}_I.pb as judge.recorded reads them. OUT/CASE/case.json holds rtol and atol, as tools/lib/cases says.
"""
import json
import os
import sys
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../judge/python"))
import judge  # noqa: E402

warnings.filterwarnings("ignore")
from onnx.backend.test.case.node import collect_testcases  # noqa: E402
from onnx.backend.test.case.model import collect_testcases as collect_models  # noqa: E402


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
                judge.record(os.path.join(data, f"input_{i}"), v)
            for i, v in enumerate(outputs):
                judge.record(os.path.join(data, f"output_{i}"), v)
        n += 1
    print(n, "cases")


main(sys.argv[1])
