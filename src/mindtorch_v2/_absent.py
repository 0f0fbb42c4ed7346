"""Device modules for hardware that this package does not serve: they answer as PyTorch built without it does.

Invariant: questions are answered (there is none of it); whatever would need the hardware raises what PyTorch raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

from ._device import device as _device


def refusing(module: str, names: str, kind: type[Exception], text: str) -> dict[str, Callable[..., NoReturn]]:
    """Functions that need the hardware, by name."""

    def make(name: str) -> Callable[..., NoReturn]:
        def function(*args: Any, **kwargs: Any) -> NoReturn:
            raise kind(text.replace("{name}", name))

        function.__name__ = function.__qualname__ = name
        function.__module__ = module
        function.__doc__ = "Needs hardware that is not served here."
        return function

    return {name: make(name) for name in names.split()}


def classes(module: str, names: str, text: str = "Tried to instantiate dummy base class {name}") -> dict[str, type]:
    """Classes whose instances need the hardware: good for annotations and `isinstance`."""

    def make(name: str) -> type:
        def __new__(cls: type, *args: Any, **kwargs: Any) -> NoReturn:
            raise RuntimeError(text.replace("{name}", name))

        return type(name, (), {"__new__": __new__, "__module__": module, "__doc__": "Needs hardware."})

    return {name: make(name) for name in names.split()}


def index_of(device: Any, kind: str, optional: bool = True) -> int | None:
    """The index meant by a device argument, as PyTorch's `_get_device_index` finds it without a current device."""
    if isinstance(device, int):
        return device
    if isinstance(device, str):
        device = _device(device)
    if isinstance(device, _device):
        if device.type != kind:
            raise ValueError(f"Expected a {kind} device, but got: {device}")
        return device.index
    if device is None and optional:
        return None
    raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")


def seeds(module: str) -> dict[str, Callable[..., Any]]:
    """What PyTorch would do with generators once there is a device: checked now, and never done."""

    def manual_seed(seed: int) -> None:
        """Seed the generator of the current device, if there ever is one."""
        int(seed)

    def manual_seed_all(seed: int) -> None:
        """Seed the generators of all devices: there are none."""
        int(seed)

    def seed() -> None:
        """Seed the generator of the current device, if there ever is one."""

    def seed_all() -> None:
        """Seed the generators of all devices: there are none."""

    def get_rng_state_all() -> list[Any]:
        """The states of all devices' generators: there are none."""
        return []

    def set_rng_state(new_state: Any, device: Any = None) -> None:
        """Set the state of a device's generator, if there ever is one."""
        new_state.clone()

    def set_rng_state_all(new_states: Any) -> None:
        """Set the states of all devices' generators, if there ever are any."""
        for state in new_states:
            set_rng_state(state)

    made = (manual_seed, manual_seed_all, seed, seed_all, get_rng_state_all, set_rng_state, set_rng_state_all)
    found: dict[str, Callable[..., Any]] = {}
    for fn in made:
        fn.__module__, fn.__qualname__ = module, fn.__name__
        found[fn.__name__] = fn
    return found


class NoDevice:
    """A context for a device of an absent type: entering is refused, unless the index is negative."""

    _type: ClassVar[str]
    _error: ClassVar[type[Exception]]
    _text: ClassVar[str]

    def __init__(self, device: Any) -> None:
        self.idx: Any = index_of(device, self._type)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            raise self._error(self._text)

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        return None


class NoStream:
    """`with stream(None)`: no stream is no change; there is no other."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None
