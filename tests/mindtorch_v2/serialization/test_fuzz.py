"""A sample of broken and hostile files; `python -m tests.mindtorch_v2.serialization.fuzz` loads many more."""

from __future__ import annotations

from .._subject import mindtorch_only
from . import fuzz

pytestmark = mindtorch_only


def test_good_files_are_good() -> None:
    fuzz.file_of(0)
    assert len(fuzz.FILES) > 20
    for data in fuzz.FILES:
        assert data[:4] == b"PK\x03\x04" or data[:2] == b"\x80\x02"


def test_a_sample() -> None:
    assert fuzz.run(7_000_000, 1500) == []
