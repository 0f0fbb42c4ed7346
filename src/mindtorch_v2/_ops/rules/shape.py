"""Rules of copies, creation and operators that only move elements: shape, strides and dtype of what they make.

Invariant: strides follow PyTorch's memory formats; `preserve_format` keeps a dense layout and orders any other one.
"""
from __future__ import annotations

from typing import Any, Final, final

from mypy_extensions import i64

from ..._device import device
from ..._dispatch.op import Rule, Spec
from ..._dtype import dtype
from ..._layout import channels_last, channels_last_3d, contiguous_format, preserve_format
from ..._promotion import promote
from ..._tensor_base import TensorBase, contiguous_strides, is_contiguous, numel
from .base import wrap_dim
from .pointwise import broadcast_shapes, dense_layout, ordered_strides

Ints = tuple[int, ...]

_PRESERVE: Final[Any] = preserve_format
_CONTIGUOUS: Final[Any] = contiguous_format
_CHANNELS_LAST: Final[Any] = channels_last
_CHANNELS_LAST_3D: Final[Any] = channels_last_3d


# -- memory formats -----------------------------------------------------------------------------------------------
def preserved_strides(t: TensorBase) -> Ints:
    """Strides of a copy that keeps the layout of `t`."""
    if is_contiguous(t) or dense_layout(t):
        return t._stride
    return ordered_strides(t._shape, [t])


def channels_last_strides(shape: Ints, dims: int) -> Ints:
    """Strides with the channels moving fastest, for a batch of `dims`-dimensional images."""
    if len(shape) != dims + 2:
        raise RuntimeError(
            f"required rank {dims + 2} tensor to use channels_last{'_3d' if dims == 3 else ''} format")
    out: list[int] = [0] * len(shape)
    step: i64 = 1
    order = [1, *range(dims + 1, 1, -1), 0]
    for d in order:
        out[d] = int(step)
        n: i64 = shape[d]
        step *= n if n > 1 else 1
    return tuple(out)


def format_strides(shape: Ints, memory_format: Any) -> Ints:
    """Strides of a new tensor in a memory format."""
    if memory_format is None or memory_format is _CONTIGUOUS:
        return contiguous_strides(shape)
    if memory_format is _CHANNELS_LAST:
        return channels_last_strides(shape, 2)
    if memory_format is _CHANNELS_LAST_3D:
        return channels_last_strides(shape, 3)
    raise RuntimeError("unsupported memory format option Preserve")


def copy_strides(t: TensorBase, memory_format: Any) -> Ints:
    """Strides of a copy of `t` in a memory format; none given means the layout is kept."""
    if memory_format is None or memory_format is _PRESERVE:
        return preserved_strides(t)
    return format_strides(t._shape, memory_format)


def is_contiguous_as(t: TensorBase, memory_format: Any) -> bool:
    """Whether the elements lie in the order of a memory format."""
    if memory_format is None or memory_format is _CONTIGUOUS:
        return is_contiguous(t)
    if memory_format is _CHANNELS_LAST:
        return len(t._shape) == 4 and in_order(t, channels_last_strides(t._shape, 2))
    if memory_format is _CHANNELS_LAST_3D:
        return len(t._shape) == 5 and in_order(t, channels_last_strides(t._shape, 3))
    raise RuntimeError("preserve memory format is unsupported by the contiguous operator")


def in_order(t: TensorBase, wanted: Ints) -> bool:
    i: i64 = 0
    for n in t._shape:
        if n != 1 and t._stride[i] != wanted[i]:
            return False
        i += 1
    return True


# -- copies -------------------------------------------------------------------------------------------------------
@final
class CloneRule(Rule):
    """clone(self, memory_format)"""

    def infer(self, args: tuple[Any, ...]) -> Any:
        t = args[0]
        assert isinstance(t, TensorBase)
        return Spec(t._shape, copy_strides(t, args[1]), t._dtype, t._dtype, t._device)


@final
class ToCopyRule(Rule):
    """to_copy(self, dtype, device, memory_format)"""

    def infer(self, args: tuple[Any, ...]) -> Any:
        t = args[0]
        assert isinstance(t, TensorBase)
        dt: dtype = t._dtype if args[1] is None else args[1]
        dev: device = t._device if args[2] is None else args[2]
        return Spec(t._shape, copy_strides(t, args[3]), dt, dt, dev)


@final
class CopyRule(Rule):
    """copy(self, src, non_blocking): the result is `self` with other values."""

    def infer(self, args: tuple[Any, ...]) -> Any:
        t = args[0]
        src = args[1]
        assert isinstance(t, TensorBase)
        if isinstance(src, TensorBase) and src._shape != t._shape:
            shape = broadcast_shapes(t._shape, src._shape)
            if shape != t._shape:
                raise RuntimeError(
                    f"output with shape {list(t._shape)} doesn't match the broadcast shape {list(shape)}")
        return Spec(t._shape, preserved_strides(t), t._dtype, t._dtype, t._device)


@final
class FillRule(Rule):
    """fill(self, value), zero(self)"""

    def infer(self, args: tuple[Any, ...]) -> Any:
        t = args[0]
        assert isinstance(t, TensorBase)
        if len(args) > 1:
            v = args[1]
            if isinstance(v, TensorBase):
                if len(v._shape) != 0:
                    raise RuntimeError(
                        "fill_ only supports 0-dimension value tensor but got tensor with "
                        f"{len(v._shape)} dimensions.")
            elif isinstance(v, complex) and not t._dtype.is_complex and v.imag != 0:
                raise RuntimeError(f"value cannot be converted to type {c_name(t._dtype)} without overflow")
        return Spec(t._shape, preserved_strides(t), t._dtype, t._dtype, t._device)


_C_NAMES: Final[dict[str, str]] = {
    "uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int", "int64": "int64_t", "float16": "at::Half",
    "float32": "float", "float64": "double", "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
    "bool": "bool", "bfloat16": "at::BFloat16", "float8_e5m2": "c10::Float8_e5m2", "float8_e4m3fn": "c10::Float8_e4m3fn",
    "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t",
}


def c_name(dt: dtype) -> str:
    """The C++ type of an element, as PyTorch's overflow errors print it."""
    return _C_NAMES[dt.name]
