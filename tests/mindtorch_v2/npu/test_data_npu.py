"""Other processes and data loaders beside an NPU."""

from __future__ import annotations

import os
import pickle
import signal
from multiprocessing.reduction import ForkingPickler
from typing import Any

import pytest

import mindtorch_v2 as torch
import mindtorch_v2.multiprocessing as mp
from mindtorch_v2.utils.data import DataLoader, TensorDataset, get_worker_info

from .._resources import kept_level


def use_npu(index: int, t: Any) -> None:
    t[0] = 0
    try:
        torch.zeros(2, device="npu")
    except RuntimeError as error:
        if "forked subprocess" in str(error) and "spawn" in str(error):
            t[0] = 1


def test_an_npu_in_use_is_refused_in_a_forked_child() -> None:
    there = torch.arange(3.0, device="npu")
    t = torch.full((1,), 5.0).share_memory_()
    mp.start_processes(use_npu, (t,), start_method="fork")
    assert t.item() == 1
    assert there.tolist() == [0, 1, 2]


def test_tensors_of_an_npu_are_sent_as_copies() -> None:
    there = torch.arange(3.0, device="npu")
    assert not there.is_shared() and there.share_memory_() is there
    copy = pickle.loads(ForkingPickler.dumps(there))
    assert copy.device == there.device and copy.tolist() == [0, 1, 2] and copy.data_ptr() != there.data_ptr()


class Dies:
    """A dataset whose worker is killed at an index."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, i: int) -> Any:
        if i == 5 and get_worker_info() is not None:
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.full((2,), float(i))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("persistent", [False, True])
def test_batches_in_page_locked_memory(workers: int, persistent: bool) -> None:
    if persistent and not workers:
        return
    torch.zeros(1, device="npu")
    with kept_level():
        samples = TensorDataset(torch.arange(40.0).reshape(20, 2), torch.arange(20))
        loader: Any = DataLoader(samples, 6, num_workers=workers, pin_memory=True, persistent_workers=persistent)
        for _ in range(2):
            total = 0
            for x, y in loader:
                assert x.is_pinned() and y.is_pinned()
                total += int(x.to("npu", non_blocking=True).sum().item() + y.to("npu").sum().item())
            assert total == sum(range(40)) + sum(range(20))
        del loader, x, y


def test_containers_and_own_classes_are_pinned() -> None:
    class Own:
        def pin_memory(self) -> str:
            return "pinned"

    pin = torch.utils.data._utils.pin_memory.pin_memory
    got = pin({"a": [torch.ones(2), (torch.ones(1), "text")], "b": Own(), "c": b"x", "d": 3})
    assert got["a"][0].is_pinned() and got["a"][1][0].is_pinned() and got["a"][1][1] == "text"
    assert (got["b"], got["c"], got["d"]) == ("pinned", b"x", 3)


def test_a_killed_worker_is_noticed_behind_the_pinning_thread() -> None:
    torch.zeros(1, device="npu")
    with kept_level():
        with pytest.raises(RuntimeError, match="exited unexpectedly"):
            list(DataLoader(Dies(), 2, num_workers=2, pin_memory=True))
