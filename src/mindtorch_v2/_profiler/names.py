"""Names of `torch._C._profiler`, `torch._C._autograd` and `torch.autograd` that other programs look for."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from .._dtype import uint8
from .._tensor_base import TensorBase
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


class CapturedTraceback:
    """The Python frames that called, innermost first."""

    def __init__(self, frame: Any) -> None:
        self._frames: list[tuple[str, str, int]] = []
        while frame is not None:
            self._frames.append((frame.f_code.co_name, frame.f_code.co_filename, frame.f_lineno))
            frame = frame.f_back


def gather_traceback(python: bool = True, script: bool = True, cpp: bool = True) -> CapturedTraceback:
    """Where the program is: frames of Python; scripts and C++ have none here."""
    return CapturedTraceback(sys._getframe(1) if python else None)


def symbolize_tracebacks(arg0: list[CapturedTraceback]) -> list[list[dict[str, Any]]]:
    """Names, files and lines of frames."""
    return [[{"name": n, "filename": f, "line": line} for n, f, line in each._frames] for each in arg0]


class _RecordFunction:
    """What `_record_function_enter_new` answers: a stretch of a program that has begun."""

    def __init__(self, name: str, arg: str | None) -> None:
        self.record = recorder.annotate(name, arg)

    def __repr__(self) -> str:
        return "ScriptObject <__torch__.torch.classes.profiler._RecordFunction>"

    def end(self) -> None:
        record, self.record = self.record, None
        if record is not None:
            recorder.close(record)


def _record_function_with_args_enter(arg0: str, *args: Any) -> _RecordFunction:
    """Begin a stretch; its arguments, of which PyTorch's profiles show the shapes, cannot be recorded here."""
    if args:
        raise NotImplementedError("_record_function_with_args_enter: arguments are not recorded; give the name alone")
    return _RecordFunction(arg0, None)


def _record_function_with_args_exit(arg0: _RecordFunction) -> None:
    """End it."""
    arg0.end()


# -- torch.ops.profiler -------------------------------------------------------------------------------------------
# Stretches that a tensor stands for, by the number it holds.
_BY_TENSOR: dict[int, _RecordFunction] = {}


def _record_function_enter(name: str, args: str | None = None) -> Any:
    from .. import _from_data

    record = _RecordFunction(name, args)
    number = id(record)
    _BY_TENSOR[number] = record
    return _from_data.tensor(list(number.to_bytes(8, "little")), dtype=uint8)


def _record_function_exit(handle: Any) -> None:
    if isinstance(handle, TensorBase):
        number = int.from_bytes(bytes(handle.tolist()), "little")
        handle = _BY_TENSOR.pop(number, None)
        if handle is None:
            raise RuntimeError("_record_function_exit: the handle is not one of _record_function_enter")
    elif not isinstance(handle, _RecordFunction):
        raise RuntimeError(
            "Overloaded torch operator invoked from Python failed to match any schema:\n"
            "profiler::_record_function_exit() Expected a value of type 'Tensor' for argument 'handle' but instead "
            f"found type '{type(handle).__name__}'."
        )
    handle.end()


class _Operator:
    """One of `torch.ops.profiler`: it records, and is itself below what is recorded."""

    def __init__(self, fn: Any, overloads: tuple[str, ...] = ("default",)) -> None:
        self._fn = fn
        self._overloads = overloads
        self.__name__ = fn.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._fn(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name not in self.__dict__.get("_overloads", ()):
            raise AttributeError(
                f"The underlying op of 'profiler.{self.__dict__.get('__name__')}' has no overload name '{name}'"
            )
        return self

    def overloads(self) -> list[str]:
        return list(self._overloads)


def _record_function_enter_new(name: str, args: str | None = None) -> _RecordFunction:
    if not isinstance(name, str):
        raise RuntimeError(
            "profiler::_record_function_enter_new() Expected a value of type 'str' for argument 'name' but instead "
            f"found type '{type(name).__name__}'."
        )
    return _RecordFunction(name, args)


OPERATORS = {
    "_record_function_enter": _Operator(_record_function_enter),
    "_record_function_enter_new": _Operator(_record_function_enter_new),
    "_record_function_exit": _Operator(_record_function_exit, ("default", "_RecordFunction")),
}


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
