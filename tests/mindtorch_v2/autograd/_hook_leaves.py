"""Leaves and logging hooks that the hooks' cases share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def leaf(lib: Any, *values: float) -> Any:
    return lib.tensor(values or (1.0, 2.0), dtype=lib.float64, requires_grad=True)


def times(g: Any, factor: float) -> Any:
    return None if g is None else g * factor


def logger(log: list[Any], label: str, factor: Any = None) -> Callable[..., Any]:
    """A hook that writes down what it got, and returns its gradients times `factor`."""

    def hook(*args: Any) -> Any:
        log.append((label, *args))
        if factor is None:
            return None
        return tuple(times(g, factor) for g in args[0]) if isinstance(args[0], tuple) else times(args[0], factor)

    return hook
