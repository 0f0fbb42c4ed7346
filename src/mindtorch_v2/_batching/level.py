"""Levels of `vmap`, and tensors that stand for many: a batched tensor shows the shape of one of them.

Invariant: the storage of a batched tensor is a `Batch`, which adds one dimension to the tensor's geometry: size and
step in bytes. So every view of a batched tensor is a view of the same `Batch`, and needs no rule. Levels are numbered
upwards for good; the outermost `Batch` of a tensor has its highest level.
"""

from __future__ import annotations

from typing import Any, Final, final

from .. import _native
from .._core_operators import HOOKS
from .._dispatch.keys import BACKENDS, BATCHED, INFERENCE, LAZY, NESTED
from .._dispatch.state import STATE, modes, running, set_modes
from .._strides import contiguous_strides
from .._tensor_base import TensorBase, counter

_alloc: Final[Any] = _native.alloc_instance
_KEPT: Final = int(BACKENDS | INFERENCE | LAZY)
# Bits that do not speak of a tensor's history, which a tensor made here does not have.
_OWN: Final = int(BACKENDS | INFERENCE | BATCHED | LAZY)
# How a tensor is read, which one inside a level says itself.
_OUTER: Final = int(INFERENCE | LAZY)


@final
class Level:
    """One `vmap` that runs or ran. Graphs made inside outlive it, so that a number is never used again."""

    def __init__(self, number: int, depth: int, size: int, randomness: str) -> None:
        self.number: Final = number
        # What PyTorch calls the level: how many transforms there were when it began, itself included.
        self.depth: Final = depth
        self.size: Final = size
        # What the shape of all begins with.
        self.front: Final = (size,)
        self.randomness: Final = randomness


@final
class Batch:
    """The storage of a batched tensor: that of all of them together, and the step from one to the next.

    shared: one value serves all. The tensor lives at the level, so that each of the many may have a gradient of its
    own.
    known: what `inside` made last, and the shape and strides of the tensor that it was made for. Nobody but rules sees
    it, so that its geometry stays as it is.
    """

    ptr: Final = 0

    def __init__(self, inner: Any, level: Level, step: int, shared: bool, keys: int) -> None:
        self.inner: Final = inner
        self.level: Final = level
        self.step: Final = step
        self.shared: Final = shared
        # Key bits of the tensor that is inside.
        self.keys: Final = keys
        self.known: TensorBase | None = None
        self.shape: tuple[int, ...] = ()
        self.stride: tuple[int, ...] = ()

    @property
    def nbytes(self) -> int:
        """What the geometry of one may reach."""
        found: int = self.inner.nbytes
        # Without elements there is nothing between one and the next either.
        return max(0, found - (self.level.size - 1) * self.step) if not self.shared and self.level.size > 0 else found


@final
class Count:
    """Numbers levels."""

    last: int = 0


COUNT: Final = Count()


def live() -> list[Level]:
    """The levels this thread is inside of, the innermost last."""
    found: list[Level] = running().levels
    return found


def transforms() -> list[str]:
    """The transforms of `torch.func` that this thread is inside of."""
    return running().transforms


def begin(name: str) -> None:
    """A transform begins."""
    running().transforms.append(name)
    STATE.transforms += 1


def end() -> None:
    running().transforms.pop()
    STATE.transforms -= 1


def enter(size: int, randomness: str) -> Level:
    """Begin a level; the mode shows calls without batched arguments to it, because some are random."""
    here = running()
    here.transforms.append("vmap")
    STATE.transforms += 1
    COUNT.last += 1
    level = Level(COUNT.last, len(here.transforms), size, randomness)
    here.levels.append(level)
    set_modes(modes() | BATCHED)
    return level


def leave() -> Level:
    here = running()
    level: Level = here.levels.pop()
    here.transforms.pop()
    STATE.transforms -= 1
    if not here.levels:
        set_modes(modes() & ~BATCHED)
    return level


class untransformed:
    """Inside this block nobody is told that transforms run: PyTorch's older functions, which use the older `vmap`, let
    users do more."""

    def __enter__(self) -> None:
        self.before = transforms()
        running().transforms = []

    def __exit__(self, *exc: object) -> None:
        running().transforms = self.before


class outside:
    """Inside this block no level is live: what a rule does with tensors that hold all values is not mapped again."""

    def __enter__(self) -> None:
        self.before = modes()
        set_modes(self.before & ~BATCHED)

    def __exit__(self, *exc: object) -> None:
        set_modes(self.before)


# -- questions ----------------------------------------------------------------------------------------------------
def batch_of(t: TensorBase) -> Batch | None:
    """The outermost batch of a tensor."""
    s = t._storage
    return s if isinstance(s, Batch) else None


def levels_of(t: TensorBase) -> list[Level]:
    """Levels of a tensor, the highest first."""
    found: list[Level] = []
    s = t._storage
    while isinstance(s, Batch):
        found.append(s.level)
        s = s.inner
    return found


def highest(tensors: list[TensorBase]) -> Level | None:
    """The highest level among tensors."""
    best: Level | None = None
    for t in tensors:
        s = t._storage
        if isinstance(s, Batch) and (best is None or s.level.number > best.number):
            best = s.level
    return best


def level_of(args: tuple[Any, ...]) -> Level | None:
    """The highest level among the tensors of a call."""
    best: Level | None = None
    for a in args:
        if isinstance(a, TensorBase):
            s = a._storage
            if isinstance(s, Batch) and (best is None or s.level.number > best.number):
                best = s.level
        elif isinstance(a, (tuple, list)):
            for t in a:
                if isinstance(t, TensorBase):
                    s = t._storage
                    if isinstance(s, Batch) and (best is None or s.level.number > best.number):
                        best = s.level
    return best


def some_many(args: tuple[Any, ...], level: Level) -> bool:
    """Whether a tensor of a call has a value of its own for each of the many."""
    for a in args:
        if isinstance(a, TensorBase):
            s = a._storage
            if isinstance(s, Batch) and s.level is level and not s.shared:
                return True
        elif isinstance(a, (tuple, list)):
            for t in a:
                if is_many(t, level):
                    return True
    return False


def is_at(t: Any, level: Level) -> bool:
    """Whether a tensor lives at a level."""
    if not isinstance(t, TensorBase):
        return False
    s = t._storage
    return isinstance(s, Batch) and s.level is level


def is_many(t: Any, level: Level) -> bool:
    """Whether a tensor has a value of its own for each of the many."""
    if not isinstance(t, TensorBase):
        return False
    s = t._storage
    return isinstance(s, Batch) and s.level is level and not s.shared


def stands_for_many(t: TensorBase) -> bool:
    """Whether a tensor has values of their own for the many of some level."""
    s = t._storage
    while isinstance(s, Batch):
        if not s.shared:
            return True
        s = s.inner
    return False


def is_mapped_nested(t: TensorBase) -> bool:
    """Whether a tensor is a nested one inside `vmap`, which `_ragged` serves."""
    return t._keys & NESTED != 0 and t._keys & BATCHED != 0


# -- going in and out ---------------------------------------------------------------------------------------------
def _plain(src: TensorBase, storage: Any, shape: tuple[int, ...], stride: tuple[int, ...], keys: int) -> TensorBase:
    t: TensorBase = _alloc(TensorBase, HOOKS.tensor)
    t._storage = storage
    t._offset = src._offset
    t._shape = shape
    t._stride = stride
    t._dtype = src._dtype
    t._device = src._device
    t._keys = keys
    t._vc = src._vc
    return t


def _counted(t: TensorBase) -> None:
    """From now on tensors over the memory of this one share its count of writes."""
    if not t._keys & INFERENCE:
        counter(t)


def inside(t: TensorBase, level: Level) -> TensorBase:
    """All values of a tensor of this level with their dimension in front; any other tensor as it is, and so one whose
    value all share. Rules read it; before one writes to it, the tensor itself must count its writes."""
    s = t._storage
    if not isinstance(s, Batch) or s.level is not level:
        return t
    keys = s.keys | (t._keys & _KEPT)
    known = s.known
    if (
        known is not None
        and s.shape is t._shape
        and s.stride is t._stride
        and known._offset == t._offset
        and known._dtype is t._dtype
        and known._keys == keys
    ):
        known._vc = t._vc
        return known
    if s.shared:
        made = _plain(t, s.inner, t._shape, t._stride, keys)
    else:
        made = _plain(t, s.inner, level.front + t._shape, (s.step // t._dtype.itemsize,) + t._stride, keys)
    s.known, s.shape, s.stride = made, t._shape, t._stride
    return made


def handed(t: TensorBase, level: Level) -> TensorBase:
    """The same for somebody who may do anything with it."""
    if not is_at(t, level):
        return t
    _counted(t)
    found = inside(t, level)
    return _plain(found, found._storage, found._shape, found._stride, found._keys)


def spread(t: TensorBase, level: Level) -> TensorBase:
    """The same, with the dimension in front of every tensor: it repeats what there is one of."""
    found = inside(t, level)
    if is_many(t, level):
        return found
    return _plain(found, found._storage, level.front + found._shape, (0,) + found._stride, found._keys & _OWN)


def over(t: TensorBase, level: Level, dim: int) -> TensorBase:
    """A tensor of the level over somebody's tensor, whose dimension `dim` runs over the many."""
    d = dim + len(t._shape) if dim < 0 else dim
    keys = t._keys & _OWN
    batch = Batch(t._storage, level, t._stride[d] * t._dtype.itemsize, False, keys & ~_OUTER)
    _counted(t)
    if d == 0:
        return _plain(t, batch, t._shape[1:], t._stride[1:], keys | int(BATCHED))
    return _plain(t, batch, t._shape[:d] + t._shape[d + 1 :], t._stride[:d] + t._stride[d + 1 :], keys | int(BATCHED))


def wrap(t: TensorBase, level: Level) -> TensorBase:
    """A tensor of the level over what a rule computed, whose first dimension runs over the many."""
    keys = t._keys & _OWN
    batch = Batch(t._storage, level, t._stride[0] * t._dtype.itemsize, False, keys & ~_OUTER)
    shape, stride = t._shape[1:], t._stride[1:]
    if t._keys == keys:
        batch.known, batch.shape, batch.stride = t, shape, stride
    return _plain(t, batch, shape, stride, keys | int(BATCHED))


def share(t: TensorBase, level: Level) -> TensorBase:
    """A tensor of the level whose value is the same for all."""
    keys = t._keys & _OWN
    batch = Batch(t._storage, level, 0, True, keys & ~_OUTER)
    _counted(t)
    return _plain(t, batch, t._shape, t._stride, keys | int(BATCHED))


def wrap_all(found: Any, level: Level) -> Any:
    """Results of an operator, each with the dimension in front."""
    if isinstance(found, TensorBase):
        return wrap(found, level)
    if isinstance(found, (tuple, list)):
        return tuple([wrap_all(t, level) for t in found])
    return found


def share_all(found: Any, level: Level) -> Any:
    if isinstance(found, TensorBase):
        return share(found, level)
    if isinstance(found, (tuple, list)):
        return tuple([share_all(t, level) for t in found])
    return found


def in_front(t: TensorBase, size: int, rank: int) -> TensorBase:
    """Of a value with the dimension of the many in front, `rank` dimensions behind it: ones are put between."""
    lack = rank + 1 - len(t._shape)
    if lack <= 0:
        return t
    ones = (1,) * lack
    shape = (size,) + ones + t._shape[1:]
    stride = t._stride[:1] + contiguous_strides(ones) + t._stride[1:]
    return _plain(t, t._storage, shape, stride, t._keys & _OWN)
