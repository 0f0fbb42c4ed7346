"""Runs a table of pointwise aclnn functions against formulas in PyTorch, in every dtype the vendor's facts list.

Invariant: a formula sees the operands as float64, complex128 or int64, so the expected value is rounded once, from
exact operands, to the dtype of the output. The in-place form of a function is run with it, without a line of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ._kernels import Out, as_numpy, assert_same, call, facts, written

CHIP = "910B"
NAMES = {
    "FLOAT": "float32",
    "FLOAT16": "float16",
    "BF16": "bfloat16",
    "DOUBLE": "float64",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "UINT8": "uint8",
    "UINT16": "uint16",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "BOOL": "bool",
    "COMPLEX64": "complex64",
    "COMPLEX128": "complex128",
}
FLOATS = ("float32", "float16", "bfloat16", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "bool")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
SHAPE = (3, 4)


@dataclass(frozen=True)
class Case:
    """`formula(torch, *tensors)`; the tensors are the function's inputs in order, `numbers` its other arguments."""

    name: str
    formula: Callable[..., Any]
    domains: tuple[tuple[float, float], ...] = ((-3.0, 3.0),)  # of the inputs; the last one repeats
    numbers: dict[str, Any] = field(default_factory=dict)
    gives: str = "same"  # the output's dtype: "same", "bool", or "float" for float32 of integers
    dtypes: tuple[str, ...] = ()  # instead of all that the facts list
    scale: float = 1  # of the tolerance
    shapes: tuple[tuple[int, ...], ...] = (SHAPE,)

    def variants(self) -> Iterator[tuple[str, str]]:
        for name in (self.name, "aclnnInplace" + self.name.removeprefix("aclnn")):
            if name in facts():
                for dtype in self.dtypes or accepted(name):
                    # The result of an in-place function must fit where its operand was.
                    if name == self.name or not (self.gives == "float" and dtype in (*INTEGERS, *UNSIGNED)):
                        yield name, dtype


def inputs(name: str) -> list[dict[str, Any]]:
    f = facts()[name]
    outputs, in_place = written(f)
    return [p for p in f["params"] if p["type"] == "aclTensor*" and (p["name"] not in outputs or p["name"] in in_place)]


def accepted(name: str) -> list[str]:
    """The dtypes all inputs accept on the default chip; where documents list none, the usual floats."""
    f = facts()[name]
    found: list[str] | None = None
    for p in inputs(name):
        if p.get("dtypes") and not p["dtypes"].startswith("="):
            listed = p["dtypes"].split()
            for how, names in f.get("chips", {}).get(CHIP, {}).items():
                named = names.split()
                if how == "no":
                    listed = [d for d in listed if d not in named]
                elif set(named) <= set(listed):
                    listed = named
            found = [d for d in listed if found is None or d in found]
    return [NAMES[d] for d in found if d in NAMES] if found is not None else ["float32", "float16"]


def sample(dtype: str, domain: tuple[float, float], shape: tuple[int, ...], seed: int) -> Any:
    """A PyTorch tensor of values in the domain; every second one is strided."""
    import torch

    kind = getattr(torch, dtype)
    generator = np.random.default_rng(seed)
    low, high = domain
    wide = shape[:-1] + (shape[-1] * 2,) if shape else shape
    if dtype == "bool":
        values = torch.from_numpy(generator.integers(0, 2, wide).astype(bool) if wide else np.array(True))
    elif dtype in INTEGERS or dtype in UNSIGNED:
        low = max(low, 0) if dtype in UNSIGNED else low
        first, last = int(np.ceil(low)), max(int(np.floor(high)), 1)
        values = torch.from_numpy(np.asarray(generator.integers(first, last + 1, wide)))
    elif dtype.startswith("complex"):
        values = torch.from_numpy(np.asarray(generator.uniform(low, high, wide) + 1j * generator.uniform(-2, 2, wide)))
    else:
        values = torch.from_numpy(np.asarray(generator.uniform(low, high, wide)))
    values = values.to(kind)
    if not shape:
        return values
    return values[..., ::2] if seed % 2 else values[..., ::2].contiguous()


def widened(x: Any) -> Any:
    import torch

    if x.is_complex():
        return x.to(torch.complex128)
    return x.to(torch.float64) if x.is_floating_point() else x.to(torch.int64)


def result_dtype(case: Case, name: str, dtype: str) -> str:
    if name.startswith("aclnnInplace") and name != case.name:
        return dtype
    if case.gives == "bool":
        return "bool"
    if case.gives == "float" and dtype in (*INTEGERS, *UNSIGNED):
        return "float32"
    return dtype if case.gives in ("same", "float") else case.gives


def arguments(case: Case, name: str, dtype: str) -> tuple[dict[str, Any], Any]:
    """What to call the function with, and the expected result."""
    import torch

    outputs, in_place = written(facts()[name])
    tensors: dict[str, Any] = {}
    for i, p in enumerate(inputs(name)):
        domain = case.domains[min(i, len(case.domains) - 1)]
        shape = SHAPE if p["name"] in in_place else case.shapes[min(i, len(case.shapes) - 1)]
        tensors[p["name"]] = sample(dtype, domain, shape, seed=i + 1 + len(name))
    want = case.formula(torch, *map(widened, tensors.values()))
    kind = result_dtype(case, name, dtype)
    fresh = {n: Out(tuple(want.shape), kind) for n in outputs - in_place}
    known = {p["name"] for p in facts()[name]["params"]}
    numbers = {n if n in known else n + "Ref": value for n, value in case.numbers.items()}
    if want.is_complex() and not kind.startswith("complex"):
        want = want.real
    return {**tensors, **numbers, **fresh}, want.to(getattr(torch, kind))


def run(case: Case, name: str, dtype: str) -> None:
    values, want = arguments(case, name, dtype)
    assert_same(as_numpy(call(name, **values)), want, case.scale)


def parameters(cases: list[Case]) -> list[Any]:
    import pytest

    return [pytest.param(case, name, dtype, id=f"{name}-{dtype}") for case in cases for name, dtype in case.variants()]
