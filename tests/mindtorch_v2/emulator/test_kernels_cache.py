"""Caches in pages, rotary embeddings by position, steps of decoding, against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ._direct import Direct, check, checked
from ._kernels import call, refused
from .test_kernels_quantized_norm import F, H, make, to_bytes, wide

RNG = np.random.default_rng(17)
I32 = np.int32
KEY, VALUE = make(4, 2, 3), make(4, 2, 3)
K_CACHE, V_CACHE = make(3, 5, 2, 3), make(3, 5, 2, 3)
SLOTS = np.array([7, -1, 14, 0], I32)


def scattered(cache: np.ndarray, x: np.ndarray) -> np.ndarray:
    out = cache.reshape(15, 2, 3).copy()
    for slot, row in zip(SLOTS, x):
        if slot >= 0:
            out[slot] = row
    return out.reshape(cache.shape)


TABLE, LENGTHS = np.array([[2, 0], [1, 1]], I32), np.array([7, 3], I32)


def gathered(cache: np.ndarray, offset: tuple[int, int] = (0, 0)) -> np.ndarray:
    rows = [cache[TABLE[b, (i + o) // 5], (i + o) % 5] for b, o in enumerate(offset) for i in range(LENGTHS[b])]
    return np.stack(rows)


HELD = RNG.integers(-9, 9, (2, 6, 4)).astype(np.int8)
UPDATES, AT = make(2, 2, 4), np.array([1, 4], I32)
SCALES, ZEROS = RNG.uniform(0.02, 0.1, (1, 1, 4)).astype(F), RNG.integers(-3, 3, (1, 1, 4)).astype(I32)


def quantized(rounding: Any) -> np.ndarray:
    out = HELD.copy()
    for b in range(2):
        out[b, AT[b] : AT[b] + 2] = to_bytes(rounding(wide(UPDATES[b]) / wide(SCALES[0]) + ZEROS[0]))
    return out


QUANTIZED = quantized(np.rint)
LIST = [make(3, 5), make(3, 5)]
LIST_UPDATES = make(2, 3, 2)
LISTED = [LIST[0].copy(), LIST[1]]
LISTED[0][:, 2:4] = LIST_UPDATES[0]

QUERY, KEYS, CACHE = make(3, 12, dtype=F), make(3, 6, dtype=F), make(9, 4, dtype=F)
POSITIONS = np.array([8, 0, 3], np.int64)


def turned(x: np.ndarray, halves: bool) -> np.ndarray:
    heads = wide(x).reshape(3, -1, 6)
    out = heads.copy()
    for t, position in enumerate(POSITIONS):
        cos, sin = wide(CACHE)[position, :2], wide(CACHE)[position, 2:]
        first, second = ([0, 1], [2, 3]) if halves else ([0, 2], [1, 3])
        a, b = heads[t][:, first], heads[t][:, second]
        out[t][:, first], out[t][:, second] = a * cos - b * sin, b * cos + a * sin
    return out.reshape(x.shape).astype(F)


X, COS, SIN, TURN = make(2, 3, 4, 6), make(1, 3, 1, 6), make(1, 3, 1, 6), make(6, 6)
PART_COS, PART_SIN = make(2, 3, 1, 4), make(2, 3, 1, 4)


def partial(pairs: bool) -> np.ndarray:
    out = wide(X).copy()
    part = wide(X)[..., 1:5]
    other = np.empty_like(part)
    if pairs:
        other[..., ::2], other[..., 1::2] = -part[..., 1::2], part[..., ::2]
    else:
        other[..., :2], other[..., 2:] = -part[..., 2:], part[..., :2]
    out[..., 1:5] = part * wide(PART_COS) + other * wide(PART_SIN)
    return out.astype(H)


KV, GAMMA = make(2, 1, 3, 10), make(6)
L_COS, L_SIN = make(2, 1, 3, 4), make(2, 1, 3, 4)
L_NORMAL = wide(KV)[..., :6] / np.sqrt((wide(KV)[..., :6] ** 2).mean(-1, keepdims=True) + 1e-5) * wide(GAMMA)
L_APART = np.concatenate([wide(KV)[..., 6::2], wide(KV)[..., 7::2]], -1)
L_TURNED = L_APART * wide(L_COS) + np.concatenate([-L_APART[..., 2:], L_APART[..., :2]], -1) * wide(L_SIN)
L_K, L_C = make(2, 1, 4, 4), make(2, 1, 4, 6)
L_INDEX = np.array([[0, 2, 3], [1, -1, 0]], np.int64)


def latent(cache: np.ndarray, rows: np.ndarray) -> np.ndarray:
    out = cache.copy()
    for b, i in np.ndindex(2, 3):
        if L_INDEX[b, i] >= 0:
            out[b, 0, L_INDEX[b, i]] = rows[b, 0, i].astype(H)
    return out


LATENT: dict[str, Any] = {"kv": KV, "gamma": GAMMA, "cos": L_COS, "sin": L_SIN, "index": L_INDEX, "kCacheRef": L_K,
                          "ckvCacheRef": L_C, "epsilon": 1e-5, "cacheModeOptional": "Norm",
                          "isOutputKv": True}  # fmt: skip
LATENT_WANT = {"kCacheRef": latent(L_K, L_TURNED), "ckvCacheRef": latent(L_C, L_NORMAL), "kRopeOut": L_TURNED.astype(H),
               "cKvOut": L_NORMAL.astype(H)}  # fmt: skip
ROPE: dict[str, Any] = {"positions": POSITIONS, "queryIn": QUERY, "keyIn": KEYS, "cosSinCache": CACHE, "headSize": 6,
                        "mropeSection": [0, 0, 0]}  # fmt: skip
SCATTER: dict[str, Any] = {"key": KEY, "keyCacheRef": K_CACHE, "slotMapping": SLOTS, "value": VALUE,
                           "valueCacheRef": V_CACHE, "cacheModeOptional": "Norm"}  # fmt: skip
GATHER: dict[str, Any] = {"keyCache": K_CACHE, "valueCache": V_CACHE, "blockTables": TABLE, "seqLens": LENGTHS,
                          "keyRef": make(10, 2, 3), "valueRef": make(10, 2, 3), "cacheMode": "Norm",
                          "isSeqLensCumsum": False}  # fmt: skip
QUANT: dict[str, Any] = {"selfRef": HELD, "indices": AT, "updates": UPDATES, "quantScales": SCALES,
                         "quantZeroPoints": ZEROS, "axis": 1, "quantAxis": -1, "reduction": 1}  # fmt: skip
CASES = [
    Direct("aclnnScatterPaKvCache", SCATTER,
           {"keyCacheRef": scattered(K_CACHE, KEY), "valueCacheRef": scattered(V_CACHE, VALUE)}),
    Direct("aclnnScatterPaCache", {"key": KEY, "keyCacheRef": K_CACHE, "slotMapping": SLOTS, "cacheMode": "Norm"},
           {"keyCacheRef": scattered(K_CACHE, KEY)}),
    Direct("aclnnGatherPaKvCache", GATHER, {"keyRef": gathered(K_CACHE), "valueRef": gathered(V_CACHE)}),
    Direct("aclnnGatherPaKvCache", {**GATHER, "seqLens": np.array([0, 7, 10], I32), "isSeqLensCumsum": True,
                                    "seqOffsetOptional": np.array([2, 4], I32)},
           {"keyRef": gathered(K_CACHE, (2, 4)), "valueRef": gathered(V_CACHE, (2, 4))}),
    Direct("aclnnInplaceQuantScatter", QUANT, {"selfRef": QUANTIZED}),
    Direct("aclnnInplaceQuantScatterV2", {**QUANT, "roundMode": "rint"}, {"selfRef": QUANTIZED}),
    *(Direct("aclnnInplaceQuantScatterV2", {**QUANT, "roundMode": mode}, {"selfRef": quantized(rounding)})
      for mode, rounding in (("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc))),
    Direct("aclnnScatterList", {"varRef": LIST, "indice": np.array([2, 9], I32), "updates": LIST_UPDATES,
                                "maskOptional": np.array([1, 0], np.uint8), "reduceOptional": "update", "axis": -1},
           {"varRef": LISTED}),
    *(Direct(f"aclnnRopeWithSinCosCache{version}",
             {**ROPE, "isNeoxStyle": halves, **({"cacheMode": 0} if version else {})},
             {"queryOut": turned(QUERY, halves), "keyOut": turned(KEYS, halves)})
      for version in ("", "V2") for halves in (False, True)),
    Direct("aclnnRotaryPositionEmbeddingV2", {"x": X, "cos": COS, "sin": SIN, "mode": 0, "rotate": TURN},
           {"out": (wide(X) * wide(COS) + wide(X) @ wide(TURN) * wide(SIN)).astype(H)}),
    *(Direct("aclnnInplacePartialRotaryMul", {"xRef": X, "cos": PART_COS, "sin": PART_SIN, "rotary_mode": int(pairs),
                                              "partialSlice": [1, 5]}, {"xRef": partial(pairs)})
      for pairs in (False, True)),
    *(Direct(name, LATENT, LATENT_WANT) for name in ("aclnnKvRmsNormRopeCache", "aclnnKvRmsNormRopeCacheV2")),
]  # fmt: skip


test_values, test_refusals = checked(CASES)


def test_quantized_rows_by_sample_and_place() -> None:
    """An index of two columns; fewer rows than samples."""
    name, mode = "aclnnInplaceQuantScatterV2", {"roundMode": "rint"}
    want = HELD.copy()
    want[1, 3:5] = to_bytes(np.rint(wide(UPDATES[0]) / wide(SCALES[0]) + ZEROS[0]))
    one = {**QUANT, **mode, "updates": UPDATES[:1]}
    np.testing.assert_array_equal(call(name, **{**one, "indices": np.array([[1, 3]], I32)}), want)
    assert refused(name, **{**one, "indices": np.array([[2, 3]], I32)}) == 507015
    assert refused(name, **{**one, "indices": np.array([[1, 3, 0]], I32)}) == 161002


def test_quantized_rows_of_small_floats() -> None:
    held = make(2, 6, 4, dtype=F).astype(ml_dtypes.float8_e4m3fn)
    want = held.copy()
    for b in range(2):
        want[b, AT[b] : AT[b] + 2] = (wide(UPDATES[b]) / wide(SCALES[0])).astype(F).astype(held.dtype)
    given = {**QUANT, "selfRef": held, "roundMode": "rint"}
    for zeros in (np.zeros_like(ZEROS), None):
        got = call("aclnnInplaceQuantScatterV2", **{**given, "quantZeroPoints": zeros})
        np.testing.assert_array_equal(got.astype(F), want.astype(F))
    assert refused("aclnnInplaceQuantScatterV2", **{**given, "roundMode": "floor"}) == 161002


def test_slots_that_are_not_there() -> None:
    assert refused("aclnnScatterPaKvCache", **{**SCATTER, "slotMapping": np.array([0, 1, 2, 15], I32)}) == 507015
    assert refused("aclnnScatterPaKvCache", **{**SCATTER, "cacheModeOptional": "PA_NZ"}) == 161002
    assert refused("aclnnGatherPaKvCache", **{**GATHER, "blockTables": np.array([[3, 0], [1, 1]], I32)}) == 507015
    assert refused("aclnnInplaceQuantScatter", **{**QUANT, "indices": np.array([1, 5], I32)}) == 507015
    assert refused("aclnnInplaceQuantScatter", **{**QUANT, "reduction": 0}) == 161002
    wrong = {**ROPE, "positions": np.array([9, 0, 0]), "isNeoxStyle": True}
    outs = {"queryOut": QUERY.copy(), "keyOut": KEYS.copy()}
    assert refused("aclnnRopeWithSinCosCache", **wrong, **outs) == 507015


def test_positions_of_three_kinds() -> None:
    """Each angle is turned by the position of its own kind, as mropeSection divides them."""
    cache, query, keys = make(9, 6).astype(F), make(3, 12).astype(F), make(3, 6).astype(F)
    positions = np.array([[4, 2, 7], [1, 8, 0], [5, 5, 3]], np.int64)
    angles = np.stack([wide(cache)[positions[kind]][:, [i, 3 + i]] for i, kind in enumerate((0, 0, 2))], 1)
    cos, sin = angles[:, None, :, 0], angles[:, None, :, 1]

    def rotated(x: np.ndarray) -> np.ndarray:
        heads = wide(x).reshape(3, -1, 6)
        a, b = heads[..., :3], heads[..., 3:]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1).reshape(x.shape).astype(F)

    given: dict[str, Any] = {"positions": positions, "queryIn": query, "keyIn": keys, "cosSinCache": cache,
                             "mropeSection": [2, 0, 1], "headSize": 6, "isNeoxStyle": True}  # fmt: skip
    check(Direct("aclnnRopeWithSinCosCache", given, {"queryOut": rotated(query), "keyOut": rotated(keys)}))
    outs = {"queryOut": query.copy(), "keyOut": keys.copy()}
    assert refused("aclnnRopeWithSinCosCache", **{**given, "mropeSection": [2, 2, 2]}, **outs) == 161002
    assert refused("aclnnRopeWithSinCosCache", **{**given, "positions": positions[0]}, **outs) == 161002


@pytest.mark.parametrize("halves", (False, True))
@pytest.mark.parametrize("kinds", ((0, 1, 2, 0, 1, 0), (0, 1, 2, 0, 0, 0)))
def test_positions_of_three_kinds_in_turns(halves: bool, kinds: tuple[int, ...]) -> None:
    """Angles take their positions from time, height, width, time, ...; what is left is time's."""
    cache, query, keys = make(9, 12).astype(F), make(3, 28).astype(F), make(3, 14).astype(F)
    positions = np.array([[4, 2, 7], [1, 8, 0], [5, 5, 3]], np.int64)

    def rotated(x: np.ndarray) -> np.ndarray:
        out = wide(x).reshape(3, -1, 14).copy()
        for token, (angle, kind) in ((t, pair) for t in range(3) for pair in enumerate(kinds)):
            row = wide(cache)[positions[kind, token]]
            first, second = (angle, angle + 6) if halves else (2 * angle, 2 * angle + 1)
            number = (out[token, :, first] + 1j * out[token, :, second]) * (row[angle] + 1j * row[6 + angle])
            out[token, :, first], out[token, :, second] = number.real, number.imag
        return out.reshape(x.shape).astype(F)

    given: dict[str, Any] = {"positions": positions, "queryIn": query, "keyIn": keys, "cosSinCache": cache,
                             "mropeSection": [kinds.count(k) for k in range(3)], "headSize": 14, "isNeoxStyle": halves,
                             "cacheMode": 1}  # fmt: skip
    name, outs = "aclnnRopeWithSinCosCacheV2", {"queryOut": query.copy(), "keyOut": keys.copy()}
    check(Direct(name, given, {"queryOut": rotated(query), "keyOut": rotated(keys)}))
    assert refused(name, **{**given, "cacheMode": 2}, **outs) == 161002
    assert refused(name, **{**given, "mropeSection": [2, 1, 3]}, **outs) == 161002
    assert refused(name, **{**given, "mropeSection": [3, 3], "positions": positions[:2]}, **outs) == 161002
    assert refused(name, **{**given, "positions": positions + 7}, **outs) == 507015


PAGED_KV, PAGED_GAMMA = make(2, 1, 5, 80), make(64)
PAGED_COS, PAGED_SIN = make(2, 1, 5, 16), make(2, 1, 5, 16)
PAGED_NORMAL = wide(PAGED_KV)[..., :64]
PAGED_NORMAL = PAGED_NORMAL / np.sqrt((PAGED_NORMAL**2).mean(-1, keepdims=True) + 1e-5) * wide(PAGED_GAMMA)
PAGED_APART = np.concatenate([wide(PAGED_KV)[..., 64::2], wide(PAGED_KV)[..., 65::2]], -1)
PAGED_TURNED = PAGED_APART * wide(PAGED_COS)
PAGED_TURNED += np.concatenate([-PAGED_APART[..., 8:], PAGED_APART[..., :8]], -1) * wide(PAGED_SIN)
# The pages that five tokens of each sequence fill, four places each.
FILLED = ((2, 0), (4, 1))


@pytest.mark.parametrize("mode", ("PA", "PA_BNSD", "PA_NZ", "PA_BLK_BNSD", "PA_BLK_NZ"))
@pytest.mark.parametrize("small", (False, True))
def test_latent_pages(mode: str, small: bool) -> None:
    """Tokens into pages by slot or by page, plain or in runs of 32 bytes, as they are or as scaled INT8."""
    slots = np.array([[FILLED[b][t // 4] * 4 + t % 4 for t in range(5)] for b in range(2)], np.int64)
    starts = np.array([page * 4 for pages in FILLED for page in pages], np.int64)
    scale, offset = np.linspace(5, 20, 64).astype(F), np.full(64, 2, F)
    k_scale = np.linspace(9, 11, 32).astype(F)
    kv, cos, sin, turned = PAGED_KV, PAGED_COS, PAGED_SIN, PAGED_TURNED
    if small:  # a row of the turned part is a whole run of 32 numbers of one byte
        kv = np.concatenate([PAGED_KV, PAGED_KV[..., 64:]], -1)
        cos, sin = np.concatenate([PAGED_COS] * 2, -1), np.concatenate([PAGED_SIN] * 2, -1)
        apart = np.concatenate([wide(kv)[..., 64::2], wide(kv)[..., 65::2]], -1)
        turned = apart * wide(cos) + np.concatenate([-apart[..., 16:], apart[..., :16]], -1) * wide(sin)

    def filled(rows: np.ndarray, by: np.ndarray, plus: np.ndarray | int) -> tuple[np.ndarray, np.ndarray]:
        size = rows.shape[-1]
        cache = np.arange(6 * 4 * size).reshape(6, 4, 1, size) % 100
        cache = cache.astype(np.int8 if small else H)
        values = np.clip(np.round(rows * wide(by) + plus), -128, 127).astype(np.int8) if small else rows.astype(H)
        out = cache.copy()
        run = 32 // cache.itemsize if mode.endswith("NZ") else size
        pages = out.reshape(6, size // run, 4, run)  # the same memory
        for b, t in np.ndindex(2, 5):
            pages[FILLED[b][t // 4], :, t % 4] = values[b, 0, t].reshape(-1, run)
        return cache, out

    k, k_want = filled(turned, k_scale, 0)
    c, c_want = filled(PAGED_NORMAL, scale, offset)
    given: dict[str, Any] = {"kv": kv, "gamma": PAGED_GAMMA, "cos": cos, "sin": sin, "kCacheRef": k, "ckvCacheRef": c,
                             "index": starts if "BLK" in mode else slots.reshape(-1), "epsilon": 1e-5,
                             "cacheModeOptional": mode, "isOutputKv": False}  # fmt: skip
    if small:
        given |= {"kRopeScaleOptional": k_scale, "cKvScaleOptional": scale, "cKvOffsetOptional": offset}
    check(Direct("aclnnKvRmsNormRopeCache", given, {"kCacheRef": k_want, "ckvCacheRef": c_want}))
    assert refused("aclnnKvRmsNormRopeCache", **{**given, "index": np.array([0, 1], np.int64)}) == 161002
    assert refused("aclnnKvRmsNormRopeCache", **{**given, "cacheModeOptional": "PA_BSND"}) == 161002
    far = given["index"].copy()
    far[0] = 24
    assert refused("aclnnKvRmsNormRopeCache", **{**given, "index": far}) == 507015


def test_results_that_nobody_asked_for_may_be_null() -> None:
    got = call("aclnnKvRmsNormRopeCache", **{**LATENT, "isOutputKv": False})
    np.testing.assert_array_equal(got[0], LATENT_WANT["kCacheRef"])
    assert refused("aclnnKvRmsNormRopeCache", **LATENT) == 561103
    plain = {**{k: v for k, v in ROPE.items() if k != "mropeSection"}, "isNeoxStyle": True}
    check(Direct("aclnnRopeWithSinCosCache", plain, {"queryOut": turned(QUERY, True), "keyOut": turned(KEYS, True)}))


def test_advance_step() -> None:
    tokens, sampled = np.array([1, 2, 3], np.int64), np.array([[7], [8]], np.int64)
    positions, lengths = np.zeros((3, 1), np.int64), np.array([4, 9, 5], np.int64)
    slots, table = np.zeros(3, np.int64), np.array([[3, 1, 2], [5, 6, 4], [0, 0, 0]], np.int64)
    got = call("aclnnAdvanceStep", inputTokens=tokens, sampledTokenIds=sampled, inputPositions=positions,
           seqLens=lengths,
               slotMapping=slots, blockTables=table, numSeqs=3, numQueries=2, blockSize=4)  # fmt: skip
    want = ([7, 8, 3], [[4], [9], [0]], [5, 10, 5], [1 * 4 + 0, 4 * 4 + 1, 0])
    for g, w in zip(got, want):
        np.testing.assert_array_equal(g, w)
    assert len(got) == 4


def test_pages_in_blocks() -> None:
    """PA_NZ: an element of a token's heads stands in its run of columns, the places of a page beside each other."""
    key, value = make(4, 2, 8), make(4, 4, 8)
    k_cache, v_cache = make(3, 1, 5, 16), make(3, 2, 5, 16)

    def blocks(cache: np.ndarray, x: np.ndarray) -> np.ndarray:
        out = cache.copy()
        for slot, row in zip(SLOTS, x):
            if slot >= 0:
                out[slot // 5, :, slot % 5] = row.reshape(-1, 16)
        return out

    got = call("aclnnScatterPaKvCache", key=key, keyCacheRef=k_cache, slotMapping=SLOTS, value=value,
               valueCacheRef=v_cache, cacheModeOptional="PA_NZ")  # fmt: skip
    np.testing.assert_array_equal(got[0], blocks(k_cache, key))
    np.testing.assert_array_equal(got[1], blocks(v_cache, value))
    got = call("aclnnGatherPaKvCache", keyCache=k_cache, valueCache=v_cache, blockTables=TABLE, seqLens=LENGTHS,
               keyRef=np.zeros((10, 16), H), valueRef=np.zeros((10, 32), H), cacheMode="PA_NZ",
               isSeqLensCumsum=False)  # fmt: skip
    for cache, out in ((k_cache, got[0]), (v_cache, got[1])):
        rows = [cache[TABLE[b, i // 5], :, i % 5].reshape(-1) for b in range(2) for i in range(LENGTHS[b])]
        np.testing.assert_array_equal(out, np.stack(rows))


def test_keys_with_a_factor_for_each_head() -> None:
    """FLOAT8 keys and values, and FLOAT factors of the keys, in pages of either layout."""
    import ml_dtypes

    small = ml_dtypes.float8_e4m3fn
    key, value = (RNG.integers(-4, 5, (4, 2, size)).astype(small) for size in (3, 5))
    factors = RNG.uniform(0.5, 2, (4, 2)).astype(F)
    for layout in (None, "BSND", "BNSD"):
        page = (3, 2, 5) if layout == "BNSD" else (3, 5, 2)
        caches = [np.zeros((*page, 3), small), np.zeros((*page, 5), small), np.zeros((*page, 1), F)]
        want = [cache.copy() for cache in caches]
        for slot, rows in zip(SLOTS, zip(key, value, factors[..., None])):
            for cache, row in zip(want, rows):
                if slot >= 0:
                    (cache.transpose(0, 2, 1, 3) if layout == "BNSD" else cache)[slot // 5, slot % 5] = row
        arguments: dict[str, Any] = {"key": key, "value": value, "keyCacheRef": caches[0], "valueCacheRef": caches[1],
                                     "slotMapping": SLOTS, "keyScale": factors, "keyScaleCacheRef": caches[2],
                                     "cacheLayoutOptional": layout}  # fmt: skip
        name = "aclnnScatterPaKvCacheWithKScale"
        for got, expected in zip(call(name, **arguments), want):
            np.testing.assert_array_equal(got.astype(float), expected.astype(float))
        assert refused(name, **{**arguments, "cacheLayoutOptional": "SBND"}) == 161002
        assert refused(name, **{**arguments, "keyScale": factors[:, :1]}) == 161002
        assert refused(name, **{**arguments, "slotMapping": np.array([15, 0, 1, 2], I32)}) == 507015
