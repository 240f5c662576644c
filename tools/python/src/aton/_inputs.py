"""What the binary is told of the inputs: names, element types, sizes, the names of dynamic axes."""
import re
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Union

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
    return s if s and not s[0].isdigit() else "_" + s


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
    """The dynamic axes of the tensors in an argument by what torch.export takes as its dynamic_shapes."""
    import torch

    if isinstance(value, torch.Tensor):
        given = shapes.items() if isinstance(shapes, Mapping) else enumerate(shapes or ())
        yield {int(k): symbol(getattr(d, "__name__", "") or (d if isinstance(d, str) else f"{name}_{k}")) for k, d in given if d is not None and not isinstance(d, int)}
    elif isinstance(value, Mapping):
        for k, v in value.items():
            yield from axes_of_shapes((shapes or {}).get(k), v, f"{name}_{k}")
    elif isinstance(value, (list, tuple)):
        for i, v in enumerate(value):
            yield from axes_of_shapes(shapes[i] if shapes else None, v, f"{name}_{i}")


def quote(text: str) -> str:
    """A string in double quotes."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def leaves(value: Any, numbers: bool = False) -> List[Any]:
    """The tensors in nested containers, depth first, dicts in their order. With numbers, these too."""
    import torch

    if isinstance(value, torch.Tensor) or numbers and isinstance(value, (bool, int, float)):
        return [value]
    if isinstance(value, Mapping):
        return [t for v in value.values() for t in leaves(v, numbers)]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in leaves(v, numbers)]
    return []


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
