"""Tensors over memory of others: capsules of DLPack, buffers.

Invariant: a case is a function of the library; its outcome is the same for both.
"""

from __future__ import annotations

from typing import Any

import pytest

from .._outcome import outcome, tried
from .._subject import subject as torch
from ..autograd._cases import Cases

case = Cases()


@case
def capsules_as_arrays(lib: Any) -> Any:
    def written(**options: Any) -> Any:
        x = lib.arange(4.0)
        y = lib.asarray(x.__dlpack__(), **options)
        with lib.no_grad():
            y[0] = 9
        return x, y

    def twice() -> Any:
        capsule = lib.arange(3).__dlpack__()
        return lib.asarray(capsule), lib.asarray(capsule)

    return tried(
        [
            written,
            lambda: written(copy=True),
            lambda: written(copy=False),
            lambda: written(dtype=lib.float64),
            lambda: written(dtype=lib.float64, copy=False),
            lambda: written(requires_grad=True),
            lambda: lib.asarray(lib.ones(2).__dlpack__(), device="meta").shape,
            lambda: lib.asarray(lib.ones(2).__dlpack__(), device="meta", copy=False),
            lambda: lib.tensor(lib.ones(2).__dlpack__()),
            twice,
        ]
    )


@case
def parts_of_buffers(lib: Any) -> Any:
    data = bytearray(range(10))
    return tried(
        [
            lambda d=dtype, o=offset, n=count: lib.frombuffer(data, dtype=d, offset=o, count=n)
            for dtype in (lib.int16, lib.int32)
            for offset in (0, 1, 2, 9, 10, -1)
            for count in (-1, 0, 1, 5)
        ]
    )


@case
def factories_that_refuse(lib: Any) -> Any:
    calls: list[Any] = [
        lambda: lib.broadcast_shapes(1, 2, 3),
        lambda: lib.broadcast_shapes((1, 2), 3),
        lambda: lib.broadcast_shapes((1, 2), (1, 3)),
        lambda: lib.nonzero(lib.ones(2), as_tuple=True, out=lib.empty(0, dtype=lib.int64)),
        lambda: lib.DoubleTensor.is_sparse,
        lambda: lib.ones(2).numpy(force=True).tolist(),
    ]
    for name in ("float8_e4m3fn", "float8_e5m2"):
        calls += [lambda n=n, name=name: lib.logspace(1, 1.5, n, dtype=getattr(lib, name)).float() for n in (0, 1, 2)]
    return tried(calls)


@case
def parameters_of_subclasses_say_so(lib: Any) -> Any:
    marked = type("Marked", (lib.Tensor,), {})
    own = type("Own", (lib.nn.Parameter,), {})
    given = [marked([1.0]), lib.ones(1), own(lib.ones(1))]
    return [repr(lib.nn.Parameter(t)) for t in given[:2]] + [repr(t) for t in given]


@pytest.mark.oracle
@pytest.mark.parametrize("name", case)
def test_as_pytorch(name: str, oracle: Any) -> None:
    assert outcome(lambda: case[name](torch)) == outcome(lambda: case[name](oracle))


@pytest.mark.parametrize("name", case)
def test_cases_run_without_an_oracle(name: str) -> None:
    case[name](torch)
