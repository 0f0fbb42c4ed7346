"""`torch.distributed.elastic.utils.data`."""

from .cycling_iterator import CyclingIterator as CyclingIterator
from .elastic_distributed_sampler import ElasticDistributedSampler as ElasticDistributedSampler
