"""NPUs for tests: the emulator with two devices, or with `MINDTORCH_NPU=cann` the machine's own.

Invariant: on the emulator, a test that breaks the C contract fails, even if everything it computed was right.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from typing import Any

import pytest

HARDWARE = os.environ.get("MINDTORCH_NPU", "").strip().lower() == "cann"
emulator_only = pytest.mark.skipif(HARDWARE, reason="needs the emulator's controls")


class Emulator:
    """The emulator's own functions."""

    def __init__(self, library: Any) -> None:
        self.library = library

    def _call(self, name: str, result: Any, *arguments: Any) -> Any:
        function = getattr(self.library, "ascendEmulator" + name)
        function.restype = result
        return function(*arguments)

    def _lines(self, name: str) -> list[str]:
        buffer = ctypes.create_string_buffer(1 << 16)
        self._call(name, ctypes.c_uint64, buffer, ctypes.c_size_t(len(buffer)))
        return buffer.value.decode(errors="replace").splitlines()

    def violations(self) -> list[str]:
        return self._lines("Violations")

    def clear_violations(self) -> None:
        self._call("ClearViolations", None)

    def leaks(self) -> list[str]:
        """Everything that is alive."""
        return self._lines("Leaks")

    def fault(self, spec: str) -> None:
        """`function:n:code[:async]`, n counted from now on."""
        assert self._call("SetFault", ctypes.c_int32, spec.encode()) == 0, spec

    def clear_faults(self) -> None:
        self._call("ClearFaults", None)

    def calls(self, function: str | None = None) -> int:
        """How often a vendor function was called, or all of them."""
        if function is None:
            return int(self._call("CallCount", ctypes.c_uint64))
        return int(self._call("FunctionCalls", ctypes.c_uint64, function.encode()))

    def runs(self, function: str | None = None) -> int:
        """How often a kernel ran on a device, or all of them."""
        if function is None:
            return int(self._call("TotalKernelRuns", ctypes.c_uint64))
        return int(self._call("KernelRuns", ctypes.c_uint64, function.encode()))

    def bytes_to_host(self) -> int:
        """How many bytes have left the devices so far."""
        return int(self._call("BytesToHost", ctypes.c_uint64))

    def live_handles(self) -> int:
        return int(self._call("LiveHandles", ctypes.c_uint64))

    def live_bytes(self, device: int) -> int:
        return int(self._call("LiveBytes", ctypes.c_uint64, ctypes.c_int32(device)))

    def lose(self, device: int) -> None:
        assert self._call("LoseDevice", ctypes.c_int32, ctypes.c_int32(device)) == 0

    def restore(self, device: int) -> None:
        assert self._call("RestoreDevice", ctypes.c_int32, ctypes.c_int32(device)) == 0

    def slow(self, stream: int, microseconds: int) -> None:
        """Every task of a stream of this thread's current device starts this much later."""
        assert self._call("SlowStream", ctypes.c_int32, ctypes.c_void_p(stream), ctypes.c_uint32(microseconds)) == 0

    def delay_seed(self, seed: int) -> None:
        self._call("SetDelaySeed", None, ctypes.c_uint64(seed))

    def noop(self, on: bool) -> None:
        self._call("SetNoop", None, ctypes.c_bool(on))


def start() -> Emulator | None:
    """Make `npu` usable in this process; the emulator unless hardware was asked for."""
    import mindtorch_v2 as torch
    from mindtorch_v2._backends.npu import acl_loader

    if HARDWARE:
        return None
    if acl_loader.loaded() is None:
        torch.npu.use_emulator(devices=2, memory="1G")
    return Emulator(acl_loader.ensure_acl().emulator)


def watched(emulator: Emulator | None) -> Iterator[Emulator | None]:
    """Around a test: no faults are left behind, and no rule of the C contract was broken."""
    if emulator is None:
        yield None
        return
    emulator.clear_violations()
    yield emulator
    emulator.clear_faults()
    emulator.delay_seed(0)
    broken = emulator.violations()
    emulator.clear_violations()
    assert not broken, "the vendor's contract was broken:\n" + "\n".join(broken)
