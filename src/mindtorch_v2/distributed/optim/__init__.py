"""`torch.distributed.optim`: state that is split, models that are averaged, steps inside backward."""

from __future__ import annotations

from ..._unserved import offer as _offer
from .apply_optimizer_in_backward import _apply_optimizer_in_backward as _apply_optimizer_in_backward
from .apply_optimizer_in_backward import _get_in_backward_optimizers as _get_in_backward_optimizers
from .post_localSGD_optimizer import PostLocalSGDOptimizer
from .utils import as_functional_optim
from .zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["PostLocalSGDOptimizer", "ZeroRedundancyOptimizer", "as_functional_optim"]

_offer(__name__, "", "DistributedOptimizer", "{name} is not served: it is RPC's and TorchScript's")
