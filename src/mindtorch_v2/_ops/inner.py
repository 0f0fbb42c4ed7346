"""What PyTorch's own functions are made of and that its modules, tests and traced programs name: `torch._stack`.

Invariant: each is another row with other words, or a few public operators; none has a kernel of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from .._dispatch import registry
from .._dtype import bool as bool_
from .._dtype import float16, float32, float64, int8, int16, int32, int64, uint8
from .._dtype_names import cpp_name
from .._layout import strided
from .._tensor_base import numel
from .._warn import warn_once
from .made_of import Ints, call, inner, same
from .rules.base import wrap_dims


# -- dtypes, geometry ---------------------------------------------------------------------------------------------
def _cast_to(dtype: Any) -> Callable[..., Any]:
    return lambda self, non_blocking: self.to(dtype, non_blocking)


for _name, _dtype in dict(
    Byte=uint8, Char=int8, Double=float64, Float=float32, Half=float16, Int=int32, Long=int64, Short=int16
).items():
    inner(f"_cast_{_name}(Tensor self, bool non_blocking=False) -> Tensor", _cast_to(_dtype))


def _full(self: Any, cuda_enabled: bool, cpu_enabled: bool) -> Any:
    on = cpu_enabled and self._device.type == "cpu" or cuda_enabled and self._device.type == "cuda"
    return self.to(float32) if on and self._dtype.is_floating_point and self._dtype.itemsize < 4 else self


def _reduced(self: Any, cuda_enabled: bool, cpu_enabled: bool, cuda_dtype: Any, cpu_dtype: Any) -> Any:
    if self._dtype is float32 and cpu_enabled and self._device.type == "cpu":
        return self.to(cpu_dtype)
    return self


inner(
    "_autocast_to_full_precision(Tensor(a) self, bool cuda_enabled, bool cpu_enabled) -> Tensor(a)",
    _full,
    method=True,
    function=False,
)
inner(
    "_autocast_to_reduced_precision(Tensor(a) self, bool cuda_enabled, bool cpu_enabled, ScalarType cuda_dtype, "
    "ScalarType cpu_dtype) -> Tensor(a)",
    _reduced,
    method=True,
    function=False,
)


def _saturated(weight: Any) -> Any:
    if weight._dtype is not float32:
        raise RuntimeError(f"expected scalar type Float but found {weight._dtype.scalar_name}")
    most = 65504.0
    if weight._device.type != "meta" and bool((weight.abs() > most).any()):
        warn_once("FOUND weight out of range ")
    return weight.clamp(-most, most)


inner("_saturate_weight_to_fp16(Tensor weight) -> Tensor", _saturated)
inner(
    "_shape_as_tensor(Tensor self) -> Tensor",
    lambda self: self.new_tensor(list(self._shape), dtype=int64, device="cpu"),
)


def _reshaped(self: Any, shape: Any) -> Any:
    if shape.dim() != 1:
        raise RuntimeError(
            "Expected shape_tensor.dim() == 1 to be true, but got false.  (Could this error message be "
            "improved?  If so, please report an enhancement request to PyTorch.)"
        )
    return self.reshape(tuple(shape.tolist()))


inner("_reshape_from_tensor(Tensor self, Tensor shape) -> Tensor", _reshaped)
inner(
    "_reshape_alias_copy(Tensor self, SymInt[] size, SymInt[] stride) -> Tensor",
    lambda self, size, stride: self.as_strided(size, stride, self.storage_offset()).clone(),
)
inner(
    "_dim_arange(Tensor like, int dim) -> Tensor",
    lambda like, dim: call("arange", 0, like.size(dim), 1, int64, None, like._device, None),
)
inner("_stack(Tensor[] tensors, int dim=0) -> Tensor", same("stack"))
inner("_to_cpu(Tensor[] tensors) -> Tensor[]", lambda tensors: tuple(t.to("cpu") for t in tensors))
inner(
    "flatten_dense_tensors(Tensor[] tensors) -> Tensor",
    lambda tensors: call("cat", tuple(t.contiguous().view(-1) for t in tensors), 0),
    function=False,
)


def _unflattened(flat: Any, tensors: list[Any]) -> tuple[Any, ...]:
    pieces, at = [], 0
    for t in tensors:
        n = numel(t)
        pieces.append(flat.narrow(0, at, n).view(t._shape) if n else t.new_empty(t._shape))
        at += n
    return tuple(pieces)


inner("unflatten_dense_tensors(Tensor flat, Tensor[] tensors) -> Tensor[]", _unflattened, function=False)
inner(
    "_efficientzerotensor(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor",
    lambda size, dtype, layout, device, pin_memory: call("zeros", size, dtype, layout, device, pin_memory),
)
inner(
    "_make_dep_token(*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
    "MemoryFormat? memory_format=None) -> Tensor",
    lambda dtype, layout, device, pin_memory, memory_format: call(
        "empty", (), dtype, layout, device, pin_memory, memory_format
    ),
)
inner(
    "_has_compatible_shallow_copy_type(Tensor self, Tensor from) -> bool",
    lambda self, other: self._device.type == other._device.type and self.layout is other.layout,
)


# -- assertions ---------------------------------------------------------------------------------------------------
def _assert_scalar(self: Any, assert_msg: str) -> None:
    if not self:
        raise RuntimeError(assert_msg)


def _assert_metadata(a: Any, size: Any, stride: Any, dtype: Any, device: Any, layout: Any) -> None:
    for what, wanted, got in (
        ("sizes", size and list(size), list(a._shape)),
        ("strides", stride and list(stride), list(a.stride()) if a.layout is strided else None),
    ):
        if wanted is not None and wanted != got:
            raise RuntimeError(f"Tensor {what} mismatch! Expected: {wanted}, Got: {got}")
    if dtype is not None and a._dtype is not dtype:
        raise RuntimeError(f"Tensor dtype mismatch! Expected: {dtype.scalar_name}, Got: {cpp_name(a._dtype)}")
    if device is not None and (a._device.type != device.type or device.index not in (None, a._device.index)):
        raise RuntimeError(f"Tensor device mismatch! Expected: {device}, Got: {a._device}")
    if layout is not None and a.layout is not layout:
        said, seen = (_LAYOUTS.get(str(it), str(it)) for it in (layout, a.layout))
        raise RuntimeError(f"Tensor layout mismatch! Expected: {said}, Got: {seen}")


_LAYOUTS = {
    "torch.strided": "Strided",
    "torch.sparse_coo": "Sparse",
    "torch.sparse_csr": "SparseCsr",
    "torch.sparse_csc": "SparseCsc",
    "torch.sparse_bsr": "SparseBsr",
    "torch.sparse_bsc": "SparseBsc",
}


def _constrained(size: Any, min: int | None, max: int | None, dep_token: Any) -> Any:
    low, high = -(2**63) if min is None else min, 2**63 - 1 if max is None else max
    if low > high:
        raise RuntimeError("Max must be greater than or equal to min: got min={low} max={high}")
    if not low <= size <= high:
        raise RuntimeError(f"Invalid value range for {size} between [{low}, {high}].")
    return dep_token.clone()


def _constrained_size(size: Any, min: int | None, max: int | None, dep_token: Any) -> Any:
    if max is not None and max <= 2:
        raise RuntimeError(f"Max value to constrain_range_for_size must be greater than 2. got: {max}")
    return _constrained(size, 0 if min is None else min, max, dep_token)


def _asserted(self: Any, assert_msg: str, dep_token: Any) -> Any:
    _assert_scalar(self, assert_msg)
    return dep_token.clone()


inner("_assert_scalar(Scalar self, str assert_msg) -> ()", _assert_scalar)
inner("_functional_assert_scalar(Scalar self, str assert_msg, Tensor dep_token) -> Tensor", _asserted)
inner(
    "_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? dtype=None, *, "
    "Device? "
    "device=None, Layout? layout=None) -> ()",
    _assert_metadata,
)
inner("_functional_sym_constrain_range(Scalar size, int? min, int? max, Tensor dep_token) -> Tensor", _constrained)
inner(
    "_functional_sym_constrain_range_for_size(Scalar size, int? min, int? max, Tensor dep_token) -> Tensor",
    _constrained_size,
)


def _truth(which: str) -> Callable[..., Any]:
    def ask(self: Any) -> Any:
        if self._dtype is not bool_:
            raise RuntimeError("self.scalar_type() == at::kBool INTERNAL ASSERT FAILED")
        return getattr(self, which)()

    return ask


inner("_is_all_true(Tensor self) -> Tensor", _truth("all"), method=True)
inner("_is_any_true(Tensor self) -> Tensor", _truth("any"), method=True)
inner("_print(str s) -> ()", lambda s: print(s, file=sys.stdout))


# -- arithmetic ---------------------------------------------------------------------------------------------------
for _name in ("and", "or", "xor"):
    for _overload, _kind in (("Tensor", "Tensor"), ("Scalar", "Scalar")):
        inner(
            f"__{_name}__.{_overload}(Tensor self, {_kind} other) -> Tensor", same(f"bitwise_{_name}"), function=False
        )


def _extreme(which: str) -> Callable[..., None]:
    def fill(self: Any, values: Any, indices: Any, dim: int) -> None:
        found = call(which, self, dim)
        values.copy_(found[0])
        indices.copy_(found[1])

    return fill


for _name in ("max", "min"):
    inner(
        f"_cum{_name}_helper(Tensor self, Tensor(a!) values, Tensor(b!) indices, int dim) -> ()",
        _extreme(f"cum{_name}"),
    )
inner("_logcumsumexp(Tensor self, int dim) -> Tensor", same("logcumsumexp"))


def _euclidean(x1: Any, x2: Any) -> Any:
    """Distances by one matrix product: |a|^2 - 2ab + |b|^2."""
    left, right = (t.pow(2).sum((-1,), True) for t in (x1, x2))
    first = call("cat", (x1 * -2, left, left.new_ones(left._shape)), -1)
    second = call("cat", (x2, right.new_ones(right._shape), right), -1)
    return first.matmul(second.transpose(-2, -1)).clamp_min(0).sqrt()


inner("_euclidean_dist(Tensor x1, Tensor x2) -> Tensor", _euclidean)


def _powsum(self: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    seen = self if dtype is None else self.to(dtype)
    if not seen._dtype.is_inexact:
        raise NotImplementedError(f"\"powsum_cpu\" not implemented for '{seen._dtype.scalar_name}'")
    size = seen.abs()
    return (size**ord).sum(dim if dim else None, keepdim)


inner(
    "linalg__powsum(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> "
    "Tensor",
    _powsum,
    function=False,
)
inner(
    "_foreach_powsum.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]",
    lambda tensors, ord, dtype: tuple(_powsum(t, ord, None, False, dtype) for t in tensors),
)


def _trilinear(
    i1: Any, i2: Any, i3: Any, expand1: Ints, expand2: Ints, expand3: Ints, sumdim: Ints, unroll_dim: int
) -> Any:
    total = len(i1._shape) + len(expand1)
    if not 0 <= unroll_dim < total:
        raise RuntimeError(f"unroll_dim must be in [0,{total - 1}]")
    for dims in (expand1, expand2, expand3, sumdim):
        wrap_dims(dims, total)
    operands = []
    for t, expand in ((i1, expand1), (i2, expand2), (i3, expand3)):
        for d in range(total):
            if d in expand:
                t = t.unsqueeze(d)
        n = len(t._shape)
        if n < total:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {n})")
        operands.append(t)
    for d in sumdim:
        if d != unroll_dim and sum(d in expand for expand in (expand1, expand2, expand3)) == 1:
            # A sum of products of two, which is computed in one dtype.
            for t in (i2, i3):
                if t._dtype is not i1._dtype:
                    raise RuntimeError(
                        f"expected scalar type {i1._dtype.scalar_name} but found {t._dtype.scalar_name}"
                    )
    product = operands[0] * operands[1] * operands[2]
    return product.sum(tuple(sumdim)) if sumdim else product


inner(
    "_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, int[] sumdim, int "
    "unroll_dim=1) -> Tensor",
    _trilinear,
)


# -- places -------------------------------------------------------------------------------------------------------
inner("_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", same("index"))
inner(
    "_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
    same("index_put"),
)
inner(
    "_index_put_impl_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False, bool unsafe=False) "
    "-> "
    "Tensor(a!)",
    lambda self, indices, values, accumulate, unsafe: call("index_put_", self, indices, values, accumulate),
)


def _rowwise_pruned(weight: Any, mask: Any, compressed_indices_dtype: Any) -> Any:
    if mask.dim() != 1 or numel(mask) != weight._shape[0]:
        raise RuntimeError("Number of elements in 'mask' should be equivalent to the number of rows in 'weights'.")
    kept = mask.to(bool_)
    place = (kept.to(int64).cumsum(0) - 1).masked_fill(kept.logical_not(), -1)
    return weight[kept], place.to(compressed_indices_dtype)


inner(
    "_rowwise_prune(Tensor weight, Tensor mask, ScalarType compressed_indices_dtype) -> (Tensor, Tensor)",
    _rowwise_pruned,
)


def _to_csr(self: Any, size: int, out_int32: bool) -> Any:
    if self.dim() != 1:
        raise RuntimeError(f"Input is supposed to be a vector, but got {self.dim()} dimensional tensor.")
    ends = self.new_zeros((size + 1,), dtype=int64)
    counted = ends.index_add(0, self.to(int64) + 1, self.new_ones(self._shape, dtype=int64)).cumsum(0)
    return counted.to(int32) if out_int32 else counted


def _to_coo(crow_indices: Any, col_indices: Any, out_int32: bool, transpose: bool) -> Any:
    if crow_indices._dtype not in (int32, int64):
        raise NotImplementedError(
            f"\"convert_indices_from_csr_to_coo_cpu\" not implemented for '{crow_indices._dtype.scalar_name}'"
        )
    counts = crow_indices[1:] - crow_indices[:-1]
    rows = call("arange", 0, numel(counts), 1, int64, None, counts._device, None).repeat_interleave(counts.to(int64))
    pair = (col_indices.to(int64), rows) if transpose else (rows, col_indices.to(int64))
    found = call("stack", pair, 0)
    return found.to(int32) if out_int32 else found


inner("_convert_indices_from_coo_to_csr(Tensor self, int size, *, bool out_int32=False) -> Tensor", _to_csr)
inner(
    "_convert_indices_from_csr_to_coo(Tensor crow_indices, Tensor col_indices, *, bool out_int32=False, bool "
    "transpose=False) -> Tensor",
    _to_coo,
)
inner(
    "_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int "
    "mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int "
    "padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
    same("_embedding_bag"),
)


# -- linear algebra -----------------------------------------------------------------------------------------------
def _determinant(A: Any) -> Any:
    lu, pivots, _ = call("linalg_lu_factor_ex", A, True, False)  # a singular matrix has a determinant
    return call("linalg_det", A), lu, pivots


def _log_determinant(A: Any) -> Any:
    lu, pivots, _ = call("linalg_lu_factor_ex", A, True, False)
    sign, size = call("linalg_slogdet", A)
    return sign, size, lu, pivots


def _check_errors(info: Any, api_name: str, is_matrix: bool) -> None:
    registry.get("linalg_det")
    from .linalg import check_info  # its table is loaded now

    if info._dtype is not int32:
        raise RuntimeError("infos.scalar_type() == kInt INTERNAL ASSERT FAILED")
    text = next((words for part, words in _FAILURES.items() if part in api_name), "Unknown error code: {}.")
    check_info(api_name, info, text)


_CONVERGED = "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated "
# What LAPACK's number says, by a part of the function's name.
_FAILURES = {
    "inv": "The diagonal element {} is zero, the inversion could not be completed because the input matrix is "
    "singular.",
    "solve": "The solver failed because the input matrix is singular.",
    "cholesky": "The factorization could not be completed because the input is not positive-definite (the leading "
    "minor "
    "of order {} is not positive-definite).",
    "svd": _CONVERGED + "singular values (error code: {}).",
    "eig": _CONVERGED + "eigenvalues (error code: {}).",
    "syevd": _CONVERGED + "eigenvalues (error code: {}).",
    "lstsq": "The least squares solution could not be computed because the input matrix does not have full rank (error "
    "code: {}).",
    "lu_factor": "U[{0},{0}] is zero and using it on lu_solve would result in a division by zero. If you still want to "
    "perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)",
}


inner("_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)", _determinant)
inner("_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)", _log_determinant)
inner("_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()", _check_errors)
inner("_linalg_eigvals(Tensor self) -> Tensor", same("linalg_eigvals"), function=False)
