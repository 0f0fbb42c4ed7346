"""Optimisers whose gradients are given to each step: `as_functional_optim` and what can be registered for it.

Invariant: a step with a gradient changes the parameter as the optimiser of `torch.optim` would with that `grad`, which
is what it was before the call afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import optim
from ..._tensor import Tensor
from ...autograd.grad_mode import no_grad

__all__ = ["as_functional_optim", "functional_optim_map", "register_functional_optim"]


class _Functional:
    """One of `torch.optim`, without a loop over `grad`: each parameter has an optimiser of its own."""

    kind: type[optim.Optimizer]

    def __init__(
        self, params: Sequence[Tensor], *args: Any, _allow_empty_param_list: bool = False, **kwargs: Any
    ) -> None:
        if not params and not _allow_empty_param_list:
            raise ValueError("optimizer got an empty parameter list")
        self._args, self._kwargs = args, kwargs
        self._one: dict[int, tuple[Tensor, optim.Optimizer]] = {}
        self.param_group = {"params": list(params)}
        # Wrong values are refused now, and not by the first step.
        self.defaults = dict(self._make([Tensor()]).defaults)

    def _make(self, params: list[Tensor]) -> optim.Optimizer:
        made: Any = self.kind
        found: optim.Optimizer = made(params, *self._args, **self._kwargs)
        return found

    @property
    def state(self) -> dict[Tensor, Any]:
        """What was kept of each parameter."""
        return {param: one.state[param] for param, one in self._one.values() if param in one.state}

    def step_param(self, param: Tensor, grad: Tensor | None) -> None:
        """A step of one parameter, by this gradient; none, no step."""
        if grad is None:
            return
        if id(param) not in self._one:
            self._one[id(param)] = (param, self._make([param]))
        before = param.grad
        with no_grad():
            param.grad = grad
            try:
                self._one[id(param)][1].step()
            finally:
                param.grad = before

    def step(self, gradients: Sequence[Tensor | None]) -> None:
        """A step of all parameters, by these gradients in their order."""
        params = self.param_group["params"]
        if len(params) != len(gradients):
            raise ValueError(
                "the gradients passed in does not equal to the size of the parameters!"
                f"Params length: {len(params)}. Gradients length: {len(gradients)}"
            )
        for param, gradient in zip(params, gradients):
            self.step_param(param, gradient)


_KINDS: tuple[Any, ...] = (
    *(optim.Adagrad, optim.Adam, optim.AdamW, optim.SGD),
    *(optim.Adadelta, optim.RMSprop, optim.Rprop, optim.Adamax),
)
functional_optim_map: dict[Any, Any] = {
    kind: type(f"_Functional{kind.__name__}", (_Functional,), {"kind": kind, "__module__": __name__}) for kind in _KINDS
}


def register_functional_optim(key: Any, optim: Any) -> None:
    """Let `as_functional_optim(key)` make `optim`; a key that is there stays."""
    functional_optim_map.setdefault(key, optim)


def as_functional_optim(optim_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """The optimiser of this class that is given gradients, with these options and no parameters yet."""
    found = functional_optim_map.get(optim_cls)
    if found is None:
        raise ValueError(f"Optimizer {optim_cls} does not have a functional counterpart!")
    return found([], *args, **kwargs, _allow_empty_param_list=True)
