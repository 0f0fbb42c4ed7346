"""`torch.profiler._utils`: importable; records are not mapped to the lines of graphs."""

from __future__ import annotations

from .._unserved import offer as _offer

_offer(
    __name__,
    "map_recorded_events_to_aten_ops_with_stack_trace index_of_first_match argmax source_code_location",
    "BasicEvaluation EventKey EventMetrics Interval TimelineEvent ContextStackEntry",
    "{name}: records of a profile are not mapped to nodes of graphs here; prof.key_averages() and "
    "prof.export_chrome_trace() show them",
)
