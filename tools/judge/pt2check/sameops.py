#!/usr/bin/env python3
"""Saves modules as a trace and as an exported program and compares the operators of the two ONNX graphs.

usage: sameops.py --aton PATH [--opset N] [NAME ...]

Both are made with a dynamic first axis and compared with PyTorch at two sizes. A row says how many operators each graph has, and
whether they are the same: in the same order, as a multiset, or not; where not, EXPLAINED has to say why.

Needs torch, onnx and onnxruntime. Exit status 1 if numbers differ or a difference is not explained.
"""
import argparse
import collections
import inspect
import os
import sys
import tempfile
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../judge/python"))
import judge  # noqa: E402

# why the graphs differ: NAME -> reason
EXPLAINED = {
    "attention_weights": "the trace calls PyTorch's fused kernel for eval mode, the program has what the layer does without it, "
                         "with the heads as part of the batch",
}

MODULES = {}


def module(*shape, dtype=torch.float32):
    """Registers a module class; shape is its input's without the batch."""
    def register(cls):
        MODULES[cls.__name__] = (cls, shape, dtype)
        return cls
    return register


@module(8)
class mlp(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 4))


@module(3, 16, 16)
class conv_bn_relu(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(512, 5))


@module(8, 8, 8)
class residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.n = nn.Conv2d(8, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8)

    def forward(self, x):
        y = self.n(self.b(F.relu(self.a(x))))
        y += x
        return F.relu_(y)


@module(8, 8, 8)
class squeeze_excite(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(8, 2, 1), nn.Conv2d(2, 8, 1)

    def forward(self, x):
        s = F.adaptive_avg_pool2d(x, 1)
        return x * torch.sigmoid(self.b(F.silu(self.a(s))))


@module(3, 16, 16)
class u_net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1), nn.Conv2d(8, 4, 3, padding=1)
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)

    def forward(self, x):
        a = F.relu(self.a(x))
        b = F.relu(self.b(F.max_pool2d(a, 2)))
        return self.c(torch.cat([a, self.up(b)], 1))


@module(7, 6)
class lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(6, 5, num_layers=2, batch_first=True, bidirectional=True)

    def forward(self, x):
        y, (h, c) = self.rnn(x)
        return y, h, c


@module(7, 6)
class gru(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.out = nn.GRU(6, 5, batch_first=True), nn.Linear(5, 3)

    def forward(self, x):
        return self.out(self.rnn(x)[0][:, -1])


@module(7, 6)
class rnn_tanh(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(6, 5, batch_first=True)

    def forward(self, x):
        return self.rnn(x)[0]


@module(6)
class lstm_cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(6, 5)

    def forward(self, x):
        h = c = x.new_zeros(x.shape[0], 5)
        for _ in range(3):
            h, c = self.cell(x, (h, c))
        return h


@module(5, 8)
class encoder_layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.m = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def forward(self, x):
        return self.m(x)


@module(5, 8)
class encoder_norm_first(nn.Module):
    def __init__(self):
        super().__init__()
        self.m = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True, activation="gelu")

    def forward(self, x):
        return self.m(x)


@module(5, 8)
class attention_module(nn.Module):
    def __init__(self):
        super().__init__()
        self.m = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        return self.m(x, x, x, need_weights=False)[0]


@module(5, 8)
class attention_weights(nn.Module):
    def __init__(self):
        super().__init__()
        self.m = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        return self.m(x, x, x)


@module(5, 8)
class causal_attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x):
        q, k, v = (t.view(x.shape[0], -1, 2, 4).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


@module(5, 8)
class masked_attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.ones(5, 5).tril().bool())

    def forward(self, x):
        w = (x @ x.transpose(-1, -2) / 8 ** 0.5).masked_fill(~self.mask, float("-inf"))
        return w.softmax(-1) @ x


@module(6, 8)
class rotary(nn.Module):
    def forward(self, x):
        t = torch.arange(x.shape[1], dtype=torch.float32)
        f = 1.0 / 100 ** (torch.arange(0, 8, 2) / 8)
        a = torch.outer(t, f)
        c, s = a.cos().repeat(1, 2), a.sin().repeat(1, 2)
        u, v = x.chunk(2, -1)
        return x * c + torch.cat([-v, u], -1) * s


@module(5, 8)
class mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n, self.t, self.c = nn.LayerNorm(8), nn.Linear(5, 5), nn.Linear(8, 8)

    def forward(self, x):
        x = x + self.t(self.n(x).transpose(1, 2)).transpose(1, 2)
        return x + F.gelu(self.c(self.n(x)), approximate="tanh")


@module(8, 8, 8)
class convnext(nn.Module):
    def __init__(self):
        super().__init__()
        self.d, self.n, self.a, self.b = nn.Conv2d(8, 8, 7, padding=3, groups=8), nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8)
        self.scale = nn.Parameter(torch.full((8,), 0.1))

    def forward(self, x):
        y = self.n(self.d(x).permute(0, 2, 3, 1))
        return x + (self.scale * self.b(F.gelu(self.a(y)))).permute(0, 3, 1, 2)


@module(8, 8, 4)
class windows(nn.Module):
    def forward(self, x):
        n, h, w, c = x.shape
        y = torch.roll(x, (-2, -2), (1, 2)).view(n, h // 4, 4, w // 4, 4, c).permute(0, 1, 3, 2, 4, 5)
        return y.reshape(-1, 16, c)


@module(8, 4, 4)
class decoder(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(8, 16, 3, padding=1), nn.PixelShuffle(2), nn.GroupNorm(2, 4), nn.Upsample(scale_factor=2, mode="bilinear"), nn.Tanh())


@module(4, 9)
class depthwise(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv1d(4, 4, 3, groups=4, padding="same"), nn.BatchNorm1d(4), nn.Hardswish(), nn.AdaptiveAvgPool1d(3))


@module(8)
class gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 12), nn.Linear(6, 4)

    def forward(self, x):
        return self.b(F.glu(self.a(x)))


@module(6, dtype=torch.int64)
class embedding_mean(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.out = nn.Embedding(20, 8, padding_idx=0), nn.Linear(8, 3)

    def forward(self, x):
        m = (x != 0).unsqueeze(-1).float()
        return self.out((self.e(x) * m).sum(1) / m.sum(1).clamp(min=1))


@module(10)
class top_choices(nn.Module):
    def forward(self, x):
        v, i = x.softmax(-1).topk(3)
        return v, i, x.argmax(-1)


@module(5, 8)
class positions(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("pe", torch.randn(1, 16, 8))

    def forward(self, x):
        return x + self.pe[:, :x.size(1)]


@module(5, 4)
class pairwise(nn.Module):
    def forward(self, x):
        return torch.einsum("bik,bjk->bij", x, x), torch.cdist(x, x)


@module(6)
class masked_writes(nn.Module):
    def forward(self, x):
        y = x.clone()
        y[y < 0] = 0.0
        y[:, 1::2] *= 2
        y[:, 0] = y[:, 1] + 1
        return y


@module(6)
class sorted_sums(nn.Module):
    def forward(self, x):
        s, i = x.sort(-1, descending=True)
        return s.cumsum(-1), x.gather(1, i.flip(-1)), x.std(-1), x.logsumexp(-1)


@module(3, 12, 12)
class pyramid(nn.Module):
    def forward(self, x):
        return torch.cat([F.adaptive_max_pool2d(x, k).flatten(1) for k in (1, 2, 3)], 1)


@module(8)
class autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.mu, self.var, self.dec = nn.Linear(8, 6), nn.Linear(6, 2), nn.Linear(6, 2), nn.Linear(2, 8)

    def forward(self, x):
        h = F.elu(self.enc(x))
        mu, var = self.mu(h), self.var(h)
        kl = -0.5 * torch.sum(1 + var - mu.pow(2) - var.exp(), -1)
        return torch.sigmoid(self.dec(mu)), kl


def flat(y):
    return [t for v in y for t in flat(v)] if isinstance(y, (tuple, list)) else [y]


def example(shape, dtype, n):
    torch.manual_seed(n)
    return torch.randint(0, 20, (n, *shape)) if dtype == torch.int64 else torch.randn(n, *shape)


def check(a, name, folder):
    """(operators of the trace, of the program)."""
    cls, shape, dtype = MODULES[name]
    torch.manual_seed(0)
    m = cls().eval()
    for b in m.modules():
        if isinstance(b, (nn.BatchNorm1d, nn.BatchNorm2d)):
            b.running_mean.uniform_(-0.1, 0.1)
            b.running_var.uniform_(0.8, 1.2)
    x = example(shape, dtype, 2)
    traced, program = os.path.join(folder, "m.pt"), os.path.join(folder, "m.pt2")
    with torch.no_grad():
        torch.jit.save(torch.jit.trace(m, (x,), check_trace=False), traced)
        torch.export.save(torch.export.export(m, (x,), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},), strict=False), program)
        first = next(iter(inspect.signature(m.forward).parameters))
        spec = f"{first}:{judge.spec(dtype, ['N', *shape])}"
        ops = []
        for path, more in ((traced, ["--input", spec]), (program, [])):
            out = path + ".onnx"
            judge.export(a.aton, path, out, *more, opset=a.opset)
            session = judge.session(out)
            for n in (2, 5):
                x = example(shape, dtype, n)
                if why := judge.wrong(judge.run(session, [x]), flat(m(x)), rtol=1e-4, atol=1e-5, equal_nan=False):
                    raise RuntimeError(f"{os.path.basename(path)} at {n}: {why}")
            ops.append([n.op_type for n in judge.nodes(judge.loaded(out).graph) if n.op_type != "Constant"])
    return ops


def main():
    p = argparse.ArgumentParser(description="Compares the operators from traces and from exported programs of modules.")
    p.add_argument("--aton", required=True, metavar="PATH", help="the command aton")
    p.add_argument("--opset", default="20", metavar="N")
    p.add_argument("names", nargs="*", metavar="NAME")
    a = p.parse_args()
    warnings.simplefilter("ignore")
    bad, same = 0, 0
    print(f"{'module':20}{'trace':>6}{'program':>9}  operators")
    names = a.names or list(MODULES)
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            try:
                trace, program = check(a, name, folder)
            except Exception as e:  # what the conversion, the runtime or the comparison says is the result
                print(f"{name:20}{'-':>6}{'-':>9}  {str(e).strip().splitlines()[0][:150]}")
                bad += 1
                continue
        if trace == program:
            verdict = "the same, in the same order"
        elif sorted(trace) == sorted(program):
            verdict = "the same, in another order"
        else:
            c, d = collections.Counter(trace), collections.Counter(program)
            verdict = ", ".join(f"{k} {c[k]}->{d[k]}" for k in sorted(c | d) if c[k] != d[k])
            if name in EXPLAINED:
                verdict += ": " + EXPLAINED[name]
            else:
                bad += 1
                verdict += ": not explained"
        same += verdict.startswith("the same")
        print(f"{name:20}{len(trace):>6}{len(program):>9}  {verdict}", flush=True)
    print(f"{same} of {len(names)} have the same operators")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
