"""Arguments: none is dropped, names that do not exist are errors, and the words of PyTorch 1.5 to 1.12 mean what they meant."""
import re
import warnings

import pytest
import torch
import torch.nn.functional as F

import aton

X = torch.randn(2, 3)


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def linear():
    return torch.nn.Linear(3, 4)


class Add(torch.nn.Module):
    def forward(self, x, y):
        return x + y


@pytest.mark.parametrize("options, message", [
    ({"dynamic_axes": {"y": {0: "n"}}}, "'y', which is no input; the inputs are input"),
    ({"dynamic_axes": {"output": [0]}}, "output_names"),
    ({"input_names": ["a"], "dynamic_axes": {"b": [0]}}, "the inputs are a"),
    ({"dynamic_shapes": {"x": {0: "n"}}}, "'x', which is no input; the inputs are input"),
    ({"dynamic_axes": {"input": {2: "n"}}}, "no axis 2"),
    ({"source": "guess"}, "source"),
    ({"aten": True, "operator_export_type": "RAW"}, "operator_export_type"),
    ({"example_outputs": (X, X)}, "example_outputs"),
])
def test_errors_about_arguments(options, message):
    with pytest.raises(ValueError, match=message) as e:
        aton.export(linear(), (X,), **options)
    assert isinstance(e.value, aton.ExportError)


def test_errors_have_the_words_of_python():
    with pytest.raises(aton.ExportError, match="opset_version") as e:
        aton.export(linear(), (X,), opset_version=99)
    assert "--" not in str(e.value)
    with pytest.raises(TypeError):
        aton.export(linear(), (X,)).save("x", unknown=True)


def test_old_keywords(capsys):
    def operators(**options):
        return aton.export(torch.nn.Sequential(linear(), torch.nn.Dropout()), (X,), **options).result["operators"]

    assert "org.pytorch.aten::ATen" in operators(aten=True)
    assert any(n.startswith("aten::") for n in operators(export_raw_ir=True))
    assert "onnx::Dropout" in operators(training=True) and "onnx::Dropout" not in operators(training=False)
    p = aton.export(linear(), (X,), _retain_param_name=False, keep_initializers_as_inputs=True)
    assert "learned_0" in p.input_names
    p = aton.export(linear(), (X,), strip_doc_string=False, opset_version=13, source="trace")
    onnx = pytest.importorskip("onnx")
    assert any(n.doc_string for n in onnx.load(p.path).graph.node)
    assert aton.export(torch.nn.Linear(300, 40), (torch.randn(2, 300),), use_external_data_format=True)._data_files()
    assert any("always checked" in str(w) for w in aton.export(linear(), (X,), enable_onnx_checker=False).warnings)
    aton.export(linear(), (X,), example_outputs=torch.randn(2, 4))
    capsys.readouterr()
    aton.export(linear(), (X,), verbose=True)
    assert re.search(r"graph\(%input : Float\(2, 3\).*onnx::Gemm", capsys.readouterr().out, re.S)
    aton.export(torch.nn.Sequential(linear()), (X,), verbose=True)
    assert "scope: torch.nn.modules.container.Sequential::/torch.nn.modules.linear.Linear::0" in capsys.readouterr().out


@pytest.mark.parametrize("kind, as_inputs", [(None, False), ("ONNX", False), ("ONNX_FALLTHROUGH", True), ("ONNX_ATEN_FALLBACK", True), ("ONNX_ATEN", True)])
def test_weights_as_inputs_by_export_type(kind, as_inputs):
    for given, want in ((None, as_inputs), (True, True), (False, False)):
        p = aton.export(linear(), (X,), operator_export_type=kind, keep_initializers_as_inputs=given, source="trace")
        assert (len(p.input_names) > 1) == want


def test_fallback_is_what_it_says():
    class Reads(torch.nn.Module):
        def forward(self, x):
            return x * 2 if x.sum() > 0 else x

    with pytest.raises(aton.ExportError):
        aton.export(Reads(), (X,), fallback=False)
    assert aton.export(Reads(), (X,), fallback=True).source == "script"


class Chance(torch.nn.Module):
    def forward(self, x):
        return x * 2 if torch.rand(1).item() > 0.5 else x


class Calls(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.zeros(()))

    def forward(self, x):
        self.n += 1
        return x * 2 if self.n > 1 else x


class Weight(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.ones(2))

    def forward(self, x):
        for _ in range(len(self.n)):
            x = x * 2 if self.n.sum() > 1 and x.shape[1] == 3 else x
        return x


def test_what_a_trace_reads_beside_its_inputs():
    for model in (Chance(), Calls()):
        assert any(w.id == "trace-value" and w.line for w in aton.export(model, (X,), source="trace").warnings)
    assert not aton.export(Weight(), (X,), source="trace", dynamic_axes={"x": {0: "n"}}).warnings, "weights and fixed sizes are the same for all inputs"


def test_a_program_has_the_names_of_axes_that_are_given():
    program = torch.export.export(linear(), (X,), dynamic_shapes=({0: torch.export.Dim("n")},))
    p = aton.export(program, input_names=["a"], dynamic_axes={"a": {0: "batch"}})
    assert p.result["inputs"] == [{"name": "a", "type": "Float(batch, 3)"}]


def test_positional_and_keyword_tensors():
    class Any(torch.nn.Module):
        def forward(self, *xs, **kw):
            return sum(xs) * 10 + kw["a"]

    values = torch.tensor(1.0), torch.tensor(2.0)
    for source in ("trace", "program"):
        p = aton.export(Any(), values, kwargs={"a": torch.tensor(4.0)}, source=source)
        assert p.input_names == ["xs_0", "xs_1", "a"] and p(torch.tensor(3.0), torch.tensor(5.0), a=torch.tensor(7.0))[0] == 87


def test_numbers_are_outputs():
    class Numbers(torch.nn.Module):
        def forward(self, x):
            return x, x.shape[0], 3, 2.5, True

    for source in ("trace", "program"):
        p = aton.export(Numbers(), (X,), source=source, dynamic_axes={"x": {0: "n"}})
        assert [v.item() for v in p(torch.randn(5, 3))[1:]] == [5, 3, 2.5, True]


def test_outputs_that_no_file_holds_are_told():
    class Text(torch.nn.Module):
        def forward(self, x):
            return x + 1, "text"

    for source in ("trace", "program"):
        p = aton.export(Text(), (X,), source=source)
        assert len(p.output_names) == 1 and any("str" in str(w) for w in p.warnings), source


def test_numbers_of_python_beside_integers():
    class Scales(torch.nn.Module):
        def forward(self, x, s: float):
            return x * s, x / s, x * (s * 2), x > s

    x = torch.arange(4)
    p = aton.verify(Scales(), (x, 2.1), dynamo=False)
    assert p.input_names == ["x", "s"]
    for got, want in zip(p(x, 0.7), Scales()(x, 0.7)):
        torch.testing.assert_close(got, want)


def test_objects_that_hold_tensors():
    class Box:
        def __init__(self, t):
            self.t = t

    with pytest.raises(aton.ExportError, match="Box"):
        aton.export(type("M", (torch.nn.Module,), {"forward": lambda self, x, b: x + b.t})(), (X, Box(X)), source="trace")


@pytest.mark.parametrize("options", [{"source": "trace"}, {"dynamo": False}, {"source": "program"}, {}, {"source": "script"}])
def test_is_in_onnx_export(options):
    class Exported(torch.nn.Module):
        def forward(self, x):
            if torch.onnx.is_in_onnx_export():
                return x.sin()
            return x.cos()

    assert "onnx::Sin" in aton.export(Exported(), (X,), **options).result["operators"] and not torch.onnx.is_in_onnx_export()


def test_attention_in_eval_mode():
    class Attention(torch.nn.Module):
        def forward(self, q):
            return F.scaled_dot_product_attention(q, q, q, dropout_p=0.1)

    q = torch.randn(1, 2, 3, 4)
    for source in ("trace", "program"):
        p = aton.export(Attention(), (q,), source=source)
        torch.testing.assert_close(p(q)[0], F.scaled_dot_product_attention(q, q, q))
        assert any(w.id == "attention-dropout" and w.file == __file__ and w.line for w in p.warnings)


def test_axes_that_the_program_narrows():
    p = aton.export(linear(), (X,), dynamic_axes={"input": {0: "n", 1: "m"}})
    assert p.result["inputs"][0]["type"] == "Float(n, 3)" and any("axis 1 of input input" in str(w) for w in p.warnings)
    p = aton.export(Add(), (X, X), dynamic_shapes={"x": {0: torch.export.Dim("n")}, "y": {0: torch.export.Dim("m")}})
    assert [i["type"] for i in p.result["inputs"]] == ["Float(n, 3)"] * 2 and any("the name n, and not m" in str(w) for w in p.warnings)

    class AtLeast(torch.nn.Module):
        def forward(self, x):
            return x * 2 if x.shape[0] >= 6 else x

    p = aton.export(AtLeast(), (torch.randn(8),), dynamic_axes={"x": {0: "n"}})
    assert any("6 or more" in str(w) for w in p.warnings)
    p = aton.export(AtLeast(), (torch.randn(8),), dynamic_axes={"x": {0: "n"}}, dynamo=False)
    assert any(w.id == "trace-value" and w.line for w in p.warnings)


def test_an_example_of_one_and_recurrent_layers():
    p = aton.export(torch.nn.LSTM(4, 5, 2, batch_first=True), (torch.randn(1, 3, 4),), input_names=["x"], output_names=["y", "h", "c"], dynamic_axes={"x": {0: "batch", 1: "steps"}})
    assert p.source == "program" and p.result["operators"].get("onnx::LSTM") == 2
    for kind, words in ((torch.nn.GRU, "onnx::GRU"), (torch.nn.RNN, "onnx::RNN")):
        model = kind(4, 5).eval()
        p = aton.export(model, (torch.randn(3, 1, 4),), dynamic_shapes=({0: "steps", 1: "batch"},))
        assert p.source == "program" and words in p.result["operators"]
        x = torch.randn(6, 2, 4)
        torch.testing.assert_close(p(x)[0], model(x)[0], rtol=1e-4, atol=1e-5)


def test_outputs_by_their_keys():
    class Keys(torch.nn.Module):
        def forward(self, x):
            return {"x": x + 1, "rest": (x * 2, {"deep": x * 3})}

    for source in ("trace", "program"):
        p = aton.export(Keys(), (X,), source=source)
        assert p.output_names == ["x_out", "rest.0", "rest.1.deep"]
    assert aton.export(Keys(), (X,), output_names=["first"]).output_names == ["first", "rest.0", "rest.1.deep"]


@pytest.mark.parametrize("dynamo", [None, True, False])
def test_caches_are_outputs(dynamo):
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(vocab_size=50, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
    model, ids = transformers.LlamaForCausalLM(config).eval(), torch.randint(0, 50, (1, 5))
    p = aton.export(model, (ids,), input_names=["input_ids"], dynamic_axes={"input_ids": {0: "batch", 1: "seq"}}, dynamo=dynamo)
    assert p.output_names[0] == "logits" and [n.partition(".")[2] for n in p.output_names[1:]] == ["key_cache.0", "key_cache.1", "value_cache.0", "value_cache.1"]
    if dynamo is not False:
        assert p.source == "program"
        other = torch.randint(0, 50, (2, 7))
        torch.testing.assert_close(p(other)[0], model(other).logits, rtol=1e-3, atol=1e-4)


def test_pytorch_says_nothing(capfd):
    class Refused(torch.nn.Module):
        def forward(self, x):
            return x.numpy() if x.max() > 0 else x

    with pytest.raises(aton.ExportError) as e:
        aton.export(Refused(), (X,))
    out = capfd.readouterr()
    assert out.out == "" and out.err == "" and len(str(e.value).splitlines()) < 10 and e.value.log


class Clips(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, least):
        return x.clamp(min=least)

    @staticmethod
    def symbolic(g, x, least):
        return g.op("Clip", x, g.op("Constant", value_t=torch.tensor(least)))


def test_the_symbolic_of_a_function():
    class Clipped(torch.nn.Module):
        def forward(self, x):
            return Clips.apply(x * 2, 0.5) + Clips.apply(x, -0.25)

    p = aton.verify(Clipped(), (X,), dynamo=False)
    assert p.result["operators"]["onnx::Clip"] == 2


@pytest.fixture
def library():
    made = torch.library.Library("aton_arguments", "FRAGMENT")
    made.define("norm(Tensor x, float eps=1e-05, int[] axes=[1], str mode='a', Tensor? b=None) -> Tensor")

    def norm(x, eps=1e-5, axes=(1,), mode="a", b=None):
        return x / (x.norm(dim=axes, keepdim=True) + eps)

    made.impl("norm", norm, "CompositeExplicitAutograd")
    if hasattr(torch.library, "register_fake"):
        torch.library.register_fake("aton_arguments::norm", lambda x, eps=1e-5, axes=(1,), mode="a", b=None: torch.empty_like(x), lib=made)
    yield made
    made._destroy()


def test_a_registered_symbolic(library):
    from torch.onnx import register_custom_op_symbolic, symbolic_helper, unregister_custom_op_symbolic

    @symbolic_helper.parse_args("v", "f", "is", "s", "v")
    def symbolic(g, x, eps, axes, mode, b):
        assert mode == "z" and axes == [1] and symbolic_helper._is_none(b)
        norm = g.op("ReduceL2", x, axes_i=axes, keepdims_i=1)
        return g.op("Div", x, g.op("Add", norm, g.op("Constant", value_t=torch.tensor(eps))))

    class Normed(torch.nn.Module):
        def forward(self, x):
            return torch.ops.aton_arguments.norm(x, 0.5, [1], "z") * 2

    register_custom_op_symbolic("aton_arguments::norm", symbolic, 9)
    try:
        for options in ({}, {"dynamo": False}, {"source": "script"}, {"dynamo": False, "dynamic_axes": {"x": {0: "n"}}, "opset_version": 13}):
            aton.verify(Normed(), (X,), **options)
    finally:
        unregister_custom_op_symbolic("aton_arguments::norm", 9)
    with pytest.raises(aton.ExportError, match="norm"):
        aton.export(Normed(), (X,))
