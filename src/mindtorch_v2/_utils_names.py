"""Helpers that clients of PyTorch find in `torch._utils`: exceptions from other threads, flat buffers, device indices.

Invariant: plain Python over the public API; what restores pickled tensors is not here.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

from ._device import device as Device
from ._dtype import dtype as DType

__all__ = [
    "CallbackRegistry",
    "ExceptionWrapper",
    "KeyErrorMessage",
    "classproperty",
    "cpu_count",
    "get_current_device_index",
    "get_file_path",
    "is_compiling",
    "render_call",
    "try_import",
    "_dummy_type",
    "_element_size",
    "_flatten_dense_tensors",
    "_get_all_device_indices",
    "_get_available_device_type",
    "_get_current_device_index",
    "_get_device_index",
    "_get_device_module",
    "_get_devices_properties",
    "_handle_complex",
    "_import_dotted_name",
    "_is_privateuse1_backend_available",
    "_reorder_tensors_as",
    "_take_tensors",
    "_unflatten_dense_tensors",
]


def _torch() -> Any:
    import mindtorch_v2

    return mindtorch_v2


# -- errors of other threads and processes --------------------------------------------------------------------------
class KeyErrorMessage(str):
    """A text that is its own `repr`: a KeyError would quote it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """An exception with its traceback as text, to be raised again elsewhere."""

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        # The traceback itself would keep its frames alive.
        info = sys.exc_info() if exc_info is None else exc_info
        self.exc_type = info[0]
        self.exc_msg = "".join(traceback.format_exception(*info))
        self.where = where

    def reraise(self) -> None:
        """Raise one of the same type, whose text is the first one's traceback."""
        kind: Any = self.exc_type
        text = f"Caught {kind.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if kind is KeyError:
            text = KeyErrorMessage(text)
        elif getattr(kind, "message", None):
            raise kind(message=text)
        try:
            made = kind(text)
        except Exception:
            # It wants other arguments, and nobody knows which.
            raise RuntimeError(text) from None
        raise made


class CallbackRegistry:
    """Functions called in turn; what one of them raises is logged."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.callback_list: list[Callable[..., None]] = []

    def add_callback(self, cb: Callable[..., None]) -> None:
        """Call this one too."""
        self.callback_list.append(cb)

    def fire_callbacks(self, *args: Any, **kwargs: Any) -> None:
        """Call all."""
        for cb in self.callback_list:
            try:
                cb(*args, **kwargs)
            except Exception:
                logging.getLogger(__name__).exception(
                    "Exception in callback for %s registered with gpu trace", self.name
                )


# -- Python ---------------------------------------------------------------------------------------------------------
class _ClassProperty:
    def __init__(self, fget: Any) -> None:
        self.fget = fget

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self.fget.__get__(instance, type(instance) if owner is None else owner)()


def classproperty(func: Any) -> Any:
    """A property of a class, given its function."""
    return _ClassProperty(func if isinstance(func, (classmethod, staticmethod)) else classmethod(func))


def cpu_count() -> int | None:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def get_file_path(*path_components: str) -> str:
    """A path inside the installed package."""
    return os.path.join(os.path.dirname(_torch().__file__), *path_components)


def try_import(module_name: str) -> ModuleType | None:
    """The module, or None where it is not installed."""
    found = sys.modules.get(module_name)
    if found is None and importlib.util.find_spec(module_name) is not None:
        found = importlib.import_module(module_name)
    return found


def _import_dotted_name(name: str) -> Any:
    first, *rest = name.split(".")
    value: Any = __import__(first)
    for part in rest:
        value = getattr(value, part)
    return value


def _dummy_type(name: str) -> type:
    """A class that only says that it cannot be made: what it stands for was not built."""

    def refuse(obj: Any, *args: Any, **kwargs: Any) -> Any:
        shown = obj.__name__ if isinstance(obj, type) else type(obj).__name__
        raise RuntimeError(f"Tried to instantiate dummy base class {shown}")

    return type(name, (object,), {"__init__": refuse, "__new__": refuse})


def is_compiling() -> bool:
    """Whether a compiler traces this program: nothing here does."""
    warnings.warn("`torch._utils.is_compiling` is deprecated. Use `torch.compiler.is_compiling` instead.", stacklevel=2)
    return False


def render_call(fn: Any, args: Any, kwargs: Any) -> str:
    """A call as text, with tensors in short."""
    from ._printing import printoptions
    from .overrides import resolve_name

    name = resolve_name(fn)
    with printoptions(threshold=0, edgeitems=0):
        shown = [repr(a) for a in args] + [f"{k}={v!r}" for k, v in kwargs.items()]
    return f"{str(fn) if name is None else name}({', '.join(shown)})"


# -- devices --------------------------------------------------------------------------------------------------------
def _get_device_module(device_type: str) -> Any:
    found = getattr(_torch(), device_type, None)
    if found is None:
        raise RuntimeError(
            f"Device '{device_type}' does not have a corresponding module registered as 'torch.{device_type}'."
        )
    return found


def _get_available_device_type() -> str | None:
    return "npu" if _torch().npu.is_available() else None


def _of_accelerator(get: Callable[[Any], Any]) -> Any:
    kind = _get_available_device_type()
    return None if kind is None else get(_get_device_module(kind))


def _get_current_device_index() -> Any:
    return _of_accelerator(lambda m: m.current_device())


def _get_all_device_indices() -> Any:
    return _of_accelerator(lambda m: list(range(m.device_count())))


def _get_devices_properties(device_ids: Sequence[int]) -> list[Any]:
    return [_of_accelerator(lambda m: m.get_device_properties)(i) for i in device_ids]


def get_current_device_index() -> int:
    """The current accelerator's index; -1 where there is none."""
    found = _get_current_device_index()
    return -1 if found is None else found


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> Any:
    """The index that a device, its name or an integer means; with `optional`, the current one where none is said."""
    if isinstance(device, str):
        device = Device(device)
    index = device if isinstance(device, int) else None
    if isinstance(device, Device):
        if not allow_cpu and device.type == "cpu":
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        index = -1 if device.type == "cpu" else device.index
    if index is None:
        if not optional:
            raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
        index = _get_current_device_index()
    return index


# -- tensors --------------------------------------------------------------------------------------------------------
def _element_size(dtype: Any) -> int:
    if not isinstance(dtype, DType):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    return dtype.itemsize


def _handle_complex(tensor: Any) -> Any:
    """Complex tensors as real ones with one more dimension."""
    torch = _torch()
    lazy = isinstance(tensor, torch.nn.UninitializedParameter)
    return torch.view_as_real(tensor) if not lazy and tensor.is_complex() else tensor


def _flatten_dense_tensors(tensors: Sequence[Any]) -> Any:
    """All elements in one vector."""
    torch = _torch()
    return torch.cat([t.contiguous().view(-1) for t in tensors])


def _unflatten_dense_tensors(flat: Any, tensors: Sequence[Any]) -> tuple[Any, ...]:
    """Parts of a vector in the shapes of `tensors`; they share its memory."""
    out, at = [], 0
    for t in tensors:
        out.append(flat.narrow(0, at, t.numel()).view_as(t))
        at += t.numel()
    return tuple(out)


def _reorder_tensors_as(tensors: Sequence[Any], ordered_tensors: Sequence[Any]) -> tuple[Any, ...]:
    """Tensors that were put together by type, in the order that `ordered_tensors` shows."""
    by_type: dict[str, list[Any]] = {}
    for t in tensors:
        by_type.setdefault(t.type(), []).append(t)
    queues = {kind: iter(of_kind) for kind, of_kind in by_type.items()}
    return tuple(next(queues[t.type()]) for t in ordered_tensors)


def _take_tensors(tensors: Sequence[Any], size_limit: int) -> Iterator[list[Any]]:
    """Groups of tensors of one type, in order, each of about `size_limit` bytes."""
    open_groups: dict[str, tuple[list[Any], int]] = {}
    for t in tensors:
        size = t.numel() * t.element_size()
        group, total = open_groups.get(t.type(), ([], 0))
        if group and total + size > size_limit:
            yield group
            group, total = [], 0
        group.append(t)
        open_groups[t.type()] = (group, total + size)
    for group, _ in open_groups.values():
        if group:
            yield group


def _is_privateuse1_backend_available() -> bool:
    """Whether the device that PyTorch knows as `privateuseone` can be used: here `npu`."""
    return bool(_torch().npu.is_available())
