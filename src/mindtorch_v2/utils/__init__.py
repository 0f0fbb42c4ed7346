"""`torch.utils`: what is neither an operator nor a layer.

Invariant: submodules are imported when first asked for.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import Any as _Any

_SUBMODULES = (
    "_mode_utils",
    "_python_dispatch",
    "_pytree",
    "backcompat",
    "backend_registration",
    "benchmark",
    "checkpoint",
    "collect_env",
    "data",
    "deterministic",
    "dlpack",
    "flop_counter",
    "hooks",
    "model_zoo",
    "module_tracker",
    "serialization",
    "weak",
)
# Names of this module that live in a submodule.
_LAZY = {
    "generate_methods_for_privateuse1_backend": "backend_registration",
    "rename_privateuse1_backend": "backend_registration",
    "swap_tensors": "_swap",
}


def set_module(obj: _Any, mod: str) -> None:
    """Say in which module an object lives, for its `repr`."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def __getattr__(name: str) -> _Any:
    if name in _SUBMODULES:
        return _import_module("." + name, __name__)
    if name in _LAZY:
        return getattr(_import_module("." + _LAZY[name], __name__), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES, *_LAZY})
