"""Neural network building blocks: `Module`, `Parameter`, layers, losses and initialisers, as in PyTorch.

Invariant: a module holds state and plumbing only; every number is computed by an operator of the dispatch table.
"""

from __future__ import annotations as _annotations

from importlib import import_module as _import_module
from typing import Any as _Any

from . import functional, init, modules, parameter
from .modules import *  # noqa: F403 - the layers are named once, in modules.__all__
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "factory_kwargs",
    "functional",
    "init",
    "parameter",
]
__all__ += modules.__all__

# Loaded when first used.
_LATE = ("attention", "common_types", "grad", "parallel", "utils")


def factory_kwargs(kwargs: dict[str, _Any] | None) -> dict[str, _Any]:
    """The options among `kwargs` that a factory function takes, also those given under `factory_kwargs`."""
    if kwargs is None:
        return {}
    simple = {"device", "dtype", "memory_format"}
    expected = simple | {"factory_kwargs"}
    if not kwargs.keys() <= expected:
        raise TypeError(f"unexpected kwargs {kwargs.keys() - expected}")
    result = dict(kwargs.get("factory_kwargs", {}))
    for name in simple & kwargs.keys():
        if name in result:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        result[name] = kwargs[name]
    return result


def __getattr__(name: str) -> _Any:
    if name == "DataParallel":
        return _import_module(f"{__name__}.parallel").DataParallel
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE, "DataParallel"})
