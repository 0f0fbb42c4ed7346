"""What a piece of code does, in terms that do not depend on the library it was run on.

Invariant: two libraries behave alike exactly when the outcomes are equal: values, or the type and text of the error,
and the warnings.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any


def plain(value: Any) -> Any:
    """A value in terms that do not depend on the library."""
    if hasattr(value, "tolist") and hasattr(value, "requires_grad"):
        return ("tensor", tuple(value.shape), str(value.dtype), value.requires_grad, plain(value.detach().tolist()))
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    if isinstance(value, float):
        return round(value, 9)
    return re.sub("0x[0-9a-f]+", "0x", str(value))


def outcome(fn: Callable[[], Any]) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = plain(fn())
        except Exception as error:  # every error is part of the outcome
            result = f"{type(error).__name__}: {error}"
    return result, [str(w.message)[:60] for w in caught if "reference cycle" not in str(w.message)]


def tried(fns: list[Callable[[], Any]]) -> list[Any]:
    return [outcome(fn) for fn in fns]
