"""Graphs of NPU work: captured once, run again without the cost of launching, with `torch.cuda.graphs`' names.

Invariant: memory that captured work uses belongs to its graph (a room of the allocator) until the graph is reset and
the device has nothing more to do for it. Nothing is captured in half: what cannot be captured is an error.
"""

from __future__ import annotations

import ctypes
import gc
import itertools
from typing import Any

from .._backends.npu import errors as _errors
from .._backends.npu import memory as _memory
from .._backends.npu import runtime as _runtime
from .._backends.npu.acl_loader import ensure_acl as _ensure_acl
from .._backends.npu.allocator import Room as _Room
from .._backends.npu.streams import Stream as _Stream
from .._backends.npu.streams import StreamContext as _StreamContext
from .._backends.npu.streams import current_stream as _current_stream

__all__ = [
    "ExternalEvent", "NPUGraph", "graph", "graph_pool_handle", "graph_task_group_begin", "graph_task_group_end",
    "graph_task_update_begin", "graph_task_update_end", "is_current_stream_capturing",
]  # fmt: skip

_MODES = {"global": 0, "thread_local": 1, "relaxed": 2}
_EXTERNAL = 0x20
_NUMBERS = itertools.count(1)


class _Gone:
    """Graphs that nobody holds any more: (model, device, room). A finaliser may not wait for the device."""

    waiting: list[tuple[int, int, _Room]] = []
    hooked = False


def _hook() -> None:
    if not _Gone.hooked:
        _Gone.hooked = True
        _runtime.on_shutdown(15, _clear)
        _memory.add_cache(_clear)


def _clear() -> None:
    """Destroy the graphs that nobody holds."""
    while _Gone.waiting:
        _destroy(*_Gone.waiting.pop())


def _destroy(model: int, index: int, room: _Room) -> None:
    if index in _runtime.STATE.lost:
        return
    _runtime.synchronize(index)  # it may have been replayed on any stream
    code = _ensure_acl().aclmdlRIDestroy(model)
    _memory.allocator(index).leave_room(room)
    _errors.check(code, "aclmdlRIDestroy")


def is_current_stream_capturing() -> bool:
    """Whether work of this thread's current stream is captured in a graph; touches no device that was not used."""
    if not _runtime.is_initialised():
        return False
    stream = _current_stream()
    return _memory.captured_in(stream.device_index, stream.npu_stream) is not None


def graph_pool_handle() -> tuple[int, int]:
    """A name for memory that graphs share: `pool=` of their captures."""
    return 0, next(_NUMBERS)


def _room_number(pool: Any) -> int:
    """The number behind a handle: its only part that is not 0."""
    if isinstance(pool, tuple) and len(pool) == 2 and all(type(part) is int for part in pool) and any(pool):
        return int(pool[0] or pool[1])
    raise TypeError(f"pool must be the result of graph_pool_handle() or NPUGraph.pool(), not {pool!r}")


class NPUGraph:
    """Captured work of an NPU, which `replay` does again on the same memory. `torch.npu.graph` is the usual way in."""

    def __init__(self) -> None:
        self._model = 0
        self._index = -1
        self._room: _Room | None = None
        self._stream: _Stream | None = None  # while it is being captured
        self._pool: tuple[int, int] | None = None

    def capture_begin(
        self,
        pool: tuple[int, int] | None = None,
        capture_error_mode: str = "global",
        auto_dispatch_capture: bool = False,
    ) -> None:
        """Keep the work of this thread's current stream, and of streams that join it by events, instead of doing it."""
        if auto_dispatch_capture:
            raise NotImplementedError("NPUGraph.capture_begin(): auto_dispatch_capture=True is not available")
        if self._model or self._stream is not None:
            raise RuntimeError(
                "This NPUGraph instance already owns a captured graph. To capture a new graph, create a new instance."
            )
        if capture_error_mode not in _MODES:
            raise RuntimeError(
                f"Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got {capture_error_mode}"
            )
        shared = (next(_NUMBERS), 0) if pool is None else pool
        number = _room_number(shared)
        stream = _current_stream()
        if stream.npu_stream == 0:
            raise RuntimeError(
                "NPU graphs must be captured on a non-default stream. (However, after capture, it's ok to replay them "
                "on the default stream.)"
            )
        _runtime.use(stream.device_index)
        if _runtime.STATE.blocking:
            raise RuntimeError("NPU graphs cannot be captured while every launch is waited for (launch blocking)")
        _hook()
        _clear()
        begin = _ensure_acl().aclmdlRICaptureBegin
        owner = _memory.allocator(stream.device_index)
        room = owner.begin_capture(number)
        code = begin(stream.npu_stream, _MODES[capture_error_mode])
        if code != 0:
            owner.end_capture()
            owner.leave_room(room)
            _errors.check(code, "aclmdlRICaptureBegin", "NPUGraph.capture_begin")
        self._index, self._room, self._stream, self._pool = stream.device_index, room, stream, shared

    def capture_end(self) -> None:
        """The work kept so far is the graph. What went wrong meanwhile is reported here again."""
        stream, room = self._stream, self._room
        if stream is None or room is None:
            raise RuntimeError("capture_end() was called before capture_begin().")
        if _current_stream(self._index) != stream:
            raise RuntimeError("Capture must end on the same stream it began on.")
        _runtime.use(self._index)
        model = ctypes.c_void_p()
        code = _ensure_acl().aclmdlRICaptureEnd(stream.npu_stream, ctypes.byref(model))
        owner = _memory.allocator(self._index)
        owner.end_capture()
        self._stream = None
        if code != 0:
            text = _errors.vendor_text()
            self._room = None
            self._give_up(stream)
            owner.leave_room(room)
            raise _errors.AclError(
                f"the graph was not captured (aclmdlRICaptureEnd, status {code} {_errors.name_of(code)})"
                f"\n  vendor: {text}",
                code,
                "aclmdlRICaptureEnd",
                text,
            )
        self._model = model.value or 0

    def _give_up(self, stream: _Stream) -> None:
        """The end failed: see to it that the stream is not left captured."""
        acl = _ensure_acl()
        if not _memory.allocator(self._index).vendor.captured(stream.npu_stream):
            return
        model = ctypes.c_void_p()
        if acl.aclmdlRICaptureEnd(stream.npu_stream, ctypes.byref(model)) == 0:
            acl.aclmdlRIDestroy(model)
        else:
            _errors.vendor_text()

    def replay(self) -> None:
        """Do the captured work once more, on this thread's current stream of the graph's device."""
        if not self._model:
            raise RuntimeError("Called NPUGraph::replay without a preceding successful capture.")
        state = _runtime.use(self._index)
        stream = state.raw[self._index]
        _errors.record("aclmdlRIExecuteAsync", "NPUGraph.replay", self._index, stream)
        code = _ensure_acl().aclmdlRIExecuteAsync(self._model, stream)
        _errors.check(code, "aclmdlRIExecuteAsync", "NPUGraph.replay")
        if _runtime.STATE.blocking:
            _memory.allocator(self._index).vendor.synchronize(stream, "NPUGraph.replay")

    def reset(self) -> None:
        """Give the graph back, and its memory where no tensor holds it. Waits for the device."""
        if self._stream is not None:
            raise RuntimeError("an NPUGraph cannot be reset while it is being captured")
        model, room = self._model, self._room
        self._model, self._room = 0, None
        if model and room is not None:
            _destroy(model, self._index, room)

    def pool(self) -> tuple[int, int]:
        """The name of its memory, for graphs that may share it."""
        if self._pool is None:
            raise RuntimeError("Called NPUGraph::pool() without a preceding successful capture.")
        return self._pool

    def debug_dump(self, debug_path: str | None = None) -> None:
        """Have the vendor's library print what the graph consists of."""
        if debug_path is not None:
            raise NotImplementedError("NPUGraph.debug_dump(): the vendor prints to the standard output, not to a file")
        if not self._model:
            raise RuntimeError("Called NPUGraph::debug_dump without a preceding successful capture.")
        _runtime.use(self._index)
        _errors.check(_ensure_acl().aclmdlRIDebugPrint(self._model), "aclmdlRIDebugPrint")

    def __del__(self) -> None:
        if self._model and self._room is not None and _runtime.alive():
            _Gone.waiting.append((self._model, self._index, self._room))


class graph:
    """`with torch.npu.graph(g):` the work inside is captured in `g`, on a stream of its own unless one is given."""

    default_capture_stream: _Stream | None = None

    def __init__(
        self,
        npu_graph: NPUGraph,
        pool: tuple[int, int] | None = None,
        stream: _Stream | None = None,
        capture_error_mode: str = "global",
        auto_dispatch_capture: bool = False,
    ) -> None:
        if not isinstance(npu_graph, NPUGraph):
            raise TypeError(f"npu_graph must be an NPUGraph, not {type(npu_graph).__name__}")
        if stream is None:
            index = _runtime.current_device()
            known = graph.default_capture_stream
            if known is None or known.device_index != index:
                graph.default_capture_stream = _Stream()
            stream = graph.default_capture_stream
        assert stream is not None
        self.npu_graph = npu_graph
        self.pool = pool
        self.capture_stream = stream
        self.capture_error_mode = capture_error_mode
        self.auto_dispatch_capture = auto_dispatch_capture
        self.stream_ctx = _StreamContext(stream)

    def __enter__(self) -> None:
        _runtime.synchronize(self.capture_stream.device_index)  # an earlier failure is not the capture's
        gc.collect()
        _memory.empty_cache()
        self.stream_ctx.__enter__()
        try:
            self.npu_graph.capture_begin(self.pool, self.capture_error_mode, self.auto_dispatch_capture)
        except BaseException:
            self.stream_ctx.__exit__(None, None, None)
            raise

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        try:
            self.npu_graph.capture_end()
        except RuntimeError:
            if kind is None:  # else what went wrong inside is on its way, and says more
                raise
        finally:
            self.stream_ctx.__exit__(kind, value, trace)
        if kind is not None:
            self.npu_graph.reset()  # half of what was meant


# -- task groups: parts of a graph whose arguments may change --------------------------------------------------------
def _on(stream: _Stream, function: str, *arguments: Any) -> None:
    _runtime.use(stream.device_index)
    _errors.check(getattr(_ensure_acl(), function)(stream.npu_stream, *arguments), function)


def graph_task_group_begin(stream: _Stream) -> None:
    """What is captured on `stream` from here on belongs to a group that can be updated."""
    _on(stream, "aclmdlRICaptureTaskGrpBegin")


def graph_task_group_end(stream: _Stream) -> int:
    """Ends the group; its handle."""
    group = ctypes.c_void_p()
    _on(stream, "aclmdlRICaptureTaskGrpEnd", ctypes.byref(group))
    return group.value or 0


def graph_task_update_begin(stream: _Stream, handle: int) -> None:
    """What is launched on `stream` from here on replaces the tasks of the group, one by one."""
    _on(stream, "aclmdlRICaptureTaskUpdateBegin", handle)


def graph_task_update_end(stream: _Stream) -> None:
    """The group is updated when `stream` comes to this."""
    _on(stream, "aclmdlRICaptureTaskUpdateEnd")


class ExternalEvent:
    """An event between a graph and the outside: a captured `wait` waits anew at every replay, until `record`."""

    def __init__(self) -> None:
        self._index = _runtime.current_device()
        _runtime.use(self._index)
        out = ctypes.c_void_p()
        code = _ensure_acl().aclrtCreateEventWithFlag(ctypes.byref(out), _EXTERNAL)
        _errors.check(code, "aclrtCreateEventWithFlag")
        self.npu_event = out.value or 0

    def record(self, stream: _Stream | None = None) -> None:
        stream = stream or _current_stream()
        _runtime.use(stream.device_index)
        _errors.check(_ensure_acl().aclrtRecordEvent(self.npu_event, stream.npu_stream), "aclrtRecordEvent")

    def wait(self, stream: _Stream | None = None) -> None:
        _on(stream or _current_stream(), "aclrtStreamWaitEvent", self.npu_event)

    def reset(self, stream: _Stream | None = None) -> None:
        stream = stream or _current_stream()
        _runtime.use(stream.device_index)
        _errors.check(_ensure_acl().aclrtResetEvent(self.npu_event, stream.npu_stream), "aclrtResetEvent")

    def __del__(self) -> None:
        if getattr(self, "npu_event", 0) and _runtime.alive() and self._index not in _runtime.STATE.lost:
            _runtime.use(self._index)
            _ensure_acl().aclrtDestroyEvent(self.npu_event)
