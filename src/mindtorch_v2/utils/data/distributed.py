"""A sampler that gives each of several processes its part of a dataset."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeVar

import mindtorch_v2 as torch

from .sampler import Sampler

__all__ = ["DistributedSampler"]
_T_co = TypeVar("_T_co", covariant=True)


class DistributedSampler(Sampler[_T_co]):
    """Every `num_replicas`-th index from `rank` on, of an order that all processes agree on by seed and epoch.

    Without these numbers they are those of the default process group.
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        dist: Any = torch.distributed
        replicas: int = dist.get_world_size() if num_replicas is None else num_replicas
        place: int = dist.get_rank() if rank is None else rank
        if place >= replicas or place < 0:
            raise ValueError(f"Invalid rank {place}, rank should be in the interval [0, {replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = replicas
        self.rank = place
        self.epoch = 0
        self.drop_last = drop_last
        size = len(dataset)
        if drop_last and size % replicas != 0:
            size -= replicas
        self.num_samples = math.ceil(size / replicas)
        self.total_size = self.num_samples * replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[Any]:
        if self.shuffle:
            generator = torch.Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = torch.randperm(len(self.dataset), generator=generator).tolist()
        else:
            indices = list(range(len(self.dataset)))
        missing = self.total_size - len(indices)
        if missing > 0 and not self.drop_last:
            # Every process gets as many: the first ones come again.
            indices += (indices * math.ceil(missing / len(indices)))[:missing]
        indices = indices[: self.total_size]
        if len(indices) != self.total_size:
            raise AssertionError(f"Number of indices ({len(indices)}) does not match total_size ({self.total_size})")
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Take another order: call it before each epoch, with the same number in all processes."""
        self.epoch = epoch
