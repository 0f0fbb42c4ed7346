"""Names of `torch._C._profiler`, `torch._C._autograd` and `torch.autograd` that other programs look for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..autograd.profiler import _supported_activities as _supported_activities
from ..autograd.profiler import record_function
from . import recorder
from .kinds import ActiveProfilerType as ActiveProfilerType
from .kinds import DeviceType as DeviceType
from .kinds import ExperimentalConfig, ProfilerState
from .kinds import ProfilerActivity as ProfilerActivity
from .kinds import ProfilerConfig as ProfilerConfig
from .kinds import RecordScope as RecordScope
from .result import KinetoEvent, ProfilerResult

_ExperimentalConfig = ExperimentalConfig
_KinetoEvent = KinetoEvent
_ProfilerResult = ProfilerResult


class _RecordFunctionFast(record_function):
    """`record_function` under the name of PyTorch's quick one; arguments for the trace are refused."""

    def __init__(self, name: str, input_values: Any = None, keyword_values: Any = None) -> None:
        if input_values or keyword_values:
            raise NotImplementedError("_RecordFunctionFast(): argument 'input_values' is not supported")
        super().__init__(name)


def kineto_available() -> bool:
    return True


def _profiler_enabled() -> bool:
    """Whether this thread is profiled."""
    return recorder.enabled()


def _profiler_type() -> ActiveProfilerType:
    return ActiveProfilerType.KINETO if recorder.enabled() else ActiveProfilerType.NONE


def _is_kineto_stopped() -> bool:
    """Whether a device gave up recording: an NPU's events do not overflow."""
    return False


def _kineto_step() -> None:
    """Tells a tracing daemon of a step; there is none."""


def _add_metadata_json(key: str, value: str) -> None:
    """Put a value, given as JSON, into the trace that is recorded now."""
    if recorder.Active.session is not None:
        recorder.Active.session.metadata[key] = value


def _prepare_profiler(config: ProfilerConfig, activities: set[ProfilerActivity], activity_filter: Any = None) -> None:
    """Everything is ready at once here."""
    if activity_filter:
        raise NotImplementedError("_prepare_profiler(): argument 'activity_filter' is not supported")


def _enable_profiler(config: ProfilerConfig, activities: set[ProfilerActivity], scopes: Any = ()) -> None:
    """Begin recording; `_disable_profiler` returns what was recorded."""
    if config.state in (ProfilerState.NVTX, ProfilerState.ITT) or scopes:
        raise NotImplementedError(f"_enable_profiler(): {config.state} and scopes are not supported")
    recorder.start(
        recorder.Options(
            cpu=ProfilerActivity.CPU in activities,
            npu=ProfilerActivity.NPU in activities,
            shapes=config.report_input_shapes,
            memory=config.profile_memory,
            stack=config.with_stack,
            flops=config.with_flops,
            verbose=config.experimental_config.verbose,
            overloads=config.experimental_config.capture_overload_names,
        )
    )


def _disable_profiler() -> ProfilerResult:
    return ProfilerResult(recorder.stop(), set())


def _toggle_collection_dynamic(enabled: bool, activities: Iterable[ProfilerActivity]) -> None:
    """Stop recording activities for a while, or go on with it."""
    recorder.toggle(enabled, activities)
