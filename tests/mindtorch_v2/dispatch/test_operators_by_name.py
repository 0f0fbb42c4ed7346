"""Operators called by their names in `torch.ops`: what does not fit a schema is refused by its words.

Invariant: no exception that binding raises for itself is seen outside.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from .._subject import subject as torch


@pytest.mark.parametrize(
    "name, arguments, wanted",
    [
        ("tile", ([2**64],), "Expected a value of type 'List[int]' for argument 'dims' but instead found type 'list'"),
        ("narrow", (2**100, 0, 1), "Expected a value of type 'int' for argument 'dim' but instead found type 'int'"),
    ],
)
def test_what_does_not_fit_is_refused_by_the_schema(name: str, arguments: tuple[Any, ...], wanted: str) -> None:
    with pytest.raises(RuntimeError, match=re.escape(f"aten::{name}() {wanted}")):
        getattr(torch.ops.aten, name).default(torch.ones(2), *arguments)


def test_a_packet_names_its_function_and_overloads() -> None:
    packet = torch.ops.aten.sum
    assert packet.op.__module__ == packet.__module__ and packet.op(torch.ones(3)).item() == 3.0
    assert packet._overload_names[packet.overloads().index("default")] == ""
