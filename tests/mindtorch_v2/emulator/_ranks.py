"""Ranks of a communicator for tests: threads of one process with a device each, or processes.

Scenarios run in a child process, `python -m ..._ranks SCENARIO`, because the number of devices is fixed when the
emulator is first used. Invariant: a child ends with 0 exactly when every rank's checks passed.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from ctypes import byref, c_char_p, c_int, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

import numpy as np

from ._kernels import device, library_folder

ROOT = Path(__file__).resolve().parents[3]
TYPES = {"int8": 0, "int16": 1, "int32": 2, "float16": 3, "float32": 4, "int64": 5, "uint64": 6, "uint8": 7,
         "float64": 10, "bfloat16": 11}  # fmt: skip
OPS = {"sum": 0, "prod": 1, "max": 2, "min": 3}


class Hccl:
    """libhccl.so through ctypes; pointers and counts are wrapped where they are passed."""

    def __init__(self) -> None:
        self.device = device()
        self.library = ctypes.CDLL(str(library_folder() / "libhccl.so"))
        self.library.HcclGetErrorString.restype = c_char_p

    def __call__(self, name: str, *arguments: Any) -> int:
        return int(getattr(self.library, name)(*arguments))

    def check(self, name: str, *arguments: Any) -> None:
        code = self(name, *arguments)
        assert code == 0, f"{name} answered {code}: {self.device.message()}"


class Rank:
    """One rank: its device is set on this thread."""

    def __init__(self, hccl: Hccl, number: int, comm: Any) -> None:
        self.hccl, self.number, self.comm = hccl, number, comm
        self.memory: list[int] = []

    @property
    def name(self) -> str:
        buffer = ctypes.create_string_buffer(128)
        self.hccl.check("HcclGetCommName", self.comm, buffer)
        return buffer.value.decode()

    def put(self, array: np.ndarray) -> int:
        self.memory.append(self.hccl.device.upload(np.ascontiguousarray(array).tobytes()))
        return self.memory[-1]

    def get(self, address: int, like: np.ndarray) -> np.ndarray:
        return np.frombuffer(self.hccl.device.download(address, like.nbytes), like.dtype).reshape(like.shape)

    def sync(self) -> int:
        return int(self.hccl.device.rt.aclrtSynchronizeStream(c_void_p(None)))

    def finish(self) -> None:
        for address in self.memory:
            self.hccl.device.rt.aclrtFree(address)
        self.hccl.check("HcclCommDestroy", self.comm)


def on_ranks(count: int, body: Callable[[Rank], None]) -> None:
    """Runs `body` for each rank, a thread and a device each; the first failure is raised."""
    hccl = Hccl()
    root = ctypes.create_string_buffer(4108)
    hccl.check("HcclGetRootInfo", root)
    failures: list[str] = []

    def run(number: int) -> None:
        try:
            hccl.device.check("aclrtSetDevice", hccl.device.rt.aclrtSetDevice(number))
            comm = c_void_p()
            hccl.check("HcclCommInitRootInfo", c_uint32(count), root, c_uint32(number), byref(comm))
            rank = Rank(hccl, number, comm)
            body(rank)
            rank.finish()
        except BaseException:
            failures.append(f"rank {number}:\n{traceback.format_exc()}")

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, "\n".join(failures)
    broken = hccl.device.violations()
    assert not broken, broken


def environment(devices: int) -> dict[str, str]:
    folder = str(library_folder())
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "MINDTORCH_EMULATOR_LIB": folder, "ASCEND_EMULATOR_DEVICES": str(devices),
            "HCCL_EXEC_TIMEOUT": "60", "HCCL_CONNECT_TIMEOUT": "60",
            "PYTHONPATH": os.pathsep.join(p for p in paths if p)}  # fmt: skip


def start(scenario: str, *arguments: str, devices: int = 4) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.mindtorch_v2.emulator._ranks", scenario, *arguments]
    return subprocess.Popen(
        command, cwd=ROOT, env=environment(devices), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def run_scenarios(scenarios: list[str]) -> None:
    """All of them in one child: it takes longer to start than most of them."""
    child = start("several", *scenarios)
    output, _ = child.communicate(timeout=300)
    assert child.returncode == 0, output[-4000:]


def count_of(n: int) -> c_uint64:
    return c_uint64(n)


def number(n: int) -> c_int:
    return c_int(n)


def main() -> None:
    from . import _collective_batches, _collective_products, _collectives

    scenarios = {**vars(_collectives), **vars(_collective_products), **vars(_collective_batches)}
    if sys.argv[1] == "several":
        for name in sys.argv[2:]:
            scenarios[name]()
    else:
        scenarios[sys.argv[1]](*sys.argv[2:])


if __name__ == "__main__":
    main()
