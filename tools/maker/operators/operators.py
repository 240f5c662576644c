#!/usr/bin/env python3
"""Writes one small program for each operator that the other suites do not reach, with what PyTorch gives for it, as cases (tools/lib/cases).

    python3 tools/maker/operators/operators.py --out DIR [--filter RE]

DIR/operators/ID has the archive, the inputs and the outputs. `testdata/operators.tar.gz` is packed from it by tools/maker/randprog/pack.py.
Most of these operators are what torch.export and TorchScript decompose others into, aliases, and forms of one backend.
"""
import argparse
import os
import re
import sys
from typing import List, Union

import torch
import torch.ao.quantization.fx._decomposed  # noqa: F401  (registers quantized_decomposed)

try:
    import torchvision  # noqa: F401  (registers its operators)
except ImportError:
    torchvision = None
try:
    import transformers.integrations.moe as transformers  # noqa: F401  (registers its operators)
except ImportError:
    transformers = None

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../judge/python"))
import casefile  # noqa: E402

torch.manual_seed(0)


def r(*shape):
    return torch.randn(*shape)


def ints(*values):
    return torch.tensor(values, dtype=torch.int64)


X, Y = torch.tensor([[-1.5, 0.25, 2.0], [0.5, -0.75, 3.5]]), torch.tensor([[0.5, 1.5, -2.0], [0.5, 2.25, 1.0]])
UNIT = torch.tensor([[-0.9, -0.25, 0.0], [0.3, 0.75, 0.99]])  # in (-1, 1)
MORE = torch.tensor([[1.0, 1.25, 2.0], [3.5, 10.0, 30.0]])  # from 1 on
MASK = torch.tensor([[True, False, False], [False, True, False]])
IMAGE, VOLUME = r(1, 2, 5, 6), r(1, 2, 4, 4, 5)
CHANNELS = (torch.tensor([1.5, 0.5]), torch.tensor([0.1, -0.2]), torch.tensor([0.3, -0.4]), torch.tensor([0.9, 1.7]))
SYMMETRIC = torch.tensor([[2.0, 0.5, 0.1], [0.5, 3.0, 0.2], [0.1, 0.2, 1.0]])
REGULAR = torch.tensor([[2.0, 0.5, 0.1], [0.3, 3.0, 0.2], [0.4, 0.2, 1.0]])


def programs():
    """(id, expression, inputs) and, behind them, "program" where only torch.export has the operators.

    The scales of quantized products leave no ties: PyTorch multiplies integers by one rounded factor, the pairs of DequantizeLinear
    and QuantizeLinear that ONNX has for them multiply real numbers, and a tie may go the other way by one quantum.
    """
    # aliases and single functions
    for name in "absolute adjoint alias arctan arcsinh negative detach_copy fix lift lift_fresh lift_fresh_copy special_erf special_erfc special_exp2 special_expit special_expm1 special_i0 special_sinc special_round conj _neg_view _neg_view_copy inverse:3 det:3 slogdet:3 _cast_Byte:+ _cast_Char _cast_Double _cast_Float _cast_Half _cast_Int _cast_Long _cast_Short _shape_as_tensor log_sigmoid_forward".split():
        name, _, kind = name.partition(":")
        yield name, f"a.{name}(x)", ({"": X, "3": REGULAR, "+": MORE}[kind],)
    yield "_conj_copy", "torch.view_as_real(a._conj_copy(torch.view_as_complex(x))), torch.view_as_real(a._conj_physical(torch.view_as_complex(x)))", (r(3, 2),)
    yield "conv_groups", "torch.nn.functional.conv1d(x, y.repeat(x.size(1), 1, 1), groups=x.size(1), stride=2, padding=1)", (r(2, 4, 9), r(1, 1, 3))
    z = "torch.view_as_complex(x)"
    for name, expressions in {
        "pad": ["torch.nn.functional.pad(z, (1, 2))", "torch.nn.functional.pad(z, (1, 2), mode='reflect')", "torch.nn.functional.pad(z, (1, 2), mode='circular')"],
        "adjoint": ["z.adjoint().resolve_conj()", "z.mH.resolve_conj()", "z @ z.mH"],
        "filled": ["z.masked_fill(y > 0, 2.0)", "z.masked_fill(y > 0, 1j)", "a.fill(z, 1.5)"],
        "like": ["torch.zeros_like(z) + z", "torch.ones_like(z) * z", "z.new_full((2, 2), 3.0)", "torch.full_like(z, 2.0)"],
        "functions": ["z.log()", "z.sqrt()", "(z * (y > 0)).sgn()", "z.cos()", "z.sin()", "z ** 3", "z ** 0.5", "2 - z"],
        "places": ["z.index_add(0, torch.tensor([0, 0]), z[:2])", "z.scatter(1, torch.tensor([[0, 1], [1, 2]]), z[:2, :2] * 2)", "z.index_put((torch.tensor([0, 2]),), z[1:] * 2)"],
    }.items():
        parts = [re.sub(r"\bz\b", z, e) for e in expressions]
        yield "complex_" + name, ", ".join(f"torch.view_as_real({e})" for e in parts), (r(3, 4, 2), r(3, 4))
    w = "torch.view_as_complex(y)"
    for name, parts in {
        "hyperbolic": [f"torch.{n}({z})" for n in ("sinh", "cosh", "tan", "tanh")],
        "inverse": [f"torch.{n}({z} * 2)" for n in ("asin", "acos", "atan", "asinh", "acosh", "atanh")],
        "logarithms": [f"torch.log1p({z})", f"torch.log2({z})", f"torch.log10({z})", f"torch.expm1({z})", f"torch.exp2({z})", f"torch.logaddexp({z}, {w} * 9)", f"torch.logsumexp({z}, [0, 1])"],
        "activations": [f"torch.sigmoid({z})", f"torch.nn.functional.silu({z})", f"torch.rsqrt({z})", f"torch.sinc({z})"],
        "exponents": [f"{z} ** {w}", f"{z} ** -2", f"{z} ** -0.5", f"{z} ** 0", f"({z} * 0) ** 2.5", f"{z} ** (1 + 2j)", f"torch.float_power({z}, 2)", f"torch.ldexp({z}, torch.tensor(3))"],
        "products": [f"torch.prod({z})", f"torch.prod({z}, 1, keepdim=True)", f"torch.cumprod({z}, 0)", f"torch.kron({z}, {w})", f"torch.linalg.multi_dot([{z}, {w}.mT, {z}])", f"torch.einsum('ij,kj,ki->ij', {z}, {w}, {z}[:, :3])", f"torch.vdot({z}[0], {w}[0])", f"torch.linalg.vecdot({z}, {w})"],
        "sums_of_products": [f"torch.addmm({z}[:, :3], {z}, {w}.mT, beta=0.5, alpha=2)", f"torch.addmv({z}[:, 0], {z}, {w}[0])", f"torch.addr({z}, {z}[:, 0], {w}[0], beta=0)", f"torch.baddbmm({z}[None, :, :3], {z}[None], {w}.mT[None])", f"torch.addcmul({z}, {z}, {w}, value=0.5)", f"torch.addcdiv({z}, {z}, {w})", f"torch.lerp({z}, {w}, 0.25)", f"torch.nn.functional.linear({z}, {w}, {w}[:, 0])"],
        "convolutions": [f"torch.nn.functional.conv1d({z}, {w}[:, None, :2].expand(3, 3, 2), {w}[:, 0])", f"torch.nn.functional.conv_transpose1d({z}[None], {w}[:, None, :2], {w}[:1, 0], stride=2)"],
        "numbers": [f"torch.full_like({z}, 1 + 2j)", f"torch.nn.functional.pad({z}, (1, 2), value=3)", f"{z}.index_fill(1, torch.tensor([0, 2]), 2.5)", f"{z}.new_full((2, 2), 1 - 1j)", f"torch.nan_to_num({z} / 0)", f"{z}.cumsum(0, dtype=torch.complex128).to(torch.complex64)"],
        "rearranged": [f"torch.meshgrid({z}[0], {w}[0], indexing='ij')[1]", f"torch.block_diag({z}, {w})", f"torch.column_stack([{z}, {w}])", f"torch.diag({z})", f"torch.take({z}, torch.tensor([1, 5]))", f"torch.trapezoid({z}, {w})", f"torch.trapezoid({z}, dx=0.5)", f"torch.cartesian_prod({z}[0], {w}[0])"],
        "matrices": [f"torch.linalg.inv({z}[:, :3])", f"torch.linalg.inv_ex({z}[:, :3])[0]", f"torch.linalg.solve({z}[:, :3], {w})", f"torch.linalg.solve({z}[:, :3], {w}[:, 0])", f"torch.linalg.matrix_power({z}[:, :3], 3)", f"torch.linalg.matrix_power({z}[:, :3], -1)", f"torch.linalg.solve_triangular({z}[:, :3], {w}, upper=True)", f"torch.linalg.solve_triangular({z}[:, :3], {w}, upper=False, unitriangular=True)", f"torch.matrix_exp({z}[:, :3])", f"torch.linalg.vander({z})"],
    }.items():
        yield "complex_" + name, ", ".join(f"torch.view_as_real({e})" for e in parts), (r(3, 4, 2), r(3, 4, 2))
    yield "complex_to_real", ", ".join([f"torch.var({z})", f"torch.std({z}, 1, keepdim=True)", f"torch.var_mean({z}, 0)[0]", f"torch.isclose({z}, {w})", f"torch.isreal({z})", f"torch.any({z})", f"torch.all({z}, 1)", f"torch.count_nonzero({z}, 0)", f"torch.logical_and({z}, {w})", f"torch.nonzero({z})",
                                         f"torch.dist({z}, {w})", f"torch.pairwise_distance({z}, {w})", f"torch.nn.functional.l1_loss({z}, {w})", f"x[0, 0, 0].expand_as({z})", f"torch.linalg.svdvals({z})", f"torch.linalg.eigvalsh({z}[:, :3])", f"torch.linalg.norm({z}, 'nuc')", f"torch.linalg.norm({z}, 2)", f"torch.linalg.matrix_norm({z}, -2)",
                                         f"torch.softmax({z}, 1, dtype=torch.float32)", f"a.nuclear_norm({z})", "a.nuclear_norm(x[0])"]), (r(3, 4, 2), r(3, 4, 2))
    yield "complex_stft", "torch.view_as_real(torch.stft(torch.view_as_complex(x), 8, 4, window=torch.hann_window(8), return_complex=True)), torch.view_as_real(torch.stft(torch.view_as_complex(x)[0], 8, center=False, onesided=False, return_complex=True))", (r(2, 24, 2),)
    yield "complex_norms", f"torch.linalg.vector_norm({z}, dim=1), torch.linalg.norm({z}), {z}.norm(p=1, dim=0), torch.isnan({z} / 0), torch.isfinite({z}), torch.isinf({z}), torch.zeros_like({z}, dtype=torch.float32)", (r(3, 4, 2),)
    for name in "arccos arcsin arctanh special_erfinv special_logit".split():
        yield name, f"a.{name}(x)", (UNIT * 0.9 if name != "special_logit" else UNIT.abs() * 0.9 + 0.05,)
    for name in "arccosh special_log1p special_gammaln special_digamma special_psi".split():
        yield name, f"a.{name}(x)", (MORE,)
    yield "special_multigammaln", "a.special_multigammaln(x, 2)", (MORE + 1,)
    for name in "arctan2 greater greater_equal less less_equal multiply not_equal".split():
        yield name, f"a.{name}(x, y)", (X, Y)
    yield "special_xlogy", "a.special_xlogy(x, y)", (X, MORE)
    for name in ("special_gammainc", "special_gammaincc"):
        yield name, f"a.{name}(x, y)", (MORE, MORE.flip(1))
    yield "clip", "a.clip(x, -1.0, 1.0)", (X,)
    for name in "concat concatenate row_stack _stack".split():
        yield name, f"a.{name}([x, y])", (X, Y)
    yield "ger", "a.ger(x[0], y[1])", (X, Y)
    yield "moveaxis", "a.moveaxis(x, 0, -1)", (IMAGE,)
    yield "moveaxis_list", "a.moveaxis(x, [0, 1], [2, 0])", (IMAGE,)
    yield "swapaxes", "a.swapaxes(x, 0, 1), a.swapdims(x, 1, 0)", (X,)
    yield "chain_matmul", "a.chain_matmul([x, y.t(), x])", (X, Y)
    yield "linalg_matmul", "a.linalg_matmul(x, y.t())", (X, Y)
    yield "matrix_power", "a.matrix_power(x, 3), a.matrix_power(x, 0), a.matrix_power(x, -2)", (REGULAR,)
    yield "vander", "a.vander(x[0]), a.vander(x[1], 4, True)", (X,)
    yield "frobenius_norm", "a.frobenius_norm(x, [1], True), a.frobenius_norm(x, [0, 1])", (X,)
    yield "norm_except_dim", "a.norm_except_dim(x, 2, 0), a.norm_except_dim(x, 2, 1)", (IMAGE,)
    yield "special_softmax", "a.special_softmax(x, 1), a.special_log_softmax(x, 0), a.special_logsumexp(x, [1])", (X,)
    yield "_softmax", "a._softmax(x, 1, False), a._log_softmax(x, -1, False)", (X,)
    yield "_masked_softmax", "a._masked_softmax(x, y, 1, 2)", (X, MASK)
    yield "allclose", "a.allclose(x, y), a.equal(x, x), a.is_same_size(x, y), a.allclose(x, x + 1e-7)", (X, Y)
    yield "equal_differs", "a.equal(x, y), a.equal(x[:1], x)", (X, Y)
    yield "flatten_dense_tensors", "a.flatten_dense_tensors([x, y])", (X, Y)
    yield "native_channel_shuffle", "a.native_channel_shuffle(x, 2)", (r(1, 4, 2, 3),)
    yield "_dim_arange", "a._dim_arange(x, 1)", (X,)
    yield "windows", "a.bartlett_window(7) + x, a.blackman_window(7) + x, a.hamming_window(7) + x, a.hann_window(7) + x, a.kaiser_window(7) + x", (r(7),)
    yield "windows_whole", "a.bartlett_window(6, False) + x, a.blackman_window(6, False) + x, a.hamming_window(6, False) + x, a.hann_window(6, False) + x, a.kaiser_window(6, False) + x", (r(6),)
    yield "windows_of", "a.hamming_window(5, True, 0.4, 0.6) + x, a.kaiser_window(5, True, 8.0) + x", (r(5),)
    yield "frequencies", "a.fft_fftfreq(6, 0.5) + x, a.fft_rfftfreq(10) + x", (r(6),)
    yield "indices", "a.tril_indices(3, 4, 1) + x, a.triu_indices(3, 4, -1) + x[:, :1]", (torch.zeros(2, 9, dtype=torch.int64),)
    yield "range", "a.range(1, 5, 1.5) + x", (r(3),)
    # kinds of tensors
    yield "kinds", "a.is_complex(x), a.is_conj(x), a.is_neg(x), a.is_signed(x), a.is_distributed(x), a.element_size(x), a.is_inference(x), a.is_pinned(x), a.stride(x, 0)", (X,)
    yield "is_nonzero", "a.is_nonzero(x[0, 0]), x.is_nonzero()", (X[:1, :1],)
    yield "_local_scalar_dense", "a._local_scalar_dense(x[0, 1]) + x", (X,), "program"
    # views and copies
    yield "_reshape_alias", "a._reshape_alias(x, [3, 2], [2, 1]), a._reshape_copy(x, [6]), a._unsafe_view(x, [3, 2])", (X,)
    yield "_reshape_from_tensor", "a._reshape_from_tensor(x, torch.tensor([3, 2]))", (X,)
    yield "select_copy", "a.select_copy(x, 1, 2), a.slice_copy(x, 1, 0, 3, 2)", (X,)
    yield "select_backward", "a.select_backward(x, [2, 4], 1, 1), a.slice_backward(y, [2, 7], 1, 1, 6, 2)", (r(2), r(2, 3))
    yield "split_copy", "a.split_copy(x, 2, 1)", (X,)
    yield "unsafe_split_with_sizes", "a.unsafe_split_with_sizes(x, [1, 2], 1)", (X,)
    yield "_to_copy", "a._to_copy(x, dtype=torch.float64), a._to_copy(x)", (X,)
    yield "view_as_real_copy", "a.view_as_real_copy(a.view_as_complex_copy(x) * 2)", (r(3, 2),)
    yield "empty_like_forms", "a.empty_permuted(x.shape, [1, 0]).zero_() + x, a.empty_strided([2, 3], [3, 1]).zero_() + x, a.new_empty(x, [2, 3]).fill_(2) + x", (X,)
    yield "_unsafe_index", "a._unsafe_index(x, [y]), a._unsafe_index_put(x, [y], x[:2] * 2)", (r(4, 3), ints(2, 0))
    yield "_index_put_impl", "a._index_put_impl(x, [y], x[:2] * 2, True), a._index_put_impl(x, [y], x[:2])", (r(4, 3), ints(2, 2))
    # products
    yield "_int_mm", "a._int_mm(x, y)", (torch.randint(-9, 9, (20, 8), dtype=torch.int8), torch.randint(-9, 9, (8, 8), dtype=torch.int8))
    yield "_addmm_activation", "a._addmm_activation(x[0], x, y.t() @ y), a._addmm_activation(x[0], x, y.t() @ y, beta=0.5, alpha=2, use_gelu=True)", (X, Y)
    yield "_add_relu", "a._add_relu(x, y), a._add_relu(x, y, alpha=2)", (X, Y)
    yield "_trilinear", "a._trilinear(x, y, z, [1, 3], [0], [1, 2], [2, 3])", (r(2, 3), r(4, 3, 5), r(2, 5))
    yield "mkldnn_linear", "a.mkldnn_linear(x.to_mkldnn(), y, z).to_dense()", (X, Y, r(2))
    yield "_linalg_det", "a._linalg_det(x)[0], a._linalg_slogdet(x)[:2], a._linalg_solve_ex(x, x[0])[0]", (REGULAR,)
    yield "_linalg_eigh", "a._linalg_eigh(x)[0], a._linalg_svd(y)[1]", (SYMMETRIC, REGULAR)
    yield "_euclidean_dist", "a._euclidean_dist(x, y), a._cdist_forward(x, y, 2.0, 2), a._cdist_forward(x, y, 1.0, 0)", (r(3, 4), r(2, 4))
    yield "_pdist_forward", "a._pdist_forward(x, 2.0), a._pdist_forward(x, 1.0)", (r(4, 3),)
    yield "orgqr", "a.orgqr(x, y[0])", (r(3, 3), r(1, 3))
    # Fourier transforms
    yield "_fft_r2c", "torch.view_as_real(a._fft_r2c(x, [1], 0, True)), torch.view_as_real(a._fft_r2c(x, [1], 1, False))", (r(2, 8),)
    yield "_fft_c2r", "a._fft_c2r(torch.view_as_complex(x), [0], 2, 8)", (r(5, 2),)
    yield "_fft_c2c", "torch.view_as_real(a._fft_c2c(torch.view_as_complex(x), [0], 0, True)), torch.view_as_real(a._fft_c2c(torch.view_as_complex(x), [0], 2, False))", (r(6, 2),)
    yield "istft_twosided", "torch.istft(torch.view_as_complex(x), 10, return_complex=False, onesided=False), torch.istft(torch.view_as_complex(x), 10, hop_length=5)", (r(10, 4, 2),)
    # padding, pooling, resizing
    for n, x in ((1, r(1, 2, 5)), (2, IMAGE), (3, VOLUME)):
        pad = [1, 2, 0, 1, 2, 1][: 2 * n]
        yield f"reflection_pad{n}d", f"a.reflection_pad{n}d(x, {pad}), a.replication_pad{n}d(x, {pad})", (x,)
    yield "_pad_circular", "a._pad_circular(x, [1, 2]), a._pad_enum(x, [1, 1], 0, None), a._pad_enum(x, [1, 0], 3, 2.5), a._pad_enum(x, [2, 1], 1, None), a._pad_enum(x, [2, 1], 2, None)", (r(1, 2, 5),)
    yield "pad_sequence", "torch.nn.utils.rnn.pad_sequence([x, y], True, -1.5, 'left')", (X, Y[:1])
    yield "_adaptive_avg_pool2d", "a._adaptive_avg_pool2d(x, [2, 3])", (r(1, 2, 4, 6),)
    yield "_adaptive_avg_pool3d", "a._adaptive_avg_pool3d(x, [2, 2, 1])", (VOLUME,)
    yield "mkldnn_max_pool2d", "torch.mkldnn_max_pool2d(x.to_mkldnn(), [2, 2], [2, 2]).to_dense()", (IMAGE,)
    yield "mkldnn_max_pool3d", "torch.mkldnn_max_pool3d(x.to_mkldnn(), [2, 2, 2], [2, 2, 2]).to_dense()", (VOLUME,)
    yield "_grid_sampler_2d_cpu_fallback", "a._grid_sampler_2d_cpu_fallback(x, y, 0, 0, False), a._grid_sampler_2d_cpu_fallback(x, y, 1, 1, True)", (IMAGE, torch.rand(1, 3, 4, 2) * 2 - 1)
    # convolutions
    yield "convolution", "a.convolution(x, y, z, [1, 2], [1, 0], [1, 1], False, [0, 0], 1), a.convolution(x, y.transpose(0, 1), None, [2, 2], [0, 1], [1, 1], True, [1, 0], 1)", (IMAGE, r(3, 2, 2, 3), r(3))
    yield "thnn_conv2d", "a.thnn_conv2d(x, y, [2, 3], z, [1, 2], [1, 0]), a.slow_conv_dilated2d(x, y, [2, 3], z, [1, 1], [1, 2], [2, 1])", (IMAGE, r(3, 2, 2, 3), r(3))
    yield "_conv_depthwise2d", "a.convolution(x, y, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 2)", (IMAGE, r(2, 1, 2, 3))
    yield "slow_conv_transpose2d", "a.slow_conv_transpose2d(x, y, [2, 3], z, [2, 1], [1, 0], [1, 0])", (IMAGE, r(2, 3, 2, 3), r(3))
    yield "slow_conv3d", "a.slow_conv3d(x, y, [2, 2, 2], z), a.slow_conv_dilated3d(x, y, [2, 2, 2], z, [1, 1, 1], [1, 0, 1], [1, 1, 2])", (VOLUME, r(3, 2, 2, 2, 2), r(3))
    yield "slow_conv_transpose3d", "a.slow_conv_transpose3d(x, y, [2, 2, 2], z, [1, 2, 1])", (VOLUME, r(2, 3, 2, 2, 2), r(3))
    yield "conv_tbc", "a.conv_tbc(x, y, z, 1)", (r(5, 2, 3), r(2, 3, 4), r(4))
    # normalization
    bn = (IMAGE, *CHANNELS)
    yield "_batch_norm_impl_index", "a._batch_norm_impl_index(x, y, z, v, w, False, 0.1, 1e-5, False)[0]", bn
    yield "_native_batch_norm_legit_no_training", "a._native_batch_norm_legit_no_training(x, y, z, v, w, 0.1, 1e-5)[0], a._batch_norm_no_update(x, y, z, v, w, 0.1, 1e-5)[0]", bn
    yield "_fused_rms_norm", "a._fused_rms_norm(x, [3], y[0], 1e-6)[0], a._fused_rms_norm(x, [2, 3], None, None)[0]", (X, Y)
    yield "_weight_norm_interface", "a._weight_norm_interface(x, y, 0)[0]", (IMAGE[0], r(2, 1, 1))
    yield "_prelu_kernel", "a._prelu_kernel(x, y)", (X, Y[:1])
    yield "rrelu_with_noise", "a.rrelu_with_noise(x, torch.zeros(2, 3))", (X,)
    yield "native_dropout", "a.native_dropout(x, 0.5, False)[0]", (X,)
    yield "rnn_relu_cell", "a.rnn_relu_cell(x, y, z, v, w, w)", (r(2, 3), r(2, 4), r(4, 3), r(4, 4), r(4))
    yield "lstm_projected_packed", "torch.lstm(x, y, [x.new_ones(2, 3, 3), x.new_ones(2, 3, 5)], [z, v, w, -z, v * 0.5, w], False, 1, 0.0, False, True)", (r(7, 4), ints(3, 3, 1), r(20, 4), r(20, 3), r(3, 5))
    # torch.vmap, which torch.export leaves open
    yield "vmap", "torch.vmap(lambda a, b: ((a * b).sum() + a @ b, a.view(a.shape[0], 1), torch.cat([a, b]), a.max(0)[0], torch.softmax(a, 0)), in_dims=(1, None))(x, y)", (r(4, 5), r(4)), "program"
    yield "vmap_index", "torch.vmap(lambda a, b: (a[b.unsqueeze(0)], z[b], torch.gather(a, 1, b.reshape(1, 1))))(x, y)", (r(2, 4, 5), ints(0, 2), r(3, 4)), "program"
    yield "vmap_made", "torch.vmap(lambda i: (i.new_ones(()), i.new_zeros((2,)) + i[:2], i.new_full((1, 2), 1.5)))(x)", (r(2, 4),), "program"
    yield "vmap_nested", "torch.vmap(lambda i: torch.vmap(lambda j: i >= j)(x))(x)", (ints(0, 1, 2, 3),), "program"
    f = "torch.nn.functional"
    yield "vmap_conv", f"torch.vmap(lambda a: ({f}.conv2d(a, y, stride=2), {f}.max_pool2d(a, 2), {f}.group_norm(a, 3), {f}.batch_norm(a, z, z * z)))(x), torch.vmap(lambda a: {f}.conv2d(a, y))(x[:, 0])", (r(2, 2, 3, 6, 6), r(4, 3, 3, 3), r(3)), "program"
    yield "vmap_ensemble", f"torch.vmap(lambda w, b, g: {f}.layer_norm({f}.batch_norm({f}.conv2d(x, w, b, groups=2), b, g * g, g, b), (4, 4), g.mean() * w[0, 0, 0, 0] + x[0, 0, :4, :4], None))(y, z, v)", (r(2, 4, 6, 6), r(3, 4, 2, 3, 3), r(3, 4), r(3, 4)), "program"
    yield "vmap_products", "torch.vmap(lambda a, b: (torch.addmm(z, a, b, beta=0.5, alpha=2), torch.einsum('ij,jk->ki', a, b), a.masked_fill(a > 0, 2.0), torch.triu(a)))(x, y)", (r(3, 2, 4), r(3, 4, 5), r(5)), "program"
    yield "vmap_attention", f"torch.vmap(lambda a, b: {f}.scaled_dot_product_attention(a, b, b, attn_mask=z))(x, y), torch.vmap(lambda a: torch.cdist(a, y[0, 0]))(x[:, 0])", (r(2, 3, 4, 8), r(2, 3, 5, 8), r(4, 5)), "program"
    yield "vmap_tables", f"torch.vmap(lambda w, i: ({f}.embedding(i, w), {f}.embedding(i, z), {f}.one_hot(i, 4)))(x, y)", (r(2, 4, 3), ints(0, 3, 1, 2).reshape(2, 2), r(4, 2)), "program"
    # torch.associative_scan, which stays an operator where it is told that the function works on elements
    scan = "torch._higher_order_ops.associative_scan.associative_scan"
    yield "associative_scan", f"{scan}(lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1]), (x, y), 1, reverse=True, combine_mode='pointwise')", (X, Y), "program"
    yield "associative_scan_one", f"{scan}(torch.maximum, x, 0, combine_mode='pointwise')", (X[:1],), "program"
    # losses
    logits = torch.log_softmax(r(4, 3), 1)
    yield "nll_loss", "a.nll_loss(x, y), a.nll_loss(x, y, z, 2), a.nll_loss(x, y, z, 0), a.nll_loss(x, y, None, 1, 1), a.nll_loss_forward(x, y, z, 1, -100), a.nll_loss_forward(x, y, None, 0, -100)[0]", (logits, ints(1, 0, 2, 1), torch.tensor([0.5, 1.0, 2.0]))
    yield "nll_loss2d", "a.nll_loss2d(x, y), a.nll_loss2d_forward(x, y, None, 2, -100)", (torch.log_softmax(r(2, 3, 2, 2), 1), torch.randint(0, 3, (2, 2, 2)))
    yield "multilabel_margin_loss_forward", "a.multilabel_margin_loss_forward(x, y, 1)", (r(2, 4), torch.tensor([[3, 0, -1, 1], [1, -1, 0, 2]]))
    yield "_ctc_loss", "a._ctc_loss(x, y, [5, 5], [2, 3])[0]", (torch.log_softmax(r(5, 2, 4), 2), torch.tensor([[1, 2, 0], [3, 1, 2]]))
    yield "hardtanh_backward", "a.hardtanh_backward(x, y, -1.0, 1.0), a.silu_backward(x, y), a._log_softmax_backward_data(x, y, 1, torch.float32)", (X, Y)
    # embedding, attention, sets
    yield "_embedding_bag", "a._embedding_bag(x, y, z)[0], a._embedding_bag_forward_only(x, y, z, False, 1)[0]", (r(5, 3), ints(1, 2, 4, 0), ints(0, 2))
    attention = (r(1, 2, 4, 8), r(1, 2, 4, 8), r(1, 2, 4, 8))
    yield "_scaled_dot_product_attention_math", "a._scaled_dot_product_attention_math(x, y, z)[0], a._scaled_dot_product_attention_math(x, y, z, None, 0.0, True, scale=0.3)[0]", attention
    yield "_scaled_dot_product_fused_attention_overrideable", "a._scaled_dot_product_flash_attention_for_cpu(x, y, z, 0.0, True)[0]", attention
    yield "_unique", "a._unique(x, True, True)", (ints(3, 1, 3, 2, 1),)
    yield "unique_dim_consecutive", "a.unique_dim_consecutive(x, 0, True, True)", (torch.tensor([[1, 2], [1, 2], [0, 3], [1, 2]]),)
    yield "_histogramdd_from_bin_tensors", "a._histogramdd_from_bin_tensors(x, [y, y])", (torch.rand(6, 2) * 2 - 1, torch.tensor([-1.0, -0.2, 0.4, 1.0]))
    # sizes of images
    yield "_upsample_nearest_exact1d", "a._upsample_nearest_exact1d(x, [7])", (r(1, 2, 5),)
    yield "_upsample_nearest_exact3d", "a._upsample_nearest_exact3d(x, [7, 3, 5])", (VOLUME,)
    yield "_upsample_bicubic2d_aa", "a._upsample_bicubic2d_aa(x, [3, 4], False), a._upsample_bicubic2d_aa(x, [8, 7], True)", (IMAGE,)
    if hasattr(torch.ops.aten, "_upsample_lanczos2d_aa"):
        yield "_upsample_lanczos2d_aa", "a._upsample_lanczos2d_aa(x, [3, 4], False)", (IMAGE,)
    # other functions
    yield "matrix_exp", "a.matrix_exp(x)", (REGULAR,)
    yield "special_polygamma", "a.special_polygamma(1, x), a.polygamma(2, x)", (MORE,)
    yield "empty_like", "a.empty_like(x).fill_(2.5) + x", (X,)
    yield "true_divide", "a.true_divide(x, y), a.true_divide(x.long(), 2)", (X, Y)
    yield "as_tensor", "torch.as_tensor(x.size(0)) + x, torch.as_tensor(2.5) * x", (X,)
    yield "conv_transpose3d", "a.conv_transpose3d(x, y, z, [1, 2, 1])", (VOLUME, r(2, 3, 2, 2, 2), r(3))
    # quantization
    yield "fake_quantize", "a.fake_quantize_per_tensor_affine(x, 0.1, 3, -128, 127), a.fake_quantize_per_tensor_affine_cachemask(x, 0.02, 0, 0, 255), a.fake_quantize_per_tensor_affine_cachemask_backward(x, x > 0)", (X,)
    yield "fake_quantize_per_channel", "a.fake_quantize_per_channel_affine(x, y, z, 1, 0, 255), a.fake_quantize_per_channel_affine_cachemask(x, y, z, 1, 0, 15)", (X, torch.tensor([0.1, 0.2, 0.05]), torch.tensor([0, 3, 7], dtype=torch.int32))
    q = "a.quantize_per_tensor({}, 0.05, 10, torch.quint8)"
    qx, qy = q.format("x"), q.format("y")
    yield "quantize_per_tensor", f"a.dequantize({qx}), a.int_repr({qx}), a.dequantize(a.quantize_per_tensor(x, 0.1, 0, torch.qint8))", (X,)
    yield "quantize_per_channel", "a.dequantize(a.quantize_per_channel(x, torch.tensor([0.1, 0.2, 0.05]), torch.tensor([0, 3, -7]), 1, torch.qint8))", (X,)
    yield "quantize_per_tensor_dynamic", "a.dequantize(a.quantize_per_tensor_dynamic(x, torch.quint8, False)), a.dequantize(a.quantize_per_tensor_dynamic(x, torch.qint8, False))", (X,)
    yield "q_scale", f"a.dequantize({qx}) + {qx}.q_scale() * {qx}.q_zero_point()", (X,)
    d = "torch.dequantize(torch.ops.quantized.{})"
    for name in "add add_relu mul mul_relu".split():
        yield "quantized_" + name, d.format(f"{name}({qx}, {qy}, 0.07, 60)"), (X, Y)
    yield "quantized_matmul", d.format(f"matmul({qx}, a.quantize_per_tensor(y.t(), 0.05, 10, torch.quint8), 0.09, 80)"), (X, Y)
    for name in "add_scalar mul_scalar add_scalar_relu mul_scalar_relu".split():
        yield "quantized_" + name, d.format(f"{name}({qx}, 1.5)") + ", " + d.format(f"{name}({qx}, -0.5)"), (X,)
    yield "quantized_cat", d.format(f"cat([{qx}, {qy}], 1, 0.06, 20)") + ", " + d.format(f"cat_relu([{qx}, {qy}], 0, 0.06, 20)"), (X, Y)
    for call in ["celu({}, 0.05, 40)", "elu({}, 0.05, 40)", "elu({}, 0.05, 40, 0.5)", "hardswish({}, 0.03, 5)", "leaky_relu({}, 0.1, False, 0.05, 30)", "relu6({})", "sigmoid({}, 0.00390625, 0)", "softmax({}, 1, 0.00390625, 0)",
                 "clamp({}, -0.31, 0.72)", "threshold({}, 0.33, 0.1)", "dropout({}, 0.05, 10)", "layer_norm({}, [3], None, None, 1e-5, 0.05, 60)"]:
        name = re.match(r"\w+", call)[0] + ("_half" if call.endswith("0.5)") else "")
        yield "quantized_" + name, d.format(call.format(qx)), (X,)
    pixels = (torch.arange(60) * 37 % 256).byte().reshape(1, 2, 5, 6)
    yield "resized_bytes", "a.upsample_bilinear2d(x, [7, 4], False), a.upsample_bicubic2d(x, [3, 9], True), a._upsample_bilinear2d_aa(x, [2, 8], False), a._upsample_bicubic2d_aa(x, [3, 4], False)", (pixels,)
    for n, x in ((1, r(1, 2, 5)), (2, IMAGE), (3, VOLUME)):
        for relu in ("", "_relu"):
            yield f"quantized_batch_norm{n}d{relu}", d.format(f"batch_norm{n}d{relu}({qx}, y, z, v, w, 1e-5, 0.05, 60)"), (x, *CHANNELS)
    yield "quantized_batch_norm", d.format(f"batch_norm({qx}, y, z, v, w, 1e-5, 0.05, 60)") + ", " + d.format(f"batch_norm_relu({qx}, y, z, v, w, 1e-5, 0.05, 60)"), bn
    yield "quantized_group_norm", d.format(f"group_norm({qx}, 1, y, z, 1e-5, 0.05, 60)") + ", " + d.format(f"instance_norm({qx}, y, z, 1e-5, 0.05, 60)"), bn[:3]
    for name, call in (("max_pool", "torch.ops.quantized.max_pool2d({}, [2, 2], [2, 2], [0, 0], [1, 1], False)"), ("avg_pool", "a.avg_pool2d({}, [2, 2])"),
                       ("avg_pool_padded", "a.avg_pool2d({}, [2, 4], [1, 2], [1, 1])"), ("adaptive_avg_pool", "a.adaptive_avg_pool2d({}, [5, 1])"),
                       ("bilinear", "a.upsample_bilinear2d({}, [10, 12], False)")):  # sums of integers, rounded once, with ties
        yield "quantized_" + name, f"torch.dequantize({call.format(qx)})", (IMAGE,)
    yield "quantized_max_pool1d", d.format(f"max_pool1d({qx}, [2], [2], [0], [1], False)"), (r(1, 2, 5),)
    yield "is_quantized", f"torch.dequantize({qx}) + 1 if {qx}.is_quantized else x", (X,)
    yield "either", Either(), (X,)
    yield "encoder_decoder", EncoderDecoder(), (r(2, 5, 4), r(2, 4, 4), torch.tensor([[0, 0, 0, 0, 1], [0, 0, 0, 1, 1]]).bool(), torch.tensor(3))
    yield from quantized_recurrent()
    yield from quantized_layers()
    for name, lines, signature, inputs in STATEMENTS:
        yield name, casefile.module_of(signature, lines), inputs
    yield "nested_encoder", NestedEncoder().eval(), (r(3, 4, 4), torch.arange(4) >= torch.tensor([[4], [2], [3]]))
    s = "torch.ops.quantized_decomposed."
    yield "decomposed_per_tensor", f"{s}dequantize_per_tensor({s}quantize_per_tensor(x, 0.05, 10, 0, 255, torch.uint8), 0.05, 10, 0, 255, torch.uint8)", (X,), "program"
    yield "decomposed_per_channel", f"{s}dequantize_per_channel({s}quantize_per_channel(x, y, z, 1, -128, 127, torch.int8), y, z, 1, -128, 127, torch.int8)", (X, torch.tensor([0.1, 0.2, 0.05]), ints(0, 3, -7)), "program"
    yield "decomposed_choose_qparams", f"{s}choose_qparams.tensor(x, 0, 255, 1e-6, torch.uint8)", (X,), "program"
    int8 = "torch.int8"
    yield "decomposed_choose_qparams_symmetric", f"{s}choose_qparams_symmetric.tensor(x, -127, 127, 1e-6, {int8}), {s}choose_qparams_symmetric.tensor(x, 0, 255, 1e-6, torch.uint8)", (X,), "program"
    yield "decomposed_per_token", f"{s}choose_qparams_per_token(x, {int8}), {s}dequantize_per_token({s}quantize_per_token(x, y, z, -128, 127, {int8}), y, z, -128, 127, {int8}, torch.float32)", (X, torch.tensor([[0.02], [0.03]]), torch.tensor([[0.0], [5.0]])), "program"
    yield "decomposed_per_token_asymmetric", f"{s}choose_qparams_per_token_asymmetric(x, {int8}), {s}quantize_per_token(x, *{s}choose_qparams_per_token_asymmetric(x, {int8}), -128, 127, {int8})", (X,), "program"
    yield "decomposed_per_token_asymmetric_impl", f"{s}_choose_qparams_per_token_asymmetric_impl(x, {int8})", (X,)
    groups = torch.tensor([[0.1, 0.2], [0.05, 0.3]]), torch.tensor([[0, 1], [-2, 3]])
    yield "decomposed_per_channel_group", f"{s}dequantize_per_channel_group({s}quantize_per_channel_group(x, y, z, -8, 7, {int8}, 2), y, z, -8, 7, {int8}, 2, torch.float32)", (torch.arange(8.0).reshape(2, 4) / 7 - 0.5, *groups), "program"
    yield "decomposed_fake_quant_per_channel", f"{s}fake_quant_per_channel(x, y, z, 1, -8, 7)", (X, torch.tensor([0.1, 0.2, 0.05]), ints(0, 3, -7))
    yield "decomposed_convert_element_type", f"{s}convert_element_type.no_fuse(x, torch.float64)", (X,), "program"
    table = torch.arange(40).reshape(5, 8) * 6 % 251
    at = torch.tensor([[1, 4], [0, 1]])
    for name, w in (("byte", (table - 128).to(torch.int8)), ("4bit", table.byte()), ("2bit", table.byte())):
        yield "decomposed_embedding_" + name, PackedTable(name, w), (at,), "program"
    yield "lfilter", Filter(), (r(2, 2, 12),)
    # what decompositions of torch.export end in
    p = "torch.ops.prims."
    for name in "abs ceil clone cos cosh erf exp floor neg round sin sinh sqrt:+ tan tanh atan asinh acos:1 asin:1 atanh:1 acosh:+ log:+".split():
        name, _, kind = name.partition(":")
        yield "prims_" + name, f"{p}{name}(x)", ({"": X, "1": UNIT * 0.9, "+": MORE}[kind],), "program"
    for name in "add sub mul div eq ne lt le gt ge".split():
        yield "prims_" + name, f"{p}{name}(x, y)", (X, Y), "program"
    yield "prims_pow", f"{p}pow(x, y), {p}remainder(y, x)", (MORE, Y), "program"
    yield "prims_where", f"{p}where(y, x, x * 2)", (X, MASK), "program"
    yield "prims_shapes", f"{p}broadcast_in_dim(x, [2, 4, 3], [0, 2]), {p}reshape(x, [3, 2]), {p}squeeze(x.unsqueeze(1), [1]), {p}transpose(x, [1, 0]), {p}view_of(x) + 1", (X,), "program"
    yield "prims_axes", f"{p}collapse(x.reshape(1, 2, 3), 0, 1), {p}collapse_view(x.reshape(1, 2, 3), 1, 2), {p}split_dim(x.reshape(6), 0, 2), {p}rev(x, [0, 1]), {p}cat([x, x], 1)", (X,), "program"
    yield "prims_extrema", f"{p}prod(x, [1]), {p}amax(x, [0]), {p}amin(x, [1]), {p}minimum(x, -x), {p}fmod(x, x * 0.3), {p}hypot(x, x)", (X,), "program"
    yield "prims_names", f"{p}zeta(x, x + 1), {p}erf_inv(x / 9), {p}bessel_j0(x), {p}igamma(x, x), {p}shift_left(x.long(), x.long())", (MORE,), "program"
    yield "prims_types", f"{p}convert_element_type(x, torch.float64)", (X,), "program"
    yield "prims_sums", f"{p}sum(x, [1]), {p}sum(x, [0, 1]), {p}var(x, [1], 1.0), {p}var(x, [0], 0.0)", (X,), "program"
    yield "symbols", "a.sym_size(x, 0) * x, a.sym_numel(x) + x, a.sym_stride(x, 0) + x, a.sym_storage_offset(x) + x", (X,)
    # out= of what makes tensors, of the size that it needs and of another one
    none = "torch.zeros([0])"
    yield "out_made", f"torch.arange(5, out=torch.zeros([5], dtype=torch.int64)), torch.arange(0.5, n, 0.5, out={none}), torch.full([2, 3], 1.5, out={none}), torch.eye(3, 2, out={none}), torch.linspace(0.0, n, 5, out={none}), torch.ones([x.size(0), 2], out={none})", (X, 2.5)
    yield "arange_truncated", "torch.arange(n, 0.5 * k, -1.5, dtype=torch.int64), torch.arange(k, -2, -1.0, dtype=torch.int64), torch.arange(0, n, 1, dtype=torch.int32), x", (X, 4.75, 3)
    # Python's mathematics in scripted code
    yield "math", "math.degrees(n) + x, math.radians(n) + x, math.fabs(-n) + x, math.gamma(n) + x, math.factorial(k) + x, math.modf(n)[0] + x, math.remainder(n, 2.0) + x", (X, 2.75, 4)
    # of an int and a float PyTorch divides in float32
    yield "divmod", "x + divmod(n, 0.4)[0] + divmod(n, -0.4)[1], x + divmod(k, n)[0] + divmod(k, n)[1], x + divmod(n, k)[0] + divmod(n, -k)[1], x + divmod(-k, 3)[0] + divmod(-k, 3)[1]", (X, 2.75, 4)
    if torchvision:
        v = "torch.ops.torchvision."
        yield "roi_align_scaled", v + "roi_align(x, y, float(z), 2, 3, 2, False)", (IMAGE, torch.tensor([[0.0, 1.0, 2.0, 8.0, 9.0]]), torch.tensor(0.5))
        boxes = torch.tensor([[0, 0.0, 0.0, 4.0, 3.0], [0, 1.0, 1.0, 5.0, 4.0]])
        yield "roi_pool", f"{v}roi_pool(x, y, 1.0, 2, 2)[0], {v}ps_roi_align(x.repeat(1, 2, 1, 1), y, 1.0, 2, 2, 2)[0]", (IMAGE, boxes)
        yield "deform_conv2d", f"{v}deform_conv2d(x, y, z, w, v, 1, 1, 0, 0, 1, 1, 1, 1, True)", (IMAGE, r(3, 2, 2, 2), r(1, 8, 4, 5) * 0.5, r(3), torch.rand(1, 4, 4, 5))
    experts = (r(7, 8), r(3, 8, 4), torch.tensor([2, 2, 7], dtype=torch.int32), r(3, 4, 8))
    yield "_grouped_mm", "a._grouped_mm(x, y, z), a._grouped_mm(x, v.transpose(1, 2), z), a._grouped_mm(v, x.t(), z), a._grouped_mm(x.t(), x, z), a._grouped_mm(v, y)", experts
    if transformers:
        yield "grouped_mm_fallback", "torch.ops.transformers.grouped_mm_fallback(x, y, z), torch.ops.transformers.grouped_mm_fallback(x, v.transpose(1, 2), z - 1)", experts, "program"
    eight, rows = "x.to(torch.float8_e4m3fn), y.to(torch.float8_e4m3fn)", (r(16, 16), r(16, 16), torch.rand(16, 1), torch.rand(1, 16))
    yield "_scaled_mm", f"a._scaled_mm({eight}, z, v, None, None, torch.float32), a._scaled_mm({eight}, z[0, 0], v[:, :1], y[0].to(torch.bfloat16), None, torch.bfloat16)", rows
    yield "_scaled_mm_v2", f"a._scaled_mm_v2({eight}, [z], [1], [0], [v], [1], [0], None, torch.float32)", rows
    # gradients, behind all others: the random numbers of those stay as they are
    yield "backward_outputs", "a.tanh_backward(x, y), a.sigmoid_backward(x, y), a._softmax_backward_data(x, y, 1, torch.float32)", (X, UNIT)
    yield "backward_activations", "a.threshold_backward(x, y, 0.5), a.gelu_backward(x, y), a.gelu_backward(x, y, approximate='tanh'), a.mish_backward(x, y), a.log_sigmoid_backward(x, y, torch.exp(-torch.abs(y))), a.softplus_backward(x, y, 2.0, 3.0), a.elu_backward(x, 1.5, 0.7, 0.3, False, y), a.elu_backward(x, 1.5, 0.7, 0.3, True, y), a.leaky_relu_backward(x, y, 0.1, False), a.rrelu_with_noise_backward(x, y, x, 0.1, 0.3, False, False), a.rrelu_with_noise_backward(x, y, x, 0.1, 0.3, True, False), a.hardsigmoid_backward(x, 2 * y), a.hardswish_backward(x, 2 * y), a.hardshrink_backward(x, y, 0.5), a.softshrink_backward(x, y, 0.5), a.logit_backward(x, torch.sigmoid(y), 0.3), a.logit_backward(x, y), a._prelu_kernel_backward(x, y, x), a.native_dropout_backward(x, y > 0, 2.0)", (X, Y)
    yield "glu_backward", "a.glu_backward(x, y, 1)", (r(2, 3), r(2, 6))
    yield "backward_losses", "a.mse_loss_backward(n, x, y, 1), a.mse_loss_backward(x, x, y, 0), a.smooth_l1_loss_backward(n, x, y, 1, 1.0), a.huber_loss_backward(n, x, y, 2, 0.5), a.soft_margin_loss_backward(n, x, y, 1), a.binary_cross_entropy_backward(n, torch.sigmoid(x), torch.sigmoid(y), y, 1)".replace("n, ", "x[0, 1], "), (X, Y)
    yield "nll_loss_backward", "a.nll_loss_backward(x[0, 0], x, y, z, 1, 0, z[2]), a.nll_loss_backward(x[:, 0], x, y, None, 0, -100, z[2])", (logits, ints(1, 0, 2, 1), torch.tensor([0.5, 1.0, 2.0]))
    yield "nll_loss2d_backward", "a.nll_loss2d_backward(x[0, 0, 0, 0], x, y, None, 2, 1, x[0, 0, 0, 0])", (torch.log_softmax(r(2, 3, 2, 2), 1), torch.randint(0, 3, (2, 2, 2)))
    yield "backward_layer_norm", "a.native_layer_norm_backward(x, y, [4], z, v, w, w, [True, True, True])", (r(2, 3, 4), r(2, 3, 4), r(2, 3, 1), r(2, 3, 1), r(4))
    yield "backward_batch_norm", "a.native_batch_norm_backward(x, y, z, v, w, v, w, True, 1e-5, [True, True, True]), a.native_batch_norm_backward(x, y, z, v, w, None, None, False, 1e-5, [True, True, True]), a.batch_norm_backward(x, y, z, v, w, v, w, True, 1e-5, [True, True, True], v)", (r(2, 3, 4), r(2, 3, 4), r(3), r(3), torch.rand(3) + 0.5)
    yield "native_group_norm_backward", "a.native_group_norm_backward(x, y, z, v, w, 2, 4, 3, 2, [True, True, True])", (r(2, 4, 3), r(2, 4, 3), r(2, 2), r(2, 2), r(4))
    yield "_weight_norm_interface_backward", "a._weight_norm_interface_backward(x, y, z, v, 0)", (r(3, 4), r(3, 4), r(3, 1), torch.rand(3, 1) + 0.5)
    places = torch.randint(0, 30, (1, 2, 2, 3))
    yield "backward_max_pool", "a.max_pool2d_with_indices_backward(x, y, [2], [2], [0], [1], False, z), a.adaptive_max_pool2d_backward(x, y, z)", (r(1, 2, 2, 3), IMAGE, places)
    yield "backward_max_pool3d", "a.max_pool3d_with_indices_backward(x, y, [2], [2], [0], [1], False, z), a.adaptive_max_pool3d_backward(x, y, z)", (r(1, 2, 2, 2, 2), VOLUME, torch.randint(0, 80, (1, 2, 2, 2, 2)))
    yield "backward_avg_pool", "a.avg_pool2d_backward(x, y, [3], [2], [1], True, False, None), a.avg_pool2d_backward(x, y, [3], [2], [1], True, True, 5), a._adaptive_avg_pool2d_backward(z, y)", (r(1, 2, 3, 4), IMAGE, r(1, 2, 3, 4))
    yield "backward_avg_pool3d", "a.avg_pool3d_backward(x, y, [2], [2], [0], False, True, None), a._adaptive_avg_pool3d_backward(x, y)", (r(1, 2, 2, 2, 2), VOLUME)
    yield "backward_pad1d", "a.reflection_pad1d_backward(x, y, [2, 1]), a.replication_pad1d_backward(x, y, [2, 1])", (r(2, 8), r(2, 5))
    yield "backward_pad2d", "a.reflection_pad2d_backward(x, y, [2, 1, 0, 3]), a.replication_pad2d_backward(x, y, [2, 1, 0, 3])", (r(1, 2, 8, 9), IMAGE)
    yield "backward_pad3d", "a.reflection_pad3d_backward(x, y, [2, 1, 0, 3, 1, 1]), a.replication_pad3d_backward(x, y, [2, 1, 0, 3, 1, 1])", (r(1, 2, 6, 7, 8), VOLUME)
    yield "backward_upsample1d", "a.upsample_nearest1d_backward(x, [7], [1, 2, 5]), a._upsample_nearest_exact1d_backward(x, [7], [1, 2, 5]), a.upsample_linear1d_backward(x, [7], [1, 2, 5], False), a.upsample_linear1d_backward(x, [7], [1, 2, 5], True)", (r(1, 2, 7),)
    yield "backward_upsample2d", "a.upsample_nearest2d_backward(x, [7, 6], [1, 2, 5, 4]), a._upsample_nearest_exact2d_backward(x, [7, 6], [1, 2, 5, 4]), a.upsample_bilinear2d_backward(x, [7, 6], [1, 2, 5, 4], False), a.upsample_bicubic2d_backward(x, [7, 6], [1, 2, 5, 4], True), a._upsample_bilinear2d_aa_backward(x, [7, 6], [1, 2, 9, 4], False), a._upsample_bicubic2d_aa_backward(x, [7, 6], [1, 2, 9, 4], False), a._upsample_lanczos2d_aa_backward(x, [7, 6], [1, 2, 9, 4], False)", (r(1, 2, 7, 6),)
    yield "backward_upsample3d", "a.upsample_nearest3d_backward(x, [3, 4, 5], [1, 2, 2, 3, 3]), a._upsample_nearest_exact3d_backward(x, [3, 4, 5], [1, 2, 2, 3, 3]), a.upsample_trilinear3d_backward(x, [3, 4, 5], [1, 2, 2, 3, 3], False)", (r(1, 2, 3, 4, 5),)
    yield "embedding_dense_backward", "a.embedding_dense_backward(x, y, 5, 2, False), a.embedding_dense_backward(x, y, 5, -1, True)", (r(2, 3, 4), torch.tensor([[1, 2, 1], [0, 4, 1]]))
    yield "backward_windows", "a.diagonal_backward(x, [3, 2, 4], 1, 0, 2), a.unfold_backward(y, [2, 8], 1, 3, 2)", (r(2, 3), r(2, 3, 3))
    yield "_cdist_backward", "a._cdist_backward(z, x, y, 2.0, torch.cdist(x, y)), a._cdist_backward(z, x, y, 1.0, torch.cdist(x, y, 1.0)), a._cdist_backward(z, x, y, 3.0, torch.cdist(x, y, 3.0)), a._cdist_backward(z, x, y, 1.5, torch.cdist(x, y, 1.5))", (r(3, 4), r(2, 4), r(3, 2))
    yield "convolution_backward", "a.convolution_backward(x, y, z, [4], [2, 2], [1, 1], [1, 1], False, [0, 0], 2, [True, True, True])", (r(1, 4, 3, 3), r(1, 4, 5, 6), r(4, 2, 3, 3))
    yield "convolution_backward_transposed", "a.convolution_backward(x, y, z, [4], [2, 2], [1, 1], [1, 1], True, [1, 1], 2, [True, True, True])", (r(1, 4, 6, 8), r(1, 4, 3, 4), r(4, 2, 3, 3))
    yield "attention_backward", "a._scaled_dot_product_flash_attention_for_cpu_backward(v, x, y, z, a._scaled_dot_product_flash_attention_for_cpu(x, y, z, 0.0, True, scale=0.3)[0], a._scaled_dot_product_flash_attention_for_cpu(x, y, z, 0.0, True, scale=0.3)[1], 0.0, True, scale=0.3)", (r(1, 2, 4, 8), r(1, 2, 4, 8), r(1, 2, 4, 8), r(1, 2, 4, 8))


class NestedEncoder(torch.nn.Module):
    """Layers on a nested tensor, where the padding mask hides the ends of sequences."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        layer = torch.nn.TransformerEncoderLayer(4, 2, 6, batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, 2)

    def forward(self, x: torch.Tensor, hidden: torch.Tensor):
        return self.encoder(x, src_key_padding_mask=hidden)


def quantized_recurrent():
    """Dynamically quantized layers and cells, as modules: their weights are objects that no expression makes."""
    sequence, row = r(5, 3, 4), r(3, 4)
    for kind, options, inputs in (("LSTM", {}, sequence), ("LSTM", dict(num_layers=2, bidirectional=True, batch_first=True), sequence), ("GRU", {}, sequence),
                                  ("GRU", dict(bidirectional=True), sequence), ("LSTMCell", {}, row), ("GRUCell", {}, row),
                                  ("RNNCell", {}, row), ("RNNCell", dict(nonlinearity="relu"), row)):
        torch.manual_seed(0)
        holder = torch.nn.Sequential(getattr(torch.nn, kind)(4, 6, **options)).eval()
        m = torch.ao.quantization.quantize_dynamic(holder, {getattr(torch.nn, kind)}, dtype=torch.qint8)
        yield ".".join(["quantized_" + kind.lower()] + [str(v) if not isinstance(v, bool) else k for k, v in options.items()]), m, (inputs,)


def quantized_layers():
    """Other quantized layers and tensors that a model keeps."""
    import torch.ao.nn.intrinsic.quantized as fused
    import torch.ao.nn.quantized as quantized
    import torch.ao.nn.quantized.dynamic as dynamic

    def grid(weight):
        return torch.quantize_per_tensor(weight.detach(), weight.abs().max().item() / 127, 0, torch.qint8)

    for n, x in ((1, r(1, 2, 6)), (2, IMAGE), (3, VOLUME)):
        for kind in (f"Conv{n}d", f"ConvTranspose{n}d"):
            torch.backends.quantized.engine = "fbgemm"  # what oneDNN gives for a transposed one has nothing to do with its operands
            plain, m = getattr(torch.nn, kind)(2, 3, 2), getattr(dynamic, kind)(2, 3, 2)
            m.set_weight_bias(grid(plain.weight), plain.bias.detach())
            yield f"quantized_{kind.lower()}_dynamic", torch.nn.Sequential(m), (x,)
    torch.backends.quantized.engine = "onednn"  # has the fused layers
    for kind, options in (("LinearLeakyReLU", (0.1,)), ("LinearTanh", ())):
        plain, m = torch.nn.Linear(3, 4), getattr(fused, kind)(3, 4, *options)
        m.set_weight_bias(grid(plain.weight), plain.bias.detach())
        m.scale, m.zero_point = 0.0171, 110
        yield "quantized_" + kind.lower(), torch.nn.Sequential(quantized.Quantize(torch.tensor(0.0313), torch.tensor(100), torch.quint8), m, quantized.DeQuantize()), (X,)
    for kind in ("ConvAdd2d", "ConvAddReLU2d"):
        plain, m = torch.nn.Conv2d(2, 2, 3, padding=1), getattr(fused, kind)(2, 2, 3, padding=1)
        m.set_weight_bias(grid(plain.weight), plain.bias.detach())
        m.scale, m.zero_point = 0.0171, 110
        yield "quantized_" + kind.lower(), Summed(m), (IMAGE,)
    torch.backends.quantized.engine = "x86"
    for name, m, inputs in (("embedding", torch.nn.Embedding(7, 4), (ints(3, 0, 6),)), ("embedding_bag", torch.nn.EmbeddingBag(7, 4, mode="sum"), (ints(3, 0, 6, 1), ints(0, 1))),
                            ("embedding_rows", torch.nn.EmbeddingBag(7, 4, mode="mean"), (torch.tensor([[3, 0], [6, 1]]),))):
        m.qconfig = torch.ao.quantization.float_qparams_weight_only_qconfig
        yield "quantized_" + name, getattr(quantized, type(m).__name__).from_float(m), inputs
    yield "quantized_constant", Kept(), (X,)


class EncoderDecoder(torch.nn.Module):
    """Paths within paths: a padding mask may make a nested tensor, and of how many tokens the target is, the data says."""

    def __init__(self):
        super().__init__()
        self.encoder = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(4, 2, 6, batch_first=True), 1)
        self.decoder = torch.nn.TransformerDecoder(torch.nn.TransformerDecoderLayer(4, 2, 6, batch_first=True), 1)

    def forward(self, x: torch.Tensor, y: torch.Tensor, padding: torch.Tensor, n: torch.Tensor):
        y = y[:, :int(n)]
        later = torch.triu(torch.full((y.size(1), y.size(1)), float("-inf")), 1)
        return self.decoder(y, self.encoder(x, src_key_padding_mask=padding), tgt_mask=later, memory_key_padding_mask=padding)


class Either(torch.nn.Module):
    """A method that gives a tensor or a list; which one, the data says."""

    def head(self, x: List[torch.Tensor], all: bool = False) -> Union[torch.Tensor, List[torch.Tensor]]:
        if all:
            return x
        return torch.stack(x).sum(0)

    def forward(self, x: torch.Tensor):
        y = self.head([x, x * 2], bool(x.sum() > 1))
        if isinstance(y, torch.Tensor):
            return y + 1
        else:
            return y[0] - 1


class Summed(torch.nn.Module):
    """A quantized convolution that adds its input."""

    def __init__(self, m):
        super().__init__()
        self.m = m

    def forward(self, x: torch.Tensor):
        q = torch.quantize_per_tensor(x, 0.0313, 100, torch.quint8)
        return self.m(q, q).dequantize()


class Kept(torch.nn.Module):
    """Quantized tensors of the model: with one grid, and with one for each row."""

    def __init__(self):
        super().__init__()
        self.register_buffer("one", torch.quantize_per_tensor(Y, 0.0313, 100, torch.quint8))
        self.register_buffer("rows", torch.quantize_per_channel(Y, torch.tensor([0.1, 0.02]), torch.tensor([0, 3]), 0, torch.qint8))

    def forward(self, x: torch.Tensor):
        q = torch.quantize_per_tensor(x, 0.0171, 110, torch.quint8)
        return torch.ops.quantized.mul(q, self.one, 0.0217, 90).dequantize(), self.rows.dequantize() + x, self.one.int_repr()


def define_tables():
    """Operators that ExecuTorch adds to quantized_decomposed: rows of integers, packed from the upper bits on where there are 4, from the lower ones
    on where there are 2."""
    library = torch.ao.quantization.fx._decomposed.quantized_decomposed_lib
    unpacked = {
        "byte": lambda w: w,
        "4bit": lambda w: torch.stack([w // 16, w % 16], -1).flatten(1).to(torch.int8) - 8,
        "2bit": lambda w: torch.stack([w % 4, w // 4 % 4, w // 16 % 4, w // 64], -1).flatten(1).to(torch.int8) - 2,
    }
    arguments = "Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, int weight_quant_min, int weight_quant_max, Tensor indices"
    for name, unpack in unpacked.items():
        def rows(w, scales, zeros, low, high, at, dtype=None, unpack=unpack):
            w = unpack(w)
            group = w.size(1) // (scales.size(1) if scales.dim() == 2 else 1)
            dequantize = torch.ops.quantized_decomposed.dequantize_per_channel_group
            return dequantize(w, scales, zeros, low, high, w.dtype, group, dtype or scales.dtype)[at]

        library.define(f"embedding_{name}({arguments}) -> Tensor")
        library.define(f"embedding_{name}.dtype({arguments}, *, ScalarType? dtype=None) -> Tensor")
        torch.library.impl(library, "embedding_" + name, "CompositeExplicitAutograd")(rows)
        torch.library.impl(library, f"embedding_{name}.dtype", "CompositeExplicitAutograd")(rows)


class PackedTable(torch.nn.Module):
    """Rows of packed integers, with a scale for each row, and with scales and zero points for each half of one."""

    def __init__(self, name, w):
        super().__init__()
        if not hasattr(torch.ops.quantized_decomposed, "embedding_byte"):
            define_tables()
        self.rows = getattr(torch.ops.quantized_decomposed, "embedding_" + name)
        self.register_buffer("w", w)
        self.register_buffer("scales", torch.arange(1, 11).reshape(5, 2) / 16)
        self.register_buffer("zeros", torch.arange(-5, 5).reshape(5, 2) / 2)

    def forward(self, at):
        return self.rows(self.w, self.scales[:, 0], None, -8, 7, at), self.rows.dtype(self.w, self.scales, self.zeros, -8, 7, at, dtype=torch.float16)


def define_filter():
    """The recurrence of torchaudio's filters (torchaudio/csrc/lfilter.cpp)."""
    library = torch.library.Library("torchaudio", "DEF")
    library.define("_lfilter_core_loop(Tensor input_signal_windows, Tensor a_coeff_flipped, Tensor(a!) padded_output_waveform) -> ()")
    library.define("_lfilter(Tensor waveform, Tensor a_coeffs, Tensor b_coeffs) -> Tensor")

    def loop(x, a, y):
        for t in range(x.shape[2]):
            o = x[:, :, t].clone()
            for k in range(a.shape[1]):
                o -= y[:, :, t + k] * a[:, k]
            y[:, :, t + a.shape[1] - 1] = o

    def lfilter(x, a, b):
        padded = torch.nn.functional.pad(x, (a.shape[1] - 1, 0))
        y = torch.zeros_like(padded)
        loop(torch.nn.functional.conv1d(padded, b.flip(1).unsqueeze(1), groups=x.shape[1]) / a[:, :1], a.flip(1) / a[:, :1], y)
        return y[:, :, a.shape[1] - 1:]

    library.impl("_lfilter_core_loop", loop, "CPU")
    library.impl("_lfilter", lfilter, "CPU")
    return library


class Filter(torch.nn.Module):
    """A filter by the recurrence, whose output begins with numbers that are there, and one as a whole."""

    library = None

    def __init__(self):
        super().__init__()
        Filter.library = Filter.library or define_filter()
        self.register_buffer("a", torch.tensor([[1.0, -0.5, 0.25], [2.0, 0.3, -0.1]]))
        self.register_buffer("b", torch.tensor([[0.2, 0.3, 0.1], [0.5, -0.2, 0.1]]))

    def forward(self, x):
        y = torch.nn.functional.pad(torch.ones_like(x[:, :, :2]), [0, x.size(2)])
        torch.ops.torchaudio._lfilter_core_loop(x, self.a.flip(1), y)
        return y, torch.ops.torchaudio._lfilter(x, self.a, self.b)


# What blocks take and give, in lines of Python.
STATEMENTS = [
    ("optional_state", """
state: Optional[Tuple[Tensor, Tensor]] = None
for k in range(x.size(0)):
    if state is None:
        state = (x[k], x[k] * 2)
    else:
        state = (state[0] + x[k], state[1] * 0.5)
assert state is not None
return state[0], state[1]
""", "x: Tensor", (r(3, 2),)),
    ("size_of_list", """
shape = torch.Size([x.size(1), x.size(0)])
if x.size(0) > 1:
    y = x.reshape(shape[:1] + torch.Size([-1]))
else:
    y = x
return y, torch.zeros(shape)
""", "x: Tensor", (r(3, 2),)),
    ("continued", """
out: List[Tensor] = [torch.zeros((0, 2))] * x.size(0)
for k in range(x.size(0)):
    y = x[k][x[k] > 0]
    if not y.size(0):
        continue
    out[k] = torch.stack([y, y * 2], 1)
return out[0], out[1], out[2]
""", "x: Tensor", (torch.tensor([[1.0, -1.0, 2.0], [-1.0, -2.0, -3.0], [3.0, 4.0, 5.0]]),)),
    ("parts_of_any_rank", """
n = int(x.gt(0).sum())
y = x.reshape(x.size(0), 2, -1) if n > 2 else x
out: List[Tensor] = []
for part in y.split([1, x.size(0) - 1]):
    out.append(part.reshape(-1) * n)
return out[0], out[1]
""", "x: Tensor", (r(3, 4),)),
    ("complex_blocks", """
z = torch.view_as_complex(x)
w = z * (1 + 0j)
if n > 2:
    z = z * z + 1
else:
    w = torch.complex(x[:, 0], x[:, 1] * 0)
for k in range(n):
    z, w = w, z * w
return torch.view_as_real(z), torch.view_as_real(torch.fft.fft(w)), w.abs()
""", "x: Tensor, n: int", (r(3, 2), 3)),
    ("chunks", """
if x.size(1) % 4:
    x = torch.constant_pad_nd(x, [0, 4 - x.size(1) % 4])
state = torch.zeros([0])
out: List[Tensor] = []
for k in range(0, x.size(1), 4):
    y = x[:, k:k + 4].reshape(-1, 4)
    if len(state) == 0:
        state = y * 0
    state = state * 0.5 + y
    out.append(state.sum(1, keepdim=True))
return torch.cat(out, 1), state
""", "x: Tensor", (r(2, 10),)),
    ("first_iteration", """
total, state = torch.zeros([2], dtype=torch.int64), torch.zeros([0])
for k in range(max(n, 1)):
    y = x[k % x.size(0)]
    total = total + y
    state = torch.stack([y, y]) if len(state) == 0 else state * 0.5 + y
return total, state
""", "x: Tensor, n: int", (r(3, 2), 3)),
    ("message", """
text = str(int(x.max()))
text = "n " if text.isnumeric() else text.upper() + "%d" % int(x.min())
if x.sum() > 1000:
    raise ValueError("too large: {} of {}".format(text, x.shape))
return x + 1
""", "x: Tensor", (X,)),
]

TYPES = {float: "float", int: "int"}


def module(expression, inputs):
    """A module whose forward gives the expression, or that is it already. Tensors are x, y, z, v, w, numbers n and k, each in the order of the inputs."""
    if isinstance(expression, torch.nn.Module):
        return expression
    tensors, numbers = iter("xyzvw"), iter("nk")
    arguments = ", ".join(f"{next(tensors)}: Tensor" if isinstance(i, torch.Tensor) else f"{next(numbers)}: {TYPES[type(i)]}" for i in inputs)
    return casefile.module_of(arguments, "return " + re.sub(r"\ba\.", "torch.ops.aten.", expression))


def write(out, name, m, inputs, form):
    """Writes a case and reports whether there is one. A script says what is called, a trace what that decomposes into: a script is tried first."""
    skipped = []
    for script in (True, False):
        if script and form == "program":
            continue
        try:
            path = casefile.write(out, name, m, [inputs], script=script, suite="operators", op=name, pt2=form == "program")
        except casefile.Skip as e:
            skipped.append(str(e))
            continue
        if form == "program":  # TorchScript has no declarations of these
            os.remove(os.path.join(path, "model.pt"))
        return True
    print(f"{name}: skipped: {'; '.join(skipped)}")
    return False


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--out", required=True)
    ap.add_argument("--filter", default="")
    opts = ap.parse_args()
    made, ids = 0, set()
    for name, expression, inputs, *form in programs():
        if not re.search(opts.filter, name):
            continue
        assert name not in ids, name
        ids.add(name)
        made += write(opts.out, name, module(expression, inputs), inputs, form[0] if form else "")
    print(made, "cases")


if __name__ == "__main__":
    main()
