"""Where the binary is, and how it is called."""
import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import warnings
from typing import Any, Dict, List, Optional, Sequence, Tuple

from ._errors import Diagnostic, Error, ExportError, ExportWarning, in_python


#: the line of the program before a message
_PLACE = re.compile(r"(\S+\.py):(\d+): (.*)")


def find_binary() -> str:
    """The path of the aton command: ATON_BINARY, that of the wheel, or that on PATH."""
    name = "aton" + (sysconfig.get_config_var("EXE") or "")
    candidates = [os.environ.get("ATON_BINARY")]
    user = {"nt": "nt_user", "darwin": "osx_framework_user"}.get(os.name, "posix_user")
    for scheme in (None, user):
        try:
            folder = sysconfig.get_path("scripts", scheme) if scheme else sysconfig.get_path("scripts")
        except KeyError:
            continue
        candidates.append(os.path.join(folder, name))
    # pip install --target puts scripts beside the package
    candidates.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin", name))
    for path in candidates:
        if path and os.path.isfile(path) and not _is_script(path):
            return path
    found = shutil.which(name)
    if found and not _is_script(found):
        return found
    raise Error("the aton binary is not there: install a wheel for this platform, or set ATON_BINARY to its path")


def _is_script(path: str) -> bool:
    """Reports a text that another program runs: the binary would call itself."""
    with open(path, "rb") as f:
        return f.read(2) == b"#!"


def run(command: str, path: str, *args: str, pass_fds: Sequence[int] = (), log: Optional[List[str]] = None,
        inputs: str = "dynamic_axes") -> Tuple[Dict[str, Any], List[Diagnostic]]:
    """Runs a command on a file with --json. Gives its result and its warnings; errors raise an ExportError. What they call inputs is the argument of that name."""
    done = subprocess.run([find_binary(), command, path, *args, "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          pass_fds=tuple(pass_fds))
    diagnostics: List[Diagnostic] = []
    for line in done.stderr.decode(errors="replace").splitlines():
        if log is not None:
            log.append(line)
        if line.startswith("{"):
            diagnostics += [Diagnostic.of(d) for d in json.loads(line).get("errors") or []]
        elif line.strip():
            warning = line.startswith("warning: ")
            text = line[len("warning: "):] if warning else line
            if pass_fds and text.startswith(path + ": "):  # a file in memory, which nobody knows
                text = text[len(path) + 2:]
            place = _PLACE.match(text)
            file, number, text = (place[1], int(place[2]), place[3]) if place else ("", 0, text)
            diagnostics.append(Diagnostic(id="warning" if warning else "failed", level="warning" if warning else "error", message=text, file=file, line=number))
    own = os.path.dirname(os.path.abspath(__file__)) + os.sep  # what a trace has for modules that no line of the user's calls
    diagnostics = [dataclasses.replace(d, file="", line=0) if d.file.startswith(own) else d for d in diagnostics]
    diagnostics = [dataclasses.replace(d, message=in_python(d.message, inputs), hint=in_python(d.hint, inputs)) for d in diagnostics]
    if done.returncode != 0:
        errors = [d for d in diagnostics if d.level == "error"]
        raise ExportError([d for d in errors if d.id != "failed"] or errors or [Diagnostic("failed", "error", f"aton ended with status {done.returncode}")])
    return json.loads(done.stdout) if done.stdout.strip() else {}, [d for d in diagnostics if d.level == "warning"]


def warn(diagnostics: List[Diagnostic], stacklevel: int) -> None:
    """Shows warnings in Python's way."""
    for d in diagnostics:
        warnings.warn(str(d), ExportWarning, stacklevel=stacklevel + 1)


def supports_descriptors() -> bool:
    """Reports whether a file in memory can be given to the binary by its number."""
    return sys.platform == "linux" and hasattr(os, "memfd_create")


def memory_file(name: str) -> Optional[int]:
    """A file in memory, None where the system has none."""
    if not supports_descriptors():
        return None
    try:
        return os.memfd_create(name, 0)
    except OSError:
        return None
