"""A device of your own: tensors that live in files. `device="disk"` works after this module is imported.

A device is memory, transfers and one line for each operator. Shapes, dtypes, views, in-place forms, `out=` and
gradients come with the package's rows; an operator without a line raises an error that names it.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Callable
from typing import Any

import numpy

import mindtorch_v2 as torch
from mindtorch_v2._backends.common.kernels import IntoKernel
from mindtorch_v2._backends.common.runtime import RUNTIMES, Runtime
from mindtorch_v2._backends.common.transfer import add_transfer
from mindtorch_v2._dispatch import registry
from mindtorch_v2._dispatch.keys import CPU, add_device

DISK = add_device("disk")


class File:
    """Memory of the device: a file without a name, mapped."""

    resizable = False
    owner = None
    ptr = 0
    written = 0

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        with tempfile.TemporaryFile() as file:
            file.truncate(max(nbytes, 1))
            self.cells = mmap.mmap(file.fileno(), max(nbytes, 1))
        File.written += nbytes


def array(t: torch.Tensor) -> Any:
    """What a tensor of the device sees of its file, as an array over the same bytes."""
    flat = numpy.frombuffer(t._storage.cells, str(t.dtype).removeprefix("torch."))
    steps = [stride * t.element_size() for stride in t.stride()]
    return numpy.lib.stride_tricks.as_strided(flat[t.storage_offset() :], t.shape, steps)


class DiskRuntime(Runtime):
    """How the package gets memory and fills it."""

    def allocate(self, nbytes: int, dev: Any) -> Any:
        return File(nbytes)

    def copy(self, dst: Any, src: Any) -> None:
        array(dst)[...] = array(src)

    def fill(self, dst: Any, value: Any) -> None:
        array(dst)[...] = value


def move(dst: Any, src: Any, non_blocking: bool) -> None:
    """Between file and host memory. Both are dense and alike when this is called."""

    def raw(t: Any) -> memoryview:
        start, size = t._offset * t.element_size(), t.numel() * t.element_size()
        return memoryview(getattr(t._storage, "cells", t._storage)).cast("B")[start : start + size]

    raw(dst)[:] = raw(src)


RUNTIMES[DISK] = DiskRuntime()
add_transfer(DISK, int(CPU), move)
add_transfer(int(CPU), DISK, move)


def line(name: str, compute: Callable[..., Any]) -> None:
    """Serve an operator by a function of arrays. The row has worked out the result's shape, dtype and strides."""

    def run(out: Any, *args: Any) -> None:
        array(out)[...] = compute(*[array(a) if isinstance(a, torch.Tensor) else a for a in args])

    registry.register(name, "disk", IntoKernel(run, False, False))


line("add", lambda a, b, alpha: a + alpha * b)
line("sub", lambda a, b, alpha: a - alpha * b)
line("mul", lambda a, b: a * b)
line("div", lambda a, b, rounding_mode: a / b)
line("neg", lambda a: -a)
line("pow", lambda a, b: a**b)
line("tanh", numpy.tanh)
line("tanh_backward", lambda grad, result: grad * (1 - result * result))
line("mm", lambda a, b: a @ b)
line("sum", lambda a, dim, keepdim, dtype: a.sum(tuple(dim) if dim else None, keepdims=keepdim))
line("mean", lambda a, dim, keepdim, dtype: a.mean(tuple(dim) if dim else None, keepdims=keepdim))


def main() -> None:
    torch.manual_seed(0)
    x = torch.rand(128, 2) * 2 - 1
    y = (x[:, :1] * 3).tanh() - x[:, 1:]
    x, y = x.to("disk"), y.to("disk")
    first = (torch.randn(2, 16) * 0.5).to("disk").requires_grad_()
    second = (torch.randn(16, 1) * 0.5).to("disk").requires_grad_()
    for step in range(1, 201):
        loss = ((torch.tanh(x @ first) @ second - y) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            for weight in (first, second):
                weight.sub_(weight.grad, alpha=0.2)
                weight.grad = None
        if step % 50 == 0:
            print(f"step {step:3}  loss {loss.item():.4f}")
    print(f"{first.device}: {tuple(first.shape)} {first.dtype}; {File.written / 2**20:.1f} MiB went through files")
    try:
        torch.cumsum(x, 0)
    except NotImplementedError as error:
        print("what the device lacks is named:", str(error).splitlines()[0])
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
