"""Loss scaling: gradients are unscaled and looked at for infs and NaNs in one call; the scale follows what was found.

Invariant: gradients are looked at as they came, before they are multiplied; nothing here waits for a device.
"""
from __future__ import annotations

from typing import Any

from .._dtype import float32, int32
from .._tensor_base import numel
from .table import composite


def _one(t: Any, name: str, kind: Any) -> None:
    if numel(t) != 1:
        raise RuntimeError(f"{name} must be a 1-element tensor.")
    if t._dtype is not kind:
        raise RuntimeError(f"{name} must be {'an int' if kind is int32 else 'a float'} tensor.")


def _unscale(self: Any, found_inf: Any, inv_scale: Any) -> None:
    if not self:
        return
    _one(inv_scale, "inv_scale", float32)
    _one(found_inf, "found_inf", float32)
    # PyTorch counts these writes in no version.
    found_inf = found_inf.data
    for t in self:
        dt = t._dtype
        if not dt.is_floating_point:
            raise NotImplementedError(
                f'"_amp_foreach_non_finite_check_and_unscale_cpu" not implemented for \'{dt.scalar_name}\'')
        if numel(t) == 0:
            continue
        low, high = t.detach().aminmax()
        infinite = (low.isfinite() & high.isfinite()).logical_not()
        found_inf.masked_fill_(infinite.reshape(found_inf._shape), 1.0)
        if dt.itemsize == 2:
            # The factor is not rounded to the narrow type.
            t.data.copy_(t.detach().to(float32) * inv_scale.reshape(()))
        else:
            t.data.mul_(inv_scale.reshape(()))


composite("_amp_foreach_non_finite_check_and_unscale_(Tensor(a!)[] self, Tensor(b!) found_inf, Tensor inv_scale) -> ()",
          _unscale, method=False)


def _update(self: Any, growth_tracker: Any, found_inf: Any, scale_growth_factor: float, scale_backoff_factor: float,
            growth_interval: int) -> Any:
    _one(growth_tracker, "growth_tracker", int32)
    _one(self, "current_scale", float32)
    _one(found_inf, "found_inf", float32)
    found = found_inf.reshape(self._shape) != 0
    wide = self.detach().double()
    grown = (wide * scale_growth_factor).to(float32)
    good = (growth_tracker.reshape(self._shape) + 1).masked_fill(found, 0)
    grows = (good == growth_interval).logical_and(found.logical_not())
    growth_tracker.data.copy_(good.masked_fill(grows, 0).reshape(growth_tracker._shape))
    kept = self.detach().where(grows.logical_and(grown.isfinite()).logical_not(), grown)
    return self.copy_((wide * scale_backoff_factor).to(float32).where(found, kept))


composite("_amp_update_scale_(Tensor(a!) self, Tensor(b!) growth_tracker, Tensor found_inf, float scale_growth_factor, "
          "float scale_backoff_factor, int growth_interval) -> Tensor(a!)", _update, method=False)
