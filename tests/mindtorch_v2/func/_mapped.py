"""`vmap` of an operator over each of its tensor arguments, beside calling it once for each of the many.

Invariant: the many differ from each other where the operator takes floats, so that a rule that mixes them up is seen.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .. import _oracle
from .._subject import subject as torch
from ..parity import _infos, _own

MANY = 2
# Two of the many that are tangled differ by more.
RELATIVE = {"float32": 2e-4, "float64": 1e-8, "complex64": 2e-4}


class Difference(NamedTuple):
    where: str
    text: str


class Nest(NamedTuple):
    """Arguments of a call: tensors apart, and how they are put back."""

    tensors: list[Any]
    build: Callable[[Any], tuple[Any, Any]]


def nest(args: Any, kwargs: Any, library: Any) -> Nest:
    found: list[Any] = []

    def take(t: Any) -> int:
        found.append(t)
        return len(found) - 1

    class Place(int):
        pass

    kept = _oracle.tree_map(lambda t: Place(take(t)), [args, kwargs], lambda v: isinstance(v, library.Tensor))

    def build(tensors: Any) -> tuple[Any, Any]:
        put = _oracle.tree_map(lambda i: tensors[int(i)], kept, lambda v: isinstance(v, Place))
        return put[0], put[1]

    return Nest(found, build)


def variants(count: int) -> Iterator[tuple[int, ...]]:
    """Which tensors are many: each alone, and all."""
    for i in range(min(count, 4)):
        yield (i,)
    if 1 < count <= 8:
        yield tuple(range(count))


def spread(t: Any, dim: int) -> Any:
    """Many tensors like `t`, along `dim`."""
    other = t * 0.97 if t.dtype.is_floating_point else t
    return torch.stack([t, other.to(t.dtype)], dim)


def flat(value: Any, library: Any) -> list[Any]:
    found: list[Any] = []
    _oracle.tree_map(found.append, [value], lambda v: isinstance(v, library.Tensor))
    return found


def mapped(fn: Any, build: Any, tensors: list[Any], which: tuple[int, ...], dim: int, library: Any) -> Any:
    def one(*given: Any) -> Any:
        args, kwargs = build(list(given))
        return tuple(flat(fn(*args, **kwargs), library))

    dims = tuple(dim if i in which else None for i in range(len(tensors)))
    return library.func.vmap(one, in_dims=dims, randomness="different")(*tensors)


def differences(case: _infos.Covered, dtype: str, count: int, most: int = 6) -> Iterator[Difference | None]:
    """What differs for up to `count` samples; None for each call that does not."""
    fn = _infos.in_subject(case.info)
    for sample in _infos.samples(case.info, dtype, count=count):
        args, kwargs = _infos.arguments(sample)
        kwargs.pop("out", None)
        ours = nest(_oracle.convert_argument(args), _oracle.convert_argument(kwargs), torch)
        for n, which in enumerate(variants(len(ours.tensors))):
            if n >= most:
                break
            where = f"{case.label} {dtype} {_infos.describe(sample)} over {which}"
            found = _compared(case, fn, ours, which, -1 if n % 2 else 0, where)
            if found is not SKIPPED:
                yield found


SKIPPED = Difference("", "")


def _compared(case: _infos.Covered, fn: Any, ours: Nest, which: tuple[int, ...], dim: int, where: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        many = [spread(t, dim) if i in which else t.clone() for i, t in enumerate(ours.tensors)]
        singles = []
        for b in range(MANY):
            one = [t.select(dim, b).clone() if i in which else t.clone() for i, t in enumerate(many)]
            args, kwargs = ours.build(one)
            got = _infos.attempt(fn, args, kwargs)
            if isinstance(got, _infos.Failure):
                return SKIPPED
            singles.append(flat(got, torch))
        if not singles[0]:
            return SKIPPED
        given = [t.clone() for t in many]
        found = _infos.attempt(lambda: mapped(fn, ours.build, given, which, dim, torch), (), {})
        if isinstance(found, _infos.Failure):
            return None if _refused_by_oracle(case, many, ours, which, dim) else Difference(where, str(found))
    if len(found) != len(singles[0]):
        return Difference(where, f"{len(found)} results, expected {len(singles[0])}")
    for k, got in enumerate(found):
        text = _unequal(case, got, [s[k] for s in singles])
        if text:
            return Difference(where, f"result {k}: {text}")
    return None


def _unequal(case: _infos.Covered, got: Any, each: list[Any]) -> str:
    if any(one.shape != each[0].shape for one in each):
        return ""
    wanted = torch.stack(each)
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return f"{got.dtype} {tuple(got.shape)}, expected {wanted.dtype} {tuple(wanted.shape)}"
    if case.row in _own.RANDOM_ROWS or case.row.startswith("fractional"):
        return ""
    precision = RELATIVE.get(str(wanted.dtype).rpartition(".")[2], 2e-2)
    if not torch.allclose(got, wanted, rtol=precision, atol=precision, equal_nan=True):
        return f"values differ: {got.flatten()[:6]} expected {wanted.flatten()[:6]}"
    return ""


def _refused_by_oracle(case: _infos.Covered, many: list[Any], ours: Nest, which: tuple[int, ...], dim: int) -> bool:
    """Whether PyTorch refuses the same call."""
    oracle = _oracle.load()
    theirs = _infos.in_oracle(case.info)
    args, kwargs = ours.build([_oracle.to_oracle(t) for t in many])
    there = nest(_to_oracle(args), _to_oracle(kwargs), oracle)
    given = _infos.attempt(lambda: mapped(theirs, there.build, there.tensors, which, dim, oracle), (), {})
    return isinstance(given, _infos.Failure)


def _to_oracle(value: Any) -> Any:
    """Dtypes and the like as the oracle has them."""
    return _oracle.tree_map(
        lambda v: getattr(_oracle.load(), _oracle.dtype_name(v)), value, lambda v: isinstance(v, torch.dtype)
    )
