"""`torch._C.PyTorchFileWriter`, and blocks around it and the reader: archives record by record, for programs that write
and read them by themselves."""

from __future__ import annotations

import os
from typing import Any

from .archive_writer import ArchiveWriter
from .reader import PyTorchFileReader

_VERSION = "3\n"
_PIECE = 1 << 20


def _is_path(x: object) -> bool:
    return isinstance(x, (str, os.PathLike))


class PyTorchFileWriter:
    """An archive that is written record by record."""

    def __init__(self, name_or_buffer: Any, compute_crc32: bool = True, storage_alignment: int = 64) -> None:
        self._file: Any = None
        folder = "archive"
        target = name_or_buffer
        if _is_path(name_or_buffer):
            target = self._file = open(name_or_buffer, "wb")
            folder = os.path.splitext(os.path.basename(os.fspath(name_or_buffer)))[0] or folder
        self._folder = folder
        self._target = target
        self._names: set[str] = set()
        self._writer = ArchiveWriter(target.write, folder, storage_alignment, compute_crc32)

    def archive_name(self) -> str:
        """The folder that the records are in."""
        return self._folder

    def write_record(self, name: str, data: Any, size: int) -> None:
        """Add a record with the first `size` bytes of `data`."""
        content = data.encode() if isinstance(data, str) else memoryview(data).cast("B")
        if size > len(content):
            raise ValueError(f"write_record(): size {size} is beyond the {len(content)} bytes of '{name}'")
        self._writer.record(name, content[:size])
        self._names.add(name)

    def write_record_metadata(self, name: str, size: int) -> None:
        """Add a record of `size` bytes that somebody else will write."""
        self._writer.hole(name, size, self._skip)
        self._names.add(name)

    def _skip(self, count: int) -> None:
        for start in range(0, count, _PIECE):
            self._target.write(bytes(min(_PIECE, count - start)))

    def get_all_written_records(self) -> set[str]:
        """The names of the records so far."""
        return set(self._names)

    def write_end_of_file(self) -> None:
        """Write what ends an archive; nothing can be added after it."""
        self._writer.finish(_VERSION)
        if self._file is not None:
            self._file.close()


class _open_file_like:
    """`with _open_file_like(f, mode) as stream`: a path is opened and closed, a stream that was written is flushed."""

    def __init__(self, name_or_buffer: Any, mode: str) -> None:
        self._path = _is_path(name_or_buffer)
        self._mode = mode
        if not self._path and "w" not in mode and "r" not in mode:
            raise RuntimeError(f"Expected 'r' or 'w' in mode but got {mode}")
        self.file_like: Any = open(name_or_buffer, mode) if self._path else name_or_buffer

    def __enter__(self) -> Any:
        return self.file_like

    def __exit__(self, *exc: object) -> None:
        if self._path:
            self.file_like.close()
        elif "w" in self._mode:
            self.file_like.flush()


class _open_zipfile_reader:
    """`with _open_zipfile_reader(f) as reader`"""

    def __init__(self, name_or_buffer: Any) -> None:
        self.file_like = PyTorchFileReader(os.fspath(name_or_buffer) if _is_path(name_or_buffer) else name_or_buffer)

    def __enter__(self) -> PyTorchFileReader:
        return self.file_like

    def __exit__(self, *exc: object) -> None:
        self.file_like.close()


class _open_zipfile_writer:
    """`with _open_zipfile_writer(f) as writer`: leaving the block ends the archive."""

    def __init__(self, name_or_buffer: Any) -> None:
        from ..utils.serialization import config

        self.buffer = None if _is_path(name_or_buffer) else name_or_buffer
        if self.buffer is not None and not callable(getattr(self.buffer, "write", None)):
            text = f"Buffer of {str(type(self.buffer)).strip('<>')} has no callable attribute 'write'"
            raise (TypeError if hasattr(self.buffer, "write") else AttributeError)(text)
        self.file_like = PyTorchFileWriter(name_or_buffer, config.save.compute_crc32, config.save.storage_alignment)

    def __enter__(self) -> PyTorchFileWriter:
        return self.file_like

    def __exit__(self, *exc: object) -> None:
        self.file_like.write_end_of_file()
        if self.buffer is not None:
            self.buffer.flush()
