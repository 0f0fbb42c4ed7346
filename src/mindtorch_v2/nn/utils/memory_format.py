"""Memory formats of the weights of convolutions.

Invariant: values stay, strides change, and the parameters remain the same objects.
"""

from __future__ import annotations

from typing import Any, TypeVar

from ..modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]

M = TypeVar("M", bound=Module)


def _convert(module: Module, kinds: tuple[type[Module], ...], memory_format: Any) -> None:
    if isinstance(module, kinds):
        weight: Any = module.weight
        data = weight.detach().clone(memory_format=memory_format)
        weight.data = data.resize_(data.size(), memory_format=memory_format)
    for child in module.children():
        _convert(child, kinds, memory_format)


def convert_conv2d_weight_memory_format(module: M, memory_format: Any) -> M:
    """The weights of all `Conv2d` and `ConvTranspose2d` in `module` in a memory format."""
    _convert(module, (Conv2d, ConvTranspose2d), memory_format)
    return module


def convert_conv3d_weight_memory_format(module: M, memory_format: Any) -> M:
    """The weights of all `Conv3d` and `ConvTranspose3d` in `module` in a memory format."""
    _convert(module, (Conv3d, ConvTranspose3d), memory_format)
    return module
