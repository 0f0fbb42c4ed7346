"""`torch.backends.cuda`: there is no CUDA; flags are kept, and those of attention are `torch.nn.attention`'s.

Invariant: nothing here needs CUDA to be asked, except its plan caches.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any, NoReturn

from .._device import device as _device
from ..nn._sdp import SDP
from . import _precision

_NO_CUDA = "Torch not compiled with CUDA enabled"


def is_built() -> bool:
    """Whether the package was built with CUDA: never."""
    return False


# -- plan caches of cuFFT -------------------------------------------------------------------------------------------
def _no_cuda(*args: Any) -> NoReturn:
    raise AssertionError(_NO_CUDA)


class cuFFTPlanCacheAttrContextProp:
    """A size of a plan cache."""

    def __get__(self, obj: Any, owner: type) -> int:
        _no_cuda()

    def __set__(self, obj: Any, value: Any) -> None:
        _no_cuda()


class cuFFTPlanCache:
    """The plans that cuFFT keeps for a device."""

    size = cuFFTPlanCacheAttrContextProp()
    max_size = cuFFTPlanCacheAttrContextProp()

    def __init__(self, device_index: int) -> None:
        self.device_index = device_index

    def clear(self) -> None:
        _no_cuda()


class cuFFTPlanCacheManager:
    """`torch.backends.cuda.cufft_plan_cache[i]`: there is no device to have one."""

    def __getitem__(self, device: Any) -> cuFFTPlanCache:
        index = _device(device).index if isinstance(device, (str, _device)) else device
        raise RuntimeError(f"cufft_plan_cache: expected 0 <= device index < 0, but got device with index {index}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        _no_cuda()

    def __setattr__(self, name: str, value: Any) -> None:
        _no_cuda()


cufft_plan_cache = cuFFTPlanCacheManager()


# -- matrix products ----------------------------------------------------------------------------------------------
class cuBLASModule:
    """Flags of CUDA's matrix products. `allow_tf32` is the older way to say `torch.set_float32_matmul_precision`."""

    def __init__(self) -> None:
        # (reduced precision, split over the inner dimension), and one flag.
        reduced = dict.fromkeys(("fp16", "bf16"), (True, True))
        object.__setattr__(self, "_reduced", reduced)
        object.__setattr__(self, "_accumulation", [False])

    _reduced: dict[str, tuple[bool, bool]]
    _accumulation: list[bool]

    def __getattr__(self, name: str) -> Any:
        if name == "allow_tf32":
            return _precision.allow_tf32_matmul()
        if name == "fp32_precision":
            return _precision.get("cuda", "matmul")
        if name == "allow_fp16_accumulation":
            return self._accumulation[0]
        plain = name.removesuffix("_split_k")
        for kind in ("fp16", "bf16"):
            if plain == f"allow_{kind}_reduced_precision_reduction":
                return self._reduced[kind][plain != name]
        raise AttributeError("Unknown attribute " + name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "allow_tf32":
            _precision.set_allow_tf32_matmul(value)
        elif name == "fp32_precision":
            _precision.put("cuda", "matmul", value)
        elif name == "allow_fp16_accumulation":
            self._accumulation[0] = _bool("set_allow_fp16_accumulation_cublas", value)
        else:
            for kind in ("fp16", "bf16"):
                if name == f"allow_{kind}_reduced_precision_reduction":
                    self._reduced[kind] = _reduction(kind, value)
                    return
            raise AttributeError("Unknown attribute " + name)


def _bool(setter: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise RuntimeError(f"{setter} expects a bool, but got {type(value).__name__}")
    return value


def _reduction(kind: str, value: Any) -> tuple[bool, bool]:
    reduced, split = value if isinstance(value, (tuple, list)) and len(value) == 2 else (value, True)
    _bool(f"set_allow_{kind}_reduction_cublas", reduced)
    if reduced and not split:
        raise RuntimeError("allow_splitk=False is not supported when reduced precision reductions are enabled")
    return reduced, split


matmul = cuBLASModule()


# -- which library --------------------------------------------------------------------------------------------------
class _LinalgBackend(Enum):
    Default = 0
    Cusolver = 1
    Magma = 2


class _BlasBackend(Enum):
    Default = 0
    Cublas = 1
    Cublaslt = 2
    Ck = 3


class _ROCmFABackend(Enum):
    Default = 0
    AOTriton = 1
    Ck = 2


_LINALG = {"default": _LinalgBackend.Default, "cusolver": _LinalgBackend.Cusolver, "magma": _LinalgBackend.Magma}
_BLAS = {
    "default": _BlasBackend.Default,
    "cublas": _BlasBackend.Cublas,
    "hipblas": _BlasBackend.Cublas,
    "cublaslt": _BlasBackend.Cublaslt,
    "hipblaslt": _BlasBackend.Cublaslt,
    "ck": _BlasBackend.Ck,
}
_ATTENTION = {"default": _ROCmFABackend.Default, "aotriton": _ROCmFABackend.AOTriton, "ck": _ROCmFABackend.Ck}
_CHOSEN: dict[str, Any] = {"attention": _ROCmFABackend.Default}


def _chosen(known: dict[str, Any], given: Any) -> Any:
    if isinstance(given, str):
        if given not in known:
            raise RuntimeError(f"Unknown input value. Choose from: {', '.join(known)}.")
        return known[given]
    if not isinstance(given, type(next(iter(known.values())))):
        raise RuntimeError("Unknown input value type.")
    return given


def preferred_linalg_library(backend: Any = None) -> _LinalgBackend:
    """Which of CUDA's libraries factorises matrices: the default is all there is without one."""
    if backend is not None:
        name = _chosen(_LINALG, backend)
        if name is not _LinalgBackend.Default:
            library = "MAGMA" if name is _LinalgBackend.Magma else "cuSOLVER"
            raise RuntimeError(
                f"Cannot set preferred backend to {library} if PyTorch has not been compiled with {library}."
            )
    return _LinalgBackend.Default


def preferred_blas_library(backend: Any = None) -> _BlasBackend:
    """Which of CUDA's libraries multiplies matrices."""
    if backend is not None:
        name = _chosen(_BLAS, backend)
        if name in (_BlasBackend.Cublaslt, _BlasBackend.Ck):
            library = "cuBLASLt" if name is _BlasBackend.Cublaslt else "Ck"
            raise RuntimeError(
                f"Cannot set preferred backend to {library} if PyTorch has not been compiled with {library}."
            )
    return _BlasBackend.Cublas


def preferred_rocm_fa_library(backend: Any = None) -> _ROCmFABackend:
    """Which of ROCm's libraries computes attention; kept."""
    if backend is not None:
        _CHOSEN["attention"] = _chosen(_ATTENTION, backend)
    found: _ROCmFABackend = _CHOSEN["attention"]
    return found


def blas_workspace_size(size: int | None = None, backend: Any = None) -> int:
    raise AttributeError("module 'torch._C' has no attribute '_cuda_getCublasWorkspaceSize'")


def cublas_workspace_size(size: int | None = None) -> int:
    raise AttributeError("module 'torch._C' has no attribute '_cuda_getCublasWorkspaceSize'")


def cublaslt_workspace_size(size: int | None = None) -> int:
    raise AttributeError("module 'torch._C' has no attribute '_cuda_getCublasLtWorkspaceSize'")


# -- attention ------------------------------------------------------------------------------------------------------
def flash_sdp_enabled() -> bool:
    """Whether flash attention may be chosen."""
    return SDP.enabled["flash"]


def enable_flash_sdp(enabled: bool) -> None:
    SDP.enable("flash", _bool("set_sdp_use_math", enabled))


def mem_efficient_sdp_enabled() -> bool:
    """Whether memory efficient attention may be chosen."""
    return SDP.enabled["mem_efficient"]


def enable_mem_efficient_sdp(enabled: bool) -> None:
    SDP.enable("mem_efficient", _bool("set_sdp_use_math", enabled))


def math_sdp_enabled() -> bool:
    """Whether attention may be computed by its parts."""
    return SDP.enabled["math"]


def enable_math_sdp(enabled: bool) -> None:
    SDP.enable("math", _bool("set_sdp_use_math", enabled))


def cudnn_sdp_enabled() -> bool:
    """Whether cuDNN's attention may be chosen."""
    return SDP.enabled["cudnn"]


def enable_cudnn_sdp(enabled: bool) -> None:
    SDP.enable("cudnn", _bool("set_sdp_use_cudnn", enabled))


_REDUCED = [False]


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Kept: attention by its parts sums in float32 here."""
    _REDUCED[0] = _bool("set_sdp_use_math", enabled)


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    return _REDUCED[0]


def is_flash_attention_available() -> bool:
    """Whether CUDA's flash attention is there: never."""
    return False


def is_ck_sdpa_available() -> bool:
    return False


class SDPAParams:
    """The arguments of an attention, to be asked about."""

    def __init__(
        self, query: Any, key: Any, value: Any, attn_mask: Any, dropout: float, is_causal: bool, enable_gqa: bool
    ) -> None:
        self.query, self.key, self.value, self.attn_mask = query, key, value, attn_mask
        self.dropout, self.is_causal, self.enable_gqa = dropout, is_causal, enable_gqa


def can_use_flash_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Whether CUDA's flash attention could take these arguments: never."""
    return False


def can_use_efficient_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Whether CUDA's memory efficient attention could take these arguments: never."""
    return False


def can_use_cudnn_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Whether cuDNN's attention could take these arguments: never."""
    return False


@contextmanager
def _sdp_kernel(enabled: dict[str, bool]) -> Iterator[None]:
    before = {name: SDP.enabled[name] for name in enabled}
    for name, value in enabled.items():
        SDP.enable(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            SDP.enable(name, value)


def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Any:
    """Which attentions may be chosen inside a block; `torch.nn.attention.sdpa_kernel` is the newer way."""
    warnings.warn(
        "`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager will be removed. Please "
        "see `torch.nn.attention.sdpa_kernel()` for the new context manager, with updated signature.",
        category=FutureWarning,
        stacklevel=2,
    )
    return _sdp_kernel(
        {"flash": enable_flash, "math": enable_math, "mem_efficient": enable_mem_efficient, "cudnn": enable_cudnn}
    )
