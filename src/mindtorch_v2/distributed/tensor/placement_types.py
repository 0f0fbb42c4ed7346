"""How a tensor lies on a mesh: split along a dimension, the same everywhere, or to be reduced."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """How a tensor lies along one dimension of a mesh."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether it is split, along that dimension if one is given."""
        return isinstance(self, Shard) and (dim is None or self.dim == dim)

    def is_replicate(self) -> bool:
        """Whether it is the same everywhere."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether it must be reduced, by that operation if one is given."""
        return isinstance(self, Partial) and (reduce_op is None or self.reduce_op == reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Split along a dimension of the tensor, as `torch.chunk` splits: the last parts may be shorter or empty."""

    dim: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", operator.index(self.dim))

    def __repr__(self) -> str:
        return f"Shard(dim={self.dim})"

    def __str__(self) -> str:
        return f"S({self.dim})"

    @staticmethod
    def local_shard_size_and_offset(curr_local_size: int, num_chunks: int, rank: int) -> tuple[int, int]:
        """How long a rank's part is, and where it begins."""
        step = -(-curr_local_size // num_chunks)
        start = min(step * rank, curr_local_size)
        return min(step * (rank + 1), curr_local_size) - start, start


@dataclass(frozen=True)
class _StridedShard(Shard):
    """Split along a dimension that later dimensions of the mesh have split before."""

    split_factor: int = 1

    def __repr__(self) -> str:
        return f"_StridedShard(dim={self.dim}, sf={self.split_factor})"

    def __str__(self) -> str:
        return f"_S({self.dim}, {self.split_factor})"


@dataclass(frozen=True)
class Replicate(Placement):
    """The same everywhere."""

    def __repr__(self) -> str:
        return "Replicate()"

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True)
class Partial(Placement):
    """To be reduced before it is the tensor."""

    reduce_op: str = "sum"

    def __post_init__(self) -> None:
        if self.reduce_op is not None and not isinstance(self.reduce_op, str):
            raise TypeError(f"Partial(): argument 'reduce_op' must be a str, not {type(self.reduce_op).__name__}")
        object.__setattr__(self, "reduce_op", self.reduce_op or "sum")

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"

    def _before(self, local: Any) -> Any:
        """What is reduced, from what a rank has."""
        return local

    def _after(self, reduced: Any) -> Any:
        """The tensor, from what was reduced."""
        return reduced

    def _share(self, whole: Any, ranks: int) -> Any:
        """What a rank has of a tensor that all have: reducing it gives the tensor again."""
        if self.reduce_op == "sum":
            return whole / ranks
        if self.reduce_op in ("avg", "max", "min"):
            return whole
        raise ValueError(f"Replicate to Partial({self.reduce_op}) conversion is not supported.")


@dataclass(frozen=True)
class _NormPartial(Partial):
    """The norm of each rank's part: the norm of the whole is the norm of the norms."""

    norm_type: float = 2.0

    def __repr__(self) -> str:
        return f"_NormPartial({int(self.norm_type) if self.norm_type % 1 == 0 else self.norm_type})"

    def _before(self, local: Any) -> Any:
        return local if self.reduce_op != "sum" else local**self.norm_type

    def _after(self, reduced: Any) -> Any:
        return reduced if self.reduce_op != "sum" else reduced ** (1.0 / self.norm_type)

    def _share(self, whole: Any, ranks: int) -> Any:
        return whole if self.reduce_op != "sum" else whole / ranks ** (1.0 / self.norm_type)
