"""Strided layout: operators of each of the many by itself.

Invariant: an operator that gives views of the many gives a nested tensor over the same buffer; any other a packed one.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .._dispatch.op import Op
from .._ops.rules.base import wrap_dim
from .._tensor_base import TensorBase
from .construct import is_packed, strided_from_list
from .history import components, values_of, wrap
from .parts import Strided, is_nested, made, parts, structure_of
from .table import STRIDED, first_nested, refusal, serves, sized


def inner(nested: Any, dim: int, name: str, extra: int = 0) -> int:
    """The dimension of each that a dimension is; the first of all has none."""
    d = wrap_dim(dim, len(nested._shape) + extra)
    if d == 0:
        raise RuntimeError(f"{name}(): not supported for nested tensors of layout torch.strided on dim 0")
    return d - 1


def viewed(self: Any, views: list[Any]) -> Any:
    """A nested tensor over the same buffer, by views of its parts."""
    start = parts(self).values.storage_offset()
    ndim = views[0].dim() if views else structure_of(self).ndim
    structure = Strided(
        [tuple(v.shape) for v in views],
        [tuple(v.stride()) for v in views],
        [v.storage_offset() - start for v in views],
        ndim,
    )
    return wrap(values_of(self), structure)


def listed(results: list[Any], like: Any) -> Any:
    """A packed nested tensor of results; of none, one of the dtype of the operand."""
    return strided_from_list(results) if results else strided_from_list([], like.dtype, like.device)


def plain(self: Any) -> list[Any]:
    return structure_of(self).components(parts(self).values) if is_nested(self) else [self]


# -- elementwise --------------------------------------------------------------------------------------------------
def _operands(op: Op, args: tuple[Any, ...], nested: Any) -> list[list[Any]]:
    """For each of the many the arguments of the operator."""
    count = len(structure_of(nested).sizes)
    columns: list[list[Any]] = []
    for a in args:
        if not isinstance(a, TensorBase):
            columns.append([a] * count)
        elif is_nested(a):
            if structure_of(a).sizes != structure_of(nested).sizes:
                raise RuntimeError(f"{op.title()} does not support broadcasting when given a NestedTensor")
            columns.append(components(a))
        elif a.dim() == 0:
            columns.append([a] * count)
        else:
            words = ("nested", "non-nested") if is_nested(args[0]) else ("non-nested", "nested")
            raise RuntimeError(
                f"Expected both self and other to be nested, but got a {words[0]} self and {words[1]} other"
            )
    return [list(row) for row in zip(*columns)] if count else []


def pointwise(op: Op, *args: Any) -> Any:
    """An elementwise operator: that of the buffers where they are laid out alike, else of each."""
    if op.name == "eq" and is_nested(args[1]):
        raise RuntimeError("eq does not support nested tensor as other value.")
    nested = first_nested(args)
    structure = structure_of(nested)
    alike = [a for a in args if isinstance(a, TensorBase)]
    if all(_lies_as(a, structure) for a in alike) and is_packed(structure):
        found = op.call(tuple([values_of(a) if is_nested(a) else a for a in args]))
        many = isinstance(found, (tuple, list))
        return tuple([wrap(t, structure) for t in found]) if many else wrap(found, structure)
    if len(alike) == 1 and not is_packed(structure) and all(not isinstance(a, (int, float)) for a in args):
        raise RuntimeError("NestedTensor must be contiguous to get buffer.")
    results = [op.call(tuple(row)) for row in _operands(op, args, nested)]
    if results and isinstance(results[0], (tuple, list)):
        return tuple([strided_from_list(list(column)) for column in zip(*results)])
    return listed(results, nested)


def _lies_as(a: Any, structure: Strided) -> bool:
    if not is_nested(a):
        return bool(a.dim() == 0)
    own = structure_of(a)
    return own is structure or (own.sizes, own.each_stride, own.offsets) == (
        structure.sizes, structure.each_stride, structure.offsets,
    )  # fmt: skip


@serves(STRIDED, "detach")
def _detach(op: Op, self: Any) -> Any:
    return made(parts(self).values.detach(), structure_of(self))


@serves(STRIDED, "alias")
def _alias(op: Op, self: Any) -> Any:
    return wrap(op.call((values_of(self),)), structure_of(self))


@serves(STRIDED, "clone", "to_copy")
def _copied(op: Op, self: Any, *rest: Any) -> Any:
    place = op.schema.index("memory_format") - 1
    if rest[place] not in (None, torch.contiguous_format, torch.preserve_format):
        name = {"channels_last": "ChannelsLast", "channels_last_3d": "ChannelsLast3d"}.get(str(rest[place])[6:], "")
        raise RuntimeError(
            "Nested tensor clone supports Preserve and Contiguous memory formats, called clone with memory format: "
            f"{name}"
        )
    if rest[place] is torch.contiguous_format and not is_packed(structure_of(self)):
        return strided_from_list([op.call((t, *rest)) for t in components(self)])
    given = [None if i == place else a for i, a in enumerate(rest)]
    return wrap(op.call((values_of(self), *given)), structure_of(self))


@serves(STRIDED, "zeros_like", "ones_like", "empty_like", "randn_like")
def _like(op: Op, self: Any, *rest: Any) -> Any:
    structure = structure_of(self)
    if rest[-1] not in (None, torch.contiguous_format, torch.preserve_format):
        raise RuntimeError(f"{op.title()}(): nested tensors have no memory format {rest[-1]}")
    if not is_packed(structure) and rest[-1] is torch.contiguous_format:
        from .construct import packed

        structure = packed(structure.sizes, structure.ndim)
    given = (*rest[:-1], None)
    return wrap(op.call((parts(self).values, *given)), structure)


@serves(STRIDED, "alpha_dropout", "feature_dropout", "feature_alpha_dropout")
def _without_noise(op: Op, self: Any, p: float, train: bool) -> Any:
    """All or nothing: noise by element or by channel has no kernel."""
    if train and 0 < p < 1:
        if op.name == "alpha_dropout":
            raise refusal("bernoulli_.float", self)
        raise sized(op.title())
    return self * 0.0 if train and p == 1 else self


@serves(STRIDED, "dropout", "native_dropout")
def _on_buffer(op: Op, self: Any, *rest: Any) -> Any:
    found = op.call((values_of(self), *rest))
    many = isinstance(found, (tuple, list))
    return tuple([wrap(t, structure_of(self)) for t in found]) if many else wrap(found, structure_of(self))


@serves(STRIDED, "copy_")
def _copy(op: Op, self: Any, src: Any, non_blocking: bool) -> Any:
    from .._tensor_base import bump

    if not (is_nested(self) and is_nested(src)):
        raise RuntimeError("get_nested_tensor_impl requires a NestedTensor.")
    if structure_of(self).sizes != structure_of(src).sizes:
        raise RuntimeError("copy_ only supports tensors that are the same size for Nested implementations")
    for mine, theirs in zip(plain(self.detach()), plain(src.detach())):
        mine.copy_(theirs)
    bump(self)
    return self


# -- each by itself -----------------------------------------------------------------------------------------------
@serves(STRIDED, "linear", "embedding", "layer_norm")
def _each(op: Op, *args: Any) -> Any:
    at = next(i for i, a in enumerate(args) if is_nested(a))
    if op.name == "embedding" and at == 0:
        raise RuntimeError("get_nested_tensor_impl requires a NestedTensor.")
    if op.name == "embedding" and args[1].dim() > 2:
        raise RuntimeError(
            "Expected indices.dim() < 3 to be true, but got false.  (Could this error message be improved?  If so, "
            "please report an enhancement request to PyTorch.)"
        )
    if op.name == "layer_norm" and at > 0:
        raise RuntimeError(f"NestedTensor {'weight' if at == 2 else 'bias'} not supported for layer_norm")
    if op.name == "linear":
        if args[0].dim() != 3 or args[1].dim() != 2:
            raise RuntimeError(
                "Linear requires nested_tensor.dim == 3 and dense_matrix.dim == 2. Nested tensor dim: "
                f"{args[0].dim()}. Dense tensor dim: {args[1].dim()}"
            )
        if not is_packed(structure_of(args[0])):
            raise RuntimeError("for now linear only supports contiguous nested tensor")
    if op.name == "layer_norm" and (args[2] is None or args[3] is None):
        raise ValueError("NestedTensor layer_norm requires weight and bias")
    if any(is_nested(a) for a in args[at + 1 :]):
        raise RuntimeError(f"{op.title()}(): only the input may be a nested tensor")
    many = components(args[at])
    return listed([op.call((*args[:at], t, *args[at + 1 :])) for t in many], args[at])


@serves(STRIDED, "_softmax")
def _along(op: Op, self: Any, dim: int, *rest: Any) -> Any:
    if not structure_of(self).sizes:
        return self.clone()
    d = wrap_dim(dim, self.dim())
    if d == 0:
        raise RuntimeError("Cannot apply softmax across nested dimension 0")
    return listed([op.call((t, d - 1, *rest)) for t in components(self)], self)


@serves(STRIDED, "_softmax_backward_data")
def _along_back(op: Op, grad: Any, output: Any, dim: int, dtype: Any) -> Any:
    if not (is_nested(grad) and is_nested(output)):
        raise RuntimeError("_softmax_backward_data(): gradient and output must both be nested tensors")
    pairs = zip(components(grad), components(output))
    return listed([op.call((g, out, wrap_dim(dim, grad.dim()) - 1, dtype)) for g, out in pairs], grad)


@serves(STRIDED, "sum")
def _sum(op: Op, self: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    if dim is None or not dim:
        raise refusal("sum", self)
    dims = [wrap_dim(d, self.dim()) for d in dim]
    if dims != [self.dim() - 1]:
        raise RuntimeError(
            f"NestedTensor can only be reduced across the last dimension for now got dimension {dims[0]} instead."
        )
    if not keepdim:
        raise RuntimeError("NestedTensor always requires keepdim=True for now.")
    if dtype is not None:
        raise RuntimeError("NestedTensor does not support dtype argument for now.")
    return strided_from_list([op.call((t, (d - 1,), True, None)) for t in components(self) for d in dims])


@serves(STRIDED, "matmul", "bmm")
def _matmul(op: Op, self: Any, other: Any) -> Any:
    name = op.title()
    for t, role in ((self, "first"), (other, "second")):
        if t.dim() > 3 and name == "bmm":
            raise RuntimeError(f"{'batch1' if role == 'first' else 'batch2'} must be a 3D tensor")
        if name == "matmul" and not is_nested(t) and not (role == "second" and t.dim() == 2 and self.dim() > 3):
            words = ("non-nested", "nested") if role == "first" else ("nested", "non-nested")
            raise RuntimeError(f"Expected both to be nested, but got a {words[0]} self and {words[1]} other")
        if t.dim() < 3 and (name == "bmm" or is_nested(t)):
            what = "batch1" if role == "first" else "batch2"
            raise RuntimeError(
                f"{what} must be a 3D tensor" if name == "bmm" else
                f"{name}: For nested tensors, only inputs with >= 3 dims are currently supported. {role} input has "
                f"rank: {t.dim()}"
            )  # fmt: skip
    nested = self if is_nested(self) else other
    count = len(structure_of(nested).sizes)
    left, right = _factors(name, self, count), _factors(name, other, count)
    results = []
    for i, (a, b) in enumerate(zip(left, right)):
        if b.dim() > 1 and a.shape[-1] != b.shape[-2]:
            raise RuntimeError(
                f"{i}-th nested matrices in batch cannot be multiplied ({a.shape[-2]}x{a.shape[-1]} and "
                f"{b.shape[-2]}x{b.shape[-1]})" if name == "bmm" else
                f"{name}(): cannot multiply the {i}-th matrices of sizes {list(a.shape)} and {list(b.shape)}"
            )  # fmt: skip
        results.append(torch.matmul(a, b))
    return listed(results, nested)


def _factors(name: str, t: Any, count: int) -> list[Any]:
    """One factor for each of the many."""
    if is_nested(t):
        many = components(t)
        if len(many) != count:
            raise RuntimeError(
                f"Expected size for the 1st dimension of batch2 tensor to be: {count} but got: {len(many)}."
                if name == "bmm" else
                f"{name}(): nested tensors of {count} and {len(many)} parts cannot be multiplied"
            )  # fmt: skip
        return many
    if t.dim() <= 2:
        return [t] * count
    if t.shape[0] not in (1, count):
        raise RuntimeError(
            f"Expected size for the 1st dimension of batch2 tensor to be: {count} but got: {t.shape[0]}."
        )
    return [t[i if t.shape[0] > 1 else 0] for i in range(count)]


# -- views --------------------------------------------------------------------------------------------------------
@serves(STRIDED, "unbind")
def _unbind(op: Op, self: Any, dim: int) -> Any:
    if wrap_dim(dim, self.dim()) != 0:
        raise RuntimeError(
            f"NestedTensor can only be unbound along dimension 0 got dimension {wrap_dim(dim, self.dim())} instead."
        )
    return tuple(components(self))


@serves(STRIDED, "transpose")
def _transpose(op: Op, self: Any, dim0: int, dim1: int) -> Any:
    a, b = wrap_dim(dim0, self.dim()), wrap_dim(dim1, self.dim())
    if a == b:
        return self
    if 0 in (a, b):
        raise RuntimeError("Nested tensor dimension 0 cannot be transposed")
    return viewed(self, [t.transpose(a - 1, b - 1) for t in plain(self)])


@serves(STRIDED, "unsqueeze")
def _unsqueeze(op: Op, self: Any, dim: int) -> Any:
    d = wrap_dim(dim, self.dim() + 1)
    if d == 0:
        raise RuntimeError(
            "unsqueeze(): For nested tensors, unsqueezing dimension 0 is not supported at the moment if you need this "
            "feature, please open an issue on github describing your use case."
        )
    return viewed(self, [t.unsqueeze(d - 1) for t in plain(self)])


@serves(STRIDED, "squeeze.dim")
def _squeeze(op: Op, self: Any, dim: int) -> Any:
    d = wrap_dim(dim, self.dim())
    if d == 0:
        raise RuntimeError(
            "squeeze(): For nested tensors, squeezing dimension 0 is not supported at the moment if you need this "
            "feature, please open an issue on github describing your use case."
        )
    if self.dim() == 2:
        raise RuntimeError(
            "squeeze(): For nested tensors, squeezing a nested tensor of singleton tensors is not supported at the "
            "moment, if you need this feature please open an issue on github describing your use case."
        )
    return viewed(self, [t.squeeze(d - 1) for t in plain(self)]) if self._shape[d] == 1 else self


@serves(STRIDED, "squeeze.dims")
def _squeeze_some(op: Op, self: Any, dims: Any) -> Any:
    for d in sorted([wrap_dim(d, self.dim()) for d in dims], reverse=True):
        self = _squeeze(op, self, d)
    return self


@serves(STRIDED, "squeeze")
def _squeeze_all(op: Op, self: Any) -> Any:
    raise RuntimeError(
        "squeeze(): For nested tensors, squeeze without the dim argument is not supported at the moment, however you "
        "can use squeeze(Tensor self, int dim) instead if you need this feature please open an issue on github "
        "describing your use case."
    )


@serves(STRIDED, "select")
def _select(op: Op, self: Any, dim: int, index: int) -> Any:
    d, count = wrap_dim(dim, self.dim()), len(structure_of(self).sizes)
    if d == 0:
        if not -count <= index < count:
            raise IndexError(f"index {index} is out of bounds for dimension 0 with size {count}")
        return components(self)[index]
    many = plain(self)
    for i, t in enumerate(many):
        if not 0 <= index < t._shape[d - 1]:  # as PyTorch, which does not count from the end here
            raise IndexError(
                f"index {index} is out of bounds for dimension {d - 1} of the {i}th constituent tensor with size "
                f"{t._shape[d - 1]}"
            )
    return viewed(self, [t.select(d - 1, index) for t in many])


@serves(STRIDED, "narrow")
def _narrow(op: Op, self: Any, dim: int, start: int, length: int) -> Any:
    d, count = wrap_dim(dim, self.dim()), len(structure_of(self).sizes)
    if d != 0:
        raise RuntimeError(f"narrow(): only dim=0 supported for nested tensors, but got: {d}")
    if start < 0 or length < 0 or start + length > count:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({count}).")
    return viewed(self, plain(self)[start : start + length])


@serves(STRIDED, "chunk", "split_with_sizes", "split")
def _pieces(op: Op, self: Any, how: Any, dim: int) -> Any:
    if wrap_dim(dim, self.dim()) != self.dim() - 1:
        name = "Chunk" if op.name == "chunk" else op.title()
        raise RuntimeError(f"{name} for nested tensors is currently only supported for the last dimension.")
    if not is_packed(structure_of(self)):
        name = "chunk" if op.name == "chunk" else op.title()
        raise RuntimeError(f"{name} expects `self` to be contiguous.")
    last = self._shape[-1]
    if op.name == "chunk" and (how <= 0 or last % how):
        raise RuntimeError(
            "Chunk for nested tensors is only supported for nested tensors with trailing dimension divisible by "
            f"chunks, got: {last} % {how} != 0"
        )
    if op.name == "split_with_sizes" and sum(how) != last:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {last} (input tensor's size at dimension "
            f"{self.dim() - 1}), but got split_sizes={list(how)}"
        )
    pieces = [op.call((t, how, -1)) for t in plain(self)]
    return tuple([viewed(self, list(column)) for column in zip(*pieces)])


@serves(STRIDED, "view", "reshape")
def _view(op: Op, self: Any, size: Any) -> Any:
    name = op.title()
    if not structure_of(self).sizes:
        raise RuntimeError("empty nested tensor cannot be reshaped")
    count = len(structure_of(self).sizes)
    if not size:
        raise RuntimeError("shape '[]' is invalid for a nested tensor")
    if size[0] != count:
        raise RuntimeError(f"{name}: For now nested {name} cannot change or infer the implicit batch dimension")
    if len(size) < self.dim():
        raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {plain(self)[0].numel()}")
    many = plain(self) if name == "view" else components(self)
    found = []
    for t in many:
        # -1 beyond the first means: as it is.
        own = [t.shape[d] if n == -1 and d < t.dim() else n for d, n in enumerate(size[1:])]
        found.append(op.call((t, tuple(own))))
    return viewed(self, found) if name == "view" else listed(found, self)


@serves(STRIDED, "reshape_as")
def _reshape_as(op: Op, self: Any, other: Any) -> Any:
    if not (is_nested(self) and is_nested(other)):
        raise sized("reshape_as")
    many, like = components(self), structure_of(other).sizes
    if len(many) != len(like):
        raise RuntimeError(
            f"reshape_as(): nested tensors of {len(many)} and {len(like)} parts cannot have the same shape"
        )
    return listed([t.reshape(size) for t, size in zip(many, like)], self)


@serves(STRIDED, "view_as")
def _view_as(op: Op, self: Any, other: Any) -> Any:
    raise sized("view_as")


@serves(STRIDED, "where")
def _where(op: Op, condition: Any, self: Any, other: Any) -> Any:
    if not is_nested(condition):
        raise RuntimeError("condition must be nested")
    if not is_nested(other):
        raise RuntimeError("other must be nested")
    if isinstance(self, TensorBase) and is_nested(self):
        raise RuntimeError("self must not be nested")
    if structure_of(condition).sizes != structure_of(other).sizes:
        raise RuntimeError("condition and other must have the same shape")
    pairs = zip(components(condition), components(other))
    return listed([op.call((c, self, o)) for c, o in pairs], other)


@serves(STRIDED, "linalg_matrix_power")
def _matrix_power(op: Op, self: Any, n: int) -> Any:
    if n < 1:
        raise RuntimeError("get_nested_tensor_impl requires a NestedTensor.")
    return listed([op.call((t, n)) for t in components(self)], self)


@serves(STRIDED, "cat")
def _cat(op: Op, tensors: Any, dim: int) -> Any:
    if not all(is_nested(t) for t in tensors):
        raise RuntimeError("Expected each tensor in given list to be nested.")
    if dim == 0:
        return listed([c for t in tensors for c in components(t)], tensors[0])
    d = inner(tensors[0], dim, "cat")
    return strided_from_list([op.call((row, d)) for row in zip(*[components(t) for t in tensors])])


@serves(STRIDED, "is_same_size")
def _is_same_size(op: Op, self: Any, other: Any) -> bool:
    if not (is_nested(self) and is_nested(other)):
        words = ["Self is nested." if is_nested(self) else "Self is not nested."]
        words.append("While Other is nested." if is_nested(other) else "While Other is not nested.")
        raise RuntimeError(f"Expected both self and other to be nested tensors. {' '.join(words)}")
    return bool(structure_of(self).sizes == structure_of(other).sizes)
