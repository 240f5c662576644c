#!/usr/bin/env python3
"""Writes dialects/onnx/ort_kernels.tsv: the element types that onnxruntime's CPU kernels take.

usage: kernels.py > dialects/onnx/ort_kernels.tsv            (needs the Python packages onnx and onnxruntime)

`go run ./tools/gen/onnxgen/cmd/onnxgen` makes Go source of the table; its format is described at GenerateKernels.
"""
import collections
import os
import re
import sys

import onnxruntime
from onnx import TensorProto, helper
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_opkernel_def

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../judge/python"))
import judge  # noqa: E402

SCHEMAS = os.path.join(os.path.dirname(__file__), "..", "..", "..", "dialects", "onnx", "schemas.txt")
OPEN = 2**31 - 1  # the end of a kernel that has none


def element(text):
    """The name of an element type or of a sequence of it; None for types that the table leaves out."""
    if text.startswith("tensor("):
        return text[len("tensor("):-1]
    if text.startswith("seq(tensor("):
        return f"seq({text[len('seq(tensor('):-2]})"
    return None


def newest():
    """The newest opset of which onnxruntime loads a model."""
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", value[:1], value[1:])
    opset = 20
    while True:
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset + 1)], ir_version=8)
        try:
            judge.session(model)
        except Exception:  # the binding has a class for each status of a failure
            return opset
        opset += 1


def main():
    with open(SCHEMAS, encoding="utf-8") as f:
        standard = set(re.findall(r"^onnx::(\w+)@", f.read(), re.M))  # onnxruntime has operators of its own beside them
    table = collections.defaultdict(lambda: collections.defaultdict(set))
    for k in get_all_opkernel_def():
        if k.domain or k.op_name not in standard or k.provider != "CPUExecutionProvider":
            continue
        types = table[k.op_name, k.version_range]
        for name, names in k.type_constraints.items():
            types[name] |= {t for t in map(element, names) if t}
    print(f"# onnxruntime {onnxruntime.__version__}, CPU, default domain, opset {newest()}")
    print("op\tsince\tuntil\ttypes")
    for (op, (since, until)), types in sorted(table.items()):
        words = [f"{name}={'|'.join(sorted(types[name]))}" for name in sorted(types) if types[name]]
        print(op, since, "" if until == OPEN else until, " ".join(words), sep="\t")


main()
