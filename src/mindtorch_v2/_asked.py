"""Tensors whose `__torch_dispatch__` answers for their sizes, strides, device or layout, as `_make_subclass` and
`_make_wrapper_subclass` are told by `dispatch_sizes_strides_policy`, `dispatch_device` and `dispatch_layout`.

Invariant: plain tensors pay nothing. What asks stands in the subclass, and asks only for tensors that were made so;
what the package itself computes with is what they were made with.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ._core_operators import HOOKS
from ._device import device
from ._dispatch.keys import DEVICE_BITS
from ._dispatch.op import FnKernel, Op
from ._layout import contiguous_format
from ._layout import layout as Layout
from ._operators import definitions, ops
from ._size import Size

# Where a tensor keeps what its handler answers for.
_MARK = "_dispatched"
_POLICIES = {"sizes": frozenset({"sizes", "strides"}), "strides": frozenset({"strides"})}


def policy(sizes_strides: Any, dispatch_device: bool, dispatch_layout: bool) -> frozenset[str]:
    """What a handler is to be asked for, by the arguments of the functions that make such tensors."""
    found: frozenset[str] = frozenset()
    if sizes_strides is not None:
        if sizes_strides not in _POLICIES:
            raise ValueError(f"Unknown sizes_strides_policy: {sizes_strides}; expected 'strides' or 'sizes'")
        found = _POLICIES[sizes_strides]
    return found | {kind for kind, on in (("device", dispatch_device), ("layout", dispatch_layout)) if on}


def ask(t: Any, asked: frozenset[str]) -> None:
    """Let the handler of `t` answer from now on."""
    cls = type(t)
    if not vars(cls).get("_asks"):
        cls._asks = True
        for name, fn in _METHODS.items():
            setattr(cls, name, _Asking(fn, getattr(cls, name)))
        for name, fn in _PROPERTIES.items():
            setattr(cls, name, _AskingProperty(fn, getattr(cls, name)))
    t.__dict__[_MARK] = asked


def _answer(t: Any, overload: Any, *args: Any) -> Any:
    result = type(t).__torch_dispatch__(overload, (type(t),), (t, *args), {})
    if result is NotImplemented:
        name = f"torch.ops.{overload.namespace}.{overload._opname}"
        raise TypeError(
            f"Multiple dispatch failed for '{name}'; all __torch_dispatch__ handlers returned NotImplemented:\n\n"
            f"  - tensor subclass {type(t)}\n\nFor more information, try re-running with TORCH_LOGS=not_implemented"
        )
    return result


# -- what is asked ------------------------------------------------------------------------------------------------
def _sizes(t: Any) -> Size:
    found = _answer(t, ops.aten.sym_size.default)
    return Size(t._shape if found is None else found)


def _strides(t: Any) -> tuple[int, ...]:
    found = _answer(t, ops.aten.sym_stride.default)
    return tuple(t._stride if found is None else found)


def _dim(t: Any) -> int:
    found = _answer(t, ops.aten.dim.default)
    if type(found) is not int:
        raise RuntimeError(f"dim returned invalid type {type(found).__name__}, expected int")
    return found


def _count(overload: Callable[[], Any]) -> Callable[[Any], int]:
    def count(t: Any) -> int:
        found = _answer(t, overload())
        return int(HOOKS.tensor.numel(t) if found is None else found)

    return count


_numel = _count(lambda: ops.aten.sym_numel.default)
_elements = _count(lambda: ops.aten.numel.default)


def _offset(t: Any) -> int:
    found = _answer(t, ops.aten.sym_storage_offset.default)
    return int(t._offset if found is None else found)


def _wrapped(dim: int, dims: int) -> int:
    if not -max(dims, 1) <= dim < max(dims, 1):
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-max(dims, 1)}, {max(dims, 1) - 1}], but got {dim})"
        )
    return dim % dims if dims else dim


def _size(t: Any, dim: Any = None) -> Any:
    if dim is None:
        return _sizes(t)
    at = _wrapped(dim, _dim(t))
    return _sizes(t)[at]


def _stride(t: Any, dim: Any = None) -> Any:
    found = _strides(t)
    return found if dim is None else found[_wrapped(dim, len(found))]


def _is_contiguous(t: Any, *, memory_format: Any = contiguous_format) -> bool:
    packet = ops.aten.is_contiguous
    if memory_format is contiguous_format:
        found = _answer(t, packet.default)
    else:
        found = _answer(t, packet.memory_format, memory_format)
    if found is None:
        return bool(HOOKS.tensor.is_contiguous(t, memory_format=memory_format))
    return bool(found)


def _contiguous(t: Any, memory_format: Any = contiguous_format) -> Any:
    asked = _is_contiguous(t, memory_format=memory_format)
    return t if asked else t.clone(memory_format=memory_format)


def _reshape(t: Any, *shape: Any) -> Any:
    _is_contiguous(t)  # PyTorch asks which way is the shorter one
    return HOOKS.tensor.reshape(t, *shape)


def _data_ptr(t: Any) -> int:
    return HOOKS.tensor.data_ptr(t) if _elements(t) else 0


def _nbytes(t: Any) -> int:
    asked = t.__dict__[_MARK]
    if "layout" in asked:
        _layout(t)  # PyTorch looks whether it is sparse
    return int((_elements(t) if "sizes" in asked else HOOKS.tensor.numel(t)) * t._dtype.itemsize)


def _device(t: Any) -> Any:
    found = _answer(t, _prim("device", "Device", lambda a: a.device))
    if isinstance(found, (device, str)):
        return device(found)
    raise RuntimeError("unpackString: expected bytes or unicode object")


def _layout(t: Any) -> Any:
    found = _answer(t, _prim("layout", "Layout", lambda a: a.layout))
    if not isinstance(found, Layout):
        raise RuntimeError(f"layout returned invalid type {type(found).__name__}, expected Layout")
    return found


@functools.cache
def _prim(name: str, kind: str, fn: Callable[[Any], Any]) -> Any:
    """`torch.ops.prim.device` and `torch.ops.prim.layout`, which handlers are shown."""
    known = definitions("prim")
    if name not in known:
        op = known[name] = Op(f"prim::{name}", f"{name}(Tensor a) -> {kind}")
        op.composite = FnKernel(fn)
        for bit in DEVICE_BITS.values():
            op.kernels[bit] = FnKernel(fn)
    return getattr(ops.prim, name).default


# By name: what the tensor must have been made for, and what answers.
_METHODS: dict[str, tuple[str, Callable[..., Any]]] = {
    "size": ("sizes", _size),
    "dim": ("sizes", _dim),
    "ndimension": ("sizes", _dim),
    "numel": ("sizes", _numel),
    "nelement": ("sizes", _numel),
    "storage_offset": ("sizes", _offset),
    "stride": ("strides", _stride),
    "is_contiguous": ("strides", _is_contiguous),
    "contiguous": ("strides", _contiguous),
    "reshape": ("strides", _reshape),
    "data_ptr": ("sizes", _data_ptr),
    "__len__": ("sizes", lambda t: _size(t, 0)),
}
_PROPERTIES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "shape": ("sizes", _sizes),
    "ndim": ("sizes", _dim),
    "nbytes": ("sizes layout", _nbytes),
    "device": ("device", _device),
    "is_cpu": ("device", lambda t: _device(t).type == "cpu"),
    "is_meta": ("device", lambda t: _device(t).type == "meta"),
    "is_cuda": ("device", lambda t: _device(t).type == "cuda"),
    "layout": ("layout", _layout),
    # PyTorch looks at the key set for these; tensors that are made so are strided.
    "is_sparse": ("layout", lambda t: False),
    "is_sparse_csr": ("layout", lambda t: False),
}


class _Asking:
    """Stands in the subclass for a method of Tensor. Through the class it is what stood there before."""

    def __init__(self, entry: tuple[str, Callable[..., Any]], own: Any) -> None:
        self.kinds = frozenset(entry[0].split())
        self.fn = entry[1]
        self.own = own

    def asks(self, t: Any) -> bool:
        return not self.kinds.isdisjoint(t.__dict__.get(_MARK, ()))

    def __get__(self, t: Any, owner: Any = None) -> Any:
        if t is None:
            return self.own
        return functools.partial(self.fn, t) if self.asks(t) else self.own.__get__(t, owner)


class _AskingProperty(_Asking):
    """The same for a property."""

    def __get__(self, t: Any, owner: Any = None) -> Any:
        if t is None:
            return self.own
        return self.fn(t) if self.asks(t) else self.own.__get__(t, owner)

    def __set__(self, t: Any, value: Any) -> None:
        self.own.__set__(t, value)
