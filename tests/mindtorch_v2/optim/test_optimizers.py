"""Every optimiser with every set of options of PyTorch's own table, in every form, against PyTorch; and without it."""

from __future__ import annotations

import copy
import math
import pickle
import re
import warnings
from typing import Any

import pytest

from .._oracle import convert_argument, load
from .._subject import IS_ORACLE, mindtorch_only, submodule
from .._subject import subject as torch
from ._pairs import FUSED, NAMES, STEPPED, Pair, compare_states, info, inputs, to_mine, to_theirs

nn = submodule("nn")
optim = submodule("optim")

# Ten steps of the same formulas, in another order of the same operations.
TOLERANCE = {"float32": (2e-5, 2e-6), "float64": (1e-9, 1e-11), "complex64": (2e-5, 2e-6), "bfloat16": (3e-2, 2e-2)}
# Orthogonalisation is computed in bfloat16, whose products the libraries sum in another order.
ROUGH = {"Muon": (1e-3, 2e-4)}
REAL_ONLY = ("Adafactor", "Muon")  # refuse complex parameters
NEWEST = ("Adafactor", "Muon")  # have had all of their options from the beginning
FORMS: list[dict[str, Any]] = [{}, {"foreach": False}, {"foreach": True}, {"fused": True}]


def forms(name: str) -> list[dict[str, Any]]:
    if name == "Muon":
        return [{}]
    # Where no fused step exists, nothing else than the loop serves a CPU that was asked nothing.
    return FORMS if name in FUSED else FORMS[1:3]


def test_who_refuses_complex_parameters(oracle: Any) -> None:
    assert [name for name in STEPPED if not info(name).supports_complex] == list(REAL_ONLY)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (name, dtype)
        for name in STEPPED
        for dtype in ("float32", "float64", "complex64")
        if dtype != "complex64" or name not in REAL_ONLY
    ],
)
def test_ten_steps(oracle: Any, name: str, dtype: str) -> None:
    rtol, atol = ROUGH.get(name, TOLERANCE[dtype])
    for options in inputs(name, getattr(oracle, dtype)):
        for form in forms(name):
            if form.get("fused") and dtype == "complex64":
                continue
            where = f"{name} {options} {form} {dtype}"
            pair = Pair(name, dtype, {**options, **form})
            pair.steps()
            pair.compare(rtol, atol, where)
            assert repr(pair.subject) == repr(pair.reference), where


@pytest.mark.parametrize("name", [name for name in STEPPED if name not in ("Adafactor", "Muon")])
def test_differentiable(oracle: Any, name: str) -> None:
    """Gradients of a loss after two steps with respect to the first gradients, and to the learning rate of SGD."""

    def after(library: Any, values: Any, rate: Any) -> list[list[float]]:
        start, first, second = (library.tensor(v, dtype=library.float64, requires_grad=True) for v in values)
        learned = library.tensor(rate, dtype=library.float64, requires_grad=True)
        param = start.clone()
        options = {"lr": learned} if name == "SGD" else {"lr": 0.1}
        optimizer = getattr(library.optim, name)([param], differentiable=True, **options)
        for grad in (first, second):
            param.grad = grad.clone()
            optimizer.step()
        inputs = [start, first, second] + ([learned] if name == "SGD" else [])
        grads = library.autograd.grad((param**2).sum(), inputs, allow_unused=True)
        return [[] if grad is None else grad.flatten().tolist() for grad in grads]

    if name in ("Adamax", "Rprop"):
        # Their second step overwrites what the first one saved.
        for library in (torch, oracle):
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                after(library, [[0.5], [0.3], [-0.3]], 0.1)
        return
    values = [[0.5, -1.0, 2.0], [0.3, 0.2, -0.1], [-0.3, 0.4, 0.2]]
    mine, theirs = after(torch, values, 0.1), after(oracle, values, 0.1)
    for left, right in zip(mine, theirs):
        assert left == pytest.approx(right, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("name", STEPPED)
def test_tensor_lr(oracle: Any, name: str) -> None:
    rtol, atol = ROUGH.get(name, TOLERANCE["float32"])
    for form in forms(name):
        if name in ("Adam", "AdamW") and form.get("foreach"):
            continue  # refused
        pair = Pair(name, "float32", {"lr": oracle.tensor(0.01), **form})
        pair.steps(3)
        pair.compare(rtol, atol, f"{name} {form}")


@pytest.mark.parametrize("name", STEPPED)
def test_exchange_of_states(oracle: Any, name: str) -> None:
    """A state saved by either library goes on in the other as in its own."""
    rtol, atol = ROUGH.get(name, TOLERANCE["float64"])
    for form in forms(name):
        mine, theirs = Pair(name, "float64", form), Pair(name, "float64", form)
        for pair in (mine, theirs):
            pair.steps(3)
        mine.subject.load_state_dict(to_mine(theirs.reference.state_dict()))
        mine.reference.load_state_dict(to_theirs(theirs.subject.state_dict()))
        mine.compare(rtol, atol, f"{name} {form}")
        mine.steps(3)
        mine.compare(rtol, atol, f"{name} {form}")


@pytest.mark.parametrize("name", [name for name in STEPPED if name not in NEWEST])
def test_old_states(oracle: Any, name: str) -> None:
    """Step counts that are numbers, and groups without the newer options, as older versions saved them."""

    def older(optimizer: Any) -> Any:
        state = copy.deepcopy(optimizer.state_dict())
        for group in state["param_groups"]:
            for key in ("foreach", "maximize", "differentiable", "capturable", "fused", "amsgrad", "nesterov"):
                group.pop(key, None)
        for own in state["state"].values():
            for key in ("step", "mu_product", "eta", "mu"):
                if key in own:
                    own[key] = own[key].item()
        return state

    pair = Pair(name, "float64", {})
    pair.steps(2)
    pair.subject.load_state_dict(older(pair.subject))
    pair.reference.load_state_dict(older(pair.reference))
    rtol, atol = ROUGH.get(name, TOLERANCE["float64"])
    pair.compare(rtol, atol, name)
    pair.steps(2)
    pair.compare(rtol, atol, name)


@pytest.mark.parametrize("name", NAMES)
def test_refusals(oracle: Any, name: str) -> None:
    """PyTorch's own list of wrong options: same type, same text."""
    seen = 0
    for wrong in info(name).optim_error_inputs_func(device="cpu", dtype=oracle.float32):
        given = wrong.optimizer_error_input
        if given.params is not None and "sparse" in str(given.params):
            continue  # there are no sparse tensors here
        outcomes = []
        for library, convert in ((oracle, lambda x: x), (torch, _mine)):
            # The table's dicts are changed by the optimiser that gets them.
            params, options = convert(_copied(given.params)), convert(given.kwargs)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    optimizer = getattr(library.optim, name)(params, **options)
                    optimizer.step()
                    outcomes.append([str(w.message) for w in caught])
                except Exception as error:
                    text = re.sub(r"torch\.cuda\.Float|torch\.Float", "Float", str(error))
                    outcomes.append((type(error).__name__, text))
        assert outcomes[0] == outcomes[1], given.desc
        seen += 1
    assert seen > 4 or name in ("LBFGS", "SparseAdam")


def _copied(params: Any) -> Any:
    if isinstance(params, list):
        return [dict(each) if isinstance(each, dict) else each for each in params]
    return params


def _mine(value: Any) -> Any:
    """Arguments of the oracle as ours; the same parameter twice stays the same parameter."""
    oracle = load()
    known: dict[int, Any] = {}

    def one(x: Any) -> Any:
        if isinstance(x, oracle.Tensor):
            if id(x) not in known:
                made = convert_argument(x)
                if isinstance(x, oracle.nn.Parameter):
                    made = nn.Parameter(made.detach())
                made.grad = None if x.grad is None else convert_argument(x.grad)
                known[id(x)] = made
            return known[id(x)]
        if isinstance(x, (list, tuple)):
            return type(x)(one(item) for item in x)
        if isinstance(x, dict):
            return {key: one(item) for key, item in x.items()}
        return x

    return one(value)


@pytest.mark.parametrize("options", [{}, {"line_search_fn": "strong_wolfe"}, {"lr": 0.1, "history_size": 3}])
def test_lbfgs(oracle: Any, options: dict[str, Any]) -> None:
    def run(library: Any) -> tuple[Any, Any, list[float]]:
        x = library.nn.Parameter(library.tensor([-1.5, 2.0, 0.5], dtype=library.float64))
        y = library.nn.Parameter(library.tensor([[1.0 + 1.0j]], dtype=library.complex128))
        optimizer = library.optim.LBFGS([x, y], max_iter=5, **options)

        def closure() -> Any:
            optimizer.zero_grad()
            loss = ((1 - x[:-1]) ** 2 + 100 * (x[1:] - x[:-1] ** 2) ** 2).sum() + library.view_as_real(y).square().sum()
            loss.backward()
            return loss

        losses = [float(optimizer.step(closure)) for _ in range(6)]
        return optimizer, [x, y], losses

    mine, theirs = run(torch), run(oracle)
    assert mine[2] == pytest.approx(theirs[2], rel=1e-6)
    for left, right in zip(mine[1], theirs[1]):
        assert left.tolist()[0] == pytest.approx(right.tolist()[0], rel=1e-6)
    compare_states(mine[0].state_dict(), theirs[0].state_dict(), 1e-5, 1e-7, "LBFGS")


class SparseGradient:
    """As much of a sparse gradient as SparseAdam looks at."""

    is_sparse = True

    def __init__(self, places: Any, values: Any) -> None:
        self.places, self.values = places, values

    def coalesce(self) -> SparseGradient:
        return self

    def _indices(self) -> Any:
        return self.places

    def _values(self) -> Any:
        return self.values

    def __neg__(self) -> SparseGradient:
        return SparseGradient(self.places, -self.values)


@mindtorch_only
@pytest.mark.parametrize("maximize", [False, True])
def test_sparse_adam(oracle: Any, maximize: bool) -> None:
    functional = submodule("optim._functional")
    param, first, second = (torch.arange(12.0).reshape(4, 3) for _ in range(3))
    theirs = oracle.nn.Parameter(oracle.arange(12.0).reshape(4, 3))
    state = {"step": 0, "exp_avg": to_theirs(first), "exp_avg_sq": to_theirs(second)}
    optimizer = oracle.optim.SparseAdam([theirs], lr=0.1, maximize=maximize)
    optimizer.state[theirs] = state
    for step in range(1, 5):
        places, values = [[step % 4, 3]] if step % 4 != 3 else [[3]], oracle.full((2 - (step == 3), 3), 0.5 * step)
        theirs.grad = oracle.sparse_coo_tensor(places, values, (4, 3))
        optimizer.step()
        gradient = SparseGradient(torch.tensor(places), to_mine(values))
        functional.sparse_adam(
            [param], [gradient], [first], [second], [step], eps=1e-8, beta1=0.9, beta2=0.999, lr=0.1, maximize=maximize
        )
    for mine, right in ((param, theirs), (first, state["exp_avg"]), (second, state["exp_avg_sq"])):
        assert oracle.allclose(to_theirs(mine), right.detach(), rtol=1e-5, atol=1e-6)


def test_libraries_find_every_optimizer_in_the_modules_dict() -> None:
    assert {name for name in optim.__all__ if name[0].isupper()} <= set(vars(optim))
    assert vars(optim) is optim.__dict__


def test_names(oracle: Any) -> None:
    assert set(oracle.optim.__all__) <= set(optim.__all__)
    for name in ("adam", "adamw", "sgd", "adagrad", "adadelta", "adamax", "asgd", "nadam", "radam", "rmsprop", "rprop"):
        mine, theirs = submodule(f"optim.{name}"), getattr(oracle.optim._functional, name)
        assert _parameters(getattr(mine, name)) == _parameters(theirs)
    for name in NAMES:
        assert _parameters(getattr(optim, name).__init__) == _parameters(getattr(oracle.optim, name).__init__)


def _parameters(function: Any) -> list[Any]:
    import inspect

    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


# -- without the oracle ----------------------------------------------------------------------------------------------
def _forms() -> list[Any]:
    """Every optimizer with each of its forms."""
    lists = [(name, form) for name in STEPPED for form in ({}, {"foreach": True}) if not form or name != "Muon"]
    return [*lists, *((name, {"fused": True}) for name in STEPPED if name in FUSED)]


@pytest.mark.parametrize(("name", "form"), _forms())
def test_reaches_a_minimum(name: str, form: dict[str, Any]) -> None:
    target = torch.tensor([[1.0, -2.0], [0.5, 3.0]])
    param = nn.Parameter(torch.zeros(2, 2))
    rates = {"Adadelta": 30.0, "Adagrad": 1.0, "Adafactor": 1.0, "Rprop": 0.1, "SGD": 0.1, "ASGD": 0.1}
    options: dict[str, Any] = {"weight_decay": 0.0} if name in ("Muon", "AdamW") else {}
    optimizer = getattr(optim, name)([param], lr=rates.get(name, 0.05), **options, **form)
    losses = []
    for _ in range(150):
        optimizer.zero_grad()
        loss = ((param - target) ** 2).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.05 * losses[0], losses[-1]
    assert param.requires_grad and param.grad_fn is None


KEYS = {
    "ASGD": ["step", "eta", "mu", "ax"],
    "Adadelta": ["step", "square_avg", "acc_delta"],
    "Adafactor": ["step", "row_var", "col_var"],
    "Adagrad": ["step", "sum"],
    "Adam": ["step", "exp_avg", "exp_avg_sq"],
    "AdamW": ["step", "exp_avg", "exp_avg_sq"],
    "Adamax": ["step", "exp_avg", "exp_inf"],
    "Muon": ["momentum_buffer"],
    "NAdam": ["step", "mu_product", "exp_avg", "exp_avg_sq"],
    "RAdam": ["step", "exp_avg", "exp_avg_sq"],
    "RMSprop": ["step", "square_avg"],
    "Rprop": ["step", "prev", "step_size"],
    "SGD": [],
}


@pytest.mark.parametrize("name", STEPPED)
def test_state(name: str) -> None:
    param = nn.Parameter(torch.ones(2, 3, dtype=torch.float64))
    optimizer = getattr(optim, name)([param])
    param.grad = torch.ones(2, 3, dtype=torch.float64)
    optimizer.step()
    optimizer.step()
    state = optimizer.state_dict()["state"].get(0, {})
    assert list(state) == KEYS[name]
    if "step" in state:
        assert state["step"].item() == 2.0 and state["step"].dtype is torch.float32 and state["step"].dim() == 0
    again = pickle.loads(pickle.dumps(optimizer))
    assert type(again) is type(optimizer) and repr(again) == repr(optimizer)
    again.step()


def test_first_step_of_adam() -> None:
    """The first step is lr times the sign of the gradient, whatever its size."""
    for form in ({}, {"foreach": True}, {"fused": True}):
        param = nn.Parameter(torch.zeros(3))
        param.grad = torch.tensor([1e-3, -5.0, 1e3])
        optim.Adam([param], lr=0.25, eps=0.0, **form).step()
        assert param.tolist() == pytest.approx([-0.25, 0.25, -0.25], rel=1e-5)
        decayed = nn.Parameter(torch.ones(1))
        decayed.grad = torch.zeros(1)
        optim.AdamW([decayed], lr=0.1, weight_decay=0.5, **form).step()
        assert decayed.item() == pytest.approx(1 - 0.1 * 0.5)


def test_momentum_by_hand() -> None:
    for form in ({}, {"foreach": True}, {"fused": True}):
        param = nn.Parameter(torch.zeros(1))
        optimizer = optim.SGD([param], lr=1.0, momentum=0.5, **form)
        for expected in (-1.0, -2.5, -4.25):
            param.grad = torch.ones(1)
            optimizer.step()
            assert param.item() == expected


def test_functional_forms() -> None:
    functional = submodule("optim._functional")
    param, average, square, step = torch.ones(2), torch.zeros(2), torch.zeros(2), torch.tensor(0.0)
    options: dict[str, Any] = {"amsgrad": False, "beta1": 0.9, "beta2": 0.999, "lr": 0.1, "weight_decay": 0}
    functional.adam([param], [torch.ones(2)], [average], [square], [], [step], eps=1e-8, maximize=False, **options)
    assert (
        step.item() == 1.0 and param.tolist() == pytest.approx([0.9, 0.9]) and average[0].item() == pytest.approx(0.1)
    )
    with pytest.raises(RuntimeError, match="`state_steps` argument must contain a list of singleton tensors"):
        functional.adam([param], [param], [average], [square], [], [1], eps=1e-8, maximize=False, **options)


def test_multi_tensor_classes() -> None:
    classes = submodule("optim._multi_tensor")
    assert classes.Adam([nn.Parameter(torch.ones(1))]).defaults["foreach"] is True


def test_step_counts_follow_the_default_dtype() -> None:
    param = nn.Parameter(torch.ones(1))
    param.grad = torch.ones(1)
    torch.set_default_dtype(torch.float64)
    optimizer = optim.Adam([param])
    optimizer.step()
    assert optimizer.state[param]["step"].dtype is torch.float64 and param.dtype is torch.float32


def test_swapped_in() -> None:
    param = nn.Parameter(torch.ones(2))
    optimizer = optim.Adam([param], lr=0.1)
    param.grad = torch.ones(2)
    optimizer.step()
    other = nn.Parameter(torch.zeros(2))
    other.grad = torch.ones(2)
    before, value = optimizer.state, param.tolist()
    with optim.swap_in_optimizer_params_and_state(optimizer, {"p": other}, copy.deepcopy(optimizer.state_dict())):
        assert optimizer.param_groups[0]["params"] == [other]
        optimizer.step()
        assert optimizer.state[other]["step"].item() == 2.0
    assert optimizer.state is before and optimizer.param_groups[0]["params"][0] is param
    assert param.tolist() == value and other.tolist() != [0.0, 0.0]
    with pytest.raises(RuntimeError, match="requires initialized optimizer state"):
        with optim.swap_in_optimizer_params_and_state(optim.SGD([param]), {}, {}):
            pass
    with pytest.raises(RuntimeError, match="different number of parameter groups"):
        with optim.swap_in_optimizer_params_and_state(optimizer, {}, {"state": {}, "param_groups": []}):
            pass


def test_capturable_is_refused_on_the_host() -> None:
    for foreach in (False, True):
        for name in ("Adam", "RAdam", "NAdam", "Rprop", "ASGD", "RMSprop", "Adamax", "Adadelta"):
            param = nn.Parameter(torch.ones(1))
            param.grad = torch.ones(1)
            with pytest.raises(AssertionError, match="If capturable=True, .* must be on supported devices"):
                getattr(optim, name)([param], capturable=True, foreach=foreach).step()


def test_no_number_is_lost_in_a_group_without_gradients() -> None:
    """A group nobody trains is left alone, in every form."""
    for form in ({}, {"foreach": True}, {"fused": True}):
        param = nn.Parameter(torch.ones(1))
        for name in FUSED:
            getattr(optim, name)([param], **form).step()
        assert param.item() == 1.0 and math.isfinite(param.item())


@pytest.mark.skipif(IS_ORACLE, reason="PyTorch writes the gradients there")
def test_nesterov_leaves_gradients_alone() -> None:
    param = nn.Parameter(torch.zeros(1))
    param.grad = torch.ones(1)
    optim.SGD([param], lr=0.1, momentum=0.9, nesterov=True, foreach=True).step()
    assert param.grad.item() == 1.0
