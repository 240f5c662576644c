"""What is being done, while it takes long: a line on a terminal or in a notebook, which goes when the work is done."""
import contextlib
import sys
import threading
from typing import IO, Iterator, Optional

#: seconds before somebody wonders
PATIENCE = 2.0


@contextlib.contextmanager
def stage(text: str, stream: Optional[IO[str]] = None) -> Iterator[None]:
    """Tells what is being done and for how long, once a second, from PATIENCE on. Where nobody looks it is silent."""
    out = sys.stderr if stream is None else stream
    if not _watched(out):
        yield
        return
    over = threading.Event()
    width = 0

    def tell() -> None:
        nonlocal width
        seconds = PATIENCE
        wait = PATIENCE
        while not over.wait(wait):
            line = f"aton: {text} ({seconds:.0f} s)"
            width = max(width, len(line))
            out.write("\r" + line)
            out.flush()
            wait = 1.0
            seconds += wait

    thread = threading.Thread(target=tell, name="aton-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        if width:
            out.write("\r" + " " * width + "\r")  # a notebook knows no other way to clear a line
            out.flush()


def _watched(stream: Optional[IO[str]]) -> bool:
    """Reports a terminal, and the stream of a notebook."""
    if stream is None:  # pythonw has none
        return False
    return "ipykernel" in type(stream).__module__ or (hasattr(stream, "isatty") and stream.isatty())
