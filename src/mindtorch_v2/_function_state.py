"""What `torch._C` tells of `__torch_function__` in this thread: whether it is on, and the modes entered.

Invariant: reads and writes the same bits as the contexts in `_overrides`.
"""

from __future__ import annotations

import enum

from ._dispatch.keys import PYTHON
from ._dispatch.state import NO_TORCH_FUNCTION, modes, set_modes
from ._overrides import TorchFunctionMode, _stack

_EXCLUDED = int(PYTHON) << 32


class _TorchFunctionState(enum.Enum):
    """Who may override calls: everyone, modes alone, nobody."""

    ENABLED = 0
    SUBCLASSES_DISABLED = 1
    ALL_DISABLED = 2


def _get_torch_function_state() -> _TorchFunctionState:
    # With no mode entered both kinds of "disabled" are the same, and the milder is the answer.
    found = modes()
    if not found & NO_TORCH_FUNCTION:
        return _TorchFunctionState.ENABLED
    return (
        _TorchFunctionState.ALL_DISABLED if found & _EXCLUDED and _stack() else _TorchFunctionState.SUBCLASSES_DISABLED
    )


def _set_torch_function_state(state: _TorchFunctionState) -> None:
    rest = modes() & ~(NO_TORCH_FUNCTION | _EXCLUDED)
    if state is _TorchFunctionState.ENABLED:
        set_modes(rest)
    elif state is _TorchFunctionState.SUBCLASSES_DISABLED:
        set_modes(rest | NO_TORCH_FUNCTION | (0 if _stack() else _EXCLUDED))
    elif state is _TorchFunctionState.ALL_DISABLED:
        set_modes(rest | NO_TORCH_FUNCTION | _EXCLUDED)
    else:
        raise TypeError(f"_set_torch_function_state(): expected a _TorchFunctionState, got {type(state).__name__}")


def _len_torch_function_stack() -> int:
    return len(_stack())


def _get_function_stack_at(index: int) -> TorchFunctionMode:
    """The mode that was entered as the index-th, from the outermost."""
    stack = _stack()
    if not 0 <= index < len(stack):
        raise RuntimeError("Tried to get stack at idx that's too big")
    return stack[index]


def _push_on_torch_function_stack(mode: TorchFunctionMode) -> None:
    """Enter a mode without its block."""
    mode.__enter__()


def _pop_torch_function_stack() -> TorchFunctionMode:
    """Leave the innermost mode."""
    stack = _stack()
    if not stack:
        raise RuntimeError("trying to pop from empty mode stack")
    mode = stack[-1]
    mode.__exit__(None, None, None)
    return mode
