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


class Patches(torch.nn.Module):
    """A small vision transformer: patches, a token before each sequence, positions, and the first token classified."""

    def __init__(self):
        super().__init__()
        self.patch = torch.nn.Conv2d(3, 8, 4, stride=4)
        self.token, self.place = torch.nn.Parameter(torch.randn(1, 1, 8)), torch.nn.Parameter(torch.randn(1, 5, 8))
        self.layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.head = torch.nn.Linear(8, 3)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.place
        return self.head(self.layer(x)[:, 0])


class Images(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.features = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.MaxPool2d(2))
        self.head = torch.nn.Linear(4 * 3 * 3, 2)

    def forward(self, x):
        return self.head(self.features(x).view(x.shape[0], -1))


class Words(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rnn = torch.nn.Embedding(11, 4), torch.nn.LSTM(4, 5, batch_first=True)

    def forward(self, ids):
        state = torch.zeros(1, ids.shape[0], 5), torch.zeros(1, ids.shape[0], 5)
        return self.rnn(self.embed(ids), state)[0]


@pytest.mark.parametrize("exporter", ["aton", "torch"])
@pytest.mark.parametrize("net, example, other", [
    (Net, torch.randn(1, 3), torch.randn(4, 3)),
    (Images, torch.randn(1, 3, 8, 8), torch.randn(5, 3, 8, 8)),
    (Images, torch.randn(2, 3, 8, 8), torch.randn(5, 3, 8, 8)),
    (Patches, torch.randn(1, 3, 8, 8), torch.randn(3, 3, 8, 8)),
    (Patches, torch.randn(2, 3, 8, 8), torch.randn(3, 3, 8, 8)),
    (Words, torch.zeros(2, 6, dtype=torch.int64), torch.randint(0, 11, (5, 6))),
], ids=lambda v: v.__name__ if isinstance(v, type) else str(tuple(v.shape)))
def test_axes(tmp_path, net, example, other, exporter):
    torch.manual_seed(0)
    net, fixed, free = net().eval(), str(tmp_path / "fixed.onnx"), str(tmp_path / "free.onnx")
    if exporter == "aton":
        aton.export(net, (example,), fixed, input_names=["x"], output_names=["y"])
    else:
        torch.onnx.export(net, (example,), fixed, input_names=["x"], output_names=["y"], dynamo=False, opset_version=17)
    if isinstance(net, Patches) and example.shape[0] == 1 and exporter == "aton":
        with pytest.raises(aton.ExportError, match="cannot be followed"):  # an Add broadcasts away the batch of 1
            aton.set_axes(fixed, {"x": {0: "N"}}, free)
        return
    aton.set_axes(fixed, {"x": {0: "N"}}, free)
    for x in example, other:
        np.testing.assert_allclose(outputs(free, x=x.numpy())["y"], net(x).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_axes_that_cannot_be_followed(model, tmp_path):
    _, file = model
    with pytest.raises(aton.ExportError, match="dynamic already"):
        aton.set_axes(file, {"x": {0: "N"}}, tmp_path / "changed.onnx")
    with pytest.raises(aton.ExportError, match="through Gemm|through MatMul"):
        aton.set_axes(file, {"x": {1: "C"}}, tmp_path / "changed.onnx")


def test_repair(model, tmp_path):
    import onnx
    net, file = model
    broken, repaired = tmp_path / "broken.onnx", tmp_path / "repaired.onnx"
    proto = onnx.load(str(file))
    nodes = list(proto.graph.node)
    del proto.graph.node[:]
    proto.graph.node.extend(reversed(nodes))
    proto.graph.name = ""
    onnx.save(proto, str(broken))
    x = torch.randn(5, 3)
    for read in (aton.convert, aton.optimize, lambda *args, **kwargs: aton.convert_version(args[0], 17, *args[1:], **kwargs)):
        with pytest.raises(aton.ExportError):
            read(broken, repaired)
        with pytest.warns(aton.ExportWarning, match="sorted|order"):
            program = read(broken, repaired, repair=True)
        assert program.warnings
        onnx.checker.check_model(str(repaired))
        np.testing.assert_allclose(outputs(repaired, x=x.numpy())["y"], net(x).detach().numpy(), rtol=1e-5, atol=1e-6)
