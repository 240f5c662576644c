"""Models of transformers that are no decoders: text, images, speech, and several of them together, as one program each."""
import inspect
import itertools

import torch
import transformers
from transformers import AutoModel
import transformers.models.auto.modeling_auto as auto

import cache
import configs
import programs


def models():
    return [m for m in auto.MODEL_MAPPING_NAMES if m not in auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES]


class Forward(torch.nn.Module):
    """All tensors that a model gives, for inputs by name; what counts or lays out (fixed) is part of the program."""

    def __init__(self, model, names, fixed=None):
        super().__init__()
        self.model, self.names, self.fixed = model, names, fixed or {}
        known = inspect.signature(model.forward).parameters
        self.options = {k: v for k, v in (("use_cache", False), ("return_dict", True)) if k in known}
        for part in model.modules():  # what forward does not name
            if getattr(getattr(part, "config", None), "use_cache", None):
                part.config.use_cache = False

    def results(self, *tensors):
        out = self.model(**dict(zip(self.names, tensors)), **self.fixed, **self.options)
        return [(p.lstrip(".") or "output", t) for p, t in cache.leaves(out)]

    def forward(self, *tensors):
        return tuple(t.clone() for _, t in self.results(*tensors))


PARTS = ("vision_config", "audio_config", "encoder_config", "text_config", "backbone_config", "decoder_config", "speech_config", "qformer_config")
TEXT = ("input_ids", "bbox")
OTHERS = ("pixel_values", "input_values", "input_features", "decoder_input_ids", "query_embeds", "audio_codes", "pixel_values_videos")
MASKS = ("attention_mask", "pixel_mask", "input_features_mask", "padding_mask")
ROUNDS = 24  # how many forms of the inputs are tried in each round


def attribute(config, *names, default=None):
    """The first attribute of a configuration or of a part of it that is there."""
    for c in [config, *(getattr(config, s) for s in PARTS if getattr(config, s, None) is not None)]:
        for n in names:
            if getattr(c, n, None) is not None:
                return getattr(c, n)
    return default


def makers(config, batch, length):
    """{name of an input: forms}, a form being (function of a generator that makes the tensor, names of its axes)."""
    text = config.get_text_config()
    vocabulary = min(attribute(text, "vocab_size", default=80) or 80, 80)
    hidden = attribute(text, "hidden_size", "d_model", default=64)
    size = configs.option(config.model_type, "_size") or attribute(config, "image_size", "img_size", default=32)
    height, width = size if isinstance(size, (list, tuple)) else (size["height"], size["width"]) if isinstance(size, dict) else (size, size)
    channels = attribute(config, "num_channels", "in_channels", "in_chans", default=3)
    patch = attribute(config, "patch_size", default=8)
    patch = patch if isinstance(patch, int) else patch[-1]
    frames = attribute(config, "num_frames", "frames_per_clip", default=4)
    mel = attribute(config, "input_feat_per_channel", "num_mel_bins", "feature_size", "n_mels", "input_feat_size", "feature_projection_input_dim", "spectrogram_bins", default=16)
    sound = attribute(config, "max_length", "spec_size", "num_mel_frames", default=64)
    packed = channels * attribute(config, "temporal_patch_size", default=1) * patch * patch
    past = (attribute(config, "context_length", default=0) or 0) + max(attribute(config, "lags_sequence", default=[0]) or [0])
    future = attribute(config, "prediction_length", default=0) or 0
    real = (attribute(config, "num_time_features", default=0) or 0)
    static = (attribute(config, "num_static_real_features", default=0) or 0)
    words, batched, none = ["B", "S"], ["B"], []

    def normal(*shape, axes=batched):
        return lambda g: torch.randn(*shape, generator=g), axes

    def ones(*shape, axes=batched, dtype=torch.int64):
        return lambda g: torch.ones(*shape, dtype=dtype), axes

    def whole(low, high, *shape, axes=batched):
        return lambda g: torch.randint(low, max(high, low + 1), shape, generator=g), axes

    tokens = whole(3, vocabulary, batch, length, axes=words)
    books = attribute(config, "num_codebooks", "n_codebooks", "num_quantizers", default=4)
    return {
        "input_ids": [tokens, whole(3, vocabulary, batch, length, books, axes=words), whole(3, vocabulary, batch, length, books + 1, axes=words)],
        "attention_mask": [ones(batch, length, axes=words)],
        "token_type_ids": [whole(0, 1, batch, length, axes=words)],
        "bbox": [(lambda g: torch.randint(0, 50, (batch, length, 2), generator=g).repeat(1, 1, 2) + torch.tensor([0, 0, 7, 5]), words)],
        "decoder_input_ids": [tokens, whole(3, vocabulary, batch, length, books, axes=words)],
        "latents": [normal(batch, 12, hidden), normal(batch, hidden, 12)],
        "pixel_values": [normal(batch, channels, height, width), normal(batch, frames, channels, height, width), normal(batch, 2, channels, height, width),
                         normal(batch, (height // patch) * (width // patch), packed), normal((height // patch) * (width // patch), packed, axes=none), normal(1, channels, patch, (height // patch) * width, axes=none),
                         normal((height // patch) * (width // patch), channels, patch, patch, axes=none),
                         normal((height // patch) * (width // patch), 2 * packed, axes=none)],
        "pixel_values_videos": [normal(batch, frames, channels, height, width)],
        "pixel_mask": [ones(batch, height, width)],
        "input_values": [normal(batch, 1600), normal(batch, 1, 1600), normal(batch, sound, mel), normal(batch, length, channels, axes=words), normal(batch, length, hidden, axes=words), normal(batch, 1, 7680)],
        "input_features": [normal(batch, mel, attribute(config, "max_source_positions", default=32) * 2), normal(batch, mel, 64), normal(batch, 64, mel),
                           normal(batch, 1, sound, mel), normal(batch, 1, mel, sound)],
        "input_features_mask": [ones(batch, 64), ones(batch, 64, dtype=torch.bool), ones(batch, 32), ones(batch, attribute(config, "max_source_positions", default=32) * 2)],
        "padding_mask": [ones(batch, 1600, dtype=torch.bool)],
        "audio_mel": [normal(batch, 64, mel)],
        "audio_mel_mask": [(lambda g: torch.zeros(batch, 64, dtype=torch.bool), batched)],
        "audio_codes": [whole(0, 16, batch, books, 12), whole(0, 16, batch, 12, books)],
        "query_embeds": [normal(batch, 8, hidden)],
        "hidden_states": [normal((height // patch) * (width // patch), packed, axes=none)],
        "pixel_position_ids": [(lambda g: torch.cartesian_prod(torch.arange(height // patch), torch.arange(width // patch))[None].repeat(batch, 1, 1), batched)],
        "past_values": [normal(batch, past or 32), normal(batch, past or 32, channels), normal(batch, past or 32, attribute(config, "input_size", default=1))],
        "past_time_features": [normal(batch, past, real)],
        "past_observed_mask": [ones(batch, past)],
        "future_values": [normal(batch, future)],
        "future_time_features": [normal(batch, future, real)],
        "static_real_features": [normal(batch, static)],
        "states": [normal(batch, length, attribute(config, "state_dim", default=17), axes=words)],
        "actions": [normal(batch, length, attribute(config, "act_dim", default=4), axes=words)],
        "rewards": [normal(batch, length, 1, axes=words)],
        "returns_to_go": [normal(batch, length, 1, axes=words)],
        "timesteps": [(lambda g: torch.arange(length)[None].repeat(batch, 1), words)],
        "spectrogram": [normal(batch, 64, mel)],
        "inputs": [normal(batch, length, attribute(config, "d_model", "d_latents", default=64), axes=words), tokens],
        "encoder_hidden_states": [normal(batch, 7, attribute(config, "encoder_hidden_size", default=hidden))],
        "visual_feats": [normal(batch, 5, attribute(config, "visual_feat_dim", default=64))],
        "visual_pos": [normal(batch, 5, 4)],
        "task_inputs": [whole(3, vocabulary, batch, attribute(config, "task_seq_len", default=77))],
        "prompt_pixel_values": [normal(batch, channels, height, width)],
        "prompt_masks": [normal(batch, channels, height, width)],
        "pixel_attention_mask": [ones(batch, (height // patch) * (width // patch)), ones(batch, 1, height, width)],
        "spatial_shapes": [(lambda g: torch.tensor([[height // patch, width // patch]]).repeat(batch, 1), batched)],
        "image_attention_mask": [ones(batch, length, 2, axes=words)],
        "image_embeds_position_mask": [(lambda g: (torch.arange(length) < attribute(config, "latent_query_num", default=4))[None].repeat(batch, 1).long(), words)],
        "past_values_padding": [(lambda g: torch.zeros(batch, past or 32), batched)],
        "freq": [whole(0, 2, batch, 1)],
        "qformer_input_ids": [tokens],
        "decoder_input_values": [normal(batch, length, hidden, axes=words)],
        "action_embeds": [normal(batch, 4, hidden)],
        "noise_embeds": [normal(batch, length, hidden, axes=words)],
        "context_hidden_states": [normal(batch, length, hidden, axes=words)],
        "input_points": [(lambda g: torch.rand(batch, 1, 2, 2, generator=g) * height, batched)],
        "input_labels": [ones(batch, 1, 2)],
    }


LAYOUT = ("grid_thw", "image_grid_thw", "merge_sizes", "target_sizes")


def layout(config, known):
    """What is a program's own, as its name in forward: the grid of patches, that is read as numbers."""
    size, patch = attribute(config, "image_size", default=32), attribute(config, "patch_size", default=8)
    size, patch = (v if isinstance(v, int) else v[-1] for v in (size, patch))
    grid = torch.tensor([[1, size // patch, size // patch]])
    out = {"grid_thw": grid, "image_grid_thw": grid, "merge_sizes": torch.tensor([2]), "target_sizes": grid[:, 1:]}
    required = [n for n in out if n in known and (n != "image_grid_thw" or "input_ids" not in known)]
    return {n: out[n] for n in required}


def rounds(model, known):
    """Which inputs to try, fewest first: a list of lists of names."""
    required = [n for n, p in known.items() if p.default is inspect.Parameter.empty and p.kind is p.POSITIONAL_OR_KEYWORD and n not in LAYOUT]
    main = [n for n in ("input_ids", *OTHERS[:3], "states", "past_values", "pixel_values_videos") if n in known]
    first = set(required) | {n for n in main if n == model.main_input_name or n == main[0]}
    if "states" in first:
        first |= {"actions", "rewards", "returns_to_go", "timesteps"}
    if "past_time_features" in first:
        first |= {"future_values", "future_time_features"} & set(known)
    if "input_ids" in first and "attention_mask" in known:
        first.add("attention_mask")
    if "input_ids" in first or "decoder_input_ids" in known:
        first |= {n for n in ("bbox", "decoder_input_ids") if n in known and (n == "bbox" or model.config.is_encoder_decoder)}
    first |= set(configs.option(model.config.model_type, "_also", []))
    others = {n for n in OTHERS if n in known}
    masks = {n for n in MASKS if n in known}
    out = [first, first | others - {"pixel_values_videos"} - {"audio_codes"}, first | others, first - {"attention_mask"}, first | masks]
    if "input_ids" in known:
        out.append(first | {"input_ids", "attention_mask"} & set(known))
    out.append(first | others | masks)
    return [[n for n in known if n in names] for i, names in enumerate(out) if names not in out[:i]]


def given(model, config, sizes=((2, 9), (3, 12))):
    """(names, inputs of each size, names of axes, what is fixed): what the model's forward takes, the first form that it accepts."""
    known = inspect.signature(model.forward).parameters
    forms = [makers(config, *s) for s in sizes]
    fixed = layout(config, known)
    error = NotImplementedError("forward names no input")
    for names in rounds(model, known):
        if missing := [n for n in names if n not in forms[0]]:
            raise NotImplementedError(f"inputs that the generator has no maker for: {', '.join(missing)}")
        if not names:
            continue
        for choice in itertools.islice(itertools.product(*(range(len(forms[0][n])) for n in names)), ROUNDS):
            made = []
            for f, (batch, length) in zip(forms, sizes):
                generator = torch.Generator().manual_seed(batch * 100 + length)
                made.append([f[n][c][0](generator) for n, c in zip(names, choice)])
            module = Forward(model, names, fixed)
            try:
                with torch.no_grad():
                    if all([list(module.results(*programs.clone(tensors))) for tensors in made]):
                        return names, made, [dict(enumerate(forms[0][n][c][1])) for n, c in zip(names, choice)], fixed
            except Exception as e:
                if not isinstance(error, NotImplementedError):
                    continue  # the first message says most
                error = e
    raise error


def build(name, thin):
    """The model of an architecture, and what it takes (given)."""
    config = configs.tiny(name, thin)
    from_config = AutoModel.from_config
    if part := configs.option(name, "_part"):  # of a model that has no forward of its own
        config, from_config = getattr(config, part), getattr(transformers, configs.option(name, "_class"))._from_config
    model = configs.instance(from_config, config, name, thin)
    with patched():
        return model, *given(model, config)


def make(name):
    """(programs, None) of an architecture."""
    model, names, samples, axes, fixed = configs.either(build, name)
    with patched():
        module = Forward(model, names, fixed)
        with torch.no_grad():
            outputs = [p for p, _ in module.results(*programs.clone(samples[0]))]
        return [programs.Program("forward", module, names, samples, axes, outputs)], None


def patched():
    return configs.patched()
