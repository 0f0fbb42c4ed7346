"""Recurrent layers beyond PyTorch's table of modules: packed and unbatched input, dropout, the list of flat weights.

Invariant: a case takes a library and returns plain values and tensors; it runs on PyTorch unchanged.
"""

from __future__ import annotations

import copy
import inspect
import itertools
import pickle
import warnings
from typing import Any

import pytest

from .. import _oracle
from .._subject import subject as torch

LAYERS = ("RNN", "LSTM", "GRU")
CELLS = ("RNNCell", "LSTMCell", "GRUCell")


def values(library: Any, *shape: int) -> Any:
    count = 1
    for size in shape:
        count *= size
    return ((library.arange(count, dtype=library.float64) * 0.7371) % 2 - 1).reshape(shape)


def layer(library: Any, name: str, *args: Any, **options: Any) -> Any:
    library.manual_seed(4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(library.nn, name)(*args, dtype=library.float64, **options)


def flat(result: Any) -> list[Any]:
    return [t for part in result for t in (part if isinstance(part, tuple) else (part,)) if t is not None]


def gradients(module: Any, outputs: list[Any], *inputs: Any) -> list[Any]:
    roots = [t for t in outputs if t.is_floating_point()]
    sum((t * t).sum() for t in roots).backward()
    return [*(i.grad for i in inputs), *(p.grad for p in module.parameters())]


@pytest.mark.oracle
@pytest.mark.parametrize("name", LAYERS)
def test_packed_sequences(name: str) -> None:
    def run(library: Any, lengths: list[int], options: dict[str, Any], given: bool) -> list[Any]:
        module = layer(library, name, 3, 4, 2, **options)
        x = values(library, 4, 3, 3).requires_grad_()
        packed = library.nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
        rows = 4 if options.get("bidirectional") else 2
        widths = (options.get("proj_size") or 4, 4) if name == "LSTM" else (4,)
        state = tuple(values(library, rows, 3, width) for width in widths)
        out, hidden = module(packed, (state if name == "LSTM" else state[0]) if given else None)
        outputs = [*flat(out), *flat((hidden,))]
        return [*outputs, *gradients(module, outputs, x)]

    several: list[dict[str, Any]] = [{}, {"bidirectional": True}, {"bias": False, "batch_first": True}]
    if name == "LSTM":
        several.append({"proj_size": 2, "bidirectional": True})
    for lengths, options, given in itertools.product(([4, 2, 1], [2, 4, 3], [4, 4, 4]), several, (False, True)):
        where = f"{lengths} {options} {given}"
        _oracle.assert_same(
            run(torch, lengths, options, given), run(_oracle.load(), lengths, options, given), None, None, where, False
        )


@pytest.mark.oracle
@pytest.mark.parametrize("name", LAYERS)
def test_one_sequence_without_a_batch(name: str) -> None:
    def run(library: Any, batch_first: bool, bidirectional: bool, given: bool) -> list[Any]:
        module = layer(library, name, 3, 4, batch_first=batch_first, bidirectional=bidirectional)
        x = values(library, 5, 3)
        state: Any = values(library, 1 + bidirectional, 4)
        state = (state, state + 1) if name == "LSTM" else state
        out, hidden = module(x, state if given else None)
        return flat((out, hidden))

    for options in itertools.product((False, True), repeat=3):
        _oracle.assert_same(run(torch, *options), run(_oracle.load(), *options), where=str(options))


@pytest.mark.oracle
@pytest.mark.parametrize("name", CELLS)
def test_cells_without_batch_or_state(name: str) -> None:
    def run(library: Any) -> list[Any]:
        module = layer(library, name, 3, 4)
        pair = (values(library, 4), values(library, 4) + 1)
        results = [
            module(values(library, 2, 3)),
            module(values(library, 3)),
            module(values(library, 3), pair if name == "LSTMCell" else pair[0]),
        ]
        return flat(results)

    _oracle.assert_same(run(torch), run(_oracle.load()))


@pytest.mark.oracle
@pytest.mark.parametrize("name", LAYERS)
def test_dropout_draws_the_same_numbers(name: str) -> None:
    def run(library: Any, packed: bool) -> list[Any]:
        module = layer(library, name, 3, 4, 3, dropout=0.4, bidirectional=True)
        x = values(library, 4, 3, 3)
        if packed:
            x = library.nn.utils.rnn.pack_padded_sequence(x, [4, 2, 1])
        library.manual_seed(12)
        out, hidden = module(x)
        return [*flat((out, hidden)), library.rand(3), *flat(module.eval()(x))]

    for packed in (False, True):
        _oracle.assert_same(run(torch, packed), run(_oracle.load(), packed), stride=False)


@pytest.mark.oracle
def test_training_curve() -> None:
    """Thirty steps of an LSTM that learns to sum: the losses are PyTorch's."""

    def run(library: Any) -> list[float]:
        library.manual_seed(0)
        lstm = library.nn.LSTM(2, 8, 2, batch_first=True)
        head = library.nn.Linear(8, 1)
        optimizer = library.optim.SGD([*lstm.parameters(), *head.parameters()], lr=0.2, momentum=0.9)
        x = values(library, 16, 6, 2).float()
        y = x.sum(1).sum(1, keepdim=True)
        losses = []
        for _ in range(30):
            optimizer.zero_grad()
            loss = (head(lstm(x)[0][:, -1]) - y).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    mine, theirs = run(torch), run(_oracle.load())
    assert mine == pytest.approx(theirs, rel=2e-4) and theirs[-1] < 0.7 * theirs[0]


def test_flat_weights_follow_the_parameters() -> None:
    module = torch.nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2)
    names = [n for n, _ in module.named_parameters()]
    assert module._flat_weights_names == names and len(names) == 20
    assert [len(w) for w in module.all_weights] == [5] * 4
    fresh = torch.nn.Parameter(torch.zeros(16, 3))
    module.weight_ih_l0 = fresh
    assert module._flat_weights[0] is fresh and module.all_weights[0][0] is fresh
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module)), module.double(), module.to("meta")):
        assert all(a is getattr(other, n) for a, n in zip(other._flat_weights, names, strict=True))
    assert module._flat_weights[0].is_meta and module._flat_weights[0].dtype is torch.float64
    assert module.flatten_parameters() is None


def test_parameters_replaced_behind_the_modules_back_are_found() -> None:
    module = torch.nn.GRU(2, 2)
    x = torch.ones(1, 1, 2)
    module._parameters["bias_hh_l0"] = torch.nn.Parameter(torch.full((6,), 9.0))
    changed = module(x)[0]
    assert module._flat_weights[3] is module.bias_hh_l0
    other = torch.nn.GRU(2, 2)
    other.load_state_dict(module.state_dict())
    assert torch.equal(other(x)[0], changed)


def test_functional_calls_take_other_parameters() -> None:
    module = torch.nn.RNN(2, 3)
    x = torch.ones(2, 1, 2)
    before = module(x)[0]
    weight = module.weight_ih_l0
    del module.weight_ih_l0
    module.weight_ih_l0 = torch.zeros(3, 2)
    assert not torch.equal(module(x)[0], before)
    del module.weight_ih_l0
    module.weight_ih_l0 = weight
    assert torch.equal(module(x)[0], before)


@pytest.mark.oracle
def test_states_of_old_pickles() -> None:
    """They kept tensors where names are now, and no size of projections."""

    def run(library: Any) -> Any:
        module = library.nn.LSTM(2, 3, bidirectional=True)
        state = module.__getstate__()
        state["all_weights"] = [list(weights) for weights in module.all_weights]
        for name in ("_all_weights", "_flat_weights_names", "_flat_weights", "proj_size"):
            del state[name]
        again = library.nn.LSTM.__new__(library.nn.LSTM)
        again.__setstate__(state)
        x = library.ones(2, 1, 2)
        return again._all_weights, again._flat_weights_names, again.proj_size, library.equal(again(x)[0], module(x)[0])

    assert run(torch) == run(_oracle.load())


@pytest.mark.oracle
def test_warnings() -> None:
    def run(library: Any) -> list[Any]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            library.nn.GRU(2, 3, dropout=0.5)
            library.nn.modules.rnn.apply_permutation(library.ones(2, 2), library.tensor([1, 0]))
        return [(w.category, str(w.message)) for w in caught]

    assert run(torch) == run(_oracle.load()) and len(run(torch)) == 2


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["GRU", "RNN", *CELLS])
def test_autocast(name: str) -> None:
    """PyTorch's fused LSTM refuses parameters of another dtype than its input; its cell does not."""

    def run(library: Any) -> list[Any]:
        module = layer(library, name, 3, 4).float()
        x = values(library, *((2, 3) if "Cell" in name else (4, 2, 3))).float()
        with library.autocast("cpu", dtype=library.bfloat16):
            found = [module(x), *([] if "Cell" in name else [module(x.bfloat16())])]
        return [t.dtype for result in found for t in flat(result if isinstance(result, tuple) else (result,))]

    assert list(map(_oracle.dtype_name, run(torch))) == list(map(_oracle.dtype_name, run(_oracle.load())))


@pytest.mark.oracle
def test_public_names() -> None:
    mine, theirs = torch.nn.modules.rnn, _oracle.load().nn.modules.rnn
    plain = set(dir(_oracle.load().nn.Linear))
    for name in theirs.__all__:
        own = {n for n in dir(getattr(theirs, name)) if n not in plain and not n.startswith("_")}
        assert own - set(dir(getattr(mine, name))) == set(), name
        calls = [inspect.signature(getattr(module, name).forward).parameters for module in (mine, theirs)]
        found = [[(p.name, p.kind, p.default) for p in parameters.values()] for parameters in calls]
        assert found[0] == found[1], name


def test_functions_by_their_private_module() -> None:
    assert torch._VF.lstm is torch.lstm
    with pytest.raises(AttributeError, match="'torch._C._VariableFunctionsClass' object has no attribute 'nothing'"):
        assert torch._VF.nothing


@pytest.mark.parametrize("name", ["lstm", "gru", "rnn_tanh"])
def test_second_derivatives_of_cells(name: str) -> None:
    """By differences, without PyTorch."""
    gates = {"lstm": 4, "gru": 3}.get(name, 1)
    weights = [values(torch, gates, 2), values(torch, gates, 1), values(torch, gates), values(torch, gates) + 0.3]
    given = [values(torch, 2, 2), values(torch, 2, 1), values(torch, 2, 1) + 0.2][: 3 if name == "lstm" else 2]
    leaves = [t.requires_grad_() for t in (*given, *weights)]

    def cell(x: Any, *rest: Any) -> Any:
        state = rest[:2] if name == "lstm" else rest[0]
        return getattr(torch, name + "_cell")(x, state, *rest[-4:])

    assert torch.autograd.gradcheck(cell, leaves)
    assert torch.autograd.gradgradcheck(cell, leaves)
