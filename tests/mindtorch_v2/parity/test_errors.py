"""Wrong calls from PyTorch's own table: the same exception, in the same words, on cpu; and on meta.

Invariant: a call that PyTorch refuses is refused with the type of exception a caller may catch and the text a user
reads. Inputs that share memory are compared in `bad_calls/test_bad_calls.py`.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from .. import _oracle
from . import _infos, _own
from .test_forms import _to_meta

pytestmark = pytest.mark.oracle

COUNT = 30


def with_errors() -> list[_infos.Covered]:
    return [case for case in _infos.covered() if case.info.error_inputs_func is not None]


def _share_memory(value: Any) -> bool:
    found: list[Any] = []
    _oracle.tree_map(found.append, value, _oracle.is_oracle_tensor)
    storages = [tensor.untyped_storage().data_ptr() for tensor in found if tensor.layout == _oracle.load().strided]
    return len(set(storages)) < len(storages)


@pytest.mark.parametrize("case", with_errors(), ids=lambda case: case.label)
def test_error_types(case: _infos.Covered) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrong = [entry.sample_input for _, entry in zip(range(COUNT), case.info.error_inputs_func(case.info, "cpu"))]
    for sample in wrong:
        args, kwargs = _infos.arguments(sample)
        if _share_memory([args, kwargs]):
            continue  # a tensor that crosses gets a storage of its own
        if case.info.name.startswith("__r") and not isinstance(args[0], _oracle.load().Tensor):
            continue  # a method called on a number: Python checks that, for methods written in C only
        mine = _oracle.convert_argument(args), _oracle.convert_argument(kwargs)
        expected = _infos.attempt(_infos.in_oracle(case.info), args, kwargs)
        if not isinstance(expected, _infos.Failure):
            continue  # only the generator of error inputs thought so
        actual = _infos.attempt(_infos.in_subject(case.info), *mine)
        where = f"{case.label} {_infos.describe(sample)}"
        _infos.refused_alike(actual, expected, where)


@pytest.mark.parametrize("case", with_errors(), ids=lambda case: case.label)
def test_meta_refuses_what_cpu_refuses(case: _infos.Covered) -> None:
    """What is wrong with values alone meta cannot see: there it must do as PyTorch's meta device does."""
    if case.row in _own.OTHER_META_ERRORS:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrong = [entry.sample_input for _, entry in zip(range(10), case.info.error_inputs_func(case.info, "cpu"))]
    function = _infos.in_subject(case.info)
    for sample in wrong:
        args, kwargs = _infos.arguments(sample)
        if _share_memory([args, kwargs]):
            continue
        mine = _oracle.convert_argument(args), _oracle.convert_argument(kwargs)
        on_cpu, on_meta = _infos.attempt(function, *mine), _infos.attempt(function, *map(_to_meta, mine))
        if not isinstance(on_cpu, _infos.Failure):
            continue
        where = f"{case.label} {_infos.describe(sample)} on meta"
        if isinstance(on_meta, _infos.Failure) and on_meta.kind == on_cpu.kind:
            continue
        theirs = _infos.attempt(
            _infos.in_oracle(case.info),
            *(_oracle.tree_map(lambda t: t.to("meta"), value, _oracle.is_oracle_tensor) for value in (args, kwargs)),
        )
        expected = theirs.kind if isinstance(theirs, _infos.Failure) else "no exception"
        actual = on_meta.kind if isinstance(on_meta, _infos.Failure) else "no exception"
        assert actual == expected, f"{where}: {on_meta}, expected {on_cpu} as on cpu, or as in PyTorch: {theirs}"
