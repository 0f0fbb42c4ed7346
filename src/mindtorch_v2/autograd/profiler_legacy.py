"""`torch.autograd.profiler_legacy`: the profiler under its oldest name. Its events carry their kernels themselves."""

from __future__ import annotations

import warnings
from typing import Any

from .. import cuda
from .._profiler import recorder
from . import profiler
from .profiler_util import EventList

__all__ = ["profile"]


class profile:
    """Records what runs inside `with profile() as prof:`; use `torch.profiler.profile` instead."""

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
    ) -> None:
        self.enabled = enabled
        if not enabled:
            return
        self.function_events: EventList | None = None
        self.entered = False
        self.record_shapes = record_shapes or with_flops
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_modules = with_modules
        if use_cuda and not cuda.is_available():
            warnings.warn("CUDA is not available, disabling CUDA profiling", stacklevel=2)
        self.use_cuda = False
        self._profile = profiler.profile(
            record_shapes=record_shapes,
            with_flops=with_flops,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_modules=with_modules,
        )

    def __enter__(self) -> Any:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        if recorder.Active.session is not None:
            raise RuntimeError("Profiler is already enabled on this thread")
        self.entered = True
        self._profile.__enter__()
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> Any:
        if not self.enabled:
            return None
        self._profile.__exit__(None, None, None)
        self.function_events = self._profile.function_events
        for event in self.function_events:
            event.is_legacy = True
        return False

    def __repr__(self) -> str:
        if self.function_events is None:
            return "<unfinished profiler_legacy.profile>"
        return repr(self.function_events)

    def __str__(self) -> str:
        if self.function_events is None:
            return "<unfinished profile.profiler_legacy.profile>"
        return str(self.function_events)

    def _done(self) -> EventList:
        if self.function_events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self.function_events

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """`EventList.table` of the events."""
        widths = max_src_column_width, max_name_column_width, max_shapes_column_width
        return self._done().table(sort_by, row_limit, *widths, header, top_level_events_only)

    def export_chrome_trace(self, path: str) -> None:
        self._done().export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        events = self._done()
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        events.export_stacks(path, metric)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        return self._done().key_averages(group_by_input_shape, group_by_stack_n)

    def total_average(self) -> Any:
        return self._done().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        return self._done().self_cpu_time_total
