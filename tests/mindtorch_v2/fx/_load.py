"""Loads a file of programs for a library: the same text runs on the library under test and on the oracle."""

from __future__ import annotations

import functools
import importlib
import linecache
import types
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
NAME = "traced_programs"


@functools.cache
def load(lib: Any, file: str = "_programs.py") -> types.ModuleType:
    """The programs of a file, which say `torch` and mean `lib`."""
    source = (HERE / file).read_text()
    importlib.import_module(f"{lib.__name__}.fx")
    module = types.ModuleType(NAME)
    # Where tracebacks find the lines.
    path = f"<{lib.__name__} {file}>"
    linecache.cache[path] = (len(source), None, source.splitlines(True), path)
    module.__dict__["torch"] = lib
    exec(compile(source, path, "exec"), module.__dict__)
    return module


def names(prefix: str, file: str = "_programs.py") -> list[str]:
    """The functions (`f_`, `bad_`) or modules (`M`) that a file defines."""
    lines = (HERE / file).read_text().splitlines()
    starts = (f"def {prefix}", f"class {prefix}")
    return [line.split()[1].split("(")[0].rstrip(":") for line in lines if line.startswith(starts)]
