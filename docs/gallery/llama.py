"""Llama with its cache: keys and values go in and come out, and a loop in onnxruntime writes the text that generate writes."""
import numpy
import onnxruntime
import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

import aton

torch.manual_seed(0)
config = LlamaConfig(vocab_size=100, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                     max_position_embeddings=64, eos_token_id=None)
model = LlamaForCausalLM(config).eval()


class Step(torch.nn.Module):
    """The tokens that are new, and keys and values of those before: logits, and keys and values of all."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, *past):
        cache = DynamicCache(list(zip(past[0::2], past[1::2])))
        out = self.model(input_ids=ids, past_key_values=cache, use_cache=True)
        return (out.logits, *(t for layer in out.past_key_values.layers for t in (layer.keys, layer.values)))


names = [f"{kind}.{layer}" for layer in range(config.num_hidden_layers) for kind in ("key", "value")]
size = config.hidden_size // config.num_attention_heads
past = [torch.randn(2, config.num_key_value_heads, 5, size) for _ in names]
program = aton.export(
    Step(model), (torch.randint(0, 100, (2, 3)), *past), "llama.onnx", input_names=["ids", *names], output_names=["logits", *("new." + n for n in names)],
    dynamic_axes={"ids": {0: "batch", 1: "tokens"}, **{n: {0: "batch", 2: "past"} for n in names}})

session = onnxruntime.InferenceSession("llama.onnx")
for prompt in (torch.tensor([[1, 2, 3, 4]]), torch.tensor([[7, 8], [9, 10], [11, 12]])):
    text, new = prompt.numpy(), prompt.numpy()
    cache = {n: numpy.zeros((len(text), config.num_key_value_heads, 0, size), numpy.float32) for n in names}
    for _ in range(10):
        logits, *values = session.run(None, {"ids": new, **cache})
        cache = dict(zip(names, values))
        new = logits[:, -1:].argmax(-1)
        text = numpy.concatenate([text, new], 1)
    want = model.generate(prompt, max_new_tokens=10, do_sample=False, pad_token_id=0)
    assert text.tolist() == want.tolist(), (text, want)
print(f"llama: from a {program.source}, the 10 tokens of generate for one prompt and for three")
