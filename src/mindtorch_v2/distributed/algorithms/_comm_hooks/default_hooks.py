"""Hooks that reduce a module's gradient: whole (`grad`), or into this rank's part of it (`output`).

Invariant: the result is the mean over the ranks of the state's group, divided in two steps so that sums of small floats
neither overflow nor vanish.
"""

from __future__ import annotations

from typing import Any

from .... import _dtype as _t
from ... import distributed_c10d as dist


class DefaultState:
    """The group of a hook, and by what gradients are divided before and after their sum."""

    __slots__ = ["process_group", "world_size", "gradient_predivide_factor", "gradient_postdivide_factor"]

    def __init__(self, process_group: Any) -> None:
        if process_group is None:
            raise ValueError(f"Expected to pass in an explicit ProcessGroup to {self}.")
        self.process_group = process_group
        self.world_size = dist.get_world_size(process_group)
        self.gradient_predivide_factor = self._get_gradient_predivide_factor(self.world_size)
        self.gradient_postdivide_factor = self.world_size / self.gradient_predivide_factor

    @staticmethod
    def _get_gradient_predivide_factor(world_size: float) -> float:
        """A power of two near the root of the number of ranks."""
        factor = 1
        while world_size % factor == 0 and world_size / factor > factor:
            factor *= 2
        return float(factor)


class LowPrecisionState(DefaultState):
    """Also the dtype that gradients have after they were sent as something smaller."""

    __slots__ = ["parameter_type"]

    def __init__(self, process_group: Any, parameter_type: Any = _t.float32) -> None:
        super().__init__(process_group)
        self.parameter_type = parameter_type


def _decompress(state: LowPrecisionState, grad: Any) -> None:
    """Gradients in the dtype of the parameters."""
    grad.data = grad.data.to(state.parameter_type)


def allreduce_hook(state: DefaultState, grad: Any) -> None:
    """The mean of all ranks' gradients, in place."""
    if state.gradient_predivide_factor > 1:
        grad.div_(state.gradient_predivide_factor)
    dist.all_reduce(grad, group=state.process_group)
    if state.gradient_postdivide_factor > 1:
        grad.div_(state.gradient_postdivide_factor)


def reduce_scatter_hook(state: DefaultState, grad: Any, output: Any) -> None:
    """This rank's part of the mean."""
    if state.gradient_predivide_factor > 1:
        grad.div_(state.gradient_predivide_factor)
    dist.reduce_scatter_single(output, grad, group=state.process_group)
    if state.gradient_postdivide_factor > 1:
        output.div_(state.gradient_postdivide_factor)


def _low_precision_hook(prec: Any, state: LowPrecisionState, grad: Any, output: Any) -> None:
    grad.data = grad.data.to(prec)
    if output is None:
        allreduce_hook(state, grad)
        _decompress(state, grad)
    else:
        output.data = output.data.to(prec)
        reduce_scatter_hook(state, grad, output)
        _decompress(state, output)


def fp16_compress_hook(state: LowPrecisionState, grad: Any, output: Any = None) -> None:
    """Gradients travel as float16."""
    _low_precision_hook(_t.float16, state, grad, output)


def bf16_compress_hook(state: LowPrecisionState, grad: Any, output: Any = None) -> None:
    """Gradients travel as bfloat16."""
    _low_precision_hook(_t.bfloat16, state, grad, output)
