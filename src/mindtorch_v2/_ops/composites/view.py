"""Views and copies made of other views: reshape, flatten, narrow, contiguous.

Invariant: memory is copied only where no strides can show the same elements.
"""

from __future__ import annotations

from typing import Any, Final, final

from ..._backends.common.view import infer_size
from ..._core_operators import CORE
from ..._dispatch.op import Kernel, Op
from ..._layout import contiguous_format
from ..._mypyc import i64
from ..._strides import Ints, view_strides
from ..._tensor_base import TensorBase, is_contiguous, numel
from ..._warn import warn_once
from ..rules.base import wrap_dim
from ..rules.layout import is_contiguous_as
from .rows import ROWS


def reshaped(src: TensorBase, shape: Ints) -> Any:
    """A view where the strides allow one, else a copy."""
    if not is_contiguous(src):
        total = numel(src)
        shape = infer_size(shape, total)
        strides = view_strides(src._shape, src._stride, shape, total)
        if strides is None:
            return ROWS.unsafe_view.call((ROWS.clone.call((src, contiguous_format)), shape))
        return ROWS.reshape_alias.call((src, shape, strides))
    return ROWS.view.call((src, shape))


@final
class ReshapeKernel(Kernel):
    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        src = args[0]
        assert isinstance(src, TensorBase)
        return reshaped(src, args[1])


@final
class FlattenKernel(Kernel):
    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        src = args[0]
        assert isinstance(src, TensorBase)
        shape = src._shape
        n = len(shape)
        start = wrap_dim(args[1], n)
        end = wrap_dim(args[2], n)
        if start > end:
            raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
        if n == 0:
            return reshaped(src, (1,))
        if start == end:
            return src
        sizes: list[int] = []
        length = 1
        for i, s in enumerate(shape):
            if i < start or i > end:
                sizes.append(s)
            else:
                length *= s
                if i == end:
                    sizes.append(length)
        return reshaped(src, tuple(sizes))


# Getters of properties: unlike methods these may be compiled functions.
def numpy_T(self: TensorBase) -> Any:
    """The dimensions in reverse order."""
    n = len(self._shape)
    if n == 2:
        return ROWS.permute.call((self, (1, 0)))
    if n == 0:
        warn_once("Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases.")
    else:
        warn_once(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will "
            "throw an error in a future release. Consider `x.mT` to transpose batches of matrices or "
            "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor."
        )
    return ROWS.permute.call((self, tuple([n - 1 - i for i in range(n)])))


def mT(self: TensorBase) -> Any:
    """The last two dimensions exchanged."""
    n = len(self._shape)
    if n == 1:
        raise RuntimeError("tensor.mT is only supported on matrices or batches of matrices. Got 1-D tensor.")
    if n == 0:
        warn_once("Tensor.mT is deprecated on 0-D tensors. This function is the identity in these cases.")
        return self
    return ROWS.transpose.call((self, -2, -1))


@final
class ContiguousKernel(Kernel):
    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        src = args[0]
        assert isinstance(src, TensorBase)
        form = args[1]
        if is_contiguous_as(src, form):
            return src
        return ROWS.clone.call((src, contiguous_format if form is None else form))


@final
class NarrowKernel(Kernel):
    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        src = args[0]
        assert isinstance(src, TensorBase)
        start: i64 = args[2]
        length: i64 = args[3]
        if len(src._shape) == 0:
            raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
        if length < 0:
            raise RuntimeError("narrow(): length must be non-negative.")
        size: i64 = src._shape[wrap_dim(args[1], len(src._shape))]
        if start < -size or start > size:
            raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {start})")
        if start < 0:
            start += size
        if start > size - length:
            raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
        return ROWS.slice.call((src, args[1], int(start), int(start + length), 1))


def move_one(self: TensorBase, source: int, destination: int) -> Any:
    """movedim of one dimension"""
    n = len(self._shape)
    src = wrap_dim(source, n)
    dst = wrap_dim(destination, n)
    if n == 0:
        return CORE.alias.call((self,))
    order = list(range(n))
    order.insert(dst, order.pop(src))
    return ROWS.permute.call((self, tuple(order)))


def move_many(self: TensorBase, source: Ints, destination: Ints) -> Any:
    """movedim of several dimensions"""
    n = len(self._shape)
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(source)} dims) should contain the same number "
            f"of dims as destination ({list(destination)} dims)"
        )
    src = [wrap_dim(d, n) for d in source]
    dst = [wrap_dim(d, n) for d in destination]
    if len(set(src)) != len(src):
        raise RuntimeError(f"movedim: repeated dim in `source` ({list(source)})")
    if len(set(dst)) != len(dst):
        raise RuntimeError(f"movedim: repeated dim in `destination` ({list(destination)})")
    if n == 0:
        return CORE.alias.call((self,))
    order = [-1] * n
    for i in range(len(src)):
        order[dst[i]] = src[i]
    place = 0
    for i in range(n):
        if i not in src:
            while order[place] >= 0:
                place += 1
            order[place] = i
    return ROWS.permute.call((self, tuple(order)))


@final
class TransposeAlias(Kernel):
    """swapaxes and swapdims"""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        return ROWS.transpose.call(args)


RESHAPE: Final = ReshapeKernel()
FLATTEN: Final = FlattenKernel()
SWAP: Final = TransposeAlias()
CONTIGUOUS: Final = ContiguousKernel()
NARROW: Final = NarrowKernel()
