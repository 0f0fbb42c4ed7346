"""What every CPU kernel does around its launch: ask the rule, wrap the memory that was written.

Invariant: shapes and dtypes come from the row's rule; a kernel only says how the native module is called. In a launch
each operand takes one line: storage, offset, strides, dtype.
"""

from __future__ import annotations

from typing import Any, Final

from .... import _native
from ...._device import CPU
from ...._dispatch.keys import CPU as CPU_KEY
from ...._dispatch.op import Kernel, Op, Rule, Spec
from ...._dtype import dtype
from ...._mypyc import i64
from ...._sizes import dense_bytes, numel_of
from ...._tensor_base import TensorBase, make
from ...common.runtime import empty_spec

_Storage: Final[Any] = _native.Storage


def rule_of(op: Op) -> Rule:
    rule = op.rule
    if rule is None:
        raise NotImplementedError(f"operator '{op.name}' has no shape rule")
    return rule


class OneResult(Kernel):
    """A native kernel whose one result the rule describes. A subclass writes `launch`."""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        s = rule_of(op).infer(args)
        assert isinstance(s, Spec)
        data = self.launch(op, args, s, None, 0, s.stride, s.dtype.code)
        return make(data, 0, s.shape, s.stride, s.dtype, CPU, CPU_KEY)

    def into(self, op: Op, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        if not self.writes(args, spec, out):
            return False
        self.launch(op, args, spec, out._storage, int(out._offset), out._stride, out._dtype.code)
        return True

    def writes(self, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        """Whether the launch may write to this tensor, which may be one of the inputs."""
        return False

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        """Compute into the storage `out`, or into a new one where that is None; the storage is given back."""
        raise NotImplementedError


class SeveralResults(Kernel):
    """A native kernel with several results. A subclass writes `launch`."""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        specs: list[Any] = rule_of(op).infer(args)
        results: list[Any] = self.launch(op, args, specs)
        i: i64 = 0
        for data in results:
            if data is not None:
                s = specs[i]
                assert isinstance(s, Spec)
                results[i] = make(data, 0, s.shape, s.stride, s.dtype, CPU, CPU_KEY)
            i += 1
        return tuple(results)

    def launch(self, op: Op, args: tuple[Any, ...], specs: list[Any]) -> list[Any]:
        """New storages with the results, None for one that nobody wants."""
        raise NotImplementedError


class Filled(Kernel):
    """A kernel that writes into a tensor it is given. A subclass writes `fill`."""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        s = op.infer(args)
        assert isinstance(s, Spec)
        out = empty_spec(s)
        self.fill(out, args)
        return out

    def into(self, op: Op, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        if not self.writes(args, out):
            return False
        self.fill(out, args)
        return True

    def writes(self, args: tuple[Any, ...], out: TensorBase) -> bool:
        """Whether this tensor, which may be one of the inputs, can be filled."""
        return True

    def fill(self, out: TensorBase, args: tuple[Any, ...]) -> None:
        raise NotImplementedError


def new_storage(s: Spec) -> Any:
    return _Storage(int(dense_bytes(s.shape, s.dtype.itemsize)))


def count(shape: tuple[int, ...]) -> int:
    """The number of elements."""
    return int(numel_of(shape))


def wrapped(dim: Any, ndim: i64) -> int:
    """A dimension counted from the front."""
    d: i64 = dim
    if d < 0:
        d += ndim if ndim > 0 else 1
    return int(d)


def need_float(name: str, dt: dtype) -> None:
    if not dt.is_floating_point or dt.itemsize < 2:
        raise NotImplementedError(f"\"{name}\" not implemented for '{dt.scalar_name}'")
