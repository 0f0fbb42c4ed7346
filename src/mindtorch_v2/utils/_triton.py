"""`torch.utils._triton`: whether Triton could compile kernels. It could not: nothing is compiled here."""

from __future__ import annotations

from typing import Any


def has_triton_package() -> bool:
    """Whether the package is installed, whatever it could do."""
    from importlib.util import find_spec

    return find_spec("triton") is not None


def has_triton() -> bool:
    return False


def has_triton_tma() -> bool:
    return False


def has_triton_tma_device() -> bool:
    return False


def has_triton_stable_tma_api() -> bool:
    return False


def has_triton_experimental_host_tma() -> bool:
    return False


def has_triton_tensor_descriptor_host_tma() -> bool:
    return False


def has_datacenter_blackwell_tma_device() -> bool:
    return False


def get_triton_version(fallback: tuple[int, int] = (0, 0)) -> tuple[int, int]:
    """The installed version, or the fallback."""
    from importlib import metadata

    try:
        major, minor = metadata.version("triton").split(".")[:2]
    except metadata.PackageNotFoundError:
        return fallback
    return int(major), int(minor)


def triton_backend() -> Any:
    raise RuntimeError("torch.utils._triton.triton_backend: there is no device that Triton compiles for")
