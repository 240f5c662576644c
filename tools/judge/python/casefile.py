"""Writes a program of PyTorch, with its inputs and what it gives for them, as a test case.

    casefile.write(folder, "int64_sum", module, [(x,), (longer_x,)], script=False)

What a case is on disk stands in tools/lib/cases/cases.go. A program that cannot be a case raises Skip with the reason: random
results, sparse tensors, what is larger than LARGEST elements.
"""
import copy
import itertools
import json
import linecache
import math
import os
import shutil
import sys
import tempfile
import textwrap
import types
import typing
import warnings

import torch
from torch.utils import _pytree as pytree

LARGEST = 20_000  # elements of all inputs, or of all outputs

# PyTorch's type: its name in --input, its number in TensorProto, its name in case.json
TYPES = {
    torch.float32: ("f32", 1, "float32"), torch.uint8: ("u8", 2, "uint8"), torch.int8: ("i8", 3, "int8"), torch.int16: ("i16", 5, "int16"),
    torch.int32: ("i32", 6, "int32"), torch.int64: ("i64", 7, "int64"), torch.bool: ("bool", 9, "bool"), torch.float16: ("f16", 10, "float16"),
    torch.float64: ("f64", 11, "float64"), torch.bfloat16: ("bf16", 16, "bfloat16"),
}
# |got - want| <= absolute + relative |want|, by the coarsest type of floats in a program
TOLERANCES = {torch.bfloat16: (1.6e-2, 1e-2), torch.float16: (2e-3, 1e-3), torch.float32: (1e-3, 1e-5), torch.float64: (1e-3, 1e-5)}


# what programs in text may name
SCOPE = dict(torch=torch, nn=torch.nn, F=torch.nn.functional, math=math, Tensor=torch.Tensor,
             **{n: getattr(typing, n) for n in ("Any", "Dict", "List", "NamedTuple", "Optional", "Tuple", "Union")})
_count = itertools.count()


class Skip(Exception):
    """Why a program is no case."""


def source(text, file="", **values):
    """The names that a text of Python defines. It is made a module with lines to read, as TorchScript wants of what it compiles, in a file that is only a name."""
    text = textwrap.dedent(text).strip("\n") + "\n"
    number = next(_count)
    module = types.ModuleType(file.removesuffix(".py") or f"program_{number}")
    module.__file__ = file or f"<program {number}>"
    linecache.cache[module.__file__] = (len(text), None, text.splitlines(True), module.__file__)
    module.__dict__.update(SCOPE, **values)
    sys.modules[module.__name__] = module
    exec(compile(text, module.__file__, "exec"), module.__dict__)
    return module.__dict__


def module_of(signature, body, **values):
    """A module with the forward that the lines of body are."""
    forward = source(f"def forward(self, {signature}):\n" + textwrap.indent(body, "    "), **values)["forward"]
    return type("Case", (torch.nn.Module,), {"forward": forward, "__module__": forward.__module__})()


def varint(n):
    out = b""
    while n > 0x7F:
        out += bytes([n & 0x7F | 0x80])
        n >>= 7
    return out + bytes([n])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def tensor_proto(t, name):
    """The bytes of an onnx.TensorProto: dims, data_type, name, raw_data."""
    raw = t.detach().cpu().reshape(-1).clone(memory_format=torch.contiguous_format).view(torch.uint8) if t.numel() else torch.empty(0, dtype=torch.uint8)
    return (b"".join(varint(1 << 3) + varint(n) for n in t.shape) + varint(2 << 3) + varint(TYPES[t.dtype][1])
            + field(8, name.encode()) + field(9, bytes(raw.tolist())))


def record(folder, names, inputs, outputs):
    """Writes the inputs and outputs of a data set: input_0.pb and so on, output_0.pb and so on."""
    for what, values, called in (("input", inputs, names), ("output", outputs, ["output"] * len(outputs))):
        for i, (name, v) in enumerate(zip(called, values)):
            with open(os.path.join(folder, f"{what}_{i}.pb"), "wb") as f:
                f.write(tensor_proto(as_tensor(v), name))


def as_tensor(v):
    """A leaf of inputs or outputs as a tensor."""
    if isinstance(v, torch.Tensor):
        if v.layout != torch.strided or v.is_quantized:
            raise Skip("a sparse or quantized tensor")
        if v.dtype not in TYPES:
            raise Skip(f"a tensor of {v.dtype}")
        return v.detach().resolve_conj().resolve_neg()
    if isinstance(v, bool):
        return torch.tensor(v)
    if isinstance(v, int):
        return torch.tensor(v, dtype=torch.int64)
    if isinstance(v, float):
        return torch.tensor(v, dtype=torch.float64)
    raise Skip(f"a {type(v).__name__}")


def leaves(values):
    """The tensors and numbers in nested containers, depth first; None has none."""
    return [v for v in pytree.tree_flatten(values)[0] if v is not None]


def kind(v):
    return "tensor" if isinstance(v, torch.Tensor) else type(v).__name__


def copies(values):
    return tuple(v.clone() if isinstance(v, torch.Tensor) else v for v in values)


def about(name, v):
    t = as_tensor(v)
    return {"name": name, "kind": kind(v), "dtype": TYPES[t.dtype][2], "shape": list(t.shape)}


def equal(a, b):
    """The same to the last bit, or both NaN."""
    a, b = [as_tensor(v) for v in leaves(a)], [as_tensor(v) for v in leaves(b)]
    return len(a) == len(b) and all(x.dtype == y.dtype and x.shape == y.shape and torch.equal(torch.nan_to_num(x.double()), torch.nan_to_num(y.double()))
                                    and torch.equal(x.isnan(), y.isnan()) for x, y in zip(a, b))


def close(a, b, tolerance):
    a, b = [as_tensor(v) for v in leaves(a)], [as_tensor(v) for v in leaves(b)]
    return len(a) == len(b) and all(x.dtype == y.dtype and x.shape == y.shape and torch.allclose(x.double(), y.double(), *tolerance, equal_nan=True)
                                    for x, y in zip(a, b))


# GRADIENTS is set for programs that ask for gradients themselves.
GRADIENTS = False


def run(program, values, seed):
    torch.manual_seed(seed)
    with torch.set_grad_enabled(GRADIENTS):
        return program(*copies(values))


def first_line(e):
    return f"{type(e).__name__}: {(str(e).strip() or '.').splitlines()[0][:150]}"


def archive(module, first, script):
    """The module scripted, or traced with the first inputs."""
    try:
        if script:
            return torch.jit.script(module)
        with torch.no_grad():
            return torch.jit.trace(module, copies(first), check_trace=False, strict=False)
    except Exception as e:
        raise Skip("TorchScript: " + first_line(e))


def exported(module, sets, names, dynamic):
    """The module by torch.export. Sizes that differ between the data sets are dynamic; those of dynamic, axes by name, are where the program allows it."""
    first = sets[0]
    shapes = {}
    for k, (name, v) in enumerate(zip(names, first)):
        if isinstance(v, torch.Tensor):
            shapes[name] = {int(i): torch.export.Dim.AUTO for i in dynamic.get(name, ())} | {
                i: torch.export.Dim.DYNAMIC for s in sets[1:] for i in range(v.dim()) if s[k].shape[i] != v.shape[i]} or None
        else:
            shapes[name] = None
    if any(not isinstance(v, torch.Tensor) for v in first):
        raise Skip("torch.export builds numbers in")
    try:
        with torch.no_grad():
            program = torch.export.export(module, copies(first), dynamic_shapes=tuple(shapes.values()))
    except Exception as e:
        raise Skip("torch.export: " + first_line(e))
    return program


def write(folder, id, module, sets, *, script=False, suite="cases", op="", opset=17, tolerance=None, atol_of_max=0.0, largest=LARGEST,
          pt2=False, dynamic=None):
    """Writes the case folder/suite/id.trace (or .script) and gives its path. Sets are the inputs of each data set: tensors and numbers. Axes whose sizes
    differ between them are dynamic; dynamic has more of them, a list of axes for each input."""
    variant = "script" if script else "trace"
    id = f"{id}.{variant}"
    parent = os.path.join(folder, suite)
    os.makedirs(parent, exist_ok=True)
    work = tempfile.mkdtemp(prefix=".making-", dir=parent)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            case = make(work, module, [tuple(s) for s in sets], script, tolerance, largest, pt2, dynamic or [()] * len(sets[0]))
        case.update(atol_of_max=atol_of_max, id=id, suite=suite, op=op or id, variant=variant, opset=opset, torch=torch.__version__)
        with open(os.path.join(work, "case.json"), "w") as f:
            json.dump(case, f, indent=1, sort_keys=True)
        path = os.path.join(parent, id)
        shutil.rmtree(path, ignore_errors=True)
        os.rename(work, path)
        return path
    finally:
        shutil.rmtree(work, ignore_errors=True)


def make(work, module, sets, script, tolerance, largest, pt2, dynamic):
    module.train(False)
    if sum(as_tensor(v).numel() for v in sets[0]) > largest:
        raise Skip("large")
    saved = os.path.join(work, "model.pt")
    try:
        eager = copy.deepcopy(module)  # tracing runs the program, which may change its state
    except Exception:
        eager = module
    program = archive(module, sets[0], script)
    names = [a.name for a in program.forward.schema.arguments][1:]
    if len(names) != len(sets[0]):
        raise Skip("an argument that tracing drops")
    try:
        torch.jit.save(program, saved)
    except Exception as e:
        raise Skip("torch.jit.save: " + first_line(e))
    floats = [v.dtype for v in leaves(sets[0]) if isinstance(v, torch.Tensor) and v.dtype in TOLERANCES]
    axes = {n: {str(i): f"{n}_{i}" for i in d} for n, d in zip(names, dynamic) if d}
    stated = dict(axes)
    data_sets, results = [], []
    for number, values in enumerate(sets):
        try:
            got, again = run(torch.jit.load(saved), values, 1), run(torch.jit.load(saved), values, 2)
            if not equal(got, again):
                raise Skip("random")
            floats += [v.dtype for v in leaves(got) if isinstance(v, torch.Tensor) and v.dtype in TOLERANCES]
            rtol, atol = tolerance or max((TOLERANCES[d] for d in floats), default=TOLERANCES[torch.float32])
        except Skip:
            if number:
                continue
            raise
        except Exception as e:
            if number:  # built in by tracing: the case has one size
                continue
            raise Skip("PyTorch: " + first_line(e))
        outputs = leaves(got)
        if not outputs:
            raise Skip("no output")
        if sum(as_tensor(v).numel() for v in outputs) > largest:
            raise Skip("large")
        if number:
            for name, a, b in zip(names, sets[0], values):
                if isinstance(a, torch.Tensor) and a.shape != b.shape:
                    axes[name] = axes.get(name, {}) | {str(i): f"{name}_{i}" for i in range(a.dim()) if a.shape[i] != b.shape[i]}
        d = f"test_data_set_{number}"
        os.mkdir(os.path.join(work, d))
        record(os.path.join(work, d), names, values, outputs)
        data_sets.append({"dir": d, "args": [{kind(v): i} for i, v in enumerate(values)], "inputs": [about(n, v) for n, v in zip(names, values)],
                          "outputs": [about("output", v) for v in outputs]})
        results.append((number, values, got))
        try:  # the archive is the program; what tracing builds in makes it another one than the module
            data_sets[-1]["eager_agrees"] = close(got, run(copy.deepcopy(eager), values, 1), (rtol, atol))
        except Exception:
            data_sets[-1]["eager_agrees"] = None
    spec = [f"{n}:{TYPES[v.dtype][0]}[{','.join(map(str, v.shape))}]" if isinstance(v, torch.Tensor) else f"{n}:{kind(v)}"
            for n, v in zip(names, sets[0])]
    first = as_tensor(sets[0][0]) if sets[0] else as_tensor(leaves(results[0][2])[0])
    case = {"dtype": TYPES[first.dtype][2], "rtol": rtol, "atol": atol, "training": False, "seed": 0, "arguments": names,
            "inputs": data_sets[0]["inputs"], "outputs": data_sets[0]["outputs"], "input_specs": spec, "input_spec": ";".join(spec),
            "dynamic_axes": axes, "data_sets": data_sets}
    if pt2:
        try:
            whole = exported(eager, [s for n, s, _ in results], names, stated)
            takes = [k for k, (_, s, want) in enumerate(results) if close(want, run(whole.module(), s, 1), (rtol, atol))]
            torch.export.save(whole, os.path.join(work, "model.pt2"))
            case.update(pt2=True, pt2_data_sets=takes)
        except Exception as e:
            case.update(pt2=False, pt2_skipped=first_line(e))
    return case
