"""Editing ONNX files: a part of one, several as one, other names, weights and dynamic axes. Operators stay as they are."""
import os
import tempfile
from typing import Any, List, Mapping, Optional, Sequence, Union

from ._binary import run, warn
from ._program import ONNXProgram

Path = Union[str, "os.PathLike[str]"]


def _edit(command: str, paths: Sequence[Path], f: Optional[Path], flags: List[str]) -> ONNXProgram:
    folder = tempfile.TemporaryDirectory(prefix="aton-") if f is None else None
    target = os.path.join(folder.name, "model.onnx") if folder else os.fspath(f)  # type: ignore[arg-type]
    first, *others = [os.fspath(p) for p in paths]
    result, warnings = run(command, first, *others, "-o", target, *flags, inputs="inputs")
    warn(warnings, 3)
    return ONNXProgram(target, "file", result, warnings, folder)


def cut(path: Path, f: Optional[Path] = None, *, inputs: Sequence[str] = (), outputs: Sequence[str] = ()) -> ONNXProgram:
    """Keeps the part of a model that computes some outputs from some inputs.

    Args:
        path: The ONNX file.
        f: Where the result goes, or None for a temporary file.
        inputs: Names of values that become the inputs; without any, the inputs that are still needed stay.
        outputs: Names of values that become the outputs; without any, those of the file stay.

    Returns:
        The part, as a model in its file.
    """
    return _edit("cut", [path], f, [w for flag, names in (("--inputs", inputs), ("--outputs", outputs)) for n in names for w in (flag, n)])


def join(*paths: Path, f: Optional[Path] = None, links: Optional[Mapping[str, str]] = None) -> ONNXProgram:
    """Joins models: an output of one becomes the input of the next one that has the same name.

    Args:
        *paths: The ONNX files, in order.
        f: Where the result goes, or None for a temporary file.
        links: Names that differ: {output: input}.

    Returns:
        The joined model in its file.
    """
    return _edit("join", paths, f, [w for out, into in (links or {}).items() for w in ("--link", f"{out}={into}")])


def rename(path: Path, names: Mapping[str, str], f: Optional[Path] = None) -> ONNXProgram:
    """Renames inputs, outputs, weights and values.

    Args:
        path: The ONNX file.
        names: The names: {old: new}.
        f: Where the result goes, or None for a temporary file.

    Returns:
        The model in its file.
    """
    return _edit("set", [path], f, [w for old, new in names.items() for w in ("--rename", f"{old}={new}")])


def set_weights(path: Path, weights: Mapping[str, Any], f: Optional[Path] = None) -> ONNXProgram:
    """Replaces the data of weights.

    Args:
        path: The ONNX file.
        weights: Tensors or arrays of the same type and shape, by name.
        f: Where the result goes, or None for a temporary file.

    Returns:
        The model in its file.
    """
    import numpy as np

    with tempfile.TemporaryDirectory(prefix="aton-") as folder:
        file = os.path.join(folder, "weights.npz")
        np.savez(file, **{name: np.asarray(t.detach().cpu() if hasattr(t, "detach") else t) for name, t in weights.items()})
        return _edit("set", [path], f, [w for name in weights for w in ("--weight", f"{name}={file}")])


def set_axes(path: Path, axes: Mapping[str, Mapping[int, str]], f: Optional[Path] = None) -> ONNXProgram:
    """Makes sizes that a model has built in dynamic.

    A size is followed through the operators, and shapes that have it as a number compute it. An operator that it cannot be followed through is an error.

    Args:
        path: The ONNX file.
        axes: Names of axes, by input and axis: {"x": {0: "batch"}}. Axes of one name have one size.
        f: Where the result goes, or None for a temporary file.

    Returns:
        The model in its file.
    """
    return _edit("set", [path], f, [w for name, of in axes.items() for w in ("--axes", f"{name}:" + ",".join(f"{i}={axis}" for i, axis in of.items()))])
