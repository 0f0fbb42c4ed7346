"""Gradients by sample: `torch.nn.utils._expanded_weights` and `call_for_per_sample_grads`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .. import _oracle
from .._subject import subject as torch
from .._subject import submodule

MODELS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "linear": (lambda nn: nn.Linear(3, 2), lambda lib: lib.randn(4, 5, 3)),
    "conv1d": (lambda nn: nn.Conv1d(2, 4, 3, padding=1, groups=2), lambda lib: lib.randn(4, 2, 6)),
    "conv2d": (lambda nn: nn.Conv2d(2, 3, 3, stride=2, dilation=2), lambda lib: lib.randn(3, 2, 9, 8)),
    "conv3d": (lambda nn: nn.Conv3d(2, 3, 2, padding="same"), lambda lib: lib.randn(2, 2, 4, 3, 4)),
    "norms": (
        lambda nn: nn.Sequential(
            nn.Conv2d(2, 4, 3),
            nn.GroupNorm(2, 4),
            nn.InstanceNorm2d(4, affine=True),
            nn.LayerNorm([4, 4]),
            nn.Flatten(),
            nn.Linear(64, 2),
        ),
        lambda lib: lib.randn(3, 2, 6, 6),
    ),
    "embedding": (
        lambda nn: nn.Sequential(nn.Embedding(7, 3, padding_idx=2, max_norm=1.0), nn.Linear(3, 2)),
        lambda lib: lib.randint(0, 7, (4, 5)),
    ),
    "gru": (lambda nn: nn.GRU(3, 4, 2, batch_first=True, bidirectional=True), lambda lib: lib.randn(3, 5, 3)),
    "lstm": (lambda nn: nn.LSTM(3, 4, proj_size=2, batch_first=True), lambda lib: lib.randn(3, 5, 3)),
}


def _out(found: Any) -> Any:
    return found[0] if isinstance(found, tuple) else found


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("name", list(MODELS))
def test_each_sample_alone_gives_its_gradient(name: str, reduction: str) -> None:
    made, given = MODELS[name]
    call = submodule("nn.utils._per_sample_grad").call_for_per_sample_grads
    torch.manual_seed(0)
    model, x = made(torch.nn).double(), given(torch)
    x = x.double().requires_grad_() if x.is_floating_point() else x
    loss = getattr(torch, reduction)
    loss(_out(call(model, loss_reduction=reduction)(x)).sin()).backward()
    got = [p.grad_sample for p in model.parameters()]
    assert all(p.grad is None for p in model.parameters())
    alone = []
    for i in range(x.shape[0]):
        one = loss(_out(model(x[i : i + 1].detach())).sin())
        alone.append(torch.autograd.grad(one, list(model.parameters())))
    for mine, parts in zip(got, zip(*alone)):
        torch.testing.assert_close(mine, torch.stack(parts))
    if reduction == "sum" and x.is_floating_point():
        again = x.detach().requires_grad_()
        _out(model(again)).sin().sum().backward()
        torch.testing.assert_close(x.grad, again.grad)


def test_packed_sequences_have_lengths_of_their_own() -> None:
    call = submodule("nn.utils._per_sample_grad").call_for_per_sample_grads
    model = torch.nn.LSTM(3, 4, bidirectional=True).double()
    rows = [torch.randn(n, 3, dtype=torch.float64) for n in (5, 3, 3)]
    packed = torch.nn.utils.rnn.pack_sequence(rows)
    call(model, batch_size=3)(packed)[0].data.sin().sum().backward()
    alone = [torch.autograd.grad(model(row.unsqueeze(1))[0].sin().sum(), list(model.parameters())) for row in rows]
    for p, parts in zip(model.parameters(), zip(*alone)):
        torch.testing.assert_close(p.grad_sample, torch.stack(parts))


def _refusals(library: Any) -> list[str]:
    import importlib

    utils = f"{library.__name__}.nn.utils"
    call = importlib.import_module(f"{utils}._per_sample_grad").call_for_per_sample_grads
    expanded = importlib.import_module(f"{utils}._expanded_weights").ExpandedWeight
    nn = library.nn
    x = library.ones(3, 4)

    def weight(size: int = 3, reduction: str = "sum") -> Any:
        return expanded(library.ones(5, 4, requires_grad=True), size, reduction)

    tries: list[Callable[[], Any]] = [
        lambda: library.add(x, weight()),
        lambda: nn.functional.linear(x, weight(2)),
        lambda: nn.functional.linear(library.ones(4), weight()),
        lambda: nn.functional.linear(x, weight(), expanded(library.ones(5, requires_grad=True), 3, "mean")),
        lambda: nn.functional.embedding(library.tensor([1, 2, 0]), weight()),
        lambda: nn.functional.linear(weight(), library.ones(5, 4)),
        lambda: expanded(3, 3, "sum"),
        lambda: expanded(library.ones(2), 3, "sum"),
        lambda: call("fail"),
        lambda: call(nn.Linear(4, 4), batch_size=6.4),
        lambda: call(nn.Linear(4, 4), batch_size=-6),
        lambda: call(nn.Linear(4, 4), loss_reduction=""),
        lambda: call(nn.Bilinear(4, 4, 2))(x, library.ones(2, 4)),
        lambda: call(nn.Linear(4, 4))(3),
    ]
    said = []
    for attempt in tries:
        with pytest.raises(RuntimeError) as caught:
            attempt()
        said.append(str(caught.value))
    return said


@pytest.mark.oracle
def test_refusals_are_pytorchs() -> None:
    assert _refusals(torch) == _refusals(_oracle.load())
