"""NumPy views of CPU tensors: the same memory, no copy.

Invariant: the array keeps the storage alive and has the tensor's shape and strides.
"""

from __future__ import annotations

from typing import Any

from ..._tensor_base import TensorBase, numel


def np_view(t: TensorBase) -> Any:
    """The tensor's memory as an ndarray."""
    import numpy

    dt = t._dtype.np
    if numel(t) == 0:
        return numpy.empty(t._shape, dt)
    item = dt.itemsize
    return numpy.ndarray(t._shape, dt, t._storage, t._offset * item, tuple([s * item for s in t._stride]))
