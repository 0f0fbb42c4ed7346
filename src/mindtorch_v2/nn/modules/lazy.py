"""Modules that learn the sizes of their parameters from the first input.

Invariant: before the first call such a module holds uninitialised parameters, afterwards it is an ordinary module of
the class that `cls_to_become` names, with no trace of having been lazy.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, cast

import mindtorch_v2 as torch

from ..parameter import UninitializedParameter, is_lazy

if TYPE_CHECKING:
    from .module import Module

    _Base = Module
else:
    _Base = object

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin(_Base):
    """Mixed in before a module's class: calls `initialize_parameters` with the arguments of the first call."""

    cls_to_become: type[Any] | None = None
    _load_hook: Any
    _initialize_hook: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        kept = [item for item in self._buffers.items() if item[0] not in self._non_persistent_buffers_set]
        for name, value in [*self._parameters.items(), *kept]:
            if value is not None:
                destination[prefix + name] = value if keep_vars or is_lazy(value) else value.detach()

    def _lazy_load_hook(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Members without a shape get that of what is loaded into them."""
        for name, member in itertools.chain(self._parameters.items(), self._buffers.items()):
            given = state_dict.get(prefix + name)
            if given is not None and is_lazy(member) and not is_lazy(given):
                with torch.no_grad():
                    cast(Any, member).materialize(given.shape)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materialize all members for a call with these arguments."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        return any(is_lazy(member) for member in (*self._parameters.values(), *self._buffers.values()))

    def _infer_parameters(self, module: Any, args: Any, kwargs: Any = None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        for name in ("_initialize_hook", "_load_hook"):
            getattr(module, name).remove()
            delattr(module, name)
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self) -> Any:
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy forward pass to "
            "correctly initialize the modules"
        )

    def _declare(self, bias: bool, device: Any, dtype: Any) -> None:
        """A weight, and with `bias` a bias, without shapes."""
        for name in ("weight", "bias") if bias else ("weight",):
            self.register_parameter(name, UninitializedParameter(device=device, dtype=dtype))
