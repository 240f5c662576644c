"""Tiny configurations of transformers' architectures, made from their default ones.

configs.tsv says which attribute gets which value, and why: rows of the model '*' are for all that have the attribute, others for one
architecture (parts of a nested configuration as text_config.hidden_size). Values are JSON.
"""
import contextlib
import csv
import json
import os
import re

import torch
from transformers import masking_utils
from transformers.exporters import utils
import transformers.exporters.exporter_dynamo  # noqa: F401  registers the patches
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

KINDS_OF_LAYERS = ("layer_types", "layers_block_type", "block_types", "mlp_layer_types")


def table():
    with open(os.path.join(os.path.dirname(__file__), "configs.tsv"), newline="") as f:
        for row in csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE):
            yield row["model"], row["attribute"], json.loads(row["value"])


def cover(kinds):
    """The shortest start of a list of layers that has a layer of every kind in it, two at least."""
    n = next(i for i in range(1, len(kinds) + 1) if set(kinds[:i]) == set(kinds))
    return max(n, 2)


def differing(values):
    """What a part of a configuration has of its own: the values that are not the default ones of its class."""
    try:
        default = CONFIG_MAPPING[values["model_type"]]().to_dict()
    except Exception:
        return {}
    return {k: v for k, v in values.items() if k in default and v != default[k] and not k.startswith("_") and not isinstance(v, dict) and k != "dtype"}


def sections(rope, rotary):
    """Sections of a rotation in several axes, for a rotary part of another width, in the same proportions."""
    old = rope["mrope_section"]
    new = [max(1, rotary // 2 * n // sum(old)) for n in old]
    new[0] += rotary // 2 - sum(new)
    return {**rope, "mrope_section": new}


def shrink(values, general, special, prefix=""):
    """What to give a configuration's class so that it is tiny, from the values of the default one."""
    out = {}
    for key, value in values.items():
        path = prefix + key
        if path in special:
            out[key] = special[path]
        elif isinstance(value, dict) and (key.endswith("_config") or "model_type" in value):
            own = {"model_type": value["model_type"], **differing(value)} if "model_type" in value else {k: v for k, v in value.items() if k.isidentifier()}
            out[key] = {**own, **shrink(value, general, special, path + ".")}
        elif key in general and isinstance(value, int) and not isinstance(value, bool) and (value > general[key] or key.endswith("_token_id")):
            out[key] = general[key]
        elif key.endswith("_token_id") and isinstance(value, list):
            out[key] = [general.get(key, 1)]
    if values.get("head_dim") and values.get("head_dim") == values.get("qk_rope_head_dim") and prefix + "head_dim" not in special:
        out["head_dim"] = out["qk_rope_head_dim"]  # another name of the rotary part
    rope = values.get("rope_parameters")
    if isinstance(rope, dict) and rope.get("mrope_section") and prefix + "rope_parameters" not in special:
        head = out.get("head_dim") or out.get("hidden_size", 64) // out.get("num_attention_heads", 4)
        out["rope_parameters"] = sections(rope, int(head * (rope.get("partial_rotary_factor") or values.get("partial_rotary_factor") or 1)))
    if values.get("kv_lora_rank") and "num_key_value_heads" in out and prefix + "num_key_value_heads" not in special:
        out["num_key_value_heads"] = out["num_attention_heads"]  # latent attention has a key for each head
    for path, value in special.items():  # what the default one does not have
        if path.startswith(prefix) and "." not in path[len(prefix):]:
            out[path[len(prefix):]] = value
    for key in KINDS_OF_LAYERS:
        kinds = values.get(key)
        if isinstance(kinds, list) and kinds and all(isinstance(k, str) for k in kinds) and prefix + key not in special:
            n = cover(kinds)
            if n <= 8:
                out[key] = kinds[:n]
                for count in ("num_hidden_layers", "n_layer", "num_layers"):
                    if count in values and prefix + count not in special:
                        out[count] = max(n, out.get(count, 0))
    lists = [out[k] for k in KINDS_OF_LAYERS if k in out]
    if len(lists) > 1:  # all as long as the longest
        n = max(map(len, lists))
        for k in KINDS_OF_LAYERS:
            if k in out and prefix + k not in special:
                out[k] = (values[k] * n)[:n]
    return out


COUNTS = re.compile(r"vocab_size|.*layers|n_layer|depth|.*_token_id|.*_token_index")


def tiny(model, thin=True):
    """The tiny configuration of an architecture, as transformers calls it: qwen3_moe. If not thin, its layers are as wide as by default, and
    few: some widths of an architecture have to fit each other."""
    rows = list(table())
    general = {a: v for m, a, v in rows if m == "*" and (thin or COUNTS.fullmatch(a))}
    special = {a: v for m, a, v in rows if m == model and not a.startswith("_")}
    cls = CONFIG_MAPPING[model]
    try:
        values = cls().to_dict()
    except Exception:  # one that has no defaults: the table has to say all
        values = {}
    values.update({k: None for k in special if "." not in k and k not in values})
    made = shrink(values, general, special)
    return cls(**{k: v for k, v in made.items() if not isinstance(getattr(cls, k, None), property)})  # what follows from other attributes


def draw(model):
    """Draws the weights so that none of them is without effect: matrices that keep the size of what they multiply, scales near one,
    biases that are not zero."""
    generator = torch.Generator().manual_seed(1)
    kernels = {id(m.weight) for m in model.modules() if isinstance(m, torch.nn.modules.conv._ConvNd)}
    with torch.no_grad():
        for name, p in model.named_parameters():
            if not p.is_floating_point() or p.numel() == 0:
                continue
            if p.dim() >= 2:
                p.normal_(0, (p[0].numel() if id(p) in kernels else p.shape[-1]) ** -0.5, generator=generator)
            elif bool((p == p.flatten()[0]).all()):
                low, high = (0.8, 1.2) if p.flatten()[0] == 1 else (-0.1, 0.1)
                p.uniform_(low, high, generator=generator)
    return model


MOST = 100_000_000  # weights of a model


def instance(from_config, config, name, thin):
    """The model of a configuration, with weights that are drawn."""
    torch.manual_seed(0)
    options = {"attn_implementation": option(name, "_attn_implementation")}
    if not thin:
        with torch.device("meta"):
            if (n := sum(p.numel() for p in from_config(config, **options).parameters())) > MOST:
                raise ValueError(f"{n} weights")
    return draw(from_config(config, **options).float()).eval()


def either(build, name):
    """What build(name, thin) gives for the thin model, else for one with layers of their default width, else the error of the thin one."""
    try:
        return build(name, True)
    except Exception as tiny:
        try:
            return build(name, False)
        except Exception:
            raise tiny


def option(model, name, default=None):
    """What the table says of an architecture that is no attribute of its configuration: _attn_implementation, _cache (false: it has none
    that a program could be given)."""
    return next((v for m, a, v in table() if m == model and a == name), default)


@contextlib.contextmanager
def patched():
    """Models as transformers' own exporters patch them for an archive; masks without torch.vmap and its indexing, which no archive keeps."""
    masks = [(masking_utils, "_vmap_expansion_sdpa", utils._patch_broadcast_mask_expansion),
             (masking_utils, "TransformGetItemToIndex", lambda _: contextlib.nullcontext)]
    with utils.apply_patches("dynamo"), utils.patch_attributes(masks):
        yield
