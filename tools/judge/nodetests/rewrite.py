#!/usr/bin/env python3
"""Rewrites ONNX's node tests to other opsets, runs them again in onnxruntime, and prints a table.

usage: rewrite.py FOLDER [--opsets 9,13,17,21,26] [--peer] [--jobs 2] [--refusals 12]     (needs onnx, onnxruntime, numpy)

FOLDER is what generate.py wrote. A test counts that onnxruntime loads and runs right as it is. The command in
tools/judge/nodetests/rewrite does the exports; --peer has onnx.version_converter do the same beside it. A rewritten test is
  right    it loads, is at the opset that was asked for, and gives the recorded outputs,
  refused  by name: no file was written,
  wrong    anything else: other outputs, another opset, does not load, a panic, a crash of onnxruntime.
The exit status is 1 if aton has a wrong one or fewer right ones than FLOORS. FOLDER/rewrite.tsv has a line for each test, opset and converter.
"""
import argparse
import collections
import json
import os
import re
import subprocess
import sys
import threading

FLOORS = {9: 0.86, 13: 0.955, 17: 0.97, 21: 0.99, 26: 0.999}  # measured: a fall is an error


# ---------------------------------------------------------------- a worker: runs models, one a line

def numpy_of(path):
    """What the file of a recorded input or output holds: an array, a list of them, or None."""
    import glob

    import onnx

    if os.path.exists(path + ".none"):
        return None
    if os.path.isdir(path + ".seq"):
        return [numpy_of(p[:-3]) for p in sorted(glob.glob(path + ".seq/*.pb"))]
    t = onnx.TensorProto()
    with open(path + ".pb", "rb") as f:
        t.ParseFromString(f.read())
    return onnx.numpy_helper.to_array(t)


def recorded(folder, what):
    values = []
    while any(os.path.exists(os.path.join(folder, f"data_0/{what}_{len(values)}{e}")) for e in (".pb", ".seq", ".none")):
        values.append(numpy_of(os.path.join(folder, f"data_0/{what}_{len(values)}")))
    return values


def differ(got, want, rtol, atol):
    import numpy as np

    if want is None or got is None:
        return "" if want is None and got is None else "one is nothing"
    if isinstance(want, list):
        if not isinstance(got, list) or len(got) != len(want):
            return "another number of elements"
        return next(filter(None, (differ(a, b, rtol, atol) for a, b in zip(got, want))), "")
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return f"shape {got.shape}, not {want.shape}"
    if want.dtype.kind in "OUS":
        return "" if [str(x) for x in got.ravel()] == [str(x) for x in want.ravel()] else "other strings"
    if got.dtype != want.dtype:
        return f"{got.dtype}, not {want.dtype}"
    if want.dtype.kind in "biu":
        return "" if np.array_equal(got, want) else "other numbers"
    if want.dtype.itemsize == 1:
        return "" if got.tobytes() == want.tobytes() else "other numbers"
    if want.dtype.itemsize == 2:  # halves have three digits; TestNodes compares them so
        rtol, atol = max(rtol, 1e-2), max(atol, 1e-3)
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    got, want = got.astype(wide), want.astype(wide)
    return "" if np.allclose(got, want, rtol, atol, equal_nan=True) else "other numbers"


def feed(value, info):
    """A value as onnxruntime takes it. Types that numpy does not have go by their bits."""
    import onnxruntime as ort

    if value is None or isinstance(value, list) or info is None or value.dtype.kind in "biufcOUS":
        return value
    bits = value.view({1: "uint8", 2: "uint16"}[value.dtype.itemsize])
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, info)


def judge(folder, path, opset):
    import onnx
    import onnxruntime as ort

    model = onnx.load(path)
    version = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), None)
    if opset and version != opset and any(n.domain in ("", "ai.onnx") for n in model.graph.node):
        return f"wrong: opset {version}"
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as e:
        return "wrong: does not load: " + str(e)
    weights = {i.name for i in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name not in weights]
    values = recorded(folder, "input")
    if len(inputs) != len(values):
        return f"wrong: {len(inputs)} inputs"
    feeds = {}
    for info, value in zip(inputs, values):
        kind = info.type.tensor_type.elem_type if info.type.HasField("tensor_type") else None
        feeds[info.name] = feed(value, kind)
    taken = {i.name for i in session.get_inputs()}
    feeds = {k: v for k, v in feeds.items() if k in taken}
    try:
        if any(isinstance(v, ort.OrtValue) for v in feeds.values()):
            values = {k: v if isinstance(v, ort.OrtValue) else ort.OrtValue.ortvalue_from_numpy(v) for k, v in feeds.items()}
            got = [v.numpy() for v in session.run_with_ort_values(None, values)]
        else:
            got = session.run(None, feeds)
    except Exception as e:
        return "wrong: does not run: " + str(e)
    want = recorded(folder, "output")
    if len(got) != len(want):
        return f"wrong: {len(got)} outputs"
    with open(os.path.join(folder, "case.json")) as f:
        case = json.load(f)
    rtol, atol = case["rtol"], case["atol"]
    for i, (a, b) in enumerate(zip(got, want)):
        why = differ(a, b, rtol, atol)
        if why:
            return f"wrong: output {i}: {why}"
    return "right"


def work():
    import warnings

    warnings.filterwarnings("ignore")
    for line in sys.stdin:
        task, a, b, opset = line.rstrip("\n").split("\t")
        try:
            verdict = {"judge": judge, "convert": convert}[task](a, b, int(opset))
        except Exception as e:  # a fault of this script
            verdict = f"wrong: {type(e).__name__}: {e}"
        print(json.dumps(verdict), flush=True)


# ---------------------------------------------------------------- the parent

def judge_all(items, jobs):
    """Verdicts for (task, folder or model, path, opset). A worker that dies has judged the item that it was at."""
    verdicts, left, lock = {}, list(reversed(items)), threading.Lock()

    def loop():
        p = None
        while True:
            with lock:
                if not left:
                    break
                item = left.pop()
            if p is None:
                p = subprocess.Popen([sys.executable, __file__, "--worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            p.stdin.write("\t".join(map(str, item)) + "\n")
            p.stdin.flush()
            line = p.stdout.readline()
            if line:
                verdicts[item] = json.loads(line)
            else:
                verdicts[item] = "wrong: crashed"
                p.wait()
                p = None
        if p is not None:
            p.stdin.close()
            p.wait()

    threads = [threading.Thread(target=loop) for _ in range(jobs)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return verdicts


def little_memory():
    """So that a fault does not take the machine with it."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))


def convert(path, out, opset):
    import onnx
    from onnx import version_converter

    for f in (out + ".onnx", out + ".txt"):
        if os.path.exists(f):
            os.remove(f)
    try:
        with open(out + ".txt", "w") as f:
            f.write("crashed")
        onnx.save(version_converter.convert_version(onnx.load(path), opset), out + ".onnx")
        os.remove(out + ".txt")
        return "right"
    except Exception as e:
        with open(out + ".txt", "w") as f:
            f.write(str(e))
        return "refused"


def reason(text):
    """A refusal without what is particular to one test."""
    text = text.strip().split("\n")[0]
    text = re.sub(r"^error: ", "", text)
    return re.sub(r"\s+", " ", text)[:160]


def main():
    a = argparse.ArgumentParser()
    a.add_argument("folder")
    a.add_argument("--opsets", default="9,13,17,21,26")
    a.add_argument("--peer", action="store_true")
    a.add_argument("--jobs", type=int, default=2)
    a.add_argument("--refusals", type=int, default=12, help="how many reasons to list for each opset")
    o = a.parse_args()
    opsets = [int(n) for n in o.opsets.split(",")]
    cases = sorted(d for d in os.listdir(o.folder) if os.path.exists(os.path.join(o.folder, d, "model.onnx")))
    at = lambda case, name: os.path.join(o.folder, case, name)  # noqa: E731

    known = os.path.join(o.folder, "as-they-are.json")
    if not os.path.exists(known):
        verdicts = judge_all([("judge", at(c, ""), at(c, "model.onnx"), 0) for c in cases], o.jobs)
        with open(known, "w") as f:
            json.dump({c: verdicts["judge", at(c, ""), at(c, "model.onnx"), 0] for c in cases}, f, indent=1)
    with open(known) as f:
        verdicts = json.load(f)
    cases = [c for c in cases if verdicts[c] == "right"]
    print(f"{len(cases)} of {len(verdicts)} node tests run right in onnxruntime as they are")

    binary = os.path.join(o.folder, "rewrite.bin")
    subprocess.run(["go", "build", "-o", binary, "./tools/judge/nodetests/rewrite"], check=True)
    subprocess.run([binary, o.folder] + [str(n) for n in opsets], check=True, preexec_fn=little_memory, timeout=600)
    converters = ["aton"]
    if o.peer:
        converters.append("onnx")
        judge_all([("convert", at(c, "model.onnx"), at(c, f"onnx.{n}"), n) for c in cases for n in opsets], o.jobs)
    items = [("judge", at(c, ""), at(c, f"{w}.{n}.onnx"), n) for w in converters for c in cases for n in opsets if os.path.exists(at(c, f"{w}.{n}.onnx"))]
    verdicts = judge_all(items, o.jobs)
    bad = report(o, cases, opsets, converters, verdicts, at)
    sys.exit(1 if bad else 0)


def report(o, cases, opsets, converters, verdicts, at):
    bad = False
    rows = []
    print("\n| converter | opset | right | refused | wrong |\n|---|---|---|---|---|")
    refusals = collections.defaultdict(collections.Counter)
    wrong = []
    for w in converters:
        for n in opsets:
            counts = collections.Counter()
            for c in cases:
                path = at(c, f"{w}.{n}.onnx")
                if os.path.exists(path):
                    v = verdicts["judge", at(c, ""), path, n]
                else:
                    with open(at(c, f"{w}.{n}.txt")) as f:
                        text = f.read()
                    v = ("wrong: " if "panic" in text or "internal error" in text else "refused: ") + reason(text)
                rows.append((c, w, str(n), v))
                kind = v.split(":")[0]
                counts[kind] += 1
                if kind == "refused":
                    refusals[w, n][reason(v[9:])] += 1
                if kind == "wrong" and w == "aton":
                    wrong.append((n, c, v))
            share = counts["right"] / max(len(cases), 1)
            print(f"| {w} | {n} | {counts['right']} ({100 * share:.1f} %) | {counts['refused']} | {counts['wrong']} |")
            if w == "aton" and (counts["wrong"] or share < FLOORS.get(n, 0)):
                bad = True
    for n in opsets:
        print(f"\nrefused by aton at opset {n}:")
        for why, k in refusals["aton", n].most_common(o.refusals):
            print(f"{k:5d}  {why}")
    if wrong:
        print("\nwrong:")
        for n, c, v in wrong:
            print(f"  {n} {c}: {v}")
    with open(os.path.join(o.folder, "rewrite.tsv"), "w") as f:
        for r in rows:
            f.write("\t".join(re.sub(r"\s+", " ", x) for x in r) + "\n")
    return bad


if __name__ == "__main__":
    if sys.argv[1:] == ["--worker"]:
        work()
    else:
        main()
