"""Lists of what the package has, and additions to it: classes of tensors, modules of devices."""

from __future__ import annotations

import sys
from typing import Any

from ._device import device as Device
from ._warn import warn

_NAMES = "BFloat16 Bool Byte Char Double Float Half Int Long Short".split()


def tensor_classes() -> set[Any]:
    """`torch._tensor_classes`: `torch.FloatTensor` and the like, CUDA's too; sparse ones are not here."""
    import mindtorch_v2 as torch

    return {getattr(home, f"{name}Tensor") for home in (torch, torch.cuda) for name in _NAMES}


def _register_device_module(device_type: str, module: Any) -> None:
    """Make a module the `torch.<device_type>` of a device that has none yet."""
    kind = Device(device_type).type
    torch = sys.modules[__package__]
    if hasattr(torch, kind):
        raise RuntimeError(f"The runtime module of '{kind}' has already been registered with '{getattr(torch, kind)}'")
    setattr(torch, kind, module)
    sys.modules[f"{__package__}.{kind}"] = module


def set_vital() -> Any:
    """The function that `torch.set_vital` still is; asking for it warns."""
    warn("'set_vital' is deprecated, please do not call")
    return lambda *args: None
