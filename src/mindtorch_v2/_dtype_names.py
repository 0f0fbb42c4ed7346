"""How PyTorch's texts spell dtypes and the types of tensors.

Invariant: a dtype has one spelling of each kind, and it stands here (`scalar_name`, "Float", is the dtype's own).
"""

from __future__ import annotations

from typing import Final

from ._device import device
from ._dtype import dtype

# C++ types as a compiler names them.
_CPP_NAMES: Final[dict[str, str]] = {
    "uint8": "unsigned char",
    "int8": "signed char",
    "int16": "short int",
    "int32": "int",
    "int64": "long int",
    "float16": "c10::Half",
    "float32": "float",
    "float64": "double",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
    "bool": "bool",
    "bfloat16": "c10::BFloat16",
    "float8_e5m2": "c10::Float8_e5m2",
    "float8_e4m3fn": "c10::Float8_e4m3fn",
    "uint16": "short unsigned int",
    "uint32": "unsigned int",
    "uint64": "long unsigned int",
}

# The same as source code writes them, where that differs.
_FIXED_WIDTH: Final[dict[str, str]] = {
    "uint8": "uint8_t",
    "int8": "int8_t",
    "int16": "int16_t",
    "int64": "int64_t",
    "uint16": "uint16_t",
    "uint32": "uint32_t",
    "uint64": "uint64_t",
}

_LEGACY: Final = frozenset({"Float", "Double", "Half", "Byte", "Char", "Short", "Int", "Long"})
_DEVICE_NAMES: Final[dict[str, str]] = {"cpu": "CPU", "meta": "Meta", "npu": "NPU"}


def cpp_name(dt: dtype) -> str:
    """The C++ type of an element as a compiler names it: "long int"."""
    return _CPP_NAMES.get(dt.name, "c10::" + dt.scalar_name)


def c_name(dt: dtype) -> str:
    """The C++ type of an element as source code writes it, which PyTorch's overflow errors do: "int64_t"."""
    return _FIXED_WIDTH.get(dt.name, cpp_name(dt))


def type_string(dt: dtype, dev: device) -> str:
    """What `Tensor.type()` gives: "torch.FloatTensor"."""
    where = "" if dev.type == "cpu" else dev.type + "."
    return f"torch.{where}{dt.scalar_name}Tensor"


def tensor_type(dt: dtype, dev: device) -> str:
    """A tensor's type as PyTorch's C++ side prints it: the oldest types keep their Python name, the others show device
    and scalar type ("CPUBoolType")."""
    kind = dt.scalar_name
    if dev.type == "cpu" and kind in _LEGACY:
        return f"torch.{kind}Tensor"
    return f"{_DEVICE_NAMES.get(dev.type, dev.type)}{kind}Type"
