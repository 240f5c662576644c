"""Programs over more of the language than randprog.Program: whole modules.

Variables are tensors, and places that hold tensors: elements of lists, dicts, tuples and NamedTuples, buffers of the
module and of its submodules. Statements read and write all of them, so that aliases meet.
"""
import torch

import casefile
from randprog import Program

PRELUDE = '''
import enum


class Pair(NamedTuple):
    a: Tensor
    b: Tensor


class Mode(enum.Enum):
    UP = "up"
    DOWN = "down"


def bump(t: Tensor, k: float = 1.0) -> Tensor:
    t.add_(k)
    return t


def sign_of(t: Tensor) -> int:
    if bool(t.sum() > 0):
        return 1
    if t.numel() > 3:
        return -1
    return 0


def halve(ts: List[Tensor], scale: float) -> List[Tensor]:
    out: List[Tensor] = []
    for t in ts:
        out.append(t * scale)
    ts[0].mul_(2)
    return out


def pick_mode(t: Tensor, mode: str, extra: Optional[Tensor] = None) -> Tensor:
    if extra is not None:
        t = t + extra.sum()
    if mode == "twice":
        return t * 2
    elif mode == "neg":
        return -t
    return t


def steer(t: Tensor, m: Mode) -> Tensor:
    if m == Mode.UP:
        return t + 1
    return t - 1


class Acc(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.tensor([1.0, 2.0]))
        self.calls = 0
        self.scale: float = 0.5

    def forward(self, t: Tensor) -> Tensor:
        self.total += t.float().sum() * self.scale
        self.calls += 1
        if self.calls > 1:
            return t + self.total.sum().to(t.dtype)
        return t * self.calls
'''

MODEL = '''

class Case(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("w", torch.tensor([[1.0, -2.0, 3.0], [0.5, 0.25, -1.0]]))
        self.register_buffer("c", torch.tensor([1, 2, 3]))
        self.acc = Acc()
        self.k: int = 2
        self.names: List[str] = ["twice", "neg", "id"]
        self.subs = nn.ModuleList([nn.ReLU(), nn.Identity()])

    def forward(self, SIGNATURE):
'''

INT_KINDS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


class Wide(Program):
    def __init__(self, rng, script):
        self.names = ["x", "y"]
        self.scalars = script and rng.random() < 0.3  # a trace has no numbers as inputs
        self.n2 = rng.randint(1, 3)
        self.copies = rng.random() < 0.7  # else the inputs themselves are written
        self.helpers = {}
        super().__init__(rng, script)
        self.kind = rng.choice(["f32"] * 6 + ["i64", "f64", "i32", "f16", "bf16", "u8", "i8", "bool"])
        self.state = self.run([])

    def inputs(self, which=0):
        kind, self.kind = self.kind, "f32"
        x, y, i = super().inputs(which)
        self.kind = kind
        dtype = dict(f32=torch.float32, f64=torch.float64, f16=torch.float16, bf16=torch.bfloat16, i64=torch.int64, i32=torch.int32,
                     u8=torch.uint8, i8=torch.int8, bool=torch.bool)[kind]
        if kind == "bool":
            x, y = x > 0, y > 0
        elif dtype in INT_KINDS:
            x, y = (x * 5).long().to(dtype), (y * 5).long().to(dtype)
        else:
            x, y = x.to(dtype), y.to(dtype)
        g = torch.Generator().manual_seed(17 + which)
        n = x.shape[0]
        i = torch.randperm(n, generator=g)[:2] - (n if which else 0)
        more = (2 if which == 0 else self.n2, 0.5 if which == 0 else -1.25) if self.scalars else ()
        return (x, y, i) + more

    def signature(self):
        return "x: Tensor, y: Tensor, i: Tensor" + (", n: int, s: float" if self.scalars else "")

    def module_text(self, lines):
        start = ["x = x.clone()", "y = y.clone()"] if self.copies else []
        return PRELUDE + MODEL.replace("SIGNATURE", self.signature()) + "\n".join("        " + l for l in start + lines) + "\n"

    def run(self, lines, which=0):
        if not hasattr(self, "kind"):
            self.kind = "f32"
        scope = dict(casefile.SCOPE)
        scope["__name__"] = "probe"
        try:
            exec(self.module_text(lines + ["return locals()"]), scope)
            torch.manual_seed(1)
            module = scope["Case"]()
            out = module(*self.inputs(which))
        except Exception:
            return None
        vs = {}

        def visit(path, v):
            if isinstance(v, torch.Tensor):
                vs[path] = v
            elif isinstance(v, tuple) and hasattr(v, "_fields"):
                for f in v._fields:
                    visit(f"{path}.{f}", getattr(v, f))
            elif isinstance(v, (list, tuple)):
                for k, e in enumerate(v):
                    visit(f"{path}[{k}]", e)
            elif isinstance(v, dict):
                for k, e in v.items():
                    visit(f"{path}[{k!r}]", e)

        for k, v in out.items():
            if k not in ("self", "i") and not k.startswith("_") and not k.startswith("o_"):
                visit(k, v)
        if any("self.w" in l for l in lines):
            vs["self.w"] = module.w
        if any("self.c" in l for l in lines):
            vs["self.c"] = module.c
        for v in vs.values():
            if v.numel() > 2000 or v.dim() > 5 or v.is_complex():
                return None
            if v.numel() and v.dtype != torch.bool and (not torch.isfinite(v.double()).all() or v.double().abs().max() > 1e4):
                return None
        return vs

    def add(self, lines):
        if not super().add(lines):
            return False
        if self.script and not self.scripts():
            del self.lines[len(self.lines) - len(lines):]
            self.state = self.run(self.lines)
            return False
        return True

    def scripts(self):
        try:
            cls = casefile.source(self.module_text(self.lines + ["return x"]))["Case"]
            torch.jit.script(cls())
            return True
        except Exception:
            return False

    # --- picking -----------------------------------------------------------

    def pick_place(self):
        if self.rng.random() < 0.08:
            return self.rng.choice(["self.w", "self.w", "self.c"])
        return None

    def pick(self, rank=None, dtype=None):
        if rank is None and dtype is None:
            p = self.pick_place()
            if p:
                if p not in self.state:
                    self.state[p] = torch.tensor([[1.0, -2.0, 3.0], [0.5, 0.25, -1.0]]) if p == "self.w" else torch.tensor([1, 2, 3])
                return p
        return super().pick(rank, dtype)

    def pick_name(self):
        """A plain variable: what an assignment can rebind."""
        names = [n for n in self.state if n.isidentifier() and n != "i"]
        return self.rng.choice(names)

    def same_storage(self, a, b):
        return self.state[a].untyped_storage().data_ptr() == self.state[b].untyped_storage().data_ptr()

    def number(self, v):
        r = self.rng
        if self.scalars and r.random() < 0.15:
            return "s" if v.dtype.is_floating_point else "n"
        if v.dtype == torch.bool:
            return r.choice(["True", "False"])
        if v.dtype in INT_KINDS and r.random() < 0.05:
            return r.choice(["100", "-3"]) if v.dtype != torch.uint8 else "200"
        if v.dtype == torch.uint8:
            return r.choice(["1", "2", "3"])
        if v.dtype.is_floating_point and r.random() < 0.15:
            return r.choice([f"float(self.k)", "self.acc.scale", "x.size(0) * 0.5"])
        return super().number(v)

    def dtype_name(self):
        return self.rng.choice(["torch.float64", "torch.float32", "torch.int64", "torch.int32", "torch.uint8", "torch.int8", "torch.int16", "torch.bool", "torch.float16", "torch.float32"])

    def dims(self, v):
        d = max(v.dim(), 1)
        return self.rng.randrange(-d, d), self.rng.randrange(-d, d)

    def ids(self, size, count=2):
        """Distinct indices, some negative."""
        r = self.rng
        some = r.sample(range(size), min(size, count)) if size else [0]
        return [k - size if r.random() < 0.3 else k for k in some]

    # --- statements --------------------------------------------------------

    def view(self):
        r, n = self.rng, self.pick()
        if r.random() < 0.45:
            return super().view()
        v, w = self.state[n], self.fresh()
        a, b = self.dims(v)
        size = v.shape[a] if v.dim() else 1
        first = v.shape[0] if v.dim() else 1
        forms = [
            f"{n}.as_strided(({min(2, first)},), ({r.randint(1, 2)},))", f"{n}.as_strided(({r.randint(1, 2)}, {r.randint(1, 2)}), ({r.randint(1, 3)}, 1), {r.randint(0, 1)})",
            f"{n}.unfold({a}, {r.randint(1, max(size, 1))}, {r.randint(1, 3)})", f"{n}.swapaxes({a}, {b})", f"{n}.swapdims({a}, {b})", f"{n}.moveaxis({a}, {b})",
            f"{n}.unflatten({a}, (-1, 1))", f"{n}.unflatten({a}, (1, {size}))", f"torch.tensor_split({n}, 2, {a})[{r.choice([0, 1])}]", f"torch.tensor_split({n}, [1], {a})[{r.choice([0, 1])}]",
            f"{n}.ravel()", f"{n}.flatten(0, {r.choice([-1, min(1, max(v.dim() - 1, 0))])})", f"{n}.expand_as({n})", f"torch.broadcast_to({n}, {(2,) + tuple(v.shape)})",
            f"{n}.mT" if v.dim() >= 2 else f"{n}.T", f"{n}.T" if v.dim() <= 2 else f"{n}.mT", f"{n}.diagonal({r.randint(-1, 1)}, {a}, {b})",
            f"{n}.split([1, {max(size - 1, 0)}], {a})[{r.choice([0, 1, -1])}]", f"{n}.split(1, {a})[{self.index(size)}]", f"{n}.chunk({r.randint(1, 3)}, {a})[-1]",
            f"{n}.data", f"{n}.detach()[{self.subscript(v)}]", f"{n}[{self.subscript(v)}][{r.choice(['0', '-1', '...', '::2', 'None'])}]",
            f"{n}.narrow({a}, {-size if r.random() < .3 else 0}, {r.randint(0, size)})", f"{n}.narrow({a}, {n}.size({a}) // 2, 1)",
            f"{n}[{n}.size(0) // 2:]", f"{n}[:{n}.size(0) - 1]", f"{n}[-{n}.size(0):-1]", f"{n}.view({n}.size(0), -1)", f"{n}.reshape({n}.shape[0] * 1, -1)",
            f"{n}.view([{', '.join(map(str, v.shape))}])", f"{n}.view({n}.numel())", f"torch.atleast_2d({n})", f"{n}.squeeze(({a},))" if not self.script else f"{n}.squeeze({a})",
            f"torch.real({n})", f"{n}.positive()" if v.dtype != torch.bool else f"{n}.ravel()", f"{n}.to({v.dtype})", f"{n}.type_as({n})", f"{n}.contiguous()", f"{n}.view_as({n})[0:1]",
            f"torch.select({n}, {a}, {self.index(size)})", f"{n}.hsplit(1)[0]", f"{n}.permute({', '.join(str(k - v.dim() if r.random() < .3 else k) for k in r.sample(range(v.dim()), v.dim()))})",
        ]
        return [f"{w} = {r.choice(forms)}"]

    def source(self, v, n):
        """A tensor that broadcasts into v and does not share its memory."""
        r = self.rng
        m = self.pick()
        w = self.state[m]
        e = r.choice([m, f"{m}.sum()", f"{m}.reshape(-1)[0]", f"{n}", f"{n}.flip(0)" if v.dim() else n, "torch.tensor(2)", f"{n}.sum(0)", f"torch.tensor([1.5])"])
        if e in (m, n) or e.startswith(f"{m}.reshape"):
            e += ".clone()"
        if r.random() < 0.35:
            e = f"({e}).to({self.dtype_name()})"
        return e

    def inplace(self):
        r = self.rng
        if r.random() < 0.4:
            return super().inplace()
        n = self.pick()
        v = self.state[n]
        a, b = self.dims(v)
        size = v.shape[a] if v.dim() else 1
        ids = self.ids(size)
        e = self.source(v, n)
        c = self.number(v)
        fl = v.dtype.is_floating_point
        s, s1 = self.subscript(v, True), self.subscript(v)
        part = f"torch.narrow({n}, {a}, 0, 1).clone()"
        rows = f"torch.tensor({ids})"
        forms = [
            f"{n}.copy_({e})", f"{n}[{s1}].copy_({e})", f"{n}[{s1}] = {e}", f"{n}[...] = {e}", f"{n}[{s}] = {c}", f"{n}.add_({e}, alpha=2)", f"{n}.sub_(1, alpha=2)", f"{n}.rsub(2)",
            f"{n}.scatter_({a}, {part}.long() % {max(size, 1)}, {c})" if size else f"{n}.zero_()", f"{n}.scatter_({a}, torch.zeros_like({part}, dtype=torch.int64), {part} * 2)",
            f"{n}.scatter_add_({a}, torch.zeros_like({n}, dtype=torch.int64), {n}.clone())", f"{n}.scatter_({a}, torch.zeros_like({part}, dtype=torch.int64), {c}, reduce='add')",
            f"{n}.scatter_reduce_({a}, torch.zeros_like({n}, dtype=torch.int64), {n}.clone(), {r.choice(['sum', 'amax', 'amin', 'prod', 'mean'])!r}, include_self={r.random() < .5})",
            f"{n}.index_put_(({rows},), torch.tensor({c}).to({v.dtype}))", f"{n}.index_put_(({n} > 0,), torch.tensor({c}).to({v.dtype}), accumulate={r.random() < .5})",
            f"{n}[{rows}] = {e}", f"{n}[{rows}, 0] += {c}", f"{n}[{rows}[:, None], torch.tensor([0])] = {c}", f"{n}[:, {rows}] *= {c}", f"{n}[..., {rows}] = {e}", f"{n}[i] += {c}", f"{n}[i] = {n}[i.flip(0)]",
            f"{n}[i, 0] = {c}", f"{n}[0, i] = {c}", f"{n}[i[0]] = {c}", f"{n}[int(i[1])] = {c}", f"{n}[{n}.sum({a}) > 0] = {c}" if a == -1 else f"{n}[{n} != 0] = {c}", f"{n}[{n} > {n}.float().mean()] = {c}",
            f"{n}.masked_fill_({n} > 0, {c})", f"{n}.masked_fill_(~({n} > 0), torch.tensor({c}).to({v.dtype}))", f"{n}.masked_scatter_({n} > 0, {n}.clone().flip(0))", f"{n}[{n} > 0] = {n}[{n} > 0] * 2",
            f"{n}[{n}[..., 0] > 0] = {c}", f"{n}[{n}[0] > 0] = {c}", f"{n}.put_(torch.tensor([0]), torch.tensor([{c}]).to({v.dtype}))", f"{n}.fill_diagonal_({c})", f"{n}.triu_({r.randint(-1, 1)})",
            f"{n}.clamp_(min={c})", f"{n}.clamp_max_({c})", f"{n}.pow_(2)", f"{n}.lerp_({n}.clone(), 0.5)" if fl else f"{n}.bitwise_xor_({n}.clone())", f"{n}.sigmoid_()" if fl else f"{n}.bitwise_and_({n}.clone())",
            f"{n}.tanh_()" if fl else f"{n}.bitwise_or_({n}.clone())", f"{n}.addcdiv_({n}.clone(), {n}.abs() + 1)" if fl else f"{n}.bitwise_not_()", f"{n}.gt_(0)", f"{n}.eq_({n}.clone())", f"{n}.logical_not_()",
            f"{n}.div_(2)" if fl else f"{n}.div_(2, rounding_mode='floor')", f"{n}.div_({c}, rounding_mode='trunc')", f"{n}.floor_divide_({c})", f"{n}.remainder_({c})", f"{n}.fmod_(2)", f"{n}.square_()", f"{n}.sign_()",
            f"torch.add({n}, {c}, out={n})", f"torch.mul({n}, {n}, out={n})", f"torch.sub({n}.clone(), 1, out={n}[...])", f"torch.cat([{n}.clone()], out={n})", f"torch.neg({n}.clone(), out={n})",
            f"torch.clamp({n}, -1, 1, out={n})", f"torch.sum({n}.clone(), {a}, keepdim=True, out={n}.narrow({a}, 0, 1))", f"torch.maximum({n}, {n}.clone() * 2, out={n})",
            f"{n}.chunk(2, {a})[{r.choice([0, -1])}].mul_({c})", f"{n}.split(1, {a})[{self.index(size)}].add_({c})", f"{n}.unbind({a})[{self.index(size)}].fill_({c})", f"{n}.narrow({a}, 0, 1).zero_()", f"{n}.diagonal({r.randint(-1, 1)}).add_({c})",
            f"{n}.movedim({a}, {b})[0] = {c}", f"{n}.as_strided((2,), (1,), 1).fill_({c})", f"{n}.unfold({a}, 2, 2).mul_({c})", f"{n}.unfold({a}, 1, 2)[0] = {c}", f"{n}.data.add_({c})", f"{n}.detach()[{s1}] = {c}", f"{n}.data[{s}] = {c}",
            f"{n}.expand_as({n}).add_({c})", f"{n}.unsqueeze(0)[0].mul_({c})", f"{n}.view(-1)[::2] = {c}", f"{n}.view(-1)[1::2].neg_()" if v.dtype not in (torch.bool,) else f"{n}.zero_()", f"{n}.flatten()[0] = {c}", f"{n}.reshape(-1)[-1:] += {c}", f"{n}.t()[0] = {c}" if v.dim() == 2 else f"{n}.zero_()",
            f"{n}.transpose({a}, {b})[{self.index(size)}] = {c}", f"{n}.select({a}, {self.index(size)}).copy_({e})", f"{n}.index_fill_({a}, i, {c})", f"{n}.index_copy_({a}, {rows}, {n}.index_select({a}, {rows}).clone() * 2)" if min(ids) >= 0 else f"{n}.zero_()",
            f"{n}.index_add_({a}, torch.zeros({size}, dtype=torch.int64), {n}.clone(), alpha=2)", f"{n} |= True" if v.dtype == torch.bool else f"{n} //= 2", f"{n} **= 2" if not self.script else f"{n} *= {n}", f"{n} -= {n}.clone()", f"{n} /= 2" if fl else f"{n} %= 3", f"{n}[0] += {n}[-1]" if v.dim() else f"{n} += 1",
            f"{n}[{s1}] -= {n}[{s1}] * 2", f"{n}[1:] += {n}[:-1].clone()" if v.dim() else f"{n} += 1", f"{n}.cumsum_({a})", f"{n}.cumprod_({a})", f"{n}.addmm_({n}, {n}.t())" if v.dim() == 2 and v.shape[0] == v.shape[1] else f"{n}.abs_()", f"F.relu({n}, inplace=True)", f"F.leaky_relu({n}, 0.1, inplace=True)" if fl else f"{n}.neg_()",
            f"torch.nn.functional.hardtanh({n}, -1., 1., inplace=True)" if fl else f"{n}.neg_()", f"{n}.where({n} > 0, {n} * 2)", f"{n}.set_({n}.clone())" if r.random() < .05 else f"{n}.trunc_()" , f"{n}.round_()", f"{n}.ceil_()", f"{n}.sort({a}, out=({n}, {n}.long()))" if r.random() < .02 else f"{n}.abs_()",
        ]
        return [r.choice(forms)]

    def metadata(self):
        r, n = self.rng, self.pick()
        v = self.state[n]
        a, b = self.dims(v)
        return [r.choice([f"{n}.t_()" if v.dim() <= 2 else f"{n}.unsqueeze_({a})", f"{n}.squeeze_()", f"{n}.squeeze_({a})", f"{n}.transpose_({a}, {b})", f"{n}.swapaxes_({a}, {b})", f"{n}.swapdims_({a}, {b})", f"{n}.unsqueeze_({a})"])]

    def compute(self):
        r = self.rng
        if r.random() < 0.35:
            return super().compute()
        n, m, w = self.pick(), self.pick(), self.fresh()
        v = self.state[n]
        a, b = self.dims(v)
        size = v.shape[a] if v.dim() else 1
        c = self.number(v)
        fl = v.dtype.is_floating_point
        ids = self.ids(size, 3)
        dt = self.dtype_name()
        forms = [
            f"{n}.to({dt})", f"{n}.to({dt})", f"{n}.to({dt}) + {c}", f"{n}.to(torch.uint8) + 200", f"{n}.to(torch.int8) * 100", f"{n}.to(torch.int16) * 300", f"{n}.to(torch.int32) << 2", f"{n}.to(torch.int64) >> 1",
            f"{n} // {c}", f"{n} % {c}", f"torch.fmod({n}, 2)", f"torch.remainder({n}, -3)" if v.dtype != torch.uint8 else f"{n} % 3", f"torch.div({n}, 2, rounding_mode='floor')", f"torch.div({n}, -2, rounding_mode='trunc')" if v.dtype != torch.uint8 else f"{n} / 3", f"torch.floor_divide({n}, 3)", f"{n} / {c}", f"2 - {n}" if v.dtype != torch.bool else f"~{n}", f"1 / ({n}.abs() + 1)", f"2 ** {n}.clamp(0, 4)", f"{n} ** 2",
            f"{n}.bool() & ({m}.sum() > 0)", f"{n}.bool() | ({n} > 0)", f"({n} > 0) ^ ({n} < 1)", f"~({n} > 0)", f"-{n}" if v.dtype != torch.bool else f"{n} + {n}", f"{n}.long() & 3", f"{n}.to(torch.uint8) ^ 255", f"{n}.int() | 1", f"~{n}.int()",
            f"{n} + {m}.to({dt})", f"{n} * True", f"({n} > 0) * 2.5", f"({n} > 0) + ({m}.sum() > 0)", f"{n} + torch.tensor({c})", f"{n} + torch.tensor([{c}])", f"torch.tensor(2.5) * {n}", f"{n}.sum()", f"{n}.sum(dtype=torch.float64)", f"({n} > 0).sum({a})", f"{n}.float().mean({a}, keepdim=True)", f"{n}.float().std({a})" if size > 1 else f"{n}.sum()", f"{n}.float().var({a}, unbiased=False)", f"{n}.prod({a}) % 100", f"{n}.amax({a})", f"{n}.min({a})[1]", f"{n}.argmax({a})", f"{n}.argsort({a})" if False else f"{n}.float().argmin()", f"{n}.any({a})", f"{n}.all()", f"{n}.float().norm()", f"{n}.float().logsumexp({a})", f"torch.maximum({n}, {m})", f"{n}.float().round()", f"{n}.float().floor() // 2", f"{n}.float().trunc()", f"({n}.float() * 0.3).int()", f"{n}.float().sign()",
            f"torch.where({n} > 0, {n}, {c})", f"torch.where({n} > 0, 1, 0)", f"torch.where({n} > 0, 1.5, 0)", f"{n}.gather({a}, torch.zeros_like({n}, dtype=torch.int64))", f"torch.take({n}, torch.tensor([0, -1]))", f"{n}.scatter({a}, torch.zeros_like({n}, dtype=torch.int64), {c})", f"{n}.index_select({a}, torch.tensor({[k % max(size, 1) for k in ids]}))", f"{n}[{self.subscript(v, True)}]", f"{n}[torch.tensor({ids})]", f"{n}[..., torch.tensor({ids})]", f"{n}[{n} > 0]", f"{n}[{n} > 0].sum()", f"{n}.nonzero().size(0) + {n}.sum()", f"{n}.masked_select({n} > 0).float().sum()", f"{n}.masked_fill({n} > 0, {c})", f"torch.index_put({n}, (torch.tensor([0, 0]),), torch.tensor({c}).to({v.dtype}), accumulate=True)",
            f"torch.cat([{n}, {n}.flip({a})], {a})", f"torch.cat([{n}, {n}.float()], {a})", f"torch.stack([{n}, {n}], {a})", f"torch.stack({n}.unbind({a}), 0)", f"torch.cat({n}.split(1, {a}), {b})", f"torch.zeros({n}.size({a}), 2)", f"torch.ones_like({n}, dtype={dt})", f"torch.full(({n}.numel(),), {c})", f"torch.full_like({n}, {c})", f"{n}.new_full(({n}.size({a}),), {c})", f"{n}.new_ones({n}.shape[-1])", f"torch.arange({n}.size({a}), -1, -1)", f"torch.arange(0, {n}.numel(), 2)", f"torch.arange({n}.size({a}) * 0.5)", f"torch.eye({n}.size({a}))", f"torch.linspace(0, 1, {n}.size({a}))", f"torch.zeros({n}.size({a}), {n}.size(-1)) + {n}.sum()", f"torch.empty_like({n}).fill_({c})", f"torch.zeros({n}.size(0) // 2 + 1, dtype={dt})",
            f"{n}.repeat_interleave(2, {a})", f"{n}.repeat({n}.dim() + 1, {', '.join(['1'] * v.dim())})" if v.dim() else f"{n}.repeat(2)", f"{n}.tile((2,))", f"{n}.roll(({r.randint(-2, 2)},), ({a},))", f"{n}.rot90()" if v.dim() >= 2 else f"{n}.flip(0)", f"{n}.flip(({a},))", f"F.pad({n}.float(), (1, -1))", f"F.pad({n}, ({r.randint(-1, 2)}, {r.randint(-1, 2)}), value={c})" if fl else f"F.pad({n}, (1, 0))", f"{n}.diag()" if v.dim() in (1, 2) else f"{n}.clone()", f"{n}.tril({r.randint(-1, 1)})", f"torch.diff({n}, dim={a})" if v.dtype != torch.bool else f"{n}.cumsum({a})", f"{n}.float() @ {n}.float().t()" if v.dim() == 2 else f"{n} * {n}", f"torch.outer({n}.flatten()[:3], {m}.flatten()[:2])", f"{n}.float().softmax({a})", f"F.one_hot({n}.long().abs() % 3, 3)", f"{n}.cummax({a})[0]", f"{n}.float().topk(1, {a})[0]", f"{n}.sort({a}, descending=True)[0]", f"torch.clamp({n}, max={c})", f"{n}.clip(0, 2)", f"torch.isin({n}, {n}.flatten()[:1])", f"{n}.bincount()" if v.dim() == 1 and v.dtype in INT_KINDS and bool((v >= 0).all()) else f"{n} == {n}", f"{n}.eq({m})", f"{n}.ne({c})", f"{n} >= {m}.sum()", f"torch.logical_xor({n}, {m})", f"{n}.float().exp().clamp(max=10)", f"{n}.abs().float().log1p()", f"{n}.float().reciprocal().clamp(-5, 5)" if not bool((v == 0).any()) else f"{n} + 1", f"torch.lerp({n}.float(), {n}.float() * 2, 0.25)", f"{n}.float().addcmul({n}.float(), {n}.float(), value=0.5)",
            f"self.acc({n})", f"self.subs[{r.choice([0, 1])}]({n})", f"bump({n}, 2.0)" if fl else f"bump({n}.float())", f"pick_mode({n}, self.names[{r.choice([0, 1, 2])}])", f"pick_mode({n}, 'neg', {m})", f"steer({n}, Mode.{r.choice(['UP', 'DOWN'])})", f"{n} + sign_of({m})", f"{n} * self.k", f"{n} + len({n})" if v.dim() else f"{n} + 1",
            f"halve([{n}, {m}], 0.5)[{r.choice([0, -1])}]", f"(lambda t: t + 1)({n})" if not self.script else f"{n} + 1",
        ]
        return [f"{w} = {r.choice(forms)}"]

    def scalar(self):
        """Numbers computed from tensors and shapes, back into tensors."""
        r, n, w = self.rng, self.pick(), self.fresh()
        v = self.state[n]
        a, _ = self.dims(v)
        src = r.choice([f"{n}.size({a})", f"{n}.numel()", f"int({n}.sum())", f"int({n}.float().max() * 3)", f"{n}.dim()", f"len({n}.shape)", f"{n}.shape[{a}] - 1", "self.k", f"int(i[0])", f"{n}.flatten()[0].int().item()" if not self.script else f"int({n}.flatten()[0].item())"] + (["n"] * 3 if self.scalars else []))
        k = f"o_{w}"
        d = r.choice(["3", "2", "-2", "-3"])
        expr = r.choice([f"{k} // {d}", f"{k} % {d}", f"{k} / {d}", f"{k} * {d} - 1", f"-{k}", f"abs({k})", f"max({k}, 1)", f"min({k}, 2)", f"{k} ** 2", f"float({k}) / 2", f"int({k} / {d})", f"({k} + 1) // 2 * 2", f"math.floor({k} / 2)", f"math.ceil({k} / 2)", f"math.sqrt(abs({k}))",
                         f"float({k}) // 0.75", f"float({k}) % -0.7", f"round({k} / 3)", f"bool({k} > 1)", f"{k} > 1 and {k} < 4", f"1 if {k} > 2 else 0", f"{k} if {k} % 2 == 0 else -{k}", f"divmod({k}, 3)[1]", f"({k} & 3) + ({k} | 1)", f"{k} ^ 5", f"{k} == 2", f"not ({k} > 1)", f"int({k} > 1) + int(True)", f"math.pow(float({k}), 2.)", f"{k} << 1" if True else ""])
        use = r.choice([f"{w} = {n} * ({expr})" if v.dtype != torch.bool else f"{w} = torch.full((2,), {expr})", f"{w} = torch.tensor({expr})", f"{w} = {n} + torch.tensor([{expr}])", f"{w} = torch.full((2, 2), {expr})", f"{w} = {n}[:max(int({expr}), 1)]", f"{w} = torch.arange(min(abs(int({expr})), 6))", f"{w} = torch.zeros(abs(int({expr})) % 4, 2)", f"{w} = {n}.narrow({a}, int({expr}) % {n}.size({a}), 1)" if v.dim() else f"{w} = {n} + 1", f"{w} = {n}.select({a}, int({expr}) % {n}.size({a}))" if v.dim() else f"{w} = {n} + 1", f"{w} = {n}.roll(int({expr}), {a})", f"{w} = {n}.repeat(abs(int({expr})) % 3 + 1, {', '.join(['1'] * v.dim())})" if v.dim() else f"{w} = {n} + 1"])
        return [f"{k} = {src}", use]

    def container(self):
        r, n, m = self.rng, self.pick(), self.pick()
        w = self.fresh()
        v = self.state[n]
        a, _ = self.dims(v)
        c = self.number(v)
        lists = sorted({p.split("[")[0] for p in self.state if p.startswith("l") and "[" in p})
        dicts = sorted({p.split("[")[0] for p in self.state if p.startswith("d") and "[" in p})
        num = w[1:]
        forms = [
            [f"l{num} = [{n}, {m}]"], [f"l{num} = [{n}, {n}.clone(), {m}]"], [f"d{num} = {{'a': {n}, 'b': {m}}}"], [f"t{num} = ({n}, {m})"], [f"p{num} = Pair({n}, {m} * 1)"],
            [f"{w}, {w}_b = {n}, {m}"], [f"{w}, {w}_b = {n}.chunk(2, {a})"] if v.dim() and v.shape[a] >= 2 else [f"{w} = {n}"], [f"l{num} = list({n}.unbind({a}))"] if not self.script else [f"l{num} = {n}.unbind({a})"], [f"l{num} = {n}.split(1, {a})"] if self.script else [f"l{num} = list({n}.split(1, {a}))"],
            [f"{w} = torch.stack([o_t * 2 for o_t in {n}.unbind({a})])"], [f"{w} = torch.cat([o_t.reshape(-1) for o_t in [{n}, {m}]])"], [f"{w} = torch.tensor([o_k * 2 for o_k in {n}.shape])"], [f"{w} = {n} + sum([1, {n}.size({a})])" if v.dim() else f"{w} = {n} + 1"], [f"t{num} = {n}.max({a})"] if v.dim() else [f"{w} = {n} + 1"], [f"{w} = ({n}, ({m}, {n}))[1][0]"], [f"{w} = [{n}, {m}][{r.choice(['0', '-1', 'self.k - 1'])}]"],
        ]
        if lists:
            l = r.choice(lists)
            forms += [[f"{l}.append({n})"], [f"{l}.insert(0, {n})"], [f"{w} = {l}.pop()"], [f"{w} = {l}.pop(0)"], [f"{l}.reverse()"], [f"{l} = {l}[1:] + [{n}]"], [f"{l}.extend([{n} * 2])"], [f"{l}[0] = {n}"], [f"{l}[-1] = {l}[0]"], [f"for o_t in {l}:", f"    o_t.add_(1)"], [f"for o_k, o_t in enumerate({l}):", f"    o_t.mul_(o_k + 1)"], [f"{l} = [o_t + 1 for o_t in {l}]"], [f"{w} = torch.cat([o_t.flatten() for o_t in {l}])"], [f"{w} = torch.stack({l})"], [f"{w} = {l}[len({l}) - 1]"], [f"for o_a, o_b in zip({l}, {l}[1:]):", f"    o_a.copy_(o_b.sum() * 1)"], [f"{w} = halve({l}, 0.5)[0]"], [f"{l}[0] += 1"], [f"{l}.copy().append({n})" if False else f"{l} = {l} + {l}[:1]"], [f"del {l}[0]"] if len([p for p in self.state if p.startswith(l + '[')]) > 1 else [f"{l}.append({n})"], [f"l{num} = [{l}[0], {n}]"], [f"l{num} = {l}"], [f"l{num} = {l}[:]"]]
        if dicts:
            d = r.choice(dicts)
            forms += [[f"{d}['c'] = {n}"], [f"{d}['a'] = {d}['b']"], [f"{d}['a'].add_(1)"], [f"{w} = {d}.pop('a')" if r.random() < .3 else f"{w} = {d}['a']"], [f"for o_t in {d}.values():", "    o_t.mul_(2)"], [f"for o_k, o_t in {d}.items():", "    if o_k == 'b':", "        o_t.zero_()"], [f"{w} = {d}['z'] if 'z' in {d} else {n}"], [f"{d}.update({{'b': {n}}})"], [f"{w} = torch.stack([o_t.sum() for o_t in {d}.values()])"], [f"{w} = {n} + len({d})"], [f"d{num} = {d}"]]
        return r.choice(forms)

    def cond(self, n, tensors=True):
        r = self.rng
        forms = [f"{n}.size(0) > 2" if self.state[n].dim() else f"{n}.numel() == 1", f"{n}.numel() % 2 == 0", "self.k > 1", "self.training", f"{n}.dim() > 1"]
        if self.scalars:
            forms += ["n > 1", "s > 0"]
        if tensors:
            forms += [f"bool({n}.sum() > 0)", f"bool(({n} > 0).any())", f"int(({n} != 0).sum()) % 2 == 0", f"{n}.float().mean() > 0.1", f"bool({n}.flatten()[0] > 0) or bool(i[0] < 0)", f"bool(i.sum() > 1) and {n}.numel() > 2", f"{n}.sum().item() > 0" if not self.script else f"float({n}.sum()) > 0."]
        return r.choice(forms)

    def branch(self):
        r = self.rng
        if r.random() < 0.3:
            return super().branch()
        n, w = self.pick(), self.fresh()
        m = self.pick_name()
        mv = self.state[m]
        k = r.random()
        c1, c2 = self.cond(n), self.cond(self.pick())
        if k < 0.2:  # nested
            return [f"if {c1}:"] + self.indent(self.some(1) + [f"if {c2}:"] + self.indent(self.some(1)) + ["else:"] + self.indent(self.some(1))) + self.some(1)
        if k < 0.35:  # elif chain
            return [f"if {c1}:"] + self.indent(self.some(1)) + [f"elif {c2}:"] + self.indent(self.some(2)) + ["else:"] + self.indent([f"{m} = {m} * {self.number(mv)}"])
        if k < 0.5:  # a view or itself
            return [f"if {c1}:", f"    {w} = {n}", "else:", f"    {w} = {n}.clone()", f"{w}.mul_({self.number(self.state[n])})"]
        if k < 0.62:  # an optional
            return [f"{w}: Optional[Tensor] = None", f"if {c1}:", f"    {w} = {n} * 2", f"if {w} is not None:", f"    {m} = {m} + {w}.sum().to({m}.dtype)", f"{w} = {m} * 1"]
        if k < 0.72:
            return [f"{w} = {n} if {c1} else {n}.flip(0)" if self.state[n].dim() else f"{w} = {n} + 1"]
        if k < 0.82:
            return [f"if {c1}:", f"    {w} = {n}[0]", "else:", f"    {w} = {n}[-1]", f"{w} += 1"] if self.state[n].dim() else [f"{w} = {n}"]
        if k < 0.9:
            return [f"o_{w} = 0", f"if {c1}:", f"    o_{w} = 1", f"    {self.inplace()[0]}", f"{w} = {n}.select(0, o_{w} % {n}.size(0))" if self.state[n].dim() else f"{w} = {n}"]
        return [f"o_{w} = 'twice' if {c1} else 'neg'", f"{w} = pick_mode({n}, o_{w})"]

    def loop(self):
        r = self.rng
        if r.random() < 0.3:
            return super().loop()
        n, w = self.pick(rank=(1, 2, 3)), self.fresh()
        if n is None:
            return self.branch()
        m = self.pick_name()
        v, mv = self.state[n], self.state[m]
        c = self.number(v)
        o = f"o_{w}"
        forms = [
            [f"{o} = 0", f"while {o} < {n}.size(0) and bool({n}[{o}].sum() < 3):", f"    {n}[{o}] += {c}", f"    {o} += 1"],
            [f"{o} = 0", f"while bool({n}.sum() < 10) and {o} < 4:", f"    {n}.add_(1)", f"    {o} += 1", f"{w} = torch.tensor({o})"],
            [f"for {o} in range({n}.size(0)):", f"    if bool({n}[{o}].sum() > 0):", "        break", f"    {n}[{o}] = {c}"],
            [f"for {o} in range({n}.size(0)):", f"    if {o} % 2 == 1:", "        continue", f"    {n}[{o}].mul_({c})"],
            [f"{w} = {n}[0]", f"for {o} in range({n}.size(0)):", f"    {w} = {n}[{o}]", f"    {w}.add_({c})"],
            [f"{w} = {n}", f"for {o} in range(2):", f"    {w} = {w}.transpose(0, -1)", f"    {w}[0] += {c}"],
            [f"{w} = {n}.clone()", f"for {o} in range({n}.size(0)):", f"    {w}[{o}:] = {w}[{o}:] * 2", f"    if {o} > 1:", "        break"],
            [f"{w}_l: List[Tensor] = []", f"for {o} in range({n}.size(0)):", f"    {w}_l.append({n}[{o}] * {o})", f"{w} = torch.stack({w}_l)"],
            [f"{w}_l: List[Tensor] = []", f"for {o} in range({n}.size(0)):", f"    if bool({n}[{o}].sum() > 0):", f"        {w}_l.append({n}[{o}])", f"{w} = torch.tensor(len({w}_l))"],
            [f"for {o} in {n}:", f"    {o}.mul_({c})"], [f"for {o} in {n}.unbind(-1):", f"    {o}.add_({c})"],
            [f"{w} = torch.zeros_like({n}[0])", f"for {o} in range({n}.size(0)):", f"    for {o}b in range(2):", f"        {w} = {w} + {n}[{o}] * {o}b"],
            [f"{w} = {n}.sum()", f"for {o} in range({n}.size(-1)):", f"    {w} = {w} + {n}[..., {o}].sum() * {o}", f"    if bool({w} > 5):", f"        {w} = {w} - 5"],
            [f"for {o} in range(0, {n}.size(0), 2):", f"    {n}[{o}:{o} + 1].neg_()" if v.dtype not in (torch.bool,) else f"    {n}[{o}] = True"],
            [f"for {o} in range({n}.size(0)):", f"    {n}[{o}], {n}[-1] = {n}[-1].clone(), {n}[{o}].clone()" if not self.script else f"    {n}[{o}] = {n}[-1].clone()"],
            [f"{w} = {n}", f"for {o} in range(3):", f"    {w} = torch.cat([{w}, {n}[:1]])"],
            [f"{o}k = 0", f"for {o} in range({n}.numel()):", f"    if bool({n}.view(-1)[{o}] > 0):", f"        {o}k += {o}", f"{w} = torch.tensor([{o}k])"],
            [f"{w} = {n}[0].clone()", f"for {o} in range(1, {n}.size(0)):", f"    {w} = torch.where({n}[{o}] > {w}, {n}[{o}], {w})"],
            [f"{o} = {n}.size(0)", f"while {o} > 1:", f"    {o} = {o} // 2", f"    {n}[{o}] *= {c}"],
            [f"{o} = 5", f"while True:", f"    {o} -= 1", f"    if {o} < 2:", "        break", f"    {m} = {m} + 1" if mv.dtype != torch.bool else "    pass"],
            [f"for {o} in range({n}.size(0)):", f"    self.acc.total += {n}[{o}].float().sum() * 0.1", f"{w} = self.acc.total * 1"],
        ]
        return r.choice(forms)

    def buffers(self):
        r, w = self.rng, self.fresh()
        n = self.pick()
        return r.choice([["self.w.add_(1)"], ["self.w[0] = 2.0"], [f"self.w = self.w * 2"], [f"{w} = self.w[0]", f"{w}.mul_(-1)"], [f"self.c[0] += {self.k_text()}"], [f"{w} = self.acc({n})"], [f"{w} = self.w.t()", f"{w}[0] = 7.0"], ["self.k += 1"] if self.script else ["self.w.mul_(2)"], [f"self.acc.total[0] = {n}.float().sum()", f"{w} = self.acc.total + 1"], [f"self.acc.scale = 0.25", f"{w} = self.acc({n})"] if self.script else ["self.w.zero_()"]])

    def k_text(self):
        return self.rng.choice(["1", "self.k", "x.size(0)"])

    def kinds(self):
        kinds = [self.view] * 6 + [self.inplace] * 7 + [self.compute] * 4 + [self.metadata] + [self.container] * 3 + [self.scalar] * 2 + [self.buffers]
        return kinds + ([self.branch] * 3 + [self.loop] * 3 if self.script else [])

    def body(self):
        r = self.rng
        names = [n for n, v in self.state.items() if v.numel() > 0 and n != "i"]
        keep = [n for n in ("x", "y") if n in names]
        rest = [n for n in names if n not in keep]
        rest = rest[-5:] if r.random() < .6 else r.sample(rest, min(5, len(rest)))
        outs = keep + rest
        if not outs:
            return None
        form = r.random()
        clone = ".clone()" if r.random() < .6 else ""
        text = list(self.lines)
        if self.script and r.random() < .15:
            # an early return of the same types
            at = r.randint(0, len(text))
            if self.top(text, at):
                early = []
                before = self.run(text[:at])
                for o in outs:
                    same = [k for k, v in (before or {}).items() if v.dtype == self.state[o].dtype and v.dim() == self.state[o].dim() and v.numel()]
                    early.append(r.choice(same) if same else None)
                if all(early):
                    self.state_saved = self.state
                    text.insert(at, f"if {self.cond('x')}:")
                    text.insert(at + 1, "    return " + ", ".join(f"{e} * 1" if self.state[o].dtype != torch.bool else f"{e}.clone()" for e, o in zip(early, outs)))
                    clone = ".clone()"
                    form = 1
        if form < 0.12:
            text.append("return {" + ", ".join(f"'o{k}': {o}{clone}" for k, o in enumerate(outs)) + "}")
        elif form < 0.2:
            text.append("return [" + ", ".join(f"{o}{clone}" for o in outs) + "]")
        elif form < 0.26:
            text.append(f"return Pair({outs[0]}{clone}, {outs[-1]}{clone})")
        elif form < 0.32:
            text.append(f"return {outs[0]}{clone}, ({', '.join(o + clone for o in outs[1:])},)" if len(outs) > 1 else f"return {outs[0]}{clone}")
        else:
            text.append("return " + ", ".join(f"{o}{clone}" for o in outs))
        return text

    @staticmethod
    def top(text, at):
        return at == len(text) or not (text[at].startswith(" ") or text[at].startswith("el"))
