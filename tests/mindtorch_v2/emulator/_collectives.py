"""Scenarios of several ranks; each is a function that `_ranks` calls in a child process."""

from __future__ import annotations

import ctypes
import os
import sys
from ctypes import byref, c_int, c_int32, c_uint32, c_uint64, c_void_p
from typing import Any

import ml_dtypes
import numpy as np

from ._ranks import OPS, TYPES, Hccl, Rank, number, on_ranks
from ._ranks import count_of as n

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


BIG = 300_000  # more than a ring holds


def messages(r: Rank) -> None:
    after, before = (r.number + 1) % RANKS, (r.number - 1) % RANKS

    class Item(ctypes.Structure):
        _fields_ = [("type", c_int), ("buf", c_void_p), ("count", c_uint64), ("dtype", c_int), ("rank", c_uint32)]

    out, receive = r.put(made(r.number, BIG)), r.put(np.zeros(BIG, F))
    items = (Item * 2)(Item(0, out, BIG, 4, after), Item(1, receive, BIG, 4, before))
    r.hccl.check("HcclBatchSendRecv", items, c_uint32(2), r.comm, None)
    assert r.sync() == 0
    np.testing.assert_array_equal(r.get(receive, np.zeros(BIG, F)), made(before, BIG))
    if r.number == 0:
        r.hccl.check("HcclSend", c_void_p(out), n(5), number(4), c_uint32(2), r.comm, None)
    elif r.number == 2:
        r.hccl.check("HcclRecv", c_void_p(receive), n(5), number(4), c_uint32(0), r.comm, None)
    assert r.sync() == 0
    if r.number == 2:
        np.testing.assert_array_equal(r.get(receive, np.zeros(5, F)), made(0, BIG)[:5])


def movements() -> None:
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
        buffer = r.put(made(r.number, BIG))
        r.hccl.check("HcclBroadcast", c_void_p(buffer), n(BIG), number(4), c_uint32(2), r.comm, None)
        assert r.sync() == 0
        np.testing.assert_array_equal(r.get(buffer, np.zeros(BIG, F)), made(2, BIG))
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


def faults() -> None:
    """One of two ranks is refused each of its calls in turn and leaves: the other is told, and nothing stays behind."""
    calls = ("HcclAllReduce", "HcclAllGather", "HcclReduceScatter", "HcclBroadcast", "HcclAlltoAll", "HcclBarrier")

    def life(r: Rank) -> None:
        a, b, four, kind = c_void_p(r.put(np.zeros(8, F))), c_void_p(r.put(np.zeros(8, F))), n(4), number(4)
        arguments = {
            "HcclAllReduce": (a, b, four, kind, number(0)), "HcclAllGather": (a, b, four, kind),
            "HcclReduceScatter": (a, b, four, kind, number(0)), "HcclBroadcast": (a, four, kind, c_uint32(0)),
            "HcclAlltoAll": (a, four, kind, b, four, kind), "HcclBarrier": (),
        }  # fmt: skip
        for call in calls:
            code = r.hccl(call, *arguments[call], r.comm, None)
            if code:
                assert code == 4, (call, code)
                return refusals.append(r.number)
            code = r.sync()
            if code:
                assert code == 507018, (call, code)
                return told.append(r.number)

    control = Hccl().device.control
    for call in calls:
        refusals: list[int] = []
        told: list[int] = []
        control.ascendEmulatorSetFault(f"{call}:1:4".encode())
        on_ranks(2, life)
        control.ascendEmulatorClearFaults()
        assert len(refusals) == 1 and told == [1 - refusals[0]], (call, refusals, told)
        assert control.ascendEmulatorLiveBytes(0) == control.ascendEmulatorLiveBytes(1) == 0


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
        stop_at(f"launched{step}")
        code = r.sync()
        if code:
            state = c_int()
            h.check("HcclGetCommAsyncError", comm, byref(state))
            print(f"failed {code} {state.value}", flush=True)
            os._exit(7)
        close(r.get(receive, x[0]), sum(a.astype(float) for a in x), 1e-5)
        stop_at(f"step{step}")
    r.finish()
    stop_at("left")
    print("done", flush=True)
