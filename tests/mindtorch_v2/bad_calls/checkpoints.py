"""Saving and loading: where to, where from, and with what."""

from __future__ import annotations

import io
import pickle
from typing import Any

from ._case import Case

_SEEKABLE = (
    ". You can only torch.load from a file that is seekable. Please pre-load the data into a buffer like io.BytesIO "
    "and try to load from it instead."
)
_CUDA = (
    "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are running on a "
    "CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your storages to the CPU."
)


class NoWrite:
    write = 5


class NoSeek:
    def read(self, count: int = -1) -> bytes:
        return b""


def saved(torch: Any, value: Any = 1, **options: Any) -> io.BytesIO:
    buffer = io.BytesIO()
    torch.save(value, buffer, **options)
    buffer.seek(0)
    return buffer


def two_dtypes(torch: Any) -> Any:
    t = torch.ones(4)
    return torch.save([t, t.view(torch.int32)], io.BytesIO())


CASES: list[Case] = [
    Case(
        "save_no_file",
        lambda torch: {},
        lambda torch, v: torch.save(1, 5),
        "AttributeError",
        "expected 'f' to be string, path, or a file-like object with a 'write' attribute",
    ),
    Case(
        "save_write_is_no_method",
        lambda torch: {},
        lambda torch, v: torch.save(1, NoWrite()),
        "TypeError",
        "Buffer of class 'tests.torch.bad_calls.checkpoints.NoWrite' has no callable attribute 'write'",
    ),
    Case(
        "save_no_folder",
        lambda torch: {},
        lambda torch, v: torch.save(1, "/no/such/folder/x.pt"),
        "RuntimeError",
        "Parent directory /no/such/folder does not exist.",
    ),
    Case(
        "save_protocol",
        lambda torch: {},
        lambda torch, v: torch.save(1, io.BytesIO(), pickle_protocol=9),
        "ValueError",
        "pickle protocol must be <= 5",
    ),
    Case(
        "save_two_dtypes",
        lambda torch: {},
        lambda torch, v: two_dtypes(torch),
        "RuntimeError",
        "Cannot save multiple tensors or storages that view the same data as different types",
    ),
    Case(
        "load_int",
        lambda torch: {},
        lambda torch, v: torch.load(5),
        "AttributeError",
        "'int' object has no attribute 'seek'" + _SEEKABLE,
    ),
    Case(
        "load_no_seek",
        lambda torch: {},
        lambda torch, v: torch.load(NoSeek()),
        "AttributeError",
        "'NoSeek' object has no attribute 'seek'" + _SEEKABLE,
    ),
    Case(
        "load_no_file",
        lambda torch: {},
        lambda torch, v: torch.load("/no/such/file"),
        "FileNotFoundError",
        "[Errno 2] No such file or directory: '/no/such/file'",
    ),
    Case(
        "load_pickle_module",
        lambda torch: {},
        lambda torch, v: torch.load(saved(torch), pickle_module=pickle, weights_only=True),
        "RuntimeError",
        "Can not safely load weights when explicit pickle_module is specified",
    ),
    Case(
        "load_mapped_stream",
        lambda torch: {},
        lambda torch, v: torch.load(saved(torch), mmap=True),
        "ValueError",
        "f must be a file path in order to use the mmap argument",
    ),
    Case(
        "load_mapped_old_format",
        lambda torch: {},
        lambda torch, v: torch.load(saved(torch, _use_new_zipfile_serialization=False), mmap=True),
        "RuntimeError",
        "mmap can only be used with files saved with `torch.save(_use_new_zipfile_serialization=True), please "
        "torch.save your checkpoint with this option in order to use mmap.",
    ),
    Case(
        "load_to_cuda",
        lambda torch: {},
        lambda torch, v: torch.load(saved(torch, torch.ones(2)), map_location="cuda:1"),
        "RuntimeError",
        _CUDA,
    ),
    Case(
        "load_to_nowhere",
        lambda torch: {},
        lambda torch, v: torch.load(saved(torch, torch.ones(2)), map_location="moon"),
        "RuntimeError",
        "don't know how to restore data location of torch.storage.UntypedStorage (tagged with moon)",
    ),
    Case(
        "validate_cuda",
        lambda torch: {},
        lambda torch, v: torch.serialization.validate_cuda_device("cuda:0"),
        "RuntimeError",
        _CUDA,
    ),
    Case(
        "endianness",
        lambda torch: {},
        lambda torch, v: torch.serialization.set_default_load_endianness("big"),
        "TypeError",
        "Invalid argument type in function set_default_load_endianness",
    ),
    Case(
        "mmap_options",
        lambda torch: {},
        lambda torch, v: torch.serialization.set_default_mmap_options(9),
        "ValueError",
        "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got "
        "9",
    ),
    Case(
        "globals_of_an_old_file",
        lambda torch: {},
        lambda torch, v: torch.serialization.get_unsafe_globals_in_checkpoint(
            saved(torch, _use_new_zipfile_serialization=False)
        ),
        "ValueError",
        "Expected input to be a checkpoint returned by torch.save",
    ),
    Case(
        "storage_type",
        lambda torch: {},
        lambda torch, v: torch.serialization.StorageType("MoonStorage"),
        "KeyError",
        "'pickle storage type \"MoonStorage\" is not recognized'",
    ),
]
