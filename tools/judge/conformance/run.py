#!/usr/bin/env python3
"""Exports every case of a folder, runs the models in ONNX Runtime, and compares what they give with PyTorch's outputs.

    python3 run.py --cases DIR --exporter 'bin/aton export {model} -o {output} --opset {opset} {specs:--input}' --results OUT.jsonl
                   [--filter RE] [--opset N] [--input-format archive|pt2] [--jobs N] [--share S] [--no-check]

A line of OUT.jsonl is {"id": "SUITE/ID", "suite", "result", "detail"}; result is pass or the first step that fails. Needs the packages onnx, onnxruntime and numpy.
Cases are what make_cases.py writes (tools/lib/cases says how they look).
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import sys
import tempfile

import onnx

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../judge/python"))
import judge  # noqa: E402


class Failed(Exception):
    """Its arguments are the result and the detail of a case."""


def text(e):
    return " ".join(str(e).split())[:400]


def find(folder, opts):
    for suite in sorted(os.listdir(folder)):
        for id in sorted(os.listdir(os.path.join(folder, suite))) if os.path.isdir(os.path.join(folder, suite)) else ():
            path, name = os.path.join(folder, suite, id), f"{suite}/{id}"
            model = os.path.join(path, "model.pt2" if opts.input_format == "pt2" else "model.pt")
            if not os.path.exists(os.path.join(path, "case.json")) or not os.path.exists(model) or not re.search(opts.filter, name):
                continue
            if int(hashlib.sha256(name.encode()).hexdigest()[:8], 16) / 2**32 < opts.share:
                yield name, path, model


def specs(case):
    """The inputs as --input takes them, x:f32[2,3], with the names of dynamic axes in place of their sizes."""
    tensors = iter([d["name"] for d in case["inputs"] if d["kind"] == "tensor"])  # in the order in which the specs have them

    def named(m):
        axes = case["dynamic_axes"].get(next(tensors), {})
        sizes = m[2].split(",") if m[2] else []
        return f"{m[1]}[{','.join(axes.get(str(i), s) for i, s in enumerate(sizes))}]"

    for spec in case["input_specs"]:
        name, _, type = spec.partition(":")
        yield name + ":" + re.sub(r"\b([a-z]+[0-9]*)\[([0-9,]*)\]", named, type)


def command(opts, case, model, output):
    words = []
    for w in shlex.split(opts.exporter):
        if w.startswith("{specs:"):
            for s in specs(case):
                words += [w[7:-1], s]
        else:
            words.append(w.replace("{model}", model).replace("{output}", output).replace("{opset}", str(opts.opset or case["opset"])))
    return words


def flat(values):
    for v in values:
        if isinstance(v, (list, tuple)):
            yield from flat(v)
        elif isinstance(v, dict):
            yield from flat(v.values())
        elif v is not None:
            yield v


def compare(want, about, got, case):
    want = float(want) if about["kind"] == "float" else want
    if why := judge.differ(got, want, case["rtol"], case["atol"], of_greatest=case.get("atol_of_max", 0.0)):
        raise Failed({"type": "wrong dtype", "shape": "wrong shape"}.get(why.split()[0], "wrong values"), why)


def score(opts, path, model):
    with open(os.path.join(path, "case.json")) as f:
        case = json.load(f)
    with tempfile.TemporaryDirectory() as work:
        output = os.path.join(work, "model.onnx")
        try:
            judge.command(command(opts, case, model, output), opts.timeout)
        except judge.Refused as e:
            raise Failed("export failed", text(e.stderr or e))
        if not os.path.exists(output):
            raise Failed("export failed", "no file was written")
        if not opts.no_check:
            try:
                onnx.checker.check_model(output)
            except Exception as e:
                raise Failed("invalid model", text(e))
        try:
            session = judge.session(output, threads=1)
        except Exception as e:
            raise Failed("ort load failed", text(e))
    for n, d in enumerate(case["data_sets"]):
        if opts.input_format == "pt2" and n not in case.get("pt2_data_sets", [0]):
            continue
        folder = os.path.join(path, d["dir"])
        try:
            values = dict(judge.recorded(folder, "input"))
            if not {i.name for i in session.get_inputs()} <= set(values):  # the program has other names for them
                values = list(values.values())
            got = list(flat(judge.run(session, values)))
        except Exception as e:
            raise Failed("ort run failed", text(e))
        want = judge.recorded(folder, "output")
        if len(got) != len(want):
            raise Failed("wrong shape", f"{len(got)} outputs instead of {len(want)}")
        for (_, w), about, g in zip(want, d["outputs"], got):
            compare(w, about, g, case)


def result(opts, job):
    name, path, model = job
    try:
        score(opts, path, model)
        what = "pass", ""
    except Failed as e:
        what = e.args
    except Exception as e:
        what = "harness error", f"{type(e).__name__}: {text(e)}"
    return {"id": name, "suite": name.partition("/")[0], "result": what[0], "detail": what[1]}


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--cases", required=True)
    ap.add_argument("--exporter", required=True)
    ap.add_argument("--results", required=True)
    ap.add_argument("--filter", default="")
    ap.add_argument("--opset", type=int)
    ap.add_argument("--input-format", choices=["archive", "pt2"], default="archive")
    ap.add_argument("--jobs", type=int, default=2)
    ap.add_argument("--share", type=float, default=1.0)
    ap.add_argument("--timeout", type=float, default=120)
    ap.add_argument("--no-check", action="store_true")
    opts = ap.parse_args()
    jobs = list(find(opts.cases, opts))
    if not jobs:
        sys.exit(f"run.py: {opts.cases} has no case that fits")
    with concurrent.futures.ProcessPoolExecutor(opts.jobs) as pool, open(opts.results, "w") as out:
        for r in pool.map(result, [opts] * len(jobs), jobs, chunksize=8):
            out.write(json.dumps(r) + "\n")


if __name__ == "__main__":
    main()
