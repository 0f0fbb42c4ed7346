"""Wrong calls on tensors of NPUs: a clear refusal before the vendor sees anything, and a device that goes on.

Invariant: no such call breaks the vendor's contract, which the fixture watches, and none leaves memory behind.
"""

from __future__ import annotations

import gc
import io
import threading
from collections.abc import Callable
from typing import Any

import pytest

from .._npu import Emulator, emulator_only
from .._subject import subject as torch


class Given:
    """Tensors of both devices, of the CPU and of none."""

    def __init__(self) -> None:
        self.here = torch.arange(9.0, device="npu:0").view(3, 3)
        self.there = torch.arange(9.0, device="npu:1").view(3, 3)
        self.host = torch.arange(9.0).view(3, 3)
        self.meta = torch.empty(3, 3, device="meta")
        self.index = torch.tensor([0, 1], device="npu:0")
        self.index_there = torch.tensor([0, 1], device="npu:1")
        self.freed = torch.ones(4, device="npu:0")
        self.part = self.freed[1:]
        self.freed.untyped_storage().resize_(0)


def allocated() -> tuple[int, int]:
    return torch.npu.memory_allocated(0), torch.npu.memory_allocated(1)


@pytest.fixture(scope="module")
def no_garbage() -> None:
    """Of other tests: a collection takes seconds in a long session, so there is one."""
    gc.collect()


@pytest.fixture
def given(no_garbage: None) -> Any:
    """And a look at the devices afterwards."""
    torch.npu.synchronize(1)
    made = Given()
    before = allocated()
    yield made
    for index in (0, 1):
        torch.npu.synchronize(index)
        assert (torch.ones(3, device=f"npu:{index}") + 1).tolist() == [2.0] * 3
    if allocated() != before:
        gc.collect()
    assert allocated() == before


def assign(t: Any, key: Any, value: Any) -> None:
    t[key] = value


Call = Callable[[Given], Any]
# One operand of the first device, one of the second.
APART: dict[str, Call] = {
    "add": lambda g: g.here + g.there,
    "add a number": lambda g: g.here + torch.tensor(1.0, device="npu:1"),
    "in place": lambda g: g.here.mul_(g.there),
    "out": lambda g: torch.add(g.here, g.here, out=g.there),
    "mm": lambda g: g.here @ g.there,
    "index": lambda g: g.here[g.index_there],
    "take": lambda g: torch.take(g.here, g.index_there),
    "assign": lambda g: assign(g.here, g.index_there, 1.0),
    "assign a value": lambda g: assign(g.here, g.index, g.there[:2]),
    "index_fill": lambda g: g.here.index_fill(0, g.index_there, 1.0),
    "index_put": lambda g: g.here.index_put((g.index_there,), torch.ones((), device="npu:0")),
    "gather": lambda g: g.here.gather(0, g.index_there.view(1, 2)),
    "embedding": lambda g: torch.nn.functional.embedding(g.index_there, g.here),
    "mask": lambda g: g.here[g.there > 0],
    "where": lambda g: torch.where(g.here > 0, g.here, g.there),
    "lerp": lambda g: torch.lerp(g.here, g.here, torch.tensor(0.5, device="npu:1")),
    "norm": lambda g: torch.nn.functional.layer_norm(g.here, (3,), g.there[0]),
    "foreach": lambda g: torch._foreach_add([g.here], [g.there]),
    "equal": lambda g: torch.equal(g.here, g.there),
    "einsum": lambda g: torch.einsum("ij,jk", g.here, g.there),
}


@pytest.mark.parametrize("name", APART)
def test_two_devices_are_one_too_many(given: Given, name: str) -> None:
    """No kernel reads memory of another device, which the emulator would report as an exception in a core."""
    with pytest.raises(RuntimeError, match="at least two devices, npu:. and npu:.!"):
        APART[name](given)


FROM_HOST: dict[str, Call] = {
    "add": lambda g: g.here + g.host,
    "mm": lambda g: g.host @ g.here,
    "gather": lambda g: g.here.gather(0, torch.zeros(1, 2, dtype=torch.int64)),
    "embedding": lambda g: torch.nn.functional.embedding(torch.tensor([0]), g.here),
    "loss": lambda g: torch.nn.functional.cross_entropy(g.here, torch.tensor([0, 1, 2])),
    "assign": lambda g: assign(g.here, g.index, g.host[:2]),
    "out": lambda g: torch.add(g.here, g.here, out=g.host),
}


@pytest.mark.parametrize("name", FROM_HOST)
def test_tensors_of_the_cpu_are_no_operands(given: Given, name: str) -> None:
    with pytest.raises(RuntimeError, match="at least two devices, (npu:0 and cpu|cpu and npu:0)!"):
        FROM_HOST[name](given)


@pytest.mark.parametrize("name", ["add", "mul", "maximum", "atan2", "eq"])
def test_tensors_without_data_are_no_operands(given: Given, name: str) -> None:
    for pair in ((given.here, given.meta), (given.meta, given.here)):
        with pytest.raises(RuntimeError, match="meta"):
            getattr(torch, name)(*pair)


FREED: dict[str, Call] = {
    "add": lambda g: g.freed + 1,
    "in place": lambda g: g.part.add_(1),
    "fill": lambda g: g.freed.fill_(1),
    "mm": lambda g: g.freed.view(2, 2) @ g.freed.view(2, 2),
    "to the cpu": lambda g: g.part.cpu(),
    "from the cpu": lambda g: g.part.copy_(torch.ones(3)),
    "item": lambda g: g.freed[0].item(),
    "print": lambda g: repr(g.freed),
    "clone": lambda g: g.freed.clone(),
    "copy": lambda g: torch.ones(4, device="npu:0").copy_(g.freed),
    "between devices": lambda g: g.freed.to("npu:1"),
    "index": lambda g: g.freed[g.index],
    "cat": lambda g: torch.cat([g.freed, g.freed]),
    "foreach": lambda g: torch._foreach_mul_([g.freed], 2.0),
    "out": lambda g: torch.add(g.here.view(-1)[:4], 1, out=g.freed),
    "sum": lambda g: g.freed.sum(),
}


@pytest.mark.parametrize("name", FREED)
def test_memory_that_was_given_back_is_not_used(given: Given, name: str) -> None:
    """A storage without bytes is below tensors that have elements."""
    with pytest.raises(RuntimeError, match="non-zero number of elements, but its data is not allocated yet"):
        FREED[name](given)


def test_freed_memory_may_come_back(given: Given) -> None:
    given.freed.untyped_storage().resize_(16)
    assert given.freed.fill_(2.0).tolist() == [2.0] * 4 and given.part.sum().item() == 6.0
    torch.save(given.here.clone().resize_(0), io.BytesIO())
    given.freed.untyped_storage().resize_(0)


OUTSIDE: dict[str, Call] = {
    "index": lambda g: g.here[g.index + 3],
    "index before": lambda g: g.here[g.index - 9],
    "select": lambda g: g.here.index_select(0, g.index + 3),
    "gather": lambda g: g.here.gather(0, g.index.view(1, 2) + 3),
    "scatter": lambda g: g.here.clone().scatter_(0, g.index.view(1, 2) + 3, 1.0),
    "index_add": lambda g: g.here.clone().index_add_(0, g.index + 3, g.here[:2]),
    "embedding": lambda g: torch.nn.functional.embedding(g.index - 1, g.here),
    "loss": lambda g: torch.nn.functional.cross_entropy(g.here[:2], g.index + 3),
}


@emulator_only
@pytest.mark.parametrize("name", OUTSIDE)
def test_an_index_outside_is_reported_by_the_next_wait(given: Given, name: str, emulator: Emulator) -> None:
    """By operator and place; the device goes on."""
    with pytest.raises(torch.npu.AclError, match=r"AI core exception[\s\S]*launched at .*test_hostile_npu.py:"):
        OUTSIDE[name](given).cpu()


HUGE: dict[str, Callable[[int], Any]] = {
    **{
        name: lambda n, name=name: getattr(torch, name)(n, device="npu") for name in ("empty", "ones", "rand", "arange")
    },
    "full": lambda n: torch.full((n,), 1.0, device="npu"),
    "expand": lambda n: torch.ones(1, device="npu").expand(n) + 1,
    "resize": lambda n: torch.ones(1, device="npu").resize_(n),
    "pad": lambda n: torch.nn.functional.pad(torch.ones(2, device="npu"), (n, 0)),
    "bincount": lambda n: torch.bincount(torch.tensor([n], device="npu")),
    "repeat_interleave": lambda n: torch.repeat_interleave(torch.tensor([n], device="npu")),
    "one_hot": lambda n: torch.nn.functional.one_hot(torch.tensor([n], device="npu")),
}


@pytest.mark.parametrize("name", HUGE)
def test_sizes_beyond_the_device(given: Given, name: str) -> None:
    with pytest.raises(torch.OutOfMemoryError, match="NPU out of memory"):
        HUGE[name](1 << 41)


def test_sizes_beyond_arithmetic(given: Given) -> None:
    for sizes in ((1 << 62,), (1 << 33, 1 << 33)):
        with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
            torch.empty(*sizes, device="npu")


@pytest.mark.parametrize("weights", [[-1.0, 2.0], [float("nan"), 1.0], [float("inf"), 1.0], [0.0, 0.0]])
def test_weights_that_are_none(given: Given, weights: list[float]) -> None:
    with pytest.raises(RuntimeError, match="probability tensor contains|sum of probabilities <= 0"):
        torch.multinomial(torch.tensor(weights, device="npu"), 1)


def test_streams_and_events_of_another_device(given: Given) -> None:
    first, second, event = torch.npu.Stream(0), torch.npu.Stream(1), torch.npu.Event(enable_timing=True)
    event.record(first)
    for call, error, text in (
        (
            lambda: event.record(second),
            RuntimeError,
            "Event device npu:0 does not match recording stream's device npu:1",
        ),
        (lambda: given.here.record_stream(second), RuntimeError, "the tensor is on npu:0 and the stream on npu:1"),
        (lambda: given.here.record_stream(3), TypeError, "must be Stream, not int"),
        (lambda: event.elapsed_time(torch.npu.Event()), ValueError, "must be created with argument"),
        (lambda: event.elapsed_time(torch.npu.Event(enable_timing=True)), ValueError, "must be recorded"),
        (lambda: torch.npu.Stream("cpu"), ValueError, "Expected a npu device"),
        (lambda: torch.npu.Stream(9), RuntimeError, "npu:9 does not exist"),
        (lambda: torch.npu.ExternalStream(-1), ValueError, "must be an address"),
        (
            lambda: torch.rand(2, device="npu", generator=torch.Generator()),
            RuntimeError,
            "Expected a 'npu:0' generator",
        ),
    ):
        with pytest.raises(error, match=text):
            call()
    second.wait_stream(first)
    with torch.npu.stream(second):
        assert (given.here + 1).device.index == 0


def test_a_capsule_is_consumed_once(given: Given) -> None:
    capsule = given.here.__dlpack__()
    taken = torch.from_dlpack(capsule)
    assert taken.data_ptr() == given.here.data_ptr()
    for call, error in (
        (lambda: torch.from_dlpack(capsule), RuntimeError),
        (lambda: given.here.__dlpack__(stream="x"), TypeError),
        (lambda: given.here.clone().requires_grad_().__dlpack__(), BufferError),
        (lambda: given.here.__dlpack__(dl_device=(1, 0)), ValueError),
        (lambda: given.here.numpy(), TypeError),
        (lambda: given.here.pin_memory(), RuntimeError),
    ):
        with pytest.raises(error):
            call()


def test_tensors_of_other_threads(given: Given) -> None:
    found: list[Any] = []

    def work() -> None:
        try:
            found.append(((given.here + 1).sum().item(), (given.there * 2).device.index))
            given.here + given.there
        except RuntimeError as error:
            found.append("two devices" in str(error))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, found)) == sorted(["(45.0, 1)"] * 4 + ["True"] * 4)
