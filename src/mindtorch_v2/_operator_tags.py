"""Tags of operators, as PyTorch's tables have them: by tag, the operators (all overloads, or one) that bear it.

Invariant: what follows from a schema (in-place and `out=` forms) is read from it, not listed.
"""

from __future__ import annotations

from ._tags import Tag

_NAMES: dict[str, str] = {
    "core": """
        _adaptive_avg_pool2d _adaptive_avg_pool2d_backward _adaptive_avg_pool3d _cdist_forward _embedding_bag
        _fft_c2r _fft_r2c _local_scalar_dense _log_softmax _native_batch_norm_legit
        _native_batch_norm_legit_no_training _pdist_forward _softmax _to_copy abs acos acosh add addmm.default
        alias amax amin any arange.start_step argmax argmin as_strided asin asinh atan atan2 atanh avg_pool2d
        avg_pool2d_backward avg_pool3d bitwise_and.Scalar bitwise_and.Tensor bitwise_not bitwise_or.Scalar
        bitwise_or.Tensor bitwise_xor.Scalar bitwise_xor.Tensor bmm.default cat ceil clamp clone col2im
        constant_pad_nd convolution convolution_backward copy.default cos cosh cumsum diagonal div elu embedding
        embedding_dense_backward empty empty_strided eq.Scalar eq.Tensor erf exp expand expm1 fill.Scalar flip
        floor fmod full full_like gather ge gelu grid_sampler_2d gt hardtanh index.Tensor index_put.default
        index_select isinf isnan le leaky_relu log log10 log1p log2 logical_and logical_not logical_or
        logical_xor lt masked_scatter max.dim max_pool2d_with_indices max_pool2d_with_indices_backward
        max_pool3d_with_indices maximum mean min.dim minimum mm.default mul native_dropout native_group_norm
        native_group_norm_backward native_layer_norm native_layer_norm_backward ne.Scalar ne.Tensor neg nonzero
        permute pow prod rand.default randn.default randperm.default reciprocal reflection_pad1d
        reflection_pad2d reflection_pad3d relu remainder.Scalar remainder.Tensor repeat replication_pad2d
        replication_pad3d round.default rsqrt scalar_tensor scatter.src scatter.value scatter_add scatter_reduce
        select select_scatter sigmoid sign sin sinh slice slice_scatter sort.default split_with_sizes sqrt
        squeeze.dim squeeze.dims sub sum.dim_IntList sym_numel sym_size.int sym_storage_offset sym_stride.int
        tan tanh topk trunc unsqueeze upsample_bilinear2d.vec upsample_nearest2d.vec var.correction var.dim
        view.default where.self
    """,
    "data_dependent_output": """
        _local_scalar_dense item
    """,
    "dynamic_output_shape": """
        _unique _unique2 bincount index.Tensor masked_select nonzero one_hot repeat_interleave.Tensor
        unique_consecutive unique_dim
    """,
    "inplace_view": """
        as_strided_ resize_as_ set_ t_ transpose_ unsqueeze_
    """,
    "maybe_aliasing_or_mutating": """
        alpha_dropout conj_physical dropout unsafe_chunk
    """,
    "needs_exact_strides": """
        _scaled_grouped_mm _scaled_mm _scaled_mm_v2
    """,
    "nondeterministic_seeded": """
        _efficient_attention_forward _flash_attention_forward _flash_attention_forward_no_dropout_inplace
        _fused_dropout _scaled_dot_product_attention_math_for_mps _scaled_dot_product_cudnn_attention
        _scaled_dot_product_cudnn_attention_backward _scaled_dot_product_efficient_attention
        _scaled_dot_product_efficient_attention_backward _scaled_dot_product_flash_attention
        _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_fused_attention_overrideable
        _standard_gamma alpha_dropout bernoulli bernoulli_ cauchy cauchy_ dropout exponential exponential_
        geometric geometric_ gru log_normal log_normal_ lstm multinomial native_dropout normal normal_ poisson
        rand rand_like randint randint_like randn randn_like randperm rnn_relu rnn_tanh rrelu_with_noise
        rrelu_with_noise_ rrelu_with_noise_functional uniform uniform_
    """,
    "pointwise": """
        __ilshift__ __ixor__ __lshift__ __rshift__ __xor__ abs acos acos_ acosh acosh_ add add_ addcdiv addcdiv_
        addcmul addcmul_ angle asin asin_ asinh asinh_ atan atan2 atan2_ atan_ atanh atanh_ bitwise_and
        bitwise_and_ bitwise_left_shift bitwise_left_shift_ bitwise_not bitwise_not_ bitwise_or bitwise_or_
        bitwise_right_shift bitwise_right_shift_ bitwise_xor bitwise_xor_ ceil ceil_ celu celu_ clamp clamp_
        clamp_max clamp_max_ clamp_min clamp_min_ clip clip_ clone conj_physical conj_physical_ copysign cos
        cos_ cosh cosh_ deg2rad deg2rad_ digamma digamma_ div div_ elu elu_ eq.Scalar eq.Tensor erf erf_ erfc
        erfc_ erfinv erfinv_ exp exp2 exp2_ exp_ expm1 expm1_ float_power_ floor floor_ fmax fmin fmod fmod_
        frac frac_ frexp gcd ge gelu gelu_backward gt hardshrink hardsigmoid hardsigmoid_ hardtanh hardtanh_
        heaviside hypot hypot_ i0 i0_ igamma igamma_ igammac igammac_ isfinite isinf isnan isneginf isposinf lcm
        ldexp ldexp_ le leaky_relu leaky_relu_ lerp lerp_ lgamma lgamma_ log log10 log10_ log1p log1p_ log2
        log2_ log_ logaddexp logaddexp2 logical_and logical_and_ logical_not logical_not_ logical_or logical_or_
        logical_xor logical_xor_ logit logit_ logit_backward lt masked_fill.Scalar max.other maximum min.other
        minimum mish mul mul_ mvlgamma mvlgamma_ nan_to_num nan_to_num_ native_dropout_backward ne.Scalar
        ne.Tensor neg neg_ nextafter nextafter_ polygamma positive pow pow_ rad2deg rad2deg_ reciprocal
        reciprocal_ relu relu6 relu_ remainder remainder_ round round_ rsqrt rsqrt_ rsub.Scalar selu selu_ sgn
        sgn_ sigmoid sigmoid_ sigmoid_backward sign sign_ signbit silu silu_ silu_backward sin sin_ sinc sinc_
        sinh sinh_ softplus softshrink special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0
        special_bessel_y1 special_chebyshev_polynomial_t special_chebyshev_polynomial_u
        special_chebyshev_polynomial_v special_chebyshev_polynomial_w special_entr special_erfcx
        special_hermite_polynomial_h special_hermite_polynomial_he special_i0e special_i1 special_i1e
        special_laguerre_polynomial_l special_legendre_polynomial_p special_log_ndtr special_modified_bessel_i0
        special_modified_bessel_i1 special_modified_bessel_k0 special_modified_bessel_k1 special_ndtri
        special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1
        special_shifted_chebyshev_polynomial_t special_shifted_chebyshev_polynomial_u
        special_shifted_chebyshev_polynomial_v special_shifted_chebyshev_polynomial_w
        special_spherical_bessel_j0 special_xlog1py special_zeta sqrt sqrt_ square square_ sub sub_ tan tan_
        tanh tanh_ tanh_backward threshold threshold_backward true_divide.Tensor trunc trunc_ where.self xlogy
        xlogy_.Tensor
    """,
    "reduction": """
        all amax amin aminmax any argmax argmin count_nonzero linalg_vector_norm logsumexp max.default max.dim
        mean min.default min.dim nansum norm prod std std_mean sum var var_mean
    """,
    "view_copy": """
        alias_copy as_strided_copy diagonal_copy expand_copy lift_fresh_copy narrow_copy permute_copy
        slice_scatter split_with_sizes_copy squeeze_copy t_copy transpose_copy unbind_copy unfold_copy
        unsqueeze_copy view_copy
    """,
}
_BY_NAME: dict[str, list[str]] = {}
for _tag, _names in _NAMES.items():
    for _name in _names.split():
        _BY_NAME.setdefault(_name, []).append(_tag)


def tags_of(name: str, overload: str, writes_out: bool, writes_self: bool) -> list[Tag]:
    """The tags of an overload of PyTorch's own."""
    found = {*_BY_NAME.get(name, ()), *_BY_NAME.get(f"{name}.{overload}", ()), "pt2_compliant_tag"}
    if writes_out:
        found = {each for each in found if each not in ("core", "dynamic_output_shape")} | {"out"}
    elif writes_self:
        found.add("inplace")
    return [Tag[each] for each in sorted(found)]
