"""The words in which tables say operators that are other operators: no rows of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._dispatch import registry
from .table import composite

Ints = tuple[int, ...]


def inner(schema: str, fn: Callable[..., Any], *, method: bool = False, function: bool = True) -> None:
    """A row that PyTorch keeps to itself."""
    composite(schema, fn, function=function, method=method)


def call(name: str, *args: Any) -> Any:
    """Call a row by its name; its table is loaded if need be."""
    return registry.get(name).call(args)


def same(name: str) -> Callable[..., Any]:
    """Another row, with the same arguments."""
    return lambda *args: call(name, *args)
