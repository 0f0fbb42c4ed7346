"""`Compare`: measurements as a table, tasks down and descriptions across.

Invariant: a table has one label; its rows are ordered by threads and environment, and within them as they came.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable
from typing import Any

from .common import Measurement, ordered_unique, select_unit, trim_sigfig, unit_to_english

__all__ = ["Colorize", "Compare"]

BEST = "\033[92m"
GOOD = "\033[34m"
BAD = "\033[2m\033[91m"
VERY_BAD = "\033[31m"
BOLD = "\033[1m"
TERMINATE = "\033[0m"


class Colorize(enum.Enum):
    """What a result is compared with to find its colour."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


def _colored(text: str, value: float, best: float) -> str:
    if value <= best * 1.01 or value <= best + 100e-9:
        return BEST + BOLD + text + TERMINATE * 2
    if value <= best * 1.1:
        return GOOD + BOLD + text + TERMINATE * 2
    if value >= best * 5:
        return VERY_BAD + BOLD + text + TERMINATE * 2
    if value >= best * 2:
        return BAD + text + TERMINATE * 2
    return text


class _Column:
    """How the numbers of a column are written: all with as many digits as the least sure of them."""

    def __init__(self, found: list[Measurement], scale: float, trim: bool, warn: bool) -> None:
        self.trim = trim
        self.warn = warn and any(m.has_warnings for m in found)
        leading = [math.ceil(math.log10(m.median / scale)) for m in found]
        decimals = min(max(m.significant_figures - n, 0) for m, n in zip(found, leading)) if trim else 1
        self.width = max(leading) + decimals + (1 if decimals else 0)
        self.decimals = decimals
        self.scale = scale

    def text(self, m: Measurement | None) -> str:
        if m is None:
            return " " * len(self.form(1, None))
        value = m.median / self.scale
        if self.trim:
            value = trim_sigfig(value, m.significant_figures)
        return self.form(value, m.iqr / m.median if m.has_warnings else None)

    def form(self, value: float, spread: float | None) -> str:
        note = f" (! {spread * 100:.0f}%)" if self.warn and spread is not None else ""
        return f"{value:>{self.width}.{self.decimals}f}{note:>{7 if self.warn else 0}}"


class Table:
    """The results of one label."""

    def __init__(self, results: list[Measurement], colorize: Colorize, trim: bool, warn: bool) -> None:
        if len({r.label for r in results}) != 1:
            raise AssertionError("All results must share the same label")
        self.results = results
        self.colorize = colorize
        self.warn = warn
        self.label = results[0].label
        self.time_unit, self.time_scale = select_unit(min(r.median for r in results))
        self.row_keys = sorted(ordered_unique(map(self.row_fn, results)), key=lambda key: key[:2])
        self.column_keys = ordered_unique(map(self.col_fn, results))
        placed = {(self.row_fn(r), self.col_fn(r)): r for r in results}
        self.cells: list[list[Measurement | None]] = [
            [placed.get((row, column)) for column in self.column_keys] for row in self.row_keys
        ]
        self.columns = [
            _Column([m for m in column if m is not None], self.time_scale, trim, warn) for column in zip(*self.cells)
        ]

    @staticmethod
    def row_fn(m: Measurement) -> tuple[int, str | None, str]:
        return m.num_threads, m.env, m.as_row_name

    @staticmethod
    def col_fn(m: Measurement) -> Any:
        return m.description

    def names(self) -> list[str]:
        """What stands before each row; the environment where it changes."""
        environments = {r.env for r in self.results}
        width = max(len(e) for e in environments) if len(environments) > 1 else 0
        out = []
        before: tuple[int, str | None] = (-1, "")
        for threads, env, name in self.row_keys:
            shown = f"({env})" if len(environments) > 1 and (threads, env) != before else ""
            out.append("  " + shown.ljust(width + 4) + name)
            before = threads, env
        return out

    def best(self, row: int, column: int) -> float | None:
        """The best time that a cell is compared with."""
        if self.colorize is Colorize.ROWWISE:
            found = self.cells[row]
        else:
            threads = self.row_keys[row][0]
            found = [cells[column] for key, cells in zip(self.row_keys, self.cells) if key[0] == threads]
        return min((m.median for m in found if m is not None), default=None)

    def render(self) -> str:
        texts = [[name, *map(_Column.text, self.columns, row)] for name, row in zip(self.names(), self.cells)]
        headings = ["", *self.column_keys]
        widths = [max(len(text) for text in column) for column in zip(headings, *texts)]
        lines = ["  |  ".join(heading.center(width) for heading, width in zip(headings, widths))]
        length = len(lines[0])
        threads = -1
        for i, text in enumerate(texts):
            if self.row_keys[i][0] != threads:
                threads = self.row_keys[i][0]
                lines.append(f"{threads} threads: ".ljust(length, "-"))
            cells = [text[0].ljust(widths[0])]
            for j, m in enumerate(self.cells[i]):
                shown = text[j + 1].center(widths[j + 1])
                best = self.best(i, j)
                if self.colorize is not Colorize.NONE and m is not None and best is not None:
                    shown = _colored(shown, m.median, best)
                cells.append(shown)
            lines.append("  |  ".join(cells))
        title = "[" + (" " + (self.label or "") + " ").center(length - 2, "-") + "]"
        unit = f"Times are in {unit_to_english(self.time_unit)}s ({self.time_unit})."
        note = ""
        if self.warn and any(r.has_warnings for r in self.results):
            note = "(! XX%) Measurement has high variance, where XX is the IQR / median * 100.\n"
        return "\n".join([title, *lines, "", unit, note])


class Compare:
    """Prints measurements in tables, one for each label."""

    def __init__(self, results: Iterable[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim_significant_figures = False
        self._colorize = Colorize.NONE
        self._highlight_warnings = False

    def __str__(self) -> str:
        return "\n".join(self._render())

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add more measurements."""
        results = list(results)
        for r in results:
            if not isinstance(r, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(r)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Show only digits that mean something."""
        self._trim_significant_figures = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colour results by the best of their column, or row."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Mark results that vary much."""
        self._highlight_warnings = True

    def print(self) -> None:
        print(str(self))

    def _render(self) -> list[str]:
        groups: dict[Any, list[Measurement]] = {}
        for m in Measurement.merge(self._results):
            groups.setdefault(m.label, []).append(m)
        options = self._colorize, self._trim_significant_figures, self._highlight_warnings
        return [Table(group, *options).render() for group in groups.values()]
