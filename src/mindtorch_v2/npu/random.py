"""Random numbers on NPUs: seeds and states, with `torch.cuda.random`'s names.

Invariant: a generator's state is on the host, so seeding touches no device; seeds given before the first use hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from .._backends.npu import device_count as _device_count
from .._backends.npu import runtime as _runtime
from .._random import accelerator_generator as _accelerator_generator


def _generator(device: Any) -> Any:
    return _accelerator_generator(_runtime.device_at(_runtime.index_of(device)))


def default_generators() -> tuple[Any, ...]:
    """The default generator of every device."""
    return tuple(_generator(index) for index in range(_device_count()))


def manual_seed(seed: int) -> None:
    """Seed the generator of this thread's device."""
    _generator(None).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all devices."""
    for generator in default_generators():
        generator.manual_seed(int(seed))


def seed() -> None:
    """Seed the generator of this thread's device with a number nobody can foresee."""
    _generator(None).seed()


def seed_all() -> None:
    """Seed the generators of all devices with one number nobody can foresee."""
    generators = default_generators()
    if generators:
        fresh = generators[0].seed()
        for generator in generators[1:]:
            generator.manual_seed(fresh)


def initial_seed() -> int:
    """The seed of the generator of this thread's device."""
    return int(_generator(None).initial_seed())


def get_rng_state(device: Any = "npu") -> Any:
    """The state of a device's generator, a tensor of bytes on the CPU."""
    return _generator(device).get_state()


def get_rng_state_all() -> list[Any]:
    return [generator.get_state() for generator in default_generators()]


def set_rng_state(new_state: Any, device: Any = "npu") -> None:
    _generator(device).set_state(new_state)


@contextmanager
def fork_rng(devices: Iterable[Any] | None = None, enabled: bool = True) -> Iterator[None]:
    """Inside, generators may be used; afterwards they are in the state they had before: `torch.random.fork_rng`."""
    from ..random import fork_rng as fork

    with fork(devices, enabled, device_type="npu"):
        yield


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
