#!/usr/bin/env python3
"""Makes the cases of `make conformance` from a PyTorch that pip installs: its own samples of operators and modules, and the
programs of programs.py. The suite models has the networks of torchvision, attention the masks of masks.py.

    python3 make_cases.py --out DIR [--suite operators,modules,indexing,scripts] [--filter RE] [--samples N] [--jobs N] [--pt2]

DIR/SUITE/ID is a case (tools/lib/cases), DIR/SUITE/skipped.N.tsv say of everything else why it is none. The same PyTorch makes the same
programs and numbers again. Complex tensors go in and out as pairs of real ones.
"""
import argparse
import os
import re
import subprocess
import sys
import warnings

import torch
from torch.utils import _pytree as pytree

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../judge/python"))
import casefile  # noqa: E402
import masks  # noqa: E402
import programs  # noqa: E402

SUITES = ("operators", "modules", "indexing", "scripts")
MORE = ("models", "attention")  # where they are asked for: models needs torchvision, attention takes an hour
DTYPES = (torch.float32, torch.int64, torch.bool, torch.float16, torch.complex64)


def calling(f, args, kwargs):
    """A module that calls f, and the tensors among the arguments as its inputs: x0, x1, ..."""
    values, shape = pytree.tree_flatten((args, kwargs))
    at = [k for k, v in enumerate(values) if isinstance(v, torch.Tensor)]

    def call(*tensors):
        all = list(values)
        for k, t in zip(at, tensors):
            all[k] = torch.view_as_complex(t) if values[k].is_complex() else t.clone()
        a, kw = pytree.tree_unflatten(all, shape)
        out = f(*a, **kw)
        return pytree.tree_map(lambda v: torch.view_as_real(v.resolve_conj()) if isinstance(v, torch.Tensor) and v.is_complex() else v, out)

    names = ", ".join(f"x{k}" for k in range(len(at)))
    if not at:
        raise casefile.Skip("no tensor goes in")
    m = casefile.module_of(names, f"return call({names})", call=call)
    inputs = [values[k].detach() for k in at]
    return m, tuple(torch.view_as_real(t.resolve_conj()).contiguous() if t.is_complex() else t for t in inputs)


def spread(items, n):
    """At most n of the items, from the first to the last."""
    items = list(items)
    return list(enumerate(items)) if len(items) <= n else [(k * (len(items) - 1) // max(n - 1, 1), items[k * (len(items) - 1) // max(n - 1, 1)]) for k in range(n)]


def operators(opts, keep):
    from torch.testing._internal.common_methods_invocations import op_db
    for op in sorted(op_db, key=lambda o: (o.name, o.variant_test_name)):
        name = re.sub(r"[^A-Za-z0-9_.]", "_", op.name + ("." + op.variant_test_name if op.variant_test_name else ""))
        if not keep(name):
            continue
        for dtype in DTYPES:
            if dtype not in op.supported_dtypes("cpu"):
                continue
            torch.manual_seed(0)
            try:
                samples = spread(op.sample_inputs("cpu", dtype, requires_grad=False), opts.samples)
            except Exception as e:
                yield f"{name}.{dtype}", e
                continue
            for k, s in samples:
                def case(op=op, s=s):
                    m, inputs = calling(op.op, (s.input, *s.args), s.kwargs)
                    return m, [inputs], False
                yield f"{name}.{str(dtype)[6:]}.s{k}", (case, name)


def modules(opts, keep):
    from torch.testing._internal.common_modules import module_db
    for info in module_db:
        name = info.name.replace("nn.", "").replace(".", "_")
        if not keep(name):
            continue
        for dtype in (torch.float32,):
            torch.manual_seed(0)
            try:
                samples = spread(info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=False, training=False), opts.samples)
            except Exception as e:
                yield name, e
                continue
            for k, s in samples:
                for script in (False, True):
                    def case(info=info, s=s, script=script):
                        torch.manual_seed(0)
                        m = info.module_cls(*s.constructor_input.args, **s.constructor_input.kwargs)
                        call, inputs = s.forward_input.args, s.forward_input.kwargs
                        if script:
                            if inputs or not all(isinstance(a, torch.Tensor) for a in call):
                                raise casefile.Skip("arguments by name")
                            return m, [call], True
                        holder, tensors = calling(m.eval(), call, inputs)
                        holder.inner = m
                        return holder, [tensors], False
                    yield f"{name}.s{k}", (case, name)


def indexing(opts, keep):
    for table, write in ((programs.INDEXING, False), (programs.WRITES, True)):
        for name, (text, first, second) in table.items():
            name = ("write." if write else "read.") + name
            if not keep(name):
                continue
            names = "x, y"[: 3 * len(first) - 2]
            lines, _, result = text.rpartition("|")
            source = "\n".join([f"{n} = {n}.clone()" for n in names.split(", ")] + lines.strip().split("; ") + ["return " + result.strip()])
            for script in (False, True):
                def case(source=source, names=names, first=first, second=second, script=script):
                    return casefile.module_of(names, source), [first, second], script
                yield name, (case, "indexing")


def scripts(opts, keep):
    for name, (lines, signature, first, second) in programs.SCRIPTS.items():
        if keep(name):
            def case(lines=lines, signature=signature, first=first, second=second):
                return casefile.module_of(signature, lines), [first, second], True
            yield name, (case, "script")


def attention(opts, keep):
    for name, module, sets in masks.modules():
        if keep(name):
            for script in (False, True):
                def case(module=module, sets=sets, script=script):
                    return module, sets, script
                yield name, (case, "attention")


def models(opts, keep):
    """torchvision's networks with random weights: those of classification and segmentation; --large adds the big ones and video."""
    import torchvision
    tv = torchvision.models
    kinds = [("", tv, (2, 3, 224, 224), (1, 3, 224, 224)), ("segmentation", tv.segmentation, (2, 3, 96, 96), (1, 3, 128, 96))]
    if opts.large:
        kinds += [("video", tv.video, (1, 3, 16, 112, 112), (2, 3, 16, 112, 112))]
    for kind, where, first, second in kinds:
        for name in tv.list_models(module=where):
            if not keep(name):
                continue
            for script in (False, True):
                def case(name=name, where=where, kind=kind, first=first, second=second, script=script):
                    torch.manual_seed(0)
                    options = {"weights_backbone": None} if kind == "segmentation" else {"init_weights": True} if name in ("googlenet", "inception_v3") else {}
                    m = tv.get_model(name, weights=None, **options).eval()
                    if sum(p.numel() for p in m.parameters()) > 30_000_000 and not opts.large:
                        raise casefile.Skip("large")
                    side = {"inception_v3": 299}.get(name, first[-1])
                    return m, [(torch.rand(*s[:-2], *((side, side) if s[-1] == first[-1] == s[-2] else s[-2:])),) for s in (first, second)], script
                yield name.replace("/", "_"), (case, name)


def make(suite, opts):
    made, skipped = 0, []
    part, parts = map(int, opts.part.split("/"))
    numbers = {}

    def keep(name):  # every process makes its part of the names
        numbers.setdefault(name, len(numbers))
        return numbers[name] % parts == part and bool(re.search(opts.filter, f"{suite}/{name}"))

    for id, what in globals()[suite](opts, keep):
        try:
            if isinstance(what, Exception):
                raise what
            case, op = what
            torch.manual_seed(0)
            module, sets, script = case()
            network = dict(tolerance=(1e-3, 1e-4), atol_of_max=1e-4, largest=10**7) if suite == "models" else {}
            casefile.write(opts.out, id, module, sets, script=script, suite=suite, op=op, pt2=opts.pt2, **network)
            made += 1
        except Exception as e:
            skipped.append(f"{id}\t{e if isinstance(e, casefile.Skip) else casefile.first_line(e)}")
    with open(os.path.join(opts.out, suite, f"skipped.{part}.tsv"), "w") as f:
        f.write("".join(sorted(s.replace("\n", " ") + "\n" for s in skipped)))
    return made


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--out", required=True)
    ap.add_argument("--suite", default=",".join(SUITES))
    ap.add_argument("--filter", default="", help="only names whose SUITE/NAME matches")
    ap.add_argument("--samples", type=int, default=3, help="of an operator or module and type")
    ap.add_argument("--jobs", type=int, default=2)
    ap.add_argument("--pt2", action="store_true", help="model.pt2 too")
    ap.add_argument("--large", action="store_true", help="of the models also the big ones")
    ap.add_argument("--part", help=argparse.SUPPRESS)
    opts = ap.parse_args()
    if opts.part:
        warnings.filterwarnings("ignore")
        torch.set_num_threads(1)
        return make(opts.suite, opts)
    suites = opts.suite.split(",")
    for s in suites:
        if s not in SUITES + MORE:
            ap.error(f"there is no suite {s}: {', '.join(SUITES + MORE)}")
    # several processes: one that PyTorch takes down, or that hangs, costs its part only
    parts = {"operators": 16, "modules": 2, "models": 8, "attention": 8}  # each imports its tables for some seconds
    work = [(s, f"{k}/{parts.get(s, 1)}") for s in suites for k in range(parts.get(s, 1))]
    for s in suites:
        os.makedirs(os.path.join(opts.out, s), exist_ok=True)
        for old in os.listdir(os.path.join(opts.out, s)):
            if old.startswith("skipped."):
                os.remove(os.path.join(opts.out, s, old))
    running, failed = [], []
    while work or running:
        if work and len(running) < opts.jobs:
            s, part = work.pop(0)
            p = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--out", opts.out, "--suite", s, "--filter", opts.filter,
                                  "--samples", str(opts.samples), "--part", part] + ["--pt2"] * opts.pt2 + ["--large"] * opts.large, stderr=subprocess.DEVNULL)
            running.append((p, s, part))
            continue
        p, s, part = running.pop(0)
        try:
            status = p.wait(timeout=1800)
        except subprocess.TimeoutExpired:
            p.kill()
            status = "it takes more than half an hour"
        if status:
            failed.append(f"{s} {part}: {status}")
    for s in suites:
        n = len([d for d in os.listdir(os.path.join(opts.out, s)) if os.path.exists(os.path.join(opts.out, s, d, "case.json"))])
        print(f"{s}: {n} cases")
    for f in failed:
        print("incomplete:", f)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
