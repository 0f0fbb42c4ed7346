"""Every test here has NPUs, and is watched for breaches of the vendor's contract."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest

from .. import _npu


@pytest.fixture(autouse=True)
def emulator() -> Iterator[_npu.Emulator | None]:
    """The emulator's controls; None on hardware."""
    yield from _npu.watched(_npu.start())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """The emulator has two devices; a machine may have one, where a test that needs the second cannot run."""
    try:
        return (yield)
    except RuntimeError as error:
        if _npu.HARDWARE and "npu:1 does not exist: 1 NPU" in str(error):
            pytest.skip("needs two NPUs")
        raise
