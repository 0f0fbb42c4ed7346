"""`torch.autograd.profiler`: the profiler itself, and names for stretches of a program.

Invariant: at most one profile runs at a time, in the thread that entered it.
"""

from __future__ import annotations

import copy
import logging
import uuid
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import ContextDecorator
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any, NoReturn

from .. import npu
from .._profiler import recorder
from .._profiler.kinds import ExperimentalConfig, ProfilerActivity, ProfilerConfig, ProfilerState
from .._profiler.result import ProfilerResult, function_events, wanted_kinds
from .profiler_util import EventList, FunctionEvent, MemRecordsAcc

__all__ = [
    "profile",
    "record_function",
    "emit_itt",
    "emit_nvtx",
    "load_nvprof",
    "EnforceUnique",
    "parse_nvprof_trace",
    "KinetoStepTracker",
    "EventList",
    "FunctionEvent",
    "MemRecordsAcc",
]

_log = logging.getLogger(__name__)

# Whether a profiler runs, for quick questions from elsewhere.
_is_profiler_enabled: bool = False


def _set_is_profiler_enabled(enable: bool) -> None:
    global _is_profiler_enabled
    _is_profiler_enabled = enable


def _run_on_profiler_start() -> None:
    _set_is_profiler_enabled(True)


def _run_on_profiler_stop() -> None:
    _set_is_profiler_enabled(False)


def _supported_activities() -> set[ProfilerActivity]:
    return {ProfilerActivity.CPU, ProfilerActivity.NPU} if npu.is_available() else {ProfilerActivity.CPU}


@dataclass
class _ProfilerStats:
    """What profiling itself took."""

    profiling_window_duration_sec: float = 0
    number_of_events: int = 0
    profiler_prepare_call_duration_us: int = 0
    profiler_enable_call_duration_us: int = 0
    profiler_disable_call_duration_us: int = 0
    parse_kineto_call_duration_us: int = 0
    function_events_build_tree_call_duration_us: int = 0


def _usable_device(name: str) -> bool:
    """Whether events of a device can be recorded; warns in PyTorch's words where not."""
    if name not in ("cuda", "xpu", "mtia", "hpu", "npu"):
        warnings.warn(f"The {name} is not a valid device option.", stacklevel=4)
        return False
    if name == "npu":
        if not npu.is_available():
            warnings.warn("NPU is not available, disabling NPU profiling", stacklevel=4)
        return npu.is_available()
    if name == "mtia":
        raise AssertionError("Legacy MTIA profiling is not supported. Requires use_kineto=True on MTIA devices.")
    warnings.warn(f"{name.upper()} is not available, disabling {name.upper()} profiling", stacklevel=4)
    return False


class profile:
    """Records what runs inside `with profile() as prof:`; most programs use `torch.profiler.profile`.

    `use_device="npu"` also times launches on NPUs. `with_modules` changes nothing for programs that are not scripted,
    as in PyTorch.
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: ExperimentalConfig | None = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        activity_filters: dict[ProfilerActivity, set[str]] | None = None,
    ) -> None:
        self.enabled = enabled
        if not enabled:
            return
        self.use_cuda = use_cuda
        if use_cuda:
            warnings.warn(
                "The attribute `use_cuda` will be deprecated soon, please use ``use_device = 'cuda'`` instead.",
                FutureWarning,
                stacklevel=2,
            )
            use_device = "cuda"
        self.record_shapes = record_shapes or with_flops
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_modules = with_modules
        self.use_cpu = use_cpu
        self.acc_events = acc_events
        self.experimental_config = _without_trace_only(experimental_config or ExperimentalConfig(), with_stack)
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.activity_filters = activity_filters or {}
        if not use_cpu and not use_kineto:
            raise AssertionError("Device-only events supported only with Kineto (use_kineto=True)")
        self.use_device = use_device if use_device is not None and _usable_device(use_device) else None
        self.use_cuda = False
        self.kineto_activities = {ProfilerActivity.CPU} if use_cpu else set()
        if self.use_device is not None:
            self.kineto_activities.add(ProfilerActivity.NPU)
        self.profiler_kind = ProfilerState.KINETO_PRIVATEUSE1 if self.use_device else ProfilerState.KINETO
        if not self.kineto_activities:
            raise AssertionError("No activities specified for the profiler")
        if post_processing_timeout_s is not None and post_processing_timeout_s < 0:
            raise ValueError("post_processing_timeout_s must be non-negative")
        self._function_events: EventList | None = None
        self._old_function_events: EventList | None = None
        # Events are made when they are first asked for.
        self._needs_processing = False
        self.entered = False
        self.kineto_results: ProfilerResult | None = None
        self.profiling_start_time_ns = 0
        self.profiling_end_time_ns = 0
        self._stats = _ProfilerStats()
        self.trace_id = ""
        self._metadata: dict[str, str] = {}
        self._left_out: set[str] = set()
        self._session: recorder.Session | None = None

    # -- running ----------------------------------------------------------------------------------------------------
    def default_trace_id(self) -> str:
        return f"{uuid.uuid4().int:032X}"

    def create_trace_id(self) -> str:
        return self.custom_trace_id_callback() if self.custom_trace_id_callback else self.default_trace_id()

    def config(self, create_trace_id: bool = False) -> ProfilerConfig:
        if create_trace_id:
            self.trace_id = self.create_trace_id()
        return ProfilerConfig(
            self.profiler_kind,
            self.record_shapes,
            self.profile_memory,
            self.with_stack,
            self.with_flops,
            self.with_modules,
            self.experimental_config,
            self.trace_id,
        )

    def __enter__(self) -> Any:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self._prepare_trace()
        self._start_trace()
        return self

    def _prepare_trace(self) -> None:
        self.entered = True
        began = perf_counter_ns()
        self.config(create_trace_id=True)
        self._left_out = wanted_kinds(self.activity_filters)
        self._stats.profiler_prepare_call_duration_us = (perf_counter_ns() - began) // 1000

    def _start_trace(self) -> None:
        self.entered = True
        began = perf_counter_ns()
        options = recorder.Options(
            cpu=self.use_cpu,
            npu=self.use_device is not None,
            shapes=self.record_shapes,
            memory=self.profile_memory,
            stack=self.with_stack,
            flops=self.with_flops,
            verbose=self.experimental_config.verbose,
            overloads=self.experimental_config.capture_overload_names,
        )
        session = recorder.start(options)
        self._session = session
        _run_on_profiler_start()
        session.metadata["trace_id"] = f'"{self.trace_id}"'
        self.profiling_start_time_ns = perf_counter_ns()
        self._stats.profiler_enable_call_duration_us = (self.profiling_start_time_ns - began) // 1000

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> Any:
        if not self.enabled:
            return None
        if self.use_device:
            npu.synchronize()
        if self._function_events and self.acc_events:
            self._old_function_events = self._function_events
        self._function_events = None
        self._needs_processing = True
        self.profiling_end_time_ns = perf_counter_ns()
        if self._session is None or recorder.Active.session is not self._session:
            warnings.warn(
                "disableProfiler called but no active profiling session found. This can happen if profiling was "
                "cancelled during warmup.",
                stacklevel=2,
            )
            self.kineto_results = None
        else:
            self.kineto_results = ProfilerResult(recorder.stop(), self._left_out)
        self._session = None
        _run_on_profiler_stop()
        stats = self._stats
        stats.profiler_disable_call_duration_us = (perf_counter_ns() - self.profiling_end_time_ns) // 1000
        stats.profiling_window_duration_sec = (self.profiling_end_time_ns - self.profiling_start_time_ns) / 1e9
        if self.acc_events and not self.experimental_config.trace_only:
            self._ensure_function_events()
        return False

    def toggle_collection_dynamic(self, enabled: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Stop recording for a while, or go on with it."""
        recorder.toggle(enabled, activities)

    # -- results ----------------------------------------------------------------------------------------------------
    def _ensure_function_events(self) -> None:
        if self.experimental_config.trace_only:
            raise RuntimeError(
                "events() is not available when trace_only=True in ExperimentalConfig. Use export_chrome_trace() "
                "instead."
            )
        if self._function_events is not None:
            return
        self._needs_processing = False
        began = perf_counter_ns()
        found: list[Any] = []
        if self.kineto_results is not None:
            timeout = self.post_processing_timeout_s
            found, late = function_events(self.kineto_results, self.use_device, timeout)
            if late:
                _log.warning(
                    "Profiler _parse_kineto_results timed out after %.3f seconds, returning partial results with %d "
                    "events",
                    timeout,
                    len(found),
                )
        self._stats.parse_kineto_call_duration_us = (perf_counter_ns() - began) // 1000
        events = EventList(
            found, use_device=self.use_device, profile_memory=self.profile_memory, with_flops=self.with_flops
        )
        began = perf_counter_ns()
        events._build_tree()
        self._stats.function_events_build_tree_call_duration_us = (perf_counter_ns() - began) // 1000
        self._stats.number_of_events = len(events)
        if self._old_function_events and self.acc_events:
            events.extend(self._old_function_events)
            self._old_function_events = None
        self._function_events = events

    @property
    def function_events(self) -> EventList:
        self._ensure_function_events()
        assert self._function_events is not None
        return self._function_events

    def __repr__(self) -> str:
        if self._needs_processing:
            self._ensure_function_events()
        return "<unfinished torch.autograd.profile>" if self._function_events is None else repr(self._function_events)

    def __str__(self) -> str:
        if self._needs_processing:
            self._ensure_function_events()
        return "<unfinished torch.autograd.profile>" if self._function_events is None else str(self._function_events)

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
        return self.function_events.table(sort_by, row_limit, *widths, header, top_level_events_only)

    def export_chrome_trace(
        self, path: str, metadata: dict[str, str] | None = None, use_python_export: bool = False
    ) -> None:
        """Write the trace as JSON for chrome://tracing and Perfetto; there is one way of writing it here."""
        if self.kineto_results is None:
            raise AssertionError("Expected profiling results")
        self.kineto_results.session.metadata.update(metadata or {})
        self.kineto_results.save(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """`EventList.export_stacks` of the events."""
        events = self.function_events
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        events.export_stacks(path, metric)

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """`EventList.key_averages` of the events."""
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self) -> Any:
        """`EventList.total_average` of the events."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """All time on the CPU: the sum of what each event took by itself."""
        return self.function_events.self_cpu_time_total


def _without_trace_only(config: ExperimentalConfig, with_stack: bool) -> ExperimentalConfig:
    if config.trace_only and with_stack:
        warnings.warn(
            "trace_only=True is incompatible with with_stack=True (stack traces require event post-processing). "
            "Disabling trace_only.",
            stacklevel=3,
        )
        config = copy.copy(config)
        config.trace_only = False
    return config


class record_function(ContextDecorator):
    """Names a stretch of a program, or a function, in profiles; costs next to nothing where nobody profiles."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        # False once the end has been left to a future.
        self.run_callbacks_on_exit = True
        self.record: Any = None

    def __enter__(self) -> record_function:
        for what, value in (("name", self.name), ("args", self.args)):
            if not isinstance(value, str) and (what == "name" or value is not None):
                kind = "str" if what == "name" else "Optional[str]"
                raise RuntimeError(
                    f"profiler::_record_function_enter_new() Expected a value of type '{kind}' for argument '{what}' "
                    f"but instead found type '{type(value).__name__}'."
                )
        self.record = recorder.annotate(self.name, self.args) or False
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        if not self.run_callbacks_on_exit:
            return
        if self.record is None:
            raise AssertionError("Expected record to be set")
        if self.record:
            recorder.close(self.record)

    def _call_end_callbacks_on_future(self, fut: Any) -> Any:
        """Let the stretch end when a future is done; a future with the same value is returned."""
        if not self.run_callbacks_on_exit:
            raise RuntimeError("_call_end_callbacks_on_future can only be called once.")
        self.run_callbacks_on_exit = False
        if self.record is None:
            raise AssertionError("Expected record to be set")
        record = self.record

        def done(finished: Any) -> Any:
            if record:
                recorder.close(record)
            return finished.value()

        return fut.then(done)


class _Refused:
    """A context that would need a library that is not here."""

    _why = ""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.entered = False
        self.record_shapes = record_shapes

    def __enter__(self) -> None:
        if self.enabled:
            self._refuse()

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        return None

    def _refuse(self) -> NoReturn:
        raise NotImplementedError(self._why)


class emit_itt(_Refused):
    """Ranges for Intel's VTune; refused."""

    _why = "emit_itt: ranges of Intel's ITT library are not supported; use torch.profiler.profile"


class emit_nvtx(_Refused):
    """Ranges for NVIDIA's profilers; refused, as by a PyTorch without CUDA."""

    def _refuse(self) -> NoReturn:
        raise AssertionError("Torch not compiled with CUDA enabled")


def load_nvprof(path: str) -> NoReturn:
    """Refused: there are no traces of nvprof without CUDA."""
    parse_nvprof_trace(path)


def parse_nvprof_trace(path: str) -> NoReturn:
    """Refused: there are no traces of nvprof without CUDA."""
    raise NotImplementedError(f"parse_nvprof_trace: traces of nvprof are not read here, got {path!r}")


class EnforceUnique:
    """Raises when a key is seen twice."""

    def __init__(self) -> None:
        self.seen: set[tuple[Any, ...]] = set()

    def see(self, *key: Any) -> None:
        if key in self.seen:
            raise RuntimeError("duplicate key: " + str(key))
        self.seen.add(key)


class KinetoStepTracker:
    """Counts steps for each of those who count them; the step of all is the largest."""

    _current_step = 0
    _step_dict: dict[str, int] = defaultdict(int)

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """One more step of `requester`; the step of all."""
        if requester not in cls._step_dict:
            cls.init_step_count(requester)
        cls._step_dict[requester] += 1
        new = max(cls._step_dict.values())
        if new > cls._current_step:
            if new - cls._current_step > 1:
                warnings.warn(
                    "Profiler step count has increased more than 1 - "
                    f"current_step = {cls._current_step} step dict =  {cls._step_dict}",
                    stacklevel=2,
                )
            cls._current_step = new
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        return cls._current_step
