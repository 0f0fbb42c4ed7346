"""Padding by reflection, by the edge, around the corner, or with a number.

Invariant: padding reads each place through a list of indices per dimension; its gradient adds through the same list.
"""
from __future__ import annotations

from typing import Any

from .._dispatch import registry
from .._dispatch.op import Op, Spec
from .._dtype import bool as bool_
from .._dtype import int64
from .._layout import contiguous_format
from .._sizes import dense_bytes
from .composites.formulas import in_format
from .rules.base import KeptRule
from .rules.layout import in_format_of
from .table import composite, op

Ints = tuple[int, ...]
_CONSTANT = registry.get("constant_pad_nd")
_CAT = registry.get("cat")


def _places(x: Any, n: int, before: int, after: int) -> Any:
    from .. import arange

    return arange(-before, n + after, dtype=int64, device=x._device)


def _reflected(x: Any, n: int, before: int, after: int) -> Any:
    return n - 1 - (n - 1 - _places(x, n, before, after).abs()).abs()


def _clamped(x: Any, n: int, before: int, after: int) -> Any:
    return _places(x, n, before, after).clamp(0, n - 1)


def _declare(kind: str, rank: int, lists: Any) -> Op:
    name = f"{kind}_pad{rank}d"

    def shape_of(x: Any, padding: Ints) -> Ints:
        n = len(x._shape)
        if len(padding) != 2 * rank:
            raise RuntimeError(f"padding size is expected to be {2 * rank}, but got: {len(padding)}")
        if n not in (rank + 1, rank + 2) or 0 in x._shape[n - rank - 1:]:
            raise RuntimeError(f"Expected {rank + 1}D or {rank + 2}D (batch mode) tensor with possibly 0 batch size "
                               f"and other non-zero dimensions for input, but got: {list(x._shape)}")
        shape = list(x._shape)
        for k in range(rank):
            d, before, after = n - 1 - k, padding[2 * k], padding[2 * k + 1]
            if kind == "reflection" and (before >= x._shape[d] or after >= x._shape[d]):
                raise RuntimeError(
                    f"Argument #{4 + 2 * k}: Padding size should be less than the corresponding input dimension, but "
                    f"got: padding ({before}, {after}) at dimension {d} of input {list(x._shape)}")
            shape[d] += before + after
        sides = "DHW"[3 - rank:]
        if max(shape[-rank:]) < 1:
            given, made = ([f"{s}: {n}" for s, n in zip(sides, sizes[-rank:])] for sizes in (x._shape, shape))
            raise RuntimeError(f"input ({', '.join(given)}) is too small. Calculated output {' '.join(made)}")
        if min(shape[-rank:]) < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {min(shape[-rank:])}: {shape}")
        return tuple(shape)

    def meta(self: Any, padding: Ints) -> Spec:
        shape = shape_of(self, padding)
        if self._dtype is bool_:
            raise NotImplementedError(f"\"{name}\" not implemented for '{self._dtype.scalar_name}'")
        return in_format_of(self, shape)

    def meta_backward(grad_output: Any, self: Any, padding: Ints) -> Spec:
        shape = shape_of(self, padding)
        if tuple(grad_output._shape) != shape:
            raise RuntimeError(f"{name}_backward: expected grad_output of shape {list(shape)}, got "
                               f"{list(grad_output._shape)}")
        return in_format_of(self, self._shape)

    def padded(self: Any, padding: Ints) -> Any:
        out, n = self, len(self._shape)
        dense_bytes(shape_of(self, padding), self._dtype.itemsize)
        for k in range(rank):
            if padding[2 * k] or padding[2 * k + 1]:
                d = n - 1 - k
                out = out.index_select(d, lists(self, self._shape[d], padding[2 * k], padding[2 * k + 1]))
        return in_format(out, self)

    def gathered(grad_output: Any, self: Any, padding: Ints) -> Any:
        out, n = grad_output, len(self._shape)
        for k in range(rank):
            if padding[2 * k] or padding[2 * k + 1]:
                d = n - 1 - k
                shape = (*out._shape[:d], self._shape[d], *out._shape[d + 1:])
                where = lists(self, self._shape[d], padding[2 * k], padding[2 * k + 1])
                out = out.new_zeros(shape).index_add(d, where, out)
        return in_format(out.clone() if out is grad_output else out, self)

    backward: Op = op(
        f"{name}_backward(Tensor grad_output, Tensor self, SymInt[{2 * rank}] padding) -> Tensor", meta=meta_backward,
        function=False, method=False, kernel=gathered, out=True,
        grad=dict(grad_output=lambda g, padding: forward.call((g, padding)), self=None))
    forward: Op = op(
        f"{name}(Tensor self, SymInt[{2 * rank}] padding) -> Tensor", meta=KeptRule(meta), function=False, method=False,
        kernel=padded, out=True, grad=dict(self=lambda g, self, padding: backward.call((g, self, padding))))
    return forward


# By mode and the number of dimensions that are padded.
_MODES = {
    "reflect": {rank: _declare("reflection", rank, _reflected) for rank in (1, 2, 3)},
    "replicate": {rank: _declare("replication", rank, _clamped) for rank in (1, 2, 3)},
}


def _circular(self: Any, pad: Ints) -> Any:
    n = len(self._shape)
    rank = len(pad) // 2
    if len(pad) != 2 * (n - 2):
        raise RuntimeError(f"Invalid padding size, expected {2 * (n - 2)} but got {len(pad)}")
    for k in range(rank):
        size = self._shape[n - 1 - k]
        if pad[2 * k] > size or pad[2 * k + 1] > size:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if size + pad[2 * k] + pad[2 * k + 1] < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")
    out = self
    for k in range(rank):
        d, before, after = n - 1 - k, pad[2 * k], pad[2 * k + 1]
        size = self._shape[d]
        middle = out.narrow(d, max(-before, 0), size + min(before, 0) + min(after, 0))
        parts = [middle]
        if before > 0:
            parts.insert(0, middle.narrow(d, middle._shape[d] - before, before))
        if after > 0:
            parts.append(middle.narrow(d, 0, after))
        out = _CAT.call((tuple(parts), d)) if len(parts) > 1 else middle
    # Where nothing was joined, the result is still a part of the input.
    return out.contiguous() if out._storage is not self._storage else out.clone(memory_format=contiguous_format)


_CIRCULAR = composite("_pad_circular(Tensor self, SymInt[] pad) -> Tensor", _circular, function=False, method=False)


def _pad(self: Any, pad: Ints, mode: str, value: float | None) -> Any:
    n = len(self._shape)
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) > 2 * n:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pad)} and input of dimension {n}")
    if mode == "constant":
        return _CONSTANT.call((self, pad, 0.0 if value is None else value))
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    rank = len(pad) // 2
    if rank not in (1, 2, 3) or n not in (rank + 1, rank + 2):
        if mode in _MODES or mode == "circular":
            raise NotImplementedError(
                f"Padding size {len(pad)} is not supported for {n}D input tensor.\n"
                "Supported combinations for non-constant padding:\n"
                "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
                "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
                "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)")
    if mode == "circular":
        # Without a batch the first dimension is the channels, which circular padding wants behind a batch.
        batched = n == rank + 2
        out = _CIRCULAR.call((self if batched else self.unsqueeze(0), pad))
        return out if batched else out.squeeze(0)
    if mode not in _MODES:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    return _MODES[mode][rank].call((self, pad))


composite('pad(Tensor self, SymInt[] pad, str mode="constant", float? value=None) -> Tensor', _pad, function=False,
          method=False)
