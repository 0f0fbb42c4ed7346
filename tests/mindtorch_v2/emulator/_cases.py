"""Tables of kernel cases: a builder makes inputs in one dtype and layout, and PyTorch's answer for each output.

    Case("aclnnCumsum", FLOATS, lambda t: ({"self": (x := t(3, 4)), "dim": 1, "dtype": t.dtype}, {"out": x.cumsum(1)}))

Outputs are allocated from the answers, so shapes and dtypes are compared too. Invariant: every case runs in every dtype
it lists, with dense and with strided inputs.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from ._kernels import In, Out, assert_same, call, facts  # noqa: E402

FLOATS = ("float32", "float16", "bfloat16")
INTS = ("int32", "int64")
NUMBERS = (*FLOATS, "int32", "int64", "uint8")
ALL = (*FLOATS, "float64", "int8", "int16", "int32", "int64", "uint8", "bool")


@dataclass
class Maker:
    """Makes random tensors of a dtype, dense or strided; NaN where asked."""

    dtype: str
    strided: bool
    generator: Any

    def __call__(self, *shape: int, dtype: str = "", nan: bool = False) -> Any:
        name = dtype or self.dtype
        wide = (*shape[:-1], 2 * shape[-1]) if self.strided and shape else shape
        kind = getattr(torch, name)
        if name == "bool":
            x = torch.rand(wide, generator=self.generator) < 0.5
        elif kind.is_floating_point or kind.is_complex:
            x = torch.randn(wide, generator=self.generator, dtype=kind if kind.is_complex else torch.float64).to(kind)
        else:
            low = 0 if name.startswith("u") else -6
            x = torch.randint(low, 7, wide, generator=self.generator).to(kind)
        if nan and kind.is_floating_point and x.numel():
            x.view(-1)[0] = float("nan")
        return x[..., ::2] if self.strided and shape else x

    def index(self, size: int, *shape: int, dtype: str = "int64") -> Any:
        wide = (*shape[:-1], 2 * shape[-1]) if self.strided and shape else shape
        x = torch.randint(0, size, wide, generator=self.generator).to(getattr(torch, dtype))
        return x[..., ::2] if self.strided and shape else x

    @property
    def inexact(self) -> bool:
        return getattr(torch, self.dtype).is_floating_point or getattr(torch, self.dtype).is_complex


Built = tuple[dict[str, Any], dict[str, Any]]


@dataclass
class Case:
    name: str
    dtypes: tuple[str, ...]
    build: Callable[[Maker], Built] = field(repr=False)
    scale: float = 1  # of the tolerance
    layouts: tuple[str, ...] = ("dense", "strided")


def name_of(t: Any) -> str:
    return str(t.dtype).removeprefix("torch.")


def each(cases: Iterable[Case]) -> Any:
    """Parametrises a test with (case, dtype, layout)."""
    rows: list[Any] = []
    seen: dict[str, int] = {}
    for case in cases:
        seen[case.name] = seen.get(case.name, 0) + 1
        for dtype in case.dtypes:
            for layout in case.layouts:
                label = f"{case.name.removeprefix('aclnn')}{seen[case.name]}-{dtype}-{layout}"
                rows.append(pytest.param(case, dtype, layout, id=label))
    return pytest.mark.parametrize(("case", "dtype", "layout"), rows)


def with_formats(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Tensors in the format that belongs to their rank, where the documents name formats."""
    result = dict(arguments)
    for p in facts()[name]["params"]:
        value = result.get(p["name"])
        if "formats" not in p or value is None or isinstance(value, In):
            continue
        form = {2: "NC", 3: "NCL", 4: "NCHW", 5: "NCDHW"}.get(len(value.shape), "ND")
        if form not in p["formats"].split():
            continue
        if isinstance(value, Out):
            value.format = form
        else:
            result[p["name"]] = In(value, form)
    return result


def run(case: Case, dtype: str, layout: str) -> None:
    seed = zlib.crc32(f"{case.name} {dtype} {layout}".encode())
    maker = Maker(dtype, layout == "strided", torch.Generator().manual_seed(seed))
    given, want = case.build(maker)
    arguments: dict[str, Any] = dict(given)
    for name, expected in want.items():
        if name in given:  # in place
            continue
        if isinstance(expected, (list, tuple)):
            arguments[name] = [Out(tuple(e.shape), name_of(e)) for e in expected]
        else:
            arguments[name] = Out(tuple(expected.shape), name_of(expected))
    got = call(case.name, **with_formats(case.name, arguments))
    outputs = got if isinstance(got, list) else [got]
    expectations: list[Any] = []
    for p in facts()[case.name]["params"]:
        expected = want.get(p["name"])
        if expected is not None:
            expectations += expected if isinstance(expected, (list, tuple)) else [expected]
    assert len(outputs) == len(expectations)
    for g, e in zip(outputs, expectations):
        assert_same(g, e, case.scale)
