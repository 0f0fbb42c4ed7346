"""Looks at every operator that samples reach, below autograd: is its schema true, and which arguments did it get.

Samples are PyTorch's, in their functional, in-place and out= forms and under the operator's other names, with first and
second derivatives, so that rows without a public name are reached too; and those of `_own.py`.
Invariant: everything is run once in a process and place, however many tests ask.
"""

from __future__ import annotations

import ctypes
from typing import Any

from .. import _oracle
from .._subject import subject as torch
from .._subject import submodule
from . import _calls, _infos, _lists, _own, _place
from ._place import Place
from .test_gradients import DTYPE, leaves

CASES = _infos.covered()
OWN = [*_own.SAMPLES, *_lists.rows()]
# Enough calls of a row to see it with and without its optional arguments.
KEPT = 3
# Their second derivatives take seconds.
SLOW = frozenset("ctc_loss grid_sampler_3d grid_sampler_2d".split())


def storage(t: Any) -> int:
    """Where the memory of a tensor is; 0 where it has none, which is shared with nobody."""
    return int(t.untyped_storage().data_ptr())


def content(t: Any) -> bytes:
    """Every byte of the memory behind a tensor."""
    memory = t.untyped_storage()
    if t.device.type == "meta" or not memory.nbytes():
        return b""
    if t.device.type != "cpu":
        count = memory.nbytes() // t.element_size()
        memory = t.detach().as_strided((count,), (1,), 0).cpu().untyped_storage()
    return ctypes.string_at(memory.data_ptr(), memory.nbytes())


def shares(a: Any, b: Any) -> bool:
    return storage(a) != 0 and storage(a) == storage(b)


class Truth(submodule("utils._python_dispatch").TorchDispatchMode):
    """Compares every operator's schema with what a call of it did."""

    def __init__(self, place: Place, called: dict[str, list[tuple[Any, ...]]]) -> None:
        super().__init__()
        self.place = place
        self.called = called
        self.wrong: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        schema = func._op.schema
        named = dict(zip((a.name for a in schema.args), args)) | kwargs
        given = [(a, t) for a in schema.args for t in _calls.tensors(named.get(a.name), torch.Tensor)]
        kept = [(a, t, content(t), t._version) for a, t in given if not a.mutates]
        self.keep(func._op, tuple(named.get(a.name, a.default) for a in schema.args))
        result = func(*args, **kwargs)
        written = {storage(t) for a, t in given if a.mutates}
        for a, t, before, version in kept:
            if storage(t) in written:
                continue  # out= may be an input of its own
            self.expect(func, content(t) == before, f"wrote to '{a.name}'")
            self.expect(func, t._version == version, f"moved the version of '{a.name}'")
        self.look_at_results(func, schema, given, result)
        return result

    def keep(self, op: Any, args: tuple[Any, ...]) -> None:
        kept = self.called.setdefault(op.name, [])
        if len(kept) < KEPT:
            given = tuple(tuple(v) if type(v) is list else v for v in args)
            kept.append(_oracle.tree_map(self.place.copied, given, _oracle.is_subject_tensor))

    def look_at_results(self, func: Any, schema: Any, given: Any, result: Any) -> None:
        new: list[Any] = []
        many = result if len(schema.returns) > 1 else [result]
        for declared, value in zip(schema.returns, many):
            for t in _calls.tensors(value, torch.Tensor):
                if declared.alias == "":
                    self.expect(func, not any(shares(t, other) for _, other in given), "a new result shares memory")
                    self.expect(func, t._base is None, "a new result is a view")
                    self.expect(func, not any(shares(t, other) for other in new), "two results share memory")
                    new.append(t)
                    continue
                # `Tensor(a -> *)` lends its memory to a list of views.
                sources = [other for a, other in given if a.alias and a.alias[0] == declared.alias[0]]
                if declared.mutates:
                    self.expect(func, any(t is other for other in sources), "did not return what it wrote to")
                else:
                    self.expect(func, storage(t) == storage(sources[0]), "a view has other memory")
                    whole = sources[0] if sources[0]._base is None else sources[0]._base
                    if func._op.name not in _own.TRACKS_NO_BASE:
                        self.expect(func, t._base is whole, f"a view has another base: {t._base}")

    def expect(self, func: Any, holds: bool, text: str) -> None:
        if not holds and func._op.title() not in _own.SILENT:
            self.wrong.append(f"{func}: {text}")


def twice(result: Any, args: Any, kwargs: Any) -> None:
    """First and second derivatives."""
    for order in (1, 2):
        results, inputs = leaves(result, torch.Tensor), leaves([args, kwargs], torch.Tensor)
        if not results or not inputs:
            return
        if order == 2:
            _infos.attempt(
                torch.autograd.grad, (results, inputs, [torch.ones_like(r) for r in results]), {"allow_unused": True}
            )
            return
        weights = [torch.ones_like(r).requires_grad_() for r in results]
        result = _infos.attempt(
            torch.autograd.grad, (results, inputs, weights), {"allow_unused": True, "create_graph": True}
        )
        kwargs = {**kwargs, "": weights}


class Look:
    """Runs the samples in one place and remembers what was untrue, and which arguments each operator got.

    counts: samples of the functional form, of the in-place and out= forms, and of derivatives.
    """

    def __init__(self, place: Place, counts: tuple[int, int, int], derived: str) -> None:
        self.place = place
        self.counts = counts
        self.derived = derived
        # By an operator's full name: arguments in the order of its schema.
        self.called: dict[str, list[tuple[Any, ...]]] = {}
        self.cases: dict[int, tuple[str, ...]] = {}
        self.own: dict[str, tuple[str, ...]] = {}

    def at(self, position: int) -> tuple[str, ...]:
        """What was untrue while everything about this case ran."""
        if position not in self.cases:
            truth = Truth(self.place, self.called)
            with truth:
                self._run(CASES[position])
            self.cases[position] = tuple(truth.wrong)
        return self.cases[position]

    def _run(self, case: _infos.Covered) -> None:
        dtype = self.place.first_dtype(case)
        plain, written, derived = self.counts
        if dtype is not None:
            for call in (
                *_calls.of(case, dtype, plain, (_calls.FUNCTIONAL,)),
                *_calls.of(case, dtype, written, (_calls.IN_PLACE, _calls.OUT)),
                *_calls.under_other_names(case, dtype),
            ):
                self._call(case, call)
        if case.info.supports_autograd and _infos.supported(case.info, self.derived):
            count = 1 if case.row in SLOW else derived
            for call in _calls.of(case, self.derived, count, (_calls.FUNCTIONAL,), requires_grad=True):
                twice(*self._call(case, call))

    def _call(self, case: _infos.Covered, call: _calls.Call) -> tuple[Any, Any, Any]:
        args, kwargs = self.place.arguments(case, call.args), self.place.convert(call.kwargs)
        return self.place.run(call.ours, args, kwargs), args, kwargs

    def at_own(self, row: str) -> tuple[str, ...]:
        if row not in self.own:
            truth = Truth(self.place, self.called)
            with truth:
                for call in _own.SAMPLES.get(row) or _lists.samples(row):
                    self.place.run(call, (torch,), {})
            self.own[row] = tuple(truth.wrong)
        return self.own[row]

    def everything(self) -> None:
        """Run all there is; afterwards `called` is complete."""
        for position in range(len(CASES)):
            self.at(position)
        for row in OWN:
            self.at_own(row)

    def copied(self, args: Any) -> Any:
        """Arguments that nobody else holds, with the layout they had."""
        return _oracle.tree_map(self.place.copied, args, _oracle.is_subject_tensor)


CPU = Look(_place.CPU, (8, 2, 3), DTYPE)
