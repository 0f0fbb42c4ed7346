"""The last net of an operator's call: arguments that its rule or kernel did not foresee, where Python itself complained
about our own code. The complaint is told again as one about the call: the operator and what it was given.

Invariant: only what was raised by this package (or by NumPy and SciPy below it) in Python's own words is told again.
An exception that has passed through anybody else's code (a handler, a hook, an operator from outside, an object's
method) is left as it is. Being caught here is a defect, if a small one: a rule lacks a check. So the tests turn the net
off (`NET.on`), and the fuzzer lists what was caught.
"""

from __future__ import annotations

import re
from types import FrameType
from typing import Any

from .._tensor_base import TensorBase

# What Python raises by itself; the public functions of the native module ask about these types only.
TYPES: tuple[type[Exception], ...] = (
    TypeError,
    AttributeError,
    ValueError,
    LookupError,
    ArithmeticError,
    AssertionError,
    UnboundLocalError,
)
# Raised by no rule or kernel on purpose, whatever the words.
_NEVER_MEANT = (KeyError, AssertionError, UnboundLocalError, ZeroDivisionError)
_OWN_WORDS = re.compile(
    r"object expected; got|^(tuple|list|string|bytearray|range object) (assignment )?index out of range"
    # A ragged size is refused in PyTorch's words, which are Python's.
    r"|^'(?!NestedIntNode')[\w.]+' object (has no attribute"
    r"|is not (iterable|subscriptable|callable|an iterator|a mapping)"
    r"|cannot be interpreted|does not support|doesn't support)"
    r"|^'[\w.]+' and '[\w.]+'$|^unsupported operand type|^bad operand type for|not supported between instances of"
    r"|^(not enough|too many) values to unpack|^cannot unpack non-iterable|^object of type '[\w.]+' has no len"
    r"|^(list|tuple) indices must be|^can't multiply sequence|^can only concatenate|^argument of type '"
    r"|^unhashable type|^pop from|^(max|min)\(\) (arg|iterable)|^math domain error|^cannot convert float|^range\(\) arg"
    r"|^must be real number, not|^(float|int|complex)\(\) argument|^could not convert string to|^invalid literal for"
    r"|^<lambda>\(\)|<locals>|^sequence item"
    # NumPy's and SciPy's
    r"|operands could not be broadcast|^could not broadcast|axis -?\d+ is out of bounds|^axes don't match|^axis\w* "
    r"|cannot reshape array|zero-size array|maximum supported dimension|^index -?\d+ is out of bounds for axis"
    r"|^all the input array|^need at least one array|\bufunc\b|^setting an array element"
)
_OURS = frozenset((__name__.partition(".")[0], "numpy", "scipy"))


class Net:
    """Whether complaints are told again."""

    def __init__(self) -> None:
        self.on = True


NET = Net()


def told_again(error: BaseException, name: str, names: list[str], args: tuple[Any, ...]) -> RuntimeError | None:
    """What to raise in the place of `error` for a call of `name` with these arguments; None to let it be."""
    if not NET.on or not isinstance(error, TYPES) or not _unmeant(error) or not _all_ours(error):
        return None
    given = ", ".join(f"{n}={shown(v)}" for n, v in zip([*names, *("..." for _ in args)], args))
    return RuntimeError(f"{name}(): there is no result for these arguments: {given}")


def _unmeant(error: Exception) -> bool:
    if isinstance(error, _NEVER_MEANT):
        return True
    text = str(error)
    # Handlers that declined are named, and classes of functions have odd names.
    return not text.startswith("Multiple dispatch failed") and _OWN_WORDS.search(text) is not None


def _all_ours(error: BaseException) -> bool:
    """Whether every frame that it has passed through is of this package or of the libraries below it."""
    trace = error.__traceback__
    while trace is not None:
        if not _ours(trace.tb_frame):
            return False
        trace = trace.tb_next
    return True


def _ours(frame: FrameType) -> bool:
    name = frame.f_globals.get("__name__")
    if isinstance(name, str) and name.partition(".")[0] in _OURS:
        return True
    return name is None and frame.f_code.co_filename.startswith("<torch.")  # a public function, written from its schema


def shown(value: Any) -> str:
    """An argument, in few words: a tensor by dtype and shape."""
    if isinstance(value, TensorBase):
        return f"{value._dtype.name}{list(value._shape)}"
    if isinstance(value, (list, tuple)):
        inside = ", ".join(shown(v) for v in value[:8])
        return f"[{inside}{', ...' if len(value) > 8 else ''}]"
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        text = repr(value)
        return text if len(text) <= 40 else text[:37] + "..."
    return type(value).__name__
