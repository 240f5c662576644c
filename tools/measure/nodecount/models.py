"""Save torchvision models as TorchScript archives, traced and scripted, with random weights, and their outputs.

usage: models.py OUT [NAME]...      (any Python with torch and torchvision)

OUT/NAME.trace.pt, OUT/NAME.script.pt, and OUT/NAME.npz: inputs x2, x3 (batches of 2 and 3) and the outputs y2, y3.
Statistics of batch normalization are drawn at random: folding them must matter.
"""

import os
import sys
import warnings

import numpy
import torch
import torchvision

SIZES = {
    "resnet50": 224, "mobilenet_v3_small": 224, "shufflenet_v2_x1_0": 224, "efficientnet_b0": 224, "convnext_tiny": 224, "vit_b_16": 224,
    "swin_t": 224, "googlenet": 224, "inception_v3": 299, "densenet121": 224, "regnet_y_400mf": 224, "maxvit_t": 224,
}


def first(y):
    return y if isinstance(y, torch.Tensor) else y[0]


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    warnings.simplefilter("ignore")
    for name in sys.argv[2:] or SIZES:
        size = SIZES[name]
        torch.manual_seed(0)
        # the default draws truncated normals, which takes a minute
        options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
        model = getattr(torchvision.models, name)(weights=None, **options).eval()
        for m in model.modules():
            if isinstance(m, torch.nn.BatchNorm2d):
                m.running_mean.uniform_(-0.1, 0.1)
                m.running_var.uniform_(0.8, 1.2)
                torch.nn.init.uniform_(m.weight, 0.8, 1.2)
                torch.nn.init.uniform_(m.bias, -0.1, 0.1)
        for w in model.parameters():
            if not w.any():  # such as the head of vit: the output would be 0
                torch.nn.init.uniform_(w, -0.1, 0.1)
        data = {}
        with torch.no_grad():
            for n in (2, 3):
                x = torch.randn(n, 3, size, size)
                data[f"x{n}"], data[f"y{n}"] = x.numpy(), first(model(x)).numpy()
            x = torch.from_numpy(data["x2"])
            torch.jit.save(torch.jit.trace(model, x, check_trace=False), f"{out}/{name}.trace.pt")
            torch.jit.save(torch.jit.script(model), f"{out}/{name}.script.pt")
        numpy.savez(f"{out}/{name}.npz", **data)
        print(name, flush=True)


if __name__ == "__main__":
    main()
