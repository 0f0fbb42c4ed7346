"""A table of wrong calls: PyTorch's exception type and text, and nothing changed by the failed call.

Invariant: `error` and `text` of every case are what PyTorch 2.13.0 answers (the oracle test below asks it again), after
`normalise`. Calls of operators stand in `bad_calls/` by family; those about tensors, autograd and memory stand here.
"""

from __future__ import annotations

import copy
import types
import warnings
from typing import Any

import numpy
import pytest

from .. import _oracle
from .._subject import IS_ORACLE, subject
from ..bad_calls import CASES as BY_FAMILY
from ..bad_calls import Case, normalise


def inferred(torch: Any) -> Any:
    with torch.inference_mode():
        return torch.ones(2)


def no_grad_view(torch: Any, tensor: Any) -> Any:
    with torch.no_grad():
        return tensor[:1]


def double(ctx: Any, x: Any) -> Any:
    return x * 2


def multiply(ctx: Any, x: Any, y: Any) -> Any:
    return x * y


def no_backward(torch: Any) -> Any:
    return type("NoBackward", (torch.autograd.Function,), {"forward": staticmethod(double)})


def wrong_count(torch: Any) -> Any:
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient

    body = {"forward": staticmethod(multiply), "backward": staticmethod(backward)}
    return type("WrongCount", (torch.autograd.Function,), body)


def wrong_shape(torch: Any) -> Any:
    def backward(ctx: Any, gradient: Any) -> Any:
        return torch.ones(3)

    body = {"forward": staticmethod(double), "backward": staticmethod(backward)}
    return type("WrongShape", (torch.autograd.Function,), body)


def once(torch: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient * 2 * ctx.saved_tensors[0]

    body = {
        "forward": staticmethod(forward),
        "backward": staticmethod(torch.autograd.function.once_differentiable(backward)),
    }
    return type("Once", (torch.autograd.Function,), body)


def backward_twice(y: Any) -> None:
    y.backward()
    y.backward()


def backward_after_write(y: Any) -> None:
    y.add_(1)
    y.sum().backward()


CASES: list[Case] = [
    # shapes
    Case(
        "add_shapes",
        lambda torch: dict(a=torch.ones(2, 3), b=torch.ones(2, 4)),
        lambda torch, v: v.a + v.b,
        "RuntimeError",
        "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1",
    ),
    Case(
        "mul_shapes_inner",
        lambda torch: dict(a=torch.ones(4, 3), b=torch.ones(2, 3)),
        lambda torch, v: v.a * v.b,
        "RuntimeError",
        "The size of tensor a (4) must match the size of tensor b (2) at non-singleton dimension 0",
    ),
    Case(
        "where_shapes",
        lambda torch: dict(m=torch.tensor([True, False]), a=torch.ones(3), b=torch.ones(2)),
        lambda torch, v: torch.where(v.m, v.a, v.b),
        "RuntimeError",
        "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0",
    ),
    Case(
        "inplace_broadcast_grows",
        lambda torch: dict(a=torch.zeros(2), b=torch.ones(3, 2)),
        lambda torch, v: v.a.add_(v.b),
        "RuntimeError",
        "output with shape [2] doesn't match the broadcast shape [3, 2]",
    ),
    Case(
        "inplace_broadcast_mismatch",
        lambda torch: dict(a=torch.zeros(2, 3), b=torch.ones(4)),
        lambda torch, v: v.a.mul_(v.b),
        "RuntimeError",
        "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1",
    ),
    Case(
        "mm_inner",
        lambda torch: dict(a=torch.ones(2, 3), b=torch.ones(2, 3)),
        lambda torch, v: torch.mm(v.a, v.b),
        "RuntimeError",
        "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)",
    ),
    Case(
        "mm_not_matrix",
        lambda torch: dict(a=torch.ones(3), b=torch.ones(3, 3)),
        lambda torch, v: torch.mm(v.a, v.b),
        "RuntimeError",
        "self must be a matrix",
    ),
    Case(
        "mm_second_not_matrix",
        lambda torch: dict(a=torch.ones(3, 3), b=torch.ones(3)),
        lambda torch, v: torch.mm(v.a, v.b),
        "RuntimeError",
        "mat2 must be a matrix",
    ),
    Case(
        "matmul_inner",
        lambda torch: dict(a=torch.ones(2, 3), b=torch.ones(4)),
        lambda torch, v: v.a @ v.b,
        "RuntimeError",
        "size mismatch, got input (2), mat (2x3), vec (4)",
    ),
    Case(
        "matmul_scalar",
        lambda torch: dict(a=torch.tensor(1.0), b=torch.ones(3)),
        lambda torch, v: torch.matmul(v.a, v.b),
        "RuntimeError",
        "both arguments to matmul need to be at least 1D, but they are 0D and 1D",
    ),
    Case(
        "matmul_batch",
        lambda torch: dict(a=torch.ones(2, 3, 4), b=torch.ones(3, 4, 5)),
        lambda torch, v: v.a @ v.b,
        "RuntimeError",
        "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0",
    ),
    Case(
        "bmm_batch",
        lambda torch: dict(a=torch.ones(2, 3, 4), b=torch.ones(3, 4, 5)),
        lambda torch, v: torch.bmm(v.a, v.b),
        "RuntimeError",
        "Expected size for first two dimensions of batch2 tensor to be: [2, 4] but got: [3, 4].",
    ),
    Case(
        "bmm_not_batched",
        lambda torch: dict(a=torch.ones(3, 4), b=torch.ones(3, 4, 5)),
        lambda torch, v: torch.bmm(v.a, v.b),
        "RuntimeError",
        "batch1 must be a 3D tensor",
    ),
    Case(
        "mv_shape",
        lambda torch: dict(a=torch.ones(2, 3), b=torch.ones(2)),
        lambda torch, v: torch.mv(v.a, v.b),
        "RuntimeError",
        "size mismatch, got input (2), mat (2x3), vec (2)",
    ),
    Case(
        "dot_sizes",
        lambda torch: dict(a=torch.ones(2), b=torch.ones(3)),
        lambda torch, v: torch.dot(v.a, v.b),
        "RuntimeError",
        "inconsistent tensor size, expected tensor [2] and src [3] to have the same number of elements, but "
        "got 2 and 3 elements respectively",
    ),
    Case(
        "dot_not_vector",
        lambda torch: dict(a=torch.ones(2, 2), b=torch.ones(2)),
        lambda torch, v: torch.dot(v.a, v.b),
        "RuntimeError",
        "1D tensors expected, but got 2D and 1D tensors",
    ),
    Case(
        "addmm_input_shape",
        lambda torch: dict(c=torch.ones(5, 5), a=torch.ones(2, 3), b=torch.ones(3, 2)),
        lambda torch, v: torch.addmm(v.c, v.a, v.b),
        "RuntimeError",
        "The expanded size of the tensor (2) must match the existing size (5) at non-singleton dimension 1.  "
        "Target sizes: [2, 2].  Tensor sizes: [5, 5]",
    ),
    Case(
        "linear_shape",
        lambda torch: dict(a=torch.ones(2, 3), w=torch.ones(4, 5)),
        lambda torch, v: torch.nn.functional.linear(v.a, v.w),
        "RuntimeError",
        "mat1 and mat2 shapes cannot be multiplied (2x3 and 5x4)",
    ),
    Case(
        "cat_shapes",
        lambda torch: dict(a=torch.ones(2, 3), b=torch.ones(2, 4)),
        lambda torch, v: torch.cat([v.a, v.b]),
        "RuntimeError",
        "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 4 for tensor number "
        "1 in the list.",
    ),
    Case(
        "cat_ndim",
        lambda torch: dict(a=torch.ones(2, 3), b=torch.ones(3)),
        lambda torch, v: torch.cat([v.a, v.b]),
        "RuntimeError",
        "Tensors must have same number of dimensions: got 2 and 1",
    ),
    Case(
        "cat_empty_list",
        lambda torch: {},
        lambda torch, v: torch.cat([]),
        "ValueError",
        "torch.cat(): expected a non-empty list of Tensors",
    ),
    Case(
        "cat_scalar",
        lambda torch: dict(a=torch.tensor(1.0)),
        lambda torch, v: torch.cat([v.a, v.a]),
        "RuntimeError",
        "zero-dimensional tensor (at position 0) cannot be concatenated",
    ),
    Case(
        "stack_shapes",
        lambda torch: dict(a=torch.ones(2, 3), b=torch.ones(2, 4)),
        lambda torch, v: torch.stack([v.a, v.b]),
        "RuntimeError",
        "stack expects each tensor to be equal size, but got [2, 3] at entry 0 and [2, 4] at entry 1",
    ),
    Case(
        "stack_empty_list",
        lambda torch: {},
        lambda torch, v: torch.stack([]),
        "RuntimeError",
        "stack expects a non-empty TensorList",
    ),
    Case(
        "out_of_range_sum",
        lambda torch: dict(a=torch.ones(2, 3)),
        lambda torch, v: v.a.sum(2),
        "IndexError",
        "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
    ),
    Case(
        "out_of_range_negative",
        lambda torch: dict(a=torch.ones(2, 3)),
        lambda torch, v: v.a.softmax(-3),
        "IndexError",
        "Dimension out of range (expected to be in range of [-2, 1], but got -3)",
    ),
    Case(
        "sum_dim_twice",
        lambda torch: dict(a=torch.ones(2, 3)),
        lambda torch, v: v.a.sum((0, 0)),
        "RuntimeError",
        "dim 0 appears multiple times in the list of dims",
    ),
    Case(
        "transpose_range",
        lambda torch: dict(a=torch.ones(2, 3)),
        lambda torch, v: v.a.transpose(0, 2),
        "IndexError",
        "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
    ),
    Case(
        "permute_count",
        lambda torch: dict(a=torch.ones(2, 3)),
        lambda torch, v: v.a.permute(0, 1, 2),
        "RuntimeError",
        "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the "
        "desired ordering of dimensions i.e. input.dim() = 2 is not equal to len(dims) = 3",
    ),
    Case(
        "permute_repeated",
        lambda torch: dict(a=torch.ones(2, 3)),
        lambda torch, v: v.a.permute(0, 0),
        "RuntimeError",
        "permute(): duplicate dims are not allowed.",
    ),
    Case(
        "t_of_three",
        lambda torch: dict(a=torch.ones(2, 3, 4)),
        lambda torch, v: v.a.t(),
        "RuntimeError",
        "t() expects a tensor with <= 2 dimensions, but self is 3D",
    ),
    Case(
        "unsqueeze_range",
        lambda torch: dict(a=torch.ones(2, 3)),
        lambda torch, v: v.a.unsqueeze(4),
        "IndexError",
        "Dimension out of range (expected to be in range of [-3, 2], but got 4)",
    ),
    Case(
        "squeeze_range",
        lambda torch: dict(a=torch.ones(2, 3)),
        lambda torch, v: v.a.squeeze(2),
        "IndexError",
        "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
    ),
    Case(
        "expand_size",
        lambda torch: dict(a=torch.ones(2, 3)),
        lambda torch, v: v.a.expand(2, 4),
        "RuntimeError",
        "The expanded size of the tensor (4) must match the existing size (3) at non-singleton dimension 1.  "
        "Target sizes: [2, 4].  Tensor sizes: [2, 3]",
    ),
    Case(
        "expand_fewer",
        lambda torch: dict(a=torch.ones(2, 3)),
        lambda torch, v: v.a.expand(3),
        "RuntimeError",
        "expand(torch.FloatTensor{[2, 3]}, size=[3]): the number of sizes provided (1) must be greater or "
        "equal to the number of dimensions in the tensor (2)",
    ),
    Case(
        "expand_new_minus_one",
        lambda torch: dict(a=torch.ones(3)),
        lambda torch, v: v.a.expand(-1, 3),
        "RuntimeError",
        "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension 0",
    ),
    Case(
        "broadcast_to_size",
        lambda torch: dict(a=torch.ones(2, 3)),
        lambda torch, v: torch.broadcast_to(v.a, (2, 4)),
        "RuntimeError",
        "The expanded size of the tensor (4) must match the existing size (3) at non-singleton dimension 1.  "
        "Target sizes: [2, 4].  Tensor sizes: [2, 3]",
    ),
    Case(
        "argmax_empty",
        lambda torch: dict(a=torch.ones(0)),
        lambda torch, v: v.a.argmax(),
        "IndexError",
        "argmax(): Expected reduction dim to be specified for input.numel() == 0.",
    ),
    Case(
        "max_empty",
        lambda torch: dict(a=torch.ones(0)),
        lambda torch, v: v.a.max(),
        "RuntimeError",
        "max(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
        "with the 'dim' argument.",
    ),
    Case(
        "amax_empty",
        lambda torch: dict(a=torch.ones(0, 3)),
        lambda torch, v: v.a.amax(0),
        "IndexError",
        "amax(): Expected reduction dim 0 to have non-zero size.",
    ),
    Case(
        "max_empty_dim",
        lambda torch: dict(a=torch.ones(0, 3)),
        lambda torch, v: v.a.max(0),
        "IndexError",
        "max(): Expected reduction dim 0 to have non-zero size.",
    ),
    Case(
        "split_negative",
        lambda torch: dict(a=torch.ones(4)),
        lambda torch, v: v.a.split(-1),
        "RuntimeError",
        "split expects split_size be non-negative, but got split_size=-1",
    ),
    Case(
        "split_sizes",
        lambda torch: dict(a=torch.ones(4)),
        lambda torch, v: v.a.split([1, 2]),
        "RuntimeError",
        "split_with_sizes expects split_sizes to sum exactly to 4 (input tensor's size at dimension 0), but "
        "got split_sizes=[1, 2]",
    ),
    Case(
        "chunk_zero",
        lambda torch: dict(a=torch.ones(4)),
        lambda torch, v: v.a.chunk(0),
        "RuntimeError",
        "chunk expects `chunks` to be greater than 0, got: 0",
    ),
    Case(
        "unbind_scalar",
        lambda torch: dict(a=torch.tensor(1.0)),
        lambda torch, v: v.a.unbind(),
        "IndexError",
        "Dimension specified as 0 but tensor has no dimensions",
    ),
    Case(
        "flip_range",
        lambda torch: dict(a=torch.ones(2, 3)),
        lambda torch, v: v.a.flip(2),
        "IndexError",
        "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
    ),
    Case(
        "tril_vector",
        lambda torch: dict(a=torch.ones(3)),
        lambda torch, v: v.a.tril(),
        "RuntimeError",
        "tril: input tensor must have at least 2 dimensions",
    ),
    Case(
        "layer_norm_shape",
        lambda torch: dict(a=torch.ones(2, 3)),
        lambda torch, v: torch.nn.functional.layer_norm(v.a, (4,)),
        "RuntimeError",
        "Given normalized_shape=[4], expected input with shape [*, 4], but got input of size[2, 3]",
    ),
    Case(
        "nll_loss_batch",
        lambda torch: dict(a=torch.ones(2, 3), t=torch.tensor([0, 1, 2])),
        lambda torch, v: torch.nn.functional.nll_loss(v.a, v.t),
        "ValueError",
        "Expected input batch_size (2) to match target batch_size (3).",
    ),
    Case(
        "cross_entropy_range",
        lambda torch: dict(a=torch.ones(2, 3), t=torch.tensor([0, 3])),
        lambda torch, v: torch.nn.functional.cross_entropy(v.a, v.t),
        "IndexError",
        "Target 3 is out of bounds.",
    ),
    Case(
        "gather_ndim",
        lambda torch: dict(a=torch.ones(2, 3), i=torch.tensor([0, 1])),
        lambda torch, v: v.a.gather(0, v.i),
        "RuntimeError",
        "Index tensor must have the same number of dimensions as input tensor",
    ),
    Case(
        "gather_range",
        lambda torch: dict(a=torch.ones(2, 3), i=torch.tensor([[0, 5]])),
        lambda torch, v: v.a.gather(0, v.i),
        "RuntimeError",
        "index 5 is out of bounds for dimension 0 with size 2",
    ),
    Case(
        "gather_size",
        lambda torch: dict(a=torch.ones(2, 3), i=torch.zeros(3, 4, dtype=torch.int64)),
        lambda torch, v: v.a.gather(0, v.i),
        "RuntimeError",
        "Size does not match at dimension 1 expected index [3, 4] to be no larger than self [2, 3] apart "
        "from dimension 0",
    ),
    Case(
        "scatter_range",
        lambda torch: dict(a=torch.zeros(2, 3), i=torch.tensor([[0, 1, 2]])),
        lambda torch, v: v.a.scatter_(0, v.i, 1.0),
        "RuntimeError",
        "index 2 is out of bounds for dimension 0 with size 2",
    ),
    Case(
        "scatter_src_size",
        lambda torch: dict(a=torch.zeros(2, 3), i=torch.zeros(2, 3, dtype=torch.int64), s=torch.ones(1, 3)),
        lambda torch, v: v.a.scatter_(0, v.i, v.s),
        "RuntimeError",
        "Expected index [2, 3] to be no larger than self [2, 3] apart from dimension 0 and to be no larger "
        "size than src [1, 3]",
    ),
    Case(
        "index_select_range",
        lambda torch: dict(a=torch.ones(2, 3), i=torch.tensor([2])),
        lambda torch, v: v.a.index_select(0, v.i),
        "IndexError",
        "index out of range in self",
    ),
    Case(
        "index_select_ndim",
        lambda torch: dict(a=torch.ones(2, 3), i=torch.zeros(1, 1, dtype=torch.int64)),
        lambda torch, v: v.a.index_select(0, v.i),
        "IndexError",
        "index_select(): Index is supposed to be a vector",
    ),
    Case(
        "index_add_size",
        lambda torch: dict(a=torch.zeros(2, 3), i=torch.tensor([0, 1]), s=torch.ones(3, 3)),
        lambda torch, v: v.a.index_add_(0, v.i, v.s),
        "RuntimeError",
        "index_add_(): Number of indices (2) should be equal to source.size(dim): (3), for dim: 0",
    ),
    Case(
        "embedding_range",
        lambda torch: dict(i=torch.tensor([0, 5]), w=torch.ones(3, 2)),
        lambda torch, v: torch.nn.functional.embedding(v.i, v.w),
        "IndexError",
        "index out of range in self",
    ),
    Case(
        "masked_fill_mask_shape",
        lambda torch: dict(a=torch.zeros(2, 3), m=torch.tensor([True, False])),
        lambda torch, v: v.a.masked_fill(v.m, 1.0),
        "RuntimeError",
        "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 1",
    ),
    # views
    Case(
        "view_incompatible",
        lambda torch: dict(a=torch.ones(2, 3)),
        lambda torch, v: v.a.t().view(6),
        "RuntimeError",
        "view size is not compatible with input tensor's size and stride (at least one dimension spans "
        "across two contiguous subspaces). Use .reshape(...) instead.",
    ),
    Case(
        "view_size",
        lambda torch: dict(a=torch.ones(2, 3)),
        lambda torch, v: v.a.view(4),
        "RuntimeError",
        "shape '[4]' is invalid for input of size 6",
    ),
    Case(
        "view_two_unknown",
        lambda torch: dict(a=torch.ones(2, 3)),
        lambda torch, v: v.a.view(-1, -1),
        "RuntimeError",
        "only one dimension can be inferred",
    ),
    Case(
        "view_unknown_division",
        lambda torch: dict(a=torch.ones(2, 3)),
        lambda torch, v: v.a.view(-1, 4),
        "RuntimeError",
        "shape '[-1, 4]' is invalid for input of size 6",
    ),
    Case(
        "reshape_size",
        lambda torch: dict(a=torch.ones(2, 3)),
        lambda torch, v: v.a.reshape(5),
        "RuntimeError",
        "shape '[5]' is invalid for input of size 6",
    ),
    Case(
        "reshape_negative",
        lambda torch: dict(a=torch.ones(2, 3)),
        lambda torch, v: v.a.reshape(-2, 3),
        "RuntimeError",
        "invalid shape dimension -2 at index 0 of shape [-2, 3]",
    ),
    Case(
        "view_empty_unknown",
        lambda torch: dict(a=torch.ones(0, 3)),
        lambda torch, v: v.a.view(-1, 0),
        "RuntimeError",
        "cannot reshape tensor of 0 elements into shape [-1, 0] because the unspecified dimension size -1 "
        "can be any value and is ambiguous",
    ),
    Case(
        "view_dtype_size",
        lambda torch: dict(a=torch.ones(3)),
        lambda torch, v: v.a.view(torch.float64),
        "RuntimeError",
        "self.size(-1) must be divisible by 2 to view Float as Double (different element sizes), but got 3",
    ),
    Case(
        "narrow_range",
        lambda torch: dict(a=torch.ones(2, 3)),
        lambda torch, v: v.a.narrow(0, 1, 2),
        "RuntimeError",
        "start (1) + length (2) exceeds dimension size (2).",
    ),
    Case(
        "narrow_negative",
        lambda torch: dict(a=torch.ones(2, 3)),
        lambda torch, v: v.a.narrow(0, 0, -1),
        "RuntimeError",
        "narrow(): length must be non-negative.",
    ),
    Case(
        "select_range",
        lambda torch: dict(a=torch.ones(2, 3)),
        lambda torch, v: v.a.select(0, 2),
        "IndexError",
        "select(): index 2 out of range for tensor of size [2, 3] at dimension 0",
    ),
    Case(
        "select_scalar",
        lambda torch: dict(a=torch.tensor(1.0)),
        lambda torch, v: v.a.select(0, 0),
        "IndexError",
        "select() cannot be applied to a 0-dim tensor.",
    ),
    Case(
        "as_strided_bounds",
        lambda torch: dict(a=torch.ones(4)),
        lambda torch, v: v.a.as_strided((3, 3), (2, 1)),
        "RuntimeError",
        "setStorage: sizes [3, 3], strides [2, 1], storage offset 0, and itemsize 4 requiring a storage size "
        "of 28 are out of bounds for storage of size 16",
    ),
    Case(
        "as_strided_lengths",
        lambda torch: dict(a=torch.ones(4)),
        lambda torch, v: v.a.as_strided((2, 2), (1,)),
        "RuntimeError",
        "mismatch in length of strides and shape",
    ),
    Case(
        "as_strided_negative",
        lambda torch: dict(a=torch.ones(4)),
        lambda torch, v: v.a.as_strided((2,), (-1,)),
        "RuntimeError",
        "as_strided: Negative strides are not supported at the moment, got strides: [-1]",
    ),
    Case(
        "unfold_size",
        lambda torch: dict(a=torch.ones(4)),
        lambda torch, v: v.a.unfold(0, 5, 1),
        "RuntimeError",
        "maximum size for tensor at dimension 0 is 4 but size is 5",
    ),
    Case(
        "unfold_step",
        lambda torch: dict(a=torch.ones(4)),
        lambda torch, v: v.a.unfold(0, 2, 0),
        "RuntimeError",
        "step is 0 but must be > 0",
    ),
    Case(
        "diagonal_same",
        lambda torch: dict(a=torch.ones(2, 3)),
        lambda torch, v: v.a.diagonal(0, 0, 0),
        "RuntimeError",
        "diagonal dimensions cannot be identical 0, 0",
    ),
    Case(
        "movedim_repeat",
        lambda torch: dict(a=torch.ones(2, 3)),
        lambda torch, v: v.a.movedim((0, 0), (0, 1)),
        "RuntimeError",
        "movedim: repeated dim in `source` ([0, 0])",
    ),
    Case(
        "flatten_order",
        lambda torch: dict(a=torch.ones(2, 3, 4)),
        lambda torch, v: v.a.flatten(2, 1),
        "RuntimeError",
        "flatten() has invalid args: start_dim cannot come after end_dim",
    ),
    Case(
        "unflatten_product",
        lambda torch: dict(a=torch.ones(6)),
        lambda torch, v: v.a.unflatten(0, (2, 2)),
        "RuntimeError",
        "unflatten: Provided sizes [2, 2] don't multiply up to the size of dim 0 (6) in the input tensor",
    ),
    Case(
        "real_of_real_imag",
        lambda torch: dict(a=torch.ones(3)),
        lambda torch, v: v.a.imag,
        "RuntimeError",
        "imag is not implemented for tensors with non-complex dtypes.",
    ),
    Case(
        "view_as_real_of_real",
        lambda torch: dict(a=torch.ones(3)),
        lambda torch, v: torch.view_as_real(v.a),
        "RuntimeError",
        "view_as_real is only supported for complex tensors",
    ),
    # indexing
    Case(
        "index_too_many",
        lambda torch: dict(a=torch.ones(2, 3)),
        lambda torch, v: v.a[0, 0, 0],
        "IndexError",
        "too many indices for tensor of dimension 2",
    ),
    Case(
        "index_range",
        lambda torch: dict(a=torch.ones(2, 3)),
        lambda torch, v: v.a[2],
        "IndexError",
        "index 2 is out of bounds for dimension 0 with size 2",
    ),
    Case(
        "index_negative_range",
        lambda torch: dict(a=torch.ones(2, 3)),
        lambda torch, v: v.a[-3],
        "IndexError",
        "index -3 is out of bounds for dimension 0 with size 2",
    ),
    Case(
        "index_second_range",
        lambda torch: dict(a=torch.ones(2, 3)),
        lambda torch, v: v.a[:, 3],
        "IndexError",
        "index 3 is out of bounds for dimension 1 with size 3",
    ),
    Case(
        "index_scalar_tensor",
        lambda torch: dict(a=torch.tensor(1.0)),
        lambda torch, v: v.a[0],
        "IndexError",
        "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to "
        "convert a 0-dim tensor to a number",
    ),
    Case(
        "index_float",
        lambda torch: dict(a=torch.ones(2, 3)),
        lambda torch, v: v.a[1.5],
        "IndexError",
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got float)",
    ),
    Case(
        "index_string",
        lambda torch: dict(a=torch.ones(2, 3)),
        lambda torch, v: v.a["x"],
        "TypeError",
        "new(): invalid data type 'str'",
    ),
    Case(
        "index_float_tensor",
        lambda torch: dict(a=torch.ones(2, 3), i=torch.ones(2)),
        lambda torch, v: v.a[v.i],
        "IndexError",
        "tensors used as indices must be long, int, byte or bool tensors",
    ),
    Case(
        "index_mask_shape",
        lambda torch: dict(a=torch.ones(2, 3), m=torch.tensor([True, False, True])),
        lambda torch, v: v.a[v.m],
        "IndexError",
        "The shape of the mask [3] at index 0 does not match the shape of the indexed tensor [2, 3] at index 0",
    ),
    Case(
        "index_tensor_range",
        lambda torch: dict(a=torch.ones(2, 3), i=torch.tensor([0, 2])),
        lambda torch, v: v.a[v.i],
        "IndexError",
        "index 2 is out of bounds for dimension 0 with size 2",
    ),
    Case(
        "index_tensors_shapes",
        lambda torch: dict(a=torch.ones(3, 3), i=torch.tensor([0, 1]), j=torch.tensor([0, 1, 2])),
        lambda torch, v: v.a[v.i, v.j],
        "IndexError",
        "shape mismatch: indexing tensors could not be broadcast together with shapes [2], [3]",
    ),
    Case(
        "index_negative_step",
        lambda torch: dict(a=torch.ones(3)),
        lambda torch, v: v.a[::-1],
        "ValueError",
        "step must be greater than zero",
    ),
    Case(
        "index_zero_step",
        lambda torch: dict(a=torch.ones(3)),
        lambda torch, v: v.a[::0],
        "ValueError",
        "slice step cannot be zero",
    ),
    Case(
        "index_two_ellipses_many",
        lambda torch: dict(a=torch.ones(2, 3)),
        lambda torch, v: v.a[..., 0, 0, 0],
        "IndexError",
        "too many indices for tensor of dimension 2",
    ),
    Case(
        "slice_float",
        lambda torch: dict(a=torch.ones(3)),
        lambda torch, v: v.a[1.5:],
        "TypeError",
        "slice indices must be integers or None or have an __index__ method",
    ),
    Case(
        "setitem_shape",
        lambda torch: dict(a=torch.zeros(2, 3), b=torch.ones(2)),
        lambda torch, v: v.a.__setitem__(0, v.b),
        "RuntimeError",
        "The expanded size of the tensor (3) must match the existing size (2) at non-singleton dimension 0.  "
        "Target sizes: [3].  Tensor sizes: [2]",
    ),
    Case(
        "setitem_index_shape",
        lambda torch: dict(a=torch.zeros(3, 3), i=torch.tensor([0, 1]), b=torch.ones(3, 3)),
        lambda torch, v: v.a.__setitem__(v.i, v.b),
        "RuntimeError",
        "shape mismatch: value tensor of shape [3, 3] cannot be broadcast to indexing result of shape [2, 3]",
    ),
    Case(
        "setitem_mask_shape",
        lambda torch: dict(a=torch.zeros(3), m=torch.tensor([True, True, False]), b=torch.ones(3)),
        lambda torch, v: v.a.__setitem__(v.m, v.b),
        "RuntimeError",
        "shape mismatch: value tensor of shape [3] cannot be broadcast to indexing result of shape [2]",
    ),
    Case(
        "setitem_range",
        lambda torch: dict(a=torch.zeros(3)),
        lambda torch, v: v.a.__setitem__(3, 1.0),
        "IndexError",
        "index 3 is out of bounds for dimension 0 with size 3",
    ),
    Case(
        "setitem_dtype",
        lambda torch: dict(a=torch.zeros(3), i=torch.tensor([0, 1]), b=torch.ones(2, dtype=torch.float64)),
        lambda torch, v: v.a.__setitem__(v.i, v.b),
        "RuntimeError",
        "Index put requires the source and destination dtypes match, got Float for the destination and "
        "Double for the source.",
    ),
    Case(
        "setitem_text",
        lambda torch: dict(a=torch.zeros(3)),
        lambda torch, v: v.a.__setitem__(0, "x"),
        "TypeError",
        "can't assign a str to a torch.FloatTensor",
    ),
    Case(
        "delitem",
        lambda torch: dict(a=torch.ones(3)),
        lambda torch, v: v.a.__delitem__(0),
        "TypeError",
        "Tensor does not support deleting items",
    ),
    Case(
        "iterate_scalar",
        lambda torch: dict(a=torch.tensor(1.0)),
        lambda torch, v: list(v.a),
        "TypeError",
        "iteration over a 0-d tensor",
    ),
    Case(
        "len_scalar",
        lambda torch: dict(a=torch.tensor(1.0)),
        lambda torch, v: len(v.a),
        "TypeError",
        "len() of a 0-d tensor",
    ),
    Case(
        "index_put_dtype",
        lambda torch: dict(a=torch.zeros(3), i=torch.tensor([0]), b=torch.ones(1, dtype=torch.int64)),
        lambda torch, v: v.a.index_put_((v.i,), v.b),
        "RuntimeError",
        "Index put requires the source and destination dtypes match, got Float for the destination and Long "
        "for the source.",
    ),
    # dtypes
    Case(
        "inplace_float_into_int",
        lambda torch: dict(a=torch.zeros(2, dtype=torch.int64)),
        lambda torch, v: v.a.add_(1.5),
        "RuntimeError",
        "result type Float can't be cast to the desired output type Long",
    ),
    Case(
        "inplace_div_int",
        lambda torch: dict(a=torch.ones(2, dtype=torch.int64)),
        lambda torch, v: v.a.div_(2),
        "RuntimeError",
        "result type Float can't be cast to the desired output type Long",
    ),
    Case(
        "inplace_complex_into_float",
        lambda torch: dict(a=torch.zeros(2)),
        lambda torch, v: v.a.mul_(1j),
        "RuntimeError",
        "result type ComplexFloat can't be cast to the desired output type Float",
    ),
    Case(
        "inplace_int_into_bool",
        lambda torch: dict(a=torch.tensor([True, False])),
        lambda torch, v: v.a.add_(2),
        "RuntimeError",
        "result type Long can't be cast to the desired output type Bool",
    ),
    Case(
        "out_dtype",
        lambda torch: dict(a=torch.ones(2), o=torch.zeros(2, dtype=torch.int64)),
        lambda torch, v: torch.add(v.a, v.a, out=v.o),
        "RuntimeError",
        "result type Float can't be cast to the desired output type Long",
    ),
    Case(
        "mean_of_int",
        lambda torch: dict(a=torch.tensor([1, 2])),
        lambda torch, v: v.a.mean(),
        "RuntimeError",
        "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: Long",
    ),
    Case(
        "softmax_of_int",
        lambda torch: dict(a=torch.tensor([1, 2])),
        lambda torch, v: v.a.softmax(0),
        "NotImplementedError",
        "\"softmax_lastdim_kernel_impl\" not implemented for 'Long'",
    ),
    Case(
        "var_of_int",
        lambda torch: dict(a=torch.tensor([1, 2])),
        lambda torch, v: v.a.var(),
        "RuntimeError",
        "std and var only support floating point and complex dtypes",
    ),
    Case(
        "bool_subtract",
        lambda torch: dict(a=torch.tensor([True, False])),
        lambda torch, v: v.a - v.a,
        "RuntimeError",
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
        "`logical_xor()` operator instead.",
    ),
    Case(
        "bool_negate",
        lambda torch: dict(a=torch.tensor([True, False])),
        lambda torch, v: -v.a,
        "RuntimeError",
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, "
        "use the `~` or `logical_not()` operator instead.",
    ),
    Case(
        "bitwise_float",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: v.a & v.a,
        "NotImplementedError",
        "\"bitwise_and_cpu\" not implemented for 'Float'",
    ),
    Case(
        "invert_float",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: ~v.a,
        "TypeError",
        "~ (operator.invert) is only implemented on integer and Boolean-type tensors",
    ),
    Case(
        "mm_dtypes",
        lambda torch: dict(a=torch.ones(2, 2), b=torch.ones(2, 2, dtype=torch.float64)),
        lambda torch, v: v.a @ v.b,
        "RuntimeError",
        "expected m1 and m2 to have the same dtype, but got: float != double",
    ),
    Case(
        "dot_dtypes",
        lambda torch: dict(a=torch.ones(2), b=torch.ones(2, dtype=torch.int64)),
        lambda torch, v: torch.dot(v.a, v.b),
        "RuntimeError",
        "dot : expected both vectors to have same dtype, but found Float and Long",
    ),
    Case(
        "linear_dtypes",
        lambda torch: dict(a=torch.ones(2, 2), w=torch.ones(2, 2, dtype=torch.float64)),
        lambda torch, v: torch.nn.functional.linear(v.a, v.w),
        "RuntimeError",
        "expected m1 and m2 to have the same dtype, but got: float != double",
    ),
    Case(
        "gather_index_dtype",
        lambda torch: dict(a=torch.ones(2), i=torch.ones(1)),
        lambda torch, v: v.a.gather(0, v.i),
        "RuntimeError",
        "gather(): Expected dtype int32/int64 for index",
    ),
    Case(
        "scatter_dtype",
        lambda torch: dict(a=torch.zeros(2), i=torch.tensor([0]), s=torch.ones(1, dtype=torch.float64)),
        lambda torch, v: v.a.scatter_(0, v.i, v.s),
        "RuntimeError",
        "scatter(): Expected self.dtype to be equal to src.dtype",
    ),
    Case(
        "embedding_index_dtype",
        lambda torch: dict(i=torch.ones(2), w=torch.ones(3, 2)),
        lambda torch, v: torch.nn.functional.embedding(v.i, v.w),
        "RuntimeError",
        "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but "
        "got torch.FloatTensor instead (while checking arguments for embedding)",
    ),
    Case(
        "nll_target_dtype",
        lambda torch: dict(a=torch.ones(2, 3), t=torch.tensor([0.0, 1.0])),
        lambda torch, v: torch.nn.functional.nll_loss(v.a, v.t),
        "RuntimeError",
        "expected target dtype to be Long or Byte, but got Float",
    ),
    Case(
        "masked_fill_mask_dtype",
        lambda torch: dict(a=torch.zeros(2), m=torch.tensor([1, 0])),
        lambda torch, v: v.a.masked_fill_(v.m, 1.0),
        "RuntimeError",
        "masked_fill_ only supports boolean masks, but got mask with dtype long int",
    ),
    Case(
        "where_condition_dtype",
        lambda torch: dict(c=torch.tensor([1.0, 0.0]), a=torch.ones(2)),
        lambda torch, v: torch.where(v.c, v.a, v.a),
        "RuntimeError",
        "where expected condition to be a boolean tensor, but got a tensor with dtype Float",
    ),
    Case(
        "complex_compare",
        lambda torch: dict(a=torch.tensor([1j, 2j])),
        lambda torch, v: v.a < v.a,
        "NotImplementedError",
        "\"lt_cpu\" not implemented for 'ComplexFloat'",
    ),
    Case(
        "complex_relu",
        lambda torch: dict(a=torch.tensor([1j, 2j])),
        lambda torch, v: v.a.relu(),
        "NotImplementedError",
        "clamp is not supported for complex types",
    ),
    Case(
        "int_negative_power",
        lambda torch: dict(a=torch.tensor([2, 3])),
        lambda torch, v: v.a**-1,
        "RuntimeError",
        "Integers to negative integer powers are not allowed.",
    ),
    Case(
        "integer_requires_grad",
        lambda torch: dict(a=torch.tensor([1, 2])),
        lambda torch, v: v.a.requires_grad_(),
        "RuntimeError",
        "only Tensors of floating point dtype can require gradients",
    ),
    Case(
        "integer_factory_requires_grad",
        lambda torch: {},
        lambda torch, v: torch.ones(2, dtype=torch.int64, requires_grad=True),
        "RuntimeError",
        "Only Tensors of floating point and complex dtype can require gradients",
    ),
    Case(
        "floor_divide_complex",
        lambda torch: dict(a=torch.tensor([1j, 2j])),
        lambda torch, v: v.a // 2,
        "NotImplementedError",
        "\"div_floor_cpu\" not implemented for 'ComplexFloat'",
    ),
    Case(
        "masked_select_mask_dtype",
        lambda torch: dict(a=torch.ones(2), m=torch.tensor([1, 0])),
        lambda torch, v: torch.masked_select(v.a, v.m),
        "RuntimeError",
        "masked_select: expected BoolTensor for mask",
    ),
    Case(
        "clamp_no_bounds",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: v.a.clamp(),
        "RuntimeError",
        "torch.clamp: At least one of 'min' or 'max' must not be None",
    ),
    Case(
        "div_rounding",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: torch.div(v.a, 2, rounding_mode="up"),
        "RuntimeError",
        "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found 'up'",
    ),
    Case(
        "gelu_approximate",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: torch.nn.functional.gelu(v.a, approximate="fast"),
        "RuntimeError",
        "approximate argument must be either none or tanh.",
    ),
    Case(
        "default_dtype_int",
        lambda torch: {},
        lambda torch, v: torch.set_default_dtype(torch.int64),
        "TypeError",
        "only floating-point types are supported as the default type",
    ),
    Case(
        "finfo_of_int",
        lambda torch: {},
        lambda torch, v: torch.finfo(torch.int64),
        "TypeError",
        "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'",
    ),
    Case(
        "iinfo_of_float",
        lambda torch: {},
        lambda torch, v: torch.iinfo(torch.float32),
        "TypeError",
        "torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'",
    ),
    # devices
    Case(
        "mixed_devices_add",
        lambda torch: dict(a=torch.ones(2), b=torch.ones(2, device="meta")),
        lambda torch, v: v.a + v.b,
        "RuntimeError",
        "Tensor on device meta is not on the expected device cpu!",
    ),
    Case(
        "mixed_devices_cat",
        lambda torch: dict(a=torch.ones(2), b=torch.ones(2, device="meta")),
        lambda torch, v: torch.cat([v.a, v.b]),
        "RuntimeError",
        "Tensor on device meta is not on the expected device cpu!",
    ),
    Case(
        "meta_item",
        lambda torch: dict(a=torch.ones((), device="meta")),
        lambda torch, v: v.a.item(),
        "RuntimeError",
        "Tensor.item() cannot be called on meta tensors",
    ),
    Case(
        "meta_tolist",
        lambda torch: dict(a=torch.ones(2, device="meta")),
        lambda torch, v: v.a.tolist(),
        "NotImplementedError",
        "Cannot copy out of meta tensor; no data!",
    ),
    Case(
        "meta_numpy",
        lambda torch: dict(a=torch.ones(2, device="meta")),
        lambda torch, v: v.a.numpy(),
        "TypeError",
        "can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.",
    ),
    Case(
        "meta_to_cpu",
        lambda torch: dict(a=torch.ones(2, device="meta")),
        lambda torch, v: v.a.to("cpu"),
        "NotImplementedError",
        "Cannot copy out of meta tensor; no data!",
    ),
    Case(
        "meta_copy_to_cpu",
        lambda torch: dict(a=torch.zeros(2), b=torch.ones(2, device="meta")),
        lambda torch, v: v.a.copy_(v.b),
        "NotImplementedError",
        "Cannot copy out of meta tensor; no data!",
    ),
    Case(
        "meta_bool",
        lambda torch: dict(a=torch.ones((), device="meta")),
        lambda torch, v: bool(v.a),
        "RuntimeError",
        "Tensor.item() cannot be called on meta tensors",
    ),
    Case(
        "device_unknown",
        lambda torch: {},
        lambda torch, v: torch.device("gpu"),
        "RuntimeError",
        "Expected one of <devices> device type at start of device string: gpu",
    ),
    Case(
        "device_bad_index",
        lambda torch: {},
        lambda torch, v: torch.device("cpu:x"),
        "RuntimeError",
        "Invalid device string: 'cpu:x'",
    ),
    Case(
        "device_negative_index",
        lambda torch: {},
        lambda torch, v: torch.device("cpu", -2),
        "RuntimeError",
        "Device index must not be negative",
    ),
    Case(
        "device_factory_unknown",
        lambda torch: {},
        lambda torch, v: torch.ones(2, device="nowhere"),
        "RuntimeError",
        "Expected one of <devices> device type at start of device string: nowhere",
    ),
    # arguments
    Case(
        "missing_argument",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: torch.mul(v.a),
        "TypeError",
        'mul() missing 1 required positional arguments: "other"',
    ),
    Case(
        "missing_argument_method",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: v.a.gather(0),
        "TypeError",
        'gather() missing 1 required positional arguments: "index"',
    ),
    Case(
        "unexpected_keyword",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: torch.exp(v.a, alpha=2),
        "TypeError",
        "exp() got an unexpected keyword argument",
    ),
    Case(
        "unexpected_keyword_method",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: v.a.relu(inplace=True),
        "TypeError",
        "relu() got an unexpected keyword argument",
    ),
    Case(
        "too_many_arguments",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: v.a.exp(1),
        "TypeError",
        "exp() takes another number of arguments",
    ),
    Case(
        "wrong_type_string",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: torch.exp("x"),
        "TypeError",
        "exp(): argument 'input' (position 1) must be Tensor, not str",
    ),
    Case(
        "wrong_type_list",
        lambda torch: {},
        lambda torch, v: torch.relu([1.0, 2.0]),
        "TypeError",
        "relu(): argument 'input' (position 1) must be Tensor, not list",
    ),
    Case(
        "wrong_type_operand",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: v.a + "x",
        "TypeError",
        "unsupported operand type(s) for +: 'Tensor' and 'str'",
    ),
    Case(
        "wrong_type_reflected",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: [] - v.a,
        "TypeError",
        "unsupported operand type(s) for -: 'list' and 'Tensor'",
    ),
    Case(
        "wrong_type_dim",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: v.a.unsqueeze("x"),
        "TypeError",
        "unsqueeze(): argument 'dim' (position 1) must be int, not str",
    ),
    Case(
        "wrong_type_transpose",
        lambda torch: dict(a=torch.ones(2, 2)),
        lambda torch, v: v.a.transpose(0.5, 1),
        "TypeError",
        "transpose(): argument 'dim0' (position 1) must be int, not float",
    ),
    Case(
        "wrong_type_view",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: v.a.view("x"),
        "TypeError",
        "view() received an invalid combination of arguments - got (str)",
    ),
    Case(
        "argument_given_twice",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: torch.add(v.a, v.a, other=v.a),
        "TypeError",
        "add() got multiple values for argument 'other'",
    ),
    Case(
        "alpha_type",
        lambda torch: dict(a=torch.ones(2, dtype=torch.int64)),
        lambda torch, v: torch.add(v.a, v.a, alpha=0.5),
        "RuntimeError",
        "For integral input tensors, argument alpha must not be a floating point number.",
    ),
    Case(
        "alpha_bool",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: torch.add(v.a, v.a, alpha="x"),
        "TypeError",
        "add(): argument 'alpha' must be Number, not str",
    ),
    Case(
        "zeros_negative",
        lambda torch: {},
        lambda torch, v: torch.zeros(-1),
        "RuntimeError",
        "zeros: Dimension size must be non-negative.",
    ),
    Case(
        "zeros_text",
        lambda torch: {},
        lambda torch, v: torch.zeros("x"),
        "TypeError",
        "zeros(): argument 'size' (position 1) must be tuple of ints, not str",
    ),
    Case(
        "empty_dtype_text",
        lambda torch: {},
        lambda torch, v: torch.empty(2, dtype="float32"),
        "TypeError",
        "empty(): argument 'dtype' must be torch.dtype, not str",
    ),
    Case(
        "full_missing",
        lambda torch: {},
        lambda torch, v: torch.full((2,)),
        "TypeError",
        'full() missing 1 required positional arguments: "fill_value"',
    ),
    Case(
        "arange_zero_step",
        lambda torch: {},
        lambda torch, v: torch.arange(0, 5, 0),
        "RuntimeError",
        "step must be nonzero",
    ),
    Case(
        "arange_wrong_sign",
        lambda torch: {},
        lambda torch, v: torch.arange(0, 5, -1),
        "RuntimeError",
        "upper bound and lower bound inconsistent with step sign",
    ),
    Case(
        "linspace_negative",
        lambda torch: {},
        lambda torch, v: torch.linspace(0, 1, -1),
        "RuntimeError",
        "number of steps must be non-negative",
    ),
    Case(
        "eye_negative",
        lambda torch: {},
        lambda torch, v: torch.eye(-1),
        "RuntimeError",
        "n must be greater or equal to 0, got -1",
    ),
    Case(
        "tensor_ragged",
        lambda torch: {},
        lambda torch, v: torch.tensor([[1, 2], [3]]),
        "ValueError",
        "expected sequence of length 2 at dim 1 (got 1)",
    ),
    Case(
        "tensor_text",
        lambda torch: {},
        lambda torch, v: torch.tensor("x"),
        "TypeError",
        "new(): invalid data type 'str'",
    ),
    Case(
        "tensor_object",
        lambda torch: {},
        lambda torch, v: torch.tensor([object()]),
        "RuntimeError",
        "Could not infer dtype of object",
    ),
    Case(
        "tensor_overflow",
        lambda torch: {},
        lambda torch, v: torch.tensor(300, dtype=torch.uint8),
        "RuntimeError",
        "value cannot be converted to type uint8 without overflow",
    ),
    Case(
        "to_unknown",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: v.a.to("float32"),
        "RuntimeError",
        "Invalid device string: 'float32'",
    ),
    Case(
        "channels_last_ndim",
        lambda torch: dict(a=torch.ones(2, 3)),
        lambda torch, v: v.a.contiguous(memory_format=torch.channels_last),
        "RuntimeError",
        "required rank 4 tensor to use channels_last format",
    ),
    Case(
        "clone_positional",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: v.a.clone(torch.contiguous_format),
        "TypeError",
        "clone() takes another number of arguments",
    ),
    Case(
        "split_wrong_type",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: v.a.chunk("x"),
        "TypeError",
        "chunk(): argument 'chunks' (position 1) must be int, not str",
    ),
    Case(
        "item_of_many",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: v.a.item(),
        "RuntimeError",
        "a Tensor with 2 elements cannot be converted to Scalar",
    ),
    Case(
        "bool_of_many",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: bool(v.a),
        "RuntimeError",
        "Boolean value of Tensor with more than one value is ambiguous",
    ),
    Case(
        "bool_of_none",
        lambda torch: dict(a=torch.ones(0)),
        lambda torch, v: bool(v.a),
        "RuntimeError",
        "Boolean value of Tensor with no values is ambiguous",
    ),
    Case(
        "float_of_many",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: float(v.a),
        "ValueError",
        "only one element tensors can be converted to Python scalars",
    ),
    Case(
        "index_of_float",
        lambda torch: dict(a=torch.tensor(1.0)),
        lambda torch, v: [1, 2][v.a],
        "TypeError",
        "only integer tensors of a single element can be converted to an index",
    ),
    Case(
        "int_of_many",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: int(v.a),
        "ValueError",
        "only one element tensors can be converted to Python scalars",
    ),
    Case(
        "format_of_many",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: f"{v.a:.2f}",
        "TypeError",
        "unsupported format string passed to Tensor.__format__",
    ),
    Case(
        "contains_text",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: "x" in v.a,
        "RuntimeError",
        "Tensor.__contains__ only supports Tensor or scalar, but you passed in a <class 'str'>.",
    ),
    Case(
        "attribute_missing",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: v.a.no_such_thing,
        "AttributeError",
        "'Tensor' object has no attribute 'no_such_thing'",
    ),
    Case(
        "module_attribute_missing",
        lambda torch: {},
        lambda torch, v: torch.no_such_thing,
        "AttributeError",
        "module 'torch' has no attribute 'no_such_thing'",
    ),
    Case(
        "numpy_requires_grad",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: v.a.numpy(),
        "RuntimeError",
        "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
    ),
    Case(
        "array_requires_grad",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: v.a.__array__(),
        "RuntimeError",
        "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
    ),
    Case(
        "numpy_bfloat16",
        lambda torch: dict(a=torch.ones(2, dtype=torch.bfloat16)),
        lambda torch, v: v.a.numpy(),
        "TypeError",
        "Got unsupported ScalarType BFloat16",
    ),
    Case(
        "from_numpy_list",
        lambda torch: {},
        lambda torch, v: torch.from_numpy([1, 2]),
        "TypeError",
        "expected np.ndarray (got list)",
    ),
    Case(
        "shape_assignment",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: setattr(v.a, "shape", (2, 1)),
        "AttributeError",
        "attribute 'shape' is not writable",
    ),
    Case(
        "data_assignment",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: setattr(v.a, "data", 5),
        "TypeError",
        "Variable data has to be a tensor, but got int",
    ),
    # autograd
    Case(
        "leaf_inplace",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: v.a.add_(1),
        "RuntimeError",
        "a leaf Variable that requires grad is being used in an in-place operation.",
    ),
    Case(
        "leaf_view_inplace",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: v.a[:1].mul_(2),
        "RuntimeError",
        "a view of a leaf Variable that requires grad is being used in an in-place operation.",
    ),
    Case(
        "leaf_setitem",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: v.a.__setitem__(0, 5.0),
        "RuntimeError",
        "a view of a leaf Variable that requires grad is being used in an in-place operation.",
    ),
    Case(
        "leaf_fill",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: v.a.zero_(),
        "RuntimeError",
        "a leaf Variable that requires grad is being used in an in-place operation.",
    ),
    Case(
        "leaf_copy",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: v.a.copy_(torch.zeros(2)),
        "RuntimeError",
        "a leaf Variable that requires grad is being used in an in-place operation.",
    ),
    Case(
        "leaf_out",
        lambda torch: dict(a=torch.ones(2, requires_grad=True), b=torch.ones(2)),
        lambda torch, v: torch.add(v.b, v.b, out=v.a),
        "RuntimeError",
        "add(): functions with out=... arguments don't support automatic differentiation, but one of the "
        "arguments requires grad.",
    ),
    Case(
        "out_with_grad_input",
        lambda torch: dict(a=torch.ones(2, requires_grad=True), o=torch.zeros(2)),
        lambda torch, v: torch.mul(v.a, 2, out=v.o),
        "RuntimeError",
        "mul(): functions with out=... arguments don't support automatic differentiation, but one of the "
        "arguments requires grad.",
    ),
    Case(
        "backward_non_scalar",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: (v.a * 2).backward(),
        "RuntimeError",
        "grad can be implicitly created only for scalar outputs",
    ),
    Case(
        "backward_no_grad",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: v.a.sum().backward(),
        "RuntimeError",
        "element 0 of tensors does not require grad and does not have a grad_fn",
    ),
    Case(
        "backward_shape",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: (v.a * 2).backward(torch.ones(3)),
        "RuntimeError",
        "Mismatch in shape: grad_output[0] has a shape of torch.Size([3]) and output[0] has a shape of "
        "torch.Size([2]).",
    ),
    Case(
        "backward_twice",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: backward_twice(v.a.exp().sum()),
        "RuntimeError",
        "Trying to backward through the graph a second time (or directly access saved tensors after they "
        "have already been freed). Saved intermediate values of the graph are freed when you call "
        ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph "
        "a second time or if you need to access saved tensors after calling backward.",
    ),
    Case(
        "backward_after_inplace",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: backward_after_write(v.a.exp()),
        "RuntimeError",
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        "[torch.FloatTensor [2]], which is output 0 of Exp, is at version 1; expected version 0 instead. "
        "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True, check_nan=False).",
    ),
    Case(
        "backward_empty_inputs",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: v.a.sum().backward(inputs=[]),
        "RuntimeError",
        "`inputs` argument to `backward()` cannot be empty.",
    ),
    Case(
        "grad_unused",
        lambda torch: dict(a=torch.ones(2, requires_grad=True), b=torch.ones(2, requires_grad=True)),
        lambda torch, v: torch.autograd.grad(v.a.sum(), [v.b]),
        "RuntimeError",
        "The differentiated Tensor at index 0 appears to not have been used in the graph. Set "
        "allow_unused=True if this is the desired behavior.",
    ),
    Case(
        "grad_no_requires",
        lambda torch: dict(a=torch.ones(2, requires_grad=True), b=torch.ones(2)),
        lambda torch, v: torch.autograd.grad(v.a.sum(), [v.b]),
        "RuntimeError",
        "One of the differentiated Tensors does not require grad",
    ),
    Case(
        "grad_materialize_unused",
        lambda torch: dict(a=torch.ones(2, requires_grad=True), b=torch.ones(2, requires_grad=True)),
        lambda torch, v: torch.autograd.grad(v.a.sum(), [v.b], allow_unused=False, materialize_grads=True),
        "ValueError",
        "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False.",
    ),
    Case(
        "grad_wrong_shape",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: setattr(v.a, "grad", torch.ones(3)),
        "RuntimeError",
        "attempting to assign a gradient of size '[3]' to a tensor of size '[2]'. Please ensure that the "
        "gradient and the tensor are the same size",
    ),
    Case(
        "grad_wrong_dtype",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: setattr(v.a, "grad", torch.ones(2, dtype=torch.float64)),
        "RuntimeError",
        "attempting to assign a gradient with dtype 'double' to a tensor with grad_dtype 'Float'. The "
        "gradient must match the tensor's grad_dtype (defaults to the tensor's dtype). You can set the "
        "tensor's grad_dtype attribute with a specific dtype, or None to allow any dtype. Set grad_dtype "
        "with caution. Diverging the dtypes of a tensor and its gradient may break downstream systems that "
        "assume they match.",
    ),
    Case(
        "grad_wrong_type",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: setattr(v.a, "grad", 5),
        "TypeError",
        "assigned grad expected to be a Tensor or None but got grad of type int",
    ),
    Case(
        "grad_itself",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: setattr(v.a, "grad", v.a),
        "RuntimeError",
        "can't assign Variable as its own grad",
    ),
    Case(
        "requires_grad_nonleaf",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: (v.a * 2).requires_grad_(False),
        "RuntimeError",
        "you can only change requires_grad flags of leaf variables. If you want to use a computed variable "
        "in a subgraph that doesn't require differentiation use var_no_grad = var.detach().",
    ),
    Case(
        "retain_grad_no_grad",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: v.a.retain_grad(),
        "RuntimeError",
        "can't retain_grad on Tensor that has requires_grad=False",
    ),
    Case(
        "hook_no_grad",
        lambda torch: dict(a=torch.ones(2)),
        lambda torch, v: v.a.register_hook(lambda g: g),
        "RuntimeError",
        "cannot register a hook on a tensor that doesn't require gradient",
    ),
    Case(
        "post_hook_nonleaf",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: (v.a * 2).register_post_accumulate_grad_hook(lambda t: None),
        "RuntimeError",
        "post accumulate grad hooks cannot be registered on non-leaf tensors",
    ),
    Case(
        "hook_wrong_shape",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: (v.a.register_hook(lambda g: torch.ones(3)), v.a.sum().backward()),
        "RuntimeError",
        "hook '<lambda>' has changed the size of value",
    ),
    Case(
        "hook_wrong_type",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: (v.a.register_hook(lambda g: 5), v.a.sum().backward()),
        "TypeError",
        "expected Variable, but hook returned 'int'",
    ),
    Case(
        "deepcopy_nonleaf",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: copy.deepcopy(v.a * 2),
        "RuntimeError",
        "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
        "moment.  If you were attempting to deepcopy a module, this may be because of a "
        "torch.nn.utils.weight_norm usage, see https://github.com/pytorch/pytorch/pull/103001",
    ),
    Case(
        "detach_inplace_view",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: (v.a * 1)[:1].detach_(),
        "RuntimeError",
        "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) "
        "for training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and "
        "hence detach_() cannot be called on these gradients. To fix this error, please refer to the "
        "Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution.",
    ),
    Case(
        "inference_inplace",
        lambda torch: dict(a=torch.ones(2), b=inferred(torch)),
        lambda torch, v: v.b.add_(1),
        "RuntimeError",
        "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get "
        "a normal tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more "
        "details.",
    ),
    Case(
        "inference_saved",
        lambda torch: dict(a=torch.ones(2, requires_grad=True), b=inferred(torch)),
        lambda torch, v: v.a * v.b,
        "RuntimeError",
        "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode "
        "in computation tracked by autograd. To work around this, you can make a clone to get a normal "
        "tensor and use it in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`.",
    ),
    Case(
        "inference_requires_grad",
        lambda torch: dict(b=inferred(torch)),
        lambda torch, v: v.b.requires_grad_(),
        "RuntimeError",
        "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.",
    ),
    Case(
        "inference_version",
        lambda torch: dict(b=inferred(torch)),
        lambda torch, v: v.b._version,
        "RuntimeError",
        "Inference tensors do not track version counter.",
    ),
    Case(
        "no_grad_view_inplace",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: no_grad_view(torch, v.a * 1).mul_(2),
        "RuntimeError",
        "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that "
        "this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving "
        "both the view and the inplace either both inside the no_grad block (if you don't want the inplace "
        "to be tracked) or both outside (if you want the inplace to be tracked).",
    ),
    Case(
        "multi_view_inplace",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: (v.a * 1).unbind()[0].mul_(2),
        "RuntimeError",
        "Output 0 of Unbind is a view and is being modified inplace. This view is the output of a function "
        "that returns multiple views. Such functions do not allow the output views to be modified inplace. "
        "You should replace the inplace operation by an out-of-place one.",
    ),
    Case(
        "function_without_backward",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: no_backward(torch).apply(v.a).sum().backward(),
        "NotImplementedError",
        "You must implement either the backward or vjp method for your custom autograd.Function to use it "
        "with backward mode AD.",
    ),
    Case(
        "function_wrong_count",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: wrong_count(torch).apply(v.a, v.a).sum().backward(),
        "RuntimeError",
        "function WrongCountBackward returned an incorrect number of gradients (expected 2, got 1)",
    ),
    Case(
        "function_wrong_shape",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: wrong_shape(torch).apply(v.a).sum().backward(),
        "RuntimeError",
        "Function WrongShapeBackward returned an invalid gradient at index 0 - got [3] but expected shape "
        "compatible with [2]",
    ),
    Case(
        "function_instance_call",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: no_backward(torch)()(v.a),
        "RuntimeError",
        "Legacy autograd function with non-static forward method is deprecated. Please use new-style "
        "autograd function with static forward method. (Example: "
        "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)",
    ),
    Case(
        "once_differentiable_twice",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: torch.autograd.grad(
            torch.autograd.grad(once(torch).apply(v.a).sum(), v.a, create_graph=True)[0].sum(), v.a
        ),
        "RuntimeError",
        "element 0 of tensors does not require grad and does not have a grad_fn",
    ),
    # overlap and storage
    Case(
        "overlap_add",
        lambda torch: dict(a=torch.zeros(3)),
        lambda torch, v: v.a.expand(2, 3).add_(1),
        "RuntimeError",
        "unsupported operation: more than one element of the written-to tensor refers to a single memory "
        "location. Please clone() the tensor before performing the operation.",
    ),
    Case(
        "overlap_copy",
        lambda torch: dict(a=torch.zeros(3), b=torch.ones(2, 3)),
        lambda torch, v: v.a.expand(2, 3).copy_(v.b),
        "RuntimeError",
        "unsupported operation: more than one element of the written-to tensor refers to a single memory "
        "location. Please clone() the tensor before performing the operation.",
    ),
    Case(
        "overlap_partial",
        lambda torch: dict(a=torch.zeros(5)),
        lambda torch, v: torch.add(v.a[:4], 1, out=v.a[1:]),
        "RuntimeError",
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
        "single memory location. Please clone() the tensor before performing the operation.",
    ),
    Case(
        "overlap_inplace_partial",
        lambda torch: dict(a=torch.zeros(5)),
        lambda torch, v: v.a[1:].add_(v.a[:4]),
        "RuntimeError",
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
        "single memory location. Please clone() the tensor before performing the operation.",
    ),
    Case(
        "set_storage_bounds",
        lambda torch: dict(a=torch.zeros(3)),
        lambda torch, v: v.a.storage()[3],
        "IndexError",
        "index 3 out of range for storage of size 3",
    ),
    Case(
        "resize_requires_grad",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: v.a.resize_(3),
        "RuntimeError",
        "cannot resize variables that require grad",
    ),
    Case(
        "resize_numpy",
        lambda torch: dict(a=torch.from_numpy(numpy.ones(3))),
        lambda torch, v: v.a.resize_(5),
        "RuntimeError",
        "Trying to resize storage that is not resizable",
    ),
    Case(
        "frombuffer_empty",
        lambda torch: {},
        lambda torch, v: torch.frombuffer(b"", dtype=torch.float32),
        "ValueError",
        "both buffer length (0) and count (-1) must not be 0",
    ),
    Case(
        "frombuffer_ragged",
        lambda torch: {},
        lambda torch, v: torch.frombuffer(b"123", dtype=torch.float32),
        "ValueError",
        "buffer length (3 bytes) after offset (0 bytes) must be a multiple of element size (4)",
    ),
    Case(
        "dlpack_requires_grad",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: v.a.__dlpack__(),
        "BufferError",
        "Can't export tensors that require gradient, use tensor.detach()",
    ),
]


CASES += BY_FAMILY


def attempt(torch: Any, case: Case, device: str = "") -> tuple[str, str, dict[str, Any]]:
    """Type and text of the exception, and the tensors that were given to the call."""
    values = case.setup(torch)
    if device:
        values = {name: tensor.to(device) for name, tensor in values.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = case.call(torch, types.SimpleNamespace(**values))
        except Exception as error:
            return type(error).__name__, normalise(str(error)), values
    raise AssertionError(f"{case.name}: no exception, but {result!r}")


def state(torch: Any, values: dict[str, Any]) -> dict[str, Any]:
    """Everything of the tensors that a failed call may not change."""
    result: dict[str, Any] = {}
    for name, tensor in values.items():
        # As text, in which a NaN equals a NaN.
        data = None if tensor.device.type == "meta" else str(tensor.detach().to(torch.complex128).tolist())
        version = None if tensor.is_inference() else tensor._version
        result[name] = (tuple(tensor.shape), tensor.stride(), str(tensor.dtype), tensor.requires_grad, version, data)
    return result


# Calls in which PyTorch itself writes before it notices; here nothing may change.
CHANGED_BY_PYTORCH = frozenset({"scatter_range", "inference_inplace", "resize_numpy"})


def test_the_table_is_large_and_has_no_double() -> None:
    names = [case.name for case in CASES]
    assert len(names) >= 700
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_bad_call(case: Case) -> None:
    before = state(subject, case.setup(subject))
    error, text, values = attempt(subject, case)
    assert (error, text) == (case.error, case.text)
    if not (IS_ORACLE and case.name in CHANGED_BY_PYTORCH):
        assert state(subject, values) == before


@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_oracle_says_so(case: Case) -> None:
    error, text, _ = attempt(_oracle.load(), case)
    assert (error, text) == (case.error, case.text)


@pytest.mark.parametrize("case", [case for case in CASES if case.meta], ids=lambda case: case.name)
def test_bad_call_without_data(case: Case) -> None:
    """Complaints about shapes and arguments come from the rule, so tensors without data get them too."""
    error, text, _ = attempt(subject, case, "meta")
    assert (error, text) == (case.error, case.text)


@pytest.mark.oracle
@pytest.mark.parametrize("case", [case for case in CASES if case.meta], ids=lambda case: case.name)
def test_the_oracle_says_so_without_data(case: Case) -> None:
    error, text, _ = attempt(_oracle.load(), case, "meta")
    assert (error, text) == (case.error, case.text)
