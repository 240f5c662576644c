"""The report of an export: what was tried, and what came out."""
import os
import platform
import time
from typing import Any, List, Optional

from ._errors import ExportError
from ._program import ONNXProgram
from ._version import __version__


def write(folder: str, model: Any, log: List[str], program: Optional[ONNXProgram], error: Optional[ExportError], seconds: float, profile: bool) -> str:
    """Writes onnx_export_DATE_success.md, or _failure.md. Gives its path."""
    import torch

    name = f"onnx_export_{time.strftime('%Y-%m-%d_%H-%M-%S')}_{'success' if error is None else 'failure'}.md"
    rows = [f"# Export of {type(model).__name__}", "",
            f"aton {__version__}, PyTorch {torch.__version__}, Python {platform.python_version()}, {seconds:.1f} s", ""]
    if program is not None:
        rows += [f"Converted from a {program.source}.", "", "| input | type |", "| --- | --- |"]
        rows += [f"| {i['name']} | {i['type']} |" for i in program.result.get("inputs", [])]
        rows += ["", "| output | type |", "| --- | --- |"] + [f"| {o['name']} | {o['type']} |" for o in program.result.get("outputs", [])]
        rows += ["", "| operator | nodes |", "| --- | --- |"] + [f"| {n} | {c} |" for n, c in sorted(program.result.get("operators", {}).items())]
        rows += [""] + [f"- warning: {d}" for d in program.warnings]
    if error is not None:
        rows += [f"- {d}" for d in error.diagnostics]
    if log:
        rows += ["", "## What was said" + (", and how long it took" if profile else ""), "", "```", *log, "```"]
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(rows) + "\n")
    return path
