"""Random sparse tensors; refused, because tensors are not sparse here."""

from __future__ import annotations

from typing import Any

from .fuzzer import FuzzedTensor


class FuzzedSparseTensor(FuzzedTensor):
    """Refused."""

    def __init__(self, name: str, size: Any, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("FuzzedSparseTensor: sparse tensors are not supported")
