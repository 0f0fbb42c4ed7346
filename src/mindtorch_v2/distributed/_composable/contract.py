"""`contract`: functions that are applied to modules, once to each, and leave names as they are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ... import nn
from .._composable_state import _State
from ..utils import _get_root_modules

STATE_KEY = "__composable_api_state_key"
REGISTRY_KEY = "__composable_api_registry_key"


class RegistryItem:
    """That a function was applied."""


def contract(state_cls: type[_State] = _State) -> Callable[[Callable[..., Any]], Any]:
    """Have a function of a module, or of several, keep a state of it: `function.state(module)`."""

    def inner(func: Callable[..., Any]) -> Any:
        @functools.wraps(func)
        def wrapper(module: Any, *args: Any, **kwargs: Any) -> Any:
            modules = [module] if isinstance(module, nn.Module) else _get_root_modules(list(module))
            state, item = state_cls(), RegistryItem()
            for each in modules:
                _enter(each, func, state, item)
            before = [_names(each) for each in modules]
            updated = func(module, *args, **kwargs)
            updated = module if updated is None else updated
            after = [updated] if isinstance(updated, nn.Module) else _get_root_modules(list(module))
            if len(modules) != len(after):
                raise AssertionError(
                    f"{func.__name__} should return the same number of modules as input modules"
                    f"Inputs: {len(modules)} modules\nOutputs: {len(after)} modules"
                )
            for names, each in zip(before, after):
                _compare(names, _names(each))
            return updated

        wrapper.state = lambda module: module.__dict__.setdefault(STATE_KEY, {}).get(func)  # type: ignore[attr-defined]
        return wrapper

    return inner


def _enter(module: Any, func: Callable[..., Any], state: _State, item: RegistryItem) -> None:
    states, registry = module.__dict__.setdefault(STATE_KEY, {}), module.__dict__.setdefault(REGISTRY_KEY, {})
    for known, what in ((states, "states"), (registry, "registry")):
        if not isinstance(known, dict):
            raise AssertionError(f"Distributed composable API {what} corrupted: {known}")
    if func in states or func.__name__ in registry:
        raise AssertionError(
            f"Each distinct composable distributed API can only be applied to a module once. {func.__name__} has "
            f"already been applied to the following module:\n{module}"
        )
    states[func], registry[func.__name__] = state, item


def _names(module: Any) -> dict[str, list[str]]:
    return {
        "parameters": [name for name, _ in module.named_parameters()],
        "buffers": [name for name, _ in module.named_buffers()],
        "modules": [name for name, _ in module.named_modules()],
    }


def _compare(before: dict[str, list[str]], after: dict[str, list[str]]) -> None:
    for kind, old in before.items():
        new = after[kind]
        if old == new:
            continue
        gone, come = set(old) - set(new), set(new) - set(old)
        what = "FQNs.\nFQNs only in original: {}\nFQNs only in new: {}"
        if not gone and not come:
            what = "the order of FQNs.\nOriginal FQNs: {}\nNew FQNs: {}"
        raise RuntimeError(
            f"Checking {kind}: Composable distributed API implementations cannot modify {what.format(gone, come)}"
        )


def _get_registry(module: Any) -> dict[str, RegistryItem] | None:
    """The functions that were applied to a module, by name."""
    return getattr(module, REGISTRY_KEY, None)
