"""Reading PyTorch's zip archives.

Invariant: the central directory is a claim, not a fact. A record is read only after its place was found to lie inside
the file, in front of the directory and clear of every other record, and its local header to say the same as the
directory; never more memory is taken than the record's bytes can fill.
"""

from __future__ import annotations

import bisect
import os
import struct
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from .errors import CheckpointError, TruncatedCheckpoint, corrupted

LOCAL_MAGIC = b"PK\x03\x04"
_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR64 = struct.Struct("<4sLQL")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_LONGEST_COMMENT = 0xFFFF
_STORED, _DEFLATED = 0, 8
# No stream of DEFLATE gets longer than this when it is decompressed.
_MOST_PER_BYTE = 1032
_PIECE = 1 << 20
_OLDEST, _NEWEST = 1, 10


class FileSource:
    """An open file, read at any place without moving a position."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.size = os.fstat(fd).st_size

    def read(self, offset: int, count: int) -> bytes:
        buffer = bytearray(count)
        self.read_into(offset, memoryview(buffer))
        return bytes(buffer)

    def read_into(self, offset: int, target: memoryview) -> None:
        done = 0
        while done < len(target):
            got = os.preadv(self.fd, [target[done:]], offset + done)
            if got == 0:
                raise TruncatedCheckpoint("the file became shorter while it was read")
            done += got


class StreamSource:
    """A seekable object of the user's; the archive begins where it stands."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.start = stream.tell()
        stream.seek(0, os.SEEK_END)
        self.size = stream.tell() - self.start
        stream.seek(self.start)

    def read(self, offset: int, count: int) -> bytes:
        self.stream.seek(self.start + offset)
        parts = []
        while count > 0:
            part = self.stream.read(count)
            if not part:
                raise TruncatedCheckpoint("the file ended before all of it was read")
            parts.append(part)
            count -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def read_into(self, offset: int, target: memoryview) -> None:
        fill = getattr(self.stream, "readinto", None)
        self.stream.seek(self.start + offset)
        done = 0
        while done < len(target):
            if fill is None:
                part = self.stream.read(min(len(target) - done, _PIECE))
                got = len(part)
                target[done : done + got] = part
            else:
                got = fill(target[done:])
            if not got:
                raise TruncatedCheckpoint("the file ended before all of it was read")
            done += got


class Entry(NamedTuple):
    """What the central directory says of a record."""

    name: str
    method: int
    packed: int
    size: int
    header: int


class Archive:
    """The records of one archive."""

    def __init__(self, source: FileSource | StreamSource) -> None:
        self.source = source
        entries, self._directory = _directory(source)
        if not entries:
            raise corrupted("reading zip archive", "no records in the archive")
        self.folder, slash, _ = entries[0].name.partition("/")
        if not slash:
            raise CheckpointError(f"file in archive is not in a subdirectory: {entries[0].name}")
        self._entries = {e.name: e for e in entries}
        self._headers = sorted(e.header for e in entries)
        if len(self._entries) != len(entries) or len(set(self._headers)) != len(entries):
            raise corrupted("reading zip archive", "records with one name or in one place")
        self._check_version()

    def _check_version(self) -> None:
        name = ".data/version" if ".data/version" in self else "version"
        if name not in self:
            raise CheckpointError('Expected hasRecord("version") to be true, but got false.')
        text = self.record(name, 64).decode("ascii", "replace").strip()
        if not text.isdigit() or len(text) > 18:
            raise CheckpointError(f"Couldn't parse the version {text} as Long Long.")
        version = int(text)
        if version < _OLDEST:
            raise CheckpointError(
                f"Attempted to read a PyTorch file with version {version}, but the minimum supported version for "
                f"reading is {_OLDEST}. Your PyTorch script module file is too old. Please regenerate it with latest "
                "version of PyTorch to mitigate this issue."
            )
        if version > _NEWEST:
            raise CheckpointError(
                f"Attempted to read a PyTorch file with version {version}, but the maximum supported version for "
                f"reading is {_NEWEST}. The version of your PyTorch installation may be too old, please upgrade "
                "PyTorch to latest version to mitigate this issue."
            )

    def __contains__(self, name: str) -> bool:
        return f"{self.folder}/{name}" in self._entries

    def names(self) -> Iterator[str]:
        """The records inside the archive's folder."""
        start = len(self.folder) + 1
        return (name[start:] for name in self._entries if name.startswith(self.folder + "/"))

    def entry(self, name: str) -> Entry:
        found = self._entries.get(f"{self.folder}/{name}")
        if found is None:
            raise corrupted(f"locating file {name}", "file not found")
        if found.method not in (_STORED, _DEFLATED):
            raise corrupted(f"retrieving file meta-data for {name}", "unsupported method")
        if found.method == _STORED and found.packed != found.size:
            raise corrupted(f"reading file {name}", "a stored record with two sizes")
        if found.size > found.packed * _MOST_PER_BYTE:
            raise corrupted(f"reading file {name}", "a record that cannot become as long as it says")
        return found

    def place(self, entry: Entry) -> int:
        """Where the bytes of a record begin."""
        after = bisect.bisect_right(self._headers, entry.header)
        end = self._headers[after] if after < len(self._headers) else self._directory
        if entry.header + _LOCAL.size > end:
            raise corrupted(f"reading file {entry.name}", "records overlap")
        local = _LOCAL.unpack(self.source.read(entry.header, _LOCAL.size))
        magic, flags, method, name_size, extra_size = local[0], local[2], local[3], local[9], local[10]
        start = entry.header + _LOCAL.size + name_size + extra_size
        if magic != LOCAL_MAGIC or flags & 1 or method != entry.method:
            raise corrupted(f"reading file {entry.name}", "invalid header or archive is corrupted")
        if start + entry.packed > end:
            raise corrupted(f"reading file {entry.name}", "records overlap")
        if self.source.read(entry.header + _LOCAL.size, name_size) != entry.name.encode():
            raise corrupted(f"reading file {entry.name}", "invalid header or archive is corrupted")
        return int(start)

    def offset_if_stored(self, name: str) -> int | None:
        """Where the bytes of a record begin in the file; None if they are compressed."""
        entry = self.entry(name)
        return self.place(entry) if entry.method == _STORED else None

    def record(self, name: str, limit: int | None = None) -> bytes:
        """The bytes of a record. One longer than `limit` is malformed."""
        entry = self.entry(name)
        if limit is not None and entry.size > limit:
            raise corrupted(f"reading file {name}", "file too large")
        start = self.place(entry)
        if entry.method == _STORED:
            return self.source.read(start, entry.size)
        out = bytearray()
        for piece in self._inflated(entry, start):
            out += piece
        return bytes(out)

    def record_into(self, name: str, target: memoryview) -> None:
        """Fill `target`, which has the record's size."""
        entry = self.entry(name)
        start = self.place(entry)
        if entry.method == _STORED:
            self.source.read_into(start, target)
            return
        done = 0
        for piece in self._inflated(entry, start):
            target[done : done + len(piece)] = piece
            done += len(piece)

    def _inflated(self, entry: Entry, start: int) -> Iterator[bytes]:
        """A compressed record in pieces, which together have exactly the size it should have."""
        stream = zlib.decompressobj(-15)
        left, read = entry.size, 0
        try:
            while read < entry.packed and not stream.eof:
                count = min(_PIECE, entry.packed - read)
                packed = self.source.read(start + read, count)
                read += count
                while packed and not stream.eof:
                    # One byte more than is due shows a stream that is too long.
                    piece = stream.decompress(packed, min(_PIECE, left + 1))
                    packed = stream.unconsumed_tail
                    left -= len(piece)
                    if left < 0:
                        raise corrupted(f"reading file {entry.name}", "decompression failed or archive is corrupted")
                    yield piece
        except zlib.error:
            raise corrupted(f"reading file {entry.name}", "decompression failed or archive is corrupted") from None
        if left or not stream.eof:
            raise corrupted(f"reading file {entry.name}", "decompression failed or archive is corrupted")


def _directory(source: FileSource | StreamSource) -> tuple[list[Entry], int]:
    """The entries of the central directory, and where it begins."""
    failed = "reading zip archive"
    if source.size < _END.size:
        raise corrupted(failed, "not a ZIP archive")
    count = min(source.size, _END.size + _LONGEST_COMMENT)
    tail = source.read(source.size - count, count)
    at = tail.rfind(b"PK\x05\x06", 0, len(tail) - _END.size + 4)
    if at < 0:
        raise corrupted(failed, "failed finding central directory")
    end_at = source.size - count + at
    _, disk, first_disk, here, total, size, start, _ = _END.unpack_from(tail, at)
    if end_at >= _LOCATOR64.size:
        magic, _, end64_at, _ = _LOCATOR64.unpack(source.read(end_at - _LOCATOR64.size, _LOCATOR64.size))
        if magic == b"PK\x06\x07":
            if end64_at + _END64.size > end_at:
                raise corrupted(failed, "invalid header or archive is corrupted")
            end64 = _END64.unpack(source.read(end64_at, _END64.size))
            if end64[0] != b"PK\x06\x06":
                raise corrupted(failed, "invalid header or archive is corrupted")
            disk, first_disk, here, total, size, start = end64[4:]
            end_at = end64_at
    if disk or first_disk or here != total:
        raise corrupted(failed, "unsupported multidisk")
    if start + size > end_at or total * _CENTRAL.size > size:
        raise corrupted(failed, "invalid header or archive is corrupted")
    return list(_entries(source.read(start, size), total, start)), start


def _entries(data: bytes, total: int, limit: int) -> Iterator[Entry]:
    failed = "reading zip archive"
    at = 0
    for _ in range(total):
        if at + _CENTRAL.size > len(data):
            raise corrupted(failed, "invalid header or archive is corrupted")
        fields = _CENTRAL.unpack_from(data, at)
        magic, flags, method = fields[0], fields[3], fields[4]
        packed, size, header = fields[8], fields[9], fields[16]
        name_size, extra_size, comment_size = fields[10:13]
        name_at = at + _CENTRAL.size
        at = name_at + name_size + extra_size + comment_size
        if magic != b"PK\x01\x02" or at > len(data):
            raise corrupted(failed, "invalid header or archive is corrupted")
        if flags & 1:
            raise corrupted(failed, "unsupported encryption")
        extra = data[name_at + name_size : name_at + name_size + extra_size]
        size, packed, header = _wide(extra, size, packed, header)
        if header + _LOCAL.size + packed > limit:
            raise corrupted(failed, "invalid header or archive is corrupted")
        try:
            name = data[name_at : name_at + name_size].decode()
        except UnicodeDecodeError:
            raise corrupted(failed, "invalid filename") from None
        yield Entry(name, method, packed, size, header)


def _wide(extra: bytes, size: int, packed: int, header: int) -> tuple[int, int, int]:
    """The fields of an entry, those that did not fit taken from the block for 64 bits."""
    values = [size, packed, header]
    wide = [i for i, value in enumerate(values) if value == 0xFFFFFFFF]
    at = 0
    while wide and at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        at += 4
        if at + length > len(extra):
            break
        if kind == 1:
            if length < 8 * len(wide):
                break
            for i in wide:
                (values[i],) = struct.unpack_from("<Q", extra, at)
                at += 8
            return values[0], values[1], values[2]
        at += length
    if wide:
        raise corrupted("reading zip archive", "invalid header or archive is corrupted")
    return size, packed, header
