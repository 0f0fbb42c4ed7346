"""`Optimizer`: parameter groups, per-parameter state, saving and loading, and hooks around `step`.

Invariant: a parameter belongs to exactly one group, every group has every option, and `state` is keyed by the
parameter itself; only a saved state refers to parameters by number.
"""

from __future__ import annotations

import functools
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

import mindtorch_v2 as torch

from .._autograd.hooks import HookDict, RemovableHandle
from .._backends.common.passes import forget_grads
from .._dispatch.keys import PROFILE
from .._dispatch.state import STATE, checked_bool, modes, swap_grad
from .._tensor import Tensor
from ..nn.modules.module import clear_grad
from ._lists import (
    FUSED_DEVICES,
    capturable_devices,
    default_form,
    group_by_device_and_dtype,
    scalar_dtype,
    to_scalar,
    value_of,
    view_as_real,
)

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]

ParamsT = Any  # tensors, (name, tensor) pairs, or groups of either


class _RequiredParameter:
    """Marks an option that every group has to give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()

_global_pre_hooks = HookDict()
_global_post_hooks = HookDict()

_HOOKS = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """`hook(optimizer, args, kwargs)` before every step of every optimiser."""
    return _add(_global_pre_hooks, hook, False)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """`hook(optimizer, args, kwargs)` after every step of every optimiser."""
    return _add(_global_post_hooks, hook, False)


def _add(hooks: HookDict, hook: Callable[..., Any], first: bool) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if first:
        hooks.move_to_end(handle.id, last=False)
    return handle


def _use_grad_for_differentiable(step: Callable[..., Any]) -> Callable[..., Any]:
    """`step` without recording, unless the optimiser was made to be differentiated through."""

    @functools.wraps(step)
    def run(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        before = swap_grad(checked_bool(self.defaults.get("differentiable", False)))
        try:
            return step(self, *args, **kwargs)
        finally:
            swap_grad(before)

    return run


def _device_dtype_check_for_fused(param: Tensor) -> None:
    if param.device.type not in ("cpu", "npu") or not param.is_floating_point():
        raise RuntimeError(
            "`fused=True` requires all the params to be floating point Tensors of supported devices: "
            f"{list(FUSED_DEVICES)} but {param.dtype} and {param.device.type}"
        )


def evaluated(closure: Callable[[], Any] | None) -> Any:
    """The loss that `closure` computes anew, recorded; None without one."""
    if closure is None:
        return None
    with torch.enable_grad():
        return closure()


def _begin(name: str) -> Any:
    """A stretch of this thread's profile, to be ended by `__exit__`; None where nobody profiles."""
    return torch.autograd.profiler.record_function(name).__enter__() if modes() & PROFILE else None


class Optimizer:
    """Base class of all optimisers; a subclass gives its options in `defaults` and a `step`."""

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        for name in _HOOKS:
            setattr(self, name, HookDict())
        self._patch_step_function()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + torch.typename(params)
            )
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    _optimizer_step_pre_hooks: HookDict
    _optimizer_step_post_hooks: HookDict
    _optimizer_state_dict_pre_hooks: HookDict
    _optimizer_state_dict_post_hooks: HookDict
    _optimizer_load_state_dict_pre_hooks: HookDict
    _optimizer_load_state_dict_post_hooks: HookDict

    # Whether the next step warns that it is not captured in a graph; nothing here captures graphs.
    _warned_capturable_if_run_uncaptured = True

    @staticmethod
    def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
        """`func` between the hooks of all optimisers and of this one; with none registered it costs one test."""

        @functools.wraps(func)
        def hooked(*args: Any, **kwargs: Any) -> Any:
            self: Optimizer = args[0]
            record = _begin(f"Optimizer.step#{type(self).__name__}.step") if STATE.active else None
            try:
                before, after = self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks
                if not (before or after or _global_pre_hooks or _global_post_hooks):
                    return func(*args, **kwargs)
                for hook in chain(_global_pre_hooks.values(), before.values()):
                    changed = hook(self, args, kwargs)
                    if changed is not None:
                        if not isinstance(changed, tuple) or len(changed) != 2:
                            raise RuntimeError(
                                f"{func} must return None or a tuple of (new_args, new_kwargs), but got {changed}."
                            )
                        args, kwargs = changed
                result = func(*args, **kwargs)
                self._optimizer_step_code()
                for hook in chain(after.values(), _global_post_hooks.values()):
                    hook(self, args, kwargs)
                return result
            finally:
                if record is not None:
                    record.__exit__(None, None, None)

        return hooked

    def _optimizer_step_code(self) -> None:
        """Called after each step that has hooks; a place for tools to replace."""

    def _patch_step_function(self) -> None:
        """Puts the hooks around the class's `step`, once; a class that inherits a patched one has them already."""
        self._zero_grad_profile_name = f"Optimizer.zero_grad#{type(self).__name__}.zero_grad"
        cls: Any = type(self)
        if not getattr(cls.step, "hooked", None):
            cls.step = self.profile_hook_step(cls.step)
            cls.step.hooked = True

    @staticmethod
    def _group_tensors_by_device_and_dtype(tensorlistlist: list[list[Any]], with_indices: bool = False) -> Any:
        return group_by_device_and_dtype(tensorlistlist, with_indices)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in _HOOKS:
            if name not in self.__dict__:
                setattr(self, name, HookDict())
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for position, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {position}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join(lines) + "\n)"

    # -- groups ---------------------------------------------------------------------------------------------------
    def add_param_group(self, param_group: dict[str, Any]) -> None:
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        _unpack_names(param_group)
        params: list[Any] = param_group["params"]
        for param in params:
            if not isinstance(param, Tensor):
                raise TypeError(
                    "optimizer can only optimize Tensors, but one of the params is " + torch.typename(param)
                )
            if not self.defaults.get("differentiable") and not (param.is_leaf or param.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        own = set(params)
        if len(params) != len(own):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=3,
            )
        named = "param_names" in param_group
        for group in self.param_groups:
            if named != ("param_names" in group):
                raise ValueError(
                    "all optimizer param groups should be with/without names. cannot add param group "
                    f"{'with names' if named else 'without names'} to the optimizer"
                )
            if not own.isdisjoint(group["params"]):
                raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    # -- stepping -------------------------------------------------------------------------------------------------
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        raise NotImplementedError

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients, or with `set_to_none=False` fill them with zeros."""
        record = _begin(self._zero_grad_profile_name) if STATE.active else None
        try:
            if set_to_none:
                for group in self.param_groups:
                    forget_grads(group["params"])
                return
            together = bool(self.defaults.get("foreach") or self.defaults.get("fused"))
            grads: dict[Any, list[Tensor]] = defaultdict(list)
            for group in self.param_groups:
                for param in group["params"]:
                    if together and param.grad is not None:
                        grad = param.grad
                        grads[grad.device, grad.dtype].append(
                            grad.detach_() if grad.grad_fn is not None else grad.requires_grad_(False)
                        )
                    else:
                        clear_grad(param)
            for each in grads.values():
                torch._foreach_zero_(each)
        finally:
            if record is not None:
                record.__exit__(None, None, None)

    # -- hooks ----------------------------------------------------------------------------------------------------
    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """`hook(optimizer, args, kwargs)` may return new (args, kwargs)."""
        return _add(self._optimizer_step_pre_hooks, hook, False)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        return _add(self._optimizer_step_post_hooks, hook, False)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        return _add(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        return _add(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        return _add(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        return _add(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # -- state ----------------------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """State and options with parameters replaced by their numbers, counted through all groups."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        everything = chain.from_iterable(group["params"] for group in self.param_groups)
        for number, param in enumerate(everything):
            numbers.setdefault(id(param), number)
        groups = [
            {
                **{key: value for key, value in group.items() if key != "params"},
                "params": [numbers[id(param)] for param in group["params"]],
            }
            for group in self.param_groups
        ]
        state = {numbers[id(key)] if isinstance(key, Tensor) else key: value for key, value in self.state.items()}
        result: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            replaced = hook(self, result)
            if replaced is not None:
                result = replaced
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over state and options; tensors are cast to the dtype and device of their parameter."""
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            replaced = hook(self, state_dict)
            if replaced is not None:
                state_dict = replaced
        saved = deepcopy(state_dict["param_groups"])
        if len(self.param_groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(group["params"]) != len(old["params"]) for group, old in zip(self.param_groups, saved)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        by_number: dict[Any, Any] = {}
        on_device: set[Any] = set()  # parameters whose step counts are kept beside them
        for group, old in zip(self.param_groups, saved):
            by_number.update(zip(old["params"], group["params"]))
            if old.get("fused") or old.get("capturable"):
                on_device.update(old["params"])
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in by_number:
                state[by_number[key]] = _cast(by_number[key], value, None, key in on_device)
            else:
                state[key] = value
        for group, old in zip(self.param_groups, saved):
            old["params"] = group["params"]
            if "param_names" in group:
                old.setdefault("param_names", group["param_names"])
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)


def _unpack_names(group: dict[str, Any]) -> None:
    """`params` as a list of tensors; (name, tensor) pairs are taken apart into `params` and `param_names`."""
    params = group["params"]
    if isinstance(params, Tensor):
        params = [params]
    elif isinstance(params, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
            "will change between runs. Please use a list instead."
        )
    else:
        params = list(params)
    names = [param[0] for param in params if isinstance(param, tuple)]
    group["params"] = [param[1] if isinstance(param, tuple) else param for param in params]
    if names:
        if len(names) != len(params):
            raise ValueError("all optimizer params should be with/without names. Some param names are missing")
        group["param_names"] = names


def _cast(param: Tensor, value: Any, name: Any, on_device: bool) -> Any:
    """A saved value for `param`: tensors get its dtype and device, except step counts."""
    if isinstance(value, Tensor):
        if name == "step":
            return value.to(dtype=torch.float32, device=param.device) if on_device else value
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)
    if isinstance(value, dict):
        return {key: _cast(param, item, key, on_device) for key, item in value.items()}
    if isinstance(value, Iterable):
        kind: Any = type(value)
        return kind(_cast(param, item, None, on_device) for item in value)
    return value


# Names that optimisers outside the package import from here.
_default_to_fused_or_foreach = default_form
_get_capturable_supported_devices = capturable_devices
_get_scalar_dtype = scalar_dtype
_get_value = value_of
_to_scalar = to_scalar
_view_as_real = view_as_real
