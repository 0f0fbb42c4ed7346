"""`torch.distributed.algorithms._checkpoint.checkpoint_wrapper`: modules whose activations are computed again in
backward, or wait for it on the CPU.

Invariant: the names of parameters in state dicts and in `named_parameters` are those of the module inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, auto
from functools import partial
from typing import Any

from ....autograd.graph import save_on_cpu
from ....nn import Module, Parameter
from ....utils.checkpoint import checkpoint

__all__ = [
    "ActivationWrapper",
    "CheckpointImpl",
    "CheckpointWrapper",
    "OffloadWrapper",
    "apply_activation_checkpointing",
    "checkpoint_wrapper",
    "offload_wrapper",
]

_CHECKPOINT_WRAPPED_MODULE = "_checkpoint_wrapped_module"
_CHECKPOINT_PREFIX = _CHECKPOINT_WRAPPED_MODULE + "."


class CheckpointImpl(Enum):
    """Which of the two ways of `torch.utils.checkpoint`."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class ActivationWrapper(Module):
    """A module around another, which is seen through it."""

    def __init__(self, mod: Module) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._register_state_dict_hook(self._post_state_dict_hook)
        self.register_load_state_dict_pre_hook(self._pre_load_state_dict_hook)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise ValueError("Subclasses should implement forward().")

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key: int) -> Any:
        inside: Any = self._checkpoint_wrapped_module
        return inside[key]

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Parameter]]:
        for name, param in super().named_parameters(*args, **kwargs):
            yield name.replace(_CHECKPOINT_PREFIX, ""), param

    @staticmethod
    def _post_state_dict_hook(module: Module, state_dict: dict[str, Any], prefix: str, *args: Any) -> dict[str, Any]:
        _renamed(state_dict, f"{prefix}{_CHECKPOINT_PREFIX}", prefix)
        return state_dict

    @staticmethod
    def _pre_load_state_dict_hook(module: Module, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        _renamed(state_dict, prefix, f"{prefix}{_CHECKPOINT_PREFIX}")


def _renamed(state_dict: dict[str, Any], old: str, new: str) -> None:
    """Another beginning for the keys that have one."""
    for key in list(state_dict):
        if key.startswith(old):
            state_dict[new + key.removeprefix(old)] = state_dict.pop(key)


class OffloadWrapper(ActivationWrapper):
    """What the module keeps for backward waits on the CPU."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        with save_on_cpu(pin_memory=True):
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """The module keeps its inputs only, and runs again in backward."""

    def __init__(
        self,
        mod: Module,
        checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable[..., Any] | None = None,
        **checkpoint_fn_kwargs: Any,
    ) -> None:
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        reentrant = checkpoint_impl is CheckpointImpl.REENTRANT
        self.checkpoint_fn: Callable[..., Any] = (
            partial(checkpoint, use_reentrant=reentrant, **checkpoint_fn_kwargs)
            if checkpoint_fn is None
            else partial(checkpoint_fn, **checkpoint_fn_kwargs)
        )

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        inside = self._checkpoint_wrapped_module
        if self.checkpoint_impl is not CheckpointImpl.REENTRANT or not kwargs:
            return self.checkpoint_fn(inside, *args, **kwargs)
        # That way knows positional arguments only.
        names = list(kwargs)

        def run(*values: Any) -> Any:
            return inside(*values[: len(args)], **dict(zip(names, values[len(args) :])))

        return self.checkpoint_fn(run, *args, *kwargs.values())


def offload_wrapper(module: Module) -> Module:
    """The module, keeping for backward on the CPU."""
    return OffloadWrapper(module)


def checkpoint_wrapper(
    module: Module,
    checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable[..., Any] | None = None,
    **checkpoint_fn_kwargs: Any,
) -> Module:
    """The module, running again in backward."""
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def _always(module: Any) -> bool:
    return True


def apply_activation_checkpointing(
    model: Module,
    checkpoint_wrapper_fn: Callable[[Any], Any] = checkpoint_wrapper,
    check_fn: Callable[[Any], bool] = _always,
    auto_wrap_policy: Callable[..., bool] | None = None,
) -> None:
    """Wrap the modules below a model that a check, or FSDP's kind of policy, says; the innermost first."""
    from ...fsdp.wrap import lambda_auto_wrap_policy, wrap_below

    policy = auto_wrap_policy or partial(lambda_auto_wrap_policy, lambda_fn=check_fn)
    wrap_below(model, policy, ActivationWrapper, {}, set(), checkpoint_wrapper_fn)
