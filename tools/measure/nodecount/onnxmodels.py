"""Write ONNX files as torch.onnx makes them before anything optimizes them, with random weights and a dynamic batch.

usage: onnxmodels.py OUT [--filter RE] [--variant NAME]...      (Python with torch 2.15, torchvision, onnx, onnxscript)

OUT/MODEL.VARIANT.onnx, the variants being raw17 and raw13 (TorchScript exporter, no constant folding, opset 17 or 13),
folded17 (the same, folded) and dynamo (torch.export exporter, optimize=False, opset 18); and OUT/MODEL.npz: the inputs
a.NAME and b.NAME, of two batches. Files that are there already are kept.
"""

import argparse
import os
import re
import sys
import warnings

import numpy
import torch
import torchvision
from torch import nn

VARIANTS = ("raw17", "raw13", "folded17", "dynamo")


def image(name, size=224, **options):
    """A classification model, and what makes its inputs of a batch size."""

    def make():
        model = getattr(torchvision.models, name)(weights=None, **options)
        return model, [lambda n: torch.randn(n, 3, size, size)]

    return make


class First(nn.Module):
    """The first of a model's outputs."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, *x):
        y = self.model(*x)
        return y["out"] if isinstance(y, dict) else y[0]


def segmentation(name, size=160):
    def make():
        model = getattr(torchvision.models.segmentation, name)(weights=None, weights_backbone=None)
        return First(model), [lambda n: torch.randn(n, 3, size, size)]

    return make


class Attention(nn.Module):
    """Two layers of attention with a causal mask that the program makes from the length."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(100, 32)
        self.attend = nn.MultiheadAttention(32, 4, batch_first=True)
        self.norm = nn.LayerNorm(32)
        self.feed = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))

    def forward(self, tokens):
        n, t = tokens.shape
        x = self.embed(tokens) + torch.sin(torch.arange(t, device=tokens.device).to(torch.float32)).view(1, t, 1)
        mask = torch.full((t, t), float("-inf")).triu(1)
        y, _ = self.attend(x, x, x, attn_mask=mask, need_weights=False)
        x = self.norm(x + y)
        return x + self.feed(x)


class Shapes(nn.Module):
    """Operators whose export computes with sizes."""

    def __init__(self):
        super().__init__()
        self.shuffle = nn.PixelShuffle(2)
        self.unfold = nn.Unfold(2, stride=2)
        self.reflect = nn.ReflectionPad2d(1)

    def forward(self, x):
        n, c, h, w = x.shape
        y = self.shuffle(x)
        z = self.unfold(y).view(n, -1, h, w)
        z = torch.roll(self.reflect(z), (1, -1), (2, 3))
        z = torch.einsum("nchw,ndhw->ncd", z, z)
        z = z.permute(0, 2, 1).contiguous().view(n, -1).reshape(n, z.size(1), z.size(2))
        return nn.functional.pad(z, (1, 2)).flip(1), x.new_zeros(n, c).expand(n, c) + x.mean((2, 3))


class Sequence(nn.Module):
    """An LSTM whose first state is made from the batch."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 16, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(32, 4)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        return self.head(y[:, -1]), h


def small(model, *inputs):
    return lambda: (model(), list(inputs))


def detector(name, size):
    def make():
        model = getattr(torchvision.models.detection, name)(weights=None, weights_backbone=None)
        return model, [lambda n: torch.rand(1, 3, size, size + 16 * n)]

    return make


def encoder():
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2, enable_nested_tensor=False)


MODELS = {
    "resnet50": image("resnet50"),
    "mobilenet_v3_small": image("mobilenet_v3_small"),
    "shufflenet_v2_x1_0": image("shufflenet_v2_x1_0"),
    "efficientnet_b0": image("efficientnet_b0"),
    "convnext_tiny": image("convnext_tiny"),
    "swin_t": image("swin_t"),
    "vit_b_16": image("vit_b_16"),
    "maxvit_t": image("maxvit_t"),
    "swin_v2_t": image("swin_v2_t", 256),
    "googlenet": image("googlenet", init_weights=False),
    "densenet121": image("densenet121"),
    "regnet_y_400mf": image("regnet_y_400mf"),
    "deeplabv3_mobilenet_v3_large": segmentation("deeplabv3_mobilenet_v3_large"),
    "fcn_resnet50": segmentation("fcn_resnet50"),
    "lraspp_mobilenet_v3_large": segmentation("lraspp_mobilenet_v3_large"),
    "attention": small(Attention, lambda n: torch.randint(0, 100, (n, 12))),
    "encoder": small(encoder, lambda n: torch.randn(n, 10, 32)),
    "shapes": small(Shapes, lambda n: torch.randn(n, 16, 6, 8)),
    "sequence": small(Sequence, lambda n: torch.randn(n, 7, 8)),
    "ssdlite320_mobilenet_v3_large": detector("ssdlite320_mobilenet_v3_large", 320),
    "fasterrcnn_mobilenet_v3_large_320_fpn": detector("fasterrcnn_mobilenet_v3_large_320_fpn", 320),
}


def randomize(model):
    """Statistics of batch normalization, and weights that start at 0, must matter."""
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.running_mean.uniform_(-0.1, 0.1)
            m.running_var.uniform_(0.8, 1.2)
            nn.init.uniform_(m.weight, 0.8, 1.2)
            nn.init.uniform_(m.bias, -0.1, 0.1)
    for w in model.parameters():
        if not w.any():
            nn.init.uniform_(w, -0.1, 0.1)


def write(model, args, names, path, variant, whole):
    """Run one exporter; whole: the sizes of images are dynamic, not the batch."""
    axes = {n: ({2: "height", 3: "width"} if whole else {0: "N"}) for n in names}
    if variant == "dynamo":
        dim = torch.export.Dim
        shapes = tuple({2: dim("height"), 3: dim("width")} if whole else {0: dim("N")} for _ in names)
        if isinstance(model, First):  # forward takes *x
            shapes = (shapes,)
        torch.onnx.export(model, args, path, dynamo=True, optimize=False, opset_version=18, input_names=names, dynamic_shapes=shapes, external_data=False, verbose=False)
        return
    torch.onnx.export(
        model, args, path, dynamo=False, opset_version=int(variant[-2:]), do_constant_folding=variant.startswith("folded"),
        input_names=names, dynamic_axes=axes,
    )


def main():
    p = argparse.ArgumentParser()
    p.add_argument("out")
    p.add_argument("--filter", default="")
    p.add_argument("--variant", action="append", choices=VARIANTS)
    args = p.parse_args()
    os.makedirs(args.out, exist_ok=True)
    warnings.simplefilter("ignore")
    torch.backends.mha.set_fastpath_enabled(False)  # fused layers have no operators in ONNX
    for name, make in MODELS.items():
        wanted = [v for v in args.variant or VARIANTS if not os.path.exists(f"{args.out}/{name}.{v}.onnx")]
        if not re.search(args.filter, name) or not wanted:
            continue
        torch.manual_seed(0)
        model, inputs = make()
        model.eval()
        randomize(model)
        names = [f"x{i}" for i in range(len(inputs))]
        a, b = tuple(f(2) for f in inputs), tuple(f(3) for f in inputs)
        data = {f"a.{n}": x.numpy() for n, x in zip(names, a)} | {f"b.{n}": x.numpy() for n, x in zip(names, b)}
        numpy.savez(f"{args.out}/{name}.npz", **data)
        for v in wanted:
            path = f"{args.out}/{name}.{v}.onnx"
            try:
                with torch.no_grad():
                    write(model, a, names, path + ".part", v, "rcnn" in name or "ssd" in name)
                os.rename(path + ".part", path)
                print(f"{name}.{v}", flush=True)
            except Exception as e:  # some exporters do not have some models: the table has no row then
                print(f"{name}.{v}: {type(e).__name__}: {str(e).splitlines()[0][:200]}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
