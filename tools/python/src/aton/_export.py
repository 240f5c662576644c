"""The functions that users call."""
import contextlib
import inspect
import os
import re
import tempfile
from typing import Any, BinaryIO, Collection, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, Union

from . import _patch, _rules, _save
from ._binary import memory_file, run, warn
from ._errors import Diagnostic, ExportError, VerificationError
from ._inputs import Axes, axes_of, axes_of_shapes, leaves, real, type_of
from ._program import ONNXProgram
from ._progress import stage

Path = Union[str, "os.PathLike[str]"]

#: what the binary says of axes that are not dynamic
_ONE_SIZE = re.compile(r"(\w+) must be (\d+) \(axis (\d+) of input (.+?)\)")
_NO_NAME = re.compile(r"axis (-?\d+) of output (.+): its size is (\d+) always: .*")

_SAVING = {"program": "saving by torch.export", "trace": "saving by torch.jit.trace", "script": "saving the ScriptModule"}


def export(
    model: Any,
    args: Any = (),
    f: Union[Path, BinaryIO, None] = None,
    export_params: bool = True,
    verbose: Optional[bool] = None,
    training: Any = None,
    input_names: Optional[Sequence[str]] = None,
    output_names: Optional[Sequence[str]] = None,
    operator_export_type: Any = None,
    opset_version: Optional[int] = None,
    do_constant_folding: bool = True,
    dynamic_axes: Optional[Axes] = None,
    keep_initializers_as_inputs: Optional[bool] = None,
    custom_opsets: Optional[Mapping[str, int]] = None,
    export_modules_as_functions: Union[bool, Collection[Any]] = False,
    autograd_inlining: bool = True,
    *,
    kwargs: Optional[Mapping[str, Any]] = None,
    dynamo: Optional[bool] = None,
    external_data: Union[bool, str] = True,
    dynamic_shapes: Any = None,
    custom_translation_table: Any = None,
    report: bool = False,
    optimize: bool = True,
    verify: bool = False,
    profile: bool = False,
    dump_exported_program: bool = False,
    artifacts_dir: Path = ".",
    fallback: bool = True,
    source: str = "auto",
    rules: _rules.Given = (),
    state: str = "drop",
    target: str = "ort",
    options: Sequence[str] = (),
) -> ONNXProgram:
    """Converts a model to ONNX. The arguments of torch.onnx.export mean what they mean there.

    model is an nn.Module, a ScriptModule or a torch.export.ExportedProgram; args are its inputs, a tensor or a tuple (whose last
    element may be a dict of keyword arguments, as for torch.onnx). f is a path, an open binary file, or None for a temporary file.

    source says how a module is saved: "program" by torch.export, "trace" by torch.jit.trace, "auto" tries them in this order; the result's
    `source` names the one that it was. A program keeps what a trace builds in, such as sizes. dynamo=True is "program", dynamo=False "trace".

    Where torch.onnx.export would trace the model (dynamo=False, or a PyTorch whose default that is), the file has the inputs that it has there: numbers
    among the arguments are inputs without axes, and inputs that are not used are left out.

    rules are files of rewrite rules for operators of other libraries, their text, or functions of onnxscript (see aton.rule). state says what becomes of buffers that the model
    changes (drop, outputs, refuse), target whose kernels decide on element types (ort, onnx); options are further flags of `aton export`.

    Raises ExportError with all that cannot be converted, each with the line of the model's Python.
    """
    if custom_translation_table:
        raise TypeError("custom_translation_table: write rules (rules=...) for operators that aton does not know")
    notes = [n for n, given in (("report", report), ("profile", profile)) if given] + (["optimize=False"] if not optimize else [])
    if notes:
        warn([Diagnostic("ignored", "warning", f"{', '.join(notes)}: aton has no such option")], 2)
    if source not in ("auto", "program", "trace"):
        raise ValueError(f"source={source!r}: auto, program or trace")
    if dynamo is not None and source == "auto":
        source = "program" if dynamo else "trace"
    args, kwargs = _arguments(model, args, kwargs)
    flags = _flags(export_params, training, operator_export_type, opset_version, do_constant_folding, keep_initializers_as_inputs, custom_opsets,
                   export_modules_as_functions, external_data, state, target)
    as_trace = _traces(dynamo)
    flags += (["--drop-unused-inputs"] if as_trace else []) + list(options)
    folder = tempfile.TemporaryDirectory(prefix="aton-") if f is None or hasattr(f, "write") else None
    path = os.path.join(folder.name, "model.onnx") if folder else os.fspath(f)  # type: ignore[arg-type]
    with _rules.flags(rules) as rule_flags, _mode(model, training):
        flags += rule_flags
        saved = _Saver(model, args, kwargs, dynamic_axes, dynamic_shapes, input_names, output_names, as_trace)
        program = saved.convert(source, path, flags, folder)
        if dump_exported_program and program.source == "program":
            saved.dump(os.path.join(os.fspath(artifacts_dir), "exported_program.pt2"))
    warn(program.warnings, 2)
    if verbose:
        print(f"# {program!r}")
    if verify:
        _compare(model, args, kwargs, program, None, None)
    if hasattr(f, "write"):
        if program._data_files():
            raise ValueError("the weights are in a file beside the model: give a path, not an open file")
        with open(path, "rb") as written:
            f.write(written.read())  # type: ignore[union-attr]
    return program


def check(model: Any, args: Any = (), *, kwargs: Optional[Mapping[str, Any]] = None, **options: Any) -> List[Diagnostic]:
    """All that cannot be converted, and all warnings; empty if there is nothing to say. The options are those of export."""
    import warnings

    with tempfile.TemporaryDirectory(prefix="aton-") as folder:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return export(model, args, os.path.join(folder, "model.onnx"), kwargs=kwargs, **options).warnings
        except ExportError as e:
            return e.diagnostics


def verify(model: Any, args: Any = (), *, kwargs: Optional[Mapping[str, Any]] = None, rtol: Optional[float] = None, atol: Optional[float] = None,
           program: Optional[ONNXProgram] = None, **options: Any) -> ONNXProgram:
    """Exports a module and compares what onnxruntime gives with what the module gives, on the same inputs.

    Raises VerificationError with all outputs that differ. Tolerances are those of torch.testing.assert_close if they are None.
    """
    args, kwargs = _arguments(model, args, kwargs)
    if program is None:
        program = export(model, args, kwargs=kwargs, **options)
    _compare(model, args, kwargs, program, rtol, atol)
    return program


def convert(path: Path, f: Optional[Path] = None, *, inputs: Union[Sequence[str], Mapping[str, str]] = (), opset_version: Optional[int] = None,
            input_names: Optional[Sequence[str]] = None, output_names: Optional[Sequence[str]] = None, options: Sequence[str] = ()) -> ONNXProgram:
    """Converts a file: an archive of torch.jit.save or torch.export.save, graph text, or an ONNX file.

    inputs are types such as "x:f32[N,3,224,224]", or a dict of them by name; archives of torch.export and ONNX files have their own.
    """
    folder = tempfile.TemporaryDirectory(prefix="aton-") if f is None else None
    target = os.path.join(folder.name, "model.onnx") if folder else os.fspath(f)  # type: ignore[arg-type]
    specs = [f"{k}:{v}" for k, v in inputs.items()] if isinstance(inputs, Mapping) else list(inputs)
    flags = [w for s in specs for w in ("--input", s)] + list(options)
    if opset_version is not None:
        flags += ["--opset", str(opset_version)]
    flags += _names(input_names, output_names)
    with stage("converting"):
        result, warnings = run("export", os.fspath(path), "-o", target, *flags)
    warn(warnings, 2)
    return ONNXProgram(target, "file", result, warnings, folder)


def optimize(path: Path, f: Optional[Path] = None, *, options: Sequence[str] = ()) -> ONNXProgram:
    """Simplifies an ONNX file, at its own opset."""
    return convert(path, f, options=options)


def convert_version(path: Path, opset_version: int, f: Optional[Path] = None, *, options: Sequence[str] = ()) -> ONNXProgram:
    """Writes an ONNX file at another opset, older or newer."""
    return convert(path, f, opset_version=opset_version, options=options)


def _arguments(model: Any, args: Any, kwargs: Optional[Mapping[str, Any]]) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    """The positional and the keyword arguments. A dict at the end of a tuple is keyword arguments, as torch.onnx has it, unless the
    model takes it by its place."""
    if not isinstance(args, tuple):
        args = (args,)
    named = dict(kwargs or {})
    if args and isinstance(args[-1], dict) and not named:
        parameters = _save.parameters(model)
        if set(args[-1]) <= set(parameters[len(args) - 1:]):
            return args[:-1], dict(args[-1])
    return args, named


def _traces(dynamo: Optional[bool]) -> bool:
    """Reports that torch.onnx.export would trace the model: that exporter makes inputs of numbers, and leaves out inputs that are not used."""
    if dynamo is not None:
        return not dynamo
    default = inspect.signature(_patch.original()).parameters.get("dynamo")
    return default is None or not default.default


def _flags(export_params: bool, training: Any, operator_export_type: Any, opset: Optional[int], folding: bool, as_inputs: Optional[bool],
           custom_opsets: Optional[Mapping[str, int]], functions: Union[bool, Collection[Any]], external: Union[bool, str], state: str, target: str) -> List[str]:
    flags = ["--state", state, "--target", target, "--repro", ""]
    if not export_params:
        flags.append("--no-weights")
    if training is not None:
        flags += ["--training", _save.mode_name(training)]
    if operator_export_type is not None:
        flags += ["--operator-export-type", getattr(operator_export_type, "name", str(operator_export_type))]
    if opset is not None:
        flags += ["--opset", str(opset)]
    if not folding:
        flags.append("--no-constant-folding")
    if as_inputs:
        flags.append("--keep-initializers-as-inputs")
    for name, version in (custom_opsets or {}).items():
        flags += ["--custom-opset", f"{name}={version}"]
    if functions:
        names = ["*"] if functions is True else [c if isinstance(c, str) else c.__name__ for c in functions]
        flags += ["--modules-as-functions", ",".join(names)]
    flags += ["--external-data", external if isinstance(external, str) else "auto" if external else "never"]
    return flags


def _names(input_names: Optional[Sequence[str]], output_names: Optional[Sequence[str]]) -> List[str]:
    flags = []
    if input_names:
        flags += ["--input-names", ",".join(input_names)]
    if output_names:
        flags += ["--output-names", ",".join(output_names)]
    return flags


@contextlib.contextmanager
def _mode(model: Any, training: Any) -> Iterator[None]:
    """The module in the mode that it is exported in: eval if nothing is said. Afterwards each part is in its own mode again."""
    if not hasattr(model, "modules") or not hasattr(model, "train"):
        yield
        return
    mode = _save.mode_name(training) if training is not None else "EVAL"
    before = [(m, m.training) for m in model.modules()]
    try:
        if mode != "PRESERVE":
            model.train(mode == "TRAINING")
        yield
    finally:
        for m, was in before:
            m.training = was


class _Saver:
    """A model that is saved, one way or another, and converted."""

    def __init__(self, model: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any], dynamic_axes: Optional[Axes], dynamic_shapes: Any,
                 input_names: Optional[Sequence[str]], output_names: Optional[Sequence[str]], as_trace: bool):
        self.model, self.args, self.kwargs = model, args, kwargs
        self.input_names, self.output_names = list(input_names or ()), list(output_names or ())
        self.dynamic_axes, self.dynamic_shapes = dynamic_axes, dynamic_shapes
        self.as_trace, self.numbers = as_trace, False
        self.exported: Any = None
        #: sizes of axes that are not dynamic, by the name that was given, axis and input; output axes that have no name
        self.sizes: Dict[Tuple[str, int, str], str] = {}
        self.unnamed: Set[Tuple[str, int]] = set()
        self.static: List[Diagnostic] = []

    def ways(self, source: str) -> List[Tuple[str, bool]]:
        """How the model may be saved, the best way first: by what, and whether the numbers among the arguments are inputs."""
        kind = _save.kind(self.model)
        given = (self.args, self.kwargs)
        numbers = self.as_trace and len(leaves(given, numbers=True)) > len(leaves(given))
        if kind != "module":
            sources = [kind]
        elif source != "auto":
            sources = [source]
        else:  # a program has numbers as constants
            sources = ["program", "trace"] if _save.has_programs() and not numbers else ["trace"]
        found = [(s, numbers and s != "program") for s in sources]
        return found + [(s, False) for s, inputs in found if inputs]  # numbers that must be known, such as an axis

    def convert(self, source: str, path: str, flags: List[str], folder: Any) -> ONNXProgram:
        """Converts the model, in the first way that does it."""
        failures: List[Exception] = []
        for s, self.numbers in self.ways(source):
            try:
                result, warnings = self.relaxed(s, path, flags)
            except Exception as e:  # torch.export and torch.jit fail in many ways, and the next source may do
                failures.append(e)
                tried = s
                continue
            if failures:
                first = (str(failures[0]).strip() or type(failures[0]).__name__).splitlines()[0]
                text = f"converted from a {s}: torch.export did not do" if s != tried else "the numbers among the arguments are built in, and no inputs"
                warnings = [*warnings, Diagnostic("source", "warning", f"{text} ({first})")]
            return ONNXProgram(path, s, result, warnings, folder, self.numbers)
        raise failures[-1] from (failures[0] if len(failures) > 1 else None)

    def relaxed(self, source: str, path: str, flags: List[str]) -> Tuple[Dict[str, Any], List[Diagnostic]]:
        """Converts the model. torch.onnx takes it on trust that axes are dynamic when it traces; those that the program has one size for get that
        size, with a warning."""
        while True:
            try:
                result, warnings = self.attempt(source, path, flags)
                return result, [*warnings, *self.static]
            except ExportError as e:
                found = [d for d in map(self.fix, e.diagnostics) if d] if self.as_trace else []
                if not found:
                    raise
                self.static += found

    def fix(self, d: Diagnostic) -> Optional[Diagnostic]:
        """Makes an axis static that an error says to be. Gives the warning, None where there is nothing to make."""
        size = _ONE_SIZE.match(d.message) if d.id == "axis-size" else None
        named = _NO_NAME.fullmatch(d.message)
        if size and (size[1], int(size[3]), size[4]) not in self.sizes:
            self.sizes[size[1], int(size[3]), size[4]] = size[2]
            text = f"axis {size[3]} of input {size[4]} is of size {size[2]} always, and not dynamic"
        elif named and (named[2], int(named[1])) not in self.unnamed:
            self.unnamed.add((named[2], int(named[1])))
            text = f"axis {named[1]} of output {named[2]} is of size {named[3]} always: it has no name"
        else:
            return None
        return Diagnostic("axis-size", "warning", text, d.op, d.file, d.line)

    def attempt(self, source: str, path: str, flags: List[str]) -> Tuple[Dict[str, Any], List[Diagnostic]]:
        """Saves the model to memory where the system can, to a file elsewhere, and converts it."""
        suffix = ".pt2" if source == "program" else ".pt"
        descriptor = memory_file("model" + suffix)
        if descriptor is not None:
            try:
                name = f"/proc/self/fd/{descriptor}"
                with stage(_SAVING[source]):
                    specs = self.save(source, f"/proc/{os.getpid()}/fd/{descriptor}")
                with stage("converting"):
                    return run("export", name, "-o", path, *specs, *self.names(), *flags, pass_fds=[descriptor])
            finally:
                os.close(descriptor)
        with tempfile.TemporaryDirectory(prefix="aton-") as folder:
            name = os.path.join(folder, "model" + suffix)
            with stage(_SAVING[source]):
                specs = self.save(source, name)
            with stage("converting"):
                return run("export", name, "-o", path, *specs, *self.names(), *flags)

    def save(self, source: str, path: str) -> List[str]:
        """Saves the model, and gives the flags that say what its inputs are."""
        if source == "program":
            if _save.kind(self.model) == "program":
                self.exported = self.model
                _save.save_program(self.model, path)
                return []
            self.exported = _save.program(self.model, self.args, self.kwargs, self.shapes())
            _save.save_program(self.exported, path)
            arguments = self.bound()
            return self.specs(arguments) if all(type_is_tensor(v) for v in arguments.values()) else []
        if source == "script":
            _save.save_script(self.model, path)
            return self.specs(self.bound())
        traced, arguments = _save.trace(self.model, self.bound(), self.numbers)
        _save.save_script(traced, path)
        return self.specs(arguments)

    def dump(self, path: str) -> None:
        """Saves the program of torch.export beside the model."""
        _save.save_program(self.exported, path)

    def bound(self) -> Dict[str, Any]:
        """The arguments by their names in forward, in its order."""
        return _save.bind(self.model, self.args, self.kwargs)

    def axes(self, arguments: Mapping[str, Any]) -> Iterator[Mapping[int, str]]:
        """The dynamic axes of each tensor in the arguments."""
        place = 0
        for i, (name, value) in enumerate(arguments.items()):
            if self.dynamic_shapes is not None:
                shapes = self.dynamic_shapes.get(name) if isinstance(self.dynamic_shapes, Mapping) else self.dynamic_shapes[i] if i < len(self.dynamic_shapes) else None
                yield from axes_of_shapes(shapes, value, name)
                continue
            for _ in leaves(value, self.numbers):
                given = self.input_names[place] if place < len(self.input_names) else name
                place += 1
                yield axes_of(self.dynamic_axes, given) or axes_of(self.dynamic_axes, name)

    def specs(self, arguments: Mapping[str, Any]) -> List[str]:
        """The flags --input."""
        axes = self.axes(arguments)
        return [w for name, value in arguments.items() for w in ("--input", f"{name}:{type_of(value, self.known(name, axes), self.numbers)}")]

    def known(self, name: str, axes: Iterator[Mapping[int, str]]) -> Iterator[Mapping[int, str]]:
        """The same without the axes of an argument that are not dynamic."""
        for given in axes:
            yield {k: v for k, v in given.items() if not any(v == s or k == axis and name == of for s, axis, of in self.sizes)}

    def shapes(self) -> Any:
        """What torch.export is told of sizes."""
        if self.dynamic_shapes is not None or not self.dynamic_axes:
            return self.dynamic_shapes
        arguments = self.bound()
        axes = self.axes(arguments)
        return {name: _save.shapes_of(value, axes) for name, value in arguments.items()}

    def names(self) -> List[str]:
        """The flags for names of inputs and outputs, and of the axes of outputs. A size that is an input's has its name from there."""
        flags = _names(self.input_names, self.output_names)
        known = {n for name in self.dynamic_axes or () if name not in self.output_names for n in axes_of(self.dynamic_axes, name).values()}
        for name in self.output_names:
            axes = {k: v for k, v in axes_of(self.dynamic_axes, name).items() if v != "?" and v not in known and (name, k) not in self.unnamed}
            if axes:
                flags += ["--output-axes", f"{name}:" + ",".join(f"{k}={v}" for k, v in sorted(axes.items()))]
        return flags


def type_is_tensor(value: Any) -> bool:
    """Reports a tensor."""
    import torch

    return isinstance(value, torch.Tensor)


def _compare(model: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any], program: ONNXProgram, rtol: Optional[float], atol: Optional[float]) -> None:
    """Raises a VerificationError if onnxruntime gives other numbers than the model."""
    import torch

    with _mode(model, None), torch.no_grad():
        runnable = model.module() if _save.kind(model) == "program" else model
        want = leaves(_save.outputs(runnable(*_save.clones(args), **_save.clones(kwargs))))
    with stage("running in onnxruntime"):
        got = program(*[v for v in _save.bind(model, args, kwargs).values()])
    wrong = [] if len(got) == len(want) else [f"{len(got)} outputs instead of {len(want)}"]
    for name, g, w in zip(program.output_names, got, want):
        try:
            torch.testing.assert_close(g, real(w.detach().cpu()), rtol=rtol, atol=atol, equal_nan=True)
        except AssertionError as e:
            wrong.append(f"output {name}: " + "; ".join(line for line in str(e).splitlines() if line.strip()))
    if wrong:
        raise VerificationError("\n".join(wrong))


__all__ = ["check", "convert", "convert_version", "export", "optimize", "verify"]
