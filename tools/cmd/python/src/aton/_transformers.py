"""Models of transformers as the files that optimum makes of them: a decoder with its cache, an encoder and its decoders, or one file."""
import contextlib
import dataclasses
import importlib.util
import inspect
import os
import warnings
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from ._binary import warn
from ._errors import ArgumentError, Diagnostic, Error, ExportError, ExportWarning, VerificationError, failure
from ._export import export
from ._program import ONNXProgram
from ._progress import stage

Path = Union[str, "os.PathLike[str]"]
Tensors = Dict[str, Any]

#: how many tokens a comparison writes
TOKENS = 10

#: tasks as optimum names them: the tables of transformers that have their classes, and the outputs of their files
TASKS: Dict[str, Tuple[Sequence[str], Sequence[str]]] = {
    "text-generation": (["CAUSAL_LM"], ["logits"]),
    "text2text-generation": (["SEQ_TO_SEQ_CAUSAL_LM"], ["logits"]),
    "automatic-speech-recognition": (["SPEECH_SEQ_2_SEQ", "CTC"], ["logits"]),
    "image-to-text": (["IMAGE_TEXT_TO_TEXT"], ["logits"]),
    "fill-mask": (["MASKED_LM"], ["logits"]),
    "text-classification": (["SEQUENCE_CLASSIFICATION"], ["logits"]),
    "token-classification": (["TOKEN_CLASSIFICATION"], ["logits"]),
    "multiple-choice": (["MULTIPLE_CHOICE"], ["logits"]),
    "question-answering": (["QUESTION_ANSWERING"], ["start_logits", "end_logits"]),
    "image-classification": (["IMAGE_CLASSIFICATION"], ["logits"]),
    "object-detection": (["OBJECT_DETECTION"], ["logits", "pred_boxes"]),
    "semantic-segmentation": (["SEMANTIC_SEGMENTATION"], ["logits"]),
    "depth-estimation": (["DEPTH_ESTIMATION"], ["predicted_depth"]),
    "masked-im": (["MASKED_IMAGE_MODELING"], ["reconstruction"]),
    "image-to-image": (["IMAGE_TO_IMAGE"], ["reconstruction"]),
    "audio-classification": (["AUDIO_CLASSIFICATION"], ["logits"]),
    "audio-frame-classification": (["AUDIO_FRAME_CLASSIFICATION"], ["logits"]),
    "audio-xvector": (["AUDIO_XVECTOR"], ["logits", "embeddings"]),
    "feature-extraction": ([""], ["last_hidden_state"]),
}
#: the tasks that write tokens, which are kept in a cache if the name ends in WITH_PAST
GENERATION = ("text-generation", "text2text-generation", "automatic-speech-recognition", "image-to-text")
WITH_PAST = "-with-past"

#: sizes of the axes of the example that a file is exported with, each another one, and of the inputs that it is compared on
EXPORTED = {"batch_size": 2, "sequence_length": 3, "past_sequence_length": 5, "encoder_sequence_length": 7, "decoder_sequence_length": 4, "num_choices": 6,
            "height": 64, "width": 96, "audio_length": 3000}
COMPARED = {"batch_size": 3, "sequence_length": 6, "encoder_sequence_length": 9, "num_choices": 2, "height": 96, "width": 128, "audio_length": 4000}


def export_transformers(
    model: Any,
    output: Path,
    *,
    task: Optional[str] = None,
    tokenizer: Any = None,
    verify: bool = True,
    rtol: Optional[float] = None,
    **options: Any,
) -> Dict[str, ONNXProgram]:
    """Converts a model of transformers to the files that optimum makes of it, in a folder that optimum.onnxruntime loads.

    A decoder is one file, model.onnx, for the prompt and for what follows it: past_key_values may have no tokens. An encoder and a decoder are
    encoder_model.onnx, decoder_model.onnx and decoder_with_past_model.onnx. Anything else is model.onnx. The configuration is beside them.

    Args:
        model: A transformers.PreTrainedModel, or what its from_pretrained takes: a folder or a name.
        output: The folder; it is made if it is not there.
        task: What the files are for, as optimum names it: "text-generation-with-past"; without "-with-past" there is no cache. None takes the
            task of the model's class, with a cache if the model has one.
        tokenizer: A tokenizer or processor that is saved in the folder too, or several. A model that is loaded here has its own.
        verify: True compares the files in onnxruntime with the model: ten tokens written greedily, of a prompt and of one with padding before it; for
            other tasks the outputs at other sizes.
        rtol: How far outputs may be from the model's, relative to the largest; the square root of the type's precision if it is None.
        **options: Other arguments of export, such as opset_version.

    Returns:
        The models, by the names of their files.

    Raises:
        ExportError: All that cannot be converted.
        ArgumentError: An argument is wrong. It is a ValueError too.
        VerificationError: What differs from the model.
    """
    import torch
    import transformers

    if isinstance(model, (str, os.PathLike)):
        model, tokenizer = _load(os.fspath(model), task, tokenizer)
    if not isinstance(model, transformers.PreTrainedModel):
        raise ArgumentError("model", f"a {type(model).__name__} is no transformers.PreTrainedModel: aton.export takes other modules")
    own = sorted({"args", "kwargs", "f", "input_names", "output_names", "dynamic_axes", "dynamic_shapes", "dynamo", "fallback", "source", "example_outputs"} & set(options))
    if own:
        raise ArgumentError(own[0], f"{own[0]} follows from the model: aton.export takes it")
    unknown = sorted(set(options) - set(inspect.signature(export).parameters))
    if unknown:
        raise TypeError(f"export_transformers() got an unexpected keyword argument {unknown[0]!r}")
    if verify and importlib.util.find_spec("onnxruntime") is None:
        raise ArgumentError("verify", "verify=True needs onnxruntime: pip install aton-onnx[run], or verify=False")
    if verify and not options.get("export_params", True):
        raise ArgumentError("verify", "files without weights compute nothing that could be compared: verify=False")
    folder = os.fspath(output)
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as e:
        raise ArgumentError("output", f"{folder} is no folder and cannot be made: {e.strerror}") from None
    programs: Dict[str, ONNXProgram] = {}
    was_training = [m for m in model.modules() if m.training]
    model.eval()
    try:
        with _attention(model):
            try:
                files = _files(model, task or task_of(model))
                for part in files.parts:
                    programs[part.name] = part.export(folder, options)
            except Error:
                raise
            except Exception as e:  # of the model, which takes no such inputs
                raise ExportError([failure(f"forward of {type(model).__name__}", e)]) from e
            warn(list(dict.fromkeys([*files.notes, *(w for p in programs.values() for w in p.warnings)])), 2)
            _save(model, folder, tokenizer)
            if verify:
                with stage("comparing with the model"), torch.no_grad():
                    narrow = [model.dtype, *(t for flag, t in (("--float16", torch.float16), ("--bfloat16", torch.bfloat16)) if flag in options.get("options", ()))]
                    _Comparison(programs, max(float(torch.finfo(t).eps) for t in narrow), rtol).of(files)
    finally:
        for m in was_training:
            m.training = True
    return programs


def _load(name: str, task: Optional[str], tokenizer: Any) -> Tuple[Any, Any]:
    """The model of a folder or a name, of the class that it was saved as or that a task has, and its tokenizer or processor if it has one."""
    import transformers
    from transformers.models.auto import modeling_auto

    try:
        config = transformers.AutoConfig.from_pretrained(name)
    except (OSError, ValueError) as e:
        raise ArgumentError("model", f"transformers finds no model in {name}: {e}") from None
    kind = getattr(transformers, (config.architectures or [""])[0], None)
    if task is not None:
        tables = [getattr(modeling_auto, _table(t), {}) for t in TASKS.get(_plain(task), ([], []))[0]]
        kind = next((t[type(config)] for t in tables if type(config) in t), None)
    if kind is None:
        raise ArgumentError("task", f"transformers has no class of {config.model_type} for {f'the task {task}' if task else f'what config.json of {name} names'}: give a task or the model itself")
    model = kind.from_pretrained(name, dtype="auto")
    if tokenizer is None:
        with contextlib.suppress(OSError, ValueError, KeyError):  # a model that has none
            tokenizer = transformers.AutoProcessor.from_pretrained(name)
    return model, tokenizer


def _plain(task: str) -> str:
    """A task without what it says of a cache."""
    return task[:-len(WITH_PAST)] if task.endswith(WITH_PAST) else task


def _table(name: str) -> str:
    """What transformers calls its table of the classes for something."""
    return f"MODEL_FOR_{name}_MAPPING" if name else "MODEL_MAPPING"


def _tasks(model: Any) -> List[str]:
    """The tasks whose tables have the class of a model."""
    from transformers.models.auto import modeling_auto

    names = [c.__name__ for c in type(model).__mro__]
    return [t for t, (tables, _) in TASKS.items() if any(_in_table(modeling_auto, table, names) for table in tables)]


def task_of(model: Any) -> str:
    """The task of a model's class."""
    found = next(iter(_tasks(model)), "")
    if model.config.is_encoder_decoder and found in ("", "feature-extraction") and model.can_generate():
        found = {"pixel_values": "image-to-text", "input_ids": "text2text-generation"}.get(model.main_input_name, "automatic-speech-recognition")
    if not found:
        raise ArgumentError("task", f"the task of a {type(model).__name__} is not known: give one of {', '.join(TASKS)}, or use aton.export")
    return found + (WITH_PAST if found in GENERATION and "past_key_values" in _takes(model) else "")


def _in_table(auto: Any, table: str, names: List[str]) -> bool:
    """Reports a class in a table of transformers, or one that it is made of."""
    known = getattr(auto, _table(table) + "_NAMES", {})
    return any(n in names for v in known.values() for n in ((v,) if isinstance(v, str) else v))


def _takes(model: Any) -> Mapping[str, Any]:
    """The parameters of forward."""
    return inspect.signature(model.forward).parameters


def _save(model: Any, folder: str, tokenizer: Any) -> None:
    """Writes what there is beside the weights."""
    model.config.save_pretrained(folder)
    if model.can_generate() and getattr(model, "generation_config", None) is not None:
        model.generation_config.save_pretrained(folder)
    for one in tokenizer if isinstance(tokenizer, (list, tuple)) else [tokenizer] if tokenizer is not None else []:
        one.save_pretrained(folder)


@contextlib.contextmanager
def _attention(model: Any) -> Iterator[None]:
    """Has the model compute attention by an operator of PyTorch; what else transformers has is kernels of GPUs."""
    was = getattr(model.config, "_attn_implementation", None)
    if was in (None, "eager", "sdpa"):
        yield
        return
    model.set_attn_implementation("sdpa")
    try:
        yield
    finally:
        model.set_attn_implementation(was)


@dataclasses.dataclass
class _Part:
    """A file: what it computes of a module, and of which inputs."""

    name: str
    #: the module whose weights it has
    module: Any
    #: outputs by name, of inputs by name
    call: Callable[[Tensors], Tensors]
    #: inputs of the sizes that the axes have
    example: Callable[[Mapping[str, int]], Tensors]
    #: the dynamic axes of each input; an axis whose size follows from others has no name
    axes: Dict[str, Dict[int, str]]

    def export(self, folder: str, options: Mapping[str, Any]) -> ONNXProgram:
        """Writes the file."""
        import torch

        example, call = self.example(EXPORTED), self.call
        with torch.no_grad():
            outputs = list(call(example))

        def forward(_: Any, *tensors: Any) -> Tuple[Any, ...]:
            return tuple(call(dict(zip(example, tensors))).values())

        names = ["self", *(n.replace(".", "_") for n in example)]
        setattr(forward, "__signature__", inspect.Signature([inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names]))
        # the modules and weights of the model, under their names, and another forward
        module = type(type(self.module).__name__, (torch.nn.Module,), {"forward": forward})()
        vars(module).update({k: v for k, v in vars(self.module).items() if k != "forward"})
        shapes = {n.replace(".", "_"): {axis: name or torch.export.Dim.AUTO for axis, name in self.axes[n].items()} for n in example}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExportWarning)
            program = export(module, tuple(example.values()), os.path.join(folder, self.name), input_names=list(example), output_names=outputs, source="program",
                             dynamic_shapes=shapes, **options)
        sizes = {i["name"]: i["type"].partition("(")[2].rstrip(")").split(", ") for i in program.result["inputs"]}
        fixed = [f"axis {axis} of {n} is of size {sizes[n][axis]} always" for n, axes in self.axes.items() for axis in axes if sizes[n][axis].isdigit()]
        if fixed:
            os.remove(program.path)
            raise ExportError([Diagnostic("axis-narrowed", "error", f"{self.name}: {text}, that of the example: what torch.export makes of the model does no other") for text in fixed])
        return program


def _files(model: Any, task: str) -> "_Files":
    """What a task makes of a model."""
    name = _plain(task)
    if name not in TASKS or name != task and name not in GENERATION:
        raise ArgumentError("task", f"there is no task {task!r}; there are {', '.join([*TASKS, *(g + WITH_PAST for g in GENERATION)])}")
    if name in GENERATION and model.config.is_encoder_decoder:
        return _EncoderDecoder(model, name != task)
    if name == "text-generation":
        return _Decoder(model, name != task)
    if name != task:
        raise ArgumentError("task", f"a {type(model).__name__} has no cache for {name}, which is a task of an encoder and a decoder: give {name}, or another task")
    known = _tasks(model)
    if known and name not in known and name != "feature-extraction":  # the logits of one task are no logits of another; there are hidden states or there are none
        raise ArgumentError("task", f"a {type(model).__name__} is for {known[0]}: give a model of the class for {name}, or another task")
    return _Whole(model, name)


class _Files:
    """The files of a model."""

    parts: List[_Part]

    def __init__(self, model: Any):
        import torch

        self.model = model
        self.takes = _takes(model)
        self.random = torch.Generator().manual_seed(0)
        self.notes: List[Diagnostic] = []
        #: what forward is always given
        self.always = {k: v for k, v in {"return_dict": True}.items() if k in self.takes}

    def compare(self, beside: "_Comparison") -> None:
        """Compares the files with the model."""
        raise NotImplementedError

    def tokens(self, *shape: int) -> Any:
        """Tokens that stand for text, and mean nothing to the model."""
        import torch

        config = self.model.config.get_text_config(decoder=True)
        special = [t for k, v in config.to_dict().items() if k.endswith(("_token_id", "_token_index")) for t in (v if isinstance(v, list) else [v]) if isinstance(t, int)]
        plain = torch.ones(config.vocab_size)
        plain[[t for t in special if 0 <= t < len(plain)]] = 0
        drawn = torch.multinomial(plain, int(torch.Size(shape).numel()), replacement=True, generator=self.random)
        return drawn.reshape(shape).to(self.model.device)

    def mask(self, batch: int, length: int) -> Any:
        """A mask whose last row begins with padding."""
        import torch

        mask = torch.ones(batch, length, dtype=torch.int64, device=self.model.device)
        mask[-1, :length // 3] = 0
        return mask

    def floats(self, *shape: int) -> Any:
        """Numbers of the type that the model computes in."""
        import torch

        return torch.randn(*shape, generator=self.random).to(self.model.device, self.model.dtype)


class _Whole(_Files):
    """One file, which computes what forward does."""

    def __init__(self, model: Any, task: str):
        super().__init__(model)
        self.outputs = TASKS[task][1]
        self.always.update({k: v for k, v in {"use_cache": False}.items() if k in self.takes})
        self.source, self.axes = _source(self, model, "sequence_length")
        self.choices = task == "multiple-choice"
        if self.choices:
            self.axes = {n: {0: "batch_size", 1: "num_choices", 2: "sequence_length"} for n in self.axes}
        self.parts = [_Part("model.onnx", model, self.call, self.example, self.axes)]

    def example(self, sizes: Mapping[str, int]) -> Tensors:
        """The inputs of a call."""
        if self.choices:  # each is a row
            flat = self.source({**sizes, "batch_size": sizes["batch_size"] * sizes["num_choices"]})
            return {n: t.reshape(sizes["batch_size"], sizes["num_choices"], -1) for n, t in flat.items()}
        return self.source(sizes)

    def call(self, given: Tensors) -> Tensors:
        """The outputs of the task."""
        out = self.model.forward(**given, **self.always)
        missing = [n for n in self.outputs if getattr(out, n, None) is None]
        if missing:
            raise ArgumentError("task", f"a {type(self.model).__name__} gives {', '.join(out.keys())}, and no {missing[0]}: give a model of the class for this task, or another task")
        return {n: getattr(out, n) for n in self.outputs}

    def compare(self, beside: "_Comparison") -> None:
        given = self.example(COMPARED)
        want, got = self.call(given), beside.run("model.onnx", given)
        mask = given.get("attention_mask")
        for name in self.outputs:
            seen = mask if mask is not None and want[name].shape[:mask.dim()] == mask.shape else None  # what stands where padding is means nothing
            beside.near(name, got[name], want[name], seen)


class _Decoder(_Files):
    """One file for the prompt and for what follows it: the cache is tensors that go in and come out."""

    def __init__(self, model: Any, cached: bool):
        import torch

        super().__init__(model)
        self.always["use_cache"] = cached
        self.axes = {n: {0: "batch_size", 1: "sequence_length"} for n in ("input_ids", "attention_mask", "position_ids") if n in self.takes}
        beside = [n for n in self.takes if n.startswith("pixel_values") or n in ("input_features", "input_values")]
        if beside:
            self.notes.append(Diagnostic("text-alone", "warning", f"a {type(model).__name__} takes {', '.join(beside)} too: the file is for text alone"))
        self.cache = _Cache(self, [])
        if cached:
            with torch.no_grad():
                self.cache = _Cache(self, [_layers(model, model.forward(**self.feed(self.tokens(2, 3), self.mask(2, 3)), **self.always).get("past_key_values"))])
            self.axes.update({n: {0: "batch_size", 2: "past_sequence_length"} for n in self.cache.names()})
            if "attention_mask" in self.axes:
                self.axes["attention_mask"] = {0: "batch_size", 1: ""}
        self.parts = [_Part("model.onnx", model, self.call, self.example, self.axes)]

    def feed(self, ids: Any, mask: Any) -> Tensors:
        """What forward is given for the last tokens of a text, as generate gives it: positions count what is no padding."""
        positions = (mask.cumsum(-1) - 1).masked_fill(mask == 0, 0)[:, -ids.shape[1]:]
        return {n: t for n, t in (("input_ids", ids), ("attention_mask", mask), ("position_ids", positions)) if n in self.takes}

    def example(self, sizes: Mapping[str, int]) -> Tensors:
        """Tokens after those of a cache."""
        batch, length = sizes["batch_size"], sizes["sequence_length"]
        past = self.cache.example(batch, [sizes["past_sequence_length"]])
        return {**self.feed(self.tokens(batch, length), self.mask(batch, length + (sizes["past_sequence_length"] if past else 0))), **past}

    def call(self, given: Tensors) -> Tensors:
        """The logits, and the cache if there is one."""
        import torch

        given = dict(given)
        more = dict(self.always)
        if self.cache:
            past, = self.cache.take(given)
            if "attention_mask" in given:
                torch._check(given["attention_mask"].shape[1] == past.get_seq_length() + given["input_ids"].shape[1])
            more["past_key_values"] = past
        out = self.model.forward(**given, **more)
        return {"logits": out.logits, **self.cache.give([out.past_key_values] if self.cache else [])}

    def compare(self, beside: "_Comparison") -> None:
        import torch

        ids, mask = self.tokens(2, 6), self.mask(2, 6)
        self.prompts(beside, ids, mask)
        text, new, past = ids, ids, self.cache.example(2, [0])
        kept: Tensors = {}
        for token in range(TOKENS):
            given = self.feed(new, mask)
            out = self.model.forward(**given, **self.always, **kept)  # with a cache of its own
            got = beside.run("model.onnx", {**given, **past})
            chosen = beside.token(token, got["logits"], out.logits)
            text, mask = torch.cat([text, chosen], 1), torch.cat([mask, torch.ones_like(chosen)], 1)
            if self.cache:
                new, kept, past = chosen, {"past_key_values": out.past_key_values}, self.cache.renamed(got)
            else:
                new = text

    def prompts(self, beside: "_Comparison", ids: Any, mask: Any) -> None:
        """Compares the logits of a prompt: as it is, its last token alone, and in two parts."""
        none = self.cache.example(len(ids), [0])
        given, last = self.feed(ids, mask), self.feed(ids[:, -1:], mask[:, -1:])
        got, want = beside.run("model.onnx", {**given, **none}), self.model.forward(**given, **self.always).logits
        beside.near("logits of the prompt", got["logits"], want, mask)
        beside.near("logits of a prompt of one token", beside.run("model.onnx", {**last, **none})["logits"], self.model.forward(**last, **self.always).logits)
        if self.cache:
            half = ids.shape[1] // 2
            rest = {**self.feed(ids[:, half:], mask), **{n: t[:, :, :half] for n, t in self.cache.renamed(got).items()}}
            beside.near("logits of a prompt in two parts", beside.run("model.onnx", rest)["logits"], want[:, half:], mask[:, half:])


class _EncoderDecoder(_Files):
    """A file for the encoder, one for the first tokens of the decoder, and one for those that follow."""

    def __init__(self, model: Any, cached: bool):
        import torch

        super().__init__(model)
        self.always["use_cache"] = cached
        self.encoder = model.get_encoder()
        self.source, axes = _source(self, self.encoder, "encoder_sequence_length")
        self.masked = "attention_mask" in axes
        decoder = {"input_ids": {0: "batch_size", 1: "decoder_sequence_length"}, "encoder_hidden_states": {0: "batch_size", 1: "encoder_sequence_length"},
                   **({"encoder_attention_mask": {0: "batch_size", 1: "encoder_sequence_length"}} if self.masked else {})}
        self.cache = _Cache(self, [])
        with torch.no_grad():
            self.width = self.encode(self.source(EXPORTED))["last_hidden_state"].shape[2]
            if cached:
                out = self.forward(self.example(EXPORTED), {})
                both = out.past_key_values
                self.cache = _Cache(self, [_layers(model, getattr(both, n, None)) for n in ("self_attention_cache", "cross_attention_cache")])
        self.parts = [_Part("encoder_model.onnx", self.encoder, self.encode, self.source, axes), _Part("decoder_model.onnx", model, self.call, self.example, decoder)]
        if cached:
            following = {n: a for n, a in decoder.items() if n != "encoder_hidden_states"}
            following.update({n: {0: "batch_size", 2: "encoder_sequence_length" if ".encoder." in n else "past_decoder_sequence_length"} for n in self.cache.names()})
            self.parts.append(_Part("decoder_with_past_model.onnx", model, self.call, self.following, following))

    def encode(self, given: Tensors) -> Tensors:
        """What the encoder gives."""
        return {"last_hidden_state": self.encoder.forward(**given).last_hidden_state}

    def example(self, sizes: Mapping[str, int]) -> Tensors:
        """The first tokens, and what the encoder gave."""
        batch, length = sizes["batch_size"], sizes["encoder_sequence_length"]
        return {"input_ids": self.tokens(batch, sizes["decoder_sequence_length"]), "encoder_hidden_states": self.floats(batch, length, self.width),
                **({"encoder_attention_mask": self.mask(batch, length)} if self.masked else {})}

    def following(self, sizes: Mapping[str, int]) -> Tensors:
        """Tokens after those of a cache, which has what the decoder needs of the encoder."""
        given = self.example(sizes)
        del given["encoder_hidden_states"]
        return {**given, **self.cache.example(sizes["batch_size"], [sizes["past_sequence_length"], sizes["encoder_sequence_length"]])}

    def forward(self, given: Tensors, more: Mapping[str, Any]) -> Any:
        """What the model gives for what a decoder's file is given."""
        from transformers.modeling_outputs import BaseModelOutput

        masks = {"attention_mask": given["encoder_attention_mask"]} if self.masked else {}
        return self.model.forward(decoder_input_ids=given["input_ids"], encoder_outputs=BaseModelOutput(last_hidden_state=given["encoder_hidden_states"]), **masks,
                                  **more, **self.always)

    def call(self, given: Tensors) -> Tensors:
        """The logits, and the cache if there is one: of the encoder's keys and values only those that are new."""
        import torch
        from transformers import EncoderDecoderCache

        given = dict(given)
        past = self.cache.take(given)
        if past:  # forward wants what the encoder gave, and needs it no more: who uses it gives NaN, and no wrong number
            keys = past[1].layers[0].keys
            given["encoder_hidden_states"] = keys.new_full((keys.shape[0], keys.shape[2], self.width), float("nan"))
            if self.masked:
                torch._check(given["encoder_attention_mask"].shape[1] == keys.shape[2])
        out = self.forward(given, {"past_key_values": EncoderDecoderCache(*past)} if past else {})
        kept = [out.past_key_values.self_attention_cache, out.past_key_values.cross_attention_cache] if self.cache else []
        return {"logits": out.logits, **self.cache.give(kept[:1] if past else kept)}

    def compare(self, beside: "_Comparison") -> None:
        import torch

        given = self.source({**COMPARED, "batch_size": 2})
        want, got = self.encode(given)["last_hidden_state"], beside.run("encoder_model.onnx", given)["last_hidden_state"]
        mask = given.get("attention_mask")
        beside.near("last_hidden_state", got, want, mask if want.shape[:2] == getattr(mask, "shape", ()) else None)
        config = self.model.generation_config
        start = next((t for t in (config.decoder_start_token_id, config.bos_token_id) if isinstance(t, int)), 0)
        text = new = torch.full((2, 1), start, device=self.model.device)
        past: Tensors = {}
        kept = None
        for token in range(TOKENS):
            masks = {"encoder_attention_mask": mask} if self.masked else {}
            out = self.forward({"input_ids": new, "encoder_hidden_states": want, **masks}, {"past_key_values": kept} if kept is not None else {})
            fed = {"input_ids": new, "encoder_hidden_states": got.to(want.device), **masks, **past}
            found = beside.run("decoder_with_past_model.onnx" if past else "decoder_model.onnx", fed)
            chosen = beside.token(token, found["logits"], out.logits)
            text = torch.cat([text, chosen], 1)
            if self.cache:
                new, kept, past = chosen, out.past_key_values, {**past, **self.cache.renamed(found)}
            else:
                new = text


#: what the tensors of a cache are called among the inputs and the outputs
PAST, PRESENT = "past_key_values", "present"


class _Cache:
    """What a decoder keeps, as tensors with names: the keys and values of each layer, and of the encoder for each layer."""

    def __init__(self, files: _Files, parts: Sequence[Mapping[int, Sequence[Any]]]):
        self.files = files
        #: by layer, the sizes of keys and values without those of batch and tokens
        self.parts = parts

    def __bool__(self) -> bool:
        return bool(self.parts)

    def names(self) -> List[str]:
        """The names of all inputs, as optimum orders them."""
        return [n for layer in sorted({i for p in self.parts for i in p}) for part in self._parts() for n in self._pair(PAST, layer, part)]

    def _parts(self) -> Sequence[str]:
        return ["."] if len(self.parts) < 2 else [".decoder.", ".encoder."]

    def _pair(self, prefix: str, layer: int, part: str) -> List[str]:
        return [f"{prefix}.{layer}{part}{what}" for what in ("key", "value")]

    def example(self, batch: int, lengths: Sequence[int]) -> Tensors:
        """Inputs for a number of tokens of each part."""
        made = {n: self.files.floats(batch, heads, length, width) for part, layers, length in zip(self._parts(), self.parts, lengths) for layer, sizes in layers.items()
                for n, (heads, width) in zip(self._pair(PAST, layer, part), sizes)}
        return {n: made[n] for n in self.names()}

    def take(self, given: Tensors) -> List[Any]:
        """The caches that the tensors make, which are taken out of the others; none if there are none."""
        import torch
        from transformers import DynamicCache
        from transformers.cache_utils import DynamicLayer

        if not any(n in given for n in self.names()):
            return []
        out: List[Any] = []
        for part, layers in zip(self._parts(), self.parts):
            # all tokens of all layers: where a layer looks at a window, its mask says so
            cache = DynamicCache([tuple(given.pop(n) for n in self._pair(PAST, layer, part)) for layer in layers])
            for layer in range(max(layers)):
                if layer not in layers:
                    cache.layers.insert(layer, DynamicLayer())
            out.append(cache)
            for layer in cache.layers:
                for t in (layer.keys, layer.values):
                    if t is not None:
                        torch._check(t.shape[2] == cache.layers[min(layers)].keys.shape[2])
        return out

    def give(self, caches: Sequence[Any]) -> Tensors:
        """The tensors of caches."""
        return {n: t for layer in (sorted(self.parts[0]) if self.parts else ()) for part, cache in zip(self._parts(), caches)
                for n, t in zip(self._pair(PRESENT, layer, part), (cache.layers[layer].keys, cache.layers[layer].values))}

    def renamed(self, outputs: Tensors) -> Tensors:
        """The outputs of a call that are inputs of the next one."""
        return {PAST + n[len(PRESENT):]: t for n, t in outputs.items() if n.startswith(PRESENT + ".")}


def _layers(model: Any, cache: Any) -> Dict[int, Sequence[Any]]:
    """The layers of a cache that keep anything, each with the sizes of keys and values. A cache of another kind is refused."""
    from transformers.cache_utils import DynamicCache, DynamicLayer, DynamicSlidingWindowLayer

    strange = [] if isinstance(cache, DynamicCache) else ["nothing" if cache is None else type(cache).__name__]
    strange += [type(la).__name__ for la in getattr(cache, "layers", ()) if type(la) not in (DynamicLayer, DynamicSlidingWindowLayer)]
    if strange:
        raise ExportError([Diagnostic("cache", "error", f"what a {type(model).__name__} keeps from token to token is {strange[0]}, and not the keys and values of each layer",
                                      hint="a task without -with-past makes a file without a cache")])
    return {i: [(t.shape[1], t.shape[3]) for t in (la.keys, la.values)] for i, la in enumerate(cache.layers) if la.is_initialized}


def _source(files: _Files, model: Any, sequence: str) -> Tuple[Callable[[Mapping[str, int]], Tensors], Dict[str, Dict[int, str]]]:
    """What makes the inputs of a model, or of an encoder, and their dynamic axes."""
    import torch

    config, name, takes = model.config, model.main_input_name, _takes(model)
    if name == "input_ids":
        names = ["input_ids", *(n for n in ("attention_mask", "token_type_ids") if n in takes and (n != "token_type_ids" or getattr(config, "type_vocab_size", 0) > 1))]

        def text(sizes: Mapping[str, int]) -> Tensors:
            batch, length = sizes["batch_size"], sizes[sequence]
            kinds = torch.randint(0, 2, (batch, length), generator=files.random).to(model.device)
            return {n: t for n, t in (("input_ids", files.tokens(batch, length)), ("attention_mask", files.mask(batch, length)), ("token_type_ids", kinds)) if n in names}

        return text, {n: {0: "batch_size", 1: sequence} for n in names}
    fixed: Sequence[Any] = ()
    if name == "pixel_values":
        side = getattr(config, "image_size", None)
        fixed = (getattr(config, "num_channels", 3), *((side, side) if isinstance(side, int) else side if isinstance(side, (list, tuple)) else ("height", "width")))
    elif name == "input_features" and hasattr(config, "num_mel_bins") and hasattr(config, "max_source_positions"):
        fixed = (config.num_mel_bins, 2 * config.max_source_positions)
    elif name == "input_values":
        fixed = (config.max_length, config.num_mel_bins) if hasattr(config, "num_mel_bins") and hasattr(config, "patch_size") else ("audio_length",)
    if not fixed:
        raise ArgumentError("model", f"the sizes of the input {name} of a {type(model).__name__} are not known: use aton.export with an example")
    axes = {0: "batch_size", **{i + 1: n for i, n in enumerate(fixed) if isinstance(n, str)}}
    return lambda sizes: {name: files.floats(sizes["batch_size"], *(sizes[n] if isinstance(n, str) else n for n in fixed))}, {name: axes}


class _Comparison:
    """The files in onnxruntime beside the model in PyTorch."""

    def __init__(self, programs: Mapping[str, ONNXProgram], precision: float, rtol: Optional[float]):
        self.programs = programs
        self.precision = precision
        self.rtol = precision ** 0.5 if rtol is None else rtol
        self.wrong: List[str] = []

    def of(self, files: _Files) -> None:
        """Raises a VerificationError if any output is another."""
        try:
            files.compare(self)
        finally:
            for program in self.programs.values():
                program._session = None
        if self.wrong:
            raise VerificationError("\n".join(self.wrong))

    def run(self, name: str, given: Tensors) -> Tensors:
        """The outputs of a file by name; numbers are given in the types of the file, which may be narrower than the model's."""
        import torch

        program = self.programs[name]
        session = program._session or program.initialize_inference_session()
        types = {"tensor(float)": torch.float32, "tensor(double)": torch.float64, "tensor(float16)": torch.float16, "tensor(bfloat16)": torch.bfloat16}
        inputs = [given[i.name].to(types.get(i.type, given[i.name].dtype)) for i in session.get_inputs()]
        try:
            return dict(zip(program.output_names, program(*inputs)))
        except Exception as e:  # onnxruntime's own, which have no class in common
            raise VerificationError("\n".join([*self.wrong, f"{name} fails in onnxruntime: {e}"])) from None

    def near(self, what: str, got: Any, want: Any, mask: Any = None) -> None:
        """Compares an output, without what stands where padding is."""
        import torch

        got, want = got.double(), want.cpu().double()
        if got.shape != want.shape:
            self.wrong.append(f"{what}: of shape {list(got.shape)} instead of {list(want.shape)}")
            return
        if mask is not None:
            got, want = got[mask.cpu() == 1], want[mask.cpu() == 1]
        finite = want[want.isfinite()].abs()
        largest = finite.max().item() if finite.numel() else 0.0
        try:
            torch.testing.assert_close(got, want, rtol=0, atol=self.rtol * largest, equal_nan=True)
        except AssertionError:
            off = (got - want).abs().nan_to_num(float("inf")).max().item()
            self.wrong.append(f"{what}: off by {off:.3g}, where the largest number is {largest:.3g}")

    def token(self, number: int, got: Any, want: Any) -> Any:
        """Compares the logits of the next token. Gives the token that the model chooses, with an axis of its own."""
        import torch

        got, want = got[:, -1], want[:, -1]
        self.near(f"logits of token {number + 1}", got, want)
        chosen = want.argmax(-1)
        if self.precision < 1e-5 and not torch.equal(got.argmax(-1), chosen.cpu()):  # halves have many that are equal
            self.wrong.append(f"token {number + 1} is {got.argmax(-1).tolist()}, and the model writes {chosen.tolist()}")
        return chosen[:, None]
