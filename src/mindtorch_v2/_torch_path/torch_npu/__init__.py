"""`torch_npu`: what libraries import to learn that `torch` knows Ascend devices. Here it does by itself; everything is
`torch.npu`.
"""

from __future__ import annotations

from typing import Any

from mindtorch_v2 import __version__ as _version
from mindtorch_v2 import npu as npu

__version__ = str(_version)


def __getattr__(name: str) -> Any:
    try:
        return getattr(npu, name)
    except AttributeError:
        raise AttributeError(f"module 'torch_npu' has no attribute '{name}'") from None
