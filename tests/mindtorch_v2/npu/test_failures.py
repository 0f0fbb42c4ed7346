"""Failures of kernels: the exception names the operator and the line that launched it, and the next call works."""

from __future__ import annotations

import inspect

import pytest

import mindtorch_v2 as torch

from .._npu import Emulator, emulator_only
from . import _layouts as layouts

pytestmark = emulator_only


def line() -> int:
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    return frame.f_back.f_lineno


def numbers() -> tuple[torch.Tensor, torch.Tensor]:
    a, b = torch.arange(4.0).npu(), torch.ones(4).npu()
    torch.npu.synchronize()
    return a, b


def test_an_asynchronous_failure_names_operator_and_line(emulator: Emulator) -> None:
    a, b = numbers()
    emulator.fault("aclnnMul:1:507015:async")
    kept = a + b
    bad = a * b
    at = line() - 1
    kept = kept - b
    with pytest.raises(RuntimeError) as caught:
        torch.npu.synchronize()
    text = str(caught.value)
    assert "aclnnMul failed for mul on npu:0: AI core exception (status 507015)" in text
    assert f"launched at {__file__}:{at}" in text
    assert bad.shape == kept.shape
    assert (a * b).cpu().tolist() == [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize("read", [lambda t: t.cpu(), lambda t: t.sum().item(), lambda t: t.tolist(), repr])
def test_reading_reports_it_too(emulator: Emulator, read: object) -> None:
    a, b = numbers()
    emulator.fault("aclnnMul:1:507015:async")
    bad = a * b
    with pytest.raises(RuntimeError, match="(?s)aclnnMul failed for mul.*launched at"):
        read(bad)  # type: ignore[operator]
    assert (a * b).cpu().tolist() == [0.0, 1.0, 2.0, 3.0]


def test_an_illegal_index_is_found_on_the_device() -> None:
    table, index = torch.ones(4, 2).npu(), torch.tensor([0, 9]).npu()
    torch.npu.synchronize()
    picked = table.index_select(0, index)
    at = line() - 1
    with pytest.raises(RuntimeError) as caught:
        picked.cpu()
    assert "for index_select on npu:0" in str(caught.value) and f"launched at {__file__}:{at}" in str(caught.value)
    torch.npu.synchronize()


def test_a_failure_in_backward_names_its_operator(emulator: Emulator) -> None:
    a, b = numbers()
    a.requires_grad_()
    loss = (a * b).sum()
    torch.npu.synchronize()
    emulator.fault("aclnnMul:1:507015:async")
    loss.backward()
    at = line() - 1
    with pytest.raises(RuntimeError, match="aclnnMul failed for mul") as caught:
        torch.npu.synchronize()
    assert f"{__file__}:{at}" in str(caught.value)


def test_streams_are_blamed_apart(emulator: Emulator) -> None:
    a, b = numbers()
    stream = torch.npu.Stream()
    emulator.fault("aclnnMul:1:507015:async")
    with torch.npu.stream(stream):
        bad = a * b
    fine = a + b
    torch.npu.default_stream().synchronize()
    with pytest.raises(RuntimeError, match="aclnnMul failed for mul"):
        stream.synchronize()
    assert fine.cpu().tolist() == [1.0, 2.0, 3.0, 4.0] and bad.shape == (4,)


def test_a_launch_that_fails_names_everything(emulator: Emulator) -> None:
    a, b = numbers()
    emulator.fault("aclnnMulGetWorkspaceSize:1:161002")
    with pytest.raises(torch.npu.AclError) as caught:
        a * b
    at = line() - 1
    text = str(caught.value)
    assert caught.value.code == 161002
    for part in ("aclnnMul failed for mul on npu:0", "161002", "float32 (4,)", "injected fault", f"{__file__}:{at}"):
        assert part in text, text
    assert (a * b).cpu().tolist() == [0.0, 1.0, 2.0, 3.0]


BLOCKING = """
a = torch.ones(3, device="npu")
torch.npu.synchronize()
from mindtorch_v2._backends.npu.acl_loader import ensure_acl
ensure_acl().emulator.ascendEmulatorSetFault(b"aclnnMul:1:507015:async")
try:
    b = a * a
    print("launched")
    torch.npu.synchronize()
except RuntimeError as error:
    print("failed for mul" in str(error))
"""


@pytest.mark.parametrize("variable", ["ACL_LAUNCH_BLOCKING", "ASCEND_LAUNCH_BLOCKING"])
@pytest.mark.parametrize("value, expected", [("1", "True"), ("0", "launched\nTrue")])
def test_launch_blocking_reports_at_the_launch(variable: str, value: str, expected: str) -> None:
    env = layouts.environment(None, MINDTORCH_NPU="emulator", **{variable: value})
    assert layouts.said(env, BLOCKING) == expected


LOSS = """
from mindtorch_v2._backends.npu.acl_loader import ensure_acl
a = torch.ones(3, device="npu")
kept = torch.ones(3, device="npu:1")
torch.npu.synchronize()
ensure_acl().emulator.ascendEmulatorLoseDevice(0)
for use in (lambda: (a + a).cpu(), lambda: a + a, lambda: a.cpu(), lambda: a.tolist(), lambda: torch.ones(2).npu(),
            lambda: torch.npu.synchronize()):
    try:
        use()
        print("worked")
    except RuntimeError as error:
        print("lost" in str(error))
print((torch.ones(2) + 1).tolist(), (kept + kept).tolist())
del a
"""


def test_after_the_loss_of_a_device_every_call_says_so() -> None:
    env = layouts.environment(None, MINDTORCH_NPU="emulator", ASCEND_EMULATOR_DEVICES="2")
    assert layouts.said(env, LOSS).splitlines() == ["True"] * 6 + ["[2.0, 2.0] [2.0, 2.0, 2.0]"]
