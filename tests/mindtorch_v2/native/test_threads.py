"""Kernels, allocator and autograd used by several threads at once: run as a test, and under ThreadSanitizer by
`make test-sanitized SANITIZER=thread`.

Invariant: threads share only what a call may be given by several of them (inputs, storages, the allocator, the pool);
no two write the same element.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2 import _native

LARGE = 70_000  # elements: the GIL is released, and the work is shared out
THREADS = 4


def together(work: Callable[[int], Any], count: int = THREADS) -> list[Any]:
    """The results of `work` called by several threads that start at the same moment."""
    start = threading.Barrier(count)
    results: list[Any] = [None] * count
    errors: list[BaseException] = []

    def run(i: int) -> None:
        try:
            start.wait()
            results[i] = work(i)
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]
    return results


@pytest.fixture(autouse=True)
def _two_threads() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


X = torch.arange(LARGE, dtype=torch.float32).remainder(97)
MATRIX = X[:66_000].view(220, 300)
INDEX = torch.arange(LARGE).remainder(220)
MASK = X > 40

CALLS: dict[str, Callable[[], Any]] = {
    "add": lambda: X + X,
    "exp": lambda: (X / 97).exp(),
    "where": lambda: torch.where(MASK, X, -X),
    "cast": lambda: X.to(torch.float64).to(torch.int32),
    "transposed copy": lambda: MATRIX.t().contiguous(),
    "sum": lambda: X.sum(),
    "sum of rows": lambda: MATRIX.sum(0),
    "argmax": lambda: X.argmax(),
    "var": lambda: X.var(),
    "softmax": lambda: MATRIX.softmax(1),
    "layer_norm": lambda: F.layer_norm(MATRIX, (300,)),
    "cumsum": lambda: MATRIX.cumsum(0),
    "sort": lambda: MATRIX.sort(1).values,
    "nonzero": lambda: MASK.nonzero(),
    "masked_select": lambda: X.masked_select(MASK),
    "masked_fill": lambda: X.masked_fill(MASK, 0.0),
    "gather": lambda: MATRIX.gather(0, INDEX[:66_000].view(220, 300)),
    "index_select": lambda: MATRIX.index_select(0, INDEX),
    "scatter_add": lambda: torch.zeros(220, 300).scatter_add(0, INDEX[:66_000].view(220, 300), MATRIX),
    "index_add": lambda: torch.zeros(220, 300).index_add(0, INDEX[:220], MATRIX),
    "index": lambda: MATRIX[INDEX],
    "embedding": lambda: F.embedding(INDEX, MATRIX),
    "mm of integers": lambda: MATRIX.to(torch.int32).mm(MATRIX.to(torch.int32).t()),
    "mm": lambda: MATRIX[:64, :64].mm(MATRIX[:64, :64]),
    "bmm": lambda: MATRIX[:, :256].reshape(220, 16, 16).bmm(MATRIX[:, :256].reshape(220, 16, 16)),
    "conv": lambda: F.conv2d(X[:65_536].view(1, 4, 128, 128), torch.ones(4, 4, 3, 3)),
    "max_pool": lambda: F.max_pool2d(X[:65_536].view(1, 4, 128, 128), 2),
    "avg_pool": lambda: F.avg_pool2d(X[:65_536].view(1, 4, 128, 128), 2),
    "interpolate": lambda: F.interpolate(X[:65_536].view(1, 4, 128, 128), scale_factor=0.5, mode="bilinear"),
    "cat": lambda: torch.cat([X, X]),
    "flip": lambda: X.flip(0),
    "tril": lambda: MATRIX.tril(),
}


@pytest.mark.parametrize("name", CALLS)
def test_one_kernel_in_many_threads(name: str) -> None:
    call = CALLS[name]
    expected = call()
    for got in together(lambda i: [call() for _ in range(3)]):
        for each in got:
            assert torch.equal(each, expected)


def test_many_kernels_at_once() -> None:
    names = list(CALLS)
    expected = {name: CALLS[name]() for name in names}

    def work(i: int) -> None:
        for k in range(len(names)):
            name = names[(k + i * 5) % len(names)]
            assert torch.equal(CALLS[name](), expected[name]), name

    together(work)


def test_the_allocator_in_many_threads() -> None:
    def work(i: int) -> None:
        kept: list[Any] = []
        for k in range(300):
            n = (k * 7919 + i * 104_729) % 200_000 + 1
            t = torch.full((n,), i * 1000 + k, dtype=torch.int32)
            kept.append((t, i * 1000 + k))
            if len(kept) > 5:
                old, value = kept.pop(k % 5)
                assert old[0] == value and old[-1] == value
            if k % 50 == 0:
                _native.empty_cache()
                _native.memory_stats()

    together(work)


def test_tensors_made_in_one_thread_die_in_another() -> None:
    made = together(lambda i: [torch.ones(n) for n in range(1, 600)])
    together(lambda i: made[(i + 1) % THREADS].clear())
    assert all(not m for m in made)


def test_threads_write_parts_of_one_tensor() -> None:
    out = torch.zeros(THREADS, LARGE)

    def work(i: int) -> None:
        for k in range(5):
            torch.add(X, float(i + k), out=out[i])

    together(work)
    for i in range(THREADS):
        assert torch.equal(out[i], X + (i + 4))


def test_an_index_that_another_thread_writes() -> None:
    """Written by NumPy, as users do it; every read index is checked, so nothing but the call can fail."""
    index = torch.zeros(LARGE, dtype=torch.int64)
    view = index.numpy()
    rows = torch.ones(10, 4)

    def work(i: int) -> None:
        for _ in range(10):
            if i == 0:
                view[::3] = 2**40
                view[:] = 0
                continue
            try:
                got = rows.index_select(0, index) if i == 1 else F.embedding(index, rows)
                assert got.min() == 1
            except (IndexError, RuntimeError):
                pass

    together(work)


def test_a_storage_resized_by_another_thread() -> None:
    x = torch.ones(LARGE * 4)
    size = x.untyped_storage().nbytes()

    def work(i: int) -> None:
        for _ in range(30):
            if i == 0:
                x.untyped_storage().resize_(0)
                x.untyped_storage().resize_(size)
            else:
                try:
                    x.to(torch.float64)
                except RuntimeError as e:
                    assert "storage" in str(e) or "allocated" in str(e)

    together(work)


def test_backward_in_many_threads() -> None:
    weight = torch.ones(50, 60, requires_grad=True)
    x = MATRIX[:, :50].contiguous()

    def work(i: int) -> Any:
        own = weight.detach().clone().requires_grad_()
        for _ in range(3):
            (x @ own).tanh().sum().backward()
        return own.grad

    expected = work(0)
    for got in together(work):
        assert torch.equal(got, expected)


def test_random_numbers_in_many_threads() -> None:
    """Generators of their own give every thread its own numbers; the default one is shared under the GIL."""
    expected = torch.rand(1000, generator=torch.Generator().manual_seed(7))
    for got in together(lambda i: torch.rand(1000, generator=torch.Generator().manual_seed(7))):
        assert torch.equal(got, expected)
    together(lambda i: [torch.rand(100) for _ in range(20)])


def test_the_number_of_threads_changes_meanwhile() -> None:
    def work(i: int) -> None:
        for k in range(20):
            if i == 0:
                torch.set_num_threads(1 + k % 3)
            else:
                assert torch.equal(X * 2, X + X)

    together(work)


def test_arrays_shared_with_numpy() -> None:
    array = np.arange(LARGE, dtype=np.float32)
    shared = torch.from_numpy(array)
    expected = array * 2
    for got in together(lambda i: shared * 2):
        assert (got.numpy() == expected).all()
