"""One function of the library, run on both: the same value, or the same error, and the same warnings.

Invariant: both start from the same seed, and random numbers are the same in both, so that every value can be compared.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

from .. import _oracle
from .._subject import subject

Case = Callable[[Any], Any]


class Cases(dict[str, Case]):
    """By name; used as a decorator."""

    def __call__(self, fn: Case) -> Case:
        assert fn.__name__ not in self
        self[fn.__name__] = fn
        return fn


def _text(value: Any) -> str:
    return re.sub("0x[0-9a-f]+", "0x", str(value).replace("mindtorch_v2", "torch"))


def attempt(fn: Callable[[], Any]) -> Any:
    """The value, or the error as text; and the warnings that came with it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = fn()
        except Exception as error:
            value = f"{type(error).__name__}: {_text(error)}"
    seen = [f"{w.category.__name__}: {_text(w.message)}" for w in caught]
    return [value, *seen] if seen else value


def run(lib: Any, fn: Case) -> Any:
    lib.manual_seed(20)
    return attempt(lambda: fn(lib))


def same(actual: Any, expected: Any, where: str = "", **options: Any) -> None:
    """Nests of tensors, numbers and texts; objects of a library count as their text."""
    if _oracle.is_oracle_tensor(expected):
        _oracle.assert_same(actual, expected, where=where, **options)
        assert actual.requires_grad == expected.requires_grad, where
    elif isinstance(expected, dict):
        assert [_text(key) for key in actual] == [_text(key) for key in expected], where
        for mine, theirs in zip(actual, expected):
            same(actual[mine], expected[theirs], f"{where}[{theirs!r}]", **options)
    elif isinstance(expected, (list, tuple)) and type(expected).__name__ != "Size":
        assert isinstance(actual, (list, tuple)) and len(actual) == len(expected), f"{where}: {actual} / {expected}"
        for position, (mine, theirs) in enumerate(zip(actual, expected)):
            same(mine, theirs, f"{where}[{position}]", **options)
    elif isinstance(expected, float):
        _oracle.assert_same(actual, expected, where=where)
    else:
        assert _text(actual) == _text(expected), where


def check(fn: Case, **options: Any) -> None:
    """`fn` does the same on both libraries, and is no failure of the test itself."""
    expected = run(_oracle.load(), fn)
    actual = run(subject, fn)
    for value in (expected, actual):
        first = value[0] if isinstance(value, list) and value else value
        assert not (isinstance(first, str) and re.match(r"(NameError|SyntaxError|UnboundLocalError)", first)), first
    same(actual, expected, **options)
