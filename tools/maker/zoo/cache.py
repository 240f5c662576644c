"""What a decoder keeps between tokens, as a list of tensors and back.

A cache of transformers is an object with tensors somewhere in it. `leaves` lists them by path; `rebuild` makes a cache of the same form with
other tensors. What is not a tensor (flags, types, configurations) is shared with the first one.
"""
import copy
import enum

import torch
from transformers import PretrainedConfig

OUTPUTS = ("past_key_values", "cache_params", "state", "mems", "past_buckets_states", "rnn_state")


def opaque(value):
    return isinstance(value, (PretrainedConfig, torch.nn.Module, enum.Enum, torch.dtype, torch.device, type)) or not (
        isinstance(value, (list, tuple, dict)) or type(value).__module__.startswith("transformers."))


def leaves(value, path=""):
    """(path, tensor) of every tensor with elements."""
    if isinstance(value, torch.Tensor):
        if not any(isinstance(n, int) and n == 0 for n in value.shape):  # sizes that depend on data are not asked
            yield path, value
    elif opaque(value):
        return
    elif isinstance(value, (list, tuple)):
        for i, v in enumerate(value):
            yield from leaves(v, f"{path}.{i}")
    else:
        for k, v in (value if isinstance(value, dict) else vars(value)).items():
            yield from leaves(v, f"{path}.{k}")


def rebuild(value, tensors, path=""):
    """A cache like value, with tensors[path] for each of its tensors."""
    if isinstance(value, torch.Tensor):
        return tensors[path] if path in tensors else value
    if opaque(value):
        return value
    if isinstance(value, (list, tuple)):
        items = [rebuild(v, tensors, f"{path}.{i}") for i, v in enumerate(value)]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    out = copy.copy(value)
    if isinstance(value, dict):
        for k, v in value.items():
            out[k] = rebuild(v, tensors, f"{path}.{k}")
    else:
        for k, v in vars(value).items():
            setattr(out, k, rebuild(v, tensors, f"{path}.{k}"))
    return out


def find(outputs):
    """(name, cache) of a model's outputs, or None."""
    for name in OUTPUTS:
        value = outputs.get(name) if hasattr(outputs, "get") else getattr(outputs, name, None)
        if value is not None and any(True for _ in leaves(value)):
            return name, value
    return None
