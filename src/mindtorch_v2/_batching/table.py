"""Which kind each row is: from its shape rule where that says it, by name where it does not.

Invariant: a name stands in one place. What is in none, and has no parts, is served by the loop.
"""

from __future__ import annotations

from typing import Any

from .._dispatch import registry
from .._dispatch.op import Op
from .._ops.rules.dtype_checks import Accept
from .._ops.rules.pointwise import Pointwise
from . import contract, indexing, parts
from .kernel import Rule, all_many, together
from .kernel import parts as made_of
from .kinds import (
    along,
    copied,
    filled,
    images,
    in_shape,
    joined,
    leading,
    made,
    operands,
    pointwise,
    reduction,
    repeated,
    rolled,
    served,
    sized,
    strided_map,
    trailing,
    whole,
)
from .level import Level, is_many, outside
from .random import drawn

# Rules of shape that say "elementwise".
_ELEMENTWISE = ("Additive", "Choose", "Power", "Clamp", "Lerp", "AddScaled", "Where", "MaskedFill")

_TABLE: dict[str, tuple[Rule, str]] = {
    "elementwise": (
        pointwise,
        "complex polar polygamma polygamma.method nan_to_num angle hardtanh log_sigmoid softshrink heaviside ldexp "
        "frexp.Tensor mvlgamma _standard_gamma_grad _dirichlet_grad copy fill zero _add_relu native_dropout_backward "
        "_lazy_clone",
    ),
    "copies": (copied, "clone to_copy"),
    "new": (
        made,
        "empty_like zeros_like ones_like full_like new_empty new_zeros new_ones new_full new_empty_strided",
    ),
    "reductions": (
        reduction,
        "sum mean prod nansum amax amin argmax argmin aminmax any all count_nonzero var.correction std.correction "
        "var_mean.correction std_mean.correction linalg_vector_norm logsumexp hash_tensor",
    ),
    "along": (
        along,
        "max.dim min.dim cumsum cumprod cummax cummin logcumsumexp flip _softmax _log_softmax _softmax_backward_data "
        "_log_softmax_backward_data _safe_softmax sort sort.stable topk kthvalue mode median.dim nanmedian.dim gather "
        "scatter.src scatter.reduce scatter.value scatter.value_reduce scatter_add scatter_reduce _fft_c2c _fft_r2c "
        "_fft_c2r linalg_cross _aminmax.dim glu glu_backward",
    ),
    "sized": (sized, "select_backward slice_backward diagonal_backward unfold_backward"),
    "joined": (joined, "cat stack"),
    "roll": (rolled, "roll"),
    "strided": (strided_map, "_strided_map"),
    "repeat": (repeated, "repeat"),
    "shape": (in_shape, "_unsafe_view _squeeze_row"),
    "matrices": (
        leading(2),
        "tril triu linalg_lu_factor_ex linalg_det linalg_slogdet linalg_inv_ex linalg_cholesky_ex linalg_qr "
        "_linalg_eigh linalg_eig _linalg_svd linalg_matrix_exp geqrf cholesky_inverse linalg_ldl_factor_ex",
    ),
    "last dimensions": (trailing, "constant_pad_nd pixel_shuffle pixel_unshuffle"),
    "with pivots": (leading(2, 1), "lu_unpack linalg_householder_product"),
    "two matrices": (leading(2, 2), "linalg_solve_triangular cholesky_solve"),
    "factors": (leading(2, 1, 2), "linalg_lu_solve linalg_ldl_solve ormqr"),
    "solve": (parts.solve, "_linalg_solve_ex"),
    "lines": (images(1), "reflection_pad1d replication_pad1d upsample_nearest1d _upsample_nearest_exact1d "
              "upsample_linear1d reflection_pad1d_backward replication_pad1d_backward upsample_nearest1d_backward "
              "_upsample_nearest_exact1d_backward upsample_linear1d_backward"),
    "images": (images(2), "avg_pool2d avg_pool2d_backward max_pool2d_with_indices max_pool2d_with_indices_backward "
               "_adaptive_avg_pool2d _adaptive_avg_pool2d_backward adaptive_max_pool2d adaptive_max_pool2d_backward "
               "max_unpool2d reflection_pad2d reflection_pad2d_backward replication_pad2d replication_pad2d_backward "
               "upsample_nearest2d upsample_nearest2d_backward _upsample_nearest_exact2d "
               "_upsample_nearest_exact2d_backward upsample_bilinear2d upsample_bilinear2d_backward upsample_bicubic2d "
               "upsample_bicubic2d_backward _upsample_bilinear2d_aa _upsample_bilinear2d_aa_backward "
               "_upsample_bicubic2d_aa _upsample_bicubic2d_aa_backward _upsample_lanczos2d_aa "
               "_upsample_lanczos2d_aa_backward im2col"),
    "volumes": (images(3), "avg_pool3d avg_pool3d_backward max_pool3d_with_indices max_pool3d_with_indices_backward "
                "_adaptive_avg_pool3d _adaptive_avg_pool3d_backward adaptive_max_pool3d adaptive_max_pool3d_backward "
                "max_unpool3d reflection_pad3d reflection_pad3d_backward replication_pad3d replication_pad3d_backward "
                "upsample_nearest3d upsample_nearest3d_backward _upsample_nearest_exact3d "
                "_upsample_nearest_exact3d_backward upsample_trilinear3d upsample_trilinear3d_backward"),
    "columns": (images(1), "col2im"),
    "mm": (contract.mm, "mm"),
    "bmm": (contract.bmm, "bmm"),
    "mv": (contract.mv, "mv"),
    "dot": (contract.dot, "dot"),
    "convolution": (contract.convolution, "convolution"),
    "its backward": (contract.convolution_backward, "convolution_backward"),
    "index": (indexing.index, "index"),
    "index_put": (indexing.index_put, "index_put"),
    "embedding": (indexing.embedding, "embedding"),
    "embedding's backward": (indexing.embedding_dense_backward, "embedding_dense_backward"),
    "masked_select": (indexing.masked_select, "masked_select"),
    "layer norm": (parts.layer_norm, "native_layer_norm _layer_norm_output"),
    "layer norm's backward": (parts.layer_norm_backward, "native_layer_norm_backward"),
    "searchsorted": (parts.searchsorted, "searchsorted"),
    "maximum": (whole("amax"), "max"),
    "minimum": (whole("amin"), "min"),
    "median": (whole("median.dim"), "median"),
    "nanmedian": (whole("nanmedian.dim"), "nanmedian"),
    "both ends": (whole("_aminmax.dim"), "_aminmax"),
    "dynamic": (indexing.dynamic, "nonzero"),
}  # fmt: skip

_DECOMPOSED: dict[str, Any] = {
    "addmm": contract.added("mm"),
    "baddbmm": contract.added("bmm"),
    "addmv": contract.added("mv"),
    "index_fill.int_Tensor": indexing.index_fill,
    "index_fill.int_Scalar": indexing.index_fill,
    "take": indexing.take,
    "masked_scatter": indexing.masked_scatter,
    "mse_loss": parts.mse_loss,
    "mse_loss_backward": parts.mse_loss_backward,
    "nll_loss_forward": parts.nll_loss_forward,
    "nll_loss_backward": parts.nll_loss_backward,
    "trace": parts.trace,
    "diag_embed": parts.diag_embed,
}

# Their parts write into one of the arguments' copies: all are made many first.
_WRITTEN = frozenset("select_scatter slice_scatter diagonal_scatter as_strided_scatter put index_reduce".split())

_NAMED: dict[str, Rule] = {
    **{name: served(rule) for rule, names in _TABLE.values() for name in names.split()},
    **{name: together(rule) for name, rule in indexing.SELECTS.items()},
    **dict.fromkeys(("fill", "masked_fill"), together(filled)),
    **{name: made_of(fn) for name, fn in _DECOMPOSED.items()},
}


def _elementwise(op: Op) -> bool:
    rule = op.rule
    return isinstance(rule, (Pointwise, Accept)) or type(rule).__name__ in _ELEMENTWISE


def is_random(op: Op) -> bool:
    named = op.functional or op
    return any(a.kind == "Generator" for a in op.schema.args) or named.title() in ("rand_like", "randn_like",
                                                                                 "randint_like")  # fmt: skip


_KINDS: dict[str, str] = {name: kind for kind, (_, names) in _TABLE.items() for name in names.split()}


def kind_name(op: Op) -> str:
    """What kind of row an operator is, by the table's words; "" where none says it."""
    if is_random(op):
        return "random"
    found = _KINDS.get(op.name, "")
    return "elementwise" if not found and op.functional is None and _elementwise(op) else found


def kind_of(op: Op) -> Rule | None:
    """The rule of an operator by its kind; None where it has none."""
    if is_random(op):
        return drawn
    found = _NAMED.get(op.name)
    if found is None and op.functional is None and _elementwise(op):
        return served(pointwise)
    if op.name in _WRITTEN:
        return together(all_many(op.row.fallback.fn))
    return found


def write_straight(op: Op, args: tuple[Any, ...], level: Level) -> bool:
    """Write an elementwise operator's result into the target at once; False where the kind is another."""
    func = op.functional
    assert func is not None
    if not is_many(args[0], level) or not (_elementwise(func) or func.name in ("copy", "fill", "zero", "masked_fill")):
        return False
    if func.name == "fill" and is_many(args[1], level):
        # A number for each of the many.
        op, args = registry.get("copy_"), (args[0], args[1], False)
        func = registry.get("copy")
    elif func.name == "masked_fill" and is_many(args[2], level):
        return False
    with outside():
        op.call(operands(func, args, level))
    return True
