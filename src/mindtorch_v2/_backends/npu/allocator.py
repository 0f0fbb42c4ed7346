"""The caching allocator of one device: segments from the vendor, cut into blocks that are reused in stream order.

Invariant: a byte belongs to exactly one block, and a block is handed out again only to work that the device does after
everything that used it: the same stream, or another one whose events have completed.

How it is safe. A block is freed by a storage's finaliser, which may run anywhere: in another thread, in the garbage
collector, in the middle of this allocator, between two vendor calls of a launch. So `free` never waits and never calls
the vendor: if it cannot have the lock at once, or finds that the allocator below it on the same stack has it (`busy`),
the block goes to `late`, which the next call drains. Lists are changed under the lock only, except that `late` is
appended to by anybody (one atomic operation) and drained by popping. No vendor call is made with the lock held: blocks
are taken out of the lists first and put back if the call fails. An allocation made from inside the allocator (a user's
finaliser that the collector happened to run there) gets a segment of its own, entered through `late` as well.

Most blocks are small, and go from and to a list of their size. Compiled, that is done without the lock (`take_kept`,
`keep`): nothing in it makes an object that the collector counts, or calls anything of Python, so no other thread and no
finaliser runs in between.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from typing import Any, Final, final

from ..._mypyc import i64, is_compiled
from .memory_stats import NOTES, Group, Statistics

_UNIT: Final[i64] = 512
_SMALL: Final[i64] = 1 << 20
_SMALL_SEGMENT: Final[i64] = 2 << 20
_LARGE_SEGMENT: Final[i64] = 20 << 20
_OWN_SEGMENT: Final[i64] = 10 << 20
_SEGMENT_UNIT: Final[i64] = 2 << 20
_MOST: Final[i64] = 1 << 62  # no device has so much, and what is rounded up from it still fits 64 bits

# What a block is. FREE: in a bin, merged with its free neighbours. KEPT: free, whole, in the bin of its exact size.
# LIVE: somebody's. WAITING: let go, but other streams may still use it. GONE: merged into another, or returned.
FREE: Final[i64] = 0
KEPT: Final[i64] = 1
LIVE: Final[i64] = 2
WAITING: Final[i64] = 3
GONE: Final[i64] = 4
# Handed out by an allocation inside the allocator, its segment not yet entered.
LOOSE: Final[i64] = 5


def round_size(n: i64) -> i64:
    """The size of the block for `n` bytes. Kernels may read up to 32 bytes behind the last 32-byte unit."""
    return (((n + 31) & -32) + 32 + _UNIT - 1) & -_UNIT


def segment_size(size: i64) -> i64:
    """How much to ask the vendor for when a block of `size` is wanted."""
    if size <= _SMALL:
        return _SMALL_SEGMENT
    if size < _OWN_SEGMENT:
        return _LARGE_SEGMENT
    return (size + _SEGMENT_UNIT - 1) // _SEGMENT_UNIT * _SEGMENT_UNIT


_COMPILED: Final = is_compiled(segment_size)


@final
class Block:
    """A run of bytes of a segment. The first block of a segment stays the same object as long as the segment lives."""

    def __init__(self, ptr: int, size: i64, pool: Pool, state: i64) -> None:
        self.ptr: int = ptr
        self.address: Final[Any] = ptr
        self.size: i64 = size
        self.requested: i64 = 0
        self.pool: Pool = pool
        self.state: i64 = state
        self.prev: Block | None = None
        self.next: Block | None = None
        # Other streams that use it, and how many of their events have not completed.
        self.uses: list[int] | None = None
        self.events: i64 = 0

    def is_part(self) -> bool:
        return self.prev is not None or self.next is not None


def put(heap: list[Block], block: Block) -> None:
    """Into a heap by address: what asks for the same sizes again gets the same blocks, whatever the order of freeing,
    so that launches recur."""
    i: i64 = len(heap)
    heap.append(block)
    while i > 0:
        above = (i - 1) >> 1
        other = heap[above]
        if other.ptr < block.ptr:
            break
        heap[i] = other
        i = above
    heap[i] = block


def take(heap: list[Block]) -> Block:
    """The block with the lowest address, out of a heap that is not empty."""
    last = heap.pop()
    n: i64 = len(heap)
    if n == 0:
        return last
    found = heap[0]
    i: i64 = 0
    below: i64 = 1
    while below < n:
        if below + 1 < n and heap[below + 1].ptr < heap[below].ptr:
            below += 1
        if last.ptr < heap[below].ptr:
            break
        heap[i] = heap[below]
        i = below
        below = 2 * i + 1
    heap[i] = last
    return found


@final
class Pool:
    """Free blocks of one stream, of small or of large segments."""

    def __init__(self, stream: int, large: bool, total: Group, group: Group) -> None:
        self.stream: Final = stream
        self.large: Final = large
        self.total: Final = total
        self.group: Final = group
        # Free blocks by size and address; `sizes` are the sorted keys. Blocks of small pools kept whole: heaps
        # (`put`) by size in units, as many as were needed.
        self.bins: dict[int, dict[int, Block]] = {}
        self.sizes: list[int] = []
        self.kept: list[list[Block]] = []

    def insert(self, block: Block) -> None:
        size = int(block.size)
        found = self.bins.get(size)
        if found is None:
            self.bins[size] = {block.ptr: block}
            insort(self.sizes, size)
        else:
            found[block.ptr] = block
        block.state = FREE

    def remove(self, block: Block) -> None:
        size = int(block.size)
        found = self.bins[size]
        del found[block.ptr]
        if not found:
            self.forget(size)

    def forget(self, size: int) -> None:
        del self.bins[size]
        del self.sizes[bisect_left(self.sizes, size)]

    def best(self, size: i64) -> Block | None:
        """The smallest free block that is large enough, taken out."""
        at = bisect_left(self.sizes, int(size))
        if at == len(self.sizes):
            return None
        chosen = self.sizes[at]
        found = self.bins[chosen]
        block = found.pop(min(found)) if len(found) > 1 else found.popitem()[1]
        if not found:
            self.forget(chosen)
        return block

    def find(self, size: i64) -> Block | None:
        """A free block cut to `size`, or None when only a new segment can help."""
        if not self.large:
            unit = size // _UNIT
            if unit < len(self.kept):
                kept = self.kept[unit]
                if kept:
                    block = take(kept)
                    if block.is_part():
                        self.split_down(1, block.size)
                    return block
        found = self.best(size)
        if found is None and self.kept:
            self.merge_kept()
            found = self.best(size)
        if found is not None:
            self.cut(found, size)
        return found

    def cut(self, block: Block, size: i64) -> None:
        """Put back what `block`, just taken out, has beyond `size`, if that is worth keeping."""
        left = block.size - size
        was_part = block.is_part()
        if left >= _UNIT if not self.large else left > _SMALL:
            rest = Block(block.ptr + int(size), left, self, FREE)
            rest.prev = block
            rest.next = block.next
            if rest.next is not None:
                rest.next.prev = rest
            block.next = rest
            block.size = size
            self.insert(rest)
            if was_part:
                # One free part before, one after, smaller by what was taken.
                self.split_down(0, size)
            else:
                self.split_up(1, left)
        elif was_part:
            self.split_down(1, block.size)

    def take_in(self, block: Block) -> None:
        """A block nobody uses any more: kept whole if small (the next request is often the same size), else merged."""
        if self.large:
            self.merge(block)
            return
        unit = block.size // _UNIT
        while len(self.kept) <= unit:
            self.kept.append([])
        block.state = KEPT
        put(self.kept[unit], block)
        if block.is_part():
            self.split_up(1, block.size)

    def merge(self, block: Block) -> None:
        """Join a block with its free neighbours and file it. The lower one survives, so heads of segments do."""
        after = block.next
        if after is not None and after.state == FREE:
            self.split_down(1, after.size)
            self.remove(after)
            self.absorb(block, after)
        before = block.prev
        if before is not None and before.state == FREE:
            self.split_down(1, before.size)
            self.remove(before)
            self.absorb(before, block)
            block = before
        self.insert(block)
        if block.is_part():
            self.split_up(1, block.size)

    def absorb(self, low: Block, high: Block) -> None:
        low.size += high.size
        low.next = high.next
        if high.next is not None:
            high.next.prev = low
        high.state = GONE
        high.prev = None
        high.next = None

    def merge_kept(self) -> None:
        kept = self.kept
        self.kept = []
        for blocks in kept:
            for block in blocks:
                if block.is_part():
                    self.split_down(1, block.size)
                self.merge(block)

    def whole(self) -> list[Block]:
        """Take out every segment that is entirely free."""
        self.merge_kept()
        out: list[Block] = []
        for found in list(self.bins.values()):
            for block in list(found.values()):
                if not block.is_part():
                    self.remove(block)
                    out.append(block)
        return out

    def split_up(self, blocks: i64, size: i64) -> None:
        self.total.split_up(blocks, size)
        self.group.split_up(blocks, size)

    def split_down(self, blocks: i64, size: i64) -> None:
        self.total.split_down(blocks, size)
        self.group.split_down(blocks, size)


@final
class Room:
    """Pools for memory that captured work uses: nobody else gets it while a graph that runs the work again lives."""

    def __init__(self, number: int) -> None:
        self.number: Final = number
        self.small: Final[dict[int, Pool]] = {}
        self.large: Final[dict[int, Pool]] = {}
        # Graphs that use it, and host memory that their copies read or write.
        self.graphs: i64 = 0
        self.held: Final[list[Any]] = []

    def pools(self) -> list[Pool]:
        return list(self.small.values()) + list(self.large.values())


@final
class Mark:
    """An event recorded behind the work of another stream that uses a block."""

    def __init__(self, event: int, stream: int, block: Block) -> None:
        self.event: Final = event
        self.stream: Final = stream
        self.block: Final = block


@final
class Allocator:
    """Memory of one device. `vendor` makes the calls: see `memory.Vendor`."""

    def __init__(self, index: int, vendor: Any) -> None:
        lock = threading.RLock()
        self.index: Final = index
        self.vendor: Final[Any] = vendor
        self.acquire: Final[Any] = lock.acquire
        self.release: Final[Any] = lock.release
        self.busy: bool = False
        self.closed: bool = False
        self.stats: Final = Statistics()
        self.small: Final[dict[int, Pool]] = {}
        self.large: Final[dict[int, Pool]] = {}
        # First block of every segment by address.
        self.segments: Final[dict[int, Block]] = {}
        self.late: Final[list[Block]] = []
        # Blocks whose other streams have no event yet; events recorded and not seen completed, with their block.
        self.unmarked: list[Block] = []
        self.marked: list[Mark] = []
        # What graphs have captured, by number; the one that is being captured; pools whose graphs have gone.
        self.rooms: Final[dict[int, Room]] = {}
        self.capture: Room | None = None
        # Rooms that threads were sent to, by the number of the thread.
        self.sent: Final[dict[int, Room]] = {}
        self.retired: Final[list[Pool]] = []
        # Bytes that may be reserved; negative: whatever the device has.
        self.limit: i64 = -1

    # -- taking -----------------------------------------------------------------------------------------------------
    def allocate(self, requested: i64, stream: int) -> Block:
        """A block for `requested` (more than 0) bytes, to be used by work on `stream`. Raises the vendor's errors and
        `OutOfMemory`."""
        if requested > _MOST:
            raise OutOfMemory(int(requested), int(requested))
        size = round_size(requested)
        if self.late or self.unmarked or self.marked:
            self.collect(False)
        room = self.capture
        if room is not None and not self.vendor.captured(stream):
            room = None
        if room is None and self.sent:
            room = self.room_of_thread()
        if _COMPILED and room is None and size <= _SMALL and not self.busy:
            quick = self.take_kept(requested, size, stream)
            if quick is not None:
                return quick
        self.acquire()
        if self.busy:
            self.release()
            return self.allocate_inside(requested, size, stream)
        self.busy = True
        try:
            pool = self.pool(size, stream, room)
            block = pool.find(size)
            if block is not None:
                self.hand_out(block, requested)
                return block
        finally:
            self.busy = False
            self.release()
        return self.grow(pool, requested, size)

    def take_kept(self, requested: i64, size: i64, stream: int) -> Block | None:
        """A block that was kept whole, without the lock; None where there is none."""
        pool = self.small.get(stream)
        if pool is None:
            return None
        unit = size // _UNIT
        if unit >= len(pool.kept) or NOTES.on:
            return None
        kept = pool.kept[unit]
        if not kept:
            return None
        block = take(kept)
        if block.is_part():
            pool.split_down(1, block.size)
        self.hand_out(block, requested)
        return block

    def pool(self, size: i64, stream: int, room: Room | None) -> Pool:
        if size <= _SMALL:
            pools = self.small if room is None else room.small
            found = pools.get(stream)
            if found is None:
                found = Pool(stream, False, self.stats.all, self.stats.small)
                pools[stream] = found
            return found
        pools = self.large if room is None else room.large
        found = pools.get(stream)
        if found is None:
            found = Pool(stream, True, self.stats.all, self.stats.large)
            pools[stream] = found
        return found

    def hand_out(self, block: Block, requested: i64) -> None:
        block.state = LIVE
        block.requested = requested
        pool = block.pool
        pool.total.taken(block.size, requested)
        pool.group.taken(block.size, requested)
        if NOTES.on:
            NOTES.add(self.index, block.ptr, int(block.size))

    def allocate_inside(self, requested: i64, size: i64, stream: int) -> Block:
        """The lists may be half changed below on this stack: touch none."""
        length = segment_size(size)
        ptr: int = self.vendor.malloc(int(length))
        if ptr == 0:
            raise OutOfMemory(int(requested), int(length))
        block = Block(
            ptr,
            length,
            Pool(stream, size > _SMALL, self.stats.all, self.stats.large if size > _SMALL else self.stats.small),
            LOOSE,
        )
        block.requested = requested
        self.late.append(block)
        return block

    # -- growing, and what to do when it is refused -----------------------------------------------------------------
    def grow(self, pool: Pool, requested: i64, size: i64) -> Block:
        length = segment_size(size)
        block = self.reserve(pool, requested, size, length)
        if block is not None:
            return block
        if self.capture is not None:
            # All that could help waits for streams, which a capture forbids.
            self.stats.ooms += 1
            raise OutOfMemory(int(requested), int(length))
        self.stats.retries += 1
        # 1. Segments this pool does not use.
        if self.return_pools([pool]):
            block = self.reserve(pool, requested, size, length)
            if block is not None:
                return block
        # 2. Blocks other streams are about to finish with.
        if self.unmarked or self.marked or self.late:
            self.collect(True)
            block = self.find_or_reserve(pool, requested, size, length)
            if block is not None:
                return block
        # 3. Everything cached on the device.
        if self.return_pools(self.pools()):
            block = self.find_or_reserve(pool, requested, size, length)
            if block is not None:
                return block
        self.stats.ooms += 1
        raise OutOfMemory(int(requested), int(length))

    def find_or_reserve(self, pool: Pool, requested: i64, size: i64, length: i64) -> Block | None:
        self.enter()
        try:
            block = pool.find(size)
            if block is not None:
                self.hand_out(block, requested)
                return block
        finally:
            self.leave()
        return self.reserve(pool, requested, size, length)

    def reserve(self, pool: Pool, requested: i64, size: i64, length: i64) -> Block | None:
        """A block at the start of a new segment; None when there is no memory for one."""
        if self.limit >= 0 and self.stats.all.reserved_bytes.current + length > self.limit:
            return None
        ptr: int = self.vendor.malloc(int(length))
        if ptr == 0:
            return None
        block = Block(ptr, length, pool, FREE)
        self.enter()
        try:
            self.enlist(block)
            pool.cut(block, size)
            self.hand_out(block, requested)
        finally:
            self.leave()
        return block

    def enlist(self, block: Block) -> None:
        self.segments[block.ptr] = block
        self.stats.mallocs += 1
        block.pool.total.reserved(block.size)
        block.pool.group.reserved(block.size)

    def pools(self) -> list[Pool]:
        return list(self.small.values()) + list(self.large.values()) + self.retired

    def return_pools(self, pools: list[Pool]) -> bool:
        """Give segments nobody uses back to the vendor; whether there were any."""
        blocks: list[Block] = []
        self.enter()
        try:
            for pool in pools:
                blocks.extend(pool.whole())
        finally:
            self.leave()
        if not blocks:
            return False
        # The vendor's free does not wait for the device.
        waited: set[int] = set()
        try:
            for block in blocks:
                stream = block.pool.stream
                if stream not in waited:
                    self.vendor.synchronize(stream)
                    waited.add(stream)
        except BaseException:
            self.enter()
            try:
                for block in blocks:
                    block.pool.insert(block)
            finally:
                self.leave()
            raise
        self.enter()
        try:
            for block in blocks:
                del self.segments[block.ptr]
                block.state = GONE
                self.stats.frees += 1
                block.pool.total.released(block.size)
                block.pool.group.released(block.size)
        finally:
            self.leave()
        self.vendor.free([block.ptr for block in blocks])
        return True

    # -- giving back ------------------------------------------------------------------------------------------------
    def free(self, block: Block) -> None:
        """From a finaliser: returns at once, raises nothing, calls no vendor function."""
        if self.closed or (_COMPILED and self.keep(block)):
            return
        if not self.acquire(False):
            self.late.append(block)
            return
        if self.busy:
            self.release()
            self.late.append(block)
            return
        self.busy = True
        try:
            self.let_go(block)
        finally:
            self.busy = False
            self.release()

    def keep(self, block: Block) -> bool:
        """Put a small block that only its own stream used into the list of its size, without the lock."""
        pool = block.pool
        if self.busy or pool.large or block.state != LIVE or block.uses is not None or NOTES.on:
            return False
        if block.size // _UNIT >= len(pool.kept):
            return False
        pool.total.given_back(block.size, block.requested)
        pool.group.given_back(block.size, block.requested)
        self.rest(block)
        return True

    def let_go(self, block: Block) -> None:
        if block.state == LOOSE:
            # Its segment is entered when `late` comes to it; freed before that, it is there twice.
            self.late.append(block)
            return
        pool = block.pool
        pool.total.given_back(block.size, block.requested)
        pool.group.given_back(block.size, block.requested)
        if NOTES.on:
            NOTES.add(self.index, block.ptr, -int(block.size))
        if block.uses is not None:
            block.state = WAITING
            self.unmarked.append(block)
        else:
            self.rest(block)

    def rest(self, block: Block) -> None:
        pool = block.pool
        block.requested = 0
        pool.total.idle(block.size)
        pool.group.idle(block.size)
        pool.take_in(block)

    def enter(self) -> None:
        """Have the lists to oneself. Only from calls that were not made inside the allocator."""
        self.acquire()
        if self.busy:
            self.release()
            raise RuntimeError(
                "the NPU allocator was called from inside itself (by a finaliser); "
                "free or allocate NPU memory elsewhere"
            )
        self.busy = True

    def leave(self) -> None:
        self.busy = False
        self.release()

    def drain(self) -> None:
        """Do what `late` holds; the lists must be ours."""
        while self.late:
            block = self.late.pop(0)
            if block.state == LOOSE:
                pool = self.pool(_SMALL + 1 if block.pool.large else _SMALL, block.pool.stream, None)
                block.pool = pool
                self.enlist(block)
                self.hand_out(block, block.requested)
            else:
                self.let_go(block)

    # -- blocks that other streams use ------------------------------------------------------------------------------
    def use_on(self, block: Block, stream: int) -> None:
        """Do not reuse `block` before what `stream` has been given until its end is done."""
        if stream == block.pool.stream:
            return
        uses = block.uses
        if uses is None:
            block.uses = [stream]
        elif stream not in uses:
            uses.append(stream)

    def collect(self, wait: bool) -> None:
        """Take in what was freed late and what other streams have finished with; `wait` for the latter."""
        self.acquire()
        if self.busy:
            self.release()
            return
        self.busy = True
        try:
            if self.late:
                self.drain()
            if self.capture is not None:
                return  # events may be neither recorded nor asked for: blocks of several streams wait for its end
            unmarked = self.unmarked
            marked = self.marked
            self.unmarked = []
            self.marked = []
        finally:
            self.busy = False
            self.release()
        if wait:
            self.stats.waits += 1
        done: list[Block] = []
        try:
            while unmarked:
                self.mark(unmarked, marked)
            self.look(marked, wait, done)
        finally:
            self.enter()
            try:
                self.unmarked.extend(unmarked)
                marked.extend(self.marked)
                self.marked = marked
                for block in done:
                    self.rest(block)
            finally:
                self.leave()

    def mark(self, unmarked: list[Block], marked: list[Mark]) -> None:
        """Record events for the last block of `unmarked`; a stream leaves its `uses` as soon as its event exists."""
        block = unmarked[len(unmarked) - 1]
        uses = block.uses
        if uses is not None:
            while uses:
                stream = uses[len(uses) - 1]
                event: int = self.vendor.record(stream)
                uses.pop()
                block.events += 1
                marked.append(Mark(event, stream, block))
            block.uses = None
        unmarked.pop()

    def look(self, marked: list[Mark], wait: bool, done: list[Block]) -> None:
        """Move blocks whose events have all completed from `marked` to `done`."""
        at = 0
        # A stream completes its events in order: after one that has not, the later ones need not be asked.
        running: set[int] = set()
        while at < len(marked):
            mark = marked[at]
            if wait:
                self.vendor.wait(mark.event)
            elif mark.stream in running or not self.vendor.done(mark.event):
                running.add(mark.stream)
                at += 1
                continue
            del marked[at]
            self.vendor.recycle(mark.event)
            mark.block.events -= 1
            if mark.block.events == 0:
                done.append(mark.block)

    # -- graphs -----------------------------------------------------------------------------------------------------
    def begin_capture(self, number: int) -> Room:
        """From now on work on captured streams gets its memory from a room of its own."""
        if self.capture is not None:
            raise RuntimeError(f"npu:{self.index}: only one graph can be captured at a time")
        self.collect(False)
        room = self.enter_room(number)
        self.capture = room
        return room

    def enter_room(self, number: int) -> Room:
        """The room of that number for one more user."""
        room = self.rooms.get(number)
        if room is None:
            room = Room(number)
            self.rooms[number] = room
        room.graphs += 1
        return room

    def room_of_thread(self) -> Room | None:
        return self.sent.get(threading.get_ident())

    def send(self, room: Room | None) -> Room | None:
        """From now on this thread gets its memory from the room; the one before."""
        thread = threading.get_ident()
        before = self.sent.pop(thread, None)
        if room is not None:
            self.sent[thread] = room
        return before

    def end_capture(self) -> None:
        self.capture = None

    def leave_room(self, room: Room) -> None:
        """A graph is gone, and the device has nothing more to do for it."""
        room.graphs -= 1
        if room.graphs > 0:
            return
        del self.rooms[room.number]
        room.held.clear()
        pools = room.pools()
        # Blocks that somebody still holds come back to these, and go when the cache is emptied.
        self.retired.extend(pools)
        self.return_pools(pools)

    # -- asked from outside -----------------------------------------------------------------------------------------
    def empty_cache(self) -> None:
        if self.capture is not None:
            raise RuntimeError("empty_cache() waits for streams, which cannot be done while a graph is captured")
        self.collect(True)
        self.return_pools(self.pools())
        self.vendor.trim()

    def close(self) -> list[int]:
        """No more frees: the process ends. The addresses of all segments, for the vendor."""
        self.enter()
        try:
            self.closed = True
            addresses = list(self.segments)
            self.segments.clear()
            return addresses
        finally:
            self.leave()

    def live(self) -> list[Block]:
        """Blocks somebody holds."""
        return [block for block in self.blocks() if block.state == LIVE]

    def blocks(self) -> list[Block]:
        self.collect(False)
        out: list[Block] = []
        self.enter()
        try:
            for head in self.segments.values():
                block: Block | None = head
                while block is not None:
                    out.append(block)
                    block = block.next
        finally:
            self.leave()
        return out


class OutOfMemory(Exception):
    """No memory for a segment; `memory` turns it into `torch.OutOfMemoryError` with an account."""

    def __init__(self, requested: int, length: int) -> None:
        super().__init__(f"{requested} bytes requested, a segment of {length} bytes refused")
        self.requested = requested
        self.length = length
