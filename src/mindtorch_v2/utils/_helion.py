"""`torch.utils._helion`: whether Helion, a language of kernels, is there: it is not."""

from __future__ import annotations


def has_helion() -> bool:
    return False
