"""A device that is not part of the package: what someone else would write to add theirs.

`import` it and `torch.device("toy")` exists. Its memory is a Python object that the host's kernels cannot read, so a
tensor that slipped past the device's own kernels would be noticed at once.
Invariant: nothing in `mindtorch_v2` knows this folder.
"""

from __future__ import annotations

from typing import Any

import numpy

from mindtorch_v2._backends.common.runtime import RUNTIMES, Runtime
from mindtorch_v2._backends.common.transfer import add_transfer
from mindtorch_v2._dispatch.keys import CPU, add_device

NAME = "toy"
BIT = add_device(NAME)

_NUMPY = {
    "float32": numpy.float32,
    "float64": numpy.float64,
    "int64": numpy.int64,
    "int32": numpy.int32,
    "bool": numpy.bool_,
}


class Memory:
    """A block of the toy's memory. `ptr` is a number that means nothing to the host."""

    resizable = True
    owner = None
    ptr = 0x70
    live = 0

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self.cells = bytearray(nbytes)
        Memory.live += 1

    def resize(self, nbytes: int) -> None:
        self.cells = self.cells[:nbytes].ljust(nbytes, b"\0")
        self.nbytes = nbytes

    def __del__(self) -> None:
        Memory.live -= 1


def array(t: Any) -> Any:
    """What a tensor of this device sees of its memory."""
    assert isinstance(t._storage, Memory), f"not memory of the toy: {t._storage}"
    kind = _NUMPY.get(t._dtype.name)
    if kind is None:
        raise NotImplementedError(f"the toy has no {t._dtype}")
    flat: Any = numpy.frombuffer(t._storage.cells, kind)
    size = t._dtype.itemsize
    return numpy.lib.stride_tricks.as_strided(flat[int(t._offset) :], t._shape, [s * size for s in t._stride])


class ToyRuntime(Runtime):
    def allocate(self, nbytes: int, dev: Any) -> Any:
        return Memory(nbytes)

    def copy(self, dst: Any, src: Any) -> None:
        array(dst)[...] = array(src)

    def fill(self, dst: Any, value: Any) -> None:
        array(dst)[...] = value


def _bytes(t: Any) -> memoryview:
    start = int(t._offset) * t._dtype.itemsize
    cells = t._storage.cells if isinstance(t._storage, Memory) else t._storage
    return memoryview(cells).cast("B")[start : start + t.numel() * t._dtype.itemsize]


def _move(dst: Any, src: Any, non_blocking: bool) -> None:
    """Both are dense and alike: raw memory goes over."""
    _bytes(dst)[:] = _bytes(src)


RUNTIMES[BIT] = ToyRuntime()
add_transfer(BIT, int(CPU), _move)
add_transfer(int(CPU), BIT, _move)

from . import operators  # noqa: E402, F401 (its lines need what is above)
