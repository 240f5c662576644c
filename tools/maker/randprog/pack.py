#!/usr/bin/env python3
"""Packs cases into a reproducible tar.gz: model.pt (or model.pt2 where there is no other), case.json and the data sets of the smallest ones.

    python3 pack.py CASES OUT.tar.gz --count 200 [--skip RESULTS.jsonl]

--skip leaves out the cases whose result in RESULTS.jsonl is not a pass; name in the
commit what they are.
"""
import argparse
import gzip
import io
import json
import os
import tarfile


def program(folder):
    archive = os.path.join(folder, "model.pt")
    return archive if os.path.exists(archive) else archive + "2"


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("cases")
    ap.add_argument("out")
    ap.add_argument("--count", type=int, default=200)
    ap.add_argument("--skip")
    ap.add_argument("--all-sets", action="store_true", help="all data sets instead of the first two")
    opts = ap.parse_args()
    left_out = set()
    if opts.skip:
        for line in open(opts.skip):
            r = json.loads(line)
            if r["result"] != "pass":
                left_out.add(r["id"])
    found = []
    for suite in sorted(os.listdir(opts.cases)):
        for case in sorted(os.listdir(os.path.join(opts.cases, suite))):
            folder = os.path.join(opts.cases, suite, case)
            if os.path.exists(os.path.join(folder, "case.json")) and f"{suite}/{case}" not in left_out:
                found.append((os.path.getsize(program(folder)), case, folder))
    found = sorted(found)[:opts.count]
    with open(opts.out, "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as gz, tarfile.open(fileobj=gz, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for _, case, folder in sorted(found, key=lambda f: f[1]):
            names = [os.path.basename(program(folder)), "case.json"]
            for d in sorted(os.listdir(folder)):
                if d.startswith("test_data_set_") and (opts.all_sets or d[-2:] in ("_0", "_1")):
                    names += [f"{d}/{n}" for n in sorted(os.listdir(os.path.join(folder, d)))]
            for n in names:
                with open(os.path.join(folder, n), "rb") as f:
                    data = f.read()
                info = tarfile.TarInfo(f"{case}/{n}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    print(len(found), "cases,", os.path.getsize(opts.out), "bytes")


if __name__ == "__main__":
    main()
