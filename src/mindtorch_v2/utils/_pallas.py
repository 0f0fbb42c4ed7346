"""`torch.utils._pallas`: whether Pallas, a language of kernels, is there: it is not."""

from __future__ import annotations


def has_pallas_package() -> bool:
    return False


def has_tpu_pallas() -> bool:
    return False
