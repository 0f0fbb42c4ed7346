"""`torch._guards`: the fake mode that is on, and the context of a trace. Nothing is compiled: there are no guards."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_STATE = threading.local()


def detect_fake_mode(inputs: Any = None) -> Any:
    """The fake mode that is on, or that fake tensors among `inputs` have; None if there is none."""
    from ._subclasses.fake_tensor import FakeTensor, FakeTensorMode
    from ._torch_dispatch import mode_stack
    from .utils._pytree import tree_leaves

    context = TracingContext.try_get()
    if context is not None and context.fake_mode is not None:
        return context.fake_mode
    found = [
        (m, f"active fake mode {i}") for i, m in enumerate(reversed(mode_stack())) if isinstance(m, FakeTensorMode)
    ]
    found += [
        (t.fake_mode, f"fake tensor input {i}") for i, t in enumerate(tree_leaves(inputs)) if isinstance(t, FakeTensor)
    ]
    if not found:
        return None
    mode, what = found[0]
    for other, of in found[1:]:
        if other is not mode:
            raise AssertionError(f"fake mode ({mode}) from {what} doesn't match mode ({other}) from {of}")
    return mode


def active_fake_mode() -> Any:
    """The innermost fake mode that is on."""
    from ._subclasses.fake_tensor import FakeTensorMode
    from ._torch_dispatch import mode_stack

    return next((m for m in reversed(mode_stack()) if isinstance(m, FakeTensorMode)), None)


class TracingContext:
    """What a trace knows: the fake mode that its tensors have."""

    def __init__(self, fake_mode: Any = None) -> None:
        self.fake_mode = fake_mode

    @staticmethod
    def try_get() -> TracingContext | None:
        """The context of the trace that goes on in this thread."""
        return getattr(_STATE, "context", None)

    @staticmethod
    def get() -> TracingContext:
        """The same, which must be there."""
        found = TracingContext.try_get()
        if found is None:
            raise RuntimeError("TracingContext.get() must be called within an ongoing trace.")
        return found


@contextmanager
def tracing(context: TracingContext | None) -> Iterator[TracingContext | None]:
    """Inside, this is the context of the trace."""
    before = TracingContext.try_get()
    _STATE.context = context
    try:
        yield context
    finally:
        _STATE.context = before


class CompileContext:
    """The compilation that runs; there is none."""

    @staticmethod
    def try_get() -> None:
        return None

    @staticmethod
    def current_compile_id() -> None:
        return None
