#!/usr/bin/env python3
"""Exports the programs that make.py made, runs them in onnxruntime, and compares with PyTorch; tokens are fed back through onnxruntime.

usage: score.py KIND --programs DIR --aton PATH --results FILE [--filter RE] [--opset N] [--jobs N] [--seconds N] [--again]

A row of FILE, tab-separated: model, step (prefill, decode, tokens, forward), source (pt2, trace, script), verdict, nodes, seconds of the export, message. Verdicts:
right (or at least as near to double precision as PyTorch, with both differences), wrong, refused (by aton), failed (in onnxruntime), torch-cannot (no program, or one that PyTorch itself runs wrongly), not-made (make.py has no
configuration that builds it, or its limits were too small). Rows that are there are kept,
unless --again; those of the models of the filter are made again. Compared are both sizes, where PyTorch's own program is right at
both. Needs numpy, onnx and onnxruntime.
"""
import argparse
import concurrent.futures
import csv
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../judge/python"))
import judge  # noqa: E402

TOLERANCE = 1e-3  # of the greatest element of an output
FIELDS = ["model", "step", "source", "verdict", "nodes", "seconds", "message"]


def text(e):
    """A message on one line, without the folders of the machine."""
    return re.sub(r"(?<![\w:/.])/(?:[\w.+-]+/)+", "", " ".join(str(e).split()))[:300]


def apart(got, want):
    """Why two arrays differ, as text."""
    scale = max(1e-3, judge.greatest(want))
    why = judge.differ(got, want, TOLERANCE, TOLERANCE * scale)
    far = judge.distance(got, want, of=scale) if why and want.dtype.kind in "fc" else np.inf
    return f"differs by {far:.2g} of the greatest element" if np.isfinite(far) else why


def nearer(got, want, exact):
    """Where PyTorch's own result is at least as far from that of double precision: both differences from it, else None."""
    finite = np.abs(exact[np.isfinite(exact)])
    if got.shape != exact.shape or got.dtype.kind != "f" or finite.size != exact.size:
        return None
    off = [float(np.abs(a - exact).max()) / max(1e-3, float(finite.max())) for a in (want, got)]
    return f"beside double precision PyTorch is off by {off[0]:.2g} of the greatest element, ONNX by {off[1]:.2g}" if off[1] <= off[0] else None


def convert(opts, folder, row, entry, arrays, output):
    """Exports a program, and gives (session, nodes, seconds)."""
    inputs = []
    if entry["file"].endswith(".pt"):
        for i, (name, axes) in enumerate(zip(entry["arguments"], entry["axes"])):
            a = arrays[f"in.0.{i}"]
            inputs += ["--input", f"{name}:" + judge.spec(a.dtype, [axes.get(str(k), n) for k, n in enumerate(a.shape)])]
    seconds = judge.export(opts.aton, os.path.join(folder, entry["file"]), output, *inputs, opset=opts.opset, seconds=opts.seconds)
    return judge.session(output, threads=1), judge.operators(output).total(), seconds


def check(opts, folder, row, entry, work):
    """(verdict, nodes, seconds, message, session) of one program."""
    if "cannot" in entry:
        return "torch-cannot", "", "", text(entry["cannot"]), None
    arrays = np.load(os.path.join(folder, row["name"] + ".npz"))
    try:
        session, n, seconds = convert(opts, folder, row, entry, arrays, os.path.join(work, entry["file"] + ".onnx"))
    except judge.Refused as e:
        return ("failed" if e.status is None else "refused"), "", "", text(e), None
    except Exception as e:
        return "failed", "", "", text(e), None
    said = "" if len(entry["samples"]) > 1 else "one size: PyTorch's program is for these only"
    for s in entry["samples"]:
        try:
            got = judge.run(session, [arrays[f"in.{s}.{i}"] for i in range(len(row["inputs"]))])
        except Exception as e:
            return "failed", n, f"{seconds:.2f}", text(f"sample {s}: {e}"), None
        for name, a, i in zip(row["outputs"], got, range(len(got))):
            want = arrays[f"out.{s}.{i}"]
            if why := apart(a, want):
                instead = nearer(a, want, arrays[f"exact.{s}.{i}"]) if f"exact.{s}.{i}" in arrays else None
                if instead is None:
                    return "wrong", n, f"{seconds:.2f}", f"sample {s}, {name}: {why}", None
                said = instead
    return "right", n, f"{seconds:.2f}", said, session


def feed(folder, what, sessions):
    """(verdict, message) of eight tokens fed back."""
    said = np.load(os.path.join(folder, "said.npz"))
    prefill, decode = what["programs"][0], what["programs"][-1]
    arrays = np.load(os.path.join(folder, "prefill.npz"))
    start = [arrays[f"in.0.{i}"] for i in range(len(prefill["inputs"]))]
    ids, mask = start[0], start[1] if len(start) > 1 else None
    kept = None
    steps = sum(1 for k in said.files if k.startswith("token."))
    for step in range(steps):
        session = sessions["prefill"] if kept is None or len(what["programs"]) == 1 else sessions["decode"]
        given = [ids] + ([mask] if mask is not None else []) + (kept or [])
        try:
            logits, *out = judge.run(session, given)
        except Exception as e:
            return "failed", text(f"token {step}: {e}")
        if why := apart(logits[:, -1], said[f"logits.{step}"]):
            return "wrong", f"token {step}: {why}"
        token = said[f"token.{step}"]
        if not np.array_equal(logits[:, -1].argmax(-1)[:, None], token):
            near = said[f"logits.{step}"]
            top = np.sort(near, -1)
            if (top[:, -1] - top[:, -2]).min() > TOLERANCE * np.abs(near).max():
                return "wrong", f"token {step} is another"
        if len(what["programs"]) == 1:
            ids = np.concatenate([ids, token], 1)
        else:
            ids, kept = token, out
        if mask is not None:
            mask = np.concatenate([mask, np.ones_like(mask[:, :1])], 1)
    return "right", ""


def score(opts, name):
    folder = os.path.join(opts.programs, opts.kind, name)
    with open(os.path.join(folder, "what.json")) as f:
        what = json.load(f)
    if "cannot" in what:
        return [[name, "all", "-", "not-made", "", "", text(what["cannot"])]]
    rows = []
    with tempfile.TemporaryDirectory() as work:
        for source in what["programs"][0]["sources"]:
            sessions, verdicts = {}, {}
            for row in what["programs"]:
                entry = row["sources"][source]
                verdict, n, seconds, message, sessions[row["name"]] = check(opts, folder, row, entry, work)
                verdicts[row["name"]] = verdict
                rows.append([name, row["name"], source, verdict, n, seconds, message])
            if not os.path.exists(os.path.join(folder, "said.npz")):
                continue
            if source not in what.get("follows", ["pt2", "trace"]) or not any(what["programs"][-1]["sources"][source].get("axes", [])):
                rows.append([name, "tokens", source, "torch-cannot", "", "", "PyTorch's own programs give other logits when tokens are fed back, or are for one length"])
            elif all(v == "right" for v in verdicts.values()):
                verdict, message = feed(folder, what, sessions)
                rows.append([name, "tokens", source, verdict, "", "", message])
            else:
                rows.append([name, "tokens", source, "refused", "", "", "a program is not right"])
    return rows


def alone(opts, name):
    """The rows of a model, made in a process of its own: a runtime that ends the process ends one model."""
    command = [sys.executable, os.path.abspath(__file__), opts.kind, "--programs", opts.programs, "--aton", opts.aton, "--opset", str(opts.opset),
               "--seconds", str(opts.seconds), "--tolerance", str(opts.tolerance), "--results", "-", "--one", name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=8 * opts.seconds)
        return json.loads(done.stdout)
    except (subprocess.TimeoutExpired, json.JSONDecodeError) as e:
        return [[name, "all", "-", "failed", "", "", text(e)]]


def main():
    global TOLERANCE
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("kind", choices=["decoders", "encoders", "mixed", "timm", "libraries"])
    arguments.add_argument("--programs", required=True)
    arguments.add_argument("--aton", required=True)
    arguments.add_argument("--results", required=True)
    arguments.add_argument("--filter", default="")
    arguments.add_argument("--opset", type=int, default=20)
    arguments.add_argument("--jobs", type=int, default=2)
    arguments.add_argument("--seconds", type=int, default=60)
    arguments.add_argument("--again", action="store_true")
    arguments.add_argument("--tolerance", type=float, default=TOLERANCE, help="of the greatest element of an output")
    arguments.add_argument("--one", help=argparse.SUPPRESS)
    opts = arguments.parse_args()
    TOLERANCE = opts.tolerance
    if opts.one:
        json.dump(score(opts, opts.one), sys.stdout)
        return 0
    rows = {}
    if os.path.exists(opts.results):
        with open(opts.results, newline="") as f:
            for r in csv.reader(f, delimiter="\t", quoting=csv.QUOTE_NONE):
                if r and r != FIELDS and not r[0].startswith("#"):
                    rows.setdefault(r[0], []).append(r)
    made = os.path.join(opts.programs, opts.kind)
    names = [n for n in sorted(os.listdir(made)) if re.search(opts.filter, n) and os.path.exists(os.path.join(made, n, "what.json"))]
    todo = [n for n in names if n not in rows or opts.again or opts.filter]
    with concurrent.futures.ThreadPoolExecutor(opts.jobs) as pool:
        for i, new in enumerate(pool.map(lambda n: alone(opts, n), todo)):
            rows[todo[i]] = new
            bad = [f"{r[1]} {r[2]} {r[3]}: {r[6][:120]}" for r in new if r[3] not in ("right", "torch-cannot")]
            print(f"{i + 1} of {len(todo)}  {todo[i]}  {'; '.join(bad)}", flush=True)
            with open(opts.results + ".part", "w", newline="") as f:
                writer = csv.writer(f, delimiter="\t", quoting=csv.QUOTE_NONE, quotechar=None, escapechar="\\", lineterminator="\n")
                writer.writerow(FIELDS)
                for n in sorted(rows):
                    writer.writerows([str(v).replace("\\", "/").replace("\t", " ") for v in r] for r in rows[n])
            os.replace(opts.results + ".part", opts.results)
    print(summary(rows))
    return 0


def summary(rows):
    """By source: how many models are right in all steps, of those that PyTorch can."""
    out = []
    missing = [n for n, all in sorted(rows.items()) if any(r[3] == "not-made" for r in all)]
    for source in sorted({r[2] for all in rows.values() for r in all} - {"-"}):
        can, cannot, others = 0, [], []
        for name, all in sorted(rows.items()):
            mine = [r for r in all if r[2] in (source, "-")]
            if name in missing:
                continue
            if any(r[3] == "torch-cannot" and r[1] != "tokens" for r in mine):
                cannot.append(name)
                continue
            can += 1
            if not all_right(mine):
                others.append(name)
        right = can - len(others)
        out.append(f"{source}: {right} of {can} right ({100 * right / max(can, 1):.1f} %), not right: {' '.join(others) or 'none'}; PyTorch cannot: {' '.join(cannot) or 'none'}")
    return "\n".join(out + [f"not made: {len(missing)}: {' '.join(missing)}"])


def all_right(rows):
    return all(r[3] == "right" or r[3] == "torch-cannot" and r[1] == "tokens" for r in rows)


if __name__ == "__main__":
    sys.exit(main())
