"""`with torch.functionalize():` turns every write into a functional call and a write-back.

Invariant: only the dispatch mode is switched here, for this thread; what a write becomes is decided by
`_backends.common.functionalize.FunctionalizeKernel` from the operator's schema.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from .keys import FUNCTIONALIZE
from .state import drop, include

__all__ = ["functionalize"]

F = TypeVar("F", bound=Callable[..., Any])


class functionalize:
    """A context manager and decorator; blocks may be nested."""

    __slots__ = ("was",)
    was: bool

    def __enter__(self) -> None:
        self.was = bool(include(FUNCTIONALIZE) & FUNCTIONALIZE)

    def __exit__(self, *exc: object) -> None:
        if not self.was:
            drop(FUNCTIONALIZE)

    def __call__(self, func: F) -> F:
        @functools.wraps(func)
        def functional(*args: Any, **kwargs: Any) -> Any:
            with functionalize():
                return func(*args, **kwargs)

        return functional  # type: ignore[return-value]
