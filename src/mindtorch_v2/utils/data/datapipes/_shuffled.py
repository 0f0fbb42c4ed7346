"""What both kinds of shuffling pipes share: whether they shuffle, the next seed, the generator."""

from __future__ import annotations

import random
from typing import Any, TypeVar

import mindtorch_v2 as torch

_S = TypeVar("_S", bound="Shuffled")


def drawn_seed() -> int:
    """A seed from the default generator."""
    return int(torch.empty((), dtype=torch.int64).random_().item())


class Shuffled:
    """Can be turned on and off, and takes a seed for its next iteration."""

    _enabled: bool
    _seed: int | None
    _rng: random.Random

    def _start(self) -> None:
        self._enabled = True
        self._seed = None
        self._rng = random.Random()

    def set_shuffle(self: _S, shuffle: bool = True) -> _S:
        """Turn it on or off."""
        self._enabled = shuffle
        return self

    def set_seed(self: _S, seed: int) -> _S:
        """The seed of the next iteration; without one it is drawn from the default generator."""
        self._seed = seed
        return self

    def _restore(self, numbers: Any) -> None:
        self._rng = random.Random()
        self._rng.setstate(numbers)
