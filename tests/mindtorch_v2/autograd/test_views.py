"""View operators: shared memory, strides and offsets, gradients, and the rules for later writes.

Invariant: every view is checked for its elements by address: element [i, j, ...] of the view is the base's element that
`numpy` finds under the same expression.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

from .._subject import subject as torch
from .._subject import submodule

autograd: Any = submodule("autograd")


def base() -> Any:
    return torch.arange(24, dtype=torch.float64).view(2, 3, 4)


# expression, shape, strides, offset
VIEWS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...], tuple[int, ...], int]] = {
    "view": (lambda t: t.view(6, 4), (6, 4), (4, 1), 0),
    "view_minus_one": (lambda t: t.view(-1, 2), (12, 2), (2, 1), 0),
    "view_tuple": (lambda t: t.view((4, 6)), (4, 6), (6, 1), 0),
    "view_size_one": (lambda t: t.view(2, 1, 12), (2, 1, 12), (12, 12, 1), 0),
    "view_of_step": (lambda t: t[:, :, ::2].view(2, 3, 2, 1), (2, 3, 2, 1), (12, 4, 2, 2), 0),
    "reshape": (lambda t: t.reshape(8, 3), (8, 3), (3, 1), 0),
    "transpose": (lambda t: t.transpose(0, 2), (4, 3, 2), (1, 4, 12), 0),
    "transpose_negative": (lambda t: t.transpose(-1, -2), (2, 4, 3), (12, 1, 4), 0),
    "swapaxes": (lambda t: t.swapaxes(0, 1), (3, 2, 4), (4, 12, 1), 0),
    "swapdims": (lambda t: t.swapdims(0, 1), (3, 2, 4), (4, 12, 1), 0),
    "permute": (lambda t: t.permute(2, 0, 1), (4, 2, 3), (1, 12, 4), 0),
    "permute_tuple": (lambda t: t.permute((1, -1, 0)), (3, 4, 2), (4, 1, 12), 0),
    "movedim": (lambda t: t.movedim(0, -1), (3, 4, 2), (4, 1, 12), 0),
    "movedim_many": (lambda t: t.movedim((0, 1), (2, 0)), (3, 4, 2), (4, 1, 12), 0),
    "moveaxis": (lambda t: t.moveaxis(2, 0), (4, 2, 3), (1, 12, 4), 0),
    "mT": (lambda t: t.mT, (2, 4, 3), (12, 1, 4), 0),
    "T": (lambda t: t[0].T, (4, 3), (1, 4), 0),
    "H": (lambda t: t[0].H, (4, 3), (1, 4), 0),
    "t": (lambda t: t[1].t(), (4, 3), (1, 4), 12),
    "t_vector": (lambda t: t[1, 0].t(), (4,), (1,), 12),
    "select": (lambda t: t.select(1, 2), (2, 4), (12, 1), 8),
    "select_negative": (lambda t: t.select(-1, -1), (2, 3), (12, 4), 3),
    "narrow": (lambda t: t.narrow(2, 1, 2), (2, 3, 2), (12, 4, 1), 1),
    "narrow_negative_start": (lambda t: t.narrow(2, -2, 2), (2, 3, 2), (12, 4, 1), 2),
    "int": (lambda t: t[1], (3, 4), (4, 1), 12),
    "negative_int": (lambda t: t[-1, -2], (4,), (1,), 16),
    "slice": (lambda t: t[:, 1:], (2, 2, 4), (12, 4, 1), 4),
    "slice_step": (lambda t: t[:, ::2, 1::2], (2, 2, 2), (12, 8, 2), 1),
    "slice_clamped": (lambda t: t[:, 1:100, -100:2], (2, 2, 2), (12, 4, 1), 4),
    "slice_empty": (lambda t: t[:, 2:1], (2, 0, 4), (12, 4, 1), 8),
    "none": (lambda t: t[:, None], (2, 1, 3, 4), (12, 12, 4, 1), 0),
    "ellipsis": (lambda t: t[..., 1], (2, 3), (12, 4), 1),
    "unsqueeze": (lambda t: t.unsqueeze(-1), (2, 3, 4, 1), (12, 4, 1, 1), 0),
    "unsqueeze_front": (lambda t: t.unsqueeze(0), (1, 2, 3, 4), (24, 12, 4, 1), 0),
    "squeeze": (lambda t: t[:1].squeeze(), (3, 4), (4, 1), 0),
    "squeeze_dim": (lambda t: t[:1, :1].squeeze(0), (1, 4), (4, 1), 0),
    "squeeze_dims": (lambda t: t[:1, :1].squeeze((0, 1)), (4,), (1,), 0),
    "squeeze_not_one": (lambda t: t.squeeze(0), (2, 3, 4), (12, 4, 1), 0),
    "expand": (lambda t: t[:, :1].expand(2, 5, 4), (2, 5, 4), (12, 0, 1), 0),
    "expand_new": (lambda t: t[0, 0].expand(3, -1), (3, 4), (0, 1), 0),
    "expand_as": (lambda t: t[:1].expand_as(t), (2, 3, 4), (0, 4, 1), 0),
    "broadcast_to": (lambda t: torch.broadcast_to(t[0], (5, 3, 4)), (5, 3, 4), (0, 4, 1), 0),
    "diagonal": (lambda t: t.diagonal(dim1=1, dim2=2), (2, 3), (12, 5), 0),
    "diagonal_offset": (lambda t: t.diagonal(1, 1, 2), (2, 3), (12, 5), 1),
    "diagonal_negative": (lambda t: t.diagonal(-1, 1, 2), (2, 2), (12, 5), 4),
    "as_strided": (lambda t: t.as_strided((2, 2), (5, 3), 2), (2, 2), (5, 3), 2),
    "as_strided_keeps_offset": (lambda t: t[1].as_strided((2,), (1,)), (2,), (1,), 12),
    "unfold": (lambda t: t.unfold(2, 3, 1), (2, 3, 2, 3), (12, 4, 1, 1), 0),
    "unfold_step": (lambda t: t.unfold(1, 2, 1), (2, 2, 4, 2), (12, 4, 1, 4), 0),
    "flatten": (lambda t: t.flatten(), (24,), (1,), 0),
    "flatten_part": (lambda t: t.flatten(1), (2, 12), (12, 1), 0),
    "ravel": (lambda t: t.ravel(), (24,), (1,), 0),
    "unflatten": (lambda t: t.unflatten(2, (2, -1)), (2, 3, 2, 2), (12, 4, 2, 1), 0),
    "split": (lambda t: t.split(2, 1)[1], (2, 1, 4), (12, 4, 1), 8),
    "split_sizes": (lambda t: t.split([1, 3], 2)[1], (2, 3, 3), (12, 4, 1), 1),
    "split_with_sizes": (lambda t: t.split_with_sizes([1, 1], 0)[1], (1, 3, 4), (12, 4, 1), 12),
    "chunk": (lambda t: t.chunk(3, 2)[1], (2, 3, 2), (12, 4, 1), 2),
    "tensor_split": (lambda t: t.tensor_split(3, 2)[1], (2, 3, 1), (12, 4, 1), 2),
    "unbind": (lambda t: t.unbind(2)[3], (2, 3), (12, 4), 3),
    "view_as": (lambda t: t.view_as(torch.zeros(4, 6)), (4, 6), (6, 1), 0),
    "detach": (lambda t: t.detach(), (2, 3, 4), (12, 4, 1), 0),
    "alias": (lambda t: t[:], (2, 3, 4), (12, 4, 1), 0),
    "ellipsis_only": (lambda t: t[...], (2, 3, 4), (12, 4, 1), 0),
    "empty_tuple": (lambda t: t[()], (2, 3, 4), (12, 4, 1), 0),
    "adjoint": (lambda t: t.adjoint(), (2, 4, 3), (12, 1, 4), 0),
    "real": (lambda t: t.real, (2, 3, 4), (12, 4, 1), 0),
}

LATER = frozenset({"tensor_split", "adjoint", "H"})


def known(name: str) -> bool:
    """Names outside the first hundred operators are tested as soon as the library has them."""
    return name not in LATER or hasattr(torch.Tensor, name)


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("name", [name for name in VIEWS if known(name)])
def test_view_layout(name: str, device: str) -> None:
    expression, shape, stride, offset = VIEWS[name]
    source = base().to(device)
    view = expression(source)
    assert (tuple(view.shape), tuple(view.stride()), view.storage_offset()) == (shape, stride, offset)
    assert view.dtype == source.dtype and view.device == source.device
    assert view.untyped_storage().data_ptr() == source.untyped_storage().data_ptr()


@pytest.mark.parametrize("name", [name for name in VIEWS if known(name)])
def test_view_elements_are_those_of_the_base(name: str) -> None:
    expression, shape, stride, offset = VIEWS[name]
    source = base()
    memory = numpy.arange(24.0)
    expected = numpy.lib.stride_tricks.as_strided(memory[offset:], shape, [8 * step for step in stride])
    view = expression(source)
    assert view.tolist() == expected.tolist()
    assert view.data_ptr() == source.data_ptr() + 8 * offset or 0 in shape
    source.mul_(2)
    assert view.tolist() == (2 * expected).tolist()


@pytest.mark.parametrize("name", [name for name in VIEWS if known(name) and name not in ("detach",)])
def test_gradient_of_a_view(name: str) -> None:
    expression, shape, stride, offset = VIEWS[name]
    source = base().requires_grad_()
    # The weight is only used for its numbers; the expected gradient is counted by address.
    count = int(numpy.prod(shape))
    weight = torch.arange(1, count + 1, dtype=torch.float64).view(shape)
    (expression(source * 1) * weight).sum().backward()
    expected = numpy.zeros(24)
    if count:
        addresses = numpy.lib.stride_tricks.as_strided(numpy.arange(24)[offset:], shape, [8 * step for step in stride])
        numpy.add.at(expected, addresses.reshape(-1), numpy.arange(1, count + 1))
    assert source.grad.reshape(-1).tolist() == expected.tolist()


def test_reshape_copies_when_it_must() -> None:
    source = base()
    copied = source.transpose(0, 1).reshape(-1)
    assert copied.data_ptr() != source.data_ptr()
    assert copied._base is None or copied._base is not source
    source.zero_()
    assert copied.sum().item() == 276


def test_reshape_of_same_shape_is_a_view() -> None:
    source = base()
    assert source.reshape(2, 3, 4).data_ptr() == source.data_ptr()
    assert source.reshape(2, 3, 4) is not source


def test_contiguous_returns_itself_or_a_copy() -> None:
    source = base()
    assert source.contiguous() is source
    turned = source.transpose(0, 1)
    assert not turned.is_contiguous()
    assert turned.contiguous().stride() == (8, 4, 1)
    assert turned.contiguous().data_ptr() != source.data_ptr()


def test_view_between_dtypes() -> None:
    source = torch.tensor([1.0, 2.0], dtype=torch.float64)
    assert source.view(torch.int64).tolist() == [4607182418800017408, 4611686018427387904]
    assert tuple(source.view(torch.uint8).shape) == (16,)
    assert tuple(source.view(torch.float32).shape) == (4,)
    assert source.view(torch.uint8).view(torch.float64).tolist() == [1, 2]
    assert source.view(torch.int64).data_ptr() == source.data_ptr()


def test_complex_views() -> None:
    source = torch.tensor([1 + 2j, 3 - 4j], dtype=torch.complex128)
    pair = torch.view_as_real(source)
    assert pair.tolist() == [[1, 2], [3, -4]]
    assert pair.data_ptr() == source.data_ptr()
    assert torch.view_as_complex(pair).tolist() == source.tolist()
    assert source.real.tolist() == [1, 3]
    assert source.imag.tolist() == [2, -4]
    source.imag.zero_()
    assert source.tolist() == [1, 3]
    assert source._version == 1


def test_multi_output_views_cover_the_base() -> None:
    source = base()
    for parts in (source.split(1), source.chunk(2), source.unbind(), torch.split(source, [1, 1])):
        assert isinstance(parts, tuple)
        assert sum(part.numel() for part in parts) == 24
        assert all(part._base is source._base for part in parts)


def test_multi_output_views_may_be_written_without_grad() -> None:
    source = base()
    source.unbind()[1].zero_()
    assert source.sum().item() == 66
    assert source._version == 1


def test_chunk_and_split_sizes() -> None:
    source = torch.arange(7)
    assert [part.numel() for part in source.chunk(3)] == [3, 3, 1]
    assert [part.numel() for part in source.chunk(10)] == [1] * 7
    assert [part.numel() for part in source.split(3)] == [3, 3, 1]
    assert [part.numel() for part in source.split(10)] == [7]
    assert [part.tolist() for part in source.split([2, 0, 5])] == [[0, 1], [], [2, 3, 4, 5, 6]]


def test_view_of_view_gradient_after_write_in_the_middle() -> None:
    a = base().requires_grad_()
    b = a * 1
    middle = b[:, 1:]
    inner = middle.transpose(0, 1)[0]
    middle.mul_(3)
    inner.sum().backward()
    expected = numpy.zeros((2, 3, 4))
    expected[:, 1] = 3
    assert a.grad.tolist() == expected.tolist()


def test_view_before_requires_grad() -> None:
    a = torch.ones(3)
    view = a[:2]
    a.requires_grad_()
    # A view asks its base.
    assert view.requires_grad
    (a * 2).sum().backward()
    assert a.grad.tolist() == [2, 2, 2]


def test_view_made_in_no_grad_of_a_leaf() -> None:
    a = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        view = a[:2]
    # A view asks its base, but it has no history of its own.
    assert view.requires_grad
    assert view.grad_fn is None
    assert view._base is a
    with torch.no_grad():
        view.zero_()
    assert a.tolist() == [0, 0, 1]


def test_view_of_a_detached_tensor_shares_memory_not_history() -> None:
    a = torch.ones(3, requires_grad=True)
    b = a * 1
    view = b.detach()[1:]
    view.zero_()
    assert b.tolist() == [1, 0, 0]
    assert b._version == 1
    b.sum().backward()
    assert a.grad.tolist() == [1, 1, 1]


def test_requires_grad_of_a_view_cannot_be_unset() -> None:
    a = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
        a[:2].requires_grad = False


def test_channels_last_views() -> None:
    image = torch.arange(24.0).view(1, 2, 3, 4).contiguous(memory_format=torch.channels_last)
    assert image.stride() == (24, 1, 8, 2)
    assert image.is_contiguous(memory_format=torch.channels_last)
    assert not image.is_contiguous()
    assert (image + 1).stride() == (24, 1, 8, 2)
    assert image.clone().stride() == (24, 1, 8, 2)
    assert image.clone(memory_format=torch.contiguous_format).stride() == (24, 12, 4, 1)
    assert torch.empty_like(image).stride() == (24, 1, 8, 2)


def test_preserve_format_of_clones() -> None:
    source = base()
    assert source.permute(2, 0, 1).clone().stride() == (1, 12, 4)
    assert source[:, ::2].clone().stride() == (8, 4, 1)
    assert source[:, :1].expand(2, 3, 4).clone().stride() == (12, 4, 1)
    assert torch.zeros_like(source.permute(2, 0, 1)).stride() == (1, 12, 4)


def test_zero_dimensional_and_empty_views() -> None:
    scalar = torch.tensor(3.0)
    assert tuple(scalar.view(1, 1).shape) == (1, 1)
    assert tuple(scalar.view(-1).shape) == (1,)
    assert tuple(scalar.expand(2).stride()) == (0,)
    empty = torch.zeros(0, 3)
    assert tuple(empty.view(3, 0).shape) == (3, 0)
    assert tuple(empty.t().shape) == (3, 0)
    assert empty.unbind() == ()
    assert [tuple(part.shape) for part in empty.split(2)] == [(0, 3)]


@pytest.mark.parametrize(
    "expression",
    [
        lambda x: x.unfold(0, 2, 1),
        lambda x: x.as_strided((2, 3), (1, 1)),
        lambda x: x.expand(3, 4),
        lambda x: x.view(2, 2).t().diagonal(),
    ],
)
def test_gradcheck_of_views_that_repeat_elements(expression: Callable[[Any], Any]) -> None:
    x = torch.tensor([0.5, 1.5, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
    assert autograd.gradcheck(lambda t: expression(t * t), (x,))
    assert autograd.gradgradcheck(lambda t: expression(t * t), (x,))


def test_an_empty_view_may_begin_beyond_its_memory() -> None:
    view = torch.zeros(0, 2).narrow(1, 1, 1)
    assert view.storage_offset() == 1
    assert torch.nn.functional.layer_norm(view, (1,)).shape == (0, 1)
    assert view.softmax(1).shape == (0, 1) and view.sum().item() == 0.0
