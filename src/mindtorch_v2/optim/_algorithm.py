"""`Algorithm`: optimisers whose step gathers what each parameter with a gradient has, then updates the lists.

Invariant: a parameter has no state, or all the state of its group's options. Options made of a group serve until one
of its values is another object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import mindtorch_v2 as torch

from .._backends.common.passes import unchanged
from .._backends.cpu.kernels import optimizers as _cpu_passes  # noqa: F401 enters its passes
from .._tensor import Tensor
from ._lists import Tensors, scalar_dtype
from ._options import Options, is_rate
from .optimizer import Optimizer, _use_grad_for_differentiable, evaluated

States = list[dict[str, Any]]


class Algorithm(Optimizer):
    """A subclass says what state a parameter begins with and how a group is updated."""

    _OPTIONS: ClassVar[type[Options]]
    # Options that a state saved by an older version lacks.
    _LATER: ClassVar[dict[str, Any]] = {}
    # State that is one number in a tensor; an older version kept numbers.
    _NUMBERS: ClassVar[tuple[str, ...]] = ("step",)
    _ADVICE: ClassVar[str] = ""

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        """The state of a parameter before its first step."""
        raise NotImplementedError

    def _update(self, o: Any, params: Tensors, grads: Tensors, states: States) -> None:
        """One step, whose options are `o`."""
        raise NotImplementedError

    def _pass(self, lr: Any, numbers: tuple[Any, ...], o: Any, params: Tensors) -> bool:
        """Whether the native module has done the whole step; where it has not, nothing is changed."""
        return False

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._known = []
        for group in self.param_groups:
            for name, value in self._LATER.items():
                group.setdefault(name, value)
            for param in group["params"]:
                own: dict[str, Any] = self.state.get(param, {})
                for name in self._NUMBERS if own else ():
                    if not isinstance(own[name], Tensor):
                        own[name] = self._number(group, param, float(own[name]))

    def _number(self, group: dict[str, Any], param: Tensor, value: float) -> Tensor:
        """A number of a parameter's state: on the host, unless the step must not ask for it there."""
        fused = group.get("fused")
        if fused or group.get("capturable"):
            return torch.full((), value, dtype=scalar_dtype(fused), device=param.device)
        return torch.tensor(value, dtype=scalar_dtype())

    def _gather(self, group: dict[str, Any]) -> tuple[Tensors, Tensors, States]:
        params, grads, states = [], [], []
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            if grad.is_sparse:
                raise RuntimeError(f"{type(self).__name__} does not support sparse gradients{self._ADVICE}")
            state = self.state[param]
            if not state:
                state.update(self._begin(group, param))
            params.append(param)
            grads.append(grad)
            states.append(state)
        return params, grads, states

    # For each group: the group, the names of its options, their values, what they make, and what a pass is given.
    _known: list[tuple[dict[str, Any], tuple[str, ...], tuple[Any, ...], Any, tuple[Any, ...] | None]]

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        super().__init__(params, defaults)
        self._known = []

    def _learn(self, number: int, group: dict[str, Any]) -> Any:
        """What `_known` has of a group; the options that a step finds changed are made anew."""
        for name in self.defaults:
            if name not in group and name != "differentiable":  # which every unpickled optimiser has
                raise KeyError(name)
        options = self._OPTIONS.of(group)
        # Learning rates change often, and are read at every step.
        names = tuple(name for name in group if name not in ("params", "lr"))
        # A list may be changed in place; nothing is it.
        values = tuple(object() if isinstance(group[name], list) else group[name] for name in names)
        entry = (group, names, values, options, options.numbers())
        self._known[number:] = [entry]
        return entry

    @_use_grad_for_differentiable
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update; `closure` computes the loss anew and its value is returned."""
        loss = None if closure is None else evaluated(closure)
        known = self._known
        number = 0
        for group in self.param_groups:
            entry = known[number] if number < len(known) else None
            if entry is None or entry[0] is not group or not unchanged(group, entry[1], entry[2]):
                entry = self._learn(number, group)
            number += 1
            _, _, _, options, numbers = entry
            lr = options.lr = group["lr"]
            if numbers is None or not is_rate(lr) or not self._pass(lr, numbers, options, group["params"]):
                params, grads, states = self._gather(group)
                options.has_complex = any(param.is_complex() for param in params)
                self._update(options, params, grads, states)
        del known[number:]
        return loss


def column(states: States, name: str) -> Tensors:
    return [state[name] for state in states]


def scaled_by(optimizer: Optimizer) -> tuple[Tensor | None, Tensor | None]:
    """What `GradScaler` leaves at an optimiser for the time of a step: the scale, and whether a gradient overflowed."""
    return getattr(optimizer, "grad_scale", None), getattr(optimizer, "found_inf", None)


def is_scaled(optimizer: Any) -> bool:
    return getattr(optimizer, "grad_scale", None) is not None or getattr(optimizer, "found_inf", None) is not None


def zeros_like(param: Tensor) -> Tensor:
    return torch.zeros_like(param, memory_format=torch.preserve_format)


def check_lr(lr: Any, text: str = "Invalid learning rate: ") -> None:
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if not 0.0 <= lr:
        raise ValueError(f"{text}{lr}")


def check_not_negative(**options: Any) -> None:
    """Options by the name that the message gives them."""
    for name, value in options.items():
        if not 0.0 <= value:
            raise ValueError(f"Invalid {name} value: {value}")


def check_betas(betas: Any) -> None:
    for position in (0, 1):
        if not 0.0 <= betas[position] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {position}: {betas[position]}")
