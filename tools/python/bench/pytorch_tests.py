"""Runs PyTorch's own tests of its exporter as they are and through aton.patch(), and tells which of those that PyTorch passes aton passes.

    python tools/python/bench/pytorch_tests.py --fetch v1.13.1 /tmp/pytorch      # once; PyTorch's files stay outside of this repository
    python tools/python/bench/pytorch_tests.py /tmp/pytorch/test/onnx \\
        --files test_pytorch_onnx_onnxruntime.py::TestONNXRuntime_opset_version_16_is_script_False_keep_initializers_as_inputs_False \\
        --out tools/python/bench/pytorch-tests.tsv

The tests are those of the version of PyTorch that runs them. The Python has torch, onnx, onnxruntime, pytest, parameterized, expecttest, and the package aton.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent


def fetch(tag, folder):
    """Gets the tests of a version from PyTorch's repository."""
    source = "https://github.com/pytorch/pytorch"
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", "--branch", tag, "--filter=blob:none", "--sparse", source, folder], check=True)
    subprocess.run(["git", "-C", folder, "sparse-checkout", "set", "test/onnx"], check=True)


def run(tests, files, select, through):
    """The result of each test: passed, skipped, or the message of its failure."""
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.xml")
        command = [sys.executable, "-W", "ignore", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=line", f"--junitxml={report}", *files]
        if select:
            command += ["-k", select]
        if through:
            command += ["-p", "through_aton"]
        path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(command, cwd=tests, env=dict(os.environ, PYTHONPATH=path, PYTHONDONTWRITEBYTECODE="1"), capture_output=True, text=True)
        if not os.path.exists(report):
            sys.exit(f"pytest ends with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        out = {}
        for case in xml.etree.ElementTree.parse(report).iter("testcase"):
            name = f"{case.get('classname')}.{case.get('name')}"
            found = [c for c in case if c.tag in ("failure", "error")]
            if found:
                out[name] = (found[0].get("message") or "failed").strip()
            else:
                out[name] = "skipped" if case.find("skipped") is not None else "passed"
        return out


def cause(message):
    """What a failure comes from."""
    refused = re.search(r"\[([\w-]+) ([\w:.]*)\]", message)
    if "ExportError" in message and refused:
        return f"refused: {refused[1]}" + (f", {refused[2]}" if refused[2] else "")
    if re.search(r"not close|not equal|Not equal|differ|shape mismatch", message):
        return "other numbers, types or shapes"
    if re.search(r"Invalid Feed Input Name|Required inputs|missing from input feed|zip|number of inputs", message):
        return "an input is kept that torch.onnx leaves out, or the other way round"
    if "onnxruntime" in message or "ONNXRuntimeError" in message:
        return "onnxruntime: " + re.sub(r"\d+", "N", message.splitlines()[0])[-100:]
    if re.search(r"DID NOT RAISE|not raised", message):
        return "an error is expected, and aton converts"
    return "other: " + re.sub(r"0x[0-9a-f]+|\d+", "N", message.splitlines()[0])[:100]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("tests", help="the folder test/onnx of PyTorch")
    p.add_argument("--fetch", metavar="TAG", help="get the tests of this version into the folder, and end")
    p.add_argument("--files", nargs="+", default=["test_pytorch_onnx_onnxruntime.py"])
    p.add_argument("--select", default="", help="as -k of pytest")
    p.add_argument("--out", help="a table of the failures")
    a = p.parse_args()
    if a.fetch:
        fetch(a.fetch, a.tests)
        return
    with concurrent.futures.ThreadPoolExecutor() as pool:
        plain, ours = pool.map(lambda through: run(a.tests, a.files, a.select, through), (False, True))
    passed = sorted(n for n, r in plain.items() if r == "passed")
    failed = {n: ours.get(n, "not run") for n in passed if ours.get(n) != "passed"}
    more = sum(r == "passed" for n, r in ours.items() if plain.get(n) not in ("passed", "skipped"))
    print(f"{len(plain)} tests; torch.onnx passes {len(passed)}; of these aton passes {len(passed) - len(failed)}; and {more} that torch.onnx fails")
    causes = collections.Counter(cause(m) for m in failed.values())
    for text, n in causes.most_common():
        print(f"{n:6} {text}")
    if a.out:
        with open(a.out, "w") as f:
            f.write("test\tcause\tmessage\n")
            for name, message in failed.items():
                first = message.splitlines()[0][:200].replace("\t", " ")
                f.write(f"{name}\t{cause(message)}\t{first}\n")


if __name__ == "__main__":
    main()
