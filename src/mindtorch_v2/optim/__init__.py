"""Optimisers: how parameters follow their gradients, as in PyTorch. Each is loaded when first asked for."""

import sys as _sys
from importlib import import_module as _import_module
from types import ModuleType as _ModuleType
from typing import Any as _Any

from .optimizer import Optimizer as Optimizer
from .optimizer import register_optimizer_step_post_hook as register_optimizer_step_post_hook
from .optimizer import register_optimizer_step_pre_hook as register_optimizer_step_pre_hook

_LAZY = {
    "ASGD": "asgd",
    "Adadelta": "adadelta",
    "Adafactor": "_adafactor",
    "Adagrad": "adagrad",
    "Adam": "adam",
    "AdamW": "adamw",
    "Adamax": "adamax",
    "LBFGS": "lbfgs",
    "Muon": "_muon",
    "NAdam": "nadam",
    "RAdam": "radam",
    "RMSprop": "rmsprop",
    "Rprop": "rprop",
    "SGD": "sgd",
    "SparseAdam": "sparse_adam",
    "swap_in_optimizer_params_and_state": "_stateless",
}
_SUBMODULES = ("lr_scheduler", "swa_utils", "_functional", "_multi_tensor", *dict.fromkeys(_LAZY.values()))

__all__ = [
    "ASGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "LBFGS",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SGD",
    "SparseAdam",
    "lr_scheduler",
    "swa_utils",
    "swap_in_optimizer_params_and_state",
]


def __getattr__(name: str) -> _Any:
    if name in _LAZY:
        value: _Any = getattr(_import_module("." + _LAZY[name], __name__), name)
    elif name in _SUBMODULES:
        value = _import_module("." + name, __name__)
    else:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_SUBMODULES})


class _Complete(_ModuleType):
    """A module in whose `__dict__` everything is, for libraries that look there for the optimisers (pyro)."""

    @property
    def __dict__(self) -> dict[str, _Any]:  # type: ignore[override]
        for name in _LAZY:
            if name not in globals():
                __getattr__(name)
        return globals()


_sys.modules[__name__].__class__ = _Complete
