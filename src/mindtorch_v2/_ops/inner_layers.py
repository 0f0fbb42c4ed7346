"""What PyTorch's layers, transforms and layouts are made of inside, by the names its programs have for it.

Invariant: as in `inner`, none has a kernel or a derivative of its own.
"""
from __future__ import annotations

import math
from typing import Any

from .._dispatch import registry
from .._dtype import bool as bool_
from .._dtype import float32, int8, int32, uint8
from .._tensor_base import is_contiguous, numel
from .._warn import warn_once
from .made_of import Ints, call, inner
from .rules.base import size_at

# -- convolutions -------------------------------------------------------------------------------------------------
_HEAD = "Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool " \
        "transposed"


def _convolution(input: Any, weight: Any, bias: Any, stride: Ints, padding: Ints, dilation: Ints, transposed: bool,
                 output_padding: Ints, groups: int, *switches: bool) -> Any:
    rank = len(weight._shape) - 2
    stride, padding, dilation, output_padding = (
        tuple(v) * rank if len(v) == 1 else v for v in (stride, padding, dilation, output_padding)
    )
    return call("convolution", input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


inner(f"_convolution({_HEAD}, SymInt[] output_padding, SymInt groups, bool benchmark, bool deterministic, bool "
      "cudnn_enabled, bool allow_tf32) -> Tensor", _convolution)
inner(f"_convolution.deprecated({_HEAD}, int[] output_padding, SymInt groups, bool benchmark, bool deterministic, bool "
      "cudnn_enabled) -> Tensor", _convolution)


def _by_mode(input: Any, weight: Any, bias: Any, stride: Ints, padding: str, dilation: Ints, groups: int) -> Any:
    if padding not in ("same", "valid"):
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    rank = len(weight._shape) - 2
    if rank not in (1, 2, 3):
        raise RuntimeError(f"Expected a 3-, 4- or 5-dimensional weight, but got a weight of size {list(weight._shape)}")
    return call(f"conv{rank}d.padding", input, weight, bias, stride, padding, dilation, groups)


inner("_convolution_mode(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, str padding, SymInt[] dilation, "
       "SymInt groups) -> Tensor", _by_mode)


def _check_kernel(weight: Any, kernel_size: Ints) -> None:
    """The size is said twice, by the weight too."""
    if tuple(weight._shape[2:]) != tuple(kernel_size):
        raise RuntimeError(
            f"weight of size {list(weight._shape)} has a kernel of size {list(weight._shape[2:])}, but kernel_size is "
            f"{list(kernel_size)}")


def _declare_slow(rank: int) -> None:
    n, ones, zeros = f"SymInt[{rank}]", [1] * rank, [0] * rank
    head = f"Tensor self, Tensor weight, {n} kernel_size, Tensor? bias=None, {n} stride={ones}, {n} padding={zeros}"

    def plain(self: Any, weight: Any, kernel_size: Ints, bias: Any, stride: Ints, padding: Ints,
              dilation: Ints = (1,)) -> Any:
        _check_kernel(weight, kernel_size)
        return call(f"conv{rank}d", self, weight, bias, stride, padding, dilation, 1)

    def transposed(self: Any, weight: Any, kernel_size: Ints, bias: Any, stride: Ints, padding: Ints,
                   output_padding: Ints, dilation: Ints) -> Any:
        _check_kernel(weight, kernel_size)
        return call(f"conv_transpose{rank}d", self, weight, bias, stride, padding, output_padding, 1, dilation)

    inner(f"{'thnn_conv2d' if rank == 2 else 'slow_conv3d'}({head}) -> Tensor", plain, function=False)
    inner(f"slow_conv_dilated{rank}d({head}, {n} dilation={ones}) -> Tensor", plain, function=False)
    inner(f"slow_conv_transpose{rank}d({head}, {n} output_padding={zeros}, {n} dilation={ones}) -> Tensor", transposed,
           function=False)


for _rank in (2, 3):
    _declare_slow(_rank)


# -- normalization, activations, padding, losses ------------------------------------------------------------------
def _batch_norm_index(*args: Any) -> Any:
    out, mean, rstd = call("native_batch_norm", *args[:8])
    return out, mean, rstd, args[0].new_empty((0,), dtype=uint8), 0


_STATS = "Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var"
inner(f"_batch_norm_impl_index({_STATS}, bool training, float momentum, float eps, bool cudnn_enabled) -> (Tensor, "
       "Tensor, Tensor, Tensor, int)", _batch_norm_index)
inner("_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor "
       "running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
       lambda *args: call("native_batch_norm", *args[:5], False, *args[5:]))


def _rms(input: Any, normalized_shape: Ints, weight: Any, eps: float | None) -> Any:
    dims = tuple(range(len(input._shape) - len(normalized_shape), len(input._shape)))
    out = call("rms_norm", input, normalized_shape, weight, eps)
    from .norm import rms_eps  # its table is loaded now

    wide = input.detach().to(float32) if input._dtype.itemsize == 2 else input.detach()
    return out, (wide * wide).mean(dims, True).add(rms_eps(input._dtype) if eps is None else eps).rsqrt()


inner("_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)", _rms)


def _noisy(name: str, leaky: str) -> Any:
    def run(self: Any, noise: Any, lower: float, upper: float, training: bool, generator: Any) -> Any:
        if training:
            drawn = noise.new_empty(noise._shape).uniform_(lower, upper, generator=generator)
            noise.copy_(drawn.masked_fill(self.detach() > 0, 1))
        return call(leaky, self, noise, lower, upper, training)

    run.__name__ = name
    return run


_SLOPES = "Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? generator=None"
inner(f"rrelu_with_noise(Tensor self, Tensor(b!) noise, {_SLOPES}) -> Tensor",
       _noisy("rrelu_with_noise", "_rrelu_noised"), function=False)
inner(f"rrelu_with_noise_(Tensor(a!) self, Tensor(b!) noise, {_SLOPES}) -> Tensor(a!)",
       _noisy("rrelu_with_noise_", "_rrelu_noised_"), function=False)
_PADS = ("reflect", "replicate", "circular", "constant")


def _padded(self: Any, pad: Ints, mode: int, value: float | None) -> Any:
    if not 0 <= mode < len(_PADS):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    return call("pad", self, pad, _PADS[mode], value)


inner("_pad_enum(Tensor self, SymInt[] pad, int mode, float? value=None) -> Tensor", _padded, function=False)


def _ctc(log_probs: Any, targets: Any, inputs: Any, lengths: Any, blank: int, zero_infinity: bool) -> Any:
    """The losses one by one; the sums over paths, which PyTorch gives second, are not kept here."""
    losses = call("ctc_loss.IntList", log_probs, targets, tuple(inputs), tuple(lengths), blank, 0, zero_infinity)
    return losses, log_probs.new_empty((numel(losses), 0))


def _ctc_of_tensors(log_probs: Any, targets: Any, inputs: Any, lengths: Any, blank: int, zero_infinity: bool) -> Any:
    return _ctc(log_probs, targets, inputs.flatten().tolist(), lengths.flatten().tolist(), blank, zero_infinity)


inner("_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, bool "
       "zero_infinity=False) -> (Tensor, Tensor)", _ctc)
inner("_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, "
       "bool zero_infinity=False) -> (Tensor, Tensor)", _ctc_of_tensors)


# -- attention ----------------------------------------------------------------------------------------------------
def _attention_math(query: Any, key: Any, value: Any, attn_mask: Any, dropout_p: float, is_causal: bool,
                    dropout_mask: Any, scale: float | None, enable_gqa: bool) -> Any:
    if enable_gqa:
        registry.get("scaled_dot_product_attention")
        from .attention import grouped  # its table is loaded now

        key, value = grouped(query, key), grouped(query, value)
    factor = math.sqrt(1 / math.sqrt(max(query.size(-1), 1)) if scale is None else abs(scale))
    scores = (query * factor) @ (key.transpose(-2, -1) * (factor if scale is None or scale > 0 else -factor))
    if is_causal:
        if attn_mask is not None:
            raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when "
                               "is_causal=True")
        attn_mask = query.detach().new_ones((query.size(-2), key.size(-2)), dtype=bool_).tril()
    if attn_mask is not None and attn_mask._dtype is bool_:
        attn_mask = attn_mask.new_zeros(attn_mask._shape, dtype=query._dtype).masked_fill(attn_mask.logical_not(),
                                                                                       -math.inf)
    if attn_mask is not None:
        scores = scores + attn_mask
    weights = call("_safe_softmax", scores, -1, None)
    if dropout_p > 0:
        if dropout_mask is None:
            weights = call("dropout", weights, dropout_p, True)
        else:
            warn_once("Dropout mask should only be used for testing purposes.")
            weights = weights.masked_fill(dropout_mask.logical_not(), 0)
            value = value * (1 / (1 - dropout_p))
    return weights @ value, weights


_QKV = "Tensor query, Tensor key, Tensor value"
inner(f"_scaled_dot_product_attention_math({_QKV}, Tensor? attn_mask=None, float dropout_p=0., bool is_causal=False, "
       "Tensor? dropout_mask=None, *, float? scale=None, bool enable_gqa=False) -> (Tensor, Tensor)", _attention_math)


def _flash(query: Any, key: Any, value: Any, dropout_p: float, is_causal: bool, attn_mask: Any,
           scale: float | None) -> Any:
    if len(query._shape) != 4:
        raise RuntimeError("scaled_dot_product_attention_flash_attention: Accept only 4 dims inputs shape of {B, H, T, "
                           "K}")
    if dropout_p:
        raise RuntimeError("scaled_dot_product_attention_flash_attention: Currently do not support dropout > 0")
    out = call("scaled_dot_product_attention", query, key, value, attn_mask, 0.0, is_causal, scale, False)
    with_mask = attn_mask if not is_causal else query.detach().new_ones((query._shape[-2], key._shape[-2]),
                                                                        dtype=bool_).tril()
    scores = query.detach() @ key.detach().transpose(-2, -1) * (query._shape[-1] ** -0.5 if scale is None else scale)
    if with_mask is not None:
        scores = scores.masked_fill(with_mask.logical_not(), -math.inf) if with_mask._dtype is bool_ else \
            scores + with_mask
    return out, scores.to(float32 if query._dtype.itemsize < 4 else query._dtype).logsumexp((-1,))


inner(f"_scaled_dot_product_flash_attention_for_cpu({_QKV}, float dropout_p=0., bool is_causal=False, *, Tensor? "
       "attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)", _flash)


def _choice(query: Any, key: Any, value: Any, attn_mask: Any, dropout_p: float, is_causal: bool, scale: float | None,
            enable_gqa: bool) -> int:
    """What PyTorch would take on a CPU: its fused kernel for batches of heads without dropout, or the composition."""
    fused = query._device.type == "cpu" and not dropout_p and all(
        len(t._shape) == 4 and t._dtype is query._dtype and t._shape[-1] == query._shape[-1]
        for t in (query, key, value))
    return 1 if fused else 0


inner(f"_fused_sdp_choice({_QKV}, Tensor? attn_mask=None, float dropout_p=0., bool is_causal=False, *, float? "
       "scale=None, bool enable_gqa=False) -> int", _choice)


def _rescaled(qkv: Any, qkv_bias: Any, num_heads: int) -> Any:
    if len(qkv._shape) != 3:
        raise RuntimeError(f"expected 3-D tensor, but got {len(qkv._shape)}-D tensor for qkv")
    batch, steps, width = qkv._shape[0], qkv._shape[1], qkv._shape[2] // 3
    if num_heads <= 0 or width % num_heads:
        raise RuntimeError("D % num_heads == 0 INTERNAL ASSERT FAILED")
    each = (qkv + qkv_bias).view((batch, steps, 3, num_heads, width // num_heads)).permute((2, 0, 3, 1, 4))
    q, k, v = (each.select(0, i).contiguous() for i in range(3))
    return q * (width // num_heads) ** -0.5, k, v


inner("_transform_bias_rescale_qkv(Tensor qkv, Tensor qkv_bias, int num_heads) -> (Tensor, Tensor, Tensor)", _rescaled)


# -- products of packed weights -----------------------------------------------------------------------------------
def _int8_product(self: Any, mat2: Any, scales: Any) -> Any:
    name = "_weight_int8pack_mm_cpu"
    if mat2._dtype is not int8:
        raise RuntimeError(f"{name} : expect B to be int8 tensor.")
    size_at(self, 0)
    size_at(mat2, 0)
    if mat2.dim() != 2 or mat2._shape[1] != size_at(self, 1):
        raise RuntimeError(f"{name} : expect B.size(1) == {size_at(self, 1)}")
    if not is_contiguous(mat2):
        raise RuntimeError(f"{name} : expect B to be contiguous.")
    if scales.dim() != 1 or scales._shape[0] != mat2._shape[0]:
        raise RuntimeError(f"{name} : expect scales to be 1d tensor with size {mat2._shape[0]}")
    wide = self.to(float32) if self._dtype.itemsize < 4 else self
    return (wide @ mat2.to(wide._dtype).t() * scales.to(wide._dtype)).to(self._dtype)


inner("_weight_int8pack_mm(Tensor self, Tensor mat2, Tensor scales) -> Tensor", _int8_product)


def _int4_packed(self: Any, innerKTiles: int) -> Any:
    """Two numbers of four bits in a byte, those of even columns low. What PyTorch packs can be read by it alone too."""
    name = "_convert_weight_to_int4pack_cpu"
    if self._dtype is not int32:
        raise RuntimeError(f"{name} : expect weight to be kInt.")
    if self.dim() != 2:
        raise RuntimeError(f"{name} : expect weight to be 2D tensor.")
    if self._shape[0] % 16 or self._shape[1] % 2:
        raise RuntimeError(f"{name} : expect N to be dividable by 16 and K by 2, got {list(self._shape)}")
    return (self[:, ::2] | self[:, 1::2] << 4).to(uint8)


def _int4_product(self: Any, mat2: Any, qGroupSize: int, qScaleAndZeros: Any) -> Any:
    name = "_weight_int4pack_mm_cpu"
    width = self.size(1)
    if mat2._dtype is not uint8:
        raise RuntimeError(f"{name} : expect B to be uint8 tensor.")
    if mat2.dim() != 2 or mat2._shape[1] * 2 != width:
        raise RuntimeError(f"{name} : expect B.size(1) == {width // 2}")
    if qGroupSize not in (32, 64, 128, 256):
        raise RuntimeError(f"{name}: expect qGroupSize to be 32, 64, 128 or 256, got {qGroupSize}")
    if qScaleAndZeros.dim() != 3 or qScaleAndZeros._shape[1] != mat2._shape[0] or qScaleAndZeros._shape[2] != 2:
        raise RuntimeError(f"{name}: expect qScaleAndZeros to be 3d tensor with sizes [:, {mat2._shape[0]}, 2]")
    rows, columns = mat2._shape[0], width
    numbers = call("stack", (mat2 & 15, mat2 >> 4), -1).to(float32).view((rows, columns)) - 8
    # One scale and zero for each group of columns, by row.
    each = qScaleAndZeros.to(float32).permute((2, 1, 0)).repeat_interleave(qGroupSize, -1)[..., :columns]
    return (self.to(float32) @ (numbers * each[0] + each[1]).t()).to(self._dtype)


inner("_convert_weight_to_int4pack_for_cpu(Tensor self, int innerKTiles) -> Tensor", _int4_packed)
inner("_weight_int4pack_mm_for_cpu(Tensor self, Tensor mat2, int qGroupSize, Tensor qScaleAndZeros) -> Tensor",
       _int4_product)


def _grouped_mm(self: Any, mat2: Any, offs: Any, bias: Any, out_dtype: Any) -> Any:
    from ..nn.functional import grouped_mm

    return grouped_mm(self, mat2, offs=offs, bias=bias, out_dtype=out_dtype)


inner("_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) -> "
      "Tensor",
       _grouped_mm)


# -- histograms ---------------------------------------------------------------------------------------------------
_BINS = "float[]? range=None, Tensor? weight=None, bool density=False"


def _bin_edges(self: Any, bins: Any, range: Any, weight: Any, density: bool) -> Any:
    return call("histogramdd", self, tuple(bins), range, weight, density)[1]


inner(f"_histogramdd_bin_edges(Tensor self, int[] bins, *, {_BINS}) -> Tensor[]", _bin_edges)
inner(f"_histogramdd_from_bin_cts(Tensor self, int[] bins, *, {_BINS}) -> Tensor",
       lambda self, bins, range, weight, density: call("histogramdd", self, bins, range, weight, density)[0])
inner("_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None, bool density=False) -> Tensor",
       lambda self, bins, weight, density: call("histogramdd.TensorList_bins", self, bins, None, weight, density)[0])


# -- transforms ---------------------------------------------------------------------------------------------------
def _make_dual(primal: Any, tangent: Any, level: int) -> Any:
    from ..autograd import forward_ad

    return forward_ad.make_dual(primal, tangent, level=level)


def _unpack_dual(dual: Any, level: int) -> Any:
    from ..autograd import forward_ad

    return tuple(forward_ad.unpack_dual(dual, level=level))


inner("_make_dual(Tensor(a) primal, Tensor tangent, int level) -> Tensor(a)", _make_dual)
inner("_make_dual_copy(Tensor primal, Tensor tangent, int level) -> Tensor",
       lambda primal, tangent, level: _make_dual(primal.clone(), tangent, level))
inner("_unpack_dual(Tensor(a) dual, int level) -> (Tensor(a) primal, Tensor tangent)", _unpack_dual)
inner("_fw_primal_copy(Tensor self, int level) -> Tensor", lambda self, level: _unpack_dual(self, level)[0].clone())


def _add_batch(self: Any, batch_dim: int, level: int) -> Any:
    from .._C import _functorch

    return _functorch._add_batch_dim(self, batch_dim, level)


def _remove_batch(self: Any, level: int, batch_size: int, out_dim: int) -> Any:
    from .._C import _functorch

    return _functorch._remove_batch_dim(self, level, batch_size, out_dim)


inner("_add_batch_dim(Tensor self, int batch_dim, int level) -> Tensor", _add_batch)
inner("_remove_batch_dim(Tensor self, int level, SymInt batch_size, int out_dim) -> Tensor", _remove_batch)


# -- sparse layouts -----------------------------------------------------------------------------------------------
def _sparse(name: str) -> Any:
    """A row of the sparse table, which is loaded by its first call."""

    def run(*args: Any) -> Any:
        from .._sparse import kernels  # noqa: F401 (fills the table)
        from .._sparse.refusals import refused
        from .._sparse.table import ROWS

        if name not in ROWS:
            raise refused(name, list(args[:1]))
        return ROWS[name].call(args)

    return run


def _copy_of(method: str) -> Any:
    def copy(self: Any) -> Any:
        return getattr(self, method)().clone()

    return copy


for _method in ("indices values crow_indices col_indices ccol_indices row_indices _indices _values").split():
    inner(f"{_method}_copy(Tensor self) -> Tensor", _copy_of(_method))
inner("_sparse_sum(Tensor self) -> Tensor", lambda self: self.coalesce().values().sum())
inner("_sparse_sum.dtype(Tensor self, *, ScalarType dtype) -> Tensor",
       lambda self, dtype: self.coalesce().values().sum(dtype=dtype))
inner("_sparse_sum.dim(Tensor self, int[1] dim) -> Tensor", _sparse("_sparse_sum.dim"))
inner("_sparse_sum.dim_dtype(Tensor self, int[1] dim, *, ScalarType dtype) -> Tensor",
       lambda self, dim, dtype: _sparse("_sparse_sum.dim")(self.to(dtype), dim))
inner("_sparse_sparse_matmul(Tensor self, Tensor other) -> Tensor", _sparse("_sparse_sparse_matmul"))
inner("_to_dense(Tensor self, ScalarType? dtype=None, bool? masked_grad=None) -> Tensor", _sparse("_to_dense"),
       method=True, function=False)
for _name in ("sum", "prod"):
    inner(f"_sparse_csr_{_name}.dim_dtype(Tensor self, int[1] dim, bool keepdim=False, *, ScalarType? dtype=None) -> "
           "Tensor", _sparse(f"_sparse_csr_{_name}.dim_dtype"))


def _softmax_backward(log: bool) -> Any:
    def run(grad_output: Any, output: Any, dim: int, self: Any) -> Any:
        from .._sparse.reductions import softmax_grad

        return softmax_grad(grad_output, output, dim, self, log)

    return run


for _name in ("", "log_"):
    inner(f"_sparse_{_name}softmax_backward_data(Tensor grad_output, Tensor output, int dim, Tensor self) -> Tensor",
           _softmax_backward(bool(_name)))
inner("_sparse_broadcast_to(Tensor(a) self, int[] size) -> Tensor(a)", _sparse("_sparse_broadcast_to"))
inner("_sparse_broadcast_to_copy(Tensor self, int[] size) -> Tensor", _sparse("_sparse_broadcast_to_copy"))


def _validate(is_crow: bool, compressed_idx: Any, plain_idx: Any, cdim: int, dim: int, nnz: int) -> None:
    from .. import sparse_csc, sparse_csr
    from .._sparse import construct

    layout = sparse_csr if is_crow else sparse_csc
    size = (*compressed_idx._shape[:-1], *((cdim, dim) if is_crow else (dim, cdim)))
    construct._validate_sparse_compressed_tensor_args(compressed_idx, plain_idx, plain_idx, size, layout)


inner("_validate_compressed_sparse_indices(bool is_crow, Tensor compressed_idx, Tensor plain_idx, int cdim, int dim, "
      "int "
       "nnz) -> ()", _validate)


# -- other devices ------------------------------------------------------------------------------------------------
def _cufft(*args: Any) -> Any:
    raise RuntimeError("Cannot access cuFFT plan cache without ATen_cuda library. There is no CUDA here.")


def _xla(input: Any, output: Any) -> None:
    raise RuntimeError("input.device().type() == kXLA INTERNAL ASSERT FAILED: This op should only be called by XLA")


for _question in ("_cufft_get_plan_cache_size", "_cufft_get_plan_cache_max_size"):
    inner(f"{_question}(int device_index) -> int", _cufft)
inner("_cufft_set_plan_cache_max_size(int device_index, int max_size) -> ()", _cufft)
inner("_cufft_clear_plan_cache(int device_index) -> ()", _cufft)
inner("_propagate_xla_data(Tensor input, Tensor output) -> ()", _xla)
inner("_use_cudnn_rnn_flatten_weight() -> bool", lambda: False)
