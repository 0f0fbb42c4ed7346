"""Grad mode and inference mode as context managers and decorators.

Invariant: leaving a block restores what the mode was when it was entered, in the thread that entered it; everything
else lives in `_dispatch.state`.
"""

from __future__ import annotations

import functools
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from .._autograd.leaf_policy import enforce_layout, layout_enforced
from .._dispatch.state import (
    RecordingOff,
    RecordingOn,
    is_grad_enabled,
    is_inference_mode,
    set_modes,
    swap_grad,
    swap_inference,
)

__all__ = [
    "enable_grad",
    "enforce_grad_layout_policy",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]

F = TypeVar("F", bound=Callable[..., Any])


_new_off: Any = RecordingOff.__new__
_new_on: Any = RecordingOn.__new__


class _Decorator:
    """What the modes share: use as a decorator of functions, generators and (deprecated) classes."""

    __slots__ = ()

    def clone(self) -> Any:
        """A context of the same kind for one call of a decorated function."""
        return type(self)()

    def __call__(self, orig_func: F) -> F:
        decorated: F = _decorate(self.clone, orig_func)
        return decorated


def _decorate(make: Callable[[], Any], func: Any) -> Any:
    if isinstance(func, type):
        warnings.warn(
            "Decorating classes is deprecated and will be disabled in future versions. You should only decorate "
            "functions or methods. To preserve the current behavior of class decoration, you can directly decorate the "
            "`__init__` method and nothing else.",
            FutureWarning,
            stacklevel=3,
        )
        cls: Any = func
        cls.__init__ = _decorate(make, cls.__init__)
        return cls
    if _is_generator(func):
        return _wrap_generator(make, func)

    @functools.wraps(func)
    def decorate_context(*args: Any, **kwargs: Any) -> Any:
        with make():
            return func(*args, **kwargs)

    return decorate_context


def _is_generator(func: Any) -> bool:
    """`inspect.isgeneratorfunction` without its module: a function, method or partial whose body yields."""
    while isinstance(func, functools.partial):
        func = func.func
    code = getattr(getattr(func, "__func__", func), "__code__", None)
    return code is not None and bool(code.co_flags & 0x20)


def _wrap_generator(make: Callable[[], Any], func: Any) -> Any:
    """The mode holds while the generator runs, and not while its consumer does."""

    @functools.wraps(func)
    def generator_context(*args: Any, **kwargs: Any) -> Any:
        gen = func(*args, **kwargs)
        try:
            with make():
                response = gen.send(None)
            while True:
                try:
                    request = yield response
                except GeneratorExit:
                    with make():
                        gen.close()
                    raise
                except BaseException:
                    with make():
                        response = gen.throw(*sys.exc_info())
                else:
                    with make():
                        response = gen.send(request)
        except StopIteration as stop:
            return stop.value

    return generator_context


class no_grad(RecordingOff, _Decorator):
    """Nothing is recorded inside; results do not require grad. Factories may still make leaves that do."""

    def __new__(cls, orig_func: Any = None) -> Any:
        made = _new_off(cls)
        return made if orig_func is None else made(orig_func)


class enable_grad(RecordingOn, _Decorator):
    """Recording is on inside, also within `no_grad`."""

    def __new__(cls, orig_func: Any = None) -> Any:
        made = _new_on(cls)
        return made if orig_func is None else made(orig_func)


class set_grad_enabled(_Decorator):
    """Switches recording when it is made; as a context manager it also switches back."""

    __slots__ = ("mode", "prev")

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(
                f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {type(mode).__name__}"
            )
        self.mode = mode
        self.prev = swap_grad(mode)

    def __call__(self, orig_func: F) -> F:
        swap_grad(self.prev)
        return super().__call__(orig_func)

    def __enter__(self) -> None:
        swap_grad(self.mode)

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        swap_grad(self.prev)

    def __str__(self) -> str:
        return f"set_grad_enabled(mode={self.mode})"

    __repr__ = __str__

    def clone(self) -> set_grad_enabled:
        return set_grad_enabled(self.mode)


class inference_mode(_Decorator):
    """Like `no_grad`, and tensors made inside keep no version and can never be recorded."""

    __slots__ = ("mode", "prev")
    mode: bool

    def __new__(cls, mode: Any = True) -> Any:
        if isinstance(mode, bool):
            made = object.__new__(cls)
            made.mode = mode
            return made
        return cls(True)(mode)

    def __enter__(self) -> None:
        self.prev = swap_inference(self.mode)

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        set_modes(self.prev)

    def clone(self) -> Any:
        return type(self)(self.mode)


class enforce_grad_layout_policy(_Decorator):
    """Says, when it is made, whether a first gradient takes its leaf's strides even if that costs a copy (the default)
    or stays as it is; as a context manager it also switches back."""

    __slots__ = ("mode", "prev")

    def __init__(self, enable: bool = True) -> None:
        self.mode, self.prev = bool(enable), layout_enforced()
        enforce_layout(self.mode)

    def __call__(self, orig_func: F) -> F:
        enforce_layout(self.prev)
        return super().__call__(orig_func)

    def __enter__(self) -> None:
        """What the argument says was done when this was made."""

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        enforce_layout(self.prev)

    def clone(self) -> enforce_grad_layout_policy:
        return enforce_grad_layout_policy(self.mode)


def is_inference_mode_enabled() -> bool:
    return is_inference_mode()


class _Threads(threading.local):
    """What a thread was told. Whether a backward pass may use several threads: the engine runs in the calling one, this
    is the permission. Whether views are to be followed by their own functions: they always are."""

    allowed = True
    view_replay = False


_THREADS = _Threads()


def is_multithreading_enabled() -> bool:
    """Whether a backward pass of this thread may use several threads."""
    return _THREADS.allowed


class set_multithreading_enabled(_Decorator):
    """Says whether a backward pass of this thread may use several threads, when it is made; as a context manager it
    also switches back. The engine here never does."""

    __slots__ = ("mode", "prev")

    def __init__(self, mode: Any) -> None:
        if not isinstance(mode, bool):
            kind = type(mode).__name__
            raise TypeError(f"set_multithreading_enabled(): argument 'enabled' (position 1) must be bool, not {kind}")
        self.mode, self.prev = mode, _THREADS.allowed
        _THREADS.allowed = mode

    def __call__(self, orig_func: F) -> F:
        _THREADS.allowed = self.prev
        return super().__call__(orig_func)

    def __enter__(self) -> None:
        """What the argument says was done when this was made."""

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        _THREADS.allowed = self.prev

    def clone(self) -> set_multithreading_enabled:
        return set_multithreading_enabled(self.mode)


def _is_view_replay_enabled() -> bool:
    """What `_force_original_view_tracking` said last."""
    return _THREADS.view_replay


is_view_replay_enabled = _is_view_replay_enabled


class _force_original_view_tracking(_Decorator):
    """Says, when it is made, that views of views are followed by the functions that made them and not by strides.

    They are always followed so here; what was said is remembered, and as a context manager taken back.
    """

    __slots__ = ("mode", "prev")

    def __init__(self, mode: bool) -> None:
        self.prev, self.mode = _THREADS.view_replay, mode
        _THREADS.view_replay = mode

    def __call__(self, orig_func: F) -> F:
        _THREADS.view_replay = self.prev
        return super().__call__(orig_func)

    def __enter__(self) -> None:
        """What the argument says was done when this was made."""

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        _THREADS.view_replay = self.prev

    def clone(self) -> _force_original_view_tracking:
        return _force_original_view_tracking(self.mode)


def _unsafe_set_version_counter(tensors: tuple[Any, ...], versions: tuple[int, ...]) -> None:
    """Set how often memory is said to have been written; what was saved of it is then no longer watched."""
    for t, value in zip(tensors, versions, strict=True):
        if value < 0:
            raise RuntimeError(f"Cannot set a version_counter to a value below 0: {value}")
        t._version_counter.value = value


class _unsafe_preserve_version_counter(_Decorator):
    """Writes inside are not counted."""

    __slots__ = ("tensors", "prev_versions")

    def __init__(self, tensors: Any) -> None:
        self.tensors: tuple[Any, ...] = tensors if isinstance(tensors, tuple) else (tensors,)
        self.prev_versions: tuple[int, ...] = tuple(t._version for t in self.tensors)

    def __enter__(self) -> None:
        """The versions to come back to were read when this was made."""

    def __exit__(self, *exc: object) -> None:
        _unsafe_set_version_counter(self.tensors, self.prev_versions)

    def clone(self) -> _unsafe_preserve_version_counter:
        return _unsafe_preserve_version_counter(self.tensors)
