"""`torch.distributed.elastic.utils.data.elastic_distributed_sampler`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ..... import Generator, randperm
from .....utils.data.distributed import DistributedSampler

__all__ = ["ElasticDistributedSampler"]


class ElasticDistributedSampler(DistributedSampler[Any]):
    """A `DistributedSampler` that begins in the middle of an epoch, where a job that was started again goes on."""

    def __init__(
        self, dataset: Any, num_replicas: int | None = None, rank: int | None = None, start_index: int = 0
    ) -> None:
        super().__init__(dataset=dataset, num_replicas=num_replicas, rank=rank)
        if start_index >= len(dataset):
            raise ValueError(f"Start index {start_index} should be less than dataset size {len(dataset)}")
        self.start_index = start_index
        self.num_samples = math.ceil((len(dataset) - start_index) / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[Any]:
        generator = Generator()
        generator.manual_seed(self.epoch)
        left = len(self.dataset) - self.start_index
        indices = [each + self.start_index for each in randperm(left, generator=generator).tolist()]
        indices += indices[: self.total_size - len(indices)]
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples
