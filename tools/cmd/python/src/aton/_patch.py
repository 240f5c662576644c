"""torch.onnx.export by aton, for scripts that are not to be changed."""
from typing import Any, Callable, Dict

_saved: Dict[str, Callable[..., Any]] = {}


class _Patch:
    """Undoes the patch at the end of a with block."""

    def __enter__(self) -> "_Patch":
        return self

    def __exit__(self, *_: object) -> None:
        unpatch()


def patch() -> _Patch:
    """Makes torch.onnx.export go through aton, by both of its names, until unpatch or the end of a with block. torch.onnx.ONNXProgram is what that gives."""
    from ._export import export
    from ._program import ONNXProgram

    if not _saved:
        for name, module in _modules().items():
            _saved[name] = module.export
            module.export = export
            if hasattr(module, "ONNXProgram"):
                _saved[name + ".ONNXProgram"] = module.ONNXProgram
                module.ONNXProgram = ONNXProgram
    return _Patch()


def unpatch() -> None:
    """Gives torch.onnx.export back what it was."""
    for name, module in _modules().items():
        if name in _saved:
            module.export = _saved.pop(name)
        if name + ".ONNXProgram" in _saved:
            module.ONNXProgram = _saved.pop(name + ".ONNXProgram")


def original() -> Callable[..., Any]:
    """PyTorch's own torch.onnx.export."""
    import torch.onnx

    found: Callable[..., Any] = _saved.get("torch.onnx", torch.onnx.export)
    return found


def _modules() -> Dict[str, Any]:
    """The modules that have torch.onnx.export."""
    import torch.onnx
    import torch.onnx.utils

    return {"torch.onnx": torch.onnx, "torch.onnx.utils": torch.onnx.utils}
