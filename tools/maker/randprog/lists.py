"""Programs over lists whose length is known when they run: of ints, floats, tensors of several sizes, lists of ints, pairs
of a tensor and an int, and tensors or None.

Two lists are filled by loops, and then appended to, cut, turned, sorted, compared, joined and read, also in branches and loops.
Every program is run by PyTorch, and kept for the inputs that it does not raise for.
"""
import torch

import casefile

TYPES = {"int": "int", "float": "float", "tensor": "Tensor", "list": "List[int]", "pair": "Tuple[Tensor, int]", "option": "Optional[Tensor]"}
FIRST = {  # what the loops put in
    "int": ("int(x[i]) * 2", "i + n"),
    "float": ("float(x[i])", "float(i) + 0.5"),
    "tensor": ("x * i", "x[i:]"),
    "list": ("[i, n]", "[n] * (i % 2 + 1)"),
    "pair": ("(x * i, i + n)", "(x[i:], i)"),
    "option": ("x * i", "None if i % 2 == 0 else x[i:]"),
}
CUTS = ["1:", "::-1", "1:-1", ":k", "k:", "::2", ":-1", "-2:"]
ELEMENTS = {
    "int": ["{n} + {c}", "{l}[{p}]", "int(x[{b}])", "len({l})"],
    "float": ["float(x[{b}]) * {n}", "{l}[{p}] * 2.0", "1.5"],
    "tensor": ["x * {n}", "{l}[{p}] + 1", "x[{b}:]", "{l}[0][:1]"],
    "list": ["[{n}, {b}]", "{l}[{p}] + [{n}]", "[len({l})]"],
    "pair": ["(x * {n}, {n})", "({l}[{p}][0] + 1, {l}[{p}][1])", "(x[{b}:], {l}[0][1] + {c})", "{l}[{p}]"],
    "option": ["x * {n}", "None", "{l}[{p}]", "None if {n} > 2 else x[{b}:]"],
}
TAKEN = {"int": "{i}", "list": "len({i})", "pair": "{i}[1]", "option": "(1 if {i} is None else 10)"}  # what a loop over a list counts
RESULTS = {
    "int": ["return torch.tensor(a), torch.tensor(b), n, len(a)"],
    "float": ["return torch.tensor(a), torch.tensor(b), n, len(a)"],
    "tensor": ["return torch.cat(a + [x]), torch.cat(b + [x]), n, len(a), len(b)"],
    "list": ["lens = torch.tensor([len(t) for t in a] + [0])",
             "all = torch.cat([torch.tensor(t) for t in a + b] + [torch.tensor([1])])", "return lens, all, n, len(b)"],
    "pair": ["ns = torch.tensor([i for _, i in a + b] + [0])", "return torch.cat([t for t, _ in a + b] + [x]), ns, n, len(a)"],
    "option": ["all = [x]", "for t in a + b:", "    if t is not None:", "        all.append(t)", "    else:", "        all.append(x[:1] * 7)", "return torch.cat(all), n, len(b)"],
}


class Lists:
    """One program, and the inputs that it is for."""

    def __init__(self, rng, steps):
        self.rng, self.of, self.count = rng, rng.choice(list(TYPES)), 0
        lines = self.fill()
        for _ in range(rng.randint(3, steps)):
            lines += self.statement()
        head = "class Case(nn.Module):\n    def forward(self, x: Tensor, m: int, n: int, k: int):\n"
        self.text = head + "".join(f"        {l}\n" for l in lines + RESULTS[self.of])

    def sets(self):
        g = torch.Generator().manual_seed(5)
        dtype = torch.int64 if self.of == "int" else torch.float32
        for size, *numbers in ((5, 3, 2, 1), (3, 4, 0, 0), (7, 2, 5, 1)):
            values = (torch.randint(-3, 4, (size,), generator=g).to(dtype), *numbers)
            try:
                casefile.run(casefile.source(self.text)["Case"](), values, 1)
            except Exception:
                continue
            yield values

    def fill(self):
        t, (a, b) = TYPES[self.of], FIRST[self.of]
        known = self.rng.random() < 0.25
        return [f"a: List[{t}] = []", f"b: List[{t}] = []", f"for i in range({3 if known else 'x.size(0)'}):", f"    a.append({a})",
                f"for i in range({2 if known else 'm'}):", f"    b.append({b})"]

    def element(self, l):
        r = self.rng
        return r.choice(ELEMENTS[self.of]).format(l=l, n=r.choice("nk"), c=r.randint(-3, 3), p=r.randint(-2, 1), b=r.randint(0, 1))

    def place(self, l):
        return self.rng.choice(["0", "-1", "1", "k", f"len({l}) - 1"])

    def statement(self):
        r = self.rng
        v, w, e = r.choice("ab"), r.choice("ab"), self.element
        self.count += 1
        i = f"i{self.count}"
        kinds = [
            lambda: [f"{v}.append({e(w)})"],
            lambda: [f"{v}.insert({self.place(v)}, {e(w)})"],
            lambda: [f"{v}[{self.place(v)}] = {e(w)}"],
            lambda: [f"{i} = {v}.pop({r.choice(['', '0', '-1', 'k'])})"],
            lambda: [f"{v} = {v}[{r.choice(CUTS)}]"],
            lambda: [f"{v} = {v} + {w}"],
            lambda: [f"{v}.extend({w})"],
            lambda: [f"{v}.reverse()"],
            lambda: [f"{v} = {w}[:]"],
            lambda: [f"del {v}[{self.place(v)}]"],
            lambda: [f"for {i} in range(len({v})):", f"    if {i} % 2 == k % 2:", f"        {'b' if v == 'a' else 'a'}.append({e(v)})"],
            lambda: [f"if n > {r.randint(0, 6)}:", f"    {v}.append({e(w)})", "else:", f"    {v} = {w}[1:]"],
            lambda: [f"for {i} in {v}:", "    n = n + " + TAKEN.get(self.of, "1").format(i=i)],
        ]
        if self.of in ("int", "float"):
            kinds += [
                lambda: [f"n = n + {v}.count({w}[0])"],
                lambda: [f"{v} = sorted({v})"],
                lambda: [f"{v}.sort(reverse={r.random() < 0.5})"],
                lambda: [f"if {v} == {w}:", "    n = n + 10", f"if {w}[0] in {v}:", "    n = n + 100"],
            ]
        if self.of == "int":
            kinds.append(lambda: [f"n = n + max({v}) + min({v}) + sum({v})"])
        if self.of == "tensor":  # a size of one element is no size of another one
            kinds.append(lambda: [f"{i} = {v}[0]", f"for t{i} in {v}:",
                                  f"    {i} = nn.functional.interpolate({i}[None, None], size=t{i}.shape, mode='nearest')[0, 0]", f"{v}.append({i})"])
        return r.choice(kinds)()
