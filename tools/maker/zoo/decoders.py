"""Decoders of transformers as two programs, prefill and decode, and what PyTorch says when eight tokens are fed back."""
import inspect

import torch
import transformers
from transformers import AutoModelForCausalLM
import transformers.models.auto.modeling_auto as auto

import cache
import configs
import programs

TOKENS = 8


def models():
    return list(auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


class Decoder(torch.nn.Module):
    """Logits and what the decoder keeps, of tokens, their mask, and what it kept before."""

    def __init__(self, model, keeps=True):
        super().__init__()
        self.model, self.keeps = model, keeps
        known = inspect.signature(model.forward).parameters
        self.masked = "attention_mask" in known
        self.options = {k: v for k, v in (("use_cache", keeps), ("return_dict", True)) if k in known}
        self.slot = self.form = None
        self.paths = []

    def keeping(self, slot, form):
        """The same decoder, which goes on from a cache of this form."""
        out = Decoder(self.model)
        out.slot, out.form, out.paths = slot, form, [p for p, _ in cache.leaves(form)]
        return out

    def call(self, ids, mask, kept=None):
        given = dict(self.options)
        if self.masked:
            given["attention_mask"] = mask
        if kept is not None:
            given[self.slot] = kept
        return self.model(input_ids=ids, **given)

    def forward(self, *tensors):
        ids, *tensors = tensors
        mask, kept = None, None
        if self.masked:
            mask, *tensors = tensors
        if self.paths:
            kept = cache.rebuild(self.form, dict(zip(self.paths, tensors)))
        out = self.call(ids, mask, kept)
        found = self.keeps and cache.find(out)
        return (out["logits"], *(t.clone() for _, t in cache.leaves(found[1]))) if found else (out["logits"],)


def prompt(vocabulary, batch, length):
    """Tokens, and a mask in which the last token of the last row is padding."""
    generator = torch.Generator().manual_seed(batch * 100 + length)
    ids = torch.randint(3, min(vocabulary, 80), (batch, length), generator=generator)
    mask = torch.ones_like(ids)
    mask[-1, -1] = 0
    return ids, mask


def chain(decoder, ids, mask):
    """Tokens and logits of feeding back, by the model as it is: each step goes on from the cache that the last one left."""
    tokens, logits, kept = [], [], None
    with torch.no_grad():
        step = ids
        for _ in range(TOKENS + 1):
            out = decoder.call(step, mask, kept)
            found = decoder.keeps and cache.find(out)
            logits.append(out["logits"][:, -1].clone())
            step = logits[-1].argmax(-1, keepdim=True)
            tokens.append(step)
            if found:
                decoder.slot, kept = found
            else:
                step = ids = torch.cat([ids, step], 1)
            mask = torch.cat([mask, torch.ones_like(mask[:, :1])], 1)
    return tokens, logits


def follows(runs, all, said):
    """Whether PyTorch's own programs give the model's logits when its tokens are fed back."""
    inputs = programs.clone(all[0].samples[0])
    ids, mask, kept = inputs[0], inputs[1:2], []
    try:
        with torch.no_grad():
            for step, (token, logits) in enumerate(zip(*said)):
                out = runs["decode" if kept else "prefill"](ids, *mask, *kept)
                out = out if isinstance(out, (tuple, list)) else (out,)
                if not programs.near(out[0][:, -1], logits):
                    return False
                ids, kept = (token, list(out[1:])) if len(all) > 1 else (torch.cat([ids, token], 1), [])
                mask = [torch.cat([m, torch.ones_like(m[:, :1])], 1) for m in mask]
    except Exception:
        return False
    return True


def build(name, thin):
    """The model of an architecture, the size of its vocabulary, whether it keeps a cache, and what it says when its tokens are fed back."""
    config = configs.tiny(name, thin)
    from_config = AutoModelForCausalLM.from_config
    if part := configs.option(name, "_part"):
        config, from_config = getattr(config, part), getattr(transformers, auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[name])._from_config
    model = configs.instance(from_config, config, name, thin)
    text = config.get_text_config(decoder=True)
    vocabulary = getattr(text, "vocab_size", None) or 80
    keeps = configs.option(name, "_cache", True)
    return model, vocabulary, keeps, chain(Decoder(model, keeps), *prompt(vocabulary, 2, 5))


def make(name):
    """(programs, what PyTorch says of the tokens) of an architecture."""
    model, vocabulary, keeps, said = configs.either(build, name)
    with patched():
        first = Decoder(model, keeps)
        masks = 2 if first.masked else 1
        sizes = {(b, s): list(prompt(vocabulary, b, s)) for b, s in ((2, 5), (3, 5), (2, 7), (3, 7))}
        with torch.no_grad():
            found = keeps and cache.find(first.call(*(programs.clone(sizes[2, 5]))))
        kept = [p for p, _ in cache.leaves(found[1])] if found else []
        ins = ["input_ids", "attention_mask"][:masks]
        starts = {k: v[:masks] for k, v in sizes.items()}
        axes = programs.free({"B": (starts[2, 5], starts[3, 5]), "S": (starts[2, 5], starts[2, 7])})
        outs = ["logits"] + ["present" + p for p in kept]
        out = [programs.Program("prefill", first, ins, [starts[2, 5], starts[3, 7]], axes, outs)]
        if not kept:
            return out, said

        second = first.keeping(found[0], found[1])
        steps = {}
        with torch.no_grad():
            for k, (ids, mask) in sizes.items():
                logits, *tensors = first(*programs.clone(starts[k]))
                token = logits[:, -1].argmax(-1, keepdim=True)
                steps[k] = [token, torch.cat([mask, torch.ones_like(mask[:, :1])], 1)][:masks] + tensors
        axes = programs.free({"B": (steps[2, 5], steps[3, 5]), "P": (steps[2, 5], steps[2, 7])})
        if first.masked:
            axes[1] = {0: "B", 1: "T"}
        out.append(programs.Program("decode", second, ins + ["past" + p for p in kept], [steps[2, 5], steps[3, 7]], axes, outs))
        return out, said


def patched():
    return configs.patched()
