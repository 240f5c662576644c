#!/usr/bin/env python3
"""AlexNet at full size, traced and scripted, with a symbolic batch, at every opset: checked and run at two batch sizes.

    python3 tools/measure/bench/opsets.py make DIR      (a Python with torch and torchvision)
    .venv/bin/python tools/measure/bench/opsets.py DIR  (one with onnx, onnxruntime and numpy)

For each archive and opset: onnx.checker, the largest absolute difference from PyTorch at batches of 1 and 10, and
whether a second export gives the same bytes. Exit status 1 unless all differences are under 1e-4 and all bytes the same.
"""
import filecmp
import os
import sys

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../judge/python"))

OPSETS = (7, 9, 11, 13, 17, 20, 21, 23, 26)


def make(folder):
    import torch
    import torchvision

    os.makedirs(folder, exist_ok=True)
    torch.manual_seed(0)
    net = torchvision.models.alexnet(weights=None).eval()
    torch.jit.save(torch.jit.trace(net, torch.zeros(1, 3, 224, 224)), os.path.join(folder, "alexnet.trace.pt"))
    torch.jit.save(torch.jit.script(net), os.path.join(folder, "alexnet.script.pt"))
    data = {}
    with torch.no_grad():
        for n in (1, 10):
            x = torch.randn(n, 3, 224, 224)
            data[f"x{n}"], data[f"y{n}"] = x.numpy(), net(x).numpy()
    numpy.savez(os.path.join(folder, "alexnet.npz"), **data)


def main(folder):
    import onnx

    import judge

    data = numpy.load(os.path.join(folder, "alexnet.npz"))
    good = True
    first, second = os.path.join(folder, "first.onnx"), os.path.join(folder, "second.onnx")
    print(f"{'archive':8}{'opset':>6}{'nodes':>7}{'N=1':>10}{'N=10':>10}  again")
    for form in ("trace", "script"):
        for opset in OPSETS:
            for out in (first, second):
                judge.export("bin/aton", os.path.join(folder, f"alexnet.{form}.pt"), out, "--input", "x:f32[N,3,224,224]", opset=opset)
            onnx.checker.check_model(first, full_check=True)
            session = judge.session(first)
            worst = [judge.distance(judge.run(session, {"x": data[f"x{n}"]})[0], data[f"y{n}"], of=1) for n in (1, 10)]
            same = filecmp.cmp(first, second, shallow=False)
            good = good and same and max(worst) < 1e-4
            nodes = len(judge.loaded(first).graph.node)
            print(f"{form:8}{opset:6}{nodes:7}{worst[0]:10.1e}{worst[1]:10.1e}  {'same bytes' if same else 'OTHER BYTES'}", flush=True)
    os.remove(first)
    os.remove(second)
    return 0 if good else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["make"] and len(sys.argv) == 3:
        make(sys.argv[2])
    elif len(sys.argv) == 2:
        sys.exit(main(sys.argv[1]))
    else:
        sys.exit(__doc__)
