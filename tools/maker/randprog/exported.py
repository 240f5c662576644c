"""Programs for torch.export: sizes that are symbols, sizes that depend on data, state, and the operators that hold programs.

The statements of randprog.Program are made from the values that its variables have, whose sizes they spell out as numbers. These must hold for every size, since
torch.export keeps sizes as symbols, so they are texts in a table that name sizes as expressions. How a program grows is the same.
"""
import torch

import casefile
from randprog import Program

# {v} {w} are floating tensors, {i} an integer one, {b} a bool one, {n} a size as a number, {k} a small number; NEW is the result's name
STATEMENTS = {
    "shape": [
        "NEW = {v}.reshape(-1)", "NEW = {v}.flatten(0)", "NEW = {v}.unsqueeze({k} % 2)", "NEW = {v}.transpose(0, -1)",
        "NEW = {v}.reshape({v}.shape[0], -1)", "NEW = {v}.view(-1, {v}.shape[-1])", "NEW = {v}.permute(*reversed(range({v}.dim())))",
        "NEW = {v}.reshape({v}.shape[0] * {v}.shape[-1], -1)", "NEW = {v}.expand(2, *{v}.shape)", "NEW = {v}.repeat(2, *([1] * ({v}.dim() - 1)))",
        "NEW = {v}.squeeze()", "NEW = {v}.movedim(0, -1)", "NEW = {v}.unflatten(-1, (-1, 1))", "NEW = {v}.tile(2)",
        "NEW = {v}.contiguous().view(-1)", "NEW = {v}.reshape(-1, 2)", "NEW = {v}.T", "NEW = {v}.swapaxes(0, -1)",
    ],
    "sizes": [
        "NEW = {v} * {n}", "NEW = {v} / {n}", "NEW = {v} + {n} // 2", "NEW = {v} * ({n} ** 2)", "NEW = {v} + ({n} % 3)", "NEW = {v} * torch.sym_max({n}, 3)",
        "NEW = torch.arange({n}, dtype=torch.float32)", "NEW = torch.arange(1, {n} + 1) * 0.5", "NEW = torch.ones({n}, {k})", "NEW = torch.full(({n}, 2), 1.5)",
        "NEW = torch.zeros({n}).fill_({k})", "NEW = {v}.new_ones({n})", "NEW = torch.eye({n})", "NEW = torch.linspace(0, 1, {n})",
        "NEW = torch.arange({n}, 0, -1) / 2", "NEW = torch.full_like({v}, {k})", "NEW = torch.tensor(float({k})).expand({n})", "NEW = {v} - {v}.numel()",
        "NEW = {v} * float({k}) / ({n} + 1)", "NEW = {v} * ({n} / 2)", "NEW = torch.scalar_tensor({n}) * {v}", "NEW = {v} + (1 if {n} > 2 else 0)",
        "NEW = {v} * torch.sym_min({n}, {v}.shape[0])", "NEW = torch.arange({n}).float().sum() + {v}", "NEW = {v} ** (1 / {n})", "NEW = {v} + ({n} << 1)",
        "NEW = torch.tril(torch.ones({n}, {n}))", "NEW = torch.ones({n}, {n}).triu(1)", "NEW = torch.arange({n}, dtype=torch.float32).unsqueeze(1) * {v}.reshape(1, -1)",
    ],
    "parts": [
        "NEW = {v}[1:]", "NEW = {v}[:-1]", "NEW = {v}[::2]", "NEW = {v}[-1]", "NEW = {v}[..., :2]", "NEW = {v}[: {v}.shape[0] // 2]", "NEW = {v}[{v}.shape[0] // 2 :]",
        "NEW = {v}[..., None]", "NEW = {v}[-3:]", "NEW = {v}.narrow(0, 0, {v}.shape[0] - 1)", "NEW = {v}.select(0, {v}.shape[0] - 1)", "NEW = {v}.chunk(2)[0]",
        "NEW = {v}.chunk(2, -1)[-1]", "NEW = {v}.split(2)[0]", "NEW = {v}.split(1, -1)[0]", "NEW = torch.stack({v}.unbind(-1)[:2])", "NEW = {v}.tensor_split(2)[1]",
        "NEW = {v}[{i} % {v}.shape[0]]", "NEW = {v}.index_select(0, {i}.reshape(-1) % {v}.shape[0])", "NEW = {v}[..., {i}.reshape(-1) % {v}.shape[-1]]",
        "NEW = {v}[torch.arange({v}.shape[0] - 1, -1, -1)]", "NEW = {v}[:, 0]", "NEW = {v}[1:, None, ..., -1]", "NEW = {v}.gather(0, torch.zeros_like({v}, dtype=torch.int64))",
        "NEW = {v}.flip(0)", "NEW = {v}.roll(1, 0)", "NEW = {v}.roll({n}, -1)", "NEW = {v}.diff(dim=0)", "NEW = {v}.unfold(0, 2, 1)", "NEW = {v}.diagonal()", "NEW = torch.diag({v}.reshape(-1))",
        "NEW = {v}.take({i} % {v}.numel())", "NEW = {v}[1 : {n}]", "NEW = {v}[{v}.shape[0] - 2 : {v}.shape[0]]", "NEW = {v}.take_along_dim({v}.argsort(0), 0)",
    ],
    "join": [
        "NEW = torch.cat([{v}, {w}])", "NEW = torch.cat([{v}, {v}], -1)", "NEW = torch.stack([{v}, {v} * 2])", "NEW = {v} + {w}", "NEW = {v} * {w}.mean()", "NEW = {v} @ {w}.T",
        "NEW = torch.cat([{v}.reshape(-1), {w}.reshape(-1)])", "NEW = torch.outer({v}.reshape(-1), {w}.reshape(-1))", "NEW = {v}.unsqueeze(0) - {w}.unsqueeze(1)", "NEW = torch.where({v} > 0, {v}, {w})",
        "NEW = torch.cat([{v}, torch.zeros_like({v})[:1]])", "NEW = torch.einsum('i,j->ij', {v}.reshape(-1), {w}.reshape(-1))", "NEW = torch.vstack([{v}, {v}])", "NEW = torch.broadcast_tensors({v}, {w})[1]",
        "NEW = torch.maximum({v}, {w})", "NEW = torch.cartesian_prod({v}.reshape(-1), {w}.reshape(-1))", "NEW = torch.matmul({v}, {w}.transpose(-1, -2))", "NEW = torch.hypot({v}, {w})", "NEW = torch.meshgrid({v}.reshape(-1), {w}.reshape(-1), indexing='ij')[0]",
        "NEW = torch.kron({v}, {w})", "NEW = torch.cdist({v}, {w})", "NEW = torch.addmm({v} @ {w}.T, {v}, {w}.T)", "NEW = torch.column_stack([{v}, {v}])", "NEW = torch.lerp({v}, {w}, 0.3)",
    ],
    "reduce": [
        "NEW = {v}.sum(0)", "NEW = {v}.mean(-1)", "NEW = {v}.sum()", "NEW = {v}.amax(0, keepdim=True)", "NEW = {v}.max(-1)[0]", "NEW = {v}.cumsum(0)", "NEW = {v}.std(0)", "NEW = {v}.softmax(-1)",
        "NEW = {v}.sort(0)[0]", "NEW = {v}.topk(1, 0)[0]", "NEW = {v}.prod(-1)", "NEW = {v}.norm()", "NEW = {v}.var(-1, unbiased=False)", "NEW = {v}.logsumexp(0)", "NEW = {v}.median()", "NEW = {v}.cummax(0)[0]",
        "NEW = F.layer_norm({v}, {v}.shape[-1:])", "NEW = F.normalize({v}, dim=0)", "NEW = {v}.amin()", "NEW = {v}.sum(0, keepdim=True) / {v}.shape[0]", "NEW = {v}.aminmax().max", "NEW = {v}.flatten().kthvalue(1)[0]",
        "NEW = {v}.mean((0, -1))", "NEW = F.avg_pool1d({v}.reshape(1, 1, -1), 2)", "NEW = F.adaptive_avg_pool1d({v}.reshape(1, 1, -1), 3)", "NEW = F.interpolate({v}.reshape(1, 1, -1), scale_factor=2.0)",
        "NEW = F.interpolate({v}.reshape(1, 1, -1), size={n})", "NEW = F.pad({v}, (1, 2))", "NEW = F.pad({v}, (0, {n}))", "NEW = F.pad({v}.reshape(1, 1, -1), (1, 1), mode='reflect')", "NEW = F.max_pool1d({v}.reshape(1, 1, -1), 2, ceil_mode=True)",
        "NEW = F.interpolate({v}.reshape(1, 1, -1), scale_factor=1.5, mode='linear')", "NEW = F.fold({v}.reshape(1, 1, -1)[..., :4], (2, 2), 1)", "NEW = torch.trapezoid({v})", "NEW = {v}.quantile(0.5)", "NEW = F.conv1d({v}.reshape(1, 1, -1), torch.ones(1, 1, 2))",
    ],
    "data": [
        "NEW = {v}[{v} > 0]", "NEW = {v}.nonzero().float()", "NEW = torch.masked_select({v}, {v} < 0.5)", "NEW = {v}[({v} > 0).reshape({v}.shape[0], -1).any(1)]", "NEW = torch.where({v} > 0)[0].float()",
        "u = (({v} > 0).sum() % 3 + 1).item(); torch._check(u >= 1); torch._check(u <= 3); NEW = torch.arange(u) * 1.0",
        "u = {i}.reshape(-1)[0].abs().item() % 4; NEW = torch.ones(4)[:u]", "u = ({v}.shape[0] - ({v} > 9).sum()).item(); torch._check(u >= 0); torch._check(u <= {v}.shape[0]); NEW = {v}[:u]",
        "u = ({v} > 0).sum().item(); torch._check(u >= 0); NEW = torch.zeros(u, 2) + {k}", "NEW = {v}.repeat_interleave(2, 0)", "NEW = {v}.repeat_interleave({i}.reshape(-1)[:1].abs() % 3 + 1, 0)",
        "u = {v}.sum().item(); NEW = {w} * u", "NEW = ({v} > 0).nonzero()[:, 0].float().cumsum(0)", "u = {v}.max().item(); NEW = torch.full((2,), u)", "NEW = {v}[{v} > 0].sum() + {w}", "NEW = torch.cat([{v}[{v} > 0], {v}[{v} <= 0]])",
        "NEW = torch.bincount({i}.reshape(-1).abs()).float()", "NEW = torch.unique({i}).float()", "NEW = {v}.reshape(-1)[torch.randperm(1)[0]]", "u = ({v} > 0).sum().item(); NEW = {w} + (u + 1) // 2", "u = ({v} > 0).sum().item(); NEW = {w} * float(u) / 3",
        "NEW = torch.argwhere({v} > 0.2).sum(0).float()", "u = ({v} > 0).any().item(); NEW = {w} + torch.tensor(1.0) * u",
    ],
    "write": [
        "NEW = {v}.clone(); NEW[0] = 1.0", "NEW = {v}.clone(); NEW[..., 0] += 2", "NEW = {v}.clone(); NEW.view(-1)[1:].mul_(2)", "NEW = {v}.clone(); NEW.t()[0].add_(1)", "NEW = {v}.clone(); NEW[NEW > 0] = -1.0",
        "NEW = {v}.clone(); NEW[1:] = NEW[:-1].clone()", "NEW = {v}.clone(); NEW[: NEW.shape[0] // 2].zero_()", "NEW = {v} * 1; NEW.clamp_(-0.5, 0.5); NEW.unsqueeze_(0)", "NEW = {v}.clone(); NEW[::2].copy_({k} * torch.ones(()))", "NEW = {v}.clone(); NEW.index_fill_(0, torch.tensor([0]), 3.0)",
        "self.count.add_(1); NEW = {v} + self.count", "self.state.copy_(self.state * 2 + {v}.mean()); NEW = {v} * self.state", "self.count += {v}.shape[0]; NEW = {v} - self.count", "NEW = {v}.clone(); NEW.select(0, -1).fill_(2.0)", "NEW = torch.zeros_like({v}); NEW[...] = {v}",
        "NEW = torch.zeros({v}.shape[0], {v}.shape[-1] + 1); NEW[:, 1:] = {v}", "NEW = {v}.clone(); NEW.diagonal().fill_(0)", "NEW = {v}.clone(); NEW.masked_fill_({b}.reshape(-1)[0], 4.0)", "NEW = {v}.clone(); a = NEW[0]; a *= 3; b_ = NEW[-1]; b_ += a",
        "NEW = {v}.scatter(0, torch.zeros_like({v}, dtype=torch.int64)[:1], 5.0)", "NEW = torch.zeros(4).index_add(0, {i}.reshape(-1) % 4, torch.ones_like({i}.reshape(-1), dtype=torch.float32))", "NEW = torch.zeros(5).scatter_add(0, {i}.reshape(-1) % 5, {i}.reshape(-1).float())",
        "NEW = {v}.clone(); NEW[{i}.reshape(-1) % NEW.shape[0]] = 0.25", "NEW = {v}.index_put((torch.tensor([0, -1]),), torch.tensor(7.0))", "NEW = {v}.clone(); NEW.transpose(0, -1)[0] = 9.0", "self.table[1:] = 1.5; NEW = self.table[{i}.reshape(-1) % 4].sum() + {v}",
        "NEW = {v}.clone(); c = NEW.chunk(2)[0]; c.neg_()", "NEW = {v}.clone(); torch.relu_(NEW[0]); NEW.add_(1)", "NEW = {v}.clone().reshape(-1); NEW.view(-1).add_(1).mul_(NEW)", "NEW = {v}.expand(2, *{v}.shape).clone(); NEW[0].exp_()",
    ],
    "higher": [
        "NEW = torch.cond({v}.sum() > 0, lambda a: a * 2, lambda a: a - 1, ({v},))", "NEW = torch.cond({v}.shape[0] > 3, lambda a: a.sin(), lambda a: a.cos(), ({v},))", "NEW = torch.cond({w}.mean() > {v}.mean(), lambda a, c: a + c.sum(), lambda a, c: a * c.mean(), ({v}, {w}))",
        "NEW = while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2 + i), (torch.tensor(0), {v}))[1]", "NEW = while_loop(lambda i, a: a.sum() < 50, lambda i, a: (i + 1, a.abs() * 2 + 1), (torch.tensor(0), {v}))[1]",
        "NEW = while_loop(lambda i, a: i < {v}.shape[0], lambda i, a: (i + 1, a + {v}[0] * i), (torch.tensor(0), {v}.clone()))[1]", "NEW = hmap(lambda r, c: r * c.sum(), {v}, {w})", "NEW = hmap(lambda r: torch.cat([r.reshape(-1), r.reshape(-1)]), {v})",
        "NEW = scan(lambda c, r: (c + r, c * r), {v}[0] * 0, {v})[1]", "NEW = scan(lambda c, r: (c * 0.5 + r, c.sum() + r), torch.ones_like({v}[0]), {v})[0]", "NEW = scan(lambda c, r: (c + 1, r + c), torch.zeros(()), {v}, reverse=True)[1]", "NEW = scan(lambda c, r: (c + r.sum(), r * c), torch.zeros(()), {v}, dim={v}.dim() - 1)[1]",
        "NEW = torch.cond({v}.sum() > 0, lambda a: torch.cond(a.mean() > 1, lambda c: c + 1, lambda c: c - 1, (a,)), lambda a: a * 3, ({v},))", "NEW = hmap(lambda r: torch.cond(r.sum() > 0, lambda a: a * 2, lambda a: -a, (r,)), {v})",
        "NEW = torch.cond({b}.reshape(-1)[0], lambda a: a[:1], lambda a: a[-1:], ({v},))", "NEW = scan(lambda c, r: ([c[0] + r, c[1] * 0.5], [c[0].clone(), r * c[1]]), [torch.zeros_like({v}[0]), torch.ones(())], {v})[1][1]",
    ],
    "others": [
        "NEW = {v}.to(torch.float64).sum(0).float()", "NEW = {v}.int().float() * 0.5", "NEW = {v}.clamp(min=-0.3)", "NEW = {v}.exp().clamp(max=4.0)", "NEW = -{v}", "NEW = {v}.bool().float()", "NEW = {v} // 0.3", "NEW = {v} % 0.7", "NEW = F.gelu({v})", "NEW = torch.round({v} * 3)",
        "NEW = F.one_hot({i}.reshape(-1) % 5, 5).float()", "NEW = torch.bucketize({v}, torch.tensor([-1.0, 0.0, 1.0])).float()", "NEW = {v}.to({w}.dtype) * 2", "NEW = ({v} > 0).to(torch.int32) + {k} * 1.5", "NEW = {i}.float() / 3", "NEW = ({i} // 3).float()", "NEW = ({i} % -3).float()",
        "NEW = {v}.argsort(0).float()", "NEW = {v}.argmax().float()", "NEW = torch.isclose({v}, {v} + 1e-9).float()", "NEW = {v}.nan_to_num(0.1)", "NEW = {v}.half().float()", "NEW = F.linear({v}, self.weight[:, : {v}.shape[-1]])", "NEW = {v}.heaviside(torch.tensor(0.5))", "NEW = torch.searchsorted({v}.reshape(-1).sort()[0], torch.tensor([0.0, 0.5])).float()",
        "NEW = {v}.type_as({w})", "NEW = F.dropout({v}, 0.5, False) + 1", "NEW = F.embedding({i} % 4, self.table)", "NEW = {v}.sign() * {v}.abs().sqrt()", "NEW = torch.polar({v}.abs(), {v}).real", "NEW = {v}.fmod(0.4)",
    ],
}

HEAD = """\
import torch
import torch.nn.functional as F
from torch._higher_order_ops import while_loop, scan
from torch._higher_order_ops.map import map as hmap
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.weight = torch.nn.Parameter(torch.randn(4, 64))
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("state", torch.ones(1))
        self.register_buffer("table", torch.randn(4, 3))
    def forward(self, x, y, i, b):
"""


class Exported(Program):
    """A module with forward(x, y, i, b), whose results are the last ones that its statements make. The first statement has the text only."""

    shapes = (4, 6, 3), None  # one size is enough to draw: that of the example

    def __init__(self, rng, only=""):
        self.rng, self.only, self.lines = rng, only, []
        if not any(only in text for texts in STATEMENTS.values() for text in texts):
            raise ValueError(f"no statement has the text {only}")
        self.example = self.inputs(self.shapes[0])
        self.state = self.run([])

    def inputs(self, sizes):
        """Inputs for other sizes than those of the example have other numbers, too."""
        a, b, c = sizes
        g = torch.Generator().manual_seed(self.rng.randrange(1 << 30))
        return torch.randn(a, b, generator=g), torch.randn(c, b, generator=g), torch.randint(0, 20, (a,), generator=g), torch.rand(3, generator=g) > 0.5

    def text(self, lines, results):
        return HEAD + "".join(f"        {line}\n" for line in [*lines, f"return ({', '.join(results)},)"])

    def run(self, lines, which=0):
        made = [f"t{k}" for k in range(len(lines))]
        try:
            model = casefile.source(self.text(lines, ["x", "y", *made]), "draw.py")["Model"]().eval()
            with torch.no_grad():
                state = dict(zip(["x", "y", *made], model(*casefile.copies(self.example))))
        except Exception:  # PyTorch does not take it
            return None
        out = list(state.values())[-1]
        good = isinstance(out, torch.Tensor) and out.dtype.is_floating_point and 0 < out.numel() <= 3000 and torch.isfinite(out).all() and out.abs().max() <= 1e6
        return state if good else None

    def statement(self):
        r, text = self.rng, None
        while text is None or not self.lines and self.only not in text:
            text = r.choice(STATEMENTS[r.choice(list(STATEMENTS))])
        floats = list(self.state)[-4:]
        v, w = r.choice(floats), r.choice(floats)
        n = r.choice([f"{v}.shape[0]", f"{v}.shape[-1]", f"({v}.shape[0] + 1)", f"({w}.shape[0] * 2)"])
        return [text.replace("NEW", f"t{len(self.lines)}").format(v=v, w=w, i="i", b="b", n=n, k=r.randint(1, 3))]

    def source(self):
        """The text of the module."""
        return self.text(self.lines, list(self.state)[2:][-3:])

    def module(self, file):
        """A new module, whose lines are in a file of this name."""
        return casefile.source(self.source(), file)["Model"]().eval()
