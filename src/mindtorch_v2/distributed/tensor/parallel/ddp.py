"""Layers that are split by tensor parallelism below DDP: outside of forward their parameters are plain tensors."""

from __future__ import annotations

from typing import Any

from .... import nn
from .._api import DTensor

__all__: list[str] = []


def _replaced(module: Any, made: list[tuple[str, Any]]) -> None:
    for name, param in made:
        owner, _, last = name.rpartition(".")
        home = module.get_submodule(owner)
        delattr(home, last)
        setattr(home, last, param)


def _reconstruct_dtensor(module: Any, _input: Any) -> None:
    """Parameters that were parts of a tensor on a mesh are such tensors again, made of the plain ones."""
    made = []
    for name, param in module.named_parameters():
        spec = getattr(param, "_st_info", None)
        if spec is not None:
            whole = DTensor.from_local(
                param, spec.mesh, spec.placements, run_check=False, shape=spec.shape, stride=spec.stride
            )
            made.append((name, whole))
    for name, whole in made:
        owner, _, last = name.rpartition(".")
        home = module.get_submodule(owner)
        home.__dict__.setdefault("_ddp_plain", {})[last] = home._parameters.pop(last)
        object.__setattr__(home, last, whole)


def _localize_dtensor(module: Any, *_: Any, ignored_params: set[Any] | None = None) -> None:
    """The other way; parameters are the same plain tensors every time."""
    for home in module.modules():
        for last, param in home.__dict__.pop("_ddp_plain", {}).items():
            home.__dict__.pop(last, None)
            home._parameters[last] = param
    made = []
    for name, param in module.named_parameters():
        if isinstance(param, DTensor) and param not in (ignored_params or ()):
            plain: Any = nn.Parameter(param._local_tensor, param.requires_grad)
            plain._st_info = param._spec
            made.append((name, plain))
    _replaced(module, made)


def _pre_dp_module_transform(module: Any) -> None:
    """Prepare a module with split layers for DDP."""
    _localize_dtensor(module)
    module.register_forward_pre_hook(_reconstruct_dtensor)
    module.register_forward_hook(_localize_dtensor)
