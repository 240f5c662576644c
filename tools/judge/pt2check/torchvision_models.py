#!/usr/bin/env python3
"""Converts torchvision's classification models, saved both ways, and compares numbers and counts of nodes.

usage: torchvision_models.py --aton PATH [--opset N] [--results FILE] [NAME ...]

For each model, with random weights: torch.export.save with a dynamic batch, and torch.jit.save of its trace. Both
become ONNX; the ONNX of the exported program is run in onnxruntime at batches of 2 and 3 and compared with PyTorch. A row says
how many nodes the two ONNX models have and how far the outputs are apart, relative to the greatest. Models are made, compared and
removed one by one; the largest needs 12 GB of disk. Without names: all classification models. FILE gets a row a model as it is
done, and models that have one already are left out, so that an interrupted run goes on.

Needs torch, torchvision, onnx and onnxruntime. Exit status 1 if a model is refused, is wrong, or has more nodes than from its trace.
"""
import argparse
import os
import sys
import tempfile
import warnings

import torch
import torchvision

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../judge/python"))
import judge  # noqa: E402

TOLERANCE = 1e-4


def make(name):
    """The model in eval mode; statistics and scales are drawn so that none of its parts is close to nothing."""
    torch.manual_seed(0)
    options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    model = torchvision.models.get_model(name, weights=None, **options).eval()
    with torch.no_grad():
        for m in model.modules():
            if isinstance(m, torch.nn.BatchNorm2d):
                m.running_mean.uniform_(-0.1, 0.1)
                m.running_var.uniform_(0.8, 1.2)
                m.weight.uniform_(0.8, 1.2)
                m.bias.uniform_(-0.1, 0.1)
        for n, p in model.named_parameters():
            if n.endswith("layer_scale"):
                p.uniform_(0.3, 0.5)
            elif not p.any():  # as the head of the vision transformers
                p.uniform_(-0.1, 0.1)
    return model, 299 if name == "inception_v3" else 224


def count(path):
    return judge.operators(path).total()


def check(a, name, folder):
    """(verdict, nodes from the program, nodes from the trace, difference, seconds)."""
    model, size = make(name)
    torch.manual_seed(1)
    x = torch.randn(3, 3, size, size)
    path = lambda f: os.path.join(folder, f)
    with torch.no_grad():
        batch = torch.export.Dim("batch", min=1)
        program = torch.export.export(model, (x[:2],), dynamic_shapes=({0: batch},), strict=False)
        torch.export.save(program, path("m.pt2"))
        del program
        traced = torch.jit.trace(model, (x[:2],), check_trace=False)
        torch.jit.save(traced, path("m.pt"))
        del traced
        wanted = [model(x[:b]) for b in (2, 3)]
    del model
    seconds = judge.export(a.aton, path("m.pt2"), path("pt2.onnx"), opset=a.opset)
    os.remove(path("m.pt2"))
    n = count(path("pt2.onnx"))
    session = judge.session(path("pt2.onnx"), threads=torch.get_num_threads())
    worst = max(judge.distance(judge.run(session, [x[:len(want)]])[0], want) for want in wanted)
    del session
    for f in os.listdir(folder):
        if f.startswith("pt2."):
            os.remove(path(f))
    judge.export(a.aton, path("m.pt"), path("pt.onnx"), "--input", f"x:f32[N,3,{size},{size}]", opset=a.opset)
    of_trace = count(path("pt.onnx"))
    verdict = "ok" if worst <= TOLERANCE else "wrong"
    if verdict == "ok" and n > of_trace:
        verdict = "more nodes"
    return verdict, n, of_trace, worst, seconds


def main():
    p = argparse.ArgumentParser(description="Compares torchvision's models as exported programs with PyTorch and with their traces.")
    p.add_argument("--aton", required=True, metavar="PATH", help="the command aton")
    p.add_argument("--opset", default="20", metavar="N")
    p.add_argument("--results", metavar="FILE", help="rows of earlier runs, which are not made again")
    p.add_argument("names", nargs="*", metavar="NAME")
    a = p.parse_args()
    warnings.simplefilter("ignore")
    rows = {}
    if a.results and os.path.exists(a.results):
        with open(a.results) as f:
            for line in f:
                rows[line.split()[0]] = line.rstrip("\n")
    bad = 0
    print(f"{'model':22}{'nodes':>7}{'trace':>7}{'difference':>12}{'export s':>10}  verdict")
    for name in a.names or torchvision.models.list_models(module=torchvision.models):
        row = rows.get(name)
        if row is None:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    verdict, n, of_trace, worst, seconds = check(a, name, folder)
                except judge.Refused as e:
                    verdict, n, of_trace, worst, seconds = f"refused: {e}", None, None, None, None
                except Exception as e:  # what the runtime says is the result
                    verdict, n, of_trace, worst, seconds = str(e).splitlines()[0][:200], None, None, None, None
            show = lambda v, form: "-" if v is None else format(v, form)
            row = f"{name:22}{show(n, 'd'):>7}{show(of_trace, 'd'):>7}{show(worst, '.1e'):>12}{show(seconds, '.1f'):>10}  {verdict}"
            if a.results:
                with open(a.results, "a") as f:
                    f.write(row + "\n")
        bad += not row.endswith("  ok")
        print(row, flush=True)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
