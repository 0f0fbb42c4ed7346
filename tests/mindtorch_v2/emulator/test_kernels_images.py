"""Images against NumPy and PyTorch: resizing by scales, blurring, blending, pools, regions, samples of several maps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ._chips import on_chip
from ._direct import Direct, check, check_refusals, checked
from ._kernels import In, Out, Scalar, assert_same, call, refused
from .test_kernels_quantized_norm import F, H, make, numeric, wide

RNG = np.random.default_rng(16)
IMAGE = make(2, 3, 4, 5, dtype=F)
BYTES = RNG.integers(0, 256, (4, 5, 3)).astype(np.uint8)
OTHER = RNG.integers(0, 256, (4, 5, 3)).astype(np.uint8)
ALPHA = RNG.integers(0, 256, (4, 5, 1)).astype(np.uint8)
MASK = RNG.uniform(0, 1, (4, 5, 1)).astype(H)


def nearest(x: np.ndarray, h: int, w: int) -> np.ndarray:
    return x[:, :, np.arange(h) * x.shape[2] // h][:, :, :, np.arange(w) * x.shape[3] // w]


def lines(size: int, out: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    at = np.arange(out) * size / out
    low = np.floor(at).astype(int)
    return low, np.minimum(low + 1, size - 1), at - low


def bilinear(x: np.ndarray, h: int, w: int) -> np.ndarray:
    top, bottom, u = lines(x.shape[2], h)
    left, right, v = lines(x.shape[3], w)
    rows = x[:, :, top] * (1 - u)[:, None] + x[:, :, bottom] * u[:, None]
    return rows[..., left] * (1 - v) + rows[..., right] * v


def pooled(x: np.ndarray, kernel: int, stride: int, pad: int) -> np.ndarray:
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), (2, 3))[:, :, ::stride, ::stride]
    return windows.max((-1, -2))


def mean(x: np.ndarray) -> np.ndarray:
    """Windows of 2 x 3, stride 2 x 1, padding 1 at every side, padding counted."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return np.lib.stride_tricks.sliding_window_view(padded, (2, 3), (2, 3))[:, :, ::2].mean((-1, -2))


POOL_G = make(2, 3, 3, 5, dtype=F)
ROIS = np.array([[1, 0, 0, 6, 5], [0, 2, 1, 9, 7], [1, 8, 6, 9, 7]], F)


def regions() -> tuple[np.ndarray, np.ndarray]:
    y, places = np.zeros((3, 3, 2, 2), F), np.full((3, 3, 2, 2), -1, np.int32)
    for n, roi in enumerate(ROIS):
        left, top, right, bottom = (int(np.floor(v * 0.5 + 0.5)) for v in roi[1:])
        height, width = bottom - top + 1, right - left + 1
        for i, j in np.ndindex(2, 2):
            rows = slice(max(top + i * height // 2, 0), min(top + -(-(i + 1) * height // 2), 4))
            columns = slice(max(left + j * width // 2, 0), min(left + -(-(j + 1) * width // 2), 5))
            for c in range(3):
                window = IMAGE[int(roi[0]), c, rows, columns]
                if window.size:
                    a, b = np.unravel_index(window.argmax(), window.shape)
                    y[n, c, i, j], places[n, c, i, j] = window.max(), (rows.start + a) * 5 + columns.start + b
    return y, places


REGION_Y, REGION_AT = regions()
REGION_G, BASE = make(3, 3, 2, 2, dtype=F), make(2, 3, 4, 5, dtype=F)


def regions_back() -> np.ndarray:
    out = wide(BASE).reshape(2, 3, 20).copy()
    for n, c, i, j in np.ndindex(3, 3, 2, 2):
        if REGION_AT[n, c, i, j] >= 0:
            out[int(ROIS[n, 0]), c, REGION_AT[n, c, i, j]] += REGION_G[n, c, i, j]
    return out.reshape(2, 3, 4, 5).astype(F)


VALUE, WHERE = make(2, 10, 2, 3, dtype=F), RNG.uniform(-0.1, 1.1, (2, 4, 2, 2, 3, 2)).astype(F)
WEIGHT, MAPS_G = RNG.uniform(0, 1, (2, 4, 2, 2, 3)).astype(F), make(2, 4, 6, dtype=F)
SHAPES, STARTS = np.array([[2, 3], [4, 1]], np.int32), np.array([0, 6], np.int32)


def maps(value: np.ndarray, where: np.ndarray, weight: np.ndarray) -> np.ndarray:
    out = np.zeros((2, 4, 2, 3))
    for b, q, h, m, p in np.ndindex(2, 4, 2, 2, 3):
        rows, columns = SHAPES[m]
        grid = value[b, STARTS[m] : STARTS[m] + rows * columns, h].reshape(rows, columns, 3)
        x, y = where[b, q, h, m, p, 0] * columns - 0.5, where[b, q, h, m, p, 1] * rows - 0.5
        for i in (int(np.floor(y)), int(np.floor(y)) + 1):
            for j in (int(np.floor(x)), int(np.floor(x)) + 1):
                if 0 <= i < rows and 0 <= j < columns:
                    out[b, q, h] += weight[b, q, h, m, p] * (1 - abs(y - i)) * (1 - abs(x - j)) * grid[i, j]
    return out.reshape(2, 4, 6)


MAPS: dict[str, Any] = {"value": VALUE, "spatialShape": SHAPES, "levelStartIndex": STARTS, "location": WHERE,
                        "attnWeight": WEIGHT}  # fmt: skip
MAPS_AT = [wide(a) for a in (VALUE, WHERE, WEIGHT)]
MAPS_GRADS = [
    numeric(lambda v, n=n: maps(*[v if i == n else a for i, a in enumerate(MAPS_AT)]), MAPS_AT[n], wide(MAPS_G)).astype(
        F
    )
    for n in range(3)
]
CASES = [
    *(Direct("aclnnResize", {"self": IMAGE, "scales": [1.0, 1.0, 1.5, 2.0], "mode": mode},
           {"out": f(IMAGE, 6, 10).astype(F)})
      for mode, f in (("nearest", nearest), ("bilinear", bilinear))),
    Direct("aclnnBackgroundReplace", {"bkg": BYTES, "src": OTHER, "mask": MASK},
           {"out": np.trunc(BYTES * (1 - wide(MASK)) + OTHER * wide(MASK)).astype(np.uint8)}),
    Direct("aclnnBlendImagesCustom", {"rgb": BYTES, "alpha": ALPHA, "frame": OTHER},
           {"out": ((wide(BYTES) * ALPHA + wide(OTHER) * (255 - wide(ALPHA))) // 255).astype(np.uint8)}),
    Direct("aclnnMrgbaCustom", {"rgb": BYTES, "alpha": ALPHA},
           {"out": (BYTES.astype(int) * ALPHA // 255).astype(np.uint8)}),
    Direct("aclnnMaxPoolV3", {"x": IMAGE, "ksize": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1],
                              "ceilMode": Scalar(False, "bool")}, {"out": pooled(IMAGE, 3, 2, 1)}),
    Direct("aclnnAveragePoolingGrad",
           {"origInputShape": [2, 3, 4, 5], "gradOutput": POOL_G, "kernelH": 2, "kernelW": 3, "strideH": 2,
           "strideW": 1,
            "padTop": 1, "padBottom": 1, "padLeft": 1, "padRight": 1, "ceilMode": False, "countIncludePad": True,
            "divisorOverride": 0}, {"out": numeric(mean, wide(IMAGE), wide(POOL_G)).astype(F)}, 50),
    Direct("aclnnRoiPoolingWithArgMax", {"x": IMAGE, "rois": ROIS, "pooled_h": 2, "pooled_w": 2, "spatial_scale_h": 0.5,
                                         "spatial_scale_w": 0.5}, {"y": REGION_Y, "argmax": REGION_AT}),
    Direct("aclnnRoiPoolingGradWithArgMax",
           {"gradOutput": REGION_G, "gradInputRef": BASE, "rois": ROIS, "argmax": REGION_AT, "pooledH": 2, "pooledW": 2,
            "spatialScale": 0.5}, {"gradInputRef": regions_back()}),
    Direct("aclnnMultiScaleDeformableAttnFunction", MAPS, {"output": maps(*MAPS_AT).astype(F)}),
    Direct("aclnnMultiScaleDeformableAttentionGrad", {**MAPS, "gradOutput": MAPS_G},
           dict(zip(("gradValue", "gradLocation", "gradAttnWeight"), MAPS_GRADS)), 200),
]  # fmt: skip


ELSEWHERE = ("aclnnBackgroundReplace", "aclnnBlendImagesCustom", "aclnnMrgbaCustom")  # documented for one chip only
HERE = [case for case in CASES if case.name not in ELSEWHERE]


test_values, test_refusals = checked(HERE)


def check_elsewhere() -> None:
    for case in CASES:
        if case.name in ELSEWHERE:
            check(case)
            check_refusals(case)


def test_on_310p() -> None:
    on_chip("310P", check_elsewhere)


def test_channels_last() -> None:
    last = np.ascontiguousarray(IMAGE.transpose(0, 2, 3, 1))
    got = call("aclnnResize", self=In(last, "NHWC"), scales=[1.0, 1.5, 2.0, 1.0], mode="bilinear",
               out=Out((2, 6, 10, 3), format="NHWC"))  # fmt: skip
    assert_same(got, bilinear(wide(IMAGE), 6, 10).transpose(0, 2, 3, 1).astype(F), 4)


@pytest.mark.parametrize("mode", ["cubic", ""])
def test_ways_to_resize_that_are_not(mode: str) -> None:
    image, out = In(IMAGE, "NCHW"), Out((2, 3, 6, 10), format="NCHW")
    assert refused("aclnnResize", self=image, scales=[1.0, 1.0, 1.5, 2.0], mode=mode, out=out) == 161002
    assert refused("aclnnResize", self=image, scales=[1.0, 2.0, 1.5, 2.0], mode="nearest", out=out) == 161002


def test_indices_that_lead_nowhere() -> None:
    wrong = ROIS.copy()
    wrong[0, 0] = 2
    options = {"pooled_h": 2, "pooled_w": 2, "spatial_scale_h": 0.5, "spatial_scale_w": 0.5}
    outs = {"y": Out((3, 3, 2, 2)), "argmax": Out((3, 3, 2, 2), "int32")}
    assert refused("aclnnRoiPoolingWithArgMax", x=IMAGE, rois=wrong, **options, **outs) == 507015
    beyond = {**MAPS, "levelStartIndex": np.array([0, 8], np.int32)}
    assert refused("aclnnMultiScaleDeformableAttnFunction", **beyond, output=Out((2, 4, 6))) == 507015


# -- blurring ----------------------------------------------------------------------------------------------------------
PADS = {0: "constant", 1: "edge", 2: "symmetric", 3: "wrap", 4: "reflect"}
SMALL = {1: [1.0], 3: [0.25, 0.5, 0.25], 5: [0.0625, 0.25, 0.375, 0.25, 0.0625]}


def bell(size: int, sigma: float) -> np.ndarray:
    if sigma <= 0 and size <= 5:
        return np.array(SMALL[size])
    if sigma <= 0:
        sigma = 0.3 * ((size - 1) / 2 - 1) + 0.8
    w = np.exp(-((np.arange(size) - (size - 1) / 2) ** 2) / (2 * sigma**2))
    return np.asarray(w / w.sum())


def blurred(
    x: np.ndarray, axes: tuple[int, int], size: tuple[int, int], sigma: tuple[float, float], border: int
) -> Any:
    """`size`, `sigma`: along columns, along rows, as they are given."""
    y = x.astype(np.float64)
    for axis, n, s in zip((axes[1], axes[0]), size, sigma):
        pad = [(n // 2, n // 2) if i == axis else (0, 0) for i in range(x.ndim)]
        wide = np.pad(y, pad, PADS[border])  # type: ignore[call-overload]
        shifted = [np.take(wide, np.arange(k, k + x.shape[axis]), axis) for k in range(n)]
        y = np.tensordot(bell(n, s), np.stack(shifted), 1)
    return y if x.dtype.kind == "f" else np.rint(y)


@pytest.mark.parametrize("border", PADS)
@pytest.mark.parametrize(
    ("size", "sigmas"), [((3, 5), (0.0, 0.0)), ((5, 3), (1.2, 0.7)), ((7, 1), (0.9, 0.0)), ((9, 9), (0.0, 0.0))]
)
def test_blurred_pictures(size: tuple[int, int], sigmas: tuple[float, float], border: int) -> None:
    x_sigma, y_sigma = sigmas
    both = (x_sigma, y_sigma if y_sigma > 0 else x_sigma)
    if size == (7, 1):
        both = (x_sigma, x_sigma)
    for x, axes in ((make(6, 7, dtype=F), (0, 1)), (BYTES, (0, 1)), (make(5, 6, 2, dtype=H), (0, 1))):
        if border in (2, 3, 4) and max(size) // 2 >= min(x.shape[0], x.shape[1]):
            continue
        given = {"src": x, "ksize": list(size), "sigmaX": x_sigma, "sigmaY": y_sigma, "borderType": border}
        got = call("aclnnGaussianBlur", **given, dst=Out(x.shape, x.dtype.name))
        assert_same(got, blurred(x, axes, size, both, border).astype(x.dtype), 4)


def test_blurred_batches_and_sizes_that_follow() -> None:
    x = make(2, 3, 6, 7, dtype=F)
    given: dict[str, Any] = {"ksize": [0, 3], "sigmaX": 0.5, "sigmaY": 0.0, "borderType": 4}
    first = call("aclnnGaussianBlur", src=In(x, "NCHW"), **given, dst=Out(x.shape, format="NCHW"))
    assert_same(first, blurred(x, (2, 3), (5, 3), (0.5, 0.5), 4).astype(F), 4)
    last = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    got = call("aclnnGaussianBlur", src=In(last, "NHWC"), **given, dst=Out(last.shape, format="NHWC"))
    assert_same(got, np.ascontiguousarray(first.transpose(0, 2, 3, 1)), 4)
    single = make(1, 1, dtype=F)
    assert_same(call("aclnnGaussianBlur", src=single, **given, dst=Out((1, 1))), single, 4)
    picture = {"src": x[0, 0], "dst": Out((6, 7))}
    wrongs: list[dict[str, Any]] = [
        *({"ksize": k} for k in ([3], [2, 3], [-3, 3], [2**40 + 1, 3])),
        *({"ksize": [0, 3], "sigmaX": v} for v in (0.0, 1e9, float("inf"))),
        {"ksize": [3, 3], "sigmaX": float("nan")}, {"borderType": 5}, {"src": x, "dst": Out(x.shape)},
        {"dst": Out((6, 6))},
    ]  # fmt: skip
    for wrong in wrongs:
        assert refused("aclnnGaussianBlur", **{**given, **picture, **wrong}) == 161002, wrong
