"""Calling a module with other tensors in place of its own parameters and buffers.

Invariant: after the call, however it ends, the module holds what it held before; what the call put in the place of a
given tensor (a buffer that was replaced, say) goes back into the dictionary that was given.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..._tensor import Tensor
from ..modules.module import Module

__all__ = ["functional_call"]

_MISSING = object()


def _submodule(root: Module, path: str, known: dict[str, Module]) -> Module:
    if not path:
        return root
    if path not in known:
        parent_path, _, name = path.rpartition(".")
        parent = _submodule(root, parent_path, known)
        try:
            found = getattr(parent, name)
        except AttributeError as error:
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`") from error
        if not isinstance(found, Module):
            raise TypeError(f"submodule `{path}`: {found} is not an instance of torch.nn.Module")
        known[path] = found
    return known[path]


def _swap(module: Module, name: str, value: Any) -> Any:
    """Put `value` in the place of a tensor and give back what was there; `_MISSING` stands for nothing."""
    if value is not _MISSING and value is not None and not isinstance(value, Tensor):
        raise TypeError(f"{value} is not an instance of torch.Tensor")
    if name == "":
        raise KeyError('tensor name can\'t be empty string ""')
    members: tuple[dict[str, Any], ...] = (module._parameters, module._buffers)
    for held in members:
        if name in held:
            old = held[name]
            if value is _MISSING:
                del held[name]
            else:
                held[name] = value
            return old
    old = getattr(module, name, _MISSING)
    if old is not _MISSING and old is not None and not isinstance(old, Tensor):
        raise TypeError(f"attribute `{name}`: {old} is not an instance of torch.Tensor")
    if value is not _MISSING:
        setattr(module, name, value)
    elif old is not _MISSING:
        delattr(module, name)
    return old


def _swap_all(root: Module, given: dict[str, Any], known: dict[str, Module]) -> dict[str, Any]:
    """Swap many, or none if one of them fails."""
    before: dict[str, Any] = {}
    try:
        for path, value in given.items():
            parent, _, name = path.rpartition(".")
            before[path] = _swap(_submodule(root, parent, known), name, value)
    except Exception:
        for path, value in before.items():
            parent, _, name = path.rpartition(".")
            _swap(_submodule(root, parent, known), name, value)
        raise
    return before


def _named_tensors(module: Module) -> dict[str, Tensor]:
    return {**dict(module.named_parameters(remove_duplicate=False)), **dict(module.named_buffers("", True, False))}


def _spread_over_ties(module: Module, given: dict[str, Any]) -> dict[str, Any]:
    """What was given, under every name that the same tensor has in the module."""
    names: dict[int, set[str]] = {}
    for name, tensor in _named_tensors(module).items():
        names.setdefault(id(tensor), set()).add(name)
    tied = {name: group for group in names.values() if len(group) > 1 for name in group}
    spread = dict(given)
    for name in given:
        group = tied.get(name)
        if group is None:
            continue
        if len(group & given.keys()) > 1 and len({id(given[other]) for other in group}) != 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(group)}, which are tied. Consider using "
                "tie_weights=False"
            )
        for other in group:
            spread[other] = given[name]
    return spread


def _check_complete(module: Module, given: dict[str, Any]) -> None:
    own = _named_tensors(module).keys()
    texts = [
        f"{word} key(s): {', '.join(map(repr, sorted(keys)))}."
        for word, keys in (("Unexpected", given.keys() - own), ("Missing", own - given.keys()))
        if keys
    ]
    if texts:
        raise RuntimeError("Error(s) in reparametrizing for {}:\n\t{}".format(module._get_name(), "\n\t".join(texts)))


@contextmanager
def _reparametrize_module(
    module: Module,
    parameters_and_buffers: dict[str, Any],
    tie_weights: bool = False,
    strict: bool = False,
    stack_weights: bool = False,
) -> Iterator[None]:
    """The module with other tensors, until the block ends; `stack_weights` undoes the swaps last first."""
    given = _spread_over_ties(module, parameters_and_buffers) if tie_weights else parameters_and_buffers
    if strict:
        _check_complete(module, given)
    known: dict[str, Module] = {}
    before: dict[str, Any] = {}
    try:
        before = _swap_all(module, given, known)
        yield
    finally:
        if stack_weights:
            before = dict(reversed(before.items()))
        after = _swap_all(module, before, known)
        parameters_and_buffers.update({name: after[name] for name in parameters_and_buffers if name in after})


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Any],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The old place of `torch.func.functional_call`."""
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future "
        "version of PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)


def _functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Any],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights=tie_weights, strict=strict):
        return module(*args, **({} if kwargs is None else kwargs))
