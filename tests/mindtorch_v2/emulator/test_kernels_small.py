"""Small functions of the experimental and newer libraries against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._direct import Direct, checked
from ._kernels import Out, refused
from .test_kernels_quantized_norm import F, dynamic, make, to_bytes, wide

RNG = np.random.default_rng(18)
I32 = np.int32
X = make(4, 6, dtype=F)
TARGET, GRAD = np.sign(make(4, 6, dtype=F)), make(4, 6, dtype=F)
DST, SRC = make(20, dtype=F), make(12, dtype=F)
COPIED = DST.copy()
np.lib.stride_tricks.as_strided(COPIED[3:], (2, 3), (32, 8))[...] = SRC[1:7].reshape(2, 3)
VIEW: dict[str, Any] = {
    "dst": DST, "dst_size": np.array([2, 3]), "dst_stride": np.array([8, 2]), "dst_storage_offset": np.array([3]),
    "src": SRC, "src_size": np.array([2, 3]), "src_stride": np.array([3, 1]), "src_storage_offset": np.array([1]),
}  # fmt: skip
BLOCKS = make(5, 7, dtype=F)


def blocks() -> tuple[np.ndarray, np.ndarray]:
    y, scales = np.zeros((5, 7), np.int8), np.zeros((3, 2), F)
    for i, j in np.ndindex(3, 2):
        part = (slice(2 * i, 2 * i + 2), slice(4 * j, 4 * j + 4))
        scale = max(np.abs(wide(BLOCKS[part])).max() / 127, 0.012)
        y[part], scales[i, j] = to_bytes(wide(BLOCKS[part]) / scale), scale
    return y, scales


HALF = make(3, 8)
BYTES, SCALE = dynamic(wide(HALF))
LOW, HIGH = wide(HALF).min(-1), wide(HALF).max(-1)
SPREAD = (HIGH - LOW) / 255
SHIFT = 127 - HIGH / SPREAD
BLOCK: dict[str, Any] = {"x": BLOCKS, "minScale": 0.012, "roundModeOptional": "rint", "dstType": 2, "rowBlockSize": 2,
                         "colBlockSize": 4}  # fmt: skip
DYNAMIC: dict[str, Any] = {"x": HALF, "dstType": 2, "quantMode": "pertoken"}
PERMUTE, IN_OFFSET = np.array([2, 0, 1], I32), np.array([0, 2, 5, 6], I32)
OUT_OFFSET = np.array([0, 1, 3, 6], I32)

CASES = [
    Direct("aclnnReduceMinV2", {"x": X, "axes": 1, "keepdims": 0}, {"y": X.min(1)}),
    Direct("aclnnReduceMinV2", {"x": X, "axes": -2, "keepdims": 1}, {"y": X.min(0, keepdims=True)}),
    Direct("aclnnHingeLossGrad", {"predict": X, "target": TARGET, "gradOutput": GRAD},
           {"gradInput": np.where(TARGET * X < 1, -TARGET * GRAD, 0).astype(F)}),
    Direct("aclnnExpandv", {"self": np.arange(4, dtype=I32), "shape": [3, 2, 4]},
           {"out": np.broadcast_to(np.arange(4, dtype=I32), (3, 2, 4)).copy()}),
    Direct("aclnnViewCopy", VIEW, {"dst_out": COPIED}),
    Direct("aclnnDataFormatDimMap", {"x": np.array([0, 1, 2, 3, -1], I32), "srcFormat": "NHWC", "dstFormat": "NCHW"},
           {"y": np.array([0, 2, 3, 1, 1], I32)}),
    Direct("aclnnExpandIntoJaggedPermute", {"permute": PERMUTE, "inputOffset": IN_OFFSET, "outputOffset": OUT_OFFSET,
                                            "outputSize": 6}, {"outputPermuteOut": np.array([5, 0, 1, 2, 3, 4], I32)}),
    Direct("aclnnDynamicBlockQuant", BLOCK, {"yOut": blocks()[0], "scaleOut": blocks()[1]}),
    Direct("aclnnDynamicBlockQuantV2", {**BLOCK, "dstTypeMax": 0.0}, {"yOut": blocks()[0], "scaleOut": blocks()[1]}),
    *(Direct(f"aclnnDynamicQuant{version}", {**DYNAMIC, "isSymmetrical": True, **extra},
           {"yOut": BYTES, "scaleOut": SCALE})
      for version, extra in (("V3", {}), ("V4", {"dstTypeMax": 0.0}))),
    *(Direct(f"aclnnDynamicQuant{version}", {**DYNAMIC, "isSymmetrical": False, **extra},
             {"yOut": to_bytes(wide(HALF) / SPREAD[:, None] + SHIFT[:, None]), "scaleOut": SPREAD.astype(F),
              "offsetOut": SHIFT.astype(F)})
      for version, extra in (("V3", {}), ("V4", {"dstTypeMax": 0.0}))),
]  # fmt: skip


test_values, test_refusals = checked(CASES)


def test_more_refusals() -> None:
    outside = {**VIEW, "dst_stride": np.array([8, 5])}
    assert refused("aclnnViewCopy", **outside, dst_out=Out((20,))) == 507015
    x = np.array([0], I32)
    assert refused("aclnnDataFormatDimMap", x=x, srcFormat="NHWC", dstFormat="NCH", y=Out((1,), "int32")) == 161002
    outs = {"yOut": Out((5, 7), "int8"), "scaleOut": Out((3, 2))}
    assert refused("aclnnDynamicBlockQuant", **{**BLOCK, "rowBlockSize": 0}, **outs) == 161002
    assert refused("aclnnDynamicBlockQuant", **{**BLOCK, "dstType": 36}, **outs) == 161002
    outs = {"yOut": Out((3, 8), "int8"), "scaleOut": Out((3,))}
    assert refused("aclnnDynamicQuantV3", **{**DYNAMIC, "quantMode": "other"}, isSymmetrical=True, **outs) == 161002


def test_a_macro_that_names_no_function_fails_the_build(tmp_path: Any) -> None:
    import pytest
    from generate import implemented

    (tmp_path / "one.cpp").write_text("ACLNN(aclnnAbs, plan, run)\n")
    assert implemented(tmp_path) == {"aclnnAbs"}
    (tmp_path / "two.cpp").write_text("ACLNN(\n    aclnnExp, plan, run)\n")
    with pytest.raises(SystemExit, match="two.cpp:1"):
        implemented(tmp_path)
