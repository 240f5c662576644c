"""What an export gives."""
import os
import shutil
import tempfile
from typing import Any, Dict, List, Optional, Sequence, Union

from ._errors import Diagnostic
from ._inputs import leaves, parts, real


class ONNXProgram:
    """An exported model. It is a file, of its own or a temporary one, with the weights beside it if they are large."""

    def __init__(self, path: str, source: str, result: Dict[str, Any], warnings: List[Diagnostic], folder: Optional["tempfile.TemporaryDirectory[str]"] = None,
                 numbers: bool = False):
        #: the file
        self.path = path
        #: what the binary read: "program" (torch.export), "trace", "script" or "file"
        self.source = source
        #: names and types of inputs and outputs, numbers of operators
        self.result = result
        self.warnings = warnings
        self._folder = folder
        self._numbers = numbers  # numbers among the arguments are inputs
        self._session: Any = None

    def __repr__(self) -> str:
        return f"ONNXProgram({self.path!r}, inputs={self.input_names}, outputs={self.output_names}, source={self.source!r})"

    @property
    def input_names(self) -> List[str]:
        """The names of the inputs, in order."""
        return [i["name"] for i in self.result.get("inputs", [])]

    @property
    def output_names(self) -> List[str]:
        """The names of the outputs, in order."""
        return [o["name"] for o in self.result.get("outputs", [])]

    @property
    def model_proto(self) -> Any:
        """The model as an onnx.ModelProto, with its weights."""
        import onnx

        return onnx.load(self.path)

    def save(self, destination: Union[str, "os.PathLike[str]"], **_: Any) -> None:
        """Writes the model to another place, with its data file."""
        target = os.fspath(destination)
        if os.path.exists(target) and os.path.samefile(self.path, target):
            return
        for name in self._data_files():
            folder = os.path.dirname(os.path.abspath(target))
            shutil.copyfile(os.path.join(os.path.dirname(self.path), name), os.path.join(folder, name))
        shutil.copyfile(self.path, target)  # last: who finds the model finds its weights

    def _data_files(self) -> List[str]:
        base = os.path.basename(self.path)
        folder = os.path.dirname(os.path.abspath(self.path))
        return sorted(n for n in os.listdir(folder) if n.startswith(base + ".") and n.endswith(".data"))

    def initialize_inference_session(self, providers: Optional[Sequence[str]] = None) -> Any:
        """The model in onnxruntime."""
        import onnxruntime

        self._session = onnxruntime.InferenceSession(self.path, providers=list(providers or ["CPUExecutionProvider"]))
        return self._session

    def __call__(self, *args: Any, **kwargs: Any) -> List[Any]:
        """Runs the model in onnxruntime on the arguments of the module, or what tensors there are in them, in their order; gives tensors.

        Complex ones go in and come out as torch.view_as_real has them."""
        import torch

        session = self._session or self.initialize_inference_session()
        tensors = [t for v in leaves((args, kwargs), self._numbers) for t in parts(v).values()]
        names = [i.name for i in session.get_inputs()]
        if len(tensors) > len(names):  # the file may leave out those that it does not use
            dropped = set(self.result.get("dropped", ()))
            tensors = [t for i, t in enumerate(tensors) if i not in dropped]
        if len(tensors) != len(names):
            raise TypeError(f"{len(tensors)} tensors are given, the model has the inputs {', '.join(names)}")
        feed = {n: real(t.detach().cpu()).numpy() for n, t in zip(names, tensors)}
        return [torch.from_numpy(v) if hasattr(v, "shape") else v for v in session.run(None, feed)]

    def release(self) -> None:
        """Gives back the session, and removes the file if it is a temporary one."""
        self._session = None
        if self._folder is not None:
            self._folder.cleanup()
