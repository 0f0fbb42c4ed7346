"""NPU lines of loss scaling: the vendor has a function for each half of it.

Invariant: as in `foreach`: the vendor gets row-major tensors of one dtype. What does not fit goes to the row's parts.
"""
from __future__ import annotations

from typing import Any

from ...._dtype import float32, int32
from ...._tensor_base import is_contiguous, numel
from ..kernels import MOST_DIMS
from ..lines import accepts_dtype, call, fused, npu

UNSCALE, UPDATE = "aclnnForeachNonFiniteCheckAndUnscale", "aclnnAmpUpdateScale"
# The vendor's limit on the length of a list.
_MOST = 256


def _plain(self: Any, found_inf: Any, inv_scale: Any) -> bool:
    return (len(self) > 0 and accepts_dtype(UNSCALE, self[0]) and _numbers(found_inf, inv_scale)
            and all(t._dtype is self[0]._dtype and t._device == found_inf._device and numel(t) > 0
                    and is_contiguous(t) and len(t._shape) <= MOST_DIMS for t in self))


def _numbers(*given: Any) -> bool:
    return all(numel(t) == 1 and t._dtype is float32 and t._device == given[0]._device for t in given)


def _unscale(self: Any, found_inf: Any, inv_scale: Any) -> None:
    for i in range(0, len(self), _MOST):
        call(UNSCALE, "_amp_foreach_non_finite_check_and_unscale_", list(self[i:i + _MOST]), found_inf, inv_scale)


def _update_fits(self: Any, growth_tracker: Any, found_inf: Any, *rest: Any) -> bool:
    return (_numbers(self, found_inf) and numel(growth_tracker) == 1 and growth_tracker._dtype is int32
            and growth_tracker._device == self._device)


def _update(self: Any, growth_tracker: Any, found_inf: Any, scale_growth_factor: float, scale_backoff_factor: float,
            growth_interval: int) -> Any:
    scale, good = self.detach().reshape((1,)), growth_tracker.reshape((1,))
    new_scale, new_good = scale.new_empty((1,)), good.new_empty((1,))
    call(UPDATE, "_amp_update_scale_", scale, good, found_inf.reshape((1,)), float(scale_growth_factor),
         float(scale_backoff_factor), growth_interval, new_scale, new_good)
    growth_tracker.data.copy_(new_good.reshape(growth_tracker._shape))
    return self.copy_(new_scale.reshape(self._shape))


npu("_amp_foreach_non_finite_check_and_unscale_", fused((UNSCALE,), _plain, _unscale))
npu("_amp_update_scale_", fused((UPDATE,), _update_fits, _update))
