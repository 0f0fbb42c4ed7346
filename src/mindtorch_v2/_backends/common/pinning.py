"""Page-locked host memory, as far as the core knows of it: a device's allocator owns it.

Invariant: nothing here imports a device's modules before somebody asks for such memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, final

from ... import _native
from ..._core_operators import CORE
from ..._device import PINNING, can_pin
from ..._dispatch.keys import CPU
from ..._dispatch.op import Kernel, Op, Spec
from ..._mypyc import i64
from ..._sizes import new_bytes
from ..._tensor_base import TensorBase, make
from .runtime import empty_spec

_Storage: Final[Any] = _native.Storage


def root_owner(storage: Any) -> Any:
    """Who owns the memory of a CPU storage, below slices of it; None for the CPU's own."""
    owner: Any = storage
    while isinstance(owner, _Storage):
        owner = owner.owner
    return owner


def is_pinned(storage: Any) -> bool:
    """Whether a storage lies in page-locked memory."""
    if not isinstance(storage, _Storage):
        return False
    owner = root_owner(storage)
    return owner is not None and getattr(owner, "pinned", False) is True


def empty_pinned(s: Spec) -> TensorBase:
    """A new tensor of the CPU in page-locked memory, or in ordinary memory where there is none."""
    if not can_pin():
        return empty_spec(s)
    nbytes = int(new_bytes(s.shape, s.stride, s.dtype.itemsize))
    return make(PINNING.allocate(nbytes), 0, s.shape, s.stride, s.dtype, s.device, 1)


def pin(t: TensorBase) -> Any:
    """`t`, which is on the CPU, in page-locked memory with the same strides."""
    if is_pinned(t._storage):
        return t
    if not can_pin():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    out = empty_pinned(Spec(t._shape, t._stride, t._dtype, t._dtype, t._device))
    return CORE.copy_.call((out, t, False))


@final
class PinKernel(Kernel):
    """A factory of the CPU whose argument at position `at` asks for page-locked memory."""

    def __init__(self, kernel: Kernel, at: int) -> None:
        self.kernel: Final = kernel
        self.at: Final = at

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        if args[self.at] is not True or not can_pin():  # what is no bool is refused there
            return self.kernel.run(op, args, keys)
        out = self.kernel.run(op, (*args[: self.at], False, *args[self.at + 1 :]), keys)
        assert isinstance(out, TensorBase)
        return pin(out)

    def into(self, op: Op, args: tuple[Any, ...], spec: Any, out: TensorBase) -> bool:
        return self.kernel.into(op, args, spec, out)


def install(ops: Iterable[Op]) -> None:
    """Let every factory of the CPU that has the argument `pin_memory` heed it."""
    cpu = int(CPU)
    for o in ops:
        text = o.schema_text
        end = text.find(" pin_memory")
        kernel = o.kernels.get(cpu)
        if end >= 0 and kernel is not None and not isinstance(kernel, PinKernel) and "Tensor(a!)" not in text:
            # Schemas are parsed at the first call; the position is one per comma before it, less one for the star.
            head = text[:end]
            o.kernels[cpu] = PinKernel(kernel, head.count(",") - head.count("*,"))
            o.forget()
