# Makes functions.onnx: the body of my.domain::Norm in operators of ONNX.
import onnx
from onnx import helper

epsilon = helper.make_node("Constant", [], ["eps"])
epsilon.attribute.append(onnx.AttributeProto(name="value_float", ref_attr_name="epsilon", type=onnx.AttributeProto.FLOAT))
norm = helper.make_function(
    "my.domain", "Norm", ["x"], ["y"],
    [
        helper.make_node("Mul", ["x", "x"], ["square"]),
        helper.make_node("Constant", [], ["axes"], value_ints=[-1]),
        helper.make_node("ReduceMean", ["square", "axes"], ["mean"]),
        epsilon,
        helper.make_node("Add", ["mean", "eps"], ["sum"]),
        helper.make_node("Sqrt", ["sum"], ["root"]),
        helper.make_node("Div", ["x", "root"], ["y"]),
    ],
    [helper.make_opsetid("", 20)], ["epsilon"])
# a file of functions is a model; what its graph is does not matter
x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in "xy")
graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "functions", [x], [y])
model = helper.make_model(graph, functions=[norm], opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("my.domain", 1)])
onnx.checker.check_model(model)
onnx.save(model, "functions.onnx")
