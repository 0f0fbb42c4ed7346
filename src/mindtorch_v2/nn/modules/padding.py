"""Padding layers.

Invariant: `padding` is kept as `functional.pad` takes it: both sides of the last dimension first.
"""

from __future__ import annotations

from typing import Any

from ..._tensor import Tensor
from .. import functional as F
from .._tuples import each
from .module import Module


class _Pad(Module):
    _rank = 0
    _mode = "constant"
    value: float | None = None

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = each(padding, 2 * self._rank)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode, self.value)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_Pad):
    value: float | None

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    _rank = 1


class ConstantPad2d(_ConstantPadNd):
    _rank = 2


class ConstantPad3d(_ConstantPadNd):
    _rank = 3


class _ZeroPadNd(_ConstantPadNd):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPadNd):
    _rank = 1


class ZeroPad2d(_ZeroPadNd):
    _rank = 2


class ZeroPad3d(_ZeroPadNd):
    _rank = 3


class ReflectionPad1d(_Pad):
    _rank, _mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    _rank, _mode = 2, "reflect"


class ReflectionPad3d(_Pad):
    _rank, _mode = 3, "reflect"


class ReplicationPad1d(_Pad):
    _rank, _mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    _rank, _mode = 2, "replicate"


class ReplicationPad3d(_Pad):
    _rank, _mode = 3, "replicate"


class _CircularPadNd(_Pad):
    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (self._rank + 1, self._rank + 2):
            raise ValueError(f"expected {self._rank + 1}D or {self._rank + 2}D input (got {input.dim()}D input)")
        return super().forward(input)


class CircularPad1d(_CircularPadNd):
    _rank = 1


class CircularPad2d(_CircularPadNd):
    _rank = 2


class CircularPad3d(_CircularPadNd):
    _rank = 3
