"""Matrix products with sparse tensors, and their derivatives.

Invariant: sparse times dense is dense; sparse times sparse has the layout of the first. The gradient of a sparse factor
of `torch.sparse.mm` has its pattern; that of `mm` is dense, as PyTorch's.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .. import _native
from .._dispatch import registry
from .._dispatch.binding import need_tensor
from .._dispatch.keys import BACKENDS, CPU, MEMORY
from .._dispatch.op import Op
from .._layout import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from .._ops.rules.base import size_at
from .._tensor_base import is_contiguous, make
from .coalesce import coalesced
from .compressed import between, coordinates, offsets, to_coo
from .compressed import to_dense as dense_of
from .mask import at_indices
from .parts import (
    NAMES,
    Parts,
    blocksize,
    compressed,
    coo,
    is_compressed,
    is_coo,
    is_sparse,
    layout_of,
    parts,
    with_values,
)
from .refusals import refused
from .rows import SPARSE_MASK
from .table import row, serves


def _shown(t: Any) -> str:
    return "x".join(map(str, t._shape))


def _matrix(t: Any) -> tuple[Any, Any, Any]:
    """Rows, columns and values of a two-dimensional sparse tensor, one entry each."""
    if is_compressed(t) and blocksize(t) is not None:
        t = to_coo(t)
    if is_coo(t):
        p = parts(t)
        return p.plain[0], p.plain[1], p.values
    r, c = coordinates(t)
    return r.to(torch.int64), c.to(torch.int64), parts(t).values


def check_2d(name: str, self: Any, mat2: Any) -> None:
    for place, t in (("self", self), ("mat2", mat2)):
        if t.dim() != 2:
            raise RuntimeError(f"{name}: Expected dim of {place} to be 2, got {t.dim()}")
        if is_coo(t) and parts(t).dense_dim:
            raise RuntimeError(f"addmm: matrices expected, got {parts(t).sparse_dim}D tensor")
    if self._shape[1] != mat2._shape[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({_shown(self)} and {_shown(mat2)})")
    if self._dtype is not mat2._dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {self._dtype.scalar_name} != "
            f"{mat2._dtype.scalar_name}"
        )


_PRODUCT: Any = _native.sparse_product
_MM: Op = registry.get("mm")
_SOFT_MARGIN: Op = registry.get("soft_margin_loss")
_MV: Op = registry.get("mv")
_F32, _F64 = torch.float32, torch.float64
_CPU, _MEMORY = int(CPU), int(MEMORY)
_MKL = ("float32", "float64", "complex64", "complex128")


def _check_dtype(name: str, t: Any) -> None:
    """What PyTorch leaves to MKL knows four dtypes."""
    if t._dtype.name not in _MKL:
        raise NotImplementedError(f"\"{name}\" not implemented for '{t._dtype.scalar_name}'")


def times_dense(sparse: Any, dense: Any, name: str = "addmm_out_sparse_csr_impl_mkl") -> Any:
    """A sparse matrix times a dense one."""
    if is_compressed(sparse):
        _check_dtype(name, sparse)
        block = blocksize(sparse)
        if block is not None and block[0] != block[1]:
            raise RuntimeError("MKL Sparse doesn't support matrices with non-square blocks.")
    elif sparse._dtype is torch.bool:
        raise NotImplementedError("\"addmm_sparse_dense\" not implemented for 'Bool'")
    if sparse._shape[0] == 0 or dense._shape[1] == 0 or parts(sparse).nnz == 0:
        return dense.new_zeros((sparse._shape[0], dense._shape[1]))
    fast = _native_product(sparse, dense)
    if fast is not None:
        return fast
    out = dense.new_zeros((sparse._shape[0], dense._shape[1]))
    rows, columns, values = _matrix(sparse)
    return out.index_add_(0, rows, values.unsqueeze(1) * dense.index_select(0, columns))


def _native_product(sparse: Any, dense: Any) -> Any:
    """The same by the CPU's kernel, which wants rows one after the other; None where it does not serve."""
    if dense._device.type != "cpu" or dense._dtype.name not in ("float32", "float64"):
        return None
    p = parts(sparse)
    if p.layout is sparse_csr:
        outer, inner, values = p.compressed, p.plain, p.values
        if outer._dtype is not inner._dtype or outer._dtype not in (torch.int32, torch.int64):
            return None
    else:
        rows, inner, values = _matrix(sparse)
        _check_inside(rows, inner, sparse._shape)
        if not (is_coo(sparse) and p.coalesced):
            rows, order = rows.sort(stable=True)
            inner, values = inner[order], values[order]
        outer = torch.searchsorted(rows.contiguous(), torch.arange(sparse._shape[0] + 1))
    whole = [t.contiguous() for t in (outer, inner, values, dense)]
    operands = [x for t in whole for x in (t._storage, int(t._offset), t._stride, t._dtype.code)]
    rows_, columns = int(sparse._shape[0]), int(dense._shape[1])
    code = dense._dtype.code
    storage = _PRODUCT(*operands, None, 0, (), code, rows_, int(dense._shape[0]), columns, int(values._shape[0]))
    return make(storage, 0, (rows_, columns), (columns, 1), dense._dtype, dense._device, dense._keys & BACKENDS)


def _check_inside(rows: Any, columns: Any, shape: Any) -> None:
    """The indices of a COO tensor are memory that anybody may have written to since it was made."""
    for name, index, n in (("column", columns, shape[1]), ("row", rows, shape[0])):
        low, high = int(index.min()), int(index.max())
        if low < 0 or high >= n:
            raise RuntimeError(f"addmm: index out of {name} bound: {low if low < 0 else high} not between 1 and {n}")


def _usual(sparse: Any, dense: Any) -> Any:
    """A CSR matrix times a dense one of floats, which lie as the CPU's kernel reads them; None for any other call."""
    p = sparse._storage
    dt = dense._dtype
    if (
        type(p) is not Parts
        or p.layout is not sparse_csr
        or dense._keys & _MEMORY != _CPU
        or (dt is not _F32 and dt is not _F64)
    ):
        return None
    outer, inner, values = p.compressed, p.plain, p.values
    shape, other = sparse._shape, dense._shape
    if (
        len(shape) != 2
        or len(other) != 2
        or shape[1] != other[0]
        or values._dtype is not dt
        or len(values._shape) != 1
        or not values._shape[0]
        or outer._dtype is not inner._dtype
        or not (is_contiguous(outer) and is_contiguous(inner) and is_contiguous(values) and is_contiguous(dense))
    ):
        return None
    code, index = dt.code, outer._dtype.code
    storage = _PRODUCT(
        outer._storage, int(outer._offset), outer._stride, index,
        inner._storage, int(inner._offset), inner._stride, index,
        values._storage, int(values._offset), values._stride, code,
        dense._storage, int(dense._offset), dense._stride, code,
        None, 0, (), code,
        shape[0], other[0], other[1], values._shape[0],
    )  # fmt: skip
    return make(storage, 0, (shape[0], other[1]), (other[1], 1), dt, dense._device, _CPU)


def sparse_times_sparse(a: Any, b: Any) -> Any:
    """COO of the product of two sparse matrices: every pair of entries that meet, then their sums."""
    x, y = (coalesced(t if is_coo(t) else to_coo(t)) for t in (a, b))
    r, c, v = _matrix(x)
    k, n, w = _matrix(y)
    shape = (a._shape[0], b._shape[1])
    begins = offsets(k, int(b._shape[0]))
    counts = begins[c + 1] - begins[c]
    total = int(counts.sum())
    mine = torch.repeat_interleave(torch.arange(r._shape[0], device=r.device), counts, output_size=total)
    first = torch.cumsum(counts, 0) - counts
    yours = begins[c][mine] + (torch.arange(total, device=r.device) - first[mine])
    made = coo(torch.stack([r[mine], n[yours]]), v[mine] * w[yours], shape)
    return coalesced(made)


# -- the rows -----------------------------------------------------------------------------------------------------
def _mat1_grad(g: Any, mat2: Any) -> Any:
    return g.mm(mat2.t().conj())


def _mat2_grad(g: Any, self: Any) -> Any:
    return self.t().conj().mm(g)


@serves("mm", grad={"self": _mat1_grad, "mat2": _mat2_grad})
def mm(self: Any, mat2: Any) -> Any:
    fast = _usual(self, mat2)
    if fast is not None:
        return fast
    check_2d("mm", self, mat2)
    _check_blocks(self, mat2)
    if not is_sparse(mat2):
        return times_dense(self, mat2)
    if not is_sparse(self):
        found = times_dense(transposed(mat2), self.t()).t()
        # Of COO matrices PyTorch's result lies by columns, of others by rows.
        return found if is_coo(mat2) else found.contiguous()
    return both_sparse(self, mat2, layout_of(self))


def _check_blocks(mat1: Any, mat2: Any) -> None:
    """Blocks by column stand on the right of a dense matrix only, blocks by row on its left."""
    for t, name, other in ((mat1, sparse_bsc, mat2), (mat2, sparse_bsr, mat1)):
        if layout_of(t) is name and not is_sparse(other):
            raise RuntimeError(
                f"addmm: computation on CPU is not implemented for Strided + {NAMES[layout_of(mat1)]} @ "
                f"{NAMES[layout_of(mat2)]}"
            )


def both_sparse(self: Any, mat2: Any, result: Any) -> Any:
    """COO for two COO matrices, CSR for two compressed ones."""
    if is_coo(self) != is_coo(mat2) or not (blocksize_free(self) and blocksize_free(mat2)):
        raise RuntimeError(
            f"addmm: computation on CPU is not implemented for {NAMES[result]} + {NAMES[layout_of(self)]} @ "
            f"{NAMES[layout_of(mat2)]}"
        )
    _check_dtype("sparse_matmul" if is_coo(self) else "addmm_out_sparse_csr_impl_mkl_sparse", self)
    made = sparse_times_sparse(self, mat2)
    return made if is_coo(self) else between(made, sparse_csr, None, "mm")


def transposed(t: Any) -> Any:
    """A sparse matrix with its dimensions exchanged."""
    from .indexing import transpose

    return transpose(t, 0, 1)


def _scaled(t: Any, factor: Any) -> Any:
    return t if factor == 1 else t * factor


def _check_beta(beta: Any, alpha: Any, dtype: Any) -> None:
    for name, x in (("beta", beta), ("alpha", alpha)):
        if isinstance(x, float) and not dtype.is_inexact:
            raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")


@serves(
    "addmm",
    grad={
        "self": lambda g, beta: _scaled(g, beta),
        "mat1": lambda g, mat2, alpha: _scaled(g.mm(mat2.t().conj()), alpha),
        "mat2": lambda g, mat1, alpha: _scaled(mat1.t().conj().mm(g), alpha),
    },
)
def addmm(self: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any) -> Any:
    check_2d("addmm", mat1, mat2)
    _check_beta(beta, alpha, mat1._dtype)
    if not is_sparse(self):
        self.expand((mat1._shape[0], mat2._shape[1]))
    if is_coo(self) or is_coo(mat1) or is_coo(mat2):
        _check_addmm_coo(self, mat1, mat2)
    elif is_sparse(self) and not (is_sparse(mat1) and is_sparse(mat2)):
        raise RuntimeError(
            f"addmm: computation on CPU is not implemented for {NAMES[layout_of(self)]} + {NAMES[layout_of(mat1)]} @ "
            f"{NAMES[layout_of(mat2)]}"
        )
    shape = (mat1._shape[0], mat2._shape[1])
    two = is_sparse(mat1) and is_sparse(mat2)
    product = both_sparse(mat1, mat2, layout_of(self)) if two else mm(mat1, mat2)
    if not is_sparse(self):
        if is_sparse(product):
            product = dense_of(product)
        expanded = self.expand(shape)
        product = _scaled(product, alpha)
        return product if beta == 0 else product + _scaled(expanded, beta)
    if layout_of(self) is sparse_csc and all(layout_of(m) is sparse_csc for m in (mat1, mat2)):
        return transposed(
            _scaled(transposed(self), beta) + _scaled(transposed(between(product, sparse_csc, None, "addmm")), alpha)
        )
    return _scaled(self, beta) + _scaled(product, alpha)


def _check_addmm_coo(self: Any, mat1: Any, mat2: Any) -> None:
    if is_sparse(self) and not (is_compressed(self) or is_compressed(mat1) or is_compressed(mat2)):
        raise RuntimeError(
            f"addmm_sparse_dense: expected strided result tensor, got tensor with layout {NAMES[layout_of(self)]}"
        )
    if not is_coo(mat1) or is_sparse(mat2):
        raise RuntimeError(
            "addmm_sparse_dense: expected either 'mat1' to have sparse layout and 'mat2' to have strided layout, got "
            f"'mat1' with layout {NAMES[layout_of(mat1)]} and 'mat2' with layout {NAMES[layout_of(mat2)]}"
        )


@serves("addmm_")
def addmm_(self: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any) -> Any:
    made = addmm(self, mat1, mat2, beta, alpha)
    from .parts import replace

    return replace(self, made) if is_sparse(self) else self.copy_(made)


def _mv_grad(g: Any, vec: Any) -> Any:
    return g.ger(vec.conj()) if not is_sparse(vec) else g.unsqueeze(1) * vec.conj()


@serves("mv", grad={"self": _mv_grad, "vec": lambda g, self: self.t().conj().mv(g)})
def mv(self: Any, vec: Any) -> Any:
    if self.dim() != 2:
        raise RuntimeError(f"mv: two-dim tensor 'self' expected, but got: {self.dim()} dimensional tensor")
    if vec.dim() != 1:
        raise RuntimeError(f"mv: one-dim tensor 'vec' expected, but got: {vec.dim()} dimensional tensor")
    if self._shape[1] != vec._shape[0]:
        raise RuntimeError(f"mv: expected self.size(-1) == vec.size(-1), but got {self._shape[1]} and {vec._shape[0]}")
    if is_sparse(vec):
        if is_sparse(self):
            raise refused("mv", [vec])
        return _MV.call((self, dense_of(vec)))
    if parts(self).dense_dim:
        raise RuntimeError("addmm: matrices expected, got 1D tensor")
    if layout_of(self) is sparse_bsc:
        raise RuntimeError("torch.addmv: operation not supported for mat with SparseBsc layout")
    return times_dense(self, vec.unsqueeze(1), "addmv_out_sparse_csr_impl_mkl").squeeze(1)


@serves("addmv")
def addmv(self: Any, mat: Any, vec: Any, beta: Any, alpha: Any) -> Any:
    if not is_compressed(mat):
        raise refused("addmv", [mat])
    product = _scaled(mv(mat, vec), alpha)
    return product.clone() if beta == 0 else product + _scaled(self.expand(product._shape), beta)


@serves("addmv_")
def addmv_(self: Any, mat: Any, vec: Any, beta: Any, alpha: Any) -> Any:
    if is_sparse(self):
        raise refused("addmv_", [self, mat, vec])
    return self.copy_(addmv(self, mat, vec, beta, alpha))


@serves(
    "bmm",
    grad={
        "self": lambda g, mat2: g.bmm(mat2.transpose(1, 2).conj()),
        "mat2": lambda g, self: self.transpose(1, 2).conj().bmm(g),
    },
)
def bmm(self: Any, mat2: Any) -> Any:
    if is_compressed(self) or is_compressed(mat2):
        raise refused("bmm", [self, mat2])
    if is_sparse(mat2):
        raise RuntimeError("bmm_sparse: Tensor 'mat2' must be dense")
    if self.dim() != 3 or mat2.dim() != 3:
        raise RuntimeError(f"bmm_sparse: Tensor 'self' must have 3 dims, but has {self.dim()} dims")
    if self._shape[0] != mat2._shape[0]:
        raise RuntimeError("bmm_sparse: 'self.size(0)' and 'mat2.size(0)' must match")
    if self._shape[2] != mat2._shape[1]:
        raise RuntimeError("bmm_sparse: 'self.size(2)' and 'mat2.size(1)' must match")
    p = parts(self)
    if p.dense_dim:
        raise RuntimeError(f"bmm_sparse: expected no dense dimensions, got {p.dense_dim}")
    count, rows, inner = (int(n) for n in self._shape)
    flat = coo(
        torch.stack([p.plain[0] * rows + p.plain[1], p.plain[0] * inner + p.plain[2]]),
        p.values,
        (count * rows, count * inner),
    )
    made = times_dense(flat, mat2.reshape(count * inner, mat2._shape[2]))
    return made.view(count, rows, mat2._shape[2])


@serves("matmul", above=True)
def matmul(self: Any, other: Any) -> Any:
    dims = (len(self._shape), len(other._shape))
    if dims == (2, 2):
        return _MM.call((self, other))
    if dims == (2, 1):
        return torch.mv(self, other)
    if dims == (1, 2) and not is_sparse(self):
        return torch.mv(other.t(), self)
    if dims == (3, 3):
        if is_coo(self) or is_coo(other):
            raise RuntimeError(
                "expand is unsupported for Sparse tensors. 'matmul' multiplies no batches of layout torch.sparse_coo; "
                "torch.bmm does."
            )
        return torch.bmm(self, other)
    raise refused("matmul", [t for t in (self, other) if is_sparse(t)])


@serves("linear", above=True)
def linear(input: Any, weight: Any, bias: Any) -> Any:
    """A layer with a sparse weight or input: rows of the input times the weight's transpose."""
    if input.dim() == 1 and is_coo(input) and weight.dim() == 2 and not is_sparse(weight) and not is_sparse(bias):
        single = torch.mv(weight, input)
        return single if bias is None else single + bias
    if weight.dim() != 2 or not input.dim() or is_sparse(bias) or (is_sparse(input) and input.dim() != 2):
        raise refused("linear", [t for t in (input, weight, bias) if is_sparse(t)])
    if bias is not None and input.dim() == 2 and bias.dim() == 1:
        return torch.addmm(bias, input, weight.t())
    rows = input if input.dim() == 2 else input.reshape((-1, input._shape[-1]))
    found = _MM.call((rows, weight.t()))
    if bias is not None:
        # A matrix and a row have a dense sum.
        found = (found if not is_sparse(found) or is_coo(found) else found.to_dense()) + bias
    return found if input.dim() == 2 else found.reshape((*input._shape[:-1], found._shape[-1]))


@serves("soft_margin_loss", above=True)
def soft_margin_loss(self: Any, target: Any, reduction: int) -> Any:
    """The loss of dense scores: the product with sparse signs is no longer sparse after the first step."""
    if is_sparse(self) or not is_coo(target):
        raise refused("soft_margin_loss", [t for t in (self, target) if is_sparse(t)])
    return _SOFT_MARGIN.call((self, target.to_dense(), reduction))


@serves("addr", above=True)
def addr(self: Any, vec1: Any, vec2: Any, beta: Any, alpha: Any) -> Any:
    """To a compressed matrix a product of two vectors is added, which leaves nothing sparse."""
    if is_sparse(vec1) or is_sparse(vec2) or layout_of(self) not in (sparse_csr, sparse_csc):
        raise refused("addr", [t for t in (self, vec1, vec2) if is_sparse(t)])
    return torch.addr(self.to_dense(), vec1, vec2, beta=beta, alpha=alpha)


# -- products of the module torch.sparse --------------------------------------------------------------------------
def _masked_mat1(g: Any, mat1: Any, mat2: Any, alpha: Any) -> Any:
    """The gradient of a sparse factor where it has entries."""
    if not is_sparse(mat1):
        return _scaled(g.mm(mat2.t().conj()), alpha)
    mask = coalesced(mat1) if is_coo(mat1) else mat1
    if is_sparse(mat2) or is_sparse(g):
        return SPARSE_MASK.call((_scaled(g.mm(mat2.t().conj()), alpha), mask))
    if not g.requires_grad and not mat2.requires_grad and blocksize_free(mask):
        return sampled(mask, g, mat2.t().conj(), alpha)
    return SPARSE_MASK.call((_scaled(g.mm(mat2.t().conj()), alpha), mask))


def blocksize_free(t: Any) -> bool:
    return is_coo(t) or blocksize(t) is None


def sampled(mask: Any, mat1: Any, mat2: Any, alpha: Any) -> Any:
    """alpha * (mat1 @ mat2) where `mask` has entries, and nothing of the rest."""
    if mask.dim() > 2:
        return _sampled_batches(mask, mat1, mat2, alpha)
    rows, columns, _ = _matrix(mask)
    found = (mat1.index_select(0, rows) * mat2.t().index_select(0, columns)).sum(1)
    return with_values(mask, _scaled(found, alpha))


def _sampled_batches(mask: Any, mat1: Any, mat2: Any, alpha: Any) -> Any:
    p = parts(mask)
    lead = mask._shape[:-2]
    outer, inner = p.compressed.reshape(-1, p.compressed._shape[-1]), p.plain.reshape(-1, p.nnz)
    firsts, seconds = (m.reshape(-1, *m._shape[-2:]) for m in (mat1, mat2))
    found = []
    for i in range(outer._shape[0]):
        one = compressed(sparse_csr, outer[i], inner[i], p.values.reshape(-1, p.nnz)[i], mask._shape[-2:])
        found.append(parts(sampled(one, firsts[i], seconds[i], alpha)).values)
    return with_values(mask, torch.stack(found).reshape(*lead, p.nnz))


@row(
    "_sparse_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    grad={
        "self": lambda g, beta: _scaled(g, beta),
        "mat1": _masked_mat1,
        "mat2": lambda g, mat1, alpha: _scaled(mat1.t().conj().mm(g), alpha),
    },
    node="SparseAddmmBackward0",
)
def SPARSE_ADDMM(self: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any) -> Any:
    return torch.addmm(self, mat1, mat2, beta=beta, alpha=alpha)


def _multiplied(a: Any, b: Any) -> Any:
    op: Op = SPARSE_SPARSE
    return op.call((a, b))


def _within(product: Any, factor: Any) -> Any:
    """A gradient that is zero where the factor has no entry; PyTorch keeps its pattern."""
    if not is_coo(product):
        return SPARSE_MASK.call((product, factor))
    ones = with_values(factor, torch.ones_like(parts(factor).values))
    found = at_indices(ones, parts(product).plain, 2).ne(0)
    return product * with_values(product.detach(), found.to(product.dtype))


@row(
    "_sparse_sparse_matmul(Tensor self, Tensor other) -> Tensor",
    grad={
        "self": lambda g, self, other: _within(_multiplied(g, other.t().conj()), self),
        "other": lambda g, self, other: _within(_multiplied(self.t().conj(), g), other),
    },
)
def SPARSE_SPARSE(self: Any, other: Any) -> Any:
    check_2d("sparse_matmul", self, other)
    return both_sparse(self, other, sparse_coo)


def sparse_mm(mat1: Any, mat2: Any) -> Any:
    """`torch.sparse.mm` without a reduction."""
    need_tensor("_sparse_mm", "sparse", 1, mat1)
    need_tensor("_sparse_mm", "dense", 2, mat2)
    if is_sparse(mat1) and is_sparse(mat2):
        return SPARSE_SPARSE.call((mat1, mat2))
    if is_sparse(mat1) or not is_sparse(mat2):
        high, wide = size_at(mat1, -2), size_at(mat2, -1)
        if layout_of(mat1) is sparse_coo:
            size_at(mat2, 1)
        zeros = mat1.new_zeros((), layout=torch.strided).expand(high, wide)
        return SPARSE_ADDMM.call((zeros, mat1, mat2, 0, 1))
    zeros = mat2.new_zeros((), layout=torch.strided).expand(size_at(mat2, 1), size_at(mat1, -2))
    return SPARSE_ADDMM.call((zeros, mat2.t(), mat1.t(), 0, 1)).t()


@row(
    "sparse_sampled_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    grad={
        "self": lambda g, beta: _scaled(g, beta),
        "mat1": lambda g, self, mat2, alpha: _scaled(SPARSE_MASK.call((g, self)).mm(mat2.t().conj()), alpha),
        "mat2": lambda g, self, mat1, alpha: _scaled(SPARSE_MASK.call((g, self)).t().mm(mat1.conj()).t(), alpha),
    },
)
def SAMPLED_ADDMM(self: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any) -> Any:
    if not is_sparse(self) or layout_of(self) is not sparse_csr:
        raise RuntimeError("sampled_addmm: Expected self to have sparse csr layout, but got " + str(layout_of(self)))
    if not self._dtype.is_inexact:
        raise RuntimeError(
            "sparse_sampled_addmm: Expected self to be a floating-point or complex tensor, but got "
            f"{self._dtype.scalar_name}"
        )
    for name, t in (("mat1", mat1), ("mat2", mat2)):
        if is_sparse(t):
            raise RuntimeError(f"sampled_addmm: Expected {name} to have strided layout, but got {layout_of(t)}")
        if t.dim() < 2:
            raise RuntimeError(f"sampled_addmm: Expected {name} to be a matrix, got {t.dim()}-D tensor")
    if mat1._dtype is not mat2._dtype:
        raise RuntimeError(
            "sampled_addmm: Expected mat1 and mat2 to have the same dtype, but got "
            f"{mat1._dtype.scalar_name} and {mat2._dtype.scalar_name}"
        )
    if mat1._dtype is not self._dtype:
        raise RuntimeError(
            "sampled_addmm: Expected mat1 and self to have the same dtype, but got "
            f"{mat1._dtype.scalar_name} and {self._dtype.scalar_name}"
        )
    _check_sampled(self, mat1, mat2)
    made = sampled(self, mat1, mat2, alpha)
    values = parts(made).values if beta == 0 else parts(made).values + _scaled(parts(self).values, beta)
    return with_values(self, values)


def _check_sampled(self: Any, mat1: Any, mat2: Any) -> None:
    for (one, x), (two, y) in ((("mat1", mat1), ("mat2", mat2)), (("self", self), ("mat1", mat1))):
        if one == "self":
            if mat1._shape[-1] != mat2._shape[-2]:
                raise RuntimeError(
                    f"sampled_addmm: mat1 and mat2 shapes cannot be multiplied ({_shown(mat1)} and {_shown(mat2)})"
                )
            for which, t in enumerate((mat1, mat2)):
                if self._shape[which - 2] != t._shape[which - 2]:
                    raise RuntimeError(
                        f"sampled_addmm: self.shape[{which - 2}] must match mat{which + 1}.shape[{which - 2}]"
                    )
        if x._shape[:-2] != y._shape[:-2]:
            raise RuntimeError(
                f"sampled_addmm: Expected {one} and {two} to have the same batch size, but got "
                f"{list(x._shape[:-2])} and {list(y._shape[:-2])}"
            )


@row("sspaddmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
def SSPADDMM(self: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any) -> Any:
    for name, t in (("self", self), ("mat1", mat1)):
        if not is_coo(t):
            raise RuntimeError(f"sspaddmm: expected '{name}' to be a sparse tensor")
    if is_sparse(mat2):
        raise RuntimeError("sspaddmm: Expected mat2 to be dense")
    check_2d("sspaddmm", mat1, mat2)
    for d, n in enumerate((mat1._shape[0], mat2._shape[1])):
        if self._shape[d] != n:
            raise RuntimeError(f"sspaddmm: Argument #1: Expected dim {d} size {n}, got {self._shape[d]}")
    product = hybrid(mat1, mat2)
    p, q = parts(_scaled(self, beta)), parts(product)
    columns = int(mat2._shape[1])
    indices = torch.stack(
        [q.plain[0].repeat_interleave(columns), torch.arange(columns, device=q.plain.device).repeat(q.nnz)]
    )
    values = _scaled(q.values, alpha).reshape(-1)
    return coo(torch.cat([p.plain, indices], 1), torch.cat([p.values, values]), self._shape)


def hybrid(mat1: Any, mat2: Any) -> Any:
    """The rows of a product that are not empty: sparse rows of dense values."""
    rows, columns, values = _matrix(coalesced(mat1))
    kept, at = torch.unique(rows, sorted=True, return_inverse=True)
    made = mat2.new_zeros((kept._shape[0], mat2._shape[1]))
    if kept._shape[0]:
        made.index_add_(0, at, values.unsqueeze(1) * mat2.index_select(0, columns))
    return coo(kept.unsqueeze(0), made, (mat1._shape[0], mat2._shape[1]))


@row("hspmm(Tensor mat1, Tensor mat2) -> Tensor")
def HSPMM(mat1: Any, mat2: Any) -> Any:
    if is_sparse(mat2):
        raise refused("hspmm", [mat2])
    if not is_coo(mat1):
        raise RuntimeError("hspmm: argument 'mat1' must be a sparse tensor")
    check_2d("hspmm", mat1, mat2)
    return hybrid(mat1, mat2)
