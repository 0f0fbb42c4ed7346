"""Batch normalization layers, and what instance normalization shares with them.

Invariant: running statistics are buffers; they change only while training, by the operator itself.
"""

from __future__ import annotations

from typing import Any, cast

import mindtorch_v2 as torch

from ..._tensor import Tensor
from .. import functional as F
from .. import init
from ..parameter import Parameter, UninitializedBuffer, UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module


def expect(input: Tensor, *dims: int) -> None:
    """Complain of an input with another number of dimensions."""
    if input.dim() not in dims:
        raise ValueError(f"expected {' or '.join(f'{d}D' for d in dims)} input (got {input.dim()}D input)")


class _NormBase(Module):
    _version = 2
    weight: Tensor | None
    bias: Tensor | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            value = Parameter(torch.empty(num_features, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, value)
        if track_running_stats:
            self.register_buffer("running_mean", torch.zeros(num_features, device=device, dtype=dtype))
            self.register_buffer("running_var", torch.ones(num_features, device=device, dtype=dtype))
            self.register_buffer("num_batches_tracked", torch.tensor(0, dtype=torch.int64, device=device))
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        if self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not say which inputs it takes")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: Any,
        unexpected_keys: Any,
        error_msgs: Any,
    ) -> None:
        version = local_metadata.get("version", None)
        if (version is None or version < 2) and self.track_running_stats:
            # Older states have no count of batches.
            key = prefix + "num_batches_tracked"
            if key not in state_dict:
                count = self.num_batches_tracked
                state_dict[key] = (
                    count if count is not None and count.device.type != "meta" else torch.tensor(0, dtype=torch.int64)
                )
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class _BatchNorm(_NormBase):
    # The dimensions that an input may have; a class that does not say overrides `_check_input_dim`.
    _dims: tuple[int, ...] = ()

    def _check_input_dim(self, input: Tensor) -> None:
        if not self._dims:
            super()._check_input_dim(input)
        expect(input, *self._dims)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                factor = 1.0 / float(self.num_batches_tracked)
        by_batch = self.training or (self.running_mean is None and self.running_var is None)
        kept = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if kept else None,
            self.running_var if kept else None,
            self.weight,
            self.bias,
            by_batch,
            factor,
            self.eps,
        )


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """A normalization that takes `num_features` from its first input."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = torch.tensor(0, dtype=torch.int64, device=device)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        if self.has_uninitialized_params():
            self.num_features = input.shape[1]
            for member in (self.weight, self.bias, self.running_mean, self.running_var):
                if member is not None:
                    cast(Any, member).materialize((self.num_features,))
            self.reset_parameters()


class BatchNorm1d(_BatchNorm):
    _dims = (2, 3)


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    _dims = (2, 3)
    cls_to_become = BatchNorm1d


class BatchNorm2d(_BatchNorm):
    _dims = (4,)


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    _dims = (4,)
    cls_to_become = BatchNorm2d


class BatchNorm3d(_BatchNorm):
    _dims = (5,)


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    _dims = (5,)
    cls_to_become = BatchNorm3d


class SyncBatchNorm(_BatchNorm):
    """Batch normalization over the inputs of all processes of a group; in a single process, batch normalization."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def _check_non_zero_input_channels(self, input: Tensor) -> None:
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        self._check_non_zero_input_channels(input)
        dist: Any = torch.distributed
        if not self.training or not dist.is_initialized():
            return super().forward(input)
        group = self.process_group or dist.group.WORLD
        if dist.get_world_size(group) == 1:
            return super().forward(input)
        return self._over_group(input, lambda part: dist.nn.functional.all_reduce(part, group=group))

    def _over_group(self, input: Tensor, total: Any) -> Tensor:
        """Mean and variance of all processes' inputs; `total` sums a tensor over them, and its gradient too."""
        dims = [dim for dim in range(input.dim()) if dim != 1]
        shape = [1, -1] + [1] * (input.dim() - 2)
        wide = input.float() if input.dtype in (torch.float16, torch.bfloat16) else input
        here = wide.new_full((1,), wide.numel() / wide.size(1))
        sums = total(torch.cat([wide.sum(dims), here]))
        count = sums[-1].detach()
        mean = sums[:-1] / count
        away = wide - mean.view(shape)
        var = total((away * away).sum(dims)) / count
        if self.track_running_stats and self.running_mean is not None and self.running_var is not None:
            self._track(mean.detach(), var.detach() * count / (count - 1).clamp(min=1))
        out = away * (var + self.eps).rsqrt().view(shape)
        if self.weight is not None:
            out = out * self.weight.view(shape)
        if self.bias is not None:
            out = out + self.bias.view(shape)
        return out.to(input.dtype)

    def _track(self, mean: Tensor, var: Tensor) -> None:
        assert self.running_mean is not None and self.running_var is not None
        part = self.momentum
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            part = 1.0 / float(self.num_batches_tracked) if part is None else part
        with torch.no_grad():
            self.running_mean.lerp_(mean.to(self.running_mean.dtype), part or 0.0)
            self.running_var.lerp_(var.to(self.running_var.dtype), part or 0.0)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """The same tree with every batch normalization replaced by one of this class, which takes over its members."""
        result = module
        if isinstance(module, _BatchNorm):
            result = replaced = SyncBatchNorm(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            if module.affine:
                replaced.weight = module.weight
                replaced.bias = module.bias
            replaced.running_mean = module.running_mean
            replaced.running_var = module.running_var
            replaced.num_batches_tracked = module.num_batches_tracked
            replaced.training = module.training
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result
