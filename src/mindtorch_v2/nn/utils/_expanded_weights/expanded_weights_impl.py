"""A parameter that is called like the one it stands for and collects gradients by sample.

Invariant: `backward()` adds to `orig_weight.grad_sample`, never to `orig_weight.grad`; a function without a rule is
refused, because only a rule knows which dimension of its arguments is the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...._tensor import Tensor

__all__ = ["ExpandedWeight"]

# By function: what answers a call that has expanded weights among its arguments. `functions` fills it.
HANDLED_FUNCTIONS: dict[Any, Callable[[Any, tuple[Any, ...], Mapping[str, Any]], Any]] = {}


class ExpandedWeight(Tensor):
    """`orig_weight` for a batch of `batch_size` samples, whose losses are added up (`sum`) or averaged (`mean`)."""

    batch_size: int
    batch_first: bool
    allow_smaller_batches: bool
    orig_weight: Any
    loss_reduction: str
    handled_functions = HANDLED_FUNCTIONS

    def __new__(cls, orig_weight: Any, batch_size: int, loss_reduction: str) -> ExpandedWeight:
        if not isinstance(orig_weight, Tensor):
            raise RuntimeError(f"Can only make Expanded Weights of Tensors, got {type(orig_weight).__name__}")
        if not orig_weight.requires_grad:
            raise RuntimeError("Can only build ExpandedWeights objects of tensors that requires_grad")
        made: ExpandedWeight = Tensor._make_subclass(cls, orig_weight, True)
        return made

    def __init__(self, orig_weight: Any, batch_size: int, loss_reduction: str) -> None:
        self.batch_size = batch_size
        self.batch_first = True
        self.allow_smaller_batches = False
        self.orig_weight = orig_weight
        self.loss_reduction = loss_reduction

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        from . import functions

        rule = functions.rule_of(func)
        if rule is None:
            name = getattr(func, "__name__", repr(func))
            raise RuntimeError(f"Expanded Weights encountered but cannot handle function {name}")
        return rule(func, args, kwargs or {})

    def set_allow_smaller_batches(self, is_allow_smaller_batches: bool) -> None:
        """Whether an input may have fewer samples than the batch, as the later steps of packed sequences have."""
        self.allow_smaller_batches = is_allow_smaller_batches

    def set_batch_first(self, is_batch_first: bool = True) -> None:
        """Whether the batch is the input's first dimension; otherwise it is the second."""
        self.batch_first = is_batch_first

    def data_ptr(self) -> int:
        """The address of the parameter's first element."""
        address: int = self.orig_weight.data_ptr()
        return address

    def get_device(self) -> int:
        """The index of the parameter's device."""
        index: int = self.orig_weight.get_device()
        return index


def _of_the_weight(name: str) -> property:
    return property(lambda self: getattr(self.orig_weight, name))


for _name in ("dtype", "data", "shape", "device", "is_cuda"):
    setattr(ExpandedWeight, _name, _of_the_weight(_name))
