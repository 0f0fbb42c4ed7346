"""`torch.utils._pytree`: which containers are nodes, and how they come apart and together again.

Invariant: every expectation holds on PyTorch too.
"""

from __future__ import annotations

import dataclasses
import time
from collections import OrderedDict, defaultdict, namedtuple
from typing import Any

import pytest

from .._subject import subject as torch
from .._subject import submodule

pytree: Any = submodule("utils._pytree")


@dataclasses.dataclass
class Pair:
    x: Any
    y: Any = 3


@dataclasses.dataclass
class Partly:
    x: Any
    y: Any = 7
    z: Any = dataclasses.field(default=9, init=False)


@dataclasses.dataclass
class Unknown:
    x: Any
    y: Any = 1


class Plain:
    def __init__(self, x: Any) -> None:
        self.x = x


Point = namedtuple("Point", "a b")
pytree.register_dataclass(Pair)
pytree.register_dataclass(Partly, field_names=["x"], drop_field_names=["y"])
pytree.register_dataclass(Plain, field_names=["x"])


def test_a_dataclass_is_a_node_once_registered() -> None:
    assert pytree.tree_leaves(Unknown(1, 2)) == [Unknown(1, 2)]
    leaves, spec = pytree.tree_flatten(Pair(1, [2, Pair(3, 4)]))
    assert leaves == [1, 2, 3, 4]
    assert repr(spec) == (
        "TreeSpec(Pair, [['x', 'y'], []], [*,\n  TreeSpec(list, None, [*,\n    TreeSpec(Pair, [['x', 'y'], []], "
        "[*,\n      *])])])"
    )
    assert pytree.tree_unflatten([5, 6, 7, 8], spec) == Pair(5, [6, Pair(7, 8)])
    assert pytree.tree_map(lambda v: -v, {"k": Pair(1, (2,))}) == {"k": Pair(-1, (-2,))}
    assert pytree.tree_map(lambda a, b: a + b, Pair(1, 2), Pair(10, 20)) == Pair(11, 22)


def test_fields_that_are_none_are_no_leaves() -> None:
    leaves, spec = pytree.tree_flatten(Pair(None, 2))
    assert leaves == [2] and spec.context == [["y"], ["x"]]
    assert pytree.tree_map(lambda v: (v,), Pair(None, 2)) == Pair(None, (2,))
    assert pytree.tree_structure(Pair(1, None)) != pytree.tree_structure(Pair(1, 2))


def test_dropped_fields_and_plain_classes() -> None:
    assert pytree.tree_map(lambda v: v * 2, Partly(2, 5)) == Partly(4, 7)
    assert pytree.tree_map(lambda v: v * 2, Plain(4)).x == 8


def test_registering_again_warns() -> None:
    with pytest.warns(UserWarning, match="is already registered as pytree node. Overwriting the previous registration"):
        pytree.register_dataclass(Pair)


@pytest.mark.parametrize(
    ("cls", "names", "text"),
    [
        (
            int,
            {},
            "field_names must be specified with a list of all fields used to initialize <class 'int'>, as it is ",
        ),
        (Unknown, {"field_names": ["x"]}, "Missing fields in `field_names`: {'y'}. If you want to include these"),
        (Unknown, {"field_names": ["x", "y", "q"]}, "Unexpected fields in `field_names`: {'q'}. Please remove"),
        (Unknown, {"field_names": ["x", "y"], "drop_field_names": ["y"]}, "Unexpected fields in `field_names`: {'y'}"),
    ],
)
def test_fields_that_do_not_fit(cls: type, names: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError) as refused:
        pytree.register_dataclass(cls, **names)
    assert text in str(refused.value)
    assert pytree.tree_is_leaf(Unknown(1))


def test_named_results_keep_their_type() -> None:
    found = torch.max(torch.tensor([[1.0, 2.0], [3.0, 0.0]]), 0)
    leaves, spec = pytree.tree_flatten(found)
    assert [v.tolist() for v in leaves] == [[3, 2], [1, 0]] and spec.type is type(found) and spec.context is None
    mapped = pytree.tree_map(lambda v: v.tolist(), [found])[0]
    assert type(mapped) is type(found) and mapped.values == [3, 2] and mapped.indices == [1, 0]
    both = pytree.tree_map(lambda a, b: (a + b).tolist(), found, found)
    assert both.values == [6, 4]
    with pytest.raises(ValueError, match="^Type mismatch; expected .*max'>, but got <class 'tuple'>.$"):
        pytree.tree_map(lambda a, b: a, found, tuple(found))
    with pytest.raises(ValueError, match="^Node type mismatch; expected <class 'tuple'>, but got .*max'>.$"):
        pytree.tree_map(lambda a, b: a, tuple(found), found)
    moment = time.gmtime(0)
    assert pytree.tree_leaves(moment) == [moment]


def test_kinds_of_tuples() -> None:
    found = torch.max(torch.ones(2, 2), 0)
    given = [found, type(found), time.gmtime(0), time.struct_time, Point(1, 2), Point, (1,), tuple, 3]
    for name, expected in {
        "is_structseq": [1, 1, 1, 1, 0, 0, 0, 0, 0],
        "is_structseq_instance": [1, 0, 1, 0, 0, 0, 0, 0, 0],
        "is_structseq_class": [0, 1, 0, 1, 0, 0, 0, 0, 0],
        "is_namedtuple": [0, 0, 0, 0, 1, 1, 0, 0, 0],
        "is_namedtuple_instance": [0, 0, 0, 0, 1, 0, 0, 0, 0],
        "is_namedtuple_class": [0, 0, 0, 0, 0, 1, 0, 0, 0],
    }.items():
        assert [int(getattr(pytree, name)(v)) for v in given] == expected, name
    assert repr(pytree.tree_structure(Point(1, 2))).startswith("TreeSpec(namedtuple, <class ")


def test_dictionaries_match_by_key() -> None:
    def add(a: int, b: int) -> int:
        return a + b

    assert pytree.tree_map(add, {"a": 1, "b": 2}, {"b": 10, "a": 20}) == {"a": 21, "b": 12}
    assert pytree.tree_map(add, {"a": 1}, OrderedDict(a=5)) == {"a": 6}
    assert pytree.tree_map(add, defaultdict(int, a=1), {"a": 5}) == {"a": 6}
    for one, other, text in (
        ({"a": 1, "b": 2}, {"b": 1, "c": 5}, "Node keys mismatch; missing key(s): {'a'}; extra key(s): {'c'}."),
        ([1, 2], [1], "Node arity mismatch; expected 2, but got 1."),
        (Pair(1, 2), Pair(1, None), "Node arity mismatch; expected 2, but got 1."),
        (Pair(1, None), Pair(None, 1), f"Node context mismatch for custom node type {Pair!r}."),
    ):
        with pytest.raises(ValueError) as refused:
            pytree.tree_map(add, one, other)
        assert str(refused.value) == text
