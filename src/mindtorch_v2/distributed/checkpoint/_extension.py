"""Transformations of the bytes of a checkpoint, by name and version.

Invariant: what a name stands for is in a registry; a checkpoint of this package is written without any.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import IO, Any

__all__ = ["Extension", "ExtensionRegistry", "StreamTransformExtension", "ZStandard"]


class Extension(abc.ABC):
    """What can be named in a checkpoint and found again when it is read."""

    @staticmethod
    @abc.abstractmethod
    def registry_name() -> str:
        """The name under which it is found."""

    @staticmethod
    @abc.abstractmethod
    def from_descriptor(version: str) -> Extension:
        """The extension of a version."""

    @abc.abstractmethod
    def get_descriptor(self) -> str:
        """Name and version, as `name/1`."""


class StreamTransformExtension(Extension):
    """Bytes that are changed on their way to a file and back."""

    @abc.abstractmethod
    def transform_to(self, output: IO[bytes]) -> IO[bytes]:
        """A stream whose bytes go to `output` after they are changed."""

    @abc.abstractmethod
    def transform_from(self, input: IO[bytes]) -> IO[bytes]:
        """A stream of the bytes of `input`, as they were."""


class ZStandard(StreamTransformExtension):
    """Compression by zstandard; not served, and says so."""

    def __init__(self) -> None:
        raise NotImplementedError("checkpoint: compression by ZStandard is not served")

    @staticmethod
    def registry_name() -> str:
        return "stream.zstd"

    @staticmethod
    def from_descriptor(version: str) -> ZStandard:
        if version.partition(".")[0] != "1":
            raise ValueError(f"Unknown extension {version=}")
        return ZStandard()

    @staticmethod
    def is_available() -> bool:
        """False."""
        return False

    def get_descriptor(self) -> str:
        return f"{self.registry_name()}/1"

    def transform_to(self, output: IO[bytes]) -> IO[bytes]:
        raise NotImplementedError("checkpoint: compression by ZStandard is not served")

    def transform_from(self, input: IO[bytes]) -> IO[bytes]:
        raise NotImplementedError("checkpoint: compression by ZStandard is not served")


class ExtensionRegistry:
    """Extensions by name."""

    def __init__(self) -> None:
        self.extensions: dict[str, type[Extension]] = {ZStandard.registry_name(): ZStandard}

    def register(self, cls: type[Extension]) -> None:
        """Let a name stand for a class."""
        self.extensions[cls.registry_name()] = cls

    def from_descriptor_list(self, descriptors: Sequence[str]) -> Sequence[Any]:
        """The extensions of names and versions."""
        found = []
        for each in descriptors:
            name, _, version = each.partition("/")
            if name not in self.extensions:
                raise ValueError(f"Unknown extension name={name!r}.")
            found.append(self.extensions[name].from_descriptor(version or "0"))
        return found
