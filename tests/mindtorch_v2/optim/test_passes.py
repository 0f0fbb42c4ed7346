"""The native pass that stands for the loop: whatever users change between steps, both do the same, as often."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from .._subject import IS_ORACLE, mindtorch_only, submodule
from .._subject import subject as torch

nn = submodule("nn")
optim = submodule("optim")

CASES: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {}),
    ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"momentum": 0.5, "dampening": 0.3, "maximize": True}),
    ("Adam", {"weight_decay": 0.1}),
    ("Adam", {"amsgrad": True, "maximize": True}),
    ("AdamW", {}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1}),
]
# Narrow dtypes are left to the loop.
CLOSE: dict[Any, float] = {torch.float32: 2e-5, torch.float64: 1e-11, torch.bfloat16: 0.0}
FORMS: list[dict[str, Any]] = [{}, {"foreach": False}, {"foreach": True}, {"fused": True}]


def versions(library: Any, name: str, options: dict[str, Any]) -> list[Any]:
    """The writes that tensors have seen after each of three steps."""
    params = [library.nn.Parameter(library.ones(3)), library.nn.Parameter(library.ones(2, 2))]
    optimizer = getattr(library.optim, name)(params, lr=0.1, **options)
    found = []
    for _ in range(3):
        for param in params:
            param.grad = library.ones_like(param)
        optimizer.step()
        for param in params:
            state = {key: value._version for key, value in optimizer.state[param].items()}
            found.append((param._version, param.grad._version, state))
    return found


@pytest.mark.parametrize(("name", "options"), CASES)
def test_versions(oracle: Any, name: str, options: dict[str, Any]) -> None:
    for form in FORMS:
        mine, theirs = versions(torch, name, {**options, **form}), versions(oracle, name, {**options, **form})
        assert mine == theirs, (name, options, form)


@pytest.mark.parametrize("name", ["RMSprop", "NAdam", "RAdam", "Adamax", "Adadelta", "ASGD", "Rprop"])
def test_versions_of_the_others(oracle: Any, name: str) -> None:
    for form in FORMS[:3]:
        assert versions(torch, name, form) == versions(oracle, name, form), (name, form)


def test_versions_of_rows(oracle: Any) -> None:
    """Also where memory has gaps and the row is served by its parts."""
    for library in (torch, oracle):
        for stride in (1, 2):
            lists = [
                [library.ones(6)[::stride].contiguous() if stride == 1 else library.ones(6)[::2]] for _ in range(4)
            ]
            before = [tensors[0]._version for tensors in lists]
            options = {"lr": 0.1, "beta1": 0.9, "beta2": 0.9, "weight_decay": 0.1, "eps": 1e-8, "amsgrad": False}
            scale = {"grad_scale": library.tensor(2.0), "found_inf": library.tensor(0.0)}
            library._fused_adamw_(*lists, [], [library.tensor(1.0)], maximize=False, **options, **scale)
            assert [tensors[0]._version for tensors in lists] == before
            # PyTorch's kernels take memory with gaps for memory without.
            if library is torch or stride == 1:
                assert lists[1][0].tolist() == [0.5] * len(lists[1][0])


# -- what users do between steps -------------------------------------------------------------------------------------
Edit = Callable[[Any, list[Any], int], Any]


def nothing(optimizer: Any, params: list[Any], step: int) -> Any:
    return optimizer


def new_rate(optimizer: Any, params: list[Any], step: int) -> Any:
    optimizer.param_groups[0]["lr"] = 0.1 / (step + 1)
    return optimizer


def rate_in_a_tensor(optimizer: Any, params: list[Any], step: int) -> Any:
    group = optimizer.param_groups[0]
    if step == 1:
        group["lr"] = torch.tensor(0.05, dtype=torch.float64)
    elif step > 1:
        group["lr"].mul_(0.5)
    return optimizer


def other_options(optimizer: Any, params: list[Any], step: int) -> Any:
    optimizer.param_groups[0]["weight_decay"] = 0.1 * step
    optimizer.param_groups[0]["maximize"] = step == 2
    return optimizer


def averages_in_a_list(optimizer: Any, params: list[Any], step: int) -> Any:
    group = optimizer.param_groups[0]
    if "betas" in group:
        if step == 1:
            group["betas"] = list(group["betas"])
        elif step == 2:
            group["betas"][0] = 0.5
    return optimizer


def memory_replaced(optimizer: Any, params: list[Any], step: int) -> Any:
    params[0].data = params[0].data * 2
    params[1].data = torch.stack([params[1].data, params[1].data])[1]
    return optimizer


def gradients_missing(optimizer: Any, params: list[Any], step: int) -> Any:
    params[step % 2].grad = None
    return optimizer


def parameter_added(optimizer: Any, params: list[Any], step: int) -> Any:
    if step == 2:
        params.append(nn.Parameter(torch.full((4,), 0.5)))
        params[-1].grad = torch.ones(4)
        optimizer.param_groups[0]["params"].append(params[-1])
    return optimizer


def group_added(optimizer: Any, params: list[Any], step: int) -> Any:
    if step == 2:
        params.append(nn.Parameter(torch.full((4,), 0.5)))
        params[-1].grad = torch.ones(4)
        optimizer.add_param_group({"params": [params[-1]], "lr": 0.3})
    return optimizer


def groups_swapped(optimizer: Any, params: list[Any], step: int) -> Any:
    if step == 1:
        optimizer.param_groups[0]["params"] = params[:1]
        optimizer.add_param_group({"params": params[1:], "lr": 0.3})
    optimizer.param_groups.reverse()
    return optimizer


def state_edited(optimizer: Any, params: list[Any], step: int) -> Any:
    for key, value in optimizer.state[params[0]].items():
        if key == "step":
            value.fill_(5.0)
        else:
            optimizer.state[params[0]][key] = value * 2
    return optimizer


def state_dropped(optimizer: Any, params: list[Any], step: int) -> Any:
    if step == 2:
        optimizer.state.pop(params[1], None)
    if step == 3:
        optimizer.state.clear()
    return optimizer


def steps_in_double(optimizer: Any, params: list[Any], step: int) -> Any:
    for param in params:
        if "step" in optimizer.state[param]:
            optimizer.state[param]["step"] = optimizer.state[param]["step"].double().reshape(1)
    return optimizer


def saved_and_loaded(optimizer: Any, params: list[Any], step: int) -> Any:
    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    return optimizer


def copied(optimizer: Any, params: list[Any], step: int) -> Any:
    new = pickle.loads(pickle.dumps(optimizer))
    for mine, other in zip(new.param_groups, optimizer.param_groups):
        for param, old in zip(mine["params"], other["params"]):
            param.grad = old.grad
    params[:] = [param for group in new.param_groups for param in group["params"]]
    return new


def layouts_differ(optimizer: Any, params: list[Any], step: int) -> Any:
    params[1].grad = torch.stack([params[1].grad, params[1].grad], -1)[..., 0]
    return optimizer


EDITS: list[Edit] = [
    nothing, new_rate, rate_in_a_tensor, other_options, averages_in_a_list, memory_replaced, gradients_missing,
    parameter_added, group_added, groups_swapped, state_edited, state_dropped, steps_in_double, saved_and_loaded,
    copied, layouts_differ,
]  # fmt: skip


def run(name: str, options: dict[str, Any], edit: Edit, dtype: Any) -> tuple[list[Any], list[Any]]:
    params = [
        nn.Parameter(torch.linspace(-1, 1, 6, dtype=dtype).reshape(2, 3)),
        nn.Parameter(torch.ones(5, dtype=dtype)),
    ]
    optimizer = getattr(optim, name)(params, lr=0.1, **options)
    for step in range(5):
        for i, param in enumerate(params):
            param.grad = torch.cos(param.detach() * (step + 1 + i))
        optimizer = edit(optimizer, params, step)
        optimizer.step()
    states = [dict(optimizer.state[param]) if param in optimizer.state else {} for param in params]
    return params, states


@pytest.mark.parametrize("edit", EDITS, ids=[edit.__name__ for edit in EDITS])
@pytest.mark.parametrize(("name", "options"), CASES)
def test_as_the_loop(name: str, options: dict[str, Any], edit: Edit) -> None:
    for dtype in CLOSE:
        params, states = run(name, options, edit, dtype)
        expected, expected_states = run(name, {**options, "foreach": False}, edit, dtype)
        for mine, right in zip(params, expected, strict=True):
            close = CLOSE[right.dtype]
            assert torch.allclose(mine, right, rtol=close, atol=close), (dtype, mine, right)
            assert mine._version == right._version
        for state, right_state in zip(states, expected_states, strict=True):
            assert list(state) == list(right_state)
            for key, value in right_state.items():
                assert state[key].dtype == value.dtype and state[key].shape == value.shape
                close = CLOSE[value.dtype]
                assert torch.allclose(state[key], value, rtol=close, atol=close), (dtype, key)
                assert state[key]._version == value._version, key


def test_what_is_kept_does_not_hold_old_groups() -> None:
    import gc
    import weakref

    optimizer = optim.SGD([nn.Parameter(torch.ones(2))], lr=0.1)
    optimizer.add_param_group({"params": [nn.Parameter(torch.ones(2))]})
    for group in optimizer.param_groups:
        group["params"][0].grad = torch.ones(2)
    optimizer.step()
    gone = weakref.ref(optimizer.param_groups[1]["params"][0])
    del optimizer.param_groups[1], group
    optimizer.step()
    gc.collect()
    assert gone() is None


# -- when it runs ----------------------------------------------------------------------------------------------------
def prepared(name: str = "Adam", **options: Any) -> Any:
    """An optimiser after its first step, with gradients for the next."""
    params = [nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(2, 2))]
    optimizer = getattr(optim, name)(params, lr=0.1, **options)
    for _ in range(2):
        for param in params:
            param.grad = torch.ones_like(param)
        if not optimizer.state:
            optimizer.step()
    return optimizer


def passes(optimizer: Any) -> bool:
    _, _, _, options, numbers = optimizer._learn(0, optimizer.param_groups[0])
    with torch.no_grad():
        return numbers is not None and optimizer._pass(0.1, numbers, options, optimizer.param_groups[0]["params"])


@mindtorch_only
@pytest.mark.parametrize(("name", "options"), CASES)
def test_runs(name: str, options: dict[str, Any]) -> None:
    assert passes(prepared(name, **options))
    for refused in FORMS[1:]:
        assert not passes(prepared(name, **{**options, **refused}))


@mindtorch_only
def test_does_not_run() -> None:
    class Own(torch.Tensor):
        pass

    def scaled(optimizer: Any) -> None:
        optimizer.found_inf = torch.tensor(0.0)

    def half(optimizer: Any) -> None:
        param = optimizer.param_groups[0]["params"][0]
        param.data = param.data.bfloat16()

    def own_gradient(optimizer: Any) -> None:
        param = optimizer.param_groups[0]["params"][0]
        param.grad = torch.ones(3).as_subclass(Own)

    def twice(optimizer: Any) -> None:
        optimizer.param_groups[0]["params"].append(optimizer.param_groups[0]["params"][0])

    def shared_counts(optimizer: Any) -> None:
        first, second = optimizer.param_groups[0]["params"]
        optimizer.state[first]["step"] = optimizer.state[second]["step"]

    def whole_counts(optimizer: Any) -> None:
        for state in optimizer.state.values():
            state["step"] = state["step"].long()

    def learned_decay(optimizer: Any) -> None:
        optimizer.param_groups[0]["weight_decay"] = torch.tensor(0.1)

    for spoil in (scaled, half, own_gradient, twice, shared_counts, whole_counts, learned_decay):
        optimizer = prepared("Adam")
        spoil(optimizer)
        params = optimizer.param_groups[0]["params"]
        before = [param.tolist() for param in params]
        assert not passes(optimizer), spoil.__name__
        assert [param.tolist() for param in params] == before, spoil.__name__


@mindtorch_only
def test_modes_see_the_operators() -> None:
    from mindtorch_v2.utils._python_dispatch import TorchDispatchMode

    seen: list[str] = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    optimizer = prepared("SGD")
    with Watch():
        optimizer.step()
    assert any("add_" in name for name in seen)


def test_functional_forms_record() -> None:
    """With gradients on, a functional step is operators like any others."""
    sgd = submodule("optim.sgd").sgd
    options = {"weight_decay": 0.0, "momentum": 0.0, "lr": 0.1, "dampening": 0.0, "nesterov": False, "maximize": False}
    start = torch.ones(2, requires_grad=True)
    param = start.clone()
    sgd([param], [torch.ones(2)], [None], **options)
    param.sum().backward()
    assert start.grad.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        sgd([start], [torch.ones(2)], [None], **options)


def test_functional_forms_take_any_sequence() -> None:
    adam = submodule("optim.adam").adam
    options = {"beta1": 0.9, "beta2": 0.99, "lr": 0.1, "weight_decay": 0.0, "eps": 1e-8, "amsgrad": False}
    for kind in (list, tuple):
        state = [kind([torch.zeros(2)]) for _ in range(2)]
        param, step = torch.ones(2), torch.tensor(0.0)
        with torch.no_grad():
            adam(kind([param]), kind([torch.ones(2)]), *state, kind(), kind([step]), maximize=False, **options)
        assert step.item() == 1.0 and torch.allclose(param, torch.full((2,), 0.9))


def test_zero_grad_warns_of_what_is_no_leaf() -> None:
    leaf = torch.ones(2, requires_grad=True)
    middle = leaf * 2
    middle.retain_grad()
    optimizer = optim.SGD([middle], lr=0.1)
    middle.sum().backward()
    optimizer.zero_grad()
    assert middle.grad is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.zero_grad()


def test_grad_mode_is_restored() -> None:
    param = nn.Parameter(torch.ones(1))
    optimizer = optim.SGD([param], lr=0.1)

    def closure() -> Any:
        assert torch.is_grad_enabled()
        raise KeyError("from a closure")

    for on in (True, False):
        with torch.set_grad_enabled(on):
            with pytest.raises(KeyError):
                optimizer.step(closure)
            assert torch.is_grad_enabled() is on


def test_a_missing_option() -> None:
    optimizer = optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)
    optimizer.param_groups[0]["params"][0].grad = torch.ones(1)
    optimizer.step()
    del optimizer.param_groups[0]["lr"]
    with pytest.raises(KeyError, match="lr"):
        optimizer.step()


assert IS_ORACLE or hasattr(optim.SGD, "_pass")
