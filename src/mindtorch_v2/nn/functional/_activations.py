"""Activation functions.

Invariant: a function here only completes arguments; shapes, dtypes, values and derivatives come from the row it calls.
"""

import warnings
from typing import Any

import mindtorch_v2 as torch

from ..._dispatch import registry
from ..._tensor import Tensor
from ._rows import eager, row

_silu = registry.get("silu").call
_silu_ = registry.get("silu_").call


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.relu_(input) if inplace else torch.relu(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    return _silu_((input,)) if inplace else _silu((input,))


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    return eager("leaky_relu_" if inplace else "leaky_relu").call((input, negative_slope))


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    return eager("elu_" if inplace else "elu").call((input, alpha, 1, 1))


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    return torch.celu_(input, alpha) if inplace else torch.celu(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.selu_(input) if inplace else torch.selu(input)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return eager("hardtanh_" if inplace else "hardtanh").call((input, min_val, max_val))


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    return registry.get("relu6_" if inplace else "relu6").call((input,))


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    return registry.get("hardsigmoid_" if inplace else "hardsigmoid").call((input,))


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    return registry.get("hardswish_" if inplace else "hardswish").call((input,))


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    return registry.get("mish_" if inplace else "mish").call((input,))


def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    if out is not None:
        return registry.get("log_sigmoid.out").call((input, out))
    return registry.get("log_sigmoid").call((input,))


def sigmoid(input: Tensor) -> Tensor:
    return torch.sigmoid(input)


def tanh(input: Tensor) -> Tensor:
    return torch.tanh(input)


def _get_softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    if dim is None:
        dim = _get_softmax_dim("softmax", input.dim(), _stacklevel)
    return torch.softmax(input, dim, dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    if dim is None:
        dim = _get_softmax_dim("log_softmax", input.dim(), _stacklevel)
    return torch.log_softmax(input, dim, dtype)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    return row("activation_lazy", "glu").call((input, dim))


def tanhshrink(input: Tensor) -> Tensor:
    return input - input.tanh()


def softsign(input: Tensor) -> Tensor:
    return input / (input.abs() + 1)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    if dim is None:
        dim = _get_softmax_dim("softmin", input.dim(), _stacklevel)
    return torch.softmax(-input, dim, dtype)


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    return torch.rrelu_(input, lower, upper, training) if inplace else torch.rrelu(input, lower, upper, training)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    return eager("threshold_" if inplace else "threshold").call((input, threshold, value))


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    noise = -torch.empty_like(logits, memory_format=torch.contiguous_format).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    picked = torch.zeros_like(logits, memory_format=torch.contiguous_format).scatter_(dim, index, 1.0)
    return picked - soft.detach() + soft
