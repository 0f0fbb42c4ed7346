"""Layers against PyTorch's: how they show themselves, their state, results, gradients and buffers.

Invariant: a layer is compared with PyTorch's own after its state was loaded from it, in training and in evaluation.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import pytest

from .. import _oracle
from .._subject import subject as torch

pytestmark = pytest.mark.oracle


class Layer(NamedTuple):
    name: str
    args: tuple[Any, ...]
    inputs: tuple[Any, ...]
    options: dict[str, Any]


def layer(name: str, args: tuple[Any, ...], *inputs: Any, **options: Any) -> Layer:
    return Layer(name, args, inputs, options)


class Values(NamedTuple):
    """An input: its shape, and of what kind its values are."""

    kind: str
    shape: tuple[int, ...]


def normal(*shape: int) -> Values:
    return Values("normal", shape)


def unit(*shape: int) -> Values:
    return Values("unit", shape)


def sign(*shape: int) -> Values:
    return Values("sign", shape)


def index(*shape: int) -> Values:
    return Values("index", shape)


IMAGES = {"1d": (4, 3, 9), "2d": (4, 3, 9, 9), "3d": (2, 3, 5, 6, 7)}
RANDOM = frozenset("Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout RReLU".split())
LAYERS = [
    layer("Conv1d", (4, 6, 3), normal(2, 4, 9)),
    layer("Conv2d", (4, 6, 3), normal(2, 4, 9, 9), padding="same", padding_mode="reflect"),
    layer("Conv2d", (4, 6, 3), normal(2, 4, 9, 9), padding=2, padding_mode="circular", groups=2, stride=2),
    layer("Conv3d", (2, 3, 2), normal(1, 2, 4, 4, 4), dilation=2, bias=False),
    layer("ConvTranspose1d", (4, 6, 3), normal(4, 5)),
    layer("ConvTranspose2d", (4, 6, 3), normal(2, 4, 5, 5), stride=2, output_padding=1),
    layer("ConvTranspose3d", (2, 3, 2), normal(1, 2, 3, 3, 3)),
    layer("GroupNorm", (2, 4), normal(3, 4, 5)),
    layer("RMSNorm", (5,), normal(3, 4, 5)),
    layer("LocalResponseNorm", (2,), normal(2, 4, 5, 5)),
    *(
        made
        for rank, shape in IMAGES.items()
        for made in (
            layer(f"BatchNorm{rank}", (3,), normal(*shape)),
            layer(f"BatchNorm{rank}", (3,), normal(*shape), momentum=None, affine=False),
            layer(f"InstanceNorm{rank}", (3,), normal(*shape), affine=True, track_running_stats=True),
            layer(f"MaxPool{rank}", (3,), normal(*shape)),
            layer(f"AvgPool{rank}", (3,), normal(*shape)),
            layer(f"LPPool{rank}", (2, 3), unit(*shape)),
            layer(f"AdaptiveAvgPool{rank}", (4,), normal(*shape)),
            layer(f"AdaptiveMaxPool{rank}", (4,), normal(*shape)),
            layer(f"ConstantPad{rank}", (1, 2.0), normal(*shape)),
            layer(f"ZeroPad{rank}", (1,), normal(*shape)),
            layer(f"ReflectionPad{rank}", (1,), normal(*shape)),
            layer(f"ReplicationPad{rank}", (2,), normal(*shape)),
            layer(f"CircularPad{rank}", (2,), normal(*shape)),
        )
    ),
    layer("Upsample", (), normal(1, 2, 4, 4), scale_factor=2, mode="bilinear"),
    layer("UpsamplingNearest2d", (), normal(1, 2, 4, 4), scale_factor=2),
    layer("UpsamplingBilinear2d", (), normal(1, 2, 4, 4), size=7),
    layer("PixelShuffle", (2,), normal(1, 8, 3, 3)),
    layer("PixelUnshuffle", (2,), normal(1, 2, 4, 4)),
    layer("ChannelShuffle", (2,), normal(1, 4, 3, 3)),
    layer("Fold", ((4, 4), 2), normal(1, 8, 9)),
    layer("Unfold", (2,), normal(1, 2, 4, 4)),
    *(layer(name, (), normal(2, 3, 4)) for name in sorted(RANDOM - {"Dropout3d"})),
    layer("Dropout3d", (), normal(2, 3, 4, 5, 6)),
    *(
        layer(name, (), normal(3, 4))
        for name in (
            "Hardswish Hardsigmoid Mish SELU LogSigmoid Softsign Tanhshrink Hardshrink Softshrink ELU CELU LeakyReLU "
            "GLU Softplus Hardtanh ReLU6 PReLU"
        ).split()
    ),
    layer("Threshold", (0.1, 20.0), normal(3, 4)),
    layer("Softmin", (1,), normal(3, 4)),
    layer("Softmax2d", (), normal(2, 3, 4, 4)),
    layer("PairwiseDistance", (), normal(3, 4), unit(3, 4)),
    layer("CosineSimilarity", (), normal(3, 4), unit(3, 4)),
    layer("Bilinear", (3, 4, 5), normal(2, 3), normal(2, 4)),
    layer("EmbeddingBag", (4, 3), index(4, 5)),
    layer("EmbeddingBag", (4, 3), index(4, 5), mode="max", padding_idx=2),
    *(
        layer(name, (), normal(3, 4), unit(3, 4))
        for name in ("L1Loss SmoothL1Loss HuberLoss PoissonNLLLoss BCEWithLogitsLoss MultiLabelSoftMarginLoss").split()
    ),
    layer("KLDivLoss", (), normal(3, 4), unit(3, 4), reduction="batchmean"),
    layer("BCELoss", (), unit(3, 4), unit(3, 4)),
    layer("SoftMarginLoss", (), normal(3, 4), sign(3, 4)),
    layer("MultiLabelMarginLoss", (), normal(3, 4), index(3, 4)),
    layer("MultiMarginLoss", (), normal(3, 4), index(3)),
    layer("HingeEmbeddingLoss", (), normal(3, 4), sign(3, 4)),
    layer("CosineEmbeddingLoss", (), normal(3, 4), unit(3, 4), sign(3)),
    layer("MarginRankingLoss", (), normal(3), unit(3), sign(3)),
    layer("TripletMarginLoss", (), normal(3, 4), unit(3, 4), sign(3, 4)),
    layer("TripletMarginWithDistanceLoss", (), normal(3, 4), unit(3, 4), sign(3, 4)),
    layer("GaussianNLLLoss", (), normal(3, 4), unit(3, 4), unit(3, 4)),
]


def values(of: Values) -> Any:
    oracle = _oracle.load()
    generator = oracle.Generator().manual_seed(len(of.shape))
    if of.kind == "index":
        return oracle.randint(0, 4, of.shape, generator=generator)
    made = oracle.randn(of.shape, generator=generator)
    return made.sigmoid() if of.kind == "unit" else made.sign() if of.kind == "sign" else made


@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
@pytest.mark.parametrize("case", LAYERS, ids=lambda case: case.name)
def test_layer(case: Layer, training: bool) -> None:
    oracle = _oracle.load()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = getattr(oracle.nn, case.name)(*case.args, **case.options).train(training)
        ours = getattr(torch.nn, case.name)(*case.args, **case.options).train(training)
        assert repr(ours) == repr(theirs)
        state = theirs.state_dict()
        assert list(ours.state_dict()) == list(state)
        ours.load_state_dict({key: _oracle.convert_argument(value) for key, value in state.items()})
        if case.name in RANDOM and training:
            return
        expected_inputs = [values(of) for of in case.inputs]
        actual_inputs = [_oracle.convert_argument(value) for value in expected_inputs]
        if expected_inputs[0].is_floating_point():
            expected_inputs[0].requires_grad_()
            actual_inputs[0].requires_grad_()
        expected, actual = theirs(*expected_inputs), ours(*actual_inputs)
        _same(actual, expected)
        if expected.requires_grad:
            expected.square().sum().backward()
            actual.square().sum().backward()
            if expected_inputs[0].is_floating_point():
                _same(actual_inputs[0].grad, expected_inputs[0].grad)
            for (_, mine), (_, other) in zip(ours.named_parameters(), theirs.named_parameters()):
                _same(mine.grad, other.grad)
        for (_, mine), (_, other) in zip(ours.named_buffers(), theirs.named_buffers()):
            _same(mine, other)


def _same(actual: Any, expected: Any) -> None:
    oracle = _oracle.load()
    oracle.testing.assert_close(_oracle.to_oracle(actual.detach()), expected.detach(), rtol=1e-3, atol=1e-4)
