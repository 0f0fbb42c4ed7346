"""`SobolEngine`: points that fill the unit cube more evenly than random ones.

Invariant: the points, scrambled ones too, are PyTorch's for the same seed, in whatever portions they are drawn.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from ._dtype import dtype as dtype_type
from ._sobol import (
    MAXBIT,
    MAXDIM,
    _sobol_engine_draw,
    _sobol_engine_ff_,
    _sobol_engine_initialize_state_,
    _sobol_engine_scramble_,
)
from ._tensor import Tensor

__all__ = ["SobolEngine"]


class SobolEngine:
    """The Sobol' sequence of `dimension` dimensions; with `scramble` a random one of its variants, fixed by `seed`."""

    MAXBIT = MAXBIT
    MAXDIM = MAXDIM

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        self.sobolstate: Tensor = torch.zeros(dimension, self.MAXBIT, device="cpu", dtype=torch.int64)
        _sobol_engine_initialize_state_(self.sobolstate, dimension)
        self.shift: Tensor
        if scramble:
            self._scramble()
        else:
            self.shift = torch.zeros(dimension, device="cpu", dtype=torch.int64)
        self.quasi: Tensor = self.shift.clone()
        self._first_point = (self.quasi / 2**self.MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: dtype_type | None = None) -> Tensor:
        """The next `n` points, one in each row."""
        kind = torch.get_default_dtype() if dtype is None else dtype
        # The first point is where the sequence starts; every other one is made from the one before.
        first = self._first_point.to(kind) if self.num_generated == 0 else None
        if first is not None and n == 1:
            result: Tensor = first
        else:
            more, before = (n, self.num_generated - 1) if first is None else (n - 1, 0)
            result, self.quasi = _sobol_engine_draw(self.quasi, more, self.sobolstate, self.dimension, before, kind)
            if first is not None:
                result = torch.cat((first, result), dim=-2)
        self.num_generated += n
        if out is not None:
            out.resize_as_(result).copy_(result)
            return out
        return result

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: dtype_type | None = None) -> Tensor:
        """The next `2**m` points, if the number drawn is a power of two afterwards: then they are balanced."""
        n: Any = 2**m
        total = self.num_generated + n
        if total & (total - 1) != 0:
            raise ValueError(
                f"The balance properties of Sobol' points require n to be a power of 2. {self.num_generated} points "
                f"have been previously generated, then: n={self.num_generated}+2**{m}={total}. If you still want to do "
                "this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Back to the first point."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave out the next `n` points."""
        steps, before = (n - 1, 0) if self.num_generated == 0 else (n, self.num_generated - 1)
        _sobol_engine_ff_(self.quasi, steps, self.sobolstate, self.dimension, before)
        self.num_generated += n
        return self

    def _scramble(self) -> None:
        generator = None
        if self.seed is not None:
            generator = torch.Generator()
            generator.manual_seed(self.seed)
        bits = torch.randint(2, (self.dimension, self.MAXBIT), device="cpu", generator=generator)
        self.shift = torch.mv(bits, torch.pow(2, torch.arange(0, self.MAXBIT, device="cpu")))
        square = (self.dimension, self.MAXBIT, self.MAXBIT)
        matrices = torch.randint(2, square, device="cpu", generator=generator).tril()
        _sobol_engine_scramble_(self.sobolstate, matrices, self.dimension)

    def __repr__(self) -> str:
        shown = [f"dimension={self.dimension}"]
        if self.scramble:
            shown.append("scramble=True")
        if self.seed is not None:
            shown.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(shown)})"
