"""Editing ONNX files: a part of one, several as one, other names and weights. Operators stay as they are."""
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
    """Keeps what computes the named outputs from the named inputs. Without outputs those of the file stay; without inputs those that are still needed."""
    return _edit("cut", [path], f, [w for flag, names in (("--inputs", inputs), ("--outputs", outputs)) for n in names for w in (flag, n)])


def join(*paths: Path, f: Optional[Path] = None, links: Optional[Mapping[str, str]] = None) -> ONNXProgram:
    """Joins files: an output becomes the input of the next file that has the same name, or that links name: {output: input}."""
    return _edit("join", paths, f, [w for out, into in (links or {}).items() for w in ("--link", f"{out}={into}")])


def rename(path: Path, names: Mapping[str, str], f: Optional[Path] = None) -> ONNXProgram:
    """Renames inputs, outputs, weights and values: {old: new}."""
    return _edit("set", [path], f, [w for old, new in names.items() for w in ("--rename", f"{old}={new}")])


def set_weights(path: Path, weights: Mapping[str, Any], f: Optional[Path] = None) -> ONNXProgram:
    """Replaces the data of weights, by name: tensors or arrays of the same type and shape."""
    import numpy as np

    with tempfile.TemporaryDirectory(prefix="aton-") as folder:
        file = os.path.join(folder, "weights.npz")
        np.savez(file, **{name: np.asarray(t.detach().cpu() if hasattr(t, "detach") else t) for name, t in weights.items()})
        return _edit("set", [path], f, [w for name in weights for w in ("--weight", f"{name}={file}")])
