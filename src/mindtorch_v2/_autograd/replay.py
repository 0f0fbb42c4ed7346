"""Views made again: of another base, and bases of another view.

Invariant: a view is made by the operators that made it; where one of them gave several, by its strides. Nothing here is
loaded before one of the methods is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core_operators import CORE
from .._dispatch.op import Op, type_name
from .._tensor_base import TensorBase
from .inplace import replayed, strided_in, view_chain

Visitor = Callable[[Any], Any]


def _need(name: str, argument: str, t: Any) -> Any:
    if not isinstance(t, TensorBase):
        raise TypeError(f"{name}(): argument '{argument}' (position 1) must be Tensor, not {type_name(t)}")
    return t


def _alike(a: Any, b: Any) -> bool:
    return bool(
        a._shape == b._shape
        and a._stride == b._stride
        and a._offset == b._offset
        and a._dtype is b._dtype
        and a._device == b._device
    )


def view_func(
    self: Any, new_base: Any, symint_visitor_fn: Visitor | None = None, tensor_visitor_fn: Visitor | None = None
) -> Any:
    """The same view of another base, whose geometry is that of the first; None where it is not, and for what is no
    view. The functions change the numbers and tensors that the view's operators take."""
    base = self._base
    if base is None or not _alike(_need("_view_func", "new_base", new_base), base):
        _need("_view_func", "new_base", new_base)
        return None
    return view_func_unsafe(self, new_base, symint_visitor_fn, tensor_visitor_fn)


def view_func_unsafe(
    self: Any, new_base: Any, symint_visitor_fn: Visitor | None = None, tensor_visitor_fn: Visitor | None = None
) -> Any:
    """The same view of another base, whatever that looks like; None for what is no view."""
    _need("_view_func_unsafe", "new_base", new_base)
    base = self._base
    if base is None:
        return None
    chain = _chain(self)
    if chain is None:
        return CORE.as_strided.call((new_base, self._shape, self._stride, int(self._offset)))
    if symint_visitor_fn is not None or tensor_visitor_fn is not None:
        chain = [(op, _visited(op, rest, symint_visitor_fn, tensor_visitor_fn)) for op, rest in chain]
    return replayed(new_base, chain)


def _chain(view: Any) -> list[Any] | None:
    """The operators of a view, if all of them give one."""
    base = view._base
    try:
        chain = view_chain(view)
    except RuntimeError:
        if strided_in(base, view):
            return None
        raise
    several = any(op.schema.returns[0].is_list for op, _ in chain)
    return None if several and strided_in(base, view) else chain


def _visited(op: Op, rest: tuple[Any, ...], number: Visitor | None, tensor: Visitor | None) -> tuple[Any, ...]:
    """The arguments with sizes and positions (but no dimensions) and tensors changed."""

    def visited(x: Any, symbolic: bool) -> Any:
        if isinstance(x, (tuple, list)):
            return type(x)(visited(v, symbolic) for v in x)
        if isinstance(x, TensorBase):
            return x if tensor is None else tensor(x)
        return number(x) if number is not None and symbolic and isinstance(x, int) else x

    return tuple(visited(x, a.symbolic) for a, x in zip(op.schema.args[1:], rest))


def rev_view_func_unsafe(self: Any, new_view: Any) -> Any:
    """A tensor like this view's base, as a view of a tensor that stands for the view and has the base's memory."""
    _need("_rev_view_func_unsafe", "new_view", new_view)
    base = self._base
    if base is None:
        return None
    found = new_view
    if base.is_conj() != self.is_conj():
        found = found.conj()
    if base.is_neg() != self.is_neg():
        found = found._neg_view()
    if base._dtype is self._dtype:
        return CORE.as_strided.call((found, base._shape, base._stride, int(base._offset)))
    if base._dtype.is_complex:
        strides = (*[2 * n for n in base._stride], 1)
        parts = CORE.as_strided.call((found, (*base._shape, 2), strides, 2 * int(base._offset)))
        return _operator("view_as_complex", parts)
    found = _operator("view_as_real", found) if self._dtype.is_complex else found.view(base._dtype)
    return CORE.as_strided.call((found, base._shape, base._stride, int(base._offset)))


def _operator(name: str, t: Any) -> Any:
    from .._dispatch import registry

    return registry.get(name).call((t,))
