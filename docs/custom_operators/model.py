# Makes model.pt2 and data.npz: a module that calls two operators of a library, and what it gives.
import numpy
import torch

library = torch.library.Library("mylib", "DEF")
library.define("norm(Tensor x, *, float eps=1e-05) -> Tensor")
library.define("halves(Tensor[] xs, int axis) -> (Tensor, Tensor)")


def norm(x, *, eps=1e-5):
    return x / (x * x).mean(-1, keepdim=True).add(eps).sqrt()


def halves(xs, axis):
    a, b = torch.cat(xs, axis).chunk(2, axis)
    return a.contiguous(), b.contiguous()


for name, function in {"norm": norm, "halves": halves}.items():
    library.impl(name, function, "CompositeExplicitAutograd")
    torch.library.register_fake("mylib::" + name, function, lib=library)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(8, 8))

    def forward(self, x):
        y = torch.ops.mylib.norm(x @ self.weight, eps=0.01)
        a, b = torch.ops.mylib.halves([x, y], 1)
        return a + b


torch.manual_seed(0)
model, x = Model().eval(), torch.randn(4, 8)
axis = torch.export.Dim("N", min=2, max=1024)
torch.export.save(torch.export.export(model, (x,), dynamic_shapes=({0: axis},)), "model.pt2")
numpy.savez("data.npz", input_0=x.numpy(), output_0=model(x).detach().numpy())
