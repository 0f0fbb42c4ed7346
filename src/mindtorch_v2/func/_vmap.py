"""`torch.vmap`: a function of single examples, for many. It is called once, with tensors that stand for all of them.

Invariant: whatever the function does, the level that was entered for it is left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

from .._batching.dims import add_batch_dim, remove_batch_dim
from .._batching.kernel import serve
from .._batching.level import Level, enter, handed, is_many, is_mapped_nested, leave
from .._batching.steps import WAYS
from .._batching.users import spread_over
from .._batching.usual import common_size, map_tensors
from ..utils._pytree import TreeSpec, tree_flatten, tree_unflatten
from ._arguments import named_after

serve()
_RANDOMNESS = ("error", "different", "same")


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
    dims = spread_over(in_dims, spec)
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
    if isinstance(dim, bool):
        raise TypeError("size(): argument 'dim' (position 1) must be int, not bool")
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


def _out(value: Any, out_dim: int | None, level: Level, name: str) -> Any:
    """One output, with the mapped dimension where it was asked for."""
    if out_dim is None:
        if isinstance(value, torch.Tensor) and (is_many(value, level) or is_mapped_nested(value)):
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        return handed(value, level) if isinstance(value, torch.Tensor) else value
    if not isinstance(value, torch.Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(value)}. Did you mean to set "
            "out_dims= to None for output?"
        )
    rank = value.dim() + 1
    if is_mapped_nested(value):
        return WAYS.remove.call((value, out_dim, level))
    if not -rank <= out_dim < rank:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {out_dim})"
        )
    return remove_batch_dim(value, out_dim, level)


def _outputs(found: Any, out_dims: Any, level: Level, func: Callable[..., Any]) -> Any:
    flat, structure = tree_flatten(found)
    places = spread_over(out_dims, structure)
    if places is None and isinstance(found, torch.Tensor) and len(tree_flatten(out_dims)[0]) == 1:
        places = tree_flatten(out_dims)[0]
    if places is None:
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the "
            f"structure of `outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but outputs has "
            f"structure {structure}."
        )
    made = [_out(value, place, level, _name(func)) for value, place in zip(flat, places)]
    return tree_unflatten(made, structure)


def _mapped(
    func: Callable[..., Any],
    size: int,
    dims: list[Any],
    flat: list[Any],
    spec: TreeSpec,
    kwargs: Any,
    out_dims: Any,
    randomness: str,
) -> Any:
    level = enter(size, randomness)
    try:
        given = [arg if dim is None else add_batch_dim(arg, dim, level) for arg, dim in zip(flat, dims)]
        return _outputs(func(*tree_unflatten(given, spec), **kwargs), out_dims, level, func)
    finally:
        leave()


def _in_chunks(
    func: Callable[..., Any],
    size: int,
    dims: list[Any],
    flat: list[Any],
    spec: TreeSpec,
    kwargs: Any,
    out_dims: Any,
    randomness: str,
    chunk: int,
) -> Any:
    """The same for some of the many at a time; "same" is the same for all chunks."""
    state = torch.get_rng_state() if randomness == "same" else None
    parts = []
    for start in range(0, max(size, 1), chunk):
        if state is not None:
            torch.set_rng_state(state)
        length = min(chunk, size - start)
        some = [arg if dim is None else arg.narrow(dim, start, length) for arg, dim in zip(flat, dims)]
        parts.append(_mapped(func, length, dims, some, spec, kwargs, out_dims, randomness))
    leaves = [tree_flatten(part)[0] for part in parts]
    structure = tree_flatten(parts[0])[1]
    places = spread_over(out_dims, structure) or tree_flatten(out_dims)[0]
    whole = [
        column[0] if place is None else torch.cat(list(column), place) for column, place in zip(zip(*leaves), places)
    ]
    return tree_unflatten(whole, structure)


def _check_randomness(randomness: Any) -> None:
    if randomness not in _RANDOMNESS:
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")


def map_rows(func: Callable[..., Any], rows: list[Any], randomness: str, chunk_size: int | None) -> Any:
    """`vmap(func, ...)(*rows)` over the first dimension of tensors, for one call."""
    _check_randomness(randomness)
    size = common_size(tuple(rows), 0)
    if chunk_size is None and size >= 0:
        return map_tensors(func, tuple(rows), {}, size, 0, 0, randomness, _outputs)
    return vmap(func, randomness=randomness, chunk_size=chunk_size)(*rows)


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that maps `func` over the dimensions `in_dims` of its arguments, with the results in `out_dims`."""
    _check_randomness(randomness)
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    usual = type(in_dims) is int and type(out_dims) is int and chunk_size is None

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if usual:
            size = common_size(args, in_dims)
            if size >= 0:
                return map_tensors(func, args, kwargs, size, in_dims, out_dims, randomness, _outputs)
        _check_out_dims(out_dims, func)
        size, dims, flat, spec = _inputs(in_dims, args, func)
        if chunk_size is not None:
            return _in_chunks(func, size, dims, flat, spec, kwargs, out_dims, randomness, chunk_size)
        return _mapped(func, size, dims, flat, spec, kwargs, out_dims, randomness)

    return named_after(func, wrapped)
