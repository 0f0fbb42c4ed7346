"""Files of safetensors: eight bytes with the length of a header, the header in JSON, and the bytes of the tensors.

Invariant: nothing of a file is believed: lengths, offsets, shapes and dtypes are checked before a byte is read by them.
"""

from __future__ import annotations

import json
import math
import os
import struct
from typing import Any

from ... import _dtype as _d

__all__ = ["Stored", "opened", "written"]

_NAMES = {
    "F64": _d.float64,
    "F32": _d.float32,
    "F16": _d.float16,
    "BF16": _d.bfloat16,
    "BOOL": _d.bool,
    "I64": _d.int64,
    "I32": _d.int32,
    "I16": _d.int16,
    "I8": _d.int8,
    "U8": _d.uint8,
    "U64": _d.uint64,
    "U32": _d.uint32,
    "U16": _d.uint16,
    "C64": _d.complex64,
    "F8_E4M3": _d.float8_e4m3fn,
    "F8_E5M2": _d.float8_e5m2,
}
_TEXT = {dtype: name for name, dtype in _NAMES.items()}
_LONGEST_HEADER = 100_000_000


def _bytes_of(tensor: Any) -> bytes:
    from ... import uint8

    flat = tensor.detach().to("cpu").contiguous().reshape(-1)
    return bytes(flat.view(uint8).numpy()) if flat.numel() else b""


def written(stream: Any, tensors: dict[str, Any], notes: dict[str, str] | None) -> None:
    """Write tensors by name, the widest dtypes first, so that each lies where it may."""
    header: dict[str, Any] = {} if notes is None else {"__metadata__": notes}
    order = sorted(tensors.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    at = 0
    for name, tensor in order:
        if tensor.dtype not in _TEXT:
            raise ValueError(f"safetensors has no name for {tensor.dtype}, the dtype of '{name}'")
        end = at + tensor.numel() * tensor.dtype.itemsize
        header[name] = {"dtype": _TEXT[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    stream.write(struct.pack("<Q", len(text)) + text)
    for _, tensor in order:
        stream.write(_bytes_of(tensor))


class Stored:
    """A tensor in a file."""

    def __init__(self, path: str, dtype: Any, shape: list[int], start: int, end: int) -> None:
        self.path, self.dtype, self.shape, self._start, self._end = path, dtype, shape, start, end

    def read(self) -> Any:
        """The tensor."""
        from ... import empty, frombuffer

        if self._start == self._end:
            return empty(self.shape, dtype=self.dtype, device="cpu")
        with open(self.path, "rb") as stream:
            stream.seek(self._start)
            data = bytearray(stream.read(self._end - self._start))
        if len(data) != self._end - self._start:
            raise ValueError(f"{self.path}: the file ends inside a tensor")
        return frombuffer(data, dtype=self.dtype).reshape(self.shape)


def _entry(path: str, name: str, told: Any, start: int, size: int) -> Stored:
    wrong = f"{path}: the header says of '{name}' what cannot be: {told}"
    if not isinstance(told, dict) or told.get("dtype") not in _NAMES:
        raise ValueError(wrong)
    shape, offsets = told.get("shape"), told.get("data_offsets")
    for numbers in (shape, offsets):
        if not isinstance(numbers, list) or not all(type(each) is int and each >= 0 for each in numbers):
            raise ValueError(wrong)
    assert isinstance(shape, list) and isinstance(offsets, list)
    dtype = _NAMES[told["dtype"]]
    if len(offsets) != 2 or start + offsets[1] > size or offsets[1] - offsets[0] != math.prod(shape) * dtype.itemsize:
        raise ValueError(wrong)
    return Stored(path, dtype, shape, start + offsets[0], start + offsets[1])


def opened(path: str) -> tuple[dict[str, Stored], dict[str, str]]:
    """The tensors of a file, of which nothing is read yet, and the notes in its header."""
    size = os.path.getsize(path)
    with open(path, "rb") as stream:
        first = stream.read(8)
        length = struct.unpack("<Q", first)[0] if len(first) == 8 else -1
        if not 0 < length <= min(_LONGEST_HEADER, size - 8):
            raise ValueError(f"{path}: no file of safetensors, the length of the header is {length}")
        try:
            header = json.loads(stream.read(length))
        except ValueError as error:
            raise ValueError(f"{path}: no file of safetensors, the header is no JSON: {error}") from None
    if not isinstance(header, dict):
        raise ValueError(f"{path}: no file of safetensors, the header is {type(header).__name__}")
    notes = header.pop("__metadata__", None) or {}
    return {name: _entry(path, name, told, 8 + length, size) for name, told in header.items()}, notes
