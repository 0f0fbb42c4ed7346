"""What is said of arguments that fit no signature: the table of PyTorch's signatures is PyTorch's, and is used."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
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
        if name == "split":  # `torch.split` and the method are Python in front of it
            place, method = oracle._VF, False
        function = getattr(place, rest if module in MODULES and not method else name, None)
        if function is None:
            continue  # an in-place form that PyTorch does not have
        mine = submodule("_api.signatures").signatures(name, method)
        theirs = shown(function, oracle.ones(2)) if method else shown(function)
        if mine != theirs:
            wrong.append((name, method, mine, theirs))
    assert wrong == []


def test_several_signatures_are_shown() -> None:
    """Those of as many parameters as there are arguments say which of these do not fit."""
    with pytest.raises(TypeError) as error:
        torch.ones(2).max("a")
    assert str(error.value) == (
        "max() received an invalid combination of arguments - got (str), but expected one of:\n"
        " * ()\n"
        "      didn't match because some of the arguments have invalid types: (!str!)\n"
        " * (Tensor other)\n"
        "      didn't match because some of the arguments have invalid types: (!str!)\n"
        " * (int dim, bool keepdim = False)\n"
    )


WHOLE: list[tuple[str, Callable[[Any], Any]]] = [
    ("bool", lambda torch: torch.ones(2, 2).split(True)),
    ("default", lambda torch: torch.ones(2, 2).split(1, 1.0)),
    ("list", lambda torch: torch.ones(2, 1).squeeze([1.0])),
    ("tuple", lambda torch: torch.ones(2, 1).squeeze((True,))),
    ("none", lambda torch: torch.ones(2, 1).squeeze(None)),
    ("tensor", lambda torch: torch.movedim(torch.ones(2, 2), torch.tensor(True), 0)),
    ("view", lambda torch: torch.ones(1).view(True)),
    ("number", lambda torch: torch.lerp(torch.ones(1), "a", 1.0)),
    ("keywords", lambda torch: torch.movedim(torch.ones(2, 2), source="a", destination=1)),
    ("unknown", lambda torch: torch.movedim(torch.ones(2, 2), 1, to=1)),
    ("where", lambda torch: torch.where(torch.ones(1), "a", 1)),
    ("randint", lambda torch: torch.randint(high=3)),
    ("randint_float", lambda torch: torch.randint(0.0, 3, (2,))),
    ("normal", lambda torch: torch.normal(0.0, 1.0, 2)),
]


@pytest.mark.oracle
@pytest.mark.parametrize("call", [call for _, call in WHOLE], ids=[name for name, _ in WHOLE])
def test_whole_text_is_pytorchs(call: Callable[[Any], Any]) -> None:
    texts = []
    for library in (torch, _oracle.load()):
        with pytest.raises(TypeError) as error:
            call(library)
        texts.append(str(error.value))
    assert texts[0] == texts[1]


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
