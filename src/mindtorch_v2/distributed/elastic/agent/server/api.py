"""`torch.distributed.elastic.agent.server.api`: importable, and refused by name."""

from __future__ import annotations

from ....._unserved import offer as _offer

_offer(
    __name__,
    "",
    "ElasticAgent RunResult SimpleElasticAgent Worker WorkerGroup WorkerSpec WorkerState",
    "{name} is not served; distributed.launcher.elastic_launch starts and watches workers",
)
