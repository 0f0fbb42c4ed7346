"""`torch._opaque_base`: the class that opaque types of a program inherit from."""

from __future__ import annotations


class OpaqueBaseMeta(type):
    """Of opaque types."""


class OpaqueBase(metaclass=OpaqueBaseMeta):
    """A class whose objects are handed on as they are."""
