"""BERT: batch and length are dynamic, and the mask leaves out what is padding."""
import onnxruntime
import torch
from transformers import BertConfig, BertModel

import aton

torch.manual_seed(0)
config = BertConfig(vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, max_position_embeddings=64)
model = BertModel(config).eval()


def example(batch, length):
    mask = torch.ones(batch, length, dtype=torch.int64)
    mask[-1, length // 2:] = 0
    return torch.randint(0, 100, (batch, length)), mask


axes = {0: "batch", 1: "length"}
program = aton.export(model, example(2, 8), "bert.onnx", input_names=["input_ids", "attention_mask"], output_names=["hidden", "pooled"],
                      dynamic_axes={"input_ids": axes, "attention_mask": axes})

session = onnxruntime.InferenceSession("bert.onnx")
for batch, length in ((1, 5), (3, 64)):
    ids, mask = example(batch, length)
    hidden, pooled = session.run(None, {"input_ids": ids.numpy(), "attention_mask": mask.numpy()})
    want = model(ids, mask)
    torch.testing.assert_close(torch.from_numpy(hidden), want.last_hidden_state.detach(), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(torch.from_numpy(pooled), want.pooler_output.detach(), rtol=1e-4, atol=1e-4)
print(f"bert: from a {program.source}, right for 1 x 5 and 3 x 64 tokens")
