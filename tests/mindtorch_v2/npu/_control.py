"""Disturbances of the emulator as `with` blocks; a test that uses one needs the emulator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mindtorch_v2 as torch

from .. import _npu

emulator_only = _npu.emulator_only


def emulator() -> _npu.Emulator:
    found = _npu.start()
    assert found is not None
    return found


@contextmanager
def fault(spec: str) -> Iterator[None]:
    """`function:n:code[;...]`: the n-th call from here fails."""
    emulator().fault(spec)
    try:
        yield
    finally:
        emulator().clear_faults()


@contextmanager
def slow(stream: Any, milliseconds: int = 60) -> Iterator[None]:
    """Every task of the stream starts this much later."""
    stream.synchronize()
    with torch.npu.device(stream.device_index):
        emulator().slow(stream.npu_stream, milliseconds * 1000)
    try:
        yield
    finally:
        stream.synchronize()
        emulator().slow(stream.npu_stream, 0)


@contextmanager
def delays(seed: int) -> Iterator[None]:
    """Random pauses before tasks."""
    emulator().delay_seed(seed)
    try:
        yield
    finally:
        emulator().delay_seed(0)
