"""A word where another argument belongs, in every place of a sample of every operator.

Invariant: where PyTorch refuses the type, so does the library under test; nothing is taken silently. The words of the
refusal are compared in `bad_calls/test_bad_calls.py`, for calls chosen by hand.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from .. import _oracle
from .._subject import subject

pytestmark = pytest.mark.oracle


def found(library: Any, name: str) -> Any:
    for part in name.split("."):
        library = getattr(library, part, None)
    return library if callable(library) else None


def refusal(function: Any, args: list[Any], kwargs: dict[str, Any]) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(*args, **kwargs)
        except Exception as error:
            return type(error).__name__
    return "none"


def test_a_word_is_refused_where_pytorch_refuses_it() -> None:
    oracle = _oracle.load()
    taken: list[str] = []
    for info in _oracle.load_op_db():
        theirs, mine = found(oracle, info.name), found(subject, info.name)
        dtypes = sorted(set(info.dtypes), key=str)
        # Samples of other layouts are compared in `sparse/`.
        if theirs is None or mine is None or not dtypes or info.name.startswith("sparse."):
            continue
        dtype = oracle.float32 if oracle.float32 in dtypes else dtypes[0]
        sample = next(iter(info.sample_inputs("cpu", dtype, requires_grad=False)), None)
        if sample is None:
            continue
        places: list[int | str] = [*range(1 + len(sample.args)), *sample.kwargs]
        for place in places:
            args, kwargs = [sample.input, *sample.args], dict(sample.kwargs)
            if isinstance(place, int):
                args[place] = "a"
            else:
                kwargs[place] = "a"
            own = _oracle.convert_argument(args), _oracle.convert_argument(kwargs)
            if refusal(theirs, args, kwargs) == "TypeError" and refusal(mine, *own) != "TypeError":
                taken.append(f"{info.name} {place}")
    assert taken == []
