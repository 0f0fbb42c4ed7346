"""`torch._vmap_internals`: the older home of `vmap`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ._batching.level import untransformed
from ._creation import zeros
from ._tensor_base import TensorBase
from .func import vmap as vmap


def _vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False
) -> Callable[..., Any]:
    """The first `vmap`: results are a tensor or a tuple of them, in which None may be let through."""

    @functools.wraps(func)
    def wrapped(*args: Any) -> Any:
        gone: list[int] = []

        @functools.wraps(func)
        def called(*one: Any) -> Any:
            with untransformed():
                found = func(*one)
            if isinstance(found, TensorBase) or not isinstance(found, tuple):
                return found
            gone[:] = [i for i, value in enumerate(found) if value is None]
            if gone and not allow_none_pass_through:
                name = getattr(func, "__name__", repr(func))
                raise ValueError(
                    f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(None)} for return {gone[0]}."
                )
            return tuple(zeros(()) if value is None else value for value in found)

        result = vmap(called, in_dims, out_dims, randomness="different")(*args)
        return tuple(None if i in gone else value for i, value in enumerate(result)) if gone else result

    return wrapped
