"""`MaskedTensor`: data and a mask of one shape and layout, True where an element counts.

Invariant: data and mask are plain tensors that the masked tensor owns: making one copies both. What an operator does
stands in `_ops_refs`, by kind of operator; an operator that is not there is refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2._tensor import Tensor
from mindtorch_v2.autograd import Function

__all__ = ["MaskedTensor", "is_masked_tensor"]

_DTYPES = tuple(
    getattr(torch, name) for name in ("float16", "float32", "float64", "bool", "int8", "int16", "int32", "int64")
)
_PROTOTYPE = (
    "The PyTorch API of MaskedTensors is in prototype stage and will change in the near future. Please open a Github "
    "issue for features requests and see our documentation on the torch.masked module for further information about "
    "the project."
)
_WITH_HISTORY = (
    "It is not recommended to create a MaskedTensor with a tensor that requires_grad. To avoid this, you can use "
    "data.detach().clone()"
)
_PLEASE = (
    "If you would like this operator to be supported, please file an issue for a feature request at "
    "https://github.com/pytorch/maskedtensor/issues with a minimal reproducible code snippet.\n"
    "In the case that the semantics for the operator are not trivial, it would be appreciated to also include a "
    "proposal for the semantics."
)


def is_masked_tensor(obj: Any, /) -> bool:
    """Whether `obj` is a MaskedTensor."""
    return isinstance(obj, MaskedTensor)


def not_implemented(what: str) -> Any:
    """Warn that an operator is not there, and let the dispatcher refuse it."""
    warnings.warn(f"{what}\n{_PLEASE}", stacklevel=3)
    return NotImplemented


# -- layouts ------------------------------------------------------------------------------------------------------
def index_parts(t: Any) -> tuple[Any, ...]:
    """The indices of a sparse tensor; none of a strided one."""
    if t.layout == torch.sparse_coo:
        return (t.indices(),)
    if t.layout == torch.sparse_csr:
        return (t.crow_indices(), t.col_indices())
    return ()


def with_values(t: Any, values: Any) -> Any:
    """A tensor with the indices of `t` and other values."""
    if t.layout == torch.sparse_coo:
        return torch.sparse_coo_tensor(t.indices(), values, t.size())
    if t.layout == torch.sparse_csr:
        return torch.sparse_csr_tensor(t.crow_indices(), t.col_indices(), values, t.size())
    return values


def _tensors_match(a: Any, b: Any, exact: bool = True, rtol: float = 1e-05, atol: float = 1e-08) -> Any:
    """Whether two plain tensors of one layout have the same elements, and sparse ones the same indices."""
    if is_masked_tensor(a) or is_masked_tensor(b):
        raise ValueError("Neither `a` nor `b` can be a MaskedTensor.")
    if a.layout != b.layout:
        raise ValueError(f"`a` and `b` must have the same layout. Got {a.layout} and {b.layout}")
    indices = index_parts(a)
    if indices:
        same = all(_tensors_match(x, y) for x, y in zip(indices, index_parts(b)))
        return same and _tensors_match(a.values(), b.values(), exact)
    b = b.to(a.dtype)
    if a.dim() != b.dim():
        return False
    return torch.eq(a, b).all().item() if exact else torch.allclose(a, b, rtol=rtol, atol=atol)


def _masks_match(a: Any, b: Any) -> Any:
    """Whether two masked tensors have the same mask; anything else has none that could differ."""
    if is_masked_tensor(a) and is_masked_tensor(b):
        return _tensors_match(a.get_mask(), b.get_mask())
    return True


def mapped(value: Any, fn: Callable[[Any], Any]) -> Any:
    """`value` with `fn` of each masked tensor in its place, in lists too."""
    if is_masked_tensor(value):
        return fn(value)
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return type(value)([mapped(v, fn) for v in value])
    return value


def wrapped(data: Any, mask: Any) -> Any:
    """Masked tensors of a result and its mask, one by one in lists."""
    if isinstance(data, (list, tuple)):
        return type(data)([wrapped(d, m) for d, m in zip(data, mask)])
    return MaskedTensor(data, mask) if isinstance(data, Tensor) else NotImplemented


def _get_data(a: Any) -> Any:
    return a._masked_data if is_masked_tensor(a) else a


def _maybe_get_mask(a: Any) -> Any:
    return a.get_mask() if is_masked_tensor(a) else None


# -- printing -----------------------------------------------------------------------------------------------------
_FORMAT = "{0:8.4f}"


def _shown(value: Any) -> str:
    return _FORMAT.format(value) if isinstance(value, float) else str(value)


def _lines(data: Any, mask: Any) -> str:
    """Rows in brackets, with dashes for what is masked out."""
    if data.layout != torch.strided:
        data, mask = data.to_dense(), mask.to_dense()
    if data.dim() == 1:
        kept = mask.tolist()
        texts = [_shown(value) for value in data.tolist()]
        width = max(len(text) if keep else 8 for text, keep in zip(texts, kept))
        return "[" + ", ".join(text if keep else "--".rjust(width) for text, keep in zip(texts, kept)) + "]"
    rows = [_indented(_lines(d, m)) for d, m in zip(data, mask)]
    return "[\n" + ",\n".join(rows) + "\n]"


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.split("\n"))


# -- the class ----------------------------------------------------------------------------------------------------
class Constructor(Function):
    """A masked tensor that keeps the history of its data."""

    @staticmethod
    def forward(ctx: Any, data: Any, mask: Any) -> Any:
        return MaskedTensor(data, mask)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        return grad_output, None


class GetData(Function):
    """The data, with the history of the masked tensor."""

    @staticmethod
    def forward(ctx: Any, masked: Any) -> Any:
        ctx.mask = masked.get_mask()
        return masked._masked_data.detach()

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        return grad_output if is_masked_tensor(grad_output) else MaskedTensor(grad_output, ctx.mask)


def _text(self: Any, *, tensor_contents: Any = None) -> str:
    data, mask = self.get_data(), self.get_mask()
    if self.dim() == 0:
        kept = mask.item()
        return f"MaskedTensor({_shown(data.item()) if kept else '--'}, {kept})"
    return "MaskedTensor(\n" + _indented(_lines(data, mask)) + "\n)"


def _is_sparse_csr(self: Any) -> bool:
    return bool(self.layout == torch.sparse_csr)


class MaskedTensor(Tensor):
    """A tensor with a mask: elements whose mask is False do not count."""

    _masked_data: Any
    _masked_mask: Any

    @staticmethod
    def __new__(cls: Any, data: Any, mask: Any, requires_grad: bool = False) -> Any:
        for name, given in (("data", data), ("mask", mask)):
            if is_masked_tensor(given) or not isinstance(given, Tensor):
                raise TypeError(f"{name} must be a Tensor")
        warnings.warn(_PROTOTYPE, UserWarning, stacklevel=2)
        if data.requires_grad:
            warnings.warn(_WITH_HISTORY, UserWarning, stacklevel=2)
        strides = data.stride() if data.layout == torch.strided else None
        return Tensor._make_wrapper_subclass(
            cls, data.size(), strides=strides, dtype=data.dtype, device=data.device, requires_grad=requires_grad
        )

    def __init__(self, data: Any, mask: Any, requires_grad: bool = False) -> None:
        if data.layout != mask.layout:
            raise TypeError("data and mask must have the same layout.")
        if data.layout == torch.sparse_coo:
            data, mask = data.coalesce(), mask.coalesce()
        if data.layout in (torch.sparse_coo, torch.sparse_csr) and data._nnz() != mask._nnz():
            from .._ops import _where

            data = _where(mask, data, torch.tensor(0))
        self._set_data_mask(data.clone(), mask.clone())

    @staticmethod
    def _from_values(data: Any, mask: Any) -> Any:
        """A masked tensor that keeps the history of its data."""
        return Constructor.apply(data, mask)

    def _set_data_mask(self, data: Any, mask: Any) -> None:
        self._masked_data = data
        self._masked_mask = mask
        self._validate_members()

    def _validate_members(self) -> None:
        data, mask = self._masked_data, self._masked_mask
        if type(data) is not type(mask):
            raise TypeError(f"data and mask must have the same type. Got {type(data)} and {type(mask)}")
        if data.layout not in (torch.strided, torch.sparse_coo, torch.sparse_csr):
            raise TypeError(f"data layout of {data.layout} is not supported.")
        if not all(_tensors_match(x, y) for x, y in zip(index_parts(data), index_parts(mask))):
            raise ValueError(
                "data and mask are both sparse COO tensors but do not have the same indices."
                if data.layout == torch.sparse_coo
                else "data and mask are both sparse CSR tensors but do not share either crow or col indices."
            )
        if mask.dtype != torch.bool:
            raise TypeError("mask must have dtype bool.")
        if data.dtype not in _DTYPES:
            raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
        if data.dim() != mask.dim():
            raise ValueError("data.dim() must equal mask.dim()")
        if data.size() != mask.size():
            raise ValueError("data.size() must equal mask.size()")

    __repr__: Any = _text

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from ._ops_refs import FUNCTIONS

        served = FUNCTIONS.get(func)
        if served is not None:
            return served(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from ._ops_refs import OPERATORS

        packet = func.overloadpacket
        served = OPERATORS.get(packet.__name__)
        if served is None:
            return not_implemented(f"{packet.__name__} is not implemented in __torch_dispatch__ for MaskedTensor.")
        return served(packet, *args, **(kwargs or {}))

    @classmethod
    def unary(cls, fn: Any, data: Any, mask: Any) -> Any:
        return MaskedTensor(fn(data), mask)

    def __lt__(self, other: Any) -> Any:
        return MaskedTensor(self.get_data() < _get_data(other), self.get_mask())

    def to_tensor(self, value: Any) -> Any:
        """A plain tensor with `value` where the mask is False."""
        return self.get_data().masked_fill(~self.get_mask(), value)

    def get_data(self) -> Any:
        """The data as a plain tensor; gradients come back masked."""
        return GetData.apply(self)

    def get_mask(self) -> Any:
        """The mask: True where an element counts."""
        return self._masked_mask

    def _is_any_true(self) -> Any:
        data = self._masked_data
        if data.dtype != torch.bool:
            raise ValueError("__torch_dispatch__, aten._is_any_true: expected a boolean tensor")
        if data.is_sparse:
            raise ValueError("MaskedTensors with sparse data do not have aten._is_any_true")
        return MaskedTensor((data & self._masked_mask).any(), torch.tensor(True))

    def to_dense(self, *args: Any, **kwargs: Any) -> Any:
        """Strided data and mask."""
        from ._ops_refs import _MaskedToDense

        return _MaskedToDense.apply(self)

    def to_sparse(self, *args: Any, **kwargs: Any) -> Any:
        """COO data and mask, with entries for the elements that count."""
        from ._ops_refs import _MaskedToSparse

        return _MaskedToSparse.apply(self, torch.sparse_coo)

    to_sparse_coo = to_sparse

    def to_sparse_csr(self, *args: Any, **kwargs: Any) -> Any:
        """CSR data and mask, with entries for the elements that count."""
        from ._ops_refs import _MaskedToSparse

        return _MaskedToSparse.apply(self, torch.sparse_csr)

    @property
    def layout(self) -> Any:
        return self._masked_data.layout

    def is_contiguous(self, memory_format: Any = torch.contiguous_format) -> bool:
        if self.is_sparse:
            raise ValueError("MaskedTensors with sparse data do not have is_contiguous")
        found: bool = self._masked_data.is_contiguous(memory_format=memory_format)
        return found

    def is_sparse_coo(self) -> bool:
        return bool(self.layout == torch.sparse_coo)

    # A method here, as in PyTorch, though it is an attribute of other tensors.
    is_sparse_csr: Any = _is_sparse_csr

    @property
    def is_sparse(self) -> bool:
        return self.is_sparse_coo() or self.is_sparse_csr()
