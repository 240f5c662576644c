#!/usr/bin/env python3
"""Writes layout_21.pt2: a program that a present PyTorch exports, rewritten to schema 1, the layout of PyTorch 2.1.

usage: layout_21.py OUT

There was no PyTorch 2.1 to make a real one with: the fields are those of torch/_export/serde/schema.py of that release. What
a real file may hold besides is not known from experience.
"""
import base64
import io
import json
import sys
import zipfile

import torch
from torch._export.serde.serialize import serialize
from torch.export import Dim, export


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 3)
        self.register_buffer("count", torch.zeros(3))
        self.scale = torch.tensor([1.0, 2.0, 3.0])

    def forward(self, x, y):
        self.count.add_(1.0)
        a, b = torch.ops.aten.split_with_sizes(self.fc(x), [1, 2], 1)
        return torch.relu(a) * self.scale + self.count, torch.cat([y, torch.clamp(b, min=0.5)]), x.shape[0] * 2


def save(v):
    f = io.BytesIO()
    torch.save(v, f)
    return f.getvalue()


def old_argument(a):
    """as_none is [], the tensor of an optional one is its name."""
    if isinstance(a, list):
        return [old_argument(x) for x in a]
    if not isinstance(a, dict):
        return a
    if a == {"as_none": True}:
        return {"as_none": []}
    if "as_optional_tensor" in a:
        inner = a["as_optional_tensor"]
        return {"as_none": []} if "as_none" in inner else {"as_tensor": inner["as_tensor"]}
    return {k: old_argument(v) for k, v in a.items()}


def plain(v):
    """A size: the expression in sympy's plain form, the hint as a number."""
    if "as_expr" in v:
        import sympy  # only to print; the strings are our own

        e = eval(v["as_expr"]["expr_str"], {n: getattr(sympy, n) for n in ("Symbol", "Integer", "Add", "Mul")})
        return {"as_expr": {"expr_str": str(e), "hint": None}}
    return v


def main():
    torch.manual_seed(0)
    batch = Dim("batch", min=2, max=16)
    # two inputs whose axes are equal
    ep = export(Model().eval(), (torch.randn(2, 4), torch.randn(2, 2)), dynamic_shapes=({0: batch}, {0: batch}))
    ep = ep.run_decompositions({})
    new = json.loads(serialize(ep).exported_program)
    graph, sig = new["graph_module"]["graph"], new["graph_module"]["signature"]

    def meta(m):
        return {"dtype": m["dtype"], "sizes": [plain(s) for s in m["sizes"]], "requires_grad": m["requires_grad"], "device": m["device"],
                "strides": [plain(s) for s in m["strides"]], "storage_offset": 0, "layout": m["layout"]}

    old = {"inputs_to_parameters": {}, "inputs_to_buffers": {}, "user_inputs": [], "user_outputs": [], "buffers_to_mutate": {}, "backward_signature": None}
    inputs, constants = [], {}
    for spec, arg in zip(sig["input_specs"], graph["inputs"]):
        (kind, v), = spec.items()
        if kind == "tensor_constant":
            constants[v["arg"]["name"]] = base64.b64encode(save(ep.constants[v["tensor_constant_name"]])).decode()
            continue
        name = arg["as_tensor"]["name"]
        inputs.append(arg)
        if kind == "parameter":
            old["inputs_to_parameters"][name] = v["parameter_name"]
        elif kind == "buffer":
            old["inputs_to_buffers"][name] = v["buffer_name"]
        else:
            old["user_inputs"].append(name)
    for spec in sig["output_specs"]:
        (kind, v), = spec.items()
        if kind == "buffer_mutation":
            old["buffers_to_mutate"][v["arg"]["name"]] = v["buffer_name"]
        else:
            (_, arg), = v["arg"].items()
            old["user_outputs"].append(arg.get("name", arg.get("as_name")))
    call = new["graph_module"]["module_call_graph"][0]["signature"]
    # the second input has a symbol of its own, and an equality says that it is the first one's
    values = {n: {"meta": meta(m)} for n, m in graph["tensor_values"].items()}
    values["y"]["meta"]["sizes"][0] = {"as_expr": {"expr_str": "s9", "hint": 2}}
    program = {
        "graph_module": {
            "graph": {
                "inputs": inputs, "outputs": old_argument(graph["outputs"]),
                "nodes": [{"target": n["target"], "inputs": [{"name": a["name"], "arg": old_argument(a["arg"])} for a in n["inputs"]],
                           "outputs": old_argument(n["outputs"]), "metadata": {k: v.replace(__file__, "model.py") for k, v in n["metadata"].items() if k in ("stack_trace", "nn_module_stack")}}
                          for n in graph["nodes"]],
                "tensor_values": values,
                "sym_int_values": {n: plain(v) for n, v in graph["sym_int_values"].items()},
                "sym_bool_values": {}, "is_single_tensor_return": False, "constants": constants,
            },
            "signature": old,
            "call_spec": {"in_spec": call["in_spec"], "out_spec": call["out_spec"]},
            "module_call_graph": [],
        },
        "opset_version": {"aten": 10},
        "range_constraints": {k: {"min_val": v["min_val"], "max_val": v["max_val"] if v["max_val"] is not None else float("inf")} for k, v in new["range_constraints"].items()},
        "equality_constraints": [[["x", 0], ["y", 0]]],
        "schema_version": 1,
    }
    with zipfile.ZipFile(sys.argv[1], "w") as z:
        for name, data in (("serialized_exported_program.json", json.dumps(program)), ("serialized_state_dict.json", save(dict(ep.state_dict))), ("version", "1")):
            z.writestr(zipfile.ZipInfo(name), data)


if __name__ == "__main__":
    main()
