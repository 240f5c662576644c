"""PyTorch models to ONNX, with the interface of torch.onnx.

    import aton
    aton.export(model, (x,), "model.onnx", input_names=["x"], dynamic_axes={"x": {0: "batch"}})

The work is done by a static binary in the wheel; PyTorch only saves the model. See `export` for what to give, and
`aton --help` for the command.
"""
from ._binary import find_binary
from ._errors import Diagnostic, Error, ExportError, ExportWarning, VerificationError
from ._export import check, convert, convert_version, export, optimize, verify
from ._patch import patch, unpatch
from ._program import ONNXProgram
from ._rules import Rule, rule
from ._surgery import cut, join, rename, set_axes, set_weights
from ._transformers import export_transformers
from ._version import __version__

__all__ = [
    "Diagnostic",
    "Error",
    "ExportError",
    "ExportWarning",
    "ONNXProgram",
    "Rule",
    "VerificationError",
    "__version__",
    "check",
    "convert",
    "convert_version",
    "cut",
    "export",
    "export_transformers",
    "find_binary",
    "join",
    "optimize",
    "patch",
    "rename",
    "rule",
    "set_axes",
    "set_weights",
    "unpatch",
    "verify",
]
