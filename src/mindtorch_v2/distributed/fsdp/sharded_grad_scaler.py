"""`torch.distributed.fsdp.sharded_grad_scaler`: loss scaling where each rank has a part of the gradients.

Invariant: all ranks of a group step or none does: whether a gradient was not finite is known to all before it is asked.
"""

from __future__ import annotations

from typing import Any

from ...amp.grad_scaler import GradScaler
from .. import distributed_c10d as dist

__all__ = ["ShardedGradScaler"]


class ShardedGradScaler(GradScaler):
    """`GradScaler` over a group; gradients may be float16 and lie on the host."""

    _takes_halves = True

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        backoff_factor: float = 0.5,
        growth_factor: float = 2.0,
        growth_interval: int = 2000,
        enabled: bool = True,
        process_group: Any = None,
    ) -> None:
        super().__init__(device, init_scale, growth_factor, backoff_factor, growth_interval, enabled)
        if self._enabled:
            self.process_group = dist.group.WORLD if process_group is None else process_group

    def scale(self, outputs: Any) -> Any:
        """Outputs times the scale, in their dtype."""
        from ... import Tensor
        from ...utils._pytree import tree_map

        found = super().scale(outputs)
        if isinstance(outputs, Tensor):
            return found.to(outputs.dtype)
        if isinstance(outputs, (list, tuple)):
            return tree_map(lambda value, given: value.to(given.dtype), found, outputs)
        return found

    def _known(self, found: dict[Any, Any], none: Any) -> dict[Any, Any]:
        """What any rank has found, all know."""
        found = found or {none.device: none}  # a rank may have no part of any parameter
        for flag in found.values():
            moved = flag.to(self._device) if self._device != "cpu" and flag.device.type == "cpu" else flag
            dist.all_reduce(moved, group=self.process_group)
            flag.copy_(moved)
        return found
