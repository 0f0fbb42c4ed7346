"""Which module runs, for `CommDebugMode`: names, parents, parameters and how those lie on a mesh.

Invariant: `name` is the innermost module whose forward runs, the module whose backward began last, or "Global".
"""

from __future__ import annotations

from typing import Any

from ...._autograd.engine import current_pass
from ....nn.modules.module import register_module_forward_pre_hook, register_module_full_backward_pre_hook
from .._api import DTensor

__all__ = ["Modules"]


class Modules:
    """The modules that have run inside the block."""

    def __init__(self) -> None:
        self.module_helper_dict: dict[str, dict[str, Any]] = {}
        self.module_parameters_dict: dict[str, dict[str, Any]] = {}
        self.module_parents_dict: dict[str, set[str]] = {}
        self.parent_dict: dict[str, list[str]] = {}
        self.sharding_dict: dict[str, Any] = {}
        self.activation_checkpointing = False
        self.name = "Global"
        self._names: dict[Any, str] = {}
        self._inside: list[str] = []
        self._hooks: list[Any] = []
        self._ends: list[Any] = []

    @property
    def is_bw(self) -> bool:
        """Whether a backward pass is running."""
        return current_pass() != -1

    def _named(self, module: Any) -> str:
        """A root is called by its type, what lies in it by the path from there."""
        found = self._names.get(module)
        if found is None:
            found = type(module).__name__
            for name, each in module.named_modules():
                self._names.setdefault(each, f"{found}.{name}" if name else found)
        return found

    def _before(self, module: Any, given: Any) -> None:
        name = self._named(module)
        # A forward inside backward is that of a checkpoint: it has been seen.
        self.activation_checkpointing = self.is_bw
        self._inside.append(name)
        self.name = name
        # The last of the module's own hooks: what others of them do belongs to the module.
        self._ends.append(module.register_forward_hook(self._after, always_call=True))
        if self.activation_checkpointing:
            return
        told = self.module_helper_dict.setdefault(name, {})
        told["module_type"] = str(type(module)).replace("<", "").replace(">", "")
        told["depth"] = len(set(self._inside) - {"Global"})
        for title, parameter in module.named_parameters(recurse=False):
            self.module_parameters_dict.setdefault(name, {})[title] = parameter.data
            if isinstance(parameter.data, DTensor):
                self.sharding_dict[f"{name}.{title}"] = parameter.data.placements
                told.setdefault("parameters", {})[title] = str(parameter.data.placements)
        self.module_parents_dict.setdefault(name, {*self._inside})
        self.parent_dict.setdefault(self._inside[-2], []).append(name)

    def _after(self, module: Any, given: Any, output: Any) -> None:
        self._ends.pop().remove()
        self._inside.pop()
        if not self.is_bw:
            self.activation_checkpointing = False
            self.name = self._inside[-1]

    def _backward(self, module: Any, grads: Any) -> None:
        self.activation_checkpointing = False
        self.name = self._named(module)

    def __enter__(self) -> Modules:
        for each in (self.module_parameters_dict, self.sharding_dict, self.parent_dict, self._names):
            each.clear()
        self.module_helper_dict.clear()
        self.module_helper_dict["Global"] = {"depth": 0}
        self.module_parents_dict.clear()
        self.module_parents_dict["Global"] = set()
        self._inside, self.name, self.activation_checkpointing = ["Global"], "Global", False
        self._hooks = [
            register_module_forward_pre_hook(self._before),
            register_module_full_backward_pre_hook(self._backward),
        ]
        return self

    def __exit__(self, *exc: object) -> None:
        for hook in (*self._hooks, *self._ends):
            hook.remove()
        self._ends.clear()
        self._names.clear()

    def print_paramater_info(self) -> None:
        """Print the parameters of each module."""
        print(self.module_parameters_dict)

    def print_sharding_info(self) -> None:
        """Print how parameters lie on their mesh."""
        for key, value in self.sharding_dict.items():
            print(key + ": " + str(value))
