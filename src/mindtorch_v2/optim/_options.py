"""`Options`: what one step of an optimiser is asked to do, in one object that every form of the step takes.

Invariant: fields have the names of the functional forms' parameters. Options made from a group hold the group's very
objects, so that a learning rate in a tensor is read when it is used.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar

from .._tensor import Tensor

O = TypeVar("O", bound="Options")  # noqa: E741


@dataclass(kw_only=True)
class Options:
    """What every algorithm knows; a subclass adds its own."""

    # Pairs of a group, and the fields that they become.
    PAIRS: ClassVar[dict[str, tuple[str, str]]] = {}

    lr: Any = None
    weight_decay: Any = 0
    maximize: bool = False
    foreach: bool | None = None
    differentiable: bool = False
    capturable: bool = False
    has_complex: bool = False
    # Of algorithms that have a fused form.
    fused: bool | None = None
    has_sparse_grad: bool = False
    grad_scale: Tensor | None = None
    found_inf: Tensor | None = None

    @classmethod
    def of(cls: type[O], group: dict[str, Any]) -> O:
        """The options of a parameter group."""
        kind: Any = cls
        given = {name: group[name] for name in _names(kind) if name in group}
        for pair, names in cls.PAIRS.items():
            given.update(zip(names, group[pair], strict=True))
        return cls(**given)

    def numbers(self) -> tuple[Any, ...] | None:
        """What the algorithm's native pass is given besides tensors and the learning rate; None where a pass would not
        do the same."""
        return None

    def _asked_nothing(self) -> bool:
        """Whether the form is ours to choose, and nothing in the step is learned or stays on a device."""
        free = self.foreach is None and self.fused is None and self.grad_scale is None and self.found_inf is None
        return free and not (self.differentiable or self.capturable or self.has_sparse_grad)


@functools.cache
def _names(cls: Any) -> tuple[str, ...]:
    # A field that a pair becomes is not asked of a group: `eps` may be a pair.
    made = [name for names in cls.PAIRS.values() for name in names]
    return tuple(field.name for field in fields(cls) if field.name not in made)


def are_numbers(*values: Any) -> bool:
    return all(isinstance(value, (int, float)) for value in values)


def is_rate(lr: Any) -> bool:
    """A learning rate that costs nothing to read."""
    return isinstance(lr, (float, int)) or (isinstance(lr, Tensor) and lr.is_cpu and lr.numel() == 1)
