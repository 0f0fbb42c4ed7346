"""Which values count as numbers of Python where PyTorch takes a Scalar.

Invariant: nothing here imports NumPy; its scalars are known by their class.
"""

from __future__ import annotations

import operator
from typing import Any

from ._sizes import LONG_MIN, SHORT, is_ragged


def is_number(x: object) -> bool:
    """Whether an operand counts as a Python scalar (NumPy's scalars do, through their number protocol)."""
    return isinstance(x, float) or isinstance(x, int) or isinstance(x, complex) or is_numpy_scalar(x)


def checked_number(x: Any) -> Any:
    """A number as PyTorch's Scalar takes it: an int must fit 64 bits, with or without sign."""
    if is_ragged(x):
        raise no_number()
    if isinstance(x, int):
        n: int = x
        if n > SHORT and n > 18446744073709551615:
            raise OverflowError("int too big to convert")
        if n < -SHORT and n < LONG_MIN:
            raise OverflowError("can't convert negative int to unsigned")
    return x


def no_number() -> AttributeError:
    """A ragged size where a number is wanted, in PyTorch's words."""
    return AttributeError("'NestedIntNode' object has no attribute 'guard_int'")


def is_numpy_scalar(x: object) -> bool:
    t = type(x)
    if getattr(t, "__module__", None) != "numpy":  # a class made by hand may have none
        return False
    return not hasattr(t, "__len__") and hasattr(x, "item") and hasattr(x, "dtype")


def plain_int(x: Any) -> Any:
    """An integer of NumPy's as one of Python's; anything else as it is."""
    return int(x) if is_numpy_scalar(x) and x.dtype.kind in "iu" else x


def c_int(value: Any) -> int:
    """An `int` of C."""
    return _c_number(value, -(2**31), 2**31 - 1, "signed integer")


def flag(value: Any) -> bool:
    """What C code that reads a byte takes for a truth: a small number that is not negative."""
    if isinstance(value, bool):
        return value
    return _c_number(value, 0, 255, "unsigned byte integer") != 0


def _c_number(value: Any, least: int, most: int, kind: str) -> int:
    number: int = operator.index(value)
    if number < LONG_MIN or number > -(LONG_MIN + 1):
        raise OverflowError("Python int too large to convert to C long")
    if number < least:
        raise OverflowError(f"{kind} is less than minimum")
    if number > most:
        raise OverflowError(f"{kind} is greater than maximum")
    return number
