#!/usr/bin/env python3
"""Exports the gradients of operators, as make_fx records them with their backward operators, and compares them with PyTorch in float64.

usage: fxgrads.py --aton PATH [--filter RE] [--samples N] [--out TSV]

The operators and their inputs are those of PyTorch's own tests (torch.testing._internal). A program is a sample's forward and the gradients of all its results,
with other weights for each element, by its tensors. A row is an operator and what became of its samples: right, refused (with the first reason), wrong, or
skipped where PyTorch does not record or save it. Needs torch and onnxruntime. Exit status 1 if one is wrong.
"""
import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

warnings.simplefilter("ignore")


class Skip(Exception):
    pass


def program(op, sample):
    """A function of the sample's tensors that have gradients, which gives these, and the tensors."""
    leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [i for i, v in enumerate(leaves) if isinstance(v, torch.Tensor) and v.requires_grad]
    if not places or any(leaves[i].numel() == 0 or leaves[i].is_complex() for i in places):
        raise Skip("no tensor of real numbers that has a gradient")
    tensors = [leaves[i].detach().clone() for i in places]

    def gradients(*xs):
        xs = [x.detach().requires_grad_(True) for x in xs]
        values = list(leaves)
        for i, x in zip(places, xs):
            values[i] = x
        first, args, kwargs = pytree.tree_unflatten(values, spec)
        results = [r for r in pytree.tree_leaves(op.op(first, *args, **kwargs)) if isinstance(r, torch.Tensor) and r.requires_grad]
        if not results or any(r.is_complex() for r in results):
            raise Skip("no result of real numbers that has a gradient")
        weights = [torch.linspace(0.5, 2.0, r.numel(), dtype=r.dtype).reshape(r.shape) for r in results]
        return [g for g in torch.autograd.grad(results, xs, weights, allow_unused=True) if g is not None]

    return gradients, tensors


def judge(aton, op, sample, folder):
    """What becomes of one sample: a word and a reason."""
    import onnxruntime
    try:
        gradients, tensors = program(op, sample)
        want = gradients(*tensors)
        graph = make_fx(gradients)(*tensors)
        if any(torch.Tag.nondeterministic_seeded in getattr(n.target, "tags", ()) for n in graph.graph.nodes):
            raise Skip("it draws random numbers")
        file = os.path.join(folder, "model.pt2")
        torch.export.save(torch.export.export(graph, tuple(tensors)), file)
    except Exception as e:
        return "skipped", str(e).strip().split("\n")[0]
    if not want or any(not torch.isfinite(g).all() for g in want):
        return "skipped", "a gradient is not finite"
    out = os.path.join(folder, "model.onnx")
    run = subprocess.run([aton, "export", file, "-o", out], capture_output=True, text=True)
    if run.returncode != 0:
        lines = [l for l in run.stderr.splitlines() if l.startswith("error")]
        return "refused", (lines or [run.stderr.strip()])[0]
    try:
        session = onnxruntime.InferenceSession(out)
        feeds = {i.name: t.numpy() for i, t in zip(session.get_inputs(), tensors)} if len(session.get_inputs()) == len(tensors) else None
        if feeds is None:  # inputs that nothing reads are not there
            names = [s.name for s in session.get_inputs()]
            feeds = {n: tensors[int(m.group(1)) - 1].numpy() for n in names if (m := re.search(r"_(\d+)$", n))}
        got = session.run(None, feeds)
    except Exception as e:
        return "wrong", "onnxruntime: " + str(e).strip().split("\n")[0]
    for g, w in zip(got, want):
        w = w.detach().numpy()
        if g.shape != w.shape or not np.allclose(g, w, rtol=1e-5, atol=1e-6 * max(1.0, float(np.abs(w).max(initial=0)))):
            return "wrong", f"off by {np.abs(g - w).max():.2g}" if g.shape == w.shape else f"shape {g.shape}, not {w.shape}"
    return "right", ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--aton", required=True)
    parser.add_argument("--filter", default="")
    parser.add_argument("--samples", type=int, default=2)
    parser.add_argument("--out")
    opts = parser.parse_args()
    torch.manual_seed(0)
    total, rows = collections.Counter(), []
    for op in op_db:
        name = op.name + ("." + op.variant_test_name if op.variant_test_name else "")
        if not op.supports_autograd or torch.float64 not in op.dtypes or not re.search(opts.filter, name):
            continue
        counts, why = collections.Counter(), ""
        with tempfile.TemporaryDirectory() as folder:
            try:
                samples = op.sample_inputs("cpu", torch.float64, requires_grad=True)
                for _, sample in zip(range(opts.samples + 8), samples):
                    word, reason = judge(opts.aton, op, sample, folder)
                    counts[word] += 1
                    if reason and (not why or word != "skipped"):
                        why = reason
                    if sum(counts.values()) - counts["skipped"] == opts.samples:
                        break
            except Exception as e:  # samples that cannot be made here
                counts["skipped"] += 1
                why = str(e).strip().split("\n")[0]
        for word in ("wrong", "refused", "right", "skipped"):
            if counts[word]:
                total[word] += 1
                rows.append((name, word, counts["right"], sum(counts.values()), "" if word == "right" else why[:160]))
                print(*rows[-1], sep="\t", flush=True)
                break
    if opts.out:
        kept = []
        if opts.filter and os.path.exists(opts.out):  # the others keep their rows
            with open(opts.out) as f:
                kept = [r for line in f.readlines()[1:] if not re.search(opts.filter, (r := tuple(line.rstrip("\n").split("\t")))[0])]
        with open(opts.out, "w") as f:
            f.write("operator\tresult\tright\tsamples\twhy\n")
            f.writelines("\t".join(map(str, r)) + "\n" for r in sorted(kept + rows, key=lambda r: r[0]))
    print(dict(total))
    return 1 if total["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
