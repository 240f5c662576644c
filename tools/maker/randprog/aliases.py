"""Programs on what places of containers share in loops, on lists of tuples, on numbers of scripts, and on sizes of 1 and 0, as cases.

    python3 tools/maker/randprog/aliases.py --out out/aliases
    python3 tools/maker/randprog/pack.py out/aliases testdata/aliases.tar.gz --all-sets

An element of a list, a value of a dict or an attribute is replaced in a loop, while another name shows what it was, and one of the two is
written. Each program runs for several sizes and numbers of iterations, none among them.
"""
import argparse
import json
import os
import sys
from typing import Dict, List, NamedTuple, Optional, Tuple, Union

import torch
import torch.nn.functional as F
from torch import Tensor, nn

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../judge/python"))
import casefile  # noqa: E402


class InsertAndPop(nn.Module):
    def forward(self, x: Tensor, k: int):
        h = torch.zeros(4)
        l = [h]
        i = 0
        while i < k:
            h += 1
            l.insert(0, h.clone())
            l.pop()
            i += 1
        return l[0], h


class ReadWriteReplace(nn.Module):
    def forward(self, x: Tensor, k: int):
        a = x[0].clone()
        d = {"a": a}
        for i in range(k):
            a = d["a"]
            a += 1
            d["a"] = a*2
        return a, d["a"]


class TwoKeysOfOneTensor(nn.Module):
    def forward(self, x: Tensor, k: int):
        a = x[0].clone()
        d = {"a": a, "b": a}
        for i in range(k):
            d["b"] += 1
            d["a"] = d["b"]
            d["b"] = d["b"]+1
        return a, d["a"], d["b"]


class AppendedThenReplaced(nn.Module):
    def forward(self, x: Tensor, k: int):
        t = x[0].clone()
        outs = torch.jit.annotate(List[Tensor], [])
        for i in range(k):
            outs.append(t)
            t = t + 1
            t += 1
        outs.append(t)
        return torch.stack(outs)


class RotatedTuple(nn.Module):
    def forward(self, x: Tensor, k: int):
        t = x[0].clone()
        tup = (t, x[1].clone())
        for i in range(k):
            t += 1
            tup = (tup[1], tup[0]*2)
        return tup[0], tup[1], t


class ListsOfLists(nn.Module):
    def forward(self, x: Tensor, k: int):
        t = x[0].clone()
        ll = [[t],[x[1].clone()]]
        for i in range(k):
            t += 1
            ll[0] = [ll[1][0]*2]
            ll[1][0] += t
        return ll[0][0], ll[1][0], t


class NumbersUnderTwoNames(nn.Module):
    def forward(self, x: Tensor, k: int):
        a = [1, 2]
        b = [a, a]
        for i in range(k):
            a.append(i)
            b[0] = [3]
        return torch.tensor(a), torch.tensor(b[0]), torch.tensor(b[1])


class Update(nn.Module):
    def forward(self, x: Tensor, k: int):
        a = [1, 2]
        d = {"a": a}
        for i in range(k):
            d["a"].append(i)
            d.update({"a": d["a"] + [1]})
        return torch.tensor(a), torch.tensor(d["a"])


class PopAndSetAgain(nn.Module):
    def forward(self, x: Tensor, k: int):
        h = x[0].clone()
        d = {"a": h,"b": x[1]}
        for i in range(k):
            h.add_(1)
            v = d.pop("a")
            d["a"] = v*2
        s = torch.zeros(4)
        for kk in d.keys():
            s = s*2 + d[kk]
        return s, h, d["a"]


class DeleteAndSet(nn.Module):
    def forward(self, x: Tensor, k: int):
        h = x[0].clone()
        d = {"a": h}
        for i in range(k):
            del d["a"]
            d["a"] = h
            h = h + 1
            d["a"] += 5
        return h, d["a"]


class SetDefault(nn.Module):
    def forward(self, x: Tensor, k: int):
        h = x[0].clone()
        d = torch.jit.annotate(Dict[str, Tensor],{})
        for i in range(k):
            d.setdefault("a", h)
            h += 1
            d["a"] = d["a"] * 2
        if "a" in d:
            return d["a"], h
        return h, h


class ReplacedInABranch(nn.Module):
    def forward(self, x: Tensor, k: int):
        h = x[0].clone()
        l = [h]
        for i in range(k):
            if i > 1:
                l[0] = l[0]*2
            h += 1
        return h, l[0]


class NestedLoops(nn.Module):
    def forward(self, x: Tensor, k: int):
        h = x[0].clone()
        l = [h]
        for i in range(k):
            for j in range(i):
                h += 1
                l[0] = l[0]*2
        return h, l[0]


class WhileOnData(nn.Module):
    def forward(self, x: Tensor, k: int):
        h = torch.ones(4)
        l = [h]
        while float(l[0].sum()) < 50.0:
            h += 1
            l[0] = l[0]*2 + 1
        return h, l[0]


class Break(nn.Module):
    def forward(self, x: Tensor, k: int):
        h = x[0].clone()
        l = [h]
        for i in range(k):
            h += 1
            if i == 2:
                break
            l[0] = l[0]*2
        return h, l[0]


class Return(nn.Module):
    def forward(self, x: Tensor, k: int):
        h = x[0].clone()
        l = [h]
        for i in range(k):
            h += 1
            if i == 2:
                return h, l[0]
            l[0] = l[0]*2
        return l[0], h


class Continue(nn.Module):
    def forward(self, x: Tensor, k: int):
        h = x[0].clone()
        l = [h]
        for i in range(k):
            if i % 2 == 0:
                continue
            h += 1
            l[0] = l[0]*2
        return l[0], h


class ExtendAndPop(nn.Module):
    def forward(self, x: Tensor, k: int):
        h = x[0].clone()
        l = [h]
        for i in range(k):
            l.extend([h*2])
            l.pop(0)
            l[0].add_(1)
        return h, l[0]


class ClearAndAppend(nn.Module):
    def forward(self, x: Tensor, k: int):
        h = x[0].clone()
        l = [h]
        for i in range(k):
            l.clear()
            l.append(h)
            h += 1
            l[0] = l[0]+1
        return h, l[0]


class ViewsInAList(nn.Module):
    def forward(self, x: Tensor, k: int):
        base = x.clone()
        l = [base[0]]
        for i in range(k):
            base += 1
            l[0] = l[0]*2
            l[0] = base[1]
        l[0] += 1
        return base, l[0]


class OptionalOfAPlace(nn.Module):
    def forward(self, x: Tensor, k: int):
        o: Optional[Tensor] = None
        h = x[0].clone()
        d = {"h": h}
        for i in range(k):
            if o is None:
                o = d["h"]
            h += 1
            d["h"] = h*2
        if o is None:
            return h, d["h"]
        return o, d["h"]


class AttributeOfSelf(nn.Module):
    def __init__(self):
        super().__init__()
        self.state = torch.zeros(4)

    def forward(self, x: Tensor, k: int):
        self.state = torch.ones(4) * k
        t = self.state
        for i in range(k):
            t += 1
            self.state = self.state * 2
        return self.state, t


class IntOrFloat(nn.Module):
    def forward(self, x: Tensor, k: int):
        v: Union[int, float] = 3
        if k > 1:
            v = 2.5
        if isinstance(v, int):
            return x * v
        return x + float(v)


class FloatsOfTorchScript(nn.Module):
    def forward(self, x: Tensor, k: int):
        a, b = k * 0.1, float("inf")
        return 1.0 // (a + 0.1), a % b, max(b - b, a), max(a, b - b), divmod(a, k + 1), divmod(a + 1.0, a + 0.1)


class RepeatedLists(nn.Module):
    def forward(self, x: Tensor, k: int):
        v = [7]
        t = [torch.ones(2)]
        for i in range(k):
            v.append(i)
            t.append(torch.ones(2) * i)
        return torch.tensor(v * 2), torch.tensor(k * v), torch.stack(t * 2), torch.stack([torch.ones(2)] * (k + 1))


class KeyOfALoop(nn.Module):
    def forward(self, x: Tensor, k: int):
        d: Dict[str, int] = {"a": 1}
        for i in range(x.size(0)):
            d["b"] = i
        return torch.tensor(list(d.values()))


class PartsOfNothing(nn.Module):
    def forward(self, x: Tensor, k: int):
        s = torch.zeros(4)
        for t in x.split(2):
            s = s + t.sum(0) + 1
        return torch.tensor(len(x.split(2))), torch.tensor(len(x.chunk(3))), x.chunk(2)[-1], s


class LossesOfNothing(nn.Module):
    def forward(self, x: Tensor, k: int):
        y = torch.sigmoid(x)
        return F.mse_loss(x, y), F.l1_loss(x, y), F.binary_cross_entropy(y, y), F.smooth_l1_loss(x, y), F.huber_loss(x, y), F.kl_div(x, y)


class TuplesAppended(nn.Module):
    def forward(self, x: Tensor, k: int):
        l: List[Tuple[Tensor, int]] = []
        for i in range(k):
            l.append((x.sum(0) * i, i + 1))
        s = torch.zeros(4)
        for t, n in l:
            s = s + t * n
        l.append((s, -1))
        first, n = l[0]
        return s, first, torch.tensor([n, l[-1][1], len(l)]), torch.stack([t for t, _ in l])


class TuplesTurned(nn.Module):
    def forward(self, x: Tensor, k: int):
        l: List[Tuple[Tensor, Tuple[int, float]]] = [(x.sum(0), (7, 0.5))]
        for i in range(k):
            l.append((x.sum(0) + i, (i, i * 0.5)))
        l.reverse()
        m = l[1:]
        e: List[Tuple[Tensor, Tuple[int, float]]] = []
        e.extend(m)
        e = e + l + l[:k]
        l.insert(k - 1, e.pop(0) if len(e) > 5 else e[-1])
        l[0] = (l[0][0] * 2, (50, 1.0))
        del l[-1]
        s = torch.zeros(4)
        for t, (n, f) in l + e * 2:
            s = s * 0.5 + t * n + f
        return s, torch.tensor([len(m), len(l), len(e)])


class Named(NamedTuple):
    a: Tensor
    n: int


class NamedTuplesAppended(nn.Module):
    def forward(self, x: Tensor, k: int):
        l: List[Named] = [Named(x.sum(0), 7)]
        for i in range(k):
            l.append(Named(l[-1].a + 1, l[i].n * 3))
        s = torch.zeros(4)
        for e in l:
            s = s + e.a * e.n
        return s, torch.tensor([e.n for e in l])


class QueueOfTuples(nn.Module):
    def forward(self, x: Tensor, k: int):
        q: List[Tuple[Tensor, int, float]] = [(x.sum(0), 0, 0.5)]
        s = torch.zeros(4)
        for _ in range(k):
            t, d, f = q.pop(0)
            s = s + t * f
            if float(t.sum()) > 20.0:
                q.append((t * 0.25, d + 1, f + 1.0))
            q.append((t - 1, d + 1, f * 2.0))
        return s, torch.tensor([len(q), q[-1][1]])


class TuplesInDict(nn.Module):
    def forward(self, x: Tensor, k: int):
        even: List[Tuple[Tensor, int]] = []
        odd: List[Tuple[Tensor, int]] = []
        d = {"even": even, "odd": odd}
        for i in range(k):
            if i % 2 == 0:
                d["even"].append((x.sum(0), i))
            else:
                d["odd"].append((x.sum(0) + 1, i))
        s = torch.zeros(4)
        for t, i in d["even"]:
            s = s + t * i
        for t, i in d["odd"]:
            s = s - t * i
        return s, torch.tensor([len(d["even"]), len(odd)])


class NoneAmongTensors(nn.Module):
    def forward(self, x: Tensor, k: int):
        l: List[Optional[Tensor]] = []
        for i in range(k):
            if i % 2 == 0:
                l.append(x.sum(0) + i)
            else:
                l.append(None)
        s, n = torch.zeros(4), 0
        for t in l:
            if t is not None:
                s = s * 0.5 + t
            else:
                n += 1
        return s, torch.tensor([n, len(l)])


class NoneLater(nn.Module):
    def forward(self, x: Tensor, k: int):
        l: List[Optional[Tensor]] = []
        for i in range(k):
            l.append(x.sum(0) + i)
        l.append(None)
        l.insert(1, None)
        s, n = torch.zeros(4), 0
        for t in l:
            if t is None:
                n += 1
            else:
                s = s * 0.5 + t
        last = l.pop()
        if last is not None:
            s = s + 1000
        return s, torch.tensor([n, len(l)])


class NoneInTuples(nn.Module):
    def forward(self, x: Tensor, k: int):
        l: List[Tuple[Tensor, Optional[int]]] = []
        m: List[Optional[Tuple[int, Tensor]]] = []
        i = 0
        while i < k:
            if i == 1:
                l.append((x.sum(0), None))
                m.append((i, x.sum(0) * 2))
            else:
                l.append((x.sum(0) + 1, i))
                m.append(None)
            i += 1
        s = torch.zeros(4)
        for j, (t, n) in enumerate(l):
            if n is not None:
                s = s + t * n
            else:
                s = s * 3 + j
        for e in m:
            if e is not None:
                s = s - e[1] * e[0]
        return s


class DTypeOfABranch(nn.Module):
    def forward(self, x: Tensor, k: int):
        d = torch.float64 if k > 1 else torch.float32
        s = torch.zeros(4)
        for i in range(k):
            s = s + (x.sum(0).to(d) / 3).to(torch.float32)
        return s, torch.ones(2, dtype=d).to(torch.float32)


class PairsOfTwoLengths(nn.Module):
    def forward(self, x: Tensor, k: int):
        l: List[Tuple[Tensor, int]] = []
        if k > 1:
            l.append((x.sum(0), k))
            l.append((x.sum(0) * 2, 3))
        else:
            l.append((x.sum(0) + 1, 5))
        s = torch.zeros(4)
        for t, n in l:
            s = s * 2 + t * n
        return s, len(l)


class NoneAloneInABranch(nn.Module):
    def forward(self, x: Tensor, k: int):
        l: List[Optional[Tensor]] = []
        if k > 1:
            l.append(None)
            l.append(None)
        else:
            l.append(None)
        for i in range(k):
            l.append(x.sum(0) + i)
        s = torch.zeros(4)
        for t in l:
            s = s * 2 + (t if t is not None else torch.ones(4))
        return s, len(l)


class RunTimeOrNone(nn.Module):
    def forward(self, x: Tensor, k: int):
        l: List[Optional[Tensor]] = [None, x.sum(0), None]
        if k > 1:
            l = []
            for i in range(k):
                l.append(x.sum(0) + i)
        s = torch.zeros(4)
        for t in l:
            s = s * 2 + (t if t is not None else torch.ones(4))
        return s, len(l)


class Weighed(NamedTuple):
    t: Tensor
    w: Optional[Tensor]


class NamedInIf(nn.Module):
    def forward(self, x: Tensor, k: int):
        l: List[Weighed] = []
        if k == 1:
            l = [Weighed(x.sum(0), None)]
        elif k > 1:
            l = [Weighed(x.sum(0), x.sum(0) + 2), Weighed(x.sum(0) * 3, None)]
        s = torch.zeros(4)
        for b in l:
            w = b.w
            s = s * 2 + b.t
            if w is not None:
                s = s + w
        return s, len(l)


class OptionalPairs(nn.Module):
    def forward(self, x: Tensor, k: int):
        l: List[Optional[Tuple[Tensor, int]]] = []
        for i in range(k):
            if i == 1:
                l.append(None)
            else:
                l.append((x.sum(0) * i, i))
        if k > 2:
            l.append(None)
        s = torch.zeros(4)
        for e in l:
            if e is not None:
                s = s * 2 + e[0] * e[1]
            else:
                s = s - 1
        return s, len(l)


INPUTS = [(torch.arange(8.0).reshape(2, 4), 2), (torch.zeros(0, 4), 0), (torch.ones(1, 4) * 3, 1), (torch.arange(12.0).reshape(3, 4), 4)]


def record(cls, folder):
    """Writes the archive of a module, and what the loaded archive gives for the inputs that it does not raise for."""
    os.makedirs(folder, exist_ok=True)
    archive = os.path.join(folder, "model.pt")
    torch.jit.script(cls().eval()).save(archive)
    sets = []
    for x, k in INPUTS:
        try:
            with torch.no_grad(), torch.jit.optimized_execution(False):
                outputs = casefile.leaves(torch.jit.load(archive)(x.clone(), k))
        except RuntimeError:
            continue
        name = f"test_data_set_{len(sets)}"
        os.makedirs(os.path.join(folder, name), exist_ok=True)
        casefile.record(os.path.join(folder, name), ["x", "k"], [x, k], outputs)
        sets.append({"dir": name})
    case = {"id": cls.__name__, "suite": "aliases", "op": "random", "input_specs": ["x:f32[2,4]", "k: int"], "dynamic_axes": {"x": {"0": "N"}}, "rtol": 1e-5, "atol": 1e-6, "data_sets": sets}
    with open(os.path.join(folder, "case.json"), "w") as f:
        json.dump(case, f, indent=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True)
    opts = parser.parse_args()
    for cls in nn.Module.__subclasses__():
        if cls.__module__ == "__main__":
            record(cls, os.path.join(opts.out, "aliases", cls.__name__))


if __name__ == "__main__":
    main()
