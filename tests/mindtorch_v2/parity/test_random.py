"""Random numbers against PyTorch's: values and the state that is left behind, byte for byte.

Invariant: every draw is compared for a seed nobody chose besides a fixed one, and the failing seed is in the message.
Each comparison also covers the generator's state, so that what is drawn next is equal too.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from .._oracle import dtype_name, from_oracle, layout, load, to_oracle
from .._subject import subject as torch

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore:.*out of bounds:UserWarning")]

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
COMPLEX = ("complex64", "complex128")
# Below and above sixteen, where normal numbers are drawn in another way, and around multiples of it.
SIZES: tuple[tuple[int, ...], ...] = ((), (1,), (2,), (15,), (16,), (17,), (40,), (3, 5, 7), (1000,), (0,))
SEEDS = (0, 2**40 + 3, int.from_bytes(os.urandom(8), "little"))

Draw = Callable[[Any, Any, tuple[int, ...]], Any]


def same(draw: Callable[..., Any], what: str) -> None:
    oracle = load()
    for seed in SEEDS:
        oracle.manual_seed(seed)
        torch.manual_seed(seed)
        expected, got = draw(oracle), draw(torch)
        assert layout(got) == layout(expected), what
        assert data(got) == data(expected), f"{what}, seed {seed}: numbers differ"
        assert data(torch.get_rng_state()) == data(oracle.get_rng_state()), f"{what}, seed {seed}: states differ"


def data(tensor: Any) -> bytes:
    values = tensor.contiguous()
    if values.numel() == 0:
        return b""
    if values.is_complex():
        values = (torch if isinstance(tensor, torch.Tensor) else load()).view_as_real(values)
    kind = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}[values.element_size()]
    library = torch if isinstance(tensor, torch.Tensor) else load()
    return bytes(values.reshape(-1).view(getattr(library, kind)).numpy().tobytes())


def filled(name: str, *arguments: Any) -> Draw:
    return lambda t, dtype, size: getattr(t.empty(size, dtype=dtype), name)(*arguments)


FLOAT_DRAWS: dict[str, Draw] = {
    "rand": lambda t, dtype, size: t.rand(size, dtype=dtype),
    "randn": lambda t, dtype, size: t.randn(size, dtype=dtype),
    "rand_like": lambda t, dtype, size: t.rand_like(t.zeros(size, dtype=dtype)),
    "randn_like": lambda t, dtype, size: t.randn_like(t.zeros(size, dtype=dtype)),
    "uniform_": filled("uniform_"),
    "uniform_ of a range": filled("uniform_", -0.1, 0.7),
    "uniform_ far from zero": filled("uniform_", 1000.0, 1000.1),
    "normal_": filled("normal_", 1.0, 3.0),
    "exponential_": filled("exponential_", 2.5),
    "cauchy_": filled("cauchy_", 1.0, 2.0),
    "log_normal_": filled("log_normal_", 0.5, 0.25),
    "geometric_": filled("geometric_", 0.03),
    "bernoulli_": filled("bernoulli_"),
    "bernoulli_ of p": filled("bernoulli_", 0.3),
    "bernoulli": lambda t, dtype, size: t.bernoulli(t.full(size, 0.3, dtype=dtype)),
    "bernoulli with p": lambda t, dtype, size: t.bernoulli(t.zeros(size, dtype=dtype), 0.3),
    "bernoulli_ of doubles": lambda t, dtype, size: t.zeros(size, dtype=dtype).bernoulli_(
        t.full(size, 0.3, dtype=t.float64)
    ),
    "normal of tensors": lambda t, dtype, size: t.normal(t.full(size, 1.5, dtype=dtype), t.ones(size, dtype=dtype)),
    "normal of means": lambda t, dtype, size: t.normal(t.full(size, 1.5, dtype=dtype), 2.0),
    "normal of deviations": lambda t, dtype, size: t.normal(1.0, t.full(size, 1.5, dtype=dtype)),
    "normal of numbers": lambda t, dtype, size: t.normal(1.0, 2.0, size, dtype=dtype),
    "dropout": lambda t, dtype, size: t.nn.functional.dropout(t.ones(size, dtype=dtype), 0.3),
    "random_": filled("random_"),
    "random_ of a range": filled("random_", -5, 250),
    "random_ above exact integers": filled("random_", 0, 2**14),
    "random_ from": filled("random_", 3, None),
}

INTEGER_DRAWS: dict[str, Draw] = {
    "random_": filled("random_"),
    "random_ to": filled("random_", 100),
    "random_ from": filled("random_", 3, None),
    "randint": lambda t, dtype, size: t.randint(3, 99, size, dtype=dtype),
    "randint_like": lambda t, dtype, size: t.randint_like(t.zeros(size, dtype=dtype), 99),
    "bernoulli_": filled("bernoulli_", 0.3),
    "geometric_": filled("geometric_", 0.3),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FLOAT_DRAWS)
def test_floats(name: str, dtype: str) -> None:
    for size in SIZES:
        same(lambda t, size=size: FLOAT_DRAWS[name](t, getattr(t, dtype), size), f"{name} {dtype} {size}")


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", INTEGER_DRAWS)
def test_integers(name: str, dtype: str) -> None:
    for size in SIZES:
        same(lambda t, size=size: INTEGER_DRAWS[name](t, getattr(t, dtype), size), f"{name} {dtype} {size}")


@pytest.mark.parametrize("name", ["random_", "bernoulli_"])
def test_booleans(name: str) -> None:
    for size in SIZES:
        same(lambda t, size=size: getattr(t.empty(size, dtype=t.bool), name)(), f"{name} {size}")
    same(lambda t: t.empty(50, dtype=t.bool).random_(0, None), "random_ from 0")
    same(lambda t: t.randint(0, 2, (50,), dtype=t.bool), "randint")


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64"])
def test_unsigned(dtype: str) -> None:
    same(lambda t: t.empty(50, dtype=getattr(t, dtype)).random_(100).to(t.int64), "random_ to")
    same(lambda t: t.empty(50, dtype=getattr(t, dtype)).random_(3, 2**15).to(t.int64), "random_ of a range")


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex(dtype: str) -> None:
    for size in SIZES:
        same(lambda t, size=size: t.rand(size, dtype=getattr(t, dtype)), f"rand {dtype} {size}")
        same(lambda t, size=size: t.randn(size, dtype=getattr(t, dtype)), f"randn {dtype} {size}")


@pytest.mark.parametrize("bounds", [(-(2**63), None), (0, None), (-7, None), (0, 2**28 - 1), (0, 2**28), (5, 2**62)])
def test_wide_ranges(bounds: tuple[int, int | None]) -> None:
    for dtype in ("int64", "float64", "float32"):
        same(lambda t, dtype=dtype: t.empty(60, dtype=getattr(t, dtype)).random_(*bounds), f"random_{bounds} {dtype}")


@pytest.mark.parametrize("name", ["uniform_", "normal_", "random_", "exponential_", "bernoulli_"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_strided_targets(name: str, dtype: str) -> None:
    """Elements are drawn in the order of memory, and normal numbers one by one."""
    draws: dict[str, Callable[[Any], Any]] = {
        "transposed": lambda t: getattr(t.zeros(5, 7, dtype=getattr(t, dtype)).t(), name)(),
        "permuted": lambda t: getattr(t.zeros(3, 4, 5, dtype=getattr(t, dtype)).permute(2, 0, 1), name)(),
        "stepped": lambda t: getattr(t.zeros(60, dtype=getattr(t, dtype))[::2], name)(),
        "columns": lambda t: getattr(t.zeros(6, 8, dtype=getattr(t, dtype))[:, 2:7], name)(),
    }
    for what, draw in draws.items():
        same(draw, f"{name} {dtype} {what}")


@pytest.mark.parametrize("dtype", (*INTEGERS, *FLOATS))
def test_permutations(dtype: str) -> None:
    for n in (0, 1, 2, 3, 20, 100):
        same(lambda t, n=n: t.randperm(n, dtype=getattr(t, dtype)), f"randperm {n}")
    if dtype not in ("uint8", "int8"):
        same(lambda t: t.randperm(1000, dtype=getattr(t, dtype)), "randperm 1000")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("replacement", [True, False])
def test_multinomial(dtype: str, replacement: bool) -> None:
    for categories, samples in ((1, 1), (5, 1), (5, 3), (5, 5), (300, 1), (40, 4)):
        if dtype in ("float16", "bfloat16") and samples > 1 and not replacement:
            # Two of the few numbers there are may be equal, and which one comes first is PyTorch's sort's secret.
            continue
        for rows in ((), (4,)):
            same(
                lambda t, c=categories, k=samples, r=rows: weighed(t, dtype, c, k, r, replacement),
                f"multinomial {dtype} {categories} {samples} {rows}",
            )


def weighed(t: Any, dtype: str, categories: int, samples: int, rows: tuple[int, ...], replacement: bool) -> Any:
    weights = t.arange(1, 4 * categories + 1, dtype=t.float64).reshape(4, categories) / categories
    return t.multinomial((weights if rows else weights[1]).to(getattr(t, dtype)), samples, replacement)


OUTS: dict[str, Callable[[Any, Any], Any]] = {
    "rand": lambda t, d: t.rand(4, 5, out=t.zeros(5, 4, dtype=d).t()),
    "randn": lambda t, d: t.randn(4, 5, out=t.zeros(5, 4, dtype=d).t()),
    "randn, resized": lambda t, d: t.randn(4, 5, out=t.empty(0, dtype=d)),
    "randint": lambda t, d: t.randint(0, 9, (4, 5), out=t.zeros(5, 4, dtype=t.int64).t()),
    "randperm": lambda t, d: t.randperm(20, out=t.zeros(40, dtype=t.int64)[::2]),
    "bernoulli": lambda t, d: t.bernoulli(t.full((4, 5), 0.3, dtype=d), out=t.zeros(5, 4, dtype=d).t()),
    "bernoulli_": lambda t, d: t.zeros(5, 4, dtype=d).t().bernoulli_(t.linspace(0, 1, 20).view(4, 5)),
    "bernoulli_, expanded": lambda t, d: t.zeros(4, 5, dtype=d).bernoulli_(t.rand(5).to(d)),
    "normal": lambda t, d: t.normal(t.zeros(4, 5, dtype=d), t.ones(4, 5, dtype=d), out=t.zeros(5, 4, dtype=d).t()),
    "normal, transposed": lambda t, d: t.normal(t.zeros(5, 4, dtype=d).t(), t.ones(5, 4, dtype=d).t()),
    "normal, expanded": lambda t, d: t.normal(t.zeros(5, 1, dtype=d), t.ones(4, dtype=d)),
}


@pytest.mark.parametrize("name", OUTS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_the_order_is_that_of_the_written_memory(name: str, dtype: str) -> None:
    same(lambda t: OUTS[name](t, getattr(t, dtype)), f"{name} {dtype}")


FUNCTIONAL: dict[str, Callable[[Any, Any], Any]] = {
    "dropout": lambda f, x: f.dropout(x.transpose(0, 1), 0.4),
    "dropout1d": lambda f, x: f.dropout1d(x[0, 0], 0.4),
    "dropout2d": lambda f, x: f.dropout2d(x[0], 0.4),
    "dropout3d": lambda f, x: f.dropout3d(x, 0.4),
    "alpha_dropout": lambda f, x: f.alpha_dropout(x, 0.4, training=True),
    "feature_alpha_dropout": lambda f, x: f.feature_alpha_dropout(x, 0.4, training=True),
    "rrelu": lambda f, x: f.rrelu(x - 0.5, training=True),
    "gumbel_softmax": lambda f, x: f.gumbel_softmax(x, hard=True),
    "attention": lambda f, x: f.scaled_dot_product_attention(x[0], x[0], x[0], dropout_p=0.5),
}


@pytest.mark.parametrize("name", FUNCTIONAL)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_layers_that_draw(name: str, dtype: str) -> None:
    """Which elements are dropped or chosen; what is left is compared by the tests of rows."""

    def draw(t: Any) -> Any:
        drawn = FUNCTIONAL[name](t.nn.functional, t.rand(2, 3, 4, 5, 6, dtype=getattr(t, dtype)))
        return drawn if name == "rrelu" else (drawn != 0).float() if "alpha" not in name else drawn.sign()

    same(draw, f"{name} {dtype}")


@pytest.mark.parametrize(
    "name", "uniform_ normal_ trunc_normal_ xavier_uniform_ xavier_normal_ kaiming_uniform_ kaiming_normal_".split()
)
def test_parameters_start_as_pytorchs(name: str) -> None:
    same(lambda t: getattr(t.nn.init, name)(t.empty(6, 7)), name)


def test_layers_start_as_pytorchs() -> None:
    same(lambda t: t.nn.Linear(5, 7).weight.detach(), "Linear")
    same(lambda t: t.nn.Embedding(5, 7).weight.detach(), "Embedding")


def test_several_draws_in_a_row() -> None:
    """One normal number of a pair waits in the state, through other draws and through a change of dtype."""

    def draw(t: Any) -> Any:
        parts = [t.randn(3), t.rand(2), t.randn(1, dtype=t.float64).float(), t.randn(20), t.randn(5), t.rand(1)]
        parts += [t.empty(1).log_normal_(), t.randperm(4).float(), t.empty(4).bernoulli_(0.5)]
        return t.cat(parts)

    same(draw, "a sequence")


def test_a_generator_of_ones_own() -> None:
    def draw(t: Any) -> Any:
        g = t.Generator().manual_seed(SEEDS[-1])
        parts = [t.rand(3, generator=g), t.randn(3, generator=g), t.randint(9, (3,), generator=g).float()]
        parts += [t.empty(3).uniform_(generator=g), t.bernoulli(t.full((3,), 0.4), generator=g)]
        parts += [t.multinomial(t.ones(4), 2, generator=g).float(), t.randperm(4, generator=g).float()]
        return t.cat(parts)

    same(draw, f"generator seeded with {SEEDS[-1]}")


# -- states -------------------------------------------------------------------------------------------------------
def test_states_are_exchanged_with_pytorch() -> None:
    oracle = load()
    for seed in SEEDS:
        for drawn in (0, 1, 3, 623, 624, 625):
            oracle.manual_seed(seed)
            oracle.randn(drawn % 4)
            oracle.rand(drawn)
            torch.set_rng_state(from_oracle(oracle.get_rng_state()))
            assert data(torch.randn(21)) == data(oracle.randn(21)), f"to us, seed {seed}, after {drawn}"
            assert data(torch.rand(700)) == data(oracle.rand(700))
            torch.randn(drawn % 5)
            oracle.set_rng_state(to_oracle(torch.get_rng_state()))
            assert data(torch.randn(3)) == data(oracle.randn(3)), f"to PyTorch, seed {seed}, after {drawn}"
            assert torch.initial_seed() == oracle.initial_seed() == seed


def test_generator_states_are_exchanged() -> None:
    oracle = load()
    theirs, ours = oracle.Generator().manual_seed(5), torch.Generator()
    oracle.randn(7, generator=theirs)
    ours.set_state(from_oracle(theirs.get_state()))
    copy = ours.clone_state()
    assert data(torch.randn(9, generator=ours)) == data(oracle.randn(9, generator=theirs))
    assert copy.initial_seed() == 5 and copy.device == torch.device("cpu")
    assert data(copy.get_state()) != data(ours.get_state())
    assert data(torch.randn(9, generator=copy)) != data(torch.randn(9, generator=ours))


def test_every_seed_is_pytorchs() -> None:
    oracle = load()
    for seed in (0, 1, -1, -5, 2**31, 2**32, 2**32 + 1, 2**63, 2**64 - 1):
        assert torch.manual_seed(seed).initial_seed() == oracle.manual_seed(seed).initial_seed()
        assert data(torch.rand(5)) == data(oracle.rand(5)), seed


REFUSED: dict[str, Callable[[Any], Any]] = {
    "an older state": lambda t: t.Generator().set_state(t.zeros(5048, dtype=t.uint8)),
    "no state": lambda t: t.Generator().set_state(t.zeros(5056, dtype=t.uint8)),
    "a state of floats": lambda t: t.Generator().set_state(t.zeros(5056)),
    "a number as state": lambda t: t.Generator().set_state(5),
    "a word as seed": lambda t: t.Generator().manual_seed("a"),
    "a float as seed": lambda t: t.Generator().manual_seed(1.5),
    "a seed of 66 bits": lambda t: t.Generator().manual_seed(2**65),
    "a seed of 71 bits": lambda t: t.manual_seed(2**70),
    "meta": lambda t: t.Generator("meta"),
    "offset": lambda t: t.Generator().get_offset(),
    "no integers": lambda t: t.zeros(3).random_(5, 5),
    "no floats": lambda t: t.zeros(3).random_(2**25 + 1, 2**25 + 2),
    "above floats": lambda t: t.zeros(3).random_(2**25, None),
    "beyond half": lambda t: t.zeros(3, dtype=t.float16).random_(0, 70000),
    "beyond bool": lambda t: t.zeros(3, dtype=t.bool).random_(3, None),
    "unsigned": lambda t: t.zeros(3, dtype=t.uint16).random_(),
    "unsigned, from": lambda t: t.zeros(3, dtype=t.uint64).random_(3, None),
    "all 64 bits of 8": lambda t: t.zeros(3, dtype=t.int8).random_(-(2**63), None),
    "all 64 bits of half": lambda t: t.zeros(3, dtype=t.float16).random_(-(2**63), None),
    "complex": lambda t: t.zeros(3, dtype=t.complex64).random_(3),
    "geometric bool": lambda t: t.zeros(3, dtype=t.bool).geometric_(0.5),
    "bernoulli uint16": lambda t: t.zeros(3, dtype=t.uint16).bernoulli_(0.5),
    "bernoulli complex": lambda t: t.zeros(3, dtype=t.complex64).bernoulli_(t.full((3,), 0.5)),
    "cauchy float8": lambda t: t.zeros(3, dtype=t.float8_e5m2).cauchy_(),
    "exponential float8": lambda t: t.zeros(3, dtype=t.float8_e5m2).exponential_(),
    "randperm uint16": lambda t: t.randperm(3, dtype=t.uint16),
    "no weight": lambda t: t.multinomial(t.zeros(3), 2),
    "no weight, replaced": lambda t: t.multinomial(t.zeros(3), 2, True),
    "negative weight": lambda t: t.multinomial(t.tensor([1.0, -1.0, 3.0]), 2),
    "negative weight, replaced": lambda t: t.multinomial(t.tensor([1.0, -1.0, 3.0]), 2, True),
    "infinite weight, replaced": lambda t: t.multinomial(t.tensor([1.0, float("inf")]), 2, True),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refusals_are_pytorchs(what: str) -> None:
    errors = []
    for library in (load(), torch):
        with pytest.raises(Exception) as caught:
            REFUSED[what](library)
        errors.append((caught.type, str(caught.value)))
    assert errors[0] == errors[1]


def test_a_refused_call_draws_nothing() -> None:
    torch.manual_seed(0)
    before = data(torch.get_rng_state())
    with pytest.raises(RuntimeError):
        torch.zeros(3).random_(5, 5)
    assert data(torch.get_rng_state()) == before


# -- torch.random -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("given", [{}, {"devices": []}, {"enabled": False}, {"device_type": "meta"}])
def test_fork_rng(given: dict[str, Any]) -> None:
    def draw(t: Any) -> Any:
        with t.random.fork_rng(**given):
            inside = t.rand(7)
        return t.cat([inside, t.rand(3)])

    same(draw, f"fork_rng {given}")


def test_fork_rng_after_an_error() -> None:
    torch.manual_seed(1)
    before = data(torch.get_rng_state())
    with pytest.raises(ZeroDivisionError), torch.random.fork_rng():
        torch.rand(2)
        raise ZeroDivisionError
    assert data(torch.get_rng_state()) == before


def test_a_process_that_seeds_nothing_draws_other_numbers() -> None:
    import subprocess
    import sys

    line = f"import {torch.__name__} as t; print(t.initial_seed(), t.Generator().initial_seed())"
    (one, mine), (other, same) = (
        subprocess.run([sys.executable, "-c", line], check=True, capture_output=True, text=True).stdout.split()
        for _ in range(2)
    )
    assert one != other and mine == same == "67280421310721"


def test_seed_is_new_each_time() -> None:
    seeds = {torch.seed() for _ in range(8)} | {torch.Generator().seed() for _ in range(8)}
    assert len(seeds) == 16
    assert torch.initial_seed() == torch.random.initial_seed() == torch.default_generator.initial_seed()
    assert dtype_name(torch.get_rng_state().dtype) == "uint8" and torch.get_rng_state().numel() == 5056
