"""Layers of recurrent networks in one native call: the numbers of the same layer walked step by step.

Invariant: the composition of cells, which other tests compare with PyTorch, is the reference; results do not depend on
the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _native
from mindtorch_v2._ops import recurrent as rows

torch.lstm  # noqa: B018  brings the lines
KINDS = {kind.name: kind for kind in (rows.LSTM, rows.GRU, rows.TANH, rows.RELU)}
SIZES = [(1, 1, 1, 1), (3, 2, 5, 7), (4, 17, 9, 33), (2, 3, 8, 70), (5, 1, 4, 300)]  # steps, rows, input, width


def values(*shape: int, dtype: str = "float64", seed: int = 0) -> Any:
    drawn = np.random.default_rng(seed).standard_normal(shape) * 0.5
    return torch.from_numpy(drawn).to(getattr(torch, dtype))


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def leaves_of(kind: Any, sizes: tuple[int, int, int, int], dtype: str, bias: bool) -> list[Any]:
    steps, count, size, width = sizes
    wide = kind.gates * width
    shapes = [(steps, count, size), (1, count, width), (1, count, width), (wide, size), (wide, width), (wide,), (wide,)]
    # Large weights of plain networks would enlarge the rounding of each step.
    scale = [1 / math.sqrt(width) if k == 4 else 1 for k in range(7)]
    return [(values(*s, dtype=dtype, seed=k) * scale[k]).requires_grad_()
            for k, s in enumerate(shapes[: 7 if bias else 5])]  # fmt: skip


def native(kind: Any, leaves: list[Any]) -> tuple[Any, ...]:
    x, h, c, *params = leaves
    hx = (h, c) if kind is rows.LSTM else h
    function = getattr(torch, kind.name)
    return tuple(function(x, hx, params, len(params) > 2, 1, 0.0, True, False, False))


def walked(kind: Any, leaves: list[Any]) -> tuple[Any, ...]:
    x, h, c, *params = leaves
    w = rows.Weights(*params, *(None,) * (5 - len(params)))
    state = (h[0], c[0]) if kind is rows.LSTM else (h[0],)
    out, last = rows.walk(kind, rows.gates_of(kind, x, w), state, w, False)
    return (out, *(s.unsqueeze(0) for s in last))


def gradients(kind: Any, outs: tuple[Any, ...], leaves: list[Any]) -> list[Any]:
    wanted = [t for i, t in enumerate(leaves) if i != 2 or kind is rows.LSTM]
    seeds = [values(*o.shape, dtype=str(o.dtype).split(".")[1], seed=20 + k) for k, o in enumerate(outs)]
    return list(torch.autograd.grad(outs, wanted, seeds))


def close(a: Any, b: Any, dtype: str) -> None:
    tolerance = 1e-11 if dtype == "float64" else 3e-5
    want = b.detach().double().numpy()
    np.testing.assert_allclose(a.detach().double().numpy(), want, rtol=tolerance,
                               atol=tolerance * (1 + np.abs(want).max()))  # fmt: skip


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("name", KINDS)
def test_a_layer(name: str, sizes: tuple[int, int, int, int], dtype: str, bias: bool) -> None:
    kind = KINDS[name]
    leaves = leaves_of(kind, sizes, dtype, bias)
    got, want = native(kind, leaves), walked(kind, leaves)
    for a, b in zip((*got, *gradients(kind, got, leaves)), (*want, *gradients(kind, want, leaves))):
        close(a, b, dtype)
    with torch.no_grad():
        for a, b in zip(native(kind, leaves), want):
            close(a, b, dtype)


@pytest.mark.parametrize("name", KINDS)
def test_any_number_of_threads(name: str, threads: Callable[[int], None]) -> None:
    kind = KINDS[name]
    leaves = leaves_of(kind, (3, 40, 30, 130), "float32", True)
    seen = []
    for n in (1, 2, 5):
        threads(n)
        outs = native(kind, leaves)
        seen.append([t.detach().numpy() for t in (*outs, *gradients(kind, outs, leaves))])
    for other in seen[1:]:
        for a, b in zip(seen[0], other):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", KINDS)
def test_both_directions_and_layers(name: str) -> None:
    module = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}.get(name, torch.nn.RNN)
    options = {"nonlinearity": name[4:]} if module is torch.nn.RNN else {}
    torch.manual_seed(0)
    net = module(5, 6, 2, bidirectional=True, batch_first=True, dtype=torch.float64, **options)
    x = values(3, 4, 5).requires_grad_()
    assert torch.autograd.gradcheck(lambda t: net(t)[0], (x,))
    assert torch.autograd.gradgradcheck(lambda t: net(t)[0], (x,))


@pytest.mark.parametrize("name", KINDS)
def test_two_byte_floats(name: str) -> None:
    """One cast before all steps and one after them: no state is rounded between two steps."""
    kind = KINDS[name]
    leaves = [t if t is None else t.detach().bfloat16().requires_grad_() for t in
              leaves_of(kind, (6, 3, 5, 20), "float32", True)]  # fmt: skip
    wide = [t if t is None else t.detach().float().requires_grad_() for t in leaves]
    got, want = native(kind, leaves), native(kind, wide)
    for a, b in zip((*got, *gradients(kind, got, leaves)), (*want, *gradients(kind, want, wide))):
        error = (a.detach().float() - b.detach()).abs().max()
        assert a.dtype is torch.bfloat16 and error <= 0.03 * b.detach().abs().max()


# Odd widths, widths that fill no panel or several blocks of k, more rows than a tile has.
@pytest.mark.parametrize("sizes", [(3, 2, 5, 7), (4, 17, 9, 34), (3, 70, 6, 100), (2, 3, 8, 2050), (5, 1, 4, 320)])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_weights_of_two_bytes_as_they_are(dtype: str, sizes: Any, threads: Callable[[int], None]) -> None:
    """Where nothing is recorded. States are rounded to the weight's dtype for the products, at most."""
    error = 2 ** -(8 if dtype == "bfloat16" else 11)
    for kind in KINDS.values():
        leaves = [t.detach() / (math.sqrt(sizes[3]) if k == 4 else 1)
                  for k, t in enumerate(leaves_of(kind, sizes, "float64", True))]  # fmt: skip
        leaves = [t.to(getattr(torch, dtype)) for t in leaves]
        seen = []
        for n in (1, 3):
            threads(n)
            seen.append(native(kind, leaves))
        for a, again, b in zip(*seen, walked(kind, [t.double() for t in leaves])):
            assert str(a.dtype) == f"torch.{dtype}" and bool((a == again).all())
            assert bool(((a.double() - b).abs() <= 4 * error * b.abs().max()).all())


def test_a_written_output_is_refused() -> None:
    net = torch.nn.GRU(3, 4)
    out, _ = net(values(2, 3, 3, dtype="float32").requires_grad_())
    out.detach().zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_nan_stays_in_its_row() -> None:
    kind = rows.LSTM
    leaves = [t.detach() for t in leaves_of(kind, (3, 4, 5, 20), "float32", True)]
    leaves[0][1, 2, 0] = float("nan")
    out = native(kind, leaves)[0]
    assert out[1:, 2].isnan().all()
    assert not out[0].isnan().any()
    assert not out[:, [0, 1, 3]].isnan().any()


def test_wrong_operands_are_refused() -> None:
    one = torch.zeros(64)
    operand = (one._storage, 0, torch.float32.code)
    none = (None, 0, 0)
    fits = [*operand, *operand, *none, *operand, *none, *operand, *none, *none]
    _native.recurrent(*fits, 0, 4, 2, 8, False, False)
    with pytest.raises(RuntimeError, match="out of bounds for storage"):
        _native.recurrent(*fits, 0, 5, 2, 8, False, False)
    with pytest.raises(ValueError, match="no such layer"):
        _native.recurrent(*fits, 7, 4, 2, 8, False, False)
    with pytest.raises(TypeError):
        _native.recurrent(*fits, 2, 1, 1, 2, False, False)
    short = (torch.zeros(63, dtype=torch.bfloat16)._storage, 0, torch.bfloat16.code)
    with pytest.raises(RuntimeError, match="out of bounds for storage"):
        _native.recurrent(*operand * 2, *none, *short, *none, *operand, *none, *none, 0, 4, 2, 8, False, False)
    whole = (torch.zeros(64, dtype=torch.float64)._storage, 0, torch.float64.code)
    with pytest.raises(ValueError, match="two dtypes"):
        _native.recurrent(*operand * 2, *none, *whole, *none, *operand, *none, *none, 0, 4, 2, 8, False, False)
