"""What users wrote for torch.onnx's exporters, as rules: symbolic functions (register_custom_op_symbolic, and the `symbolic` of a torch.autograd.Function),
functions of custom_translation_table, and the operators of torch.onnx.ops.symbolic. Such a function makes ONNX operators for one call; it is run for each call
that the model has, and what it makes is the rule for calls with the same constants."""
import contextlib
import dataclasses
import functools
import importlib
import inspect
import itertools
import os
import tempfile
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ._errors import ArgumentError, Diagnostic, ExportError
from ._inputs import element_types, quote
from ._rules import _PYTORCH

_OPSET = 20


class Symbolics:
    """Collects the rules of one export."""

    def __init__(self, table: Optional[Mapping[Any, Any]], opset: Optional[int]):
        self._table = dict(table or {})
        for key, function in self._table.items():
            if not callable(function):
                raise TypeError(f"custom_translation_table: the value for {key} is a single function")
            if not hasattr(key, "_schema") and not hasattr(key, "overloads"):
                raise ArgumentError("custom_translation_table", f"custom_translation_table: {key} is no operator such as torch.ops.aten.add.Tensor")
        self._opset = opset or _OPSET
        self._texts: List[str] = []
        #: sizes are stated only where none is dynamic
        self.dynamic = False

    @contextlib.contextmanager
    def flags(self) -> Iterator[List[str]]:
        """The flags for the rules."""
        if not self._texts:
            yield []
            return
        with tempfile.TemporaryDirectory(prefix="aton-") as folder:
            path = os.path.join(folder, "symbolics.rules")
            first = ("declare ", "domain ")  # stand once
            lines = [line for text in self._texts for line in text.splitlines()]
            declared = list(dict.fromkeys(line for line in lines if line.startswith(first)))
            rules = [line for line in lines if not line.startswith(first)]
            with open(path, "w", encoding="utf-8") as f:
                f.write("\n".join([*declared, *rules]) + "\n")
            yield ["--rules", path]

    def of_trace(self, module: Any) -> None:
        """Makes rules for the calls of a trace or a script."""
        self._texts = []
        for node in module.inlined_graph.nodes():
            function = _FUNCTIONS.get(node.kind()) or _registered(node.kind(), self._opset)
            if function is not None:
                self._add(_Call.of_node(node), functools.partial(_by_symbolic, function, self._opset))

    def of_program(self, exported: Any) -> None:
        """Makes rules for the calls of a program."""
        self._texts = []
        for module in exported.graph_module.modules():
            for node in getattr(module, "graph", _NO_NODES).nodes:
                if node.op != "call_function" or not hasattr(node.target, "_schema"):
                    continue
                name = node.target._schema.name
                table = self._table.get(node.target) or self._table.get(getattr(node.target, "overloadpacket", None))
                if table is not None:
                    self._add(_Call.of_fx(node), functools.partial(_by_onnxscript, table, self._opset))
                elif name.startswith("onnx_symbolic::_symbolic"):
                    self._add(_Call.of_fx(node), functools.partial(_as_it_says, node))
                elif _registered(name, self._opset) is not None and name.partition("::")[0] not in ("aten", "prim"):
                    self._add(_Call.of_fx(node, every=True), functools.partial(_by_symbolic, _registered(name, self._opset), self._opset))

    def _add(self, call: "_Call", make: Callable[["_Call"], "_Made"]) -> None:
        """Makes the rule of one call."""
        try:
            made = make(call)
        except ExportError:
            raise
        except Exception as e:
            raise ExportError([Diagnostic("symbolic", "error", f"the function for {call.name} fails: {type(e).__name__}: {str(e).strip().splitlines()[0] if str(e).strip() else ''}",
                                          op=call.name)]) from None
        text = made.rule(call, len(self._texts), self.dynamic)
        if text.partition("\n  from")[2] not in [t.partition("\n  from")[2] for t in self._texts]:
            self._texts.append(text)


class _Nothing:
    nodes: Tuple[Any, ...] = ()


_NO_NODES = _Nothing()

#: the symbolics of functions of torch.autograd, by the operators that stand for their calls in a trace
_FUNCTIONS: Dict[str, Any] = {}


def _registered(name: str, opset: int) -> Any:
    """The symbolic function that somebody registered for an operator, None if nobody did."""
    for module in ("torch.onnx._internal.torchscript_exporter.registration", "torch.onnx._internal.registration"):
        try:
            registry = importlib.import_module(module).registry
        except (ImportError, AttributeError):
            continue
        group = registry.get_function_group(name)
        overrides = getattr(getattr(group, "_functions", None), "_overrides", None) or {}
        function = group.get(opset) if overrides and group is not None else None
        return function if function is not None and function in overrides.values() else None
    return None


@dataclasses.dataclass
class _Tensor:
    """A tensor among the arguments of a call, or a result."""

    dtype: Any
    sizes: Optional[List[int]]

    def type(self, dynamic: bool) -> str:
        known = element_types().get(self.dtype, "f32")
        if self.sizes is None:
            return f"{known}[...]"
        return f"{known}[{', '.join('?' if dynamic or not isinstance(s, int) else str(s) for s in self.sizes)}]"


@dataclasses.dataclass
class _Call:
    """One call of an operator: its arguments are tensors, lists of them, and constants."""

    name: str
    schema: str
    args: List[Any]
    kwargs: Dict[str, Any]
    results: List[_Tensor]
    original: Any = None

    @classmethod
    def of_node(cls, node: Any) -> "_Call":
        """A call in a graph of TorchScript."""
        args = [_of_value(v) for v in node.inputs()]
        return cls(node.kind(), node.schema(), args, {}, [_of_type(o.type()) for o in node.outputs()], node)

    @classmethod
    def of_fx(cls, node: Any, every: bool = False) -> "_Call":
        """A call in a program of torch.export, with every argument of its declaration or with those that are given."""
        args, kwargs = list(node.args), dict(node.kwargs)
        if every:
            declared = node.target._schema.arguments
            args = [args[i] if i < len(args) else kwargs.get(a.name, a.default_value if a.has_default_value() else None) for i, a in enumerate(declared)]
            kwargs = {}
        value = node.meta.get("val")
        results = [_of_fake(v) for v in (value if isinstance(value, (list, tuple)) else [value])]
        return cls(node.target._schema.name, str(node.target._schema), [_of_argument(a) for a in args], {k: _of_argument(a) for k, a in kwargs.items()}, results)


def _of_value(value: Any) -> Any:
    node = value.node()
    if node.kind() == "prim::ListConstruct" and any("Tensor" in str(i.type()) for i in node.inputs()):
        return [_of_value(i) for i in node.inputs()]
    known = value.toIValue()
    if node.kind() == "prim::ListConstruct":
        known = [i.toIValue() for i in node.inputs()]
        if None in known:
            return _Tensor(None, None)
    elif known is None and "NoneType" not in str(value.type()):
        return _of_type(value.type())
    return known if not hasattr(known, "shape") else _of_type(value.type())


def _of_type(kind: Any) -> _Tensor:
    sizes = kind.sizes() if hasattr(kind, "sizes") else None
    return _Tensor(kind.dtype() if hasattr(kind, "dtype") else None, sizes)


def _of_argument(a: Any) -> Any:
    if hasattr(a, "meta"):
        return _of_fake(a.meta.get("val"))
    return [_of_argument(v) for v in a] if isinstance(a, (list, tuple)) else a


def _of_fake(value: Any) -> _Tensor:
    return _Tensor(getattr(value, "dtype", None), list(value.shape) if hasattr(value, "shape") else None)


@dataclasses.dataclass
class _Made:
    """The nodes that a function makes for a call."""

    nodes: List[Any]
    #: the operands by name that are the call's tensors
    inputs: List[str]
    outputs: List[str]
    constants: Dict[str, Any]
    types: Dict[str, _Tensor]
    opset: int
    #: versions of domains
    domains: Dict[str, int] = dataclasses.field(default_factory=dict)
    #: sizes among the arguments are none of the operands
    sizes_aside: bool = False

    def rule(self, call: _Call, number: int, dynamic: bool) -> str:
        """The rule, in the language of docs/rules.md."""
        self._newest(call)
        names, sizes = iter(self.inputs), itertools.count()

        def argument(a: Any) -> str:
            if isinstance(a, _Tensor):
                return f"%size{next(sizes)}" if a.dtype is None and self.sizes_aside else "%" + next(names)
            if isinstance(a, list) and any(isinstance(v, _Tensor) for v in a):
                return "[" + ", ".join(argument(v) for v in a) + "]"
            return _literal(a)

        arguments = [argument(a) for a in call.args] + [f"{k}={argument(a)}" for k, a in call.kwargs.items()]
        results = [f"r{number}_{i}" for i in range(len(self.outputs))]
        lines = [] if call.name.partition("::")[0] in _PYTORCH else [f"declare {call.schema}"]
        lines += [f"domain {d} {v}" for d, v in self.domains.items()]
        listed = call.schema.rstrip().endswith("-> Tensor[]")
        looked = f"%r{number}" if listed else ", ".join("%" + r for r in results)
        lines += [f"rule symbolic-{number}", "  from", f"    {looked} = {call.name}({', '.join(arguments)})", "  to"]
        renamed = dict(zip(self.outputs, results))
        final = dict(zip(self.outputs, call.results))

        def operand(name: str) -> str:
            if name in self.constants:
                return _constant(self.constants[name])
            return "%" + renamed.get(name, name) if name else "_"

        tensors = [a for v in [*call.args, *call.kwargs.values()] for a in (v if isinstance(v, list) else [v]) if isinstance(a, _Tensor) and a.sizes is not None]

        def stated_as(t: _Tensor) -> str:
            """A type: that of an operand, where the sizes are the same symbols."""
            if dynamic and t.sizes is not None and any(not isinstance(s, int) for s in t.sizes):
                same = [n for n, a in zip(self.inputs, tensors) if a.dtype == t.dtype and str(a.sizes) == str(t.sizes)]
                return "%" + same[0] if same else t.type(dynamic)
            return t.type(dynamic)

        for node in self.nodes:
            out = []
            for o in node.output:
                known = self.types.get(o) or (final.get(o) if node.domain else None)
                stated = f" : {stated_as(known)}" if node.domain and known and known.dtype is not None else " : f32[...]" if node.domain else ""
                out.append(f"%{renamed.get(o, o)}{stated}")
            attributes = ", ".join(f"{a.name}={_attribute(a)}" for a in node.attribute)
            operands = [operand(i) for i in node.input]
            lines.append(f"    {', '.join(out)} = {node.domain or 'onnx'}::{node.op_type}" + (f"[{attributes}]" if attributes else "") + f"({', '.join(operands)})")
        made = {o for n in self.nodes for o in n.output}
        lines += [f"    %{r} = {operand(o) if o in self.constants else '%' + o}" for o, r in renamed.items() if o not in made]
        if listed:
            lines.append(f"    {looked} = [{', '.join('%' + r for r in results)}]")
        return "\n".join(lines) + "\n"

    def _newest(self, call: _Call) -> None:
        """Brings the nodes to the newest opset, in whose form rules are."""
        import onnx
        from onnx import helper, version_converter

        newest = onnx.defs.onnx_opset_version()

        def since(op: str, version: int) -> int:
            try:
                return int(onnx.defs.get_schema(op, version).since_version)
            except onnx.defs.SchemaError:
                return 0

        def fits(n: Any, version: int) -> bool:
            try:
                return set(a.name for a in n.attribute) <= set(onnx.defs.get_schema(n.op_type, version).attributes)
            except onnx.defs.SchemaError:
                return False

        # a function may be written for an older opset than that of the export
        self.opset = next((v for v in range(min(self.opset, newest), 6, -1) if all(n.domain or fits(n, v) for n in self.nodes)), self.opset)
        if all(n.domain or since(n.op_type, self.opset) == since(n.op_type, newest) for n in self.nodes):
            return
        codes = {k: getattr(onnx.TensorProto, v) for k, v in _onnx_names().items()}
        flat = [a for v in [*call.args, *call.kwargs.values()] for a in (v if isinstance(v, list) else [v]) if isinstance(a, _Tensor)]
        given = [helper.make_tensor_value_info(n, codes.get(t.dtype, 1), None if t.sizes is None else [s if isinstance(s, int) else None for s in t.sizes])
                 for n, t in zip(self.inputs, flat)]
        out = [helper.make_empty_tensor_value_info(o) for o in self.outputs]
        weights = [onnx.numpy_helper.from_array(_array(v), k) for k, v in self.constants.items()]
        graph = helper.make_graph(self.nodes, "call", given, out, weights)
        domains = {n.domain for n in self.nodes if n.domain}
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset), *(helper.make_opsetid(d, 1) for d in domains)])
        try:
            converted = version_converter.convert_version(model, newest).graph
        except Exception:  # the rule is refused, with the reason
            return
        self.nodes = []
        for w in converted.initializer:
            self.constants[w.name] = onnx.numpy_helper.to_array(w)
        for n in converted.node:
            if n.op_type == "Constant" and not n.domain and n.attribute[0].name == "value":
                self.constants[n.output[0]] = onnx.numpy_helper.to_array(n.attribute[0].t)
            else:
                self.nodes.append(n)


def _onnx_names() -> Dict[Any, str]:
    import torch

    names = {"float32": "FLOAT", "float64": "DOUBLE", "float16": "FLOAT16", "bfloat16": "BFLOAT16", "int64": "INT64", "int32": "INT32", "int16": "INT16", "int8": "INT8",
             "uint8": "UINT8", "bool": "BOOL"}
    return {getattr(torch, k): v for k, v in names.items()}


def _array(value: Any) -> Any:
    return value.numpy() if hasattr(value, "numpy") else value


def _literal(v: Any) -> str:
    """A constant in a rule."""
    if isinstance(v, str):
        return quote(v)
    if isinstance(v, (list, tuple)):
        return "[" + ", ".join(_literal(e) for e in v) + "]"
    if v is None or isinstance(v, (bool, int, float)):
        return repr(v)
    known = element_types()
    try:
        if v in known:
            return known[v]
    except TypeError:
        pass
    raise ArgumentError("rules", f"a rule has no constant such as {v!r}")


def _constant(value: Any) -> str:
    """A constant tensor as an operand."""
    array = _array(value)
    if array.ndim > 1:
        raise ArgumentError("rules", "a symbolic makes a constant of more than one dimension; make it a buffer of the model")
    plain = array.tolist()
    bare = {"int64", "float32", "bool"}
    names = {"float64": "f64", "float16": "f16", "int32": "i32", "int16": "i16", "int8": "i8", "uint8": "u8"}
    if str(array.dtype) in bare:
        return _literal(plain)
    if str(array.dtype) not in names:
        raise ArgumentError("rules", f"a symbolic makes a constant of {array.dtype}")
    return f"const({_literal(plain)}, {names[str(array.dtype)]})"


def _attribute(a: Any) -> str:
    """The value of an attribute."""
    import onnx

    value = onnx.helper.get_attribute_value(a)
    if isinstance(value, bytes):
        return quote(value.decode())
    if a.type == onnx.AttributeProto.STRINGS:
        return _literal([v.decode() for v in value])
    if a.type in (onnx.AttributeProto.TENSOR, onnx.AttributeProto.GRAPH):
        raise ArgumentError("rules", f"a symbolic makes the attribute {a.name}, a tensor or a graph, which a rule cannot")
    return _literal(_short(list(value) if not isinstance(value, (int, float)) else value))


def _short(value: Any) -> Any:
    """A float32 with the digits that it needs."""
    if isinstance(value, list):
        return [_short(v) for v in value]
    return float(f"{value:.8g}") if isinstance(value, float) else value


def _by_symbolic(function: Callable[..., Any], opset: int, call: _Call) -> _Made:
    """Runs a symbolic function of torch.onnx's first exporter on a graph of its own."""
    import torch

    utils = _module("jit_utils")
    graph = torch._C.Graph()
    inputs: List[str] = []

    def tensor(t: _Tensor) -> Any:
        name = f"x{len(inputs)}"
        inputs.append(name)
        value = graph.addInput(name)
        if t.dtype is not None and t.sizes is not None:
            sizes = [int(s) if isinstance(s, int) else 2 for s in t.sizes]
            value.setType(torch._C.TensorType.create_from_tensor(torch.empty(sizes, dtype=t.dtype)))
        return value

    def constant(v: Any) -> Any:
        if v is None:
            node = graph.insertNode(graph.create("prim::Constant"))
            node.output().setType(torch._C.NoneType.get())
            return node.output()
        node = graph.insertNode(graph.create("onnx::Constant"))
        if isinstance(v, str):
            node.s_("value", v)
        else:
            node.t_("value", torch.tensor(v, dtype=torch.float64 if isinstance(v, float) else None) if not isinstance(v, torch.dtype) else torch.tensor(_code(v)))
        return node.output()

    def argument(a: Any) -> Any:
        if isinstance(a, _Tensor):
            return tensor(a)
        if isinstance(a, list) and any(isinstance(v, _Tensor) for v in a):
            node = graph.insertNode(graph.create("prim::ListConstruct", [argument(v) for v in a]))
            return node.output()
        return a if call.name in _FUNCTIONS else constant(a)

    values = [argument(a) for a in call.args]
    given = {k: argument(v) for k, v in call.kwargs.items()}
    if call.name in _FUNCTIONS:  # the symbolic has the arguments of forward, numbers as they are
        values, given = [values[a] if isinstance(a, int) else a[0] for a in _ARGUMENTS[call.name]], {}
    else:
        schema = getattr(call, "schema")
        given = {k: v for k, v in given.items() if k in inspect.signature(function).parameters or k in schema}
    fields = {"graph": graph, "block": graph.block(), "opset": opset, "params_dict": {}, "env": {}, "values_in_env": set(), "new_nodes": []}
    original = call.original if call.original is not None else graph.insertNode(graph.create("prim::Constant"))
    fields["original_node"] = original
    context = utils.GraphContext(**{f.name: fields[f.name] for f in dataclasses.fields(utils.GraphContext)})
    state = _module("_globals").GLOBALS
    before = state.export_onnx_opset_version
    try:
        state.export_onnx_opset_version = opset
        out = function(context, *values, **given)
    finally:
        state.export_onnx_opset_version = before
    outputs = list(out) if isinstance(out, (list, tuple)) else [out]
    return _of_graph(graph, inputs, outputs, opset)


def _of_graph(graph: Any, inputs: List[str], outputs: List[Any], opset: int) -> _Made:
    """The nodes of a graph of TorchScript that a symbolic function has filled."""
    from onnx import helper

    names: Dict[int, str] = {v.unique(): v.debugName() for v in graph.inputs()}
    made = _Made([], inputs, [], {}, {}, opset)
    for node in graph.nodes():
        kind = node.kind()
        if kind == "prim::ListConstruct":
            continue
        if kind == "onnx::Constant" or kind == "prim::Constant":
            value = node.output()
            names[value.unique()] = ""
            if "value" in node.attributeNames() and node.kindOf("value") == "t":
                names[value.unique()] = f"c{len(made.constants)}"
                made.constants[names[value.unique()]] = node.t("value")
            continue
        for o in node.outputs():
            names[o.unique()] = f"v{o.unique()}"
            t = _of_type(o.type())
            if t.dtype is not None:
                made.types[names[o.unique()]] = t
        operands: List[str] = []
        for i in node.inputs():
            held = list(i.node().inputs()) if i.node().kind() == "prim::ListConstruct" else [i]
            operands += [names[v.unique()] for v in held]
        attributes = {a: getattr(node, node.kindOf(a))(a) for a in node.attributeNames()}
        domain, _, op = kind.partition("::")
        made.nodes.append(helper.make_node(op, operands, [names[o.unique()] for o in node.outputs()], domain="" if domain == "onnx" else domain, **attributes))
    made.outputs = [names[o.unique()] for o in outputs]
    used = {i for n in made.nodes for i in n.input} | set(made.outputs)
    made.constants = {k: v for k, v in made.constants.items() if k in used}
    return made


def _by_onnxscript(function: Callable[..., Any], opset: int, call: _Call) -> _Made:
    """Runs a function of custom_translation_table as torch.onnx's second exporter does."""
    import onnx_ir
    import onnxscript.evaluator
    import torch

    building = importlib.import_module("torch.onnx._internal.exporter._building")
    tensors = importlib.import_module("torch.onnx._internal.exporter._tensors")
    version = min(int(getattr(getattr(function, "opset", None), "version", 0)) or max(18, min(opset, 23)), 23)
    domain = onnxscript.values.Opset("", version)
    recorder = building.OpRecorder(domain, {})
    inputs: List[str] = []
    codes = _onnx_names()

    def argument(a: Any) -> Any:
        if isinstance(a, _Tensor):
            inputs.append(f"x{len(inputs)}")
            kind = onnx_ir.TensorType(getattr(onnx_ir.DataType, codes.get(a.dtype, "FLOAT")))
            shape = None if a.sizes is None else onnx_ir.Shape([s if isinstance(s, int) else None for s in a.sizes])
            return tensors.SymbolicTensor(opset=domain, name=inputs[-1], type=kind, shape=shape)
        if isinstance(a, list) and any(isinstance(v, _Tensor) for v in a):
            return [argument(v) for v in a]
        return _code(a) if isinstance(a, torch.dtype) else a

    args = [argument(a) for a in call.args]
    kwargs = {k: argument(a) for k, a in call.kwargs.items()}
    with onnxscript.evaluator.default_as(recorder):
        out = function(*args, **kwargs)
    outputs = list(out) if isinstance(out, (list, tuple)) else [out]
    made = _Made([], inputs, [], {}, {}, version)
    nodes: List[Any] = []
    for n in recorder.nodes:
        if (n.domain, n.op_type, "") in recorder.functions:
            raise ArgumentError("custom_translation_table", f"{n.op_type} is a function of its own domain: give it to rules= by aton.rule")
        nodes.append(n)
    for k, n in enumerate(nodes):
        for i, o in enumerate(n.outputs):
            o.name = f"v{k}_{i}"
    for n in nodes:
        for value in n.inputs:
            if value is not None and value.producer() is None and value.const_value is not None:
                value.name = value.name if value.name in made.constants else f"c{len(made.constants)}"
                made.constants[value.name] = value.const_value.numpy()
        if n.op_type == "Constant" and not n.domain:
            made.constants[n.outputs[0].name] = _of_constant(n)
            continue
        made.nodes.append(onnx_ir.to_proto(n))
    made.outputs = [o.name for o in outputs]
    return made


def _of_constant(node: Any) -> Any:
    import numpy

    (name, attribute), = node.attributes.items()
    if name == "value":
        return attribute.value.numpy()
    return numpy.array(attribute.value, dtype=numpy.int64 if name.startswith("value_int") else numpy.float32)


def _as_it_says(node: Any, call: _Call) -> _Made:
    """The node that a call of torch.onnx.ops.symbolic describes."""
    from onnx import helper

    names = [a.name for a in node.target._schema.arguments]
    given = {**{a.name: a.default_value for a in node.target._schema.arguments if a.has_default_value()}, **dict(zip(names, node.args)), **node.kwargs}
    attributes: Dict[str, Any] = {}
    for key, kind, place in zip(given["attr_keys"], given["attr_types"], given["attr_pos"]):
        held = {"i": given["attr_ints"], "f": given["attr_floats"], "s": given["attr_strs"]}[kind[0]]
        value = list(held[place[0]:place[1]])
        attributes[key] = value if len(kind) > 1 else value[0]
    op = given["op_type"]
    domain, separator, short = op.rpartition("::")
    domain = given["domain"] or (domain if separator else "")
    inputs = [f"x{i}" for i, a in enumerate(i for i in given["inputs"] if i is not None)]
    left = iter(inputs)
    operands = [next(left) if a is not None else "" for a in given["inputs"]]
    count = len(call.results)
    outputs = [f"v{i}" for i in range(count)]
    made = helper.make_node(short or op, operands, outputs, domain="" if domain in ("", "ai.onnx", "onnx") else domain, **attributes)
    version = given["version"]
    return _Made([made], inputs, outputs, {}, dict(zip(outputs, call.results)) if domain else {}, version if version and not made.domain else _newest_opset(),
                 {made.domain: version} if version and made.domain else {}, sizes_aside=True)


def _newest_opset() -> int:
    import onnx

    return int(onnx.defs.onnx_opset_version())


def _code(dtype: Any) -> int:
    """ONNX's code of an element type."""
    import onnx

    return int(getattr(onnx.TensorProto, _onnx_names()[dtype]))


def _module(name: str) -> Any:
    """A module of torch.onnx's first exporter, where this PyTorch has it."""
    for parent in ("torch.onnx._internal.torchscript_exporter", "torch.onnx._internal", "torch.onnx"):
        with contextlib.suppress(ImportError):
            return importlib.import_module(f"{parent}.{name}")
    raise ExportError([Diagnostic("symbolic", "error", "this PyTorch has no exporter that symbolic functions are for: give a rule (rules=)")])


#: the arguments of such a call: places of tensors, and values in tuples of one
_ARGUMENTS: Dict[str, List[Any]] = {}
_libraries: List[Any] = []


def stand_in(cls: Any, args: Tuple[Any, ...], call: Callable[..., Any]) -> Any:
    """Calls a function of torch.autograd that has a symbolic, as an operator of its own, for which its symbolic makes the rule."""
    import torch

    name = f"{cls.__name__}_{len(_FUNCTIONS)}"
    tensors = [a for a in args if isinstance(a, torch.Tensor)]
    places: List[Any] = []
    for a in args:
        places.append(sum(isinstance(p, int) for p in places) if isinstance(a, torch.Tensor) else (a,))

    def forward(*given: Any) -> Any:
        return call(*(given[p] if isinstance(p, int) else p[0] for p in places))

    state = torch._C._get_tracing_state()
    torch._C._set_tracing_state(None)
    try:
        out = forward(*(t.detach().clone() for t in tensors))
    finally:
        torch._C._set_tracing_state(state)
    many = isinstance(out, (list, tuple))
    results = "(" + ", ".join(["Tensor"] * len(out)) + ")" if many else "Tensor"
    library = torch.library.Library("aton_function", "FRAGMENT")
    _libraries.append(library)
    library.define(f"{name}({', '.join(f'Tensor x{i}' for i in range(len(tensors)))}) -> {results}")

    @functools.wraps(forward)
    def run(*given: Any) -> Any:
        made = forward(*given)
        return tuple(made) if many else made

    library.impl(name, run, "CompositeExplicitAutograd")
    kind = f"aton_function::{name}"
    _FUNCTIONS[kind], _ARGUMENTS[kind] = cls.symbolic, places
    return getattr(torch.ops.aton_function, name)(*tensors)
