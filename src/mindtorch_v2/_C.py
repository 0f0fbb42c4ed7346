"""The few private names that other code expects to find in `torch._C`."""

from __future__ import annotations

from typing import Any

from ._autograd import engine as _engine
from ._dispatch.keys import AUTOCASTS, AUTOGRAD
from ._dispatch.state import exclude, modes, set_modes
from ._dispatch.state import is_grad_enabled as is_grad_enabled
from ._overrides import DisableTorchFunction as DisableTorchFunction
from ._overrides import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from ._overrides import _disabled_torch_dispatch_impl as _disabled_torch_dispatch_impl
from ._overrides import _disabled_torch_function_impl as _disabled_torch_function_impl
from ._tensor_base import TensorBase as TensorBase

_current_graph_task_id = _engine.current_pass
_will_engine_execute_node = _engine.will_run


def _is_any_autocast_enabled() -> bool:
    """Whether this thread autocasts on some device type that has tensors here."""
    return bool(modes() & AUTOCASTS)


def _DisableTorchDispatch() -> Any:
    """A context in which neither subclasses nor modes take operators over."""
    from ._torch_dispatch import DisableTorchDispatch

    return DisableTorchDispatch()


class _AutoDispatchBelowAutograd:
    """A context in which operators run without being recorded, whatever the grad mode says to others."""

    def __enter__(self) -> None:
        self.before = exclude(AUTOGRAD)

    def __exit__(self, *exc: object) -> None:
        set_modes(self.before)


def _npu_aclnn_available() -> bool:
    """Whether Ascend's operator libraries can be loaded here; never raises."""
    from ._backends import npu

    return npu.aclnn_available()


def _npu_aclnn_symbols_ok() -> bool:
    """Whether every function the NPU backend's core needs is found; never raises."""
    from ._backends import npu

    return npu.aclnn_symbols_ok()
