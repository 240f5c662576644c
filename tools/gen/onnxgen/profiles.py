#!/usr/bin/env python3
"""Writes dialects/onnx/profiles/*.txt: the operators of runtimes, from the pages on which they list them.

usage: profiles.py [FOLDER]     pages that are in FOLDER (NAME.md) are not fetched

A page is taken at a commit. Names are those of dialects/onnx/schemas.txt; what the standard has not, such as operators that it had once, is left out.
"""
import os
import re
import sys
import urllib.request

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
OUT = os.path.join(ROOT, "dialects", "onnx", "profiles")

# name: what it is, repository, commit, path
SOURCES = {
    "tensorrt": ("TensorRT 10.0, by its parser of ONNX", "onnx/onnx-tensorrt", "96e781103cfc4adf4a6bb557e94bac8e693f6f4c", "docs/operators.md"),
    "openvino": ("OpenVINO, by its frontend for ONNX", "openvinotoolkit/openvino", "0ae60f0ffec990b581cf29cae47563090e5deca0", "src/frontends/onnx/docs/supported_ops.md"),
    "coreml": ("CoreML, by onnxruntime's provider with ML programs", "microsoft/onnxruntime", "04f568d869ec533a48f29f67f9842ddf694d7ab1", "tools/ci_build/github/apple/coreml_supported_mlprogram_ops.md"),
    "webnn": ("WebNN, by onnxruntime-web's provider", "microsoft/onnxruntime", "00193129235c576e607799dc590e855c413740c7", "js/web/docs/webnn-operators.md"),
    "ort-mobile": ("the package onnxruntime-mobile", "microsoft/onnxruntime", "3de3fc0d5603ef51d89054d08176dbf8786a5e4c", "tools/ci_build/github/android/mobile_package.required_operators.config"),
}


def rows(text):
    """The cells of the rows of the tables in a page."""
    for line in text.splitlines():
        if line.startswith("|"):
            yield [cell.strip() for cell in line.strip().strip("|").split("|")]


def tensorrt(text):
    return [("", cells[0]) for cells in rows(text) if len(cells) > 1 and cells[1].startswith("Y")]


def openvino(text):
    return [(cells[0], cells[1]) for cells in rows(text) if len(cells) > 2 and re.match(r"\d", cells[2])]


def coreml(text):
    return [tuple(cells[0].split(":")) for cells in rows(text) if ":" in cells[0] and "--" not in cells[0]]


def webnn(text):
    return [("", cells[0]) for cells in rows(text) if len(cells) > 1 and cells[1].startswith("ai.onnx")]


def mobile(text):
    lines = [line.split(";") for line in text.splitlines() if line and line[0] not in "#!"]
    return [(domain, name) for domain, _, names in lines for name in names.split(",")]


READERS = {"tensorrt": tensorrt, "openvino": openvino, "coreml": coreml, "webnn": webnn, "ort-mobile": mobile}


def standard():
    """The operators of the standard, by their names in small letters."""
    with open(os.path.join(ROOT, "dialects", "onnx", "schemas.txt"), encoding="utf-8") as f:
        return {m[1].lower(): m[1] for m in re.finditer(r"^onnx::(\w+)@", f.read(), re.M)}


def main():
    names = standard()
    for name, (what, repository, commit, path) in SOURCES.items():
        local = os.path.join(sys.argv[1], name + ".md") if len(sys.argv) > 1 else ""
        if os.path.exists(local):
            with open(local, encoding="utf-8") as f:
                text = f.read()
        else:
            with urllib.request.urlopen(f"https://raw.githubusercontent.com/{repository}/{commit}/{path}") as f:
                text = f.read().decode()
        operators = set()
        for domain, op in READERS[name](text):
            if domain in ("", "ai.onnx"):
                if op.lower() in names:
                    operators.add(names[op.lower()])
            elif domain == "com.microsoft":
                operators.add(f"{domain}::{op}")
        with open(os.path.join(OUT, name + ".txt"), "w", encoding="utf-8") as f:
            f.write(f"# {what}\n# https://github.com/{repository}/blob/{commit}/{path}\n# written by tools/gen/onnxgen/profiles.py\n")
            f.writelines(op + "\n" for op in sorted(operators))
        print(f"{name}: {len(operators)} operators")


if __name__ == "__main__":
    main()
