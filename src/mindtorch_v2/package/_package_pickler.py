"""A pickler that names globals as an importer knows them."""

from __future__ import annotations

import pickle
from types import FunctionType
from typing import Any

from ._mangling import demangle
from .importer import Importer, ObjMismatchError, ObjNotFoundError, _attribute

_Pickler: Any = vars(pickle)["_Pickler"]


class PackagePickler(_Pickler):  # type: ignore[misc]
    """Python's own pickler, with names from an importer and without the prefixes of archives."""

    dispatch = _Pickler.dispatch.copy()

    def __init__(self, importer: Importer, *args: Any, **kwargs: Any) -> None:
        self.importer = importer
        super().__init__(*args, **kwargs)

    def save_global(self, obj: Any, name: str | None = None) -> None:
        """Write a name instead of an object."""
        try:
            module_name, name = self.importer.get_name(obj, name)
        except (ObjNotFoundError, ObjMismatchError) as error:
            raise pickle.PicklingError(f"Can't pickle {obj}: {error}") from None
        plain = demangle(module_name)
        if self.proto >= 4:
            self.save(plain)
            self.save(name)
            self.write(pickle.STACK_GLOBAL)
        elif "." in name:
            # Older protocols have no names inside classes.
            outer, _, last = name.rpartition(".")
            self.save_reduce(getattr, (_attribute(self.importer.import_module(module_name), outer), last))
        else:
            self.write(pickle.GLOBAL + plain.encode("utf-8") + b"\n" + name.encode("utf-8") + b"\n")
        self.memoize(obj)

    dispatch[FunctionType] = save_global


def create_pickler(data_buf: Any, importer: Importer, protocol: int = 4) -> PackagePickler:
    """A pickler that writes into a buffer."""
    return PackagePickler(importer, data_buf, protocol=protocol)
