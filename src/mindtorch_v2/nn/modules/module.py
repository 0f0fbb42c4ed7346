"""`Module`: a tree of named parameters, buffers and submodules with a `forward`.

Invariant: a name is a parameter, a buffer, a submodule or a plain attribute, never two of them. A module without hooks
goes from `__call__` to `forward` with one test, natively (`csrc/kernels/members.cpp`).
"""

from __future__ import annotations

import functools
import sys
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar, cast

import mindtorch_v2 as torch

from ... import _native
from ..._autograd.hooks import HookDict, RemovableHandle
from ..._backends.common.passes import forget_grads
from ..._tensor import Tensor
from ..parameter import Buffer, Parameter
from . import _convert, _hooks, _state, _walk
from ._hooks import (
    SHARED,
    GlobalNames,
    call_with_hooks,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
    registered,
)

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

Self = TypeVar("Self", bound="Module")
_HOOKS = tuple(
    """_forward_hooks _forward_pre_hooks _forward_hook_flags _backward_hooks _backward_pre_hooks _state_dict_hooks
    _state_dict_pre_hooks _load_state_dict_pre_hooks _load_state_dict_post_hooks""".split()
)
_WANTED = ("_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks_with_kwargs")
_PLAIN = frozenset((bool, int, float, str, tuple, list, dict, type(None)))
_IncompatibleKeys = _state._IncompatibleKeys
_EXTRA_STATE_KEY_SUFFIX = _state.EXTRA_STATE


def _forward_unimplemented(self: Any, *input: Any) -> Any:
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


class Module:
    """Base class of all layers and models; as in PyTorch, `super().__init__()` comes before any assignment."""

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _forward_hooks: HookDict
    _forward_pre_hooks: HookDict
    _forward_hook_flags: HookDict
    _backward_hooks: HookDict
    _backward_pre_hooks: HookDict
    _is_full_backward_hook: bool | None
    _state_dict_hooks: HookDict
    _state_dict_pre_hooks: HookDict
    _load_state_dict_pre_hooks: HookDict
    _load_state_dict_post_hooks: HookDict

    dump_patches: bool = False
    _version: int = 1
    call_super_init: bool = False
    # Whether a hook was ever registered: on the module, or, set on the class, for all.
    _hooked: bool = False
    forward: Callable[..., Any] = _forward_unimplemented

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            if kwargs:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'"
                )
            if args:
                raise TypeError(
                    f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given"
                )
        # Straight into __dict__: __setattr__ would look at every value for parameters.
        self.__dict__.update(
            training=True,
            _parameters={},
            _buffers={},
            _modules={},
            _non_persistent_buffers_set=set(),
            _forward_hooks=HookDict(),
            _forward_pre_hooks=HookDict(),
            _forward_hook_flags=HookDict(),
            _backward_hooks=HookDict(),
            _backward_pre_hooks=HookDict(),
            _is_full_backward_hook=None,
            _state_dict_hooks=HookDict(),
            _state_dict_pre_hooks=HookDict(),
            _load_state_dict_pre_hooks=HookDict(),
            _load_state_dict_post_hooks=HookDict(),
        )
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _native.quicken(cls)

    # -- calling --------------------------------------------------------------------------------------------------
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._hooked:
            return call_with_hooks(self, args, kwargs)
        # Merging an empty dictionary into a call is not free.
        return self.forward(*args, **kwargs) if kwargs else self.forward(*args)

    _call_impl = _wrapped_call_impl = __call__
    _compiled_call_impl: Callable[..., Any] | None = None

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """`torch.compile` for this module in place: it goes on to run as it is, after the same checks and warning."""
        from ..._compile import compile

        self._compiled_call_impl = compile(self._call_impl, *args, **kwargs)

    # -- hooks ----------------------------------------------------------------------------------------------------
    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """`hook(module, args[, kwargs])` before forward may return new arguments."""
        handle = RemovableHandle(self._forward_pre_hooks, extra_dict=self._forward_hook_flags)
        if with_kwargs:
            self._forward_hook_flags[handle.id] = (True, False)
        self._hooked = True
        _insert(self._forward_pre_hooks, handle.id, hook, prepend)
        return handle

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """`hook(module, args[, kwargs], output)` after forward may return another output."""
        handle = RemovableHandle(self._forward_hooks, extra_dict=self._forward_hook_flags)
        if with_kwargs or always_call:
            self._forward_hook_flags[handle.id] = (with_kwargs, always_call)
        self._hooked = True
        _insert(self._forward_hooks, handle.id, hook, prepend)
        return handle

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """`hook(module, grad_output)` before gradients pass the module may return other gradients of its outputs."""
        handle = RemovableHandle(self._backward_pre_hooks)
        self._hooked = True
        _insert(self._backward_pre_hooks, handle.id, hook, prepend)
        return handle

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """`hook(module, grad_input, grad_output)` after gradients passed the module may return other gradients of its
        inputs."""
        return self._add_backward_hook(hook, True, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """The older kind: the hook sees the gradients of the last node only."""
        return self._add_backward_hook(hook, False, False)

    def _add_backward_hook(self, hook: Callable[..., Any], full: bool, first: bool) -> RemovableHandle:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only "
                "one of them."
            )
        self._is_full_backward_hook = full
        self._hooked = True
        handle = RemovableHandle(self._backward_hooks)
        _insert(self._backward_hooks, handle.id, hook, first)
        return handle

    def _get_backward_hooks(self) -> tuple[list[Any], list[Any]]:
        """The full backward hooks, shared ones first, and those of the older kind."""
        return _hooks.backward_hooks(self, True), _hooks.backward_hooks(self, False)

    def _get_backward_pre_hooks(self) -> list[Any]:
        return [*SHARED.backward_pre.values(), *self._backward_pre_hooks.values()]

    def _maybe_warn_non_full_backward_hook(self, inputs: Any, result: Any, grad_fn: Any) -> None:
        _hooks.warn_of_older_kind(inputs, result, grad_fn)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """`hook(module, prefix, keep_vars)` before the state is collected."""
        return _add(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """`hook(module, state_dict, prefix, local_metadata)` may change the dictionary, not replace it."""
        # The mark tells these hooks from the older kind, whose result replaces the dictionary.
        setattr(hook, "_from_public_api", True)
        return _add(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via "
                "register_state_dict_post_hook"
            )
        return _add(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """`hook(module, state_dict, prefix, local_metadata, strict, missing, unexpected, errors)` before loading."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        return _add(self._load_state_dict_pre_hooks, _WrappedHook(hook, self if with_module else None))

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """`hook(module, incompatible_keys)` after loading may edit the lists of keys."""
        return _add(self._load_state_dict_post_hooks, hook)

    # -- registration ---------------------------------------------------------------------------------------------
    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Add state that is no parameter; `persistent=False` keeps it out of the state dictionary."""
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor) and not hasattr(tensor, "__torch_function__"):
            raise TypeError(
                f"cannot assign '{torch.typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = registered(SHARED.buffer, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, self._parameters)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{torch.typename(param)}' object to parameter '{name}' "
                    "(torch.nn.Parameter or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created "
                    f"explicitly. To express '{name}' as a function of another Tensor, compute the value in the "
                    "forward() method."
                )
            param = registered(SHARED.parameter, self, name, param)
        self._parameters[name] = param

    def add_module(self, name: str, module: Module | None) -> None:
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{torch.typename(module)} is not a Module subclass")
        if not isinstance(name, str):
            raise TypeError(f"module name should be a string. Got {torch.typename(name)}")
        if hasattr(self, name) and name not in self._modules:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'module name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError('module name can\'t be empty string ""')
        self._modules[name] = registered(SHARED.module, self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        self.add_module(name, module)

    def _check_name(self, kind: str, name: Any, known: Mapping[str, Any]) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {torch.typename(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if name not in known and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    # -- attributes -----------------------------------------------------------------------------------------------
    def __getattr__(self, name: str) -> Any:
        state = self.__dict__
        members = state.get("_parameters")
        if members is not None:
            if name in members:
                return members[name]
            members = state["_modules"]
            if name in members:
                return members[name]
            members = state["_buffers"]
            if name in members:
                return members[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        state = self.__dict__
        if type(value) in _PLAIN and name in state:
            # What is a plain attribute already, and stays one.
            object.__setattr__(self, name, value)
            return
        parameters = state.get("_parameters")
        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, self._buffers, self._modules)
            self.register_parameter(name, value)
        elif parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{torch.typename(value)}' as parameter '{name}' "
                    "(torch.nn.Parameter or None expected)"
                )
            parameters[name] = None
        elif isinstance(value, Module):
            if "_modules" not in state:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, self._parameters, self._buffers)
            self._modules[name] = registered(SHARED.module, self, name, value)
        elif parameters is not None and name in self._modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{torch.typename(value)}' as child module '{name}' "
                    "(torch.nn.Module or None expected)"
                )
            self._modules[name] = registered(SHARED.module, self, name, None)
        elif isinstance(value, Buffer) or (parameters is not None and name in self._buffers):
            self._set_buffer(name, value)
        else:
            object.__setattr__(self, name, value)

    def _set_buffer(self, name: str, value: Any) -> None:
        if value is not None and not isinstance(value, Tensor) and not hasattr(value, "__torch_function__"):
            raise TypeError(
                f"cannot assign '{torch.typename(value)}' as buffer '{name}' "
                "(torch.nn.Buffer, torch.Tensor or None expected)"
            )
        if isinstance(value, Buffer):
            persistent = bool(cast(Any, value).persistent)
        else:
            persistent = name not in self._non_persistent_buffers_set
        self.register_buffer(name, value, persistent)

    def _forget(self, name: str, *members: dict[str, Any]) -> None:
        """A name that becomes something else is no longer what it was."""
        for known in (self.__dict__, *members):
            known.pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __delattr__(self, name: str) -> None:
        for members in (self._parameters, self._buffers, self._modules):
            if name in members:
                del members[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers]
        return sorted(name for name in names if not name[0].isdigit())

    # What hooks want, in PyTorch's own dictionaries.
    @property
    def _forward_hooks_with_kwargs(self) -> HookDict:
        return HookDict((k, True) for k, f in self._forward_hook_flags.items() if f[0] and k in self._forward_hooks)

    @property
    def _forward_hooks_always_called(self) -> HookDict:
        return HookDict((k, True) for k, f in self._forward_hook_flags.items() if f[1])

    @property
    def _forward_pre_hooks_with_kwargs(self) -> HookDict:
        return HookDict((k, True) for k in self._forward_hook_flags if k in self._forward_pre_hooks)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state.pop("_compiled_call_impl", None)
        flags = state.pop("_forward_hook_flags", None)
        if flags is None:
            return state
        # What hooks want stands in PyTorch's own dictionaries, so that it reads them; see _adopt_hooks.
        state.pop("_hooked", None)
        if not flags:
            return {**state, **{name: HookDict() for name in _WANTED}}
        before = state.get("_forward_pre_hooks", ())
        state["_forward_hooks_with_kwargs"] = HookDict((k, True) for k, f in flags.items() if f[0] and k not in before)
        state["_forward_hooks_always_called"] = HookDict((k, True) for k, f in flags.items() if f[1])
        state["_forward_pre_hooks_with_kwargs"] = HookDict((k, True) for k, f in flags.items() if k in before)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        known = self.__dict__
        known.update(state)
        # Saved by a version that had no such hooks.
        known.update({name: HookDict() for name in _HOOKS if name not in known})
        known.setdefault("_non_persistent_buffers_set", set())
        known.setdefault("_is_full_backward_hook", None)
        if "_forward_hooks_with_kwargs" in state:
            self._adopt_hooks()

    def _adopt_hooks(self) -> None:
        """A module from a pickle: its hooks are there, what they want is said in PyTorch's dictionaries."""
        known = self.__dict__
        wants = [known.pop(f"_forward_{n}", {}) for n in ("hooks_with_kwargs", "hooks_always_called")]
        before = known.pop("_forward_pre_hooks_with_kwargs", {})
        for key in {*wants[0], *wants[1], *before}:
            self._forward_hook_flags[key] = (key in wants[0] or key in before, key in wants[1])
        if self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks:
            self._hooked = True

    # -- paths ----------------------------------------------------------------------------------------------------
    def get_submodule(self, target: str) -> Module:
        module = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if hasattr(parent, name):
            if not isinstance(getattr(parent, name), Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        elif strict:
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        value = self._get_member(target)
        if not isinstance(value, Parameter):
            raise AttributeError(f"`{target.rpartition('.')[2]}` is not an nn.Parameter")
        return value

    def get_buffer(self, target: str) -> Tensor:
        value: Tensor = self._get_member(target)
        path, _, name = target.rpartition(".")
        if name not in self.get_submodule(path)._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return value

    def _get_member(self, target: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        return getattr(module, name)

    # -- walking the tree -----------------------------------------------------------------------------------------
    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        return _walk.modules(self, set() if memo is None else memo, prefix, remove_duplicate, Module.named_modules)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        seen: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        if type(self).named_children is not Module.named_children:
            for _, module in self.named_children():
                yield module
            return
        seen: set[Module] = set()
        for module in self._modules.values():
            if module is not None and module not in seen:
                seen.add(module)
                yield module

    def _named_members(
        self,
        get_members_fn: Callable[[Module], Any],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen: set[Any] = set()
        modules: Any = [(prefix, self)]
        if recurse:
            modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        for path, module in modules:
            for name, member in get_members_fn(module):
                if member is None or member in seen:
                    continue
                if remove_duplicate:
                    seen.add(member)
                yield f"{path}.{name}" if path else name, member

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        if self._walks_as_usual():
            return _walk.named_members(self, "_parameters", prefix, recurse, remove_duplicate, Module.named_modules)
        return self._named_members(_parameters_of, prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        if type(self).named_parameters is Module.named_parameters and self._walks_as_usual():
            return _walk.members(self, "_parameters", recurse, Module.named_modules)
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def _walks_as_usual(self) -> bool:
        kind = type(self)
        return kind.named_modules is Module.named_modules and kind._named_members is Module._named_members

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        if self._walks_as_usual():
            return _walk.named_members(self, "_buffers", prefix, recurse, remove_duplicate, Module.named_modules)
        return self._named_members(_buffers_of, prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        if type(self).named_buffers is Module.named_buffers and self._walks_as_usual():
            return _walk.members(self, "_buffers", recurse, Module.named_modules)
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    # -- changing the whole tree ----------------------------------------------------------------------------------
    def apply(self: Self, fn: Callable[[Module], Any]) -> Self:
        """Call `fn` on every submodule, children first, then on the module itself."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self: Self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace every parameter, gradient and buffer by `fn` of it."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        _convert.apply_to(self, fn)
        return self

    def to(self: Self, *args: Any, **kwargs: Any) -> Self:
        """`to(device, dtype)`, `to(dtype)`, `to(tensor)`, `to(memory_format=)`; only floating members change dtype."""
        return self._apply(_convert.converter(args, kwargs))

    def to_empty(self: Self, *, device: Any, recurse: bool = True) -> Self:
        """Move to `device` with memory whose contents are undefined."""
        return self._apply(lambda tensor: torch.empty_like(tensor, device=device), recurse=recurse)

    def cpu(self: Self) -> Self:
        return self._apply(lambda tensor: tensor.cpu())

    def cuda(self: Self, device: Any = None) -> Self:
        return self._to_device("cuda", device)

    def xpu(self: Self, device: Any = None) -> Self:
        return self._to_device("xpu", device)

    def mtia(self: Self, device: Any = None) -> Self:
        return self._to_device("mtia", device)

    def ipu(self: Self, device: Any = None) -> Self:
        return self._to_device("ipu", device)

    def _to_device(self: Self, kind: str, device: Any) -> Self:
        """Devices that this package has no backend for: a tensor refuses in its own words."""
        return self._apply(lambda tensor: getattr(tensor, kind)(device))

    def share_memory(self: Self) -> Self:
        """Move all members to memory that other processes can see."""
        return self._apply(lambda tensor: cast(Any, tensor).share_memory_())

    def npu(self: Self, device: Any = None) -> Self:
        """All parameters and buffers on an NPU: the current one, or the one that `device` names."""
        return self._apply(lambda tensor: tensor.npu(device))

    def type(self: Self, dst_type: Any) -> Self:
        return self._apply(lambda tensor: tensor.type(dst_type))

    def float(self: Self) -> Self:
        return self._cast(torch.float32)

    def double(self: Self) -> Self:
        return self._cast(torch.float64)

    def half(self: Self) -> Self:
        return self._cast(torch.float16)

    def bfloat16(self: Self) -> Self:
        return self._cast(torch.bfloat16)

    def _cast(self: Self, dtype: Any) -> Self:
        return self._apply(lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor)

    def train(self: Self, mode: bool = True) -> Self:
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: Self) -> Self:
        return self.train(False)

    def requires_grad_(self: Self, requires_grad: bool = True) -> Self:
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        if set_to_none:
            forget_grads(self.parameters())
            return
        for parameter in self.parameters():
            clear_grad(parameter)

    # -- state ----------------------------------------------------------------------------------------------------
    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Parameters and persistent buffers by path, detached unless `keep_vars`."""
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead. Refer to "
                "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for details.",
                FutureWarning,
                stacklevel=2,
            )
            given = [*args, *(destination, prefix, keep_vars)[len(args) :]]
            destination, prefix, keep_vars = given
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        state: dict[str, Any] = _state.collect(self, destination, prefix, keep_vars, Module.state_dict)
        return state

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """Save what belongs to this module itself; a subclass may override it."""
        members: Any = self._parameters
        if self._buffers:
            members = _state.persistent_state(self)
        for name, value in members.items():
            if value is not None:
                destination[prefix + name] = value if keep_vars else value.detach()
        if type(self).get_extra_state is not Module.get_extra_state:
            destination[prefix + _state.EXTRA_STATE] = self.get_extra_state()

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copy the values in, or with `assign` take the tensors themselves."""
        return _state.load(self, state_dict, strict, assign)

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load what belongs to this module itself; a subclass may override it."""
        extra = type(self).set_extra_state is not Module.set_extra_state
        _state.load_own(
            self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs, extra
        )

    def get_extra_state(self) -> Any:
        """A subclass that overrides this and `set_extra_state` saves its result with the state."""
        raise RuntimeError(f"Reached a code path in Module.get_extra_state() {_state.NEVER}")

    def set_extra_state(self, state: Any) -> None:
        raise RuntimeError(f"Reached a code path in Module.set_extra_state() {_state.NEVER}")

    def _replicate_for_data_parallel(self: Self) -> Self:
        """A copy whose parameters are set by who asks, with the same hooks and attributes."""
        replica = self.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica._parameters = {}
        replica._buffers = replica._buffers.copy()
        replica._modules = replica._modules.copy()
        cast(Any, replica)._is_replica = True
        return replica

    # -- text -----------------------------------------------------------------------------------------------------
    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """The module's options as they are printed between its brackets."""
        return ""

    def __repr__(self) -> str:
        own = self.extra_repr()
        lines = own.split("\n") if own else []
        if len(lines) == 1 and not self._modules:
            return f"{self._get_name()}({own})"
        lines += [f"({name}): {indent(repr(module))}" for name, module in self._modules.items()]
        if not lines:
            return f"{self._get_name()}()"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


_native.define_members(vars(Module)["__getattr__"], vars(Module)["__call__"])
_walk.quicken(Module)


class _WrappedHook:
    """A hook that gets its module first, if it wants it, without keeping the module alive. Pickles name this class."""

    def __init__(self, hook: Callable[..., Any], module: Module | None = None) -> None:
        self.hook = hook
        functools.update_wrapper(self, hook)
        self.with_module = module is not None
        if module is not None:
            self.module = weakref.ref(module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = {"hook": self.hook, "with_module": self.with_module}
        return {**state, "module": self.module()} if self.with_module else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.hook = state["hook"]
        self.with_module = state["with_module"]
        if self.with_module:
            if state["module"] is None:
                raise RuntimeError("You are trying to revive the hook of a dead Module!")
            self.module = weakref.ref(state["module"])


def _insert(hooks: HookDict, key: int, hook: Callable[..., Any], first: bool) -> None:
    hooks[key] = hook
    if first:
        hooks.move_to_end(key, last=False)


def _add(hooks: HookDict, hook: Callable[..., Any]) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def _parameters_of(module: Module) -> Any:
    return module._parameters.items()


def _buffers_of(module: Module) -> Any:
    return module._buffers.items()


def clear_grad(parameter: Tensor) -> None:
    """Zero a gradient in place and cut it from any graph."""
    grad = cast(Any, parameter.grad)
    if grad is None:
        return
    if grad.grad_fn is not None:
        grad.detach_()
    else:
        grad.requires_grad_(False)
    grad.zero_()


def indent(text: str) -> str:
    """All lines but the first moved in by two."""
    return text.replace("\n", "\n  ")


sys.modules[__name__].__class__ = GlobalNames
