"""The support matrix that `make docs` writes."""
from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from mindtorch_v2._dispatch import registry

SCRIPT = Path(__file__).parents[3] / "docs" / "make_support.py"


@pytest.fixture(autouse=True)
def emulator() -> None:
    """The matrix is made from tables: it needs no NPU."""


def test_every_row_is_in_the_matrix() -> None:
    text = runpy.run_path(str(SCRIPT))["text"]()
    listed = {line.split("`")[1]: [c.strip() for c in line.split("|")[1:-1]] for line in text.splitlines()
              if line.startswith("| `")}
    rows = {op.name for op in registry.ops() if op.row is not None and op.row.kind not in ("inplace", "out")}
    assert set(listed) == rows
    assert listed["add"] == ["`add`", "yes", "yes", "aclnnAdd, aclnnInplaceAdd, aclnnAdds, aclnnInplaceAdds",
                             "float32 float16 bfloat16 float64 int8 int16 int32 int64 uint8 bool complex64 complex128"]
    assert listed["transpose"][1:3] == ["view", "view"] and listed["positive"][2] == "composite"
    assert listed["relu"][2] == "yes, or parts"
    assert not [name for name, cells in listed.items() if cells[2].startswith("missing") and len(cells[2]) < 20]
