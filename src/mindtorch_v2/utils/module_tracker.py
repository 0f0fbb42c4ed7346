"""`torch.utils.module_tracker`: which modules are being executed right now, forward or backward.

Invariant: `parents` always holds "Global"; a module's name is its type for a root, and the path from there for others.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from typing import Any

from .._autograd.engine import current_pass
from .._tensor_base import TensorBase, requires_grad
from ..autograd.graph import register_multi_grad_hook
from ..nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from ._pytree import tree_leaves

__all__ = ["ModuleTracker"]

_LOG = logging.getLogger(__name__)


class ModuleTracker:
    """Inside the block, `parents` holds the names of the modules whose forward or backward is running."""

    parents: set[str]

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._known_modules: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._seen_modules: weakref.WeakSet[Any] = weakref.WeakSet()
        self._pass = -1
        self._hooks: list[Any] = []

    @property
    def is_bw(self) -> bool:
        """Whether a backward pass is running."""
        return current_pass() != -1

    def _get_mod_name(self, mod: Any) -> str:
        name = self._known_modules.setdefault(mod, type(mod).__name__)
        if mod not in self._seen_modules:
            for child_name, child in mod.named_children():
                self._known_modules[child] = f"{name}.{child_name}"
                self._get_mod_name(child)
            self._seen_modules.add(mod)
        return name

    def _enter(self, name: str, backward: bool) -> None:
        if backward and self._pass != current_pass():
            # The last pass may have ended inside modules whose inputs need no gradient.
            self._pass = current_pass()
            self.parents = {"Global"}
        if name in self.parents:
            _LOG.info("module %s is entered a second time during %s", name, "backward" if backward else "forward")
        self.parents.add(name)

    def _leave(self, name: str, backward: bool) -> None:
        if name in self.parents:
            self.parents.remove(name)
        else:
            _LOG.info("module %s is left without having been entered during %s", name, backward)

    def _watch(self, values: Any, fn: Callable[[Any], None]) -> None:
        tensors = [a for a in tree_leaves(values) if isinstance(a, TensorBase) and requires_grad(a)]
        if tensors:
            self._hooks.append(register_multi_grad_hook(tensors, fn))

    def _before(self, mod: Any, given: Any) -> None:
        if not self.is_bw and self._pass != -1:
            self._pass = -1
            self.parents = {"Global"}
        name = self._get_mod_name(mod)
        self._enter(name, False)
        self._watch(given, lambda grads: self._leave(name, True))

    def _after(self, mod: Any, given: Any, output: Any) -> None:
        name = self._get_mod_name(mod)
        self._leave(name, False)
        self._watch(output, lambda grads: self._enter(name, True))

    def __enter__(self) -> ModuleTracker:
        self._fw_pre_handle = register_module_forward_pre_hook(self._before)
        self._fw_post_handle = register_module_forward_hook(self._after)
        return self

    def __exit__(self, *exc: object) -> None:
        self._fw_pre_handle.remove()
        self._fw_post_handle.remove()
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
