"""`torch.types`: names for annotations."""

from __future__ import annotations

import builtins as _builtins
import os
from collections.abc import Sequence
from typing import IO, Any, TypeAlias, Union

from . import Tensor as _Tensor
from . import UntypedStorage, device, dtype, layout
from ._size import Size as Size

__all__ = ["BoolLikeType", "Device", "FileLike", "FloatLikeType", "IntLikeType", "Number", "Storage"]

_device: TypeAlias = device
_dtype: TypeAlias = dtype
_layout: TypeAlias = layout
_int: TypeAlias = _builtins.int
_float: TypeAlias = _builtins.float
_bool: TypeAlias = _builtins.bool
_complex: TypeAlias = _builtins.complex
_str: TypeAlias = _builtins.str
_bytes: TypeAlias = _builtins.bytes
_size: TypeAlias = Size | list[int] | tuple[int, ...]

Tensor: TypeAlias = _Tensor
Storage: TypeAlias = UntypedStorage
Number: TypeAlias = int | float | bool
_Number = (_builtins.int, _builtins.float, _builtins.bool)
Device: TypeAlias = _device | str | int | None
FileLike: TypeAlias = Union[str, "os.PathLike[str]", IO[bytes]]
# Numbers are Python's here; PyTorch's may also be symbols.
IntLikeType: TypeAlias = int
FloatLikeType: TypeAlias = float
BoolLikeType: TypeAlias = bool
_TensorOrTensors: TypeAlias = _Tensor | Sequence[_Tensor]
_TensorOrOptionalTensors: TypeAlias = _Tensor | Sequence[_Tensor | None]
_TensorOrTensorsOrGradEdge: TypeAlias = Any
