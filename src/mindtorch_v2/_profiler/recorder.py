"""Recording: one record for each operator, node, annotation, Python function and launch of the threads that take part.

Invariant: a thread takes part exactly while the PROFILE bit is among its modes and a session is on. A record is put
into the session's list when it begins, so the list of each thread is in order of beginnings; `finish` closes what was
left open inside by an exception.
"""

from __future__ import annotations

import threading
from time import perf_counter_ns
from typing import Any

from .._api import overloads
from .._autograd.node import LAST, SEQUENCE, WATCH
from .._dispatch.keys import AUTOGRAD, PROFILE
from .._dispatch.op import RESOLVERS, Op, Overrider
from .._dispatch.state import modes, set_modes
from .inputs import Inputs, flops
from .kinds import DeviceType, ProfilerActivity

FUNCTION, BACKWARD, USER = 0, 1, 7


class Record:
    """One stretch of time. `inner` is the link between a launch and what it started on a device."""

    __slots__ = (
        *("name", "overload", "start", "end", "thread", "scope", "sequence", "kind", "inputs", "flops", "stack"),
        *("number", "linked", "arg", "device", "stream", "nbytes", "address", "total", "python", "module", "detached"),
    )

    def __init__(self, name: str, kind: str, thread: Thread, start: int) -> None:
        self.name = name
        self.kind = kind
        self.thread = thread
        self.start = start
        self.end = 0
        self.overload = ""
        self.scope = FUNCTION
        self.sequence = -1
        self.inputs: Inputs | None = None
        self.flops = 0
        self.stack: tuple[str, ...] = ()
        # Of what PyTorch calls the correlation; `linked` is that of the operator a launch or kernel belongs to.
        self.number = 0
        self.linked = 0
        self.arg: str | None = None
        # The device of a kernel, copy or memory event; -1 is the host.
        self.device = -1
        self.stream = 0
        self.nbytes = 0
        self.address = 0
        self.total = 0
        # Numbers of a Python function's call and of the one that called it; which instance of a module it ran.
        self.python = (-1, -1)
        # Whether it ends on its own, beside what its thread does (PyTorch's `is_async`).
        self.detached = False
        self.module = -1

    @property
    def device_type(self) -> DeviceType:
        return DeviceType.PrivateUse1 if self.device >= 0 and self.kind != "cpu_instant_event" else DeviceType.CPU


class Thread:
    """A thread that takes part."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.native = threading.get_native_id()
        self.name = threading.current_thread().name
        self.open: list[Record] = []
        # Calls of Python functions that have not returned, and their names, the innermost last.
        self.python: list[Record] = []


class Options:
    """What a session is asked to record."""

    def __init__(
        self,
        cpu: bool = True,
        npu: bool = False,
        shapes: bool = False,
        memory: bool = False,
        stack: bool = False,
        flops: bool = False,
        verbose: bool = False,
        overloads: bool = False,
    ) -> None:
        self.cpu = cpu
        self.npu = npu
        self.shapes = shapes
        self.memory = memory
        self.stack = stack
        self.flops = flops
        self.verbose = verbose
        self.overloads = overloads


_NAMES: dict[Op, str] = {}


def name_of(op: Op) -> str:
    """PyTorch's name of an operator, with its namespace."""
    found = _NAMES.get(op)
    if found is None:
        found = op.qualified().partition(".")[0] if "::" in op.name else "aten::" + overloads.base_of(op.name)
        _NAMES[op] = found
    return found


def overload_of(op: Op, args: tuple[Any, ...]) -> str:
    """PyTorch's name of the overload that a call means; it shows none for the only or first one."""
    name = op.name.partition(".")[2] if "::" in op.name else overloads.name_for(op, args)
    return "" if name == "default" else name


class Session:
    """Everything recorded between start and stop."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.records: list[Record] = []
        self.threads: dict[int, Thread] = {}
        self.count = 0
        self.calls = 0
        self.start = 0
        self.end = 0
        # What is kept for the end: memory notes by device (-1 is the host), and the launches on devices.
        self.memory: list[tuple[int, int, int, int, int]] = []
        self.launches: Any = None
        self.metadata: dict[str, str] = {}
        self._local = threading.local()

    def thread(self) -> Thread:
        found: Thread | None = getattr(self._local, "thread", None)
        if found is None:
            found = Thread(len(self.threads) + 1)
            self._local.thread = found
            self.threads[found.native] = found
        return found

    # -- the records ------------------------------------------------------------------------------------------------
    def begin(self, name: str, kind: str) -> Record:
        thread = self.thread()
        self.count += 1
        r = Record(name, kind, thread, 0)
        r.number = self.count
        if self.options.verbose and thread.python:
            r.stack = tuple([p.name for p in reversed(thread.python)])
        self.records.append(r)
        thread.open.append(r)
        r.start = perf_counter_ns()
        return r

    def begin_detached(self, name: str, tensors: Any) -> Record:
        """A stretch that is not inside what its thread does; `end_detached` ends it, from any thread."""
        self.count += 1
        r = Record(name, "cpu_op", self.thread(), 0)
        r.number, r.detached = self.count, True
        if self.options.shapes:
            r.inputs = Inputs(tensors)
        self.records.append(r)
        r.start = perf_counter_ns()
        return r

    def end_detached(self, r: Record) -> None:
        r.end = perf_counter_ns()

    def finish(self, r: Record) -> None:
        now = perf_counter_ns()
        stack = r.thread.open
        while stack:
            top = stack.pop()
            top.end = now
            if top is r:
                return
        r.end = now

    def call(self, op: Op, args: tuple[Any, ...], keys: int) -> Any:
        """One operator."""
        options = self.options
        name = name_of(op)
        if options.shapes:
            inputs = Inputs(args)
            work = flops(name, args, inputs.shapes) if options.flops else 0
        else:
            inputs, work = None, 0
        r = self.begin(name, "cpu_op")
        r.inputs, r.flops = inputs, work
        if options.overloads:
            r.overload = overload_of(op, args)
        if keys & AUTOGRAD:
            r.sequence = int(SEQUENCE.next)
        below = keys & ~int(PROFILE)
        try:
            kernel = op.below(below, args)
            # A decomposition hands its keys on to its parts, which are calls of their own.
            return kernel.run(op, args, keys if kernel is op.composite else below)
        finally:
            self.finish(r)

    # -- what the engine calls --------------------------------------------------------------------------------------
    def begin_evaluation(self, node: Any) -> Record:
        r = self.begin("autograd::engine::evaluate_function: " + node.name(), "cpu_op")
        r.sequence = -1 if node._seq >= LAST else int(node._seq)
        return r

    def begin_node(self, node: Any, grads: list[Any]) -> Record:
        inputs = Inputs(grads) if self.options.shapes else None
        r = self.begin(node.name(), "cpu_op")
        r.inputs = inputs
        r.scope = BACKWARD
        r.sequence = -1 if node._seq >= LAST else int(node._seq)
        return r


class Active:
    """The session that is on, if any."""

    session: Session | None = None


def call(op: Op, args: tuple[Any, ...], keys: int) -> Any:
    """Serves the PROFILE key."""
    session = Active.session
    if session is None or not session.options.cpu:
        below = keys & ~int(PROFILE)
        return op.below(below, args).run(op, args, below)
    return session.call(op, args, keys)


def enabled() -> bool:
    """Whether this thread is profiled."""
    return bool(modes() & PROFILE) and Active.session is not None


def take_part() -> None:
    """This thread's calls are recorded from now on."""
    RESOLVERS.profiler = _KERNEL
    set_modes(modes() | PROFILE)


def leave() -> None:
    set_modes(modes() & ~PROFILE)


_KERNEL = Overrider(call)


def annotate(name: str, arg: str | None) -> Record | None:
    """Begin a stretch that the user named; None when nobody records."""
    session = Active.session
    if session is None or not session.options.cpu or not modes() & PROFILE:
        return None
    r = session.begin(name, "user_annotation")
    r.scope = USER
    r.arg = arg
    return r


def close(r: Record) -> None:
    """End it, unless its session has ended it."""
    session = Active.session
    if session is not None and r.end == 0:
        session.finish(r)


def toggle(on: bool, activities: Any) -> None:
    """Stop recording activities for a while, or go on with it."""
    session = Active.session
    if session is None:
        return
    for activity in activities:
        if activity is ProfilerActivity.CPU:
            session.options.cpu = on
        elif activity is ProfilerActivity.NPU and session.launches is not None:
            session.launches.paused = not on


def start(options: Options) -> Session:
    """Begin a session in this thread; one that is on ends, and its profiler will find nothing, as in PyTorch."""
    if Active.session is not None:
        stop()
    session = Session(options)
    if options.npu:
        from .launches import Launches

        session.launches = Launches(session)
    if options.memory:
        from . import memory

        memory.watch()
    Active.session = session
    WATCH.profiler = session
    take_part()
    session.start = perf_counter_ns()
    if options.stack:
        from . import tracer

        tracer.start(session)
    return session


def stop() -> Session:
    """End the session; every record of it has an end."""
    session = Active.session
    if session is None:
        raise RuntimeError("Can't disable Kineto profiler when it's not running")
    if session.options.stack:
        from . import tracer

        tracer.stop(session)
    leave()
    session.end = perf_counter_ns()
    Active.session = None
    WATCH.profiler = None
    for r in session.records:
        if r.end == 0:
            r.end = session.end
    if session.options.memory:
        from . import memory

        memory.collect(session)
    if session.launches is not None:
        session.launches.collect()
    return session
