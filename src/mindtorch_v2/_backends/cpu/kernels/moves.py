"""Launches that are copies to other places: shuffles, rolls, parts of complex numbers; and searching.

Invariant: each is one or two calls of the native module over strides that are worked out here; nothing is written for a
result without elements.
"""
from __future__ import annotations

from typing import Any, Final

from .... import _native
from ...._ops.rules.layout import expand_strides
from ...._tensor_base import TensorBase, is_contiguous, numel
from .dense import dense, dense_as, fresh

Ints = tuple[int, ...]
_copy: Final[Any] = _native.copy
_unary: Final[Any] = _native.unary
_binary: Final[Any] = _native.binary
_search: Final[Any] = _native.searchsorted
_MUL: Final[int] = _native.MUL
_COS: Final[int] = _native.COS
_SIN: Final[int] = _native.SIN


def _inner_steps(t: TensorBase, n: int, r: int) -> Ints:
    """Strides of (.., c * r * r, h, w) over (.., c, h, r, w, r)."""
    s = t._stride
    return s[:n] + (s[n] * r * r, s[n + 1], s[n] * r, s[n + 2], s[n])


def _outer_steps(t: TensorBase, n: int, r: int) -> Ints:
    """Strides of (.., c, h * r, w * r) over the same."""
    s = t._stride
    return s[:n] + (s[n], s[n + 1] * r, s[n + 1], s[n + 2] * r, s[n + 2])


def pixel_shuffle(out: TensorBase, x: TensorBase, r: int) -> None:
    if numel(out) > 0:
        n, size = len(x._shape) - 3, x._shape
        _copy(
            out._storage, int(out._offset), _outer_steps(out, n, r), out._dtype.code,
            x._storage, int(x._offset), _inner_steps(x, n, r), x._dtype.code,
            size[:n] + (out._shape[n], size[n + 1], r, size[n + 2], r))


def pixel_unshuffle(out: TensorBase, x: TensorBase, r: int) -> None:
    if numel(out) > 0:
        n, size = len(x._shape) - 3, out._shape
        _copy(
            out._storage, int(out._offset), _inner_steps(out, n, r), out._dtype.code,
            x._storage, int(x._offset), _outer_steps(x, n, r), x._dtype.code,
            size[:n] + (x._shape[n], size[n + 1], r, size[n + 2], r))


def channel_shuffle(out: TensorBase, x: TensorBase, groups: int) -> None:
    if numel(out) > 0:
        s, t, each = x._stride, out._stride, x._shape[1] // groups
        _copy(
            out._storage, int(out._offset), (t[0], t[1] * groups, t[1]) + t[2:], out._dtype.code,
            x._storage, int(x._offset), (s[0], s[1], s[1] * each) + s[2:], x._dtype.code,
            (x._shape[0], each, groups) + x._shape[2:])


def roll_one(out: TensorBase, x: TensorBase, shape: Ints, source: Ints, to: Ints, shift: int, d: int) -> None:
    """Along one dimension: what lies behind the cut, then what lies before it."""
    n, code = shape[d], out._dtype.code
    shift %= n
    at, place = int(x._offset), int(out._offset)
    if shift != 0:
        _copy(
            out._storage, place, to, code,
            x._storage, at + (n - shift) * source[d], source, code,
            shape[:d] + (shift,) + shape[d + 1:])
    _copy(
        out._storage, place + shift * to[d], to, code,
        x._storage, at, source, code,
        shape[:d] + (n - shift,) + shape[d + 1:])


def _doubled(stride: Ints) -> Ints:
    return tuple([2 * s for s in stride])


def complex_of(out: TensorBase, real: TensorBase, imag: TensorBase) -> None:
    steps, place, shape = _doubled(out._stride), 2 * int(out._offset), out._shape
    for part in (real, imag):
        code = part._dtype.code
        _copy(
            out._storage, place, steps, code,
            part._storage, int(part._offset), expand_strides(part, shape), code,
            shape)
        place += 1


def polar(out: TensorBase, length: TensorBase, angle: TensorBase) -> None:
    steps, place, shape = _doubled(out._stride), 2 * int(out._offset), out._shape
    dt = length._dtype
    phi = angle if angle._dtype is dt else dense_as(angle, dt)
    turned = fresh(phi._shape, dt)
    for op in (_COS, _SIN):
        _unary(
            op,
            phi._storage, int(phi._offset), phi._stride, dt.code,
            turned._storage, 0, turned._stride, dt.code,
            phi._shape, dt.code)
        _binary(
            _MUL,
            length._storage, int(length._offset), expand_strides(length, shape), dt.code,
            turned._storage, 0, expand_strides(turned, shape), dt.code,
            out._storage, place, steps, dt.code,
            shape, dt.code, 1)
        place += 1


def search(out: TensorBase, bounds: TensorBase, values: TensorBase, right: bool) -> bool:
    """Places in sorted rows; False where this is not served natively."""
    if bounds._dtype is not values._dtype or not is_contiguous(out):
        return False
    rows, x = dense(bounds), dense(values)
    found: bool = _search(
        rows._storage, int(rows._offset), rows._stride, rows._dtype.code, rows._shape,
        x._storage, int(x._offset), x._stride, x._dtype.code, x._shape,
        out._storage, int(out._offset), out._stride, out._dtype.code, right)
    return found
