"""`GradScaler`: what it does with scales, gradients and optimizers, against PyTorch, and what it refuses."""

from __future__ import annotations

import copy
import pickle
import warnings
from types import ModuleType
from typing import Any

import pytest

from .. import _oracle
from .._subject import subject as torch

INF = float("inf")
# Gradients of one parameter in each iteration of a program.
PROGRAMS = {
    "grows": [1.0, 2.0, 3.0, 4.0, 5.0],
    "shrinks": [1.0, INF, 2.0, float("nan"), 3.0],
    "at once": [INF, INF, 1.0, 1.0, 1.0],
}


def run(library: Any, program: list[float], unscale: bool, dtype: str = "float32") -> list[Any]:
    """The scale, the tracker and the parameter after each iteration."""
    p = library.ones(2, dtype=getattr(library, dtype), requires_grad=True)
    optimizer = library.optim.SGD([p], lr=0.125, momentum=0.5)
    scaler = library.amp.GradScaler("cpu", init_scale=8.0, growth_factor=3.0, backoff_factor=0.25, growth_interval=2)
    seen: list[Any] = []
    for g in program:
        optimizer.zero_grad()
        scaler.scale((p * g).sum()).backward()
        if unscale:
            scaler.unscale_(optimizer)
            seen.append(str(p.grad.tolist()))
        scaler.step(optimizer)
        scaler.update()
        seen.append((scaler.get_scale(), scaler._get_growth_tracker(), str(p.tolist())))
    seen.append(scaler.state_dict())
    return seen


@pytest.mark.parametrize("unscale", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_iterations_as_the_oracle(oracle: ModuleType, name: str, unscale: bool, dtype: str) -> None:
    assert run(torch, PROGRAMS[name], unscale, dtype) == run(oracle, PROGRAMS[name], unscale, dtype)


def test_a_step_with_infs_is_skipped_and_the_scale_halved() -> None:
    p = torch.ones(2, requires_grad=True)
    optimizer, scaler = torch.optim.SGD([p], lr=1.0), torch.amp.GradScaler("cpu")
    for g, value, scale in ((1.0, 0.0, 65536.0), (INF, 0.0, 32768.0), (2.0, -2.0, 32768.0)):
        optimizer.zero_grad()
        scaler.scale((p * g).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert p.tolist() == [value, value] and scaler.get_scale() == scale


def test_outputs_may_be_nested() -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    a = torch.ones(2)
    found = scaler.scale([a, (a, a), [a]])
    assert type(found) is list and type(found[1]) is tuple
    assert [float(t.sum()) for t in (found[0], *found[1], *found[2])] == [4.0] * 4
    assert [float(t.sum()) for t in scaler.scale(iter([a, a]))] == [4.0] * 2
    with pytest.raises(ValueError, match="outputs must be a Tensor or an iterable of Tensors"):
        scaler.scale(3)


def test_two_optimizers_share_a_scale() -> None:
    p, q = (torch.ones(1, requires_grad=True) for _ in range(2))
    first, second = torch.optim.SGD([p], lr=1.0), torch.optim.SGD([q], lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale((p * INF + q).sum()).backward()
    scaler.step(first)
    scaler.step(second)
    scaler.update()
    assert (p.item(), q.item(), scaler.get_scale()) == (1.0, 0.0, 2.0)


def test_states() -> None:
    p = torch.ones(1, requires_grad=True)
    optimizer, scaler = torch.optim.SGD([p], lr=1.0), torch.amp.GradScaler("cpu", init_scale=4.0)
    with pytest.raises(AssertionError, match="Attempted unscale_ but _scale is None.  This may indicate"):
        scaler.unscale_(optimizer)
    scaler.scale(p.sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match=r"unscale_\(\) has already been called on this optimizer since"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"unscale_\(\) is being called after step\(\)."):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match=r"step\(\) has already been called since the last update\(\)."):
        scaler.step(optimizer)
    with pytest.raises(AssertionError, match="A GradScaler instance may only be pickled at the beginning"):
        pickle.dumps(scaler)
    scaler.update()
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update."):
        scaler.update()
    with pytest.raises(RuntimeError, match="Closure use is not currently supported if GradScaler is enabled."):
        scaler.step(optimizer, closure=lambda: None)
    optimizer.zero_grad()
    with pytest.raises(AssertionError, match="No inf checks were recorded for this optimizer."):
        scaler.step(optimizer)


def test_half_gradients_are_refused() -> None:
    p = torch.ones(1, dtype=torch.float16, requires_grad=True)
    optimizer, scaler = torch.optim.SGD([p], lr=1.0), torch.amp.GradScaler("cpu")
    scaler.scale(p.float().sum()).backward()
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients."):
        scaler.unscale_(optimizer)


def test_a_scale_given_by_the_user() -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale(torch.ones(1))
    scaler.update(16.0)
    assert scaler.get_scale() == 16.0
    scaler.update(torch.tensor(2.0))
    assert scaler.get_scale() == 2.0
    for wrong in (torch.ones(2), torch.ones(1, requires_grad=True), torch.ones(1, device="meta")):
        with pytest.raises(AssertionError, match="new_scale should be a float or a 1-element torch.cuda.FloatTensor"):
            scaler.update(wrong)


def test_settings() -> None:
    scaler = torch.amp.GradScaler("cpu", growth_factor=3.0, backoff_factor=0.1, growth_interval=7)
    assert scaler.is_enabled()
    assert (scaler.get_growth_factor(), scaler.get_backoff_factor(), scaler.get_growth_interval()) == (3.0, 0.1, 7)
    scaler.set_growth_factor(4.0)
    scaler.set_backoff_factor(0.2)
    scaler.set_growth_interval(8)
    assert (scaler.get_growth_factor(), scaler.get_backoff_factor(), scaler.get_growth_interval()) == (4.0, 0.2, 8)
    with pytest.raises(AssertionError, match="The growth factor must be > 1.0."):
        torch.amp.GradScaler("cpu", growth_factor=1.0)
    with pytest.raises(AssertionError, match="The backoff factor must be < 1.0."):
        torch.amp.GradScaler("cpu", backoff_factor=1.0)


def test_switched_off_it_does_nothing() -> None:
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    p = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=1.0)
    assert scaler.scale(p) is p and scaler.get_scale() == 1.0 and scaler.state_dict() == {}
    p.sum().backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    scaler.load_state_dict({})
    assert p.item() == 0.0
    with pytest.warns(UserWarning, match="torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling"):
        assert not torch.amp.GradScaler().is_enabled()


@pytest.mark.parametrize("used", [False, True])
def test_copies_continue(used: bool) -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=5)
    if used:
        p = torch.ones(1, requires_grad=True)
        optimizer = torch.optim.SGD([p], lr=1.0)
        scaler.scale(p.sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    other = torch.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    for again in (other, pickle.loads(pickle.dumps(scaler)), copy.deepcopy(scaler)):
        assert again.state_dict() == scaler.state_dict()
        assert again.state_dict()["_growth_tracker"] == int(used)
        assert float(again.scale(torch.ones(()))) == 4.0
    with pytest.raises(RuntimeError, match="The source state dict is empty, possibly because it was saved from a"):
        other.load_state_dict({})


def test_optimizers_that_unscale_by_themselves() -> None:
    class Own(torch.optim.SGD):
        _step_supports_amp_scaling = True

        def step(self, closure: Any = None) -> Any:
            seen.append((float(self.grad_scale), float(self.found_inf)))

    class Older(torch.optim.SGD):
        _step_supports_amp_scaling = True

        def step(self, closure: Any = None, grad_scaler: Any = None) -> Any:
            seen.append(grad_scaler)

    seen: list[Any] = []
    for g in (1.0, INF):
        p = torch.ones(1, requires_grad=True)
        optimizer, scaler = Own([p], lr=1.0), torch.amp.GradScaler("cpu", init_scale=4.0)
        scaler.scale((p * g).sum()).backward()
        scaler.step(optimizer)
        assert not hasattr(optimizer, "grad_scale") and not hasattr(optimizer, "found_inf")
        scaler.update()
    assert seen == [(4.0, 0.0), (4.0, 1.0)] and scaler.get_scale() == 2.0
    older = Older([p], lr=1.0)
    with pytest.warns(FutureWarning, match="GradScaler is going to stop passing itself as a keyword argument"):
        scaler.step(older)
    assert seen[-1] is scaler


# -- the operators ------------------------------------------------------------------------------------------------
def unscaled(library: Any, values: list[list[float]], dtype: str, factor: float) -> Any:
    grads = [library.tensor(v, dtype=getattr(library, dtype)) for v in values]
    found, scale = library.zeros(()), library.tensor(factor)
    library._amp_foreach_non_finite_check_and_unscale_(grads, found, scale)
    return [str(g.tolist()) for g in grads], float(found), [g._version for g in grads]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("factor", [1.0, 0.5, 0.3, 2.0**-16, 0.0])
def test_unscaling_as_the_oracle(oracle: ModuleType, dtype: str, factor: float) -> None:
    for values in ([[1.0, 3.0], [5.0]], [[], [7.0]], [[1.0, INF], [2.0]], [[float("nan")]], [[3e38, 6e4]]):
        assert unscaled(torch, values, dtype, factor) == unscaled(oracle, values, dtype, factor)


@pytest.mark.parametrize("found", [0.0, 1.0, 2.0, float("nan")])
@pytest.mark.parametrize("tracker", [0, 1, 4])
@pytest.mark.parametrize(("scale", "growth"), [(4.0, 2.0), (3.0, 1.1), (3e38, 2.0)])
def test_updating_as_the_oracle(oracle: ModuleType, found: float, tracker: int, scale: float, growth: float) -> None:
    def updated(library: Any) -> tuple[Any, ...]:
        s, t = library.tensor(scale), library.tensor(tracker, dtype=library.int32)
        result = library._amp_update_scale_(s, t, library.tensor(found), growth, 0.3, 2)
        return result is s, s.item(), t.item(), s._version, t._version

    assert updated(torch) == updated(oracle)


def test_the_parts_of_a_scale_are_numbers() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for wrong in (torch.zeros(2), torch.zeros((), dtype=torch.float64)):
            with pytest.raises(RuntimeError, match="found_inf must be a"):
                torch._amp_foreach_non_finite_check_and_unscale_([torch.ones(2)], wrong, torch.ones(()))
            with pytest.raises(RuntimeError, match="inv_scale must be a"):
                torch._amp_foreach_non_finite_check_and_unscale_([torch.ones(2)], torch.zeros(()), wrong)
    assert _oracle.is_subject_tensor(torch.ones(1))
