"""Fixtures for the tests of the package.

Invariant: every test starts from, and leaves behind, the default dtype and device.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ._subject import IS_ORACLE
from ._subject import subject as torch

# A process that seeds nothing draws other numbers every time; every run of the tests draws the same.
torch.manual_seed(67280421310721)

if not IS_ORACLE:
    # A rule that lacks a check is to be seen as what it is.
    from mindtorch_v2._dispatch.unforeseen import NET

    NET.on = False


@pytest.fixture(autouse=True)
def default_settings() -> Iterator[None]:
    yield
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
