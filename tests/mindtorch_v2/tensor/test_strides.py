"""Geometry of strided memory, and the memory formats of tensors that have no elements."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._strides import (
    channels_last_strides,
    contiguous_strides,
    extent,
    format_of,
    may_overlap,
    strides_contiguous,
    strides_dense,
    strides_match,
    view_strides,
)

Ints = tuple[int, ...]


@pytest.mark.parametrize(
    ("shape", "stride"),
    [((), ()), ((5,), (1,)), ((0,), (1,)), ((2, 3), (3, 1)), ((2, 0, 4), (4, 4, 1)), ((2, 3, 4), (12, 4, 1))],
)
def test_row_major(shape: Ints, stride: Ints) -> None:
    assert contiguous_strides(shape) == stride
    assert strides_contiguous(shape, stride) and strides_dense(shape, stride)


def test_dense_without_being_contiguous() -> None:
    assert strides_dense((2, 3), (1, 2)) and not strides_contiguous((2, 3), (1, 2))
    assert not strides_dense((2, 3), (4, 1))
    assert not strides_dense((2, 3), (0, 1))


def test_extent_counts_from_the_first_element() -> None:
    assert extent((), ()) == 1
    assert extent((2, 3), (10, 2)) == 15
    assert extent((2, 0), (10, 2)) == 0


def test_overlap() -> None:
    assert may_overlap((2, 3), (1, 1)) and may_overlap((2,), (0,))
    assert not may_overlap((2, 3), (3, 1)) and not may_overlap((2, 0), (0, 0))


def test_views_need_dimensions_that_move_as_one() -> None:
    assert view_strides((2, 3), (3, 1), (6,), 6) == (1,)
    assert view_strides((2, 3), (1, 2), (6,), 6) is None
    assert view_strides((2, 3), (4, 1), (2, 3, 1), 6) == (4, 1, 1)


def test_channels_last() -> None:
    shape, stride = (2, 3, 4, 5), (60, 1, 15, 3)
    assert channels_last_strides(shape, 2) == stride
    assert strides_match(shape, stride, channels_last_strides(shape, 2))
    assert format_of(shape, stride) is torch.channels_last and format_of(shape, contiguous_strides(shape)) is None
    with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
        channels_last_strides((2, 3), 2)


# PyTorch's answers: unlike in row-major strides, a size of 0 counts as it is.
@pytest.mark.parametrize(
    ("shape", "stride"),
    [
        ((2, 0, 3, 4), (0, 1, 0, 0)),
        ((0, 2, 3, 4), (24, 1, 8, 2)),
        ((2, 3, 0, 4), (0, 1, 12, 3)),
        ((2, 3, 4, 0), (0, 1, 0, 3)),
        ((2, 1, 3, 0), (0, 1, 0, 1)),
    ],
)
def test_channels_last_without_elements(shape: Ints, stride: Ints) -> None:
    form = torch.channels_last
    plain = torch.empty(shape)
    for made in (torch.empty(shape, memory_format=form), plain.contiguous(memory_format=form)):
        assert made.stride() == stride
        assert made.is_contiguous() and made.is_contiguous(memory_format=form)
        assert made.contiguous(memory_format=form) is made
        assert torch.empty_like(made).stride() == stride
    assert not plain.is_contiguous(memory_format=form)
