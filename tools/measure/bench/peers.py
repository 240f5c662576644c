"""Models that people deploy, beside torch.onnx's dynamo exporter: nodes, numbers and latency.

    python3 tools/measure/bench/peers.py make DIR [--filter RE] [--opsets 18,23,24]
    python3 tools/measure/bench/peers.py count DIR [--aton bin/aton] [--filter RE] [--kinds] [--out tools/measure/bench/peers.tsv]
    python3 tools/measure/bench/peers.py latency DIR [--opset 23] [--seconds 4] [--option=...] [--filter RE]

make builds each model from a random configuration (no weights are fetched), runs it in PyTorch, and saves: NAME.pt2 and NAME.pt
(torch.export and torch.jit.trace), NAME.npz (inputs and outputs), NAME.dynamoN.onnx (torch.onnx.export(dynamo=True,
optimize=True) at opset N). Models called NAME.dyn have dynamic axes for batch and length, those called NAME.f16 are in float16. It needs torch, torchvision and transformers.

count exports with aton at the same opsets, counts the nodes of both files (nested graphs too, constants not), and compares the
outputs of both in onnxruntime with PyTorch's. Exit status 1 if a file of aton's has other numbers, or more nodes than dynamo's.

latency runs both files in turn, one thread each, so that what else the machine does hits both, and prints the ratio of the
medians and of the minima, with the spread: the quartiles of the ratio of neighbouring runs.
"""

import argparse
import os
import re
import sys
import tempfile
import time
import warnings

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../judge/python"))
import judge  # noqa: E402

TINY = dict(hidden_size=64, num_hidden_layers=4, num_attention_heads=4, intermediate_size=128, vocab_size=99)
GROUPED = dict(TINY, num_key_value_heads=2, max_position_embeddings=256)
# latency is measured on models whose products outweigh the cost of a call
BIG = dict(hidden_size=512, num_hidden_layers=4, num_attention_heads=8, intermediate_size=1376, vocab_size=4000)


def wide(kw, big):
    return dict(kw, **BIG) if big else kw


# Builders: each gives the module, its inputs, and the dynamic axes of the inputs.


def text_inputs(torch, vocab, batch=2, length=8, pad=True):
    ids = torch.randint(3, vocab, (batch, length))
    mask = torch.ones(batch, length, dtype=torch.int64)
    if pad and batch > 1:
        mask[1, -3:] = 0
    return ids, mask


def decoder(kind, big, decode, **kw):
    import torch
    import transformers
    from transformers.cache_utils import DynamicCache

    kw = wide(dict(GROUPED, **kw), big)
    if big and "num_key_value_heads" in kw:
        kw["num_key_value_heads"] = 4
    if kind.startswith("Qwen3"):
        kw["head_dim"] = kw["hidden_size"] // kw["num_attention_heads"]
    if kind == "GPT2":
        kw = dict(n_embd=kw["hidden_size"], n_layer=kw["num_hidden_layers"], n_head=kw["num_attention_heads"], vocab_size=kw["vocab_size"], n_positions=256)
        name = "GPT2LMHeadModel"
    elif kind == "Gemma3":
        name, kind = "Gemma3ForCausalLM", "Gemma3Text"
        kw = dict(kw, head_dim=kw["hidden_size"] // kw["num_attention_heads"], sliding_window=4 if not big else 64)
    else:
        name = kind + "ForCausalLM"
    config = getattr(transformers, kind + "Config")(**kw)
    model = getattr(transformers, name)(config).eval()
    layers = config.num_hidden_layers

    class Prefill(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, ids, mask):
            r = self.model(input_ids=ids, attention_mask=mask, past_key_values=DynamicCache(config=config), use_cache=True)
            return (r.logits, *[t for layer in r.past_key_values.layers for t in (layer.keys, layer.values)])

    class Decode(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, ids, mask, *past):
            cache = DynamicCache(config=config)
            for i in range(layers):
                cache.update(past[2 * i], past[2 * i + 1], i)
            r = self.model(input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True)
            return (r.logits, *[t for layer in r.past_key_values.layers for t in (layer.keys, layer.values)])

    batch, length = (1, 64) if big else (2, 8)
    ids, mask = text_inputs(torch, config.vocab_size, batch, length, pad=False)
    if not big:
        mask[1, :3] = 0
    d = torch.export.Dim
    b, n = d("batch", min=1, max=64), d("length", min=2, max=128)
    if not decode:
        return Prefill().eval(), (ids, mask), ({0: b, 1: n}, {0: b, 1: n})
    with torch.no_grad():
        past = Prefill()(ids, mask)[1:]
    step = torch.randint(3, config.vocab_size, (batch, 1))
    total = torch.cat([mask, torch.ones(batch, 1, dtype=torch.int64)], 1)
    if kind.startswith("Gemma3"):
        total = torch.ones_like(total)
    return Decode().eval(), (step, total, *past), ({0: b}, {0: b, 1: d("total", min=3, max=129)}, *[{0: b, 2: d("past", min=2, max=128)} for _ in past])


def encoder(kind, big, sizes=None, **kw):
    import torch
    import transformers

    config = getattr(transformers, kind + "Config")(**(sizes or wide(dict(TINY, **kw), big)))
    model = getattr(transformers, kind + "Model")(config).eval()

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, ids, mask):
            return self.model(input_ids=ids, attention_mask=mask)[0]

    args = text_inputs(torch, config.vocab_size, *((1, 64) if big else (2, 8)), pad=not big)
    d = torch.export.Dim
    axes = {0: d("batch", min=1, max=64), 1: d("length", min=2, max=128)}
    return Encoder().eval(), args, (axes, axes)


def distilbert(big):
    n = 512 if big else 64
    return encoder("DistilBert", big, sizes=dict(dim=n, n_layers=4, n_heads=8 if big else 4, hidden_dim=4 * n, vocab_size=4000 if big else 99))


def t5(big, part):
    import torch
    import transformers

    n = 512 if big else 64
    config = transformers.T5Config(d_model=n, d_ff=2 * n, d_kv=n // 8, num_layers=4, num_heads=8, vocab_size=4000 if big else 99, decoder_start_token_id=0)
    model = transformers.T5ForConditionalGeneration(config).eval()
    batch, length = (1, 64) if big else (2, 8)
    ids, mask = text_inputs(torch, config.vocab_size, batch, length, pad=not big)
    d = torch.export.Dim
    axes = {0: d("batch", min=1, max=64), 1: d("length", min=2, max=128)}

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model.encoder

        def forward(self, ids, mask):
            return self.model(input_ids=ids, attention_mask=mask)[0]

    class Decoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, ids, states, mask):
            return self.model(decoder_input_ids=ids, encoder_outputs=(states,), attention_mask=mask, use_cache=False).logits

    if part == "encoder":
        return Encoder().eval(), (ids, mask), (axes, axes)
    states = torch.randn(batch, length, n)
    start = torch.randint(3, config.vocab_size, (batch, 5))
    return Decoder().eval(), (start, states, mask), ({0: axes[0], 1: d("target", min=2, max=128)}, axes, axes)


def whisper(big, part):
    import torch
    import transformers

    n = 512 if big else 64
    config = transformers.WhisperConfig(d_model=n, encoder_layers=4, decoder_layers=4, encoder_attention_heads=8 if big else 4, decoder_attention_heads=8 if big else 4,
                                        encoder_ffn_dim=2 * n, decoder_ffn_dim=2 * n, vocab_size=4000 if big else 99, num_mel_bins=16, max_source_positions=64 if big else 20,
                                        max_target_positions=64, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
    model = transformers.WhisperForConditionalGeneration(config).eval()
    batch = 1 if big else 2
    d = torch.export.Dim
    b = d("batch", min=1, max=64)

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model.model.encoder

        def forward(self, features):
            return self.model(features)[0]

    class Decoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, ids, states):
            return self.model(decoder_input_ids=ids, encoder_outputs=(states,), use_cache=False).logits

    if part == "encoder":
        return Encoder().eval(), (torch.randn(batch, 16, 2 * config.max_source_positions),), ({0: b},)
    ids = torch.randint(3, config.vocab_size, (batch, 5))
    return Decoder().eval(), (ids, torch.randn(batch, config.max_source_positions, n)), ({0: b, 1: d("target", min=2, max=32)}, {0: b})


def vit(big):
    import torch
    import transformers

    size, n = (64, 512) if big else (32, 64)
    config = transformers.ViTConfig(hidden_size=n, num_hidden_layers=4, num_attention_heads=8 if big else 4, intermediate_size=2 * n, image_size=size, patch_size=8)
    model = transformers.ViTForImageClassification(config).eval()

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, x):
            return self.model(x).logits

    return Net().eval(), (torch.randn(1 if big else 2, 3, size, size),), ({0: torch.export.Dim("batch", min=1, max=64)},)


def clip(big):
    import torch
    import transformers

    n, size = (512, 64) if big else (64, 32)
    shared = dict(hidden_size=n, intermediate_size=2 * n, num_hidden_layers=4, num_attention_heads=8 if big else 4)
    config = transformers.CLIPConfig(text_config=dict(shared, vocab_size=99, max_position_embeddings=32, eos_token_id=98, bos_token_id=97, pad_token_id=1),
                                     vision_config=dict(shared, image_size=size, patch_size=8), projection_dim=32)
    model = transformers.CLIPModel(config).eval()

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, ids, pixels, mask):
            r = self.model(input_ids=ids, pixel_values=pixels, attention_mask=mask)
            return r.logits_per_image, r.text_embeds, r.image_embeds

    ids, mask = text_inputs(torch, 90, *((1, 16) if big else (2, 8)))
    d = torch.export.Dim
    axes = {0: d("batch", min=1, max=64), 1: d("length", min=2, max=32)}
    return Net().eval(), (ids, torch.randn(1 if big else 2, 3, size, size), mask), (axes, {0: d("images", min=1, max=64)}, axes)


def vision(name):
    import torch
    import torchvision

    model = getattr(torchvision.models, name)(weights=None).eval()
    for m in model.modules():
        if isinstance(m, torch.nn.BatchNorm2d):
            m.running_mean.uniform_(-0.1, 0.1)
            m.running_var.uniform_(0.8, 1.2)
    return model, (torch.randn(2, 3, 224, 224),), ({0: torch.export.Dim("batch", min=1, max=64)},)


MODELS = {
    "llama.prefill": lambda big: decoder("Llama", big, False),
    "llama.decode": lambda big: decoder("Llama", big, True),
    "qwen3.prefill": lambda big: decoder("Qwen3", big, False),
    "qwen3.decode": lambda big: decoder("Qwen3", big, True),
    "gemma3.prefill": lambda big: decoder("Gemma3", big, False),
    "gemma3.decode": lambda big: decoder("Gemma3", big, True),
    "mistral.prefill": lambda big: decoder("Mistral", big, False, sliding_window=None),
    "mistral.decode": lambda big: decoder("Mistral", big, True, sliding_window=None),
    "mixtral.prefill": lambda big: decoder("Mixtral", big, False, sliding_window=None, num_local_experts=8, num_experts_per_tok=2),
    "mixtral.decode": lambda big: decoder("Mixtral", big, True, sliding_window=None, num_local_experts=8, num_experts_per_tok=2),
    "qwen3moe.prefill": lambda big: decoder("Qwen3Moe", big, False, num_experts=8, num_experts_per_tok=2, moe_intermediate_size=688 if big else 96),
    "qwen3moe.decode": lambda big: decoder("Qwen3Moe", big, True, num_experts=8, num_experts_per_tok=2, moe_intermediate_size=688 if big else 96),
    "gpt2.prefill": lambda big: decoder("GPT2", big, False),
    "gpt2.decode": lambda big: decoder("GPT2", big, True),
    "bert": lambda big: encoder("Bert", big),
    "modernbert": lambda big: encoder("ModernBert", big, pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2, local_attention=8, reference_compile=False),
    "distilbert": distilbert,
    "t5.encoder": lambda big: t5(big, "encoder"),
    "t5.decoder": lambda big: t5(big, "decoder"),
    "whisper.encoder": lambda big: whisper(big, "encoder"),
    "whisper.decoder": lambda big: whisper(big, "decoder"),
    "vit": vit,
    "clip": clip,
    "resnet50": lambda big: vision("resnet50"),
    "convnext_tiny": lambda big: vision("convnext_tiny"),
    "swin_t": lambda big: vision("swin_t"),
}


def grouped_products():
    """What transformers' own ONNX exporter has for products of experts, as torch.onnx has none."""
    import torch
    from transformers.exporters import exporter_onnx

    operators = torch.ops.aten._grouped_mm.default, torch.ops.transformers.grouped_mm_fallback.default
    return {o: exporter_onnx._ONNX_TRANSLATION_TABLE[o] for o in operators}


def make(args):
    import torch

    warnings.simplefilter("ignore")
    os.makedirs(args.dir, exist_ok=True)
    for base, build in MODELS.items():
        # which expert is chosen hangs on the last bits of float16: PyTorch itself chooses another one than in float32
        experts = "moe" in base or "mixtral" in base
        forms = ("",) if args.big else ("", ".dyn") if experts else ("", ".dyn", ".f16")
        for form in forms:
            name = base + form
            if not re.search(args.filter, name):
                continue
            torch.manual_seed(0)
            try:
                model, inputs, axes = build(args.big)
                for w in model.parameters():  # zeros and ones would not matter
                    if not w.any():
                        torch.nn.init.uniform_(w, -0.1, 0.1)
                    elif bool((w == 1).all()):
                        torch.nn.init.uniform_(w, 0.8, 1.2)
                if form == ".f16":
                    model, inputs = model.half(), tuple(x.half() if x.is_floating_point() else x for x in inputs)
                with torch.no_grad():
                    want = model(*[x.clone() for x in inputs])
                want = [want] if isinstance(want, torch.Tensor) else list(want)
                numpy.savez(f"{args.dir}/{name}.npz", **{f"x{i}": x.numpy() for i, x in enumerate(inputs)}, **{f"y{i}": y.numpy() for i, y in enumerate(want)})
                if form == ".dyn":
                    kinds = [p.kind for p in __import__("inspect").signature(model.forward).parameters.values()]
                    if kinds[-1] == kinds[-1].VAR_POSITIONAL:
                        k = len(kinds) - 1
                        axes = (*axes[:k], tuple(axes[k:]))
            except Exception as e:  # a model that a library cannot build or run
                print(f"{name}: {type(e).__name__}: {str(e)[:200]}", flush=True)
                continue
            program = None
            try:
                with torch.no_grad():
                    program = torch.export.export(model, inputs, dynamic_shapes=axes if form == ".dyn" else None, strict=False)
                torch.export.save(program, f"{args.dir}/{name}.pt2")
            except Exception as e:
                print(f"{name}: export: {type(e).__name__}: {str(e)[:300]}", flush=True)
            if form != ".dyn" and not args.big:
                try:
                    with torch.no_grad():
                        torch.jit.save(torch.jit.trace(model, inputs, check_trace=False, strict=False), f"{args.dir}/{name}.pt")
                except Exception as e:
                    print(f"{name}: trace: {type(e).__name__}: {str(e)[:200]}", flush=True)
            for opset in args.opsets.split(","):
                try:
                    with torch.no_grad():
                        torch.onnx.export(program if program is not None else model, inputs, f"{args.dir}/{name}.dynamo{opset}.onnx", dynamo=True, optimize=True, opset_version=int(opset),
                                          external_data=False, verbose=False, custom_translation_table=grouped_products())
                except Exception as e:
                    print(f"{name}: dynamo {opset}: {type(e).__name__}: {str(e)[:200]}", flush=True)
            print(name, flush=True)


def count_nodes(path):
    """How many nodes of each kind a file has, constants not."""
    return judge.operators(path, constants=False)


def feeds_of(session, data):
    """The inputs of a session by their order, as far as it has them: an exporter may drop one that the program does not use."""
    names = [i.name for i in session.get_inputs()]
    arrays = [data[f"x{i}"] for i in range(sum(k.startswith("x") for k in data.files))]
    if len(names) == len(arrays):
        return dict(zip(names, arrays))
    feeds, k = {}, 0
    for i in session.get_inputs():
        while k < len(arrays) and (len(arrays[k].shape) != len(i.shape) or any(isinstance(s, int) and s != n for s, n in zip(i.shape, arrays[k].shape))):
            k += 1
        feeds[i.name] = arrays[k]
        k += 1
    return feeds


def difference(path, data):
    """The largest difference from PyTorch's outputs, relative to the largest element of each."""
    session = judge.session(path, threads=1)
    got = judge.run(session, feeds_of(session, data))
    want = [data[f"y{i}"] for i in range(sum(k.startswith("y") for k in data.files))]
    if len(got) != len(want) or not all(numpy.isfinite(g).all() for g in got):
        return float("inf")
    return max(map(judge.distance, got, want), default=0.0)


def verdict(path, data):
    try:
        d = difference(path, data)
    except Exception as e:
        return "fails: " + str(e).strip().splitlines()[0][:80]
    half = any(a.dtype == numpy.float16 for a in data.values())
    return "right" if d < (1e-2 if half else 1e-4) else f"differs {d:.0e}"


def count(args):
    rows, failed = [], False
    with tempfile.TemporaryDirectory() as tmp:
        for base in MODELS:
            for name in (base, base + ".dyn", base + ".f16"):
                if not os.path.exists(f"{args.dir}/{name}.npz") or not re.search(args.filter, name):
                    continue
                data = numpy.load(f"{args.dir}/{name}.npz")
                for opset in args.opsets.split(","):
                    dynamo = f"{args.dir}/{name}.dynamo{opset}.onnx"
                    theirs = count_nodes(dynamo) if os.path.exists(dynamo) else None
                    peer = [str(sum(theirs.values())), "-" if args.no_run else verdict(dynamo, data)] if theirs else ["-", "-"]
                    for form in ("pt2", "pt"):
                        source = f"{args.dir}/{name}.{form}"
                        if not os.path.exists(source):
                            continue
                        dst = f"{tmp}/model.onnx"
                        try:
                            judge.export(args.aton, source, dst, *args.option, opset=opset)
                            ours = count_nodes(dst)
                            n, good = str(sum(ours.values())), "-" if args.no_run else verdict(dst, data)
                        except judge.Refused as e:
                            ours, n, good = None, "-", f"refused: {e}"[:129]
                        more = bool(ours and theirs and sum(ours.values()) > sum(theirs.values()))
                        failed |= more or good not in ("right", "-")
                        rows.append([name, form, opset, n, good, *peer])
                        print("\t".join(rows[-1]) + ("\t<--" if more else ""), flush=True)
                        if args.kinds and ours and theirs:
                            pairs = sorted(set(ours) | set(theirs), key=lambda k: (theirs[k] - ours[k], k))
                            print("    " + ", ".join(f"{k} {ours[k]}:{theirs[k]}" for k in pairs if ours[k] != theirs[k]), flush=True)
    if args.out:
        with open(args.out, "w") as f:
            f.write("# nodes of aton's file and of torch.onnx's (dynamo=True, optimize=True); numbers in onnxruntime beside PyTorch's\n")
            f.write("model\tsource\topset\taton\taton is\tdynamo\tdynamo is\n")
            f.writelines("\t".join(r) + "\n" for r in rows)
    return failed


def latency(args):
    opset = args.opsets.split(",")[0]
    print(f"{'model':<18} {'aton ms':>8} {'dynamo ms':>9} {'medians':>8} {'minima':>7}  quartiles of the ratio")
    with tempfile.TemporaryDirectory() as tmp:
        for name in MODELS:
            source, dynamo = f"{args.dir}/{name}.pt2", f"{args.dir}/{name}.dynamo{opset}.onnx"
            if not os.path.exists(source) or not os.path.exists(dynamo) or not re.search(args.filter, name):
                continue
            dst = f"{tmp}/model.onnx"
            try:
                judge.export(args.aton, source, dst, *args.option, opset=opset)
            except judge.Refused as e:
                print(f"{name:<18} refused: {str(e)[:120]}", flush=True)
                continue
            data = numpy.load(f"{args.dir}/{name}.npz")
            try:
                sessions = [judge.session(path, threads=1) for path in (dst, dynamo)]
            except Exception as e:
                print(f"{name:<18} fails: {str(e).splitlines()[0][:120]}", flush=True)
                continue
            feeds = [feeds_of(s, data) for s in sessions]
            times = ([], [])
            for s, f in zip(sessions, feeds):
                s.run(None, f)
            end, k = time.monotonic() + args.seconds, 0
            while time.monotonic() < end or k < 20:
                for i in (0, 1) if k % 2 == 0 else (1, 0):  # none is always first
                    began = time.perf_counter()
                    sessions[i].run(None, feeds[i])
                    times[i].append(time.perf_counter() - began)
                k += 1
            a, b = map(numpy.array, times)
            q = numpy.percentile(a / b, [25, 75])
            print(f"{name:<18} {numpy.median(a) * 1e3:8.2f} {numpy.median(b) * 1e3:9.2f} {numpy.median(a) / numpy.median(b):8.2f} {a.min() / b.min():7.2f}  {q[0]:.2f} to {q[1]:.2f} of {len(a)}", flush=True)
    return False


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=["make", "count", "latency"])
    p.add_argument("dir")
    p.add_argument("--aton", default="bin/aton")
    p.add_argument("--filter", default="")
    p.add_argument("--opsets", default="18,23,24")
    p.add_argument("--big", action="store_true", help="models for measuring latency, with fixed sizes")
    p.add_argument("--kinds", action="store_true", help="the kinds of nodes of which one file has more")
    p.add_argument("--no-run", action="store_true", help="do not compare numbers")
    p.add_argument("--out", default="", help="a table to write")
    p.add_argument("--seconds", type=float, default=4, help="how long each pair of files runs")
    p.add_argument("--option", action="append", default=[], help="an option for aton export")
    args = p.parse_args()
    sys.exit({"make": make, "count": count, "latency": latency}[args.what](args))


if __name__ == "__main__":
    main()
