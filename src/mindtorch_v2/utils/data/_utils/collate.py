"""Making one batch of a list of samples (`default_collate`), and tensors of what NumPy has (`default_convert`).

Invariant: containers keep their type, their own attributes and the order of their keys.
"""

from __future__ import annotations

import copy
import functools
import re
import sys
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import mindtorch_v2 as torch

from . import messages, worker

np_str_obj_array_pattern = re.compile(r"[SaUO]")
default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def default_convert(data: Any) -> Any:
    """What NumPy has as tensors, also inside of containers; all else as it is."""
    kind = type(data)
    if isinstance(data, torch.Tensor):
        return data
    if kind.__module__ == "numpy" and kind.__name__ not in ("str_", "string_"):
        if kind.__name__ == "ndarray" and np_str_obj_array_pattern.search(data.dtype.str) is not None:
            return data
        return torch.as_tensor(data)
    if isinstance(data, Mapping):
        return _mapping(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple):
        parts = [default_convert(part) for part in data]
        return kind(*parts) if hasattr(data, "_fields") else parts
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _sequence(data, [default_convert(part) for part in data])
    return data


def _mapping(like: Any, values: dict[Any, Any]) -> Any:
    """A mapping of the type of `like`, with what else it holds; a dict where that cannot be made."""
    try:
        if not isinstance(like, MutableMapping):
            return type(like)(values)
        clone = copy.copy(like)
        clone.update(values)
        return clone
    except TypeError:
        return values


def _sequence(like: Any, values: list[Any]) -> Any:
    try:
        if not isinstance(like, MutableSequence):
            return type(like)(values)
        clone = copy.copy(like)
        for i, value in enumerate(values):
            clone[i] = value
        return clone
    except TypeError:
        return values


_Functions = dict[Any, Callable[..., Any]]


def collate(batch: Any, *, collate_fn_map: _Functions | None = None) -> Any:
    """One batch of a list of samples: by the function for the first sample's type, else by going into it."""
    elem = batch[0]
    kind = type(elem)
    if collate_fn_map is not None:
        if kind in collate_fn_map:
            return collate_fn_map[kind](batch, collate_fn_map=collate_fn_map)
        for known, function in collate_fn_map.items():
            if isinstance(elem, known):
                return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(elem, Mapping):
        return _mapping(elem, {key: collate([d[key] for d in batch], collate_fn_map=collate_fn_map) for key in elem})
    if isinstance(elem, tuple) and hasattr(elem, "_fields"):
        return kind(*(collate(samples, collate_fn_map=collate_fn_map) for samples in zip(*batch)))
    if isinstance(elem, Sequence):
        size = len(elem)
        if any(len(other) != size for other in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        parts = [collate(samples, collate_fn_map=collate_fn_map) for samples in zip(*batch)]
        return parts if isinstance(elem, tuple) else _sequence(elem, parts)
    raise TypeError(default_collate_err_msg_format.format(kind))


def collate_tensor_fn(batch: Any, *, collate_fn_map: _Functions | None = None) -> Any:
    """Tensors stacked. In a worker, straight into the memory that is sent."""
    if worker._worker_info is None:
        return torch.stack(batch, 0)
    elem = batch[0]
    out = elem.new_empty(0)
    nbytes = sum(t.numel() for t in batch) * elem.element_size()
    if nbytes > messages.INLINE and elem.device.type == "cpu":
        out.set_(messages.shared_storage(nbytes), 0, (len(batch), *elem.size()))
    else:
        out.resize_(len(batch), *elem.size())
    return torch.stack(batch, 0, out=out)


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: _Functions | None = None) -> Any:
    """Arrays as tensors, then stacked."""
    elem = batch[0]
    if np_str_obj_array_pattern.search(elem.dtype.str) is not None:
        raise TypeError(default_collate_err_msg_format.format(elem.dtype))
    return collate([torch.as_tensor(b) for b in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: _Functions | None = None) -> Any:
    """Scalars of NumPy as one tensor."""
    return torch.as_tensor(batch)


def collate_float_fn(batch: Any, *, collate_fn_map: _Functions | None = None) -> Any:
    """Floats as one tensor of float64."""
    return torch.tensor(batch, dtype=torch.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: _Functions | None = None) -> Any:
    """Integers as one tensor."""
    return torch.tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: _Functions | None = None) -> Any:
    """Strings as they are."""
    return batch


# By type, in the order in which `isinstance` is asked.
_BARE: _Functions = {
    torch.Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


@functools.cache
def _whole() -> _Functions:
    import numpy

    of_numpy: _Functions = {
        numpy.ndarray: collate_numpy_array_fn,
        (numpy.bool_, numpy.number, numpy.object_): collate_numpy_scalar_fn,
    }
    return {torch.Tensor: collate_tensor_fn, **of_numpy, **_BARE}


def _functions() -> _Functions:
    """Where nobody has loaded NumPy no sample is of its types, and this is no reason to load it."""
    return _whole() if "numpy" in sys.modules else _BARE


def __getattr__(name: str) -> Any:
    if name != "default_collate_fn_map":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _whole()  # whoever asks for the table sees all of it


def __dir__() -> list[str]:
    return [*globals(), "default_collate_fn_map"]


def default_collate(batch: Any) -> Any:
    """One batch of a list of samples: tensors stacked, numbers as tensors, containers gone into."""
    return collate(batch, collate_fn_map=_functions())
