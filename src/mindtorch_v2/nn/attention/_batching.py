"""Functions of single scores and places, evaluated for many at once.

A user writes `score_mod(score, b, h, q_idx, kv_idx)` for one score: five tensors without dimensions, with which other
tensors may be indexed. Here it is called once, with tensors whose first four dimensions are batch, head, query and key
(of size one where a value does not depend on them) and look to it as if they were not there.

Invariant: a function either computes for every score what it would compute for it alone, or raises and names the
operator that is not known here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

from ..._overrides import DisableTorchFunctionSubclass
from ..._tensor import Tensor

BATCH = 4
_REDUCTIONS = frozenset("sum prod mean any all amax amin max min argmax argmin".split())
# Their results have the shape of the argument, but depend on the meaning of a dimension.
_ALONG = frozenset(
    """cumsum cumprod cummax cummin logcumsumexp softmax log_softmax sort argsort flip fliplr flipud roll renorm tril
    triu rot90 normalize layer_norm""".split()
)
_MADE = frozenset("new_ones new_zeros new_full new_empty new_tensor".split())


class Batched(Tensor):
    """A value for every score; seen from inside it lacks the first four dimensions."""

    # -- what a value without those dimensions answers; values and not methods, whose types the base class fixes ---
    shape: Any = property(lambda self: torch.Size(_plain(self).shape[BATCH:]))
    ndim: Any = property(lambda self: _plain(self).dim() - BATCH)

    def dim(self) -> int:
        return int(self.ndim)

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> int:
        return int(self.shape.numel())

    def __bool__(self) -> bool:
        raise RuntimeError(
            "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't "
            "support that yet, please file an issue at https://github.com/pytorch/pytorch/issues ."
        )

    def item(self) -> Any:
        raise RuntimeError(
            "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a "
            "Tensor, please try to rewrite what you're doing with other operations. If error is occurring somewhere "
            "inside PyTorch internals, please file a bug report."
        )

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        return int(self.item())

    def tolist(self) -> Any:
        return self.item()

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", str(func))
        if name == "__getitem__":
            return _wrapped(_getitem(*args))
        if name == "__setitem__":
            raise NotImplementedError("flex_attention: a score_mod or mask_mod cannot write to a part of a tensor")
        with DisableTorchFunctionSubclass():
            if name in _MADE:
                return _made(func, args, kwargs)
            if name in _REDUCTIONS and len([a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)]) == 1:
                return _reduced(name, *args, **kwargs)
            if name == "unsqueeze":
                return _wrapped(_plain(args[0]).unsqueeze(_inner_dim(args[1], args[0].ndim + 1)))
            return _pointwise(func, name, args, kwargs)


def _plain(x: Any) -> Any:
    return x.as_subclass(Tensor) if isinstance(x, Batched) else x


def _wrapped(x: Any) -> Any:
    if isinstance(x, Tensor):
        return x.as_subclass(Batched)
    if isinstance(x, (tuple, list)):
        return type(x)(_wrapped(part) for part in x) if type(x) in (tuple, list) else tuple(_wrapped(p) for p in x)
    return x


def _mapped(fn: Callable[[Any], Any], x: Any) -> Any:
    """`fn` on every tensor in lists, tuples and dictionaries."""
    if isinstance(x, Tensor):
        return fn(x)
    if isinstance(x, dict):
        return {key: _mapped(fn, value) for key, value in x.items()}
    if type(x) in (list, tuple):
        return type(x)(_mapped(fn, part) for part in x)
    return x


def _inner_dim(dim: int, rank: int) -> int:
    """A dimension counted inside, for the tensor with the dimensions in front."""
    if not -rank <= dim < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})")
    return dim % rank + BATCH


def _widened(x: Any, rank: int) -> Any:
    """A batched value with `rank` inner dimensions; new ones stand in front of its own, as broadcasting puts them."""
    plain = _plain(x)
    missing = rank + BATCH - plain.dim()
    return plain[(slice(None),) * BATCH + (None,) * missing] if missing > 0 else plain


def _pointwise(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Operators that compute element by element, after the inner dimensions stand below each other."""
    if name in _ALONG:
        raise NotImplementedError(f"flex_attention: {name} is not supported in a score_mod or mask_mod")
    tensors: list[Any] = []
    _mapped(tensors.append, (args, kwargs))
    rank = max(t.ndim for t in tensors)

    def aligned(t: Any) -> Any:
        return _widened(t, rank) if isinstance(t, Batched) else t

    given, named = _mapped(aligned, args), _mapped(aligned, kwargs)
    expected = torch.broadcast_shapes(*(tuple(aligned(t).shape) for t in tensors))
    result = func(*given, **named)
    shapes: list[Any] = []
    _mapped(lambda t: shapes.append(tuple(t.shape)), list(result) if isinstance(result, tuple) else result)
    if any(shape != tuple(expected) for shape in shapes):
        raise NotImplementedError(f"flex_attention: {name} is not supported in a score_mod or mask_mod")
    return _wrapped(result)


def _made(func: Any, args: Any, kwargs: Any) -> Any:
    """`x.new_ones(size)`: one such tensor for every value of x."""
    made = func(*_mapped(_plain, args), **_mapped(_plain, kwargs))
    front = tuple(_plain(args[0]).shape[:BATCH])
    return _wrapped(made.expand(front + tuple(made.shape)).contiguous())


def _reduced(name: str, x: Any, dim: Any = None, *rest: Any, **kwargs: Any) -> Any:
    """A reduction over inner dimensions; without any, over the value alone."""
    plain, rank = _plain(x), x.ndim
    if dim is None:
        flat = plain.flatten(BATCH) if rank else plain.unsqueeze(-1)
        result = getattr(flat, name)(-1, *rest, **kwargs)
        return _wrapped(result[0] if name in ("max", "min") else result)
    if isinstance(dim, (tuple, list)):
        return _wrapped(getattr(plain, name)([_inner_dim(d, rank) for d in dim], *rest, **kwargs))
    return _wrapped(getattr(plain, name)(_inner_dim(dim, rank), *rest, **kwargs))


def _getitem(x: Any, index: Any) -> Any:
    """`x[index]` where either may be batched: basic indices first, then all tensors at once, their dimensions in
    front."""
    entries = list(index) if isinstance(index, tuple) else [index]
    front = BATCH if isinstance(x, Batched) else 0
    inner = _plain(x).dim() - front
    if any(entry is Ellipsis for entry in entries):
        used = sum(1 for entry in entries if entry is not None and entry is not Ellipsis)
        at = next(i for i, entry in enumerate(entries) if entry is Ellipsis)
        entries[at : at + 1] = [slice(None)] * (inner - used)
    if sum(1 for entry in entries if entry is not None) > inner:
        raise IndexError(f"too many indices for tensor of dimension {inner}")
    basic: list[Any] = [slice(None)] * front
    places: list[int] = []
    tensors: list[Any] = []
    position = front
    for entry in entries:
        if isinstance(entry, Tensor):
            if entry.dtype in (torch.bool, torch.uint8):
                raise NotImplementedError("flex_attention: masks are not supported as an index in a mask_mod")
            places.append(position)
            tensors.append(entry)
            basic.append(slice(None))
            position += 1
        elif isinstance(entry, (slice, int)) or entry is None:
            basic.append(entry)
            position += 0 if isinstance(entry, int) and not isinstance(entry, bool) else 1
        else:
            tensors.append(torch.as_tensor(entry, device=x.device))
            places.append(position)
            basic.append(slice(None))
            position += 1
    with DisableTorchFunctionSubclass():
        picked = _plain(x)[tuple(basic)]
        if not tensors:
            return picked
        rank = max(t.ndim for t in tensors)
        looked = [_widened(t, rank) if isinstance(t, Batched) else t for t in tensors]
        picked = picked.movedim(places, list(range(front, front + len(places))))
        ahead = [_places(picked, d, rank) for d in range(front)]
        return picked[tuple(ahead + looked)]


def _places(x: Any, dim: int, rank: int) -> Any:
    """All places along one of the dimensions in front, to be indexed beside tensors."""
    shape = [1] * (BATCH + rank)
    shape[dim] = x.shape[dim]
    return torch.arange(x.shape[dim], device=x.device).view(shape)


def evaluate(fn: Callable[..., Any], score: Any, places: tuple[Any, Any, Any, Any]) -> Any:
    """`fn([score,] b, h, q_idx, kv_idx)` for all combinations of places: a plain tensor that broadcasts to them."""
    shapes = ((-1, 1, 1, 1), (1, -1, 1, 1), (1, 1, -1, 1), (1, 1, 1, -1))
    indices = [place.view(shape).as_subclass(Batched) for place, shape in zip(places, shapes)]
    given = indices if score is None else [score.as_subclass(Batched), *indices]
    result = fn(*given)
    if not isinstance(result, Tensor):
        name = getattr(fn, "__name__", str(fn))
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(result)}. Did you mean to set "
            "out_dims= to None for output?"
        )
    if result.ndim:
        raise RuntimeError(
            f"flex_attention: a score_mod or mask_mod has to return one value for each score, got shape {result.shape}"
        )
    return _plain(result)
