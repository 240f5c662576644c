"""Runs tests/test_torch_onnx.py with PyTorch's exporter and through aton.patch(), and writes a table of what each passes.

    python tools/cmd/python/bench/promises.py --out tools/cmd/python/bench/promises.tsv

The Python has torch, onnx, onnxruntime, onnxscript, transformers, pytest; ATON_BINARY names the binary of aton.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TESTS = HERE.parent / "tests"


def run(exporter):
    """The result of each check, by its name."""
    with tempfile.TemporaryDirectory() as folder:
        results = pathlib.Path(folder) / "results.jsonl"
        path = os.pathsep.join([str(HERE), str(HERE.parent / "src"), os.environ.get("PYTHONPATH", "")])
        env = dict(os.environ, PYTHONPATH=path, PYTHONDONTWRITEBYTECODE="1", ATON_RESULTS=str(results), ATON_EXPORTER=exporter)
        subprocess.run([sys.executable, "-W", "ignore", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no", "-p", "recorded", "test_torch_onnx.py"],
                       cwd=TESTS, env=env, stdout=subprocess.DEVNULL)
        with open(results) as f:
            return dict(json.loads(line) for line in f)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--out", required=True)
    a = p.parse_args()
    torch, aton = run("torch"), run("aton")
    with open(a.out, "w") as f:
        f.write("check\ttorch.onnx\taton\n")
        for test in aton:
            said = [r.get(test, "not run").splitlines()[0] for r in (torch, aton)]
            words = ["yes" if s == "passed" else "no" for s in said]
            f.write("\t".join([test.rpartition("::test_")[2].replace("_", " "), *words]) + "\n")
    for name, r in (("torch.onnx", torch), ("aton", aton)):
        print(name, dict(collections.Counter("passed" if v == "passed" else "failed" for v in r.values())))
    for name, r in (("torch.onnx", torch), ("aton", aton)):
        for test, v in r.items():
            if v != "passed":
                print(f"{name}: {test}: {v.splitlines()[0][:150]}")


if __name__ == "__main__":
    main()
