"""CPU lines of the shrinking and gated activation functions, and of those with slopes."""
from __future__ import annotations

from typing import Any

from .... import _native
from ...._ops.activation_lazy import glu_in_parts
from ...._tensor_base import numel
from ...common.runtime import copy_same_device
from ..lines import binary, cpu, into
from .activation import activation, backward

cpu("_prelu_kernel", binary("PRELU"))
for _name in ("hardshrink", "softshrink"):
    cpu(_name, activation(_name.upper(), 1))
    cpu(f"{_name}_backward", backward("SHRINK_BACKWARD", 2))

_SIGMOID, _MUL = _native.SIGMOID, _native.MUL


def _glu(out: Any, self: Any, dim: int) -> None:
    """The second half's sigmoid, then the first half times that; half types are rounded once, by the parts."""
    dt = self._dtype
    if dt.itemsize < 4 or numel(out) == 0:
        copy_same_device(out, glu_in_parts(self, dim))
        return
    second = int(self._offset) + out._shape[dim] * self._stride[dim]
    code, to = dt.code, (out._storage, int(out._offset), out._stride, dt.code)
    _native.unary(_SIGMOID, self._storage, second, self._stride, code, *to, out._shape, code)
    _native.binary(_MUL, self._storage, int(self._offset), self._stride, code, *to, *to, out._shape, code, 1)


cpu("glu", into(_glu, calls_ops=True))
