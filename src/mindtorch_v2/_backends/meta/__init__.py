"""The meta device: shapes, strides and dtypes without data.

Invariant: no kernel is registered here; every operator runs its rule. Memory is a number of bytes that nobody can read.
"""

from __future__ import annotations

from typing import Any

from ..._device import device
from ..._dispatch.keys import META
from ..._tensor_base import TensorBase
from ..common.runtime import RUNTIMES, Runtime


class MetaStorage:
    """A size without bytes."""

    __slots__ = ("nbytes", "wrapper")
    ptr = 0
    resizable = True
    owner = None

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        # The `UntypedStorage` made for it.
        self.wrapper: Any = None

    def watch(self) -> None:
        """From now on there is somebody to hand over to. Only such storages pay for a finalizer."""
        self.__class__ = _Watched

    def resize(self, nbytes: int) -> None:
        self.nbytes = nbytes


class _Watched(MetaStorage):
    """Hands over to its Python object when nobody else holds it."""

    __slots__ = ()

    def __del__(self) -> None:
        # Another in its place: Python finalizes an object only once.
        if self.wrapper is not None:
            self.wrapper._own(MetaStorage(self.nbytes))


class MetaRuntime(Runtime):
    def allocate(self, nbytes: int, dev: device) -> Any:
        return MetaStorage(nbytes)

    def copy(self, dst: TensorBase, src: TensorBase) -> None:
        """Nothing to move: the rule has already agreed to the shapes."""

    def fill(self, dst: TensorBase, value: Any) -> None:
        """Nothing to fill."""


RUNTIMES[int(META)] = MetaRuntime()
