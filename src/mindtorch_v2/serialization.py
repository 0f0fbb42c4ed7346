"""`torch.serialization`: saving objects with tensors to files, and loading them.

Invariant: files are PyTorch's, in both directions. Unless told otherwise, loading runs no code that a file names.
"""

from __future__ import annotations

import io as _io
import mmap as _mmap
import os as _os
import pickle as _pickle
import shutil as _shutil
import struct as _struct
import tempfile as _tempfile
import warnings as _warnings
from collections.abc import Callable as _Callable
from collections.abc import Iterator as _Iterator
from contextlib import contextmanager as _contextmanager
from enum import Enum as _Enum
from importlib import import_module as _import_module
from types import TracebackType as _TracebackType
from typing import Any as _Any

from ._layout import _get_layout as _get_layout
from ._serialization import allowed as _allowed
from ._serialization.allowed import StorageType as StorageType
from ._serialization.archive import LOCAL_MAGIC as _LOCAL_MAGIC
from ._serialization.archive import Archive as _Archive
from ._serialization.archive import FileSource as _FileSource
from ._serialization.archive import StreamSource as _StreamSource
from ._serialization.errors import UNSAFE_MESSAGE as UNSAFE_MESSAGE
from ._serialization.errors import CheckpointError as CheckpointError
from ._serialization.errors import TruncatedCheckpoint as TruncatedCheckpoint
from ._serialization.errors import UnsupportedCheckpoint as UnsupportedCheckpoint
from ._serialization.legacy import MAGIC_NUMBER as MAGIC_NUMBER
from ._serialization.legacy import PROTOCOL_VERSION as PROTOCOL_VERSION
from ._serialization.legacy import SourceChangeWarning as SourceChangeWarning
from ._serialization.locations import default_restore_location as default_restore_location
from ._serialization.locations import location_tag as location_tag
from ._serialization.locations import register_package as register_package
from ._serialization.locations import validated as _validated
from ._serialization.state import SURROUNDINGS as _SURROUNDINGS

__all__ = [
    "SourceChangeWarning",
    "mkdtemp",
    "register_package",
    "check_module_version_greater_or_equal",
    "validate_cuda_device",
    "validate_hpu_device",
    "location_tag",
    "default_restore_location",
    "normalize_storage_type",
    "storage_to_tensor_type",
    "save",
    "load",
    "StorageType",
    "LoadEndianness",
    "get_crc32_options",
    "set_crc32_options",
    "get_default_load_endianness",
    "set_default_load_endianness",
    "get_default_mmap_options",
    "set_default_mmap_options",
    "clear_safe_globals",
    "get_safe_globals",
    "add_safe_globals",
    "safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "skip_data",
]


def __getattr__(name: str) -> _Any:
    """Names for annotations, made when asked for."""
    if name == "_serialization_tls":
        return _SURROUNDINGS
    if name in ("_open_file_like", "_open_zipfile_reader", "_open_zipfile_writer"):
        from ._serialization import zip_streams

        return getattr(zip_streams, name)
    if name == "MAP_LOCATION":
        from ._device import device
        from ._storage import UntypedStorage

        return _Callable[[UntypedStorage, str], UntypedStorage] | device | str | dict[str, str] | None
    if name in ("FileLike", "Storage"):
        return getattr(_import_module(".types", __package__), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


DEFAULT_PROTOCOL = 2
LONG_SIZE = _struct.calcsize("=l")
INT_SIZE = _struct.calcsize("=i")
SHORT_SIZE = _struct.calcsize("=h")
STORAGE_KEY_SEPARATOR = ","
_TRUE = ("1", "y", "yes", "true")


# -- options ----------------------------------------------------------------------------------------------------------
class LoadEndianness(_Enum):
    """The byte order of files that do not say theirs."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


def _config() -> _Any:
    return _import_module(".utils.serialization.config", __package__)


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order that is taken for a file's where it does not say; None is little endian."""
    found: LoadEndianness | None = _config().load.endianness
    return found


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Say in which byte order a file is that does not say itself."""
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _config().load.endianness = endianness


def get_crc32_options() -> bool:
    """Whether `save` writes checksums."""
    found: bool = _config().save.compute_crc32
    return found


def set_crc32_options(compute_crc32: bool) -> None:
    """Say whether `save` writes checksums. Without them `load` works as before, other programs may complain."""
    _config().save.compute_crc32 = compute_crc32


def get_default_mmap_options() -> int | None:
    """How `load(mmap=True)` maps a file: `mmap.MAP_PRIVATE` or `mmap.MAP_SHARED`."""
    found: int | None = _config().load.mmap_flags
    return found


class set_default_mmap_options:
    """Say how `load(mmap=True)` maps files, for good or as a context manager."""

    def __init__(self, flags: int) -> None:
        if flags not in (_mmap.MAP_PRIVATE, _mmap.MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, "
                f"but got {flags}"
            )
        self.prev = _config().load.mmap_flags
        _config().load.mmap_flags = flags

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: _TracebackType | None
    ) -> None:
        _config().load.mmap_flags = self.prev


class skip_data:
    """Within this, `save` leaves holes for the bytes of storages and `load` does not read them."""

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        if materialize_fake_tensors:
            raise NotImplementedError("skip_data(): argument 'materialize_fake_tensors': there are no fake tensors")
        self.materialize_fake_tensors = materialize_fake_tensors
        self._before = False

    def __enter__(self) -> None:
        self._before = _SURROUNDINGS.skip_data
        _SURROUNDINGS.skip_data = True

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: _TracebackType | None
    ) -> None:
        _SURROUNDINGS.skip_data = self._before


# -- what files may name ----------------------------------------------------------------------------------------------
def clear_safe_globals() -> None:
    """Forget everything that `add_safe_globals` allowed."""
    _allowed.clear()


def get_safe_globals() -> list[_Any]:
    """What the user allowed files to name."""
    return _allowed.listed()


def add_safe_globals(safe_globals: list[_Any]) -> None:
    """Allow files to name these functions and classes, each under its own name or, in a pair, under the one given."""
    _allowed.add(safe_globals)


class safe_globals:
    """Allow files to name these functions and classes while the block runs."""

    def __init__(self, safe_globals: list[_Any]) -> None:
        self.safe_globals = safe_globals

    def __enter__(self) -> None:
        _allowed.add(self.safe_globals)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: _TracebackType | None
    ) -> None:
        _allowed.remove(self.safe_globals)


def get_unsafe_globals_in_checkpoint(f: _Any) -> list[str]:
    """What a file names that `load` would refuse, found without loading it."""
    from ._serialization.reading import globals_in, pickle_of

    with _opened(f) as stream:
        if not _is_zip(stream):
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        found = globals_in(pickle_of(_archive(stream, f)))
    return list(found.difference(_allowed.default_globals(), _allowed.user_globals()))


# -- devices and classes ----------------------------------------------------------------------------------------------
def validate_cuda_device(location: _Any) -> int:
    """The index of a CUDA device, of which there is none here."""
    return _validated(location, "cuda").index or 0


def validate_hpu_device(location: _Any) -> int:
    """The index of an HPU device, of which there is none here."""
    return _validated(location, "hpu").index or 0


def normalize_storage_type(storage_type: _Any) -> _Any:
    """The class of `torch` with the name of a storage class."""
    return getattr(_import_module(__package__ or ""), storage_type.__name__)


def storage_to_tensor_type(storage: _Any) -> _Any:
    """The tensor class that belongs to a storage's class."""
    kind = type(storage)
    return getattr(_import_module(kind.__module__), kind.__name__.replace("Storage", "Tensor"))


@_contextmanager
def mkdtemp() -> _Iterator[str]:
    """A temporary folder that is removed afterwards."""
    path = _tempfile.mkdtemp()
    try:
        yield path
    finally:
        _shutil.rmtree(path)


def check_module_version_greater_or_equal(
    module: _Any, req_version_tuple: tuple[_Any, ...], error_if_malformed: bool = True
) -> bool:
    """Whether a module's version is at least the one given; its parts are compared as the types given."""
    try:
        parts = module.__version__.split(".")
        found = tuple(type(wanted)(parts[i]) for i, wanted in enumerate(req_version_tuple))
        return bool(found >= req_version_tuple)
    except Exception as error:
        text = (
            f"'{module.__name__}' module version string is malformed '{module.__version__}' and cannot be compared "
            f"with tuple {req_version_tuple}"
        )
        if error_if_malformed:
            raise RuntimeError(text) from error
        _warnings.warn(text + ", but continuing assuming that requirement is met", stacklevel=2)
        return True


def _check_dill(pickle_module: _Any) -> None:
    if pickle_module is None or pickle_module.__name__ != "dill":
        return
    if not check_module_version_greater_or_equal(pickle_module, (0, 3, 1), False):
        raise ValueError(
            f"'torch' supports dill >= 0.3.1, but you have dill {pickle_module.__version__}. Please upgrade dill or "
            "switch to 'pickle'"
        )


# -- save and load ----------------------------------------------------------------------------------------------------
def _is_path(f: object) -> bool:
    return isinstance(f, (str, _os.PathLike))


def save(
    obj: object,
    f: _Any,
    pickle_module: _Any = _pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write an object to a path or a file. A path is replaced whole: it is the old file or the new."""
    _check_dill(pickle_module)
    if not _is_path(f) and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    if _is_path(f):
        f = _os.fsdecode(_os.fspath(f))
    if _use_new_zipfile_serialization:
        from ._serialization.saving import save as write_archive

        write_archive(obj, f, pickle_module, pickle_protocol, _disable_byteorder_record)
    else:
        from ._serialization.legacy import save as write_stream

        write_stream(obj, f, pickle_module, pickle_protocol)


def load(
    f: _Any,
    map_location: _Any = None,
    pickle_module: _Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: _Any,
) -> _Any:
    """Read what `save` or PyTorch wrote. Unless `weights_only=False`, only tensors, plain values and what
    `add_safe_globals` allowed."""
    weights_only = _only_weights(weights_only, pickle_module)
    if weights_only:
        if pickle_module is not None:
            raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
        if pickle_load_args:
            _warnings.warn("pickle_load_args only works if `weights_only=False`.", stacklevel=2)
    elif pickle_module is None:
        pickle_module = _pickle
    if mmap is None:
        mmap = bool(_config().load.mmap)
    _check_dill(pickle_module)
    pickle_load_args.setdefault("encoding", "utf-8")
    if _is_path(f) and _os.fsdecode(f).endswith(".safetensors"):
        return _load_safetensors(_os.fsdecode(f), map_location)
    with _opened(f) as stream:
        if _is_zip(stream):
            return _load_zip(stream, f, map_location, pickle_module, mmap, pickle_load_args)
        if mmap:
            name = f"{f}, " if isinstance(f, str) else ""
            raise RuntimeError(
                f"mmap can only be used with files saved with `torch.save({name}_use_new_zipfile_serialization=True), "
                "please torch.save your checkpoint with this option in order to use mmap."
            )
        from ._serialization.legacy import load as load_stream

        return load_stream(stream, map_location, pickle_module, pickle_load_args)


def _only_weights(asked: bool | None, pickle_module: _Any) -> bool:
    """The argument `weights_only`, and what the environment says about it."""
    always = _os.getenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "0").lower() in _TRUE
    never = _os.getenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "0").lower() in _TRUE
    if always and never:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set, but both "
            "were set."
        )
    if always:
        return True
    if never and asked is None:
        _warnings.warn(
            "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the`weights_only` argument was not "
            "explicitly passed to `torch.load`, forcing weights_only=False.",
            UserWarning,
            stacklevel=3,
        )
        return False
    return pickle_module is None if asked is None else bool(asked)


def _load_zip(
    stream: _Any, f: _Any, map_location: _Any, pickle_module: _Any, mapped: bool, options: dict[str, _Any]
) -> _Any:
    from ._serialization.reading import load as load_archive

    archive = _archive(stream, f)
    if "constants.pkl" in archive:
        _warnings.warn(
            "'torch.load' received a zip file that looks like a TorchScript archive dispatching to 'torch.jit.load' "
            "(call 'torch.jit.load' directly to silence this warning)",
            UserWarning,
            stacklevel=3,
        )
        if pickle_module is None:
            raise CheckpointError(
                "Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``. " + UNSAFE_MESSAGE
            )
        raise UnsupportedCheckpoint("the file is a TorchScript archive; TorchScript is not supported")
    if mapped and not _is_path(f):
        raise ValueError("f must be a file path in order to use the mmap argument")
    return load_archive(archive, map_location, pickle_module, f, mapped, options)


def _load_safetensors(path: str, map_location: _Any) -> _Any:
    """A file of another format, which has a reader of its own for this package."""
    if isinstance(map_location, dict) or callable(map_location):
        kind = "dict" if isinstance(map_location, dict) else "callable"
        raise RuntimeError(
            f"Loading safetensors file with {kind} map_location is not supported. Use a device string or torch.device "
            "instead."
        )
    raise NotImplementedError(
        "torch.load(): argument 'f': safetensors files are read by the package safetensors, not by torch.load here"
    )


@_contextmanager
def _opened(f: _Any) -> _Iterator[_Any]:
    if _is_path(f):
        with open(f, "rb") as stream:
            yield stream
        return
    try:
        f.seek(f.tell())
    except (_io.UnsupportedOperation, AttributeError) as error:
        if "seek" not in str(error) and "tell" not in str(error):
            raise
        raise type(error)(
            f"{error}. You can only torch.load from a file that is seekable. Please pre-load the data into a buffer "
            "like io.BytesIO and try to load from it instead."
        ) from None
    yield f


def _is_zip(stream: _Any) -> bool:
    start = stream.tell()
    head = stream.read(len(_LOCAL_MAGIC))
    stream.seek(start)
    return bool(head == _LOCAL_MAGIC)


_is_zipfile = _is_zip


def _archive(stream: _Any, f: _Any) -> _Archive:
    return _Archive(_FileSource(stream.fileno()) if _is_path(f) else _StreamSource(stream))
