"""Cases with their numbers written out: what a function is given, what NumPy says it answers.

Invariant: a case is run, and then run again with each mistake its documents name: a required argument that is null, an
output of another shape, a dtype that is not listed.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from ._kernels import ROOT, In, Out, assert_same, call, facts, refused

sys.path.insert(0, str(ROOT / "csrc" / "ascend_emulator"))

from generate import must_be_given

NAMES = {
    "float32": "FLOAT", "float16": "FLOAT16", "float64": "DOUBLE", "int8": "INT8", "uint8": "UINT8", "int16": "INT16",
    "int32": "INT32", "int64": "INT64", "bool": "BOOL", "uint64": "UINT64",
}  # fmt: skip
NULL = (161001, 561103)


@dataclass
class Direct:
    name: str
    given: dict[str, Any]
    want: dict[str, Any]
    scale: float = 4
    free_shapes: tuple[str, ...] = field(default=())  # outputs of which another shape may be accepted


def arrays(value: Any) -> list[np.ndarray]:
    return [np.asarray(v) for v in value] if isinstance(value, list) else [np.asarray(value)]


def arguments(case: Direct) -> dict[str, Any]:
    fresh: dict[str, Any] = {}
    for name, value in case.want.items():
        if name in case.given:
            continue
        outs = [Out(a.shape, a.dtype.name) for a in arrays(value)]
        fresh[name] = outs if isinstance(value, list) else outs[0]
    return with_formats(case.name, {**case.given, **fresh})


def with_formats(name: str, values: dict[str, Any]) -> dict[str, Any]:
    """Tensors in the format that belongs to their rank, where documents do not list ND."""
    result = dict(values)
    for p in facts()[name]["params"]:
        value = result.get(p["name"])
        if value is None or "formats" not in p or {"ND", "any", "FRACTAL_NZ"} & set(p["formats"].split()):
            continue
        form = {2: "NC", 3: "NCL", 4: "NCHW", 5: "NCDHW"}[len(value.shape)]
        result[p["name"]] = Out(value.shape, value.dtype, format=form) if isinstance(value, Out) else In(value, form)
    return result


def reshaped(value: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """Like an argument, but of another shape or dtype."""
    if isinstance(value, Out):
        return Out(shape, dtype, format=value.format if len(shape) == len(value.shape) else "ND")
    array = np.ones(shape, dtype)
    return In(array, value.format, value.view) if isinstance(value, In) else array


def check(case: Direct) -> None:
    got = call(case.name, **arguments(case))
    outputs = got if isinstance(got, list) else [got]
    order = [p["name"] for p in facts()[case.name]["params"] if p["name"] in case.want]
    expected = [a for name in order for a in arrays(case.want[name])]
    assert len(outputs) == len(expected)
    for g, e in zip(outputs, expected):
        assert_same(g, e, case.scale)


def check_refusals(case: Direct) -> None:
    f, values = facts()[case.name], arguments(case)
    for p in f["params"]:
        name, value = p["name"], values.get(p["name"])
        if value is None:
            continue
        if must_be_given(f, p) and p["type"] != "char*":
            assert refused(case.name, **{**values, name: None}) in NULL, name
        shape = tuple(value.array.shape if isinstance(value, In) else np.shape(value) or getattr(value, "shape", ()))
        if isinstance(value, Out) and name not in case.free_shapes:
            wrong = reshaped(value, (*shape[:-1], shape[-1] + 3) if shape else (3,), value.dtype)
            assert refused(case.name, **{**values, name: wrong}) == 161002, name
        stated = p.get("dtypes", "")
        if p["type"] == "aclTensor*" and stated and not stated.startswith("="):
            # One is enough: the table is the same for all.
            unlisted = next(dtype for dtype, code in NAMES.items() if code not in stated.split())
            assert refused(case.name, **{**values, name: reshaped(value, shape, unlisted)}) == 161002, (name, unlisted)


def each(cases: list[Direct]) -> Any:
    """Parametrises a test with `case`."""
    seen: dict[str, int] = {}
    rows = []
    for case in cases:
        seen[case.name] = seen.get(case.name, 0) + 1
        rows.append(pytest.param(case, id=f"{case.name.removeprefix('aclnn')}{seen[case.name]}"))
    return pytest.mark.parametrize("case", rows)


def checked(cases: list[Direct]) -> tuple[Any, Any]:
    """Two tests of each case: what it computes, and what it refuses."""

    @each(cases)
    def test_values(case: Direct) -> None:
        check(case)

    @each(cases)
    def test_refusals(case: Direct) -> None:
        check_refusals(case)

    return test_values, test_refusals
