"""What distributions share: broadcasting of parameters, probabilities and logits, properties computed once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any, Final

import mindtorch_v2 as torch

from .._overrides import is_tensor_like
from .._tensor import Tensor

euler_constant: Final = 0.57721566490153286060  # Euler and Mascheroni's
_NUMBER: Final = (int, float, bool)

__all__ = [
    "broadcast_all",
    "logits_to_probs",
    "clamp_probs",
    "probs_to_logits",
    "lazy_property",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]


def broadcast_all(*values: Any) -> Any:
    """Tensors of one shape; a number takes dtype and device of the first tensor, or the default dtype."""
    tensors = [is_tensor_like(v) for v in values]
    if not all(tensors):
        if not all(known or isinstance(v, _NUMBER) for v, known in zip(values, tensors)):
            raise ValueError(
                "Input arguments must all be instances of Number, torch.Tensor or objects implementing "
                "__torch_function__."
            )
        options: dict[str, Any] = {"dtype": torch.get_default_dtype()}
        for v in values:
            if isinstance(v, Tensor):
                options = {"dtype": v.dtype, "device": v.device}
                break
        values = tuple(v if known else torch.tensor(v, **options) for v, known in zip(values, tensors))
    return torch.broadcast_tensors(*values)


def _standard_normal(shape: Sequence[int], dtype: Any, device: Any) -> Tensor:
    return torch.empty(shape, dtype=dtype, device=device).normal_()


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """The sum over the last `dim` dimensions."""
    return value.reshape(value.shape[:-dim] + (-1,)).sum(-1) if dim else value


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of logits: sigmoid for single events, softmax over the last dimension for categories."""
    return torch.sigmoid(logits) if is_binary else torch.softmax(logits, -1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities moved off 0 and 1 by the dtype's epsilon."""
    eps = torch.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Logits of probabilities: log odds for single events, logarithms for categories."""
    clamped = clamp_probs(probs)
    logs: Tensor = torch.log(clamped)
    return logs - torch.log1p(-clamped) if is_binary else logs


class lazy_property:
    """A property that is computed when first asked for, with gradients, and then kept as an attribute."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        itself: Any = self
        update_wrapper(itself, wrapped)

    def __get__(self, instance: Any, obj_type: Any = None) -> Any:
        if instance is None:
            return _lazy_property_and_property(self.wrapped)
        with torch.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _lazy_property_and_property(lazy_property, property):
    """What the class shows: a property to those who document it, lazy to `Distribution.__init__`."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        property.__init__(self, wrapped)


def _lower(n: int, diag: int, device: Any) -> Tensor:
    column = torch.arange(n, device=device)
    return column < column.view(-1, 1) + (diag + 1)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements of the lower triangle, row by row."""
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    return mat[..., _lower(n, diag, mat.device)]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The matrix whose lower triangle has these elements, row by row."""
    length, odd = vec.shape[-1], 1 + 2 * diag
    side = (-odd + (odd**2 + 8 * length + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    n = round(side)
    if n - side > torch.finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {length} which cannot be expressed as "
            "the lower triangular part of a square D x D matrix."
        )
    mat: Tensor = vec.new_zeros((*vec.shape[:-1], n, n))
    mat[..., _lower(n, diag, vec.device)] = vec
    return mat
