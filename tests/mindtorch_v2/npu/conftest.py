"""Every test here has NPUs, and is watched for breaches of the vendor's contract."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .. import _npu


@pytest.fixture(autouse=True)
def emulator() -> Iterator[_npu.Emulator | None]:
    """The emulator's controls; None on hardware."""
    yield from _npu.watched(_npu.start())
