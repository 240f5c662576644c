"""Programs of a model: what goes in, what comes out, which axes are free, and the two archives that PyTorch makes of each."""
import copy
import inspect

import torch

TOLERANCE = 1e-3  # of the greatest element; what PyTorch's own programs must keep too


class Program:
    """A module of tensors to a tuple of tensors.

    samples: lists of inputs, of which the first is the example; outputs: PyTorch's, for each sample; axes: for each input the names of the
    axes that differ between samples; script: the module that TorchScript compiles, whose outputs may be containers; exact: the
    outputs of the same module in double precision, if asked for.
    """

    def __init__(self, name, module, names, samples, axes, output_names, exact=False):
        self.name, self.module, self.names, self.samples, self.axes, self.output_names = name, module, names, samples, axes, output_names
        self.script = module
        with torch.no_grad():
            self.outputs = [listed(module(*clone(s))) for s in samples]
            self.exact = []
            if exact:
                double = copy.deepcopy(module).double()
                self.exact = [listed(double(*[t.double() if t.is_floating_point() else t.clone() for t in s])) for s in samples]


def listed(out):
    """The tensors that a module gives."""
    return [t for t in torch.utils._pytree.tree_leaves(out) if isinstance(t, torch.Tensor)]


def clone(tensors):
    return [t.clone() for t in tensors]


def near(a, b):
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not a.is_floating_point():
        return torch.equal(a, b)
    a, b = a.double(), b.double()
    scale = max(1e-3, b[b.isfinite()].abs().max().item() if b.isfinite().any() else 0)
    return torch.allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE * scale, equal_nan=True)


def free(sizes):
    """The axes in which tensors differ, of lists of samples that differ in one named size each: {name: [first, second]}."""
    out = None
    for name, (first, second) in sizes.items():
        out = out or [{} for _ in first]
        for axes, a, b in zip(out, first, second):
            for i, (m, n) in enumerate(zip(a.shape, b.shape)):
                if m != n:
                    axes[i] = name
    return out


def export(p):
    """(exported program, the axes that it leaves free)."""
    shapes = tuple({i: torch.export.Dim.AUTO for i in axes} for axes in p.axes)
    varied = any(q.kind is q.VAR_POSITIONAL for q in inspect.signature(p.module.forward).parameters.values())
    try:
        program = torch.export.export(p.module, tuple(clone(p.samples[0])), dynamic_shapes=(shapes,) if varied else shapes, strict=False)
    except Exception:
        try:  # a message about fixed sizes is not worth a model: the example's sizes then
            program = torch.export.export(p.module, tuple(clone(p.samples[0])), strict=False)
        except Exception as e:
            raise RuntimeError(f"torch.export: {e}") from e
    users = [s.arg.name for s in program.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
    values = {n.name: n.meta["val"] for n in program.graph.nodes if n.op == "placeholder"}
    axes = [{i: name for i, name in axes.items() if not isinstance(values[u].shape[i], int)} for axes, u in zip(p.axes, users)]
    return program, axes


def holds(run, p, sample):
    """Whether PyTorch's own program gives the model's outputs for a sample."""
    try:
        with torch.no_grad():
            got = listed(run(*clone(p.samples[sample])))
    except Exception:
        return False
    return len(got) == len(p.outputs[sample]) and all(near(a, b) for a, b in zip(got, p.outputs[sample]))
