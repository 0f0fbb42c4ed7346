"""Tensors between processes, and processes that are started together."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from .._resources import kept_level
from .._subject import SUBJECT_NAME, mindtorch_only, submodule
from .._subject import subject as torch

mp: Any = submodule("multiprocessing")


@pytest.fixture(params=["file_descriptor", "file_system"])
def strategy(request: Any) -> Any:
    before = mp.get_sharing_strategy()
    mp.set_sharing_strategy(request.param)
    yield request.param
    mp.set_sharing_strategy(before)


# -- what the processes do ----------------------------------------------------------------------------------------
def answer(inbox: Any, outbox: Any) -> None:
    """Add one to what comes, and say what came."""
    while (t := inbox.get()) is not None:
        told = (type(t).__name__, t.is_shared(), t.requires_grad, tuple(t.shape), t.stride(), t.storage_offset())
        t.detach().add_(1)
        outbox.put(told)


def same_memory(inbox: Any, outbox: Any) -> None:
    one, two = inbox.get(), inbox.get()
    outbox.put(one.untyped_storage().data_ptr() == two.untyped_storage().data_ptr())
    inbox.get()


def send_and_end(outbox: Any, done: Any) -> None:
    outbox.put(torch.arange(1000.0))
    done.wait(20)


def fill(index: int, t: Any) -> None:
    t[index] = index + 1


def fail(index: int, how: str) -> None:
    if index == 0:
        time.sleep(20)
    if how == "raise":
        raise ValueError(f"no luck in {index}")
    if how == "exit":
        os._exit(3)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)


def train(index: int, w: Any) -> None:
    x = torch.ones(200, 200)
    loss = (w @ x @ x).sum()
    loss.backward()
    torch.manual_seed(index)
    with torch.no_grad():
        w.copy_(w.grad / 200 + torch.rand(1).sign())


def square(t: Any) -> Any:
    return t * t


# -- queues -------------------------------------------------------------------------------------------------------
TENSORS: dict[str, Any] = {
    "plain": lambda: torch.arange(6.0),
    "transposed": lambda: torch.arange(6.0).reshape(2, 3).t(),
    "slice": lambda: torch.arange(20.0)[3:17:2],
    "expanded": lambda: torch.zeros(1).expand(4).clone(),
    "scalar": lambda: torch.tensor(3.0),
    "leaf": lambda: torch.ones(3, requires_grad=True),
    "parameter": lambda: torch.nn.Parameter(torch.ones(3)),
    "large": lambda: torch.zeros(1 << 18),
    "integers": lambda: torch.arange(5),
}


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_every_kind_of_tensor_arrives_as_the_same_memory(strategy: str, method: str) -> None:
    context = mp.get_context(method)

    def work(chosen: list[str]) -> None:
        inbox, outbox = context.Queue(), context.Queue()
        process = context.Process(target=answer, args=(inbox, outbox))
        process.start()
        for name in chosen:
            t = TENSORS[name]()
            before = t.detach().clone()
            inbox.put(t)
            told = outbox.get(timeout=30)
            assert told == (
                type(t).__name__, True, t.requires_grad, tuple(t.shape), t.stride(), t.storage_offset()
            ), name  # fmt: skip
            assert torch.equal(t.detach(), before + 1), name
        inbox.put(None)
        process.join(20)
        assert process.exitcode == 0
        for queue in (inbox, outbox):
            queue.close()
            queue.join_thread()

    work(["plain"])  # what multiprocessing itself starts once stays
    with kept_level():
        work(list(TENSORS))


def test_memory_sent_twice_arrives_once(strategy: str) -> None:
    context = mp.get_context("fork")
    inbox, outbox = context.Queue(), context.Queue()
    process = context.Process(target=same_memory, args=(inbox, outbox))
    process.start()
    t = torch.arange(10.0)
    inbox.put(t)
    inbox.put(t[2:5])
    assert outbox.get(timeout=20)
    inbox.put(None)
    process.join(20)


def test_what_a_child_sends_outlives_it() -> None:
    context = mp.get_context("fork")

    def work() -> None:
        outbox, done = context.SimpleQueue(), context.Event()
        process = context.Process(target=send_and_end, args=(outbox, done))
        process.start()
        t = outbox.get()
        done.set()
        process.join(20)
        assert t.sum() == 499500
        outbox.close()

    work()
    with kept_level():
        work()


def test_graphs_are_refused() -> None:
    t = torch.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor which requires_grad"):
        mp.reductions.reduce_tensor(t)
    with pytest.raises(RuntimeError, match="Cannot pickle meta storage; try pickling a meta tensor instead"):
        mp.reductions.reduce_storage(torch.zeros(1, device="meta").untyped_storage())
    function, args = mp.reductions.reduce_tensor(torch.zeros(2, 3, device="meta"))
    made = function(*args)
    assert made.shape == (2, 3) and made.device.type == "meta"


@pytest.mark.parametrize("module", ["", ".pool"])
def test_pools(module: str) -> None:
    def work() -> None:
        maker = mp.Pool if not module else submodule("multiprocessing.pool").Pool
        with maker(2) as pool:
            got = pool.map(square, [torch.full((3,), float(i)) for i in range(4)])
            pool.close()
            pool.join()
        assert [t[0].item() for t in got] == [0, 1, 4, 9]

    work()
    with kept_level():
        work()


# -- started together ---------------------------------------------------------------------------------------------
def test_spawn_and_start_processes() -> None:
    t = torch.zeros(2).share_memory_()
    assert mp.spawn(fill, (t,), nprocs=2) is None
    assert t.tolist() == [1, 2]
    t.zero_()
    context = mp.start_processes(fill, (t,), nprocs=2, join=False, start_method="fork")
    assert len(context.pids()) == 2
    while not context.join(timeout=5):
        pass
    assert t.tolist() == [1, 2]


@pytest.mark.parametrize("how", ["raise", "exit", "kill"])
def test_one_that_fails_ends_the_others(how: str) -> None:
    with kept_level():
        with pytest.raises(mp.ProcessRaisedException if how == "raise" else mp.ProcessExitedException) as caught:
            mp.start_processes(fail, (how,), nprocs=2, start_method="fork")
        error = caught.value
        assert error.error_index == 1 and error.error_pid > 0
        text = str(error)
        if how == "raise":
            assert text.startswith("\n\n-- Process 1 terminated with the following error:\nTraceback")
            assert text.endswith("ValueError: no luck in 1\n")
        elif how == "exit":
            assert text == "process 1 terminated with exit code 3" and error.exit_code == 3
        else:
            assert text == "process 1 terminated with signal SIGKILL" and error.signal_name == "SIGKILL"
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.error_pid) == (type(error), text, error.error_pid)
        del caught, error, again


def test_a_forked_child_computes_and_differentiates() -> None:
    (torch.ones(600, 600) @ torch.ones(600, 600)).sum()  # the parent has threads now
    weights = torch.ones(200, 200).share_memory_().requires_grad_()
    mp.start_processes(train, (weights,), start_method="fork")
    assert torch.equal(weights.detach(), torch.full((200, 200), 201.0))


def test_warnings_of_old_names() -> None:
    with pytest.warns(UserWarning, match="SpawnContext is renamed to ProcessContext since 1.4 release."):
        mp.SpawnContext([], [])
    with pytest.warns(FutureWarning, match="This method only supports start_method=spawn"):
        mp.spawn(fill, (torch.zeros(1).share_memory_(),), start_method="fork")


@mindtorch_only
def test_names_of_killed_processes_are_removed() -> None:
    code = (
        f"import os, signal, {SUBJECT_NAME} as torch\n"
        f"import {SUBJECT_NAME}.multiprocessing as mp\n"
        "mp.set_sharing_strategy('file_system')\n"
        "t = torch.zeros(1000).share_memory_()\n"
        "print(t.untyped_storage()._share_filename_cpu_()[1].decode(), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=False)
    path = Path("/dev/shm") / done.stdout.strip().lstrip("/")
    assert path.name.startswith("torch_")
    end = time.monotonic() + 10
    while path.exists() and time.monotonic() < end:
        time.sleep(0.02)
    assert not path.exists()


# -- names --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["", ".reductions", ".spawn", ".queue", ".pool", "._atfork"])
def test_names(oracle: ModuleType, name: str) -> None:
    import importlib

    theirs = importlib.import_module(f"torch.multiprocessing{name}")
    ours = importlib.import_module(f"mindtorch_v2.multiprocessing{name}")
    missing = {n for n in dir(theirs) if not n.startswith("__")} - set(dir(ours)) - {"_RT"}
    assert missing <= {"torch", "sys", "io", "reduction", "as_completed", "_register", "util", "multiprocessing"}
    assert getattr(ours, "__all__", None) == getattr(theirs, "__all__", None) or name == ".spawn"
