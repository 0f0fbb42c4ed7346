"""CPU lines of group norm: a group is a row of layer norm without parameters; those come behind, by channel.

Invariant: nothing is computed of nothing here; the row's own formula says what the statistics of no elements are.
"""
from __future__ import annotations

from typing import Any

from .... import _native
from ...._dtype import dtype
from ...._ops.batch_norm import group_norm_in_parts
from ...._tensor_base import TensorBase, numel
from ..kernels.dense import deliver, dense_as, fresh, target, wide_dtype
from ..lines import cpu, into

_layer_norm: Any = _native.layer_norm
_ternary: Any = _native.ternary


def _group_norm(outs: Any, input: Any, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int,
                eps: float) -> None:
    if numel(input) == 0:
        for out, part in zip(outs, group_norm_in_parts(input, weight, bias, N, C, HxW, group, eps)):
            deliver(out, part)
        return
    dt = wide_dtype(input._dtype)
    x, y = dense_as(input, dt), target(outs[0], dt)
    mean, rstd = fresh((N, group), dt), fresh((N, group), dt)
    none = (None, 0, (), 0)
    _layer_norm(*_flat(x), *none, *none, *_flat(y), *_flat(mean), *_flat(rstd), N * group, C // group * HxW, eps)
    if weight is not None or bias is not None:
        # bias + y * weight
        shape, strides = (N, C, HxW), (C * HxW, HxW, 1)
        of_y = (y._storage, int(y._offset), strides, dt.code)
        _ternary(_native.ADDCMUL, *_by_channel(bias, 0, dt), *of_y, *_by_channel(weight, 1, dt), *of_y, shape, dt.code,
                 1)
    deliver(outs[0], y)
    deliver(outs[1], mean)
    deliver(outs[2], rstd)


def _flat(t: TensorBase) -> tuple[Any, ...]:
    return t._storage, int(t._offset), (), t._dtype.code


def _by_channel(t: TensorBase | None, absent: int, dt: dtype) -> tuple[Any, ...]:
    """A vector that goes over the channels, or the number that stands for none."""
    if t is None:
        return absent, 0, (), 0
    given = dense_as(t, dt)
    return given._storage, int(given._offset), (0, 1, 0), dt.code


cpu("native_group_norm", into(_group_norm))
