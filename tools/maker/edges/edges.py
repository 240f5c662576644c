#!/usr/bin/env python3
"""Writes programs on the edges of numbers, with what PyTorch gives for them, as cases (tools/lib/cases).

    python3 tools/maker/edges/edges.py --out DIR [--filter RE]

DIR/edges/ID has the archive, the inputs and the outputs. `testdata/edges.tar.gz` is packed from it by tools/maker/randprog/pack.py.
A program is an expression over its inputs, or the lines of a function, which is a script; the values that make it an edge are in the inputs, never in the program.
"""
import argparse
import os
import re
import sys
import textwrap

import torch

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../judge/python"))
import casefile  # noqa: E402

INF, NAN = float("inf"), float("nan")
BIG = 2**53 + 1  # the first integer that float64 does not hold
F16, F32, F64, I64, I32 = torch.float16, torch.float32, torch.float64, torch.int64, torch.int32


def t(*values, d=F32):
    return torch.tensor(values, dtype=d)


def ints(*values):
    return t(*values, d=I64)


FAR = ints(BIG, -BIG, 2**62 + 3, 7, -7, 2**40 + 1)
NEAR = ints(3, 5, 10, 2, 2, 2**20 + 1)
EDGES = [INF, -INF, NAN, 0.0, -0.0, 1.5, -2.5, 3e38, 1e-40]
ROWS = [[INF, 1.0, -INF], [-INF, -INF, -INF], [NAN, 1.0, 2.0], [INF, INF, 0.0], [-0.0, 0.0, -1.0], [100.0, -100.0, 88.5]]


def rows(d=F32):
    return torch.tensor(ROWS, dtype=d)


def image(*at, d=F32, value=NAN):
    """A (1, 1, 6, 6) image of small numbers with a value at places."""
    x = torch.arange(36, dtype=F64).reshape(1, 1, 6, 6).sin().to(d)
    for i, j in at:
        x[0, 0, i, j] = value
    return x


def programs():
    """(id, expression or lines, inputs, inputs of a second data set or None)."""
    f = "torch.nn.functional."
    # integers that float64 does not hold
    for name, e in [("sum", "x.sum()"), ("sum_dim", "x.reshape(2, 3).sum(1)"), ("sum_dims", "x.reshape(1, 2, 3).sum((0, 2))"),
                    ("cumsum", "x.cumsum(0)"), ("prod", "x.reshape(3, 2)[:, :1].prod(1)"), ("cumprod", "x[:1].cumprod(0)"),
                    ("abs", "x.abs()"), ("neg", "-x"), ("max", "x.max()"), ("min_dim", "x.reshape(2, 3).min(1)"), ("argmax", "x.argmax()"),
                    ("sort", "x.sort()"), ("topk", "x.topk(3)"), ("sign", "x.sign()"), ("square", "x[3:] * x[3:]"), ("unique", "x.unique()"),
                    ("pow_2", "x[5:] ** 2"), ("pow_3", "x[3:5] ** 3"), ("divide_3", "x // 3"), ("divide_minus_3", "x // -3"),
                    ("remainder_3", "x % 3"), ("remainder_minus_3", "x % -3"), ("fmod_3", "torch.fmod(x, 3)"),
                    ("trunc_3", "torch.div(x, 3, rounding_mode='trunc')"), ("clamp", "x.clamp(-(2**33), 2**54 + 1)"),
                    ("clamp_min", "x.clamp(min=2**33 + 1)"), ("clamp_max", "x.clamp(max=-(2**33))"), ("clamp_small", "x.clamp(-5, 5)"),
                    ("relu", "torch.relu(x)"), ("equal", f"x == {BIG}"), ("less", f"x < {BIG}"), ("any", "x.any()"), ("diff", "x.diff()"),
                    ("shift", "x >> 1"), ("and_", "x & 0xFFFFFFFFF"), ("where", "torch.where(x > 0, x, -x)"), ("std_of", "x.to(torch.float64).std()"),
                    ("count_nonzero", "x.count_nonzero()"), ("amax", "x.amax(0)"), ("aminmax", "torch.aminmax(x)"), ("flip", "x.flip(0)"),
                    ("median", "x.median()"), ("dot", "torch.dot(x, x)"), ("norm_sq", "(x * x).sum()")]:
        yield "int64_" + name, e, (FAR,), None
    for name, e in [("divide", "x // y"), ("remainder", "x % y"), ("fmod", "torch.fmod(x, y)"), ("trunc", "torch.div(x, y, rounding_mode='trunc')"),
                    ("true_divide", "x / y"), ("maximum", "torch.maximum(x, y)"), ("clamp_tensor", "x.clamp(-y, y + 2**33)"), ("eq", "x.eq(x + 1)"),
                    ("matmul", "x.reshape(2, 3) @ y.reshape(3, 2)"), ("gcd", "torch.gcd(x[:3], y[:3])"), ("addcmul", "torch.addcmul(x, x, y)"),
                    ("negative_divisor", "x // -y"), ("negative_remainder", "x % -y"), ("scatter_add", "torch.zeros_like(x).scatter_add(0, y % 2, x)"),
                    ("index_add", "torch.zeros_like(x).index_add(0, y % 2, x)"), ("lerp", "x + (y - x) // 2")]:
        yield "int64_by_" + name, e, (FAR, NEAR), None
    yield "int64_pow_tensor", "x ** y", (ints(3, -3, 7, 2, 10, 1), ints(39, 33, 20, 62, 18, 100)), None
    yield "int64_pow_of_base", "2 ** y", (FAR, ints(0, 1, 53, 54, 62, 63)), None
    yield "int64_pow_of_even_base", "torch.pow(2, y), torch.pow(10, y), torch.pow(-6, y)", (FAR, ints(0, 1, 2, 24, 63, 64, 65, 100, -1, -7)), None
    yield "int64_prod_wraps", "x.prod()", (ints(2**31 + 1, 2**31 + 3, 5),), None
    yield "int64_arange", f"torch.arange({BIG}, {BIG} + 5) + x", (ints(0, 1, 2, 3, 4),), None
    yield "int32_sum", "x.sum()", (t(2**31 - 1, 2**31 - 1, 3, d=I32),), None
    # shapes that a tensor keeps, sizes beside scales, and the types and totals of results
    yield "arange_out", "torch.arange(1, 13, out=x), torch.linspace(0, 1, 12, out=y)", (torch.ones(3, 4, dtype=I64), torch.ones(2, 6)), None
    yield "repeat_interleave_int32", "torch.repeat_interleave(x)", (t(1, 2, 3, d=I32),), None
    yield "nll_loss_of_one", "torch.ops.aten.nll_loss_forward(x, torch.tensor(2), None, 0, -100), torch.ops.aten.nll_loss_forward(x, torch.tensor(2), x, 0, 2)", (t(-1.0, -2.0, -0.5),), None
    yield "weight_norm_of_a_row", "torch._weight_norm(x, y, 0), torch.norm_except_dim(x, 1, 0)", (t(-1.0, 2.0, -0.5), t(3.0, 4.0, 5.0)), None
    for name in ("upsample_nearest2d", "_upsample_nearest_exact2d"):
        yield name + "_size", f"torch._C._nn.{name}(x, [8, 8], 2.0, 3.0)", (image(),), (image()[:, :, :4, :5].contiguous(),)
    for name in ("upsample_bilinear2d", "upsample_bicubic2d"):
        yield name + "_size", f"torch._C._nn.{name}(x, [8, 9], False, 2.0, 1.5)", (image(),), (image()[:, :, :4, :5].contiguous(),)
    yield "int32_floor", "x // y", (t(-7, 7, -8, 2**31 - 1, d=I32), t(2, -2, 3, -1, d=I32)), None
    yield "int32_square", "x * x", (t(2**31 - 1, 65536, -3, d=I32),), None
    yield "uint8_wraps", "x + y, x - y, x * y, -x, ~x", (t(200, 3, 255, d=torch.uint8), t(100, 5, 255, d=torch.uint8)), None
    yield "uint8_sum", "x.sum(), x.prod(), x.cumsum(0)", (t(200, 3, 255, d=torch.uint8),), None
    yield "int8_abs", "x.abs(), -x, x // 3, x % 3", (t(-128, 127, -3, d=torch.int8),), None
    # one-sided bounds and infinities. What a model takes for granted, with a warning, is not asked: an infinity in adaptive
    # average pooling. hardswish is not asked for 3e38: PyTorch multiplies by 6 first, which overflows
    for d, n in [(F16, "f16"), (F32, "f32"), (F64, "f64")]:
        x = torch.tensor([v if d != F16 or abs(v) < 6e4 or v in (INF, -INF) or v != v else 6e4 for v in EDGES], dtype=d)
        yield f"{n}_clamp_min", "x.clamp(min=0.5)", (x,), None
        yield f"{n}_clamp_max", "x.clamp(max=0.5)", (x,), None
        yield f"{n}_clamp", "x.clamp(-1.0, 1.0)", (x,), None
        yield f"{n}_clamp_tensors", "x.clamp(y, y + 1)", (x, torch.zeros(9, dtype=d)), None
        yield f"{n}_relus", f"torch.relu(x), {f}relu6(x), {f}hardtanh(x), {f}leaky_relu(x, 0.1), {f}threshold(x, 0.1, 20.0)", (x,), None
        yield f"{n}_extrema", "x.max(), x.min(), x.amax(0), x.aminmax(), x.argmax(), x.argmin()", (x,), None
        yield f"{n}_two_extrema", "torch.maximum(x, y), torch.minimum(x, y), torch.fmax(x, y), torch.fmin(x, y)", (x, x.flip(0)), None
        yield f"{n}_sort", "x.sort(stable=True), x.sort(descending=True, stable=True), x.argsort(stable=True)", (torch.tensor([NAN, INF, 1.0, -INF, NAN, -1.0, INF], dtype=d),), None
        yield f"{n}_topk", "x.topk(3), x.topk(3, largest=False), x.kthvalue(2)", (torch.tensor([1.0, INF, -2.0, -INF, 5.0], dtype=d),), None
        yield f"{n}_topk_nan", "x.topk(3)[0], x.topk(3, largest=False)[0]", (torch.tensor([1.0, NAN, INF, -INF, 5.0], dtype=d),), None
        yield f"{n}_softmax", "x.softmax(1), x.log_softmax(1)", (rows(d),), None
        yield f"{n}_logsumexp", "x.logsumexp(1), x.logsumexp((0, 1)), x[4:].logcumsumexp(1)", (rows(d),), None
        yield f"{n}_softplus", f"{f}softplus(x), {f}logsigmoid(x), {f}softsign(x), {f}mish(x)", (x,), None
        yield f"{n}_gates", f"torch.sigmoid(x), torch.tanh(x), {f}silu(x), {f}gelu(x), {f}gelu(x, approximate='tanh'), {f}hardswish(x), {f}hardsigmoid(x), {f}elu(x), {f}selu(x), {f}celu(x)", (x[[0, 1, 2, 3, 4, 5, 6, 8]],), None
        yield f"{n}_max_pool", f"{f}max_pool2d(x, 2), {f}max_pool2d(x, 3, 2, 1), {f}adaptive_max_pool2d(x, 2)", (image((1, 1), (4, 5), d=d),), None
        yield f"{n}_max_pool_low", f"{f}max_pool2d(x, 3, 2, 1)", (torch.full((1, 1, 6, 6), -INF, dtype=d),), None
        yield f"{n}_avg_pool", f"{f}avg_pool2d(x, 2), {f}avg_pool2d(x, 3, 2, 1)", (image((1, 1), (4, 5), d=d, value=INF),), None
        yield f"{n}_zeros", "torch.round(x), torch.trunc(x), torch.ceil(x), torch.floor(x), torch.abs(x), -x, torch.sign(x), torch.sgn(x)", (torch.tensor([-0.0, 0.0, -0.4, 0.5, -0.5, 1.5, 2.5, NAN, -INF], dtype=d),), None
        yield f"{n}_sign_of_zero", "1 / torch.round(x), 1 / torch.trunc(x), 1 / torch.ceil(x), 1 / (-x), 1 / torch.relu(x), 1 / (x * 0), 1 / x.clamp(-1.0, 1.0)", (torch.tensor([-0.0, 0.0, -0.4, 0.4], dtype=d),), None
        yield f"{n}_signbit", "torch.signbit(x), torch.copysign(y, x), torch.atan2(y * 0, x), torch.atan2(x, -y)", (torch.tensor([-0.0, 0.0, -1.5, INF], dtype=d), torch.ones(4, dtype=d)), None
        yield f"{n}_remainder", "x % 2, x % -2, torch.fmod(x, 2), x // 2, x // -2, torch.frac(x)", (torch.tensor([5.5, -5.5, 0.0, -0.0, 2.0, -2.0, NAN], dtype=d),), None
        yield f"{n}_nan_to_num", "torch.nan_to_num(x), torch.nan_to_num(x, 1.0, 2.0, 3.0), torch.isinf(x), torch.isnan(x), torch.isfinite(x), torch.isposinf(x), torch.isneginf(x)", (x,), None
        yield f"{n}_compare", "x == x, x != x, x < 1, x >= 1, torch.isclose(x, x), torch.isclose(x, x, equal_nan=True)", (x,), None
        yield f"{n}_cumulative", "x.cumsum(0), x.cummax(0)[0], x.cummin(0)[0]", (torch.tensor([1.0, -INF, 2.0, INF, 3.0, NAN], dtype=d),), None
        yield f"{n}_sums", "x.sum(), x.nansum(), x.mean(), x.nanmean(), x.prod(), x.norm(), x.abs().amax()", (torch.tensor([1.0, INF, 2.0, -3.0], dtype=d),), None
        yield f"{n}_means_nan", "x.sum(1), x.nansum(1), x.mean(1), x.nanmean(1), x.amax(1), x.any(), x.all()", (rows(d),), None
        yield f"{n}_logs", "torch.log(x), torch.log1p(x), torch.sqrt(x), torch.rsqrt(x), torch.reciprocal(x), torch.exp(x), torch.expm1(x), torch.log2(x)", (torch.tensor([0.0, -0.0, -1.0, INF, NAN, 4.0], dtype=d),), None
        yield f"{n}_powers", "x ** 2, x ** 0.5, x ** -1, x ** 0, x ** 3, torch.pow(2.0, x)", (torch.tensor([0.0, -0.0, -1.0, INF, -INF, NAN, 4.0], dtype=d),), None
        yield f"{n}_var", "x.var(), x.std(), x[:1].var(), x[:1].std(), x.var(unbiased=False)", (torch.tensor([1.0, 2.0, 4.0], dtype=d),), None
        yield f"{n}_logaddexp", "torch.logaddexp(x, x), torch.xlogy(x * 0, x), torch.special.xlog1py(x * 0, x), torch.special.entr(x.abs())", (torch.tensor([INF, -INF, 0.0, 2.0], dtype=d),), None
        yield f"{n}_where", "torch.where(x > 0, x, x * 0), x.masked_fill(x > 1, -float('inf')), x * (x > 0)", (x,), None
        yield f"{n}_median", "x.median(), x.nanmedian(), x[:3].median()", (torch.tensor([3.0, 1.0, INF, NAN, 2.0], dtype=d),), None
    # nothing at all: sizes of 0, also on an axis that is declared dynamic
    full, none = torch.ones(2, 3), torch.ones(0, 3)
    for name, e in [("mean", "x.mean(), x.mean(0)"), ("sum", "x.sum(), x.sum(0), x.sum(1)"), ("prod", "x.prod(), x.prod(0)"), ("any_all", "(x > 0).any(), (x > 0).all(), (x > 0).any(0)"),
                    ("cat", "torch.cat([x, x * 2])"), ("softmax", "x.softmax(1)"), ("linear", f"{f}linear(x, torch.ones(4, 3), torch.ones(4))"), ("matmul", "x @ x.t(), x.t() @ x"),
                    ("cumsum", "x.cumsum(0)"), ("norm", "x.norm(), x.norm(dim=0)"), ("logsumexp", "x.logsumexp(0)"), ("relu", "torch.relu(x) + 1"), ("reshape", "x.reshape(-1, 3), x.flatten()"),
                    ("layer_norm", f"{f}layer_norm(x, [3])"), ("nonzero", "x.nonzero(), x[x > 0]"), ("std", "x.std(), x.var(0)"), ("sort", "x.sort(0)[0]"), ("index", "x[:, [0, 2]]"),
                    ("expand", "x.unsqueeze(1).expand(-1, 2, -1)"), ("stack", "torch.stack([x, x])"), ("pad", f"{f}pad(x, [1, 1])"), ("where", "torch.where(x > 0, x, x - 1)"), ("gather", "x.gather(1, (x * 0).long())")]:
        yield "empty_" + name, e, (full,), (none,)
    yield "empty_conv", f"{f}conv2d(x, torch.ones(2, 1, 3, 3))", (torch.ones(2, 1, 5, 5),), (torch.ones(0, 1, 5, 5),)
    yield "empty_pool", f"{f}max_pool2d(x, 2), {f}avg_pool2d(x, 2)", (torch.ones(2, 1, 4, 4),), (torch.ones(0, 1, 4, 4),)
    yield "empty_embedding", f"{f}embedding(x, torch.ones(5, 2))", (ints(1, 2),), (ints(),)
    yield "empty_int_sum", "x.sum(), x.prod(), x.any(), x.all()", (ints(1, 2),), (ints(),)
    # an axis of 1 at run time
    yield "one_squeeze_dim", "x.squeeze(1)", (torch.ones(2, 1, 3),), (torch.ones(4, 1, 3),)
    yield "one_std", "x.std(0), x.var(0)", (torch.ones(2, 3),), (torch.ones(1, 3),)
    yield "one_broadcast", "x + x.t()", (torch.ones(3, 3),), (torch.ones(1, 1),)
    yield "one_transpose", "x.transpose(1, 0).contiguous().view(-1)", (torch.arange(6.0).reshape(2, 3),), (torch.arange(3.0).reshape(1, 3),)
    # a window that is the whole plane, of any size
    yield "plane_pool", f"{f}avg_pool2d(x, x.shape[2:]), {f}max_pool2d(x, x.shape[2:]), {f}avg_pool1d(x[0], x.shape[3:])", (image((1, 1), value=7),), (torch.arange(40.0).reshape(1, 1, 5, 8),)
    # complex numbers from nothing: a real number, a complex one, none, in the shape of a real or of a complex tensor
    c64 = "dtype=torch.complex64"
    yield "complex_full", ", ".join(f"torch.view_as_real({e} * torch.view_as_complex(x))" for e in (
        f"torch.full(x.shape[:1], 1.5, {c64})", "torch.full([3], 1 - 2j)", f"torch.zeros(x.shape[0], {c64})", f"torch.ones(3, {c64})", f"torch.full_like(x[:, 0], 2, {c64})",
        f"torch.zeros_like(torch.view_as_complex(x), {c64})", f"x.new_ones(3, {c64})")), (torch.tensor([[1.0, 2.0], [0.5, -1.0], [3.0, 0.0]]),), None
    # the longest of several sequences is another one for other sizes
    rnn = "torch.nn.utils.rnn."
    yield "pad_sequence", f"{rnn}pad_sequence([x, y]), {rnn}pad_sequence([y, x[:2], x], True, -1.5), {rnn}pad_sequence([x[:, 0], y[:, 0]], padding_side='left')", (torch.arange(6.0).reshape(3, 2), torch.ones(5, 2)), (torch.arange(8.0).reshape(4, 2), torch.ones(2, 2))
    # transforms whose size is no power of 2, in which a runtime may lose digits
    for n in (400, 523):
        yield f"fourier_{n}", "torch.view_as_real(torch.fft.rfft(x, norm='forward')), torch.view_as_real(torch.fft.ifft(x).resolve_conj()), torch.fft.irfft(torch.fft.rfft(x), x.shape[-1])", (torch.arange(float(n)).sin(),), None
    # integers in even steps are rounded once, bags without rows, and the padding of any kernel
    yield "linspace_of_integers", "torch.linspace(-44, 94, x.shape[0], dtype=torch.int64), torch.linspace(93, -36, x.shape[0], dtype=torch.int32), torch.linspace(y[0], y[1], 64, dtype=torch.int64)", (torch.ones(16), ints(-43, 34)), (torch.ones(64), ints(90, -29))
    yield "linspace_of_constants", "x + torch.linspace(-53, 61, 100, dtype=torch.int64), torch.logspace(1, 5.5, 7, 3.7, dtype=torch.int64)", (ints(7),), None
    yield "transposed_times_vector", "x.t() @ y, torch.mv(x.t(), y), x.expand(2, 3, 4).transpose(1, 2) @ y, y @ x", (torch.arange(12.0).reshape(3, 4).sin(), t(1.0, -2.0, 0.5)), None
    for mode in range(3):
        for end, idx in (("", ", False, None"), ("_padded", ", False, None, False, 4")):
            yield f"embedding_bag_{mode}{end}", f"torch.embedding_bag(torch.arange(30.0).reshape(10, 3).cos(), x, y, False, {mode}{idx})", (ints(1, 2, 4, 5, 4, 4, 2, 9), ints(0, 2, 2, 6)), None
    yield "conv_same_of_any_kernel", f"{f}conv1d(x, y, padding='same', dilation=3), {f}conv1d(x, y, padding=y.shape[2] // 2), {f}conv_transpose1d(x, y, padding=y.shape[2] // 2)", (torch.arange(9.0).reshape(1, 1, 9), t(1.0, 2.0, -3.0).reshape(1, 1, 3)), (torch.arange(9.0).reshape(1, 1, 9), t(1.0, 2.0, -3.0, 4.0).reshape(1, 1, 4))
    yield "istft_complex", "torch.view_as_real(torch.istft(torch.view_as_complex(x), 8, window=torch.hann_window(8), onesided=False, return_complex=True)), torch.view_as_real(torch.istft(torch.view_as_complex(x), 8, window=torch.view_as_complex(y), onesided=False, return_complex=True, length=12))", (torch.arange(8 * 7 * 2.0).reshape(8, 7, 2).sin(), torch.arange(16.0).reshape(8, 2).cos() + 2), None
    for name, e in [("remainder", "x % y, x % -2.5"), ("fmod", "torch.fmod(x, y), torch.fmod(x, 0.1)"), ("floor", "x // y, x // 0.3, torch.div(x, y, rounding_mode='floor')"), ("floor_by_2", "x // 2, x // -0.5")]:
        yield "far_" + name, e, (t(5.5, -5.5, 0, -0.0, 2, -2, NAN, 1e6, INF, 3, 1e30, -1e20, 0.7, 2.1, 3e38), t(2, 2, 3, 3, -2, 2, 1, 3.3, 2.5, 0, INF, 7, 0.1, 0.7, 1e-38)), None
    yield "half_by_number", "x // 0.1, x // -0.7, torch.div(x, 0.1, rounding_mode='trunc'), torch.floor_divide(x, 0.3)", ((torch.arange(-40.0, 41.0) * 0.3).half(),), None
    yield "clamp_crossed", "x.clamp(2.0, -1.0), x.clamp(y, -y)", (t(5.5, -5.5, 0, NAN), t(2, 1, -1, 3)), None
    yield "complex_tanh", "torch.view_as_real(torch.tanh(torch.view_as_complex(x)))", (torch.tensor([[0.5, 1.0], [-2.0, 0.25], [0.0, 3.0], [60.0, 1.5], [-1e3, 2.0], [1e-3, -1e-3], [0.1, 1.57]]),), None
    # windows that begin and step where sizes say: relative attention, of row-major memory and of views
    relative = (torch.arange(60.0).reshape(2, 2, 3, 5).sin(),), (torch.arange(270.0).reshape(3, 2, 5, 9).cos(),)
    yield "strided_relative", "\nreturn torch.as_strided(x, (x.size(0), x.size(1), x.size(2), x.size(2)), (x.stride(0), x.stride(1), x.stride(2) - x.stride(3), x.stride(3)), x.stride(3) * (x.size(2) - 1))", *relative
    yield "strided_chunks", "\nreturn torch.as_strided(x, (x.size(0), x.size(2), x.size(3) - 2), (x.stride(0), x.stride(2), 2), x.stride(1) - x.size(2))", *relative
    yield "strided_of_view", "\nreturn torch.as_strided(x[:, 1].transpose(1, 2), (x.size(2), 2), (x.stride(2), 1)), torch.as_strided(x[1], (2, x.size(3)), (x[0].transpose(1, 2).stride(0) + x.size(3), x.transpose(2, 3).stride(2)))", *relative
    yield "strided_diagonal", """
        z = x.clone()
        z.as_strided((x.size(0) - 1,), (x.size(0) + 1,), x.size(0)).mul_(3.0)
        z[1:].as_strided((2, 2), (z.stride(0), 1), z.storage_offset() + x.size(0)).add_(1.0)
        return z
    """, (torch.arange(25.0).reshape(5, 5),), (torch.arange(16.0).reshape(4, 4),)
    # what is of one type before a loop of known length, and of another one behind an iteration
    yield "union_of_numbers", """
        s: Union[int, float] = 0
        for i in range(3):
            if isinstance(s, int):
                s = 1.5
            else:
                s = 2
        return x * float(s)
    """, (t(1.0, -2.0),), (t(3.0, 4.0, 0.5),)
    yield "union_of_list", """
        s: Union[List[torch.Tensor], torch.Tensor] = x
        for i in range(4):
            if isinstance(s, torch.Tensor):
                s = [s, s + 1]
            else:
                s = torch.stack(s).sum(0)
        assert isinstance(s, torch.Tensor)
        return s
    """, (t(1.0, -2.0),), (t(3.0, 4.0, 0.5),)


def module(expression):
    """A module whose forward gives the expression, or has the lines."""
    names = sorted({n for n in ("x", "y") if re.search(rf"\b{n}\b", expression)})
    if "\n" in expression:
        return casefile.module_of(", ".join(names), textwrap.dedent(expression).strip("\n") + "\n").eval(), names
    scope = {"torch": torch}
    source = f"class Edge(torch.nn.Module):\n    def forward(self, {', '.join(names)}):\n        return {expression}\n"
    exec(compile(source, "<edge>", "exec"), scope)
    return scope["Edge"]().eval(), names


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--out", required=True)
    ap.add_argument("--filter", default="")
    opts = ap.parse_args()
    made, ids = 0, set()
    for name, expression, first, second in programs():
        if not re.search(opts.filter, name):
            continue
        assert name not in ids, name
        ids.add(name)
        m, names = module(expression)
        if len(names) < len(first):
            first = first[1:] if names == ["y"] else first[: len(names)]

        half = first[0].dtype == F16
        try:
            casefile.write(opts.out, name, m, [first] + [second] * bool(second), script="\n" in expression, suite="edges", op="edge", tolerance=(2e-3, 1e-3) if half else (1e-5, 1e-6))
            made += 1
        except casefile.Skip as e:
            print(f"{name}: skipped: {e}")
    print(made, "cases")


if __name__ == "__main__":
    main()
