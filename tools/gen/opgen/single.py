#!/usr/bin/env python3
"""Random programs of one operator: odd shapes, types and arguments, which suites of samples have few of.

    python3 tools/gen/opgen/single.py --aton bin/aton --count 500 --seed 1 [--ops 'add|sum'] [--opset 17]

Each program is traced, exported, run by onnxruntime and compared with what the archive gives in PyTorch. Prints what differs and what is
refused. Needs PyTorch, onnx and onnxruntime in one Python.
"""
import argparse
import os
import random
import re
import sys
import tempfile
import warnings

import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../judge/python"))
import judge  # noqa: E402

warnings.filterwarnings("ignore")
FLOATS, INTS = [torch.float32, torch.float64, torch.float16], [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
ANY = FLOATS + INTS + [torch.bool]
R = random.Random()


def shape(low=0, high=4):
    return [R.choice([0, 1, 1, 2, 3, 4, 5]) if R.random() < 0.3 else R.choice([1, 2, 3, 4, 5]) for _ in range(R.randint(low, high))]


def data(s, d):
    t = torch.empty(s)
    if d == torch.bool:
        return torch.rand(s) > 0.5
    if d in INTS:
        return torch.randint(0 if d == torch.uint8 else -9, 10, s).to(d)
    t = torch.randn(s) * R.choice([0.3, 1, 5])
    if t.numel() > 2 and R.random() < 0.2:
        t.view(-1)[R.randrange(t.numel())] = R.choice([float("nan"), float("inf"), -float("inf"), -0.0])
    return t.to(d)


def partner(x, types=ANY):
    """A tensor that broadcasts with x, or a number."""
    if R.random() < 0.3:
        return R.choice([2, -3, 0.5, True, 7])
    s = [1 if R.random() < 0.3 else n for n in x.shape][R.randint(0, x.dim()):]
    return data(s, R.choice(types))


def dim(x):
    return R.randint(-x.dim(), x.dim() - 1) if x.dim() else R.choice([0, -1])


def dims(x):
    n = R.randint(1, max(x.dim(), 1))
    return [d - R.choice([0, x.dim()]) for d in R.sample(range(x.dim()), min(n, x.dim()))]


def unary(name, types):
    return lambda: (lambda x: getattr(torch, name)(x), [data(shape(), R.choice(types))])


def binary(name, types):
    def make():
        x = data(shape(), R.choice(types))
        y = partner(x, types)
        f = getattr(torch, name)
        return (lambda a, b: f(a, b), [x, y]) if torch.is_tensor(y) else (lambda a: f(a, y), [x])
    return make


def reduction(name, types, many=True):
    def make():
        x, f, keep = data(shape(), R.choice(types)), getattr(torch, name), R.random() < 0.5
        if R.random() < 0.2:
            return lambda a: f(a), [x]
        d = dims(x) if many and R.random() < 0.5 else dim(x)
        return lambda a: f(a, dim=d, keepdim=keep), [x]
    return make


def along(name, types):
    def make():
        x, f = data(shape(), R.choice(types)), getattr(torch, name)
        d = dim(x)
        return lambda a: f(a, d), [x]
    return make


def special(f, types=ANY, low=0, high=4):
    return lambda: (lambda g, x: (g, [x]))(*f(data(shape(low, high), R.choice(types))))


def number():
    return R.choice([0, 1, -1, 2, 0.5, -1.5, 3.25])


OPS = {n: unary(n, ANY) for n in "abs neg sign square isnan isinf isfinite logical_not".split()}
OPS |= {n: unary(n, ANY) for n in "sqrt rsqrt exp expm1 sigmoid sin cos tan sinh tanh atan asinh erf reciprocal log1p exp2 sinc deg2rad logit".split()}
OPS |= {n: unary(n, FLOATS + INTS) for n in "floor ceil round trunc frac relu positive sgn".split() if n != "frac"}
OPS |= {n: binary(n, ANY) for n in "add mul true_divide eq ne lt le gt ge maximum minimum logical_and logical_or logical_xor".split()}
OPS |= {n: binary(n, FLOATS + INTS) for n in "sub floor_divide remainder fmod fmax fmin pow atan2 copysign hypot".split()}
OPS |= {n: binary(n, INTS) for n in "bitwise_and bitwise_or bitwise_xor gcd lcm".split()}
OPS |= {n: reduction(n, ANY) for n in "sum count_nonzero".split()}
OPS |= {n: reduction(n, ANY) for n in "amax amin any all nansum".split()}
OPS |= {n: reduction(n, FLOATS) for n in "mean std var logsumexp nanmean norm".split()}
OPS |= {n: reduction(n, FLOATS + INTS, False) for n in "argmax argmin prod".split()}
OPS |= {n: along(n, ANY) for n in "cumsum cumprod flip unbind".split()}
OPS |= {n: along(n, FLOATS) for n in "softmax log_softmax logcumsumexp cummax cummin".split()}
OPS |= {
    "clamp": special(lambda x, a=0: (lambda lo, hi: (lambda v: torch.clamp(v, lo, hi), x))(number(), R.choice([None, 2, 1.5])), FLOATS + INTS),
    "add_alpha": special(lambda x: (lambda k: (lambda v: torch.add(v, v, alpha=k), x))(R.choice([2, -1, 3])), FLOATS + INTS),
    "div_floor": special(lambda x: (lambda k, m: (lambda v: torch.div(v, k, rounding_mode=m), x))(R.choice([2, -3, 0.7]), R.choice(["floor", "trunc", None])), FLOATS + INTS),
    "full_like": special(lambda x: (lambda k: (lambda v: torch.full_like(v, k), x))(R.choice([1, 0, 3]))),
    "reshape": special(lambda x: (lambda v: v.reshape(-1), x)),
    "transpose": special(lambda x: (lambda a, b: (lambda v: v.transpose(a, b), x))(dim(x), dim(x))),
    "permute": special(lambda x: (lambda p: (lambda v: v.permute(p), x))([d - R.choice([0, x.dim()]) for d in R.sample(range(x.dim()), x.dim())])),
    "unsqueeze": special(lambda x: (lambda d: (lambda v: v.unsqueeze(d), x))(R.randint(-x.dim() - 1, x.dim()))),
    "squeeze": special(lambda x: (lambda d: (lambda v: v.squeeze(d), x))(dim(x))),
    "roll": special(lambda x: (lambda k, d: (lambda v: torch.roll(v, k, d), x))(R.randint(-4, 4), dim(x)), ANY, 1),
    "narrow": special(lambda x: (lambda d: (lambda v: v.narrow(d, 0, x.shape[d]), x))(dim(x)), ANY, 1),
    "slice": special(lambda x: (lambda a, b, c: (lambda v: v[a:b:c], x))(R.choice([None, 0, 1, -2, 9]), R.choice([None, 2, -1, -9, 7]), R.choice([1, 2, 3])), ANY, 1),
    "cat": special(lambda x: (lambda d: (lambda v: torch.cat([v, v, v], d), x))(dim(x)), ANY, 1),
    "stack": special(lambda x: (lambda d: (lambda v: torch.stack([v, v], d), x))(R.randint(-x.dim() - 1, x.dim()))),
    "tril": special(lambda x: (lambda k: (lambda v: torch.tril(v, k), x))(R.randint(-3, 3)), ANY, 2),
    "diagonal": special(lambda x: (lambda k: (lambda v: torch.diagonal(v, k), x))(R.randint(-2, 2)), ANY, 2),
    "repeat": special(lambda x: (lambda r: (lambda v: v.repeat(r), x))([R.choice([1, 2, 0, 3]) for _ in range(x.dim() + R.randint(0, 1))])),
    "where": special(lambda x: (lambda k: (lambda v: torch.where(v > 0, v, k), x))(R.choice([0, 2, -1.5])), FLOATS + INTS),
    "masked_fill": special(lambda x: (lambda k: (lambda v: v.masked_fill(v > 0, k), x))(R.choice([0, 2, 1]))),
    "index": special(lambda x: (lambda i: (lambda v: v[i], x))(torch.tensor([0, -1, 0])), ANY, 1),
    "gather": special(lambda x: (lambda d: (lambda v: torch.gather(v, d, torch.zeros(v.shape, dtype=torch.long)), x))(dim(x)), ANY, 1),
    "sort": special(lambda x: (lambda d, k: (lambda v: torch.sort(v, dim=d, descending=k, stable=True), x))(dim(x), R.random() < 0.5), FLOATS + INTS),
    "to": special(lambda x: (lambda d: (lambda v: v.to(d), x))(R.choice(ANY))),
    "sum_dtype": special(lambda x: (lambda d: (lambda v: v.sum(dtype=d), x))(R.choice(FLOATS + INTS))),
    "mean_dtype": special(lambda x: (lambda d: (lambda v: v.mean(dtype=d), x))(R.choice(FLOATS))),
    "var_correction": special(lambda x: (lambda d, c: (lambda v: torch.var(v, dim=d, correction=c), x))(dim(x), R.choice([0, 1, 2])), FLOATS),
    "norm_p": special(lambda x: (lambda p, d: (lambda v: torch.linalg.vector_norm(v, p, d), x))(R.choice([0, 1, 2, 3, float("inf"), -float("inf"), 0.5, -1]), dim(x)), FLOATS, 1),
    "leaky_relu": special(lambda x: (lambda k: (lambda v: F.leaky_relu(v, k), x))(R.choice([0.1, 0, -0.5, 1.5])), FLOATS),
    "elu": special(lambda x: (lambda k: (lambda v: F.elu(v, k), x))(R.choice([0.1, 1, 2.5])), FLOATS),
    "softplus": special(lambda x: (lambda b, t: (lambda v: F.softplus(v, b, t), x))(R.choice([1, 2, 0.5]), R.choice([20, 3])), FLOATS),
    "gelu": special(lambda x: (lambda k: (lambda v: F.gelu(v, approximate=k), x))(R.choice(["none", "tanh"])), FLOATS),
    "hardtanh": special(lambda x: (lambda v: F.hardtanh(v, -0.5, 1.25), x), FLOATS),
    "threshold": special(lambda x: (lambda v: F.threshold(v, 0.5, -2), x), FLOATS + INTS),
    "matmul": special(lambda x: (lambda v: torch.matmul(v, v.transpose(-1, -2)), x), FLOATS + INTS, 2),
    "pad": special(lambda x: (lambda p, k: (lambda v: F.pad(v, p, value=k), x))([R.randint(-1, 2) for _ in range(2)], R.choice([0, 1.0, 2.0])), FLOATS + INTS, 1),
    "layer_norm": special(lambda x: (lambda v: F.layer_norm(v, v.shape[-1:]), x), FLOATS, 1),
    "one_hot": lambda: (lambda a: F.one_hot(a, 6), [torch.randint(0, 6, shape())]),
    "bitwise_not": special(lambda x: (lambda v: torch.bitwise_not(v), x), INTS + [torch.bool]),
    "shift": special(lambda x: (lambda k: (lambda v: (v << k, v >> k), x))(R.choice([0, 1, 3])), INTS),
    "diff": special(lambda x: (lambda d: (lambda v: torch.diff(v, dim=d), x))(dim(x)), ANY, 1),
    "logaddexp": special(lambda x: (lambda v: torch.logaddexp(v, v * 2), x), FLOATS),
    "lerp": special(lambda x: (lambda k: (lambda v: torch.lerp(v, v * 2, k), x))(number()), FLOATS),
    "addcmul": special(lambda x: (lambda k: (lambda v: torch.addcmul(v, v, v, value=k), x))(R.choice([1, 2, -3])), FLOATS + INTS),
    "unfold": special(lambda x: (lambda d: (lambda v: v.unfold(d, 1, 2), x))(dim(x)), ANY, 1),
    "topk": lambda: (lambda x, d: (lambda a: torch.topk(a, 1, d)[0], [x]))(data([R.randint(1, 4) for _ in range(3)], R.choice(FLOATS + INTS)), R.randint(-3, 2)),
}


class Program(torch.nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, *args):
        return self.f(*args)


def leaves(v):
    return [v] if torch.is_tensor(v) else [t for e in v for t in leaves(e)]


TOLERANCES = {torch.float16: 4e-3, torch.float32: 1e-4, torch.float64: 1e-9}


def differs(got, want):
    tolerance = TOLERANCES.get(want.dtype, 0)
    return judge.differ(got, want, tolerance, tolerance)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--aton", default="bin/aton")
    p.add_argument("--count", type=int, default=200)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--opset", type=int, default=17)
    p.add_argument("--ops", default="")
    o = p.parse_args()
    names = [n for n in sorted(OPS) if re.search(o.ops, n)]
    count = {"right": 0, "refused": 0, "differs": 0, "not run": 0, "PyTorch refuses": 0}
    with tempfile.TemporaryDirectory() as tmp:
        archive, file = os.path.join(tmp, "m.pt"), os.path.join(tmp, "m.onnx")
        for number in range(o.count):
            R.seed(f"{o.seed} {number}")
            torch.manual_seed(o.seed * 1000003 + number)
            name = names[number % len(names)]
            try:
                f, args = OPS[name]()
                torch.jit.trace(Program(f).eval(), tuple(a.clone() for a in args), check_trace=False).save(archive)
                loaded = torch.jit.load(archive)
                want = leaves(loaded(*[a.clone() for a in args]))
            except (RuntimeError, IndexError, ValueError, TypeError):
                count["PyTorch refuses"] += 1
                continue
            specs = []
            for i, a in zip(list(loaded.graph.inputs())[1:], args):
                specs += ["--input", f"{i.debugName().split('.')[0]}:{judge.spec(a.dtype, a.shape)}"]
            try:
                judge.export(o.aton, archive, file, *specs, opset=o.opset)
                got = judge.run(judge.session(file), args)
                bad = [d for d in map(differs, got, want) if d]
                kind, say = ("differs", bad[0]) if bad else ("right", "")
            except judge.Refused as e:
                kind, say = "refused", str(e)[-160:]
            except Exception as e:  # of onnxruntime
                kind, say = "not run", str(e)[:160]
            count[kind] += 1
            if kind != "right":
                print(f"{number} {name} {[judge.spec(a.dtype, a.shape) for a in args]}: {kind}: {say}", flush=True)
    print(count)


if __name__ == "__main__":
    main()
