"""Launches of products: small ones of the native module, large ones of float matrices by NumPy's BLAS.

Invariant: BLAS only sees operands whose rows or columns are contiguous; others are copied first, because NumPy's loop
for any other layout is a hundred times slower.
"""

from __future__ import annotations

import importlib
from typing import Any, Final, final

from .... import _native
from ...._dispatch.op import Op, Spec
from ...._dtype import complex32, dtype, float8_e8m0fnu, float32, int32, uint8
from ...._mypyc import i64
from ...._ops.rules.layout import expand_strides
from ...._sizes import dense_bytes
from ...._strides import contiguous_strides
from ...._tensor_base import TensorBase, is_contiguous, numel
from .base import OneResult, new_storage

_gemm: Final[Any] = _native.gemm
_bgemm: Final[Any] = _native.bgemm
_addmm: Final[Any] = _native.addmm
_dot: Final[Any] = _native.dot
_copy: Final[Any] = _native.copy
_binary: Final[Any] = _native.binary
_Storage: Final[Any] = _native.Storage
_ADD: Final = _native.ADD
_MUL: Final = _native.MUL

# Multiplications from which calling BLAS through NumPy (about 4 us) is worth it.
SMALL: Final[i64] = 144 * 144 * 144
# Elements of a matrix from which its product with a vector goes to BLAS.
SMALL_VECTOR: Final[i64] = 128 * 128


# The code of bfloat16: behind it are dtypes that few kernels take.
_LAST_COMMON: Final = 12


@final
class Lazy:
    """NumPy, imported by the first large product."""

    def __init__(self) -> None:
        self.numpy: Any = None


LAZY: Final = Lazy()


def numpy() -> Any:
    np = LAZY.numpy
    if np is None:
        np = importlib.import_module("numpy")
        LAZY.numpy = np
    return np


def for_blas(dt: dtype) -> bool:
    """float32, float64, complex64, complex128; float16 and bfloat16 by way of float32."""
    return dt.is_inexact and dt.itemsize >= 2 and dt is not complex32


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


def blasable(t: TensorBase) -> bool:
    n = len(t._shape)
    if n < 2:
        return t._stride[0] > 0 or t._shape[0] <= 1
    rows: i64 = t._shape[n - 2]
    columns: i64 = t._shape[n - 1]
    rs: i64 = t._stride[n - 2]
    cs: i64 = t._stride[n - 1]
    return (cs == 1 and rs >= columns) or (rs == 1 and cs >= rows)


def array_of(t: TensorBase, dt: dtype) -> Any:
    """An ndarray BLAS can read: the tensor's own memory where its dtype and layout allow it."""
    np = numpy()
    storage = t._storage
    offset: i64 = t._offset
    stride = t._stride
    if t._dtype is not dt or not blasable(t):
        storage = _Storage(int(dense_bytes(t._shape, dt.itemsize)))
        offset = 0
        stride = contiguous_strides(t._shape)
        _copy(storage, 0, stride, dt.code, t._storage, int(t._offset), t._stride, t._dtype.code, t._shape)
    item = dt.itemsize
    return np.ndarray(t._shape, dt.np, storage, int(offset) * item, tuple([s * item for s in stride]))


def blas(a: TensorBase, b: TensorBase, s: Spec) -> Any:
    """A new storage with a @ b."""
    np = numpy()
    dt = s.dtype
    wide = float32 if dt.itemsize == 2 else dt
    out = _Storage(int(dense_bytes(s.shape, wide.itemsize)))
    np.matmul(array_of(a, wide), array_of(b, wide), np.ndarray(s.shape, wide.np, out))
    if wide is dt:
        return out
    narrow = new_storage(s)
    _copy(narrow, 0, s.stride, dt.code, out, 0, s.stride, wide.code, s.shape)
    return narrow


def add_scaled(data: Any, s: Spec, c: TensorBase, beta: Any, alpha: Any) -> Any:
    """data = alpha * data + beta * c, in place."""
    code = s.dtype.code
    if alpha != 1:
        _binary(_MUL, data, 0, s.stride, code, alpha, 0, (), 0, data, 0, s.stride, code, s.shape, code, 1)
    if beta != 0:
        _binary(
            _ADD,
            data, 0, s.stride, code,
            c._storage, int(c._offset), expand_strides(c, s.shape), code,
            data, 0, s.stride, code,
            s.shape, code, beta)
    return data


@final
class Mm(OneResult):
    """(self, mat2)"""

    def writes(self, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        a = args[0]
        b = args[1]
        assert isinstance(a, TensorBase) and isinstance(b, TensorBase)
        if out._dtype is not spec.dtype or out._storage is a._storage or out._storage is b._storage:
            return False
        m: i64 = spec.shape[0]
        n: i64 = spec.shape[1]
        k: i64 = a._shape[1]
        large = m * n * k > SMALL and for_blas(spec.dtype)
        return not large or (is_contiguous(out) and out._dtype.itemsize > 2)

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        a = args[0]
        b = args[1]
        assert isinstance(a, TensorBase) and isinstance(b, TensorBase)
        dt = s.dtype
        m: i64 = s.shape[0]
        n: i64 = s.shape[1]
        k: i64 = a._shape[1]
        if m * n * k > SMALL and for_blas(dt):
            if out is None:
                return blas(a, b, s)
            np = numpy()
            np.matmul(array_of(a, dt), array_of(b, dt), np.ndarray(s.shape, dt.np, out, offset * dt.itemsize))
            return out
        if not dt.is_inexact or dt.code > _LAST_COMMON:
            refuse("addmm_impl_cpu_", dt, m * n * k)
        return _gemm(
            a._storage, int(a._offset), a._stride,
            b._storage, int(b._offset), b._stride,
            out, offset, stride,
            kernel_code(dt), int(m), int(n), int(k), 1, 0)


@final
class Addmm(OneResult):
    """(self, mat1, mat2, beta, alpha)"""

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
        if m * n * k > SMALL and for_blas(dt):
            return add_scaled(blas(a, b, s), s, c, beta, alpha)
        return _addmm(
            c._storage, int(c._offset), expand_strides(c, s.shape),
            a._storage, int(a._offset), a._stride,
            b._storage, int(b._offset), b._stride,
            out, offset, stride,
            kernel_code(dt), int(m), int(n), int(k), alpha, beta)


@final
class Bmm(OneResult):
    """(self, mat2), or with `add` (self, batch1, batch2, beta, alpha)."""

    def __init__(self, name: str, add: bool) -> None:
        self.name: Final = name
        self.add: Final = add

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
        if m * n * k > SMALL and for_blas(dt):
            data = blas(a, b, s)
            return add_scaled(data, s, args[0], beta, alpha) if self.add else data
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
            kernel_code(dt), s.shape[0], int(m), int(n), int(k), alpha, beta)


@final
class Mv(OneResult):
    """(self, vec), or with `add` (self, mat, vec, beta, alpha): a product with a matrix of one column."""

    def __init__(self, add: bool) -> None:
        self.add: Final = add

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
        large = m * k > SMALL_VECTOR and for_blas(dt)
        if not self.add:
            if large:
                return blas(a, x, s)
            return _gemm(
                a._storage, int(a._offset), a._stride,
                x._storage, int(x._offset), (x._stride[0], 0),
                None, 0, (1, 1),
                kernel_code(dt), int(m), 1, int(k), 1, 0)
        c = args[0]
        assert isinstance(c, TensorBase)
        beta = factor(args[3], dt)
        alpha = factor(args[4], dt)
        if large:
            return add_scaled(blas(a, x, s), s, c, beta, alpha)
        return _addmm(
            c._storage, int(c._offset), (expand_strides(c, s.shape)[0], 0),
            a._storage, int(a._offset), a._stride,
            x._storage, int(x._offset), (x._stride[0], 0),
            None, 0, (1, 1),
            kernel_code(dt), int(m), 1, int(k), alpha, beta)


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
