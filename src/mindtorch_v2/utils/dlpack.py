"""`torch.utils.dlpack`: exchange of tensors with other libraries without copying."""

from __future__ import annotations

import enum

from .._dlpack import from_dlpack as from_dlpack
from .._dlpack import to_dlpack as to_dlpack

__all__ = ["DLDeviceType", "from_dlpack"]


class DLDeviceType(enum.IntEnum):
    """Device types of the DLPack specification."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17
