"""`torch.masked`: reductions and normalizations over the elements that a mask lets through.

Invariant: an element that is masked out counts as the value that changes nothing: the identity of the reduction. Where
there is none (mean, variance) a row without elements gives nan. Everything is made of other operators.
"""

from __future__ import annotations

import math
import operator
from functools import cache
from typing import Any

_SHORT_INTEGERS = ("uint8", "bool", "int8", "int16", "int32")


def _torch() -> Any:
    import mindtorch_v2

    return mindtorch_v2


# -- masks --------------------------------------------------------------------------------------------------------
def _lowest(input: Any) -> Any:
    return -math.inf if input.dtype.is_floating_point else _torch().iinfo(input.dtype).min


def _identity(name: str, input: Any, ord: Any = 2) -> Any:
    """The value that a reduction does not notice."""
    if name in ("sum", "prod"):
        return 0 if name == "sum" else 1
    if name == "logsumexp" and input.dtype.is_complex:
        return complex(-math.inf, 0)
    if name in ("amax", "amin", "logsumexp", "logaddexp") and (input.dtype.is_complex or input.dtype is _torch().bool):
        raise NotImplementedError(f"identity of {name} on {input.dtype} input")
    if name in ("amax", "logsumexp", "logaddexp"):
        return _lowest(input)
    if name == "amin":
        return math.inf if input.dtype.is_floating_point else _torch().iinfo(input.dtype).max
    if name == "norm":
        if ord == -math.inf and not input.dtype.is_floating_point:
            raise AssertionError(f"input must be floating point, got {input.dtype}")
        return math.inf if ord == -math.inf else 0
    if name == "median":
        return math.nan  # it is taken of what is not nan
    raise NotImplementedError(f"identity of {name} on {input.dtype} input")


_SAME_AS = {"cumsum": "sum", "cumprod": "prod", "argmax": "amax", "argmin": "amin"}


def _reduction_identity(op_name: str, input: Any, *args: Any) -> Any:
    """The value that a reduction does not notice, as a tensor; None for those that count elements."""
    op_name = op_name.rpartition(".")[2]
    if op_name in ("mean", "var", "std"):
        return None
    dtype = input.dtype if op_name != "median" or input.dtype.is_floating_point else _torch().get_default_dtype()
    found = _identity(_SAME_AS.get(op_name, op_name), input, *args[:1])
    return _torch().tensor(found, dtype=dtype, device=input.device)


def _where(mask: Any, input: Any, fill_value: Any) -> Any:
    """The input where the mask is True, else the other value; a sparse one has the indices of the mask then."""
    torch = _torch()
    if mask.layout == torch.strided:
        return torch.where(mask, input, fill_value)
    if mask.layout == torch.sparse_csr:
        return _sparse_where(mask.to_sparse_coo(), input.to_sparse_coo(), fill_value).to_sparse_csr()
    if mask.layout == torch.sparse_coo:
        return _sparse_where(mask, input, fill_value)
    raise ValueError(f"_where expects strided or sparse COO or sparse CSR tensor but got {mask.layout}")


def _sparse_where(mask: Any, input: Any, fill_value: Any) -> Any:
    """`_where` of COO tensors: the entries are those where the mask is True, with zero for what the input has not."""
    torch = _torch()
    mask = mask.coalesce()
    kept = mask.values()
    some = kept.flatten(1).any(1) if kept.dim() > 1 else kept
    entries = torch.sparse_coo_tensor(mask.indices()[:, some], kept[some], mask.shape, is_coalesced=True)
    values = input.coalesce().sparse_mask(entries).values()
    if kept.dim() > 1:
        values = torch.where(kept[some], values, fill_value)
    return torch.sparse_coo_tensor(entries.indices(), values, input.shape, is_coalesced=True)


def _combine_input_and_mask(op: Any, input: Any, mask: Any, *args: Any) -> Any:
    """The input of a masked reduction: its identity where the mask is False."""
    if not callable(op):
        raise ValueError(f"_combine_input_and_mask expected masked operation (got {type(op).__name__} object)")
    name = op.__name__
    return _masked(_SAME_AS.get(name, name), input, mask, *args[:1])


def _canonical_dim(dim: Any, ndim: int) -> tuple[int, ...]:
    """Dimensions in order, counted from the first; None and () are all."""
    return _dims(dim, ndim)


def _input_mask(input: Any, *given: Any, mask: Any, **options: Any) -> Any:
    """The mask as bool, in the shape of the input; takes all that a masked function does."""
    if not isinstance(mask, _torch().Tensor):
        raise TypeError(f"mask must be a Tensor, not {type(mask).__name__}")
    if mask.shape != input.shape:
        if mask.dim() > input.dim():
            raise IndexError(
                "_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)"
            )
        mask = mask.expand(input.shape) if mask.layout == _torch().strided else _expanded(mask, input.shape)
    if mask.layout != input.layout:
        mask = _in_layout_of(mask, input)
    if mask.layout == _torch().sparse_coo:
        mask = mask.coalesce()
    return mask.to(dtype=_torch().bool)


def _expanded(mask: Any, shape: Any) -> Any:
    """A sparse mask in a larger shape."""
    whole = mask.to_dense().expand(shape)
    return whole.to_sparse_csr() if mask.layout == _torch().sparse_csr else whole.to_sparse()


def _in_layout_of(mask: Any, input: Any) -> Any:
    torch = _torch()
    if input.layout == torch.strided:
        return mask.to_dense()
    if input.layout == torch.sparse_coo:
        return mask.to_sparse(input.sparse_dim()) if mask.layout == torch.strided else mask.to_sparse()
    return mask.to_sparse_csr()


def _of_entries(name: str, given: Any, dims: Any, keepdim: bool | None, dtype: Any, mask: Any) -> Any:
    """A reduction of a sparse tensor."""
    from . import _sparse

    kind = "coo" if given.layout == _torch().sparse_coo else "csr"
    if mask is None and name != "sum":
        raise ValueError(f"masked {name} expects explicit mask for sparse_{kind} tensor input")

    def identity(values: Any) -> Any:
        return _reduction_identity(name, values)

    return getattr(_sparse, kind)(name, given, dims, bool(keepdim), dtype, identity)


def _is_sparse(t: Any) -> bool:
    return t.layout in (_torch().sparse_coo, _torch().sparse_csr)


def _output_mask(op: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """Which elements of `op(input, *args, **kwargs)` come from at least one element that is not masked out."""
    kept = _input_mask(input, **kwargs)
    if op.__name__ in ("softmax", "log_softmax", "softmin", "normalize", "cumsum", "cumprod"):
        return kept
    args = args[1:] if op.__name__ == "norm" else args
    for d in reversed(_dims(args[0] if args else kwargs.get("dim"), input.dim())):
        kept = kept.any(dim=d, keepdim=bool(kwargs.get("keepdim", False)))
    return kept


_SPARSE_TOO = {"mean": "strided or sparse_csr"} | dict.fromkeys(
    ("sum", "prod", "amax", "amin"), "strided, sparse_coo or sparse_csr"
)


def _check_layout(name: str, input: Any, mask: Any) -> None:
    torch = _torch()
    layout = input.layout
    if layout == torch.strided:
        return
    looks_first = mask is not None and name not in ("mean", "std/var") and layout != torch.jagged
    if looks_first and layout not in (torch.sparse_coo, torch.sparse_csr):
        raise ValueError(f"_input_mask expects strided or sparse COO or sparse CSR tensor but got {layout}")
    wanted = _SPARSE_TOO.get(name, "strided")
    if str(layout).rpartition(".")[2] not in wanted:
        raise ValueError(f"masked {name} expects {wanted} tensor (got {layout} tensor)")


def _masked(name: str, input: Any, mask: Any, ord: Any = 2, by: str | None = None) -> Any:
    """The input with the identity of a reduction where the mask is False; the data of a masked tensor with its own.
    by: the function that asks, if it is not the reduction."""
    _check_layout(by or name, input, mask)
    if _is_masked_tensor(input):
        return _combine_function().apply(input.get_data(), input.get_mask(), name, ord)
    return input if mask is None else _with_identity(name, input, mask, ord)


def _with_identity(name: str, input: Any, mask: Any, ord: Any) -> Any:
    kept = _input_mask(input, mask=mask)
    filler = _torch().tensor(_identity(name, input, ord), dtype=input.dtype, device=input.device)
    return _where(kept, input, filler)


def _is_masked_tensor(input: Any) -> bool:
    from .maskedtensor.core import MaskedTensor

    return isinstance(input, MaskedTensor)


@cache
def _combine_function() -> Any:
    """The autograd function below reductions of masked tensors: the gradient has the mask again."""
    from ..autograd import Function
    from .maskedtensor.creation import as_masked_tensor

    class Combine(Function):
        @staticmethod
        def forward(ctx: Any, input: Any, mask: Any, name: str, ord: Any) -> Any:
            ctx.save_for_backward(mask)
            ctx.mark_non_differentiable(mask)
            return _with_identity(name, input, mask, ord)

        @staticmethod
        def backward(ctx: Any, grad_output: Any) -> Any:
            (mask,) = ctx.saved_tensors
            data = grad_output.get_data() if _is_masked_tensor(grad_output) else grad_output
            return as_masked_tensor(data, mask), None, None, None

    return Combine


def _dims(dim: Any, ndim: int) -> tuple[int, ...]:
    """Dimensions in order, counted from the first; None and () are all."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    ndim = max(ndim, 1)
    found: list[int] = []
    for d in dim if isinstance(dim, (list, tuple)) else (operator.index(dim),):
        if d in found:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        if not -ndim <= d < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {d})")
        found.append(d % ndim)
    return tuple(sorted(found))


def _sum_dtype(input: Any, dtype: Any) -> Any:
    if dtype is None and str(input.dtype).rpartition(".")[2] in _SHORT_INTEGERS:
        return _torch().int64
    return input.dtype if dtype is None else dtype


# -- reductions ---------------------------------------------------------------------------------------------------
def sum(input: Any, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None) -> Any:
    """The sum of the elements whose mask is True."""
    dims, dtype = _dims(dim, input.dim()), _sum_dtype(input, dtype)
    given = _masked("sum", input, mask)
    if _is_sparse(given):
        return _of_entries("sum", given, dims, keepdim, dtype, mask)
    return _torch().sum(given, dims, bool(keepdim), dtype=dtype)


def prod(input: Any, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None) -> Any:
    """The product of the elements whose mask is True."""
    given = _masked("prod", input, mask)
    if _is_sparse(given):
        return _of_entries("prod", given, _dims(dim, input.dim()), keepdim, _sum_dtype(input, dtype), mask)
    result = given.to(dtype=_sum_dtype(input, dtype))
    for d in reversed(_dims(dim, input.dim())):
        result = result.prod(dim=d, keepdim=bool(keepdim))
    return result


def amax(input: Any, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None) -> Any:
    """The largest of the elements whose mask is True."""
    dtype = input.dtype if dtype is None else dtype
    given = _masked("amax", input, mask)
    if _is_sparse(given):
        return _of_entries("amax", given, _dims(dim, input.dim()), keepdim, dtype, mask)
    return _torch().amax(given, _dims(dim, input.dim()), bool(keepdim)).to(dtype=dtype)


def amin(input: Any, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None) -> Any:
    """The smallest of the elements whose mask is True."""
    dtype = input.dtype if dtype is None else dtype
    given = _masked("amin", input, mask)
    if _is_sparse(given):
        return _of_entries("amin", given, _dims(dim, input.dim()), keepdim, dtype, mask)
    return _torch().amin(given, _dims(dim, input.dim()), bool(keepdim)).to(dtype=dtype)


def argmax(
    input: Any, dim: int | None = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None
) -> Any:
    """Where the largest of the elements whose mask is True stands; in the dtype of the input, as PyTorch has it."""
    dtype = input.dtype if dtype is None else dtype
    return _torch().argmax(_masked("amax", input, mask, by="argmax"), dim, bool(keepdim)).to(dtype=dtype)


def argmin(
    input: Any, dim: int | None = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None
) -> Any:
    """Where the smallest of the elements whose mask is True stands; in the dtype of the input, as PyTorch has it."""
    dtype = input.dtype if dtype is None else dtype
    return _torch().argmin(_masked("amin", input, mask, by="argmin"), dim, bool(keepdim)).to(dtype=dtype)


def logsumexp(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """The logarithm of the sum of exponentials of the elements whose mask is True."""
    dtype = input.dtype if dtype is None else dtype
    given = _masked("logsumexp", input, mask)
    return _torch().logsumexp(given, _dims(dim, input.dim()), keepdim=keepdim).to(dtype=dtype)


def norm(
    input: Any,
    ord: float | None = 2.0,
    dim: Any = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Any = None,
) -> Any:
    """The vector norm of the elements whose mask is True."""
    dtype = input.dtype if dtype is None else dtype
    given = _masked("norm", input, mask, ord)
    return _torch().linalg.vector_norm(given, ord, _dims(dim, input.dim()), bool(keepdim), dtype=dtype)


def _counted(input: Any, dim: Any, keepdim: bool, dtype: Any, mask: Any) -> tuple[Any, Any, Any]:
    """How many elements there are, their sum, and the mask in the input's shape."""
    if mask is None:
        ones = _torch().ones(input.shape, dtype=_torch().int64, device=input.device)
        return sum(ones, dim, keepdim=keepdim), sum(input, dim, keepdim=keepdim, dtype=dtype), None
    kept = _input_mask(input, mask=mask)
    return kept.sum(dim=dim, keepdim=keepdim), sum(input, dim, keepdim=keepdim, dtype=dtype, mask=kept), kept


def mean(input: Any, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None) -> Any:
    """The mean of the elements whose mask is True; nan where there are none."""
    source = "Input" if dtype is None else "Optional"
    dtype = input.dtype if dtype is None else dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            f"mean(): Could not infer output dtype. {source} dtype must be either a floating point or "
            f"complex dtype. Got: {dtype}"
        )
    _check_layout("mean", input, mask)
    if input.layout == _torch().sparse_csr:
        if mask is None:
            raise ValueError("masked mean expects explicit mask for sparse_csr tensor input")
        zero = _torch().zeros((), dtype=input.dtype, device=input.device)
        kept = _where(_input_mask(input, mask=mask), input, zero)
        return _of_entries("mean", kept, _dims(dim, input.dim()), keepdim, dtype, mask)
    count, total, _ = _counted(input, dim, bool(keepdim), dtype, mask)
    return total / count


def median(input: Any, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """The median of the elements whose mask is True; nan where there are none."""
    dtype = input.dtype if dtype is None else dtype
    at = _dims(dim, input.dim())[0]
    if input.dtype.is_floating_point:
        return _torch().nanmedian(_masked("median", input, mask), at, keepdim).values
    found = _torch().nanmedian(_masked("median", input.to(dtype=_torch().float), mask), at, keepdim).values
    if bool(found.isnan().any()):
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return found.to(dtype=dtype)


def _variance(
    input: Any, dim: Any, unbiased: bool | None, correction: float | None, keepdim: bool | None, dtype: Any, mask: Any
) -> Any:
    torch = _torch()
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    less = float(correction) if correction is not None else 0.0 if unbiased is not None and not unbiased else 1.0
    if dtype is None:
        dtype = input.dtype if input.dtype.is_floating_point or input.dtype.is_complex else torch.float32
    computed = dtype if dtype.is_floating_point or dtype.is_complex else torch.float32
    _check_layout("std/var", input, mask)
    count, total, kept = _counted(input, dim, True, dtype, mask)
    away = input - total / count
    squares = sum(away * away.conj(), dim, keepdim=keepdim, dtype=computed, mask=kept)
    count = count if keepdim else count.reshape(squares.shape)
    if less != 0:
        count = count.to(computed.to_real() if computed.is_complex else computed) - less
        count = torch.maximum(count, count.new_zeros(()))
    return (squares / count).to(dtype=dtype)


def var(
    input: Any,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Any = None,
) -> Any:
    """The variance of the elements whose mask is True; nan where there are none."""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask)


def std(
    input: Any,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Any = None,
) -> Any:
    """The standard deviation of the elements whose mask is True; nan where there are none."""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask).sqrt()


# -- results of the input's shape -----------------------------------------------------------------------------------
def cumsum(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Sums of the elements so far whose mask is True."""
    dtype = input.dtype if dtype is None else dtype
    return _torch().cumsum(_masked("sum", input, mask, by="cumsum"), _dims(dim, input.dim())[0], dtype=dtype)


def cumprod(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Products of the elements so far whose mask is True."""
    dtype = input.dtype if dtype is None else dtype
    return _torch().cumprod(_masked("prod", input, mask, by="cumprod"), _dims(dim, input.dim())[0], dtype=dtype)


def logaddexp(input: Any, other: Any, *, dtype: Any = None, input_mask: Any = None, other_mask: Any = None) -> Any:
    """log(exp(input) + exp(other)) of the elements whose masks are True."""
    dtype = input.dtype if dtype is None else dtype
    left, right = _masked("logaddexp", input, input_mask), _masked("logaddexp", other, other_mask)
    return _torch().logaddexp(left, right).to(dtype=dtype)


def softmax(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Softmax over the elements whose mask is True."""
    dtype = input.dtype if dtype is None else dtype
    return _torch().softmax(_masked("amax", input, mask, by="softmax"), _dims(dim, input.dim())[0], dtype=dtype)


def log_softmax(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """The logarithm of softmax over the elements whose mask is True."""
    dtype = input.dtype if dtype is None else dtype
    return _torch().log_softmax(_masked("amax", input, mask, by="log_softmax"), _dims(dim, input.dim())[0], dtype=dtype)


def softmin(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Softmax of the negated elements whose mask is True."""
    dtype = input.dtype if dtype is None else dtype
    return _torch().softmax(-_masked("amin", input, mask, by="softmin"), _dims(dim, input.dim())[0], dtype=dtype)


def normalize(input: Any, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Any = None) -> Any:
    """The elements whose mask is True divided by their norm, or by `eps` if that is larger; zero elsewhere."""
    dtype = input.dtype if dtype is None else dtype
    _check_layout("normalize", input, mask)
    length = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _masked("sum", input, mask) / _torch().maximum(length, length.new_full((), eps))
