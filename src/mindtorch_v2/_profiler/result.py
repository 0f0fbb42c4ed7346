"""What a session leaves behind: PyTorch's `_ProfilerResult`, its events as lists of `FunctionEvent`, and its trace.

Invariant: times of events are relative to the beginning of the session.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from time import perf_counter_ns
from typing import Any

from ..autograd.profiler_util import FunctionEvent, _filter_name, _filter_stack_entry, _rewrite_name
from .kinds import DeviceType
from .recorder import BACKWARD, Record, Session

# PyTorch's names for groups of events, as `activities=[{activity: names}]` takes them, and ours for each.
_CPU_KINDS = {
    "CPU_OP": "cpu_op",
    "USER_ANNOTATION": "user_annotation",
    "PYTHON_FUNCTION": "python_function",
    "CPU_INSTANT_EVENT": "cpu_instant_event",
}
_NPU_KINDS = {"CONCURRENT_KERNEL": "kernel", "GPU_MEMCPY": "gpu_memcpy", "PRIVATEUSE1_RUNTIME": "privateuse1_runtime"}


def wanted_kinds(filters: dict[Any, set[str]]) -> set[str]:
    """The kinds of events that filters leave out."""
    out: set[str] = set()
    for activity, names in filters.items():
        known = _CPU_KINDS if activity.name == "CPU" else _NPU_KINDS if activity.name == "PrivateUse1" else {}
        for name in names:
            if name not in known:
                raise RuntimeError(f"Unknown or non-member activity type name: '{name}'")
        out |= {kind for name, kind in known.items() if name not in names}
    return out


class KinetoEvent:
    """One record, asked by methods as PyTorch's is."""

    def __init__(self, record: Record, forward: int) -> None:
        self._r = record
        self._forward = forward

    def name(self) -> str:
        return self._r.name

    def overload_name(self) -> str:
        return self._r.overload

    def start_ns(self) -> int:
        return self._r.start

    def end_ns(self) -> int:
        return self._r.end

    def duration_ns(self) -> int:
        return self._r.end - self._r.start

    def start_thread_id(self) -> int:
        return self._r.thread.number

    def end_thread_id(self) -> int:
        return self._r.thread.number

    def fwd_thread_id(self) -> int:
        return self._forward

    def device_type(self) -> DeviceType:
        return self._r.device_type

    def device_index(self) -> int:
        return max(self._r.device, 0)

    def device_resource_id(self) -> int:
        return self._r.stream if self._r.device >= 0 else self._r.thread.native

    def correlation_id(self) -> int:
        return self._r.number

    def linked_correlation_id(self) -> int:
        return self._r.linked

    def external_id(self) -> int:
        return self._r.number if self._r.linked == 0 else self._r.linked

    def scope(self) -> int:
        return self._r.scope

    def sequence_nr(self) -> int:
        return self._r.sequence

    def shapes(self) -> list[list[int]]:
        return [] if self._r.inputs is None else self._r.inputs.shapes

    def structured_input_shapes(self) -> list[Any]:
        return [] if self._r.inputs is None else self._r.inputs.dims

    def structured_input_strides(self) -> list[Any]:
        return [] if self._r.inputs is None else self._r.inputs.strides

    def dtypes(self) -> list[str]:
        return [] if self._r.inputs is None else self._r.inputs.dtypes

    def concrete_inputs(self) -> list[Any]:
        return [] if self._r.inputs is None else self._r.inputs.values

    def kwinputs(self) -> dict[str, Any]:
        return {}

    def stack(self) -> list[str]:
        return list(self._r.stack)

    def flops(self) -> int:
        return self._r.flops

    def nbytes(self) -> int:
        return self._r.nbytes

    def is_async(self) -> bool:
        return self._r.detached

    def is_user_annotation(self) -> bool:
        return self._r.kind == "user_annotation"

    def is_python_function(self) -> bool:
        return self._r.kind == "python_function"

    def activity_type(self) -> str:
        return self._r.kind

    def python_id(self) -> int:
        return self._r.python[0]

    def python_parent_id(self) -> int:
        return self._r.python[1]

    def python_module_id(self) -> int:
        return self._r.module


class ProfilerResult:
    """The records of a session, without the kinds that were filtered out."""

    def __init__(self, session: Session, left_out: set[str]) -> None:
        if left_out:
            session.records = [r for r in session.records if r.kind not in left_out]
        self.session = session

    def trace_start_ns(self) -> int:
        return self.session.start

    def events(self) -> list[KinetoEvent]:
        made = {r.sequence: r.thread.number for r in self.session.records if r.sequence >= 0 and r.scope != BACKWARD}
        return [
            KinetoEvent(r, made.get(r.sequence, 0) if r.scope == BACKWARD or _evaluates(r) else 0)
            for r in self.session.records
        ]

    def save(self, path: str) -> None:
        """The trace, for chrome://tracing and Perfetto."""
        from .chrome import Writer

        Writer(self.session).write(path, self.session.metadata)

    def experimental_event_tree(self) -> Any:
        raise NotImplementedError("_ProfilerResult.experimental_event_tree is not supported: use events()")


def _evaluates(r: Record) -> bool:
    return r.name.startswith("autograd::engine::evaluate_function: ")


class _Memory:
    """Memory records by time; those that no event spans are events by themselves."""

    def __init__(self, events: list[KinetoEvent]) -> None:
        self.events = sorted((e for e in events if e.activity_type() == "cpu_instant_event"), key=KinetoEvent.start_ns)
        self.times = [e.start_ns() for e in self.events]
        self.spanned = [False] * len(self.events)

    def within(self, start: int, end: int) -> tuple[int, int]:
        """Bytes of the host and of devices that were taken between two times."""
        host = device = 0
        for i in range(bisect_left(self.times, start), bisect_right(self.times, end)):
            self.spanned[i] = True
            if self.events[i]._r.device < 0:
                host += self.events[i].nbytes()
            else:
                device += self.events[i].nbytes()
        return host, device

    def alone(self) -> list[KinetoEvent]:
        return [e for e, seen in zip(self.events, self.spanned) if not seen]


def function_events(result: ProfilerResult, use_device: str | None, timeout_s: float | None) -> tuple[list[Any], bool]:
    """The events of a result in order of time, and whether time ran out before all were made."""
    limit = None if timeout_s is None else perf_counter_ns() + int(timeout_s * 1e9)
    events = result.events()
    memory = _Memory(events)
    start = result.trace_start_ns()
    out: list[FunctionEvent] = []
    started: dict[int, list[FunctionEvent]] = {}
    late = False
    for e in events:
        if limit is not None and perf_counter_ns() >= limit:
            late = True
            break
        if _filter_name(e.name()):
            continue
        made = _function_event(e, start, memory, use_device)
        out.append(made)
        if e.linked_correlation_id() > 0 and e.device_type() != DeviceType.CPU:
            started.setdefault(e.linked_correlation_id(), []).append(made)
    for made in out:
        if made.device_type == DeviceType.CPU and made.linked_correlation_id == 0:
            for kernel in started.get(made.id, ()):
                made.append_kernel(kernel.name, kernel.device_index, kernel.time_range.elapsed_us())
    number = max((made.id for made in out), default=0)
    for e in [] if late else memory.alone():
        number += 1
        out.append(_memory_event(e, number, start, use_device))
    out.sort(key=lambda f: [f.time_range.start, -f.time_range.end])
    return out, late


def _function_event(e: KinetoEvent, start: int, memory: _Memory, use_device: str | None) -> FunctionEvent:
    host, device = memory.within(e.start_ns(), e.end_ns()) if e.device_type() == DeviceType.CPU else (0, 0)
    on_device = e.device_type() != DeviceType.CPU
    meta = {"stream": str(e.device_resource_id())} if on_device else {}
    if on_device and e.nbytes():
        meta["bytes"] = str(e.nbytes())
    return FunctionEvent(
        id=e.correlation_id(),
        name=_rewrite_name(e.name(), with_wildcard=True),
        overload_name=e.overload_name(),
        trace_name=e.name(),
        thread=e.start_thread_id(),
        start_us=(e.start_ns() - start) / 1000,
        end_us=(e.end_ns() - start) / 1000,
        fwd_thread=e.fwd_thread_id(),
        input_shapes=e.shapes(),
        concrete_inputs=e.concrete_inputs(),
        kwinputs=e.kwinputs(),
        stack=[entry for entry in e.stack() if _filter_stack_entry(entry)],
        scope=e.scope(),
        use_device=use_device,
        cpu_memory_usage=host,
        device_memory_usage=device,
        is_async=e.is_async(),
        sequence_nr=e.sequence_nr(),
        device_type=e.device_type(),
        device_index=e.device_index(),
        device_resource_id=e.device_resource_id(),
        flops=e.flops(),
        is_user_annotation=e.is_user_annotation(),
        is_python_function=e.is_python_function(),
        activity_type=e.activity_type(),
        external_id=e.external_id(),
        linked_correlation_id=e.linked_correlation_id(),
        extra_meta=meta,
        structured_input_shapes=e.structured_input_shapes(),
        structured_input_strides=e.structured_input_strides(),
        input_dtypes=e.dtypes(),
        python_id=e.python_id(),
        python_parent_id=e.python_parent_id(),
        python_module_id=e.python_module_id(),
    )


def _memory_event(e: KinetoEvent, number: int, start: int, use_device: str | None) -> FunctionEvent:
    at = (e.start_ns() - start) / 1000
    host = e._r.device < 0
    return FunctionEvent(
        id=number,
        name=e.name(),
        overload_name="",
        trace_name=None,
        thread=e.start_thread_id(),
        start_us=at,
        end_us=at,
        fwd_thread=e.start_thread_id(),
        input_shapes=[],
        stack=[],
        use_device=use_device,
        cpu_memory_usage=e.nbytes() if host else 0,
        device_memory_usage=0 if host else e.nbytes(),
    )
