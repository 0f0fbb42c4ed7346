"""Matrix products: shape rules, the folding of `matmul` and `linear` into products of matrices, and their derivatives.

Invariant: a rule refuses what PyTorch refuses before any kernel runs; every product of higher rank is one call of mm,
mv, dot, bmm or addmm.
"""
from __future__ import annotations

from typing import Any, Final, final

from mypy_extensions import i64

from ..._dispatch.keys import AUTOGRAD, BACKENDS, PYTHON
from ..._dispatch.op import Kernel, Op, Rule, Spec
from ..._dispatch.state import is_grad_enabled
from ..._dtype import dtype
from ..._dtype_names import cpp_name
from ..._layout import contiguous_format
from ..._strides import contiguous_strides
from ..._tensor_base import TensorBase, is_contiguous, make, numel, requires_grad
from .pointwise import broadcast_shapes

_contiguous: Final[Any] = contiguous_format


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


@final
class Addmm(Rule):
    """(self, mat1, mat2, beta, alpha)"""

    def infer(self, args: tuple[Any, ...]) -> Any:
        c = args[0]
        a = args[1]
        b = args[2]
        assert isinstance(a, TensorBase) and isinstance(b, TensorBase) and isinstance(c, TensorBase)
        if len(a._shape) != 2:
            raise RuntimeError(f"mat1 must be a matrix, got {len(a._shape)}-D tensor")
        if len(b._shape) != 2:
            raise RuntimeError(f"mat2 must be a matrix, got {len(b._shape)}-D tensor")
        check_matrices(a, b)
        if c._dtype is not b._dtype:
            raise RuntimeError(
                f"self and mat2 must have the same dtype, but got {c._dtype.scalar_name} and {b._dtype.scalar_name}")
        if a._dtype is not b._dtype:
            raise RuntimeError(
                f"expected m1 and m2 to have the same dtype, but got: {cpp_name(a._dtype)} != {cpp_name(b._dtype)}")
        n = b._shape[1]
        shape = (a._shape[0], n)
        if not (len(c._shape) == 1 and c._shape[0] == n):
            check_expand(c, shape)
        return Spec(shape, (n if n > 1 else 1, 1), a._dtype, a._dtype, a._device)


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
        dt = a._dtype
        if dt is not b._dtype:
            if self.add or (numel(a) and numel(b)):
                raise apart(self.add, dt, b._dtype)
            # Without a product PyTorch does not look at the dtypes.
            dt = b._dtype
        shape: tuple[int, ...] = (a._shape[0], a._shape[1], b._shape[2])
        if self.total:
            shape = (a._shape[1], b._shape[2])
        if self.add:
            c = args[0]
            assert isinstance(c, TensorBase)
            if c._dtype is not a._dtype:
                raise RuntimeError(
                    f"Input dtypes must be the same, got: input {cpp_name(c._dtype)}, batch1: {cpp_name(a._dtype)}, "
                    f"batch2: {cpp_name(b._dtype)}")
        return matrix(a, shape, dt)

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


# -- folding ------------------------------------------------------------------------------------------------------
@final
class Used:
    """Operators the composites and derivatives call; filled when the table of products is loaded."""

    mm: Op
    bmm: Op
    mv: Op
    dot: Op
    addmm: Op
    t: Op
    transpose: Op
    view: Op
    unsafe_view: Op
    reshape: Op
    expand: Op
    squeeze: Op
    row_of: Op
    unsqueeze: Op
    add: Op
    mul: Op
    conj: Op
    clone: Op


USED: Final = Used()


def product(shape: tuple[int, ...]) -> int:
    n: i64 = 1
    for s in shape:
        m: i64 = s
        n *= m
    return int(n)


def below(op: Op, args: tuple[Any, ...], keys: i64) -> Any:
    """Call an operator with the very tensors whose keys are already known."""
    if op.last_keys == keys:
        return op.last_kernel.run(op, args, keys)
    return op.below(keys, args).run(op, args, keys)


@final
class Matmul(Kernel):
    """matmul(self, other) of any ranks."""

    def __init__(self) -> None:
        self.calls_ops = True

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        a = args[0]
        b = args[1]
        assert isinstance(a, TensorBase) and isinstance(b, TensorBase)
        da = len(a._shape)
        db = len(b._shape)
        if da == 2 and db == 2:
            return below(USED.mm, args, keys)
        if da == 0 or db == 0:
            raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {da}D and {db}D")
        if da == 1 and db == 1:
            return below(USED.dot, args, keys)
        if da == 2 and db == 1:
            return below(USED.mv, args, keys)
        if da == 1 and db == 2:
            return USED.row_of.call((USED.mm.call((USED.unsqueeze.call((a, 0)), b)), (b._shape[1],)))
        return matmul_fold(a, b) if should_fold(a, b) else matmul_batch(a, b)


def should_fold(a: TensorBase, b: TensorBase) -> bool:
    """Whether the operand of higher rank becomes one matrix, instead of the other one being repeated for every
    batch."""
    larger, other = (a, b) if len(a._shape) >= len(b._shape) else (b, a)
    if len(larger._shape) < 3 or len(other._shape) > 2:
        return False
    if requires_grad(other):
        # Without folding, the backward pass would make one gradient of `other` per batch.
        return True
    if len(a._shape) == 2:
        return False
    if numel(larger) == 0:
        return True
    shape = list(larger._shape)
    stride = list(larger._stride)
    n = len(shape)
    if larger is b:
        shape[n - 1], shape[n - 2] = shape[n - 2], shape[n - 1]
        stride[n - 1], stride[n - 2] = stride[n - 2], stride[n - 1]
    i = 0
    while i < n - 2:
        if stride[i] != stride[i + 1] * shape[i + 1]:
            return False
        i += 1
    return True


def matmul_fold(a: TensorBase, b: TensorBase) -> Any:
    turned = len(b._shape) > len(a._shape)
    large: Any = USED.transpose.call((b, -2, -1)) if turned else a
    small: Any = b if not turned else USED.t.call((a,)) if len(a._shape) == 2 else a
    lead = large._shape[:-1]
    flat = USED.reshape.call((large, (product(lead), large._shape[-1])))
    if len(small._shape) == 1:
        return USED.unsafe_view.call((USED.mv.call((flat, small)), lead))
    out = USED.unsafe_view.call((USED.mm.call((flat, small)), lead + (small._shape[1],)))
    if not turned:
        return out
    out = USED.transpose.call((out, -2, -1))
    return out if is_contiguous(out) else USED.clone.call((out, _contiguous))


def matmul_batch(a: TensorBase, b: TensorBase) -> Any:
    da = len(a._shape)
    db = len(b._shape)
    if da == 3 and db == 3 and a._shape[0] != b._shape[0]:
        if a._shape[0] == 1 and requires_grad(a):
            x: Any = USED.squeeze.call((a, 0))
            return matmul_fold(x, b) if should_fold(x, b) else matmul_batch(x, b)
        if b._shape[0] == 1 and requires_grad(b):
            y: Any = USED.squeeze.call((b, 0))
            return matmul_fold(a, y) if should_fold(a, y) else matmul_batch(a, y)
    n = a._shape[-2] if da > 1 else 1
    m = a._shape[-1]
    batch = broadcast_shapes(a._shape[:-2] if da > 2 else (), b._shape[:-2] if db > 2 else ())
    count = product(batch)
    left = USED.reshape.call((USED.expand.call((a, batch + (n, m), False)), (count, n, m)))
    if db == 1:
        k = b._shape[0]
        right = USED.unsqueeze.call((USED.reshape.call((USED.expand.call((b, batch + (k,), False)), (count, k))), 2))
        out = USED.squeeze.call((USED.bmm.call((left, right)), -1))
        return USED.unsafe_view.call((out, batch + (n,) if da > 1 else batch))
    k = b._shape[-2]
    p = b._shape[-1]
    right = USED.reshape.call((USED.expand.call((b, batch + (k, p), False)), (count, k, p)))
    shape = batch + (n, p) if da > 1 else batch + (p,)
    return USED.unsafe_view.call((USED.bmm.call((left, right)), shape))


@final
class Linear(Kernel):
    """linear(input, weight, bias)"""

    def __init__(self) -> None:
        self.calls_ops = True

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        x = args[0]
        w = args[1]
        bias = args[2]
        assert isinstance(x, TensorBase) and isinstance(w, TensorBase)
        turned = USED.t.call((w,))
        n = len(x._shape)
        if bias is None:
            if n == 2 and len(w._shape) == 2:
                return USED.mm.call((x, turned))
            return MATMUL.run(op, (x, turned), keys)
        if n == 2 and len(w._shape) == 2:
            return USED.addmm.call((bias, x, turned, 1, 1))
        if len(w._shape) == 2 and n > 0 and is_contiguous(x):
            lead = x._shape[:-1]
            flat = USED.view.call((x, (product(lead), x._shape[-1])))
            out = USED.addmm.call((bias, flat, turned, 1, 1))
            return USED.view.call((out, lead + (out._shape[1],)))
        return USED.add.call((MATMUL.run(op, (x, turned), keys), bias, 1))


MATMUL: Final = Matmul()
LINEAR: Final = Linear()


# -- derivatives --------------------------------------------------------------------------------------------------
def turn(t: TensorBase) -> Any:
    """The transpose. Where nothing is recorded it is only another look at the same memory."""
    if t._keys & PYTHON or (t._keys & AUTOGRAD and is_grad_enabled()):
        return USED.t.call((t,))
    return make(t._storage, t._offset, (t._shape[1], t._shape[0]), (t._stride[1], t._stride[0]), t._dtype, t._device,
                t._keys & BACKENDS)


def conj(t: TensorBase) -> Any:
    return USED.conj.call((t,)) if t._dtype.is_complex else t


def scaled(t: Any, by: Any) -> Any:
    """alpha and beta are 1 nearly always."""
    if by == 1:
        return t
    return USED.mul.call((t, by.conjugate() if isinstance(by, complex) else by))


def column_major(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    return stride[0] == 1 and stride[1] == shape[0] and shape[0] > 1


def mat1_grad(g: TensorBase, b: TensorBase, shape: tuple[int, ...], stride: tuple[int, ...], alpha: Any) -> Any:
    """d(a @ b)/da; a column-major operand gets a column-major gradient."""
    if column_major(shape, stride):
        return scaled(turn(USED.mm.call((conj(b), turn(g)))), alpha)
    return scaled(USED.mm.call((g, conj(turn(b)))), alpha)


def mat2_grad(g: TensorBase, a: TensorBase, shape: tuple[int, ...], stride: tuple[int, ...], alpha: Any) -> Any:
    """d(a @ b)/db."""
    if column_major(shape, stride):
        return scaled(turn(USED.mm.call((turn(g), conj(a)))), alpha)
    return scaled(USED.mm.call((conj(turn(a)), g)), alpha)


def batch_turn(t: Any) -> Any:
    return conj(USED.transpose.call((t, 1, 2)))
