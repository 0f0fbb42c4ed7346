"""What is said of operators that have no kernel for a sparse layout.

Invariant: the type of the exception, and the words it begins with, are PyTorch's. They depend on which step of its
kernel meets the layout first: none is registered, the iterator over elements, strides, a new tensor for the result.
The message names operator and layout in every case.
"""

from __future__ import annotations

from typing import Any

from .._layout import sparse_bsc, sparse_bsr, sparse_coo
from .._tensor_base import TensorBase
from .parts import NAMES, is_sparse, layout_of, parts

_BACKENDS = {"cpu": "CPU", "meta": "Meta", "npu": "PrivateUse1"}

# By PyTorch's names.
_ITERATED = frozenset(
    """clamp clamp.Tensor clamp_max.Tensor clamp_min.Tensor addcmul addcdiv atan2 bitwise_left_shift.Tensor
    bitwise_right_shift.Tensor copysign.Tensor eq.Tensor fmax fmin fmod.Tensor remainder.Tensor ge.Tensor gt.Tensor
    le.Tensor logaddexp2 lt.Tensor maximum minimum bitwise_and.Tensor bitwise_or.Tensor bitwise_xor.Tensor heaviside
    lcm gcd leaky_relu rsub.Scalar threshold nextafter igamma igammac softshrink hardshrink gelu ne.Tensor dist
    pow.Tensor_Tensor reciprocal lerp.Scalar polygamma hypot xlogy.Tensor special_xlog1py special_zeta
    special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v
    special_chebyshev_polynomial_w special_hermite_polynomial_h special_hermite_polynomial_he
    special_laguerre_polynomial_l special_legendre_polynomial_p special_shifted_chebyshev_polynomial_t
    special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_v
    special_shifted_chebyshev_polynomial_w acos acosh bitwise_not celu cos cosh digamma elu erfc exp exp2 hardsigmoid
    isfinite lgamma log log10 log2 logaddexp mish mse_loss pow.Tensor_Scalar round.decimals rsqrt sigmoid silu sinc
    smooth_l1_loss softplus""".split()
)
_STRIDED = frozenset(
    """split.Tensor unsafe_split.Tensor diagonal_copy diagonal unsqueeze slice.Tensor glu narrow_copy view_copy
    split_with_sizes split_with_sizes_copy index_copy_ index.Tensor scatter_.src scatter_.value scatter_.reduce
    scatter_.value_reduce scatter_add_ scatter_reduce_.two sort squeeze squeeze.dim squeeze.dims squeeze_copy
    squeeze_copy.dim squeeze_copy.dims unsqueeze_copy kron""".split()
)
_MADE_LIKE_ROWS = frozenset("constant_pad_nd diag_embed _pad_circular _chunk_cat".split())
_MADE_LIKE = frozenset(
    """baddbmm bmm linalg_cross cumsum cumprod cummax cummin lu_unpack max.dim min.dim _softmax
    _softmax_backward_data _log_softmax cosine_similarity adaptive_max_pool2d adaptive_max_pool3d avg_pool3d
    reflection_pad1d replication_pad1d replication_pad2d upsample_nearest1d _upsample_nearest_exact1d
    upsample_linear1d upsample_bilinear2d upsample_bicubic2d upsample_trilinear3d avg_pool2d fractional_max_pool2d
    fractional_max_pool3d max_pool2d_with_indices topk gather index_copy scatter.src scatter.value scatter.reduce
    scatter.value_reduce scatter_add scatter_reduce.two renorm tril triu linalg_vector_norm linalg_lu
    _upsample_nearest_exact2d upsample_nearest2d index_add index_reduce""".split()
)
_MADE_SMALL = frozenset(
    """complex kthvalue ldexp.Tensor ldexp_ logical_and logical_or logical_xor mvlgamma polar logical_not logsumexp
    linalg_slogdet nll_loss_forward linalg_det linalg_lstsq linalg_pinv.atol_rtol_tensor native_batch_norm
    soft_margin_loss aminmax""".split()
)
_MADE_LIKE_TWICE = frozenset("cummax cummin".split())
_CONTIGUOUS = frozenset(
    "native_layer_norm convolution _layer_norm_output cat pixel_shuffle pixel_unshuffle native_group_norm "
    "_reshape_alias".split()
)
_EXPANDED = frozenset("expand expand_copy repeat".split())
_COPIED = frozenset(
    "masked_fill.Scalar masked_fill.Tensor masked_scatter unbind_copy.int transpose_copy.int t_copy".split()
)
_CLONED = frozenset("index_put put index_fill.int_Scalar index_fill.int_Tensor".split())
_PLACED = frozenset("as_strided_scatter select_scatter slice_scatter diagonal_scatter".split())
_COO_COPIED = frozenset(
    "masked_fill.Scalar masked_fill.Tensor masked_scatter native_layer_norm native_group_norm convolution "
    "_layer_norm_output _embedding_bag embedding_renorm_".split()
)
_COO_RESHAPED = frozenset("addr matmul".split())


def backend_name(t: Any) -> str:
    """What PyTorch calls the backend of a tensor: 'SparseCPU'."""
    kind = "" if not is_sparse(t) else "Sparse" if parts(t).layout is sparse_coo else "SparseCsr"
    where: str = t._device.type
    return kind + _BACKENDS.get(where, where)


def refused(name: str, tensors: list[Any]) -> Exception:
    """The error for an operator that has no kernel for the layouts of its arguments."""
    sparse = [t for t in tensors if is_sparse(t)]
    layouts = ", ".join(sorted({str(t.layout) for t in sparse})) or "torch.strided"
    here = f"'{name}' has no kernel for layout {layouts} here; convert with Tensor.to_dense(), or use another operator."
    words = _words(name, sparse[0], is_sparse(tensors[0])) if sparse else None
    if words is not None:
        return RuntimeError(f"{words}. {here}")
    backend = backend_name(sparse[0] if sparse else tensors[0])
    return NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the '{backend}' backend. This could be because the operator "
        f"doesn't exist for this backend, or was omitted during the selective/custom build process (if using custom "
        f"build). {here}"
    )


def _functional(name: str) -> str:
    title, dot, overload = name.partition(".")
    return title.removesuffix("_") + dot + overload


def _words(name: str, t: TensorBase, first: bool) -> str | None:
    """Where PyTorch's kernel meets a sparse tensor; None where it has no kernel."""
    layout = layout_of(t)
    if layout is sparse_coo:
        return _coo_words(name, first)
    named = NAMES[layout]
    blocks = layout is sparse_bsr or layout is sparse_bsc
    if _functional(name) in _ITERATED:
        return f"unsupported tensor layout: {named}"
    shown = f"Sparse {named.removeprefix('Sparse').upper()} tensors do not have"
    if name in _CONTIGUOUS:
        return f"{shown} is_contiguous"
    if name == "binary_cross_entropy_with_logits" and not first:
        return "unsupported memory format Preserve"
    if name == "norm.Scalar":
        return f"resize_reduction: support for output with {named} layout is not implemented"
    if name in _PLACED:
        return "copy_sparse_compressed_ expected sparse compressed tensor layout but got Strided"
    if not first:
        return f"expand is unsupported for {named} tensors" if name == "masked_scatter" else None
    if name in _STRIDED or (name in _MADE_LIKE_ROWS and not blocks):
        return f"{shown} strides"
    if blocks and (name in _MADE_LIKE or name in _MADE_LIKE_ROWS):
        return f"empty_sparse_compressed expected sparse compressed (non-block) tensor layout but got {named}"
    if name in _MADE_SMALL or (name in _MADE_LIKE_TWICE and not blocks):
        return "torch.empty: Only batched sparse compressed (non-block) tensors are supported, but got size [0]"
    if name in _EXPANDED:
        return f"expand is unsupported for {named} tensors"
    if name in _COPIED:
        return "unsupported memory format option Contiguous"
    return "unsupported memory format option Preserve" if name in _CLONED else None


def _coo_words(name: str, first: bool) -> str | None:
    if name in _COO_COPIED:
        return "unsupported memory format option Contiguous"
    if name in _COO_RESHAPED:
        return "reshape is not implemented for sparse tensors"
    if name == ("bernoulli" if first else "binary_cross_entropy_with_logits"):
        return "memory format option is only supported by strided tensors"
    if not first:
        return None
    if name in _CLONED:
        return "unsupported memory format option Preserve"
    if _functional(name) in ("addr", "linear", "embedding", "_reshape_alias"):
        return "reshape is not implemented for sparse tensors"
    if _functional(name) in ("ldexp.Tensor", "linalg_pinv.atol_rtol_tensor"):
        return "full(...) is not implemented for sparse layout"
    return "expand is unsupported for Sparse tensors" if name in ("repeat", "expand") else None
