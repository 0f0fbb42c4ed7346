"""Measurements: what was timed, how often and how long, and how sure one may be."""

from __future__ import annotations

import dataclasses
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import mindtorch_v2 as torch

__all__ = [
    "TaskSpec",
    "Measurement",
    "select_unit",
    "unit_to_english",
    "trim_sigfig",
    "ordered_unique",
    "set_torch_threads",
]

_MAX_FIGURES = 4
# No measurement is surer than this, in seconds.
_LEAST_INTERVAL = 25e-9
_UNSTEADY, _VERY_UNSTEADY = 0.1, 0.25
_SCALES = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}
_ENGLISH = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """What a timer runs, without its variables, and what it is called."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        name = self.label if self.label is not None else self.stmt if "\n" not in self.stmt else None
        if name is not None:
            return name + (f": {self.sub_label}" if self.sub_label else "")
        return f"stmt:{f' ({self.sub_label})' if self.sub_label else ''}\n{textwrap.indent(self.stmt, '  ')}"

    def setup_str(self) -> str:
        if not self.setup or self.setup == "pass":
            return ""
        return f"setup:\n{textwrap.indent(self.setup, '  ')}" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self) -> str:
        """The first lines of what prints a task."""
        parts = [part for part in (self.title, self.description or "", self.setup_str()) if part]
        return "\n".join(part + "\n" if "\n" in part else part for part in parts)


_FIELDS = tuple(f.name for f in dataclasses.fields(TaskSpec))


@dataclasses.dataclass(init=True, repr=False)
class Measurement:
    """Times of a statement, in seconds for `number_per_run` runs each; the fields of its task are attributes too."""

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __post_init__(self) -> None:
        self._sorted_times: tuple[float, ...] = ()
        self._warnings: tuple[str, ...] = ()
        self._median = -1.0
        self._mean = -1.0
        self._p25 = -1.0
        self._p75 = -1.0

    def __getattr__(self, name: str) -> Any:
        if name in _FIELDS:
            return getattr(self.task_spec, name)
        return super().__getattribute__(name)

    @property
    def times(self) -> list[float]:
        """Seconds for one run, of each measurement."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self) -> float:
        self._lazy_init()
        return self._median

    @property
    def mean(self) -> float:
        self._lazy_init()
        return self._mean

    @property
    def iqr(self) -> float:
        """The width of the middle half."""
        self._lazy_init()
        return self._p75 - self._p25

    @property
    def significant_figures(self) -> int:
        """How many digits of the median mean something, by the spread of the middle half."""
        self._lazy_init()
        n = len(self._sorted_times)
        middle = self._sorted_times[n // 4 : -(-3 * n // 4)]
        spread = torch.tensor(middle).std(unbiased=False).item()
        root = torch.tensor(len(middle)).sqrt().item()
        interval = max(1.645 * spread / root, _LEAST_INTERVAL)
        figures = torch.tensor(self._median / interval).log10().floor()
        return min(max(int(figures), 1), _MAX_FIGURES)

    @property
    def has_warnings(self) -> bool:
        self._lazy_init()
        return bool(self._warnings)

    def _lazy_init(self) -> None:
        if not self.raw_times or self._sorted_times:
            return
        self._sorted_times = tuple(sorted(self.times))
        times = torch.tensor(self._sorted_times, dtype=torch.float64)
        self._median = times.quantile(0.5).item()
        self._mean = times.mean().item()
        self._p25 = times.quantile(0.25).item()
        self._p75 = times.quantile(0.75).item()
        said = ""
        if not self.meets_confidence(_VERY_UNSTEADY):
            said = "This suggests significant environmental influence."
        elif not self.meets_confidence(_UNSTEADY):
            said = "This could indicate system fluctuation."
        if said:
            share = self.iqr / self.median * 100
            self._warnings += (
                f"  WARNING: Interquartile range is {share:.1f}% of the median measurement.\n           {said}",
            )

    def meets_confidence(self, threshold: float = _UNSTEADY) -> bool:
        """Whether the middle half is narrow enough."""
        return self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        return self.task_spec.title

    @property
    def env(self) -> str:
        return "Unspecified env" if self.task_spec.env is None else self.task_spec.env

    @property
    def as_row_name(self) -> str:
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __repr__(self) -> str:
        self._lazy_init()
        n, threads = len(self._sorted_times), self.task_spec.num_threads
        unit, scale = select_unit(self._median)
        lines = [
            object.__repr__(self),
            self.task_spec.summarize(),
            f"  {'Median: ' if n > 1 else ''}{self._median / scale:.2f} {unit}",
        ]
        if n >= 4:
            low, high = self._p25 / scale, self._p75 / scale
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        lines.append(
            f"  {n} measurement{'s' if n > 1 else ''}, {self.number_per_run} runs "
            f"{'per measurement,' if n > 1 else ','} {threads} thread{'s' if threads > 1 else ''}"
        )
        return "\n".join([*lines, *self._warnings]).strip()

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement for each task, with the times of all, for one run each."""
        groups: dict[TaskSpec, list[float]] = defaultdict(list)
        for m in measurements:
            groups[m.task_spec].extend(m.times)
        return [Measurement(1, times, task) for task, times in groups.items()]


def select_unit(t: float) -> tuple[str, float]:
    """The unit in which a time is a number of few digits, and its length in seconds."""
    power = int(torch.tensor(t).log10().item() // 3)
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(power, "s")
    return unit, _SCALES[unit]


def unit_to_english(u: str) -> str:
    return _ENGLISH[u]


def trim_sigfig(x: float, n: int) -> float:
    """`x` rounded to `n` digits: 3.14159 to two is 3.1."""
    if n != int(n):
        raise AssertionError("Number of significant figures must be an integer")
    scale = 10 ** (int(torch.tensor(x).abs().log10().ceil().item()) - n)
    return float(torch.tensor(x / scale).round() * scale)


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """Each element once, where it first came."""
    return list(dict.fromkeys(elements))


@contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Inside, operators use `n` threads."""
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(n)
        yield
    finally:
        torch.set_num_threads(before)
