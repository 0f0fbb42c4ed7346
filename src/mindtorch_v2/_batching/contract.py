"""Products of matrices and convolutions of many.

Invariant: an operand that all share is not repeated where the product can take all of the other's at once.
"""

from __future__ import annotations

from typing import Any

from .._dispatch.op import Op
from .._dispatch.registry import get
from .._tensor_base import TensorBase
from .kinds import described, fitted, reshaped
from .level import Level, inside, is_many, spread, wrap


def _op(name: str, *args: Any) -> Any:
    return get(name).call(args)


def _product(a: TensorBase, b: TensorBase, level: Level) -> Any:
    """All products of two matrices."""
    x, y = inside(a, level), inside(b, level)
    if is_many(a, level) and is_many(b, level):
        return _op("bmm", x, y)
    if is_many(a, level):
        rows = reshaped(x, (x._shape[0] * x._shape[1], x._shape[2]))
        return reshaped(_op("mm", rows, y), (x._shape[0], x._shape[1], y._shape[1]))
    # a @ b for many b: the transposed product has the many in front of its rows.
    turned = _op("transpose", y, 1, 2)
    rows = reshaped(turned, (turned._shape[0] * turned._shape[1], turned._shape[2]))
    out = _op("mm", rows, _op("t", x))
    return _op("transpose", reshaped(out, (turned._shape[0], turned._shape[1], x._shape[0])), 1, 2)


def mm(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    described(op, args)
    return wrap(_product(args[0], args[1], level), level)


def bmm(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    described(op, args)
    return wrap(_op("matmul", inside(args[0], level), inside(args[1], level)), level)


def mv(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    described(op, args)
    m, v = args
    if not is_many(m, level):
        # One matrix for many vectors: their rows are a matrix.
        return wrap(_op("mm", inside(v, level), _op("t", inside(m, level))), level)
    if not is_many(v, level):
        return wrap(_op("matmul", inside(m, level), inside(v, level)), level)
    out = _op("bmm", inside(m, level), _op("unsqueeze", inside(v, level), 2))
    return wrap(_op("squeeze.dim", out, 2), level)


def dot(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    described(op, args)
    a, b = args
    if not (is_many(a, level) and is_many(b, level)):
        one, many = (b, a) if is_many(a, level) else (a, b)
        return wrap(_op("mv", inside(many, level), inside(one, level)), level)
    out = _op("bmm", _op("unsqueeze", inside(a, level), 1), _op("unsqueeze", inside(b, level), 2))
    return wrap(reshaped(out, (level.size,)), level)


def _scaled(t: Any, by: Any) -> Any:
    return t if by == 1 else _op("mul", t, by)


def added(product: str) -> Any:
    """`addmm` and its like: a product and a sum."""

    def fn(base: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
        if not base._dtype.is_inexact:
            # Numbers count as the matrices' dtype has them.
            beta, alpha = int(beta), int(alpha)
        out = _scaled(_op(product, a, b), alpha)
        # With beta 0 the other summand is not looked at: NaN in it does not count.
        return out if beta == 0 else _op("add", _scaled(base, beta), out, 1)

    return fn


# -- convolution --------------------------------------------------------------------------------------------------
def _folded(t: TensorBase) -> Any:
    """(B, N, ...) as (B * N, ...)."""
    return reshaped(t, (t._shape[0] * t._shape[1], *t._shape[2:]))


def _channels(t: TensorBase) -> Any:
    """(B, N, C, ...) as (N, B * C, ...): the many beside each other as channels."""
    turned = _op("transpose", t, 0, 1)
    return reshaped(turned, (turned._shape[0], turned._shape[1] * turned._shape[2], *turned._shape[3:]))


def _apart(t: TensorBase, level: Level) -> Any:
    """(N, B * C, ...) as (B, N, C, ...)."""
    split = reshaped(t, (t._shape[0], level.size, t._shape[1] // level.size, *t._shape[2:]))
    return _op("transpose", split, 0, 1)


def convolution(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    x, weight, bias, *rest, groups = args
    specs = described(op, args)
    if not is_many(weight, level):
        # More images; a bias that is many is added afterwards.
        own = bias if bias is None or not is_many(bias, level) else None
        plain = None if own is None else inside(own, level)
        out = op.call((_folded(spread(x, level)), inside(weight, level), plain, *rest, groups))
        found = fitted(out, specs, level)
        return found if own is bias else _biased(found, bias)
    filters = _folded(inside(weight, level))
    if is_many(x, level) or groups != 1 or rest[3]:
        images = _channels(spread(x, level))
        groups = groups * level.size
    else:
        images = inside(x, level)
    shifts = None if bias is None else reshaped(spread(bias, level), (level.size * bias._shape[0],))
    return wrap(_apart(op.call((images, filters, shifts, *rest, groups)), level), level)


def _biased(out: Any, bias: Any) -> Any:
    return _op("add", out, _op("view", bias, (-1, *((1,) * (len(out._shape) - 2)))), 1)


def convolution_backward(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    g, x, weight, sizes, *rest, groups, mask = args
    gx = gw = gb = None
    if mask[0] and not is_many(weight, level):
        # The gradient of the images does not look at the images.
        given = (_folded(spread(g, level)), _folded(spread(x, level)), inside(weight, level))
        found = op.call((*given, None, *rest, groups, (True, False, False)))[0]
        gx = wrap(reshaped(found, (level.size, *x._shape)), level)
    if mask[1] or (mask[0] and gx is None):
        given = (_channels(spread(g, level)), _channels(spread(x, level)), _folded(spread(weight, level)))
        wanted = (mask[0] and gx is None, mask[1], False)
        images, filters, _ = op.call((*given, None, *rest, groups * level.size, wanted))
        if wanted[0]:
            gx = wrap(_apart(images, level), level)
        if mask[1]:
            gw = wrap(reshaped(filters, (level.size, *weight._shape)), level)
    if mask[2]:
        gb = _op("sum", g, (0, *range(2, len(g._shape))), False, None)
        if tuple(gb._shape) != tuple(sizes):  # images of nothing give results without channels
            gb = g.new_zeros(tuple(sizes))
    return gx, gw, gb
