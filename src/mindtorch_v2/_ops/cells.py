"""Cells of recurrent networks after their matrix products: gates in, the next state out.

Invariant: gates stand side by side in PyTorch's order (LSTM: input, forget, candidate, output; GRU: reset, update,
candidate). The workspace of a cell holds what its derivative needs, activated; it has no gradient itself.
"""
from __future__ import annotations

from typing import Any

from .._dispatch import registry
from .._dispatch.op import Op, Spec
from .._dispatch.state import differentiated
from .rules.base import like
from .table import op

_cat = registry.get("cat")
_ADDCMUL = registry.get("addcmul")


def _summed(*gates: Any) -> Any:
    """The sum of what is there, in memory of its own."""
    there = [g for g in gates if g is not None]
    total = there[0] + there[1]
    for more in there[2:]:
        total = total.add_(more)
    return total


# -- long short-term memory --------------------------------------------------------------------------------------------
def _lstm_meta(input_gates: Any, hidden_gates: Any, cx: Any, input_bias: Any, hidden_bias: Any) -> list[Spec]:
    rows, width = hidden_gates._shape if len(hidden_gates._shape) == 2 else (-1, -1)
    if input_gates._shape != hidden_gates._shape or tuple(cx._shape) != (rows, width // 4):
        raise RuntimeError("_thnn_fused_lstm_cell: expected gates of one shape and a state of a quarter of that "
                           f"width, got {list(input_gates._shape)}, {list(hidden_gates._shape)} and {list(cx._shape)}")
    return [like(cx, (rows, width // 4)), like(cx, (rows, width // 4)), like(cx, (rows, width))]


def _lstm(input_gates: Any, hidden_gates: Any, cx: Any, input_bias: Any, hidden_bias: Any) -> tuple[Any, Any, Any]:
    gates = _summed(input_gates, hidden_gates, input_bias, hidden_bias)
    width = cx._shape[1]
    gates.narrow(1, 0, 2 * width).sigmoid_()
    new = gates.narrow(1, 2 * width, width).tanh_()
    out = gates.narrow(1, 3 * width, width).sigmoid_()
    cy = _ADDCMUL.call((gates.narrow(1, width, width) * cx, gates.narrow(1, 0, width), new, 1))
    return cy.tanh().mul_(out), cy, gates


def _lstm_slopes(dh: Any, dc: Any, cx: Any, cy: Any, gates: Any) -> tuple[Any, Any]:
    """Gradients of the gates before their activation, and of the old state."""
    i, f, g, o = gates.chunk(4, 1)
    if dh is not None:
        bent = cy.tanh()
        through = dh * o * (1 - bent * bent)
        dc = through if dc is None else dc + through
        do = dh * bent * o * (1 - o)
    else:
        do = cx.new_zeros(cx._shape)
    di = dc * g * i * (1 - i)
    df = dc * cx * f * (1 - f)
    dg = dc * i * (1 - g * g)
    return _cat.call(((di, df, dg, do), 1)), dc * f


def _lstm_backward_meta(grad_hy: Any, grad_cy: Any, cx: Any, cy: Any, workspace: Any, has_bias: bool) -> list[Spec]:
    rows, width = cx._shape if len(cx._shape) == 2 else (-1, -1)
    states = [t for t in (grad_hy, grad_cy, cy) if t is not None]
    if tuple(workspace._shape) != (rows, 4 * width) or any(tuple(t._shape) != (rows, width) for t in states):
        raise RuntimeError("_thnn_fused_lstm_cell_backward_impl: expected states of one shape and a workspace of four "
                           f"times their width, got {list(workspace._shape)} and {list(cx._shape)}")
    return [like(workspace), like(cx), like(workspace, (workspace._shape[1],) if has_bias else (0,))]


def _lstm_backward(grad_hy: Any, grad_cy: Any, cx: Any, cy: Any, workspace: Any, has_bias: bool
                   ) -> tuple[Any, Any, Any]:
    gates, state = _lstm_slopes(grad_hy, grad_cy, cx, cy, workspace)
    return gates, state, gates.sum((0,)) if has_bias else gates.new_empty((0,))


LSTM_BACKWARD: Op = op(
    "_thnn_fused_lstm_cell_backward_impl(Tensor? grad_hy, Tensor? grad_cy, Tensor cx, Tensor cy, Tensor workspace, "
    "bool has_bias) -> (Tensor, Tensor, Tensor)", meta=_lstm_backward_meta, kernel=_lstm_backward, function=False,
    method=False, nondifferentiable=True)


def _lstm_grads(grads: Any, needs: Any, input_gates: Any, hidden_gates: Any, cx: Any, input_bias: Any,
                hidden_bias: Any, result1: Any, result2: Any) -> tuple[Any, ...]:
    dh, dc = grads[0], grads[1]
    if dh is None and dc is None:
        return (None,) * 5
    if differentiated():
        # The workspace has no history: the gates are computed again so that the result can be differentiated.
        before = input_gates + hidden_gates
        before = before if input_bias is None else before + input_bias + hidden_bias
        i, f, g, o = before.chunk(4, 1)
        active = _cat.call(((i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()), 1))
        gates, state = _lstm_slopes(dh, dc, cx, result1, active)
        bias = gates.sum((0,)) if input_bias is not None else None
    else:
        gates, state, bias = LSTM_BACKWARD.call((dh, dc, cx, result1, result2, input_bias is not None))
    return gates, gates, state, bias, bias


LSTM: Op = op(
    "_thnn_fused_lstm_cell(Tensor input_gates, Tensor hidden_gates, Tensor cx, Tensor? input_bias=None, "
    "Tensor? hidden_bias=None) -> (Tensor result0, Tensor result1, Tensor result2)", meta=_lstm_meta, kernel=_lstm,
    function=False, method=False, nondiff=("result2",),
    grad={("input_gates", "hidden_gates", "cx", "input_bias", "hidden_bias"): _lstm_grads})


# -- gated recurrent unit ----------------------------------------------------------------------------------------------
def _gru_meta(input_gates: Any, hidden_gates: Any, hx: Any, input_bias: Any, hidden_bias: Any) -> list[Spec]:
    rows, width = hidden_gates._shape if len(hidden_gates._shape) == 2 else (-1, -1)
    if input_gates._shape != hidden_gates._shape or tuple(hx._shape) != (rows, width // 3):
        raise RuntimeError("_thnn_fused_gru_cell: expected gates of one shape and a state of a third of their width, "
                           f"got {list(input_gates._shape)}, {list(hidden_gates._shape)} and {list(hx._shape)}")
    return [like(hx, (rows, width // 3)), like(hx, (rows, width // 3 * 5))]


def _gru_parts(input_gates: Any, hidden_gates: Any, hx: Any, input_bias: Any, hidden_bias: Any) -> tuple[Any, ...]:
    """Reset, update, candidate, and the candidate's share of the old state; none of them written in place."""
    x = input_gates if input_bias is None else input_gates + input_bias
    h = hidden_gates if hidden_bias is None else hidden_gates + hidden_bias
    width = hx._shape[1]
    both = (x.narrow(1, 0, 2 * width) + h.narrow(1, 0, 2 * width)).sigmoid()
    reset, update = both.narrow(1, 0, width), both.narrow(1, width, width)
    share = h.narrow(1, 2 * width, width)
    return reset, update, _ADDCMUL.call((x.narrow(1, 2 * width, width), reset, share, 1)).tanh(), share


def _gru(input_gates: Any, hidden_gates: Any, hx: Any, input_bias: Any, hidden_bias: Any) -> tuple[Any, Any]:
    reset, update, new, share = _gru_parts(input_gates, hidden_gates, hx, input_bias, hidden_bias)
    hy = (hx - new).mul_(update).add_(new)
    return hy, _cat.call(((reset, update, new, hx, share), 1))


def _gru_slopes(dh: Any, reset: Any, update: Any, new: Any, hx: Any, share: Any) -> tuple[Any, Any, Any]:
    """Gradients of the input's gates, of the hidden gates and of the old state."""
    dn = dh * (1 - update) * (1 - new * new)
    du = dh * (hx - new) * update * (1 - update)
    dr = dn * share * reset * (1 - reset)
    return _cat.call(((dr, du, dn), 1)), _cat.call(((dr, du, dn * reset), 1)), dh * update


def _gru_backward_meta(grad_hy: Any, workspace: Any, has_bias: bool) -> list[Spec]:
    rows, width = grad_hy._shape if len(grad_hy._shape) == 2 else (-1, -1)
    if tuple(workspace._shape) != (rows, 5 * width):
        raise RuntimeError("_thnn_fused_gru_cell_backward: expected a workspace of five times the gradient's width, "
                           f"got {list(workspace._shape)} and {list(grad_hy._shape)}")
    gates = like(workspace, (workspace._shape[0], 3 * width))
    bias = like(workspace, (3 * width,) if has_bias else (0,))
    return [gates, gates, like(grad_hy), bias, bias]


def _gru_backward(grad_hy: Any, workspace: Any, has_bias: bool) -> tuple[Any, ...]:
    x, h, state = _gru_slopes(grad_hy, *workspace.chunk(5, 1))
    biases = (x.sum((0,)), h.sum((0,))) if has_bias else (x.new_empty((0,)), x.new_empty((0,)))
    return (x, h, state, *biases)


GRU_BACKWARD: Op = op(
    "_thnn_fused_gru_cell_backward(Tensor grad_hy, Tensor workspace, bool has_bias) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor)", meta=_gru_backward_meta, kernel=_gru_backward, function=False,
    method=False, nondifferentiable=True)


def _gru_grads(grads: Any, needs: Any, input_gates: Any, hidden_gates: Any, hx: Any, input_bias: Any,
               hidden_bias: Any, result1: Any) -> tuple[Any, ...]:
    dh = grads[0]
    if dh is None:
        return (None,) * 5
    if differentiated():
        reset, update, new, share = _gru_parts(input_gates, hidden_gates, hx, input_bias, hidden_bias)
        x, h, state = _gru_slopes(dh, reset, update, new, hx, share)
        return x, h, state, *((x.sum((0,)), h.sum((0,))) if input_bias is not None else (None, None))
    x, h, state, bias, other = GRU_BACKWARD.call((dh, result1, input_bias is not None))
    return x, h, state, *((bias, other) if input_bias is not None else (None, None))


GRU: Op = op(
    "_thnn_fused_gru_cell(Tensor input_gates, Tensor hidden_gates, Tensor hx, Tensor? input_bias=None, "
    "Tensor? hidden_bias=None) -> (Tensor result0, Tensor result1)", meta=_gru_meta, kernel=_gru, function=False,
    method=False, nondiff=("result1",),
    grad={("input_gates", "hidden_gates", "hx", "input_bias", "hidden_bias"): _gru_grads})
