"""What later versions of fused functions add: shifts of scores by distance, sinks, groups along the inner dimension,
scales that go along with their tokens.

Invariant: each is compared with PyTorch's own derivatives or with NumPy, in double.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ._kernels import Out, assert_same, call, refused

RNG = np.random.default_rng(14)
F = np.float32


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(F)


# -- attention -------------------------------------------------------------------------------------------------------
B, N, S, D = 2, 3, 4, 8
Q, K, V, DY = (floats(B, N, S, D) for _ in range(4))
SCALE = 0.25
OPTIONS: dict[str, Any] = {
    "scaleValue": SCALE, "keepProb": 1.0, "preTokens": 65536, "nextTokens": 65536, "headNum": N, "inputLayout": "BNSD",
    "innerPrecise": 0, "sparseMode": 0,
}  # fmt: skip
STATS = {"softmaxMaxOut": Out((B, N, S, 8)), "softmaxSumOut": Out((B, N, S, 8))}


def reference(shift: Any, kind: int, sink: np.ndarray | None, start: int, dtype: Any = F) -> list[np.ndarray]:
    """The result and the gradients of query, key, value and sink."""
    torch = pytest.importorskip("torch")
    leaves = [torch.tensor(x.astype(dtype), dtype=torch.float64, requires_grad=True) for x in (Q, K, V)]
    q, k, v = leaves
    dots = q @ k.transpose(-1, -2)
    given = None if shift is None else torch.tensor(shift, dtype=torch.float64)
    scores = dots * SCALE
    if given is not None and kind == 1:
        scores = (dots + given) * SCALE
    elif given is not None and kind == 0:
        scores = scores + given
    elif given is not None:
        apart = (start + torch.arange(S)[:, None] - torch.arange(S)[None]).abs().to(torch.float64)
        slopes = given.expand(B, N)[..., None, None]
        scores = scores - (apart.sqrt() if kind == 3 else apart) * slopes
    if sink is not None:
        extra = torch.tensor(sink, dtype=torch.float64, requires_grad=True)
        leaves.append(extra)
        scores = torch.cat([scores, extra[None, :, None, None].expand(B, N, S, 1)], -1)
    out = scores.softmax(-1)[..., :S] @ v
    out.backward(torch.tensor(DY.astype(dtype), dtype=torch.float64))
    return [out.detach().numpy()] + [leaf.grad.numpy() for leaf in leaves]


@pytest.mark.oracle
@pytest.mark.parametrize("sink", [False, True])
@pytest.mark.parametrize("kind", [0, 1, 2, 3])
def test_shifted_scores(kind: int, sink: bool) -> None:
    shift = floats(B, N, S, S) if kind < 2 else np.abs(floats(N)) if sink else np.abs(floats(B, N))
    extra = floats(N) if sink else None
    starts = {"qStartIdxOptional": [5], "kvStartIdxOptional": [2], "pseType": kind}  # other kinds do not look at them
    want = reference(shift, kind, extra, 3)
    version = "V3" if sink else "V2"
    more = {"sinkOptional": extra} if sink else {}
    top, total, out = call(
        f"aclnnFlashAttentionScore{version}", query=Q, key=K, value=V, realShiftOptional=shift, **OPTIONS, **starts,
        **STATS, **more, attentionOutOut=Out(Q.shape),
    )  # fmt: skip
    assert_same(out, want[0].astype(F), 8)
    if sink:
        return
    grads = call(
        "aclnnFlashAttentionScoreGradV2", query=Q, keyIn=K, value=V, dy=DY, softmaxMaxOptional=top,
        softmaxSumOptional=total, attentionInOptional=out, pseShiftOptional=shift, **OPTIONS, **starts,
        dqOut=Out(Q.shape), dkOut=Out(K.shape), dvOut=Out(V.shape),
    )  # fmt: skip
    for got, expected in zip(grads, want[1:], strict=True):
        assert_same(got, expected.astype(F), 30)


@pytest.mark.oracle
def test_gradient_of_a_sink() -> None:
    half, sink = np.float16, floats(N)
    q, k, v, dy = (x.astype(half) for x in (Q, K, V, DY))
    want = reference(None, 1, sink, 0, half)
    top, total, out = call(
        "aclnnFlashAttentionScoreV3", query=q, key=k, value=v, sinkOptional=sink, **OPTIONS, **STATS, pseType=1,
        attentionOutOut=Out(Q.shape, "float16"),
    )  # fmt: skip
    assert_same(out, want[0].astype(half), 2)
    grads = call(
        "aclnnFlashAttentionScoreGradV3", query=q, keyIn=k, value=v, dy=dy, softmaxMaxOptional=top, pseType=1,
        softmaxSumOptional=total, attentionInOptional=out, sinkInOptional=sink, **OPTIONS,
        dqOut=Out(Q.shape, "float16"), dkOut=Out(K.shape, "float16"), dvOut=Out(V.shape, "float16"), dsinkOut=Out((N,)),
    )  # fmt: skip
    for got, expected in zip(grads[:3], want[1:4], strict=True):
        assert_same(got, expected.astype(half), 4)
    np.testing.assert_allclose(grads[3], want[4], atol=2e-3)  # from the result in float16


def test_shifts_that_are_refused() -> None:
    given: dict[str, Any] = {"query": Q, "key": K, "value": V, **OPTIONS, "softmaxMaxOut": Out((B, N, S, 8)),
                             "softmaxSumOut": Out((B, N, S, 8)), "attentionOutOut": Out(Q.shape)}  # fmt: skip
    name = "aclnnFlashAttentionScoreV3"
    assert refused(name, **given, pseType=4) == 161002
    assert refused(name, **given, pseType=2) == 161002  # without the numbers of the heads
    assert refused(name, **given, pseType=2, realShiftOptional=floats(B, N, S, S)) == 161002
    assert refused(name, **given, pseType=1, qStartIdxOptional=[1, 2]) == 161002
    assert refused(name, **given, pseType=1, sinkOptional=floats(N + 1)) == 161002
    last = {**given, "query": Q.reshape(B, S, N * D), "key": K.reshape(B, S, N * D), "value": V.reshape(B, S, N * D),
            "inputLayout": "BSH", "attentionOutOut": Out((B, S, N * D + 1))}  # fmt: skip
    assert refused(name, **last, pseType=1) == 161002


# -- groups along the inner dimension --------------------------------------------------------------------------------
@pytest.mark.parametrize("version", ["V2", "V3", "V4", "V5"])
def test_groups_of_the_inner_dimension(version: str) -> None:
    x, w = floats(7, 3).T, floats(7, 5)  # x as documents want it: transposed
    ends = [2, 2, 7]
    want = np.stack([x[:, a:b].astype(float) @ w[a:b].astype(float) for a, b in zip([0, *ends], ends)])
    groups: Any = ends if version == "V2" else np.array(ends)
    values: dict[str, Any] = {"x": [x], "weight": [w], "splitItem": 3, "groupType": 2, "groupListOptional": groups}
    if version in ("V4", "V5"):
        values |= {"groupListType": 1, "groupListOptional": np.diff([0, *ends]), "actType": 0}
    out = "out" if version in ("V4", "V5") else "y"
    name = f"aclnnGroupedMatmul{version}"
    got = call(name, **values, **{out: [Out((3, 3, 5))]})
    assert_same(got, want.astype(F), 4)
    assert refused(name, **values, **{out: [Out((2, 3, 5))]}) == 161002
    assert refused(name, **{**values, "groupListOptional": None}, **{out: [Out((3, 3, 5))]}) == 161002
    assert refused(name, **{**values, "weight": [floats(6, 5)]}, **{out: [Out((3, 3, 5))]}) == 161002
    beyond: Any = [2, 2, 8] if version == "V2" else np.array([2, 3, 8])
    assert refused(name, **{**values, "groupListOptional": beyond}, **{out: [Out((3, 3, 5))]}) == 507015


# -- routing ---------------------------------------------------------------------------------------------------------
def test_scales_go_along_with_their_tokens() -> None:
    x, scale = floats(4, 3), np.abs(floats(4))
    experts = np.array([[2, 0], [5, 2], [0, 2], [3, 5]], np.int32)
    order = np.argsort(experts.reshape(-1), kind="stable")
    values: dict[str, Any] = {
        "x": x, "expertIdx": experts, "scaleOptional": scale, "activeNum": 8, "expertCapacity": -1, "expertNum": 6,
        "dropPadMode": 0, "expertTokensNumType": 2, "expertTokensNumFlag": True, "quantMode": -1, "rowIdxType": 0,
        "activeExpertRangeOptional": [0, 6], "expandedXOut": Out((8, 3)), "expandedRowIdxOut": Out((8,), "int32"),
        "expertTokensCountOrCumsumOut": Out((6, 2), "int64"), "expandedScaleOut": Out((8,)),
    }  # fmt: skip
    rows, places, counts, scales = call("aclnnMoeInitRoutingV3", **values)
    assert_same(rows, x[order // 2])
    assert_same(places, np.argsort(order).astype(np.int32))
    assert_same(scales, scale[order // 2])
    assert counts.tolist() == [[0, 2], [2, 3], [3, 1], [5, 2], [0, 0], [0, 0]]
    assert refused("aclnnMoeInitRoutingV3", **{**values, "scaleOptional": np.abs(floats(8))}) == 161002
    assert refused("aclnnMoeInitRoutingV3", **{**values, "expertTokensNumType": 3}) == 161002


@pytest.mark.parametrize("mode", (-1, 1))
@pytest.mark.parametrize("kept", ((0, 6), (2, 5)))
def test_experts_with_room_for_some(kept: tuple[int, int], mode: int) -> None:
    """Two tokens for each expert of the range: later ones are dropped, rows without a token are zero."""
    x, scale = floats(4, 3), np.abs(floats(4))
    experts = np.array([[2, 0], [5, 2], [0, 2], [3, 5]], np.int32)
    first, last = kept
    rows, scales = np.zeros((2 * (last - first), 3)), np.zeros(2 * (last - first))
    places, counts = np.full((4, 2), -1, np.int32), np.zeros(last - first, np.int64)
    for token, choice in np.ndindex(4, 2):
        own = experts[token, choice] - first
        if not 0 <= own < last - first:
            continue
        if counts[own] < 2:
            at = places[token, choice] = 2 * own + counts[own]
            rows[at] = x[token]
            scales[at] = scale[token] if mode < 0 else np.abs(x[token]).max() / 127
        counts[own] += 1
    values: dict[str, Any] = {
        "x": x, "expertIdx": experts, "activeNum": 8, "expertCapacity": 2, "expertNum": 6, "dropPadMode": 1,
        "expertTokensNumType": 1, "expertTokensNumFlag": True, "quantMode": mode, "rowIdxType": 0,
        "activeExpertRangeOptional": [first, last], "expandedRowIdxOut": Out((8,), "int32"),
        "expandedXOut": Out(rows.shape, "float32" if mode < 0 else "int8"),
        "expertTokensCountOrCumsumOut": Out(counts.shape, "int64"), "expandedScaleOut": Out(scales.shape),
    }  # fmt: skip
    if mode < 0:
        values["scaleOptional"] = scale
    got = call("aclnnMoeInitRoutingV3", **values)
    if mode < 0:
        assert_same(got[0], rows.astype(F))
    else:
        used = scales > 0
        assert np.abs(got[0][used] - rows[used] / scales[used, None]).max() <= 0.51
        assert not got[0][~used].any()
    assert_same(got[1], places.reshape(-1))
    assert_same(got[2], counts)
    assert_same(got[3], scales.astype(F), 4)
    for wrong in ({"dropPadMode": 2}, {"expertCapacity": 0}, {"expertCapacity": 1 << 40}, {"rowIdxType": 1}):
        assert refused("aclnnMoeInitRoutingV3", **{**values, **wrong}) == 161002


@pytest.mark.parametrize("mode", [0, 1])
def test_quantized_tokens_beyond_the_room_are_dropped(mode: int) -> None:
    x, many, room = floats(4, 3), 3, 2
    experts = np.array([[2, 0], [2, 0], [0, 2], [2, 2]], np.int32)
    flat = experts.reshape(-1)
    source, places = np.full(many * room, -1), np.full(8, -1, np.int32)
    for e in range(many):
        for slot, pair in enumerate(np.flatnonzero(flat == e)[:room]):
            source[e * room + slot], places[pair] = pair // 2, e * room + slot
    values: dict[str, Any] = {
        "x": x, "expertIdx": experts, "activeNum": 0, "expertCapacity": room, "expertNum": many, "dropPadMode": 1,
        "expertTokensCountOrCumsumFlag": 0, "expertTokensBeforeCapacityFlag": True, "quantMode": mode,
        "expandedXOut": Out((many, room, 3), "int8"), "expandedRowIdxOut": Out((8,), "int32"),
        "expertTokensBeforeCapacityOutOptional": Out((many,), "int32"),
    }  # fmt: skip
    rows = np.where(source[:, None] >= 0, x.astype(float)[source], 0)
    if mode == 0:
        values |= {"scaleOptional": np.array([20], F), "offsetOptional": np.array([1], F)}
        want = np.where(source[:, None] >= 0, np.clip(np.rint(rows * 20 + 1), -128, 127), 0)
    else:
        smooth = np.abs(floats(many, 3)) + 0.5
        values |= {"scaleOptional": smooth, "dynamicQuantScaleOutOptional": Out((many * room,))}
        rows = rows * smooth.astype(float)[np.arange(many * room) // room]
        scales = np.abs(rows).max(1) / 127
        want = np.rint(rows / np.where(scales > 0, scales, 1)[:, None])
    expanded, index, counts, *rest = call("aclnnMoeInitRoutingQuantV2", **values)
    assert_same(expanded, want.reshape(many, room, 3).astype(np.int8))
    assert_same(index, places)
    assert counts.tolist() == [3, 0, 5]
    if mode == 1:
        assert_same(rest[0], scales.astype(F))
    assert refused("aclnnMoeInitRoutingQuantV2", **{**values, "expertCapacity": 0}) == 161002
    assert refused("aclnnMoeInitRoutingQuantV2", **{**values, "dropPadMode": 2}) == 161002


# -- quantizing ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("version", ["V3", "V4"])
def test_one_scale_for_all(version: str) -> None:
    x = floats(3, 8).astype(np.float16)
    wide = x.astype(float)
    scale = np.abs(wide).max() / 127
    values: dict[str, Any] = {"x": x, "dstType": 2, "isSymmetrical": True, "quantMode": "pertensor"}
    if version == "V4":
        values["dstTypeMax"] = 0.0
    name = f"aclnnDynamicQuant{version}"
    outs = {"yOut": Out((3, 8), "int8"), "scaleOut": Out((1,))}
    y, got = call(name, **values, **outs)
    assert_same(y, np.rint(wide / scale).astype(np.int8))
    assert_same(got, np.array([scale], F))
    unused = np.full((1,), 7, F)  # there are no offsets where scales are symmetrical
    y, got, offset = call(name, **values, **outs, offsetOut=unused)
    assert_same(y, np.rint(wide / scale).astype(np.int8))
    assert_same(offset, unused)
    assert refused(name, **values, **{**outs, "scaleOut": Out((3,))}) == 161002
    assert refused(name, **{**values, "isSymmetrical": False}, **outs) == 161002


# -- keys that all queries of a sample see -----------------------------------------------------------------------------
@pytest.mark.oracle
@pytest.mark.parametrize("name", ["aclnnFlashAttentionScore", "aclnnFlashAttentionScoreV2"])
@pytest.mark.parametrize("short", [False, True])
def test_prefixes(name: str, short: bool) -> None:
    torch = pytest.importorskip("torch")
    queries, keys, prefix = 3, 5, [4, 0]
    leaves = [torch.tensor(floats(B, N, n, D), dtype=torch.float64, requires_grad=True) for n in (queries, keys, keys)]
    q, k, v = (x.detach().numpy().astype(F) for x in leaves)
    causal = np.arange(keys) > np.arange(queries)[:, None] + keys - queries
    whole = causal & (np.arange(keys) >= np.array(prefix)[:, None, None, None])
    scores = (leaves[0] @ leaves[1].transpose(-1, -2) * SCALE).masked_fill(torch.tensor(whole), -torch.inf)
    out = scores.softmax(-1) @ leaves[2]
    dy = floats(B, N, queries, D)
    out.backward(torch.tensor(dy, dtype=torch.float64))
    mask = whole
    if short:  # the usual triangle, and below it what hides all but the first half
        mask = np.zeros((3072, 2048), bool)
        mask[:2048] = np.triu(np.ones((2048, 2048), bool), 1)
        mask[2048:, 1024:] = True
    options = {**OPTIONS, "sparseMode": 6 if short else 5, "prefixOptional": prefix, "attenMaskOptional": mask}
    options |= {"pseType": 1} if name.endswith("V2") else {}
    stats = Out((B, N, queries, 8))
    given = {"query": q, "key": k, "value": v, **options, "softmaxMaxOut": stats, "softmaxSumOut": stats,
             "attentionOutOut": Out(q.shape)}  # fmt: skip
    top, total, got = call(name, **given)
    assert_same(got, out.detach().numpy().astype(F), 8)
    grads = call(
        name.replace("Score", "ScoreGrad"), query=q, keyIn=k, value=v, dy=dy, **options, softmaxMaxOptional=top,
        softmaxSumOptional=total, attentionInOptional=got, dqOut=Out(q.shape), dkOut=Out(k.shape), dvOut=Out(v.shape),
    )  # fmt: skip
    for g, leaf in zip(grads, leaves):
        assert_same(g, leaf.grad.numpy().astype(F), 16)
    for wrong in ({"prefixOptional": [4]}, {"prefixOptional": [6, 0]}, {"attenMaskOptional": None},
                  {"attenMaskOptional": mask[..., :3]}, {"sparseMode": 7}):  # fmt: skip
        assert refused(name, **{**given, **wrong}) == 161002, wrong
