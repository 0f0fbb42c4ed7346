"""`torch.npu.use_emulator`: the package's own libraries with the vendor's ABI instead of hardware.

Invariant: nobody gets the emulator without asking, and a program that has used a device keeps what it has.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

from . import acl_loader, installation, runtime
from .acl_loader import Acl


def use_emulator(
    chip: str | None = None,
    devices: int | None = None,
    memory: int | str | None = None,
    delay_seed: int | None = None,
    noop: bool | None = None,
    violations: str | None = None,
    cann_version: str | None = None,
) -> None:
    """Let `npu` be the emulator. To be called before the first use of a device.

    chip: 910B, 910A, 310P, 310B or 950. devices: how many there are. memory: bytes of each, also as "2G". delay_seed:
    reorders the work of streams within what the contract allows; 0 does not. noop: kernels are accepted and not run.
    violations: "report" lists breaches of the C contract, "abort" ends the process at the first. What is not given
    keeps its value from the environment (ASCEND_EMULATOR_*) or its default.
    """
    _check_first()
    before = installation.Choice.emulator
    installation.Choice.emulator = True
    try:
        acl = acl_loader.ensure_acl()
        given = {
            "chip": chip,
            "devices": devices,
            "memory": memory,
            "delay_seed": delay_seed,
            "noop": noop,
            "violations": violations,
            "cann_version": cann_version,
        }
        for key, value in given.items():
            if value is not None:
                configure(acl, key, value)
    except BaseException:
        installation.Choice.emulator = before
        raise


def _check_first() -> None:
    asked = os.environ.get("MINDTORCH_NPU", "").strip().lower()
    if asked in ("cann", "off"):
        raise RuntimeError(f"use_emulator(): MINDTORCH_NPU={asked} forbids the emulator; unset it")
    if runtime.STATE.initialised:
        what = "emulator" if is_emulator() else "NPU"
        raise RuntimeError(f"use_emulator(): the {what} is in use already; call it before the first use of a device")
    acl = acl_loader.loaded()
    if acl is not None and acl.where.kind != "emulator":
        raise RuntimeError(
            f"use_emulator(): the libraries of {acl.where.home} are loaded already; call it before "
            "anything asks for a device, or set MINDTORCH_NPU=emulator"
        )


def is_emulator() -> bool:
    """Whether the loaded libraries are the emulator's."""
    acl = acl_loader.loaded()
    return acl is not None and acl.where.kind == "emulator"


def configure(acl: Acl, key: str, value: Any) -> None:
    """Change one of the emulator's settings."""
    text = str(int(value)) if isinstance(value, bool) else str(value)
    function = control(acl, "ascendEmulatorConfigure", ctypes.c_int32, (ctypes.c_char_p, ctypes.c_char_p))
    if function(key.encode(), text.encode()) != 0:
        said = acl.aclGetRecentErrMsg()
        why = bytes(said).decode(errors="replace") if said else f"{key}={text!r} was refused"
        raise ValueError(f"use_emulator(): {why}")


def control(acl: Acl, name: str, result: Any, arguments: tuple[Any, ...]) -> Any:
    """One of the emulator's own functions."""
    if acl.emulator is None:
        raise RuntimeError(f"{name}: the loaded libraries are not the emulator's")
    function = getattr(acl.emulator, name)
    function.restype = result
    function.argtypes = arguments
    return function
