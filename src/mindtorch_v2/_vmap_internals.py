"""`torch._vmap_internals`: the first `vmap`, which took less than the one of today and says so in its own words."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from . import func as _func
from ._batching.level import untransformed
from ._creation import zeros
from ._tensor_base import TensorBase
from ._warn import warn
from .utils import _pytree
from .utils._pytree_private import _broadcast_to_and_flatten


def _get_name(func: Callable[..., Any]) -> str:
    name: str = getattr(func, "__name__", None) or repr(func)
    return name


def _check_out_dims(func: Callable[..., Any], out_dims: Any) -> None:
    dims = out_dims if isinstance(out_dims, tuple) else (out_dims,)
    if not all(isinstance(dim, int) for dim in dims):
        raise ValueError(
            f"vmap({_get_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int or a tuple of int "
            "representing where in the outputs the vmapped dimension should appear."
        )


def _check_in_dims(func: Callable[..., Any], in_dims: Any, args: tuple[Any, ...]) -> None:
    """Dimensions do not count from the end. What else is wrong, the `vmap` of today refuses in these words too."""
    leaves, spec = _pytree.tree_flatten(args)
    dims = _broadcast_to_and_flatten(in_dims, spec) if isinstance(in_dims, (int, tuple)) else None
    for leaf, dim in zip(leaves, dims or (), strict=False):
        if dim is not None and not (isinstance(dim, int) and isinstance(leaf, TensorBase)):
            return
        if dim is not None and not 0 <= dim < leaf.dim():
            raise ValueError(
                f"vmap({_get_name(func)}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for some input, but "
                f"that input is a Tensor of dimensionality {leaf.dim()} so expected in_dim to satisfy "
                f"0 <= in_dim < {leaf.dim()}."
            )


def _checked(func: Callable[..., Any], out_dims: Any, found: Any, none_passes: bool) -> list[int]:
    """Which of the results are None, where that is allowed; what else is no tensor is refused."""
    name = _get_name(func)
    if not isinstance(found, (TensorBase, tuple)):
        raise ValueError(f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(found)} as the return.")
    results = found if isinstance(found, tuple) else (found,)
    for i, value in enumerate(results):
        if not isinstance(value, TensorBase) and not (value is None and none_passes):
            raise ValueError(
                f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(value)} for return {i}."
            )
    if isinstance(out_dims, tuple) and len(out_dims) != len(results):
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must have one dim per output "
            f"(got {len(results)} outputs) of {name}."
        )
    return [i for i, value in enumerate(results) if value is None]


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """The first `vmap`; `torch.vmap` is the one to use."""
    warn("Please use `torch.vmap` instead of `torch._vmap_internals.vmap`.", FutureWarning)
    return _vmap(func, in_dims, out_dims)


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
            gone[:] = _checked(func, out_dims, found, allow_none_pass_through)
            return tuple(zeros(()) if value is None else value for value in found) if gone else found

        _check_out_dims(func, out_dims)
        _check_in_dims(func, in_dims, args)
        result = _func.vmap(called, in_dims, out_dims, randomness="different")(*args)
        return tuple(None if i in gone else value for i, value in enumerate(result)) if gone else result

    return wrapped
