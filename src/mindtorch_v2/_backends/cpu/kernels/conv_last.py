"""Convolutions whose images have their channels last, where they are best computed so.

Invariant: images are read and written where they are: where each channel is by itself, and where results are sums over
channels side by side. What is a product of matrices is one (a kernel of one place); the rest is computed row-major, by
`conv`.
"""
from __future__ import annotations

from typing import Any, Final

from .... import _native
from ...._sizes import numel_of
from ...._tensor_base import TensorBase, numel
from .dense import deliver, dense_as, fresh, fresh_last, is_last, last_as, lies_last, operand, target, target_last

Ints = tuple[int, ...]
_NONE: Final[tuple[Any, int, int]] = (None, 0, 0)
_FLOATS: Final = ("float32", "float64", "bfloat16", "float16")
_FEW: Final = 8
_MANY: Final = 32
_bgemm: Final[Any] = _native.bgemm
_copy: Final[Any] = _native.copy


def _kind(weight: TensorBase, v: Any) -> str:
    if v.pointwise and v.groups == 1:
        return "product"
    if weight._shape[1] == 1 and weight._shape[0] == v.groups and v.groups > 3:
        return "each"
    return "sums"


def _served(x: TensorBase, weight: TensorBase, v: Any) -> str:
    if x._dtype.name not in _FLOATS or 0 in x._shape or 0 in weight._shape:
        return ""
    kind = _kind(weight, v)
    if kind == "each":
        return "" if x._dtype.name == "float16" else kind
    # Groups of few results leave vectors of results empty.
    few = v.groups > 1 and weight._shape[0] < _FEW * v.groups
    return "" if kind == "sums" and (few or x._dtype.name == "float64") else kind


def _sums(kernel: Any, x: TensorBase, weight: TensorBase, bias: Any, out: TensorBase, images: int, v: Any) -> bool:
    """Whether the native kernel computed it; weights are read with channels last or row-major."""
    w = weight if weight._dtype is x._dtype and is_last(weight) else dense_as(weight, x._dtype)
    return bool(kernel(*operand(x), *operand(w), *(_NONE if bias is None else operand(bias)), *operand(out),
                       1 if is_last(w) else 0, images, v.groups, w._shape[1], w._shape[0] // v.groups, *v.geometry()))


def by_way_of(x: TensorBase, weight: TensorBase, bias: Any, out: TensorBase, v: Any, back: bool) -> bool:
    """Whether row-major bfloat16 images were computed with channels last, where that is worth two copies: pairs of
    channels side by side are what the CPU multiplies. With `back`, x is the result's gradient and out the input's."""
    if (x._dtype.name != "bfloat16" or v.groups != 1 or v.pointwise or not 4 <= len(x._shape) <= 5
            or min(weight._shape[:2]) < _MANY):
        return False
    y = fresh_last(out._shape, x._dtype)
    kernel: Any = _native.conv_input_channels if back else _native.conv_channels
    if not _sums(kernel, last_as(x, x._dtype), weight, bias, y, x._shape[0], v):
        return False
    deliver(out, y)
    return True


def _product(a: TensorBase, b: TensorBase, out: TensorBase, sizes: Ints, a_steps: Ints, b_steps: Ints,
             beta: int) -> None:
    """out (m, n), row by row, = a (m, k) @ b (k, n) + beta * out."""
    m, n, k = sizes
    _bgemm(a._storage, int(a._offset), (0, *a_steps), b._storage, int(b._offset), (0, *b_steps), out._storage,
           int(out._offset), (0, n, 1), a._dtype.code, 1, m, n, k, 1, beta)


def _places(t: TensorBase) -> int:
    return t._shape[0] * int(numel_of(t._shape[2:]))


def forward(out: TensorBase, x: TensorBase, weight: TensorBase, bias: Any, v: Any) -> bool:
    """Whether the convolution was computed here, into a result with channels last."""
    kind = _served(x, weight, v)
    if not kind or not is_last(x) or not lies_last(out) or numel(out) == 0:
        return False
    b = None if bias is None else dense_as(bias, x._dtype)
    channels, results = x._shape[1], out._shape[1]
    if kind == "sums" or (kind == "product" and x._dtype.name != "float64"):
        return _sums(_native.conv_channels, x, weight, b, out, x._shape[0], v)
    w = dense_as(weight, x._dtype)
    if kind == "product":
        if b is not None:
            spread = (0, 1) + (0,) * (len(out._shape) - 2)
            _copy(out._storage, int(out._offset), out._stride, out._dtype.code,
                  b._storage, int(b._offset), spread, b._dtype.code, out._shape)
        _product(x, w, out, (_places(x), results, channels), (channels, 1), (1, channels), 0 if b is None else 1)
        return True
    _native.depthwise_last(*operand(x), *operand(w), *(_NONE if b is None else operand(b)), *operand(out), x._shape[0],
                           channels, *v.geometry())
    return True


def input_gradient(out: TensorBase, grad: TensorBase, x: TensorBase, weight: TensorBase, v: Any) -> bool:
    """Whether the input's gradient, which are sums over results side by side, was computed here."""
    if _served(x, weight, v) != "sums" or 0 in grad._shape:
        return False
    dx = target_last(out, x._dtype)
    if not _sums(_native.conv_input_channels, last_as(grad, x._dtype), weight, None, dx, x._shape[0], v):
        return False
    deliver(out, dx)
    return True


def backward(outs: Any, grad: TensorBase, x: TensorBase, weight: TensorBase, v: Any, mask: Any) -> bool:
    """Whether the gradients were computed here; the input's has its channels last."""
    kind = _served(x, weight, v)
    if not kind or kind == "sums" or not is_last(x) or 0 in grad._shape:
        return False
    dt = x._dtype
    g, w = last_as(grad, dt), dense_as(weight, dt)
    channels, results, places = x._shape[1], g._shape[1], _places(g)
    if mask[0]:
        dx = target_last(outs[0], dt)
        if kind == "product":
            _product(g, w, dx, (places, channels, results), (results, 1), (channels, 1), 0)
        else:
            _native.depthwise_input_last(*operand(g), *operand(w), *_NONE, *operand(dx), x._shape[0], channels,
                                         *v.geometry())
        deliver(outs[0], dx)
    if mask[1]:
        dw = target(outs[1], dt)
        if kind == "product":
            _product(g, x, dw, (results, channels, places), (1, results), (channels, 1), 0)
        else:
            _native.depthwise_weight_last(*operand(g), *operand(x), *_NONE, *operand(dw), x._shape[0], channels,
                                          *v.geometry())
        deliver(outs[1], dw)
    if mask[2]:
        db, ones = target(outs[2], dt), fresh((places,), dt)
        _native.fill(ones._storage, int(ones._offset), ones._stride, ones._dtype.code, ones._shape, 1)
        _product(ones, g, db, (1, results, places), (places, 1), (results, 1), 0)
        deliver(outs[2], db)
    return True
