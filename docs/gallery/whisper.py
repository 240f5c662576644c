"""Whisper in one call: an encoder and its decoders, and a loop in onnxruntime that writes the text that the model writes."""
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
programs = aton.export_transformers(model, "whisper")

encoder, first, later = (onnxruntime.InferenceSession(f"whisper/{name}") for name in programs)
for batch in (1, 3):
    spectrum = torch.randn(batch, 8, 100)
    (sound,) = encoder.run(None, {"input_features": spectrum.numpy()})
    ids = new = want = numpy.full((batch, 1), config.decoder_start_token_id)
    cache = {}
    for _ in range(10):
        decoder, more = (later, cache) if cache else (first, {"encoder_hidden_states": sound})
        got = dict(zip([o.name for o in decoder.get_outputs()], decoder.run(None, {"input_ids": new, **more})))
        cache.update({n.replace("present", "past_key_values"): t for n, t in got.items() if n != "logits"})
        new = got["logits"][:, -1:].argmax(-1)
        ids = numpy.concatenate([ids, new], 1)
        with torch.no_grad():
            eager = model(spectrum, decoder_input_ids=torch.from_numpy(want)).logits[:, -1]
        torch.testing.assert_close(torch.from_numpy(got["logits"][:, -1]), eager, rtol=1e-3, atol=1e-4)
        want = numpy.concatenate([want, eager.argmax(-1).numpy()[:, None]], 1)
    assert (ids == want).all()
print(f"whisper: {', '.join(programs)}, the 10 tokens of the model for one sound and for three")
