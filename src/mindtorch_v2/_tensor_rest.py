"""Methods of Tensor that are seldom called: old names, devices that are not here, questions with one answer.

Invariant: nothing here is loaded before one of the names is asked for (`_attach.LATE_METHODS` lists them).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from . import _removed
from ._device import as_device
from ._device import device as Device
from ._dispatch.keys import LAZY
from ._dispatch.op import type_name
from ._dtype import bool as bool_
from ._dtype_names import tensor_type, type_string
from ._layout import memory_format as memory_format_type
from ._tensor_base import TensorBase, numel, requires_grad
from ._unbound import of_tensor
from ._warn import warn


def _tensor(name: str, argument: str, position: int, x: Any) -> Any:
    if not isinstance(x, TensorBase):
        raise TypeError(f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {type_name(x)}")
    return x


@of_tensor
def is_set_to(self: Any, tensor: Any) -> bool:
    """Whether both tensors are the same view of the same memory."""
    t = _tensor("is_set_to", "tensor", 1, tensor)
    return bool(
        self._storage is t._storage
        and not (self._keys | t._keys) & LAZY
        and self._offset == t._offset
        and self._shape == t._shape
        and self._stride == t._stride
    )


@of_tensor
def is_nonzero(self: Any) -> bool:
    """Whether the only element is not zero."""
    from ._types import is_nonzero as ask

    return ask(self)


def __nonzero__(self: Any) -> bool:
    """bool(self), as Python 2 called it."""
    return bool(self)


def __long__(self: Any) -> int:
    """int(self), as Python 2 called it."""
    return int(self)


@of_tensor
def is_distributed(self: Any) -> bool:
    """Always False, as in PyTorch."""
    return False


@of_tensor
def const_data_ptr(self: Any) -> int:
    """The address of the first element, to read from."""
    return int(self.data_ptr())


# -- Python functions on elements ---------------------------------------------------------------------------------
def _mapped(name: str, self: Any, others: dict[str, Any], fn: Callable[..., Any], label: str) -> Any:
    given = [_tensor(name, n, i + 1, t) for i, (n, t) in enumerate(others.items())]
    for t in (self, *given):
        if requires_grad(t):
            raise RuntimeError(
                f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead."
            )
    for n, t in zip(others, given):
        if t._dtype is not self._dtype or t._device != self._device:
            want, got = (tensor_type(x._dtype, x._device) for x in (self, t))
            raise TypeError(f"{name}: expected {want} for {label}'{n}' (got {got})")
    if self._device.type != "cpu":
        raise TypeError(f"{name} is only implemented on CPU tensors")
    from ._from_data import tensor

    made = []
    for values in zip(*(t.expand(self._shape).reshape(-1).tolist() for t in (self, *given))):
        x = fn(*values)
        if not self._dtype.is_complex and not hasattr(type(x), "__float__") and not hasattr(type(x), "__index__"):
            raise TypeError(f"must be real number, not {type(x).__name__}")
        made.append(x if self._dtype.is_inexact or self._dtype is bool_ else int(x))
    return self.copy_(tensor(made, dtype=self._dtype).reshape(self._shape))


@of_tensor
def apply_(self: Any, callable: Callable[[Any], Any]) -> Any:
    """Replace every element by `callable(element)`; CPU only."""
    return _mapped("apply_", self, {}, callable, "")


@of_tensor
def map_(self: Any, other: Any, callable: Callable[[Any, Any], Any]) -> Any:
    """Replace every element by `callable(element, element of other)`; CPU only."""
    return _mapped("map_", self, {"other": other}, callable, "")


@of_tensor
def map2_(self: Any, x: Any, y: Any, callable: Any = None) -> Any:
    """Replace every element by `callable(element, element of x, element of y)`; CPU only."""
    return _mapped("map2_", self, {"x": x, "y": y}, callable, "argument ")


@of_tensor
def _is_all_true(self: Any) -> Any:
    """Whether every element of a bool tensor holds, as a tensor."""
    return _bools(self).all()


@of_tensor
def _is_any_true(self: Any) -> Any:
    """Whether an element of a bool tensor holds, as a tensor."""
    return _bools(self).any()


def _bools(t: Any) -> Any:
    if t._dtype is not bool_:
        raise RuntimeError(f"expected a tensor of torch.bool, got {t._dtype}")
    return t


# -- devices that are not here ------------------------------------------------------------------------------------
_ABSENT = {
    "cuda": "Torch not compiled with CUDA enabled",
    "xpu": "Torch not compiled with XPU enabled",
    "mtia": "Torch not compiled with MTIA enabled. Ensure you have "
    "`import mtia.host_runtime.torch_mtia.dynamic_library` in your python src file and include "
    "`//mtia/host_runtime/torch_mtia:torch_mtia` as your target dependency!",
}


def _absent(self: Any, name: str, device: Any, non_blocking: Any, format: Any) -> NoReturn:
    if device is not None and (isinstance(device, bool) or not isinstance(device, (Device, str, int))):
        raise TypeError(f"{name}(): argument 'device' (position 1) must be torch.device, not {type_name(device)}")
    if not isinstance(non_blocking, bool):
        raise TypeError(f"{name}(): argument 'non_blocking' must be bool, not {type_name(non_blocking)}")
    if format is not None and not isinstance(format, memory_format_type):
        raise TypeError(f"{name}(): argument 'memory_format' must be torch.memory_format, not {type_name(format)}")
    if isinstance(device, int) and not isinstance(device, bool):
        raise RuntimeError("Cannot access accelerator device when none is available.")
    if device is not None and (device if isinstance(device, Device) else as_device(device)).type != name:
        raise RuntimeError(f"Invalid device, must be {name} device")
    if name == "ipu":
        raise RuntimeError("PyTorch is not linked with support for ipu devices")
    raise AssertionError(_ABSENT[name])


@of_tensor
def cuda(self: Any, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> NoReturn:
    """There is no such device here."""
    _absent(self, "cuda", device, non_blocking, memory_format)


@of_tensor
def xpu(self: Any, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> NoReturn:
    """There is no such device here."""
    _absent(self, "xpu", device, non_blocking, memory_format)


@of_tensor
def ipu(self: Any, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> NoReturn:
    """There is no such device here."""
    _absent(self, "ipu", device, non_blocking, memory_format)


@of_tensor
def mtia(self: Any, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> NoReturn:
    """There is no such device here."""
    _absent(self, "mtia", device, non_blocking, memory_format)


def __cuda_array_interface__(self: Any) -> NoReturn:
    """Only memory of a CUDA device has one."""
    kind = type_string(self._dtype, self._device)
    raise AttributeError(
        f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {kind} "
        "If CUDA data is required use tensor.cuda() to copy tensor to device memory."
    )


# -- old names ----------------------------------------------------------------------------------------------------
def resize(self: Any, *sizes: Any) -> Any:
    """`view` under its first name; deprecated."""
    warn("non-inplace resize is deprecated")
    return _resized(self, sizes)


def resize_as(self: Any, tensor: Any) -> Any:
    """`view_as` under its first name; deprecated."""
    warn("non-inplace resize_as is deprecated")
    return _resized(self, tuple(tensor.size()))


def _resized(t: Any, sizes: tuple[Any, ...]) -> Any:
    count: Any = 1
    for n in sizes:
        count = n if count == 1 else count * n
    if count != numel(t):
        shown = ["x".join(map(str, s)) for s in (sizes, t._shape)]
        raise RuntimeError(
            f"requested resize to {shown[0]} ({count} elements in total), but the given tensor has a size of "
            f"{shown[1]} ({numel(t)} elements). autograd's resize can only change the shape of a given tensor, while "
            "preserving the number of elements. "
        )
    return t.contiguous().view(sizes)


def reinforce(self: Any, reward: Any) -> NoReturn:
    """Removed: use `torch.distributions`."""
    raise RuntimeError(
        "reinforce() was removed.\nUse torch.distributions instead.\n"
        "See https://pytorch.org/docs/main/distributions.html\n\nInstead of:\n\n"
        "probs = policy_network(state)\naction = probs.multinomial()\nnext_state, reward = env.step(action)\n"
        "action.reinforce(reward)\naction.backward()\n\nUse:\n\nprobs = policy_network(state)\n"
        "# NOTE: categorical is equivalent to what used to be called multinomial\n"
        "m = torch.distributions.Categorical(probs)\naction = m.sample()\nnext_state, reward = env.step(action)\n"
        "loss = -m.log_prob(action) * reward\nloss.backward()\n"
    )


def storage_type(self: Any) -> Any:
    """The class of this tensor's typed storage."""
    from ._storage_classes import of_dtype
    from ._typed_storage import TypedStorage, _warn

    _warn()
    return (of_dtype(self._dtype) if self._device.type == "cpu" else None) or TypedStorage


def volatile(self: Any) -> bool:
    """Always False: use `torch.no_grad`."""
    warn("volatile was removed (Variable.volatile is always False)")
    return False


def set_volatile(self: Any, value: Any) -> None:
    """Does nothing but say so."""
    warn("volatile was removed and now has no effect. Use `with torch.no_grad():` instead.")


solve = _removed.solve
lstsq = _removed.lstsq
eig = _removed.eig


def symeig(self: Any, eigenvectors: bool = False) -> NoReturn:
    """Removed: use `torch.linalg.eigh`."""
    _removed.symeig(self, eigenvectors)


def _view_func(self: Any, new_base: Any, symint_visitor_fn: Any = None, tensor_visitor_fn: Any = None) -> Any:
    """This view, of another base of the same geometry."""
    from ._autograd.replay import view_func

    return view_func(self, new_base, symint_visitor_fn, tensor_visitor_fn)


def _view_func_unsafe(self: Any, new_base: Any, symint_visitor_fn: Any = None, tensor_visitor_fn: Any = None) -> Any:
    """This view, of another base."""
    from ._autograd.replay import view_func_unsafe

    return view_func_unsafe(self, new_base, symint_visitor_fn, tensor_visitor_fn)


def _rev_view_func_unsafe(self: Any, new_view: Any) -> Any:
    """What this view's base is to it, to another view."""
    from ._autograd.replay import rev_view_func_unsafe

    return rev_view_func_unsafe(self, new_view)
