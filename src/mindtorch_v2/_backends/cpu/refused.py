"""Dtypes that PyTorch's CPU kernels refuse, by operator, where ours would compute: one dtype (`REFUSED`), or several
in one call (`ALIKE`).

Invariant: a name is an operator's, or that of its in-place or `out=` form; beside it is the kernel that PyTorch's error
names. Two-byte floats are not listed: where PyTorch's kernels lack them, ours are of use.
"""

from __future__ import annotations

from typing import NamedTuple

from ..._ops.rules.dtype_checks import (
    ARITHMETIC,
    BOOL,
    COMPLEX,
    COMPLEX_HALF,
    EXPONENTS,
    FLOAT8,
    FLOATS,
    INTS,
    UNSIGNED,
    WIDE_FLOATS,
)

SMALL_FLOATS = FLOAT8 | EXPONENTS
INT64 = 1 << 4
UINT8 = 1 << 0

# A line: the operator, and the kernel where it has another name.
_TABLE: tuple[tuple[int, str], ...] = (
    (COMPLEX | BOOL, "index_reduce index_func_"),
    (
        COMPLEX_HALF,
        """
        linalg_cross cross
        equal equal_cpu
    """,
    ),
    (
        SMALL_FLOATS,
        """
        frexp.Tensor frexp_cpu
        linalg_vector_norm norm_cpu
        linalg_matrix_exp sum_cpu
        native_group_norm GroupNormKernelImpl
        native_batch_norm batch_norm
        _native_batch_norm_legit batch_norm
        _batch_norm_with_update batch_norm
        native_batch_norm_backward batch_norm_backward_cpu
        _adaptive_avg_pool2d adaptive_avg_pool2d
        adaptive_max_pool2d
        adaptive_max_pool3d adaptive_max_pool3d_cpu
        avg_pool2d
        avg_pool2d_backward
        avg_pool3d avg_pool3d_out_frame
        avg_pool3d_backward avg_pool3d_backward_out_frame
        max_pool2d_with_indices max_pool2d
        max_pool3d_with_indices max_pool3d
        upsample_nearest1d compute_indices_weights_nearest
        upsample_nearest2d upsample_nearest2d_channels_last
        _upsample_nearest_exact1d compute_indices_weights_nearest
        _upsample_nearest_exact2d upsample_nearest2d_channels_last
        upsample_linear1d compute_indices_weights_linear
        upsample_bilinear2d upsample_bilinear2d_channels_last
        upsample_bicubic2d compute_indices_weights_cubic
        upsample_trilinear3d compute_indices_weights_linear
        glu glu_cpu
        glu_backward sigmoid_cpu_reduced_float
        binary_cross_entropy
        histc linspace_cpu
        embedding_renorm norm_cpu
        embedding_renorm_ norm_cpu
        convolution slow_conv2d_cpu
    """,
    ),
    (SMALL_FLOATS | INT64, "_adaptive_avg_pool2d_backward adaptive_avg_pool2d_backward"),
    (
        SMALL_FLOATS | UINT8,
        """
        _upsample_bilinear2d_aa_backward upsample_bilinear2d_aa_backward_cpu
        upsample_nearest1d_backward
        upsample_nearest2d_backward
        _upsample_nearest_exact1d_backward
        _upsample_nearest_exact2d_backward
        upsample_linear1d_backward
        upsample_bilinear2d_backward
        upsample_bicubic2d_backward
        upsample_trilinear3d_backward
    """,
    ),
    (SMALL_FLOATS | COMPLEX_HALF, "logcumsumexp logcumsumexp_out_cpu"),
    (
        SMALL_FLOATS | COMPLEX_HALF | COMPLEX,
        """
        unique_consecutive unique
        _unique_consecutive unique
    """,
    ),
    (
        SMALL_FLOATS | INTS,
        """
        reflection_pad1d_backward
        reflection_pad2d_backward
        replication_pad1d_backward
        replication_pad2d_backward
        binary_cross_entropy_with_logits log_sigmoid_cpu
    """,
    ),
    (SMALL_FLOATS | INTS | COMPLEX, "native_group_norm_backward GroupNormBackwardKernelImpl"),
    (
        SMALL_FLOATS | UNSIGNED,
        """
        isin.Tensor_Tensor isin_default_cpu
        lu_unpack tril
        heaviside heaviside_cpu
        mode mode_cpu
        max.dim max_cpu
        min.dim min_cpu
        aminmax aminmax_cpu
        cummax cummax_cpu
        cummin cummin_cpu
        topk topk_cpu
        nonzero nonzero_count_cpu
        count_nonzero nonzero_count_cpu
        aten::_to_sparse nonzero_count_cpu
        aten::_to_sparse.sparse_dim nonzero_count_cpu
    """,
    ),
    (
        SMALL_FLOATS | UNSIGNED | BOOL,
        """
        bucketize searchsorted_out_cpu
        searchsorted searchsorted_out_cpu
    """,
    ),
    (
        SMALL_FLOATS | UNSIGNED | COMPLEX_HALF,
        """
        addr addr_cpu
        put take_put_cpu
        masked_scatter
        gather scatter_gather_tensor_cpu
        scatter.src scatter_gather_tensor_cpu
        scatter.value scatter_gather_scalar_cpu
        take take_cpu
        reflection_pad1d
        reflection_pad2d
        replication_pad1d
        replication_pad2d
        pixel_shuffle
        pixel_unshuffle
        channel_shuffle
    """,
    ),
    (SMALL_FLOATS | UNSIGNED | COMPLEX_HALF | BOOL, "_trilinear bmm"),
    (SMALL_FLOATS | UNSIGNED | COMPLEX_HALF | COMPLEX | BOOL, "mse_loss_backward mse_backward_cpu_out"),
    (
        SMALL_FLOATS | UNSIGNED | INTS | COMPLEX_HALF | COMPLEX | BOOL,
        """
        max_unpool2d
        max_unpool3d
    """,
    ),
    (INTS, "binary_cross_entropy_backward"),
    (INTS | BOOL, "log_sigmoid_backward log_sigmoid_backward_cpu"),
    (
        INTS | COMPLEX | BOOL,
        """
        adaptive_max_pool2d_backward
        adaptive_max_pool3d_backward
        max_pool2d_with_indices_backward max_pool2d_backward
        max_pool3d_with_indices_backward max_pool3d_backward
    """,
    ),
    (
        UNSIGNED,
        """
        masked_select
        cumsum_ cumsum_out_cpu
        cumprod_ cumprod_out_cpu
        index_fill.int_Tensor index_fill_cpu
        index_fill.int_Scalar index_fill_cpu
        index_copy index_copy_cpu
        index_put
        index_put_ index_put
    """,
    ),
    (UNSIGNED | INTS, "multi_margin_loss multi_margin_loss_cpu_kernel"),
)


def _read() -> dict[str, tuple[int, str]]:
    found: dict[str, tuple[int, str]] = {}
    for dtypes, lines in _TABLE:
        for line in lines.strip().splitlines():
            name, _, kernel = line.strip().partition(" ")
            found[name] = (dtypes, kernel or name)
    return found


REFUSED = _read()


class Alike(NamedTuple):
    """Tensors of one dtype: those at `others` must have that of the one at `first`, those at `parameters` too, or
    float32 beside two-byte floats.

    `words` refuses others, `own` has what is said of single places. What is said of a mixed call whose first dtype is
    not among `accepts` names `kernel`. With `casts` dtypes are promoted, and the result must be castable to that of
    `first`. What is at `whole`, if that is a place, must be int64. With `idle` nothing is asked without elements.
    """

    first: int
    others: tuple[int, ...]
    parameters: tuple[int, ...]
    words: str
    own: dict[int, str]
    accepts: int
    kernel: str
    casts: bool
    whole: int
    idle: bool


ANY = -1
_SCALAR = "expected scalar type {want} but found {got}"
_FOUND = "Found dtype {got} but expected {want}"
_CAST = "result type {got} can't be cast to the desired output type {want}"
_PARAMETER = "mixed dtype (CPU): expect parameter to have scalar type of {want}"
_GROUPS = "Expected scalar types of X and dY are same."

ALIKE: dict[str, Alike] = {}


def _alike(
    names: str,
    first: int,
    others: tuple[int, ...],
    words: str = _SCALAR,
    *,
    parameters: tuple[int, ...] = (),
    own: dict[int, str] | None = None,
    accepts: int = ANY,
    kernel: str = "{}",
    whole: int = -1,
) -> None:
    for name in names.split():
        ALIKE[name] = Alike(
            first,
            others,
            parameters,
            words,
            own or {},
            accepts,
            kernel.format(name),
            words is _CAST,
            whole,
            words is _SCALAR,
        )


for _kind in ("reflection", "replication"):
    for _rank in (1, 2, 3):
        _alike(f"{_kind}_pad{_rank}d_backward", 0, (1,), accepts=FLOATS | COMPLEX)
_POOLED = "expected dtype {c_want} for `gradOutput` but got dtype {c_got}"
_alike("adaptive_max_pool2d_backward", 1, (0,), _POOLED.replace("gradOutput", "grad_output"), whole=2)
_alike("adaptive_max_pool3d_backward", 1, (0,), _POOLED, whole=2)
_alike("max_pool2d_with_indices_backward max_pool3d_with_indices_backward", 1, (0,), _POOLED, whole=7)
_alike("avg_pool2d_backward", 1, (0,), _POOLED)
_alike("avg_pool3d_backward", 1, (0,), accepts=WIDE_FLOATS | INT64, kernel="{}_out_frame")
_FRACTIONAL = "fractional_max_pool2d_backward fractional_max_pool3d_backward"
_alike(_FRACTIONAL, 1, (0,), accepts=FLOATS, kernel="{}_out_frame", whole=4)
_alike("convolution_backward", 0, (1, 2))
_alike("_embedding_bag_per_sample_weights_backward", 0, (1,), accepts=FLOATS, kernel="{}_cpu")
_alike("native_batch_norm_backward", 1, (0,), parameters=(3, 4, 5, 6), accepts=FLOATS, kernel="batch_norm_backward_cpu")
_alike("native_group_norm_backward", 1, (0,), parameters=(2, 3, 4), own={0: _GROUPS, 2: _PARAMETER})
_alike(
    "native_layer_norm_backward", 1, (0,), parameters=(3, 4, 5, 6), accepts=FLOATS, kernel="LayerNormBackwardKernelImpl"
)
_alike("_prelu_kernel binary_cross_entropy_backward", 0, (1, 2), _FOUND)
_alike("_prelu_kernel_backward huber_loss_backward log_sigmoid_backward", 1, (0, 2), _FOUND)
_alike("glu_backward", 1, (0,), _FOUND, accepts=ARITHMETIC, kernel="sigmoid_cpu_reduced_float")
_alike("huber_loss", 0, (1,), _CAST)
_alike("mish_backward", 1, (0,), _CAST)
_alike("mse_loss_backward", 1, (0, 2), _CAST, accepts=~COMPLEX, kernel="mse_backward_cpu_out")
_alike("smooth_l1_loss_backward", 1, (0, 2), _CAST, accepts=~COMPLEX, kernel="smooth_l1_backward_cpu_out")
