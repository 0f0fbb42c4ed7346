"""Calling a module that has hooks, and the hooks that all modules share.

Invariant: shared hooks run before a module's own. Nothing here runs for a module without hooks while there are no
shared ones: `Module._hooked` says so, for one module or (set on the class) for all.
"""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable
from typing import Any

from ..._autograd.hooks import HookDict, RemovableHandle, add_hook
from ..._tensor_base import TensorBase

_NEVER = (False, False)


class SharedHooks:
    """The hooks of all modules. `full` says of which kind the backward hooks are, None before the first."""

    def __init__(self) -> None:
        self.forward_pre = HookDict()
        self.forward = HookDict()
        self.forward_flags = HookDict()
        self.backward_pre = HookDict()
        self.backward = HookDict()
        self.full: bool | None = None
        self.buffer = HookDict()
        self.module = HookDict()
        self.parameter = HookDict()


SHARED = SharedHooks()
# What PyTorch calls them in `nn.modules.module`.
_GLOBAL_NAMES = {
    "_global_forward_pre_hooks": "forward_pre",
    "_global_forward_hooks": "forward",
    "_global_backward_pre_hooks": "backward_pre",
    "_global_backward_hooks": "backward",
    "_global_is_full_backward_hook": "full",
    "_global_buffer_registration_hooks": "buffer",
    "_global_module_registration_hooks": "module",
    "_global_parameter_registration_hooks": "parameter",
}
_GLOBAL_FLAGS = {"_global_forward_hooks_with_kwargs": 0, "_global_forward_hooks_always_called": 1}


class GlobalNames(types.ModuleType):
    """A module in which PyTorch's names of the shared hooks can be read, and given other dictionaries."""

    def __getattr__(self, name: str) -> Any:
        if name in _GLOBAL_NAMES:
            return getattr(SHARED, _GLOBAL_NAMES[name])
        if name in _GLOBAL_FLAGS:
            return HookDict((key, True) for key, f in SHARED.forward_flags.items() if f[_GLOBAL_FLAGS[name]])
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _GLOBAL_NAMES:
            setattr(SHARED, _GLOBAL_NAMES[name], value)
            if value:
                self.Module._hooked = True
        elif name in _GLOBAL_FLAGS:
            place, old = _GLOBAL_FLAGS[name], SHARED.forward_flags
            for key in {*old, *value}:
                flags = list(old.get(key, _NEVER))
                flags[place] = key in value
                old[key] = (flags[0], flags[1])
        else:
            super().__setattr__(name, value)


def call_with_hooks(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`forward` with everything that was hung around it."""
    if not (
        module._forward_hook_flags
        or module._backward_hooks
        or module._backward_pre_hooks
        or SHARED.forward
        or SHARED.forward_pre
        or SHARED.backward
        or SHARED.backward_pre
    ):
        return _call_with_plain_hooks(module, args, kwargs)
    called: set[int] = set()
    result = None
    try:
        args, kwargs = _run_pre_hooks(module, args, kwargs)
        around = _backward_hook(module)
        if around is not None:
            args = around.setup_input_hook(args)
        result = module.forward(*args, **kwargs)
        for key, hook, flags in _forward_hooks(module):
            if flags[1]:
                called.add(key)
            changed = hook(module, args, kwargs, result) if flags[0] else hook(module, args, result)
            if changed is not None:
                result = changed
        if around is not None:
            if not isinstance(result, (TensorBase, tuple)):
                warnings.warn(
                    "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but "
                    f"received {type(result)}",
                    stacklevel=3,
                )
            result = around.setup_output_hook(result)
        _hang_on_node(module, args, result)
        return result
    except Exception:
        _run_always(module, args, kwargs, result, called)
        raise


def _call_with_plain_hooks(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The usual case: forward hooks of this module, none of which sees keyword arguments or runs after an error."""
    before, after = module._forward_pre_hooks, module._forward_hooks
    for hook in tuple(before.values()) if before else ():
        changed = hook(module, args)
        if changed is not None:
            args = changed if isinstance(changed, tuple) else (changed,)
    result = module.forward(*args, **kwargs)
    # Those that `forward` has registered as well.
    for hook in tuple(after.values()) if after else ():
        changed = hook(module, args, result)
        if changed is not None:
            result = changed
    return result


def _run_pre_hooks(
    module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    flags = module._forward_hook_flags
    for key, hook in (*SHARED.forward_pre.items(), *module._forward_pre_hooks.items()):
        if key in flags:
            changed = hook(module, args, kwargs)
            if changed is not None:
                if not isinstance(changed, tuple) or len(changed) != 2:
                    raise RuntimeError(
                        f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {changed}."
                    )
                args, kwargs = changed
        else:
            changed = hook(module, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
    return args, kwargs


def _forward_hooks(module: Any) -> list[tuple[int, Callable[..., Any], tuple[bool, bool]]]:
    """Forward hooks in order, each with whether it takes keyword arguments and whether it always runs."""
    own, shared = module._forward_hook_flags, SHARED.forward_flags
    return [(key, hook, shared.get(key, _NEVER)) for key, hook in SHARED.forward.items()] + [
        (key, hook, own.get(key, _NEVER)) for key, hook in module._forward_hooks.items()
    ]


def _run_always(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, called: set[int]) -> None:
    """After an error: the hooks that want to run all the same."""
    for key, hook, flags in _forward_hooks(module):
        if flags[1] and key not in called:
            shared = key in SHARED.forward
            try:
                # PyTorch gives keyword arguments to a module's own hooks only.
                with_kwargs = flags[0] and not shared
                changed = hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
                if changed is not None:
                    result = changed
            except Exception as error:
                warnings.warn(
                    f"{'global ' if shared else ''}module forward hook with ``always_call=True`` raised an exception "
                    f"that was silenced as another error was raised in forward: {error!s}",
                    stacklevel=4,
                )


# -- backward ---------------------------------------------------------------------------------------------------------
def _backward_hook(module: Any) -> Any:
    """What passes the call's tensors through nodes, if some hook needs that."""
    pre = [*SHARED.backward_pre.values(), *module._backward_pre_hooks.values()]
    full = backward_hooks(module, True)
    if not pre and not full:
        return None
    from ...utils.hooks import BackwardHook

    return BackwardHook(module, full, pre)


def backward_hooks(module: Any, full: bool) -> list[Any]:
    """The backward hooks of one kind, shared ones first."""
    shared = [*SHARED.backward.values()] if SHARED.full is full else []
    return shared + ([*module._backward_hooks.values()] if module._is_full_backward_hook is full else [])


def _hang_on_node(module: Any, args: Any, result: Any) -> None:
    """Hooks of the older kind see the node that made the first result, whatever it stands for."""
    hooks = backward_hooks(module, False)
    if not hooks:
        return
    first = result
    while not isinstance(first, TensorBase):
        first = next(v for v in first.values() if isinstance(v, TensorBase)) if isinstance(first, dict) else first[0]
    node = first.grad_fn
    if node is not None:
        for hook in hooks:
            node.register_hook(_of_module(hook, module))
        warn_of_older_kind(args, result, node)


def _of_module(hook: Callable[..., Any], module: Any) -> Callable[..., Any]:
    def on_node(grad_inputs: Any, grad_outputs: Any) -> Any:
        return hook(module, grad_inputs, grad_outputs)

    return on_node


_DEPRECATED = "is deprecated and will be removed in future versions. This hook will be missing "
_BETTER = " Please use register_full_backward_hook to get the documented behavior."


def warn_of_older_kind(args: Any, result: Any, node: Any) -> None:
    """Say where a hook of the older kind does not get the gradients of the module."""
    results = (result,) if isinstance(result, TensorBase) else result
    text = ""
    if not _tuple_of_tensors(results):
        text = (
            "Using non-full backward hooks on a Module that does not return a single Tensor or a tuple of Tensors "
            f"{_DEPRECATED}some of the grad_output.{_BETTER}"
        )
    elif not _tuple_of_tensors(args):
        text = (
            "Using non-full backward hooks on a Module that does not take as input a single Tensor or a tuple of "
            f"Tensors {_DEPRECATED}some of the grad_input.{_BETTER}"
        )
    else:
        made_by = {r.grad_fn for r in results if r.grad_fn is not None}
        if len(made_by) > 1:
            text = (
                "Using a non-full backward hook when outputs are generated by different autograd Nodes "
                f"{_DEPRECATED}some grad_output.{_BETTER}"
            )
        elif node not in made_by:
            text = (
                "Using a non-full backward hook when outputs are nested in python data structure "
                f"{_DEPRECATED}some grad_output."
            )
        elif {a.grad_fn for a in args if a.grad_fn is not None} != {n[0] for n in node.next_functions}:
            text = (
                "Using a non-full backward hook when the forward contains multiple autograd Nodes "
                f"{_DEPRECATED}some grad_input.{_BETTER}"
            )
    if text:
        warnings.warn(text, FutureWarning, stacklevel=5)


def _tuple_of_tensors(values: Any) -> bool:
    return isinstance(values, tuple) and all(isinstance(v, TensorBase) for v in values)


# -- hooks of all modules ---------------------------------------------------------------------------------------------
def _share(hooks: HookDict, hook: Callable[..., Any], flags: HookDict | None = None) -> RemovableHandle:
    from .module import Module

    Module._hooked = True
    return add_hook(hooks, hook, flags)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """`hook(module, args)` before the forward of every module."""
    return _share(SHARED.forward_pre, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """`hook(module, args[, kwargs], output)` after the forward of every module."""
    handle = _share(SHARED.forward, hook, SHARED.forward_flags)
    SHARED.forward_flags[handle.id] = (with_kwargs, always_call)
    return handle


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """`hook(module, grad_output)` before the backward of every module."""
    return _share(SHARED.backward_pre, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """`hook(module, grad_input, grad_output)` after the backward of every module."""
    return _share_backward(hook, True)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """The older kind: the hook sees the last node of every module only."""
    return _share_backward(hook, False)


def _share_backward(hook: Callable[..., Any], full: bool) -> RemovableHandle:
    if SHARED.full is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only "
            "one of them."
        )
    SHARED.full = full
    return _share(SHARED.backward, hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """`hook(module, name, buffer)` when a buffer is registered may return another one."""
    return add_hook(SHARED.buffer, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """`hook(module, name, submodule)` when a submodule is registered may return another one."""
    return add_hook(SHARED.module, hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """`hook(module, name, parameter)` when a parameter is registered may return another one."""
    return add_hook(SHARED.parameter, hook)


def registered(hooks: HookDict, module: Any, name: str, value: Any) -> Any:
    """What the hooks make of a member that is being registered."""
    for hook in hooks.values():
        changed = hook(module, name, value)
        if changed is not None:
            value = changed
    return value
