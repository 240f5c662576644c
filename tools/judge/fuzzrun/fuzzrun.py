#!/usr/bin/env python3
"""Fuzzes the readers with corpora from real archives, and records the run.

    python3 tools/judge/fuzzrun/fuzzrun.py --cases DIR --out out/fuzz --minutes 7 [--targets jit/FuzzArchive,...]

Takes records of the archives below --cases (spread over the list, small ones only), seeds each target with
them, runs the targets one after the other with one worker, and prints for each the time, the number of runs,
the inputs that found new code, and the greatest resident memory of the processes. Exit status 1 when a target
failed; its log and the input lie in --out.
"""
import argparse
import os
import re
import subprocess
import sys
import time
import zipfile

# target -> what a seed is made of
TARGETS = [
    ("frontend/jit", "FuzzArchive"),
    ("frontend/jit", "FuzzRecords"),
    ("frontend/pickle", "FuzzRead"),
    ("frontend/jit/pyast", "FuzzParse"),
    ("ssa", "FuzzParse"),
]


def go_bytes(b):
    """A Go string literal of bytes."""
    out = []
    for c in b:
        if c == 0x5C or c == 0x22:
            out.append("\\" + chr(c))
        elif 0x20 <= c < 0x7F:
            out.append(chr(c))
        else:
            out.append("\\x%02x" % c)
    return '"' + "".join(out) + '"'


def archives(root, count):
    found = []
    for d, _, names in os.walk(root):
        found += [os.path.join(d, n) for n in names if n == "model.pt" and os.path.getsize(os.path.join(d, n)) < 60_000]
    found.sort()
    step = max(1, len(found) // count)
    return found[::step][:count]


def records(path):
    out = {}
    with zipfile.ZipFile(path) as z:
        for n in z.namelist():
            out[n.split("/", 1)[1]] = z.read(n)
    return out


def seeds(pkg, name, files):
    """The arguments of each seed, as Go literals."""
    for f in files:
        if (pkg, name) == ("frontend/jit", "FuzzArchive"):
            with open(f, "rb") as h:
                yield ["[]byte(%s)" % go_bytes(h.read())]
            continue
        if pkg == "ssa":
            graph = os.path.join(os.path.dirname(f), "graph.ir")
            if os.path.exists(graph) and os.path.getsize(graph) < 20_000:
                with open(graph, "rb") as h:
                    yield ["string(%s)" % go_bytes(h.read())]
            continue
        rec = records(f)
        code = [v for k, v in sorted(rec.items()) if k.startswith("code/") and k.endswith(".py")]
        if name == "FuzzRecords":
            main = next((v for k, v in sorted(rec.items()) if k.startswith("code/__torch__") and k.endswith(".py")), b"")
            debug = next((v for k, v in sorted(rec.items()) if k.endswith(".debug_pkl")), b"")
            yield ["[]byte(%s)" % go_bytes(rec.get("data.pkl", b"")), "[]byte(%s)" % go_bytes(rec.get("constants.pkl", b"")),
                   "string(%s)" % go_bytes(main), "[]byte(%s)" % go_bytes(debug), "string(%s)" % go_bytes(rec.get("version", b"3").strip())]
        elif name == "FuzzRead":
            for k, v in sorted(rec.items()):
                if k.endswith(".pkl") or k.endswith(".debug_pkl"):
                    yield ["[]byte(%s)" % go_bytes(v)]
        else:
            for c in code:
                if len(c) < 1 << 14:
                    yield ["string(%s)" % go_bytes(c)]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--cases", required=True)
    ap.add_argument("--out", required=True)
    ap.add_argument("--minutes", type=float, default=7)
    ap.add_argument("--seeds", type=int, default=300, help="archives to take records from")
    ap.add_argument("--targets", default="", help="only these, as PACKAGE/NAME")
    opts = ap.parse_args()
    opts.out = os.path.abspath(opts.out)
    files = archives(opts.cases, opts.seeds)
    failed, total = False, 0.0
    print(f"{'target':34} {'seeds':>6} {'time':>7} {'runs':>10} {'new':>6} {'peak MB':>8}  result", flush=True)
    for pkg, name in TARGETS:
        if opts.targets and f"{pkg}/{name}" not in opts.targets.split(","):
            continue
        key = f"{pkg}/{name}".replace("/", "_")
        cache = os.path.join(opts.out, key)
        os.makedirs(os.path.join(cache, name), exist_ok=True)
        n = 0
        for args in seeds(pkg, name, files):
            n += 1
            with open(os.path.join(cache, name, f"seed{n:05d}"), "w") as h:
                h.write("go test fuzz v1\n" + "\n".join(args) + "\n")
        binary = os.path.join(opts.out, key + ".test")
        subprocess.run(["go", "test", "-c", "-fuzz", f"^{name}$", "-o", binary, "./" + pkg], check=True)
        log = os.path.join(opts.out, key + ".log")
        start = time.monotonic()
        with open(log, "w") as h:
            p = subprocess.Popen([binary, "-test.run", "^$", "-test.fuzz", f"^{name}$", "-test.fuzztime", f"{opts.minutes}m",
                                  "-test.fuzzcachedir", cache, "-test.parallel", "1", "-test.fuzzminimizetime", "20x"], cwd=pkg, stdout=h, stderr=subprocess.STDOUT)
            _, status, usage = os.wait4(p.pid, 0)
        took = time.monotonic() - start
        total += took
        text = open(log).read()
        last = re.findall(r"execs: (\d+).*new interesting: (\d+)", text)
        runs, new = last[-1] if last else ("0", "0")
        ok = status == 0
        failed |= not ok
        print(f"{pkg + '/' + name:34} {n:6} {took:6.0f}s {runs:>10} {new:>6} {usage.ru_maxrss / 1024:8.0f}  {'ok' if ok else 'FAILED: ' + log}", flush=True)
    print(f"{total / 60:.1f} minutes in total")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
