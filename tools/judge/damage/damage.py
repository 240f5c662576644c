#!/usr/bin/env python3
"""Damages valid ONNX models in the ways that matter, and asks onnx.checker and onnxruntime about each.

usage: damage.py OUT MODELS... [--per-kind N] [--seed N] [--no-ort]     (needs onnx and onnxruntime)

MODELS are .onnx files and folders of them. OUT/NNNN.onnx is a damaged model, OUT/index.tsv has a line for each: file, kind,
model that it was made of, what onnx.checker (full_check) says, what onnxruntime says; "ok" or the first line of the error.
The same arguments give the same files.
"""
import argparse
import copy
import multiprocessing
import os
import random
import resource
import sys

import onnx
from onnx import AttributeProto, TensorProto, checker, helper

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../judge/python"))
import judge  # noqa: E402

KINDS = {}


def damage(f):
    """Registers a kind. f(model, rng) changes the model and returns False if there is nothing to change."""
    KINDS[f.__name__] = f
    return f


def nodes(m):
    return [n for g in judge.graphs(m.graph) for n in g.node]


def pick(rng, items):
    items = list(items)
    return rng.choice(items) if items else None


def slot(rng, ns, field):
    """A used operand or result: (node, index)."""
    return pick(rng, [(n, i) for n in ns for i, v in enumerate(getattr(n, field)) if v])


def tensor_infos(infos):
    return [v for v in infos if v.type.HasField("tensor_type")]


def intermediate(m):
    """Names that nodes of the main graph compute and that are no outputs."""
    outs = {o.name for o in m.graph.output}
    return [o for n in m.graph.node for o in n.output if o and o not in outs]


# names and order

@damage
def input_undefined(m, rng):
    s = slot(rng, nodes(m), "input")
    if not s:
        return False
    s[0].input[s[1]] = "no_such_value"


@damage
def input_renamed(m, rng):
    v = pick(rng, m.graph.input)
    if v is None:
        return False
    v.name += "_renamed"


@damage
def output_renamed(m, rng):
    s = slot(rng, m.graph.node, "output")
    if not s:
        return False
    s[0].output[s[1]] += "_renamed"


@damage
def output_twice(m, rng):
    outs = [(n, i) for n in m.graph.node for i, v in enumerate(n.output) if v]
    if len(outs) < 2:
        return False
    a, b = rng.sample(outs, 2)
    a[0].output[a[1]] = b[0].output[b[1]]


@damage
def output_takes_input_name(m, rng):
    s, v = slot(rng, m.graph.node, "output"), pick(rng, m.graph.input)
    if not s or v is None:
        return False
    s[0].output[s[1]] = v.name


@damage
def input_twice(m, rng):
    v = pick(rng, m.graph.input)
    if v is None:
        return False
    m.graph.input.append(v)


@damage
def input_name_empty(m, rng):
    v = pick(rng, m.graph.input)
    if v is None:
        return False
    v.name = ""


@damage
def graph_output_undefined(m, rng):
    v = pick(rng, m.graph.output)
    if v is None:
        return False
    v.name = "no_such_output"


@damage
def graph_output_name_empty(m, rng):
    v = pick(rng, m.graph.output)
    if v is None:
        return False
    v.name = ""


@damage
def graph_name_empty(m, rng):
    pick(rng, judge.graphs(m.graph)).name = ""


@damage
def unsorted(m, rng):
    ns = list(m.graph.node)
    if len(ns) < 2:
        return False
    rng.shuffle(ns)
    ns.reverse()
    del m.graph.node[:]
    m.graph.node.extend(ns)


@damage
def cycle(m, rng):
    n = pick(rng, [n for n in m.graph.node if n.input and n.output and n.output[0]])
    if n is None:
        return False
    n.input[0] = n.output[0]


@damage
def node_dropped(m, rng):
    if not m.graph.node:
        return False
    del m.graph.node[rng.randrange(len(m.graph.node))]


@damage
def node_twice(m, rng):
    if not m.graph.node:
        return False
    m.graph.node.append(pick(rng, m.graph.node))


@damage
def metadata_twice(m, rng):
    for v in "ab":
        m.metadata_props.add(key="k", value=v)


# attributes

@damage
def attribute_unknown(m, rng):
    n = pick(rng, nodes(m))
    if n is None:
        return False
    n.attribute.append(helper.make_attribute("zzz", rng.choice([1, 1.5, "a", [1, 2]])))


@damage
def attribute_twice(m, rng):
    n = pick(rng, [n for n in nodes(m) if n.attribute])
    if n is None:
        return False
    n.attribute.append(pick(rng, n.attribute))


def attribute(m, rng, types=None):
    return pick(rng, [(n, a) for n in nodes(m) for a in n.attribute if types is None or a.type in types])


@damage
def attribute_renamed(m, rng):
    a = attribute(m, rng)
    if a is None:
        return False
    a[1].name += "_"


@damage
def attribute_dropped(m, rng):
    a = attribute(m, rng)
    if a is None:
        return False
    a[0].attribute.remove(a[1])


@damage
def attribute_of_other_type(m, rng):
    a = attribute(m, rng)
    if a is None:
        return False
    values = {AttributeProto.INT: 1, AttributeProto.FLOAT: 0.5, AttributeProto.STRING: "s", AttributeProto.INTS: [1, 1],
              AttributeProto.TENSOR: helper.make_tensor("t", TensorProto.FLOAT, [1], [0.0])}
    t = rng.choice([t for t in values if t != a[1].type])
    a[1].CopyFrom(helper.make_attribute(a[1].name, values[t]))


@damage
def attribute_type_lies(m, rng):
    a = attribute(m, rng)
    if a is None:
        return False
    a[1].type = rng.choice([t for t in range(1, 12) if t != a[1].type])


@damage
def attribute_type_missing(m, rng):
    a = attribute(m, rng)
    if a is None:
        return False
    a[1].ClearField("type")


@damage
def attribute_two_values(m, rng):
    a = attribute(m, rng, {AttributeProto.INT, AttributeProto.FLOAT})
    if a is None:
        return False
    a[1].i, a[1].f = 1, 1.0


@damage
def attribute_int_hostile(m, rng):
    a = attribute(m, rng, {AttributeProto.INT})
    if a is None:
        return False
    a[1].i = rng.choice([-1, -100, 100, 1 << 40, -(1 << 63)])


@damage
def attribute_ints_hostile(m, rng):
    a = attribute(m, rng, {AttributeProto.INTS})
    if a is None or not a[1].ints:
        return False
    a[1].ints[rng.randrange(len(a[1].ints))] = rng.choice([-1, -100, 1000, 1 << 62])


@damage
def attribute_ints_length(m, rng):
    a = attribute(m, rng, {AttributeProto.INTS})
    if a is None:
        return False
    if a[1].ints and rng.random() < 0.5:
        a[1].ints.pop()
    else:
        a[1].ints.append(1)


@damage
def attribute_string_unknown(m, rng):
    a = attribute(m, rng, {AttributeProto.STRING})
    if a is None:
        return False
    a[1].s = b"no_such_mode"


# operators

@damage
def operator_unknown(m, rng):
    n = pick(rng, nodes(m))
    if n is None:
        return False
    n.op_type += "Zzz"


@damage
def operator_empty(m, rng):
    n = pick(rng, nodes(m))
    if n is None:
        return False
    n.op_type = ""


@damage
def operator_other(m, rng):
    n = pick(rng, nodes(m))
    if n is None:
        return False
    n.op_type = rng.choice([o for o in ("Relu", "Add", "Concat", "Conv", "MatMul", "Gather", "Shape", "Not", "If", "Slice") if o != n.op_type])


@damage
def domain_unknown(m, rng):
    n = pick(rng, nodes(m))
    if n is None:
        return False
    n.domain = "no.such.domain"


@damage
def operands_too_many(m, rng):
    n = pick(rng, [n for n in nodes(m) if any(n.input)])
    if n is None:
        return False
    n.input.extend([next(i for i in n.input if i)] * rng.choice([1, 3, 9]))


@damage
def operand_dropped(m, rng):
    n = pick(rng, [n for n in nodes(m) if n.input])
    if n is None:
        return False
    n.input.pop()


@damage
def operands_none(m, rng):
    n = pick(rng, [n for n in nodes(m) if n.input])
    if n is None:
        return False
    del n.input[:]


@damage
def operand_left_out(m, rng):
    s = slot(rng, nodes(m), "input")
    if not s:
        return False
    s[0].input[s[1]] = ""


@damage
def operands_swapped(m, rng):
    n = pick(rng, [n for n in nodes(m) if len(n.input) > 1])
    if n is None:
        return False
    n.input[0], n.input[1] = n.input[1], n.input[0]


@damage
def results_too_many(m, rng):
    n = pick(rng, nodes(m))
    if n is None:
        return False
    n.output.extend(f"extra_{i}" for i in range(rng.choice([1, 4])))


@damage
def result_left_out(m, rng):
    s = slot(rng, nodes(m), "output")
    if not s:
        return False
    s[0].output[s[1]] = ""


@damage
def results_none(m, rng):
    n = pick(rng, nodes(m))
    if n is None:
        return False
    del n.output[:]


# types and shapes

@damage
def input_type_missing(m, rng):
    v = pick(rng, m.graph.input)
    if v is None:
        return False
    v.ClearField("type")


@damage
def output_type_missing(m, rng):
    v = pick(rng, m.graph.output)
    if v is None:
        return False
    v.ClearField("type")


@damage
def shape_missing(m, rng):
    v = pick(rng, tensor_infos(list(m.graph.input) + list(m.graph.output)))
    if v is None:
        return False
    v.type.tensor_type.ClearField("shape")


@damage
def input_dtype(m, rng):
    v = pick(rng, tensor_infos(m.graph.input))
    if v is None:
        return False
    t = v.type.tensor_type
    t.elem_type = rng.choice([d for d in (TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.DOUBLE, TensorProto.STRING) if d != t.elem_type])


@damage
def output_dtype(m, rng):
    v = pick(rng, tensor_infos(m.graph.output))
    if v is None:
        return False
    t = v.type.tensor_type
    t.elem_type = rng.choice([d for d in (TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.DOUBLE) if d != t.elem_type])


@damage
def dtype_undefined(m, rng):
    v = pick(rng, tensor_infos(list(m.graph.input)))
    if v is None:
        return False
    v.type.tensor_type.elem_type = rng.choice([0, 99])


@damage
def input_shape(m, rng):
    v = pick(rng, [v for v in tensor_infos(m.graph.input) if v.type.tensor_type.shape.dim])
    if v is None:
        return False
    d = pick(rng, v.type.tensor_type.shape.dim)
    d.dim_value = rng.choice([0, 1, 7, 13, 1 << 40])


@damage
def input_rank(m, rng):
    v = pick(rng, tensor_infos(m.graph.input))
    if v is None:
        return False
    dims = v.type.tensor_type.shape.dim
    if dims and rng.random() < 0.5:
        dims.pop()
    else:
        dims.add().dim_value = 2


@damage
def output_shape(m, rng):
    v = pick(rng, [v for v in tensor_infos(m.graph.output) if v.type.tensor_type.shape.dim])
    if v is None:
        return False
    d = pick(rng, v.type.tensor_type.shape.dim)
    d.dim_value = d.dim_value + 1


@damage
def output_rank(m, rng):
    v = pick(rng, tensor_infos(m.graph.output))
    if v is None:
        return False
    v.type.tensor_type.shape.dim.add().dim_value = 2


@damage
def size_negative(m, rng):
    v = pick(rng, [v for v in tensor_infos(list(m.graph.input) + list(m.graph.output)) if v.type.tensor_type.shape.dim])
    if v is None:
        return False
    pick(rng, v.type.tensor_type.shape.dim).dim_value = -3


@damage
def tensor_becomes_sequence(m, rng):
    v = pick(rng, tensor_infos(m.graph.input))
    if v is None:
        return False
    t = copy.deepcopy(v.type)
    v.type.sequence_type.elem_type.CopyFrom(t)


@damage
def value_info_wrong(m, rng):
    try:
        typed = onnx.shape_inference.infer_shapes(m)
    except Exception:  # it has no types to contradict
        return False
    infos = [v for v in tensor_infos(typed.graph.value_info) if v.type.tensor_type.shape.dim]
    v = pick(rng, infos)
    if v is None:
        return False
    t = v.type.tensor_type
    if rng.random() < 0.5:
        t.elem_type = TensorProto.INT64 if t.elem_type != TensorProto.INT64 else TensorProto.FLOAT
    else:
        d = pick(rng, t.shape.dim)
        d.dim_value = d.dim_value + 1
    m.graph.value_info.append(v)


# versions and domains

@damage
def imports_none(m, rng):
    del m.opset_import[:]


@damage
def import_dropped(m, rng):
    if len(m.opset_import) < 2:
        return False
    del m.opset_import[rng.randrange(len(m.opset_import))]


@damage
def import_version(m, rng):
    pick(rng, m.opset_import).version = rng.choice([-1, 0, 1, 5, 9, 12, 999])


@damage
def import_domain(m, rng):
    pick(rng, m.opset_import).domain = "some.other.domain"


@damage
def ir_version(m, rng):
    m.ir_version = rng.choice([-1, 0, 1, 2, 15, 99, 1 << 40])


@damage
def ir_version_missing(m, rng):
    m.ClearField("ir_version")


@damage
def ir_version_3(m, rng):
    if not m.graph.initializer:
        return False
    m.ir_version = 3
    names = {t.name for t in m.graph.initializer}
    for v in [v for v in m.graph.input if v.name in names]:
        m.graph.input.remove(v)


# tensors

def tensors(m):
    return list(m.graph.initializer) + [a.t for n in nodes(m) for a in n.attribute if a.type == AttributeProto.TENSOR]


@damage
def tensor_too_small(m, rng):
    t = pick(rng, tensors(m))
    if t is None:
        return False
    if t.raw_data:
        t.raw_data = t.raw_data[:-1]
    else:
        for f in (t.float_data, t.int32_data, t.int64_data, t.double_data, t.uint64_data, t.string_data):
            if f:
                f.pop()


@damage
def tensor_dims(m, rng):
    t = pick(rng, [t for t in tensors(m) if t.dims])
    if t is None:
        return False
    t.dims[rng.randrange(len(t.dims))] += rng.choice([1, 5, 1 << 40, -100])


@damage
def tensor_dtype(m, rng):
    t = pick(rng, tensors(m))
    if t is None:
        return False
    t.data_type = rng.choice([d for d in (0, 1, 7, 8, 9, 11, 99) if d != t.data_type])


@damage
def tensor_two_fields(m, rng):
    t = pick(rng, tensors(m))
    if t is None:
        return False
    t.float_data.append(1.0)
    t.int64_data.append(1)


@damage
def tensor_external(m, rng):
    t = pick(rng, m.graph.initializer)
    if t is None:
        return False
    for f in ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data"):
        t.ClearField(f)
    t.data_location = TensorProto.EXTERNAL
    for k, v in rng.choice([{}, {"location": "no_such_file"}, {"location": "../../etc/passwd"}, {"location": "/etc/passwd"}, {"offset": "x"}]).items():
        t.external_data.add(key=k, value=v)


@damage
def tensor_external_and_inside(m, rng):
    t = pick(rng, m.graph.initializer)
    if t is None:
        return False
    t.data_location = TensorProto.EXTERNAL
    t.external_data.add(key="location", value="no_such_file")


@damage
def initializer_twice(m, rng):
    t = pick(rng, m.graph.initializer)
    if t is None:
        return False
    m.graph.initializer.append(t)


@damage
def initializer_name_empty(m, rng):
    t = pick(rng, m.graph.initializer)
    if t is None:
        return False
    t.name = ""


@damage
def initializer_dropped(m, rng):
    if not m.graph.initializer:
        return False
    del m.graph.initializer[rng.randrange(len(m.graph.initializer))]


@damage
def constant_hostile(m, rng):
    t = pick(rng, [t for t in tensors(m) if t.data_type == TensorProto.INT64 and (t.int64_data or t.raw_data)])
    if t is None:
        return False
    v = list(onnx.numpy_helper.to_array(t).flatten())
    if not v:
        return False
    v[rng.randrange(len(v))] = rng.choice([-1, -7, 9, 1000, 1 << 62, -(1 << 63)])
    t.ClearField("raw_data")
    del t.int64_data[:]
    t.int64_data.extend(int(x) for x in v)


# subgraphs

def subgraph(m, rng):
    return pick(rng, [(n, a.g) for n in nodes(m) for a in n.attribute if a.type == AttributeProto.GRAPH])


@damage
def subgraph_output_dropped(m, rng):
    s = subgraph(m, rng)
    if s is None or not s[1].output:
        return False
    s[1].output.pop()


@damage
def subgraph_output_more(m, rng):
    s = subgraph(m, rng)
    if s is None or not s[1].output:
        return False
    s[1].output.append(s[1].output[0])


@damage
def subgraph_output_undefined(m, rng):
    s = subgraph(m, rng)
    if s is None or not s[1].output:
        return False
    s[1].output[0].name = "no_such_value"


@damage
def subgraph_input_dropped(m, rng):
    s = subgraph(m, rng)
    if s is None or not s[1].input:
        return False
    s[1].input.pop()


@damage
def subgraph_input_more(m, rng):
    s = subgraph(m, rng)
    if s is None:
        return False
    s[1].input.append(helper.make_tensor_value_info("one_more", TensorProto.FLOAT, [1]))


@damage
def subgraph_shadows(m, rng):
    s = subgraph(m, rng)
    v = pick(rng, m.graph.input)
    if s is None or v is None:
        return False
    o = slot(rng, s[1].node, "output")
    if not o:
        return False
    o[0].output[o[1]] = v.name


@damage
def subgraph_dropped(m, rng):
    s = subgraph(m, rng)
    if s is None:
        return False
    for a in [a for a in s[0].attribute if a.type == AttributeProto.GRAPH]:
        s[0].attribute.remove(a)
        break


@damage
def inner_value_used_outside(m, rng):
    s = subgraph(m, rng)
    inner = s and slot(rng, s[1].node, "output")
    outer = slot(rng, m.graph.node, "input")
    if not inner or not outer:
        return False
    outer[0].input[outer[1]] = inner[0].output[inner[1]]


# functions

@damage
def function_undefined_input(m, rng):
    f = pick(rng, m.functions)
    s = f and slot(rng, f.node, "input")
    if not s:
        return False
    s[0].input[s[1]] = "no_such_value"


@damage
def function_twice(m, rng):
    f = pick(rng, m.functions)
    if f is None:
        return False
    m.functions.append(f)


@damage
def function_imports_none(m, rng):
    f = pick(rng, m.functions)
    if f is None:
        return False
    del f.opset_import[:]


@damage
def function_recursive(m, rng):
    f = pick(rng, [f for f in m.functions if f.node])
    if f is None:
        return False
    f.node[0].op_type, f.node[0].domain = f.name, f.domain
    f.opset_import.add(domain=f.domain, version=1)


@damage
def function_operator_unknown(m, rng):
    f = pick(rng, [f for f in m.functions if f.node])
    if f is None:
        return False
    f.node[0].op_type += "Zzz"


def function_model():
    """A model with a function that takes an attribute."""
    body = helper.make_node("LeakyRelu", ["a"], ["t"])
    body.attribute.add(name="alpha", type=AttributeProto.FLOAT, ref_attr_name="slope")
    f = helper.make_function("my", "Twice", ["a"], ["b"], [body, helper.make_node("Add", ["t", "t"], ["b"])], [helper.make_opsetid("", 17)], ["slope"])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3])
    g = helper.make_graph([helper.make_node("Twice", ["x"], ["y"], domain="my", slope=0.5)], "g", [x], [y])
    return helper.make_model(g, functions=[f], opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("my", 1)], ir_version=8)


# asking

def first_line(e):
    return " ".join(str(e).split("\n")[0].split())[:200] or type(e).__name__


def ask_checker(path):
    try:
        checker.check_model(path, full_check=True)
    except Exception as e:
        return first_line(e)
    return "ok"


def ask_ort(path):
    try:
        judge.session(path, optimized=False, threads=1)
    except Exception as e:
        return first_line(e)
    return "ok"


class Asker:
    """Asks in a process of its own: some files bring it down."""

    def __init__(self, ask):
        self.ask, self.process = ask, None

    def loop(self, pipe):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        while True:
            pipe.send(self.ask(pipe.recv()))

    def __call__(self, path):
        if self.process is None:
            self.pipe, theirs = multiprocessing.Pipe()
            self.process = multiprocessing.Process(target=self.loop, args=(theirs,), daemon=True)
            self.process.start()
            theirs.close()
        try:
            self.pipe.send(path)
            if self.pipe.poll(60):
                return self.pipe.recv()
            self.process.kill()
        except (EOFError, ConnectionError):
            pass
        self.process.join()
        code, self.process = self.process.exitcode, None
        return f"ended by signal {-code}"


def find(paths):
    out = []
    for p in paths:
        if os.path.isdir(p):
            for root, _, names in sorted(os.walk(p)):
                # model.onnx of a node test, not what rewrites of it lie beside
                only = ["model.onnx"] if "model.onnx" in names else names
                out += [os.path.join(root, n) for n in sorted(only) if n.endswith(".onnx")]
        else:
            out.append(p)
    return out


def load(path):
    """A valid model of moderate size, or None."""
    if os.path.getsize(path) > 200_000:
        return None
    m = onnx.load(path, load_external_data=False)
    return m if ask_checker(path) == "ok" else None


def main():
    a = argparse.ArgumentParser()
    a.add_argument("out")
    a.add_argument("models", nargs="+")
    a.add_argument("--per-kind", type=int, default=25)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--no-ort", action="store_true")
    o = a.parse_args()
    os.makedirs(o.out, exist_ok=True)
    rng = random.Random(o.seed)
    check, ort = Asker(ask_checker), Asker(ask_ort)
    good = []
    for path in find(o.models):
        m = load(path)
        if m is not None:
            good.append((os.path.basename(os.path.dirname(path)) + "/" + os.path.basename(path), m))
    good.append(("function", function_model()))
    n = 0
    with open(os.path.join(o.out, "index.tsv"), "w") as index:
        for kind, f in KINDS.items():
            pool = [p for p in good if p[1].functions] if kind.startswith("function_") else list(good)
            if kind.startswith(("subgraph_", "inner_")):
                pool = [p for p in good if any(True for g in list(judge.graphs(p[1].graph))[1:])]
            made, tries = 0, 0
            while made < o.per_kind and tries < 40 * o.per_kind and pool:
                tries += 1
                name, m = rng.choice(pool)
                before, m = m.SerializeToString(deterministic=True), copy.deepcopy(m)
                if f(m, rng) is False:
                    continue
                b = m.SerializeToString(deterministic=True)
                if b == before:
                    continue
                path = os.path.join(o.out, f"{n:04d}.onnx")
                with open(path, "wb") as w:
                    w.write(b)
                says = [check(path), "" if o.no_ort else ort(path)]
                index.write("\t".join([os.path.basename(path), kind, name] + says) + "\n")
                made, n = made + 1, n + 1
    print(f"{len(good)} valid models, {len(KINDS)} kinds of damage, {n} damaged models", file=sys.stderr)


if __name__ == "__main__":
    main()
