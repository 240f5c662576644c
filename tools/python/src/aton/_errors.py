"""What can go wrong, as data."""
import html
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Dict, List, Optional


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


class ExportError(Error):
    """A model that cannot be converted. `diagnostics` has all reasons; a notebook shows them as a table."""

    def __init__(self, diagnostics: List[Diagnostic]):
        self.diagnostics = diagnostics
        super().__init__("\n".join(str(d) for d in diagnostics))

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(d.file)}{':' + str(d.line) if d.line else ''}</td><td><code>{html.escape(d.op)}</code></td>"
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


class VerificationError(Error):
    """An exported model that gives other numbers than the module."""
