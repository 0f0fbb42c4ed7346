"""Moving and casting a module: what happens to each parameter, its gradient and each buffer.

Invariant: a parameter stays the same object, so that modules which share it go on sharing it, unless it moves to or
from `meta` or `torch.__future__` asks otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import mindtorch_v2 as torch

from ... import __future__ as future
from ..._backends.common.convert import parse_to
from ..._tensor import Tensor
from ..._warn import warn
from ..parameter import Parameter, is_lazy

if TYPE_CHECKING:
    from .module import Module


def converter(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[Tensor], Tensor]:
    """What `Module.to` does to each member."""
    if len(args) > 4:
        raise TypeError(f"to() takes from 0 to 4 positional arguments but {len(args)} were given")
    dtype, device, non_blocking, _, memory_format = parse_to(args, kwargs)
    if "copy" in kwargs or len(args) == 4 or (len(args) == 3 and isinstance(args[0], (torch.dtype, Tensor))):
        raise RuntimeError(".to() does not accept copy argument")
    if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
        raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}")
    if dtype is not None and dtype.is_complex:
        warn(
            "Complex modules are a new feature under active development whose design may change, and some modules "
            "might not work as expected when using complex tensors as parameters or buffers. Please file an issue "
            "at https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml if a complex module does not "
            "work as expected."
        )

    def convert(tensor: Tensor) -> Tensor:
        wanted = dtype if tensor.is_floating_point() or tensor.is_complex() else None
        try:
            if memory_format is not None and tensor.ndim in (4, 5):
                return tensor.to(device, wanted, non_blocking, memory_format=memory_format)
            return tensor.to(device, wanted, non_blocking)
        except NotImplementedError as error:
            if str(error) != "Cannot copy out of meta tensor; no data!":
                raise
            raise NotImplementedError(
                f"{error} Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() "
                "when moving module from meta to a different device."
            ) from None

    return convert


def apply_to(module: Module, fn: Callable[[Tensor], Tensor]) -> None:
    """Replace the module's own parameters, their gradients and its buffers by `fn` of them."""
    for name, parameter in module._parameters.items():
        if parameter is None:
            continue
        if future.get_swap_module_params_on_conversion():
            _swap(f"{module._get_name()}.{name}", parameter, fn)
        else:
            module._parameters[name] = _converted(parameter, fn)
    for name, buffer in module._buffers.items():
        if buffer is not None:
            module._buffers[name] = fn(buffer)


def _converted(parameter: Parameter, fn: Callable[[Tensor], Tensor]) -> Parameter:
    """The parameter after `fn`: the same object with other data, or a new one."""
    grad = cast(Any, parameter.grad)
    with torch.no_grad():
        value = fn(parameter)
    keeps = value.is_meta == parameter.is_meta and not future.get_overwrite_module_params_on_conversion()
    if keeps:
        parameter.data = value
        result = parameter
    elif is_lazy(parameter):
        kind: Any = type(parameter)
        result = kind(parameter.requires_grad, device=value.device, dtype=value.dtype)
    else:
        result = Parameter(value, parameter.requires_grad)
    if grad is not None:
        with torch.no_grad():
            new_grad = fn(grad)
        if keeps:
            grad.data = new_grad
        else:
            result.grad = new_grad.requires_grad_(grad.requires_grad)
    return result


def _swap(name: str, parameter: Parameter, fn: Callable[[Tensor], Tensor]) -> None:
    """The same object with the content of a new parameter."""
    grad = cast(Any, parameter.grad)
    with torch.no_grad():
        value = fn(parameter)
    try:
        parameter.grad = None
        torch.utils.swap_tensors(parameter, Parameter(value, parameter.requires_grad))
    except Exception as error:
        parameter.grad = grad
        raise RuntimeError(f"_apply(): Couldn't swap {name}") from error
    if grad is None:
        return
    with torch.no_grad():
        new_grad = fn(grad)
    new_grad.requires_grad_(grad.requires_grad)
    try:
        torch.utils.swap_tensors(grad, new_grad)
    except Exception as error:
        raise RuntimeError(f"_apply(): Couldn't swap {name}.grad") from error
    parameter.grad = grad
