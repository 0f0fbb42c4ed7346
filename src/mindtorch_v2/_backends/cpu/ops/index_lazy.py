"""CPU line of writing by flat indices."""
from __future__ import annotations

from typing import Any

from .... import _native
from ...._ops.determinism import alert
from ...._ops.index_lazy import put_places
from ...._tensor_base import is_contiguous, numel
from ...common.runtime import copy_same_device
from ..kernels.dense import dense
from ..lines import cpu, into


def _put(out: Any, self: Any, index: Any, source: Any, accumulate: bool) -> None:
    if not accumulate:
        alert("put_", self)
    n, count = numel(self), numel(index)
    apart = out._storage is not index._storage and out._storage is not source._storage
    if not (count and apart and is_contiguous(out)):
        copy_same_device(out, put_places(self, index, source, accumulate))
        return
    if out is not self:
        copy_same_device(out, self)
    at, values = dense(index), dense(source)
    try:
        _native.scatter(
            out._storage, int(out._offset), (1,), out._dtype.code,
            at._storage, int(at._offset), (1,), at._dtype.code,
            values._storage, int(values._offset), (1,), values._dtype.code,
            (count,), (n,), 0, 1 if accumulate else 0)
    except (IndexError, RuntimeError):  # nothing was written: some count from the end, or one is out of range
        copy_same_device(out, put_places(self, index, source, accumulate))


cpu("put", into(_put, aliasing=True, calls_ops=True))
