"""Masks as parametrizations, and modules by path."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from ....nn import Module
from ....nn.utils.parametrize import is_parametrized, type_before_parametrizations

__all__ = [
    "FakeSparsity",
    "fqn_to_module",
    "get_arg_info_from_tensor_fqn",
    "module_contains_param",
    "module_to_fqn",
    "swap_module",
]


def module_contains_param(module: Module, parametrization: type[Module]) -> bool:
    """Whether some tensor of the module has a parametrization of that class."""
    if not is_parametrized(module):
        return False
    lists: Any = module.parametrizations
    return any(isinstance(one, parametrization) for chain in lists.values() for one in chain)


def swap_module(mod: Module, mapping: dict[type[Module], type[Module]]) -> Module:
    """What `from_dense` of the mapped class makes of a module, with its hooks and on its device."""
    target: Any = mapping.get(type_before_parametrizations(mod))
    if target is None:
        return mod
    made: Module = target.from_dense(mod)
    for before in mod._forward_pre_hooks.values():
        made.register_forward_pre_hook(before)
    for after in mod._forward_hooks.values():
        made.register_forward_hook(after)
    devices = {t.device for t in (*mod.parameters(), *mod.buffers())}
    if len(devices) > 1:
        raise AssertionError(
            f"swap_module only works with cpu or single-device CUDA modules, but got devices {devices}"
        )
    for device in devices:
        made.to(device)
    return made


def module_to_fqn(model: Module, module: Module, prefix: str = "") -> str | None:
    """The path of a module in a model; None where it is not in it."""
    if module is model:
        return ""
    for name, child in model.named_children():
        below = module_to_fqn(child, module, ".")
        if below is not None:
            return prefix + name + below
    return None


def fqn_to_module(model: Any, path: str) -> Any:
    """The module or tensor at a path; None where there is none."""
    for name in path.split(".") if path else ():
        model = getattr(model, name, None)
    return model


def get_arg_info_from_tensor_fqn(model: Module, tensor_fqn: str) -> dict[str, Any]:
    """The module of a tensor and the names of both, from the tensor's path."""
    module_fqn, _, tensor_name = tensor_fqn.rpartition(".")
    return {
        "module_fqn": module_fqn,
        "module": fqn_to_module(model, module_fqn),
        "tensor_name": tensor_name,
        "tensor_fqn": tensor_fqn,
    }


class FakeSparsity(Module):
    """A parametrization that multiplies with a mask. The mask is written, never replaced: others hold it too."""

    mask: torch.Tensor

    def __init__(self, mask: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("mask", mask)

    def forward(self, x: torch.Tensor) -> Any:
        if self.mask.shape != x.shape:
            raise AssertionError(f"mask shape ({self.mask.shape}) must match x shape ({x.shape})")
        return self.mask * x

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Nothing: masks are a sparsifier's state, not a model's."""
        return {}
