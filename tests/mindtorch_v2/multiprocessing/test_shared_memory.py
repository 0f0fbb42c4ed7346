"""Storages in shared memory: what moves, what stays, what is refused."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from .._resources import kept_level
from .._subject import mindtorch_only, submodule
from .._subject import subject as torch

mp: Any = submodule("multiprocessing")
STRATEGIES = ["file_descriptor", "file_system"]


@pytest.fixture(params=STRATEGIES)
def strategy(request: Any) -> Any:
    before = mp.get_sharing_strategy()
    mp.set_sharing_strategy(request.param)
    yield request.param
    mp.set_sharing_strategy(before)


def test_views_move_along_and_keep_their_values(strategy: str) -> None:
    with kept_level():
        base = torch.arange(12.0).reshape(3, 4)
        row, column, turned = base[1], base[:, 2], base.t()
        assert not base.is_shared()
        assert base.share_memory_() is base
        assert all(t.is_shared() for t in (base, row, column, turned))
        row.fill_(-1)
        assert base[1, 2] == column[1] == turned[2, 1] == -1
        assert base.untyped_storage().share_memory_() is base.untyped_storage()
        del base, row, column, turned


@pytest.mark.parametrize("count", [0, 1, 5, 5000])
@pytest.mark.parametrize("kind", ["uint8", "bool", "bfloat16", "float64", "complex64"])
def test_values_survive(strategy: str, count: int, kind: str) -> None:
    with kept_level():
        t = torch.arange(count).to(getattr(torch, kind))
        before = t.clone()
        t.share_memory_()
        assert t.is_shared() and torch.equal(t, before)
        del t


def test_a_graph_goes_through_shared_memory() -> None:
    with kept_level():
        w = torch.ones(3, requires_grad=True)
        loss = (w * torch.arange(3.0)).sum()
        w.share_memory_()
        loss.backward()
        assert w.grad.tolist() == [0, 1, 2]
        with torch.no_grad():
            w -= w.grad
        assert w.tolist() == [1, 0, -1]
        del w, loss


def test_modules_are_shared_whole() -> None:
    with kept_level():
        layer = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
        assert layer.share_memory() is layer
        assert all(t.is_shared() for t in layer.state_dict().values())
        layer(torch.randn(4, 3)).sum().backward()
        del layer


@mindtorch_only  # PyTorch itself dies of it
def test_shared_memory_cannot_grow(strategy: str) -> None:
    t = torch.zeros(4).share_memory_()
    with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
        t.resize_(100)
    with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
        t.untyped_storage().resize_(100)
    assert t.resize_(2).tolist() == [0, 0]


@mindtorch_only  # PyTorch shows an array over freed memory
def test_arrays_made_before_keep_their_memory(strategy: str) -> None:
    with kept_level():
        t = torch.arange(2000.0)
        array = t.numpy()
        part = t.untyped_storage()[:8]
        t.share_memory_()
        t.fill_(7)
        assert array[5] == 5 and part.tolist()[4:] == [0, 0, 128, 63]
        del t
        assert array[1999] == 1999
        del array, part


def test_memory_of_others_is_left_to_them(oracle: ModuleType) -> None:
    numpy = pytest.importorskip("numpy")
    array = numpy.arange(3.0)
    t = torch.from_numpy(array).share_memory_()
    t.fill_(9)
    assert array.tolist() == [0, 1, 2] and t.tolist() == [9, 9, 9]


def test_storages_by_descriptor() -> None:
    with kept_level():
        t = torch.arange(4.0)
        fd, size = t.untyped_storage()._share_fd_cpu_()
        assert size == 16 and fd >= 0 and t.untyped_storage()._share_fd_cpu_() == (fd, size)
        other = torch.UntypedStorage._new_shared_fd_cpu(fd, size)
        other[0] = 255
        assert t.untyped_storage()[0] == 255
        assert torch.empty(0).untyped_storage()._share_fd_cpu_() == (-1, 0)
        del t, other


def test_storages_by_name() -> None:
    with kept_level():
        t = torch.arange(4.0)
        manager, name, size = t.untyped_storage()._share_filename_cpu_()
        assert size == 16 and name.startswith(f"/torch_{os.getpid()}_".encode())
        other = torch.UntypedStorage._new_shared_filename_cpu(manager, name, size)
        other[0] = 255
        assert t.untyped_storage()[0] == 255
        del t
        assert other[0] == 255
        del other


@mindtorch_only
def test_wrong_names_and_sizes_are_refused() -> None:
    with pytest.raises(RuntimeError, match="could not open shared memory object </torch_nobody>"):
        torch.UntypedStorage._new_shared_filename_cpu(b"", b"/torch_nobody", 16)
    s = torch.zeros(4).untyped_storage()
    manager, name, _ = s._share_filename_cpu_()
    with pytest.raises(RuntimeError, match="smaller than asked"):
        torch.UntypedStorage._new_shared_filename_cpu(manager, name, 1 << 40)


@pytest.mark.parametrize("maker", ["_new_shared", "_new_using_fd_cpu", "_new_using_filename_cpu"])
def test_new_ones_are_zero(maker: str) -> None:
    with kept_level():
        s = getattr(torch.UntypedStorage, maker)(10)
        assert s.is_shared() and s.tolist() == [0] * 10
        del s


def test_typed_storages_count_elements() -> None:
    s = torch.zeros(3, dtype=torch.float64)._typed_storage()
    assert not s._is_shared()
    assert s._share_memory_()._is_shared()
    assert s._share_fd_cpu_()[1] == 3
    assert s._new_shared(5)._size() == 5 and s._new_shared(5).dtype == torch.float64


def test_files_are_shared(tmp_path: Path) -> None:
    for shared in (True, False):
        s = torch.UntypedStorage.from_file(str(tmp_path / "f"), shared or (tmp_path / "f").exists(), 8)
        assert s.is_shared()


def test_other_devices() -> None:
    with pytest.raises(RuntimeError, match="_share_fd_: only available on CPU"):
        torch.zeros(2, device="meta").share_memory_()
    assert not torch.zeros(2, device="meta").is_shared()


def test_weak_references() -> None:
    reductions = submodule("multiprocessing.reductions")
    t = torch.zeros(3)
    one, two = (reductions.StorageWeakRef(t.untyped_storage()) for _ in range(2))
    assert one == two and hash(one) == hash(two) and not one.expired()
    assert torch.UntypedStorage._new_with_weak_ptr(one.cdata).data_ptr() == t.data_ptr()
    del t
    assert one.expired()


def test_many_threads_share_one_storage() -> None:
    with kept_level():
        for _ in range(20):
            t = torch.arange(100.0)
            threads = [threading.Thread(target=t.share_memory_) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert t.is_shared() and t.sum() == 4950
        del t


def test_strategies() -> None:
    assert mp.get_all_sharing_strategies() == set(STRATEGIES)
    with pytest.raises(AssertionError, match="invalid sharing strategy 'pigeon', expected one of"):
        mp.set_sharing_strategy("pigeon")
