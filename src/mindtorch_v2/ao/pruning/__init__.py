"""`torch.ao.pruning`: masks over a model's tensors, worked out anew while it is trained.

Invariant: a mask belongs to a sparsifier's state and, as a parametrization, to its module; it is written in place.
"""

from __future__ import annotations

from ..._unserved import offer as _offer
from .scheduler.base_scheduler import BaseScheduler
from .scheduler.cubic_scheduler import CubicSL
from .scheduler.lambda_scheduler import LambdaSL
from .sparsifier.base_sparsifier import BaseSparsifier
from .sparsifier.nearly_diagonal_sparsifier import NearlyDiagonalSparsifier
from .sparsifier.utils import FakeSparsity, fqn_to_module, get_arg_info_from_tensor_fqn, module_to_fqn
from .sparsifier.weight_norm_sparsifier import WeightNormSparsifier

__all__ = [
    "BaseScheduler",
    "BaseSparsifier",
    "CubicSL",
    "FakeSparsity",
    "LambdaSL",
    "NearlyDiagonalSparsifier",
    "WeightNormSparsifier",
    "fqn_to_module",
    "get_arg_info_from_tensor_fqn",
    "module_to_fqn",
]

_offer(
    __name__,
    "get_dynamic_sparse_quantized_mapping get_static_sparse_quantized_mapping",
    "",
    "{name}: there are no quantized modules here; give `convert` a mapping of your own",
)
