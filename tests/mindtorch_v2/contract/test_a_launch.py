"""Contract A4, A5, A6: operators run through ACLNN, everything made is destroyed, and errors say what happened.

Invariant: every test is named after the id it proves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import mindtorch_v2 as torch

from .. import _npu
from ..npu import _layouts as layouts


@pytest.fixture(autouse=True)
def emulator() -> Iterator[_npu.Emulator | None]:
    yield from _npu.watched(_npu.start())


def ran(emulator: _npu.Emulator | None, function: str, before: dict[str, int]) -> bool:
    """Whether a kernel ran on the device since `before`; taken as given on hardware, which does not count."""
    torch.npu.synchronize()
    return emulator is None or emulator.runs(function) > before.get(function, 0)


def counted(emulator: _npu.Emulator | None, *functions: str) -> dict[str, int]:
    return {} if emulator is None else {f: emulator.runs(f) for f in functions}


# A4 -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "call", "expected"),
    [
        ("aclnnAdd", lambda a, b: a + b, [[11.0, 18.0, 33.0], [36.0, 55.0, 66.0]]),
        ("aclnnAdds", lambda a, b: a + 1, [[2.0, -1.0, 4.0], [-3.0, 6.0, 7.0]]),
        ("aclnnAdd", lambda a, b: torch.add(a, b, alpha=2), [[21.0, 38.0, 63.0], [76.0, 105.0, 126.0]]),
        ("aclnnMul", lambda a, b: a * b, [[10.0, -40.0, 90.0], [-160.0, 250.0, 360.0]]),
        ("aclnnMuls", lambda a, b: a * 0.5, [[0.5, -1.0, 1.5], [-2.0, 2.5, 3.0]]),
        ("aclnnRelu", lambda a, b: a.relu(), [[1.0, 0.0, 3.0], [0.0, 5.0, 6.0]]),
        ("aclnnReduceSum", lambda a, b: a.sum(), 9.0),
        ("aclnnReduceSum", lambda a, b: a.sum(0), [-3.0, 3.0, 9.0]),
        ("aclnnReduceSum", lambda a, b: a.sum(dim=1), [2.0, 7.0]),
        ("aclnnReduceSum", lambda a, b: a.sum(dim=1, keepdim=True), [[2.0], [7.0]]),
        ("aclnnReduceSum", lambda a, b: a.sum((0, 1)), 9.0),
        ("aclnnMm", lambda a, b: a @ b.t(), [[60.0, 120.0], [240.0, 450.0]]),
        ("aclnnMv", lambda a, b: a.matmul(b[0]), [60.0, 240.0]),
        ("aclnnBatchMatMul", lambda a, b: a[None].matmul(b.t()[None]), [[[60.0, 120.0], [240.0, 450.0]]]),
    ],
)
def test_A4_operators_run_through_aclnn(emulator: Any, function: str, call: Any, expected: Any) -> None:
    a = torch.tensor([[1.0, -2.0, 3.0], [-4.0, 5.0, 6.0]], device="npu")
    b = torch.tensor([[10.0, 20.0, 30.0], [40.0, 50.0, 60.0]], device="npu")
    before = counted(emulator, function)
    result = call(a, b)
    assert result.device.type == "npu"
    assert result.cpu().tolist() == expected
    assert ran(emulator, function, before)


def test_A4_a_sum_on_the_cpu_is_a_plain_float() -> None:
    total = torch.arange(4.0, device="npu").sum().cpu().numpy().tolist()
    assert type(total) is float and total == 6.0


# A5 -------------------------------------------------------------------------------------------------------------------


def _uses() -> None:
    a = torch.arange(6.0, device="npu").view(2, 3)
    torch.cat((a, a.t().contiguous().view(2, 3) + 1), 1)
    (a @ a.t()).relu().sum()
    a.clamp(0.5, 4.5).mul_(0.25)
    torch.npu.synchronize()


@_npu.emulator_only
def test_A5_everything_made_is_destroyed(emulator: _npu.Emulator) -> None:
    from mindtorch_v2._backends.npu import launch

    _uses()
    launch.release_caches()
    before = emulator.live_handles()
    for _ in range(3):
        _uses()
    assert emulator.live_handles() == before + launch.cached_handles()
    launch.release_caches()
    assert emulator.live_handles() == before and launch.cached_handles() == 0


FAILING = {
    "phase 1": "aclnnAddGetWorkspaceSize:1:561002",
    "phase 2": "aclnnAdd:1:561003",
    "first tensor": "aclCreateTensor:1:500000",
    "last tensor": "aclCreateTensor:3:500000",
    "scalar": "aclCreateScalar:1:500000",
    "destroying a tensor": "aclDestroyTensor:1:161001",
}


@_npu.emulator_only
@pytest.mark.parametrize("what", FAILING)
def test_A5_also_when_a_call_fails(emulator: _npu.Emulator, what: str) -> None:
    from mindtorch_v2._backends.npu import launch

    a = torch.arange(6.0, device="npu").view(2, 3).t()
    torch.npu.synchronize()
    launch.release_caches()
    handles, held = emulator.live_handles(), torch.npu.memory_allocated()
    emulator.fault(FAILING[what])
    with pytest.raises(RuntimeError, match="add"):
        torch.add(a, a, alpha=3)
    emulator.clear_faults()
    launch.release_caches()
    torch.npu.synchronize()
    assert emulator.live_handles() == handles
    assert torch.npu.memory_allocated() == held
    assert torch.add(a, a, alpha=3).cpu().tolist() == [[0.0, 12.0], [4.0, 16.0], [8.0, 20.0]]


@_npu.emulator_only
def test_A5_no_memory_for_a_workspace(emulator: _npu.Emulator) -> None:
    from mindtorch_v2._backends.npu import launch

    a = torch.ones(1 << 20, 8, device="npu").t()
    out = torch.empty(8, 1 << 20, device="npu")
    torch.npu.synchronize()
    torch.npu.empty_cache()
    launch.release_caches()
    handles = emulator.live_handles()
    for n in range(1, 8):
        emulator.fault(f"aclrtMalloc:{n}:207001")
    with pytest.raises(torch.OutOfMemoryError):
        torch.add(a, a, out=out)
    emulator.clear_faults()
    launch.release_caches()
    assert emulator.live_handles() == handles
    assert torch.add(a, a, out=out).sum().item() == 2.0 * (8 << 20)


@_npu.emulator_only
@pytest.mark.parametrize("variable", ["ACL_LAUNCH_BLOCKING"])
def test_A5_blocking_launches_report_at_once(variable: str) -> None:
    program = """
from mindtorch_v2._backends.npu.acl_loader import ensure_acl
import ctypes
a = torch.ones(3, device="npu")
torch.npu.synchronize()
fault = ensure_acl().emulator.ascendEmulatorSetFault
fault(b"aclnnMul:1:507015:async")
try:
    b = a * a
    print("late")
    torch.npu.synchronize()
except RuntimeError as error:
    print("aclnnMul" in str(error) and "mul" in str(error))
"""
    base = {"MINDTORCH_NPU": "emulator"}
    assert layouts.said(layouts.environment(None, **base), program) == "late\nTrue"
    assert layouts.said(layouts.environment(None, **base, **{variable: "1"}), program) == "True"


# A6 -------------------------------------------------------------------------------------------------------------------


@_npu.emulator_only
def test_A6_a_failing_call_names_everything(emulator: _npu.Emulator) -> None:
    a = torch.ones(2, 3, device="npu")
    emulator.fault("aclnnMulGetWorkspaceSize:1:561002")
    with pytest.raises(RuntimeError) as caught:
        a * a.t().contiguous().t()
    text = str(caught.value)
    for word in (
        "aclnnMul",
        "for mul",
        "npu:0",
        "Ascend910B",
        "561002",
        "tiling failed",
        "self float32 (2, 3)",
        "other float32 (2, 3) strides (1, 2)",
        "out float32 (2, 3)",
        "vendor:",
        "test_a_launch.py:",
    ):
        assert word in text, (word, text)


def test_A6_the_vendors_own_refusal_lists_what_is_accepted() -> None:
    from mindtorch_v2._backends.npu import aclnn

    bad = torch.ones(2, dtype=torch.float64, device="npu")
    with pytest.raises(RuntimeError) as caught:
        aclnn.launch("aclnnErfinv", "erfinv", bad, bad.clone())
    text = str(caught.value)
    for word in ("aclnnErfinv failed for erfinv on npu:0", "161002", "self float64 (2,); accepted: float32 float16"):
        assert word in text, (word, text)


def test_A6_a_dtype_without_a_kernel_names_what_is_accepted() -> None:
    x = torch.ones(4).to(torch.complex32).to("npu")
    with pytest.raises(RuntimeError, match="add: complex32 is not available on NPU.*aclnnAdd accepts.*float32"):
        x + x
