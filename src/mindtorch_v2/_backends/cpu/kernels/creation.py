"""Launches of factories: ranges of numbers, the unit matrix, places of triangles.

Invariant: the native kernels write row-major from the first byte; another target gets a copy of that.
"""

from __future__ import annotations

from typing import Any, Final, final

from .... import _native
from ...._dispatch.op import Op, Spec
from ...._mypyc import i64
from ...._tensor_base import TensorBase
from .base import OneResult, count

_arange: Final[Any] = _native.arange
_linspace: Final[Any] = _native.linspace
_eye: Final[Any] = _native.eye
_triangle: Final[Any] = _native.triangle
_copy: Final[Any] = _native.copy

ARANGE: Final[i64] = 0
LINSPACE: Final[i64] = 1
EYE: Final[i64] = 2
LOWER: Final[i64] = 3
UPPER: Final[i64] = 4


@final
class Range(OneResult):
    """arange(start, end, step, ...), linspace(start, end, steps, ...), eye(n, m, ...), tril_indices(row, col, offset,
    ...)"""

    def __init__(self, kind: i64) -> None:
        self.kind: Final = kind

    def writes(self, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        return True

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        if out is None or (offset == 0 and stride == s.stride and code == s.dtype.code):
            return self.dense(args, s, out)
        if count(s.shape) > 0:
            _copy(
                out, offset, stride, code,
                self.dense(args, s, None), 0, s.stride, s.dtype.code,
                s.shape)
        return out

    def dense(self, args: tuple[Any, ...], s: Spec, out: Any) -> Any:
        code = s.dtype.code
        if self.kind == ARANGE:
            return _arange(out, code, s.shape[0], args[0], args[2])
        if self.kind == LINSPACE:
            return _linspace(out, code, args[2], args[0], args[1])
        if self.kind == EYE:
            return _eye(out, code, args[0], args[1])
        return _triangle(out, code, s.shape[1], args[0], args[1], args[2], self.kind == UPPER)
