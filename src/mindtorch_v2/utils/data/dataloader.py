"""`DataLoader`: a dataset in batches, fetched here or by worker processes.

Invariant: the same seed gives the same batches in the same order as in PyTorch, whatever the workers' speed.
"""

from __future__ import annotations

import atexit
import functools
import itertools
import logging
import multiprocessing as python_multiprocessing
import os
import queue
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from pickle import PicklingError
from typing import Any, Generic, TypeVar

import mindtorch_v2 as torch

from ..._dispatch.keys import PROFILE
from ..._dispatch.state import STATE, modes
from ..._utils_names import ExceptionWrapper, cpu_count
from . import _utils
from ._utils import messages
from ._utils.results import ResultQueue, WorkerGone
from .dataset import Dataset, IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "get_worker_info", "default_collate", "default_convert"]
_T_co = TypeVar("_T_co", covariant=True)
_collate_fn_t = Callable[[list[Any]], Any]
_worker_init_fn_t = Callable[[int], None]

default_collate = _utils.collate.default_collate
default_convert = _utils.collate.default_convert
get_worker_info = _utils.worker.get_worker_info
logger = logging.getLogger(__name__)


def _pipes() -> Any:
    """The module of datapipes, if anything has loaded it; without it nothing can be one."""
    return sys.modules.get(f"{__package__}.datapipes.datapipe")


def _is_iter_pipe(dataset: Any) -> bool:
    pipes = _pipes()
    return pipes is not None and isinstance(dataset, pipes.IterDataPipe)


def _is_pipe(dataset: Any) -> bool:
    pipes = _pipes()
    return pipes is not None and isinstance(dataset, (pipes.IterDataPipe, pipes.MapDataPipe))


class _DatasetKind:
    """Whether a dataset is indexed or iterated over."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(
        kind: int, dataset: Any, auto_collation: bool, collate_fn: _collate_fn_t, drop_last: bool
    ) -> _utils.fetch._BaseDatasetFetcher:
        """What fetches batches from a dataset of that kind."""
        cls = _utils.fetch._MapDatasetFetcher if kind == _DatasetKind.Map else _utils.fetch._IterableDatasetFetcher
        return cls(dataset, auto_collation, collate_fn, drop_last)


class _InfiniteConstantSampler(Sampler[None]):
    """The index of an iterable dataset: there is none."""

    def __iter__(self) -> Any:
        return itertools.repeat(None)


def _sharding_worker_init_fn(worker_init_fn: Any, world_size: int, rank_id: int, worker_id: int) -> None:
    """Tell a datapipe which part of the work is this worker's."""
    from .graph_settings import apply_sharding

    info = get_worker_info()
    if info is None:
        raise AssertionError("Worker info is None in sharding worker init function")
    apply_sharding(info.dataset, info.num_workers * world_size, worker_id * world_size + rank_id)
    if worker_init_fn is not None:
        worker_init_fn(worker_id)


def _draw_seed(generator: Any) -> int:
    return int(torch.empty((), dtype=torch.int64).random_(generator=generator).item())


class DataLoader(Generic[_T_co]):
    """Batches of a dataset, in the order of a sampler; with `num_workers` they are fetched ahead by processes."""

    dataset: Dataset[_T_co]
    batch_size: int | None
    num_workers: int
    pin_memory: bool
    drop_last: bool
    timeout: float
    sampler: Any
    pin_memory_device: str
    prefetch_factor: int | None
    _iterator: Any
    __initialized = False

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: _collate_fn_t | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: _worker_init_fn_t | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        self.prefetch_factor = _checked_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset = dataset
        self.num_workers = num_workers
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        if _is_pipe(dataset):
            pipes = _pipes()
            iterable = isinstance(dataset, pipes.IterDataPipe)
            wrapper = pipes._IterDataPipeSerializationWrapper if iterable else pipes._MapDataPipeSerializationWrapper
            self.dataset = wrapper(dataset)
        if isinstance(dataset, IterableDataset):
            self._dataset_kind = _DatasetKind.Iterable
            dataset = _checked_iterable(dataset, shuffle, sampler, batch_sampler)
        else:
            shuffle = bool(shuffle)
            self._dataset_kind = _DatasetKind.Map
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            if self._dataset_kind == _DatasetKind.Iterable:
                sampler = _InfiniteConstantSampler()
            else:
                sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        self.collate_fn: Any = collate_fn
        if collate_fn is None:
            self.collate_fn = default_collate if self._auto_collation else default_convert
        self.persistent_workers = persistent_workers
        self.__initialized = True
        self._IterableDataset_len_called: int | None = None
        self._iterator = None
        self.check_worker_number_rationality()

    def _get_iterator(self) -> _BaseDataLoaderIter:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality()
        return _MultiProcessingDataLoaderIter(self)

    @property
    def multiprocessing_context(self) -> Any:
        """How workers are started; None leaves it to Python."""
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            if self.num_workers <= 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                    f"num_workers={self.num_workers}"
                )
            if isinstance(context, str):
                methods = python_multiprocessing.get_all_start_methods()
                if context not in methods:
                    raise ValueError(
                        "multiprocessing_context option should specify a valid start method in "
                        f"{methods!r}, but got multiprocessing_context={context!r}"
                    )
                context = python_multiprocessing.get_context(context)
            if not isinstance(context, python_multiprocessing.context.BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string specifying the "
                    f"start method, but got multiprocessing_context={context}"
                )
        self.__multiprocessing_context = context

    def __setattr__(self, attr: str, val: Any) -> None:
        fixed = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
        if self.__initialized and attr in fixed:
            raise ValueError(f"{attr} attribute should not be set after {self.__class__.__name__} is initialized")
        super().__setattr__(attr, val)

    def __iter__(self) -> _BaseDataLoaderIter:
        if not self.persistent_workers or self.num_workers == 0:
            return self._get_iterator()
        if self._iterator is None:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        iterator: _BaseDataLoaderIter = self._iterator
        return iterator

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __len__(self) -> int:
        if self._dataset_kind != _DatasetKind.Iterable:
            return len(self._index_sampler)
        # What a dataset says of itself is compared with what it gives.
        sized: Any = self.dataset
        length = self._IterableDataset_len_called = len(sized)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Warn of more workers than there are CPUs."""
        most = cpu_count()
        if not self.num_workers or (most is not None and self.num_workers <= most):
            return
        if most is None:
            advice = "DataLoader is not able to compute a suggested max number of worker in current system."
        else:
            note = "" if hasattr(os, "sched_getaffinity") else " (`cpuset` is not taken into account)"
            advice = (
                f"Our suggested max number of worker in current system is {most}{note}, which is smaller than what "
                "this DataLoader is going to create."
            )
        warnings.warn(
            f"This DataLoader will create {self.num_workers} worker processes in total. {advice} Please be aware that "
            "excessive worker creation might get DataLoader running slow or even freeze, lower the worker number to "
            "avoid potential slowness/freeze if necessary.",
            stacklevel=2,
        )


def _checked_workers(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool
) -> int | None:
    """The options about workers; how many batches each of them fetches ahead."""
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable "
            "multiprocessing, otherwise set prefetch_factor to None."
        )
    if num_workers > 0 and prefetch_factor is None:
        prefetch_factor = 2
    elif prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")
    return prefetch_factor


def _checked_iterable(dataset: Any, shuffle: Any, sampler: Any, batch_sampler: Any) -> Any:
    """An iterable dataset has its own order; a datapipe may be told to shuffle."""
    start = "DataLoader with IterableDataset: expected unspecified"
    if _is_iter_pipe(dataset):
        if shuffle is not None:
            from .graph_settings import apply_shuffle_settings

            dataset = apply_shuffle_settings(dataset, shuffle=shuffle)
    elif shuffle not in {False, None}:
        raise ValueError(f"{start} shuffle option, but got shuffle={shuffle}")
    if sampler is not None:
        raise ValueError(f"{start} sampler option, but got sampler={sampler}")
    if batch_sampler is not None:
        raise ValueError(f"{start} batch_sampler option, but got batch_sampler={batch_sampler}")
    return dataset


class _BaseDataLoaderIter:
    """One pass over a loader's batches."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._dataset: Any = loader.dataset
        self._shared_seed: int | None = None
        self._share_seed(loader)
        self._dataset_kind = loader._dataset_kind
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._world_size, self._rank = 1, 0
        if loader.pin_memory and loader.pin_memory_device:
            warnings.warn(
                "pin_memory_device is deprecated, the current accelerator will be used as the device,"
                f"ignore pin_memory_device='{loader.pin_memory_device}'.",
                stacklevel=2,
            )
        self._pin_memory = bool(loader.pin_memory and torch.accelerator.is_available())
        if loader.pin_memory and not self._pin_memory:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't "
                "be used.",
                stacklevel=2,
            )
        self._pin_memory_device = torch.accelerator.current_accelerator().type if self._pin_memory else None
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        self._sampler_iter = iter(self._index_sampler)
        self._base_seed = _draw_seed(loader.generator)
        self._persistent_workers = loader.persistent_workers
        self._num_yielded = 0
        self._profile_name = f"enumerate(DataLoader)#{self.__class__.__name__}.__next__"

    def _share_seed(self, loader: DataLoader[Any]) -> None:
        """Seed the random parts of a datapipe, alike in all processes."""
        if _is_iter_pipe(self._dataset):
            from .graph_settings import apply_random_seed

            self._shared_seed = _draw_seed(loader.generator)
            generator = torch.Generator()
            generator.manual_seed(self._shared_seed)
            self._dataset = apply_random_seed(self._dataset, generator)

    def __iter__(self) -> _BaseDataLoaderIter:
        return self

    def _reset(self, loader: DataLoader[Any], first_iter: bool = False) -> None:
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._share_seed(loader)

    def _next_index(self) -> Any:
        return next(self._sampler_iter)

    def _next_data(self) -> Any:
        raise NotImplementedError

    def _profiled_data(self) -> Any:
        """The next batch, as a stretch of this thread's profile."""
        with torch.autograd.profiler.record_function(self._profile_name):
            return self._next_data()

    def __next__(self) -> Any:
        data = self._profiled_data() if STATE.active and modes() & PROFILE else self._next_data()
        self._num_yielded += 1
        told = self._IterableDataset_len_called
        if self._dataset_kind == _DatasetKind.Iterable and told is not None and self._num_yielded > told:
            text = (
                f"Length of IterableDataset {self._dataset} was reported to be {told}(when accessing "
                f"len(dataloader)), but {self._num_yielded} samples have been fetched. "
            )
            if self._num_workers > 0:
                text += (
                    "For multiprocessing data-loading, this could be caused by not properly configuring the "
                    "IterableDataset replica at each worker. Please see "
                    "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for examples."
                )
            warnings.warn(text, stacklevel=2)
        return data

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError("{} cannot be pickled", self.__class__.__name__)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Batches fetched in this process."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        if self._timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        if self._num_workers != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires num_workers == 0")
        if _is_pipe(self._dataset):
            from .graph_settings import apply_sharding

            apply_sharding(self._dataset, self._world_size, self._rank)
        self._dataset_fetcher = _DatasetKind.create_fetcher(
            self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn, self._drop_last
        )

    def _next_data(self) -> Any:
        data = self._dataset_fetcher.fetch(self._next_index())
        if self._pin_memory:
            data = _utils.pin_memory.pin_memory(data, self._pin_memory_device)
        return data


# What has not been shut down when Python ends.
_persistent_workers_atexit: weakref.WeakSet[_MultiProcessingDataLoaderIter] = weakref.WeakSet()
_PICKLE_ADVICE = (
    "Got pickle error when attempting to start a worker Process. This might be because the worker Process arguments "
    "are not picklable. Python 3.14+ changed the multiprocessing start method in non-Mac POSIX platforms to "
    "'forkserver', which requires the worker Process arguments to be picklable. You can also try "
    "multiprocessing.set_start_method('fork')."
)


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Batches fetched by worker processes, each of which has a socket for its tasks and results.

    Tasks are numbered and given out in turn, at most `prefetch_factor` per worker ahead of what was handed out here.
    `_task_info` holds the worker of every task that is under way, and its result where that came early.
    """

    _shutdown = True

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        self._prefetch_factor = loader.prefetch_factor or 0
        self._in_order = loader.in_order
        if self._num_workers <= 0:
            raise AssertionError("num_workers must be greater than 0 for MultiProcessingDataLoaderIter")
        if self._prefetch_factor <= 0:
            raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
        self._worker_init_fn: Any = loader.worker_init_fn
        if _is_pipe(self._dataset):
            self._worker_init_fn = functools.partial(
                _sharding_worker_init_fn, self._worker_init_fn, self._world_size, self._rank
            )
        self._pid = os.getpid()
        self._shutdown = False
        self._workers_status = [True] * self._num_workers
        self._workers: list[Any] = []
        self._index_queues: list[messages.Endpoint] = []
        self._worker_pids_set = False
        self._pin_memory_thread: threading.Thread | None = None
        try:
            self._start(python_multiprocessing if (c := loader.multiprocessing_context) is None else c)
            self._reset(loader, first_iter=True)
        except BaseException:
            self._shutdown_workers()
            raise

    def _start(self, context: Any) -> None:
        for i in range(self._num_workers):
            here, there = messages.Endpoint.pair()
            how = (self._auto_collation, self._collate_fn, self._drop_last, self._base_seed, self._worker_init_fn)
            worker = context.Process(
                target=_utils.worker._worker_loop,
                args=(self._dataset_kind, self._dataset, there, *how, i, self._num_workers, self._shared_seed),
            )
            worker.daemon = True
            self._index_queues.append(here)
            try:
                worker.start()
            except (TypeError, AttributeError, PicklingError):
                warnings.warn(_PICKLE_ADVICE, stacklevel=4)
                raise
            finally:
                there.close()
            self._workers.append(worker)
        self._worker_result_queue = ResultQueue(self._index_queues, self._workers, self._is_expected)
        _utils.signal_handling._set_worker_pids(id(self), tuple(w.pid for w in self._workers))
        self._worker_pids_set = True
        self._data_queue: Any = self._worker_result_queue
        if self._pin_memory:
            self._pin_memory_thread_done_event = threading.Event()
            self._data_queue = queue.Queue()
            self._pin_memory_thread = threading.Thread(
                target=_utils.pin_memory._pin_memory_loop,
                args=(
                    self._worker_result_queue,
                    self._data_queue,
                    torch.accelerator.current_device_index(),
                    self._pin_memory_thread_done_event,
                    self._pin_memory_device,
                ),
                daemon=True,
            )
            self._pin_memory_thread.start()
        if self._persistent_workers:
            _persistent_workers_atexit.add(self)

    def _is_expected(self, worker_id: int) -> bool:
        """Whether a worker should be running: it has not been told to end."""
        return not self._shutdown and (self._persistent_workers or self._workers_status[worker_id])

    def _reset(self, loader: DataLoader[Any], first_iter: bool = False) -> None:
        super()._reset(loader, first_iter)
        self._send_idx = 0
        self._rcvd_idx = 0
        self._task_info: dict[int, tuple[Any, ...]] = {}
        self._tasks_outstanding = 0
        self._workers_status = [True] * self._num_workers
        self._workers_num_tasks = [0] * self._num_workers
        self._worker_queue_idx_cycle = itertools.cycle(range(self._num_workers))
        if not first_iter:
            # What workers still send of the pass before is dropped.
            for end in self._index_queues:
                end.put(messages.CONTROL, _utils.worker._ResumeIteration(self._shared_seed))
            resumed = 0
            while resumed < self._num_workers:
                _, data = self._get_data()
                resumed += isinstance(data, _utils.worker._ResumeIteration)
        for _ in range(self._prefetch_factor * self._num_workers):
            self._try_put_index()

    # -- waiting --------------------------------------------------------------------------------------------------
    def _try_get_data(self, timeout: float = _utils.MP_STATUS_CHECK_INTERVAL) -> tuple[bool, Any]:
        """Whether something came in time, and what; a worker that is gone is an error."""
        try:
            data = self._data_queue.get(timeout=timeout)
            if isinstance(data, Exception):
                raise data
            return True, data
        except (queue.Empty, WorkerGone) as error:
            gone = [i for i, w in enumerate(self._workers) if self._is_expected(i) and not w.is_alive()]
            if gone:
                failed = [self._workers[i] for i in gone]
                for i in gone:
                    self._mark_worker_as_unavailable(i)
                cause = next((e for w in failed if (e := _utils.signal_handling.failure(w.pid, w.exitcode))), error)
                numbers = ", ".join(str(w.pid) for w in failed)
                raise RuntimeError(f"DataLoader worker (pid(s) {numbers}) exited unexpectedly") from cause
            return False, None
        except OSError as error:
            if "too many open files" in str(error).lower():
                raise RuntimeError(
                    "Too many open files. Communication with the workers is no longer possible. Please increase the "
                    "limit using `ulimit -n` in the shell or change the sharing strategy by calling "
                    "`torch.multiprocessing.set_sharing_strategy('file_system')` at the beginning of your code"
                ) from None
            raise

    def _get_data(self) -> Any:
        if self._timeout > 0:
            success, data = self._try_get_data(self._timeout)
            if success:
                return data
            raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
        while self._pin_memory_thread is None or self._pin_memory_thread.is_alive():
            success, data = self._try_get_data()
            if success:
                return data
        raise RuntimeError("Pin memory thread exited unexpectedly")

    def _next_data(self) -> Any:
        while True:
            # Tasks of workers whose dataset has ended were not answered.
            while self._rcvd_idx < self._send_idx:
                info = self._task_info.get(self._rcvd_idx)
                if info is not None and (len(info) == 2 or self._workers_status[info[0]]):
                    break
                self._task_info.pop(self._rcvd_idx, None)
                self._rcvd_idx += 1
            else:
                if not self._persistent_workers:
                    self._shutdown_workers()
                raise StopIteration
            if len(self._task_info[self._rcvd_idx]) == 2:
                worker_id, data = self._task_info.pop(self._rcvd_idx)
                self._rcvd_idx += 1
                return self._process_data(data, worker_id)
            if self._shutdown or self._tasks_outstanding <= 0:
                raise AssertionError("Invalid iterator state: shutdown or no outstanding tasks when fetching next data")
            idx, data = self._get_data()
            self._tasks_outstanding -= 1
            if isinstance(data, _utils.worker._IterableDatasetStopIteration):
                if self._persistent_workers:
                    self._workers_status[data.worker_id] = False
                else:
                    self._mark_worker_as_unavailable(data.worker_id)
                self._try_put_index()
                continue
            if idx != self._rcvd_idx and self._in_order:
                self._task_info[idx] += (data,)
                continue
            self._rcvd_idx += idx == self._rcvd_idx
            return self._process_data(data, self._task_info.pop(idx)[0])

    # -- asking ---------------------------------------------------------------------------------------------------
    def _try_put_index(self) -> None:
        most = self._prefetch_factor * self._num_workers
        if self._tasks_outstanding >= most:
            raise AssertionError("Number of outstanding tasks exceeded maximum allowed tasks")
        try:
            index = self._next_index()
        except StopIteration:
            return
        for _ in range(self._num_workers):
            worker_id = next(self._worker_queue_idx_cycle)
            if self._workers_status[worker_id] and (
                self._in_order or self._workers_num_tasks[worker_id] < most // sum(self._workers_status)
            ):
                break
        else:
            return
        end = self._index_queues[worker_id]
        end.put(self._send_idx, (index, end.table.take_returns()))
        self._task_info[self._send_idx] = (worker_id,)
        self._workers_num_tasks[worker_id] += 1
        self._tasks_outstanding += 1
        self._send_idx += 1

    def _process_data(self, data: Any, worker_idx: int) -> Any:
        self._workers_num_tasks[worker_idx] -= 1
        self._try_put_index()
        if isinstance(data, ExceptionWrapper):
            data.reraise()
        return data

    # -- ending ---------------------------------------------------------------------------------------------------
    def _mark_worker_as_unavailable(self, worker_id: int, shutdown: bool = False) -> None:
        """Tell a worker to end."""
        self._index_queues[worker_id].put(messages.CONTROL, None)
        self._workers_status[worker_id] = False

    def _shutdown_workers(self) -> None:
        """End the workers and give everything back; a worker that does not end by itself is made to."""
        if self._shutdown or self._pid != os.getpid():
            return
        self._shutdown = True
        if _utils is None or _utils.python_exit_status is not False:
            # Python ends: it ends its processes itself, and what they miss is only their end of a socket.
            for end in self._index_queues:
                end.close()
            return
        try:
            if self._pin_memory_thread is not None:
                self._pin_memory_thread_done_event.set()
            for end in self._index_queues:
                # Seen at once: by workers, and by a thread that waits for them.
                end.hang_up()
            if self._pin_memory_thread is not None:
                self._pin_memory_thread.join()
            for worker in self._workers:
                worker.join(timeout=_utils.MP_STATUS_CHECK_INTERVAL)
        finally:
            if self._worker_pids_set:
                _utils.signal_handling._remove_worker_pids(id(self))
                self._worker_pids_set = False
            for worker in self._workers:
                if worker.is_alive():
                    worker.terminate()
                    worker.join(timeout=_utils.MP_STATUS_CHECK_INTERVAL)
                if worker.is_alive():
                    worker.kill()
                    worker.join()
            for end in self._index_queues:
                end.close()

    @staticmethod
    def _clean_up_persistent_workers_atexit() -> None:
        for iterator in tuple(_persistent_workers_atexit):
            iterator._shutdown_workers()

    def __del__(self) -> None:
        self._shutdown_workers()


# Before Python's own end of processes, and before the flag that forbids waiting for them.
atexit.register(_MultiProcessingDataLoaderIter._clean_up_persistent_workers_atexit)
