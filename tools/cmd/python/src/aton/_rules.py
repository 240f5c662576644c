"""Rules for operators of other libraries: files, texts, and functions of onnxscript."""
import contextlib
import os
import re
import tempfile
from typing import Any, Callable, Iterator, List, Sequence, Tuple, Union

_SCHEMA = re.compile(r"([\w.]+)::(\w+)(?:\.\w+)?\((.*)\)\s*->\s*(.+)")

#: the namespaces whose operators aton knows: they are not declared again
_PYTORCH = ("aten", "quantized", "torchvision")


class Rule:
    """An operator of PyTorch that becomes a function of ONNX. It is made by `rule`, and is one of the rules of `aton.export`."""

    def __init__(self, text: str, function: Any):
        #: the rule, in the language of docs/rules.md
        self.text = text
        #: the function of onnxscript
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function, as onnxscript does."""
        return self.function(*args, **kwargs)

    def functions(self) -> List[Any]:
        """The FunctionProto, and those of the functions that it calls."""
        called = self.function.function_ir.get_called_functions()
        return [self.function.to_function_proto(), *(f.to_function_proto() for f in called.values())]


def rule(schema: str, types: Union[str, Sequence[str]]) -> Callable[[Any], Rule]:
    """Makes a function of onnxscript what an operator is converted to. The exported model carries the function.

    schema is the operator as torch.library.define has it. The inputs of the function have the names of its tensors, the attributes those of its
    other arguments; one that is no attribute must be at its default. types has, for each result, its type in the language of rules: "%x" is
    that of the argument x, "f32[...]" one of unknown sizes.

        @aton.rule("mylib::norm(Tensor x, *, float eps=1e-05) -> Tensor", types="%x")
        @onnxscript.script(onnxscript.values.Opset("my.domain", 1))
        def norm(x, eps: float): ...

        aton.export(model, args, "model.onnx", rules=[norm])
    """
    stated = [types] if isinstance(types, str) else list(types)
    tensors, others = _arguments(schema)

    def decorate(function: Any) -> Rule:
        if not hasattr(function, "to_function_proto"):
            raise TypeError("aton.rule goes above @onnxscript.script")
        proto = function.to_function_proto()
        if list(proto.input) != tensors:
            raise ValueError(f"{proto.name} has the inputs {list(proto.input)}, the tensors of {schema} are {tensors}")
        if len(proto.output) != len(stated):
            raise ValueError(f"{proto.name} has {len(proto.output)} results, {len(stated)} types are given")
        attributes = [*proto.attribute, *(a.name for a in proto.attribute_proto)]
        unknown = [a for a in attributes if a not in others]
        if unknown:
            raise ValueError(f"{proto.name} has the attribute {unknown[0]}, and {schema} has no argument of that name")
        results = [f"r{i}" for i in range(len(stated))]
        operands = ", ".join([*("%" + t for t in tensors), *(f"{a}=${a}" for a in attributes)])
        values = ", ".join(f"{a}=${a}" for a in attributes)
        text = "\n".join([
            f"domain {proto.domain} {max(1, getattr(function.opset, 'version', 1))}",
            *([] if schema.strip().partition("::")[0] in _PYTORCH else [f"declare {schema}"]),
            f"rule {proto.name}",
            "  from",
            f"    {', '.join('%' + r for r in results)} = {schema.partition('(')[0].strip()}({operands})",
            "  to",
            f"    {', '.join(f'%{r} : {t}' for r, t in zip(results, stated))} = {proto.domain}::{proto.name}"
            + (f"[{values}]" if values else "") + f"({', '.join('%' + t for t in tensors)})",
            "",
        ])
        return Rule(text, function)

    return decorate


def _arguments(schema: str) -> Tuple[List[str], List[str]]:
    """The names of the tensors, and of the other arguments."""
    found = _SCHEMA.fullmatch(schema.strip())
    if not found:
        raise ValueError(f"{schema!r} is no schema such as mylib::norm(Tensor x, *, float eps=1e-05) -> Tensor")
    tensors: List[str] = []
    others: List[str] = []
    for argument in re.split(r",(?![^\[(]*[\])])", found[3]):  # a default may be a list
        words = argument.split("=")[0].split()
        if len(words) == 2:
            (tensors if words[0].startswith("Tensor") else others).append(words[1])
    return tensors, others


Given = Union[str, "os.PathLike[str]", Rule, Sequence[Union[str, "os.PathLike[str]", Rule]]]


@contextlib.contextmanager
def flags(given: Given) -> Iterator[List[str]]:
    """The flags for rules. A text that has more than a line is no path: it is written to a file."""
    rules = [given] if isinstance(given, (str, os.PathLike, Rule)) else list(given)
    with tempfile.TemporaryDirectory(prefix="aton-") as folder:
        out: List[str] = []
        for i, r in enumerate(rules):
            path = os.path.join(folder, f"{i}.rules")
            if isinstance(r, Rule):
                _write(path, r.text)
                functions = os.path.join(folder, f"{i}.onnx")
                _write_functions(functions, r.functions())
                out += ["--functions", functions]
            elif "\n" in os.fspath(r):
                _write(path, os.fspath(r))
            else:
                path = os.fspath(r)
            out += ["--rules", path]
        yield out


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def _write_functions(path: str, functions: List[Any]) -> None:
    """Writes a model that has the functions, and a graph that does not matter."""
    import onnx
    from onnx import helper

    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in ("x", "y"))
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "functions", [x], [y])
    imports = {o.domain: o.version for f in functions for o in f.opset_import}
    for f in functions:
        imports.setdefault(f.domain, 1)
    imports.setdefault("", 20)
    onnx.save(helper.make_model(graph, functions=functions, opset_imports=[helper.make_opsetid(d, v) for d, v in sorted(imports.items())]), path)
