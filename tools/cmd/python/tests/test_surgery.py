"""Cutting, joining and changing files, as onnxruntime runs them."""
import numpy as np
import pytest
import torch

import aton


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


@pytest.fixture
def model(tmp_path):
    torch.manual_seed(0)
    net = Net().eval()
    file = tmp_path / "net.onnx"
    aton.export(net, (torch.randn(2, 3),), str(file), input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "N"}})
    return net, file


def outputs(file, **feeds):
    import onnxruntime
    session = onnxruntime.InferenceSession(str(file))
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))


def between(file):
    import onnx
    graph = onnx.load(str(file)).graph
    return next(n.output[0] for n in graph.node if n.op_type == "Relu")


def test_cut_and_join(model, tmp_path):
    net, file = model
    x = torch.randn(5, 3)
    h = between(file)
    first, second, both = tmp_path / "a.onnx", tmp_path / "b.onnx", tmp_path / "c.onnx"
    aton.cut(file, first, outputs=[h])
    aton.cut(file, second, inputs=[h], outputs=["y"])
    want = net(x).detach().numpy()
    middle = outputs(first, x=x.numpy())[h]
    np.testing.assert_allclose(outputs(second, **{h: middle})["y"], want, rtol=1e-5, atol=1e-6)
    aton.join(first, second, f=both)
    np.testing.assert_allclose(outputs(both, x=x.numpy())["y"], want, rtol=1e-5, atol=1e-6)
    aton.rename(second, {h: "features"}, tmp_path / "d.onnx")
    aton.join(first, tmp_path / "d.onnx", f=both, links={h: "features"})
    np.testing.assert_allclose(outputs(both, x=x.numpy())["y"], want, rtol=1e-5, atol=1e-6)
    with pytest.raises(aton.ExportError, match="no value nothing"):
        aton.cut(file, first, outputs=["nothing"])


def test_names_and_weights(model, tmp_path):
    net, file = model
    x = torch.randn(5, 3)
    changed = tmp_path / "changed.onnx"
    aton.rename(file, {"x": "image", "y": "scores"}, changed)
    np.testing.assert_allclose(outputs(changed, image=x.numpy())["scores"], net(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    with torch.no_grad():
        net.second.bias.add_(1)
    aton.set_weights(file, {"second.bias": net.second.bias}, changed)
    np.testing.assert_allclose(outputs(changed, x=x.numpy())["y"], net(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(aton.ExportError, match="second.bias is Float"):
        aton.set_weights(file, {"second.bias": torch.zeros(3)}, changed)
