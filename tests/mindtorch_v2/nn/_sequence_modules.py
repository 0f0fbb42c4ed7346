"""Recurrent layers, attention and transformers in PyTorch's table of modules: samples run in both libraries.

Invariant: both libraries construct from the same seed and arguments, and get inputs of the same values.
`MINDTORCH_MODULE_DB=all` takes every sample, as for other modules.
"""

from __future__ import annotations

import functools
import warnings
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from .. import _oracle
from .._subject import subject
from ._module_db import ALL, Sample, tensors, weights

NAMES = tuple(
    "RNN LSTM GRU RNNCell LSTMCell GRUCell MultiheadAttention Transformer TransformerEncoder TransformerEncoderLayer "
    "TransformerDecoderLayer".split()
)


# PyTorch's words about a library it uses, and what both say once in a process.
UNCOMPARED = ("oneDNN", "The PyTorch API of nested tensors")


@functools.cache
def entries() -> dict[str, Any]:
    """The table's entries by the name of their class."""
    table = _oracle.load_module_db()
    return {info.module_cls.__name__: info for info in table if info.module_cls.__name__ in NAMES}


def samples(name: str, dtype: str, few: int) -> Iterator[Sample]:
    """About `few` samples in training and in evaluation each; which ones, the module's name decides."""
    oracle, info = _oracle.load(), entries()[name]
    for training in (True, False):
        oracle.manual_seed(7)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = list(info.module_inputs_func(info, "cpu", getattr(oracle, dtype), True, training))
        start = zlib.crc32(f"{name}{dtype}{training}".encode()) % len(made)
        chosen = range(len(made)) if ALL else sorted({(start + i * 11) % len(made) for i in range(few)})
        for number in chosen:
            yield Sample(name, dtype, training, number, made[number])


def argument(value: Any) -> Any:
    """An oracle's argument for the library under test; functions and modules are found by their names."""
    oracle = _oracle.load()
    if isinstance(value, oracle.nn.TransformerEncoderLayer):
        return encoder_layer(value)
    if callable(value) and hasattr(oracle.nn.functional, getattr(value, "__name__", "")):
        return getattr(subject.nn.functional, value.__name__)
    if isinstance(value, (list, tuple)):
        return type(value)(argument(item) for item in value)
    if isinstance(value, dict):
        return {key: argument(item) for key, item in value.items()}
    return _oracle.convert_argument(value)


def encoder_layer(theirs: Any) -> Any:
    gelu = theirs.activation is _oracle.load().nn.functional.gelu
    ours = subject.nn.TransformerEncoderLayer(
        theirs.self_attn.embed_dim,
        theirs.self_attn.num_heads,
        theirs.linear1.out_features,
        theirs.dropout.p,
        subject.nn.functional.gelu if gelu else subject.nn.functional.relu,
        theirs.norm1.eps,
        theirs.self_attn.batch_first,
        theirs.norm_first,
        theirs.linear1.bias is not None,
        dtype=_oracle.dtype_in(subject, theirs.linear1.weight.dtype),
    ).train(theirs.training)
    ours.load_state_dict({key: _oracle.from_oracle(value) for key, value in theirs.state_dict().items()})
    return ours


def pair(sample: Sample) -> tuple[Any, Any]:
    """Ours and PyTorch's, made from the same seed."""
    oracle, given = _oracle.load(), sample.made.constructor_input
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        oracle.manual_seed(11)
        theirs = getattr(oracle.nn, sample.module)(*given.args, **given.kwargs)
        args, kwargs = argument(given.args), argument(given.kwargs)
        subject.manual_seed(11)
        ours = getattr(subject.nn, sample.module)(*args, **kwargs)
    return (
        ours.to(getattr(subject, sample.dtype)).train(sample.training),
        theirs.to(getattr(oracle, sample.dtype)).train(sample.training),
    )


class Run(NamedTuple):
    """What a call gave."""

    outputs: list[Any]
    gradients: list[Any]
    second: list[Any]
    warned: list[str]


def run(library: Any, module: Any, args: Any, kwargs: Any, twice: bool = False) -> Run:
    """Forward, gradients of a weighted sum, and with `twice` the gradients of their squares."""
    library.manual_seed(5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outputs = tensors(module(*args, **kwargs), library.Tensor)
    warned = [str(w.message) for w in caught if not any(text in str(w.message) for text in UNCOMPARED)]
    leaves = [t for t in tensors((args, kwargs), library.Tensor) if t.requires_grad] + list(module.parameters())
    roots = [t for t in outputs if t.requires_grad]
    first: list[Any] = []
    second: list[Any] = []
    if roots:
        total = sum((t * weights(library, t)).sum() for t in roots)
        first = list(library.autograd.grad(total, leaves, create_graph=twice, allow_unused=True))
        if twice:
            squares = sum(g.square().sum() for g in first if g is not None and g.requires_grad)
            second = list(library.autograd.grad(squares, leaves, allow_unused=True))
    return Run([t.detach() for t in outputs], first, second, warned)
