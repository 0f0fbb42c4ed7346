"""`torch.ao.pruning`: sparsifiers and schedulers, as PyTorch's do."""

from __future__ import annotations

import contextlib
import importlib
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from .. import _oracle
from .._outcome import outcome
from .._subject import subject


def _pruning(torch: Any) -> Any:
    return importlib.import_module(f"{torch.__name__}.ao.pruning")


def _model(torch: Any, rows: int = 6, columns: int = 8) -> Any:
    nn = torch.nn
    model = nn.Sequential(nn.Linear(columns, rows), nn.Sequential(nn.ReLU(), nn.Linear(rows, 4)), nn.Linear(4, 2))
    with torch.no_grad():
        # Sums are exact, and no two are of the same size: which of them is the smaller one is nobody's promise.
        for i, p in enumerate(model.parameters()):
            p.copy_(torch.arange(p.numel()).mul(37 + i).remainder(101).sub(49.75).div(8).reshape(p.shape))
    return model


def _prepared(torch: Any, sparsifier: Any, config: Any = None, **size: int) -> Any:
    model = _model(torch, **size)
    sparsifier.prepare(model, config)
    return model


def _masks(sparsifier: Any) -> Any:
    return {name: state["mask"] for name, state in sparsifier.state.items()}


ONE = [{"tensor_fqn": "0.weight"}]
NORMS: list[tuple[dict[str, Any], dict[str, int]]] = [
    ({}, {}),
    ({"norm": 1}, {}),
    ({"norm": 3}, {}),
    ({"norm": lambda t: -t}, {}),
    *(({"sparsity_level": level}, {}) for level in (-1.0, 0.0, 0.01, 0.3, 0.99, 1.0, 2.0)),
    *(({"sparse_block_shape": block}, {}) for block in ((1, 1), (2, 2), (3, 8), (4, 1), (5, 3), (9, 9))),
    *(({"sparse_block_shape": (4, 3), "sparsity_level": level}, {}) for level in (0.2, 0.9, 1.0)),
    *(({"zeros_per_block": zeros}, {}) for zeros in (-1, 0, 1, 2, 3, 4, 5)),
    ({"zeros_per_block": 2, "sparsity_level": 1.0}, {}),
    ({"zeros_per_block": 3, "sparsity_level": 1.0, "sparse_block_shape": (2, 4)}, {}),
    ({"zeros_per_block": 2, "sparse_block_shape": (4, 3)}, {}),
    ({"zeros_per_block": 2, "sparse_block_shape": (4, 3), "sparsity_level": 1.0}, {}),
    ({}, {"rows": 5, "columns": 7}),
    ({"zeros_per_block": 1, "sparse_block_shape": (2, 2)}, {"rows": 5, "columns": 6}),
]


def _by_norm(torch: Any, settings: dict[str, Any], size: dict[str, int]) -> Any:
    sparsifier = _pruning(torch).WeightNormSparsifier(**settings)
    model = _prepared(torch, sparsifier, ONE, **size)
    sparsifier.step()
    return _masks(sparsifier), model[0](torch.ones(2, size.get("columns", 8)))


def _same(use: Callable[..., Any], *args: Any) -> None:
    expected = outcome(lambda: use(_oracle.load(), *args))
    got = outcome(lambda: use(subject, *args))
    assert _named(got) == _named(expected)


def _named(value: Any) -> Any:
    """The name of the library does not count."""
    if isinstance(value, (list, tuple)):
        return [_named(v) for v in value]
    if isinstance(value, dict):
        return {k: _named(v) for k, v in value.items()}
    return value.replace(subject.__name__, "torch") if isinstance(value, str) else value


@pytest.mark.parametrize(("settings", "size"), NORMS)
def test_masks_by_norm(settings: dict[str, Any], size: dict[str, int]) -> None:
    _same(_by_norm, settings, size)


def _near_diagonal(torch: Any, nearliness: int) -> Any:
    sparsifier = _pruning(torch).NearlyDiagonalSparsifier(nearliness)
    _prepared(torch, sparsifier, ONE)
    sparsifier.step()
    return _masks(sparsifier)


@pytest.mark.parametrize("nearliness", [-1, 0, 1, 2, 3, 5, 11, 13])
def test_masks_near_the_diagonal(nearliness: int) -> None:
    _same(_near_diagonal, nearliness)


def _whole_model(torch: Any) -> Any:
    sparsifier = _pruning(torch).WeightNormSparsifier()
    model = _prepared(torch, sparsifier)
    text = repr(sparsifier)
    sparsifier.step()
    sparsifier.enable_mask_update = False
    with torch.no_grad():
        model[0].parametrizations.weight.original.neg_().add_(1)
    sparsifier.step()
    value = model[0](torch.ones(1, 8))
    sparsifier.squash_mask(("sparsity_level",), {"1.1": ("zeros_per_block",), "none": ("a",)})
    kept = [getattr(m, "sparse_params", None) for m in (model[0], model[1][1], model[2])]
    return text, repr(_pruning(torch).WeightNormSparsifier()), value, kept, [*model.state_dict()], model[0].weight


def _states(torch: Any) -> Any:
    pruning = _pruning(torch)
    first = pruning.WeightNormSparsifier(0.6)
    model = _prepared(torch, first, [*ONE, {"tensor_fqn": "2.weight", "sparsity_level": 0.1}])
    first.step()
    kept = first.state_dict()
    names = [sorted(group) for group in kept["groups"]], [*model.state_dict()]
    second = pruning.WeightNormSparsifier()
    other = _prepared(torch, second, [*ONE, {"tensor_fqn": "2.weight"}])
    second.load_state_dict(kept)
    groups = [
        (g["tensor_fqn"], g["sparsity_level"], g["module"] is other.get_submodule(g["module_fqn"]))
        for g in second.groups
    ]
    third = pruning.NearlyDiagonalSparsifier()
    third.__setstate__(pickle.loads(pickle.dumps(third.__getstate__())))
    return names, groups, other[0].parametrizations.weight[0].mask, third.defaults


CONFIGS: list[Any] = [
    [],
    [{"tensor_fqn": "0.bias"}],
    [{"tensor_fqn": "0.weight", "module_fqn": "0", "tensor_name": "weight"}],
    [{"tensor_fqn": "0.weight", "module_fqn": "1"}],
    [{"tensor_fqn": "0.weight", "tensor_name": "bias"}],
    [{"module_fqn": "0"}],
    ["0.weight"],
    [{"tensor_fqn": "7.weight"}],
    [{"tensor_fqn": "0.none"}],
]


def _configured(torch: Any, config: Any) -> Any:
    sparsifier = _pruning(torch).NearlyDiagonalSparsifier()
    model = _prepared(torch, sparsifier, config)
    return [*sparsifier.state], [name for name, _ in model.named_parameters()]


@pytest.mark.parametrize("config", CONFIGS)
def test_configurations(config: Any) -> None:
    _same(_configured, config)


def _converted(torch: Any) -> Any:
    sparsifier = _pruning(torch).WeightNormSparsifier()
    model = _prepared(torch, sparsifier, [*ONE, {"tensor_fqn": "1.1.weight"}])
    sparsifier.step()

    class Sparse(torch.nn.Module):
        @classmethod
        def from_dense(cls, module: Any) -> Any:
            made = cls()
            made.register_buffer("weight", module.weight.detach())
            return made

    seen: list[Any] = []
    model[0].register_forward_hook(lambda *_: seen.append("after"))
    model[0].register_forward_pre_hook(lambda *_: seen.append("before"))
    made = sparsifier.convert(model, {torch.nn.Linear: Sparse})
    hooks = len(made[0]._forward_hooks), len(made[0]._forward_pre_hooks)
    kinds = [type(m).__name__ for m in (made[0], made[1][1], made[2], model[0])]
    inplace = sparsifier.convert(model, {torch.nn.Linear: Sparse}, inplace=True) is model
    return kinds, hooks, inplace, type(model[0]).__name__, made[0].weight


def _refused(torch: Any) -> Any:
    pruning = _pruning(torch)
    utils = importlib.import_module(f"{torch.__name__}.ao.pruning.sparsifier.utils")
    sparsifier = pruning.NearlyDiagonalSparsifier()
    model = _prepared(torch, sparsifier, ONE)
    return [
        outcome(fn)
        for fn in (
            lambda: pruning.BaseSparsifier(),
            lambda: sparsifier.convert(model),
            lambda: pruning.FakeSparsity(torch.ones(2))(torch.ones(3)),
            lambda: pruning.FakeSparsity(torch.ones(2)).state_dict(),
            lambda: pruning.BaseScheduler(model),
            lambda: pruning.BaseScheduler(pruning.WeightNormSparsifier()),
            lambda: pruning.LambdaSL(pruning.WeightNormSparsifier(), [lambda e: 1.0]),
            lambda: pruning.CubicSL(pruning.WeightNormSparsifier(), init_sl=[1.0]),
            lambda: sparsifier.load_state_dict({"state": {"9.weight": {}}, "groups": []}),
            lambda: pruning.module_to_fqn(model, model[1][1]),
            lambda: pruning.module_to_fqn(model, model),
            lambda: pruning.module_to_fqn(model[1], model[0]),
            lambda: pruning.fqn_to_module(model, "1.1.bias"),
            lambda: pruning.fqn_to_module(model, "1.7.bias"),
            lambda: pruning.get_arg_info_from_tensor_fqn(model[2], "bias"),
            lambda: pruning.get_arg_info_from_tensor_fqn(model, "1.1.bias"),
            lambda: [utils.module_contains_param(m, pruning.FakeSparsity) for m in (model, model[0], model[2])],
            lambda: utils.swap_module(model[2], {}) is model[2],
        )
    ]


SCHEDULES: list[Callable[[Any, Any], Any]] = [
    lambda p, s: p.LambdaSL(s, lambda epoch: epoch / 4),
    lambda p, s: p.LambdaSL(s, [lambda epoch: 1.0, lambda epoch: 0.5**epoch], last_epoch=2),
    lambda p, s: p.LambdaSL(s, lambda epoch: 1, verbose=True),
    lambda p, s: p.CubicSL(s, init_sl=0.1, init_t=1, delta_t=1, total_t=3),
    lambda p, s: p.CubicSL(s, init_sl=[0.0, 0.2], init_t=2, delta_t=[1, 2], total_t=2, initially_zero=True),
]


def _scheduled(torch: Any, schedule: Callable[[Any, Any], Any], first: bool) -> Any:
    pruning = _pruning(torch)
    sparsifier = pruning.WeightNormSparsifier(0.8)
    _prepared(torch, sparsifier, [*ONE, {"tensor_fqn": "2.weight", "sparsity_level": 0.4}])
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        made = schedule(pruning, sparsifier)
        levels = [made.get_last_sl()]
        for epoch in range(4):
            if first:
                sparsifier.step()
            made.step(epoch if epoch % 2 else None)
            levels.append(made.get_last_sl())
    kept = made.state_dict()
    again = schedule(pruning, sparsifier)
    again.load_state_dict(kept)
    state = sorted(kept), again.last_epoch, again.get_last_sl(), sparsifier._step_count
    return levels, said.getvalue(), state, outcome(made.get_sl), repr(made), _masks(sparsifier)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_schedules(schedule: Callable[[Any, Any], Any], first: bool) -> None:
    _same(_scheduled, schedule, first)


def _overridden(torch: Any) -> Any:
    pruning = _pruning(torch)
    sparsifier = pruning.WeightNormSparsifier()
    _prepared(torch, sparsifier, ONE)
    made = pruning.LambdaSL(sparsifier, lambda epoch: 1)
    sparsifier.step = lambda: None
    made.step()
    return made.last_epoch


@pytest.mark.parametrize("use", [_whole_model, _states, _converted, _refused, _overridden])
def test_sparsifiers(use: Callable[[Any], Any]) -> None:
    _same(use)
