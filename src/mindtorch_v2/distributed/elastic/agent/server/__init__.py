"""`torch.distributed.elastic.agent.server`: importable, and refused by name."""

from __future__ import annotations

from ....._unserved import offer as _offer
from ....._unserved import offer_module as _offer_module

_offer(
    __name__,
    "",
    "ElasticAgent RunResult SimpleElasticAgent Worker WorkerGroup WorkerSpec WorkerState",
    "{name} is not served; start processes with `python -m mindtorch_v2.distributed.run`",
)

_offer_module(
    __name__,
    "health_check_server",
    "create_healthcheck_server",
    "HealthCheckServer",
    "{name} is not served; the launcher's process is what is there or is not",
)
