"""Tables that are loaded when one of their operators is first asked for, so that importing the package does not pay.

Invariant: a name listed here belongs to a row of its table (or to its in-place form, `name_`); after `load(table)` that
table's rows, and their lines on every device that was started, are registered.
"""
from __future__ import annotations

import sys
from _thread import RLock
from importlib import import_module
from typing import Any

from .._dispatch import registry
from .._ops import table as rows
from . import overloads as _names
from . import public

# Names by table. `name-` is a function and no method, `.name` a method only; `name+` also has an
# in-place form as a method, `name++` also as a function. `name=` is neither: a row that other code calls by its name;
# without it, such a name brings every table.
_LISTED = {
    "activation": "sigmoid++ tanh++ relu++ threshold- threshold_- selu- selu_- celu- celu_- log_sigmoid= softplus= "
                  "_log_sigmoid_backward= " + " ".join(
        f"{name}= {name}_= {name}_backward=" for name in (
            "leaky_relu hardtanh gelu silu mish elu hardsigmoid hardswish").split())
                  + " relu6= relu6_= sigmoid_backward= tanh_backward= threshold_backward= softplus_backward=",
    "softmax": "softmax log_softmax _softmax- _log_softmax- _softmax_backward_data- _log_softmax_backward_data-",
    "norm": "layer_norm- rms_norm- native_layer_norm- native_layer_norm_backward= _layer_norm_output=",
    "loss": "binary_cross_entropy_with_logits- kl_div- nll_loss_nd= nll_loss= nll_loss2d= nll_loss_forward= "
            "nll_loss_backward= nll_loss2d_forward= nll_loss2d_backward= cross_entropy_loss= mse_loss= l1_loss= "
            "mse_loss_backward= smooth_l1_loss= _smooth_l1_loss= smooth_l1_loss_backward= huber_loss= "
            "huber_loss_backward= binary_cross_entropy= binary_cross_entropy_backward=",
    "embedding": "embedding- embedding_renorm_- embedding_renorm= embedding_dense_backward= one_hot=",
    "sort": "sort argsort msort topk kthvalue mode median nanmedian",
    "view_copy": "alias_copy- as_strided_copy- detach_copy- expand_copy- narrow_copy permute_copy- select_copy- "
                 "slice_copy- split_copy- split_with_sizes_copy- squeeze_copy- t_copy- transpose_copy- unbind_copy- "
                 "unfold_copy- unsqueeze_copy- view_copy- view_as_real_copy- view_as_complex_copy- _conj_copy- "
                 "_neg_view_copy- "
                 "select_scatter slice_scatter diagonal_scatter as_strided_scatter unsafe_split unsafe_chunk "
                 "unsafe_split_with_sizes .sum_to_size diagflat _chunk_cat-",
    "search": "_unique2- isin- searchsorted- bucketize- bincount histc histogram nonzero_static",
    "products": "combinations- cross kron",
    "index_lazy": "put+ index_reduce+ _unsafe_masked_index- _unsafe_masked_index_put_accumulate-",
    "statistics": "quantile nanquantile diff trapezoid- trapz- cumulative_trapezoid- cov corrcoef dist renorm+",
    "foreach": "_foreach_zero_- _foreach_copy_- _foreach_norm- _foreach_max- _foreach_clone- _foreach_mm- " + " ".join(
        f"_foreach_{name}+-" for name in (
            "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg "
            "reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc add sub mul div pow maximum minimum "
            "clamp_min clamp_max addcmul addcdiv lerp").split()),
    "scaled": "_int_mm- _scaled_mm- _scaled_mm_v2- _flash_attention_forward= _efficient_attention_forward=",
    "optimizers": "_fused_adam_- _fused_adamw_- _fused_sgd_- _fused_adagrad_-",
    "fft": "_fft_c2c- _fft_c2r- _fft_r2c-",
    "linalg": "_linalg_eigh- _linalg_solve_ex- _linalg_svd- _lu_with_info- lu_unpack- geqrf cholesky_solve "
              "cholesky_inverse",
    "linalg_composed": "inverse cholesky det slogdet matrix_exp logdet lu_solve qr triangular_solve svd pinverse "
                       "matrix_power",
    "householder": "orgqr ormqr",
    "discrete_random": "poisson- binomial-",
    "gamma_random": "_standard_gamma- _standard_gamma_grad- _sample_dirichlet- _dirichlet_grad-",
    "hashes": "hash_tensor",
    "histograms": "histogramdd-",
    "segments": "segment_reduce- _segment_reduce-",
    "special": "gcd++ lcm++ heaviside+ nextafter+ ldexp++ frexp logit++ i0++ igamma+ igammac+ mvlgamma+",
    "conv": "convolution- conv1d- conv2d- conv3d- conv_transpose1d- conv_transpose2d- conv_transpose3d-",
    "deprecated": "frobenius_norm- nuclear_norm- conv_tbc- vander- .fill_diagonal_ slice_inverse",
    "pool": "_adaptive_avg_pool2d- _adaptive_avg_pool3d- max_pool1d_with_indices- max_pool1d- max_pool2d- "
            "max_pool3d- avg_pool1d- adaptive_avg_pool1d- "
            "adaptive_max_pool1d-",
    "fractional": "",
    "padding": "",
    "batch_norm": "native_batch_norm- _native_batch_norm_legit- batch_norm- instance_norm- native_group_norm- "
                  "group_norm-",
    "sync_norm": "batch_norm_stats- batch_norm_elemt- batch_norm_gather_stats- batch_norm_gather_stats_with_counts- "
                 "batch_norm_backward_reduce- batch_norm_backward_elemt- batch_norm_update_stats-",
    "resample": "",
    "vision": "pixel_shuffle- pixel_unshuffle- channel_shuffle- native_channel_shuffle- grid_sampler- "
              "grid_sampler_2d- grid_sampler_3d- affine_grid_generator-",
    "activation_lazy": "hardshrink prelu _prelu_kernel- rrelu- rrelu_-",
    "dropout": "dropout- dropout_- native_dropout- feature_dropout- feature_dropout_- alpha_dropout- alpha_dropout_- "
               "feature_alpha_dropout- feature_alpha_dropout_-",
    "distance": "cdist- pdist- pairwise_distance- cosine_similarity- bilinear-",
    "loss_lazy": "margin_ranking_loss- hinge_embedding_loss- cosine_embedding_loss- triplet_margin_loss- "
              "poisson_nll_loss-",
    "attention": "_safe_softmax-",
    "encoder": "_native_multi_head_attention- _transformer_encoder_layer_fwd-",
    "weight_norm": "norm_except_dim- _weight_norm- _weight_norm_interface-",
    "embedding_bag": "embedding_bag- _embedding_bag-",
    "ctc": "ctc_loss-",
    "cells": "",
    "recurrent": "lstm- gru- rnn_tanh- rnn_relu- lstm_cell- gru_cell- rnn_tanh_cell- rnn_relu_cell-",
    "sequence": "_pack_padded_sequence- _pad_packed_sequence-",
    "sparse": "_pin_memory- _sparse_addmm- _sparse_mm_reduce_impl-",
    "private": "_assert_async- _functional_assert_async- _aminmax- _addmm_activation _compute_linear_combination- "
               "_add_relu- _add_relu_- _masked_softmax- _unique- _grid_sampler_2d_cpu_fallback-",
    "questions": "_debug_has_internal_overlap- cudnn_is_acceptable-",
    "elsewhere": "_conv_depthwise2d= conv_depthwise3d= _convert_weight_to_int4pack- _copy_from- "
                 "_copy_from_and_resize- _cslt_compress- _cslt_sparse_mm- _cslt_sparse_mm_search- "
                 "cudnn_affine_grid_generator- cudnn_batch_norm- cudnn_convolution- "
                 "cudnn_convolution_add_relu- cudnn_convolution_relu- cudnn_convolution_transpose- "
                 "_cudnn_ctc_loss- cudnn_grid_sampler- _cudnn_init_dropout_state- _cudnn_rnn- "
                 "_cudnn_rnn_flatten_weight- _fill_mem_eff_dropout_mask_- "
                 "_flash_attention_forward_no_dropout_inplace- _fused_dropout- _lstm_mps- _masked_scale- "
                 "miopen_batch_norm- miopen_convolution- miopen_convolution_add_relu- "
                 "miopen_convolution_relu- miopen_convolution_transpose- miopen_ctc_loss- "
                 "miopen_depthwise_convolution- miopen_rnn- _mixed_dtypes_linear- "
                 "mkldnn_adaptive_avg_pool2d- mkldnn_convolution- mkldnn_linear= "
                 "mkldnn_linear_backward_weights- mkldnn_max_pool2d- mkldnn_max_pool3d- "
                 "mkldnn_reorder_conv2d_weight= mkldnn_reorder_conv3d_weight= _mkldnn_reshape- "
                 "mkldnn_rnn_layer- _mkldnn_transpose- _mkldnn_transpose_- _mps_convolution- "
                 "_mps_convolution_transpose- native_norm- _nnpack_spatial_convolution- _philox_key_fold_in- "
                 "_philox_key_split- _philox_normal_ _philox_uniform_ _resize_output_- "
                 "_scaled_dot_product_attention_math_for_mps- _scaled_dot_product_cudnn_attention- "
                 "_scaled_dot_product_efficient_attention- _scaled_dot_product_flash_attention- "
                 "_scaled_grouped_mm- _scaled_grouped_mm_v2- _sparse_semi_structured_addmm- "
                 "_sparse_semi_structured_apply- _sparse_semi_structured_apply_dense- "
                 "_sparse_semi_structured_linear- _sparse_semi_structured_mm- _sparse_semi_structured_tile- "
                 ".to_mkldnn _to_sparse_semi_structured- _triton_multi_head_attention- "
                 "_triton_scaled_dot_attention- _use_cudnn_ctc_loss- _use_miopen_ctc_loss- "
                 "_weight_int4pack_mm- _weight_int4pack_mm_with_scales_and_zeros- "
                 "_nested_compute_contiguous_strides_offsets- _nested_from_padded- "
                 "_nested_from_padded_and_nested_example- _nested_from_padded_tensor- "
                 "_nested_get_jagged_dummy- _nested_get_lengths- _nested_get_max_seqlen- "
                 "_nested_get_min_seqlen- _nested_get_offsets- _nested_get_ragged_idx- _nested_get_values- "
                 "_nested_get_values_copy- _nested_tensor_from_mask- _nested_tensor_from_mask_left_aligned- "
                 "_nested_tensor_from_tensor_list- ._nested_tensor_size _nested_tensor_softmax_with_shape- "
                 "._nested_tensor_storage_offsets ._nested_tensor_strides _nested_view_from_buffer- "
                 "_nested_view_from_buffer_copy- _nested_view_from_jagged- _nested_view_from_jagged_copy- "
                 ".to_padded_tensor choose_qparams_optimized- _dyn_quant_matmul_4bit- "
                 "_dyn_quant_pack_4bit_weight- _empty_affine_quantized- _empty_per_channel_affine_quantized- "
                 "empty_quantized- fbgemm_linear_fp16_weight- fbgemm_linear_fp16_weight_fp32_activation- "
                 "fbgemm_linear_int8_weight- fbgemm_linear_int8_weight_fp32_activation- "
                 "fbgemm_linear_quantize_weight- fbgemm_pack_gemm_matrix_fp16- fbgemm_pack_quantized_matrix- "
                 "int_repr _make_per_channel_quantized_tensor- _make_per_tensor_quantized_tensor- "
                 "q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point "
                 ".qscheme quantize_per_channel- quantize_per_tensor- quantize_per_tensor_dynamic- "
                 "quantized_batch_norm- quantized_gru_cell- quantized_lstm_cell- quantized_max_pool1d- "
                 "quantized_max_pool2d- quantized_max_pool3d- quantized_rnn_relu_cell- "
                 "quantized_rnn_tanh_cell- _wrapped_linear_prepack- _wrapped_quantized_linear_prepacked-",
    "inner": "_cast_Byte- _cast_Char- _cast_Double- _cast_Float- _cast_Half- _cast_Int- _cast_Long- "
             "_cast_Short- ._autocast_to_full_precision ._autocast_to_reduced_precision "
             "_saturate_weight_to_fp16- _shape_as_tensor- _reshape_from_tensor- _reshape_alias_copy- "
             "_dim_arange- _stack- _to_cpu- flatten_dense_tensors= unflatten_dense_tensors= "
             "_efficientzerotensor- _make_dep_token- _has_compatible_shallow_copy_type- "
             "_assert_scalar- _functional_assert_scalar- _assert_tensor_metadata- "
             "_functional_sym_constrain_range- _functional_sym_constrain_range_for_size- _is_all_true "
             "_is_any_true _print- __and__= __or__= __xor__= _cummax_helper- _cummin_helper- "
             "_logcumsumexp- _euclidean_dist- linalg__powsum= _foreach_powsum- _trilinear- "
             "_unsafe_index- _unsafe_index_put- _index_put_impl_- _rowwise_prune- "
             "_convert_indices_from_coo_to_csr- _convert_indices_from_csr_to_coo- "
             "_embedding_bag_forward_only- _linalg_det- _linalg_slogdet- _linalg_check_errors- "
             "_linalg_eigvals=",
    "inner_backward": "logit_backward= masked_scatter_backward= masked_select_backward= gather_backward= "
                      "index_select_backward= rrelu_with_noise_backward= fractional_max_pool2d_backward= "
                      "fractional_max_pool3d_backward=",
    "inner_layers": "_convolution- _convolution_mode- thnn_conv2d= slow_conv_dilated2d= slow_conv_transpose2d= "
                    "slow_conv3d= slow_conv_dilated3d= slow_conv_transpose3d= _batch_norm_impl_index- "
                    "_native_batch_norm_legit_no_training- _fused_rms_norm- rrelu_with_noise= "
                    "rrelu_with_noise_= _pad_enum= _ctc_loss- _scaled_dot_product_attention_math- "
                    "_scaled_dot_product_flash_attention_for_cpu- _fused_sdp_choice- "
                    "_transform_bias_rescale_qkv- _weight_int8pack_mm- _convert_weight_to_int4pack_for_cpu- "
                    "_weight_int4pack_mm_for_cpu- _grouped_mm- _histogramdd_bin_edges- "
                    "_histogramdd_from_bin_cts- _histogramdd_from_bin_tensors- _make_dual- _make_dual_copy- "
                    "_unpack_dual- _fw_primal_copy- _add_batch_dim- _remove_batch_dim- indices_copy- "
                    "values_copy- crow_indices_copy- col_indices_copy- ccol_indices_copy- row_indices_copy- "
                    "_indices_copy- _values_copy- _sparse_sum- _sparse_sparse_matmul- ._to_dense "
                    "_sparse_csr_sum- _sparse_csr_prod- _sparse_softmax_backward_data- "
                    "_sparse_log_softmax_backward_data- _sparse_broadcast_to- _sparse_broadcast_to_copy- "
                    "_validate_compressed_sparse_indices- _cufft_get_plan_cache_size- "
                    "_cufft_get_plan_cache_max_size- _cufft_set_plan_cache_max_size- _cufft_clear_plan_cache- "
                    "_propagate_xla_data- _use_cudnn_rnn_flatten_weight-",
    "inner_forward": "_cdist_forward= _pdist_forward= log_sigmoid_forward= log_sigmoid_backward= "
                     "unique_consecutive= unique_dim_consecutive= _embedding_bag_dense_backward= "
                     "_embedding_bag_per_sample_weights_backward=",
    "probes": "_foobar- _test_serialization_subcmul- _test_functorch_fallback- "
              "_test_parallel_materialize- _test_check_tensor- _test_optional_filled_intlist= "
              "_test_optional_intlist= _test_optional_floatlist= _test_ambiguous_defaults= "
              "_test_string_default= _test_warn_in_autograd= _test_autograd_multiple_dispatch- "
              "_test_autograd_multiple_dispatch_view- _test_autograd_multiple_dispatch_view_copy-",
    "fake_quantize": "fake_quantize_per_tensor_affine_cachemask= "
                     "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams- "
                     "fake_quantize_per_tensor_affine- fake_quantize_per_channel_affine_cachemask= "
                     "fake_quantize_per_channel_affine- _fake_quantize_learnable_per_tensor_affine- "
                     "_fake_quantize_learnable_per_channel_affine- _choose_qparams_per_tensor- "
                     "_fused_moving_avg_obs_fq_helper- fused_moving_avg_obs_fake_quant- dequantize",
    "amp": "_amp_foreach_non_finite_check_and_unscale_- _amp_update_scale_-",
}
# Rows that are functions of a module of their own, by table.
_IN_MODULES = {
    "products": "linalg_cross",
    "linalg": " ".join("linalg_" + name for name in (
        "lu_factor_ex det slogdet inv_ex solve_triangular cholesky_ex qr eig matrix_exp lstsq").split()),
    "linalg_composed": " ".join("linalg_" + name for name in (
        "inv cholesky solve solve_ex lu_factor lu lu_solve eigh eigvalsh eigvals svd svdvals matrix_rank pinv "
        "matrix_norm norm cond matrix_power vecdot vander multi_dot matmul tensorinv tensorsolve diagonal").split()),
    "householder": "linalg_householder_product linalg_ldl_factor linalg_ldl_factor_ex linalg_ldl_solve",
    "reduce": "linalg_vector_norm",
    "fft": " ".join("fft_" + name for name in (
        "fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 hfft2 ihfft2 fftn ifftn rfftn irfftn hfftn ihfftn "
        "fftshift ifftshift").split()),
    "special": " ".join("special_" + name for name in (
        "entr erfcx i0e i1 i1e log_ndtr ndtr ndtri xlog1py zeta airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 "
        "modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0 "
        "scaled_modified_bessel_k1 spherical_bessel_j0 chebyshev_polynomial_t chebyshev_polynomial_u "
        "chebyshev_polynomial_v chebyshev_polynomial_w shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u "
        "shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he "
        "laguerre_polynomial_l legendre_polynomial_p").split()),
    "special_names": " ".join("special_" + name for name in (
        "digamma erf erfc erfinv exp2 expit expm1 gammainc gammaincc gammaln i0 log1p log_softmax logit logsumexp "
        "multigammaln polygamma psi round sinc softmax xlogy").split()),
}
NAMESPACES: dict[str, str] = {n: t for t, names in _IN_MODULES.items() for n in names.split()}
FUNCTIONS: dict[str, str] = {}
METHODS: dict[str, str] = {}
INNER: dict[str, str] = {}
for _table, _listed in _LISTED.items():
    for _name in _listed.split():
        if _name[-1] == "=":
            INNER[_name[:-1]] = _table
            continue
        _plain = _name.strip("-+.")
        for _form in (_plain, _plain + "_") if "+" in _name else (_plain,):
            if _name[0] != "." and (_form == _plain or _name[-1] == "-" or "++" in _name):
                FUNCTIONS[_form] = _table
            if _name[-1] != "-":
                METHODS[_form] = _table

TABLES = tuple(dict.fromkeys((*_LISTED, *_IN_MODULES)))
_TABLES = rows.__package__
_LOCK = RLock()
_LOADED: list[str] = []
_NOW: list[str] = []


def load(table: str) -> None:
    """Register the rows of a table, and its lines on every device in use."""
    if table in _LOADED:
        return
    with _LOCK:
        if table in _LOADED:
            return
        before, rows.LOADING[0] = rows.LOADING[0], table
        declared: list[tuple[Any, str]] = []
        kept = registry.LATE.declared
        registry.LATE.declared = declared
        _NOW.append(table)
        try:
            import_module(f"{_TABLES}.{table}")
            _lines("cpu", table)
        except BaseException:
            # Ctrl-C, no more memory, too deep a recursion: the next one who asks loads it again.
            registry.forget_broken(declared)
            raise
        finally:
            _NOW.pop()
            rows.LOADING[0] = before
            registry.LATE.declared = kept
            if kept is not None:
                kept.extend(declared)
        _LOADED.append(table)
        from .._backends.npu.load import LOADED

        if LOADED:
            _lines("npu", table)
        # A table may import another for its helpers: then that one's rows are registered, and need their lines too.
        # Inside another load it may not be whole yet.
        for other in () if _NOW else TABLES:
            if other not in _LOADED and f"{_TABLES}.{other}" in sys.modules:
                load(other)


def load_all() -> None:
    for table in TABLES:
        load(table)


def bring(name: str) -> None:
    """Load the table of a row; rows that are no functions and no methods are in no list, so all may have to come."""
    base = _names.row_base(name.partition(".")[0])
    table = FUNCTIONS.get(base) or METHODS.get(base) or NAMESPACES.get(base) or INNER.get(base)
    with _LOCK:
        if table is not None:
            if table not in _NOW:
                load(table)
        elif _NOW:
            return  # a table that is being loaded asks for a row that is not there
        elif len(_LOADED) < len(TABLES):
            load_all()


registry.LATE.bring = bring


def load_npu_lines() -> None:
    """The NPU has started: tables loaded before get their lines now, others when they are loaded."""
    with _LOCK:
        for table in _LOADED:
            _lines("npu", table)


def _lines(device: str, table: str) -> None:
    from importlib.util import find_spec

    name = f"{__package__.rpartition('.')[0]}._backends.{device}.ops.{table}"
    if find_spec(name) is not None:
        import_module(name)


def ops_of(name: str) -> list[Any]:
    """The overloads of a public name, after its table is loaded."""
    load(FUNCTIONS.get(name) or METHODS[name])
    return registry.overloads(name)


def function(name: str) -> Any:
    """`torch.<name>`"""
    return public.function(name, ops_of(name))


def install_methods(cls: type) -> None:
    for name in METHODS:
        if name not in cls.__dict__:
            setattr(cls, name, public.LazyMethod(name, ops_of))


# -- namespaces: `torch.linalg.det` is the row `linalg_det` ------------------------------------------------------------
def namespace(module: str, prefix: str) -> Any:
    """The `__getattr__` of a module whose functions are the rows with that prefix."""

    def get(name: str) -> Any:
        table = NAMESPACES.get(prefix + name)
        if table is None:
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        load(table)
        fn = public.build(prefix + name, registry.overloads(prefix + name))
        # PyTorch's are functions of a module in C++.
        fn.__module__ = f"torch._C._{prefix[:-1]}" if module.startswith("torch.") else module
        setattr(sys.modules[module], name, fn)
        return fn

    return get


def listing(module: str, prefix: str) -> Any:
    """The `__dir__` of such a module."""
    return lambda: sorted({*vars(sys.modules[module]), *(n.removeprefix(prefix) for n in NAMESPACES
                                                         if n.startswith(prefix))})
