"""Launches of the cells of recurrent networks.

Invariant: the native kernels take dense operands of one dtype, float32 or float64; everything else goes by the row's
own composition of operators.
"""

from __future__ import annotations

from typing import Any, Final, final

from .... import _native
from ...._device import CPU
from ...._dispatch.keys import CPU as CPU_KEY
from ...._dispatch.op import Kernel, Op, Spec
from ...._dtype import float32, float64
from ...._mypyc import i64
from ...._tensor_base import TensorBase, make
from .base import new_storage, rule_of
from .dense import dense

_lstm: Final[Any] = _native.lstm_cell
_lstm_backward: Final[Any] = _native.lstm_cell_backward
_gru: Final[Any] = _native.gru_cell
_gru_backward: Final[Any] = _native.gru_cell_backward


def _alike(args: tuple[Any, ...]) -> bool:
    """Whether the tensors have one dtype, and one that the native module computes in."""
    dt: Any = None
    for t in args:
        if isinstance(t, TensorBase):
            if dt is None:
                dt = t._dtype
            if t._dtype is not dt:
                return False
    return dt is float32 or dt is float64


def _given(args: tuple[Any, ...], keep: list[Any]) -> list[Any]:
    """Four arguments for each operand: storage, offset, strides, dtype; copies that were made are kept in `keep`."""
    out: list[Any] = []
    for t in args:
        if isinstance(t, TensorBase):
            d = dense(t)
            keep.append(d)
            out += [d._storage, int(d._offset), (), int(d._dtype.code)]
        else:
            out += [None, 0, (), 0]
    return out


def _made(specs: list[Any], count: i64, into: list[Any]) -> list[Any]:
    """New tensors for the first results, which are entered among the arguments of a launch."""
    outs: list[Any] = []
    i: i64 = 0
    while i < count:
        s = specs[i]
        assert isinstance(s, Spec)
        data = new_storage(s)
        into += [data, 0, (), int(s.dtype.code)]
        outs.append(make(data, 0, s.shape, s.stride, s.dtype, CPU, CPU_KEY))
        i += 1
    return outs


@final
class Cell(Kernel):
    """(input_gates, hidden_gates, state, input_bias, hidden_bias) -> the next state(s), workspace"""

    def __init__(self, native: Any) -> None:
        self.native: Final[Any] = native

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        specs: list[Any] = rule_of(op).infer(args)
        if not _alike(args):
            return op.row.fallback.run(op, args, keys)
        keep: list[Any] = []
        given = _given(args, keep)
        outs = _made(specs, len(specs), given)
        state: Spec = specs[0]
        self.native(*given, state.shape[0], state.shape[1])
        return tuple(outs)


@final
class CellBackward(Kernel):
    """The gradients of gates and state; the sums of gates, which are the gradients of the biases, where asked for."""

    def __init__(self, native: Any, gates: i64) -> None:
        self.native: Final[Any] = native
        self.gates: Final = gates
        self.calls_ops = True

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        specs: list[Any] = rule_of(op).infer(args)
        if not _alike(args):
            return op.row.fallback.run(op, args, keys)
        keep: list[Any] = []
        given = _given(args[:-1], keep)
        outs = _made(specs, self.gates + 1, given)
        state: Spec = specs[self.gates]
        self.native(*given, state.shape[0], state.shape[1])
        i: i64 = 0
        while i < self.gates:
            if args[-1]:
                outs.append(outs[i].sum((0,)))
            else:
                outs += _made(specs[self.gates + 1 :], 1, [])
            i += 1
        return tuple(outs)


def lstm() -> Kernel:
    return Cell(_lstm)


def lstm_backward() -> Kernel:
    return CellBackward(_lstm_backward, 1)


def gru() -> Kernel:
    return Cell(_gru)


def gru_backward() -> Kernel:
    return CellBackward(_gru_backward, 2)
