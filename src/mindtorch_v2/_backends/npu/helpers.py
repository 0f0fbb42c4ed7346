"""What the lines of common operators ask of a call's arguments at every launch: helpers of lines, and choices.

Invariant: only metadata is read, and nothing is launched but the cast that a dtype without a function needs.
"""

from __future__ import annotations

from typing import Any, Final, final

from ..._dtype import dtype
from ..._tensor_base import TensorBase, numel
from . import kernels, quirks, table

# The numbers of reductions.
_NONE: Final = 0
_SUM: Final = 2


# -- dimensions -------------------------------------------------------------------------------------------------------
_COUNTED: Final[list[tuple[int, ...]]] = [tuple(range(n)) for n in range(9)]


def all_dims(n: int) -> tuple[int, ...]:
    return _COUNTED[n] if n < 9 else tuple(range(n))


def dims(self: TensorBase, dim: Any) -> tuple[int, ...]:
    """Dimensions to reduce, counted from the front; all of them when none are named."""
    n = len(self._shape)
    if dim is None or n == 0:
        return all_dims(n)
    if isinstance(dim, int):
        one: int = dim
        return (one + n if one < 0 else one,)
    if len(dim) == 0:
        return all_dims(n)
    if len(dim) == 1:
        only: int = dim[0]
        return (only + n if only < 0 else only,)
    return tuple([d + n if d < 0 else d for d in dim])


def wrapped(self: TensorBase, dim: int) -> int:
    """A dimension counted from the front."""
    return dim if dim >= 0 else dim + max(len(self._shape), 1)


def keep(self: TensorBase, keepdim: bool) -> bool:
    """A 0-dim tensor has no dimension to keep."""
    return keepdim and len(self._shape) > 0


def dtype_of(t: TensorBase) -> dtype:
    """The dtype of a tensor, for parameters of type aclDataType."""
    return t._dtype


# -- products ---------------------------------------------------------------------------------------------------------
@final
class Cube:
    """How the matrix unit treats float32 on this chip, asked once; and whether HF32 is allowed."""

    def __init__(self) -> None:
        self.known: bool = False
        self.half: bool = False
        self.kind: int = 0

    def ask(self) -> int:
        if not self.known:
            self.kind = quirks.HALF_FLOATS if self.half else quirks.cube_math_type()
            self.known = True
        return self.kind

    def switch(self, half: bool) -> None:
        self.half = half
        self.known = False


PRODUCTS: Final = Cube()
CONVOLUTIONS: Final = Cube()


def cube() -> int:
    """How the matrix unit treats float32 in products of matrices."""
    return PRODUCTS.ask()


def cube_of_convolution() -> int:
    """The same in convolutions and pools."""
    return CONVOLUTIONS.ask()


def apart(self: Any, a: TensorBase, b: TensorBase, beta: Any, alpha: Any) -> bool:
    """Whether a sum with a product must not be given to the vendor: nothing to multiply, or nothing to add to."""
    return beta == 0 or numel(a) == 0 or numel(b) == 0


# -- norms ------------------------------------------------------------------------------------------------------------
def mixed(input: TensorBase, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> bool:
    """Whether the parameters of a layer norm, which have one dtype, are wider than the input."""
    p = bias if weight is None else weight
    return isinstance(p, TensorBase) and p._dtype is not input._dtype


def mixed_backward(
    grad_out: Any,
    input: TensorBase,
    normalized_shape: Any,
    mean: TensorBase,
    rstd: Any,
    weight: Any,
    bias: Any,
    output_mask: Any,
) -> bool:
    return mean._dtype is not input._dtype


# -- losses -----------------------------------------------------------------------------------------------------------
def reduction_of(self: TensorBase, target: TensorBase, reduction: int) -> int:
    """The vendor gives numbers to reductions alone: the sum of one element is that element."""
    return reduction if len(self._shape) > 0 or len(target._shape) > 0 else _SUM


def reduction_of_rows(self: TensorBase, reduction: int) -> int:
    """The same where a vector is one row."""
    return reduction if len(self._shape) > 1 or reduction != _NONE else _SUM


# -- joining ----------------------------------------------------------------------------------------------------------
_CAT: Final[int] = table.signature("aclnnCat").params[0].mask
_STACK: Final[int] = table.signature("aclnnStack").params[0].mask


def accepted(t: TensorBase, out: TensorBase, mask: int, op: str) -> TensorBase:
    """A tensor in the result's dtype where its own is not documented."""
    return t if mask >> t._dtype.code & 1 else kernels.cast(t, out._dtype, op)


def joined(tensors: Any, out: TensorBase) -> list[Any]:
    """What is joined: tensors without elements add nothing, and a vector without any may stand beside every rank."""
    found: list[Any] = []
    t: TensorBase
    for t in tensors:
        if numel(t) > 0:
            found.append(accepted(t, out, _CAT, "cat"))
    return found


def stacked(tensors: Any, out: TensorBase) -> list[Any]:
    found: list[Any] = []
    t: TensorBase
    for t in tensors:
        found.append(accepted(t, out, _STACK, "stack"))
    return found


def all_points(tensors: Any, dim: int) -> bool:
    """Whether no tensor of a list has a dimension."""
    t: TensorBase
    for t in tensors:
        if len(t._shape) > 0:
            return False
    return True
