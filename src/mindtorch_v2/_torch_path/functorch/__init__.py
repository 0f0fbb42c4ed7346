"""`functorch`: what became `torch.func`, under its old name."""

from __future__ import annotations

import mindtorch_v2.torch  # noqa: F401  `torch` is this package from here on
from mindtorch_v2 import __version__ as _version
from mindtorch_v2._functorch.deprecated import (
    combine_state_for_ensemble,
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    make_functional,
    make_functional_with_buffers,
    vjp,
    vmap,
)
from mindtorch_v2._functorch.make_functional import FunctionalModule, FunctionalModuleWithBuffers
from mindtorch_v2.fx.experimental.proxy_tensor import make_fx

__version__ = str(_version)
__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "make_functional",
    "make_functional_with_buffers",
    "make_fx",
    "vjp",
    "vmap",
]
