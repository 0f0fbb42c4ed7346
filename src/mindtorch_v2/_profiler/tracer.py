"""Calls of Python functions, for `with_stack=True`: a record for each, by Python's own profiling hook.

Invariant: the profiler's own functions leave no record, and what was open when recording began is open from its
beginning.
"""

from __future__ import annotations

import os
import sys
from time import perf_counter_ns
from types import CodeType, FrameType
from typing import Any

from .. import _native
from .recorder import Record, Session

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_OWN = tuple(
    os.path.join(_PACKAGE, part)
    for part in ("_profiler" + os.sep, "profiler" + os.sep, "autograd" + os.sep + "profiler")
)


class Tracer:
    """The hook of one session."""

    def __init__(self, session: Session) -> None:
        self.session = session
        # What a code object is called; None for the profiler's own.
        self.names: dict[CodeType, str | None] = {}
        self.modules: dict[int, str] = {}
        self.kinds: dict[str, int] = {}
        nn = sys.modules.get("mindtorch_v2.nn")
        self.module_call: Any = nn.Module.__call__.__code__ if nn is not None else None
        self.roots = sorted({os.path.abspath(p) + os.sep for p in sys.path if p}, key=len, reverse=True)

    def name(self, code: CodeType) -> str | None:
        if code in self.names:
            return self.names[code]
        path = code.co_filename
        found: str | None = None
        if not path.startswith(_OWN):
            for root in self.roots:
                if path.startswith(root):
                    path = path[len(root) :]
                    break
            found = f"{path}({code.co_firstlineno}): {code.co_name}"
        self.names[code] = found
        return found

    def module_name(self, module: Any) -> str:
        """`nn.Module: Linear_0`: instances are numbered for each class as they are first called."""
        found = self.modules.get(id(module))
        if found is None:
            kind = type(module).__name__
            number = self.kinds.get(kind, 0)
            self.kinds[kind] = number + 1
            found = f"nn.Module: {kind}_{number}"
            self.modules[id(module)] = found
        return found

    def push(self, name: str, start: int) -> Record:
        session = self.session
        thread = session.thread()
        r = Record(name, "python_function", thread, start)
        session.calls += 1
        r.python = session.calls, thread.python[-1].python[0] if thread.python else -1
        session.records.append(r)
        thread.python.append(r)
        return r

    def existing(self, frame: FrameType | None) -> None:
        """What is on the stack already."""
        found: list[FrameType] = []
        while frame is not None:
            found.append(frame)
            frame = frame.f_back
        for f in reversed(found):
            self.enter(f, self.session.start)

    def enter(self, frame: FrameType, start: int) -> None:
        code = frame.f_code
        name = self.name(code)
        if name is None:
            return
        if code is self.module_call:
            module = frame.f_locals.get("self")
            if module is not None:
                name = self.module_name(module)
                self.push(name, start).module = int(name.rpartition("_")[2])
                return
        self.push(name, start)

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            self.enter(frame, perf_counter_ns())
            return
        if self.name(frame.f_code) is None:
            return
        if event == "c_call":
            self.push(repr(arg) if arg is not sys.setprofile else "", perf_counter_ns())
            return
        stack = self.session.thread().python
        if stack:
            stack.pop().end = perf_counter_ns()


def start(session: Session) -> None:
    tracer = Tracer(session)
    tracer.existing(sys._getframe(1))
    _native.show_modules(True)
    sys.setprofile(tracer)


def stop(session: Session) -> None:
    sys.setprofile(None)
    _native.show_modules(False)
    now = perf_counter_ns()
    for thread in session.threads.values():
        while thread.python:
            thread.python.pop().end = now
