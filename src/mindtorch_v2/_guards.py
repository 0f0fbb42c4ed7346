"""`torch._guards`: the fake mode that is on. Nothing is compiled here, so that there are no guards."""

from __future__ import annotations

from typing import Any


def detect_fake_mode(inputs: Any = None) -> Any:
    """The fake mode that is on, or that fake tensors among `inputs` have; None if there is none."""
    from ._subclasses.fake_tensor import FakeTensor, FakeTensorMode
    from ._torch_dispatch import mode_stack
    from .utils._pytree import tree_leaves

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
    """What a compilation knows; there is none."""

    @staticmethod
    def try_get() -> None:
        return None

    @staticmethod
    def get() -> Any:
        raise RuntimeError("TracingContext.get() must be called within an ongoing trace.")


class CompileContext:
    """The compilation that runs; there is none."""

    @staticmethod
    def try_get() -> None:
        return None

    @staticmethod
    def current_compile_id() -> None:
        return None
