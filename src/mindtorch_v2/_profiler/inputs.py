"""What an event tells of its inputs: shapes, strides, dtypes, plain values, and the work they mean.

Invariant: no tensor is kept; everything is read off when the call begins.
"""

from __future__ import annotations

from typing import Any

from .._dtype import dtype
from .._tensor_base import TensorBase

# Dtypes as C++ calls them, which is how PyTorch's profiler shows them.
_C_NAMES = {
    "float32": "float",
    "float64": "double",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "int64": "long int",
    "int32": "int",
    "int16": "short int",
    "int8": "signed char",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long",
    "bool": "bool",
    "complex32": "c10::complex<c10::Half>",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
    "float8_e4m3fn": "c10::Float8_e4m3fn",
    "float8_e5m2": "c10::Float8_e5m2",
}


class Inputs:
    """The arguments of a call, in the order of its schema. `shapes` has an empty list for what is no tensor; in `dims`
    and `strides` a list of tensors is a list of lists."""

    __slots__ = ("shapes", "dims", "strides", "dtypes", "values")

    def __init__(self, args: Any) -> None:
        self.shapes: list[list[int]] = []
        self.dims: list[Any] = []
        self.strides: list[Any] = []
        self.dtypes: list[str] = []
        self.values: list[Any] = []
        for a in args:
            if isinstance(a, TensorBase):
                shape = list(a._shape)
                self._add(shape, shape, list(a._stride), c_name(a._dtype), None)
            elif isinstance(a, (list, tuple)) and len(a) > 0 and any(isinstance(t, TensorBase) for t in a):
                tensors = [t for t in a if isinstance(t, TensorBase)]
                dims, strides = [list(t._shape) for t in tensors], [list(t._stride) for t in tensors]
                self._add([], dims, strides, "TensorList", None)
            elif isinstance(a, (list, tuple)):
                self._add([], [], [], "ScalarList", list(a))
            elif a is None:
                self._add([], [], [], "", None)
            else:
                self._add([], [], [], "Scalar", _value(a))

    def _add(self, shape: list[int], dims: Any, strides: Any, kind: str, value: Any) -> None:
        self.shapes.append(shape)
        self.dims.append(dims)
        self.strides.append(strides)
        self.dtypes.append(kind)
        self.values.append(value)


def c_name(dt: dtype) -> str:
    return _C_NAMES.get(dt.name, dt.name)


def _value(a: Any) -> Any:
    """A plain value as it is; anything else by its text."""
    return a if isinstance(a, (bool, int, float, complex, str)) else str(a)


# -- work -----------------------------------------------------------------------------------------------------------
def _product(sizes: Any) -> int:
    n = 1
    for s in sizes:
        n *= s
    return n


def _mm(a: list[int], b: list[int]) -> int:
    return 2 * _product(a) * b[-1] if a and b else 0


def _conv2d(args: Any) -> int:
    x, weight = args[0]._shape, args[1]._shape
    if len(x) != 4 or len(weight) != 4:
        return 0
    stride, padding, dilation = (_pair(args[i]) for i in (3, 4, 5))
    if isinstance(padding, str):
        return 0
    out = [(x[2 + i] + 2 * padding[i] - dilation[i] * (weight[2 + i] - 1) - 1) // stride[i] + 1 for i in (0, 1)]
    return int(2 * x[0] * out[0] * out[1] * weight[2] * weight[3] * x[1] * weight[0] // args[6])


def _pair(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return value if len(value) == 2 else (value[0], value[0])
    return value if isinstance(value, str) else (value, value)


def flops(name: str, args: Any, shapes: list[list[int]]) -> int:
    """Floating point operations of a call, by PyTorch's formulas; 0 where it has none."""
    if name in ("aten::mm", "aten::bmm"):
        return _mm(shapes[0], shapes[1])
    if name in ("aten::addmm", "aten::baddbmm"):
        return _mm(shapes[1], shapes[2])
    if name in ("aten::mul", "aten::add"):
        return _product(shapes[0]) if isinstance(args[0], TensorBase) else 0
    if name == "aten::conv2d":
        return _conv2d(args)
    return 0
