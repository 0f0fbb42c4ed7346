"""`torch.utils.weak`: dictionaries of tensors that go when the tensors go."""

from __future__ import annotations

import copy
import gc
from typing import Any

import pytest

from .._subject import subject as torch
from .._subject import submodule

weak: Any = submodule("utils.weak")


def test_keys_are_compared_by_identity() -> None:
    a, b = torch.ones(2), torch.ones(2)
    held = weak.WeakTensorKeyDictionary({a: 1})
    assert a in held and b not in held and 3 not in held
    held[b] = 2
    assert (held[a], held[b], held.get(torch.ones(2)), len(held)) == (1, 2, None, 2)
    assert [id(k) for k in held] == [id(a), id(b)]
    assert list(held.values()) == [1, 2]
    assert held == {a: 1, b: 2}
    assert held != {a: 1}
    assert held.setdefault(b, 5) == 2
    assert held.pop(b) == 2
    with pytest.raises(KeyError):
        held.pop(b)
    assert held.popitem() == (a, 1)
    assert not held


def test_a_key_that_dies_leaves() -> None:
    a, b = torch.ones(2), torch.ones(2)
    held = weak.WeakIdKeyDictionary([(a, 1), (b, 2)])
    del a
    gc.collect()
    assert list(held.items()) == [(b, 2)]
    assert len(held.keyrefs()) == 1


def test_nothing_leaves_during_iteration() -> None:
    tensors = [torch.ones(1) for _ in range(4)]
    held = weak.WeakIdKeyDictionary((t, i) for i, t in enumerate(tensors))
    seen = []
    for key, value in held.items():
        seen.append(value)
        if value == 0:
            del key
            tensors[1:3] = []
    assert seen == [0, 3]
    assert len(held) == 2


def test_copies_and_unions() -> None:
    a, b = torch.ones(2), torch.ones(2)
    held = weak.WeakIdKeyDictionary({a: [1]})
    assert copy.copy(held)[a] is held[a]
    deep = copy.deepcopy(held)
    assert deep[a] == [1] and deep[a] is not held[a]
    assert dict.fromkeys(map(id, held | {b: 2})) == {id(a): None, id(b): None}
    assert list(({b: 2} | held).values()) == [2, [1]]
    held |= {b: 3}
    assert held[b] == 3
    assert held.__or__(3) is NotImplemented


def test_references_compare_by_identity() -> None:
    a, b = torch.ones(2), torch.ones(2)
    one = weak.WeakIdRef(a)
    assert one == weak.WeakIdRef(a) and not one == weak.WeakIdRef(b)
    assert hash(one) == id(a) and one() is a
    del a
    gc.collect()
    assert one() is None and one == one and not one == weak.WeakIdRef(b)


def test_a_reference_to_a_tensor() -> None:
    t = torch.ones(2)
    reference = weak.TensorWeakRef(t)
    assert reference() is t
    del t
    gc.collect()
    assert reference() is None
    with pytest.raises(AssertionError, match="expected torch.Tensor, got <class 'int'>"):
        weak.TensorWeakRef(3)
