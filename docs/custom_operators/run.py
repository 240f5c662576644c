# Runs model.onnx, whose operator my.domain::Norm onnxruntime does not have, with a function of Python for it; and
# carrying.onnx, which has the body in it, without one. Needs onnxruntime, and for the first one onnxruntime-extensions.
import sys

import numpy
import onnxruntime

data = numpy.load("data.npz")


def run(path, options=None):
    session = onnxruntime.InferenceSession(path, options)
    (got,) = session.run(None, {session.get_inputs()[0].name: data["input_0"]})
    difference = abs(got - data["output_0"]).max()
    print(f"{path}: greatest difference from PyTorch {difference:.2g}")
    return difference < 1e-5


right = run("carrying.onnx")
try:
    from onnxruntime_extensions import PyCustomOpDef, get_library_path, onnx_op
except ImportError:
    print("model.onnx: not run: onnxruntime-extensions is missing")
    sys.exit(0 if right else 1)


@onnx_op(op_type="my.domain::Norm", inputs=[PyCustomOpDef.dt_float], outputs=[PyCustomOpDef.dt_float], attrs={"epsilon": PyCustomOpDef.dt_float})
def norm(x, epsilon):
    return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + epsilon)


options = onnxruntime.SessionOptions()
options.register_custom_ops_library(get_library_path())
sys.exit(0 if run("model.onnx", options) and right else 1)
