"""Calls of operators that take functions: which of the functions that were registered serves one."""

from __future__ import annotations

from typing import Any

from .._dispatch.keys import AUTOGRAD
from .._dispatch.state import STATE, modes
from .._dispatch_keys import DispatchKey
from .._tensor_base import TensorBase
from .._torch_dispatch import mode_stack, without_modes
from ..utils._pytree import tree_leaves

# PyTorch's names of the devices in its keys.
_BACKENDS = {"cpu": "CPU", "meta": "Meta", "npu": "PrivateUse1"}


def served(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the function of the highest key does; below those of autograd stand modes and subclasses."""
    kernels = op.py_kernels
    if STATE.transforms:
        raise NotImplementedError(
            f"HigherOrderOperator {op}: there are no rules for transforms of torch.func here; call it outside of them"
        )
    tensors = [t for t in tree_leaves((args, kwargs)) if isinstance(t, TensorBase)]
    backend = _BACKENDS[tensors[0]._device.type] if tensors else "CPU"
    if not (modes() >> 32) & AUTOGRAD:
        for name in (f"Autograd{backend}", "Autograd"):
            if DispatchKey[name] in kernels:
                return kernels[DispatchKey[name]](*args, **kwargs)
    for mode in reversed(mode_stack()):
        if type(mode) in kernels:
            with without_modes():
                return kernels[type(mode)](mode, *args, **kwargs)
    for t in tensors:
        if type(t) in kernels:
            return kernels[type(t)](*args, **kwargs)
    for name in (backend, "CompositeExplicitAutograd", "CompositeImplicitAutograd"):
        if DispatchKey[name] in kernels:
            return kernels[DispatchKey[name]](*args, **kwargs)
    raise NotImplementedError(f"could not find kernel for HigherOrderOperator {op} at dispatch key {backend}")
