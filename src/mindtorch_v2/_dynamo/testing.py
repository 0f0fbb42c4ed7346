"""`torch._dynamo.testing`: backends of `torch.compile` that count what they are given.

Programs run eagerly here, so none of them is ever given a graph.
"""

from __future__ import annotations

from typing import Any, NoReturn

import mindtorch_v2 as torch

from . import reset as reset
from .backends.registry import lookup_backend


class CompileCounter:
    """Counts graphs and the operators in them."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.frame_count: Any = 0
        self.op_count: Any = 0

    def __call__(self, gm: Any, example_inputs: list[Any]) -> Any:
        self.frame_count += 1
        self.op_count += sum("call" in node.op for node in gm.graph.nodes)
        return gm.forward


class CompileCounterWithBackend(CompileCounter):
    """Counts, and gives graphs on to another backend."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        super().__init__()

    def clear(self) -> None:
        super().clear()
        self.graphs: list[Any] = []

    def __call__(self, gm: Any, example_inputs: list[Any]) -> Any:
        super().__call__(gm, example_inputs)
        self.graphs.append(gm)
        return lookup_backend(self.backend)(gm, example_inputs)


class EagerAndRecordGraphs:
    """Keeps graphs and runs them."""

    def __init__(self) -> None:
        self.graphs: list[Any] = []

    def __call__(self, gm: Any, example_inputs: list[Any]) -> Any:
        self.graphs.append(gm)
        return gm.forward


def rand_strided(size: Any, stride: Any, dtype: Any = torch.float32, device: Any = "cpu", extra_size: int = 0) -> Any:
    """Random numbers in memory with given strides."""
    extent = sum((n - 1) * step for n, step in zip(size, stride, strict=True)) + 1 + extra_size
    if dtype.is_floating_point or dtype.is_complex:
        memory = torch.randn(extent, dtype=dtype, device=device)
    else:
        memory = torch.randint(0, 2, (extent,), dtype=dtype, device=device)
    return torch.as_strided(memory, size, stride)


def optimize_assert(*args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError("torch._dynamo.testing.optimize_assert: programs run eagerly here, in no graph")
