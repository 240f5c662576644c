#!/usr/bin/env python3
"""Time and memory of exports of large models beside cp: gigabytes of bfloat16 weights, and many layers.

    PYTHON tools/measure/bench/large.py --dir DIR [--gb 5] [--layers 1,10,100,1000] [--rounds 3] [--aton bin/aton]

The model is made of layers of a decoder without attention: normalization, and products with weights of a gated MLP on a
tensor of three axes, as in Llama. It is saved by torch.export.save and by torch.jit.trace, exported with its weights beside
the model (--external-data always), and the archive is copied by cp. Private memory is what the process made itself (RssAnon),
without the pages of mapped files. With --layers the weights are small, and there are many nodes. PYTHON has torch.
"""
import argparse
import os
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from alexnet import measure  # noqa: E402

MAKE = """
import sys, torch
from torch import nn
torch.manual_seed(0)
kind, path, layers, width = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.gate, self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        h = self.norm(x)
        return x + self.down(nn.functional.silu(self.gate(h)) * self.up(h))

torch.set_default_dtype(torch.bfloat16)
with torch.device("meta"):
    net = nn.Sequential(*(Layer() for _ in range(layers)))
net = net.to_empty(device="cpu").eval()
for p in net.parameters():
    p.requires_grad_(False).view(torch.int16).random_(0x3c00, 0x3e00)  # small positive numbers
x = torch.ones(1, 2, width)
if kind == "pt2":
    torch.export.save(torch.export.export(net, (x,)), path)
else:
    torch.jit.save(torch.jit.trace(net, (x,), check_trace=False), path)
"""


def make(kind, path, layers, width):
    subprocess.run([sys.executable, "-c", MAKE, kind, path, str(layers), str(width)], check=True, stderr=subprocess.DEVNULL)


def nodes_of(aton, path):
    out = subprocess.run([aton, "inspect", path, "--at", "onnx", "--no-weights"], capture_output=True, text=True).stdout
    return sum("= onnx::" in line and "onnx::Constant" not in line for line in out.splitlines())


def best(rounds, command, after):
    took = []
    for _ in range(rounds):
        took.append(measure(command))
        for name in os.listdir(after):
            os.remove(os.path.join(after, name))
    return min(t[0] for t in took), statistics.median(t[0] for t in took), max(t[1] for t in took), max(t[2] for t in took)


def row(opts, kind, layers, width, copies):
    path, after = os.path.join(opts.dir, "model." + kind), os.path.join(opts.dir, "after")
    os.makedirs(after, exist_ok=True)
    make(kind, path, layers, width)
    size = os.path.getsize(path)
    out = os.path.join(after, "model.onnx")
    if copies:
        subprocess.run(["cat", path], stdout=subprocess.DEVNULL, check=True)  # into the cache of the system
        low, mid, _, _ = best(opts.rounds, ["cp", path, os.path.join(after, "copy")], after)
        print(f"{kind}, {size / 1e9:.2f} GB: cp {low:.2f} s best, {mid:.2f} s middle", flush=True)
    low, mid, own, total = best(opts.rounds, [opts.aton, "export", path, "-o", out, "--external-data", "always"], after)
    print(f"{kind}, {layers} layers, {size / 1e9:.2f} GB: aton {low:.2f} s best, {mid:.2f} s middle, private {own:.0f} MB, with mapped files {total:.0f} MB", flush=True)
    os.remove(path)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--dir", required=True, help="a folder with room for three times the weights")
    p.add_argument("--gb", type=float, default=5)
    p.add_argument("--layers", default="")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--aton", default="bin/aton")
    opts = p.parse_args()
    os.makedirs(opts.dir, exist_ok=True)
    for kind in ("pt2", "pt"):
        if opts.gb:
            width = 2048
            row(opts, kind, max(1, round(opts.gb * 1e9 / (2 * 12 * width * width))), width, True)
        for n in [int(n) for n in opts.layers.split(",") if n]:
            row(opts, kind, n, 8, False)


if __name__ == "__main__":
    main()
