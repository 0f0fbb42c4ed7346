"""`torch._subclasses.meta_utils`: what two tensors must have in common but for their data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def assert_eq(a: Any, b: Any) -> None:
    if a != b:
        raise AssertionError(f"{a} != {b}")


def safe_is_leaf(t: Any) -> bool:
    """Whether a tensor is a leaf; those of inference mode are."""
    return bool(t.is_inference() or t.is_leaf)


def assert_metadata_eq(
    assert_eq: Callable[[Any, Any], None], m1: Any, m2: Any, *, skip_symbolic: bool = False, skip_leaf: bool = False
) -> None:
    """Ask `assert_eq` about dtype, shape, strides and the state of two tensors and of their gradients."""
    same = ["dtype", *([] if skip_symbolic else ["shape"]), "requires_grad", "layout"]
    for name in same:
        assert_eq(getattr(m1, name), getattr(m2, name))
    if not skip_leaf:
        assert_eq(safe_is_leaf(m1), safe_is_leaf(m2))
    for question in ("is_inference", "is_conj", "is_neg"):
        assert_eq(getattr(m1, question)(), getattr(m2, question)())
    grads = [t.grad if t.is_leaf else None for t in (m1, m2)]
    assert_eq(grads[0] is not None, grads[1] is not None)
    if grads[0] is not None:
        assert_metadata_eq(assert_eq, grads[0], grads[1], skip_symbolic=skip_symbolic, skip_leaf=skip_leaf)
    if not skip_symbolic:
        assert_eq(m1.stride(), m2.stride())
        assert_eq(m1.storage_offset(), m2.storage_offset())
    assert_eq(m1._base is not None, m2._base is not None)
    if m1._base is not None:
        assert_metadata_eq(assert_eq, m1._base, m2._base, skip_symbolic=skip_symbolic, skip_leaf=skip_leaf)
