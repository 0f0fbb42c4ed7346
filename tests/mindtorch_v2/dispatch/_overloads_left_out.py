"""Overloads of `aten` in PyTorch that `torch.ops.aten` has not, by reason.

The test compares with PyTorch's registry: an overload that is new here must leave the list, so it only shrinks.
"""

from __future__ import annotations

_LISTED = {
    "backends and quantized tensors that are not here": """
        _conv_depthwise2d.out _copy_from.out _copy_from_and_resize.out _cudnn_attention_backward
        _cudnn_attention_forward _cudnn_ctc_loss.out _cudnn_init_dropout_state.out _cudnn_rnn.out
        _cudnn_rnn_backward _cudnn_rnn_backward.out _cudnn_rnn_flatten_weight.out _efficient_attention_backward
        _empty_affine_quantized.out _empty_per_channel_affine_quantized.out
        _fake_quantize_learnable_per_channel_affine_backward _fake_quantize_learnable_per_tensor_affine_backward
        _flash_attention_backward _flash_attention_forward.quantized _fused_dropout.out _lstm_mps.out
        _make_per_channel_quantized_tensor.out _make_per_tensor_quantized_tensor.out _masked_scale.out
        _mkldnn_reshape.out _mkldnn_transpose.out _mps_convolution.out _mps_convolution_transpose.out
        _nested_from_padded.out _nested_from_padded_and_nested_example.out _nested_get_values_copy.out
        _nested_tensor_from_mask.out _nested_tensor_from_tensor_list.out _nested_tensor_size.out
        _nested_tensor_storage_offsets.out _nested_tensor_strides.out _nested_view_from_buffer_copy.out
        _nested_view_from_jagged_copy.out _nnpack_available _nnpack_spatial_convolution.out _philox_normal
        _philox_normal.out _philox_uniform _philox_uniform.out _scaled_dot_product_cudnn_attention_backward
        _scaled_dot_product_efficient_attention_backward _scaled_dot_product_flash_attention_backward
        _scaled_dot_product_fused_attention_overrideable _scaled_dot_product_fused_attention_overrideable_backward
        _triton_multi_head_attention.out _triton_scaled_dot_attention.out conv_depthwise3d.out
        convolution_backward_overrideable convolution_backward_overrideable.out convolution_overrideable
        convolution_overrideable.out cudnn_affine_grid_generator.out cudnn_affine_grid_generator_backward
        cudnn_affine_grid_generator_backward.out cudnn_batch_norm.out cudnn_batch_norm_backward
        cudnn_batch_norm_backward.out cudnn_convolution.out cudnn_convolution_add_relu.out
        cudnn_convolution_relu.out cudnn_convolution_transpose.out cudnn_grid_sampler.out
        cudnn_grid_sampler_backward cudnn_grid_sampler_backward.out dequantize.tensors_out empty_quantized.out
        fake_quantize_per_channel_affine_cachemask_backward fake_quantize_per_tensor_affine_cachemask_backward
        fbgemm_linear_fp16_weight.out fbgemm_linear_fp16_weight_fp32_activation.out int_repr.out is_vulkan_available
        lstm_mps_backward lstm_mps_backward.out miopen_batch_norm.out miopen_batch_norm_backward
        miopen_batch_norm_backward.out miopen_convolution.out miopen_convolution_transpose.out miopen_ctc_loss.out
        miopen_depthwise_convolution.out miopen_rnn.out miopen_rnn_backward miopen_rnn_backward.out
        mkldnn_adaptive_avg_pool2d.out mkldnn_adaptive_avg_pool2d_backward mkldnn_adaptive_avg_pool2d_backward.out
        mkldnn_convolution.out mkldnn_linear.out mkldnn_linear_backward mkldnn_linear_backward.out
        mkldnn_linear_backward_input mkldnn_linear_backward_input.out mkldnn_linear_backward_weights.out
        mkldnn_max_pool2d.out mkldnn_max_pool2d_backward mkldnn_max_pool2d_backward.out mkldnn_max_pool3d.out
        mkldnn_max_pool3d_backward mkldnn_max_pool3d_backward.out mkldnn_reorder_conv2d_weight.out
        mkldnn_reorder_conv3d_weight.out mkldnn_rnn_layer.out mkldnn_rnn_layer_backward
        mkldnn_rnn_layer_backward.out mps_convolution_backward mps_convolution_backward.out
        mps_convolution_transpose_backward mps_convolution_transpose_backward.out
        native_norm.ScalarOpt_dim_dtype_out native_norm.out q_per_channel_scales.out q_per_channel_zero_points.out
        quantize_per_channel.out quantize_per_tensor.out quantize_per_tensor.tensor_qparams_out
        quantize_per_tensor.tensors_out quantize_per_tensor_dynamic.out quantized_batch_norm.out quantized_gru.data
        quantized_gru.data_legacy quantized_gru.input quantized_gru.input_legacy quantized_lstm.data
        quantized_lstm.data_legacy quantized_lstm.input quantized_lstm.input_legacy quantized_max_pool1d.out
        quantized_max_pool2d.out quantized_max_pool3d.out to_mkldnn.out to_mkldnn_backward to_padded_tensor.out
    """,
    "derivatives: formulas of rows compute them": """
        _backward _batch_norm_impl_index_backward _cdist_backward _cdist_backward.out _convolution_double_backward
        _ctc_loss_backward _ctc_loss_backward.Tensor _ctc_loss_backward.out _embedding_bag_backward
        _fused_rms_norm_backward _grid_sampler_2d_cpu_fallback_backward _pdist_backward _pdist_backward.out
        _scaled_dot_product_flash_attention_for_cpu_backward _segment_reduce_backward _segment_reduce_backward.out
        _slow_conv2d_backward.grad_input _slow_conv2d_backward.output_mask _slow_conv2d_backward.output_mask_out
        _thnn_differentiable_gru_cell_backward _thnn_differentiable_lstm_cell_backward
        _thnn_fused_lstm_cell_backward _weight_norm_differentiable_backward _weight_norm_interface_backward
        _weight_norm_interface_backward.out adaptive_avg_pool3d_backward.grad_input affine_grid_generator_backward
        batch_norm_backward conv_tbc_backward cummaxmin_backward cumprod_backward embedding_backward
        fractional_max_pool2d_backward.grad_input fractional_max_pool3d_backward.grad_input
        glu_backward_jvp glu_backward_jvp.out glu_jvp
        glu_jvp.out grid_sampler_2d_backward grid_sampler_2d_backward.out grid_sampler_3d_backward
        grid_sampler_3d_backward.out infinitely_differentiable_gelu_backward linear_backward
        linear_backward.out logit_backward.grad_input
        matmul_backward matmul_backward.out matrix_exp_backward max_pool2d_backward max_pool2d_backward.out
        multi_margin_loss_backward multi_margin_loss_backward.grad_input multilabel_margin_loss_backward
        multilabel_margin_loss_backward.grad_input rrelu_with_noise_backward.out
        soft_margin_loss_backward soft_margin_loss_backward.grad_input to_dense_backward trace_backward
    """,
    "factories with out=": """
        _efficientzerotensor.out _to_copy.out arange.start_out bartlett_window.out bartlett_window.periodic_out
        blackman_window.out blackman_window.periodic_out empty_like.out empty_permuted.out empty_strided.out
        eye.m_out fft_fftfreq.out fft_rfftfreq.out from_file.out full_like.out hamming_window.out
        hamming_window.periodic_alpha_beta_out hamming_window.periodic_alpha_out hamming_window.periodic_out
        hann_window.out hann_window.periodic_out kaiser_window.beta_out kaiser_window.out kaiser_window.periodic_out
        linspace.Scalar_Tensor_out linspace.Tensor_Scalar_out linspace.Tensor_Tensor_out logspace.Scalar_Tensor_out
        logspace.Tensor_Scalar_out logspace.Tensor_Tensor_out new_empty.out new_empty_strided.out new_full.out
        new_ones.out new_zeros.out normal.Tensor_float_out normal.float_Tensor_out normal.float_float_out normal.out
        ones_like.out rand.generator_out rand.out rand_like.generator_out rand_like.out randint.generator_out
        randint.low_generator_out randint.low_out randint.out randint_like.Tensor_generator_out
        randint_like.Tensor_out randint_like.generator_out randint_like.low_dtype_out
        randint_like.low_generator_dtype_out randint_like.out randn.generator_out randn.out randn_like.generator_out
        randn_like.out random.from_out random.out random.to_out randperm.generator_out randperm.out range.out
        range.out_ scalar_tensor.out tril_indices.out triu_indices.out uniform.out zeros_like.out
    """,
    "functional forms of operators that write, and parts of functions that are written otherwise": """
        _amp_foreach_non_finite_check_and_unscale _amp_foreach_non_finite_check_and_unscale.out _amp_update_scale
        _amp_update_scale.out _batch_norm_no_update _batch_norm_no_update.out _batch_norm_with_update.out
        _batch_norm_with_update_functional _foreach_copy _foreach_copy.out _foreach_zero _foreach_zero.out
        _fused_adagrad _fused_adagrad.out _fused_adagrad.tensor_lr _fused_adagrad.tensor_lr_out _fused_adam
        _fused_adam.out _fused_adam.tensor_lr _fused_adam.tensor_lr_out _fused_adamw _fused_adamw.out
        _fused_adamw.tensor_lr _fused_adamw.tensor_lr_out _fused_moving_avg_obs_fq_helper.out
        _fused_moving_avg_obs_fq_helper_functional _fused_sgd _fused_sgd.out _fused_sgd.tensor_lr
        _fused_sgd.tensor_lr_out _index_put_impl _index_put_impl.out _native_batch_norm_legit_functional
        _reshape_copy _slow_conv2d_forward _slow_conv2d_forward.output _sobol_engine_draw _sobol_engine_ff_
        _sobol_engine_initialize_state_ _sobol_engine_scramble_
        multilabel_margin_loss_forward.output resize resize.out resize_as resize_as.out resize_as_
        rrelu_with_noise_functional set set.out set.source_Storage set.source_Storage_out
        set.source_Storage_storage_offset set.source_Storage_storage_offset_out set.source_Tensor
        set.source_Tensor_out slow_conv3d_forward slow_conv3d_forward.output
    """,
    "nested tensors: methods and functions serve them": """
        _jagged_to_padded_dense_forward _nested_select_backward _nested_sum_backward _pack_padded_sequence_backward
        _padded_dense_to_jagged_forward nested_to_padded_tensor
    """,
    "other overloads: served by rows under another name, or by Python": """
        _cholesky_solve_helper _fw_primal _has_same_storage_numel _resize_output addmm.dtype all.dims any.dims
        baddbmm.dtype block_diag bmm.dtype broadcast_tensors cartesian_prod chalf count_nonzero.dim_IntList
        div.Scalar_mode divide.Scalar_mode einsum floor_divide.Scalar get_gradients gradient.array
        gradient.scalararray gradient.scalarint gradient.scalarrayarray gradient.scalarrayint gradient.tensorarray
        gradient.tensorarrayint is_pinned istft lift linalg_pinv.atol_rtol_float meshgrid meshgrid.indexing mm.dtype
        nonzero_numpy norm.ScalarOpt_dim norm.ScalarOpt_dim_dtype norm.ScalarOpt_dtype pin_memory polygamma_
        record_stream set_.source_Storage set_.source_Storage_storage_offset set_data split.sizes stft stft.center
        sym_constrain_range sym_constrain_range_for_size to.device to.dtype to.other to_dense
        where
    """,
    "out= of operators whose functional form has other arguments here": """
        _cholesky_solve_helper.out _resize_output.out addmm.dtype_out all.all_out all.dims_out any.all_out
        any.dims_out baddbmm.dtype_out block_diag.out bmm.dtype_out clamp.out clamp_max.out clamp_min.out
        count_nonzero.dim_IntList_out div.Scalar_mode_out div_.Scalar_mode divide_.Scalar_mode
        floor_divide.Scalar_out lift.out lift_fresh_copy.out linalg_pinv.atol_rtol_float_out mean.dtype_out
        mm.dtype_out norm.ScalarOpt_dtype_out norm.Scalar_out norm.dtype_out rrelu_with_noise.out
    """,
    "overloads of factories and of random functions: one row serves all forms": """
        bernoulli.float_out bernoulli.p
        bernoulli_.float empty_permuted
        from_file
        normal.Tensor_float normal.float_Tensor
        rand_like.generator
        randint_like.Tensor randint_like.Tensor_generator randint_like.generator
        randint_like.low_generator_dtype randn_like.generator random.from random.to random_.from
        random_.to range range.step to.dtype_layout
    """,
    "sparse tensors: methods and functions serve them, not yet operators": """
        _coalesce.out _coalesced _coalesced.out _coalesced_ _embedding_bag_sparse_backward _gather_sparse_backward
        _sparse_bsc_tensor_unsafe _sparse_bsr_tensor_unsafe
        _sparse_coo_tensor_unsafe _sparse_coo_tensor_with_dims _sparse_coo_tensor_with_dims.out
        _sparse_coo_tensor_with_dims_and_tensors.out _sparse_csc_tensor_unsafe _sparse_csr_tensor_unsafe
        _sparse_log_softmax.int _sparse_log_softmax.out _sparse_mask_projection.out _sparse_mm _sparse_mm.reduce
        _sparse_mm_reduce_impl_backward _sparse_softmax.int _sparse_softmax.out _sparse_sum_backward
        _sparse_sum_backward.out _spdiags _spdiags.out _to_sparse.out _to_sparse.sparse_dim_out _to_sparse_bsc
        _to_sparse_bsc.out _to_sparse_bsr _to_sparse_bsr.out _to_sparse_csc _to_sparse_csc.out _to_sparse_csr
        _to_sparse_csr.out _validate_sparse_bsc_tensor_args _validate_sparse_bsr_tensor_args
        _validate_sparse_compressed_tensor_args _validate_sparse_coo_tensor_args _validate_sparse_csc_tensor_args
        _validate_sparse_csr_tensor_args copy_sparse_to_sparse copy_sparse_to_sparse.out copy_sparse_to_sparse_
        embedding_sparse_backward hspmm.out resize_as_sparse resize_as_sparse.out resize_as_sparse_ smm
        sparse_bsc_tensor.ccol_row_value sparse_bsc_tensor.ccol_row_value_size sparse_bsr_tensor.crow_col_value
        sparse_bsr_tensor.crow_col_value_size sparse_compressed_tensor.comp_plain_value
        sparse_compressed_tensor.comp_plain_value_size sparse_coo_tensor.indices sparse_coo_tensor.indices_size
        sparse_coo_tensor.size sparse_coo_tensor.size_out sparse_csc_tensor.ccol_row_value
        sparse_csc_tensor.ccol_row_value_size sparse_csr_tensor.crow_col_value sparse_csr_tensor.crow_col_value_size
        sparse_mask.out sparse_resize sparse_resize.out sparse_resize_ sparse_resize_and_clear
        sparse_resize_and_clear.out sparse_resize_and_clear_ sparse_sampled_addmm.out sspaddmm.out to_sparse
        to_sparse_bsc to_sparse_bsr to_sparse_csc to_sparse_csr
    """,
}
LEFT_OUT: dict[str, str] = {name: reason for reason, names in _LISTED.items() for name in names.split()}
