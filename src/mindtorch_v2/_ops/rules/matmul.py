"""Matrix products: shape rules, the folding of `matmul` and `linear` into products of matrices, and their derivatives.

Invariant: a rule refuses what PyTorch refuses before any kernel runs; every product of higher rank is one call of mm,
mv, dot, bmm or addmm.
"""
from __future__ import annotations

from typing import Any, Final, final

from ..._dispatch.op import Rule, Spec
from ..._dtype import dtype
from ..._dtype_names import cpp_name
from ..._strides import contiguous_strides
from ..._tensor_base import TensorBase, numel
from .dtype_checks import check_factor


def size_text(shape: tuple[int, ...]) -> str:
    return "x".join([str(s) for s in shape])


def matrix(t: TensorBase, shape: tuple[int, ...], dt: dtype) -> Spec:
    return Spec(shape, contiguous_strides(shape), dt, dt, t._device)


def check_matrices(a: TensorBase, b: TensorBase) -> None:
    if a._shape[1] != b._shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({size_text(a._shape)} and {size_text(b._shape)})")


def check_expand(t: TensorBase, shape: tuple[int, ...]) -> None:
    """Whether an addend broadcasts to the product; PyTorch's complaints are those of expand()."""
    d = len(shape) - len(t._shape)
    if d < 0:
        raise RuntimeError(
            f"expand(torch.{t._dtype.scalar_name}Tensor{{{list(t._shape)}}}, size={list(shape)}): the number of sizes "
            f"provided ({len(shape)}) must be greater or equal to the number of dimensions in the tensor "
            f"({len(t._shape)})")
    i = len(shape) - 1
    while i >= d:
        have = t._shape[i - d]
        if have != shape[i] and have != 1:
            raise RuntimeError(
                f"The expanded size of the tensor ({shape[i]}) must match the existing size ({have}) at non-singleton "
                f"dimension {i}.  Target sizes: {list(shape)}.  Tensor sizes: {list(t._shape)}")
        i -= 1


def size_at(t: TensorBase, d: int) -> int:
    """A size PyTorch asks for before it looks at the rank."""
    n = len(t._shape)
    if n == 0:
        raise IndexError(f"Dimension specified as {d} but tensor has no dimensions")
    if d >= n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {d})")
    return t._shape[d]


@final
class Mm(Rule):
    """(self, mat2)"""

    def infer(self, args: tuple[Any, ...]) -> Any:
        a = args[0]
        b = args[1]
        assert isinstance(a, TensorBase) and isinstance(b, TensorBase)
        if len(a._shape) != 2:
            raise RuntimeError("self must be a matrix")
        if len(b._shape) != 2:
            raise RuntimeError("mat2 must be a matrix")
        check_matrices(a, b)
        if a._dtype is not b._dtype:
            raise RuntimeError(
                f"expected m1 and m2 to have the same dtype, but got: {cpp_name(a._dtype)} != {cpp_name(b._dtype)}")
        n = b._shape[1]
        return Spec((a._shape[0], n), (n if n > 1 else 1, 1), a._dtype, a._dtype, a._device)


def check_addends(c: TensorBase, a: TensorBase, b: TensorBase) -> None:
    if c._dtype is not b._dtype:
        raise RuntimeError(
            f"self and mat2 must have the same dtype, but got {c._dtype.scalar_name} and {b._dtype.scalar_name}")
    if a._dtype is not b._dtype:
        raise RuntimeError(
            f"mat1 and mat2 must have the same dtype, but got {a._dtype.scalar_name} and {b._dtype.scalar_name}")


@final
class Addmm(Rule):
    """(self, mat1, mat2, beta, alpha)"""

    def infer(self, args: tuple[Any, ...]) -> Any:
        c = args[0]
        a = args[1]
        b = args[2]
        assert isinstance(a, TensorBase) and isinstance(b, TensorBase) and isinstance(c, TensorBase)
        check_addends(c, a, b)
        if len(a._shape) != 2:
            raise RuntimeError(f"mat1 must be a matrix, got {len(a._shape)}-D tensor")
        if len(b._shape) != 2:
            raise RuntimeError(f"mat2 must be a matrix, got {len(b._shape)}-D tensor")
        check_matrices(a, b)
        n = b._shape[1]
        shape = (a._shape[0], n)
        if not (len(c._shape) == 1 and c._shape[0] == n):
            check_expand(c, shape)
        if numel(a) != 0:  # else there is no product, and no kernel looks at the factors
            check_factors(args, a)
        return Spec(shape, (n if n > 1 else 1, 1), a._dtype, a._dtype, a._device)


def check_factors(args: tuple[Any, ...], a: TensorBase) -> None:
    """`beta` and `alpha` of (self, first, second, beta, alpha)"""
    for i in (3, 4):
        if type(args[i]) is not int or args[i] != 1:
            check_factor(args[i], a._dtype, a._device)


def apart(add: bool, first: dtype, second: dtype) -> RuntimeError:
    """Factors of different dtypes; the kernel, which has none for bool, is asked for by the first one."""
    if first.is_bool and not add:
        return NotImplementedError("\"bmm\" not implemented for 'Bool'")
    return RuntimeError(f"expected scalar type {first.scalar_name} but found {second.scalar_name}")


@final
class Bmm(Rule):
    """(self, mat2), or with `add` (self, batch1, batch2, beta, alpha); `total`: the batch is summed."""

    def __init__(self, add: bool, total: bool) -> None:
        self.add: Final = add
        self.total: Final = total

    def infer(self, args: tuple[Any, ...]) -> Any:
        first = 1 if self.add else 0
        a = args[first]
        b = args[first + 1]
        assert isinstance(a, TensorBase) and isinstance(b, TensorBase)
        if self.add:
            self.check_addend(args[0], a, b)
            if not self.total:
                self.check_dtypes(args[0], a, b)
        if len(a._shape) != 3:
            raise RuntimeError("batch1 must be a 3D tensor")
        if len(b._shape) != 3:
            raise RuntimeError("batch2 must be a 3D tensor")
        if self.total:
            self.check_total(a, b)
        elif a._shape[0] != b._shape[0] or a._shape[2] != b._shape[1]:
            raise RuntimeError(
                f"Expected size for first two dimensions of batch2 tensor to be: [{a._shape[0]}, {a._shape[2]}] but "
                f"got: [{b._shape[0]}, {b._shape[1]}].")
        if self.total:
            check_addends(args[0], a, b)
        if self.add:
            check_factors(args, a)
        dt = a._dtype
        if dt is not b._dtype:
            if numel(a) and numel(b):
                raise apart(self.add, dt, b._dtype)
            # Without a product PyTorch does not look at the dtypes.
            dt = b._dtype
        shape: tuple[int, ...] = (a._shape[0], a._shape[1], b._shape[2])
        if self.total:
            shape = (a._shape[1], b._shape[2])
        return matrix(a, shape, dt)

    def check_dtypes(self, c: Any, a: TensorBase, b: TensorBase) -> None:
        assert isinstance(c, TensorBase)
        if c._dtype is not a._dtype:
            raise RuntimeError(
                f"Input dtypes must be the same, got: input {cpp_name(c._dtype)}, batch1: {cpp_name(a._dtype)}, "
                f"batch2: {cpp_name(b._dtype)}")

    def check_addend(self, c: Any, a: TensorBase, b: TensorBase) -> None:
        assert isinstance(c, TensorBase)
        if self.total:
            check_expand(c, (size_at(a, 1), size_at(b, 2)))
        else:
            check_expand(c, (size_at(a, 0), size_at(a, 1), size_at(b, 2)))

    def check_total(self, a: TensorBase, b: TensorBase) -> None:
        if a._shape[0] != b._shape[0]:
            raise RuntimeError(
                f"batch1 and batch2 must have same number of batches, got {a._shape[0]} and {b._shape[0]}")
        if a._shape[2] != b._shape[1]:
            raise RuntimeError(
                f"Incompatible matrix sizes for bmm ({a._shape[1]}x{a._shape[2]} and {b._shape[1]}x{b._shape[2]})")


@final
class Mv(Rule):
    """(self, vec), or with `add` (self, mat, vec, beta, alpha)."""

    def __init__(self, add: bool) -> None:
        self.add: Final = add

    def infer(self, args: tuple[Any, ...]) -> Any:
        first = 1 if self.add else 0
        m = args[first]
        x = args[first + 1]
        assert isinstance(m, TensorBase) and isinstance(x, TensorBase)
        c: TensorBase | None = None
        if self.add:
            c = args[0]
        rank = 1 if c is None else len(c._shape)
        if c is None:
            size_at(m, 0)
        if len(m._shape) != 2 or len(x._shape) != 1 or rank > 1:
            raise RuntimeError(f"vector + matrix @ vector expected, got {rank}, {len(m._shape)}, {len(x._shape)}")
        rows = m._shape[0]
        have = rows if c is None else c._shape[0] if rank == 1 else 1
        if m._shape[1] != x._shape[0] or (have != rows and have != 1):
            if c is not None:
                size_at(c, 0)
            raise RuntimeError(
                f"size mismatch, got input ({have}), mat ({size_text(m._shape)}), vec ({x._shape[0]})")
        if m._dtype is not x._dtype or (c is not None and c._dtype is not m._dtype):
            self_dt = x._dtype if c is None else c._dtype
            raise RuntimeError(
                f"addmv input tensors must have the same dtype, but got {self_dt.scalar_name}, "
                f"{m._dtype.scalar_name}, and {x._dtype.scalar_name}")
        if c is not None:
            check_factors(args, m)
        return Spec((rows,), (1,), m._dtype, m._dtype, m._device)


@final
class Dot(Rule):
    """(self, tensor)"""

    def __init__(self, name: str) -> None:
        self.name: Final = name

    def infer(self, args: tuple[Any, ...]) -> Any:
        a = args[0]
        b = args[1]
        assert isinstance(a, TensorBase) and isinstance(b, TensorBase)
        if len(a._shape) != 1 or len(b._shape) != 1:
            raise RuntimeError(f"1D tensors expected, but got {len(a._shape)}D and {len(b._shape)}D tensors")
        if a._dtype is not b._dtype:
            raise RuntimeError(
                f"{self.name} : expected both vectors to have same dtype, but found {a._dtype.scalar_name} and "
                f"{b._dtype.scalar_name}")
        if a._shape[0] != b._shape[0]:
            raise RuntimeError(
                f"inconsistent tensor size, expected tensor [{a._shape[0]}] and src [{b._shape[0]}] to have the same "
                f"number of elements, but got {a._shape[0]} and {b._shape[0]} elements respectively")
        return Spec((), (), a._dtype, a._dtype, a._device)


# -- derivatives --------------------------------------------------------------------------------------------------
