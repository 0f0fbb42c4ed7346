"""`torch.cuda`, `xpu`, `mps`, `mtia` of a build without them, and `torch.cpu`: PyTorch's answers and errors."""

from __future__ import annotations

import inspect
import warnings
from types import ModuleType
from typing import Any

import pytest

from .._subject import IS_ORACLE, mindtorch_only
from .._subject import subject as torch
from ._answers import answer

MODULES = ("cuda", "xpu", "mps", "mtia", "cpu")
# Modules of PyTorch's that are about tools and libraries of the vendors, and what belongs to them.
NOT_HERE = {
    "cuda": {"GreenContext", "jiterator", "nccl", "nvtx", "profiler", "sparse", "tunable"},
    "xpu": {"streams", "use_mem_pool", "make_graphed_callables", "graph", "change_current_allocator"},
    "mps": {"profiler"},
    "mtia": set(),
    "cpu": set(),
}
# What differs with the machine, or with what PyTorch was built from.
MACHINE = {"get_capabilities", "list_gpu_processes", "record_memory_history"}


def names(module: str) -> list[str]:
    import importlib

    try:
        found = list(importlib.import_module(f"torch.{module}").__all__)
    except ModuleNotFoundError:
        return []
    return [name for name in found if name not in NOT_HERE[module]]


def without_arguments(function: Any) -> bool:
    if not callable(function) or inspect.isclass(function):
        return False
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return all(p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)


@pytest.mark.oracle
@pytest.mark.parametrize(("module", "name"), [(m, n) for m in MODULES for n in names(m)])
def test_every_public_name(oracle: ModuleType, module: str, name: str) -> None:
    theirs, ours = getattr(getattr(oracle, module), name), getattr(getattr(torch, module), name)
    assert callable(theirs) == callable(ours)
    assert inspect.isclass(theirs) == inspect.isclass(ours)
    if without_arguments(theirs) and name not in MACHINE:

        def call(library: Any) -> Any:
            return getattr(getattr(library, module), name)()

        assert answer(call, torch)[0] == answer(call, oracle)[0]


CALLS = {
    "stream class": lambda t: t.cuda.Stream(),
    "event class": lambda t: t.cuda.Event(),
    "graph class": lambda t: t.cuda.CUDAGraph(),
    "pool class": lambda t: t.cuda.MemPool(),
    "xpu stream": lambda t: t.xpu.Stream(),
    "mps event": lambda t: t.mps.Event(),
    "tensor type": lambda t: t.cuda.HalfTensor(2),
    "storage type": lambda t: t.cuda.FloatStorage(2),
    "isinstance": lambda t: isinstance(t.ones(1), t.cuda.FloatTensor),
    "device": lambda t: (t.cuda.device(2).idx, t.cuda.device("cuda:1").idx, t.cuda.device(None).idx),
    "wrong device": lambda t: t.cuda.device("cpu"),
    "enter device": lambda t: t.cuda.device(0).__enter__(),
    "enter xpu": lambda t: t.xpu.device(0).__enter__(),
    "enter mtia": lambda t: t.mtia.device(0).__enter__(),
    "device of a tensor": lambda t: t.cuda.device_of(t.ones(1)).__enter__(),
    "no stream": lambda t: (t.cuda.stream(None).__enter__(), t.cuda.set_stream(None), t.xpu.set_stream(None)),
    "seeds": lambda t: [getattr(t, m).manual_seed_all(3) for m in ("cuda", "xpu", "mtia")],
    "seed of one": lambda t: [getattr(t, m).manual_seed(3) for m in ("cuda", "xpu", "mtia", "mps")],
    "seed that is no number": lambda t: t.cuda.manual_seed("a"),
    "states": lambda t: (t.cuda.get_rng_state_all(), t.cuda.set_rng_state_all([t.ones(1, dtype=t.uint8)])),
    "state that is no tensor": lambda t: t.cuda.set_rng_state_all([3]),
    "set device": lambda t: t.cuda.set_device(0),
    "set negative device": lambda t: t.cuda.set_device(-1),
    "memory": lambda t: (t.cuda.memory_allocated("cuda:0"), t.cuda.memory_stats(0), t.cuda.empty_cache()),
    "compiled": lambda t: (t.cuda._is_compiled(), t.cuda._is_in_bad_fork(), t.cuda._initialized),
    "lazy": lambda t: t.cuda._lazy_init(),
    "later": lambda t: t.cuda._lazy_call(lambda: 1 / 0),
    "to cuda": lambda t: t.ones(1).cuda(),
    "on cuda": lambda t: t.ones(1, device="cuda"),
    "to xpu": lambda t: t.ones(1).to("xpu"),
    "shader": lambda t: t.mps.compile_shader(""),
    "versions": lambda t: (t.version.cuda, t.version.hip, t.version.rocm, t.version.xpu, t.version.debug),
    "cpu": lambda t: (t.cpu.current_device(), t.cpu.device_count(), t.cpu.is_available(), t.cpu.synchronize()),
    "cpu stream": lambda t: t.cpu.current_stream() is t.cpu.current_stream(),
    "cpu event": lambda t: (t.cpu.Event().query(), t.cpu.Event().record(), t.cpu.Event().wait()),
    "cpu streams": lambda t: (t.cpu.Stream(-1).wait_stream(t.cpu.Stream()), t.cpu.Stream().record_event()),
    "memory submodule": lambda t: t.cuda.memory.memory_allocated(),
    "random submodule": lambda t: t.cuda.random.manual_seed(1),
}


# The oracle's `mps.Event`, which could not be made, fails to be freed.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", CALLS)
def test_calls_as_the_oracle(oracle: ModuleType, name: str) -> None:
    assert answer(CALLS[name], torch)[0] == answer(CALLS[name], oracle)[0]


def test_a_stream_of_the_cpu_is_current_inside() -> None:
    stream = torch.cpu.Stream()
    with torch.cpu.stream(stream):
        assert torch.cpu.current_stream() is stream
        with torch.cpu.stream(None):
            assert torch.cpu.current_stream() is stream
    assert torch.cpu.current_stream() is not stream


def test_capabilities(request: pytest.FixtureRequest) -> None:
    found = torch.cpu.get_capabilities()
    assert found["num_logical_cores"] >= found["num_physical_cores"] >= 1
    with pytest.raises(TypeError):
        found["avx2"] = True
    oracle = request.getfixturevalue("oracle")
    theirs = oracle.cpu.get_capabilities()
    assert set(found) == set(theirs)
    for name in theirs:
        if isinstance(theirs[name], bool):
            assert found[name] == theirs[name], name


OLDER = {"cpu": ("autocast", "GradScaler"), "cuda": ("autocast", "GradScaler", "custom_fwd", "custom_bwd")}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in OLDER for name in OLDER[kind]])
def test_older_names_of_amp(oracle: ModuleType, kind: str, name: str) -> None:
    def call(library: Any) -> Any:
        made = getattr(getattr(library, kind).amp, name)
        result = made(lambda: None) if name.startswith("custom") else made()
        return type(result).__name__, made.__module__.partition(".")[2], made.__name__

    assert answer(call, torch) == answer(call, oracle)


def test_older_autocast_works() -> None:
    a = torch.ones(2, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.cpu.amp.autocast():
            assert (a @ a).dtype == torch.bfloat16
        with torch.cpu.amp.autocast(enabled=False):
            assert (a @ a).dtype == torch.float32
        scaler = torch.cpu.amp.GradScaler(init_scale=4.0)
        assert scaler.get_scale() == 4.0
    assert torch.cuda.amp.common.amp_definitely_not_available()


@mindtorch_only
def test_how_it_was_built() -> None:
    assert "devices: cpu, meta, npu" in torch.__config__.show()
    assert f"get_num_threads() : {torch.get_num_threads()}" in torch.__config__.parallel_info()
    assert str(torch.version.__version__) == str(torch.__version__)
    assert torch.torch_version.TorchVersion("2.13.0") > (2, 12)


def test_names_for_annotations() -> None:
    for name in ("Device", "Number", "Storage", "FileLike", "IntLikeType", "_dtype", "_device", "_size"):
        assert hasattr(torch.types, name)
    assert isinstance(3.0, torch.types._Number)


def test_denormal_numbers_can_be_taken_for_zeros() -> None:
    tiny = torch.tensor([1e-310], dtype=torch.float64)
    if torch.set_flush_denormal(True):
        try:
            assert float(tiny * 0.5) == 0.0
        finally:
            assert torch.set_flush_denormal(False)
    assert float(tiny * 0.5) == 5e-311


def test_warnings_said_every_time() -> None:
    if IS_ORACLE:
        pytest.skip("PyTorch says these at another place")
    assert not torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        assert torch.is_warn_always_enabled()
        for _ in range(2):
            with pytest.warns(DeprecationWarning, match="is_autocast_cpu_enabled"):
                torch.is_autocast_cpu_enabled()
    finally:
        torch.set_warn_always(False)
