"""Recurrent layers and cells.

Invariant: `_flat_weights` are the parameters in the order in which the operators take them, one list for all layers and
directions; whoever replaces a parameter finds it replaced there too.
"""

from __future__ import annotations

import math
import numbers
import warnings
import weakref
from typing import Any

import mindtorch_v2 as torch

from ..._tensor import Tensor
from .. import init
from ..parameter import Parameter
from .module import Module

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}
_KINDS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")


def _packed(input: Any) -> bool:
    if not isinstance(input, tuple):
        return False
    from ..utils.rnn import PackedSequence

    return isinstance(input, PackedSequence)


def _autocasting() -> bool:
    """Whether operators choose the dtype they compute in."""
    return torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("npu")


def _names(layer: int, direction: int, bias: bool, projected: bool) -> list[str]:
    """The parameters of one layer in one direction."""
    kinds = [*_KINDS[: 4 if bias else 2], *(_KINDS[4:] if projected else ())]
    return [f"{kind}_l{layer}{'_reverse' if direction else ''}" for kind in kinds]


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """`tensor.index_select(dim, permutation)`, by its old name."""
    warnings.warn(
        "`apply_permutation` is deprecated, please use `tensor.index_select(dim, permutation)` instead",
        FutureWarning,
        stacklevel=2,
    )
    return tensor.index_select(dim, permutation)


class RNNBase(Module):
    """What recurrent layers share: parameters by layer and direction, checks, and the way through packed batches."""

    __constants__ = [
        "mode",
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    ]
    mode: str
    input_size: int
    hidden_size: int
    num_layers: int
    bias: bool
    batch_first: bool
    dropout: float
    bidirectional: bool
    proj_size: int
    _flat_weights: list[Any]
    _flat_weights_names: list[str]
    _flat_weight_refs: list[Any]
    _all_weights: list[list[Any]]

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._flat_weight_refs = []
        self._check_options(dropout)
        self._flat_weights_names, self._all_weights = [], []
        gates, width = _GATES[mode] * hidden_size, proj_size or hidden_size
        for layer in range(num_layers):
            incoming = width * self._directions() if layer else input_size
            shapes = ((gates, incoming), (gates, width), (gates,), (gates,), (proj_size, hidden_size))
            for direction in range(self._directions()):
                names = _names(layer, direction, bias, proj_size > 0)
                for name in names:
                    shape = shapes[_KINDS.index(name[: name.rindex("_l")])]
                    setattr(self, name, Parameter(torch.empty(shape, device=device, dtype=dtype)))
                self._flat_weights_names += names
                self._all_weights.append(names)
        self._init_flat_weights()
        self.reset_parameters()

    def _check_options(self, dropout: Any) -> None:
        if isinstance(dropout, bool) or not isinstance(dropout, numbers.Number) or not 0 <= self.dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if self.dropout > 0 and self.num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={self.num_layers}",
                stacklevel=3,
            )
        for name in ("bias", "batch_first"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} should be of type bool, got: {type(getattr(self, name)).__name__}")
        for name in ("input_size", "hidden_size"):
            size = getattr(self, name)
            if not isinstance(size, int):
                raise TypeError(f"{name} should be of type int, got: {type(size).__name__}")
            if size <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if self.num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if self.proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if self.mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + self.mode)

    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    # -- the flat list of weights --------------------------------------------------------------------------------------
    def _init_flat_weights(self) -> None:
        self._flat_weights = [getattr(self, name, None) for name in self._flat_weights_names]
        self._flat_weight_refs = [None if w is None else weakref.ref(w) for w in self._flat_weights]
        self.flatten_parameters()

    def __setattr__(self, attr: str, value: Any) -> None:
        names = self.__dict__.get("_flat_weights_names")
        if names is not None and attr in names and "_flat_weights" in self.__dict__:
            self._flat_weights[names.index(attr)] = value
        super().__setattr__(attr, value)

    def flatten_parameters(self) -> None:
        """PyTorch joins the weights in one block of memory for cuDNN; no device here asks for that."""

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        self._flat_weight_refs = []
        result = super()._apply(fn, recurse)
        # Parameters may be other objects now.
        self._init_flat_weights()
        return result

    def _weights_have_changed(self) -> bool:
        for ref, name in zip(self._flat_weight_refs, self._flat_weights_names):
            weight = getattr(self, name, None)
            if weight is not None and ref is not None and ref() is not weight:
                return True
        return False

    def _update_flat_weights(self) -> None:
        if self._weights_have_changed():
            self._init_flat_weights()

    @property
    def all_weights(self) -> list[list[Any]]:
        """The parameters by layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def reset_parameters(self) -> None:
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def __getstate__(self) -> dict[str, Any]:
        self._update_flat_weights()
        state = super().__getstate__()
        # Weak references cannot be pickled.
        del state["_flat_weight_refs"]
        return state

    def __setstate__(self, d: dict[str, Any]) -> None:
        super().__setstate__(d)
        if "all_weights" in d:
            self._all_weights = d["all_weights"]
        if "proj_size" not in d:
            self.proj_size = 0
        if not isinstance(self._all_weights[0][0], str):
            # Written by a version that kept the tensors themselves.
            places = [(layer, way) for layer in range(self.num_layers) for way in range(self._directions())]
            self._all_weights = [_names(layer, way, self.bias, self.proj_size > 0) for layer, way in places]
            self._flat_weights_names = [name for names in self._all_weights for name in names]
            self._flat_weights = [getattr(self, name, None) for name in self._flat_weights_names]
        self._flat_weight_refs = [None if w is None else weakref.ref(w) for w in self._flat_weights]

    # -- checks --------------------------------------------------------------------------------------------------------
    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        mine = self._flat_weights[0].dtype
        if input.dtype != mine and not _autocasting():
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({mine}). "
                f"Convert input: input.to({mine}), or convert model: model.to({input.dtype})"
            )
        expected = 3 if batch_sizes is None else 2
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def _state_shape(self, input: Tensor, batch_sizes: Tensor | None, width: int) -> tuple[int, int, int]:
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.size(0) if self.batch_first else input.size(1)
        return self.num_layers * self._directions(), batch, width

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of the hidden state for an input."""
        return self._state_shape(input, batch_sizes, self.proj_size or self.hidden_size)

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size: tuple[int, int, int], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        if hx.size() != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The states of a batch in another order."""
        return hx if permutation is None else hx.index_select(1, permutation)

    # -- forward -------------------------------------------------------------------------------------------------------
    def _zeros(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        shape = self._state_shape(input, batch_sizes, self.hidden_size)
        return torch.zeros(shape, dtype=input.dtype, device=input.device)

    def _check_ranks(self, hx: Any, batched: bool) -> None:
        """The state of one sequence has no batch, as its input."""
        rank, kind = (3, "batched") if batched else (2, "unbatched")
        if hx.dim() != rank:
            raise RuntimeError(f"For {kind} {rank}-D input, hx should also be {rank}-D but got {hx.dim()}-D tensor")

    def _with_batch(self, hx: Any) -> Any:
        return hx.unsqueeze(1)

    def _without_batch(self, hx: Any) -> Any:
        return hx.squeeze(1)

    def _operator(self) -> Any:
        return getattr(torch, self.mode.lower())

    def _result(self, output: tuple[Any, ...]) -> tuple[Any, Any]:
        return output[0], output[1]

    def _options(self) -> tuple[Any, ...]:
        return self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional

    def _through(self, input: Any, hx: Any) -> tuple[Any, Any]:
        """What `forward` of the layers does: outputs and the last state."""
        self._update_flat_weights()
        if _packed(input):
            data, batch_sizes, order, back = input
            hx = self._zeros(data, batch_sizes) if hx is None else self.permute_hidden(hx, order)
            self._check_packed(data, hx, batch_sizes)
            output, hidden = self._result(self._operator()(data, batch_sizes, hx, *self._options()))
            return type(input)(output, batch_sizes, order, back), self.permute_hidden(hidden, back)
        if input.dim() not in (2, 3):
            what = "tensor " if self.mode in ("RNN_TANH", "RNN_RELU") else ""
            name = "RNN" if what else self.mode
            raise ValueError(f"{name}: Expected input to be 2D or 3D, got {input.dim()}D {what}instead")
        batched = input.dim() == 3
        across = 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(across)
        if hx is None:
            hx = self._zeros(input, None)
        else:
            self._check_ranks(hx, batched)
            hx = hx if batched else self._with_batch(hx)
        self.check_forward_args(input, hx, None)
        output, hidden = self._result(self._operator()(input, hx, *self._options(), self.batch_first))
        return (output, hidden) if batched else (output.squeeze(across), self._without_batch(hidden))

    def _check_packed(self, data: Tensor, hx: Any, batch_sizes: Tensor) -> None:
        self.check_forward_args(data, hx, batch_sizes)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        usual = dict(proj_size=0, num_layers=1, bias=True, batch_first=False, dropout=0, bidirectional=False)
        for name, value in usual.items():
            if getattr(self, name) != value:
                text += f", {name}={getattr(self, name)}"
        return text


def _no_projection(kwargs: dict[str, Any]) -> None:
    if "proj_size" in kwargs:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class RNN(RNNBase):
    """Elman's network: `h = tanh(W_ih x + b_ih + W_hh h + b_hh)`, or with ReLU."""

    nonlinearity: str

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _no_projection(kwargs)
        if len(args) > 3:
            nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        self.__dict__["nonlinearity"] = nonlinearity
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Outputs of the last layer for all steps, and the state after the last one."""
        return self._through(input, hx)


class GRU(RNNBase):
    """Gated recurrent units."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _no_projection(kwargs)
        super().__init__("GRU", *args, **kwargs)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Outputs of the last layer for all steps, and the state after the last one."""
        return self._through(input, hx)


class LSTM(RNNBase):
    """Long short-term memory; its state is a pair, hidden state and cell state."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Outputs of the last layer for all steps, and the state after the last one."""
        return self._through(input, hx)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of the cell state for an input."""
        return self._state_shape(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        self.check_input(input, batch_sizes)
        sizes = self.get_expected_hidden_size(input, batch_sizes), self.get_expected_cell_size(input, batch_sizes)
        for number, size in enumerate(sizes):
            self.check_hidden_size(hidden[number], size, f"Expected hidden[{number}] size {{}}, got {{}}")

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        if permutation is None:
            return hx
        return hx[0].index_select(1, permutation), hx[1].index_select(1, permutation)

    def _zeros(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        cell = super()._zeros(input, batch_sizes)
        if self.proj_size == 0:
            return cell, cell
        return cell.new_zeros((*cell.shape[:2], self.proj_size)), cell

    def _check_ranks(self, hx: Any, batched: bool) -> None:
        rank, kind = (3, "batched") if batched else (2, "unbatched")
        if hx[0].dim() != rank or hx[1].dim() != rank:
            raise RuntimeError(
                f"For {kind} {rank}-D input, hx and cx should also be {rank}-D but got ({hx[0].dim()}-D, "
                f"{hx[1].dim()}-D) tensors"
            )

    def _with_batch(self, hx: Any) -> Any:
        return hx[0].unsqueeze(1), hx[1].unsqueeze(1)

    def _without_batch(self, hx: Any) -> Any:
        return hx[0].squeeze(1), hx[1].squeeze(1)

    def _result(self, output: tuple[Any, ...]) -> tuple[Any, Any]:
        return output[0], output[1:]

    def _check_packed(self, data: Tensor, hx: Any, batch_sizes: Tensor) -> None:
        """PyTorch's LSTM does not look at packed arguments."""


class RNNCellBase(Module):
    """What cells share: two weights and two biases."""

    __constants__ = ["input_size", "hidden_size", "bias"]
    input_size: int
    hidden_size: int
    bias: bool
    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor | None
    bias_hh: Tensor | None

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        gates = num_chunks * hidden_size
        self.weight_ih = Parameter(torch.empty((gates, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(torch.empty((gates, hidden_size), device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(torch.empty(gates, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.__dict__.get("bias", True) is not True:
            text += f", bias={self.bias}"
        nonlinearity = self.__dict__.get("nonlinearity", "tanh")
        return text if nonlinearity == "tanh" else f"{text}, nonlinearity={nonlinearity}"

    def _weights(self) -> tuple[Any, ...]:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _rank(self, t: Tensor, what: str) -> int:
        if t.dim() not in (1, 2):
            raise ValueError(f"{type(self).__name__}: Expected {what} to be 1D or 2D, got {t.dim()}D instead")
        return t.dim()

    def _zeros(self, input: Tensor) -> Tensor:
        return torch.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)

    def _one_state(self, operator: Any, input: Tensor, hx: Tensor | None) -> Tensor:
        batched = self._rank(input, "input") == 2
        if hx is not None:
            self._rank(hx, "hidden")
        input = input if batched else input.unsqueeze(0)
        if hx is None:
            hx = self._zeros(input)
        elif not batched:
            hx = hx.unsqueeze(0)
        output: Tensor = operator(input, hx, *self._weights())
        return output if batched else output.squeeze(0)


class RNNCell(RNNCellBase):
    """One step of Elman's network."""

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]
    nonlinearity: str

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._one_state(self._operator, input, hx)

    def _operator(self, *args: Any) -> Any:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return (torch.rnn_tanh_cell if self.nonlinearity == "tanh" else torch.rnn_relu_cell)(*args)


class GRUCell(RNNCellBase):
    """One step of a gated recurrent unit."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._one_state(torch.gru_cell, input, hx)


class LSTMCell(RNNCellBase):
    """One step of a long short-term memory."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        batched = self._rank(input, "input") == 2
        for number, part in enumerate(hx or ()):
            self._rank(part, f"hx[{number}]")
        input = input if batched else input.unsqueeze(0)
        if hx is None:
            zeros = self._zeros(input)
            hx = zeros, zeros
        elif not batched:
            hx = hx[0].unsqueeze(0), hx[1].unsqueeze(0)
        hy, cy = torch.lstm_cell(input, hx, *self._weights())
        return (hy, cy) if batched else (hy.squeeze(0), cy.squeeze(0))
