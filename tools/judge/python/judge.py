"""Whether ONNX models are right: what the scripts of tools that ask onnxruntime share.

    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../judge/python"))
    import judge  # noqa: E402

It has exports by aton, sessions, feeds, runs, comparisons, the nodes of a model, and the tensors that are recorded with a case. A script that adds
this folder to its path finds this module, its test and casefile.py there, and nothing else. casefile.py needs PyTorch and no
ONNX, this module numpy, ml_dtypes, onnx and onnxruntime, and no PyTorch. Each release of tools/judge/follow/versions.tsv will do; the oldest ones take no inputs of
the types that numpy lacks.
"""
import collections
import ctypes
import glob
import math
import os
import re
import subprocess
import time

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper

ort.set_default_logger_severity(4)  # an error is an exception, and need not be printed as well

# the element types that numpy lacks: onnxruntime's name, the number in TensorProto, bits of an element, the name in ml_dtypes; old releases of that have fewer
LACKING = {row[0]: row for row in (
    ("bfloat16", 16, 16, "bfloat16"), ("float8e4m3fn", 17, 8, "float8_e4m3fn"), ("float8e4m3fnuz", 18, 8, "float8_e4m3fnuz"), ("float8e5m2", 19, 8, "float8_e5m2"),
    ("float8e5m2fnuz", 20, 8, "float8_e5m2fnuz"), ("float8e8m0", 24, 8, "float8_e8m0fnu"), ("uint4", 21, 4, "uint4"), ("int4", 22, 4, "int4"),
    ("float4e2m1", 23, 4, "float4_e2m1fn"), ("uint2", 25, 2, "uint2"), ("int2", 26, 2, "int2")) if hasattr(ml_dtypes, row[3])}
OF_NUMPY = {"float": "float32", "double": "float64", "string": "object"}  # where onnxruntime has another name
# what aton export --input calls an element type that numpy and PyTorch call so
SPEC = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8", "uint8": "u8",
        "bool": "bool", "complex64": "c64"}
STRINGS = "OUS"  # the kinds of numpy's types that hold text: objects, and text of a fixed length
TINY = 1e-30  # in place of 0, by which nothing can be divided


# exports

class Refused(Exception):
    """A command that failed. Its text is the first line of the error; stderr is all that it printed there, status its exit status or None if it took too long."""

    def __init__(self, line, stderr="", status=None):
        super().__init__(line)
        self.stderr, self.status = stderr, status


def first_error(stderr):
    """The first line of what a command printed that is an error; else the first one that is no part of a warning or note, or the last one of a traceback of Python."""
    lines = [line for line in stderr.splitlines() if line.strip() and not line.startswith((" ", "warning", "note"))]
    errors = [line for line in lines if line.startswith("error")] or lines or [""]
    return errors[-1 if errors[0].startswith("Traceback") else 0].strip()


def command(words, seconds=600):
    """Runs a command, and returns the seconds that it took. It raises Refused if the command fails or takes longer."""
    began = time.time()
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Refused(f"it takes more than {seconds:g} s") from None
    took = time.time() - began
    if done.returncode:
        raise Refused(first_error(done.stderr) or f"exit status {done.returncode}", done.stderr, done.returncode)
    return took


def export(aton, model, output, *options, opset=None, seconds=600):
    """Exports a model by the command aton, and returns the seconds that it took. It raises Refused, with the line without the model's folder."""
    try:
        return command([aton, "export", model, "-o", output, *(["--opset", str(opset)] if opset else []), *options], seconds)
    except Refused as e:
        folder = os.path.dirname(model)
        raise Refused(str(e).replace(folder + os.sep, "") if folder else str(e), e.stderr, e.status) from None


def spec(dtype, sizes):
    """The type of a tensor as aton export --input takes it behind the name: f32[N,3]. Sizes are numbers and names."""
    return f"{SPEC[str(dtype).removeprefix('torch.')]}[{','.join(map(str, sizes))}]"


# values

def dtype(type):
    """The numpy type of the elements of an onnxruntime type: float32 of tensor(float), ml_dtypes' bfloat16 of tensor(bfloat16)."""
    name = re.sub(r"^.*\(|\)+$", "", type)
    return np.dtype(getattr(ml_dtypes, LACKING[name][3])) if name in LACKING else np.dtype(OF_NUMPY.get(name, name))


def lacking(dtype):
    """The row of LACKING of a numpy type, or None."""
    return next((row for row in LACKING.values() if row[3] == np.dtype(dtype).name), None)


def from_bits(data, shape, row):
    """The array of a type that numpy lacks, from its bytes. A byte holds as many elements as it has room for, the first one in its lowest bits."""
    bits = np.frombuffer(bytearray(data), np.uint8)
    if row[2] < 8:
        places = np.arange(0, 8, row[2], dtype=np.uint8)
        bits = (bits[:, None] >> places & (1 << row[2]) - 1).reshape(-1)[:math.prod(shape)]
    return bits.view(getattr(ml_dtypes, row[3])).reshape(shape)


def array(value):
    """A value as an array: of numpy, of PyTorch, of onnxruntime, or a TensorProto. Types that numpy lacks are those of ml_dtypes; None stays None."""
    if value is None or isinstance(value, np.ndarray):
        return value
    if isinstance(value, ort.OrtValue):
        if not value.has_value():
            return None
        row, shape = LACKING.get(value.data_type()[len("tensor("):-1]), tuple(value.shape())
        if row is None:
            return value.numpy()
        size = -(-math.prod(shape) * row[2] // 8)
        return from_bits(ctypes.string_at(value.data_ptr(), size) if size else b"", shape, row)
    if isinstance(value, onnx.TensorProto):
        row = next((r for r in LACKING.values() if r[1] == value.data_type), None)
        if row and value.HasField("raw_data"):
            return from_bits(value.raw_data, tuple(value.dims), row)
        return numpy_helper.to_array(value)
    if hasattr(value, "detach"):  # a tensor of PyTorch
        value = value.detach().cpu().resolve_conj().resolve_neg()
        row = next((r for r in LACKING.values() if str(value.dtype) == "torch." + r[3]), None)
        if row is None:
            return value.numpy()
        import torch

        integers = {16: torch.int16, 8: torch.int8}[row[2]]
        return value.contiguous().view(integers).numpy().view(getattr(ml_dtypes, row[3]))
    return np.asarray(value)


def recorded(folder, what):
    """The recorded inputs or outputs of a data set, in order: their names and values.

    what_0.pb is a TensorProto, a folder what_0.seq has a file for each element of a sequence, what_0.none stands for an optional without a value.
    """
    def read(path):
        if os.path.exists(path + ".none"):
            return "", None
        if os.path.isdir(path + ".seq"):
            return "", [read(p[:-3])[1] for p in sorted(glob.glob(glob.escape(path) + ".seq/*.pb"))]
        with open(path + ".pb", "rb") as f:
            t = onnx.TensorProto.FromString(f.read())
        return t.name, array(t)

    out = []
    while any(os.path.exists(os.path.join(folder, f"{what}_{len(out)}{end}")) for end in (".pb", ".seq", ".none")):
        out.append(read(os.path.join(folder, f"{what}_{len(out)}")))
    return out


def record(path, value):
    """Writes a value as recorded reads it: an array, a TensorProto, a list of them, or None."""
    if value is None:
        open(path + ".none", "w").close()
    elif isinstance(value, (list, tuple)):
        if any(v is None or isinstance(v, (list, tuple)) for v in value):
            raise ValueError(f"{path}: a sequence of what is no array")
        os.makedirs(path + ".seq", exist_ok=True)
        for i, v in enumerate(value):
            record(f"{path}.seq/{i:04d}", v)
    else:
        with open(path + ".pb", "wb") as f:
            f.write((value if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(np.asarray(value))).SerializeToString())


# sessions

def session(model, *, optimized=True, threads=0):
    """A session on the CPU of a path, bytes or a ModelProto: with or without onnxruntime's own optimizations, and as many threads as it likes for 0."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    if not optimized:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    if isinstance(model, onnx.ModelProto):
        model = model.SerializeToString()
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def fed(value):
    """A value as a session takes it: arrays of types that numpy lacks go by their bits."""
    if value is None or isinstance(value, (list, tuple)):
        return value if value is None else [fed(v) for v in value]
    value = array(value)
    row = lacking(value.dtype)
    if row is None:
        return np.asarray(value, order="C")
    bits = np.ascontiguousarray(value).reshape(value.shape).view(np.uint16 if row[2] == 16 else np.uint8)
    if row[2] < 8:  # onnxruntime takes the shape from this array, and reads the part of it that the elements need
        flat, packed, each = bits.reshape(-1) & (1 << row[2]) - 1, np.zeros(bits.size, np.uint8), 8 // row[2]
        for k in range(each):
            part = flat[k::each]
            packed[:len(part)] |= part << k * row[2]
        bits = packed.reshape(bits.shape)
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, row[1])


def feeds(session, values):
    """The feeds of a session. The values of a dict go by name, and it may have more than the session wants; those of a list go by position."""
    wanted = [i.name for i in session.get_inputs()]
    if not isinstance(values, dict):
        if len(values) != len(wanted):
            raise ValueError(f"{len(values)} inputs for {wanted}")
        values = dict(zip(wanted, values))
    if not set(wanted) <= set(values):
        raise ValueError(f"inputs {list(values)} for {wanted}")
    return {name: fed(values[name]) for name in wanted}


def run(session, values):
    """What a session gives for values (as feeds takes them): arrays, and lists of them for sequences, None for an optional without a value."""
    given = feeds(session, values)
    if any(re.sub(r"^.*\(|\)+$", "", o.type) in LACKING for o in session.get_outputs()):
        given = {n: v if isinstance(v, ort.OrtValue) else ort.OrtValue.ortvalue_from_numpy(v) for n, v in given.items()}
        return [array(v) for v in session.run_with_ort_values(None, given)]
    return session.run(None, given)


# comparisons

def greatest(a):
    """The greatest absolute value of the finite elements, 0 where there are none."""
    a = widened(a)
    return float(np.abs(a[np.isfinite(a)]).max(initial=0.0))


def widened(a):
    return a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)


def other_form(got, want):
    """How the type or the shape of an array is another one, as text."""
    if got.dtype != want.dtype and not {got.dtype.kind, want.dtype.kind} <= set(STRINGS):
        return f"type {got.dtype}, not {want.dtype}"
    if got.shape != want.shape:
        return f"shape {list(got.shape)}, not {list(want.shape)}"
    return ""


def differ(got, want, rtol=0.0, atol=0.0, *, of_greatest=0.0, equal_nan=True):
    """Why a value is not the one that is wanted, as text; no text if it is.

    Types and shapes must be the same; a float of Python is of type float32 or float64. Floats and complex numbers may differ by atol + rtol |want| + of_greatest * greatest(want), NaN is equal to NaN unless
    equal_nan is False; what has other elements, and floats of 8 bits, must be equal. Lists are compared element by element.
    """
    if want is None or got is None:
        return "" if want is got else f"{'no value' if got is None else 'a value'}, not {'none' if want is None else 'a value'}"
    if isinstance(want, (list, tuple)):
        if not isinstance(got, (list, tuple)) or len(got) != len(want):
            return f"{len(got) if isinstance(got, (list, tuple)) else 'no list'} elements, not {len(want)}"
        said = (differ(g, w, rtol, atol, of_greatest=of_greatest, equal_nan=equal_nan) for g, w in zip(got, want))
        return next((f"element {i}: {why}" for i, why in enumerate(said) if why), "")
    if isinstance(got, (list, tuple)):
        return f"a list of {len(got)}, not an array"
    got = array(got)
    want = np.asarray(want, got.dtype) if type(want) is float and got.dtype in (np.float32, np.float64) else array(want)
    if why := other_form(got, want):
        return why
    if want.dtype.kind in STRINGS:
        bad = [str(g) != str(w) for g, w in zip(got.ravel(), want.ravel())]
        return f"{sum(bad)} of {want.size} strings differ" if any(bad) else ""
    if want.dtype.kind in "biu" or want.dtype.itemsize == 1:
        if want.dtype.itemsize == 1:
            got, want = (np.ascontiguousarray(a).view(np.uint8) for a in (got, want))
        n = int(np.count_nonzero(got != want))
        return f"{n} of {want.size} elements differ" if n else ""
    got, want = widened(got), widened(want)
    with np.errstate(all="ignore"):
        bad = ~np.isclose(got, want, rtol=rtol, atol=atol + of_greatest * greatest(want), equal_nan=equal_nan)
        if not bad.any():
            return ""
        return f"{int(bad.sum())} of {want.size} elements differ, by up to {np.fmax.reduce(np.abs(got - want).ravel()):.3g}"


def wrong(got, want, rtol=0.0, atol=0.0, **how):
    """Which of a model's outputs is wrong, and why (see differ), as text; no text if none is."""
    if len(got) != len(want):
        return f"{len(got)} outputs, not {len(want)}"
    return next((f"output {i}: {why}" for i, (g, w) in enumerate(zip(got, want)) if (why := differ(g, w, rtol, atol, **how))), "")


def distance(got, want, of=None):
    """The greatest difference of two arrays, in parts of a number, which is greatest(want) if it is not given. It is infinite where types, shapes, NaNs or infinities differ."""
    got, want = array(got), array(want)
    if other_form(got, want):
        return math.inf
    got, want = widened(got), widened(want)
    finite = np.isfinite(want)
    if not np.array_equal(got[~finite], want[~finite], equal_nan=True) or not np.isfinite(got[finite]).all():
        return math.inf
    return float(np.abs(got[finite] - want[finite]).max(initial=0.0) / ((greatest(want) if of is None else of) or TINY))


# models

def loaded(model):
    """A model from a path, without what lies in other files; a ModelProto as it is."""
    return model if isinstance(model, onnx.ModelProto) else onnx.load(model, load_external_data=False)


def nested(node):
    """The graphs that a node has."""
    return [g for a in node.attribute for g in ([a.g] if a.type == onnx.AttributeProto.GRAPH else a.graphs)]


def graphs(graph):
    """A graph and those that its nodes have."""
    yield graph
    for n in graph.node:
        for g in nested(n):
            yield from graphs(g)


def nodes(graph):
    """The nodes of a graph or of a function in order, those of nested graphs behind the node that has them."""
    for n in graph.node:
        yield n
        for g in nested(n):
            yield from nodes(g)


def operators(model, constants=True):
    """How many nodes of each operator a model has, those of nested graphs too; a call of one of its functions counts as the nodes of the function."""
    model = loaded(model)
    bodies, known = {(f.domain, f.name): f for f in model.functions}, {}

    def counted(graph):
        count = collections.Counter()
        for n in nodes(graph):
            at = n.domain, n.op_type
            if at in bodies and at not in known:
                known[at] = counted(bodies[at])
            count.update(known.get(at, [n.op_type]))
        return count

    count = counted(model.graph)
    if not constants:
        del count["Constant"]
    return count
