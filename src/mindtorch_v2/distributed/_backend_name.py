"""`Backend`: the names of backends, and who makes them. `BackendConfig`: which backend serves which device.

Invariant: a backend is made by a function that was registered under its name; nothing else in the package makes one.
"""

from __future__ import annotations

import warnings
from collections import namedtuple
from collections.abc import Callable
from typing import Any, ClassVar

from ._process_group import ProcessGroup

__all__ = ["Backend", "BackendConfig"]


class Backend(str):
    """A backend's name, in lower case; `Backend("GLOO")` is "gloo"."""

    __slots__ = ()
    __module__ = "torch.distributed.distributed_c10d"

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"
    FAKE = "fake"
    HCCL = "hccl"

    _BackendPlugin = namedtuple("_BackendPlugin", ["creator_fn", "extended_api"])
    _plugins: ClassVar[dict[str, Any]] = {}

    backend_list: ClassVar[list[str]] = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE]
    default_device_backend_map: ClassVar[dict[str, str]] = {
        "cpu": GLOO,
        "cuda": NCCL,
        "xpu": XCCL,
        "mps": GLOO,
        "npu": HCCL,
    }
    backend_capability: ClassVar[dict[str, list[str]]] = {
        GLOO: ["cpu", "cuda"],
        NCCL: ["cuda"],
        XCCL: ["xpu"],
        UCC: ["cpu", "cuda"],
        MPI: ["cpu", "cuda"],
        FAKE: ["cpu", "cuda", "hpu", "xpu", "npu"],
    }
    backend_type_map: ClassVar[dict[str, ProcessGroup.BackendType]] = {
        UNDEFINED: ProcessGroup.BackendType.UNDEFINED,
        GLOO: ProcessGroup.BackendType.GLOO,
        NCCL: ProcessGroup.BackendType.NCCL,
        XCCL: ProcessGroup.BackendType.XCCL,
        UCC: ProcessGroup.BackendType.UCC,
        MPI: ProcessGroup.BackendType.MPI,
        FAKE: ProcessGroup.BackendType.CUSTOM,
    }

    def __new__(cls, name: str) -> Any:
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        value = getattr(Backend, name.upper(), Backend.UNDEFINED)
        return name.lower() if value == Backend.UNDEFINED else value

    @classmethod
    def register_backend(
        cls, name: str, func: Callable[..., Any], extended_api: bool = False, devices: str | list[str] | None = None
    ) -> None:
        """Let `func(store, rank, world_size, timeout)` make backends of that name.

        With `extended_api` it gets an object with these and more, and the options given to `init_process_group`.
        """
        low = name.lower()
        if not hasattr(Backend, name.upper()):
            setattr(Backend, name.upper(), low)
        if low not in Backend.backend_list:
            Backend.backend_list.append(low)
        if devices is None:
            warnings.warn(
                f"Device capability of {name} unspecified, assuming `cpu` and `cuda` or `xpu`. Please specify it via "
                "the `devices` argument of `register_backend`.",
                stacklevel=2,
            )
        kinds = ["cpu", "cuda"] if devices is None else [devices] if isinstance(devices, str) else list(devices)
        for kind in kinds if devices is not None else ():
            now = Backend.default_device_backend_map.get(kind)
            if now is None or (now == "fake" and low != "fake"):
                Backend.default_device_backend_map[kind] = low
        Backend.backend_type_map.setdefault(low, ProcessGroup.BackendType.CUSTOM)
        Backend.backend_capability[low] = kinds
        Backend._plugins[name.upper()] = Backend._BackendPlugin(func, extended_api)


def _pairs(text: str) -> dict[str, Any]:
    """The parts of "cpu:gloo,npu:hccl"."""
    why = (
        f"The custom backend string argument is invalid: {text}.\n"
        "                Custom backend string is an experimental feature where the backend string must be in the "
        "format:\n                \"<device_type1>:<backend1>,<device_type2>:<backend2>...\". e.g. 'cpu:gloo,cuda:nccl'"
    )
    found: dict[str, Any] = {}
    for pair in text.lower().split(","):
        parts = pair.split(":")
        if len(parts) != 2:
            raise ValueError(f"Invalid device:backend pairing: {' ' * 37}{pair}. {why}")
        device, backend = parts
        if device in found:
            raise ValueError(f"Duplicate device type {device} {' ' * 37}in backend string: {backend}. {why}")
        found[device] = Backend(backend)
    return found


class BackendConfig:
    """Which backend serves which kind of device."""

    __module__ = "torch.distributed.distributed_c10d"

    def __init__(self, backend: Any) -> None:
        text = str(backend)
        self.device_backend_map: dict[str, Any]
        if text == Backend.UNDEFINED:
            from ..accelerator import current_accelerator

            found = current_accelerator()
            kind = "cpu" if found is None else found.type
            self.device_backend_map = {"cpu": Backend(Backend.GLOO)}
            default = Backend.default_device_backend_map.get(kind, "")
            if default.upper() in Backend._plugins:
                self.device_backend_map[kind] = Backend(default)
        elif text.lower() in Backend.backend_list:
            self.device_backend_map = dict.fromkeys(Backend.backend_capability[text.lower()], Backend(text))
        elif ":" in text:
            self.device_backend_map = _pairs(text)
        else:
            warnings.warn(
                f"Device capability of {text} unknown, assuming `cpu` and `cuda`. You can specify it in "
                "`device:backend` format in `init_process_group` call.",
                stacklevel=2,
            )
            self.device_backend_map = dict.fromkeys(("cpu", "cuda", "xpu"), Backend(text))

    def __repr__(self) -> str:
        return ",".join(f"{device}:{backend}" for device, backend in self.device_backend_map.items())

    def get_device_backend_map(self) -> dict[str, Any]:
        """The backend of each kind of device."""
        return self.device_backend_map
