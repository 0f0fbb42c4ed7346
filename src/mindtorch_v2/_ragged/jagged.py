"""Jagged layout: operators that leave the structure as it is, and those that go along one dimension of it.

Invariant: two nested tensors go together if their ragged sizes are the same number: the same offsets.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .._dispatch.op import Op
from .._ops.rules.base import wrap_dim
from .._tensor_base import TensorBase
from .construct import from_padded, padded_to
from .history import components, values_of, wrap
from .parts import Jagged, is_nested, parts, structure_of
from .table import JAGGED, first_nested, refusal, serves, shown


# -- dimensions ---------------------------------------------------------------------------------------------------
def inner(nested: Any, dim: int, name: str, ragged: bool = False, batch: bool = False, extra: int = 0) -> int:
    """The dimension of the values that a dimension is; the first of all has none, and the ragged one is refused."""
    d = wrap_dim(dim, len(nested._shape) + extra)
    if d == structure_of(nested).ragged and not ragged:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on ragged dim")
    if d == 0 and not batch:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    return structure_of(nested).ragged - 1 if d == 0 else d - 1


def mismatch(op: Op, args: tuple[Any, ...], a: Any, b: Any) -> RuntimeError:
    sizes = " and ".join([str(t.shape if not is_nested(a) or not is_nested(b) else tuple(t._shape)) for t in (a, b)])
    return RuntimeError(f"cannot call binary pointwise function {shown(op, args)} with inputs of shapes {sizes}")


def same_raggedness(a: Any, b: Any) -> bool:
    end = structure_of(a).ragged + 1
    return bool(a._shape[:end] == b._shape[:end])


# -- elementwise --------------------------------------------------------------------------------------------------
def _fitted(op: Op, args: tuple[Any, ...], nested: Any, t: Any) -> Any:
    """What of a dense operand meets the values: it broadcasts, or has a row for each of the many."""
    if t.dim() > nested.dim():
        raise NotImplementedError("NYI: broadcasting NT with T with larger dim")
    squeezed = t
    while squeezed.dim() > 0 and squeezed.shape[0] == 1:
        squeezed = squeezed.squeeze(0)
    if nested.dim() >= squeezed.dim() + 2:
        return squeezed
    pair = (nested, t) if args[0] is nested else (t, nested)
    structure = structure_of(nested)
    if t.dim() != nested.dim() or t.shape[0] != nested._shape[0] or structure.lengths is not None:
        raise mismatch(op, args, *pair)
    # The other dimensions broadcast with those of the values, in either direction.
    padded = list(t.shape)
    padded[structure.ragged] = structure.extreme("max_seqlen")
    return from_padded(t.expand(padded), structure, parts(nested).values.shape[structure.ragged - 1])


def pointwise(op: Op, *args: Any) -> Any:
    """An elementwise operator: that of the values, in the structure of the first nested tensor."""
    nested = first_nested(args)
    given: list[Any] = []
    for a in args:
        if not isinstance(a, TensorBase):
            given.append(a)
        elif is_nested(a):
            if not same_raggedness(nested, a):
                raise mismatch(op, args, nested, a)
            given.append(values_of(a))
        else:
            given.append(_fitted(op, args, nested, a))
    return wrapped(op.call(tuple(given)), structure_of(nested))


def wrapped(found: Any, structure: Any) -> Any:
    if isinstance(found, (tuple, list)):
        return (
            type(found)(*[wrap(t, structure) for t in found])
            if hasattr(found, "_fields")
            else tuple([wrap(t, structure) for t in found])
        )
    return wrap(found, structure)


@serves(JAGGED, "detach")
def _detach(op: Op, self: Any) -> Any:
    from .parts import made

    return made(parts(self).values.detach(), structure_of(self))


@serves(JAGGED, "alpha_dropout", "feature_dropout", "feature_alpha_dropout")
def _without_noise(op: Op, self: Any, p: float, train: bool) -> Any:
    """All or nothing: noise by element or by channel has no kernel."""
    if train and 0 < p < 1:
        if op.name == "alpha_dropout":
            raise refusal("bernoulli_.float", self)
        raise RuntimeError("new_empty() not supported for NJT with shape != ()")
    return self * 0.0 if train and p == 1 else self


@serves(JAGGED, "one_hot")
def _one_hot(op: Op, self: Any, classes: int) -> Any:
    return wrap(op.call((values_of(self), classes)), structure_of(self))


@serves(JAGGED, "linalg_matrix_power")
def _matrix_power(op: Op, self: Any, n: int) -> Any:
    structure = structure_of(self)
    if structure.ragged >= self.dim() - 2:
        rows, columns = self._shape[-2:]
        raise RuntimeError(
            f"linalg.matrix_power: A must be batches of square matrices, but they are {rows} by {columns} matrices"
        )
    return wrap(op.call((values_of(self), n)), structure)


@serves(JAGGED, "sum_to_size")
def _sum_to_size(op: Op, self: Any, size: Any) -> Any:
    """A dense sum: the ragged dimension must be among those that are summed over."""
    shape, lead = self._shape, self.dim() - len(size)
    kept = [d for d in range(max(lead, 0), len(shape)) if size[d - lead] == shape[d]]
    summed = [d for d in range(len(shape)) if d not in kept]
    if lead < 0 or any(d >= lead and size[d - lead] != 1 for d in summed) or structure_of(self).ragged in kept:
        raise RuntimeError(
            "NestedTensor does not support directly calling torch.ops.aten.size; please use `nested_tensor.size()` "
            "instead."
        )
    if 0 in summed:
        values = values_of(self)
        return values.sum([d - 1 for d in summed if d > 0], keepdim=True).reshape(tuple(size))
    return self.sum(summed, keepdim=True).reshape(tuple(size))


@serves(JAGGED, "_softmax_backward_data")
def _softmax_back(op: Op, grad: Any, output: Any, dim: int, dtype: Any) -> Any:
    if not (is_nested(grad) and is_nested(output)) or wrap_dim(dim, grad.dim()) in (0, structure_of(grad).ragged):
        raise refusal("_softmax_backward_data.default", grad if is_nested(grad) else output)
    d = wrap_dim(dim, grad.dim()) - 1
    return wrap(op.call((values_of(grad), values_of(output), d, dtype)), structure_of(grad))


@serves(JAGGED, "native_dropout", "dropout", "bernoulli")
def _on_values(op: Op, self: Any, *rest: Any) -> Any:
    """An operator of the values that knows nothing of the structure."""
    return wrapped(op.call((values_of(self), *rest)), structure_of(self))


@serves(JAGGED, "clone")
def _clone(op: Op, self: Any, memory_format: Any) -> Any:
    structure = structure_of(self)
    if structure.lengths is not None and memory_format is torch.contiguous_format:
        from .construct import jagged_from_list

        if structure.ragged != 1:
            raise AssertionError("NJT with ragged_idx != 1 not supported for contiguous clone")
        return jagged_from_list(components(self))[0]
    return wrap(op.call((values_of(self), memory_format)), structure)


@serves(JAGGED, "to_copy")
def _to_copy(op: Op, self: Any, dtype: Any, device: Any, memory_format: Any, non_blocking: bool) -> Any:
    values = op.call((values_of(self), dtype, device, memory_format, non_blocking))
    return wrap(values, structure_of(self).moved(values.device))


@serves(
    JAGGED, "zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "randint_like",
    "bernoulli_like",
)  # fmt: skip
def _like(op: Op, self: Any, *rest: Any) -> Any:
    place = op.schema.index("layout") - 1
    given = [None if i == place else a for i, a in enumerate(rest)]
    values = op.call((parts(self).values, *given))
    return wrap(values, structure_of(self).moved(values.device))


@serves(JAGGED, "new_empty", "new_zeros", "new_ones", "new_full")
def _new(op: Op, self: Any, size: Any, *rest: Any) -> Any:
    if len(size):
        raise RuntimeError("new_empty() not supported for NJT with shape != ()")
    return op.call((parts(self).values, size, *rest))


@serves(JAGGED, "copy_")
def _copy(op: Op, self: Any, src: Any, non_blocking: bool) -> Any:
    from .._autograd.inplace import check_inplace
    from .._tensor_base import bump
    from .history import adopt, recorded

    if not is_nested(self) or not is_nested(src):
        raise ValueError("NestedTensor copy_default(self: jt_all, src: jt_all, non_blocking: any?): expected "
                         f"{'src' if is_nested(self) else 'self'} to be a jagged layout NestedTensor")  # fmt: skip
    if self._shape != src._shape:
        mine, theirs = components(self.detach()), components(src)
        if [t.shape for t in mine] != [t.shape for t in theirs]:
            raise RuntimeError(
                f"copy_(): expected compatible input and src shapes, but got: {self.shape} and {src.shape}"
            )
    if recorded(self) or recorded(src):
        check_inplace(self)
        result = wrap(values_of(src).to(self.dtype), structure_of(self))
        with torch.no_grad():
            parts(self).values.copy_(parts(src).values)
        return adopt(self, result)
    parts(self).values.copy_(parts(src).values)
    bump(self)
    return self


@serves(JAGGED, "where")
def _where(op: Op, condition: Any, self: Any, other: Any) -> Any:
    if not is_nested(condition):
        raise ValueError(
            "NestedTensor where_self(condition: jt_all, self: any, other: any): expected condition to be a jagged "
            "layout NestedTensor"
        )
    for t in (self, other):
        if isinstance(t, TensorBase) and not is_nested(t) and t.dim() >= condition.dim():
            raise ValueError(
                "broadcast_tensors(): broadcasting nested tensors with dense tensors of equal or higher dim is not "
                "currently supported"
            )
    return pointwise(op, condition, self, other)


# -- along a dimension --------------------------------------------------------------------------------------------
@serves(JAGGED, "_softmax", "_log_softmax")
def _softmax(op: Op, self: Any, dim: int, half_to_float: bool) -> Any:
    name, structure = op.title()[1:], structure_of(self)
    d = wrap_dim(dim, self.dim())
    if d == 0:
        raise RuntimeError(f"{name}(): not supported when reducing across the batch dimension for NestedTensor")
    if d != structure.ragged:
        return wrap(op.call((values_of(self), d - 1, half_to_float)), structure)
    if name == "log_softmax":
        raise RuntimeError("log_softmax(): not supported when reducing along the ragged dimension for NestedTensor")
    if structure.ragged > 1:
        raise RuntimeError(
            "softmax(): not supported when reducing along the ragged dimension for ragged_idx > 1 for NestedTensor"
        )
    if structure.lengths is not None:
        raise RuntimeError(
            "softmax(): not supported where lengths is not None if reducing across the ragged dimension for "
            "NestedTensor"
        )
    dense = op.call((padded_to(self, float("-inf")), structure.ragged, half_to_float))
    return wrap(from_padded(dense, structure, parts(self).values.shape[0]), structure)


@serves(JAGGED, "layer_norm")
def _layer_norm(op: Op, self: Any, shape: Any, weight: Any, bias: Any, eps: float, cudnn: bool) -> Any:
    structure = structure_of(self)
    if self.dim() <= 2:
        raise RuntimeError("layer_norm(): not supported for NestedTensor objects with 2 or fewer dimensions")
    if len(shape) == self.dim():
        raise RuntimeError("layer_norm(): not supported when normalizing over the batch dimension for NestedTensor")
    if structure.size not in tuple(shape):
        return wrap(op.call((values_of(self), shape, weight, bias, eps, cudnn)), structure)
    if structure.lengths is not None:
        raise RuntimeError(
            "layer_norm(): not supported where lengths is not None if operating on the ragged dimension for "
            "NestedTensor"
        )
    # Over all of each of the many.
    each = [op.call((t, tuple(t.shape), None, None, eps, cudnn)) for t in components(self)]
    found = torch.cat(each, structure.ragged - 1)
    found = found if weight is None else found * weight
    return wrap(found if bias is None else found + bias, structure)


@serves(JAGGED, "rms_norm")
def _rms_norm(op: Op, self: Any, shape: Any, weight: Any, eps: Any) -> Any:
    if structure_of(self).size in tuple(shape):
        raise RuntimeError("rms_norm(): not supported when normalizing over the ragged dimension for NestedTensor")
    return wrap(op.call((values_of(self), shape, weight, eps)), structure_of(self))


@serves(JAGGED, "embedding")
def _embedding(op: Op, weight: Any, indices: Any, *rest: Any) -> Any:
    if is_nested(weight):
        raise ValueError("NestedTensor embedding_default: expected weight to be a tensor")
    return wrap(op.call((weight, values_of(indices), *rest)), structure_of(indices))


@serves(JAGGED, "is_same_size")
def _is_same_size(op: Op, self: Any, other: Any) -> bool:
    return bool(self._shape == other._shape)


@serves(JAGGED, "equal")
def _equal(op: Op, self: Any, other: Any) -> bool:
    if not (is_nested(self) and is_nested(other)) or self._shape != other._shape:
        return False
    return bool(torch.equal(parts(self).values, parts(other).values))


@serves(JAGGED, "masked_select")
def _masked_select(op: Op, self: Any, mask: Any) -> Any:
    from .views import packed_only

    packed_only(self, "masked_select_default(self: jt, mask: any)")
    if self.dim() > 2:
        raise RuntimeError("masked_select only support 2-D selections currently")
    if not is_nested(mask) or self._shape != mask._shape:
        raise RuntimeError(f"Mask with shape {mask.shape} is not compatible with input's shape {self.shape}")
    kept = parts(mask).values
    counts = torch.nn.functional.pad(kept.cumsum(0), (1, 0))
    return wrap(values_of(self).masked_select(kept), Jagged(counts[structure_of(self).offsets]))
