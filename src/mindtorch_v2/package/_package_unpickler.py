"""An unpickler that finds globals through an importer."""

from __future__ import annotations

import pickle
from typing import Any

from .._serialization.names import find, is_theirs
from .importer import Importer, _attribute

_Unpickler: Any = vars(pickle)["_Unpickler"]


class PackageUnpickler(_Unpickler):  # type: ignore[misc]
    """Python's own unpickler, with modules from an importer."""

    def __init__(self, importer: Importer, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._importer = importer

    def find_class(self, module: str, name: str) -> Any:
        """What a name means in the importer's environment."""
        found = self._importer.import_module(module)
        return find(module, name) if is_theirs(module) else _attribute(found, name)
