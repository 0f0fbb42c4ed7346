"""`torch.distributed.fsdp`: the settings are data; sharding itself is refused by name."""

from __future__ import annotations

from ..._unserved import offer as _offer
from ._policies import CPUOffloadPolicy as CPUOffloadPolicy
from ._policies import MixedPrecisionPolicy as MixedPrecisionPolicy
from ._policies import OffloadPolicy as OffloadPolicy
from .api import BackwardPrefetch as BackwardPrefetch
from .api import CPUOffload as CPUOffload
from .api import FullOptimStateDictConfig as FullOptimStateDictConfig
from .api import FullStateDictConfig as FullStateDictConfig
from .api import LocalOptimStateDictConfig as LocalOptimStateDictConfig
from .api import LocalStateDictConfig as LocalStateDictConfig
from .api import MixedPrecision as MixedPrecision
from .api import OptimStateDictConfig as OptimStateDictConfig
from .api import ShardedOptimStateDictConfig as ShardedOptimStateDictConfig
from .api import ShardedStateDictConfig as ShardedStateDictConfig
from .api import ShardingStrategy as ShardingStrategy
from .api import StateDictConfig as StateDictConfig
from .api import StateDictSettings as StateDictSettings
from .api import StateDictType as StateDictType

_offer(
    __name__,
    "fully_shard register_fsdp_forward_method share_comm_ctx",
    ("FullyShardedDataParallel FSDPModule UnshardHandle OptimStateKeyType DataParallelMeshDims "),
    "{name} is not served; DistributedDataParallel and ZeroRedundancyOptimizer are",
)
