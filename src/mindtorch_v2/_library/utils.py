"""`torch._library.utils`: questions about operators and their schemas."""

from __future__ import annotations

from typing import Any

from .. import _operators
from .._schema_info import parse_schema
from .._tags import Tag
from .registrations import split

_TENSOR = frozenset(("Tensor", "Optional[Tensor]"))
_TENSOR_LISTS = frozenset(
    ("List[Tensor]", "List[Optional[Tensor]]", "Optional[List[Tensor]]", "Optional[List[Optional[Tensor]]]")
)


def parse_namespace(qualname: str) -> tuple[str, str]:
    """`namespace::name` in two."""
    return split(qualname)


def lookup_op(qualname: str) -> Any:
    """The operator `namespace::name` or `namespace::name.overload`."""
    namespace, name = split(qualname)
    base, _, overload = name.partition(".")
    return getattr(getattr(getattr(_operators.ops, namespace), base), overload or "default")


def is_builtin(op: Any) -> bool:
    """Whether an operator is one of PyTorch's own."""
    return op.namespace in ("aten", "prim", "prims")


def is_functional_schema(schema: Any, *, allow_valid_view: bool = False) -> bool:
    """Whether an operator writes nothing, gives something, and nothing that shares memory with an argument. With
    `allow_valid_view` one tensor may be a view of the only other."""
    read = parse_schema(schema) if isinstance(schema, str) else schema
    if read.is_mutable or not read.returns:
        return False
    if all(r.alias_info is None or r.alias_info.is_write for r in read.returns):
        return True
    counts = [sum(str(a.type) == "Tensor" for a in side) for side in (read.arguments, read.returns)]
    return allow_valid_view and counts == [1, 1]


def get_layout_constraint_tag(fn: Any, *, with_default: bool = True) -> Any:
    """The strictest of an operator's tags that say what strides its arguments must have when it is compiled."""
    for tag in (
        Tag.needs_exact_strides,
        Tag.needs_contiguous_strides,
        Tag.needs_fixed_stride_order,
        Tag.flexible_layout,
    ):
        if tag in fn.tags:
            return tag
    if not with_default:
        return None
    return Tag.flexible_layout if is_builtin(fn) else Tag.needs_exact_strides


def is_tensorlist_like_type(typ: Any) -> bool:
    """Whether the type of an argument is a list of tensors, with holes or without."""
    return str(typ) in _TENSOR_LISTS


def is_tensor_like_type(typ: Any) -> bool:
    """Whether the type of an argument is a tensor, or a tensor or nothing."""
    return str(typ) in _TENSOR
