"""Grouped products of small floats with what follows them, blocks of another size, turned matrices in blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ._kernels import Out, assert_same, call, refused
from .test_kernels_block_scales import numbers, powers, spread
from .test_kernels_microscaled import E2M1, E4M3, E5M2, E8M0, code, largest, microscaled
from .test_kernels_quantized_norm import F, H, make, wide

ROWS, GROUPS, INNER, COLUMNS = 7, 3, 96, 140
ENDS = np.array([2, 2, 6])
GROUP_OF = np.searchsorted(ENDS, np.arange(ROWS), "right")


def products(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Each row by the matrix of its group; rows behind the last group are zero."""
    return np.stack([x[i] @ w[g] if g < GROUPS else np.zeros(w.shape[2]) for i, g in enumerate(GROUP_OF)])


def gated(y: np.ndarray) -> np.ndarray:
    left, right = y[:, : y.shape[1] // 2], y[:, y.shape[1] // 2 :]
    return left / (1 + np.exp(-np.maximum(left, -500))) * right


@pytest.mark.parametrize("dtype", [E4M3, E5M2, E2M1])
def test_gate_in_pairs(dtype: Any) -> None:
    x, w = numbers(ROWS, INNER, dtype=dtype), numbers(GROUPS, INNER, COLUMNS, dtype=dtype)
    p, q = powers(ROWS, 2, 2), powers(GROUPS, 2, COLUMNS, 2)
    by_group = np.stack([spread(one, 0, INNER) for one in q])
    y = gated(products(np.asarray(x, float) * spread(p, 1, INNER), np.asarray(w, float) * by_group))
    want, scales = microscaled(y, 1, dtype)
    given: dict[str, Any] = {
        "x": x, "weight": [w], "weightScale": [q], "xScale": p, "groupList": ENDS, "dequantMode": 2,
        "dequantDtype": 0, "quantMode": 2, "groupListType": 0, "output": Out(want.shape, want.dtype.name),
        "outputScale": Out(scales.shape, "float8_e8m0fnu"),
    }  # fmt: skip
    got = call("aclnnGroupedMatmulSwigluQuantV2", **given)
    np.testing.assert_array_equal(got[1], scales)
    near = np.abs(np.asarray(got[0], float) - np.asarray(want, float)) <= 0.26 * np.maximum(np.abs(want.astype(F)), 1)
    assert near.all() and (got[0] == want).mean() > 0.98  # a sum in another order may fall on another side
    for wrong in ({"weightScale": [powers(GROUPS, 1, COLUMNS, 2)]}, {"xScale": powers(ROWS, 1, 2)},
                  {"outputScale": Out((ROWS, 1, 2), "float8_e8m0fnu")}, {"quantMode": 3},
                  {"xScale": np.ones(ROWS, F)}):  # fmt: skip
        assert refused("aclnnGroupedMatmulSwigluQuantV2", **{**given, **wrong}) == 161002, wrong


@pytest.mark.parametrize("dtype", [E4M3, E5M2])
def test_gate_by_columns(dtype: Any) -> None:
    """A scale for each column, one for each row, and one for each row of the result."""
    x, w = numbers(ROWS, INNER, dtype=dtype), numbers(GROUPS, INNER, COLUMNS, dtype=dtype)
    columns, rows = (np.abs(make(*s, dtype=F)) + F(0.1) for s in ((GROUPS, COLUMNS), (ROWS,)))
    y = gated(products(np.asarray(x, float), np.asarray(w, float) * wide(columns)[:, None]) * wide(rows)[:, None])
    scale = np.abs(y).max(1) / largest(dtype)
    got = call(
        "aclnnGroupedMatmulSwigluQuantV2", x=x, weight=[w], weightScale=[columns], xScale=rows, groupList=ENDS,
        dequantMode=0, dequantDtype=0, quantMode=0, groupListType=0, output=Out(y.shape, x.dtype.name),
        outputScale=Out((ROWS,)),
    )  # fmt: skip
    np.testing.assert_allclose(got[1], scale, rtol=1e-5)
    with np.errstate(invalid="ignore"):
        want = np.nan_to_num(y / scale[:, None]).astype(F).astype(dtype)
    assert (got[0] == want).mean() > 0.98


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("dtype", [E4M3, E2M1])
def test_way_back_in_pairs(turned: bool, dtype: Any) -> None:
    x, w = numbers(ROWS, INNER, dtype=dtype), numbers(GROUPS, INNER, COLUMNS, dtype=dtype)
    p, q = powers(ROWS, 2, 2), powers(GROUPS, 2, COLUMNS, 2)
    by_group = np.stack([spread(one, 0, INNER) for one in q])
    y = products(np.asarray(x, float) * spread(p, 1, INNER), np.asarray(w, float) * by_group)
    logit, rows = np.abs(make(ROWS, dtype=F)), np.array([0, 1, 2, 0, 1, 2, 3])
    want = np.zeros((4, COLUMNS))
    for i in range(ENDS[-1]):
        want[rows[i]] += wide(logit)[i] * y[i]
    given: dict[str, Any] = {
        "x1": x, "x2": w.transpose(0, 2, 1).copy() if turned else w,
        "scaleOptional": q.transpose(0, 2, 1, 3).copy() if turned else q, "pertokenScaleOptional": p,
        "groupListOptional": ENDS, "logitOptional": logit, "rowIndexOptional": rows, "dtype": 0,
        "sharedInputWeight": 1.0, "sharedInputOffset": 0, "transposeX1": False, "transposeX2": turned,
        "groupListType": 0, "out": Out((4, COLUMNS)),
    }  # fmt: skip
    assert_same(call("aclnnGroupedMatmulFinalizeRoutingV3", **given), want.astype(F), 200)
    assert refused("aclnnGroupedMatmulFinalizeRoutingV3", **{**given, "pertokenScaleOptional": None}) == 161002


def test_blocks_of_another_size() -> None:
    """Two blocks of 32 with one number for both are one of 64."""
    x = make(3, 150, dtype=F)
    sizes = np.array([np.abs(wide(x)[:, i : i + 64]).max(1) for i in range(0, 150, 64)]).T
    scale = 2.0 ** (np.floor(np.log2(sizes)) - np.floor(np.log2(largest(E4M3))))
    top = largest(E4M3)
    want = np.clip(wide(x) / np.repeat(scale, 64, 1)[:, :150], -top, top).astype(F).astype(E4M3)
    pairs = np.full((3, 4), 2.0**-127)
    pairs[:, :3] = scale
    given: dict[str, Any] = {
        "x": x.astype(F), "axis": -1, "roundModeOptional": "rint", "dstType": code(E4M3), "scaleAlg": 0,
        "blocksize": 64, "yOut": Out(x.shape, "float8_e4m3fn"), "mxscaleOut": Out((3, 2, 2), "float8_e8m0fnu"),
    }  # fmt: skip
    got = call("aclnnDynamicMxQuant", **given)
    assert_same(got[0], want)
    assert_same(got[1], pairs.reshape(3, 2, 2).astype(F).astype(E8M0))
    for wrong in (0, 33, 1056, -32):
        assert refused("aclnnDynamicMxQuant", **{**given, "blocksize": wrong}) == 161002


@pytest.mark.parametrize("flat", [False, True])
def test_turned_matrices_in_blocks(flat: bool) -> None:
    x, left, right = make(2, 5, 16, dtype=H), make(5, 5, dtype=H), make(16, 16, dtype=H)
    both = (wide(left) @ wide(x) @ wide(right)).reshape(2, 80)
    want, scales = microscaled(both, 1, E2M1)
    given: dict[str, Any] = {
        "x": x, "kroneckerP1": left, "kroneckerP2": right, "clipRatio": 1.0,
        "out": Out((2, 80) if flat else (2, 5, 16), "float4_e2m1fn"), "quantScale": Out((2, 2, 2), "float8_e8m0fnu"),
    }  # fmt: skip
    out, found = call("aclnnFlatQuant", **given)
    np.testing.assert_array_equal(out.reshape(2, 80).astype(F), want.astype(F))
    np.testing.assert_array_equal(found, scales)
    assert refused("aclnnFlatQuant", **{**given, "quantScale": Out((2,))}) == 161002
    _, found = call("aclnnFlatQuantV2", **given, dstTypeMax=8.0)
    tops = [[np.abs(row[i : i + 32]).max() for i in range(0, 80, 32)] for row in both]
    np.testing.assert_array_equal(found.reshape(2, 4)[:, :3].astype(F), 2.0 ** np.ceil(np.log2(np.array(tops) / 8)))
