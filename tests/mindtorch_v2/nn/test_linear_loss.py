"""The cross entropy of a linear layer: in pieces it is what it is as a whole."""

from __future__ import annotations

from typing import Any

import pytest

from .._subject import subject as torch


def given(bias: bool) -> tuple[Any, ...]:
    torch.manual_seed(0)
    input = torch.randn(7, 3, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    offset = torch.randn(5, dtype=torch.float64, requires_grad=True) if bias else None
    return input, weight, offset, torch.tensor([0, 4, 2, 2, 1, 3, 0])


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("rows", [1, 2, 7, 100])
def test_pieces_give_the_same_loss_and_gradients(reduction: str, rows: int) -> None:
    input, weight, offset, target = given(bias=True)
    classes = torch.tensor([1.0, 0.5, 2.0, 0.25, 1.5], dtype=torch.float64)
    found = []
    for options in (None, torch.nn.LinearCrossEntropyOptions(batch_chunk_size=rows)):
        loss = torch.nn.functional.linear_cross_entropy(
            input,
            weight,
            target,
            linear_bias=offset,
            weight=classes,
            reduction=reduction,
            ignore_index=2,
            options=options,
        )
        found.append((loss, *torch.autograd.grad(loss.sum(), (input, weight, offset))))
    for whole, pieces in zip(*found):
        assert torch.allclose(pieces, whole)


@pytest.mark.parametrize(
    "fields",
    [{"acc_policy": "fast"}, {"chunking_method": "aspect_ratio:0"}, {"batch_chunk_size": 0}, {"acc_dtype": "float32"}],
)
def test_options_are_checked(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(fields))):
        torch.nn.LinearCrossEntropyOptions(**fields)


def test_two_ways_to_choose_the_rows_must_agree() -> None:
    input, weight, _, target = given(bias=False)
    options = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=3, chunking_method="aspect_ratio")
    with pytest.raises(ValueError, match="give different chunk sizes"):
        torch.nn.functional.linear_cross_entropy(input, weight, target, options=options)


def test_options_that_cannot_be_followed_are_told() -> None:
    input, weight, _, target = given(bias=False)
    options = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=2)
    with pytest.warns(UserWarning, match="``options`` ignored"):
        torch.nn.functional.linear_cross_entropy(input, weight, target, label_smoothing=0.1, options=options)


def test_where_options_are() -> None:
    module = torch.nn.modules.linear_cross_entropy_options
    assert module.__all__ == ["LinearCrossEntropyOptions"]
    assert module.LinearCrossEntropyOptions is torch.nn.LinearCrossEntropyOptions
    assert torch.nn.LinearCrossEntropyOptions.__module__.endswith(".nn.modules.linear_cross_entropy_options")
    assert not hasattr(torch.nn.functional, "LinearCrossEntropyOptions")


def test_layer() -> None:
    loss = torch.nn.LinearCrossEntropyLoss(3, 5, out_features=(2,), bias=True)
    assert [tuple(p.shape) for p in loss.parameters()] == [(10, 3), (10,)]
    assert loss(torch.randn(4, 3), torch.tensor([[0, 1], [2, 3], [4, 0], [1, 2]])).shape == ()
