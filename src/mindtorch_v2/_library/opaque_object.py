"""`torch._library.opaque_object`: the classes that a program declares as opaque.

Invariant: this is a register and nothing else; an operator that gets such an object refuses it by its own rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import mindtorch_v2 as torch

from .._opaque_base import OpaqueBaseMeta

_BUILT_IN = (int, float, complex, bool, str, bytes, list, tuple, dict, set, torch.Tensor, torch.dtype, torch.device)


class MemberType(Enum):
    """How a member of an opaque object is used in traces."""

    USE_REAL = "use_real"
    INLINED = "inlined"


@dataclass
class _OpaqueTypeInfo:
    """What was said of a class."""

    class_name: str
    opaque_typ: str
    guard_fn: Any
    members: dict[str, MemberType]
    hoist: bool
    reconstruct_fn: Callable[..., Any] | None


_registered: dict[Any, _OpaqueTypeInfo] = {}


def register_opaque_type(
    cls: Any,
    *,
    typ: str,
    hoist: bool = False,
    guard_fn: Any = None,
    members: dict[str, MemberType] | None = None,
    reconstruct_fn: Callable[..., Any] | None = None,
) -> None:
    """Declare a class as opaque: its objects are compared by identity ("reference") or by value."""
    if cls in _BUILT_IN:
        raise ValueError(
            f"Unable to register built-in type {cls} as an opaque type. Please wrap it in a custom class and register "
            "the custom class as opaque."
        )
    if not isinstance(cls, OpaqueBaseMeta):
        raise TypeError(
            f"Opaque type {cls} must subclass torch._opaque_base.OpaqueBase or "
            "'metaclass=torch._opaque_base.OpaqueBaseMeta'. This is required so that FakeScriptObject can be "
            "registered as a virtual subclass, allowing isinstance() checks to work during torch.compile tracing. "
        )
    if typ not in ("reference", "value"):
        raise AssertionError(f"Opaque type must be either 'reference' or 'value', got {typ!r}")
    if typ == "value" and vars(cls).get("__eq__", object.__eq__) is object.__eq__:
        raise TypeError(
            f"Value-type opaque object of type {cls} is expected to have a non-default `__eq__` implementation as we "
            "will use this in torch.compile to guard on the equality of objects."
        )
    name = f"{cls.__module__}.{cls.__qualname__}"
    if cls in _registered:
        raise RuntimeError(f"Type '{name}' is already registered as an opaque type")
    _registered[cls] = _OpaqueTypeInfo(name, typ, guard_fn, members or {}, hoist, reconstruct_fn)


def get_opaque_obj_info(cls: Any) -> _OpaqueTypeInfo | None:
    """What was said of a class, given itself or by its name; None of one that nobody declared."""
    if isinstance(cls, str):
        return next((info for info in _registered.values() if info.class_name == cls), None)
    return _registered.get(cls)


def get_opaque_type_name(cls: Any) -> str:
    """The name of a declared class."""
    info = get_opaque_obj_info(cls)
    if info is None:
        raise ValueError(
            f"Class {cls} is not registered as an opaque type. Call register_opaque_type({cls.__name__}) first."
        )
    return info.class_name


def is_opaque_type(cls: Any) -> bool:
    """Whether a class was declared."""
    return get_opaque_obj_info(cls) is not None


def is_opaque_value(value: object) -> bool:
    """Whether an object is of a declared class."""
    return is_opaque_type(type(value))


def is_opaque_value_type(cls: Any) -> bool:
    """Whether a class was declared to be compared by value."""
    info = get_opaque_obj_info(cls)
    return info is not None and info.opaque_typ == "value"


def is_opaque_reference_type(cls: Any) -> bool:
    """Whether a class was declared to be compared by identity."""
    info = get_opaque_obj_info(cls)
    return info is not None and info.opaque_typ == "reference"


def should_hoist(cls: Any) -> bool:
    """Whether objects of a class were declared to be inputs of graphs."""
    info = get_opaque_obj_info(cls)
    return info is not None and info.hoist


def has_members(cls: Any) -> bool:
    """Whether members were declared of a class."""
    info = get_opaque_obj_info(cls)
    return info is not None and bool(info.members)


def get_member_type(cls: Any, member_name: str) -> MemberType | None:
    """How a member was declared, or None."""
    info = get_opaque_obj_info(cls)
    return None if info is None else info.members.get(member_name)
