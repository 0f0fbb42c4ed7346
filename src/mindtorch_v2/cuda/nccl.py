"""`torch.cuda.nccl` of a build without NCCL: what would need it raises what PyTorch raises."""

from __future__ import annotations

import warnings
from typing import Any

from .. import _absent

SUM = 0


def is_available(tensors: Any) -> bool:
    """False: PyTorch's words say why."""
    warnings.warn("PyTorch is not compiled with NCCL support", stacklevel=2)
    return False


for _names, _symbol in (
    ("version", "_nccl_version"),
    ("unique_id", "_nccl_unique_id"),
    ("init_rank", "_nccl_init_rank"),
    ("all_reduce", "_nccl_all_reduce"),
    ("reduce", "_nccl_reduce"),
    ("broadcast", "_nccl_broadcast"),
    ("all_gather", "_nccl_all_gather"),
    ("reduce_scatter", "_nccl_reduce_scatter"),
):
    _text = f"module 'torch._C' has no attribute '{_symbol}'"
    globals().update(_absent.refusing(__name__, _names, AttributeError, _text))
