"""The emulator's sorting, selection, search and distinct values against PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from ._cases import ALL, FLOATS, INTS, NUMBERS, Built, Case, Maker, each, run  # noqa: E402
from ._kernels import Out, call, refused  # noqa: E402

pytestmark = pytest.mark.oracle
PAIR = ("valuesOut", "indicesOut")


def distinct(t: Maker, *shape: int, nan: bool = False) -> Any:
    """All values of the last axis different, so that their order is the only one."""
    rows, size = 1, shape[-1]
    for n in shape[:-1]:
        rows *= n
    order = [torch.randperm(size, generator=t.generator) for _ in range(rows)]
    x = torch.stack(order).reshape(shape).to(getattr(torch, t.dtype))
    if nan and x.is_floating_point():
        x[..., 1] = float("nan")
    return x.transpose(0, -1).contiguous().transpose(0, -1) if t.strided else x


def sorting(t: Maker, dim: int, descending: bool, nan: bool) -> Built:
    x = t(4, 5, nan=nan)
    values, places = torch.sort(x, dim=dim, descending=descending, stable=True)
    return ({"self": x, "stable": True, "dim": dim, "descending": descending}, dict(zip(PAIR, (values, places))))


def named(values: Any) -> dict[str, Any]:
    return dict(zip(PAIR, values))


SORTS = [
    *(
        Case("aclnnSort", (*FLOATS, *INTS, "int8", "uint8", "bool"), lambda t, d=d, o=o: sorting(t, d, o, True))
        for d in (0, -1)
        for o in (False, True)
    ),
    Case(
        "aclnnArgsort",
        (*FLOATS, *INTS, "uint8"),
        lambda t: (
            {"self": (x := distinct(t, 3, 6)), "dim": 1, "descending": True},
            {"out": x.argsort(1, descending=True)},
        ),
    ),
    *(
        Case(
            "aclnnTopk",
            (*FLOATS, "float64", *INTS, "int8", "uint8"),
            lambda t, g=g: (
                {"self": (x := distinct(t, 3, 6)), "k": 4, "dim": -1, "largest": g, "sorted": True},
                named(x.topk(4, -1, largest=g)),
            ),
        )
        for g in (False, True)
    ),
    Case(
        "aclnnTopk",
        FLOATS,
        lambda t: (
            {"self": (x := distinct(t, 3, 6, nan=True)), "k": 3, "dim": 1, "largest": True, "sorted": True},
            named(x.topk(3, 1)),
        ),
    ),
    *(
        Case(
            "aclnnKthvalue",
            (*FLOATS, *INTS, "int8", "uint8"),
            lambda t, k=k: (
                {"self": (x := distinct(t, 3, 6)), "k": k, "dim": 1, "keepdim": True},
                named(x.kthvalue(k, 1, keepdim=True)),
            ),
        )
        for k in (1, 4)
    ),
    *(
        Case(
            "aclnnMedianDim",
            (*FLOATS, *INTS, "uint8"),
            lambda t, n=n: ({"self": (x := distinct(t, 3, 6, nan=n)), "dim": 1, "keepDim": False}, named(x.median(1))),
        )
        for n in (False, True)
    ),
    *(
        Case(
            "aclnnNanMedianDim",
            (*FLOATS, *INTS, "uint8"),
            lambda t, n=n: (
                {"self": (x := distinct(t, 3, 6, nan=n)), "dim": -1, "keepDim": True},
                named(x.nanmedian(-1, keepdim=True)),
            ),
        )
        for n in (False, True)
    ),
    Case(
        "aclnnSortWithIndex",
        (*FLOATS, "int32"),
        lambda t: (
            {
                "x": (x := t(4, 5)),
                "index": (k := t(4, 5, dtype="int32")),
                "axis": 0,
                "descending": True,
                "stable": True,
            },
            dict(zip(PAIR, ((s := torch.sort(x, dim=0, descending=True, stable=True)).values, k.gather(0, s.indices)))),
        ),
        layouts=("dense",),
    ),
    Case("aclnnMedian", NUMBERS, lambda t: ({"self": (x := t(3, 4))}, {"valuesOut": x.median()})),
    Case("aclnnMedian", FLOATS, lambda t: ({"self": (x := t(3, 4, nan=True))}, {"valuesOut": x.median()})),
    Case("aclnnNanMedian", NUMBERS, lambda t: ({"self": (x := t(3, 4, nan=True))}, {"out": x.nanmedian()})),
]


def search(t: Maker, rows: bool, right: bool, narrow: bool, sorter: bool) -> Built:
    sequence = t(3, 6) if rows else t(6)
    order = None
    if sorter:
        order = sequence.argsort(-1)
    else:
        sequence = sequence.sort(-1).values
    x = t(3, 5)
    y = torch.searchsorted(sequence.contiguous(), x.contiguous(), out_int32=narrow, right=right, sorter=order)
    return {"sortedSequence": sequence, "self": x, "outInt32": narrow, "right": right, "sorter": order}, {"out": y}


SEARCHES = [
    *(
        Case("aclnnSearchSorted", ("float32", "float16", "float64", *INTS, "uint8"), lambda t, o=o: search(t, *o))
        for o in (
            (False, False, False, False),
            (False, True, True, False),
            (True, False, True, False),
            (True, True, False, True),
        )
    ),
    Case(
        "aclnnSearchSorteds",
        ("float32", "int32"),
        lambda t: (
            {"sortedSequence": (s := t(6).sort().values), "self": 1, "outInt32": False, "right": True, "sorter": None},
            {"out": torch.searchsorted(s, 1, right=True)},
        ),
    ),
    *(
        Case(
            "aclnnBucketize",
            ("float32", *INTS),
            lambda t, r=r: (
                {"self": (x := t(3, 4)), "boundaries": (b := t(5).sort().values), "outInt32": True, "right": r},
                {"out": torch.bucketize(x.contiguous(), b, out_int32=True, right=r)},
            ),
        )
        for r in (False, True)
    ),
    *(
        Case(
            "aclnnIsInTensorScalar",
            (*ALL, "complex64"),
            lambda t, i=i: (
                {"element": (x := t(3, 4)), "testElement": 1, "assumeUnique": False, "invert": i},
                {"out": (x == 1) != i},
            ),
        )
        for i in (False, True)
    ),
    Case(
        "aclnnIsInScalarTensor",
        (*FLOATS, *INTS),
        lambda t: (
            {"element": 2, "testElements": (x := t(3, 4)), "assumeUnique": False, "invert": False},
            {"out": (x == 2).any()},
        ),
    ),
]


def unique(t: Maker, consecutive: bool, dim: int | None) -> Built:
    x = t.index(3, 4, 5).to(getattr(torch, t.dtype)) if dim is None else t.index(2, 5, 2).to(getattr(torch, t.dtype))
    if consecutive:
        values, inverse, counts = torch.unique_consecutive(x, True, True, dim)
    else:
        values, inverse, counts = torch.unique(x, True, True, True, dim)
    size = x.numel() if dim is None else x.shape[dim]
    outs = {"valueOut": Out((size,) if dim is None else tuple(x.shape), t.dtype), "countsOut": Out((size,), "int64")}
    want = {"valueOut": values, "inverseOut": inverse, "countsOut": counts}
    given: dict[str, Any] = {"self": x, "returnInverse": True, **outs, "inverseOut": Out(tuple(inverse.shape), "int64")}
    if not consecutive:
        given["sorted"] = True
    if consecutive or dim is None:
        given["returnCounts"] = True
    if consecutive or dim is not None:
        given["dim"] = 1000 if dim is None else dim
    return given, want


def unique_values(t: Maker) -> Built:
    x = t(4, 5)
    values, inverse = torch.unique(x, return_inverse=True)
    return {"self": x, "sorted": True, "returnInverse": True, "valueOut": Out((20,), t.dtype)}, {
        "valueOut": values,
        "inverseOut": inverse,
    }


DISTINCT = [
    Case("aclnnUnique", ALL, unique_values),
    Case("aclnnUnique2", ALL, lambda t: unique(t, False, None)),
    *(
        Case("aclnnUniqueConsecutive", (*FLOATS, *INTS, "uint8"), lambda t, d=d: unique(t, True, d))
        for d in (None, 0, 1)
    ),
    *(Case("aclnnUniqueDim", (*FLOATS, *INTS, "uint8"), lambda t, d=d: unique(t, False, d)) for d in (0, 1)),
]


EDGES = [  # no dimensions, no elements
    Case(
        "aclnnSort",
        FLOATS,
        lambda t: ({"self": (x := t(3, 0)), "stable": False, "dim": 1, "descending": False}, named(x.sort(1))),
    ),
    Case(
        "aclnnTopk",
        FLOATS,
        lambda t: ({"self": (x := t(3, 4)), "k": 0, "dim": 1, "largest": True, "sorted": True}, named(x.topk(0, 1))),
    ),
    Case("aclnnMedianDim", FLOATS, lambda t: ({"self": (x := t()), "dim": 0, "keepDim": False}, named(x.median(0)))),
    Case(
        "aclnnUnique2",
        FLOATS,
        lambda t: (
            {
                "self": (x := t(0)),
                "sorted": True,
                "returnInverse": True,
                "returnCounts": True,
                "valueOut": Out((0,), t.dtype),
                "countsOut": Out((0,), "int64"),
            },
            {"valueOut": x, "inverseOut": x.long(), "countsOut": x.long()},
        ),
    ),
    Case(
        "aclnnSearchSorted",
        ("float32",),
        lambda t: (
            {"sortedSequence": torch.empty(0), "self": t(3), "outInt32": False, "right": False, "sorter": None},
            {"out": torch.zeros(3, dtype=torch.int64)},
        ),
    ),
]


@each([*EDGES, *SORTS, *SEARCHES, *DISTINCT])
def test_values(case: Case, dtype: str, layout: str) -> None:
    run(case, dtype, layout)


def test_unique_without_counts_leaves_them_alone() -> None:
    x = torch.tensor([2.0, 1.0, 2.0])
    values, inverse, counts = call(
        "aclnnUnique2",
        self=x,
        sorted=True,
        returnInverse=False,
        returnCounts=False,
        valueOut=Out((3,)),
        inverseOut=Out((3,), "int64"),
        countsOut=Out((3,), "int64"),
    )
    assert values.tolist() == [1.0, 2.0]
    assert inverse.tolist() == counts.tolist() == [0x5A5A5A5A5A5A5A5A] * 3


X = torch.arange(6.0).reshape(2, 3)
REFUSALS: list[tuple[str, dict[str, Any], int]] = [
    (
        "aclnnSort",
        {
            "self": X,
            "stable": True,
            "dim": 2,
            "descending": False,
            "valuesOut": Out((2, 3)),
            "indicesOut": Out((2, 3), "int64"),
        },
        161002,
    ),
    (
        "aclnnSort",
        {
            "self": X,
            "stable": True,
            "dim": 0,
            "descending": False,
            "valuesOut": Out((2, 3)),
            "indicesOut": Out((2, 3), "int32"),
        },
        161002,
    ),
    (
        "aclnnSort",
        {
            "self": X,
            "stable": True,
            "dim": 0,
            "descending": False,
            "valuesOut": None,
            "indicesOut": Out((2, 3), "int64"),
        },
        161001,
    ),
    (
        "aclnnTopk",
        {
            "self": X,
            "k": 4,
            "dim": 1,
            "largest": True,
            "sorted": True,
            "valuesOut": Out((2, 4)),
            "indicesOut": Out((2, 4), "int64"),
        },
        161002,
    ),
    (
        "aclnnTopk",
        {
            "self": X,
            "k": 1,
            "dim": 1,
            "largest": True,
            "sorted": False,
            "valuesOut": Out((2, 1)),
            "indicesOut": Out((2, 1), "int64"),
        },
        161002,
    ),
    (
        "aclnnKthvalue",
        {"self": X, "k": 4, "dim": 1, "keepdim": False, "valuesOut": Out((2,)), "indicesOut": Out((2,), "int64")},
        161002,
    ),
    (
        "aclnnSearchSorted",
        {
            "sortedSequence": X,
            "self": X[:1],
            "outInt32": True,
            "right": False,
            "sorter": None,
            "out": Out((1, 3), "int32"),
        },
        161002,
    ),
    (
        "aclnnSearchSorted",
        {
            "sortedSequence": X[0],
            "self": X,
            "outInt32": True,
            "right": False,
            "sorter": None,
            "out": Out((2, 3), "int64"),
        },
        161002,
    ),
    (
        "aclnnUnique2",
        {
            "self": X,
            "sorted": True,
            "returnInverse": True,
            "returnCounts": False,
            "valueOut": Out((5,)),
            "inverseOut": Out((2, 3), "int64"),
            "countsOut": Out((6,), "int64"),
        },
        161002,
    ),
]


@pytest.mark.parametrize(("name", "arguments", "code"), REFUSALS)
def test_refusals(name: str, arguments: dict[str, Any], code: int) -> None:
    assert refused(name, **arguments) == code
