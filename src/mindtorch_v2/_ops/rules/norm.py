"""Shape rules of softmax, layer norm, losses and embedding, and the compiled composites on top of them.

Invariant: a composite here passes the call's keys on to the row it ends in, so that it costs one more function call.
"""
from __future__ import annotations

from typing import Any, Final, final

from ..._dispatch.op import Rule, Spec
from ..._dtype import int32, int64, uint8
from ..._mypyc import i64
from ..._strides import contiguous_strides
from ..._tensor_base import TensorBase, numel
from .base import like, size_at, wrap_dim
from .layout import preserved_strides
from .pointwise import Pointwise, broadcast_shapes
from .shape import check_sizes


def same(t: TensorBase) -> Spec:
    return Spec(t._shape, contiguous_strides(t._shape), t._dtype, t._dtype, t._device)


# -- softmax ------------------------------------------------------------------------------------------------------
@final
class Softmax(Rule):
    """(self, dim, half_to_float)"""

    def infer(self, args: tuple[Any, ...]) -> Any:
        a = args[0]
        assert isinstance(a, TensorBase)
        n: i64 = len(a._shape)
        d: i64 = args[1]
        if d >= n or d < -n:
            wrap_dim(args[1], len(a._shape))
        if args[2]:
            raise RuntimeError("softmax with half to float conversion is not supported on CPU")
        return same(a)


@final
class SoftmaxBackward(Rule):
    """(grad_output, output, dim, input_dtype)"""

    def infer(self, args: tuple[Any, ...]) -> Any:
        g = args[0]
        y = args[1]
        assert isinstance(g, TensorBase) and isinstance(y, TensorBase)
        if g._shape != y._shape:
            raise RuntimeError(
                "Expected tensor for argument #1 'grad' to have same size as tensor for argument #2 'output'; but "
                f"{list(g._shape)} does not equal {list(y._shape)} (while checking arguments for softmax_backward)")
        wrap_dim(args[2], len(y._shape))
        if args[3] is not y._dtype:
            raise RuntimeError(f"expected scalar type {y._dtype.scalar_name} but found {args[3].scalar_name}")
        return same(y)


# -- layer norm ---------------------------------------------------------------------------------------------------
def check_normalized(name: str, x: TensorBase, shape: tuple[int, ...], weight: Any, bias: Any) -> int:
    """Where the normalized dimensions begin."""
    n = len(shape)
    axis = len(x._shape) - n
    if n == 1 and axis >= 0 and x._shape[axis] == shape[0]:
        # Layers over the last dimension: nothing to slice.
        if (not isinstance(weight, TensorBase) or weight._shape == shape) and (
                not isinstance(bias, TensorBase) or bias._shape == shape):
            return axis
    if n == 0:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []")
    if isinstance(weight, TensorBase) and weight._shape != shape:
        raise RuntimeError(
            f"Expected weight to be of same shape as normalized_shape, but got weight of shape {list(weight._shape)} "
            f"and normalized_shape = {list(shape)}")
    if isinstance(bias, TensorBase) and bias._shape != shape:
        raise RuntimeError(
            f"Expected bias to be of same shape as normalized_shape, but got bias of shape {list(bias._shape)} and "
            f"normalized_shape = {list(shape)}")
    if axis < 0 or x._shape[axis:] != shape:
        wanted = ", ".join([str(s) for s in shape])
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*{', ' if name == 'layer_norm' else ''}"
            f"{wanted}], but got input of size{list(x._shape)}")
    return axis


def check_parameters(x: TensorBase, parameters: tuple[Any, ...]) -> None:
    """Parameters have the input's dtype; those of a two-byte input may all be float32 instead."""
    first: TensorBase | None = None
    for p in parameters:
        if isinstance(p, TensorBase):
            if first is None:
                first = p
            if first._dtype is not x._dtype:
                if p._dtype.name != "float32":
                    raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
            elif p._dtype is not first._dtype:
                raise RuntimeError(
                    f"expected scalar type {x._dtype.scalar_name} but found {p._dtype.scalar_name}")
    if first is not None and first._dtype is not x._dtype and x._dtype.itemsize != 2:
        raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")


@final
class LayerNorm(Rule):
    """(input, normalized_shape, weight, bias, eps) -> output, mean, rstd; `plain`: the output alone"""

    def __init__(self, plain: bool) -> None:
        self.plain: Final = plain

    def infer(self, args: tuple[Any, ...]) -> Any:
        x = args[0]
        assert isinstance(x, TensorBase)
        w = args[2]
        b = args[3]
        axis = check_normalized("layer_norm", x, args[1], w, b)
        dt = x._dtype
        stat = dt
        p = w if w is not None else b
        if isinstance(p, TensorBase):
            stat = p._dtype
            check_parameters(x, (w, b))
        if self.plain:
            return same(x)
        if axis == 1 and len(x._shape) == 2:
            one = Spec((x._shape[0], 1), (1, 1), stat, stat, x._device)
        else:
            shape = x._shape[:axis] + (1,) * len(args[1])
            one = Spec(shape, contiguous_strides(shape), stat, stat, x._device)
        return [same(x), one, one]


@final
class LayerNormBackward(Rule):
    """(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask); what is not wanted is empty."""

    def infer(self, args: tuple[Any, ...]) -> Any:
        x = args[1]
        w = args[5]
        b = args[6]
        mask = args[7]
        assert isinstance(x, TensorBase)
        if args[0]._shape != x._shape:
            raise RuntimeError(f"native_layer_norm_backward: expected grad_out of shape {list(x._shape)}, got "
                               f"{list(args[0]._shape)}")
        check_normalized("layer_norm", x, tuple([int(n) for n in args[2]]), w, b)
        row: i64 = 1
        for n in args[2]:
            row *= int(n)
        rows = numel(x) // max(row, 1)
        for i in (3, 4):
            if numel(args[i]) != rows:
                raise RuntimeError(f"native_layer_norm_backward: expected {'mean' if i == 3 else 'rstd'} of {rows} "
                                   f"elements, one for each row, got {list(args[i]._shape)}")
        nothing = Spec((0,), (1,), x._dtype, x._dtype, x._device)
        return [same(x) if mask[0] else nothing,
                same(w) if mask[1] and isinstance(w, TensorBase) else nothing,
                same(b) if mask[2] and isinstance(b, TensorBase) else nothing]


# -- losses -------------------------------------------------------------------------------------------------------
@final
class Nll(Rule):
    """(self, target, weight, reduction, ignore_index) -> output, total_weight"""

    def infer(self, args: tuple[Any, ...]) -> Any:
        x = args[0]
        t = args[1]
        w = args[2]
        assert isinstance(x, TensorBase) and isinstance(t, TensorBase)
        n = len(x._shape)
        if n == 0 or n > 2:
            raise RuntimeError("input tensor should be 1D or 2D")
        if len(t._shape) > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if n == 1:
            if len(t._shape) == 1 and t._shape[0] != 1:
                raise ValueError(
                    f"For 1D input, 1D target must have size 1, but got target size: {t._shape[0]}")
        elif len(t._shape) != 1 or t._shape[0] != x._shape[0]:
            raise RuntimeError(f"size mismatch (got input: {list(x._shape)} , target: {list(t._shape)})")
        check_classes(x._shape[n - 1], w)
        if t._dtype is not int64 and t._dtype is not uint8:
            raise RuntimeError(f"expected target dtype to be Long or Byte, but got {t._dtype.scalar_name}")
        if isinstance(w, TensorBase) and w._dtype is not x._dtype:
            raise RuntimeError(f"expected scalar type {x._dtype.scalar_name} but found {w._dtype.scalar_name}")
        scalar = Spec((), (), x._dtype, x._dtype, x._device)
        if args[3] == 0 and n == 2:
            return [Spec((x._shape[0],), (1,), x._dtype, x._dtype, x._device), scalar]
        return [scalar, scalar]


def check_classes(classes: int, w: Any) -> None:
    if isinstance(w, TensorBase) and (len(w._shape) != 1 or w._shape[0] != classes):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of "
            f"shape: {list(w._shape)}")


@final
class LikeSecond(Rule):
    """The backward of a loss has the layout of the loss's input, the second argument."""

    def infer(self, args: tuple[Any, ...]) -> Any:
        x = args[1]
        assert isinstance(x, TensorBase)
        return same(x)


@final
class NllBackward(Rule):
    """nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight)"""

    def infer(self, args: tuple[Any, ...]) -> Any:
        g, x, t, weight, total = args[0], args[1], args[2], args[3], args[6]
        assert isinstance(g, TensorBase) and isinstance(x, TensorBase)
        assert isinstance(t, TensorBase) and isinstance(total, TensorBase)
        rank = len(x._shape)
        if rank < 1 or rank > 2:
            raise RuntimeError("input tensor should be 1D or 2D")
        if len(t._shape) > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if rank == 2 and (len(t._shape) == 0 or t._shape[0] != x._shape[0]):
            raise RuntimeError(f"size mismatch (got input: {list(x._shape)}, target: {list(t._shape)})")
        if numel(total) != 1:
            raise RuntimeError(f"expected total_weight to be a  single element tensor, got: {list(total._shape)} "
                               f"({numel(total)} elements)")
        if isinstance(weight, TensorBase) and numel(weight) != x._shape[rank - 1]:
            raise RuntimeError("weight tensor should be defined either for all or no classes")
        if args[4] == 0 and rank == 2:
            if len(g._shape) != 1 or g._shape[0] != x._shape[0]:
                first = g._shape[0] if g._shape else 0
                raise RuntimeError(f"Expected a tensor of dimension 1 and tensor.size[0] == {x._shape[0]} but got: "
                                   f"dimension {len(g._shape)} and tensor.size[0] = {first}")
        elif len(g._shape) > 1 or numel(g) != 1:
            raise RuntimeError(f"Expected a single element grad_output tensor, but got: {list(g._shape)}")
        return same(x)


def check_batch(x: TensorBase, t: TensorBase) -> None:
    if len(x._shape) < 1:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if len(x._shape) != 1 and (len(t._shape) == 0 or x._shape[0] != t._shape[0]):
        raise ValueError(
            f"Expected input batch_size ({x._shape[0]}) to match target batch_size "
            f"({t._shape[0] if len(t._shape) > 0 else 0}).")


@final
class PairLoss(Rule):
    """A loss of two tensors; the argument at `reduction` says whether it is one number."""

    def __init__(self, reduction: int) -> None:
        self.reduction: Final = reduction
        self.pair: Final = Pointwise([0, 1], 0)

    def infer(self, args: tuple[Any, ...]) -> Any:
        s = self.pair.infer(args)
        assert isinstance(s, Spec)
        if args[self.reduction] == 0:
            return s
        return Spec((), (), s.dtype, s.compute, s.device)


@final
class PairLossBackward(Rule):
    """(grad_output, self, target, ...)"""

    def __init__(self) -> None:
        self.all: Final = Pointwise([1, 2, 0], 0)

    def infer(self, args: tuple[Any, ...]) -> Any:
        return self.all.infer(args)


# -- binary cross entropy -----------------------------------------------------------------------------------------
NO_PROBABILITY: Final = "all elements of input should be between 0 and 1"
_LOGITS: Final = PairLoss(2)


def entropy(self: TensorBase, target: TensorBase, weight: Any, reduction: int) -> Spec:
    if target._dtype is not self._dtype:
        raise RuntimeError(f"Found dtype {target._dtype.scalar_name} but expected {self._dtype.scalar_name}")
    if not self._dtype.is_floating_point:
        raise NotImplementedError(f"\"binary_cross_entropy\" not implemented for '{self._dtype.scalar_name}'")
    no_wider(self, weight)
    if reduction == 0:
        return Spec(self._shape, preserved_strides(self), self._dtype, self._dtype, self._device)
    return like(self, ())


def entropy_of_logits(self: TensorBase, target: TensorBase, weight: Any, pos_weight: Any, reduction: int) -> Any:
    no_wider(self, weight)
    no_wider(self, pos_weight)
    return _LOGITS.infer((self, target, reduction))


def no_wider(self: TensorBase, weight: Any) -> None:
    """A weight is spread over the losses, never the other way round."""
    shape = self._shape if weight is None else broadcast_shapes(self._shape, weight._shape)
    if shape != self._shape:
        raise RuntimeError(f"output with shape {list(self._shape)} doesn't match the broadcast shape {list(shape)}")


# -- embedding ----------------------------------------------------------------------------------------------------
@final
class Embedding(Rule):
    """(weight, indices, padding_idx, scale_grad_by_freq, sparse)"""

    def infer(self, args: tuple[Any, ...]) -> Any:
        w = args[0]
        i = args[1]
        assert isinstance(w, TensorBase) and isinstance(i, TensorBase)
        if len(w._shape) != 2:
            raise RuntimeError("'weight' must be 2-D")
        check_indices(i, "embedding", 1)
        if w._shape[0] == 0 and numel(i) > 0:
            raise RuntimeError("index_select(): self indexing axis dim should be positive")
        shape = i._shape + (w._shape[1],)
        return Spec(shape, contiguous_strides(shape), w._dtype, w._dtype, w._device)


def check_indices(i: TensorBase, name: str, position: int) -> None:
    if i._dtype is not int64 and i._dtype is not int32:
        raise RuntimeError(
            f"Expected tensor for argument #{position} 'indices' to have one of the following scalar types: Long, "
            f"Int; but got torch.{i._dtype.scalar_name}Tensor instead (while checking arguments for {name})")


@final
class EmbeddingBackward(Rule):
    """(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)"""

    def infer(self, args: tuple[Any, ...]) -> Any:
        g = args[0]
        i = args[1]
        assert isinstance(g, TensorBase) and isinstance(i, TensorBase)
        check_indices(i, "embedding_backward", 2)
        rows, columns = numel(i), size_at(g, -1)
        if rows * columns != numel(g):
            raise RuntimeError(f"shape '[{rows}, {columns}]' is invalid for input of size {numel(g)}")
        shape = (args[2], columns)
        check_sizes("zeros", shape)
        return Spec(shape, contiguous_strides(shape), g._dtype, g._dtype, g._device)
