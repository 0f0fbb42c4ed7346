"""Dtypes."""
from __future__ import annotations

from typing import Any

from ._case import Case


def double(ctx: Any, x: Any) -> Any:
    return x * 2


CASES: list[Case] = [
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
]
