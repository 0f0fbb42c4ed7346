"""Profiles of NPUs: launches, kernels and copies with the device's time, joined with what started them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as torch

from ..profiler._format import check
from ..profiler.test_traces import step


def profiled(**options: Any) -> Any:
    step(torch, "npu")
    with torch.profiler.profile(**options) as p:
        step(torch, "npu")
        torch.ones(64, 64, device="npu").cpu()
    return p


def test_kernels_belong_to_operators() -> None:
    p = profiled(profile_memory=True)
    assert p.profiler.use_device == "npu"
    kinds = torch.autograd.DeviceType
    on_device = [e for e in p.events() if e.device_type == kinds.PrivateUse1]
    assert {"Addmm", "Memcpy DtoH"} <= {e.name for e in on_device}
    addmm = next(e for e in p.events() if e.name == "aten::addmm")
    assert [k.name for k in addmm.kernels] == ["Addmm"] and addmm.device_time_total > 0
    # What all operators started is what ran, but for what was launched outside of any.
    linked = [e for e in on_device if e.linked_correlation_id]
    cpu = [e for e in p.events() if e.device_type == kinds.CPU]
    assert sum(k.duration for e in cpu for k in e.kernels) == pytest.approx(
        sum(e.time_range.elapsed_us() for e in linked)
    )
    assert addmm.device_memory_usage >= 512
    copy = next(e for e in on_device if e.name == "Memcpy DtoH")
    assert copy.event_metadata.bytes == 64 * 64 * 4
    table = p.key_averages().table(sort_by="self_npu_time_total", row_limit=5)
    assert "Self NPU %" in table and "NPU Mem" in table and "Self NPU time total" in table


def test_streams_have_rows_and_launches_are_joined(tmp_path: Path) -> None:
    side = torch.npu.Stream()
    with torch.profiler.profile(record_shapes=True) as p:
        step(torch, "npu")
        with torch.npu.stream(side):
            torch.ones(8, device="npu").exp()
    p.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = json.loads((tmp_path / "trace.json").read_text())
    events = check(trace)
    assert [d["id"] for d in trace["deviceProperties"]] == [0]
    kernels = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy")]
    assert {e["pid"] for e in kernels} == {0} and len({e["tid"] for e in kernels}) == 2
    flows = [e for e in events if e.get("cat") == "ac2g"]
    assert len(flows) == 2 * len(kernels)
    launched = {e["args"]["correlation"]: e for e in events if e.get("cat") == "privateuse1_runtime"}
    for k in kernels:
        assert k["ts"] >= launched[k["args"]["correlation"]]["ts"] - 1


def test_time_of_the_device_agrees_with_its_events() -> None:
    """The kernels of a stretch last no longer than the stretch, and fill most of it when they are large."""
    a = torch.ones(256, 256, device="npu")
    best = 0.0
    for _ in range(3):
        start, end = torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
        with torch.profiler.profile() as p:
            start.record()
            for _ in range(5):
                a = a @ a
                a = a / a.max()
            end.record()
            end.synchronize()
        spent = start.elapsed_time(end) * 1000
        kinds = torch.autograd.DeviceType
        busy = sum(e.time_range.elapsed_us() for e in p.events() if e.device_type == kinds.PrivateUse1)
        assert busy <= 1.1 * spent
        best = max(best, busy / spent)
    assert best > 0.2


def test_launches_are_let_alone_afterwards() -> None:
    from mindtorch_v2._backends.npu import launch

    profiled()
    assert all(f.watched is None for f in launch.STATE.functions.values())
    cpu = torch.profiler.ProfilerActivity.CPU
    with torch.profiler.profile(activities=[cpu]) as p:
        torch.ones(3, device="npu").exp()
    assert p.profiler.use_device is None
    assert all(e.device_type == torch.autograd.DeviceType.CPU for e in p.events())
    npu = torch.profiler.ProfilerActivity.NPU
    with torch.profiler.profile(activities=[npu]) as p:
        torch.ones(3, device="npu").exp()
    assert "Exp" in {e.name for e in p.events()} and "aten::exp" not in {e.name for e in p.events()}
