"""Llama with its cache in one call: names and files as optimum has them, and a loop in onnxruntime writes the text that generate writes."""
import numpy
import onnxruntime
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import aton

torch.manual_seed(0)
config = LlamaConfig(vocab_size=100, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                     max_position_embeddings=64, eos_token_id=None)
model = LlamaForCausalLM(config).eval()
programs = aton.export_transformers(model, "llama")

session = onnxruntime.InferenceSession("llama/model.onnx")
outputs = [o.name for o in session.get_outputs()]
for prompt in (torch.tensor([[1, 2, 3, 4]]), torch.tensor([[7, 8], [9, 10], [11, 12]])):
    text, new = prompt.numpy(), prompt.numpy()
    cache = {i.name: numpy.zeros((len(text), i.shape[1], 0, i.shape[3]), numpy.float32) for i in session.get_inputs() if i.name.startswith("past_key_values.")}
    for _ in range(10):
        mask = numpy.ones_like(text)
        positions = (mask.cumsum(1) - 1)[:, -new.shape[1]:]
        got = dict(zip(outputs, session.run(None, {"input_ids": new, "attention_mask": mask, "position_ids": positions, **cache})))
        cache = {n.replace("present", "past_key_values"): t for n, t in got.items() if n != "logits"}
        new = got["logits"][:, -1:].argmax(-1)
        text = numpy.concatenate([text, new], 1)
    want = model.generate(prompt, max_new_tokens=10, do_sample=False, pad_token_id=0)
    assert text.tolist() == want.tolist(), (text, want)
print(f"llama: {', '.join(programs)} from a {programs['model.onnx'].source}, the 10 tokens of generate for one prompt and for three")
