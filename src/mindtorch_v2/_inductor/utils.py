"""`torch._inductor.utils`: the few facts about devices that PyTorch's tools ask here."""

from __future__ import annotations

# What PyTorch's code generator takes for a GPU.
GPU_TYPES = ["cuda", "mps", "xpu", "mtia"]


def is_gpu(device: str | None) -> bool:
    """Whether the code generator takes a device type for a GPU."""
    return device in GPU_TYPES
