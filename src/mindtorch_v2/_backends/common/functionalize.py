"""Functionalization: an operator that writes becomes its functional form and a write of the result.

Invariant: every alias of what was to be changed sees the change, and the version counter moves once; nothing is written
while the functional form runs.
"""

from __future__ import annotations

from typing import Any, Final, final

from ..._dispatch.keys import BACKENDS, FUNCTIONALIZE, LAZY
from ..._dispatch.op import Kernel, Op, Spec
from ..._mypyc import i64
from ..._strides import contiguous_strides
from ..._tensor_base import TensorBase, bump
from .kernels import (
    check_resize,
    check_result,
    check_targets,
    fit_all,
    overlap_first,
    spec_of,
    targets_of,
    write_repeatedly,
)
from .overlap import APART, FILLS, MARKS, REPEATS, check_no_internal_overlap, check_out, check_write, repeated_dim
from .runtime import computed, empty, runtime_of


@final
class FunctionalizeKernel(Kernel):
    """In-place under `functionalize`: compute the functional form, then write the value back through the view."""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        func = op.functional
        bits = keys & BACKENDS
        if keys & LAZY:
            # A copy computes nothing; all else is given what lazy arguments stand for before it comes here.
            return op.below(keys & ~FUNCTIONALIZE, args).run(op, args, keys & ~FUNCTIONALIZE)
        if func is None:
            return self.only_in_place(op, args, bits)
        if op.is_out:
            n = len(func.schema.args)
            return self.out_form(op, func, args[:n], args[n:], bits)
        target = args[0]
        assert isinstance(target, TensorBase)
        kernel = func.below(bits, args)
        # The temporary would make overlaps harmless, but the mode must not change what a program may do.
        check_write(func.overlap, target, args)
        spec = func.infer_inplace(args)
        check_result(op, spec, target, args)
        if func.overlap == REPEATS and repeated_dim(target) >= 0:
            write_repeatedly(func, kernel, target, args, bits)
            bump(target)
            return target
        if func.overlap == APART and repeated_dim(target) >= 0:
            # Written back whole, the untouched elements of a repeated one would win over the touched.
            if not kernel.into(func, args, spec, target):
                check_no_internal_overlap(target)
            bump(target)
            return target
        if (func.overlap == FILLS or func.overlap == MARKS) and repeated_dim(target) >= 0:
            # One number is written to every place, as often as it is named.
            return op.below(bits, args).run(op, args, bits)
        value = kernel.run(func, args, bits)
        write_back(op, target, value)
        return target

    def only_in_place(self, op: Op, args: tuple[Any, ...], bits: i64) -> Any:
        """No functional row: a composite's parts are functional forms themselves; else the write goes to a copy."""
        if op.composite is not None:
            return op.composite.run(op, args, bits)
        given = list(args)
        targets: list[TensorBase] = []
        copies: list[TensorBase] = []
        for i, a in enumerate(op.schema.args):
            if a.mutates:
                value = args[i]
                if isinstance(value, TensorBase):
                    given[i] = self.shadow(value, targets, copies)
                elif value is not None:
                    given[i] = tuple([self.shadow(t, targets, copies) for t in value])
        result = op.below(bits, args).run(op, tuple(given), bits)
        for i, target in enumerate(targets):
            copy = copies[i]
            if copy._shape != target._shape:
                raise NotImplementedError(f"'{op.name}' changes the shape of its input and has no functional form")
            write_back(op, target, copy)
        if isinstance(result, tuple):
            return tuple([original(r, targets, copies) for r in result])
        return original(result, targets, copies)

    def shadow(self, target: TensorBase, targets: list[TensorBase], copies: list[TensorBase]) -> TensorBase:
        """A copy to be written to in the place of `target`."""
        check_no_internal_overlap(target)
        copy = empty(target._shape, contiguous_strides(target._shape), target._dtype, target._device)
        runtime_of(copy).copy(copy, target)
        targets.append(target)
        copies.append(copy)
        return copy

    def out_form(self, op: Op, func: Op, plain: tuple[Any, ...], outs: tuple[Any, ...], bits: i64) -> Any:
        value: Any = None
        targets = targets_of(op, plain)
        plain = targets[0].beside(plain, outs[0]._dtype)
        if overlap_first(func.rule):
            check_out(0, outs[0], plain)
        single = False
        if func.rule is None:
            value = func.below(bits, plain).run(func, plain, bits)
            single = isinstance(value, TensorBase)
            made: Any = (value,) if single else value
            many = [spec_of(v, targets[i]) for i, v in enumerate(made)]
        else:
            specs = func.infer(plain)
            single = isinstance(specs, Spec)
            many = [specs] if isinstance(specs, Spec) else specs
        check_targets(targets, many, outs)
        for i, s in enumerate(many):
            check_out(op.overlap, outs[i], plain)
            check_resize(outs[i], s, plain)
        if func.rule is not None:
            value = func.below(bits, plain).run(func, plain, bits)
        values = [value] if single else value
        fit_all(outs, many, targets)
        for i, v in enumerate(values):
            write_back(op, outs[i], v)
        return outs[0] if single else outs


def original(result: Any, targets: list[TensorBase], copies: list[TensorBase]) -> Any:
    """The tensor that a copy stood for."""
    for i, copy in enumerate(copies):
        if result is copy:
            return targets[i]
    return result


def write_back(op: Op, target: TensorBase, value: TensorBase) -> None:
    """Put a functional result into the memory that was to change."""
    runtime_of(target).write_back(target, computed(value), op.title())
    bump(target)


FUNCTIONALIZE_KERNEL: Final[Kernel] = FunctionalizeKernel()
