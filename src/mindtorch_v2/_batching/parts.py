"""Operators of many in terms of other operators on batched tensors, where no kind fits.

Invariant: a function here takes the operator's arguments as they are, and works for tensors that are not batched too.
"""

from __future__ import annotations

from typing import Any

from .._dispatch.op import Op
from .._dispatch.registry import get
from .._sizes import numel_of
from .kinds import described, fitted
from .level import Level, in_front, inside, is_many, spread, wrap

_NONE, _MEAN, _SUM = 0, 1, 2


def _op(name: str, *args: Any) -> Any:
    return get(name).call(args)


def _reduced(t: Any, reduction: int) -> Any:
    if reduction == _NONE:
        return t
    return _op("mean" if reduction == _MEAN else "sum", t, None, False, None)


def _share(g: Any, t: Any, reduction: int) -> Any:
    """The gradient of every element of a loss that was reduced."""
    return _op("div", g, max(int(numel_of(t._shape)), 1)) if reduction == _MEAN else g


# -- losses -------------------------------------------------------------------------------------------------------
def mse_loss(self: Any, target: Any, reduction: int) -> Any:
    return _reduced(_op("square", _op("sub", self, target, 1)), reduction)


def mse_loss_backward(g: Any, self: Any, target: Any, reduction: int) -> Any:
    diff = _op("mul", _op("sub", self, target, 1), 2)
    return _op("mul", _share(g, diff, reduction), diff)


def _nll_terms(self: Any, target: Any, weight: Any, ignore_index: int) -> tuple[Any, Any, int]:
    """Targets that count, the weight of each, and the dimension of classes."""
    classes = 1 if len(self._shape) > 1 else 0
    counted = _op("ne", target, ignore_index)
    safe = _op("where", counted, target, 0)
    if weight is None:
        each = _op("to_copy", counted, self._dtype, None, None, False)
    else:
        flat = _op("index_select", weight, 0, _op("reshape", safe, (-1,)))
        each = _op("where", counted, _op("reshape", flat, safe._shape), 0)
    return safe, each, classes


def nll_loss_forward(self: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    safe, each, classes = _nll_terms(self, target, weight, ignore_index)
    picked = _op("squeeze.dim", _op("gather", self, classes, _op("unsqueeze", safe, classes), False), classes)
    # A class that does not count gives 0, whatever its probability.
    loss = _op("where", _op("eq", each, 0), 0, _op("neg", _op("mul", picked, each)))
    loss = loss if loss._dtype is self._dtype else _op("to_copy", loss, self._dtype, None, None, False)
    total = _op("sum", each, None, False, None)
    if reduction == _NONE:
        return loss, _op("new_zeros", self, (), None, None, None, None)
    summed = _op("sum", loss, None, False, None)
    return (_op("div", summed, total) if reduction == _MEAN else summed), total


def nll_loss_backward(
    g: Any, self: Any, target: Any, weight: Any, reduction: int, ignore_index: int, total_weight: Any
) -> Any:
    safe, each, classes = _nll_terms(self, target, weight, ignore_index)
    back = _op("div", g, total_weight) if reduction == _MEAN else g
    values = _op("neg", _op("mul", back, each))
    zeros = _op("zeros_like", self, None, None, None, None, None)
    place = _op("unsqueeze", safe, classes)
    values = _op("expand", _op("unsqueeze", values, classes) if values._shape else values, place._shape, False)
    return _op("scatter_add", zeros, classes, place, values)


# -- norms --------------------------------------------------------------------------------------------------------
def layer_norm(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    """Scale and shift of each of the many follow the norm itself."""
    x, shape, weight, bias, eps = args
    specs = described(op, args)
    if not is_many(weight, level) and not is_many(bias, level):
        plain = [None if t is None else inside(t, level) for t in (weight, bias)]
        return fitted(op.call((spread(x, level), shape, *plain, eps)), specs, level)
    found = op.call((x, shape, None, None, eps))
    out = found[0] if isinstance(found, tuple) else found
    out = out if weight is None else _op("mul", out, weight)
    out = out if bias is None else _op("add", out, bias, 1)
    return (out, *found[1:]) if isinstance(found, tuple) else out


def layer_norm_backward(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    g, x, shape, mean, rstd, weight, bias, mask = args
    outer = tuple(range(len(x._shape) - len(shape)))
    gx = gw = gb = None
    if mask[0]:
        back = g if weight is None else _op("mul", g, weight)
        given = [spread(t, level) for t in (back, x)]
        stats = [spread(t, level) for t in (mean, rstd)]
        found = op.call((*given, shape, *stats, None, None, (True, False, False)))[0]
        gx = wrap(found, level)
    if mask[1]:
        seen = _op("mul", _op("sub", x, mean, 1), rstd)
        gw = _total(_op("mul", g, seen), outer)
    if mask[2]:
        gb = _total(g, outer)
    return gx, gw, gb


def _total(t: Any, dims: tuple[int, ...]) -> Any:
    return _op("sum", t, dims, False, None) if dims else t


# -- linear algebra -----------------------------------------------------------------------------------------------
def solve(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    """One right side for each matrix is a matrix of one column."""
    a, b, left, check = args
    specs = described(op, args)
    vector = len(b._shape) == 1 or (len(b._shape) == len(a._shape) - 1 and b._shape == a._shape[:-1])
    column = _op("unsqueeze", b, -1) if vector else b
    rank = max(len(a._shape), len(column._shape))
    given = [in_front(spread(t, level), level.size, rank) for t in (a, column)]
    return fitted(op.call((*given, left, check)), specs, level)


def diag_embed(self: Any, offset: int, dim1: int, dim2: int) -> Any:
    spec = get("diag_embed").infer((self, offset, dim1, dim2))
    out = _op("new_zeros", self, spec.shape, None, None, None, None)
    _op("copy_", _op("diagonal", out, offset, dim1, dim2), self, False)
    return out


def trace(self: Any) -> Any:
    return _op("sum", _op("diagonal", self, 0, 0, 1), None, False, None)


def searchsorted(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    """Sequences of one dimension serve values of any shape; those of each of the many serve a row of them."""
    seq, values, *rest = args
    specs = described(op, args)
    sorter = rest[-1]
    if not is_many(seq, level) and len(seq._shape) == 1 and not is_many(sorter, level):
        return fitted(op.call((inside(seq, level), spread(values, level), *rest)), specs, level)
    rows = spread(seq, level)
    wanted = spread(values, level) if not isinstance(values, (int, float)) else values
    if len(seq._shape) == 1:
        if isinstance(wanted, (int, float)):
            wanted = _op("full", (level.size, 1), wanted, None, None, seq._device, None)
        else:
            wanted = _op("reshape", wanted, (level.size, -1) if numel_of(wanted._shape) else (level.size, 0))
    order = None if sorter is None else spread(sorter, level)
    return fitted(op.call((rows, wanted, *rest[:-1], order)), specs, level)
