"""Copying and pickling tensors.

Invariant: tensors that share memory still share it after a deep copy or a pickle made in one go.
"""

from __future__ import annotations

from typing import Any

from ._device import CPU, as_device
from ._dispatch.keys import AUTOGRAD, PYTHON, TORCH_DISPATCH, device_bit
from ._dispatch.state import exclude, modes, set_modes
from ._dtype import by_code
from ._storage import UntypedStorage
from ._tensor_base import TensorBase, grad_fn_of, make, requires_grad


def deep_copy(t: Any, memo: dict[int, Any]) -> Any:
    """`copy.deepcopy(t)`: leaves only; the storage is copied once per memo."""
    if grad_fn_of(t) is not None and requires_grad(t):
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
            "moment.  If you "
            "were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see "
            "https://github.com/pytorch/pytorch/pull/103001"
        )
    if id(t) in memo:
        return memo[id(t)]
    import copy

    if t._keys & TORCH_DISPATCH and t._storage.ptr == 0:
        memo[id(t)] = copied = _wrapper_copy(t, memo)
        return copied
    old = modes()
    exclude(PYTHON)
    try:
        storage = t.untyped_storage().__deepcopy__(memo)
        new = make(storage._raw, t._offset, t._shape, t._stride, t._dtype, t._device, device_bit(t._device.type))
    finally:
        set_modes(old)
    if type(t) is not type(new):
        new = new.as_subclass(type(t))  # type: ignore[attr-defined]
    if requires_grad(t):
        new.requires_grad = True
    if t._grad_field is not None:
        new._grad_field = deep_copy(t._grad_field, memo)
    memo[id(t)] = new
    own = attributes(t)
    if own:
        new.__dict__.update(copy.deepcopy(own, memo))
    return new


def _wrapper_copy(t: Any, memo: dict[int, Any]) -> Any:
    """Of a tensor without memory: its class knows what it consists of."""
    old = modes()
    exclude(AUTOGRAD)
    try:
        new = t.clone()
    finally:
        set_modes(old)
    if type(new) is not type(t):
        raise RuntimeError(
            "The default implementation of __deepcopy__() for wrapper subclasses only works for subclass types that "
            "implement clone() and for which cloning returns another instance of the same subclass. You should either "
            "properly implement clone() for your subclass or override __deepcopy__() if it is intended behavior for "
            "clone() to return an instance of a different type."
        )
    if requires_grad(t):
        new.requires_grad = True
    if t._grad_field is not None:
        new._grad_field = deep_copy(t._grad_field, memo)
    return new


def attributes(t: Any) -> dict[str, Any]:
    """What a user set on a tensor. Uncompiled, a tensor's own fields lie in the same dict."""
    fields = getattr(TensorBase, "__annotations__", {})
    return {k: v for k, v in t.__dict__.items() if k not in fields}


def reduce_tensor(t: Any) -> Any:
    """What pickle stores: the storage (shared between tensors of one pickle), the geometry, and Python attributes.
    A result of recorded operators comes back as a leaf."""
    state = attributes(t) or None
    storage: Any = t.untyped_storage()
    if t._device.type == "meta":
        storage = storage.nbytes()
    args = (
        type(t),
        storage,
        t._dtype.code,
        str(t._device),
        int(t._offset),
        tuple(t._shape),
        t._stride,
        requires_grad(t),
    )
    return (_rebuild, args) if state is None else (_rebuild, args, state)


def _rebuild(
    cls: Any,
    storage: Any,
    code: int,
    dev: str,
    offset: int,
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    needs_grad: bool,
) -> Any:
    device = CPU if dev == "cpu" else as_device(dev)
    if not isinstance(storage, UntypedStorage):
        storage = UntypedStorage(storage, device=device)
    t: Any = make(storage._raw, offset, shape, stride, by_code(code), device, device_bit(device.type))
    if cls is not type(t):
        t = t.as_subclass(cls)
    if needs_grad:
        t.requires_grad = True
    return t
