"""Every form of every row as a call that can be made in either library: functional, in place, and with out=.

Invariant: arguments come fresh for every call, in a storage of their own each, so that a call may write to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .. import _oracle
from .._subject import subject as torch
from . import _infos, _own

FUNCTIONAL, IN_PLACE, OUT = "functional", "in place", "out="
FIRST = ("float64", "int64", "bool", "float32", "complex64")


class Call(NamedTuple):
    """One call: `form` says which; `args` and `kwargs` are the oracle's."""

    form: str
    where: str
    theirs: Callable[..., Any]
    ours: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def in_oracle(self) -> tuple[Any, Any, Any]:
        """The result (or a Failure), and the arguments as the call left them."""
        args, kwargs = _infos.fresh(self.args), _infos.fresh(self.kwargs)
        return _infos.attempt(self.theirs, args, kwargs), args, kwargs

    def in_subject(self, convert: Callable[[Any], Any] = _oracle.convert_argument) -> tuple[Any, Any, Any]:
        args, kwargs = convert(self.args), convert(self.kwargs)
        return _infos.attempt(self.ours, args, kwargs), args, kwargs


def first_dtype(case: _infos.Covered) -> str | None:
    return next((name for name in FIRST if _infos.supported(case.info, name)), None)


def of(
    case: _infos.Covered,
    dtype: str,
    count: int,
    forms: tuple[str, ...] = (FUNCTIONAL, IN_PLACE, OUT),
    requires_grad: bool = False,
) -> Iterator[Call]:
    """Calls of up to `count` samples; a form that PyTorch refuses for a sample is left out."""
    info = case.info
    method = getattr(torch.Tensor, info.name.rpartition(".")[2] + "_", None)
    for sample in _infos.samples(info, dtype, requires_grad, count):
        args, kwargs = _infos.arguments(sample)
        kwargs.pop("out", None)
        where = f"{case.label} {dtype} {_infos.describe(sample)}"
        functional = Call(FUNCTIONAL, where, _infos.in_oracle(info), _infos.in_subject(info), args, kwargs)
        if FUNCTIONAL in forms:
            yield functional
        if (
            IN_PLACE in forms
            and info.inplace_variant is not None
            and method is not None
            and args
            and isinstance(args[0], _oracle.load().Tensor)
            and not sample.broadcasts_input
        ):
            yield Call(IN_PLACE, f"{where} in place", info.inplace_variant, method, args, kwargs)
        if OUT in forms and info.supports_out and case.row not in _own.NO_OUT:
            given = targets(functional.in_oracle()[0])
            if given is not None:
                call = Call(OUT, f"{where} out=", functional.theirs, functional.ours, args, {**kwargs, "out": given})
                yield call


def under_other_names(case: _infos.Covered, dtype: str) -> Iterator[Call]:
    """One call of each form under each name that PyTorch's table lists as an alias: `arccos` of `acos`."""
    for alias in case.info.aliases:
        named = _infos.Covered(case.row, Renamed(case.info, alias))
        if _infos.in_subject(named.info) is not None:
            yield from of(named, dtype, 1)


class Renamed:
    """An OpInfo under another of its names."""

    def __init__(self, info: Any, alias: Any) -> None:
        self._info = info
        self.name = alias.name
        self.op = alias.op
        self.inplace_variant = alias.inplace_variant

    def __getattr__(self, name: str) -> Any:
        return getattr(self._info, name)


def targets(expected: Any) -> Any:
    """What out= may be for results like these: the same shapes and dtypes, filled with ones. None if no tensors."""
    oracle = _oracle.load()
    if isinstance(expected, oracle.Tensor):
        return oracle.ones_like(expected, requires_grad=False)
    if isinstance(expected, (list, tuple)) and expected and all(isinstance(t, oracle.Tensor) for t in expected):
        return tuple(oracle.ones_like(t, requires_grad=False) for t in expected)
    return None


def tensors(value: Any, kind: Any) -> list[Any]:
    """Every tensor in a nest, in order."""
    found: list[Any] = []
    _oracle.tree_map(found.append, [value], lambda item: isinstance(item, kind))
    return found
