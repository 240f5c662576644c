"""Control flow: a loop whose length the data decides, and a branch. torch.jit.script keeps both."""
import onnxruntime
import torch

import aton


class Iterate(torch.nn.Module):
    """Newton's method for a square root, until it is near enough; the reciprocal where the sum is negative."""

    def forward(self, x: torch.Tensor, near: torch.Tensor):
        if bool(x.sum() < 0):
            return 1 / x, torch.tensor(0)
        y, steps = x, 0
        while bool((y * y - x).abs().max() > near):
            y = (y + x / y) / 2
            steps += 1
        return y, torch.tensor(steps)


model = torch.jit.script(Iterate())
program = aton.export(model, (torch.rand(4) + 1, torch.tensor(1e-3)), "control_flow.onnx", input_names=["x", "near"], output_names=["y", "steps"],
                      dynamic_axes={"x": {0: "n"}})

session = onnxruntime.InferenceSession("control_flow.onnx")
counts = []
for x in (torch.rand(3) + 1, torch.rand(6) * 1000, -torch.rand(2) - 1):
    y, steps = session.run(None, {"x": x.numpy(), "near": torch.tensor(1e-3).numpy()})
    want, count = model(x, torch.tensor(1e-3))
    torch.testing.assert_close(torch.from_numpy(y), want)
    assert steps == count
    counts.append(int(steps))
assert len(set(counts)) == 3
print(f"control_flow: from a {program.source}, right for {', '.join(map(str, counts))} steps")
