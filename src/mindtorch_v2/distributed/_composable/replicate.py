"""`replicate`: DDP by hooks around a module's forward; the module stays what it is."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any, NoReturn

from ... import _device, nn
from ...nn.parallel import DistributedDataParallel
from .._composable_state import _State
from ..fsdp import FSDPModule
from ..tensor.parallel.ddp import _localize_dtensor, _reconstruct_dtensor
from .contract import contract


class _ReplicateState(_State):
    """The parameters of a module, below a DDP of their own."""

    def __init__(self) -> None:
        self.module: Any = None
        self._param_list = nn.ParameterList()
        self._param_names: list[str] = []
        self._no_sync = False
        self._settings: tuple[set[Any], dict[str, Any]] | None = None
        self._comm_hook_args: list[Any] = []
        self._ddp: Any = None
        self._ddp_weakref: Any = None

    def init(self) -> None:
        """Make the DDP, when the first forward begins."""
        assert self._settings is not None
        ignored, kwargs = self._settings
        left = {param for each in ignored for param in each.parameters()}
        split: list[Any] = [each for each in self.module.modules() if isinstance(each, FSDPModule)]
        left.update(param for each in split for param in each.parameters())
        _localize_dtensor(self.module, ignored_params=left)
        self._collect(self.module, ignored, left, "")
        if "device_id" in kwargs:
            where = kwargs.pop("device_id")
            on_cpu = isinstance(where, _device.device) and where.type == "cpu"
            kwargs["device_ids"] = None if where is None or on_cpu else [where]
        self._ddp = DistributedDataParallel(self._param_list, **kwargs)
        self._ddp_weakref = weakref.ref(self._ddp)
        for args, named in self._comm_hook_args:
            self._ddp.register_comm_hook(*args, **named)

    def _collect(self, module: Any, ignored: set[Any], left: set[Any], prefix: str) -> None:
        if isinstance(module, FSDPModule) or module in ignored:
            return
        for name, param in module.named_parameters(recurse=False):
            if param not in left:
                self._param_list.append(param)
                self._param_names.append(prefix + name)
        for name, child in module.named_children():
            self._collect(child, ignored, left, f"{prefix}{name}.")

    def before(self, module: Any, args: Any, kwargs: Any) -> Any:
        if self._ddp is None:
            self.init()
        self._ddp.require_backward_grad_sync = not self._no_sync
        return self._ddp._pre_forward(*args, **kwargs)

    def after(self, module: Any, args: Any, output: Any) -> Any:
        return self._ddp._post_forward(output)


def _no_copies(self: Any, memo: Any = None) -> NoReturn:
    raise AssertionError("DDP does not support deepcopy. Please use state dict for serialization.")


class DDP:
    """What `replicate` adds to a module's class."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """An instance of the class that the module had before."""
        orig: Any = cls.__mro__[2]
        return orig.__new__(orig)

    def set_requires_gradient_sync(self, requires_gradient_sync: bool) -> None:
        """Whether gradients are reduced; if not, they add up."""
        replicate.state(self)._no_sync = not requires_gradient_sync

    def register_comm_hook(self, *args: Any, **kwargs: Any) -> None:
        """Let a hook reduce buckets; before the first forward."""
        replicate.state(self)._comm_hook_args.append((args, kwargs))


@contract(state_cls=_ReplicateState)
def replicate(module: Any, ignored_modules: Iterable[Any] | None = None, **kwargs: Any) -> Any:
    """Have a module's gradients be the mean over the processes of a group."""
    if "device_id" in kwargs and not isinstance(kwargs["device_id"], (int, _device.device)):
        raise RuntimeError(f"Expected device_id to be int or torch.device, but got {type(kwargs['device_id'])}")
    if isinstance(module, FSDPModule):
        raise RuntimeError("Cannot apply `replicate()` on a Module already managed by `fully_shard`")
    state = replicate.state(module)
    state.module, state._settings = module, (set(ignored_modules or ()), kwargs)
    module.register_forward_pre_hook(state.before, with_kwargs=True)
    mesh = kwargs.get("device_mesh")
    if mesh is not None and mesh._get_root_mesh() != mesh:
        module.register_forward_pre_hook(_reconstruct_dtensor)
        module.register_forward_hook(_localize_dtensor)
    module.register_forward_hook(state.after)
    kind = type(module)
    module.__class__ = type(f"DDP{kind.__name__}", (DDP, kind), {"__deepcopy__": _no_copies})
    return module
