"""`torch.func`: transformations of functions.

Invariant: a transformed function takes and returns what the function it was made from does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._dispatch.functionalize import functionalize as _functionalize

__all__ = ["functionalize"]


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """`func` with every in-place and `out=` operator replaced by its functional form and a write-back.

    remove: "mutations" or "mutations_and_views". Both compute the same: write-backs go through the memory that views
    share, so there is no program in which a view would have to be replaced by a copy.
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are:\n"
            "     remove='mutations': all inplace and out= operators will be removed from the program, and replaced "
            "with their out-of-place equivalents.\n"
            "     remove='mutations_and_views': In addition to the above, all aliasing operators {view} will be "
            "replaced with their non-aliasing counterparts, {view}_copy.\n"
        )
    return _functionalize()(func)
