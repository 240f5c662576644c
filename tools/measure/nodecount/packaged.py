#!/usr/bin/env python3
"""ONNX files that come with packages of Python and in repositories, through aton: whether they are read, and whether onnxruntime computes the same of what is written.

    PYTHON tools/measure/nodecount/packaged.py DIR [--aton bin/aton] [--opsets 21,13] [--filter RE] [--peers] [--out FILE]
    PYTHON tools/measure/nodecount/packaged.py DIR --find OWNER/NAME=COMMIT

packaged.tsv has the files: package, version, file in it, the inputs whose sizes the file leaves open, as name=shape, or whose values matter, as name=@value, and
what the outputs are at most where random inputs give much less. A package with a / is a repository of GitHub, its version a commit. Sizes that nobody gives are small ones. Packages go
to DIR by pip, repositories by git, as DIR/PACKAGE-VERSION, with _ for /. Each file is exported at its own opset and at those of --opsets, and run on
random inputs beside the original, both without onnxruntime's optimizations; the difference is relative to the greatest element. Files whose original does not run on such inputs are
written all the same, and checked by onnx.checker, as are those whose results are random. A file that aton refuses is tried again with --repair, and the row says so.

--peers adds the nodes that onnxsim and onnxslim leave (constants are no nodes) and the processor seconds of all three: of a process for aton, of the call alone for the others.
--find prints lines for packaged.tsv: the files of a repository, once each. PYTHON has pip, onnx, onnxruntime and numpy, and for --peers onnxsim and onnxslim.
"""
import argparse
import csv
import glob
import hashlib
import os
import re
import resource
import subprocess
import sys
import tarfile
import zipfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../judge/python"))
import judge  # noqa: E402
import suites  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = ["onnxsim", "onnxslim"]


def unpacked(folder, package, version):
    into = os.path.join(folder, f"{package.replace('/', '_')}-{version}")
    if os.path.isdir(into):
        return into
    if "/" in package:
        for words in ["init", "-q", into], ["-C", into, "fetch", "-q", "--depth", "1", "https://github.com/" + package, version], ["-C", into, "checkout", "-q", "FETCH_HEAD"]:
            subprocess.run(["git", *words], check=True)
        return into
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check", "-d", into, f"{package}=={version}"], check=True)
    for path in glob.glob(os.path.join(into, "*")):
        with zipfile.ZipFile(path) if path.endswith(".whl") else tarfile.open(path) as a:
            a.extractall(into)
    return into


def find(folder, package, version):
    into, seen = unpacked(folder, package, version), set()
    for path in sorted(glob.glob(os.path.join(glob.escape(into), "**/*.onnx"), recursive=True)):
        with open(path, "rb") as f:
            data = f.read()
        if len(data) > 200 and not data.startswith(b"version https://git-lfs") and hashlib.sha256(data).digest() not in seen:
            seen.add(hashlib.sha256(data).digest())
            print(package, version, os.path.relpath(path, into), "", "", sep="\t")


def inputs(s, given, largest):
    """Random inputs of a session: floats in [0, 1), ints below largest."""
    random, named, out = np.random.default_rng(0), {}, {}
    for i in s.get_inputs():
        if not i.type.startswith("tensor("):
            raise ValueError(f"{i.name} is no tensor")
        if i.type == "tensor(string)":
            out[i.name] = np.full([n if isinstance(n, int) else 2 for n in i.shape], "a")
            continue
        kind, text = judge.dtype(i.type), given.get(i.name)
        if text and text[0] == "@":
            out[i.name] = np.array(float(text[1:]), kind)
            continue
        shape = [int(n) for n in text.split(",") if n] if text is not None else [n if isinstance(n, int) else named.setdefault(n or (i.name, at), len(named) % 3 + 2) for at, n in enumerate(i.shape)]
        out[i.name] = (random.integers(0, largest, shape) if np.dtype(kind).kind in "iub" else random.random(shape)).astype(kind)
    return out


def recorded(path, given):
    """What a file gives for random inputs: names and arrays, both None where it does not run, and why."""
    why = ""
    for largest in 200, 2:
        try:
            s = judge.session(path, optimized=False, threads=1)
            feed = inputs(s, given, largest)
            want = judge.run(s, feed)
            if difference(want, judge.run(s, feed), 1e-9) > 0:
                return None, None, "random numbers"
            return feed, want, ""
        except Exception as e:
            why = str(e).splitlines()[0][:100] if str(e) else type(e).__name__
    return None, None, why


def difference(want, got, most):
    """The largest difference of two lists of results, relative to the greatest element; infinity where strings, keys, types or lengths differ."""
    if len(want) != len(got):
        return float("inf")
    worst = 0.0
    for w, g in zip(want, got):
        if isinstance(w, dict) and isinstance(g, dict) and list(w) == list(g):
            w, g = list(w.values()), list(g.values())
        if isinstance(w, (list, tuple)) and isinstance(g, (list, tuple)):
            worst = max(worst, difference(w, g, most))
        elif np.asarray(w).dtype.kind in "OSU":
            worst = max(worst, 0.0 if np.array_equal(w, g) else float("inf"))
        else:
            worst = max(worst, judge.distance(np.asarray(g), np.asarray(w), of=max(judge.greatest(np.asarray(w)), most)))
    return worst


def halves(path):
    """Whether a file computes in float16, in which numbers have three decimal places."""
    g = judge.loaded(path).graph
    return any(t.data_type == 10 for t in g.initializer) or any(i.type.tensor_type.elem_type == 10 for i in g.input)


def used():
    u = resource.getrusage(resource.RUSAGE_CHILDREN)
    return u.ru_utime + u.ru_stime


def one(row, path, opts):
    """The row of the results for a file."""
    given = dict(part.rsplit("=", 1) for part in row["inputs"].split())
    feed, want, why = recorded(path, given)
    most, said, result = float(row["most"] or 1e-9), [], {"package": row["package"], "file": row["file"], "before": sum(suites.kinds(path)[0].values())}
    if why:
        said.append("not compared: " + why)
    most_off, options = 1e-3 if halves(path) else 1e-5, []
    for opset in [None] + [int(n) for n in opts.opsets.split(",") if n]:
        out = os.path.join(opts.dir, "out.onnx")
        began = used()
        try:
            try:
                judge.export(opts.aton, path, out, *options, opset=opset)
            except judge.Refused as e:
                judge.export(opts.aton, path, out, "--repair", opset=opset)
                options = ["--repair"]
                said.append("repaired: " + str(e))
        except judge.Refused as e:
            said.append(f"{opset or 'own'}: {e}")
            result.setdefault("refused", 0)
            result["refused"] += 1
            continue
        if opset is None:
            result["seconds"], result["aton"] = f"{used() - began:.2f}", sum(suites.kinds(out)[0].values())
        if why:
            if suites.accepted(path) and not suites.accepted(out):
                said.append(f"{opset or 'own'}: WRONG, the checker refuses it")
            continue
        try:
            worst = difference(want, judge.run(judge.session(out, optimized=False, threads=1), feed), most)
        except Exception as e:
            said.append(f"{opset or 'own'}: WRONG, {str(e).splitlines()[0][:100]}")
            continue
        result["difference"] = max(result.get("difference", 0), worst)
        if not worst <= most_off:
            said.append(f"{opset or 'own'}: WRONG by {worst:.0e}")
    result["note"] = "; ".join(said)
    return result


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dir")
    p.add_argument("--aton", default="bin/aton")
    p.add_argument("--opsets", default="21,13")
    p.add_argument("--filter", default="")
    p.add_argument("--peers", action="store_true")
    p.add_argument("--out", help="a file for the results, as tab-separated values")
    p.add_argument("--find", metavar="OWNER/NAME=COMMIT")
    opts = p.parse_args()
    os.makedirs(opts.dir, exist_ok=True)
    if opts.find:
        return find(opts.dir, *opts.find.split("="))
    with open(os.path.join(HERE, "packaged.tsv"), newline="") as f:
        rows = [r for r in csv.DictReader(f, delimiter="\t") if re.search(opts.filter, r["package"] + "/" + r["file"])]
    paths = [os.path.join(unpacked(opts.dir, r["package"], r["version"]), r["file"]) for r in rows]
    work = os.path.join(opts.dir, "results")
    os.makedirs(work, exist_ok=True)
    took = suites.optimized(paths, work, PEERS) if opts.peers else {}
    results = []
    for row, path in zip(rows, paths):
        r = one(row, path, opts)
        for peer in PEERS if opts.peers else []:
            out = suites.result(path, peer, work)
            if os.path.exists(out):
                r[peer], r[peer + " seconds"] = sum(suites.kinds(out)[0].values()), f"{took.get((path, peer), 0):.2f}"
        results.append(r)
        print(*(f"{k}={r[k]}" for k in r if r[k] != ""), flush=True)
    if opts.out:
        with open(opts.out, "w", newline="") as f:
            w = csv.DictWriter(f, ["package", "file", "before", "aton", "seconds", *(k for peer in PEERS for k in (peer, peer + " seconds")), "difference", "refused", "note"], delimiter="\t", lineterminator="\n")
            w.writeheader()
            w.writerows(results)
    wrong = sum("WRONG" in r["note"] for r in results)
    print(f"{len(results)} files of {len({r['package'] for r in rows})} packages and repositories: {sum('aton' in r for r in results)} written at their own opset, {sum('difference' in r for r in results)} "
          f"compared in onnxruntime, {wrong} wrong, {sum(r.get('refused', 0) for r in results)} exports refused")
    for peer in PEERS if opts.peers else []:
        both = [r for r in results if peer in r and "aton" in r]
        print(f"{peer}: writes {len(both)} of these; aton leaves more nodes in {sum(r['aton'] > r[peer] for r in both)}, fewer in {sum(r['aton'] < r[peer] for r in both)}; "
              f"seconds {sum(float(r['seconds']) for r in both):.1f} and {sum(float(r[peer + ' seconds']) for r in both):.1f}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
