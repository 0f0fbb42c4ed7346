"""A build in an environment of its own (`pip install .`, `python -m build`) finds what the compiled modules import."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest
from setuptools.config.pyprojecttoml import load_file

ROOT = Path(__file__).parents[3]


def _compiled() -> list[Path]:
    for node in ast.parse((ROOT / "setup.py").read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "COMPILED":
            names = ast.literal_eval(node.value)
            return [path for name in names for path in (ROOT / "src" / "mindtorch_v2").glob(name)]
    raise AssertionError("setup.py no longer says COMPILED")


def _imported(path: Path) -> set[str]:
    """The packages that a module imports by absolute names, wherever it does."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names.add(node.module.partition(".")[0])
    return names


@pytest.mark.skipif(not (ROOT / "setup.py").exists(), reason="the tests stand alone, without the sources")
def test_what_compiled_modules_import_is_there_when_they_are_built() -> None:
    table = load_file(ROOT / "pyproject.toml")
    known = {re.split(r"[<>=~! ]", name)[0] for name in table["build-system"]["requires"]}
    for override in table["tool"]["mypy"]["overrides"]:
        if override.get("ignore_missing_imports"):
            known |= {name.partition(".")[0] for name in override["module"]}
    known |= set(sys.stdlib_module_names) | {"mindtorch_v2"}
    missing = {path.name: sorted(_imported(path) - known) for path in _compiled()}
    assert {name: found for name, found in missing.items() if found} == {}
