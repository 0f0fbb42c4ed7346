"""`torch._numpy`: NumPy's API over tensors, as PyTorch has it for traced programs.

Invariant: nothing here computes but operators of tensors; what PyTorch's copy of the API does not have is not here.
"""

from __future__ import annotations

import math as _python_math

from . import (
    _creation,
    _dtypes,
    _math,
    _ndarray,
    _reductions,
    _selection,
    _shapes,
    _statistics,
    _types,
    _ufuncs,
    fft,
    linalg,
    random,
)
from . import _util as _util
from ._ndarray import ndarray
from ._util import AxisError, UFuncTypeError

for _module in (_creation, _dtypes, _math, _ndarray, _reductions, _selection, _shapes, _statistics, _types, _ufuncs):
    globals().update({_name: vars(_module)[_name] for _name in _module.NAMES})

inf = float("inf")
nan = float("nan")
pi = _python_math.pi
e = _python_math.e
newaxis = None
False_, True_ = False, True

__all__ = ["AxisError", "UFuncTypeError", "fft", "linalg", "ndarray", "random"]
