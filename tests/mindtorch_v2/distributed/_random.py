"""Random programs of collectives, which every rank also computes for itself.

Invariant: all ranks draw the same calls from the shared generator; from their own they draw pauses, and in which order
they wait. `python -m tests.mindtorch_v2.distributed._random --backend gloo --ranks 3 --programs 1000` runs many.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from typing import Any

KINDS = ["all_reduce", "broadcast", "all_gather", "all_gather_single", "reduce", "reduce_scatter", "gather", "scatter"]
KINDS += ["all_to_all_single", "all_to_all", "barrier", "all_reduce_coalesced", "messages", "some"]
COUNTS = [0, 1, 7, 5000, 40000, 90000]
DTYPES = ["float32", "int32", "int64", "bfloat16", "float16", "uint8", "int8"]
REDUCING = ("all_reduce", "reduce", "reduce_scatter", "all_reduce_coalesced", "some")


class Drawn:
    """One call: what it is, and what every rank puts into it."""

    def __init__(self, torch: Any, shared: random.Random, size: int) -> None:
        self.torch, self.size = torch, size
        self.kind, self.count = shared.choice(KINDS), shared.choice(COUNTS)
        self.dtype, self.op = shared.choice(DTYPES), shared.choice(["SUM", "MAX", "MIN"])
        self.root, self.later, self.salt = shared.randrange(size), shared.random() < 0.6, shared.randrange(7)
        # Elements with gaps between them, which messages and parts of one tensor may not have.
        self.apart = shared.random() < 0.25 and self.kind not in ("all_to_all_single", "messages")
        if self.kind not in REDUCING and shared.random() < 0.2:
            self.dtype = shared.choice(["float64", "bool"])

    def data(self, rank: int, count: int) -> Any:
        """Small whole numbers: sums of them are the same in any order and dtype."""
        made = ((self.torch.arange(count) * (rank + 2) + self.salt) % 6).to(getattr(self.torch, self.dtype))
        if not self.apart:
            return made
        wide = self.torch.zeros(count, 2, dtype=made.dtype)
        wide[:, 0] = made
        return wide[:, 0]

    def reduced(self, count: int, size: int | None = None) -> Any:
        total = self.data(0, count)
        for rank in range(1, size or self.size):
            part = self.data(rank, count)
            total = total + part if self.op == "SUM" else getattr(self.torch, f"{self.op.lower()}imum")(total, part)
        return total


class Several:
    """Works as one."""

    def __init__(self, works: list[Any]) -> None:
        self.works = works

    def wait(self) -> None:
        for work in self.works:
            work.wait()


def others(call: Drawn, dist: Any, rank: int, some: Any) -> tuple[Any, list[Any], list[Any]]:
    """What is not a collective of all, or of one tensor."""
    torch, size, count, later = call.torch, call.size, call.count, call.later
    mine, op = call.data(rank, count), getattr(dist.ReduceOp, call.op)
    if call.kind == "all_reduce_coalesced":
        both = [mine, call.data(rank, 3)]
        work = dist.all_reduce_coalesced(both, op, async_op=later)
        return work, both, [call.reduced(count), call.reduced(3)]
    if call.kind == "all_to_all":
        outs = [torch.zeros_like(mine) for _ in range(size)]
        work = dist.all_to_all(outs, [call.data(rank * size + other, count) for other in range(size)], async_op=later)
        return work, outs, [call.data(other * size + rank, count) for other in range(size)]
    if call.kind == "some":
        # A group without the last rank.
        if rank == size - 1:
            return Several([]), [], []
        return dist.all_reduce(mine, op, group=some, async_op=later), [mine], [call.reduced(count, size - 1)]
    out = torch.zeros_like(mine)
    after, before = (rank + 1) % size, (rank - 1) % size
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, mine, after), dist.P2POp(dist.irecv, out, before)])
    if not later:
        Several(works).wait()
    return Several(works), [out], [call.data(before, count)]


def begin(call: Drawn, dist: Any, rank: int, some: Any) -> tuple[Any, list[Any], list[Any]]:
    """The work, what it writes, and what must stand there."""
    if call.kind in ("all_reduce_coalesced", "all_to_all", "some", "messages"):
        return others(call, dist, rank, some)
    torch, size, count, later = call.torch, call.size, call.count, call.later
    mine, op = call.data(rank, count), getattr(dist.ReduceOp, call.op)
    every = [call.data(other, count) for other in range(size)]
    whole = call.data(rank, count * size)
    ways: dict[str, Callable[[], tuple[Any, list[Any], list[Any]]]] = {
        "all_reduce": lambda: (dist.all_reduce(mine, op, async_op=later), [mine], [call.reduced(count)]),
        "broadcast": lambda: (dist.broadcast(mine, call.root, async_op=later), [mine], [every[call.root]]),
        "reduce": lambda: (
            dist.reduce(mine, call.root, op, async_op=later),
            [mine] if rank == call.root else [],
            [call.reduced(count)] if rank == call.root else [],
        ),
        "barrier": lambda: (dist.barrier(async_op=later), [], []),
    }

    def gathered(name: str) -> tuple[Any, list[Any], list[Any]]:
        outs = [torch.zeros_like(mine) for _ in range(size)]
        if name == "all_gather":
            return dist.all_gather(outs, mine, async_op=later), outs, every
        if name == "gather":
            here = rank == call.root
            work = dist.gather(mine, outs if here else None, call.root, async_op=later)
            return work, outs if here else [], every if here else []
        into = torch.zeros_like(whole)
        return dist.all_gather_single(into, mine, async_op=later), [into], [torch.cat(every)]

    def parted(name: str) -> tuple[Any, list[Any], list[Any]]:
        out = torch.zeros_like(mine)
        part = slice(rank * count, (rank + 1) * count)
        if name == "scatter":
            parts = list(call.data(call.root, count * size).split(count)) if count else [mine] * size
            work = dist.scatter(out, parts if rank == call.root else None, call.root, async_op=later)
            return work, [out], [call.data(call.root, count * size)[part]]
        if name == "reduce_scatter":
            work = dist.reduce_scatter_single(out, whole, op, async_op=later)
            return work, [out], [call.reduced(count * size)[part]]
        into = torch.zeros_like(whole)
        wanted = torch.cat([call.data(other, count * size)[part] for other in range(size)])
        return dist.all_to_all_single(into, whole, async_op=later), [into], [wanted]

    if call.kind in ways:
        return ways[call.kind]()
    return gathered(call.kind) if "gather" in call.kind else parted(call.kind)


# The group without the last rank, which a process makes once.
_SOME: list[Any] = []


def program(torch: Any, dist: Any, rank: int, size: int, seed: int) -> list[str]:
    """What differs from what one process computes."""
    shared, own = random.Random(seed), random.Random(seed * 100 + rank)
    calls = []
    if not _SOME:
        _SOME.append(dist.new_group(list(range(size - 1))))
    for number in range(12):
        call = Drawn(torch, shared, size)
        if own.random() < 0.4:
            time.sleep(own.random() * 0.01)
        calls.append((number, call, *begin(call, dist, rank, _SOME[0])))
    own.shuffle(calls)
    wrong = []
    for number, call, work, outs, wanted in calls:
        if call.later:
            work.wait()
        if not all(torch.equal(out, want) for out, want in zip(outs, wanted)) or len(outs) != len(wanted):
            wrong.append(f"{number}: {call.kind} of {call.count} {call.dtype} {call.op} from {call.root}")
    return wrong


def programs(torch: Any, dist: Any, rank: int, size: int, first: int, count: int) -> list[Any]:
    """Many programs: those that differ."""
    found = [(seed, program(torch, dist, rank, size, seed)) for seed in range(first, first + count)]
    return [each for each in found if each[1]]


def main() -> None:
    from ._ranks import Ranks

    parser = argparse.ArgumentParser(description="Random programs of collectives.")
    parser.add_argument("--backend", default="gloo", choices=["gloo", "mpi", "hccl"])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    ranks = Ranks("mindtorch_v2", given.ranks, backend=given.backend)
    done = wrong = 0
    try:
        while done < given.programs and not wrong:
            count = min(5, given.programs - done)
            for kind, told in ranks.ask("_random.programs", given.seed + done, count):
                wrong += bool(told)
                if told:
                    print(kind, told)
            done += count
    finally:
        ranks.close()
    print(f"{given.backend}, {given.ranks} ranks: {done} programs of 12 calls, {wrong} ranks found a difference")
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
