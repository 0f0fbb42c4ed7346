"""`torch.set_num_threads` reaches the BLAS libraries of NumPy and SciPy."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as torch


def libraries(package: str) -> list[Any]:
    root = Path(str(sys.modules[package].__file__)).parent.parent / f"{package}.libs"
    asked = []
    for path in sorted(root.glob("*openblas*")):
        library = ctypes.CDLL(str(path))
        for name in ("scipy_openblas_get_num_threads64_", "scipy_openblas_get_num_threads"):
            if hasattr(library, name):
                asked.append(getattr(library, name))
    return asked


def test_threads() -> None:
    import scipy.linalg  # noqa: F401

    known = torch.get_num_threads()
    asks = libraries("numpy") + libraries("scipy")
    if not asks:
        pytest.skip("NumPy and SciPy have another BLAS than the OpenBLAS of their wheels")
    try:
        torch.set_num_threads(1)
        torch.linalg.qr(torch.eye(3))
        torch.linalg.matrix_exp(torch.eye(3))
        assert [ask() for ask in asks] == [1] * len(asks)
        torch.set_num_threads(64)  # more than they began with: that many they get back
        torch.linalg.eigh(torch.eye(3))
        assert all(ask() <= (os.cpu_count() or 1) for ask in asks)
    finally:
        torch.set_num_threads(known)
        torch.linalg.qr(torch.eye(3))
