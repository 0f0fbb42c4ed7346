"""Instance normalization layers.

Invariant: without running statistics, an input is normalised by its own in training and evaluation alike.
"""

from __future__ import annotations

from typing import Any

from ..._tensor import Tensor
from .. import functional as F
from .batchnorm import _LazyNormBase, _NormBase, expect


class _InstanceNorm(_NormBase):
    _rank = 0

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _check_input_dim(self, input: Tensor) -> None:
        expect(input, self._rank + 1, self._rank + 2)

    def _apply_instance_norm(self, input: Tensor) -> Tensor:
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        batched = input.dim() == self._rank + 2
        if input.shape[1 if batched else 0] != self.num_features and self.affine:
            raise ValueError(
                f"expected input's size at dim={1 if batched else 0} to match num_features ({self.num_features}), but "
                f"got: {input.shape[1 if batched else 0]}."
            )
        return self._apply_instance_norm(input) if batched else self._handle_no_batch_input(input)

    def _get_no_batch_dim(self) -> int:
        return self._rank + 1

    def _handle_no_batch_input(self, input: Tensor) -> Tensor:
        return self._apply_instance_norm(input.unsqueeze(0)).squeeze(0)


class InstanceNorm1d(_InstanceNorm):
    _rank = 1


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    _rank = 1
    cls_to_become = InstanceNorm1d


class InstanceNorm2d(_InstanceNorm):
    _rank = 2


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    _rank = 2
    cls_to_become = InstanceNorm2d


class InstanceNorm3d(_InstanceNorm):
    _rank = 3


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    _rank = 3
    cls_to_become = InstanceNorm3d
