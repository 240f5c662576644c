"""Programs of indexing and of control flow, for make_cases.py: each with inputs at two sizes."""
import torch


def f(*shape):
    return torch.sin(torch.arange(1.0, 1 + torch.Size(shape).numel()).reshape(shape) * 1.7)


def i(*values):
    return torch.tensor(values)


def b(*shape):
    return f(*shape) > 0


# name: expression over x and what follows it, the inputs, and the inputs at other sizes
INDEXING = {
    "int": ("x[1]", (f(3, 4),), (f(5, 2),)),
    "negative": ("x[-1], x[:, -2]", (f(3, 4),), (f(5, 3),)),
    "slice": ("x[1:], x[:-1], x[1:3]", (f(4, 3),), (f(6, 2),)),
    "step": ("x[::2], x[1::3]", (f(7, 2),), (f(10, 2),)),
    "beyond": ("x[1:100], x[-100:2]", (f(3, 2),), (f(5, 2),)),
    "ellipsis": ("x[..., 0], x[0, ...], x[..., 1:]", (f(2, 3, 4),), (f(3, 2, 5),)),
    "none": ("x[None], x[:, None], x[..., None]", (f(2, 3),), (f(4, 2),)),
    "mixed": ("x[1, :, None, ::2]", (f(2, 3, 4),), (f(3, 2, 5),)),
    "tensor": ("x[y]", (f(4, 3), i(0, 3, -1)), (f(5, 2), i(1, 1, 4, -2))),
    "tensor_second": ("x[:, y]", (f(3, 4), i(0, 3, -1)), (f(2, 5), i(1, 1, 4, -2))),
    "two_tensors": ("x[y, y]", (f(4, 4, 2), i(0, 3, 1)), (f(5, 5, 2), i(1, 1, 4, 2))),
    "two_apart": ("x[y, :, y]", (f(3, 2, 3), i(0, 2)), (f(4, 3, 4), i(1, 3, 0))),
    "two_joined": ("x[:, y, y]", (f(2, 3, 3), i(0, 2)), (f(3, 4, 4), i(1, 3, 0))),
    "matrix_of_indices": ("x[y.unsqueeze(1), y]", (f(4, 4), i(0, 3, 1)), (f(5, 5), i(1, 1, 4, 2))),
    "tensor_and_slice": ("x[y, 1:]", (f(4, 3), i(0, 3, 1)), (f(5, 4), i(1, 1))),
    "tensor_and_int": ("x[y, 1]", (f(4, 3), i(0, 3, 1)), (f(5, 4), i(1, 1))),
    "list": ("x[[0, 2]], x[:, [1, 0, 1]]", (f(3, 2),), (f(5, 3),)),
    "scalar_tensor": ("x[y[0]]", (f(4, 3), i(2)), (f(5, 2), i(-1))),
    "mask": ("x[y]", (f(3, 4), b(3, 4)), (f(5, 2), b(5, 2))),
    "mask_rows": ("x[y]", (f(3, 4), b(3)), (f(5, 2), b(5))),
    "mask_columns": ("x[:, y]", (f(3, 4), b(4)), (f(5, 2), b(2))),
    "mask_of_condition": ("x[x > 0]", (f(3, 4),), (f(5, 2),)),
    "mask_and_int": ("x[y, 1]", (f(3, 4), b(3)), (f(5, 2), b(5))),
    "select": ("x.select(1, 1), x.select(-1, -1)", (f(2, 3),), (f(4, 2),)),
    "narrow": ("x.narrow(0, 1, 2)", (f(4, 3),), (f(6, 2),)),
    "gather": ("x.gather(1, y)", (f(2, 3), i(0, 2, 1, 1).reshape(2, 2)), (f(3, 4), i(0, 3, 1, 2, 2, 0).reshape(3, 2))),
    "take": ("x.take(y), x.take_along_dim(y.unsqueeze(0), 1)", (f(2, 3), i(0, 2, 1)), (f(3, 4), i(3, 1))),
    "index_select": ("x.index_select(0, y), x.index_select(-1, y)", (f(3, 3), i(0, 2)), (f(4, 4), i(1, 3, 0))),
    "masked_select": ("x.masked_select(y)", (f(2, 3), b(3)), (f(4, 2), b(2))),
    "unbind": ("x.unbind(0)[1] + x.unbind(1)[0].sum()", (f(3, 4),), (f(3, 4),)),
    "diagonal": ("x.diagonal(), x.diagonal(1), x.diagonal(-1, 1, 0)", (f(3, 4),), (f(5, 3),)),
    "nonzero": ("(x > 0).nonzero(), torch.where(x > 0.5)[0]", (f(3, 4),), (f(5, 2),)),
    "unfold": ("x.unfold(1, 2, 1)", (f(2, 5),), (f(3, 7),)),
    "roll": ("x.roll(1, 0), x.roll((1, -2), (0, 1))", (f(3, 4),), (f(5, 2),)),
    "flip": ("x.flip(0), x.fliplr(), x.rot90()", (f(3, 4),), (f(5, 2),)),
}
# statements that write, over clones; the expression behind | is returned
WRITES = {
    "int": ("x[1] = 0 | x", (f(3, 4),), (f(5, 2),)),
    "int_of_tensor": ("x[-1] = y | x", (f(3, 4), f(4)), (f(5, 2), f(2))),
    "slice": ("x[1:, ::2] = 5 | x", (f(3, 4),), (f(5, 3),)),
    "slice_of_tensor": ("x[1:] = y[1:] * 2 | x", (f(3, 4), f(3, 4)), (f(5, 2), f(5, 2))),
    "slice_broadcast": ("x[:, 1:3] = y | x", (f(3, 4), f(3, 1)), (f(5, 3), f(5, 1))),
    "column": ("x[:, 0] = y | x", (f(3, 4), f(3)), (f(5, 2), f(5))),
    "ellipsis": ("x[..., -1] = 1 | x", (f(2, 3, 4),), (f(3, 2, 5),)),
    "tensor": ("x[y] = 7 | x", (f(4, 3), i(0, 3)), (f(5, 2), i(1, -1, 2))),
    "tensor_second": ("x[:, y] = 7 | x", (f(3, 4), i(0, 3)), (f(2, 5), i(1, -1, 2))),
    "two_tensors": ("x[y, y] = -1 | x", (f(4, 4), i(0, 3)), (f(5, 5), i(1, 4, 2))),
    "mask": ("x[x > 0] = 0 | x", (f(3, 4),), (f(5, 2),)),
    "mask_of_tensor": ("x[y] = x[y] * 2 | x", (f(3, 4), b(3, 4)), (f(5, 2), b(5, 2))),
    "mask_rows": ("x[y] = 3 | x", (f(3, 4), b(3)), (f(5, 2), b(5))),
    "add": ("x[1:] += y | x", (f(3, 4), f(4)), (f(5, 2), f(2))),
    "add_by_tensor": ("x.index_put_((y,), x[0], accumulate=True) | x", (f(4, 3), i(0, 3, 0)), (f(5, 2), i(1, 1, 2))),
    "view": ("v = x.t()[1:]; v.mul_(2) | x", (f(3, 4),), (f(5, 2),)),
    "view_of_view": ("v = x[1:]; w = v[:, 1]; w.fill_(9) | x, v, w", (f(3, 4),), (f(5, 2),)),
    "reshape": ("v = x.view(-1); v[::2] = 0 | x", (f(3, 4),), (f(5, 2),)),
    "diagonal": ("x.diagonal().zero_() | x", (f(3, 4),), (f(5, 2),)),
    "copy": ("x[0].copy_(x[1]) | x", (f(3, 4),), (f(5, 2),)),
    "masked_fill": ("x[1:].masked_fill_(y[1:], 4) | x", (f(3, 4), b(3, 4)), (f(5, 2), b(5, 2))),
    "scatter": ("x.scatter_(1, y, 2.0) | x", (f(2, 3), i(0, 2, 1, 1).reshape(2, 2)), (f(3, 4), i(0, 3, 1, 2, 2, 0).reshape(3, 2))),
    "scatter_add": ("x.scatter_add_(1, y, x * 2) | x", (f(2, 3), i(0, 2, 1, 1).reshape(2, 2)), (f(3, 4), i(0, 3, 1, 2, 2, 0).reshape(3, 2))),
    "index_fill": ("x.index_fill_(1, y, 2) | x", (f(3, 4), i(0, 3)), (f(2, 5), i(1, 2))),
    "index_copy": ("x.index_copy_(0, y, x[:2] * 3) | x", (f(4, 3), i(3, 1)), (f(5, 2), i(0, 4))),
    "unbind": ("a, c = x.unbind(0); a.add_(c); c.zero_() | x", (f(2, 4),), (f(2, 3),)),
    "split": ("a, c = x.split(2, 1); a.neg_() | x, c", (f(3, 4),), (f(5, 4),)),
    "chunk": ("a, c = x.chunk(2); c.copy_(a) | x", (f(4, 3),), (f(6, 2),)),
    "expand": ("v = x[:1].expand(3, -1).clone(); v[1] = 0 | v, x", (f(3, 4),), (f(5, 2),)),
    "alias_kept": ("v = x[0]; w = v + 1; x.zero_() | v, w", (f(3, 4),), (f(5, 2),)),
}
# name: the lines of forward, signature, the inputs, and the inputs at other sizes
SCRIPTS = {
    "if": ("if x.sum() > 0:\n    y = x * 2\nelse:\n    y = x - 1\nreturn y", "x", (f(3, 4),), (-f(2, 2),)),
    "if_shape": ("if x.size(0) > 2:\n    return x.sum(0)\nreturn x.mean(0)", "x", (f(3, 4),), (f(2, 4),)),
    "if_nested": ("y = x\nif x[0, 0] > 0:\n    if x[0, 1] > 0:\n        y = x + 1\n    else:\n        y = x + 2\nreturn y", "x", (f(3, 4),), (-f(2, 2),)),
    "if_early": ("if x.max() > 0.5:\n    return x.relu()\ny = x.exp()\nreturn y + 1", "x", (f(3, 4),), (f(2, 1) * 0.1,)),
    "if_flag": ("if flag:\n    return x + 1\nreturn x - 1", "x, flag: bool", (f(3, 4), True), (f(2, 2), False)),
    "for_range": ("y = x\nfor k in range(3):\n    y = y * 2 + k\nreturn y", "x", (f(3, 4),), (f(2, 2),)),
    "for_n": ("y = x\nfor k in range(n):\n    y = y + k\nreturn y", "x, n: int", (f(3, 4), 3), (f(2, 2), 0)),
    "for_rows": ("y = torch.zeros(x.size(1))\nfor k in range(x.size(0)):\n    y = y * 0.5 + x[k]\nreturn y", "x", (f(3, 4),), (f(5, 2),)),
    "for_tensor": ("y = torch.zeros_like(x[0])\nfor r in x:\n    y = torch.maximum(y, r)\nreturn y", "x", (f(3, 4),), (f(5, 2),)),
    "for_break": ("y = x\nfor k in range(10):\n    y = y * 2\n    if y.max() > 5:\n        break\nreturn y", "x", (f(3, 4),), (f(2, 2) * 0.01,)),
    "for_continue": ("y = x\nfor k in range(6):\n    if k % 2 == 0:\n        continue\n    y = y + k\nreturn y", "x", (f(3, 4),), (f(2, 2),)),
    "for_stack": ("ys = []\nfor k in range(x.size(0)):\n    ys.append(x[k] * k)\nreturn torch.stack(ys)", "x", (f(3, 4),), (f(5, 2),)),
    "for_cat": ("ys: List[Tensor] = []\nfor k in range(3):\n    ys.append(x + k)\nreturn torch.cat(ys, 1)", "x", (f(3, 4),), (f(5, 2),)),
    "for_nested": ("y = x\nfor a in range(2):\n    for c in range(3):\n        y = y + a * c\nreturn y", "x", (f(3, 4),), (f(5, 2),)),
    "for_zip": ("y = x\nfor k, s in enumerate([0.5, 2.0]):\n    y = y * s + k\nreturn y", "x", (f(3, 4),), (f(5, 2),)),
    "for_writes": ("y = x.clone()\nfor k in range(x.size(0)):\n    y[k] = y[k] * k\nreturn y", "x", (f(3, 4),), (f(5, 2),)),
    "while": ("y = x\nwhile bool(y.max() < 3):\n    y = y * 2\nreturn y", "x", (f(3, 4),), (f(2, 2) * 0.01,)),
    "while_count": ("y = x\nk = 0\nwhile k < x.size(0):\n    y = y + k\n    k += 2\nreturn y", "x", (f(3, 4),), (f(5, 2),)),
    "list": ("ys = [x, x + 1]\nys[0] = ys[1] * 2\nys.insert(1, x)\nys.reverse()\nreturn ys[0] + ys[-1], len(ys)", "x", (f(3, 4),), (f(5, 2),)),
    "list_pop": ("ys = [x, x + 1, x + 2]\nz = ys.pop()\nys.extend([z])\nreturn torch.cat(ys[1:])", "x", (f(3, 4),), (f(5, 2),)),
    "list_of_ints": ("s = [k * 2 for k in range(3)]\nreturn x + s[1] + sum(s)", "x", (f(3, 4),), (f(5, 2),)),
    "dict": ("d = {'a': x, 'b': x + 1}\nd['a'] = d['b'] * 2\ny = x\nfor k, v in d.items():\n    y = y + v\nreturn y", "x", (f(3, 4),), (f(5, 2),)),
    "tuple": ("t = (x, x.sum())\na, s = t\nreturn a * s", "x", (f(3, 4),), (f(5, 2),)),
    "optional": ("y: Optional[Tensor] = None\nif x.size(0) > 3:\n    y = x\nif y is not None:\n    return y + 1\nreturn x", "x", (f(3, 4),), (f(5, 2),)),
    "sizes": ("n, m = x.shape\nreturn x.reshape(m, n).sum() + n * m, x.numel(), x.dim()", "x", (f(3, 4),), (f(5, 2),)),
    "scalars": ("a = 7 // 2 + 7 % 3\nc = float(a) / 2\nreturn x * c + int(c) - round(2.6) + math.floor(2.5)", "x", (f(3, 4),), (f(5, 2),)),
    "item": ("s = x.sum().item()\nreturn x * s", "x", (f(3, 4),), (f(5, 2),)),
    "bools": ("p = x.size(0) > 2 and x.size(1) > 2\nq = not p or x.dim() == 2\nreturn x + int(p) + 2 * int(q)", "x", (f(3, 4),), (f(2, 2),)),
    "views": ("y = x.clone()\nv = y.view(-1)\nif x.sum() > 0:\n    v[0] = 5\nelse:\n    v[1:] += 1\nreturn y, v", "x", (f(3, 4),), (-f(2, 2),)),
    "inplace_loop": ("y = x.clone()\nfor k in range(3):\n    y.add_(k).mul_(0.5)\nreturn y", "x", (f(3, 4),), (f(5, 2),)),
    "strings": ("mode = 'sum'\nif mode == 'sum':\n    return x.sum(0)\nreturn x", "x", (f(3, 4),), (f(5, 2),)),
    "assert": ("assert x.dim() == 2, 'two axes'\nreturn x.t()", "x", (f(3, 4),), (f(5, 2),)),
    "arange": ("return torch.arange(x.size(0)).unsqueeze(1) + x, torch.linspace(0, 1, 5), torch.eye(3)", "x", (f(3, 4),), (f(5, 2),)),
    "types": ("return x.to(torch.float64).sum(), x.long(), x.int() // 2, x > 0, x.half().float()", "x", (f(3, 4) * 3,), (f(5, 2) * 4,)),
    "pads": ("return torch.nn.functional.pad(x, [1, 2, 0, 1], value=3.0), x.repeat(2, 1)", "x", (f(3, 4),), (f(5, 2),)),
}
