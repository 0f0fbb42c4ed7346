"""The native module by itself: storage, allocator, copies, pointwise operators, reductions.

Invariant: expected values come from NumPy, or from PyTorch in the tests that take the `oracle` fixture; no tensor of
the library is involved.
"""

from __future__ import annotations

import ast
import ctypes
import gc
import itertools
import math
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from .._subject import IS_ORACLE

if IS_ORACLE:
    pytest.skip("tests of the native module have no other subject", allow_module_level=True)

import mindtorch_v2

_native: Any = mindtorch_v2._native


def _operators(first: int) -> list[str]:
    """The kernels of one kind, by the hundred their numbers begin with."""
    numbers = {n: getattr(_native, n) for n in dir(_native) if n.isupper()}
    return sorted(n for n, v in numbers.items() if first <= v < first + 100)


UNARY, BINARY, TERNARY = _operators(0), _operators(100), _operators(200)

CODES: dict[str, int] = {
    "uint8": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float16": 5, "float32": 6, "float64": 7,
    "complex64": 9, "complex128": 10, "bool": 11, "bfloat16": 12, "float8_e5m2": 13, "float8_e4m3fn": 14,
    "uint16": 15, "uint32": 16, "uint64": 17,
}  # fmt: skip
SMALL_FLOATS = {"bfloat16": ml_dtypes.bfloat16, "float8_e5m2": ml_dtypes.float8_e5m2,
                "float8_e4m3fn": ml_dtypes.float8_e4m3fn}  # fmt: skip
F32 = CODES["float32"]


def numpy_dtype(name: str) -> Any:
    return np.dtype(SMALL_FLOATS.get(name, name))


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def storage_of(array: Any) -> Any:
    """A copy of the memory of an array that owns it, whatever the order of its dimensions."""
    storage = _native.Storage(array.nbytes)
    ctypes.memmove(storage.ptr, array.ctypes.data, array.nbytes)
    return storage


def array_of(storage: Any, dtype: Any, shape: tuple[int, ...]) -> Any:
    return np.frombuffer(storage, np.uint8).view(dtype)[: math.prod(shape)].reshape(shape)


class View:
    """A NumPy array and the same elements in a storage, through the same strides."""

    def __init__(self, array: Any, name: str | None = None) -> None:
        base = array if array.base is None else array.base
        while base.base is not None:
            base = base.base
        self.array = array
        self.code = CODES[name or array.dtype.name]
        self.storage = storage_of(base)
        item = array.dtype.itemsize
        self.offset = (array.__array_interface__["data"][0] - base.__array_interface__["data"][0]) // item
        self.strides = tuple(step // item for step in array.strides)

    def args(self, shape: tuple[int, ...] | None = None) -> tuple[Any, ...]:
        strides = self.strides
        if shape is not None:
            missing = len(shape) - len(strides)
            strides = (0,) * missing + strides
            sizes = (1,) * missing + self.array.shape
            strides = tuple(0 if size == 1 else step for size, step in zip(sizes, strides))
        return self.storage, self.offset, strides, self.code


NUMBER = (0, (), 0)


def operand(value: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    return value.args(shape) if isinstance(value, View) else (value, *NUMBER)


def fresh(shape: tuple[int, ...], name: str) -> tuple[Any, ...]:
    return None, 0, contiguous(shape), CODES[name]


def unary(op: int, a: View, out: str, compute: str) -> Any:
    shape = a.array.shape
    result = _native.unary(op, *a.args(), *fresh(shape, out), shape, CODES[compute])
    return array_of(result, numpy_dtype(out), shape)


def binary(op: int, a: Any, b: Any, out: str, compute: str, alpha: Any = 1) -> Any:
    shape = np.broadcast_shapes(*(v.array.shape for v in (a, b) if isinstance(v, View)))
    result = _native.binary(
        op, *operand(a, shape), *operand(b, shape), *fresh(shape, out), shape, CODES[compute], alpha
    )
    return array_of(result, numpy_dtype(out), shape)


def ternary(op: int, a: Any, b: Any, c: Any, out: str, compute: str, alpha: Any = 1) -> Any:
    shape = np.broadcast_shapes(*(v.array.shape for v in (a, b, c) if isinstance(v, View)))
    operands = (*operand(a, shape), *operand(b, shape), *operand(c, shape))
    result = _native.ternary(op, *operands, *fresh(shape, out), shape, CODES[compute], alpha)
    return array_of(result, numpy_dtype(out), shape)


def reduce(op: int, a: View, dims: tuple[int, ...], out: str, compute: str) -> Any:
    """The result with reduced dimensions of size one."""
    shape = a.array.shape
    kept = tuple(1 if d in dims else size for d, size in enumerate(shape))
    strides = tuple(0 if d in dims else step for d, step in enumerate(contiguous(kept)))
    target = (None, 0, strides, CODES[out])
    result = _native.reduce(op, *a.args(), *target, shape, CODES[compute], math.prod(kept))
    return array_of(result, numpy_dtype(out), kept)


def random(shape: tuple[int, ...], name: str = "float32", seed: int = 0) -> Any:
    values = np.asarray(np.random.default_rng(seed).standard_normal(shape) * 3)
    if name.startswith("complex"):
        return (values + 1j * random(shape, "float64", seed + 1)).astype(name)
    if name.startswith("u"):
        values = np.abs(values)
    return values.astype(numpy_dtype(name))


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
    with pytest.raises(BufferError):
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


# ---------------------------------------------------------------- layouts


def layouts(shape: tuple[int, ...], name: str = "float32", seed: int = 0) -> Iterator[Any]:
    """The same values in memory in different ways."""
    values = random(shape, name, seed)
    yield values
    if not shape:
        return
    for order in itertools.permutations(range(len(shape))):
        inverse = np.argsort(order)
        yield np.ascontiguousarray(values.transpose(order)).transpose(inverse)
    wide = np.zeros(tuple(2 * size for size in shape), values.dtype)
    view = wide[tuple(slice(0, None, 2) for _ in shape)]
    view[...] = values
    yield view


SHAPES = [(), (1,), (5,), (4, 4), (3, 1, 5), (33, 70), (2, 3, 4), (100, 3), (3, 100), (1, 1), (5, 7, 35)]


@pytest.mark.parametrize("shape", SHAPES)
def test_binary_over_layouts(shape: tuple[int, ...]) -> None:
    for left, right in itertools.product(layouts(shape), layouts(shape, seed=7)):
        result = binary(_native.SUB, View(left), View(right), "float32", "float32")
        assert np.array_equal(result, left - right)


@pytest.mark.parametrize("shape", SHAPES)
def test_copy_over_layouts(shape: tuple[int, ...]) -> None:
    for source, target in itertools.product(layouts(shape), layouts(shape, "int16", seed=7)):
        dst, src = View(target), View(source)
        _native.copy(*dst.args(), *src.args(), shape)
        again = View(np.zeros(shape, np.float32))
        _native.copy(*again.args(), *dst.args(), shape)
        assert np.array_equal(array_of(again.storage, np.float32, shape), source.astype(np.int16))


@pytest.mark.parametrize(
    ("left", "right"),
    [((4, 4), (4,)), ((4, 4), (4, 1)), ((4, 1), (1, 4)), ((300, 40), (40,)), ((300, 40), (300, 1)), ((5, 1, 7), (6, 1)),
     ((2, 3), ()), ((), (3, 2)), ((1000, 300), (300,)), ((1000, 300), (1000, 1)), ((3, 5), (1, 1)), ((0, 4), (4,))],
)  # fmt: skip
def test_broadcast(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = View(random(left)), View(random(right, seed=1))
    for op, function in ((_native.ADD, np.add), (_native.SUB, np.subtract), (_native.FMAX, np.fmax)):
        assert np.array_equal(binary(op, a, b, "float32", "float32"), function(a.array, b.array))
        assert np.array_equal(binary(op, b, a, "float32", "float32"), function(b.array, a.array))


def test_output_of_another_layout_and_dtype() -> None:
    a, b = View(random((40, 50))), View(random((40, 50), seed=1))
    out = _native.Storage(8 * 40 * 50 * 2)
    result = _native.binary(_native.MUL, *a.args(), *b.args(), out, 3, (1, 40), CODES["float64"], (40, 50), F32, 1)
    assert result is out
    got = np.frombuffer(out, np.float64)[3 : 3 + 2000].reshape(50, 40).T
    assert np.array_equal(got, (a.array * b.array).astype(np.float64))


@pytest.mark.parametrize("shape", [(7,), (33, 70), (200_000,)])
def test_output_may_be_an_input(shape: tuple[int, ...]) -> None:
    for first in layouts(shape):
        a, b = View(first.copy(order="K") if first.base is None else first), View(random(shape, seed=1))
        expected = first - b.array
        _native.binary(_native.SUB, *a.args(), *b.args(), *a.args(), shape, F32, 1)
        got = View(np.zeros(shape, np.float32))
        _native.copy(*got.args(), *a.args(), shape)
        assert np.array_equal(array_of(got.storage, np.float32, shape), expected)
    a = View(random(shape))
    expected = a.array * a.array
    _native.unary(_native.SQUARE, *a.args(), *a.args(), shape, F32)
    assert np.array_equal(array_of(a.storage, np.float32, shape), expected)
    _native.copy(*a.args(), *a.args(), shape)
    assert np.array_equal(array_of(a.storage, np.float32, shape), expected)


def random_view(rng: Any, shape: tuple[int, ...], name: str) -> Any:
    """Values of `shape` behind some layout: permuted, with steps and an offset, reversed, or expanded."""
    order = rng.permutation(len(shape))
    steps = [int(rng.choice([1, 1, 1, 2, 3])) for _ in shape]
    starts = [int(rng.integers(3)) if rng.random() < 0.3 else 0 for _ in shape]
    expanded = [rng.random() < 0.15 for _ in shape]
    sizes = [1 if wide else size for size, wide in zip(shape, expanded)]
    base_shape = tuple(starts[d] + sizes[d] * steps[d] for d in order)
    base = random(base_shape, name, int(rng.integers(1000)))
    view = base.transpose(np.argsort(order)) if shape else base
    view = view[tuple(slice(start, start + size * step, step) for start, size, step in zip(starts, sizes, steps))]
    return np.broadcast_to(view, shape)


@pytest.mark.parametrize("seed", range(40))
def test_random_layouts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = ["float32", "float32", "float64", "int64", "int32", "uint8", "int16", "complex64", "float16"]
    odds = [0.02, 0.1, 0.13, 0.2, 0.15, 0.1, 0.15, 0.1, 0.05]
    for _ in range(8):
        ndim = int(rng.integers(0, 5))
        shape = tuple(int(size) for size in rng.choice([0, 1, 2, 3, 4, 5, 17, 33, 70], size=ndim, p=odds))
        name, other = str(rng.choice(names)), str(rng.choice(names))
        compute = np.promote_types(name, other).name
        x, y = random_view(rng, shape, name), random_view(rng, shape, other)
        a, b = View(x), View(y)
        wide_x, wide_y = x.astype(compute), y.astype(compute)
        assert np.array_equal(binary(_native.SUB, a, b, compute, compute), wide_x - wide_y), (shape, name, other)
        assert np.array_equal(binary(_native.NE, a, b, "bool", compute), wide_x != wide_y)
        assert np.array_equal(unary(_native.POSITIVE, a, name, name), x)
        mask = np.asarray(random_view(rng, shape, "float32") > 0)
        chosen = ternary(_native.WHERE, View(mask), a, b, compute, compute)
        assert np.array_equal(chosen, np.where(mask, wide_x, wide_y))
        target = View(np.zeros(shape))
        _native.copy(*target.args(), *View(x.real).args(), shape)
        assert np.array_equal(array_of(target.storage, np.float64, shape), x.real.astype(np.float64))
        dims = tuple(d for d in range(len(shape)) if rng.random() < 0.5)
        if name in ("int64", "int32", "uint8", "int16", "float64"):
            total = "float64" if name == "float64" else "int64"
            expected = x.sum(axis=dims, keepdims=True, dtype=total)
            assert np.allclose(reduce(_native.SUM, a, dims, total, total), expected, rtol=1e-12, atol=1e-9)
        if name != "complex64" and x.size:
            assert np.array_equal(reduce(_native.AMAX, a, dims, name, name), x.max(axis=dims, keepdims=True))
            assert np.array_equal(reduce(_native.AMIN, a, dims, name, name), x.min(axis=dims, keepdims=True))


def test_zero_size() -> None:
    a = View(np.zeros((0, 3), np.float32))
    assert unary(_native.EXP, a, "float32", "float32").shape == (0, 3)
    assert binary(_native.ADD, a, 1.0, "float32", "float32").shape == (0, 3)
    assert ternary(_native.ADDCMUL, a, a, a, "float32", "float32").shape == (0, 3)
    _native.fill(*a.args(), (0, 3), 1.0)
    _native.copy(*a.args(), *a.args(), (0, 3))
    assert reduce(_native.SUM, a, (0,), "float32", "float32").tolist() == [[0, 0, 0]]
    assert reduce(_native.PROD, a, (0,), "float32", "float32").tolist() == [[1, 1, 1]]
    assert reduce(_native.ALL, a, (0, 1), "bool", "float32").tolist() == [[True]]
    assert reduce(_native.ANY, a, (0, 1), "bool", "float32").tolist() == [[False]]
    assert math.isnan(reduce(_native.MEAN, a, (0, 1), "float32", "float32")[0, 0])
    assert reduce(_native.AMAX, a, (1,), "float32", "float32").shape == (0, 1)
    with pytest.raises(IndexError):
        reduce(_native.AMAX, a, (0,), "float32", "float32")


# ---------------------------------------------------------------- bad calls


def test_operands_are_checked_against_the_storage() -> None:
    a = _native.Storage(64)
    good = (a, 0, (4, 1), F32)
    for bad in ((a, 1, (4, 1), F32), (a, 0, (5, 1), F32), (a, -1, (4, 1), F32), (a, 0, (4, -1), F32),
                (a, 0, (1 << 62, 1), F32), (a, 0, (4, 1), CODES["float64"])):  # fmt: skip
        with pytest.raises(RuntimeError, match="reaches elements"):
            _native.binary(_native.ADD, *bad, *good, *fresh((4, 4), "float32"), (4, 4), F32, 1)
        with pytest.raises(RuntimeError, match="reaches elements"):
            _native.unary(_native.EXP, *good, *bad, (4, 4), F32)
        with pytest.raises(RuntimeError, match="reaches elements"):
            _native.copy(*good, *bad, (4, 4))
        with pytest.raises(RuntimeError, match="reaches elements"):
            _native.fill(*bad, (4, 4), 1.0)
        with pytest.raises(RuntimeError, match="reaches elements"):
            _native.reduce(_native.SUM, *bad, None, 0, (0, 0), F32, (4, 4), F32, 1)
    with pytest.raises(RuntimeError, match="reaches elements"):
        _native.reduce(_native.SUM, *good, a, 16, (0, 0), F32, (4, 4), F32)


def test_wrong_arguments_are_python_errors() -> None:
    a = _native.Storage(64)
    good = (a, 0, (4, 1), F32)
    out = fresh((4, 4), "float32")
    calls: list[tuple[type[Exception], Callable[..., Any], tuple[Any, ...]]] = [
        (TypeError, _native.binary, (_native.ADD,)),
        (ValueError, _native.binary, (_native.EXP, *good, *good, *out, (4, 4), F32, 1)),
        (ValueError, _native.unary, (_native.ADD, *good, *out, (4, 4), F32)),
        (ValueError, _native.unary, (_native.EXP, *good, *out, (4, 4), 8)),
        (ValueError, _native.unary, (_native.EXP, *good, *out, (4, 4), 99)),
        (ValueError, _native.unary, (_native.EXP, a, 0, (1,), F32, *out, (4, 4), F32)),
        (TypeError, _native.unary, (_native.EXP, a, 0, [4, 1], F32, *out, (4, 4), F32)),
        (TypeError, _native.unary, (_native.EXP, "a", 0, (4, 1), F32, *out, (4, 4), F32)),
        (TypeError, _native.unary, (_native.EXP, *good, *out, (4, 4.5), F32)),
        (RuntimeError, _native.unary, (_native.EXP, *good, *out, (4, -4), F32)),
        (RuntimeError, _native.unary, (_native.EXP, *good, *out, (1 << 40, 1 << 40), F32)),
        (ValueError, _native.binary, (_native.MUL, *good, *good, *out, (4, 4), F32, 2)),
        (ValueError, _native.ternary, (_native.CLAMP, *good, None, *NUMBER, None, *NUMBER, *out, (4, 4), F32, 1)),
        (TypeError, _native.reduce, (_native.SUM, *good, *out, (4, 4), F32)),
        (TypeError, _native.copy, (*good, 3, 0, (4, 1), F32, (4, 4))),
        (RuntimeError, _native.unary, (_native.EXP, a, 0, (0,) * 65, F32, *out, (1,) * 65, F32)),
    ]
    for error, function, args in calls:
        with pytest.raises(error):
            function(*args)


def test_missing_combinations_name_operator_and_dtype() -> None:
    a = View(random((3,), "complex64"))
    with pytest.raises(NotImplementedError, match=r"\"floor\" not implemented for 'ComplexFloat'"):
        unary(_native.FLOOR, a, "complex64", "complex64")
    with pytest.raises(NotImplementedError, match="'Float'"):
        binary(_native.BITWISE_AND, View(random((3,))), View(random((3,))), "float32", "float32")


@pytest.mark.parametrize("op", ["FLOOR_DIV", "TRUNC_DIV", "REMAINDER", "FMOD"])
@pytest.mark.parametrize("name", ["uint8", "int8", "int32", "int64", "uint64"])
def test_integer_division_by_zero(op: str, name: str) -> None:
    ones, zeros = View(np.ones(3, name)), View(np.array([1, 0, 1], name))
    with pytest.raises(RuntimeError, match="^ZeroDivisionError$"):
        binary(getattr(_native, op), ones, zeros, name, name)
    with pytest.raises(RuntimeError, match="^ZeroDivisionError$"):
        binary(getattr(_native, op), ones, 0, name, name)


def test_stub_lists_what_the_module_has() -> None:
    package = Path(str(mindtorch_v2.__file__)).parent
    tree = ast.parse((package / "_native.pyi").read_text())
    listed = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    listed |= {
        node.target.id for node in tree.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    pointwise = {*UNARY, *BINARY, *TERNARY}  # the stub answers for all of them with `__getattr__`
    assert listed - {"__getattr__"} == {name for name in dir(_native) if not name.startswith("_")} - pointwise


# ---------------------------------------------------------------- values


def test_small_float_conversion_is_exhaustive() -> None:
    """Every bit pattern of the 8- and 16-bit floats to float32, and back."""
    for name in ("float16", "bfloat16", "float8_e5m2", "float8_e4m3fn"):
        dtype = numpy_dtype(name)
        bits = np.arange(1 << (8 * dtype.itemsize), dtype=np.uint16 if dtype.itemsize == 2 else np.uint8)
        small = bits.view(dtype)
        source, target = View(small, name), View(np.zeros(bits.size, np.float32))
        _native.copy(*target.args(), *source.args(), (bits.size,))
        wide = array_of(target.storage, np.float32, (bits.size,))
        assert np.array_equal(wide, small.astype(np.float32), equal_nan=True)
        back = View(np.zeros(bits.size, dtype), name)
        _native.copy(*back.args(), *target.args(), (bits.size,))
        again = array_of(back.storage, dtype, (bits.size,)).astype(np.float32)
        assert np.array_equal(again, wide, equal_nan=True)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_rounding_to_small_floats(name: str) -> None:
    """Halfway cases, subnormals, overflow: as NumPy and ml_dtypes round."""
    rng = np.random.default_rng(0)
    values = np.concatenate(
        [rng.integers(0, 1 << 32, 200_000, dtype=np.uint32).view(np.float32), np.float32(2.0) ** np.arange(-40, 40),
         np.array([65504, 65519, 65520, 65536, np.inf, -np.inf, np.nan, 0.0, -0.0], np.float32)]
    )  # fmt: skip
    halves = np.arange(1 << 16, dtype=np.uint16).view(numpy_dtype(name)).astype(np.float32)
    halves = halves[np.isfinite(halves)]
    values = np.concatenate([values, (halves[1:] + halves[:-1]) / 2]).astype(np.float32)
    source, target = View(values), View(np.zeros(values.size, numpy_dtype(name)), name)
    _native.copy(*target.args(), *source.args(), (values.size,))
    got = array_of(target.storage, numpy_dtype(name), (values.size,)).astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = values.astype(numpy_dtype(name)).astype(np.float32)
    assert np.array_equal(got, expected, equal_nan=True)


def test_fill() -> None:
    for name in CODES:
        target = View(np.zeros((5, 6), numpy_dtype(name)), name)
        _native.fill(target.storage, 1, (6, 2), target.code, (5, 2), 3)
        got = array_of(target.storage, numpy_dtype(name), (5, 6))
        expected = np.zeros((5, 6), numpy_dtype(name))
        expected[:, 1:4:2] = 3
        assert np.array_equal(got.astype(np.complex128), expected.astype(np.complex128)), name
    target = View(np.zeros(3, np.complex64))
    _native.fill(*target.args(), (3,), 1 + 2j)
    assert array_of(target.storage, np.complex64, (3,)).tolist() == [1 + 2j] * 3
    target = View(np.zeros(3, np.uint64))
    _native.fill(*target.args(), (3,), 2**64 - 1)
    assert array_of(target.storage, np.uint64, (3,)).tolist() == [2**64 - 1] * 3
    with pytest.raises(RuntimeError, match="overflow"):
        _native.fill(*target.args(), (3,), 2**64)


def test_scalar_operands() -> None:
    a = View(random((4, 5)))
    values = a.array
    for number in (2, 2.5, True, np.float32(1.5), np.int64(3)):
        want = np.float32(number)
        assert np.array_equal(binary(_native.SUB, a, number, "float32", "float32"), values - want)
        assert np.array_equal(binary(_native.SUB, number, a, "float32", "float32"), want - values)
        assert np.array_equal(binary(_native.LT, number, a, "bool", "float32"), want < values)
    shape = (2, 3)
    both = _native.binary(_native.ADD, 1, *NUMBER, 2.5, *NUMBER, *fresh(shape, "float32"), shape, F32, 1)
    assert array_of(both, np.float32, shape).tolist() == [[3.5] * 3] * 2


def test_alpha() -> None:
    for name in ("float32", "float64", "float16", "int64", "uint8", "complex64"):
        a, b = View(random((50,), name)), View(random((50,), name, seed=1))
        two = a.array.dtype.type(2)
        plus = binary(_native.ADD, a, b, name, name, 2)
        minus = binary(_native.SUB, a, b, name, name, 2)
        assert np.allclose(plus, a.array + two * b.array, rtol=1e-2 if name == "float16" else 1e-6)
        assert np.allclose(minus, a.array - two * b.array, rtol=1e-2 if name == "float16" else 1e-6, atol=1e-2)


def test_mixed_dtypes_are_cast_on_load() -> None:
    a, b = View(random((10, 11), "int32")), View(random((11,), "float16", seed=1))
    assert np.array_equal(binary(_native.MUL, a, b, "float64", "float64"),
                          a.array.astype(np.float64) * b.array.astype(np.float64))  # fmt: skip
    # An operand of a wider float is rounded to the compute dtype first.
    wide = View(np.array([1.0 + 2**-12], np.float32))
    assert binary(_native.SUB, wide, 1.0, "float32", "float16")[0] == 0.0
    # Narrow integers wrap in the compute dtype, whatever the output is.
    narrow = View(np.array([200], np.uint8))
    assert binary(_native.ADD, narrow, narrow, "int32", "uint8")[0] == 144
    assert binary(_native.ADD, View(np.array([100], np.int8)), 100, "int32", "int8")[0] == -56


def test_bool_arithmetic_is_logic() -> None:
    a, b = View(np.array([True, True, False, False])), View(np.array([True, False, True, False]))
    for op, expected in (("ADD", [1, 1, 1, 0]), ("MUL", [1, 0, 0, 0]), ("BITWISE_XOR", [0, 1, 1, 0]),
                         ("BITWISE_AND", [1, 0, 0, 0]), ("MAXIMUM", [1, 1, 1, 0]), ("MINIMUM", [1, 0, 0, 0]),
                         ("EQ", [1, 0, 0, 1]), ("GT", [0, 1, 0, 0])):  # fmt: skip
        result = binary(getattr(_native, op), a, b, "bool", "bool")
        assert result.view(np.uint8).tolist() == expected, op
    assert unary(_native.BITWISE_NOT, a, "bool", "bool").tolist() == [False, False, True, True]
    assert binary(_native.ADD, a, b, "bool", "bool", False).tolist() == a.array.tolist()


def test_where() -> None:
    shape = (37, 65)
    condition = random(shape) > 0
    for name in CODES:
        dtype = numpy_dtype(name)
        a, b = random(shape, "float32").astype(dtype), random(shape, "float32", 1).astype(dtype)
        result = ternary(_native.WHERE, View(condition), View(a, name), View(b, name), name, name)
        expected = np.where(condition, a, b)
        assert np.array_equal(result.view(np.uint8), expected.view(np.uint8)), name
    some = View(random((65,)))
    result = ternary(_native.WHERE, View(condition), some, 2, "float32", "float32")
    assert np.array_equal(result, np.where(condition, some.array, np.float32(2)))


def test_ternary_arithmetic() -> None:
    a, b, c = (View(random((20, 30), "float64", seed)) for seed in range(3))
    x, y, z = a.array, b.array, c.array
    kind = ("float64", "float64")
    assert np.allclose(ternary(_native.ADDCMUL, a, b, c, *kind, 0.5), x + 0.5 * y * z, rtol=1e-14)
    assert np.allclose(ternary(_native.ADDCDIV, a, b, c, *kind, 0.5), x + 0.5 * y / z, rtol=1e-14)
    assert np.allclose(ternary(_native.LERP, a, b, c, *kind), x + z * (y - x), rtol=1e-10)
    assert np.array_equal(ternary(_native.LERP, a, b, 1, *kind), y)
    assert np.array_equal(ternary(_native.CLAMP, a, -1, 1, *kind), np.clip(x, -1, 1))
    assert np.array_equal(ternary(_native.CLAMP, a, None, 1, *kind), np.minimum(x, 1))
    assert np.array_equal(ternary(_native.CLAMP, a, b, None, *kind), np.maximum(x, y))
    assert np.array_equal(ternary(_native.CLAMP, a, 2, -2, *kind), np.full_like(x, -2))
    nan = View(np.array([math.nan, 1.0]))
    assert np.array_equal(ternary(_native.CLAMP, nan, 0, 1, *kind), nan.array, equal_nan=True)
    assert np.isnan(ternary(_native.CLAMP, View(np.zeros(2)), nan, 5, *kind)).tolist() == [True, False]
    wrapped = ternary(_native.ADDCMUL, *(View(np.array([2**40], np.int64)),) * 3, "int64", "int64", 3)
    assert wrapped[0] == 2**40  # the product wraps to zero


def test_threshold_backward() -> None:
    g, x = View(random((100,))), View(random((100,), seed=1))
    for limit in (0, 1, 0.5):
        result = binary(_native.THRESHOLD_BACKWARD, g, x, "float32", "float32", limit)
        assert np.array_equal(result, np.where(x.array > limit, g.array, 0))


NUMPY_UNARY = {
    "NEG": np.negative, "ABS": np.abs, "SQRT": np.sqrt, "SQUARE": np.square, "EXP": np.exp, "EXP2": np.exp2,
    "EXPM1": np.expm1, "LOG": np.log, "LOG2": np.log2, "LOG10": np.log10, "LOG1P": np.log1p, "SIN": np.sin,
    "COS": np.cos, "TAN": np.tan, "ASIN": np.arcsin, "ACOS": np.arccos, "ATAN": np.arctan, "SINH": np.sinh,
    "COSH": np.cosh, "TANH": np.tanh, "ASINH": np.arcsinh, "ACOSH": np.arccosh, "ATANH": np.arctanh, "FLOOR": np.floor,
    "CEIL": np.ceil, "ROUND": np.rint, "TRUNC": np.trunc, "RECIPROCAL": np.reciprocal,
    "ISNAN": np.isnan, "ISINF": np.isinf, "ISFINITE": np.isfinite, "SIGNBIT": np.signbit,
    "LOGICAL_NOT": np.logical_not, "POSITIVE": np.positive,
}  # fmt: skip
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-3, 1e-6, -1e-6, 1e-20, -1e-20, 1e-40, 1e20, -1e20, 88.0,
           -88.0, 88.7, -90.0, -100.0, -104.0, 3.4e38, -3.4e38, math.inf, -math.inf, math.nan, 0.999999, 1.000001, 7.5,
           20.0, 1e6, 1e7, -1e7, 127.0, -128.0]  # fmt: skip


def samples(name: str) -> Any:
    rng = np.random.default_rng(0)
    spread = 10.0 ** rng.uniform(-35, 35, 500)
    values = np.concatenate([SPECIAL, rng.standard_normal(1000) * 3, rng.uniform(-1, 1, 1000), spread, -spread])
    with np.errstate(over="ignore"):
        return values.astype(numpy_dtype(name))


@pytest.mark.parametrize("op", sorted(NUMPY_UNARY))
def test_unary_values(op: str) -> None:
    function = NUMPY_UNARY[op]
    for name, rtol in (("float32", 2.5e-7), ("float64", 5e-15)):
        values = samples(name)
        with np.errstate(all="ignore"):
            expected = function(values.astype(np.float64)).astype(np.bool_ if op[:2] == "IS" else numpy_dtype(name))
            out = "bool" if function(values[:1]).dtype == np.bool_ else name
        result = unary(getattr(_native, op), View(values), out, name)
        tiny = 1e-44 if name == "float32" else 1e-300
        assert np.allclose(result, expected, rtol=rtol, atol=tiny, equal_nan=True), op
        if out != "bool":
            zero = (expected == 0) & (values == 0)
            assert np.array_equal(np.signbit(result[zero]), np.signbit(expected[zero])), op


@pytest.mark.parametrize("size", [1, 2, 3, 15, 16, 17, 31, 33, 63, 64, 65, 1023, 1025])
def test_tails_of_vector_loops(size: int) -> None:
    a, b = View(random((size,))), View(random((size,), seed=1))
    assert np.array_equal(binary(_native.ADD, a, b, "float32", "float32"), a.array + b.array)
    assert np.array_equal(binary(_native.LT, a, b, "bool", "float32"), a.array < b.array)
    assert np.allclose(unary(_native.EXP, a, "float32", "float32"), np.exp(a.array), rtol=3e-7)
    total = reduce(_native.SUM, a, (0,), "float32", "float32")[0]
    assert np.isclose(total, a.array.sum(dtype=np.float64), rtol=1e-6, atol=1e-6)
    assert reduce(_native.ARGMAX, a, (0,), "int64", "float32")[0] == a.array.argmax()
    assert reduce(_native.AMIN, a, (0,), "float32", "float32")[0] == a.array.min()


# ---------------------------------------------------------------- reductions

REDUCE_SHAPES = [(5,), (4, 4), (3, 1, 7), (100, 200), (2, 3, 4, 5), (1000, 3), (3, 1000), (40, 33, 50), (140_000,),
                 (70_000, 2), (2, 70_000), (33, 40)]  # fmt: skip


def subsets(ndim: int) -> Iterator[tuple[int, ...]]:
    for count in range(ndim + 1):
        yield from itertools.combinations(range(ndim), count)


@pytest.mark.parametrize("shape", REDUCE_SHAPES)
@pytest.mark.parametrize("name", ["float32", "float64", "int32", "uint8", "bool", "float16", "complex64"])
def test_reductions(shape: tuple[int, ...], name: str) -> None:
    values = random(shape, name)
    whole = name in ("int32", "uint8", "bool")
    sum_name = "int64" if whole else name
    wide = {"float16": "float64", "float32": "float64", "complex64": "complex128"}.get(name, sum_name)
    rtol, atol = (2e-3, 1e-2) if name == "float16" else (1e-6, 1e-3)
    for array in (values, np.asfortranarray(values)):
        a = View(array)
        for dims in subsets(len(shape)):
            total = reduce(_native.SUM, a, dims, sum_name, sum_name)
            expected = array.astype(wide).sum(axis=dims, keepdims=True)
            assert np.allclose(total, expected, rtol=rtol, atol=atol)
            if not whole:
                count = math.prod(shape[d] for d in dims)
                assert np.allclose(reduce(_native.MEAN, a, dims, name, name), expected / count, rtol=rtol, atol=atol)
            truth = array != 0
            assert np.array_equal(reduce(_native.ANY, a, dims, "bool", name), truth.any(axis=dims, keepdims=True))
            assert np.array_equal(reduce(_native.ALL, a, dims, "bool", name), truth.all(axis=dims, keepdims=True))
            if name == "complex64":
                continue
            assert np.array_equal(reduce(_native.AMAX, a, dims, name, name), array.max(axis=dims, keepdims=True))
            assert np.array_equal(reduce(_native.AMIN, a, dims, name, name), array.min(axis=dims, keepdims=True))
            if len(dims) == 1 or len(dims) == len(shape):
                axis: Any = dims[0] if len(dims) == 1 else None
                top = reduce(_native.ARGMAX, a, dims, "int64", name)
                assert np.array_equal(top, array.argmax(axis=axis, keepdims=True))
                bottom = reduce(_native.ARGMIN, a, dims, "int64", name)
                assert np.array_equal(bottom, array.argmin(axis=axis, keepdims=True))


def test_argmax_counts_reduced_dimensions_in_row_major_order() -> None:
    values = random((3, 4, 5))
    for array in (values, np.asfortranarray(values)):
        top = reduce(_native.ARGMAX, View(array), (0, 2), "int64", "float32")
        expected = values.transpose(1, 0, 2).reshape(4, 15).argmax(axis=1)
        assert np.array_equal(top.ravel(), expected)


@pytest.mark.parametrize("shape", [(6,), (6, 40), (2000, 6), (6, 2000)])
def test_nan_and_ties_in_extremes(shape: tuple[int, ...]) -> None:
    values = np.zeros(shape, np.float32)
    for dim in range(len(shape)):
        top = reduce(_native.ARGMAX, View(values), (dim,), "int64", "float32")
        assert not top.any()  # the first of equals
    flat = values.reshape(-1)
    flat[2], flat[4] = math.inf, math.nan
    flat[5] = math.nan
    everything = tuple(range(len(shape)))
    for op in (_native.AMAX, _native.AMIN):
        assert math.isnan(reduce(op, View(values), everything, "float32", "float32").item())
    for op in (_native.ARGMAX, _native.ARGMIN):
        assert reduce(op, View(values), everything, "int64", "float32").item() == 4
    for dim in range(len(shape)):
        expected = values.max(axis=dim, keepdims=True)
        assert np.array_equal(
            reduce(_native.AMAX, View(values), (dim,), "float32", "float32"), expected, equal_nan=True
        )


def test_long_float_sums_are_accurate() -> None:
    values = np.full(3_000_000, 0.1, np.float32)
    exact = float(np.float32(0.1)) * values.size
    assert abs(float(reduce(_native.SUM, View(values), (0,), "float32", "float32")[0]) / exact - 1) < 1e-7
    columns = values.reshape(1_000_000, 3)
    assert np.allclose(reduce(_native.SUM, View(columns), (0,), "float32", "float32"), exact / 3, rtol=1e-7)
    half = View(np.full(4096, 0.1, np.float16))
    assert abs(float(reduce(_native.SUM, half, (0,), "float16", "float16")[0]) / 409.4 - 1) < 1e-3


def test_reduction_into_a_given_output() -> None:
    a = View(random((6, 7)))
    out = _native.Storage(8 * 20)
    result = _native.reduce(_native.SUM, *a.args(), out, 2, (0, 2), CODES["float64"], (6, 7), F32)
    assert result is out
    got = np.frombuffer(out, np.float64)[2:16:2]
    assert np.allclose(got, a.array.sum(axis=0, dtype=np.float64), rtol=1e-6)
    broadcast = View(random((5,)))
    strides = (broadcast.storage, 0, (0, 1), F32)
    result = _native.reduce(_native.SUM, *strides, None, 0, (0, 1), F32, (4, 5), F32, 5)
    assert np.allclose(array_of(result, np.float32, (5,)), 4 * broadcast.array, rtol=1e-6)
    result = _native.reduce(_native.SUM, *strides, None, 0, (1, 0), F32, (4, 5), F32, 4)
    assert np.allclose(array_of(result, np.float32, (4,)), broadcast.array.sum(), rtol=1e-5)


# ---------------------------------------------------------------- parity with PyTorch


def torch_storage(tensor: Any) -> Any:
    nbytes = tensor.numel() * tensor.element_size()
    return _native.Storage.wrap(tensor.data_ptr(), nbytes, tensor) if nbytes else _native.Storage(0)


def torch_code(tensor: Any) -> int:
    return CODES[str(tensor.dtype).removeprefix("torch.")]


def as_torch(torch: Any, storage: Any, dtype: Any, size: int) -> Any:
    result = torch.empty(size, dtype=dtype)
    if storage.nbytes:
        byte = CODES["uint8"]
        _native.copy(torch_storage(result), 0, (1,), byte, storage, 0, (1,), byte, (storage.nbytes,))
    return result


def all_dtypes(torch: Any) -> list[Any]:
    return [getattr(torch, name) for name in CODES]


def torch_data(torch: Any, dtype: Any, seed: int = 0) -> Any:
    generator = torch.Generator().manual_seed(seed)
    count = 600
    if dtype == torch.bool:
        return torch.randint(0, 2, (count,), generator=generator).bool()
    if dtype.is_complex:
        return torch.randn(count, generator=generator, dtype=torch.complex128).to(dtype) * 2
    if dtype.is_floating_point:
        wide = {"generator": generator, "dtype": torch.float64}
        parts = [torch.tensor(SPECIAL, dtype=torch.float64), torch.randn(count, **wide) * 3, torch.rand(count, **wide)]
        return torch.cat(parts).to(dtype)
    info = torch.iinfo(dtype)
    if str(dtype) in ("torch.uint16", "torch.uint32", "torch.uint64"):
        return torch.randint(0, 200, (count,), generator=generator).to(dtype)
    small = torch.randint(max(info.min, -20), 20, (count,), generator=generator)
    return torch.cat([torch.tensor([info.min, info.max, 0, 1]), small]).to(dtype)


TOLERANCE = {"float16": (2e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (2e-6, 1e-6), "float64": (1e-12, 1e-12),
             "complex64": (1e-5, 1e-5), "complex128": (1e-11, 1e-11)}  # fmt: skip


def assert_matches(torch: Any, where: str, mine: Any, reference: Any, slack: float = 1.0) -> None:
    name = str(reference.dtype).removeprefix("torch.")
    if name in TOLERANCE:
        rtol, atol = (slack * tolerance for tolerance in TOLERANCE[name])
        torch.testing.assert_close(mine, reference, rtol=rtol, atol=atol, equal_nan=True, msg=lambda m: f"{where}: {m}")
    elif name.startswith("float8"):
        torch.testing.assert_close(mine.float(), reference.float(), rtol=0, atol=0, equal_nan=True)
    else:
        assert mine.tolist() == reference.tolist(), where


def compute_dtype(torch: Any, operand: Any, reference: Any) -> Any:
    if reference.dtype == torch.bool or operand.dtype.is_complex:
        return operand.dtype
    return reference.dtype


# Kernels that PyTorch has under another name than their own.
ORACLE_UNARY = {"CONJ": "conj_physical", "REAL_ABS": "abs"}
# PyTorch overflows before the result does (sinh 89), or gives NaN for gelu(inf): there the C library is right.
UNARY_LIMIT = {"SINH": 85.0, "COSH": 85.0, "GELU": 1e30, "GELU_TANH": 1e6}


@pytest.mark.parametrize("op", UNARY)
def test_unary_parity(op: str, oracle: Any) -> None:
    functional = oracle.nn.functional
    own = {"gelu": functional.gelu, "silu": functional.silu,
           "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh")}  # fmt: skip
    name = ORACLE_UNARY.get(op, op.lower())
    function = own.get(name) or getattr(oracle, name)
    compared = 0
    for dtype in all_dtypes(oracle):
        a = torch_data(oracle, dtype)
        if op in UNARY_LIMIT and not dtype.is_complex and dtype != oracle.bool:
            a = a[a.double().abs().nan_to_num() < UNARY_LIMIT[op]]
        try:
            reference = function(a)
        except (RuntimeError, NotImplementedError, TypeError):
            continue  # PyTorch has no such combination
        compute = compute_dtype(oracle, a, reference)
        size = a.numel()
        out = (None, 0, (1,), torch_code(reference))
        ccode = CODES[str(compute).removeprefix("torch.")]
        result = _native.unary(getattr(_native, op), torch_storage(a), 0, (1,), torch_code(a), *out, (size,), ccode)
        mine = as_torch(oracle, result, reference.dtype, size)
        # PyTorch's erfinv loses digits next to 1.
        assert_matches(oracle, f"{op} {dtype}", mine, reference, slack=10 if op == "ERFINV" else 1)
        compared += 1
    assert compared >= 2


# Kernels that PyTorch has under another name than their own, or as a case of another.
ORACLE_BINARY: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "FLOOR_DIV": lambda t: lambda a, b: t.div(a, b, rounding_mode="floor"),
    "TRUNC_DIV": lambda t: lambda a, b: t.div(a, b, rounding_mode="trunc"),
    "LSHIFT": lambda t: t.bitwise_left_shift,
    "RSHIFT": lambda t: t.bitwise_right_shift,
    "GELU_TANH_BACKWARD": lambda t: lambda g, x: t.ops.aten.gelu_backward(g, x, approximate="tanh"),
}


def oracle_binary(torch: Any, op: str) -> Callable[..., Any]:
    if op in ORACLE_BINARY:
        return ORACLE_BINARY[op](torch)
    found: Callable[..., Any] = getattr(torch.ops.aten if op.endswith("_BACKWARD") else torch, op.lower())
    return found


def binary_pairs(torch: Any, op: str, dtype: Any) -> tuple[Any, Any]:
    a, b = torch_data(torch, dtype), torch_data(torch, dtype, seed=1)
    if dtype.is_floating_point and op.endswith("_BACKWARD"):
        calm = torch.Generator().manual_seed(3)
        a, b = (torch.randn(2000, generator=calm, dtype=torch.float64).to(dtype) for _ in range(2))
    elif dtype.is_floating_point:
        special = torch.tensor(SPECIAL, dtype=torch.float64).to(dtype)
        a = torch.cat([a, special.repeat_interleave(len(SPECIAL))])
        b = torch.cat([b, special.repeat(len(SPECIAL))])
        if op in ("FMOD", "REMAINDER"):  # PyTorch gives NaN where the quotient is too large for its formula
            quotient = (a.double() / b.double()).abs()
            keep = ~(quotient > 1e6) | (b == 0)
            a, b = a[keep], b[keep]
    elif op in ("FLOOR_DIV", "TRUNC_DIV", "REMAINDER", "FMOD") and not dtype.is_complex:
        b = b.to(torch.int64)
        b = torch.where(b == 0, 1, b).to(dtype)
    return a, b


@pytest.mark.parametrize("op", [op for op in BINARY if op != "THRESHOLD_BACKWARD"])  # which has a number beside
def test_binary_parity(op: str, oracle: Any) -> None:
    function = oracle_binary(oracle, op)
    compared = 0
    for dtype in all_dtypes(oracle):
        a, b = binary_pairs(oracle, op, dtype)
        try:
            reference = function(a, b)
        except (RuntimeError, NotImplementedError, TypeError):
            continue
        compute = compute_dtype(oracle, a, reference)
        size = a.numel()
        ccode = CODES[str(compute).removeprefix("torch.")]
        operands = (torch_storage(a), 0, (1,), torch_code(a), torch_storage(b), 0, (1,), torch_code(b))
        out = (None, 0, (1,), torch_code(reference))
        result = _native.binary(getattr(_native, op), *operands, *out, (size,), ccode, 1)
        assert_matches(oracle, f"{op} {dtype}", as_torch(oracle, result, reference.dtype, size), reference)
        compared += 1
    assert compared >= 2


@pytest.mark.parametrize(
    "op", ["ADD", "SUB", "MUL", "DIV", "POW", "EQ", "LT", "GE", "MAXIMUM", "REMAINDER", "FLOOR_DIV"]
)
def test_scalar_operand_parity(op: str, oracle: Any) -> None:
    methods = {"ADD": "add", "SUB": "sub", "MUL": "mul", "DIV": "div", "POW": "pow", "EQ": "eq", "LT": "lt", "GE": "ge",
               "MAXIMUM": "clamp_min", "REMAINDER": "remainder"}  # fmt: skip
    for dtype, number in itertools.product(
        (oracle.float16, oracle.bfloat16, oracle.float32, oracle.float64), (0.1, 3, 0.5, 2, -1.0, -3.0)
    ):
        a = torch_data(oracle, dtype)
        a = a[a.double().abs().nan_to_num() < 1e4]
        if op == "FLOOR_DIV":
            reference = a.div(number, rounding_mode="floor")
        else:
            reference = getattr(a, methods[op])(number)
        size, code = a.numel(), torch_code(a)
        out = (None, 0, (1,), torch_code(reference))
        operands = (torch_storage(a), 0, (1,), code, number, *NUMBER)
        result = _native.binary(getattr(_native, op), *operands, *out, (size,), code, 1)
        assert_matches(oracle, f"{op} {dtype} {number}", as_torch(oracle, result, reference.dtype, size), reference)


def test_cast_parity(oracle: Any) -> None:
    for source, target in itertools.product(all_dtypes(oracle), all_dtypes(oracle)):
        a = torch_data(oracle, source)
        whole = not (target.is_floating_point or target.is_complex or target == oracle.bool)
        if whole and source.is_complex:
            a = a.abs().to(source)
        elif whole and source.is_floating_point:  # out of range is undefined in PyTorch, too
            info = oracle.iinfo(target)
            low, high = max(info.min, -(2**31)), min(info.max, 2**31 - 1)
            exact = a.to(oracle.float64)
            a = a[(exact > low) & (exact < high)]
        reference = a.to(target)
        result = _native.Storage(reference.numel() * reference.element_size())
        name = str(target).removeprefix("torch.")
        _native.copy(result, 0, (1,), CODES[name], torch_storage(a), 0, (1,), torch_code(a), (a.numel(),))
        mine = as_torch(oracle, result, target, a.numel())
        if target.is_floating_point or target.is_complex:
            wide = oracle.complex128 if target.is_complex else oracle.float64
            assert oracle.equal(mine.to(wide).nan_to_num(12345), reference.to(wide).nan_to_num(12345)), (source, target)
        else:
            assert mine.tolist() == reference.tolist(), (source, target)


def test_reduction_parity(oracle: Any) -> None:
    generator = oracle.Generator().manual_seed(0)
    a = oracle.randn((50, 60, 7), generator=generator)
    a[3, 4, 5] = math.nan
    a[7, 1] = math.inf
    storage, strides, shape = torch_storage(a), (420, 7, 1), (50, 60, 7)
    for dim, kept in ((0, (0, 7, 1)), (1, (7, 0, 1)), (2, (60, 1, 0))):
        size = a.numel() // shape[dim]
        for op, function in (("SUM", a.sum), ("MEAN", a.mean), ("PROD", a.prod), ("AMAX", a.amax), ("AMIN", a.amin),
                             ("ARGMAX", a.argmax), ("ARGMIN", a.argmin), ("ANY", a.any), ("ALL", a.all)):  # fmt: skip
            reference = function(dim).flatten()
            out = (None, 0, kept, torch_code(reference))
            result = _native.reduce(getattr(_native, op), storage, 0, strides, F32, *out, shape, F32, size)
            mine = as_torch(oracle, result, reference.dtype, size)
            assert_matches(oracle, f"{op} {dim}", mine, reference, slack=10)  # sums cancel
