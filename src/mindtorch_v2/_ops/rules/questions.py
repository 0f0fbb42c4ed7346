"""What tensors are asked beside operators: where they lie, and how.

Invariant: an answer is read off the fields of `TensorBase`; nothing here calls an operator.
"""

from __future__ import annotations

from typing import Any, Final

from ..._device import CPU
from ..._dispatch.binding import need
from ..._dispatch.keys import CONJUGATE, NEGATIVE, NESTED, SPARSE
from ..._dispatch.op import plain_name
from ..._dispatch.schema import parse
from ..._dispatch.state import transformed
from ..._sizes import long
from ..._tensor_base import TensorBase, set_requires_grad
from ..._unbound import refusal
from .base import wrap_dim

_DIM: Final = parse("size.int(Tensor self, int dim) -> int").args[1]
_NO_REQUIRES_GRAD: Final = (
    "You are attempting to call Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* APIs) inside of "
    "a function being transformed by a functorch transform. This is unsupported, please attempt to use the functorch "
    "transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call requires_grad_() outside of a function being "
    "transformed instead."
)


def is_cpu(t: TensorBase) -> bool:
    return t._device is CPU or t._device.type == "cpu"


def is_meta(t: TensorBase) -> bool:
    return t._device is not CPU and t._device.type == "meta"


def is_npu(t: TensorBase) -> bool:
    return t._device is not CPU and t._device.type == "npu"


def is_nested(t: TensorBase) -> bool:
    return (t._keys & NESTED) != 0


def is_conj(t: TensorBase) -> bool:
    return (t._keys & CONJUGATE) != 0


def is_neg(t: TensorBase) -> bool:
    return (t._keys & NEGATIVE) != 0


def dimension(t: TensorBase, name: str, dim: Any) -> int:
    """A dimension that exists, counted from the front."""
    if type(dim) is not int:
        dim = need(name, _DIM, 1, dim)
    d = long(dim)
    if not t._shape:
        raise IndexError(f"Dimension specified as {d} but tensor has no dimensions")
    return wrap_dim(d, len(t._shape))


def stride(t: TensorBase, dim: Any = None) -> Any:
    """`Tensor.stride`."""
    try:
        steps = t._stride
    except AttributeError as error:
        raise refusal("stride", t, error) from None
    if t._keys & SPARSE:
        t._storage.check_has("strides")
    if dim is None:
        return steps
    if type(dim) is int and -len(steps) <= dim < len(steps):
        return steps[dim]
    return steps[dimension(t, "stride", dim)]


def requires_grad_(t: TensorBase, requires_grad: object = True) -> TensorBase:
    """`Tensor.requires_grad_`."""
    if requires_grad is not True and requires_grad is not False:
        kind = plain_name(requires_grad)
        raise TypeError(f"requires_grad_(): argument 'requires_grad' (position 1) must be bool, not {kind}")
    if requires_grad is True:
        if not t._dtype.is_inexact:
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        if transformed():
            raise RuntimeError(_NO_REQUIRES_GRAD)
    set_requires_grad(t, requires_grad is True)
    return t
