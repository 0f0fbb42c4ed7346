"""Saving a module's state to a dictionary and loading it back.

Invariant: the keys are the dotted paths of parameters and persistent buffers; a load that fails under `strict` names
every key and shape that did not fit, not the first only.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import mindtorch_v2 as torch

from ... import __future__ as future
from ..._dispatch.state import swap_grad
from ..._tensor import Tensor
from ..parameter import Parameter, is_lazy

if TYPE_CHECKING:
    from .module import Module

EXTRA_STATE = "_extra_state"
NEVER = (
    "that should never be called. Please file an issue at "
    "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to report this bug."
)


# Types of a member and of what is loaded into it, neither of which has ways of its own.
_USUAL = {(a, b) for a in (Tensor, Parameter) for b in (Tensor, Parameter)}


class _Keys(NamedTuple):
    missing_keys: list[str]
    unexpected_keys: list[str]


class _IncompatibleKeys(_Keys):
    """What `load_state_dict` returns."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"

    __str__ = __repr__


def persistent_state(module: Module) -> dict[str, Tensor]:
    """The module's own parameters and persistent buffers that exist."""
    state: dict[str, Tensor] = {name: value for name, value in module._parameters.items() if value is not None}
    skipped = module._non_persistent_buffers_set
    for name, value in module._buffers.items():
        if value is not None and name not in skipped:
            state[name] = value
    return state


def collect(module: Module, destination: Any, prefix: str, keep_vars: bool, usual: Any) -> Any:
    """Save a module and all below it; `usual` is the method of a class that does not save in its own way."""
    metadata = {"version": module._version}
    known = getattr(destination, "_metadata", None)
    if known is not None:
        known[prefix[:-1]] = metadata
    if module._state_dict_pre_hooks:
        for hook in module._state_dict_pre_hooks.values():
            hook(module, prefix, keep_vars)
    module._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in module._modules.items():
        if child is None:
            continue
        if getattr(type(child), "state_dict", None) is usual:
            collect(child, destination, f"{prefix}{name}.", keep_vars, usual)
        else:
            child.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for hook in module._state_dict_hooks.values() if module._state_dict_hooks else ():
        replaced = hook(module, destination, prefix, metadata)
        if replaced is not None:
            if getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict post-hook must return None")
            destination = replaced
    return destination


def load(module: Module, state_dict: Mapping[str, Any], strict: bool, assign: bool) -> _IncompatibleKeys:
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
    keys = _IncompatibleKeys([], [])
    errors: list[str] = []
    metadata = getattr(state_dict, "_metadata", None)
    # A copy, since a module's own loading code may change the dictionary.
    copied: Any = OrderedDict(state_dict)
    if metadata is not None:
        copied._metadata = metadata
    _load_tree(module, copied, "", metadata or {}, assign, keys, errors)
    if strict:
        for text, names in (("Unexpected", keys.unexpected_keys), ("Missing", keys.missing_keys)):
            if names:
                listed = ", ".join(f'"{name}"' for name in names)
                errors.insert(0, f"{text} key(s) in state_dict: {listed}. ")
    if errors:
        raise RuntimeError(
            "Error(s) in loading state_dict for {}:\n\t{}".format(type(module).__name__, "\n\t".join(errors))
        )
    return keys


def _load_tree(
    module: Module,
    state: dict[str, Any],
    prefix: str,
    metadata: dict[str, Any],
    assign: bool,
    keys: _IncompatibleKeys,
    errors: list[str],
) -> None:
    local = metadata.get(prefix[:-1], {})
    if assign:
        local["assign_to_params_buffers"] = assign
    # Strictness is judged at the root: below it all keys are collected in any case.
    module._load_from_state_dict(state, prefix, local, True, keys.missing_keys, keys.unexpected_keys, errors)
    if module._modules:
        parts = _by_child(state, prefix)
        for name, child in module._modules.items():
            if child is not None:
                below = f"{prefix}{name}."
                part = parts.get(name, {})
                if "." in name:  # which `setattr` allows
                    part = {key: value for key, value in state.items() if key.startswith(below)}
                _load_tree(child, part, below, metadata, assign, keys, errors)
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, keys) is not None:
            raise AssertionError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new values, "
                "if incompatible_keys need to be modified, it should be done inplace."
            )


def _by_child(state: dict[str, Any], prefix: str) -> dict[str, dict[str, Any]]:
    """The entries below `prefix` by the name of the child they belong to."""
    parts: dict[str, dict[str, Any]] = {}
    start = len(prefix)
    for key, value in state.items():
        if key.startswith(prefix):
            end = key.find(".", start)
            if end >= 0:
                name = key[start:end]
                part = parts.get(name)
                if part is None:
                    part = parts[name] = {}
                part[key] = value
    return parts


def load_own(
    module: Module,
    state_dict: dict[str, Any],
    prefix: str,
    metadata: dict[str, Any],
    strict: bool,
    missing: list[str],
    unexpected: list[str],
    errors: list[str],
    extra: bool,
) -> None:
    """Load what belongs to `module` itself, not to its children; `extra`: its class has a state of its own kind."""
    for hook in module._load_state_dict_pre_hooks.values():
        hook(state_dict, prefix, metadata, strict, missing, unexpected, errors)
    assign = bool(metadata.get("assign_to_params_buffers", False))
    own = persistent_state(module)
    found = 0
    for name, current in own.items():
        key = prefix + name
        if key in state_dict:
            found += 1
            _load_tensor(module, name, key, current, state_dict[key], assign, errors)
        elif strict:
            missing.append(key)
    if found == len(state_dict) and not extra:
        return
    _load_extra_state(module, state_dict, prefix + EXTRA_STATE, strict, missing, unexpected, extra)
    if strict:
        for key in state_dict:
            if key.startswith(prefix) and key != prefix + EXTRA_STATE:
                first, dot, _ = key[len(prefix) :].partition(".")
                if first not in (module._modules if dot else own):
                    unexpected.append(key)


def _load_tensor(
    module: Module, name: str, key: str, current: Tensor, given: Any, assign: bool, errors: list[str]
) -> None:
    swap = future.get_swap_module_params_on_conversion()
    kinds = type(current), type(given)
    if kinds in _USUAL and not (assign or swap or current.is_meta) and current._shape == given._shape:
        # The usual case at once: nothing to complain of, and memory to copy into.
        before = swap_grad(False)
        try:
            current.copy_(given)
        except Exception as error:
            errors.append(_failure(key, current, given, swap, error))
        finally:
            swap_grad(before)
        return
    if not isinstance(given, Tensor):
        errors.append(
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint '
            f"but received {type(given)}"
        )
        return
    # A member without a shape takes what comes; its module has given it the shape unless it stays without one.
    lazy = is_lazy(current)
    if not lazy and current.ndim == 0 and tuple(given.shape) == (1,):
        given = given[0]
    if not lazy and given.shape != current.shape:
        errors.append(
            f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, "
            f"the shape in current model is {current.shape}."
        )
        return
    if current.is_meta and not given.is_meta and not assign:
        warnings.warn(
            f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, "
            "which is a no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary to their "
            "corresponding key in the module instead of copying them in place?)",
            stacklevel=2,
        )
    try:
        with torch.no_grad():
            if swap:
                _swap(current, given, assign)
            elif assign:
                setattr(module, name, _like(current, given))
            else:
                current.copy_(given)
    except Exception as error:
        errors.append(_failure(key, current, given, swap, error))


def _failure(key: str, current: Tensor, given: Tensor, swap: bool, error: Exception) -> str:
    return (
        f'While {"swapping" if swap else "copying"} the parameter named "{key}", whose dimensions in the model are '
        f"{current.size()} and whose dimensions in the checkpoint are {given.size()}, an exception occurred : "
        f"{error.args}."
    )


def _like(current: Tensor, given: Any) -> Any:
    """What is taken as it is: a parameter in the place of a parameter, that requires grad like it."""
    if not isinstance(current, Parameter):
        return given
    if isinstance(given, Parameter):
        return given.requires_grad_(current.requires_grad)
    return Parameter(given, requires_grad=current.requires_grad)


def _swap(current: Any, given: Any, assign: bool) -> None:
    new = current.module_load(given, assign=assign)
    if new is given or new is current:
        raise RuntimeError(
            "module_load returned one of self or other, please .detach() the result if returning one of the inputs in "
            "module_load"
        )
    torch.utils.swap_tensors(current, _like(current, new))


def _load_extra_state(
    module: Module,
    state_dict: dict[str, Any],
    key: str,
    strict: bool,
    missing: list[str],
    unexpected: list[str],
    extra: bool,
) -> None:
    if extra:
        if key in state_dict:
            module.set_extra_state(state_dict[key])
        elif strict:
            missing.append(key)
    elif strict and key in state_dict:
        unexpected.append(key)
