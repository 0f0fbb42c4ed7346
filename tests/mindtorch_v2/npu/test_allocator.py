"""The caching allocator's own logic, over a vendor that keeps books instead of memory."""

from __future__ import annotations

import gc
import random
import threading
from typing import Any

import pytest

from mindtorch_v2._backends.npu.allocator import (
    FREE,
    KEPT,
    LIVE,
    WAITING,
    Allocator,
    Block,
    OutOfMemory,
    round_size,
    segment_size,
)
from mindtorch_v2._backends.npu.memory_stats import bytes_text, flatten, summary

MIB = 1 << 20


class Ledger:
    """A vendor: hands out addresses up to `capacity`, and completes events only when told."""

    def __init__(self, capacity: int = 1 << 40) -> None:
        self.capacity = capacity
        self.live: dict[int, int] = {}
        self.next = 1 << 40
        self.complete: dict[int, bool] = {}
        self.recorded: list[int] = []
        self.calls: list[str] = []
        self.fail: str | None = None
        self.capturing: set[int] = set()

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if self.fail == name:
            self.fail = None
            raise RuntimeError(name)

    def malloc(self, size: int) -> int:
        self._called("malloc")
        if sum(self.live.values()) + size > self.capacity:
            return 0
        address = self.next
        self.next += size + 4096
        self.live[address] = size
        return address

    def free(self, addresses: list[int]) -> None:
        self._called("free")
        for address in addresses:
            del self.live[address]

    def captured(self, stream: int) -> bool:
        self._called("captured")
        return stream in self.capturing

    def synchronize(self, stream: int) -> None:
        self._called(f"synchronize {stream}")

    def record(self, stream: int) -> int:
        self._called("record")
        event = len(self.complete) + 1
        self.complete[event] = False
        self.recorded.append(stream)
        return event

    def done(self, event: int) -> bool:
        self._called("done")
        return self.complete[event]

    def wait(self, event: int) -> None:
        self._called("wait")
        self.complete[event] = True

    def trim(self) -> None:
        self._called("trim")

    def recycle(self, event: int) -> None:
        assert self.complete[event]


def make(capacity: int = 1 << 40) -> tuple[Allocator, Ledger]:
    ledger = Ledger(capacity)
    return Allocator(0, ledger), ledger


def flat(a: Allocator) -> dict[str, int]:
    return flatten(a.stats.nested())


# -- sizes --------------------------------------------------------------------------------------------------------
def test_a_block_has_the_vendors_padding() -> None:
    """A sub-allocated block has at least align32(length) + 32 bytes, and starts at a multiple of 64."""
    for n in (1, 31, 32, 33, 480, 481, 511, 512, 513, 1000, MIB - 32, MIB, 3 * MIB + 5):
        size = round_size(n)
        assert size >= (n + 31) // 32 * 32 + 32
        assert size % 512 == 0
        assert size - n < 1024
    assert round_size(480) == 512 and round_size(481) == 1024


def test_segments_are_pytorchs() -> None:
    assert segment_size(512) == segment_size(MIB) == 2 * MIB
    assert segment_size(MIB + 512) == segment_size(10 * MIB - 512) == 20 * MIB
    assert segment_size(10 * MIB) == 10 * MIB
    assert segment_size(10 * MIB + 512) == 12 * MIB


# -- reuse, splitting, merging ------------------------------------------------------------------------------------
def test_small_blocks_share_a_segment_and_are_reused() -> None:
    a, ledger = make()
    first, second = a.allocate(100, 0), a.allocate(100, 0)
    assert second.ptr == first.ptr + 512
    assert list(ledger.live.values()) == [2 * MIB]
    a.free(first)
    assert a.allocate(99, 0).ptr == first.ptr
    assert ledger.calls == ["malloc"]


def test_another_stream_gets_other_memory() -> None:
    a, ledger = make()
    block = a.allocate(100, 0)
    a.free(block)
    assert a.allocate(100, 7).ptr != block.ptr
    assert len(ledger.live) == 2


def test_best_fit_among_large_blocks() -> None:
    a, _ = make()
    blocks = [a.allocate(n * MIB, 0) for n in (30, 12, 20)]
    for block in blocks:
        a.free(block)
    assert a.allocate(11 * MIB, 0).ptr == blocks[1].ptr
    assert a.allocate(18 * MIB, 0).ptr == blocks[2].ptr


def test_a_large_remainder_is_split_off_and_merged_back() -> None:
    a, ledger = make()
    first = a.allocate(4 * MIB, 0)
    second = a.allocate(4 * MIB, 0)
    third = a.allocate(4 * MIB, 0)
    assert len(ledger.live) == 1
    a.free(first)
    a.free(third)
    a.free(second)
    assert [(b.size, b.state) for b in a.blocks()] == [(20 * MIB, FREE)]
    a.empty_cache()
    assert not ledger.live and not a.segments


def test_a_small_remainder_of_a_large_block_stays_with_it() -> None:
    a, _ = make()
    block = a.allocate(19 * MIB + MIB // 2, 0)
    assert block.size == segment_size(block.size)


def test_small_blocks_merge_before_a_segment_is_reserved() -> None:
    a, ledger = make()
    blocks = [a.allocate(480, 0) for _ in range(4096)]
    assert len(ledger.live) == 1
    for block in blocks:
        a.free(block)
    assert {b.state for b in a.blocks()} == {KEPT}
    whole = a.allocate(MIB - 32, 0)
    assert len(ledger.live) == 1 and whole.size == MIB
    a.free(whole)
    a.empty_cache()
    assert not ledger.live


def test_the_stream_is_waited_for_before_a_segment_is_returned() -> None:
    a, ledger = make()
    for stream in (3, 5):
        a.free(a.allocate(100, stream))
    a.empty_cache()
    assert ledger.calls[-4:] == ["synchronize 3", "synchronize 5", "free", "trim"]


def test_a_failing_synchronisation_loses_nothing() -> None:
    a, ledger = make()
    a.free(a.allocate(100, 3))
    ledger.fail = "synchronize 3"
    with pytest.raises(RuntimeError, match="synchronize 3"):
        a.empty_cache()
    assert len(a.blocks()) == 1
    a.empty_cache()
    assert not ledger.live and flat(a)["reserved_bytes.all.current"] == 0


# -- other streams ------------------------------------------------------------------------------------------------
def test_a_block_used_by_another_stream_waits_for_its_event() -> None:
    a, ledger = make()
    block = a.allocate(100, 0)
    a.use_on(block, 9)
    a.use_on(block, 9)
    a.use_on(block, 0)
    a.free(block)
    assert block.state == WAITING and not ledger.recorded
    other = a.allocate(100, 0)
    assert other.ptr != block.ptr and ledger.recorded == [9]
    ledger.complete[1] = True
    again = a.allocate(100, 0)
    assert again.ptr == block.ptr and again.uses is None


def test_without_a_record_the_block_is_reused_at_once() -> None:
    """The property the test above relies on: it is `use_on` that delays the reuse."""
    a, _ = make()
    block = a.allocate(100, 0)
    a.free(block)
    assert a.allocate(100, 0) is block


def test_every_stream_must_have_finished() -> None:
    a, ledger = make()
    block = a.allocate(100, 0)
    a.use_on(block, 8)
    a.use_on(block, 9)
    a.free(block)
    a.collect(False)
    first, second = ledger.complete
    ledger.complete[first] = True
    a.collect(False)
    assert block.state == WAITING
    ledger.complete[second] = True
    a.collect(False)
    assert block.state == KEPT


def test_a_failing_event_is_tried_again() -> None:
    a, ledger = make()
    block = a.allocate(100, 0)
    a.use_on(block, 8)
    a.use_on(block, 9)
    a.free(block)
    ledger.fail = "record"
    with pytest.raises(RuntimeError, match="record"):
        a.collect(False)
    ledger.fail = "done"
    with pytest.raises(RuntimeError, match="done"):
        a.collect(False)
    assert block.state == WAITING
    a.collect(True)
    assert block.state == KEPT and sorted(ledger.recorded) == [8, 9]


# -- running out --------------------------------------------------------------------------------------------------
def test_first_the_cache_of_the_same_pool_goes() -> None:
    a, ledger = make(40 * MIB)
    a.free(a.allocate(24 * MIB, 0))
    kept = a.allocate(100, 5)
    a.free(kept)
    a.allocate(30 * MIB, 0)
    assert "synchronize 0" in ledger.calls and "synchronize 5" not in ledger.calls
    stats = flat(a)
    assert stats["num_alloc_retries"] == 1 and stats["num_ooms"] == 0


def test_then_pending_frees_are_waited_for() -> None:
    a, ledger = make(40 * MIB)
    block = a.allocate(30 * MIB, 0)
    a.use_on(block, 4)
    a.free(block)
    assert a.allocate(28 * MIB, 0).ptr == block.ptr
    assert "wait" in ledger.calls and "free" not in ledger.calls


def test_then_the_caches_of_all_pools_go() -> None:
    a, ledger = make(40 * MIB)
    a.free(a.allocate(30 * MIB, 5))
    a.allocate(20 * MIB, 0)
    assert "synchronize 5" in ledger.calls


def test_then_it_is_an_error_and_everything_goes_on() -> None:
    a, ledger = make(40 * MIB)
    block = a.allocate(30 * MIB, 0)
    with pytest.raises(OutOfMemory) as caught:
        a.allocate(20 * MIB, 0)
    assert caught.value.requested == 20 * MIB
    assert flat(a)["num_ooms"] == 1
    a.free(block)
    a.free(a.allocate(20 * MIB, 0))
    a.empty_cache()
    assert not ledger.live


def test_a_limit_is_a_smaller_device() -> None:
    a, ledger = make()
    a.limit = 4 * MIB
    a.allocate(100, 0)
    with pytest.raises(OutOfMemory):
        a.allocate(3 * MIB, 0)
    assert ledger.calls.count("malloc") == 1
    a.limit = -1
    a.allocate(3 * MIB, 0)


# -- frees from anywhere ------------------------------------------------------------------------------------------
def test_a_free_inside_the_allocator_is_done_later() -> None:
    a, _ = make()
    block = a.allocate(100, 0)
    a.enter()
    a.free(block)
    assert block.state == LIVE
    a.leave()
    assert a.allocate(100, 0) is block


def test_an_allocation_inside_the_allocator_has_a_segment_of_its_own() -> None:
    a, ledger = make()
    a.allocate(100, 0)
    a.enter()
    inner = a.allocate(100, 0)
    gone = a.allocate(5 * MIB, 3)
    a.free(gone)
    a.leave()
    assert len(ledger.live) == 3
    a.collect(False)
    assert flat(a)["segment.all.current"] == 3 and flat(a)["allocation.all.current"] == 2
    assert inner.state == LIVE and gone.state == FREE
    a.free(inner)
    a.empty_cache()
    assert len(ledger.live) == 1


def test_a_free_while_another_thread_has_the_lock_does_not_wait() -> None:
    a, _ = make()
    block = a.allocate(100, 0)
    held, go = threading.Event(), threading.Event()

    def hold() -> None:
        a.enter()
        held.set()
        go.wait()
        a.leave()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    a.free(block)
    assert block.state == LIVE
    go.set()
    thread.join()
    a.collect(False)
    assert block.state == KEPT


def test_finalisers_and_the_collector() -> None:
    """Blocks in reference cycles are freed by the collector, which may run inside the allocator."""
    a, _ = make()

    class Holder:
        def __init__(self, block: Block) -> None:
            self.block = block
            self.me = self

        def __del__(self) -> None:
            a.free(self.block)

    before = gc.get_threshold()
    gc.set_threshold(3)
    try:
        for n in range(3000):
            Holder(a.allocate(1 + n % 5000, n % 3))
    finally:
        gc.set_threshold(*before)
    gc.collect()
    a.collect(False)
    assert flat(a)["allocation.all.current"] == 0
    check_blocks(a)


def test_threads() -> None:
    a, ledger = make()
    problems: list[BaseException] = []
    owned: dict[int, int] = {}

    def work(seed: int) -> None:
        chance = random.Random(seed)
        mine: list[Block] = []
        try:
            for _ in range(400):
                if mine and chance.random() < 0.5:
                    block = mine.pop(chance.randrange(len(mine)))
                    assert owned.pop(block.ptr) == seed
                    a.free(block)
                else:
                    block = a.allocate(chance.choice((40, 700, 5000, 2 * MIB)), 0)
                    assert block.ptr not in owned
                    owned[block.ptr] = seed
                    mine.append(block)
            for block in mine:
                assert owned.pop(block.ptr) == seed
                a.free(block)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    check_blocks(a)
    a.empty_cache()
    assert not ledger.live


# -- against a model ----------------------------------------------------------------------------------------------
def check_blocks(a: Allocator) -> None:
    """Blocks tile their segments; what is counted is what is there; free neighbours are merged."""
    blocks = a.blocks()
    total = 0
    for head in a.segments.values():
        assert head.prev is None
        block: Block | None = head
        at = head.ptr
        while block is not None:
            assert block.ptr == at and block.size > 0 and block.size % 512 == 0
            at += block.size
            total += block.size
            assert block.next is None or block.next.prev is block
            if block.next is not None:
                assert not (block.state == FREE and block.next.state == FREE)
            block = block.next
    stats = flat(a)
    for kind, large in (("all", None), ("small_pool", False), ("large_pool", True)):
        these = [b for b in blocks if large is None or b.pool.large == large]
        live = [b for b in these if b.state == LIVE]
        active = [b for b in these if b.state in (LIVE, WAITING)]
        parts = [b for b in these if b.state in (FREE, KEPT) and b.is_part()]
        expected = {
            "allocation": len(live),
            "allocated_bytes": sum(b.size for b in live),
            "requested_bytes": sum(b.requested for b in live),
            "active": len(active),
            "active_bytes": sum(b.size for b in active),
            "inactive_split": len(parts),
            "inactive_split_bytes": sum(b.size for b in parts),
            "segment": sum(b.prev is None for b in these),
            "reserved_bytes": sum(b.size for b in these),
        }
        for name, value in expected.items():
            assert stats[f"{name}.{kind}.current"] == value, (name, kind)
            assert stats[f"{name}.{kind}.allocated"] - stats[f"{name}.{kind}.freed"] == value
            assert stats[f"{name}.{kind}.peak"] >= value


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_keep_the_books(seed: int) -> None:
    chance = random.Random(seed)
    capacity = chance.choice((60 * MIB, 200 * MIB, 1 << 40))
    a, ledger = make(capacity)
    live: list[Block] = []
    for step in range(600):
        what = chance.random()
        if what < 0.5 or not live:
            n = int(2 ** (chance.random() * (24 if chance.random() < 0.3 else 13))) + 1
            try:
                block = a.allocate(n, chance.randrange(3))
            except OutOfMemory:
                assert capacity < 1 << 40
                continue
            assert block.size >= (n + 31) // 32 * 32 + 32 and block.ptr % 64 == 0
            # No two live blocks overlap.
            assert all(block.ptr + block.size <= b.ptr or b.ptr + b.size <= block.ptr for b in live)
            live.append(block)
        elif what < 0.9:
            block = live.pop(chance.randrange(len(live)))
            if chance.random() < 0.2:
                a.use_on(block, chance.randrange(3, 6))
            a.free(block)
        elif what < 0.97:
            for event in ledger.complete:
                ledger.complete[event] = ledger.complete[event] or chance.random() < 0.5
        elif what < 0.98:
            a.empty_cache()
        if step % 50 == 0:
            check_blocks(a)
    for block in live:
        a.free(block)
    a.empty_cache()
    check_blocks(a)
    assert not ledger.live and not a.segments


# -- statistics ---------------------------------------------------------------------------------------------------
def test_statistics_have_pytorchs_names() -> None:
    a, _ = make()
    names = flat(a)
    for group in (
        "allocation",
        "segment",
        "active",
        "inactive_split",
        "allocated_bytes",
        "reserved_bytes",
        "active_bytes",
        "inactive_split_bytes",
        "requested_bytes",
    ):
        for pool in ("all", "small_pool", "large_pool"):
            for kind in ("current", "peak", "allocated", "freed"):
                assert f"{group}.{pool}.{kind}" in names
    assert {"num_alloc_retries", "num_ooms", "max_split_size", "oversize_segments.peak"} < names.keys()
    assert list(names) == sorted(names)


def test_peaks_and_totals_are_reset_separately() -> None:
    a, _ = make()
    block: Any = a.allocate(3000, 0)
    size = round_size(3000)
    a.free(block)
    assert flat(a)["allocated_bytes.all.peak"] == size and flat(a)["requested_bytes.all.allocated"] == 3000
    a.stats.reset_peak()
    assert flat(a)["allocated_bytes.all.peak"] == 0 and flat(a)["allocated_bytes.all.allocated"] == size
    a.stats.reset_accumulated()
    assert flat(a)["allocated_bytes.all.allocated"] == 0 and flat(a)["reserved_bytes.all.current"] == 2 * MIB


def test_the_summary_is_a_table() -> None:
    a, _ = make()
    a.allocate(3000, 0)
    text = summary(flat(a), 0, False)
    assert "2.00 MiB" in text and "3.00 KiB" in text and "small pool" in text
    assert "small pool" not in summary(flat(a), 0, True)
    assert len({len(line) for line in text.splitlines() if set(line) == {"-"}}) == 1
    assert bytes_text(5) == "5 B" and bytes_text(1 << 40) == "1.00 TiB"


def test_a_room_is_for_captured_streams_only() -> None:
    vendor = Ledger()
    owner = Allocator(0, vendor)
    outside = owner.allocate(100, 7)
    owner.free(outside)
    room = owner.begin_capture(1)
    with pytest.raises(RuntimeError, match="only one graph"):
        owner.begin_capture(2)
    vendor.capturing = {7}
    inside, beside = owner.allocate(100, 7), owner.allocate(100, 8)
    assert inside.ptr != outside.ptr and inside.pool in room.pools() and beside.pool not in room.pools()
    owner.use_on(inside, 8)
    owner.free(inside)
    vendor.calls.clear()
    again = owner.allocate(100, 7)  # the first one waits for stream 8, and nobody may ask now
    assert again.ptr != inside.ptr and "record" not in vendor.calls and "done" not in vendor.calls
    with pytest.raises(RuntimeError, match="empty_cache"):
        owner.empty_cache()
    owner.end_capture()
    vendor.capturing = set()
    plain = owner.allocate(100, 7)
    assert plain.ptr == outside.ptr
    owner.free(again)
    owner.empty_cache()
    assert inside.ptr in vendor.live  # the graph may still write there
    owner.leave_room(room)
    owner.empty_cache()
    assert inside.ptr not in vendor.live and not owner.rooms


def test_no_memory_in_a_capture_waits_for_nothing() -> None:
    vendor = Ledger(4 * MIB)
    owner = Allocator(0, vendor)
    kept = owner.allocate(100, 7)
    owner.free(kept)
    room = owner.begin_capture(1)
    vendor.capturing = {7}
    with pytest.raises(OutOfMemory):
        owner.allocate(8 * MIB, 7)
    assert "synchronize" not in vendor.calls
    owner.end_capture()
    owner.leave_room(room)
