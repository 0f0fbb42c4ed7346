"""`torch._sobol_engine_*`: the arithmetic of Sobol' sequences, on tensors on the CPU.

A point is the exclusive or of direction numbers, one for each bit of the Gray code of its position; the numbers are
those of Joe and Kuo, which SciPy ships. Invariant: the state of a sequence has a row of 30 direction numbers for each
dimension, most significant bit first, and each point differs from the one before by one column of it.
"""

from __future__ import annotations

import functools
import importlib.util
import os
from typing import Any

from ._tensor import Tensor

__all__ = ["_sobol_engine_draw", "_sobol_engine_ff_", "_sobol_engine_initialize_state_", "_sobol_engine_scramble_"]

MAXBIT = 30
MAXDIM = 21201


def _torch() -> Any:
    import mindtorch_v2

    return mindtorch_v2


@functools.cache
def _joe_kuo() -> tuple[Any, Any]:
    """Primitive polynomials, and the first direction numbers of each: (21201,) and (21201, 18)."""
    import numpy as np

    # Found without importing scipy.stats, which takes a second.
    spec = importlib.util.find_spec("scipy.stats")
    folder = next(iter(spec.submodule_search_locations or ())) if spec is not None else ""
    path = os.path.join(folder, "_sobol_direction_numbers.npz")
    if not os.path.exists(path):
        raise RuntimeError(f"SobolEngine: this version of SciPy has no direction numbers ({path}); install scipy>=1.11")
    with np.load(path) as table:
        return table["poly"], table["vinit"]


@functools.lru_cache(maxsize=1)
def _directions(dimension: int) -> Any:
    """The direction numbers of the first dimensions, (dimension, 30)."""
    import numpy as np

    polynomials, initial = (table[:dimension].astype(np.int64) for table in _joe_kuo())
    v = np.ones((dimension, MAXBIT), np.int64)
    degrees = np.frexp(polynomials.astype(np.float64))[1] - 1
    for degree in range(1, int(degrees.max()) + 1):
        rows = np.flatnonzero(degrees == degree)
        part, p = v[rows], polynomials[rows]
        part[:, :degree] = initial[rows, :degree]
        for column in range(degree, MAXBIT):
            new = part[:, column - degree]
            for k in range(1, degree + 1):
                # Coefficient k of the polynomial, from the highest.
                new = new ^ (((p >> (degree - k)) & 1) * (part[:, column - k] << k))
            part[:, column] = new
        v[rows] = part
    result = v << np.arange(MAXBIT - 1, -1, -1)
    result.flags.writeable = False
    return result


def _array(name: str, tensor: Any) -> Any:
    torch = _torch()
    if tensor.dtype is not torch.int64:
        raise RuntimeError(f"{name} needs to be of type Long")
    if tensor.device.type != "cpu":
        raise RuntimeError(f"{name} has to be on the CPU, but is on {tensor.device}")
    return tensor.detach().numpy()


def _state(sobolstate: Any, dimension: int) -> Any:
    state = _array("sobolstate", sobolstate)
    if state.shape != (dimension, MAXBIT):
        raise RuntimeError(f"sobolstate needs to have shape {[dimension, MAXBIT]}, but has {list(state.shape)}")
    return state


def _check_end(last: int) -> None:
    if last >= 2**MAXBIT:
        raise RuntimeError(f"a Sobol' sequence has 2**{MAXBIT} points, but point {last} was asked for")


def _sobol_engine_initialize_state_(input: Tensor, dimension: int) -> Tensor:
    """Write the direction numbers of `dimension` dimensions."""
    _state(input, dimension)
    input.copy_(_torch().from_numpy(_directions(dimension).copy()))
    return input


def _sobol_engine_scramble_(input: Tensor, ltm: Tensor, dimension: int) -> Tensor:
    """Multiply the direction numbers of a dimension by a lower triangular matrix of bits, with ones on its diagonal."""
    import numpy as np

    torch = _torch()
    state = _state(input, dimension)
    if ltm.dtype is not torch.int64:
        raise RuntimeError(f"expected scalar type Long but found {ltm.dtype.scalar_name}")
    matrices = _array("ltm", ltm).copy()
    matrices[:, np.arange(MAXBIT), np.arange(MAXBIT)] = 1
    rows = matrices @ (1 << np.arange(MAXBIT - 1, -1, -1, dtype=np.int64))
    result = np.zeros_like(state)
    for bit in range(MAXBIT):
        product = rows[:, bit, None] & state
        for shift in (16, 8, 4, 2, 1):
            product ^= product >> shift
        result |= (product & 1) << (MAXBIT - 1 - bit)
    input.copy_(torch.from_numpy(result))
    return input


def _sobol_engine_ff_(input: Tensor, n: int, sobolstate: Tensor, dimension: int, num_generated: int) -> Tensor:
    """Move the point by `n` places."""
    quasi, state = _array("quasi", input), _state(sobolstate, dimension)
    if n <= 0:
        return input
    _check_end(num_generated + n)
    first, last = num_generated, num_generated + n
    changed = (first ^ first >> 1) ^ (last ^ last >> 1)
    result = quasi.copy()
    for bit in range(MAXBIT):
        if changed >> bit & 1:
            result ^= state[:, bit]
    input.copy_(_torch().from_numpy(result))
    return input


def _sobol_engine_draw(
    quasi: Tensor, n: int, sobolstate: Tensor, dimension: int, num_generated: int, dtype: Any = None
) -> tuple[Tensor, Tensor]:
    """The `n` points after `quasi`, which is number `num_generated`, as numbers in [0, 1); and the last one."""
    import numpy as np

    torch = _torch()
    if not isinstance(n, int):
        raise TypeError(f"_sobol_engine_draw(): argument 'n' (position 2) must be int, not {type(n).__name__}")
    point, state = _array("quasi", quasi), _state(sobolstate, dimension)
    kind = torch.get_default_dtype() if dtype is None else dtype
    result = torch.empty((n, dimension), dtype=kind, device="cpu")
    if kind not in (torch.float32, torch.float64):
        raise NotImplementedError(f"\"_sobol_engine_draw\" not implemented for '{kind.scalar_name}'")
    if n == 0:
        return result, quasi.clone()
    _check_end(num_generated + n)
    positions = np.arange(num_generated, num_generated + n, dtype=np.int64)
    # The lowest bit that is zero: the Gray codes of a position and the next one differ there.
    columns = np.frexp((~positions & (positions + 1)).astype(np.float64))[1] - 1
    points = np.ascontiguousarray(state.T)[columns]
    points[0] ^= point
    np.bitwise_xor.accumulate(points, axis=0, out=points)
    last = torch.from_numpy(points[-1].copy())
    result.copy_(torch.from_numpy(points)).mul_(2.0**-MAXBIT)
    return result, last
