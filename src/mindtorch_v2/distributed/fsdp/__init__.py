"""`torch.distributed.fsdp`: parameters, gradients and states of optimizers that are split over ranks."""

from __future__ import annotations

from ._flat import FlatParameter as FlatParameter
from ._fully_shard import DataParallelMeshDims as DataParallelMeshDims
from ._fully_shard import FSDPModule as FSDPModule
from ._fully_shard import UnshardHandle as UnshardHandle
from ._fully_shard import fully_shard as fully_shard
from ._fully_shard import register_fsdp_forward_method as register_fsdp_forward_method
from ._fully_shard import share_comm_ctx as share_comm_ctx
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
from .fully_sharded_data_parallel import FullyShardedDataParallel as FullyShardedDataParallel
from .fully_sharded_data_parallel import OptimStateKeyType as OptimStateKeyType
