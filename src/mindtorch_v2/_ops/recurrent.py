"""Recurrent networks over whole sequences: LSTM, GRU, and plain ones with tanh or ReLU.

Invariant: the input of a layer is multiplied once for the whole sequence; a step is one product of the state and one
cell. Packed batches run the same steps on fewer and fewer rows. Random numbers are drawn in PyTorch's order.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .._dispatch import registry
from .._dtype import int64
from . import cells, dropout
from .table import composite

_cat = registry.get("cat")
_stack = registry.get("stack")
_linear = registry.get("linear")
_addmm = registry.get("addmm")
_dropout = dropout.DROPOUT


class Weights(NamedTuple):
    """Of one layer in one direction."""

    w_ih: Any
    w_hh: Any
    b_ih: Any
    b_hh: Any
    w_hr: Any


# A state is a tuple of tensors, the output first. (gates of the input, state, transposed weight, weights) -> state
State = tuple[Any, ...]
Step = Callable[[Any, State, Any, Weights], State]


def _agree(gates: Any, hidden: Any) -> Any:
    """The input's gates for every row of the state, or PyTorch's complaint about adding the two."""
    mine, rows = gates._shape[0], hidden._shape[0]
    if mine == rows:
        return gates
    if mine == 1:
        return gates.expand((rows, gates._shape[1]))
    if rows == 1:
        width = gates._shape[1]
        raise RuntimeError(f"output with shape [1, {width}] doesn't match the broadcast shape [{mine}, {width}]")
    raise RuntimeError(f"The size of tensor a ({rows}) must match the size of tensor b ({mine}) at non-singleton "
                       "dimension 0")


def _lstm_step(gates: Any, state: State, turned: Any, w: Weights) -> State:
    hidden = state[0].mm(turned)
    hy, cy, _ = cells.LSTM.call((_agree(gates, hidden), hidden, state[1], None, None))
    return hy if w.w_hr is None else hy.mm(w.w_hr.t()), cy


def _gru_step(gates: Any, state: State, turned: Any, w: Weights) -> State:
    hidden = state[0].mm(turned) if w.b_hh is None else _addmm.call((w.b_hh, state[0], turned, 1, 1))
    return (cells.GRU.call((_agree(gates, hidden), hidden, state[0], None, None))[0],)


def _tanh_step(gates: Any, state: State, turned: Any, w: Weights) -> State:
    return (_addmm.call((_agree(gates, state[0]), state[0], turned, 1, 1)).tanh(),)


def _relu_step(gates: Any, state: State, turned: Any, w: Weights) -> State:
    return (_addmm.call((_agree(gates, state[0]), state[0], turned, 1, 1)).relu(),)


class Kind(NamedTuple):
    """What tells one recurrent network from another."""

    name: str
    gates: int
    step: Step
    # Whether the bias of the state is added before anything else happens, so that both biases are one.
    joined: bool


LSTM = Kind("lstm", 4, _lstm_step, True)
GRU = Kind("gru", 3, _gru_step, False)
TANH = Kind("rnn_tanh", 1, _tanh_step, True)
RELU = Kind("rnn_relu", 1, _relu_step, True)


def gates_of(kind: Kind, input: Any, w: Weights) -> Any:
    """The input's share of all gates of all steps."""
    bias = w.b_ih + w.b_hh if kind.joined and w.b_ih is not None and w.b_hh is not None else w.b_ih
    return _linear.call((input, w.w_ih, bias))


# -- one layer in one direction: output of all steps and last state ----------------------------------------------------
def _padded_layer(kind: Kind, input: Any, state: State, w: Weights, backward: bool) -> tuple[Any, State]:
    return walk(kind, gates_of(kind, input, w), state, w, backward)


def walk(kind: Kind, gates: Any, state: State, w: Weights, backward: bool) -> tuple[Any, State]:
    """Step by step, from the input's share of the gates."""
    steps = gates.unbind(0)
    if not steps:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    turned = w.w_hh.t()
    outputs = []
    for one in reversed(steps) if backward else steps:
        state = kind.step(one, state, turned, w)
        outputs.append(state[0])
    return _stack.call((tuple(reversed(outputs)) if backward else tuple(outputs), 0)), state


def _packed_steps(gates: Any, sizes: list[int]) -> Sequence[Any]:
    rows, begin = gates._shape[0], 0
    for size in sizes:
        if begin + size > rows:
            raise RuntimeError(f"start ({begin}) + length ({size}) exceeds dimension size ({rows}).")
        begin += size
    steps: Sequence[Any] = gates.narrow(0, 0, begin).split_with_sizes(tuple(sizes), 0)
    return steps


def _packed_forward(kind: Kind, gates: Any, sizes: list[int], state: State, w: Weights) -> tuple[Any, State]:
    """Sequences that end leave from the back of the batch; their last states are kept."""
    turned, running, outputs = w.w_hh.t(), sizes[0], []
    ended: list[State] = []
    for one, size in zip(_packed_steps(gates, sizes), sizes):
        if size < running:
            ended.append(tuple(s.narrow(0, size, running - size) for s in state))
            state = tuple(s.narrow(0, 0, size) for s in state)
            running = size
        state = kind.step(one, state, turned, w)
        outputs.append(state[0])
    ended.append(state)
    last = state if len(ended) == 1 else tuple(_cat.call((parts, 0)) for parts in zip(*reversed(ended)))
    return _cat.call((tuple(outputs), 0)), last


def _packed_backward(kind: Kind, gates: Any, sizes: list[int], first: State, w: Weights) -> tuple[Any, State]:
    """From the end of the longest sequence; shorter ones join at the back of the batch."""
    turned, running, outputs = w.w_hh.t(), sizes[-1], []
    state = tuple(s.narrow(0, 0, running) for s in first)
    for one, size in zip(reversed(_packed_steps(gates, sizes)), reversed(sizes)):
        if size > running:
            state = tuple(_cat.call(((s, f.narrow(0, running, size - running)), 0)) for s, f in zip(state, first))
            running = size
        state = kind.step(one, state, turned, w)
        outputs.append(state[0])
    return _cat.call((tuple(reversed(outputs)), 0)), state


# -- layers on layers --------------------------------------------------------------------------------------------------
def _weights(params: Any, biases: bool, projected: bool) -> list[Weights]:
    size = (4 if biases else 2) + projected
    if len(params) % size:
        raise RuntimeError("got an incorrect number of RNN parameters")
    found = []
    for at in range(0, len(params), size):
        w_ih, w_hh, *rest = params[at:at + size]
        b_ih, b_hh = rest[:2] if biases else (None, None)
        found.append(Weights(w_ih, w_hh, b_ih, b_hh, rest[-1] if projected else None))
    return found


Layer = Callable[[Kind, Any, State, Weights, bool], tuple[Any, State]]


class Batch(NamedTuple):
    """A batch of sequences: (steps, rows, width), or packed with the number of rows of each step."""

    data: Any
    sizes: list[int] | None
    # How a device computes a layer of padded sequences.
    layer: Layer

    def run(self, kind: Kind, state: State, w: Weights, backward: bool) -> tuple[Any, State]:
        if self.sizes is None:
            return self.layer(kind, self.data, state, w, backward)
        way = _packed_backward if backward else _packed_forward
        return way(kind, gates_of(kind, self.data, w), self.sizes, state, w)


def _check_devices(input: Any, hidden: Sequence[Any], params: Any) -> None:
    for name, tensors in (("hidden", hidden), ("parameter", params)):
        for t in tensors:
            if t._device != input._device:
                raise RuntimeError(f"Input and {name} tensors are not at the same device, found input tensor at "
                                   f"{input._device} and {name} tensor at {t._device}")


def _network(kind: Kind, batch: Batch, hx: Sequence[Any], params: Any, has_biases: bool, num_layers: int,
             dropout: float, train: bool, bidirectional: bool) -> tuple[Any, ...]:
    """Output of the last layer, then for each part of the state the last one of every layer and direction."""
    _check_devices(batch.data, hx, params)
    projected = kind is LSTM and hx[0].size(2) != hx[1].size(2)
    states = list(zip(*(h.unbind(0) for h in hx)))
    weights = _weights(params, has_biases, projected)
    ways = 2 if bidirectional else 1
    if len(states) % ways or len(weights) % ways:
        raise RuntimeError("Odd number of params or hiddens given to a bidirectional RNN")
    if len(states) != num_layers * ways:
        raise RuntimeError("Expected more hidden states in stacked_rnn")
    if len(weights) != num_layers * ways:
        raise RuntimeError("Expected more weights in stacked_rnn")
    last: list[State] = []
    for layer in range(num_layers):
        outputs = []
        for way in range(ways):
            at = layer * ways + way
            output, state = batch.run(kind, states[at], weights[at], way == 1)
            outputs.append(output)
            last.append(state)
        data = outputs[0] if ways == 1 else _cat.call((tuple(outputs), -1))
        if dropout != 0 and train and layer < num_layers - 1:
            data = _dropout.call((data, dropout, True))
        batch = Batch(data, batch.sizes, batch.layer)
    return (batch.data, *(_stack.call((parts, 0)) for parts in zip(*last)))


def of_padded(kind: Kind, layer: Layer = _padded_layer) -> Any:
    def run(input: Any, hx: Any, params: Any, has_biases: bool, num_layers: int, dropout: float, train: bool,
            bidirectional: bool, batch_first: bool) -> tuple[Any, ...]:
        data = input.transpose(0, 1) if batch_first else input
        output, *state = _network(kind, Batch(data, None, layer), _state(kind, hx), params, has_biases, num_layers,
                                  dropout, train, bidirectional)
        return (output.transpose(0, 1) if batch_first else output, *state)

    return run


def _check_steps(kind: Kind, batch_sizes: Any) -> None:
    if batch_sizes.dim() != 1 or batch_sizes.numel() == 0:
        raise RuntimeError(f"{kind.name}: batch_sizes must be a vector of one size for each step, got "
                           f"{list(batch_sizes._shape)}")


def _of_packed(kind: Kind) -> Any:
    def run(data: Any, batch_sizes: Any, hx: Any, params: Any, has_biases: bool, num_layers: int, dropout: float,
            train: bool, bidirectional: bool) -> tuple[Any, ...]:
        if batch_sizes._dtype is not int64:
            raise RuntimeError(f"expected scalar type Long but found {batch_sizes._dtype.scalar_name}")
        _check_steps(kind, batch_sizes)
        sizes = batch_sizes.tolist()
        if kind is LSTM and len(data._shape) == 2 and len(set(sizes)) == 1 and sizes[0] * len(sizes) < data._shape[0]:
            # Steps of one size are taken as one block, which must be all of the data.
            raise RuntimeError(f"shape '[{len(sizes)}, {sizes[0]}, {data._shape[1]}]' is invalid for input of size "
                               f"{data.numel()}")
        batch = Batch(data, sizes, _padded_layer)
        return _network(kind, batch, _state(kind, hx), params, has_biases, num_layers, dropout, train, bidirectional)

    return run


def _state(kind: Kind, hx: Any) -> Sequence[Any]:
    if kind is not LSTM:
        return (hx,)
    if len(hx) != 2:
        raise RuntimeError("lstm expects two hidden states")
    states: Sequence[Any] = hx
    return states


# -- single cells ------------------------------------------------------------------------------------------------------
def _check_gates(kind: Kind, size: int, w_ih: Any, w_hh: Any) -> None:
    for name, w in (("weight_ih", w_ih), ("weight_hh", w_hh)):
        if w.size(0) != kind.gates * size:
            raise RuntimeError(f"{name} first dim must be {kind.gates} * hidden_size = {kind.gates * size}, but got "
                               f"{w.size(0)}")


def _check_cell(kind: Kind, input: Any, hx: Sequence[Any], w_ih: Any, w_hh: Any) -> None:
    size = w_hh.size(1)
    if kind is LSTM:
        _check_gates(kind, size, w_ih, w_hh)
    if input.size(1) != w_ih.size(1):
        raise RuntimeError(f"input has inconsistent input_size: got {input.size(1)} expected {w_ih.size(1)}")
    for number, h in enumerate(hx):
        if input.size(0) != h.size(0):
            raise RuntimeError(f"Input batch size {input.size(0)} doesn't match hidden{number} batch size {h.size(0)}")
        if h.size(1) != size:
            raise RuntimeError(f"hidden{number} has inconsistent hidden_size: got {h.size(1)}, expected {size}")
    if kind is not LSTM:
        _check_gates(kind, size, w_ih, w_hh)


def _cell(kind: Kind) -> Any:
    def run(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
        if kind is LSTM and len(hx) != 2:
            raise RuntimeError("lstm_cell expects two hidden states")
        state = tuple(hx) if kind is LSTM else (hx,)
        _check_cell(kind, input, state, w_ih, w_hh)
        w = Weights(w_ih, w_hh, b_ih, b_hh, None)
        gates = gates_of(kind, input, w)
        if kind.joined and b_ih is None and b_hh is not None:
            gates = gates + b_hh
        after = kind.step(gates, state, w_hh.t(), w)
        return after if kind is LSTM else after[0]

    return run


_REST = "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"
_CELL = "Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None"
for _kind in (LSTM, GRU, TANH, RELU):
    _hx = "Tensor[] hx" if _kind is LSTM else "Tensor hx"
    _results = "(Tensor, Tensor, Tensor)" if _kind is LSTM else "(Tensor, Tensor)"
    composite(f"{_kind.name}.input(Tensor input, {_hx}, {_REST}, bool batch_first) -> {_results}", of_padded(_kind))
    composite(f"{_kind.name}.data(Tensor data, Tensor batch_sizes, {_hx}, {_REST}) -> {_results}", _of_packed(_kind))
    composite(f"{_kind.name}_cell(Tensor input, {_hx}, {_CELL}) -> "
              f"{'(Tensor, Tensor)' if _kind is LSTM else 'Tensor'}", _cell(_kind))
