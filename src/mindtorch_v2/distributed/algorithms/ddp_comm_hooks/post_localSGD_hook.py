"""Gradients reduced over all processes at first, and over those of one machine later."""

from __future__ import annotations

import logging
from typing import Any

from ....futures import Future
from ... import distributed_c10d as dist
from . import default_hooks as default

logger = logging.getLogger(__name__)


class PostLocalSGDState:
    """Which groups there are, and from which step on the small one is used (None: the processes of one machine)."""

    __slots__ = ("process_group", "subgroup", "start_localSGD_iter", "post_local_gradient_allreduce", "iter")

    def __init__(
        self, process_group: Any, subgroup: Any, start_localSGD_iter: int, post_local_gradient_allreduce: bool = True
    ) -> None:
        logger.info("Local SGD will be started after %s iterations", start_localSGD_iter)
        self.process_group, self.subgroup = process_group, subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket: Any) -> None:
        """Count a step at the last bucket of a backward."""
        self.iter += bool(bucket.is_last())
        if self.iter == self.start_localSGD_iter:
            logger.info("Start to apply local SGD after %s iterations.", self.iter)


def post_localSGD_hook(state: PostLocalSGDState, bucket: Any) -> Future[Any]:
    """Reduce over everybody before the given step, then over the small group, or not at all."""
    buffer = bucket.buffer()
    if state.iter < state.start_localSGD_iter:
        state.maybe_increase_iter(bucket)
        return default._allreduce_fut(state.process_group, buffer)
    if not state.post_local_gradient_allreduce:
        kept: Future[Any] = Future()
        kept.set_result(buffer)
        return kept
    if state.subgroup is None:
        state.subgroup, _ = dist.new_subgroups()
    return default._allreduce_fut(state.subgroup, buffer)
