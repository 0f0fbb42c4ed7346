"""`torch.library.opcheck`: whether an operator does what it was registered to do.

Invariant: the checks run on copies of the given arguments; a failed check names itself and what differed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._dispatch.binding import bind
from .._dispatch.functionalize import functionalize
from .._dispatch.op import Op
from .._operators import overload_for, refusal
from .._tensor_base import TensorBase, requires_grad
from ..utils._pytree import tree_flatten, tree_map, tree_map_only
from .registrations import UNRECORDED, find

DEFAULT_TEST_UTILS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")


class OpCheckError(Exception):
    """An operator failed a check."""


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: Any = DEFAULT_TEST_UTILS,
    raise_exception: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
) -> dict[str, Any]:
    """Run checks of an operator on arguments; the answer says SUCCESS, or what was raised, for each.

    test_schema: it writes and shares what its schema says, and nothing else. test_autograd_registration: its gradient
    is a registration, not a by-product of its kernel. test_faketensor: meta tensors give results of the same shapes,
    strides and dtypes. test_aot_dispatch_dynamic: functionalized it gives the same values and gradients.
    """
    names = (test_utils,) if isinstance(test_utils, str) else test_utils
    if not isinstance(names, (tuple, list)) or not set(names) <= set(CHECKS):
        raise ValueError(
            f"opcheck(op, ..., test_utils={names}), expected test_utils to be subset of {tuple(CHECKS)} but it was not"
        )
    target = find(op)
    given = tuple(args)
    bound = bind(target, given, kwargs or {}, False)
    if bound is None:
        raise refusal(overload_for(target, ()), given, kwargs or {})
    tolerances = {"rtol": 1.3e-6 if rtol is None else rtol, "atol": 1e-5 if atol is None else atol}
    results: dict[str, Any] = {}
    for name in names:
        try:
            CHECKS[name](target, bound, tolerances)
            results[name] = "SUCCESS"
        except Exception as e:
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {name} failed with {e} (scroll up for stack trace)") from e
            results[name] = e
    return results


def _tensors(tree: Any) -> list[Any]:
    return [t for t in tree_flatten(tree)[0] if isinstance(t, TensorBase)]


def _copies(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments over memory of their own, leaves where they required grad."""

    def copy(t: Any) -> Any:
        if not isinstance(t, TensorBase):
            return t
        fresh: Any = t
        made = fresh.detach().clone()
        return made.requires_grad_() if requires_grad(t) else made

    copied: tuple[Any, ...] = tree_map(copy, args)
    return copied


def _equal(a: Any, b: Any) -> bool:
    if a.shape != b.shape or a.dtype is not b.dtype:
        return False
    return bool(((a == b) | ((a != a) & (b != b))).all())


def _schema(op: Op, args: tuple[Any, ...], tolerances: dict[str, float]) -> None:
    given = _copies(args)
    before = [[t.detach().clone() for t in _tensors([value])] for value in given]
    result = op.call(given)
    for a, value, old in zip(op.schema.args, given, before):
        changed = [not _equal(t.detach(), o) for t, o in zip(_tensors([value]), old)]
        if any(changed) and not a.mutates:
            raise RuntimeError(f"Argument {a.name} is not defined as mutable but was mutated")
    outputs = result if isinstance(result, tuple) else (result,)
    if len(outputs) != len(op.schema.returns) and not (result is None and not op.schema.returns):
        raise RuntimeError(f"{op.qualified()} returned {len(outputs)} values; its schema has {len(op.schema.returns)}")
    inputs = {id(t._storage): a for a, value in zip(op.schema.args, given) for t in _tensors([value])}
    for r, out in zip(op.schema.returns, outputs):
        for t in _tensors([out]):
            source = inputs.get(id(t._storage))
            if source is not None and (not source.alias or source.alias.split(" ")[0] != r.alias):
                raise RuntimeError(f"Argument {source.name} is not defined to alias output but was aliasing")


def _autograd(op: Op, args: tuple[Any, ...], tolerances: dict[str, float]) -> None:
    if not any(requires_grad(t) for t in _tensors(args)):
        # Nothing to be recorded, nothing to be checked.
        return
    if op.derivative is not UNRECORDED or op.composite is not None:
        return
    results = op.call(_copies(args))
    if any(requires_grad(t) for t in _tensors([results])):
        raise RuntimeError(
            f"{op.qualified()}: operator did not have an autograd kernel registered, but its results require grad, "
            "because its kernel called operators that are recorded. Please use register_autograd, or register it as "
            "CompositeImplicitAutograd."
        )


def _meta(op: Op, args: tuple[Any, ...], tolerances: dict[str, float]) -> None:
    expected = op.call(_copies(args))
    got = op.call(tree_map_only(TensorBase, lambda t: t.detach().to("meta"), args))
    real, fake = tree_flatten(expected)[0], tree_flatten(got)[0]
    if len(real) != len(fake):
        raise RuntimeError(f"{op.qualified()}: {len(fake)} results on meta tensors, {len(real)} otherwise")
    for r, f in zip(real, fake):
        if isinstance(r, TensorBase) != isinstance(f, TensorBase):
            raise RuntimeError(f"{op.qualified()}: a result is {type(f)} on meta tensors, {type(r)} otherwise")
        if isinstance(r, TensorBase):
            for what in ("_shape", "_stride", "_dtype"):
                if getattr(r, what) != getattr(f, what):
                    raise RuntimeError(
                        f"{op.qualified()}: {what.strip('_')} of a result is {getattr(f, what)} on meta "
                        f"tensors, {getattr(r, what)} otherwise"
                    )


def _functional(op: Op, args: tuple[Any, ...], tolerances: dict[str, float]) -> None:
    eager, functional = _copies(args), _copies(args)
    expected = op.call(eager)
    with functionalize():
        got = op.call(functional)
    _close(op, "results", expected, got, tolerances)
    _close(op, "arguments", eager, functional, tolerances)
    if any(requires_grad(t) for t in _tensors([expected])):
        _close(op, "gradients", _gradients(expected, eager), _gradients(got, functional), tolerances)
    _meta(op, args, tolerances)


def _gradients(results: Any, args: tuple[Any, ...]) -> Any:
    from ..autograd import grad

    outputs = [t for t in _tensors([results]) if requires_grad(t)]
    inputs = [t for t in _tensors(args) if requires_grad(t)]
    return grad([t.sum() for t in outputs], inputs, allow_unused=True)


def _close(op: Op, what: str, expected: Any, got: Any, tolerances: dict[str, float]) -> None:
    for e, g in zip(_tensors([expected]), _tensors([got])):
        a, b = e.detach(), g.detach()
        if a.shape != b.shape or not bool(
            ((a == b) | ((a - b).abs() <= tolerances["atol"] + tolerances["rtol"] * a.abs())).all()
        ):
            raise RuntimeError(f"{op.qualified()}: functionalized, its {what} differ: expected {a}, got {b}")


CHECKS: dict[str, Callable[[Op, tuple[Any, ...], dict[str, float]], None]] = {
    "test_schema": _schema,
    "test_autograd_registration": _autograd,
    "test_faketensor": _meta,
    "test_aot_dispatch_dynamic": _functional,
}
