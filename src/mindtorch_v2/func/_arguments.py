"""What transformations share: which arguments are meant by `argnums`, and unit vectors in the space of some tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

import mindtorch_v2 as torch

from .._dispatch.keys import SPARSE
from .._tensor_base import requires_grad
from ..utils._pytree import tree_flatten

Argnums = int | tuple[int, ...]


def seen(t: Any) -> Any:
    """A tensor of its own over the same memory; of a layout without views, over the same values or a copy."""
    if not t._keys & SPARSE:
        return t.view_as(t)
    return t.clone() if requires_grad(t) and torch.is_grad_enabled() else t.detach()


def check_argnums(argnums: Any, count: int) -> None:
    """PyTorch's refusals of what does not name some of `count` arguments."""
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if isinstance(argnums, tuple):
        if not argnums:
            raise RuntimeError("argnums must be non-empty")
    for n in argnums if isinstance(argnums, tuple) else (argnums,):
        if not isinstance(n, int):
            raise RuntimeError(f"argnum must be int, got: {type(n)}")
        if not -count <= n < count:
            raise RuntimeError(f"Got argnum={n}, but only {count} positional inputs")
    if isinstance(argnums, tuple):
        places = tuple([n % count for n in argnums])
        if len(set(places)) != len(places):
            raise RuntimeError(f"argnums elements must be unique, got {places}")


def leaves_of(tree: Any) -> Any:
    """The leaves of a tree; of a tensor, and of one in a tuple, at sight."""
    if isinstance(tree, torch.Tensor):
        return (tree,)
    if type(tree) is tuple and len(tree) == 1 and isinstance(tree[0], torch.Tensor):
        return tree
    return tree_flatten(tree)[0]


def named_after(func: Any, wrapper: Callable[..., Any]) -> Callable[..., Any]:
    """What `functools.wraps` does, in a few steps for a plain function: transforms are made anew at every call inside
    one another."""
    if type(func) is not FunctionType:
        return functools.update_wrapper(wrapper, func)
    wrapper.__module__ = func.__module__
    wrapper.__name__ = func.__name__
    wrapper.__qualname__ = func.__qualname__
    wrapper.__doc__ = func.__doc__
    space = wrapper.__dict__
    if func.__dict__:
        space.update(func.__dict__)
    space["__wrapped__"] = func
    return wrapper


def check_real(what: str, api: str, tree: Any) -> None:
    """Of what is complex a derivative by every element would not say which of the two kinds it is."""
    for i, t in enumerate(leaves_of(tree)):
        if isinstance(t, torch.Tensor) and t._dtype.is_complex:
            raise RuntimeError(
                f"{api}: Expected all {what} to be real but received complex tensor at flattened input idx: {i}"
            )


def tensors_only(value: Any) -> None:
    """What goes along with a result has tensors for its leaves."""
    for leaf in tree_flatten(value)[0]:
        if not isinstance(leaf, torch.Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(leaf)}")


def chosen(args: tuple[Any, ...], argnums: Argnums) -> Any:
    """The arguments that `argnums` names: one, or a tuple."""
    check_argnums(argnums, len(args))
    return args[argnums] if isinstance(argnums, int) else tuple(args[n] for n in argnums)


def replaced(args: tuple[Any, ...], argnums: Argnums, new: Any) -> tuple[Any, ...]:
    """The arguments with others in the places of those that `argnums` names."""
    out = list(args)
    single = isinstance(argnums, int)
    for n, value in zip((argnums,) if isinstance(argnums, int) else argnums, (new,) if single else new):
        out[n] = value
    return tuple(out)


def need_elements(t: Any) -> None:
    """Refuse a tensor whose elements are not all there."""
    if isinstance(t, torch.Tensor) and t._keys & SPARSE:
        raise NotImplementedError(f"derivatives by every element of a tensor of layout {t.layout} are not supported")


def standard_basis(tensors: list[Any]) -> list[Any]:
    """Rows with a single one, each for an element of the tensors."""
    total = sum(t.numel() for t in tensors)
    basis: list[Any] = []
    start = 0
    for t in tensors:
        need_elements(t)
        n = t.numel()
        part = torch.zeros((total, n), dtype=t.dtype, device=t.device)
        part.diagonal(-start).fill_(1)
        basis.append(part.view((total, *t.shape)))
        start += n
    return basis
