#!/usr/bin/env python3
"""Exports architectures of transformers by aton.export_transformers, which writes tokens with them, and adds a row of each to one_call.tsv.

usage: one_call.py KIND NAME,NAME,... [--seconds N]

KIND is an automatic class of transformers, AutoModelForCausalLM for one. Models are tiny, with weights drawn at random, each in a process of its own. The package aton and
ATON_BINARY have to be there. "refused" is an ExportError, "wrong" a VerificationError, and "not made" a model that transformers itself does not make or run.
"""
import argparse
import csv
import multiprocessing
import os
import sys
import tempfile
import warnings

import torch
import transformers

import aton
import configs

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "one_call.tsv")
COLUMNS = ["kind", "model", "verdict", "nodes", "message"]


def short(error):
    return " ".join(str(error).split())[:200]


def row(kind, name):
    """What becomes of an architecture: a verdict, nodes by file, and what is said."""
    try:
        model = configs.either(lambda name, thin: configs.instance(kind.from_config, configs.tiny(name, thin), name, thin), name)
    except Exception as e:
        return "not made", "", short(e)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            programs = aton.export_transformers(model, folder)
        except aton.VerificationError as e:
            return "wrong", "", short(e)
        except aton.ExportError as e:
            return "refused", "", short(e.diagnostics[0].message)
        nodes = [sum(n for k, n in p.result["operators"].items() if k != "onnx::Constant") for p in programs.values()]
        return "right", " ".join(map(str, nodes)), short("; ".join(w.message for p in programs.values() for w in p.warnings))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("kind")
    parser.add_argument("names")
    parser.add_argument("--seconds", type=float, default=300)
    options = parser.parse_args()
    kind = getattr(transformers, options.kind)
    torch.set_num_threads(1)
    for name in options.names.split(","):
        with multiprocessing.get_context("fork").Pool(1) as pool:
            try:
                found = pool.apply_async(row, (kind, name)).get(options.seconds)
            except multiprocessing.TimeoutError:
                found = "not made", "", f"more than {options.seconds:.0f} s"
        rows = {}
        if os.path.exists(TABLE):
            with open(TABLE, newline="") as f:
                rows = {(r["kind"], r["model"]): r for r in csv.DictReader(f, delimiter="\t")}
        rows[options.kind, name] = dict(zip(COLUMNS, (options.kind, name, *found)))
        with open(TABLE, "w", newline="") as f:
            writer = csv.DictWriter(f, COLUMNS, delimiter="\t", lineterminator="\n")
            writer.writeheader()
            writer.writerows(r for _, r in sorted(rows.items()))
        print(options.kind, name, *found, sep="\t", flush=True)


if __name__ == "__main__":
    sys.exit(main())
