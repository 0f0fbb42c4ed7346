"""Fake tensors whose values are known, masks as indices of fake tensors, and what is made of one real tensor twice.
Also holds for PyTorch (run with MINDTORCH_TEST_SUBJECT=torch)."""

from __future__ import annotations

import gc
import weakref
from importlib import import_module
from typing import Any

import pytest

from .._subject import subject as torch

fake = import_module(f"{torch.__name__}._subclasses.fake_tensor")


def test_writes_of_known_values_are_known() -> None:
    with fake.FakeTensorMode():
        x = torch.tensor(4.0)
        y = x.add_(1)
        assert x.item() == y.item() == 5.0 and x.constant is not None
        assert torch.div(4, 4, rounding_mode="trunc").item() == 1 and torch.div(3, 2).item() == 1.5


def test_writes_of_unknown_values_are_seen_through_views() -> None:
    with fake.FakeTensorMode():
        x = torch.tensor([1.0])
        y = x[:]
        assert x.constant is not None and y.constant is not None
        y.add_(torch.rand(1))
        assert x.constant is None and y.constant is None


def test_views_that_are_too_large_are_not_known() -> None:
    with fake.FakeTensorMode():
        x = torch.tensor([1])
        y = x.expand([4])
        y[0] = 1
        assert x.constant is None and y.constant is None
        z = torch.tensor([1])
        z.resize_([2])
        assert z.constant is None and tuple(z.shape) == (2,)


KEYS: dict[str, Any] = {
    "mask": lambda: torch.tensor([True, False, True, True]),
    "list": lambda: [0, 1],
    "bools": lambda: [True, False, True, True],
    "both": lambda: (torch.tensor([True, False, True, True]), 0),
    "after a slice": lambda: (slice(1, 4), torch.tensor([True, False, True])),
}


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", KEYS)
def test_assignments_by_masks_and_lists(name: str, grad: bool) -> None:
    with fake.FakeTensorMode():
        for value in (4, torch.tensor(2.0), torch.ones(1)):
            x = torch.ones(4, 3, requires_grad=grad).clone()
            x[KEYS[name]()] = value
            assert isinstance(x, fake.FakeTensor) and tuple(x.shape) == (4, 3) and x.requires_grad == grad
        if name != "list":
            with pytest.raises(fake.DynamicOutputShapeException):
                x[KEYS[name]()]


def test_modes_see_masks() -> None:
    seen: list[str] = []

    class Mode(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    x, mask = torch.zeros(4), torch.tensor([True, False, True, False])
    with Mode():
        x[mask] = 4
        assert x[mask].shape == (2,)
        x[[0, 1]] = 5
    assert x.tolist() == [5, 5, 4, 0]
    assert seen.count("aten.lift_fresh.default") >= 2 and "aten.nonzero.default" not in seen


def test_what_was_made_lives_as_long_as_somebody_has_it() -> None:
    x, y = torch.rand(2, 2, 2), torch.rand(4, 2)
    y.set_(x.untyped_storage(), 0, (4, 2), (2, 1))
    mode = fake.FakeTensorMode()
    one, two = mode.from_tensor(x), mode.from_tensor(y)
    assert mode.from_tensor(x) is one and one.untyped_storage()._cdata == two.untyped_storage()._cdata
    assert len(mode.fake_tensor_converter.tensor_memo) == 2
    del one
    assert len(mode.fake_tensor_converter.tensor_memo) == 1
    gone = weakref.ref(mode)
    del mode, two
    gc.collect()
    assert gone() is None


def test_texts_of_real_tensors_are_no_operators() -> None:
    x = torch.zeros(2)
    with fake.FakeTensorMode():
        assert str(x) == "tensor([0., 0.])"
    with torch.inference_mode(), fake.FakeTensorMode():
        assert torch.rand(2).is_inference()
