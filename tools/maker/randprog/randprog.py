#!/usr/bin/env python3
"""Makes random programs over views, in-place operators, indices, branches, loops and dtypes.

Every program is run by PyTorch while it grows, so that all of its statements
are valid; it is then traced or scripted, saved, and its outputs recorded, as
a case (tools/lib/cases).

    python3 randprog.py --out DIR --count 200 --seed 1
"""
import argparse
import os
import random
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../judge/python"))
import casefile  # noqa: E402

FLOATS = [torch.float32]
LIMIT = 1e4  # values beyond are not kept: differences in rounding would grow


class Program:
    """Source lines of a forward(x, y, i), and the values of its variables."""

    def __init__(self, rng, script):
        self.rng, self.script = rng, script
        self.lines, self.count = [], 0
        dims = rng.choice([(3, 4), (4, 4), (2, 3, 4), (5,), (4, 3), (2, 4, 2), (3, 5)])
        other = tuple(d + rng.choice([1, 2]) if a == 0 else d for a, d in enumerate(dims))
        self.shapes = (dims, other if rng.random() < 0.5 else None)
        self.kind = rng.choice(["f32"] * 6 + ["i64", "f64", "i32"])
        self.state = self.run([])

    def inputs(self, which=0):
        g = torch.Generator().manual_seed(7 + which)
        shape = self.shapes[which]
        x = torch.randn(shape, generator=g)
        y = torch.randn(shape, generator=g)
        if self.kind in ("i64", "i32"):
            d = torch.int64 if self.kind == "i64" else torch.int32
            x, y = (x * 5).to(d), (y * 5).to(d)
        elif self.kind == "f64":
            x, y = x.double(), y.double()
        i = torch.randint(-shape[0], shape[0], (2,), generator=g)
        return x, y, i

    def text(self, lines):
        return "def forward(self, x, y, i):\n" + "\n".join("    " + l for l in lines or ["pass"])

    def run(self, lines, which=0):
        """The variables after the lines, or None if they are not valid."""
        scope = {"torch": torch}
        try:
            exec(self.text(["x = x.clone()", "y = y.clone()"] + lines + ["return locals()"]), scope)
            out = scope["forward"](None, *self.inputs(which))
        except Exception:
            return None
        vs = {k: v for k, v in out.items() if isinstance(v, torch.Tensor) and k != "self"}
        for v in vs.values():
            if v.numel() > 2000 or v.dim() > 5:
                return None
            if v.numel() and v.dtype != torch.bool and (not torch.isfinite(v.double()).all() or v.double().abs().max() > LIMIT):
                return None
        return vs

    def add(self, lines):
        s = self.run(self.lines + lines)
        if s is None:
            return False
        if self.shapes[1] and self.run(self.lines + lines, 1) is None:
            if self.rng.random() < 0.7:
                return False
            self.shapes = (self.shapes[0], None)
        self.lines += lines
        self.state = s
        return True

    def fresh(self):
        self.count += 1
        return f"v{self.count}"

    def pick(self, rank=None, dtype=None):
        names = [n for n, v in self.state.items() if n != "i" and (rank is None or v.dim() in rank) and (dtype is None or v.dtype in dtype)]
        if not names:
            return None
        # later variables are the more interesting ones
        return names[min(len(names) - 1, int(len(names) * self.rng.random() ** 0.6))]

    def index(self, size):
        return self.rng.randrange(-size, size) if size else 0

    def subscript(self, v, tensors=False):
        """Text of a random index into v."""
        r, parts, used = self.rng, [], 0
        n = r.randint(1, max(v.dim(), 1))
        for a in range(n):
            size = v.shape[a] if a < v.dim() else 1
            k = r.random()
            if k < 0.3:
                parts.append(str(self.index(size)))
            elif k < 0.65:
                lo = r.choice(["", "", str(r.randint(-size, size)), "1"])
                hi = r.choice(["", "", str(r.randint(-size, size + 1)), "-1"])
                step = r.choice(["", "", ":2"])
                parts.append(f"{lo}:{hi}{step}")
            elif k < 0.72:
                parts.append("None")
                parts.append(":")
            elif k < 0.76 and "..." not in parts:
                parts.append("...")
                break
            elif tensors and k < 0.9 and not used:
                used = 1
                ids = [self.index(size) for _ in range(r.randint(1, 3))]
                parts.append(r.choice([f"torch.tensor({ids})", str(ids), "i"]))
            else:
                parts.append(":")
        return ", ".join(parts)

    # statements, by kind

    def metadata(self):
        """In-place operators on the shape: not in branches, where the rank would depend on data."""
        r, n = self.rng, self.pick()
        v = self.state[n]
        d = max(v.dim(), 1)
        a = r.randrange(-d, d)
        return [r.choice([f"{n}.t_()" if v.dim() == 2 else f"{n}.unsqueeze_({a})", f"{n}.squeeze_({a})", f"{n}.transpose_({a}, -1)" if v.dim() else f"{n}.neg_()"])]

    def view(self):
        r, n = self.rng, self.pick()
        v, w = self.state[n], self.fresh()
        d = max(v.dim(), 1)
        a, b = r.randrange(-d, d), r.randrange(-d, d)
        size = v.shape[a] if v.dim() else 1
        total = v.numel()
        divisors = [k for k in range(1, total + 1) if total % k == 0] or [1]
        k = r.choice(divisors)
        forms = [
            f"{n}[{self.subscript(v)}]", f"{n}[{self.subscript(v)}]", f"{n}.transpose({a}, {b})", f"{n}.select({a}, {self.index(size)})",
            f"{n}.narrow({a}, {r.randint(0, max(size - 1, 0))}, 1)", f"{n}.unsqueeze({a})", f"{n}.squeeze()", f"{n}.squeeze({a})",
            f"{n}.reshape(-1)", f"{n}.view(-1)", f"{n}.reshape({k}, -1)", f"{n}.view({k}, {total // k})", f"{n}.flatten()",
            f"{n}.permute({', '.join(map(str, r.sample(range(v.dim()), v.dim())))})", f"{n}.diagonal()", f"{n}.chunk(2, {a})[{r.choice([0, -1])}]",
            f"{n}.split(2, {a})[0]", f"{n}.unbind({a})[{self.index(size)}]", f"{n}.detach()", f"{n}.view_as({n})", f"{n}.movedim({a}, {b})",
            f"{n}.expand(2, {', '.join(['-1'] * v.dim())})" if v.dim() else f"{n}.expand(2)", f"{n}.contiguous()", f"{n}.t()" if v.dim() == 2 else f"{n}.flatten(0)",
            f"{n}.diagonal({r.randint(-1, 1)})", f"{n}.unfold({a}, 2, 2)",
        ]
        return [f"{w} = {r.choice(forms)}"]

    def number(self, v):
        r = self.rng
        if v.dtype.is_floating_point:
            return r.choice(["0.5", "2", "-1.5", "0.25", "3"])
        return r.choice(["1", "2", "-1", "3"])

    def operand(self, v):
        """Something that broadcasts into v: a number, or an expression of a tensor."""
        r = self.rng
        if r.random() < 0.5:
            return self.number(v)
        n = self.pick()
        w = self.state[n]
        e = r.choice([n, f"{n}.sum()", f"{n} * {self.number(w)}", f"{n}.max()", f"{n}.reshape(-1)[0]"])
        if w.dtype != v.dtype and r.random() < 0.8:
            e = f"({e}).to({v.dtype})"
        return e

    def inplace(self):
        r, n = self.rng, self.pick()
        v = self.state[n]
        d = max(v.dim(), 1)
        a = r.randrange(-d, d)
        x = self.operand(v)
        tx = x if not x.replace(".", "").replace("-", "").isdigit() else f"torch.tensor({x}).to({v.dtype})"
        s = self.subscript(v, True)
        size = v.shape[a] if v.dim() else 1
        idx = [self.index(size) % max(size, 1) for _ in range(2)]
        forms = [
            f"{n}.add_({x})", f"{n}.mul_({x})", f"{n}.sub_({x})", f"{n} += {x}", f"{n} *= {x}", f"{n} -= {x}", f"{n}.fill_({self.number(v)})", f"{n}.zero_()",
            f"{n}.copy_({tx})", f"{n}.clamp_(-1, 2)", f"{n}.neg_()", f"{n}.abs_()", f"{n}.masked_fill_({n} > 0, {self.number(v)})",
            f"{n}[{s}] = {x}", f"{n}[{s}] = {x}", f"{n}[{s}] += {x}", f"{n}[{s}] *= {self.number(v)}", f"{n}[{n} > 0] = {self.number(v)}", f"{n}[{n} < 0] += {self.number(v)}",
            f"{n}.index_fill_({a}, torch.tensor({idx}), {self.number(v)})", f"{n}.index_add_({a}, torch.tensor({idx}), {n}.index_select({a}, torch.tensor({idx})).clone())",
            f"{n}[{self.subscript(v)}].add_({self.number(v)})", f"{n}[{self.subscript(v)}].zero_()", f"{n}.transpose(0, -1).add_({self.number(v)})", f"{n}.view(-1)[0] = {self.number(v)}",
            f"{n}.transpose_({a}, -1)" if v.dim() and v.shape[a] == v.shape[-1] else f"{n}.neg_()", f"{n}.relu_()", f"{n}.diagonal().fill_({self.number(v)})",
            f"{n}.index_put_((torch.tensor({idx}),), {tx}, accumulate=True)", f"{n}.addcmul_({n}.clone(), {n}.clone())", f"{n}.tril_()", f"{n}.cumsum_({a})",
            f"{n}.index_copy_({a}, torch.tensor([0]), {n}.narrow({a}, 0, 1).clone() * 2)", 
            f"{n}.masked_scatter_({n} > 0, {n}.clone())", f"{n}.floor_divide_(2)", f"{n}.remainder_(3)", f"{n}.clamp_min_(0)",
        ]
        return [r.choice(forms)]

    def compute(self):
        r, n, m, w = self.rng, self.pick(), self.pick(), self.fresh()
        v = self.state[n]
        d = max(v.dim(), 1)
        a = r.randrange(-d, d)
        forms = [
            f"{n} + {m}", f"{n} * {self.number(v)}", f"{n} - {m}", f"{n}.clone()", f"{n}.sum({a})", f"{n}.sum({a}, keepdim=True)", f"torch.cat([{n}, {n}], {a})",
            f"torch.stack([{n}, {n} * 2], {a})", f"torch.where({n} > 0, {n}, {m})", f"{n}.to({r.choice(['torch.float64', 'torch.float32', 'torch.int64'])})",
            f"{n}.max({a})[0]", f"{n}.flip({a})", f"{n}.roll(1, {a})", f"{n}.index_select({a}, torch.tensor([0, -1]) % {n}.size({a}))", f"{n}[{self.subscript(v, True)}]",
            f"{n}.abs().float().sqrt()", f"torch.zeros_like({n})", f"{n}.new_zeros({n}.size(0), 2)", f"{n}.repeat(2, {', '.join(['1'] * v.dim())})",
            f"{n}.float().softmax({a})", f"({n} > 0).to({v.dtype})", f"{n}.cumsum({a})", f"{n}.sort({a})[0]", f"torch.arange({n}.size({a})).to({v.dtype})",
            f"{n}.mean({a})" if v.dtype.is_floating_point else f"{n}.prod({a})", f"{n} // 2", f"{n} % 3", f"{n} / 2", f"({n} > 0).sum() + {n}.size({a})", f"{n}.flatten()[i]",
        ]
        return [f"{w} = {r.choice(forms)}"]

    def indent(self, lines):
        return ["    " + l for l in lines]

    def some(self, n):
        lines = []
        for _ in range(n):
            lines += self.rng.choice([self.inplace, self.inplace, self.rebind])()
        return lines

    def rebind(self):
        n = self.pick()
        return [f"{n} = {n} {self.rng.choice(['+', '*', '-'])} {self.number(self.state[n])}"]

    def branch(self):
        r, n = self.rng, self.pick()
        cond = r.choice([f"bool({n}.sum() > 0)", f"bool({n}.float().mean() < 0.1)", f"{n}.size(0) > 2", f"bool(({n} > 0).any())", f"int(({n} > 0).sum()) % 2 == 0"])
        lines = [f"if {cond}:"] + self.indent(self.some(r.randint(1, 2)))
        if r.random() < 0.6:
            lines += ["else:"] + self.indent(self.some(r.randint(1, 2)))
        return lines

    def loop(self):
        r, n = self.rng, self.pick(rank=(1, 2, 3))
        if n is None:
            return self.branch()
        v = self.state[n]
        x = self.number(v)
        body = r.choice([
            [f"{n}[k] += {x}"], [f"{n}[k] = {n}[0] * {x}"], [f"{n} = {n} + {n}[k] * 0" if r.random() < .3 else f"{n} = {n} + k"], [f"{n}.select(0, k).mul_({x})"],
            [f"{n}[k:] += {x}"], [f"{n}[-1] += {n}[k]"], [f"if k % 2 == 0:", f"    {n}[k] = {x}"], [f"if bool({n}[k].sum() > 0):", f"    {n}[k].neg_()", "else:", f"    {n}[k] += {x}"],
        ] + [self.some(1)])
        head = r.choice([f"for k in range({n}.size(0)):", f"for k in range({n}.size(0)):", "for k in range(2):", f"for k in range({n}.size(0) - 1, -1, -1):"])
        return [head] + self.indent(body)

    def kinds(self):
        """The kinds of statements, each as often as it is to be drawn."""
        return [self.view] * 5 + [self.inplace] * 6 + [self.compute] * 3 + [self.metadata] + ([self.branch] * 2 + [self.loop] * 2 if self.script else [])

    def statement(self):
        """The lines of a random statement, which may not be valid."""
        return self.rng.choice(self.kinds())()

    def grow(self, steps, tries=None):
        for _ in range(tries or steps * 12):
            if len(self.lines) >= steps:
                break
            self.add(self.statement())

    def body(self):
        names = [n for n, v in self.state.items() if n != "i" and v.numel() > 0][-6:]
        keep = [n for n in ("x", "y") if n in self.state and n not in names]
        outs = [f"{n}" for n in keep + names]
        # clones, so that outputs do not depend on what a runtime does with aliases
        return "\n".join(["x = x.clone()", "y = y.clone()"] + self.lines + ["return " + ", ".join(o + ".clone()" for o in outs)])


def write(name, module, text, sets, script, opts):
    """Writes the program as a case, and its text beside it; says whether it is one."""
    try:
        path = casefile.write(opts.out, name, module, [s for s in sets if s], script=script, suite=opts.suite, op="random")
    except casefile.Skip as e:
        if opts.verbose:
            print(name, e)
        return False
    with open(os.path.join(path, "program.py"), "w") as f:
        f.write(text)
    return True


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--out", required=True)
    ap.add_argument("--count", type=int, default=100)
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--suite", default="random")
    ap.add_argument("--steps", type=int, default=9, help="greatest number of statements")
    ap.add_argument("--wide", action="store_true", help="whole modules: containers, buffers, functions, scalars, all dtypes (wide.py)")
    ap.add_argument("--lists", action="store_true", help="lists whose length is known when the program runs (lists.py)")
    ap.add_argument("--verbose", action="store_true", help="say why a program was left out")
    opts = ap.parse_args()
    if opts.wide:
        from wide import Wide
    if opts.lists:
        from lists import Lists
    made = skipped = 0
    for k in range(opts.count):
        rng = random.Random(f"{opts.seed}/{k}")
        script = rng.random() < 0.6
        if opts.lists:
            p = Lists(rng, opts.steps)
            sets = list(p.sets())[:2]
            if sets and write(f"l{opts.seed}_{k:04d}", casefile.source(p.text)["Case"](), p.text, sets, True, opts):
                made += 1
            else:
                skipped += 1
            continue
        if opts.wide:
            p = Wide(rng, script)
            p.grow(rng.randint(2, opts.steps))
            lines = p.body()
            if lines is None:
                continue
            name, text = f"w{opts.seed}_{k:04d}", p.module_text(lines)
            module = casefile.source(text)["Case"]()
        else:
            p = Program(rng, script)
            p.grow(rng.randint(3, opts.steps))
            name, text = f"p{opts.seed}_{k:04d}", p.body() + "\n"
            module = casefile.module_of("x, y, i", text)
        sets = [p.inputs(), p.inputs(1) if p.shapes[1] else None]
        if write(name, module, text, sets, script, opts):
            made += 1
        else:
            skipped += 1
    print(f"{made} programs, {skipped} skipped")


if __name__ == "__main__":
    main()
