"""python -m aton: the command."""
import os
import subprocess
import sys

from ._binary import find_binary


def main() -> int:
    """Runs the binary with the arguments of this process."""
    binary = find_binary()
    if sys.platform == "win32":  # exec there leaves the parent before the child has written
        return subprocess.run([binary, *sys.argv[1:]]).returncode
    os.execv(binary, [binary, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
