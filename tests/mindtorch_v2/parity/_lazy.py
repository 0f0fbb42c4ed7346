"""Calls with conjugate and negative views for arguments, in either library.

Invariant: both libraries get the same memory and the same bits; a call is alike when values, strides, the bits of the
results, what they share memory with, what was written to the memory below, and gradients are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .. import _oracle
from .._subject import subject as torch
from . import _infos, _own

# Which bits are set, and on tensors of which dtype.
KINDS = (("conj", "complex128"), ("neg", "float64"), ("both", "complex128"))
# What differs from PyTorch with these arguments, and why.
OTHERS = {
    "addbmm": "PyTorch resizes the copy of a lazy tensor that is written to, where it refuses the tensor itself",
    "cov": "infinities: a factor of zero is divided in another place",
    "linalg.lu_solve": "PyTorch leaves the result of some adjoint systems conjugated",
    "linalg.norm-subgradients_at_zero": "the nuclear norm of zeros has no gradient",
    "linalg.solve_triangular": "PyTorch lays the result of an adjoint system out by rows",
}
# Calls that PyTorch refuses and we serve, because the operator is made of others here.
SERVED = "fallback does not support operators with more than one mutable tensors"


class Side:
    """One library: makes lazy arguments and takes a call apart."""

    def __init__(self, library: Any, kind: str) -> None:
        self.library = library
        self.kind = kind
        self.memory: list[Any] = []

    def lazy(self, t: Any) -> Any:
        """A view that is read as the sample is, where its memory can be written; else as its opposite."""
        wants = t.requires_grad
        made = _oracle.transfer(t.detach(), self.library)
        if not (made.is_floating_point() or made.is_complex()):
            return made
        for kind, write in (("conj", "conj_physical_"), ("neg", "neg_")):
            if self.kind in (kind, "both") and (kind == "neg" or made.is_complex()):
                try:
                    getattr(made, write)()
                except RuntimeError:
                    pass  # an expanded tensor
        made.requires_grad_(wants)
        self.memory.append(made)
        if self.kind in ("conj", "both"):
            made = made.conj()
        return made._neg_view() if self.kind in ("neg", "both") else made

    def arguments(self, sample: Any, convert: Callable[[Any], Any]) -> Any:
        def leaf(value: Any) -> Any:
            return self.lazy(value) if _oracle.is_oracle_tensor(value) else convert(value)

        return _oracle.tree_map(leaf, _infos.arguments(sample), _oracle._is_leaf)

    def shared(self, t: Any) -> int:
        """Which argument a result shares memory with; -1 for none."""
        found = t.untyped_storage().data_ptr()
        places = [m.untyped_storage().data_ptr() if m.numel() else None for m in self.memory]
        return places.index(found) if t.numel() and found in places else -1

    def tensors(self, value: Any) -> list[Any]:
        found: list[Any] = []
        _oracle.tree_map(found.append, [value], lambda x: isinstance(x, self.library.Tensor))
        return found

    def said(self, t: Any) -> tuple[bool, bool, int]:
        if t.layout != self.library.strided:
            return False, False, -1
        return t.is_conj(), t.is_neg(), self.shared(t)

    def gradients(self, results: list[Any]) -> Any:
        outputs = [t for t in results if t.requires_grad]
        inputs = [m for m in self.memory if m.requires_grad]
        if not outputs or not inputs:
            return []
        weights = [self.library.ones_like(t, dtype=t.dtype) for t in outputs]
        return _infos.attempt(
            lambda: list(self.library.autograd.grad(outputs, inputs, weights, allow_unused=True)), (), {}
        )


def verdicts(case: _infos.Covered, kind: str, dtype: str, count: int) -> Iterator[str]:
    """What differs from PyTorch, for each sample of an operator."""
    info, oracle = case.info, _oracle.load()
    grads = info.supports_autograd and case.row not in _own.OTHER_GRADIENTS
    calls = [(_infos.in_oracle(info), _infos.in_subject(info), "", grads)]
    method = getattr(torch.Tensor, f"{info.name}_", None)
    if info.inplace_variant is not None and method is not None:
        calls.append((info.inplace_variant, method, " in place", False))
    for sample in _infos.samples(info, dtype, requires_grad=grads, count=count):
        for theirs, ours, how, differentiates in calls:
            where = f"{case.label}{how} {kind} {_infos.describe(sample)}"
            expected, actual = Side(oracle, kind), Side(torch, kind)
            args, kwargs = expected.arguments(sample, lambda x: x)
            mine_args, mine_kwargs = actual.arguments(sample, _oracle.convert_argument)
            if how:
                for side in (expected, actual):
                    for m in side.memory:
                        m.detach_()
                args, mine_args = ([a.detach() if hasattr(a, "detach") else a for a in x] for x in (args, mine_args))
            want = _infos.attempt(theirs, args, kwargs)
            got = _infos.attempt(ours, mine_args, mine_kwargs)
            try:
                compare(case.row, expected, want, actual, got, differentiates, where)
            except AssertionError as error:
                yield f"{where}: {error}"


def compare(row: str, expected: Side, want: Any, actual: Side, got: Any, grads: bool, where: str) -> None:
    if isinstance(want, _infos.Failure):
        assert isinstance(got, _infos.Failure) or SERVED in want.text, f"no exception, expected {want}"
        return
    assert not isinstance(got, _infos.Failure), f"{got}"
    theirs, ours = expected.tensors(want), actual.tensors(got)
    assert [actual.said(t) for t in ours] == [expected.said(t) for t in theirs], (
        f"(conj, neg, shares) {[actual.said(t) for t in ours]}, expected {[expected.said(t) for t in theirs]}"
    )
    if row in _own.RANDOM_ROWS:
        return
    plain = [t for t in theirs if t.layout == expected.library.strided]
    if len(plain) == len(theirs):
        _oracle.assert_same(_infos.comparable(row, ours), _infos.comparable(row, theirs), where="values")
    _oracle.assert_same(list(actual.memory), list(expected.memory), where="memory")
    if grads:
        _oracle.assert_same(actual.gradients(ours), expected.gradients(theirs), where="gradients", stride=False)
