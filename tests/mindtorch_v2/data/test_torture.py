"""Workers that fail in every way, at every point: PyTorch's errors, never a hang, and nothing left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from .._resources import kept_level
from .._subject import SUBJECT_NAME, mindtorch_only, submodule
from .._subject import subject as torch
from . import _sets

data: Any = submodule("utils.data")
pytestmark = mindtorch_only  # PyTorch waits five seconds for some, and for ever for others


# -- killed -------------------------------------------------------------------------------------------------------
CAUSES = {
    "kill": "is killed by signal: Killed. $",
    "segfault": "is killed by signal: Segmentation fault. $",
    "_exit": "exited unexpectedly with exit code 7. Details are lost due to multiprocessing. Rerunning with num_work",
    "exit": "exited unexpectedly with exit code 3.",
    "interrupt": "",
}


@pytest.mark.parametrize("how", CAUSES)
@pytest.mark.parametrize("at", [0, 1, 5, 19])
def test_a_worker_that_ends_is_an_error_at_once(how: str, at: int) -> None:
    with kept_level():
        begin = time.monotonic()
        iterator = iter(data.DataLoader(_sets.Failing(how, at), 2, num_workers=2))
        pids = {w.pid for w in iterator._workers}
        with pytest.raises(RuntimeError, match=r"^DataLoader worker \(pid\(s\) \d+\) exited unexpectedly$") as caught:
            list(iterator)
        assert int(str(caught.value).split()[3].rstrip(")")) in pids
        if CAUSES[how]:
            assert re.search(CAUSES[how], str(caught.value.__cause__))
        assert time.monotonic() - begin < 4.5
        del iterator, caught


@pytest.mark.parametrize("moment", range(8))
@pytest.mark.parametrize("persistent", [True, False])
def test_killed_from_outside_at_any_moment(moment: int, persistent: bool) -> None:
    """Before the first batch, while one is under way, between two, after the last."""
    with kept_level():
        loader = data.DataLoader(_sets.Numbers(torch, 12, (20000,)), 2, num_workers=2, persistent_workers=persistent)
        iterator = iter(loader)
        try:
            for _ in range(min(moment, 6)):
                next(iterator)
            if moment % 2:
                time.sleep(0.03)
            for pid in [worker.pid for worker in iterator._workers]:
                os.kill(pid, signal.SIGKILL)
            # What they had sent is still good.
            rest = list(iterator)
            assert len(rest) <= 6 - min(moment, 6)
        except (RuntimeError, ProcessLookupError) as error:
            assert isinstance(error, ProcessLookupError) or "exited unexpectedly" in str(error)
        iterator._shutdown_workers()
        del iterator, loader


def test_one_of_two_workers_killed_again_and_again() -> None:
    with kept_level():
        for delay in range(12):
            iterator = iter(data.DataLoader(_sets.Numbers(torch, 20_000, (30000,)), 2, num_workers=2))
            timer = threading.Timer(delay * 0.004, os.kill, (iterator._workers[delay % 2].pid, signal.SIGKILL))
            timer.start()
            with pytest.raises(RuntimeError, match="exited unexpectedly"):
                for _ in iterator:
                    pass
                pytest.fail("it was not noticed")
            timer.join()
            del iterator


def test_persistent_workers_killed_between_two_passes() -> None:
    with kept_level():
        loader = data.DataLoader(_sets.Numbers(torch, 8), 2, num_workers=2, persistent_workers=True)
        assert len(list(loader)) == 4
        os.kill(loader._iterator._workers[1].pid, signal.SIGKILL)
        with pytest.raises(RuntimeError, match="exited unexpectedly"):
            list(loader)
        del loader


# -- raising ------------------------------------------------------------------------------------------------------
RAISED: dict[str, tuple[type[BaseException], str]] = {
    "value": (ValueError, "ValueError: bad value"),
    "key": (KeyError, "KeyError: 'a key"),
    "odd": (RuntimeError, "Odd: (1, 2)"),
    "message": (_sets.WithMessage, "WithMessage: told"),
    "local": (RuntimeError, "Local: of this function only"),
    "stop": (StopIteration, "StopIteration: of an indexed dataset"),
    "unicode": (RuntimeError, "UnicodeDecodeError: 'utf-8' codec"),
    "os": (OSError, "No such file or directory"),
    "group": (RecursionError, "RecursionError: deep"),
    "unpicklable": (TypeError, "this cannot be pickled"),
    "unloadable": (ValueError, "this cannot be unpickled"),
    "graph": (RuntimeError, "Cowardly refusing to serialize non-leaf tensor which requires_grad"),
}


@pytest.mark.parametrize("how", RAISED)
@pytest.mark.parametrize("method", ["fork"])
def test_every_kind_of_exception_arrives(how: str, method: str) -> None:
    kind, text = RAISED[how]
    with kept_level():
        iterator = iter(data.DataLoader(_sets.Failing(how), None, num_workers=2, multiprocessing_context=method))
        got = []
        with pytest.raises(kind) as caught:
            while True:
                got.append(next(iterator))
        assert len(got) == 5
        said = str(caught.value)
        assert said.startswith(f"Caught {said.split()[1]} ") and "Original Traceback" in said.replace(
            "Local: Traceback", "Traceback"
        )
        assert text in said and "DataLoader worker process 1" in said
        # The loader goes on behind the bad sample.
        assert [float(t[0]) for t in iterator] == list(range(6, 20))
        del iterator, caught


def test_in_the_same_words_as_pytorch() -> None:
    with pytest.raises(KeyError) as caught:
        list(data.DataLoader(_sets.Failing("key"), 4, num_workers=1))
    said = str(caught.value)
    assert said.startswith(
        "Caught KeyError in DataLoader worker process 0.\nOriginal Traceback (most recent call last)"
    )


def bad_start(worker_id: int) -> None:
    raise ValueError(f"no start for {worker_id}")


@pytest.mark.parametrize("persistent", [True, False])
def test_a_worker_that_cannot_start(persistent: bool) -> None:
    with kept_level():
        loader = data.DataLoader(range(8), num_workers=2, worker_init_fn=bad_start, persistent_workers=persistent)
        with pytest.raises(ValueError, match="no start for 0"):
            list(loader)
        del loader


class BadIterable(data.IterableDataset):
    def __iter__(self) -> Any:
        yield 1
        raise OSError(5, "disk gone")


def test_an_iterable_that_raises() -> None:
    with kept_level():
        with pytest.raises(OSError, match="disk gone"):
            list(data.DataLoader(BadIterable(), None, num_workers=2))


def test_a_bad_collate_function() -> None:
    with kept_level(), pytest.raises(TypeError, match="default_collate: batch must contain tensors"):
        list(data.DataLoader([object(), object()], num_workers=1))


# -- hanging and being left ---------------------------------------------------------------------------------------
def test_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submodule("utils.data._utils"), "MP_STATUS_CHECK_INTERVAL", 0.3)
    with kept_level():
        iterator = iter(data.DataLoader(_sets.Failing("hang", 3), None, num_workers=1, timeout=0.3))
        with pytest.raises(RuntimeError, match="^DataLoader timed out after 0.3 seconds$"):
            list(iterator)
        del iterator


@pytest.mark.parametrize("taken", [0, 1, 3])
@pytest.mark.parametrize("persistent", [True, False])
def test_left_before_the_end(taken: int, persistent: bool) -> None:
    with kept_level():
        loader = data.DataLoader(
            _sets.Numbers(torch, 40, (40000,)), 2, num_workers=2, persistent_workers=persistent, prefetch_factor=4
        )
        for _ in range(2):
            iterator = iter(loader)
            for i in range(taken):
                assert next(iterator)[0, 0] == 2 * i
        del iterator, loader


def test_results_that_nobody_reads_do_not_keep_workers() -> None:
    with kept_level():
        iterator = iter(data.DataLoader(range(8), 1, num_workers=2, collate_fn=megabytes))
        next(iterator)
        time.sleep(0.1)
        begin = time.monotonic()
        del iterator
        assert time.monotonic() - begin < 4


def megabytes(batch: list[int]) -> bytes:
    return bytes(4 << 20)


def test_many_loaders_at_once() -> None:
    with kept_level():
        loaders = [data.DataLoader(_sets.Numbers(torch, 6), 2, num_workers=2) for _ in range(4)]
        rows = list(zip(*loaders))
        assert len(rows) == 3 and all(torch.equal(row[0], other) for row in rows for other in row)
        del loaders, rows


def test_a_fork_does_not_disturb_a_loader() -> None:
    """A child has copies of the iterator and its sockets, and throws them away."""
    with kept_level():
        iterator = iter(data.DataLoader(_sets.Numbers(torch, 12), 2, num_workers=2))
        next(iterator)
        pid = os.fork()
        if pid == 0:
            iterator.__del__()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        assert len(list(iterator)) == 5
        del iterator


PROGRAM = f"""
import os, sys, time, {SUBJECT_NAME} as torch
from {SUBJECT_NAME}.utils.data import DataLoader
class Slow:
    def __len__(self): return 1000
    def __getitem__(self, i):
        time.sleep(0.005)
        return torch.full((40000,), float(i))
loader = DataLoader(Slow(), 2, num_workers=2, persistent_workers={{persistent}})
it = iter(loader)
next(it)
print(*[w.pid for w in it._workers], flush=True)
{{action}}
"""


def run_program(action: str, persistent: bool = False) -> tuple[subprocess.Popen[str], list[int]]:
    code = PROGRAM.format(action=action, persistent=persistent)
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    return process, [int(n) for n in process.stdout.readline().split()]


def gone(pids: list[int], seconds: float = 12) -> bool:
    end = time.monotonic() + seconds
    while any(os.path.exists(f"/proc/{pid}") for pid in pids) and time.monotonic() < end:
        time.sleep(0.02)
    return not any(os.path.exists(f"/proc/{pid}") for pid in pids)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A shell lets what it runs in the background ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("how", ["ctrl-c", "kill", "end"])
def test_a_program_that_ends_takes_its_workers_along(how: str) -> None:
    with kept_level():
        process, workers = run_program("sys.exit(0)" if how == "end" else "list(it)", persistent=how == "end")
        assert len(workers) == 2
        if how == "ctrl-c":
            os.killpg(process.pid, signal.SIGINT)
        elif how == "kill":
            process.kill()
        _, said = process.communicate(timeout=30)
        assert gone(workers)
        if how == "ctrl-c":
            assert "KeyboardInterrupt" in said and said.count("Traceback") == 1
        elif how == "end":
            assert process.returncode == 0 and said == ""


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_in_this_process_leaves_nothing() -> None:
    with kept_level():
        iterator = iter(data.DataLoader(_sets.Numbers(torch, 100000, (100,)), 2, num_workers=2))
        next(iterator)
        timer = threading.Timer(0.1, signal.raise_signal, (signal.SIGINT,))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            for _ in iterator:
                pass
        timer.join()
        del iterator


def test_warnings_are_not_hidden_errors() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(data.DataLoader(range(4), 2, num_workers=1))) == 2


# -- memory that is used again ------------------------------------------------------------------------------------
class Marked(_sets.Numbers):
    """Large samples of one size, each full of its own number; some are kept by the worker."""

    cache: Any = None

    def __getitem__(self, i: int) -> Any:
        if i % 7 == 3:
            if self.cache is None:
                self.cache = torch.full(self.shape, -1.0)
            return self.cache
        return torch.full(self.shape, float(i))


@pytest.mark.parametrize("batch_size", [None, 2])
def test_a_batch_never_changes_while_somebody_has_it(batch_size: int | None) -> None:
    """Batches are kept for a while, dropped in a random order, and looked at when they are dropped."""
    import random

    choose = random.Random(5)
    shape = (40000,)
    with kept_level():
        loader = data.DataLoader(
            Marked(torch, 300, shape), batch_size, num_workers=2, persistent_workers=True, prefetch_factor=3
        )
        for _ in range(2):
            kept: list[tuple[int, Any]] = []
            for n, batch in enumerate(loader):
                rows = batch[None] if batch_size is None else batch
                kept.append((n * (batch_size or 1), rows[:, 5:]))
                while len(kept) > choose.randint(0, 40):
                    first, t = kept.pop(choose.randrange(len(kept)))
                    for k, row in enumerate(t):
                        expected = -1.0 if (first + k) % 7 == 3 else float(first + k)
                        assert row.min() == row.max() == expected
            del batch, rows, t, row, kept
        del loader


def test_what_a_fork_has_seen_stays() -> None:
    with kept_level():
        loader = data.DataLoader(_sets.Numbers(torch, 60, (40000,)), None, num_workers=1)
        iterator = iter(loader)
        first = next(iterator)
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            # Answers after the parent has let go of its batch, and the worker has sent many more.
            os.read(read, 1)
            os._exit(0 if first.min() == first.max() == 0.0 else 1)
        del first
        assert len(list(iterator)) == 59
        os.write(write, b"x")
        assert os.waitpid(pid, 0)[1] == 0
        os.close(read)
        os.close(write)
        del iterator, loader


def test_memory_comes_back_to_the_worker() -> None:
    with kept_level():
        seen = set()
        for t in data.DataLoader(_sets.Numbers(torch, 200, (40000,)), None, num_workers=1):
            seen.add(t.untyped_storage().data_ptr())
            del t
        assert len(seen) <= 8
        sizes = [torch.zeros(20000 + 100 * i) for i in range(60)]
        for i, t in enumerate(data.DataLoader(sizes, None, num_workers=1)):
            assert t.numel() == 20000 + 100 * i
        del t, sizes
