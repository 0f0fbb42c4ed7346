"""NumPy's reading of index expressions, in terms of tensors.

Invariant: a key is never applied here; the tensor to index is a view of the one given, unless slices go backward.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from ._util import ndarrays_to_tensors

_NARROW = frozenset((torch.int8, torch.int16, torch.int32, torch.uint8))


def _part(key: Any) -> Any:
    """One part of a key: arrays and lists are tensors."""
    key = ndarrays_to_tensors(key)
    if isinstance(key, (list, tuple)):
        key = torch.as_tensor(key) if len(key) else torch.empty(0, dtype=torch.int64)
    elif isinstance(key, str):
        raise TypeError("new(): invalid data type 'str'")
    # Bytes would be taken for a mask.
    return key.to(torch.int64) if isinstance(key, torch.Tensor) and key.dtype in _NARROW else key


def _parts(key: Any) -> tuple[Any, ...]:
    return tuple(_part(k) for k in key) if isinstance(key, tuple) else (_part(key),)


def _is_mask(part: Any) -> bool:
    return isinstance(part, bool) or isinstance(part, torch.Tensor) and part.dtype is torch.bool


def _is_number(part: Any) -> bool:
    """Whether it takes one element of a dimension."""
    if isinstance(part, torch.Tensor):
        return part.dim() == 0 and part.dtype is not torch.bool
    return isinstance(part, int) and not isinstance(part, bool)


def _is_array(part: Any) -> bool:
    return isinstance(part, torch.Tensor) and (part.dim() > 0 or part.dtype is torch.bool) or isinstance(part, bool)


def _taken(part: Any) -> int:
    """How many dimensions a part of a key takes."""
    if part is None or part is Ellipsis or isinstance(part, bool):
        return 0
    return part.dim() if _is_mask(part) else 1


def _is_apart(parts: tuple[Any, ...]) -> bool:
    """Whether something stands between the arrays of a key; numbers count as arrays beside one."""
    if not any(_is_array(part) for part in parts):
        return False
    places = [i for i, part in enumerate(parts) if _is_array(part) or _is_number(part)]
    return places[-1] - places[0] + 1 != len(places)


def _arrays_first(tensor: torch.Tensor, parts: tuple[Any, ...]) -> tuple[torch.Tensor, tuple[Any, ...]]:
    """A view whose first dimensions are those that arrays take, and a key for it."""
    missing = tensor.dim() - sum(_taken(part) for part in parts)
    if not any(part is Ellipsis for part in parts):
        parts = (*parts, Ellipsis)
    arrays: list[Any] = []
    others: list[Any] = []
    first: list[int] = []
    rest: list[int] = []
    dim = 0
    for part in parts:
        if part is Ellipsis:
            others += [slice(None)] * missing
            rest += range(dim, dim + missing)
            dim += missing
        elif part is None or isinstance(part, bool) or _is_mask(part) and part.dim() == 0:
            # A new dimension; a single truth value is a mask of it.
            tensor = tensor.unsqueeze(dim)
            if part is None:
                others.append(slice(None))
                rest.append(dim)
            else:
                arrays.append(torch.as_tensor(part).reshape(1))
                first.append(dim)
            dim += 1
        elif isinstance(part, slice):
            others.append(part)
            rest.append(dim)
            dim += 1
        else:
            arrays.append(torch.as_tensor(part).reshape(1) if _is_number(part) else part)
            first += range(dim, dim + _taken(part))
            dim += _taken(part)
    return tensor.permute((*first, *rest)), (*arrays, *others)


def _forward(tensor: torch.Tensor, parts: tuple[Any, ...]) -> tuple[torch.Tensor, tuple[Any, ...]]:
    """A tensor turned where slices go backward, and a key whose slices go forward."""
    if not any(isinstance(part, slice) and part.step is not None and part.step < 0 for part in parts):
        return tensor, parts
    turned: list[int] = []
    found: list[Any] = []
    dim = 0
    for part in parts:
        if part is Ellipsis:
            dim += tensor.dim() - sum(_taken(other) for other in parts)
        elif isinstance(part, slice) and part.step is not None and part.step < 0:
            size = tensor.shape[dim]
            start, stop, step = part.indices(size)
            part = slice(size - 1 - start, size - 1 - stop, -step)
            turned.append(dim)
        dim += _taken(part)
        found.append(part)
    return tensor.flip(turned), tuple(found)


def reading(tensor: torch.Tensor, key: Any) -> tuple[torch.Tensor, Any]:
    """What to index, and with what, to read elements."""
    tensor, parts = _forward(tensor, _parts(key))
    return _arrays_first(tensor, parts) if _is_apart(parts) else (tensor, parts)


def writing(tensor: torch.Tensor, key: Any) -> tuple[torch.Tensor, Any]:
    """What to index, and with what, to write elements."""
    parts = _parts(key)
    return _arrays_first(tensor, parts) if _is_apart(parts) else (tensor, parts)
