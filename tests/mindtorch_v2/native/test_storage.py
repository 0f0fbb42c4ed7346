"""Native storages, the allocator, and what the core asks of the native module.

Invariant: expected values come from NumPy, or from PyTorch in the tests that take the `oracle` fixture; no tensor of
the library is involved.
"""

from __future__ import annotations

import gc
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from ._raw import View, _native, binary, random, reduce, unary

# ---------------------------------------------------------------- storage and allocator


def test_storage_attributes() -> None:
    storage = _native.Storage(100)
    assert storage.nbytes == 100
    assert storage.ptr % 64 == 0
    assert storage.resizable is True
    assert storage.owner is None
    assert _native.Storage(0).ptr == 0
    with pytest.raises(AttributeError):
        storage.nbytes = 3


@pytest.mark.parametrize("nbytes", [1, 64, 65, 1024, 1025, 4096, 100_000, 2 << 20, (2 << 20) + 1, 5 << 20, 40_000_000])
def test_storage_is_aligned_and_whole(nbytes: int) -> None:
    storages = [_native.Storage(nbytes) for _ in range(3)]
    for value, storage in enumerate(storages):
        assert storage.ptr % 64 == 0
        memoryview(storage)[0] = value
        memoryview(storage)[nbytes - 1] = value
    for value, storage in enumerate(storages):
        assert memoryview(storage)[nbytes - 1] == value
        assert nbytes == 1 or memoryview(storage)[0] == value


def test_storage_rejects_nonsense() -> None:
    with pytest.raises(RuntimeError, match="negative"):
        _native.Storage(-1)
    with pytest.raises(TypeError):
        _native.Storage("3")
    with pytest.raises(TypeError):
        _native.Storage()
    with pytest.raises(RuntimeError, match="can't allocate memory: you tried to allocate 1152921504606846976 bytes"):
        _native.Storage(1 << 60)
    with pytest.raises(ValueError, match="address 0"):
        _native.Storage.wrap(0, 8, None)


def test_storage_buffer_is_writable_and_shared() -> None:
    storage = _native.Storage(16)
    array = np.frombuffer(storage, np.float32)
    array[:] = [1, 2, 3, 4]
    assert np.frombuffer(storage, np.float32).tolist() == [1, 2, 3, 4]
    assert not memoryview(storage).readonly
    assert memoryview(_native.Storage(0)).nbytes == 0


def test_storage_hands_its_memory_over() -> None:
    class Holder:
        raw: Any = None

        def _own(self, raw: Any) -> None:
            self.raw = raw

    storage = _native.Storage(8)
    address = storage.ptr
    assert storage.wrapper is None
    holder = Holder()
    alive = weakref.ref(holder)
    storage.wrapper = holder
    assert _native.object_at(id(storage)) is storage
    del storage
    assert holder.raw.ptr == address and holder.raw.nbytes == 8 and holder.raw.wrapper is None
    holder.raw.wrapper = holder
    raw, holder.raw = holder.raw, None
    del holder
    assert alive() is raw.wrapper
    del raw
    assert alive() is None


def test_storage_wrap_keeps_owner_alive() -> None:
    array = np.arange(4, dtype=np.float32)
    alive = weakref.ref(array)
    storage = _native.Storage.wrap(array.__array_interface__["data"][0], array.nbytes, array)
    assert storage.resizable is False
    assert storage.owner is array
    del array
    gc.collect()
    assert alive() is not None
    assert np.frombuffer(storage, np.float32).tolist() == [0, 1, 2, 3]
    with pytest.raises(RuntimeError, match="not resizable"):
        storage.resize(64)
    del storage
    assert alive() is None


@pytest.mark.parametrize("before", [0, 8, 1000, 5000, 3 << 20])
@pytest.mark.parametrize("after", [0, 8, 1000, 5000, 3 << 20])
def test_storage_resize_keeps_prefix(before: int, after: int) -> None:
    storage = _native.Storage(before)
    if before:
        np.frombuffer(storage, np.uint8)[:] = np.arange(before) % 251
        gc.collect()
    storage.resize(after)
    assert storage.nbytes == after
    common = min(before, after)
    if common:
        assert np.array_equal(np.frombuffer(storage, np.uint8)[:common], np.arange(common) % 251)


def test_storage_resize_refuses_under_a_buffer() -> None:
    storage = _native.Storage(8)
    view = memoryview(storage)
    assert not storage.resizable
    with pytest.raises(RuntimeError, match="^Trying to resize storage that is not resizable$"):
        storage.resize(1 << 20)
    view.release()
    storage.resize(1 << 20)


def test_freed_blocks_are_reused() -> None:
    size = 40_000_000
    first = _native.Storage(size)
    address = first.ptr
    del first
    assert _native.Storage(size).ptr == address
    small = _native.Storage(64)
    address = small.ptr
    del small
    assert _native.Storage(50).ptr == address


@pytest.mark.parametrize("mebibytes", [1.5, 2.2, 2.7, 3.0, 3.6, 4.5, 6.4, 7.5, 9.0])
def test_large_blocks_are_used_again(mebibytes: float) -> None:
    _native.empty_cache()
    size = int(mebibytes * (1 << 20))
    address = (storage := _native.Storage(size)).ptr
    del storage
    assert _native.Storage(size).ptr == address


def test_cache_is_counted_and_emptied() -> None:
    _native.empty_cache()
    assert _native.memory_stats()["cached_bytes"] == 0
    live = _native.memory_stats()["allocated_bytes"]
    storage = _native.Storage(10 << 20)
    assert _native.memory_stats()["allocated_bytes"] >= live + (10 << 20)
    del storage
    stats = _native.memory_stats()
    assert stats["allocated_bytes"] == live
    assert 10 << 20 <= stats["cached_bytes"] <= stats["cache_limit_bytes"]
    _native.empty_cache()
    assert _native.memory_stats()["cached_bytes"] == 0


def test_cache_stays_under_its_limit() -> None:
    limit = _native.memory_stats()["cache_limit_bytes"]
    size = limit // 4
    blocks = [_native.Storage(size + k * (64 << 20)) for k in range(5)]
    del blocks
    assert _native.memory_stats()["cached_bytes"] <= limit
    _native.empty_cache()


def test_storages_from_many_threads() -> None:
    errors: list[Exception] = []

    def work(seed: int) -> None:
        try:
            rng = np.random.default_rng(seed)
            kept: list[tuple[Any, int]] = []
            for _ in range(2000):
                size = int(rng.integers(1, 20_000))
                storage = _native.Storage(size)
                memoryview(storage)[size - 1] = size % 256
                kept.append((storage, size))
                if len(kept) > 20:
                    old, expected = kept.pop(int(rng.integers(20)))
                    assert memoryview(old)[expected - 1] == expected % 256
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


# ---------------------------------------------------------------- helpers of the core


def test_alloc_instance() -> None:
    class Base:
        pass

    class Derived(Base):
        def __init__(self) -> None:
            raise AssertionError("not to be called")

    assert type(_native.alloc_instance(Base, Derived)) is Derived
    with pytest.raises(TypeError):
        _native.alloc_instance(Derived, int)
    with pytest.raises(TypeError):
        _native.alloc_instance(3, Derived)


def test_thread_word_is_per_thread() -> None:
    before = _native.tls_get()
    seen: list[int] = []

    def other() -> None:
        seen.append(_native.tls_get())
        _native.tls_set(-5)
        seen.append(_native.tls_get())

    try:
        _native.tls_set(1 << 40)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert seen == [0, -5]
        assert _native.tls_get() == 1 << 40
    finally:
        _native.tls_set(before)


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    before = _native.get_num_threads()
    yield _native.set_num_threads
    _native.set_num_threads(before)


def test_results_do_not_depend_on_threads(threads: Callable[[int], None]) -> None:
    a = View(random((1031, 517)))
    results = []
    for count in (1, 2, 3):
        threads(count)
        assert _native.get_num_threads() == count
        results.append(
            (
                binary(_native.ADD, a, a, "float32", "float32").copy(),
                reduce(_native.SUM, a, (0, 1), "float32", "float32").copy(),
                reduce(_native.SUM, a, (0,), "float32", "float32").copy(),
                unary(_native.EXP, View(a.array.T), "float32", "float32").copy(),
            )
        )
    for other in results[1:]:
        assert all(np.array_equal(x, y) for x, y in zip(results[0], other))
    with pytest.raises(RuntimeError, match="positive"):
        threads(0)


def test_kernels_run_in_several_threads(threads: Callable[[int], None]) -> None:
    threads(2)
    a = View(random((300_000,)))
    expected = a.array + a.array
    errors: list[int] = []

    def work() -> None:
        for _ in range(20):
            if not np.array_equal(binary(_native.ADD, a, a, "float32", "float32"), expected):
                errors.append(1)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not errors


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_kernels_work_after_fork(threads: Callable[[int], None]) -> None:
    threads(2)
    a = View(random((300_000,)))
    binary(_native.ADD, a, a, "float32", "float32")  # the pool exists now
    child = os.fork()
    if child == 0:
        same = np.array_equal(binary(_native.ADD, a, a, "float32", "float32"), a.array + a.array)
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
