#!/usr/bin/env python3
"""Writes dialects/onnx/schemas.txt: every version of every operator of the onnx package.

usage: schemas.py > dialects/onnx/schemas.txt            (needs the Python package onnx)

`go run ./tools/gen/onnxgen/cmd/onnxgen` makes Go source of the text. A line is

    DOMAIN::NAME@SINCE MARKS (INPUTS) -> (OUTPUTS) {ATTRIBUTES} where VARIABLE in {TYPES}, ...

The marks are `deprecated`, `!fn` for an operator that the standard defines as a function of others and `!fnctx` for one whose
definition depends on the node. A parameter is NAME: TYPE; NAME? is optional, NAME...N stands for N or more of one type and
NAME..*N for N or more of any types, where no N stands for 0.
"""
import onnx
from onnx.defs import OpSchema, get_all_schemas_with_history, onnx_opset_version

KINDS = {"FLOATS": "floats", "INTS": "ints", "STRINGS": "strings", "SPARSE_TENSOR": "sparse_tensor", "TYPE_PROTO": "type_proto"}


def parameter(p):
    name = p.name
    if p.option == OpSchema.FormalParameterOption.Optional:
        name += "?"
    elif p.option == OpSchema.FormalParameterOption.Variadic:
        name += f"{'...' if p.is_homogeneous else '..*'}{p.min_arity or ''}"
    return f"{name}: {p.type_str}"


def value(v):
    if isinstance(v, bytes):
        v = v.decode()
    if isinstance(v, str):
        return f'"{v}"'
    if isinstance(v, (list, tuple)):
        return "[" + ", ".join(map(value, v)) + "]"
    return repr(v)


def attribute(a):
    kind = a.type.name.lower()
    text = f"{a.name}: {kind}"
    if a.required:
        text += " required"
    if a.default_value.name:
        text += " = " + value(onnx.helper.get_attribute_value(a.default_value))
    return text


def line(s):
    domain = s.domain or "onnx"
    words = [f"{domain}::{s.name}@{s.since_version}"]
    if s.deprecated:
        words.append("deprecated")
    if s.has_context_dependent_function:
        words.append("!fnctx")
    elif s.has_function:
        words.append("!fn")
    words.append(f"({', '.join(map(parameter, s.inputs))}) -> ({', '.join(map(parameter, s.outputs))})")
    if s.attributes:
        words.append("{" + ", ".join(attribute(a) for _, a in sorted(s.attributes.items())) + "}")
    if s.type_constraints:
        words.append("where " + ", ".join(f"{c.type_param_str} in {{{' '.join(sorted(c.allowed_type_strs))}}}" for c in s.type_constraints))
    return " ".join(words)


def main():
    print(f"# onnx {onnx.__version__}, opset {onnx_opset_version()}, IR {onnx.IR_VERSION}")
    for s in sorted(get_all_schemas_with_history(), key=lambda s: (s.domain or "", s.name, s.since_version)):
        print(line(s))


main()
