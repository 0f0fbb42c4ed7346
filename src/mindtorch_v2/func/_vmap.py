"""`torch.vmap`: a function of single examples, for many. Here it is called once for each, and results are stacked.

Invariant: what is computed is what PyTorch computes; the number of calls is the size of the mapped dimension.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

from ..utils._pytree import TreeSpec, tree_flatten, tree_unflatten

_RANDOMNESS = ("error", "different", "same")


def _spread(tree: Any, spec: TreeSpec) -> list[Any] | None:
    """The leaves of `tree` for every leaf of a structure that it is the beginning of; None where it is not."""
    if spec.is_leaf():
        return [tree] if tree_flatten(tree)[1].is_leaf() else None
    leaves, own = tree_flatten(tree)
    if own.is_leaf():
        return leaves * spec.num_leaves
    if own.type is not spec.type or own.context != spec.context or own.num_children != spec.num_children:
        return None
    parts = tree.values() if isinstance(tree, dict) else tree
    found: list[Any] = []
    for part, child in zip(parts, spec.children()):
        inner = _spread(part, child)
        if inner is None:
            return None
        found += inner
    return found


def _name(func: Callable[..., Any]) -> str:
    return getattr(func, "__name__", None) or repr(func)


def _inputs(
    in_dims: Any, args: tuple[Any, ...], func: Callable[..., Any]
) -> tuple[int, list[Any], list[Any], TreeSpec]:
    """Size of the mapped dimension, where it is in each argument, the arguments, and their structure."""
    where = f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>): "
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{where}expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, "
            f"got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap "
            "over a function with no inputs. The latter is unsupported."
        )
    flat, spec = tree_flatten(args)
    dims = _spread(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"{where}in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{tree_flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    dims = [_checked(arg, dim, where) for arg, dim in zip(flat, dims)]
    sizes = [arg.size(dim) for arg, dim in zip(flat, dims) if dim is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(size != sizes[0] for size in sizes):
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the "
            "mapped dimension"
        )
    return sizes[0], dims, flat, spec


def _checked(arg: Any, dim: Any, where: str) -> int | None:
    if dim is None:
        return None
    if not isinstance(dim, int):
        raise ValueError(
            f"{where}Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
        )
    if not isinstance(arg, torch.Tensor):
        raise ValueError(
            f"{where}Got in_dim={dim} for an input but the input is of type {type(arg)}. We cannot vmap over "
            "non-Tensor arguments, please use None as the respective in_dim"
        )
    if not -arg.dim() <= dim < arg.dim():
        raise ValueError(
            f"{where}Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {arg.dim()} so "
            f"expected in_dim to satisfy -{arg.dim()} <= in_dim < {arg.dim()}."
        )
    return dim % arg.dim()


def _check_out_dims(out_dims: Any, func: Callable[..., Any]) -> None:
    if not all(isinstance(dim, int) or dim is None for dim in tree_flatten(out_dims)[0]):
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of "
            "ints representing where in the outputs the vmapped dimension should appear."
        )


def _stacked(parts: list[Any], out_dim: int | None, name: str) -> Any:
    """One output from those of the single calls."""
    first = parts[0]
    if out_dim is None:
        # The value is one for all calls; PyTorch sees whether it depends on a mapped argument, here it must be equal.
        if isinstance(first, torch.Tensor) and not all(torch.equal(first, part) for part in parts[1:]):
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        return first
    if not isinstance(first, torch.Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(first)}. Did you mean to set "
            "out_dims= to None for output?"
        )
    return torch.stack(parts, out_dim)


def _calls(
    func: Callable[..., Any], size: int, dims: list[Any], flat: list[Any], spec: TreeSpec, kwargs: Any, randomness: str
) -> list[Any]:
    state = torch.get_rng_state()
    outputs = []
    for i in range(size):
        if randomness == "same" and i:
            torch.set_rng_state(state)
        one = [arg if dim is None else arg.select(dim, i) for arg, dim in zip(flat, dims)]
        outputs.append(func(*tree_unflatten(one, spec), **kwargs))
    if randomness == "error" and not torch.equal(state, torch.get_rng_state()):
        torch.set_rng_state(state)
        raise RuntimeError(
            "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
            "randomness flags on vmap or perform the randomness operation out of vmap"
        )
    return outputs


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that maps `func` over the dimensions `in_dims` of its arguments, with the results in `out_dims`."""
    if randomness not in _RANDOMNESS:
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        _check_out_dims(out_dims, func)
        size, dims, flat, spec = _inputs(in_dims, args, func)
        if size == 0:
            raise NotImplementedError("vmap: a mapped dimension of size 0; there is no call to learn the result from")
        outputs = _calls(func, size, dims, flat, spec, kwargs, randomness)
        found, structure = tree_flatten(outputs[0])
        places = _spread(out_dims, structure)
        if places is None and isinstance(outputs[0], torch.Tensor) and len(tree_flatten(out_dims)[0]) == 1:
            places = tree_flatten(out_dims)[0]
        if places is None:
            raise ValueError(
                f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the "
                f"structure of `outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but outputs has "
                f"structure {structure}."
            )
        columns = zip(*(tree_flatten(output)[0] for output in outputs))
        made = [_stacked(list(column), place, _name(func)) for column, place in zip(columns, places)]
        return tree_unflatten(made, structure)

    return wrapped
