"""Tensors beside objects of others: capsules of DLPack, buffers, scalars, operands of unknown classes.

Invariant: a case is a function of the library; its outcome is the same for both.
"""

from __future__ import annotations

import itertools
import operator
from fractions import Fraction
from typing import Any

import numpy
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
def capsules_of_both_versions(lib: Any) -> Any:
    x = lib.arange(3.0)

    class Old:
        """A producer that knows no arguments."""

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

        def __dlpack__(self) -> Any:
            return numpy.arange(3).__dlpack__()

    class Wrong(Old):
        def __dlpack__(self, **_: Any) -> Any:
            return 5

    def used() -> Any:
        capsule = x.__dlpack__(max_version=(1, 0))
        return lib.from_dlpack(capsule), str(capsule), lib.from_dlpack(capsule)

    versions: list[Any] = [None, (0, 5), (1, 0), (2,), (), "x", 5, [1, 0], ("a",)]
    dtypes = "float8_e5m2 float8_e4m3fn float8_e8m0fnu bits8 uint16 bool complex64 bfloat16".split()
    return tried(
        [
            *(lambda v=v: x.__dlpack__(max_version=v) for v in versions),
            *(lambda n=n: x.__dlpack__(dl_device=n) for n in ((1, 0), (1,), "x")),
            *(lambda n=n: x.__dlpack__(stream=n) for n in (None, -1, 1, "x")),
            *(lambda n=n: lib.from_dlpack(lib.empty(2, dtype=getattr(lib, n))).dtype for n in dtypes),
            lambda: x.__dlpack_device__(),
            lambda: x.to("meta").__dlpack_device__(),
            lambda: x.to("meta").__dlpack__(),
            lambda: x.to_sparse().__dlpack__(),
            used,
            lambda: lib.from_dlpack(x, device="cpu", copy=True).data_ptr() == x.data_ptr(),
            lambda: lib.from_dlpack(x, device="cpu", copy=False).data_ptr() == x.data_ptr(),
            lambda: lib.from_dlpack(x, device="meta"),
            lambda: lib.from_dlpack(x, device=5),
            lambda: lib.from_dlpack(x.__dlpack__(), copy=True),
            lambda: lib.from_dlpack(5),
            lambda: lib.from_dlpack(Old(), copy=True),
            lambda: lib.from_dlpack(Old(), device="cpu"),
            lambda: lib.from_dlpack(Wrong()),
            lambda: lib.from_dlpack(lib.ones(2, requires_grad=True)),
            lambda: numpy.from_dlpack(x).tolist(),
        ]
    )


@case
def states_of_old_pickles(lib: Any) -> Any:
    def with_state(state: Any) -> Any:
        x = lib.ones(2)
        x.__setstate__(state(x) if callable(state) else state)
        return x

    states: list[Any] = [5, "abc", (1, 2, 3), (1, 2, 3, 4, 5), (True, None, {})]
    states += [lambda x: (x.untyped_storage(), 0, (1,), (1,)), lambda x: (x + 1, 0, {}, True, {})]
    return tried([lambda s=s: with_state(s) for s in states])


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


@case
def assigned_scalars(lib: Any) -> Any:
    """NumPy's integers are numbers wherever they are assigned, its other scalars only if they are Python's too."""

    def assigned(key: Any, value: Any, dtype: str) -> Any:
        t = lib.ones((2, 3), dtype=getattr(lib, dtype))
        t[key] = value
        return t

    keys = [0, (True, 0), slice(1, None), ..., lib.tensor([[True, False, True]] * 2), (lib.tensor([0]),), (0, None, 1)]
    values = [numpy.int64(2), numpy.uint8(3), numpy.int8(-1), numpy.float64(2.5), numpy.float32(1.5), numpy.bool_(True)]
    values += [numpy.float16(1), numpy.complex64(1), numpy.complex128(1), "text", None, [1]]
    return tried(
        [
            lambda key=key, value=value, dtype=dtype: assigned(key, value, dtype)
            for key in keys
            for value in values
            for dtype in ("uint8", "int64", "float32", "bool", "complex64")
        ]
    )


class _Reflected:
    def __radd__(self, other: Any) -> str:
        return "added"

    def __rmatmul__(self, other: Any) -> str:
        return "multiplied"

    def __rpow__(self, other: Any) -> str:
        return "raised"


@case
def operands_of_other_kinds(lib: Any) -> Any:
    """By name, operators say that they do not know an operand; by their signs they ask it, and then refuse."""
    names = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift iadd isub imul itruediv".split()
    signs = [getattr(operator, f"{name}_" if name in ("and", "or") else name) for name in names]
    makers = [lib.ones, lambda n: lib.nn.Parameter(lib.ones(n)), lambda n: type("Mine", (lib.Tensor,), {})([1.0] * n)]
    others = [object(), "text", None, (1, 2), Fraction(1, 2), numpy.ones(2), _Reflected()]
    calls: list[Any] = []
    for make, other in itertools.product(makers, others):
        calls += [lambda n=n, m=make, x=other: repr(getattr(m(2), f"__{n}__")(x)) for n in names]
        if not isinstance(other, numpy.ndarray):  # which has the array's own functions take over
            calls += [lambda sign=sign, m=make, x=other: repr(sign(m(2), x)) for sign in signs]
    return tried(calls)


@pytest.mark.oracle
@pytest.mark.parametrize("name", case)
def test_as_pytorch(name: str, oracle: Any) -> None:
    assert outcome(lambda: case[name](torch)) == outcome(lambda: case[name](oracle))


@pytest.mark.parametrize("name", case)
def test_cases_run_without_an_oracle(name: str) -> None:
    case[name](torch)
