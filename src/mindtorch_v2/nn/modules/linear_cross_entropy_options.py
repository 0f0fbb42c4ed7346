"""How the cross entropy of a linear layer's output is computed in pieces.

Invariant: options that contradict themselves are refused when they are made, those that do not fit an input when they
meet it.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import mindtorch_v2 as torch

__all__ = ["LinearCrossEntropyOptions"]

_POLICIES = ("auto", "accurate", "balanced", "compact")
_HALVES = (torch.float16, torch.bfloat16)


@dataclasses.dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """How `linear_cross_entropy` goes through a batch in pieces, so that it never holds the scores of all rows.

    allow_retain_graph: PyTorch computes gradients ahead and can give them out once unless this is set; here the
    backward pass computes them, and may always run again.
    batch_chunk_size: rows of a piece; None is all. chunking_method: how to choose it: "aspect_ratio" gives pieces whose
    scores take as much memory as the input, "aspect_ratio:N" an N-th of that; "auto" leaves the choice.
    acc_policy: how much of the work PyTorch does in `acc_dtype`; here it is always all ("accurate").
    acc_dtype: the dtype to compute in; None is float32 for half precision under "auto", else the input's.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        if self.acc_policy not in _POLICIES:
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        if self.chunking_method not in (None, "auto"):
            name, colon, factor = str(self.chunking_method).partition(":")
            factor = factor if colon else "1"
            if name != "aspect_ratio" or not factor.isdigit() or int(factor) < 1:
                raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        size = self.batch_chunk_size
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")
        if self.acc_dtype not in (None, torch.float16, torch.bfloat16, torch.float32, torch.float64):
            raise ValueError(
                "acc_dtype must be one of {None, torch.float16, torch.bfloat16, torch.float32, torch.float64}, got "
                f"{self.acc_dtype!r}. Pass acc_dtype=None to let the op pick automatically."
            )

    def _rows(self, batch: int, features: int, classes: int, half: bool) -> int:
        """Rows of a piece."""
        method = self.chunking_method
        if method == "auto":
            method = None if self.batch_chunk_size is not None else "aspect_ratio" if half else "aspect_ratio:2"
        if method is None:
            return max(1, min(self.batch_chunk_size or batch, batch))
        factor = int(method.partition(":")[2] or 1)
        wanted = -(-batch // -(-classes // features))
        size = min((1 << (wanted - 1).bit_length()) // factor, batch)
        if self.batch_chunk_size is not None and self.batch_chunk_size != size:
            raise ValueError(
                f"batch_chunk_size (={self.batch_chunk_size}) and chunking_method ('{method}') give different chunk "
                f"sizes ({self.batch_chunk_size} vs {size}); pass only one."
            )
        return max(1, size)

    def _computed_in(self, dtype: Any) -> Any:
        if self.acc_dtype is None:
            return torch.float32 if self.acc_policy == "auto" and dtype in _HALVES else dtype
        if self.acc_dtype != dtype and not (dtype in _HALVES and self.acc_dtype == torch.float32):
            raise RuntimeError(
                "linear_cross_entropy supports float32 acc_dtype with float16/bfloat16 inputs, but got "
                f"{self.acc_dtype} acc_dtype and {dtype} inputs."
            )
        return self.acc_dtype
