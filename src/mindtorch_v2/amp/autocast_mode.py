"""`autocast`, and what autograd Functions need to live in it.

Invariant: leaving a block puts back the state of its device type that was found on entering, and the outermost block
forgets the cached casts.
"""

from __future__ import annotations

import collections.abc
import functools
import sys
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, TypeVar

from .. import _autocast as state
from .._autocast import is_autocast_available as is_autocast_available
from .._dtype import bfloat16, dtype, float16, float64
from .._tensor import Tensor

__all__ = ["autocast", "autocast_decorator", "custom_bwd", "custom_fwd", "is_autocast_available"]

_F = TypeVar("_F", bound=Callable[..., Any])


def autocast_decorator(autocast_instance: autocast, func: _F) -> _F:
    """`func`, run inside the given block."""

    @functools.wraps(func)
    def decorate_autocast(*args: Any, **kwargs: Any) -> Any:
        with autocast_instance:
            return func(*args, **kwargs)

    decorated: Any = decorate_autocast
    setattr(decorated, "__script_unsupported", "@autocast() decorator is not supported in script mode")
    return decorated  # type: ignore[no-any-return]


def _check_type(device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


class autocast:
    """A block, or the decorator of a function, in which operators run in the dtype that suits each best."""

    def __init__(
        self, device_type: str, dtype: dtype | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        _check_type(device_type)
        self.fast_dtype = state.get_autocast_dtype(device_type) if dtype is None else dtype
        if not is_autocast_available(device_type):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self.device = device_type
        self.custom_backend_name = "npu"
        supported = [bfloat16, float16]
        if device_type == "npu":
            from .. import npu

            self.custom_device_mod = npu
            supported = npu.get_amp_supported_dtype()
        self._cache_enabled = state.is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        if enabled and device_type == "cuda":
            warnings.warn("CUDA is not available or torch_xla is imported. Disabling autocast.", stacklevel=2)
            enabled = False
        elif enabled and self.fast_dtype not in supported:
            name = device_type if device_type == self.custom_backend_name else device_type.upper()
            warnings.warn(
                f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{name} Autocast only supports dtypes of {', '.join(map(str, supported))} currently.",
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled

    def __enter__(self) -> autocast:
        found = state.enter(self.device, self._enabled, self.fast_dtype, self._cache_enabled)
        self.prev, self.prev_fastdtype, self.prev_cache_enabled = found
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> Literal[False]:
        state.leave(self.device, self.prev, self.prev_fastdtype, self.prev_cache_enabled)
        return False

    def __call__(self, func: _F) -> _F:
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. Did you mean to use autocast as "
                "a context manager? For example:\n    with torch.autocast(device_type=...):\n"
                "        output = model(input)"
            )
        return autocast_decorator(self, func)


class _UnmanagedAutocast(autocast):
    """One that no `with` statement leaves."""


def _enter_autocast(*vals: Any) -> autocast:
    return _UnmanagedAutocast(*vals).__enter__()


def _exit_autocast(mode: autocast) -> None:
    mode.__exit__(None, None, None)


# -- autograd Functions -------------------------------------------------------------------------------------------
def _cast(value: Any, device_type: str, to: dtype) -> Any:
    """The floating point tensors of a device in `value`, however deep in containers, as dtype `to`."""
    if isinstance(value, Tensor):
        wanted = value.is_floating_point() and value.device.type == device_type and value.dtype is not float64
        return value.to(to) if wanted else value
    if isinstance(value, (str, bytes)):
        return value
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        return value
    if isinstance(value, collections.abc.Mapping):
        return {_cast(k, device_type, to): _cast(v, device_type, to) for k, v in value.items()}
    if isinstance(value, collections.abc.Iterable):
        items = (_cast(v, device_type, to) for v in value)
        kind: Any = type(value)
        return kind(items) if isinstance(value, (list, tuple)) else items
    return value


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: dtype | None = None) -> Any:
    """Decorates `forward` of an autograd Function. With `cast_inputs`, under autocast, tensors are cast to that dtype
    and `forward` runs with autocast off."""
    _check_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorate_fwd(*args: Any, **kwargs: Any) -> Any:
        context = args[0]
        context._dtype = state.get_autocast_dtype(device_type)
        on = state.is_autocast_enabled(device_type)
        context._fwd_used_autocast = on and cast_inputs is None
        if cast_inputs is None or not on:
            return fwd(*args, **kwargs)
        with autocast(device_type=device_type, enabled=False):
            return fwd(*_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return decorate_fwd


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Decorates `backward` of an autograd Function: it runs under the autocast that `forward` ran under."""
    _check_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorate_bwd(*args: Any, **kwargs: Any) -> Any:
        context = args[0]
        with autocast(device_type=device_type, enabled=context._fwd_used_autocast, dtype=context._dtype):
            return bwd(*args, **kwargs)

    return decorate_bwd
