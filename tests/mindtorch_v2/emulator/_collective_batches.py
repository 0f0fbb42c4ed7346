"""Products of experts' batches between two groups of ranks, and quantized rows that are exchanged."""

from __future__ import annotations

import ctypes
import math
from ctypes import byref, c_uint32, c_uint64, c_void_p
from typing import Any

import ml_dtypes
import numpy as np

from ._collectives import F, H, close, made
from ._kernels import CODES, Out, call, refused
from ._ranks import Rank, on_ranks
from .test_kernels_microscaled import microscaled

EP = TP = 2
EXPERTS, ROWS, SMALL, WIDE = 4, 4, 6, 8
E4M3 = ml_dtypes.float8_e4m3fn


def part(r: Rank, members: list[int], number: int) -> tuple[Any, str]:
    """A communicator of some of the ranks, and its name."""
    whole, comm = c_void_p(r.comm.value), c_void_p()
    some = (c_uint32 * len(members))(*members)
    place = members.index(r.number)
    r.hccl.check(
        "HcclCreateSubCommConfig",
        byref(whole),
        c_uint32(len(members)),
        some,
        c_uint64(number),
        c_uint32(place),
        None,
        byref(comm),
    )
    name = ctypes.create_string_buffer(128)
    r.hccl.check("HcclGetCommName", comm, name)
    return comm, name.value.decode()


def gelu(x: np.ndarray) -> np.ndarray:
    return np.asarray(0.5 * x * (1 + np.vectorize(math.erf)(x / np.sqrt(2))))


def batches() -> None:
    """Four ranks: the experts over (0, 2) and (1, 3), the sizes over (0, 1) and (2, 3)."""

    def body(r: Rank) -> None:
        e, t = r.number // TP, r.number % TP
        ep, ep_name = part(r, [t, TP + t], 10 + t)
        tp, tp_name = part(r, [TP * e, TP * e + 1], 20 + e)
        group = {"groupEp": ep_name, "groupTp": tp_name, "epWorldSize": EP, "tpWorldSize": TP}
        for shard in (0, 1):
            forward(r, e, t, shard, group)
            backward(r, e, t, shard, group)
        for comm in (ep, tp):
            r.hccl.check("HcclCommDestroy", comm)

    on_ranks(4, body)


def forward(r: Rank, e: int, t: int, shard: int, group: dict[str, Any]) -> None:
    whole = [made(i, EXPERTS, ROWS, WIDE, dtype=H) for i in range(EP)]  # of a rank of the first group, all its tokens

    def held(i: int, j: int) -> np.ndarray:
        return np.split(whole[i], TP, 2 if shard == 0 else 1)[j]

    mine = slice(e * EXPERTS // EP, (e + 1) * EXPERTS // EP)
    w, b = (
        made(10 + r.number, EXPERTS // EP, WIDE, SMALL, dtype=H),
        made(20 + r.number, EXPERTS // EP, 1, SMALL, dtype=H),
    )
    x = np.concatenate([whole[i][mine] for i in range(EP)], 1)
    plain = x.astype(float) @ w.astype(float) + b.astype(float)
    given = {
        "x": np.ascontiguousarray(held(e, t)),
        "weight": w,
        "biasOptional": b,
        "xShardType": shard,
        "actType": 1,
        **group,
    }
    shape = (EXPERTS // EP, EP * ROWS, SMALL)
    outs = {
        "y1Out": Out(shape, "float16"),
        "y2OutOptional": Out(x.shape, "float16"),
        "y3OutOptional": Out(shape, "float16"),
    }
    got = call("aclnnAlltoAllAllGatherBatchMatMul", **given, **outs)
    close(got[0], gelu(plain), 1e-2)
    np.testing.assert_array_equal(got[1], x)
    close(got[2], plain, 1e-2)
    for wrong in (
        {"epWorldSize": 3},
        {"tpWorldSize": 1},
        {"xShardType": 2},
        {"actType": 5},
        {"groupTp": "none"},
        {"actType": 0},
    ):
        assert refused("aclnnAlltoAllAllGatherBatchMatMul", **{**given, **wrong}, **outs) == 161002, wrong


def backward(r: Rank, e: int, t: int, shard: int, group: dict[str, Any]) -> None:
    per = EXPERTS // EP
    x = {(i, j): made(30 + TP * i + j, per, EP * ROWS, SMALL, dtype=H) for i in range(EP) for j in range(TP)}
    w = {(i, j): made(40 + TP * i + j, per, SMALL, WIDE, dtype=H) for i in range(EP) for j in range(TP)}
    full = {i: sum(x[i, j].astype(float) @ w[i, j].astype(float) for j in range(TP)) for i in range(EP)}
    columns = WIDE // TP if shard == 0 else WIDE
    b = {(i, j): made(50 + TP * i + j, per, 1, columns, dtype=H) for i in range(EP) for j in range(TP)}

    def share(i: int) -> np.ndarray:
        """What rank (i, t) of the experts has for the tokens of rank e."""
        rows = np.asarray(full[i])[:, e * ROWS : (e + 1) * ROWS]
        return np.asarray(np.split(rows, TP, 2 if shard == 0 else 1)[t] + b[i, t].astype(float))

    want = np.concatenate([share(i) for i in range(EP)])
    given = {"x": x[e, t], "weight": w[e, t], "biasOptional": b[e, t], "yShardType": shard, **group}
    close(call("aclnnBatchMatMulReduceScatterAlltoAll", **given, out=Out(want.shape, "float16")), want, 2e-2)
    for wrong in ({"epWorldSize": 4}, {"yShardType": 2}, {"groupEp": "none"}, {"biasOptional": b[e, t][:1]}):
        assert (
            refused("aclnnBatchMatMulReduceScatterAlltoAll", **{**given, **wrong}, out=Out(want.shape, "float16"))
            == 161002
        ), wrong


def quantized_exchange() -> None:
    def body(r: Rank) -> None:
        me = r.number
        x = [made(i, 4, 6, dtype=H) for i in range(2)]
        w = np.random.default_rng(3 + me).integers(-100, 100, (12, 8)).astype(np.int8)
        scale, bias, smooth = (
            made(me, 8, dtype=F, seed=4),
            made(me, 8, dtype=F, seed=5),
            np.abs(made(me, 12, dtype=F, seed=6)) + F(0.5),
        )
        rows = np.concatenate([part[2 * me : 2 * me + 2] for part in x], 1)
        smoothed = rows.astype(float) * smooth.astype(float)
        by_row = np.abs(smoothed).max(-1, keepdims=True) / 127
        want = np.rint(smoothed / by_row) @ w.astype(float) * by_row * scale.astype(float) + bias.astype(float)
        given: dict[str, Any] = {
            "x1": x[me],
            "x2": w,
            "biasOptional": bias,
            "x1ScaleOptional": smooth,
            "x2Scale": scale,
            "group": r.name,
            "x1QuantMode": 7,
            "x2QuantMode": 2,
            "commQuantMode": 0,
            "commQuantDtype": 0,
            "x1QuantDtype": CODES["int8"],
            "groupSize": 0,
            "transposeX1": False,
            "transposeX2": False,
        }
        outs = {"output": Out((2, 8), "float16"), "alltoAllOutOptional": Out((2, 12), "float16")}
        for version in ("", "V2"):
            got = call(
                f"aclnnAlltoAllQuantMatmul{version}", **given, **({"commMode": "aiv"} if version else {}), **outs
            )
            close(got[0], want, 2e-2)
            np.testing.assert_array_equal(got[1], rows)
        for wrong in (
            {"groupSize": 32},
            {"x1QuantDtype": 0},
            {"transposeX1": True},
            {"x2Scale": scale[:4]},
            {"commQuantMode": 1},
        ):
            assert refused("aclnnAlltoAllQuantMatmul", **{**given, **wrong}, **outs) == 161002, wrong
        to_experts(r)

    on_ranks(2, body)


def to_experts(r: Rank) -> None:
    """Small floats to the experts of two ranks, one each, and back; a scale for all rows and one for all weights."""
    me, sent = r.number, np.array([[2, 1], [3, 2]])
    x = [made(i, int(sent[i].sum()), 4, dtype=F, seed=7).astype(E4M3) for i in range(2)]
    w = [made(i, 1, 4, 5, dtype=F, seed=8).astype(E4M3) for i in range(2)]
    scales = {"gmmXScale": np.array([0.5], F), "gmmWeightScale": np.array([0.25], F)}
    modes = {"gmmXQuantMode": 1, "gmmWeightQuantMode": 1, "mmXQuantMode": 1, "mmWeightQuantMode": 1, "groupSize": 0}
    common = {"group": r.name, "epWorldSize": 2, "transGmmWeight": False, "transMmWeight": False, **scales, **modes}
    arriving = np.concatenate([np.split(x[i], [sent[i, 0]])[me] for i in range(2)])
    shared, matrix = made(me, 3, 4, dtype=F, seed=9).astype(E4M3), made(me, 4, 2, dtype=F, seed=10).astype(E4M3)
    extra = {
        "mmXOptional": shared,
        "mmWeightOptional": matrix,
        "mmXScaleOptional": np.array([2], F),
        "mmWeightScaleOptional": np.array([3], F),
    }
    counts, back = sent[me].tolist(), sent[:, me].tolist()
    for version in ("", "V2"):
        mode = {"commMode": "aiv"} if version else {}
        given = {
            "gmmX": x[me],
            "gmmWeight": w[me],
            "sendCounts": counts,
            "recvCounts": back,
            "permuteOutFlag": True,
            **common,
            **extra,
            **mode,
        }
        outs = {
            "gmmY": Out((len(arriving), 5), "float16"),
            "mmYOptional": Out((3, 2), "float16"),
            "permuteOutOptional": Out(arriving.shape, "float8_e4m3fn"),
        }
        got = call(f"aclnnAlltoAllvQuantGroupedMatMul{version}", **given, **outs)
        close(got[0], arriving.astype(float) @ w[me][0].astype(float) * 0.125, 1e-2)
        close(got[1], shared.astype(float) @ matrix.astype(float) * 6, 1e-2)
        np.testing.assert_array_equal(got[2], arriving)
        for wrong in (
            {"gmmXQuantMode": 6},
            {"groupSize": 32},
            {"gmmXScale": np.ones(2, F)},
            {"mmXScaleOptional": None},
        ):
            assert refused(f"aclnnAlltoAllvQuantGroupedMatMul{version}", **{**given, **wrong}, **outs) == 161002, wrong
        given = {
            "gmmX": arriving,
            "gmmWeight": w[me],
            "sendCounts": back,
            "recvCounts": counts,
            "commQuantMode": 0,
            "commQuantDtypeOptional": 0,
            **common,
            **mode,
        }
        got = call(f"aclnnQuantGroupedMatMulAlltoAllv{version}", **given, y=Out((len(x[me]), 5), "float16"))
        want = [p.astype(float) @ w[i][0].astype(float) * 0.125 for i, p in enumerate(np.split(x[me], [sent[me, 0]]))]
        close(got, np.concatenate(want), 1e-2)


# -- tokens sent to experts and brought back ---------------------------------------------------------------------------
TOKENS, PICKS, LONG = 5, 2, 8
NOWHERE = ("zeroExpertNum", "copyExpertNum", "constExpertNum")  # of later versions


def _sent(rank: int, numbers: int) -> tuple[Any, Any, Any]:
    """The tokens of a rank, the experts they pick and the weights of these."""
    x = made(rank, TOKENS, LONG, dtype=ml_dtypes.bfloat16)
    picked = [np.random.default_rng(rank * 10 + t).permutation(numbers)[:PICKS] for t in range(TOKENS)]
    return x, np.stack(picked).astype(np.int32), np.abs(made(rank, TOKENS, PICKS, seed=3))


def _dispatched(version: str, ids: Any, x: Any, group: dict[str, Any], local: int, room: int, ends: int) -> Any:
    later = version in ("V3", "V4")
    got = call(
        f"aclnnMoeDistributeDispatch{version}",
        x=x,
        expertIds=ids,
        **{k: v for k, v in group.items() if later or k not in NOWHERE},
        quantMode=0,
        expertTokenNumsType=1,
        commAlg="",
        expandXOut=Out((room, LONG), "bfloat16"),
        assistInfoForCombineOut=Out((room * 128,), "int32"),
        expertTokenNumsOut=Out((local,), "int64"),
        epRecvCountsOut=Out((ends,), "int32"),
        tpRecvCountsOut=Out((max(group["tpWorldSize"], 1),), "int32"),
    )
    return got


def _combined(version: str, sent: Any, got: Any, group: dict[str, Any], **more: Any) -> Any:
    later = version in ("V3", "V4")
    return call(
        f"aclnnMoeDistributeCombine{version}",
        expandX=got[0],
        expertIds=sent[1],
        assistInfoForCombine=got[1],
        epSendCounts=got[3],
        expertScales=sent[2],
        **{k: v for k, v in group.items() if later or k not in NOWHERE},
        **{"outDtype": 0, "commQuantMode": 0, "groupListType": 0, **more},
        commAlg="",
        xOut=Out((TOKENS, LONG), "bfloat16"),
    )


def shared_experts() -> None:
    """Four ranks, the first has the expert that sees every token; numbers behind the true experts give 0 or a copy."""

    def body(r: Rank) -> None:
        me, experts = r.number, 6
        group = {
            "groupEp": r.name, "epWorldSize": 4, "epRankId": me, "moeExpertNum": experts, "groupTp": "",
            "tpWorldSize": 0, "tpRankId": 0, "expertShardType": 0, "sharedExpertNum": 1, "sharedExpertRankNum": 1,
            "globalBs": TOKENS * 4, "zeroExpertNum": 1, "copyExpertNum": 1, "constExpertNum": 0,
        }  # fmt: skip
        for version in ("V2", "V4"):
            sent = [_sent(i, experts + (2 if version == "V4" else 0)) for i in range(4)]
            x, ids, scales = sent[me]
            mine = [None] if me == 0 else [2 * (me - 1), 2 * (me - 1) + 1]
            rows, ends = [], []
            for expert in mine:
                for other, picked, _ in sent:
                    rows += [other[t] for t in range(TOKENS) if expert is None or expert in picked[t]]
                    ends.append(len(rows))
            got = _dispatched(version, ids, x, group, len(mine), 40, 4 * len(mine))
            want = np.array(rows, float).reshape(-1, LONG)
            np.testing.assert_array_equal(got[0][: len(rows)].astype(float), want)
            np.testing.assert_array_equal(got[3], ends)
            np.testing.assert_array_equal(got[2], np.diff([0, *ends[3::4]]))
            weight = 1 + (scales * (ids != experts)).sum(-1, keepdims=True)
            more = {"oriXOptional": x} if version == "V4" else {}
            close(_combined(version, sent[me], got, group, **more), x.astype(float) * weight, 3e-2)
            close(_combined(version, sent[me], got, group, commQuantMode=2, **more), x.astype(float) * weight, 6e-2)
        assert (
            refused("aclnnMoeDistributeDispatchV2", **_refusable(x, ids, {**group, "sharedExpertRankNum": 3})) == 161002
        )
        assert (
            refused("aclnnMoeDistributeDispatchV2", **_refusable(x, ids, {**group, "sharedExpertRankNum": 4})) == 161002
        )

    on_ranks(4, body)


def _refusable(x: Any, ids: Any, group: dict[str, Any]) -> dict[str, Any]:
    kept = {k: v for k, v in group.items() if k not in NOWHERE}
    outs = {
        "expandXOut": Out((40, LONG), "bfloat16"),
        "assistInfoForCombineOut": Out((40 * 128,), "int32"),
        "expertTokenNumsOut": Out((2,), "int64"),
        "epRecvCountsOut": Out((8,), "int32"),
        "tpRecvCountsOut": Out((1,), "int32"),
    }
    return {
        "x": x, "expertIds": ids, **kept, "quantMode": 0, "expertTokenNumsType": 1, "commAlg": "", **outs
    }  # fmt: skip


def members_of_experts() -> None:
    """Two groups over which experts are spread, two over which each expert is cut: members see each other's rows, and
    what they make of a row is added."""

    def body(r: Rank) -> None:
        e, t = r.number // TP, r.number % TP
        ep, ep_name = part(r, [t, TP + t], 30 + t)
        tp, tp_name = part(r, [TP * e, TP * e + 1], 40 + e)
        group = {
            "groupEp": ep_name, "epWorldSize": 2, "epRankId": e, "moeExpertNum": 4, "groupTp": tp_name,
            "tpWorldSize": 2, "tpRankId": t, "expertShardType": 0, "sharedExpertNum": 0, "sharedExpertRankNum": 0,
            "globalBs": 0,
        }  # fmt: skip
        sent = [_sent(i, 4) for i in range(4)]
        rows, ends, totals = [], [], [0, 0]
        for expert in (2 * e, 2 * e + 1):
            for member in range(TP):
                for rank in range(EP):
                    other, picked, _ = sent[rank * TP + member]
                    found = [other[k] for k in range(TOKENS) if expert in picked[k]]
                    rows += found
                    ends.append(len(rows))
                    totals[member] += len(found)
        x, ids, scales = sent[r.number]
        got = _dispatched("V2", ids, x, group, 2, 40, 8)
        np.testing.assert_array_equal(got[0][: len(rows)].astype(float), np.array(rows, float).reshape(-1, LONG))
        np.testing.assert_array_equal(got[3], ends)
        np.testing.assert_array_equal(got[4], totals)
        want = TP * x.astype(float) * scales.sum(-1, keepdims=True)
        close(_combined("V2", sent[r.number], got, group), want, 3e-2)
        assert refused("aclnnMoeDistributeDispatchV2", **_refusable(x, ids, {**group, "tpRankId": 1 - t})) == 161002
        for comm in (ep, tp):
            r.hccl.check("HcclCommDestroy", comm)

    on_ranks(4, body)


# -- the same in two steps each ----------------------------------------------------------------------------------------
STEPS, ROOM, SIZE = 4, 16, 512


def experts_in_steps() -> None:
    """Two ranks of two experts each: messages are made, then exchanged, by both ways."""

    def body(r: Rank) -> None:
        for quant in (0, 2):
            steps_of(r, quant)

    on_ranks(2, body)


def steps_of(r: Rank, quant: int) -> None:
    me, bf = r.number, "bfloat16"
    sent = [_sent(i, STEPS) for i in range(2)]
    x, ids, scales = sent[me]
    mask = np.array([True] * (TOKENS - 1) + [False])
    group = {
        "groupEp": r.name, "epWorldSize": 2, "epRankId": me, "moeExpertNum": STEPS, "sharedExpertNum": 0,
        "sharedExpertRankNum": 0, "globalBs": 0, "commType": 0, "commAlg": "",
    }  # fmt: skip
    there = {**group, "expertShardType": 0, "quantMode": quant}
    given = {"x": x, "expertIds": ids, "xActiveMaskOptional": mask, **there}
    outs = {
        "yOut": Out((TOKENS * PICKS, SIZE), "int8" if quant else bf), "expandIdxOut": Out((TOKENS * PICKS,), "int32"),
        "commCmdInfoOut": Out(((TOKENS * PICKS + 2 * STEPS // 2) * 16,), "int32"),
    }  # fmt: skip
    messages, index, commands = call("aclnnMoeDistributeDispatchSetup", **given, **outs)
    for wrong in ({"quantMode": 1}, {"epRankId": 1 - me}, {"expertShardType": 1}, {"moeExpertNum": 3}):
        assert refused("aclnnMoeDistributeDispatchSetup", **{**given, **wrong}, **outs) == 161002, wrong
    short = {**outs, "yOut": Out((TOKENS * PICKS, LONG - 1), "int8" if quant else bf)}
    assert refused("aclnnMoeDistributeDispatchSetup", **given, **short) == 161002
    rows: list[Any] = []
    counts: list[int] = []
    for expert in (2 * me, 2 * me + 1):
        for other, picked, _ in sent:
            rows += [other[t] for t in range(TOKENS - 1) if expert in picked[t]]
        counts.append(len(rows) - sum(counts))
    got = call(
        "aclnnMoeDistributeDispatchTeardown", x=x, y=messages, expertIds=ids, commCmdInfo=commands, **there,
        expertTokenNumsType=1, expandXOut=Out((ROOM, LONG), "int8" if quant else bf), dynamicScalesOut=Out((ROOM,)),
        assistInfoForCombineOut=Out((ROOM * 128,), "int32"), expertTokenNumsOut=Out((2,), "int64"),
    )  # fmt: skip
    np.testing.assert_array_equal(got[3], counts)
    want, arrived = np.array(rows, float), got[0][: len(rows)].astype(float)
    if quant:
        factors = np.abs(want).max(-1) / 127
        np.testing.assert_allclose(got[1][: len(rows)], factors, rtol=1e-6)
        np.testing.assert_array_equal(arrived, np.rint(want / factors[:, None]))
        arrived *= factors[:, None]
    else:
        np.testing.assert_array_equal(arrived, want)
    experts = np.zeros((ROOM, LONG))
    experts[: len(rows)] = 2 * arrived
    back = {**group, "expertIds": ids, "commQuantMode": quant, "expandX": experts.astype(x.dtype)}
    setup = call(
        "aclnnMoeDistributeCombineSetup", **back, assistInfoForCombine=got[2], expertSharedType=0,
        quantExpandXOut=Out((ROOM, SIZE), "int8"), commCmdInfoOut=Out(((ROOM + 2) * 16,), "int32"),
    )  # fmt: skip
    final = {
        "quantExpandX": setup[0], "expandIdx": index, "expertScales": scales, "commCmdInfo": setup[1],
        "xActiveMaskOptional": mask, "sharedExpertXOptional": x, "expertShardType": 0, "xOut": Out((TOKENS, LONG), bf),
    }  # fmt: skip
    weight = 1 + 2 * scales.sum(-1, keepdims=True) * mask[:, None]
    close(call("aclnnMoeDistributeCombineTeardown", **back, **final), x.astype(float) * weight, 6e-2)
    for wrong in ({"expertScales": scales[:2]}, {"commQuantMode": 1}, {"commCmdInfo": setup[1][:-16]}):
        assert refused("aclnnMoeDistributeCombineTeardown", **{**back, **final, **wrong}) == 161002, wrong


def small_floats_to_experts() -> None:
    """Rows travel as small floats: a scale for each, for each 128 numbers, or a power of two for each 32."""

    def body(r: Rank) -> None:
        width, e4m3 = 160, "float8_e4m3fn"
        x = [made(i, TOKENS, width, dtype=ml_dtypes.bfloat16) for i in range(2)]
        ids = [_sent(i, STEPS)[1] for i in range(2)]
        rows = [
            x[i][t] for e in (2 * r.number, 2 * r.number + 1) for i in range(2) for t in range(TOKENS) if e in ids[i][t]
        ]
        plain = np.array(rows, float)
        group = {
            "groupEp": r.name, "epWorldSize": 2, "epRankId": r.number, "moeExpertNum": STEPS, "groupTp": "",
            "tpWorldSize": 0, "tpRankId": 0, "expertShardType": 0, "sharedExpertNum": 0, "sharedExpertRankNum": 0,
            "globalBs": 0, "expertTokenNumsType": 1, "commAlg": "",
        }  # fmt: skip
        for mode, shape, dtype in ((2, (40,), "float32"), (3, (40, 2), "float32"), (4, (40, 3, 2), "float8_e8m0fnu")):
            given = {"x": x[r.number], "expertIds": ids[r.number], **group, "quantMode": mode}
            outs = {
                "expandXOut": Out((40, width), e4m3), "dynamicScalesOut": Out(shape, dtype),
                "assistInfoForCombineOut": Out((40 * 128,), "int32"), "expertTokenNumsOut": Out((2,), "int64"),
                "epRecvCountsOut": Out((4,), "int32"), "tpRecvCountsOut": Out((1,), "int32"),
            }  # fmt: skip
            got = call("aclnnMoeDistributeDispatchV2", **given, **outs)
            if mode == 4:
                for g, want in zip(got, microscaled(plain, -1, E4M3)):
                    np.testing.assert_array_equal(g[: len(rows)].astype(float), want.astype(float))
            else:
                scale = np.repeat(got[1].astype(float).reshape(40, -1), {2: width, 3: 128}[mode], -1)
                back = got[0][: len(rows)].astype(float) * scale[: len(rows), :width]
                np.testing.assert_allclose(back, plain, rtol=0.07, atol=0.01)
            wrong = {**outs, "dynamicScalesOut": Out((40, 7), dtype)}
            if mode > 2:
                assert refused("aclnnMoeDistributeDispatchV2", **given, **wrong) == 161002
            wrong = {**outs, "expandXOut": Out((40, width), "bfloat16")}
            assert refused("aclnnMoeDistributeDispatchV2", **given, **wrong) == 161002

    on_ranks(2, body)
