"""Operators of a library: one becomes a function written in onnxscript, which the file carries, the other operators of ONNX by a rule."""
import onnxruntime
import onnxscript
import torch
from onnxscript import opset20 as op

import aton

library = torch.library.Library("mylib", "DEF")
library.define("norm(Tensor x, *, float eps=1e-05) -> Tensor")
library.define("halves(Tensor x, int axis) -> (Tensor, Tensor)")


def norm_of(x, *, eps=1e-5):
    return x / (x * x).mean(-1, keepdim=True).add(eps).sqrt()


def halves_of(x, axis):
    a, b = x.chunk(2, axis)
    return a.contiguous(), b.contiguous()


for name, function in {"norm": norm_of, "halves": halves_of}.items():
    library.impl(name, function, "CompositeExplicitAutograd")
    if hasattr(torch.library, "register_fake"):
        torch.library.register_fake("mylib::" + name, function, lib=library)


@aton.rule("mylib::norm(Tensor x, *, float eps=1e-05) -> Tensor", types="%x")
@onnxscript.script(onnxscript.values.Opset("my.domain", 1))
def norm(x, eps: float):
    square = op.ReduceMean(x * x, [-1])
    return x / op.Sqrt(square + op.CastLike(eps, x))


HALVES = """
declare mylib::halves(Tensor x, int axis) -> (Tensor, Tensor)
rule halves
  from
    %a, %b = mylib::halves(%x, $axis)
  to
    %a, %b = onnx::Split[axis=$axis, num_outputs=2](%x)
"""


class Model(torch.nn.Module):
    def forward(self, x):
        a, b = torch.ops.mylib.halves(x, 1)
        return torch.ops.mylib.norm(a, eps=0.01) + b


model = Model()
program = aton.export(model, (torch.randn(3, 8),), "custom_operator.onnx", input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "batch"}},
                      rules=[norm, HALVES])

session = onnxruntime.InferenceSession("custom_operator.onnx")
for batch in (1, 5):
    x = torch.randn(batch, 8)
    (y,) = session.run(None, {"x": x.numpy()})
    torch.testing.assert_close(torch.from_numpy(y), model(x))
kinds = sorted(program.result["operators"])
assert "my.domain::norm" in kinds, kinds
print(f"custom_operator: from a {program.source}, {', '.join(kinds)}")
