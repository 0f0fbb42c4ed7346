"""Scenarios of several ranks; each is a function that `_ranks` calls in a child process."""

from __future__ import annotations

import ctypes
import os
import sys
from ctypes import byref, c_int, c_int32, c_uint32, c_uint64, c_void_p
from typing import Any

import ml_dtypes
import numpy as np

from ._kernels import In, Out, call, refused
from ._ranks import OPS, TYPES, Hccl, Rank, number, on_ranks
from ._ranks import count_of as n
from .test_kernels_weights import nz

F, H, BF = np.float32, np.float16, ml_dtypes.bfloat16
RANKS = 3


def made(rank: int, *shape: int, dtype: Any = F, seed: int = 0) -> Any:
    rng = np.random.default_rng(1000 * seed + rank)
    if np.issubdtype(dtype, np.integer):
        return rng.integers(-5, 6, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def close(got: Any, want: Any, tolerance: float = 4e-3) -> None:
    np.testing.assert_allclose(np.asarray(got, float), np.asarray(want, float), rtol=tolerance, atol=tolerance)


# -- the library -----------------------------------------------------------------------------------------------------
def reductions() -> None:
    def body(r: Rank) -> None:
        for dtype in ("int8", "int32", "int64", "float16", "float32", "bfloat16"):
            kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
            all_of = [made(i, 7, dtype=kind) for i in range(RANKS)]
            exact = np.int64 if kind.kind == "i" else np.float64
            for op, fold in (("sum", np.add), ("prod", np.multiply), ("max", np.maximum), ("min", np.minimum)):
                if dtype == "bfloat16" and op == "prod":
                    continue
                want = fold.reduce([a.astype(exact) for a in all_of]).astype(kind)
                send, receive = r.put(all_of[r.number]), r.put(np.zeros(7, kind))
                r.hccl.check(
                    "HcclAllReduce",
                    c_void_p(send),
                    c_void_p(receive),
                    n(7),
                    number(TYPES[dtype]),
                    number(OPS[op]),
                    r.comm,
                    None,
                )
                assert r.sync() == 0
                close(r.get(receive, want), want, 1e-2)
                if r.number != 1:
                    receive = 0
                r.hccl.check(
                    "HcclReduce",
                    c_void_p(send),
                    c_void_p(receive or None),
                    n(7),
                    number(TYPES[dtype]),
                    number(OPS[op]),
                    c_uint32(1),
                    r.comm,
                    None,
                )
                assert r.sync() == 0
                if receive:
                    close(r.get(receive, want), want, 1e-2)
        parts = [made(i, RANKS, 4) for i in range(RANKS)]
        send, receive = r.put(parts[r.number]), r.put(np.zeros(4, F))
        r.hccl.check("HcclReduceScatter", c_void_p(send), c_void_p(receive), n(4), number(4), number(0), r.comm, None)
        assert r.sync() == 0
        close(r.get(receive, np.zeros(4, F)), sum(p[r.number] for p in parts), 1e-6)
        counts, places = (c_uint64 * 3)(1, 2, 3), (c_uint64 * 3)(0, 1, 3)
        mine = r.number + 1
        send, receive = r.put(parts[r.number].reshape(-1)[:6]), r.put(np.zeros(mine, F))
        r.hccl.check(
            "HcclReduceScatterV",
            c_void_p(send),
            counts,
            places,
            c_void_p(receive),
            n(mine),
            number(4),
            number(0),
            r.comm,
            None,
        )
        assert r.sync() == 0
        total = sum(p.reshape(-1)[:6] for p in parts)
        close(r.get(receive, np.zeros(mine, F)), total[places[r.number] : places[r.number] + mine], 1e-6)

    on_ranks(RANKS, body)


def movements() -> None:
    big = 300_000  # more than a ring holds

    def body(r: Rank) -> None:
        x = [made(i, 6, dtype=np.int32) for i in range(RANKS)]
        send, receive = r.put(x[r.number]), r.put(np.zeros(18, np.int32))
        r.hccl.check("HcclAllGather", c_void_p(send), c_void_p(receive), n(6), number(2), r.comm, None)
        assert r.sync() == 0
        np.testing.assert_array_equal(r.get(receive, np.zeros(18, np.int32)), np.concatenate(x))
        counts, places = (c_uint64 * 3)(2, 0, 5), (c_uint64 * 3)(0, 2, 3)
        receive = r.put(np.full(8, 9, np.int32))
        r.hccl.check(
            "HcclAllGatherV",
            c_void_p(send),
            n(counts[r.number]),
            c_void_p(receive),
            counts,
            places,
            number(2),
            r.comm,
            None,
        )
        assert r.sync() == 0
        want = np.concatenate([x[0][:2], [9], x[2][:5]])
        np.testing.assert_array_equal(r.get(receive, np.zeros(8, np.int32)), want)
        buffer = r.put(made(r.number, big))
        r.hccl.check("HcclBroadcast", c_void_p(buffer), n(big), number(4), c_uint32(2), r.comm, None)
        assert r.sync() == 0
        np.testing.assert_array_equal(r.get(buffer, np.zeros(big, F)), made(2, big))
        scattered = r.put(np.zeros(2, np.int32))
        r.hccl.check(
            "HcclScatter",
            c_void_p(send if r.number == 1 else None),
            c_void_p(scattered),
            n(2),
            number(2),
            c_uint32(1),
            r.comm,
            None,
        )
        assert r.sync() == 0
        np.testing.assert_array_equal(r.get(scattered, np.zeros(2, np.int32)), x[1][2 * r.number : 2 * r.number + 2])
        receive = r.put(np.zeros(6, np.int32))
        r.hccl.check("HcclAlltoAll", c_void_p(send), n(2), number(2), c_void_p(receive), n(2), number(2), r.comm, None)
        assert r.sync() == 0
        want = np.concatenate([a[2 * r.number : 2 * r.number + 2] for a in x])
        np.testing.assert_array_equal(r.get(receive, want), want)
        matrix = np.array([[1, 2, 0], [0, 3, 1], [2, 2, 2]], np.uint64)
        given = (c_uint64 * 9)(*matrix.reshape(-1).tolist())
        size = int(matrix[:, r.number].sum())
        receive = r.put(np.zeros(size, np.int32))
        r.hccl.check("HcclAlltoAllVC", c_void_p(send), given, number(2), c_void_p(receive), number(2), r.comm, None)
        assert r.sync() == 0
        starts = np.cumsum(matrix, 1) - matrix
        pieces = [x[i][int(starts[i, r.number]) : int(starts[i, r.number] + matrix[i, r.number])] for i in range(3)]
        np.testing.assert_array_equal(r.get(receive, np.zeros(size, np.int32)), np.concatenate(pieces))
        r.hccl.check("HcclBarrier", r.comm, None)
        assert r.sync() == 0
        messages(r)

    def messages(r: Rank) -> None:
        after, before = (r.number + 1) % RANKS, (r.number - 1) % RANKS

        class Item(ctypes.Structure):
            _fields_ = [("type", c_int), ("buf", c_void_p), ("count", c_uint64), ("dtype", c_int), ("rank", c_uint32)]

        out, receive = r.put(made(r.number, big)), r.put(np.zeros(big, F))
        items = (Item * 2)(Item(0, out, big, 4, after), Item(1, receive, big, 4, before))
        r.hccl.check("HcclBatchSendRecv", items, c_uint32(2), r.comm, None)
        assert r.sync() == 0
        np.testing.assert_array_equal(r.get(receive, np.zeros(big, F)), made(before, big))
        if r.number == 0:
            r.hccl.check("HcclSend", c_void_p(out), n(5), number(4), c_uint32(2), r.comm, None)
        elif r.number == 2:
            r.hccl.check("HcclRecv", c_void_p(receive), n(5), number(4), c_uint32(0), r.comm, None)
        assert r.sync() == 0
        if r.number == 2:
            np.testing.assert_array_equal(r.get(receive, np.zeros(5, F)), made(0, big)[:5])

    on_ranks(RANKS, body)


def parts() -> None:
    """A communicator of all devices at once, asked about itself, and one of some of its ranks."""
    hccl = Hccl()
    comms = (c_void_p * 4)()
    hccl.check("HcclCommInitAll", c_uint32(4), (c_int32 * 4)(0, 1, 2, 3), comms)
    size, rank = c_uint32(), c_uint32()
    for i in range(4):
        hccl.check("HcclGetRankSize", c_void_p(comms[i]), byref(size))
        hccl.check("HcclGetRankId", c_void_p(comms[i]), byref(rank))
        assert (size.value, rank.value) == (4, i)
        hccl.check("HcclCommDestroy", c_void_p(comms[i]))

    def body(r: Rank) -> None:
        if r.number == 1:
            return
        some = (c_uint32 * 2)(0, 2)
        whole, part = c_void_p(r.comm.value), c_void_p()
        r.hccl.check(
            "HcclCreateSubCommConfig",
            byref(whole),
            c_uint32(2),
            some,
            c_uint64(7),
            c_uint32(r.number // 2),
            None,
            byref(part),
        )
        send, receive = r.put(np.full(3, r.number + 1, F)), r.put(np.zeros(3, F))
        r.hccl.check("HcclAllReduce", c_void_p(send), c_void_p(receive), n(3), number(4), number(0), part, None)
        assert r.sync() == 0
        np.testing.assert_array_equal(r.get(receive, np.zeros(3, F)), np.full(3, 4, F))
        r.hccl.check("HcclCommDestroy", part)

    on_ranks(RANKS, body)


def disagreements() -> None:
    """Counts, types, operations, order: both ranks are told at the next synchronisation."""

    def wrong(what: str) -> Any:
        def body(r: Rank) -> None:
            a, b = r.put(np.zeros(8, F)), r.put(np.zeros(8, F))
            other = r.number == 1
            count = 5 if other and what == "count" else 4
            dtype = 2 if other and what == "dtype" else 4
            op = 1 if other and what == "op" else 0
            if what == "root":
                r.hccl.check("HcclBroadcast", c_void_p(a), n(4), number(4), c_uint32(int(other)), r.comm, None)
            elif what == "order" and other:
                r.hccl.check("HcclBarrier", r.comm, None)
            else:
                r.hccl.check(
                    "HcclAllReduce", c_void_p(a), c_void_p(b), n(count), number(dtype), number(op), r.comm, None
                )
            assert r.sync() == 507018, what
            assert "rank" in r.hccl.device.message()
            state = c_int()
            r.hccl.check("HcclGetCommAsyncError", r.comm, byref(state))
            assert state.value == 1, what

        return body

    for what in ("count", "dtype", "op", "root", "order"):
        on_ranks(2, wrong(what))


def mistakes() -> None:
    def body(r: Rank) -> None:
        h = r.hccl
        a = c_void_p(r.put(np.zeros(8, F)))
        f, s = number(4), number(0)
        assert h("HcclAllReduce", a, a, n(8), f, s, None, None) == 2
        assert h("HcclAllReduce", None, a, n(8), f, s, r.comm, None) == 2
        assert h("HcclAllReduce", a, a, n(8), number(13), s, r.comm, None) == 5
        assert h("HcclAllReduce", a, a, n(8), number(7), s, r.comm, None) == 5
        assert h("HcclAllReduce", a, a, n(8), f, number(9), r.comm, None) == 1
        assert h("HcclAllReduce", a, a, n(2**63), f, s, r.comm, None) == 1
        assert h("HcclBroadcast", a, n(8), f, c_uint32(2), r.comm, None) == 1
        assert h("HcclSend", a, n(8), f, c_uint32(r.number), r.comm, None) == 1
        assert h("HcclAlltoAll", a, n(2), f, a, n(2), f, r.comm, None) == 1
        assert h("HcclAlltoAll", a, n(2), f, a, n(3), f, r.comm, None) == 1
        assert h("HcclGetCommName", r.comm, None) == 2
        assert h("HcclCommInitClusterInfo", b"table.json", c_uint32(0), byref(c_void_p())) == 5
        h.check("HcclCommSuspend", r.comm)
        assert h("HcclBarrier", r.comm, None) == 22
        h.check("HcclCommResume", r.comm)
        h.check("HcclBarrier", r.comm, None)
        assert r.sync() == 0
        if r.number == 0:
            h.device.control.ascendEmulatorSetFault(b"HcclBroadcast:1:4")
            assert h("HcclBroadcast", a, n(8), f, c_uint32(0), r.comm, None) == 4
            h.device.control.ascendEmulatorClearFaults()

    on_ranks(2, body)
    h = Hccl()
    h.device.check("aclrtSetDevice", h.device.rt.aclrtSetDevice(0))
    root, comm = ctypes.create_string_buffer(4108), c_void_p()
    assert h("HcclCommInitRootInfo", c_uint32(1), root, c_uint32(0), byref(comm)) == 11
    h.check("HcclGetRootInfo", root)
    assert h("HcclCommInitRootInfo", c_uint32(2), root, c_uint32(2), byref(comm)) == 1
    assert h("HcclCommInitRootInfo", c_uint32(0), root, c_uint32(0), byref(comm)) == 1
    h.check("HcclCommInitRootInfo", c_uint32(1), root, c_uint32(0), byref(comm))
    host = np.zeros(4, F).ctypes.data
    assert h("HcclAllReduce", c_void_p(host), c_void_p(host), n(4), number(4), number(0), comm, None) == 1
    assert "host-pointer" in h.device.violations()
    h.check("HcclCommDestroy", comm)
    assert h("HcclBarrier", comm, None) == 1
    assert "destroyed" in h.device.violations()
    assert h.library.HcclGetErrorString(number(0)) == b"no error"


def process(rank: str, size: str, point: str = "") -> None:
    """One of several processes: the root's text goes through stdin and stdout. `point`: where it stops and waits."""
    h = Hccl()
    h.device.check("aclrtSetDevice", h.device.rt.aclrtSetDevice(0))
    root, comm = ctypes.create_string_buffer(4108), c_void_p()
    if rank == "0":
        h.check("HcclGetRootInfo", root)
        print(root.value.decode(), flush=True)
    else:
        root.value = sys.stdin.readline().strip().encode()

    def stop_at(name: str) -> None:
        if point == name:
            print("stopped", flush=True)
            sys.stdin.readline()
            os._exit(3)

    stop_at("before")
    h.check("HcclCommInitRootInfo", c_uint32(int(size)), root, c_uint32(int(rank)), byref(comm))
    r = Rank(h, int(rank), comm)
    stop_at("joined")
    for step in range(3):
        x = [made(i, 70_000, seed=step) for i in range(int(size))]
        send, receive = r.put(x[r.number]), r.put(np.zeros(70_000, F))
        h.check("HcclAllReduce", c_void_p(send), c_void_p(receive), n(70_000), number(4), number(0), comm, None)
        code = r.sync()
        if code:
            state = c_int()
            h.check("HcclGetCommAsyncError", comm, byref(state))
            print(f"failed {code} {state.value}", flush=True)
            os._exit(7)
        close(r.get(receive, x[0]), sum(a.astype(float) for a in x), 1e-5)
        stop_at(f"step{step}")
    r.finish()
    print("done", flush=True)


# -- products and collectives ----------------------------------------------------------------------------------------
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


def fused_small_integers() -> None:
    def body(r: Rank) -> None:
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
        floats(r, summing)

    def floats(r: Rank, summing: dict[str, Any]) -> None:
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
            close(
                call(f"aclnnWeightQuantMatmulAllReduce{version}", **given, output=Out((4, 16), "float16")), want, 2e-2
            )
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
        eighths(r)

    def eighths(r: Rank) -> None:
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
        got = call(
            "aclnnMatmulReduceScatterV2", x1=x[me], x2=w[me], **turns, reduceOp="sum", output=Out((2, 8), "float16")
        )
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

    on_ranks(2, body)


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


def experts() -> None:
    """Dispatch to four experts of two ranks and combine: identity experts give back the tokens, scaled."""

    def body(r: Rank) -> None:
        me, tokens, picks, width = r.number, 5, 2, 8
        x = [made(i, tokens, width, dtype=BF) for i in range(2)]
        ids = [
            np.stack([np.random.default_rng(i * 10 + t).permutation(4)[:picks] for t in range(tokens)]).astype(np.int32)
            for i in range(2)
        ]
        scales = [np.abs(made(i, tokens, picks, seed=3)) for i in range(2)]
        mask = np.array([True, True, False, True, True])
        base = {
            "groupEp": r.name,
            "epWorldSize": 2,
            "epRankId": me,
            "moeExpertNum": 4,
            "groupTp": "",
            "tpWorldSize": 0,
            "tpRankId": 0,
            "expertShardType": 0,
            "sharedExpertNum": 0,
            "sharedExpertRankNum": 0,
            "globalBs": 0,
        }
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
                normed_experts(combine, "" if version == "V2" else "V2", want, x[me])
        quantized(r, base, x, ids)

    def normed_experts(combine: dict[str, Any], version: str, want: Any, residual: Any) -> None:
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

    def quantized(r: Rank, base: dict[str, Any], x: list[Any], ids: list[Any]) -> None:
        smooth = np.abs(made(0, 4, 8, seed=6)) + 0.5
        got = call(
            "aclnnMoeDistributeDispatch",
            x=x[r.number],
            expertIds=ids[r.number],
            scales=smooth,
            **base,
            quantMode=2,
            expertTokenNumsType=0,
            expandX=Out((20, 8), "int8"),
            dynamicScales=Out((20,), "float32"),
            expandIdx=Out((10,), "int32"),
            expertTokenNums=Out((2,), "int64"),
            epRecvCounts=Out((4,), "int32"),
            tpRecvCounts=Out((1,), "int32"),
        )
        rows = []
        for expert in (2 * r.number, 2 * r.number + 1):
            for i in range(2):
                rows += [
                    x[i][t].astype(float) * smooth[expert] for t in range(5) for k in range(2) if ids[i][t, k] == expert
                ]
        close(got[0][: len(rows)] * got[1][: len(rows), None], np.array(rows), 3e-2)

    on_ranks(2, body)


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
