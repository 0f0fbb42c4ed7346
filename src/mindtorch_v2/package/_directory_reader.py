"""The records of an archive that was unpacked into a directory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import mindtorch_v2 as torch


class _HasStorage:
    """Something that has a storage, as tensors do."""

    def __init__(self, storage: Any) -> None:
        self._storage = storage

    def storage(self) -> Any:
        """The storage."""
        return self._storage

    def untyped_storage(self) -> Any:
        """The storage without a dtype."""
        return self._storage._untyped_storage


class DirectoryReader:
    """Reads records as files below a directory, with the methods of `torch.PyTorchFileReader`."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def get_record(self, name: str) -> bytes:
        """The bytes of a record."""
        return Path(self.directory, name).read_bytes()

    def get_storage_from_record(self, name: str, numel: int, dtype: Any) -> _HasStorage:
        """Something with the storage that a record holds."""
        data = bytearray(self.get_record(name))
        untyped = torch.UntypedStorage(len(data))
        if data:
            untyped._bytes()[:] = data
        return _HasStorage(torch.TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True))

    def has_record(self, path: str) -> bool:
        """Whether there is a record of this name."""
        return os.path.isfile(os.path.join(self.directory, path))

    def get_all_records(self) -> list[str]:
        """The names of all records."""
        found = []
        for folder, _, names in sorted(os.walk(self.directory)):
            inside = os.path.relpath(folder, self.directory)
            found += [name if inside == "." else f"{Path(inside).as_posix()}/{name}" for name in sorted(names)]
        return found

    def serialization_id(self) -> str:
        """What the writer calls these contents; empty where it did not."""
        name = ".data/serialization_id"
        return self.get_record(name).decode("ascii", "replace") if self.has_record(name) else ""
