"""What `out=` may be (of another size, another dtype, a view, an input), and whether a row treats it as PyTorch's does.

Invariant: what PyTorch refuses is refused with the same exception and words, leaving the target as it was; what it
accepts has the same values, strides and warnings about resizing, and memory around a view stays as it was.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from .. import _oracle
from .._subject import IS_ORACLE
from .._subject import subject as torch
from . import _calls, _infos, _own
from ._place import CPU, Place


def cases() -> list[_infos.Covered]:
    """Every operator with an out= form; of those that draw random numbers all but the values is compared."""
    return [case for case in _infos.covered() if case.info.supports_out and case.row not in _own.NO_OUT]


def larger(t: Any) -> Any:
    """Has elements, and another shape."""
    return t.new_ones((*t.shape, 2))


def empty(t: Any) -> Any:
    """Has no elements, so that nobody minds."""
    return t.new_empty((0,))


def narrower(t: Any) -> Any:
    oracle = _oracle.load()
    return oracle.ones_like(t, dtype=oracle.uint8 if t.dtype == oracle.bool else oracle.int32)


def rounded(t: Any) -> Any:
    """The same kind of number in fewer bits, or more where there are no fewer."""
    return _oracle.load().ones_like(t, dtype=getattr(_oracle.load(), ROUNDED[_oracle.dtype_name(t.dtype)]))


ROUNDED = {
    "float64": "float32",
    "float32": "float64",
    "complex128": "complex64",
    "complex64": "complex128",
    "int64": "int16",
    "uint64": "int64",
    "int32": "int64",
    "uint8": "int8",
    "bool": "int8",
}


def wider(t: Any) -> Any:
    return _oracle.load().ones_like(t, dtype=_oracle.load().complex128)


def view(t: Any) -> Any:
    """Every second element of a longer row, behind an offset."""
    if t.dim() == 0:
        return t.new_ones(3)[1]
    return t.new_ones((*t.shape[:-1], 2 * t.shape[-1] + 1))[..., 1::2]


TARGETS: dict[str, Callable[[Any], Any]] = {
    "larger": larger,
    "empty": empty,
    "narrower": narrower,
    "wider": wider,
    "rounded": rounded,
    "view": view,
}


def attempt(function: Any, args: Any, kwargs: Any, place: Place = CPU) -> tuple[Any, list[str]]:
    """The result or failure, and what was said about resizing."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = place.call(function, args, kwargs)
        except Exception as error:  # every exception is an answer here
            result = _infos.Failure(type(error).__name__, str(error))
    return result, [str(w.message)[:80] for w in caught if "was resized" in str(w.message)]


def whole(t: Any) -> Any:
    """All the memory behind a tensor, as a tensor."""
    count = int(t.untyped_storage().nbytes()) // int(t.element_size())
    return t.detach().as_strided((count,), (1,), 0)


def check_target(case: _infos.Covered, target: str, place: Place = CPU) -> None:
    dtype = place.first_dtype(case)
    if dtype is None or target in _own.OTHER_TARGETS.get(case.info.name, {}):
        return
    oracle = _oracle.load()
    for call in _calls.of(case, dtype, 2, (_calls.OUT,)):
        where = f"{call.where} {target}"
        given = _oracle.tree_map(TARGETS[target], call.kwargs["out"], _oracle.is_oracle_tensor)
        kwargs = {**call.kwargs, "out": given}
        args, mine, my_kwargs = _infos.fresh(call.args), place.arguments(case, call.args), place.convert(kwargs)
        before = [_oracle.to_oracle(place.fetch(whole(t))) for t in _calls.tensors(my_kwargs["out"], torch.Tensor)]
        expected, said = attempt(call.theirs, args, kwargs)
        actual, my_said = attempt(call.ours, mine, my_kwargs, place)
        if place.refused(actual):
            continue
        targets = _calls.tensors(my_kwargs["out"], torch.Tensor)
        if isinstance(expected, _infos.Failure):
            _infos.refused_alike(actual, expected, where)
            if not IS_ORACLE:  # PyTorch's mean has written its sum by then
                left = [place.fetch(whole(t)) for t in targets]
                _oracle.assert_same(left, before, where=f"{where}, after the failure")
            continue
        assert not isinstance(actual, _infos.Failure), f"{where}: {actual}"
        assert my_said == said, f"{where}: {my_said}, expected {said}"
        assert all(left is right for left, right in zip(_calls.tensors(actual, torch.Tensor), targets)), where
        wanted = _calls.tensors(given, oracle.Tensor)
        # Cast into a wider target, a result is as precise as it was.
        precision = _oracle.dtype_name(_calls.tensors(call.kwargs["out"], oracle.Tensor)[0].dtype)
        if case.row not in _own.TIES | _own.RANDOM_ROWS | _own.UP_TO_SIGN:
            _oracle.assert_same(list(map(place.fetch, targets)), wanted, where=where, computed_in=precision)
            if target == "view":
                _oracle.assert_same(
                    [place.fetch(whole(t)) for t in targets],
                    [whole(t) for t in wanted],
                    where=f"{where}, around",
                    computed_in=precision,
                )
        else:
            assert list(map(_oracle.layout, targets)) == list(map(_oracle.layout, wanted)), where


INPUTS = {"input": 0, "other input": 1}


def check_input(case: _infos.Covered, which: str, place: Place = CPU) -> None:
    """The target is one of the inputs."""
    dtype = place.first_dtype(case)
    if dtype is None or which in _own.OTHER_TARGETS.get(case.info.name, {}):
        return
    at = INPUTS[which]
    oracle = _oracle.load()
    for call in _calls.of(case, dtype, 3, (_calls.OUT,)):
        given = call.kwargs["out"]
        if not isinstance(given, oracle.Tensor) or len(call.args) <= at or not isinstance(call.args[at], oracle.Tensor):
            continue
        if given.shape != call.args[at].shape or given.dtype != call.args[at].dtype:
            continue
        where = f"{call.where} out= is the {which}"
        args, mine = _infos.fresh(call.args), place.arguments(case, call.args)
        my_kwargs = place.convert(call.kwargs)
        expected, _ = attempt(call.theirs, args, {**call.kwargs, "out": args[at]})
        actual, _ = attempt(call.ours, mine, {**my_kwargs, "out": mine[at]}, place)
        if place.refused(actual):
            continue
        if isinstance(expected, _infos.Failure):
            _infos.refused_alike(actual, expected, where)
            continue
        assert not isinstance(actual, _infos.Failure), f"{where}: {actual}"
        assert actual is mine[at], where
        if case.row not in _own.TIES | _own.RANDOM_ROWS | _own.UP_TO_SIGN:
            _oracle.assert_same(place.fetch(actual), expected, where=where, computed_in=dtype)
