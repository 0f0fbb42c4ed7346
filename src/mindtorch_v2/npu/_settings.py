"""Switches that programs written for torch_npu set.

Invariant: a switch does what it says, or refuses every value but the one that describes what is done anyway.
"""

from __future__ import annotations

from typing import Any

from .._backends.npu import helpers as _helpers
from .._backends.npu import quirks as _quirks
from .._backends.npu import runtime as _runtime

__all__ = ["config", "conv", "is_jit_compile_false", "matmul", "set_compile_mode", "set_option"]


class _HalfFloats:
    """`torch.npu.matmul.allow_hf32`: may the matrix unit round float32 to HF32, which has 10 bits after the point?"""

    __slots__ = ("_name", "_unit")

    def __init__(self, name: str, unit: _helpers.Cube) -> None:
        self._name = name
        self._unit = unit

    @property
    def allow_hf32(self) -> bool:
        return bool(self._unit.half)

    @allow_hf32.setter
    def allow_hf32(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise TypeError(f"torch.npu.{self._name}.allow_hf32 must be a bool, not {type(value).__name__}")
        if value and not _quirks.has_half_floats():
            raise RuntimeError(
                f"torch.npu.{self._name}.allow_hf32: the matrix unit of {_runtime.chip()} has no HF32, which 910B and "
                "later have"
            )
        self._unit.switch(value)


matmul = _HalfFloats("matmul", _helpers.PRODUCTS)
conv = _HalfFloats("conv", _helpers.CONVOLUTIONS)


class _Config:
    """`torch.npu.config`"""

    @property
    def allow_internal_format(self) -> bool:
        """Weights keep PyTorch's order in memory: the vendor's private formats are not used."""
        return False

    @allow_internal_format.setter
    def allow_internal_format(self, value: bool) -> None:
        if value:
            raise NotImplementedError(
                "torch.npu.config.allow_internal_format: tensors here have PyTorch's layout only; leave it False"
            )


config = _Config()


def set_compile_mode(jit_compile: bool = False) -> None:
    """Operators come compiled in the vendor's libraries; they are never compiled while a program runs."""
    if jit_compile:
        raise NotImplementedError(
            "torch.npu.set_compile_mode(jit_compile=True): ACLNN has compiled operators only; leave it False"
        )


def is_jit_compile_false() -> bool:
    return True


# What describes how it is anyway.
_OPTIONS = {"jitCompile": "disable", "ALLOW_INTERNAL_FORMAT": "disable"}
_SWITCHES = {"ALLOW_CONV_HF32": conv, "ALLOW_MATMUL_HF32": matmul}


def set_option(option: dict[str, Any]) -> None:
    """`torch_npu`'s options by name, with "enable" or "disable"."""
    if not isinstance(option, dict):
        raise TypeError("npu option must be a dict.")
    for name, value in option.items():
        if name in _SWITCHES and value in ("enable", "disable"):
            _SWITCHES[name].allow_hf32 = value == "enable"
        elif _OPTIONS.get(name) != value:
            known = sorted((*_OPTIONS, *_SWITCHES))
            raise NotImplementedError(f"torch.npu.set_option: {name}={value!r} is not available; options: {known}")
