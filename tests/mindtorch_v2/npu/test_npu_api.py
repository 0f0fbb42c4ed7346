"""`torch.npu` and `torch.accelerator`: devices, properties, memory numbers, life and death of the runtime."""

from __future__ import annotations

import threading

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._backends.npu import runtime

from .._npu import Emulator, emulator_only
from . import _layouts as layouts

EMULATED = {"MINDTORCH_NPU": "emulator", "ASCEND_EMULATOR_DEVICES": "2", "ASCEND_EMULATOR_REPORT": "1"}


@pytest.fixture(autouse=True)
def first_device() -> None:
    torch.npu.set_device(0)


# -- devices ------------------------------------------------------------------------------------------------------


def test_available_and_counted() -> None:
    assert torch.npu.is_available() and torch.npu.device_count() >= 1 and torch.npu.is_initialized()
    assert torch.accelerator.is_available() and torch.accelerator.device_count() == torch.npu.device_count()
    assert torch.accelerator.current_accelerator() == torch.device("npu")
    assert torch.accelerator.current_accelerator(check_available=True) == torch.device("npu")


@pytest.mark.parametrize("name", [1, "npu:1", torch.device("npu:1"), torch.device(1)])
def test_set_device(name: object) -> None:
    torch.npu.set_device(name)
    assert torch.npu.current_device() == 1 and torch.accelerator.current_device_index() == 1
    torch.npu.set_device(-1)
    assert torch.npu.current_device() == 1
    torch.npu.set_device("npu")
    assert torch.npu.current_device() == 1


@pytest.mark.parametrize("wrong, error", [("cpu", ValueError), (torch.device("meta"), ValueError), (1.5, TypeError)])
def test_set_device_refuses_other_things(wrong: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="(?i)npu"):
        torch.npu.set_device(wrong)


def test_a_device_that_does_not_exist_is_named() -> None:
    for use in (
        torch.npu.set_device,
        torch.npu.get_device_properties,
        torch.npu.mem_get_info,
        torch.npu.synchronize,
        torch.npu.memory_allocated,
        torch.npu.Stream,
        lambda i: torch.npu.device(i).__enter__(),
    ):
        with pytest.raises(RuntimeError, match="npu:99 does not exist"):
            use(99)
    assert torch.npu.current_device() == 0


def test_device_context_manager() -> None:
    with torch.npu.device(1):
        assert torch.npu.current_device() == 1
        with torch.npu.device("npu:0"), torch.npu.device(None), torch.npu.device(-1):
            assert torch.npu.current_device() == 0
        assert torch.npu.current_device() == 1
        with torch.accelerator.device_index(0), torch.accelerator.device_index(None):
            assert torch.npu.current_device() == 0
    assert torch.npu.current_device() == 0


def test_device_of() -> None:
    with torch.npu.device_of(torch.empty(2, device="npu:1")):
        assert torch.npu.current_device() == 1
        with torch.npu.device_of(torch.empty(2)):
            assert torch.npu.current_device() == 1


def test_npu_without_an_index_is_this_threads_device() -> None:
    assert torch.empty(1, device="npu").device == torch.device("npu:0")
    with torch.npu.device(1):
        assert torch.empty(1, device="npu").device == torch.device("npu:1")
        assert torch.empty(1, device=torch.device("npu")).device.index == 1
        assert torch.empty(1).to("npu").device.index == 1


def test_two_devices_in_one_call_are_named_in_pytorchs_words() -> None:
    text = "Expected all tensors to be on the same device, but found at least two devices, npu:0 and {}!"
    here = torch.ones(2, device="npu:0")
    for other in (torch.ones(2), torch.ones(2, device="npu:1")):
        with pytest.raises(RuntimeError, match=text.format(other.device)):
            here + other
    with pytest.raises(RuntimeError, match=text.format("cpu")):
        torch.ones(2) * here
    assert (here + torch.tensor(1.0)).tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.ones(2),
        lambda: torch.tensor([1, 2]),
        lambda: torch.arange(3),
        lambda: torch.rand(2),
        lambda: torch.eye(2),
        lambda: torch.full((2,), 3.0),
        lambda: torch.randperm(4),
        lambda: torch.linspace(0, 1, 3),
    ],
)
def test_the_default_device_gets_an_index(make: object) -> None:
    with torch.device("npu"):
        assert make().device == torch.device("npu:0")  # type: ignore[operator]
        with torch.npu.device(1):
            assert make().device == torch.device("npu:1")  # type: ignore[operator]


def test_seeds_and_states() -> None:
    torch.npu.manual_seed(3)
    state = torch.npu.get_rng_state()
    first = torch.rand(8, device="npu").tolist()
    torch.npu.set_rng_state(state)
    assert torch.rand(8, device="npu").tolist() == first
    torch.npu.manual_seed_all(5)
    assert torch.npu.initial_seed() == 5 and len(torch.npu.default_generators) == torch.npu.device_count()
    states = torch.npu.get_rng_state_all()
    second = torch.rand(8, device="npu:1").tolist()
    torch.npu.set_rng_state_all(states)
    assert torch.rand(8, device="npu:1").tolist() == second != first
    torch.manual_seed(3)
    assert torch.npu.initial_seed() == 3 and torch.rand(8, device="npu").tolist() == first


def test_each_thread_has_its_own_device() -> None:
    torch.npu.set_device(1)
    seen = []
    thread = threading.Thread(
        target=lambda: seen.append((torch.npu.current_device(), torch.empty(2, device="npu").device.index))
    )
    thread.start()
    thread.join()
    assert seen == [(0, 0)] and torch.npu.current_device() == 1


@emulator_only
def test_switching_devices_sets_each_one_once(emulator: Emulator) -> None:
    """Further threads and switches use the context of the first: references to a device are not piled up."""
    torch.npu.synchronize(0)
    torch.npu.synchronize(1)
    before = emulator.calls("aclrtSetDevice")

    def other() -> None:
        for _ in range(5):
            torch.npu.synchronize(0)
            torch.npu.synchronize(1)

    threads = [threading.Thread(target=other) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert emulator.calls("aclrtSetDevice") == before


# -- properties ---------------------------------------------------------------------------------------------------


def test_properties() -> None:
    properties = torch.npu.get_device_properties()
    assert properties.name == torch.npu.get_device_name() == torch.npu.get_device_name("npu:1")
    assert properties.name.startswith("Ascend")
    assert properties.total_memory == torch.npu.mem_get_info()[1] > 0
    assert torch.npu.get_device_capability() == (properties.major, properties.minor)
    assert properties.multi_processor_count > 0 and properties.L2_cache_size > 0
    assert "Ascend" in repr(properties)


@pytest.mark.parametrize(
    "name, family, series",
    [
        ("Ascend910B3", "910B", (910, 3)),
        ("Ascend910B4-1", "910B", (910, 4)),
        ("Ascend910_9391", "910B", (910, 9391)),
        ("Ascend910A", "910A", (910, 0)),
        ("Ascend910ProB", "910A", (910, 0)),
        ("Ascend910B", "910A", (910, 0)),
        ("Ascend310P3", "310P", (310, 3)),
        ("Ascend310B1", "310B", (310, 1)),
        ("Ascend950PR", "950", (950, 0)),
    ],
)
def test_chip_families(name: str, family: str, series: tuple[int, int]) -> None:
    assert runtime.family(name) == family and runtime.series(name) == series


@pytest.mark.parametrize("chip", ["910B", "910A", "310P", "310B", "950"])
def test_the_chip_of_the_emulator(chip: str) -> None:
    code = """
from mindtorch_v2._backends.npu import runtime
print(runtime.chip(), runtime.cann_version(), torch.npu.is_bf16_supported())
"""
    env = layouts.environment(None, **EMULATED, ASCEND_EMULATOR_CHIP=chip, ASCEND_EMULATOR_CANN_VERSION="8.1.0")
    assert layouts.said(env, code) == f"{chip} 8.1.0 {chip in ('910B', '950')}"


def test_peers() -> None:
    assert torch.npu.can_device_access_peer(0, 0) is False
    assert torch.npu.can_device_access_peer(0, 1) in (True, False)


# -- memory -------------------------------------------------------------------------------------------------------


def test_memory_numbers_agree() -> None:
    torch.npu.empty_cache()
    before = torch.npu.memory_allocated()
    torch.npu.reset_peak_memory_stats()
    tensor = torch.empty(1 << 20, dtype=torch.uint8, device="npu")
    held = torch.npu.memory_allocated() - before
    assert held >= 1 << 20
    assert torch.npu.memory_reserved() >= torch.npu.memory_allocated()
    assert torch.npu.memory_stats()["allocated_bytes.all.current"] == torch.npu.memory_allocated()
    assert torch.accelerator.memory_allocated() == torch.npu.memory_allocated()
    assert list(torch.accelerator.memory_stats()) == sorted(torch.npu.memory_stats())
    del tensor
    assert torch.npu.memory_allocated() == before
    assert torch.npu.max_memory_allocated() == before + held
    torch.npu.reset_peak_memory_stats()
    assert torch.npu.max_memory_allocated() == before
    torch.npu.empty_cache()
    free, total = torch.npu.mem_get_info()
    assert 0 < free <= total and torch.accelerator.get_memory_info() == (free, total)
    assert "npu" in torch.npu.memory_summary().lower() and isinstance(torch.npu.memory_snapshot(), list)


def test_devices_are_counted_apart() -> None:
    before = torch.npu.memory_allocated(0), torch.npu.memory_allocated(1)
    tensor = torch.empty(4096, device="npu:1")
    assert torch.npu.memory_allocated(0) == before[0]
    assert torch.npu.memory_allocated("npu:1") >= before[1] + tensor.nbytes


@pytest.mark.parametrize("wrong, error", [(1, TypeError), (1.5, ValueError), (-0.5, ValueError)])
def test_memory_fraction_refuses_what_is_no_fraction(wrong: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="(?i)invalid"):
        torch.npu.set_per_process_memory_fraction(wrong)


def test_accelerator_refuses_other_devices() -> None:
    for use in (torch.accelerator.synchronize, torch.accelerator.memory_allocated, torch.accelerator.current_stream):
        with pytest.raises(ValueError, match="cpu doesn't match the current accelerator npu"):
            use("cpu")


def test_names_of_torch_cuda_that_matter() -> None:
    names = """AcceleratorError AclError Event ExternalStream OutOfMemoryError Stream StreamContext
    can_device_access_peer current_device device_memory_used get_allocator_backend get_stream_from_external
    max_memory_cached memory_cached
    current_stream default_generators default_stream device device_count device_of empty_cache
    get_device_capability get_device_name get_device_properties get_rng_state get_rng_state_all init initial_seed
    is_available is_bf16_supported is_initialized manual_seed manual_seed_all max_memory_allocated
    max_memory_reserved mem_get_info memory_allocated memory_reserved memory_snapshot memory_stats memory_summary
    reset_peak_memory_stats seed seed_all set_device set_rng_state set_rng_state_all set_stream stream
    synchronize use_emulator""".split()
    assert not [name for name in names if not hasattr(torch.npu, name)]
    assert torch.OutOfMemoryError is torch.npu.OutOfMemoryError and issubclass(torch.OutOfMemoryError, RuntimeError)


def test_names_of_pytorchs_past_warn() -> None:
    t = torch.ones(1 << 20, device="npu")
    for old, new in (("memory_cached", "memory_reserved"), ("max_memory_cached", "max_memory_reserved")):
        with pytest.warns(FutureWarning, match=f"`torch.npu.{old}` has been renamed to `torch.npu.{new}`"):
            assert getattr(torch.npu, old)() == getattr(torch.npu, new)() >= t.nbytes
    free, total = torch.npu.mem_get_info()
    assert torch.npu.device_memory_used() == total - free >= t.nbytes
    assert torch.npu.get_allocator_backend() == "native"
    assert torch.npu.AcceleratorError is torch.AcceleratorError


# -- life and death -----------------------------------------------------------------------------------------------

FORK = """
import os
torch.npu.init()
kept = torch.empty(4, device="npu")
pid = os.fork()
if pid == 0:
    told = 0
    for use in (torch.npu.init, torch.npu.synchronize, lambda: torch.empty(2, device="npu"), lambda: kept.cpu(),
                lambda: torch.npu.Stream()):
        try:
            use()
        except RuntimeError as error:
            told += "Cannot re-initialize NPU in forked subprocess" in str(error) and "'spawn'" in str(error)
    assert float((torch.ones(3) * 2).sum()) == 6 and not torch.npu.is_initialized()
    os._exit(told)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
torch.npu.synchronize()
"""


@emulator_only
def test_a_forked_child_is_told() -> None:
    assert layouts.said(layouts.environment(None, **EMULATED), FORK) == "5"


@emulator_only
def test_a_fork_before_the_first_use_is_fine() -> None:
    code = """
import os
torch.npu.is_available()
pid = os.fork()
torch.npu.synchronize()
if pid == 0:
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    assert layouts.said(layouts.environment(None, **EMULATED), code) == "7"


@emulator_only
@pytest.mark.parametrize("ending", ["", "raise SystemExit(0)"])
def test_leaving_gives_everything_back(ending: str) -> None:
    """Nothing is alive at aclFinalize, whatever the program still holds; the emulator prints what is."""
    code = f"""
tensors = [torch.empty(1000, device=d) for d in ("npu:0", "npu:1")]
streams = [torch.npu.Stream(i) for i in (0, 1) for _ in range(3)]
events = [s.record_event() for s in streams]
streams[0].add_callback(lambda: None)
pinned = torch.empty(10).pin_memory()
del pinned
print("left")
{ending}
"""
    done = layouts.python(layouts.environment(None, **EMULATED), "-c", "import mindtorch_v2 as torch\n" + code)
    assert (done.returncode, done.stdout.strip()) == (0, "left"), done.stderr
    assert done.stderr.strip() == "ascend emulator: 0 leaks at aclFinalize"


@emulator_only
def test_a_lost_device_says_so_and_the_cpu_goes_on() -> None:
    code = """
from mindtorch_v2._backends.npu.acl_loader import ensure_acl
torch.npu.synchronize(0)
other = torch.empty(2, device="npu:1")
stream = torch.npu.Stream()
ensure_acl().emulator.ascendEmulatorLoseDevice(0)
try:
    torch.npu.synchronize()
except RuntimeError as error:
    print("507010" in str(error))
for use in (torch.npu.synchronize, lambda: torch.empty(2, device="npu"), stream.synchronize, torch.npu.mem_get_info):
    try:
        use()
    except RuntimeError as error:
        print("npu:0 was lost" in str(error) and "507010" in str(error))
torch.npu.synchronize(1)
print(float((torch.ones(3) * 2).sum()), other.device)
"""
    lines = layouts.said(layouts.environment(None, **EMULATED), code).splitlines()
    assert lines == ["True"] * 5 + ["6.0 npu:1"]


@emulator_only
def test_threads_that_start_at_once_all_find_everything() -> None:
    code = """
import threading
gate, seen = threading.Barrier(8), []
def work(i):
    gate.wait()
    seen.append((torch.ones(2, device=f"npu:{i % 2}") + i).sum().item())
threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
for t in threads: t.start()
for t in threads: t.join()
print(sorted(seen) == [2.0 * i + 2 for i in range(8)])
"""
    assert layouts.said(layouts.environment(None, **EMULATED), code) == "True"


@emulator_only
@pytest.mark.parametrize("function", ["aclrtSetDevice", "aclrtGetCurrentContext", "aclrtSetCurrentContext"])
def test_a_device_that_cannot_be_set_can_be_tried_again(function: str) -> None:
    """And is given back as often as it was taken."""
    code = """
from mindtorch_v2._backends.npu.acl_loader import ensure_acl
torch.npu.synchronize(0)
ensure_acl().emulator.ascendEmulatorSetFault(b"FUNCTION:1:507000")
for index in (1, 1, 0, 0):
    try:
        torch.npu.synchronize(index)
        print("done")
    except RuntimeError as error:
        print(str(error).split()[0])
""".replace("FUNCTION", function)
    done = layouts.python(layouts.environment(None, **EMULATED), "-c", "import mindtorch_v2 as torch\n" + code)
    told = {"aclrtSetCurrentContext": ["done", "done", function, "done"]}
    assert done.stdout.split() == told.get(function, [function, "done", "done", "done"]), done.stderr
    assert done.stderr.strip() == "ascend emulator: 0 leaks at aclFinalize"


@emulator_only
def test_a_start_that_fails_can_be_tried_again() -> None:
    code = """
for _ in range(3):
    try:
        torch.npu.synchronize()
        print("started")
    except RuntimeError as error:
        print(str(error).split()[0])
"""
    faults = "aclInit:1:500000;aclrtGetDeviceCount:1:507899"
    env = layouts.environment(None, **EMULATED, ASCEND_EMULATOR_FAULT=faults)
    assert layouts.said(env, code).splitlines() == ["aclInit", "aclrtGetDeviceCount", "started"]


def test_a_number_of_the_cpu_is_no_index_of_an_npus_tensor() -> None:
    text = "Expected all tensors to be on the same device, but found at least two devices, npu:0 and cpu!"
    for value in (0, torch.tensor(0.0)):
        with pytest.raises(RuntimeError, match=text):
            torch.ones(3, device="npu").index_fill(0, torch.tensor(1), value)
