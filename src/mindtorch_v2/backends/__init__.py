"""`torch.backends`: which libraries are behind the operators, and the flags that choose between them.

Invariant: answers are true of this package: it has kernels of its own, and none of the libraries PyTorch is built with.
"""

from __future__ import annotations

import types as _types
from importlib import import_module as _import_module
from typing import Any as _Any

from . import _precision
from ._flags import Flag as _Flag
from ._flags import become as _become
from ._flags import bracketed as __allow_nonbracketed_mutation  # noqa: F401
from ._flags import disable_global_flags as disable_global_flags
from ._flags import flags_frozen as flags_frozen

_SUBMODULES = (
    *("cpu", "cuda", "cudnn", "cusparselt", "kleidiai", "mha", "miopen", "mkl", "mkldnn", "mps", "nnpack", "openmp"),
    *("opt_einsum", "python_native", "quantized"),
)


class _Backends(_types.ModuleType):
    fp32_precision = _Flag(
        lambda: _precision.get("generic", "all"), lambda value: _precision.put("generic", "all", value)
    )


def __getattr__(name: str) -> _Any:
    if name in _SUBMODULES:
        return _import_module("." + name, __name__)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES, "fp32_precision"})


_become(__name__, _Backends)
