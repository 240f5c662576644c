"""What the binary is told of the inputs: names, element types, sizes, the names of dynamic axes."""
import re
import warnings
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Union

Axes = Mapping[str, Union[Mapping[int, str], Sequence[int]]]


def element_types() -> Dict[Any, str]:
    """The binary's names of PyTorch's element types."""
    import torch

    names = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32", "int16": "i16",
             "int8": "i8", "uint8": "u8", "bool": "bool", "uint16": "u16", "uint32": "u32", "uint64": "u64", "complex64": "c64", "complex128": "c128"}
    return {getattr(torch, k): v for k, v in names.items() if hasattr(torch, k)}


def symbol(name: str) -> str:
    """A name of an axis as the binary reads it."""
    s = re.sub(r"\W", "_", name)
    if not s or s[0].isdigit():
        s = "_" + s
    if s != name:
        warnings.warn(f"the axis {name!r} is called {s!r} in the file: a name has letters, digits and underscores", stacklevel=2)
    return s


def axes_of(dynamic_axes: Optional[Axes], name: str) -> Dict[int, str]:
    """The dynamic axes of one input or output. Those that are given by number alone have no name: "?", which may be any size."""
    given = (dynamic_axes or {}).get(name, {})
    if isinstance(given, Mapping):
        return {int(k): symbol(v) for k, v in given.items()}
    return {int(k): "?" for k in given}


def type_of(value: Any, axes: Iterator[Mapping[int, str]], numbers: bool = False) -> str:
    """The type of an argument, in the language of --input. Each tensor takes the next one of axes. Numbers are inputs, or built in."""
    import torch

    if isinstance(value, torch.Tensor):
        return tensor_type(value, next(axes))
    if value is None:
        return "none"
    if isinstance(value, (bool, int, float)):
        if numbers:
            next(axes)
            return type(value).__name__
        return f"{type(value).__name__}={str(value).lower() if isinstance(value, bool) else repr(value)}"
    if isinstance(value, str):
        return "str=" + quote(value)
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return f"{kind}({','.join(type_of(v, axes, numbers) for v in value)})"
    if isinstance(value, Mapping):
        return f"dict({','.join(quote(str(k)) + '=' + type_of(v, axes, numbers) for k, v in value.items())})"
    raise TypeError(f"an argument of type {type(value).__name__} is not supported: tensors, numbers, strings, None and containers of these are")


def tensor_type(t: Any, axes: Mapping[int, str]) -> str:
    """The type of a tensor: f32[N,3]."""
    known = element_types()
    if t.dtype not in known:
        raise TypeError(f"inputs of {t.dtype} are not supported")
    rank = t.dim()
    names = {k + rank if k < 0 else k: v for k, v in axes.items()}
    outside = [k for k in names if not 0 <= k < rank]
    if outside:
        raise ValueError(f"there is no axis {outside[0]} in a tensor of {rank} dimensions")
    return f"{known[t.dtype]}[{','.join(names.get(i, str(n)) for i, n in enumerate(t.shape))}]"


def axes_of_shapes(shapes: Any, value: Any, name: str) -> Iterator[Dict[int, str]]:
    """The dynamic axes of the tensors in an argument by what torch.export takes as its dynamic_shapes. A text is the name of an axis."""
    import torch

    if isinstance(value, torch.Tensor):
        given = shapes.items() if isinstance(shapes, Mapping) else enumerate(shapes) if isinstance(shapes, (list, tuple)) else ()
        yield {int(k): axis_name(d) for k, d in given if is_dynamic(d)}
    elif isinstance(value, Mapping):
        for k, v in value.items():
            yield from axes_of_shapes(shapes.get(k) if isinstance(shapes, Mapping) else None, v, f"{name}_{k}")
    else:
        for i, v in enumerate(members(value)):
            yield from axes_of_shapes(shapes[i] if isinstance(shapes, (list, tuple)) and i < len(shapes) else None, v, f"{name}_{i}")


def is_dynamic(dim: Any) -> bool:
    """Reports an axis that dynamic_shapes makes dynamic: a Dim, a text, Dim.AUTO and Dim.DYNAMIC, and not Dim.STATIC, a number or None."""
    hint = getattr(dim, "type", None)
    return not (dim is None or isinstance(dim, int) or getattr(hint, "name", "") == "STATIC")


def axis_name(dim: Any) -> str:
    """The name of an axis in dynamic_shapes; one without a name is "?"."""
    name = dim if isinstance(dim, str) else getattr(dim, "__name__", "")
    return symbol(name) if name and re.fullmatch(r"[^+*/()-]+", name) else "?"


def quote(text: str) -> str:
    """A string in double quotes."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def leaves(value: Any, numbers: bool = False) -> List[Any]:
    """The tensors in nested containers, depth first, dicts in their order. With numbers, these too."""
    import torch

    if isinstance(value, torch.Tensor) or numbers and isinstance(value, (bool, int, float)):
        return [value]
    return [t for v in members(value) for t in leaves(v, numbers)]


def members(value: Any) -> List[Any]:
    """What a container holds: a list, a tuple, a dict, or a class that PyTorch's pytree knows."""
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, (list, tuple)):
        return list(value)
    node = _node(value)
    return list(node.flatten_fn(value)[0]) if node is not None else []


def replaced(value: Any, function: Callable[[Any], Any], numbers: bool = False) -> Any:
    """The value with other tensors (and numbers), in the order of leaves."""
    import torch

    if isinstance(value, torch.Tensor) or numbers and isinstance(value, (bool, int, float)):
        return function(value)
    if isinstance(value, Mapping):
        new = [(k, replaced(v, function, numbers)) for k, v in value.items()]
        try:
            return type(value)(new)  # type: ignore[call-arg]
        except TypeError:
            return dict(new)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(replaced(v, function, numbers) for v in value))
    if isinstance(value, (list, tuple)):
        return type(value)(replaced(v, function, numbers) for v in value)
    node = _node(value)
    if node is not None:
        held, context = node.flatten_fn(value)
        return node.unflatten_fn([replaced(v, function, numbers) for v in held], context)
    return value


def _node(value: Any) -> Any:
    """What PyTorch's pytree knows of a class of containers."""
    try:
        from torch.utils._pytree import SUPPORTED_NODES
    except ImportError:
        return None
    return SUPPORTED_NODES.get(type(value))


def foreign(value: Any) -> Optional[str]:
    """The class of an argument that holds tensors where nobody finds them, None if there is none."""
    import torch

    if isinstance(value, (torch.Tensor, str, bytes, bool, int, float, complex, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format)):
        return None
    if isinstance(value, (Mapping, list, tuple)) or _node(value) is not None:
        return next((f for v in members(value) for f in [foreign(v)] if f), None)
    held = getattr(value, "__dict__", {})
    if any(leaves(v) or foreign(v) for v in held.values()) or isinstance(value, (set, frozenset)) and any(isinstance(v, torch.Tensor) for v in value):
        return type(value).__name__
    return None


def paths(value: Any) -> List[str]:
    """A name for each tensor and number of an output by the keys that lead to it, such as logits or past_key_values.0.1; one that no key leads to has an
    empty one."""
    import torch

    out: List[str] = []

    def walk(v: Any, at: str) -> None:
        if isinstance(v, (torch.Tensor, bool, int, float)):
            out.append(at)
            return
        held = members(v)
        node = None if isinstance(v, (Mapping, list, tuple)) else _node(v)
        keys = [str(k) for k in v] if isinstance(v, Mapping) else _keys(type(v), node.flatten_fn(v)[1] if node is not None else None, len(held))
        for i, m in enumerate(held):
            walk(m, (f"{at}.{keys[i]}" if at else keys[i]) if keys else f"{at}.{i}" if at else "")

    walk(value, "")
    return out


def paths_of_spec(spec: Any) -> List[str]:
    """The same by what torch.export knows of the output. There is one for each leaf, None among them."""
    out: List[str] = []

    def walk(s: Any, at: str) -> None:
        if s.type is None or s.is_leaf():
            out.append(at)
            return
        children = s.children() if callable(getattr(s, "children", None)) else s.children_specs
        keys = _keys(s.type, s.context, len(children))
        for i, child in enumerate(children):
            walk(child, (f"{at}.{keys[i]}" if at else keys[i]) if keys else f"{at}.{i}" if at else "")

    walk(spec, "")
    return out


def _keys(kind: Any, context: Any, count: int) -> Optional[List[str]]:
    """The keys of a container, by what pytree keeps of it."""
    fields = getattr(kind, "_fields", None)
    if fields:
        return list(fields)
    for given in (context, *(context if isinstance(context, (list, tuple)) else ())):
        if isinstance(given, list) and len(given) == count and count and all(isinstance(k, str) for k in given):
            return list(given)
    return None


def real(tensor: Any) -> Any:
    """Complex numbers as a file has them: pairs of real ones along a new last axis."""
    import torch

    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def parts(value: Any) -> Dict[str, Any]:
    """What a tensor or a number is in a file, by what its name ends in. As torch.onnx has it, a number is a tensor without axes, and a quantized tensor
    is its integers, its scale and its zero point."""
    import torch

    if not isinstance(value, torch.Tensor):
        return {"": torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)}
    if value.dtype in (torch.qint8, torch.quint8):
        return {"_value": value.int_repr(), "_scale": torch.tensor(value.q_scale(), dtype=torch.float64), "_zero_point": torch.tensor(value.q_zero_point())}
    return {"": value}
