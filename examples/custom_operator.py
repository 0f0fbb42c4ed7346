"""An operator of your own, for cpu and npu: fables::swish_gate(x, gate, beta) = x * gate * sigmoid(beta * gate).

One definition with a schema, one kernel for each device, a rule for shapes (the meta device, and whoever asks for
shapes only), a derivative. torch.library.opcheck tests that they agree.
"""

from __future__ import annotations

from typing import Any

import numpy
from common import arguments

import mindtorch_v2 as torch
from mindtorch_v2 import Tensor


@torch.library.custom_op("fables::swish_gate", mutates_args=(), device_types="cpu")
def swish_gate(x: Tensor, gate: Tensor, beta: float = 1.0) -> Tensor:
    """The CPU's kernel: NumPy over the same memory."""
    g = gate.numpy()
    return torch.from_numpy(x.numpy() * g / (1 + numpy.exp(-beta * g)))


@swish_gate.register_kernel("npu")
def _(x: Tensor, gate: Tensor, beta: float = 1.0) -> Tensor:
    """The NPU's: operators of the device. Nothing goes through the host."""
    return x * gate * torch.sigmoid(gate * beta)


@swish_gate.register_fake
def _(x: Tensor, gate: Tensor, beta: float = 1.0) -> Tensor:
    torch._check(x.shape == gate.shape, lambda: f"swish_gate: {tuple(x.shape)} and {tuple(gate.shape)} differ")
    return torch.empty_like(x)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, gate, ctx.beta = inputs
    ctx.save_for_backward(x, gate)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
    x, gate = ctx.saved_tensors
    share = torch.sigmoid(ctx.beta * gate)
    return grad * gate * share, grad * x * share * (1 + ctx.beta * gate * (1 - share)), None


swish_gate.register_autograd(_backward, setup_context=_keep)


def main() -> None:
    given = arguments(__doc__, steps=1)
    x, gate = (torch.randn(4, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    print("schema      ", torch.ops.fables.swish_gate.default._schema)
    print("opcheck     ", torch.library.opcheck(swish_gate, (x, gate, 1.5)))
    print("gradcheck   ", torch.autograd.gradcheck(swish_gate, (x, gate)))
    print("on meta     ", tuple(swish_gate(x.detach().to("meta"), gate.detach().to("meta")).shape))
    here = swish_gate(x.detach().float(), gate.detach().float(), 1.5)
    there = torch.ops.fables.swish_gate(
        x.detach().float().to(given.device), gate.detach().float().to(given.device), 1.5
    )
    print(f"on {given.device:9}", torch.allclose(here, there.cpu(), atol=1e-5))


if __name__ == "__main__":
    main()
