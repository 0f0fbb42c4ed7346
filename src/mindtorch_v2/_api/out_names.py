"""PyTorch's names of the `out=` overloads that `torch.ops.aten` has beside the rows' own.

Each is said by its functional overload. Invariant: names alone; what such an overload takes and does follows from the
functional one (`out_forms`).
"""

from __future__ import annotations

# Called `<overload>_out`, or `out` for the default overload; the results are `out`, or `out0`, `out1` and so on.
_USUAL = """
__lshift__.Scalar __lshift__.Tensor __rshift__.Scalar __rshift__.Tensor _adaptive_avg_pool2d
_adaptive_avg_pool2d_backward _adaptive_avg_pool3d _adaptive_avg_pool3d_backward _add_relu.Scalar _aminmax
_aminmax.dim _cdist_forward _convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo _convolution _ctc_loss
_ctc_loss.Tensor _dirichlet_grad _embedding_bag _embedding_bag_dense_backward _embedding_bag_forward_only
_embedding_bag_per_sample_weights_backward _euclidean_dist _fake_quantize_learnable_per_channel_affine
_fake_quantize_learnable_per_tensor_affine _fake_quantize_per_tensor_affine_cachemask_tensor_qparams _fft_c2c _fft_c2r
_fft_r2c _foobar _foreach_abs _foreach_acos _foreach_add.List _foreach_add.Scalar _foreach_add.ScalarList
_foreach_add.Tensor _foreach_addcdiv.Scalar _foreach_addcdiv.ScalarList _foreach_addcdiv.Tensor
_foreach_addcmul.Scalar _foreach_addcmul.ScalarList _foreach_addcmul.Tensor _foreach_asin _foreach_atan _foreach_ceil
_foreach_clamp_max.List _foreach_clamp_max.Scalar _foreach_clamp_max.ScalarList _foreach_clamp_min.List
_foreach_clamp_min.Scalar _foreach_clamp_min.ScalarList _foreach_clone _foreach_cos _foreach_cosh _foreach_div.List
_foreach_div.Scalar _foreach_div.ScalarList _foreach_div.Tensor _foreach_erf _foreach_erfc _foreach_exp _foreach_expm1
_foreach_floor _foreach_frac _foreach_lerp.List _foreach_lerp.Scalar _foreach_lerp.ScalarList _foreach_lgamma
_foreach_log _foreach_log10 _foreach_log1p _foreach_log2 _foreach_max _foreach_maximum.List _foreach_maximum.Scalar
_foreach_maximum.ScalarList _foreach_minimum.List _foreach_minimum.Scalar _foreach_minimum.ScalarList
_foreach_mul.List _foreach_mul.Scalar _foreach_mul.ScalarList _foreach_mul.Tensor _foreach_neg _foreach_norm.Scalar
_foreach_pow.List _foreach_pow.Scalar _foreach_pow.ScalarList _foreach_powsum.Scalar _foreach_reciprocal
_foreach_round _foreach_rsqrt _foreach_sigmoid _foreach_sign _foreach_sin _foreach_sinh _foreach_sqrt
_foreach_sub.List _foreach_sub.Scalar _foreach_sub.ScalarList _foreach_tan _foreach_tanh _foreach_trunc
_fw_primal_copy _grid_sampler_2d_cpu_fallback _histogramdd_bin_edges _histogramdd_from_bin_cts
_histogramdd_from_bin_tensors _indices_copy _log_softmax_backward_data _logcumsumexp _make_dual_copy _masked_softmax
_masked_softmax_backward _native_batch_norm_legit_no_training _native_multi_head_attention
_new_zeros_with_same_feature_meta _pack_padded_sequence _pdist_forward _pin_memory _reshape_alias_copy
_sample_dirichlet _scaled_mm _scaled_mm_v2 _sparse_addmm _sparse_broadcast_to_copy _sparse_csr_prod.dim_dtype
_sparse_csr_sum.dim_dtype _sparse_log_softmax_backward_data _sparse_softmax_backward_data _sparse_sparse_matmul
_sparse_sum.dim _stack _standard_gamma _standard_gamma_grad _test_autograd_multiple_dispatch.fullcoverage
_test_autograd_multiple_dispatch_view_copy _test_functorch_fallback _test_optional_filled_intlist
_test_optional_floatlist _test_optional_intlist _test_warn_in_autograd _thnn_fused_gru_cell
_thnn_fused_gru_cell_backward _thnn_fused_lstm_cell _thnn_fused_lstm_cell_backward_impl _to_dense
_transform_bias_rescale_qkv _transformer_encoder_layer_fwd _trilinear _unique _unique2 _unsafe_view _values_copy
_weight_norm_interface absolute adaptive_avg_pool1d add.Scalar affine_grid_generator arccos arccosh arcsin arcsinh
arctan arctan2 arctanh argsort.stable as_strided_scatter avg_pool1d batch_norm_backward_elemt
batch_norm_backward_reduce batch_norm_elemt batch_norm_gather_stats batch_norm_gather_stats_with_counts
batch_norm_stats batch_norm_update_stats bernoulli.Tensor binary_cross_entropy binary_cross_entropy_with_logits
bincount binomial bitwise_and.Scalar bitwise_and.Scalar_Tensor bitwise_and.Tensor bitwise_left_shift.Scalar_Tensor
bitwise_left_shift.Tensor bitwise_left_shift.Tensor_Scalar bitwise_or.Scalar bitwise_or.Scalar_Tensor
bitwise_or.Tensor bitwise_right_shift.Scalar_Tensor bitwise_right_shift.Tensor bitwise_right_shift.Tensor_Scalar
bitwise_xor.Scalar bitwise_xor.Scalar_Tensor bitwise_xor.Tensor bucketize.Scalar bucketize.Tensor cauchy
ccol_indices_copy celu channel_shuffle clamp.Tensor clamp_max.Tensor clamp_min.Tensor clip clip.Tensor clone
col_indices_copy concat concatenate conj_physical constant_pad_nd conv_tbc convolution convolution_backward copy
copysign.Scalar crow_indices_copy dequantize.self diagonal_backward diagonal_scatter dist div.Scalar embedding
embedding_dense_backward embedding_renorm eq.Scalar eq.Tensor exponential fake_quantize_per_channel_affine_cachemask
fake_quantize_per_tensor_affine_cachemask fill.Scalar fill.Tensor fix flip float_power.Scalar
float_power.Tensor_Scalar float_power.Tensor_Tensor fmod.Scalar fmod.Tensor ge.Scalar ge.Tensor geometric
greater.Scalar greater.Tensor greater_equal.Scalar greater_equal.Tensor grid_sampler_2d grid_sampler_3d gt.Scalar
gt.Tensor hardswish_backward huber_loss index.Tensor index_fill.int_Scalar index_fill.int_Tensor index_put
indices_copy isinf isnan le.Scalar le.Tensor lerp.Scalar lerp.Tensor less.Scalar less.Tensor less_equal.Scalar
less_equal.Tensor linalg_matrix_exp log_normal log_softmax.int lt.Scalar lt.Tensor masked_fill.Scalar
masked_fill.Tensor masked_scatter mul.Scalar multi_margin_loss multilabel_margin_loss native_batch_norm_backward
native_dropout native_dropout_backward native_group_norm native_group_norm_backward native_layer_norm
native_layer_norm_backward ne.Scalar ne.Tensor negative nll_loss nll_loss2d not_equal.Scalar not_equal.Tensor
pixel_shuffle pixel_unshuffle poisson pow.Scalar pow.Tensor_Scalar pow.Tensor_Tensor put relu remainder.Scalar
remainder.Scalar_Tensor remainder.Tensor repeat repeat_interleave.Tensor roll rot90 row_indices_copy rsub.Scalar
rsub.Tensor scatter_reduce.two searchsorted.Scalar searchsorted.Tensor select_backward select_copy.int select_scatter
slice_backward slice_copy.Tensor slow_conv3d slow_conv_dilated2d slow_conv_dilated3d slow_conv_transpose2d
slow_conv_transpose3d smooth_l1_loss softmax.int special_chebyshev_polynomial_t.n_scalar
special_chebyshev_polynomial_t.x_scalar special_chebyshev_polynomial_u.n_scalar
special_chebyshev_polynomial_u.x_scalar special_chebyshev_polynomial_v.n_scalar
special_chebyshev_polynomial_v.x_scalar special_chebyshev_polynomial_w.n_scalar
special_chebyshev_polynomial_w.x_scalar special_hermite_polynomial_h.n_scalar special_hermite_polynomial_h.x_scalar
special_hermite_polynomial_he.n_scalar special_hermite_polynomial_he.x_scalar special_laguerre_polynomial_l.n_scalar
special_laguerre_polynomial_l.x_scalar special_legendre_polynomial_p.n_scalar special_legendre_polynomial_p.x_scalar
special_shifted_chebyshev_polynomial_t.n_scalar special_shifted_chebyshev_polynomial_t.x_scalar
special_shifted_chebyshev_polynomial_u.n_scalar special_shifted_chebyshev_polynomial_u.x_scalar
special_shifted_chebyshev_polynomial_v.n_scalar special_shifted_chebyshev_polynomial_v.x_scalar
special_shifted_chebyshev_polynomial_w.n_scalar special_shifted_chebyshev_polynomial_w.x_scalar
special_xlog1py.other_scalar special_xlog1py.self_scalar special_xlogy.other_scalar special_xlogy.self_scalar
special_zeta.other_scalar special_zeta.self_scalar split_copy.Tensor std_mean.correction sub.Scalar thnn_conv2d trace
transpose_copy.int unbind_copy.int unfold_backward unique_consecutive unique_dim unique_dim_consecutive
unsafe_split.Tensor unsafe_split_with_sizes upsample_bilinear2d.vec upsample_nearest2d.vec values_copy
var_mean.correction where.self zero
"""

# By the name of the overload and of its results (none: the usual ones).
_NAMED: dict[tuple[str, str], str] = {
    ("IntList_out", ""): "sum.dim_IntList",
    ("L", "L info"): "linalg_cholesky_ex",
    ("OutScalar_Other", ""): "xlogy.Scalar_Other",
    ("OutScalar_Self", ""): "xlogy.Scalar_Self",
    ("OutTensor", ""): "xlogy.Tensor",
    ("Q", "Q R"): "qr",
    ("U", "U S V"): "svd",
    ("U", "U S Vh"): "_linalg_svd linalg_svd",
    ("X", "X M"): "triangular_solve",
    ("a", "a tau"): "geqrf",
    ("dim_max", "max max_values"): "max.dim",
    ("dim_min", "min min_indices"): "min.dim",
    ("dim_values", "values indices"): "median.dim nanmedian.dim",
    ("eigenvalues", "eigenvalues eigenvectors"): "_linalg_eigh",
    ("eigvals", "eigvals eigvecs"): "linalg_eigh",
    ("grad_input", "grad_input"): (
        "_upsample_bicubic2d_aa_backward _upsample_bilinear2d_aa_backward _upsample_lanczos2d_aa_backward "
        "_upsample_nearest_exact1d_backward _upsample_nearest_exact2d_backward _upsample_nearest_exact3d_backward "
        "adaptive_max_pool2d_backward adaptive_max_pool3d_backward avg_pool2d_backward avg_pool3d_backward "
        "binary_cross_entropy_backward elu_backward gelu_backward glu_backward hardshrink_backward "
        "hardsigmoid_backward hardtanh_backward leaky_relu_backward log_sigmoid_backward "
        "max_pool2d_with_indices_backward max_pool3d_with_indices_backward mse_loss_backward nll_loss2d_backward "
        "nll_loss_backward "
        "reflection_pad1d_backward reflection_pad2d_backward reflection_pad3d_backward replication_pad1d_backward "
        "replication_pad2d_backward replication_pad3d_backward sigmoid_backward silu_backward smooth_l1_loss_backward "
        "softplus_backward softshrink_backward tanh_backward threshold_backward upsample_bicubic2d_backward "
        "upsample_bilinear2d_backward upsample_linear1d_backward upsample_nearest1d_backward "
        "upsample_nearest2d_backward upsample_nearest3d_backward upsample_trilinear3d_backward"
    ),
    ("int_out", ""): "prod.dim_int",
    ("inverse", "inverse info"): "linalg_inv_ex",
    ("out", ""): (
        "divide.Tensor max.other min.other multiply.Tensor std.dim subtract.Tensor true_divide.Tensor var.dim"
    ),
    ("out", "grad_input"): "_softmax_backward_data huber_loss_backward",
    ("out_mode", ""): "div.Tensor_mode divide.Tensor_mode",
    ("out_rcond_tensor", ""): "linalg_pinv.rcond_tensor",
    ("out_tol_tensor", ""): "linalg_matrix_rank.tol_tensor",
    ("output", "output buffer"): "log_sigmoid_forward",
    ("output", "output indices"): "fractional_max_pool2d fractional_max_pool3d",
    ("output", "output total_weight"): "nll_loss2d_forward nll_loss_forward",
    ("result", "result LU pivots"): "_linalg_det",
    ("result", "result LU pivots info"): "_linalg_solve_ex",
    ("sign", "sign logabsdet LU pivots"): "_linalg_slogdet",
    ("unary_out", ""): "max min",
    ("values", "values indices"): "kthvalue mode sort topk",
    ("values_stable", "values indices"): "sort.stable",
}

# The overload with `out=` and its results' names, by the functional overload.
OUTS: dict[str, tuple[str, tuple[str, ...]]] = {
    name: (f"{name.partition('.')[2]}_out".removeprefix("_"), ()) for name in _USUAL.split()
}
OUTS.update(
    (name, (overload, tuple(results.split())))
    for (overload, results), names in _NAMED.items()
    for name in names.split()
)
