"""Where does the time go? A step of a small network under torch.profiler.

A schedule skips the first steps, a named range marks a part of the program, shapes and memory are recorded; a table
says which operator costs what, and trace.json shows the step on a time line (open it in https://ui.perfetto.dev).
"""

from __future__ import annotations

from pathlib import Path

from common import arguments, shapes
from images import network

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.profiler import ProfilerActivity, profile, record_function, schedule

TRACE = Path("trace.json")


def report(profiler: profile) -> None:
    """Called when the steps to be watched have passed."""
    profiler.export_chrome_trace(str(TRACE))
    by = "self_npu_time_total" if ProfilerActivity.NPU in profiler.activities else "self_cpu_time_total"
    averages = profiler.key_averages(group_by_input_shape=True)
    print(averages.table(sort_by=by, row_limit=10, max_name_column_width=32, max_shapes_column_width=40))


def main() -> None:
    given = arguments(__doc__, steps=2)
    activities = [ProfilerActivity.CPU] + [ProfilerActivity.NPU] * (given.device == "npu")
    model = network().to(given.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with profile(
        activities=activities,
        schedule=schedule(wait=1, warmup=1, active=given.steps, repeat=1),
        on_trace_ready=report,
        record_shapes=True,
        profile_memory=True,
    ) as profiler:
        for _ in range(2 + given.steps):
            with record_function("make pictures"):
                pictures, kinds = (t.to(given.device) for t in shapes(32))
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(pictures), kinds).backward()
            optimizer.step()
            profiler.step()
    print(f"{given.steps} steps watched; the time line is in {TRACE}")


if __name__ == "__main__":
    main()
