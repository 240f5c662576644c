"""Forty models through the same call of aton.export and of torch.onnx.export: names, axes, numbers at two sizes, nodes, seconds, memory.

    python tools/cmd/python/bench/models.py --out tools/cmd/python/bench/models.tsv [--filter REGEX] [--markdown tools/cmd/python/bench/README.md]

Each export runs in a process of its own, forked from one that has imported PyTorch: seconds (of processor time) and memory are those of the call. The memory
is what the process and, of aton, the binary have at their largest beyond what there was before the call.
"""
import argparse
import importlib
import json
import os
import re
import select
import sys
import tempfile
import traceback
import warnings

import psutil
import torch
import torchvision
import transformers

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../judge/python"))

BATCH = {0: "batch"}
TEXT = {0: "batch", 1: "length"}


def images(name, size=64, **options):
    """A classifier of torchvision. Its normalizations have the statistics of a batch: with those of a new module, outputs of deep ones vanish."""
    def make():
        model = getattr(torchvision.models, name)(weights=None, **options)
        for m in model.modules():
            if isinstance(m, torch.nn.modules.batchnorm._BatchNorm):
                m.momentum = None
        with torch.no_grad():
            model.train()(torch.randn(4, 3, size, size))
        return model, lambda n: (torch.randn(n, 3, size, size),), ["images"], ["scores"], {"images": BATCH, "scores": BATCH}
    return make


class OfText(torch.nn.Module):
    """The first output of a model of transformers."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask, return_dict=False)[0]


class OfImages(torch.nn.Module):
    """The first output of a model of transformers."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, pixel_values):
        return self.model(pixel_values=pixel_values, return_dict=False)[0]


def text(config, model, **options):
    """A model of transformers on tokens and their mask."""
    def make():
        settings = dict(vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, pad_token_id=0)
        settings.update(options)
        net = getattr(transformers, model)(getattr(transformers, config)(**settings))
        names = ["input_ids", "attention_mask"]

        def inputs(n):
            ids = torch.randint(2, 90, (n, 4 + n))
            return ids, torch.ones_like(ids)
        return OfText(net), inputs, names, ["out"], {n: TEXT for n in names}
    return make


def pixels(config, model, size=32, **options):
    """A model of transformers on images."""
    def make():
        settings = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=size, patch_size=8)
        settings.update(options)
        settings = {k: v for k, v in settings.items() if v is not None}
        net = getattr(transformers, model)(getattr(transformers, config)(**settings))
        return OfImages(net), lambda n: (torch.randn(n, 3, size, size),), ["pixel_values"], ["out"], {"pixel_values": BATCH}
    return make


MODELS = {
    "alexnet": images("alexnet"), "vgg11": images("vgg11"), "resnet18": images("resnet18"), "resnet50": images("resnet50"),
    "wide_resnet50_2": images("wide_resnet50_2"), "resnext50_32x4d": images("resnext50_32x4d"), "densenet121": images("densenet121"),
    "googlenet": images("googlenet", init_weights=False, aux_logits=False), "inception_v3": images("inception_v3", 96, init_weights=False, aux_logits=False),
    "mobilenet_v2": images("mobilenet_v2"), "mobilenet_v3_small": images("mobilenet_v3_small"), "mnasnet0_5": images("mnasnet0_5"),
    "shufflenet_v2_x0_5": images("shufflenet_v2_x0_5"), "squeezenet1_1": images("squeezenet1_1"), "efficientnet_b0": images("efficientnet_b0"),
    "efficientnet_v2_s": images("efficientnet_v2_s"), "regnet_y_400mf": images("regnet_y_400mf"), "regnet_x_400mf": images("regnet_x_400mf"),
    "convnext_tiny": images("convnext_tiny"), "vit_b_32": images("vit_b_32", image_size=64), "swin_t": images("swin_t"), "swin_v2_t": images("swin_v2_t"),
    "BertModel": text("BertConfig", "BertModel"), "RobertaModel": text("RobertaConfig", "RobertaModel"),
    "DistilBertModel": text("DistilBertConfig", "DistilBertModel", dim=32, n_layers=2, n_heads=4, hidden_dim=64),
    "AlbertModel": text("AlbertConfig", "AlbertModel", embedding_size=16), "ElectraModel": text("ElectraConfig", "ElectraModel", embedding_size=16),
    "MPNetModel": text("MPNetConfig", "MPNetModel"), "DebertaV2Model": text("DebertaV2Config", "DebertaV2Model"),
    "BertForTokenClassification": text("BertConfig", "BertForTokenClassification"),
    "RobertaForSequenceClassification": text("RobertaConfig", "RobertaForSequenceClassification"),
    "GPT2LMHeadModel": text("GPT2Config", "GPT2LMHeadModel", n_embd=32, n_layer=2, n_head=4, use_cache=False),
    "OPTForCausalLM": text("OPTConfig", "OPTForCausalLM", ffn_dim=64, max_position_embeddings=64, word_embed_proj_dim=32, use_cache=False),
    "LlamaForCausalLM": text("LlamaConfig", "LlamaForCausalLM", num_key_value_heads=2, use_cache=False),
    "MistralForCausalLM": text("MistralConfig", "MistralForCausalLM", num_key_value_heads=2, use_cache=False),
    "Qwen2ForCausalLM": text("Qwen2Config", "Qwen2ForCausalLM", num_key_value_heads=2, use_cache=False),
    "T5EncoderModel": text("T5Config", "T5EncoderModel", d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4),
    "ViTForImageClassification": pixels("ViTConfig", "ViTForImageClassification"),
    "DeiTModel": pixels("DeiTConfig", "DeiTModel"),
    "SegformerForSemanticSegmentation": pixels("SegformerConfig", "SegformerForSemanticSegmentation", size=64, hidden_size=None, num_hidden_layers=None,
                                               num_attention_heads=[1, 2, 2, 2], intermediate_size=None, patch_size=None, hidden_sizes=[8, 16, 16, 16],
                                               depths=[1, 1, 1, 1], decoder_hidden_size=16),
}


class Memory:
    """The most memory that this process and aton's binary have at a time, beyond what this one had, in megabytes. Another process looks every few
    milliseconds: a thread would not run while PyTorch copies."""

    def __enter__(self):
        reader, self.over = os.pipe()
        self.result, writer = os.pipe()
        process = psutil.Process()
        self.watcher = os.fork()
        if self.watcher == 0:
            os.close(self.over)
            before, most = resident(process), 0
            while not select.select([reader], [], [], 0.003)[0]:
                most = max(most, resident(process) - before)
            os.write(writer, str(most).encode())
            os._exit(0)
        os.close(reader)
        os.close(writer)
        return self

    def __exit__(self, *_):
        os.close(self.over)
        self.most = int(os.read(self.result, 100)) / 1e6
        os.close(self.result)
        os.waitpid(self.watcher, 0)


def resident(process):
    """The bytes in memory of a process and of aton's binary, if that is its child."""
    total = process.memory_info().rss
    for child in process.children():
        try:
            if os.path.basename(child.exe()).startswith("aton"):  # not a fork before its exec
                total += child.memory_info().rss
        except psutil.Error:  # it has ended
            pass
    return total


def processor():
    """The seconds of processor time of this process and of its children that have ended."""
    t = os.times()
    return t.user + t.system + t.children_user + t.children_system


def export(module, name, path):
    """Exports a model by module.export, and says what came of it."""
    torch.manual_seed(0)
    model, inputs, names, outputs, axes = MODELS[name]()
    model.eval()
    args = inputs(2)
    exporter = importlib.import_module(module)  # the only line in which the two scripts differ
    with Memory() as memory:
        began = processor()
        exporter.export(model, args, path, input_names=names, output_names=outputs, dynamic_axes=axes)
        row = {"seconds": processor() - began}
    row["megabytes"] = memory.most
    return row, verdict(model, inputs, names, outputs, axes, path)


def verdict(model, inputs, names, outputs, axes, path):
    """What is wrong with a file, and how many nodes it has."""
    import judge

    whole = judge.loaded(path)
    graph, wrong = whole.graph, []
    if [i.name for i in graph.input] != names or [o.name for o in graph.output] != outputs:
        wrong.append(f"names {[i.name for i in graph.input]} {[o.name for o in graph.output]}")
    for i in graph.input:
        have = {k: d.dim_param for k, d in enumerate(i.type.tensor_type.shape.dim) if d.dim_param}
        if have != axes.get(i.name, {}):
            wrong.append(f"axes of {i.name}: {have}")
    session = judge.session(path)
    worst = 0.0
    for n in (2, 3):
        args = inputs(n)
        with torch.no_grad():
            want = model(*args)
        try:
            (got,) = judge.run(session, args)
        except Exception as e:  # of onnxruntime: sizes that are built in
            wrong.append(f"size {n}: {str(e).splitlines()[0][:120]}")
            continue
        worst = max(worst, judge.distance(got, want))
        if why := judge.differ(got, want, rtol=1e-3, of_greatest=1e-4, equal_nan=False):
            wrong.append(f"size {n}: {why}")
    return {"nodes": len(graph.node) + sum(len(f.node) for f in whole.functions), "worst": worst, "wrong": "; ".join(wrong)}


def forked(module, name, limit):
    """The result of an export in a process of its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            import signal

            signal.alarm(limit)
            os.close(reader)
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    row, judged = export(module, name, os.path.join(folder, "model.onnx"))
                    row.update(judged)
                except Exception as e:  # whatever an exporter raises is its result
                    text = re.sub(r"\x1b\[\d*m", "", str(e).strip() or traceback.format_exc(limit=1)).splitlines()
                    row = {"wrong": f"{type(e).__name__}: {text[0][:160]}"}
            with os.fdopen(writer, "w") as f:
                json.dump(row, f)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as f:
        text = f.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else {"wrong": f"no result within {limit} s"}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--out", required=True, help="the results; those that are in the file are not made again")
    p.add_argument("--filter", default="")
    p.add_argument("--limit", type=int, default=900, help="seconds for a model")
    p.add_argument("--markdown", help="the page that has the table")
    a = p.parse_args()
    rows = read(a.out)
    for name in MODELS:
        for module in ("aton", "torch.onnx"):
            if re.search(a.filter, name) and (name, module) not in rows:
                rows[name, module] = forked(module, name, a.limit)
                print(name, module, rows[name, module], flush=True)
                write(a.out, rows)
    if a.markdown:
        table(a.markdown, rows)


COLUMNS = {"nodes": int, "seconds": float, "megabytes": float, "worst": float}


def read(path):
    """The results in a file."""
    rows = {}
    if os.path.exists(path):
        with open(path) as f:
            header = next(f).rstrip("\n").split("\t")
            for line in f:
                row = dict(zip(header, line.rstrip("\n").split("\t")))
                rows[row.pop("model"), row.pop("exporter")] = {k: COLUMNS[k](v) if k in COLUMNS else v for k, v in row.items() if v or k == "wrong"}
    return rows


def write(path, rows):
    """Writes the results."""
    with open(path, "w") as f:
        f.write("model\texporter\t" + "\t".join(COLUMNS) + "\twrong\n")
        for (name, module), r in rows.items():
            f.write("\t".join([name, module, *(f"{r[k]:.3g}" if isinstance(r.get(k), float) else str(r.get(k, "")) for k in COLUMNS), r["wrong"]]) + "\n")


def table(path, rows):
    """Writes the table between its marks in a page."""
    begin, end = "<!-- models: models.py -->\n", "<!-- end of models -->"
    of = {m: {n: r for (n, k), r in rows.items() if k == m} for m in ("aton", "torch.onnx")}
    lines = ["| | aton: right | nodes | s | MB | torch.onnx: right | nodes | s | MB |\n", "|" + " --- |" * 9 + "\n"]
    for name in (n for n in MODELS if all(n in of[m] for m in of)):
        cells = []
        for m in of:
            r = of[m][name]
            cells += ["no" if r["wrong"] else "yes", str(r.get("nodes", "")), f"{r['seconds']:.1f}" if "seconds" in r else "", f"{r['megabytes']:.0f}" if "megabytes" in r else ""]
        lines.append(f"| {name} | " + " | ".join(cells) + " |\n")
    right = {m: sum(not r["wrong"] for r in of[m].values()) for m in of}
    both = [n for n in MODELS if all(n in of[m] and not of[m][n]["wrong"] for m in of)]
    sums = {m: [sum(of[m][n][k] for n in both) for k in ("nodes", "seconds")] for m in of}
    largest = {m: max((of[m][n]["megabytes"] for n in both), default=0) for m in of}
    lines.append("| **right** | " + " | ".join(f"**{right[m]} of {len(of[m])}** | | | " for m in of).rstrip() + "\n")
    lines.append(f"\nOf the {len(both)} that both do, together: " + "; ".join(
        f"{m} {sums[m][0]} nodes, {sums[m][1]:.0f} s, at most {largest[m]:.0f} MB" for m in of) + ".\n")
    lines.append(f"\nWith torch {torch.__version__.split('+')[0]}, torchvision {torchvision.__version__.split('+')[0]}, transformers {transformers.__version__}.\n")
    page = open(path).read()
    before, rest = page.split(begin)
    with open(path, "w") as f:
        f.write(before + begin + "".join(lines) + end + rest.split(end)[1])


if __name__ == "__main__":
    sys.exit(main())
