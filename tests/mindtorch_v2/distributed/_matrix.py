"""Every collective by every dtype, operation, layout and way of waiting; each rank computes for itself what must come.

Invariant: what must come is computed on the CPU by a rank alone, from what `_programs.value` says that all ranks give.
`python -m tests.mindtorch_v2.distributed._matrix --backend gloo --ranks 3` runs all and says how many results it saw.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Callable
from typing import Any

from . import _programs

DTYPES = ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "int64", "bool", "complex64"]
DTYPES += ["complex128"]
OPS = ["SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "AVG"]
LAYOUTS = ["contiguous", "transposed", "strided"]
# One element; few; more than one block of what is reduced at once, and no multiple of anything.
SHAPES = [(1, 1), (3, 4), (67, 43)]


def allowed(dtype: str, op: str, backend: str, library: str) -> bool:
    if library == "torch" and op == "AVG" and dtype.startswith("complex"):
        return False  # PyTorch's gloo divides complex numbers, which rounds in another way than dividing their parts
    if backend == "hccl" and (op in ("BAND", "BOR", "BXOR") or dtype in ("float64", "complex128")):
        return False
    if dtype.startswith("complex"):
        return op in ("SUM", "AVG")
    if op in ("BAND", "BOR", "BXOR"):
        return "float" not in dtype
    return op != "AVG" or "float" in dtype


def reduced(torch: Any, parts: list[Any], op: str) -> Any:
    """What one process computes."""
    total = parts[0].clone()
    for part in parts[1:]:
        if op in ("SUM", "AVG"):
            total = total + part
        elif op == "PRODUCT":
            total = total * part
        elif op in ("MIN", "MAX"):
            total = torch.minimum(total, part) if op == "MIN" else torch.maximum(total, part)
        else:
            total = {"BAND": total & part, "BOR": total | part, "BXOR": total ^ part}[op]
    if op == "AVG":  # of complex numbers it is that of their parts
        mean = torch.view_as_real(total) / len(parts) if total.is_complex() else total / len(parts)
        total = torch.view_as_complex(mean) if total.is_complex() else mean
    return total


class Calls:
    """Calls of one rank with one dtype, shape, layout and way of waiting: (name, what was written, what must be)."""

    def __init__(self, torch: Any, dist: Any, rank: int, size: int, case: tuple[str, Any, str, bool]) -> None:
        self.torch, self.dist, self.rank, self.size = torch, dist, rank, size
        self.dtype, self.shape, self.layout, self.later = case

    def given(self, rank: int, layout: str | None = None) -> Any:
        return _programs.value(self.torch, self.dtype, rank, self.shape, layout or self.layout)

    def known(self, rank: int) -> Any:
        with self.torch.device("cpu"):
            return _programs.value(self.torch, self.dtype, rank, self.shape)

    def total(self, op: str, shift: int = 0) -> Any:
        return reduced(self.torch, [self.known(each + shift) for each in range(self.size)], op)

    def empty(self, count: int) -> list[Any]:
        return [self.torch.zeros_like(self.given(0)) for _ in range(count)]

    def do(self, call: Callable[..., Any], *arguments: Any, **settings: Any) -> None:
        _programs.wait(call(*arguments, async_op=self.later, **settings), self.later)

    def reductions(self, name: str) -> Any:
        dist, size, rank = self.dist, self.size, self.rank
        op = getattr(dist.ReduceOp, name)
        t = self.given(rank)
        self.do(dist.all_reduce, t, op)
        yield "all_reduce", t, self.total(name)
        for root in range(size):
            t = self.given(rank)
            self.do(dist.reduce, t, root, op)
            if rank == root:
                yield f"reduce to {root}", t, self.total(name)
        (out,) = self.empty(1)
        self.do(dist.reduce_scatter, out, [self.given(rank + each) for each in range(size)], op)
        yield "reduce_scatter", out, self.total(name, rank)
        out = self.empty(1)[0].contiguous()
        whole = self.torch.cat([self.given(rank + each, "contiguous") for each in range(size)])
        self.do(dist.reduce_scatter_single, out, whole, op)
        yield "reduce_scatter_single", out, self.total(name, rank)
        both = [self.given(rank), self.given(rank + 1)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.do(dist.all_reduce_coalesced, both, op)
        yield "all_reduce_coalesced", both[0], self.total(name)
        yield "all_reduce_coalesced", both[1], self.total(name, 1)

    def copies(self) -> Any:
        dist, size, rank, torch = self.dist, self.size, self.rank, self.torch
        every = [self.known(each) for each in range(size)]
        outs = self.empty(size)
        self.do(dist.all_gather, outs, self.given(rank))
        yield "all_gather", torch.stack(outs), torch.stack(every)
        out = torch.cat([each.contiguous() for each in self.empty(size)])
        self.do(dist.all_gather_single, out, self.given(rank).contiguous())
        yield "all_gather_single", out, torch.cat(every)
        outs = self.empty(size)
        self.do(dist.all_to_all, outs, [self.given(rank + each) for each in range(size)])
        yield "all_to_all", torch.stack(outs), torch.stack([self.known(each + rank) for each in range(size)])
        out = torch.cat([each.contiguous() for each in self.empty(size)])
        whole = torch.cat([self.given(rank + each, "contiguous") for each in range(size)])
        self.do(dist.all_to_all_single, out, whole)
        yield "all_to_all_single", out, torch.cat([self.known(each + rank) for each in range(size)])
        for root in range(size):
            t = self.given(rank)
            self.do(dist.broadcast, t, root)
            yield f"broadcast from {root}", t, every[root]
            if torch.__name__ != "torch" or not outs[0].is_complex():  # which PyTorch's gloo does not gather
                outs = self.empty(size)
                self.do(dist.gather, self.given(rank), outs if rank == root else None, root)
                if rank == root:
                    yield f"gather to {root}", torch.stack(outs), torch.stack(every)
            (out,) = self.empty(1)
            parts = [self.given(each + root) for each in range(size)] if rank == root else None
            self.do(dist.scatter, out, parts, root)
            yield f"scatter from {root}", out, self.known(rank + root)
        yield from self.messages()

    def messages(self) -> Any:
        """Around the ring; a message is contiguous."""
        dist, after, before = self.dist, (self.rank + 1) % self.size, (self.rank - 1) % self.size
        out, mine = self.empty(1)[0].contiguous(), self.given(self.rank, "contiguous")
        works = dist.batch_isend_irecv([dist.P2POp(dist.isend, mine, after), dist.P2POp(dist.irecv, out, before)])
        for work in works:
            work.wait()
        yield "isend and irecv", out, self.known(before)


def whole(
    torch: Any, dist: Any, rank: int, size: int, dtype: str, shapes: Any = SHAPES, layouts: Any = LAYOUTS
) -> tuple[int, list[str]]:
    """How many results of a dtype were looked at, and those that differ."""
    count, wrong = 0, []
    backend = dist.get_backend()
    for shape, layout, later in itertools.product(shapes, layouts, (False, True)):
        calls = Calls(torch, dist, rank, size, (dtype, shape, layout, later))
        kinds = [("", calls.copies())]
        kinds += [(op, calls.reductions(op)) for op in OPS if allowed(dtype, op, backend, torch.__name__)]
        for op, told in kinds:
            for name, found, want in told:
                count += 1
                if found.dtype != want.dtype or not torch.equal(found.cpu(), want):
                    wrong.append(f"{name} {op} of {dtype} {shape} {layout} async_op={later}")
    return count, wrong


def main() -> None:
    from ._ranks import Ranks

    parser = argparse.ArgumentParser(description="Every collective by every dtype, operation and layout.")
    parser.add_argument("--backend", default="gloo", choices=["gloo", "mpi", "hccl"])
    parser.add_argument("--ranks", type=int, default=2)
    given = parser.parse_args()
    ranks = Ranks("mindtorch_v2", given.ranks, backend=given.backend)
    count, wrong = 0, []
    try:
        for dtype in DTYPES:
            for rank, (kind, told) in enumerate(ranks.ask("_matrix.whole", dtype)):
                if kind == "error":
                    raise SystemExit(f"{dtype}, rank {rank}: {told}")
                count += told[0]
                wrong += [f"rank {rank}: {each}" for each in told[1]]
        ranks.well()
    finally:
        ranks.close()
    print("\n".join(wrong))
    print(f"{given.backend}, {given.ranks} ranks: {count} results, {len(wrong)} different")
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
