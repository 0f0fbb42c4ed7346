"""NPU lines of the matrix products.

Invariant: the matrix unit has float32, float16 and bfloat16. Products of other dtypes are sums of products, exact for
integers, at the price of a temporary as large as all the products.
"""
from __future__ import annotations

from typing import Any

from ...._dispatch import registry
from ...._ops.rules.pointwise import promoted
from ..helpers import apart
from ..lines import choose, line, npu, parts


def _product(a: Any, b: Any) -> Any:
    return (a.unsqueeze(-1) * b.unsqueeze(-3)).sum(-2, dtype=a.dtype)


def _plus(self: Any, product: Any, beta: Any, alpha: Any) -> Any:
    if not product.dtype.is_inexact:
        beta, alpha = int(beta), int(alpha)
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        # What is multiplied by nothing is not looked at, not even its NaNs.
        return product
    return (self if beta == 1 else self * beta) + product


npu("mm", "aclnnMm(self, mat2, out, cube())", cast=("self", "mat2"), empty=0, otherwise=parts(_product))
npu("bmm", "aclnnBatchMatMul(self, mat2, out, cube())", cast=("self", "mat2"), empty=0, otherwise=parts(_product))
npu("mv", "aclnnMv(self, vec, out, cube())", cast=("self", "vec"), empty=0,
    otherwise=parts(lambda self, vec: (self * vec).sum(1, dtype=self.dtype)))
npu("dot", "aclnnDot(self, tensor, out)", cast=("self", "tensor"), empty=0,
    otherwise=parts(lambda self, tensor: (self * tensor).sum(dtype=self.dtype)))

_addmm = parts(lambda self, mat1, mat2, beta, alpha: _plus(self, mat1.mm(mat2), beta, alpha))
npu("addmm", choose(apart, {
    True: _addmm, False: line("aclnnAddmm(self, mat1, mat2, beta, alpha, out, cube())", cast=("self", "mat1", "mat2"),
                              otherwise=_addmm)}))
_baddbmm = parts(lambda self, batch1, batch2, beta, alpha: _plus(self, batch1.bmm(batch2), beta, alpha))
npu("baddbmm", choose(apart, {
    True: _baddbmm, False: line("aclnnBaddbmm(self, batch1, batch2, beta, alpha, out, cube())",
                                cast=("self", "batch1", "batch2"), otherwise=_baddbmm)}))
# A sum over a batch, rounded once; the row's composition rounds after each matrix.
_addbmm = registry.get("addbmm").row.fallback
npu("addbmm", choose(apart, {
    True: _addbmm, False: line("aclnnAddbmm(self, batch1, batch2, beta, alpha, out, cube())",
                               cast=("self", "batch1", "batch2"), otherwise=_addbmm)}))


def _fractions(self: Any, vec1: Any, vec2: Any, beta: Any, alpha: Any) -> bool:
    """What is left to the composition: fractions of whole numbers, logic, and a sum with nothing."""
    dt = promoted(self._dtype, promoted(vec1._dtype, vec2._dtype))
    return beta == 0 or dt.is_bool or dt.is_complex or (dt.is_integer and not all(
        isinstance(x, int) for x in (beta, alpha)))


npu("addr", choose(_fractions, {
    True: registry.get("addr").row.fallback,
    False: line("aclnnAddr(self, vec1, vec2, beta, alpha, out)", cast=("self", "vec1", "vec2"))}))
_addmv = parts(lambda self, mat, vec, beta, alpha: _plus(self, mat.mv(vec), beta, alpha))
npu("addmv", choose(apart, {
    True: _addmv, False: line("aclnnAddmv(self, mat, vec, alpha, beta, out, cube())", cast=("self", "mat", "vec"),
                              expand=("self",), otherwise=_addmv)}))
