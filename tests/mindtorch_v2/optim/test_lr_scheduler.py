"""Learning-rate schedulers: the rates and momenta of every step, states, warnings, as the oracle's."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from .._outcome import outcome
from .._subject import subject as torch
from .._subject import submodule

S = submodule("optim.lr_scheduler")
# Schedulers inside schedulers step before the optimiser does.
pytestmark = pytest.mark.filterwarnings("ignore:Detected call of")
Make = Callable[[Any, Any], Any]


class Wave:
    """A callable object with a state of its own."""

    def __init__(self, strength: float) -> None:
        self.strength = strength

    def __call__(self, x: float) -> float:
        return 1 / (1 + self.strength * x)


def halves(x: float) -> float:
    return 0.5 ** (x // 20)


# Every public scheduler with several options; `L` is the module of schedulers, `o` an optimiser with two groups.
CASES: dict[str, Make] = {
    "lambda": lambda L, o: L.LambdaLR(o, lambda e: 0.95**e),
    "lambda per group": lambda L, o: L.LambdaLR(o, [lambda e: e // 30, Wave(0.2)]),
    "multiplicative": lambda L, o: L.MultiplicativeLR(o, lambda e: 0.97),
    "multiplicative per group": lambda L, o: L.MultiplicativeLR(o, (Wave(0.01), halves)),
    "step": lambda L, o: L.StepLR(o, 7),
    "step gamma": lambda L, o: L.StepLR(o, step_size=30, gamma=0.5),
    "multistep": lambda L, o: L.MultiStepLR(o, [30, 80]),
    "multistep twice": lambda L, o: L.MultiStepLR(o, milestones=(5, 5, 40, 0), gamma=0.3),
    "constant": lambda L, o: L.ConstantLR(o),
    "constant long": lambda L, o: L.ConstantLR(o, factor=0.25, total_iters=40),
    "linear": lambda L, o: L.LinearLR(o),
    "linear down": lambda L, o: L.LinearLR(o, start_factor=1.0, end_factor=0.1, total_iters=60),
    "exponential": lambda L, o: L.ExponentialLR(o, 0.9),
    "polynomial": lambda L, o: L.PolynomialLR(o),
    "polynomial power": lambda L, o: L.PolynomialLR(o, total_iters=70, power=2.5),
    "cosine": lambda L, o: L.CosineAnnealingLR(o, 50),
    "cosine waves": lambda L, o: L.CosineAnnealingLR(o, T_max=7, eta_min=0.001),
    "restarts": lambda L, o: L.CosineAnnealingWarmRestarts(o, 10),
    "restarts longer": lambda L, o: L.CosineAnnealingWarmRestarts(o, T_0=5, T_mult=2, eta_min=1e-3),
    "cyclic": lambda L, o: L.CyclicLR(o, 0.001, 0.1, step_size_up=9),
    "cyclic triangular2": lambda L, o: L.CyclicLR(o, [0.001, 0.01], [0.1, 0.2], 5, 12, mode="triangular2"),
    "cyclic exp": lambda L, o: L.CyclicLR(o, 0.01, 0.1, 10, mode="exp_range", gamma=0.97, base_momentum=0.6),
    "cyclic function": lambda L, o: L.CyclicLR(o, 0.01, 0.1, 10, scale_fn=halves, scale_mode="iterations"),
    "cyclic object": lambda L, o: L.CyclicLR(o, 0.01, 0.1, 10, scale_fn=Wave(0.3), cycle_momentum=False),
    "onecycle": lambda L, o: L.OneCycleLR(o, 0.1, total_steps=120),
    "onecycle linear": lambda L, o: L.OneCycleLR(
        o, [0.1, 0.3], epochs=10, steps_per_epoch=11, anneal_strategy="linear"
    ),
    "onecycle three": lambda L, o: L.OneCycleLR(o, 0.1, 105, three_phase=True, pct_start=0.4, base_momentum=[0.5, 0.6]),
    "onecycle still": lambda L, o: L.OneCycleLR(o, 0.2, 101, cycle_momentum=False, div_factor=3, final_div_factor=7.0),
    "sequential": lambda L, o: L.SequentialLR(o, [L.ConstantLR(o, 0.1, 20), L.ExponentialLR(o, 0.9)], [20]),
    "sequential three": lambda L, o: L.SequentialLR(
        o,
        schedulers=[L.LinearLR(o, 0.1, total_iters=10), L.CosineAnnealingLR(o, 40), L.StepLR(o, 9)],
        milestones=[10, 50],
    ),
    "sequential nested": lambda L, o: L.SequentialLR(
        o, [L.SequentialLR(o, [L.LinearLR(o), L.StepLR(o, 2)], [5]), L.ExponentialLR(o, 0.8)], [30]
    ),
    "chained": lambda L, o: L.ChainedScheduler([L.ConstantLR(o, 0.1, 20), L.ExponentialLR(o, 0.97)], optimizer=o),
    "chained three": lambda L, o: L.ChainedScheduler([L.StepLR(o, 10), L.LinearLR(o), L.MultiplicativeLR(o, halves)]),
    "sequential of chained": lambda L, o: L.SequentialLR(
        o, [L.ChainedScheduler([L.LinearLR(o), L.ExponentialLR(o, 0.9)]), L.PolynomialLR(o, 30)], [25]
    ),
    "plateau": lambda L, o: L.ReduceLROnPlateau(o),
    "plateau max": lambda L, o: L.ReduceLROnPlateau(o, "max", 0.5, patience=2, threshold=0.01, cooldown=3, min_lr=1e-3),
    "plateau abs": lambda L, o: L.ReduceLROnPlateau(o, patience=1, threshold_mode="abs", min_lr=[0.01, 0.1], eps=1e-4),
    "plateau max abs": lambda L, o: L.ReduceLROnPlateau(o, mode="max", factor=0.7, patience=0, threshold_mode="abs"),
}
PLAIN = [name for name in CASES if not name.startswith("plateau")]
# Their `step` takes no epoch.
WITH_EPOCH = [name for name in PLAIN if not name.startswith(("sequential", "chained"))]


def params(library: Any) -> list[dict[str, Any]]:
    first, second = (library.nn.Parameter(library.ones(1)) for _ in range(2))
    return [{"params": [first]}, {"params": [second], "lr": 0.5}]


def sgd(library: Any, tensor_lr: bool = False) -> Any:
    groups = params(library)
    if tensor_lr:
        groups[1]["lr"] = library.tensor(0.5, dtype=library.float64)
    return library.optim.SGD(groups, lr=library.tensor(0.05) if tensor_lr else 0.05, momentum=0.9)


def adamlike(library: Any) -> Any:
    """An optimiser with `betas` instead of a momentum."""

    class Adamlike(library.optim.Optimizer):
        def __init__(self, params: Any) -> None:
            super().__init__(params, {"lr": 0.05, "betas": (0.9, 0.999)})

        def step(self, closure: Any = None) -> None:
            pass

    return Adamlike(params(library))


def number(value: Any) -> Any:
    return ("tensor", str(value.dtype)[-7:], value.item()) if hasattr(value, "item") else value


def seen(optimizer: Any, scheduler: Any) -> Any:
    groups = [
        {key: number(value) for key, value in group.items() if key not in ("params", "betas")}
        for group in optimizer.param_groups
    ]
    betas = [group.get("betas") for group in optimizer.param_groups]
    return (
        groups,
        betas,
        [number(rate) for rate in scheduler.get_last_lr()],
        scheduler.last_epoch if hasattr(scheduler, "last_epoch") else None,
    )


def metric(step: int) -> float:
    """Falls, then rises, then stays."""
    return 1.0 / (step + 1) if step < 10 else min(step / 60, 1.0)


def advance(optimizer: Any, scheduler: Any, steps: int, start: int = 0) -> list[Any]:
    result = []
    for step in range(start, start + steps):
        optimizer.step()
        if type(scheduler).__name__ == "ReduceLROnPlateau":
            scheduler.step(metric(step))
        else:
            scheduler.step()
        result.append(seen(optimizer, scheduler))
    return result


def run(library: Any, name: str, optimizer: Any) -> Any:
    scheduler = CASES[name](library.optim.lr_scheduler, optimizer)
    return [seen(optimizer, scheduler), *advance(optimizer, scheduler, 100)]


def plain(value: Any) -> Any:
    """A state without what depends on the library."""
    if isinstance(value, dict):
        return [(key, plain(item)) for key, item in value.items() if key != "_scale_fn_ref"]
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return number(value)


def test_every_scheduler_has_a_case() -> None:
    made = {type(make(S, sgd(torch))).__name__ for make in CASES.values()}
    assert made == set(S.__all__) - {"LRScheduler"}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", ["numbers", "tensors", "betas", "Adam"])
def test_every_step_is_the_oracles(oracle: ModuleType, name: str, kind: str) -> None:
    def make(library: Any) -> Any:
        if kind == "Adam":
            return library.optim.Adam(params(library), lr=0.05, amsgrad=True)
        return adamlike(library) if kind == "betas" else sgd(library, tensor_lr=kind == "tensors")

    # As text, in which a NaN equals a NaN.
    mine, theirs = run(torch, name, make(torch)), run(oracle, name, make(oracle))
    assert repr(mine) == repr(theirs)


@pytest.mark.parametrize("name", WITH_EPOCH)
def test_closed_form(oracle: ModuleType, name: str) -> None:
    """`step(epoch)` jumps, with a warning, to the epoch's rate."""

    def jump(library: Any) -> Any:
        optimizer = sgd(library)
        scheduler = CASES[name](library.optim.lr_scheduler, optimizer)
        optimizer.step()
        result = []
        for epoch in (1, 5, 3, 40, 0, 77, 50, 100):
            scheduler.step(epoch)
            result.append(seen(optimizer, scheduler))
        scheduler.step()
        return str([*result, seen(optimizer, scheduler)])

    assert outcome(lambda: jump(torch)) == outcome(lambda: jump(oracle))


def pair(library: Any, name: str) -> tuple[Any, Any]:
    optimizer = sgd(library)
    return optimizer, CASES[name](library.optim.lr_scheduler, optimizer)


@pytest.mark.parametrize("name", CASES)
def test_state_goes_both_ways(oracle: ModuleType, name: str) -> None:
    states, rest = {}, {}
    for library in (torch, oracle):
        optimizer, scheduler = pair(library, name)
        advance(optimizer, scheduler, 33)
        states[library] = copy.deepcopy((optimizer.state_dict(), scheduler.state_dict()))
        rest[library] = repr(advance(optimizer, scheduler, 40, 33))
    assert repr(plain(states[torch])) == repr(plain(states[oracle]))
    assert rest[torch] == rest[oracle]
    for source, target in ((torch, oracle), (oracle, torch), (torch, torch)):
        optimizer, scheduler = pair(target, name)
        optimizer.load_state_dict(states[source][0])
        scheduler.load_state_dict(copy.deepcopy(states[source][1]))
        assert repr(advance(optimizer, scheduler, 40, 33)) == rest[source]


REPEATED: dict[str, Callable[[Any, Any, int], Any]] = {
    "LambdaLR": lambda L, o, e: L.LambdaLR(o, halves, e),
    "MultiplicativeLR": lambda L, o, e: L.MultiplicativeLR(o, halves, e),
    "StepLR": lambda L, o, e: L.StepLR(o, 4, last_epoch=e),
    "MultiStepLR": lambda L, o, e: L.MultiStepLR(o, [12, 20], last_epoch=e),
    "ConstantLR": lambda L, o, e: L.ConstantLR(o, total_iters=20, last_epoch=e),
    "LinearLR": lambda L, o, e: L.LinearLR(o, total_iters=20, last_epoch=e),
    "ExponentialLR": lambda L, o, e: L.ExponentialLR(o, 0.8, e),
    "PolynomialLR": lambda L, o, e: L.PolynomialLR(o, 30, last_epoch=e),
    "CosineAnnealingLR": lambda L, o, e: L.CosineAnnealingLR(o, 25, last_epoch=e),
    "CosineAnnealingWarmRestarts": lambda L, o, e: L.CosineAnnealingWarmRestarts(o, 20, last_epoch=e),
    "CyclicLR": lambda L, o, e: L.CyclicLR(o, 0.01, 0.1, 8, last_epoch=e),
    "OneCycleLR": lambda L, o, e: L.OneCycleLR(o, 0.1, 60, last_epoch=e),
}


@pytest.mark.parametrize("kind", REPEATED)
def test_resuming_by_last_epoch(oracle: ModuleType, kind: str) -> None:
    """A scheduler made with `last_epoch` for an optimiser whose state was loaded."""

    def resume(library: Any) -> Any:
        optimizer, fresh = sgd(library), sgd(library)
        advance(optimizer, REPEATED[kind](library.optim.lr_scheduler, optimizer, -1), 12)
        fresh.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        again = REPEATED[kind](library.optim.lr_scheduler, fresh, 11)
        return str([seen(fresh, again), *advance(fresh, again, 30)])

    mine = outcome(lambda: resume(torch))
    assert mine == outcome(lambda: resume(oracle)) and "Error" not in mine[0]


# -- warnings ---------------------------------------------------------------------------------------------------------
def before_the_optimizer(library: Any) -> Any:
    scheduler = library.optim.lr_scheduler.StepLR(sgd(library), 2)
    scheduler.step()
    scheduler.step()
    return scheduler.get_last_lr()


def step_replaced(library: Any) -> Any:
    optimizer = sgd(library)
    scheduler = library.optim.lr_scheduler.StepLR(optimizer, 2)
    optimizer.step = lambda: None
    optimizer.step()
    scheduler.step()
    return scheduler.get_last_lr()


def get_lr_by_hand(library: Any) -> Any:
    optimizer = sgd(library)
    L = library.optim.lr_scheduler
    return [make(L, optimizer).get_lr() for name, make in CASES.items() if name in WITH_EPOCH]


def epoch_given(library: Any) -> Any:
    optimizer = sgd(library)
    plateau = library.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
    plateau.step(1.0, 5)
    plateau.step(library.tensor(2.0), epoch=7)
    scheduler = library.optim.lr_scheduler.StepLR(optimizer, 2)
    optimizer.step()
    scheduler.step(4)
    return [plateau.last_epoch, plateau.best, scheduler.get_last_lr()]


def in_order(library: Any) -> Any:
    optimizer = sgd(library)
    first, second = (library.optim.lr_scheduler.ExponentialLR(optimizer, 0.5) for _ in range(2))
    optimizer.step()
    first.step()
    second.step()
    return [optimizer.param_groups[0]["lr"], type(optimizer.step).__name__, optimizer.step.__name__]


def pickled(library: Any) -> Any:
    optimizer = sgd(library)
    scheduler = library.optim.lr_scheduler.MultiStepLR(optimizer, [1, 3])
    loaded = pickle.loads(pickle.dumps(scheduler))
    loaded.optimizer.step()
    loaded.step()
    return [loaded.get_last_lr(), loaded.optimizer is not optimizer, type(loaded).__module__.partition(".")[2]]


def group_added(library: Any) -> Any:
    optimizer = sgd(library)
    plateau = library.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    optimizer.add_param_group({"params": [library.nn.Parameter(library.ones(1))]})
    plateau.step(1.0)
    plateau.step(2.0)
    return plateau.get_last_lr()


def own_scheduler(library: Any) -> Any:
    class Mine(library.optim.lr_scheduler._LRScheduler):
        def get_lr(self) -> Any:
            with library.optim.lr_scheduler._enable_get_lr_call(self):
                library.optim.lr_scheduler._warn_get_lr_called_within_step(self)
            return [base / (1 + self.last_epoch) for base in self.base_lrs]

    optimizer = sgd(library)
    scheduler = Mine(optimizer)
    optimizer.step()
    scheduler.step()
    scheduler.step(7)
    return [scheduler.get_last_lr(), list(scheduler.state_dict())]


BEHAVIOURS = [
    before_the_optimizer,
    step_replaced,
    get_lr_by_hand,
    epoch_given,
    in_order,
    pickled,
    group_added,
    own_scheduler,
]


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda f: f.__name__)
def test_behaviour(oracle: ModuleType, behaviour: Callable[[Any], Any]) -> None:
    assert outcome(lambda: behaviour(torch)) == outcome(lambda: behaviour(oracle))


@pytest.mark.parametrize("behaviour", [before_the_optimizer, step_replaced, epoch_given], ids=lambda f: f.__name__)
def test_whole_texts_of_warnings(oracle: ModuleType, behaviour: Callable[[Any], Any]) -> None:
    texts = []
    for library in (torch, oracle):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            behaviour(library)
        texts.append([(str(w.message), w.category) for w in caught])
    assert texts[0] == texts[1] and texts[0]


def test_a_warning_names_the_users_line() -> None:
    scheduler = S.StepLR(sgd(torch), 2)
    with pytest.warns(UserWarning, match="Detected call of") as caught:
        scheduler.step()
    assert caught[0].filename == __file__


def test_rates_that_are_tensors_are_not_shared() -> None:
    optimizer = sgd(torch, tensor_lr=True)
    rate = optimizer.param_groups[0]["lr"]
    scheduler = S.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] is rate and rate.item() == pytest.approx(0.025)
    scheduler.get_last_lr()[0].fill_(9.0)
    scheduler.base_lrs[0].fill_(9.0)
    assert rate.item() == pytest.approx(0.025)
    assert optimizer.param_groups[0]["initial_lr"].item() == pytest.approx(0.05)


def test_states_are_not_changed_by_loading() -> None:
    optimizer = sgd(torch)
    for make in CASES.values():
        scheduler = make(S, optimizer)
        state = scheduler.state_dict()
        keys = set(state)
        if type(scheduler).__name__ != "CyclicLR" or torch.__name__ != "torch":
            scheduler.load_state_dict(state)
            assert set(state) == keys


def test_names(oracle: ModuleType) -> None:
    theirs = oracle.optim.lr_scheduler
    assert set(S.__all__) == set(theirs.__all__)
    for name in theirs.__all__:
        mine, other = getattr(S, name), getattr(theirs, name)
        assert mine.__module__.partition(".")[2] == other.__module__.partition(".")[2]
        public = {key for key in dir(other) if not key.startswith("__")}
        assert {key for key in public if not hasattr(mine, key)} <= ALLOWED.get(name, set()), name


# Static helpers of PyTorch's class for functions that are one expression here.
ALLOWED = {"CyclicLR": {"_triangular_scale_fn", "_triangular2_scale_fn", "_exp_range_scale_fn"}}
