"""`torch.utils.benchmark`: texts and random inputs are PyTorch's; timers measure."""

from __future__ import annotations

import importlib
import random
import time
from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only, submodule
from .._subject import subject as torch

benchmark: Any = submodule("utils.benchmark")


def oracle_benchmark() -> Any:
    _oracle.load()
    return importlib.import_module("torch.utils.benchmark")


def made_up(b: Any, seed: int) -> list[Any]:
    """Measurements with all kinds of names and spreads, the same for the same seed in either library."""
    rng = random.Random(seed)
    out = []
    for _ in range(rng.randrange(1, 20)):
        task = b.TaskSpec(
            stmt=rng.choice(["x + y", "for i in range(3):\n    f(i)", "mm(a, b)"]),
            setup=rng.choice(["pass", "x = 1", "x = 1\ny = 2"]),
            label=rng.choice([None, "sum", "a longer label"]) if seed % 2 else "sum",
            sub_label=rng.choice([None, "4x8", "a name that is longer"]),
            description=rng.choice(["old", "new", "the third of them"]),
            env=rng.choice(["main", "branch"]) if seed % 3 == 0 else None,
            num_threads=rng.choice([1, 1, 4]),
        )
        base = 10 ** rng.uniform(-8, 0.5)
        spread = rng.choice([0.001, 0.05, 0.4])
        times = [base * (1 + spread * rng.random()) for _ in range(rng.choice([1, 3, 4, 40]))]
        out.append(b.Measurement(number_per_run=rng.choice([1, 100]), raw_times=times, task_spec=task))
    return out


def plain(text: str) -> str:
    """Without the address of the object in the first line."""
    return text.partition("\n")[2]


@pytest.mark.oracle
def test_texts_are_pytorchs() -> None:
    theirs = oracle_benchmark()
    for seed in range(60):
        mine, other = made_up(benchmark, seed), made_up(theirs, seed)
        for m, o in zip(mine, other):
            assert plain(repr(m)) == plain(repr(o))
            assert m.mean == pytest.approx(o.mean, rel=1e-12)
            for name in ("title", "median", "iqr", "significant_figures", "has_warnings", "as_row_name"):
                assert getattr(m, name) == getattr(o, name), name
        for options in ((), ("trim_significant_figures",), ("colorize",), ("highlight_warnings", "colorize")):
            tables = []
            for b, found in ((benchmark, mine), (theirs, other)):
                compare = b.Compare(found)
                for option in options:
                    getattr(compare, option)()
                if seed % 2 and "colorize" in options:
                    compare.colorize(rowwise=True)
                tables.append(str(compare))
            assert tables[0] == tables[1]


@pytest.mark.oracle
def test_helpers_are_pytorchs() -> None:
    theirs = oracle_benchmark()
    for t in (3e-9, 1e-7, 2.5e-6, 9.99e-4, 0.5, 70.0):
        assert benchmark.select_unit(t) == theirs.select_unit(t)
        for n in (1, 2, 3):
            assert benchmark.trim_sigfig(t, n) == theirs.trim_sigfig(t, n)
    for u in ("ns", "us", "ms", "s"):
        assert benchmark.unit_to_english(u) == theirs.unit_to_english(u)
    assert benchmark.ordered_unique([3, 1, 3, 2, 1]) == [3, 1, 2]
    counts = [("f", 3), ("g", 12345), ("h" * 100, -7), ("dictobject.c:lookdict_unicode", 5)]
    texts = []
    for b in (benchmark, theirs):
        found = b.FunctionCounts(tuple(b.FunctionCount(c, n) for n, c in counts), False, _linewidth=80)
        more = [found + found, found - found[1:], found * 2, found.denoise(), found.transform(lambda n: n[:1])]
        texts.append([(plain(repr(f)), f.sum(), len(f)) for f in (found, *more)])
    assert texts[0] == texts[1]


def fuzzer(t: Any, b: Any, seed: int) -> Any:
    return b.Fuzzer(
        parameters=[
            b.FuzzedParameter("k0", 1, 64, "loguniform"),
            b.FuzzedParameter("k1", 2, 9, "uniform"),
            b.FuzzedParameter("p", 0.0, 1.0, "uniform", strict=True),
            [b.FuzzedParameter("dim", 1, 3, "uniform", strict=True), b.FuzzedParameter("step", 1, 3, "uniform")],
        ],
        tensors=[
            b.FuzzedTensor("x", size=("k0", "k1", 3), steps=("step",), min_elements=4, dim_parameter="dim"),
            b.FuzzedTensor("y", size=("k1", "k0"), max_elements=400, probability_contiguous=0.2, dtype=t.int64),
        ],
        constraints=[lambda params: params["k0"] != 7],
        seed=seed,
    )


@pytest.mark.oracle
def test_random_inputs_are_pytorchs() -> None:
    oracle = _oracle.load()
    rejected = 0.0
    for seed in range(5):
        mine = fuzzer(torch, benchmark, seed)
        theirs = fuzzer(oracle, oracle_benchmark(), seed)
        for (tensors, about, params), (others, about_others, params_others) in zip(mine.take(6), theirs.take(6)):
            assert params == params_others
            for name, t in tensors.items():
                assert t.tolist() == others[name].tolist() and t.stride() == others[name].stride()
                first, second = about[name], about_others[name]
                assert first.pop("order").tolist() == second.pop("order").tolist()
                assert str(first.pop("dtype")).rpartition(".")[2] == str(second.pop("dtype")).rpartition(".")[2]
                assert first == second
        assert mine.rejection_rate == theirs.rejection_rate
        rejected += mine.rejection_rate
    assert rejected > 0


def test_timers_measure() -> None:
    timer = benchmark.Timer("sleep(0.002)", globals={"sleep": time.sleep}, label="sleeping")
    once = timer.timeit(5)
    assert once.number_per_run == 5 and 0.002 <= once.median < 0.05
    blocks = timer.blocked_autorange(min_run_time=0.02)
    assert 0.002 <= blocks.median < 0.05 and len(blocks.times) >= 1
    steady = timer.adaptive_autorange(threshold=0.9, max_run_time=0.5)
    assert 0.002 <= steady.median < 0.05 and len(steady.times) > 1
    assert once.label == "sleeping" and "sleeping" in repr(once)
    called: list[int] = []
    benchmark.Timer("x + 1", "x = torch.ones(3)").blocked_autorange(lambda n, t: called.append(n), min_run_time=0.01)
    assert called and len(set(called)) == 1


def test_threads_are_set_and_given_back() -> None:
    before = torch.get_num_threads()
    seen: list[int] = []
    benchmark.Timer("note()", globals={"note": lambda: seen.append(torch.get_num_threads())}, num_threads=2).timeit(1)
    assert set(seen) == {2} and torch.get_num_threads() == before


WRONG: list[Any] = [
    lambda b: b.Timer(3),
    lambda b: b.Timer(language="rust"),
    lambda b: b.Timer(global_setup="x"),
    lambda b: b.Timer().repeat(),
    lambda b: b.Timer().autorange(),
    lambda b: b.Timer().collect_callgrind(repeats=0),
    lambda b: b.Compare([3]),
    lambda b: b.trim_sigfig(1.0, 1.5),
    lambda b: b.FuzzedParameter("a", 1, 2, "normal"),
    lambda b: b.FuzzedParameter("a", distribution={1: -1.0}),
    lambda b: b.FuzzedParameter("a", distribution={1: 0.5, 2: 0.5}),
    lambda b: b.FuzzedParameter("a", 1, distribution={1: 0.5}),
    lambda b: b.Fuzzer([b.FuzzedParameter("a", 1, 2, "uniform")], [b.FuzzedTensor("a", (1,))]),
    lambda b: next(b.Fuzzer([b.FuzzedParameter("a", 1, 2, "uniform")], [], [lambda p: False], seed=1).take(1)),
    lambda b: b.Fuzzer._resolve_aliases({"a": b.ParameterAlias("b"), "b": b.ParameterAlias("a")}),
    lambda b: b.FunctionCounts((), True) + b.FunctionCounts((), False),
]


@pytest.mark.oracle
@pytest.mark.parametrize("i", range(len(WRONG)))
def test_errors_are_pytorchs(i: int) -> None:
    said = []
    for b in (benchmark, oracle_benchmark()):
        with pytest.raises(Exception) as caught:
            WRONG[i](b)
        said.append((caught.type, str(caught.value)))
    assert said[0] == said[1]


@mindtorch_only
def test_what_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="argument 'language'"):
        benchmark.Timer("x", language="c++")
    with pytest.raises(NotImplementedError, match="collect_callgrind"):
        benchmark.Timer().collect_callgrind()
    with pytest.raises(NotImplementedError, match="sparse"):
        benchmark.FuzzedSparseTensor("x", (3,))


@mindtorch_only
def test_environments_have_their_place() -> None:
    """PyTorch fails where some measurements have none."""
    tasks = [benchmark.TaskSpec("x", "pass", description="d", env=env) for env in ("branch", None)]
    text = str(benchmark.Compare([benchmark.Measurement(1, [1.0, 1.0], task) for task in tasks]))
    assert "(branch)" in text and "(Unspecified env)" in text
