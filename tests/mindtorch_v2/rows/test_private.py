"""Operators that PyTorch keeps to itself, and questions as operators of `torch.ops.aten`: lines of code on both
libraries, with the same numbers.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest

from .. import _oracle
from .._outcome import plain
from .._subject import mindtorch_only
from .._subject import subject as torch


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(v) for v in value]
    if isinstance(value, tuple):
        return tuple(_rounded(v) for v in value)
    return "nan" if isinstance(value, float) and math.isnan(value) else value


def told(library: Any, line: str) -> Any:
    """The value of a line, with float64 numbers to nine digits, or its error."""
    a = library.arange(24, dtype=library.float64).reshape(2, 3, 4).div(7).sin()
    space = {
        "torch": library,
        "aten": library.ops.aten,
        "a": a,
        "m": a[0],
        "r": a[0].clone().requires_grad_(),
        "i": library.tensor([[3, 1, 3], [1, 2, 9]]),
        "four": library.arange(96, dtype=library.float64).reshape(2, 3, 4, 4).cos(),
        "shut": library.arange(16).reshape(4, 4) % 3 == 0,
        "grad": grad,
        "float": float,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _rounded(plain(eval(line, space)))
        except Exception as error:  # every error is part of what a line does
            text = str(error).partition("please report a bug to PyTorch. ")
            return f"{type(error).__name__}: {text[2] or text[0]}"


def grad(result: Any, x: Any) -> Any:
    weights = result.detach().cos()
    result.mul(weights).nansum().backward()
    return x.grad


_ASSERTIONS = """
torch._assert_async(torch.tensor(1))
torch._assert_async(torch.tensor(0))
torch._assert_async(torch.tensor(0.0), 'words')
torch._assert_async(torch.tensor(2j))
torch._assert_async(torch.tensor([]))
torch._assert_async(torch.tensor([1, 1]), 'words')
torch._assert_async(torch.tensor(0, device='meta'))
torch._assert_async(3)
aten._functional_assert_async.msg(torch.tensor(1), 'words', torch.tensor(3))
aten._functional_assert_async.msg(torch.tensor(0), 'words', torch.tensor(3))
"""
_VALUES = """
torch._aminmax(a)
torch._aminmax(a, 1)
torch._aminmax(a, -1, True)
torch._aminmax(i)
torch._aminmax(torch.tensor([float('nan'), 1.0]))
torch._aminmax(torch.empty(0))
torch._aminmax(torch.empty(0, 3), 0)
torch._aminmax(a, 5)
torch._aminmax(a + 0j)
torch._aminmax(r)[0].grad_fn.name()
torch._aminmax(r, 1)[1].sum().backward()
torch._addmm_activation(m[:, :3] - 1, m, m.t())
torch._addmm_activation(m[0, :3], m, m.t(), beta=-2, alpha=0.5)
torch._addmm_activation(m[0, :3], m, m.t(), use_gelu=True)
torch._addmm_activation(m[0, :3], m, m.t(), out=torch.empty(3, 3, dtype=torch.float64))
m[:, :3]._addmm_activation(m, m.t())
torch._addmm_activation(m, m, m.t())
torch._addmm_activation(m, m[0], m.t())
torch._addmm_activation(r[:, :3], m, m.t()).sum().backward()
torch._compute_linear_combination(a, m[:, :2])
torch._compute_linear_combination(i, i.t())
torch._compute_linear_combination(a, m[:, :2], out=torch.zeros(3, 3, 4, dtype=torch.float64))
torch._compute_linear_combination(i > 2, i.t() > 1)
torch._compute_linear_combination(a[:0], m[:, :0])
torch._compute_linear_combination(a, m[0])
torch._compute_linear_combination(r, m.t()).sum().backward()
torch._add_relu(m, -2 * m.flip(0))
torch._add_relu(m, m.flip(0), alpha=-0.5)
torch._add_relu(m, -0.25)
torch._add_relu(i, -2)
torch._add_relu(i, 1.5)
torch._add_relu(m, torch.ones(3, 1))
torch._add_relu(m, m, out=torch.empty(3, 4, dtype=torch.float64))
torch._add_relu_(m.clone(), -m * 2)
torch._VF._add_relu_(i, -2)
torch._add_relu(m.half(), m)
torch._add_relu(i > 1, i > 1)
torch._add_relu(i.byte(), i)
torch._add_relu(m + 0j, m)
torch._add_relu(r, m).sum().backward()
torch._add_relu(r, m).grad_fn.name()
type(torch._add_relu(r, m).grad_fn).__name__
torch._add_relu(r, m).mul(0)
aten._add_relu.Tensor(m, m)
aten._add_relu.Scalar(m, 2)
torch._unique(i)
torch._unique(i, return_inverse=True)
torch._unique(i > 2, True, True)
torch._unique(m + 0j)
torch._VF.unique_dim(i, 1)
torch._VF.unique_dim(torch.cat((i, i)), 0, return_inverse=True, return_counts=True)
torch._VF.unique_dim(i)
torch._VF.nothing
torch._grid_sampler_2d_cpu_fallback(four, four[:, 0, :, :2], 0, 0, False)
torch._grid_sampler_2d_cpu_fallback(four.float(), four.float().permute(0, 2, 3, 1)[..., :2], 1, 1, True)
"""
_SOFTMAX = """
torch._masked_softmax(m, m > 0.5)
torch._masked_softmax(m, m > 0.5, 0)
torch._masked_softmax(m.t(), m.t() > 0.5, 1, 0).stride()
torch._masked_softmax(m, m < 2)
torch._masked_softmax(four, shut, None, 0)
torch._masked_softmax(four, shut, 1, 0)
torch._masked_softmax(four, shut[:2], 3, 1)
torch._masked_softmax(four, shut[:2], 2, 1)
torch._masked_softmax(four, four > 0, -1, 2)
torch._masked_softmax(torch.tensor(1.0), torch.tensor(False))
torch._masked_softmax(four, shut)
torch._masked_softmax(four, shut, 3, 7)
torch._masked_softmax(four, shut[:3], 3, 1)
torch._masked_softmax(four, shut[:3], 3, 0)
torch._masked_softmax(four, shut, 3, 2)
torch._masked_softmax(m, m)
torch._masked_softmax(m, m > 0, 2)
torch._masked_softmax(i, i > 0)
grad(torch._masked_softmax(r, m > 0.5), r)
grad(torch._masked_softmax(r, m > 0.3, 0, 2), r)
grad(torch._masked_softmax(four.requires_grad_(), shut, 3, 0), four)
torch._masked_softmax(r, m > 0.5).grad_fn.name()
"""
_QUESTIONS = """
torch._debug_has_internal_overlap(m)
torch._debug_has_internal_overlap(m.t())
torch._debug_has_internal_overlap(m.expand(4, 3, 4))
torch._debug_has_internal_overlap(m.as_strided((2, 2), (1, 1)))
torch._debug_has_internal_overlap(m[:, ::2])
torch._debug_has_internal_overlap(torch.empty(0).expand(3, 0))
torch.cudnn_is_acceptable(m)
torch.cudnn_is_acceptable(3)
aten.dim(a)
aten.size(a)
aten.size.int(a, -1)
aten.size.int(a, 3)
aten.size.int(torch.tensor(1), 0)
aten.stride(a)
aten.stride.int(a, -2)
aten.stride.int(a, -4)
aten.stride.int(torch.tensor(1), 0)
aten.numel(a)
aten.storage_offset(a[1])
aten.sym_is_contiguous(a)
aten.sym_is_contiguous(a.transpose(0, 2))
aten.sym_size(a)
aten.sym_size.int(a, 0)
aten.sym_stride(a.transpose(0, 2))
aten.sym_stride.int(a, 0)
aten.sym_numel(a)
aten.sym_storage_offset(a[1, 2:])
aten.is_same_size(a, m)
aten.is_contiguous(a)
aten.is_contiguous(m.t())
aten.is_contiguous.memory_format(four.to(memory_format=torch.channels_last), torch.channels_last)
aten.is_contiguous.memory_format(four, torch.channels_last)
aten.is_non_overlapping_and_dense(m.t())
aten.is_non_overlapping_and_dense(m[:, ::2])
aten.is_strides_like_format(four, torch.channels_last)
aten.is_strides_like_format(four.to(memory_format=torch.channels_last), torch.channels_last)
aten.is_strides_like_format(torch.empty(1, 1, 3, 3), torch.channels_last)
aten.is_strides_like_format(four, torch.contiguous_format)
aten.is_strides_like_format(m, torch.channels_last)
aten.is_strides_like_format(torch.empty(2, 3, 4, 5, 6).to(memory_format=torch.channels_last_3d), torch.channels_last_3d)
aten._new_zeros_with_same_feature_meta(i, m)
aten._new_zeros_with_same_feature_meta(i, m.t()).stride()
aten._new_zeros_with_same_feature_meta(i, m[:, 1:], self_num_batch_dims=1).stride()
aten._new_zeros_with_same_feature_meta(i, m.t().contiguous(), self_num_batch_dims=2).stride()
aten.resize_(m.clone(), [2, 3])
aten.resize_(torch.empty(0), [2, 3, 4, 5], memory_format=torch.channels_last).stride()
aten.resize_(r, [2])
aten.set_(m.clone())
aten.set_.source_Tensor(torch.empty(0, dtype=torch.float64), m)
aten.set_.source_Tensor_storage_offset(torch.empty(0, dtype=torch.float64), m.clone(), 1, [2, 3])
aten.set_.source_Tensor_storage_offset(torch.empty(0, dtype=torch.float64), m.clone(), 1, [2, 3], [1, 2])
aten.dim(3)
"""
LINES = [line for block in (_ASSERTIONS, _VALUES, _SOFTMAX, _QUESTIONS) for line in block.split("\n") if line]


@mindtorch_only
@pytest.mark.oracle
@pytest.mark.parametrize("line", LINES)
def test_as_pytorch_does(line: str) -> None:
    assert told(torch, line) == told(_oracle.load(), line)


def test_an_assertion_of_a_zero_raises() -> None:
    with pytest.raises(RuntimeError, match="single nonzero"):
        torch._assert_async(torch.tensor(0))
    assert torch._assert_async(torch.tensor(4)) is None


def test_a_masked_row_is_not_a_number() -> None:
    got = torch._masked_softmax(torch.zeros(2, 2), torch.tensor([[True, False], [True, True]]))
    assert got[0].tolist() == [0.0, 1.0] and bool(got[1].isnan().all())


@mindtorch_only
def test_what_reads_beyond_the_end_in_pytorch_is_refused() -> None:
    with pytest.raises(RuntimeError, match="a column for each of the 2 terms"):
        torch._compute_linear_combination(torch.ones(2, 2), torch.ones(3, 1))
    with pytest.raises(RuntimeError, match="expected coefficients of torch.float32"):
        torch._compute_linear_combination(torch.ones(2, 2), torch.ones(3, 2).long())


@pytest.mark.parametrize(
    "name, rest",
    [
        ("_flash_attention_forward", (None, None, 2, 2, 0.0, False, False)),
        ("_efficient_attention_forward", (None, None, None, 2, 2, 0.0, 0)),
    ],
)
def test_what_pytorch_has_for_gpus_alone(name: str, rest: tuple[Any, ...]) -> None:
    q = torch.ones(1, 2, 1, 4)
    text = f"Could not run 'aten::{name}' with arguments from the 'CPU' backend"
    with pytest.raises(NotImplementedError, match=text):
        getattr(torch.ops.aten, name)(q, q, q, *rest)
