"""Random shapes, layouts and values to time operators on; the same for the same seed as PyTorch's.

Invariant: parameters are drawn in the order they were given, then tensors; nothing else draws from the state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from math import prod
from typing import Any

import mindtorch_v2 as torch

__all__ = ["Fuzzer", "FuzzedParameter", "ParameterAlias", "FuzzedTensor"]

_DISTRIBUTIONS = ("loguniform", "uniform")
_ATTEMPTS = 1000


class FuzzedParameter:
    """A random number from `minval` to `maxval`, or one of the keys of a dict with their probabilities. A strict one
    keeps its value when a set of parameters is rejected and drawn again."""

    def __init__(
        self,
        name: str,
        minval: float | None = None,
        maxval: float | None = None,
        distribution: str | dict[Any, float] | None = None,
        strict: bool = False,
    ) -> None:
        self._name = name
        self._minval: Any = minval
        self._maxval: Any = maxval
        self._distribution = self._check_distribution(distribution)
        self.strict = strict

    @property
    def name(self) -> str:
        return self._name

    def _check_distribution(self, distribution: Any) -> Any:
        if not isinstance(distribution, dict):
            if distribution not in _DISTRIBUTIONS:
                raise AssertionError(f"Unknown distribution: {distribution}")
            return distribution
        if any(p < 0 for p in distribution.values()):
            raise AssertionError("Probabilities cannot be negative")
        # PyTorch refuses those that sum to one; a test of this library would notice if that were mended there.
        if not abs(sum(distribution.values()) - 1) > 1e-5:
            raise AssertionError("Distribution is not normalized")
        for limit in ("minval", "maxval"):
            if getattr(self, "_" + limit) is not None:
                raise AssertionError(f"When passing a custom distribution, '{limit}' must be None")
        return distribution

    def sample(self, state: Any) -> Any:
        """A value, drawn with NumPy's `state`."""
        import numpy as np

        low, high = self._minval, self._maxval
        if self._distribution == "loguniform":
            drawn = int(
                2
                ** state.uniform(
                    low=None if low is None else np.log2(low), high=None if high is None else np.log2(high)
                )
            )
            if low is not None and drawn < low:
                return low
            return high if high is not None and drawn > high else drawn
        if self._distribution == "uniform":
            if isinstance(low, int) and isinstance(high, int):
                return int(state.randint(low=low, high=high + 1))
            return state.uniform(low=low, high=high)
        at = state.choice(np.arange(len(self._distribution)), p=tuple(self._distribution.values()))
        return list(self._distribution)[at]


class ParameterAlias:
    """As the value of a parameter: that of another one."""

    def __init__(self, alias_to: str) -> None:
        self.alias_to = alias_to

    def __repr__(self) -> str:
        return f"ParameterAlias[alias_to: {self.alias_to}]"


class FuzzedTensor:
    """A tensor whose size and steps are numbers or names of parameters."""

    def __init__(
        self,
        name: str,
        size: tuple[str | int, ...],
        steps: tuple[str | int, ...] | None = None,
        probability_contiguous: float = 0.5,
        min_elements: int | None = None,
        max_elements: int | None = None,
        max_allocation_bytes: int | None = None,
        dim_parameter: str | None = None,
        roll_parameter: str | None = None,
        dtype: Any = None,
        cuda: bool = False,
        tensor_constructor: Callable[..., Any] | None = None,
    ) -> None:
        if roll_parameter is not None:
            raise NotImplementedError("FuzzedTensor(): argument 'roll_parameter' is not supported")
        if cuda:
            raise AssertionError("Torch not compiled with CUDA enabled")
        self._name = name
        self._size = size
        self._steps = steps
        self._probability_contiguous = probability_contiguous
        self._min_elements = min_elements
        self._max_elements = max_elements
        self._max_allocation_bytes = max_allocation_bytes
        self._dim_parameter = dim_parameter
        self._dtype = torch.float32 if dtype is None else dtype
        self._tensor_constructor = tensor_constructor

    @property
    def name(self) -> str:
        return self._name

    @staticmethod
    def default_tensor_constructor(size: Any, dtype: Any, **kwargs: Any) -> Any:
        """Random numbers; parameters play no part in them."""
        if dtype.is_floating_point or dtype.is_complex:
            return torch.rand(size=size, dtype=dtype, device="cpu")
        return torch.randint(1, 127, size=size, dtype=dtype, device="cpu")

    def _make_tensor(self, params: dict[str, Any], state: Any) -> tuple[Any, dict[str, Any]]:
        import numpy as np

        size, steps, allocated = self._get_size_and_steps(params)
        construct = self._tensor_constructor or self.default_tensor_constructor
        raw = construct(size=allocated, dtype=self._dtype, **params)
        dim = len(size)
        order = np.arange(dim)
        if state.rand() > self._probability_contiguous:
            while dim > 1 and np.all(order == np.arange(dim)):
                order = state.permutation(raw.dim())
            raw = raw.permute(tuple(order.tolist())).contiguous()
            raw = raw.permute(tuple(np.argsort(order).tolist()))
        tensor = raw[tuple(slice(0, n * step, step) for n, step in zip(size, steps))]
        return tensor, {
            "numel": int(tensor.numel()),
            "order": order,
            "steps": steps,
            "is_contiguous": tensor.is_contiguous(),
            "dtype": str(self._dtype),
        }

    def _get_size_and_steps(self, params: dict[str, Any]) -> tuple[Any, Any, Any]:
        """Size, steps, and the size of what must be allocated to take those steps."""
        dim = len(self._size) if self._dim_parameter is None else params[self._dim_parameter]

        def resolve(values: Any) -> tuple[Any, ...]:
            found = tuple(params.get(v, v) for v in values)[:dim]
            return found + (1,) * (dim - len(found))

        size, steps = resolve(self._size), resolve(self._steps or ())
        return size, steps, tuple(n * step for n, step in zip(size, steps))

    def satisfies_constraints(self, params: dict[str, Any]) -> bool:
        """Whether the size is within the limits."""
        size, _, allocated = self._get_size_and_steps(params)
        elements = prod(int(n) for n in size)
        if elements < 0:
            raise AssertionError("Computed number of elements is negative")
        nbytes = prod((int(n) for n in allocated), start=self._dtype.itemsize)
        return not (
            (self._max_elements is not None and elements > self._max_elements)
            or (self._min_elements is not None and elements < self._min_elements)
            or (self._max_allocation_bytes is not None and nbytes > self._max_allocation_bytes)
        )


class Fuzzer:
    """Draws parameters until all constraints hold, and makes the tensors."""

    def __init__(
        self,
        parameters: list[Any],
        tensors: list[Any],
        constraints: list[Callable[..., bool]] | None = None,
        seed: int | None = None,
    ) -> None:
        import numpy as np

        if seed is None:
            seed = int(np.random.RandomState().randint(0, 2**32 - 1, dtype=np.int64))
        self._seed = seed
        self._parameters = self._unpack(parameters, FuzzedParameter)
        self._tensors = self._unpack(tensors, FuzzedTensor)
        self._constraints = constraints or ()
        both = {p.name for p in self._parameters} & {t.name for t in self._tensors}
        if both:
            raise ValueError(f"Duplicate names in parameters and tensors: {both}")
        self._rejections = 0
        self._total_generated = 0

    @staticmethod
    def _unpack(values: Any, cls: type) -> tuple[Any, ...]:
        return tuple(chain.from_iterable([v] if isinstance(v, cls) else v for v in values))

    def take(self, n: int) -> Iterator[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
        """`n` times: tensors, what is to be known of each, and the parameters."""
        import numpy as np

        state = np.random.RandomState(self._seed)
        torch.manual_seed(int(state.randint(low=0, high=2**63, dtype=np.int64)))
        for _ in range(n):
            params = self._generate(state)
            made = {t.name: t._make_tensor(params, state) for t in self._tensors}
            yield {k: v[0] for k, v in made.items()}, {k: v[1] for k, v in made.items()}, params

    @property
    def rejection_rate(self) -> float:
        return self._rejections / self._total_generated if self._total_generated else 0.0

    def _generate(self, state: Any) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for _ in range(_ATTEMPTS):
            drawn: dict[str, Any] = {}
            for p in self._parameters:
                drawn[p.name] = kept[p.name] if p.strict and p.name in kept else p.sample(state)
                if p.strict:
                    kept[p.name] = drawn[p.name]
            drawn = self._resolve_aliases(drawn)
            self._total_generated += 1
            if all(holds(drawn) for holds in self._constraints) and all(
                t.satisfies_constraints(drawn) for t in self._tensors
            ):
                return drawn
            self._rejections += 1
        raise ValueError("Failed to generate a set of valid parameters.")

    @staticmethod
    def _resolve_aliases(params: dict[str, Any]) -> dict[str, Any]:
        params = dict(params)
        left = [k for k, v in params.items() if isinstance(v, ParameterAlias)]
        while left:
            for k in left:
                params[k] = params[params[k].alias_to]
            still = [k for k in left if isinstance(params[k], ParameterAlias)]
            if len(still) == len(left):
                raise ValueError(f"ParameterAlias cycle detected\n{params}")
            left = still
        return params
