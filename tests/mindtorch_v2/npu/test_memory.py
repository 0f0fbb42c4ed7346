"""Device memory: caching, streams, statistics, running out, and that nothing is left behind."""

from __future__ import annotations

import gc
import random
import subprocess
import sys
import threading
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._backends.npu import memory, streams
from mindtorch_v2._backends.npu.allocator import round_size

from . import _control as control
from ._layouts import environment

MIB = 1 << 20


@pytest.fixture(autouse=True)
def nothing_cached() -> None:
    gc.collect()
    torch.npu.synchronize()
    torch.npu.empty_cache()


def block(nbytes: int, **options: Any) -> Any:
    return torch.empty(nbytes, dtype=torch.uint8, device="npu", **options)


# -- caching ------------------------------------------------------------------------------------------------------
def test_memory_is_reused_in_stream_order() -> None:
    t = block(1000)
    address = t.data_ptr()
    assert address % 64 == 0
    del t
    assert block(1010).data_ptr() == address


def test_no_memory_is_held_for_nothing() -> None:
    before = torch.npu.memory_allocated()
    t = torch.empty(0, 3, device="npu")
    assert t.data_ptr() == 0 and t.untyped_storage().nbytes() == 0
    assert torch.npu.memory_allocated() == before


def test_every_stream_has_memory_of_its_own() -> None:
    side = torch.npu.Stream()
    t = block(1000)
    address = t.data_ptr()
    del t
    with torch.npu.stream(side):
        other = block(1000)
    assert other.data_ptr() != address
    assert block(1000).data_ptr() == address


def test_views_hold_the_memory() -> None:
    base = torch.arange(100.0).npu()
    address, part = base.data_ptr(), base[10:20]
    del base
    assert part.data_ptr() == address + 40 and block(400).data_ptr() != address
    assert part.cpu().tolist() == list(range(10, 20))


def test_devices_have_memory_of_their_own() -> None:
    before = torch.npu.memory_allocated(1)
    t = torch.empty(5000, device="npu:1")
    assert t.device.index == 1
    assert torch.npu.memory_allocated(1) == before + round_size(20000)
    del t
    assert torch.npu.memory_allocated(1) == before


@control.emulator_only
def test_the_cache_can_be_given_back(emulator: Any) -> None:
    held = emulator.live_bytes(0)
    t = block(3 * MIB)
    assert emulator.live_bytes(0) >= held + 20 * MIB
    del t
    assert emulator.live_bytes(0) >= held + 20 * MIB
    torch.npu.empty_cache()
    assert emulator.live_bytes(0) == held


@control.emulator_only
def test_the_cache_is_not_given_back_under_running_work() -> None:
    """The vendor's free does not wait, and the emulator reports memory freed under a queued copy."""
    stream = torch.npu.Stream()
    host = torch.zeros(MIB, dtype=torch.uint8).pin_memory()
    with torch.npu.stream(stream), control.slow(stream, 20):
        t = block(MIB)
        t.copy_(host, non_blocking=True)
        del t
        torch.npu.empty_cache()


# -- other streams ------------------------------------------------------------------------------------------------
def copy_late(target: Any, source: Any) -> None:
    """A copy on the current stream that tells the allocator nothing."""
    memory.copy_bytes(0, target.data_ptr(), source.data_ptr(), source.nbytes)


@control.emulator_only
@pytest.mark.parametrize("seed", range(1, 21))
def test_record_stream_keeps_memory_from_being_reused(seed: int) -> None:
    side = torch.npu.Stream()
    with control.delays(seed), control.slow(side, 5):
        source = torch.full((2000,), 7.0).npu()
        target = torch.zeros(2000).npu()
        address = source.data_ptr()
        torch.npu.synchronize()
        with torch.npu.stream(side):
            copy_late(target, source)
        source.record_stream(side)
        del source
        other = torch.full((2000,), 1.0).npu()
        assert other.data_ptr() != address
        side.synchronize()
        assert target.cpu().tolist() == [7.0] * 2000
        del other
    # Its turn comes when the stream has finished, and after free blocks with lower addresses.
    again = [torch.empty(2000, device="npu") for _ in range(256)]
    assert any(t.data_ptr() <= address < t.data_ptr() + round_size(8000) for t in again)


@control.emulator_only
def test_without_record_stream_the_memory_is_overwritten() -> None:
    """What the test above would see if nobody had recorded the stream."""
    side = torch.npu.Stream()
    source = torch.full((2000,), 7.0).npu()
    target = torch.zeros(2000).npu()
    address = source.data_ptr()
    with control.slow(side, 50):
        with torch.npu.stream(side):
            copy_late(target, source)
        del source
        other = torch.full((2000,), 1.0).npu()
        assert other.data_ptr() == address
        side.synchronize()
    assert target.cpu().tolist() == [1.0] * 2000


@control.emulator_only
@pytest.mark.parametrize("seed", range(1, 11))
def test_programs_on_three_streams_compute_what_one_does(seed: int) -> None:
    """Tensors are made, used on other streams and dropped at random; memory reused too early changes a value."""
    chance = random.Random(seed)
    queues = [torch.npu.default_stream(), torch.npu.Stream(), torch.npu.Stream()]
    # The tensor, the stream it was made on, and what it must hold.
    held: list[tuple[Any, Any, Any]] = []
    with control.delays(seed):
        for step in range(80):
            queue = chance.choice(queues)
            with torch.npu.stream(queue):
                if len(held) < 3:
                    host = torch.full((chance.choice((50, 700)),), float(step)).pin_memory()
                    made, expected = host.to("npu", non_blocking=True), host.clone()
                else:
                    t, home, value = chance.choice(held)
                    if home is not queue:
                        queue.wait_stream(home)
                        t.record_stream(queue)
                    made, expected = t * 0.5 + step, value * 0.5 + step
            held.append((made, queue, expected))
            while len(held) > 6:
                del held[chance.randrange(len(held))]
            made = t = None
        for t, home, value in held:
            with torch.npu.stream(home):
                assert t.cpu().tolist() == value.tolist()


@control.emulator_only
def test_the_events_behind_it_are_reused_and_given_back(emulator: Any) -> None:
    side = torch.npu.Stream()
    handles = emulator.live_handles()
    for _ in range(10):
        t = block(1000)
        t.record_stream(side)
        del t
        block(1000)
        side.synchronize()
    torch.npu.synchronize()
    assert handles < emulator.live_handles() <= handles + 2
    torch.npu.empty_cache()
    assert emulator.live_handles() == handles


def test_record_stream_says_what_is_wrong() -> None:
    t = torch.zeros(3).npu()
    with pytest.raises(TypeError, match="must be Stream, not int"):
        t.record_stream(3)
    with pytest.raises(RuntimeError, match="npu:0 and the stream on npu:1"):
        t.record_stream(torch.npu.Stream(1))
    with pytest.raises(NotImplementedError, match="'CPU' backend"):
        torch.zeros(3).record_stream(torch.npu.Stream())


# -- statistics ---------------------------------------------------------------------------------------------------
def test_statistics_follow_what_is_held() -> None:
    torch.npu.reset_peak_memory_stats()
    base = torch.npu.memory_allocated()
    chance = random.Random(1)
    held: list[Any] = []
    expected = peak = base
    for _ in range(300):
        if held and chance.random() < 0.5:
            expected -= round_size(held.pop(chance.randrange(len(held))).nbytes)
        else:
            n = int(2 ** (chance.random() * 20)) + 1
            held.append(block(n))
            expected += round_size(n)
        peak = max(peak, expected)
        assert torch.npu.memory_allocated() == expected
    assert torch.npu.max_memory_allocated() == peak
    stats = torch.npu.memory_stats()
    assert stats["allocated_bytes.all.current"] == expected
    assert stats["requested_bytes.all.current"] <= stats["allocated_bytes.all.current"]
    assert torch.npu.memory_reserved() == stats["reserved_bytes.all.current"] >= expected
    assert torch.npu.max_memory_reserved() >= torch.npu.memory_reserved()
    torch.npu.reset_peak_memory_stats()
    assert torch.npu.max_memory_allocated() == expected
    torch.npu.reset_accumulated_memory_stats()
    assert torch.npu.memory_stats()["allocation.all.allocated"] == 0


@control.emulator_only
def test_reserved_memory_is_what_the_vendor_gave(emulator: Any) -> None:
    held = [block(n) for n in (10, 5000, 3 * MIB, 30 * MIB)]
    assert emulator.live_bytes(0) == torch.npu.memory_reserved() > sum(t.nbytes for t in held)
    free, total = torch.npu.mem_get_info()
    assert total - free >= torch.npu.memory_reserved()


def test_the_snapshot_shows_segments_and_blocks() -> None:
    t = block(3000)
    found = [(s, b) for s in torch.npu.memory_snapshot() for b in s["blocks"] if b["address"] == t.data_ptr()]
    [(segment, shown)] = found
    assert shown["state"] == "active_allocated" and shown["requested_size"] == 3000
    assert segment["segment_type"] == "small" and segment["total_size"] == 2 * MIB and segment["device"] == 0
    assert sum(b["size"] for b in segment["blocks"]) == segment["total_size"]
    assert segment["allocated_size"] == sum(b["size"] for b in segment["blocks"] if b["state"] == "active_allocated")
    addresses = [b["address"] for b in segment["blocks"]]
    assert addresses == sorted(addresses) and addresses[0] == segment["address"]


def test_the_summary_is_text() -> None:
    t = block(3000)
    assert "NPU memory, device 0" in torch.npu.memory_summary() and t.nbytes == 3000
    assert len(torch.npu.memory_summary(abbreviated=True)) < len(torch.npu.memory_summary())


def test_memory_for_other_libraries() -> None:
    before = torch.npu.memory_allocated()
    address = torch.npu.caching_allocator_alloc(1000)
    assert torch.npu.memory_allocated() == before + round_size(1000)
    torch.npu.caching_allocator_delete(address)
    assert torch.npu.memory_allocated() == before
    with pytest.raises(RuntimeError, match="was not given out"):
        torch.npu.caching_allocator_delete(address)


# -- running out --------------------------------------------------------------------------------------------------
REFUSED = "aclrtMalloc:{}:207001"


def refused(times: int) -> Any:
    return control.fault(";".join(REFUSED.format(n + 1) for n in range(times)))


def stats() -> dict[str, int]:
    found: dict[str, int] = torch.npu.memory_stats()
    return found


@control.emulator_only
def test_first_the_cache_of_the_same_pool_goes(emulator: Any) -> None:
    cached, kept = block(12 * MIB), block(100)
    del cached
    before, freed = stats(), emulator.calls("aclrtFree")
    with refused(1):
        t = block(30 * MIB)
    assert emulator.calls("aclrtFree") == freed + 1
    assert stats()["num_alloc_retries"] == before["num_alloc_retries"] + 1
    assert stats()["num_ooms"] == before["num_ooms"]
    assert t.nbytes == 30 * MIB and kept.nbytes == 100


@control.emulator_only
def test_then_pending_frees_are_waited_for() -> None:
    side = torch.npu.Stream()
    with control.slow(side, 20):
        t, target = block(30 * MIB), block(100)
        address = t.data_ptr()
        with torch.npu.stream(side):
            copy_late(target, t[:100])
        t.record_stream(side)
        del t
        with refused(3):
            assert block(30 * MIB).data_ptr() == address
        assert side.query()


@control.emulator_only
def test_then_the_caches_of_all_pools_go(emulator: Any) -> None:
    side = torch.npu.Stream()
    with torch.npu.stream(side):
        cached = block(30 * MIB)
    del cached
    freed = emulator.calls("aclrtFree")
    with refused(1):
        t = block(12 * MIB)
    assert emulator.calls("aclrtFree") == freed + 1 and t.nbytes == 12 * MIB


@control.emulator_only
def test_then_it_is_an_error_with_an_account() -> None:
    large = torch.empty(3, MIB, dtype=torch.float32, device="npu")
    before = stats()
    with refused(10), pytest.raises(torch.OutOfMemoryError) as caught:
        torch.empty(40 * MIB, dtype=torch.uint8, device="npu")
    text = str(caught.value)
    assert isinstance(caught.value, RuntimeError)
    assert "Tried to allocate 40.00 MiB" in text and "npu:0 has a total capacity of" in text
    assert "12.00 MiB" in text and "torch.float32 (3, 1048576)" in text and "try: " in text
    assert stats()["num_ooms"] == before["num_ooms"] + 1
    assert stats()["allocated_bytes.all.current"] == before["allocated_bytes.all.current"]
    assert torch.empty(40 * MIB, dtype=torch.uint8, device="npu").nbytes == 40 * MIB and large.numel() == 3 * MIB


@control.emulator_only
def test_the_account_survives_a_device_that_tells_nothing() -> None:
    with control.fault("aclrtGetMemInfo:1:507899;" + ";".join(REFUSED.format(n) for n in range(1, 9))):
        with pytest.raises(torch.OutOfMemoryError, match="npu:0 does not tell how much memory it has"):
            block(50 * MIB)


@control.emulator_only
def test_another_refusal_is_the_vendors_error() -> None:
    with control.fault("aclrtMalloc:1:507899"), pytest.raises(RuntimeError, match="aclrtMalloc.*507899") as caught:
        block(50 * MIB)
    assert not isinstance(caught.value, torch.OutOfMemoryError)
    assert block(50 * MIB).nbytes == 50 * MIB


def test_a_program_may_be_limited_to_a_part() -> None:
    total = torch.npu.mem_get_info()[1]
    try:
        torch.npu.set_per_process_memory_fraction(100 * MIB / total)
        assert abs(torch.npu.get_per_process_memory_fraction() - 100 * MIB / total) < 1e-6
        t = block(40 * MIB)
        with pytest.raises(torch.OutOfMemoryError, match="may reserve 100.00 MiB"):
            block(90 * MIB)
        del t
        assert block(90 * MIB).nbytes == 90 * MIB
    finally:
        torch.npu.set_per_process_memory_fraction(1.0)


@control.emulator_only
def test_a_device_that_is_really_full() -> None:
    """In a process of its own, with little memory: allocate until it is full, free, and go on."""
    code = """
import mindtorch_v2 as torch
held = []
try:
    while True:
        held.append(torch.empty(3 << 20, dtype=torch.uint8, device="npu"))
except torch.OutOfMemoryError as error:
    assert "is free" in str(error), error
assert len(held) >= 15, len(held)
del held[::2]
held.append(torch.empty(3 << 20, dtype=torch.uint8, device="npu"))
held.clear()
whole = torch.empty(60 << 20, dtype=torch.uint8, device="npu")
print(torch.npu.memory_stats()["num_ooms"], torch.npu.memory_reserved() >> 20)
"""
    done = run(code, ASCEND_EMULATOR_MEMORY="64M")
    assert done.stdout.split() == ["1", "62"], done.stdout + done.stderr


def program() -> None:
    """Something of everything that calls the vendor from here."""
    side = torch.npu.Stream()
    host = torch.arange(300.0).pin_memory()
    there = host.to("npu", non_blocking=True)
    torch.npu.default_stream().synchronize()
    with torch.npu.stream(side):
        target = torch.empty(300, device="npu")
        copy_late(target, there)
        there.record_stream(side)
        del there
        back = target.to("cpu", non_blocking=True)
        side.synchronize()
    assert back.tolist() == list(range(300))
    block(3 * MIB)
    s = target.untyped_storage()
    s.resize_(5000)
    assert target.cpu().tolist() == list(range(300))
    other = target.to("npu:1")
    assert other.cpu().tolist() == list(range(300))
    torch.npu.empty_cache()


@control.emulator_only
def test_a_failure_of_any_vendor_call_leaves_everything_in_order(emulator: Any) -> None:
    program()
    gc.collect()
    torch.npu.empty_cache()
    first = emulator.calls()
    program()
    count = emulator.calls() - first
    assert count > 20
    torch.npu.empty_cache()
    before = [torch.npu.memory_allocated(i) for i in range(2)]
    held = [emulator.live_bytes(i) for i in range(2)]
    for n in range(1, count + 1):
        emulator.fault(f"*:{n}:507899")
        try:
            program()
        except RuntimeError as error:
            assert "507899" in str(error) and "failed" in str(error), (n, error)
        emulator.clear_faults()
        gc.collect()
        torch.npu.synchronize(0)
        torch.npu.synchronize(1)
        torch.npu.empty_cache()
        assert [torch.npu.memory_allocated(i) for i in range(2)] == before, n
        assert [emulator.live_bytes(i) for i in range(2)] == held, n
        assert [torch.npu.memory_reserved(i) for i in range(2)] == held, n
        program()


@control.emulator_only
def test_no_memory_at_any_allocation(emulator: Any) -> None:
    """The first request that is refused for good names its operator; the next program runs."""
    torch.npu.empty_cache()
    first = emulator.calls("aclrtMalloc")
    program()
    count = emulator.calls("aclrtMalloc") - first
    assert count >= 3
    for n in range(1, count + 1):
        torch.npu.empty_cache()
        emulator.fault(";".join(REFUSED.format(n + k) for k in range(4)))
        with pytest.raises(torch.OutOfMemoryError, match=r"NPU out of memory.* at .*test_memory.py:\d+"):
            program()
        emulator.clear_faults()
        program()


# -- threads, and leaving -----------------------------------------------------------------------------------------
def test_threads_share_the_allocator() -> None:
    before = torch.npu.memory_allocated()
    problems: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            chance = random.Random(seed)
            for n in range(40):
                t = torch.full((chance.randrange(1, 3000),), float(seed * 100 + n)).npu()
                if chance.random() < 0.5:
                    held = t[1:]
                    del t
                    t = held
                assert set(t.cpu().tolist()) <= {float(seed * 100 + n)}
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    gc.collect()
    assert torch.npu.memory_allocated() == before


@control.emulator_only
def test_a_child_of_a_fork_gets_no_memory_of_its_parent() -> None:
    done = run("""
import os
import sys
import mindtorch_v2 as torch
t = torch.zeros(100).npu()
torch.zeros(100).npu()
child = os.fork()
if child == 0:
    try:
        torch.empty(100, device="npu")
    except RuntimeError as error:
        print(error, flush=True)
    del t
    os._exit(0)
os.waitpid(child, 0)
print(t.sum().item())
""")
    assert "forked subprocess" in done.stdout and done.stdout.endswith("0.0\n"), done.stdout


def test_a_device_that_does_not_exist() -> None:
    for size in (3, 0):
        with pytest.raises(RuntimeError, match="npu:77 does not exist"):
            torch.empty(size, device="npu:77")


def test_memory_freed_in_another_thread_and_by_the_collector() -> None:
    before = torch.npu.memory_allocated()
    held = [torch.zeros(500).npu() for _ in range(50)]
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    assert torch.npu.memory_allocated() == before

    class Cycle:
        def __init__(self) -> None:
            self.t, self.me = torch.zeros(500).npu(), self

    for _ in range(50):
        Cycle()
    gc.collect()
    assert torch.npu.memory_allocated() == before


def run(code: str, **settings: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment(None, MINDTORCH_NPU="emulator", **settings),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@control.emulator_only
def test_a_program_that_ends_with_live_tensors_leaves_in_order() -> None:
    done = run(
        """
import mindtorch_v2 as torch
a = torch.ones(1000).npu()
b = torch.empty(3000, device="npu")
p = torch.zeros(1000).pin_memory()
side = torch.npu.Stream()
with torch.npu.stream(side):
    c = p.to("npu", non_blocking=True)
    c.record_stream(torch.npu.default_stream())
    del c
cycle = [a]
cycle.append(cycle)
""",
        ASCEND_EMULATOR_REPORT="1",
    )
    # Page-locked memory that a tensor holds may be read by whatever else runs at exit; all the rest went back.
    assert [line.split(" at ")[0] for line in done.stderr.splitlines()[1:]] == [
        "ascend emulator: leak: 4096 bytes of host memory"
    ], done.stderr


def test_no_two_live_tensors_share_memory() -> None:
    chance = random.Random(3)
    side = torch.npu.Stream()
    live: list[Any] = []
    for _ in range(400):
        if live and chance.random() < 0.45:
            gone = live.pop(chance.randrange(len(live)))
            if chance.random() < 0.3:
                gone.record_stream(side)
            del gone
        else:
            n = int(2 ** (chance.random() * 22)) + 1
            t = block(n)
            at = t.data_ptr()
            assert all(at + n + 32 <= o.data_ptr() or o.data_ptr() + o.nbytes + 32 <= at for o in live)
            live.append(t)
    assert streams.raw_stream(0) == 0
