"""`torch.compile` without a compiler: the program runs eagerly, as it is.

Invariants: arguments are checked as PyTorch checks them; a module is wrapped as PyTorch wraps it, so that names in
state_dict() and what unwraps modules agree; a function computes what it computed. One warning says so, once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import _inductor
from .._warn import warn
from ..nn import Module
from .backends import registry

_SAID: list[bool] = []


class OptimizedModule(Module):
    """A module given to `torch.compile`: runs it, and looks like it."""

    _orig_mod: Module

    def __init__(self, mod: Module, dynamo_ctx: Any = None) -> None:
        super().__init__()
        self._orig_mod = mod
        self.training = mod.training

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._orig_mod(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        # PyTorch's: what is not the wrapper's own is the module's.
        if (
            name == "training"
            or name in ("_orig_mod", "dynamo_ctx")
            or name in vars(self)
            or "_modules" not in vars(self)
        ):
            super().__setattr__(name, value)
            if name == "training" and "_orig_mod" in self._modules:
                self._orig_mod.training = value
            return
        setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        if name in vars(self) or name == "_orig_mod":
            super().__delattr__(name)
            return
        delattr(self._orig_mod, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __len__(self) -> int:
        inner: Any = self._orig_mod
        return len(inner)


def compiled(
    model: Any,
    *,
    fullgraph: bool,
    dynamic: bool | None,
    backend: Any,
    mode: str | None,
    options: dict[str, Any] | None,
    disable: bool,
) -> Any:
    """What `torch.compile` returns for a function, class or module."""
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if backend == "inductor":
        _inductor.check_options(mode, {k: v for k, v in (options or {}).items() if k != "guard_filter_fn"})
    registry.check(backend)
    if dynamic is not None and not isinstance(dynamic, bool):
        raise AssertionError(f"Expected enable to be a bool, got {type(dynamic)}")
    if not disable and not _SAID:
        _SAID.append(True)
        warn("torch.compile: there is no compiler here; the program runs eagerly, with the same results")
    if isinstance(model, Module):
        return OptimizedModule(model)
    if isinstance(model, type):
        return model
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")

    @functools.wraps(model)
    def compile_wrapper(*args: Any, **kwargs: Any) -> Any:
        return model(*args, **kwargs)

    setattr(compile_wrapper, "_torchdynamo_orig_callable", model)
    setattr(compile_wrapper, "_torchdynamo_wrapper_id", id(compile_wrapper))
    return compile_wrapper


def innermost_fn(fn: Callable[..., Any]) -> Callable[..., Any]:
    """What is under the wrappers of `torch.compile` and `torch._dynamo.disable`; other wrappers are left on."""
    while hasattr(fn, "_torchdynamo_orig_callable") and getattr(fn, "_torchdynamo_wrapper_id", None) == id(fn):
        fn = fn._torchdynamo_orig_callable
        if not callable(fn):
            raise AssertionError(f"A callable function is expected, but {type(fn)} is provided.")
    return fn


def is_dynamo_supported() -> bool:
    """False: there is no tracer."""
    return False


def is_inductor_supported() -> bool:
    """False: there is no code generator."""
    return False
