"""A training step in which one vendor call fails: every call in turn, at once or later on the device.

Invariant: a failing call becomes an exception that names the operator, loses no handle and no byte, and the next step
succeeds.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _native
from mindtorch_v2._backends.npu import launch

from .. import _npu
from . import _control
from ._models import Training

pytestmark = _control.emulator_only
PARTS = 8
# Steps after which all that recurs is kept.
RECURRING = 12
REPEATABLE = "aclSetAclOpExecutorRepeatable"


class Subject:
    """One model, trained a step at a time, and what the device holds between steps."""

    def __init__(self, emulator: _npu.Emulator) -> None:
        self.emulator = emulator
        self.training = Training("mlp", "npu")
        # What recurs is kept in the first steps, where other tests have left room: later ones make fewer calls.
        launch.release_caches()
        for _ in range(RECURRING):
            self.step()
        self.calls = {False: min(self.count(False) for _ in range(4)), True: self.count(True)}
        for _ in range(RECURRING):
            self.step()
        self.launches = self.launched()
        self.held = self.holdings()

    def step(self) -> float:
        return float(self.training.step().item())

    def count(self, fresh: bool) -> int:
        """The calls of a step; `fresh`: of one for which nothing was kept."""
        if fresh:
            launch.release_caches()
        before = self.emulator.calls()
        self.step()
        return self.emulator.calls() - before

    def launched(self) -> list[str]:
        """The vendor functions of one step, in order."""
        torch.npu.synchronize()
        before = _native.vendor_launches()
        self.step()
        torch.npu.synchronize()
        return [_native.vendor_launches(i)[0] for i in range(before, _native.vendor_launches())]

    def holdings(self) -> tuple[int, int]:
        gc.collect()
        torch.npu.synchronize()
        return self.emulator.live_handles() - launch.cached_handles(), torch.npu.memory_allocated()

    def failing(self, spec: str, fresh: bool = False) -> BaseException | None:
        """The exception of a step in which `spec` happens; afterwards everything is as it was. None where only keeping
        an executor failed, which a launch does without, or the step came by without the call that was to fail."""
        if fresh:
            launch.release_caches()
        asked, before = self.emulator.calls(REPEATABLE), self.emulator.calls()
        self.emulator.fault(spec)
        caught: BaseException | None = None
        try:
            self.step()
        except Exception as error:
            caught = error.with_traceback(None)
        else:
            made, function = self.emulator.calls() - before, spec.split(":")[0]
            spared = function == "*" and made < int(spec.split(":")[1])
            assert spared or (fresh and self.emulator.calls(REPEATABLE) > asked), f"{spec}: no exception"
        finally:
            self.emulator.clear_faults()
        for _ in range(1 if fresh else RECURRING):
            self.step()
        assert self.holdings() == self.held, f"{spec}: {caught}"
        return caught


@pytest.fixture(scope="module")
def subject() -> Iterator[Subject]:
    emulator = _npu.start()
    assert emulator is not None
    # Everything is collected hundreds of times below: what other tests hold would be walked each time.
    gc.collect()
    gc.freeze()
    yield Subject(emulator)
    gc.unfreeze()


def names_an_operator(error: BaseException) -> bool:
    """The operator, or for what belongs to none the vendor's function and what was being done."""
    return bool(re.search(r"(failed for \w+|in \w+ \(|for \w+ on npu)", str(error)))


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize("part", range(PARTS))
def test_every_call(part: int, fresh: bool, subject: Subject) -> None:
    for _ in range(0 if fresh else RECURRING):
        subject.step()
    missed = 0
    for k in range(1 + part, subject.calls[fresh] + 1, PARTS):
        error = subject.failing(f"*:{k}:507899", fresh)
        if error is None:
            missed += 1
            assert fresh or missed == 1, "steps make fewer calls than were counted"
            continue
        assert isinstance(error, RuntimeError), f"call {k}: {error!r}"
        assert "507899" in str(error) or "no object was made" in str(error), f"call {k}: {error}"
        assert names_an_operator(error), f"call {k}: {error}"
        assert "test_faults.py" in str(error) or "_models.py" in str(error), f"call {k} names no line: {error}"


def test_every_kernel_failing_later(subject: Subject) -> None:
    seen: dict[str, int] = {}
    for function in subject.launches:
        seen[function] = seen.get(function, 0) + 1
        error = subject.failing(f"{function}:{seen[function]}:507015:async")
        text = str(error)
        assert isinstance(error, RuntimeError), f"{function}: {error!r}"
        assert function in text, f"{function}: {text}"
        assert "507015" in text, text
        assert "_models.py" in text or "test_faults.py" in text or "optim" in text, text


class Large:
    """Arithmetic on tensors so large that each has memory of its own from the vendor."""

    def __init__(self) -> None:
        self.x = torch.ones(3 << 20, device="npu")
        self.w = torch.ones(3 << 20, device="npu", requires_grad=True)

    def step(self) -> float:
        loss = (self.x * self.w + 1).relu().mean()
        loss.backward()
        with torch.no_grad():
            self.w.sub_(self.w.grad, alpha=0.1)
        self.w.grad = None
        return float(loss.item())

    def holdings(self, emulator: _npu.Emulator) -> tuple[int, int, int]:
        handles = emulator.live_handles() - launch.cached_handles()
        return torch.npu.memory_allocated(), torch.npu.memory_reserved(), handles


def test_running_out_of_memory_at_every_allocation(emulator: _npu.Emulator) -> None:
    """Every rung of the ladder asks again, so the calls that follow fail too."""
    large = Large()
    large.step()
    torch.npu.empty_cache()
    held = large.holdings(emulator)
    before = emulator.calls("aclrtMalloc")
    large.step()
    allocations = emulator.calls("aclrtMalloc") - before
    assert allocations >= 3
    for k in range(1, allocations + 1):
        torch.npu.empty_cache()
        emulator.fault(";".join(f"aclrtMalloc:{i}:207001" for i in range(k, k + 12)))
        with pytest.raises(torch.OutOfMemoryError, match="(?i)tried to allocate") as caught:
            large.step()
        emulator.clear_faults()
        assert re.search(r"out of memory in (mul|add|relu|mean|div|threshold)", str(caught.value)), caught.value
        large.w.grad = None
        del caught
        large.step()
        torch.npu.empty_cache()
        assert large.holdings(emulator) == held
