"""What the updates of all optimisers share: lists of tensors by device and dtype, step counts, which form is used.

Invariant: nothing here writes a parameter; only `count_up` writes, and only step counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mindtorch_v2 as torch

from .._tensor import Tensor
from ..nn.parameter import Parameter

# As PyTorch lists them in messages; `privateuseone` is what it calls `npu`.
FUSED_DEVICES = ("mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone")
CAPTURABLE_DEVICES = ("cuda", "xpu", "hpu", "privateuseone")
_PLAIN_TYPES = (Tensor, Parameter)

Tensors = list[Tensor]
Lists = tuple[Tensors, ...]


def to_scalar(x: Any) -> Any:
    """A tensor of one element without dimensions; numbers as they are."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() != 0 else x


def value_of(x: Any) -> Any:
    """The number in a tensor; numbers as they are."""
    return x.item() if isinstance(x, Tensor) else x


def scalar_dtype(is_fused: bool | None = None) -> Any:
    """What step counts are kept in."""
    wide = not is_fused and torch.get_default_dtype() is torch.float64
    return torch.float64 if wide else torch.float32


def capturable_devices(supports_xla: bool = True) -> list[str]:
    return [*CAPTURABLE_DEVICES, "xla"] if supports_xla else list(CAPTURABLE_DEVICES)


def default_form(params: Any, differentiable: bool, use_fused: bool = False) -> tuple[bool, bool]:
    """Whether (fused, foreach) serve parameters for which the user asked nothing."""
    if differentiable:
        return False, False
    plain = all(p is None or type(p) in _PLAIN_TYPES for p in params)
    kinds = {p.device.type for p in params if p is not None}
    floats = all(p is None or p.is_floating_point() for p in params)
    fused = use_fused and plain and floats and kinds <= {"cpu", "npu"}
    return fused, not fused and plain and kinds <= {"npu"}


def use_foreach(params: Tensors, foreach: bool | None, differentiable: bool) -> bool:
    return default_form(params, differentiable)[1] if foreach is None else foreach


def check_steps(numbers: list[Any], name: str = "state_steps") -> None:
    if not all(isinstance(t, Tensor) for t in numbers):
        raise RuntimeError(f"API has changed, `{name}` argument must contain a list of singleton tensors")


def check_capturable(
    params: Tensors, *numbers: Tensors, xla: bool = True, what: str = "params and state_steps"
) -> None:
    """Refuse `capturable=True` where a parameter, or a number kept for it, is not on an accelerator."""
    for param, *own in zip(params, *numbers):
        kind = param.device.type
        if kind != "npu" or any(number.device.type != kind for number in own):
            raise AssertionError(f"If capturable=True, {what} must be on supported devices: {capturable_devices(xla)}.")


def no_autograd(differentiable: bool) -> None:
    if differentiable:
        raise AssertionError("_foreach ops don't support autograd")


def no_scaling(grad_scale: Any, found_inf: Any, text: str = "Expected grad_scale and found_inf to be None") -> None:
    if grad_scale is not None or found_inf is not None:
        raise AssertionError(text)


def count_up(steps: Tensors) -> None:
    torch._foreach_add_(steps, 1)


def group_by_device_and_dtype(lists: list[list[Any]], with_indices: bool = False) -> dict[Any, Any]:
    """Lists of the same length taken apart by device and dtype of the first; an empty list stays empty."""
    keys = [(first.device, first.dtype) for first in lists[0]]
    if keys and keys.count(keys[0]) == len(keys):
        # The usual case, at once.
        return {keys[0]: ([list(whole) for whole in lists], list(range(len(keys))) if with_indices else [])}
    groups: dict[Any, tuple[list[list[Any]], list[int]]] = {}
    for position, key in enumerate(keys):
        if key not in groups:
            groups[key] = ([[] for _ in lists], [])
        parts, indices = groups[key]
        for part, whole in zip(parts, lists):
            if whole:
                part.append(whole[position])
        if with_indices:
            indices.append(position)
    return groups


def parts_of(*lists: list[Any]) -> Iterator[list[list[Any]]]:
    """The lists for each device and dtype, new ones that may be written."""
    for parts, _ in group_by_device_and_dtype(list(lists)).values():
        yield parts


def view_as_real(params: Tensors, *others: Tensors) -> None:
    """Complex parameters and what belongs to them replaced by real views, in the lists."""
    for i, param in enumerate(params):
        if param.is_complex():
            for tensors in (params, *others):
                if tensors:
                    tensors[i] = torch.view_as_real(tensors[i])


def reals(param: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
    """A parameter and what belongs to it, as real views if it is complex."""
    if not param.is_complex():
        return (param, *others)
    return tuple(torch.view_as_real(t) for t in (param, *others))


def decayed(grads: Tensors, params: Tensors, weight_decay: Any, maximize: bool) -> Tensors:
    """Gradients of what is minimised, with the penalty on the weights; the gradients themselves are not written."""
    if maximize:
        grads = list(torch._foreach_neg(grads))
    if weight_decay != 0:
        if maximize:
            torch._foreach_add_(grads, params, alpha=weight_decay)
        else:
            grads = list(torch._foreach_add(grads, params, alpha=weight_decay))
    return grads


def add_quotients(params: Tensors, above: Tensors, below: Tensors, sizes: list[Any]) -> None:
    """params += sizes * above / below; `below` is written where sizes are tensors."""
    if any(isinstance(size, Tensor) for size in sizes):
        torch._foreach_div_(below, sizes)
        torch._foreach_addcdiv_(params, above, below)
    else:
        torch._foreach_addcdiv_(params, above, below, sizes)


def beside(param: Tensor, number: Any) -> Any:
    """A tensor on the device of `param`; anything else as it is. Scalars of two devices do not meet."""
    return number.to(param.device, non_blocking=True) if isinstance(number, Tensor) else number


def step_values(steps: Tensors, capturable: bool) -> list[Any]:
    """Step counts to compute with: the tensors themselves if the host must not read them."""
    return list(steps) if capturable else [value_of(step) for step in steps]
