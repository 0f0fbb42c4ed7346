"""Packing and padding of sequences against PyTorch: values, layouts, gradients, and the packed sequence as an object.

Invariant: both libraries get the same lengths; every combination of options is tried, with and without padding.
"""

from __future__ import annotations

import copy
import itertools
import pickle
from typing import Any

import pytest

from .. import _oracle
from .._subject import subject as torch

LENGTHS = [[4, 3, 3, 1], [4, 4, 4, 4], [1, 1, 1, 1], [3, 2, 2, 1]]
UNSORTED = [[1, 4, 3, 3], [2, 2, 4, 1]]


def tensor(library: Any, shape: tuple[int, ...], dtype: str = "float32") -> Any:
    count = 1
    for size in shape:
        count *= size
    return library.arange(count).reshape(shape).to(getattr(library, dtype))


def packed_and_padded(library: Any, lengths: list[int], batch_first: bool, rest: tuple[int, ...], dtype: str) -> Any:
    rnn = library.nn.utils.rnn
    x = tensor(library, (4, 4, *rest), dtype)
    if dtype.startswith("float"):
        x.requires_grad_()
    ordered = sorted(lengths, reverse=True) == lengths
    packed = rnn.pack_padded_sequence(x, lengths, batch_first, enforce_sorted=ordered)
    results = [t for t in packed if t is not None]
    for total in (None, 6):
        padded, sizes = rnn.pad_packed_sequence(packed, batch_first, -3.0, total)
        results += [padded, sizes]
    results += rnn.unpack_sequence(packed)
    if dtype.startswith("float"):
        (padded * padded).sum().backward()
        results.append(x.grad)
    return results


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "float64"])
@pytest.mark.parametrize("rest", [(), (2,), (2, 3)])
def test_packing(rest: tuple[int, ...], dtype: str) -> None:
    oracle = _oracle.load()
    for lengths, batch_first in itertools.product(LENGTHS + UNSORTED, (False, True)):
        if dtype == "bool" and lengths in UNSORTED:
            continue
        actual = packed_and_padded(torch, lengths, batch_first, rest, dtype)
        expected = packed_and_padded(oracle, lengths, batch_first, rest, dtype)
        _oracle.assert_same(actual, expected, 0.0, 0.0, f"{lengths} {batch_first}")


def padded(library: Any, sizes: list[int], **options: Any) -> Any:
    sequences = [tensor(library, (n, 2)).requires_grad_() for n in sizes]
    out = library.nn.utils.rnn.pad_sequence(sequences, **options)
    out.square().sum().backward()
    return [out, *(s.grad for s in sequences)]


@pytest.mark.oracle
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("batch_first", [False, True])
def test_padding(batch_first: bool, side: str) -> None:
    for sizes, value in itertools.product(([3, 1, 2], [2], [2, 2], [0, 3]), (0.0, -1.5)):
        options: dict[str, Any] = dict(batch_first=batch_first, padding_value=value, padding_side=side)
        _oracle.assert_same(padded(torch, sizes, **options), padded(_oracle.load(), sizes, **options), 0.0, 0.0)


@pytest.mark.oracle
def test_padding_broadcasts_and_converts_like_a_copy() -> None:
    def run(library: Any) -> Any:
        pad = library.nn.utils.rnn.pad_sequence
        return [
            pad([library.ones(2, 3), library.full((3, 1), 2.0)]),
            pad([library.ones(2, 3), library.full((1, 3), 2.5, dtype=library.float64)], True, 7.0),
            pad([library.ones(2, dtype=library.int64), library.ones(1, dtype=library.int64)], False, 0.5),
            pad(library.ones(2, 3)),
        ]

    _oracle.assert_same(run(torch), run(_oracle.load()))


@pytest.mark.oracle
def test_lengths_beyond_the_input_are_counted_but_not_there() -> None:
    def run(library: Any) -> Any:
        packed = library.nn.utils.rnn.pack_padded_sequence(tensor(library, (4, 3, 2)), [5, 3, 1])
        return [packed.data, packed.batch_sizes]

    _oracle.assert_same(run(torch), run(_oracle.load()))


@pytest.mark.oracle
def test_without_data() -> None:
    def run(library: Any) -> Any:
        rnn = library.nn.utils.rnn
        packed = rnn.pack_padded_sequence(library.empty(4, 3, 2, device="meta"), [4, 2, 1])
        padded, lengths = rnn.pad_packed_sequence(packed, True)
        return [packed.data, packed.batch_sizes, padded, lengths]

    _oracle.assert_same(run(torch), run(_oracle.load()))


def sample(library: Any = torch) -> Any:
    return library.nn.utils.rnn.pack_padded_sequence(tensor(library, (4, 3)), [1, 4, 2], enforce_sorted=False)


@pytest.mark.oracle
def test_it_shows_itself_like_pytorchs() -> None:
    assert repr(sample()) == repr(sample(_oracle.load()))
    assert sample()._fields == sample(_oracle.load())._fields
    assert sorted(torch.nn.utils.rnn.__all__) == sorted(_oracle.load().nn.utils.rnn.__all__)


def test_it_is_a_tuple() -> None:
    packed: Any = sample()
    data, batch_sizes, order, back = packed
    assert data is packed.data and isinstance(sample(), tuple) and batch_sizes.tolist() == [3, 2, 1, 1]
    assert order.tolist() == [1, 2, 0] and back.tolist() == [2, 0, 1]
    again = type(packed)((data, batch_sizes), None, order)
    assert again.unsorted_indices.tolist() == back.tolist()
    for copied in (pickle.loads(pickle.dumps(packed)), copy.deepcopy(packed)):
        assert type(copied) is type(packed) and copied.data.tolist() == data.tolist()


def test_conversions_touch_the_data_alone() -> None:
    packed = sample()
    kinds = dict(double="float64", half="float16", long="int64", int="int32", short="int16", char="int8", byte="uint8")
    for name, dtype in kinds.items():
        changed = getattr(packed, name)()
        assert changed.data.dtype is getattr(torch, dtype)
        assert changed.batch_sizes is packed.batch_sizes and changed.sorted_indices.dtype is torch.int64
    assert packed.float() is packed and packed.cpu() is packed and packed.to("cpu") is packed
    assert packed.cpu(torch.float64).data.dtype is torch.float64
    assert not packed.is_cuda and not packed.is_pinned()
    moved = packed.to("meta")
    assert moved.data.is_meta and moved.sorted_indices.is_meta and not moved.batch_sizes.is_meta


def test_unpadding_turns_the_callers_tensor() -> None:
    x = tensor(torch, (3, 2))
    found = torch.nn.utils.rnn.unpad_sequence(x, torch.tensor([1, 3]))
    assert [t.tolist() for t in found] == [[0.0], [1.0, 3.0, 5.0]] and tuple(x.shape) == (2, 3)


def test_permutations_are_inverted() -> None:
    assert torch.nn.utils.rnn.invert_permutation(None) is None
    assert torch.nn.utils.rnn.invert_permutation(torch.tensor([2, 0, 3, 1])).tolist() == [1, 3, 0, 2]
