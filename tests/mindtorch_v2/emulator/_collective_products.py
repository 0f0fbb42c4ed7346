"""Products and routing with collectives inside, by several ranks; each function is called in a child process."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from ._collectives import BF, F, H, close, made
from ._kernels import In, Out, call, refused
from ._ranks import Rank, on_ranks
from .test_kernels_weights import nz


def fused() -> None:
    def body(r: Rank) -> None:
        group, size = {"group": r.name}, 2
        turns = {"commTurn": 0, "streamMode": 1}
        summing = {**group, **turns, "reduceOp": "sum"}
        x = [made(i, 4, 6, dtype=H) for i in range(size)]
        w = [made(i, 6, 8, dtype=H, seed=1) for i in range(size)]
        b = [made(i, 8, dtype=H, seed=2) for i in range(size)]
        e = [made(i, 4, 8, dtype=H, seed=3) for i in range(size)]
        me = r.number
        y = [x[i].astype(float) @ w[i].astype(float) + b[i].astype(float) for i in range(size)]
        given = {"x1": x[me], "x2": w[me], "bias": b[me]}
        out = {"output": Out((4, 8), "float16")}
        close(call("aclnnMatmulAllReduce", **given, **summing, **out), sum(y))
        for name in ("aclnnMatmulAllReduceV2", "aclnnMatmulAllReduceV3"):
            close(call(name, **given, x3=e[me], **summing, **out), sum(y) + sum(v.astype(float) for v in e))
        assert refused("aclnnMatmulAllReduce", **given, **{**summing, "group": "none"}, **out) == 161002
        assert refused("aclnnMatmulAllReduce", **given, **{**summing, "reduceOp": "max"}, **out) == 161002
        assert refused("aclnnMatmulAllReduce", **given, **summing, output=Out((4, 9), "float16")) == 161002
        close(
            call("aclnnMatmulReduceScatter", **given, **summing, output=Out((2, 8), "float16")),
            sum(y)[2 * me : 2 * me + 2],
        )
        gathered = np.concatenate(x)
        for name in ("aclnnAllGatherMatmul", "aclnnAllGatherMatmulV2"):
            more = {"blockSize": 0, "groupSize": 0} if name.endswith("V2") else {}
            got = call(
                name,
                **given,
                **group,
                **turns,
                **more,
                gatherIndex=0,
                output=Out((8, 8), "float16"),
                gatherOut=Out((8, 6), "float16"),
            )
            close(got[0], gathered.astype(float) @ w[me].astype(float) + b[me].astype(float))
            np.testing.assert_array_equal(got[1], gathered)
        normed(r, given, summing, sum(y), e[0])
        for version in ("", "V2"):
            exchanged(r, version, group, x, w[me], y)
        total = gathered.astype(float) + 1
        got = call(
            "aclnnAllGatherAdd",
            a=x[me],
            b=np.ones((8, 6), H),
            **group,
            rankSize=2,
            cOut=Out((8, 6), "float16"),
            gatherOutOut=Out((8, 6), "float16"),
        )
        close(got[0], total)
        call("aclnnDistributeBarrier", xRef=x[me], **group, worldSize=2)
        call("aclnnDistributeBarrierV2", xRef=x[me], **group, worldSize=2)
        call("aclnnInnerDistributeBarrier", xRef=x[me], **group, worldSize=2)
        reset: dict[str, Any] = {"elasticInfo": np.zeros(8, np.int32), "groupEp": r.name, "epWorldSize": 2}
        for wait in (0, 1):
            call("aclnnMoeDistributeBufferReset", **reset, needSync=wait)
        assert refused("aclnnMoeDistributeBufferReset", **{**reset, "epWorldSize": 3}, needSync=1) == 161002
        assert refused("aclnnMoeDistributeBufferReset", **reset, needSync=2) == 161002
        assert refused("aclnnDistributeBarrier", xRef=x[me], **group, worldSize=3) == 161002
        listed: dict[str, Any] = {
            "x": [x[me], e[me]],
            "weight": [w[me], np.ascontiguousarray(w[me].T)],
            "bias": [b[me], b[me][:6]],
            "splitItem": 0,
        }
        shapes = [Out((4, 8), "float16"), Out((4, 6), "float16")]
        got = call("aclnnGroupedMatMulAllReduce", **listed, **summing, y=shapes)
        close(got[0], sum(y))
        close(got[1], sum(e[i].astype(float) @ w[i].T.astype(float) + b[i][:6].astype(float) for i in range(2)), 1e-2)
        assert refused("aclnnGroupedMatMulAllReduce", **listed, **summing, y=shapes[::-1]) == 161002

    on_ranks(2, body)


def normed(r: Rank, given: dict[str, Any], summing: dict[str, Any], product: Any, residual: Any) -> None:
    gamma = made(0, 8, dtype=H, seed=9)
    y = product + residual.astype(float)
    norm = y / np.sqrt((y**2).mean(-1, keepdims=True) + 1e-5) * gamma.astype(float)
    wide = {"residual": residual[None], "gamma": gamma, "epsilon": 1e-5, **summing}
    given = {**given, "x1": given["x1"][None]}
    outs = {"y": Out((1, 4, 8), "float16"), "normOut": Out((1, 4, 8), "float16")}
    got = call("aclnnMatmulAllReduceAddRmsNorm", **given, **wide, **outs)
    close(got[0][0], y, 8e-3)
    close(got[1][0], norm, 8e-3)
    got = call("aclnnInplaceMatmulAllReduceAddRmsNorm", **given, **wide, normOut=outs["normOut"])
    close(got[0][0], y, 8e-3)
    close(got[1][0], norm, 8e-3)


def exchanged(r: Rank, version: str, group: dict[str, Any], x: list[Any], w: Any, y: list[Any]) -> None:
    straight = {**group, "transposeX1": False, "transposeX2": False}
    me = r.number
    beside = np.concatenate([a[2 * me : 2 * me + 2] for a in x], 1)
    long = made(me, 12, 5, dtype=H, seed=4)
    got = call(
        f"aclnnAlltoAllMatmul{version}",
        x1=x[me],
        x2=long,
        **straight,
        output=Out((2, 5), "float16"),
        alltoAllOutOptional=Out((2, 12), "float16"),
    )
    close(got[0], beside.astype(float) @ long.astype(float), 1e-2)
    np.testing.assert_array_equal(got[1], beside)
    got = call(
        f"aclnnMatmulAlltoAll{version}",
        x1=x[me],
        x2=w,
        biasOptional=made(me, 8, dtype=H, seed=2),
        **straight,
        output=Out((8, 4), "float16"),
    )
    close(got, np.concatenate([v[:, 4 * me : 4 * me + 4] for v in y]), 1e-2)


def _small_integers(r: Rank) -> None:
    me, turns = r.number, {"commTurn": 0, "streamMode": 1}
    summing = {"group": r.name, "reduceOp": "sum", **turns}
    x = [made(i, 4, 32, dtype=np.int8) for i in range(2)]
    w = [made(i, 32, 64, dtype=np.int8, seed=1) for i in range(2)]
    bias = [made(i, 64, dtype=np.int32, seed=2) for i in range(2)]
    scale = np.linspace(0.01, 0.1, 64).astype(F)
    coded = scale.view(np.uint32).astype(np.int64)
    rows = np.array([0.5, 1, 2, 4], F)
    y = [(x[i].astype(float) @ w[i].astype(float) + bias[i]) * scale for i in range(2)]
    out = {"output": Out((4, 64), "float16")}
    close(
        call("aclnnQuantMatmulAllReduce", x1=x[me], x2=w[me], bias=bias[me], dequantScale=coded, **summing, **out),
        sum(y),
    )
    by_row = sum(y) * rows[:, None]
    older: dict[str, Any] = {"pertokenScaleOptional": rows[:, None], "dequantScale": scale[None]}
    newer: dict[str, Any] = {"x1ScaleOptional": rows, "x2Scale": scale, "groupSize": 0, "commQuantMode": 0}
    for version, names in (("V2", older), ("V3", older), ("V4", newer), ("V5", newer)):
        blocked = nz(w[me]) if version in ("V2", "V3") else w[me]
        close(
            call(
                f"aclnnQuantMatmulAllReduce{version}",
                x1=x[me],
                x2=blocked,
                biasOptional=bias[me],
                **names,
                **summing,
                **out,
            ),
            by_row,
        )
    residual, gamma = made(0, 1, 4, 64, dtype=H, seed=5), made(0, 64, dtype=H, seed=6)
    total = sum(y) + residual[0].astype(float)
    norm = total / np.sqrt((total**2).mean(-1, keepdims=True) + 1e-5) * gamma.astype(float)
    common = {
        "x1": x[me][None],
        "x2": w[me],
        "bias": bias[me],
        "dequantScale": coded,
        "residual": residual,
        "gamma": gamma,
        "epsilon": 1e-5,
        **summing,
    }
    outs = {"normOut": Out((1, 4, 64), "float16")}
    got = call("aclnnQuantMatmulAllReduceAddRmsNorm", **common, y=Out((1, 4, 64), "float16"), **outs)
    close(got[0][0], total, 1e-2)
    close(got[1][0], norm, 1e-2)
    close(call("aclnnInplaceQuantMatmulAllReduceAddRmsNorm", **common, **outs)[1][0], norm, 1e-2)
    _float_rows(r, summing)


def _float_rows(r: Rank, summing: dict[str, Any]) -> None:
    me = r.number
    x = [made(i, 4, 32, dtype=H) for i in range(2)]
    w = [np.random.default_rng(i).integers(-8, 8, (32, 16)).astype(ml_dtypes.int4) for i in range(2)]
    scale, shift = made(0, 2, 16, dtype=H, seed=3), made(0, 2, 16, dtype=H, seed=4)
    blocks = [
        (v.astype(float) + np.repeat(shift.astype(float), 16, 0)) * np.repeat(scale.astype(float), 16, 0) for v in w
    ]
    want = sum(x[i].astype(float) @ blocks[i] for i in range(2))
    given = {
        "x1": x[me],
        "x2": w[me],
        "antiquantScale": scale,
        "antiquantOffset": shift,
        "antiquantGroupSize": 16,
        **summing,
    }
    for version in ("", "V2"):
        close(call(f"aclnnWeightQuantMatmulAllReduce{version}", **given, output=Out((4, 16), "float16")), want, 2e-2)
    residual, gamma = made(0, 1, 4, 16, dtype=H, seed=5), made(0, 16, dtype=H, seed=6)
    total = want + residual[0].astype(float)
    norm = total / np.sqrt((total**2).mean(-1, keepdims=True) + 1e-5) * gamma.astype(float)
    more = {**given, "x1": x[me][None], "residual": residual, "gamma": gamma, "epsilon": 1e-5}
    outs = {"normOut": Out((1, 4, 16), "float16")}
    close(
        call("aclnnWeightQuantMatmulAllReduceAddRmsNorm", **more, y=Out((1, 4, 16), "float16"), **outs)[1][0],
        norm,
        2e-2,
    )
    close(call("aclnnInplaceWeightQuantMatmulAllReduceAddRmsNorm", **more, **outs)[1][0], norm, 2e-2)
    _eighths(r)


def _eighths(r: Rank) -> None:
    me, fp8 = r.number, ml_dtypes.float8_e4m3fn
    x = [made(i, 4, 6, dtype=F).astype(fp8) for i in range(2)]
    w = [made(i, 6, 8, dtype=F, seed=1).astype(fp8) for i in range(2)]
    rows, columns = np.array([2], F), np.array([0.5], F)
    y = [x[i].astype(float) @ w[i].astype(float) for i in range(2)]
    turns = {
        "group": r.name,
        "commTurn": 0,
        "streamMode": 1,
        "blockSize": 0,
        "groupSize": 0,
        "x1Scale": rows,
        "x2Scale": columns,
    }
    got = call(
        "aclnnAllGatherMatmulV2",
        x1=x[me],
        x2=w[me],
        **turns,
        gatherIndex=0,
        output=Out((8, 8), "float16"),
        gatherOut=Out((8, 6), "float8_e4m3fn"),
    )
    close(got[0], np.concatenate(x).astype(float) @ w[me].astype(float), 1e-2)
    np.testing.assert_array_equal(got[1].astype(float), np.concatenate(x).astype(float))
    got = call("aclnnMatmulReduceScatterV2", x1=x[me], x2=w[me], **turns, reduceOp="sum", output=Out((2, 8), "float16"))
    close(got, sum(y)[2 * me : 2 * me + 2], 1e-2)
    modes = {
        "x1QuantMode": 3,
        "x2QuantMode": 2,
        "commQuantMode": 0,
        "commQuantDtype": 0,
        "groupSize": 0,
        "group": r.name,
    }
    tokens, channels = np.array([1, 2, 3, 4], F), np.linspace(0.5, 1, 8).astype(F)
    scaled = [v * tokens[:, None] * channels for v in y]
    for version in ("", "V2"):
        got = call(
            f"aclnnQuantMatmulAlltoAll{version}",
            x1=x[me],
            x2=w[me],
            x1Scale=tokens,
            x2Scale=channels,
            **modes,
            transposeX1=False,
            transposeX2=False,
            output=Out((8, 4), "float16"),
        )
        close(got, np.concatenate([v[:, 4 * me : 4 * me + 4] for v in scaled]), 1e-2)
    block = np.repeat(made(0, 4, 2, seed=7), 128, 1)
    whole = made(me, 4, 256, dtype=np.int8, seed=8)
    both = sum(made(i, 4, 256, dtype=np.int8, seed=8).astype(float) for i in range(2)) * block
    close(
        call(
            "aclnnQuantAllReduce",
            x=whole,
            scales=made(0, 4, 2, seed=7),
            group=r.name,
            reduceOp="sum",
            output=Out((4, 256), "float32"),
        ),
        both,
    )
    got = call(
        "aclnnQuantReduceScatter",
        x=whole,
        scales=made(0, 4, 2, seed=7),
        group=r.name,
        reduceOp="sum",
        output=Out((2, 256), "float32"),
    )
    close(got, both[2 * me : 2 * me + 2])


def fused_small_integers() -> None:
    on_ranks(2, _small_integers)


def grouped() -> None:
    """Rows to the experts of two ranks, two each, and back."""
    sent = np.array([[2, 1, 0, 3], [1, 2, 2, 1]])  # by rank: to (rank 0: experts 0, 1; rank 1: experts 0, 1)

    def body(r: Rank) -> None:
        me = r.number
        x = [made(i, 6, 4, dtype=H) for i in range(2)]
        w = [made(i, 2, 4, 5, dtype=H, seed=1) for i in range(2)]
        starts = np.cumsum(sent, 1) - sent
        arriving = {
            (i, j): x[i][starts[i, 2 * me + j] : starts[i, 2 * me + j] + sent[i, 2 * me + j]]
            for i in range(2)
            for j in range(2)
        }
        permuted = np.concatenate([arriving[i, j] for j in range(2) for i in range(2)])
        y = np.concatenate([arriving[i, j].astype(float) @ w[me][j].astype(float) for j in range(2) for i in range(2)])
        got_counts = [int(sent[i, 2 * me + j]) for i in range(2) for j in range(2)]
        common = {"group": r.name, "epWorldSize": 2, "transGmmWeight": False, "transMmWeight": False}
        rows = len(permuted)
        shared, matrix = made(me, 3, 4, dtype=H, seed=5), made(me, 4, 2, dtype=H, seed=6)
        for version in ("", "V2"):
            got = call(
                f"aclnnAlltoAllvGroupedMatMul{version}",
                gmmX=x[me],
                gmmWeight=w[me],
                sendCounts=sent[me].tolist(),
                recvCounts=got_counts,
                permuteOutFlag=True,
                **common,
                gmmY=Out((rows, 5), "float16"),
                mmXOptional=shared,
                mmWeightOptional=matrix,
                mmYOptional=Out((3, 2), "float16"),
                permuteOutOptional=Out((rows, 4), "float16"),
            )
            close(got[0], y, 1e-2)
            close(got[1], shared.astype(float) @ matrix.astype(float), 1e-2)
            np.testing.assert_array_equal(got[2], permuted)
            back = call(
                f"aclnnGroupedMatMulAlltoAllv{version}",
                gmmX=permuted,
                gmmWeight=w[me],
                sendCounts=got_counts,
                recvCounts=sent[me].tolist(),
                **common,
                y=Out((6, 5), "float16"),
            )
            want = [
                x[me][starts[me, k] : starts[me, k] + sent[me, k]].astype(float) @ w[k // 2][k % 2].astype(float)
                for k in range(4)
            ]
            close(back, np.concatenate(want), 1e-2)
        assert (
            refused(
                "aclnnGroupedMatMulAlltoAllv",
                gmmX=permuted,
                gmmWeight=w[me],
                sendCounts=[1, 1, 1, 100],
                recvCounts=[1, 1, 1, 1],
                **common,
                y=Out((4, 5), "float16"),
            )
            == 161002
        )

    on_ranks(2, body)


def _expert_group(r: Rank) -> dict[str, Any]:
    return {
        "groupEp": r.name,
        "epWorldSize": 2,
        "epRankId": r.number,
        "moeExpertNum": 4,
        "groupTp": "",
        "tpWorldSize": 0,
        "tpRankId": 0,
        "expertShardType": 0,
        "sharedExpertNum": 0,
        "sharedExpertRankNum": 0,
        "globalBs": 0,
    }


def _experts(r: Rank) -> None:
    me, tokens, picks, width = r.number, 5, 2, 8
    x = [made(i, tokens, width, dtype=BF) for i in range(2)]
    ids = [
        np.stack([np.random.default_rng(i * 10 + t).permutation(4)[:picks] for t in range(tokens)]).astype(np.int32)
        for i in range(2)
    ]
    scales = [np.abs(made(i, tokens, picks, seed=3)) for i in range(2)]
    mask = np.array([True, True, False, True, True])
    base = _expert_group(r)
    none = {"zeroExpertNum": 0, "copyExpertNum": 0, "constExpertNum": 0}
    for version in ("", "V2", "V3", "V4"):
        new, later = version != "", {**base, **(none if version > "V2" else {})}
        keep = mask if new else np.ones(5, bool)
        rows, ends = [], []
        for expert in (2 * me, 2 * me + 1):
            for i in range(2):
                rows += [x[i][t] for t in range(tokens) for k in range(picks) if ids[i][t, k] == expert and keep[t]]
                ends.append(len(rows))
        o = "Out" if new else ""
        outs = {
            f"expandX{o}": Out((20, width), "bfloat16"),
            f"expertTokenNums{o}": Out((2,), "int64"),
            f"epRecvCounts{o}": Out((4,), "int32"),
            f"tpRecvCounts{o}": Out((1,), "int32"),
            "assistInfoForCombineOut" if new else "expandIdx": Out((20 * 128 if new else 10,), "int32"),
        }
        masks = {"xActiveMaskOptional": mask} if new else {}
        got = call(
            f"aclnnMoeDistributeDispatch{version}",
            x=x[me],
            expertIds=ids[me],
            **masks,
            **later,
            quantMode=0,
            expertTokenNumsType=1,
            **({"commAlg": ""} if new else {}),
            **outs,
        )
        values = dict(zip(("expandX", "info", "expertTokenNums", "epRecvCounts", "tpRecvCounts"), got))
        np.testing.assert_array_equal(
            values["expandX"][: len(rows)].astype(float), np.array(rows, float).reshape(-1, width)
        )
        np.testing.assert_array_equal(values["epRecvCounts"], ends)
        np.testing.assert_array_equal(values["expertTokenNums"], [ends[1], ends[3] - ends[1]])
        info = {"assistInfoForCombine" if new else "expandIdx": values["info"]}
        want = np.where(keep[:, None], x[me].astype(float) * scales[me].sum(-1, keepdims=True), 0)
        combine = {
            "expandX": values["expandX"],
            "expertIds": ids[me],
            **info,
            "epSendCounts": values["epRecvCounts"],
            "expertScales": scales[me],
            **masks,
            **later,
            "outDtype": 0,
            "commQuantMode": 0,
            "groupListType": 0,
        }
        got = call(
            f"aclnnMoeDistributeCombine{version}",
            **combine,
            **({"commAlg": ""} if new else {}),
            **{f"x{o}": Out((tokens, width), "bfloat16")},
        )
        close(got, want, 2e-2)
        if version in ("V2", "V3"):
            _normed_experts(combine, "" if version == "V2" else "V2", want, x[me])
    _quantized_experts(r, base, x, ids)


def _normed_experts(combine: dict[str, Any], version: str, want: Any, residual: Any) -> None:
    gamma = made(0, 8, dtype=BF, seed=8)
    total = want + residual.astype(float)
    rstd = 1 / np.sqrt((total**2).mean(-1) + 1e-6)
    got = call(
        f"aclnnMoeDistributeCombineAddRmsNorm{version}",
        **combine,
        residualX=residual[:, None],
        gamma=gamma,
        normEps=1e-6,
        commAlg="",
        yOut=Out((5, 1, 8), "bfloat16"),
        rstdOut=Out((5, 1, 1), "float32"),
        xOut=Out((5, 1, 8), "bfloat16"),
    )
    close(got[0][:, 0], total * rstd[:, None] * gamma.astype(float), 4e-2)
    close(got[1].reshape(-1), rstd, 4e-2)
    close(got[2][:, 0], total, 4e-2)


def _quantized_experts(r: Rank, base: dict[str, Any], x: list[Any], ids: list[Any]) -> None:
    smooth = np.abs(made(0, 4, 8, seed=6)) + 0.5
    factors = [made(i, 5, 2, seed=11) for i in range(2)]
    got = call(
        "aclnnMoeDistributeDispatch",
        x=x[r.number],
        expertIds=ids[r.number],
        scales=smooth,
        expertScales=factors[r.number],
        **base,
        quantMode=2,
        expertTokenNumsType=0,
        expandX=Out((20, 8), "int8"),
        dynamicScales=Out((20,), "float32"),
        expandIdx=Out((10,), "int32"),
        expertTokenNums=Out((2,), "int64"),
        epRecvCounts=Out((4,), "int32"),
        tpRecvCounts=Out((1,), "int32"),
        expandScales=Out((20,), "float32"),
    )
    rows, sent = [], []
    for expert in (2 * r.number, 2 * r.number + 1):
        for i in range(2):
            places = [(t, k) for t in range(5) for k in range(2) if ids[i][t, k] == expert]
            rows += [x[i][t].astype(float) * smooth[expert] for t, _ in places]
            sent += [factors[i][place] for place in places]
    close(got[0][: len(rows)] * got[1][: len(rows), None], np.array(rows), 3e-2)
    close(got[-1][: len(rows)], np.array(sent))
    # With fixed scales a row is rounded as they make it: by one number, by column, by expert and column.
    for fixed in (np.array([9], F), np.linspace(5, 9, 8).astype(F), smooth * 9):
        small = call(
            "aclnnMoeDistributeDispatch",
            x=x[r.number],
            expertIds=ids[r.number],
            scales=fixed,
            **base,
            quantMode=1,
            expertTokenNumsType=0,
            expandX=Out((20, 8), "int8"),
            dynamicScales=Out((20,), "float32"),
            expandIdx=Out((10,), "int32"),
            expertTokenNums=Out((2,), "int64"),
            epRecvCounts=Out((4,), "int32"),
            tpRecvCounts=Out((1,), "int32"),
            expandScales=Out((20,), "float32"),
        )[0]
        want = []
        for expert in (2 * r.number, 2 * r.number + 1):
            by = fixed.astype(float) if fixed.ndim == 1 else fixed[expert].astype(float)
            for i in range(2):
                tokens = [t for t in range(5) for k in range(2) if ids[i][t, k] == expert]
                want += [np.clip(np.rint(x[i][t].astype(float) * by), -128, 127) for t in tokens]
        np.testing.assert_array_equal(small[: len(want)], np.array(want))


def experts() -> None:
    """Dispatch to four experts of two ranks and combine: identity experts give back the tokens, scaled."""
    on_ranks(2, _experts)


def formats() -> None:
    """An argument in the matrix unit's blocks takes part in a collective product."""

    def body(r: Rank) -> None:
        x, w = made(r.number, 4, 32, dtype=np.int8), made(r.number, 32, 64, dtype=np.int8, seed=1)
        scale = np.ones((1, 64), F)
        blocked: In = nz(w)
        got = call(
            "aclnnQuantMatmulAllReduceV2",
            x1=x,
            x2=blocked,
            dequantScale=scale,
            group=r.name,
            reduceOp="sum",
            commTurn=0,
            streamMode=1,
            output=Out((4, 64), "float16"),
        )
        close(got, x.astype(float) @ w.astype(float))

    on_ranks(1, body)
