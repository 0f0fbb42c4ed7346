"""Names that programs for `torch.cuda` and torch_npu use: each works by vendor calls, or says what there is not."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import pytest

from .. import _oracle
from .._npu import Emulator, emulator_only
from .._subject import subject as torch

# What is of CUDA alone, or of Python.
NOT_HERE = set(
    """BFloat16 Callable CUDAGraph CUDAPluggableAllocator CudaError DEVICE_REQUIREMENT DeferredCudaCallError Device
    GreenContext NewType Optional PYTORCH_RELEASES_CODE_CC TYPE_CHECKING cast change_current_allocator check_error
    classproperty cudaStatus cudart current_blas_handle current_solver_handle gds green_contexts importlib jiterator
    list_gpu_processes lru_cache nccl nvtx os platform profiler sparse threading torch traceback tunable warnings
    """.split()
)


@pytest.mark.oracle
def test_public_names_of_torch_cuda() -> None:
    theirs = {name for name in dir(_oracle.load().cuda) if not name.startswith("_")}
    missing = {name for name in theirs - NOT_HERE if not hasattr(torch.npu, name)}
    assert not missing
    assert not theirs - NOT_HERE - set(dir(torch.npu))


@pytest.mark.parametrize("name", ["CUDAGraph", "cudart", "nccl", "nvtx", "tunable", "NPUPluggableAllocator"])
def test_names_of_cuda_alone_say_what_there_is(name: str) -> None:
    with pytest.raises(AttributeError, match=f"module .*npu' has no attribute '{name}': \\w+"):
        getattr(torch.npu, name)


@pytest.mark.parametrize("call", ["temperature", "power_draw", "clock_rate"])
def test_what_only_tools_know(call: str) -> None:
    with pytest.raises(NotImplementedError, match=f"torch.npu.{call}.. is not available: ACL, .*npu-smi"):
        getattr(torch.npu, call)()


def test_utilization(emulator: Emulator | None) -> None:
    kept = torch.ones(1 << 22, device="npu")
    before = emulator.calls("aclrtGetDeviceUtilizationRate") if emulator else 0
    assert 0 <= torch.npu.utilization() <= 100 and 0 <= torch.npu.memory_usage("npu:0") <= 100
    if emulator:
        assert emulator.calls("aclrtGetDeviceUtilizationRate") == before + 2
    with pytest.raises(RuntimeError, match="npu:99 does not exist"):
        torch.npu.utilization(99)
    del kept


# -- classes of one dtype ---------------------------------------------------------------------------------------------
def test_typed_tensors() -> None:
    t = torch.npu.FloatTensor(2, 3)
    assert t.shape == (2, 3) and t.device == torch.device("npu:0") and t.dtype is torch.float32
    assert isinstance(t, torch.npu.FloatTensor) and not isinstance(t, (torch.FloatTensor, torch.npu.HalfTensor))
    assert torch.npu.LongTensor([1, 2]).tolist() == [1, 2] and t.type() == "torch.npu.FloatTensor"
    assert torch.ones(2).type(torch.npu.HalfTensor).type() == "torch.npu.HalfTensor"
    assert t.type(torch.FloatTensor).device.type == "cpu" and t.type(torch.float16).device == t.device
    with torch.npu.device(1):
        assert torch.npu.ByteTensor(2).device.index == 1
    with pytest.raises(TypeError):
        torch.npu.FloatTensor(torch.ones(2))


def test_typed_storages() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        s = torch.npu.FloatStorage(4)
        assert s.device.type == "npu" and s.size() == 4 and isinstance(s, torch.npu.FloatStorage)
        assert not isinstance(s, torch.FloatStorage) and not isinstance(torch.FloatStorage(4), torch.npu.FloatStorage)


# -- waiting unasked --------------------------------------------------------------------------------------------------
@pytest.fixture
def quiet() -> Any:
    yield
    torch.npu.set_sync_debug_mode(0)


WAITING = {
    "item": lambda t: t.sum().item(),
    "cpu": lambda t: t.cpu(),
    "nonzero": lambda t: t.nonzero(),
    "masked": lambda t: t[t > 0],
    "from the cpu": lambda t: t.copy_(torch.ones(4)),
    "unique": lambda t: t.unique(),
    "between devices": lambda t: t.to("npu:1"),
}


@pytest.mark.parametrize("name", WAITING)
def test_operators_that_wait_are_told_of(name: str, quiet: None) -> None:
    t = torch.tensor([1.0, 0.0, 2.0, 2.0], device="npu")
    assert torch.npu.get_sync_debug_mode() == 0
    torch.npu.set_sync_debug_mode("warn")
    with pytest.warns(UserWarning, match="called a synchronizing NPU operation"):
        WAITING[name](t)
    torch.npu.set_sync_debug_mode("error")
    assert torch.npu.get_sync_debug_mode() == 2
    with pytest.raises(RuntimeError, match="called a synchronizing NPU operation"):
        WAITING[name](t)
    torch.npu.set_sync_debug_mode("default")
    WAITING[name](t)


def test_what_does_not_wait_is_not_told_of(quiet: None) -> None:
    t, pinned = torch.ones(4, device="npu"), torch.ones(4).pin_memory()
    torch.npu.set_sync_debug_mode(2)
    (t * 2 + t).sum()
    t.copy_(pinned, non_blocking=True)
    torch.npu.synchronize()
    torch.npu.current_stream().synchronize()
    for wrong in ("loud", 3, -1):
        with pytest.raises(RuntimeError, match="invalid value of debug_mode"):
            torch.npu.set_sync_debug_mode(wrong)


# -- memory -----------------------------------------------------------------------------------------------------------
def test_pools_keep_their_memory() -> None:
    torch.npu.empty_cache()
    pool = torch.npu.MemPool()
    assert pool.id != (0, 0) and pool.use_count() == 1 and pool.snapshot() == []
    outside = torch.empty(3 << 20, dtype=torch.uint8, device="npu")
    with torch.npu.use_mem_pool(pool):
        inside = torch.ones(3 << 20, dtype=torch.uint8, device="npu")
        elsewhere: list[Any] = []
        thread = threading.Thread(target=lambda: elsewhere.append(torch.empty(3 << 20, device="npu")))
        thread.start()
        thread.join()
        with torch.npu.use_mem_pool(torch.npu.MemPool()):
            other = torch.empty(3 << 20, device="npu")
    segments = [(s["address"], s["address"] + s["total_size"]) for s in pool.snapshot()]

    def within(t: Any) -> bool:
        return any(low <= t.data_ptr() < high for low, high in segments)

    assert within(inside) and not within(outside) and not within(elsewhere[0]) and not within(other)
    place = inside.data_ptr()
    del inside
    torch.npu.empty_cache()
    assert pool.snapshot(), "memory of a pool is kept while the pool lives"
    again = torch.empty(3 << 20, dtype=torch.uint8, device="npu")
    assert not within(again)
    with torch.npu.use_mem_pool(pool, 0):
        assert torch.empty(3 << 20, dtype=torch.uint8, device="npu").data_ptr() == place
    reserved = torch.npu.memory_reserved()
    del pool
    torch.npu.empty_cache()
    assert torch.npu.memory_reserved() < reserved
    with pytest.raises(TypeError, match="must be a MemPool, not int"), torch.npu.use_mem_pool(3):
        pass
    with pytest.raises(NotImplementedError, match="argument 'use_on_oom' is not available"):
        torch.npu.MemPool(use_on_oom=True)


def test_a_pools_tensors_outlive_it() -> None:
    pool = torch.npu.MemPool()
    with torch.npu.use_mem_pool(pool):
        kept = torch.full((1 << 20,), 3.0, device="npu")
    del pool
    torch.npu.empty_cache()
    rest = [torch.zeros(1 << 20, device="npu") for _ in range(4)]
    assert float(kept.sum().item()) == 3.0 * (1 << 20) and len(rest) == 4


def test_host_memory_is_counted() -> None:
    torch.npu.init()
    torch.npu.empty_cache()
    before = torch.npu.host_memory_stats()
    assert "host_alloc_time.avg" in before and list(before) == sorted(before)
    held = torch.empty(5000, dtype=torch.uint8, pin_memory=True)
    during = torch.npu.host_memory_stats()
    for name, count in (("active_requests", 1), ("active_bytes", 8192), ("allocations", 1), ("allocated_bytes", 8192)):
        assert during[f"{name}.current"] == before[f"{name}.current"] + count, name
    assert during["num_host_alloc"] == before["num_host_alloc"] + 1
    del held
    after = torch.npu.host_memory_stats()
    assert after["active_bytes.current"] == before["active_bytes.current"]
    assert after["allocated_bytes.current"] == during["allocated_bytes.current"]
    torch.npu.empty_cache()
    assert torch.npu.host_memory_stats()["allocated_bytes.current"] == before["allocated_bytes.current"]
    torch.npu.reset_peak_host_memory_stats()
    torch.npu.reset_accumulated_host_memory_stats()
    nested = torch.npu.host_memory_stats_as_nested_dict()
    assert nested["allocations"]["freed"] == nested["num_host_free"] == nested["host_free_time"]["count"] == 0
    assert nested["active_bytes"]["peak"] == nested["active_bytes"]["current"]


def test_the_cache_cannot_be_switched_off() -> None:
    torch.npu.caching_allocator_enable()
    with pytest.raises(NotImplementedError, match="aclrtMalloc"):
        torch.npu.caching_allocator_enable(False)
    with pytest.raises(NotImplementedError, match="aclrtMalloc"), torch.npu.memory.caching_allocator_disabled():
        pass


# -- switches ---------------------------------------------------------------------------------------------------------
def test_half_floats_in_the_matrix_unit() -> None:
    a = torch.full((4, 4), 1.0 + 2.0**-20).npu()
    image, kernel = a.view(1, 1, 4, 4), torch.ones(1, 1, 1, 1).npu()
    exact = (a @ torch.eye(4).npu()).tolist()
    assert torch.npu.matmul.allow_hf32 is False and torch.npu.conv.allow_hf32 is False
    try:
        torch.npu.matmul.allow_hf32 = True
        assert torch.npu.matmul.allow_hf32 and not torch.npu.conv.allow_hf32
        rounded = (a @ torch.eye(4).npu()).tolist()
        assert torch.conv2d(image, kernel).view(4, 4).tolist() == exact
        torch.npu.set_option({"ALLOW_CONV_HF32": "enable", "ALLOW_MATMUL_HF32": "disable"})
        assert (a @ torch.eye(4).npu()).tolist() == exact
        assert torch.npu.conv.allow_hf32
        torch.conv2d(image, kernel)
    finally:
        torch.npu.matmul.allow_hf32 = torch.npu.conv.allow_hf32 = False
    assert rounded[0][0] == pytest.approx(1.0, abs=2**-10)
    with pytest.raises(TypeError, match="must be a bool, not int"):
        torch.npu.matmul.allow_hf32 = 1
    with pytest.raises(AttributeError, match="no attribute 'allow_tf32'"):
        torch.npu.conv.allow_tf32 = True


def test_switches_that_describe_what_is_done_anyway() -> None:
    torch.npu.set_compile_mode(jit_compile=False)
    torch.npu.config.allow_internal_format = False
    torch.npu.set_option({"jitCompile": "disable"})
    assert torch.npu.is_jit_compile_false() and torch.npu.config.allow_internal_format is False
    for wrong in (
        lambda: torch.npu.set_compile_mode(jit_compile=True),
        lambda: setattr(torch.npu.config, "allow_internal_format", True),
        lambda: torch.npu.set_option({"jitCompile": "enable"}),
        lambda: torch.npu.set_option({"unheard": 1}),
        lambda: torch.npu.mstx.mark("here"),
    ):
        with pytest.raises(NotImplementedError, match="is not available|leave it False"):
            wrong()


# -- what other packages use ------------------------------------------------------------------------------------------
def test_private_names() -> None:
    torch.npu._lazy_init()
    said: list[int] = []
    torch.npu._lazy_call(lambda: said.append(1))
    assert said == [1] and torch.npu._initialized and torch.npu._is_compiled() and not torch.npu._is_in_bad_fork()
    assert torch.npu._get_device_index("npu:1") == 1 and torch.npu._get_device_index(None, True) == 0
    with pytest.raises(ValueError, match="Expected a torch.device with a specified index"):
        torch.npu._get_device_index(None)
    with torch.npu._DeviceGuard(1):
        assert torch.npu.current_device() == 1
    assert torch.npu._exchange_device(-1) == -1 and torch.npu.current_device() == 0
    assert torch.npu._get_generator("npu:1") is torch.npu.default_generators[1]


def test_generators_are_as_before() -> None:
    torch.npu.manual_seed_all(3)
    with torch.npu.random.fork_rng():
        inside = torch.rand(4, device="npu").tolist()
    assert torch.rand(4, device="npu").tolist() == inside


@emulator_only
def test_names_are_listed_without_starting_the_runtime() -> None:
    assert {"FloatTensor", "MemPool", "NPUGraph", "mstx", "set_sync_debug_mode"} <= set(dir(torch.npu))
