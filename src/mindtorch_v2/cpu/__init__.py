"""`torch.cpu`: the CPU with the names that other devices have, so that code need not ask which device it runs on.

Invariant: there is one stream, and what was given to it has happened.
"""

from __future__ import annotations

import functools
import os
import platform
from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any

from .. import _native

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "current_device",
    "current_stream",
    "device_count",
    "get_capabilities",
    "is_available",
    "is_initialized",
    "set_device",
    "stream",
    "synchronize",
]


def is_available() -> bool:
    """There is always a CPU."""
    return True


def is_initialized() -> bool:
    return True


def device_count() -> int:
    return 1


def current_device() -> str:
    return "cpu"


def set_device(device: Any) -> None:
    """There is one CPU, and this thread is on it."""


def synchronize(device: Any = None) -> None:
    """Everything that was asked of the CPU has happened."""


class Stream:
    """The one stream; a priority says nothing."""

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        """There is nothing to wait for."""

    def record_event(self, event: Any = None) -> None:
        """There is nothing to record."""

    def wait_event(self, event: Any) -> None:
        """There is nothing to wait for."""


class Event:
    """A point in the stream, which has been passed."""

    def query(self) -> bool:
        return True

    def record(self, stream: Any = None) -> None:
        """There is nothing to record."""

    def synchronize(self) -> None:
        """There is nothing to wait for."""

    def wait(self, stream: Any = None) -> None:
        """There is nothing to wait for."""


_DEFAULT = Stream()
_CURRENT: list[Stream] = [_DEFAULT]


def current_stream(device: Any = None) -> Stream:
    """The stream in use."""
    return _CURRENT[-1]


class StreamContext(AbstractContextManager[None]):
    """`with torch.cpu.stream(s)`: `s` is the current stream inside; None changes nothing."""

    cur_stream: Stream | None

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.prev_stream = _DEFAULT

    def __enter__(self) -> None:
        if self.stream is not None:
            _CURRENT.append(self.stream)

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        if self.stream is not None:
            _CURRENT.pop()


def stream(stream: Any) -> StreamContext:
    return StreamContext(stream)


# -- what the processor can do ------------------------------------------------------------------------------------
# PyTorch's names, and Linux's where they differ.
_FLAGS = {
    name: name
    for name in (
        "aes avx avx2 clflush clflushopt clwb f16c fma4 lzcnt popcnt sse sse2 sse4_1 sse4_2 sse4a ssse3 avx_vnni "
        "amx_tile amx_int8 amx_bf16 amx_fp16 avx512_fp16 avx512_bf16 avx512_vnni avx512_vbmi2 avx512_bitalg "
        "avx512_vpopcntdq avx512_4vnniw avx512_4fmaps avx512_vp2intersect avx_vnni_int8 avx_vnni_int16 avx_ne_convert"
    ).split()
} | {
    "bmi": "bmi1",
    "bmi2": "bmi2",
    "fma3": "fma",
    "sha": "sha_ni",
    "sse3": "pni",
    "lzcnt": "abm",
    **{f"avx512_{x}": f"avx512{x}" for x in "f cd bw dq vl ifma".split()},
    "avx512_vbmi": "avx512vbmi",
    "avx512_4vnniw": "avx512_4vnniw",
}


def _cpuinfo() -> dict[str, str]:
    """Linux's description of the first processor; empty elsewhere."""
    found: dict[str, str] = {}
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                key, colon, value = line.partition(":")
                if not colon:
                    break
                found[key.strip()] = value.strip()
    except OSError:
        pass
    return found


def _cache_size(index: int) -> int:
    try:
        with open(f"/sys/devices/system/cpu/cpu0/cache/index{index}/size", encoding="utf-8") as file:
            text = file.read().strip()
    except OSError:
        return 0
    return int(text[:-1]) * {"K": 1024, "M": 1 << 20}.get(text[-1], 1) if text else 0


@functools.lru_cache(None)
def get_capabilities() -> Mapping[str, Any]:
    """What the processor is and can do; made once."""
    info = _cpuinfo()
    flags = set(info.get("flags", info.get("Features", "")).split())
    logical = os.cpu_count() or 1
    siblings, cores = int(info.get("siblings", logical)), int(info.get("cpu cores", logical))
    machine = platform.machine()
    found: dict[str, Any] = {
        "architecture": machine,
        "cpu_name": " ".join(info.get("model name", platform.processor()).split()[:2]),
        "num_sockets": max(1, logical // max(1, siblings)),
        "num_physical_cores": max(1, logical * cores // max(1, siblings)),
        "num_logical_cores": logical,
        "l1d_cache_size": _cache_size(0),
        "l2_cache_size": _cache_size(2),
    }
    if machine in ("x86_64", "AMD64", "i686"):
        found.update({name: flag in flags for name, flag in _FLAGS.items()})
        found.update({f"avx10_{version}": _native.cpu_avx10() >= version for version in (1, 2)})
    return MappingProxyType(found)


def _has(name: str) -> bool:
    return bool(get_capabilities().get(name, False))


def _is_avx2_supported() -> bool:
    return _has("avx2")


def _is_avx512_supported() -> bool:
    return all(_has(f"avx512_{part}") for part in ("f", "cd", "bw", "dq", "vl"))


def _is_avx512_bf16_supported() -> bool:
    return _has("avx512_bf16")


def _is_vnni_supported() -> bool:
    return _has("avx512_vnni")


def _is_amx_tile_supported() -> bool:
    return _has("amx_tile")


def _is_amx_fp16_supported() -> bool:
    return _has("amx_fp16")


def _init_amx() -> bool:
    """AMX is not used here."""
    return False


def __getattr__(name: str) -> Any:
    if name == "amp":
        from importlib import import_module

        return import_module(f"{__name__}.amp")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
