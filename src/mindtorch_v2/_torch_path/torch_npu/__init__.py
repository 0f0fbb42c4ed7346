"""`torch_npu`: what libraries import to learn that `torch` knows Ascend devices. Here it does by itself; everything is
`torch.npu`, but for the fused attention that transformers takes from here.
"""

from __future__ import annotations

from typing import Any

from mindtorch_v2 import __version__ as _version
from mindtorch_v2 import npu as npu

__version__ = str(_version)


def __getattr__(name: str) -> Any:
    if name == "npu_fusion_attention":
        from mindtorch_v2.npu._fusion import npu_fusion_attention

        return npu_fusion_attention
    try:
        return getattr(npu, name)
    except AttributeError:
        raise AttributeError(f"module 'torch_npu' has no attribute '{name}'") from None
