"""Dtypes of what operators answer under autocast, in both libraries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import _oracle
from .._subject import subject as torch
from ..parity import _infos

# Which tensors of a call are given in the low precision: none, all, or every second.
GIVEN = ("float32", "low", "mixed")


def lowered(value: Any, given: str, low: str) -> Any:
    """The oracle's arguments with some of the float32 tensors in a lower precision."""
    oracle = _oracle.load()
    count = 0

    def lower(t: Any) -> Any:
        nonlocal count
        if t.dtype is not oracle.float32:
            return t
        count += 1
        return t.to(getattr(oracle, low)) if given == "low" or count % 2 == 0 else t

    return value if given == "float32" else _oracle.tree_map(lower, value, _oracle.is_oracle_tensor)


def dtypes(value: Any) -> Any:
    """The dtypes of all tensors in a result; the kind of exception where there is none."""
    if isinstance(value, _infos.Failure):
        return value.kind

    def is_tensor(item: Any) -> bool:
        return _oracle.is_oracle_tensor(item) or _oracle.is_subject_tensor(item)

    found: list[str] = []
    _oracle.tree_map(lambda t: found.append(_oracle.dtype_name(t.dtype)), [value], is_tensor)
    return found


def outcomes(case: _infos.Covered, given: str, low: str, count: int, on: bool = True) -> Iterator[tuple[str, Any, Any]]:
    """(description, ours, PyTorch's) for samples of an operator under CPU autocast, or with it off."""
    oracle = _oracle.load()
    theirs, ours = _infos.in_oracle(case.info), _infos.in_subject(case.info)
    for sample in _infos.samples(case.info, "float32", count=count):
        args, kwargs = lowered(_infos.arguments(sample), given, low)
        mine = _oracle.convert_argument(args), _oracle.convert_argument(kwargs)
        with oracle.autocast("cpu", getattr(oracle, low), enabled=on):
            expected = _infos.attempt(theirs, args, kwargs)
        with torch.autocast("cpu", getattr(torch, low), enabled=on):
            actual = _infos.attempt(ours, *mine)
        yield f"{case.label} {given} {low} {_infos.describe(sample)}", actual, expected
