"""Copies between host and devices: every dtype and layout, both ways, in the order of streams."""

from __future__ import annotations

import gc
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _dtype
from mindtorch_v2._backends.npu import runtime

from . import _control as control
from ._layouts import environment, said

DTYPES = list(_dtype.ALL)
LAYOUTS: dict[str, Any] = {
    "contiguous": lambda t: t,
    "transposed": lambda t: t.transpose(0, 2),
    "offset": lambda t: t[1:],
    "stepped": lambda t: t[:, ::2, ::3],
    "selected": lambda t: t[1, 2],
    "expanded": lambda t: t[:1].expand(3, 4, 6),
    "empty": lambda t: t[:0],
    "single": lambda t: t[1, 2, 3],
}


def sample(dt: Any) -> Any:
    values = torch.arange(72).reshape(3, 4, 6)
    if dt is torch.bool:
        return values % 3 == 0
    return (values - 30 if dt.is_signed else values).to(dt)


def plain(t: Any) -> Any:
    """Something comparable; float8 has no Python numbers of its own."""
    return t.to(torch.float32).tolist() if t.dtype.name.startswith("float8") else t.tolist()


@pytest.mark.parametrize("dt", DTYPES, ids=lambda d: d.name)
def test_every_dtype_goes_there_and_back(dt: Any) -> None:
    t = sample(dt)
    moved = t.npu()
    assert moved.is_npu and moved.dtype is dt and moved.shape == t.shape and moved.device == torch.device("npu:0")
    assert plain(moved.cpu()) == plain(t)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dt", [torch.float32, torch.int64, torch.bool, torch.bfloat16], ids=lambda d: d.name)
def test_every_layout_goes_to_the_device(layout: str, dt: Any) -> None:
    t = LAYOUTS[layout](sample(dt))
    moved = t.npu()
    assert moved.stride() == torch.empty_like(t).stride()
    assert moved.cpu().tolist() == t.tolist()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dt", [torch.float32, torch.int64, torch.bool, torch.float16], ids=lambda d: d.name)
def test_every_layout_comes_from_the_device(layout: str, dt: Any) -> None:
    t = LAYOUTS[layout](sample(dt).npu())
    assert t.cpu().tolist() == LAYOUTS[layout](sample(dt)).tolist()
    assert t.tolist() == t.cpu().tolist()


@pytest.mark.parametrize("layout", [k for k in LAYOUTS if k != "expanded"])
def test_copy_into_every_layout_on_both_sides(layout: str) -> None:
    source = LAYOUTS[layout](sample(torch.float32)) * 2
    base = torch.zeros(3, 4, 6).npu()
    LAYOUTS[layout](base).copy_(source)
    expected = torch.zeros(3, 4, 6)
    LAYOUTS[layout](expected).copy_(source)
    assert base.cpu().tolist() == expected.tolist()
    back = torch.zeros(3, 4, 6)
    LAYOUTS[layout](back).copy_(source.npu())
    assert back.tolist() == expected.tolist()


def test_a_copy_casts_and_broadcasts_on_the_way() -> None:
    t = torch.tensor([1.7, -2.3, 250.0])
    assert t.to("npu", torch.int32).tolist() == [1, -2, 250]
    base = torch.zeros(2, 3, dtype=torch.float16).npu()
    base.copy_(t)
    assert base.cpu().tolist() == [t.half().tolist()] * 2
    host = torch.zeros(2, 3, dtype=torch.float64)
    host.copy_(t.npu())
    assert host.tolist() == [t.double().tolist()] * 2


def test_to_keeps_what_is_there() -> None:
    t = torch.ones(3).npu()
    assert t.npu() is t and t.to("npu") is t and t.to("npu:0") is t and t.to("npu", copy=True) is not t
    with pytest.raises(RuntimeError, match="must be npu device"):
        t.npu("cpu")


def test_gradients_cross_devices() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x.npu()
    y.cpu().backward(torch.tensor([1.0, 2.0, 3.0]))
    assert x.grad.tolist() == [1.0, 2.0, 3.0] and x.grad.is_cpu


@control.emulator_only
def test_a_blocking_copy_comes_after_the_work_of_the_stream() -> None:
    """The vendor's synchronous copy does not wait for streams; ours does."""
    stream = torch.npu.Stream()
    with torch.npu.stream(stream):
        source, target = torch.arange(64.0).npu(), torch.zeros(64).npu()
        with control.slow(stream, 30):
            target.copy_(source)
            assert target.cpu().tolist() == list(range(64))


# -- late copies --------------------------------------------------------------------------------------------------
@control.emulator_only
def test_a_late_copy_to_the_device_returns_before_it_has_run() -> None:
    stream = torch.npu.Stream()
    host = torch.arange(256.0).pin_memory()
    with torch.npu.stream(stream), control.slow(stream):
        moved = host.to("npu", non_blocking=True)
        assert not stream.query()
        stream.synchronize()
        assert moved.cpu().tolist() == host.tolist()


@control.emulator_only
def test_a_late_copy_to_the_host_returns_before_it_has_run() -> None:
    stream = torch.npu.Stream()
    host = torch.zeros(256).pin_memory()
    with torch.npu.stream(stream):
        source = torch.arange(256.0).npu()
        with control.slow(stream):
            host.copy_(source, non_blocking=True)
            assert not stream.query() and host.sum().item() == 0
            stream.synchronize()
            assert host.tolist() == list(range(256))


@control.emulator_only
def test_a_late_move_to_the_host_gets_pinned_memory() -> None:
    stream = torch.npu.Stream()
    with torch.npu.stream(stream):
        source = torch.arange(256.0).reshape(16, 16).npu()
        with control.slow(stream):
            host, turned = source.to("cpu", non_blocking=True), source.t().to("cpu", non_blocking=True)
            assert host.is_pinned() and turned.is_pinned() and not stream.query()
            stream.synchronize()
            assert host.tolist() == source.cpu().tolist() and turned.tolist() == host.t().tolist()
    assert not source.cpu().is_pinned()


@control.emulator_only
def test_dense_memory_is_copied_as_it_lies() -> None:
    """No kernel is needed to move a transposed tensor."""
    runs = control.emulator().runs()
    t = sample(torch.float32).permute(2, 0, 1)
    moved = t.npu()
    assert moved.stride() == t.stride() and moved.cpu().tolist() == t.tolist() and moved.cpu().stride() == t.stride()
    assert control.emulator().runs() == runs


@control.emulator_only
def test_pageable_memory_is_never_late() -> None:
    stream = torch.npu.Stream()
    host = torch.arange(256.0)
    with torch.npu.stream(stream), control.slow(stream, 20):
        moved = host.to("npu", non_blocking=True)
        host.zero_()
        assert moved.cpu().tolist() == list(range(256))
        back = torch.zeros(256)
        back.copy_(moved, non_blocking=True)
        assert back.tolist() == list(range(256))


@control.emulator_only
def test_a_late_copy_into_a_strided_host_tensor_is_complete() -> None:
    """The host spreads the values itself, so it has to wait for them."""
    stream = torch.npu.Stream()
    base = torch.zeros(4, 6).pin_memory()
    with torch.npu.stream(stream):
        source = torch.arange(24.0).reshape(6, 4).npu()
        with control.slow(stream, 20):
            base.t().copy_(source, non_blocking=True)
            assert base.tolist() == source.cpu().t().tolist()


@control.emulator_only
def test_host_memory_of_a_late_copy_is_not_reused_before_it_ran() -> None:
    stream = torch.npu.Stream()
    host = torch.arange(1000.0).pin_memory()
    address = host.data_ptr()
    with torch.npu.stream(stream), control.slow(stream):
        moved = host.to("npu", non_blocking=True)
        del host
        other = torch.full((1000,), -1.0).pin_memory()
        assert other.data_ptr() != address
        stream.synchronize()
        assert moved.cpu().tolist() == list(range(1000))
    again = torch.zeros(1000).pin_memory()
    assert again.data_ptr() == address


@control.emulator_only
@pytest.mark.parametrize("seed", range(1, 21))
def test_late_copies_in_any_order_of_the_streams(seed: int) -> None:
    with control.delays(seed):
        first, second = torch.npu.Stream(), torch.npu.Stream()
        for n in range(4):
            host = torch.full((300,), float(n)).pin_memory()
            with torch.npu.stream(first):
                there = host.to("npu", non_blocking=True)
            second.wait_stream(first)
            with torch.npu.stream(second):
                there.record_stream(second)
                back = torch.empty(300, pin_memory=True)
                back.copy_(there, non_blocking=True)
            del host, there
            second.synchronize()
            assert back.tolist() == [float(n)] * 300


# -- pinned memory ------------------------------------------------------------------------------------------------
def test_pinned_tensors() -> None:
    t = torch.arange(6.0).reshape(2, 3).t()
    p = t.pin_memory()
    assert p.is_pinned() and not t.is_pinned() and p.is_cpu
    assert p.tolist() == t.tolist() and p.stride() == t.stride()
    assert p.pin_memory() is p and p[1:].is_pinned() and p.untyped_storage().is_pinned()
    assert p.untyped_storage()[4:8].is_pinned() and not p.clone().is_pinned()
    assert torch.zeros(3).untyped_storage().pin_memory().is_pinned()
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        t.npu().pin_memory()


@pytest.mark.parametrize(
    "make",
    [
        lambda **k: torch.empty(3, **k),
        lambda **k: torch.zeros(3, **k),
        lambda **k: torch.full((3,), 2.5, **k),
        lambda **k: torch.tensor([1.0, 2.0], **k),
        lambda **k: torch.arange(5, **k),
        lambda **k: torch.rand(4, **k),
        lambda **k: torch.zeros_like(torch.ones(2, 2), **k),
        lambda **k: torch.ones(2).new_zeros((4,), **k),
        lambda **k: torch.ones(2).new_tensor([1, 2], **k),
        lambda **k: torch.eye(3, **k),
    ],
)
def test_factories_heed_pin_memory(make: Any) -> None:
    assert make(pin_memory=True).is_pinned() and not make(pin_memory=False).is_pinned()
    assert make(pin_memory=True).shape == make().shape and make(pin_memory=True).dtype is make().dtype


PINS = (
    "torch.tensor([1, 2], pin_memory=True)",
    "torch.zeros(2, 3, pin_memory=True)",
    "torch.rand(2, pin_memory=True)",
    "torch.empty_like(torch.ones(2), pin_memory=True)",
    "torch.ones(2).pin_memory()",
    "torch.ones(2).untyped_storage().pin_memory()",
    "torch.ones(2).is_pinned()",
)


def test_pinned_memory_where_there_is_no_npu(oracle: Any) -> None:
    """In a process of its own: here there is one."""
    expected = []
    for text in PINS:
        try:
            expected.append(repr(eval(text, {"torch": oracle})))
        except RuntimeError as error:
            expected.append(str(error))
    code = (
        "for text in " + repr(PINS) + ":\n    try:\n        print(repr(eval(text)))\n"
        "    except RuntimeError as error:\n        print(error)\n"
    )
    assert said(environment(None, MINDTORCH_NPU="off"), code).splitlines() == expected


@control.emulator_only
def test_pinned_memory_is_cached_and_given_back() -> None:
    t = torch.zeros(5000).pin_memory()
    address = t.data_ptr()
    del t
    assert torch.zeros(4500).pin_memory().data_ptr() == address
    made = control.emulator().calls("aclrtMallocHost")
    freed = control.emulator().calls("aclrtFreeHost")
    torch.zeros(4200).pin_memory()
    assert control.emulator().calls("aclrtMallocHost") == made
    torch.npu.empty_cache()
    assert control.emulator().calls("aclrtFreeHost") > freed
    kept = torch.zeros(4200).pin_memory()
    del kept
    with control.fault("aclrtMallocHost:1:207001"):
        assert torch.zeros(90000).pin_memory().is_pinned()
    with control.fault("aclrtMallocHost:1:207001;aclrtMallocHost:2:207001"):
        with pytest.raises(RuntimeError, match="aclrtMallocHost failed for 1048576 bytes of page-locked memory"):
            torch.zeros(200000).pin_memory()


# -- several devices ----------------------------------------------------------------------------------------------
def test_between_two_devices() -> None:
    t = sample(torch.float32).npu(0)
    there = t.to("npu:1")
    assert there.device == torch.device("npu:1") and there.cpu().tolist() == t.cpu().tolist()
    assert there.transpose(0, 2).to("npu:0").cpu().tolist() == t.cpu().transpose(0, 2).tolist()
    assert t.to("npu:1", torch.int32).cpu().tolist() == t.cpu().int().tolist()
    base = torch.zeros(3, 4, 6).npu(1)
    base[:, ::2].copy_(t[:, ::2])
    assert base.cpu()[:, ::2].tolist() == t.cpu()[:, ::2].tolist() and base.cpu()[:, 1::2].sum().item() == 0


@control.emulator_only
@pytest.mark.parametrize("seed", range(1, 6))
def test_between_two_devices_after_their_work(seed: int) -> None:
    with control.delays(seed):
        a, b = torch.zeros(500).npu(0), torch.ones(500).npu(1)
        a.copy_(torch.full((500,), float(seed)).pin_memory(), non_blocking=True)
        b.copy_(a)
        assert b.cpu().tolist() == [float(seed)] * 500


def test_devices_that_cannot_reach_each_other_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from mindtorch_v2._backends.npu import transfer

    monkeypatch.setattr(runtime, "can_access_peer", lambda index, peer: False)
    monkeypatch.setattr(transfer, "_PEERS", set())
    with pytest.raises(RuntimeError, match="npu:0 cannot reach the memory of npu:1"):
        torch.ones(3).npu(0).to("npu:1")


# -- failures -----------------------------------------------------------------------------------------------------
@control.emulator_only
def test_a_failing_copy_is_named_and_leaves_nothing_behind() -> None:
    gc.collect()
    before = torch.npu.memory_allocated()
    with control.fault("aclrtMemcpyAsync:1:507899"), pytest.raises(RuntimeError, match="aclrtMemcpyAsync.*507899"):
        torch.ones(100).npu()
    gc.collect()
    assert torch.npu.memory_allocated() == before
    assert torch.ones(100).npu().cpu().tolist() == [1.0] * 100


@control.emulator_only
def test_a_late_copy_without_an_event_has_run() -> None:
    host = torch.ones(100).pin_memory()
    stream = torch.npu.Stream()
    with torch.npu.stream(stream), control.slow(stream, 20):
        target = torch.zeros(100).npu()
        with control.fault("aclrtRecordEvent:1:507899"), pytest.raises(RuntimeError, match="aclrtRecordEvent"):
            target.copy_(host, non_blocking=True)
        assert stream.query()
        assert target.cpu().tolist() == [1.0] * 100


@pytest.mark.parametrize("device", ("cpu", "meta", "npu"))
def test_a_geometry_with_strides_of_another_number_is_refused(device: str) -> None:
    t = torch.ones(2, 3, device=device)
    with pytest.raises(RuntimeError, match="expected as many strides as sizes"):
        torch.ops.aten._strided_map(t, (2, 3), (3, 1), 0, (1, 1, 2), (2,), 1, True)
    with pytest.raises(RuntimeError, match="expected an input of the shape"):
        torch.ops.aten._strided_map(t, (6,), (1,), 0, (2, 2), (1, 1), 1, True)
