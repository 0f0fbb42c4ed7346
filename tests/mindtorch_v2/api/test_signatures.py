"""What is said of arguments that fit no signature: the table of PyTorch's signatures is PyTorch's, and is used."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from .. import _oracle
from .._subject import IS_ORACLE, submodule
from .._subject import subject as torch

pytestmark = pytest.mark.skipif(IS_ORACLE, reason="PyTorch has no such table")
MODULES = ("linalg", "special")


def listed() -> list[tuple[str, bool]]:
    """Names of functions (False) and methods (True) for which there are several signatures."""
    table = submodule("_api.signatures")
    names = [n.lstrip(".") for n in table._SIGNATURES]
    names += [n + "_" for n in names if not n.endswith("_")]
    return [(n, method) for n in names for method in (False, True) if table.signatures(n, method)]


def shown(function: Any, *first: Any) -> list[str]:
    """The signatures that PyTorch's complaint lists."""
    with pytest.raises(TypeError) as error:
        function(*first, *[object()] * 14)
    text = str(error.value).partition("but expected ")[2]
    lines = text.splitlines()
    return [line[4:-1] for line in lines if line.startswith(" * (")] if text.startswith("one of") else [text[1:-1]]


@pytest.mark.oracle
def test_the_table_is_pytorchs() -> None:
    oracle = _oracle.load()
    wrong = []
    for name, method in listed():
        module, _, rest = name.partition("_")
        place = oracle.Tensor if method else getattr(oracle, module) if module in MODULES else oracle
        function = getattr(place, rest if module in MODULES and not method else name, None)
        if function is None:
            continue  # an in-place form that PyTorch does not have
        mine = submodule("_api.signatures").signatures(name, method)
        theirs = shown(function, oracle.ones(2)) if method else shown(function)
        if mine != theirs:
            wrong.append((name, method, mine, theirs))
    assert wrong == []


def test_several_signatures_are_shown() -> None:
    with pytest.raises(
        TypeError,
        match=r"(?s)max\(\) received .* got \(str\), but expected one of:\n \* \(\)\n"
        r" \* \(Tensor other\)\n \* \(int dim, bool keepdim = False\)\n$",
    ):
        torch.ones(2).max("a")


def test_who_calls_by_position_unpacked() -> None:
    """The caller's code does not say which arguments came by name; then what was given is in order."""
    given = ("a",)
    with pytest.raises(TypeError, match=r"amax\(\): argument 'dim' \(position 1\) must be tuple of ints, not str"):
        torch.ones(2).amax(*given)


def test_importing_and_calling_need_no_table() -> None:
    code = (
        "import sys, mindtorch_v2 as t; t.ones(2).sum(0); t.std(t.ones(3), 0); "
        "assert not {'mindtorch_v2._api.signatures', 'mindtorch_v2._dispatch.complaint'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
