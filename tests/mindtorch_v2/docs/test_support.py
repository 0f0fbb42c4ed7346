"""The support matrix: it can be built, covers every row of the tables, and has no hole."""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from .._subject import mindtorch_only

ROOT = Path(__file__).parents[3]

pytestmark = mindtorch_only

ROWS = """
from mindtorch_v2._api import lazy_tables
from mindtorch_v2._dispatch import registry
lazy_tables.load_all()
print(*[op.name for op in registry.ops() if op.row is not None and op.row.kind not in ("inplace", "out")], sep="\\n")
"""


class Rows(HTMLParser):
    """The cells of each row, by the operator's name."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: dict[str, list[str]] = {}
        self.cells: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.cells = []
        elif tag == "td":
            self.cells.append("")

    def handle_data(self, text: str) -> None:
        if self.cells:
            self.cells[-1] += text

    def handle_endtag(self, tag: str) -> None:
        if tag == "tr" and self.cells:
            assert self.cells[0] not in self.found
            self.found[self.cells[0]] = self.cells[1:]
            self.cells = []


def python(*arguments: str) -> str:
    """In a process of its own: other tests register operators."""
    run = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    page = tmp_path_factory.mktemp("docs") / "support.md"
    python(str(ROOT / "docs" / "make_support.py"), str(page))
    return Rows(page.read_text()).found


def test_covers_every_row(matrix: dict[str, list[str]]) -> None:
    assert sorted(matrix) == sorted(python("-c", ROWS).split())
    assert {len(cells) for cells in matrix.values()} == {6}


def test_no_hole(matrix: dict[str, list[str]]) -> None:
    assert [name for name, row in matrix.items() if "HOLE" in row] == []
    assert [name for name, row in matrix.items() if row[2].startswith("not available") and len(row[2]) < 25] == []


def test_what_a_line_says(matrix: dict[str, list[str]]) -> None:
    assert matrix["add"] == [
        "kernel",
        "rule",
        "aclnnAdd, aclnnInplaceAdd, aclnnAdds, aclnnInplaceAdds",
        "f16 bf16 f32 f64 u8 i8 i16 i32 i64 bool c64 c128",
        "yes",
        "_ out",
    ]
    assert matrix["transpose"] == ["view", "view", "view", "", "yes", "_"]
    assert matrix["positive"] == ["composite", "composite", "composite", "", "parts", ""]
    assert matrix["argmax"][4:] == ["no", "out"]
    # Integers are computed as floats.
    assert matrix["sigmoid"][3] == "f16 bf16 f32 [u8 i8 i16 i32 i64 bool]"
    assert matrix["nonzero"][1] == "data"
