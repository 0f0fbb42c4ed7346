"""`torch.utils.swap_tensors`: two tensors exchange everything but their identity.

Invariant: afterwards each object is what the other was: class, attributes, memory and gradient. A graph that was
recorded before refuses to add into either.
"""

from __future__ import annotations

import copyreg
import weakref
from typing import Any, cast

from .._tensor_base import TensorBase

# What a tensor has in native fields; `_accumulator` stays out, since a graph knows its leaf by the object.
FIELDS = tuple(
    """_storage _offset _shape _stride _dtype _device _keys _numel _contig _output_nr _cmeta _attr_version _vc _grad_fn
    _grad_field _base_field _view_op _view_args _hooks _tangents""".split()
)


def swap_tensors(t1: Any, t2: Any) -> None:
    """Exchange the contents of two tensors."""
    for name, tensor in (("t1", t1), ("t2", t2)):
        if weakref.getweakrefs(tensor):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    slots = _slots(t1)
    if slots != _slots(t2):
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    for tensor in (t1, t2):
        _poison(tensor)
    kinds = type(t1), type(t2)
    first, second = _state(t1, slots), _state(t2, slots)
    t1.__class__, t2.__class__ = reversed(kinds)
    _restore(t1, second, slots)
    _restore(t2, first, slots)


def _slots(tensor: Any) -> set[str]:
    names = cast(Any, copyreg)._slotnames(type(tensor))
    return {name for name in names if not hasattr(TensorBase, name)}


def _state(tensor: Any, slots: set[str]) -> dict[str, Any]:
    state = dict(tensor.__dict__)
    state.update((name, getattr(tensor, name)) for name in FIELDS)
    state.update((name, getattr(tensor, name)) for name in slots if hasattr(tensor, name))
    state.pop("_accumulator", None)
    return state


def _restore(tensor: Any, state: dict[str, Any], slots: set[str]) -> None:
    tensor.__dict__.clear()
    for name in slots:
        if hasattr(tensor, name):
            delattr(tensor, name)
    for name, value in state.items():
        if name in FIELDS or name in slots:
            setattr(tensor, name, value)
        else:
            tensor.__dict__[name] = value
    tensor._accumulator = None


def _poison(tensor: Any) -> None:
    """A node that adds into this tensor belongs to a graph of before."""
    node = None if tensor._accumulator is None else tensor._accumulator()
    if node is not None:
        node.register_prehook(_refuse)


def _refuse(grad_outputs: Any) -> Any:
    raise RuntimeError(
        "Trying to execute AccumulateGrad node that was poisoned by swap_tensors this can happen when you try to run "
        "backward on a tensor that was swapped. For a module m with "
        "`torch.__future__.set_swap_module_params_on_conversion(True)` you should not change the device or dtype of "
        "the module (e.g. `m.cpu()` or `m.half()`) between running forward and backward. To resolve this, please only "
        "change the device/dtype before running forward (or after both forward and backward)."
    )
