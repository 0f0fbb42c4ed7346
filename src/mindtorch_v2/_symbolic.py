"""What PyTorch offers for sizes that may be symbols, on plain Python numbers; and checks that raise.

Invariant: there are no symbols here, so every function gives the number that PyTorch gives for numbers.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

from ._dispatch.op import c_type_name
from ._dtype import bool as bool_
from ._overrides import overridable
from ._sizes import LONG_MAX
from ._tensor_base import TensorBase
from ._warn import warn


@overridable
def _assert(condition: Any, message: Any) -> None:
    """`assert condition, message`, as a call that can be traced."""
    if not condition:
        raise AssertionError(message)


@overridable
def sym_not(a: Any) -> bool:
    """not a"""
    return not a


@overridable
def sym_float(a: Any) -> float:
    """float(a)"""
    return float(a)


@overridable
def sym_int(a: Any) -> int:
    """int(a)"""
    return int(a)


def _numbers() -> tuple[tuple[type, ...], tuple[type, ...]]:
    """Types of numbers, and of those that are not integers; NumPy's too."""
    numpy: Any = sys.modules.get("numpy")
    if numpy is None:
        import numpy
    return (numpy.integer, numpy.floating, int, float), (numpy.floating, float)


def _extreme(pick: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    known, floats = _numbers()
    for x in (a, b):
        if not isinstance(x, known):
            raise AssertionError(f"expected {known}, got {type(x)}")
    found = pick(a, b)
    return float(found) if isinstance(a, floats) or isinstance(b, floats) else found


@overridable
def sym_max(a: Any, b: Any) -> Any:
    """The larger number; a float if one of them is."""
    return _extreme(max, a, b)


@overridable
def sym_min(a: Any, b: Any) -> Any:
    """The smaller number; a float if one of them is."""
    return _extreme(min, a, b)


@overridable
def sym_sum(*args: Any) -> Any:
    """The sum of numbers given one by one or as a list."""
    return sum(args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args)


def _class_text(value: Any) -> str:
    """A type as Python prints it, by PyTorch's name."""
    name = c_type_name(type(value))
    return f"<class '{name}'>" if "." in name else str(type(value)).replace("<class 'mindtorch_v2.", "<class 'torch.")


@overridable
def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """t if b else f"""
    if not isinstance(b, bool):
        raise AssertionError(f"expected SymBool or bool, got {_class_text(b)}")
    if type(t) is not type(f):
        raise AssertionError(f"type mismatch: {_class_text(t)} vs {_class_text(f)}")
    return t if b else f


def sym_fresh_size(expr: Any) -> Any:
    """The number itself: nothing is symbolic here."""
    from ._from_data import tensor

    return tensor(expr).item()


def _of_math(name: str) -> Callable[[Any], Any]:
    fn: Callable[[Any], Any] = getattr(math, name)

    def function(a: Any) -> Any:
        return fn(a)

    function.__name__ = function.__qualname__ = f"_sym_{name}"
    function.__doc__ = f"math.{name}(a)"
    return overridable(function)


_sym_sqrt = sym_sqrt = _of_math("sqrt")
_sym_cos = _of_math("cos")
_sym_cosh = _of_math("cosh")
_sym_sin = _of_math("sin")
_sym_sinh = _of_math("sinh")
_sym_tan = _of_math("tan")
_sym_tanh = _of_math("tanh")
_sym_asin = _of_math("asin")
_sym_acos = _of_math("acos")
_sym_atan = _of_math("atan")
_sym_log2 = _of_math("log2")


def sym_constrain_range(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """Raise unless min <= size <= max."""
    _in_range("sym_constrain_range", size, -LONG_MAX - 1 if min is None else min, LONG_MAX if max is None else max)


def sym_constrain_range_for_size(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """Raise unless min <= size <= max, from 0 on if not said otherwise."""
    name = "sym_constrain_range_for_size"
    for side, value in (("min", min), ("max", max)):
        if value is not None and not isinstance(value, (int, float)):
            raise TypeError(f"{name}(): argument '{side}' must be int, not {type(value).__name__}")
    if max is not None and max <= 2:
        raise RuntimeError(f"Max value to constrain_range_for_size must be greater than 2. got: {max}")
    _in_range(name, size, 0 if min is None else min, LONG_MAX if max is None else max)


def _in_range(name: str, size: Any, low: int, high: int) -> None:
    if isinstance(size, bool) or not isinstance(size, (int, float)):
        kind = "Tensor" if isinstance(size, TensorBase) else type(size).__name__
        raise TypeError(f"{name}(): argument 'size' (position 1) must be Number, not {kind}")
    if low > high:
        raise RuntimeError(f"Max must be greater than or equal to min. Got min={low} max={high}")
    if not low <= size <= high:
        raise RuntimeError(f"Invalid value range for {size} between [{low}, {high}].")


# -- checks -------------------------------------------------------------------------------------------------------
def _check_with(error_type: type[Exception], cond: Any, message: Any) -> None:
    """Raise `error_type` with the text that `message()` gives unless `cond` holds."""
    if not isinstance(cond, bool):
        if isinstance(cond, TensorBase):
            raise TypeError(
                "cond must be a bool, but got a Tensor. For tensor conditions, use torch._check_tensor_all() "
                "to assert that all elements are true."
            )
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if not issubclass(error_type, Exception) or issubclass(error_type, Warning):
        raise AssertionError(f"error_type must be a subclass of Exception but not Warning, got {error_type}")
    if message is None:
        raise error_type(
            "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an "
            "enhancement request to PyTorch.)"
        )
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(str(message()))


def _check(cond: Any, message: Any = None) -> None:
    """RuntimeError unless `cond`."""
    _check_with(RuntimeError, cond, message)


def _check_is_size(i: Any, message: Any = None, *, max: Any = None) -> None:
    """RuntimeError unless 0 <= i <= max; deprecated."""
    warn(
        "_check_is_size will be removed in a future PyTorch release along with guard_size_oblivious. "
        "    Use _check(i >= 0) instead.",
        FutureWarning,
    )
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _check_index(cond: Any, message: Any = None) -> None:
    """IndexError unless `cond`."""
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: Any = None) -> None:
    """ValueError unless `cond`."""
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: Any = None) -> None:
    """TypeError unless `cond`."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: Any = None) -> None:
    """NotImplementedError unless `cond`."""
    _check_with(NotImplementedError, cond, message)


def _check_tensor_all_with(error_type: type[Exception], cond: Any, message: Any = None) -> None:
    """Raise `error_type` unless every element holds."""
    if not isinstance(cond, TensorBase):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond._dtype is not bool_:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    every: Any = cond
    _check_with(error_type, bool(every.all().item()), message)


def _check_tensor_all(cond: Any, message: Any = None) -> None:
    """RuntimeError unless every element holds."""
    _check_tensor_all_with(RuntimeError, cond, message)
