"""Device memory as tensors hold it, over one caching allocator per device.

Invariant: the memory of a storage is used only by work on the stream it was allocated for, or on streams told with
`record_stream`; a storage that dies gives its block back without waiting and without a vendor call.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Any, Final, final

from ..._dispatch.op import ASKED
from ..._storage import NOT_ALLOCATED
from ..._tensor_base import TensorBase, numel
from . import errors, runtime
from .acl_loader import ensure_acl
from .allocator import LIVE, WAITING, Allocator, Block, OutOfMemory, Room
from .memory_stats import bytes_text, flatten
from .memory_stats import summary as summary_text

_DEVICE_TO_DEVICE: Final = 3
_HUGE_FIRST: Final = 0
_EVENT_SYNC: Final = 1
_EVENT_COMPLETE: Final = 1


def wanted_by() -> str:
    """The operator that memory is wanted for, as users know it; empty when it is for none."""
    op = ASKED.op
    return "" if op is None else op.title()


@final
class Vendor:
    """The vendor's calls that the allocators of a device make. Every call makes the device current first."""

    def __init__(self, index: int) -> None:
        self.index: Final = index
        self.idle: Final[list[int]] = []

    def malloc(self, size: int) -> int:
        """An address, or 0 when the device has no memory left."""
        runtime.use(self.index)
        out = ctypes.c_void_p()
        code = ensure_acl().aclrtMalloc(ctypes.byref(out), size, _HUGE_FIRST)
        if code in errors.OUT_OF_MEMORY:
            # What the vendor says about it must not be told with a later error.
            errors.vendor_text()
            return 0
        errors.check(code, "aclrtMalloc", wanted_by())
        return out.value or 0

    def free(self, addresses: list[int]) -> None:
        """All of them, also when one fails; the first failure is raised."""
        runtime.use(self.index)
        release = ensure_acl().aclrtFree
        bad = 0
        for address in addresses:
            code = release(address)
            if bad == 0:
                bad = code
        errors.check(bad, "aclrtFree")

    def synchronize(self, stream: int, operator: str = "") -> None:
        runtime.use(self.index)
        code = ensure_acl().aclrtSynchronizeStream(stream)
        errors.check_waited(code, "aclrtSynchronizeStream", self.index, stream, operator)

    def record(self, stream: int) -> int:
        """An event behind everything the stream was given."""
        runtime.use(self.index)
        acl = ensure_acl()
        try:
            event = self.idle.pop()
        except IndexError:
            out = ctypes.c_void_p()
            errors.check(
                acl.aclrtCreateEventExWithFlag(ctypes.byref(out), _EVENT_SYNC),
                "aclrtCreateEventExWithFlag",
                wanted_by(),
            )
            event = out.value or 0
        code = acl.aclrtRecordEvent(event, stream)
        if code != 0:
            self.idle.append(event)
            errors.check(code, "aclrtRecordEvent", wanted_by())
        return event

    def done(self, event: int) -> bool:
        runtime.use(self.index)
        status = ctypes.c_int32()
        errors.check(
            ensure_acl().aclrtQueryEventStatus(event, ctypes.byref(status)), "aclrtQueryEventStatus", wanted_by()
        )
        return status.value == _EVENT_COMPLETE

    def wait(self, event: int) -> None:
        runtime.use(self.index)
        code = ensure_acl().aclrtSynchronizeEvent(event)
        if code != 0:
            errors.blame(code, "aclrtSynchronizeEvent", self.index, -1)

    def captured(self, stream: int) -> bool:
        """Whether the stream's work is kept for a graph instead of being done."""
        runtime.use(self.index)
        status, model = ctypes.c_int32(), ctypes.c_void_p()
        code = ensure_acl().aclmdlRICaptureGetInfo(stream, ctypes.byref(status), ctypes.byref(model))
        errors.check(code, "aclmdlRICaptureGetInfo", wanted_by())
        return status.value != 0

    def recycle(self, event: int) -> None:
        self.idle.append(event)

    def trim(self) -> None:
        """Destroy the events nobody uses."""
        if not self.idle:
            return
        runtime.use(self.index)
        destroy = ensure_acl().aclrtDestroyEvent
        bad = 0
        while self.idle:
            code = destroy(self.idle.pop())
            if bad == 0:
                bad = code
        errors.check(bad, "aclrtDestroyEvent")

    def info(self) -> tuple[int, int]:
        return runtime.memory_info(self.index)

    def close(self, segments: list[int]) -> None:
        """Give everything back; the device has been synchronised. Failures are of no use to anybody any more."""
        runtime.use(self.index)
        acl = ensure_acl()
        for event in self.idle:
            acl.aclrtDestroyEvent(event)
        self.idle.clear()
        for address in segments:
            acl.aclrtFree(address)


@final
class Devices:
    """The allocators, by device index."""

    def __init__(self) -> None:
        self.allocators: Final[list[Allocator]] = []
        self.lock: Final[Any] = threading.RLock()
        # Other caches of the vendor's memory: functions that give back what nobody uses.
        self.caches: Final[list[Any]] = []


_DEVICES: Final = Devices()


def add_cache(give_back: Any) -> None:
    """Have `give_back` called by `empty_cache`."""
    _DEVICES.caches.append(give_back)


def allocator(index: int) -> Allocator:
    known = _DEVICES.allocators
    if index >= len(known):
        with _DEVICES.lock:
            if not known:
                runtime.on_shutdown(30, close)
            while index >= len(known):
                known.append(Allocator(len(known), Vendor(len(known))))
    return known[index]


@final
class Hold:
    """Keeps a storage where it is as long as somebody outside has its address."""

    def __init__(self, storage: NpuStorage) -> None:
        self.storage: Final = storage
        storage.holds += 1

    def __del__(self) -> None:
        self.storage.holds -= 1


@final
class NpuStorage:
    """Bytes on a device. `ptr` is a device address; the host must not touch it. With an `owner`, which is another
    storage, it is a part of that one's bytes."""

    def __init__(self, nbytes: int, allocator: Allocator, block: Block | None, ptr: int, owner: Any) -> None:
        self.nbytes: int = nbytes
        self.allocator: Final = allocator
        self.block: Block | None = block
        self.ptr: int = ptr
        # The same number as the object that launches pass on.
        self.address: Any = ptr if block is None else block.address
        self.owner: Final[Any] = owner
        # The `UntypedStorage` made for it.
        self.wrapper: Any = None
        # How many outside have the address.
        self.holds: int = 0

    @property
    def resizable(self) -> bool:
        return self.owner is None and self.holds == 0

    def hold(self, wait: bool) -> Hold:
        """For somebody outside; with `wait` when the current stream's work is done."""
        if wait:
            self.allocator.vendor.synchronize(stream_of(self.allocator.index))
        return Hold(self)

    def __del__(self) -> None:
        block = self.block
        wrapper = self.wrapper
        if wrapper is not None:
            # Only the Python object is left; another holds the memory for it, for Python finalizes an object only once.
            self.block = None
            self.wrapper = None
            wrapper._own(type(self)(self.nbytes, self.allocator, block, self.ptr, self.owner))
        elif block is not None:
            self.block = None
            self.allocator.free(block)

    def record_stream(self, stream: int) -> None:
        """Do not hand the memory out again before the work `stream` has at the time of freeing is done."""
        block = self.block
        if block is not None:
            self.allocator.use_on(block, stream)
        elif self.owner is not None:
            self.owner.record_stream(stream)

    def part(self, start: int, nbytes: int) -> NpuStorage:
        """A storage over some of the bytes. Tensors are made over the owner: the vendor wants aligned addresses."""
        return NpuStorage(nbytes, self.allocator, None, self.ptr + start if nbytes > 0 else 0, self)

    def resize(self, nbytes: int) -> None:
        """Another size; the common prefix is copied in stream order."""
        if nbytes == self.nbytes:
            return
        if not self.resizable:
            raise RuntimeError("Trying to resize storage that is not resizable")
        index = self.allocator.index
        old = self.block
        new: Block | None = None
        if nbytes > 0:
            new = take(self.allocator, nbytes)
            if old is not None:
                kept = min(nbytes, self.nbytes)
                try:
                    copy_bytes(index, new.ptr, self.ptr, kept)
                except BaseException:
                    self.allocator.free(new)
                    raise
                self.allocator.use_on(old, stream_of(index))
        self.block = new
        self.ptr = 0 if new is None else new.ptr
        self.address = self.ptr if new is None else new.address
        self.nbytes = nbytes
        if old is not None:
            self.allocator.free(old)


def allocate(nbytes: int, index: int) -> NpuStorage:
    """Uninitialised memory for work on this thread's current stream of the device."""
    # Also where a cached block would do: a lost device, or a child of a fork, must be told at once.
    stream = stream_of(index)
    owner = allocator(index)
    if nbytes == 0:
        return NpuStorage(0, owner, None, 0, None)
    block = take_for(owner, nbytes, stream)
    return NpuStorage(nbytes, owner, block, block.ptr, None)


def stream_of(index: int) -> int:
    """The handle of this thread's current stream on a device, which is made current for the vendor."""
    return runtime.use(index).raw[index]


def captured_in(index: int, stream: int) -> Room | None:
    """The room of the graph that is being captured on a stream."""
    owner = allocator(index)
    room = owner.capture
    return room if room is not None and owner.vendor.captured(stream) else None


def take(owner: Allocator, nbytes: int) -> Block:
    """A block for work on the current stream."""
    return take_for(owner, nbytes, stream_of(owner.index))


def take_for(owner: Allocator, nbytes: int, stream: int) -> Block:
    try:
        return owner.allocate(nbytes, stream)
    except OutOfMemory as refused:
        length = refused.length
    raise errors.OutOfMemoryError(account(owner, nbytes, length))


def check_allocated(t: TensorBase) -> None:
    """A tensor with elements whose storage was made empty points nowhere: the vendor must not see it."""
    storage: NpuStorage = t._storage
    if storage.nbytes == 0 and numel(t) > 0:
        raise RuntimeError(NOT_ALLOCATED)


def copy_bytes(index: int, to: int, source: int, nbytes: int) -> None:
    """Device to device on the current stream, without waiting."""
    stream = stream_of(index)
    errors.record("aclrtMemcpyAsync", "copy_", index, stream)
    errors.check(
        ensure_acl().aclrtMemcpyAsync(to, nbytes, source, nbytes, _DEVICE_TO_DEVICE, stream),
        "aclrtMemcpyAsync",
        "copy_",
    )
    if runtime.STATE.blocking:
        allocator(index).vendor.synchronize(stream)


# -- running out ------------------------------------------------------------------------------------------------------
_HOLDERS: Final = 5


def account(owner: Allocator, nbytes: int, length: int) -> str:
    """What is where, for a request that could not be served."""
    operator = wanted_by()
    live = owner.live()
    stats = owner.stats.all
    reserved, allocated = int(stats.reserved_bytes.current), int(stats.allocated_bytes.current)
    try:
        free, total = owner.vendor.info()
        capacity = f"has a total capacity of {bytes_text(total)} of which {bytes_text(free)} is free"
    except RuntimeError:
        # This must not hide what happened.
        total, capacity = -1, "does not tell how much memory it has"
    lines = [
        f"NPU out of memory{' in ' + operator if operator else ''}. Tried to allocate {bytes_text(nbytes)} "
        f"({bytes_text(length)} with rounding) at {errors.here()}. npu:"
        f"{owner.index} {capacity}. "
        f"{bytes_text(allocated)} is held by {len(live)} live tensors' memory, {bytes_text(reserved - allocated)} is "
        "cached in segments that are partly in use."
    ]
    if owner.limit >= 0:
        lines.append(f"  this program may reserve {bytes_text(int(owner.limit))} (set_per_process_memory_fraction)")
    if live:
        live.sort(key=_size_of, reverse=True)
        shown = live[:_HOLDERS]
        named = _tensors_over(shown)
        lines.append("  largest holders:")
        for block in shown:
            lines.append(f"    {bytes_text(int(block.requested)):>12}  {named.get(block.ptr, 'no tensor found')}")
    lines.append(f"  try: {_advice(nbytes, allocated, reserved, total)}")
    return "\n".join(lines)


def _size_of(block: Block) -> int:
    return int(block.requested)


def _advice(nbytes: int, allocated: int, reserved: int, total: int) -> str:
    if 0 <= total < nbytes:
        return "a smaller tensor: this one is larger than the device"
    if reserved - allocated >= nbytes:
        return "allocate the large tensors first: the cached memory would suffice but lies in pieces"
    return "a smaller batch, or drop tensors you no longer need (del, and backward() without retain_graph)"


def _tensors_over(blocks: list[Block]) -> dict[int, str]:
    """Shape and dtype of a tensor over each block. Looked for only now: nothing is noted when memory is allocated."""
    import gc

    wanted = {block.ptr for block in blocks}
    out: dict[int, str] = {}
    for found in gc.get_objects():
        # The type itself is asked: some objects answer isinstance by importing what they stand for.
        if issubclass(type(found), TensorBase):
            t: TensorBase = found
            storage: Any = t._storage
            if isinstance(storage, NpuStorage) and storage.ptr in wanted and storage.ptr not in out:
                out[storage.ptr] = f"{t._dtype} {tuple(t._shape)}"
    return out


# -- asked by torch.npu -----------------------------------------------------------------------------------------------
def memory_stats_as_nested_dict(index: int) -> dict[str, object]:
    owner = allocator(index)
    if owner.late or owner.marked or owner.unmarked:
        owner.collect(False)
    return owner.stats.nested()


def memory_stats(index: int) -> dict[str, int]:
    return flatten(memory_stats_as_nested_dict(index))


def memory_allocated(index: int) -> int:
    owner = allocator(index)
    if owner.late:
        owner.collect(False)
    return int(owner.stats.all.allocated_bytes.current)


def max_memory_allocated(index: int) -> int:
    return int(allocator(index).stats.all.allocated_bytes.peak)


def memory_reserved(index: int) -> int:
    return int(allocator(index).stats.all.reserved_bytes.current)


def max_memory_reserved(index: int) -> int:
    return int(allocator(index).stats.all.reserved_bytes.peak)


def reset_peak_memory_stats(index: int) -> None:
    allocator(index).stats.reset_peak()


def reset_accumulated_memory_stats(index: int) -> None:
    allocator(index).stats.reset_accumulated()


def memory_summary(index: int, abbreviated: bool = False) -> str:
    return summary_text(memory_stats(index), index, abbreviated)


def mem_get_info(index: int) -> tuple[int, int]:
    """Free and total bytes of the device."""
    return allocator(index).vendor.info()  # type: ignore[no-any-return]


def set_per_process_memory_fraction(fraction: float, index: int) -> None:
    """Reserve at most this part of the device's memory; what is reserved already stays."""
    owner = allocator(index)
    owner.limit = int(owner.vendor.info()[1] * fraction)


def get_per_process_memory_fraction(index: int) -> float:
    owner = allocator(index)
    return 1.0 if owner.limit < 0 else int(owner.limit) / owner.vendor.info()[1]


def empty_cache() -> None:
    """Give segments nobody uses back to the devices, and page-locked memory nobody uses to the system."""
    for give_back in list(_DEVICES.caches):
        give_back()
    for owner in list(_DEVICES.allocators):
        if owner.segments or owner.vendor.idle:
            owner.empty_cache()


_STATES: Final = {int(LIVE): "active_allocated", int(WAITING): "active_pending_free"}


def memory_snapshot() -> list[dict[str, Any]]:
    """Every segment with its blocks, as torch.cuda.memory_snapshot gives them."""
    out: list[dict[str, Any]] = []
    for owner in list(_DEVICES.allocators):
        segment: dict[str, Any] = {}
        numbers = {id(pool): (0, room.number) for room in owner.rooms.values() for pool in room.pools()}
        for block in owner.blocks():
            if block.prev is None:
                segment = {
                    "device": owner.index,
                    "address": block.ptr,
                    "total_size": 0,
                    "allocated_size": 0,
                    "active_size": 0,
                    "requested_size": 0,
                    "stream": block.pool.stream,
                    "segment_type": "large" if block.pool.large else "small",
                    "segment_pool_id": numbers.get(id(block.pool), (0, 0)),
                    "is_expandable": False,
                    "frames": [],
                    "blocks": [],
                }
                out.append(segment)
            state = _STATES.get(int(block.state), "inactive")
            size, requested = int(block.size), int(block.requested)
            segment["total_size"] += size
            if state != "inactive":
                segment["active_size"] += size
                segment["requested_size"] += requested
            if state == "active_allocated":
                segment["allocated_size"] += size
            segment["blocks"].append(
                {"address": block.ptr, "size": size, "requested_size": requested, "state": state, "frames": []}
            )
    return out


def caching_allocator_alloc(nbytes: int, index: int, stream: int) -> int:
    """The address of a block for another library, until `caching_allocator_delete`."""
    owner = allocator(index)
    block = take_for(owner, nbytes, stream)
    _LENT[block.ptr] = (owner, block)
    return block.ptr


def caching_allocator_delete(address: int) -> None:
    lent = _LENT.pop(address, None)
    if lent is None:
        raise RuntimeError(f"caching_allocator_delete: {address:#x} was not given out by caching_allocator_alloc")
    lent[0].free(lent[1])


_LENT: Final[dict[int, tuple[Allocator, Block]]] = {}


def close() -> None:
    """Return all memory at the end of the process, when the devices have nothing to do. Storages that live on are
    dead."""
    for owner in _DEVICES.allocators:
        segments = owner.close()
        if (segments or owner.vendor.idle) and owner.index not in runtime.STATE.lost:
            for mark in owner.marked:
                owner.vendor.recycle(mark.event)
            owner.vendor.close(segments)
