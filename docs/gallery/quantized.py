"""A quantized model: eight-bit weights and activations, as PyTorch computes them."""
import onnxruntime
import torch
from torch.ao import quantization

import aton

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
        self.layers = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 8 * 8, 10))

    def forward(self, x):
        return self.dequant(self.layers(self.quant(x)))


model = Net().eval()
# seven bits of weights ("fbgemm" does that, "qnnpack" does not): with eight, onnxruntime's kernels saturate on processors without VNNI
model.qconfig = quantization.get_default_qconfig("fbgemm")
torch.backends.quantized.engine = "fbgemm"
quantization.prepare(model, inplace=True)
for _ in range(4):
    model(torch.rand(4, 3, 8, 8))
quantization.convert(model, inplace=True)

x = torch.rand(2, 3, 8, 8)
program = aton.export(model, (x,), "quantized.onnx", input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "batch"}}, source="trace")

session = onnxruntime.InferenceSession("quantized.onnx")
step = model.layers[3].scale  # what one unit of the last layer is worth
for batch in (1, 5):
    x = torch.rand(batch, 3, 8, 8)
    (y,) = session.run(None, {"x": x.numpy()})
    off = (torch.from_numpy(y) - model(x)).abs() / step
    assert off.max() < 1.01 and (off > 0.5).float().mean() < 0.05, off  # a rounding apart, seldom
print(f"quantized: from a {program.source}, right for batches of 1 and 5, at most {off.max().item():.0f} unit of the last place apart")
