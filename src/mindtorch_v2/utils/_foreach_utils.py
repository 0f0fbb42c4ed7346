"""`torch.utils._foreach_utils`: lists of tensors by device and dtype, and where operators over lists pay."""

from __future__ import annotations

from typing import Any

from ..optim._lists import FUSED_DEVICES, group_by_device_and_dtype


def _get_foreach_kernels_supported_devices() -> list[str]:
    return ["cuda", "xpu", "mtia", "privateuseone"]


def _get_fused_kernels_supported_devices() -> list[str]:
    return list(FUSED_DEVICES)


def _group_tensors_by_device_and_dtype(tensorlistlist: list[list[Any]], with_indices: bool = False) -> Any:
    """By (device, dtype) of the first list: the part of each list that belongs together, and where it stood."""
    return group_by_device_and_dtype(tensorlistlist, with_indices)


def _device_has_foreach_support(device: Any) -> bool:
    return device.type in (*_get_foreach_kernels_supported_devices(), "cpu")


def _has_foreach_support(tensors: list[Any], device: Any) -> bool:
    """Whether one call could serve them all: plain tensors on a device that has such calls."""
    from .. import Tensor
    from ..nn import Parameter

    return _device_has_foreach_support(device) and all(t is None or type(t) in (Tensor, Parameter) for t in tensors)
