"""The support matrix, docs/support.md: as new as the tables, and without a hole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from .._subject import mindtorch_only

ROOT = Path(__file__).parents[3]
MATRIX = ROOT / "docs" / "support.md"


def cells() -> dict[str, list[str]]:
    return {
        line.split("`")[1]: [cell.strip() for cell in line.split("|")[2:-1]]
        for line in MATRIX.read_text().splitlines()
        if line.startswith("| `")
    }


@mindtorch_only
def test_the_matrix_is_as_new_as_the_tables() -> None:
    # In a process of its own: other tests register operators.
    run = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "make_support.py"), "--check"], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_no_hole() -> None:
    holes = [name for name, row in cells().items() if "HOLE" in row]
    assert holes == []
    unexplained = [name for name, row in cells().items() if row[2].startswith("not available") and len(row[2]) < 25]
    assert unexplained == []


def test_what_a_line_says() -> None:
    rows = cells()
    assert rows["add"] == [
        "kernel",
        "rule",
        "aclnnAdd, aclnnInplaceAdd, aclnnAdds, aclnnInplaceAdds",
        "f16 bf16 f32 f64 u8 i8 i16 i32 i64 bool c64 c128",
        "yes",
        "_ out",
    ]
    assert rows["transpose"] == ["view", "view", "view", "", "yes", "_"]
    assert rows["positive"] == ["composite", "composite", "composite", "", "parts", ""]
    assert rows["argmax"][4:] == ["no", "out"]
    # Integers are computed as floats.
    assert rows["sigmoid"][3] == "f16 bf16 f32 [u8 i8 i16 i32 i64 bool]"
    assert rows["nonzero"][1] == "data"
