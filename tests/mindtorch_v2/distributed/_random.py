"""Random programs of collectives, which every rank also computes for itself.

Invariant: all ranks draw the same calls from the shared generator; from their own they draw pauses, and in which order
they wait.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

KINDS = ["all_reduce", "broadcast", "all_gather", "all_gather_single", "reduce", "reduce_scatter", "gather", "scatter"]
KINDS += ["all_to_all_single", "barrier"]
COUNTS = [0, 1, 7, 5000, 40000, 90000]
DTYPES = ["float32", "int32", "int64", "bfloat16"]


class Drawn:
    """One call: what it is, and what every rank puts into it."""

    def __init__(self, torch: Any, shared: random.Random, size: int) -> None:
        self.torch, self.size = torch, size
        self.kind, self.count = shared.choice(KINDS), shared.choice(COUNTS)
        self.dtype, self.op = shared.choice(DTYPES), shared.choice(["SUM", "MAX", "MIN"])
        self.root, self.later, self.salt = shared.randrange(size), shared.random() < 0.6, shared.randrange(7)

    def data(self, rank: int, count: int) -> Any:
        """Small whole numbers: sums of them are the same in any order and dtype."""
        made = (self.torch.arange(count) * (rank + 2) + self.salt) % 6
        return made.to(getattr(self.torch, self.dtype))

    def reduced(self, count: int) -> Any:
        total = self.data(0, count)
        for rank in range(1, self.size):
            part = self.data(rank, count)
            total = total + part if self.op == "SUM" else getattr(self.torch, f"{self.op.lower()}imum")(total, part)
        return total


def begin(call: Drawn, dist: Any, rank: int) -> tuple[Any, list[Any], list[Any]]:
    """The work, what it writes, and what must stand there."""
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


def program(torch: Any, dist: Any, rank: int, size: int, seed: int) -> list[str]:
    """What differs from what one process computes."""
    shared, own = random.Random(seed), random.Random(seed * 100 + rank)
    calls = []
    for number in range(12):
        call = Drawn(torch, shared, size)
        if own.random() < 0.4:
            time.sleep(own.random() * 0.01)
        calls.append((number, call, *begin(call, dist, rank)))
    own.shuffle(calls)
    wrong = []
    for number, call, work, outs, wanted in calls:
        if call.later:
            work.wait()
        if not all(torch.equal(out, want) for out, want in zip(outs, wanted)) or len(outs) != len(wanted):
            wrong.append(f"{number}: {call.kind} of {call.count} {call.dtype} {call.op} from {call.root}")
    return wrong
