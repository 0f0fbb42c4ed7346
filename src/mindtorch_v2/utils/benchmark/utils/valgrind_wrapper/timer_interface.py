"""Counts of instructions by function. Counting them is refused; counts from elsewhere can be compared."""

from __future__ import annotations

import dataclasses
from collections import defaultdict, namedtuple
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["FunctionCount", "FunctionCounts", "CallgrindStats", "CopyIfCallgrind"]

_LINE = 80


# How many instructions a function took. Its first field hides a method of tuples, as in PyTorch.
_namedtuple: Any = namedtuple
FunctionCount: Any = _namedtuple("FunctionCount", ["count", "function"])


@dataclasses.dataclass(repr=False, eq=False, frozen=True)
class FunctionCounts:
    """Counts of several functions, to be added, subtracted and filtered."""

    _data: tuple[Any, ...]
    inclusive: bool
    truncate_rows: bool = True
    _linewidth: int | None = None

    def __iter__(self) -> Iterator[Any]:
        yield from self._data

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, item: Any) -> Any:
        found = self._data[item]
        return found if isinstance(found, FunctionCount) else FunctionCounts(found, self.inclusive, truncate_rows=False)

    def __repr__(self) -> str:
        width = max((len(str(c)) + int(c < 0) for c, _ in self), default=0)
        room = max((self._linewidth or _LINE) - width - 4, 40)
        lines = []
        for c, name in self:
            if len(name) > room:
                left = (room - 5) // 2
                name = name[:left] + " ... " + name[-(room - left - 5) :]
            lines.append(f"  {c:>{width}}  {name}")
        if self.truncate_rows and len(lines) > 18:
            lines = lines[:9] + ["...".rjust(width + 2)] + lines[-9:]
        if not self.inclusive:
            lines += ["", f"Total: {self.sum()}"]
        return "\n".join([object.__repr__(self), *lines])

    def __add__(self, other: FunctionCounts) -> FunctionCounts:
        return self._merge(other, 1)

    def __sub__(self, other: FunctionCounts) -> FunctionCounts:
        return self._merge(other, -1)

    def __mul__(self, other: float) -> FunctionCounts:
        return self._from_dict({name: int(c * other) for c, name in self}, self.inclusive)

    def transform(self, map_fn: Callable[[str], str]) -> FunctionCounts:
        """Give functions other names; counts of those that then have one name are added."""
        counts: dict[str, int] = defaultdict(int)
        for c, name in self:
            counts[map_fn(name)] += c
        return self._from_dict(counts, self.inclusive)

    def filter(self, filter_fn: Callable[[str], bool]) -> FunctionCounts:
        """Only functions whose name `filter_fn` accepts."""
        return FunctionCounts(tuple(f for f in self if filter_fn(f.function)), self.inclusive)

    def sum(self) -> int:
        total: int = sum(c for c, _ in self)
        return total

    def denoise(self) -> FunctionCounts:
        """Without Python's look-up of names, whose count varies from run to run."""
        return self.filter(lambda name: "dictobject.c:lookdict_unicode" not in name)

    def _merge(self, second: FunctionCounts, sign: int) -> FunctionCounts:
        if self.inclusive != second.inclusive:
            raise AssertionError("Cannot merge inclusive and exclusive counts.")
        counts: dict[str, int] = defaultdict(int)
        for c, name in self:
            counts[name] += c
        for c, name in second:
            counts[name] += sign * c
        return self._from_dict(counts, self.inclusive)

    @staticmethod
    def _from_dict(counts: dict[str, int], inclusive: bool) -> FunctionCounts:
        found = (FunctionCount(c, name) for name, c in counts.items() if c)
        return FunctionCounts(tuple(sorted(found, reverse=True)), inclusive)


class CallgrindStats:
    """What `Timer.collect_callgrind` would return; refused with it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("CallgrindStats: instructions are not counted here")


class CopyIfCallgrind:
    """Marks a variable for `Timer.collect_callgrind`; refused with it."""

    def __init__(self, value: Any, *, setup: str | None = None) -> None:
        raise NotImplementedError("CopyIfCallgrind: instructions are not counted here")
