"""Calls a row's forms on arguments that `_claims.py` saw, on one device: in place, with out=, under `functionalize`,
and on meta.

Invariant: a row's functional form decides; its other forms must give the same values, and write what they return.
"""

from __future__ import annotations

from typing import Any

from .. import _oracle
from .._subject import subject as torch
from .._subject import submodule
from . import _calls, _claims, _infos, _own


def fits(target: Any, wanted: Any) -> bool:
    """Whether a result may be written to this tensor."""
    if tuple(target.shape) != tuple(wanted.shape) or not torch.can_cast(wanted.dtype, target.dtype):
        return False
    return all(stride != 0 or size == 1 for size, stride in zip(target.shape, target.stride()))


def written(op: Any, args: tuple[Any, ...]) -> list[Any]:
    return [t for a, value in zip(op.schema.args, args) if a.mutates for t in _calls.tensors(value, torch.Tensor)]


def shown(args: tuple[Any, ...]) -> str:
    return str(
        _oracle.tree_map(lambda t: f"{_oracle.dtype_name(t.dtype)}{list(t.shape)}", args, _oracle.is_subject_tensor)
    )


def _layout(t: Any) -> Any:
    """What meta decides; a tensor without elements has no addresses, so its strides say nothing."""
    shape, stride, dtype = _oracle.layout(t)
    return shape, stride if t.numel() else (), dtype


class Forms:
    """The forms of every row that a `Look` has seen."""

    def __init__(self, look: _claims.Look) -> None:
        self.look = look
        self.found: dict[str, str] = {}

    def check(self, name: str) -> str:
        """What is wrong with the row, or nothing."""
        if name not in self.found:
            op = submodule("_dispatch.registry").get(name)
            self.look.everything()
            self.found[name] = ""
            try:
                for args in self.look.called.get(name, []):
                    # A mode is shown factories by PyTorch's overloads: `eye(n)`, where the row has `eye(n, m)`.
                    if len(args) == len(op.schema.args):
                        self._check_call(op, args)
            except AssertionError as error:
                self.found[name] = str(error) or "an assertion failed"
        return self.found[name]

    def _check_call(self, op: Any, args: tuple[Any, ...]) -> None:
        row = op.row
        if op.schema.is_mutable:
            self.agree(op, args, f"{op.name}{shown(args)}")
            return
        wanted = self.run(op, self.look.copied(args))
        if self.look.place.refused(wanted):
            return
        random = op.title() in _own.RANDOM_ROWS or any(a.kind == "Generator" for a in op.schema.args)
        if op.title() not in _own.NEEDS_VALUES and op.composite is None:
            self.check_meta(op, args, wanted)
        if isinstance(wanted, _infos.Failure) or random:
            return
        if row.inplace_op is not None and isinstance(args[0], torch.Tensor):
            self.check_inplace(op, args, wanted)
        if row.out_op is not None:
            self.check_out(op, args, wanted)

    def run(self, op: Any, args: tuple[Any, ...], functional: bool = False) -> Any:
        torch.manual_seed(0)
        if functional:
            with torch.functionalize():
                return _infos.attempt(op.call, (args,), {})
        return _infos.attempt(op.call, (args,), {})

    def same(self, actual: Any, expected: Any, where: str, stride: bool = True) -> None:
        """Two results of the library under test."""
        if isinstance(expected, _infos.Failure):
            assert isinstance(actual, _infos.Failure) and actual.kind == expected.kind, f"{where}: {actual}, {expected}"
            return
        assert not isinstance(actual, _infos.Failure), f"{where}: {actual}"
        fetch = self.look.place.fetch
        mine, wanted = (_oracle.tree_map(fetch, value, _oracle.is_subject_tensor) for value in (actual, expected))
        wanted = _oracle.tree_map(_oracle.to_oracle, wanted, _oracle.is_subject_tensor)
        _oracle.assert_same(mine, wanted, where=where, stride=stride)

    def agree(self, op: Any, args: tuple[Any, ...], where: str) -> Any:
        """A writing row does under `functionalize` what it does without: results, arguments, versions."""
        mine, other = self.look.copied(args), self.look.copied(args)
        eager, functional = self.run(op, mine), self.run(op, other, functional=True)
        self.same(functional, eager, f"{where} functionalized")
        left, right = (_calls.tensors(given, torch.Tensor) for given in (mine, other))
        self.same(right, left, f"{where} functionalized, arguments")
        assert [t._version for t in right] == [t._version for t in left], f"{where}: versions"
        results = _calls.tensors(functional, torch.Tensor)
        # Written beside its results, such as running statistics, are arguments before them.
        for target, made in zip(written(op, other)[-len(results) :], results):
            assert made is target, f"{where} functionalized: returned something else"
        return eager, mine

    def check_inplace(self, op: Any, args: tuple[Any, ...], wanted: Any) -> None:
        form = op.row.inplace_op
        where = f"{form.name}{shown(args)}"
        eager, mine = self.agree(form, args, where)
        if not fits(args[0], wanted):
            assert isinstance(eager, _infos.Failure), f"{where}: wrote what does not fit"
            return
        assert eager is mine[0], f"{where}: {eager}"
        before = self.look.copied(args[0])._version
        assert eager._version == before + 1, f"{where}: the version moved by {eager._version - before}"
        self.same(eager, wanted.to(args[0].dtype), where, stride=False)

    def check_out(self, op: Any, args: tuple[Any, ...], wanted: Any) -> None:
        form = op.row.out_op
        results = _calls.tensors(wanted, torch.Tensor)
        where = f"{form.name}{shown(args)}"
        targets = tuple(torch.ones_like(t) for t in results)
        listed = op.schema.returns[0].is_list
        eager, mine = self.agree(form, (*args, targets) if listed else (*args, *targets), where)
        assert not isinstance(eager, _infos.Failure), f"{where}: {eager}"
        for left, right in zip(_calls.tensors(eager, torch.Tensor), mine[len(args) :]):
            assert left is right, f"{where}: returned something else"
        self.same(_calls.tensors(mine[len(args) :], torch.Tensor), results, where)

    def check_meta(self, op: Any, args: tuple[Any, ...], wanted: Any) -> None:
        on_meta = _oracle.tree_map(_oracle.as_meta, args, _oracle.is_subject_tensor)
        on_meta = tuple(torch.device("meta") if a.kind == "Device" else v for a, v in zip(op.schema.args, on_meta))
        made = self.run(op, on_meta)
        where = f"{op.name}{shown(args)} on meta"
        if isinstance(wanted, _infos.Failure):
            assert isinstance(made, _infos.Failure) and made.kind == wanted.kind, f"{where}: {made}, expected {wanted}"
            return
        assert not isinstance(made, _infos.Failure), f"{where}: {made}"
        if op.name in _own.OTHER_ON_META:
            return
        got, want = ([_layout(t) for t in _calls.tensors(v, torch.Tensor)] for v in (made, wanted))
        assert got == want, where
