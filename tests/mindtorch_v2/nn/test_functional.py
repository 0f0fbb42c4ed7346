"""Layers and functions: values and gradients against PyTorch, and the arguments that are completed in Python."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from .._oracle import assert_same, from_oracle
from .._subject import subject as torch
from .._subject import submodule

nn = submodule("nn")
F = submodule("nn.functional")

INPUTS: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "rows": lambda t: (t.randn(5, 4, requires_grad=True),),
    "cube": lambda t: (t.randn(2, 3, 4, requires_grad=True),),
    "linear": lambda t: (
        t.randn(5, 4, requires_grad=True),
        t.randn(3, 4, requires_grad=True),
        t.randn(3, requires_grad=True),
    ),
    "norm": lambda t: (
        t.randn(5, 4, requires_grad=True),
        t.randn(4, requires_grad=True),
        t.randn(4, requires_grad=True),
    ),
    "table": lambda t: (t.randn(6, 3, requires_grad=True), t.tensor([[0, 5, 2], [2, 2, 1]])),
    "classes": lambda t: (t.randn(5, 4, requires_grad=True), t.tensor([0, 3, 1, 2, 3])),
    "classes with holes": lambda t: (t.randn(5, 4, requires_grad=True), t.tensor([0, -100, 1, 2, -100])),
    "pixels": lambda t: (t.randn(2, 4, 3, requires_grad=True), t.tensor([[0, 3, 1], [2, 2, 0]])),
    "pair": lambda t: (t.randn(5, 4, requires_grad=True), t.randn(5, 4, requires_grad=True)),
}

CALLS: list[tuple[str, str, Callable[..., Any]]] = [
    ("relu", "rows", lambda f, t, x: f.relu(x)),
    ("gelu", "rows", lambda f, t, x: f.gelu(x)),
    ("gelu tanh", "rows", lambda f, t, x: f.gelu(x, approximate="tanh")),
    ("silu", "rows", lambda f, t, x: f.silu(x)),
    ("sigmoid", "rows", lambda f, t, x: f.sigmoid(x)),
    ("tanh", "rows", lambda f, t, x: f.tanh(x)),
    ("softmax", "cube", lambda f, t, x: f.softmax(x, 1)),
    ("softmax last", "cube", lambda f, t, x: f.softmax(x, dim=-1)),
    ("softmax dtype", "cube", lambda f, t, x: f.softmax(x, dim=0, dtype=t.float64)),
    ("log_softmax", "cube", lambda f, t, x: f.log_softmax(x, -1)),
    ("log_softmax dtype", "cube", lambda f, t, x: f.log_softmax(x, 1, dtype=t.float64)),
    ("linear", "linear", lambda f, t, x, w, b: f.linear(x, w, b)),
    ("linear without bias", "linear", lambda f, t, x, w, b: f.linear(x, w)),
    ("linear of a vector", "linear", lambda f, t, x, w, b: f.linear(x[0], w, b)),
    ("layer_norm", "norm", lambda f, t, x, w, b: f.layer_norm(x, (4,), w, b)),
    ("layer_norm eps", "norm", lambda f, t, x, w, b: f.layer_norm(x, [4], w, None, 0.1)),
    ("layer_norm two dims", "cube", lambda f, t, x: f.layer_norm(x, (3, 4))),
    ("embedding", "table", lambda f, t, w, i: f.embedding(i, w)),
    ("embedding padding", "table", lambda f, t, w, i: f.embedding(i, w, padding_idx=-4)),
    ("embedding by frequency", "table", lambda f, t, w, i: f.embedding(i, w, scale_grad_by_freq=True)),
    *[
        (
            f"{name} {reduction} on {inputs}",
            inputs,
            lambda f, t, x, y, n=name, r=reduction: getattr(f, n)(x, y, reduction=r),
        )
        for name, kinds in (
            ("nll_loss", ("classes", "classes with holes", "pixels")),
            ("cross_entropy", ("classes", "classes with holes", "pixels")),
            ("mse_loss", ("pair",)),
        )
        for inputs in kinds
        for reduction in ("mean", "sum", "none")
    ],
    ("cross_entropy weight", "classes", lambda f, t, x, y: f.cross_entropy(x, y, weight=t.arange(4.0) + 1)),
    ("cross_entropy smooth", "classes", lambda f, t, x, y: f.cross_entropy(x, y, label_smoothing=0.2)),
    ("cross_entropy ignore", "classes", lambda f, t, x, y: f.cross_entropy(x, y, ignore_index=3)),
    ("cross_entropy probabilities", "pair", lambda f, t, x, y: f.cross_entropy(x, y.softmax(1))),
    ("nll_loss weight", "classes", lambda f, t, x, y: f.nll_loss(x, y, weight=t.arange(4.0) + 1)),
    ("mse_loss weight", "pair", lambda f, t, x, y: f.mse_loss(x, y, weight=t.ones(5, 4) * 2)),
]


@pytest.mark.parametrize(("inputs", "call"), [c[1:] for c in CALLS], ids=[c[0] for c in CALLS])
def test_values_and_gradients(oracle: ModuleType, inputs: str, call: Callable[..., Any]) -> None:
    oracle.manual_seed(3)
    theirs = INPUTS[inputs](oracle)
    ours = tuple(from_oracle(value) for value in theirs)
    expected = call(oracle.nn.functional, oracle, *theirs)
    actual = call(F, torch, *ours)
    assert_same(actual, expected, rtol=2e-5, atol=2e-6)
    seed = oracle.randn_like(expected)
    expected.backward(seed)
    actual.backward(from_oracle(seed))
    for mine, reference in zip(ours, theirs):
        assert (mine.grad is None) == (reference.grad is None)
        if reference.grad is not None:
            assert_same(mine.grad, reference.grad, rtol=2e-5, atol=2e-6, stride=False)


def test_layers_call_their_function(oracle: ModuleType) -> None:
    layers: list[tuple[Callable[[Any], Any], Any]] = [
        (lambda n: n.Linear(4, 3), oracle.randn(2, 4)),
        (lambda n: n.LayerNorm(4), oracle.randn(2, 4)),
        (lambda n: n.LayerNorm((3, 4), bias=False), oracle.randn(2, 3, 4)),
        (lambda n: n.Embedding(5, 3, padding_idx=1), oracle.tensor([0, 1, 4])),
        (lambda n: n.Identity(3, x=4), oracle.randn(2)),
        (lambda n: n.Flatten(), oracle.randn(2, 3, 4)),
        (lambda n: n.Unflatten(1, (2, 2)), oracle.randn(3, 4)),
        *[(lambda n, k=k: getattr(n, k)(), oracle.randn(2, 3)) for k in ("ReLU", "Sigmoid", "Tanh", "GELU", "SiLU")],
        (lambda n: n.Softmax(dim=1), oracle.randn(2, 3)),
        (lambda n: n.LogSoftmax(dim=0), oracle.randn(2, 3)),
    ]
    for make, x in layers:
        theirs, ours = make(oracle.nn), make(nn)
        ours.load_state_dict({key: from_oracle(value) for key, value in theirs.state_dict().items()})
        assert repr(ours) == repr(theirs)
        assert_same(ours(from_oracle(x)), theirs(x), rtol=1e-5, atol=1e-6, where=repr(theirs))
    target = oracle.tensor([1, 0])
    for name in ("CrossEntropyLoss", "NLLLoss"):
        x = oracle.randn(2, 3)
        expected = getattr(oracle.nn, name)(weight=oracle.ones(3) * 2, reduction="sum")(x, target)
        actual = getattr(nn, name)(weight=torch.ones(3) * 2, reduction="sum")(from_oracle(x), from_oracle(target))
        assert_same(actual, expected, rtol=1e-5)
    x, y = oracle.randn(2, 3), oracle.randn(2, 3)
    assert_same(nn.MSELoss()(from_oracle(x), from_oracle(y)), oracle.nn.MSELoss()(x, y), rtol=1e-5)


def test_in_place_forms() -> None:
    x = torch.tensor([-1.0, 2.0])
    assert F.relu(x, inplace=True) is x and x.tolist() == [0.0, 2.0]
    y = torch.tensor([0.0, 2.0])
    assert nn.SiLU(inplace=True)(y) is y and y[0].item() == 0.0


def test_dropout() -> None:
    layer = nn.Dropout(0.25)
    assert repr(layer) == "Dropout(p=0.25, inplace=False)"
    x = torch.ones(1000, requires_grad=True)
    torch.manual_seed(0)
    y = layer(x)
    kept = y > 0
    assert 650 < kept.sum().item() < 850
    assert torch.allclose(y[kept], torch.full((int(kept.sum()),), 1 / 0.75))
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())
    assert torch.equal(layer.eval()(x), x)
    with torch.no_grad():
        z = torch.ones(4)
        assert nn.Dropout(1.0, inplace=True)(z) is z and z.tolist() == [0.0] * 4
    for p in (-0.1, 1.5):
        with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1"):
            nn.Dropout(p)


def test_implicit_softmax_dimension() -> None:
    for shape, dim in (((3,), 0), ((2, 3), 1), ((2, 3, 4), 0)):
        x = torch.arange(24.0)[: torch.ones(shape).numel()].reshape(shape)
        with pytest.warns(UserWarning, match="Implicit dimension choice for softmax has been deprecated"):
            assert torch.equal(F.softmax(x), F.softmax(x, dim))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: F.mse_loss(torch.ones(2), torch.ones(2), reduction="no"), ValueError, "no is not a valid value for"),
        (lambda: F.embedding(torch.tensor([0]), torch.ones(2, 2), padding_idx=2), AssertionError, "Padding_idx must"),
        (lambda: nn.Embedding(2, 2, padding_idx=2), AssertionError, "Padding_idx must be within num_embeddings"),
        (lambda: nn.Unflatten(1, 3), TypeError, "unflattened_size must be a tuple of ints, but found type int"),
        (lambda: nn.Unflatten(1, (3, "x")), TypeError, "but found element of type str at pos 1"),
        (lambda: nn.init.xavier_uniform_(torch.ones(2)), ValueError, "Fan in and fan out can not be computed for"),
        (lambda: nn.init.calculate_gain("nope"), ValueError, "Unsupported nonlinearity nope"),
        (lambda: nn.init.kaiming_normal_(torch.ones(2, 2), mode="up"), ValueError, "Mode up not supported, please use"),
    ],
)
def test_wrong_calls(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


def test_legacy_reduction_flags() -> None:
    x, y = torch.ones(4), torch.zeros(4)
    with pytest.warns(UserWarning, match="please use reduction='sum' instead"):
        assert F.mse_loss(x, y, size_average=False).item() == 4.0
    with pytest.warns(UserWarning, match="please use reduction='none' instead"):
        assert tuple(nn.MSELoss(reduce=False)(x, y).shape) == (4,)


def test_mse_loss_warns_when_it_broadcasts() -> None:
    with pytest.warns(UserWarning, match="Using a target size .* that is different to the input size"):
        assert F.mse_loss(torch.ones(2, 3), torch.zeros(3)).item() == 1.0


def test_padding_row_gets_no_gradient() -> None:
    layer = nn.Embedding(3, 2, padding_idx=1)
    assert layer.weight[1].tolist() == [0.0, 0.0]
    layer(torch.tensor([0, 1, 1])).sum().backward()
    assert layer.weight.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
    frozen = nn.Embedding.from_pretrained(torch.ones(2, 3))
    assert not frozen.weight.requires_grad and frozen(torch.tensor([1])).tolist() == [[1.0, 1.0, 1.0]]


LAYOUTS = [
    (shape, order)
    for shape in ((1, 3, 2, 1), (2, 3, 2, 4), (1, 1, 5, 1), (2, 1, 3, 3))
    for order in itertools.permutations(range(4))
]


def test_strides_of_batch_norm(oracle: ModuleType) -> None:
    """Inputs in every order, with sizes of one that leave the order open."""
    for (shape, order), training in itertools.product(LAYOUTS, (False, True)):
        strides = []
        for library in (oracle, torch):
            x = library.arange(float(math.prod(shape))).reshape(shape).permute(order)
            channels = x.shape[1]
            if training and x.numel() // channels < 2:
                continue
            mean, var = library.zeros(channels), library.ones(channels)
            strides.append(library.nn.functional.batch_norm(x, mean, var, training=training).stride())
        assert strides[:1] == strides[1:], (shape, order, training)


def test_gradients_of_convolutions_have_a_second_name() -> None:
    assert F.grad is nn.grad and "grad" in dir(F)


@pytest.mark.parametrize("value", [-0.1, 1.5, math.nan])
def test_binary_cross_entropy_refuses_what_is_no_probability(value: float) -> None:
    with pytest.raises(RuntimeError, match="all elements of input should be between 0 and 1"):
        F.binary_cross_entropy(torch.tensor([0.5, value]), torch.tensor([0.0, 1.0]))


def test_binary_cross_entropy_at_the_ends() -> None:
    p, t = torch.tensor([0.0, 1.0, 0.0, 1.0, 0.5]), torch.tensor([0.0, 1.0, 1.0, 0.0, 0.25])
    assert F.binary_cross_entropy(p, t, reduction="none").tolist() == pytest.approx([0, 0, 100, 100, math.log(2)])
    x = torch.tensor([0.0, 200.0, -200.0, math.inf])
    out = F.binary_cross_entropy_with_logits(x, torch.tensor([0.5, 0.0, 1.0, 1.0]), reduction="none").tolist()
    assert out[:3] == pytest.approx([math.log(2), 200.0, 200.0]) and math.isnan(out[3])
    assert F.binary_cross_entropy(p[:0], t[:0], reduction="sum") == 0.0
