"""The emulator's functions that only move elements, and paddings with their gradients, against PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional

from ._cases import ALL, FLOATS, INTS, Built, Case, Maker, each, run  # noqa: E402
from ._kernels import Out, assert_same, call, refused  # noqa: E402

pytestmark = pytest.mark.oracle
COMPLEX = ("complex64", "complex128")
COMMON = (*FLOATS, *INTS, "int8", "uint8", "bool")


def pad(kind: str, axes: int, t: Maker) -> Built:
    x = t(*(2, 3, 4, 5, 6)[:axes], 5) if axes < 3 else t(2, 3, 4, 5)
    padding = [1, 2, 2, 1, 1, 2][: 2 * axes]
    # PyTorch pads no integers by reflection or replication on every device; values only move, so double does.
    return {"self": x, "padding": padding}, {"out": F.pad(x.double(), padding, kind).to(x.dtype)}


def pad_backward(kind: str, axes: int, t: Maker) -> Built:
    x = t(*(2, 3, 4, 5, 6)[:axes], 5) if axes < 3 else t(2, 3, 4, 5)
    padding = [1, 2, 2, 1, 1, 2][: 2 * axes]
    wide = x.to(torch.complex128 if x.is_complex() else torch.float64, copy=True).requires_grad_()
    y = F.pad(wide, padding, kind)
    grad = t(*y.shape)
    y.backward(grad.to(y.dtype))
    return {"gradOutput": grad, "self": x, "padding": padding}, {"gradInput": wide.grad.to(x.dtype)}


def im2col(t: Maker, batched: bool) -> Built:
    x = t(2, 3, 6, 7) if batched else t(3, 6, 7)
    options = {"dilation": [1, 2], "padding": [1, 0], "stride": [2, 1]}
    y = F.unfold(x.double(), (2, 3), **{k: tuple(v) for k, v in options.items()})
    return {"self": x, "kernelSize": [2, 3], **options}, {"out": y.to(x.dtype)}


def im2col_backward(t: Maker, batched: bool) -> Built:
    options = {"dilation": [1, 2], "padding": [1, 0], "stride": [2, 1]}
    plain = {k: tuple(v) for k, v in options.items()}
    shape = F.unfold(torch.zeros(2, 3, 6, 7), (2, 3), **plain).shape
    grad = t(*(shape if batched else shape[1:]))
    y = F.fold(grad.double(), (6, 7), (2, 3), **plain)
    return {"gradOutput": grad, "inputSize": [6, 7], "kernelSize": [2, 3], **options}, {"out": y.to(grad.dtype)}


def unfold_backward(t: Maker) -> Built:
    x = torch.zeros(3, 7, dtype=torch.float64, requires_grad=True)
    y = x.unfold(1, 3, 2)
    grad = t(*y.shape)
    y.backward(grad.double())
    return {"gradOut": grad, "inputSizes": [3, 7], "dim": 1, "size": 3, "step": 2}, {"gradIn": x.grad.to(grad.dtype)}


def chunk_cat(t: Maker) -> Built:
    a, b = t(3, 4), t(5, 2)
    return {"tensors": [a, b], "dim": 0, "numChunks": 2}, {"out": torch._chunk_cat([a, b], 0, 2)}


def diagonal(t: Maker, tall: bool, wrap: bool) -> Built:
    x = t(9, 3) if tall else t(3, 4)
    return {"selfRef": x, "fillValue": 1, "wrap": wrap}, {"selfRef": x.clone().fill_diagonal_(1, wrap=wrap)}


def one_hot(t: Maker, axis: int) -> Built:
    k = t.index(5, 2, 3)
    kind = getattr(torch, t.dtype)
    y = F.one_hot(k, 5).to(kind)
    if axis >= 0:
        y = y.movedim(-1, axis).contiguous()
    return {
        "self": k,
        "numClasses": 5,
        "onValue": torch.ones(1, dtype=kind),
        "offValue": torch.zeros(1, dtype=kind),
        "axis": axis,
    }, {"out": y}


JOINS = [
    *(
        Case(
            "aclnnCat",
            (*ALL, "complex64"),
            lambda t, d=d: (
                {"tensors": [(a := t(2, 3)), (b := t(*((4, 3) if d == 0 else (2, 4))))], "dim": d},
                {"out": torch.cat([a, b], d)},
            ),
        )
        for d in (0, -1)
    ),
    Case(
        "aclnnCat",
        FLOATS,
        lambda t: (
            {"tensors": [torch.empty(0, dtype=getattr(torch, t.dtype)), (a := t(2, 3)), (b := t(0, 3))], "dim": 0},
            {"out": torch.cat([a, b])},
        ),
    ),
    Case(
        "aclnnCat",
        ("int32", "float16"),
        lambda t: (
            {"tensors": [(a := t(2, 3)), (b := t(1, 3, dtype="float32"))], "dim": 0},
            {"out": torch.cat([a, b])},
        ),
    ),
    Case("aclnnChunkCat", FLOATS, chunk_cat),
    *(
        Case(
            "aclnnStack",
            (*ALL, *COMPLEX),
            lambda t, d=d: ({"tensors": [(a := t(2, 3)), (b := t(2, 3))], "dim": d}, {"out": torch.stack([a, b], d)}),
        )
        for d in (0, 1, -1)
    ),
    *(
        Case(
            "aclnnSplitTensor",
            (*ALL, *COMPLEX),
            lambda t, d=d: (
                {"self": (x := t(5, 4)), "splitSections": 2, "dim": d},
                {"out": [p.clone() for p in x.split(2, d)]},
            ),
        )
        for d in (0, 1)
    ),
    Case(
        "aclnnSplitWithSize",
        COMMON,
        lambda t: (
            {"self": (x := t(3, 6)), "splitSize": [1, 0, 5], "dim": -1},
            {"out": [p.contiguous() for p in x.split([1, 0, 5], 1)]},
        ),
    ),
]
ORDERS = [
    Case(
        "aclnnPermute",
        (*ALL, *COMPLEX),
        lambda t: ({"self": (x := t(2, 3, 4)), "dims": [2, 0, -2]}, {"out": x.permute(2, 0, 1).contiguous()}),
    ),
    Case(
        "aclnnExpand",
        COMMON,
        lambda t: ({"self": (x := t(3, 1)), "size": [2, 3, 4]}, {"out": x.expand(2, 3, 4).contiguous()}),
    ),
    Case("aclnnFlatten", COMMON, lambda t: ({"self": (x := t(2, 3, 4)), "axis": 2}, {"out": x.reshape(6, 4)})),
    Case("aclnnFlatten", FLOATS, lambda t: ({"self": (x := t(2, 3, 4)), "axis": 0}, {"out": x.reshape(1, 24)})),
    Case(
        "aclnnRepeat",
        (*ALL, *COMPLEX),
        lambda t: ({"self": (x := t(2, 3)), "repeats": [2, 1, 3]}, {"out": x.repeat(2, 1, 3)}),
    ),
    Case(
        "aclnnRoll",
        (*FLOATS, *INTS, "int8", "bool"),
        lambda t: ({"x": (x := t(3, 4)), "shifts": [1, -2], "dims": [0, -1]}, {"out": x.roll((1, -2), (0, 1))}),
    ),
    Case("aclnnRoll", FLOATS, lambda t: ({"x": (x := t(3, 4)), "shifts": [5], "dims": []}, {"out": x.roll(5)})),
    Case("aclnnFlip", (*ALL, *COMPLEX), lambda t: ({"self": (x := t(3, 4)), "dims": [1, 0]}, {"out": x.flip(0, 1)})),
    Case(
        "aclnnSlice",
        COMMON,
        lambda t: (
            {"self": (x := t(3, 7)), "dim": 1, "start": 1, "end": 99, "step": 2},
            {"out": x[:, 1::2].contiguous()},
        ),
    ),
    Case(
        "aclnnSlice",
        FLOATS,
        lambda t: (
            {"self": (x := t(3, 7)), "dim": 1, "start": -4, "end": -1, "step": 1},
            {"out": x[:, -4:-1].contiguous()},
        ),
    ),
    Case(
        "aclnnSliceV2",
        COMMON,
        lambda t: (
            {"self": (x := t(5, 7)), "starts": [1, 0], "ends": [5, 6], "axes": [0, 1], "steps": [2, 3]},
            {"out": x[1:5:2, 0:6:3].contiguous()},
        ),
    ),
    *(
        Case(
            f"aclnn{name}",
            (*ALL, "complex64"),
            lambda t, f=f, k=k: ({"self": (x := t(2, 4, 5)), "diagonal": k}, {"out": f(x, k)}),
        )
        for name, f in (("Tril", torch.tril), ("Triu", torch.triu))
        for k in (-1, 0, 2)
    ),
    *(
        Case(
            f"aclnnInplace{name}",
            (*ALL, "complex64"),
            lambda t, f=f: ({"selfRef": (x := t(4, 5)), "diagonal": 1}, {"selfRef": f(x, 1)}),
        )
        for name, f in (("Tril", torch.tril), ("Triu", torch.triu))
    ),
    *(
        Case(
            "aclnnDiag",
            (*ALL, "complex64"),
            lambda t, k=k, s=s: ({"self": (x := t(*s)), "diagonal": k}, {"out": x.diag(k)}),
        )
        for k in (-1, 0, 2)
        for s in ((4,), (4, 5), (5, 4))
    ),
    *(
        Case("aclnnDiagFlat", ALL, lambda t, k=k: ({"self": (x := t(2, 3)), "diagonal": k}, {"out": x.diagflat(k)}))
        for k in (-1, 0, 1)
    ),
    Case(
        "aclnnAsStrided",
        (*FLOATS, *INTS, "bool"),
        lambda t: (
            {"x": (x := t(4, 5)), "size": [3, 2], "stride": [2, 6], "storageOffset": [1]},
            {"out": x.contiguous().as_strided((3, 2), (2, 6), 1).contiguous()},
        ),
    ),
    *(
        Case("aclnnInplaceFillDiagonal", ALL, lambda t, a=a, b=b: diagonal(t, a, b))
        for a, b in ((False, False), (True, False), (True, True))
    ),
    Case(
        "aclnnChannelShuffle",
        ("float32", "float16", *INTS, "bool", *COMPLEX),
        lambda t: (
            {"self": (x := t(2, 6, 3)), "groups": 3},
            {"out": x.reshape(2, 3, 2, 3).transpose(1, 2).reshape(2, 6, 3).clone()},
        ),
    ),
]
REPEATS = [
    Case(
        "aclnnRepeatInterleave",
        COMMON,
        lambda t: (
            {"self": (x := t(2, 2)), "repeats": torch.tensor([1, 0, 2, 3]), "outputSize": 6},
            {"out": x.repeat_interleave(torch.tensor([1, 0, 2, 3]))},
        ),
    ),
    Case(
        "aclnnRepeatInterleaveInt",
        COMMON,
        lambda t: ({"self": (x := t(2, 3)), "repeats": 2, "outputSize": 12}, {"out": x.repeat_interleave(2)}),
    ),
    Case(
        "aclnnRepeatInterleaveIntWithDim",
        COMMON,
        lambda t: (
            {"self": (x := t(2, 3)), "repeats": 2, "dim": -1, "outputSize": 6},
            {"out": x.repeat_interleave(2, 1)},
        ),
    ),
    Case(
        "aclnnRepeatInterleaveWithDim",
        COMMON,
        lambda t: (
            {
                "self": (x := t(3, 2)),
                "repeats": (k := torch.tensor([2, 0, 1], dtype=torch.int32)),
                "dim": 0,
                "outputSize": 3,
            },
            {"out": x.repeat_interleave(k.long(), 0)},
        ),
    ),
    Case(
        "aclnnRepeatInterleaveTensor",
        INTS,
        lambda t: (
            {"repeats": (k := t.index(4, 5, dtype=t.dtype)), "outputSize": int(k.sum())},
            {"out": torch.repeat_interleave(k).to(k.dtype)},
        ),
    ),
    *(Case("aclnnOneHot", ("float32", "float16", *INTS), lambda t, a=a: one_hot(t, a)) for a in (-1, 0, 1)),
]
PADDINGS = [
    *(
        Case(
            "aclnnConstantPadNd",
            (*ALL, *COMPLEX),
            lambda t, p=p: ({"self": (x := t(3, 4)), "pad": p, "value": 1}, {"out": F.pad(x, p, value=1)}),
        )
        for p in ([1, 2], [0, -1, 2, 1], [])
    ),
    *(Case(f"aclnnReflectionPad{n}d", (*ALL,), lambda t, n=n: pad("reflect", n, t)) for n in (1, 2, 3)),
    *(
        Case(f"aclnnReplicationPad{n}d", (*FLOATS, "float64", *INTS, "uint8"), lambda t, n=n: pad("replicate", n, t))
        for n in (1, 2, 3)
    ),
    *(
        Case(
            f"aclnn{name}Pad{n}dBackward",
            (*FLOATS, "float64", "complex64"),
            lambda t, n=n, k=kind: pad_backward(k, n, t),
            2,
        )
        for name, kind in (("Reflection", "reflect"), ("Replication", "replicate"))
        for n in (1, 2, 3)
    ),
    *(Case(f"aclnnCircularPad{n}d", (*FLOATS, "int32", "int8"), lambda t, n=n: pad("circular", n, t)) for n in (2, 3)),
    *(Case(f"aclnnCircularPad{n}dBackward", FLOATS, lambda t, n=n: pad_backward("circular", n, t), 2) for n in (2, 3)),
]
WINDOWS = [
    *(Case("aclnnIm2col", (*FLOATS, "float64", *INTS), lambda t, b=b: im2col(t, b)) for b in (False, True)),
    *(Case("aclnnIm2colBackward", FLOATS, lambda t, b=b: im2col_backward(t, b)) for b in (False, True)),
    Case("aclnnUnfoldGrad", FLOATS, unfold_backward),
]


EDGES = [  # no dimensions, no elements
    Case("aclnnCat", FLOATS, lambda t: ({"tensors": [(x := t(0, 3)), t(0, 3)], "dim": 0}, {"out": x})),
    Case("aclnnPermute", FLOATS, lambda t: ({"self": (x := t()), "dims": []}, {"out": x})),
    Case("aclnnPermute", FLOATS, lambda t: ({"self": t(2, 0), "dims": [1, 0]}, {"out": t(0, 2)})),
    Case("aclnnExpand", FLOATS, lambda t: ({"self": (x := t()), "size": [2]}, {"out": x.expand(2).contiguous()})),
    Case("aclnnRepeat", FLOATS, lambda t: ({"self": t(2), "repeats": [0, 3]}, {"out": t(0, 6)})),
    Case("aclnnRoll", FLOATS, lambda t: ({"x": (x := t()), "shifts": [1], "dims": [0]}, {"out": x})),
    Case("aclnnRoll", FLOATS, lambda t: ({"x": (x := t(2, 0)), "shifts": [1], "dims": [1]}, {"out": x})),
    Case(
        "aclnnSlice", FLOATS, lambda t: ({"self": t(3, 4), "dim": 0, "start": 2, "end": 1, "step": 1}, {"out": t(0, 4)})
    ),
    Case("aclnnTril", FLOATS, lambda t: ({"self": (x := t(0, 3)), "diagonal": 0}, {"out": x})),
    Case(
        "aclnnRepeatInterleaveInt",
        FLOATS,
        lambda t: ({"self": (x := t()), "repeats": 3, "outputSize": 3}, {"out": x.repeat(3)}),
    ),
]
MASKS = {"beginMask": 0, "endMask": 0, "ellipsisMask": 0, "newAxisMask": 0, "shrinkAxisMask": 0}


def strided(t: Maker, begin: list[int], end: list[int], strides: list[int], result: Any, **masks: int) -> Built:
    x = torch.arange(60).reshape(3, 4, 5).to(getattr(torch, t.dtype))
    given = {"self": x, "begin": begin, "end": end, "strides": strides, **MASKS, **masks}
    return given, {"out": result(x).contiguous()}


NEWER = [
    Case(
        "aclnnStridedSlice",
        ("float32", "int64"),
        lambda t: strided(t, [0, 1], [3, 4], [2, 2], lambda x: x[0:3:2, 1:4:2]),
    ),
    Case(
        "aclnnStridedSlice",
        ("float32",),
        lambda t: strided(t, [0, -1], [0, 0], [1, -1], lambda x: x[..., [4, 3, 2, 1, 0]], ellipsisMask=1, endMask=2),
    ),
    Case(
        "aclnnStridedSlice",
        ("float32",),
        lambda t: strided(
            t,
            [0, 1, 0],
            [0, 2, 0],
            [1, 1, 1],
            lambda x: x[1][None],
            newAxisMask=1,
            shrinkAxisMask=2,
            beginMask=4,
            endMask=4,
        ),
    ),
    *(
        Case(
            "aclnnConfusionTranspose",
            ("float32", "int32"),
            lambda t, f=f: (
                {
                    "x": (x := t(2, 3, 4)),
                    "perm": [1, 0, 2] if f else [1, 0],
                    "shape": [3, 8] if f else [6, 4],
                    "transpose_first": f,
                },
                {"x": x, "out": x.permute(1, 0, 2).reshape(3, 8) if f else x.reshape(6, 4).T.contiguous()},
            ),
        )
        for f in (True, False)
    ),
    Case(
        "aclnnRepeatInterleaveGrad",
        FLOATS,
        lambda t: (
            {"yGrad": (g := t(2, 4)), "repeats": torch.tensor([1, 0, 3]), "axis": 1},
            {"out": torch.stack([g[:, 0].double(), torch.zeros(2), g[:, 1:].double().sum(1)], 1).to(g.dtype)},
        ),
    ),
]


@each([*EDGES, *JOINS, *ORDERS, *REPEATS, *PADDINGS, *WINDOWS, *NEWER])
def test_values(case: Case, dtype: str, layout: str) -> None:
    run(case, dtype, layout)


X = torch.arange(6.0).reshape(2, 3)
STRIDED: list[tuple[str, dict[str, Any], Any]] = [
    ("aclnnPermute", {"self": X, "dims": [1, 0]}, X.T),
    ("aclnnCat", {"tensors": [X, X], "dim": 1}, torch.cat([X, X], 1)),
    ("aclnnTril", {"self": X, "diagonal": 0}, X.tril()),
    ("aclnnReduceSum", {"self": X, "dims": [0], "keepDims": True, "dtype": "float32"}, X.sum(0, True)),
    ("aclnnIndexSelect", {"self": X, "dim": 1, "index": torch.tensor([2, 0])}, X[:, [2, 0]]),
    ("aclnnArgsort", {"self": X, "dim": 1, "descending": True}, X.argsort(1, True)),
]


@pytest.mark.parametrize(("name", "arguments", "want"), STRIDED, ids=[row[0] for row in STRIDED])
def test_strided_outputs(name: str, arguments: dict[str, Any], want: Any) -> None:
    rows, columns = want.shape
    out = Out((rows, columns), str(want.dtype).removeprefix("torch."), (2, 2 * rows))
    assert_same(call(name, **arguments, out=out), want.contiguous())


REFUSALS: list[tuple[str, dict[str, Any], int]] = [
    ("aclnnCat", {"tensors": [X, X[:, :2]], "dim": 0, "out": Out((4, 3))}, 161002),
    ("aclnnCat", {"tensors": [X, X], "dim": 0, "out": Out((2, 6))}, 161002),
    ("aclnnCat", {"tensors": [X, X], "dim": 2, "out": Out((4, 3))}, 161002),
    ("aclnnCat", {"tensors": None, "dim": 0, "out": Out((4, 3))}, 161001),
    ("aclnnStack", {"tensors": [X, X[:1]], "dim": 0, "out": Out((2, 2, 3))}, 161002),
    ("aclnnSplitTensor", {"self": X, "splitSections": 2, "dim": 1, "out": [Out((2, 2))]}, 161002),
    ("aclnnSplitWithSize", {"self": X, "splitSize": [1, 1], "dim": 1, "out": [Out((2, 1)), Out((2, 1))]}, 161002),
    ("aclnnPermute", {"self": X, "dims": [0, 0], "out": Out((2, 2))}, 161002),
    ("aclnnPermute", {"self": X, "dims": [1, 0], "out": Out((2, 3))}, 161002),
    ("aclnnExpand", {"self": X, "size": [4, 3], "out": Out((4, 3))}, 161002),
    ("aclnnExpand", {"self": X[:1], "size": [2, -1], "out": Out((2, 3))}, 161002),
    ("aclnnRepeat", {"self": X, "repeats": [2], "out": Out((2, 6))}, 161002),
    ("aclnnRepeat", {"self": X, "repeats": [2] * 5, "out": Out((2, 2, 2, 4, 6))}, 161002),
    ("aclnnRoll", {"x": X, "shifts": [1, 1], "dims": [0], "out": Out((2, 3))}, 161002),
    ("aclnnFlip", {"self": X, "dims": [0, -2], "out": Out((2, 3))}, 161002),
    ("aclnnSlice", {"self": X, "dim": 1, "start": 0, "end": 3, "step": 0, "out": Out((2, 3))}, 161002),
    ("aclnnTril", {"self": X[0], "diagonal": 0, "out": Out((3,))}, 161002),
    ("aclnnTriu", {"self": X[0], "diagonal": 0, "out": Out((3,))}, 161002),
    ("aclnnConstantPadNd", {"self": X, "pad": [1], "value": 0.0, "out": Out((2, 4))}, 161002),
    ("aclnnConstantPadNd", {"self": X, "pad": [-2, -2], "value": 0.0, "out": Out((2, 0))}, 161002),
    ("aclnnReflectionPad1d", {"self": X, "padding": [3, 0], "out": Out((2, 6))}, 161002),
    ("aclnnRepeatInterleaveInt", {"self": X, "repeats": 2, "outputSize": 11, "out": Out((11,))}, 161002),
    (
        "aclnnIm2col",
        {
            "self": X[None],
            "kernelSize": [4, 4],
            "dilation": [1, 1],
            "padding": [0, 0],
            "stride": [1, 1],
            "out": Out((16, 0)),
        },
        161002,
    ),
    ("aclnnChannelShuffle", {"self": X[None], "groups": 3, "out": Out((1, 2, 3))}, 161002),
    ("aclnnStridedSlice", {"self": X, "begin": [0], "end": [1], "strides": [0], **MASKS, "out": Out((1, 3))}, 161002),
]


@pytest.mark.parametrize(("name", "arguments", "code"), REFUSALS)
def test_refusals(name: str, arguments: dict[str, Any], code: int) -> None:
    assert refused(name, **arguments) == code
