"""Operators of libraries, devices and layouts that are not here, by PyTorch's schemas.

PyTorch built without them has the names too: calling one says what is missing. Invariant: a call binds its arguments,
asks `__torch_function__`, and then refuses; none computes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from .._tensor_base import TensorBase
from .table import composite

# cuDNN, MIOpen, oneDNN, NNPACK, cuSPARSELt, Triton, MPS; kernels that PyTorch has for GPUs alone.
_BACKENDS = """
_conv_depthwise2d(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias, SymInt[2] stride, SymInt[2]
    padding, SymInt[2] dilation) -> Tensor
conv_depthwise3d(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias, SymInt[3] stride, SymInt[3]
    padding, SymInt[3] dilation) -> Tensor
_convert_weight_to_int4pack(Tensor self, int innerKTiles) -> Tensor
_copy_from(Tensor self, Tensor dst, bool non_blocking=False) -> Tensor
_copy_from_and_resize(Tensor self, Tensor dst) -> Tensor
_cslt_compress(Tensor input) -> Tensor
_cslt_sparse_mm(Tensor compressed_A, Tensor dense_B, Tensor? bias=None, Tensor? alpha=None, ScalarType?
    out_dtype=None, bool transpose_result=False, int alg_id=0, int split_k=1, int split_k_mode=-1) -> Tensor
_cslt_sparse_mm_search(Tensor compressed_A, Tensor dense_B, Tensor? bias=None, Tensor? alpha=None, ScalarType?
    out_dtype=None, bool transpose_result=False) -> int
cudnn_affine_grid_generator(Tensor theta, int N, int C, int H, int W) -> Tensor grid
cudnn_batch_norm(Tensor input, Tensor weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool
    training, float exponential_average_factor, float epsilon) -> (Tensor, Tensor, Tensor, Tensor)
cudnn_convolution(Tensor self, Tensor weight, SymInt[] padding, SymInt[] stride, SymInt[] dilation, SymInt groups,
    bool benchmark, bool deterministic, bool allow_tf32) -> Tensor
cudnn_convolution_add_relu(Tensor self, Tensor weight, Tensor z, Scalar? alpha, Tensor? bias, SymInt[] stride,
    SymInt[] padding, SymInt[] dilation, SymInt groups) -> Tensor
cudnn_convolution_relu(Tensor self, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[]
    dilation, SymInt groups) -> Tensor
cudnn_convolution_transpose(Tensor self, Tensor weight, SymInt[] padding, SymInt[] output_padding, SymInt[] stride,
    SymInt[] dilation, SymInt groups, bool benchmark, bool deterministic, bool allow_tf32) -> Tensor
_cudnn_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank, bool
    deterministic, bool zero_infinity) -> (Tensor, Tensor)
_cudnn_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank,
    bool deterministic, bool zero_infinity) -> (Tensor, Tensor)
cudnn_grid_sampler(Tensor self, Tensor grid) -> Tensor output
_cudnn_init_dropout_state(float dropout, bool train, int dropout_seed, *, ScalarType? dtype=None, Layout?
    layout=None, Device? device=None, bool? pin_memory=False) -> Tensor
_cudnn_rnn(Tensor input, Tensor[] weight, int weight_stride0, Tensor? weight_buf, Tensor hx, Tensor? cx, int mode,
    SymInt hidden_size, SymInt proj_size, int num_layers, bool batch_first, float dropout, bool train, bool
    bidirectional, SymInt[] batch_sizes, Tensor? dropout_state) -> (Tensor, Tensor, Tensor, Tensor, Tensor)
_cudnn_rnn_flatten_weight(Tensor[] weight_arr, int weight_stride0, SymInt input_size, int mode, SymInt hidden_size,
    SymInt proj_size, int num_layers, bool batch_first, bool bidirectional) -> Tensor
_fill_mem_eff_dropout_mask_(Tensor(a!) self, float dropout_p, int seed, int offset) -> Tensor(a!)
_flash_attention_forward_no_dropout_inplace(Tensor(a!) out, Tensor query, Tensor key, Tensor value, Tensor?
    cum_seq_q, Tensor? cum_seq_k, SymInt max_q, SymInt max_k, float dropout_p, bool is_causal, bool return_debug_mask,
    *, float? scale=None, SymInt? window_size_left=None, SymInt? window_size_right=None, Tensor? seqused_k=None, Tensor?
    alibi_slopes=None, Tensor? block_table=None, int? num_splits=None) -> Tensor softmax_logsumexp
_fused_dropout(Tensor self, float p, Generator? generator=None) -> (Tensor, Tensor)
_lstm_mps(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train,
    bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)
_masked_scale(Tensor self, Tensor mask, float scale) -> Tensor
miopen_batch_norm(Tensor input, Tensor weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool
    training, float exponential_average_factor, float epsilon) -> (Tensor, Tensor, Tensor)
miopen_convolution(Tensor self, Tensor weight, Tensor? bias, SymInt[] padding, SymInt[] stride, SymInt[] dilation,
    SymInt groups, bool benchmark, bool deterministic) -> Tensor
miopen_convolution_add_relu(Tensor self, Tensor weight, Tensor z, Scalar? alpha, Tensor? bias, SymInt[] stride,
    SymInt[] padding, SymInt[] dilation, SymInt groups) -> Tensor
miopen_convolution_relu(Tensor self, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[]
    dilation, SymInt groups) -> Tensor
miopen_convolution_transpose(Tensor self, Tensor weight, Tensor? bias, SymInt[] padding, SymInt[] output_padding,
    SymInt[] stride, SymInt[] dilation, SymInt groups, bool benchmark, bool deterministic) -> Tensor
miopen_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank, bool
    deterministic, bool zero_infinity) -> (Tensor, Tensor)
miopen_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank,
    bool deterministic, bool zero_infinity) -> (Tensor, Tensor)
miopen_depthwise_convolution(Tensor self, Tensor weight, Tensor? bias, SymInt[] padding, SymInt[] stride, SymInt[]
    dilation, SymInt groups, bool benchmark, bool deterministic) -> Tensor
miopen_rnn(Tensor input, Tensor[] weight, int weight_stride0, Tensor hx, Tensor? cx, int mode, int hidden_size, int
    num_layers, bool batch_first, float dropout, bool train, bool bidirectional, int[] batch_sizes, Tensor?
    dropout_state) -> (Tensor, Tensor, Tensor, Tensor, Tensor)
_mixed_dtypes_linear(Tensor input, Tensor weight, Tensor scale, *, Tensor? bias=None, str? activation=None) ->
    Tensor
mkldnn_adaptive_avg_pool2d(Tensor self, int[2] output_size) -> Tensor
mkldnn_convolution(Tensor self, Tensor weight, Tensor? bias, SymInt[] padding, SymInt[] stride, SymInt[] dilation,
    SymInt groups) -> Tensor
mkldnn_linear(Tensor self, Tensor weight, Tensor? bias=None) -> Tensor
mkldnn_linear_backward_weights(Tensor grad_output, Tensor input, Tensor weight, bool bias_defined) -> (Tensor,
    Tensor)
mkldnn_max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool
    ceil_mode=False) -> Tensor
mkldnn_max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool
    ceil_mode=False) -> Tensor
mkldnn_reorder_conv2d_weight(Tensor self, SymInt[2] padding=[0, 0], SymInt[2] stride=[1, 1], SymInt[2] dilation=[1,
    1], SymInt groups=1, SymInt[]? input_size=None) -> Tensor
mkldnn_reorder_conv3d_weight(Tensor self, SymInt[3] padding=[0, 0, 0], SymInt[3] stride=[1, 1, 1], SymInt[3]
    dilation=[1, 1, 1], SymInt groups=1, SymInt[]? input_size=None) -> Tensor
_mkldnn_reshape(Tensor self, int[] shape) -> Tensor
mkldnn_rnn_layer(Tensor input, Tensor weight0, Tensor weight1, Tensor weight2, Tensor weight3, Tensor hx_, Tensor
    cx_, bool reverse, int[] batch_sizes, int mode, int hidden_size, int num_layers, bool has_biases, bool
    bidirectional, bool batch_first, bool train) -> (Tensor, Tensor, Tensor, Tensor)
_mkldnn_transpose(Tensor self, int dim0, int dim1) -> Tensor
_mkldnn_transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)
_mps_convolution(Tensor self, Tensor weight, Tensor? bias, SymInt[] padding, SymInt[] stride, SymInt[] dilation,
    SymInt groups) -> Tensor
_mps_convolution_transpose(Tensor self, Tensor weight, SymInt[] padding, SymInt[] output_padding, SymInt[] stride,
    SymInt[] dilation, SymInt groups) -> Tensor
native_norm(Tensor self, Scalar p=2) -> Tensor
native_norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, ScalarType? dtype) -> Tensor
_nnpack_spatial_convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[2] padding, SymInt[2] stride=[1, 1])
    -> Tensor
_philox_key_fold_in(Tensor key, int data) -> Tensor
_philox_key_split(Tensor key, int num_splits) -> Tensor
_philox_normal_(Tensor(a!) self, Tensor key, float mean=0., float std=1.) -> Tensor(a!)
_philox_uniform_(Tensor(a!) self, Tensor key, float low=0., float high=1.) -> Tensor(a!)
_resize_output_(Tensor(a!) self, SymInt[] size, Device device) -> Tensor(a!)
_scaled_dot_product_attention_math_for_mps(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float
    dropout_p=0., bool is_causal=False, Tensor? dropout_mask=None, *, float? scale=None, bool enable_gqa=False) ->
    (Tensor, Tensor)
_scaled_dot_product_cudnn_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, bool
    compute_log_sumexp, float dropout_p=0., bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) ->
    (Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, Tensor
    philox_seed, Tensor philox_offset, Tensor debug_attn_mask)
_scaled_dot_product_efficient_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, bool
    compute_log_sumexp, float dropout_p=0., bool is_causal=False, *, float? scale=None) -> (Tensor output, Tensor
    log_sumexp, Tensor philox_seed, Tensor philox_offset)
_scaled_dot_product_flash_attention(Tensor query, Tensor key, Tensor value, float dropout_p=0., bool
    is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, Tensor logsumexp, Tensor
    cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, Tensor rng_state, Tensor unused, Tensor debug_attn_mask)
_scaled_dot_product_flash_attention.quantized(Tensor query, Tensor key, Tensor value, Tensor? q_descale, Tensor?
    k_descale, Tensor? v_descale, float dropout_p=0., bool is_causal=False, bool return_debug_mask=False, *, float?
    scale=None) -> (Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k,
    Tensor rng_state, Tensor unused, Tensor debug_attn_mask)
_scaled_grouped_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? offs=None, Tensor? bias=None,
    Tensor? scale_result=None, ScalarType? out_dtype=None, bool use_fast_accum=False) -> Tensor
_scaled_grouped_mm_v2(Tensor self, Tensor mat2, Tensor[] scale_a, int[] recipe_a, int[] swizzle_a, Tensor[] scale_b,
    int[] recipe_b, int[] swizzle_b, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None, int[]
    contraction_dim=[], bool use_fast_accum=False) -> Tensor
_sparse_semi_structured_addmm(Tensor input, Tensor mat1, Tensor mat1_meta, Tensor mat2, *, Scalar alpha=1, Scalar
    beta=1, ScalarType? out_dtype=None) -> Tensor
_sparse_semi_structured_apply(Tensor input, Tensor thread_masks) -> (Tensor, Tensor)
_sparse_semi_structured_apply_dense(Tensor input, Tensor thread_masks) -> Tensor
_sparse_semi_structured_linear(Tensor input, Tensor weight, Tensor meta, *, Tensor? bias=None, str? activation=None,
    ScalarType? out_dtype=None) -> Tensor
_sparse_semi_structured_mm(Tensor mat1, Tensor mat1_meta, Tensor mat2, *, ScalarType? out_dtype=None) -> Tensor
_sparse_semi_structured_tile(Tensor input, str algorithm="", bool use_cutlass=True) -> (Tensor, Tensor, Tensor,
    Tensor, Tensor)
to_mkldnn(Tensor self, ScalarType? dtype=None) -> Tensor
_to_sparse_semi_structured(Tensor dense) -> (Tensor, Tensor)
_triton_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, Tensor qkv_weight,
    Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? mask=None) -> Tensor
_triton_scaled_dot_attention(Tensor q, Tensor k, Tensor v, float dropout_p=0.) -> Tensor
_use_cudnn_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank) -> bool
_use_cudnn_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank)
    -> bool
_use_miopen_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank) -> bool
_use_miopen_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int
    blank) -> bool
_weight_int4pack_mm(Tensor self, Tensor mat2, int qGroupSize, Tensor qScaleAndZeros) -> Tensor
_weight_int4pack_mm_with_scales_and_zeros(Tensor self, Tensor mat2, int qGroupSize, Tensor qScale, Tensor qZeros) ->
    Tensor
"""
# Nested tensors as PyTorch stores them.
_NESTED = """
_nested_compute_contiguous_strides_offsets(Tensor nested_size) -> (Tensor, Tensor)
_nested_from_padded(Tensor padded, Tensor cpu_nested_shape_example, bool fuse_transform_0213=False) -> Tensor
_nested_from_padded_and_nested_example(Tensor padded, Tensor nt_example) -> Tensor
_nested_from_padded_tensor(Tensor padded, Tensor offsets, Tensor dummy, int ragged_idx=1, Tensor? min_seqlen=None,
    Tensor? max_seqlen=None, SymInt? sum_S=None) -> Tensor
_nested_get_jagged_dummy(Tensor any) -> Tensor
_nested_get_lengths(Tensor self) -> Tensor
_nested_get_max_seqlen(Tensor self) -> Tensor
_nested_get_min_seqlen(Tensor self) -> Tensor
_nested_get_offsets(Tensor self) -> Tensor
_nested_get_ragged_idx(Tensor self) -> int
_nested_get_values(Tensor(a) self) -> Tensor(a)
_nested_get_values_copy(Tensor self) -> Tensor
_nested_tensor_from_mask(Tensor t, Tensor mask, bool mask_check=True) -> Tensor
_nested_tensor_from_mask_left_aligned(Tensor t, Tensor mask) -> bool
_nested_tensor_from_tensor_list(Tensor[] list, ScalarType? dtype=None, Layout? layout=None, Device? device=None,
    bool? pin_memory=None) -> Tensor
_nested_tensor_size(Tensor self) -> Tensor
_nested_tensor_softmax_with_shape(Tensor self, Tensor query) -> Tensor
_nested_tensor_storage_offsets(Tensor self) -> Tensor
_nested_tensor_strides(Tensor self) -> Tensor
_nested_view_from_buffer(Tensor(a) self, Tensor nested_size, Tensor nested_strides, Tensor offsets) -> Tensor(a)
_nested_view_from_buffer_copy(Tensor self, Tensor nested_size, Tensor nested_strides, Tensor offsets) -> Tensor
_nested_view_from_jagged(Tensor(a) self, Tensor offsets, Tensor dummy, Tensor? lengths=None, int ragged_idx=1,
    Tensor? min_seqlen=None, Tensor? max_seqlen=None) -> Tensor(a)
_nested_view_from_jagged_copy(Tensor self, Tensor offsets, Tensor dummy, Tensor? lengths=None, int ragged_idx=1,
    Tensor? min_seqlen=None, Tensor? max_seqlen=None) -> Tensor
to_padded_tensor(Tensor self, float padding, SymInt[]? output_size=None) -> Tensor
"""
# Quantized tensors, and the packed weights of FBGEMM.
_QUANTIZED = """
choose_qparams_optimized(Tensor input, int numel, int n_bins, float ratio, int bit_width) -> (Tensor, Tensor)
dequantize.tensors(Tensor[] tensors) -> Tensor[]
_dyn_quant_matmul_4bit(Tensor inp, Tensor packed_weights, int block_size, int in_features, int out_features) ->
    Tensor
_dyn_quant_pack_4bit_weight(Tensor weights, Tensor scales_zeros, Tensor? bias, int block_size, int in_features, int
    out_features) -> Tensor
_empty_affine_quantized(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool?
    pin_memory=None, float scale=1., int zero_point=0, MemoryFormat? memory_format=0) -> Tensor
_empty_per_channel_affine_quantized(SymInt[] size, *, Tensor scales, Tensor zero_points, int axis, ScalarType?
    dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=0) ->
    Tensor
empty_quantized(int[] size, Tensor qtensor, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None,
    bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
fbgemm_linear_fp16_weight(Tensor input, Tensor packed_weight, Tensor bias) -> Tensor
fbgemm_linear_fp16_weight_fp32_activation(Tensor input, Tensor packed_weight, Tensor? bias) -> Tensor
fbgemm_linear_int8_weight(Tensor input, Tensor weight, Tensor packed, Tensor col_offsets, Scalar weight_scale,
    Scalar weight_zero_point, Tensor bias) -> Tensor
fbgemm_linear_int8_weight_fp32_activation(Tensor input, Tensor weight, Tensor packed, Tensor col_offsets, Scalar
    weight_scale, Scalar weight_zero_point, Tensor bias) -> Tensor
fbgemm_linear_quantize_weight(Tensor input) -> (Tensor, Tensor, float, int)
fbgemm_pack_gemm_matrix_fp16(Tensor input) -> Tensor
fbgemm_pack_quantized_matrix(Tensor input) -> Tensor
fbgemm_pack_quantized_matrix.KN(Tensor input, int K, int N) -> Tensor
int_repr(Tensor self) -> Tensor
_make_per_channel_quantized_tensor(Tensor self, Tensor scale, Tensor zero_point, int axis) -> Tensor
_make_per_tensor_quantized_tensor(Tensor self, float scale, int zero_point) -> Tensor
q_per_channel_axis(Tensor self) -> int
q_per_channel_scales(Tensor self) -> Tensor
q_per_channel_zero_points(Tensor self) -> Tensor
q_scale(Tensor self) -> float
q_zero_point(Tensor self) -> int
qscheme(Tensor self) -> QScheme
quantize_per_channel(Tensor self, Tensor scales, Tensor zero_points, int axis, ScalarType dtype) -> Tensor
quantize_per_tensor(Tensor self, float scale, int zero_point, ScalarType dtype) -> Tensor
quantize_per_tensor.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, ScalarType dtype) -> Tensor
quantize_per_tensor.tensors(Tensor[] tensors, Tensor scales, Tensor zero_points, ScalarType dtype) -> Tensor[]
quantize_per_tensor_dynamic(Tensor self, ScalarType dtype, bool reduce_range) -> Tensor
quantized_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, float eps, float
    output_scale, int output_zero_point) -> Tensor
quantized_gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor b_ih, Tensor b_hh, Tensor packed_ih,
    Tensor packed_hh, Tensor col_offsets_ih, Tensor col_offsets_hh, Scalar scale_ih, Scalar scale_hh, Scalar
    zero_point_ih, Scalar zero_point_hh) -> Tensor
quantized_lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor b_ih, Tensor b_hh, Tensor packed_ih,
    Tensor packed_hh, Tensor col_offsets_ih, Tensor col_offsets_hh, Scalar scale_ih, Scalar scale_hh, Scalar
    zero_point_ih, Scalar zero_point_hh) -> (Tensor, Tensor)
quantized_max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] dilation=[1],
    bool ceil_mode=False) -> Tensor
quantized_max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool
    ceil_mode=False) -> Tensor
quantized_max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool
    ceil_mode=False) -> Tensor
quantized_rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor b_ih, Tensor b_hh, Tensor
    packed_ih, Tensor packed_hh, Tensor col_offsets_ih, Tensor col_offsets_hh, Scalar scale_ih, Scalar scale_hh, Scalar
    zero_point_ih, Scalar zero_point_hh) -> Tensor
quantized_rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor b_ih, Tensor b_hh, Tensor
    packed_ih, Tensor packed_hh, Tensor col_offsets_ih, Tensor col_offsets_hh, Scalar scale_ih, Scalar scale_hh, Scalar
    zero_point_ih, Scalar zero_point_hh) -> Tensor
_wrapped_linear_prepack(Tensor weight, Tensor weight_scale, Tensor weight_zero_point, Tensor bias) -> Tensor
_wrapped_quantized_linear_prepacked(Tensor input, Tensor input_scale, Tensor input_zero_point, Tensor packed_weight,
    Tensor output_scale, Tensor output_zero_point, int out_channel) -> Tensor
"""
# Operators whose function is not `torch.name`, but a method or a function of `torch._C._nn`.
_METHODS = frozenset(
    """_philox_normal_ _philox_uniform_ int_repr q_per_channel_axis q_per_channel_scales
    q_per_channel_zero_points q_scale q_zero_point qscheme to_mkldnn to_padded_tensor _nested_tensor_size
    _nested_tensor_storage_offsets _nested_tensor_strides""".split()
)
_NO_FUNCTIONS = frozenset(
    """conv_depthwise3d _conv_depthwise2d mkldnn_linear mkldnn_reorder_conv2d_weight
    mkldnn_reorder_conv3d_weight qscheme to_mkldnn to_padded_tensor _nested_tensor_size _nested_tensor_storage_offsets
    _nested_tensor_strides""".split()
)


def backend_of(args: tuple[Any, ...]) -> str:
    """What PyTorch calls the backend of a call: that of its first tensor."""
    for a in args:
        first = a[0] if isinstance(a, (list, tuple)) and a else a
        if isinstance(first, TensorBase):
            kind: str = first._device.type
            return "Meta" if kind == "meta" else kind.upper()
    return "CPU"


def _unavailable(name: str, why: str) -> Callable[..., NoReturn]:
    def refuse(*args: Any) -> NoReturn:
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the '{backend_of(args)}' backend. This could be because "
            "the operator doesn't exist for this backend, or was omitted during the selective/custom build process (if "
            f"using custom build). {why}"
        )

    return refuse


def _declare(text: str, why: str) -> None:
    """Rows from schemas, one from each line that is not indented and what follows it."""
    for schema in text.strip().replace("\n    ", " ").split("\n"):
        name = schema.partition("(")[0]
        base = name.partition(".")[0]
        composite(schema, _unavailable(name, why), function=base not in _NO_FUNCTIONS, method=base in _METHODS)


_declare(_BACKENDS, "It belongs to a library or a device that is not here.")
_declare(_NESTED, "It takes nested tensors as PyTorch stores them, which are not here.")
_declare(_QUANTIZED, "There are no quantized tensors here.")
