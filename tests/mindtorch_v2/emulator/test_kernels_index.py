"""The emulator's reading and writing by index against PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from ._cases import ALL, FLOATS, INTS, Built, Case, Maker, each, run  # noqa: E402
from ._kernels import Out, Scalar, call, refused  # noqa: E402

pytestmark = pytest.mark.oracle
COMPLEX = ("complex64", "complex128")
DEVICE_FAULT = 507015
NONE = torch.empty(0, dtype=torch.int64)  # leaves an axis alone


def advanced(t: Maker, entries: list[Any], shape: tuple[int, ...] = (4, 5, 6)) -> Built:
    x = t(*shape)
    index = tuple(slice(None) if e is NONE else e for e in entries)
    return {"self": x, "indices": entries}, {"out": x[index].clone()}


def put(t: Maker, entries: list[Any], value_shape: tuple[int, ...], accumulate: bool) -> Built:
    x = t(4, 5, 6)
    v = t(*value_shape)
    index = tuple(slice(None) if e is NONE else e for e in entries)
    want = x.to(torch.float64 if t.inexact else x.dtype, copy=True)
    if accumulate:
        want.index_put_(index, v.to(want.dtype), accumulate=True)
    else:
        want[index] = v.to(want.dtype)
    given = {"selfRef": x, "indices": entries, "values": v, "accumulate": accumulate, "unsafe": False}
    return given, {"selfRef": want.to(x.dtype)}


def scatter(self: str, reduce: int, t: Maker, value: bool, axis: int = 1) -> Built:
    x, index = t(3, 5), t.index(5, 2, 4)
    if reduce == 0:  # places written twice are undefined
        index = torch.stack([torch.randperm(5, generator=t.generator)[:4] for _ in range(2)])
    src: Any = 2.0 if value and t.inexact else 3 if value else t(3, 4)
    how = {0: None, 1: "sum", 2: "prod"}[reduce]
    wide = x.double() if x.dtype in (torch.float16, torch.bfloat16) else x
    source = torch.full((3, 4), src, dtype=wide.dtype) if value else src.to(wide.dtype)
    want = (wide.scatter_reduce(axis, index, source, how) if how else wide.scatter(axis, index, source)).to(x.dtype)
    given = {self: x, "dim": axis, "index": index, "value" if value else "src": src, "reduce": reduce}
    return given, {"out" if self == "self" else self: want}


def scatter_reduce(self: str, reduce: int, include: bool, t: Maker) -> Built:
    x, index, src = t(4, 5), t.index(4, 3, 5, dtype="int32"), t(3, 5)
    how = {1: "sum", 2: "prod", 3: "amax", 4: "amin", 5: "mean"}[reduce]
    wide = (x.double(), src.double()) if t.inexact else (x, src)
    want = wide[0].scatter_reduce(0, index.long(), wide[1], how, include_self=include).to(x.dtype)
    given = {self: x, "dim": 0, "index": index, "src": src, "reduce": reduce, "includeSelf": include}
    return given, {"out" if self == "self" else self: want}


def index_add(t: Maker, **more: Any) -> Built:
    x, index, source = t(4, 5), t.index(5, 7), t(4, 7)
    wide = (x.double(), source.double()) if t.inexact else (x, source)
    return (
        {"self": x, "dim": 1, "index": index, "source": source, "alpha": 2, **more},
        {"out": wide[0].index_add(1, index, wide[1], alpha=2).to(x.dtype)},
    )


def permutation(t: Maker, size: int, count: int) -> Any:
    return torch.randperm(size, generator=t.generator)[:count]


GATHERS = [
    *(
        Case(
            "aclnnIndexSelect",
            (*ALL, *COMPLEX),
            lambda t, d=d, i=i: (
                {"self": (x := t(4, 4, 4)), "dim": d, "index": (k := t.index(4, 7, dtype=i))},
                {"out": x.index_select(d, k)},
            ),
        )
        for d, i in ((0, "int64"), (-1, "int32"))
    ),
    Case(
        "aclnnIndexSelect",
        FLOATS,
        lambda t: ({"self": (x := t(4, 4)), "dim": 1, "index": torch.tensor(2)}, {"out": x[:, 2:3].contiguous()}),
    ),
    Case(
        "aclnnGatherV2",
        (*ALL, *COMPLEX),
        lambda t: ({"self": (x := t(4, 5)), "dim": 1, "index": (k := t.index(5, 2, 3))}, {"out": x[:, k]}),
    ),
    Case(
        "aclnnGather",
        ALL,
        lambda t: ({"self": (x := t(4, 5)), "dim": 1, "index": (k := t.index(5, 3, 7))}, {"out": x.gather(1, k)}),
    ),
    Case(
        "aclnnGather",
        ALL,
        lambda t: (
            {"self": (x := t(4, 5)), "dim": -2, "index": (k := t.index(4, 6, 5, dtype="int32"))},
            {"out": x.gather(0, k.long())},
        ),
    ),
    Case(
        "aclnnGatherNd",
        ("float32", "float16", "bfloat16", "int32", "int64", "uint8", "bool"),
        lambda t: (
            {"self": (x := t(4, 5, 2)), "indices": (k := t.index(4, 3, 2)), "negativeIndexSupport": False},
            {"out": x[k[:, 0], k[:, 1]]},
        ),
    ),
    Case(
        "aclnnGatherNd",
        FLOATS,
        lambda t: (
            {"self": (x := t(4, 5, 2)), "indices": (k := t.index(4, 3, 2) - 4), "negativeIndexSupport": True},
            {"out": x[k[:, 0], k[:, 1]]},
        ),
    ),
    Case(
        "aclnnGatherV3",
        ("float32", "int64"),
        lambda t: (
            {"self": (x := t(2, 4, 5)), "dim": 1, "index": (k := t.index(4, 2, 3)), "batchDims": 1, "mode": 1},
            {"out": torch.stack([x[b][k[b]] for b in range(2)])},
        ),
    ),
    Case(
        "aclnnTake",
        (*ALL, *COMPLEX),
        lambda t: ({"self": (x := t(4, 5)), "index": (k := t.index(20, 2, 3))}, {"out": x.take(k)}),
    ),
    Case(
        "aclnnEmbedding",
        (*ALL, *COMPLEX),
        lambda t: ({"weight": (w := t(7, 3)), "indices": (k := t.index(7, 2, 4, dtype="int32"))}, {"out": w[k.long()]}),
    ),
    Case(
        "aclnnMaskedSelect",
        ALL,
        lambda t: (
            {"self": (x := t(4, 5)), "mask": (m := t(5, dtype="bool")), "out": Out((20,), t.dtype)},
            {"out": x.masked_select(m)},
        ),
    ),
    Case("aclnnNonzero", ALL, lambda t: ({"self": (x := t(3, 4)), "out": Out((12, 2), "int64")}, {"out": x.nonzero()})),
    Case(
        "aclnnNonzeroV2",
        ALL,
        lambda t: ({"self": (x := t(3, 4)), "out": Out((2, 12), "int64")}, {"out": x.nonzero().T.contiguous()}),
    ),
]
ADVANCED = [
    Case("aclnnIndex", ALL, lambda t: advanced(t, [t.index(4, 3)])),
    Case("aclnnIndex", FLOATS, lambda t: advanced(t, [t.index(4, 3, 1), t.index(5, 2, dtype="int32")])),
    Case("aclnnIndex", FLOATS, lambda t: advanced(t, [NONE, t.index(5, 3) - 5])),
    Case("aclnnIndex", FLOATS, lambda t: advanced(t, [NONE, t.index(5, 2, 3), t.index(6, 3)])),
    Case("aclnnIndex", FLOATS, lambda t: advanced(t, [t.index(4, 3), NONE, t.index(6, 3)])),
    Case("aclnnIndex", FLOATS, lambda t: advanced(t, [t(4, 5, dtype="bool")])),
    Case("aclnnIndex", FLOATS, lambda t: advanced(t, [NONE, t(5, dtype="bool")])),
    Case("aclnnIndexPutImpl", ALL, lambda t: put(t, [permutation(t, 4, 3)], (3, 5, 6), False)),
    Case("aclnnIndexPutImpl", ALL, lambda t: put(t, [permutation(t, 4, 3)], (3, 5, 6), True)),
    Case("aclnnIndexPutImpl", FLOATS, lambda t: put(t, [t.index(4, 9), t.index(5, 9)], (9, 6), True), 2),
    Case("aclnnIndexPutImpl", FLOATS, lambda t: put(t, [NONE, t.index(5, 3)], (1,), False)),
    Case(
        "aclnnIndexPutImpl", FLOATS, lambda t: put(t, [permutation(t, 4, 3), NONE, permutation(t, 6, 3)], (3, 5), False)
    ),
    Case("aclnnIndexPutImpl", FLOATS, lambda t: put(t, [t(4, 5, dtype="bool")], (1, 6), False)),
]
SCATTERS = [
    Case(
        "aclnnScatterAdd",
        (*ALL, *COMPLEX),
        lambda t: (
            {"self": (x := t(3, 5)), "dim": 1, "index": (k := t.index(5, 2, 4)), "src": (s := t(3, 4).contiguous())},
            {
                "out": (
                    x.double().scatter_add(1, k, s.double()) if x.is_floating_point() else x.scatter_add(1, k, s)
                ).to(x.dtype)
            },
        ),
    ),
    *(Case("aclnnScatter", ALL, lambda t, r=r: scatter("self", r, t, False)) for r in (0, 1, 2)),
    *(Case("aclnnInplaceScatter", ALL, lambda t, r=r: scatter("selfRef", r, t, False)) for r in (0, 1, 2)),
    *(Case("aclnnScatterValue", ALL, lambda t, r=r: scatter("self", r, t, True)) for r in (0, 1, 2)),
    *(Case("aclnnInplaceScatterValue", ALL, lambda t, r=r: scatter("selfRef", r, t, True)) for r in (0, 1, 2)),
    *(
        Case("aclnnScatterReduce", (*FLOATS, *INTS), lambda t, r=r, i=i: scatter_reduce("self", r, i, t))
        for r in (1, 2, 3, 4, 5)
        for i in (False, True)
    ),
    *(
        Case("aclnnInplaceScatterReduce", (*FLOATS, *INTS), lambda t, r=r: scatter_reduce("selfRef", r, True, t))
        for r in (1, 5)
    ),
    Case("aclnnIndexAdd", ALL, index_add),
    Case("aclnnIndexAddV2", ALL, lambda t: index_add(t, mode=1)),
    Case(
        "aclnnIndexCopy",
        (*ALL, *COMPLEX),
        lambda t: (
            {
                "selfRef": (x := t(4, 5)),
                "dim": 0,
                "index": (k := permutation(t, 4, 2)),
                "source": (s := t(2, 5)),
                "outRef": Out((4, 5), t.dtype),
            },
            {"selfRef": x, "outRef": x.index_copy(0, k, s)},
        ),
    ),
    Case(
        "aclnnInplaceIndexCopy",
        (*ALL, *COMPLEX),
        lambda t: (
            {"selfRef": (x := t(4, 5)), "dim": 1, "index": (k := permutation(t, 5, 2)), "source": (s := t(4, 2))},
            {"selfRef": x.index_copy(1, k, s)},
        ),
    ),
    Case(
        "aclnnIndexFill",
        (*FLOATS, *INTS, "bool"),
        lambda t: (
            {"self": (x := t(4, 5)), "dim": 1, "index": (k := t.index(5, 2)), "value": 1},
            {"out": x.index_fill(1, k, 1)},
        ),
    ),
    Case(
        "aclnnInplaceIndexFill",
        (*FLOATS, *INTS, "bool"),
        lambda t: (
            {"selfRef": (x := t(4, 5)), "dim": 0, "index": (k := t.index(4, 2, dtype="int32")), "value": 1},
            {"selfRef": x.index_fill(0, k.long(), 1)},
        ),
    ),
    Case(
        "aclnnIndexFillTensor",
        (*FLOATS, *INTS, "bool"),
        lambda t: (
            {"self": (x := t(4, 5)), "dim": 1, "index": [0, -1], "value": Scalar(1, t.dtype)},
            {"out": x.index_fill(1, torch.tensor([0, 4]), 1)},
        ),
    ),
    Case(
        "aclnnInplaceIndexFillTensor",
        (*FLOATS, *INTS, "bool"),
        lambda t: (
            {"selfRef": (x := t(4, 5)), "dim": -2, "index": [3], "value": Scalar(1, t.dtype)},
            {"selfRef": x.index_fill(0, torch.tensor([3]), 1)},
        ),
    ),
    *(
        Case(
            "aclnnInplacePut",
            (*ALL, *COMPLEX),
            lambda t, a=a: (
                {
                    "selfRef": (x := t(4, 5)),
                    "index": (k := permutation(t, 20, 6).reshape(2, 3)),
                    "source": (s := t(2, 3)),
                    "accumulate": a,
                },
                {"selfRef": x.clone().put_(k, s, accumulate=a)},
            ),
        )
        for a in (False, True)
    ),
    Case(
        "aclnnInplaceMaskedScatter",
        ALL,
        lambda t: (
            {"selfRef": (x := t(4, 5)), "mask": (m := t(4, 1, dtype="bool")), "source": (s := t(20))},
            {"selfRef": x.masked_scatter(m, s)},
        ),
    ),
    Case(
        "aclnnScatterNd",
        ("float32", "float16", "bfloat16", "bool"),
        lambda t: (
            {
                "data": (x := t(4, 5, 2)),
                "indices": (k := torch.stack([permutation(t, 4, 3), t.index(5, 3)], 1)),
                "updates": (u := t(3, 2)),
            },
            {"out": x.index_put((k[:, 0], k[:, 1]), u)},
        ),
    ),
    Case(
        "aclnnScatterNdUpdate",
        ("float32", "float16", "bfloat16", "int64", "bool", "int8"),
        lambda t: (
            {
                "varRef": (x := t(4, 5)),
                "indices": (k := permutation(t, 4, 3).reshape(3, 1).int()),
                "updates": (u := t(3, 5)),
            },
            {"varRef": x.index_put((k[:, 0].long(),), u)},
        ),
    ),
    Case(
        "aclnnTfScatterAdd",
        ("float32", "float16", "bfloat16", "int32", "int8", "uint8"),
        lambda t: (
            {"varRef": (x := t(4, 5)), "indices": (k := t.index(4, 2, 3)), "updates": (u := t(2, 3, 5))},
            {"varRef": x.double().index_add(0, k.reshape(-1), u.reshape(6, 5).double()).to(x.dtype)},
        ),
    ),
    *(
        Case(
            f"aclnnScatter{name}",
            ("float32", "float16", "int32", "int8"),
            lambda t, f=f: (
                {
                    "varRef": (x := t(4, 5)),
                    "indices": torch.tensor([2, 0]),
                    "updates": (u := t(2, 5) * 2 + 1),
                    "useLocking": False,
                },
                {"varRef": torch.stack([f(x[0], u[1]), x[1], f(x[2], u[0]), x[3]])},
            ),
        )
        for name, f in (
            ("Mul", torch.mul),
            ("Max", torch.maximum),
            ("Min", torch.minimum),
            ("Div", lambda a, b: torch.div(a, b, rounding_mode=None if a.is_floating_point() else "trunc")),
        )
    ),
    Case(
        "aclnnInplaceScatterUpdate",
        ("float32", "float16", "bfloat16", "int32", "int8", "uint8"),
        lambda t: (
            {
                "data": (x := t(2, 3, 6, 4)),
                "indices": torch.tensor([1, 3]),
                "updates": (u := t(2, 3, 2, 4)),
                "axis": -2,
            },
            {"data": torch.stack([torch.cat([x[b, :, :k], u[b], x[b, :, k + 2 :]], 1) for b, k in ((0, 1), (1, 3))])},
        ),
    ),
]


def assigned(x: Any, v: Any, cuts: tuple[slice, ...]) -> Any:
    y = x.clone()
    y[cuts] = v
    return y


SLICES = [
    Case(
        "aclnnStridedSliceAssignV2",
        (*FLOATS, "float64", *INTS, "int8"),
        lambda t: (
            {"varRef": (x := t(6, 5)), "inputValue": (v := t(3, 2)), "begin": [0, 1], "end": [6, 3], "strides": [2, 1]},
            {"varRef": assigned(x, v, (slice(0, 6, 2), slice(1, 3)))},
        ),
    ),
    Case(
        "aclnnStridedSliceAssignV2",
        FLOATS,
        lambda t: (
            {
                "varRef": (x := t(6, 5)),
                "inputValue": (v := t(6, 2)),
                "begin": [-2],
                "end": [99],
                "strides": [1],
                "axesOptional": [1],
            },
            {"varRef": assigned(x, v, (slice(None), slice(3, 5)))},
        ),
    ),
]


def bag(t: Maker, mode: int, weighted: bool = False) -> Built:
    w, k, offsets = t(7, 3), t.index(7, 6), torch.tensor([0, 2, 5])
    weights: Any = t(6) if weighted else None
    name = {0: "sum", 1: "mean", 2: "max"}[mode]
    wide = w.double()
    y = torch.nn.functional.embedding_bag(
        k, wide, offsets, mode=name, per_sample_weights=weights.double() if weighted else None
    )
    sizes = torch.tensor([2, 3, 1])
    want = {"output": y.to(w.dtype), "offset2bag": torch.tensor([0, 0, 1, 1, 1, 2]), "bagSize": sizes}
    best = sizes
    if mode == 2:
        best = torch.cat([k[a:b][wide[k[a:b]].argmax(0)] for a, b in ((0, 2), (2, 5), (5, 6))])
    want["maxIndices"] = best
    return {
        "weight": w,
        "indices": k,
        "offsets": offsets,
        "scaleGradByFreq": False,
        "mode": mode,
        "sparse": False,
        "perSampleWeights": weights,
        "includeLastOffset": False,
        "paddingIdx": -1,
    }, want


def dense_backward(t: Maker, padding: int, by_frequency: bool) -> Built:
    grad, k = t(2, 4, 3), t.index(5, 2, 4)
    want = torch.ops.aten.embedding_dense_backward(grad.double(), k, 6, padding, by_frequency).to(grad.dtype)
    return {
        "grad": grad,
        "indices": k,
        "numWeights": 6,
        "paddingIdx": padding % 2**64,
        "scaleGradByFreq": by_frequency,
    }, {"out": want}


EMBEDDINGS = [
    *(Case("aclnnEmbeddingBag", FLOATS, lambda t, m=m: bag(t, m)) for m in (0, 1, 2)),
    Case("aclnnEmbeddingBag", FLOATS, lambda t: bag(t, 0, True)),
    *(
        Case("aclnnEmbeddingDenseBackward", FLOATS, lambda t, p=p, f=f: dense_backward(t, p, f))
        for p, f in ((-1, False), (2, False), (-1, True))
    ),
    Case(
        "aclnnEmbeddingDenseGrad",
        ("float32", "float16"),
        lambda t: ({**(b := dense_backward(t, 2, True))[0], "paddingIdx": 2}, {"y": b[1]["out"]}),
    ),
    Case(
        "aclnnEmbeddingRenorm",
        FLOATS,
        lambda t: (
            {"selfRef": (w := t(5, 4)), "indices": torch.tensor([0, 3, 3]), "maxNorm": 0.5, "normType": 2.0},
            {
                "selfRef": torch.cat(
                    [
                        w[:1].double().renorm(2, 0, 0.5),
                        w[1:3].double(),
                        w[3:4].double().renorm(2, 0, 0.5),
                        w[4:].double(),
                    ]
                ).to(w.dtype)
            },
        ),
    ),
]


ONE = torch.tensor(0)
EDGES = [  # no dimensions, no elements
    Case("aclnnIndexSelect", FLOATS, lambda t: ({"self": (x := t()), "dim": 0, "index": ONE[None]}, {"out": x})),
    Case("aclnnGather", FLOATS, lambda t: ({"self": (x := t()), "dim": -1, "index": ONE}, {"out": x})),
    Case(
        "aclnnGather",
        FLOATS,
        lambda t: (
            {"self": (x := t(3, 4)), "dim": 1, "index": (k := torch.empty(3, 0, dtype=torch.int64))},
            {"out": x.gather(1, k)},
        ),
    ),
    Case(
        "aclnnScatterAdd",
        FLOATS,
        lambda t: ({"self": (x := t()), "dim": 0, "index": ONE, "src": (y := t())}, {"out": x + y}),
    ),
    Case(
        "aclnnScatter",
        FLOATS,
        lambda t: (
            {
                "self": (x := t(3, 4)),
                "dim": 0,
                "index": torch.empty(0, 4, dtype=torch.int64),
                "src": t(0, 4),
                "reduce": 0,
            },
            {"out": x},
        ),
    ),
    Case(
        "aclnnIndexAdd",
        FLOATS,
        lambda t: ({"self": (x := t()), "dim": 0, "index": ONE, "source": (y := t()), "alpha": 1}, {"out": x + y}),
    ),
    Case(
        "aclnnEmbedding",
        FLOATS,
        lambda t: ({"weight": t(3, 4), "indices": torch.empty(0, dtype=torch.int64)}, {"out": t(0, 4)}),
    ),
    Case(
        "aclnnMaskedSelect",
        FLOATS,
        lambda t: ({"self": (x := t()), "mask": torch.tensor(True), "out": Out((1,), t.dtype)}, {"out": x[None]}),
    ),
    Case(
        "aclnnIndexPutImpl",
        FLOATS,
        lambda t: (
            {
                "selfRef": (x := t(3, 4)),
                "indices": [torch.zeros(3, dtype=torch.bool)],
                "values": t(1),
                "accumulate": False,
                "unsafe": False,
            },
            {"selfRef": x},
        ),
    ),
]


@each([*EDGES, *GATHERS, *ADVANCED, *SCATTERS, *SLICES, *EMBEDDINGS])
def test_values(case: Case, dtype: str, layout: str) -> None:
    run(case, dtype, layout)


X = torch.arange(6.0).reshape(2, 3)
BAD = torch.tensor([5])
K = torch.tensor([[0, 1]])
ILLEGAL: list[tuple[str, dict[str, Any]]] = [
    ("aclnnIndexSelect", {"self": X, "dim": 0, "index": BAD, "out": Out((1, 3))}),
    ("aclnnIndexSelect", {"self": X, "dim": 0, "index": -BAD, "out": Out((1, 3))}),
    ("aclnnGather", {"self": X, "dim": 1, "index": BAD[None], "out": Out((1, 1))}),
    ("aclnnIndex", {"self": X, "indices": [BAD], "out": Out((1, 3))}),
    ("aclnnIndexPutImpl", {"selfRef": X, "indices": [BAD], "values": X[:1], "accumulate": False, "unsafe": False}),
    ("aclnnEmbedding", {"weight": X, "indices": BAD, "out": Out((1, 3))}),
    ("aclnnScatterAdd", {"self": X, "dim": 1, "index": BAD[None], "src": X, "out": Out((2, 3))}),
    ("aclnnIndexAdd", {"self": X, "dim": 0, "index": BAD, "source": X[:1], "alpha": 1, "out": Out((2, 3))}),
    ("aclnnInplaceMaskedScatter", {"selfRef": X, "mask": torch.ones(2, 3, dtype=torch.bool), "source": X[0]}),
    ("aclnnTake", {"self": X, "index": BAD + 1, "out": Out((1,))}),
    ("aclnnScatterNdUpdate", {"varRef": X.clone(), "indices": BAD[None], "updates": X[:1]}),
]
REFUSALS: list[tuple[str, dict[str, Any], int]] = [
    ("aclnnIndexSelect", {"self": X, "dim": 2, "index": K[0], "out": Out((2, 3))}, 161002),
    ("aclnnIndexSelect", {"self": X, "dim": 0, "index": K, "out": Out((2, 3))}, 161002),
    ("aclnnIndexSelect", {"self": X, "dim": 0, "index": K[0], "out": Out((3, 3))}, 161002),
    ("aclnnIndexSelect", {"self": X, "dim": 0, "index": None, "out": Out((3, 3))}, 161001),
    ("aclnnGather", {"self": X, "dim": 1, "index": K, "out": Out((1, 3))}, 161002),
    ("aclnnGather", {"self": X, "dim": 1, "index": K[0], "out": Out((2,))}, 161002),
    ("aclnnIndex", {"self": X, "indices": [K, K, K], "out": Out((1, 2))}, 161002),
    ("aclnnIndex", {"self": X, "indices": [K[0], torch.tensor([0, 1, 2])], "out": Out((2,))}, 161002),
    (
        "aclnnIndexPutImpl",
        {"selfRef": X, "indices": [K[0]], "values": X[:, :2], "accumulate": False, "unsafe": False},
        161002,
    ),
    (
        "aclnnIndexPutImpl",
        {"selfRef": X, "indices": [K[0]], "values": X.int(), "accumulate": False, "unsafe": False},
        161002,
    ),
    ("aclnnScatter", {"self": X, "dim": 0, "index": K, "src": X, "reduce": 3, "out": Out((2, 3))}, 161002),
    (
        "aclnnScatter",
        {"self": X, "dim": 0, "index": torch.zeros(3, 3, dtype=torch.int64), "src": X, "reduce": 0, "out": Out((2, 3))},
        161002,
    ),
    ("aclnnScatterAdd", {"self": X, "dim": 0, "index": K, "src": X.T, "out": Out((2, 3))}, 161002),  # not contiguous
    (
        "aclnnStridedSliceAssignV2",
        {"varRef": X, "inputValue": X[:, :1], "begin": [0], "end": [3], "strides": [2], "axesOptional": [1]},
        161002,
    ),
    ("aclnnStridedSliceAssignV2", {"varRef": X, "inputValue": X[:1], "begin": [0], "end": [2], "strides": [1]}, 161002),
    ("aclnnMaskedSelect", {"self": X, "mask": X > 1, "out": Out((3,))}, 161002),
    ("aclnnNonzero", {"self": X, "out": Out((4, 2), "int64")}, 161002),
    ("aclnnNonzero", {"self": X, "out": Out((6, 2), "int64", (1, 6))}, 161002),  # not contiguous
    ("aclnnEmbedding", {"weight": X, "indices": K, "out": Out((2, 3))}, 161002),
    (
        "aclnnEmbeddingDenseBackward",
        {"grad": X, "indices": K[0], "numWeights": 4, "paddingIdx": 0, "scaleGradByFreq": False, "out": Out((5, 3))},
        161002,
    ),
    (
        "aclnnIndexFillTensor",
        {"self": X, "dim": 0, "index": [2], "value": Scalar(0, "float32"), "out": Out((2, 3))},
        161002,
    ),
]


@pytest.mark.parametrize(("name", "arguments"), ILLEGAL)
def test_illegal_indices_are_device_faults(name: str, arguments: dict[str, Any]) -> None:
    assert refused(name, **arguments) == DEVICE_FAULT


@pytest.mark.parametrize(("name", "arguments", "code"), REFUSALS)
def test_refusals(name: str, arguments: dict[str, Any], code: int) -> None:
    assert refused(name, **arguments) == code


def test_empty_results_have_their_true_shape() -> None:
    x = torch.zeros(2, 3)
    assert call("aclnnNonzero", self=x, out=Out((6, 2), "int64")).shape == (0, 2)
    assert call("aclnnMaskedSelect", self=x, mask=x > 1, out=Out((6,))).shape == (0,)
    assert call("aclnnNonzero", self=torch.tensor(3.0), out=Out((1, 0), "int64")).shape == (1, 0)
