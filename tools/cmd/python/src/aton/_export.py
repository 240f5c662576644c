"""The functions that users call."""
import contextlib
import dataclasses
import inspect
import os
import re
import tempfile
import time
from typing import Any, BinaryIO, Callable, Collection, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, Union

from . import _patch, _report, _rules, _save, _symbolic
from ._binary import memory_file, run, warn
from ._errors import ArgumentError, Diagnostic, ExportError, VerificationError, failure
from ._inputs import Axes, axes_of, axes_of_shapes, is_dynamic, leaves, parts, paths_of_spec, real, symbol, tensor_type, type_of
from ._program import ONNXProgram
from ._progress import stage

Path = Union[str, "os.PathLike[str]"]

#: what the binary says of axes that are not dynamic
_ONE_SIZE = re.compile(r"(\w+) must be (\d+) \(axis (\d+) of input (.+?)\)")
_NO_NAME = re.compile(r"axis (-?\d+) of output (.+): its size is (\d+) always: .*")

_SAVING = {"program": "saving by torch.export", "trace": "saving by torch.jit.trace", "script": "saving by torch.jit.script"}
_SOURCES = {"auto": "auto", "program": "program", "export": "program", "script": "script", "trace": "trace"}

#: how long the comparison of a trace with the model at other inputs may take, in seconds
CHECKING = 5.0


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
    custom_translation_table: Optional[Mapping[Any, Any]] = None,
    report: bool = False,
    optimize: bool = True,
    verify: bool = False,
    profile: bool = False,
    dump_exported_program: bool = False,
    artifacts_dir: Path = ".",
    fallback: Optional[bool] = None,
    source: str = "auto",
    rules: _rules.Given = (),
    state: str = "drop",
    target: str = "ort",
    options: Sequence[str] = (),
    example_outputs: Any = None,
    aten: bool = False,
    export_raw_ir: bool = False,
    strip_doc_string: Optional[bool] = None,
    _retain_param_name: bool = True,
    enable_onnx_checker: bool = True,
    use_external_data_format: Optional[bool] = None,
) -> ONNXProgram:
    """Converts a model to ONNX. The arguments of torch.onnx.export mean what they mean there.

    Where torch.onnx.export would trace the model (dynamo=False, or a PyTorch whose default that is), the file has the inputs that it has there: numbers
    among the arguments are inputs without axes, and inputs that are not used are left out. What does not exist is an error; what has no effect is a warning.

    Args:
        model: An nn.Module or a function, a ScriptModule, a torch.export.ExportedProgram, or a torch.onnx.ExportableModule, which has its own example.
        args: The inputs of an example call: a tensor or a tuple. A dict at its end is keyword arguments, as for torch.onnx.
        f: A path, an open binary file, or None for a temporary file, which the result holds.
        export_params: False makes the weights inputs of the model, and leaves their data out.
        verbose: True prints the graph with scopes, classes and lines.
        training: The mode of the modules: TrainingMode.EVAL, PRESERVE or TRAINING; False and True are EVAL and TRAINING.
        input_names: Names of the inputs, in order. The first ones will do.
        output_names: Names of the outputs, in order. The first ones will do.
        operator_export_type: What becomes of operators that cannot be converted: a member of torch.onnx.OperatorExportTypes, or its name.
        opset_version: The opset of the file, 7 to 28; 20 if it is None.
        do_constant_folding: False keeps the weights as the state dict has them.
        dynamic_axes: The axes of any size, by names of inputs and outputs: {"x": {0: "batch"}} or {"x": [0]}.
        keep_initializers_as_inputs: True makes the weights inputs too. None is True below opset 9, as in torch.onnx.
        custom_opsets: Versions of custom domains: {"my.domain": 2}.
        export_modules_as_functions: True, or the classes and paths of modules that become functions of the file.
        autograd_inlining: Has no effect: functions of torch.autograd are converted by their symbolic, or by what forward does.
        kwargs: Keyword arguments of the example call.
        dynamo: True is source="program"; False is source="trace" with the inputs that torch.onnx has there.
        external_data: True puts the weights beside the file where it would pass 2 GiB, False never does, "always" always.
        dynamic_shapes: The axes of any size as torch.export takes them. A text is the name of an axis.
        custom_translation_table: Operators (torch.ops.aten.add.Tensor) and the functions of onnxscript that they become.
        report: True writes a report in Markdown into artifacts_dir.
        optimize: False keeps the weights as the state dict has them. What only simplifies is always done.
        verify: True compares the file with the module in onnxruntime, on the same inputs.
        profile: True writes a report that has the time of each pass.
        dump_exported_program: True writes exported_program.pt2 into artifacts_dir.
        artifacts_dir: The folder of these files.
        fallback: False is torch.export or an error; True tries the other ways too, also with dynamo=True.
        source: How the model is saved: "program" by torch.export, "script" by torch.jit.script, "trace" by torch.jit.trace. "auto" tries them in this
            order, and the result's `source` names the one that it was. Where a trace builds in values of the inputs, "auto" is an ExportError that names
            the lines, and "trace" a warning.
        rules: Rules for operators of other libraries: files, their text, or functions of onnxscript (see aton.rule).
        state: What becomes of buffers that the model changes: "drop", "outputs" or "refuse".
        target: Whose kernels decide on element types: "ort", or "onnx" for the standard alone.
        options: More flags of `aton export`.
        example_outputs: Not needed. Another number of tensors than the model gives is an error.
        aten: True is OperatorExportTypes.ONNX_ATEN.
        export_raw_ir: True is OperatorExportTypes.RAW.
        strip_doc_string: False writes the line of the program as the documentation of each node.
        _retain_param_name: False calls the weights learned_0, learned_1 and so on.
        enable_onnx_checker: Has no effect: the file is always checked.
        use_external_data_format: True is external_data="always", False external_data="auto".

    Returns:
        The model in its file, with what an onnx.ModelProto, a call and a comparison need.

    Raises:
        ExportError: All that cannot be converted, each with the line of the model's Python.
        ArgumentError: An argument is wrong. It is a ValueError too.
    """
    if source not in _SOURCES:
        raise ArgumentError("source", f"source={source!r}: auto, program, script or trace")
    source = _SOURCES[source]
    if source == "auto" and dynamo is not None:
        source = ("auto" if fallback else "program") if dynamo else "trace"
    elif source == "auto" and fallback is False:
        source = "program"
    if isinstance(training, bool):
        training = "TRAINING" if training else "EVAL"
    exported_as = _export_type(operator_export_type, aten, export_raw_ir)
    if use_external_data_format is not None:
        external_data = "always" if use_external_data_format else "auto"
    args, kwargs, more = _save.examples(model, args, kwargs)
    input_names, output_names = input_names or more.get("input_names"), output_names or more.get("output_names")
    dynamic_shapes = more.get("dynamic_shapes") if dynamic_shapes is None else dynamic_shapes
    args, kwargs = _arguments(model, args, kwargs)
    flags = _flags(export_params, training, exported_as, opset_version, do_constant_folding and optimize, keep_initializers_as_inputs, custom_opsets,
                   export_modules_as_functions, external_data, state, target)
    flags += (["--doc-strings"] if strip_doc_string is False else []) + ([] if _retain_param_name else ["--param-names", "learned"])
    flags += (["--verbose"] if verbose else []) + (["--timing"] if profile else [])
    as_trace = _traces(dynamo)
    flags += (["--drop-unused-inputs"] if as_trace else []) + list(options)
    folder = tempfile.TemporaryDirectory(prefix="aton-") if f is None or hasattr(f, "write") else None
    path = os.path.join(folder.name, "model.onnx") if folder else os.fspath(f)  # type: ignore[arg-type]
    began = time.time()
    saved = _Saver(model, args, kwargs, dynamic_axes, dynamic_shapes, input_names, output_names, as_trace)
    symbolics = _symbolic.Symbolics(custom_translation_table, opset_version)
    refused: Optional[ExportError] = None
    try:
        with _rules.flags(rules) as rule_flags, _mode(model, training):
            program = saved.convert(source, path, flags + rule_flags, folder, symbolics)
    except ExportError as e:
        refused = e
    if report or profile:
        _report.write(os.fspath(artifacts_dir), model, saved.log, None if refused else program, refused, time.time() - began, profile)
    if refused is not None:
        raise refused from None
    program.exported_program = saved.exported
    if dump_exported_program:
        if saved.exported is None:
            program.warnings.append(Diagnostic("ignored", "warning", f"dump_exported_program: there is none, the model was converted from a {program.source}"))
        else:
            saved.dump(os.path.join(os.fspath(artifacts_dir), "exported_program.pt2"))
    if not enable_onnx_checker:
        program.warnings.append(Diagnostic("ignored", "warning", "enable_onnx_checker=False: the file is always checked"))
    if not autograd_inlining:
        program.warnings.append(Diagnostic("ignored", "warning", "autograd_inlining=False: functions of torch.autograd are converted by their symbolic, or by what forward does"))
    if example_outputs is not None:
        _agree(program, example_outputs)
    warn(program.warnings, 2)
    if verbose:
        print(_with_classes(program.result.get("listing", ""), model), end="")
    if verify:
        _compare(model, args, kwargs, program, None, None)
    if hasattr(f, "write"):
        if program._data_files():
            raise ArgumentError("f", "the weights are in a file beside the model: give a path, not an open file")
        with open(path, "rb") as written:
            f.write(written.read())  # type: ignore[union-attr]
    return program


def check(model: Any, args: Any = (), *, kwargs: Optional[Mapping[str, Any]] = None, **options: Any) -> List[Diagnostic]:
    """Tells all that cannot be converted, and all warnings, without a file.

    Args:
        model: What export takes as its model.
        args: The inputs of an example call.
        kwargs: Keyword arguments of the example call.
        **options: Other arguments of export.

    Returns:
        The diagnostics; none if there is nothing to say.
    """
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

    Args:
        model: What export takes as its model.
        args: The inputs.
        kwargs: Keyword arguments.
        rtol: The relative tolerance; that of torch.testing.assert_close for the type if it is None.
        atol: The absolute tolerance; that of torch.testing.assert_close for the type if it is None.
        program: What an export gave, if it is to be compared; None exports the model.
        **options: Other arguments of export.

    Returns:
        The exported model.

    Raises:
        VerificationError: All outputs that differ.
    """
    args, kwargs = _arguments(model, args, kwargs)
    if program is None:
        program = export(model, args, kwargs=kwargs, **options)
    elif options:
        raise TypeError(f"verify: {', '.join(options)} are for an export, and a program is given")
    _compare(model, args, kwargs, program, rtol, atol)
    return program


def convert(path: Path, f: Optional[Path] = None, *, inputs: Union[Sequence[str], Mapping[str, str]] = (), opset_version: Optional[int] = None,
            input_names: Optional[Sequence[str]] = None, output_names: Optional[Sequence[str]] = None, repair: bool = False, options: Sequence[str] = ()) -> ONNXProgram:
    """Converts a file: an archive of torch.jit.save or torch.export.save, graph text, or an ONNX file.

    Args:
        path: The file.
        f: The ONNX file, or None for a temporary one, which the result holds.
        inputs: Types of the inputs: ["x:f32[N,3,224,224]"], or {"x": "f32[N,3,224,224]"}. Archives of torch.export and ONNX files have their own.
        opset_version: The opset of the file, 7 to 28; 20 if it is None, and its own for an ONNX file.
        input_names: Names of the inputs, in order.
        output_names: Names of the outputs, in order.
        repair: True reads an ONNX file that runtimes load although the standard refuses it (wrong shapes, missing imports, names and types, unsorted nodes), and
            warns of each change.
        options: More flags of `aton export`.

    Returns:
        The model in its file.

    Raises:
        ExportError: All that cannot be converted.
    """
    folder = tempfile.TemporaryDirectory(prefix="aton-") if f is None else None
    target = os.path.join(folder.name, "model.onnx") if folder else os.fspath(f)  # type: ignore[arg-type]
    specs = [f"{k}:{v}" for k, v in inputs.items()] if isinstance(inputs, Mapping) else list(inputs)
    flags = [w for s in specs for w in ("--input", s)] + (["--repair"] if repair else []) + list(options)
    if opset_version is not None:
        flags += ["--opset", str(opset_version)]
    flags += _names(input_names, output_names)
    with stage("converting"):
        result, warnings = run("export", os.fspath(path), "-o", target, *flags, inputs="inputs")
    warn(warnings, 2)
    return ONNXProgram(target, "file", result, warnings, folder)


def optimize(path: Path, f: Optional[Path] = None, *, repair: bool = False, options: Sequence[str] = ()) -> ONNXProgram:
    """Simplifies an ONNX file, at its own opset.

    Args:
        path: The file.
        f: Where the result goes, or None for a temporary file.
        repair: As for convert.
        options: More flags of `aton export`.

    Returns:
        The model in its file.
    """
    return convert(path, f, repair=repair, options=options)


def convert_version(path: Path, opset_version: int, f: Optional[Path] = None, *, repair: bool = False, options: Sequence[str] = ()) -> ONNXProgram:
    """Writes an ONNX file at another opset, older or newer.

    Args:
        path: The file.
        opset_version: The opset, 7 to 28.
        f: Where the result goes, or None for a temporary file.
        repair: As for convert.
        options: More flags of `aton export`.

    Returns:
        The model in its file.

    Raises:
        ExportError: What the opset cannot express.
    """
    return convert(path, f, opset_version=opset_version, repair=repair, options=options)


def _arguments(model: Any, args: Any, kwargs: Optional[Mapping[str, Any]]) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    """The positional and the keyword arguments. A dict at the end of a tuple is keyword arguments, as torch.onnx has it, unless the
    model takes it by its place."""
    if not isinstance(args, tuple):
        args = (args,)
    named = dict(kwargs or {})
    if args and isinstance(args[-1], dict) and not named:
        parameters = _save.parameters(model)
        if set(args[-1]) <= set(parameters[len(args) - 1:]) or not _save.takes(model, args):
            return args[:-1], _in_order(model, dict(args[-1]))
    return args, _in_order(model, named)


def _with_classes(listing: str, model: Any) -> str:
    """The listing with the classes of modules in its scopes, as torch.onnx prints them: package.Net::/torch.nn.modules.linear.Linear::fc."""
    if not hasattr(model, "named_modules"):
        return listing
    classes = {path: f"{type(m).__module__}.{type(m).__qualname__}" for path, m in model.named_modules()}

    def scope(m: "re.Match[str]") -> str:
        parts = m[1].split(".")
        paths = [".".join(parts[:i]) for i in range(len(parts) + 1)]
        return "scope: " + "/".join(f"{classes[p]}::{p}" for p in paths) if all(p in classes for p in paths) else m[0]

    return re.sub(r"(?<=, )scope: (\S+)", scope, listing)


def _in_order(model: Any, kwargs: Dict[str, Any]) -> Dict[str, Any]:
    """Keyword arguments in the order of forward's parameters."""
    if _save.kind(model) != "module":
        return kwargs
    order = list(_save.signature(model).parameters)
    return dict(sorted(kwargs.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order)))


def _traces(dynamo: Optional[bool]) -> bool:
    """Reports that torch.onnx.export would trace the model: that exporter makes inputs of numbers, and leaves out inputs that are not used."""
    if dynamo is not None:
        return not dynamo
    default = inspect.signature(_patch.original()).parameters.get("dynamo")
    return default is None or not default.default


def _export_type(given: Any, aten: bool, raw: bool) -> Optional[str]:
    """The export type by its name; aten and export_raw_ir are the words of PyTorch before 1.10 for two of them."""
    name = None if given is None else str(getattr(given, "name", given))
    for said, stands_for in ((aten, "ONNX_ATEN"), (raw, "RAW")):
        if said:
            if name not in (None, "ONNX", stands_for):
                raise ArgumentError("operator_export_type", f"operator_export_type is {name}, and aten or export_raw_ir makes it {stands_for}")
            name = stands_for
    return name


def _flags(export_params: bool, training: Any, export_type: Optional[str], opset: Optional[int], folding: bool, as_inputs: Optional[bool],
           custom_opsets: Optional[Mapping[str, int]], functions: Union[bool, Collection[Any]], external: Union[bool, str], state: str, target: str) -> List[str]:
    flags = ["--state", state, "--target", target, "--repro", ""]
    if not export_params:
        flags.append("--no-weights")
    if training is not None:
        flags += ["--training", _save.mode_name(training)]
    if export_type is not None:
        flags += ["--operator-export-type", export_type]
    if opset is not None:
        flags += ["--opset", str(opset)]
    if not folding:
        flags.append("--no-constant-folding")
    if as_inputs is None:  # as torch.onnx has it
        as_inputs = export_type not in (None, "ONNX", "RAW") or opset is not None and opset < 9
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
        self.kind = _save.kind(model)
        if self.kind == "program" and not args and not kwargs and model.example_inputs is not None:
            args, kwargs = model.example_inputs
        self.model, self.args, self.kwargs = model, args, kwargs
        self.bound = _save.Bound(model, args, kwargs)
        self.input_names, self.output_names = list(input_names or ()), list(output_names or ())
        self.dynamic_axes, self.dynamic_shapes = dynamic_axes, dynamic_shapes
        self.as_trace, self.numbers = as_trace, False
        #: the lines whose attention drops in eval mode, None before one is found
        self.dropping: Optional[Set[Tuple[str, int]]] = None
        #: aton chose the source, and answers for it
        self.chosen = False
        self.exported: Any = None
        self.traced: Optional[_save.Traced] = None
        self.scripted: Any = None
        #: what PyTorch said of attempts
        self.log: List[str] = []
        #: names of the outputs by their keys
        self.keys: List[str] = []
        #: sizes of axes that are not dynamic, by the name that was given, axis and input; output axes that have no name
        self.sizes: Dict[Tuple[str, int, str], str] = {}
        self.unnamed: Set[Tuple[str, int]] = set()
        self.static: List[Diagnostic] = []
        self.known_names()

    def known_names(self) -> None:
        """Refuses names in dynamic_axes and dynamic_shapes that are neither inputs nor outputs."""
        named = self.bound.named()
        inputs = [*self.input_names, *named]
        for name, value in named.items():
            if not isinstance(value, (int, float, str, type(None))):
                inputs += [f"{name}_{i}" for i in range(len(leaves(value, True)))]
        for name in self.dynamic_axes or ():
            if name not in inputs and name not in self.output_names:
                raise ArgumentError("dynamic_axes", f"dynamic_axes has {name!r}, which is no input; the inputs are {', '.join(self.input_names or named)}"
                                    + (f", the outputs {', '.join(self.output_names)}" if self.output_names else "; output_names names outputs"))
        if isinstance(self.dynamic_shapes, Mapping) and self.kind != "program":
            given = [n for n, _ in self.bound.given()]
            for name in self.dynamic_shapes:
                if name not in given and name not in ("args", "kwargs"):
                    raise ArgumentError("dynamic_shapes", f"dynamic_shapes has {name!r}, which is no input; the inputs are {', '.join(given)}")

    def ways(self, source: str) -> List[Tuple[str, bool]]:
        """How the model may be saved, the best way first: by what, and whether the numbers among the arguments are inputs."""
        given = (self.args, self.kwargs)
        numbers = self.as_trace and len(leaves(given, numbers=True)) > len(leaves(given))
        if self.kind != "module":
            sources = [self.kind]
        elif source != "auto":
            sources = [source]
        else:  # a program has numbers as constants
            sources = ["program"] * (_save.has_programs() and not numbers) + ["script", "trace"]
        found = [(s, numbers and s != "program") for s in sources]
        return found + [(s, False) for s, inputs in found if inputs]  # numbers that must be known, such as an axis

    def convert(self, source: str, path: str, flags: List[str], folder: Any, symbolics: _symbolic.Symbolics) -> ONNXProgram:
        """Converts the model, in the first way that does it."""
        failures: List[Tuple[str, bool, Exception]] = []
        self.chosen = source == "auto" and self.kind == "module"
        self.symbolics = symbolics
        symbolics.dynamic = bool(self.dynamic_axes or self.dynamic_shapes)
        for s, self.numbers in self.ways(source):
            self.sizes, self.unnamed, self.static, self.traced, self.keys = {}, set(), [], None, []
            self.exported = None
            try:
                result, warnings = self.relaxed(s, path, flags)
                warnings += self.judged(s)
            except (KeyboardInterrupt, SystemExit, ArgumentError):
                raise
            except Exception as e:  # torch.export and torch.jit fail in many ways, and the next source may do
                failures.append((s, self.numbers, e))
                self.log.append(f"{_SAVING[s]}: {type(e).__name__}: {e}")
                continue
            if failures:
                tried, numbers, first = failures[0]
                text = f"converted from a {s}: {_TOOLS[tried]} did not do" if s != tried else "the numbers among the arguments are built in, and no inputs"
                warnings = [*warnings, Diagnostic("source", "warning", f"{text} ({_first_line(first)})")]
            program = ONNXProgram(path, s, result, warnings, folder, self.numbers)
            program._order = self.bound.order()
            return program
        raise self.refusal(failures) from None

    def refusal(self, failures: List[Tuple[str, bool, Exception]]) -> ExportError:
        """One error for all attempts. Where torch.export has saved the model, what the conversion of that says is what matters."""
        converted = [e for s, _, e in failures if isinstance(e, ExportError) and not e.baked]
        first = failures[0][2]
        if isinstance(first, ExportError) and not first.baked:
            found = list(first.diagnostics)
        else:
            found = [d for e in converted for d in e.diagnostics]
            found += [d for _, _, e in failures if isinstance(e, ExportError) and e.baked for d in e.diagnostics]
            found += [failure(_TOOLS[s], e) for s, _, e in failures if not isinstance(e, ExportError)]
        error = ExportError(list(dict.fromkeys(found)))
        error.log = "\n".join(self.log)
        return error

    def judged(self, source: str) -> List[Diagnostic]:
        """Compares what was saved with the model at other inputs. What a trace has built in is a warning where the caller asked for a trace, and an error
        where aton chose it."""
        if source == "script" and self.kind == "module":
            differs = self.differs(lambda args, kwargs: self.scripted(*args, **kwargs))
            if differs:
                raise RuntimeError(f"the script gives other results than the model {differs}: Python means something else there")
        if source != "trace" or self.traced is None:
            return []
        traced = self.traced
        level = "error" if self.chosen else "warning"
        dynamic = self.dynamic_inputs()
        found = [_baked(r.file, r.line, r.what, "values that change", level) for r in traced.readings if r.data]
        sized = [r for r in traced.readings if not r.data and any(name in dynamic and (axis < 0 or axis in dynamic[name]) for name, axis in r.sizes)]
        found += [Diagnostic("trace-warning", "warning", text.split(". ")[0], file=file, line=line) for file, line, text in traced.warnings]
        differs = None if any(d.level == "error" for d in found) else self.differs(lambda args, kwargs: traced.module(*self.flat(args, kwargs)))
        # a branch on a size may go the other way at sizes that are not tried
        strict = [r for r in sized if r.what == "a truth value"] if self.chosen and not differs else sized
        found += [_baked(r.file, r.line, r.what, "sizes that change", level if differs or r in strict else "warning") for r in sized]
        if differs and not any(d.id == "trace-value" for d in found):
            found.append(Diagnostic("trace-value", level, f"the trace gives other results than the model {differs}", hint=_INSTEAD if self.chosen else ""))
        if any(d.level == "error" for d in found):
            raise ExportError([d for d in found if d.level == "error"], baked=True)
        return found + [_lost(c) for c in traced.lost]

    def dynamic_inputs(self) -> Dict[str, Dict[int, str]]:
        """The dynamic axes of the inputs of the trace, by their names there."""
        if self.traced is None:
            return {}
        axes = (self.known_axes(name, given) for name, given in zip(self.traced.inputs, self.axes()))
        return {name: dict(a) for name, a in zip(self.traced.inputs, axes) if a}

    def flat(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> List[Any]:
        """The arguments as the inputs of a trace."""
        values = _save.Bound(self.model, args, kwargs).named().values()
        return [t for v in leaves(list(values), self.numbers) for t in parts(v).values()]

    def differs(self, run_saved: Callable[[Any, Any], Any]) -> Optional[str]:
        """Tells at which other inputs what was saved gives other results than the model, None where it does not. It takes as long as is cheap."""
        import torch

        def results(function: Callable[[Any, Any], Any], call: Tuple[Any, Any]) -> List[Any]:
            torch.manual_seed(0)
            out = leaves(function(*_save.clones(call)), numbers=True)
            return [real(t.dequantize() if t.is_quantized else t).clone() if isinstance(t, torch.Tensor) else torch.tensor(t) for t in out]

        def same(a: List[Any], b: List[Any]) -> bool:
            try:
                torch.testing.assert_close(a, b, equal_nan=True, rtol=1e-3, atol=1e-4, check_device=False, check_stride=False)
            except AssertionError:
                return False
            return True

        if any(isinstance(t, torch.Tensor) and t.is_quantized for t in leaves((self.args, self.kwargs))):
            return None
        began = time.monotonic()
        for text, call in self.others():
            if time.monotonic() - began > CHECKING:
                return None
            with _save.quiet([]), _save.kept(self.model), torch.random.fork_rng(devices=[]), _save.attention_in_eval(self.dropping):
                try:
                    want = results(lambda a, k: self.model(*a, **k), call)
                    if time.monotonic() - began > CHECKING / 3:
                        return None
                    again = results(lambda a, k: self.model(*a, **k), call)
                except Exception:  # no input that the model takes
                    continue
                if not same(want, again):
                    return None  # it is random
                try:
                    got = results(run_saved, call)
                except Exception:
                    return text
                if any(t.is_quantized for t in leaves(want)) or not same(got, want):
                    return text
        return None

    def others(self) -> Iterator[Tuple[str, Tuple[Any, Any]]]:
        """Other inputs of the same kind: other values, and other sizes of dynamic axes."""
        import torch

        def values(t: Any) -> Any:
            return t.flip(tuple(range(t.dim()))) if isinstance(t, torch.Tensor) else t

        def larger(t: Any) -> Any:
            return t * 2 + 1 if isinstance(t, torch.Tensor) and t.is_floating_point() else t * 2 + 1 if type(t) is float else values(t)

        yield "for other values of the inputs", self.bound.replaced(values, self.numbers)
        yield "for other values of the inputs", self.bound.replaced(larger, self.numbers)
        names = [name for name, value in self.bound.named().items() for _ in leaves(value, self.numbers)]
        axes = [self.known_axes(name, a) for name, a in zip(names, self.axes())]
        if not any(axes):
            return
        for change in (lambda n: n + 1, lambda n: n * 2, lambda n: 1):
            left = iter(axes)

            def sized(t: Any) -> Any:
                for axis in next(left):
                    if isinstance(t, torch.Tensor) and -t.dim() <= axis < t.dim() and t.shape[axis]:
                        n = t.shape[axis]
                        t = t.index_select(axis, torch.arange(change(n), device=t.device) % n)
                return t

            yield "for other sizes of dynamic axes", self.bound.replaced(sized, self.numbers)

    def relaxed(self, source: str, path: str, flags: List[str]) -> Tuple[Dict[str, Any], List[Diagnostic]]:
        """Converts the model. Axes are taken on trust to be dynamic; those that the program has one size for get that size, with a warning."""
        while True:
            try:
                result, warnings = self.attempt(source, path, flags)
                places = sorted(self.dropping or ())
                self.static = [dataclasses.replace(d, file=places[0][0], line=places[0][1]) if d.id == "attention-dropout" and places else d for d in self.static]
                return result, [*warnings, *self.static]
            except ExportError as e:
                found = [d for d in map(self.fix, e.diagnostics) if d]
                if not found:
                    raise
                self.static += found

    def fix(self, d: Diagnostic) -> Optional[Diagnostic]:
        """Makes an axis static that an error says to be. Gives the warning, None where there is nothing to make."""
        if d.op == "aten::scaled_dot_product_attention" and "dropout" in d.message and self.dropping is None and self.kind == "module" and not getattr(self.model, "training", False):
            self.dropping, self.exported, self.traced = set(), None, None
            return Diagnostic("attention-dropout", "warning", "scaled_dot_product_attention drops in eval mode too where dropout_p is given; the file drops nothing", d.op, d.file, d.line,
                              "give dropout_p=self.p if self.training else 0.0")
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
        with tempfile.TemporaryDirectory(prefix="aton-") as folder:
            name = os.path.join(folder, "model" + suffix) if descriptor is None else f"/proc/self/fd/{descriptor}"
            try:
                with stage(_SAVING[source]), _save.attention_in_eval(self.dropping):
                    specs = self.save(source, name if descriptor is None else f"/proc/{os.getpid()}/fd/{descriptor}")
                with self.symbolics.flags() as rules, stage("converting"):
                    return run("export", name, "-o", path, *specs, *self.names(), *flags, *rules, pass_fds=[] if descriptor is None else [descriptor], log=self.log)
            finally:
                if descriptor is not None:
                    os.close(descriptor)

    def save(self, source: str, path: str) -> List[str]:
        """Saves the model, and gives the flags that say what its inputs are."""
        if source == "program":
            return self.save_program(path)
        if source == "script":
            self.scripted = self.model if self.kind == "script" else self.scripted or _save.script(self.model, self.log)
            self.symbolics.of_trace(self.scripted)
            _save.save_script(self.scripted, path)
            return self.specs(self.bound.named())
        if self.traced is None:
            self.traced = _save.trace(self.model, self.bound, self.numbers, self.log)
            self.symbolics.of_trace(self.traced.module)
        if self.chosen or self.numbers:  # no need to convert what is wrong
            found = [_baked(r.file, r.line, r.what, "values that change", "error") for r in self.traced.readings if r.data]
            if found:
                raise ExportError(found, baked=True)
        self.keys = self.traced.names
        _save.save_script(self.traced.module, path)
        return self.specs(self.traced.inputs)

    def save_program(self, path: str) -> List[str]:
        """Saves the program of torch.export, and gives the flags that name its axes."""
        if self.kind == "program":
            self.exported = self.model
            self.symbolics.of_program(self.exported)
            _save.save_program(self.exported, path)
            self.keys = self.keys_of_program()
            return self.specs_of_program() if self.dynamic_axes or self.dynamic_shapes else []
        if self.exported is None:
            ones = self.ones()
            if ones:
                with contextlib.suppress(Exception):  # a model that wants them to be 1
                    self.exported = self.program(ones)
            if self.exported is None:
                self.exported = self.program((self.args, self.kwargs))
            self.symbolics.of_program(self.exported)
        self.keys = self.keys_of_program()
        _save.save_program(self.exported, path)
        return self.specs_of_program()

    def program(self, call: Tuple[Any, Any]) -> Any:
        """The program of torch.export. Where it says that sizes cannot be what they were said to be, it is asked to find out what they are."""
        try:
            return _save.program(self.model, call[0], call[1], self.shapes(False), self.log)
        except Exception as e:
            if self.dynamic_shapes is None and not self.dynamic_axes:
                raise
            try:
                return _save.program(self.model, call[0], call[1], self.shapes(True), self.log)
            except Exception:
                raise e from None

    def ones(self) -> Optional[Tuple[Any, Any]]:
        """The call with 2 for each dynamic axis that is 1 in the example, which torch.export takes for a constant; None if there is none."""
        import torch

        found = False
        left = self.axes(False)

        def doubled(t: Any) -> Any:
            nonlocal found
            for axis in next(left):
                if -t.dim() <= axis < t.dim() and t.shape[axis] == 1:
                    found, t = True, torch.cat([t, t], axis)
            return t

        call = self.bound.replaced(doubled)
        return call if found else None

    def dynamic_sizes(self) -> Iterator[Tuple[str, int, Any, str]]:
        """The axes of the program's inputs that were said to be dynamic: input, axis, size in the program, and name."""
        for name, sizes, given in self.program_inputs():
            for axis, text in given.items():
                axis = axis + len(sizes) if axis < 0 else axis
                if axis >= len(sizes):
                    raise ArgumentError("dynamic_axes", f"there is no axis {axis} in {name}, which has {len(sizes)} dimensions")
                yield name, axis, sizes[axis], text

    def program_inputs(self) -> List[Tuple[str, Sequence[Any], Dict[int, str]]]:
        """The tensors among the program's inputs, with their sizes and the axes that were said to be dynamic."""
        nodes = {n.name: n for n in self.exported.graph.nodes if n.op == "placeholder"}
        values = [t for v in self.bound.named().values() for t in leaves(v, True)]
        user = [s.arg for s in self.exported.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
        user = [a for a in user if hasattr(a, "name") and (not hasattr(a, "value") or isinstance(a.value, (bool, int, float)))]
        if len(user) != len(values):
            return []
        return [(arg.name, getattr(nodes[arg.name].meta.get("val"), "shape", value.shape), self.known_axes(arg.name, given))
                for arg, value, given in zip(user, values, self.axes(True)) if not hasattr(arg, "value") and hasattr(value, "shape")]

    def keys_of_program(self) -> List[str]:
        """The names of the program's outputs by their keys."""
        spec = self.exported.call_spec.out_spec
        outputs = self.exported.graph_signature.user_outputs
        keys = paths_of_spec(spec) if spec is not None else []
        return [k for k, o in zip(keys, outputs) if o is not None] if len(keys) == len(outputs) else []

    def specs_of_program(self) -> List[str]:
        """The flags --input of a program: its inputs have the axes that it found, with the names that were given."""
        names: Dict[Any, str] = {}  # of the program's symbols
        self.static = [d for d in self.static if d.id not in ("axis-narrowed", "lost-output")]
        for spec in self.exported.graph_signature.output_specs:
            value = getattr(spec.arg, "value", None)
            if not isinstance(value, (type(None), bool, int, float)):
                self.static.append(_lost(type(value).__name__))
        for name, axis, size, text in self.dynamic_sizes():
            known = self.fixed(size)
            if known is not None:
                self.static.append(Diagnostic("axis-narrowed", "warning", f"axis {axis} of input {self.shown(name)} is of size {known} always, and not dynamic: the program has that size"))
                continue
            expression = size.node.expr
            first = names.get(expression, "?")
            if first == "?":
                names[expression] = text
                self.narrowed(name, axis, expression)
            elif text not in ("?", first):
                self.static.append(Diagnostic("axis-narrowed", "warning", f"axis {axis} of input {self.shown(name)} has the name {first}, and not {text}: the program makes the two the same size"))
        flags: List[str] = []
        types = {n.name: n.meta.get("val") for n in self.exported.graph.nodes if n.op == "placeholder"}
        for name, sizes, _ in self.program_inputs():
            axes = {i: _spelled(s.node.expr, names) for i, s in enumerate(sizes) if self.fixed(s) is None}
            if axes:
                flags += ["--input", f"{name}:{tensor_type(types[name], {**{i: str(self.fixed(s)) for i, s in enumerate(sizes) if i not in axes}, **axes})}"]
        return flags

    def shown(self, name: str) -> str:
        """What the user calls an input of the program."""
        names = [n for n, _, _ in self.program_inputs()]
        place = names.index(name) if name in names else len(names)
        return self.input_names[place] if place < len(self.input_names) else name

    def fixed(self, size: Any) -> Optional[int]:
        """A size that the program knows, None for another one."""
        if isinstance(size, int):
            return size
        expression = size.node.expr
        if getattr(expression, "is_number", False):
            return int(expression)
        found = self.exported.range_constraints.get(expression)
        return int(found.lower) if found is not None and found.lower == found.upper else None

    def narrowed(self, name: str, axis: int, expression: Any) -> None:
        """Tells the sizes that the program leaves for an axis; what is computed of other axes follows from theirs."""
        found = self.exported.range_constraints.get(expression)
        if found is None or not expression.is_symbol:
            return
        asked = self.asked.get((name, axis), (0, None))
        low, high = int(found.lower), None if "oo" in str(found.upper) else int(found.upper)
        if low > max(2, asked[0]) or high is not None and high < 2 ** 31 and (asked[1] is None or high < asked[1]):
            text = f"{low} or more" if high is None or high >= 2 ** 31 else f"from {low} to {high}"
            self.static.append(Diagnostic("axis-narrowed", "warning", f"axis {axis} of input {self.shown(name)} is {text}: the program takes no other sizes"))

    def dump(self, path: str) -> None:
        """Saves the program of torch.export beside the model."""
        _save.save_program(self.exported, path)

    @property
    def asked(self) -> Dict[Tuple[str, int], Tuple[int, Optional[int]]]:
        """The least and the greatest size that a Dim in dynamic_shapes has, by input and axis."""
        out: Dict[Tuple[str, int], Tuple[int, Optional[int]]] = {}
        for (name, value), shapes in zip(self.bound.given(), self.shapes_given()):
            if hasattr(value, "shape") and shapes:
                for axis, dim in shapes.items() if isinstance(shapes, Mapping) else enumerate(shapes):
                    low, high = getattr(dim, "min", 0), getattr(dim, "max", None)
                    out[name, int(axis)] = (low if isinstance(low, int) else 0, high if isinstance(high, int) else None)
        return out

    def shapes_given(self) -> List[Any]:
        """dynamic_shapes by the arguments, in their order."""
        shapes, given = self.dynamic_shapes, self.bound.given()
        if isinstance(shapes, Mapping):
            return [shapes.get(name) for name, _ in given]
        return [*(shapes or ()), *[None] * len(given)][:len(given)]

    def axes(self, numbers: Optional[bool] = None) -> Iterator[Mapping[int, str]]:
        """The dynamic axes of each tensor in the arguments, and none for each number, if numbers are asked for. By default they are if they are inputs."""
        numbers = self.numbers if numbers is None else numbers
        if self.dynamic_shapes is not None:
            for (name, value), shapes in zip(self.bound.given(), self.shapes_given()):
                yield from _axes_each(shapes, value, name, numbers)
            return
        place = 0
        for name, value in self.bound.named().items():
            for i, leaf in enumerate(leaves(value, numbers)):
                if not hasattr(leaf, "shape") and not self.numbers:  # a constant of the program
                    yield {}
                    continue
                for end in parts(leaf):
                    names = [self.input_names[place] if place < len(self.input_names) else name, name + end, f"{name}_{i}{end}"]
                    place += 1
                    yield next((a for a in (axes_of(self.dynamic_axes, n) for n in names) if a), {})

    def specs(self, arguments: Mapping[str, Any]) -> List[str]:
        """The flags --input."""
        axes = self.axes()
        flags: List[str] = []
        for name, value in arguments.items():
            known = (self.known_axes(name, a) for a in axes)
            flags += ["--input", f"{name}:{type_of(value, known, self.numbers)}"]
        return flags

    def known_axes(self, name: str, given: Mapping[int, str]) -> Dict[int, str]:
        """The axes of an argument without those that are not dynamic."""
        return {k: v for k, v in given.items() if not any(v == s and s != "?" or k == axis and name == of for s, axis, of in self.sizes)}

    def shapes(self, narrow: bool) -> Any:
        """What torch.export is told of sizes. Axes that have a name in common are one size. To narrow is to let it find which axes have a single size, and
        which are the same."""
        import torch

        hint = getattr(torch.export.Dim, "AUTO", None)
        names = [n for axes in self.axes(False) for n in axes.values()]
        dims: Dict[str, Any] = {}

        def dim(name: str) -> Any:
            if hint is not None and (narrow or name == "?" or names.count(name) < 2):
                return hint
            return dims.setdefault(name, torch.export.Dim(name))

        def each(given: Any) -> Any:
            if isinstance(given, Mapping):
                return {k: each(v) for k, v in given.items()}
            if isinstance(given, (list, tuple)):
                return type(given)(each(v) for v in given)
            if isinstance(given, str):
                return dim(symbol(given))
            return hint if narrow and hint is not None and is_dynamic(given) else given

        if self.dynamic_shapes is not None:
            return each(self.dynamic_shapes)
        if not self.dynamic_axes:
            return None
        axes = self.axes(False)
        return {name: _save.shapes_of(value, axes, dim) for name, value in self.bound.given()}

    def names(self) -> List[str]:
        """The flags for names of inputs and outputs, and of the axes of outputs. A size that is an input's has its name from there."""
        flags = _names(self.input_names, [*self.output_names, *self.key_names()])
        known = {n for name in self.dynamic_axes or () if name not in self.output_names for n in axes_of(self.dynamic_axes, name).values()}
        for name in self.output_names:
            axes = {k: v for k, v in axes_of(self.dynamic_axes, name).items() if v != "?" and v not in known and (name, k) not in self.unnamed}
            if axes:
                flags += ["--output-axes", f"{name}:" + ",".join(f"{k}={v}" for k, v in sorted(axes.items()))]
        return flags

    def key_names(self) -> List[str]:
        """The names by keys of the outputs that output_names does not name, for outputs that all have one."""
        keys = self.keys[len(self.output_names):]
        if not all(keys):
            return []
        taken = {*self.input_names, *self.output_names, *self.bound.named()}
        if hasattr(self.model, "state_dict"):
            taken |= set(self.model.state_dict() if self.kind != "program" else self.model.state_dict)
        out: List[str] = []
        for key in keys:
            while key in taken:
                key += "_out"
            taken.add(key)
            out.append(key)
        return out


_TOOLS = {"program": "torch.export", "script": "torch.jit.script", "trace": "torch.jit.trace"}
_INSTEAD = ("write what depends on the data with torch.where or torch.cond, or so that torch.jit.script compiles it; source='trace' keeps what the example gives")


def _baked(file: str, line: int, what: str, of: str, level: str) -> Diagnostic:
    """What is said of a value that a trace builds in."""
    return Diagnostic("trace-value", level, f"Python makes {what} of {of} from input to input here, and the trace keeps that of the example", file=file, line=line,
                      hint=_INSTEAD if level == "error" else "")


def _spelled(expression: Any, names: Mapping[Any, str]) -> str:
    """A size of a program in the names of its axes, "?" where it has none: an axis without a name is in it, or it is no sum of products."""
    import sympy

    text, free = names.get(expression, "?"), expression.free_symbols
    if text == "?" and all(names.get(s, "?") != "?" for s in free) and expression.is_polynomial(*free):
        text = str(expression.xreplace({s: sympy.Symbol(names[s]) for s in free}))
    return "?" if "**" in text else text


def _lost(name: str) -> Diagnostic:
    """What is said of an output that is no tensor and no number."""
    return Diagnostic("lost-output", "warning", f"an output is a {name}, which no file holds: it is left out")


def _first_line(e: Exception) -> str:
    return (str(e).strip() or type(e).__name__).splitlines()[0]


def _axes_each(shapes: Any, value: Any, name: str, numbers: bool) -> Iterator[Mapping[int, str]]:
    """The dynamic axes of each tensor, and none for each number."""
    axes = axes_of_shapes(shapes, value, name)
    for leaf in leaves(value, True):
        if hasattr(leaf, "shape"):
            yield next(axes)
        elif numbers:
            yield {}


def _agree(program: ONNXProgram, example_outputs: Any) -> None:
    """Refuses example outputs that the file does not give."""
    wanted = [o for o in leaves(example_outputs) if hasattr(o, "shape")]
    if len(wanted) != len(program.output_names):
        raise ArgumentError("example_outputs", f"example_outputs has {len(wanted)} tensors, the model gives {len(program.output_names)}: {', '.join(program.output_names)}")


def _compare(model: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any], program: ONNXProgram, rtol: Optional[float], atol: Optional[float]) -> None:
    """Raises a VerificationError if onnxruntime gives other numbers than the model."""
    import torch

    with _mode(model, None), torch.no_grad(), _save.kept(model):
        runnable = model.module() if _save.kind(model) == "program" else model
        want = leaves(runnable(*_save.clones(args), **_save.clones(kwargs)), numbers=True)
        want = [w if isinstance(w, torch.Tensor) else torch.tensor(w) for w in want]
    with stage("running in onnxruntime"):
        got = program(*args, **kwargs)
    wrong = [] if len(got) == len(want) else [f"{len(got)} outputs instead of {len(want)}"]
    for name, g, w in zip(program.output_names, got, want):
        try:
            torch.testing.assert_close(g, real(w.detach().cpu()), rtol=rtol, atol=atol, equal_nan=True)
        except AssertionError as e:
            wrong.append(f"output {name}: " + "; ".join(line for line in str(e).splitlines() if line.strip()))
    if wrong:
        raise VerificationError("\n".join(wrong))


__all__ = ["check", "convert", "convert_version", "export", "optimize", "verify"]
