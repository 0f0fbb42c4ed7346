"""`torch.profiler`: what a program spends its time and memory on, on the host and on NPUs."""

from __future__ import annotations

from .._profiler.kinds import DeviceType as DeviceType
from .._profiler.kinds import ExperimentalConfig as _ExperimentalConfig  # noqa: F401 (PyTorch's name)
from .._profiler.kinds import ProfilerActivity as ProfilerActivity
from .._profiler.kinds import RecordScope as RecordScope
from ..autograd.profiler import KinetoStepTracker as KinetoStepTracker
from ..autograd.profiler import _supported_activities as _supported_activities
from ..autograd.profiler import record_function as record_function
from . import itt as itt
from .profiler import ExecutionTraceObserver as ExecutionTraceObserver
from .profiler import ProfilerAction as ProfilerAction
from .profiler import _KinetoProfile as _KinetoProfile
from .profiler import kineto_available as kineto_available
from .profiler import profile as profile
from .profiler import schedule as schedule
from .profiler import supported_activities as supported_activities
from .profiler import tensorboard_trace_handler as tensorboard_trace_handler

__all__ = [
    "profile",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "DeviceType",
    "record_function",
    "ExecutionTraceObserver",
]
