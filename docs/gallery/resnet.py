"""ResNet-18: a module, a dynamic batch, one call."""
import onnxruntime
import torch
import torchvision

import aton

torch.manual_seed(0)
model = torchvision.models.resnet18(weights=None).eval()
images = torch.randn(2, 3, 64, 64)

program = aton.export(model, (images,), "resnet.onnx", input_names=["images"], output_names=["scores"],
                      dynamic_axes={"images": {0: "batch"}, "scores": {0: "batch"}})

session = onnxruntime.InferenceSession("resnet.onnx")
for batch in (1, 3):
    images = torch.randn(batch, 3, 64, 64)
    (scores,) = session.run(None, {"images": images.numpy()})
    torch.testing.assert_close(torch.from_numpy(scores), model(images).detach(), rtol=1e-4, atol=1e-4)
print(f"resnet: from a {program.source}, right for batches of 1 and 3")
