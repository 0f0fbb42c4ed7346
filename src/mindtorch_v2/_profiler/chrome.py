"""Traces that chrome://tracing, Perfetto and TensorBoard read, in the form that PyTorch's Kineto writes.

Invariant: a host's row is a thread of this process; a device's row is a stream of process number `device`. A launch is
joined with what it started by a flow (`ac2g`), a forward call with its backward node by another (`fwdbwd`).
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from time import perf_counter_ns
from typing import Any

from .recorder import BACKWARD, Record, Session

# Times in the file are microseconds since this; Perfetto has trouble with larger ones.
_BASE_NS = 1_700_000_000_000_000_000


class Writer:
    """One session as trace events."""

    def __init__(self, session: Session) -> None:
        self.session = session
        # The records' clock begins anywhere; the file's is that of the day.
        self.shift = time.time_ns() - perf_counter_ns() - _BASE_NS
        self.process = os.getpid()
        self.out: list[dict[str, Any]] = []

    def at(self, ns: int) -> float:
        return (ns + self.shift) / 1000

    def name_rows(self) -> None:
        start = self.at(self.session.start)
        devices = sorted({r.device for r in self.session.records if r.device >= 0 and r.kind != "cpu_instant_event"})
        streams = sorted({(r.device, r.stream) for r in self.session.records if r.kind in ("kernel", "gpu_memcpy")})
        program = os.path.basename(sys.executable) or "python"
        named: list[tuple[str, Any, Any, str, Any]] = [
            ("process_name", self.process, 0, "name", program),
            ("process_labels", self.process, 0, "labels", "CPU"),
            ("process_sort_index", self.process, 0, "sort_index", self.process),
        ]
        for device in devices:
            named += [
                ("process_name", device, 0, "name", program),
                ("process_labels", device, 0, "labels", f"NPU {device}"),
                ("process_sort_index", device, 0, "sort_index", 5000000 + device),
            ]
        for thread in self.session.threads.values():
            named += [
                ("thread_name", self.process, thread.native, "name", f"thread {thread.native} ({thread.name})"),
                ("thread_sort_index", self.process, thread.native, "sort_index", thread.native),
            ]
        for device, stream in streams:
            row = self.row(device, stream)
            named += [
                ("thread_name", device, row, "name", f"stream {row} "),
                ("thread_sort_index", device, row, "sort_index", row),
            ]
        self.out += [
            {"ph": "M", "name": name, "ts": start, "pid": pid, "tid": tid, "args": {key: value}}
            for name, pid, tid, key, value in named
        ]

    def row(self, device: int, stream: int) -> int:
        """Streams are numbered in the order of their handles; the default stream is 0."""
        handles = sorted(
            {r.stream for r in self.session.records if r.device == device and r.kind != "cpu_instant_event"}
        )
        return handles.index(stream) if 0 in handles else handles.index(stream) + 1

    def slice(self, i: int, r: Record, rows: dict[tuple[int, int], int]) -> None:
        args: dict[str, Any] = {}
        if r.kind in ("cpu_op", "user_annotation"):
            args["External id"] = r.number
            if r.sequence >= 0:
                args["Sequence number"] = r.sequence
                args["Fwd thread id"] = 0 if r.scope != BACKWARD else r.thread.number
            args["Record function id"] = 0
            if r.arg is not None:
                args["Args"] = r.arg
            if r.inputs is not None:
                args["Concrete Inputs"] = ["" if v is None else str(v) for v in r.inputs.values]
                args["Input type"] = r.inputs.dtypes
                args["Input Strides"] = r.inputs.strides
                args["Input Dims"] = r.inputs.dims
            if r.flops:
                args["Flops"] = r.flops
            if r.stack:
                args["Call stack"] = ";".join(r.stack)
        elif r.kind == "python_function":
            number, parent = r.python
            args |= {"Python parent id": None if parent < 0 else parent, "Python id": number}
            if r.module >= 0:
                args["Python module id"] = r.module
        else:
            args |= {"External id": r.linked, "correlation": r.number}
            if r.device >= 0:
                args |= {"device": r.device, "stream": rows[r.device, r.stream]}
            if r.nbytes:
                args["bytes"] = r.nbytes
        args["Ev Idx"] = i
        pid, tid = (r.device, rows[r.device, r.stream]) if r.device >= 0 else (self.process, r.thread.native)
        where = {"pid": pid, "tid": tid, "ts": self.at(r.start)}
        self.out.append(
            {"ph": "X", "cat": r.kind, "name": r.name, **where, "dur": (r.end - r.start) / 1000, "args": args}
        )
        if r.kind == "privateuse1_runtime":
            self.flow("s", "ac2g", r.number, where)
        elif r.device >= 0:
            self.flow("f", "ac2g", r.number, where)

    def flow(self, phase: str, kind: str, number: int, where: dict[str, Any]) -> None:
        event = {"ph": phase, "id": number, **where, "cat": kind, "name": kind}
        if phase == "f":
            event["bp"] = "e"
        self.out.append(event)

    def instant(self, i: int, r: Record) -> None:
        args = {
            "Total Reserved": 0,
            "Total Allocated": r.total,
            "Bytes": r.nbytes,
            "Device Id": r.device,
            "Device Type": 0 if r.device < 0 else 20,
            "Addr": r.address,
            "Ev Idx": i,
        }
        where = {"pid": self.process, "tid": r.thread.native, "ts": self.at(r.start)}
        self.out.append({"ph": "i", "cat": r.kind, "s": "t", "name": r.name, **where, "args": args})

    def join_passes(self) -> None:
        """From the innermost forward call that made a node to the node."""
        forward: dict[int, Record] = {}
        for r in self.session.records:
            if r.kind == "cpu_op" and r.sequence >= 0 and r.scope != BACKWARD and not r.name.startswith("autograd::"):
                forward[r.sequence] = r
        flows = 0
        for r in self.session.records:
            made = forward.get(r.sequence) if r.scope == BACKWARD else None
            if made is not None and made.start < r.start:
                flows += 1
                for phase, end in (("s", made), ("f", r)):
                    where = {"pid": self.process, "tid": end.thread.native, "ts": self.at(end.start)}
                    self.flow(phase, "fwdbwd", flows, where)

    def write(self, path: str, metadata: dict[str, str]) -> None:
        records = self.session.records
        on_device = {(r.device, r.stream) for r in records if r.device >= 0 and r.kind != "cpu_instant_event"}
        rows = {key: self.row(*key) for key in on_device}
        self.name_rows()
        for i, r in enumerate(records):
            if r.kind == "cpu_instant_event":
                self.instant(i, r)
            else:
                self.slice(i, r, rows)
        self.join_passes()
        start, end = self.session.start, self.session.end
        self.out += [
            {
                "ph": "X",
                "cat": "Trace",
                "name": "PyTorch Profiler (0)",
                "pid": "Spans",
                "tid": "PyTorch Profiler",
                "ts": self.at(start),
                "dur": (end - start) / 1000,
                "args": {"Op count": 0},
            },
            {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": self.at(end)},
        ]
        whole: dict[str, Any] = {"schemaVersion": 1, "deviceProperties": self.devices(on_device)}
        for key, value in metadata.items():
            whole[key] = json.loads(value)
        whole |= {
            "host_name": platform.node(),
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": _BASE_NS,
            "traceName": path,
            "traceEvents": self.out,
        }
        with open(path, "w") as f:
            json.dump(whole, f)

    @staticmethod
    def devices(used: set[tuple[int, int]]) -> list[dict[str, Any]]:
        if not used:
            return []
        from .. import npu

        out = []
        for index in sorted({device for device, _ in used}):
            found = npu.get_device_properties(index)
            out.append({"id": index, "name": found.name, "totalGlobalMem": found.total_memory})
        return out
