"""Python that reads the data: whichever way a module is saved, its file is right at another input, or there is an error, or, where the caller asked for a
trace, a warning that names the line."""
import inspect
import math
import warnings

import numpy
import pytest
import torch
import torch.nn.functional as F

import aton

MODES = {"default": {}, "trace": {"source": "trace"}, "script": {"source": "script"}, "export": {"source": "export"}, "dynamo": {"dynamo": True},
         "legacy": {"dynamo": False}}
UP, DOWN = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), torch.tensor([[-1.0, 0.2, -3.0], [0.4, -5.0, 0.6]])
WHOLE, OTHER = torch.tensor([2, 0, 1, 3]), torch.tensor([1, 3, 3, 0])
CASES = []


def case(example, second):
    def add(cls):
        CASES.append(pytest.param(cls, example, second, id=cls.__name__))
        return cls
    return add


@case((UP,), (DOWN,))
class Branch(torch.nn.Module):
    def forward(self, x):
        if x.max() > 1:
            return x * 2
        return x - 1


@case((UP,), (DOWN,))
class While(torch.nn.Module):
    def forward(self, x):
        while x.norm() > 1:
            x = x / 2
        return x


@case((UP,), (DOWN,))
class NonzeroList(torch.nn.Module):
    def forward(self, x):
        out = torch.zeros(3)
        for i, j in x.nonzero().tolist():
            if x[i, j] > 0:
                out[j] += x[i, j]
        return out


@case((UP,), (DOWN,))
class NumPy(torch.nn.Module):
    def forward(self, x):
        return x + float(x.detach().numpy().max())


@case((UP,), (DOWN,))
class FromNumPy(torch.nn.Module):
    def forward(self, x):
        return x + torch.from_numpy(x.detach().numpy().copy()).abs()


@case((UP,), (DOWN,))
class Item(torch.nn.Module):
    def forward(self, x):
        return x * x.sum().item()


@case((UP,), (DOWN,))
class Data(torch.nn.Module):
    def forward(self, x):
        return x * x.data.max()


@case((UP,), (DOWN,))
class DataBranch(torch.nn.Module):
    def forward(self, x):
        return x + 1 if x.data.sum() > 3 else x


@case((UP,), (DOWN,))
class Float(torch.nn.Module):
    def forward(self, x):
        scale = float(x.mean())
        return x / scale


@case((WHOLE,), (OTHER,))
class Int(torch.nn.Module):
    def forward(self, x):
        n = int(x.max())
        return torch.zeros(n + 1) + n


@case((WHOLE,), (OTHER,))
class Range(torch.nn.Module):
    def forward(self, x):
        total = torch.zeros(2)
        for i in range(int(x[0])):
            total = total + i + 1
        return total


@case((WHOLE,), (OTHER,))
class Slice(torch.nn.Module):
    def forward(self, x):
        n = int(x[0].item())
        return x[:n].sum()


@case((WHOLE,), (OTHER,))
class ToList(torch.nn.Module):
    def forward(self, x):
        return torch.tensor(sum(x.tolist()[:2]))


@case((UP,), (DOWN,))
class Equal(torch.nn.Module):
    def forward(self, x):
        return x + 1 if torch.equal(x, x.abs()) else x - 1


@case((UP,), (DOWN,))
class MethodEqual(torch.nn.Module):
    def forward(self, x):
        return x + 1 if x.equal(x.abs()) else x - 1


@case((UP,), (DOWN,))
class AllClose(torch.nn.Module):
    def forward(self, x):
        return x + 1 if torch.allclose(x, x.abs()) else x - 1


@case((UP,), (DOWN,))
class Any(torch.nn.Module):
    def forward(self, x):
        if (x < 0).any():
            x = x.clamp(min=0)
        return x


@case((UP,), (DOWN,))
class All(torch.nn.Module):
    def forward(self, x):
        return x.sqrt() if bool((x > 0).all()) else x.abs().sqrt() + 1


@case((UP,), (DOWN,))
class Python(torch.nn.Module):
    def forward(self, x):
        return max(x[0, 0], x[1, 1]) + min(x[0, 1], x[1, 0])


@case((UP,), (DOWN,))
class Sorted(torch.nn.Module):
    def forward(self, x):
        return torch.stack(sorted([x[0, 0], x[0, 1], x[0, 2]]))


@case((UP,), (DOWN,))
class Contains(torch.nn.Module):
    def forward(self, x):
        return x * 2 if 4.0 in x else x


@case((UP,), (DOWN,))
class Assigned(torch.nn.Module):
    def forward(self, x):
        out = torch.zeros_like(x)
        for i in range(x.shape[0]):
            if x[i].sum() > 0:
                out[i] = x[i]
        return out


@case((UP,), (DOWN,))
class EarlyReturn(torch.nn.Module):
    def forward(self, x):
        for i in range(3):
            x = x * 0.5
            if x.max() < 1:
                return x
        return x + 10


@case((UP,), (DOWN,))
class Break(torch.nn.Module):
    def forward(self, x):
        count = torch.zeros(1)
        for i in range(5):
            if x.sum() < i * 5:
                break
            count = count + 1
        return count


@case((UP,), (DOWN,))
class AssertBelow(torch.nn.Module):
    def forward(self, x):
        assert x.max() > -100
        return x + 1


@case((UP,), (DOWN,))
class Raises(torch.nn.Module):
    def forward(self, x):
        if x.max() > 1000:
            raise ValueError("too large")
        return x + 1


@case((WHOLE,), (OTHER,))
class Choice(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4) for _ in range(4)])

    def forward(self, x):
        return self.layers[int(x[0])](x.float())


@case((WHOLE,), (OTHER,))
class Key(torch.nn.Module):
    def forward(self, x):
        return x + {0: 10, 1: 20, 2: 30, 3: 40}[x[0].item()]


@case((WHOLE,), (OTHER,))
class Text(torch.nn.Module):
    def forward(self, x):
        return x * 2 if f"{x[0]}" == "2" else x


@case((UP,), (DOWN,))
class Masked(torch.nn.Module):
    def forward(self, x):
        chosen = x[x > 1]
        return chosen.sum() if len(chosen) > 2 else x.sum() * 100


@case((UP,), (DOWN,))
class Iterates(torch.nn.Module):
    def forward(self, x):
        total = torch.zeros(())
        for v in x[x > 1]:
            total = total + v
        return total


@case((WHOLE,), (OTHER,))
class UniqueCount(torch.nn.Module):
    def forward(self, x):
        return x * x.unique().shape[0]


@case((WHOLE,), (OTHER,))
class UniqueLoop(torch.nn.Module):
    def forward(self, x):
        total = torch.zeros(4)
        for value in x.unique():
            total = total + (x == value).float()
        return total


@case((WHOLE,), (OTHER,))
class Rows(torch.nn.Module):
    def forward(self, x):
        return torch.stack([torch.full((2,), float(v)) for v in x])


@case((UP,), (DOWN,))
class Tensor(torch.nn.Module):
    def forward(self, x):
        return x * torch.tensor([x[0, 0], x[0, 1], x[0, 2]])


@case((UP,), (DOWN,))
class Threshold(torch.nn.Module):
    def forward(self, x):
        return F.threshold(x, x.mean().item(), 0.0)


@case((UP,), (DOWN,))
class Clamp(torch.nn.Module):
    def forward(self, x):
        return x.clamp(max=x.median().item())


@case((WHOLE,), (OTHER,))
class Repeat(torch.nn.Module):
    def forward(self, x):
        return torch.arange(3).repeat(int(x[0]) + 1)


@case((WHOLE,), (OTHER,))
class Split(torch.nn.Module):
    def forward(self, x):
        first, rest = x.split([int(x[0]), 4 - int(x[0])])
        return first.sum() - rest.sum()


@case((UP,), (DOWN,))
class Ternary(torch.nn.Module):
    def forward(self, x):
        mode = "up" if x[0, 0] > 0 else "down"
        return x + 1 if mode == "up" else x - 1


@case((UP,), (DOWN,))
class Newton(torch.nn.Module):
    def forward(self, x):
        y = x.abs().sum()
        for _ in range(20):
            new = y / 2 + 1
            if abs(float(new - y)) < 0.1:
                break
            y = new
        return y


@case((UP,), (DOWN,))
class Accumulates(torch.nn.Module):
    def forward(self, x):
        kept = []
        for row in x:
            if row.sum() > 1:
                kept.append(row)
        return torch.stack(kept) if len(kept) > 0 else torch.zeros(0, 3)


@case((UP,), (DOWN,))
class Is(torch.nn.Module):
    def forward(self, x):
        return x * 3 if torch.is_nonzero((x.sum() > 3).float()) else x


@case((UP, torch.tensor(True)), (UP, torch.tensor(False)))
class Flag(torch.nn.Module):
    def forward(self, x, flag):
        if flag:
            return x.t().contiguous()
        return x.t().contiguous() * 2


@case((UP,), (DOWN,))
class Array(torch.nn.Module):
    def forward(self, x):
        return x * float(numpy.asarray(x.detach()).max())


@case((UP,), (DOWN,))
class Copy(torch.nn.Module):
    def forward(self, x):
        return torch.tensor(numpy.array(x.detach().cpu()) * 2)


@case((WHOLE,), (OTHER,))
class Item0(torch.nn.Module):
    def forward(self, x):
        names = ["a", "b", "c", "d"]
        return x + len(names[x.argmax()]) + int(x.argmin())


@case((UP,), (DOWN,))
class Floor(torch.nn.Module):
    def forward(self, x):
        return x + math.floor(x.sum()) + round(float(x[0, 0]))


@case((UP,), (DOWN,))
class Lists(torch.nn.Module):
    def forward(self, x):
        return x + 1 if [x[0, 0] > 0] == [x[1, 0] > 0] else x


@case((UP,), (DOWN,))
class Ignored(torch.nn.Module):
    @torch.jit.ignore
    def peek(self, x):
        return float(x.max())

    def forward(self, x):
        return x * self.peek(x)


@case((UP,), (DOWN,))
class OwnClass(torch.nn.Module):
    """One that neither torch.export nor torch.jit.script takes."""

    def forward(self, x):
        class Scale:
            def __init__(self, t):
                self.value = t.sum().item()

        return x * Scale(x).value


@case(({"a": UP, "b": DOWN},), ({"a": DOWN, "b": UP},))
class Dict(torch.nn.Module):
    def forward(self, inputs):
        return inputs["a"] if inputs["a"].sum() > inputs["b"].sum() else inputs["b"] * 2


def flat(value):
    return [t for v in value for t in flat(v)] if isinstance(value, (list, tuple)) else [value]


def test_there_are_forty():
    assert len(CASES) >= 40


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("cls, example, second", CASES)
def test_none_is_wrong(cls, example, second, mode):
    torch.manual_seed(0)
    model = cls().eval()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            program = aton.export(model, example, **MODES[mode])
        except aton.ExportError as e:
            assert e.diagnostics and e.__cause__ is None and e.__suppress_context__
            assert len(str(e).splitlines()) < 20
            if mode == "default":
                assert any(d.line for d in e.diagnostics), str(e)
            return
    want = flat(model(*second))
    if mode in ("trace", "legacy"):
        lines, first = inspect.getsourcelines(cls)
        named = [w for w in program.warnings if w.file == __file__ and first <= w.line < first + len(lines)]
        shown = [w for w in said if issubclass(w.category, aton.ExportWarning)]
        if any("trace" in w.id for w in named):
            assert len(shown) >= len(named)
            return
    try:
        got = program(*second)
    except Exception as e:
        assert "onnxruntime" in type(e).__module__, e
        return
    torch.testing.assert_close(list(got), [w if isinstance(w, torch.Tensor) else torch.tensor(w) for w in want])
