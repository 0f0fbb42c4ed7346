"""NPU lines of operators that move elements into new places.

Invariant: where the vendor has no function for a dtype, elements move by strided copies on the device.
"""
from __future__ import annotations

from typing import Any

from ...._dispatch import registry
from ...._dtype import int64
from ...._ops.rules.base import wrap_dim
from ...._strides import extent, may_overlap
from ...._tensor_base import numel
from ...common.transfer import STRIDED_MAP
from ..helpers import all_points
from ..lines import accepts_dtype, call, choose, fused, line, npu, parts

_cat = registry.get("cat")
_complex = registry.get("complex")
_index = registry.get("index")
_stack = registry.get("stack")
_index_put = registry.get("index_put")


# -- joining --------------------------------------------------------------------------------------------------------
npu("cat", "aclnnCat(joined(tensors, out), wrapped(out, dim), out)")
npu("stack", choose(all_points, {
    False: line("aclnnStack(stacked(tensors, out), wrapped(out, dim), out)"),
    # The vendor stacks what has dimensions.
    True: parts(lambda tensors, dim: _cat.call((tuple(t.unsqueeze(0) for t in tensors), 0)))}))


# -- order, triangles, padding --------------------------------------------------------------------------------------
def by_parts(name: str) -> Any:
    """A kernel that moves the real and the imaginary parts of complex tensors one after the other."""
    op = registry.get(name)

    def part(value: Any, which: str) -> Any:
        if getattr(getattr(value, "_dtype", None), "is_complex", False):
            return getattr(value, which)
        return getattr(value, which) if isinstance(value, complex) else value

    def kernel(*args: Any) -> Any:
        if not any(part(a, "real") is not a for a in args):
            raise RuntimeError(f"{op.title()}: {args[0]._dtype.name} is not available on NPU")
        return _complex.call(tuple(op.call(tuple(part(a, which) for a in args)) for which in ("real", "imag")))

    return parts(kernel)


def _flipped(self: Any, dims: Any) -> Any:
    """By selecting the places of each dimension from the end."""
    from .... import arange

    out = self.clone()
    for d in dims:
        n = out._shape[d] if out._shape else 1
        out = out.index_select(d, arange(n - 1, -1, -1, device=out._device))
    return out


npu("flip", "aclnnFlip(self, dims, out)", absent=parts(_flipped))


def _plain_roll(self: Any, shifts: Any, dims: Any) -> bool:
    """Whether every dimension is named, and once. Where nothing moves no dimension is looked at."""
    n = len(self._shape)
    return numel(self) > 0 and len(dims) > 0 and len({wrap_dim(d, n) for d in dims}) == len(dims)


npu("roll", choose(_plain_roll, {
    True: line("aclnnRoll(self, shifts, dims, out)"), False: registry.get("roll").row.fallback}))
npu("tril", "aclnnTril(self, diagonal, out)", otherwise=by_parts("tril"))
npu("triu", "aclnnTriu(self, diagonal, out)", otherwise=by_parts("triu"))
npu("constant_pad_nd", "aclnnConstantPadNd(self, pad, value, out)")


# -- repeating ------------------------------------------------------------------------------------------------------
def _whole_number(repeats: Any, output_size: int | None) -> int:
    """How long the result is; asked of the device once where nobody says it."""
    if output_size is not None:
        return output_size
    total, least = _stack.call(((repeats.sum(), repeats.min().to(int64)), 0)).tolist()
    if least < 0:
        raise RuntimeError("repeats can not be negative")
    return int(total)


def _repeats_fit(self: Any, repeats: Any, dim: int | None, output_size: int | None) -> bool:
    n = len(self._shape)
    if dim is None or not -n <= dim < n or n > 8 or not accepts_dtype("aclnnRepeatInterleaveWithDim", self):
        return False
    return (len(repeats._shape) == 1 and repeats._dtype.name in ("int32", "int64") and numel(self) > 0
            and numel(repeats) == self._shape[dim])


def _repeat_interleave(self: Any, repeats: Any, dim: int, output_size: int | None) -> Any:
    d, size = wrap_dim(dim, len(self._shape)), _whole_number(repeats, output_size)
    out = self.new_empty((*self._shape[:d], size, *self._shape[d + 1:]))
    if size:
        call("aclnnRepeatInterleaveWithDim", "repeat_interleave", self, repeats, d, size, out)
    return out


def _interleaved_places(repeats: Any, output_size: int | None) -> Any:
    size = _whole_number(repeats, output_size)
    out = repeats.new_empty((size,))
    if size:
        call("aclnnRepeatInterleaveTensor", "repeat_interleave", repeats, size, out)
    return out


npu("repeat_interleave.self_Tensor", fused(("aclnnRepeatInterleaveWithDim",), _repeats_fit, _repeat_interleave))
npu("repeat_interleave.Tensor", fused(("aclnnRepeatInterleaveTensor",), lambda repeats, output_size: (
    len(repeats._shape) == 1 and repeats._dtype.name in ("int32", "int64") and numel(repeats) > 0),
    _interleaved_places))


# -- windows --------------------------------------------------------------------------------------------------------
def _unfold_backward(grad_in: Any, input_sizes: Any, dim: int, size: int, step: int) -> Any:
    """Each element of a window is added to where it was taken from."""
    from .... import arange

    whole = grad_in.new_zeros(input_sizes if input_sizes else (1,))
    d = wrap_dim(dim, len(whole._shape))
    if input_sizes:
        count = grad_in._shape[d]
        starts = arange(count, device=grad_in._device) * step
        at = starts.unsqueeze(1) + arange(size, device=grad_in._device)
        # The window's elements stand last; they go behind the dimension they came from.
        windows = grad_in.movedim(-1, d + 1).flatten(d, d + 1)
        return whole.index_add(d, at.reshape((-1,)), windows)
    return grad_in.sum(0).reshape(())


npu("unfold_backward", choose(lambda grad_in, input_sizes, dim, size, step: len(input_sizes) > 0, {
    True: line("aclnnUnfoldGrad(grad_in, input_sizes, dim, size, step, out)", cast=("grad_in",), empty=0,
               absent=parts(_unfold_backward)),
    False: parts(_unfold_backward)}))


# -- any geometry ---------------------------------------------------------------------------------------------------
def places(size: Any, stride: Any, offset: int, like: Any) -> Any:
    """Flat positions of every element of a geometry, made on the device."""
    from .... import arange, full

    at = full((), offset, dtype=int64, device=like._device)
    for n, s in zip(size, stride):
        at = at.unsqueeze(-1) + arange(n, device=like._device) * s
    return at


def _strided_map(self: Any, size: Any, stride: Any, offset: int, to_size: Any, to_stride: Any, to_offset: int,
                 mean: bool) -> Any:
    low = min(offset, to_offset)
    end = max(offset + extent(size, stride), to_offset + extent(to_size, to_stride))
    source = places(size, stride, offset - low, self)
    target = places(to_size, to_stride, to_offset - low, self)
    flat = self.new_zeros((int(end - low),))

    def added(at: Any, values: Any) -> Any:
        return _index_put.call((flat, (at,), values, True))

    visits = added(source if mean else target, self.new_ones(()))
    if mean:
        return _index.call((added(source, self / _index.call((visits, (source,)))), (target,)))
    return _index.call((added(source, self), (target,))) / _index.call((visits, (target,)))


def _visits_twice(self: Any, size: Any, stride: Any, offset: int, to_size: Any, to_stride: Any, *rest: Any) -> bool:
    """Of geometries that are none the rule speaks."""
    fits = len(size) == len(stride) and len(to_size) == len(to_stride)
    return fits and (may_overlap(size, stride) or may_overlap(to_size, to_stride))


npu("_strided_map", choose(_visits_twice, {False: STRIDED_MAP, True: parts(_strided_map)}))
