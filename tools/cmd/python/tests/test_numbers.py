"""Numbers and quantized tensors among arguments, and inputs that are not used: as torch.onnx has them when it traces."""
import warnings

import pytest
import torch

import aton


class Numbers(torch.nn.Module):
    def forward(self, x, n: int, unused, scale: float = 1.0):
        return x * scale + n


class Axis(torch.nn.Module):
    def forward(self, x, axis: int):
        return torch.softmax(x, axis)


class Quantized(torch.nn.Module):
    def forward(self, x, y):
        return torch.relu(x), x.dequantize() + y


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_numbers_are_inputs():
    x, other = torch.randn(2, 3), torch.randn(4)
    for model in (Numbers(), torch.jit.script(Numbers())):
        p = aton.verify(model, (x, 3, other, 2.5), dynamo=False)
        assert p.input_names == ["x", "n", "scale"] and p.result["dropped"] == [2]
        torch.testing.assert_close(p(x, 7, other, -1.0)[0], model(x, 7, other, -1.0))
    assert aton.verify(Numbers(), (x, 3, other, 2.5), dynamo=False, input_names=["a", "b", "c", "d"]).input_names == ["a", "b", "d"]


def test_numbers_that_must_be_known():
    p = aton.verify(Axis(), (torch.randn(2, 3), 1), dynamo=False)
    assert p.input_names == ["x"]


@pytest.mark.skipif(not hasattr(torch, "export"), reason="this PyTorch has no torch.export")
def test_programs_have_constants():
    x, other = torch.randn(2, 3), torch.randn(4)
    assert aton.verify(Numbers(), (x, 3, other, 2.5), dynamo=True).input_names == ["x", "unused"]


def test_quantized_tensors():
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    q = torch.quantize_per_tensor(x, 0.1, 4, torch.quint8)
    p = aton.export(Quantized(), (q, y), dynamo=False, output_names=["q", "scale", "zero", "sum"])
    assert p.input_names == ["x_value", "x_scale", "x_zero_point", "y"] and p.output_names == ["q", "scale", "zero", "sum"]
    other = torch.quantize_per_tensor(x, 0.07, 100, torch.quint8)  # the scale is no constant
    for given in (q, other):
        relu, total = Quantized()(given, y)
        integers, scale, zero, got = p(given, y)
        assert torch.equal(integers, relu.int_repr()) and zero.dtype == torch.uint8 and zero.item() == relu.q_zero_point()
        torch.testing.assert_close(scale.item(), relu.q_scale())
        torch.testing.assert_close(got, total)
