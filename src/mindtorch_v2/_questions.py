"""Small questions about tensors and about what this build can do."""

from __future__ import annotations

import threading
from typing import Any

from ._device import device as Device
from ._dispatch.op import type_name
from ._overrides import overridable
from ._tensor_base import TensorBase
from ._warn import ALWAYS


def _need(name: str, x: Any, argument: str = "input", position: int = 1) -> Any:
    if not isinstance(x, TensorBase):
        raise TypeError(f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {type_name(x)}")
    return x


def _is_functional_tensor(t: Any) -> bool:
    """Whether a tensor stands for another while in-place writes are taken out: none does, a key of dispatch does it."""
    _need("_is_functional_tensor", t, "t")
    return False


@overridable
def is_same_size(input: Any, other: Any) -> bool:
    """Whether two tensors have the same shape."""
    return bool(_need("is_same_size", input)._shape == _need("is_same_size", other, "other", 2)._shape)


@overridable
def is_signed(input: Any) -> bool:
    """Whether the dtype has negative numbers."""
    return bool(_need("is_signed", input)._dtype.is_signed)


@overridable
def is_inference(input: Any) -> bool:
    """Whether a tensor was made in inference mode."""
    return bool(_need("is_inference", input).is_inference())


@overridable
def is_distributed(input: Any) -> bool:
    """Always False, as in PyTorch."""
    _need("is_distributed", input)
    return False


@overridable
def get_device(input: Any) -> int:
    """The index of the tensor's device; -1 on the CPU."""
    return int(_need("get_device", input).get_device())


def _running_with_deploy() -> bool:
    """Always False, as in PyTorch, whose own tests ask."""
    return False


def is_vulkan_available() -> bool:
    return False


def compiled_with_cxx11_abi() -> bool:
    """Whether the native module uses the C++11 ABI of libstdc++; it is built by no compiler that has another."""
    return True


def get_device_module(device: Any = None) -> Any:
    """The module of a device type (`torch.npu`, `torch.cpu`); without argument that of the accelerator in use, or of
    the CPU if there is none."""
    import mindtorch_v2 as torch

    if isinstance(device, Device):
        name = device.type
    elif isinstance(device, str):
        name = Device(device).type
    elif device is None:
        found = torch.accelerator.current_accelerator(check_available=True)
        name = "cpu" if found is None else found.type
    else:
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    module = getattr(torch, name, None)
    if module is None:
        raise RuntimeError(f"Device '{name}' does not have a corresponding module registered as 'torch.{name}'.")
    return module


def set_flush_denormal(mode: bool) -> bool:
    """Take denormal numbers for zeros in this thread; answers whether the processor can."""
    from ._native import set_flush_denormal as flush

    if not isinstance(mode, bool):
        raise RuntimeError(f"flush_denormal expects a bool, but got {type(mode).__name__}")
    return flush(int(mode))


def set_warn_always(b: bool, /) -> None:
    """Whether warnings that are said once are said every time."""
    if not isinstance(b, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    ALWAYS[0] = b


# What PyTorch was built with, asked of this package: LAPACK and Fourier transforms are there, by other libraries than
# Intel's, and threads by none of OpenMP's.
has_lapack = has_spectral = True
has_mkl = has_openmp = False


def is_warn_always_enabled() -> bool:
    """Whether warnings that are said once are said every time."""
    return ALWAYS[0]


# -- threads ------------------------------------------------------------------------------------------------------
class _Interop:
    """How many threads may run operators at the same time; nothing here starts such threads."""

    count = 0
    lock = threading.Lock()


def get_num_interop_threads() -> int:
    """How many threads may run independent operators: the number of processors unless set."""
    import os

    return _Interop.count or os.cpu_count() or 1


def set_num_interop_threads(num: Any) -> None:
    """Say how many threads may run independent operators; once, as in PyTorch."""
    if isinstance(num, bool) or not isinstance(num, int):
        raise RuntimeError(f"set_num_interop_threads expects an int, but got {type(num).__name__}")
    if not -(2**31) <= num < 2**31:
        raise ValueError(f"Overflow when unpacking long{'' if -(2**63) <= num < 2**63 else ' long'}")
    if num <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    with _Interop.lock:
        if _Interop.count:
            raise RuntimeError(
                "Error: cannot set number of interop threads after parallel work has started or "
                "set_num_interop_threads called"
            )
        _Interop.count = num
