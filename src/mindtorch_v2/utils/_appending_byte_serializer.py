"""`torch.utils._appending_byte_serializer`: a list as bytes, to which more can be added without reading it.

Invariant: bytes begin with a checksum of the rest; bytes that do not fit it are never read.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

__all__ = ["AppendingByteSerializer", "BytesReader", "BytesWriter"]

T = TypeVar("T")
_NUMBER = struct.Struct("<Q")
_SUM = struct.Struct(">I")


class BytesWriter:
    """Collects numbers, texts and bytes."""

    def __init__(self, initial_bytes: bytes = b"") -> None:
        self._data = bytearray(initial_bytes)

    def write_uint64(self, i: int) -> None:
        self._data += _NUMBER.pack(i)

    def write_str(self, s: str) -> None:
        self.write_bytes(s.encode())

    def write_bytes(self, b: bytes) -> None:
        self.write_uint64(len(b))
        self._data += b

    def to_bytes(self) -> bytes:
        """Everything, behind its checksum."""
        return _SUM.pack(zlib.crc32(self._data)) + bytes(self._data)


class BytesReader:
    """Reads in the order of writing."""

    def __init__(self, data: bytes) -> None:
        if len(data) < _SUM.size or _SUM.unpack_from(data)[0] != zlib.crc32(data[_SUM.size :]):
            raise RuntimeError("Bytes object is corrupted, checksum does not match the bytes that follow it")
        self._data, self._at = data, _SUM.size

    def is_finished(self) -> bool:
        return self._at == len(self._data)

    def _take(self, count: int) -> bytes:
        if count > len(self._data) - self._at:
            raise RuntimeError(f"{count} bytes were asked for and {len(self._data) - self._at} are left")
        found = self._data[self._at : self._at + count]
        self._at += count
        return found

    def read_uint64(self) -> int:
        number: int = _NUMBER.unpack(self._take(_NUMBER.size))[0]
        return number

    def read_str(self) -> str:
        return self.read_bytes().decode()

    def read_bytes(self) -> bytes:
        return self._take(self.read_uint64())


class AppendingByteSerializer(Generic[T]):
    """Writes elements with `serialize_fn` as they come."""

    def __init__(self, *, serialize_fn: Callable[[BytesWriter, T], None]) -> None:
        self._serialize_fn = serialize_fn
        self.clear()

    def clear(self) -> None:
        self._writer = BytesWriter()

    def append(self, data: T) -> None:
        self._serialize_fn(self._writer, data)

    def extend(self, elems: Iterable[T]) -> None:
        for elem in elems:
            self.append(elem)

    def to_bytes(self) -> bytes:
        return self._writer.to_bytes()

    @staticmethod
    def to_list(data: bytes, *, deserialize_fn: Callable[[BytesReader], T]) -> list[T]:
        """The elements of bytes from `to_bytes`."""
        reader = BytesReader(data)
        found = []
        while not reader.is_finished():
            found.append(deserialize_fn(reader))
        return found
