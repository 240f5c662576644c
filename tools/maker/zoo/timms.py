"""Families of timm, one small model of each, as one program each."""
import contextlib
import re

import timm
import torch

import configs
import programs

# in the order in which a family's smallest model is looked for
SMALL = ["test_", "atto", "zepto", "femto", "pico", "nano", "xxtiny", "xxs", "xtiny", "_xs", "tiny", "_s0", "_t$", "_t_", "_b0", "b0", "_050", "mini", "small", "_s$", "_s_", "18", "_26", "_50", "_b", "base"]


def models():
    """The smallest model of each module of timm, by its name; the first in alphabetical order where no name tells."""
    out = []
    for module in sorted(timm.list_modules()):
        names = sorted(timm.list_models(module=module))
        for mark in SMALL:
            if some := [n for n in names if re.search(mark, n)]:
                out.append(min(some, key=lambda n: (len(n), n)))
                break
        else:
            out += names[:1]
    return out


def make(name):
    """(programs, None) of a model."""
    torch.manual_seed(0)
    model = configs.draw(timm.create_model(name, pretrained=False)).eval()
    size = model.default_cfg["input_size"] if hasattr(model, "default_cfg") else (3, 224, 224)
    samples = [[torch.randn(b, *size, generator=torch.Generator().manual_seed(b))] for b in (2, 3)]
    return [programs.Program("forward", model, ["x"], samples, [{0: "B"}], ["output"], exact=True)], None


def patched():
    return contextlib.nullcontext()
