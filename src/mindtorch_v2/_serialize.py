"""Copying and pickling tensors.

Invariant: tensors that share memory still share it after a deep copy or a pickle made in one go.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from typing import Any

from ._core_operators import HOOKS
from ._dispatch.keys import AUTOGRAD, LAZY, PYTHON, SPARSE, TORCH_DISPATCH, device_bit
from ._dispatch.state import exclude, modes, set_modes
from ._tensor_base import make, requires_grad


def deep_copy(t: Any, memo: dict[int, Any]) -> Any:
    """`copy.deepcopy(t)`: leaves only; the storage is copied once per memo."""
    if not t.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
            "moment.  If you "
            "were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see "
            "https://github.com/pytorch/pytorch/pull/103001"
        )
    if id(t) in memo:
        return memo[id(t)]
    import copy
    import copyreg

    if t._keys & (SPARSE | LAZY):
        new: Any = _wrapper_copy(t)
    elif t._storage.ptr == 0 and (t._keys & TORCH_DISPATCH or type(t) is not HOOKS.tensor):
        new = _wrapper_copy(t)
    else:
        old = modes()
        exclude(PYTHON)
        try:
            storage = t.untyped_storage().__deepcopy__(memo)
            new = make(storage._raw, t._offset, t._shape, t._stride, t._dtype, t._device, device_bit(t._device.type))
        finally:
            set_modes(old)
        if type(t) is not type(new):
            new = _instance_over(t, new)
    if requires_grad(t):
        new.requires_grad = True
    if t._grad_field is not None:
        new._grad_field = deep_copy(t._grad_field, memo)
    memo[id(t)] = new
    if type(t) is not HOOKS.tensor:
        for slot in vars(copyreg)["_slotnames"](type(t)):
            if hasattr(t, slot):
                setattr(new, slot, copy.deepcopy(getattr(t, slot), memo))
    if t.__dict__:
        new.__dict__.update(copy.deepcopy(dict(t.__dict__), memo))
        new.__dict__.pop("_cdata", None)
    return new


def _instance_over(t: Any, plain: Any) -> Any:
    """An instance of the class of `t` over the memory of `plain`: its `new_empty` makes one."""
    old = modes()
    exclude(AUTOGRAD)
    try:
        new = t.new_empty([])
        if type(new) is not type(t):
            raise RuntimeError(
                "The default implementation of __deepcopy__() for non-wrapper subclasses only works for subclass types "
                "that implement new_empty() and for which that function returns another instance of the same "
                "subclass. You should either properly implement new_empty() for your subclass or override "
                "__deepcopy__() if it is intended behavior for new_empty() to return an instance of a different type."
            )
        exclude(PYTHON)
        new.data = plain
    finally:
        set_modes(old)
    return new


def _wrapper_copy(t: Any) -> Any:
    """Of a tensor without memory: its class knows what it consists of."""
    old = modes()
    exclude(AUTOGRAD)
    try:
        new = t.clone()
    finally:
        set_modes(old)
    if type(new) is not type(t) and t._keys & (SPARSE | LAZY):
        new = new.as_subclass(type(t))
    if type(new) is not type(t):
        raise RuntimeError(
            "The default implementation of __deepcopy__() for wrapper subclasses only works for subclass types that "
            "implement clone() and for which cloning returns another instance of the same subclass. You should either "
            "properly implement clone() for your subclass or override __deepcopy__() if it is intended behavior for "
            "clone() to return an instance of a different type."
        )
    return new


def reduce_tensor(t: Any) -> Any:
    """What pickle stores, in PyTorch's form: a function of `_utils`, the storage (shared between tensors of one
    pickle), the geometry, and Python attributes. A result of recorded operators comes back as a leaf."""
    from . import _utils

    state = _utils._get_obj_state(t)
    function, args = _plain(t)
    if type(t) is HOOKS.tensor and not state:
        return function, args
    return _utils._rebuild_from_type_v2, (function, type(t), args, state)


def reduce_parameter(t: Any) -> Any:
    """The same for a parameter, whose values are a plain tensor."""
    from . import _utils

    state = _utils._get_obj_state(t)
    data: Any = t.data
    hooks: OrderedDict[int, Any] = OrderedDict()
    if not state:
        return _utils._rebuild_parameter, (data, t.requires_grad, hooks)
    return _utils._rebuild_parameter_with_state, (data, t.requires_grad, hooks, state)


def _plain(t: Any) -> tuple[Any, tuple[Any, ...]]:
    from . import _utils
    from ._typed_storage import CLASSES, wrapped

    if t._keys & AUTOGRAD or t._hooks is not None:
        from .utils.hooks import warn_if_has_hooks

        warn_if_has_hooks(t)
    needs = requires_grad(t)
    if t._keys & SPARSE:
        from ._sparse.saving import reduced

        return _utils._rebuild_sparse_tensor, reduced(t)
    # Tuples of their own, as in PyTorch: the memo of a pickle tells shared ones apart.
    size, stride, offset = (*t._shape,), (*t._stride,), int(t._offset)
    if t._device.type == "meta":
        from ._serialization.state import SURROUNDINGS

        if SURROUNDINGS.skip_data:
            warnings.warn(
                "Serializing tensors on the meta device under skip_data context manager is a no-op", stacklevel=2
            )
        return _utils._rebuild_meta_tensor_no_storage, (t._dtype, size, stride, needs)
    if t._keys & TORCH_DISPATCH and t._storage.ptr == 0:
        args = (type(t), t._dtype, size, stride, offset, t.layout, t._device, needs)
        return _utils._rebuild_wrapper_subclass, args
    storage: Any = t.untyped_storage()
    hooks: OrderedDict[int, Any] = OrderedDict()
    said = _utils.get_tensor_metadata(t)
    more = (said,) if said else ()
    if t._dtype.name in CLASSES:
        return _utils._rebuild_tensor_v2, (wrapped(storage, t._dtype), offset, size, stride, needs, hooks, *more)
    return _utils._rebuild_tensor_v3, (storage, offset, size, stride, needs, hooks, t._dtype, *more)


def set_state(t: Any, state: Any) -> None:
    """`Tensor.__setstate__`, which pickles of PyTorch before 0.4 call."""
    if not t.is_leaf:
        raise RuntimeError("__setstate__ can be only called on leaf Tensors")
    if len(state) not in (3, 4, 5):
        raise ValueError("the state of a tensor must be a tuple of 3, 4 or 5 items")
    if len(state) == 4:
        t.set_(*state)
        return
    if len(state) == 5:
        t.data = state[0]
        state = (state[3], state[4], state[2])
    # Hooks are not part of a pickle; PyTorch assigns what it finds and it stays without effect.
    needs, _, _ = state
    if not isinstance(needs, bool):
        raise RuntimeError("requires_grad must be a bool")
    t.requires_grad = needs
