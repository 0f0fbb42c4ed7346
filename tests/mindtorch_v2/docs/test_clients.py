"""The tables of docs/programs.md say what the client tests run: every program, version, family and listed failure."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from .._subject import mindtorch_only

ROOT = Path(__file__).parents[3]

pytestmark = mindtorch_only


@pytest.fixture(scope="module")
def maker() -> Any:
    spec = importlib.util.spec_from_file_location("make_clients", ROOT / "docs" / "make_clients.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    yield made
    for name in ("_families", "suites"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", ["clients", "families", "suites"])
def test_the_page_says_what_the_tests_run(maker: Any, name: str) -> None:
    """After a change of tests/clients: python docs/make_clients.py."""
    page = (ROOT / "docs" / "programs.md").read_text()
    assert maker.written(page, name, {}) == page
    assert len(maker.shown(page, name)) == len(maker.TABLES[name][1]({})) > 4


def test_results_fill_the_last_column(maker: Any) -> None:
    page = (ROOT / "docs" / "programs.md").read_text()
    passed = dict(passed=["importing", "build"], compared=True, error=None)
    failed = dict(passed=["importing"], compared=False, error="build: RuntimeError: why")
    rows = maker.shown(maker.written(page, "clients", {"einops": passed, "timm/vit": failed}), "clients")
    cells = {row[0].split()[0]: row[-1] for row in rows}
    assert cells["einops"] == "importing build; as PyTorch"
    assert cells["timm"] == "0 of 1; vit build: RuntimeError: why"


def test_every_pinned_library_has_a_program(maker: Any) -> None:
    shown = {row[0].split()[0] for row in maker.clients({})}
    assert shown == {*maker.versions()} - {"pytest"}
