#!/usr/bin/env python3
"""Every quantization that PyTorch has on a CPU, exported and compared: torchao's quantize_, PT2E, FX.

Each configuration is applied to small modules of random weights, saved by torch.export.save (and torch.jit where that can
be), converted by aton, and run in onnxruntime beside PyTorch. A row of the table has the greatest difference relative to the
greatest output, and the size of the file beside that of the quantized weights as they must be stored.

    python3 torchao_table.py --aton bin/aton --out DIR [--filter RE] [--opset 21] [--write results.tsv]
    python3 torchao_table.py --cases DIR        the small cases of testdata/quantized.tar.gz: make quantized

The size of the quantized weights is that of their integers in the number of bits of the configuration, of the scales, of zero
points that are not all 0, and of the parameters that are not quantized.
"""
import argparse
import itertools
import json
import os
import re
import sys
import warnings
import zipfile

warnings.filterwarnings("ignore")
import logging

logging.disable(logging.CRITICAL)
import numpy
import torch
from torch import nn
from torchao.quantization import (
    Float8DynamicActivationFloat8WeightConfig, Float8DynamicActivationInt4WeightConfig, Float8WeightOnlyConfig, Int4WeightOnlyConfig,
    Int8DynamicActivationInt8WeightConfig, Int8DynamicActivationIntxWeightConfig, Int8StaticActivationInt8WeightConfig,
    Int8WeightOnlyConfig, IntxWeightOnlyConfig, MappingType, PerAxis, PerGroup, PerRow, PerTensor, quantize_)
from torchao.utils import TorchAOBaseTensor

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../judge/python"))
import casefile
import judge

WIDTH = 640


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


class Layer(nn.Module):
    """A decoder layer: attention with a causal mask, a gated product, normalization."""

    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.gate, self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, _ = x.shape
        h = self.n1(x)
        q, k, v = (p(h).view(b, t, 4, WIDTH // 4).transpose(1, 2) for p in (self.q, self.k, self.v))
        a = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(a.transpose(1, 2).reshape(b, t, WIDTH))
        h = self.n2(x)
        return x + self.down(nn.functional.silu(self.gate(h)) * self.up(h))


class Tied(nn.Module):
    """An embedding whose weight is also that of the last layer."""

    def __init__(self):
        super().__init__()
        self.embed, self.mid, self.head = nn.Embedding(512, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 512, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        return self.head(torch.tanh(self.mid(self.embed(ids))))


MODELS = {
    "mlp": (MLP, lambda d: (torch.randn(3, WIDTH, dtype=d),)),
    "layer": (Layer, lambda d: (torch.randn(2, 7, WIDTH, dtype=d),)),
    "tied": (Tied, lambda d: (torch.randint(0, 512, (2, 5)),)),
}


def static_int8(mapping=MappingType.SYMMETRIC):
    zero = None if mapping == MappingType.SYMMETRIC else torch.tensor([[3]], dtype=torch.int8)
    return Int8StaticActivationInt8WeightConfig(act_quant_scale=torch.tensor([[0.03]]), act_quant_zero_point=zero, act_mapping_type=mapping, granularity=PerTensor())


ASYMMETRIC, NO_CLIPPING = MappingType.ASYMMETRIC, MappingType.SYMMETRIC_NO_CLIPPING_ERR
CONFIGS = {
    "int8 weight, row": lambda: Int8WeightOnlyConfig(),
    "int8 weight, tensor": lambda: Int8WeightOnlyConfig(granularity=PerTensor()),
    "int8 weight, group 32": lambda: Int8WeightOnlyConfig(granularity=PerGroup(32)),
    "int8 dynamic, int8 weight": lambda: Int8DynamicActivationInt8WeightConfig(),
    "int8 dynamic asymmetric, int8 weight": lambda: Int8DynamicActivationInt8WeightConfig(act_mapping_type=ASYMMETRIC),
    "int8 dynamic, int8 weight, tensor": lambda: Int8DynamicActivationInt8WeightConfig(granularity=PerTensor()),
    "int8 dynamic, int8 weight, reduced range": lambda: Int8DynamicActivationInt8WeightConfig(reduce_range=True),
    "int8 static, int8 weight": static_int8,
    "int8 static asymmetric, int8 weight": lambda: static_int8(ASYMMETRIC),
    **{f"intx: int{b} weight, {g}": (lambda b=b, p=p: IntxWeightOnlyConfig(weight_dtype=getattr(torch, f"int{b}"), granularity=p))
       for b in range(1, 9) for g, p in (("row", PerAxis(0)), ("group 32", PerGroup(32)))},
    **{f"intx: int{b} weight, group 32, zero points": (lambda b=b: IntxWeightOnlyConfig(weight_dtype=getattr(torch, f"int{b}"), granularity=PerGroup(32), mapping_type=ASYMMETRIC))
       for b in (2, 4, 8)},
    "intx: int4 weight, group 32, no clipping": lambda: IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32), mapping_type=NO_CLIPPING),
    "intx: int4 weight, group 128": lambda: IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(128)),
    "intx: int4 weight, group 32, bfloat16 scales": lambda: IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32), scale_dtype=torch.bfloat16),
    **{f"int8 dynamic, int{b} weight, {g}": (lambda b=b, p=p: Int8DynamicActivationIntxWeightConfig(weight_dtype=getattr(torch, f"int{b}"), weight_granularity=p))
       for b in (2, 4, 8) for g, p in (("row", PerAxis(0)), ("group 32", PerGroup(32)))},
    "int8 dynamic, int4 weight, zero points": lambda: Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=PerGroup(32), weight_mapping_type=ASYMMETRIC),
    "float8 weight, row": lambda: Float8WeightOnlyConfig(),
    "float8 weight, tensor": lambda: Float8WeightOnlyConfig(granularity=PerTensor()),
    "float8 weight, group 32": lambda: Float8WeightOnlyConfig(granularity=PerGroup(32)),
    "float8 e5m2 weight, row": lambda: Float8WeightOnlyConfig(weight_dtype=torch.float8_e5m2),
    "float8 dynamic, float8 weight": lambda: Float8DynamicActivationFloat8WeightConfig(),
    "float8 dynamic, int4 weight": lambda: Float8DynamicActivationInt4WeightConfig(int4_packing_format="plain"),
    "int4 weight, plain": lambda: Int4WeightOnlyConfig(group_size=32),
    "int4 weight, plain int32": lambda: Int4WeightOnlyConfig(group_size=32, int4_packing_format="plain_int32"),
    "int4 weight, tiles": lambda: Int4WeightOnlyConfig(group_size=32, int4_packing_format="tile_packed_to_4d"),
}


def prototypes():
    """Configurations of torchao.prototype, each where it can be imported."""
    def opaque_int4():
        from torchao.prototype.quantization.int4.inference_workflow import PrototypeInt4WeightOnlyConfig
        return PrototypeInt4WeightOnlyConfig(group_size=32)

    def uintx():
        from torchao.prototype.quantization.quant_api import UIntxWeightOnlyConfig
        return UIntxWeightOnlyConfig(group_size=32)
    return {"prototype: int4 weight, opaque": opaque_int4, "prototype: uint4 weight": uintx}


CONFIGS.update(prototypes())


def parts(t):
    """The tensors that an object of a subclass wraps, by name."""
    out = {}
    for n in t.__tensor_flatten__()[0]:
        inner = getattr(t, n)
        out.update(parts(inner) if isinstance(inner, TorchAOBaseTensor) else {n: inner})
    return out


def quantized_bytes(module, bits):
    """Bytes of the weights of a module as they must be stored, and how many of them are not quantized."""
    total, seen = 0, set()
    for t in list(module.parameters()) + list(module.buffers()):
        if id(t) in seen:
            continue
        seen.add(id(t))
        if not isinstance(t, TorchAOBaseTensor):
            total += t.numel() * t.element_size()
            continue
        for name, p in parts(t).items():
            if name == "qdata" and bits < 8:
                total += -(-p.numel() * bits // 8)
            elif "zero_point" in name:
                if p.count_nonzero():
                    total += -(-p.numel() * bits // 8)
            else:
                total += p.numel() * p.element_size()
    return total


def stored_bits(config, opset):
    """The number of bits that ONNX has for the integers of a configuration: 2 (from opset 25), 4 (from 21) or 8."""
    m = re.search(r"int(\d) weight", config)
    bits = int(m.group(1)) if m else 8
    for have, since in ((2, 25), (4, 21)):
        if bits <= have and opset >= since:
            return have
    return 8


# PyTorch and onnxruntime add in different orders; where activations are rounded, such a difference can move an element to the
# next step of its grid.
def tolerance(config, dtype):
    if dtype == torch.bfloat16:
        return 3e-2
    return 1e-2 if "dynamic" in config or "static" in config else 1e-5


def compare(aton, path, args, want, opset):
    """Converts a file and runs it: (verdict, message, relative difference, bytes of the ONNX file)."""
    out = path + ".onnx"
    try:
        judge.export(aton, path, out, opset=opset)
    except judge.Refused as e:
        return "refused", str(e).replace(os.path.abspath(__file__), os.path.basename(__file__))[:200], "", ""
    size = os.path.getsize(out)
    try:
        (got,) = judge.run(judge.session(out), args)
    except Exception as e:  # noqa: BLE001 - a file that onnxruntime does not take is a row of the table
        return "not run", str(e).splitlines()[0][:160], "", size
    want = judge.array(want)
    if why := judge.other_form(got, want):
        return "wrong", why, "", size
    return "right", "PyTorch gives NaN" if numpy.isnan(want).any() else "", judge.distance(got, want, of=judge.greatest(want) or 1), size


def quantize_rows(o):
    for config, make in CONFIGS.items():
        for model, (cls, inputs) in MODELS.items():
            for dtype in (torch.float32, torch.bfloat16):
                name = f"{config}; {model}; {str(dtype)[6:]}"
                if not re.search(o.filter, name):
                    continue
                torch.manual_seed(0)
                m = cls().eval().to(dtype)
                args = inputs(dtype)
                path = os.path.join(o.out, re.sub(r"\W+", "_", name) + ".pt2")
                try:
                    with torch.no_grad():
                        quantize_(m, make())
                        want = m(*args)
                        torch.export.save(torch.export.export(m, args), path)
                except Exception as e:  # noqa: BLE001 - what this machine cannot make is a row of the table
                    yield config, model, str(dtype)[6:], "not made", f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"[:160], "", "", "", ""
                    continue
                verdict, message, diff, size = compare(o.aton, path, args, want, o.opset)
                if verdict == "right" and not diff <= tolerance(config, dtype):
                    verdict = "wrong"
                weights = quantized_bytes(m, stored_bits(config, o.opset))
                yield config, model, str(dtype)[6:], verdict, message, diff, weights, size, ""


class Convolutions(nn.Module):
    """Convolutions, a concatenation, pooling and flattening between quantized layers."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(3, 16, 1)
        self.c, self.bn = nn.Conv2d(32, 32, 3), nn.BatchNorm2d(32)
        self.pool, self.mean, self.fc = nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(4), nn.Linear(32 * 16, 10)

    def forward(self, x):
        y = torch.cat([torch.relu(self.a(x)), torch.relu(self.b(x))], 1)
        y = self.pool(torch.relu(self.bn(self.c(y))))
        return self.fc(torch.flatten(self.mean(y), 1))


def calibrated(prepared, args):
    for _ in range(4):
        prepared(*[torch.randn_like(a) for a in args])
    prepared(*args)
    return prepared


def pt2e(cls, args, dynamic):
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.testing.pt2e._xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config
    q = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True, is_dynamic=dynamic))
    m = prepare_pt2e(torch.export.export(cls, args).module(), q)
    return convert_pt2e(calibrated(m, args))


def pt2e_x86(m, args):
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x
    q = x.X86InductorQuantizer().set_global(x.get_default_x86_inductor_quantization_config())
    return convert_pt2e(calibrated(prepare_pt2e(torch.export.export(m, args).module(), q), args))


def fx(m, args):
    from torch.ao.quantization import get_default_qconfig_mapping
    from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx
    torch.backends.quantized.engine = "fbgemm"
    return convert_fx(calibrated(prepare_fx(m, get_default_qconfig_mapping("fbgemm"), args), args))


def graph_rows(o):
    image = lambda: (torch.randn(2, 3, 16, 16),)
    tokens = lambda: (torch.randn(2, 7, WIDTH),)
    rows = {
        ("PT2E static", "convolutions"): lambda: (Convolutions, image, lambda m, a: pt2e(m, a, False)),
        ("PT2E static", "mlp"): lambda: (MLP, tokens, lambda m, a: pt2e(m, a, False)),
        ("PT2E dynamic", "mlp"): lambda: (MLP, tokens, lambda m, a: pt2e(m, a, True)),
        ("PT2E dynamic", "layer"): lambda: (Layer, tokens, lambda m, a: pt2e(m, a, True)),
        ("PT2E static x86", "convolutions"): lambda: (Convolutions, image, pt2e_x86),
        ("FX static", "convolutions"): lambda: (Convolutions, image, fx),
        ("FX static", "mlp"): lambda: (MLP, tokens, fx),
    }
    for (config, model), row in rows.items():
        for form in ("pt2", "pt"):
            name = f"{config}; {model}; {form}"
            if not re.search(o.filter, name) or config.startswith("PT2E") and form == "pt":
                continue
            torch.manual_seed(0)
            cls, inputs, quantize = row()
            args = inputs()
            path = os.path.join(o.out, re.sub(r"\W+", "_", name) + "." + form)
            try:
                with torch.no_grad():
                    m = quantize(cls().eval(), args)
                    want = m(*args)
                    if form == "pt":
                        torch.jit.save(torch.jit.trace(m, args), path)
                    else:
                        torch.export.save(torch.export.export(m, args), path)
            except Exception as e:  # noqa: BLE001
                yield config, model, form, "not made", f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"[:160], "", "", "", ""
                continue
            verdict, message, diff, size = compare(o.aton, path, args, want, o.opset)
            if verdict == "right" and not diff <= 3e-2:
                verdict = "wrong"
            yield config, model, form, verdict, message, diff, "", size, ""


class Operators(nn.Module):
    """The operators of torchao that its own layers do not leave on a CPU."""

    def __init__(self):
        super().__init__()
        self.register_buffer("w", torch.randint(-128, 128, (24, 32), dtype=torch.int8))
        self.register_buffer("f8", torch.randn(24, 32).to(torch.float8_e4m3fn))
        self.register_buffer("s", torch.rand(24) / 64)

    def forward(self, x):
        ao, aten = torch.ops.torchao, torch.ops.aten
        scale = ao.choose_scale_float8(x, [1, 32])
        q = ao.quantize_affine_float8_non_decomposed(x, scale)
        back = ao.dequantize_affine_float8_non_decomposed(q, scale)
        kept = ao.dequantize_affine_float8_non_decomposed(self.f8, self.s.view(24, 1))
        return back, x @ kept.t(), aten._weight_int8pack_mm(x, self.w, self.s)


def portable(path):
    """Takes the folders of this machine out of the traces that a program holds."""
    here, library = os.path.dirname(os.path.abspath(__file__)), os.path.dirname(os.path.dirname(os.path.dirname(torch.__file__)))
    with zipfile.ZipFile(path) as z:
        records = [(i, z.read(i)) for i in z.infolist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as z:
        for i, data in records:
            if i.filename.endswith("/model.json"):
                data = data.replace((here + "/").encode(), b"").replace(library.encode(), b"lib")
            z.writestr(zipfile.ZipInfo(i.filename), data)


def write_case(folder, name, module, args):
    """A program of torch.export with its inputs and outputs, as a test case (tools/lib/cases)."""
    path = os.path.join(folder, "quantized", name)
    os.makedirs(os.path.join(path, "test_data_set_0"), exist_ok=True)
    with torch.no_grad():
        got = module(*args)
        program = torch.export.export(module, args)
    outputs = got if isinstance(got, tuple) else (got,)
    torch.export.save(program, os.path.join(path, "model.pt2"))
    portable(os.path.join(path, "model.pt2"))
    names = [s.arg.name for s in program.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
    casefile.record(os.path.join(path, "test_data_set_0"), names, args, outputs)
    rtol, atol = casefile.TOLERANCES[args[0].dtype if args[0].dtype in casefile.TOLERANCES else torch.float32]
    spec = [f"{n}:{casefile.TYPES[v.dtype][0]}[{','.join(map(str, v.shape))}]" for n, v in zip(names, args)]
    inputs, results = [casefile.about(n, v) for n, v in zip(names, args)], [casefile.about("output", v) for v in outputs]
    case = {"id": name, "suite": "quantized", "op": name, "variant": "export", "dtype": casefile.TYPES[args[0].dtype][2], "opset": 21, "rtol": rtol,
            "atol": atol, "atol_of_max": 0.0, "training": False, "torch": torch.__version__, "seed": 0, "arguments": names, "inputs": inputs,
            "outputs": results, "input_specs": spec, "input_spec": ";".join(spec), "dynamic_axes": {}, "pt2": True, "pt2_data_sets": [0],
            "data_sets": [{"dir": "test_data_set_0", "args": [{"tensor": i} for i in range(len(args))], "inputs": inputs, "outputs": results,
                           "eager_agrees": True}]}
    with open(os.path.join(path, "case.json"), "w") as f:
        json.dump(case, f, indent=1, sort_keys=True)


def write_cases(folder):
    """A linear layer with each configuration, and the operators that these do not have; the list of them with opsets."""
    torch.manual_seed(0)
    write_case(folder, "operators", Operators(), (torch.randn(3, 32),))
    lines = ["operators\tmodel.pt2\t19 21"]
    for config, make in CONFIGS.items():
        for dtype in (torch.float32, torch.bfloat16):
            torch.manual_seed(0)
            k = 128 if "128" in config else 64
            m = nn.Sequential(nn.Linear(k, 8), nn.Tanh()).eval().to(dtype)
            name = re.sub(r"\W+", "_", config) + "." + str(dtype)[6:]
            try:
                quantize_(m, make())
                if config != "intx: int1 weight, group 32" and config != "intx: int1 weight, row":  # gives 0
                    write_case(folder, name, m, (torch.randn(2, 3, k, dtype=dtype),))
                    lines.append(f"{name}\tmodel.pt2\t{'19 21' if 'float8' in config else '13 20 21 25'}")
            except Exception as e:  # noqa: BLE001 - what this machine cannot make
                print(f"{config}: {type(e).__name__}: {e}".splitlines()[0][:160])
    with open(os.path.join(folder, "quantized.tsv"), "w") as f:
        f.write("\n".join(sorted(lines)) + "\n")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--aton", default="bin/aton")
    p.add_argument("--out", help="a folder for what is made")
    p.add_argument("--cases", help="write the small cases of testdata/quantized.tar.gz into this folder, and nothing else")
    p.add_argument("--filter", default="", help="a regular expression of 'configuration; model; dtype'")
    p.add_argument("--opset", type=int, default=21)
    p.add_argument("--write", help="the table to write")
    o = p.parse_args()
    if o.cases:
        return write_cases(o.cases)
    if not o.out:
        p.error("--out is missing")
    os.makedirs(o.out, exist_ok=True)
    lines = ["configuration\tmodel\tform\tverdict\tmessage\tdifference\tquantized bytes\tfile bytes\tratio"]
    count = {}
    for row in itertools.chain(quantize_rows(o), graph_rows(o)):
        config, model, form, verdict, message, diff, weights, size, _ = row
        ratio = f"{size / weights:.3f}" if weights and size else ""
        diff = f"{diff:.1e}" if diff != "" else ""
        lines.append("\t".join(map(str, (config, model, form, verdict, message, diff, weights, size, ratio))))
        print(lines[-1], flush=True)
        count[verdict] = count.get(verdict, 0) + 1
    print(", ".join(f"{n} {v}" for v, n in sorted(count.items())))
    if o.write:
        with open(o.write, "w") as f:
            f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
