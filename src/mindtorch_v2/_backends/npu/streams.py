"""Streams and events: the order of work on a device, as `torch.cuda` has them.

Invariant: a stream's handle lives as long as the runtime (streams come from a pool), so nobody holds one that is gone.
A call that names a stream or an event is made with its device current.
"""

from __future__ import annotations

import ctypes
import operator
import threading
import time
from collections.abc import Callable
from typing import Any

from ..._device import device
from . import errors, runtime
from .acl_loader import ensure_acl
from .runtime import raw_stream as raw_stream

POOL = 32
# The vendor's numbers: 0 is the most urgent, and what the default stream has.
LEAST, GREATEST = 7, 0
_NOT_READY, _COMPLETE = 0, 1  # of aclrtQueryEventStatus; other vendor enums have them the other way round
_SYNC, _TIME_LINE = 0x1, 0x8
_REVERSED = 107007
_LOCAL = threading.local()


# -- the pool -----------------------------------------------------------------------------------------------------
class Pool:
    """The streams of one device and priority; they are made as they are first wanted, and handed out in turn."""

    def __init__(self, index: int, priority: int, number: int) -> None:
        self.index = index
        self.priority = priority
        self.first_id = 1 + number * POOL
        self.handles: list[int] = []
        self.next = 0

    def take(self) -> tuple[int, int]:
        """(handle, id)"""
        at = self.next % POOL
        if at == len(self.handles):
            runtime.use(self.index)
            out = ctypes.c_void_p()
            acl = ensure_acl()
            errors.check(
                acl.aclrtCreateStreamWithConfig(ctypes.byref(out), self.priority, 0), "aclrtCreateStreamWithConfig"
            )
            self.handles.append(out.value or 0)
        self.next += 1
        return self.handles[at], self.first_id + at


class Shared:
    """What all threads share; guarded by `lock`."""

    lock = threading.Lock()
    pools: dict[tuple[int, int], Pool] = {}
    # Events nobody holds any more, by device and flags: made again by recording them.
    events: dict[tuple[int, int], list[int]] = {}
    # The device of every event there is, held or kept.
    event_devices: dict[int, int] = {}
    reporter: Reporter | None = None
    hooked = False


def _hook() -> None:
    """Have streams and events given back when the runtime ends."""
    if not Shared.hooked:
        Shared.hooked = True
        runtime.on_shutdown(20, _close)


def _take(index: int, priority: int) -> tuple[int, int]:
    with Shared.lock:
        _hook()
        key = (index, priority)
        if key not in Shared.pools:
            Shared.pools[key] = Pool(index, priority, len(Shared.pools))
        return Shared.pools[key].take()


def _close() -> None:
    """Give every stream and event back; the devices are idle."""
    if Shared.reporter is not None:
        Shared.reporter.stop()
    acl = ensure_acl()
    Shared.events.clear()
    for handle in list(Shared.event_devices):
        _destroy_event(handle)
    for pool in Shared.pools.values():
        if pool.index not in runtime.STATE.lost:
            acl.aclrtSetCurrentContext(runtime.STATE.contexts[pool.index])
            for handle in pool.handles:
                acl.aclrtDestroyStream(handle)
        pool.handles.clear()


def release_events() -> None:
    """Destroy the events that are kept to be used again."""
    for handles in Shared.events.values():
        while handles:
            _destroy_event(handles.pop())


def _destroy_event(handle: int) -> None:
    index = Shared.event_devices.pop(handle)
    if index not in runtime.STATE.lost:
        runtime.use(index)
        ensure_acl().aclrtDestroyEvent(handle)


# -- streams ------------------------------------------------------------------------------------------------------
class Stream:
    """`Stream(device=None, priority=0)`: a queue of work that runs in order, beside the other streams of its device.

    A lower priority number is more urgent; numbers outside `priority_range()` mean the nearest one inside.
    """

    __slots__ = ("device_index", "npu_stream", "stream_id", "priority", "__weakref__")

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        index = runtime.index_of(device)
        self.device_index = index
        self.priority = min(max(priority, GREATEST), LEAST)
        runtime.use(index)
        self.npu_stream, self.stream_id = _take(index, self.priority)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """(least, greatest)"""
        return LEAST, GREATEST

    @property
    def device(self) -> device:
        return runtime.device_at(self.device_index)

    @property
    def device_type(self) -> str:
        return "npu"

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.npu_stream)

    def wait_event(self, event: Event) -> None:
        """Work given to this stream from now on waits for `event`."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Work given to this stream from now on waits for what `stream` has been given so far."""
        self.wait_event(stream.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        """Record `event`, or a new one, at the end of what the stream has been given."""
        if event is None:
            event = Event()
        event.record(self)
        return event

    def query(self) -> bool:
        """Whether all work is done."""
        runtime.use(self.device_index)
        status = ctypes.c_int32()
        errors.check(ensure_acl().aclrtStreamQuery(self.npu_stream, ctypes.byref(status)), "aclrtStreamQuery")
        return status.value == 0

    def synchronize(self) -> None:
        """Wait until all work is done; a kernel that failed is reported here."""
        runtime.use(self.device_index)
        errors.check_waited(
            ensure_acl().aclrtSynchronizeStream(self.npu_stream),
            "aclrtSynchronizeStream",
            self.device_index,
            self.npu_stream,
        )

    def add_callback(self, fn: Callable[[], object]) -> None:
        """Call `fn` when the stream gets here; what comes after it on the stream waits for its end.

        It runs on a thread of its own and must not use the NPU. An exception in it goes to `sys.unraisablehook`.
        """
        if not callable(fn):
            raise TypeError(f"add_callback(): argument 'fn' must be callable, not {type(fn).__name__}")
        runtime.use(self.device_index)
        _reporter().launch(self, fn)

    def __enter__(self) -> Stream:
        _entered().append(_swap(self))
        return self

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        _back(_entered().pop())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (other.device_index, other.npu_stream) == (
            self.device_index,
            self.npu_stream,
        )

    def __hash__(self) -> int:
        return hash((self.device_index, self.npu_stream))

    def __repr__(self) -> str:
        return f"<torch.npu.Stream device={self.device} npu_stream={self.npu_stream:#x}>"


class ExternalStream(Stream):
    """`ExternalStream(stream_ptr, device=None)`: a stream (`aclrtStream`) that another library made on this device, and
    keeps alive."""

    __slots__ = ()

    def __init__(self, stream_ptr: int, device: Any = None) -> None:
        self.npu_stream = self.stream_id = operator.index(stream_ptr)
        if self.npu_stream < 0:
            raise ValueError(f"ExternalStream(): stream_ptr must be an address, got {stream_ptr}")
        self.device_index = runtime.index_of(device)
        self.priority = 0


def get_stream_from_external(data_ptr: int, device: Any = None) -> Stream:
    """A stream that another library made on this device, and keeps alive."""
    return ExternalStream(data_ptr, device)


def _existing(index: int) -> Stream:
    """The default stream of a device."""
    stream = Stream.__new__(Stream)
    stream.device_index = index
    stream.priority = 0
    stream.npu_stream = 0
    stream.stream_id = 0
    return stream


def default_stream(where: Any = None) -> Stream:
    return _existing(runtime.index_of(where))


def current_stream(where: Any = None) -> Stream:
    """This thread's current stream on a device."""
    index = runtime.index_of(where)
    streams = runtime.thread_state().streams
    found: Stream | None = streams[index] if index < len(streams) else None
    return _existing(index) if found is None else found


def set_stream(stream: Stream) -> None:
    """Make a stream this thread's current one on its device, and its device the current one."""
    set_current(stream)
    runtime.thread_state().device = stream.device_index


def set_current(stream: Stream) -> None:
    """Make a stream this thread's current one on its device."""
    state = runtime.use(stream.device_index)
    state.raw[stream.device_index] = stream.npu_stream
    state.streams[stream.device_index] = stream


def _swap(stream: Stream) -> tuple[Stream, int]:
    """Make stream and device current; what `_back` needs."""
    before = current_stream(stream.device_index)
    set_current(stream)
    return before, runtime.swap_device(stream.device_index)


def _back(before: tuple[Stream, int]) -> None:
    set_current(before[0])
    runtime.swap_device(before[1])


def _entered() -> list[tuple[Stream, int]]:
    """What this thread had before each `with stream:` it is in; one stream may be entered twice."""
    found: list[tuple[Stream, int]] | None = getattr(_LOCAL, "entered", None)
    if found is None:
        found = []
        _LOCAL.entered = found
    return found


class StreamContext:
    """`with torch.npu.stream(s):` work goes to `s`; None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self._before: list[tuple[Stream, int]] = []

    def __enter__(self) -> None:
        if self.stream is not None:
            self._before.append(_swap(self.stream))

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        if self.stream is not None:
            _back(self._before.pop())


# -- events -------------------------------------------------------------------------------------------------------
class Event:
    """`Event(enable_timing=False, blocking=False, interprocess=False)`: a mark in a stream.

    It belongs to the device of the stream it is first recorded on. The vendor's wait always sleeps, which is what
    `blocking=True` asks for and `False` allows.
    """

    __slots__ = ("enable_timing", "blocking", "device_index", "npu_event", "__weakref__")

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self.npu_event = 0
        if interprocess:
            raise NotImplementedError(
                "Event(): argument 'interprocess' must be False: events of NPUs are not shared between processes here"
            )
        self.enable_timing = enable_timing
        self.blocking = blocking
        self.device_index = -1

    @property
    def _flags(self) -> int:
        return _SYNC | _TIME_LINE if self.enable_timing else _SYNC

    @property
    def device(self) -> device | None:
        return None if self.device_index < 0 else runtime.device_at(self.device_index)

    def record(self, stream: Stream | None = None) -> None:
        """Mark the end of what `stream` (this thread's current one) has been given; an earlier mark is forgotten."""
        if stream is None:
            stream = current_stream()
        index = stream.device_index
        if self.npu_event and self.device_index != index:
            raise RuntimeError(
                f"Event device npu:{self.device_index} does not match recording stream's device npu:{index}."
            )
        runtime.use(index)
        if not self.npu_event:
            self.npu_event = _take_event(index, self._flags)
            self.device_index = index
        errors.check(ensure_acl().aclrtRecordEvent(self.npu_event, stream.npu_stream), "aclrtRecordEvent")

    def wait(self, stream: Stream | None = None) -> None:
        """Work given to `stream` (this thread's current one) from now on waits for the mark."""
        if stream is None:
            stream = current_stream()
        if self.npu_event:
            runtime.use(stream.device_index)
            errors.check(ensure_acl().aclrtStreamWaitEvent(stream.npu_stream, self.npu_event), "aclrtStreamWaitEvent")

    def query(self) -> bool:
        """Whether everything before the mark is done; a mark never made is."""
        if not self.npu_event:
            return True
        runtime.use(self.device_index)
        status = ctypes.c_int32()
        errors.check(ensure_acl().aclrtQueryEventStatus(self.npu_event, ctypes.byref(status)), "aclrtQueryEventStatus")
        return status.value == _COMPLETE

    def synchronize(self) -> None:
        """Wait until everything before the mark is done."""
        if not self.npu_event:
            return
        runtime.use(self.device_index)
        status = ensure_acl().aclrtSynchronizeEvent(self.npu_event)
        if status != 0:
            errors.blame(status, "aclrtSynchronizeEvent", self.device_index, -1)

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds between two marks; negative when `end_event` came first."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if not (self.npu_event and end_event.npu_event):
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (self.query() and end_event.query()):
            raise RuntimeError("Both events must be completed before calculating elapsed time.")
        runtime.use(self.device_index)
        out = ctypes.c_float()
        elapsed = ensure_acl().aclrtEventElapsedTime
        status = elapsed(ctypes.byref(out), self.npu_event, end_event.npu_event)
        if status == _REVERSED:
            errors.vendor_text()
            errors.check(elapsed(ctypes.byref(out), end_event.npu_event, self.npu_event), "aclrtEventElapsedTime")
            return -out.value
        errors.check(status, "aclrtEventElapsedTime")
        return out.value

    def __del__(self) -> None:
        # Kept for the next event: this may run in any thread, at any time, and waits that have been queued stay valid.
        if self.npu_event and runtime.alive():
            Shared.events.setdefault((self.device_index, self._flags), []).append(self.npu_event)

    def __repr__(self) -> str:
        if not self.npu_event:
            return "<torch.npu.Event uninitialized>"
        return f"<torch.npu.Event {self.npu_event:#x}>"


def _take_event(index: int, flags: int) -> int:
    kept = Shared.events.get((index, flags))
    if kept:
        return kept.pop()
    with Shared.lock:
        _hook()
    out = ctypes.c_void_p()
    errors.check(ensure_acl().aclrtCreateEventExWithFlag(ctypes.byref(out), flags), "aclrtCreateEventExWithFlag")
    handle = out.value or 0
    Shared.event_devices[handle] = index
    return handle


# -- callbacks ----------------------------------------------------------------------------------------------------
_POLL_MS = 50
_TIMED_OUT = (100036, 107019)


class Reporter:
    """The thread that runs callbacks: the vendor calls them from whoever asks for reports of a subscribed stream."""

    def __init__(self) -> None:
        self.pending: dict[int, Callable[[], object]] = {}
        self.count = 0
        self.subscribed: dict[tuple[int, int], Stream] = {}
        self.stopping = False
        self.lock = threading.Lock()
        self.first = threading.Event()
        # Kept here, because the vendor holds only its address.
        self.entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._call)
        self.entry_address = ctypes.cast(self.entry, ctypes.c_void_p)
        self.thread = threading.Thread(target=self._run, name="npu-callbacks", daemon=True)
        self.thread.start()

    def launch(self, stream: Stream, fn: Callable[[], object]) -> None:
        acl = ensure_acl()
        key = (stream.device_index, stream.npu_stream)
        with self.lock:
            if key not in self.subscribed:
                errors.check(acl.aclrtSubscribeReport(self.thread.ident, stream.npu_stream), "aclrtSubscribeReport")
                self.subscribed[key] = stream
                self.first.set()
            self.count += 1
            ticket = self.count
            self.pending[ticket] = fn
        status = acl.aclrtLaunchCallback(self.entry_address, ticket, 1, stream.npu_stream)
        if status != 0:
            del self.pending[ticket]
        errors.check(status, "aclrtLaunchCallback")

    def _call(self, ticket: int) -> None:
        self.pending.pop(ticket)()

    def _run(self) -> None:
        self.first.wait()
        acl = ensure_acl()
        process = acl.aclrtProcessReport
        while not self.stopping:
            status = process(_POLL_MS)
            if status != 0:
                acl.aclGetRecentErrMsg()  # nobody will ask for the text: most often nothing came in time
                if status not in _TIMED_OUT:
                    time.sleep(_POLL_MS / 1000)

    def stop(self) -> None:
        self.stopping = True
        self.first.set()
        self.thread.join()
        acl = ensure_acl()
        for (index, handle), _ in self.subscribed.items():
            if index not in runtime.STATE.lost:
                runtime.use(index)
                acl.aclrtUnSubscribeReport(self.thread.ident, handle)
        self.subscribed.clear()


def _reporter() -> Reporter:
    with Shared.lock:
        _hook()
        if Shared.reporter is None:
            Shared.reporter = Reporter()
        return Shared.reporter
