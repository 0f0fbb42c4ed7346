"""`torch.utils._traceback`: where a program was, kept and shown."""

from __future__ import annotations

import inspect
import linecache
import os
import tempfile
import traceback
from collections.abc import Sequence
from types import TracebackType
from typing import Any


def shorten_filename(fn: str, *, base: str | None = None) -> str:
    """The part of a file's name that is not shared with this package's folder."""
    base = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) if base is None else base
    try:
        shared = os.path.commonpath([base, fn])
    except ValueError:
        return fn
    return fn[len(shared) + 1 :]


def format_frame(frame: Any, *, base: str | None = None, line: bool = False) -> str:
    """File, line and function of a frame in one line."""
    before = f"{frame.line}  # " if line else ""
    return f"{before}{shorten_filename(frame.filename, base=base)}:{frame.lineno} in {frame.name}"


def format_traceback_short(tb: TracebackType | None) -> str:
    """The innermost frame in one line."""
    return format_frame(traceback.extract_tb(tb)[-1])


class CapturedTraceback:
    """The frames that called, outermost first. Lines are read when it is shown."""

    __slots__ = ("skip", "tb")

    def __init__(self, tb: traceback.StackSummary | None, skip: int = 0) -> None:
        self.tb = tb
        self.skip = skip

    @staticmethod
    def extract(*, script: bool = False, cpp: bool = False, skip: int = 0) -> CapturedTraceback:
        """Keep where the program is, without the innermost `skip` frames; scripts and C++ have none here."""
        frame = inspect.currentframe()
        for _ in range(skip + 1):
            frame = None if frame is None else frame.f_back
        stack = traceback.StackSummary.extract(traceback.walk_stack(frame), lookup_lines=False)
        stack.reverse()
        return CapturedTraceback(stack)

    def cleanup(self) -> None:
        """Forget the frames."""
        self.tb = None

    def summary(self) -> traceback.StackSummary:
        """The frames as Python's `traceback` has them."""
        return traceback.StackSummary() if self.tb is None else self.tb

    def format(self) -> list[str]:
        """The frames as text."""
        linecache.checkcache()
        return self.summary().format()

    @staticmethod
    def format_all(tbs: Sequence[CapturedTraceback | None]) -> list[list[str] | None]:
        """Several at once; None where there is none."""
        return [None if tb is None else tb.format() for tb in tbs]

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        return None, {"tb": None, "skip": self.skip}


class report_compile_source_on_error:
    """Show the source of generated code in tracebacks, where its globals keep it as `__compile_source__`."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, value: BaseException | None, tb: TracebackType | None) -> None:
        if value is not None:
            raise value.with_traceback(_with_sources(tb)) from None


def _with_sources(tb: TracebackType | None) -> TracebackType | None:
    """The traceback again, with frames of generated code led through files that hold it."""
    frames: list[TracebackType] = []
    while tb is not None:
        frames.append(tb)
        tb = tb.tb_next
    found: TracebackType | None = None
    for each in reversed(frames):
        source: str | None = each.tb_frame.f_globals.get("__compile_source__")
        generated = each.tb_frame.f_code.co_filename == "<string>"
        shown = _in_file(each, source) if generated and source is not None else each
        found = TracebackType(found, shown.tb_frame, shown.tb_lasti, shown.tb_lineno)
    return found


def _in_file(tb: TracebackType, source: str) -> TracebackType:
    """A traceback like this one whose frame stands in a file with the source."""
    with tempfile.NamedTemporaryFile("w", delete=False, suffix=".py", encoding="utf-8") as file:
        file.write(source)
    name = tb.tb_frame.f_code.co_name
    line = "_inner()"
    text = "\n" * (tb.tb_lineno - 1) + f"def {name if name.isidentifier() else '_module'}(_inner): {line}"
    space: dict[str, Any] = {}
    exec(compile(text, file.name, "exec"), space)
    (fn,) = [v for v in space.values() if callable(v)]

    def fail() -> None:
        raise RuntimeError

    try:
        fn(fail)
    except RuntimeError as error:
        made = error.__traceback__
        assert made is not None and made.tb_next is not None
        return made.tb_next
    raise AssertionError("the frame was not made")
