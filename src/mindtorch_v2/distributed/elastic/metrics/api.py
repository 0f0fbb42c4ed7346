"""`torch.distributed.elastic.metrics.api`: importable, and refused by name."""

from __future__ import annotations

from ...._unserved import offer as _offer

_offer(
    __name__,
    "configure getStream get_elapsed_time_ms prof profile publish_metric put_metric",
    "ConsoleMetricHandler MetricData MetricHandler MetricStream MetricsConfig NullMetricHandler",
    "{name} is not served; use torch.profiler",
)
