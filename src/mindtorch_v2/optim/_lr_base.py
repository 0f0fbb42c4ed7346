"""The base class of learning-rate schedulers, and how options of groups are read and set.

Invariant: a learning rate that is a tensor is filled in place and never replaced, and no list that a scheduler keeps or
returns shares memory with it.
"""

from __future__ import annotations

import contextlib
import functools
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from .._tensor import Tensor
from .._warn import warn
from ._lists import to_scalar
from .optimizer import Optimizer

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed "
    "form is used instead of the new chainable form, where available. Please open an issue if you are unable to "
    "replicate your use case: https://github.com/pytorch/pytorch/issues/new/choose."
)
_ORDER = "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"

# A learning rate or momentum: a number, or a tensor of one element.
_Rate = Any


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def _param_groups_val_list(optimizer: Optimizer, key: str) -> list[_Rate]:
    """The option `key` of every group, as copies."""
    return [
        v.clone() if type(v := group[key]) is not float and isinstance(v, Tensor) else v
        for group in optimizer.param_groups
    ]


def _update_param_group_val(param_group: dict[str, Any], key: str, val: _Rate) -> None:
    """Set an option; into its memory where it is a tensor."""
    if isinstance(param_group[key], Tensor):
        param_group[key].fill_(to_scalar(val))
    else:
        param_group[key] = val


def _format_param(name: str, optimizer: Optimizer, param: Any) -> list[_Rate]:
    """`param` for every group: a list or tuple has one entry for each, anything else serves all."""
    groups = len(optimizer.param_groups)
    if not isinstance(param, (list, tuple)):
        return [_copied(param) for _ in range(groups)]
    if len(param) != groups:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(param)} values, "
            f"param_groups has {groups}."
        )
    return [_copied(item) for item in param]


def _check_optimizer(optimizer: Any) -> None:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def _watch_steps(optimizer: Any) -> None:
    """Make `optimizer.step` leave a mark, so that a scheduler can tell whether it was called."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    # Weak: the optimiser holds the wrapper.
    owner = weakref.ref(optimizer)
    function = optimizer.step.__func__

    @functools.wraps(function)
    def step(*args: Any, **kwargs: Any) -> Any:
        self: Any = owner()
        self._opt_called = True
        return function(self, *args, **kwargs)

    setattr(step, "_wrapped_by_lr_sched", True)
    optimizer.step = step


def _other_arguments(function: Callable[..., None]) -> Callable[..., None]:
    """For type checkers: a subclass may take other arguments than these."""
    return function


class LRScheduler:
    """Base class of schedulers; a subclass says in `get_lr` what the learning rates are at `last_epoch`.

    `get_lr` goes from the rates of the groups to the next ones, so that schedulers can be chained; a subclass may also
    have `_get_closed_form_lr`, which goes from the initial rates.
    """

    __module__ = "mindtorch_v2.optim.lr_scheduler"
    _get_lr_called_within_step: bool = False
    _is_initial: bool = False
    _step_count: int
    _last_lr: list[_Rate]

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        for position, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{position}] when resuming scheduler with "
                    "last_epoch >= 0.\nThis typically happens when:\n"
                    "1. You're trying to resume training from a checkpoint but haven't properly loaded the optimizer "
                    "state\n2. You're using last_epoch >= 0 for a fresh training run (not recommended)"
                )
        self.base_lrs: list[_Rate] = _param_groups_val_list(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _watch_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        with _initial_mode(self):
            self.step()

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` of such a scheduler returned."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[_Rate]:
        """The learning rates of the groups after the last step."""
        return self._last_lr

    def get_lr(self) -> list[_Rate]:
        """The learning rates at `last_epoch`; called by `step`."""
        raise NotImplementedError

    @_other_arguments
    def step(self, epoch: int | None = None) -> None:
        """Set the next learning rates; to be called after the optimiser's `step`."""
        if self._step_count == 1:
            if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
                warn(
                    "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. "
                    "Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`. See more details at "
                    + _ORDER
                )
            elif not getattr(self.optimizer, "_opt_called", False):
                warn(
                    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you "
                    "should call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure "
                    "to do this will result in PyTorch skipping the first value of the learning rate schedule. See "
                    "more details at " + _ORDER
                )
        self._step_count += 1
        if epoch is not None:
            warn(EPOCH_DEPRECATION_WARNING)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        if epoch is None:
            self.last_epoch += 1
            self._set_lr(self.get_lr)
        else:
            self.last_epoch = epoch
            self._set_lr(getattr(self, "_get_closed_form_lr", None) or self.get_lr)

    def _set_lr(self, compute: Callable[[], list[_Rate]]) -> None:
        # As `_enable_get_lr_call` does, which costs as much as the rest.
        self._get_lr_called_within_step = True
        try:
            rates = compute()
        finally:
            self._get_lr_called_within_step = False
        groups = self.optimizer.param_groups
        if type(rates) is list and len(rates) == len(groups) == 1:
            # The usual case, at once: one group, and no tensors.
            if type(rates[0]) is float and type(groups[0]["lr"]) is float:
                groups[0]["lr"] = rates[0]
                self._last_lr = [rates[0]]
                return
        for group, rate in zip(groups, rates, strict=True):
            _update_param_group_val(group, "lr", rate)
        self._last_lr = _param_groups_val_list(self.optimizer, "lr")


@contextlib.contextmanager
def _enable_get_lr_call(o: LRScheduler) -> Iterator[LRScheduler]:
    """Inside, `get_lr` may be called without a warning."""
    o._get_lr_called_within_step = True
    try:
        yield o
    finally:
        o._get_lr_called_within_step = False


@contextlib.contextmanager
def _initial_mode(o: LRScheduler) -> Iterator[None]:
    """The step that a scheduler makes when it is created."""
    o._is_initial = True
    try:
        yield
    finally:
        o._is_initial = False


def _warn_get_lr_called_within_step(lr_scheduler: LRScheduler) -> None:
    if not lr_scheduler._get_lr_called_within_step:
        warn("To get the last learning rate computed by the scheduler, please use `get_last_lr()`.")


def _object_state(function: Any) -> dict[str, Any] | None:
    """What is saved of a user's function: the attributes of a callable object, nothing of a plain function."""
    return None if isinstance(function, types.FunctionType) else function.__dict__.copy()
