"""Forward-mode differentiation: dual tensors, their levels, and what an operator does with tangents.

Invariant: a tensor's tangent at a level has the tensor's shape and, like the tangent of a view, the geometry of its
memory, so that a view of a tensor and the same view of its tangent go together. Levels are numbers that are never used
again; a tangent whose level is closed counts for nothing. While an operator or a rule runs at a level, that level and
those above it are hidden, so that lower levels, autograd and everything else see ordinary operators.
"""

from __future__ import annotations

from typing import Any, Final, final

from .._core_operators import CORE, HOOKS
from .._dispatch.keys import AUTOGRAD, BATCHED, CONJUGATE, FORWARD, LAZY, NEGATIVE, NESTED, SPARSE, VIEW
from .._dispatch.op import RESOLVERS, GivenDerivative, Kernel, Op
from .._dispatch.state import LOCAL, STATE, is_grad_enabled, modes, set_modes, swap_grad
from .._mypyc import i64
from .._tensor_base import TensorBase, differentiable, requires_grad
from .engine import gradient_at, run_backward
from .gradients import sum_to
from .inplace import InplaceDerivative, replayed, strided_in, view_chain
from .node import COPY_SLICES, FUNCTION, OP, Node, show
from .record import (
    ARG,
    ARRIVED,
    GRAD,
    GRADS,
    NEEDS,
    RESULT,
    CastDerivative,
    Formula,
    Formulas,
    NotDifferentiable,
    metadata,
    zeros_at,
)
from .saved import SavedOutput

_HIDDEN: Final[i64] = FORWARD << 32
# In the place of a level: the view shares memory with its base, but no tangents.
BARRED: Final = -1
_NONE: Final = -1

UNSUPPORTED: Final = (
    "Trying to use forward AD with {0} that does not support it because it has not been implemented yet.\nPlease file "
    "an issue to PyTorch at https://github.com/pytorch/pytorch/issues/new?template=feature-request.yml so that we can "
    "prioritize its implementation or submit a PR adding the implementation to derivatives.yaml"
)
# What PyTorch leaves out for operators that have no row in that file.
UNSUPPORTED_TAIL: Final = " or submit a PR adding the implementation to derivatives.yaml"
_OUT: Final = "Trying to use forward AD with {0}_out that does not support it because it is an out= function"


# -- levels -------------------------------------------------------------------------------------------------------
@final
class Levels:
    """The levels that are open, each with the tangents that saved results share: leaving the level takes them out, for
    such a tangent may lead back to the node that saved it."""

    def __init__(self) -> None:
        self.next: int = 0
        self.open: dict[int, list[dict[int, TensorBase | None]]] = {}


LEVELS: Final = Levels()


def hidden_levels() -> frozenset[int]:
    """Levels that are open, but not for what this thread does now."""
    found: frozenset[int] | None = getattr(LOCAL, "hidden_levels", None)
    return _NO_LEVELS if found is None else found


_NO_LEVELS: Final[frozenset[int]] = frozenset()


def enter_level() -> tuple[int, int, frozenset[int]]:
    """Open a level. Inside, levels that are hidden now stay hidden; what is returned goes to `leave_level`."""
    old = modes()
    before = hidden_levels()
    if old & _HIDDEN:
        LOCAL.hidden_levels = before | frozenset(LEVELS.open)
        set_modes(old & ~_HIDDEN)
    level = LEVELS.next
    LEVELS.next = level + 1
    LEVELS.open[level] = []
    STATE.levels += 1
    return level, int(old), before


def leave_level(entered: tuple[int, int, frozenset[int]]) -> None:
    level, old, before = entered
    STATE.levels -= 1
    for tangents in LEVELS.open.pop(level):
        tangents.pop(level, None)
    LOCAL.hidden_levels = before
    set_modes((modes() & ~_HIDDEN) | (old & _HIDDEN))


def hide(level: int) -> tuple[int, frozenset[int]]:
    """Hide a level and those above it; what is returned goes to `show_again`."""
    old = modes()
    before = hidden_levels()
    for other in LEVELS.open:
        if other < level and other not in before:
            LOCAL.hidden_levels = before | frozenset([n for n in LEVELS.open if n >= level])
            return int(old), before
    # No lower level is left: the key itself is hidden, and operators cost what they always do.
    set_modes(old | _HIDDEN)
    return int(old), before


def show_again(hidden: tuple[int, frozenset[int]]) -> None:
    old, before = hidden
    LOCAL.hidden_levels = before
    set_modes(old)


# -- tangents of tensors --------------------------------------------------------------------------------------------
def barred(t: TensorBase) -> bool:
    own = t._tangents
    return own is not None and BARRED in own


def bar(t: Any) -> None:
    """From now on the view `t` has no tangents from its base."""
    if isinstance(t, TensorBase):
        if t._tangents is None:
            t._tangents = {}
        t._tangents[BARRED] = None
    elif isinstance(t, tuple):
        for x in t:
            bar(x)


def highest(t: TensorBase, under: int, hidden: frozenset[int]) -> int:
    """The highest level below `under` at which `t` has a tangent."""
    best = _NONE
    own = t._tangents
    if own is not None:
        for level in own:
            if best < level < under and level in LEVELS.open and level not in hidden:
                best = level
    if t._keys & VIEW and not barred(t):
        base = t._base_field
        if base is not None and base._tangents is not None and differentiable(t._dtype):
            for level in base._tangents:
                if best < level < under and level in LEVELS.open and level not in hidden:
                    best = level
    return best


def top_level(op: Op, args: tuple[Any, ...], under: int) -> int:
    """The highest level below `under` at which an argument has a tangent."""
    if not op.ready:  # composites come here without `Op.call`
        op.prepare()
    best = _NONE
    hidden = hidden_levels()
    for i in op.slots:
        a = args[i]
        if isinstance(a, TensorBase):
            best = max(best, highest(a, under, hidden))
    for i in op.list_slots:
        items = args[i]
        if items is not None:
            for t in items:
                if isinstance(t, TensorBase):
                    best = max(best, highest(t, under, hidden))
    return best


def tangent_of(t: Any, level: int) -> Any:
    """The tangent of `t` at a level, or None. A view whose base was given one by a write has a view of that."""
    if not isinstance(t, TensorBase):
        return None
    if t._keys & NESTED:
        return HOOKS.nested_tangent(t, level)
    own = t._tangents
    if own is not None:
        found = own.get(level)
        if found is not None:
            return found
        if BARRED in own:
            return None
    if t._keys & VIEW and differentiable(t._dtype):
        base = t._base_field
        if base is not None and base._tangents is not None:
            whole = base._tangents.get(level)
            if whole is not None:
                part = part_of(whole, base, t)
                put(t, level, part)
                return part
    return None


def visible_tangents(t: TensorBase) -> list[Any]:
    """The tangents of `t` at levels that are open, the innermost last."""
    hidden = hidden_levels()
    found = [tangent_of(t, level) for level in LEVELS.open if level not in hidden]
    return [tangent for tangent in found if tangent is not None]


def part_of(whole: TensorBase, base: TensorBase, view: TensorBase) -> Any:
    """What `view` is of `base`, of another tensor with the same geometry."""
    if not strided_in(base, view):
        return replayed(whole, view_chain(view))
    offset = int(view._offset - base._offset + whole._offset)
    return CORE.as_strided.call((whole, view._shape, view._stride, offset))


def put(t: TensorBase, level: int, tangent: TensorBase) -> None:
    own = t._tangents
    if own is None:
        own = {}
        t._tangents = own
    own[level] = tangent
    t._keys |= FORWARD


def same_memory(a: TensorBase, b: TensorBase) -> bool:
    """Whether two tensors lie in their storages in the same way."""
    return (
        (a._keys ^ b._keys) & LAZY == 0
        and a._stride == b._stride
        and a._offset == b._offset
        and a._storage.nbytes // a._dtype.itemsize == b._storage.nbytes // b._dtype.itemsize
    )


def wraps(t: TensorBase) -> bool:
    """Whether a tensor stands for others and its memory says nothing."""
    return type(t) is not HOOKS.tensor and t._storage.ptr == 0


def laid_like(tangent: TensorBase, t: TensorBase) -> Any:
    """A tangent in memory of the same geometry as its tensor's; one for each of the many that the tensor stands for,
    because a write may make them differ."""
    if t._keys & BATCHED and not tangent._keys & BATCHED:
        return CORE.copy_.call((zeros_laid_like(t, HOOKS.many_like(tangent, t)), tangent, False))
    if same_memory(tangent, t) or wraps(tangent) or wraps(t):
        return tangent
    return CORE.copy_.call((zeros_laid_like(t, tangent), tangent, False))


def zeros_laid_like(t: TensorBase, tangent: TensorBase) -> Any:
    """Zeros of a tangent's dtype in memory of the geometry of `t`, and read as it is."""
    count = t._storage.nbytes // t._dtype.itemsize
    flat: Any = zeros_at((int(count),), tangent._dtype, tangent._device)
    if tangent._keys & BATCHED:
        flat = HOOKS.many_like(flat, tangent)
    found = CORE.as_strided.call((flat, t._shape, t._stride, int(t._offset)))
    if t._keys & CONJUGATE:
        found = CORE.conj.call((found,))
    return CORE._neg_view.call((found,)) if t._keys & NEGATIVE else found


def attach(t: TensorBase, level: int, tangent: Any) -> None:
    """Give a new result its tangent: of its shape, dtype and geometry."""
    if tangent._shape != t._shape:
        tangent = CORE.expand.call((tangent, t._shape, False))
    if tangent._dtype is not t._dtype:
        if tangent._dtype.is_complex and not t._dtype.is_complex:
            tangent = CORE.real.call((tangent,))
        if tangent._dtype is not t._dtype:
            tangent = CORE.to_copy.call((tangent, t._dtype, None, None, False))
    put(t, level, laid_like(tangent, t))


def write(t: TensorBase, level: int, tangent: Any, had: Any) -> None:
    """The tangent of a tensor after a write in place: into the one it had, else into zeros for the base of a view."""
    if had is not None:
        if tangent is None:
            CORE.zero_.call((had,))
        elif tangent is not had:
            CORE.copy_.call((had, tangent, False))
        return
    if tangent is None or not differentiable(t._dtype):
        return
    base = t._base_field
    if t._keys & VIEW and base is not None and not barred(t):
        whole = zeros_laid_like(base, tangent)
        put(base, level, whole)
        part = part_of(whole, base, t)
        CORE.copy_.call((part, tangent, False))
        put(t, level, part)
        return
    attach(t, level, tangent)


def put_dual(seen: TensorBase, tangent: TensorBase, level: int) -> Any:
    """Make the view `seen` of a tensor dual: it has this tangent, and none from its base."""
    if (seen._keys | tangent._keys) & SPARSE:
        if seen._keys & tangent._keys & NESTED:
            return HOOKS.nested_dual(seen, tangent, level)
        raise NotImplementedError(
            f"forward AD is not supported for a tensor of layout {layout_name(seen)} with a tangent of layout "
            f"{layout_name(tangent)}"
        )
    had = tangent_of(seen, level)
    if had is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not "
            "supported."
        )
    check_tangent(seen, tangent, level)
    bar(seen)
    before = hide(level)
    try:
        put(seen, level, laid_like(tangent, seen))
    finally:
        show_again(before)
    return seen


def layout_name(t: TensorBase) -> str:
    return str(t._storage.layout) if t._keys & SPARSE else "torch.strided"


def check_tangent(t: TensorBase, tangent: TensorBase, level: int) -> None:
    if tangent_of(tangent, level) is not None:
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same level0 is not supported."
        )
    if tangent._shape != t._shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(t._shape)} while the given forward gradient is of size "
            f"{list(tangent._shape)}."
        )


def reshaped_tangents(t: TensorBase, op: Any, rest: tuple[Any, ...]) -> list[tuple[int, Any]]:
    """What the tangents of `t` become when it is changed in place into its own view `op(t, *rest)`."""
    out: list[tuple[int, Any]] = []
    for level in list(LEVELS.open):
        tangent = tangent_of(t, level)
        if tangent is not None:
            before = hide(level)
            try:
                out.append((level, op.call((tangent,) + rest)))
            finally:
                show_again(before)
    return out


# -- an operator on dual tensors ------------------------------------------------------------------------------------
def formulas_of(op: Op) -> Formulas | None:
    d = op.derivative
    if isinstance(d, Formulas):
        return d
    if isinstance(d, InplaceDerivative):
        return d.formulas
    return d.formulas if isinstance(d, CastDerivative) else None


@final
class ForwardKernel(Kernel):
    """Runs an operator on dual tensors: the value by the operator below, then its tangent level by level."""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        rest = keys & ~FORWARD
        top = top_level(op, args, LEVELS.next)
        if top < 0:
            result = below(op, args, rest)
            if op.is_view and barred(args[0]):
                bar(result)
            return result
        if isinstance(op.derivative, GivenDerivative):
            # What was given from outside is a user's Function, or operators that look at tangents themselves.
            return op.derivative.kernel().run(op, args, rest | AUTOGRAD)
        if op.is_out:
            raise NotImplementedError(_OUT.format(op.title()))
        f = formulas_of(op)
        if f is None and not isinstance(op.derivative, (NotDifferentiable, InplaceDerivative)):
            raise NotImplementedError(UNSUPPORTED.format(op.title()))
        return at_level(op, f, args, rest, top)


def below(op: Op, args: tuple[Any, ...], keys: i64) -> Any:
    """The rest of the call, without tangents."""
    kernel = op.below(keys, args)
    old = modes()
    set_modes(old | _HIDDEN)
    try:
        return kernel.run(op, args, keys)
    finally:
        set_modes(old)


def value(op: Op, f: Formulas | None, args: tuple[Any, ...], keys: i64, level: int) -> Any:
    """The result with its tangents at the levels below."""
    lower = top_level(op, args, level)
    return below(op, args, keys) if lower < 0 else at_level(op, f, args, keys, lower)


def at_level(op: Op, f: Formulas | None, args: tuple[Any, ...], keys: i64, level: int) -> Any:
    if op.mutates:
        return written(op, f, args, keys, level)
    result = value(op, f, args, keys, level)
    if f is None:
        if op.is_view:
            bar(result)
        return result
    need = tangents_at(f, args, level)
    if need == 0:
        return result
    if isinstance(result, TensorBase) and result._keys & SPARSE:
        raise NotImplementedError(UNSUPPORTED.format(op.qualified().removeprefix("aten::")))
    before = hide(level)
    try:
        if op.is_view:
            given = tangent_of(args[0], level)
            made = op.call((given,) + args[1:])
            if isinstance(result, TensorBase):
                if differentiable(result._dtype):
                    put(result, level, made)
            else:
                for r, t in zip(result, made):
                    put(r, level, t)
        elif not isinstance(result, TensorBase) or differentiable(result._dtype):
            tangents = pushed(op, f, args, result, level, need)
            for r, t in zip((result,) if isinstance(result, TensorBase) else result, tangents):
                if t is not None:
                    attach(r, level, owned(t, f, args, level))
    finally:
        show_again(before)
    share(result, level)
    return result


def owned(tangent: TensorBase, f: Formulas, args: tuple[Any, ...], level: int) -> Any:
    """A tangent of its own: a rule may hand on the one it was given, which an in-place write must not reach."""
    for i in f.positions:
        a = args[i]
        for x in a if isinstance(a, (tuple, list)) else (a,):
            if isinstance(x, TensorBase):
                given = tangent_of(x, level)
                if x._storage is tangent._storage or (given is not None and given._storage is tangent._storage):
                    return CORE.clone.call((tangent, None))
    return tangent


def tangents_at(f: Formulas, args: tuple[Any, ...], level: int) -> i64:
    """Bits of the differentiable arguments that have a tangent."""
    bits: i64 = 0
    j: i64 = 0
    for i in f.positions:
        a = args[i]
        if isinstance(a, TensorBase):
            if tangent_of(a, level) is not None:
                bits |= 1 << j
        elif isinstance(a, (tuple, list)):
            for t in a:
                if tangent_of(t, level) is not None:
                    bits |= 1 << j
        j += 1
    return bits


def share(result: Any, level: int) -> None:
    """A result that its node saved keeps its tangents there too."""
    for r in (result,) if isinstance(result, TensorBase) else result:
        if isinstance(r, TensorBase) and r._tangents is not None:
            node = r._grad_fn
            if node is not None:
                share_with(node, r, level)
                base = r._base_field
                if base is not None and base._grad_fn is not None and base._grad_fn._kind == COPY_SLICES:
                    # The write through a view: its own node stands inside the base's.
                    share_with(base._grad_fn._payload.inner, r, level)


def share_with(node: Node, r: TensorBase, level: int) -> None:
    saved = node._saved
    if saved is None or (node._kind != OP and node._kind != FUNCTION):
        return
    tangents = r._tangents
    for v in saved:
        if isinstance(v, SavedOutput) and v.lies_as(r) and tangents is not None:
            v.tangents = tangents
            LEVELS.open[level].append(tangents)
            # From here on there may be a cycle: the tangent was computed from what the node made.
            show(node)


def written(op: Op, f: Formulas | None, args: tuple[Any, ...], keys: i64, level: int) -> Any:
    """An in-place operator: the target's tangent is written as the target is."""
    target = args[0]
    if not isinstance(target, TensorBase) or op.functional is None:
        raise NotImplementedError(UNSUPPORTED.format(op.title()))
    need: i64 = 0 if f is None else tangents_at(f, args, level)
    before = hide(level)
    try:
        had = tangent_of(target, level)
        kept = args if f is None or need == 0 else values_before(f, args, target)
        # The rules ask for tangents once the target's has changed places with what it is now.
        old: list[Any] = [tangent_of(a, level) for a in args]
    finally:
        show_again(before)
    result = value(op, f, args, keys, level)
    before = hide(level)
    try:
        new: Any = None
        if f is not None and need != 0 and differentiable(target._dtype):
            lent: list[Any] = []
            for a, given, t in zip(args, kept, old):
                if t is None:
                    continue
                if had is not None and t._storage is had._storage and is_grad_enabled():
                    # The formula may save it, and it is written to below.
                    lent.append((given, t))
                    put(given, level, CORE.clone.call((t, None)))
                elif given is not a:
                    put(given, level, t)
            made: Any = pushed(op.functional, f, kept, target, level, need)[0]
            new = None if made is None else fitted(made, target)
            for given, t in lent:
                put(given, level, t)
        write(target, level, new, had)
    finally:
        show_again(before)
    share(target, level)
    return result


def fitted(tangent: Any, t: TensorBase) -> Any:
    return tangent if tangent._shape == t._shape else CORE.expand.call((tangent, t._shape, False))


def values_before(f: Formulas, args: tuple[Any, ...], target: TensorBase) -> tuple[Any, ...]:
    """The arguments with copies of those that the write changes, where a formula names them."""
    out: list[Any] = []
    for i, a in enumerate(args):
        if isinstance(a, TensorBase) and a._storage is target._storage:
            for s in f.slots:
                if s.kind == ARG and s.index == i:
                    a = CORE.clone.call((a, None))
                    break
        out.append(a)
    return tuple(out)


# -- tangents of results --------------------------------------------------------------------------------------------
def pushed(op: Op, f: Formulas, args: tuple[Any, ...], result: Any, level: int, need: i64) -> list[Any]:
    """The tangents of the results, None where there can be none: by the row's rule, else from its formulas."""
    if not f.tangent_known:
        from .._ops.tangent_rules import rule_for

        f.tangent = rule_for(op)
        f.tangent_known = True
    if f.tangent is not None:
        tangents = [spread(args[i], level) for i in range(len(args))]
        got = f.tangent(op, args, tangents, result)
        return list(got) if isinstance(got, tuple) else [got]
    if f.elementwise and isinstance(result, TensorBase) and real(f, args, result):
        return [by_element(f, args, result, level, need)]
    return transposed(f, args, result, level, need)


def spread(a: Any, level: int) -> Any:
    if isinstance(a, (tuple, list)):
        return tuple([tangent_of(t, level) for t in a])
    return tangent_of(a, level)


def real(f: Formulas, args: tuple[Any, ...], result: TensorBase) -> bool:
    if result._dtype.is_complex:
        return False
    for i in f.positions:
        a = args[i]
        if isinstance(a, TensorBase) and a._dtype.is_complex:
            return False
    return True


def by_element(f: Formulas, args: tuple[Any, ...], result: TensorBase, level: int, need: i64) -> Any:
    """An elementwise operator's Jacobian is diagonal: its formula with the tangent for the gradient."""
    total: Any = None
    for formula in f.formulas:
        for k, e in enumerate(formula.edges):
            if (need & (1 << e)) == 0:
                continue
            t = tangent_of(args[f.positions[e]], level)
            if t._shape != result._shape:
                t = CORE.expand.call((t, result._shape, False))
            if t._dtype is not result._dtype:
                t = CORE.to_copy.call((t, result._dtype, None, None, False))
            got = evaluated(f, formula, args, result, (t,), 1 << e)
            if not formula.single:
                got = got[k]
            if got is not None:
                total = got if total is None else CORE.add.call((total, got, 1))
    return zeros_at(result._shape, result._dtype, result._device) if total is None else total


def evaluated(
    f: Formulas, formula: Formula, args: tuple[Any, ...], result: Any, grads: tuple[Any, ...], need: i64
) -> Any:
    """What a formula gives for these gradients of the results."""
    values: list[Any] = []
    for p in formula.params:
        if p == GRAD:
            values.append(grads[0])
        elif p == GRADS or p == ARRIVED:
            values.append(grads)
        elif p == NEEDS:
            values.append(tuple([(need & (1 << e)) != 0 for e in formula.edges]))
        else:
            s = f.slots[p]
            if s.kind == ARG:
                values.append(args[s.index])
            elif s.kind == RESULT:
                values.append(result if isinstance(result, TensorBase) else result[s.index])
            else:
                values.append(metadata(s.kind, args[s.index]))
    return formula.fn(*values)


def transposed(f: Formulas, args: tuple[Any, ...], result: Any, level: int, need: i64) -> list[Any]:
    """A formula is linear in the gradient, and the transpose of the derivative: its own transpose, applied to the
    tangents, is the derivative along them."""
    results: list[Any] = [result] if isinstance(result, TensorBase) else list(result)
    recording = is_grad_enabled()
    was = swap_grad(True)
    try:
        starts: list[Any] = []
        wanted: list[int] = []
        for nr, r in enumerate(results):
            g: Any = None
            if isinstance(r, TensorBase):
                g = zeros_at(r._shape, r._dtype, r._device)
                if r._keys & BATCHED:
                    g = HOOKS.at_levels_of(g, r)
                if differentiable(r._dtype) and nr not in f.nondiff:
                    g._keys |= AUTOGRAD
                    wanted.append(nr)
            starts.append(g)
        outs: list[Any] = []
        along: list[Any] = []
        for formula in f.formulas:
            if formula.mask & need:
                got = evaluated(f, formula, args, result, tuple(starts), need)
                for k, e in enumerate(formula.edges):
                    if need & (1 << e):
                        collect(got if formula.single else got[k], args[f.positions[e]], level, outs, along)
        create = recording and (depends(args) or depends(along))
        if create:
            # A later write goes into the tangent itself, and the formula's derivative keeps what it was given.
            along = [CORE.clone.call((t, None)) for t in along]
        return gathered(results, starts, wanted, outs, along, create)
    finally:
        swap_grad(was)


def collect(got: Any, arg: Any, level: int, outs: list[Any], along: list[Any]) -> None:
    """Pair the gradient of an argument, or of each tensor in a list, with the argument's tangent."""
    if isinstance(arg, TensorBase):
        t = tangent_of(arg, level)
        if t is not None and isinstance(got, TensorBase) and requires_grad(got):
            outs.append(as_gradient(got, arg))
            along.append(t if t._dtype is arg._dtype else CORE.to_copy.call((t, arg._dtype, None, None, False)))
    elif isinstance(arg, (tuple, list)) and got is not None:
        for a, g in zip(arg, got):
            collect(g, a, level, outs, along)


def as_gradient(g: TensorBase, arg: TensorBase) -> Any:
    """What the engine makes of a formula's result: summed to the argument's shape, of its dtype."""
    if g._shape != arg._shape:
        g = sum_to(g, arg._shape)
    if g._dtype.is_complex and not arg._dtype.is_complex:
        g = CORE.real.call((g,))
    return g if g._dtype is arg._dtype else CORE.to_copy.call((g, arg._dtype, None, None, False))


def depends(values: Any) -> bool:
    for a in values:
        if isinstance(a, TensorBase):
            if requires_grad(a):
                return True
        elif isinstance(a, (tuple, list)):
            if depends(a):
                return True
    return False


def gathered(
    results: list[Any], starts: list[Any], wanted: list[int], outs: list[Any], along: list[Any], create: bool
) -> list[Any]:
    out: list[Any] = [None] * len(results)
    found: list[Any] = [None] * len(wanted)
    if outs:
        roots = [gradient_at(o) for o in outs]
        edges = [gradient_at(starts[nr]) for nr in wanted]
        found = run_backward([n for n, _ in roots], [nr for _, nr in roots], along, create, create, edges, False)
    for nr, t in zip(wanted, found):
        r = results[nr]
        out[nr] = zeros_at(r._shape, r._dtype, r._device) if t is None else t
    return out


RESOLVERS.forward = ForwardKernel()
