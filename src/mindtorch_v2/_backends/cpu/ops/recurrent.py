"""CPU lines of recurrent networks: one native call for a layer in one direction, and one for its gradient.

Invariant: the composition serves what the kernel is not made for (projections, states to be broadcast, no rows), and
gradients that are differentiated again or many at once. Two-byte floats are widened once for all steps, but for the
weight of a call that records nothing, which is multiplied as it is: states that are given away keep their digits
between steps. The gradient of the weights is one product over all steps.
"""
from __future__ import annotations

from typing import Any

from .... import _native
from ...._dispatch import registry
from ...._dispatch.keys import AUTOGRAD, BATCHED, CPU
from ...._dispatch.op import FnKernel
from ...._dispatch.state import differentiated, is_grad_enabled, swap_grad
from ...._dtype import bfloat16, float16, float32
from ...._ops import recurrent as rows
from ...._ops.recurrent import Kind, State, Weights
from ...._tensor_base import TensorBase
from ...recorded import differentiate, node_of
from ..kernels.dense import dense, fresh, operand
from ..lines import cpu

_KINDS = {"rnn_tanh": 0, "rnn_relu": 1, "lstm": 2, "gru": 3}
_NONE = (None, 0, 0)
_recurrent: Any = _native.recurrent
_recurrent_backward: Any = _native.recurrent_backward
_bgemm: Any = _native.bgemm


def _fits(kind: Kind, gates: Any, state: State, w: Weights, narrow: bool = False) -> bool:
    """narrow: the weight may be of two bytes beside float32."""
    dt = gates._dtype
    if dt.name not in ("float32", "float64") or w.w_hr is not None or len(gates._shape) != 3 or 0 in gates._shape:
        return False
    count, width = gates._shape[1], gates._shape[2] // kind.gates
    tensors = [*state] if w.b_hh is None else [*state, w.b_hh]
    if not narrow or dt is not float32 or w.w_hh._dtype not in (bfloat16, float16):
        tensors.append(w.w_hh)
    elif w.w_hh._device.type != "cpu":
        return False
    if any(t._dtype is not dt or t._device.type != "cpu" for t in tensors):
        return False
    return (all(tuple(s._shape) == (count, width) for s in state)
            and tuple(w.w_hh._shape) == (kind.gates * width, width)
            and (w.b_hh is None or tuple(w.b_hh._shape) == (kind.gates * width,)))


def _given(t: TensorBase | None) -> tuple[Any, int, int]:
    return _NONE if t is None else operand(t)


class Run:
    """One layer in one direction, with what its gradient needs."""

    def __init__(self, kind: Kind, gates: Any, hx: Any, cx: Any, weight: Any, bias: Any, backward: bool,
                 keeps: bool) -> None:
        steps, count, wide = gates._shape
        width = wide // kind.gates
        self.kind, self.backward = kind, backward
        self.gates, self.hx, self.weight = dense(gates), dense(hx), dense(weight)
        self.cx = None if cx is None else dense(cx)
        bias = dense(bias) if bias is not None and not kind.joined else None
        self.sizes = (_KINDS[kind.name], steps, count, width, backward)
        dt = gates._dtype
        self.out: Any = fresh((steps, count, width), dt)
        self.cells: Any = None if cx is None else fresh((steps, count, width), dt)
        self.kept = fresh((steps if keeps else 1, count, 4, width), dt) if kind.gates > 1 else None
        _recurrent(*operand(self.gates), *operand(self.hx), *_given(self.cx), *operand(self.weight), *_given(bias),
                   *operand(self.out), *_given(self.cells), *_given(self.kept), *self.sizes, keeps)
        self.last = 0 if backward else steps - 1

    def gradients(self, grad: Any, grad_cell: Any) -> tuple[Any, Any, Any, Any]:
        """Of the gates, of the state's share of them, and of the first state."""
        dt, (_, steps, count, width, _) = self.out._dtype, self.sizes
        dgates = fresh((steps, count, self.kind.gates * width), dt)
        dstate = None if self.kind.joined else fresh(dgates._shape, dt)
        dhx = fresh((count, width), dt)
        dcx = None if self.cx is None else fresh((count, width), dt)
        _recurrent_backward(*operand(dense(grad)), *(_NONE if grad_cell is None else operand(dense(grad_cell))),
                            *operand(self.hx), *_given(self.cx), *operand(self.weight), *operand(self.out),
                            *_given(self.cells), *_given(self.kept), *operand(dgates), *_given(dstate), *operand(dhx),
                            *_given(dcx), *self.sizes)
        return dgates, dgates if dstate is None else dstate, dhx, dcx

    def weight_gradient(self, dstate: Any) -> Any:
        """Sums over all steps of the gates' gradients times the state before: one product over all steps but the first,
        whose state was given."""
        _, steps, count, width, _ = self.sizes
        wide, code = self.kind.gates * width, self.out._dtype.code
        out = fresh((wide, width), self.out._dtype)
        first = (steps - 1) * count if self.backward else 0
        # Gates of later steps, and the outputs that they saw: one step apart.
        later, seen = (0, count) if self.backward else (count, 0)
        g, d = dstate._storage, int(dstate._offset)
        _bgemm(g, d + first * wide, (0, 1, wide), self.hx._storage, int(self.hx._offset), (0, width, 1),
               out._storage, 0, (0, width, 1), code, 1, wide, width, count, 1, 0)
        if steps > 1:
            _bgemm(g, d + later * wide, (0, 1, wide), self.out._storage, int(self.out._offset) + seen * width,
                   (0, width, 1), out._storage, 0, (0, width, 1), code, 1, wide, width, (steps - 1) * count, 1, 1)
        return out


def _parts(kind: Kind, args: list[Any], backward: bool) -> tuple[Any, Any]:
    """The output and the last cell, by the composition."""
    gates, hx, cx, weight, bias = args
    state = (hx,) if cx is None else (hx, cx)
    output, last = rows.walk(kind, gates, state, Weights(None, weight, None, bias, None), backward)
    return output, last[1] if cx is not None else None


def _node() -> Any:
    """The autograd node of a layer; made when first asked for."""

    def forward(ctx: Any, kind: Kind, backward: bool, gates: Any, hx: Any, cx: Any, weight: Any, bias: Any) -> Any:
        done = Run(kind, gates, hx, cx, weight, bias, backward, True)
        cell = None if done.cells is None else done.cells.select(0, done.last).clone()
        ctx.kind, ctx.way, ctx.done = kind, backward, done
        given = [t for t in (gates, hx, cx, weight, bias) if t is not None]
        ctx.there = [t is not None for t in (gates, hx, cx, weight, bias)]
        out = done.out.detach()  # the one given away leads back to this node, which would hold it for ever
        ctx.save_for_backward(*given, out)  # written to afterwards, it is refused
        return (out, cell) if cell is not None else out

    def backward(ctx: Any, grad: Any, grad_cell: Any = None) -> Any:
        saved = list(ctx.saved_tensors)
        args = [saved.pop(0) if there else None for there in ctx.there]
        needs = ctx.needs_input_grad[2:]
        again = differentiated()
        if again or any(g is not None and g._keys & BATCHED for g in (grad, grad_cell)):
            was = swap_grad(True)
            try:
                outs = [o for o in _parts(ctx.kind, args, ctx.way) if o is not None]
            finally:
                swap_grad(was)
            wanted = [t for t, need in zip(args, needs) if need]
            seeds = [grad, grad_cell][:len(outs)]
            found = iter(differentiate(outs, wanted, seeds, again))
            return (None, None, *(next(found) if need else None for need in needs))
        done: Run = ctx.done
        dgates, dstate, dhx, dcx = done.gradients(grad, grad_cell)
        bias = dstate.sum((0, 1)) if needs[4] and not ctx.kind.joined else None
        return (None, None, dgates if needs[0] else None, dhx if needs[1] else None, dcx if needs[2] else None,
                done.weight_gradient(dstate) if needs[3] else None, bias)

    return node_of("Recurrent", forward, backward)


_NODES: list[Any] = []


def _widened(kind: Kind, gates: Any, state: State, w: Weights, backward: bool,
             recorded: bool) -> tuple[Any, State] | None:
    """Two-byte floats by way of float32, if all of them are; the casts have gradients of their own."""
    dt = gates._dtype
    if not dt.is_floating_point or dt.itemsize != 2 or any(t._dtype is not dt for t in (*state, w.w_hh)):
        return None
    bias = None if w.b_hh is None or w.b_hh._dtype is not dt else w.b_hh.to(float32)
    wide = Weights(None, w.w_hh.to(float32) if recorded else w.w_hh, None, bias, w.w_hr)
    values, states = gates.to(float32), tuple(s.to(float32) for s in state)
    if (bias is None) != (w.b_hh is None) or not _fits(kind, values, states, wide, not recorded):
        return None
    out, last = (_record_layer if recorded else _run_wide)(kind, values, states, wide, backward)
    return out.to(dt), tuple(s.to(dt) for s in last)


def _run_layer(kind: Kind, gates: Any, state: State, w: Weights, backward: bool) -> tuple[Any, State]:
    if not _fits(kind, gates, state, w):
        return _widened(kind, gates, state, w, backward, False) or rows.walk(kind, gates, state, w, backward)
    return _run_wide(kind, gates, state, w, backward)


def _run_wide(kind: Kind, gates: Any, state: State, w: Weights, backward: bool) -> tuple[Any, State]:
    cx = state[1] if len(state) > 1 else None
    run = Run(kind, gates, state[0], cx, w.w_hh, w.b_hh, backward, False)
    parts = [run.out] if run.cells is None else [run.out, run.cells]
    return run.out, tuple(t.select(0, run.last) for t in parts)


def _record_layer(kind: Kind, gates: Any, state: State, w: Weights, backward: bool) -> tuple[Any, State]:
    if not is_grad_enabled():
        return _run_layer(kind, gates, state, w, backward)
    if not _fits(kind, gates, state, w):
        return _widened(kind, gates, state, w, backward, True) or rows.walk(kind, gates, state, w, backward)
    if not _NODES:
        _NODES.append(_node())
    cx = state[1] if len(state) > 1 else None
    made = _NODES[0].apply(kind, backward, gates, state[0], cx, w.w_hh, None if kind.joined else w.b_hh)
    out, cell = made if cx is not None else (made, None)
    last = out.select(0, 0 if backward else out._shape[0] - 1)
    return out, (last,) if cell is None else (last, cell)


def _layer(kind: Kind, input: Any, state: State, w: Weights, backward: bool) -> tuple[Any, State]:
    return _run_layer(kind, rows.gates_of(kind, input, w), state, w, backward)


def _recorded_layer(kind: Kind, input: Any, state: State, w: Weights, backward: bool) -> tuple[Any, State]:
    return _record_layer(kind, rows.gates_of(kind, input, w), state, w, backward)


def _serve(kind: Kind) -> None:
    name = f"{kind.name}.input"
    cpu(name, FnKernel(rows.of_padded(kind, _layer)))
    registry.get(name).kernels[int(CPU | AUTOGRAD)] = FnKernel(rows.of_padded(kind, _recorded_layer))


for _kind in (rows.LSTM, rows.GRU, rows.TANH, rows.RELU):
    _serve(_kind)
