"""`torch.ops.aten`: rows under PyTorch's names and overloads, as handlers see them.

Invariant: an overload name that a row answers to is one of PyTorch's for that operator, or the row is listed with the
reason.
"""

from __future__ import annotations

from typing import Any

import pytest

from .._oracle import load
from .._subject import subject as torch
from .._subject import submodule

pytestmark = pytest.mark.oracle

# Rows without an operator of that name in PyTorch, or forms it spells otherwise: seen by handlers under our own name.
OWN_OVERLOADS = frozenset({"method", "nonzero", "fro", "fro_out"})


def rows() -> list[Any]:
    submodule("_api.lazy_tables").load_all()
    names = submodule("_api.overloads")
    return [
        (op, names.base_of(op.name), names.names_of(op))
        for op in submodule("_dispatch.registry").ops()
        if op.row is not None and not op.is_out
    ]


def test_rows_carry_pytorchs_overload_names() -> None:
    aten = load().ops.aten
    wrong = {}
    for op, base, overloads in rows():
        packet = getattr(aten, base, None)
        if packet is None or base.startswith("_"):
            continue
        known = set(packet.overloads())
        missing = [o for o in overloads if o not in known and o not in OWN_OVERLOADS]
        if missing:
            wrong[op.name] = (missing, sorted(known))
    assert not wrong, "name these in _api/overloads.py: " + repr(wrong)


def test_the_first_name_is_an_operator_of_tensors() -> None:
    """Some names in PyTorch also stand for operators of plain numbers; a row is none of those."""
    aten = load().ops.aten
    wrong = {}
    for op, base, overloads in rows():
        packet = getattr(aten, base, None)
        if packet is None or base.startswith("_") or overloads[0] not in packet.overloads():
            continue
        schema = getattr(packet, overloads[0])._schema
        tensors = [a for a in (*schema.arguments, *schema.returns) if "Tensor" in str(a.type)]
        if not tensors:
            wrong[op.name] = str(schema)
    assert not wrong, "name these in _api/overloads.py: " + repr(wrong)


@pytest.mark.parametrize(
    "get",
    [
        lambda t: t.ops.aten.add.Tensor,
        lambda t: t.ops.aten.sum.default,
        lambda t: t.ops.aten.relu.default,
        lambda t: t.ops.aten.add.out,
    ],
)
def test_overloads_answer_as_pytorchs(get: Any) -> None:
    theirs, ours = get(load()), get(torch)
    assert str(ours) == str(theirs) and repr(ours) == repr(theirs) and ours.name() == theirs.name()
    assert ours.namespace == theirs.namespace and ours.__name__ == theirs.__name__
    assert ours.is_view == theirs.is_view and ours._schema.is_mutable == theirs._schema.is_mutable
    assert ours._schema.name == theirs._schema.name and ours._schema.overload_name == theirs._schema.overload_name
    assert str(ours.overloadpacket) == str(theirs.overloadpacket)


def test_a_schema_in_detail() -> None:
    theirs, ours = load().ops.aten.add_.Tensor._schema, torch.ops.aten.add_.Tensor._schema
    assert str(ours) == str(theirs)
    for mine, other in zip(ours.arguments, theirs.arguments):
        assert (mine.name, str(mine.type), mine.default_value, mine.kwarg_only, mine.has_default_value()) == (
            other.name,
            str(other.type),
            other.default_value,
            other.kwarg_only,
            other.has_default_value(),
        )
        assert (mine.alias_info is None) == (other.alias_info is None)
        assert mine.alias_info is None or mine.alias_info.is_write == other.alias_info.is_write


CALLS = {
    "add.Tensor": lambda t: t.ops.aten.add.Tensor(t.ones(2), t.ones(2), alpha=3),
    "add.Scalar": lambda t: t.ops.aten.add.Scalar(t.ones(2), 2),
    "add": lambda t: t.ops.aten.add(t.ones(2), 2),
    "add_": lambda t: t.ops.aten.add_.Tensor(t.ones(2), t.ones(2)),
    "add.out": lambda t: t.ops.aten.add.out(t.ones(2), t.ones(2), out=t.empty(2)),
    "pow": lambda t: t.ops.aten.pow.Tensor_Scalar(t.arange(3.0), 2),
    "sum": lambda t: t.ops.aten.sum.dim_IntList(t.ones(2, 3), [1], True),
    "view": lambda t: t.ops.aten.view.default(t.arange(6.0), [2, 3]),
    "cat": lambda t: t.ops.aten.cat.default([t.ones(1), t.zeros(1)]),
    "max": lambda t: t.ops.aten.max.dim(t.arange(6.0).view(2, 3), 1),
    "_to_copy": lambda t: t.ops.aten._to_copy.default(t.ones(2), dtype=t.float64),
    "full": lambda t: t.ops.aten.full.default([2], 3.0),
}


@pytest.mark.parametrize("name", CALLS)
def test_overloads_compute(name: str) -> None:
    expected, got = CALLS[name](load()), CALLS[name](torch)
    for e, g in zip(*[r if isinstance(r, tuple) else (r,) for r in (expected, got)]):
        assert g.tolist() == e.tolist() and str(g.dtype) == str(e.dtype)


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.ops.aten.nothing,
        lambda t: t.ops.aten.add.nothing,
        lambda t: t.ops.nothing.add,
        lambda t: t.ops.aten.sin.default(),
        lambda t: t.ops.aten.sin.default("a"),
        lambda t: t.ops.aten.sin.default(t.ones(1), 2),
    ],
)
def test_refusals_are_pytorchs(call: Any) -> None:
    errors = []
    for library in (load(), torch):
        with pytest.raises((AttributeError, RuntimeError)) as caught:
            call(library)
        errors.append((caught.type, str(caught.value)))
    assert errors[0] == errors[1]
