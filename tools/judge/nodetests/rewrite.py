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
import resource
import subprocess
import sys
import threading

import onnx

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../judge/python"))
import judge  # noqa: E402

FLOORS = {9: 0.81, 13: 0.9, 17: 0.915, 21: 0.975, 26: 0.999}  # measured: a fall is an error


# ---------------------------------------------------------------- a worker: runs models, one a line

def judged(folder, path, opset):
    model = onnx.load(path)
    version = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), None)
    if opset and version != opset and any(n.domain in ("", "ai.onnx") for n in model.graph.node):
        return f"wrong: opset {version}"
    try:
        session = judge.session(path, threads=1)
    except Exception as e:
        return "wrong: does not load: " + str(e)
    weights = {i.name for i in model.graph.initializer}
    inputs = [i.name for i in model.graph.input if i.name not in weights]
    data = os.path.join(folder, "data_0")
    values = [v for _, v in judge.recorded(data, "input")]
    if len(inputs) != len(values):
        return f"wrong: {len(inputs)} inputs"
    try:
        got = judge.run(session, dict(zip(inputs, values)))
    except Exception as e:
        return "wrong: does not run: " + str(e)
    want = [v for _, v in judge.recorded(data, "output")]
    with open(os.path.join(folder, "case.json")) as f:
        case = json.load(f)
    if len(got) != len(want):
        return f"wrong: {len(got)} outputs"
    for i, (a, b) in enumerate(zip(got, want)):
        # halves have three digits; TestNodes compares them so
        half = all(getattr(v, "itemsize", 0) == 2 for v in (b if isinstance(b, list) else [b]))
        why = judge.differ(a, b, max(case["rtol"], 1e-2) if half else case["rtol"], max(case["atol"], 1e-3) if half else case["atol"])
        if why:
            return f"wrong: output {i}: {why}"
    return "right"


def work():
    import warnings

    warnings.filterwarnings("ignore")
    for line in sys.stdin:
        task, a, b, opset = line.rstrip("\n").split("\t")
        try:
            verdict = {"judge": judged, "convert": convert}[task](a, b, int(opset))
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
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))


def convert(path, out, opset):
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
