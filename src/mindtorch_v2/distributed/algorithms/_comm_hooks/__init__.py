"""`torch.distributed.algorithms._comm_hooks`: hooks that reduce the gradients of `FullyShardedDataParallel`."""

from __future__ import annotations

from . import default_hooks as default

LOW_PRECISION_HOOKS = [default.fp16_compress_hook, default.bf16_compress_hook]
