"""The table of a profile, as PyTorch prints it.

Invariant: a column is its heading, its width and the text of a row; the line length is the sum of the widths and the
two spaces between columns.
"""

from __future__ import annotations

import math
from typing import Any

from .kinds import DeviceType

_WIDTH = 12
_GAP = "  "
_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}
_FLOPS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")
_ON_DEVICE = (DeviceType.CUDA, DeviceType.PrivateUse1, DeviceType.MTIA, DeviceType.XPU)


def format_time(us: float) -> str:
    if us >= 1e6:
        return f"{us / 1e6:.3f}s"
    if us >= 1e3:
        return f"{us / 1e3:.3f}ms"
    return f"{us:.3f}us"


def format_time_share(us: float, total: float) -> str:
    if total == 0:
        if us != 0:
            raise AssertionError(f"Expected time_us == 0 but got {us}")
        return "NaN"
    return f"{us * 100.0 / total:.2f}%"


def format_memory(nbytes: int) -> str:
    for power, unit in ((3, "GB"), (2, "MB"), (1, "KB")):
        if abs(nbytes) >= 1024**power:
            return f"{nbytes * 1.0 / 1024**power:.2f} {unit}"
    return f"{nbytes} B"


def device_key(name: str) -> str:
    """Devices have one set of columns, whatever the device is called."""
    for device in ("cuda", "xpu", "privateuse1", "npu"):
        name = name.replace(device, "device")
    return name


def _flops_scale(least: int) -> tuple[float, str]:
    step = max(0.0, min(math.log10(least) / 3, float(len(_FLOPS) - 1)))
    return 10 ** (math.floor(step) * -3.0), _FLOPS[int(step)]


def _cut(path: str, width: int) -> str:
    if len(path) <= width:
        return path
    path = path[len(path) - width :]
    return "..." + path[3:] if len(path) > 3 else path


def _shortened(name: str, limit: int | None) -> str:
    return name if limit is None or len(name) < limit - 3 else name[: limit - 3] + "..."


def _within(width: int, limit: int | None) -> int:
    return width if limit is None else min(width, limit)


class Table:
    """One printing of a list of events or averages."""

    def __init__(
        self,
        events: Any,
        row_limit: int,
        widths: tuple[int | None, int | None, int | None],
        header: str | None,
        flops: bool,
        memory: bool,
        top_level: bool,
        unit: str | None,
    ) -> None:
        self.events = events
        self.row_limit = row_limit
        self.source_limit, self.name_limit, self.shapes_limit = widths
        self.header = header
        self.top_level = top_level
        self.unit = unit
        self.memory = memory
        self.device: str | None = events[0].use_device
        self.has_device_time = any(e.self_device_time_total > 0 for e in events)
        self.has_device_memory = any(e.self_device_memory_usage > 0 for e in events)
        if not self.device and self.has_device_time:
            raise RuntimeError("use_device is None, but there is device performance data.")
        self.shapes = any(e.input_shapes is not None and len(e.input_shapes) > 0 for e in events)
        self.overloads = any(e.overload_name is not None and len(e.overload_name) > 0 for e in events)
        self.nodes = any(e.node_id != -1 for e in events)
        self.stacks = [e.stack for e in events if e.stack is not None and len(e.stack) > 0]
        counted = [e.flops for e in events if flops and e.flops > 0]
        self.flops = len(counted) > 0
        self.scale, self.flops_unit = _flops_scale(min(counted)) if counted else (1.0, "")
        self.cpu_total = sum(e.self_cpu_time_total for e in events)
        self.device_total = sum(e.self_device_time_total for e in events if self._counts(e))

    @staticmethod
    def _counts(e: Any) -> bool:
        """Kernels are events of their own, except in a legacy profile, where they stand in the operator's event."""
        if e.device_type == DeviceType.CPU:
            return bool(e.is_legacy)
        return e.device_type in _ON_DEVICE and not e.is_user_annotation

    def columns(self) -> list[tuple[str, int, str]]:
        """Heading, width and alignment of each."""
        name = _within(max(len(e.key) for e in self.events) + 4, self.name_limit)
        out = [("Name", name, ">")]
        if self.overloads:
            out.append(("Overload Name", name, ">"))
        plain = ["Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
        device = self.device.upper() if self.device is not None else "None"
        if self.has_device_time:
            plain += [f"Self {device}", f"Self {device} %", f"{device} total", f"{device} time avg"]
        if self.memory:
            plain += ["CPU Mem", "Self CPU Mem"]
            if self.device and self.has_device_memory:
                plain += [f"{device} Mem", f"Self {device} Mem"]
        plain.append("# of Calls")
        if self.nodes:
            plain.append("Node ID")
        out += [(heading, _WIDTH, ">") for heading in plain]
        if self.shapes:
            width = max(len(str(e.input_shapes)) for e in self.events) + 4
            self.shapes_width = _within(width, self.shapes_limit)
            out.append(("Input Shapes", self.shapes_width, ">"))
        if self.stacks:
            width = max(len(entry) for stack in self.stacks for entry in stack) + 4
            self.source_width = _within(width, self.source_limit)
            out.append(("Source Location", self.source_width, "<"))
        if self.flops:
            out.append((f"Total {self.flops_unit}", _WIDTH, ">"))
        return out

    def time(self, us: float) -> str:
        if self.unit in _UNITS:
            return f"{us / _UNITS[self.unit]:.3f}{self.unit}"
        return format_time(us)

    def row(self, e: Any) -> list[Any]:
        e.self_cpu_percent = format_time_share(e.self_cpu_time_total, self.cpu_total)
        e.total_cpu_percent = 0 if e.is_async else format_time_share(e.cpu_time_total, self.cpu_total)
        out: list[Any] = [_shortened(e.key, self.name_limit)]
        if self.overloads:
            out.append(_shortened(e.overload_name, self.name_limit))
        out += [e.self_cpu_percent, self.time(e.self_cpu_time_total)]
        out += [e.total_cpu_percent, self.time(e.cpu_time_total), self.time(e.cpu_time)]
        if self.has_device_time:
            e.total_device_percent = format_time_share(e.self_device_time_total, self.device_total)
            out += [self.time(e.self_device_time_total), e.total_device_percent]
            out += [self.time(e.device_time_total), self.time(e.device_time)]
        if self.memory:
            out += [format_memory(e.cpu_memory_usage), format_memory(e.self_cpu_memory_usage)]
            if self.device and self.has_device_memory:
                out += [format_memory(e.device_memory_usage), format_memory(e.self_device_memory_usage)]
        out.append(e.count)
        if self.nodes:
            out.append(e.node_id)
        if self.shapes:
            out.append(str(e.input_shapes)[: self.shapes_width])
        # PyTorch puts flops before the stack here, and behind it among the headings.
        if self.flops:
            out.append("--" if e.flops <= 0 else f"{e.flops * self.scale:8.3f}")
        if self.stacks:
            out.append(_cut(e.stack[0], self.source_width) if e.stack else "")
        return out

    def text(self) -> str:
        columns = self.columns()
        line = "".join(f"{{: {align}{width}}}{_GAP}" for _, width, align in columns)
        rule = "".join("-" * width + _GAP for _, width, _ in columns)
        length = sum(width + len(_GAP) for _, width, _ in columns) - len(_GAP)
        out: list[str] = []
        if self.header is not None:
            out += ["=" * length, self.header]
        if self.top_level:
            out += ["=" * length, "This report only display top-level ops statistics"]
        out += [rule, line.format(*[heading for heading, _, _ in columns]), rule]
        shown = 0
        for e in self.events:
            if shown == self.row_limit:
                break
            if self.top_level and e.cpu_parent is not None:
                continue
            shown += 1
            out.append(line.format(*self.row(e)))
            if self.stacks:
                empty = [""] * (len(columns) - 1)
                out += [line.format(*empty, _cut(entry, self.source_width)) for entry in e.stack[1:]]
                out.append(line.format(*empty, ""))
        out += [rule, f"Self CPU time total: {self.time(self.cpu_total)}"]
        if self.has_device_time:
            device = self.device.upper() if self.device is not None else "None"
            out.append(f"Self {device} time total: {self.time(self.device_total)}")
        return "\n".join(out) + "\n"
