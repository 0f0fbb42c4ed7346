"""`torch.Stream` and `torch.Event` of any device. Those of an NPU are `torch.npu`'s; the CPU and meta have one stream,
which is always done.

Invariant: `isinstance(torch.npu.Stream(), torch.Stream)` holds, and so for events.
"""

from __future__ import annotations

from typing import Any, NoReturn

from ._device import as_device
from ._device import device as Device
from ._dispatch.op import type_name

_TYPES = {"cpu": 0, "meta": 14}


def _place(name: str, where: Any) -> Device:
    if where is None:
        from .accelerator import current_accelerator

        found = current_accelerator(check_available=True)
        return as_device("cpu") if found is None else found
    if isinstance(where, int) and not isinstance(where, bool):
        return Device("npu", where)
    if not isinstance(where, (str, Device)):
        raise TypeError(f"{name}(): argument 'device' (position 1) must be torch.device, not {type_name(where)}")
    return as_device(where)


class _OfDevice(type):
    """Makes the stream or event of the device that is named."""

    def __call__(cls, device: Any = None, **options: Any) -> Any:
        place = _place(cls.__name__, device)
        if place.type != "npu":
            return super().__call__(place, **options)
        from . import npu

        if cls.__name__ == "Stream":
            return npu.Stream(place, **options)
        return npu.Event(**options)

    def __instancecheck__(cls, instance: Any) -> bool:
        if super().__instancecheck__(instance):
            return True
        kind = type(instance)
        return kind.__name__ == cls.__name__ and kind.__module__.startswith("mindtorch_v2._backends.npu")


class Stream(metaclass=_OfDevice):
    """The queue of work of a device; that of the CPU is always empty."""

    __module__ = "mindtorch_v2"
    stream_id = 0
    device_index = -1

    def __init__(self, device: Device, *, priority: int = 0) -> None:
        self.device = device

    @property
    def device_type(self) -> int:
        """The number of the device type."""
        return _TYPES[self.device.type]

    def query(self) -> bool:
        """Whether all work is done: always."""
        return True

    def synchronize(self) -> None:
        """Wait until all work is done: at once."""

    def _refuse(self) -> NoReturn:
        raise RuntimeError(f"{self.device.type} backend doesn't support events.")

    def wait_stream(self, stream: Any) -> NoReturn:
        """Refused: there are no events here."""
        self._refuse()

    def wait_event(self, event: Any) -> NoReturn:
        """Refused: there are no events here."""
        self._refuse()

    def record_event(self, event: Any = None) -> NoReturn:
        """Refused: there are no events here."""
        self._refuse()

    @property
    def native_handle(self) -> NoReturn:
        """Refused: there is none."""
        raise RuntimeError("Backend doesn't support getting stream native handle.")

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc: object) -> None:
        """Nothing was changed."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.device == self.device

    def __hash__(self) -> int:
        return hash((self.device, self.stream_id))

    def __repr__(self) -> str:
        return f"torch.Stream device_type={self.device.type}, device_index=-1, stream_id=0"


class Event(metaclass=_OfDevice):
    """A point in the work of a device; the CPU cannot record one."""

    __module__ = "mindtorch_v2"
    event_id = 0

    def __init__(
        self, device: Device, *, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        self.device = device
        self._flag = int(enable_timing)

    def record(self, stream: Any = None) -> NoReturn:
        """Refused: there are no events here."""
        raise RuntimeError(f"{self.device.type} backend doesn't support events.")

    def query(self) -> bool:
        """Whether the point is reached: always."""
        return True

    def synchronize(self) -> None:
        """Wait until the point is reached: at once."""

    def wait(self, stream: Any = None) -> None:
        """Let a stream wait until the point is reached: at once."""

    def elapsed_time(self, other: Event) -> NoReturn:
        """Refused: an event that was never recorded has no time."""
        if not (self._flag and other._flag):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        raise ValueError("Both events must be recorded before calculating elapsed time.")

    def __repr__(self) -> str:
        return f"torch.Event device_type={self.device.type}, device_index=-1, event_flag={self._flag}, event_id=0"
