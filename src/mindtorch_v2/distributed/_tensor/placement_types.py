"""The former name of `torch.distributed.tensor.placement_types`."""

from __future__ import annotations

from ..tensor._dtensor_spec import DTensorSpec as DTensorSpec
from ..tensor.placement_types import Partial as Partial
from ..tensor.placement_types import Placement as Placement
from ..tensor.placement_types import Replicate as Replicate
from ..tensor.placement_types import Shard as Shard
