"""Random operators inside `vmap`: refused, different for each of the many, or the same for all.

Invariant: the innermost level decides first, whether its tensors are among the arguments or not.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

from .._core_operators import CORE
from .._dispatch.keys import BATCHED
from .._dispatch.op import Op
from .._dispatch.registry import get
from .._dispatch.state import modes, set_modes
from .._tensor_base import TensorBase
from .kernel import each, tensors_of
from .kinds import described, fitted, reshaped
from .level import Level, inside, is_many, live, spread, wrap

_REFUSED = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
    "randomness flags on vmap or perform the randomness operation out of vmap"
)
_UNBATCHED = (
    "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same randomness. "
    "If this is necessary for your usage, please file an issue with functorch."
)
_SAME = (
    "Vmap does not currently support same randomness with a batched tensor input. Please file an issue with functorch"
)
# What is drawn does not depend on the values of the tensor.
_LIKE = frozenset(("rand_like", "randn_like", "randint_like"))


class _under:
    """Inside, this level and those within it are not live, those around it are."""

    def __init__(self, level: Level) -> None:
        self.level = level

    def __enter__(self) -> None:
        stack = live()
        self.before = modes()
        self.gone = [level for level in stack if level.number >= self.level.number]
        del stack[len(stack) - len(self.gone) :]
        if not stack:
            set_modes(self.before & ~BATCHED)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        live().extend(self.gone)
        set_modes(self.before)


def refusal(randomness: str) -> str:
    """Why a level refuses a random operator on tensors that are many."""
    return _REFUSED if randomness == "error" else _SAME


def drawn(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    """A random operator inside `level`."""
    if level.randomness == "error":
        raise RuntimeError(_REFUSED)
    with _under(level):
        if op.mutates:
            return _written(op, args, level)
        if not tensors_of(args):
            return _factory(op, args, level)
        return _of_tensors(op, args, level)


def _factory(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    if level.randomness == "same":
        return op.call(args)
    place = op.schema.index("size")
    if place < 0:
        return wrap(get("stack").call((tuple([op.call(args) for _ in range(level.size)]), 0)), level)
    return wrap(op.call((*args[:place], (level.size, *args[place]), *args[place + 1 :])), level)


def _of_tensors(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    many = any([is_many(t, level) for t in tensors_of(args)])
    if level.randomness == "same":
        if not many:
            return op.call(each(args, lambda t: inside(t, level)))
        if op.title() not in _LIKE:
            raise RuntimeError(_SAME)
        return op.call(each(args, lambda t: get("select").call((inside(t, level), 0, 0))))
    specs = described(op, args)
    given = each(args, lambda t: spread(t, level))
    if op.title() == "multinomial" and len(args[0]._shape) == 2:
        rows = given[0]
        given = (reshaped(rows, (rows._shape[0] * rows._shape[1], rows._shape[2])), *given[1:])
    return fitted(op.call(given), specs, level)


def _written(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    target = args[0]
    others = [t for t in tensors_of(args[1:]) if is_many(t, level)]
    if not is_many(target, level):
        if level.randomness == "different":
            raise RuntimeError(_UNBATCHED)
        if others:
            from .kernel import crowded

            raise crowded(op.title())
        op.call(each(args, lambda t: inside(t, level)))
        return target
    if level.randomness == "different":
        op.call(each(args, lambda t: spread(t, level) if isinstance(t, TensorBase) and t._shape else inside(t, level)))
        return target
    if others:
        raise RuntimeError(_SAME)
    one = get("empty_like").call((get("select").call((inside(target, level), 0, 0)), None, None, None, None, None))
    op.call((one, *each(args[1:], lambda t: inside(t, level))))
    CORE.copy_.call((inside(target, level), one, False))
    return target
