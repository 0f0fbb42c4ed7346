"""Hand-written functions and methods that stand beside the rows: creation, conversion, properties that are views.

Invariant: nothing here computes; a name is attached once, before the rows' own methods are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def functions() -> dict[str, Callable[..., Any]]:
    """Functions of the `torch` namespace."""
    from . import _random
    from ._ops import shape, view
    from ._overrides import overridable

    out: dict[str, Callable[..., Any]] = {name: getattr(_random, name) for name in _random.__all__}
    for module, names in (
        (view, ("broadcast_tensors", "split")),
        (shape, ("atleast_1d", "atleast_2d", "atleast_3d", "meshgrid")),
    ):
        out.update({name: overridable(getattr(module, name)) for name in names})
    return out


def attach(cls: type) -> None:
    """Give the Tensor class its methods and properties."""
    from . import _methods, _random
    from ._ops import inplace_views, view
    from ._read_only import seal

    for methods in (_methods.METHODS, view.METHODS, inplace_views.METHODS, _random.METHODS):
        for name, fn in methods.items():
            if name not in cls.__dict__:
                setattr(cls, name, fn)
    for name, fn in view.PROPERTIES.items():
        if name not in cls.__dict__:
            setattr(cls, name, property(fn))
    seal(cls, "torch._C.TensorBase")
