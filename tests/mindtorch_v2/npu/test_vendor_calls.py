"""Calls of C functions by address: what reaches the function, in which register, and what is refused before."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import pytest

from mindtorch_v2 import _native

from .._subject import mindtorch_only

pytestmark = mindtorch_only


def address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def called(kinds: list[Any], letters: bytes, values: list[Any]) -> list[Any]:
    """What a C function with these parameters, and the two results, was given."""
    seen: list[Any] = []

    def body(*arguments: Any) -> int:
        seen.extend(arguments[:-2])
        ctypes.c_uint64.from_address(arguments[-2]).value = 4096
        ctypes.c_void_p.from_address(arguments[-1]).value = 0x5A00
        return 7

    phase1 = ctypes.CFUNCTYPE(ctypes.c_int32, *kinds, ctypes.c_void_p, ctypes.c_void_p)(body)
    function = _native.vendor_function(1, 1, 1, 1, address(phase1), 1, 1, letters, "aclnnX", 0, 0)
    assert _native.vendor_launch(function, values, "x", 0, 0, True, 0) == (1, 7, 4096, 0x5A00, [], [])
    return seen


I64, I32, U64, F64, F32, P, S, B = (
    ctypes.c_int64,
    ctypes.c_int32,
    ctypes.c_uint64,
    ctypes.c_double,
    ctypes.c_float,
    ctypes.c_void_p,
    ctypes.c_char_p,
    ctypes.c_bool,
)


@pytest.mark.parametrize("count", [0, 1, 4, 5, 6, 7, 12, 30])
def test_integers_in_registers_and_on_the_stack(count: int) -> None:
    values = [(-1) ** i * (i + 1) * 2**33 for i in range(count)]
    assert called([I64] * count, b"i" * count, values) == values


def test_floats_between_integers() -> None:
    kinds = [P, F64, I64, F32, B, I32, S, F64, U64, I64, I64, F32, P, I64]
    values = [None, 0.5, -3, 1.25, True, -7, b"mean", -2.5, 2**64 - 1, 5, 6, 0.75, 0x1000, 9]
    assert called(kinds, b"idifiisdiiifii", values) == values


def test_eight_floats() -> None:
    values = [float(i) + 0.5 for i in range(8)]
    assert called([F64, F32] * 4, b"df" * 4, values) == values


def test_every_handle_is_destroyed() -> None:
    seen: list[int] = []

    def body(handle: int) -> int:
        seen.append(handle)
        return handle % 10

    function = ctypes.CFUNCTYPE(I32, P)(body)
    assert _native.vendor_destroy(address(function), [10, None, 13, 20, 14]) == 3
    assert seen == [10, 13, 20, 14]


def test_the_second_phase() -> None:
    function = ctypes.CFUNCTYPE(I32, P, U64, P, P)(lambda *given: int(given == (1, 2, 3, None)))
    assert _native.vendor_phase2(address(function), 1, 2, 3, 0) == 1


class Vendor:
    """A vendor function of two tensors, or lists of them, whose calls are written down; `answers`: codes by call."""

    def __init__(self, size: int = 0, letters: bytes = b"tti", repeatable: bool = False, **answers: int) -> None:
        self.calls: list[Any] = []
        self.described: list[Any] = []
        self.answers = answers
        self.refill()

        def create(
            dims: Any, n: int, code: int, strides: Any, offset: int, form: int, storage: Any, m: int, ptr: Any
        ) -> Any:
            handle = next(self.made)
            self.calls.append(("create", handle))
            self.described.append([dims[:n], code, strides[:n] if strides else None, offset, form, storage[:m], ptr])
            return None if self.answers.get("create") == handle else handle

        def destroy(handle: int) -> int:
            self.calls.append(("destroy", handle))
            return self.answers.get("destroy", 0)

        def create_list(handles: Any, n: int) -> Any:
            self.calls.append(("list", handles[:n]))
            return None if self.answers.get("list") else 0x900 + len(self.calls)

        def destroy_list(handle: int) -> int:
            self.calls.append(("destroy list", handle))
            return self.answers.get("destroy_list", 0)

        def phase1(a: Any, b: Any, k: int, size_at: int, executor_at: int) -> int:
            self.calls.append(("phase1", a, b, k))
            ctypes.c_uint64.from_address(size_at).value = size
            ctypes.c_void_p.from_address(executor_at).value = 0x5A00
            return self.answers.get("phase1", 0)

        def phase2(workspace: Any, size: int, executor: int, stream: int) -> int:
            self.calls.append(("phase2", workspace, size, executor, stream))
            return self.answers.get("phase2", 0)

        def drop(executor: int) -> int:
            self.calls.append(("drop", executor))
            return 0

        def repeat(executor: int) -> int:
            self.calls.append(("repeat", executor))
            return self.answers.get("repeat", 0)

        def message() -> None:
            self.calls.append(("message",))

        longs = ctypes.POINTER(I64)
        self.late = ctypes.CFUNCTYPE(I32, P)(repeat), ctypes.CFUNCTYPE(P)(message)
        self.kept = (
            ctypes.CFUNCTYPE(P, longs, U64, I32, longs, I64, I32, longs, U64, P)(create),
            ctypes.CFUNCTYPE(I32, P)(destroy),
            ctypes.CFUNCTYPE(P, ctypes.POINTER(P), U64)(create_list),
            ctypes.CFUNCTYPE(I32, P)(destroy_list),
            ctypes.CFUNCTYPE(I32, P, P, I64, P, P)(phase1),
            ctypes.CFUNCTYPE(I32, P, U64, P, P)(phase2),
            ctypes.CFUNCTYPE(I32, P)(drop),
        )
        late = [address(f) for f in self.late] if repeatable else [0, 0]
        self.function = _native.vendor_function(*[address(f) for f in self.kept], letters, "aclnnX", *late)

    def refill(self) -> None:
        self.made = iter(range(0x100, 0x200))

    def launch(self, *values: Any, whole: Any = True, keep: int = 0, device: int = 3) -> Any:
        return _native.vendor_launch(self.function, list(values), "x", device, 77, whole, keep)

    def steps(self, *values: Any, keep: int = 2, device: int = 3) -> list[str]:
        """The kinds of calls that a launch which may keep things makes."""
        self.calls.clear()
        assert self.launch(*values, whole=Memory, keep=keep, device=device) is None
        return [call[0] for call in self.calls]


TENSOR = ((2, 3), (1, 2), 9, 5, 2, 800, 8, 0x4000)
MADE, DESTROYED = [("create", 0x100), ("create", 0x101)], [("destroy", 0x100), ("destroy", 0x101)]
FIRST, SECOND = ("phase1", 0x100, 0x101, 4), ("phase2", None, 0, 0x5A00, 77)


def test_a_launch_is_both_phases_and_is_remembered() -> None:
    vendor = Vendor()
    count = _native.vendor_launches()
    assert vendor.launch(TENSOR, TENSOR, 4) is None
    assert vendor.calls == [*MADE, FIRST, SECOND, *DESTROYED]
    function, operator, device, stream, code, _ = _native.vendor_launches(count)
    assert (function, operator, device, stream) == ("aclnnX", "x", 3, 77) and code.co_filename == __file__
    assert Vendor().launch(None, None, 4) is None


@pytest.mark.parametrize(
    ("size", "answers", "whole", "stopped", "made"),
    [
        (0, {"create": 0x101}, True, (0, 0, 0, 0, [0x100], []), MADE),
        (0, {"phase1": 5}, True, (1, 5, 0, 0x5A00, [0x100, 0x101], []), [*MADE, FIRST]),
        (64, {}, True, (2, 0, 64, 0x5A00, [0x100, 0x101], []), [*MADE, FIRST]),
        (0, {}, False, (2, 0, 0, 0x5A00, [0x100, 0x101], []), [*MADE, FIRST]),
        (0, {"phase2": 6}, True, (3, 6, 0, 0, [0x100, 0x101], []), [*MADE, FIRST, SECOND]),
        (0, {"destroy": 7}, True, (4, 7, 0, 0, [], []), [*MADE, FIRST, SECOND, *DESTROYED]),
    ],
)
def test_a_launch_that_stops_says_what_is_alive(
    size: int, answers: dict[str, int], whole: bool, stopped: Any, made: list[Any]
) -> None:
    vendor = Vendor(size, **answers)
    assert vendor.launch(TENSOR, TENSOR, 4, whole=whole) == stopped
    assert vendor.calls == made


class Memory:
    """Memory for workspaces: `held` counts what is not let go of."""

    held = 0

    def __init__(self, size: int, device: int) -> None:
        self.asked = (size, device)
        self.address = 0x7000 + size
        Memory.held += 1

    def __del__(self) -> None:
        Memory.held -= 1


def test_a_launch_takes_its_workspace() -> None:
    vendor = Vendor(64)
    assert vendor.launch(TENSOR, TENSOR, 4, whole=Memory) is None
    assert vendor.calls == [*MADE, FIRST, ("phase2", 0x7040, 64, 0x5A00, 77), *DESTROYED]
    vendor = Vendor(64, phase2=6)
    assert vendor.launch(TENSOR, TENSOR, 4, whole=Memory) == (3, 6, 64, 0, [0x100, 0x101], [])
    assert Memory.held == 0
    vendor = Vendor(0)
    assert vendor.launch(TENSOR, TENSOR, 4, whole=Memory) is None and vendor.calls[3] == SECOND


def test_without_memory_nothing_is_left() -> None:
    def refuse(size: int, device: int) -> Any:
        raise MemoryError(size, device)

    vendor = Vendor(64)
    with pytest.raises(MemoryError, match="64, 3"):
        vendor.launch(TENSOR, TENSOR, 4, whole=refuse)
    assert vendor.calls == [*MADE, FIRST, ("drop", 0x5A00), *DESTROYED]
    for bad in (lambda size, device: None, lambda size, device: Vendor, 7):
        vendor = Vendor(64)
        with pytest.raises((AttributeError, TypeError)):
            vendor.launch(TENSOR, TENSOR, 4, whole=bad)
        assert vendor.calls == [*MADE, FIRST, ("drop", 0x5A00), *DESTROYED]


def test_a_tensor_is_described() -> None:
    vendor = Vendor()
    assert vendor.launch(TENSOR, ((), None, 0, 0, -1, 7, 4, 0), 4) is None
    assert vendor.described == [[[2, 3], 9, [1, 2], 5, 2, [100], 0x4000], [[], 0, None, 0, -1, [1], None]]


def test_a_list_owns_its_tensors() -> None:
    vendor = Vendor(letters=b"lti")
    assert vendor.launch([TENSOR, None, TENSOR], TENSOR, 4) is None
    assert vendor.calls == [
        ("create", 0x100),
        ("create", 0x101),
        ("list", [0x100, None, 0x101]),
        ("create", 0x102),
        ("phase1", 0x903, 0x102, 4),
        SECOND,
        ("destroy", 0x102),
        ("destroy list", 0x903),
    ]
    vendor = Vendor(letters=b"lli")
    assert vendor.launch([], None, 4) is None
    assert vendor.calls == [("list", []), ("phase1", 0x901, None, 4), SECOND, ("destroy list", 0x901)]


@pytest.mark.parametrize(
    ("size", "answers", "stopped"),
    [
        (0, {"create": 0x102}, (0, 0, 0, 0, [0x100, 0x101], [])),
        (0, {"create": 0x103}, (0, 0, 0, 0, [], [0x904])),
        (0, {"list": 1}, (5, 0, 0, 0, [0x100, 0x101, 0x102], [])),
        (0, {"phase1": 5}, (1, 5, 0, 0x5A00, [0x103], [0x904])),
        (64, {}, (2, 0, 64, 0x5A00, [0x103], [0x904])),
        (0, {"destroy_list": 8}, (4, 8, 0, 0, [], [])),
    ],
)
def test_a_launch_of_a_list_that_stops_says_what_is_alive(size: int, answers: dict[str, int], stopped: Any) -> None:
    vendor = Vendor(size, b"lti", **answers)
    assert vendor.launch([TENSOR] * 3, TENSOR, 4) == stopped


def test_a_wrong_list_makes_nothing() -> None:
    vendor = Vendor(letters=b"lti")
    bad: Any
    for bad in ((TENSOR,), [TENSOR, TENSOR[:-1]], [TENSOR, 5], TENSOR, 7):
        with pytest.raises(TypeError):
            vendor.launch(bad, TENSOR, 4)
    with pytest.raises(TypeError):
        vendor.launch([TENSOR], TENSOR, "x")
    # All arguments are read before anything is made.
    assert vendor.calls == []


def test_a_wrong_argument_makes_no_tensor() -> None:
    vendor = Vendor()
    bad: Any
    for bad in (1.5, "x"):
        vendor.calls.clear()
        with pytest.raises(TypeError):
            vendor.launch(TENSOR, TENSOR, bad)
        assert vendor.calls == []
    for bad in ((), TENSOR[:-1], [TENSOR], ([2], None, 9, 0, 2, 8, 8, 0), (TENSOR[0], None, 9, 0, "x", 8, 8, 0)):
        with pytest.raises(TypeError):
            vendor.launch(TENSOR, bad, 4)
    for bad in ((TENSOR[0], (1,), 9, 0, 2, 8, 8, 0), (TENSOR[0], None, 9, 0, 2, 8, 0, 0)):
        with pytest.raises(ValueError):
            vendor.launch(TENSOR, bad, 4)
    assert vendor.calls == []


@pytest.fixture
def nothing_kept() -> Iterator[None]:
    """What fake functions made is given to nobody else."""
    _native.vendor_forget()
    before = _native.vendor_kept()
    yield
    assert _native.vendor_forget() == 0 and _native.vendor_kept() == before


OTHER = ((2, 3), None, 9, 0, 2, 800, 8, 0x8000)
WHOLE = ["create", "create", "phase1", "phase2", "destroy", "destroy"]


@pytest.mark.parametrize("size", [0, 64])
def test_what_recurs_is_made_once(size: int, nothing_kept: None) -> None:
    vendor = Vendor(size, repeatable=True)
    assert vendor.steps(TENSOR, OTHER, 4) == WHOLE
    assert vendor.steps(TENSOR, OTHER, 4) == ["create", "create", "phase1", "phase2"]
    assert vendor.steps(TENSOR, OTHER, 4) == ["phase1", "repeat", "phase2"]
    for _ in range(3):
        assert vendor.steps(TENSOR, OTHER, 4) == ["phase2"]
    assert vendor.calls == [("phase2", 0x7000 + size if size else None, size, 0x5A00, 77)]
    assert _native.vendor_kept() == 3 and Memory.held == 0
    # The same of something else: of a number, a tensor, a device.
    assert vendor.steps(TENSOR, OTHER, 5) == ["phase1", "phase2"]
    assert vendor.steps(OTHER, TENSOR, 4) == ["phase1", "phase2"]
    assert vendor.steps(TENSOR, OTHER, 4, device=2) == ["phase1", "phase2"]
    assert vendor.steps(TENSOR, None, 4) == ["phase1", "phase2"]
    vendor.calls.clear()
    assert _native.vendor_forget() == 0 and _native.vendor_kept() == 0
    assert sorted(vendor.calls) == [("destroy", 0x102), ("destroy", 0x103), ("drop", 0x5A00)]
    assert vendor.steps(TENSOR, OTHER, 4) == WHOLE


@pytest.mark.parametrize("place", range(8))
def test_tensors_are_told_apart_by_every_part(place: int, nothing_kept: None) -> None:
    vendor = Vendor(repeatable=True)
    for _ in range(4):
        vendor.steps(TENSOR, TENSOR, 4)
    other: list[Any] = list(TENSOR)
    other[place] = [(3, 2), None, 3, 0, -1, 1600, 4, 0x4008][place]
    assert vendor.steps(tuple(other), TENSOR, 4) == ["create", "phase1", "phase2", "destroy"]
    assert vendor.steps(TENSOR, TENSOR, 4) == ["phase2"]


def test_a_list_is_kept_with_its_tensors(nothing_kept: None) -> None:
    vendor = Vendor(letters=b"lti", repeatable=True)
    for _ in range(4):
        vendor.steps([TENSOR, None, OTHER], TENSOR, 4)
    assert vendor.steps([TENSOR, None, OTHER], TENSOR, 4) == ["phase2"]
    assert _native.vendor_kept() == 5  # a list, its tensors, a tensor, an executor
    for other in ([TENSOR, OTHER], [TENSOR, None, TENSOR], [TENSOR], []):
        assert vendor.steps(other, TENSOR, 4)[-1] == "destroy list"
    vendor.calls.clear()
    assert _native.vendor_forget() == 0
    assert sorted(c[0] for c in vendor.calls) == ["destroy", "destroy list", "drop"]


def test_numbers_that_end_with_a_launch_keep_no_executor(nothing_kept: None) -> None:
    vendor = Vendor(repeatable=True)
    for _ in range(5):
        vendor.steps(TENSOR, OTHER, 4, keep=1)
    assert vendor.steps(TENSOR, OTHER, 4, keep=1) == ["phase1", "phase2"]
    for _ in range(5):
        vendor.steps(TENSOR, OTHER, 4, keep=0)
    assert vendor.steps(TENSOR, OTHER, 4, keep=0) == WHOLE


def test_what_the_vendor_cannot_run_again_runs_once(nothing_kept: None) -> None:
    vendor = Vendor(repeatable=True, repeat=561000)
    calls = [vendor.steps(TENSOR, OTHER, 4) for _ in range(5)]
    assert calls[2:] == [["phase1", "repeat", "message", "phase2"], ["phase1", "phase2"], ["phase1", "phase2"]]
    vendor = Vendor(repeatable=True, repeat=507899)
    calls = [vendor.steps(TENSOR, OTHER, 4) for _ in range(5)]
    assert calls[2:] == [["phase1", "repeat", "message", "phase2"]] * 3
    vendor = Vendor()
    assert [vendor.steps(TENSOR, OTHER, 4) for _ in range(5)][2:] == [["phase1", "phase2"]] * 3


def test_texts_are_told_apart_by_what_they_say(nothing_kept: None) -> None:
    vendor = Vendor(letters=b"tts", repeatable=True)
    said = [bytes(f"text {i}", "ascii") for i in range(100)]
    for _ in range(4):
        for text in said:
            vendor.launch(TENSOR, OTHER, text, whole=Memory, keep=2)
    calls = [vendor.steps(TENSOR, OTHER, bytes(bytearray(text))) for text in said]
    # There is a bound to what is known; what is beyond it works as before.
    assert calls[0] == ["phase2"] and calls[-1] == ["phase1", "phase2"]
    assert vendor.steps(TENSOR, OTHER, None) == ["phase1", "phase2"]


def test_an_executor_that_fails_is_kept_no_longer(nothing_kept: None) -> None:
    vendor = Vendor(repeatable=True)
    for _ in range(4):
        vendor.steps(TENSOR, OTHER, 4)
    vendor.answers["phase2"] = 6
    vendor.calls.clear()
    assert vendor.launch(TENSOR, OTHER, 4, whole=Memory, keep=2) == (3, 6, 0, 0, [], [])
    assert [call[0] for call in vendor.calls] == ["phase2", "drop"]
    vendor.answers.clear()
    assert vendor.steps(TENSOR, OTHER, 4) == ["phase1", "repeat", "phase2"]
    assert vendor.steps(TENSOR, OTHER, 4) == ["phase2"]


def test_without_memory_an_executor_stays(nothing_kept: None) -> None:
    vendor = Vendor(64, repeatable=True)
    for _ in range(4):
        vendor.steps(TENSOR, OTHER, 4)
    vendor.calls.clear()
    with pytest.raises(TypeError):
        vendor.launch(TENSOR, OTHER, 4, whole=7, keep=2)
    assert vendor.calls == [] and _native.vendor_kept() == 3
    assert vendor.steps(TENSOR, OTHER, 4) == ["phase2"]


def test_an_executor_runs_for_one_launch_at_a_time(nothing_kept: None) -> None:
    vendor = Vendor(64, repeatable=True)
    for _ in range(4):
        vendor.steps(TENSOR, OTHER, 4)
    inner: list[str] = []

    def memory(size: int, device: int) -> Memory:
        # Another launch of the same, and everything forgotten, while this one is on its way.
        inner.extend(vendor.steps(TENSOR, OTHER, 4))
        assert _native.vendor_forget() == 0 and _native.vendor_kept() == 3
        vendor.calls.clear()
        return Memory(size, device)

    assert vendor.launch(TENSOR, OTHER, 4, whole=memory, keep=2) is None
    assert inner == ["phase1", "phase2"]
    assert [call[0] for call in vendor.calls] == ["phase2", "drop"] and _native.vendor_kept() == 2


def test_a_function_that_goes_takes_its_executors_along(nothing_kept: None) -> None:
    vendor = Vendor(repeatable=True)
    for _ in range(4):
        vendor.steps(TENSOR, OTHER, 4)
    vendor.calls.clear()
    del vendor.function
    assert vendor.calls == [("drop", 0x5A00)] and _native.vendor_kept() == 2


def test_what_is_kept_is_bounded(nothing_kept: None) -> None:
    vendor = Vendor(repeatable=True)
    for i in range(20000):
        for _ in range(2):
            vendor.launch((*TENSOR[:7], 0x4000 + 64 * i), OTHER, 4, whole=Memory, keep=2)
        del vendor.calls[:], vendor.described[:]
        vendor.refill()
    assert 100 < _native.vendor_kept() <= 8192 + 2048


def test_the_ring_forgets_the_oldest() -> None:
    first = _native.vendor_launches()
    for i in range(4096 + 3):
        _native.vendor_record("f", "o", 0, i)
    assert _native.vendor_launches() == first + 4099
    assert _native.vendor_launches(first + 3)[3] == 3
    for gone in (first + 2, first + 4099):
        with pytest.raises(IndexError):
            _native.vendor_launches(gone)


def test_each_thread_keeps_its_own() -> None:
    import threading

    before, seen = _native.vendor_thread(), []
    _native.vendor_thread("mine")
    thread = threading.Thread(target=lambda: seen.append(_native.vendor_thread()))
    thread.start()
    thread.join()
    assert _native.vendor_thread() == "mine" and seen == [None]
    _native.vendor_thread(before)


def test_what_is_refused_before_a_call() -> None:
    make: Any = _native.vendor_function
    for letters in (b"i" * 60, b"d" * 9, b"x", b"\0"):
        with pytest.raises(ValueError):
            make(1, 1, 1, 1, 1, 1, 1, letters, "f", 0, 0)
    with pytest.raises(ValueError, match="the address of a function"):
        make(1, 1, 1, 1, 0, 1, 1, b"", "f", 0, 0)
    ones = (1, 1, 1, 1, 1)
    for wrong in (
        (*ones, 1, 1, "i", "f", 0, 0),
        (*ones, 1, 1, b"i", b"f", 0, 0),
        (*ones, "x", 1, b"i", "f", 0, 0),
        (*ones, 1, 1, b"i", "f", "x", 0),
        (1,),
    ):
        with pytest.raises(TypeError):
            make(*wrong)
    call: Any = _native.vendor_launch
    bad: Any
    for letters, bad in ((b"i", (1,)), (b"i", [1.5]), (b"d", ["x"]), (b"s", ["x"])):
        with pytest.raises(TypeError):
            call(make(1, 1, 1, 1, 1, 1, 1, letters, "f", 0, 0), bad, "x", 0, 0, True, 0)
    with pytest.raises(ValueError, match="an argument for each letter"):
        call(make(1, 1, 1, 1, 1, 1, 1, b"i", "f", 0, 0), [], "x", 0, 0, True, 0)
    with pytest.raises(ValueError):
        call(object(), [], "x", 0, 0, True, 0)
    vendor = Vendor()
    with pytest.raises(ValueError, match="a stride for each size"):
        vendor.launch(((2, 3), (1,), 0, 0, 0, 24, 4, 0), None, 4)
    with pytest.raises(TypeError, match="at most 64 sizes"):
        vendor.launch(((1,) * 65, None, 0, 0, 0, 4, 4, 0), None, 4)
