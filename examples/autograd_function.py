"""Gradients of your own: a Function with forward and backward, checked against finite differences.

`log(1 - exp(-x))` loses all digits for small x if it is written so. The function below chooses the form that keeps
them, and its backward is made of operators, so that it can be differentiated again. The second function has a
gradient that is no derivative at all: rounding that lets gradients through, as networks with small integers want it.
"""

from __future__ import annotations

import math
from typing import Any

from common import arguments

import mindtorch_v2 as torch


class Log1mExp(torch.autograd.Function):
    """log(1 - exp(-x)) for x > 0."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return torch.where(x < math.log(2), torch.log(-torch.expm1(-x)), torch.log1p(-torch.exp(-x)))

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return grad / torch.expm1(x)


class RoundThrough(torch.autograd.Function):
    """Rounds; its gradient is that of doing nothing."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.round()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad


def main() -> None:
    given = arguments(__doc__, steps=200)
    x = torch.tensor([1e-12, 1e-3, 0.5, 3.0, 40.0], dtype=torch.float64, requires_grad=True)
    print("plain ", torch.log(1 - torch.exp(-x)).tolist())
    print("stable", Log1mExp.apply(x).tolist())

    middle = torch.tensor([0.3, 0.6, 2.0], dtype=torch.float64, requires_grad=True)
    first = torch.autograd.gradcheck(Log1mExp.apply, (middle,))
    second = torch.autograd.gradgradcheck(Log1mExp.apply, (middle,))
    print(f"gradients agree with differences: {first}; second derivatives: {second}")

    # Whole numbers w for which w * 3 is near 14.9, found by descent although rounding is flat.
    w = torch.zeros((), device=given.device, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.01)
    for _ in range(given.steps):
        optimizer.zero_grad()
        loss = (RoundThrough.apply(w) * 3 - 14.9) ** 2
        loss.backward()
        optimizer.step()
    print(f"descent through rounding found {RoundThrough.apply(w).item():.0f}")


if __name__ == "__main__":
    main()
