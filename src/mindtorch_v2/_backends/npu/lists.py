"""Vendor calls over lists of tensors: which lists fit one, and its launch.

Invariant: the vendor gets row-major tensors of one dtype and pairwise equal shapes, and writes into fresh ones: none of
its list functions is documented to write what it reads, so an in-place form copies the results back, in one more
launch. Whatever else there is goes to the row's loop.
"""

from __future__ import annotations

from typing import Any, Final, final

from ..._device import device
from ..._dispatch.keys import NPU
from ..._dispatch.op import Kernel, Op
from ..._dtype import dtype
from ..._mypyc import i64
from ..._strides import contiguous_strides
from ..._tensor_base import TensorBase, bump, is_contiguous, numel
from ..common.runtime import empty
from . import launch, quirks, table
from .kernels import LITERAL, MOST_DIMS, exact_number
from .launch import Function

COPY: Final = "aclnnForeachCopy"

# What a kernel makes of a call: new tensors, a number of each, or new values of the first list.
MADE: Final = 0
REDUCED: Final = 1
WRITTEN: Final = 2


def on_device(numbers: Any, like: TensorBase) -> Any:
    """Numbers in memory of the device, through page-locked memory: the host waits for nothing."""
    from ... import tensor

    return tensor(numbers, dtype=like._dtype, pin_memory=True).to(like._device, non_blocking=True)


def plain(t: TensorBase, like: TensorBase, dt: dtype, dev: device) -> bool:
    """Whether the vendor takes a tensor beside another."""
    if t._dtype is not dt or not is_contiguous(t) or numel(t) == 0 or len(t._shape) > MOST_DIMS:
        return False
    return (t is like or t._shape == like._shape) and (t._device is dev or t._device == dev)


def all_plain(tensors: Any, others: Any, dt: dtype, dev: device) -> bool:
    """Whether the vendor takes two lists beside each other."""
    n: i64 = len(others)
    if len(tensors) != n:
        return False
    i: i64 = 0
    while i < n:
        if not plain(tensors[i], others[i], dt, dev):
            return False
        i += 1
    return True


def numbers_fit(dt: dtype, count: int, given: Any) -> bool:
    """Whether numbers, one or one for each tensor, leave the dtype as it is and come through whole."""
    if not isinstance(given, (list, tuple)):
        return number_fits(dt, given)
    if len(given) != count:
        return False
    for x in given:
        if not number_fits(dt, x):
            return False
    return True


def number_fits(dt: dtype, x: Any) -> bool:
    if type(x) is float:
        return dt.is_floating_point
    return type(x) is int and exact_number(x)


def equal_numbers(numbers: Any) -> bool:
    first = numbers[0]
    for x in numbers:
        if x != first:
            return False
    return True


@final
class ListCall:
    """One vendor call over lists, in the words of a row."""

    def __init__(
        self, name: str, function: str, items: list[tuple[int, Any]], floats: bool, also: Any, single: ListCall | None
    ) -> None:
        self.title: Final = "_foreach_" + name.partition(".")[0]
        self.name: Final = function
        self.sources: Final[list[int]] = [source for source, _ in items]
        self.literals: Final[list[Any]] = [literal for _, literal in items]
        params = table.signature(function).params
        self.kinds: Final[list[int]] = [p.kind for p in params]
        self.lists: Final[list[int]] = []
        self.numbers: Final[list[int]] = []
        # One number, or one for each tensor, in memory of the device; and the dtypes the vendor takes it in.
        self.packed: Final[list[int]] = []
        self.packed_masks: Final[list[int]] = []
        for i, source in enumerate(self.sources):
            if source < 0:
                continue
            if self.kinds[i] == table.TENSORS:
                self.lists.append(source)
            elif self.kinds[i] == table.SCALAR or self.kinds[i] == table.SCALARS:
                self.numbers.append(source)
            elif self.kinds[i] == table.TENSOR:
                self.packed.append(source)
                self.packed_masks.append(params[i].mask)
        self.mask: Final[int] = params[self.kinds.index(table.TENSORS)].mask
        # Whether integers become floats, or are not what the vendor makes of them.
        self.floats: Final = floats
        # What else the row asks of its arguments.
        self.also: Final[Any] = also
        # The call for one number in place of equal ones.
        self.single: Final = single
        self.function: Function | None = None
        self.copying: Function | None = None

    def fits(self, args: tuple[Any, ...]) -> bool:
        first: Any = args[self.lists[0]]
        if len(first) == 0:
            return False
        head: TensorBase = first[0]
        dt = head._dtype
        if not self.mask >> dt.code & 1 or (self.floats and not dt.is_floating_point):
            return False
        for i in self.lists:
            if not all_plain(args[i], first, dt, head._device):
                return False
        for i in self.numbers:
            if not numbers_fit(dt, len(first), args[i]):
                return False
        for k, i in enumerate(self.packed):
            if not self.packed_fits(head, len(first), args[i], self.packed_masks[k]):
                return False
        also = self.also
        return also is None or bool(also(*args))

    def packed_fits(self, head: TensorBase, count: int, given: Any, mask: int) -> bool:
        """A number in a tensor beside the list; several numbers that the vendor wants in one tensor."""
        dt = head._dtype
        if not mask >> dt.code & 1:
            return False
        if isinstance(given, TensorBase):
            return given._dtype is dt and given._device == head._device and len(given._shape) == 0
        # Numbers beside halves stay wider than they are.
        return dt.itemsize == 4 and len(given) == count and numbers_fit(dt, count, given)

    def apart(self, args: tuple[Any, ...]) -> bool:
        """Whether the loop, which sees what it wrote before, would see nothing of it."""
        if not self.fits(args):
            return False
        places: dict[int, int] = {}
        t: TensorBase
        i = 0
        for t in args[0]:
            places[id(t._storage)] = i
            i += 1
        if len(places) != i:
            return False
        for k in self.lists:
            if k == 0:
                continue
            i = 0
            for t in args[k]:
                if places.get(id(t._storage), i) != i:
                    return False
                i += 1
        return True

    def resolved(self) -> Function:
        f = self.function
        if f is None:
            f = launch.resolve(self.name)
            self.function = f
        return f

    def launch(self, args: tuple[Any, ...], outs: list[Any]) -> None:
        single = self.single
        if single is not None:
            at = self.packed[0] if self.packed else self.numbers[0]
            numbers = args[at]
            if (
                not isinstance(numbers, TensorBase)
                and single.mask >> outs[0]._dtype.code & 1
                and equal_numbers(numbers)
            ):
                single.launch((*args[:at], numbers[0], *args[at + 1 :]), outs)
                return
        values: list[Any] = []
        i = 0
        for source in self.sources:
            if source >= 0:
                v = args[source]
                if self.kinds[i] == table.TENSOR and not isinstance(v, TensorBase):
                    v = on_device(v, outs[0])
                values.append(v)
            elif source == LITERAL:
                values.append(self.literals[i])
            else:
                values.append(outs)
            i += 1
        launch.launch(self.resolved(), values, self.title)

    def made(self, args: tuple[Any, ...], numbers: bool) -> list[Any]:
        """New tensors like those of the first list, or a number of each."""
        outs: list[Any] = []
        t: TensorBase
        for t in args[self.lists[0]]:
            shape: tuple[int, ...] = () if numbers else t._shape
            outs.append(empty(shape, contiguous_strides(shape), t._dtype, t._device))
        self.launch(args, outs)
        return outs

    def written(self, args: tuple[Any, ...]) -> None:
        fresh = self.made(args, False)
        copying = self.copying
        if copying is None:
            copying = launch.resolve(COPY)
            self.copying = copying
        launch.launch(copying, [fresh, args[0]], self.title + "_")
        for t in args[0]:
            bump(t)


@final
class ListKernel(Kernel):
    """Serves a row over lists with one call where they fit and the library has the functions; with its loop else."""

    def __init__(self, call: ListCall, what: int, parts: Kernel) -> None:
        self.call: Final = call
        self.what: Final = what
        self.parts: Final = parts
        self.functions: Final[list[str]] = [call.name, COPY] if what == WRITTEN else [call.name]
        self.calls_ops = True
        self.asked: bool = False
        self.here: bool = False

    def present(self) -> bool:
        """Whether this chip and library have the functions; asked once."""
        if not self.asked:
            self.here = True
            for name in self.functions:
                if quirks.lacks(name) or not launch.available(name):
                    self.here = False
            self.asked = True
        return self.here

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        call = self.call
        if not self.present() or not (call.apart(args) if self.what == WRITTEN else call.fits(args)):
            return self.parts.run(op, args, NPU)
        if self.what == WRITTEN:
            call.written(args)
            return None
        return tuple(call.made(args, self.what == REDUCED))
