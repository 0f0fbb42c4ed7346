"""Operators that PyTorch keeps to itself and that its own modules, tests and older programs call all the same.

Invariant: each is made of public operators; what PyTorch cannot differentiate says so in the backward pass, not before.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._dispatch import registry
from .._dispatch.op import Spec
from .._dtype import bool as bool_
from .._dtype import float32, float64, int8, int16, int32, int64
from .._dtype_names import cpp_name
from .._tensor_base import all_values, is_contiguous, numel
from .._warn import warn_once
from .matmul import ADDMM
from .rules.base import like, wrap_dim
from .rules.layout import preserved_strides
from .rules.pointwise import DEFAULT, Pointwise
from .search import UNIQUE
from .table import composite, op

_NODE = "NotImplemented"


def _refusing(name: str, *differentiable: str) -> dict[str, Callable[..., Any]]:
    """Formulas of an operator without derivative."""

    def refuse(grads: Any) -> Any:
        raise RuntimeError(f"derivative for aten::{name} is not implemented")

    return dict.fromkeys(differentiable, refuse)


# -- assertions ---------------------------------------------------------------------------------------------------
def _assert_async(self: Any, assert_msg: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    if self._device.type == "meta":
        return
    seen = all_values(self)
    if not bool(seen if seen is self else seen.all()):
        raise RuntimeError(assert_msg)


def _functional_assert(self: Any, assert_msg: str, dep_token: Any) -> Any:
    _assert_async(self, assert_msg)
    return dep_token.clone()


composite("_assert_async(Tensor self) -> ()", _assert_async, method=False)
composite("_assert_async.msg(Tensor self, str assert_msg) -> ()", _assert_async, method=False)
composite("_functional_assert_async.msg(Tensor self, str assert_msg, Tensor dep_token) -> Tensor", _functional_assert,
          method=False)


# -- reductions, products -----------------------------------------------------------------------------------------
_AMINMAX: Any = registry.get("aminmax")


def _aminmax(self: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    warn_once("_aminmax is deprecated as of PyTorch 1.11 and will be removed in a future release. Use aminmax instead. "
              "This warning will only appear once per process.")
    return tuple(_AMINMAX.call((self, dim, keepdim)))


for _overload in ("(Tensor self)", ".dim(Tensor self, int dim, bool keepdim=False)"):
    op(f"_aminmax{_overload} -> (Tensor, Tensor)", kernel=_aminmax, method=False, node=_NODE,
       meta=lambda self, dim=None, keepdim=False: _AMINMAX.rule.infer((self, dim, keepdim)),
       grad=_refusing("_aminmax", "self"))


def _addmm_activation(self: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any, use_gelu: bool) -> Any:
    summed = ADDMM.call((self, mat1, mat2, beta, alpha))
    return registry.get("gelu").call((summed, "none")) if use_gelu else summed.relu()


def _addmm_meta(*args: Any) -> Any:
    assert ADDMM.rule is not None
    return ADDMM.rule.infer(args[:5])


op("_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, bool use_gelu=False) -> "
   "Tensor", meta=_addmm_meta, kernel=_addmm_activation, out=True, node=_NODE,
   grad=_refusing("_addmm_activation", "self", "mat1", "mat2"))


def _combination_meta(input: Any, coefficients: Any) -> Spec:
    if not input._shape or numel(input) == 0 or numel(coefficients) == 0:
        raise RuntimeError("Empty tensor not supported")
    wrap_dim(1, coefficients.dim())
    if coefficients._dtype is not input._dtype or coefficients._shape[1] < input._shape[0]:
        raise RuntimeError(
            f"_compute_linear_combination: expected coefficients of {input.dtype} with a column for each of the "
            f"{input._shape[0]} terms, got {list(coefficients._shape)} of {coefficients.dtype}")
    return like(input, (coefficients._shape[0], *input._shape[1:]))


def _combination(input: Any, coefficients: Any) -> Any:
    terms, dt = input._shape[0], input._dtype
    flat, factors = input.reshape((terms, -1)), coefficients[:, :terms]
    if dt is bool_:
        return (factors.to(int64) @ flat.to(int64)).to(dt).reshape((-1, *input._shape[1:]))
    return (factors @ flat).reshape((-1, *input._shape[1:]))


op("_compute_linear_combination(Tensor input, Tensor coefficients) -> Tensor", meta=_combination_meta,
   kernel=_combination, out=True, node=_NODE,
   grad=_refusing("_compute_linear_combination", "input", "coefficients"))


# -- a sum that is never negative ---------------------------------------------------------------------------------
_SUMS = Pointwise([0, 1], DEFAULT)


def _add_relu_meta(self: Any, other: Any, alpha: Any) -> Spec:
    if self._dtype not in (float32, float64, int8, int16, int32, int64):
        raise RuntimeError(f"Unsupported datatype for add_relu:{cpp_name(self._dtype)}")
    found: Spec = _SUMS.infer((self, other))
    return found


op("_add_relu(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", meta=_add_relu_meta, method=False, out=True,
   inplace="function", numbers=("other",), kernel=lambda self, other, alpha: self.add(other, alpha=alpha).relu(),
   node=_NODE, grad=_refusing("_add_relu", "self", "other"))


# -- softmax over what is not masked ------------------------------------------------------------------------------
def _mask_of(self: Any, mask: Any, mask_type: int | None) -> Any:
    """The mask at every element: True leaves an element out."""
    if mask._dtype is not bool_:
        raise RuntimeError("Mask should be a boolean tensor")
    shape = self._shape
    if mask.dim() != 2 or len(shape) != 4:
        mask_type = 2
    if mask_type is None:
        raise RuntimeError("Mask Type should be defined")
    if mask_type not in (0, 1, 2):
        raise RuntimeError("Mask Type should be 0 (src_mask) or 1 (src_key_padding_mask), or 2 (default_mask)")
    if mask_type == 2:
        wanted, words = shape, "match input shape"
    elif mask_type == 1:
        wanted, words = (shape[0], shape[2]), "be (B, L)"
    else:
        wanted, words = (shape[2], shape[2]), "be (L, L)"
    if tuple(mask._shape) != tuple(wanted):
        raise RuntimeError(f"For mask_type == {mask_type} mask shape should {words}")
    if mask_type == 1:
        mask = mask.reshape((shape[0], 1, 1, shape[2]))
    return mask.expand(shape)


def _masked_softmax_meta(self: Any, mask: Any, dim: int | None, mask_type: int | None) -> Spec:
    _mask_of(self, mask, mask_type)
    wrap_dim(-1 if dim is None else dim, len(self._shape))
    if not self._dtype.is_floating_point:
        raise NotImplementedError(f"\"masked_softmax\" not implemented for '{self._dtype.scalar_name}'")
    return Spec(self._shape, preserved_strides(self), self._dtype, self._dtype, self._device)


def _masked_softmax(self: Any, mask: Any, dim: int | None, mask_type: int | None) -> Any:
    left_out = _mask_of(self, mask, mask_type)
    return self.masked_fill(left_out, float("-inf")).softmax(-1 if dim is None else dim)


def _masked_backward_meta(grad_output: Any, output: Any, mask: Any, dim: int | None) -> Spec:
    if tuple(grad_output._shape) != tuple(mask._shape):
        raise RuntimeError("Mask shape should match grad shape")
    if tuple(output._shape) != tuple(mask._shape):
        raise RuntimeError("Mask shape should match output shape")
    return like(grad_output) if is_contiguous(grad_output) else Spec(
        grad_output._shape, preserved_strides(grad_output), grad_output._dtype, grad_output._dtype,
        grad_output._device)


def _masked_backward(grad_output: Any, output: Any, mask: Any, dim: int | None) -> Any:
    kept = output.masked_fill(mask, 0)
    along = (grad_output.masked_fill(mask, 0) * kept).sum((-1 if dim is None else dim,), True)
    return kept * (grad_output - along).masked_fill(mask, 0)


_BACKWARD = op("_masked_softmax_backward(Tensor grad_output, Tensor output, Tensor mask, int? dim=None) -> Tensor",
               meta=_masked_backward_meta, kernel=_masked_backward, function=False, method=False,
               node=_NODE, grad=_refusing("_masked_softmax_backward", "grad_output", "output"))
op("_masked_softmax(Tensor self, Tensor mask, int? dim=None, int? mask_type=None) -> Tensor",
   meta=_masked_softmax_meta, kernel=_masked_softmax, method=False,
   grad=dict(self=lambda g, result, mask, dim: _BACKWARD.call((g, result, mask, dim))))


# -- older names of operators -------------------------------------------------------------------------------------
def _unique(self: Any, sorted: bool, return_inverse: bool) -> Any:
    found, inverse, _ = UNIQUE.call((self, sorted, return_inverse, False))
    return found, inverse if return_inverse else inverse.new_empty((0,))


composite("_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)", _unique,
          method=False)
composite("_grid_sampler_2d_cpu_fallback(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
          "align_corners) -> Tensor", lambda *args: registry.get("grid_sampler_2d").call(args), method=False)
