"""The class of tensors: what is read through it (`torch.Tensor.dim`, `torch.Tensor.shape.__get__`) asks the handlers of
what it is called with.

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
# By name what stands in `Tensor`, and what users see in its place (`_watched`).
SHOWN: Final[dict[str, tuple[Any, Any]]] = {}


def _shown(name: str, found: Any) -> Any:
    from ._watched import shown

    return shown(name, found)


def define(cls: type, construct: Any) -> None:
    """`Tensor` is this class, once the package is loaded: nobody else reads anything before."""
    _native.define_tensor_class(cls, _KINDS, SHOWN, _shown, construct)
