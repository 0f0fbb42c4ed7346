"""How the package's compiled modules are found: one library holds them all, each under its own name.

Invariant: where the library is installed, a module that it holds never runs as it is written; where it is not, as in
`src/`, nothing here takes part in an import.
"""

from __future__ import annotations

import sys

# What `importlib.machinery` gives, without the modules that it loads besides.
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import SourceFileLoader, spec_from_file_location
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

_OWN = __name__.removesuffix("_compiled")
_FOLDER = __file__.removesuffix("_compiled.py")

_library: Any = None
try:
    _library = import_module(f"{_OWN}_core__mypyc")
except ModuleNotFoundError:  # the package is uncompiled
    pass


class Loader(SourceFileLoader):
    """Gives the library's module; its source is what tools are shown of it."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        from ._native import begin_module

        module = begin_module(getattr(_library, _entry(spec.name)))
        module.__file__ = spec.origin
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It ran when it was made."""


class Finder:
    """The first of `sys.meta_path`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return find(fullname) if fullname.startswith(_OWN) else None


def _entry(fullname: str) -> str:
    return "init_" + fullname.replace(".", "___")


def find(fullname: str) -> ModuleSpec | None:
    """A compiled module of the package; None for any other name."""
    if not hasattr(_library, _entry(fullname)):
        return None
    file = _FOLDER + fullname[len(_OWN) :].replace(".", "/") + ".py"
    return spec_from_file_location(fullname, file, loader=Loader(fullname, file))


if _library is not None and not any(isinstance(each, Finder) for each in sys.meta_path):
    sys.meta_path.insert(0, Finder())
