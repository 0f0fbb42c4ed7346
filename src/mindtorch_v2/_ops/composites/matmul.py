"""Products of matrices and vectors of any ranks, and the derivatives of products.

Invariant: a product of two matrices costs one more function call than the row it ends in.
"""

from __future__ import annotations

from typing import Any, Final, final

from ..._dispatch.keys import AUTOGRAD, BACKENDS, BATCHED, LAZY, PYTHON, TORCH_DISPATCH, VIEW
from ..._dispatch.op import Kernel, Op, Spec
from ..._dispatch.state import is_grad_enabled, modes
from ..._layout import contiguous_format
from ..._mypyc import i64
from ..._sizes import numel_of
from ..._tensor_base import TensorBase, is_contiguous, is_dual, make, numel, requires_grad
from ..rules.pointwise import broadcast_shapes
from .formulas import conj
from .rows import ROWS, below


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
            return below(ROWS.mm, args, keys)
        if da == 0 or db == 0:
            raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {da}D and {db}D")
        if da == 1 and db == 1:
            return below(ROWS.dot, args, keys)
        if da == 2 and db == 1:
            return below(ROWS.mv, args, keys)
        if da == 1 and db == 2:
            return ROWS.row_of.call((ROWS.mm.call((ROWS.unsqueeze.call((a, 0)), b)), (b._shape[1],)))
        return matmul_fold(a, b) if should_fold(a, b) else matmul_batch(a, b)

    def parts_into(self, args: tuple[Any, ...], out: TensorBase) -> bool:
        a = args[0]
        b = args[1]
        assert isinstance(a, TensorBase) and isinstance(b, TensorBase)
        if len(a._shape) != 2 or len(b._shape) != 2 or a._dtype is not out._dtype or not is_contiguous(out):
            return False
        if a._storage is out._storage or b._storage is out._storage:
            return False
        if (a._keys | b._keys | out._keys) & ~(BACKENDS | VIEW | AUTOGRAD):
            return False
        s = ROWS.mm.infer(args)
        if not isinstance(s, Spec) or s.shape != out._shape or s.dtype is not out._dtype or s.device != out._device:
            return False
        return ROWS.mm.below(out._keys & BACKENDS, args).into(ROWS.mm, args, s, out)


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
    large: Any = ROWS.transpose.call((b, -2, -1)) if turned else a
    small: Any = b if not turned else ROWS.t.call((a,)) if len(a._shape) == 2 else a
    lead = large._shape[:-1]
    flat = ROWS.reshape.call((large, (int(numel_of(lead)), large._shape[-1])))
    if len(small._shape) == 1:
        return ROWS.unsafe_view.call((ROWS.mv.call((flat, small)), lead))
    out = ROWS.unsafe_view.call((ROWS.mm.call((flat, small)), lead + (small._shape[1],)))
    if not turned:
        return out
    out = ROWS.transpose.call((out, -2, -1))
    return out if is_contiguous(out) else ROWS.clone.call((out, contiguous_format))


def matmul_batch(a: TensorBase, b: TensorBase) -> Any:
    da = len(a._shape)
    db = len(b._shape)
    if da == 3 and db == 3 and a._shape[0] != b._shape[0]:
        if a._shape[0] == 1 and requires_grad(a):
            x: Any = ROWS.squeeze.call((a, 0))
            return matmul_fold(x, b) if should_fold(x, b) else matmul_batch(x, b)
        if b._shape[0] == 1 and requires_grad(b):
            y: Any = ROWS.squeeze.call((b, 0))
            return matmul_fold(a, y) if should_fold(a, y) else matmul_batch(a, y)
    n = a._shape[-2] if da > 1 else 1
    m = a._shape[-1]
    batch = broadcast_shapes(a._shape[:-2] if da > 2 else (), b._shape[:-2] if db > 2 else ())
    total = int(numel_of(batch))
    left = ROWS.reshape.call((ROWS.expand.call((a, batch + (n, m), False)), (total, n, m)))
    if db == 1:
        k = b._shape[0]
        right = ROWS.unsqueeze.call((ROWS.reshape.call((ROWS.expand.call((b, batch + (k,), False)), (total, k))), 2))
        out = ROWS.squeeze.call((ROWS.bmm.call((left, right)), -1))
        return ROWS.unsafe_view.call((out, batch + (n,) if da > 1 else batch))
    k = b._shape[-2]
    p = b._shape[-1]
    right = ROWS.reshape.call((ROWS.expand.call((b, batch + (k, p), False)), (total, k, p)))
    shape = batch + (n, p) if da > 1 else batch + (p,)
    return ROWS.unsafe_view.call((ROWS.bmm.call((left, right)), shape))


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
        turned = ROWS.t.call((w,))
        n = len(x._shape)
        if bias is None:
            if n == 2 and len(w._shape) == 2:
                return ROWS.mm.call((x, turned))
            return MATMUL.run(op, (x, turned), keys)
        if n == 2 and len(w._shape) == 2:
            return ROWS.addmm.call((bias, x, turned, 1, 1))
        if len(w._shape) == 2 and n > 0 and is_contiguous(x):
            lead = x._shape[:-1]
            flat = ROWS.view.call((x, (int(numel_of(lead)), x._shape[-1])))
            out = ROWS.addmm.call((bias, flat, turned, 1, 1))
            return ROWS.view.call((out, lead + (out._shape[1],)))
        return ROWS.add.call((MATMUL.run(op, (x, turned), keys), bias, 1))


MATMUL: Final = Matmul()
LINEAR: Final = Linear()


def turn(t: TensorBase) -> Any:
    """The transpose. Where nobody looks and nothing is recorded it is only another look at the same memory."""
    if (
        t._keys & PYTHON
        or (t._keys | modes()) & TORCH_DISPATCH
        or (t._keys & AUTOGRAD and is_grad_enabled())
        or is_dual(t)
    ):
        return ROWS.t.call((t,))
    return make(
        t._storage,
        t._offset,
        (t._shape[1], t._shape[0]),
        (t._stride[1], t._stride[0]),
        t._dtype,
        t._device,
        t._keys & (BACKENDS | BATCHED | LAZY),
    )


def scaled(t: Any, by: Any) -> Any:
    """alpha and beta are 1 nearly always."""
    if by == 1:
        return t
    return ROWS.mul.call((t, by.conjugate() if isinstance(by, complex) else by))


def column_major(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    return stride[0] == 1 and stride[1] == shape[0] and shape[0] > 1


def mat1_grad(g: TensorBase, b: TensorBase, shape: tuple[int, ...], stride: tuple[int, ...], alpha: Any) -> Any:
    """d(a @ b)/da; a column-major operand gets a column-major gradient."""
    if column_major(shape, stride):
        return scaled(turn(ROWS.mm.call((conj(b), turn(g)))), alpha)
    return scaled(ROWS.mm.call((g, conj(turn(b)))), alpha)


def mat2_grad(g: TensorBase, a: TensorBase, shape: tuple[int, ...], stride: tuple[int, ...], alpha: Any) -> Any:
    """d(a @ b)/db."""
    if column_major(shape, stride):
        return scaled(turn(ROWS.mm.call((turn(g), conj(a)))), alpha)
    return scaled(ROWS.mm.call((conj(turn(a)), g)), alpha)


def batch_turn(t: Any) -> Any:
    return conj(ROWS.transpose.call((t, 1, 2)))
