"""Runs the examples, each in a folder of its own, and writes what they say into README.md. Fails if one of them fails."""
import importlib.metadata
import os
import pathlib
import subprocess
import sys
import tempfile
import time

FOLDER = pathlib.Path(__file__).resolve().parent
BEGIN, END = "<!-- results: make gallery -->\n", "<!-- end of results -->"


def main():
    rows, failed = [], []
    for path in sorted(FOLDER.glob("*.py")):
        if path.name == "run.py":
            continue
        began = time.time()
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-W", "ignore", str(path)], cwd=folder, capture_output=True, text=True, env=dict(os.environ, TOKENIZERS_PARALLELISM="false"))
        said = (done.stdout.strip().splitlines() or [""])[-1]
        if done.returncode != 0 or not said.startswith(path.stem + ": "):
            failed.append(path.name)
            print(f"{path.name} fails:\n{done.stdout}{done.stderr}", file=sys.stderr)
            continue
        print(f"{said} ({time.time() - began:.0f} s)", flush=True)
        rows.append(f"| [{path.stem}]({path.name}) | {path.read_text().split(chr(34) * 3)[1]} | {said.partition(': ')[2]} |\n")
    if failed:
        sys.exit(f"{len(failed)} examples fail: {', '.join(failed)}")
    versions = ", ".join(f"{n} {importlib.metadata.version(n)}" for n in ("torch", "torchvision", "transformers", "onnxscript", "onnxruntime"))
    page = FOLDER / "README.md"
    before, rest = page.read_text().split(BEGIN)
    table = "| | what it shows | what was run |\n| --- | --- | --- |\n" + "".join(rows)
    page.write_text(before + BEGIN + table + f"\nWith {versions}.\n" + END + rest.split(END)[1])


if __name__ == "__main__":
    main()
