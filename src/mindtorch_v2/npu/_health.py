"""How busy a device is, as far as the vendor's runtime tells.

Invariant: what only the tools beside the runtime know (npu-smi, over DCMI) is an error that says so.
"""

from __future__ import annotations

import ctypes
from typing import Any, NoReturn

from .._backends.npu import errors as _errors
from .._backends.npu import runtime as _runtime
from .._backends.npu.acl_loader import ensure_acl as _ensure_acl

__all__ = ["clock_rate", "memory_usage", "power_draw", "temperature", "utilization"]


class _Rates(ctypes.Structure):
    """aclrtUtilizationInfo"""

    _fields_ = [(name, ctypes.c_int32) for name in ("cube", "vector", "cpu", "memory")] + [("more", ctypes.c_void_p)]


def _rates(device: Any) -> _Rates:
    index = _runtime.index_of(device)
    _runtime.check_index(index)
    _runtime.use(index)
    found = _Rates()
    code = _ensure_acl().aclrtGetDeviceUtilizationRate(index, ctypes.byref(found))
    _errors.check(code, "aclrtGetDeviceUtilizationRate")
    return found


def utilization(device: Any = None) -> int:
    """Percent of the time that the busier of the two units, matrix and vector, was at work."""
    found = _rates(device)
    return int(max(found.cube, found.vector))


def memory_usage(device: Any = None) -> int:
    """Percent of the device's memory that is in use."""
    return int(_rates(device).memory)


def _beside(name: str) -> NoReturn:
    raise NotImplementedError(
        f"torch.npu.{name}() is not available: ACL, the vendor's runtime, does not tell it; npu-smi does"
    )


def temperature(device: Any = None) -> int:
    _beside("temperature")


def power_draw(device: Any = None) -> int:
    _beside("power_draw")


def clock_rate(device: Any = None) -> int:
    _beside("clock_rate")
