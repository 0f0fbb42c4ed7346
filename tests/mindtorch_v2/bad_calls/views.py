"""Views."""
from __future__ import annotations

from typing import Any

from ._case import Case


def inferred(torch: Any) -> Any:
    with torch.inference_mode():
        return torch.ones(2)


def multiply(ctx: Any, x: Any, y: Any) -> Any:
    return x * y


CASES: list[Case] = [
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
]
