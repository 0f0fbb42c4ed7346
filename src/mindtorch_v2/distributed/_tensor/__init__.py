"""The former name of `torch.distributed.tensor`."""

from __future__ import annotations

from ..tensor import DTensor as DTensor
from ..tensor import Partial as Partial
from ..tensor import Replicate as Replicate
from ..tensor import Shard as Shard
from ..tensor import distribute_tensor as distribute_tensor
