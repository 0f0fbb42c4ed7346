"""`torch.autograd.profiler_util`: events of a profile, lists and averages of them.

Invariant: the times of an event are microseconds since the profile began; a child lies within its parent.
"""

from __future__ import annotations

import bisect
import json
import warnings
from collections import defaultdict, namedtuple
from collections.abc import Callable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from .._profiler.kinds import DeviceType
from .._profiler.table import Table, device_key
from .._profiler.table import format_time as _format_time

__all__ = [
    "EventList",
    "EventMetadata",
    "FormattedTimesMixin",
    "Interval",
    "Kernel",
    "FunctionEvent",
    "FunctionEventAvg",
    "StringTable",
    "MemRecordsAcc",
]

MEMORY_EVENT_NAME = "[memory]"
OUT_OF_MEMORY_EVENT_NAME = "[OutOfMemory]"
_HIDDEN = (
    *(MEMORY_EVENT_NAME, OUT_OF_MEMORY_EVENT_NAME, "profiler::_record_function_enter"),
    *("profiler::_record_function_enter_new", "profiler::_record_function_exit"),
    *("aten::is_leaf", "aten::output_nr", "aten::_version"),
)
# Frames that say nothing about the program: (part of the file, function).
_HIDDEN_FRAMES = (
    ("autograd/__init__", "_make_grads"),
    ("autograd/__init__", "backward"),
    ("torch/tensor", "backward"),
    ("_internal/common_utils", "prof_callable"),
    ("_internal/common_utils", "prof_func_call"),
    ("_internal/common_utils", "prof_meth_call"),
)
_METRICS = ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]


def _filter_name(name: str) -> bool:
    """Whether an event is left out of lists."""
    return name in _HIDDEN


def _filter_stack_entry(entry: str) -> bool:
    """Whether a frame is worth showing."""
    return not any(file in entry and function in entry for file, function in _HIDDEN_FRAMES)


def _rewrite_name(name: str, with_wildcard: bool = False) -> str:
    """All steps of a schedule are one line of a table."""
    return "ProfilerStep*" if with_wildcard and name.startswith("ProfilerStep#") else name


class EventList(list[Any]):
    """Events, or averages of them, with what can be asked of all."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._use_device = kwargs.pop("use_device", None)
        self._profile_memory = kwargs.pop("profile_memory", False)
        self._with_flops = kwargs.pop("with_flops", False)
        super().__init__(*args, **kwargs)
        self._tree_built = False

    def __str__(self) -> str:
        return self.table()

    # -- the tree ---------------------------------------------------------------------------------------------------
    def _build_tree(self) -> None:
        self._populate_cpu_children()
        self._remove_dup_nodes()
        self._set_backward_stacktraces()
        self._tree_built = True

    def _populate_cpu_children(self) -> None:
        """An event lies in the shortest one of its thread that spans it; what only overlaps has no parent."""
        events = sorted(
            (e for e in self if not e.is_async and e.device_type == DeviceType.CPU), key=attrgetter("thread")
        )
        for _, each in groupby(events, key=lambda e: (e.thread, e.node_id)):
            open_events: list[FunctionEvent] = []
            for event in sorted(each, key=lambda e: [e.time_range.start, -e.time_range.end]):
                while open_events:
                    parent = open_events[-1]
                    if event.time_range.start < parent.time_range.end and event.time_range.end <= parent.time_range.end:
                        parent.append_cpu_child(event)
                        if event.cpu_parent is not None:
                            raise AssertionError(f"There is already a CPU parent event for {event.key}")
                        event.set_cpu_parent(parent)
                        break
                    open_events.pop()
                open_events.append(event)

    def _remove_dup_nodes(self) -> None:
        """An only child with its parent's name is the same call."""
        while True:
            doubled = [
                e
                for e in self
                if e.cpu_parent is not None and e.cpu_parent.name == e.name and len(e.cpu_parent.cpu_children) == 1
            ]
            if not doubled:
                return
            for e in doubled:
                e.cpu_parent.cpu_children = e.cpu_children
                e.cpu_parent.kernels = e.kernels
                for child in e.cpu_children:
                    child.cpu_parent = e.cpu_parent
            gone = set(map(id, doubled))
            kept = [e for e in self if id(e) not in gone]
            self.clear()
            self.extend(kept)

    def _set_backward_stacktraces(self) -> None:
        """What runs in a backward pass has the stack of the forward call it belongs to."""

        def backward_of(e: FunctionEvent | None) -> FunctionEvent | None:
            while e is not None and e.scope != 1:
                e = e.cpu_parent
            return e

        stacks: dict[tuple[int, int | None], Any] = {}
        for e in self:
            if e.stack is not None and backward_of(e) is None:
                stacks.setdefault((e.sequence_nr, e.thread), e.stack)
        for e in self:
            node = backward_of(e)
            if node is not None:
                if node.fwd_thread is None:
                    raise AssertionError("Expected fwd_thread to be set for backward parent")
                e.stack = stacks.get((node.sequence_nr, node.fwd_thread), [])

    # -- sums -------------------------------------------------------------------------------------------------------
    @property
    def self_cpu_time_total(self) -> float:
        total: float = sum(e.self_cpu_time_total for e in self)
        return total

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """One average for each name, and if asked for each set of shapes, `n` frames, or overload."""
        if not self._tree_built:
            raise AssertionError("Expected tree to be built before calling key_averages")
        groups: dict[tuple[str, ...], FunctionEventAvg] = defaultdict(FunctionEventAvg)
        for e in self:
            key = [str(e.key), str(e.node_id), str(e.device_type), str(e.is_legacy), str(e.is_user_annotation)]
            if group_by_overload_name:
                key.append(e.overload_name)
            if group_by_input_shapes:
                key.append(str(e.input_shapes))
            if group_by_stack_n > 0:
                key += e.stack[:group_by_stack_n]
            groups[tuple(key)].add(e)
        out = EventList(
            groups.values(),
            use_device=self._use_device,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
        )
        for avg in out:
            avg.stack = avg.stack[:group_by_stack_n]
            if not group_by_input_shapes:
                avg.input_shapes = ""
            if not group_by_overload_name:
                avg.overload_name = ""
        return out

    def total_average(self) -> FunctionEventAvg:
        """Everything in one sum, called "Total"."""
        total = FunctionEventAvg()
        for e in self:
            total += e
            total.key = None
        total.key = "Total"
        return total

    # -- reports ----------------------------------------------------------------------------------------------------
    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The events as text; `sort_by` names an attribute, largest first, and `row_limit=-1` shows all of them."""
        if len(self) == 0:
            return ""
        events: Any = self
        if sort_by is not None:
            key = device_key(sort_by)
            events = sorted(self, key=lambda e: getattr(e, key), reverse=True)
        widths = max_src_column_width, max_name_column_width, max_shapes_column_width
        return Table(
            events, row_limit, widths, header, self._with_flops, self._profile_memory, top_level_events_only, time_unit
        ).text()

    def export_chrome_trace(self, path: str) -> None:
        """A list of events for chrome://tracing; `torch.profiler` writes more, with the rows of devices."""
        device = self._use_device or "cuda"
        out: list[dict[str, Any]] = []
        flows = 0
        for e in self:
            if e.trace_name is None:
                continue
            thread = f" node_id:{e.node_id}, thread_id:{e.thread} " if e.is_remote else e.thread
            where = {"ts": e.time_range.start, "tid": thread, "pid": "CPU functions"}
            out.append({"name": e.trace_name, "ph": "X", "dur": e.time_range.elapsed_us(), **where, "args": {}})
            for _ in e.kernels:
                out.append(
                    {"name": e.trace_name, "ph": "s", **where, "id": flows, "cat": f"cpu_to_{device}", "args": {}}
                )
                flows += 1
        with open(path, "w") as f:
            json.dump(out, f)

    def supported_export_stacks_metrics(self) -> list[str]:
        return list(_METRICS)

    def export_stacks(self, path: str, metric: str) -> None:
        """Stacks with what was spent in them, in the form that flame graphs are made of."""
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError("metric should be one of: " + str(self.supported_export_stacks_metrics()))
        plain = str.maketrans(" ;\t\n", "____")
        with open(path, "w") as f:
            for e in self:
                spent = int(getattr(e, device_key(metric))) if e.stack else 0
                if spent > 0:
                    f.write(";".join(entry.translate(plain) for entry in reversed(e.stack)) + f" {spent}\n")


def _time_text(name: str) -> property:
    return property(lambda self: _format_time(getattr(self, name)))


def _old_name(text: str, name: str) -> property:
    """An attribute under the name it had, with PyTorch's warning."""

    def get(self: Any) -> Any:
        warnings.warn(text, FutureWarning, stacklevel=2)
        return getattr(self, name)

    return property(get)


class FormattedTimesMixin:
    """Averages and texts of times, for what has totals and a `count`."""

    cpu_time_str = _time_text("cpu_time")
    device_time_str = _time_text("device_time")
    cpu_time_total_str = _time_text("cpu_time_total")
    device_time_total_str = _time_text("device_time_total")
    self_cpu_time_total_str = _time_text("self_cpu_time_total")
    self_device_time_total_str = _time_text("self_device_time_total")

    @property
    def cpu_time(self: Any) -> float:
        return 0.0 if self.count == 0 else 1.0 * self.cpu_time_total / self.count

    @property
    def device_time(self: Any) -> float:
        return 0.0 if self.count == 0 else 1.0 * self.device_time_total / self.count

    cuda_time = _old_name("`cuda_time` is deprecated, please use `device_time` instead.", "device_time")


class Interval:
    """From `start` to `end`, in microseconds."""

    def __init__(self, start: float, end: float) -> None:
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        return self.end - self.start


Kernel = namedtuple("Kernel", ["name", "device", "duration"])


class EventMetadata(NamedTuple):
    """What a device told of a kernel or copy; None where it said nothing."""

    registers_per_thread: int | None = None
    shared_memory: int | None = None
    grid: list[int] | None = None
    block: list[int] | None = None
    priority: int | None = None
    blocks_per_sm: float | None = None
    warps_per_sm: float | None = None
    occupancy: dict[str, Any] | None = None
    est_occupancy_pct: float | None = None
    queued: int | None = None
    graph_id: int | None = None
    graph_node_id: int | None = None
    stream: int | None = None
    context: int | None = None
    channel: int | None = None
    channel_type: int | None = None
    bytes: int | None = None
    bandwidth_gb_s: float | None = None
    collective_name: str | None = None
    dtype: str | None = None
    in_msg_nelems: int | None = None
    out_msg_nelems: int | None = None
    in_split_size: str | None = None
    out_split_size: str | None = None
    global_rank_start: int | None = None
    global_rank_stride: int | None = None
    group_size: int | None = None
    process_group_name: str | None = None
    process_group_desc: str | None = None
    group_ranks: str | None = None
    rank: int | None = None
    src_rank: int | None = None
    dst_rank: int | None = None
    seq: int | None = None
    is_async: bool | None = None


def _text(value: str) -> str:
    return value.strip('"')


# Names in traces, and how their texts are read.
_METADATA: dict[str, tuple[str, Callable[[str], Any]]] = {
    **{
        f"{n.replace('_', ' ')}": (n, int)
        for n in ("registers_per_thread", "shared_memory", "graph_id", "graph_node_id")
    },
    **{n: (n, int) for n in ("priority", "queued", "stream", "context", "channel", "channel_type", "bytes")},
    **{n: (n, json.loads) for n in ("grid", "block", "occupancy")},
    "blocks per SM": ("blocks_per_sm", float),
    "warps per SM": ("warps_per_sm", float),
    "est. achieved occupancy %": ("est_occupancy_pct", float),
    "memory bandwidth (GB/s)": ("bandwidth_gb_s", float),
    "Collective name": ("collective_name", _text),
    "dtype": ("dtype", _text),
    "In msg nelems": ("in_msg_nelems", int),
    "Out msg nelems": ("out_msg_nelems", int),
    "In split size": ("in_split_size", _text),
    "Out split size": ("out_split_size", _text),
    "Global rank start": ("global_rank_start", int),
    "Global rank stride": ("global_rank_stride", int),
    "Group size": ("group_size", int),
    "Process Group Name": ("process_group_name", _text),
    "Process Group Description": ("process_group_desc", _text),
    "Process Group Ranks": ("group_ranks", _text),
    "Rank": ("rank", int),
    "Src Rank": ("src_rank", int),
    "Dst Rank": ("dst_rank", int),
    "Seq": ("seq", int),
    "Is asynchronized op": ("is_async", lambda value: value in ("1", "true")),
}


def _build_metadata(extra: dict[str, str]) -> EventMetadata | None:
    found = {field: read(extra[key]) for key, (field, read) in _METADATA.items() if extra.get(key) is not None}
    return EventMetadata(**found) if found else None


_DEVICES = (DeviceType.CUDA, DeviceType.PrivateUse1, DeviceType.MTIA, DeviceType.HPU, DeviceType.XPU)


class FunctionEvent(FormattedTimesMixin):
    """One event of a profile."""

    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        overload_name: str | None = None,
        fwd_thread: int | None = None,
        input_shapes: Any = None,
        stack: Any = None,
        scope: int = 0,
        use_device: str | None = None,
        cpu_memory_usage: int = 0,
        device_memory_usage: int = 0,
        is_async: bool = False,
        is_remote: bool = False,
        sequence_nr: int = -1,
        node_id: int = -1,
        device_type: DeviceType = DeviceType.CPU,
        device_index: int = 0,
        device_resource_id: int | None = None,
        is_legacy: bool = False,
        flops: int | None = None,
        trace_name: str | None = None,
        concrete_inputs: Any = None,
        kwinputs: Any = None,
        is_user_annotation: bool = False,
        is_python_function: bool = False,
        activity_type: str | None = None,
        metadata_json: str | None = None,
        flow_id: int | None = None,
        flow_type: int | None = None,
        flow_start: bool | None = None,
        external_id: int = 0,
        linked_correlation_id: int = 0,
        extra_meta: dict[str, str] | None = None,
        structured_input_shapes: Any = None,
        structured_input_strides: Any = None,
        input_dtypes: Any = None,
        python_id: int = -1,
        python_parent_id: int = -1,
        python_module_id: int = -1,
    ) -> None:
        given = dict(locals())
        for used in ("self", "start_us", "end_us", "metadata_json", "extra_meta", "device_resource_id", "__class__"):
            given.pop(used, None)
        self.__dict__.update(given)
        self.time_range = Interval(start_us, end_us)
        self.device_resource_id = thread if device_resource_id is None else device_resource_id
        self.event_metadata = _build_metadata(extra_meta) if extra_meta else None
        self._metadata_json = metadata_json
        self.kernels: list[Any] = []
        self.count = 1
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.self_cpu_percent: Any = -1
        self.total_cpu_percent: Any = -1
        self.total_device_percent: Any = -1

    # What `__init__` takes over by name.
    id: int
    name: str
    thread: int
    fwd_thread: int | None
    stack: Any
    scope: int
    use_device: str | None
    is_async: bool
    is_legacy: bool
    is_remote: bool
    sequence_nr: int
    node_id: int
    device_type: DeviceType
    device_index: int
    overload_name: str | None
    input_shapes: Any
    cpu_memory_usage: int
    device_memory_usage: int
    linked_correlation_id: int
    flops: int | None

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        if self.device_type != DeviceType.CPU:
            raise AssertionError("Expected device_type to be CPU")
        self.kernels.append(Kernel(name, device, duration))

    def _check_kin(self, other: Any, role: str) -> None:
        if self.device_type != DeviceType.CPU:
            raise AssertionError("Expected device_type to be CPU")
        if not isinstance(other, FunctionEvent):
            raise AssertionError(f"Expected {role} to be a FunctionEvent")
        if other.device_type != DeviceType.CPU:
            raise AssertionError(f"Expected {role} device_type to be CPU")

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """A direct child: its time is no longer this event's own."""
        self._check_kin(child, "child")
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        self._check_kin(parent, "parent")
        self.cpu_parent = parent

    def _own(self, name: str) -> Any:
        """A total without the children's part."""
        if self.is_async or self.device_type != DeviceType.CPU:
            return 0
        return getattr(self, name) - sum(getattr(child, name) for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        own: int = self._own("cpu_memory_usage")
        return own

    @property
    def self_device_memory_usage(self) -> int:
        own: int = self._own("device_memory_usage")
        return own

    @property
    def self_cpu_time_total(self) -> float:
        own: float = self._own("cpu_time_total")
        return own

    @property
    def cpu_time_total(self) -> float:
        return self.time_range.elapsed_us() if self.device_type == DeviceType.CPU else 0

    @property
    def device_time_total(self) -> float:
        if self.is_async or not self.use_device:
            return 0
        if self.device_type == DeviceType.CPU:
            own: float = sum(k.duration for k in self.kernels)
            return own if self.is_legacy else own + sum(c.device_time_total for c in self.cpu_children)
        self._check_device()
        return self.time_range.elapsed_us()

    @property
    def self_device_time_total(self) -> float:
        if self.is_async or not self.use_device:
            return 0
        if self.device_type == DeviceType.CPU:
            return self.device_time_total - sum(c.device_time_total for c in self.cpu_children)
        self._check_device()
        return self.device_time_total

    def _check_device(self) -> None:
        if self.device_type not in _DEVICES:
            raise AssertionError(
                f"Expected device_type to be CUDA, PrivateUse1, MTIA, HPU or XPU, but got {self.device_type}"
            )

    metadata_json = _old_name("`metadata_json` is deprecated. Use `event_metadata` instead.", "_metadata_json")
    self_cuda_memory_usage = _old_name(
        "`self_cuda_memory_usage` is deprecated. Use `self_device_memory_usage` instead.", "self_device_memory_usage"
    )
    cuda_time_total = _old_name(
        "`cuda_time_total` is deprecated. Use `device_time_total` instead.", "device_time_total"
    )
    self_cuda_time_total = _old_name(
        "`self_cuda_time_total` is deprecated. Use `self_device_time_total` instead.", "self_device_time_total"
    )

    @property
    def key(self) -> str:
        return self.name

    def __repr__(self) -> str:
        device = self.use_device
        shown = [
            f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name}",
            f"device_type={self.device_type} node_id={self.node_id} cpu_time={self.cpu_time_str}",
            f"start_us={self.time_range.start} end_us={self.time_range.end}",
            f"cpu_children={[child.id for child in self.cpu_children]} {device}_time={self.device_time_str}",
            f"name={self.name} thread={self.thread} input_shapes={self.input_shapes}",
            f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage}",
            f"is_async={self.is_async} is_remote={self.is_remote} seq_nr={self.sequence_nr} "
            f"is_legacy={self.is_legacy}>",
        ]
        return " ".join(shown)


# What an average takes from the first of its events, and what it sums.
_FIRST = (
    *("key", "node_id", "is_async", "is_remote", "cpu_parent", "cpu_children", "overload_name", "input_shapes"),
    *("stack", "scope", "device_type", "is_legacy", "use_device", "is_user_annotation"),
)
_SUMMED = (
    *("cpu_time_total", "device_time_total", "self_cpu_time_total", "self_device_time_total", "cpu_memory_usage"),
    *("device_memory_usage", "self_cpu_memory_usage", "self_device_memory_usage", "count"),
)


class FunctionEventAvg(FormattedTimesMixin):
    """Sums over events of one kind."""

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = 0
        self.node_id = 0
        self.is_async = False
        self.is_remote = False
        self.use_device: str | None = None
        self.cpu_time_total = 0
        self.device_time_total = 0
        self.self_cpu_time_total = 0
        self.self_device_time_total = 0
        self.input_shapes: Any = None
        self.overload_name: str | None = None
        self.stack: Any = None
        self.scope: int | None = None
        self.cpu_memory_usage = 0
        self.device_memory_usage = 0
        self.self_cpu_memory_usage = 0
        self.self_device_memory_usage = 0
        self.cpu_children: list[FunctionEvent] | None = None
        self.cpu_parent: FunctionEvent | None = None
        self.device_type = DeviceType.CPU
        self.is_legacy = False
        self.flops: int | None = 0

    def add(self, other: Any) -> FunctionEventAvg:
        if self.key is None:
            for name in _FIRST:
                setattr(self, name, getattr(other, name))
        if not isinstance(other, (FunctionEvent, FunctionEventAvg)):
            raise AssertionError("Expected other to be a FunctionEvent or FunctionEventAvg")
        if other.key != self.key:
            raise AssertionError(f"Expected keys to match, but got {other.key} vs {self.key}")
        for name in _SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if self.flops is None:
            self.flops = other.flops
        elif other.flops is not None:
            self.flops += other.flops
        return self

    def __iadd__(self, other: Any) -> FunctionEventAvg:
        return self.add(other)

    def __repr__(self) -> str:
        device = self.use_device or "cuda"
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str}  self_{device}_time={self.self_device_time_total_str} "
            f"{device}_time={self.device_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage}>"
        )


class StringTable(defaultdict[str, str]):
    """Names by themselves; PyTorch undoes C++ mangling here, and there is none."""

    def __missing__(self, key: str) -> str:
        self[key] = key
        return key


class MemRecordsAcc:
    """Finds the memory records of a stretch of time; each record is `[event, ...]` with `start_ns()`."""

    def __init__(self, mem_records: list[Any]) -> None:
        self._mem_records = mem_records
        order = sorted((r[0].start_ns(), i) for i, r in enumerate(mem_records))
        self._start_nses = [start for start, _ in order]
        self._indices = [i for _, i in order]

    def in_interval(self, start_ns: int, end_ns: int) -> Iterator[Any]:
        first = bisect.bisect_left(self._start_nses, start_ns)
        last = bisect.bisect_right(self._start_nses, end_ns)
        for i in range(first, last):
            yield self._mem_records[self._indices[i]]


def _canonicalize_profiler_events(events: Any) -> str:
    raise NotImplementedError(
        "torch.autograd.profiler_util._canonicalize_profiler_events: records of a profile are not mapped to nodes of "
        "graphs here"
    )
