"""Sobol' sequences: the oracle's points, plain and scrambled, in whatever portions they are drawn."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from .._oracle import assert_same
from .._outcome import outcome
from .._subject import mindtorch_only, submodule
from .._subject import subject as torch

quasirandom = submodule("quasirandom")
SobolEngine = quasirandom.SobolEngine


def test_direction_numbers_of_all_dimensions(oracle: ModuleType) -> None:
    mine, theirs = SobolEngine(SobolEngine.MAXDIM), oracle.quasirandom.SobolEngine(SobolEngine.MAXDIM)
    assert_same(mine.sobolstate, theirs.sobolstate)
    assert_same(mine.draw(3), theirs.draw(3))


@pytest.mark.parametrize("dimension", [1, 2, 3, 10, 111, 1024])
@pytest.mark.parametrize("options", [{}, {"scramble": True, "seed": 0}, {"scramble": True, "seed": 1234567}], ids=str)
def test_points(oracle: ModuleType, dimension: int, options: dict[str, Any]) -> None:
    def run(library: Any) -> list[Any]:
        engine = library.quasirandom.SobolEngine(dimension, **options)
        results = [engine.sobolstate.clone(), engine.shift.clone(), engine.draw(), engine.draw(1), engine.draw(7)]
        results += [engine.fast_forward(100).draw(5), engine.draw(3, dtype=library.float64), engine.quasi.clone()]
        results += [engine.reset().draw(4), engine.fast_forward(1).draw(3), engine.draw(0)]
        fresh = library.quasirandom.SobolEngine(dimension, **options)
        results += [
            fresh.fast_forward(13).draw(2),
            fresh.reset().fast_forward(0).draw(2),
            fresh.fast_forward(1000).draw(),
        ]
        results += [fresh.reset().draw_base2(4), fresh.draw_base2(4), fresh.draw_base2(5)]
        return [*results, fresh.num_generated, repr(fresh)]

    assert_same(run(torch), run(oracle), rtol=0, atol=0)


def test_scrambling_without_a_seed(oracle: ModuleType) -> None:
    """The bits come from the default generator."""
    torch.manual_seed(3)
    mine = SobolEngine(4, True).draw(9)
    oracle.manual_seed(3)
    assert_same(mine, oracle.quasirandom.SobolEngine(4, True).draw(9))


def test_the_sequence() -> None:
    expected = [[0.0, 0.0], [0.5, 0.5], [0.75, 0.25], [0.25, 0.75], [0.375, 0.375], [0.875, 0.875]]
    engine = SobolEngine(2)
    assert engine.draw(6).tolist() == expected
    assert engine.reset().draw(2).tolist() == expected[:2] and engine.draw(4).tolist() == expected[2:]
    assert SobolEngine(2).fast_forward(3).draw(2).tolist() == expected[3:5]
    out = torch.empty(0)
    assert SobolEngine(2).draw(3, out=out) is out and out.tolist() == expected[:3]
    scrambled = SobolEngine(5, scramble=True, seed=1).draw(64)
    # Balance: in every dimension each of 64 intervals of equal length has one point.
    assert torch.equal((scrambled * 64).long().sort(0).values, torch.arange(64)[:, None].expand(64, 5))


@mindtorch_only
def test_far_away() -> None:
    """Skipping costs nothing, and the end of the sequence is an error."""
    one, other = SobolEngine(3), SobolEngine(3)
    one.fast_forward(2**29)
    for _ in range(2):
        other.fast_forward(2**28)
    assert torch.equal(one.draw(2), other.draw(2))
    with pytest.raises(RuntimeError, match=r"a Sobol' sequence has 2\*\*30 points"):
        one.fast_forward(2**30)


def test_copies() -> None:
    engine = SobolEngine(3, scramble=True, seed=9)
    engine.draw(5)
    copies = copy.deepcopy(engine), pickle.loads(pickle.dumps(engine))
    expected = engine.draw(4)
    assert all(torch.equal(other.draw(4), expected) for other in copies)


def raw(library: Any) -> list[Any]:
    """The functions below the engine, with arguments they refuse too."""
    t = library
    state, quasi = t.zeros(5, 30, dtype=t.int64), t.zeros(5, dtype=t.int64)
    t._sobol_engine_initialize_state_(state, 5)
    calls: list[Callable[[], Any]] = [
        lambda: t._sobol_engine_draw(quasi, 3, state, 5, 0, dtype=None),
        lambda: t._sobol_engine_draw(quasi, 0, state, 5, 0, dtype=None),
        lambda: t._sobol_engine_draw(quasi, -1, state, 5, 0, dtype=None),
        lambda: t._sobol_engine_draw(quasi, 2, state, 5, 0, dtype=t.float16),
        lambda: t._sobol_engine_draw(quasi, 2, state, 5, 0, dtype=t.int64),
        lambda: t._sobol_engine_draw(quasi, 2.0, state, 5, 0, dtype=None),
        lambda: t._sobol_engine_draw(quasi.int(), 2, state, 5, 0, dtype=None),
        lambda: t._sobol_engine_draw(quasi, 2, state.int(), 5, 0, dtype=None),
        lambda: t._sobol_engine_ff_(quasi.clone(), 7, state, 5, 2),
        lambda: t._sobol_engine_ff_(quasi.clone(), -7, state, 5, 2),
        lambda: t._sobol_engine_ff_(quasi.float(), 7, state, 5, 2),
        lambda: t._sobol_engine_initialize_state_(state.float(), 5),
        lambda: t._sobol_engine_scramble_(state.clone(), t.ones(5, 30, 30, dtype=t.int64), 5),
        lambda: t._sobol_engine_scramble_(state.clone(), t.ones(5, 30, 30), 5),
        lambda: t._sobol_engine_scramble_(state.float(), t.ones(5, 30, 30, dtype=t.int64), 5),
        lambda: t.quasirandom.SobolEngine(0),
        lambda: t.quasirandom.SobolEngine(21202),
        lambda: t.quasirandom.SobolEngine(2).draw(0),
        lambda: t.quasirandom.SobolEngine(2).draw(4, dtype=t.int64),
        lambda: t.quasirandom.SobolEngine(2).draw(1, dtype=t.float16),
        lambda: t.quasirandom.SobolEngine(2).fast_forward(3).draw_base2(2),
        lambda: t.quasirandom.SobolEngine(2).draw_base2(-1),
        lambda: t.quasirandom.SobolEngine(2).draw(3, out=t.empty(1, dtype=t.int32)),
    ]
    return [outcome(call)[0] for call in calls]


def test_functions_and_refusals(oracle: ModuleType) -> None:
    for number, (mine, theirs) in enumerate(zip(raw(torch), raw(oracle))):
        assert mine == theirs, number
