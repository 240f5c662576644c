#!/usr/bin/env python3
"""Make dialects/aten/schemas.txt and dialects/prim/schemas.txt.

Usage: aten_schemas.py OUT_ROOT NEW_SCHEMAS NEW_ORDER [OLD_SCHEMAS OLD_ORDER]...

A schemas file has one declaration a line as PyTorch's registry prints it; an order
file has the overloads of each operator in registration order, which is the order
that overload resolution tries them in. The first release given counts; of the
others only declarations that it has not are added, after its own, for old files,
and those of libraries.txt.
"""
import os

import sys


def load(schemas, order):
    by_name = {}
    for line in open(schemas, encoding="utf-8"):
        line = line.rstrip("\n")
        if line and line[0] != "#":
            full = line[:line.index("(")]
            op, _, overload = full.partition(".")
            by_name.setdefault(op, {})[overload] = line
    ops = {}
    for line in open(order, encoding="utf-8") if order else ():
        op, _, names = line.rstrip("\n").partition("\t")
        if op == "op" or op not in by_name:
            continue
        have = by_name[op]
        lines = []
        for n in names.split(","):
            n = "" if n == "<default>" else n
            if n in have:
                lines.append(have.pop(n))
        ops[op] = lines + [have[n] for n in sorted(have)]
    for op in by_name:
        ops.setdefault(op, [by_name[op][n] for n in sorted(by_name[op])])
    return ops


def plain(line):
    """The declaration as TorchScript sees it, for which a SymInt is an int."""
    return line.replace("SymInt", "int").replace("SymBool", "bool")


def main():
    root, files = sys.argv[1], sys.argv[2:]
    files += [os.path.join(os.path.dirname(__file__), "libraries.txt"), None]
    merged = {}
    for i in range(0, len(files), 2):
        for op, lines in load(files[i], files[i + 1]).items():
            mine = merged.setdefault(op, [])
            have = {plain(l) for l in mine}
            mine += [l for l in lines if plain(l) not in have]
    for name, keep in (("aten", lambda ns: ns != "prim"), ("prim", lambda ns: ns == "prim")):
        with open(f"{root}/dialects/{name}/schemas.txt", "w", encoding="utf-8") as f:
            f.write("# Operator declarations of PyTorch, in the order in which overloads are tried.\n"
                    "# Made by tools/gen/opgen/aten_schemas.py; do not edit.\n")
            for op in sorted(merged):
                if keep(op.split("::")[0]):
                    f.writelines(line + "\n" for line in merged[op])


if __name__ == "__main__":
    main()
