"""aton.export_transformers: names and files as optimum has them, and the tokens that the models write. onnxruntime is fed by hand here."""
import json
import os
import warnings

import numpy
import pytest
import torch

import aton
from aton import transformers as command

onnxruntime = pytest.importorskip("onnxruntime")
t = pytest.importorskip("transformers", minversion="5")

TOKENS = 12
TEXT = dict(vocab_size=99, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64, pad_token_id=0, bos_token_id=1,
            eos_token_id=None)
GROUPED = dict(TEXT, num_key_value_heads=2)
WINDOW = dict(GROUPED, sliding_window=4)  # less than the prompt
GPT2 = dict(vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=1, eos_token_id=None)
BART = dict(vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64,
            pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=3)
VIT = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=16, patch_size=8)

DECODERS = {
    "llama": lambda: t.LlamaForCausalLM(t.LlamaConfig(**GROUPED)),
    "gpt2": lambda: t.GPT2LMHeadModel(t.GPT2Config(**GPT2)),
    "qwen3": lambda: t.Qwen3ForCausalLM(t.Qwen3Config(**GROUPED, head_dim=8)),
    "mistral": lambda: t.MistralForCausalLM(t.MistralConfig(**WINDOW)),
    "gemma3": lambda: t.Gemma3ForCausalLM(t.Gemma3TextConfig(**WINDOW, head_dim=8, layer_types=["sliding_attention", "full_attention"])),
    "phi3": lambda: t.Phi3ForCausalLM(t.Phi3Config(**WINDOW)),
    "opt": lambda: t.OPTForCausalLM(t.OPTConfig(vocab_size=99, hidden_size=32, num_hidden_layers=2, ffn_dim=64, num_attention_heads=4, max_position_embeddings=64,
                                                word_embed_proj_dim=32, pad_token_id=0, bos_token_id=1, eos_token_id=None)),
    "gpt_neox": lambda: t.GPTNeoXForCausalLM(t.GPTNeoXConfig(**TEXT)),
    "bloom": lambda: t.BloomForCausalLM(t.BloomConfig(vocab_size=99, hidden_size=32, n_layer=2, n_head=4, bos_token_id=1, eos_token_id=None)),
}
ENCODERS_WITH_DECODERS = {
    "t5": lambda: t.T5ForConditionalGeneration(t.T5Config(vocab_size=99, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0, pad_token_id=0)),
    "bart": lambda: t.BartForConditionalGeneration(t.BartConfig(**BART, max_position_embeddings=64)),
    "whisper": lambda: t.WhisperForConditionalGeneration(t.WhisperConfig(**BART, num_mel_bins=8, max_source_positions=50, max_target_positions=30)),
    "vision-encoder-decoder": lambda: t.VisionEncoderDecoderModel(t.VisionEncoderDecoderConfig.from_encoder_decoder_configs(t.ViTConfig(**VIT), t.GPT2Config(**GPT2))),
}


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", aton.ExportWarning)
        yield


def prompt():
    """Two prompts, the second with padding before it."""
    ids, mask = torch.randint(4, 99, (2, 5)), torch.ones(2, 5, dtype=torch.int64)
    mask[1, :2] = 0
    return ids, mask


def session(folder, name):
    return onnxruntime.InferenceSession(os.path.join(folder, name + ".onnx"))


def axes(values):
    return {v.name: v.shape for v in values}


def written(folder, ids, mask):
    """The tokens that model.onnx writes: the prompt goes in with a cache of no tokens, then one token at a time."""
    model = session(folder, "model")
    text, mask, new = ids.numpy(), mask.numpy(), ids.numpy()
    past = {i.name: numpy.zeros([len(text), i.shape[1], 0, i.shape[3]], numpy.float32) for i in model.get_inputs() if i.name.startswith("past_key_values.")}
    assert past
    for _ in range(TOKENS):
        feed = {"input_ids": new, "attention_mask": mask, "position_ids": numpy.maximum(mask.cumsum(1) - 1, 0)[:, -new.shape[1]:], **past}
        got = dict(zip([o.name for o in model.get_outputs()], model.run(None, {i.name: feed[i.name] for i in model.get_inputs()})))
        past = {n.replace("present", "past_key_values"): v for n, v in got.items() if n != "logits"}
        new = got["logits"][:, -1:].argmax(-1)
        text, mask = numpy.concatenate([text, new], 1), numpy.concatenate([mask, numpy.ones_like(new)], 1)
    return text.tolist()


@pytest.mark.parametrize("name", DECODERS)
def test_a_decoder_writes_what_generate_writes(tmp_path, name):
    model = DECODERS[name]()
    aton.export_transformers(model, tmp_path)
    ids, mask = prompt()
    assert written(tmp_path, ids, mask) == model.eval().generate(ids, attention_mask=mask, max_new_tokens=TOKENS, do_sample=False, pad_token_id=0).tolist()


@pytest.mark.parametrize("name", ENCODERS_WITH_DECODERS)
def test_an_encoder_and_its_decoders_write_what_the_model_writes(tmp_path, name):
    model = ENCODERS_WITH_DECODERS[name]()
    assert list(aton.export_transformers(model, tmp_path)) == ["encoder_model.onnx", "decoder_model.onnx", "decoder_with_past_model.onnx"]
    ids, mask = prompt()
    given = {"t5": {"input_ids": ids, "attention_mask": mask}, "whisper": {"input_features": torch.randn(2, 8, 100)}, "vision-encoder-decoder": {"pixel_values": torch.randn(2, 3, 16, 16)}}
    given = given.get(name, given["t5"])
    text = want = torch.full((2, 1), 3)
    hidden, = session(tmp_path, "encoder_model").run(None, {k: v.numpy() for k, v in given.items()})
    new, past = text.numpy(), {}
    for _ in range(TOKENS):
        decoder = session(tmp_path, "decoder_with_past_model" if past else "decoder_model")
        feed = {"input_ids": new, "encoder_hidden_states": hidden, "encoder_attention_mask": mask.numpy(), **past}
        got = dict(zip([o.name for o in decoder.get_outputs()], decoder.run(None, {i.name: feed[i.name] for i in decoder.get_inputs()})))
        past.update({n.replace("present", "past_key_values"): v for n, v in got.items() if n != "logits"})
        new = got["logits"][:, -1:].argmax(-1)
        text = torch.cat([text, torch.from_numpy(new)], 1)
        with torch.no_grad():
            logits = model.eval()(**given, decoder_input_ids=want, use_cache=False).logits
        want = torch.cat([want, logits[:, -1:].argmax(-1)], 1)
    assert text.tolist() == want.tolist()


def test_names_of_a_decoder(tmp_path):
    model = DECODERS["llama"]()
    programs = aton.export_transformers(model, tmp_path, verify=False, opset_version=23)
    file = session(tmp_path, "model")
    tokens, past = ["batch_size", "sequence_length"], ["batch_size", 2, "past_sequence_length", 8]
    all_of_them = "past_sequence_length + sequence_length"
    assert axes(file.get_inputs()) == {"input_ids": tokens, "attention_mask": ["batch_size", all_of_them], "position_ids": tokens,
                                       **{f"past_key_values.{i}.{k}": past for i in range(2) for k in ("key", "value")}}
    assert axes(file.get_outputs()) == {"logits": [*tokens, 99], **{f"present.{i}.{k}": ["batch_size", 2, all_of_them, 8] for i in range(2) for k in ("key", "value")}}
    operators = programs["model.onnx"].result["operators"]
    assert operators["onnx::Attention"] == 2 and operators["onnx::RotaryEmbedding"] == 4 and not programs["model.onnx"].warnings
    assert "model.embed_tokens.weight" in programs["model.onnx"].model.graph.initializers, "weights are called as in the state dict"
    assert type(t.AutoConfig.from_pretrained(tmp_path)) is type(model.config) and t.GenerationConfig.from_pretrained(tmp_path).bos_token_id == 1


def test_names_of_an_encoder_and_its_decoders(tmp_path):
    aton.export_transformers(ENCODERS_WITH_DECODERS["t5"](), tmp_path, verify=False)
    encoder, first, later = (session(tmp_path, n) for n in ("encoder_model", "decoder_model", "decoder_with_past_model"))
    words, tokens = ["batch_size", "encoder_sequence_length"], ["batch_size", "decoder_sequence_length"]
    assert axes(encoder.get_inputs()) == {"input_ids": words, "attention_mask": words} and axes(encoder.get_outputs()) == {"last_hidden_state": [*words, 32]}
    assert axes(first.get_inputs()) == {"input_ids": tokens, "encoder_hidden_states": [*words, 32], "encoder_attention_mask": words}
    cache = {f"{i}.{part}.{k}": ["batch_size", 4, size, 8] for i in range(2) for part, size in (("decoder", "decoder_sequence_length"), ("encoder", "encoder_sequence_length"))
             for k in ("key", "value")}
    assert axes(first.get_outputs()) == {"logits": [*tokens, 99], **{"present." + n: s for n, s in cache.items()}}
    past = {n: [*s[:2], s[2].replace("decoder", "past_decoder"), s[3]] if ".decoder." in n else s for n, s in cache.items()}
    assert axes(later.get_inputs()) == {"input_ids": tokens, "encoder_attention_mask": words, **{"past_key_values." + n: s for n, s in past.items()}}
    assert list(axes(later.get_outputs())) == ["logits", *(f"present.{i}.decoder.{k}" for i in range(2) for k in ("key", "value"))]


BERT = {"BertModel": ["last_hidden_state"], "BertForMaskedLM": ["logits"], "BertForSequenceClassification": ["logits"], "BertForTokenClassification": ["logits"],
        "BertForQuestionAnswering": ["start_logits", "end_logits"], "BertForMultipleChoice": ["logits"]}


@pytest.mark.parametrize("name", BERT)
def test_an_encoder(tmp_path, name):
    model = getattr(t, name)(t.BertConfig(**TEXT)).eval()
    program = aton.export_transformers(model, tmp_path)["model.onnx"]
    assert program.input_names == ["input_ids", "attention_mask", "token_type_ids"] and program.output_names == BERT[name]
    ids, mask = prompt()
    given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.ones_like(ids)}
    given = {k: v.reshape(2, 1, 5) if "Choice" in name else v for k, v in given.items()}
    for got, key in zip(program(*given.values()), BERT[name]):
        torch.testing.assert_close(got, getattr(model(**given), key).detach(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("model, given, task", [
    (lambda: t.ViTForImageClassification(t.ViTConfig(**VIT)), {"pixel_values": (3, 3, 16, 16)}, "image-classification"),
    (lambda: t.ResNetForImageClassification(t.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1])), {"pixel_values": (1, 3, 64, 32)}, "image-classification"),
    (lambda: t.Wav2Vec2ForCTC(t.Wav2Vec2Config(vocab_size=32, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, conv_dim=(16, 16), conv_kernel=(10, 3),
                                               conv_stride=(5, 2), num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=2)), {"input_values": (1, 777)}, "automatic-speech-recognition"),
])
def test_images_and_sound(tmp_path, model, given, task):
    model, (name, sizes) = model().eval(), next(iter(given.items()))
    program = aton.export_transformers(model, tmp_path, task=task)["model.onnx"]
    x = torch.randn(sizes)
    assert program.input_names == [name]
    torch.testing.assert_close(program(x)[0], model(x).logits.detach(), rtol=1e-3, atol=1e-4)


def test_a_task_without_a_cache(tmp_path):
    program = aton.export_transformers(DECODERS["llama"](), tmp_path, task="text-generation")["model.onnx"]
    assert program.input_names == ["input_ids", "attention_mask", "position_ids"] and program.output_names == ["logits"]
    assert list(aton.export_transformers(ENCODERS_WITH_DECODERS["t5"](), tmp_path, task="text2text-generation")) == ["encoder_model.onnx", "decoder_model.onnx"]


@pytest.mark.parametrize("options", [["--float16"], ["--bfloat16", "--keep-io-types"]])
def test_halves(tmp_path, options):
    program = aton.export_transformers(DECODERS["llama"](), tmp_path, options=options)["model.onnx"]
    assert any("Float(" in i["type"] for i in program.result["inputs"]) == ("--keep-io-types" in options)


class Drifts(t.LlamaForCausalLM):
    """A model that is another one while it is exported."""

    def forward(self, input_ids, attention_mask=None, position_ids=None, past_key_values=None, use_cache=None):
        out = super().forward(input_ids, attention_mask, position_ids, past_key_values, use_cache=use_cache)
        if torch.compiler.is_exporting():
            out["logits"] = out.logits.roll(1, -1)
        return out


def test_what_differs_is_an_error(tmp_path):
    model = Drifts(t.LlamaConfig(**GROUPED))
    with pytest.raises(aton.VerificationError, match=r"logits of the prompt: off by(?s:.*)token 10 is "):
        aton.export_transformers(model, tmp_path)
    aton.export_transformers(model, tmp_path, verify=False)
    with pytest.raises(aton.VerificationError, match="logits of token 1: off by"):
        aton.export_transformers(DECODERS["gpt2"](), tmp_path, rtol=1e-12)


def test_the_model_stays_as_it_is(tmp_path):
    model = DECODERS["llama"]().train()
    model.model.layers[0].eval()
    model.set_attn_implementation("flex_attention")
    aton.export_transformers(model, tmp_path, verify=False)
    assert model.training and not model.model.layers[0].training and model.config._attn_implementation == "flex_attention" and "forward" not in vars(model)


@pytest.mark.parametrize("model, options, message", [
    (lambda: t.MambaForCausalLM(t.MambaConfig(vocab_size=99, hidden_size=32, num_hidden_layers=2, state_size=4)), {"task": "text-generation-with-past"},
     "keeps from token to token is .*, and not the keys and values of each layer"),
    (lambda: torch.nn.Linear(2, 2), {}, "a Linear is no transformers.PreTrainedModel"),
    (DECODERS["llama"], {"dynamic_axes": {}}, "dynamic_axes follows from the model"),
    (DECODERS["llama"], {"task": "translation"}, "there is no task 'translation'; there are text-generation, "),
    (DECODERS["llama"], {"task": "feature-extraction"}, "a LlamaForCausalLM gives logits, and no last_hidden_state"),
    (DECODERS["llama"], {"task": "text-classification"}, "a LlamaForCausalLM is for text-generation: give a model of the class for text-classification"),
    (DECODERS["llama"], {"task": "text2text-generation"}, "a LlamaForCausalLM is for text-generation"),
    (DECODERS["llama"], {"task": "text2text-generation-with-past"}, "a LlamaForCausalLM has no cache for text2text-generation"),
    (DECODERS["llama"], {"export_params": False}, "files without weights compute nothing"),
    (lambda: t.CLIPModel(t.CLIPConfig()), {}, "the task of a CLIPModel is not known|fails|forward"),
    (lambda: os.path.dirname(__file__), {}, "transformers finds no model in "),
])
def test_refused(tmp_path, model, options, message):
    with pytest.raises(aton.ExportError, match=message):
        aton.export_transformers(model(), tmp_path, **options)


def test_a_misspelt_argument(tmp_path):
    with pytest.raises(TypeError, match="unexpected keyword argument 'opset_verson'"):
        aton.export_transformers(DECODERS["llama"](), tmp_path / "made", opset_verson=18)
    assert not (tmp_path / "made").exists()


def test_a_folder_and_the_command(tmp_path, capsys):
    model = DECODERS["gpt2"]()
    model.save_pretrained(tmp_path / "saved")
    assert command.main([str(tmp_path / "saved"), "-o", str(tmp_path / "made"), "--opset", "18", "--external-data", "always"]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "made" / "model.onnx")
    assert {"config.json", "generation_config.json", "model.onnx"} < set(os.listdir(tmp_path / "made")) and any(n.endswith(".data") for n in os.listdir(tmp_path / "made"))
    ids, mask = prompt()
    assert written(tmp_path / "made", ids, mask) == model.eval().generate(ids, attention_mask=mask, max_new_tokens=TOKENS, do_sample=False, pad_token_id=0).tolist()
    assert json.loads((tmp_path / "made" / "config.json").read_text())["model_type"] == "gpt2"
    assert command.main([str(tmp_path / "saved"), "-o", str(tmp_path / "saved" / "config.json")]) == 1
    assert "config.json is no folder and cannot be made" in capsys.readouterr().err
    assert command.main([str(tmp_path / "saved"), "-o", str(tmp_path / "made"), "--task", "fill-mask"]) == 1
    assert "transformers has no class of gpt2 for the task fill-mask" in capsys.readouterr().err
