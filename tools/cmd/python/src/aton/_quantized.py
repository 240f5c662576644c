"""What a trace calls for a quantized output. A trace would have its scale as a constant; this is TorchScript, which reads it."""
from typing import Tuple

import torch


@torch.jit.script  # type: ignore[untyped-decorator]
def parts(q: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Integers, scale and zero point: torch.onnx gives the scale as a float32, and the zero point as one of the integers."""
    integers = q.int_repr()
    return integers, torch.tensor(q.q_scale(), dtype=torch.float32), torch.tensor(q.q_zero_point()).to(integers.dtype)
