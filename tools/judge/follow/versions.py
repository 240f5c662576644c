#!/usr/bin/env python3
"""Tries aton's exports in several releases of onnxruntime, and writes the table of docs/versions.md.

usage: versions.py [--only RE] [--cases DIR] [--filter RE] [--write]          (needs python3 with venv, Go, and bin/aton)

Each line of versions.tsv is an environment, which is made in out/versions. Two sets are exported and run in it: the programs on the edges
of numbers (testdata/edges.tar.gz), and the cases of DIR that match a regular expression, where DIR is there. They are exported at OPSET,
which the oldest release loads. --write puts the table between the marks of docs/versions.md; the lines of releases that were not tried stay.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
PAGE = os.path.join(ROOT, "docs", "versions.md")
OPSET = 17
BEGIN, END = "<!-- versions: make versions -->\n", "<!-- end of versions -->\n"
HEAD = "| onnxruntime | onnx | numpy | edges of numbers, right | cases of PyTorch 2.15, right |\n| --- | --- | --- | --- | --- |\n"


def environment(ort, onnx, numpy):
    """The Python of an environment with these releases; None, with a line, where pip has none of them for this Python."""
    folder = os.path.join(ROOT, "out", "versions", f"ort{ort}-onnx{onnx}")
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(os.path.join(folder, "ready")):
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"onnxruntime=={ort}", f"onnx=={onnx}", f"numpy=={numpy}", "ml_dtypes"]
        p = subprocess.run(pip, capture_output=True, text=True)
        if p.returncode:
            print(f"onnxruntime {ort} is left out: {p.stderr.strip().splitlines()[-1]}")
            return None
        open(os.path.join(folder, "ready"), "w").close()
    return python


def score(python, cases, pattern, results):
    """Right and all of the cases in a folder; None where there are none."""
    command = [python, os.path.join(ROOT, "tools", "judge", "conformance", "run.py"), "--cases", cases, "--jobs", "2", "--no-check", "--results", results,
               "--opset", str(OPSET), "--filter", pattern, "--exporter", "bin/aton export {model} -o {output} --opset {opset} --repro= {specs:--input}"]
    with open(results + ".log", "w") as log:
        p = subprocess.run(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT)
    if not os.path.exists(results):
        raise SystemExit(f"{results}.log: exit status {p.returncode}")
    with open(results) as f:
        rows = [json.loads(line) for line in f]
    return sum(r["result"] == "pass" for r in rows), len(rows)


def cell(result):
    return f"{result[0]} of {result[1]}" if result else ""


def rows_of(text):
    """The lines of the table that a page has, by release of onnxruntime."""
    part = text.partition(BEGIN)[2].partition(END)[0]
    return {line.split("|")[1].strip(): line for line in part.splitlines()[2:] if line.startswith("|")}


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--only", default="", help="only releases of onnxruntime that match")
    a.add_argument("--cases", default=os.path.join(ROOT, "out", "cases"))
    a.add_argument("--filter", default="^indexing/")
    a.add_argument("--write", action="store_true")
    o = a.parse_args()
    out = os.path.join(ROOT, "out", "versions")
    edges = os.path.join(out, "edges")
    os.makedirs(edges, exist_ok=True)
    with tarfile.open(os.path.join(ROOT, "testdata", "edges.tar.gz")) as t:
        t.extractall(os.path.join(edges, "edges"))
    with open(PAGE, encoding="utf-8") as f:
        page = f.read()
    rows = rows_of(page)
    with open(os.path.join(HERE, "versions.tsv"), encoding="utf-8") as f:
        releases = [line.rstrip("\n").split("\t") for line in f if not line.startswith("#")]
    for ort, onnx, numpy in releases:
        if not re.search(o.only, ort):
            continue
        python = environment(ort, onnx, numpy)
        if python is None:
            continue
        first = score(python, edges, "", os.path.join(out, f"{ort}-edges.jsonl"))
        second = score(python, o.cases, o.filter, os.path.join(out, f"{ort}-cases.jsonl")) if os.path.isdir(o.cases) else None
        rows[ort] = f"| {ort} | {onnx} | {numpy} | {cell(first)} | {cell(second)} |"
        print(rows[ort], flush=True)
        if o.write:
            order = sorted(rows, key=lambda v: [int(n) for n in v.split(".")])
            before, _, rest = page.partition(BEGIN)
            text = before + BEGIN + HEAD + "".join(rows[v] + "\n" for v in order) + END + rest.partition(END)[2]
            with open(PAGE, "w", encoding="utf-8") as f:
                f.write(text)


main()
