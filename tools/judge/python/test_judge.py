"""Tests of judge.py: make judge-test."""
import math
import os
import tempfile
import unittest

import judge
import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper


def f(*values):
    return np.array(values, np.float32)


def model(nodes, inputs, outputs, opset=21, **more):
    graph = helper.make_graph(nodes, "g", inputs, outputs, **more)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def tensor(name, type, shape):
    return helper.make_tensor_value_info(name, type, shape)


class TestDiffer(unittest.TestCase):
    def same(self, got, want, *tolerances, **how):
        self.assertEqual(judge.differ(got, want, *tolerances, **how), "")

    def other(self, why, got, want, *tolerances, **how):
        said = judge.differ(got, want, *tolerances, **how)
        self.assertTrue(why in said and said, said)

    def test_floats(self):
        self.same(f(1, np.nan, np.inf, -np.inf), f(1, np.nan, np.inf, -np.inf))
        self.other("1 of 2 elements differ, by up to 0.1", f(1, 2), f(1, 2.1), 1e-3)
        self.same(f(1, 2), f(1, 2.1), 0.1)
        self.other("elements", f(np.inf), f(-np.inf), 1, 1)
        self.other("elements", f(np.nan), f(1), 1, 1)
        self.other("elements", f(1), f(np.nan), 1, 1)
        self.other("elements", f(np.nan), f(np.nan), equal_nan=False)
        self.same(f(), f())

    def test_greatest(self):
        self.same(f(100, 1, np.inf), f(100, 1.05, np.inf), of_greatest=1e-3)
        self.other("1 of 2", f(100, 1), f(100, 1.2), of_greatest=1e-3)

    def test_forms(self):
        self.other("type float32, not float64", f(1), np.array([1.0]))
        self.other("shape [1], not [1, 1]", f(1), f([1]))
        self.other("type float32, not object", f(1), np.array(["1"], object))
        self.same(np.array(1.5, np.float32), 1.5)
        self.other("elements", np.array(1.25, np.float32), 1.5)
        self.other("type int64", np.array(1), 1.5)

    def test_exact(self):
        self.other("1 of 2 elements", np.array([1, 2]), np.array([1, 3]), 1, 9)
        self.other("elements", np.array([True]), np.array([False]), 1, 1)
        self.same(np.array(["a", "b"], object), np.array(["a", "b"]))
        self.other("1 of 2 strings", np.array(["a", "b"], object), np.array(["a", "c"]))
        self.other("elements", np.array([1.0], ml_dtypes.float8_e4m3fn), np.array([1.125], ml_dtypes.float8_e4m3fn), 1, 1)
        self.same(np.array([1.0], ml_dtypes.bfloat16), np.array([1.008], ml_dtypes.bfloat16), 1e-2)
        self.other("elements", np.complex64([1 + 1j]), np.complex64([1 - 1j]), 1e-3)

    def test_containers(self):
        self.same(None, None)
        self.other("no value, not a value", None, f(1))
        self.other("a value, not none", f(1), None)
        self.other("1 elements, not 2", [f(1)], [f(1), f(2)])
        self.other("a list of 2, not an array", [f(1), f(2)], f([1], [2]))
        self.other("element 1: 1 of 1", [f(1), f(3)], [f(1), f(2)])
        self.assertEqual(judge.wrong([f(1)], [f(1), f(2)]), "1 outputs, not 2")
        self.assertEqual(judge.wrong([f(1), f(2)], [f(1), f(3)]), "output 1: 1 of 1 elements differ, by up to 1")

    def test_distance(self):
        for want, got, of, d in ((f(1, 4), f(1, 2), None, 0.5), (f(1, 4), f(1, 2), 1, 2), (f(), f(), None, 0), (f(0), f(0), None, 0), (f(np.nan, 1), f(np.nan, 1), None, 0),
                                 (f(1), f(np.nan), None, math.inf), (f(np.inf), f(-np.inf), None, math.inf), (f(1), np.array([1.0]), None, math.inf), (f(1), f(np.inf), None, math.inf)):
            self.assertEqual(judge.distance(got, want, of), d, (want, got))
        self.assertGreater(judge.distance(f(1e-6), f(0)), 1)


class TestValues(unittest.TestCase):
    def test_lacking(self):
        """Arrays of types that numpy lacks are the same behind onnxruntime, and behind a TensorProto."""
        for name, row in judge.LACKING.items():
            for shape in ((), (1,), (5,), (2, 3), (0, 3), (8,)):
                a = (np.arange(math.prod(shape)) % 2 + 1).astype(np.float32).astype(getattr(ml_dtypes, row[3])).reshape(shape)
                for b in (judge.array(judge.fed(a)), judge.array(onnx.numpy_helper.from_array(a))):
                    self.assertEqual(judge.differ(b, a), "", (name, shape))
            self.assertEqual(judge.dtype(f"tensor({name})"), a.dtype)

    def test_recorded(self):
        values = [f(1, 2), None, [f(1), f(2, 3)], np.array(["a"], object), np.array([1], ml_dtypes.bfloat16), []]
        with tempfile.TemporaryDirectory() as folder:
            for i, v in enumerate(values):
                judge.record(os.path.join(folder, f"input_{i}"), v)
            got = [v for _, v in judge.recorded(folder, "input")]
            self.assertEqual(judge.wrong(got, values), "")
            self.assertEqual(judge.recorded(folder, "output"), [])


class TestSession(unittest.TestCase):
    def test_types(self):
        """Floats become each type that onnxruntime casts to, and come back."""
        for name in ("BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E5M2", "INT4", "UINT4"):
            type = getattr(TensorProto, name)
            there = model([helper.make_node("Cast", ["x"], ["y"], to=type)], [tensor("x", TensorProto.FLOAT, [5])], [tensor("y", type, [5])])
            back = model([helper.make_node("Cast", ["y"], ["x"], to=TensorProto.FLOAT)], [tensor("y", type, [5])], [tensor("x", TensorProto.FLOAT, [5])])
            x = f(0, 1, 2, 3, 4)
            (y,) = judge.run(judge.session(there), [x])
            self.assertEqual(y.dtype.itemsize, 2 if name == "BFLOAT16" else 1)
            self.assertEqual(judge.differ(y.astype(np.float32), x), "", name)
            self.assertEqual(judge.wrong(judge.run(judge.session(back), {"y": y}), [x]), "", name)

    def test_feeds(self):
        add = model([helper.make_node("Sub", ["x", "y"], ["z"])], [tensor(n, TensorProto.FLOAT, [1]) for n in "xy"], [tensor("z", TensorProto.FLOAT, [1])])
        s = judge.session(add, optimized=False, threads=1)
        for values in ([f(3), f(1)], {"y": f(1), "x": f(3), "more": f(9)}):
            self.assertEqual(judge.wrong(judge.run(s, values), [f(2)]), "")
        for values in ([f(3)], {"x": f(3)}, {"a": f(3), "b": f(1)}):
            self.assertRaises(ValueError, judge.run, s, values)

    def test_sequence(self):
        at = model([helper.make_node("SequenceAt", ["s", "i"], ["y"])], [helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None), tensor("i", TensorProto.INT64, [])],
                   [tensor("y", TensorProto.FLOAT, None)])
        self.assertEqual(judge.wrong(judge.run(judge.session(at), [[f(1), f(2, 3)], np.array(1)]), [f(2, 3)]), "")


class TestModels(unittest.TestCase):
    def test_operators(self):
        """Nodes of branches count, and the nodes of a function for each call."""
        branch = [helper.make_graph([helper.make_node("Constant", [], ["c" + op], value_float=1.0), helper.make_node(op, ["c" + op], ["b" + op])], op, [],
                                    [tensor("b" + op, TensorProto.FLOAT, None)]) for op in ("Neg", "Abs")]
        twice = helper.make_function("my", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 21)])
        m = model([helper.make_node("If", ["x"], ["y"], then_branch=branch[0], else_branch=branch[1]), *(helper.make_node("Twice", ["y"], [n], domain="my") for n in "zw")],
                  [tensor("x", TensorProto.BOOL, [])], [tensor("z", TensorProto.FLOAT, None)])
        m.functions.append(twice)
        self.assertEqual(judge.operators(m), {"If": 1, "Constant": 2, "Neg": 1, "Abs": 1, "Add": 2})
        self.assertEqual(judge.operators(m, constants=False).total(), 5)
        self.assertEqual(len(list(judge.graphs(m.graph))), 3)

    def test_functions(self):
        """Functions call functions, in any order, and have the names of operators."""
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("my", 1)]
        inner = helper.make_function("my", "Relu", ["a"], ["b"], [helper.make_node("Abs", ["a"], ["c"]), helper.make_node("Neg", ["c"], ["b"])], opsets)
        outer = helper.make_function("my", "Outer", ["a"], ["b"], [helper.make_node("Relu", ["a"], ["c"], domain="my"), helper.make_node("Relu", ["c"], ["b"])], opsets)
        for functions in ([inner, outer], [outer, inner]):
            m = model([helper.make_node("Outer", ["x"], [n], domain="my") for n in "yz"], [tensor("x", TensorProto.FLOAT, [1])], [tensor("y", TensorProto.FLOAT, [1])])
            m.functions.extend(functions)
            self.assertEqual(judge.operators(m), {"Abs": 2, "Neg": 2, "Relu": 2})


class TestCommand(unittest.TestCase):
    def test_spec(self):
        self.assertEqual(judge.spec(np.dtype("float32"), ["N", 3]), "f32[N,3]")
        self.assertEqual(judge.spec("torch.int64", []), "i64[]")

    def test_refused(self):
        self.assertEqual(judge.first_error("warning: w\n  --> y\nerror[a]: b\n  help\n"), "error[a]: b")
        self.assertEqual(judge.first_error("warning: w\n  --> y\npanic: p\n"), "panic: p")
        self.assertEqual(judge.first_error("Traceback (most recent call last):\n  File f\nValueError: v\n"), "ValueError: v")
        with self.assertRaises(judge.Refused) as e:
            judge.command(["sh", "-c", "echo error: no >&2; exit 3"])
        self.assertEqual((str(e.exception), e.exception.status), ("error: no", 3))
        with self.assertRaises(judge.Refused) as e:
            judge.command(["sleep", "9"], seconds=0.1)
        self.assertIsNone(e.exception.status)
        self.assertGreaterEqual(judge.command(["true"]), 0)


if __name__ == "__main__":
    unittest.main()
