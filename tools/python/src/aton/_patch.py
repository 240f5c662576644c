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
    """Makes torch.onnx.export go through aton, until unpatch or the end of a with block."""
    import torch.onnx

    from ._export import export

    if not _saved:
        _saved["export"] = torch.onnx.export
        torch.onnx.export = export
    return _Patch()


def unpatch() -> None:
    """Gives torch.onnx.export back what it was."""
    if _saved:
        import torch.onnx

        torch.onnx.export = _saved.pop("export")
