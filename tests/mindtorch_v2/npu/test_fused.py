"""Composites that vendor functions serve whole: values, gradients of two orders, and which functions ran.

Invariant: every such composite is tried here, each of its functions runs exactly once for a call that it fits, and what
does not fit comes out the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mindtorch_v2._api.lazy_tables import load_all
from mindtorch_v2._backends.npu import lines
from mindtorch_v2._dispatch import registry
from mindtorch_v2._dispatch.keys import NPU

from .. import _npu, _oracle
from .._subject import subject as torch
from ..parity import _lists
from . import _rows

pytestmark = [pytest.mark.oracle, _npu.emulator_only, pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")]
if not _oracle.available():
    pytest.skip("the samples are made by the oracle: make test ORACLE=1", allow_module_level=True)
load_all()


# Steps of optimizers and of loss scaling write what they get: tested in `test_optim_npu.py` and `test_amp_npu.py`.
ELSEWHERE = ("_amp_", "_fused_")


def wholes() -> dict[str, Any]:
    torch.ones(1, device="npu")
    served = {op.name: lines.served_fused(op.kernels.get(int(NPU))) for op in registry.ops()}
    return {
        name: one
        for name, one in served.items()
        if one is not None and op_title(name) not in _lists.rows() and not name.startswith(ELSEWHERE)
    }


def op_title(name: str) -> str:
    return name.partition(".")[0]


def data(*shape: int, scale: float = 1.0, shift: float = 0.0) -> Any:
    """Numbers that do not repeat, without ties and kinks near them."""
    t = _oracle.load()
    generator = t.Generator().manual_seed(sum(shape) + 7)
    return t.randn(shape, generator=generator) * scale + shift


def whole_numbers(*values: int) -> Any:
    return _oracle.load().tensor(values)


def f(name: str) -> Callable[[Any], Any]:
    return lambda t: getattr(t.nn.functional, name)


IMAGE, VOLUME = data(2, 3, 4, 5), data(2, 2, 3, 4, 3)
GRID, PLACES = data(2, 3, 3, 2, scale=0.5), data(2, 2, 3, 2, 3, scale=0.5)
HEADS = tuple(data(2, 4, n, 8) for n in (5, 6, 6))
LABELS = whole_numbers(1, 2, 2, 3, 1).reshape(1, 5).repeat(2, 1)[:, :3].contiguous()


def hidden(*shape: int) -> Any:
    """A mask with a query that sees nothing."""
    mask = data(*shape) > -0.3
    mask[..., 1, :] = False
    return mask


# Row, the function to call, its tensors (floats get gradients), the other arguments, and the functions that run
# forward and backward; where backward is None, gradients go through the parts.
Case = tuple[str, Callable[[Any], Any], tuple[Any, ...], dict[str, Any], tuple[str, ...], tuple[str, ...] | None]
CASES: list[Case] = [
    *[
        (
            "grid_sampler",
            f("grid_sample"),
            (IMAGE, GRID),
            dict(mode=mode, padding_mode=padding, align_corners=align),
            ("GridSampler2D",),
            ("GridSampler2DBackward",),
        )
        for mode in ("bilinear", "nearest", "bicubic")
        for padding, align in (("zeros", False), ("border", True), ("reflection", False))
    ],
    (
        "grid_sampler",
        f("grid_sample"),
        (VOLUME, PLACES),
        dict(align_corners=False),
        ("GridSampler3D",),
        ("GridSampler3DBackward",),
    ),
    (
        "grid_sampler_2d",
        lambda t: t.grid_sampler_2d,
        (IMAGE, GRID, 0, 0, True),
        {},
        ("GridSampler2D",),
        ("GridSampler2DBackward",),
    ),
    (
        "grid_sampler_3d",
        lambda t: t.grid_sampler_3d,
        (VOLUME, PLACES, 0, 1, True),
        {},
        ("GridSampler3D",),
        ("GridSampler3DBackward",),
    ),
    (
        "affine_grid_generator",
        f("affine_grid"),
        (data(2, 2, 3), (2, 3, 4, 5)),
        dict(align_corners=False),
        ("AffineGrid",),
        None,
    ),
    (
        "scaled_dot_product_attention",
        f("scaled_dot_product_attention"),
        HEADS,
        {},
        ("FlashAttentionScore",),
        ("FlashAttentionScoreGrad",),
    ),
    (
        "scaled_dot_product_attention",
        f("scaled_dot_product_attention"),
        HEADS,
        dict(is_causal=True, scale=0.3),
        ("FlashAttentionScore",),
        ("FlashAttentionScoreGrad",),
    ),
    *[
        (
            "scaled_dot_product_attention",
            f("scaled_dot_product_attention"),
            (*HEADS, hidden(*shape)),
            {},
            ("FlashAttentionScore",),
            ("FlashAttentionScoreGrad",),
        )
        for shape in ((5, 6), (2, 1, 5, 6), (1, 4, 5, 6), (4, 5, 6), (2, 4, 5, 6), (1, 1, 5, 6))
    ],
    (
        "scaled_dot_product_attention",
        f("scaled_dot_product_attention"),
        (HEADS[0], HEADS[1][:, :2], HEADS[2][:, :2]),
        dict(enable_gqa=True),
        ("FlashAttentionScore",),
        ("FlashAttentionScoreGrad",),
    ),
    (
        "scaled_dot_product_attention",
        f("scaled_dot_product_attention"),
        tuple(t[:, 0] for t in HEADS),
        {},
        ("FlashAttentionScore",),
        ("FlashAttentionScoreGrad",),
    ),
    ("rms_norm", f("rms_norm"), (data(3, 4, 5), (4, 5), data(4, 5)), {}, ("RmsNorm",), ("RmsNormGrad",)),
    ("rms_norm", f("rms_norm"), (data(3, 5), (5,)), dict(eps=0.1), ("RmsNorm",), ("RmsNormGrad",)),
    ("prelu", f("prelu"), (data(2, 3, 4), data(3)), {}, ("Prelu",), ("PreluBackward",)),
    ("prelu", f("prelu"), (data(2, 3, 4), data(1)), {}, ("Prelu",), ("PreluBackward",)),
    *[
        (
            "l1_loss",
            f("l1_loss"),
            (data(3, 4), data(4, 3).t().contiguous()),
            dict(reduction=how),
            ("L1Loss",),
            ("L1LossBackward",),
        )
        for how in ("none", "mean", "sum")
    ],
    *[
        (
            "kl_div",
            f("kl_div"),
            (data(3, 4), data(3, 4, scale=0.1, shift=1.0)),
            dict(reduction=how, log_target=log),
            ("KlDiv",),
            ("KlDivBackward", "KlDivTargetBackward"),
        )
        for how in ("none", "mean", "sum")
        for log in (False, True)
    ],
    *[
        (
            "cdist",
            lambda t: t.cdist,
            (data(2, 3, 4), data(2, 5, 4, shift=0.5)),
            dict(p=p),
            ("Cdist",),
            ("CdistBackward",),
        )
        for p in (1.0, 2.0, 3.0, float("inf"))
    ],
    ("cdist", lambda t: t.cdist, (data(3, 4), data(2, 5, 4)), {}, ("Cdist",), ("CdistBackward",)),
    ("pdist", f("pdist"), (data(4, 3),), {}, ("Pdist",), None),
    *[
        (
            "ctc_loss.IntList",
            f("ctc_loss"),
            (data(6, 2, 5).log_softmax(-1), LABELS),
            dict(input_lengths=(6, 5), target_lengths=(3, 2), reduction=how),
            ("CtcLoss",),
            ("CtcLossBackward",),
        )
        for how in ("none", "mean", "sum")
    ],
    (
        "ctc_loss.IntList",
        f("ctc_loss"),
        (data(3, 2, 5).log_softmax(-1), LABELS),
        dict(input_lengths=(3, 1), target_lengths=(2, 3), zero_infinity=True),
        ("CtcLoss",),
        ("CtcLossBackward",),
    ),
    (
        "_pad_circular",
        f("pad"),
        (IMAGE, (1, 2, 3, 0)),
        dict(mode="circular"),
        ("CircularPad2d",),
        ("CircularPad2dBackward",),
    ),
    (
        "_pad_circular",
        f("pad"),
        (VOLUME, (1, 2, 3, 0, 1, 1)),
        dict(mode="circular"),
        ("CircularPad3d",),
        ("CircularPad3dBackward",),
    ),
    (
        "_embedding_bag",
        f("embedding_bag"),
        (whole_numbers(1, 0, 3, 2, 2), data(4, 3), whole_numbers(0, 2, 2)),
        dict(mode="sum"),
        ("EmbeddingBag",),
        None,
    ),
    (
        "_embedding_bag",
        f("embedding_bag"),
        (whole_numbers(1, 0, 3, 2, 2), data(4, 3), whole_numbers(0, 2, 2)),
        dict(mode="mean", padding_idx=2),
        ("EmbeddingBag",),
        None,
    ),
    (
        "_unique2",
        lambda t: t.unique,
        (whole_numbers(3, 1, 3, 2, 1),),
        dict(return_inverse=True, return_counts=True),
        ("Unique2",),
        None,
    ),
    (
        "unique_dim",
        lambda t: t.unique,
        (whole_numbers(1, 2, 1, 2, 0, 2).reshape(3, 2),),
        dict(dim=0, return_inverse=True, return_counts=True),
        ("UniqueDim",),
        None,
    ),
    (
        "_unique_consecutive",
        lambda t: t.unique_consecutive,
        (whole_numbers(3, 3, 1, 1, 3),),
        dict(return_inverse=True, return_counts=True),
        ("UniqueConsecutive",),
        None,
    ),
    (
        "_unique_consecutive",
        lambda t: t.unique_consecutive,
        (whole_numbers(1, 1, 2, 5, 5, 6).reshape(2, 3),),
        dict(dim=1, return_counts=True),
        ("UniqueConsecutive",),
        None,
    ),
    ("bincount", lambda t: t.bincount, (whole_numbers(3, 1, 3, 0),), dict(minlength=6), ("Bincount",), None),
    ("bincount", lambda t: t.bincount, (whole_numbers(3, 1, 3, 0), data(4)), {}, ("Bincount",), None),
    (
        "repeat_interleave.self_Tensor",
        lambda t: t.repeat_interleave,
        (data(3, 2), whole_numbers(2, 0, 3)),
        dict(dim=0),
        ("RepeatInterleaveWithDim",),
        None,
    ),
    (
        "repeat_interleave.Tensor",
        lambda t: t.repeat_interleave,
        (whole_numbers(2, 0, 3),),
        {},
        ("RepeatInterleaveTensor",),
        None,
    ),
    *[
        (
            "multilabel_margin_loss",
            f("multilabel_margin_loss"),
            (data(2, 4), whole_numbers(3, 0, -1, 1, 1, -1, 2, 2).reshape(2, 4)),
            dict(reduction=how),
            ("MultilabelMarginLoss",),
            None,
        )
        for how in ("none", "mean", "sum")
    ],
    (
        "_chunk_cat",
        lambda t: lambda *tensors: t._chunk_cat(list(tensors), 1, 3),
        (data(2, 4, 2), data(2, 3), data(2, 5)),
        {},
        ("ChunkCat",),
        None,
    ),
    ("isclose", lambda t: t.isclose, (data(3, 4), data(4, 3).reshape(3, 4)), dict(rtol=0.5), ("IsClose",), None),
    ("equal", lambda t: t.equal, (data(3, 4), data(3, 4)), {}, ("Equal",), None),
]
DIFFERENTIABLE = [case for case in CASES if case[5] is not None]


def label(case: Case) -> str:
    return case[0] + "".join(f"-{v}" for v in case[3].values() if isinstance(v, (str, bool, float)))


def with_gradients(tensors: tuple[Any, ...]) -> list[Any]:
    t = _oracle.load()
    return [
        x.detach().clone().requires_grad_() if isinstance(x, t.Tensor) and x.is_floating_point() else x for x in tensors
    ]


def run(case: Case, tensors: Any) -> tuple[Any, Any]:
    """Results of the oracle, and of the library on the NPU."""
    mine = [_rows.arguments(x) for x in tensors]
    return case[1](_oracle.load())(*tensors, **case[3]), case[1](torch)(*mine, **case[3])


def counts(emulator: Any, names: Any) -> list[int]:
    torch.npu.synchronize()
    return [emulator.runs("aclnn" + name) for name in names]


def test_every_composite_is_tried() -> None:
    assert {case[0] for case in CASES} == set(wholes())
    tried = {f"aclnn{name}" for case in CASES for name in (*case[4], *(case[5] or ()))}
    assert tried == {name for one in wholes().values() for name in one.functions}


@pytest.mark.parametrize("case", CASES, ids=label)
def test_values(case: Case, emulator: Any) -> None:
    before = counts(emulator, case[4])
    expected, actual = run(case, case[2])
    assert [b - a for a, b in zip(before, counts(emulator, case[4]))] == [1] * len(case[4])
    _oracle.assert_same(_rows.results(actual, case[0]), expected, where=case[0], rtol=1e-5, atol=3e-6)


def graph(case: Case) -> tuple[Any, Any, Any, Any, list[Any], list[Any]]:
    tensors = with_gradients(case[2])
    mine = [_rows.arguments(x) for x in tensors]
    expected, actual = case[1](_oracle.load())(*tensors, **case[3]), case[1](torch)(*mine, **case[3])
    weight = data(*expected.shape) if expected.dim() else _oracle.load().tensor(0.7)
    leaves = [x for x in tensors if getattr(x, "requires_grad", False)]
    my_leaves = [x for x in mine if getattr(x, "requires_grad", False)]
    return expected, actual, weight, _rows.arguments(weight), leaves, my_leaves


def assert_close(case: Case, actual: Any, expected: Any) -> None:
    for mine, theirs in zip(actual, expected, strict=True):
        assert (mine is None) == (theirs is None), case[0]
        if mine is not None:
            _oracle.assert_same(
                _rows.results(mine, case[0]), theirs.detach().clone(), where=case[0], stride=False, rtol=1e-4, atol=1e-5
            )


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=label)
def test_gradients(case: Case, emulator: Any) -> None:
    expected, actual, weight, my_weight, leaves, my_leaves = graph(case)
    functions = case[5] or ()
    before = counts(emulator, functions)
    wanted = _oracle.load().autograd.grad(expected, leaves, weight)
    got = torch.autograd.grad(actual, my_leaves, my_weight)
    twice = len(my_leaves) if functions in (("L1LossBackward",), ("CdistBackward",)) else 1
    assert [b - a for a, b in zip(before, counts(emulator, functions))] == [twice] * len(functions)
    assert_close(case, got, wanted)


# PyTorch has no second derivative of these; the composition on the CPU has.
ONCE = (
    "grid_sampler",
    "grid_sampler_2d",
    "grid_sampler_3d",
    "ctc_loss.IntList",
    "cdist",
    "scaled_dot_product_attention",
)


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=label)
def test_gradients_of_gradients(case: Case) -> None:
    def second(library: Any, tensors: list[Any], weight: Any) -> Any:
        leaves = [x for x in tensors if getattr(x, "requires_grad", False)]
        out = case[1](library)(*tensors, **case[3])
        first = library.autograd.grad(out, leaves, weight, create_graph=True)
        total = sum((g.square().sum() for g in first if g.requires_grad), library.zeros((), device=weight.device))
        return library.autograd.grad(total, leaves, allow_unused=True) if total.requires_grad else [None] * len(leaves)

    expected, _, weight, my_weight, leaves, my_leaves = graph(case)
    mine = [_rows.arguments(x) for x in with_gradients(case[2])]
    if case[0] in ONCE:
        ours = [_oracle.convert_argument(x) for x in with_gradients(case[2])]
        found = second(torch, ours, _oracle.convert_argument(weight))
        wanted = [g if g is None else _oracle.to_oracle(g) for g in found]
    else:
        wanted = second(_oracle.load(), with_gradients(case[2]), weight)
    assert_close(case, second(torch, mine, my_weight), wanted)


@pytest.mark.parametrize(
    "case",
    [
        case
        for case in CASES
        if case[0] not in ("bincount", "repeat_interleave.self_Tensor", "repeat_interleave.Tensor", "equal")
    ],
    ids=label,
)
def test_nothing_is_read_by_the_host(case: Case, emulator: Any) -> None:
    mine = [_rows.arguments(x) for x in case[2]]
    torch.npu.synchronize()
    before = emulator.bytes_to_host()
    case[1](torch)(*mine, **case[3])
    torch.npu.synchronize()
    assert emulator.bytes_to_host() == before


# Their gradients read the result, as PyTorch's do.
READ = ("scaled_dot_product_attention", "cdist")


@pytest.mark.parametrize(
    "case",
    [
        case
        for case in DIFFERENTIABLE
        if case[0] not in READ
        and not (
            # Its losses are the result, and PyTorch reads them.
            case[0] == "ctc_loss.IntList" and case[3].get("reduction") == "none"
        )
    ],
    ids=label,
)
def test_a_result_may_be_written(case: Case) -> None:
    expected, actual, weight, my_weight, leaves, my_leaves = graph(case)
    wanted = _oracle.load().autograd.grad(expected.add_(1), leaves, weight)
    assert_close(case, torch.autograd.grad(actual.add_(1), my_leaves, my_weight), wanted)


def test_a_result_that_is_read_may_not_be_written() -> None:
    x = torch.ones(1, 1, 3, 4, device="npu", requires_grad=True)
    out = torch.nn.functional.scaled_dot_product_attention(x, x, x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.add_(1).sum().backward()


def test_what_was_padded_may_be_written() -> None:
    x = torch.ones(1, 1, 3, 4, device="npu", requires_grad=True)
    y = x * 1
    out = torch.nn.functional.pad(y, (1, 1, 0, 0), mode="circular")
    y.add_(1)
    out.sum().backward()
    assert x.grad.sum().item() == 18.0


def test_half_of_a_gradient_is_enough() -> None:
    """Only what is asked for is computed and returned."""
    query, key, value = (_rows.arguments(t) for t in HEADS)
    key.requires_grad_()
    out = torch.nn.functional.scaled_dot_product_attention(query, key, value)
    out.sum().backward()
    assert query.grad is None and key.grad.shape == key.shape
    assert type(out.grad_fn).__name__ == "ScaledDotProductAttentionBackward"


def test_long_causal_attention() -> None:
    """Beyond the size of the compressed mask."""
    t = _oracle.load()
    heads = tuple(data(1, 1, 2050, 4) + n for n in range(3))
    expected = t.nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
    actual = torch.nn.functional.scaled_dot_product_attention(*(_rows.arguments(x) for x in heads), is_causal=True)
    _oracle.assert_same(_rows.results(actual, "attention"), expected, where="attention", rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_attention_of_halves(dtype: str, emulator: Any) -> None:
    t = _oracle.load()
    heads = tuple(x.to(getattr(t, dtype)) for x in HEADS)
    before = counts(emulator, ["FlashAttentionScore"])
    actual = torch.nn.functional.scaled_dot_product_attention(*(_rows.arguments(x) for x in heads))
    assert counts(emulator, ["FlashAttentionScore"])[0] == before[0] + 1
    expected = t.nn.functional.scaled_dot_product_attention(*heads)
    _oracle.assert_same(_rows.results(actual, dtype), expected, where=dtype, computed_in=dtype)


def test_heads_behind_tokens_are_joined_without_a_copy(emulator: Any) -> None:
    """Results and gradients lie as PyTorch's: in the order of the operands."""

    def strides(library: Any, **where: Any) -> tuple[Any, list[Any]]:
        packed = library.arange(2.0 * 5 * 3 * 4 * 8, **where).view(2, 5, 3, 4, 8).sin().requires_grad_()
        parts = [packed[:, :, i].transpose(1, 2) for i in range(3)]
        out = library.nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
        joined = out.transpose(1, 2).reshape(2, 5, 32)
        grads = library.autograd.grad(joined.sum(), parts)
        return out.stride(), [g.stride() for g in grads]

    before = counts(emulator, ["InplaceCopy"])
    assert strides(torch, device="npu") == strides(_oracle.load())
    assert counts(emulator, ["InplaceCopy"]) == before


def test_attention_that_the_vendor_does_not_compute(emulator: Any) -> None:
    """Numbers added to scores, float64, other ranks, values of another width: the composition."""
    t = _oracle.load()
    query, key, value = HEADS
    attention = "scaled_dot_product_attention"
    before = counts(emulator, ["FlashAttentionScore"])
    for tensors, options in (
        ((query, key, value), dict(attn_mask=data(5, 6))),
        (tuple(x.double() for x in HEADS), {}),
        (tuple(x[None] for x in HEADS), {}),
        ((query, key, value[..., :3]), {}),
        ((query[:1], key, value), {}),
    ):
        expected = getattr(t.nn.functional, attention)(*tensors, **options)
        moved = {name: _rows.arguments(x) for name, x in options.items()}
        actual = getattr(torch.nn.functional, attention)(*(_rows.arguments(x) for x in tensors), **moved)
        _oracle.assert_same(_rows.results(actual, attention), expected, where=attention, rtol=1e-5, atol=1e-6)
    assert counts(emulator, ["FlashAttentionScore"]) == before


def test_errors_come_from_the_composition() -> None:
    x = torch.ones(2, 3, 4, 5, device="npu")
    with pytest.raises(RuntimeError, match="expected grid and input to have same batch size"):
        torch.nn.functional.grid_sample(x, torch.ones(1, 3, 3, 2, device="npu"), align_corners=False)
    with pytest.raises(RuntimeError, match="same number of columns"):
        torch.cdist(x, x[..., :2])
    with pytest.raises(RuntimeError, match="non-negative"):
        torch.bincount(torch.tensor([1, -1], device="npu"))
    with pytest.raises(RuntimeError, match="repeats can not be negative"):
        torch.repeat_interleave(torch.tensor([1, -1], device="npu"))


def test_a_line_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="only composites are served whole"):
        lines.npu("add", lines.fused(("aclnnAdd",), lambda *args: True, lambda *args: None))
    with pytest.raises(KeyError, match="aclnnNothing has no line"):
        lines.npu("isclose", lines.fused(("aclnnNothing",), lambda *args: True, lambda *args: None))
