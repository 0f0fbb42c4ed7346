"""Recurrent layers and cells, packed and padded sequences."""
from __future__ import annotations

from typing import Any

from ._case import Case


def _weights(torch: Any, gates: int, dtype: Any = None) -> list[Any]:
    """Of a layer from four inputs to five hidden units."""
    shapes = ((gates * 5, 4), (gates * 5, 5), (gates * 5,), (gates * 5,))
    return [torch.ones(shape, dtype=dtype or torch.float64) for shape in shapes]


def _state(torch: Any, *shape: int) -> Any:
    return torch.ones(shape, dtype=torch.float64)


def _lstm(torch: Any, x: Any, hx: Any, params: Any, bias: bool = True, layers: int = 1, ways: bool = False) -> Any:
    return torch.lstm(x, hx, params, bias, layers, 0.0, False, ways, False)


def _gru(torch: Any, x: Any, hx: Any, params: Any, bias: bool = True, layers: int = 1, ways: bool = False) -> Any:
    return torch.gru(x, hx, params, bias, layers, 0.0, False, ways, False)


def _x(torch: Any) -> dict[str, Any]:
    return dict(x=torch.ones(3, 2, 4, dtype=torch.float64))


def _f(torch: Any) -> dict[str, Any]:
    return dict(x=torch.ones(3, 2, 4))


def _row(torch: Any) -> dict[str, Any]:
    return dict(x=torch.ones(2, 4, dtype=torch.float64), h=torch.ones(2, 5, dtype=torch.float64))


_MORE_STATES = "Expected more hidden states in stacked_rnn"
_MORE_WEIGHTS = "Expected more weights in stacked_rnn"
_COUNT = "got an incorrect number of RNN parameters"
_SORTED = ("`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
           "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do "
           "not need ONNX exportability.")
_CPU_SIZES = ("batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. They "
              "should be instantiated by functions like pack_sequence and pack_padded_sequences in nn.utils.rnn. "
              "https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence")
_DROPOUT = "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"

CASES: list[Case] = [
    # operators
    Case("lstm_states", _x, lambda torch, v: _lstm(torch, v.x, [_state(torch, 1, 2, 5)], _weights(torch, 4)),
         "RuntimeError", "lstm expects two hidden states"),
    Case("lstm_params", _x, lambda torch, v: _lstm(torch, v.x, [_state(torch, 1, 2, 5)] * 2, _weights(torch, 4)[:3]),
         "RuntimeError", _COUNT),
    Case("lstm_more_states", _x,
         lambda torch, v: _lstm(torch, v.x, [_state(torch, 1, 2, 5)] * 2, _weights(torch, 4), layers=2),
         "RuntimeError", _MORE_STATES),
    Case("lstm_more_weights", _x,
         lambda torch, v: _lstm(torch, v.x, [_state(torch, 1, 2, 5)] * 2, _weights(torch, 4) * 2),
         "RuntimeError", _MORE_WEIGHTS),
    Case("lstm_batch", _x, lambda torch, v: _lstm(torch, v.x, [_state(torch, 1, 1, 5)] * 2, _weights(torch, 4)),
         "RuntimeError", "output with shape [1, 20] doesn't match the broadcast shape [2, 20]"),
    Case("lstm_empty", _x, lambda torch, v: _lstm(torch, v.x[:0], [_state(torch, 1, 2, 5)] * 2, _weights(torch, 4)),
         "RuntimeError", "Expected sequence length to be larger than 0 in RNN"),
    Case("lstm_width", _x,
         lambda torch, v: _lstm(torch, v.x[..., :3], [_state(torch, 1, 2, 5)] * 2, _weights(torch, 4)),
         "RuntimeError", "mat1 and mat2 shapes cannot be multiplied (6x3 and 4x20)"),
    Case("gru_params", _x, lambda torch, v: _gru(torch, v.x, _state(torch, 1, 2, 5), _weights(torch, 3)[:2]),
         "RuntimeError", _COUNT),
    Case("gru_odd", _x, lambda torch, v: _gru(torch, v.x, _state(torch, 1, 2, 5), _weights(torch, 3), ways=True),
         "RuntimeError", "Odd number of params or hiddens given to a bidirectional RNN"),
    Case("gru_hidden_device", _x,
         lambda torch, v: _gru(torch, v.x, _state(torch, 1, 2, 5).to("meta"), _weights(torch, 3)),
         "RuntimeError", "Input and hidden tensors are not at the same device, found input tensor at cpu and hidden "
         "tensor at meta"),
    Case("gru_parameter_device", _x,
         lambda torch, v: _gru(torch, v.x, _state(torch, 1, 2, 5), [w.to("meta") for w in _weights(torch, 3)]),
         "RuntimeError", "Input and parameter tensors are not at the same device, found input tensor at cpu and "
         "parameter tensor at meta"),
    Case("gru_batch_sizes_dtype", _x,
         lambda torch, v: torch.gru(v.x.reshape(-1, 4), torch.tensor([3, 3]).int(), _state(torch, 1, 3, 5),
                                    _weights(torch, 3), True, 1, 0.0, False, False),
         "RuntimeError", "expected scalar type Long but found Int"),
    Case("gru_batch_sizes_sum", _x,
         lambda torch, v: torch.gru(v.x.reshape(-1, 4), torch.tensor([3, 3, 1]), _state(torch, 1, 3, 5),
                                    _weights(torch, 3), True, 1, 0.0, False, False),
         "RuntimeError", "start (6) + length (1) exceeds dimension size (6)."),
    # cells
    Case("lstm_cell_states", _row, lambda torch, v: torch.lstm_cell(v.x, [v.h], *_weights(torch, 4)),
         "RuntimeError", "lstm_cell expects two hidden states"),
    Case("lstm_cell_batch", _row, lambda torch, v: torch.lstm_cell(v.x, [v.h, v.h[:1]], *_weights(torch, 4)),
         "RuntimeError", "Input batch size 2 doesn't match hidden1 batch size 1"),
    Case("lstm_cell_width", _row, lambda torch, v: torch.lstm_cell(v.x, [v.h, v.h[:, :3]], *_weights(torch, 4)),
         "RuntimeError", "hidden1 has inconsistent hidden_size: got 3, expected 5"),
    Case("gru_cell_input", _row, lambda torch, v: torch.gru_cell(v.x[:, :3], v.h, *_weights(torch, 3)),
         "RuntimeError", "input has inconsistent input_size: got 3 expected 4"),
    Case("gru_cell_weight", _row, lambda torch, v: torch.gru_cell(v.x, v.h, *_weights(torch, 4)),
         "RuntimeError", "weight_ih first dim must be 3 * hidden_size = 15, but got 20"),
    Case("gru_cell_hidden_weight", _row,
         lambda torch, v: torch.gru_cell(v.x, v.h, _weights(torch, 3)[0], _weights(torch, 1)[1]),
         "RuntimeError", "weight_hh first dim must be 3 * hidden_size = 15, but got 5"),
    Case("rnn_cell_rank", _row, lambda torch, v: torch.rnn_tanh_cell(v.x[0], v.h[0], *_weights(torch, 1)),
         "IndexError", "Dimension out of range (expected to be in range of [-1, 0], but got 1)"),
    # layers
    Case("rnn_nonlinearity", lambda torch: {}, lambda torch, v: torch.nn.RNN(4, 5, nonlinearity="elu"),
         "ValueError", "Unknown nonlinearity 'elu'. Select from 'tanh' or 'relu'."),
    Case("gru_proj_size", lambda torch: {}, lambda torch, v: torch.nn.GRU(4, 5, proj_size=2),
         "ValueError", "proj_size argument is only supported for LSTM, not RNN or GRU"),
    Case("lstm_proj_size", lambda torch: {}, lambda torch, v: torch.nn.LSTM(4, 5, proj_size=5),
         "ValueError", "proj_size has to be smaller than hidden_size"),
    Case("lstm_proj_negative", lambda torch: {}, lambda torch, v: torch.nn.LSTM(4, 5, proj_size=-1),
         "ValueError", "proj_size should be a positive integer or zero to disable projections"),
    Case("lstm_dropout", lambda torch: {}, lambda torch, v: torch.nn.LSTM(4, 5, 2, dropout=1.5),
         "ValueError", _DROPOUT),
    Case("lstm_dropout_bool", lambda torch: {}, lambda torch, v: torch.nn.LSTM(4, 5, 2, dropout=True),
         "ValueError", _DROPOUT),
    Case("lstm_hidden_size", lambda torch: {}, lambda torch, v: torch.nn.LSTM(4, 0),
         "ValueError", "hidden_size must be greater than zero"),
    Case("lstm_input_size_type", lambda torch: {}, lambda torch, v: torch.nn.LSTM(4.0, 5),
         "TypeError", "input_size should be of type int, got: float"),
    Case("lstm_bias_type", lambda torch: {}, lambda torch, v: torch.nn.LSTM(4, 5, bias=1),
         "TypeError", "bias should be of type bool, got: int"),
    Case("lstm_layers", lambda torch: {}, lambda torch, v: torch.nn.LSTM(4, 5, 0),
         "ValueError", "num_layers must be greater than zero"),
    Case("rnn_base_mode", lambda torch: {}, lambda torch, v: torch.nn.RNNBase("MGU", 4, 5),
         "ValueError", "Unrecognized RNN mode: MGU"),
    Case("lstm_input_rank", _f, lambda torch, v: torch.nn.LSTM(4, 5)(v.x.unsqueeze(0)),
         "ValueError", "LSTM: Expected input to be 2D or 3D, got 4D instead", meta=True),
    Case("rnn_input_rank", _f, lambda torch, v: torch.nn.RNN(4, 5)(v.x.unsqueeze(0)),
         "ValueError", "RNN: Expected input to be 2D or 3D, got 4D tensor instead", meta=True),
    Case("gru_input_width", _f, lambda torch, v: torch.nn.GRU(3, 5)(v.x),
         "RuntimeError", "input.size(-1) must be equal to input_size. Expected 3, got 4", meta=True),
    Case("gru_input_dtype", _x, lambda torch, v: torch.nn.GRU(4, 5)(v.x),
         "ValueError", "RNN input dtype (torch.float64) does not match weight dtype (torch.float32). Convert input: "
         "input.to(torch.float32), or convert model: model.to(torch.float64)", meta=True),
    Case("gru_hidden_rank", _f, lambda torch, v: torch.nn.GRU(4, 5)(v.x, torch.ones(2, 5)),
         "RuntimeError", "For batched 3-D input, hx should also be 3-D but got 2-D tensor", meta=True),
    Case("gru_unbatched_hidden_rank", _f, lambda torch, v: torch.nn.GRU(4, 5)(v.x[0], torch.ones(1, 2, 5)),
         "RuntimeError", "For unbatched 2-D input, hx should also be 2-D but got 3-D tensor", meta=True),
    Case("gru_hidden_shape", _f, lambda torch, v: torch.nn.GRU(4, 5)(v.x, torch.ones(1, 3, 5)),
         "RuntimeError", "Expected hidden size (1, 2, 5), got [1, 3, 5]", meta=True),
    Case("lstm_hidden_rank", _f, lambda torch, v: torch.nn.LSTM(4, 5)(v.x, (torch.ones(2, 5), torch.ones(1, 2, 5))),
         "RuntimeError", "For batched 3-D input, hx and cx should also be 3-D but got (2-D, 3-D) tensors", meta=True),
    Case("lstm_cell_shape", _f,
         lambda torch, v: torch.nn.LSTM(4, 5)(v.x, (torch.ones(1, 2, 5), torch.ones(1, 2, 4))),
         "RuntimeError", "Expected hidden[1] size (1, 2, 5), got [1, 2, 4]", meta=True),
    Case("lstm_cell_module_rank", _f, lambda torch, v: torch.nn.LSTMCell(4, 5)(v.x),
         "ValueError", "LSTMCell: Expected input to be 1D or 2D, got 3D instead", meta=True),
    Case("lstm_cell_module_hidden_rank", _f, lambda torch, v: torch.nn.LSTMCell(4, 5)(v.x[0], (v.x, v.x)),
         "ValueError", "LSTMCell: Expected hx[0] to be 1D or 2D, got 3D instead", meta=True),
    Case("gru_cell_module_hidden_rank", _f, lambda torch, v: torch.nn.GRUCell(4, 5)(v.x[0], v.x),
         "ValueError", "GRUCell: Expected hidden to be 1D or 2D, got 3D instead", meta=True),
    Case("rnn_cell_nonlinearity", _f, lambda torch, v: torch.nn.RNNCell(4, 5, nonlinearity="elu")(v.x[0]),
         "RuntimeError", "Unknown nonlinearity: elu"),
    # packed and padded sequences
    Case("pack_unsorted", _f, lambda torch, v: torch.nn.utils.rnn.pack_padded_sequence(v.x, [1, 3]),
         "RuntimeError", _SORTED, meta=True),
    Case("pack_zero", _f, lambda torch, v: torch.nn.utils.rnn.pack_padded_sequence(v.x, [3, 0]),
         "RuntimeError", "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= "
         "0", meta=True),
    Case("pack_count", _f, lambda torch, v: torch.nn.utils.rnn.pack_padded_sequence(v.x, [3, 2, 1]),
         "RuntimeError", "Expected `len(lengths)` to be equal to batch_size, but got 3 (batch_size=2)", meta=True),
    Case("pack_empty", _f, lambda torch, v: torch.nn.utils.rnn.pack_padded_sequence(v.x[:0], [3, 2]),
         "RuntimeError", "Cannot pack empty tensors.", meta=True),
    Case("pack_lengths_rank", _f, lambda torch, v: torch.nn.utils.rnn.pack_padded_sequence(v.x, torch.ones(2, 1)),
         "RuntimeError", "'lengths' argument should be a 1D CPU int64 tensor, but got 2D cpu Long tensor", meta=True),
    Case("pack_lengths_dtype", _f, lambda torch, v: torch._pack_padded_sequence(v.x, torch.ones(2), False),
         "RuntimeError", "'lengths' argument should be a 1D CPU int64 tensor, but got 1D cpu Float tensor", meta=True),
    Case("pack_sequence_unsorted", lambda torch: {},
         lambda torch, v: torch.nn.utils.rnn.pack_sequence([torch.ones(1), torch.ones(2)]), "RuntimeError", _SORTED),
    Case("packed_sizes_device", _f,
         lambda torch, v: torch.nn.utils.rnn.PackedSequence(v.x, torch.ones(2, device="meta")),
         "ValueError", _CPU_SIZES),
    Case("packed_pair", _f, lambda torch, v: torch.nn.utils.rnn.PackedSequence(v.x),
         "AssertionError", "Expected data to be a list or tuple of length 2"),
    Case("pad_packed_total", _f,
         lambda torch, v: torch.nn.utils.rnn.pad_packed_sequence(
             torch.nn.utils.rnn.pack_padded_sequence(v.x, [3, 1]), total_length=2),
         "ValueError", "Expected total_length to be at least the length of the longest sequence in input, but got "
         "total_length=2 and max sequence length being 3", meta=True),
    Case("pad_packed_total_operator", _f,
         lambda torch, v: torch._pad_packed_sequence(v.x, torch.tensor([2, 1]), False, 0.0, 1),
         "RuntimeError", "Expected total_length to be at least the length of the longest sequence in input, but got "
         "total_length=1 and max sequence length being 2"),
    Case("pad_packed_growing", _f,
         lambda torch, v: torch._pad_packed_sequence(v.x, torch.tensor([1, 2]), False, 0.0, 2),
         "RuntimeError", "output with shape [1, 1, 2, 4] doesn't match the broadcast shape [1, 2, 2, 4]"),
    Case("pad_packed_short", _f,
         lambda torch, v: torch._pad_packed_sequence(v.x, torch.tensor([5, 2]), False, 0.0, 2),
         "RuntimeError", "shape '[1, 5, 2, 4]' is invalid for input of size 24"),
    Case("pad_packed_empty", _f,
         lambda torch, v: torch._pad_packed_sequence(v.x, torch.ones(0, dtype=torch.int64), False, 0.0, 2),
         "RuntimeError", "batch_sizes can not be empty"),
    Case("pad_nothing", lambda torch: {}, lambda torch, v: torch.nn.utils.rnn.pad_sequence([]),
         "RuntimeError", "received an empty list of sequences"),
    Case("pad_number", lambda torch: {}, lambda torch, v: torch.nn.utils.rnn.pad_sequence(3),
         "RuntimeError", "pad_sequence: Expected iterable for input sequences, but got arg of type: <class 'int'>"),
    Case("pad_element", _f, lambda torch, v: torch.nn.utils.rnn.pad_sequence([v.x, 3]),
         "TypeError", "expected Tensor as element 1 in argument 0, but got int"),
    Case("pad_side", _f, lambda torch, v: torch.nn.utils.rnn.pad_sequence([v.x], padding_side="top"),
         "RuntimeError", "Expected padding_side to be one of left or right, but got top.", meta=True),
    Case("pad_widths", _f, lambda torch, v: torch.nn.utils.rnn.pad_sequence([v.x, v.x[..., :3]]),
         "RuntimeError", "The size of tensor a (4) must match the size of tensor b (3) at non-singleton dimension 2",
         meta=True),
    Case("unpad_lengths", _f, lambda torch, v: torch.nn.utils.rnn.unpad_sequence(v.x, torch.tensor([1]), True),
         "ValueError", "zip() argument 2 is shorter than argument 1"),
]
