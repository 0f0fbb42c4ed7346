"""Random programs over the runtime, right and wrong calls mixed, against a model that knows each code and byte."""

from __future__ import annotations

import ctypes
import random
from ctypes import byref, c_void_p

from ._emulator import D2D, D2H, H2D, Runtime, isolated

STEPS = 400
INVALID_HANDLE, INVALID_MEMORY, NULL = 107017, 107000, 100000


class Program:
    """What should be alive and what each byte should be; each step makes a call and compares its answer."""

    def __init__(self, rt: Runtime, seed: int) -> None:
        self.rt = rt
        self.random = random.Random(seed)
        self.streams: dict[int, bool] = {}  # handle: alive
        self.events: dict[int, bool] = {}
        self.blocks: dict[int, bytearray | None] = {}  # address: what its bytes will be when all streams are done
        self.violations = 0
        self.stream = rt.stream()  # all work goes here, so that its order is known

    def one_of(self, known: dict[int, bool]) -> tuple[int | None, int]:
        """A handle, alive or not, null or nonsense; and the code a call with it must answer."""
        dice = self.random.random()
        if dice < 0.05:
            return None, NULL
        if dice < 0.1:
            return self.random.randrange(1, 1 << 48), INVALID_HANDLE
        if not known:
            return None, NULL
        handle = self.random.choice(list(known))
        return handle, 0 if known[handle] else INVALID_HANDLE

    def expect(self, code: int, wanted: int) -> None:
        assert code == wanted, (code, wanted, self.rt.message())
        self.violations += wanted in (INVALID_HANDLE, INVALID_MEMORY)
        self.rt.message()

    def live_block(self) -> tuple[int, bytearray] | None:
        live = [(address, data) for address, data in self.blocks.items() if data is not None]
        return self.random.choice(live) if live else None

    # -- steps -------------------------------------------------------------------------------------------------------

    def make_stream(self) -> None:
        self.streams[self.rt.stream()] = True

    def destroy_stream(self) -> None:
        handle, code = self.one_of(self.streams)
        self.expect(self.rt.aclrtDestroyStream(handle), code)
        if handle is not None and code == 0:
            self.streams[handle] = False

    def synchronize_stream(self) -> None:
        handle, code = self.one_of(self.streams)
        self.expect(self.rt.aclrtSynchronizeStream(handle), 0 if handle is None else code)

    def make_event(self) -> None:
        self.events[self.rt.make("aclrtCreateEventExWithFlag", 9)] = True

    def destroy_event(self) -> None:
        handle, code = self.one_of(self.events)
        self.expect(self.rt.aclrtDestroyEvent(handle), code)
        if handle is not None and code == 0:
            self.events[handle] = False

    def record_event(self) -> None:
        handle, code = self.one_of(self.events)
        self.expect(self.rt.aclrtRecordEvent(handle, self.stream), code)

    def wait_event(self) -> None:
        handle, code = self.one_of(self.events)
        self.expect(self.rt.aclrtStreamWaitEvent(None, handle), code)

    def synchronize_event(self) -> None:
        handle, code = self.one_of(self.events)
        self.expect(self.rt.aclrtSynchronizeEvent(handle), code)

    def malloc(self) -> None:
        size = self.random.choice((1, 7, 32, 100, 5000))
        made = c_void_p()
        self.expect(self.rt.aclrtMalloc(byref(made), size, 0), 0)
        assert made.value is not None and self.blocks.get(made.value) is None
        self.blocks[made.value] = bytearray(b"\xcb" * size)

    def free(self) -> None:
        self.rt.ok.aclrtSynchronizeStream(self.stream)
        if not self.blocks or self.random.random() < 0.1:
            self.expect(self.rt.aclrtFree(self.random.randrange(1, 1 << 40)), INVALID_MEMORY)
            return
        address = self.random.choice(list(self.blocks))
        self.expect(self.rt.aclrtFree(address), INVALID_MEMORY if self.blocks[address] is None else 0)
        self.blocks[address] = None

    def fill(self) -> None:
        block = self.live_block()
        if block is None:
            return
        address, data = block
        start = self.random.randrange(len(data))
        count = self.random.randrange(1, len(data) - start + 1)
        value = self.random.randrange(256)
        self.expect(self.rt.aclrtMemsetAsync(address + start, count, value, count, self.stream), 0)
        data[start : start + count] = bytes([value]) * count

    def fill_too_much(self) -> None:
        block = self.live_block()
        if block is not None:
            address, data = block
            count = len(data) + self.random.randrange(1, 40)
            self.expect(self.rt.aclrtMemsetAsync(address, count, 0, count, self.stream), INVALID_MEMORY)

    def copy(self) -> None:
        source, target = self.live_block(), self.live_block()
        if source is None or target is None or source[0] == target[0]:
            return
        count = self.random.randrange(1, min(len(source[1]), len(target[1])) + 1)
        self.expect(self.rt.aclrtMemcpyAsync(target[0], count, source[0], count, D2D, self.stream), 0)
        target[1][:count] = source[1][:count]

    def upload(self) -> None:
        block = self.live_block()
        if block is not None:
            data = self.random.randbytes(len(block[1]))
            self.expect(self.rt.aclrtMemcpyAsync(block[0], len(data), data, len(data), H2D, self.stream), 0)
            block[1][:] = data

    def check(self) -> None:
        block = self.live_block()
        if block is not None:
            out = ctypes.create_string_buffer(len(block[1]))
            self.expect(self.rt.aclrtMemcpyAsync(out, len(out), block[0], len(out), D2H, self.stream), 0)
            assert out.raw == bytes(block[1])

    def run(self) -> None:
        steps = [
            self.make_stream,
            self.destroy_stream,
            self.synchronize_stream,
            self.make_event,
            self.destroy_event,
            self.record_event,
            self.wait_event,
            self.synchronize_event,
            self.malloc,
            self.malloc,
            self.free,
            self.fill,
            self.fill,
            self.fill_too_much,
            self.copy,
            self.copy,
            self.upload,
            self.check,
        ]
        for _ in range(STEPS):
            self.random.choice(steps)()
        self.rt.ok.aclrtSynchronizeDevice()
        for address, data in self.blocks.items():
            if data is not None:
                assert self.rt.download(address, len(data)) == bytes(data)
                self.rt.ok.aclrtFree(address)
        for stream in (handle for handle, alive in self.streams.items() if alive):
            self.rt.ok.aclrtDestroyStream(stream)
        for event in (handle for handle, alive in self.events.items() if alive):
            self.rt.ok.aclrtDestroyEvent(event)
        self.rt.ok.aclrtDestroyStream(self.stream)
        assert self.rt.leaks() == []
        assert len(self.rt.violations()) == self.violations


def programs(rt: Runtime, seeds: range) -> None:
    rt.start()
    for seed in seeds:
        rt.ascendEmulatorSetDelaySeed(seed % 3)
        Program(rt, seed).run()


@isolated()
def test_random_programs(rt: Runtime) -> None:
    programs(rt, range(12))


@isolated(ASCEND_EMULATOR_MEMORY="3M")
def test_random_programs_in_little_memory(rt: Runtime) -> None:
    programs(rt, range(100, 106))
