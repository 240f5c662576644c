#!/usr/bin/env python3
"""Takes the newest releases of what aton follows, makes the inputs of `make gen` from them, runs the short suites, and writes a report.

usage: follow.py [--torch PYTHON] [--cases DIR] [--filter RE] [--suites RE] [--report FILE] [--install]     (needs python3 with venv, and Go)

Two environments are made in out/follow: the judges (onnx, onnxruntime) and, without --torch, the frameworks (torch, torchvision,
transformers; gigabytes). --torch names a Python that has the frameworks. The files made are compared with those of the repository;
--install puts them in their places and runs the generators. Without it only the report is written.
"""
import argparse
import datetime
import difflib
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
OUT = os.path.join(ROOT, "out", "follow")
JUDGES, FRAMEWORKS = ["onnx", "onnxruntime"], ["torch", "torchvision", "transformers"]

# what a Python with PyTorch says: the declarations of its registry, of the namespaces that dialects/aten has
OPERATORS = """
import sys, torch
try:
    import torchvision
except ImportError:
    pass
for s in torch._C._jit_get_all_schemas():
    print(s)
"""
VERSIONS = """
import importlib.metadata, sys
for name in sys.argv[1:]:
    try:
        print(name, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        print(name, "-")
"""


def environment(name, packages):
    folder = os.path.join(OUT, name)
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade", *packages, "numpy"], check=True)
    return python


def output(*command):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def compare(path, new):
    """What differs between a file of the repository and the new text: the lines that are new and those that are gone."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        old = f.read()
    lines = [d for d in difflib.ndiff(old.splitlines(), new.splitlines()) if d[:2] in ("+ ", "- ")] if old != new else []
    return [d[2:] for d in lines if d[0] == "+"], [d[2:] for d in lines if d[0] == "-"]


def declarations(lines):
    """The full name of each declaration, name.overload."""
    return {line[:line.index("(")] for line in lines if "(" in line and not line.startswith("#")}


def listed(title, names, limit=60):
    names = sorted(names)
    text = f"{title}: {len(names)}."
    if names:
        text += "\n\n" + "\n".join(f"- `{n[:160]}`" for n in names[:limit])
        if len(names) > limit:
            text += f"\n- and {len(names) - limit} more"
    return text + "\n"


def suite(command):
    """Runs a target of make; its exit status and, of what it prints, the tables and counts."""
    print("running", " ".join(command), flush=True)
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "CASES", "FILTER")}  # what make follow is given is not for each suite
    p = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=env)
    lines = [line for line in p.stdout.replace(ROOT + os.sep, "").splitlines() if re.search(r"^\||passed|run right|^ *\w+ +\d+ +\d+ ", line)]
    if p.returncode:
        lines += (p.stdout + p.stderr).replace(ROOT + os.sep, "").splitlines()[-16:]
    return p.returncode, "\n".join(lines)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--torch", help="a Python that has torch, torchvision and transformers, instead of the newest")
    a.add_argument("--cases", help="the cases of make conformance")
    a.add_argument("--filter", default="^indexing/", help="of these cases those that match")
    a.add_argument("--suites", default="", help="only suites whose title matches")
    a.add_argument("--report", default=os.path.join(ROOT, "docs", "follow.md"))
    a.add_argument("--install", action="store_true")
    o = a.parse_args()
    os.makedirs(OUT, exist_ok=True)
    judges = environment("judges", JUDGES)
    frameworks = o.torch or environment("frameworks", FRAMEWORKS)
    versions = output(judges, "-c", VERSIONS, *JUDGES) + output(frameworks, "-c", VERSIONS, *FRAMEWORKS)

    report = ["# What the newest releases changed\n",
              f"Written by `make follow` on {datetime.date.today()}, with {', '.join(versions.splitlines())}.\n",
              "The parts below compare what these releases have with the files of the repository.\n"]
    changed = False
    for path, script in [("dialects/onnx/schemas.txt", "schemas.py"), ("dialects/onnx/ort_kernels.tsv", "kernels.py")]:
        text = output(judges, os.path.join(ROOT, "tools", "gen", "onnxgen", script))
        new, gone = compare(path, text)
        report.append(f"## {path}\n\n" + (listed("Lines that are new", new) + "\n" + listed("Lines that are gone", gone) if new or gone else "No change.\n"))
        if o.install and (new or gone):
            with open(os.path.join(ROOT, path), "w", encoding="utf-8") as f:
                f.write(text)
            changed = True
    if changed:
        subprocess.run(["go", "run", "./tools/gen/onnxgen/cmd/onnxgen"], cwd=ROOT, check=True)

    registry = output(frameworks, "-c", OPERATORS).splitlines()
    with open(os.path.join(OUT, "schemas.txt"), "w", encoding="utf-8") as f:
        f.write("\n".join(registry) + "\n")
    have = set()
    for name in ("aten", "prim"):
        with open(os.path.join(ROOT, "dialects", name, "schemas.txt"), encoding="utf-8") as f:
            have |= declarations(f)
    spaces = {name.split("::")[0] for name in have}
    unknown = {name for name in declarations(registry) if name.split("::")[0] in spaces} - have
    other = {name.split("::")[0] for name in declarations(registry)} - spaces
    report.append("## Operators of PyTorch\n\n" + listed("Overloads that `dialects/aten/schemas.txt` and `dialects/prim/schemas.txt` do not have", unknown)
                  + "\n" + listed("Namespaces that they do not have", other))

    run = [("ONNX's node tests in the interpreter", ["make", "-s", "node-tests"]), ("ONNX's node tests at other opsets", ["make", "-s", "node-rewrites"]),
           ("Programs on the edges of numbers", ["make", "-s", "conformance-edges"])]
    if o.cases:
        run.append((f"Cases of PyTorch that match {o.filter}", ["make", "-s", "conformance", "QUICK=1", f"FILTER={o.filter}", f"CASES={o.cases}"]))
    failed = False
    for title, command in run:
        if not re.search(o.suites, title):
            report.append(f"## {title}: not run\n")
            continue
        code, text = suite(command + [f"PYTHON={judges}"])
        failed |= code != 0
        report.append(f"## {title}: {'holds' if code == 0 else 'does not hold'}\n\n```\n{text}\n```\n")
    with open(o.report, "w", encoding="utf-8") as f:
        f.write("\n".join(report))
    print(o.report)
    sys.exit(1 if failed else 0)


main()
