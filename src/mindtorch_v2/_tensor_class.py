"""The class of `torch.Tensor`: what is read through the class, `torch.Tensor.dim` or `torch.Tensor.shape.__get__`, asks
the handlers of what it is called with.

Invariant: what is read of a tensor never comes here; and one name gives one object, the one that handlers are given.
"""

from __future__ import annotations

import types
from typing import Any, Final

from . import _native

_KINDS: Final = frozenset(
    {
        types.FunctionType,
        types.BuiltinFunctionType,
        types.MethodDescriptorType,
        types.WrapperDescriptorType,
        types.GetSetDescriptorType,
        types.MemberDescriptorType,
        property,
        _native.Overridable,
    }
)
# `Tensor`, once the package is loaded: nobody else reads anything before.
OWN: Final[list[Any]] = []


class TensorMeta(type):
    """The class of `Tensor` and of its subclasses."""

    def __getattribute__(cls, name: str) -> Any:
        found = type.__getattribute__(cls, name)
        if type(found) not in _KINDS or not OWN:
            return found
        from ._watched import shown

        return shown(name, found)
