"""The classes that `torch.cpu.amp`, `torch.cuda.amp` and `torch.npu.amp` had before `torch.amp` took a device type."""

from __future__ import annotations

import warnings
from typing import Any

from .._dtype import bfloat16, dtype, float16
from . import autocast_mode, grad_scaler


def say(kind: str, call: str, instead: str) -> None:
    """Warn, at the caller of the caller."""
    warnings.warn(
        f"`torch.{kind}.amp.{call}` is deprecated. Please use `torch.amp.{instead}` instead.",
        category=FutureWarning,
        stacklevel=3,
    )


def classes(kind: str, module: str) -> tuple[type, type]:
    """`autocast` and `GradScaler` of a device type."""
    default = bfloat16 if kind == "cpu" else float16

    class autocast(autocast_mode.autocast):
        """`torch.amp.autocast` of one device type."""

        def __init__(self, enabled: bool = True, dtype: dtype = default, cache_enabled: bool = True) -> None:
            say(kind, "autocast(args...)", f"autocast('{kind}', args...)")
            super().__init__(kind, enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)

    class GradScaler(grad_scaler.GradScaler):
        """`torch.amp.GradScaler` of one device type."""

        def __init__(
            self,
            init_scale: float = 2.0**16,
            growth_factor: float = 2.0,
            backoff_factor: float = 0.5,
            growth_interval: int = 2000,
            enabled: bool = True,
        ) -> None:
            say(kind, "GradScaler(args...)", f"GradScaler('{kind}', args...)")
            super().__init__(kind, init_scale, growth_factor, backoff_factor, growth_interval, enabled)

    made: list[Any] = [autocast, GradScaler]
    for cls, file in zip(made, ("autocast_mode", "grad_scaler")):
        cls.__module__, cls.__qualname__ = f"{module}.{file}", cls.__name__
    return autocast, GradScaler


def decorators(kind: str, module: str) -> tuple[Any, Any]:
    """`custom_fwd` and `custom_bwd` of a device type."""

    def custom_fwd(fwd: Any = None, *, cast_inputs: dtype | None = None) -> Any:
        """`torch.amp.custom_fwd` of one device type."""
        say(kind, "custom_fwd(args...)", f"custom_fwd(args..., device_type='{kind}')")
        return autocast_mode.custom_fwd(fwd, device_type=kind, cast_inputs=cast_inputs)

    def custom_bwd(bwd: Any) -> Any:
        """`torch.amp.custom_bwd` of one device type."""
        say(kind, "custom_bwd(args...)", f"custom_bwd(args..., device_type='{kind}')")
        return autocast_mode.custom_bwd(bwd, device_type=kind)

    for fn in (custom_fwd, custom_bwd):
        fn.__module__, fn.__qualname__ = f"{module}.autocast_mode", fn.__name__
    return custom_fwd, custom_bwd
