"""Loss scaling: gradients are computed of a loss times a scale, divided again before the step, and checked for infs.

Invariant: between two `update()` an optimizer goes READY, UNSCALED, STEPPED and never back; a step whose gradients were
not finite is skipped. Only `get_scale`, `state_dict` and the question whether to step wait for a device.
"""

from __future__ import annotations

import inspect
import warnings
from collections import abc, defaultdict
from enum import Enum
from typing import TYPE_CHECKING, Any

import mindtorch_v2 as torch

from .._device import device
from .._dtype import dtype
from .._tensor import Tensor

if TYPE_CHECKING:
    from ..optim import Optimizer

__all__ = ["GradScaler", "OptState"]


class _MultiDeviceReplicator:
    """A tensor, and copies of it where they are asked for."""

    def __init__(self, master_tensor: Tensor) -> None:
        self.master = master_tensor
        self._per_device_tensors: dict[device, Tensor] = {}

    def get(self, device: device) -> Tensor:
        found = self._per_device_tensors.get(device)
        if found is None:
            found = self._per_device_tensors[device] = self.master.to(device=device, non_blocking=True, copy=True)
        return found


class OptState(Enum):
    """How far an optimizer is in this iteration."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """`scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()`."""

    _takes_halves = False

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if device == "cuda" and enabled:
            warnings.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2)
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        # Made by the first `scale()`, which knows the device.
        self._scale: Tensor | None = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker: Tensor | None = None
        self._per_optimizer_states: dict[int, dict[str, Any]] = defaultdict(_refresh_per_optimizer_state)

    # -- scaling --------------------------------------------------------------------------------------------------
    def _check_scale_growth_tracker(self, funcname: str) -> tuple[Tensor, Tensor]:
        for name in ("_scale", "_growth_tracker"):
            if getattr(self, name) is None:
                raise AssertionError(
                    f"Attempted {funcname} but {name} is None.  This may indicate your script did not use "
                    "scaler.scale(loss or outputs) earlier in the iteration."
                )
        assert self._scale is not None and self._growth_tracker is not None
        return self._scale, self._growth_tracker

    def _lazy_init_scale_growth_tracker(self, dev: device) -> None:
        if self._growth_tracker is not None:
            raise AssertionError("_growth_tracker initialized before _scale")
        self._scale = torch.full((), self._init_scale, dtype=torch.float32, device=dev)
        self._growth_tracker = torch.full((), self._init_growth_tracker, dtype=torch.int32, device=dev)

    def _scale_for(self, dev: device) -> Tensor:
        if self._scale is None:
            self._lazy_init_scale_growth_tracker(dev)
        assert self._scale is not None
        return self._scale

    def scale(self, outputs: Any) -> Any:
        """A tensor, or tensors however deep in lists and tuples, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale_for(outputs.device).to(device=outputs.device, non_blocking=True)
        return self._scaled(outputs, [])

    def _scaled(self, value: Any, copies: list[_MultiDeviceReplicator]) -> Any:
        if isinstance(value, Tensor):
            if not copies:
                copies.append(_MultiDeviceReplicator(self._scale_for(value.device)))
            return value * copies[0].get(value.device)
        if isinstance(value, abc.Iterable):
            items = (self._scaled(v, copies) for v in value)
            kind: Any = type(value)
            return kind(items) if isinstance(value, (list, tuple)) else items
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    # -- unscaling ------------------------------------------------------------------------------------------------
    def _unscale_grads_(
        self, optimizer: Optimizer, inv_scale: Tensor, found_inf: Tensor, allow_fp16: bool
    ) -> dict[device, Tensor]:
        """Multiply all gradients by `inv_scale`; one call for each device and dtype."""
        scales, infs = _MultiDeviceReplicator(inv_scale), _MultiDeviceReplicator(found_inf)
        grads: dict[device, dict[dtype, list[Tensor]]] = {}
        with torch.no_grad():
            for group in optimizer.param_groups:
                for param in group["params"]:
                    if not isinstance(param, Tensor):
                        raise AssertionError(f"expected param to be torch.Tensor, got {type(param).__name__}")
                    grad: Any = param.grad
                    if grad is None:
                        continue
                    if not allow_fp16 and grad.dtype is torch.float16:
                        raise ValueError("Attempting to unscale FP16 gradients.")
                    grads.setdefault(grad.device, {}).setdefault(grad.dtype, []).append(grad)
            for where, by_dtype in grads.items():
                for several in by_dtype.values():
                    torch._amp_foreach_non_finite_check_and_unscale_(several, infs.get(where), scales.get(where))
        return infs._per_device_tensors

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, to clip them before `step`."""
        if not self._enabled:
            return
        scale, _ = self._check_scale_growth_tracker("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        # In float64: the reciprocal of a float32 need not round as a division does.
        inv_scale = scale.double().reciprocal().float()
        found_inf = torch.full((), 0.0, dtype=torch.float32, device=scale.device)
        found = self._unscale_grads_(optimizer, inv_scale, found_inf, self._takes_halves)
        state["found_inf_per_device"] = self._known(found, found_inf)
        state["stage"] = OptState.UNSCALED

    def _known(self, found: dict[device, Tensor], none: Tensor) -> dict[device, Tensor]:
        """Whether gradients on each device were not finite, as it counts for the step."""
        return found

    # -- stepping -------------------------------------------------------------------------------------------------
    def _maybe_opt_step(self, optimizer: Optimizer, optimizer_state: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        if sum(v.item() for v in optimizer_state["found_inf_per_device"].values()):
            return None
        return optimizer.step(*args, **kwargs)

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """`optimizer.step()` with unscaled gradients, or nothing if one of them is not finite."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale_growth_tracker("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._step_of_its_own(optimizer, state, args, kwargs)
        else:
            if state["stage"] is OptState.READY:
                self.unscale_(optimizer)
            if len(state["found_inf_per_device"]) == 0:
                raise AssertionError("No inf checks were recorded for this optimizer.")
            result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _step_of_its_own(self, optimizer: Any, state: dict[str, Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """The step of an optimizer that unscales, and skips, by itself: it finds `grad_scale` and `found_inf` on
        itself, or takes the scaler as an argument, as older ones do."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the near "
                "future GradScaler registers `grad_scale: Tensor` and `found_inf: Tensor` to the passed optimizer and "
                "let the optimizer use them directly.",
                FutureWarning,
                stacklevel=3,
            )
            return optimizer.step(*args, **kwargs, grad_scaler=self)
        if state["stage"] is OptState.READY:
            self._check_inf_per_device(optimizer)
        scale = self._get_scale_async()
        if scale is None:
            raise AssertionError("_get_scale_async returned None")
        found: Any = sum(t.to(scale.device, non_blocking=True) for t in state["found_inf_per_device"].values())
        if state["stage"] is OptState.UNSCALED:
            optimizer.grad_scale = getattr(optimizer, "grad_scale", None)
        else:
            optimizer.grad_scale = scale * getattr(optimizer, "grad_scale", 1)
        optimizer.found_inf = found
        result = optimizer.step(*args, **kwargs)
        del optimizer.grad_scale
        del optimizer.found_inf
        return result

    def update(self, new_scale: Any = None) -> None:
        """Grow the scale after enough good iterations, shrink it after one with infs, or set it."""
        if not self._enabled:
            return
        scale, tracker = self._check_scale_growth_tracker("update")
        if isinstance(new_scale, float):
            scale.fill_(new_scale)
        elif new_scale is not None:
            if new_scale.device.type != self._device or new_scale.numel() != 1 or new_scale.requires_grad is True:
                raise AssertionError(
                    "new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with "
                    "requires_grad=False."
                )
            scale.copy_(new_scale)
        else:
            found = [
                t.to(device=scale.device, non_blocking=True)
                for state in self._per_optimizer_states.values()
                for t in state["found_inf_per_device"].values()
            ]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            for other in found[1:]:
                found[0] += other
            torch._amp_update_scale_(
                scale, tracker, found[0], self._growth_factor, self._backoff_factor, self._growth_interval
            )
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    # -- questions ------------------------------------------------------------------------------------------------
    def _get_scale_async(self) -> Tensor | None:
        return self._scale

    def get_scale(self) -> float:
        """The scale as a number, which waits for the device; 1.0 if scaling is off."""
        if not self._enabled:
            return 1.0
        scale = self._get_scale_async()
        return self._init_scale if scale is None else float(scale.item())

    def get_growth_factor(self) -> float:
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker.item())

    def is_enabled(self) -> bool:
        return self._enabled

    # -- saving ---------------------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` needs; empty if scaling is off."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            if len(self._per_optimizer_states) != 0:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                    "scaler.update()."
                )
            # Numbers instead of tensors: the copy makes its own on the device of its first `scale()`.
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = None
            state["_growth_tracker"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def _check_inf_per_device(self, optimizer: Optimizer) -> dict[device, Tensor]:
        scale, _ = self._check_scale_growth_tracker("_check_inf_per_device")
        one = torch.full((), 1.0, dtype=torch.float32, device=scale.device)
        found_inf = torch.full((), 0.0, dtype=torch.float32, device=scale.device)
        found = self._unscale_grads_(optimizer, one, found_inf, True)
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = found
        return found

    def _found_inf_per_device(self, optimizer: Optimizer) -> Any:
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]
