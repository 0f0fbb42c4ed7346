"""`torch.utils.mobile_optimizer`: importable; it rewrites scripts, which are not here."""

from __future__ import annotations

import enum

from .._unserved import offer as _offer

__all__ = ["LintCode", "MobileOptimizerType"]


class LintCode(enum.Enum):
    BUNDLED_INPUT = 1
    REQUIRES_GRAD = 2
    DROPOUT = 3
    BATCHNORM = 4


class MobileOptimizerType(enum.IntEnum):
    CONV_BN_FUSION = 0
    FUSE_ADD_RELU = 1
    HOIST_CONV_PACKED_PARAMS = 2
    INSERT_FOLD_PREPACK_OPS = 3
    REMOVE_DROPOUT = 4
    VULKAN_AUTOMATIC_GPU_TRANSFER = 5


_offer(
    __name__,
    "optimize_for_mobile generate_mobile_module_lints",
    "",
    "{name}: there is no TorchScript here, and nothing to optimize",
)
