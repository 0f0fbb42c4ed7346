"""`torch.distributed.elastic.agent.server.local_elastic_agent`: importable, and refused by name."""

from __future__ import annotations

from ....._unserved import offer as _offer

_offer(
    __name__,
    "",
    "LocalElasticAgent",
    "{name} is not served; distributed.launcher.elastic_launch starts and watches workers",
)
