"""Programs of attention for make_cases.py: masks of each kind in each module that takes them, in evaluation and in training.

A mask of bool hides where it is True, one of floats is added to the scores. Sets of inputs differ in batch and length; in the
third one the padding is not at the end, which keeps PyTorch from making nested tensors of the inputs.
"""
import inspect
import itertools

import torch
import torch.nn as nn

import casefile

WIDTH = 8  # of all vectors; 2 heads
INF = float("-inf")


def numbers(*shape, step=0.37):
    return torch.sin(torch.arange(1.0, 1 + torch.Size(shape).numel()).reshape(shape) * step)


def padding(kind, batch, length, front):
    """A padding mask: row i hides i % length places, at the end or in front."""
    hidden = torch.arange(length).expand(batch, length) >= length - torch.arange(batch).unsqueeze(1) % length
    return mask(kind, hidden.flip(1) if front else hidden)


def later(kind, rows, columns):
    return mask(kind, torch.ones(rows, columns, dtype=torch.bool).triu(1))


def mask(kind, hidden):
    if kind == "bool":
        return hidden
    return torch.zeros(hidden.shape).masked_fill(hidden, INF) if kind == "inf" else numbers(*hidden.shape) * hidden


class Keeps:
    """Stays in training, whatever is asked of it."""

    def train(self, mode=True):
        return super().train(True)


def program(make, arguments, call, training):
    """A module of tensors named by arguments: its forward returns the text call, in which m is the module that make gives."""
    forward = casefile.source(f"def forward(self, {', '.join(arguments)}):\n    return {call.replace('m(', 'self.m(', 1)}\n")["forward"]
    torch.manual_seed(0)
    inner = make()
    bases = (Keeps, nn.Module) if training else (nn.Module,)
    m = type("Case", bases, {"forward": forward, "__module__": forward.__module__})()
    m.m = inner
    for k, p in enumerate(m.parameters()):  # PyTorch leaves biases at 0
        p.data = numbers(*p.shape, step=0.61 + 0.01 * k) * 0.5
    return m.train(training)


# batch, length of what asks, length of what is asked, whether the padding is in front
SIZES = ((3, 4, 4, False), (2, 5, 5, False), (3, 4, 4, True))
CROSSED = ((3, 4, 6, False), (2, 5, 3, False), (3, 4, 6, True))


def sequence(batch, length, first, step):
    return numbers(*((batch, length) if first else (length, batch)), WIDTH, step=step)


def takes(module, argument):
    return argument in inspect.signature(module.forward).parameters


def name(what, **on):
    return ".".join([what] + [name if v is True else str(v) for name, v in on.items() if v])


def modules():
    """Yields name, module, and the sets of inputs."""
    yield from multihead()
    yield from encoder_layers()
    yield from encoders()
    yield from decoders()
    yield from transformers()


def multihead():
    weights = {"": "", "mean": "", "each": ", average_attn_weights=False", "none": ", need_weights=False"}
    plain = itertools.product((True, False), ("mean", "each", "none"), ("", "bool", "inf", "float"), ("", "bool", "inf", "float", "bool3"), ("",), (False,))
    extra = itertools.product((True,), ("mean",), ("", "bool", "inf"), ("", "bool", "inf"), ("bias", "zero", "both"), (False,))
    trained = itertools.product((True,), ("mean", "none"), ("", "bool", "inf"), ("", "bool", "inf"), ("",), (True,))
    for first, w, pad, at, kv, training in itertools.chain(plain, extra, trained):
        for crossed in (False, True):
            if crossed and (w == "each" or at == "float" or pad == "float"):
                continue
            names = ["x"] + ["y"] * crossed + ["pad"] * bool(pad) + ["at"] * bool(at)
            call = f"m(x, {'y, y' if crossed else 'x, x'}" + ", key_padding_mask=pad" * bool(pad) + ", attn_mask=at" * bool(at) + weights[w] + ")" + "[0]" * (w == "none")

            def make():
                return nn.MultiheadAttention(WIDTH, 2, batch_first=first, add_bias_kv=kv in ("bias", "both"), add_zero_attn=kv in ("zero", "both"))

            sets = []
            for b, q, k, front in CROSSED if crossed else SIZES:
                s = [sequence(b, q, first, 0.37)]
                if crossed:
                    s.append(sequence(b, k, first, 0.23))
                if pad:
                    s.append(padding(pad, b, k, front))
                if at:
                    t = later(at.rstrip("3"), q, k)
                    s.append(t.expand(2 * b, q, k).clone() if at == "bool3" else t)
                sets.append(s)
            yield name("mha", first=first, w=w, cross=crossed, pad=pad and "pad_" + pad, at=at and "at_" + at, kv=kv, training=training), program(make, names, call, training), sets
    if takes(nn.MultiheadAttention, "is_causal"):
        for first, w, at in itertools.product((True, False), ("mean", "none"), ("bool", "inf")):
            sets = [[sequence(b, q, first, 0.37), later(at, q, q)] for b, q, _, _ in SIZES]
            yield (name("mha.causal", first=first, w=w, at=at),
                   program(lambda: nn.MultiheadAttention(WIDTH, 2, batch_first=first), ["x", "at"], f"m(x, x, x, attn_mask=at, is_causal=True{weights[w]}){'[0]' * (w == 'none')}", False), sets)


def layer(first, norm_first=False, activation="relu", kind=nn.TransformerEncoderLayer):
    return kind(WIDTH, 2, 12, dropout=0.0, batch_first=first, norm_first=norm_first, activation=activation)


def masked(module, first, pad, at, training, names=("src_key_padding_mask", "mask"), causal=""):
    """The program of a module of one sequence, and its sets."""
    call = "m(x" + f", {names[0]}=pad" * bool(pad) + f", {names[1]}=at" * bool(at) + causal + ")"
    sets = []
    for b, n, _, front in SIZES:
        sets.append([sequence(b, n, first, 0.37)] + ([padding(pad, b, n, front)] if pad else []) + ([later(at, n, n)] if at else []))
    return program(module, ["x"] + ["pad"] * bool(pad) + ["at"] * bool(at), call, training), sets


def encoder_layers():
    names = ("src_key_padding_mask", "src_mask")
    for first, norm_first, pad, at, training in itertools.product((True, False), (False, True), ("", "bool", "inf", "float"), ("", "bool", "inf", "float"), (False, True)):
        if training and (norm_first or "float" in (pad, at)):
            continue
        yield (name("encoder_layer", first=first, norm_first=norm_first, pad=pad and "pad_" + pad, at=at and "at_" + at, training=training),
               *masked(lambda: layer(first, norm_first, "gelu" if norm_first else "relu"), first, pad, at, training, names))
    if takes(nn.TransformerEncoderLayer, "is_causal"):
        for first, training in itertools.product((True, False), (False, True)):
            yield (name("encoder_layer.causal", first=first, training=training),
                   *masked(lambda: layer(first), first, "", "inf", training, names, ", is_causal=True"))


def encoders():
    for first, nested, norm, pad, at, training in itertools.product((True, False), (True, False), (True, False), ("", "bool", "inf", "float"), ("", "bool", "inf"), (False, True)):
        if training and (nested or norm) or not first and nested:
            continue

        def make():
            return nn.TransformerEncoder(layer(first), 2, nn.LayerNorm(WIDTH) if norm else None, enable_nested_tensor=nested)

        yield (name("encoder", first=first, nested=nested, norm=norm, pad=pad and "pad_" + pad, at=at and "at_" + at, training=training),
               *masked(make, first, pad, at, training))
    if takes(nn.TransformerEncoder, "is_causal"):
        for first in (True, False):
            yield (name("encoder.causal", first=first), *masked(lambda: nn.TransformerEncoder(layer(first), 2), first, "", "inf", False, causal=", is_causal=True"))


def decoders():
    for first, tgt, at, pad, memory, training in itertools.product((True, False), ("", "bool", "inf"), ("", "inf"), ("", "bool", "inf"), ("", "bool", "inf"), (False, True)):
        if training and not first:
            continue
        names = ["x", "y"] + ["tgt"] * bool(tgt) + ["at"] * bool(at) + ["pad"] * bool(pad) + ["hide"] * bool(memory)
        call = ("m(x, y" + ", tgt_mask=tgt" * bool(tgt) + ", memory_mask=at" * bool(at) + ", tgt_key_padding_mask=pad" * bool(pad)
                + ", memory_key_padding_mask=hide" * bool(memory) + ")")
        sets = []
        for b, q, k, front in CROSSED:
            sets.append([sequence(b, q, first, 0.37), sequence(b, k, first, 0.23)] + ([later(tgt, q, q)] if tgt else []) + ([later(at, q, k)] if at else [])
                        + ([padding(pad, b, q, False)] if pad else []) + ([padding(memory, b, k, front)] if memory else []))

        def make():
            one = layer(first, kind=nn.TransformerDecoderLayer)
            return one if training or not first else nn.TransformerDecoder(one, 2)

        yield (name("decoder", first=first, tgt=tgt and "tgt_" + tgt, at=at and "at_" + at, pad=pad and "pad_" + pad, hide=memory and "hide_" + memory, training=training),
               program(make, names, call, training), sets)


def transformers():
    for first, pad, at in itertools.product((True, False), ("", "bool", "inf"), ("", "bool", "inf")):
        names = ["x", "y"] + ["pad", "hide"] * bool(pad) + ["at", "tgt"] * bool(at)
        call = "m(x, y" + ", src_key_padding_mask=pad, memory_key_padding_mask=hide" * bool(pad) + ", src_mask=at, tgt_mask=tgt" * bool(at) + ")"
        sets = []
        for b, q, k, front in CROSSED:  # y asks x
            sets.append([sequence(b, k, first, 0.37), sequence(b, q, first, 0.23)] + ([padding(pad, b, k, front)] * 2 if pad else [])
                        + ([later(at, k, k), later(at, q, q)] if at else []))

        def make():
            return nn.Transformer(WIDTH, 2, 1, 1, 12, dropout=0.0, batch_first=first)

        yield name("transformer", first=first, pad=pad and "pad_" + pad, at=at and "at_" + at), program(make, names, call, False), sets
