"""What ranks send while they train: as many bytes as theory says, while backward runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from .._subject import mindtorch_only
from .._subject import subject as torch
from . import _traffic
from ._ranks import Ranks

pytestmark = mindtorch_only


@pytest.fixture(scope="module", params=[2, 3])
def ranks(request: Any) -> Iterator[Ranks]:
    made = Ranks("mindtorch_v2", request.param)
    yield made
    made.close()


@pytest.fixture(scope="module")
def two() -> Iterator[Ranks]:
    made = Ranks("mindtorch_v2", 2)
    yield made
    made.close()


@pytest.fixture(scope="module")
def devices() -> Iterator[Ranks]:
    made = Ranks("mindtorch_v2", 2, backend="hccl")
    yield made
    made.well()
    made.close()


def total(found: list[dict[str, int]], name: str) -> int:
    return sum(each.get(name, 0) for each in found)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("count", [12, 120_000])
def test_bytes_of_collectives(ranks: Ranks, count: int, shared: bool) -> None:
    """Of all ranks together: (n - 1) tensors for each thing that all must know of one of them."""
    size, found = ranks.size, ranks.values("_traffic.collective_bytes", count, shared)
    tensor = count * 4
    # Small ones are one exchange between all, larger ones a ring or its equal in shared memory.
    exchanged = tensor * size * (size - 1)
    around = 2 * (size - 1) * tensor
    assert total(found, "allreduce") == (exchanged if tensor * (size - 1) < 1 << 18 else around)
    if tensor * (size - 1) >= 1 << 18:
        for each in found:  # and each rank sends its share
            assert abs(each["allreduce"] - around / size) <= 4 * size
    assert total(found, "reduce_scatter_tensor_coalesced") == size * (size - 1) * tensor
    assert total(found, "broadcast") == (size - 1) * tensor
    assert total(found, "allgather") == size * (size - 1) * tensor
    assert total(found, "barrier") == 0


@pytest.mark.parametrize("how", ["replicas", "shares", "split"])
@pytest.mark.parametrize("shared", [True, False])
def test_bytes_of_a_step(ranks: Ranks, how: str, shared: bool) -> None:
    size, found = ranks.size, ranks.values("_traffic.step_bytes", how, shared)
    layers = _traffic.sizes(torch)
    if how == "split":
        # Gathered for forward and backward, but the root, here with the first layer, only once; reduced once.
        assert total(found, "allgather") == (size - 1) * (2 * sum(layers) - layers[0])
        assert total(found, "reduce_scatter_tensor_coalesced") == (size - 1) * sum(layers)
        assert total(found, "allreduce") == 0
        return
    # These buckets are small: one exchange, which for two ranks is as much as a ring.
    assert total(found, "allreduce") == size * (size - 1) * sum(layers)
    # Each rank gives the parameters that it has changed to all others.
    assert total(found, "broadcast") == ((size - 1) * sum(layers) if how == "shares" else 0)


@pytest.mark.parametrize("how", ["replicas", "shares", "split"])
def test_bytes_of_a_step_on_devices(devices: Ranks, how: str) -> None:
    """What the vendor's library is asked to carry; how it does it is its own."""
    size, layers = devices.size, _traffic.sizes(torch)
    for found in devices.values("_traffic.step_bytes", how, True):
        if how == "split":
            part = (2 * sum(layers) - layers[0]) // size
            assert found == {"HcclAllGather": part, "HcclReduceScatter": sum(layers) // size}
        elif how == "shares":
            assert found == {"HcclAllReduce": sum(layers), "HcclBroadcast": sum(layers)}
        else:
            assert found == {"HcclAllReduce": sum(layers)}


Event = tuple[str, int, float, float, str]


def named(events: list[Event], name: str) -> list[Event]:
    return sorted((event for event in events if event[0] == name), key=lambda event: event[2])


def nodes(events: list[Event]) -> list[Event]:
    """Backward of the layers, the last one first."""
    found = named(events, "AddmmBackward0")
    assert len(found) == _traffic.LAYERS
    return found


def test_replicas_are_reduced_inside_backward(two: Ranks) -> None:
    for events in two.values("_traffic.trace", "replicas"):
        asked, done = named(events, "c10d::allreduce_"), named(events, "gloo:all_reduce")
        last = nodes(events)[-1]
        assert len(asked) == len(done) > 1
        # Another thread did the first while backward had yet to come to the first layer.
        assert asked[0][2] < done[0][2] < done[0][3] < last[2]
        assert done[0][1] != last[1] == asked[0][1]


def test_split_parameters_are_gathered_and_reduced_inside_backward(two: Ranks) -> None:
    for events in two.values("_traffic.trace", "split"):
        steps = nodes(events)
        gathered, reduced = named(events, "gloo:all_gather"), named(events, "gloo:reduce_scatter")
        assert len(reduced) == _traffic.LAYERS
        # The last layer's gradients were reduced, and others' parameters gathered, before the first one's backward.
        assert steps[0][2] < reduced[0][2] < reduced[0][3] < steps[-1][2]
        begun = [event for event in gathered if event[2] > steps[0][2] - 1 and event[3] < steps[-1][2]]
        assert begun and all(event[1] != steps[0][1] for event in begun)


@pytest.mark.parametrize("how", ["replicas", "split"])
def test_devices_communicate_inside_backward(devices: Ranks, how: str) -> None:
    for events in devices.values("_traffic.trace", how):
        steps = nodes(events)
        function = "HcclAllReduce" if how == "replicas" else "HcclReduceScatter"
        given = [each for each in named(events, function) if "CPU" in each[4]]
        ran = [each for each in named(events, function.removeprefix("Hccl")) if "CPU" not in each[4]]
        assert len(given) == len(ran) > 1
        assert steps[0][2] < given[0][2] < steps[-1][2] and given[0][2] <= ran[0][2]
