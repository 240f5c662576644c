#!/usr/bin/env python3
"""Writes scripts that ask for gradients, torch.autograd.grad and x.grad after backward(), with what PyTorch gives for them, as cases (tools/lib/cases).

    python3 tools/maker/gradients/gradients.py --out DIR [--filter RE]

DIR/gradients/ID has the archive, the inputs and the outputs, in float64. `testdata/gradients.tar.gz` is packed from it by tools/maker/randprog/pack.py.
A program is an expression of x and y: the case has its value, and the gradients by x and y of the value times numbers that all differ.
"""
import argparse
import os
import re
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../judge/python"))
import casefile  # noqa: E402

F = "torch.nn.functional"

# Functions that the expressions call.
HELPERS = '''
def chunk2(x):
    a, b = x.chunk(2, 1)
    return a * 2 + b.exp()


def split2(x):
    a, b = torch.split(x, [2, 3], 1)
    return a.sum() + b.exp()


def unsafe2(x):
    a, b = torch.unsafe_split(x, 2, 1)
    c, d = torch.unsafe_chunk(x, 2, 1)
    return a * 2 + b * c + d


def unbind2(x):
    a, b = x.unbind(0)
    return a * 2 + b.exp()


def branch(x):
    if bool(x.sum() > 0):
        y = x * x
    else:
        y = x.exp()
    return y * x


def chosen(x, n: int):
    if n > 2:
        x = x.sin()
    return x * x


def second(x):
    g = torch.autograd.grad([(x * x * x).sum()], [x], create_graph=True)[0]
    assert g is not None
    return g * g


def after_backward(x, y):
    z = x.detach().requires_grad_(True)
    (z.exp() * y).sum().backward()
    g = z.grad
    assert g is not None
    return g * x + z * y


def of_input(x, y):
    (x * x * y).backward(y.detach())
    g = x.grad
    assert g is not None
    return g * x


def of_two_calls(x, y):
    z = x.detach()
    c = z * 2
    z.requires_grad_(True)
    (z * c).sum().backward()
    (z.sin() * y).sum().backward()
    g = z.grad
    assert g is not None
    g.mul_(2.0)
    h = z.grad
    assert h is not None
    return h * x * y


def of_two_tensors(x, y):
    z = x.detach().requires_grad_(True)
    u = y.detach().requires_grad_(True)
    torch.autograd.backward([(z * u).sum(), u * u], [None, x.detach()])
    g = z.grad
    h = u.grad
    assert g is not None and h is not None
    return g * x + h * y


def of_given(x, y):
    z = x.detach().requires_grad_(True)
    given = y.detach() * 1.0
    z.clone().backward(given)
    given.mul_(10.0)
    g = z.grad
    assert g is not None
    return g * x


def of_written(x, y):
    z = x.detach().requires_grad_(True)
    z.sum().backward()
    g = z.grad
    assert g is not None
    g[0] = 5.0
    return g * x * y


def indices(l: List[torch.Tensor]):
    out: List[Optional[torch.Tensor]] = []
    for t in l:
        out.append(t)
    return out


def of_many_leaves(x, y):
    a = x.detach().requires_grad_(True)
    b = (y * 2).detach()
    c = a * b
    b.requires_grad_(True)
    d = y.detach().sin()
    d.requires_grad_(True)
    e = y.detach().requires_grad_(False)
    (c * b * d.exp() * e).sum().backward()
    f, g, h = a.grad, b.grad, d.grad
    assert f is not None and g is not None and h is not None
    return f * x + g * y + h


def of_deep_leaf(x, y):
    z = x.detach()
    z = z * 2 + z.sin()
    z = torch.cat([z, z.exp()], 0).tanh() + 1
    z.requires_grad_(True)
    (z * z * y.sum()).sum().backward()
    g = z.grad
    assert g is not None
    return g * y[0]


def of_given_rows(x, y):
    z = x.detach().requires_grad_(True)
    rows: List[Optional[torch.Tensor]] = [torch.stack([y, y * 2, x]).detach()]
    s = (z * z)
    g = torch.autograd.grad([s], [z], rows)[0]
    (z * y)[0].backward(y.detach())
    h = z.grad
    assert g is not None and h is not None
    return g * x + h * y
'''


def programs():
    """(id, expression, shapes of x and y, the map that its domain asks for)."""
    every, positive, inside = None, lambda t: t.abs() + 0.5, lambda t: t.tanh() * 0.9
    yield "exp", "torch.exp(x)", [(2, 3)], every
    yield "exp2", "torch.exp2(x)", [(2, 3)], every
    yield "expm1", "torch.expm1(x)", [(2, 3)], every
    yield "sin", "torch.sin(x)", [(2, 3)], every
    yield "cos", "torch.cos(x)", [(2, 3)], every
    yield "tan", "torch.tan(x)", [(2, 3)], every
    yield "sinh", "torch.sinh(x)", [(2, 3)], every
    yield "cosh", "torch.cosh(x)", [(2, 3)], every
    yield "tanh", "torch.tanh(x)", [(2, 3)], every
    yield "sigmoid", "torch.sigmoid(x)", [(2, 3)], every
    yield "relu", "torch.relu(x)", [(2, 3)], every
    yield "abs", "torch.abs(x)", [(2, 3)], every
    yield "neg", "torch.neg(x)", [(2, 3)], every
    yield "erf", "torch.erf(x)", [(2, 3)], every
    yield "erfc", "torch.erfc(x)", [(2, 3)], every
    yield "square", "torch.square(x)", [(2, 3)], every
    yield "asinh", "torch.asinh(x)", [(2, 3)], every
    yield "reciprocal", "torch.reciprocal(x)", [(2, 3)], every
    yield "log", "torch.log(x)", [(2, 3)], positive
    yield "log2", "torch.log2(x)", [(2, 3)], positive
    yield "log10", "torch.log10(x)", [(2, 3)], positive
    yield "log1p", "torch.log1p(x)", [(2, 3)], positive
    yield "sqrt", "torch.sqrt(x)", [(2, 3)], positive
    yield "rsqrt", "torch.rsqrt(x)", [(2, 3)], positive
    yield "asin", "torch.asin(x)", [(2, 3)], inside
    yield "acos", "torch.acos(x)", [(2, 3)], inside
    yield "atan", "torch.atan(x)", [(2, 3)], inside
    yield "atanh", "torch.atanh(x)", [(2, 3)], inside
    yield "acosh", "torch.acosh(x*x+1.5)", [(2, 3)], every
    yield "gelu", f"{F}.gelu(x)", [(3, 4)], every
    yield "silu", f"{F}.silu(x)", [(3, 4)], every
    yield "mish", f"{F}.mish(x)", [(3, 4)], every
    yield "softplus", f"{F}.softplus(x)", [(3, 4)], every
    yield "elu", f"{F}.elu(x)", [(3, 4)], every
    yield "celu", f"{F}.celu(x)", [(3, 4)], every
    yield "selu", f"{F}.selu(x)", [(3, 4)], every
    yield "leaky_relu", f"{F}.leaky_relu(x)", [(3, 4)], every
    yield "hardsigmoid", f"{F}.hardsigmoid(x)", [(3, 4)], every
    yield "hardswish", f"{F}.hardswish(x)", [(3, 4)], every
    yield "hardshrink", f"{F}.hardshrink(x)", [(3, 4)], every
    yield "softshrink", f"{F}.softshrink(x)", [(3, 4)], every
    yield "logsigmoid", f"{F}.logsigmoid(x)", [(3, 4)], every
    yield "softsign", f"{F}.softsign(x)", [(3, 4)], every
    yield "relu6", f"{F}.relu6(x)", [(3, 4)], every
    yield "hardtanh", f"{F}.hardtanh(x)", [(3, 4)], every
    yield "gelu_tanh", f"{F}.gelu(x, approximate='tanh')", [(3, 4)], every
    yield "threshold", f"{F}.threshold(x, 0.1, 0.5)", [(3, 4)], every
    yield "elu2", f"{F}.elu(x,1.5)", [(3, 4)], every
    yield "celu2", f"{F}.celu(x,1.5)", [(3, 4)], every
    yield "add", "x + 2*y", [(2, 3), (3,)], every
    yield "add_alpha", "torch.add(x,y,alpha=3)", [(2, 3), (2, 1)], every
    yield "sub", "x - y", [(2, 3), (1, 3)], every
    yield "rsub", "2.0 - x", [(2, 3)], every
    yield "mul", "x*y", [(2, 3), (2, 1)], every
    yield "div", "x/y", [(2, 3), (3,)], every
    yield "div_s", "x/3", [(2, 3)], every
    yield "rdiv", "3/x", [(2, 3)], every
    yield "adds", "x+1", [(2, 3)], every
    yield "pow2", "x**2", [(2, 3)], every
    yield "pow0", "x**0", [(2, 3)], every
    yield "pow25", "x**2.5", [(2, 3)], positive
    yield "powt", "x**y", [(2, 3), (2, 3)], positive
    yield "rpow", "2.0**x", [(2, 3)], every
    yield "maximum", "torch.maximum(x,y)", [(2, 3), (3,)], every
    yield "minimum", "torch.minimum(x,y)", [(2, 3), (2, 3)], every
    yield "clamp", "x.clamp(-0.5,0.5)", [(3, 4)], every
    yield "clamp_min", "x.clamp(min=0.1)", [(3, 4)], every
    yield "atan2", "torch.atan2(x,y)", [(2, 3), (2, 3)], every
    yield "where", "torch.where(x>0,x*2,y)", [(2, 3), (3,)], every
    yield "masked_fill", "x.masked_fill(x>0.3, 0.0)", [(2, 3)], every
    yield "lerp", "torch.lerp(x,y,0.3)", [(2, 3), (2, 3)], every
    yield "lerpt", "torch.lerp(x,y,x*y)", [(2, 3), (2, 3)], every
    yield "addcmul", "torch.addcmul(x,x,y,value=0.5)", [(2, 3), (2, 3)], every
    yield "addcdiv", "torch.addcdiv(x,x,y,value=0.5)", [(2, 3), (2, 3)], every
    yield "hypot", "torch.hypot(x,y)", [(2, 3), (2, 3)], every
    yield "sumall", "x.sum()", [(2, 3)], every
    yield "sumd", "x.sum(1)", [(2, 3, 4)], every
    yield "sumdk", "x.sum([0,-1],keepdim=True)", [(2, 3, 4)], every
    yield "mean", "x.mean()", [(2, 3)], every
    yield "meand", "x.mean(-1)", [(2, 3, 4)], every
    yield "meandk", "x.mean([1,2],keepdim=True)", [(2, 3, 4)], every
    yield "lse", "torch.logsumexp(x,-1)", [(2, 3)], every
    yield "norm", "x.norm()", [(2, 3)], every
    yield "normd", "x.norm(2,-1)", [(2, 3)], every
    yield "vnorm", "torch.linalg.vector_norm(x,2.0,[-1],True)", [(2, 3)], every
    yield "maxd", "x.max(1)[0]", [(2, 3, 4)], every
    yield "mind", "torch.min(x,dim=0,keepdim=True)[0]", [(2, 3, 4)], every
    yield "maxall", "x.max()", [(2, 3)], every
    yield "amax", "x.amax(-1)", [(2, 3)], every
    yield "amin", "torch.amin(x,[0,1],keepdim=True)", [(2, 3, 4)], every
    yield "max2", "torch.max(x,y)", [(2, 3), (2, 3)], every
    yield "cumsum", "x.cumsum(1)", [(2, 3)], every
    yield "topk", "x.topk(2,-1)[0]", [(2, 3)], every
    yield "sort", "x.sort(0)[0]", [(4, 3)], every
    yield "gather", "x.gather(1,(x>0).long())", [(2, 3)], every
    yield "index_select", "x.index_select(1,torch.tensor([2,0,2]))", [(2, 3)], every
    yield "index", "x[torch.tensor([1,0,1])]", [(2, 3)], every
    yield "scatter_add", "x.scatter_add(1,(y>0).long(),y)", [(2, 3), (2, 3)], every
    yield "index_add", "x.index_add(0,torch.tensor([1,1]),y,alpha=2)", [(2, 3), (2, 3)], every
    yield "mm", "x.mm(y)", [(2, 3), (3, 4)], every
    yield "bmm", "x.bmm(y)", [(2, 3, 4), (2, 4, 5)], every
    yield "matmul", "x@y", [(2, 3, 4), (4, 5)], every
    yield "matmulb", "x@y", [(2, 1, 3, 4), (3, 4, 5)], every
    yield "mat1", "x@y", [(2, 3, 4), (4,)], every
    yield "mat2", "x@y", [(4,), (2, 4, 3)], every
    yield "mat3", "x@y", [(4,), (4,)], every
    yield "linear", f"{F}.linear(x,y)", [(2, 3, 4), (5, 4)], every
    yield "linear1", f"{F}.linear(x,y,y[:,0])", [(4,), (5, 4)], every
    yield "addmm", "torch.addmm(y.sum(1)[:4],x,y.t(),beta=0.5,alpha=2)", [(2, 3), (4, 3)], every
    yield "baddbmm", "torch.baddbmm(x.sum(2,keepdim=True),x,y)", [(2, 3, 4), (2, 4, 5)], every
    yield "dot", "torch.dot(x,y)", [(4,), (4,)], every
    yield "mv", "torch.mv(x,y)", [(3, 4), (4,)], every
    yield "outer", "torch.outer(x,y)", [(3,), (4,)], every
    yield "reshape", "x.reshape(3,2)*2", [(2, 3)], every
    yield "view", "x.view(-1).exp()", [(2, 3)], every
    yield "flatten", "x.flatten(1).exp()", [(2, 3, 4)], every
    yield "squeeze", "x.squeeze(1).exp()", [(2, 1, 3)], every
    yield "unsq", "x.unsqueeze(0).exp()", [(2, 3)], every
    yield "transpose", "x.transpose(0,1).exp()", [(2, 3)], every
    yield "t", "x.t().exp()", [(2, 3)], every
    yield "permute", "x.permute(2,0,1).exp()", [(2, 3, 4)], every
    yield "expand", "x.expand(4,2,3).exp()", [(2, 3)], every
    yield "select", "x.select(1,2).exp()", [(2, 3)], every
    yield "idx", "x[:, 1:].exp()", [(2, 3)], every
    yield "idx2", "x[0, ::2].exp()", [(2, 5)], every
    yield "narrow", "x.narrow(1,1,2).exp()", [(2, 4)], every
    yield "cat", "torch.cat([x,y.exp(),x],1)", [(2, 3), (2, 2)], every
    yield "stack", "torch.stack([x,y,x*2],1)", [(2, 3), (2, 3)], every
    yield "chunk", "chunk2(x)", [(2, 4)], every
    yield "split", "split2(x)", [(2, 5)], every
    yield "unbind", "unbind2(x)", [(2, 5)], every
    yield "flip", "x.flip([1]).exp()", [(2, 3)], every
    yield "tril", "x.tril().exp()", [(3, 3)], every
    yield "triu", "x.triu(1).exp()", [(3, 3)], every
    yield "diag", "torch.diagonal(x).exp()", [(3, 3)], every
    yield "clone", "x.clone().exp()", [(2, 3)], every
    yield "to", "x.to(torch.float64).exp()", [(2, 3)], every
    yield "to_int", "(x * 3).to(torch.int64).to(torch.float64) * x", [(2, 3)], every
    yield "to_float", "x.to(torch.float32).exp()", [(2, 3)], every
    yield "detach", "x*x.detach()", [(2, 3)], every
    yield "dropout", f"{F}.dropout(x,0.5,False)*2", [(2, 3)], every
    yield "softmax", "x.softmax(-1)", [(2, 3)], every
    yield "log_softmax", "torch.log_softmax(x,0)", [(2, 3)], every
    yield "layer_norm", f"{F}.layer_norm(x,[4],y,y*2)", [(2, 3, 4), (4,)], every
    yield "layer_norm0", f"{F}.layer_norm(x,[3,4])", [(2, 3, 4)], every
    yield "group_norm", f"{F}.group_norm(x,2,y,y)", [(2, 4, 5), (4,)], every
    yield "batch_norm", f"{F}.batch_norm(x,y.detach(),y.detach().abs()+1)", [(2, 4, 5), (4,)], every
    yield "conv2d", f"{F}.conv2d(x,y,stride=2,padding=1)", [(2, 3, 6, 6), (4, 3, 3, 3)], every
    yield "conv1d", f"{F}.conv1d(x,y,y[:,0,0])", [(2, 3, 6), (4, 3, 3)], every
    yield "conv3d", f"{F}.conv3d(x,y)", [(1, 2, 4, 4, 4), (3, 2, 2, 2, 2)], every
    yield "max_pool2d", f"{F}.max_pool2d(x,2)", [(1, 2, 6, 6)], every
    yield "avg_pool2d", f"{F}.avg_pool2d(x,3,2,1)", [(1, 2, 6, 6)], every
    yield "adaptive", f"{F}.adaptive_avg_pool2d(x,[2,2])", [(1, 2, 6, 6)], every
    yield "mse", f"{F}.mse_loss(x,y)", [(2, 3), (2, 3)], every
    yield "smooth", f"{F}.smooth_l1_loss(x,y,reduction='none')", [(2, 3), (2, 3)], every
    yield "huber", f"{F}.huber_loss(x,y)", [(2, 3), (2, 3)], every
    yield "embedding", f"{F}.embedding(torch.tensor([1,0,1]),x)", [(3, 4)], every
    yield "branch", "branch(x)", [(2, 3)], every
    yield "silu_deep", "(x@y).tanh().softmax(-1).log().sum(-1)", [(2, 3), (3, 4)], every
    yield "ifconst", "chosen(x, 3)", [(2, 3)], every
    yield "empty_like", "x*torch.ones_like(x)+torch.zeros_like(x)", [(2, 3)], every
    yield "floor", "x*x.floor()", [(2, 3)], every
    yield "norm_mod", "x/(x.norm(2,-1,keepdim=True)+1e-6)", [(2, 3)], every
    yield "second", "second(x)", [(2, 3)], every
    yield "addmv", "torch.addmv(y, x, y, beta=2, alpha=3)", [(3, 3), (3,)], every
    yield "addr", "torch.addr(x, y, y[:2], beta=2, alpha=3).t()", [(3, 2), (3,)], every
    yield "addbmm", "torch.addbmm(x[0], x, y, beta=2, alpha=3)", [(2, 3, 3), (2, 3, 3)], every
    yield "copysign", "torch.copysign(x, y)", [(2, 3), (3,)], every
    yield "frac", "torch.frac(x * 3)", [(2, 3)], every
    yield "fmod", "torch.fmod(x * 5, y)", [(2, 3), (3,)], every
    yield "remainder", "torch.remainder(x * 5, y)", [(2, 3), (3,)], every
    yield "remainder_s", "torch.remainder(x * 5, 2.0) + torch.fmod(x * 3, 1.5)", [(2, 3)], every
    yield "deg2rad", "torch.deg2rad(x) + torch.rad2deg(x)", [(2, 3)], every
    yield "erfinv", "torch.erfinv(x)", [(2, 3)], inside
    yield "sinc", "torch.sinc(x * (x > 0))", [(2, 3)], every
    yield "lgamma", "torch.lgamma(x)", [(2, 3)], positive
    yield "digamma", "torch.digamma(x)", [(2, 3)], positive
    yield "polygamma", "torch.polygamma(2, x)", [(2, 3)], positive
    yield "i0", "torch.special.i0(x)", [(2, 3)], every
    yield "i0e", "torch.special.i0e(x)", [(2, 3)], every
    yield "i1", "torch.special.i1(x * (x > 0))", [(2, 3)], every
    yield "bessel_j", "torch.special.bessel_j0(x) + torch.special.bessel_j1(x * (x > 1)) * 2", [(2, 3)], every
    yield "bessel_y", "torch.special.bessel_y0(x) + torch.special.bessel_y1(x) * 2", [(2, 3)], positive
    yield "bessel_i", "torch.special.modified_bessel_i0(x) + torch.special.modified_bessel_i1(x * (x > 1)) * 2", [(2, 3)], every
    yield "bessel_k", "torch.special.modified_bessel_k0(x) + torch.special.modified_bessel_k1(x) * 2", [(2, 3)], positive
    yield "entr", "torch.special.entr(x)", [(2, 3)], positive
    yield "ndtri", "torch.special.ndtri(x)", [(2, 3)], lambda t: t.sigmoid()
    yield "log_ndtr", "torch.special.log_ndtr(x)", [(2, 3)], every
    yield "erfcx", "torch.special.erfcx(x)", [(2, 3)], every
    yield "logaddexp", "torch.logaddexp(x, y)", [(2, 3), (3,)], every
    yield "logaddexp2", "torch.logaddexp2(x, y)", [(2, 3), (2, 1)], every
    yield "xlogy", "torch.xlogy(x, y)", [(2, 3), (3,)], positive
    yield "xlogy_s", "torch.xlogy(x * (x > 1), 3.0)", [(2, 3)], every
    yield "xlog1py", "torch.special.xlog1py(x, y)", [(2, 3), (3,)], positive
    yield "nan_to_num", "torch.nan_to_num(x / (x > 0))", [(2, 3)], every
    yield "glu", f"{F}.glu(x, 1)", [(2, 4)], every
    yield "prod", "torch.prod(x * (x > -1))", [(2, 3)], every
    yield "prod_dim", "torch.prod(x * (x > 0), 1)", [(2, 3)], every
    yield "prod_keep", "torch.prod(x, 0, True)", [(2, 3)], every
    yield "cummax", "torch.cummax(x, 1)[0]", [(2, 4)], every
    yield "cummin", "torch.cummin(x, 0)[0]", [(4, 3)], every
    yield "kthvalue", "torch.kthvalue(x, 2, 1)[0]", [(2, 4)], every
    yield "mode", "torch.mode(x.sign() * 2 + x * 0, 1)[0]", [(2, 5)], every
    yield "median", "torch.median(x)", [(2, 3)], every
    yield "median_nan", "torch.median(x / (x > -9)) + torch.nanmedian(x)", [(2, 3)], lambda t: torch.where(t > 1, torch.nan, t)
    yield "median_dim", "torch.median(x, 1)[0]", [(2, 4)], every
    yield "nanmedian", "torch.nanmedian(x, 1, True)[0]", [(2, 5)], every
    yield "fmax", "torch.fmax(x, y) + torch.fmin(x, y * 2)", [(2, 3), (3,)], every
    yield "dist", "torch.dist(x, y)", [(2, 3), (2, 3)], every
    yield "trace", "torch.trace(x)", [(2, 3)], every
    yield "trace_tall", "torch.trace(x)", [(4, 3)], every
    yield "diag_embed", "torch.diag_embed(x, 1)", [(2, 3)], every
    yield "repeat", "x.repeat(2, 3, 1)", [(2, 3)], every
    yield "tile", "torch.tile(x, (2, 2))", [(2, 3)], every
    yield "rot90", "torch.rot90(x, 1, [0, 1])", [(2, 3)], every
    yield "rot90_3", "torch.rot90(x, 3, [1, 2])", [(2, 3, 2)], every
    yield "roll", "torch.roll(x, 1, 1) + torch.roll(x, [1, 2], [0, 1]) * 3", [(2, 3)], every
    yield "roll_flat", "torch.roll(x, 2)", [(2, 3)], every
    yield "fliplr", "torch.fliplr(x) + torch.flipud(x) * 2", [(2, 3)], every
    yield "pixel_shuffle", "torch.pixel_shuffle(x, 2)", [(1, 8, 2, 3)], every
    yield "pixel_unshuffle", "torch.pixel_unshuffle(x, 2)", [(1, 2, 4, 6)], every
    yield "channel_shuffle", "torch.channel_shuffle(x, 2)", [(1, 6, 2, 2)], every
    yield "var", "torch.var(x, 1)", [(2, 4)], every
    yield "var_all", "torch.var(x)", [(2, 4)], every
    yield "var_biased", "torch.var(x, [0, 1], unbiased=False, keepdim=True)", [(2, 4)], every
    yield "std", "torch.std(x, 1)", [(2, 4)], every
    yield "std_all", "x.std()", [(2, 4)], every
    yield "std_zero", "torch.std(x * 0, 0, unbiased=False)", [(2, 4)], every
    yield "nansum", "torch.nansum(x / (x > 0) * (x > 0), 1)", [(2, 4)], every
    yield "masked_select", "torch.masked_select(x, y > 0)", [(2, 3), (3,)], every
    yield "masked_scatter", "torch.masked_scatter(x, x > 0, x.detach())", [(2, 3)], every
    yield "take", "torch.take(x, torch.tensor([0, 5, 0, -1]))", [(2, 3)], every
    yield "put", "torch.put(x, torch.tensor([0, 5]), y)", [(2, 3), (2,)], every
    yield "put_add", "torch.put(x, torch.tensor([0, 0]), y, True)", [(2, 3), (2,)], every
    yield "index_put", "torch.index_put(x, indices([torch.tensor([0, 1]), torch.tensor([2, 0])]), y)", [(2, 3), (2,)], every
    yield "index_put_add", "torch.index_put(x, indices([torch.tensor([0, 0])]), y, True)", [(2, 3), (3,)], every
    yield "index_fill", "torch.index_fill(x, 1, torch.tensor([0, 2]), 2.0)", [(2, 3)], every
    yield "index_copy", "torch.index_copy(x, 1, torch.tensor([2, 0]), y)", [(2, 3), (2, 2)], every
    yield "select_scatter", "torch.select_scatter(x, y, 1, 2)", [(2, 3), (2,)], every
    yield "slice_scatter", "torch.slice_scatter(x, y, 1, 0, 3, 2)", [(2, 3), (2, 2)], every
    yield "diagonal_scatter", "torch.diagonal_scatter(x, y, 1)", [(2, 3), (2,)], every
    yield "unfold", "x.unfold(1, 3, 2)", [(2, 7)], every
    yield "cross", "torch.cross(x, y, 1)", [(2, 3), (2, 3)], every
    yield "linalg_cross", "torch.linalg.cross(x, y)", [(2, 3), (1, 3)], every
    yield "vdot", "torch.vdot(x, y)", [(3,), (3,)], every
    yield "pad", f"{F}.pad(x, [1, 2, -1, 1])", [(3, 4)], every
    yield "pad_reflect", f"torch._C._nn.reflection_pad2d(x, [1, 1, 2, 0])", [(1, 2, 4, 4)], every
    yield "pad_replicate", f"torch._C._nn.replication_pad2d(x, [1, 1, 2, 0])", [(1, 2, 3, 3)], every
    yield "pad_reflect1", f"torch._C._nn.reflection_pad1d(x, [1, 2])", [(1, 2, 4)], every
    yield "pad_replicate3", f"torch._C._nn.replication_pad3d(x, [1, 2, 0, 1, 1, 0])", [(1, 1, 2, 3, 2)], every
    yield "max_pool2d_indices", f"{F}.max_pool2d(x, 2, return_indices=True)[0]", [(1, 2, 4, 6)], every
    yield "max_pool3d", f"{F}.max_pool3d(x, 2)", [(1, 2, 4, 4, 2)], every
    yield "adaptive_max", f"{F}.adaptive_max_pool2d(x, [2, 2])", [(1, 2, 5, 6)], every
    yield "adaptive_avg3", f"{F}.adaptive_avg_pool3d(x, [2, 2, 1])", [(1, 2, 4, 4, 2)], every
    yield "avg_pool3d", f"{F}.avg_pool3d(x, 2, 1, 1)", [(1, 2, 3, 3, 3)], every
    yield "im2col", f"{F}.unfold(x, [2, 2], padding=1, stride=2)", [(1, 2, 4, 4)], every
    yield "col2im", f"{F}.fold(x, [4, 5], [2, 2])", [(1, 8, 12)], every
    yield "bce", f"{F}.binary_cross_entropy(x, y.detach().sigmoid())", [(2, 3), (2, 3)], lambda t: t.sigmoid()
    yield "bce_none", f"{F}.binary_cross_entropy(x, y.detach().sigmoid(), reduction='none')", [(2, 3), (2, 3)], lambda t: t.sigmoid()
    yield "bce_logits", f"{F}.binary_cross_entropy_with_logits(x, y)", [(2, 3), (2, 3)], every
    yield "bce_logits_sum", f"{F}.binary_cross_entropy_with_logits(x, y, reduction='sum')", [(2, 3), (2, 3)], every
    yield "soft_margin", f"{F}.soft_margin_loss(x, y.detach().sign())", [(2, 3), (2, 3)], every
    yield "nll", f"torch._C._nn.nll_loss(x, torch.tensor([0, 2, -100]), y.detach(), 1, -100)", [(3, 4), (4,)], positive
    yield "nll_none", f"torch._C._nn.nll_loss(x, torch.tensor([0, 2, 1]), None, 0, -100)", [(3, 4)], every
    yield "inverse", "torch.inverse(x @ x.t() + torch.eye(3, dtype=torch.float64))", [(3, 4)], every
    yield "linalg_inv", "torch.linalg.inv(x + torch.eye(3, dtype=torch.float64) * 5)", [(2, 3, 3)], every
    yield "movedim", "torch.movedim(x, 0, 2) * 2 + torch.moveaxis(x, [0, 1], [1, 2]).sum()", [(2, 3, 4)], every
    yield "mT", "x.mT.ravel() + torch.positive(x).ravel()", [(2, 3)], every
    yield "unsafe_split", "unsafe2(x)", [(2, 4)], every
    yield "upsample_nearest", "torch._C._nn.upsample_nearest2d(x, [5, 6])", [(1, 2, 3, 3)], every
    yield "upsample_bilinear", "torch._C._nn.upsample_bilinear2d(x, [5, 6], True)", [(1, 2, 3, 3)], every
    yield "upsample_bilinear_half", "torch._C._nn.upsample_bilinear2d(x, [5, 6], False)", [(1, 2, 3, 3)], every
    yield "upsample_linear", "torch._C._nn.upsample_linear1d(x, [5], False)", [(1, 2, 3)], every
    yield "upsample_bicubic", "torch._C._nn.upsample_bicubic2d(x, [5, 6], False)", [(1, 2, 4, 4)], every
    yield "upsample_trilinear", "torch._C._nn.upsample_trilinear3d(x, [3, 4, 5], False)", [(1, 1, 2, 3, 2)], every
    for helper in ("after_backward", "of_input", "of_two_calls", "of_two_tensors", "of_given", "of_written", "of_many_leaves", "of_deep_leaf", "of_given_rows"):
        yield helper, f"{helper}(x, y)", [(2, 3), (2, 3)], every


def module(expression, names):
    """The module whose forward gives the gradients of an expression, and its value."""
    lines = [f"{n}.requires_grad_(True)" for n in names] + [
        f"r = {expression}",
        "weights = torch.linspace(0.5, 2.5, r.numel(), dtype=torch.float64).reshape(r.shape)",
        f"grads = torch.autograd.grad([(r * weights).sum()], [{', '.join(names)}], allow_unused=True)",
    ]
    for i, n in enumerate(names):
        lines += [f"g{i} = grads[{i}]", f"if g{i} is None:", f"    h{i} = torch.zeros_like({n})", "else:", f"    h{i} = g{i}"]
    lines.append("return r, " + ", ".join(f"h{i}" for i in range(len(names))))
    body = HELPERS + f"\n\ndef forward(self, {', '.join(f'{n}: torch.Tensor' for n in names)}):\n" + "".join(f"    {line}\n" for line in lines)
    forward = casefile.source(body)["forward"]
    return type("Gradient", (torch.nn.Module,), {"forward": forward, "__module__": forward.__module__})()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--filter", default="")
    opts = parser.parse_args()
    casefile.GRADIENTS = True
    for name, expression, shapes, domain in programs():
        if not re.search(opts.filter, name):
            continue
        torch.manual_seed(1)
        inputs = [torch.randn(*s, dtype=torch.float64) for s in shapes]
        if domain is not None:
            inputs = [domain(t) for t in inputs]
        m = module(expression, ["x", "y"][: len(shapes)])
        casefile.write(opts.out, name, m, [tuple(inputs)], script=True, suite="gradients", op="grad", tolerance=(1e-7, 1e-8))  # ONNX has numbers in attributes as float32


if __name__ == "__main__":
    main()
