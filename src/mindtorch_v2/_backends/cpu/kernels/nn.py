"""From the rows of networks to their native kernels: softmax, layer norm, losses, embedding.

Invariant: kernels that read memory in one run get dense operands; what is not dense is copied here first.
"""

from __future__ import annotations

from typing import Any, Final, final

from mypy_extensions import i64

from .... import _native
from ...._device import CPU
from ...._dispatch.keys import CPU as CPU_KEY
from ...._dispatch.op import Kernel, Op, Spec
from ...._dtype import dtype
from ...._ops.rules.layout import expand_strides
from ...._ops.rules.reduce import ZEROS
from ...._strides import contiguous_strides
from ...._tensor_base import TensorBase, is_contiguous, make, numel
from ...common.runtime import empty_spec
from .base import rule_of

_softmax: Final[Any] = _native.softmax
_softmax_backward: Final[Any] = _native.softmax_backward
_layer_norm: Final[Any] = _native.layer_norm
_layer_norm_backward: Final[Any] = _native.layer_norm_backward
_nll_loss: Final[Any] = _native.nll_loss
_nll_loss_backward: Final[Any] = _native.nll_loss_backward
_embedding: Final[Any] = _native.embedding
_embedding_backward: Final[Any] = _native.embedding_backward
_unary: Final[Any] = _native.unary
_binary: Final[Any] = _native.binary
_reduce: Final[Any] = _native.reduce
_copy: Final[Any] = _native.copy
_Storage: Final[Any] = _native.Storage
_SUB: Final = _native.SUB
_MUL: Final = _native.MUL
_SQUARE: Final = _native.SQUARE
_MEAN: Final = _native.MEAN
_SUM: Final = _native.SUM


def need_float(name: str, dt: dtype) -> None:
    if not dt.is_floating_point or dt.itemsize < 2:
        raise NotImplementedError(f"\"{name}\" not implemented for '{dt.scalar_name}'")


def wrapped(dim: Any, ndim: i64) -> int:
    d: i64 = dim
    if d < 0:
        d += ndim if ndim > 0 else 1
    return int(d)


def dense(t: TensorBase) -> TensorBase:
    """The tensor, or a row-major copy of it."""
    if is_contiguous(t):
        return t
    stride = contiguous_strides(t._shape)
    data = _Storage(int(numel(t)) * t._dtype.itemsize)
    _copy(data, 0, stride, t._dtype.code, t._storage, int(t._offset), t._stride, t._dtype.code, t._shape)
    return make(data, 0, t._shape, stride, t._dtype, CPU, CPU_KEY)


def finished(data: Any, s: Spec) -> Any:
    return make(data, 0, s.shape, s.stride, s.dtype, CPU, CPU_KEY)


@final
class Softmax(Kernel):
    """(self, dim, half_to_float)"""

    def __init__(self, log: bool) -> None:
        self.log: Final = log

    def check(self, dt: dtype, dim: int, ndim: int) -> None:
        """PyTorch names another kernel when the dimension is the last one."""
        if not dt.is_inexact:
            last = "lastdim_" if dim == -1 or dim + 1 >= ndim else ""
            need_float(f"{'log_' if self.log else ''}softmax_{last}kernel_impl", dt)

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        s = rule_of(op).infer(args)
        a = args[0]
        assert isinstance(s, Spec) and isinstance(a, TensorBase)
        if numel(a) == 0:
            # PyTorch asks for no kernel then, so any dtype will do.
            return empty_spec(s)
        self.check(s.dtype, args[1], len(a._shape))
        code = s.dtype.code
        data = _softmax(
            self.log,
            a._storage,
            int(a._offset),
            a._stride,
            code,
            None,
            0,
            s.stride,
            code,
            a._shape,
            wrapped(args[1], len(a._shape)),
        )
        return finished(data, s)

    def into(self, op: Op, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        a = args[0]
        assert isinstance(a, TensorBase)
        if out._dtype is not spec.dtype:
            return False
        if numel(a) == 0:
            return True
        self.check(spec.dtype, args[1], len(a._shape))
        code = spec.dtype.code
        _softmax(
            self.log,
            a._storage,
            int(a._offset),
            a._stride,
            code,
            out._storage,
            int(out._offset),
            out._stride,
            code,
            a._shape,
            wrapped(args[1], len(a._shape)),
        )
        return True


@final
class SoftmaxBackward(Kernel):
    """(grad_output, output, dim, input_dtype)"""

    def __init__(self, log: bool) -> None:
        self.log: Final = log

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        s = rule_of(op).infer(args)
        g = args[0]
        y = args[1]
        assert isinstance(s, Spec) and isinstance(g, TensorBase) and isinstance(y, TensorBase)
        need_float("softmax_backward", s.dtype)
        code = s.dtype.code
        data = _softmax_backward(
            self.log,
            g._storage,
            int(g._offset),
            g._stride,
            g._dtype.code,
            y._storage,
            int(y._offset),
            y._stride,
            code,
            None,
            0,
            s.stride,
            code,
            y._shape,
            wrapped(args[2], len(y._shape)),
        )
        return finished(data, s)


def inner_size(shape: Any) -> int:
    n: i64 = 1
    for s in shape:
        m: i64 = s
        n *= m
    return int(n)


@final
class LayerNorm(Kernel):
    """(input, normalized_shape, weight, bias, eps) -> output, mean, rstd, or the output alone, as the rule says"""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        got = rule_of(op).infer(args)
        x = args[0]
        assert isinstance(x, TensorBase)
        need_float("LayerNormKernelImpl", x._dtype)
        if not is_contiguous(x):
            x = dense(x)
        inner = inner_size(args[1])
        code = x._dtype.code
        wdata: Any = None
        woff = 0
        wcode = 0
        w = args[2]
        if w is not None:
            assert isinstance(w, TensorBase)
            w = dense(w)
            wdata = w._storage
            woff = int(w._offset)
            wcode = w._dtype.code
        bdata: Any = None
        boff = 0
        bcode = 0
        b = args[3]
        if b is not None:
            assert isinstance(b, TensorBase)
            b = dense(b)
            bdata = b._storage
            boff = int(b._offset)
            bcode = b._dtype.code
        if isinstance(got, Spec):
            outer = int(numel(x)) // inner if inner else 0
            data = _layer_norm(
                x._storage,
                int(x._offset),
                (),
                code,
                wdata,
                woff,
                (),
                wcode,
                bdata,
                boff,
                (),
                bcode,
                None,
                0,
                (),
                code,
                None,
                0,
                (),
                0,
                None,
                0,
                (),
                0,
                outer,
                inner,
                args[4],
            )
            return finished(data, got)
        o = got[0]
        stat = got[1]
        assert isinstance(o, Spec) and isinstance(stat, Spec)
        outer = inner_size(stat.shape)
        item = stat.dtype.itemsize
        mean = _Storage(outer * item)
        rstd = _Storage(outer * item)
        scode = stat.dtype.code
        data = _layer_norm(
            x._storage,
            int(x._offset),
            (),
            code,
            wdata,
            woff,
            (),
            wcode,
            bdata,
            boff,
            (),
            bcode,
            None,
            0,
            (),
            code,
            mean,
            0,
            (),
            scode,
            rstd,
            0,
            (),
            scode,
            outer,
            inner,
            args[4],
        )
        return finished(data, o), finished(mean, stat), finished(rstd, stat)


@final
class LayerNormBackward(Kernel):
    """(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask)"""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        g = args[0]
        x = args[1]
        mean = args[3]
        rstd = args[4]
        w = args[5]
        mask = args[7]
        assert isinstance(g, TensorBase) and isinstance(x, TensorBase)
        assert isinstance(mean, TensorBase) and isinstance(rstd, TensorBase)
        specs = rule_of(op).infer(args)
        g = dense(g)
        x = dense(x)
        mean = dense(mean)
        rstd = dense(rstd)
        outer = int(numel(mean))
        inner = inner_size(args[2])
        wdata: Any = None
        woff = 0
        wcode = 0
        if isinstance(w, TensorBase):
            w = dense(w)
            wdata = w._storage
            woff = int(w._offset)
            wcode = w._dtype.code
        outs: list[Any] = []
        flat: list[Any] = []
        for i in range(3):
            s = specs[i]
            assert isinstance(s, Spec)
            if mask[i] and (i == 0 or args[4 + i] is not None):
                data = _Storage(inner_size(s.shape) * s.dtype.itemsize)
                outs.append(finished(data, s))
                flat.append(data)
                flat.append(s.dtype.code)
            else:
                outs.append(None)
                flat.append(None)
                flat.append(0)
        _layer_norm_backward(
            g._storage,
            int(g._offset),
            (),
            g._dtype.code,
            x._storage,
            int(x._offset),
            (),
            x._dtype.code,
            mean._storage,
            int(mean._offset),
            (),
            mean._dtype.code,
            rstd._storage,
            int(rstd._offset),
            (),
            rstd._dtype.code,
            wdata,
            woff,
            (),
            wcode,
            flat[0],
            0,
            (),
            flat[1],
            flat[2],
            0,
            (),
            flat[3],
            flat[4],
            0,
            (),
            flat[5],
            outer,
            inner,
        )
        return outs[0], outs[1], outs[2]


def row_strides(t: TensorBase) -> tuple[int, ...]:
    """(row, class) strides of a matrix, or of one row of classes."""
    return t._stride if len(t._shape) == 2 else (0, t._stride[0])


@final
class Nll(Kernel):
    """(self, target, weight, reduction, ignore_index) -> output, total_weight"""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        specs = rule_of(op).infer(args)
        o = specs[0]
        x = args[0]
        t = args[1]
        w = args[2]
        assert isinstance(o, Spec) and isinstance(x, TensorBase) and isinstance(t, TensorBase)
        need_float("nll_loss_out_frame", x._dtype)
        matrix = len(x._shape) == 2
        n = x._shape[0] if matrix else 1
        c = x._shape[1] if matrix else x._shape[0]
        # One sample is its own sum: PyTorch reports the weight it had, even when nothing is reduced.
        reduction: int = args[3] if matrix or args[3] != 0 else 2
        code = x._dtype.code
        wdata: Any = None
        woff = 0
        if isinstance(w, TensorBase):
            w = dense(w)
            wdata = w._storage
            woff = int(w._offset)
        total = _Storage(x._dtype.itemsize)
        data = _nll_loss(
            x._storage,
            int(x._offset),
            row_strides(x),
            code,
            t._storage,
            int(t._offset),
            t._stride if len(t._shape) == 1 else (0,),
            t._dtype.code,
            wdata,
            woff,
            (),
            code,
            None,
            0,
            o.stride,
            code,
            total,
            0,
            (),
            code,
            n,
            c,
            reduction,
            args[4],
        )
        return finished(data, o), make(total, 0, (), (), x._dtype, CPU, CPU_KEY)


@final
class NllBackward(Kernel):
    """(grad_output, self, target, weight, reduction, ignore_index, total_weight)"""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        s = rule_of(op).infer(args)
        g = args[0]
        x = args[1]
        t = args[2]
        w = args[3]
        total = args[6]
        assert isinstance(s, Spec) and isinstance(g, TensorBase) and isinstance(x, TensorBase)
        assert isinstance(t, TensorBase) and isinstance(total, TensorBase)
        matrix = len(x._shape) == 2
        n = x._shape[0] if matrix else 1
        c = x._shape[1] if matrix else x._shape[0]
        reduction: int = args[4] if matrix or args[4] != 0 else 2
        code = x._dtype.code
        wdata: Any = None
        woff = 0
        if isinstance(w, TensorBase):
            w = dense(w)
            wdata = w._storage
            woff = int(w._offset)
        data = _nll_loss_backward(
            g._storage,
            int(g._offset),
            g._stride,
            g._dtype.code,
            t._storage,
            int(t._offset),
            t._stride if len(t._shape) == 1 else (0,),
            t._dtype.code,
            wdata,
            woff,
            (),
            code,
            total._storage,
            int(total._offset),
            (),
            total._dtype.code,
            None,
            0,
            s.stride if matrix else (0, 1),
            code,
            n,
            c,
            reduction,
            args[5],
        )
        return finished(data, s)


@final
class Mse(Kernel):
    """(self, target, reduction)"""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        s = rule_of(op).infer(args)
        a = args[0]
        b = args[1]
        assert isinstance(s, Spec) and isinstance(a, TensorBase) and isinstance(b, TensorBase)
        dt = s.dtype
        need_float("mse_cpu", dt)
        code = dt.code
        shape = s.shape
        stride = s.stride
        if args[2] != 0:
            shape = a._shape if a._shape == b._shape else broadcast_of(a, b)
            stride = contiguous_strides(shape)
        data = _binary(
            _SUB,
            a._storage,
            int(a._offset),
            expand_strides(a, shape),
            a._dtype.code,
            b._storage,
            int(b._offset),
            expand_strides(b, shape),
            b._dtype.code,
            None,
            0,
            stride,
            code,
            shape,
            code,
            1,
        )
        _unary(_SQUARE, data, 0, stride, code, data, 0, stride, code, shape, code)
        if args[2] == 0:
            return finished(data, s)
        return finished(
            _reduce(
                _MEAN if args[2] == 1 else _SUM, data, 0, stride, code, None, 0, ZEROS[len(shape)], code, shape, code, 1
            ),
            s,
        )


def broadcast_of(a: TensorBase, b: TensorBase) -> tuple[int, ...]:
    from ...._ops.rules.pointwise import broadcast_shapes

    return broadcast_shapes(a._shape, b._shape)


@final
class MseBackward(Kernel):
    """(grad_output, self, target, reduction)"""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        s = rule_of(op).infer(args)
        g = args[0]
        a = args[1]
        b = args[2]
        assert isinstance(s, Spec) and isinstance(g, TensorBase)
        assert isinstance(a, TensorBase) and isinstance(b, TensorBase)
        code = s.dtype.code
        shape = s.shape
        stride = s.stride
        # 2 (a - b) and then g: the difference is scaled while it is formed, a - b = a + (-1) b.
        data = _binary(
            _SUB,
            a._storage,
            int(a._offset),
            expand_strides(a, shape),
            a._dtype.code,
            b._storage,
            int(b._offset),
            expand_strides(b, shape),
            b._dtype.code,
            None,
            0,
            stride,
            code,
            shape,
            code,
            1,
        )
        scale = 2.0
        if args[3] == 1:
            scale = 2.0 / max(inner_size(shape), 1)
        small = len(g._shape) == 0
        if small:
            one = _binary(
                _MUL, g._storage, int(g._offset), (), g._dtype.code, scale, 0, (), 0, None, 0, (), code, (), code, 1
            )
            _binary(_MUL, data, 0, stride, code, one, 0, ZEROS[len(shape)], code, data, 0, stride, code, shape, code, 1)
            return finished(data, s)
        _binary(
            _MUL,
            data,
            0,
            stride,
            code,
            g._storage,
            int(g._offset),
            expand_strides(g, shape),
            g._dtype.code,
            data,
            0,
            stride,
            code,
            shape,
            code,
            1,
        )
        _binary(_MUL, data, 0, stride, code, scale, 0, (), 0, data, 0, stride, code, shape, code, 1)
        return finished(data, s)


@final
class Embedding(Kernel):
    """(weight, indices, padding_idx, scale_grad_by_freq, sparse)"""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        s = rule_of(op).infer(args)
        w = args[0]
        i = args[1]
        assert isinstance(s, Spec) and isinstance(w, TensorBase) and isinstance(i, TensorBase)
        i = dense(i)
        data = _embedding(
            w._storage,
            int(w._offset),
            w._stride,
            w._dtype.code,
            i._storage,
            int(i._offset),
            (),
            i._dtype.code,
            None,
            0,
            (),
            w._dtype.code,
            int(numel(i)),
            w._shape[0],
            w._shape[1],
        )
        return finished(data, s)


@final
class EmbeddingBackward(Kernel):
    """(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)"""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        s = rule_of(op).infer(args)
        g = args[0]
        i = args[1]
        assert isinstance(s, Spec) and isinstance(g, TensorBase) and isinstance(i, TensorBase)
        g = dense(g)
        i = dense(i)
        columns = s.shape[1]
        data = _embedding_backward(
            g._storage,
            int(g._offset),
            (columns, 1),
            g._dtype.code,
            i._storage,
            int(i._offset),
            (),
            i._dtype.code,
            None,
            0,
            (),
            g._dtype.code,
            int(numel(i)),
            s.shape[0],
            columns,
            args[3],
            args[4],
        )
        return finished(data, s)
