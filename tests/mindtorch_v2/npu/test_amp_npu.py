"""Autocast and loss scaling on the NPU: PyTorch's choices for accelerators, asked of its fake CUDA tensors."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import mindtorch_v2 as torch

from .. import _npu, _oracle
from ..amp import _results
from ..amp._training import MODELS, losses, start
from ..parity import _infos
from . import _control

POLICY = __import__("mindtorch_v2._ops.autocast_policy", fromlist=["POLICY"]).POLICY["npu"]
# Every operator of the lists, and some that are made of them.
MADE_OF_THEM = {"inner", "cross_entropy_loss", "baddbmm", "cosine_embedding_loss", "var_mean", "softmin", "addbmm"}
CASES = [c for c in _infos.covered() if c.row in POLICY or c.row in MADE_OF_THEM or c.info.name == "einsum"]


def fake(value: Any) -> Any:
    oracle = _oracle.load()
    return _oracle.tree_map(
        lambda t: oracle.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="cuda"),
        value,
        _oracle.is_oracle_tensor,
    )


def theirs(case: _infos.Covered, args: Any, kwargs: Any) -> Any:
    """What PyTorch answers for tensors of a CUDA device that have no data."""
    oracle = _oracle.load()
    from torch._subclasses.fake_tensor import FakeTensorMode

    logging.disable()
    oracle.set_autocast_enabled("cuda", True)
    try:
        with FakeTensorMode():
            found = _infos.attempt(_infos.in_oracle(case.info), *fake((args, kwargs)))
            return None if isinstance(found, _infos.Failure) else _results.dtypes(found)
    finally:
        oracle.set_autocast_enabled("cuda", False)
        logging.disable(logging.NOTSET)


@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_dtypes_of_results(case: _infos.Covered) -> None:
    """Where PyTorch answers at all, and so do we; what an NPU has no function for is tested elsewhere."""
    if not _infos.supported(case.info, "float32"):
        return
    for given in _results.GIVEN:
        for sample in _infos.samples(case.info, "float32", count=1):
            args, kwargs = _results.lowered(_infos.arguments(sample), given, "float16")
            expected = theirs(case, args, kwargs)
            mine = _oracle.convert_argument([args, kwargs])
            args, kwargs = _oracle.tree_map(lambda t: t.to("npu"), mine, _oracle.is_subject_tensor)
            with torch.autocast("npu"):
                actual = _infos.attempt(_infos.in_subject(case.info), args, kwargs)
            if expected is not None and not isinstance(actual, _infos.Failure):
                assert _results.dtypes(actual) == expected, (case.label, given, _infos.describe(sample))


def test_each_device_type_is_switched_by_itself() -> None:
    a = torch.ones(2, 2)
    b = a.npu() if hasattr(a, "npu") else a.to("npu")
    with torch.autocast("npu"):
        assert torch.get_autocast_dtype("npu") == torch.float16
        assert (b @ b).dtype == torch.float16 and (a @ a).dtype == torch.float32
        with torch.autocast("cpu"):
            assert (b @ b).dtype == torch.float16 and (a @ a).dtype == torch.bfloat16
            with torch.autocast("npu", enabled=False):
                assert (b @ b).dtype == torch.float32 and (a @ a).dtype == torch.bfloat16
    with torch.autocast("npu", torch.bfloat16):
        assert (b @ b).dtype == torch.bfloat16
    with pytest.warns(UserWarning, match="In npu autocast, but the target dtype is not supported. Disabling autocast."):
        torch.autocast("npu", torch.float32)


def test_binary_cross_entropy_is_banned() -> None:
    a = torch.full((2,), 0.5, device="npu")
    with torch.autocast("npu"), pytest.raises(RuntimeError, match="are unsafe to autocast"):
        torch.nn.functional.binary_cross_entropy(a, a)


def steps(device: str, values: list[float], dtype: Any = None) -> list[Any]:
    p = torch.ones(3, device=device, dtype=dtype, requires_grad=True)
    q = torch.ones(2, 2, device=device, requires_grad=True)
    optimizer = torch.optim.SGD([p, q], lr=0.125)
    scaler = torch.amp.GradScaler(device, init_scale=8.0, growth_interval=2)
    seen: list[Any] = []
    for g in values:
        optimizer.zero_grad()
        scaler.scale((p * g).sum() + q.sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        seen.append((scaler.state_dict(), p.tolist(), q.tolist()))
    return seen


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_scaling_is_the_cpus(dtype: Any) -> None:
    values = [1.0, 2.0, float("inf"), 1.0, float("nan"), 3.0, 1.0]
    assert steps("npu", values, dtype) == steps("cpu", values, dtype)


@_control.emulator_only
def test_one_launch_unscales_a_list(emulator: _npu.Emulator) -> None:
    grads = [torch.ones(n, device="npu") for n in (1, 5, 300)]
    found, scale = torch.zeros((), device="npu"), torch.full((), 0.5, device="npu")
    torch.npu.synchronize()
    before = emulator.runs()
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, scale)
    torch.npu.synchronize()
    assert emulator.runs() - before == 1
    assert [g.sum().item() for g in grads] == [0.5, 2.5, 150.0] and found.item() == 0
    # What the vendor has no function for is composed, on the device.
    apart = torch.ones(4, 2, device="npu")[:, 0]
    left = emulator.bytes_to_host()
    torch._amp_foreach_non_finite_check_and_unscale_(
        [apart, torch.full((2,), float("inf"), device="npu")], found, scale
    )
    torch.npu.synchronize()
    assert emulator.bytes_to_host() == left
    assert apart.tolist() == [0.5] * 4 and found.item() == 1


def test_nothing_waits_for_the_device() -> None:
    """Only the question whether to step does."""
    scale, tracker = torch.full((), 4.0, device="npu"), torch.zeros((), dtype=torch.int32, device="npu")
    torch._amp_update_scale_(scale, tracker, torch.ones((), device="npu"), 2.0, 0.5, 3)
    assert (scale.item(), tracker.item()) == (2.0, 0)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", MODELS)
def test_training_is_the_cpus(name: str, dtype: str) -> None:
    """The lists differ (on an NPU normalisations and losses are float32), so do roundings."""
    state = start(torch, name)
    want = losses(torch, name, "cpu", dtype, 30, state, scaled=True)
    got = losses(torch, name, "npu", dtype, 30, state, scaled=True)
    assert want[-1] < 0.75 * want[0]
    assert got == pytest.approx(want, rel=0.05 if dtype == "bfloat16" else 0.01)


def test_older_names() -> None:
    a = torch.ones(2, 2, device="npu")
    with pytest.warns(FutureWarning, match=r"`torch.npu.amp.autocast\(args...\)` is deprecated"):
        block = torch.npu.amp.autocast()
    with block:
        assert (a @ a).dtype == torch.float16
    with pytest.warns(FutureWarning, match=r"torch.amp.GradScaler\('npu', args...\)"):
        assert torch.npu.amp.GradScaler(init_scale=2.0).get_scale() == 2.0


def test_deterministic_mode_fills_memory_and_refuses() -> None:
    x, i = torch.zeros(3, device="npu"), torch.zeros(1, dtype=torch.int64, device="npu")
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.empty(3, device="npu").isnan().all().item()
        assert torch.ones(2, device="npu").resize_(3).isnan().tolist() == [False, False, True]
        with pytest.raises(RuntimeError, match="put_ does not have a deterministic implementation"):
            x.put_(i, torch.ones(1, device="npu"))
    finally:
        torch.use_deterministic_algorithms(False)
    assert x.put_(i, torch.ones(1, device="npu")).tolist() == [1.0, 0.0, 0.0]
