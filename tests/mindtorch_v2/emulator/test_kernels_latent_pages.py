"""What precedes latent attention, into pages that the index names and into rows of bytes, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ._kernels import Out, call, refused
from .test_kernels_microscaled import BF, E4M3, RNG, largest, rms, rotated
from .test_kernels_quantized_norm import F, wide

BATCH, LENGTH, IN, QUERY, HEADS, NOPE, ROPE, LATENT, PAGE = 2, 3, 20, 12, 2, 6, 16, 32, 2
TOKENS = BATCH * LENGTH
MODES = ("weightQuantMode", "kvCacheQuantMode", "queryQuantMode", "ckvkrRepoMode", "quantScaleRepoMode", "tileSize")


def some(*shape: int) -> np.ndarray:
    return np.asarray((RNG.standard_normal(shape) / 4).astype(BF))


X, DKV, GAMMA = some(BATCH, LENGTH, IN), some(IN, LATENT + ROPE), some(LATENT)
SIN, COS = some(BATCH, LENGTH, ROPE), some(BATCH, LENGTH, ROPE)
GIVEN: dict[str, Any] = {
    "tokenX": X, "weightDq": some(IN, QUERY), "weightUqQr": some(QUERY, HEADS * (NOPE + ROPE)),
    "weightUk": some(HEADS, NOPE, LATENT), "weightDkvKr": DKV, "rmsnormGammaCq": some(QUERY), "rmsnormGammaCkv": GAMMA,
    "ropeSin": SIN, "ropeCos": COS, "kvCacheRef": some(5, PAGE, 1, LATENT), "krCacheRef": some(5, PAGE, 1, ROPE),
    "rmsnormEpsilonCq": 1e-5, "rmsnormEpsilonCkv": 1e-5, **dict.fromkeys(MODES, 0), "qcQrScale": 1.0, "kcScale": 1.0,
    "queryNormFlag": False, "kNopeClipAlpha": 1.0, "cacheModeOptional": "PA_BLK_BSND",
    "queryOut": Out((BATCH, LENGTH, HEADS, LATENT), "bfloat16"),
    "queryRopeOut": Out((BATCH, LENGTH, HEADS, ROPE), "bfloat16"),
}  # fmt: skip
BOTH = (wide(X) @ wide(DKV)).reshape(TOKENS, LATENT + ROPE)
ROWS = rms(BOTH[:, :LATENT], GAMMA)
TURNED = rotated(BOTH[:, LATENT:], wide(SIN).reshape(TOKENS, ROPE), wide(COS).reshape(TOKENS, ROPE))


def held(cache: np.ndarray, rows: np.ndarray, slots: list[int], run: int) -> np.ndarray:
    out = cache.copy()
    pages = out.reshape(len(cache), -1, PAGE, run)
    for slot, row in zip(slots, rows):
        if slot >= 0:
            pages[slot // PAGE, :, slot % PAGE] = row.reshape(-1, run)
    return out


@pytest.mark.parametrize("runs", [False, True])
@pytest.mark.parametrize("packed", [False, True])
def test_pages_by_name(runs: bool, packed: bool) -> None:
    """Sequences of 3 and 3 tokens, or packed ones of 1, 4 and 0, the last token in none."""
    pages = np.array([4, 1, -1, 0] if not packed else [3, 0, 2])
    slots = [8, 9, 2, -1, -1, 0] if not packed else [6, 0, 1, 4, 5, -1]
    values: dict[str, Any] = {**GIVEN, "cacheIndexOptional": pages.reshape(-1, 2) if not packed else pages}
    values["cacheModeOptional"] = "PA_BLK_NZ" if runs else "PA_BLK_BSND"
    if packed:
        values |= {"tokenX": X.reshape(TOKENS, IN), "actualSeqLenOptional": np.array([1, 5, 5], np.int32),
                   "ropeSin": SIN.reshape(TOKENS, ROPE), "ropeCos": COS.reshape(TOKENS, ROPE),
                   "queryOut": Out((TOKENS, HEADS, LATENT), "bfloat16"),
                   "queryRopeOut": Out((TOKENS, HEADS, ROPE), "bfloat16")}  # fmt: skip
    kv, kr, *_ = call("aclnnMlaPrologV3", **values)
    for got, name, rows in ((kv, "kvCacheRef", ROWS), (kr, "krCacheRef", TURNED)):
        want = held(GIVEN[name], rows.astype(BF), slots, 16 if runs else rows.shape[1])
        np.testing.assert_allclose(wide(got), wide(want), rtol=2e-2, atol=2e-2)
    short = {"cacheIndexOptional": pages[:2]}
    assert refused("aclnnMlaPrologV3", **{**values, **short}) == (507015 if packed else 161002)
    assert refused("aclnnMlaPrologV3", **{**values, "cacheModeOptional": "PA_BSND"}) == 161002
    if packed:
        assert refused("aclnnMlaPrologV3", **{**values, "actualSeqLenOptional": None}) == 161002
        wrong = np.array([5, 1, 6], np.int32)
        assert refused("aclnnMlaPrologV3", **{**values, "actualSeqLenOptional": wrong}) == 507015


@pytest.mark.parametrize("dtype", ["int8", "float8_e4m3fn"])
def test_rows_of_tiles(dtype: str) -> None:
    """Tiles over their largest number, the turned part, the tiles' scales: one after the other, as bytes."""
    tile, alpha = 16, 0.75
    width = LATENT + 2 * ROPE + 4 * (LATENT // tile)
    slots = np.array([3, 0, 7, -1, 9, 4])
    tiles = ROWS.reshape(TOKENS, -1, tile)
    scales = np.abs(tiles).max(-1) * alpha / (127 if dtype == "int8" else largest(E4M3))
    small = tiles / scales[..., None]
    top = largest(E4M3)
    codes = np.rint(np.clip(small, -127, 127)).astype(np.int8)
    if dtype != "int8":
        codes = np.clip(small, -top, top).astype(F).astype(E4M3).view(np.int8)
    rows = np.concatenate([codes.reshape(TOKENS, LATENT), TURNED.astype(BF).view(np.int8).reshape(TOKENS, -1),
                           scales.astype(F).view(np.int8).reshape(TOKENS, -1)], 1)  # fmt: skip
    cache = RNG.integers(-100, 100, (5, PAGE, 1, width)).astype(np.int8)
    values: dict[str, Any] = {
        **GIVEN, "kvCacheRef": cache.view(dtype if dtype == "int8" else E4M3), "krCacheRef": np.zeros((0,), BF),
        "cacheIndexOptional": slots, "cacheModeOptional": "PA_BSND", "kvCacheQuantMode": 3, "ckvkrRepoMode": 1,
        "quantScaleRepoMode": 1, "tileSize": tile, "kNopeClipAlpha": alpha,
    }  # fmt: skip
    got = call("aclnnMlaPrologV3", **values)[0].view(np.int8).reshape(10, width)
    want = cache.reshape(10, width).copy()
    want[slots[slots >= 0]] = rows[slots >= 0]
    assert (got[:, :LATENT] == want[:, :LATENT]).mean() > 0.98
    near = got[:, LATENT : LATENT + 2 * ROPE].copy().view(BF), want[:, LATENT : LATENT + 2 * ROPE].copy().view(BF)
    np.testing.assert_allclose(wide(near[0])[slots[slots >= 0]], wide(near[1])[slots[slots >= 0]], rtol=1e-2, atol=1e-2)
    found = got[:, -4 * (LATENT // tile) :].copy().view(F)[slots[slots >= 0]]
    np.testing.assert_allclose(found, scales[slots >= 0], rtol=1e-5)
    untouched = np.setdiff1d(np.arange(10), slots)
    np.testing.assert_array_equal(got[untouched], want[untouched])
    for wrong in ({"tileSize": 15}, {"ckvkrRepoMode": 0}, {"cacheModeOptional": "PA_NZ"}, {"kvCacheQuantMode": 4},
                  {"krCacheRef": some(5, PAGE, 1, ROPE)}):  # fmt: skip
        assert refused("aclnnMlaPrologV3", **{**values, **wrong}) == 161002, wrong
