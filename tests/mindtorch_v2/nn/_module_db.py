"""PyTorch's own table of modules with their sample inputs, and one sample run in both libraries.

Invariant: both libraries construct from the same seed and arguments; nothing of one reaches the other but inputs.
`MINDTORCH_MODULE_DB=all` takes every sample of every module instead of some.
"""

from __future__ import annotations

import functools
import os
import warnings
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from .. import _oracle
from .._subject import subject

ALL = os.environ.get("MINDTORCH_MODULE_DB", "") == "all"
# These have tests of their own.
ELSEWHERE = frozenset("RNNBase RNNCellBase RNN LSTM GRU RNNCell LSTMCell GRUCell MultiheadAttention".split())


@functools.cache
def entries() -> dict[str, Any]:
    """The table's entries by the name of their class."""
    table = _oracle.load_module_db()
    named = {info.module_cls.__name__: info for info in table}
    return {name: info for name, info in named.items() if name not in ELSEWHERE and "Transformer" not in name}


def names() -> list[str]:
    return sorted(entries()) if _oracle.available() else []


def dtypes(name: str) -> list[str]:
    """The dtypes that the table gives, those that neither library computes with on the CPU left out."""
    return [d for d in map(_oracle.dtype_name, entries()[name].dtypes) if d != "complex32"]


class Sample(NamedTuple):
    module: str
    dtype: str
    training: bool
    number: int
    made: Any

    def __str__(self) -> str:
        return f"{self.module}[{self.number}] {self.dtype} {'training' if self.training else 'evaluation'}"


def samples(name: str, dtype: str, few: int = 2) -> Iterator[Sample]:
    """Samples of a module: all of them, or `few` that the module's name picks."""
    oracle, info = _oracle.load(), entries()[name]
    for training in (True, False) if info.train_and_eval_differ else (True,):
        oracle.manual_seed(7)
        made = list(info.module_inputs_func(info, "cpu", getattr(oracle, dtype), True, training))
        start = zlib.crc32(f"{name}{dtype}".encode()) % len(made)
        chosen = range(len(made)) if ALL else sorted({(start + i * 7) % len(made) for i in range(few)})
        for number in chosen:
            yield Sample(name, dtype, training, number, made[number])


class Pair(NamedTuple):
    """A module of each library, made from the same seed."""

    ours: Any
    theirs: Any


def pair(sample: Sample) -> Pair:
    oracle, given = _oracle.load(), sample.made.constructor_input
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        oracle.manual_seed(11)
        theirs = getattr(oracle.nn, sample.module)(*given.args, **given.kwargs)
        subject.manual_seed(11)
        args, kwargs = _oracle.convert_argument(given.args), _oracle.convert_argument(given.kwargs)
        ours = getattr(subject.nn, sample.module)(*args, **kwargs)
        return Pair(
            ours.to(getattr(subject, sample.dtype)).train(sample.training),
            theirs.to(getattr(oracle, sample.dtype)).train(sample.training),
        )


def tensors(value: Any, kind: Any) -> list[Any]:
    """All tensors in a nest, in order."""
    if isinstance(value, kind):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for item in value for t in tensors(item, kind)] if isinstance(value, (list, tuple)) else []


def leaves(values: Any) -> Any:
    """Oracle tensors as leaves: some samples are made by operators, from one another."""
    return _oracle.tree_map(
        lambda t: t.detach().clone().requires_grad_(t.requires_grad), values, _oracle.is_oracle_tensor
    )


class Run(NamedTuple):
    """What a call gave: outputs, gradients of inputs and parameters by what they belong to, buffers afterwards."""

    outputs: list[Any]
    gradients: dict[str, Any]
    second: dict[str, Any]
    buffers: dict[str, Any]


def run(library: Any, module: Any, args: Any, kwargs: Any, twice: bool) -> Run:
    """Forward, backward of a weighted sum, and with `twice` the gradients of the squared gradients."""
    library.manual_seed(5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = module(*args, **kwargs)
    outputs = tensors(result, library.Tensor)
    leaves = {f"input {i}": t for i, t in enumerate(tensors((args, kwargs), library.Tensor)) if t.requires_grad}
    leaves |= {name: p for name, p in module.named_parameters() if p.requires_grad}
    roots = [t for t in outputs if t.requires_grad]
    gradients: dict[str, Any] = {}
    second: dict[str, Any] = {}
    if roots and leaves:
        total = sum((t * weights(library, t)).sum() for t in roots)
        if total.is_complex():
            total = total.real + total.imag
        found = library.autograd.grad(total, list(leaves.values()), create_graph=twice, allow_unused=True)
        gradients = {name: g for name, g in zip(leaves, found) if g is not None}
        squares = [(g.abs() ** 2).sum() for g in gradients.values() if g.requires_grad]
        if twice and squares:
            try:
                again = library.autograd.grad(sum(squares), list(leaves.values()), allow_unused=True)
            except RuntimeError as error:
                # PyTorch's table says that some modules can be differentiated twice which cannot.
                assert "is not implemented" in str(error), error
                again = ()
            second = {name: g for name, g in zip(leaves, again) if g is not None}
    return Run([t.detach() for t in outputs], gradients, second, dict(module.named_buffers()))


def weights(library: Any, like: Any) -> Any:
    """Values that differ from place to place, so that a transposed or misplaced gradient shows."""
    return (library.arange(like.numel(), device=like.device) % 7 + 1).to(like.dtype).reshape(like.shape) / 4
