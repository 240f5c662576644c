"""Rules: text, files, and functions of onnxscript."""
import warnings

import pytest
import torch

import aton

TEXT = """
rule gelu
  from
    %y = aten::gelu(%x, approximate="none")
  to
    %y : %x = com.microsoft::Gelu(%x)
"""


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_text_and_file(tmp_path):
    (tmp_path / "my.rules").write_text(TEXT)
    for rules in (TEXT, tmp_path / "my.rules", [str(tmp_path / "my.rules")]):
        p = aton.export(torch.nn.GELU(), (torch.randn(3),), source="trace", rules=rules)
        assert "com.microsoft::Gelu" in p.result["operators"]


@pytest.fixture
def norm():
    onnxscript = pytest.importorskip("onnxscript")
    from onnxscript import opset18 as op

    @onnxscript.script(onnxscript.values.Opset("my.domain", 2))
    def gelu_of(self, approximate: str):
        return op.Mul(self, op.Sigmoid(self))

    return gelu_of


def test_function(tmp_path, norm):
    rule = aton.rule("aten::gelu(Tensor self, *, str approximate='none') -> Tensor", types="%self")(norm)
    assert rule(torch.zeros(2).numpy(), approximate="none").tolist() == [0, 0], "it is still a function of onnxscript"
    x = torch.randn(3, 5)
    for opset in (17, 20):
        p = aton.export(torch.nn.GELU(), (x,), tmp_path / "m.onnx", source="trace", rules=rule, opset_version=opset)
        assert p.result["operators"] == {"my.domain::gelu_of": 1} and p.result["opsets"]["my.domain"] == 2
        torch.testing.assert_close(p(x)[0], x * torch.sigmoid(x))


@pytest.mark.parametrize("schema, types, message", [
    ("aten::gelu", "%self", "no schema"),
    ("aten::gelu(Tensor x, *, str approximate='none') -> Tensor", "%x", "inputs"),
    ("aten::gelu(Tensor self) -> Tensor", "%self", "approximate"),
    ("aten::gelu(Tensor self, *, str approximate='none') -> Tensor", ["%self", "%self"], "types"),
])
def test_what_does_not_fit(norm, schema, types, message):
    with pytest.raises(ValueError, match=message):
        aton.rule(schema, types=types)(norm)


def test_no_function():
    with pytest.raises(TypeError, match="onnxscript"):
        aton.rule("m::f(Tensor x, int[2] n=[1, 2], bool b=False) -> Tensor", types="%x")(lambda x: x)
