"""From operators that place elements to native kernels: joining, flipping, triangles, ranges.

Invariant: shapes and dtypes come from the row's rule; nothing here works one out.
"""

from __future__ import annotations

from typing import Any, Final, final

from mypy_extensions import i64

from .... import _native
from ...._device import CPU
from ...._dispatch.keys import CPU as CPU_KEY
from ...._dispatch.op import Kernel, Op, Spec
from ...._ops.rules.shape import skipped
from ...._tensor_base import TensorBase, is_contiguous, make, numel

_join: Final[Any] = _native.join
_flip: Final[Any] = _native.flip
_tri: Final[Any] = _native.tri
_arange: Final[Any] = _native.arange
_linspace: Final[Any] = _native.linspace
_eye: Final[Any] = _native.eye
_copy: Final[Any] = _native.copy


@final
class Cat(Kernel):
    """cat(tensors, dim)"""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        s = op.infer(args)
        assert isinstance(s, Spec)
        data = self.launch(args, s, None, 0, s.stride, s.dtype.code)
        return make(data, 0, s.shape, s.stride, s.dtype, CPU, CPU_KEY)

    def into(self, op: Op, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        for t in args[0]:
            if t._storage is out._storage:
                return False
        self.launch(args, spec, out._storage, int(out._offset), out._stride, out._dtype.code)
        return True

    def launch(self, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...], code: int) -> Any:
        parts: list[Any] = []
        for x in args[0]:
            t: TensorBase = x
            if not skipped(t) or len(s.shape) == 1:
                parts.append(t._storage)
                parts.append(int(t._offset))
                parts.append(t._stride)
                parts.append(t._dtype.code)
                parts.append(t._shape)
        dim: i64 = args[1]
        if dim < 0:
            dim += len(s.shape)
        if not 0 <= dim < len(s.shape):
            # Nothing is joined along no dimension.
            dim = 0
        return _join(out, offset, stride, code, s.shape, int(dim), parts)


@final
class Stack(Kernel):
    """stack(tensors, dim): each tensor gets a dimension of size one, then they are joined along it."""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        s = op.infer(args)
        assert isinstance(s, Spec)
        data = self.launch(args, s, None, 0, s.stride, s.dtype.code)
        return make(data, 0, s.shape, s.stride, s.dtype, CPU, CPU_KEY)

    def into(self, op: Op, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        for t in args[0]:
            if t._storage is out._storage:
                return False
        self.launch(args, spec, out._storage, int(out._offset), out._stride, out._dtype.code)
        return True

    def launch(self, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...], code: int) -> Any:
        dim: int = args[1]
        if dim < 0:
            dim += len(s.shape)
        sizes = list(s.shape)
        sizes[dim] = 1
        shape = tuple(sizes)
        parts: list[Any] = []
        for x in args[0]:
            t: TensorBase = x
            steps = list(t._stride)
            steps.insert(dim, 1)
            parts.append(t._storage)
            parts.append(int(t._offset))
            parts.append(tuple(steps))
            parts.append(t._dtype.code)
            parts.append(shape)
        return _join(out, offset, stride, code, s.shape, dim, parts)


@final
class Flip(Kernel):
    """flip(self, dims)"""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        s = op.infer(args)
        t = args[0]
        assert isinstance(s, Spec) and isinstance(t, TensorBase)
        data = _flip(
            t._storage, int(t._offset), t._stride, t._dtype.code, None, 0, s.stride, s.dtype.code, s.shape, args[1]
        )
        return make(data, 0, s.shape, s.stride, s.dtype, CPU, CPU_KEY)


def near_diagonal(shape: tuple[int, ...], diagonal: int) -> int:
    """A diagonal beyond the matrix is as good as the one next to it, and can be counted with."""
    n = len(shape)
    return max(min(diagonal, shape[n - 1]), -shape[n - 2])


@final
class Triangle(Kernel):
    """tril(self, diagonal), triu(self, diagonal)"""

    def __init__(self, upper: bool) -> None:
        self.upper: Final = upper

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        s = op.infer(args)
        t = args[0]
        assert isinstance(s, Spec) and isinstance(t, TensorBase)
        data = _tri(
            t._storage,
            int(t._offset),
            t._stride,
            t._dtype.code,
            None,
            0,
            s.stride,
            s.dtype.code,
            s.shape,
            near_diagonal(t._shape, args[1]),
            self.upper,
        )
        return make(data, 0, s.shape, s.stride, s.dtype, CPU, CPU_KEY)

    def into(self, op: Op, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        t = args[0]
        assert isinstance(t, TensorBase)
        if out._dtype is not t._dtype:
            return False
        _tri(
            t._storage,
            int(t._offset),
            t._stride,
            t._dtype.code,
            out._storage,
            int(out._offset),
            out._stride,
            out._dtype.code,
            out._shape,
            near_diagonal(t._shape, args[1]),
            self.upper,
        )
        return True


ARANGE: Final[i64] = 0
LINSPACE: Final[i64] = 1
EYE: Final[i64] = 2


@final
class Range(Kernel):
    """arange(start, end, step, ...), linspace(start, end, steps, ...), eye(n, m, ...): dense from the first byte."""

    def __init__(self, kind: i64) -> None:
        self.kind: Final = kind

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        s = op.infer(args)
        assert isinstance(s, Spec)
        return make(self.launch(args, s, None), 0, s.shape, s.stride, s.dtype, CPU, CPU_KEY)

    def into(self, op: Op, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        if numel(out) == 0:
            return True
        if is_contiguous(out) and out._offset == 0:
            self.launch(args, spec, out._storage)
        else:
            code = spec.dtype.code
            _copy(
                out._storage,
                int(out._offset),
                out._stride,
                out._dtype.code,
                self.launch(args, spec, None),
                0,
                spec.stride,
                code,
                spec.shape,
            )
        return True

    def launch(self, args: tuple[Any, ...], s: Spec, out: Any) -> Any:
        code = s.dtype.code
        if self.kind == ARANGE:
            return _arange(out, code, s.shape[0], args[0], args[2])
        if self.kind == LINSPACE:
            return _linspace(out, code, args[2], args[0], args[1])
        return _eye(out, code, args[0], args[1])
