"""The formats before zip: a stream of pickles followed by the storages, and tar files of PyTorch's first releases.

Invariant: storages together are no longer than the file, which is checked before each is allocated; they are filled
after the objects exist.
"""

from __future__ import annotations

import difflib
import inspect
import io
import os
import pickle
import struct
import sys
import tarfile
import warnings
from collections.abc import Callable
from typing import Any

from .. import nn
from .._storage import UntypedStorage
from .._typed_storage import TypedStorage, wrapped
from .._utils import _over
from .archive import StreamSource
from .atomic import AtomicFile
from .errors import UNSAFE_MESSAGE, CheckpointError, Refused, TruncatedCheckpoint, advised, shown
from .locations import location_tag, restorer
from .names import theirs
from .reading import parsed, unrestricted
from .saving import Pickled, Target, on_host
from .state import SURROUNDINGS
from .unpickler import Unpickler

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001
_WINDOW = 1 << 16
_COUNT = struct.Struct("<q")


class SourceChangeWarning(Warning):
    """The source of a saved module's class is no longer what it was."""

    __module__ = "mindtorch_v2.serialization"


# -- writing ----------------------------------------------------------------------------------------------------------
class _Pickled(Pickled):
    """The same with the ids of this format; classes of modules are saved with their source."""

    kinds = (TypedStorage, UntypedStorage, type)

    def __init__(self) -> None:
        super().__init__()
        self.items: dict[str, int] = {}
        self._classes: set[Any] = set()

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, type) and issubclass(obj, nn.Module):
            return self._class_id(obj)
        found = self.describe(obj)
        if found is None:
            return None
        storage, kind, dt, count = found
        key = self._keys.setdefault(storage._cdata, str(len(self._keys)))
        self.storages.setdefault(key, storage)
        self.items.setdefault(key, dt.itemsize)
        return ("storage", kind, key, location_tag(storage), count, None)

    def _class_id(self, cls: Any) -> Any:
        # Ours go by PyTorch's name, and its source is not ours.
        if cls in self._classes or theirs(cls.__module__, cls.__qualname__)[0] != cls.__module__:
            return None
        self._classes.add(cls)
        try:
            return ("module", cls, inspect.getsourcefile(cls), inspect.getsource(cls))
        except Exception:
            warnings.warn(_no_source(cls), stacklevel=2)
            return ("module", cls, None, None)


def _no_source(cls: Any) -> str:
    return (
        f"Couldn't retrieve source code for container of type {cls.__name__}. It won't be checked for correctness upon "
        "loading."
    )


def save(obj: Any, f: Any, pickle_module: Any, protocol: int) -> None:
    """Write the stream of pickles and storages to a path or a stream."""
    if SURROUNDINGS.skip_data:
        raise RuntimeError("Cannot use skip_data=True with _use_new_zipfile_serialization=False")
    pickled = _Pickled()
    sizes = {"short": 2, "int": 4, "long": struct.calcsize("=l")}
    info = {"protocol_version": PROTOCOL_VERSION, "little_endian": sys.byteorder == "little", "type_sizes": sizes}
    head = [pickle_module.dumps(part, protocol=protocol) for part in (MAGIC_NUMBER, PROTOCOL_VERSION, info)]
    head.append(pickled.dumps(obj, pickle_module, protocol, pickled.persistent_id))
    keys = sorted(pickled.storages)
    head.append(pickle_module.dumps(keys, protocol=protocol))
    if isinstance(f, str):
        if not os.path.isdir(os.path.dirname(f) or "."):
            raise FileNotFoundError(2, os.strerror(2), f)
        with AtomicFile(f) as target:
            _write(pickled, keys, head, target.write)
        return
    _write(pickled, keys, head, Target(f).write)
    f.flush()


def _write(pickled: _Pickled, keys: list[str], head: list[bytes], write: Callable[[Any], None]) -> None:
    write(b"".join(head))
    for key in keys:
        storage = pickled.storages[key]
        write(_COUNT.pack(storage.nbytes() // pickled.items[key]))
        if storage.nbytes():
            write(on_host(storage)._bytes())


# -- reading ----------------------------------------------------------------------------------------------------------
class _Stream:
    """The stream of pickles, by the restricted unpickler or by one of the user's choice."""

    def __init__(self, f: Any, pickle_module: Any, options: dict[str, Any]) -> None:
        self.f = f
        self.module = pickle_module
        self.options = options
        self.source = StreamSource(f)
        self.at = 0

    def load(self, persistent_load: Callable[[Any], Any] | None = None) -> Any:
        if self.module is not None:
            self.f.seek(self.source.start + self.at)
            value = unrestricted(self.module, self.f, persistent_load or _no_ids, self.options).load()
            self.at = self.f.tell() - self.source.start
            return value
        window = _WINDOW
        while True:
            count = min(window, self.source.size - self.at)
            data = self.source.read(self.at, count) if count else b""
            if count == self.source.size - self.at or _whole(data):
                reader = Unpickler(data, persistent_load, self.options["encoding"])
                value = reader.load()
                self.at += reader.end
                return value
            window *= 4

    def read(self, count: int) -> bytes:
        if count > self.source.size - self.at:
            raise TruncatedCheckpoint("the file ends before its storages do")
        data = self.source.read(self.at, count)
        self.at += count
        return data

    def fill(self, target: memoryview) -> None:
        if len(target) > self.source.size - self.at:
            raise TruncatedCheckpoint("the file ends before its storages do")
        if len(target):
            self.source.read_into(self.at, target)
        self.at += len(target)


def _no_ids(pid: Any) -> Any:
    raise pickle.UnpicklingError("unsupported persistent id encountered")


def _whole(data: bytes) -> bool:
    """Whether a pickle ends inside `data`."""
    import pickletools

    try:
        for _ in pickletools.genops(data):
            pass
    except ValueError:
        return False
    return True


class _Objects:
    """Storages by their keys, made empty while the pickle is read."""

    def __init__(self, map_location: Any, limit: int) -> None:
        self.restore = restorer(map_location)
        self.left = limit
        self.made: dict[str, TypedStorage] = {}

    def persistent_load(self, pid: Any) -> Any:
        if not isinstance(pid, tuple) or not pid:
            raise CheckpointError(f"saved_id must be a tuple, got {type(pid).__name__}")
        kind = pid[0].decode("ascii", "replace") if isinstance(pid[0], bytes) else pid[0]
        if kind == "module":
            _check_source(*pid[1:4])
            return pid[1]
        if kind != "storage":
            raise CheckpointError(f"Unknown saved id type: {shown(kind)}")
        _, key, location, count, dt = parsed(pid, 6)
        found = self.made.get(key)
        if found is None:
            found = self.made[key] = wrapped(self._empty(count * dt.itemsize, location), dt)
        elif not count and found.dtype is not dt:
            return wrapped(found._untyped_storage, dt)  # an empty one may be asked for with several dtypes
        return found if pid[5] is None else self._view(found, pid[5])

    def _empty(self, nbytes: int, location: str) -> UntypedStorage:
        self.left -= nbytes
        if self.left < 0:
            raise TruncatedCheckpoint("the file ends before its storages do")
        restored: UntypedStorage = self.restore(UntypedStorage(nbytes), location)
        return restored

    def _view(self, root: TypedStorage, view: Any) -> TypedStorage:
        if not isinstance(view, tuple) or len(view) != 3 or not isinstance(view[0], (str, bytes)):
            raise CheckpointError("a view of a storage must be a key, an offset and a size")
        key, offset, count = view
        name = f"view {key!r}"
        if name not in self.made:
            self.made[name] = part_of(root, offset, count)
        return self.made[name]


def part_of(root: TypedStorage, offset: Any, count: Any) -> TypedStorage:
    """Some elements of a storage as a storage."""
    if not isinstance(offset, int) or not isinstance(count, int) or not 0 <= offset <= offset + count <= root._size():
        raise CheckpointError("a view of a storage must lie inside it")
    width = root.dtype.itemsize
    return wrapped(root._untyped_storage[offset * width : (offset + count) * width], root.dtype)


def load(f: Any, map_location: Any, pickle_module: Any, options: dict[str, Any]) -> Any:
    """The object in a stream of pickles, or in a tar file. `pickle_module` is None for weights only."""
    before, pending = SURROUNDINGS.map_location, SURROUNDINGS.deferred
    SURROUNDINGS.map_location, SURROUNDINGS.deferred = map_location, None
    try:
        if _is_tar(f):
            if pickle_module is None:
                raise CheckpointError(
                    "Cannot use ``weights_only=True`` with files saved in the legacy .tar format. " + UNSAFE_MESSAGE
                )
            return _load_tar(f, map_location, pickle_module, options)
        return _load_stream(_Stream(f, pickle_module, options), map_location)
    except Refused as error:
        raise advised(error) from None
    finally:
        SURROUNDINGS.map_location, SURROUNDINGS.deferred = before, pending


def _load_stream(stream: _Stream, map_location: Any) -> Any:
    if stream.load() != MAGIC_NUMBER:
        raise CheckpointError("Invalid magic number; corrupt file?")
    version = stream.load()
    if version != PROTOCOL_VERSION:
        raise CheckpointError(f"Invalid protocol version: {shown(version)}")
    stream.load()
    objects = _Objects(map_location, stream.source.size)
    later: list[Any] = []
    SURROUNDINGS.deferred = later
    result = stream.load(objects.persistent_load)
    keys = stream.load()
    if not isinstance(keys, list):
        raise CheckpointError("the list of storages must be a list")
    if SURROUNDINGS.skip_data:
        return result
    for key in keys:
        name = key.decode("ascii", "replace") if isinstance(key, bytes) else key
        if not isinstance(name, str) or name not in objects.made:
            raise CheckpointError(f"storage key {shown(key)!r} not found in deserialized_objects")
        _fill(stream, objects.made[name])
    for compute in later:
        compute()
    return result


def _fill(stream: _Stream, typed: TypedStorage) -> None:
    storage = typed._untyped_storage
    (count,) = _COUNT.unpack(stream.read(8))
    if count * typed.dtype.itemsize != storage.nbytes():
        raise CheckpointError(
            f"storage has wrong byte size: expected {storage.nbytes()} got {count * typed.dtype.itemsize}"
        )
    if storage.device.type == "cpu":
        stream.fill(storage._bytes())
    elif storage.device.type == "meta":
        stream.at += storage.nbytes()
    else:
        host = UntypedStorage(storage.nbytes())
        stream.fill(host._bytes())
        storage.copy_(host)


def _check_source(cls: Any, file: Any, source: Any) -> None:
    """Warn of a class whose source changed since it was saved. Ours are not PyTorch's, whatever the file says."""
    if not (file and source) or theirs(cls.__module__, cls.__qualname__)[0] != cls.__module__:
        return
    try:
        current = inspect.getsource(cls)
    except Exception:
        warnings.warn(_no_source(cls), stacklevel=2)
        return
    if current == source:
        return
    if getattr(cls, "dump_patches", False):
        advice = _patch(cls, current, source, file)
    else:
        advice = (
            "you can retrieve the original source code by accessing the object's source attribute or set "
            "`torch.nn.Module.dump_patches = True` and use the patch tool to revert the changes."
        )
    text = f"source code of class '{cls.__module__}.{cls.__qualname__}' has changed. {advice}"
    warnings.warn(text, SourceChangeWarning, stacklevel=2)


def _patch(cls: Any, current: str, source: str, file: str) -> str:
    name = f"{cls.__name__}.patch"
    text = "\n".join(difflib.unified_diff(current.split("\n"), source.split("\n"), file, file, lineterm=""))
    try:
        with open(name, "a+") as f:
            size = f.seek(0, os.SEEK_END)
            f.seek(0)
            if size == 0:
                f.write(text)
            elif size != len(text) or f.read() != text:
                raise OSError
    except OSError:
        return (
            f"Tried to save a patch, but couldn't create a writable file {name}. Make sure it doesn't exist and your "
            "working directory is writable."
        )
    return f"Saved a reverse patch to {name}. Run `patch -p0 < {name}` to revert your changes."


# -- tar --------------------------------------------------------------------------------------------------------------
def _is_tar(f: Any) -> bool:
    """Whether a real file begins like a tar; PyTorch asks no other stream."""
    try:
        if f.fileno() < 0 or f.tell() != 0 or type(f).__module__ == "gzip":
            return False
    except (AttributeError, io.UnsupportedOperation):
        return False
    block = f.read(tarfile.BLOCKSIZE)
    f.seek(0)
    try:
        tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.TarError:
        return False
    return True


def _load_tar(f: Any, map_location: Any, pickle_module: Any, options: dict[str, Any]) -> Any:
    restore = restorer(map_location)
    objects: dict[Any, Any] = {}

    def persistent_load(pid: Any) -> Any:
        if isinstance(pid, tuple):
            _check_source(*pid)
            return pid[0]
        return objects[int(pid)]

    def one(member: Any) -> Any:
        return unrestricted(pickle_module, member, persistent_load, options).load()

    with tarfile.open(fileobj=f, mode="r:", format=tarfile.PAX_FORMAT) as tar:
        member = io.BytesIO(_member(tar, "storages"))
        for _ in range(one(member)):
            key, location, kind = one(member)
            (count,) = _COUNT.unpack(member.read(8))
            storage = UntypedStorage(count * kind.dtype.itemsize)
            if member.readinto(storage._bytes()) != storage.nbytes():
                raise TruncatedCheckpoint("the file ends before its storages do")
            objects[key] = wrapped(restore(storage, location), kind.dtype)
        for target, root, offset, count in one(member):
            objects[target] = part_of(objects[root], offset, count)
        member = io.BytesIO(_member(tar, "tensors"))
        for _ in range(one(member)):
            key, storage_key, _ = one(member)
            (dimensions,) = struct.unpack("<i4x", member.read(8))
            size = struct.unpack(f"<{dimensions}q", member.read(8 * dimensions))
            stride = struct.unpack(f"<{dimensions}q", member.read(8 * dimensions))
            (offset,) = _COUNT.unpack(member.read(8))
            typed = objects[storage_key]
            objects[key] = _over(typed._untyped_storage, typed.dtype, offset, size, stride)
        return one(io.BytesIO(_member(tar, "pickle")))


def _member(tar: tarfile.TarFile, name: str) -> bytes:
    try:
        found = tar.extractfile(name)
    except KeyError:
        found = None
    if found is None:
        raise CheckpointError(f"the tar file has no member {name}")
    return found.read()
