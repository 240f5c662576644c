"""How models are saved: what there is of PyTorch in this package."""
import collections
import contextlib
import importlib
import inspect
import io
import keyword
import logging
import re
import sys
import warnings
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Set, Tuple

from . import _symbolic, _traced
from ._inputs import foreign, leaves, members, parts, paths, replaced


def kind(model: Any) -> str:
    """What a model is: "module", "script" or "program"."""
    import torch

    if isinstance(model, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
        return "script"
    if has_programs() and isinstance(model, torch.export.ExportedProgram):
        return "program"
    if callable(model):
        return "module"
    raise TypeError(f"a {type(model).__name__} is no model: give an nn.Module, a ScriptModule or an ExportedProgram; aton.convert takes files")


def has_programs() -> bool:
    """Reports whether PyTorch has torch.export."""
    import torch

    return hasattr(torch, "export") and hasattr(getattr(torch, "export"), "save")


def mode_name(training: Any) -> str:
    """EVAL, PRESERVE or TRAINING."""
    return str(getattr(training, "name", training))


def parameters(model: Any) -> List[str]:
    """The names of the parameters of forward."""
    if kind(model) == "script":
        if hasattr(model, "forward"):
            return [a.name for a in model.forward.schema.arguments[1:]]  # the first is the module, whatever the user calls it
        return [a.name for a in model.schema.arguments]
    if kind(model) == "program":
        return [str(n) for n in model.graph_signature.user_inputs]
    return [p.name for p in signature(model).parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]


def examples(model: Any, args: Any, kwargs: Any) -> Tuple[Any, Any, Dict[str, Any]]:
    """The example arguments, names and dynamic shapes that a torch.onnx.ExportableModule has of its own, if no arguments are given."""
    if not isinstance(args, tuple) or args or kwargs or not all(hasattr(model, n) for n in ("example_arguments", "dynamic_shapes", "input_names", "output_names")):
        return args, kwargs, {}
    args, kwargs = model.example_arguments()
    return args, kwargs, {n: getattr(model, n)() for n in ("dynamic_shapes", "input_names", "output_names")}


class Bound:
    """The arguments of a call, by the names of forward's parameters."""

    def __init__(self, model: Any, args: Tuple[Any, ...], kwargs: Mapping[str, Any]):
        self._args, self._kwargs = args, dict(kwargs)
        self._call: Optional[inspect.BoundArguments] = None
        how = kind(model)
        if how == "module":
            self._call = signature(model).bind(*args, **kwargs)
        elif how == "script":
            names = parameters(model)
            if len(args) > len(names):
                raise TypeError(f"{len(args)} arguments are given, forward takes {len(names)}")
            unknown = [k for k in kwargs if k not in names]
            if unknown:
                raise TypeError(f"forward has no argument {unknown[0]}; it has {', '.join(names)}")
        self._names = parameters(model) if self._call is None else []
        if how == "program":  # its inputs are the tensors in the arguments
            self._args, self._kwargs = (*leaves(args), *leaves(kwargs)), {}

    def named(self) -> Dict[str, Any]:
        """The arguments in the order of the parameters; those of *args are args_0, args_1 ..."""
        if self._call is None:
            given = dict(zip(self._names, self._args))
            given.update(self._kwargs)
            return {n: given[n] for n in self._names if n in given}
        named: Dict[str, Any] = {}
        for name, value in self._call.arguments.items():
            how = self._call.signature.parameters[name].kind
            if how is inspect.Parameter.VAR_POSITIONAL:
                named.update({f"{name}_{i}": v for i, v in enumerate(value)})
            elif how is inspect.Parameter.VAR_KEYWORD:
                named.update(value)
            else:
                named[name] = value
        return named

    def order(self) -> Callable[[Tuple[Any, ...], Dict[str, Any]], List[Any]]:
        """What puts the arguments of another call into this order. It holds no model."""
        if self._call is not None:
            parameters_ = self._call.signature
            return lambda args, kwargs: list(parameters_.bind(*args, **kwargs).arguments.values())
        names = self._names

        def ordered(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> List[Any]:
            if not set(kwargs) <= set(names):
                return [args, kwargs]
            return [*args, *(kwargs[n] for n in names if n in kwargs)]

        return ordered

    def given(self) -> List[Tuple[str, Any]]:
        """The arguments as torch.export takes its dynamic_shapes: *args is one, and each keyword of **kwargs one."""
        if self._call is None:
            return list(self.named().items())
        out: List[Tuple[str, Any]] = []
        for name, value in self._call.arguments.items():
            if self._call.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                out += value.items()
            else:
                out.append((name, value))
        return out

    def replaced(self, function: Callable[[Any], Any], numbers: bool = False) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
        """The call with other tensors (and numbers), which are asked for in the order of the arguments by name."""
        if self._call is None:
            new = {k: replaced(v, function, numbers) for k, v in self.named().items()}
            return tuple(new[n] for n in self._names[:len(self._args)]), {k: v for k, v in new.items() if k not in self._names[:len(self._args)]}
        values = {k: replaced(v, function, numbers) for k, v in self._call.arguments.items()}
        call = inspect.BoundArguments(self._call.signature, collections.OrderedDict(values))
        kwargs = {**call.kwargs, **{k: values[k] for k in self._kwargs if k in values}}  # those that were given by name, in their order
        return call.args[:len(self._args)], {k: kwargs[k] for k in self._kwargs}


def signature(model: Any) -> inspect.Signature:
    """The parameters of forward."""
    return inspect.signature(model.forward if hasattr(model, "forward") else model)


def takes(model: Any, args: Tuple[Any, ...]) -> bool:
    """Reports whether forward has a place for each argument."""
    try:
        if kind(model) == "module":
            signature(model).bind_partial(*args)
    except TypeError:
        return False
    return True


def clones(value: Any) -> Any:
    """The same with tensors of its own: a model may write to its inputs."""
    return replaced(value, lambda t: t.clone())


@contextlib.contextmanager
def quiet(log: Optional[List[str]] = None) -> Iterator[None]:
    """Leaves out what PyTorch says about saving: what matters is said by the conversion. What it logs goes to log, and what it or the model writes to standard
    error if it fails."""
    import torch

    said = io.StringIO()
    out = sys.stderr
    try:
        with warnings.catch_warnings(), torch.no_grad(), _logged(log), exporting(), contextlib.redirect_stderr(said):
            warnings.simplefilter("ignore")
            yield
    except BaseException:
        if log is not None:
            log.append(said.getvalue())
        raise
    if said.getvalue():
        out.write(said.getvalue())


@contextlib.contextmanager
def _logged(log: Optional[List[str]]) -> Iterator[None]:
    """Has what PyTorch logs go to a list, and not to standard error."""
    handler = _List(log if log is not None else [])
    names = ["torch", *(n for n in list(logging.root.manager.loggerDict) if n.startswith("torch."))]
    loggers = [logging.getLogger(n) for n in names]
    before = [(logger.handlers, logger.propagate) for logger in loggers]
    try:
        for logger in loggers:
            if logger.handlers or logger.name == "torch":
                logger.handlers, logger.propagate = [handler], False
        yield
    finally:
        for logger, (handlers, propagate) in zip(loggers, before):
            logger.handlers, logger.propagate = handlers, propagate


class _List(logging.Handler):
    """Writes to a list."""

    def __init__(self, log: List[str]):
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        self._log.append(record.getMessage())


@contextlib.contextmanager
def exporting() -> Iterator[None]:
    """Has torch.onnx.is_in_onnx_export() say True, as it does during an export of torch.onnx."""
    found: List[Tuple[Any, str, Any]] = []
    for module, attribute in (("torch.onnx._internal.torchscript_exporter._globals", "GLOBALS"), ("torch.onnx._globals", "GLOBALS"),
                              ("torch.onnx._internal.exporter._flags", ""), ("torch.onnx._flags", "")):
        try:
            holder = importlib.import_module(module)
        except ImportError:
            continue
        holder = getattr(holder, attribute) if attribute else holder
        for name in ("in_onnx_export", "_is_onnx_exporting"):
            if hasattr(holder, name):
                found.append((holder, name, getattr(holder, name)))
    try:
        for holder, name, _ in found:
            setattr(holder, name, True)
        yield
    finally:
        for holder, name, old in found:
            setattr(holder, name, old)


@contextlib.contextmanager
def kept(model: Any) -> Iterator[None]:
    """Gives a module its attributes and buffers back: a model that is run to be saved may change them."""
    import torch

    if not isinstance(model, torch.nn.Module) or isinstance(model, torch.jit.ScriptModule):
        yield
        return
    modules = [(m, dict(m.__dict__), dict(m._buffers)) for m in model.modules()]
    with torch.no_grad():
        buffers = [(b, b.clone()) for b in model.buffers() if type(b) is torch.Tensor and not b.is_meta]
    try:
        yield
    finally:
        for m, attributes, held in modules:
            m.__dict__.clear()
            m.__dict__.update(attributes)
            m._buffers.clear()
            m._buffers.update(held)
        with torch.no_grad():
            for b, was in buffers:
                if b.shape != was.shape or not torch.equal(b, was):
                    b.copy_(was)


def program(model: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any], shapes: Any, log: List[str]) -> Any:
    """The program of torch.export."""
    import torch

    if not has_programs():
        raise RuntimeError(f"PyTorch {torch.__version__} has no torch.export; use source='trace'")
    if not isinstance(model, torch.nn.Module):
        model = type("Function", (torch.nn.Module,), {"forward": staticmethod(model)})()
    _register_caches()
    with quiet(log), kept(model), _recurrent() as mend, _ones(args, kwargs):
        exported = torch.export.export(model, clones(args), clones(kwargs) or None, dynamic_shapes=shapes)
        mend(exported)
        return exported


@contextlib.contextmanager
def _ones(args: Any, kwargs: Any) -> Iterator[None]:
    """Has torch.export keep dynamic axes whose size is 1 in the example: it takes them for constants otherwise."""
    import torch

    try:
        from torch.fx.experimental import _config as config
    except ImportError:
        yield
        return
    if hasattr(config, "backed_size_oblivious") and any(1 in t.shape for t in leaves((args, kwargs)) if isinstance(t, torch.Tensor)):
        with config.patch(backed_size_oblivious=True):
            yield
    else:
        yield


@contextlib.contextmanager
def _recurrent() -> Iterator[Callable[[Any], None]]:
    """Has torch.export keep recurrent layers as they are: it writes out their steps otherwise, as many as the example has. What it gives puts PyTorch's
    operators in the place of those that stand for them meanwhile."""
    import torch

    names = [n for n in ("lstm", "gru", "rnn_tanh", "rnn_relu") if hasattr(torch.ops.aten, n) and "input" in getattr(torch.ops.aten, n).overloads()]
    if not hasattr(torch.library, "register_fake"):
        yield lambda exported: None
        return
    _stand_ins(names)
    own = [(getattr(torch.ops.aten, n).input, getattr(torch.ops.aton_recurrent, n).default) for n in names]
    before = [(o, dict(o.py_kernels)) for o, _ in own]
    keys = (torch._C.DispatchKey.CompositeImplicitAutograd, torch._C.DispatchKey.Autograd)
    back = {stand_in: o for o, stand_in in own}

    def mend(exported: Any) -> None:
        for module in exported.graph_module.modules():
            for node in getattr(module, "graph", torch.fx.Graph()).nodes:
                if node.op == "call_function" and node.target in back:
                    node.target = back[node.target]
            if isinstance(module, torch.fx.GraphModule):
                module.recompile()

    try:
        for o, stand_in in own:
            for key in keys:
                o.py_kernels[key] = stand_in
            o._dispatch_cache.clear()
        yield mend
    finally:
        for o, kernels in before:
            o.py_kernels.clear()
            o.py_kernels.update(kernels)
            o._dispatch_cache.clear()


_library: Any = None


def _stand_ins(names: List[str]) -> None:
    """Defines the operators that stand for recurrent layers in torch.export."""
    global _library
    import torch

    if _library is not None:
        return
    _library = torch.library.Library("aton_recurrent", "DEF")

    def define(name: str, states: int) -> None:
        hx = "Tensor[] hx" if states == 2 else "Tensor hx"
        results = ", ".join(["Tensor"] * (1 + states))
        _library.define(f"{name}(Tensor input, {hx}, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first)"
                        f" -> ({results})")
        _library.impl(name, getattr(torch, name), "CompositeExplicitAutograd")

        def fake(input: Any, hx: Any, params: Any, has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool) -> Any:
            held = list(hx) if states == 2 else [hx]
            directions = 2 if bidirectional else 1
            steps = [input.new_empty(*input.shape[:-1], held[0].shape[-1] * directions)]
            return tuple(steps + [h.new_empty(h.shape) for h in held])

        torch.library.register_fake(f"aton_recurrent::{name}", fake, lib=_library)

    for name in names:
        define(name, 2 if name == "lstm" else 1)


def _register_caches() -> None:
    """Tells torch.export what the caches of transformers hold."""
    cache_utils = sys.modules.get("transformers.cache_utils")
    if cache_utils is None:
        return
    import torch.utils._pytree as pytree

    with contextlib.suppress(Exception):  # as transformers does it itself, where it does
        importlib.import_module("transformers.integrations.executorch").register_dynamic_cache_export_support()
    pair: Any = getattr(cache_utils, "EncoderDecoderCache", None)
    if pair is not None and pair not in pytree.SUPPORTED_NODES:
        keys = ["self_attention_cache", "cross_attention_cache"]
        pytree.register_pytree_node(pair, lambda c: ([getattr(c, k) for k in keys], keys), lambda values, _: pair(*values),
                                    serialized_type_name=f"{pair.__module__}.{pair.__name__}",
                                    flatten_with_keys_fn=lambda c: ([(pytree.MappingKey(k), getattr(c, k)) for k in keys], keys))


def shapes_of(value: Any, axes: Iterator[Mapping[int, str]], dim: Callable[[str], Any]) -> Any:
    """What torch.export is told of the sizes of an argument: which axes are dynamic, each by what dim makes of its name."""
    import torch

    if isinstance(value, torch.Tensor):
        return {k: dim(n) for k, n in next(axes).items()} or None
    if isinstance(value, Mapping):
        return {k: shapes_of(v, axes, dim) for k, v in value.items()}
    held = [shapes_of(v, axes, dim) for v in members(value)]
    return tuple(held) if isinstance(value, tuple) else held or None


@contextlib.contextmanager
def attention_in_eval(places: Optional[Set[Tuple[str, int]]]) -> Iterator[None]:
    """Has scaled_dot_product_attention drop nothing, and notes the lines that would have. None leaves it as it is."""
    import torch

    own = torch.nn.functional.scaled_dot_product_attention
    if places is None:
        yield
        return

    def attention(query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, *rest: Any, **options: Any) -> Any:
        if dropout_p:
            places.add(_traced.line())
        return own(query, key, value, attn_mask, 0.0, *rest, **options)

    torch.nn.functional.scaled_dot_product_attention = attention
    try:
        yield
    finally:
        torch.nn.functional.scaled_dot_product_attention = own


def script(model: Any, log: List[str]) -> Any:
    """The model as TorchScript, with its branches and loops."""
    import torch

    own = torch.onnx.is_in_onnx_export
    try:
        torch.onnx.is_in_onnx_export = _in_export  # which TorchScript can compile
        with quiet(log):
            return torch.jit.script(model)
    finally:
        torch.onnx.is_in_onnx_export = own


def _in_export() -> bool:
    return True


def save_program(exported: Any, path: str) -> None:
    """Writes a program."""
    import torch

    with quiet(), _weights_in_place(), open(path, "wb") as f:  # by its name it must end in .pt2
        torch.export.save(exported, f)


@contextlib.contextmanager
def _weights_in_place() -> Iterator[None]:
    """Has torch.export.save write weights from where they are, as torch.save does. It copies each one twice otherwise, which are gigabytes for the
    embedding of a large model. What it calls is private: where that is another one, it copies."""
    import torch

    try:
        from torch.export.pt2_archive import _package  # 2.8 and newer

        names: List[Tuple[Any, str]] = [(_package, "_get_raw_tensor_bytes"), (_package.PT2ArchiveWriter, "write_bytes")]
        raw, write = (getattr(holder, name) for holder, name in names)
    except (ImportError, AttributeError):
        yield
        return

    def storage(tensor: torch.Tensor) -> Any:
        if type(tensor.data) is torch.Tensor and tensor.device.type == "cpu" and tensor.layout == torch.strided and tensor.untyped_storage().nbytes() > 0:
            return tensor.untyped_storage()
        return raw(tensor)

    def record(self: Any, name: str, data: Any) -> None:
        if isinstance(data, torch.UntypedStorage):
            self.archive_file.write_record(name, data, data.nbytes())
        else:
            write(self, name, data)

    try:
        for (holder, name), function in zip(names, (storage, record)):
            setattr(holder, name, function)
        yield
    finally:
        for (holder, name), function in zip(names, (raw, write)):
            setattr(holder, name, function)


def save_script(module: Any, path: str) -> None:
    """Writes a TorchScript module."""
    import torch

    with quiet():
        torch.jit.save(module, path)


@contextlib.contextmanager
def _functions_traced() -> Iterator[None]:
    """Has a trace go through the forward of each torch.autograd.Function: it records a call of Python otherwise, which no archive holds. One that has a
    `symbolic` is an operator of its own, and its symbolic says what becomes of that."""
    import torch

    function = torch.autograd.Function
    own = function.__dict__.get("apply")
    setup = getattr(function, "setup_context", None)

    def traced(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if not torch.jit.is_tracing():
            return (own.__get__(None, cls) if own else super(function, cls).apply)(*args, **kwargs)
        def call(*given: Any) -> Any:
            if getattr(cls, "setup_context", None) is not setup:  # forward takes no context
                return cls.forward(*given, **kwargs)
            return cls.forward(_Context(len(given)), *given, **kwargs)

        return _symbolic.stand_in(cls, args, call) if hasattr(cls, "symbolic") else call(*args)

    setattr(function, "apply", classmethod(traced))
    try:
        yield
    finally:
        if own is None:
            delattr(function, "apply")
        else:
            setattr(function, "apply", own)


class _Context:
    """What forward of a torch.autograd.Function is given: it keeps attributes, and nothing is kept for a backward."""

    def __init__(self, inputs: int):
        self.needs_input_grad = (False,) * inputs

    def __getattr__(self, name: str) -> Any:
        if name in ("save_for_backward", "save_for_forward", "mark_dirty", "mark_non_differentiable", "mark_shared_storage", "set_materialize_grads"):
            return lambda *args, **kwargs: None
        raise AttributeError(name)


@dataclass
class Traced:
    """A trace of a model."""

    module: Any
    #: its inputs: the tensors in the arguments, and the numbers if they are to be inputs
    inputs: Dict[str, Any]
    #: the names of the outputs by their keys
    names: List[str]
    #: what the trace has built in
    readings: List[_traced.Reading]
    #: what else PyTorch's tracer warned of
    warnings: List[Tuple[str, int, str]]
    #: what the outputs hold that no file can
    lost: List[str]


def trace(model: Any, bound: Bound, numbers: bool, log: List[str]) -> Traced:
    """A trace of the model. What there is of the arguments beside tensors, and numbers if they are to be inputs, is part of it."""
    import torch

    strange = foreign(list(bound.named().values()))
    if strange:
        raise TypeError(f"an argument of type {strange} holds tensors that the trace would not see; tensors, numbers, strings, None, containers of these and classes that "
                        "torch.utils._pytree knows are supported")
    _register_caches()
    flat: Dict[str, Any] = {}
    for name, value in bound.named().items():
        single = isinstance(value, (torch.Tensor, bool, int, float))
        for i, leaf in enumerate(leaves(value, numbers)):
            flat.update({_parameter(name if single else f"{name}_{i}", flat) + end: t for end, t in parts(leaf).items()})
    found = Traced(None, flat, [], [], [], [])
    arguments = bound.named()
    names = list(signature(model).parameters)
    plain = isinstance(model, torch.nn.Module) and names[:len(flat)] == list(flat) and len(flat) == len(arguments) and all(flat.get(n) is v for n, v in arguments.items())
    if plain:
        try:
            found.module = _run(model, found, model, log)
            if not _quantizes(found.module) and not _of_containers(found.module):
                return found
        except RuntimeError:  # outputs that TorchScript has no type for
            pass
    found.readings, found.warnings = [], []
    found.module = _run(model, found, _flat(model, bound, found, numbers), log)
    return found


def _run(model: Any, found: Traced, traced: Any, log: List[str]) -> Any:
    """Traces a module."""
    import torch

    with quiet(log), kept(model), _functions_traced(), _traced.readings(found.readings, found.warnings):
        return torch.jit.trace(traced, tuple(t.clone() for t in found.inputs.values()), check_trace=False, strict=False)


def _parameter(name: str, taken: Mapping[str, Any]) -> str:
    """A name of a parameter of forward that Python takes."""
    name = re.sub(r"\W", "_", name)
    if not name.isidentifier() or keyword.iskeyword(name) or name == "self":
        name = "_" + name
    while name in taken:
        name += "_"
    return name


def _quantizes(traced: Any) -> bool:
    """Reports operators whose results are quantized, and may be outputs."""
    return any(n.kind().startswith(("quantized::", "aten::quantize_")) for n in traced.inlined_graph.nodes())


def _of_containers(traced: Any) -> bool:
    """Reports an output whose parts have keys."""
    return any("Dict" in str(o.type()) for o in traced.graph.outputs())


def _flat(model: Any, bound: Bound, found: Traced, numbers: bool) -> Any:
    """A module whose inputs and outputs are tensors, as parts has them. It has the model's parts under their own names."""
    import torch

    def results(value: Any) -> Iterator[Any]:
        found.names, found.lost = paths(value), lost(value)
        for t in leaves(value, numbers=True):
            if not isinstance(t, torch.Tensor):
                yield torch.tensor(t, dtype=torch.float64 if isinstance(t, float) else None)
            elif t.is_quantized:
                from ._quantized import parts

                yield from parts(t)
            else:
                yield t.as_subclass(torch.Tensor) if type(t) is _traced.number_class() else t

    def call(*tensors: Any) -> Any:
        left = iter(tensors)
        args, kwargs = bound.replaced(lambda old: _refill(old, left), numbers)
        return tuple(results(model(*args, **kwargs)))

    names = list(found.inputs)
    scope: Dict[str, Any] = {"_aton_call": call}
    exec(f"def forward(self, {', '.join(names)}):\n    return _aton_call({', '.join(names)})\n", scope)
    wrapper = type("Flat", (torch.nn.Module,), {"forward": scope["forward"]})()
    if isinstance(model, torch.nn.Module):
        for attribute in ("_modules", "_parameters", "_buffers"):
            getattr(wrapper, attribute).update(getattr(model, attribute))
        for name, value in vars(model).items():
            if isinstance(value, torch.ScriptObject):  # packed weights
                setattr(wrapper, name, value)
        wrapper.train(model.training)
    return wrapper


def lost(value: Any) -> List[str]:
    """What an output holds that is no tensor and no number, by its class."""
    import torch

    if value is None or isinstance(value, (torch.Tensor, bool, int, float)):
        return []
    if isinstance(value, (Mapping, list, tuple)) or members(value):
        return [c for v in members(value) for c in lost(v)]
    return [type(value).__name__]


def _refill(old: Any, tensors: Iterator[Any]) -> Any:
    """A tensor of the trace for one of the arguments, or for a number."""
    import torch

    if not isinstance(old, torch.Tensor):
        number = next(tensors)
        return number.as_subclass(_traced.number_class()) if isinstance(old, float) else number
    if old.is_quantized:
        integers, scale, zero = next(tensors), next(tensors).to(torch.float32), next(tensors)
        return torch.quantize_per_tensor((integers.to(torch.float32) - zero) * scale, scale, zero, old.dtype)
    return next(tensors)
