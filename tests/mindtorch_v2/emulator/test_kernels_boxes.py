"""Regions of images, overlapping boxes, deformable convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ._direct import Direct, checked, with_formats
from ._emulator import Runtime, isolated
from ._kernels import Out, assert_same, call, refused

RNG = np.random.default_rng(9)
F = np.float32
IMAGE = RNG.standard_normal((2, 3, 6, 7)).astype(F)


def bilinear(plane: np.ndarray, y: float, x: float) -> float:
    height, width = plane.shape
    if y < -1 or y > height or x < -1 or x > width:
        return 0.0
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = int(y), int(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    a, b = y - top, x - left
    return ((1 - a) * ((1 - b) * plane[top, left] + b * plane[top, right])
            + a * ((1 - b) * plane[bottom, left] + b * plane[bottom, right]))  # fmt: skip


def roi_align(
    image: np.ndarray, box: np.ndarray, size: tuple[int, int], scale: float, ratio: int, aligned: bool
) -> Any:
    shift = 0.5 if aligned else 0.0
    x1, y1, x2, y2 = box * scale - shift
    width, height = x2 - x1, y2 - y1
    if not aligned:
        width, height = max(width, 1), max(height, 1)
    cell_h, cell_w = height / size[0], width / size[1]
    down, across = (ratio, ratio) if ratio > 0 else (int(np.ceil(cell_h)), int(np.ceil(cell_w)))
    out = np.zeros((image.shape[0], *size))
    for c, i, j in np.ndindex(*out.shape):
        points = [
            bilinear(image[c], y1 + (i + (a + 0.5) / down) * cell_h, x1 + (j + (b + 0.5) / across) * cell_w)
            for a in range(down)
            for b in range(across)
        ]
        out[c, i, j] = np.mean(points)
    return out


BOXES = np.array([[0.5, 1, 4, 5], [2, 0, 6.5, 3], [-1, -2, 9, 9]], F)
IMAGES = np.array([0, 1, 1], np.int32)
ROWS = np.concatenate([IMAGES[:, None].astype(F), BOXES], 1)


def regions(scale: float, ratio: int, aligned: bool) -> np.ndarray:
    return np.stack([roi_align(IMAGE[n], b, (2, 3), scale, ratio, aligned) for n, b in zip(IMAGES, BOXES)]).astype(F)


A = np.array([[0, 0, 4, 4], [1, 1, 3, 5]], F)
B = np.array([[0, 0, 2, 2], [2, 2, 6, 6], [0, 0, 4, 4]], F)


def iou(a: np.ndarray, b: np.ndarray, over: bool = False) -> float:
    w, h = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    both = max(w, 0) * max(h, 0)
    areas = [(x[2] - x[0]) * (x[3] - x[1]) for x in (a, b)]
    return both / (areas[1] if over else sum(areas) - both)


ALIGN = {"self": IMAGE, "boxes": ROWS, "pooledHeight": 2, "pooledWidth": 3, "spatialScale": 0.5, "samplingRatio": 2}
CASES = [
    *(Direct("aclnnRoiAlignV2", {**ALIGN, "aligned": aligned, "samplingRatio": ratio},
             {"out": regions(0.5, ratio, aligned)}) for aligned in (False, True) for ratio in (0, 2)),
    Direct("aclnnRoiAlign", {"self": IMAGE, "rois": BOXES, "batchIndices": IMAGES, "mode": "avg", "outputHeight": 2,
                             "outputWidth": 3, "samplingRatio": 2, "spatialScale": 1.0},
           {"out": regions(1.0, 2, False)}),
    *(Direct("aclnnIou", {"bBoxes": A, "gtBoxes": B, "mode": mode, "eps": 0.0, "aligned": False},
             {"overlap": np.array([[iou(a, b, mode == "iof") for a in A] for b in B], F)}) for mode in ("iou", "iof")),
    Direct("aclnnIou", {"bBoxes": A, "gtBoxes": B[:2], "mode": "iou", "eps": 0.0, "aligned": True},
           {"overlap": np.array([[iou(a, b)] for a, b in zip(A, B)], F)}),
]  # fmt: skip


test_values, test_refusals = checked(CASES)


@pytest.mark.parametrize("aligned", [False, True])
def test_the_gradient_of_regions_is_their_transpose(aligned: bool) -> None:
    values = {k: v for k, v in ALIGN.items() if k != "self"} | {"aligned": aligned}
    dy = RNG.standard_normal((3, 3, 2, 3)).astype(F)
    given = with_formats("aclnnRoiAlignV2Backward", {"gradOutput": dy, **values, "gradInput": Out(IMAGE.shape)})
    dx = call("aclnnRoiAlignV2Backward", **given, inputShape=list(IMAGE.shape))
    y = call("aclnnRoiAlignV2", **with_formats("aclnnRoiAlignV2", {"self": IMAGE, **values, "out": Out(dy.shape)}))
    np.testing.assert_allclose((dx * IMAGE).sum(), (dy * y).sum(), rtol=1e-4)
    assert refused("aclnnRoiAlignV2Backward", **given, inputShape=[2, 3, 6]) == 161002


@isolated(ASCEND_EMULATOR_CHIP="310P")
def test_non_max_suppression(rt: Runtime) -> None:
    boxes = np.array([[[0, 0, 4, 4], [0, 0, 4, 3.9], [5, 5, 9, 9], [0, 0, 1, 1]]], F)
    scores = np.array([[[0.8, 0.9, 0.7, 0.1], [0.2, 0.1, 0.9, 0.6]]], F)
    values: dict[str, Any] = {"boxes": boxes, "scores": scores, "iouThreshold": [0.5], "scoreThreshold": [0.15]}
    got = call("aclnnNonMaxSuppression", **values, maxOutputBoxesPerClass=[2], centerPointBox=0,
               selectedIndices=Out((8, 3), "int32"))  # fmt: skip
    assert got.tolist() == [[0, 0, 1], [0, 0, 2], [0, 1, 2], [0, 1, 3]]
    centred = np.stack([(boxes[..., 0] + boxes[..., 2]) / 2, (boxes[..., 1] + boxes[..., 3]) / 2,
                        boxes[..., 2] - boxes[..., 0], boxes[..., 3] - boxes[..., 1]], -1)  # fmt: skip
    again = call("aclnnNonMaxSuppression", **{**values, "boxes": centred}, maxOutputBoxesPerClass=[2], centerPointBox=1,
                 selectedIndices=Out((8, 3), "int32"))  # fmt: skip
    assert again.tolist() == got.tolist()


def deformed(x: np.ndarray, weight: np.ndarray, offset: np.ndarray, modulated: bool) -> np.ndarray:
    """Stride 1, no padding, one deformable group: written from the definition."""
    n, channels, height, width = x.shape
    outs, _, kh, kw = weight.shape
    rows, columns = height - kh + 1, width - kw + 1
    kernel = kh * kw
    out = np.zeros((n, outs, rows, columns))
    padded = np.pad(x, ((0, 0), (0, 0), (4, 4), (4, 4)))
    for b, i, j, k in np.ndindex(n, rows, columns, kernel):
        px, py = j + k % kw + offset[b, k, i, j], i + k // kw + offset[b, kernel + k, i, j]
        top, left = int(np.floor(py)), int(np.floor(px))
        for u in (top, top + 1):
            for v in (left, left + 1):
                share = (1 - abs(py - u)) * (1 - abs(px - v))
                share *= offset[b, 2 * kernel + k, i, j] if modulated else 1
                out[b, :, i, j] += weight[:, :, k // kw, k % kw] @ padded[b, :, u + 4, v + 4] * share
    return out


@pytest.mark.parametrize("modulated", [False, True])
def test_deformable_convolution(modulated: bool) -> None:
    x, weight = RNG.standard_normal((1, 2, 5, 5)).astype(F), RNG.standard_normal((3, 2, 2, 2)).astype(F)
    offset = RNG.uniform(-1.4, 1.4, (1, (3 if modulated else 2) * 4, 4, 4)).astype(F)
    bias = RNG.standard_normal(3).astype(F)
    values: dict[str, Any] = {"x": x, "weight": weight, "offset": offset, "biasOptional": bias, "kernelSize": [2, 2],
                              "stride": [1, 1, 1, 1], "padding": [0, 0, 0, 0], "dilation": [1, 1, 1, 1], "groups": 1,
                              "deformableGroups": 1, "modulated": modulated}  # fmt: skip
    got = call("aclnnDeformableConv2d", **values, out=Out((1, 3, 4, 4)))
    assert_same(got, (deformed(x, weight, offset, modulated) + bias[:, None, None]).astype(F), 8)
    for wrong in ({"stride": [1, 1]}, {"groups": 3}, {"offset": offset[:, :4]}, {"biasOptional": bias[:2]}):
        assert refused("aclnnDeformableConv2d", **{**values, **wrong}, out=Out((1, 3, 4, 4))) == 161002
