"""What serves calls with masked tensors: `FUNCTIONS` above autograd, `OPERATORS` below it, by kind of operator.

Invariant: an operator that is in neither table is refused; none sees the data without its mask.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.autograd import Function

from .binary import BINARY_NAMES, INPLACE_BINARY_NAMES, _apply_native_binary
from .core import MaskedTensor, _get_data, _masks_match, _maybe_get_mask, is_masked_tensor
from .passthrough import PASSTHROUGH_NAMES, _apply_pass_through_fn
from .reductions import REDUCE_FNS, REDUCE_NAMES, _apply_reduction
from .unary import INPLACE_UNARY_NAMES, UNARY_NAMES, _apply_native_unary

__all__: list[str] = []
_TENSOR: Any = torch.Tensor

FUNCTIONS: dict[Any, Callable[..., Any]] = {fn: partial(_apply_reduction, fn) for fn in REDUCE_FNS}
OPERATORS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(REDUCE_NAMES, _apply_reduction),
    **dict.fromkeys(PASSTHROUGH_NAMES, _apply_pass_through_fn),
    **dict.fromkeys(UNARY_NAMES + INPLACE_UNARY_NAMES, _apply_native_unary),
    **dict.fromkeys(BINARY_NAMES + INPLACE_BINARY_NAMES, _apply_native_binary),
}


def function(*fns: Any) -> Callable[[Any], Any]:
    """Serve functions above autograd."""

    def register(served: Any) -> Any:
        FUNCTIONS.update(dict.fromkeys(fns, served))
        return served

    return register


def operator(*names: str, count: int | None = None, plain: bool = False) -> Callable[[Any], Any]:
    """Serve operators below autograd, with `count` arguments if said, and none by name if `plain`."""

    def register(served: Any) -> Any:
        def checked(func: Any, *args: Any, **kwargs: Any) -> Any:
            _check_lengths(f"__torch_dispatch__, {func}", args, kwargs, count, 0 if plain else None)
            return served(func, *args, **kwargs)

        for name in names:
            OPERATORS[name] = checked
        return served

    return register


def _check_lengths(what: str, args: Any, kwargs: Any, count: int | None, named: int | None) -> None:
    if count is not None and len(args) != count:
        raise ValueError(f"{what}: len(args) must be {count} but got {len(args)}")
    if named is not None and len(kwargs) != named:
        raise ValueError(f"{what}: len(kwargs) must be {named} but got {len(kwargs)}")


def _all_kept(t: Any) -> Any:
    """A plain tensor as a masked one that hides nothing."""
    return t if is_masked_tensor(t) else MaskedTensor(t, torch.ones_like(t, dtype=torch.bool))


def _refuser(name: str) -> Callable[..., Any]:
    def refused(*args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            f"Multiple dispatch failed for 'torch._ops.aten.{name}'; all __torch_dispatch__ handlers returned "
            f"NotImplemented:\n\n  - tensor subclass {MaskedTensor}\n\n"
            "For more information, try re-running with TORCH_LOGS=not_implemented"
        )

    return refused


# Functions that would look at the data, or at the sizes alone, without asking for the mask.
_REFUSED = {
    "equal.default": (torch.equal, _TENSOR.equal),
    "allclose.default": (torch.allclose, _TENSOR.allclose),
    "resize_.default": (_TENSOR.resize_,),
    "resize_as_.default": (_TENSOR.resize_as_,),
    "_trilinear.default": (torch.bilinear, torch.nn.functional.bilinear),
    "_pdist_forward.default": (torch.pdist, torch.nn.functional.pdist),
    "linspace.Tensor_Tensor": (torch.linspace,),
    "logspace.Tensor_Tensor": (torch.logspace,),
}
for _name, _fns in _REFUSED.items():
    FUNCTIONS.update(dict.fromkeys(_fns, _refuser(_name)))


# -- above autograd -----------------------------------------------------------------------------------------------
def _needs_masked(name: str, input: Any) -> None:
    if not is_masked_tensor(input):
        raise ValueError(f"{name} forward: input must be a MaskedTensor.")


class _MaskedContiguous(Function):
    @staticmethod
    def forward(ctx: Any, input: Any) -> Any:
        _needs_masked("MaskedContiguous", input)
        if input.is_contiguous():
            return input
        return MaskedTensor(input.get_data().contiguous(), input.get_mask().contiguous())

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        return grad_output


class _MaskedToDense(Function):
    @staticmethod
    def forward(ctx: Any, input: Any) -> Any:
        _needs_masked("MaskedToDense", input)
        ctx.layout = input.layout
        if input.layout == torch.strided:
            return input
        return MaskedTensor(input.get_data().to_dense(), input.get_mask().to_dense())

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        if ctx.layout == torch.sparse_coo:
            return grad_output.to_sparse_coo()
        return grad_output.to_sparse_csr() if ctx.layout == torch.sparse_csr else grad_output.to_dense()


class _MaskedToSparse(Function):
    """To COO, or to CSR: the entries are those that the mask lets through."""

    @staticmethod
    def forward(ctx: Any, input: Any, layout: Any) -> Any:
        csr = layout == torch.sparse_csr
        _needs_masked("MaskedToSparseCsr" if csr else "MaskedToSparse", input)
        if csr and input._masked_data.ndim != 2:
            raise ValueError(
                f"Only 2D tensors can be converted to the SparseCsr layout but got shape: {input._masked_data.size()}"
            )
        return input if input.layout == layout else _sparse(input, layout)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        return grad_output.to_dense(), None


def _sparse(input: Any, layout: Any) -> Any:
    mask = input.get_mask()
    mask = mask.to_sparse_csr() if layout == torch.sparse_csr else mask.to_sparse_coo().coalesce()
    return MaskedTensor(input.get_data().sparse_mask(mask), mask)


class _MaskedWhere(Function):
    @staticmethod
    def forward(ctx: Any, cond: Any, self: Any, other: Any) -> Any:
        ctx.mark_non_differentiable(cond)
        ctx.save_for_backward(cond)
        return _chosen(cond, self, other)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        (cond,) = ctx.saved_tensors
        nothing = MaskedTensor(grad_output.get_data(), torch.zeros_like(grad_output.get_mask()))
        return None, _chosen(cond, grad_output, nothing), _chosen(cond, nothing, grad_output)


def _chosen(condition: Any, self: Any, other: Any) -> Any:
    """`where` of data and of masks."""
    x, y = _all_kept(self), _all_kept(other)
    data = torch.where(condition, x.get_data(), y.get_data())
    return MaskedTensor(data, torch.where(condition, x.get_mask(), y.get_mask()))


@function(_TENSOR.where, torch.where)
def _function_where(*args: Any, **kwargs: Any) -> Any:
    _check_lengths("__torch_function__, torch.where", args, kwargs, 3, 0)
    return _MaskedWhere.apply(*args)


@function(_TENSOR.contiguous)
def _function_contiguous(self: Any, *args: Any, **kwargs: Any) -> Any:
    return _MaskedContiguous.apply(self)


# -- below autograd -----------------------------------------------------------------------------------------------
@operator("contiguous")
def _contiguous(func: Any, self: Any, **kwargs: Any) -> Any:
    if _get_data(self).is_sparse:
        raise ValueError("MaskedTensors with sparse data do not have contiguous")
    return _MaskedContiguous.apply(self)


@operator("new_empty_strided", count=3)
def _new_empty_strided(func: Any, self: Any, size: Any, stride: Any, **kwargs: Any) -> Any:
    data = _get_data(self)
    for at, given, own in ((1, size, "size"), (2, stride, "stride")):
        if tuple(given) != tuple(getattr(data, own)()):
            raise ValueError(f"__torch_dispatch__, {func}: args[{at}] expected to be the same as data.{own}()")
    return MaskedTensor(func(data, size, stride, **kwargs), _maybe_get_mask(self))


@operator("_local_scalar_dense")
def _local_scalar_dense(func: Any, self: Any) -> Any:
    if not _maybe_get_mask(self):
        raise ValueError(f"__torch_dispatch__, {func}: expected a mask tensor")
    return _get_data(self).item()


@operator("alias", "detach", "clone", "isfinite")
def _of_data(func: Any, self: Any, **kwargs: Any) -> Any:
    return MaskedTensor(func(_get_data(self)), _maybe_get_mask(self))


@operator("_to_copy")
def _to_copy(func: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    mask = func(_maybe_get_mask(self), *args, **{**kwargs, "dtype": torch.bool})
    return MaskedTensor(func(_get_data(self), *args, **kwargs), mask)


@operator("_softmax", count=3, plain=True)
def _softmax(func: Any, self: Any, dim: int, half_to_float: bool) -> Any:
    data, mask = _get_data(self), _maybe_get_mask(self)
    return MaskedTensor(torch.ops.aten._masked_softmax(data, ~mask, dim, 2), mask)


@operator("_softmax_backward_data", count=4)
def _softmax_backward_data(func: Any, grad: Any, output: Any, dim: int, input_dtype: Any) -> Any:
    if not (is_masked_tensor(grad) and is_masked_tensor(output)):
        raise ValueError(f"__torch_dispatch__, {func}: grad and output must both be MaskedTensors")
    if not _masks_match(grad, output):
        raise ValueError(f"__torch_dispatch__, {func}: expected the masks of grad and output to match")
    data, mask = _get_data(grad), grad.get_mask()
    result = torch.ops.aten._masked_softmax_backward(data, _get_data(output), ~mask, dim % data.ndim)
    return MaskedTensor(result, mask)


@operator("ones_like", count=1)
def _ones_like(func: Any, self: Any, **kwargs: Any) -> Any:
    return MaskedTensor(func(_get_data(self), **kwargs), _maybe_get_mask(self))


@operator("copy_", count=2)
def _copy(func: Any, self: Any, src: Any, **kwargs: Any) -> Any:
    if not _masks_match(self, src):
        raise ValueError("args[0] mask and args[1] mask must match but do not")
    func(_get_data(self), _get_data(src))
    return self


@operator("where", count=3, plain=True)
def _where(func: Any, condition: Any, self: Any, other: Any) -> Any:
    if not isinstance(condition, torch.Tensor):
        raise ValueError(f"__torch_dispatch__, {func}: expected args[0] to be a tensor")
    return _chosen(condition, self, other)
