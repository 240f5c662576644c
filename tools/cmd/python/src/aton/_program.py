"""What an export gives."""
import base64
import html
import os
import shutil
import subprocess
import tempfile
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ._binary import find_binary
from ._errors import ArgumentError, Diagnostic
from ._inputs import leaves, parts, real

#: the most operators that a notebook draws
PICTURED = 150


class ONNXProgram:
    """An exported model. It is a file, of its own or a temporary one, with the weights beside it if they are large. Once somebody has looked at `model`, that
    is the model, and what is saved and run."""

    def __init__(self, path: str, source: str, result: Dict[str, Any], warnings: List[Diagnostic], folder: Optional["tempfile.TemporaryDirectory[str]"] = None,
                 numbers: bool = False):
        #: the file
        self.path = path
        #: what the binary read: "program" (torch.export), "trace", "script" or "file"
        self.source = source
        #: names and types of inputs and outputs, numbers of operators
        self.result = result
        self.warnings = warnings
        #: the program of torch.export that was converted, None where it was a trace or a script
        self.exported_program: Any = None
        self._folder = folder
        self._numbers = numbers  # numbers among the arguments are inputs
        self._order: Optional[Callable[[Tuple[Any, ...], Dict[str, Any]], List[Any]]] = None
        self._session: Any = None
        self._scratch: Optional["tempfile.TemporaryDirectory[str]"] = None
        self._model: Any = None
        #: what torch.onnx.testing asks for
        self._capture_strategy = "TorchExportNonStrictStrategy" if source == "program" else None

    def __repr__(self) -> str:
        return f"ONNXProgram({self.path!r}, inputs={self.input_names}, outputs={self.output_names}, source={self.source!r})"

    def _repr_html_(self) -> str:
        """What a notebook shows: the summary, and a picture of the graph where it is small enough to be looked at."""
        def row(what: str, text: str) -> str:
            return f"<tr><th style='text-align:left'>{what}</th><td style='text-align:left'>{html.escape(text)}</td></tr>"

        operators = {k: n for k, n in self.result.get("operators", {}).items() if not k.endswith("::Constant")}
        rows = [row("file", self.path)] if self._folder is None else []
        rows.append(row("opset", ", ".join(f"{domain} {n}".strip() for domain, n in sorted(self.result.get("opsets", {}).items()))))
        for what in ("inputs", "outputs"):
            rows += [row(what[:-1], f"{v['name']} : {v['type']}") for v in self.result.get(what, [])]
        rows.append(row("operators", ", ".join(f"{n} {k.split('::')[-1]}" for k, n in sorted(operators.items(), key=lambda i: (-i[1], i[0])))))
        rows += [row("warning", str(w)) for w in self.warnings]
        return f"<table>{''.join(rows)}</table>{self._picture() if sum(operators.values()) <= PICTURED else ''}"

    def _picture(self) -> str:
        """The graph as an image, nothing where it cannot be drawn."""
        drawn = subprocess.run([find_binary(), "explore", self.path, "--svg", "-"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if drawn.returncode != 0 or self._model is not None:
            return ""
        return f"<img alt='the graph' style='max-width:100%' src='data:image/svg+xml;base64,{base64.b64encode(drawn.stdout).decode()}'>"

    @property
    def input_names(self) -> List[str]:
        """The names of the inputs, in order."""
        if self._model is not None:
            return [str(v.name) for v in self._model.graph.inputs]
        return [i["name"] for i in self.result.get("inputs", [])]

    @property
    def output_names(self) -> List[str]:
        """The names of the outputs, in order."""
        if self._model is not None:
            return [str(v.name) for v in self._model.graph.outputs]
        return [o["name"] for o in self.result.get("outputs", [])]

    @property
    def model(self) -> Any:
        """The model as an onnx_ir.Model, which may be changed."""
        if self._model is None:
            import onnx_ir

            self._model = onnx_ir.load(self.path)
            self._session = None
        return self._model

    @model.setter
    def model(self, model: Any) -> None:
        self._model = model
        self._session = None

    @property
    def model_proto(self) -> Any:
        """The model as an onnx.ModelProto, with its weights."""
        import onnx

        if self._model is not None:
            import onnx_ir

            return onnx_ir.serde.serialize_model(self._model)
        return onnx.load(self.path)

    def save(self, destination: Union[str, "os.PathLike[str]"], *, include_initializers: bool = True, keep_initializers_as_inputs: bool = False,
             external_data: Optional[bool] = None) -> None:
        """Writes the model to another place, with its data file. The arguments are those of torch.onnx.ONNXProgram.save."""
        if hasattr(destination, "write"):
            raise ArgumentError("destination", "destination is a path; an open file has no place for a data file")
        target = os.fspath(destination)
        if self._model is not None or not include_initializers or keep_initializers_as_inputs or external_data is not None:
            self._write(target, include_initializers, keep_initializers_as_inputs, external_data)
            return
        if os.path.exists(target) and os.path.samefile(self.path, target):
            return
        for name in self._data_files():
            folder = os.path.dirname(os.path.abspath(target))
            shutil.copyfile(os.path.join(os.path.dirname(self.path), name), os.path.join(folder, name))
        shutil.copyfile(self.path, target)  # last: who finds the model finds its weights

    def _write(self, target: str, include: bool, as_inputs: bool, external: Optional[bool]) -> None:
        """Writes the model by onnx_ir."""
        import onnx_ir

        model = self.model
        graph = model.graph
        weights, inputs = dict(graph.initializers), list(graph.inputs)
        try:
            if as_inputs:
                graph.inputs.extend(v for v in weights.values() if v not in inputs)
            if not include:
                graph.initializers.clear()
            size = sum(v.const_value.nbytes for v in graph.initializers.values() if v.const_value is not None)
            if external or external is None and size > 1 << 31:
                onnx_ir.save(model, target, external_data=os.path.basename(target) + ".data")
            else:
                onnx_ir.external_data.load_to_model(model)
                onnx_ir.save(model, target)
        finally:
            graph.initializers.update(weights)
            graph.inputs.clear()
            graph.inputs.extend(inputs)

    def _data_files(self) -> List[str]:
        base = os.path.basename(self.path)
        folder = os.path.dirname(os.path.abspath(self.path))
        return sorted(n for n in os.listdir(folder) if n.startswith(base + ".") and n.endswith(".data"))

    def optimize(self) -> None:
        """Optimizes the model in its place, by `aton.optimize`: an export is optimized as it is made, and a model that was changed since may not be."""
        from ._export import optimize

        with tempfile.TemporaryDirectory(prefix="aton-") as folder:
            path = os.path.join(folder, "model.onnx")
            self.save(path)
            done = optimize(path, os.path.join(folder, "optimized.onnx"))
            model = done.model
            import onnx_ir

            onnx_ir.external_data.load_to_model(model)
            self.model = model

    def apply_weights(self, state_dict: Mapping[str, Any]) -> None:
        """Gives weights other values, by their names in the state dict; one that is not there is a warning."""
        import warnings

        import onnx_ir

        weights = self.model.graph.initializers
        for name, tensor in state_dict.items():
            if name not in weights:
                warnings.warn(f"the model has no weight {name}: it is left as it is", stacklevel=2)
                continue
            old = weights[name]
            if old.shape is not None and list(old.shape) != list(tensor.shape):
                raise ArgumentError("state_dict", f"the weight {name} has the shape {list(old.shape)}, and not {list(tensor.shape)}")
            weights[name].const_value = onnx_ir.tensor(tensor.detach().cpu().contiguous(), name=name)
        self._session = None

    def rename_axes(self, rename_mapping: Mapping[Any, str]) -> None:
        """Renames dynamic axes everywhere, also where a size is computed from them (`s1 + s2`). The keys are names, or axes of `model`."""
        import re

        import onnx_ir

        names = {str(getattr(k, "value", k)): v for k, v in rename_mapping.items()}

        def renamed(text: str) -> str:
            return names[text] if text in names else re.sub(r"[A-Za-z_][\w.]*", lambda m: names.get(m[0], m[0]), text)

        seen = set()
        graphs = [self.model.graph, *self.model.functions.values()]
        for graph in graphs:
            values = [*graph.inputs, *getattr(graph, "initializers", {}).values(), *graph.outputs]
            values += [v for node in graph.all_nodes() for v in (*node.outputs, *(x for a in node.attributes.values() if a.type == onnx_ir.AttributeType.GRAPH
                                                                               for x in a.value.inputs))]
            for value in values:
                if id(value) in seen or value.shape is None:
                    continue
                seen.add(id(value))
                value.shape = onnx_ir.Shape([renamed(text) if isinstance(text, str) else text for text in (getattr(s, "value", s) for s in value.shape)])
        self._session = None

    def initialize_inference_session(self, initializer: Any = None, *, providers: Optional[Sequence[str]] = None) -> Any:
        """The model in onnxruntime. initializer makes a session of a path, as torch.onnx has it; providers are those of onnxruntime otherwise."""
        if initializer is not None and not callable(initializer):
            providers, initializer = initializer, None
        path = self.path
        if self._model is not None:
            self._scratch = tempfile.TemporaryDirectory(prefix="aton-")
            path = os.path.join(self._scratch.name, "model.onnx")
            self.save(path)
        if initializer is not None:
            self._session = initializer(path)
        else:
            import onnxruntime

            self._session = onnxruntime.InferenceSession(path, providers=list(providers or ["CPUExecutionProvider"]))
        return self._session

    def __call__(self, *args: Any, **kwargs: Any) -> Tuple[Any, ...]:
        """Runs the model in onnxruntime on the arguments of the module, or what tensors there are in them, in their order; gives tensors.

        Complex ones go in and come out as torch.view_as_real has them."""
        import onnxruntime

        session = self._session or self.initialize_inference_session()
        feed = self._feed(args, kwargs, [i.name for i in session.get_inputs()])
        values = {n: _ort_value(onnxruntime, t) for n, t in feed.items()}
        return tuple(_from_ort(v) for v in session.run_with_ort_values(None, values))

    def _feed(self, args: Tuple[Any, ...], kwargs: Dict[str, Any], names: List[str]) -> Dict[str, Any]:
        """The tensors for the inputs of the file."""
        import torch

        given: List[Any] = [args, kwargs]
        if self._order is not None:
            try:
                given = self._order(args, kwargs)
            except TypeError:  # the tensors alone
                pass
        tensors = [t for v in leaves(given, self._numbers) for t in parts(v).values()]
        if len(tensors) > len(names):  # the file may leave out those that it does not use
            dropped = set(self.result.get("dropped", ()))
            tensors = [t for i, t in enumerate(tensors) if i not in dropped]
        if len(tensors) < len(names):  # weights that are inputs have their values in the file
            names = [n for n in names if n not in self._overridable()]
        if len(tensors) != len(names):
            raise TypeError(f"{len(tensors)} tensors are given, the model has the inputs {', '.join(names)}")
        return {n: real(t.detach().cpu() if isinstance(t, torch.Tensor) else t) for n, t in zip(names, tensors)}

    def _overridable(self) -> List[str]:
        if self._model is not None:
            return list(self._model.graph.initializers)
        import onnx

        return [i.name for i in onnx.load(self.path, load_external_data=False).graph.initializer]

    def call_reference(self, *args: Any, **kwargs: Any) -> Tuple[Any, ...]:
        """Runs the model in the reference evaluator of the onnx package."""
        import onnx.reference
        import torch

        evaluator = onnx.reference.ReferenceEvaluator(self.model_proto)
        feed = self._feed(args, kwargs, list(evaluator.input_names))
        return tuple(torch.from_numpy(v.copy()) if hasattr(v, "shape") else torch.tensor(v) for v in evaluator.run(None, {n: t.numpy() for n, t in feed.items()}))

    def compute_values(self, value_names: Sequence[str], args: Sequence[Any] = (), kwargs: Optional[Mapping[str, Any]] = None) -> Tuple[Any, ...]:
        """Runs the model, and gives the values of these names in it."""
        graph = self.model.graph
        known = {str(v.name): v for v in (*graph.inputs, *graph.initializers.values(), *(o for n in graph for o in n.outputs))}
        missing = [n for n in value_names if n not in known]
        if missing:
            raise ArgumentError("value_names", f"the model has no value {missing[0]!r}")
        outputs = list(graph.outputs)
        self._session = None
        try:
            graph.outputs.clear()
            graph.outputs.extend(known[n] for n in value_names)
            return self(*args, **dict(kwargs or {}))
        finally:
            graph.outputs.clear()
            graph.outputs.extend(outputs)
            self._session = None

    def release(self) -> None:
        """Gives back the session, and removes the file if it is a temporary one."""
        self._session = None
        if self._scratch is not None:
            self._scratch.cleanup()
            self._scratch = None
        if self._folder is not None:
            self._folder.cleanup()


def _ort_value(ort: Any, tensor: Any) -> Any:
    """A tensor for onnxruntime. NumPy has no bfloat16 and no floats of 8 bits: these go by their bits."""
    import torch

    t = tensor.contiguous()
    codes = {getattr(torch, n): code for n, code in (("bfloat16", 16), ("float8_e4m3fn", 17), ("float8_e4m3fnuz", 18), ("float8_e5m2", 19), ("float8_e5m2fnuz", 20))
             if hasattr(torch, n)}
    if t.dtype in codes:
        bits = t.view(torch.int16).numpy().view("uint16") if t.dtype == torch.bfloat16 else t.view(torch.uint8).numpy()
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, codes[t.dtype])
    return ort.OrtValue.ortvalue_from_numpy(t.numpy())


def _from_ort(value: Any) -> Any:
    """What onnxruntime gives, as a tensor; a sequence is a list of them."""
    import torch

    if not value.is_tensor():
        return [torch.from_numpy(v) for v in value.numpy()] if hasattr(value, "numpy") else value
    if value.element_type() in (16, 17, 18, 19, 20):
        return torch.from_dlpack(value._get_c_value())
    return torch.from_numpy(value.numpy())
