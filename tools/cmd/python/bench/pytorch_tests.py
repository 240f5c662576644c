"""Runs PyTorch's own tests of its exporter as they are and through aton.patch(), and tells which of those that PyTorch passes aton passes.

    python tools/cmd/python/bench/pytorch_tests.py --fetch v1.13.1 /tmp/pytorch      # once; PyTorch's files stay outside of this repository
    python tools/cmd/python/bench/pytorch_tests.py /tmp/pytorch/test/onnx \\
        --files test_pytorch_onnx_onnxruntime.py::TestONNXRuntime_opset_version_16_is_script_False_keep_initializers_as_inputs_False \\
        --out tools/cmd/python/bench/pytorch-tests.tsv

The tests are those of the version of PyTorch that runs them. The Python has torch, onnx, onnxruntime, pytest, parameterized, expecttest, and the package aton.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def fetch(tag, folder):
    """Gets the tests of a version from PyTorch's repository."""
    source = "https://github.com/pytorch/pytorch"
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", "--branch", tag, "--filter=blob:none", "--sparse", source, folder], check=True)
    subprocess.run(["git", "-C", folder, "sparse-checkout", "set", "test/onnx"], check=True)


def run(tests, files, select, through, results):
    """The result of each test: passed, skipped, crashed, or the message of its failure. Those that the file of results has are not run again."""
    command = [sys.executable, "-W", "ignore", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no", "-p", "recorded", *files]
    if select:
        command += ["-k", select]
    if through:
        command += ["-p", "through_aton"]
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    env = dict(os.environ, PYTHONPATH=path, PYTHONDONTWRITEBYTECODE="1", ATON_RESULTS=str(results))
    while subprocess.run(command, cwd=tests, env=env, stdout=subprocess.DEVNULL).returncode < 0:  # a test took the process with it
        pass
    if not results.exists():
        raise SystemExit(f"pytest ran none of {' '.join(files)}; see why: cd {tests} && {' '.join(command[:4])} --collect-only {' '.join(files)}")
    with open(results) as f:
        return dict(json.loads(line) for line in f)


def cause(message):
    """What a failure comes from."""
    refused = re.search(r"\[([\w-]+) ([\w:.]*)\]", message)
    if "ExportError" in message and refused:
        return f"refused: {refused[1]}" + (f", {refused[2]}" if refused[2] else "")
    kinds = {
        r"not close|not equal|Not equal|attribute '(shape|dtype)'": "other numbers, types or shapes",
        r"too many positional inputs|Invalid Feed Input Name|are missing from input feed": "an input is there that torch.onnx leaves out, or the other way round",
        r"inputs of torch\.q\w+ are not supported": "refused: a quantized tensor as an input",
        r"ONNXRuntimeError": "onnxruntime cannot run the file",
        r"DID NOT RAISE|not raised": "an error is expected, and aton converts",
    }
    for pattern, text in kinds.items():
        if re.search(pattern, message):
            return text
    return "other: " + re.sub(r"0x[0-9a-f]+|\d+", "N", message.splitlines()[0])[:100]


def part(test):
    """The file and the class of a test."""
    return test.rpartition("::")[0]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("tests", help="the folder test/onnx of PyTorch")
    p.add_argument("--fetch", metavar="TAG", help="get the tests of this version into the folder, and end")
    p.add_argument("--files", nargs="+", default=["test_pytorch_onnx_onnxruntime.py"])
    p.add_argument("--select", default="", help="as -k of pytest")
    p.add_argument("--work", type=pathlib.Path, default=pathlib.Path("out/pytorch-tests"), help="the folder of the results so far")
    p.add_argument("--out", help="a table of the failures")
    a = p.parse_args()
    if a.fetch:
        fetch(a.fetch, a.tests)
        return
    a.work.mkdir(parents=True, exist_ok=True)
    work = a.work.resolve()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        plain, ours = pool.map(lambda through: run(a.tests, a.files, a.select, through, work / ("aton.jsonl" if through else "torch.jsonl")), (False, True))
    passed = sorted(n for n, r in plain.items() if r == "passed")
    failed = {n: ours.get(n, "not run") for n in passed if ours.get(n) != "passed"}
    more = sum(r == "passed" for n, r in ours.items() if plain.get(n) not in ("passed", "skipped"))
    classes = sorted({part(n) for n in plain})
    for c in classes:
        of = [n for n in passed if part(n) == c]
        print(f"{c}: {sum(part(n) == c for n in plain)} tests; torch.onnx passes {len(of)}; of these aton passes {sum(n not in failed for n in of)}")
    print(f"together: {len(plain)} tests; torch.onnx passes {len(passed)}; of these aton passes {len(passed) - len(failed)}; and {more} that torch.onnx fails")
    causes = collections.Counter((cause(m), part(n)) for n, m in failed.items())
    for text in sorted({t for t, _ in causes}, key=lambda t: -sum(causes[t, c] for c in classes)):
        print("| " + " | ".join([*(str(causes[text, c] or "") for c in classes), text]) + " |")
    if a.out:
        with open(a.out, "w") as f:
            f.write("test\tcause\tmessage\n")
            for name, message in failed.items():
                here = message.splitlines()[0].replace(str(pathlib.Path(a.tests).resolve()) + os.sep, "")
                first = here[:200].replace("\t", " ")
                f.write(f"{name}\t{cause(message)}\t{first}\n")


if __name__ == "__main__":
    main()
