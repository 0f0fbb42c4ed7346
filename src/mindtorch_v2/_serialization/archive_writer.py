"""Writing PyTorch's zip archives.

Invariant: the layout is the one PyTorch's writer gives, byte for byte: records are stored, their bytes begin at
multiples of the alignment, checksums follow them, and nothing is written twice, so that any stream will do.
"""

from __future__ import annotations

import struct
import threading
import zlib
from collections.abc import Callable
from typing import Any

_WIDE = 0xFFFFFFFF
_UTF8, _DESCRIPTOR = 0x800, 0x8
_SMALL = 1 << 16
# From here on the checksum is computed beside the writing.
_LARGE = 1 << 22
_LOCAL, _DESCRIBED, _ENTRY = struct.Struct("<4s5H3L2H"), struct.Struct("<4s3L"), struct.Struct("<4s6H3L5H2L")


class ArchiveWriter:
    """Takes records and passes bytes on to `write`, which writes all it is given."""

    def __init__(self, write: Callable[[Any], None], folder: str, alignment: int, checksums: bool) -> None:
        self._write = write
        self._folder = folder
        self._alignment = alignment
        self._checksums = checksums
        self._at = 0
        # Headers and small records, to be written together.
        self._pending = bytearray()
        self._directory: list[bytes] = []
        self._identity = 0
        self._names = 0

    def record(self, name: str, data: Any) -> None:
        """Add a record with these bytes."""
        view = data if type(data) is bytes else memoryview(data).cast("B") if len(data) else b""
        if len(view) < _SMALL and self._at < _WIDE:
            self._small(name, view)
            return
        start = self._header(name, len(view))
        crc = 0
        if self._checksums and len(view) >= _LARGE:
            beside = _Checksum(view)
            try:
                self._put(view)
            finally:
                crc = beside.result()
        else:
            crc = zlib.crc32(view) if self._checksums else 0
            self._put(view)
        self._footer(name, start, len(view), crc)

    def _small(self, name: str, view: bytes | memoryview) -> None:
        """A record as most are: all of it at once."""
        path, start, size = f"{self._folder}/{name}".encode(), self._at, len(view)
        crc = zlib.crc32(view) if self._checksums else 0
        padding = -(start + 34 + len(path)) % self._alignment
        flags = _UTF8 | _DESCRIPTOR if size else _UTF8
        pending = self._pending
        before = len(pending)
        pending += _LOCAL.pack(b"PK\x03\x04", 0, flags, 0, 0, 0, 0, 0, 0, len(path), padding + 4)
        pending += path + b"FB" + padding.to_bytes(2, "little") + b"Z" * padding
        pending += view
        if size:
            pending += _DESCRIBED.pack(b"PK\x07\x08", crc, size, size)
        self._at += len(pending) - before
        if len(pending) >= _SMALL:
            self._flush()
        entry = _ENTRY.pack(b"PK\x01\x02", 0, 0, flags, 0, 0, 0, crc, size, size, len(path), 0, 0, 0, 0, 0, start)
        self._entered(path, entry + path, crc)

    def hole(self, name: str, size: int, skip: Callable[[int], None]) -> None:
        """Add a record whose bytes somebody else will write."""
        start = self._header(name, size)
        self._flush()
        skip(size)
        self._at += size
        self._footer(name, start, size, 0)

    def finish(self, version: str, name: str = "version") -> None:
        """Write what ends an archive; the version stands in the record of this name."""
        self.record(name, version.encode())
        self.record(".data/serialization_id", f"{self._names:020d}{self._identity:020d}".encode())
        start, size, count = self._at, 0, len(self._directory)
        for entry in self._directory:
            size += len(entry)
        self._put(b"".join(self._directory))
        end = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 0x31E, 45, 0, 0, count, count, size, start)
        end += struct.pack("<4sLQL", b"PK\x06\x07", 0, self._at, 1)
        few = min(count, 0xFFFF)
        end += struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, few, few, min(size, _WIDE), min(start, _WIDE), 0)
        self._put(end)
        self._flush()

    def _put(self, data: Any) -> None:
        if len(data) < _SMALL:
            self._pending += data
            if len(self._pending) >= _SMALL:
                self._flush()
        else:
            self._flush()
            self._write(data)
        self._at += len(data)

    def _flush(self) -> None:
        if self._pending:
            self._write(self._pending)
            self._pending = bytearray()

    def _header(self, name: str, size: int) -> int:
        """Write a local header, padded so that what follows is aligned."""
        start = self._at
        path = f"{self._folder}/{name}".encode()
        wide = b""
        if size >= _WIDE:
            wide = struct.pack("<2H2Q", 1, 16, size, size)
        fixed = start + 30 + len(path) + len(wide) + 4
        padding = -fixed % self._alignment
        extra = wide + struct.pack("<2sH", b"FB", padding) + b"Z" * padding
        flags = _UTF8 | (_DESCRIPTOR if size else 0)
        said = _WIDE if wide else 0
        self._put(struct.pack("<4s5H3L2H", b"PK\x03\x04", 0, flags, 0, 0, 0, 0, said, said, len(path), len(extra)))
        self._put(path + extra)
        return start

    def _footer(self, name: str, start: int, size: int, crc: int) -> None:
        path = f"{self._folder}/{name}".encode()
        wide = b""
        if size >= _WIDE:
            wide += struct.pack("<2Q", size, size)
        if start >= _WIDE:
            wide += struct.pack("<Q", start)
        if size:
            form = "<4sL2Q" if start >= _WIDE or size >= _WIDE else "<4s3L"
            self._put(struct.pack(form, b"PK\x07\x08", crc, size, size))
        extra = struct.pack("<2H", 1, len(wide)) + wide if wide else b""
        short = min(size, _WIDE)
        entry = _ENTRY.pack(
            *(b"PK\x01\x02", 0, 0, _UTF8 | (_DESCRIPTOR if size else 0), 0, 0, 0, crc, short, short),
            *(len(path), len(extra), 0, 0, 0, 0, min(start, _WIDE)),
        )
        self._entered(path, entry + path + extra, crc)

    def _entered(self, path: bytes, entry: bytes, crc: int) -> None:
        self._directory.append(entry)
        self._identity = (self._identity * 31 + crc + 1) & (1 << 64) - 1
        self._names = (self._names * 31 + zlib.crc32(path) + 1) & (1 << 64) - 1


class _Checksum:
    """A checksum computed by another thread while the bytes are written."""

    def __init__(self, view: bytes | memoryview) -> None:
        self._value = 0
        self._thread = threading.Thread(target=self._compute, args=(view,), daemon=True)
        self._thread.start()

    def _compute(self, view: bytes | memoryview) -> None:
        self._value = zlib.crc32(view)

    def result(self) -> int:
        self._thread.join()
        return self._value
