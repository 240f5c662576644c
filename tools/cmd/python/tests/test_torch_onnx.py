"""What torch.onnx.export promises, through aton.patch(): arguments, names, axes, the returned program. ATON_EXPORTER=torch runs the same with PyTorch's own."""
import io
import logging
import os
import warnings

import pytest
import torch
import torch.nn.functional as F

import aton

pytestmark = pytest.mark.skipif(not hasattr(torch.onnx, "ops"), reason="the interface of PyTorch 2.8 and newer")
onnx_ir = pytest.importorskip("onnx_ir")
onnxscript = pytest.importorskip("onnxscript")
op = onnxscript.opset18

OWN = os.environ.get("ATON_EXPORTER") == "torch"


@pytest.fixture(autouse=True)
def through():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if OWN:
            yield
            return
        with aton.patch():
            yield


def export(model, args=(), f=None, **options):
    model = model.eval() if isinstance(model, torch.nn.Module) else model
    return torch.onnx.export(model, args, f, **{"dynamo": True, "verbose": False, **options})


def right(program, args=None, kwargs=None, **tolerances):
    """PyTorch's own check: the file gives what the program of torch.export gives."""
    from torch.onnx.testing import assert_onnx_program

    assert_onnx_program(program, args=args, kwargs=kwargs, strategy=None, **tolerances)


def operators(program):
    return [n.op_type for n in program.model.graph]


def sizes(value):
    return [getattr(s, "value", s) for s in value.shape]


def module(forward, **parts):
    made = type("M", (torch.nn.Module,), {"forward": forward})()
    for name, value in parts.items():
        setattr(made, name, value)
    return made


def two():
    return module(lambda self, x, b: (x + b, (x + b).relu()))


def separate():
    return module(lambda self, x, b: (x.relu(), b.sigmoid()))


def pair():
    return torch.randn(2, 2, 3), torch.randn(2, 2, 3)


Dim = getattr(getattr(torch, "export", None), "Dim", None)


class Nested(torch.nn.Module):
    def forward(self, x, ys, zs, c):
        y = ys[0] + ys[1] + zs["a"] + zs["b"]
        if x.shape[0] < 3 and c.shape[0] != 4:
            return x + 5, x + y, c
        return x - 5, x - y, c


def nested(last=6):
    return torch.ones(5), [torch.zeros(5), torch.ones(5)], {"a": torch.zeros(5), "b": torch.ones(5)}, torch.ones(last)


# arguments


def test_positional_arguments():
    right(export(two(), pair()))


def test_a_lone_tensor():
    right(export(module(lambda self, x: x + 1), torch.randn(3)))


def test_keyword_arguments():
    x, b = pair()
    right(export(two(), (x,), kwargs={"b": b}))


def test_a_dict_at_the_end_is_keywords():
    x, b = pair()
    right(export(two(), (x, {"b": b})))


def test_keywords_in_any_order():
    m = module(lambda self, a, b, kw1, kw2: a.sum() + b.sum() + kw1.sum() - kw2.sum())
    p = export(m, (torch.randn(4, 4), torch.randn(4, 4)), kwargs={"kw2": torch.ones(4, 4), "kw1": torch.zeros(4, 4)},
               dynamic_shapes=(None, {0: Dim("d")}, {0: Dim("e")}, None))
    right(p, (torch.randn(4, 4), torch.randn(7, 4)), {"kw2": torch.ones(4, 4), "kw1": torch.zeros(9, 4)})


def test_no_arguments():
    p = export(module(lambda self: torch.ones(2)))
    assert not p.model.graph.inputs


def test_none_among_the_arguments():
    m = module(lambda self, x, y=None, z=None: x + 1 if z is None else x + z)
    p = export(m, (torch.randn(2), None, torch.randn(2)))
    right(p)
    assert len(p.model.graph.inputs) == 2


def test_numbers_are_constants():
    p = export(module(lambda self, x, n: x + n), (torch.ones(7, 5), 5), dynamic_shapes={"x": {0: Dim("d", min=6)}, "n": None})
    right(p, (torch.ones(8, 5), 5))


def test_containers():
    m = module(lambda self, a, b: a[0].sum() + a[1].sum() + b["k"].sum())
    right(export(m, ((torch.randn(4, 4), torch.randn(4, 4)), {"k": torch.randn(4)}), kwargs={}))


def test_saves_to_a_path(tmp_path):
    path = tmp_path / "m.onnx"
    export(two(), pair(), path)
    assert path.exists()
    export(two(), pair(), str(path))


def test_saves_to_a_buffer():
    import onnx

    buffer = io.BytesIO()
    export(two(), pair(), buffer)
    onnx.checker.check_model(onnx.load_from_string(buffer.getvalue()))


def test_an_exported_program():
    right(export(torch.export.export(two(), pair())))


def test_a_strict_program():
    d = {i: Dim(f"x{i}") for i in range(3)}, {i: Dim(f"b{i}") for i in range(3)}
    right(export(torch.export.export(separate(), pair(), dynamic_shapes=d, strict=True)))


def test_input_and_output_names():
    p = export(two(), pair(), input_names=["first", "second"], output_names=["sum", "positive"])
    assert [v.name for v in p.model.graph.inputs] == ["first", "second"] and [v.name for v in p.model.graph.outputs] == ["sum", "positive"]


def test_names_of_forward_are_names_of_inputs():
    assert [v.name for v in export(two(), pair()).model.graph.inputs] == ["x", "b"]


def test_state_dict_names_are_names_of_weights():
    p = export(torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU()), (torch.randn(1, 1, 5, 5),))
    assert {"0.weight", "0.bias"} <= set(p.model.graph.initializers)


def test_an_unknown_argument():
    with pytest.raises(TypeError):
        export(two(), pair(), no_such_argument=1)


# axes


def test_dynamic_axes_by_name():
    p = export(separate(), (pair()[0], {"b": pair()[1]}), input_names=["x", "b"], dynamic_axes={"x": {0: "p", 1: "q", 2: "r"}, "b": {0: "s", 1: "t", 2: "u"}})
    right(p, (torch.randn(3, 4, 5),), {"b": torch.randn(5, 4, 3)})


def test_dynamic_axes_by_list():
    p = export(separate(), pair(), input_names=["x", "b"], dynamic_axes={"x": [0, 1, 2], "b": [0, 1, 2]})
    right(p, (torch.randn(3, 4, 5), torch.randn(5, 4, 3)))


def test_some_dynamic_axes():
    p = export(separate(), pair(), input_names=["x", "b"], dynamic_axes={"b": [0, 1, 2]})
    right(p, (torch.randn(2, 2, 3), torch.randn(5, 4, 3)))
    assert sizes(p.model.graph.inputs[0]) == [2, 2, 3]


def test_dynamic_axes_of_outputs():
    p = export(separate(), pair(), input_names=["x", "b"], output_names=["xo", "bo"], dynamic_axes={"b": [0, 1, 2], "bo": [0, 1, 2]})
    right(p)


def test_dynamic_axes_of_nested_inputs():
    axes = {n: {0: "dim"} for n in ("input_x", "input_y", "input_z", "d", "e")}
    p = export(Nested(), nested(4), dynamic_axes=axes, input_names=["input_x", "input_y", "input_z", "d", "e", "f"])
    assert all(isinstance(s, str) for v in list(p.model.graph.inputs)[:-1] for s in sizes(v)) and sizes(p.model.graph.inputs[-1]) == [4]


def test_the_name_of_an_axis():
    p = export(separate(), pair(), input_names=["x", "b"], dynamic_axes={"x": {0: "batch"}})
    assert sizes(p.model.graph.inputs[0])[0] == "batch"


def test_dynamic_shapes_with_dims():
    p = export(separate(), pair(), dynamic_shapes={"x": None, "b": {i: Dim(f"b{i}") for i in range(3)}})
    right(p, (pair()[0], torch.randn(4, 5, 6)))


def test_dynamic_shapes_with_texts():
    p = export(separate(), pair(), dynamic_shapes=({0: "batch", 1: "seq"}, None))
    assert sizes(p.model.graph.inputs[0]) == ["batch", "seq", 3]
    right(p, (torch.randn(5, 6, 3), pair()[1]))


def test_dynamic_shapes_as_tuples():
    p = export(separate(), pair(), dynamic_shapes={"x": (Dim("n"), None, None), "b": None})
    right(p, (torch.randn(5, 2, 3), pair()[1]))


def test_dynamic_shapes_with_hints():
    p = export(separate(), pair(), dynamic_shapes=({0: Dim.AUTO, 1: Dim.DYNAMIC, 2: Dim.STATIC}, None))
    right(p, (torch.randn(5, 6, 3), pair()[1]))
    assert sizes(p.model.graph.inputs[0])[2] == 3


def test_dims_that_the_program_refines():
    def forward(self, x, y):
        if x.shape[0] >= 6 and y.shape[0] <= 16:
            return x * 2.0, y + 1

    right(export(module(forward), (torch.randn(16), torch.randn(12)), dynamic_shapes={"x": (Dim("dx"),), "y": (Dim("dy"),)}))


def test_dims_that_are_static():
    dx, dz = Dim("dx", min=3, max=6), Dim("dz", min=3, max=6)
    m = module(lambda self, x, y, z: (self.l(x) + y[1:], z * 2.0), l=torch.nn.Linear(6, 4))
    p = export(m, (torch.randn(4, 6), torch.randn(5, 4), torch.randn(3, 3)), dynamic_shapes=({0: dx, 1: Dim.AUTO}, {0: dx + 1, 1: Dim.STATIC}, {0: dz, 1: 3}))
    right(p)
    assert sizes(p.model.graph.inputs[0])[0] == "dx"


def test_dims_of_nested_inputs_have_one_name():
    shapes = ({0: Dim("dim_x", min=3)}, [("ys_0",), (Dim.AUTO,)], {"a": {0: Dim.AUTO}, "b": ("zs_b",)}, {0: "c_0"})
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        p = export(Nested(), nested(), dynamic_shapes=shapes)
    assert any("axis" in str(w.message) for w in said)
    assert [sizes(v)[0] for v in p.model.graph.inputs] == ["dim_x"] * 5 + ["c_0"]
    right(p, (torch.ones(4), [torch.zeros(4), torch.ones(4)], {"a": torch.zeros(4), "b": torch.ones(4)}, torch.ones(5)))


def test_dims_of_a_container():
    m = module(lambda self, a, b: a[0].sum() + a[1].sum() + b.sum())
    p = export(m, ((torch.randn(4, 4), torch.randn(4, 4)), torch.randn(4, 4)), dynamic_shapes=((None, {0: Dim("d", min=3)}), None))
    right(p, ((torch.randn(4, 4), torch.randn(6, 4)), torch.randn(4, 4)))


def test_an_example_of_one():
    p = export(torch.nn.Linear(3, 4), (torch.randn(1, 3),), dynamic_shapes=({0: "batch"},))
    right(p, (torch.randn(5, 3),))


def test_a_lazy_module():
    class Lazy(torch.nn.modules.lazy.LazyModuleMixin, torch.nn.Module):
        def initialize_parameters(self, *args, **kwargs):
            pass

        def forward(self, x, y):
            return x + y

    d = Dim("d")
    p = export(Lazy(), (), kwargs={"x": torch.randn(3, 3), "y": torch.randn(3, 3)}, dynamic_shapes=({0: d}, {0: d}))
    right(p, kwargs={"x": torch.randn(6, 3), "y": torch.randn(6, 3)})


def test_a_recurrent_layer():
    p = export(torch.nn.LSTM(4, 5), (torch.randn(3, 2, 4),), dynamic_shapes=({0: "steps", 1: "batch"},))
    right(p, (torch.randn(7, 3, 4),), atol=1e-5, rtol=1e-4)


# what comes out


def test_is_in_onnx_export():
    m = module(lambda self, x: x.sin() if torch.onnx.is_in_onnx_export() else x.cos())
    assert not torch.onnx.is_in_onnx_export()
    assert "Sin" in operators(export(m, (torch.randn(3),))) and not torch.onnx.is_in_onnx_export()


def test_is_in_onnx_export_after_a_failure():
    def forward(self, x):
        raise RuntimeError("no")

    with pytest.raises(Exception):
        export(module(forward), (torch.randn(3),))
    assert not torch.onnx.is_in_onnx_export()


def test_is_in_onnx_export_in_the_old_exporter(tmp_path):
    import onnx

    m = module(lambda self, x: x.sin() if torch.onnx.is_in_onnx_export() else x.cos())
    export(m, (torch.randn(3),), str(tmp_path / "m.onnx"), dynamo=False)
    assert "Sin" in [n.op_type for n in onnx.load(tmp_path / "m.onnx").graph.node]


def test_opset_version():
    p = export(torch.nn.GELU(approximate="tanh"), (torch.randn(1, 3),), opset_version=20)
    assert p.model.opset_imports[""] == 20 and "Gelu" in operators(p)


def test_attention_is_one_node():
    q = torch.rand(2, 4, 8, 16)
    p = export(module(lambda self, q, k, v: F.scaled_dot_product_attention(q, k, v)), (q, q, q), opset_version=23)
    assert operators(p) == ["Attention"]


def test_attention_with_dropout():
    q, k = torch.randn(2, 4, 8, 16), torch.randn(2, 2, 8, 16)
    p = export(module(lambda self, q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True, dropout_p=0.1)), (q, k, k), opset_version=23)
    assert p.model.graph.outputs[0].name


def test_rms_norm():
    for shape, last in (((2, 5, 3), [3]), ((2, 5, 7, 3), [7, 3])):
        right(export(module(lambda self, x: F.rms_norm(x, last)), (torch.randn(*shape),), opset_version=23))


def test_group_norm():
    right(export(module(lambda self, x: F.group_norm(x, 4)), (torch.randn(1, 4, 4, 4),)))


def test_half_precision_of_powers():
    p = export(module(lambda self, x: x ** 2.0), (torch.tensor([1.0, 2.0, 3.0], dtype=torch.float16),))
    right(p)
    assert "Cast" not in operators(p)


def test_bfloat16():
    p = export(module(lambda self, x: x * torch.tensor(1.0, dtype=torch.bfloat16) * self.p, p=torch.nn.Parameter(torch.tensor(2.0, dtype=torch.bfloat16))),
               (torch.tensor([1.0, 2.0], dtype=torch.bfloat16),))
    assert p.model.graph.inputs[0].dtype == p.model.graph.outputs[0].dtype == onnx_ir.DataType.BFLOAT16


@pytest.mark.parametrize("name", ["float8_e5m2", "float8_e5m2fnuz", "float8_e4m3fn", "float8_e4m3fnuz"])
def test_float8(name):
    p = export(module(lambda self, x: x.to(getattr(torch, name))), (torch.randn(1, 2),))
    assert p.model.graph.outputs[0].dtype == getattr(onnx_ir.DataType, name.upper().replace("_", "", 1).replace("FLOAT8E", "FLOAT8E"))


def test_complex_numbers():
    x = torch.tensor([[1.0 + 2.0j, 3.0 + 4.0j]], dtype=torch.complex64)
    right(export(module(lambda self, x: torch.ops.aten.mul(x, 2 + 3j)), (x,)))


def test_a_branch():
    m = module(lambda self, x: torch.cond(x.sum() > 0, lambda x: x + 1.0, lambda x: x - 42.0, [x]))
    p = export(m, (torch.tensor([1, 2]),))
    assert "If" in operators(p)
    right(p)
    right(p, (torch.tensor([-1, -2]),))


def test_a_branch_with_weights():
    class Inner(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.tensor([100.0]))

        def forward(self, x):
            return torch.cond(x.sum() <= 0, lambda x: x * self.weight, lambda x: x / self.weight, [x])

    m = module(lambda self, x: torch.cond(x.sum() > 0, lambda x: self.inner(x - self.weight), lambda x: x - self.weight, [x]), inner=Inner(),
               weight=torch.nn.Parameter(torch.tensor([42.0])))
    p = export(m, (torch.tensor([1, 2]),))
    for values in ([1, 2], [0, 0], [43, 43]):
        right(p, (torch.tensor(values),))


def test_a_branch_with_several_results():
    m = module(lambda self, x: torch.cond(x.sum() > 0, lambda x, z: (x + 1.0, z * 1.0), lambda x, z: (x - 1.0, z * 0.0), (x, torch.ones_like(x))))
    p = export(m, (torch.tensor([1, 2]),))
    right(p)
    right(p, (torch.tensor([-1, -2]),))


def test_several_results():
    right(export(module(lambda self, x: torch.topk(x, 3)[0].sum()), (torch.arange(1.0, 6.0, requires_grad=True),)))


def test_an_empty_tensor():
    export(module(lambda self, x: torch.empty(x.size(), dtype=torch.int64)), (torch.randn(1, 2),))


def test_a_distribution():
    normal = torch.distributions.Normal(0, 1)
    export(module(lambda self, x: normal.sample(x.shape)), (torch.randn(2),))


@pytest.mark.parametrize("how", ["logger", "print"])
def test_a_module_that_talks(how):
    say = logging.getLogger(__name__).info if how == "logger" else print

    def forward(self, x):
        say("abc")
        return x + 1

    right(export(module(forward), (torch.tensor(1),)))


def test_an_assertion_is_no_output():
    def forward(self, x):
        torch.ops.aten._assert_async.msg(torch.tensor(True), "failed")
        return x + x

    right(export(module(forward), (torch.randn(2),)))


@pytest.mark.parametrize("persistent", [True, False])
def test_a_buffer_that_changes(persistent):
    class Changes(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("state", torch.tensor(4.0), persistent=persistent)

        def forward(self, x, b):
            self.state.add_(1.0) + 3.0
            return x + b

    d = Dim("d")
    p = export(Changes(), (torch.rand(3, 3), torch.randn(3, 3)), dynamic_shapes=({0: d}, {0: d}))
    right(p, (torch.rand(4, 3), torch.randn(4, 3)))


@pytest.mark.parametrize("function, operator", [(lambda x: torch.sym_max(*x.shape), "Max"), (lambda x: torch.sym_min(*x.shape), "Min"),
                                                pytest.param(lambda x: torch.sym_not(x.shape[0] == x.shape[1]), "Not",
                                                             marks=pytest.mark.xfail(not OWN, reason="torch.export.save writes no truth value of sizes"))])
def test_numbers_are_outputs(function, operator):
    p = export(module(lambda self, x: function(x)), (torch.zeros(2, 3),), dynamic_shapes=({0: Dim.DYNAMIC, 1: Dim.DYNAMIC},))
    right(p)
    right(p, (torch.zeros(5, 4),))


def test_a_scan():
    def step(y, row):
        return [y.clone(), torch.sqrt(((y - row.reshape((1, -1))) ** 2).sum(dim=1))]

    m = module(lambda self, x, y: torch.ops.higher_order.scan(step, [y], [x], additional_inputs=[])[1])
    n = Dim("dim")
    right(export(m, (torch.randn(3, 4), torch.randn(5, 4)), dynamic_shapes=({0: Dim("xr"), 1: n}, {0: Dim("yr"), 1: n})))


def test_a_dict_as_output():
    p = export(module(lambda self, x: {"total": x.sum(), "positive": x.relu()}), (torch.randn(3),))
    right(p)
    assert len(p.model.graph.outputs) == 2


# functions of users


def test_a_table_that_replaces_an_operator():
    p = export(two(), pair(), custom_translation_table={torch.ops.aten.add.Tensor: lambda self, other: op.Sub(self, other)})
    assert "Sub" in operators(p) and "Add" not in operators(p)


def test_a_table_for_an_operator_of_a_library():
    @torch.library.custom_op("aton_test::add", mutates_args=())
    def add(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a + b

    @add.register_fake
    def _(a, b):
        return torch.empty_like(a)

    p = export(module(lambda self, x, y: add(x, y)), pair(), custom_translation_table={torch.ops.aton_test.add.default: lambda self, other: op.Sub(self, other)})
    assert operators(p) == ["Sub"]


def test_a_table_has_one_function_for_an_operator():
    with pytest.raises(TypeError):
        export(two(), pair(), custom_translation_table={torch.ops.aten.add.Tensor: [lambda self, other: op.Sub(self, other)]})


def test_an_operator_of_ones_own():
    def forward(self, x, y):
        return torch.onnx.ops.symbolic("custom_domain::Op", (x, None, y), {"i": 1, "f": 1.5, "s": "a", "is": [1, 2], "ss": ["b", "c"]}, dtype=torch.float16, shape=[4, x.shape[1]], version=3)

    p = export(module(forward), (torch.randn(2, 3), torch.randn(2, 3)))
    node = p.model.graph[0]
    assert (node.domain, node.op_type) == ("custom_domain", "Op") and node.attributes["ss"].value == ("b", "c") or list(node.attributes["ss"].value) == ["b", "c"]
    assert p.model.graph.outputs[0].dtype == onnx_ir.DataType.FLOAT16 and sizes(p.model.graph.outputs[0]) == [4, 3]
    assert p.model.opset_imports["custom_domain"] == 3 and node.inputs[1] is None


def test_an_operator_of_ones_own_with_two_results():
    p = export(module(lambda self, x: torch.onnx.ops.symbolic_multi_out("d::Two", (x,), {"k": 1}, dtypes=(1, 7), shapes=([1, 2], [3]), version=1)), (torch.randn(2),))
    assert [v.dtype for v in p.model.graph.outputs] == [onnx_ir.DataType.FLOAT, onnx_ir.DataType.INT64]


# the program


def test_the_class_of_the_program():
    assert isinstance(export(two(), pair()), torch.onnx.ONNXProgram)


def test_the_exported_program():
    p = export(two(), pair())
    assert isinstance(p.exported_program, torch.export.ExportedProgram)


def test_calling_it():
    x, b = pair()
    got = export(two(), (x, b))(x, b)
    torch.testing.assert_close(tuple(got), two()(x, b))


def test_calling_the_reference():
    x, b = pair()
    torch.testing.assert_close(tuple(export(two(), (x, b)).call_reference(x, b)), two()(x, b))


def test_computing_values():
    x, b = pair()
    p = export(two(), (x, b))
    name = next(n for n in p.model.graph if n.op_type == "Add").outputs[0].name
    torch.testing.assert_close(p.compute_values([name], (x, b))[0], x + b)
    with pytest.raises(ValueError):
        p.compute_values(["no_such_value"], (x, b))


@pytest.mark.parametrize("weights, inputs", [(True, False), (True, True), (False, False), (False, True)])
def test_saving(tmp_path, weights, inputs):
    import onnx

    p = export(torch.nn.Linear(3, 4), (torch.randn(2, 3),))
    p.save(tmp_path / "m.onnx", include_initializers=weights, keep_initializers_as_inputs=inputs)
    graph = onnx.load(tmp_path / "m.onnx").graph
    assert bool(graph.initializer) == weights and (len(graph.input) > 1) == inputs


def test_saving_weights_beside_it(tmp_path):
    p = export(torch.nn.Linear(100, 100), (torch.randn(2, 100),))
    p.save(tmp_path / "m.onnx", external_data=True)
    assert len(list(tmp_path.iterdir())) == 2


def test_renaming_axes():
    p = export(separate(), pair(), dynamic_shapes=({0: "s0", 1: "s1"}, None))
    first = p.model.graph.inputs[0].shape[0]
    p.rename_axes({first: "batch", "s1": "seq", "none": "x"})
    assert sizes(p.model.graph.inputs[0]) == ["batch", "seq", 3] and sizes(p.model.graph.outputs[0]) == ["batch", "seq", 3]


def test_applying_weights():
    linear, x = torch.nn.Linear(3, 4), torch.randn(2, 3)
    p = export(module(lambda self, x: x * self.w, w=torch.nn.Parameter(torch.rand(3) + 2)), (x,))
    p.apply_weights({"w": torch.full((3,), 5.0)})
    torch.testing.assert_close(p(x)[0], x * 5)
    assert linear is not None


def test_optimizing():
    x, b = pair()
    p = export(two(), (x, b), optimize=False)
    p.optimize()
    torch.testing.assert_close(tuple(p(x, b)), two()(x, b))


def test_a_session_of_ones_own():
    import onnxruntime

    made = []
    x, b = pair()
    p = export(two(), (x, b))
    p.initialize_inference_session(lambda model: made.append(onnxruntime.InferenceSession(model)) or made[0])
    p(x, b)
    assert made
    p.release()


# other arguments


def test_weights_as_inputs(tmp_path):
    import onnx

    export(torch.nn.Linear(3, 4), (torch.randn(2, 3),), tmp_path / "m.onnx", keep_initializers_as_inputs=True)
    assert len(onnx.load(tmp_path / "m.onnx").graph.input) == 3


def test_verify_report_profile_and_the_program_are_done(tmp_path):
    export(torch.nn.Linear(3, 4), (torch.randn(2, 3),), report=True, verify=True, dump_exported_program=True, artifacts_dir=tmp_path)
    names = sorted(os.listdir(tmp_path))
    assert any(n.endswith(".md") for n in names) and any(n.endswith(".pt2") for n in names)


def test_old_exporter_names(tmp_path):
    import onnx

    export(torch.nn.Linear(3, 4), (torch.randn(2, 3),), str(tmp_path / "m.onnx"), dynamo=False, input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "n"}, "y": {0: "n"}})
    graph = onnx.load(tmp_path / "m.onnx").graph
    assert graph.input[0].name == "x" and graph.output[0].type.tensor_type.shape.dim[0].dim_param == "n"


def test_transformers():
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(vocab_size=50, n_embd=16, n_layer=1, n_head=2, n_positions=32, bos_token_id=1, eos_token_id=1, use_cache=False)
    ids = torch.randint(0, 50, (1, 5))
    p = export(transformers.GPT2LMHeadModel(config), (), kwargs={"input_ids": ids}, dynamic_shapes={"input_ids": {0: "batch", 1: "seq"}})
    right(p, (), {"input_ids": torch.randint(0, 50, (2, 7))}, atol=1e-4, rtol=1e-3)
