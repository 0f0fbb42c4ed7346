"""`torch.load` of zip archives.

Invariant: a storage is made once per key, with exactly the bytes of its record; sizes are compared before memory is
taken. Mapped storages are views of one mapping, which lives as long as any of them.
"""

from __future__ import annotations

import ctypes
import io
import mmap
import os
import pickle
import sys
from collections.abc import Callable
from typing import Any

from .. import _native
from .._device import CPU
from .._dtype import uint8
from .._storage import UntypedStorage, _wrap
from .._typed_storage import TypedStorage, wrapped
from . import names
from .allowed import StorageType, Unsupported
from .archive import Archive
from .errors import CheckpointError, Refused, advised, corrupted, shown
from .locations import goes_elsewhere, is_meta, restorer
from .state import SURROUNDINGS
from .unpickler import Unpickler

_SHORT_RECORD = 64


class Mapping:
    """A file mapped into memory, whole; writes stay here unless it is shared."""

    def __init__(self, fd: int, size: int, shared: bool) -> None:
        flags = mmap.MAP_SHARED if shared else mmap.MAP_PRIVATE
        self.shared = shared
        self.area = mmap.mmap(fd, size, flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        # Holds the mapping open, which unmaps itself when nobody holds it any more.
        self.hold = ctypes.c_char.from_buffer(self.area)
        self.address = ctypes.addressof(self.hold)

    def part(self, offset: int, size: int) -> UntypedStorage:
        return _wrap(_native.Storage.wrap(self.address + offset, size, self), CPU)


class Storages:
    """The storages of one archive, made as the pickle asks for them."""

    def __init__(
        self, archive: Archive, map_location: Any, mapping: Callable[[], Mapping] | None, mapped: bool, swapped: bool
    ) -> None:
        self.archive = archive
        self.map_location = map_location
        self.restore = restorer(map_location)
        self.to_meta = is_meta(map_location)
        self.mapping = mapping
        self.mapped = mapped
        self.swapped = swapped
        self.made: dict[str, TypedStorage] = {}

    def persistent_load(self, pid: Any) -> TypedStorage:
        if not isinstance(pid, tuple):
            raise CheckpointError(f"saved_id must be a tuple, got {type(pid).__name__}")
        kind, key, location, count, dt = parsed(pid, 5)
        if kind != "storage":
            raise CheckpointError(f"Unknown typename for persistent_load, expected 'storage' but got '{shown(kind)}'")
        found = self.made.get(key)
        if found is None:
            found = wrapped(self._load(f"data/{key}", count * dt.itemsize, dt, location), dt)
            if count or self.to_meta:
                self.made[key] = found  # an empty one may be asked for with several dtypes
        return found

    def _load(self, name: str, nbytes: int, dt: Any, location: str) -> UntypedStorage:
        entry = self.archive.entry(name)
        if entry.size != nbytes:
            raise CheckpointError(
                f"record size ({entry.size} bytes) does not match expected size ({nbytes} bytes = {nbytes} elements * "
                "1 bytes/element) for dtype Byte"
            )
        if self.to_meta:
            storage = UntypedStorage(nbytes, device="meta")
            setattr(storage, "_checkpoint_offset", self.archive.place(entry))
            return storage
        if SURROUNDINGS.skip_data:
            storage = UntypedStorage(nbytes)
        else:
            storage = self._bytes(name, nbytes, location)
            if self.swapped:
                storage.byteswap(dt)
        restored = self.restore(storage, location)
        if not isinstance(restored, UntypedStorage):
            restored = getattr(restored, "_untyped_storage", restored)
        if not isinstance(restored, UntypedStorage):
            raise TypeError(f"map_location must give a storage or None, got {type(restored).__name__}")
        return restored

    def _bytes(self, name: str, nbytes: int, location: str) -> UntypedStorage:
        """The bytes of a record: mapped where that was asked for, or where they are only copied on from there."""
        if nbytes and self.mapping is not None:
            offset = self.archive.offset_if_stored(name)
            if offset is not None and (self.mapped or goes_elsewhere(self.map_location, location)):
                mapping = self.mapping()
                if not (self.swapped and mapping.shared):
                    return mapping.part(offset, nbytes)
        storage = UntypedStorage(nbytes)
        self.archive.record_into(name, storage._bytes())
        return storage


def parsed(pid: tuple[Any, ...], length: int) -> tuple[Any, Any, str, int, Any]:
    """The fields of a storage's id: what it is, key, location, elements and dtype."""
    if len(pid) != length:
        raise CheckpointError(f"the id of a storage must have {length} items, got {len(pid)}")
    what, kind, key, location, count = pid[:5]
    if isinstance(kind, Unsupported):
        raise kind.refuse()
    if kind is UntypedStorage:
        dt = uint8
    elif isinstance(kind, StorageType):
        dt = kind.dtype
    elif isinstance(kind, type) and issubclass(kind, TypedStorage) and hasattr(kind, "dtype"):
        dt = vars(kind)["dtype"]
    else:
        raise CheckpointError(f"expected a storage type, got {shown(kind)}")
    key, location = _text(key), _text(location)
    if not isinstance(key, str) or not isinstance(location, str):
        raise CheckpointError("the key and the location of a storage must be texts")
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count < 1 << 60:
        raise CheckpointError(f"the number of elements of a storage cannot be {shown(count)}")
    return _text(what), key, location, count, dt


def _text(value: Any) -> Any:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else value


# -- the archive ------------------------------------------------------------------------------------------------------
def load(archive: Archive, map_location: Any, pickle_module: Any, f: Any, mapped: bool, options: dict[str, Any]) -> Any:
    """The object in an archive. `pickle_module` is None for weights only."""
    storages = Storages(archive, map_location, _mapping_of(archive, f, mapped), mapped, _is_swapped(archive))
    if ".storage_alignment" in archive:
        text = archive.record(".storage_alignment", _SHORT_RECORD)
        if not text.isdigit():
            raise CheckpointError(f"the storage alignment cannot be {text!r}")
    data = archive.record("data.pkl")
    before = SURROUNDINGS.map_location
    SURROUNDINGS.map_location = map_location
    try:
        if pickle_module is not None:
            return unrestricted(pickle_module, io.BytesIO(data), storages.persistent_load, options).load()
        return Unpickler(data, storages.persistent_load, options["encoding"]).load()
    except Refused as error:
        raise advised(error) from None
    finally:
        SURROUNDINGS.map_location = before


def unrestricted(pickle_module: Any, f: Any, persistent_load: Callable[[Any], Any], options: dict[str, Any]) -> Any:
    """The unpickler of a module of the user's, with PyTorch's names meaning ours."""

    base = pickle_module.Unpickler

    def find_class(self: Any, module: str, name: str) -> Any:
        if "Storage" in name:
            try:
                return StorageType(name)
            except KeyError:
                pass
        return names.find(module, name) if names.is_theirs(module) else base.find_class(self, module, name)

    made = type("Unpickler", (base,), {"find_class": find_class})(f, **options)
    made.persistent_load = persistent_load
    return made


def _mapping_of(archive: Archive, f: Any, mapped: bool) -> Callable[[], Mapping] | None:
    """How to map the file, if it is one; it is mapped once, when first needed."""
    fd = getattr(archive.source, "fd", None)
    if fd is None:
        return None
    made: list[Mapping] = []

    def mapping() -> Mapping:
        if not made:
            from ..utils.serialization import config

            shared = mapped and config.load.mmap_flags == mmap.MAP_SHARED
            source = os.open(f, os.O_RDWR) if shared else fd
            try:
                made.append(Mapping(source, archive.source.size, shared))
            finally:
                if shared:
                    os.close(source)
        return made[0]

    return mapping


def _is_swapped(archive: Archive) -> bool:
    """Whether the file was written in the other byte order."""
    from ..serialization import LoadEndianness
    from ..utils.serialization import config

    if "byteorder" in archive:
        order = archive.record("byteorder", _SHORT_RECORD)
        if order not in (b"little", b"big"):
            raise UnknownOrder(f"Unknown endianness type: {order.decode('ascii', 'replace')}")
        return order.decode() != sys.byteorder
    default = config.load.endianness
    if default is None or default is LoadEndianness.LITTLE:
        return sys.byteorder != "little"
    if default is LoadEndianness.BIG:
        return sys.byteorder != "big"
    if default is LoadEndianness.NATIVE:
        return False
    raise ValueError("Invalid load endianness type")


class UnknownOrder(CheckpointError, ValueError):
    """PyTorch raises ValueError here."""

    __module__ = "mindtorch_v2.serialization"


def pickle_of(archive: Archive) -> bytes:
    """The pickle in an archive."""
    if "constants.pkl" in archive:
        raise ValueError("Expected input to be a checkpoint returned by torch.save but got a torchscript checkpoint")
    return archive.record("data.pkl")


def globals_in(data: bytes) -> set[str]:
    """What a pickle names, found without running it."""
    import pickletools

    from .unpickler import _OLD_MODULES

    found: set[str] = set()
    texts: list[str] = ["", ""]
    try:
        opcodes: Any = pickletools.genops(data)
        for opcode, argument, _ in opcodes:
            if opcode.name == "GLOBAL":
                module, _, name = argument.partition(" ")
                found.add(f"{_OLD_MODULES.get(module, module)}.{name}")
            elif opcode.name == "STACK_GLOBAL":
                found.add(".".join(texts))
            elif opcode.name.endswith("UNICODE"):
                texts = [texts[1], argument]
    except (ValueError, pickle.PickleError) as error:
        raise corrupted("reading file data.pkl", shown(error)) from None
    return found
