#!/usr/bin/env python3
"""Exports every case of a folder, runs the models in ONNX Runtime, and compares what they give with PyTorch's outputs.

    python3 run.py --cases DIR --exporter 'bin/aton export {model} -o {output} --opset {opset} {specs:--input}' --results OUT.jsonl
                   [--filter RE] [--opset N] [--input-format archive|pt2] [--jobs N] [--share S] [--no-check]

A line of OUT.jsonl is {"id": "SUITE/ID", "suite", "result", "detail"}; result is pass or the first step that fails. Needs the packages onnx, onnxruntime and numpy.
Cases are what make_cases.py writes (tools/lib/cases says how they look).
"""
import argparse
import concurrent.futures
import ctypes
import hashlib
import json
import math
import os
import re
import shlex
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort

ort.set_default_logger_severity(4)
BFLOAT16 = onnx.TensorProto.BFLOAT16


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


def tensor(path):
    """(name, array); bfloat16 widened to float32."""
    with open(path, "rb") as f:
        t = onnx.TensorProto.FromString(f.read())
    if t.data_type == BFLOAT16:
        bits = np.frombuffer(t.raw_data, dtype="<u2").astype("<u4") << 16
        return t.name, bits.view("<f4").reshape(tuple(t.dims)), BFLOAT16
    return t.name, onnx.numpy_helper.to_array(t), t.data_type


def tensors(folder, kind):
    out = []
    while os.path.exists(path := os.path.join(folder, f"{kind}_{len(out)}.pb")):
        out.append(tensor(path))
    return out


def given(array, type):
    if type != BFLOAT16:
        return ort.OrtValue.ortvalue_from_numpy(np.asarray(array, order="C"))
    bits = (np.asarray(array, "<f4", order="C").view("<u4") >> 16).astype("<u2")
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, BFLOAT16)


def flat(values):
    for v in values:
        if isinstance(v, (list, tuple)):
            yield from flat(v)
        elif isinstance(v, dict):
            yield from flat(v.values())
        elif v is not None:
            yield v


def plain(v):
    """What the runtime gives as a numpy array; bfloat16 widened."""
    if not v.has_value():
        return None
    if v.element_type() == BFLOAT16:  # numpy has no such type
        n = math.prod(v.shape())
        bits = np.frombuffer(ctypes.string_at(v.data_ptr(), 2 * n), "<u2").astype("<u4") << 16 if n else np.empty(0, "<u4")
        return bits.view("<f4").reshape(v.shape())
    return v.numpy()


def compare(want, type, kind, got, case):
    if kind == "float" and got.dtype == np.float32:  # a number of Python's
        want = want.astype(np.float32)
    if got.dtype != want.dtype:
        raise Failed("wrong dtype", f"{got.dtype} instead of {want.dtype}")
    if got.shape != want.shape:
        raise Failed("wrong shape", f"{got.shape} instead of {want.shape}")
    if want.dtype.kind != "f":
        if n := int((got != want).sum()):
            raise Failed("wrong values", f"{n} of {want.size} elements differ")
        return
    a, b = want.astype(np.float64), got.astype(np.float64)
    with np.errstate(all="ignore"):
        top = float(np.abs(a[np.isfinite(a)]).max(initial=0.0))
        bad = ~np.isclose(b, a, rtol=case["rtol"], atol=case["atol"] + case.get("atol_of_max", 0.0) * top, equal_nan=True)
        if bad.any():
            raise Failed("wrong values", f"{int(bad.sum())} of {a.size} elements differ, by up to {np.nanmax(np.abs(a - b)):.3g}")


def judge(opts, path, model):
    with open(os.path.join(path, "case.json")) as f:
        case = json.load(f)
    with tempfile.TemporaryDirectory() as work:
        output = os.path.join(work, "model.onnx")
        try:
            p = subprocess.run(command(opts, case, model, output), capture_output=True, text=True, timeout=opts.timeout)
        except subprocess.TimeoutExpired:
            raise Failed("export failed", f"it takes more than {opts.timeout} s")
        if p.returncode or not os.path.exists(output):
            raise Failed("export failed", text(p.stderr))
        if not opts.no_check:
            try:
                onnx.checker.check_model(output)
            except Exception as e:
                raise Failed("invalid model", text(e))
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        try:
            session = ort.InferenceSession(output, options, providers=["CPUExecutionProvider"])
        except Exception as e:
            raise Failed("ort load failed", text(e))
    for n, d in enumerate(case["data_sets"]):
        if opts.input_format == "pt2" and n not in case.get("pt2_data_sets", [0]):
            continue
        folder = os.path.join(path, d["dir"])
        by_name = {name: (a, t) for name, a, t in tensors(folder, "input")}
        inputs = [i.name for i in session.get_inputs()]
        if not set(inputs) <= set(by_name):
            if len(inputs) != len(by_name):
                raise Failed("ort run failed", f"inputs {inputs} instead of {list(by_name)}")
            by_name = dict(zip(inputs, by_name.values()))
        want = tensors(folder, "output")
        try:
            feed = {k: given(*by_name[k]) for k in inputs}
            if any(o.type.startswith("seq") for o in session.get_outputs()):
                values = session.run(None, {k: v.numpy() for k, v in feed.items()})
            else:
                values = [plain(v) for v in session.run_with_ort_values(None, feed)]
            got = list(flat(values))
        except Exception as e:
            raise Failed("ort run failed", text(e))
        if len(got) != len(want):
            raise Failed("wrong shape", f"{len(got)} outputs instead of {len(want)}")
        for (_, w, t), about, g in zip(want, d["outputs"], got):
            compare(w, t, about["kind"], g, case)


def result(opts, job):
    name, path, model = job
    try:
        judge(opts, path, model)
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
