"""Where storages live: the tags that files carry, and what brings a storage to the place a tag names.

Invariant: taggers and restorers are asked in the order of their priority, those of the user among ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import mindtorch_v2 as torch

from .._device import device as Device
from .._storage import UntypedStorage
from .._types import typename
from .errors import CheckpointError, shown

Tagger = Callable[[Any], "str | None"]
Restorer = Callable[[Any, str], Any]
Restore = Callable[[Any, str], Any]

REGISTRY: list[tuple[int, Tagger, Restorer]] = []


def register_package(priority: int, tagger: Tagger, deserializer: Restorer) -> None:
    """Say how storages of a device are tagged, and how they are restored from a tag; low priorities are asked first."""
    REGISTRY.append((priority, tagger, deserializer))
    REGISTRY.sort(key=lambda entry: entry[0])


def location_tag(storage: Any) -> str:
    """The tag under which a storage is saved."""
    for _, tagger, _ in REGISTRY:
        location = tagger(storage)
        if location:
            return location
    raise RuntimeError(f"don't know how to determine data location of {typename(storage)}")


def default_restore_location(storage: Any, location: str) -> Any:
    """The storage brought to where a tag says."""
    for _, _, restore in REGISTRY:
        result = restore(storage, location)
        if result is not None:
            return result
    raise RuntimeError(
        f"don't know how to restore data location of {typename(storage)} (tagged with {shown(location)})"
    )


def is_meta(map_location: Any) -> bool:
    """Whether everything goes to the meta device, so that no byte need be read."""
    if isinstance(map_location, Device):
        return map_location.type == "meta"
    return isinstance(map_location, str) and map_location == "meta"


def restorer(map_location: Any) -> Restore:
    """What `map_location` does with a storage and its tag."""
    if map_location is None:
        return _from_file
    if isinstance(map_location, dict):
        return partial(_by_table, map_location)
    if isinstance(map_location, (str, bytes, Device)):
        where = map_location if isinstance(map_location, bytes) else str(map_location)
        return partial(_always, where)
    return partial(_by_call, map_location)


def _from_file(storage: Any, location: str) -> Any:
    try:
        return default_restore_location(storage, location)
    except RuntimeError as error:
        # The tag is a word of the file's: a wrong one is the file's fault.
        raise CheckpointError(str(error)) from None


def _by_table(table: dict[str, str], storage: Any, location: str) -> Any:
    found = table.get(location)
    return _from_file(storage, location) if found is None else default_restore_location(storage, found)


def _always(where: Any, storage: Any, location: str) -> Any:
    return default_restore_location(storage, where)


def _by_call(function: Any, storage: Any, location: str) -> Any:
    result = function(storage, location)
    return _from_file(storage, location) if result is None else result


def goes_elsewhere(map_location: Any, location: str) -> bool:
    """Whether a storage with this tag surely goes to another device, so that its bytes need no memory on the host."""
    if isinstance(map_location, dict):
        location = map_location.get(location, location)
    elif isinstance(map_location, (str, Device)):
        location = str(map_location)
    elif map_location is not None:
        return False
    return isinstance(location, str) and location.startswith("npu")


# -- devices ----------------------------------------------------------------------------------------------------------
def validated(location: Any, kind: str) -> Device:
    """The device that a tag names, if it is there."""
    if not hasattr(torch, kind):
        raise RuntimeError(
            f"The {kind.upper()} device module is not registered. If you are running on a CPU-only machine, please use "
            "torch.load with map_location=torch.device('cpu') to map your storages to the CPU."
        )
    module = getattr(torch, kind)
    device = Device(location)
    index = device.index or 0
    if not module.is_available():
        raise RuntimeError(
            f"Attempting to deserialize object on a {kind.upper()} device but torch.{kind}.is_available() is False. If "
            "you are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map "
            "your storages to the CPU."
        )
    count = module.device_count()
    if index >= count:
        raise RuntimeError(
            f"Attempting to deserialize object on {kind.upper()} device {index} but torch.{kind}.device_count() is "
            f"{count}. Please use torch.load with map_location to map your storages to an existing device."
        )
    return Device(kind, index)


def _tag(kind: str, storage: Any) -> str | None:
    device = storage.device
    return str(device) if device.type == kind else None


def _plain_tag(kind: str, storage: Any) -> str | None:
    return kind if storage.device.type == kind else None


def _restore(kind: str, storage: Any, location: str) -> Any:
    if location == kind or re.match(f"{kind}(:|[0-9]+)", location):
        return storage.to(device=validated(location, kind))
    return None


def _restore_on_cpu(storage: Any, location: str) -> Any:
    return storage if location == "cpu" else None


def _restore_on_mps(storage: Any, location: str) -> Any:
    return storage.to(device="mps") if location.startswith("mps") else None


def _restore_on_meta(storage: Any, location: str) -> Any:
    return UntypedStorage(storage.nbytes(), device="meta") if location == "meta" else None


register_package(10, partial(_plain_tag, "cpu"), _restore_on_cpu)
register_package(20, partial(_tag, "cuda"), partial(_restore, "cuda"))
register_package(21, partial(_plain_tag, "mps"), _restore_on_mps)
register_package(22, partial(_plain_tag, "meta"), _restore_on_meta)
register_package(23, partial(_tag, "npu"), partial(_restore, "npu"))
for _priority, _kind in ((24, "hpu"), (25, "xpu"), (26, "mtia")):
    register_package(_priority, partial(_tag, _kind), partial(_restore, _kind))
