#!/usr/bin/env python3
"""Runs the seed examples (../shared/data/seed_examples.py OUT) through aton, and the table of features.

Every case is exported, checked by onnx, run by onnxruntime on its data sets,
compared, and its graph held against the structural expectations of case.json.
Custom operators are exported by rules and compared by their nodes;
graphs with Python functions by python.rules.

    python3 seedcheck.py --cases OUT --aton bin/aton [--opset 17]
    python3 seedcheck.py --cases OUT --features tools/judge/seedcheck/features.tsv [--row S004] [--write tools/judge/seedcheck/results.tsv]

The table has a row for each thing that torch.onnx's pages say a user can do, with a command that shows it:

    case[@OPSET] NAME...     the seed examples of these names are right (* for all)
    aton ARGS                the command ends well; {NAME} is the folder of a seed example, {here} this folder, {graphs} that of its
                             graphs, {fixtures} that of testdata, {out} and {out2} are files
    alone aton ARGS          the same in an environment without variables
    aton ARGS => TEXT        and prints a match of the expression; aton ARGS !> TEXT: it fails, and says so
    A ;; B                   both, one after the other
    go test ARGS             the test passes, and there is one
    not applicable: WHY      no feature
"""
import argparse
import glob
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

import numpy as np
import onnx

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../judge/python"))
import judge  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))


def typ(i, axes):
    if i["kind"] == "tensor":
        dims = [str(d) for d in i["shape"]]
        named = axes.get(i["name"], {})
        if isinstance(named, list):
            named = {k: f"{i['name']}_{k}" for k in named}
        for k, n in named.items():
            dims[int(k)] = n.replace(" ", "_").replace(".", "_")
        return judge.spec(i["dtype"], dims)
    if i["kind"] in ("list", "tuple"):
        return f"{i['kind']}({','.join(typ(e, axes) for e in i['items'])})"
    if i["kind"] == "dict":
        return "dict(" + ",".join(f"{k}={typ(e, axes)}" for k, e in zip(i["keys"], i["items"])) + ")"
    if i["kind"] == "str":
        return "str=" + json.dumps(i["value"])
    return i["kind"]


def leaves(inputs):
    for i in inputs:
        if "items" in i:
            yield from leaves(i["items"])
        elif i["kind"] not in ("str", "none"):
            yield i


def spec(i, axes, name=None):
    return f"{name or i['name']}:{typ(i, axes)}"


def kind(n):
    return (n.domain or "onnx") + "::" + n.op_type


def rules_of(operators, domains):
    """The rules that say what symbolic functions would: a result has the type of the first operand."""
    lines = [f"domain {name} {version}" for name, version in domains.items()]
    for k, (name, to) in enumerate(operators.items()):
        inputs, attributes = to["inputs"], to["attributes"]
        schema = [f"Tensor {n}" for n in inputs] + [f"{t} {n}" for n, t in attributes.items()]
        lines += [f"declare {name}({', '.join(schema)}) -> Tensor", f"rule r{k}", "  from",
                  f"    %y = {name}({', '.join(['%' + n for n in inputs] + ['$' + n for n in attributes])})", "  to",
                  f"    %y : %{inputs[0]} = {to['op']}[{', '.join(f'{n}=${n}' for n in attributes)}]({', '.join('%' + n for n in inputs)})"]
    return "\n".join(lines) + "\n"


def check(folder, case, opts):
    model = os.path.join(folder, case["archive"]) if case["archive"] else os.path.join(folder, "graph.txt")
    options, expect = case["export"], case["expect"]
    sets = [os.path.join(folder, f"test_data_set_{k}") for k in range(case["data_sets"])]
    # axes in which the data sets differ are dynamic, besides the declared ones
    axes = {k: dict(v) if isinstance(v, dict) else {str(a): f"{k}_{a}" for a in v} for k, v in options.get("dynamic_axes", {}).items()}
    first = judge.recorded(sets[0], "input")
    for d in sets[1:]:
        for (n, a), (_, b), i in zip(first, judge.recorded(d, "input"), leaves(case["inputs"])):
            for k, (m, o) in enumerate(zip(a.shape, b.shape)):
                if m != o:
                    axes.setdefault(i["name"], {}).setdefault(str(k), f"{i['name']}_{k}")
    with tempfile.TemporaryDirectory() as tmp:
        out = os.path.join(tmp, "m.onnx")
        opset = max(opts.opset, case["min_opset"])
        tail = []
        if not case["archive"] and "^My" in open(model).read():
            tail += ["--rules", os.path.join(HERE, "python.rules")]
        if options.get("output_names"):
            tail += ["--output-names", ",".join(options["output_names"])]
        custom = options.get("custom_ops")
        if custom:  # what torch.onnx has a symbolic function for, rules say here
            rules = os.path.join(tmp, "case.rules")
            with open(rules, "w") as f:
                f.write(rules_of(custom, options.get("custom_opsets", {})))
            tail += ["--rules", rules]

        def export(names):
            judge.export(opts.aton, model, out, *[w for i, n in zip(case["inputs"], names) for w in ("--input", spec(i, axes, n))], *tail, opset=opset)

        try:
            try:
                export([i["name"] for i in case["inputs"]])
            except judge.Refused as e:  # the case may name its inputs as torch.onnx's input_names would
                renamed = re.search(r"has no input .*\(it has: (.*)\)", e.stderr)
                if not renamed:
                    raise
                export(renamed.group(1).split(", "))
        except judge.Refused as e:
            return None if "fails_with" in expect and e.status == 1 else f"export: {e}"
        if "fails_with" in expect and "or_supported" not in expect:
            return "exported, expected a failure: " + expect["fails_with"]
        m = onnx.load(out)
        onnx.checker.check_model(m)
        have = [kind(n) for n in judge.nodes(m.graph)]
        for k in expect.get("must_contain", []):
            alternatives = k.split("|")
            if not any(a in have for a in alternatives):
                return f"no {k} in {sorted(set(have))}"
        for k in expect.get("must_not_contain", []):
            if k in have:
                return f"{k} is there"
        for k, (least, most) in expect.get("count", {}).items():
            if not least <= have.count(k) <= most:
                return f"{have.count(k)} of {k}, expected {least} to {most}"
        for k, values in expect.get("attributes", {}).items():
            found = {a.name: onnx.helper.get_attribute_value(a) for n in judge.nodes(m.graph) if kind(n) == k for a in n.attribute}
            if found != values:
                return f"{k} has the attributes {found}, expected {values}"
        versions = {o.domain: o.version for o in m.opset_import}
        for name, version in expect.get("opsets", {}).items():
            if versions.get(name) != version:
                return f"{name} has version {versions.get(name)}, expected {version}"
        if custom:
            return None  # onnxruntime does not have the operator
        s = judge.session(out)
        types = {i.name: i.type for i in s.get_inputs()}
        for d in sets:
            given = dict(judge.recorded(d, "input"))
            if not set(types) <= set(given):  # by position
                given = dict(zip(types, given.values()))
            feed = {n: a.astype(np.float64) if types.get(n) == "tensor(double)" else a for n, a in given.items()}
            want = [w for _, w in judge.recorded(d, "output")]
            if why := judge.wrong(judge.run(s, feed), want, rtol=max(case["rtol"], 1e-4), atol=max(case["atol"], 1e-5)):
                return why
    return None


def run_aton(command, opts, tmp):
    """Runs one aton command of the table. The result is what is wrong, None for nothing."""
    command, fails, want = (command.partition(" !> ") if " !> " in command else command.partition(" => "))
    for name in re.findall(r"{(\w+)}", command):
        value = {"here": HERE, "graphs": os.path.join(HERE, "graphs"), "fixtures": os.path.join(ROOT, "testdata", "fixtures", "torch2.15"),
                 "out": os.path.join(tmp, "m.onnx"), "out2": os.path.join(tmp, "n.onnx")}.get(name)
        command = command.replace("{" + name + "}", value or os.path.join(os.path.abspath(opts.cases), name))
    alone = command.startswith("alone ")
    words = shlex.split(command.removeprefix("alone "))
    r = subprocess.run([os.path.abspath(opts.aton)] + words[1:], capture_output=True, cwd=tmp, env={} if alone else None)
    said = r.stdout.decode(errors="replace") + r.stderr.decode(errors="replace")
    if (r.returncode != 0) != (fails.strip() == "!>"):
        return f"status {r.returncode}: {said.strip().splitlines()[-1][:200] if said.strip() else ''}"
    if want and not re.search(want, said):
        return f"no {want} in what it prints"
    return None


def run_tests(args, cwd):
    r = subprocess.run(args, capture_output=True, text=True, cwd=cwd)
    if r.returncode:
        return (r.stdout + r.stderr).strip()[-300:]
    if all("no tests to run" in line or "no test files" in line for line in r.stdout.strip().splitlines()):
        return "there is no such test"
    return None


def run_cases(command, opts):
    kind, *names = command.split()
    opset = int(kind.partition("@")[2] or opts.opset)
    if names == ["*"]:
        names = [os.path.basename(os.path.dirname(f)) for f in sorted(glob.glob(os.path.join(opts.cases, "*", "case.json")))]
    for name in names:
        folder = os.path.join(opts.cases, name)
        with open(os.path.join(folder, "case.json")) as f:
            why = check(folder, json.load(f), argparse.Namespace(**{**vars(opts), "opset": opset}))
        if why:
            return f"{name}: {why}"
    return None


def feature(command, opts):
    if command.startswith("case"):
        return run_cases(command, opts)
    if command.startswith("go test"):
        return run_tests(shlex.split(command), ROOT)
    with tempfile.TemporaryDirectory() as tmp:
        for part in command.split(" ;; "):
            why = run_aton(part, opts, tmp)
            if why:
                return why
    return None


def features(opts):
    """Runs the rows of the table, and tells of those that do not work."""
    count = {"work": 0, "do not": 0, "are no features": 0}
    known = {}  # rows may share a command
    results = []
    with open(opts.features) as f:
        rows = [line.rstrip("\n").split("\t") for line in f][1:]
    for row, what, command in rows:
        if opts.row and row not in opts.row.split(","):
            continue
        if command.startswith("not applicable"):
            count["are no features"] += 1
            results.append((row, "no feature", what))
            continue
        if command not in known:
            try:
                known[command] = feature(command, opts)
            except Exception as e:  # what breaks the checker is a failure
                known[command] = f"{type(e).__name__}: {e}"[:300]
        why = known[command]
        count["do not" if why else "work"] += 1
        results.append((row, "does not work" if why else "works", what))
        if why:
            print(f"{row} {what}: {command}: {why}", flush=True)
    print(", ".join(f"{n} {k}" for k, n in count.items()))
    if opts.write:
        with open(opts.write, "w") as f:
            f.write("id\tresult\tfeature\n" + "".join("\t".join(r) + "\n" for r in results))
    return 1 if count["do not"] else 0


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--cases", required=True)
    ap.add_argument("--aton", default="bin/aton")
    ap.add_argument("--opset", type=int, default=17)
    ap.add_argument("--features", help="the table of features")
    ap.add_argument("--write", help="a file for the result of each row")
    ap.add_argument("--row", help="rows of it, separated by commas")
    opts = ap.parse_args()
    if opts.features:
        sys.exit(features(opts))
    bad = good = 0
    for f in sorted(glob.glob(os.path.join(opts.cases, "*", "case.json"))):
        case = json.load(open(f))
        try:
            why = check(os.path.dirname(f), case, opts)
        except Exception as e:  # a case that breaks the checker is a failure
            why = f"{type(e).__name__}: {e}"[:300]
        if why:
            bad += 1
            print(f"{case['name']}: {why}")
        else:
            good += 1
    print(f"{good} passed, {bad} failed")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
