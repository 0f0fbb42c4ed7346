"""Steps of optimisers over lists of tensors in one piece: what a step asks of every parameter, and who makes it.

Invariant: a pass stands for a loop of operators, so it counts steps, and moves versions by as many writes as the loop
makes. One that answers False has changed nothing, and the optimiser's loop does the step.
"""

from __future__ import annotations

from typing import Any, Final

from ..._core_operators import HOOKS
from ..._dispatch.keys import AUTOCASTS, AUTOGRAD, BACKENDS, CPU, PYTHON, VIEW
from ..._dispatch.state import FUNCTION_MODE, is_grad_enabled, modes
from ..._mypyc import i64
from ..._tensor_base import TensorBase, bump

# Modes that a pass need not look at: nothing is recorded, and operators that write in place are not cast.
_UNSEEN: Final[i64] = (AUTOGRAD << 32) | AUTOCASTS
# The part of a parameter's state that is kept on the host, whatever device the parameter is on.
_COUNT: Final = "step"


class Passes:
    """The steps that a device makes in one piece, on lists of plain tensors that are not empty."""

    def adam(
        self,
        lists: list[list[Any]],
        lr: Any,
        beta1: Any,
        beta2: Any,
        weight_decay: Any,
        eps: Any,
        decoupled: bool,
        maximize: bool,
    ) -> bool:
        """Adam: parameters, gradients, averages, squares, for AMSGrad their largest, and step counts."""
        return False

    def sgd(
        self,
        lists: list[list[Any]],
        lr: Any,
        weight_decay: Any,
        momentum: Any,
        dampening: Any,
        nesterov: bool,
        maximize: bool,
    ) -> bool:
        """Gradient descent: parameters, gradients, and with momentum the buffers of earlier steps."""
        return False

    def adagrad(
        self, lists: list[list[Any]], lr: Any, lr_decay: Any, weight_decay: Any, eps: Any, maximize: bool
    ) -> bool:
        """Adagrad: parameters, gradients, sums of squares, and step counts."""
        return False


# By backend bit; a device's module enters its own.
PASSES: Final[dict[int, Passes]] = {}
_NONE: Final = Passes()


def passes_for(lists: list[list[Any]]) -> Passes:
    """Who steps on the device of these tensors."""
    first: TensorBase = lists[0][0]
    return PASSES.get(int(first._keys & BACKENDS), _NONE)


def adam_pass(
    lists: list[list[Any]],
    lr: Any,
    beta1: Any,
    beta2: Any,
    weight_decay: Any,
    eps: Any,
    decoupled: bool,
    maximize: bool,
) -> bool:
    if not lists[0]:
        return True
    return passes_for(lists).adam(lists, lr, beta1, beta2, weight_decay, eps, decoupled, maximize)


def sgd_pass(
    lists: list[list[Any]], lr: Any, weight_decay: Any, momentum: Any, dampening: Any, nesterov: bool, maximize: bool
) -> bool:
    if not lists[0]:
        return True
    return passes_for(lists).sgd(lists, lr, weight_decay, momentum, dampening, nesterov, maximize)


def adagrad_pass(lists: list[list[Any]], lr: Any, lr_decay: Any, weight_decay: Any, eps: Any, maximize: bool) -> bool:
    if not lists[0]:
        return True
    return passes_for(lists).adagrad(lists, lr, lr_decay, weight_decay, eps, maximize)


# -- what a step asks of parameters -----------------------------------------------------------------------------------
def unchanged(group: dict[str, Any], names: tuple[str, ...], values: tuple[Any, ...]) -> bool:
    """Whether a group's options are still these very objects."""
    for i in range(len(names)):
        if group.get(names[i]) is not values[i]:
            return False
    return True


def forget_grads(params: Any) -> None:
    """`p.grad = None` for every parameter that has one."""
    seen = modes() & FUNCTION_MODE
    for p in params:
        if isinstance(p, TensorBase) and not seen and not p._keys & PYTHON and p._grad_fn is None:
            p._grad_field = None
        elif p.grad is not None:
            p.grad = None


def _quiet() -> bool:
    """Whether a pass is all that would happen: nothing is recorded, and no mode looks at operators."""
    return not modes() & ~_UNSEEN and not is_grad_enabled()


def _is_plain(t: Any, parameter: Any, home: i64) -> bool:
    """A tensor of no subclass but `parameter`, in the memory of a device, that has versions."""
    if not isinstance(t, TensorBase):
        return False
    kind = type(t)
    return (kind is parameter or kind is HOOKS.tensor) and (t._keys & ~(AUTOGRAD | VIEW)) == home


def plain_lists(lists: list[Any], parameter: Any) -> bool:
    """Whether a pass may be tried on what users gave as lists on the host, each as long as the first."""
    if not _quiet():
        return False
    for tensors in lists:
        if not isinstance(tensors, list) or len(tensors) != len(lists[0]):
            return False
        for t in tensors:
            if not _is_plain(t, parameter, CPU):
                return False
    return True


def gathered(params: Any, states: Any, names: tuple[str, ...], parameter: Any) -> list[list[Any]] | None:
    """Parameters that have gradients, the gradients, and their state by name, in lists of plain tensors; None where
    one is not plain, is on another device than the first, or has not all of its state yet."""
    if not _quiet() or not isinstance(states, dict):
        return None
    lists: list[list[Any]] = [[], []]
    for _ in names:
        lists.append([])
    home: i64 = 0
    for p in params:
        if not isinstance(p, TensorBase):
            return None
        grad = p._grad_field
        if grad is None:
            if p._grad_fn is not None:
                return None  # asking for the gradient of what is no leaf warns
            continue
        if home == 0:
            home = p._keys & BACKENDS
        if not _is_plain(p, parameter, home) or not _is_plain(grad, parameter, home):
            return None
        lists[0].append(p)
        lists[1].append(grad)
        if names:
            state = states.get(p)
            if not isinstance(state, dict):
                return None
            for k in range(len(names)):
                name = names[k]
                t = state.get(name)
                if not _is_plain(t, parameter, CPU if name == _COUNT else home):
                    return None
                lists[2 + k].append(t)
    return lists


def wrote(tensors: list[Any], times: i64) -> None:
    """Move versions by as many writes."""
    for each in tensors:
        t: TensorBase = each
        bump(t)
        vc = t._vc
        if times > 1 and vc is not None:
            vc.value += times - 1
