"""Other processes and data loaders beside an NPU."""

from __future__ import annotations

import pickle
from typing import Any

import mindtorch_v2 as torch
import mindtorch_v2.multiprocessing as mp


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
    function, args = mp.reductions.reduce_tensor(there)
    copy = function(*pickle.loads(pickle.dumps(args)))
    assert copy.device == there.device and copy.tolist() == [0, 1, 2] and copy.data_ptr() != there.data_ptr()
