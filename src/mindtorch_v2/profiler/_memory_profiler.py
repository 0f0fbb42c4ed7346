"""Memory over time by what it is for, from the blocks that were given and taken back while a profile ran.

Invariant: a block belongs to one category from its creation to its end. The category follows from where in the program
the block was made and how long it lived: what an optimiser's step makes and keeps is its state; what a backward pass
makes is a gradient if it outlives the pass and a detail of it otherwise; what an operator outside makes and gives back
before it ends is temporary, and what outlives it is an activation when a backward pass follows. Blocks that were there
before are not seen.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from .. import _device
from .._profiler.recorder import BACKWARD, Record, Session


class Category(enum.Enum):
    """What a block is for."""

    INPUT = enum.auto()
    TEMPORARY = enum.auto()
    ACTIVATION = enum.auto()
    GRADIENT = enum.auto()
    AUTOGRAD_DETAIL = enum.auto()
    PARAMETER = enum.auto()
    OPTIMIZER_STATE = enum.auto()


class Action(enum.Enum):
    """What happened to a block."""

    PREEXISTING = enum.auto()
    CREATE = enum.auto()
    INCREMENT_VERSION = enum.auto()
    DESTROY = enum.auto()


# In the order of the columns, with colours for the picture.
_COLORS: dict[Category | None, str] = {
    Category.PARAMETER: "darkgreen",
    Category.OPTIMIZER_STATE: "goldenrod",
    Category.INPUT: "black",
    Category.TEMPORARY: "mediumpurple",
    Category.ACTIVATION: "red",
    Category.GRADIENT: "mediumblue",
    Category.AUTOGRAD_DETAIL: "royalblue",
    None: "grey",
}
_INDEX = {category: i for i, category in enumerate(_COLORS)}


class Block(NamedTuple):
    """Memory from `start` to `end` (None when it was still held)."""

    device: int
    nbytes: int
    start: int
    end: int | None
    category: Category | None


class MemoryProfileTimeline:
    """The blocks of a session, and files of them."""

    def __init__(self, session: Session) -> None:
        spans = [r for r in session.records if r.kind in ("cpu_op", "user_annotation")]
        self._passes = [(r.start, r.end) for r in spans if r.scope == BACKWARD]
        self._steps = [(r.start, r.end) for r in spans if r.name.startswith("Optimizer.step#")]
        self._calls = [(r.start, r.end) for r in spans if r.kind == "cpu_op" and r.scope != BACKWARD]
        self.blocks = list(self._pair(session))

    def _pair(self, session: Session) -> Iterator[Block]:
        held: dict[tuple[int, int], Record] = {}
        for r in session.records:
            if r.kind != "cpu_instant_event":
                continue
            key = r.device, r.address
            if r.nbytes > 0:
                held[key] = r
            elif key in held:
                made = held.pop(key)
                yield Block(made.device, made.nbytes, made.start, r.start, self._category(made.start, r.start))
        for made in held.values():
            yield Block(made.device, made.nbytes, made.start, None, self._category(made.start, None))

    def _category(self, start: int, end: int | None) -> Category | None:
        def around(spans: list[tuple[int, int]]) -> int | None:
            """The end of the outermost span that a block was made in."""
            found = [last for first, last in spans if first <= start <= last]
            return max(found) if found else None

        step = around(self._steps)
        if step is not None:
            return Category.OPTIMIZER_STATE if end is None or end > step else Category.TEMPORARY
        if around(self._passes) is not None:
            last = max(last for _, last in self._passes)
            return Category.GRADIENT if end is None or end > last else Category.AUTOGRAD_DETAIL
        call = around(self._calls)
        if call is None:
            return None
        if end is not None and end <= call:
            return Category.TEMPORARY
        if any(first > start for first, _ in self._passes):
            return Category.ACTIVATION
        return Category.TEMPORARY if end is not None else None

    def _events(self, where: str) -> list[tuple[int, Action, int, int]]:
        """(time, what happened, bytes, column), in order of time."""
        device = _device.as_device(where)
        index = -1 if device.type == "cpu" else device.index or 0
        out: list[tuple[int, Action, int, int]] = []
        for b in self.blocks:
            if b.device == index:
                out.append((b.start, Action.CREATE, b.nbytes, _INDEX[b.category]))
                if b.end is not None:
                    out.append((b.end, Action.DESTROY, -b.nbytes, _INDEX[b.category]))
        return sorted(out, key=lambda e: e[0])

    def _coalesce_timeline(self, device_str: str) -> tuple[list[int], list[list[int]]]:
        """Times in microseconds, and for each the bytes in use by category, after a leading 0."""
        times: list[int] = []
        sizes: list[list[int]] = []
        for ns, _, nbytes, column in self._events(device_str):
            at = ns // 1000
            if not times or at != times[-1]:
                times.append(at)
                sizes.append(sizes[-1].copy() if sizes else [0] * (len(_INDEX) + 1))
            sizes[-1][column + 1] += nbytes
        return times, sizes

    def export_memory_timeline(self, path: str, device_str: str) -> None:
        """`[times, sizes by category]` as JSON."""
        with open(path, "w") as f:
            json.dump(self._coalesce_timeline(device_str), f)

    def export_memory_timeline_raw(self, path: str, device_str: str) -> None:
        """`(time, action, bytes, category)` of each event as JSON."""
        events: list[Any] = [
            (t, action.value, nbytes, column) for t, action, nbytes, column in self._events(device_str)
        ]
        with open(path, "w") as f:
            json.dump(events, f)

    def export_memory_timeline_html(
        self, path: str, device_str: str, figsize: tuple[int, int] = (20, 12), title: str | None = None
    ) -> None:
        """A page with the timeline as a picture: bytes by category, one on top of the other."""
        times, sizes = self._coalesce_timeline(device_str)
        width, height = 48 * figsize[0], 48 * figsize[1]
        span = max(times[-1] - times[0], 1) if times else 1
        peak = max((sum(s) for s in sizes), default=0)

        def point(at: int, nbytes: int) -> str:
            return f"{(at - times[0]) / span * width:.1f},{height - nbytes / max(peak, 1) * height:.1f}"

        shapes, legend = [], []
        for i, (category, color) in enumerate(_COLORS.items()):
            low = [sum(s[: i + 1]) for s in sizes]
            high = [sum(s[: i + 2]) for s in sizes]
            edge = [point(t, n) for t, n in zip(times, high)] + [
                point(t, n) for t, n in reversed(list(zip(times, low)))
            ]
            shapes.append(f'<polygon fill="{color}" fill-opacity="0.7" points="{" ".join(edge)}"/>')
            name = "Unknown" if category is None else category.name
            legend.append(f'<span style="color:{color}">&#9632;</span> {name}')
        text = f"{title + ': ' if title else ''}{device_str}, {span / 1000:.3f} ms, at most {peak} bytes"
        page = (
            '<html>\n<head><meta charset="utf-8" /><title>Memory Timeline</title></head>\n<body>\n'
            f"<p>{text}</p>\n<p>{' '.join(legend)}</p>\n"
            f'<svg width="{width}" height="{height}">\n' + "\n".join(shapes) + "\n</svg>\n</body>\n</html>\n"
        )
        with open(path, "w", encoding="utf-8") as f:
            f.write(page)
