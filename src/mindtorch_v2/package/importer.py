"""Environments in which modules and objects are found by name.

Invariant: a name that `get_name` answers leads, in the same environment, back to the same object.
"""

from __future__ import annotations

import importlib
import pickle
from abc import ABC, abstractmethod
from types import ModuleType
from typing import Any

from .._serialization.names import is_theirs, theirs
from ._mangling import demangle, get_mangle_prefix, is_mangled


class ObjNotFoundError(Exception):
    """An importer has no object of a name."""


class ObjMismatchError(Exception):
    """An importer has another object of the same name."""


def _attribute(module: Any, name: str) -> Any:
    for part in name.split("."):
        if part == "<locals>":
            raise AttributeError(f"Can't get local attribute {name!r} on {module!r}")
        module = getattr(module, part)
    return module


class Importer(ABC):
    """An environment of modules."""

    modules: dict[str, ModuleType]

    @abstractmethod
    def import_module(self, module_name: str) -> ModuleType:
        """The module of a name."""

    def get_name(self, obj: Any, name: str | None = None) -> tuple[str, str]:
        """Module and name by which an object is found here."""
        if name is None and not isinstance(obj, type):
            own: Any = type(obj).__reduce__
            reduced = obj.__reduce__() if own is not object.__reduce__ else None
            name = reduced if isinstance(reduced, str) else None
        if name is None:
            name = getattr(obj, "__qualname__", None) or obj.__name__
        found = self.whichmodule(obj, name)
        module_name, place = theirs(demangle(found), name)
        try:
            module = self.import_module(module_name)
            # What is of this package bears PyTorch's name, under which pickles may mean something simpler.
            ours = demangle(found).partition(".")[0] == "mindtorch_v2"
            other = _attribute(importlib.import_module(found), name) if ours else _attribute(module, place)
        except (ImportError, KeyError, AttributeError):
            raise ObjNotFoundError(f"{obj} was not found as {module_name}.{place}") from None
        if other is obj:
            return module_name, place

        def where(module: str) -> str:
            return f"the importer for {get_mangle_prefix(module)}" if is_mangled(module) else "the current environment"

        here = where(getattr(other, "__module__", "") or "")
        raise ObjMismatchError(
            f"\n\nThe object provided is from '{found}', which is coming from {where(found)}.\nHowever, when we "
            f"import '{module_name}', it's coming from {here}.\nTo fix this, make sure this 'PackageExporter's "
            "importer lists the importer of the object first."
        )

    def whichmodule(self, obj: Any, name: str) -> str:
        """The module that an object says it is from, or one that has it."""
        said = getattr(obj, "__module__", None)
        if said is not None:
            return str(said)
        for module_name, module in self.modules.copy().items():
            if module_name in ("__main__", "__mp_main__") or module is None:
                continue
            try:
                if _attribute(module, name) is obj:
                    return module_name
            except AttributeError:
                pass
        return "__main__"


class _SysImporter(Importer):
    """The environment of this process."""

    def import_module(self, module_name: str) -> ModuleType:
        # PyTorch's names mean this package, whether or not it goes by them.
        if is_theirs(module_name):
            try:
                return importlib.import_module("mindtorch_v2" + module_name[len("torch") :])
            except ModuleNotFoundError:
                return importlib.import_module(module_name)
        return importlib.import_module(module_name)

    def whichmodule(self, obj: Any, name: str) -> str:
        return pickle.whichmodule(obj, name)  # type: ignore[attr-defined,no-any-return]


sys_importer = _SysImporter()


class OrderedImporter(Importer):
    """Several environments, asked in turn."""

    def __init__(self, *args: Importer) -> None:
        self._importers: list[Importer] = list(args)

    def _is_torchpackage_dummy(self, module: ModuleType) -> bool:
        """Whether a module only holds the place of a package whose code is elsewhere."""
        if not getattr(module, "__torch_package__", False) or not hasattr(module, "__path__"):
            return False
        return getattr(module, "__file__", None) is None

    def get_name(self, obj: Any, name: str | None = None) -> tuple[str, str]:
        last: Exception | None = None
        for importer in self._importers:
            try:
                return importer.get_name(obj, name)
            except (ObjNotFoundError, ObjMismatchError) as error:
                last = error
        raise last or ObjNotFoundError(f"{obj} was not found: there are no importers")

    def import_module(self, module_name: str) -> ModuleType:
        last: ModuleNotFoundError | None = None
        for importer in self._importers:
            if not isinstance(importer, Importer):
                raise TypeError(
                    f"{importer} is not a Importer. All importers in OrderedImporter must inherit from Importer."
                )
            try:
                module = importer.import_module(module_name)
            except ModuleNotFoundError as error:
                last = error
                continue
            if not self._is_torchpackage_dummy(module):
                return module
        raise last or ModuleNotFoundError(module_name)

    def whichmodule(self, obj: Any, name: str) -> str:
        for importer in self._importers:
            found = importer.whichmodule(obj, name)
            if found != "__main__":
                return found
        return "__main__"
