"""What PyTorch's functions are made of inside, operators that its tests probe with, simulated quantization, and
operators of libraries that are not here: lines of code on both libraries, and refusals.
"""

from __future__ import annotations

from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only, submodule
from .._subject import subject as torch
from .test_private import told

_CASTS = """
torch._cast_Byte(a)
torch._cast_Half(m, True)
torch._cast_Double(m) is m
m.half()._autocast_to_full_precision(False, True).dtype
m.half()._autocast_to_full_precision(False, False).dtype
m.float()._autocast_to_reduced_precision(False, True, torch.half, torch.bfloat16).dtype
torch._saturate_weight_to_fp16(m * 1e9)
torch._saturate_weight_to_fp16(m.float() * 1e9)
torch._shape_as_tensor(a)
torch._reshape_from_tensor(m, torch.tensor([4, 3]))
torch._reshape_from_tensor(m, torch.tensor([[4, 3]]))
torch._reshape_alias_copy(m, [6, 2], [2, 1])
torch._dim_arange(a, -1)
torch._dim_arange(a, 5)
torch._stack([m, m], 2)
torch._to_cpu([m])[0] is m
torch._C._nn.flatten_dense_tensors([m, a])
torch._C._nn.unflatten_dense_tensors(a.reshape(-1), [m, m[:, :0], m])
torch._lazy_clone(m).add_(1)
m._is_zerotensor()
torch._efficientzerotensor([2, 3]) + 1
torch._has_compatible_shallow_copy_type(m, a)
torch._has_compatible_shallow_copy_type(m, m.to('meta'))
"""
_ASSERTIONS = """
torch._assert_scalar(0, 'words')
torch._assert_scalar(True, 'words')
torch._functional_assert_scalar(1, 'words', m)
torch._assert_tensor_metadata(m, [3, 4], [4, 1], torch.float64)
torch._assert_tensor_metadata(m, [3, 5])
torch._assert_tensor_metadata(m, None, [1, 1])
torch._assert_tensor_metadata(m, None, None, torch.int32)
torch._assert_tensor_metadata(m, device='meta')
torch._assert_tensor_metadata(m, layout=torch.sparse_coo)
torch._functional_sym_constrain_range(5, 1, 3, m)
torch._functional_sym_constrain_range_for_size(5, None, 3, m)
torch._functional_sym_constrain_range_for_size(5, None, 2, m)
torch._functional_sym_constrain_range_for_size(5, None, 9, m)
torch._is_all_true(shut)
torch._is_any_true(shut)
shut._is_any_true()
"""
_ARITHMETIC = """
torch._C._VariableFunctions.__and__(i, i)
torch._C._VariableFunctions.__xor__(i, 3)
torch._C._VariableFunctions.__lshift__(i, 1)
torch._cummax_helper(m, (v := torch.empty_like(m)), torch.empty(3, 4, dtype=torch.long), 1) or v
torch._logcumsumexp(m, 1)
torch._euclidean_dist(m, a)
torch._C._linalg.linalg__powsum(m, 3)
torch._C._linalg.linalg__powsum(m, 3, 1, True)
torch._C._linalg.linalg__powsum(m, 0)
torch._C._linalg.linalg__powsum(i)
torch._foreach_powsum([m, a], 3)
torch._trilinear(m, m, m, [], [], [], [])
torch._trilinear(m, m[0], m, [], [0], [], [0, 1])
torch._unsafe_index(m, [torch.tensor([0])])
torch._unsafe_index_put(m, [torch.tensor([0])], torch.tensor(1.0, dtype=torch.float64))
torch._index_put_impl_(m.clone(), [torch.tensor([0])], torch.tensor(1.0, dtype=torch.float64), True)
torch._rowwise_prune(m, torch.tensor([True, False, True]), torch.int32)
torch._rowwise_prune(m, torch.tensor([True]), torch.int32)
torch._convert_indices_from_coo_to_csr(torch.tensor([0, 1, 1, 2]), 4)
torch._convert_indices_from_coo_to_csr(torch.tensor([0, 1, 1, 2]), 4, out_int32=True)
torch._convert_indices_from_coo_to_csr(i, 4)
torch._convert_indices_from_csr_to_coo(torch.tensor([0, 1, 3, 4]), torch.tensor([0, 1, 2, 0]))
torch._convert_indices_from_csr_to_coo(torch.tensor([0, 1, 3, 4]), torch.tensor([0, 1, 2, 0]), transpose=True)
torch._linalg_det(m[:, :3])
torch._linalg_slogdet((m + torch.eye(3, 4))[:, :3])
torch._linalg_check_errors(torch.tensor(1, dtype=torch.int32), 'linalg.inv', is_matrix=True)
torch._linalg_check_errors(torch.tensor([0, 2], dtype=torch.int32), 'linalg.cholesky', is_matrix=False)
torch._C._linalg._linalg_eigvals(torch.eye(2))
torch._embedding_bag_forward_only(m, torch.tensor([0, 1]), torch.tensor([0]))[0]
torch._adaptive_avg_pool2d(four, [2, 2])
torch._fft_r2c(m, [1], 0, True)
torch._prelu_kernel(m, m)
"""
_LAYERS = """
torch._convolution(four, four[:, :, :2, :2], None, [1], [0], [1], False, [0], 1, False, False, True, True)
torch._convolution_mode(four, four[:, :, :2, :2], None, [1, 1], 'same', [1, 1], 1)
torch._convolution_mode(four, four[:, :, :2, :2], None, [1, 1], 'a', [1, 1], 1)
torch._C._nn.thnn_conv2d(four, four[:, :, :2, :2], [2, 2])
torch._C._nn.slow_conv_dilated2d(four, four[:, :, :2, :2], [2, 2], None, 1, 0, 2)
torch._C._nn.slow_conv_transpose2d(four, four[:, :, :2, :2].transpose(0, 1), [2, 2])
torch._batch_norm_impl_index(m, None, None, None, None, True, 0.1, 1e-5, True)
torch._native_batch_norm_legit_no_training(m, None, None, m[0], m[0].abs() + 1, 0.1, 1e-5)[0]
torch._fused_rms_norm(m, [4], None, 1e-5)
torch._C._nn.rrelu_with_noise(m - 1, torch.zeros_like(m))
torch._C._nn._pad_enum(a, [1, 1], 0)
torch._C._nn._pad_enum(a, [1, 1], 3, 2.0)
torch._ctc_loss(four[:, :, 0].log_softmax(-1), torch.tensor([[1], [2], [1]]), [2, 2, 2], [1, 1, 1])[0]
torch._scaled_dot_product_attention_math(four, four, four)
torch._scaled_dot_product_attention_math(four, four, four, None, 0.0, True)
torch._scaled_dot_product_attention_math(four, four, four, None, 0.5, False, shut)
torch._scaled_dot_product_flash_attention_for_cpu(four, four, four, 0.0, True)
torch._fused_sdp_choice(four, four, four)
torch._fused_sdp_choice(m, m, m)
torch._transform_bias_rescale_qkv(a.repeat(1, 1, 3), m.reshape(-1), 2)
torch._weight_int8pack_mm(m.gt(0.5).float(), i.to(torch.int8).repeat(1, 2)[:, :4].contiguous(), torch.ones(2))
torch._weight_int8pack_mm(m.float(), m, torch.ones(2))
torch._histogramdd_bin_edges(m, [2, 2, 2, 2])
torch._histogramdd_from_bin_cts(m, [2, 2, 2, 2])
torch._sparse_sum(m.to_sparse())
torch._sparse_sum(m.to_sparse(), [0]).to_dense()
torch._sparse_sparse_matmul(m.to_sparse(), m.t().to_sparse()).to_dense()
torch._sparse_softmax_backward_data(m.to_sparse(), m.to_sparse(), 0, m.to_sparse()).to_dense()
torch._validate_compressed_sparse_indices(True, torch.tensor([0, 1, 2]), torch.tensor([0, 1]), 2, 2, 2)
torch.indices_copy(m)
torch.row_indices_copy(m)
torch._use_cudnn_rnn_flatten_weight()
"""
_HALVES = """
aten._cdist_forward(m, m[:2], 2.0, None)
aten._cdist_forward(m, m[:2], 1.0, 2)
aten._cdist_forward(m, m[:2], 1.0, 3)
aten._pdist_forward(m, 1.0)
aten._pdist_forward(m.t(), 1.0)
aten.log_sigmoid_forward(m - 1)
aten.log_sigmoid_forward.output(m, output=m.new_empty(0), buffer=m.new_empty(0))
aten.log_sigmoid_backward(m, m - 1, (m - 1).abs().neg().exp())
grad(aten._cdist_forward(r, m[:2], 3.0, None), r)
aten.unique_consecutive(i.reshape(-1).sort()[0])
aten.unique_consecutive(i, True, True)
aten.unique_consecutive(i, False, False, 1)
aten.unique_dim_consecutive(i, 0)
aten._embedding_bag_dense_backward(m, i[0], i[0] * 0 + 2, i[0] * 0 + 1, i[0], 5, False, 0, None)
aten._embedding_bag_dense_backward(m, i[0], i[0] * 0 + 2, i[0] * 0 + 3, i[0], 5, True, 1, None, 1)
aten._embedding_bag_dense_backward(m, i[0], i[0] % 2, i[0], i.new_ones(3, 4), 5, False, 2, None)
aten._embedding_bag_per_sample_weights_backward(m, a.reshape(6, 4), i[0], i[0], i[0] * 0 + 1, 0, 3)
aten._embedding_bag_per_sample_weights_backward(m, a.reshape(6, 4), i[0], i[0], i[0] * 0 + 1, 1)
aten._to_sparse.sparse_dim(m, 1).to_dense()
aten.logit_backward(m, m / 20)
aten.logit_backward(m, m / 20, 0.2)
aten.masked_scatter_backward(m, shut, [3, 5])
aten.masked_scatter_backward(m, m > 3, [4, 2])
aten.masked_scatter_backward(m, m > 3, [1])
aten.masked_select_backward(m.reshape(-1), m, m > 3)
aten.masked_select_backward(m[0, :1], m, m > 3)
aten.gather_backward(m[:, :2], m, 1, torch.tensor([[0, 0], [1, 3], [2, 2]]), False)
aten.index_select_backward(m, [5, 4], 0, torch.tensor([4, 0, 4]))
aten.index_select_backward(m, [5, 4], 0, torch.tensor([4, 0, 9]))
aten.rrelu_with_noise_backward(m, m - 4, m / 9, 0.1, 0.3, True, False)
aten.rrelu_with_noise_backward(m, m - 4, m / 9, 0.1, 0.3, False, False)
aten.fractional_max_pool2d_backward(m[:1, :2][None], m.new_zeros(1, 4, 4), [2, 2], [1, 2], torch.tensor([[[5, 15]]]))
aten.fractional_max_pool2d_backward(m[:1, :2][None], m.new_zeros(1, 4, 4), [2, 2], [3, 3], torch.tensor([[[5, 15]]]))
aten.fractional_max_pool3d_backward(m.new_ones([1] * 4), m.new_ones(1, 2, 2, 2), [2] * 3, [1] * 3, i.new_ones([1] * 4))
"""
_PROBES = """
torch._foobar(m)
(lambda c: torch._foobar(c) is c)(m.clone())
torch._test_serialization_subcmul(m, m, 2)
torch._test_functorch_fallback(m, m)
torch._test_check_tensor(shut)
torch._C._nn._test_optional_filled_intlist(torch.arange(2, dtype=torch.int32), 3)
torch._C._nn._test_optional_intlist(torch.arange(2, dtype=torch.int32), [1, 2])
torch._C._nn._test_optional_floatlist(torch.arange(2.0), None)
torch._C._nn._test_optional_floatlist(m, [1.0])
torch._C._nn._test_ambiguous_defaults(m)
torch._C._nn._test_ambiguous_defaults(m, 2, '2')
torch._C._nn._test_string_default(m)
torch._C._nn._test_string_default(m, 'a')
grad(torch._C._nn._test_warn_in_autograd(r), r)
grad(torch._test_autograd_multiple_dispatch(r), r)
grad(torch._test_autograd_multiple_dispatch(r, True), r)
torch._test_autograd_multiple_dispatch_view(m)
torch._test_autograd_multiple_dispatch_view_copy(m)
"""
_FAKE = """
torch.fake_quantize_per_tensor_affine(m.float(), 0.1, 3, 0, 9)
torch.fake_quantize_per_tensor_affine(m.float(), torch.tensor(0.1), torch.tensor(3), 0, 9)
torch.fake_quantize_per_tensor_affine(m.float(), 0.1, 3, 5, 1)
torch.fake_quantize_per_tensor_affine(m.float(), 0.1, 300, 0, 255)
grad(torch.fake_quantize_per_tensor_affine(r, 0.1, 3, 0, 9), r)
torch.fake_quantize_per_channel_affine(m.float(), torch.rand(3), torch.ones(3).int(), 0, 0, 9).shape
torch.fake_quantize_per_channel_affine(m.float(), torch.tensor([0.1, 0.2, 0.3]), torch.ones(3).int(), 0, 0, 9)
torch.fake_quantize_per_channel_affine(m.float(), torch.rand(2), torch.ones(3).int(), 0, 0, 9)
torch.fake_quantize_per_channel_affine(m, m[0], m[0], 0, 0, 9)
torch._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(m, *map(torch.tensor, (0.1, 3, 0)), 0, 5)
torch._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(m, *map(torch.tensor, (0.1, 3, 1)), 0, 5)
torch._fake_quantize_learnable_per_tensor_affine(m.float(), torch.tensor([0.1]), torch.tensor([3.0]), 0, 9)
torch._choose_qparams_per_tensor(m)
torch._choose_qparams_per_tensor(m + 3, True)
torch.fused_moving_avg_obs_fake_quant(m.float(), *map(torch.tensor, (1, 1, 0.0, 1.0, [1.0], [0])), 0.01, 0, 255, 0)
torch.dequantize(m.half())
"""
_BLOCKS = (_CASTS, _ASSERTIONS, _ARITHMETIC, _LAYERS, _HALVES, _PROBES, _FAKE)


@mindtorch_only
@pytest.mark.oracle
@pytest.mark.parametrize("line", [line for block in _BLOCKS for line in block.split("\n") if line])
def test_as_pytorch_does(line: str) -> None:
    assert told(torch, line) == told(_oracle.load(), line)


@mindtorch_only
@pytest.mark.oracle
@pytest.mark.parametrize("name", ["scale", "zero", "x"])
def test_what_is_learned_has_gradients(name: str) -> None:
    def gradient(library: Any) -> Any:
        given = {
            "x": library.linspace(-1, 2, 12).reshape(3, 4),
            "scale": library.tensor([0.13]),
            "zero": library.tensor([2.0]),
        }
        for t in given.values():
            t.requires_grad_()
        out = library._fake_quantize_learnable_per_tensor_affine(given["x"], given["scale"], given["zero"], 0, 9, 0.5)
        (out * out.detach().cos()).sum().backward()
        return given[name].grad.reshape(-1).tolist()

    assert gradient(torch) == pytest.approx(gradient(_oracle.load()), rel=1e-4, abs=1e-5)


def test_products_of_four_bits() -> None:
    x = torch.arange(64.0).reshape(2, 32).sin()
    numbers = (torch.arange(16 * 32, dtype=torch.int32).reshape(16, 32) * 7) % 16
    scales = torch.stack((torch.linspace(0.1, 1, 16), torch.linspace(-1, 1, 16)), -1)[None]
    packed = torch._convert_weight_to_int4pack_for_cpu(numbers, 1)
    got = torch._weight_int4pack_mm_for_cpu(x.bfloat16(), packed, 32, scales.bfloat16())
    exact = x @ ((numbers - 8) * scales[0, :, :1] + scales[0, :, 1:]).t()
    assert packed.shape == (16, 16)
    assert torch.allclose(got.float(), exact, atol=0.5, rtol=0.05)
    with pytest.raises(RuntimeError, match="expect B to be uint8"):
        torch._weight_int4pack_mm_for_cpu(x.bfloat16(), x, 32, scales)


def _made_up(kind: str, is_list: bool) -> Any:
    value: Any = {"Tensor": torch.ones(2, 2), "str": "a", "bool": False, "float": 0.5, "ScalarType": torch.float32}.get(
        kind, 1
    )
    return [value] if is_list else value


def _refusing() -> list[str]:
    submodule("_api.lazy_tables").load("elsewhere")
    rows = (o for o in submodule("_dispatch.registry").ops() if o.row is not None and o.row.family == "elsewhere")
    return sorted(o.name for o in rows)


@mindtorch_only
def test_what_belongs_to_other_libraries_says_so() -> None:
    names = _refusing()
    assert len(names) > 130
    for name in names:
        op = submodule("_dispatch.registry").get(name)
        free = [a.has_default or a.optional for a in op.schema.args]
        given = [None if f else _made_up(a.kind, a.is_list) for a, f in zip(op.schema.args, free)]
        with pytest.raises(NotImplementedError, match=f"Could not run 'aten::{name}' with arguments from the 'CPU'"):
            op.call(tuple(given))


@mindtorch_only
def test_a_row_of_an_argument_that_python_cannot_name() -> None:
    assert torch._has_compatible_shallow_copy_type(torch.ones(1), **{"from": torch.ones(2)})
