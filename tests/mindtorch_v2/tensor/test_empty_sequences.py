"""Empty sequences that are no lists: they say nothing about the dtype."""

from __future__ import annotations

from array import array
from typing import Any

import pytest

from .._subject import subject as torch


@pytest.mark.parametrize("data", [bytearray(b""), range(0), array("i"), [bytearray(b"")], [range(0), range(0)]])
def test_empty_sequences_have_the_default_dtype(data: Any) -> None:
    made = torch.tensor(data)
    assert made.dtype is torch.float32 and made.numel() == 0
