"""`torch.PyTorchFileReader`: the records of a checkpoint, for programs that load parts of one by themselves.

Invariant: every byte goes through `Archive`, which trusts nothing that the file says of itself.
"""

from __future__ import annotations

import weakref
from typing import Any

from .._dtype import dtype as DType
from .._dtype import uint8
from .._storage import UntypedStorage
from .archive import Archive, FileSource, StreamSource


class PyTorchFileReader:
    """The archive in a file, given by its name or as an object that reads and seeks."""

    def __init__(self, file: Any) -> None:
        self._closing: Any = None
        if not isinstance(file, str):
            self._archive = Archive(StreamSource(file))
            return
        try:
            self._file = open(file, "rb", buffering=0)
        except OSError as error:
            raise RuntimeError(
                f"open file failed because of errno {error.errno} on fopen: {error.strerror}, file path: {file}"
            ) from None
        self._closing = weakref.finalize(self, self._file.close)
        self._archive = Archive(FileSource(self._file.fileno()))

    def close(self) -> None:
        """Close the file, if it was opened here; an object that was given stays as it is."""
        if self._closing is not None:
            self._closing()

    def has_record(self, name: str) -> bool:
        """Whether the archive has a record of this name."""
        return name in self._archive

    def get_all_records(self) -> list[str]:
        """The names of all records, in the file's order."""
        return list(self._archive.names())

    def get_record(self, name: str) -> bytes:
        """The bytes of a record."""
        return self._archive.record(name)

    def get_record_size(self, name: str) -> int:
        """How many bytes a record has."""
        return self._archive.entry(name).size

    def get_record_offset(self, name: str) -> int:
        """Where in the file a record's bytes begin."""
        return self._archive.place(self._archive.entry(name))

    def get_record_header_offset(self, name: str) -> int:
        """Where in the file a record begins, with what stands before its bytes."""
        return self._archive.entry(name).header

    def serialization_id(self) -> str:
        """What the writer calls these contents; empty where it did not."""
        name = ".data/serialization_id"
        return self._archive.record(name, 1024).decode("ascii", "replace") if name in self._archive else ""

    def get_storage_from_record(self, name: str, numel: int, kind: Any) -> Any:
        """A tensor without elements whose storage holds a record: `numel` elements of a dtype, or bytes."""
        import mindtorch_v2 as torch

        dtype = kind if isinstance(kind, DType) else uint8
        size, each = self._archive.entry(name).size, dtype.itemsize
        if size != numel * each:
            raise RuntimeError(
                f"record size ({size} bytes) does not match expected size ({numel * each} bytes = {numel} elements * "
                f"{each} bytes/element) for dtype {dtype.scalar_name}"
            )
        storage = UntypedStorage(size)
        if size:
            self._archive.record_into(name, storage._bytes())
        return torch.empty(0, dtype=dtype, device="cpu").set_(storage, 0, (0,))
