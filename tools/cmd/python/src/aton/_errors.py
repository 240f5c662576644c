"""What can go wrong, as data."""
import html
import linecache
import os
import re
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Dict, List, Optional, Tuple

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class Error(Exception):
    """The base of all errors of this package."""


class ExportWarning(UserWarning):
    """What a model takes for granted, or what is not as it was in PyTorch."""


@dataclass(frozen=True)
class Diagnostic:
    """One thing that is wrong or worth knowing, at the line of the user's program if that is known."""

    id: str
    level: str
    message: str
    op: str = ""
    file: str = ""
    line: int = 0
    hint: str = ""
    #: all that the binary said
    data: Dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, d: Dict[str, Any]) -> "Diagnostic":
        """Reads one of the binary's."""
        return cls(id=d.get("id", ""), level=d.get("level", "error"), message=d.get("message", ""), op=d.get("op", ""),
                   file=d.get("file", ""), line=int(d.get("line", 0)), hint=d.get("hint", ""), data=d)

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.line else f"{self.file}: " if self.file else ""
        op = f"{self.op}: " if self.op else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}{op}{self.message}{hint}"


def _source(d: Diagnostic) -> str:
    """The line of the program as HTML, where its file is at hand: a cell of a notebook is, too."""
    text = linecache.getline(d.file, d.line).strip() if d.file and d.line else ""
    return f"<br><code>{html.escape(text)}</code>" if text else ""


class ExportError(Error):
    """A model that cannot be converted. `diagnostics` has all reasons; a notebook shows them as a table. `log` is what PyTorch said of the attempts to save it."""

    def __init__(self, diagnostics: List[Diagnostic], baked: bool = False):
        self.diagnostics = diagnostics
        self.log = ""
        #: the model can be traced, and the trace would be wrong for other inputs
        self.baked = baked
        super().__init__("\n".join(str(d) for d in diagnostics))

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(d.file)}{':' + str(d.line) if d.line else ''}{_source(d)}</td><td><code>{html.escape(d.op)}</code></td>"
            f"<td>{html.escape(d.message)}</td><td>{html.escape(d.hint)}</td><td>{html.escape(d.id)}</td></tr>"
            for d in self.diagnostics)
        return f"<table><tr><th>line</th><th>operator</th><th>what is wrong</th><th>what to do</th><th>identifier</th></tr>{rows}</table>"

    def _render_traceback_(self) -> List[str]:
        """What IPython writes for an error that nobody catches: the user's calls, without those in this package. In a notebook the table stands above
        them, since IPython does not ask an exception for HTML."""
        from IPython import get_ipython
        from IPython.display import HTML, display

        shell = get_ipython()
        if hasattr(shell, "kernel"):
            display(HTML(self._repr_html_()))
        frames: List[TracebackType] = []
        at = self.__traceback__
        while at is not None and at.tb_frame.f_globals.get("__package__") != __package__:
            frames.append(at)
            at = at.tb_next
        shown: Optional[TracebackType] = None
        for t in reversed(frames):
            shown = TracebackType(shown, t.tb_frame, t.tb_lasti, t.tb_lineno)
        lines: List[str] = shell.InteractiveTB.structured_traceback(type(self), self, shown, tb_offset=1)
        return lines


class ArgumentError(ExportError, ValueError):
    """An argument of this package's functions that is not what it must be."""

    def __init__(self, argument: str, message: str):
        super().__init__([Diagnostic("argument", "error", message)])
        #: the name of the argument
        self.argument = argument


def failure(tool: str, e: BaseException) -> Diagnostic:
    """What a tool of PyTorch says as it fails, at the line of the user's program if that is known: the first lines of it, without traces and logs."""
    lines = [line.strip() for line in (str(e).strip() or type(e).__name__).splitlines()]
    text = next((line.rstrip(":") for line in lines if line and not line.startswith("File ")), lines[0])
    file, line = _place(e, str(e))
    return Diagnostic(tool, "error", f"{tool}: {text[:400]}", file=file, line=line)


def _place(e: BaseException, text: str) -> Tuple[str, int]:
    """The innermost line of the user's program in the traceback of an error or in its text."""
    places: List[Tuple[str, int]] = []
    at = e.__traceback__
    while at is not None:
        places.append((at.tb_frame.f_code.co_filename, at.tb_lineno))
        at = at.tb_next
    places += [(m[1], int(m[2])) for m in re.finditer(r'File "([^"]+)", line (\d+)', text)]
    own = [p for p in places if not any(part in p[0] for part in (_PACKAGE, os.sep + "torch" + os.sep, "<"))]
    return (own or [("", 0)])[-1]


#: what the flags of the binary are called here
_WORDS = {"input-names": "input_names", "output-names": "output_names", "opset": "opset_version", "input": "dynamic_axes", "output-axes": "dynamic_axes",
          "training": "training", "eval": "training", "custom-opset": "custom_opsets", "operator-export-type": "operator_export_type", "rules": "rules", "state": "state",
          "target": "target", "external-data": "external_data", "no-weights": "export_params=False", "no-constant-folding": "do_constant_folding=False",
          "keep-initializers-as-inputs": "keep_initializers_as_inputs=True", "modules-as-functions": "export_modules_as_functions", "verbose": "verbose"}
_FLAG = re.compile(r"(?<![\w-])--([a-z][a-z-]*)(?:[ =]((?:[A-Z]+|\d+)\b))?")


def in_python(text: str, inputs: str = "dynamic_axes") -> str:
    """A message of the binary in the words of this package: opset_version, not --opset."""
    def word(m: "re.Match[str]") -> str:
        name = inputs if m[1] == "input" else _WORDS.get(m[1])
        if name is None:
            return f"options=['--{m[1]}'" + (f", '{m[2]}']" if m[2] else "]")
        value = f"'{m[2]}'" if m[2] and not m[2].isdigit() else m[2]
        return f"{name}={value}" if m[2] else name

    return _FLAG.sub(word, text)


class VerificationError(Error):
    """An exported model that gives other numbers than the module."""
