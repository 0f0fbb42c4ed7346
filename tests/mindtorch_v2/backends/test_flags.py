"""`torch.backends`: flags that are kept and checked as PyTorch's, and answers that are true of this package."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from .._subject import mindtorch_only
from .._subject import subject as torch
from ._answers import answer


@pytest.fixture(autouse=True)
def as_they_were() -> Iterator[None]:
    yield
    torch.set_float32_matmul_precision("highest")
    torch.backends.fp32_precision = "none"
    torch.backends.cudnn.allow_tf32 = True


def put(path: str, *values: Any) -> Callable[[Any], Any]:
    """Set a flag to one value after another: what it then is, and at the end what it was."""

    def call(library: Any) -> Any:
        module = library.backends
        *parents, name = path.split(".")
        for part in parents:
            module = getattr(module, part)
        before, seen = getattr(module, name), []
        for value in values:
            setattr(module, name, value)
            seen.append(getattr(module, name))
        setattr(module, name, before)
        return before, seen

    return call


def inside(path: str, *names: str, **given: Any) -> Callable[[Any], Any]:
    """Flags inside a `flags()` block and behind it."""

    def call(library: Any) -> Any:
        module = getattr(library.backends, path)
        with module.flags(**given):
            within = [getattr(module, name) for name in names]
        return within, [getattr(module, name) for name in names]

    return call


def precision(library: Any, words: tuple[str, ...] = ("high", "medium", "highest")) -> list[Any]:
    seen: list[Any] = []
    for word in words:
        library.set_float32_matmul_precision(word)
        cuda, mkldnn = library.backends.cuda.matmul, library.backends.mkldnn.matmul
        seen.append(
            (library.get_float32_matmul_precision(), cuda.allow_tf32, cuda.fp32_precision, mkldnn.fp32_precision)
        )
    return seen


def inherited(library: Any) -> list[Any]:
    backends = library.backends
    library.set_float32_matmul_precision("highest")
    backends.fp32_precision = "ieee"
    seen = [backends.cudnn.fp32_precision, backends.mkldnn.fp32_precision, backends.mkldnn.conv.fp32_precision]
    backends.mkldnn.fp32_precision = "bf16"
    seen += [backends.mkldnn.fp32_precision, backends.mkldnn.conv.fp32_precision, backends.cudnn.conv.fp32_precision]
    backends.mkldnn.fp32_precision = backends.fp32_precision = "none"
    return seen


SAME: dict[str, Callable[[Any], Any]] = {
    "cudnn.enabled": put("cudnn.enabled", False, True),
    "cudnn.benchmark": put("cudnn.benchmark", True),
    "cudnn.deterministic": put("cudnn.deterministic", True),
    "cudnn.allow_tf32": put("cudnn.allow_tf32", False, True),
    "cudnn.fp32_precision": put("cudnn.fp32_precision", "ieee", "tf32", "none"),
    "cudnn.conv": lambda t: (t.backends.cudnn.conv.fp32_precision, t.backends.cudnn.rnn.fp32_precision),
    "cudnn flags": inside("cudnn", "enabled", "benchmark", "deterministic", enabled=False, benchmark=True),
    "cudnn unknown": put("cudnn.allow_tf32", 3),
    "cudnn version": lambda t: (t.backends.cudnn.version(), t.backends.cudnn.is_available()),
    "cudnn acceptable": lambda t: t.backends.cudnn.is_acceptable(t.ones(1)),
    "mkldnn.enabled": put("mkldnn.enabled", False),
    "mkldnn.deterministic": put("mkldnn.deterministic", True),
    "mkldnn flags": inside("mkldnn", "enabled", "deterministic", enabled=False, deterministic=True),
    "matmul.allow_tf32": put("cuda.matmul.allow_tf32", True, False),
    "matmul.fp16": put("cuda.matmul.allow_fp16_reduced_precision_reduction", False, True),
    "matmul.fp16 split": lambda t: t.backends.cuda.matmul.allow_fp16_reduced_precision_reduction_split_k,
    "matmul.fp16 split off": put("cuda.matmul.allow_fp16_reduced_precision_reduction", (True, False)),
    "matmul.bf16": put("cuda.matmul.allow_bf16_reduced_precision_reduction", False, True),
    "matmul.accumulation": put("cuda.matmul.allow_fp16_accumulation", True),
    "matmul unknown": lambda t: t.backends.cuda.matmul.nothing,
    "precision": precision,
    "precision unknown": lambda t: precision(t, ("low",)),
    "inherited": inherited,
    "precision of all": put("fp32_precision", "tf32", "bf16", "none"),
    "cuda built": lambda t: (t.backends.cuda.is_built(), t.backends.cuda.is_flash_attention_available()),
    "linalg": lambda t: t.backends.cuda.preferred_linalg_library(),
    "linalg default": lambda t: t.backends.cuda.preferred_linalg_library("default"),
    "linalg magma": lambda t: t.backends.cuda.preferred_linalg_library("magma"),
    "linalg number": lambda t: t.backends.cuda.preferred_linalg_library(3),
    "blas": lambda t: t.backends.cuda.preferred_blas_library(),
    "blas lt": lambda t: t.backends.cuda.preferred_blas_library("cublaslt"),
    "rocm attention": lambda t: t.backends.cuda.preferred_rocm_fa_library("ck"),
    "plan cache": lambda t: t.backends.cuda.cufft_plan_cache.max_size,
    "plan cache clear": lambda t: t.backends.cuda.cufft_plan_cache.clear(),
    "plan cache of a device": lambda t: t.backends.cuda.cufft_plan_cache["cuda:1"],
    "miopen": put("miopen.immediate", True),
    "nnpack": lambda t: (t.backends.nnpack.set_flags(False), t.backends.nnpack.set_flags(True)),
    "mps": lambda t: (t.backends.mps.is_available(), t.backends.mps.is_built()),
    "macos": lambda t: t.backends.mps.is_macos13_or_newer(),
    "cusparselt": lambda t: (t.backends.cusparselt.version(), t.backends.cusparselt.is_available()),
    "kleidiai": lambda t: t.backends.kleidiai.is_available(),
    "opt_einsum": lambda t: (t.backends.opt_einsum.enabled, t.backends.opt_einsum.strategy),
    "opt_einsum flags": lambda t: t.backends.opt_einsum.set_flags(True),
    "mha": lambda t: t.backends.mha.get_fastpath_enabled(),
    "capability": lambda t: t.backends.cpu.get_cpu_capability(),
    "frozen": lambda t: t.backends.flags_frozen(),
}


@pytest.mark.parametrize("name", SAME)
def test_as_the_oracle(oracle: ModuleType, name: str) -> None:
    if name.startswith("opt_einsum") and oracle.backends.opt_einsum.is_available():
        pytest.skip("PyTorch found opt_einsum, which is not used here")
    assert answer(SAME[name], torch) == answer(SAME[name], oracle)


@mindtorch_only
def test_libraries_that_are_not_here_are_not_claimed() -> None:
    backends = torch.backends
    for name in ("mkl", "mkldnn", "openmp", "nnpack", "mps", "cusparselt", "kleidiai", "opt_einsum"):
        assert getattr(backends, name).is_available() is False
    assert backends.quantized.engine == "none" and backends.quantized.supported_engines == ["none"]
    with pytest.raises(RuntimeError, match="is a constant here"):
        backends.quantized.supported_engines = []


def test_flags_of_attention_are_those_of_nn_attention() -> None:
    cuda, attention = torch.backends.cuda, torch.nn.attention
    with attention.sdpa_kernel(attention.SDPBackend.MATH):
        assert cuda.math_sdp_enabled() and not cuda.flash_sdp_enabled() and not cuda.mem_efficient_sdp_enabled()
    assert cuda.flash_sdp_enabled() and cuda.mem_efficient_sdp_enabled() and cuda.cudnn_sdp_enabled()
    with pytest.warns(FutureWarning, match="sdp_kernel"), cuda.sdp_kernel(enable_flash=False):
        assert not cuda.flash_sdp_enabled() and cuda.math_sdp_enabled()
    assert cuda.flash_sdp_enabled()


@mindtorch_only
def test_frozen_flags_are_changed_by_blocks_alone() -> None:
    frozen = __import__("mindtorch_v2.backends._flags", fromlist=["Frozen"]).Frozen
    torch.backends.disable_global_flags()
    try:
        assert torch.backends.flags_frozen()
        with pytest.raises(RuntimeError, match="not allowed to set torch.backends.cudnn.benchmark flags after"):
            torch.backends.cudnn.benchmark = True
        with torch.backends.cudnn.flags(benchmark=True):
            assert torch.backends.cudnn.benchmark
        assert not torch.backends.cudnn.benchmark
    finally:
        frozen.on = False


@pytest.mark.oracle
def test_every_public_module_is_there(oracle: ModuleType) -> None:
    theirs = {name for name in dir(oracle.backends) if not name.startswith("_")}
    # Python written kernels of PyTorch's compiler, and a library for phones that shows once its module was imported.
    assert theirs - {"python_native", "xnnpack"} <= set(dir(torch.backends))
