"""`torch.package`: models with their code in one archive. Refused by name: `torch.save` keeps values without code."""

from __future__ import annotations

from typing import Any, NoReturn


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(
        f"torch.package.{name} is not supported: archives with code are neither written nor read here; keep values "
        "with torch.save and code in a package"
    )


class _Refused:
    """A class of PyTorch that cannot be made here."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse(type(self).__name__)


class PackageExporter(_Refused):
    """Writes archives; refused."""


class PackageImporter(_Refused):
    """Reads archives; refused."""


class Importer(_Refused):
    """Finds modules by name; refused."""


class OrderedImporter(Importer):
    """Asks several importers in turn; refused."""


class Directory(_Refused):
    """What is in an archive; refused."""


class GlobGroup(_Refused):
    """Names by patterns; refused."""


class PackagingError(Exception):
    """Raised by PyTorch when an archive cannot be written."""


class EmptyMatchError(Exception):
    """Raised by PyTorch when a pattern matches no module."""


class ObjNotFoundError(Exception):
    """Raised by PyTorch when an importer does not find an object."""


class ObjMismatchError(Exception):
    """Raised by PyTorch when an importer finds another object."""


def is_from_package(obj: Any) -> bool:
    """Whether an object's code came from an archive: never here."""
    return False
