"""The classes of nested tensors: what is asked of one without calling an operator.

Invariant: an instance is made by `parts.made`, or by calling `NestedTensor` with its parts; both share the values.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .._layout import contiguous_format, preserve_format
from .._ops.rules.questions import dimension
from .._overrides import _disabled_torch_function_impl
from .._tensor import Tensor
from .history import components, values_of
from .parts import Jagged, made, parts

_NO_SIZES = "Internal error: NestedTensorImpl doesn't support {0}. Please file an issue."


class _Nested(Tensor):
    """What both layouts answer alike."""

    __torch_function__: Any = _disabled_torch_function_impl

    # The tensor that a view was made of; PyTorch's views of nested tensors say so.
    _viewed: Any = None

    def _is_view(self) -> bool:
        return self._viewed is not None

    def _viewed_base(self) -> Any:
        return self._viewed

    _base: Any = property(_viewed_base)

    def _view_func(self, new_base: Any, *visitors: Any) -> Any:
        """The same view of another base."""
        from .history import as_view, wrap

        v = parts(self).values
        values = new_base if new_base.shape == v.shape else new_base.as_strided(v.shape, v.stride(), v.storage_offset())
        return as_view(wrap(values, parts(self).structure), new_base)

    def _without_tangents(self) -> Any:
        from ..autograd.forward_ad import primal_of

        return made(primal_of(parts(self).values), parts(self).structure)

    def dim(self) -> int:
        return len(self._shape)

    ndimension = dim

    def unbind(self, dim: int = 0) -> Any:
        return torch.unbind(self, dim)

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Any:
        """A dense tensor of the many, with `padding` behind each."""
        from .construct import padded

        return padded(self, padding, output_size)

    def __len__(self) -> int:
        return int(self._shape[0])

    def __iter__(self) -> Any:
        return iter(components(self))

    def __bool__(self) -> bool:
        count = values_of(self).numel()
        if count != 1:
            how = "no values" if count == 0 else "more than one value"
            raise RuntimeError(f"Boolean value of Tensor with {how} is ambiguous")
        return bool(self.item())

    def item(self) -> Any:
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return values_of(self).item()

    @property
    def nbytes(self) -> int:
        return int(self.numel() * self._dtype.itemsize)

    def tolist(self) -> Any:
        raise RuntimeError(f".tolist() is not supported for tensor subclasses, got {type(self).__name__}")

    def numpy(self, *, force: bool = False) -> Any:
        raise RuntimeError("Can't call numpy() on a nested tensor; call unbind() or to_padded_tensor() first.")

    def is_pinned(self, device: Any = None) -> bool:
        found: bool = parts(self).values.is_pinned()
        return found

    def pin_memory(self, device: Any = None) -> Any:
        return made(parts(self).values.pin_memory(), parts(self).structure)

    def apply_(self, callable: Any) -> Any:
        parts(self).values.apply_(callable)
        return self

    def untyped_storage(self) -> Any:
        return parts(self).values.untyped_storage()

    def data_ptr(self) -> int:
        return int(parts(self).values.data_ptr())

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """The same with values of another dtype or on another device."""
        return _converted(self, args, kwargs)


def _converted(self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    layout = kwargs.pop("layout", None)
    if layout is not None and layout is not parts(self).layout:
        raise RuntimeError("to(): Converting between nested tensor layouts is not supported")
    if args and isinstance(args[0], _Nested):
        args = (args[0].device, args[0].dtype, *args[1:])
    values = values_of(self)
    found = values.to(*args, **kwargs)
    if found is values:
        return self
    from .history import wrap

    return wrap(found, parts(self).structure.moved(found.device))


class StridedNestedTensor(_Nested):
    """A nested tensor of the strided layout. In PyTorch its class is that of all tensors."""

    __module__ = "mindtorch_v2"
    __qualname__ = "Tensor"

    def _no_shape(self) -> Any:
        raise RuntimeError(_NO_SIZES.format("sizes"))

    shape: Any = property(_no_shape)

    def size(self, dim: int | None = None) -> Any:
        if dim is None:
            raise RuntimeError(_NO_SIZES.format("sizes"))
        d = dimension(self, "size", dim)
        n = self._shape[d]
        if isinstance(n, torch.SymInt):
            raise RuntimeError(f"Given dimension {d} is irregular and does not have a size.")
        return n

    def stride(self, dim: int | None = None) -> Any:
        raise RuntimeError(_NO_SIZES.format("strides"))

    def numel(self) -> int:
        total = 0
        for size in parts(self).structure.sizes:
            total += torch.Size(size).numel()
        return total

    nelement = numel

    def is_contiguous(self, memory_format: Any = contiguous_format) -> bool:
        from .construct import is_packed

        return is_packed(parts(self).structure)

    def _nested_tensor_size(self) -> Any:
        return torch.tensor(parts(self).structure.sizes, dtype=torch.int64).reshape(len(self), -1)

    def _nested_tensor_strides(self) -> Any:
        return torch.tensor(parts(self).structure.each_stride, dtype=torch.int64).reshape(len(self), -1)

    def _nested_tensor_storage_offsets(self) -> Any:
        return torch.tensor(parts(self).structure.offsets, dtype=torch.int64)

    def values(self) -> Any:
        return values_of(self)

    def _text(self, *, tensor_contents: Any = None) -> str:
        many = [_indented(str(t.requires_grad_(self.requires_grad))) for t in components(self.detach())]
        if self.grad_fn is not None:
            end = f", grad_fn=<{type(self.grad_fn).__name__}>"
        else:
            end = ", requires_grad=True" if self.requires_grad else ""
        return "nested_tensor([\n" + ",\n".join(many) + f"\n]{end})"

    __repr__: Any = _text

    def __reduce_ex__(self, protocol: Any) -> Any:
        from .._utils import _rebuild_nested_tensor

        arguments = (
            parts(self).values,
            self._nested_tensor_size(),
            self._nested_tensor_strides(),
            self._nested_tensor_storage_offsets(),
        )
        return (_rebuild_nested_tensor, arguments)


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.split("\n"))


class NestedTensor(_Nested):
    """A nested tensor of the jagged layout: one dimension is ragged."""

    # Where files look for it.
    __module__ = "mindtorch_v2.nested._internal.nested_tensor"

    @staticmethod
    def __new__(cls: Any, values: Any, offsets: Any, *, lengths: Any = None, **kwargs: Any) -> Any:
        if offsets is None:
            raise AssertionError("offsets must not be None")
        if offsets.ndim != 1:
            raise AssertionError(f"offsets must be 1D, but got {offsets.ndim}D")
        if isinstance(values, NestedTensor):
            raise AssertionError("values must not be a NestedTensor")
        if values.device != offsets.device:
            raise AssertionError(
                "values and offsets must be on the same device, but got "
                f"values.device={values.device} and offsets.device={offsets.device}"
            )
        if lengths is not None and offsets.shape[0] - 1 != lengths.shape[0]:
            raise AssertionError(
                "offsets and lengths batch sizes must match: "
                f"offsets.shape[0] - 1 = {offsets.shape[0] - 1}, lengths.shape[0] = {lengths.shape[0]}"
            )
        structure = Jagged(offsets, lengths, kwargs.get("_ragged_idx", 1), kwargs.get("_metadata_cache"))
        t = made(values.detach() if values.requires_grad else values, structure)
        if kwargs.get("requires_grad"):
            t.requires_grad = True
        return t

    def __init__(self, values: Any, offsets: Any, *, lengths: Any = None, **kwargs: Any) -> None:
        """All is done where the instance is made."""

    @property
    def _values(self) -> Any:
        return parts(self).values

    @_values.setter
    def _values(self, new: Any) -> None:
        parts(self).values = new

    @property
    def _offsets(self) -> Any:
        return parts(self).structure.offsets

    @property
    def _lengths(self) -> Any:
        return parts(self).structure.lengths

    @property
    def _ragged_idx(self) -> int:
        found: int = parts(self).structure.ragged
        return found

    @property
    def _metadata_cache(self) -> Any:
        return parts(self).structure.cache

    @property
    def _size(self) -> tuple[int, ...]:
        return tuple(self._shape)

    @property
    def _strides(self) -> tuple[int, ...]:
        return self._stride

    @property
    def _max_seqlen(self) -> int:
        found: int = parts(self).structure.extreme("max_seqlen")
        return found

    @property
    def _min_seqlen(self) -> int:
        found: int = parts(self).structure.extreme("min_seqlen")
        return found

    def _get_max_seqlen(self) -> int:
        return self._max_seqlen

    def _get_min_seqlen(self) -> int:
        return self._min_seqlen

    @property
    def _max_seqlen_tensor(self) -> Any:
        return self._metadata_cache.get("max_seqlen")

    @property
    def _min_seqlen_tensor(self) -> Any:
        return self._metadata_cache.get("min_seqlen")

    @property
    def _maybe_max_seqlen(self) -> int | None:
        kept = self._max_seqlen_tensor
        return None if kept is None else kept.shape[0]

    @property
    def _maybe_min_seqlen(self) -> int | None:
        kept = self._min_seqlen_tensor
        return None if kept is None else kept.shape[0]

    def values(self) -> Any:
        """The values of all, one after the other, as a view."""
        found = values_of(self)
        return found.detach() if found is parts(self).values else found

    def offsets(self) -> Any:
        """Where in the values each begins, and the end of the last."""
        return self._offsets

    def lengths(self) -> Any:
        """How much each takes, where that is not all up to the next; else None."""
        return self._lengths

    def numel(self) -> int:
        if self._lengths is None:
            return int(self._values.numel())
        each = 1
        for d, n in enumerate(self._shape):
            each *= 1 if d in (0, self._ragged_idx) else n
        return int(self._lengths.sum().item()) * each

    nelement = numel

    def storage_offset(self) -> int:
        return int(self._values.storage_offset())

    def is_contiguous(self, memory_format: Any = contiguous_format) -> bool:
        if self._lengths is not None:
            return False
        found: bool = memory_format is preserve_format or self._values.is_contiguous(memory_format=memory_format)
        return found

    def _is_contiguous_or_false(self) -> bool:
        return self.is_contiguous()

    def _text(self, *, tensor_contents: Any = None) -> str:
        end = ", requires_grad=True" if self.requires_grad else ""
        if self.grad_fn is not None:
            end = f", grad_fn={self.grad_fn}"
        return (
            f"NestedTensor(size={self._size}, offsets={self._offsets}{end}, "
            f"contiguous={self._is_contiguous_or_false()})"
        )

    __repr__: Any = _text

    def __reduce_ex__(self, protocol: Any) -> Any:
        from .._utils import _rebuild_from_type_v2
        from .construct import _rebuild_njt

        given = {
            "values": self._values,
            "offsets": self._offsets,
            "lengths": self._lengths,
            "_ragged_idx": self._ragged_idx,
            "_metadata_cache": self._metadata_cache,
            "requires_grad": self.requires_grad,
        }
        return (_rebuild_from_type_v2, (_rebuild_njt, type(self), (given,), {}))

    def __setstate__(self, state: Any) -> None:
        """What a file says beside the arguments repeats them."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
                "moment.  If you were attempting to deepcopy a module, this may be because of a "
                "torch.nn.utils.weight_norm usage, see https://github.com/pytorch/pytorch/pull/103001"
            )
        if id(self) not in memo:
            own = made(self._values.clone(), parts(self).structure)
            memo[id(self)] = own.requires_grad_(self.requires_grad)
        return memo[id(self)]

    def __tensor_flatten__(self) -> Any:
        names = ["_values", "_offsets"]
        kept = ("_lengths", self._lengths), ("_min_seqlen_tensor", self._min_seqlen_tensor)
        for name, value in (*kept, ("_max_seqlen_tensor", self._max_seqlen_tensor)):
            if value is not None:
                names.append(name)
        return names, {"requires_grad": self.requires_grad, "ragged_idx": self._ragged_idx}

    @staticmethod
    def __tensor_unflatten__(inner_tensors: Any, meta: Any, outer_size: Any, outer_stride: Any) -> Any:
        if not 2 <= len(inner_tensors) <= 5:
            raise AssertionError(f"Expected 2-5 inner tensors, but got {len(inner_tensors)}")
        known = {
            name: inner_tensors[f"_{name}_tensor"]
            for name in ("min_seqlen", "max_seqlen")
            if inner_tensors.get(f"_{name}_tensor") is not None
        }
        return NestedTensor(
            inner_tensors["_values"],
            inner_tensors["_offsets"],
            lengths=inner_tensors.get("_lengths"),
            requires_grad=meta["requires_grad"],
            _ragged_idx=meta["ragged_idx"],
            _metadata_cache=known,
        )
