#!/usr/bin/env python3
"""PyTorch's times of the computations of the report, on a GPU: a line each, with a tab and the microseconds.

    PYTHON tools/measure/gpureport/torchtimes.py > FILE
    go run ./tools/measure/gpureport --time --pytorch FILE

Each is the median of eleven, behind the writing of a buffer larger than the L2 cache, as `gpureport --time` does it. Products of float32 are without
tf32, as ours are. A model is eager PyTorch in evaluation mode, in a CUDA graph, so that the time of the host is not in it.
"""
import torch
import torch.nn.functional as F

torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
torch.set_grad_enabled(False)
FLUSH = torch.empty(512 << 20, dtype=torch.uint8, device="cuda")


def f32(*shape):
    return torch.randn(*shape, device="cuda")


def f16(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.float16)


def median(run):
    for _ in range(3):
        run()
    times = []
    for _ in range(11):
        FLUSH.zero_()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(1000 * start.elapsed_time(end))
    return sorted(times)[len(times) // 2]


def graphed(run):
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        run()
    return g.replay


def cases():
    x, y = f32(8192, 4096), f32(8192, 4096)
    yield "Add f32 8192x4096", lambda: x + y
    yield "Gelu f32 8192x4096", lambda: F.gelu(x)
    row, column = f32(4096), f32(8192, 1)
    yield "Add of a row f32 8192x4096", lambda: x + row
    yield "Add of a column f32 8192x4096", lambda: x + column
    yield "Transpose f32 8192x4096", lambda: x.t().contiguous()
    yield "ReduceSum of rows f32 8192x4096", lambda: x.sum(1)
    yield "ReduceSum of columns f32 8192x4096", lambda: x.sum(0)
    for shape in ((8192, 4096), (8192, 1024), (1024, 32000)):
        s = f32(*shape)
        yield f"Softmax f32 {shape[0]}x{shape[1]}", lambda: torch.softmax(s, -1)
    for n in (4096, 768):
        s, w, b = f32(8192, n), f32(n), f32(n)
        yield f"LayerNormalization f32 8192x{n}", lambda: F.layer_norm(s, (n,), w, b)
    yield "RMSNormalization f32 8192x4096", lambda: F.rms_norm(x, (4096,), row)
    g, w, b = f32(8, 320, 64, 64), f32(320), f32(320)
    yield "GroupNormalization f32 8x320x64x64, 32 groups", lambda: F.group_norm(g, 32, w, b)
    a32, b32, a16, b16 = f32(4096, 4096), f32(4096, 4096), f16(4096, 4096), f16(4096, 4096)
    yield "MatMul f32 4096", lambda: a32 @ b32
    yield "MatMul f16 4096", lambda: a16 @ b16
    yield "Gemm f16 4096, the second one transposed", lambda: a16 @ b16.t()
    one = f32(1, 4096)
    yield "MatMul f32 1x4096 by 4096x4096", lambda: one @ a32
    a64, b64 = f32(1024, 1024).double(), f32(1024, 1024).double()
    yield "MatMul f64 1024", lambda: a64 @ b64
    for name, i, o, size, k, stride in (("7x7 stride 2, 3 to 64", 3, 64, 224, 7, 2), ("1x1, 64 to 256, 56x56", 64, 256, 56, 1, 1), ("3x3, 64 to 64, 56x56", 64, 64, 56, 3, 1),
                                        ("3x3, 128 to 128, 28x28", 128, 128, 28, 3, 1), ("3x3, 256 to 256, 14x14", 256, 256, 14, 3, 1), ("1x1, 1024 to 256, 14x14", 1024, 256, 14, 1, 1),
                                        ("3x3, 512 to 512, 7x7", 512, 512, 7, 3, 1), ("1x1, 512 to 2048, 7x7", 512, 2048, 7, 1, 1)):
        v, kernel, bias = f32(32, i, size, size), f32(o, i, k, k), f32(o)
        yield "Conv f32 " + name, lambda: F.conv2d(v, kernel, bias, stride, k // 2)
    for kind, make in (("f32", f32), ("f16", f16)):
        for n in (512, 1024, 2048):
            q, k, v = make(1, 8, n, 64), make(1, 8, n, 64), make(1, 8, n, 64)
            yield f"MatMul, Softmax, MatMul {kind}, length {n}", lambda: torch.softmax(q * 0.125 @ k.transpose(-1, -2), -1) @ v
            yield f"Attention {kind}, length {n}", lambda: F.scaled_dot_product_attention(q, k, v)
    import torchvision
    image = f32(1, 3, 224, 224)
    for name, model in (("ResNet-18", torchvision.models.resnet18()), ("ResNet-50", torchvision.models.resnet50())):
        model = model.eval().cuda()
        yield f"{name}, f32, 1x3x224x224", graphed(lambda: model(image))


if __name__ == "__main__":
    for name, run in cases():
        print(f"{name}\t{median(run):.1f}", flush=True)
