"""What leaves may ask of the gradients that arrive: a dtype of their own (`grad_dtype`), and any strides
(`enforce_grad_layout_policy`).

Invariant: `WATCH.grad_dtypes` and `WATCH.loose` say whether anyone has asked; until then nobody looks here. It is not
compiled.
"""

from __future__ import annotations

import _thread
from _weakref import ref as _weak
from typing import Any

from .._dispatch.op import type_name
from .._dtype import dtype
from .._dtype_names import cpp_name
from .._tensor_base import TensorBase
from .node import WATCH

# By the id of a leaf that lives: what `grad_dtype` was set to. A copy of a tensor does not take it along.
_ASKED: dict[int, tuple[Any, Any]] = {}


def grad_dtype(t: TensorBase) -> Any:
    """The dtype of a leaf's gradient: its own unless set; None for any."""
    found = _ASKED.get(id(t))
    return t._dtype if found is None else found[1]


def set_grad_dtype(t: Any, value: Any) -> None:
    """`t.grad_dtype = value`"""
    if not t.is_leaf:
        raise RuntimeError("grad_dtype can only be set on leaf tensors.")
    if value is not None and not isinstance(value, dtype):
        raise RuntimeError(f"grad_dtype must be a torch.dtype or None, but got {type_name(value)}")
    grad = t._grad_field
    if grad is not None and value is not None and grad._dtype is not value:
        raise RuntimeError(
            f"Cannot set grad_dtype to '{value.scalar_name}' because there is already a gradient with dtype "
            f"'{cpp_name(grad._dtype)}'. Please clear the gradient (.grad = None) before changing grad_dtype, or "
            "ensure the new grad_dtype matches the existing gradient's dtype."
        )
    place = id(t)
    _ASKED[place] = (_weak(t, lambda _: _ASKED.pop(place, None)), value)
    WATCH.grad_dtypes = True
    node = None if t._accumulator is None else t._accumulator()
    if node is not None:
        node._dtype = value


class _Thread(_thread._local):
    enforced = True


_THREAD = _Thread()


def layout_enforced() -> bool:
    """Whether a first gradient takes its leaf's layout in this thread, even if that costs a copy."""
    return _THREAD.enforced


def enforce_layout(enable: bool) -> None:
    """Switch that for this thread."""
    WATCH.loose += _THREAD.enforced - enable
    _THREAD.enforced = enable
