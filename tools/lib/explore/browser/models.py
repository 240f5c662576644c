"""The models of docs/explore.md, with random weights: models.py FOLDER. Needs PyTorch, torchvision and transformers; those that need a
package that is missing are left out, and said to be.

    resnet18.pt2   torchvision's ResNet-18, exported with a dynamic batch
    bert.pt2       a BERT of two layers, of transformers
    search.pt      a scripted beam of loops and branches
    quantized.pt   a convolution and a linear layer in int8, traced
    refused.pt     a program with an operator that ONNX cannot express
"""

import linecache
import pathlib
import re
import sys
import types
import zipfile

import torch
from torch import nn


class Search(nn.Module):
    """Greedy decoding with a small recurrent cell: a loop that ends when the data says so, with a branch in it."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(40, 16)
        self.cell = nn.Linear(32, 16)
        self.head = nn.Linear(16, 40)

    def step(self, token: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.cell(torch.cat([self.embed(token), state], 1)))

    def forward(self, first: torch.Tensor, limit: int):
        state = torch.zeros(first.shape[0], 16)
        token = first
        score = torch.zeros(first.shape[0])
        for i in range(limit):
            state = self.step(token, state)
            logits = self.head(state).log_softmax(1)
            best, token = logits.max(1)
            if bool(best.mean() < -3.0):
                score = score + best * 0.5
            else:
                score = score + best
        return token, score


class Quantized(nn.Module):
    """What convert of torch.ao.quantization makes: int8 in the middle, float outside."""

    def __init__(self):
        super().__init__()
        self.quant = torch.ao.quantization.QuantStub()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.relu = nn.ReLU()
        self.fc = nn.Linear(8 * 4 * 4, 5)
        self.dequant = torch.ao.quantization.DeQuantStub()

    def forward(self, x):
        x = self.relu(self.conv(self.quant(x)))
        x = torch.max_pool2d(x, 2).flatten(1)
        return self.dequant(self.fc(x))


class Refused(nn.Module):
    """The eigenvalues of a general matrix are complex: ONNX has no operator for them."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor):
        values = torch.linalg.eigvals(self.fc(x))
        return torch.relu(values.real)


def resnet18(path):
    import torchvision

    model = small(torchvision.models.resnet18().eval())
    batch = torch.export.Dim("batch")
    torch.export.save(torch.export.export(model, (torch.randn(2, 3, 64, 64),), dynamic_shapes=({0: batch},)), path)


def bert(path):
    import transformers

    config = transformers.BertConfig(vocab_size=200, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, max_position_embeddings=64)
    model = transformers.BertModel(config).eval()
    ids = torch.randint(0, 200, (2, 12))
    torch.export.save(torch.export.export(model, (), {"input_ids": ids, "attention_mask": torch.ones_like(ids)}), path)


def search(path):
    torch.jit.save(torch.jit.script(Search().eval()), path)


def quantized(path):
    model = Quantized().eval()
    model.qconfig = torch.ao.quantization.get_default_qconfig("fbgemm")
    torch.backends.quantized.engine = "fbgemm"
    prepared = torch.ao.quantization.prepare(torch.ao.quantization.fuse_modules(model, [["conv", "relu"]]))
    prepared(torch.randn(4, 3, 8, 8))
    torch.jit.save(torch.jit.trace(torch.ao.quantization.convert(prepared), (torch.randn(2, 3, 8, 8),)), path)


def refused(path):
    torch.jit.save(torch.jit.script(Refused().eval()), path)


def small(model):
    """Gives large weights elements that repeat after a while, so that the archive can be packed."""
    with torch.no_grad():
        for p in model.parameters():
            if p.numel() > 1000:
                pattern = torch.randn(997) * (2.0 / p[0].numel()) ** 0.5
                p.copy_(pattern.repeat(p.numel() // 997 + 1)[: p.numel()].reshape(p.shape))
    return model


def pack(path):
    """Compresses an archive, and takes the place where Python's packages lie out of the stack traces."""
    with zipfile.ZipFile(path) as z:
        records = [(n, z.read(n)) for n in z.namelist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
        for name, data in records:
            if name.endswith(".json"):
                data = re.sub(rb'File \\"/[^"]*?/site-packages/', rb'File \\"site-packages/', data)
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            z.writestr(info, data)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in [("resnet18.pt2", resnet18), ("bert.pt2", bert), ("search.pt", search), ("quantized.pt", quantized), ("refused.pt", refused)]:
        torch.manual_seed(0)
        try:
            make(str(folder / name))
            pack(folder / name)
        except ModuleNotFoundError as e:
            print(f"{name} is left out: {e}", file=sys.stderr)


if __name__ == "__main__":  # as a module of a short name, for the archives name its file
    text = pathlib.Path(__file__).read_text()
    linecache.cache["models.py"] = (len(text), None, text.splitlines(True), "models.py")
    sys.modules["models"] = types.ModuleType("models")
    exec(compile(text, "models.py", "exec"), vars(sys.modules["models"]))
    sys.modules["models"].main()
