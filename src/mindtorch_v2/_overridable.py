"""Which functions reach `__torch_function__`, by PyTorch's names: facts about its API.

Invariant: data alone. What is listed and not here is left out by `torch.overrides`, which reads this.
"""

from __future__ import annotations

from typing import Final

# Functions of `torch`.
FUNCTIONS: Final = """
abs absolute acos acosh adaptive_avg_pool1d adaptive_max_pool1d add addbmm addcdiv addcmul addmm addmv addr adjoint
affine_grid_generator alias_copy all allclose alpha_dropout amax amin aminmax angle any arccos arccosh arcsin arcsinh
arctan arctan2 arctanh argmax argmin argsort argwhere as_strided_copy as_strided_scatter asin asinh _assert_async atan
atan2 atanh atleast_1d atleast_2d atleast_3d avg_pool1d baddbmm batch_norm batch_norm_backward_elemt
batch_norm_backward_reduce batch_norm_elemt batch_norm_gather_stats batch_norm_gather_stats_with_counts
batch_norm_stats batch_norm_update_stats bernoulli bilinear binary_cross_entropy_with_logits bincount binomial
bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor block_diag bmm broadcast_tensors
broadcast_to bucketize cartesian_prod cat ccol_indices_copy cdist ceil celu chain_matmul channel_shuffle cholesky
cholesky_inverse cholesky_solve choose_qparams_optimized chunk clamp clamp_max clamp_min clip clone col_indices_copy
column_stack combinations complex concat concatenate conj _conj_copy conj_physical constant_pad_nd conv1d conv2d
conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution copysign corrcoef cos cosh
cosine_embedding_loss cosine_similarity count_nonzero cov cross crow_indices_copy ctc_loss cummax cummin cumprod
cumsum cumulative_trapezoid deg2rad dequantize det detach detach_copy diag diag_embed diagflat diagonal diagonal_copy
diagonal_scatter diff digamma dist div divide dot dropout dsmm dsplit dstack einsum embedding embedding_bag empty_like
eq equal erf erfc erfinv exp exp2 expand_copy expm1 fake_quantize_per_channel_affine fake_quantize_per_tensor_affine
fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation fbgemm_linear_int8_weight
fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_quantize_weight fbgemm_pack_gemm_matrix_fp16
fbgemm_pack_quantized_matrix feature_alpha_dropout feature_dropout fix flatten flip fliplr flipud float_power floor
floor_divide fmax fmin fmod frac frexp frobenius_norm full_like _functional_assert_async
fused_moving_avg_obs_fake_quant _fused_rms_norm _fw_primal_copy gather gcd ge geqrf ger get_device gradient greater
greater_equal grid_sampler grid_sampler_2d grid_sampler_3d group_norm gru gru_cell gt hardshrink hash_tensor heaviside
hinge_embedding_loss histc histogram histogramdd hsmm hsplit hstack hypot i0 igamma igammac imag index_add index_copy
index_fill index_put index_reduce index_select indices_copy _indices_copy inner instance_norm int_repr inverse
is_complex is_conj is_distributed is_floating_point is_inference is_neg is_nonzero is_same_size is_signed isclose
isfinite isin isinf isnan isneginf isposinf isreal istft kl_div kron kthvalue layer_norm lcm ldexp le lerp less
less_equal lgamma lobpcg log log10 log1p log2 log_softmax logaddexp logaddexp2 logcumsumexp logdet logical_and
logical_not logical_or logical_xor logit logsumexp lstm lstm_cell lt lu lu_solve lu_unpack _make_dual_copy
margin_ranking_loss masked_fill masked_scatter masked_select matmul matrix_exp matrix_power max max_pool1d
max_pool1d_with_indices max_pool2d max_pool3d maximum mean median meshgrid min minimum miopen_batch_norm
miopen_convolution miopen_convolution_add_relu miopen_convolution_relu miopen_convolution_transpose
miopen_depthwise_convolution miopen_rnn mode moveaxis movedim msort mul multinomial multiply mv mvlgamma nan_to_num
nanmean nanmedian nanquantile nansum narrow narrow_copy native_batch_norm _native_batch_norm_legit
native_channel_shuffle native_dropout native_group_norm native_layer_norm native_norm ne neg _neg_view_copy negative
nextafter nonzero nonzero_static norm norm_except_dim not_equal nuclear_norm numel ones_like orgqr ormqr outer
pairwise_distance pca_lowrank pdist permute permute_copy pinverse pixel_shuffle pixel_unshuffle poisson
poisson_nll_loss polar polygamma positive pow prelu prod put q_per_channel_axis q_per_channel_scales
q_per_channel_zero_points q_scale q_zero_point qr quantile quantize_per_channel quantize_per_tensor
quantize_per_tensor_dynamic quantized_batch_norm quantized_gru_cell quantized_lstm_cell quantized_max_pool1d
quantized_max_pool2d quantized_max_pool3d quantized_rnn_relu_cell quantized_rnn_tanh_cell rad2deg ravel real
reciprocal relu remainder renorm repeat_interleave reshape _reshape_alias_copy resolve_conj resolve_neg rms_norm
rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell roll rot90 round row_indices_copy row_stack _rowwise_prune rrelu rsqrt
rsub saddmm scatter scatter_add scatter_reduce searchsorted segment_reduce select select_copy select_scatter selu sgn
sigmoid sign signbit sin sinc sinh slice_copy slice_inverse slice_scatter slogdet smm softmax sort
_sparse_broadcast_to_copy split split_copy split_with_sizes split_with_sizes_copy sqrt square squeeze squeeze_copy
stack std std_mean stft sub subtract sum svd svd_lowrank swapaxes swapdims _sym_acos _sym_asin _sym_atan _sym_cos
_sym_cosh sym_float sym_int sym_ite sym_max sym_min sym_not _sym_sin _sym_sinh sym_sqrt sym_sum _sym_tan _sym_tanh t
t_copy take take_along_dim tan tanh tensor_split tensordot threshold tile topk trace transpose transpose_copy
trapezoid trapz triangular_solve tril triplet_margin_loss triu true_divide trunc unbind unbind_copy unflatten
unfold_copy unique unique_consecutive unravel_index unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze
unsqueeze_copy values_copy _values_copy var var_mean vdot view_as_complex view_as_complex_copy view_as_real
view_as_real_copy view_copy vsplit vstack where _wrapped_linear_prepack _wrapped_quantized_linear_prepacked xlogy
zeros_like
""".split()
# Functions of `torch.nn.functional`.
NN_FUNCTIONS: Final = """
adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool1d_with_indices adaptive_max_pool2d
adaptive_max_pool2d_with_indices adaptive_max_pool3d adaptive_max_pool3d_with_indices affine_grid alpha_dropout
avg_pool2d avg_pool3d batch_norm binary_cross_entropy binary_cross_entropy_with_logits celu cosine_embedding_loss
cross_entropy ctc_loss dropout dropout1d dropout2d dropout3d elu embedding embedding_bag feature_alpha_dropout fold
fractional_max_pool2d fractional_max_pool2d_with_indices fractional_max_pool3d fractional_max_pool3d_with_indices
gaussian_nll_loss gelu glu grid_sample group_norm gumbel_softmax hardtanh hinge_embedding_loss huber_loss
instance_norm interpolate kl_div l1_loss layer_norm leaky_relu linear linear_cross_entropy local_response_norm
log_softmax lp_pool1d lp_pool2d lp_pool3d margin_ranking_loss max_pool1d max_pool1d_with_indices max_pool2d
max_pool2d_with_indices max_pool3d max_pool3d_with_indices max_unpool1d max_unpool2d max_unpool3d mish mse_loss
multi_head_attention_forward multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss nll_loss normalize
one_hot pad poisson_nll_loss relu relu6 rms_norm rrelu scaled_dot_product_attention selu silu smooth_l1_loss
soft_margin_loss softmax softmin softplus softshrink softsign tanhshrink threshold triplet_margin_loss
triplet_margin_with_distance_loss unfold
""".split()
# Functions of `torch.nn.init`.
NN_INIT: Final = """
constant_ kaiming_uniform_ normal_ uniform_
""".split()
# Functions of `torch.linalg`.
LINALG: Final = """
cholesky cholesky_ex cond cross det diagonal eig eigh eigvals eigvalsh householder_product inv inv_ex ldl_factor
ldl_factor_ex ldl_solve lstsq lu lu_factor lu_factor_ex lu_solve matmul matrix_exp matrix_norm matrix_power
matrix_rank multi_dot norm pinv qr slogdet solve solve_ex solve_triangular svd svdvals tensorinv tensorsolve vander
vecdot vector_norm
""".split()
# Functions of `torch.fft`.
FFT: Final = """
fft fft2 fftn fftshift hfft hfft2 hfftn ifft ifft2 ifftn ifftshift ihfft ihfft2 ihfftn irfft irfft2 irfftn rfft rfft2
rfftn
""".split()
# Functions of `torch.special`.
SPECIAL: Final = """
airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v
chebyshev_polynomial_w digamma entr erf erfc erfcx erfinv exp2 expit expm1 gammainc gammaincc gammaln
hermite_polynomial_h hermite_polynomial_he i0 i0e i1 i1e laguerre_polynomial_l legendre_polynomial_p log1p log_ndtr
log_softmax logit logsumexp modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 multigammaln
ndtr ndtri polygamma psi round scaled_modified_bessel_k0 scaled_modified_bessel_k1 shifted_chebyshev_polynomial_t
shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w sinc softmax
spherical_bessel_j0 xlog1py xlogy zeta
""".split()
# Collectives of `torch.distributed`.
DISTRIBUTED: Final = """
all_gather all_gather_coalesced all_gather_single all_reduce all_reduce_coalesced all_to_all all_to_all_single
broadcast gather irecv isend recv reduce reduce_scatter reduce_scatter_single scatter send
""".split()
# Methods of `torch.Tensor`.
METHODS: Final = """
abs abs_ absolute_ absolute acos acos_ acosh_ acosh add_ __add__ add addbmm_ addbmm addcdiv addcdiv_ addcmul addcmul_
addmm_ addmm addmv addmv_ addr addr_ adjoint all allclose amax amin aminmax __and__ angle any apply_ arccos arccos_
arccosh arccosh_ arcsin_ arcsin arcsinh arcsinh_ arctan arctan_ arctan2 arctan2_ arctanh arctanh_ argmax argmin
argsort argwhere __array__ __array_wrap__ as_strided as_strided_ as_strided_scatter asin_ asin asinh asinh_ atan_ atan
atan2_ atan2 atanh atanh_ _autocast_to_full_precision _autocast_to_reduced_precision backward baddbmm baddbmm_
bernoulli bernoulli_ bfloat16 bincount bitwise_and_ bitwise_and bitwise_left_shift_ bitwise_left_shift bitwise_not
bitwise_not_ bitwise_or bitwise_or_ bitwise_right_shift_ bitwise_right_shift bitwise_xor_ bitwise_xor bmm __bool__
bool broadcast_to byte cauchy_ ccol_indices cdouble ceil ceil_ cfloat chalf char cholesky cholesky_inverse
cholesky_solve chunk clamp clamp_ clamp_max clamp_max_ clamp_min_ clamp_min _clear_non_serializable_cached_data clip_
clip clone coalesce _coalesced_ col_indices __complex__ conj conj_physical_ conj_physical const_data_ptr __contains__
contiguous copy_ copysign copysign_ corrcoef cos_ cos cosh cosh_ count_nonzero cov cpu cross crow_indices cuda cummax
cummin cumprod cumprod_ cumsum cumsum_ data_ptr __deepcopy__ deg2rad deg2rad_ dense_dim dequantize det detach detach_
diag diag_embed diagflat diagonal diagonal_scatter diff digamma digamma_ dim _dimI _dimV dim_order dist __div__ div
div_ divide divide_ __dlpack__ __dlpack_device__ dot double dsplit element_size eq_ __eq__ eq equal erf_ erf erfc
erfc_ erfinv erfinv_ exp exp_ exp2_ exp2 expand expand_as expm1_ expm1 exponential_ fill_ fill_diagonal_ fix fix_
flatten flip fliplr flipud float __float__ float_power float_power_ floor_ floor floor_divide floor_divide_
__floordiv__ fmax fmin fmod fmod_ __format__ frac frac_ frexp gather gcd gcd_ __ge__ ge_ ge geometric_ geqrf ger
get_device __getitem__ greater_ greater greater_equal_ greater_equal gt gt_ __gt__ half hardshrink hash_tensor
heaviside heaviside_ histc histogram hsplit hypot_ hypot i0 i0_ __iadd__ __iand__ __idiv__ __ifloordiv__ igamma_
igamma igammac igammac_ __ilshift__ __imod__ __imul__ index __index__ index_add_ index_add index_copy_ index_copy
index_fill_ index_fill index_put_ index_put index_reduce_ index_reduce index_select indices _indices inner int __int__
int_repr inverse __invert__ __ior__ ipu __irshift__ is_coalesced is_complex is_conj is_contiguous is_distributed
is_floating_point is_inference is_neg is_nonzero is_pinned is_same_size is_set_to is_shared is_signed _is_view isclose
isfinite isinf isnan isneginf isposinf isreal istft __isub__ item __ixor__ kron kthvalue lcm_ lcm ldexp ldexp_ __le__
le le_ __len__ lerp lerp_ less_ less less_equal less_equal_ lgamma lgamma_ log log_ log10 log10_ log1p log1p_ log2_
log2 log_normal_ log_softmax logaddexp logaddexp2 logcumsumexp logdet logical_and logical_and_ logical_not
logical_not_ logical_or_ logical_or logical_xor logical_xor_ logit_ logit logsumexp long __long__ __lshift__ lt_ lt
__lt__ lu lu_solve map_ map2_ masked_fill masked_fill_ masked_scatter masked_scatter_ masked_select matmul __matmul__
matrix_exp matrix_power max maximum mean median min minimum mm __mod__ mode module_load moveaxis movedim msort mtia
__mul__ mul_ mul multinomial multiply_ multiply mv mvlgamma mvlgamma_ nan_to_num nan_to_num_ nanmean nanmedian
nanquantile nansum narrow narrow_copy ndimension ne __ne__ ne_ neg_ neg negative_ negative nelement
_nested_tensor_size _nested_tensor_storage_offsets _nested_tensor_strides nextafter_ nextafter _nnz __nonzero__
nonzero nonzero_static norm normal_ not_equal not_equal_ numel numpy __or__ orgqr ormqr outer permute pin_memory
pinverse polygamma_ polygamma positive pow_ pow prelu prod put put_ q_per_channel_axis q_per_channel_scales
q_per_channel_zero_points q_scale q_zero_point qr qscheme quantile rad2deg rad2deg_ __radd__ __rand__ random_ ravel
__rdiv__ reciprocal_ reciprocal record_stream __reduce_ex__ register_hook register_post_accumulate_grad_hook relu_
relu remainder_ remainder renorm_ renorm repeat repeat_interleave __repr__ requires_grad_ reshape reshape_as resize_
resize resize_as resize_as_ resize_as_sparse_ resolve_conj resolve_neg retain_grad __reversed__ __rfloordiv__
__rlshift__ __rmatmul__ __rmod__ __rmul__ roll __ror__ rot90 round round_ row_indices __rpow__ __rrshift__ __rshift__
rsqrt_ rsqrt __rsub__ __rxor__ scatter_ scatter scatter_add_ scatter_add scatter_reduce scatter_reduce_ select
select_scatter set_ __setitem__ __setstate__ sgn sgn_ share_memory_ short sigmoid_ sigmoid sign sign_ signbit sin sin_
sinc sinc_ sinh_ sinh size slice_inverse slice_scatter slogdet smm softmax sort sparse_dim sparse_mask
_sparse_mask_projection sparse_resize_ sparse_resize_and_clear_ split split_with_sizes sqrt sqrt_ square square_
squeeze squeeze_ sspaddmm std stft storage storage_offset storage_type sub __sub__ sub_ subtract subtract_ sum
sum_to_size svd swapaxes swapaxes_ swapdims swapdims_ t t_ take take_along_dim tan_ tan tanh tanh_ tensor_split tile
to _to_dense to_dense to_mkldnn to_sparse tolist topk trace transpose transpose_ triangular_solve tril_ tril triu_
triu true_divide true_divide_ __truediv__ trunc_ trunc type type_as unbind unfold uniform_ unique unique_consecutive
unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze unsqueeze_ untyped_storage _values values var vdot view
view_as vsplit where xlogy_ xlogy __xor__ xpu zero_
""".split()
# Properties of `torch.Tensor`.
PROPERTIES: Final = """
H T _backward_hooks _base _cdata __cuda_array_interface__ data device dtype grad _grad grad_dtype grad_fn _grad_fn
imag is_cpu is_cuda is_ipu is_leaf is_maia is_meta is_mkldnn is_mps is_mtia is_nested is_quantized is_sparse
is_sparse_csr is_vulkan is_xla is_xpu itemsize layout mH mT name nbytes ndim output_nr _post_accumulate_grad_hooks
real requires_grad retains_grad shape _version volatile
""".split()
