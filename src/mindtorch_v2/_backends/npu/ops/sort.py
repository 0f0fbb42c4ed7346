"""NPU lines of sorting, and picking by rank."""
from __future__ import annotations

from typing import Any

from ...._dispatch import registry
from ...._dtype import int64
from ...._ops.rules.base import wrap_dim
from ...._tensor_base import numel
from ..lines import choose, line, npu, parts

_cat = registry.get("cat")


def _sorted_by_rank(self: Any, dim: int, descending: bool) -> Any:
    """Of dtypes that the vendor ranks but does not sort."""
    d = wrap_dim(dim, len(self._shape))
    return self.topk(self._shape[d] if self._shape else 1, d, descending)


def _mode(self: Any, dim: int, keepdim: bool) -> Any:
    """The longest run of equal elements in order, the first of them if several are; where its last element was."""
    from .... import arange

    if not self._shape:
        return self.clone(), self.new_zeros((), dtype=int64)
    d = wrap_dim(dim, len(self._shape))
    values, indices = self.sort(d)
    n = self._shape[d]
    shape = [1] * len(self._shape)
    shape[d] = n
    place = arange(n, device=self._device).view(tuple(shape))
    fresh = values.narrow(d, 1, n - 1) != values.narrow(d, 0, n - 1)
    start = (place.narrow(d, 1, n - 1) * fresh).cummax(d)[0]
    length = place.narrow(d, 1, n - 1) - start
    # No two keys of a slice are equal, so that it does not matter which of equals the vendor would choose.
    key = length * n - place.narrow(d, 1, n - 1)
    first = key.new_zeros((*key._shape[:d], 1, *key._shape[d + 1:]))
    at = _cat.call(((first, key), d)).argmax(d, True)
    value, index = values.gather(d, at), indices.gather(d, at)
    return (value, index) if keepdim else (value.squeeze(d).clone(), index.squeeze(d).clone())


npu("sort", "aclnnSort(self, true, dim, descending, out0, out1)", cast=("self",),
    otherwise=parts(_sorted_by_rank))
# `sorted` is documented for true alone: in order is also a legal order of what need not be in order.
npu("topk", "aclnnTopk(self, k, dim, largest, true, out0, out1)")
npu("mode", parts(_mode))


def _kth_of_vector(self: Any, k: int, dim: int, keepdim: bool) -> Any:
    """The vendor's results have dimensions."""
    return tuple(t.reshape(()) for t in registry.get("kthvalue").call((self.reshape((-1,)), k, 0, True)))


def _kth_in_order(self: Any, k: int, dim: int, keepdim: bool) -> Any:
    """Of dtypes that the vendor sorts but does not pick from."""
    d = wrap_dim(dim, len(self._shape))
    value, index = (t.narrow(d, k - 1, 1) for t in self.sort(d))
    return (value.clone(), index.clone()) if keepdim else (value.squeeze(d).clone(), index.squeeze(d).clone())


npu("kthvalue", choose(lambda self, k, dim, keepdim: not self._shape or (len(self._shape) == 1 and not keepdim), {
    False: line("aclnnKthvalue(self, k, wrapped(self, dim), keepdim, out0, out1)", cast=("self",),
                otherwise=parts(_kth_in_order)),
    True: parts(_kth_of_vector)}))
for _name, _vendor in (("median", "aclnnMedian"), ("nanmedian", "aclnnNanMedian")):
    # Without elements the answer is NaN, or an error, by the composition.
    _parts = registry.get(_name).row.fallback
    npu(_name, choose(lambda self: numel(self) == 0, {
        False: line(f"{_vendor}(self, out)", cast=("self",), otherwise=_parts), True: _parts}))
    npu(f"{_name}.dim", f"{_vendor}Dim(self, wrapped(self, dim), keep(self, keepdim), out0, out1)")
