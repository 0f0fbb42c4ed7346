"""Optimisers on the NPU: every set of options of PyTorch's table, in every form, and in how many launches."""

from __future__ import annotations

from typing import Any

import pytest

from .. import _npu
from .._oracle import load
from .._subject import subject as torch
from ..optim._pairs import FUSED, STEPPED, Pair, info, inputs

# The vendor computes in float32 and rounds in another order.
RTOL, ATOL = 5e-5, 5e-6
ROUGH = {"Muon": (2e-2, 2e-3)}


def pairs(name: str, options: dict[str, Any], steps: int = 4) -> None:
    """The NPU with `options` against PyTorch with those that its CPU takes."""
    oracle = load()
    plain = {key: value for key, value in options.items() if key not in ("capturable", "foreach", "fused")}
    if "betas" in plain:
        plain["betas"] = tuple(float(beta) for beta in plain["betas"])
    pair = Pair(name, "float32", plain, device="npu")
    mine = {key: torch.tensor(float(v)) if isinstance(v, oracle.Tensor) else v for key, v in options.items()}
    if "betas" in mine:
        mine["betas"] = tuple(torch.tensor(float(b)) if isinstance(b, oracle.Tensor) else b for b in mine["betas"])
    pair.subject = getattr(torch.optim, name)(pair.ours, **mine)
    pair.fused_sgd = name == "SGD" and bool(options.get("fused"))
    pair.steps(steps)
    rtol, atol = ROUGH.get(name, (RTOL, ATOL))
    for left, right in zip(pair.ours, pair.theirs):
        assert left.device.type == "npu"
        close = oracle.allclose(oracle.tensor(left.tolist()), right.detach(), rtol=rtol, atol=atol)
        assert close, (name, options, left, right)
    for state in pair.subject.state.values():
        for key, value in state.items():
            on_host = key == "step" and name != "ASGD" or key == "mu_product"
            if isinstance(value, torch.Tensor) and not (on_host and not options.get("capturable")):
                assert value.device.type == "npu" or options.get("fused") is None, (name, key)


@pytest.mark.oracle
@pytest.mark.parametrize("name", STEPPED)
def test_every_option(name: str) -> None:
    for options in inputs(name):
        for form in ({"foreach": False}, {}, {"fused": True}):
            if (form and name == "Muon") or ("fused" in form and name not in FUSED):
                continue
            pairs(name, {**options, **form})


@pytest.mark.oracle
@pytest.mark.parametrize("name", [name for name in STEPPED if name not in ("Adafactor", "Adagrad", "Muon", "SGD")])
def test_capturable(name: str) -> None:
    """With steps counted on the device, in both forms; nothing is read back."""
    assert info(name).has_capturable_arg
    options = [each for each in inputs(name, device="cuda") if each.get("capturable")]
    assert options
    for each in options:
        for foreach in (False, True):
            pairs(name, {**each, "foreach": foreach})


@pytest.mark.parametrize("name", ["RAdam", "NAdam", "Adam", "Rprop", "Adadelta", "Adamax", "ASGD", "RMSprop"])
@_npu.emulator_only
def test_capturable_reads_nothing_back(emulator: _npu.Emulator, name: str) -> None:
    params = [torch.nn.Parameter(torch.ones(4, device="npu")) for _ in range(3)]
    for foreach in (False, True):
        optimizer = getattr(torch.optim, name)(params, capturable=True, foreach=foreach)
        for param in params:
            param.grad = torch.ones(4, device="npu")
        optimizer.step()
        before = emulator.bytes_to_host()
        optimizer.step()
        assert emulator.bytes_to_host() == before
        assert optimizer.state[params[0]]["step"].device.type == "npu"


@_npu.emulator_only
@pytest.mark.parametrize(
    ("name", "options", "function"),
    [
        ("AdamW", {"weight_decay": 0.1}, "aclnnFusedAdamw"),
        ("AdamW", {"amsgrad": True, "maximize": True}, "aclnnFusedAdamw"),
        ("Adam", {}, "aclnnFusedAdamw"),
        ("Adam", {"weight_decay": 0.1}, "aclnnFusedAdamw"),
        ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}, "aclnnFusedSgd"),
    ],
)
def test_one_launch_for_all(emulator: _npu.Emulator, name: str, options: dict[str, Any], function: str) -> None:
    values = {}
    for device in ("cpu", "npu"):
        params = [torch.nn.Parameter(torch.full(shape, 0.5, device=device)) for shape in ((3,), (2, 2), (), (0,))]
        optimizer = getattr(torch.optim, name)(params, lr=0.1, fused=True, **options)
        for number in range(3):
            for param in params:
                param.grad = torch.full(param.shape, 0.25 * (number + 1), device=device)
            before = emulator.runs(function)
            optimizer.step()
            torch.npu.synchronize()
            assert emulator.runs(function) - before == (device == "npu")
        values[device] = [param.tolist() for param in params]
        assert params[0]._version == 0  # as of a fused step of PyTorch
    for mine, theirs in zip(values["npu"], values["cpu"]):
        assert torch.allclose(torch.tensor(mine), torch.tensor(theirs), rtol=1e-5)


@_npu.emulator_only
def test_an_older_toolkit(emulator: _npu.Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the function over lists there is one launch for each parameter."""
    from mindtorch_v2._backends.npu.ops import optimizers

    monkeypatch.setattr(optimizers, "_together", lambda: False)
    params = [torch.nn.Parameter(torch.ones(3, device="npu")) for _ in range(2)]
    for param in params:
        param.grad = torch.ones(3, device="npu")
    before = emulator.runs("aclnnApplyAdamWV2")
    torch.optim.AdamW(params, lr=0.1, weight_decay=0.0, fused=True).step()
    torch.npu.synchronize()
    assert emulator.runs("aclnnApplyAdamWV2") - before == 2
    assert params[1].tolist() == pytest.approx([0.9] * 3, rel=1e-5)


def test_scaled_gradients() -> None:
    for name in ("AdamW", "Adam", "SGD", "Adagrad"):
        options = {"momentum": 0.5} if name == "SGD" else {}
        for found, moved in ((0.0, True), (1.0, False)):
            param = torch.nn.Parameter(torch.ones(2, device="npu"))
            param.grad = torch.full((2,), 8.0, device="npu")
            optimizer = getattr(torch.optim, name)([param], lr=0.1, fused=True, **options)
            optimizer.grad_scale = torch.tensor(4.0, device="npu")
            optimizer.found_inf = torch.tensor(found, device="npu")
            optimizer.step()
            assert (param.tolist() != [1.0, 1.0]) is moved, name
            assert param.grad.tolist() == ([2.0, 2.0] if moved else [8.0, 8.0]), name
            if "step" in optimizer.state[param]:
                assert optimizer.state[param]["step"].item() == float(moved)


@_npu.emulator_only
def test_launches_do_not_grow_with_the_parameters(emulator: _npu.Emulator) -> None:
    """Without options a step works over lists."""
    counts = []
    for number in (2, 8):
        params = [torch.nn.Parameter(torch.ones(3, device="npu")) for _ in range(number)]
        optimizer = torch.optim.Adam(params)
        for _ in range(2):
            for param in params:
                param.grad = torch.ones(3, device="npu")
            torch.npu.synchronize()
            before = emulator.runs()
            optimizer.step()
            torch.npu.synchronize()
        counts.append(emulator.runs() - before)
    assert counts[0] == counts[1] <= 20


@_npu.emulator_only
@pytest.mark.parametrize(
    ("name", "options", "once"),
    [
        ("AdamW", {}, True),
        ("AdamW", {"amsgrad": True, "maximize": True, "weight_decay": 0.0}, True),
        ("AdamW", {"lr": 0.0}, True),
        ("AdamW", {"lr": torch.tensor(0.01)}, True),
        ("Adam", {"betas": (0.0, 0.5)}, True),
        ("Adam", {"weight_decay": 0.1}, False),  # the vendor's decay is of the weights
        ("Adam", {"foreach": True}, False),
    ],
)
def test_a_step_without_options_is_one_launch(
    emulator: _npu.Emulator, name: str, options: dict[str, Any], once: bool
) -> None:
    """The vendor's function does the whole step; values, counts and versions are those of the CPU."""
    found = {}
    for device in ("cpu", "npu"):
        params = [torch.nn.Parameter(torch.full(shape, 0.5, device=device)) for shape in ((3,), (2, 2), ())]
        optimizer = getattr(torch.optim, name)(params, **options)
        for number in range(4):
            for param in params:
                param.grad = torch.full(param.shape, 0.25 * (number + 1), device=device)
            torch.npu.synchronize()
            before = emulator.runs("aclnnFusedAdamw")
            optimizer.step()
            torch.npu.synchronize()
            # The first step makes the state.
            assert emulator.runs("aclnnFusedAdamw") - before == (device == "npu" and once and number > 0)
        states = [optimizer.state[param] for param in params]
        found[device] = (
            [param.tolist() for param in params],
            [[state[key].tolist() for key in sorted(state)] for state in states],
            [param._version for param in params],
            [[state[key]._version for key in sorted(state)] for state in states],
        )
        assert all(state["step"].device.type == "cpu" and state["step"].item() == 4 for state in states)
    for mine, theirs in zip(found["npu"][:2], found["cpu"][:2]):
        for left, right in zip(mine, theirs):
            for one, other in zip(
                left if isinstance(left, list) else [left], right if isinstance(right, list) else [right]
            ):
                assert torch.allclose(torch.tensor(one), torch.tensor(other), rtol=1e-5)
    assert found["npu"][2:] == found["cpu"][2:]


@_npu.emulator_only
def test_steps_that_do_not_fit_one_launch(emulator: _npu.Emulator) -> None:
    """Parameters that began later, of another dtype or layout, without elements: the loop over lists serves them."""
    shapes = {"later": (3,), "half": (3,), "turned": (2, 3), "nothing": (0,)}
    for case, shape in shapes.items():
        params = []
        for device in ("cpu", "npu"):
            first = torch.nn.Parameter(torch.ones(3, device=device))
            data = torch.ones(shape, device=device, dtype=torch.float16 if case == "half" else torch.float32)
            second = torch.nn.Parameter(data.t() if case == "turned" else data)
            optimizer = torch.optim.AdamW([first, second], lr=0.1)
            for number in range(3):
                first.grad = torch.ones_like(first)
                second.grad = None if case == "later" and number == 0 else torch.ones_like(second)
                optimizer.step()
            params.append([first.tolist(), second.tolist()])
        for mine, theirs in zip(*params):
            assert torch.allclose(torch.tensor(mine), torch.tensor(theirs), rtol=2e-3), case


@_npu.emulator_only
def test_a_step_on_an_older_toolkit(emulator: _npu.Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the function over lists there is one launch for each parameter."""
    from mindtorch_v2._backends.common.passes import PASSES
    from mindtorch_v2._backends.npu import launch, passes
    from mindtorch_v2._dispatch.keys import NPU

    params = [torch.nn.Parameter(torch.ones(3, device="npu")) for _ in range(2)]
    optimizer = torch.optim.AdamW(params, lr=0.1)
    older = passes.NpuPasses()
    older.one, older.asked = launch.resolve(passes.ADAMW_ONE), True
    monkeypatch.setitem(PASSES, int(NPU), older)
    for number in range(3):
        for param in params:
            param.grad = torch.ones(3, device="npu")
        before = emulator.runs(passes.ADAMW_ONE)
        optimizer.step()
        torch.npu.synchronize()
        assert emulator.runs(passes.ADAMW_ONE) - before == (2 if number else 0)
    same = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.AdamW([same], lr=0.1)
    for _ in range(3):
        same.grad = torch.ones(3)
        optimizer.step()
    assert params[1].tolist() == pytest.approx(same.tolist(), rel=1e-5)


def test_states_move_with_the_parameters() -> None:
    param = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.Adam([param])
    param.grad = torch.ones(2)
    optimizer.step()
    for options, place in (({}, "cpu"), ({"fused": True}, "npu"), ({"capturable": True}, "npu")):
        other = torch.nn.Parameter(torch.ones(2, device="npu"))
        loaded = torch.optim.Adam([other], **options)
        state = optimizer.state_dict()
        state["param_groups"][0].update(options)
        loaded.load_state_dict(state)
        assert loaded.state[other]["exp_avg"].device.type == "npu"
        assert loaded.state[other]["step"].device.type == place
        other.grad = torch.ones(2, device="npu")
        loaded.step()
