"""Which calls dead code elimination keeps although nobody uses their result."""

from __future__ import annotations

from typing import Any

from .._operators import OpOverload, OpOverloadPacket
from ._names import package

# Random functions of `torch` move a generator that everybody sees.
_RANDOM = "rand randn randint randperm rand_like randn_like randint_like normal poisson bernoulli multinomial".split()


def is_impure(target: Any, impure_random: bool = True) -> bool:
    """Whether calling `target` does more than compute its result."""
    from .node import _side_effectful_functions

    if isinstance(target, OpOverloadPacket):
        if target in _side_effectful_functions:
            return True
        default = target._ops.get("default")
        if default is not None:
            target = target.default
    if isinstance(target, OpOverload):
        return (
            target._schema.is_mutable
            or target in _side_effectful_functions
            or (impure_random and _moves_generator(target))
        )
    try:
        return target in _side_effectful_functions or target in _random_functions()
    except TypeError:
        return False


def _moves_generator(target: OpOverload) -> bool:
    return any(a.name == "generator" for a in target._schema.arguments)


def _random_functions() -> set[Any]:
    torch = package()
    return {vars(torch)[n] for n in _RANDOM if n in vars(torch)}
