"""`torch.utils._pytree`: paths to leaves, constants, and descriptions as text.

Invariant: a case is a function of the library; what it gives, its errors and its warnings are PyTorch's.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any

import pytest

from .._subject import mindtorch_only, submodule
from ..nn._both import Cases, attempt, check

case = Cases()
Point = namedtuple("Point", "a b")
Unnamed = namedtuple("Unnamed", "a")


class Colour(enum.Enum):
    RED = 1


def pytree_of(lib: Any) -> Any:
    return importlib.import_module(f"{lib.__name__}.utils._pytree")


def trees() -> list[Any]:
    return [
        3,
        [1, (2, {"a": 3, 4: [5, None]})],
        OrderedDict([("x", 1), ("y", (2,))]),
        defaultdict(list, {"k": [1, 2]}),
        deque([1, [2]], maxlen=4),
        Point(1, {"b": Point(2, 3)}),
        {},
        [],
        ((), [{}]),
    ]


@case
def paths(lib: Any) -> Any:
    p = pytree_of(lib)
    results: list[Any] = []

    def marked(where: Any, leaf: Any) -> Any:
        return p.keystr(where), leaf

    for tree in trees():
        pairs, spec = p.tree_flatten_with_path(tree)
        results += [[(p.keystr(path), leaf, repr(path)) for path, leaf in pairs], repr(spec)]
        results.append([p.key_get(tree, path) == leaf for path, leaf in p.tree_leaves_with_path(tree)])
        results.append(attempt(lambda t=tree: p.tree_map_with_path(marked, t)))
        results.append([p.keystr(k) for k, _ in p.tree_leaves_with_path(tree, lambda x: isinstance(x, dict))])
    results.append(p.tree_map_with_path(lambda k, x, y: (str(k[-1]), x, y), {"a": 1, "b": 2}, {"a": [3], "b": 4}))
    results.append([(p.keystr(k), v) for k, v in p.tree_leaves_with_path(lib.ones(2, 3).max(0))])
    results.append(p.arg_tree_leaves([1, 2], 3, x={"y": 4}))
    results += [p.SequenceKey(1) == p.SequenceKey(1), hash(p.MappingKey("a")) == hash(p.MappingKey("a"))]
    return results


@case
def texts(lib: Any) -> Any:
    p = pytree_of(lib)
    p._register_namedtuple(Point, serialized_type_name="test.Point")
    results: list[Any] = []
    for tree in [*trees(), {Colour.RED.name: 1}, {"a": (1, [2])}]:
        spec = p.tree_structure(tree)
        text = attempt(lambda s=spec: p.treespec_dumps(s))
        results += [text, attempt(lambda t=text, s=spec: p.treespec_loads(t) == s), p.treespec_pprint(spec)]
    spec = p.tree_structure([1])
    results += [
        attempt(lambda: p.treespec_dumps(p.tree_structure(Unnamed(1)))),
        attempt(lambda: p.treespec_dumps(spec, 2)),
        attempt(lambda: p.treespec_dumps([1])),
        attempt(lambda: p.treespec_loads('[2, {"type": null, "context": null, "children_spec": []}]')),
        attempt(lambda: p.treespec_loads('[1, {"type": "no.such", "context": null, "children_spec": []}]')),
        attempt(lambda: p.treespec_loads(p.treespec_dumps(spec, 1))),
        p.treespec_tuple([p.treespec_leaf(), spec]),
        p.treespec_dict(a=spec, b=p.treespec_leaf()),
        attempt(lambda: p.treespec_tuple([1])),
        attempt(lambda: p.treespec_dict({"a": 1})),
    ]
    p._deregister_pytree_node(Point)
    return results


@case
def registered(lib: Any) -> Any:
    p = pytree_of(lib)

    class Box:
        def __init__(self, *content: Any) -> None:
            self.content = content

    class Fixed(Box):
        def __eq__(self, other: object) -> bool:
            return isinstance(other, Fixed) and other.content == self.content

        def __hash__(self) -> int:
            return hash(self.content)

        def __repr__(self) -> str:
            return "Fixed"

    @dataclasses.dataclass
    class Pair:
        x: Any
        y: Any

    def flat(box: Any) -> Any:
        return list(box.content), Colour.RED

    results: list[Any] = [attempt(lambda: p.register_pytree_node(Box, flat, lambda v, c: Box(*v)))]
    results.append(attempt(lambda: p.register_pytree_node(Box, flat, lambda v, c: Box(*v))).partition(" is ")[2])
    results.append(attempt(lambda: p.tree_leaves_with_path(Box(1))).partition("type: ")[0])
    results.append(attempt(lambda: p.treespec_dumps(p.tree_structure(Box(1)))).partition(" for ")[0])
    p._deregister_pytree_node(Box)
    results.append(p.tree_leaves(Box) == [Box])
    keyed = {"flatten_with_keys_fn": lambda box: ([(p.SequenceKey(i), c) for i, c in enumerate(box.content)], None)}
    p.register_pytree_node(Box, flat, lambda v, c: Box(*v), serialized_type_name="test.Box", **keyed)
    text = p.treespec_dumps(p.tree_structure(Box(1, 2)))
    results += [text, p.treespec_loads(text) == p.tree_structure(Box(3, 4))]
    results.append([p.keystr(k) for k, _ in p.tree_leaves_with_path([Box(1, Box(2))])])
    results.append(
        attempt(lambda: p.register_pytree_node(Pair, flat, flat, to_dumpable_context=str)).partition("for ")[0]
    )
    p._deregister_pytree_node(Pair) if Pair in p.SUPPORTED_SERIALIZED_TYPES else p.SUPPORTED_NODES.pop(Pair)
    p.register_dataclass(Pair, serialized_type_name="test.Pair")
    results += [p.treespec_dumps(p.tree_structure(Pair(1, None)))]
    results.append([(p.keystr(k), v) for k, v in p.tree_leaves_with_path(Pair(1, Pair(2, None)))])
    results.append(attempt(lambda: p.register_constant(Box)))
    p.register_constant(Fixed)
    leaves, spec = p.tree_flatten([Fixed(1), 2])
    results += [leaves, p.is_constant_class(Fixed), p.is_constant_class(Box), spec == p.tree_structure([Fixed(1), 3])]
    results += [spec == p.tree_structure([Fixed(2), 3]), p.tree_unflatten([5], spec), p.tree_leaves_with_path(Fixed(1))]
    for cls, name in ((Box, "test.Box"), (Pair, "test.Pair")):
        p._deregister_pytree_node(cls)
        results.append(name in p.SERIALIZED_TYPE_TO_PYTHON_TYPE)
    p._deregister_pytree_node(Fixed)
    return results


@pytest.mark.oracle
@pytest.mark.parametrize("name", case)
def test_case(name: str) -> None:
    check(case[name])


def test_a_text_is_read_back() -> None:
    p = submodule("utils._pytree")
    spec = p.tree_structure({"a": [1, (2, 3)], "b": OrderedDict(c=4)})
    assert p.treespec_loads(p.treespec_dumps(spec)) == spec


@pytest.mark.oracle
@mindtorch_only
def test_public_names() -> None:
    theirs, mine = importlib.import_module("torch.utils._pytree"), submodule("utils._pytree")
    assert [n for n in theirs.__all__ if not hasattr(mine, n)] == []
