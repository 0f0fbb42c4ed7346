"""What `out=` must be, by operator, where that is more than a tensor of a dtype the result can be cast to.

A row may say so itself (`out=Target(...)`). Here stand the answers that several operators share, which follow the
history of PyTorch's kernels and not the families, and those of rows that are loaded with the package: this table is
read when an `out=` is first given.
Invariant: the words of a refusal are PyTorch's, and `find` has an answer for every operator.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._backends.common.overlap import ADDS, ALONE, APART, DISTINCT, FINDS, PICKS
from .._dispatch.op import Op
from .._dtype import dtype
from .._tensor_base import TensorBase, numel
from .rules.out import AS_IS, CAST, TURNED, Target
from .rules.shape import joined_dtype
from .table import Out

EXACT = Target("same", "Expected out tensor to have dtype {c_want}, but got {c_got} instead")
MATRIX = Target("same", EXACT.text, order="column")
UNARY = Target("same", "Found dtype {got} but expected {want}")
DECIDES = Target(decides=True)
SCALAR_TYPE = Target("same", "expected scalar_type {want} but found {got}")
DOT = Target("same", "result dtype {got} does not match input dtype {want}")
MV = Target("same", "addmv input tensors must have the same dtype, but got {got}, {want}, and {want}")
MATRIX_NORM = Target("same", "linalg.matrix_norm expected out tensor dtype {want} but got: {got}")
TENSORDOT = Target("same", "tensordot: Expected the output tensor to have dtype {want}, but got an output tensor with "
                   "dtype {got}")
JOINED = Target("cast", "torch.cat(): input types can't be cast to the desired output type {got}", error=TypeError)
PARTS = Target("same", "Expected object of scalar type {want} but got scalar type {got} for argument 'out'")
NANSUM_DTYPE = Target("same", "nansum: provided dtype must match dtype of result. Got {got} and {want}.")
NANSUM = Target("float", "\"nansum_cpu\" not implemented for '{got}'", error=NotImplementedError)
# What PyTorch says of a check that got no words of its own.
_UNSAID = ("to be true, but got false.  (Could this error message be improved?  If so, please report an enhancement "
           "request to PyTorch.)")
EXTREME = Target("cast", "Expected canCast( typeMetaToScalarType(self.dtype()), typeMetaToScalarType(out.dtype())) "
                 + _UNSAID)
MATCHING = Target("same", "Expected the dtype for input and out to match, but got {want} for input's dtype and {got} "
                  "for out's dtype.")
QUANTILE = Target("same", "quantile() out tensor must be same dtype as the input tensor")
CLAMPED = Target("cast", "result type {want} can't be cast to the desired output type {c_got}")
DENSE = Target("same", "expected scalar type {want} but found {got}")


def _dtype_of_cat(tensors: tuple[Any, ...], dim: int) -> dtype | None:
    """Looked at after the dimension and before the sizes."""
    ndim = 0
    for t in tensors:
        if not isinstance(t, TensorBase) or not t._shape:
            return None
        if ndim == 0 and t._shape != (0,):
            ndim = len(t._shape)
    return joined_dtype(tensors) if -ndim <= dim < ndim else None


CAT = Target("cast", JOINED.text, error=TypeError, early=_dtype_of_cat)


def safely(where: str, what: str = "result", order: str = "") -> Target:
    """Linear algebra's words for a dtype that the result cannot be cast to."""
    return Target("cast", f"{where}: Expected {what} to be safely castable from {{want}} dtype, but got {what} with "
                          "dtype {got}", order=order)


def boolean(name: str) -> Target:
    return Target("same", f"{name} does not support non-boolean outputs.")


def _matmul(self: Any, other: Any) -> Target:
    ranks = (len(self._shape), len(other._shape))
    return DOT if ranks == (1, 1) else MV if ranks == (2, 1) else EXACT


def _norm(self: Any, p: Any, *rest: Any) -> Target:
    return MATRIX_NORM if p == "nuc" else EXACT


def _typed(*args: Any) -> Target:
    # A dtype asked for is also the target's; where none is, the target's is computed in.
    return DECIDES if args[-1] is None else EXACT


def _nansum(*args: Any) -> Target:
    return NANSUM if args[-1] is None else NANSUM_DTYPE


def _mean(self: Any, dim: Any, keepdim: bool, dtype: Any) -> Target:
    if dtype is not None:
        return EXACT
    # Over all dimensions one kernel serves, over some a sum and a division, whose words these are.
    if dim is None or len(self._shape) == 0:
        return Target("cast", "mean.dtype_out(): input types can't be cast to the desired output type {got}")
    return Target("cast", "result type Float can't be cast to the desired output type {got}")


def _clamp(self: Any, *bounds: Any) -> Target:
    # Between numbers it has one operand; between tensors it is pointwise like others.
    return CAST if any(isinstance(b, TensorBase) for b in bounds) else UNARY


def _diff(self: Any, n: int, *rest: Any) -> Target:
    return SCALAR_TYPE if n == 0 else CAST


def _inner(self: Any, other: Any) -> Target:
    return TENSORDOT if self._shape and other._shape else CAST


def _inverse_fft(name: str) -> Callable[..., Target]:
    """Of real numbers it is a forward transform, and its conjugate is written by an operator of one operand."""
    either = Target("complex", f"{name} expects a complex output tensor, but got {{got}}")
    real = Target("same", either.text, on_complex=UNARY.text, order="result")
    return lambda self, *rest: either if self._dtype.is_complex else real


def _bernoulli(self: Any, *rest: Any) -> Target:
    # The kernel refuses, and is not asked where nothing is drawn.
    return Target("real" if numel(self) else "any", "\"bernoulli_tensor_cpu_self_\" not implemented for '{got}'",
                  error=NotImplementedError, quiet=True)


def _mode(self: Any, dim: int, keepdim: bool) -> tuple[Target, ...]:
    # The reduced dimension is put back before the targets are resized, and taken away again.
    shown = AS_IS if keepdim else dim % max(len(self._shape), 1)
    return tuple(Target("same", f"expected scalar type '{{want}}' but got '{{got}}' for {what} output", shown=shown,
                        quiet=not self._shape) for what in ("values", "indices"))


def _scan_in_place(name: str) -> Callable[..., Target]:
    given = Target("same", "Bad in-place call: input tensor dtype {c_got} and output tensor dtype {c_want} should "
                   "match")
    bools = Target("cast", f"\"{name}_out_cpu\" not implemented for 'Bool'", error=NotImplementedError)
    return lambda self, dim, dtype: bools if dtype is None else given


def _clamp_in_place(self: Any, *bounds: Any) -> Target:
    return CAST if any(isinstance(b, TensorBase) for b in bounds) else CLAMPED


# In-place forms that say something else of a dtype which their tensor cannot have than "result type ... can't be cast".
IN_PLACE: dict[str, Out] = {
    "cumsum": _scan_in_place("cumsum"),
    "cumprod": _scan_in_place("cumprod"),
    "ldexp": Target("cast", "ldexp can't be cast to the desired output type {got}"),
    "mvlgamma": Target("cast", "mvlgamma: result type {got} can't be cast to the desired output type {want}"),
    **dict.fromkeys("clamp clamp_min clamp_max clip".split(), _clamp_in_place),
}
TABLE: dict[str, Out] = {
    **dict.fromkeys(
        """addmm addmv alias_copy argmax argmin as_strided_copy avg_pool1d avg_pool2d avg_pool3d baddbmm bmm det
        diagonal_copy diag_embed expand_copy index_add index_copy index_reduce isin linalg_cholesky_ex linalg_det
        linalg_eigvalsh linalg_inv_ex linalg_ldl_factor_ex linalg_ldl_solve linalg_lu linalg_lu_factor_ex
        linalg_lu_solve linalg_qr linalg_slogdet
        linalg_svdvals linalg_vector_norm linear log_softmax lu_unpack max.dim min.dim mm
        msort permute_copy renorm scatter scatter_add scatter_reduce slice_scatter slogdet softmax sort
        special_log_softmax special_softmax squeeze_copy t_copy topk transpose_copy tril triu unfold_copy
        unsqueeze_copy view_copy _softmax _log_softmax aminmax""".split(), EXACT),
    **dict.fromkeys(
        """abs bitwise_not ceil _conj_physical fix floor frac gelu hardshrink neg round sgn sign softplus softshrink
        trunc""".split(), UNARY),
    **dict.fromkeys("sum prod cumsum cumprod".split(), _typed),
    **dict.fromkeys("cummax cummin".split(), SCALAR_TYPE),
    "logcumsumexp": Target(SCALAR_TYPE.accepts, SCALAR_TYPE.text, early=lambda self, dim: self._dtype),
    **dict.fromkeys("dot vdot".split(), DOT),
    **dict.fromkeys("inverse linalg_inv linalg_cholesky lu_solve qr triangular_solve".split(), MATRIX),
    **dict.fromkeys("linalg_lu_factor linalg_ldl_factor".split(), (MATRIX, EXACT)),
    "linalg_svd": (MATRIX, EXACT, MATRIX),
    "linalg_eigh": (Target("same", EXACT.text, last=True), MATRIX),
    "svd": (MATRIX, EXACT, Target("same", EXACT.text, shown=TURNED)),
    **dict.fromkeys("cross linalg_cross gather take_along_dim".split(), EXACT),
    "linalg_solve": MATRIX,
    "linalg_solve_ex": (MATRIX, EXACT),
    "mv": MV,
    "matmul": _matmul,
    "diff": _diff,
    "inner": _inner,
    "tensordot": TENSORDOT,
    "addbmm": Target("same", "self and mat2 must have the same dtype, but got {got} and {want}", quiet=True),
    "cat": CAT,
    **dict.fromkeys("stack _chunk_cat".split(), JOINED),
    **dict.fromkeys("complex polar".split(), PARTS),
    "multinomial": Target("same", "multinomial expects Long tensor out, got: {got}", quiet=True),
    "bernoulli": _bernoulli,
    "normal": Target("inexact", "\"normal_kernel_cpu\" not implemented for '{got}'", error=NotImplementedError),
    **dict.fromkeys("nansum nanmean".split(), _nansum),
    **dict.fromkeys("max min".split(), EXTREME),
    **dict.fromkeys("max.other min.other".split(), CAST),
    **dict.fromkeys("amax amin".split(), MATCHING),
    **dict.fromkeys("quantile nanquantile".split(), QUANTILE),
    "mean": _mean,
    **dict.fromkeys("clamp clamp_min clamp_max clip".split(), _clamp),
    "all": Target("byte", "all only supports bool tensor for result, got: {got}"),
    "any": Target("byte", "any only supports bool tensor for result, got: {got}"),
    **{name: boolean(name) for name in ("isneginf", "isposinf", "signbit")},
    "logsumexp": Target("inexact", "logsumexp(): Expected floating point type for result tensor, but got: {got}"),
    "norm": _norm,
    "linalg_norm": Target("same", "linalg.norm expected out tensor dtype {want} but got: {got}"),
    "linalg_matrix_norm": MATRIX_NORM,
    "linalg_vecdot": Target("same", "linalg.vecdot: Expected out of dtype{want} but found {got}"),
    "linalg_multi_dot": Target("same", "multi_dot(): expected out tensor to have dtype {c_want} but got {c_got}"),
    **dict.fromkeys("linalg_solve_triangular native_batch_norm _native_batch_norm_legit".split(), DENSE),
    "linalg_cond": safely("linalg.cond"),
    "linalg_pinv": safely("linalg.pinv"),
    "linalg_matrix_power": safely("matrix_power"),
    "matrix_power": safely("matrix_power"),
    "linalg_tensorinv": safely("tensorinv"),
    "linalg_tensorsolve": safely("tensorsolve"),
    "cholesky": safely("cholesky"),
    "cholesky_inverse": safely("cholesky_inverse", order="full"),
    "cholesky_solve": safely("cholesky_solve", order="row"),
    "linalg_householder_product": safely("torch.linalg.householder_product", order="full"),
    "ormqr": Target("same", "torch.ormqr: Expected input and result to have the same dtype, but input has dtype{want} "
                    "and result has dtype {got}", order="full"),
    "linalg_eigvals": safely("torch.linalg.eigvals", "eigenvalues"),
    "linalg_eig": (safely("torch.linalg.eig", "eigenvalues"), safely("torch.linalg.eig", "eigenvectors", "full")),
    "geqrf": (safely("torch.geqrf", "a", "full"), safely("torch.geqrf", "tau")),
    # PyTorch names the residuals after the solution.
    "linalg_lstsq": (safely("torch.linalg.lstsq", "solution", "full"), safely("torch.linalg.lstsq", "solution"),
                     safely("torch.linalg.lstsq", "rank"), safely("torch.linalg.lstsq", "singular_values")),
    **{f"fft_{name}": Target("complex", f"{name} expects a complex output tensor, but got {{got}}")
       for name in ("fft", "rfft")},
    "fft_ifft": _inverse_fft("ifft"),
    "fft_ihfft": _inverse_fft("ihfft"),
    **{f"fft_{name}{rank}": Target("complex", f"{words} expects a complex output tensor, but got {{got}}")
       for name, words in (("fft", "fftn"), ("ifft", "fftn"), ("rfft", "rfftn")) for rank in ("2", "n")},
    **{f"fft_{name}": Target("float", f"{name} expects a floating point output tensor, but got {{got}}")
       for name in ("hfft", "irfft")},
    **{f"fft_{name}{rank}": Target("float", f"{name}n expects a floating point output tensor, but got {{got}}")
       for name in ("hfft", "irfft") for rank in ("2", "n")},
    "float_power": Target("same", "the output given to float_power has dtype {got} but the operation's result requires "
                          "dtype {want}"),
    "index_select": Target("same", "index_select(): self and result must have the same scalar type",
                           overlap_first=True),
    "masked_select": Target("same", "masked_select(): self and result must have the same scalar type",
                            overlap_first=True),
    "kthvalue": (Target("same", "output values must be of same type as input"),
                 Target("same", "output indices must be of scalar type Long")),
    **dict.fromkeys(("median.dim", "nanmedian.dim"), (
        Target("same", "Expected tensor for 'values' to have the same type as tensor for argument #2 'self'; but type "
               "{t_got} does not equal {t_want} (while checking arguments for median)"),
        Target("same", "Expected tensor for argument #1 'indices' to have scalar type Long; but got {t_got} instead "
               "(while checking arguments for median)"))),
    "mode": _mode,
    "nan_to_num": Target("same", "nan_to_num: dtype of out: {got} should be same as input: {want}"),
    "narrow_copy": Target("same", "Expected self.dtype() == output.dtype() " + _UNSAID, quiet=True),
    **{name: Target("same", f"{name}: Expected out tensor to have scalar type {{want}} but got scalar type{{got}}")
       for name in ("nonzero", "nonzero_static")},
    "take": Target("same", "take(): self and out expected to have the same dtype, but got self.dtype = {want} and "
                   "out.dtype = {got}"),
    "where": Target("same", "Expected out type to be {want} but got {got}"),
}

# Which memory an `out=` may share with the inputs, where that is not the usual rule; of several results, and of what is
# written in terms of others, the usual one is ALONE.
MEMORY: dict[str, int] = {
    **dict.fromkeys(
        """all amax amin any argmax argmin bmm bucketize cholesky_solve count_nonzero diag histc
        linalg_vector_norm logsumexp mean mm mv nansum prod searchsorted std sum tril triu var""".split(), ALONE),
    **dict.fromkeys(
        """cat cross diff index_select kthvalue linalg_cross masked_select nonzero stack take take_along_dim topk
        vstack""".split(), APART),
    **dict.fromkeys("index_add index_copy index_reduce scatter scatter_add scatter_reduce".split(), DISTINCT),
    **dict.fromkeys("addbmm addmm addmv baddbmm".split(), ADDS),
    **dict.fromkeys("aminmax max.dim median.dim min.dim mode nanmedian.dim".split(), FINDS),
    "gather": PICKS,
    **dict.fromkeys("ger kron linalg_solve msort outer sort".split(), 0),
}


def memory(op: Op) -> int:
    """The rule of `_backends.common.overlap` for the `out=` of this operator."""
    usual = 0 if op.rule is not None and len(op.schema.returns) == 1 else ALONE
    return MEMORY.get(op.name, MEMORY.get(op.title(), usual))


def find(op: Op) -> tuple[Target, ...] | Callable[..., tuple[Target, ...]]:
    """What the `out=` tensors of this operator must be, one for each result; by overload, or else by name."""
    said = None if op.row is None else op.row.out_target
    return _of(op, said or TABLE.get(op.name) or TABLE.get(op.title(), CAST))


def find_in_place(op: Op) -> tuple[Target, ...] | Callable[..., tuple[Target, ...]]:
    """What the tensor must be that this operator's in-place form writes to."""
    return _of(op, IN_PLACE.get(op.name, CAST))


def _of(op: Op, entry: Out) -> tuple[Target, ...] | Callable[..., tuple[Target, ...]]:
    if isinstance(entry, tuple):
        return entry
    if isinstance(entry, Target):
        return (entry,) * len(op.schema.returns)
    choose = entry

    def chosen(*args: Any) -> tuple[Target, ...]:
        found = choose(*args)
        return found if isinstance(found, tuple) else (found,) * len(op.schema.returns)

    return chosen
