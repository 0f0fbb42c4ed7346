"""`torch._refs.linalg`: references of linear algebra."""

from __future__ import annotations

import mindtorch_v2 as torch

from ._names import finder

_NAMES = """
    diagonal matrix_norm norm svd svdvals vector_norm vecdot cross
    """

__getattr__ = finder("_refs.linalg", _NAMES, lambda: torch.linalg)
__all__ = _NAMES.split()  # noqa: PLE0605
