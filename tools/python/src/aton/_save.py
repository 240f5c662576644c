"""How models are saved: what there is of PyTorch in this package."""
import contextlib
import inspect
import warnings
from typing import Any, Dict, Iterator, List, Mapping, Tuple

from ._inputs import leaves, parts


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
    function = model.forward if hasattr(model, "forward") else model
    return [p.name for p in inspect.signature(function).parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]


def bind(model: Any, args: Tuple[Any, ...], kwargs: Mapping[str, Any]) -> Dict[str, Any]:
    """The arguments by name, in the order of forward's parameters; those of *args are args_0, args_1 ..."""
    if kind(model) == "module":
        function = model.forward if hasattr(model, "forward") else model
        bound = inspect.signature(function).bind(*args, **kwargs)
        named: Dict[str, Any] = {}
        for name, value in bound.arguments.items():
            how = bound.signature.parameters[name].kind
            if how is inspect.Parameter.VAR_POSITIONAL:
                named.update({f"{name}_{i}": v for i, v in enumerate(value)})
            elif how is inspect.Parameter.VAR_KEYWORD:
                named.update(value)
            else:
                named[name] = value
        return named
    names = parameters(model)
    if kind(model) == "program":  # its inputs are the tensors in the arguments
        return dict(zip(names, [*leaves(args), *leaves(kwargs)]))
    if len(args) > len(names):
        raise TypeError(f"{len(args)} arguments are given, forward takes {len(names)}")
    named = dict(zip(names, args))
    named.update(kwargs)
    return {n: named[n] for n in names if n in named}


def outputs(value: Any) -> Any:
    """An output as containers: classes of outputs become what they hold."""
    if hasattr(value, "to_tuple"):
        return value.to_tuple()
    return value


def clones(value: Any) -> Any:
    """The same with tensors of its own: a model may write to its inputs."""
    import torch

    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, dict):
        return {k: clones(v) for k, v in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(clones(v) for v in value))
    if isinstance(value, (list, tuple)):
        return type(value)(clones(v) for v in value)
    return value


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Leaves out PyTorch's warnings about saving: what matters is said by the conversion."""
    import torch

    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        yield


def program(model: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any], shapes: Any) -> Any:
    """The program of torch.export."""
    import torch

    if not has_programs():
        raise RuntimeError(f"PyTorch {torch.__version__} has no torch.export; use source='trace'")
    if not isinstance(model, torch.nn.Module):
        model = type("Function", (torch.nn.Module,), {"forward": staticmethod(model)})()
    with quiet():
        return torch.export.export(model, clones(args), clones(kwargs) or None, dynamic_shapes=shapes)


def shapes_of(value: Any, axes: Iterator[Mapping[int, str]]) -> Any:
    """What torch.export is told of the sizes of an argument."""
    import torch

    if isinstance(value, torch.Tensor):
        dynamic = getattr(torch.export.Dim, "DYNAMIC", None)
        return {k: dynamic if dynamic is not None else torch.export.Dim(n) for k, n in next(axes).items()} or None
    if isinstance(value, Mapping):
        return {k: shapes_of(v, axes) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(shapes_of(v, axes) for v in value)
    return None


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
    """Has a trace go through the forward of each torch.autograd.Function: it records a call of Python otherwise, which no archive holds. A class that
    has a `symbolic` is an error: its author knows better than its forward what it stands for."""
    import torch

    function = torch.autograd.Function
    own = function.__dict__.get("apply")
    setup = getattr(function, "setup_context", None)

    def traced(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if not torch.jit.is_tracing():
            return (own.__get__(None, cls) if own else super(function, cls).apply)(*args, **kwargs)
        if hasattr(cls, "symbolic"):
            raise RuntimeError(f"{cls.__name__} has a symbolic, which is code for torch.onnx alone: leave it out, and what its forward does is converted, or make "
                               "it an operator by torch.library and give a rule for it (aton.export(..., rules=))")
        if getattr(cls, "setup_context", None) is not setup:  # forward takes no context
            return cls.forward(*args, **kwargs)
        return cls.forward(_Context(len(args)), *args, **kwargs)

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


def trace(model: Any, arguments: Mapping[str, Any], numbers: bool) -> Tuple[Any, Dict[str, Any]]:
    """A trace of the model, and its inputs: the tensors in the arguments, and the numbers if they are to be inputs. What else there is is part of it."""
    import torch

    flat: Dict[str, Any] = {}
    for name, value in arguments.items():
        single = not isinstance(value, (list, tuple, Mapping))
        for i, leaf in enumerate(leaves(value, numbers)):
            flat.update({(name if single else f"{name}_{i}") + end: t for end, t in parts(leaf).items()})
    function = model.forward if hasattr(model, "forward") else model
    names = list(inspect.signature(function).parameters)
    if isinstance(model, torch.nn.Module) and names[:len(flat)] == list(flat) and len(flat) == len(arguments) and all(flat.get(n) is v for n, v in arguments.items()):
        try:
            with quiet(), _functions_traced():
                traced = torch.jit.trace(model, tuple(clones(v) for v in flat.values()), check_trace=False, strict=False)
            if not _quantizes(traced):
                return traced, flat
        except RuntimeError:  # outputs that TorchScript has no type for
            pass
    with quiet(), _functions_traced():
        return torch.jit.trace(_flat(model, arguments, list(flat), numbers), tuple(clones(t) for t in flat.values()), check_trace=False, strict=False), flat


def _quantizes(traced: Any) -> bool:
    """Reports operators whose results are quantized, and may be outputs."""
    return any(n.kind().startswith(("quantized::", "aten::quantize_")) for n in traced.inlined_graph.nodes())


def _flat(model: Any, arguments: Mapping[str, Any], names: List[str], numbers: bool) -> Any:
    """A module whose inputs and outputs are tensors, as parts has them. It has the model's parts under their own names."""
    import torch

    def results(value: Any) -> Iterator[Any]:
        for t in leaves(outputs(value)):
            if t.is_quantized:
                from ._quantized import parts

                yield from parts(t)
            else:
                yield t

    def call(*tensors: Any) -> Any:
        left = iter(tensors)
        values = {k: _refill(v, left, numbers) for k, v in arguments.items()}
        if hasattr(model, "forward"):
            signature = inspect.signature(model.forward)
        else:
            signature = inspect.signature(model)
        args, kwargs = [], {}
        for k, v in values.items():
            p = signature.parameters.get(k)
            if p is None and any(q.kind is q.VAR_POSITIONAL for q in signature.parameters.values()) and not any(q.kind is q.VAR_KEYWORD for q in signature.parameters.values()):
                args.append(v)
            elif p is not None and p.kind is p.POSITIONAL_ONLY:
                args.append(v)
            else:
                kwargs[k] = v
        if args:  # what stands before *args must go by its place
            args = [kwargs.pop(k) for k, p in signature.parameters.items() if k in kwargs and p.kind is p.POSITIONAL_OR_KEYWORD] + args
        return tuple(results(model(*args, **kwargs)))

    scope: Dict[str, Any] = {"call": call}
    exec(f"def forward(self, {', '.join(names)}):\n    return call({', '.join(names)})\n", scope)
    wrapper = type("Flat", (torch.nn.Module,), {"forward": scope["forward"]})()
    if isinstance(model, torch.nn.Module):
        for attribute in ("_modules", "_parameters", "_buffers"):
            getattr(wrapper, attribute).update(getattr(model, attribute))
        for name, value in vars(model).items():
            if isinstance(value, torch.ScriptObject):  # packed weights
                setattr(wrapper, name, value)
        wrapper.train(model.training)
    return wrapper


def _refill(value: Any, tensors: Iterator[Any], numbers: bool) -> Any:
    """The value with other tensors, depth first."""
    import torch

    if isinstance(value, torch.Tensor) and value.is_quantized:
        integers, scale, zero = next(tensors), next(tensors).to(torch.float32), next(tensors)
        return torch.quantize_per_tensor((integers.to(torch.float32) - zero) * scale, scale, zero, value.dtype)
    if isinstance(value, torch.Tensor) or numbers and isinstance(value, (bool, int, float)):
        return next(tensors)
    if isinstance(value, dict):
        return type(value)((k, _refill(v, tensors, numbers)) for k, v in value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_refill(v, tensors, numbers) for v in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_refill(v, tensors, numbers) for v in value)
    return value
