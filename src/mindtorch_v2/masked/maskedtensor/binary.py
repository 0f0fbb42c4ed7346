"""Operators of two operands, masked tensors with one mask or a masked tensor and something without: the mask stays."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .core import _masks_match, _tensors_match, index_parts, is_masked_tensor, mapped, with_values, wrapped

__all__: list[str] = []

BINARY_NAMES = (
    "add atan2 arctan2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift div divide "
    "floor_divide fmod logaddexp logaddexp2 mul multiply nextafter remainder sub subtract true_divide eq ne le ge "
    "greater greater_equal gt less_equal lt less maximum minimum fmax fmin not_equal"
).split()
_NO_INPLACE = "logaddexp logaddexp2 fmin minimum maximum fmax".split()
INPLACE_BINARY_NAMES = [name + "_" for name in BINARY_NAMES if name not in _NO_INPLACE]

NATIVE_BINARY_FNS = [getattr(torch.ops.aten, name) for name in BINARY_NAMES]
NATIVE_INPLACE_BINARY_FNS = [getattr(torch.ops.aten, name) for name in INPLACE_BINARY_NAMES]


def _is_native_binary(fn: Any) -> bool:
    return fn in NATIVE_BINARY_FNS or fn in NATIVE_INPLACE_BINARY_FNS


def _get_at_least_one_mask(a: Any, b: Any) -> Any:
    """The mask of either, which is that of both."""
    if not is_masked_tensor(a) and not is_masked_tensor(b):
        raise TypeError("At least one of `a` and `b` must be a MaskedTensor")
    if not _masks_match(a, b):
        raise ValueError("a and b must have matching masks")
    return a.get_mask() if is_masked_tensor(a) else b.get_mask()


def _check_operands(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if kwargs:
        raise ValueError("len(kwargs) must equal 0")
    if any(isinstance(a, torch.Tensor) for a in args[2:]):
        raise TypeError("MaskedTensor binary ops do not support Tensor arguments aside from the lhs and rhs")
    if not _masks_match(*args[:2]):
        raise ValueError("Input masks must match. If you need support for this, please open an issue on Github.")


def _on_values(fn: Any, left: Any, right: Any, rest: list[Any]) -> Any:
    """The operator on the values of a sparse left operand, and of a right one with the same indices."""
    if isinstance(right, torch.Tensor) and right.layout == left.layout:
        name = "sparse_coo" if left.layout == torch.sparse_coo else "sparse_csr"
        if not all(_tensors_match(x, y) for x, y in zip(index_parts(left), index_parts(right))):
            raise ValueError(
                f"{name} indices must match. If you need support for this, please open an issue on Github."
            )
        if name == "sparse_coo" and left.size() != right.size():
            raise ValueError("input1 and input2 must have the same size for binary functions.")
        right = right.values()
    return with_values(left, fn(left.values(), right, *rest))


def _apply_native_binary(fn: Any, *args: Any, **kwargs: Any) -> Any:
    if not _is_native_binary(fn):
        return NotImplemented
    _check_operands(args, kwargs)
    left, right, *rest = mapped(args, lambda t: t.get_data())
    sparse = isinstance(left, torch.Tensor) and index_parts(left)
    result = _on_values(fn, left, right, rest) if sparse else fn(left, right, *rest)
    if fn in NATIVE_INPLACE_BINARY_FNS:
        args[0]._set_data_mask(result, mapped(args[0], lambda t: t.get_mask()))
        return args[0]
    mask = _get_at_least_one_mask(*args[:2])
    return wrapped(result, mask if sparse else mask.expand_as(result))
