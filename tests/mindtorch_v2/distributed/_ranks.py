"""Processes of a group that are started once and asked many times.

Invariant: what a rank answers is plain data, or what it raised as (type, text); nothing is left when a group is closed.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from multiprocessing.connection import Client, Listener
from typing import Any

from . import _programs

CONTEXT = multiprocessing.get_context("spawn")


def _worked(pid: int) -> float:
    """Seconds that a process has computed."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:  # it is gone
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
    # On a busy machine ranks come late: the time limit of the group is that of its calls, not of starting.
    store.add("started", 1)
    while store.add("started", 0) < size:
        time.sleep(0.02)
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=timedelta(seconds=seconds))
    answer(pipe, torch, dist, rank, size)


def serve_under_mpi(address: str, library: str) -> None:
    """A rank that mpiexec has started; whoever asks it listens at the address."""
    os.environ["OMP_NUM_THREADS"] = "1"
    torch: Any = importlib.import_module(library)
    dist: Any = importlib.import_module(f"{library}.distributed")
    dist.init_process_group("mpi")
    with Client(address, "AF_UNIX") as pipe:
        pipe.send(dist.get_rank())
        answer(pipe, torch, dist, dist.get_rank(), dist.get_world_size())


def answer(pipe: Any, torch: Any, dist: Any, rank: int, size: int) -> None:
    while True:
        name, arguments = pipe.recv()
        if name is None:
            break
        try:
            room, _, program = name.rpartition(".")
            home = importlib.import_module(f"{__package__}.{room}") if room else _programs
            pipe.send(("value", getattr(home, program)(torch, dist, rank, size, *arguments)))
        except BaseException as error:  # as those of checkpoints are
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
        self.job: Any = None
        if backend == "mpi":
            self._start_job(library)
        else:
            self._start(library, seconds)

    def _start(self, library: str, seconds: float) -> None:
        path = os.path.join(self.folder.name, "store")
        for rank in range(self.size):
            mine, theirs = CONTEXT.Pipe()
            arguments = (theirs, library, rank, self.size, path, seconds, self.backend)
            process = CONTEXT.Process(target=serve, args=arguments, daemon=True)
            process.start()
            theirs.close()
            self.pipes.append(mine)
            self.processes.append(process)

    def _start_job(self, library: str) -> None:
        address = os.path.join(self.folder.name, "socket")
        code = f"from {__name__} import serve_under_mpi as f; f({address!r}, {library!r})"
        command = [os.path.join(os.path.dirname(sys.executable), "mpiexec"), "-n", str(self.size)]
        with Listener(address, "AF_UNIX") as listening:
            self.job = subprocess.Popen([*command, sys.executable, "-c", code])
            found = {}
            for _ in range(self.size):
                pipe = listening.accept()
                found[pipe.recv()] = pipe
        self.pipes = [found[rank] for rank in range(self.size)]

    def ask(self, name: str, *arguments: Any, ranks: list[int] | None = None) -> list[Any]:
        """What a program of `_programs`, or of the file named before a dot, gives on each rank: ("value", it) or
        ("error", (type, text))."""
        asked = range(self.size) if ranks is None else ranks
        for rank in asked:
            self.pipes[rank].send((name, arguments))
        return [self.answer(rank) for rank in asked]

    def answer(self, rank: int) -> Any:
        """What a rank says. On a busy machine it may take long: it has hung when no rank has worked for a while."""
        worked, waited = -1.0, 0
        while not self.pipes[rank].poll(60):
            waited += 60
            now = sum(_worked(each.pid) for each in self.processes)
            if waited >= 300 or now - worked < 0.5:
                raise AssertionError(f"rank {rank} does not answer after {waited} s ({now:.1f} s of work)")
            worked = now
        return self.pipes[rank].recv()

    def values(self, name: str, *arguments: Any) -> list[Any]:
        """What a program gives on each rank; an error of any fails the test."""
        found = self.ask(name, *arguments)
        assert all(kind == "value" for kind, _ in found), found
        return [value for _, value in found]

    def well(self) -> None:
        """On emulated devices: nobody has broken the vendor's contract, even if all that was computed was right."""
        if self.backend == "hccl" and os.environ.get("MINDTORCH_NPU", "") != "cann":
            assert self.values("broken") == [[]] * self.size

    def close(self) -> None:
        for pipe in self.pipes:
            try:
                pipe.send((None, ()))
            except OSError:  # a rank that is gone
                pass
        if self.job is not None:
            try:
                self.job.wait(20)
            except subprocess.TimeoutExpired:  # mpiexec ends its processes with itself
                self.job.terminate()
                self.job.wait(20)
        for process in self.processes:
            process.join(20)
            if process.is_alive():
                process.kill()
                process.join()
        for pipe in self.pipes:
            pipe.close()
        self.folder.cleanup()
