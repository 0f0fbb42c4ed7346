"""Indexing and assignment: every kind of index, mixtures, view or copy, gradients.

Invariant: NumPy gives the expected elements; the oracle is asked again for shapes, strides and errors. One rule
differs: NumPy lets an integer beside an index array take part in the broadcast, PyTorch selects with it first, so NumPy
is asked in two steps here.
"""

from __future__ import annotations

import random
from typing import Any

import numpy
import pytest

from .. import _oracle
from .._subject import subject as torch

Index = Any

SHAPES: list[tuple[int, ...]] = [(4,), (3, 4), (2, 3, 4), (1, 3, 2, 2), (), (0, 3), (3, 0, 2), (5, 1, 2)]
SEEDS = range(400)


class Mask:
    """A bool mask or integer tensor as plain data, made into an array of either library when used."""

    def __init__(self, data: numpy.ndarray[Any, Any]) -> None:
        self.data = data

    def __repr__(self) -> str:
        return f"{self.data.dtype}{self.data.tolist()}"


def random_index(rng: random.Random, shape: tuple[int, ...], basic_only: bool = False) -> tuple[Any, ...]:
    """A valid index expression for `shape`."""
    parts: list[Any] = []
    dims = list(shape)
    dim = 0
    ellipsis_used = False
    broadcast = rng.choice([(2,), (3,), (1,), (2, 2), ()])
    while dim < len(dims):
        size = dims[dim]
        kinds = ["int", "slice", "slice", "none", "ellipsis", "full"]
        if not basic_only:
            kinds += ["ints", "ints", "list", "mask"]
        kind = rng.choice(kinds)
        if kind == "none":
            if len(parts) < 6:
                parts.append(None)
            continue
        if kind == "ellipsis":
            if ellipsis_used:
                continue
            ellipsis_used = True
            dim += rng.randint(0, len(dims) - dim)
            parts.append(Ellipsis)
            continue
        if kind in ("int", "ints", "list") and size == 0:
            continue
        if kind == "int":
            parts.append(rng.randrange(-size, size))
        elif kind == "slice":
            bound = [None, *range(-size - 2, size + 3)]
            parts.append(slice(rng.choice(bound), rng.choice(bound), rng.choice([None, 1, 2, 3])))
        elif kind == "full":
            parts.append(slice(None))
        elif kind == "ints":
            count = int(numpy.prod(broadcast, dtype=int))
            values = [rng.randrange(-size, size) for _ in range(count)]
            parts.append(Mask(numpy.array(values, dtype=numpy.int64).reshape(broadcast)))
        elif kind == "list":
            count = broadcast[-1] if broadcast else 1
            parts.append([rng.randrange(-size, size) for _ in range(count)])
        else:
            count = broadcast[-1] if broadcast else 1
            if size < count:
                continue
            mask = numpy.zeros(size, dtype=bool)
            mask[rng.sample(range(size), count)] = True
            parts.append(Mask(mask))
        dim += 1
        if rng.random() < 0.2:
            break
    return tuple(parts)


def in_two_steps(ndim: int, index: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The basic parts of `index`, and the index arrays that are applied to their result."""
    consumed = sum(1 for part in index if part is not None and part is not Ellipsis)
    basic: list[Any] = []
    advanced: list[Any] = []
    for part in index:
        if part is Ellipsis:
            basic += [slice(None)] * (ndim - consumed)
            advanced += [slice(None)] * (ndim - consumed)
        elif isinstance(part, (Mask, list)):
            basic.append(slice(None))
            advanced.append(part.data if isinstance(part, Mask) else part)
        else:
            basic.append(part)
            if not isinstance(part, int):
                advanced.append(slice(None))
    return tuple(basic), tuple(advanced)


def numpy_get(source: numpy.ndarray[Any, Any], index: tuple[Any, ...]) -> numpy.ndarray[Any, Any]:
    basic, advanced = in_two_steps(source.ndim, index)
    return numpy.asarray(numpy.asarray(source[basic])[advanced])


def numpy_set(target: numpy.ndarray[Any, Any], index: tuple[Any, ...], value: Any) -> None:
    basic, advanced = in_two_steps(target.ndim, index)
    within = (*basic, Ellipsis)
    view = target[within]
    view[advanced] = value


def for_library(torch: Any, index: tuple[Any, ...]) -> Any:
    made = tuple(
        torch.tensor(part.data.tolist(), dtype=_dtype(torch, part)) if isinstance(part, Mask) else part
        for part in index
    )
    return made[0] if len(made) == 1 and not isinstance(made[0], list) else made


def _dtype(torch: Any, part: Mask) -> Any:
    return torch.bool if part.data.dtype == bool else torch.int64


def cases(basic_only: bool = False) -> list[tuple[int, tuple[int, ...], tuple[Any, ...]]]:
    result = []
    for seed in SEEDS:
        rng = random.Random(seed)
        shape = SHAPES[seed % len(SHAPES)]
        result.append((seed, shape, random_index(rng, shape, basic_only)))
    return result


def array(shape: tuple[int, ...]) -> numpy.ndarray[Any, Any]:
    return numpy.arange(int(numpy.prod(shape, dtype=int)), dtype=numpy.float64).reshape(shape)


def make(torch: Any, shape: tuple[int, ...]) -> Any:
    return torch.arange(int(numpy.prod(shape, dtype=int)), dtype=torch.float64).reshape(shape)


def numpy_answer(shape: tuple[int, ...], index: tuple[Any, ...]) -> numpy.ndarray[Any, Any] | None:
    """What NumPy finds, or None where the random parts do not broadcast together."""
    try:
        return numpy_get(array(shape), index)
    except IndexError:
        return None


def test_getitem_agrees_with_numpy() -> None:
    checked = 0
    for seed, shape, index in cases():
        expected = numpy_answer(shape, index)
        if expected is None:
            continue
        actual = make(torch, shape)[for_library(torch, index)]
        assert tuple(actual.shape) == expected.shape, (seed, shape, index)
        assert actual.tolist() == expected.tolist(), (seed, shape, index)
        checked += 1
    assert checked > 300


def test_getitem_on_a_transposed_tensor_agrees_with_numpy() -> None:
    for seed, shape, index in cases():
        reverse = tuple(reversed(shape))
        try:
            expected = numpy_get(array(reverse).T, index)
        except IndexError:
            continue
        source = make(torch, reverse)
        turned = source.permute(*reversed(range(len(shape)))) if shape else source
        assert turned[for_library(torch, index)].tolist() == expected.tolist(), (seed, shape, index)


def test_basic_indexing_gives_views() -> None:
    for seed, shape, index in cases(basic_only=True):
        source = make(torch, shape).clone()
        view = source[for_library(torch, index)]
        assert view._base is source, (seed, shape, index)
        assert view.tolist() == array(shape)[index].tolist(), (seed, shape, index)


def test_setitem_with_a_number_agrees_with_numpy() -> None:
    for seed, shape, index in cases():
        if numpy_answer(shape, index) is None:
            continue
        expected, actual = array(shape), make(torch, shape).clone()
        numpy_set(expected, index, -1.0)
        actual[for_library(torch, index)] = -1.0
        assert actual.tolist() == expected.tolist(), (seed, shape, index)
        assert actual._version == 1, (seed, shape, index)


def test_setitem_with_a_tensor_agrees_with_numpy() -> None:
    """Each place is written with a value that depends on the place only: the order of equal places does not matter."""
    for seed, shape, index in cases():
        selected = numpy_answer(shape, index)
        if selected is None:
            continue
        expected, actual = array(shape), make(torch, shape).clone()
        numpy_set(expected, index, 100 - selected)
        actual[for_library(torch, index)] = torch.tensor((100 - selected).tolist(), dtype=torch.float64).reshape(
            selected.shape
        )
        assert actual.tolist() == expected.tolist(), (seed, shape, index)


def test_setitem_broadcasts_the_value() -> None:
    for seed, shape, index in cases():
        selected = numpy_answer(shape, index)
        if selected is None or selected.ndim == 0:
            continue
        value = numpy.arange(selected.shape[-1], dtype=numpy.float64) + 0.5
        expected, actual = array(shape), make(torch, shape).clone()
        numpy_set(expected, index, value)
        actual[for_library(torch, index)] = torch.tensor(value.tolist(), dtype=torch.float64)
        if _places_are_unique(shape, index):
            assert actual.tolist() == expected.tolist(), (seed, shape, index)


def _places_are_unique(shape: tuple[int, ...], index: tuple[Any, ...]) -> bool:
    places = numpy_get(array(shape), index).reshape(-1).tolist()
    return len(set(places)) == len(places)


def test_gradient_of_getitem_counts_how_often_an_element_is_read() -> None:
    for seed, shape, index in cases():
        selected = numpy_answer(shape, index)
        if selected is None or selected.size == 0:
            continue
        expected = numpy.zeros(shape)
        numpy.add.at(expected.reshape(-1), selected.reshape(-1).astype(int), 1.0)
        source = make(torch, shape).clone().requires_grad_()
        source[for_library(torch, index)].sum().backward()
        assert source.grad.tolist() == expected.tolist(), (seed, shape, index)


def test_gradient_of_setitem() -> None:
    for seed, shape, index in cases():
        selected = numpy_answer(shape, index)
        if selected is None or selected.size == 0 or not _places_are_unique(shape, index):
            continue
        kept = numpy.ones(shape)
        numpy_set(kept, index, 0)
        source = make(torch, shape).clone().requires_grad_()
        value = torch.zeros(selected.shape, dtype=torch.float64, requires_grad=True)
        target = source * 1
        target[for_library(torch, index)] = value
        (target * 2).sum().backward()
        assert source.grad.tolist() == (2 * kept).tolist(), (seed, shape, index)
        assert value.grad.tolist() == numpy.full(selected.shape, 2.0).tolist(), (seed, shape, index)


@pytest.mark.oracle
def test_getitem_layout_is_the_oracles() -> None:
    oracle = _oracle.load()
    for seed, shape, index in cases():
        expected, actual = _attempt(oracle, shape, index), _attempt(torch, shape, index)
        if isinstance(expected, tuple):
            assert actual == expected, (seed, shape, index)
            continue
        assert not isinstance(actual, tuple), (seed, shape, index, actual)
        _oracle.assert_same(actual, expected, where=f"seed {seed}, shape {shape}, index {index}")
        assert actual._is_view() == expected._is_view(), (seed, shape, index)
        if expected._is_view():
            assert actual.storage_offset() == expected.storage_offset(), (seed, shape, index)


@pytest.mark.oracle
def test_wrong_indices_raise_what_the_oracle_raises() -> None:
    oracle = _oracle.load()
    raised = 0
    for seed, shape, index in cases():
        for wrong in (shape[:-1], (*shape, 2), tuple(max(size - 1, 0) for size in shape)):
            expected, actual = _attempt(oracle, wrong, index), _attempt(torch, wrong, index)
            if isinstance(expected, tuple):
                assert actual == expected, (seed, wrong, index)
                raised += 1
            else:
                _oracle.assert_same(actual, expected, where=f"seed {seed}, shape {wrong}, index {index}")
    assert raised > 100


def _attempt(library: Any, shape: tuple[int, ...], index: tuple[Any, ...]) -> Any:
    """The indexed tensor, or type and text of the exception."""
    try:
        return make(library, shape)[for_library(library, index)]
    except (IndexError, RuntimeError, TypeError, ValueError) as error:
        return type(error).__name__, str(error)


# single rules ---------------------------------------------------------------------------------------------------------


def test_bool_and_byte_masks() -> None:
    a = torch.arange(6).view(2, 3)
    mask = torch.tensor([[True, False, True], [False, True, False]])
    assert a[mask].tolist() == [0, 2, 4]
    assert a[:, torch.tensor([True, False, True])].tolist() == [[0, 2], [3, 5]]
    assert a[torch.tensor([False, False])].tolist() == []
    assert tuple(a[torch.tensor([False, False])].shape) == (0, 3)
    a[mask] = torch.tensor([7, 8, 9])
    assert a.tolist() == [[7, 1, 8], [3, 9, 5]]


def test_python_bools_add_a_dimension() -> None:
    a = torch.arange(3)
    assert tuple(a[True].shape) == (1, 3)
    assert tuple(a[False].shape) == (0, 3)
    assert tuple(a[None, True].shape) == (1, 1, 3)
    scalar = torch.tensor(5)
    assert scalar[True].tolist() == [5]
    assert scalar[None].tolist() == [5]
    assert scalar[...].item() == 5
    assert scalar[()].item() == 5


def test_zero_dimensional_integer_tensors_index_like_integers() -> None:
    a = torch.arange(12).view(3, 4)
    one = torch.tensor(1)
    assert a[one].tolist() == [4, 5, 6, 7]
    assert a[one, one].item() == 5
    assert a[one:, one].tolist() == [5, 9]
    assert a[torch.tensor(1, dtype=torch.int32)].tolist() == [4, 5, 6, 7]
    assert a[numpy.int64(2)].tolist() == [8, 9, 10, 11]


def test_numpy_arrays_and_ranges_index() -> None:
    a = torch.arange(12).view(3, 4)
    assert a[numpy.array([0, 2])].tolist() == [[0, 1, 2, 3], [8, 9, 10, 11]]
    assert a[range(2)].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert a[[0, 1], [1, 2]].tolist() == [1, 6]


def test_advanced_indices_apart_go_to_the_front() -> None:
    a = torch.zeros(2, 3, 4, 5)
    index = torch.tensor([0, 1, 1])
    assert tuple(a[:, index, index].shape) == (2, 3, 5)
    assert tuple(a[:, index, :, index].shape) == (3, 2, 4)
    assert tuple(a[index, :, 0].shape) == (3, 3, 5)
    assert tuple(a[0, :, index].shape) == (3, 3, 5)
    assert tuple(a[:, None, index].shape) == (2, 1, 3, 4, 5)


def test_advanced_indexing_copies() -> None:
    a = torch.arange(3.0)
    b = a[[0, 1]]
    b.zero_()
    assert a.tolist() == [0, 1, 2]


def test_repeated_places_accumulate_only_when_asked() -> None:
    a = torch.zeros(3)
    index = torch.tensor([0, 0, 2])
    a.index_put_((index,), torch.ones(3), accumulate=True)
    assert a.tolist() == [2, 0, 1]
    a[index] += 1
    assert a.tolist() == [3, 0, 2]
    assert torch.zeros(3).index_put((index,), torch.ones(3)).tolist() == [1, 0, 1]


def test_assignment_converts_numbers_and_dtypes() -> None:
    a = torch.zeros(3, dtype=torch.int64)
    a[0] = 2.7
    a[1] = True
    a[2] = torch.tensor(3.9)
    assert a.tolist() == [2, 1, 3]
    b = torch.zeros(2, 2)
    b[0] = torch.tensor([1, 2])
    b[:, 1] = torch.tensor(9, dtype=torch.int32)
    assert b.tolist() == [[1, 9], [0, 9]]
    b[...] = 4
    assert b.tolist() == [[4, 4], [4, 4]]
    b[1] = torch.tensor([[5.0, 6.0]])
    assert b.tolist() == [[4, 4], [5, 6]]


def test_assignment_of_itself_and_overlap() -> None:
    a = torch.arange(4.0)
    a[:] = a
    assert a.tolist() == [0, 1, 2, 3]
    a[[0, 1]] = a[[1, 0]]
    assert a.tolist() == [1, 0, 2, 3]


def test_getitem_of_many_dimensions() -> None:
    a = torch.zeros([1] * 10)
    assert tuple(a[0, ..., 0].shape) == (1,) * 8
    assert tuple(a[(0,) * 10].shape) == ()


def test_indexing_on_meta_has_shapes() -> None:
    a = torch.zeros(2, 3, 4, device="meta")
    index = torch.tensor([0, 1], device="meta")
    assert tuple(a[:, index].shape) == (2, 2, 4)
    assert tuple(a[index, :, index].shape) == (2, 3)
    a[0] = 1
    a[:, index] = torch.zeros(2, 2, 4, device="meta")
    assert a._version == 2


def test_negative_indices_wrap_once() -> None:
    a = torch.arange(3)
    assert a[-3].item() == 0
    assert a[torch.tensor([-1, -3])].tolist() == [2, 0]
    with pytest.raises(IndexError):
        a[torch.tensor([-4])]


def test_gather_and_scatter_families() -> None:
    a = torch.arange(6.0).view(2, 3)
    index = torch.tensor([[0, 2], [1, 1]])
    assert a.gather(1, index).tolist() == [[0, 2], [4, 4]]
    assert torch.zeros(2, 3).scatter(1, index, 5.0).tolist() == [[5, 0, 5], [0, 5, 0]]
    assert torch.zeros(2, 3).scatter_add(1, index, torch.ones(2, 2)).tolist() == [[1, 0, 1], [0, 2, 0]]
    assert a.index_select(1, torch.tensor([2, 0, 2])).tolist() == [[2, 0, 2], [5, 3, 5]]
    assert a.masked_fill(a > 2, -1).tolist() == [[0, 1, 2], [-1, -1, -1]]
    assert a.nonzero().tolist() == [[0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    assert [part.tolist() for part in a.nonzero(as_tuple=True)] == [[0, 0, 1, 1, 1], [1, 2, 0, 1, 2]]


def test_scatter_takes_a_source_of_no_dimensions() -> None:
    assert torch.zeros(3).scatter(0, torch.tensor([1]), torch.tensor(2.0)).tolist() == [0.0, 2.0, 0.0]


def test_a_filled_value_counts_each_place_once() -> None:
    value = torch.tensor(2.0, requires_grad=True)
    filled = torch.zeros(3, 2).index_fill(0, torch.tensor([1, 1]), value)
    filled.sum().backward()
    assert type(filled.grad_fn).__name__ == "IndexFillBackward1" and value.grad.item() == 2.0


def test_masks_without_data_can_be_written_through() -> None:
    target = torch.zeros(2, 3, device="meta")
    target[torch.zeros(2, device="meta", dtype=torch.bool)] = torch.zeros(2, 3, device="meta")
    target[torch.zeros(2, 3, device="meta", dtype=torch.bool)] = 1.0
    assert target.shape == (2, 3)


@pytest.mark.parametrize("name", ["float32", "bfloat16", "int64", "bool", "complex64"])
def test_a_mask_is_assigned_the_number_of_a_tensor(name: str) -> None:
    dtype = getattr(torch, name)
    t = torch.tensor([0, 1, 0, 1], dtype=dtype)
    before = t._version
    t[t == 0] = t[1]
    assert t.tolist() == [1, 1, 1, 1] and t._version == before + 1
    rows = torch.zeros(2, 2, dtype=dtype)
    rows[torch.tensor([True, False])] = torch.tensor(1, dtype=dtype)
    assert rows.tolist() == [[1, 1], [0, 0]]


def test_a_mask_assigned_a_recorded_number_has_a_gradient() -> None:
    x = torch.ones(3, requires_grad=True)
    y = torch.zeros(3)
    y[torch.tensor([True, False, True])] = x[1]
    y.sum().backward()
    assert x.grad.tolist() == [0, 2, 0]
