"""`torch._inductor.utils`: the few facts about devices that PyTorch's tools ask here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet
from typing import TypeVar

T = TypeVar("T")

# What PyTorch's code generator takes for a GPU.
GPU_TYPES = ["cuda", "mps", "xpu", "mtia"]


def is_gpu(device: str | None) -> bool:
    """Whether the code generator takes a device type for a GPU."""
    return device in GPU_TYPES


def get_gpu_type() -> str:
    """The kind of GPU that is there; PyTorch says `cuda` where there is none."""
    return "cuda"


def is_big_gpu(index_or_device: object = 0) -> bool:
    """Whether there is a GPU with many multiprocessors."""
    return False


def get_gpu_shared_memory() -> int:
    """The shared memory of the GPU that is there."""
    return 0


class OrderedSet(MutableSet[T]):
    """A set that remembers the order in which its elements came."""

    def __init__(self, iterable: Iterable[T] = ()) -> None:
        self._dict: dict[T, None] = dict.fromkeys(iterable)

    def __contains__(self, elem: object) -> bool:
        return elem in self._dict

    def __iter__(self) -> Iterator[T]:
        return iter(self._dict)

    def __len__(self) -> int:
        return len(self._dict)

    def add(self, elem: T) -> None:
        self._dict[elem] = None

    def discard(self, elem: T) -> None:
        self._dict.pop(elem, None)

    def __repr__(self) -> str:
        return f"OrderedSet({list(self)!r})"
