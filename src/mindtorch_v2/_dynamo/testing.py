"""`torch._dynamo.testing`: backends of `torch.compile` that count what they are given.

Programs run eagerly here, so none of them is ever given a graph.
"""

from __future__ import annotations

import contextlib
import functools
import re
import unittest
from collections.abc import Callable
from typing import Any, NoReturn
from unittest import mock

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


class AotEagerAndRecordGraphs:
    """Keeps the graphs of forward and backward; refused: no such graphs are made here."""

    def __init__(self) -> None:
        raise NotImplementedError(
            "torch._dynamo.testing.AotEagerAndRecordGraphs: nothing is compiled ahead of time here"
        )


class InductorAndRecordGraphs(AotEagerAndRecordGraphs):
    """Keeps the graphs of generated code; refused: no code is generated here."""


def normalize_gm(gm_str: str) -> str:
    """The code of a graph without lines of comment, spaces at the ends of lines and repeated empty lines."""
    lines = [line.rstrip() for line in gm_str.split("\n") if not line.lstrip(" ").startswith("#")]
    return "\n".join(line for i, line in enumerate(lines) if line or i == 0 or lines[i - 1])


def empty_line_normalizer(code: str) -> str:
    """Code without repeated empty lines."""
    return re.sub(r"[\r\n]+", "\n", code)


def make_test_cls_with_patches(
    cls: type,
    cls_prefix: str,
    fn_suffix: str,
    *patches: tuple[Any, str, Any],
    xfail_prop: str | None = None,
    decorator: Callable[[Any], Any] = lambda x: x,
) -> type:
    """A class of tests that run those of another one with settings changed."""
    made = type(f"{cls_prefix}{cls.__name__}", cls.__bases__, {})
    made.__qualname__ = made.__name__
    for name in dir(cls):
        value = getattr(cls, name)
        if name.startswith("test_") and callable(value):
            test = _patched(value, f"{name}{fn_suffix}", patches)
            expected = xfail_prop is not None and hasattr(value, xfail_prop)
            setattr(made, test.__name__, decorator(unittest.expectedFailure(test) if expected else test))
        elif name.startswith("test_") or not hasattr(made, name):
            setattr(made, name, value)
    return made


def _patched(fn: Any, name: str, patches: tuple[tuple[Any, str, Any], ...]) -> Any:
    @functools.wraps(fn)
    def test(*args: Any, **kwargs: Any) -> Any:
        with contextlib.ExitStack() as stack:
            for module, attribute, value in patches:
                stack.enter_context(mock.patch.object(module, attribute, value))
            return fn(*args, **kwargs)

    test.__name__ = name
    return test


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
