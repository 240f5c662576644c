"""What a trace builds in. A trace records operators; a number that Python reads from a tensor is a constant from there on, and so is each branch that it
decides. Here is what Python read, at which line, and whether another input would have given something else."""
import contextlib
import functools
import os
import sys
import warnings
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

#: methods of Tensor that give Python a value, by what they give. That of a length or an iteration is the size of the first axis
_VALUES = {"__bool__": "a truth value", "__int__": "a number", "__float__": "a number", "__index__": "a number", "__complex__": "a number", "item": "a number",
           "tolist": "a list", "numpy": "an array of NumPy", "__array__": "an array of NumPy", "is_nonzero": "a truth value", "equal": "a truth value",
           "allclose": "a truth value", "__contains__": "a truth value"}
_SIZES = {"__len__": "a length", "__iter__": "a number of iterations"}
_FUNCTIONS = ("equal", "allclose", "is_nonzero")

#: warnings of PyTorch's tracer about what is found here with more precision
_KNOWN = ("Converting a tensor to", "results are registered as constants", "Iterating over a tensor", "Using len to get")

#: operators that the values of a tensor give a shape
_SHAPED_BY_VALUES = ("nonzero", "masked_select", "unique", "unique_dim", "_unique", "_unique2", "unique_consecutive", "repeat_interleave", "bincount", "nms", "argwhere",
                     "nonzero_numpy", "_unique_consecutive")
#: operators that read nothing of their first argument but its type
_LIKE = ("ones_like", "zeros_like", "empty_like", "full_like", "rand_like", "randn_like", "new_zeros", "new_ones", "new_empty", "new_full", "size", "dim", "numel", "sym_size",
         "shape_as_tensor", "_shape_as_tensor")

#: what is the same whenever the model is run: weights and constants
_STATE = ("Constant", "GetAttr", "TracedAttr")
#: operators that draw
_RANDOM = ("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "bernoulli", "normal", "uniform_", "normal_", "bernoulli_", "random_", "exponential_",
           "multinomial", "poisson", "dropout")

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


@dataclass(frozen=True)
class Reading:
    """A value that Python read while the model was traced."""

    file: str
    line: int
    #: what Python made of the tensor
    what: str
    #: the value hangs on the data (or on chance, or on state that changes), not on sizes alone
    data: bool
    #: the sizes that it hangs on: an input by its name in the trace, and the axis, or -1 for any of them
    sizes: Tuple[Tuple[str, int], ...] = ()


@contextlib.contextmanager
def readings(found: List[Reading], others: List[Tuple[str, int, str]]) -> Iterator[None]:
    """Collects what is read while a model is traced, and what else PyTorch's tracer warns of: file, line and text. `x.data`, whose history a trace loses,
    is `x.detach()` meanwhile."""
    import torch

    inside = [False]

    def reads(original: Callable[..., Any], what: str, size: bool) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            if inside[0] or not torch.jit.is_tracing():
                return original(self, *args, **kwargs)
            inside[0] = True
            try:
                tensors = [t for t in (self, *args, *kwargs.values()) if isinstance(t, torch.Tensor)]
                _note(found, tensors, what, size)
                return original(self, *args, **kwargs)
            finally:
                inside[0] = False

        return call

    tensor = torch.Tensor
    replaced: List[Tuple[Any, str, Any]] = []

    def replace(holder: Any, name: str, new: Any) -> None:
        replaced.append((holder, name, vars(holder).get(name)))
        setattr(holder, name, new)

    data = tensor.data
    try:
        for names, size in ((_VALUES, False), (_SIZES, True)):
            for name, what in names.items():
                if hasattr(tensor, name):
                    replace(tensor, name, reads(getattr(tensor, name), what, size))
        for name in _FUNCTIONS:
            replace(torch, name, reads(getattr(torch, name), "a truth value", False))
        replace(tensor, "data", property(lambda t: t.detach() if torch.jit.is_tracing() else data.__get__(t), lambda t, v: data.__set__(t, v)))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            yield
    finally:
        for holder, name, old in reversed(replaced):
            if old is None:
                delattr(holder, name)
            else:
                setattr(holder, name, old)
    known = {(r.file, r.line) for r in found}
    for w in said:
        text = str(w.message)
        if not issubclass(w.category, torch.jit.TracerWarning) or w.filename.startswith(_PACKAGE):
            continue
        if "Converting a tensor to" in text and (w.filename, w.lineno) not in known and not _of_torch(w.filename):
            others.append((w.filename, w.lineno, text))
        elif not any(k in text for k in _KNOWN):
            others.append((w.filename, w.lineno, text))


def _note(found: List[Reading], tensors: List[Any], what: str, size: bool) -> None:
    """Notes one reading, if it hangs on an input."""
    hangs = _Hangs()
    for t in tensors:
        value = _value(t)
        if value is not None:
            (hangs.shape if size else hangs.value)(value)
    if hangs.data or hangs.sizes:
        file, number = line()
        reading = Reading(file, number, what, hangs.data, tuple(sorted(hangs.sizes)))
        if reading not in found:
            found.append(reading)


def _value(tensor: Any) -> Any:
    """The value of the graph that a tensor is, None for one that the trace does not know."""
    import torch

    try:
        return torch._C._get_value_trace(tensor)
    except RuntimeError:
        return None


class _Hangs:
    """What a value of a trace hangs on."""

    def __init__(self) -> None:
        self.data = False
        self.sizes: Set[Tuple[str, int]] = set()
        self._values: Set[int] = set()
        self._shapes: Set[int] = set()

    def value(self, v: Any) -> None:
        """Goes through what an element of a value is computed from."""
        todo = [v]
        while todo:
            v = todo.pop()
            if v.unique() in self._values:
                continue
            self._values.add(v.unique())
            node = v.node()
            kind = node.kind().rpartition("::")[2]
            if kind == "Param":
                if not str(v.type()).startswith("__torch__"):
                    self.data = True
            elif kind in _STATE:
                pass
            elif kind in _RANDOM or kind.endswith("_") and kind[:1] != "_" and next(node.inputs()).node().kind() in ("prim::GetAttr", "prim::TracedAttr"):  # or state that changes
                self.data = True
            elif kind in _LIKE:
                inputs = list(node.inputs())
                axis = inputs[1].toIValue() if kind == "size" and len(inputs) > 1 else None
                if axis is not None and inputs[0].node().kind() == "prim::Param":
                    self.sizes.add((inputs[0].debugName(), axis % max(1, len(inputs[0].type().sizes() or [0]))))
                    continue
                self.shape(inputs[0])
                todo += inputs[1:]
            else:
                todo += list(node.inputs())

    def shape(self, v: Any) -> None:
        """Goes through what the sizes of a value are computed from."""
        todo = [v]
        while todo:
            v = todo.pop()
            if v.unique() in self._shapes:
                continue
            self._shapes.add(v.unique())
            node = v.node()
            kind = node.kind().rpartition("::")[2].rstrip("_")
            if kind == "Param":
                if not str(v.type()).startswith("__torch__"):
                    self.sizes.add((v.debugName(), -1))
            elif kind in _STATE:
                pass
            elif kind in _SHAPED_BY_VALUES or kind == "index" and _by_mask(node):
                for i in node.inputs():
                    self.value(i)
            else:
                for i in node.inputs():
                    text = str(i.type())
                    if "Tensor" in text or text[:1].isupper():
                        todo.append(i)
                    else:  # a size that is given
                        self.value(i)


def _by_mask(node: Any) -> bool:
    """Reports an index by a mask."""
    indices = list(node.inputs())[1].node()
    return any(i.type().kind() == "TensorType" and i.type().scalarType() in ("Bool", "Byte") for i in indices.inputs())


def _of_torch(file: str) -> bool:
    import torch

    return file.startswith((os.path.dirname(os.path.abspath(torch.__file__)) + os.sep, _PACKAGE, "<"))


def line() -> Tuple[str, int]:
    """The line of the user's program that is run: the innermost one outside of PyTorch and of this package."""
    frame: Optional[Any] = sys._getframe(1)
    while frame is not None and _of_torch(frame.f_code.co_filename):
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("", 0)


def number_class() -> Any:
    """The class of a tensor that stands for a number of Python among the arguments: beside integers it is a float32, as a number is there, and not a
    float64."""
    global _number
    if _number is None:
        import torch

        class Number(torch.Tensor):  # type: ignore[misc]
            @classmethod
            def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Optional[Dict[str, Any]] = None) -> Any:
                with getattr(torch._C, "DisableTorchFunctionSubclass", torch._C.DisableTorchFunction)():
                    values = [*args, *(kwargs or {}).values()]
                    tensors = [t for t in values if isinstance(t, torch.Tensor) and not isinstance(t, Number)]
                    whole = bool(tensors) and not any(t.is_floating_point() or t.is_complex() for t in tensors)

                    def plain(v: Any) -> Any:
                        if not isinstance(v, Number):
                            return v
                        t = v.as_subclass(torch.Tensor)
                        return t.to(torch.get_default_dtype()) if whole and t.is_floating_point() else t

                    out = func(*(plain(a) for a in args), **{k: plain(v) for k, v in (kwargs or {}).items()})
                    # what is computed of numbers alone is a number of Python still
                    return out.as_subclass(Number) if not tensors and isinstance(out, torch.Tensor) and out.dim() == 0 else out

        _number = Number
    return _number


_number: Any = None
