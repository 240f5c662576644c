"""Models of transformers that are no decoders: text, images, speech, and several of them together, as one program each."""
import inspect

import torch
from transformers import AutoModel
from transformers.exporters.utils import apply_patches
import transformers.exporters.exporter_dynamo  # noqa: F401  registers the patches
import transformers.models.auto.modeling_auto as auto

import cache
import configs
import programs


def models():
    return [m for m in auto.MODEL_MAPPING_NAMES if m not in auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES]


class Forward(torch.nn.Module):
    """All tensors that a model gives, for inputs by name."""

    def __init__(self, model, names):
        super().__init__()
        self.model, self.names = model, names
        known = inspect.signature(model.forward).parameters
        self.options = {k: v for k, v in (("use_cache", False), ("return_dict", True)) if k in known}

    def results(self, *tensors):
        out = self.model(**dict(zip(self.names, tensors)), **self.options)
        return [(p.lstrip(".") or "output", t) for p, t in cache.leaves(out)]

    def forward(self, *tensors):
        return tuple(t.clone() for _, t in self.results(*tensors))


def attribute(config, *names, default=None):
    """The first attribute of a configuration or of a part of it that is there."""
    for c in [config, *(getattr(config, s) for s in ("vision_config", "audio_config", "text_config", "backbone_config") if getattr(config, s, None) is not None)]:
        for n in names:
            if getattr(c, n, None) is not None:
                return getattr(c, n)
    return default


def given(model, config, batch, length):
    """(names, inputs, names of axes): what the model's forward asks for."""
    generator = torch.Generator().manual_seed(batch * 100 + length)
    known = inspect.signature(model.forward).parameters
    vocabulary = attribute(config.get_text_config(), "vocab_size", default=80)
    size = attribute(config, "image_size", default=32)
    height, width = size if isinstance(size, (list, tuple)) else (size, size)
    channels = attribute(config, "num_channels", "in_channels", "in_chans", default=3)
    text = ["B", "S"]

    def tokens():
        return torch.randint(3, min(vocabulary, 80), (batch, length), generator=generator), text

    makers = {
        "input_ids": tokens,
        "attention_mask": lambda: (torch.ones(batch, length, dtype=torch.int64), text),
        "bbox": lambda: (torch.randint(0, 50, (batch, length, 2), generator=generator).repeat(1, 1, 2) + torch.tensor([0, 0, 7, 5]), text),
        "decoder_input_ids": tokens,
        "pixel_values": lambda: (torch.randn(batch, channels, height, width, generator=generator), ["B"]),
        "input_values": lambda: (torch.randn(batch, 400 * 4, generator=generator), ["B"]),
        "input_features": lambda: (torch.randn(batch, attribute(config, "num_mel_bins", default=16), attribute(config, "max_source_positions", default=32) * 2, generator=generator), ["B"]),
    }
    main = [n for n in ("input_ids", "pixel_values", "input_values", "input_features") if n in known]
    required = [n for n, p in known.items() if p.default is inspect.Parameter.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    wanted = [n for n in known if n in makers and (n in required or n in main[:1] or n == model.main_input_name or n in ("bbox", "decoder_input_ids"))]
    if "input_ids" in wanted and "attention_mask" in known:
        wanted.insert(wanted.index("input_ids") + 1, "attention_mask")
    if missing := [n for n in required if n not in makers]:
        raise NotImplementedError(f"inputs that the generator has no maker for: {', '.join(missing)}")
    wanted = list(dict.fromkeys(wanted))
    if "decoder_input_ids" in wanted and not (config.is_encoder_decoder or "decoder_input_ids" in required):
        wanted.remove("decoder_input_ids")
    made = [makers[n]() for n in wanted]
    return wanted, [t for t, _ in made], [{i: a for i, a in enumerate(axes)} for _, axes in made]


def make(name):
    """(programs, None) of an architecture."""
    torch.manual_seed(0)
    config = configs.tiny(name)
    model = configs.draw(AutoModel.from_config(config, attn_implementation=configs.option(name, "_attn_implementation")).float()).eval()
    names, first, axes = given(model, config, 2, 9)
    _, second, _ = given(model, config, 3, 12)
    with apply_patches("dynamo"):
        module = Forward(model, names)
        with torch.no_grad():
            outputs = [p for p, _ in module.results(*programs.clone(first))]
        return [programs.Program("forward", module, names, [first, second], axes, outputs)], None


def patched():
    return apply_patches("dynamo")
