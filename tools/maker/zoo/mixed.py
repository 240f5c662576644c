"""Models of transformers that take images or sound among words: one program a kind of input, images and sound being put in the places of tokens."""
import inspect
import itertools

import torch
import transformers
from transformers import AutoModel
import transformers.models.auto.modeling_auto as auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import cache
import configs
import encoders
import programs

KINDS = {  # what makes the features, and the attributes that name the token whose places they take
    "image": ("get_image_features", ("image_token_id", "image_token_index", "img_context_token_id", "media_placeholder_token_id")),
    "video": ("get_video_features", ("video_token_id", "video_token_index")),
    "audio": ("get_audio_features", ("audio_token_id", "audio_token_index")),
}
MAIN = {"image": "pixel_values", "video": "pixel_values_videos", "audio": "input_features"}
FULL = auto.MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES


def whole(name):
    """The class with a head for words, where there is one."""
    return getattr(transformers, FULL[name], None) if name in FULL else None


def models():
    """Those that put features in the places of tokens, and those with an image beside the words, but for what encoders.py gives an image (_also)."""
    out = []
    for name in dict.fromkeys([*auto.MODEL_MAPPING_NAMES, *FULL]):
        try:
            cls = whole(name) or auto.MODEL_MAPPING[CONFIG_MAPPING[name]]
            cls = cls[0] if isinstance(cls, tuple) else cls
            known = inspect.signature(cls.forward).parameters
            if "input_ids" in known and not configs.option(name, "_also") and (any(hasattr(cls, f) for f, _ in KINDS.values()) and token(name) or name in FULL and "pixel_values" in known):
                out.append(name)
        except Exception:  # a class that a missing library keeps away
            continue
    return out


def token(name):
    """Whether a configuration names a token for images or sound."""
    try:
        values = CONFIG_MAPPING[name]().to_dict()
    except Exception:
        return True
    return any(a in part for _, attributes in KINDS.values() for a in attributes for part in (values, *(v for v in values.values() if isinstance(v, dict))))


def part(config, kind):
    """The configuration of an encoder."""
    names = ("audio_config", "encoder_config", "audio_encoder_config") if kind == "audio" else ("vision_config", "vq_config")
    for outer in (config, getattr(config, "thinker_config", None)):
        for n in names:
            if getattr(outer, n, None) is not None:
                return getattr(outer, n)
    return config


def forms(model, config, kind, batch):
    """Candidates of what an encoder takes: ({name: tensor that varies}, {name: layout, part of the program})."""
    c = part(config, kind)
    get = lambda *names, default: encoders.attribute(c, *names, default=default)
    generator = torch.Generator().manual_seed(batch)
    normal = lambda *shape: torch.randn(*shape, generator=generator)
    known = inspect.signature(model.forward).parameters
    if kind == "audio":
        mel = get("num_mel_bins", "feature_size", "n_mels", "input_feat_size", "mel_bins", "input_dim", "input_size", default=16)
        sound = get("max_source_positions", default=32) * 2
        if "input_features" not in known:
            yield {"input_values": normal(batch, 6400)}, {}
            return
        for length in dict.fromkeys((sound, 64, 200)):
            for shape in ((batch, mel, length), (batch, length, mel)):
                for mask in (torch.int64, torch.bool, None):
                    names = [n for n in ("input_features_mask", "feature_attention_mask", "padding_mask") if n in known and mask]
                    masks = {n: torch.ones(batch, length, dtype=mask) for n in names}
                    yield {"input_features": normal(*shape), **masks}, {}
        return
    size = get("image_size", "img_size", "input_size", default=32)
    height, width = size if isinstance(size, (list, tuple)) else (size["height"], size["width"]) if isinstance(size, dict) else (size, size)
    patch = get("patch_size", default=8)
    patch = patch if isinstance(patch, int) else patch[-1]
    channels = get("num_channels", "in_channels", "in_chans", default=3)
    channels = channels if isinstance(channels, int) else 3
    deep = get("temporal_patch_size", default=1)
    suffix, main = ("_videos", "pixel_values_videos") if kind == "video" else ("", "pixel_values")
    frames = 4 if kind == "video" else 1
    rows, columns = height // patch, width // patch
    flat = {f"{kind}_grid_hw": torch.tensor([[rows, columns]]).repeat(batch, 1)}
    if flat.keys() & known.keys():
        yield {main: normal(batch * rows * columns, channels * patch * patch)}, flat
        return
    grid = {f"{kind}_grid_thw": torch.tensor([[max(1, frames // deep) if kind == "video" else 1, rows, columns]]).repeat(batch, 1)}
    if grid.keys() & known.keys():
        n = int(grid[f"{kind}_grid_thw"][0].prod())
        more = {f"{kind}_merge_sizes": torch.tensor([2] * batch)} if f"{kind}_merge_sizes" in known else {}
        yield {main: normal(batch * n, channels * deep * patch * patch)}, {**grid, **more}
        yield {main: normal(batch * n, channels * patch * patch)}, {**grid, **more}
        yield {main: normal(batch * n, channels, patch, patch)}, {**grid, **more}
        yield {main: normal(batch, channels, height, width)}, grid
        return
    if f"{kind}_position_ids" in known:
        places = torch.cartesian_prod(torch.arange(rows), torch.arange(columns))
        if kind == "video":
            yield {main: normal(batch, frames, rows * columns, channels * patch * patch), "video_position_ids": places[None, None].repeat(batch, frames, 1, 1)}, {}
        for p in (patch, patch * get("pooling_kernel_size", default=1)):
            n = (height // p) * (width // p)
            yield {main: normal(batch, n, channels * p * p), "image_position_ids": torch.cartesian_prod(torch.arange(height // p), torch.arange(width // p))[None].repeat(batch, 1, 1)}, {}
        return
    if "spatial_shapes" in known:
        yield ({main: normal(batch, rows * columns, channels * patch * patch), "pixel_attention_mask": torch.ones(batch, rows * columns, dtype=torch.int64)},
               {"spatial_shapes": torch.tensor([[rows, columns]]).repeat(batch, 1)})
        return
    if f"target_sizes{suffix}" in known:
        sizes = {f"target_sizes{suffix}": torch.tensor([[rows, columns]]).repeat(batch, 1)}
        yield {main: normal(1, channels, patch, batch * rows * columns * patch)}, sizes
        yield {main: normal(batch, channels, patch, rows * columns * patch)}, sizes
        yield {main: normal(batch, channels, height, width)}, sizes
        return
    if "aspect_ratio_ids" in known:  # tiles of an image, which words attend to
        yield ({main: normal(batch, 1, 4, channels, height, width), "aspect_ratio_ids": torch.ones(batch, 1, dtype=torch.int64),
                "aspect_ratio_mask": torch.ones(batch, 1, 4, dtype=torch.int64)}, {})
        return
    more = {n: normal(batch, channels, s, s) for n, s in (("high_res_pixel_values", encoders.attribute(getattr(config, "high_res_vision_config", None), "image_size", default=64)),) if n in known}
    if "qformer_input_ids" in known:
        more["qformer_input_ids"] = torch.randint(3, 80, (batch, 6), generator=generator)
    masks = [{}]
    if "pixel_attention_mask" in known:
        masks = [{"pixel_attention_mask": torch.ones(batch, 1, height, width, dtype=torch.int64)}]
    sizes = [{}]
    if "image_sizes" in known:
        sizes = [{"image_sizes": [(height, width)] * batch}, {}]  # numbers, as transformers' exporter gives them
    shapes = [(batch, channels, height, width), (batch, 1, channels, height, width), (batch, 2, channels, height, width), (batch, 3, channels, height, width),
              (batch, 5, channels, height, width)]
    if kind == "video":
        shapes = [(batch, frames, channels, height, width)]
    else:
        shapes.append((batch, rows * columns, channels * patch * patch))
    if masks[0]:
        shapes = shapes[1:2] + shapes[:1]
    for shape, mask, fixed in itertools.product(shapes, masks, sizes):
        yield {main: normal(*shape), **more, **mask}, fixed


def rows(features, hidden):
    """How many places features take."""
    pooled = getattr(features, "pooler_output", None)
    if pooled is None:
        return features.last_hidden_state[..., 0].numel()
    tensors = [t for _, t in cache.leaves(pooled)]
    if any(t.shape[-1] != hidden for t in tensors):
        raise ValueError(f"features of shape {[list(t.shape) for t in tensors]}, words have {hidden}")
    return sum(t.numel() // hidden for t in tensors)


def prompt(config, kind, ids, count, batch, length):
    """Tokens of a batch: words, the places of the features between them, words."""
    generator = torch.Generator().manual_seed(batch * 100 + length)
    text = torch.randint(3, min(getattr(config.get_text_config(), "vocab_size", 80) or 80, 80), (batch, length), generator=generator)
    attribute = lambda *names: encoders.attribute(config, *names)
    start, end = (attribute(n) for n in ({"audio": ("audio_start_token_id", "audio_end_token_id")}.get(kind, ("vision_start_token_id", "vision_end_token_id"))))
    column = lambda t: [torch.full((batch, 1), t)] if isinstance(t, int) else []
    if not count:
        return text
    return torch.cat([text[:, :2], *column(start), torch.full((batch, count), ids), *column(end), text[:, 2:]], 1)


def given(model, config, kind):
    """(names, inputs at two sizes, axes, what is fixed) of a model for a kind of input."""
    function, attributes = KINDS[kind]
    outer = getattr(config, "thinker_config", None) or config
    ids = encoders.attribute(outer, *attributes)
    if ids is None and hasattr(model, "get_placeholder_mask"):
        raise NotImplementedError(f"no token for {kind}")
    hidden = encoders.attribute(config.get_text_config(), "hidden_size", "d_model")
    known = inspect.signature(model.forward).parameters
    features = getattr(base(model, function), function, None)
    takes = inspect.signature(features).parameters if features else ()
    error, far = None, False
    for tensors, fixed in forms(model, config, kind, 2):
        counted = False
        try:
            with torch.no_grad():
                count = 0 if features is None else rows(features(**{k: v for k, v in {**tensors, **fixed}.items() if k in takes}), hidden) // 2
            counted = True
            return (*full(model, config, kind, ids, count, tensors, fixed, known), fixed)
        except Exception as e:
            if error is None or counted and not far:  # the message of the form that came furthest
                error, far = e, counted
    raise error


def full(model, config, kind, ids, count, tensors, fixed, known):
    """(names, inputs at two sizes, axes): words of two lengths, and of two batches where nothing is laid out for one."""
    made, names = [], []
    for batch, length in ((2, 9), (2 if fixed else 3, 12)):
        tokens = prompt(config, kind, ids, count, batch, length)
        places = torch.zeros_like(tokens) if ids is None else (tokens == ids).long()
        inputs = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}
        inputs.update(tensors if batch == 2 else {k: torch.cat([v, v[:1]]) for k, v in tensors.items()})
        extra = {n: (2 * places if kind == "video" else places) for n in ("token_type_ids", "mm_token_type_ids") if n in known}
        if hasattr(base(model, "get_rope_index"), "get_rope_index"):
            rope = inspect.signature(base(model, "get_rope_index").get_rope_index).parameters
            if "input_ids" in rope:
                have = {**inputs, **extra, **fixed, "mm_token_type_ids": extra.get("mm_token_type_ids", places)}
                extra["position_ids"] = base(model, "get_rope_index").get_rope_index(**{k: v for k, v in have.items() if k in rope})[0]
                extra.pop("mm_token_type_ids", None)
        if "cross_attention_mask" in known:
            extra["cross_attention_mask"] = torch.ones(*tokens.shape, 1, 4, dtype=torch.int64)
        if "bbox" in known:
            extra["bbox"] = torch.tensor([0.1, 0.2, 0.3, 0.4]).repeat(*tokens.shape, 1)
        if config.is_encoder_decoder and "decoder_input_ids" in known:
            extra["decoder_input_ids"] = tokens[:, :4].clone()
        inputs = {k: v for k, v in {**inputs, **extra}.items() if k in known}
        names = list(inputs)
        made.append(list(inputs.values()))
    module = encoders.Forward(model, names, fixed)
    with torch.no_grad():
        for m in made:
            list(module.results(*programs.clone(m)))
    axes = [{i: ("B" if a.shape[i] == 2 and not fixed else "S") for i in range(a.dim()) if a.shape[i] != b.shape[i]} for a, b in zip(*made)]
    return names, made, axes


def base(model, function):
    """What a function is a method of: the model below a head, where it has one too."""
    below = getattr(model, model.base_model_prefix or "model", model)
    return below if hasattr(below, function) else model


def build(name, thin):
    config = configs.tiny(name, thin)
    cls = whole(name)
    model = configs.instance(cls._from_config if cls else AutoModel.from_config, config, name, thin)
    found, error = {}, None
    kinds = [k for k, (f, _) in KINDS.items() if hasattr(base(model, f), f)]
    for kind in kinds or ["image"]:  # without features of its own, an image is beside the words
        try:
            with patched():
                found[kind] = given(model, config, kind)
        except Exception as e:
            error = error or e
    if not found:
        raise error
    return model, found


def make(name):
    """(programs, None) of an architecture: image, video, audio."""
    model, found = configs.either(build, name)
    out = []
    with patched():
        for kind, (names, samples, axes, fixed) in found.items():
            module = encoders.Forward(model, names, fixed)
            with torch.no_grad():
                outputs = [p for p, _ in module.results(*programs.clone(samples[0]))]
            out.append(programs.Program(kind, module, names, samples, axes, outputs))
    return out, None


def patched():
    return configs.patched()
