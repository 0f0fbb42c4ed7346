"""`torch.utils._inspect`: arguments bound to a signature."""

from __future__ import annotations

import inspect
from typing import Any

__all__ = ["_fast_bind"]


def _fast_bind(sig: inspect.Signature, *args: Any, **kwargs: Any) -> inspect.BoundArguments:
    """`sig.bind(*args, **kwargs)`; plain signatures, with every argument in its place, need no search."""
    parameters = sig.parameters
    if not kwargs and len(args) == len(parameters):
        if all(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters.values()):
            return inspect.BoundArguments(sig, dict(zip(parameters, args)))
    return sig.bind(*args, **kwargs)
