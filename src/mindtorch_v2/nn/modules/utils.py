"""`torch.nn.modules.utils`: what code written for PyTorch's own layers takes from there.

Invariant: only other names for what this package uses itself.
"""

from __future__ import annotations

from .._tuples import pair as _pair
from .._tuples import quadruple as _quadruple
from .._tuples import single as _single
from .._tuples import triple as _triple

__all__ = ["_pair", "_quadruple", "_single", "_triple"]
