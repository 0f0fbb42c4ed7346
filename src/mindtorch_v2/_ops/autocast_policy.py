"""What autocast does with each operator, by device type: the one table of it.

Invariant: names are PyTorch's, and stand for all overloads of an operator that make new results; in-place and `out=`
forms are never cast. An operator that is not listed runs in the dtypes it is given, and if it is made of others these
are cast one by one. Names without a row here are PyTorch's all the same: their parts have one, or will.
"""
from __future__ import annotations

# Everything is cast to the autocast dtype; to float32; to the widest of the arguments.
LOWER = "lower_precision_fp"
FP32 = "fp32"
PROMOTE = "promote"
# The result is float32 by the operator's own `dtype` argument, unless the caller gave one.
FP32_DTYPE = "fp32_set_opt_dtype"
# The same for operators that have another overload with `dtype`.
FP32_APPEND = "fp32_append_dtype"
BANNED = "banned"

_LOSSES = (
    "binary_cross_entropy_with_logits cosine_embedding_loss hinge_embedding_loss huber_loss kl_div l1_loss "
    "margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss nll_loss nll_loss2d poisson_nll_loss "
    "smooth_l1_loss soft_margin_loss triplet_margin_loss")
_PRODUCTS = (
    "addbmm addmm baddbmm bmm conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d "
    "linalg_vecdot linear matmul mm prelu scaled_dot_product_attention _convolution")

_LISTS: dict[str, dict[str, str]] = {
    "cpu": {
        LOWER: f"{_PRODUCTS} _addmm_activation _native_multi_head_attention mkldnn_rnn_layer",
        PROMOTE: "cat index_copy stack",
        FP32:
            f"{_LOSSES} _grid_sampler_2d_cpu_fallback _lu_with_info adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d "
            "binary_cross_entropy cdist cholesky cholesky_inverse cholesky_solve cross_entropy_loss ctc_loss "
            "fake_quantize_per_tensor_affine fft_fft fft_fft2 fft_fftn fft_hfft fft_ifft fft_ifft2 fft_ifftn fft_ihfft "
            "fft_irfft fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftn fractional_max_pool2d fractional_max_pool3d "
            "geqrf grid_sampler grid_sampler_2d grid_sampler_3d inverse linalg_cholesky linalg_cholesky_ex linalg_cond "
            "linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh linalg_householder_product linalg_inv linalg_inv_ex "
            "linalg_lstsq linalg_matrix_rank linalg_qr linalg_solve linalg_svd linalg_svdvals linalg_tensorinv "
            "linalg_tensorsolve lu_solve max_pool3d max_unpool2d max_unpool3d multilabel_margin_loss_forward "
            "nanquantile orgqr ormqr pinverse polar prod qr quantile reflection_pad1d reflection_pad2d "
            "replication_pad1d replication_pad2d replication_pad3d stft svd trace triangular_solve view_as_complex",
    },
    # An NPU's autocast is that of PyTorch's other accelerators.
    "npu": {
        LOWER:
            f"{_PRODUCTS} _scaled_dot_product_flash_attention _thnn_fused_gru_cell _thnn_fused_lstm_cell addmv addr "
            "chain_matmul convolution cudnn_convolution cudnn_convolution_transpose einsum gru_cell linalg_multi_dot "
            "lstm_cell mv rnn_relu_cell rnn_tanh_cell",
        PROMOTE:
            "addcdiv addcmul atan2 bilinear cross dot grid_sampler index_put scatter_add tensordot vdot",
        FP32:
            f"{_LOSSES} _upsample_bicubic2d_aa _upsample_bilinear2d_aa _upsample_nearest_exact1d "
            "_upsample_nearest_exact2d _upsample_nearest_exact3d acos asin cdist cosh cosine_similarity dist erfinv "
            "exp expm1 frobenius_norm group_norm layer_norm log log10 log1p log2 logsumexp native_layer_norm "
            "nuclear_norm pdist pow reciprocal renorm rms_norm rsqrt sinh softplus tan upsample_bicubic2d "
            "upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d "
            "upsample_nearest3d upsample_trilinear3d",
        FP32_DTYPE: "cumprod cumsum linalg_matrix_norm linalg_vector_norm log_softmax prod softmax sum",
        FP32_APPEND: "norm",
        BANNED: "binary_cross_entropy",
    },
}
# Rows that do the work of a listed operator and do not call it.
INSTEAD = {"nll_loss_nd": "nll_loss", "square": "pow"}
# Rows with a derivative of their own, which PyTorch all the same computes by operators that are cast.
CAST_INSIDE = frozenset(("linalg_pinv",))
POLICY: dict[str, dict[str, str]] = {
    device: {name: policy for policy, names in lists.items() for name in names.split()}
    for device, lists in _LISTS.items()
}
for _table in POLICY.values():
    _table.update({row: _table[name] for row, name in INSTEAD.items() if name in _table})

BANNED_TEXT = (
    "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
    "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
    "In this case, combine the two layers using torch.nn.functional.binary_cross_entropy_with_logits\n"
    "or torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits are\n"
    "safe to autocast.")
