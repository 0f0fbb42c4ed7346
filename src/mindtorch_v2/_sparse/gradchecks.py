"""`torch.sparse.as_sparse_gradcheck`: the values of sparse arguments stand for them while a gradcheck runs.

Invariant: the pattern is fixed; with `masked=False` every element is specified first, so that zeros count too.
"""

from __future__ import annotations

import functools
from typing import Any

import mindtorch_v2 as torch

from .coalesce import coalesced
from .compressed import dense_to_compressed, dense_to_coo
from .compressed import to_dense as dense_of
from .parts import blocksize, is_coo, is_sparse, layout_of, parts, with_values
from .rows import make_compressed, make_coo


def _whole(t: Any) -> Any:
    """The tensor with every element specified."""
    p, dense = parts(t), dense_of(t)
    ones = torch.ones_like(dense)
    if is_coo(t):
        pattern = dense_to_coo(ones, p.sparse_dim)
        return with_values(pattern, dense.reshape(parts(pattern).values._shape))
    pattern = dense_to_compressed(ones, layout_of(t), blocksize(t), p.dense_dim, "gradcheck")
    from .mask import masked

    return masked(dense, pattern)


def _taken(t: Any, masked: bool) -> tuple[Any, Any]:
    """The values of a sparse tensor, to be differentiated, and how the tensor is made of them."""
    fixed = t.detach() if masked else _whole(t.detach())
    fixed = coalesced(fixed) if is_coo(fixed) else fixed
    p = parts(fixed)

    def made(values: Any) -> Any:
        if is_coo(fixed):
            return make_coo(p.plain, values, fixed._shape, True, False)
        return make_compressed(p.compressed, p.plain, values, fixed._shape, p.layout, False)

    return p.values.clone().requires_grad_(t.requires_grad), made


def _dense_results(got: Any, masked: bool) -> Any:
    if isinstance(got, (tuple, list)):
        return tuple(_dense_results(g, masked) for g in got)
    if is_sparse(got):
        return got.to_dense(masked_grad=masked)
    return got


def by_values(func: Any, given: Any, masked: bool) -> tuple[Any, tuple[Any, ...]]:
    """A function of values, and the values, in the place of one of sparse tensors."""
    values: list[Any] = []
    makers: list[Any] = []
    for x in given:
        value, made = _taken(x, masked) if is_sparse(x) else (x, None)
        values.append(value)
        makers.append(made)

    def wrapped(*args: Any) -> Any:
        whole = [a if made is None else made(a) for a, made in zip(args, makers)]
        return _dense_results(func(*whole), masked)

    return wrapped, tuple(values)


def as_sparse_gradcheck(gradcheck: Any) -> Any:
    """A gradcheck that takes sparse arguments."""

    @functools.wraps(gradcheck)
    def checked(func: Any, inputs: Any, **options: Any) -> Any:
        masked = bool(options.pop("masked", False))
        wrapped, values = by_values(func, inputs if isinstance(inputs, (tuple, list)) else (inputs,), masked)
        return gradcheck(wrapped, values, **options)

    return checked
