"""Settings of `torch.fx`."""

from __future__ import annotations

# Progress bars over the nodes that an interpreter runs; there are none here.
disable_progress = True
verbose_progress = False
# Nodes get no stack traces even where a tracer is told to record them.
do_not_emit_stack_traces = False
