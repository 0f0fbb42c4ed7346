"""Storages of NPU tensors, and what Python sees of such tensors: numbers, text, copies, pickles."""

from __future__ import annotations

import copy
import gc
import pickle
from typing import Any

import pytest

import mindtorch_v2 as torch

from . import _control as control


def test_a_storage_is_seen_once() -> None:
    t = torch.arange(6.0).npu()
    s = t.untyped_storage()
    assert s is t.untyped_storage() and s is t[2:].untyped_storage() and s == t.view(2, 3).untyped_storage()
    assert s.device == torch.device("npu:0") and s.nbytes() == 24 and s.data_ptr() == t.data_ptr() and s.resizable()
    assert not s.is_pinned()
    number = id(s)
    del s
    assert t.untyped_storage().nbytes() == 24 and number


def test_the_bytes_of_a_storage() -> None:
    t = torch.tensor([1, 2, 3, 250], dtype=torch.uint8).npu()
    s = t.untyped_storage()
    assert s.tolist() == [1, 2, 3, 250] and s[1] == 2 and s[-1] == 250 and list(s) == [1, 2, 3, 250]
    part = s[1:3]
    assert part.tolist() == [2, 3] and part.data_ptr() == s.data_ptr() + 1 and not part.resizable()
    part.fill_(9)
    s[3] = 4
    assert t.tolist() == [1, 9, 9, 4]
    assert s.cpu().tolist() == [1, 9, 9, 4] and t._typed_storage().data.tolist() == [1, 9, 9, 4]
    assert torch.UntypedStorage([1, 2], device="npu").tolist() == [1, 2]
    with pytest.raises(IndexError):
        s[4]
    with pytest.raises(RuntimeError, match="not resizable"):
        part.resize_(10)


def test_a_part_keeps_the_memory_alive() -> None:
    part = torch.arange(100, dtype=torch.uint8).npu().untyped_storage()[10:20]
    others = [torch.zeros(100, dtype=torch.uint8).npu() for _ in range(5)]
    assert part.tolist() == list(range(10, 20)) and len(others) == 5


def test_copies_of_storages() -> None:
    s = torch.arange(4, dtype=torch.uint8).npu().untyped_storage()
    c = s.clone()
    assert c.device == s.device and c.data_ptr() != s.data_ptr() and c.tolist() == [0, 1, 2, 3]
    c.copy_(torch.UntypedStorage([5, 6, 7, 8]))
    assert c.tolist() == [5, 6, 7, 8] and s.tolist() == [0, 1, 2, 3]
    assert s.to(device="cpu").tolist() == [0, 1, 2, 3] and s.to(device="npu") is s
    assert s.to(device="npu:1").device == s.npu(1).device == torch.device("npu:1")


@control.emulator_only
@pytest.mark.parametrize("seed", range(1, 11))
def test_resizing_keeps_the_prefix_in_stream_order(seed: int) -> None:
    with control.delays(seed):
        t = torch.zeros(1000).npu()
        t.copy_(torch.arange(1000.0).pin_memory(), non_blocking=True)
        s = t.untyped_storage()
        for n in (1500, 300, 1 << 20):
            s.resize_(n * 4)
            assert s.nbytes() == n * 4
        assert t[:300].cpu().tolist() == list(range(300))
        before = torch.npu.memory_allocated()
        s.resize_(0)
        assert s.data_ptr() == 0 and torch.npu.memory_allocated() < before


@control.emulator_only
def test_a_failed_resize_changes_nothing() -> None:
    t = torch.arange(10.0).npu()
    s = t.untyped_storage()
    gc.collect()
    before = torch.npu.memory_allocated()
    with control.fault("aclrtMemcpyAsync:1:507899"), pytest.raises(RuntimeError, match="aclrtMemcpyAsync"):
        s.resize_(4000)
    assert s.nbytes() == 40 and torch.npu.memory_allocated() == before and t.tolist() == list(range(10))
    with control.fault(";".join(f"aclrtMalloc:{n}:207001" for n in range(1, 9))):
        with pytest.raises(torch.OutOfMemoryError):
            s.resize_(1 << 28)
    assert s.nbytes() == 40 and t.tolist() == list(range(10))


def test_resize_of_a_tensor() -> None:
    t = torch.arange(6.0).npu()
    t.resize_(4, 4)
    assert t.shape == (4, 4) and t.flatten()[:6].tolist() == [0, 1, 2, 3, 4, 5]


def test_python_numbers_and_arrays() -> None:
    t = torch.tensor([[1.5, -2.0], [3.0, 4.0]]).npu()
    assert t[0, 0].item() == 1.5 and float(t[1, 0]) == 3.0 and t.tolist() == [[1.5, -2.0], [3.0, 4.0]]
    assert bool(torch.tensor(True).npu()) and int(torch.tensor(7).npu()) == 7
    assert t.cpu().numpy().tolist() == t.numpy(force=True).tolist() == t.tolist()
    with pytest.raises(TypeError, match="can't convert npu:0 device type tensor to numpy"):
        t.numpy()
    with pytest.raises(RuntimeError, match="cannot be converted to Scalar"):
        t.item()


def test_how_it_is_shown() -> None:
    t = torch.tensor([1.0, 2.5]).npu()
    assert repr(t) == "tensor([1.0000, 2.5000], device='npu:0')"
    assert repr(torch.tensor([1], dtype=torch.int32).npu(1)) == "tensor([1], device='npu:1', dtype=torch.int32)"
    assert repr(torch.empty(0, device="npu")) == "tensor([], device='npu:0')"
    large = torch.arange(3000).npu()
    assert repr(large) == "tensor([   0,    1,    2,  ..., 2997, 2998, 2999], device='npu:0')"
    assert t.type() == "torch.npu.FloatTensor" and f"{t[1]:.1f}" == "2.5"


def pair(device: Any) -> Any:
    base = torch.arange(6.0).to(device)
    return base, base[2:4]


def test_deep_copies_share_what_was_shared() -> None:
    base, part = pair("npu")
    new, new_part = copy.deepcopy((base, part))
    new.copy_(torch.zeros(6))
    assert new_part.tolist() == [0.0, 0.0] and base.tolist() == list(range(6))
    assert new.device == base.device and new.untyped_storage() is new_part.untyped_storage()


def test_pickles_share_what_was_shared() -> None:
    base, part = pair("npu:1")
    new, new_part = pickle.loads(pickle.dumps((base, part)))
    assert new.device == torch.device("npu:1") and new.tolist() == base.tolist() and new_part.tolist() == part.tolist()
    assert new.untyped_storage() is new_part.untyped_storage() and new.data_ptr() != base.data_ptr()
    leaf = torch.ones(3).npu().requires_grad_()
    again = pickle.loads(pickle.dumps(leaf))
    assert again.requires_grad and again.is_npu
    storage = pickle.loads(pickle.dumps(base.untyped_storage()))
    assert storage.device == torch.device("npu:1") and storage.tolist() == base.untyped_storage().tolist()


def test_modules_move() -> None:
    model = torch.nn.Linear(2, 3)
    weight = model.weight.tolist()
    assert model.npu() is model and model.weight.is_npu and model.weight.is_leaf and model.weight.requires_grad
    assert model.to("npu:1", non_blocking=True).weight.device == torch.device("npu:1")
    assert model.cpu().weight.tolist() == weight


def test_memory_of_another_device_is_not_taken() -> None:
    with pytest.raises(RuntimeError, match='on device "npu:0" to a storage on different device "cpu"'):
        torch.empty(0, device="npu").set_(torch.zeros(3).untyped_storage())
    with pytest.raises(RuntimeError, match="devices must match"):
        torch.zeros(3).set_(torch.zeros(3).npu())


def test_set_and_as_strided_use_the_same_memory() -> None:
    base = torch.arange(6.0).npu()
    t = torch.empty(0, device="npu")
    t.set_(base.untyped_storage(), 2, (2,), (2,))
    assert t.tolist() == [2.0, 4.0] and t.data_ptr() == base.data_ptr() + 8
    assert base.as_strided((2, 2), (1, 2), 1).cpu().tolist() == [[1.0, 3.0], [2.0, 4.0]]


def test_capsules_come_back_as_the_same_memory() -> None:
    x = torch.arange(6, device="npu").view(2, 3).t()
    again = torch.from_dlpack(x)
    assert (again.tolist(), again.data_ptr(), again.device) == (x.tolist(), x.data_ptr(), x.device)
    assert x.__dlpack_device__() == (12, 0)
    assert torch.from_dlpack(torch.ones(2), device="npu").device.type == "npu"


def test_memory_that_a_capsule_tells_of_stays_where_it_is() -> None:
    x = torch.ones(3, device="npu")
    capsule = x.__dlpack__(max_version=(1, 0), stream=None)
    with pytest.raises(RuntimeError, match="not resizable"):
        x.untyped_storage().resize_(1000)
    del capsule
    x.untyped_storage().resize_(1000)
    assert x.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("shape", "shown", "dim", "index", "expected"),
    (
        ((1,), (4,), 0, [0], [1, 1, 1, 1]),
        ((2, 1), (2, 3), 1, [2], [[1, 1, 1], [1, 1, 1]]),
        ((2, 1), (2, 3), 0, [0], [[1, 1, 1], [0, 0, 0]]),
        ((1, 2), (3, 2), 1, [1], [[0, 1], [0, 1], [0, 1]]),
    ),
)
def test_index_fill_of_an_expanded_tensor(shape: Any, shown: Any, dim: int, index: Any, expected: Any) -> None:
    for device in ("cpu", "npu"):
        t = torch.zeros(shape, device=device).expand(shown)
        with pytest.warns(UserWarning, match="Use of index_fill_ on expanded tensors is deprecated"):
            t.index_fill_(dim, torch.tensor(index, device=device), 1)
        assert t.tolist() == expected
