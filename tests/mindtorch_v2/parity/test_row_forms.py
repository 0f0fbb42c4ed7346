"""The forms of every row agree with each other, on the arguments that PyTorch's samples led to it.

What `_claims.py` saw is called again: in place, with out=, under `functionalize`, and on meta. Rows that users cannot
call by name, such as derivatives, are held to the same. Invariant: no row escapes; one that nothing here calls fails
the last test, or has its reason in `_own.py`.
"""

from __future__ import annotations

import functools
from typing import Any

import pytest

from .. import _oracle
from .._subject import IS_ORACLE, mindtorch_only, submodule
from .._subject import subject as torch
from . import _calls, _claims, _infos, _own

pytestmark = [pytest.mark.oracle, mindtorch_only]


def rows() -> list[str]:
    """Full names of all rows, in-place and out= forms included."""
    if IS_ORACLE or not _oracle.available():
        return []
    _infos.row_names()
    found = [op for op in submodule("_dispatch.registry").ops() if op.row is not None]
    return sorted(op.name for op in found if op.title() not in _own.SKIPPED_INFOS)


def arguments_of(name: str) -> list[tuple[Any, ...]]:
    _claims.everything()
    return _claims.CALLED.get(name, [])


def run(op: Any, args: tuple[Any, ...], functional: bool = False) -> Any:
    torch.manual_seed(0)
    if functional:
        with torch.functionalize():
            return _infos.attempt(op.call, (args,), {})
    return _infos.attempt(op.call, (args,), {})


def same(actual: Any, expected: Any, where: str, stride: bool = True) -> None:
    """Two results of the library under test."""
    if isinstance(expected, _infos.Failure):
        assert isinstance(actual, _infos.Failure) and actual.kind == expected.kind, f"{where}: {actual}, {expected}"
        return
    assert not isinstance(actual, _infos.Failure), f"{where}: {actual}"
    wanted = _oracle.tree_map(_oracle.to_oracle, expected, _oracle.is_subject_tensor)
    _oracle.assert_same(actual, wanted, where=where, stride=stride)


def agree(op: Any, args: tuple[Any, ...], where: str) -> Any:
    """A writing row does under `functionalize` what it does without: results, arguments, versions."""
    mine, other = _claims.copied(args), _claims.copied(args)
    eager, functional = run(op, mine), run(op, other, functional=True)
    same(functional, eager, f"{where} functionalized")
    left, right = (_calls.tensors(given, torch.Tensor) for given in (mine, other))
    same(right, left, f"{where} functionalized, arguments")
    assert [t._version for t in right] == [t._version for t in left], f"{where}: versions"
    for target, made in zip(_written(op, other), _calls.tensors(functional, torch.Tensor)):
        assert made is target, f"{where} functionalized: returned something else"
    return eager, mine


def _written(op: Any, args: tuple[Any, ...]) -> list[Any]:
    return [t for a, value in zip(op.schema.args, args) if a.mutates for t in _calls.tensors(value, torch.Tensor)]


def fits(target: Any, wanted: Any) -> bool:
    """Whether a result may be written to this tensor."""
    if tuple(target.shape) != tuple(wanted.shape) or not torch.can_cast(wanted.dtype, target.dtype):
        return False
    return all(stride != 0 or size == 1 for size, stride in zip(target.shape, target.stride()))


def check_inplace(op: Any, args: tuple[Any, ...], wanted: Any) -> None:
    form = op.row.inplace_op
    where = f"{form.name}{_shown(args)}"
    eager, mine = agree(form, args, where)
    if not fits(args[0], wanted):
        assert isinstance(eager, _infos.Failure), f"{where}: wrote what does not fit"
        return
    assert eager is mine[0], f"{where}: {eager}"
    assert eager._version == 1, f"{where}: version {eager._version}"
    same(eager, wanted.to(args[0].dtype), where, stride=False)


def check_out(op: Any, args: tuple[Any, ...], wanted: Any) -> None:
    form = op.row.out_op
    results = _calls.tensors(wanted, torch.Tensor)
    where = f"{form.name}{_shown(args)}"
    eager, mine = agree(form, (*args, *(torch.ones_like(t) for t in results)), where)
    assert not isinstance(eager, _infos.Failure), f"{where}: {eager}"
    for left, right in zip(_calls.tensors(eager, torch.Tensor), mine[len(args):]):
        assert left is right, f"{where}: returned something else"
    same(list(mine[len(args):]), results, where)


def check_meta(op: Any, args: tuple[Any, ...], wanted: Any) -> None:
    on_meta = _oracle.tree_map(_oracle.as_meta, args, _oracle.is_subject_tensor)
    on_meta = tuple(torch.device("meta") if a.kind == "Device" else v for a, v in zip(op.schema.args, on_meta))
    made = run(op, on_meta)
    where = f"{op.name}{_shown(args)} on meta"
    if isinstance(wanted, _infos.Failure):
        assert isinstance(made, _infos.Failure) and made.kind == wanted.kind, f"{where}: {made}, expected {wanted}"
        return
    assert not isinstance(made, _infos.Failure), f"{where}: {made}"
    got, want = ([_oracle.layout(t) for t in _calls.tensors(v, torch.Tensor)] for v in (made, wanted))
    assert got == want, where


def _shown(args: tuple[Any, ...]) -> str:
    return str(_oracle.tree_map(lambda t: f"{_oracle.dtype_name(t.dtype)}{list(t.shape)}", args,
                                _oracle.is_subject_tensor))


@functools.cache
def check(name: str) -> str:
    """What is wrong with the row, or nothing."""
    op = submodule("_dispatch.registry").get(name)
    try:
        for args in arguments_of(name):
            _check_call(op, args)
    except AssertionError as error:
        return str(error) or "an assertion failed"
    return ""


def _check_call(op: Any, args: tuple[Any, ...]) -> None:
    row = op.row
    if op.schema.is_mutable:
        agree(op, args, f"{op.name}{_shown(args)}")
        return
    wanted = run(op, _claims.copied(args))
    random = op.title() in _own.RANDOM_ROWS or any(a.kind == "Generator" for a in op.schema.args)
    if op.title() not in _own.NEEDS_VALUES and op.composite is None:
        check_meta(op, args, wanted)
    if isinstance(wanted, _infos.Failure) or random:
        return
    if row.inplace_op is not None and isinstance(args[0], torch.Tensor):
        check_inplace(op, args, wanted)
    if row.out_op is not None:
        check_out(op, args, wanted)


@pytest.mark.parametrize("name", rows())
def test_forms_agree(name: str) -> None:
    assert check(name) == ""


def test_every_row_was_called() -> None:
    for name in rows():
        check(name)
    found = [op for op in submodule("_dispatch.registry").ops() if op.row is not None]
    idle = {op.name for op in found if not op.ready}
    assert sorted(idle) == sorted(_own.NEVER_CALLED)
