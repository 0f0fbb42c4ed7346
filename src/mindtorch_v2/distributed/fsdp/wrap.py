"""Which parts of a model `FullyShardedDataParallel` wraps."""

from __future__ import annotations

import contextlib
import copy
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ... import nn

__all__ = [
    "CustomPolicy",
    "ModuleWrapPolicy",
    "always_wrap_policy",
    "enable_wrap",
    "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy",
    "wrap",
]


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Every module is wrapped."""
    return True


def lambda_auto_wrap_policy(
    module: Any, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[Any], bool]
) -> bool:
    """A function says which."""
    return True if recurse else bool(lambda_fn(module))


def transformer_auto_wrap_policy(
    module: Any, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: set[type]
) -> bool:
    """Modules of some classes."""
    return True if recurse else isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(
    module: Any,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = int(1e8),
    force_leaf_modules: set[type] | None = None,
    exclude_wrap_modules: set[type] | None = None,
) -> bool:
    """Modules with that many elements that nothing below them has taken."""
    leaves = size_based_auto_wrap_policy.FORCE_LEAF_MODULES if force_leaf_modules is None else force_leaf_modules  # type: ignore[attr-defined]
    never = size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES if exclude_wrap_modules is None else exclude_wrap_modules  # type: ignore[attr-defined]
    big = nonwrapped_numel >= min_num_params
    if recurse:
        return big and not isinstance(module, tuple(leaves))
    return big and not isinstance(module, tuple(never))


size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES = {nn.ModuleList, nn.ModuleDict}  # type: ignore[attr-defined]
size_based_auto_wrap_policy.FORCE_LEAF_MODULES = {nn.MultiheadAttention}  # type: ignore[attr-defined]


class ModuleWrapPolicy:
    """Modules of some classes."""

    def __init__(self, module_classes: Iterable[type]) -> None:
        self._module_classes = set(module_classes)
        self._module_classes_str = str(self._module_classes)

    def _settings(self, module: Any) -> dict[str, Any] | None:
        return {} if isinstance(module, tuple(self._module_classes)) else None

    def __call__(self, module: Any, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return True if recurse else self._settings(module) is not None

    def __repr__(self) -> str:
        return f"<class 'torch.distributed.fsdp.wrap.ModuleWrapPolicy'>({self._module_classes_str})"


class CustomPolicy:
    """A function says which, and with which settings of their own."""

    def __init__(self, lambda_fn: Callable[[Any], bool | dict[str, Any]]) -> None:
        self._lambda_fn = lambda_fn

    def _settings(self, module: Any) -> dict[str, Any] | None:
        found = self._lambda_fn(module)
        if not isinstance(found, (dict, bool)):
            raise ValueError(
                "The lambda_fn passed to CustomPolicy should return False/True or a kwarg dict, but it returned "
                f"{found}"
            )
        return copy.copy(found) if isinstance(found, dict) else ({} if found else None)


class _Wrapping:
    """What `enable_wrap` says, while it is on."""

    cls: Any = None
    settings: dict[str, Any] = {}


@contextlib.contextmanager
def enable_wrap(*, wrapper_cls: Any, **wrapper_kwargs: Any) -> Iterator[None]:
    """Inside, `wrap` wraps."""
    before = _Wrapping.cls, _Wrapping.settings
    _Wrapping.cls, _Wrapping.settings = wrapper_cls, wrapper_kwargs
    try:
        yield
    finally:
        _Wrapping.cls, _Wrapping.settings = before


def wrap(module: Any, **wrap_overrides: Any) -> Any:
    """The module, wrapped if `enable_wrap` is on."""
    return module if _Wrapping.cls is None else _Wrapping.cls(module, **{**_Wrapping.settings, **wrap_overrides})


def run_in_full_precision(root: Any, classes: tuple[type, ...]) -> None:
    """Modules of some classes take and compute float32, and give what they were given."""
    from ... import Tensor, float32
    from ...utils._pytree import tree_map

    before: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    def cast(module: Any, dtype: Any) -> Callable[[Any], Any]:
        def of(value: Any) -> Any:
            if not isinstance(value, Tensor) or not value.is_floating_point() or value.dtype == dtype:
                return value
            before[module] = value.dtype
            return value.to(dtype)

        return of

    def enter(module: Any, args: Any) -> Any:
        return tree_map(cast(module, float32), args)

    def leave(module: Any, args: Any, output: Any) -> Any:
        return tree_map(cast(module, before[module]), output) if module in before else output

    found: list[Any] = [module for module in root.modules() if classes and isinstance(module, classes)]
    for module in found:
        module.register_forward_pre_hook(enter)
        module.register_forward_hook(leave)
    if found:
        warnings.warn(
            "Both mixed precision and an auto_wrap_policy were specified to FSDP, where the wrapped module has "
            f"submodules of type:\n{ {type(each) for each in found} }\nThese modules will be wrapped as separate FSDP "
            "instacnes with mixed precision disabled.",
            stacklevel=3,
        )


def wrap_below(
    root: Any,
    policy: Any,
    cls: Any,
    settings: dict[str, Any],
    ignored: set[Any],
    make: Any = None,
    without: tuple[type, ...] = (),
) -> None:
    """Wrap what a policy says below a module, the innermost first, by the class or by what makes one of it.

    Modules of the classes `without` are wrapped too, without mixed precision.
    """

    def visit(module: Any, top: bool) -> tuple[Any, int]:
        """The module, wrapped or not, and how many of its elements are not wrapped."""
        if module in ignored or isinstance(module, cls):
            return module, 0
        own = sum(param.numel() for param in module.parameters(recurse=False))
        total = own + sum(param.numel() for child in module.children() for param in child.parameters())
        left = own
        if hasattr(policy, "_settings") or policy(module=module, recurse=True, nonwrapped_numel=total):
            for name, child in list(module.named_children()):
                found, rest = visit(child, False)
                left += rest
                if found is not child:
                    setattr(module, name, found)
        else:
            left = total
        if top:
            return module, left
        if hasattr(policy, "_settings"):
            given = policy._settings(module)
        else:
            given = {} if policy(module=module, recurse=False, nonwrapped_numel=left) else None
        if without and isinstance(module, without):
            given = {**(given or {}), "mixed_precision": None}
        return (module, left) if given is None else ((make or cls)(module, **{**settings, **given}), 0)

    visit(root, True)
