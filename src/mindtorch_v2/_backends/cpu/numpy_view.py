"""NumPy views of CPU tensors: the same memory, no copy.

Invariant: the array keeps the storage alive and where it is, and has the tensor's shape and strides.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

from ... import _native
from ..._dispatch.keys import CPU as CPU_KEY
from ..._dtype import dtype as DType
from ..._mypyc import i64
from ..._tensor_base import TensorBase, is_contiguous, numel
from ..common.kernels import bounds_checked

_MOST_BYTES: Final = 2**63 - 1
_MOST_DIMS: Final = 64
_wrap: Final[Any] = _native.Storage.wrap
_Storage: Final[Any] = _native.Storage


def np_view(t: TensorBase) -> Any:
    """The tensor's memory as an ndarray."""
    import numpy

    if len(t._shape) > _MOST_DIMS:
        raise RuntimeError(f"only tensors with up to {_MOST_DIMS} dims are supported")
    dt = t._dtype.np
    item = int(t._dtype.itemsize)
    count = numel(t)
    if count > 0 and is_contiguous(t):
        held: i64 = t._storage.nbytes // item
        if count > held - t._offset:  # the storage may have shrunk since the tensor was made
            bounds_checked(t, t._shape, t._stride, t._offset)
        return numpy.ndarray(t._shape, dt, _part(t._storage), t._offset * item)
    if count > 0:
        bounds_checked(t, t._shape, t._stride, t._offset)
    if prod([n for n in t._shape if n]) > _MOST_BYTES // item:
        # NumPy counts the bytes of elements that share memory, and dimensions besides an empty one.
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(t._shape)} and strides={list(t._stride)}"
        )
    if count == 0:
        return numpy.empty(t._shape, dt)
    return numpy.ndarray(t._shape, dt, _part(t._storage), t._offset * item, tuple([s * item for s in t._stride]))


def _part(storage: Any) -> Any:
    """A part of the storage, and not the storage: NumPy lets go of a buffer as soon as it has the address, but keeps
    its owner, and a storage stays where it is while parts of it live."""
    return storage.part() if isinstance(storage, _Storage) else _wrap(storage.ptr, storage.nbytes, storage)


# Dtypes that NumPy has and somebody asked for.
KNOWN: Final[dict[DType, bool]] = {}


def plain_array(t: TensorBase) -> Any:
    """`Tensor.numpy` of a tensor on the CPU that has no history and is no view; None where more is to be looked at."""
    if t._keys != CPU_KEY or t._dtype not in KNOWN:
        return None
    t._storage.fix()  # for good, as in PyTorch: the array may be gone long after the memory was to move
    return np_view(t)
