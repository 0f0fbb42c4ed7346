"""Processes of a group that are started once and asked many times.

Invariant: what a rank answers is plain data, or what it raised as (type, text); nothing is left when a group is closed.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import tempfile
from datetime import timedelta
from typing import Any

from . import _programs

CONTEXT = multiprocessing.get_context("spawn")


def serve(pipe: Any, library: str, rank: int, size: int, path: str, seconds: float, backend: str) -> None:
    """A rank: does what it is asked until it is asked to end."""
    os.environ["OMP_NUM_THREADS"] = "1"
    if "hccl" in backend:
        os.environ.setdefault("MINDTORCH_NPU", "emulator")
        os.environ["ASCEND_EMULATOR_DEVICES"] = str(size)
    torch: Any = importlib.import_module(library)
    dist: Any = importlib.import_module(f"{library}.distributed")
    if "hccl" in backend:
        torch.npu.set_device(rank)
        torch.set_default_device(f"npu:{rank}")
    store = dist.FileStore(path, size)
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=timedelta(seconds=seconds))
    while True:
        name, arguments = pipe.recv()
        if name is None:
            break
        try:
            room, _, program = name.rpartition(".")
            home = importlib.import_module(f"{__package__}.{room}") if room else _programs
            pipe.send(("value", getattr(home, program)(torch, dist, rank, size, *arguments)))
        except Exception as error:
            pipe.send(("error", (type(error).__name__, str(error))))
    if dist.is_initialized():
        dist.destroy_process_group()
    pipe.send(("value", None))


class Ranks:
    """A group of processes."""

    def __init__(self, library: str, size: int, seconds: float = 30.0, backend: str = "gloo") -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.size, self.backend = size, backend
        self.pipes: list[Any] = []
        self.processes: list[Any] = []
        path = os.path.join(self.folder.name, "store")

        def args(pipe: Any, rank: int) -> tuple[Any, ...]:
            return pipe, library, rank, size, path, seconds, backend

        for rank in range(size):
            mine, theirs = CONTEXT.Pipe()
            process = CONTEXT.Process(target=serve, args=args(theirs, rank), daemon=True)
            process.start()
            theirs.close()
            self.pipes.append(mine)
            self.processes.append(process)

    def ask(self, name: str, *arguments: Any, ranks: list[int] | None = None) -> list[Any]:
        """What a program of `_programs`, or of the file named before a dot, gives on each rank: ("value", it) or
        ("error", (type, text))."""
        asked = range(self.size) if ranks is None else ranks
        for rank in asked:
            self.pipes[rank].send((name, arguments))
        return [self.answer(rank) for rank in asked]

    def answer(self, rank: int) -> Any:
        if not self.pipes[rank].poll(90):
            raise AssertionError(f"rank {rank} does not answer")
        return self.pipes[rank].recv()

    def values(self, name: str, *arguments: Any) -> list[Any]:
        """What a program gives on each rank; an error of any fails the test."""
        found = self.ask(name, *arguments)
        assert all(kind == "value" for kind, _ in found), found
        return [value for _, value in found]

    def close(self) -> None:
        for pipe, process in zip(self.pipes, self.processes):
            if process.is_alive():
                try:
                    pipe.send((None, ()))
                except OSError:
                    pass
        for process in self.processes:
            process.join(20)
            if process.is_alive():
                process.kill()
                process.join()
        for pipe in self.pipes:
            pipe.close()
        self.folder.cleanup()
