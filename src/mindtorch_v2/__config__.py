"""`torch.__config__`: how the package was built and how it uses threads."""

from __future__ import annotations

import os
import platform
import sys

from . import _native
from ._version import __version__


def show() -> str:
    """What the package was built with, to be read by people."""
    from .backends.cpu import get_cpu_capability

    lines = [
        f"mindtorch_v2, API of PyTorch {__version__}, built with:",
        f"  - Python {platform.python_version()}",
        f"  - compiled modules: {'yes' if _compiled() else 'no'}",
        f"  - native module: {os.path.basename(_native.__file__ or '')}",
        f"  - CPU capability usage: {get_cpu_capability()}{_products()}",
        f"  - blocks for caches of {_caches()}",
        "  - devices: cpu, meta, npu (Ascend)",
    ]
    return "\n".join(lines) + "\n"


def _products() -> str:
    """What kernels use beside the level: AVX512 for products of bfloat16, AMX for products of tiles."""
    return "".join(f", {name}" for name, used in zip(("AVX512_BF16", "AMX"), _native.cpu_products()) if used)


def _caches() -> str:
    first, second = _native.cpu_caches()
    return f"{first >> 10} KiB and {second >> 10} KiB"


def _compiled() -> bool:
    module = sys.modules.get(f"{__package__}._dispatch.op")
    return module is not None and not str(getattr(module, "__file__", "")).endswith(".py")


def _cxx_flags() -> str:
    """The C++ compiler's flags: not recorded in a build."""
    return ""


def parallel_info() -> str:
    """How many threads the kernels use, and why."""
    from ._questions import get_num_interop_threads

    def variable(name: str) -> str:
        return os.environ.get(name, "[not set]")

    return (
        "ATen/Parallel:\n"
        f"\tat::get_num_threads() : {_native.get_num_threads()}\n"
        f"\tat::get_num_interop_threads() : {get_num_interop_threads()}\n"
        f"std::thread::hardware_concurrency() : {os.cpu_count()}\n"
        "Environment variables:\n"
        f"\tOMP_NUM_THREADS : {variable('OMP_NUM_THREADS')}\n"
        f"\tMKL_NUM_THREADS : {variable('MKL_NUM_THREADS')}\n"
        "ATen parallel backend: native thread pool\n"
    )
