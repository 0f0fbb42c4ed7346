"""`torch.utils.serialization.config`: `load.*` and `save.*`, read at each call; `patch` changes them for a while."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class load:
    """What `torch.load` does when its arguments do not say."""

    mmap: bool = False
    endianness: Any = None
    # MAP_PRIVATE
    mmap_flags: int | None = None if sys.platform == "win32" else 2
    calculate_storage_offsets: bool = False


class save:
    """How `torch.save` writes."""

    compute_crc32: bool = True
    use_pinned_memory_for_d2h: bool = False
    storage_alignment: int = 64


@contextmanager
def patch(arg1: str | dict[str, Any] | None = None, arg2: Any = None, **kwargs: Any) -> Iterator[None]:
    """Change settings, named as in "load.mmap", until the block is left."""
    changes: dict[str, Any] = dict(kwargs)
    if isinstance(arg1, dict):
        changes.update(arg1)
    elif arg1 is not None:
        changes[arg1] = arg2
    before = {name: getattr(*_found(name)) for name in changes}
    for name, value in changes.items():
        setattr(*_found(name), value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(*_found(name), value)


def _found(name: str) -> tuple[Any, str]:
    group, _, key = name.partition(".")
    holder = {"load": load, "save": save}.get(group)
    if holder is None or not hasattr(holder, key):
        raise AttributeError(f"{__name__}.{name} does not exist")
    return holder, key
