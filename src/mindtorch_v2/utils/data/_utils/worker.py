"""What a worker process does: fetch what it is asked for until nobody asks any more.

Invariant: every task is answered, with data or with an exception that can be pickled, or the process ends.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from typing import Any

import mindtorch_v2 as torch

from ...._utils_names import ExceptionWrapper
from . import messages, recycling, signal_handling


class ManagerWatchdog:
    """Tells whether the process that started this one is still there."""

    def __init__(self) -> None:
        self.manager_pid = os.getppid()
        self.manager_dead = False

    def is_alive(self) -> bool:
        """Once gone, it stays gone."""
        if not self.manager_dead:
            self.manager_dead = os.getppid() != self.manager_pid
        return not self.manager_dead


@dataclass(frozen=True)
class _RNG:
    random_generator: random.Random
    torch_generator: Any
    numpy_generator: object | None = None


@dataclass(frozen=True)
class WorkerInfo:
    """Which of the workers this process is."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: _RNG | None = None
    worker_method: str | None = "multiprocessing"


_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """In a worker, which one it is: `id`, `num_workers`, `seed`, `dataset`; None in the main process."""
    return _worker_info


@dataclass(frozen=True)
class _IterableDatasetStopIteration:
    """The dataset of a worker has ended."""

    worker_id: int


@dataclass(frozen=True)
class _ResumeIteration:
    """Begin the dataset again."""

    seed: int | None = None


_MASK = 0xFFFFFFFF


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Four words to seed NumPy with: NumPy's `SeedSequence` of worker and seed, which PyTorch writes out."""
    constant = 0x43B0D7E5

    def hashed(value: int) -> int:
        nonlocal constant
        value = (value ^ constant) & _MASK
        constant = constant * 0x931E8875 & _MASK
        value = value * constant & _MASK
        return (value ^ value >> 16) & _MASK

    def mixed(x: int, y: int) -> int:
        result = (0xCA01F9DD * x & _MASK) - (0x4973F715 * y & _MASK) & _MASK
        return (result ^ result >> 16) & _MASK

    pool = [hashed(word) for word in (worker_id, base_seed & _MASK, base_seed >> 32, 0)]
    for source in range(4):
        for target in range(4):
            if source != target:
                pool[target] = mixed(pool[target], hashed(pool[source]))
    state, last = [], 0x8B51F9DD
    for word in pool:
        word = (word ^ last) & _MASK
        last = last * 0x58F38DED & _MASK
        word = word * last & _MASK
        state.append((word ^ word >> 16) & _MASK)
    return state


def _seed_all(base_seed: int, worker_id: int) -> int:
    import numpy

    seed = base_seed + worker_id
    random.seed(seed)
    torch.manual_seed(seed)
    numpy.random.seed(_generate_state(base_seed, worker_id))
    return seed


class _Work:
    """The dataset of a worker, how batches are fetched from it, and where the pipeline's random numbers come from."""

    def __init__(self, kind: int, dataset: Any, how: tuple[Any, ...], shared_seed: int | None) -> None:
        from ..dataloader import _is_iter_pipe

        self.kind = kind
        self.dataset = dataset
        self.how = how
        self.generator = torch.Generator() if _is_iter_pipe(dataset) else None
        self.seed(shared_seed)

    def seed(self, shared_seed: int | None) -> None:
        """Give the random parts of a datapipe the numbers that all workers share."""
        if self.generator is not None:
            from ..graph_settings import apply_random_seed

            if shared_seed is None:
                raise AssertionError("shared_seed must be provided for IterDataPipe workers")
            self.generator.manual_seed(shared_seed)
            self.dataset = apply_random_seed(self.dataset, self.generator)

    def fetcher(self) -> Any:
        """A new pass over the dataset."""
        from ..dataloader import _DatasetKind

        return _DatasetKind.create_fetcher(self.kind, self.dataset, *self.how)


def _answer(end: messages.Endpoint, about: int, data: Any, worker_id: int) -> None:
    """Send a result; where it cannot be pickled, say so instead."""
    try:
        sent = messages.dumps(data)
    except Exception:
        if isinstance(data, ExceptionWrapper):
            # Its class exists only here: the text goes alone.
            kind: Any = data.exc_type
            data.exc_msg = f"{kind.__name__}: {data.exc_msg}"
            data.exc_type = RuntimeError
        else:
            data = ExceptionWrapper(where=f"in DataLoader worker process {worker_id}")
            if getattr(data.exc_type, "__module__", "") != "builtins":
                data.exc_type = RuntimeError
        sent = messages.dumps(data)
    if recycling.POOL.forgotten:
        end.put(messages.FORGET, recycling.POOL.forgotten)
        recycling.POOL.forgotten = []
    end.send(about, *sent)


def _tasks(end: messages.Endpoint) -> Any:
    """What the main process asks for, until it is gone."""
    from . import MP_STATUS_CHECK_INTERVAL

    watchdog = ManagerWatchdog()
    while watchdog.is_alive():
        if end.ready(MP_STATUS_CHECK_INTERVAL):
            try:
                about, data, descriptors = end.receive()
            except messages.Ended:
                return
            if end.hung_up():
                for fd in descriptors:
                    os.close(fd)
                return
            yield about, messages.loads(data, descriptors)


def _worker_loop(
    dataset_kind: int,
    dataset: Any,
    end: messages.Endpoint,
    auto_collation: bool,
    collate_fn: Any,
    drop_last: bool,
    base_seed: int,
    init_fn: Any,
    worker_id: int,
    num_workers: int,
    shared_seed: int | None,
) -> None:
    """The whole life of a worker."""
    global _worker_info
    try:
        signal_handling._set_worker_signal_handlers()
        recycling.POOL.start()
        torch.multiprocessing._set_thread_name("pt_data_worker")
        torch.set_num_threads(1)
        seed = _seed_all(base_seed, worker_id)
        work = _Work(dataset_kind, dataset, (auto_collation, collate_fn, drop_last), shared_seed)
        _worker_info = WorkerInfo(worker_id, num_workers, seed, work.dataset)
        failed: ExceptionWrapper | None = None
        fetcher: Any = None
        try:
            if init_fn is not None:
                init_fn(worker_id)
            fetcher = work.fetcher()
        except Exception:
            failed = ExceptionWrapper(where=f"in DataLoader worker process {worker_id}")
        ended = False
        for about, task in _tasks(end):
            if task is None:
                break
            if isinstance(task, _ResumeIteration):
                end.put(about, task)
                ended = False
                work.seed(task.seed)
                try:
                    fetcher = work.fetcher()
                except Exception:
                    failed = ExceptionWrapper(where=f"in DataLoader worker process {worker_id}")
                continue
            recycling.POOL.returned(task[1])
            if ended:
                continue
            data: Any
            if failed is not None:
                data, failed = failed, None
            else:
                try:
                    data = fetcher.fetch(task[0])
                except Exception as error:
                    if isinstance(error, StopIteration) and dataset_kind == 1:
                        data = _IterableDatasetStopIteration(worker_id)
                        ended = True
                    else:
                        data = ExceptionWrapper(where=f"in DataLoader worker process {worker_id}")
            _answer(end, about, data, worker_id)
            del data, task
        end.flush()
    except KeyboardInterrupt:
        # The main process gets it as well, and raises it.
        pass
