"""What `torch.ops.aten` shows of its overloads is PyTorch's schema, word for word."""

from __future__ import annotations

import re
from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only
from .._subject import subject as torch


def _shown(ops: Any) -> dict[str, str]:
    found = {}
    for name in dir(ops.aten):
        packet = getattr(ops.aten, name, None)
        for overload in getattr(packet, "overloads", list)():
            found[f"{name}.{overload}"] = str(getattr(packet, overload)._schema)
    return found


@mindtorch_only
@pytest.mark.oracle
def test_every_schema_is_pytorchs() -> None:
    from mindtorch_v2._api.lazy_tables import load_all

    theirs = _oracle.load()
    load_all()
    torch.eye(2).to_sparse()  # the operators of sparse layouts come with the first of them
    wrong, known = [], 0
    for name, text in _shown(torch.ops).items():
        base, _, overload = name.partition(".")
        packet = getattr(theirs.ops.aten, base, None)
        if packet is None or overload not in packet.overloads():
            continue
        known += 1
        expected = str(getattr(packet, overload)._schema)
        if text != expected:
            wrong.append(f"{text}\n  PyTorch: {expected}")
    assert known > 2500
    assert not wrong, "\n".join(wrong)


@mindtorch_only
def test_the_table_names_overloads_that_are_served() -> None:
    from mindtorch_v2._api.lazy_tables import load_all
    from mindtorch_v2._api.shown_schemas import SHOWN

    load_all()
    for name, text in SHOWN.items():
        base, _, overload = name.partition(".")
        op = getattr(getattr(torch.ops.aten, base), overload or "default")
        assert str(op._schema) == f"aten::{text}"


@mindtorch_only
@pytest.mark.parametrize("call", ["all.default('x')", "add.Scalar(torch.ones(2), 'x')", "clamp.default(3, 1)"])
def test_a_refusal_shows_the_schema(call: str) -> None:
    overload = call[: call.index("(")].removesuffix(".default")
    with pytest.raises(RuntimeError, match=re.escape(f"Declaration: aten::{overload}(Tensor self")):
        eval(f"torch.ops.aten.{call}", {"torch": torch})
