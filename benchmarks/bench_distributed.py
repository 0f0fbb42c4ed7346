"""What collectives cost, here and in PyTorch, on processes of this machine.

Each library has processes of its own, which do a case when told to; the passes alternate, so that both see the same
machine. `python benchmarks/bench_distributed.py [--ranks 2] [--passes 7] [--only "100 MB"] [--scaling]`. The best pass
counts: others have been disturbed. `--scaling` measures this library alone on 2 to 4 ranks, and `--predict` prints what
the model of `docs/scaling.md` says of many devices.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from typing import Any

# Elements of float32, and how often a pass does it.
CASES: dict[str, tuple[str, int, int]] = {
    "all_reduce 4 B": ("all_reduce", 1, 200),
    "all_reduce 1 KB": ("all_reduce", 256, 200),
    "all_reduce 64 KB": ("all_reduce", 1 << 14, 100),
    "all_reduce 1 MB": ("all_reduce", 1 << 18, 30),
    "all_reduce 10 MB": ("all_reduce", 10 << 18, 8),
    "all_reduce 100 MB": ("all_reduce", 25_000_000, 2),
    "broadcast 10 MB": ("broadcast", 10 << 18, 8),
    "all_gather 10 MB": ("all_gather", 10 << 18, 4),
    "barrier": ("barrier", 1, 200),
    "DDP step of a layer": ("layer", 1, 10),
    "DDP step of a GPT": ("gpt", 1, 5),
}


def layer(torch: Any) -> tuple[Any, Any]:
    """A small transformer layer, and what it is given."""
    nn = torch.nn
    block = nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True)
    return nn.Sequential(block, nn.Linear(128, 128)), torch.randn(8, 64, 128)


def gpt(torch: Any) -> tuple[Any, Any]:
    """The network of `examples/demo.py` without dropout, and letters."""
    nn, width, context, heads = torch.nn, 96, 64, 4

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x: Any) -> Any:
            parts = self.qkv(self.norm_1(x)).view(x.shape[0], x.shape[1], 3, heads, width // heads)
            q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
            seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(seen.transpose(1, 2).reshape(x.shape))
            return x + self.mlp(self.norm_2(x))

    class GPT(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.letters, self.places = nn.Embedding(65, width), nn.Embedding(context, width)
            self.blocks, self.norm = nn.Sequential(*[Block() for _ in range(3)]), nn.LayerNorm(width)

        def forward(self, letters: Any) -> Any:
            x = self.blocks(self.letters(letters) + self.places(torch.arange(context)))
            return nn.functional.linear(self.norm(x), self.letters.weight)

    return GPT(), torch.randint(65, (24, context))


def trained(torch: Any, kind: str) -> Any:
    """A training step under DistributedDataParallel."""
    torch.manual_seed(0)
    made, batch = gpt(torch) if kind == "gpt" else layer(torch)
    model = torch.nn.parallel.DistributedDataParallel(made)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def loss() -> Any:
        out = model(batch)
        if kind == "gpt":
            return torch.nn.functional.cross_entropy(out.reshape(-1, 65), batch.reshape(-1))
        return out.square().mean()

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return step


def prepared(torch: Any, dist: Any, kind: str, count: int, size: int) -> Any:
    """One call of a case."""
    if kind in ("layer", "gpt"):
        return trained(torch, kind)
    if kind == "barrier":
        return dist.barrier
    tensor = torch.ones(count)
    if kind == "all_gather":
        outs = [torch.empty(count) for _ in range(size)]
        return lambda: dist.all_gather(outs, tensor)
    if kind == "broadcast":
        return lambda: dist.broadcast(tensor, 0)
    return lambda: dist.all_reduce(tensor, dist.ReduceOp.MAX if count < 1000 else dist.ReduceOp.SUM)


def serve(name: str, rank: int, size: int, path: str) -> None:
    """Do a case each time a line with its name comes, and say how long one call took."""
    torch: Any = importlib.import_module(name)
    dist: Any = importlib.import_module(f"{name}.distributed")
    torch.set_num_threads(1)
    store = dist.FileStore(path, size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=timedelta(seconds=60))
    ready: dict[str, Any] = {}
    for line in sys.stdin:
        case = line.strip()
        kind, count, times = CASES[case]
        if case not in ready:
            ready[case] = prepared(torch, dist, kind, count, size)
            ready[case]()
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(times):
            ready[case]()
        print(json.dumps((time.perf_counter() - begin) / times), flush=True)
    dist.destroy_process_group()


class Library:
    """A library in processes of its own."""

    def __init__(self, name: str, size: int) -> None:
        self.folder = tempfile.TemporaryDirectory()
        path = os.path.join(self.folder.name, "store")
        self.processes = [
            subprocess.Popen(
                [sys.executable, __file__, "--serve", name, "--rank", str(rank), "--ranks", str(size), "--path", path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(size)
        ]

    def run(self, case: str) -> float:
        """Seconds of a call, on the slowest rank."""
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write(case + "\n")
            process.stdin.flush()
        found = []
        for process in self.processes:
            assert process.stdout is not None
            found.append(float(json.loads(process.stdout.readline())))
        return max(found)

    def close(self) -> None:
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(30)
        self.folder.cleanup()


def compare(size: int, passes: int, only: str) -> None:
    mine, theirs = Library("mindtorch_v2", size), Library("torch", size)
    print(f"{'case, ' + str(size) + ' ranks':24} {'here':>10} {'median':>10} {'PyTorch':>10} {'median':>10}  rate")
    for case in CASES:
        if only and only not in case:
            continue
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(passes):
            for library, found in zip((mine, theirs), times):
                found.append(library.run(case) * 1e6)
        best = [min(found) for found in times]
        middle = [statistics.median(found) for found in times]
        told = " ".join(f"{each:8.0f} us" for each in (best[0], middle[0], best[1], middle[1]))
        print(f"{case:24} {told}  {best[1] / best[0]:.2f}")
    mine.close()
    theirs.close()


def scaling(passes: int, only: str) -> None:
    print(f"{'case':24} " + " ".join(f"{size:>7} ranks" for size in (2, 3, 4)))
    libraries = [Library("mindtorch_v2", size) for size in (2, 3, 4)]
    for case in CASES:
        if not only or only in case:
            best = [min(library.run(case) for _ in range(passes)) * 1e6 for library in libraries]
            print(f"{case:24} " + " ".join(f"{each:10.0f} us" for each in best))
    for library in libraries:
        library.close()


def predicted(
    devices: int, size: float, inside: float = 157e9, outside: float = 20e9, hop: float = 10e-6, step: float = 20e-6
) -> float:
    """Seconds of an all-reduce of so many bytes: a reduce-scatter in each node of eight, a ring of each part between
    the nodes, an all-gather in each node. Bandwidths are bytes a second of one device in one direction."""
    local, nodes = min(devices, 8), max(devices // 8, 1)
    within = 2 * (local - 1) * hop + 2 * (local - 1) / local * size / inside
    between = 2 * (nodes - 1) * step + 2 * (nodes - 1) / nodes * (size / local) / outside
    return within + between


def predict() -> None:
    """Times, and what is left of a step of 30 ms, 20 of them backward, with 1 GB of gradients: hidden or not."""
    print(f"{'devices':>8} {'1 MB':>12} {'100 MB':>12} {'1 GB':>12} {'not hidden':>12} {'hidden':>8}")
    for devices in (8, 16, 32, 64, 128, 256, 512, 1024):
        times = [predicted(devices, size) * 1e3 for size in (1e6, 1e8, 1e9)]
        shown = " ".join(f"{each:9.2f} ms" for each in times)
        hidden = 30 / (30 + max(times[2] - 20, 0))
        print(f"{devices:8} {shown} {30 / (30 + times[2]):12.0%} {hidden:8.0%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--rank", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--path", default="", help=argparse.SUPPRESS)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--passes", type=int, default=7)
    parser.add_argument("--only", default="")
    parser.add_argument("--scaling", action="store_true")
    parser.add_argument("--predict", action="store_true")
    given = parser.parse_args()
    if given.serve:
        serve(given.serve, given.rank, given.ranks, given.path)
    elif given.predict:
        predict()
    elif given.scaling:
        scaling(given.passes, given.only)
    else:
        compare(given.ranks, given.passes, given.only)


if __name__ == "__main__":
    main()
