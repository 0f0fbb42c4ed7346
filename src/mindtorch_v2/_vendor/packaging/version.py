"""`torch._vendor.packaging.version`: a version read from a string, by the order of `TorchVersion`."""

from __future__ import annotations

import re

from ..._version import TorchVersion, _key

__all__ = ["InvalidVersion", "Version", "parse"]


class InvalidVersion(ValueError):
    """A string that is not a version."""


class Version(TorchVersion):
    """A version with its numbers."""

    def __new__(cls, version: str) -> Version:
        if _key(version) is None:
            raise InvalidVersion(f"Invalid version: {version!r}")
        return super().__new__(cls, version.strip())

    @property
    def release(self) -> tuple[int, ...]:
        """The numbers between the dots."""
        found = re.match(r"v?(?:\d+!)?(\d+(?:\.\d+)*)", str(self))
        assert found is not None
        return tuple(int(part) for part in found[1].split("."))

    @property
    def major(self) -> int:
        return self.release[0]

    @property
    def minor(self) -> int:
        return self.release[1] if len(self.release) > 1 else 0

    @property
    def micro(self) -> int:
        return self.release[2] if len(self.release) > 2 else 0


def parse(version: str) -> Version:
    """The version that a string names."""
    return Version(version)
