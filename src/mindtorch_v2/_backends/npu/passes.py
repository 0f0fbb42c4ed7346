"""Steps of optimisers in one launch over lists, or one for each parameter where the library has no list function.

Invariant: nothing is read from the device. The vendor wants the count of steps there, but what it makes of it is known
here: it is given a count so high that its corrections vanish, and the true ones are in the rate and in epsilon.
"""

from __future__ import annotations

from typing import Any, Final, final

from ... import _native
from ..._dispatch.keys import NPU
from ..._dtype import float32
from ..._mypyc import i64
from ..._strides import contiguous_strides
from ..._tensor_base import TensorBase, is_contiguous, numel, own_memory
from ..common.passes import PASSES, Passes, wrote
from ..common.runtime import empty, runtime_of
from . import creation, launch, quirks
from .kernels import MOST_DIMS
from .launch import Function

ADAMW: Final = "aclnnFusedAdamw"
ADAMW_ONE: Final = "aclnnApplyAdamWV2"
_LATE: Final = 1e9
_item: Final[Any] = _native.item


def count_of(steps: list[Any]) -> float:
    """What all counts of steps are; negative where they differ."""
    found = -1.0
    for each in steps:
        step: TensorBase = each
        if numel(step) != 1 or not step._dtype.is_floating_point:
            return -1.0
        n: float = _item(step._storage, int(step._offset), step._dtype.code)
        if found < 0:
            found = n
        elif n != found:
            return -1.0
    return found


def fit(lists: list[list[Any]]) -> bool:
    """Whether the vendor takes these lists: row-major tensors of float32, with elements, none in another's memory.
    Narrower ones are rounded after each operator of a loop, but once in a pass."""
    params = lists[0]
    first: TensorBase = params[0]
    dev = first._device
    seen: set[int] = set()
    i: i64 = 0
    while i < len(params):
        p: TensorBase = params[i]
        if numel(p) == 0 or len(p._shape) > MOST_DIMS:
            return False
        for tensors in lists:
            t: TensorBase = tensors[i]
            if t._dtype is not float32 or (t._device is not dev and t._device != dev) or not is_contiguous(t):
                return False
            if t is not p and t._shape != p._shape:
                return False
            seen.add(id(t._storage))
        i += 1
    return len(seen) == len(lists) * len(params)


@final
class NpuPasses(Passes):
    """Which functions this chip and library have is asked once."""

    def __init__(self) -> None:
        self.asked: bool = False
        self.together: Function | None = None
        self.one: Function | None = None

    def ask(self) -> None:
        if not quirks.lacks(ADAMW) and launch.available(ADAMW):
            self.together = launch.resolve(ADAMW)
        elif not quirks.lacks(ADAMW_ONE) and launch.available(ADAMW_ONE):
            self.one = launch.resolve(ADAMW_ONE)
        self.asked = True

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
        if not self.asked:
            self.ask()
        if (self.together is None and self.one is None) or (weight_decay != 0 and not decoupled):
            return False
        steps = lists[len(lists) - 1]
        tensors = lists[: len(lists) - 1]
        done = count_of(steps)
        if done < 0 or not fit(tensors):
            return False
        numbers = corrected(lr, beta1, beta2, weight_decay, eps, done + 1)
        self.launch(tensors, numbers, maximize)
        for each in steps:
            own_memory(each)
            runtime_of(each).fill(each, done + 1)
        wrote(tensors[0], 2 if weight_decay != 0 else 1)
        wrote(tensors[2], 1)
        wrote(tensors[3], 2)
        if len(tensors) > 4:
            wrote(tensors[4], 1)
        wrote(steps, 1)
        return True

    def launch(self, tensors: list[list[Any]], numbers: list[Any], maximize: bool) -> None:
        params = tensors[0]
        first: TensorBase = params[0]
        late = empty((1,), contiguous_strides((1,)), float32, first._device)
        creation.fill(late, _LATE)
        largest = tensors[4] if len(tensors) > 4 else None
        amsgrad = largest is not None
        together = self.together
        if together is not None:
            counts: list[Any] = [late] * len(params)
            values = [params, tensors[1], tensors[2], tensors[3], largest, counts, None, None, *numbers]
            launch.launch(together, [*values, amsgrad, maximize], "_fused_adamw_")
            return
        one = self.one
        assert one is not None
        for i, p in enumerate(params):
            most = None if largest is None else largest[i]
            values = [p, tensors[2][i], tensors[3][i], most, tensors[1][i], late, *numbers, amsgrad, maximize]
            launch.launch(one, values, "_fused_adamw_")


def corrected(lr: Any, beta1: float, beta2: float, weight_decay: float, eps: float, step: float) -> list[Any]:
    """Rate, betas, decay and epsilon with which the vendor's late step is this one."""
    rate = lr.item() if isinstance(lr, TensorBase) else float(lr)
    root = ((1 - beta2**step) / (1 - beta2**_LATE)) ** 0.5
    late_rate = rate * root * (1 - beta1**_LATE) / (1 - beta1**step)
    decay = weight_decay * rate / late_rate if late_rate != 0 else 0.0
    return [late_rate, beta1, beta2, decay, eps * root]


PASSES[int(NPU)] = NpuPasses()
