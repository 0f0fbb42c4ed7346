"""Operators that PyTorch keeps under old names: norms, a convolution over (time, batch, channel), Vandermonde matrices.

Invariant: every one is a decomposition into what replaces it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._dispatch import registry
from .._dtype import int64
from .._warn import warn_once
from .rules.base import wrap_dim
from .table import composite

_norm = registry.get("linalg_vector_norm")
_FIRST = "and it is just left for JIT compatibility. It will be removed in a future PyTorch release. Please use"


def _frobenius(self: Any, dim: Sequence[int], keepdim: bool) -> Any:
    warn_once(f"at::frobenius_norm is deprecated {_FIRST} `linalg.vector_norm(A, 2., dim, keepdim)` instead")
    if not self._dtype.is_inexact:
        raise RuntimeError(
            "norm(): input dtype should be either floating point or complex. "
            f"Got {self._dtype.scalar_name} instead."
        )
    if len(dim) > 2:
        raise RuntimeError(f"Expected at most 2 dimensions, but got {len(dim)} dimensions instead.")
    return _norm.call((self, 2.0, dim, keepdim, None))


composite(
    "frobenius_norm(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", _frobenius, method=False, out=True
)


def _nuclear(self: Any, dim: Sequence[int], keepdim: bool) -> Any:
    warn_once(f"at::nuclear_norm is deprecated {_FIRST} `linalg.matrix_norm(A, 'nuc', dim, keepdim)` instead")
    import mindtorch_v2 as torch

    return torch.linalg.matrix_norm(self, "nuc", dim, keepdim)


composite(
    "nuclear_norm(Tensor self, bool keepdim=False) -> Tensor",
    lambda self, keepdim: _nuclear(self, (-2, -1), keepdim),
    method=False,
    out=True,
)
composite("nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor", _nuclear, method=False, out=True)


def _conv_tbc(self: Any, weight: Any, bias: Any, pad: int) -> Any:
    if self.dim() != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    if weight.dim() != 3:
        raise RuntimeError("Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.")
    if bias.dim() != 1:
        raise RuntimeError("Bias must be 1-D")
    time, batch, channels = self._shape
    width, inside, outside = weight._shape
    if channels != inside:
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if outside != bias._shape[0]:
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).")
    steps = time - width + 1 + pad * 2
    if steps < 0:
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {steps}: [{steps}, {batch}, {outside}]"
        )
    import mindtorch_v2 as torch

    if pad < 0:
        self, pad = self.narrow(0, -pad, time + 2 * pad), 0
    out = torch.conv1d(self.permute((1, 2, 0)), weight.permute((2, 1, 0)), bias, padding=pad)
    return out.permute((2, 0, 1)).contiguous()


composite("conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor", _conv_tbc, method=False)


def _vander(x: Any, N: int | None, increasing: bool) -> Any:
    if x.dim() != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    n = x._shape[0] if N is None else N
    if n < 0:
        raise RuntimeError("N must be non-negative.")
    kind = x._dtype if x._dtype.is_inexact else int64
    if n == 0:
        return x.new_empty((x._shape[0], 0), dtype=kind)
    columns = [x.new_ones((x._shape[0], 1), dtype=kind)]
    if n > 1:
        columns.append(x.to(kind).unsqueeze(-1).expand((x._shape[0], n - 1)).cumprod(-1))
    powers = registry.get("cat").call((tuple(columns), -1))
    return powers if increasing else powers.flip((1,))


composite("vander(Tensor x, int? N=None, bool increasing=False) -> Tensor", _vander, method=False)


def _fill_diagonal(self: Any, fill_value: Any, wrap: bool) -> Any:
    if self.dim() < 2:
        raise RuntimeError("dimensions must larger than 1")
    shape, stride = self._shape, self._stride
    if self.dim() > 2 and any(n != shape[0] for n in shape):
        raise RuntimeError("all dimensions of input must be of equal length")
    step = sum(stride)
    self.as_strided((min(shape),), (step,)).fill_(fill_value)
    if wrap and self.dim() == 2 and shape[0] > shape[1] + 1:
        # The diagonal begins again one row below the last column.
        row = shape[1] + 1
        count = ((shape[0] * shape[1]) // row) + (shape[0] * shape[1] % row > 0) - shape[1]
        start = int(self._offset) + stride[0] * row
        self.as_strided((count,), (step,), start).fill_(fill_value)
    return self


composite(
    "fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)", _fill_diagonal, function=False
)


def _slice_inverse(self: Any, src: Any, dim: int, start: int | None, end: int | None, step: int) -> Any:
    wrap_dim(dim, src.dim())
    return self.as_strided(src._shape, src._stride, int(src._offset))


composite(
    "slice_inverse(Tensor(a) self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) "
    "-> Tensor(a)",
    _slice_inverse,
)
