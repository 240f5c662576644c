"""Whisper: an encoder and a decoder, and a loop in onnxruntime that writes the text that the model writes."""
import numpy
import onnxruntime
import torch
from transformers import WhisperConfig, WhisperForConditionalGeneration

import aton

torch.manual_seed(0)
config = WhisperConfig(vocab_size=100, num_mel_bins=8, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
                       encoder_ffn_dim=64, decoder_ffn_dim=64, max_source_positions=50, max_target_positions=30, pad_token_id=0, bos_token_id=1,
                       eos_token_id=2, decoder_start_token_id=3, suppress_tokens=[], begin_suppress_tokens=[])
model = WhisperForConditionalGeneration(config).eval()


class Decoder(torch.nn.Module):
    """The logits of the next token."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, sound):
        hidden = self.model.model.decoder(input_ids=ids, encoder_hidden_states=sound).last_hidden_state
        return self.model.proj_out(hidden[:, -1])


spectrum = torch.randn(2, 8, 100)
with torch.no_grad():
    sound = model.model.encoder(spectrum).last_hidden_state
first = aton.export(model.model.encoder, (spectrum,), "encoder.onnx", input_names=["spectrum"], output_names=["sound"], dynamic_axes={"spectrum": {0: "batch"}})
second = aton.export(Decoder(model), (torch.randint(3, 100, (2, 4)), sound), "decoder.onnx", input_names=["ids", "sound"], output_names=["logits"],
                     dynamic_axes={"ids": {0: "batch", 1: "length"}, "sound": {0: "batch"}})

encoder, decoder = (onnxruntime.InferenceSession(n) for n in ("encoder.onnx", "decoder.onnx"))
for batch in (1, 3):
    spectrum = torch.randn(batch, 8, 100)
    (sound,) = encoder.run(None, {"spectrum": spectrum.numpy()})
    ids = want = numpy.full((batch, 1), config.decoder_start_token_id)
    for _ in range(10):
        (logits,) = decoder.run(None, {"ids": ids, "sound": sound})
        ids = numpy.concatenate([ids, logits.argmax(-1)[:, None]], 1)
        with torch.no_grad():
            eager = model(spectrum, decoder_input_ids=torch.from_numpy(want)).logits[:, -1]
        torch.testing.assert_close(torch.from_numpy(logits), eager, rtol=1e-3, atol=1e-4)
        want = numpy.concatenate([want, eager.argmax(-1).numpy()[:, None]], 1)
    assert (ids == want).all()
print(f"whisper: from a {first.source} and a {second.source}, the 10 tokens of the model for one sound and for three")
