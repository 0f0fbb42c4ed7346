"""Files and functions stay short enough to be read in one go.

Invariant: what is longer is a pure table, or stands here by name with the length it may not exceed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from .._subject import mindtorch_only

pytestmark = mindtorch_only

ROOT = Path(__file__).parents[3]
FILE = 800
FUNCTION = 80

# Rows and signatures, read by looking something up.
TABLES = {"src/mindtorch_v2/_backends/npu/table.py", "src/mindtorch_v2/_native.pyi"}

# To be shortened; a number may only become smaller.
LONG_FILES: dict[str, int] = {}
LONG_FUNCTIONS: dict[str, int] = {}


def sources() -> Iterator[tuple[str, Path]]:
    for folder in ("src", "csrc", "tests", "benchmarks", "examples", "docs"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".pyi", ".cpp", ".h"):
                yield path.relative_to(ROOT).as_posix(), path


def test_files_are_short() -> None:
    lengths = {name: len(path.read_text().splitlines()) for name, path in sources() if name not in TABLES}
    assert {name: n for name, n in lengths.items() if n > LONG_FILES.get(name, FILE)} == {}


def test_functions_are_short() -> None:
    found = {}
    for name, path in sources():
        if path.suffix == ".py":
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    length = (node.end_lineno or 0) - node.lineno + 1
                    if length > LONG_FUNCTIONS.get(f"{name}::{node.name}", FUNCTION):
                        found[f"{name}::{node.name}"] = length
    assert found == {}


@pytest.mark.parametrize("name", [*TABLES, *LONG_FILES, *(name.partition("::")[0] for name in LONG_FUNCTIONS)])
def test_names_of_exceptions_are_files(name: str) -> None:
    assert (ROOT / name).exists()
