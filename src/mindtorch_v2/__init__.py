"""PyTorch's Python API with PyTorch's semantics, for cpu, meta and npu: `import mindtorch_v2 as torch`."""
from __future__ import annotations

from typing import Any

from ._device import device as device
from ._dtype import *  # noqa: F403
from ._finfo import finfo as finfo
from ._finfo import iinfo as iinfo
from ._layout import *  # noqa: F403
from ._size import Size as Size
from ._version import __version__ as __version__
from ._tensor import Tensor as Tensor
from ._dispatch.op import RESOLVERS
from ._autograd.record import NO_DERIVATIVE
from ._backends.common import kernels as _kernels
from ._backends.cpu import glue as _glue
from ._backends import meta as _meta
from ._ops import load as _load
from ._ops import public as _public
from ._tensor_base import HOT as _HOT
from ._backends.cpu import load as _cpu_load
from . import _attach

RESOLVERS.no_derivative = NO_DERIVATIVE
RESOLVERS.functionalize = _kernels.FUNCTIONALIZE_KERNEL
RESOLVERS.mixed = _kernels.MIXED
RESOLVERS.derived = _kernels.derived

_load.load_tables()
_cpu_load.load_kernels()
_public.install_hot(_HOT)
_attach.attach(Tensor)
_public.install_methods(Tensor)

globals().update(_attach.functions())
_FUNCTIONS = {name: ops for name, ops in _public.by_name().items() if any(o.row.function for o in ops)}


def __getattr__(name: str) -> Any:
    ops = _FUNCTIONS.get(name)
    if ops is None:
        raise AttributeError(f"module 'mindtorch_v2' has no attribute '{name}'")
    fn = _public.function(name, ops)
    globals()[name] = fn
    return fn
