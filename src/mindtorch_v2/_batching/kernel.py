"""The kernels behind the key: which rule serves a call with batched tensors.

Invariant: the highest level is served first. A rule sees the call as it was made, and calls operators on tensors that
hold all values of that level with their dimension in front, which may be batched tensors of lower levels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, final

from .._backends.common.kernels import check_result
from .._core_operators import CORE
from .._dispatch.keys import AUTOGRAD, BACKENDS, BATCHED, INFERENCE
from .._dispatch.op import RESOLVERS, Kernel, Op, PartsKernel, Spec, owned
from .._dispatch.registry import ops
from .._dispatch.state import modes, set_modes
from .._mypyc import i64
from .._ops.rules.pointwise import broadcast_shapes
from .._tensor_base import TensorBase, counter, requires_grad
from .level import Batch, Level, inside, is_many, level_of, levels_of, live, outside, share_all, some_many, spread, wrap
from .loop import one_by_one
from .steps import STEPS, lift

Rule = Callable[[Op, tuple[Any, ...], Level], Any]
# By the operator's name: from the table, from `torch.library.register_vmap`, and what was worked out for others.
RULES: dict[str, Rule] = {}
# Modes that change nothing for a kernel below autograd: this one, and that nothing is recorded.
QUIET: Final[i64] = BATCHED | (AUTOGRAD << 32)
# Operators that draw.
RANDOM: set[str] = set()

_CROWDED = (
    "vmap: {0}(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has more "
    "elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped over {1}. "
    "Please try to use out-of-place operators instead of {0}. If said operator is being called inside the "
    "PyTorch framework, please file a bug report instead."
)
_NO_OUT = "Batching rule not implemented for {0}; the fallback path doesn't work on out= or view ops."


def tensors_of(args: tuple[Any, ...]) -> list[TensorBase]:
    found: list[TensorBase] = []
    for a in args:
        if isinstance(a, TensorBase):
            found.append(a)
        elif isinstance(a, (tuple, list)):
            found += [t for t in a if isinstance(t, TensorBase)]
    return found


def each(args: tuple[Any, ...], fn: Callable[[TensorBase], Any]) -> tuple[Any, ...]:
    """Arguments with `fn` of every tensor in its place."""
    out: list[Any] = []
    for a in args:
        if isinstance(a, TensorBase):
            out.append(fn(a))
        elif isinstance(a, (tuple, list)):
            out.append(tuple([fn(t) if isinstance(t, TensorBase) else t for t in a]))
        else:
            out.append(a)
    return tuple(out)


@final
class Recorded(Kernel):
    """Autograd of a call with batched tensors: an argument from outside a level comes in by an operator of its own,
    whose derivative sums the gradients of the many."""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        derivative = op.derivative
        assert derivative is not None
        if op.name not in STEPS and not alike(args):
            levels = {level.number: level for t in tensors_of(args) for level in levels_of(t)}
            if levels:
                wanted = [levels[n] for n in sorted(levels)]
                written = op.schema.args[0].mutates if op.schema.args else False
                rest = each(args[1:] if written else args, lambda t: lifted(t, wanted))
                args = args[:1] + rest if written else rest
        return derivative.kernel().run(op, args, keys)


def alike(args: tuple[Any, ...]) -> bool:
    """Whether what requires grad lives at one level, the only one: then nothing has to come in."""
    only: Level | None = None
    for a in args:
        if isinstance(a, TensorBase):
            s = a._storage
            if isinstance(s, Batch):
                if (only is not None and s.level is not only) or isinstance(s.inner, Batch):
                    return False
                only = s.level
            elif requires_grad(a):
                return False
        elif isinstance(a, (tuple, list)):
            for t in a:
                if isinstance(t, TensorBase):
                    return False
    return True


def lifted(t: TensorBase, levels: list[Level]) -> TensorBase:
    if requires_grad(t):
        for level in levels:
            t = lift(t, level)
    return t


@final
class Mapped(Kernel):
    """Serves one operator: calls with a batched tensor among the arguments, and any call while `vmap` runs."""

    def __init__(self) -> None:
        self.calls_ops = True
        self.rule: Rule | None = None
        self.random: bool = False

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        level = level_of(args)
        if level is not None and op.is_view:
            # The geometry of one of the many is the geometry of all.
            bits = keys & BACKENDS
            return op.backend(bits, args).run(op, args, bits)
        rule = self.rule
        if rule is None:
            rule = rule_of(op)
            self.rule = rule
            self.random = op.name in RANDOM
        if self.random:
            running = live()
            if running:
                # The innermost level decides, whatever the arguments are.
                level = running[len(running) - 1]
        if level is None:
            rest = keys & ~BATCHED
            return op.below(rest, args).run(op, args, rest)
        if op.mutates:
            # What is inside shares the count of writes once there is one.
            for t in tensors_of(args):
                if not t._keys & INFERENCE:
                    counter(t)
        if isinstance(rule, Together):
            return rule.serve(op, args, level)
        return rule(op, args, level)


def rule_of(op: Op) -> Rule:
    rule = RULES.get(op.name)
    if rule is None:
        rule = derived(op)
        RULES[op.name] = rule
    return rule


def mapped(op: Op) -> Kernel:
    """The kernel behind the key."""
    step = STEPS.get(op.name)
    return Mapped() if step is None else step


class Together:
    """A rule for calls in which something is many; where all share one value the operator computes it once."""

    def __init__(self, rule: Rule | None) -> None:
        self.rule: Final = rule

    def __call__(self, op: Op, args: tuple[Any, ...], level: Level) -> Any:
        return self.serve(op, args, level)

    def serve(self, op: Op, args: tuple[Any, ...], level: Level) -> Any:
        before = modes()
        set_modes(before & ~BATCHED)
        try:
            if not some_many(args, level):
                return share_all(op.call(each(args, lambda t: inside(t, level))), level)
            return self.apply(op, args, level)
        finally:
            set_modes(before)

    def apply(self, op: Op, args: tuple[Any, ...], level: Level) -> Any:
        """The rule itself, with the mode hidden that would show the level what the rule calls."""
        rule = self.rule
        assert rule is not None
        return rule(op, args, level)


def together(rule: Rule) -> Rule:
    return Together(rule)


def below(op: Op, args: tuple[Any, ...]) -> Any:
    """Call an operator on tensors that hold all values. A kernel that calls no operators does not need the mode hidden
    that would show them to the level."""
    keys: i64 = 0
    for a in args:
        if isinstance(a, TensorBase):
            keys |= a._keys
        elif isinstance(a, (tuple, list)):
            keys |= BATCHED
    before = modes()
    if keys & ~BACKENDS == 0 and before & ~QUIET == 0:
        kernel = op.table.get(int(keys))
        if kernel is not None and not kernel.calls_ops:
            return kernel.run(op, args, keys)
    set_modes(before & ~BATCHED)
    try:
        return op.call(args)
    finally:
        set_modes(before)


LOOP = together(one_by_one)


def derived(op: Op) -> Rule:
    """The rule of an operator that nobody gave one: from its kind, or from what its row says."""
    from .table import is_random, kind_of

    if is_random(op):
        RANDOM.add(op.name)
    found = kind_of(op)
    if found is not None:
        return found
    if op.is_out:
        return _refuse_out
    if op.mutates and op.functional is not None:
        return in_place
    fallback = getattr(op.row, "fallback", None)
    if isinstance(fallback, PartsKernel):
        return parts(fallback.fn)
    return LOOP


def served_by_loop() -> list[str]:
    """Rows of tensors that have no rule: `vmap` calls them once for each of the many."""
    from .._api.lazy_tables import load_all
    from .whole import LOOPED_WHOLE

    load_all()
    rows = [op for op in ops() if op.row is not None and op.row.kind == "op"]
    found = [op.name for op in rows if any(a.kind == "Tensor" for a in op.schema.args) and derived(op) is LOOP]
    return sorted({*found, *LOOPED_WHOLE.split()})


def parts(fn: Callable[..., Any]) -> Rule:
    """Python in terms of other operators, which have rules."""

    def served(op: Op, args: tuple[Any, ...], level: Level) -> Any:
        return owned(fn(*args))

    return served


def all_many(fn: Callable[..., Any]) -> Rule:
    """The same, with every tensor one for each."""

    def served(op: Op, args: tuple[Any, ...], level: Level) -> Any:
        return owned(fn(*each(args, lambda t: wrap(spread(t, level), level))))

    return served


def _refuse_out(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    raise RuntimeError(_NO_OUT.format(op.qualified()))


def crowded(name: str) -> RuntimeError:
    return RuntimeError(_CROWDED.format(name, "in a vmap"))


def too_many(op: Op, args: tuple[Any, ...], level: Level) -> RuntimeError:
    """The refusal of a write of many values into a tensor of one, which PyTorch words by the kind of its rule."""
    name = op.title()
    if name in _ARITHMETIC and not (name == "masked_fill_" and isinstance(args[-1], TensorBase)):
        return crowded("inplace arithmetic")
    if name in _NAMED:
        return crowded(name)
    if name in _BROADCAST:
        found = (level.size, *broadcast_shapes(args[0]._shape, args[1]._shape))
        return RuntimeError(f"output with shape {list(args[0]._shape)} doesn't match the broadcast shape {list(found)}")
    shown = op.name if "::" in op.name else "aten::" + name
    return RuntimeError(_CROWDED.format(shown, f"at level {level.depth}"))


def in_place(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    """`op_` from `op`: the value for all, copied into the target."""
    from .table import write_straight

    target, func = args[0], op.functional
    assert func is not None
    if not is_many(target, level):
        if some_many(args[1:], level):
            raise too_many(op, args, level)
        with outside():
            op.call(each(args, lambda t: inside(t, level)))
        return target
    spec = func.infer_inplace(args) if func.rule is not None else None
    if isinstance(spec, Spec):
        check_result(op, spec, target, args)
    if write_straight(op, args, level):
        return target
    found = func.call(args)
    CORE.copy_.call((target, found, False))
    return target


_NAMED = frozenset("fill_ index_add_ index_fill_ index_put_ scatter_add_ scatter_reduce_".split())
_ARITHMETIC = frozenset(
    "clamp_max_ clamp_min_ copy_ div_ divide_ logical_and_ logical_or_ logical_xor_ masked_fill_ mul_ multiply_ sub_ "
    "true_divide_".split()
)
_BROADCAST = frozenset(
    "add_ arctan2_ atan2_ bitwise_and_ bitwise_left_shift_ bitwise_or_ bitwise_right_shift_ bitwise_xor_ copysign_ "
    "gcd_ lcm_".split()
)


def serve() -> None:
    """Enter the kernels; called once, when the first level begins."""
    from . import dims  # noqa: F401 the ways in and out get their derivatives

    RESOLVERS.batched = mapped
    RESOLVERS.batched_autograd = Recorded()
    RESOLVERS.mapped = _whole


def _whole(op: Op) -> Kernel | None:
    """What serves an operator above autograd, if anything does."""
    from .whole import WHOLE

    return WHOLE.get(op.name)


def run_inside(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    """The operator on what is inside of the level."""
    return op.call(each(args, lambda t: inside(t, level)))
