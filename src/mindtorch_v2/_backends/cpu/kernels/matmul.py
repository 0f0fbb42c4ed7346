"""Launches of products: one call of the native module each, which chooses its loop by shape and layout."""

from __future__ import annotations

from typing import Any, Final, final

from .... import _native
from ...._dispatch.keys import CONJUGATE
from ...._dispatch.op import Op, Spec
from ...._dtype import complex32, dtype, float8_e8m0fnu, int32, uint8
from ...._mypyc import i64
from ...._ops.rules.layout import expand_strides
from ...._tensor_base import TensorBase, numel
from .base import OneResult, new_storage

_gemm: Final[Any] = _native.gemm
_bgemm: Final[Any] = _native.bgemm
_addmm: Final[Any] = _native.addmm
_dot: Final[Any] = _native.dot
_copy: Final[Any] = _native.copy

# The code of bfloat16: behind it are dtypes that few kernels take.
_LAST_COMMON: Final = 12


def kernel_code(dt: dtype) -> int:
    """Dtypes that have no products come to the kernels only where there are none, which leaves zeros: as integers of
    the same size have them."""
    if dt.is_bool or dt is float8_e8m0fnu:
        return uint8.code
    return int32.code if dt is complex32 else dt.code


def refuse(name: str, dt: dtype, products: i64) -> None:
    """There are no kernels for some dtypes; where there is nothing to multiply, none is asked for."""
    if not products or (dt.is_inexact and dt.code <= _LAST_COMMON):
        return
    if dt.is_inexact:
        refused = dt is complex32 or dt is float8_e8m0fnu or name != "addmm_impl_cpu_"
    else:
        refused = dt.is_bool or (dt.is_integer and not dt.is_signed and dt.itemsize > 1)
    if refused:
        raise NotImplementedError(f"\"{name}\" not implemented for '{dt.scalar_name}'")


def factor(x: Any, dt: dtype) -> Any:
    """alpha and beta in the dtype of the product: integers drop the fraction."""
    if not dt.is_inexact and not isinstance(x, int):
        return int(x)
    return x


def conjugated(a: TensorBase, b: TensorBase) -> int:
    """Which factors are read as the conjugates of their memory, in the native module's bits."""
    return (1 if a._keys & CONJUGATE else 0) | (2 if b._keys & CONJUGATE else 0)


def is_apart(out: TensorBase, spec: Spec, args: tuple[Any, ...]) -> bool:
    """Whether a product may be written there while its factors are read."""
    if out._dtype is not spec.dtype:
        return False
    for a in args:
        if isinstance(a, TensorBase) and a._storage is out._storage:
            return False
    return True


@final
class Mm(OneResult):
    """(self, mat2)"""

    def writes(self, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        return is_apart(out, spec, args)

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        a = args[0]
        b = args[1]
        assert isinstance(a, TensorBase) and isinstance(b, TensorBase)
        dt = s.dtype
        m: i64 = s.shape[0]
        n: i64 = s.shape[1]
        k: i64 = a._shape[1]
        if not dt.is_inexact or dt.code > _LAST_COMMON:
            refuse("addmm_impl_cpu_", dt, m * n * k)
        return _gemm(
            a._storage, int(a._offset), a._stride,
            b._storage, int(b._offset), b._stride,
            out, offset, stride,
            kernel_code(dt), int(m), int(n), int(k), 1, 0, conjugated(a, b))


@final
class Addmm(OneResult):
    """(self, mat1, mat2, beta, alpha)"""

    def writes(self, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        return is_apart(out, spec, args)

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        c = args[0]
        a = args[1]
        b = args[2]
        assert isinstance(c, TensorBase) and isinstance(a, TensorBase) and isinstance(b, TensorBase)
        dt = s.dtype
        beta = args[3]
        alpha = args[4]
        if not dt.is_inexact or dt.code > _LAST_COMMON:
            refuse("addmm_impl_cpu_", dt, numel(a) * numel(b))
            beta = factor(beta, dt)
            alpha = factor(alpha, dt)
        m: i64 = s.shape[0]
        n: i64 = s.shape[1]
        k: i64 = a._shape[1]
        return _addmm(
            c._storage, int(c._offset), expand_strides(c, s.shape),
            a._storage, int(a._offset), a._stride,
            b._storage, int(b._offset), b._stride,
            out, offset, stride,
            kernel_code(dt), int(m), int(n), int(k), alpha, beta, conjugated(a, b))


@final
class Bmm(OneResult):
    """(self, mat2), or with `add` (self, batch1, batch2, beta, alpha)."""

    def __init__(self, name: str, add: bool) -> None:
        self.name: Final = name
        self.add: Final = add

    def writes(self, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        x = args[0]
        assert isinstance(x, TensorBase)
        return not self.add and x._dtype is spec.dtype and is_apart(out, spec, args)

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        first = 1 if self.add else 0
        a = args[first]
        b = args[first + 1]
        assert isinstance(a, TensorBase) and isinstance(b, TensorBase)
        dt = s.dtype
        if a._dtype is not dt and numel(a):
            # Factors of different dtypes have no products, so there is no result either.
            return new_storage(s)
        refuse(self.name, dt, numel(a) * numel(b))
        beta: Any = 0
        alpha: Any = 1
        if self.add:
            beta = factor(args[3], dt)
            alpha = factor(args[4], dt)
        m: i64 = s.shape[1]
        n: i64 = s.shape[2]
        k: i64 = a._shape[2]
        if beta != 0:
            # The kernel adds to what is there.
            c = args[0]
            assert isinstance(c, TensorBase)
            out = new_storage(s)
            _copy(
                out, 0, stride, code,
                c._storage, int(c._offset), expand_strides(c, s.shape), code,
                s.shape)
        return _bgemm(
            a._storage, int(a._offset), a._stride,
            b._storage, int(b._offset), b._stride,
            out, offset, stride,
            kernel_code(dt), s.shape[0], int(m), int(n), int(k), alpha, beta, conjugated(a, b))


@final
class Mv(OneResult):
    """(self, vec), or with `add` (self, mat, vec, beta, alpha): a product with a matrix of one column."""

    def __init__(self, add: bool) -> None:
        self.add: Final = add

    def writes(self, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        return is_apart(out, spec, args)

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        first = 1 if self.add else 0
        a = args[first]
        x = args[first + 1]
        assert isinstance(a, TensorBase) and isinstance(x, TensorBase)
        dt = s.dtype
        refuse("addmv_impl_cpu", dt, numel(a))
        m: i64 = s.shape[0]
        k: i64 = a._shape[1]
        if not self.add:
            return _gemm(
                a._storage, int(a._offset), a._stride,
                x._storage, int(x._offset), (x._stride[0], 0),
                out, offset, (stride[0], 1),
                kernel_code(dt), int(m), 1, int(k), 1, 0, conjugated(a, x))
        c = args[0]
        assert isinstance(c, TensorBase)
        beta = factor(args[3], dt)
        alpha = factor(args[4], dt)
        return _addmm(
            c._storage, int(c._offset), (expand_strides(c, s.shape)[0], 0),
            a._storage, int(a._offset), a._stride,
            x._storage, int(x._offset), (x._stride[0], 0),
            out, offset, (stride[0], 1),
            kernel_code(dt), int(m), 1, int(k), alpha, beta, conjugated(a, x))


@final
class Dot(OneResult):
    """(self, tensor)"""

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        a = args[0]
        b = args[1]
        assert isinstance(a, TensorBase) and isinstance(b, TensorBase)
        refuse("dot", s.dtype, 1)
        return _dot(
            a._storage, int(a._offset), a._stride[0],
            b._storage, int(b._offset), b._stride[0],
            a._shape[0], code, None, 0)
