"""aton.export on models in memory: names, axes, numbers, errors."""
import io
import os
import random
import warnings

import pytest
import torch

import aton

SOURCES = ["trace"] + (["program"] if hasattr(torch, "export") and hasattr(torch.export, "save") else [])


class Scaled(torch.nn.Module):
    def __init__(self, n=3, m=4):
        super().__init__()
        self.linear = torch.nn.Linear(n, m)

    def forward(self, x, y, scale=None):
        z = self.linear(x) + y
        return z if scale is None else (z, z * scale)


class Refused(torch.nn.Module):
    def forward(self, x):
        a = torch.linalg.ldl_factor(x)[0]
        return a, torch.linalg.eig(x)[0]


class Nested(torch.nn.Module):
    def forward(self, pair, table):
        return {"sum": pair[0] + pair[1], "all": [table["a"], table["b"] * 2]}


def inputs():
    return torch.randn(5, 3), torch.randn(5, 4)


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("source", SOURCES)
def test_names_and_axes(tmp_path, source):
    path = tmp_path / "m.onnx"
    model = Scaled()
    p = aton.export(model, inputs(), path, input_names=["a", "b"], output_names=["o"], source=source,
                    dynamic_axes={"a": {0: "batch"}, "b": [0], "o": {0: "batch"}})
    assert p.source == source and p.input_names == ["a", "b"] and p.output_names == ["o"]
    assert path.exists() and model.training, "the mode of the module is what it was"
    for n in (2, 7):
        x, y = torch.randn(n, 3), torch.randn(n, 4)
        torch.testing.assert_close(p(x, y)[0], model.eval()(x, y))


@pytest.mark.parametrize("source", SOURCES)
def test_keyword_arguments(source):
    for args, kwargs in [((*inputs(), 2.5), None), ((*inputs(), {"scale": 2.5}), None), (inputs(), {"scale": torch.tensor(2.5)})]:
        p = aton.verify(Scaled(), args, kwargs=kwargs, source=source)
        assert len(p.output_names) == 2


@pytest.mark.parametrize("source", SOURCES)
def test_containers(source):
    t = [torch.randn(2, 3) for _ in range(4)]
    p = aton.verify(Nested(), ((t[0], t[1]), {"a": t[2], "b": t[3]}, {}), source=source)
    assert len(p.input_names) == 4 and len(p.output_names) == 3


def test_script_module():
    p = aton.verify(torch.jit.script(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU())), (torch.randn(5, 3),))
    assert p.source == "script"


class Instances(torch.nn.Module):
    def __init__(me):
        super().__init__()
        me.norm = torch.nn.InstanceNorm1d(3)

    def forward(me, x):
        return me.norm(x)


def test_script_in_training():
    model = torch.jit.script(Instances())  # its norm has no statistics of its own, in whichever mode
    p = aton.verify(model, (torch.randn(2, 3, 5),))
    assert p.input_names == ["x"]


@pytest.mark.skipif("program" not in SOURCES, reason="this PyTorch has no torch.export")
def test_exported_program():
    model = Scaled().eval()
    p = aton.verify(torch.export.export(model, inputs()), inputs())
    assert p.source == "program"


class Roots(torch.autograd.Function):
    """A function with a backward of its own, which keeps things for it."""

    @staticmethod
    def forward(ctx, x, power):
        ctx.save_for_backward(x)
        ctx.mark_non_differentiable(x)
        ctx.power = power
        assert not any(ctx.needs_input_grad)
        return x.abs().sqrt(), x ** power

    @staticmethod
    def backward(ctx, root, power):
        return root, None


class Marked(torch.autograd.Function):
    """A function whose author says what torch.onnx makes of it."""

    @staticmethod
    def forward(ctx, x):
        return x + 1

    @staticmethod
    def symbolic(g, x):
        return g.op("custom::Marked", x)


class OfFunction(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def test_functions_with_a_backward():
    apply = torch.autograd.Function.apply
    model = OfFunction(lambda x: Roots.apply(x * 2, 3))
    aton.verify(model, (torch.randn(2, 3),), source="trace")
    p = aton.export(OfFunction(lambda x: Marked.apply(x)), (torch.randn(2),), source="trace")
    assert p.result["operators"] == {"custom::Marked": 1}
    assert torch.autograd.Function.apply == apply


class Peeks(torch.nn.Module):
    def forward(self, x):
        return x * 2 if x.sum().item() > 0 else x


@pytest.mark.skipif("program" not in SOURCES, reason="this PyTorch has no torch.export")
def test_auto_takes_a_script_before_a_trace():
    x = torch.ones(3)
    p = aton.export(Peeks(), (x,))
    assert p.source == "script" and any("torch.export" in str(w) for w in p.warnings)
    torch.testing.assert_close(p(-x)[0], -x)
    for options in ({"source": "program"}, {"dynamo": True}, {"fallback": False}):
        with pytest.raises(aton.ExportError) as e:
            aton.export(Peeks(), (x,), **options)
        assert e.value.__suppress_context__ and e.value.diagnostics[0].file == __file__ and e.value.log
    assert aton.export(Peeks(), (x,), dynamo=True, fallback=True).source == "script"


@pytest.mark.parametrize("source", SOURCES)
def test_errors_are_data(tmp_path, source):
    path = tmp_path / "m.onnx"
    with pytest.raises(aton.ExportError) as e:
        aton.export(Refused(), (torch.randn(3, 3),), path, source=source)
    found = e.value.diagnostics
    assert [d.op for d in found] == ["aten::linalg_ldl_factor", "aten::linalg_eig"] and not path.exists()
    assert all(d.file.endswith("test_export.py") and d.line > 0 and d.id for d in found)
    assert "<table>" in e.value._repr_html_() and "linalg_eig" in e.value._repr_html_()
    assert aton.check(Refused(), torch.randn(3, 3), source=source) == found


def test_options(tmp_path):
    p = aton.export(Scaled(), inputs(), tmp_path / "m.onnx", opset_version=13, do_constant_folding=False, keep_initializers_as_inputs=True, source="trace")
    assert p.result["opsets"][""] == 13 and p.input_names[:2] == ["x", "y"] and "linear.weight" in p.input_names
    drop = torch.nn.Sequential(torch.nn.Dropout(0.5))
    assert "onnx::Dropout" in aton.export(drop, (torch.randn(3),), training=torch.onnx.TrainingMode.TRAINING, source="trace").result["operators"]
    assert "onnx::Dropout" not in aton.export(drop, (torch.randn(3),), source="trace").result["operators"]
    with pytest.raises(ValueError, match="custom_translation_table"):
        aton.export(Scaled(), inputs(), custom_translation_table={print: print})
    with pytest.raises(ValueError):
        aton.export(Scaled(), inputs(), source="guess")


def test_files(tmp_path):
    b = io.BytesIO()
    aton.export(Scaled(), inputs(), b, source="trace")
    (tmp_path / "a.onnx").write_bytes(b.getvalue())
    older = aton.convert_version(tmp_path / "a.onnx", 11, tmp_path / "b.onnx")
    assert older.result["opsets"][""] == 11 and (tmp_path / "b.onnx").exists()
    assert aton.optimize(tmp_path / "a.onnx").input_names == ["x", "y"]
    torch.jit.save(torch.jit.trace(Scaled().eval(), inputs()), str(tmp_path / "m.pt"))
    p = aton.convert(tmp_path / "m.pt", inputs={"x": "f32[N,3]", "y": "f32[N,4]"})
    assert p.result["inputs"][0]["type"] == "Float(N, 3)"
    with pytest.raises(aton.ExportError):
        aton.convert(tmp_path / "none.pt")


def test_external_data(tmp_path):
    x, y = torch.randn(5, 300), torch.randn(5, 400)
    model = Scaled(300, 400).eval()
    p = aton.export(model, (x, y), tmp_path / "m.onnx", external_data="always", source="trace")
    assert len(p._data_files()) == 1
    os.mkdir(tmp_path / "other")
    p.save(tmp_path / "other" / "m.onnx")
    assert sorted(os.listdir(tmp_path / "other")) == ["m.onnx"] + p._data_files()
    torch.testing.assert_close(p(x, y)[0], model(x, y))


def test_patch(tmp_path):
    original = torch.onnx.export
    with aton.patch():
        torch.onnx.export(Scaled(), inputs(), str(tmp_path / "m.onnx"), input_names=["a", "b"])
    assert torch.onnx.export is original and (tmp_path / "m.onnx").exists()


class Turned(torch.nn.Module):
    def forward(self, z, x):
        return z * torch.polar(torch.ones_like(x), x), z.abs()


@pytest.mark.parametrize("source", SOURCES)
def test_complex_numbers(source):
    z, x = torch.randn(2, 3, dtype=torch.complex64), torch.randn(2, 3)
    with pytest.warns(UserWarning, match="pairs"):
        program = aton.verify(Turned(), (z, x), source=source)
    turned, length = program(z, x)
    assert turned.shape == (2, 3, 2) and length.shape == (2, 3)


def test_verification_fails_loudly():
    class Random(torch.nn.Module):
        def forward(self, x):
            return x + random.random()

    with pytest.raises(aton.VerificationError, match="output"):
        aton.verify(Random(), (torch.zeros(3),), source="trace")


def test_a_module_is_as_it_was():
    class Counts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0
            self.register_buffer("total", torch.zeros(3))

        def forward(self, x):
            self.calls += 1
            self.total += x
            return x + self.total

    model = Counts()
    for source in SOURCES:
        aton.export(model, (torch.ones(3),), source=source)
        assert model.calls == 0 and model.total.sum() == 0
