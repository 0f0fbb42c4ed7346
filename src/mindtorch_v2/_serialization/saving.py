"""`torch.save` in the zip format.

Invariant: the object is pickled before a byte is written, and storages are written straight from their memory.
"""

from __future__ import annotations

import io
import os
import pickle
import sys
from collections.abc import Callable
from typing import Any

from .._dtype import uint8
from .._storage import UntypedStorage
from .._storage_classes import of_dtype
from .._typed_storage import CLASSES, TypedStorage
from .archive_writer import ArchiveWriter
from .atomic import AtomicFile
from .locations import location_tag
from .names import renamed
from .state import SURROUNDINGS

_VERSION = "3\n"
_HOLE = 1 << 20


class Pickled:
    """An object as a pickle, and the storages in it."""

    # What may have an id.
    kinds: tuple[type, ...] = (TypedStorage, UntypedStorage)

    def __init__(self) -> None:
        self.storages: dict[str, UntypedStorage] = {}
        self._keys: dict[int, str] = {}
        self._dtypes: dict[int, Any] = {}

    def dumps(self, obj: Any, pickle_module: Any, protocol: int, persistent_id: Callable[[Any], Any]) -> bytes:
        kinds = self.kinds

        def id_of(obj: Any) -> Any:
            # Asked for everything in the pickle; almost nothing has an id.
            return persistent_id(obj) if isinstance(obj, kinds) else None

        buffer = io.BytesIO()
        kind: Any = pickle_module.Pickler
        if kind is not pickle.Pickler:  # one that may look for a method only
            kind = type("Pickler", (kind,), {"persistent_id": staticmethod(id_of)})
        pickler = kind(buffer, protocol=protocol)
        pickler.persistent_id = id_of
        pickler.dump(obj)
        return renamed(buffer.getvalue())

    def describe(self, obj: Any) -> tuple[UntypedStorage, Any, Any, int] | None:
        """Storage, class to name, dtype and elements of something that is a storage."""
        if isinstance(obj, TypedStorage):
            storage, dt = obj._untyped_storage, obj.dtype
            if dt.name not in CLASSES:
                raise KeyError(f"dtype {dt} is not recognized")
            kind, count = of_dtype(dt), obj._size()
        elif isinstance(obj, UntypedStorage):
            storage, dt, kind, count = obj, uint8, UntypedStorage, obj.nbytes()
        else:
            return None
        if storage.device.type != "meta" and storage.nbytes():
            if self._dtypes.setdefault(storage.data_ptr(), dt) is not dt:
                raise RuntimeError(
                    "Cannot save multiple tensors or storages that view the same data as different types"
                )
        return storage, kind, dt, count

    def persistent_id(self, obj: Any) -> Any:
        found = self.describe(obj)
        if found is None:
            return None
        storage, kind, _, count = found
        key = self._keys.setdefault(storage._cdata, str(len(self._keys)))
        # Kept, so that no other storage gets its identity while the object is pickled.
        self.storages[key] = storage
        return ("storage", kind, key, location_tag(storage), count)


class Target:
    """Where a file goes: a path, replaced whole, or an object of the user's with `write` and `flush`."""

    def __init__(self, f: Any) -> None:
        self.stream = f
        self.raw = isinstance(f, io.RawIOBase)

    def write(self, data: Any) -> None:
        view = memoryview(data)
        if not self.raw:
            self.stream.write(view)
            return
        done = 0
        while done < len(view):
            done += self.stream.write(view[done:]) or 0

    def skip(self, count: int) -> None:
        for start in range(0, count, _HOLE):
            self.write(bytes(min(_HOLE, count - start)))


def save(obj: Any, f: Any, pickle_module: Any, protocol: int, no_byteorder: bool) -> None:
    """Write an archive to a path or a stream."""
    pickled = Pickled()
    if isinstance(f, str):
        folder = os.path.dirname(f)
        if folder and not os.path.isdir(folder):
            raise RuntimeError(f"Parent directory {folder} does not exist.")
        data = pickled.dumps(obj, pickle_module, protocol, pickled.persistent_id)
        # PyTorch names the folder in the archive after the file where it can.
        name = os.path.basename(f).rpartition(".")[0] or os.path.basename(f)
        try:
            target = AtomicFile(f)
        except OSError as error:
            raise RuntimeError(f"open file failed with strerror: {error.strerror}") from None
        with target:
            _write(pickled, data, target, name if name.isascii() else "archive", no_byteorder)
        return
    if not callable(getattr(f, "write", None)):
        text = f"Buffer of {str(type(f)).strip('<>')} has no callable attribute 'write'"
        raise TypeError(text) if hasattr(f, "write") else AttributeError(text)
    data = pickled.dumps(obj, pickle_module, protocol, pickled.persistent_id)
    _write(pickled, data, Target(f), "archive", no_byteorder)
    f.flush()


def _write(pickled: Pickled, data: bytes, target: Target | AtomicFile, folder: str, no_byteorder: bool) -> None:
    from ..utils.serialization import config

    alignment = config.save.storage_alignment
    writer = ArchiveWriter(target.write, folder, alignment, config.save.compute_crc32)
    writer.record("data.pkl", data)
    writer.record(".format_version", b"1")
    writer.record(".storage_alignment", str(alignment).encode())
    if not no_byteorder:
        writer.record("byteorder", sys.byteorder.encode())
    for key, storage in pickled.storages.items():
        if SURROUNDINGS.skip_data:
            writer.hole(f"data/{key}", storage.nbytes(), target.skip)
        else:
            writer.record(f"data/{key}", on_host(storage)._bytes())
    writer.finish(_VERSION)


def on_host(storage: UntypedStorage) -> UntypedStorage:
    """A storage whose bytes the host can reach."""
    if storage.device.type == "cpu":
        return storage
    from ..utils.serialization import config

    if config.save.use_pinned_memory_for_d2h and storage.device.type == "npu":
        import mindtorch_v2 as torch

        pinned: UntypedStorage = torch.empty(storage.nbytes(), dtype=uint8, pin_memory=True).untyped_storage()
        return pinned.copy_(storage)
    return storage.cpu()
