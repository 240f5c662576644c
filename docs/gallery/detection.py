"""A detector: the number of boxes depends on the image, and non-maximum suppression is in the file."""
import onnxruntime
import torch
import torchvision

import aton

torch.manual_seed(0)
model = torchvision.models.detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5, score_thresh=0.3, topk_candidates=50).eval()
model.train()
with torch.no_grad():  # statistics of batches, so that random weights tell one place from another
    for m in model.modules():
        if isinstance(m, torch.nn.BatchNorm2d):
            m.momentum = None
    features = model.backbone(torch.rand(4, 3, 320, 320))
    model.head(list(features.values()))
model.eval()

program = aton.export(model, ([torch.rand(3, 320, 320)],), "detection.onnx", input_names=["image"], output_names=["boxes", "scores", "labels"], source="trace")

session = onnxruntime.InferenceSession("detection.onnx")
numbers = []
for seed in range(3):
    image = torch.rand(3, 320, 320, generator=torch.Generator().manual_seed(seed))
    boxes, scores, labels = session.run(None, {session.get_inputs()[0].name: image.numpy()})
    with torch.no_grad():
        (want,) = model([image])
    torch.testing.assert_close(torch.from_numpy(boxes), want["boxes"], rtol=1e-3, atol=1e-2)
    torch.testing.assert_close(torch.from_numpy(scores), want["scores"], rtol=1e-3, atol=1e-4)
    assert labels.tolist() == want["labels"].tolist()
    numbers.append(len(boxes))
assert min(numbers) > 0
print(f"detection: from a {program.source}, right for three images with {', '.join(map(str, numbers))} boxes")
