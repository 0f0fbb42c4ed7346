"""`torch.profiler.profile` and what it takes: activities, schedules, and what is done with a finished trace.

Invariant: the profiler is in the state that the schedule gave for the current step; a change of state is a list of
actions in `action_map`, and no other code starts or stops a trace.
"""

from __future__ import annotations

import gzip
import os
import shutil
import socket
import tempfile
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from enum import Enum
from functools import partial
from typing import Any

from .._profiler import recorder
from .._profiler.kinds import ExperimentalConfig, ProfilerActivity
from ..autograd import profiler as prof
from ._memory_profiler import MemoryProfileTimeline

__all__ = [
    "supported_activities",
    "ProfilerAction",
    "schedule",
    "tensorboard_trace_handler",
    "profile",
    "ExecutionTraceObserver",
]
PROFILER_STEP_NAME = "ProfilerStep"

_Activities = Iterable["ProfilerActivity | dict[ProfilerActivity, list[str]]"]
_shown: set[str] = set()


def _warn_once(text: str) -> None:
    if text not in _shown:
        _shown.add(text)
        warnings.warn(text, stacklevel=3)


def kineto_available() -> bool:
    """Whether traces with devices can be had; PyTorch's name for it is that of its library."""
    return True


def supported_activities() -> set[ProfilerActivity]:
    """What can be recorded here: the CPU, and NPUs where there are any."""
    return prof._supported_activities()


class _ITraceObserver(ABC):
    """What `execution_trace_observer` must have."""

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def stop(self) -> None: ...

    @abstractmethod
    def cleanup(self) -> None: ...


def _parse_activities(activities: _Activities) -> tuple[set[ProfilerActivity], dict[ProfilerActivity, set[str]]]:
    """The activities, and for those given as a dict the names of what is wanted of each."""
    found: set[ProfilerActivity] = set()
    filters: dict[ProfilerActivity, set[str]] = {}
    for item in activities:
        if isinstance(item, ProfilerActivity):
            pairs: list[tuple[ProfilerActivity, Any]] = [(item, None)]
        elif isinstance(item, dict):
            pairs = list(item.items())
        else:
            raise TypeError(f"Expected ProfilerActivity or dict, got {type(item)}")
        for activity, names in pairs:
            if activity in found:
                raise ValueError(f"Activity {activity} specified more than once")
            found.add(activity)
            if names is not None:
                filters[activity] = set(names)
    return found, filters


_DEVICES = {"CUDA": "cuda", "XPU": "xpu", "MTIA": "mtia", "HPU": "hpu", "PrivateUse1": "npu"}


class _KinetoProfile:
    """A profile that is started and stopped by calls."""

    def __init__(
        self,
        *,
        activities: _Activities | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: ExperimentalConfig | None = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        self.activities, self.activity_filters = (
            (supported_activities(), {}) if activities is None else _parse_activities(activities)
        )
        self.record_shapes = record_shapes
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_modules = with_modules
        if experimental_config is not None:
            experimental_config = prof._without_trace_only(experimental_config, with_stack)
        self.experimental_config = experimental_config
        self.execution_trace_observer = execution_trace_observer
        self.acc_events = acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.profiler: prof.profile | None = None
        self.has_cudagraphs = False
        self.mem_tl: MemoryProfileTimeline | None = None
        names = [a.name for a in self.activities]
        self.use_device = next((device for name, device in _DEVICES.items() if name in names), None)
        self.preset_metadata: dict[str, str] = {}
        self._trace_metadata: dict[str, str] = {}

    def start(self) -> None:
        self.prepare_trace()
        self.start_trace()

    def stop(self) -> None:
        self.stop_trace()

    def prepare_trace(self) -> None:
        if self.profiler is not None and not self.acc_events:
            _warn_once(
                "Warning: Profiler clears events at the end of each cycle. Only events from the current cycle will be "
                "reported. To keep events across cycles, set acc_events=True."
            )
        if self.profiler is None or not self.acc_events:
            self.profiler = prof.profile(
                use_cpu=ProfilerActivity.CPU in self.activities,
                use_device=self.use_device,
                record_shapes=self.record_shapes,
                with_flops=self.with_flops,
                profile_memory=self.profile_memory,
                with_stack=self.with_stack,
                with_modules=self.with_modules,
                use_kineto=True,
                experimental_config=self.experimental_config,
                acc_events=self.acc_events,
                custom_trace_id_callback=self.custom_trace_id_callback,
                post_processing_timeout_s=self.post_processing_timeout_s,
                activity_filters=self.activity_filters or None,
            )
        self.profiler._prepare_trace()

    def start_trace(self) -> None:
        if self.execution_trace_observer:
            self.execution_trace_observer.start()
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before starting trace")
        self.profiler._start_trace()
        for name in ("profile_memory", "with_stack", "record_shapes", "with_modules", "with_flops"):
            if getattr(self, name):
                self.add_metadata_json(name, "1")
        for key, value in self.preset_metadata.items():
            self.add_metadata_json(key, value)

    def stop_trace(self) -> None:
        if self.execution_trace_observer:
            self.execution_trace_observer.stop()
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before stopping trace")
        self.profiler.__exit__(None, None, None)

    def _finished(self, what: str) -> prof.profile:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {what}")
        return self.profiler

    # -- what comes out ---------------------------------------------------------------------------------------------
    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Write the last cycle's trace as JSON, packed if the path ends in `.gz`."""
        done = self._finished("exporting chrome trace")
        if not path.endswith(".gz"):
            done.export_chrome_trace(path, self._trace_metadata, use_python_export)
            return
        with tempfile.TemporaryDirectory() as folder:
            plain = os.path.join(folder, "trace.json")
            done.export_chrome_trace(plain, self._trace_metadata, use_python_export)
            _pack(plain, path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks with what was spent in them, for flame graphs."""
        self._finished("exporting stacks").export_stacks(path, metric)

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Stop recording activities for a while, or go on with it."""
        if self.profiler is not None:
            self.profiler.toggle_collection_dynamic(enable, activities)

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> prof.EventList:
        """Averages by operator, and if asked by shapes, frames or overload; print `.table()` of them."""
        done = self._finished("getting key averages")
        return done.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def events(self) -> prof.EventList:
        """Every event, in order of time."""
        done = self._finished("accessing events")
        return done.function_events

    def add_metadata(self, key: str, value: str) -> None:
        """Put a text into the trace."""
        self.add_metadata_json(key, '"' + value.replace('"', '\\"') + '"')

    def add_metadata_json(self, key: str, value: str) -> None:
        """Put a value, given as JSON, into the trace."""
        self._trace_metadata[key] = value
        if recorder.Active.session is not None:
            recorder.Active.session.metadata[key] = value

    def preset_metadata_json(self, key: str, value: str) -> None:
        """Put a value into the trace that has yet to begin."""
        self.preset_metadata[key] = value

    def _memory_profile(self) -> Any:
        missing = [n for n in ("record_shapes", "profile_memory", "with_stack") if not getattr(self, n)]
        if missing:
            raise ValueError(f"{', '.join(n + '=True' for n in missing)} required for memory profiling.")
        if self.profiler is None or self.profiler.kineto_results is None:
            raise AssertionError("Profiler and kineto_results must be initialized for memory profiling")
        return self.profiler.kineto_results.session

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Write memory over time by category: `.json`, `.json.gz`, `.raw.json.gz` or a picture in `.html`."""
        warnings.warn(
            "`export_memory_timeline` is deprecated and will be removed in a future version. Please use "
            "`torch.cuda.memory._record_memory_history` and `torch.cuda.memory._export_memory_snapshot` instead.",
            FutureWarning,
            stacklevel=2,
        )
        where = device or (self.use_device + ":0" if self.use_device else "cpu")
        self.mem_tl = MemoryProfileTimeline(self._memory_profile())
        if path.endswith(".html"):
            self.mem_tl.export_memory_timeline_html(path, where)
        elif path.endswith(".gz"):
            with tempfile.TemporaryDirectory() as folder:
                plain = os.path.join(folder, "timeline.json")
                if path.endswith("raw.json.gz"):
                    self.mem_tl.export_memory_timeline_raw(plain, where)
                else:
                    self.mem_tl.export_memory_timeline(plain, where)
                _pack(plain, path)
        else:
            self.mem_tl.export_memory_timeline(path, where)


def _pack(plain: str, path: str) -> None:
    with open(plain, "rb") as source, gzip.open(path, "wb") as out:
        shutil.copyfileobj(source, out)


class ProfilerAction(Enum):
    """What a step of a schedule is for; `DEVICE_STOPPED` is the profiler's own."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """After `skip_first` steps, cycles of `wait` idle steps, `warmup` steps and `active` recorded ones; `repeat` of
    them, or 0 for as many as there are steps. `skip_first_wait` leaves out the first cycle's wait."""
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), "
            f"active={active} (need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)
    cycle = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step = step - skip_first + (wait if skip_first_wait != 0 else 0)
        at = step % cycle
        if at < wait or (repeat > 0 and step >= repeat * cycle):
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if at < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def _always(_: int) -> ProfilerAction:
    return ProfilerAction.RECORD


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False, use_python_export: bool = False
) -> Callable[[Any], None]:
    """For `on_trace_ready`: writes each trace into a folder that TensorBoard reads."""

    def handler(profiled: Any) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except Exception as e:
            raise RuntimeError("Can't create directory: " + dir_name) from e
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        profiled.export_chrome_trace(os.path.join(dir_name, name), use_python_export=use_python_export)

    return handler


def _checked(action: ProfilerAction) -> ProfilerAction:
    if action == ProfilerAction.DEVICE_STOPPED:
        raise ValueError(
            "ProfilerAction.DEVICE_STOPPED is set internally by the profiler and must not be returned by a "
            "user-provided schedule"
        )
    return action


class profile(_KinetoProfile):
    """`with profile() as p:` records until the block ends, or, with a `schedule`, the steps between calls of `p.step()`
    that the schedule chose, each cycle ending in `on_trace_ready(p)`."""

    def __init__(
        self,
        *,
        activities: _Activities | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: ExperimentalConfig | None = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        if activities is not None:
            activities = list(activities)
        if use_cuda is not None:
            warnings.warn("`use_cuda` is deprecated, use `activities` argument instead", FutureWarning, stacklevel=2)
        named = [] if activities is None else [a for a in activities if isinstance(a, (ProfilerActivity, dict))]
        if activities is not None and not named and not use_cuda:
            raise AssertionError("No valid profiler activities found")
        super().__init__(
            activities=activities,
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_flops=with_flops,
            with_modules=with_modules,
            experimental_config=experimental_config,
            execution_trace_observer=execution_trace_observer
            or ExecutionTraceObserver.build_execution_trace_obs_from_env(),
            acc_events=acc_events,
            custom_trace_id_callback=custom_trace_id_callback,
            post_processing_timeout_s=post_processing_timeout_s,
        )
        self.schedule = schedule or _always
        # With a schedule, steps show in the trace.
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.step_rec_fn: prof.record_function | None = None
        self.current_action = _checked(self.schedule(0))
        self.action_map = self._actions()
        prof.KinetoStepTracker.init_step_count(PROFILER_STEP_NAME)

    def _actions(self) -> dict[tuple[ProfilerAction, ProfilerAction | None], list[Callable[[], Any]]]:
        """What is done when one state follows another; None is the end."""
        none, warmup, record, save = list(ProfilerAction)[:4]
        prepare, start, stop, ready = self.prepare_trace, self.start_trace, self.stop_trace, self._trace_ready

        def wrong(first: str, then: str) -> Callable[[], Any]:
            return partial(warnings.warn, f"Incorrect schedule: {first} followed by {then}")

        return {
            (none, none): [],
            (none, warmup): [prepare],
            (none, record): [prepare, start],
            (none, save): [prepare, start],
            (warmup, none): [wrong("WARMUP", "NONE"), start, stop],
            (warmup, warmup): [],
            (warmup, record): [start],
            (warmup, save): [start],
            (record, none): [wrong("RECORD", "NONE"), stop],
            (record, warmup): [wrong("RECORD", "WARMUP"), stop],
            (record, record): [],
            (record, save): [],
            (save, none): [stop, ready],
            (save, warmup): [stop, ready, prepare],
            (save, record): [stop, ready, prepare, start],
            (save, save): [stop, ready, prepare, start],
            (warmup, None): [start, stop],
            (record, None): [stop, ready],
            (save, None): [stop, ready],
        }

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        self.stop()
        prof.KinetoStepTracker.erase_step_count(PROFILER_STEP_NAME)
        if self.execution_trace_observer:
            self.execution_trace_observer.cleanup()

    def start(self) -> None:
        self._transit_action(ProfilerAction.NONE, self.current_action)
        self._mark_step()

    def stop(self) -> None:
        self._end_step()
        self._transit_action(self.current_action, None)

    def step(self) -> None:
        """The next step begins."""
        self._end_step()
        before = self.current_action
        self.current_action = _checked(self.schedule(self.step_num + 1))
        self.step_num += 1
        self._transit_action(before, self.current_action)
        if os.environ.get("KINETO_USE_DAEMON", ""):
            prof.KinetoStepTracker.increment_step(PROFILER_STEP_NAME)
        self._mark_step()

    def _mark_step(self) -> None:
        if self.record_steps:
            self.step_rec_fn = prof.record_function("ProfilerStep#" + str(self.step_num))
            self.step_rec_fn.__enter__()

    def _end_step(self) -> None:
        if self.step_rec_fn is not None:
            ended, self.step_rec_fn = self.step_rec_fn, None
            ended.__exit__(None, None, None)

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """Have the ids of the cycles to come made by `callback`."""
        self.custom_trace_id_callback = callback

    def get_trace_id(self) -> str | None:
        """The id of the current cycle's trace."""
        return None if self.profiler is None else self.profiler.trace_id

    def _trace_ready(self) -> None:
        if self.on_trace_ready:
            self.on_trace_ready(self)

    def _transit_action(self, before: ProfilerAction, after: ProfilerAction | None) -> None:
        for action in self.action_map.get((before, after), ()):
            action()

    def _stats(self) -> prof._ProfilerStats | None:
        return None if self.profiler is None else self.profiler._stats


class ExecutionTraceObserver(_ITraceObserver):
    """PyTorch's execution traces, which its own tools replay. They are not written here: registering is refused."""

    def __init__(self) -> None:
        self._registered = False
        self.extra_resources_collection = False
        self.output_file_path = ""

    @staticmethod
    def build_execution_trace_obs_from_env() -> ExecutionTraceObserver | None:
        if os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE", "0") == "1":
            warnings.warn(
                "Execution trace will not be recorded: ENABLE_PYTORCH_EXECUTION_TRACE is not supported", stacklevel=3
            )
        return None

    def register_callback(self, output_file_path: str) -> ExecutionTraceObserver:
        raise NotImplementedError(
            "ExecutionTraceObserver.register_callback: execution traces are not supported; use "
            "profile.export_chrome_trace"
        )

    def unregister_callback(self) -> None:
        """Nothing is ever registered."""

    @property
    def is_registered(self) -> bool:
        return self._registered

    def is_running(self) -> bool:
        return False

    def start(self) -> None:
        """Nothing is registered that could start."""

    def stop(self) -> None:
        """Nothing runs."""

    def cleanup(self) -> None:
        self.unregister_callback()

    def get_output_file_path(self) -> str | None:
        return self.output_file_path or None

    def set_extra_resource_collection(self, val: bool) -> None:
        if val:
            raise NotImplementedError(
                "ExecutionTraceObserver.set_extra_resource_collection: execution traces are not supported"
            )

    def get_resources_dir(self, can_create: bool = False) -> str | None:
        return None
