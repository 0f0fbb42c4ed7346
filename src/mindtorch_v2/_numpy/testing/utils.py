"""Comparisons for tests: NumPy's own, of arrays turned into NumPy's.

Invariant: nothing is compared here but dtypes; an array becomes NumPy's array over the same memory.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy
import numpy.testing as of_numpy

import mindtorch_v2 as torch

from .. import _dtypes
from .._creation import empty
from .._ndarray import array, ndarray

IS_WASM = False
HAS_REFCOUNT = getattr(sys, "getrefcount", None) is not None


def _plain(x: Any) -> Any:
    """Arrays and tensors as NumPy's, in sequences and dictionaries too."""
    if isinstance(x, ndarray):
        x = x.tensor
    if isinstance(x, torch.Tensor):
        return x.detach().resolve_conj().resolve_neg().numpy()
    if isinstance(x, (list, tuple)):
        return type(x)(_plain(part) for part in x) if type(x) in (list, tuple) else tuple(_plain(part) for part in x)
    if isinstance(x, dict):
        return {key: _plain(value) for key, value in x.items()}
    return x


def assert_(val: Any, msg: Any = "") -> None:
    """Fail unless something is true."""
    __tracebackhide__ = True
    if not val:
        raise AssertionError(msg() if callable(msg) else msg)


def assert_equal(actual: Any, desired: Any, err_msg: str = "", verbose: bool = True) -> None:
    """Fail unless two objects are equal."""
    of_numpy.assert_equal(_plain(actual), _plain(desired), err_msg, verbose)


def assert_almost_equal(actual: Any, desired: Any, decimal: int = 7, err_msg: str = "", verbose: bool = True) -> None:
    """Fail unless numbers are equal up to a number of decimals."""
    of_numpy.assert_almost_equal(_plain(actual), _plain(desired), decimal, err_msg, verbose)


def assert_array_equal(x: Any, y: Any, err_msg: str = "", verbose: bool = True, *, strict: bool = False) -> None:
    """Fail unless arrays are equal."""
    of_numpy.assert_array_equal(_plain(x), _plain(y), err_msg, verbose, strict=strict)


def assert_array_almost_equal(x: Any, y: Any, decimal: int = 6, err_msg: str = "", verbose: bool = True) -> None:
    """Fail unless arrays are equal up to a number of decimals."""
    of_numpy.assert_array_almost_equal(_plain(x), _plain(y), decimal, err_msg, verbose)


def assert_array_less(x: Any, y: Any, err_msg: str = "", verbose: bool = True) -> None:
    """Fail unless each element is less than the other's."""
    of_numpy.assert_array_less(_plain(x), _plain(y), err_msg, verbose)


def assert_allclose(
    actual: Any,
    desired: Any,
    rtol: float = 1e-7,
    atol: float = 0,
    equal_nan: bool = True,
    err_msg: str = "",
    verbose: bool = True,
    check_dtype: bool = False,
) -> None:
    """Fail unless arrays are equal up to a tolerance."""
    if check_dtype:
        assert array(actual).dtype == array(desired).dtype
    of_numpy.assert_allclose(_plain(actual), _plain(desired), rtol, atol, equal_nan, err_msg, verbose)


def assert_raises_regex(exception_class: Any, expected_regexp: Any, *args: Any, **kwargs: Any) -> Any:
    """Fail unless a call raises an exception with a text."""
    return of_numpy.assert_raises_regex(exception_class, expected_regexp, *args, **kwargs)


@contextmanager
def _warns(warning_class: type[Warning], name: str | None) -> Iterator[list[warnings.WarningMessage]]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        yield seen
        if not any(issubclass(w.category, warning_class) for w in seen):
            raise AssertionError("No warning raised" + (f" when calling {name}" if name else ""))


def assert_warns(warning_class: type[Warning], *args: Any, **kwargs: Any) -> Any:
    """Fail unless a call, or what is done inside a context, warns."""
    if not args:
        return _warns(warning_class, None)
    function: Callable[..., Any] = args[0]
    with _warns(warning_class, function.__name__):
        return function(*args[1:], **kwargs)


class suppress_warnings(warnings.catch_warnings):
    """A context in which chosen warnings are not shown."""

    def __init__(self, forwarding_rule: str = "always") -> None:
        super().__init__(record=False)
        self._chosen: list[tuple[type[Warning], str]] = []
        self._inside = False

    def filter(self, category: type[Warning] = Warning, message: str = "", module: Any = None) -> None:
        """Choose warnings by category and the beginning of their text."""
        if module is not None:
            raise NotImplementedError("suppress_warnings.filter(): argument 'module' is not served")
        self._chosen.append((category, message))
        if self._inside:
            warnings.filterwarnings("ignore", message, category)

    def __enter__(self) -> Any:
        super().__enter__()
        self._inside = True
        for category, message in self._chosen:
            warnings.filterwarnings("ignore", message, category)
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self._inside = False
        super().__exit__(*exc_info)


def _gen_alignment_data(
    dtype: Any = _dtypes.float32, type: str = "binary", max_size: int = 24
) -> Iterator[tuple[Any, ...]]:
    """Operands at different places in memory, with a word about each; a result is the first of them."""
    for o in range(3):
        for s in range(o + 2, max(o + 3, max_size)):
            places = [empty(s, dtype=dtype)[o:] for _ in range(2 if type == "unary" else 3)]
            for operand in places[1:]:
                operand.tensor.copy_(torch.arange(s - o).to(operand.tensor.dtype))
            said = f"{o} size={s} {numpy.dtype(_dtypes.dtype(dtype).name.rstrip('_'))} {type}"
            yield (*places, said + " out of place")
            yield (*places[1:2], *places[1:], said + " in place")
