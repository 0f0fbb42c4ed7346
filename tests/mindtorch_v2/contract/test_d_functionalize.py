"""Contract D: functionalization on cpu and meta.

Invariant: every test is named after the id it proves. `torch.functionalize()` is mindtorch_v2's own; what can be said
with `torch.func.functionalize` also runs on PyTorch.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from .._subject import IS_ORACLE, mindtorch_only
from .._subject import subject as torch
from . import _inplace_calls as inplace
from ._rewrites import REWRITES

DEVICES = ["cpu", "meta"]

VIEWS: dict[str, Callable[[Any], Any]] = {
    "view": lambda t: t.view(-1),
    "transpose": lambda t: t.t(),
    "select": lambda t: t[1],
    "slice": lambda t: t[1:, :2],
    "step": lambda t: t[::2, ::2],
    "diagonal": lambda t: t.diagonal(),
    "as_strided": lambda t: t.as_strided((2, 2), (1, 3), 1),
    "view_of_view": lambda t: t[1:].t()[0],
    "unsqueeze": lambda t: t.unsqueeze(1),
    "split": lambda t: t.split(2)[1],
    "unbind": lambda t: t.unbind(1)[2],
    "narrow": lambda t: t.narrow(0, 1, 2),
    "permute": lambda t: t.view(3, 1, 3).permute(2, 1, 0),
    "expand_of_one": lambda t: t[:, :1].squeeze(1),
}


@pytest.fixture
def spied_kernels() -> Iterator[Callable[[str], list[str]]]:
    """`spy("add")` makes the cpu kernel of add log its calls; kernels are put back after the test."""
    registry = importlib.import_module("mindtorch_v2._dispatch.registry")
    originals: dict[str, Any] = {}
    log: list[str] = []

    def spy(name: str) -> list[str]:
        original = registry.kernels(name)["cpu"]
        originals[name] = original

        def kernel(*args: Any) -> Any:
            log.append(name)
            return original(*args)

        registry.register(name, "cpu", kernel)
        return log

    yield spy
    for name, original in originals.items():
        registry.register(name, "cpu", original)


# D1 -------------------------------------------------------------------------------------------------------------------


@mindtorch_only
@pytest.mark.parametrize("name", inplace.available(torch))
def test_D1_every_inplace_operator_gives_the_same_under_functionalize(name: str) -> None:
    call = inplace.CALLS[name]
    expected = call.make(torch)
    call.call(torch, expected)
    actual = call.make(torch)
    with torch.functionalize():
        result = call.call(torch, actual)
    assert tuple(actual.shape) == tuple(expected.shape)
    assert actual.stride() == expected.stride()
    assert actual.dtype == expected.dtype
    assert actual._version == 1
    if not name.startswith("setitem"):
        assert result is actual
    if name not in inplace.RANDOM:
        assert repr(actual.tolist()) == repr(expected.tolist())


@mindtorch_only
@pytest.mark.parametrize("name", inplace.available(torch))
def test_D1_every_inplace_operator_works_on_meta_under_functionalize(name: str) -> None:
    call = inplace.CALLS[name]
    expected = call.make(torch, "meta")
    call.call(torch, expected)
    actual = call.make(torch, "meta")
    with torch.functionalize():
        call.call(torch, actual)
    assert actual.device.type == "meta"
    assert (tuple(actual.shape), actual.stride(), actual.dtype) == (
        tuple(expected.shape),
        expected.stride(),
        expected.dtype,
    )
    assert actual._version == 1


@mindtorch_only
def test_D1_the_functional_kernel_does_the_work(spied_kernels: Callable[[str], list[str]]) -> None:
    log = spied_kernels("mul")
    tensor = torch.ones(3)
    with torch.functionalize():
        tensor.mul_(2)
    assert "mul" in log
    assert tensor.tolist() == [2.0, 2.0, 2.0]


@mindtorch_only
def test_D1_out_is_a_mutation_too() -> None:
    tensor = torch.zeros(3)
    with torch.functionalize():
        result = torch.add(torch.ones(3), 1, out=tensor)
    assert result is tensor
    assert tensor.tolist() == [2.0, 2.0, 2.0]
    assert tensor._version == 1


@mindtorch_only
def test_D1_functionalize_ends_with_its_block_and_nests() -> None:
    tensor = torch.ones(3)
    with torch.functionalize():
        with torch.functionalize():
            tensor.add_(1)
        tensor.add_(1)
    tensor.add_(1)
    assert tensor.tolist() == [4.0, 4.0, 4.0]
    assert tensor._version == 3
    with pytest.raises(ValueError, match="leave"):
        with torch.functionalize():
            raise ValueError("leave")
    tensor.add_(1)
    assert tensor._version == 4


def func_program(x: Any) -> Any:
    y = x.clone()
    y[0].add_(1)
    y.t()[1].mul_(3)
    return y + y.view(-1)[1:2]


@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
def test_D1_func_functionalize_gives_the_same_result(remove: str) -> None:
    value = inplace.floats(torch)
    expected = func_program(value)
    actual = torch.func.functionalize(func_program, remove=remove)(value)
    assert actual.tolist() == expected.tolist()


def test_D1_func_functionalize_writes_its_arguments_back() -> None:
    def program(x: Any) -> Any:
        x.view(-1)[:2].add_(1)
        return x * 2

    value = torch.zeros(2, 2)
    result = torch.func.functionalize(program)(value)
    assert value.tolist() == [[1.0, 1.0], [0.0, 0.0]]
    assert result.tolist() == [[2.0, 2.0], [0.0, 0.0]]


def test_D1_func_functionalize_checks_remove() -> None:
    with pytest.raises(RuntimeError, match="remove"):
        torch.func.functionalize(func_program, remove="everything")(inplace.floats(torch))


# D2 -------------------------------------------------------------------------------------------------------------------


@mindtorch_only
def test_D2_write_back_goes_through_the_view() -> None:
    base = torch.tensor([1.0, 2.0, 3.0, 4.0])
    view = base.view((2, 2))
    with torch.functionalize():
        view.add_(torch.ones((2, 2)))
    assert base.tolist() == [2.0, 3.0, 4.0, 5.0]
    assert base.storage().data.tolist() == [2.0, 3.0, 4.0, 5.0]
    assert view.tolist() == [[2.0, 3.0], [4.0, 5.0]]
    assert base._version == view._version == 1
    assert view._base is base


@mindtorch_only
@pytest.mark.parametrize("name", VIEWS)
def test_D2_write_back_through_every_kind_of_view(name: str) -> None:
    expected = inplace.floats(torch)
    VIEWS[name](expected).mul_(2).add_(1)
    base = inplace.floats(torch)
    view = VIEWS[name](base)
    pointer = base.data_ptr()
    with torch.functionalize():
        view.mul_(2).add_(1)
    assert base.tolist() == expected.tolist()
    assert base.storage().data.tolist() == expected.reshape(-1).tolist()
    assert base.data_ptr() == pointer
    assert base._version == view._version == 2


@mindtorch_only
def test_D2_storage_data_is_flat() -> None:
    base = torch.arange(6.0).view(2, 3)
    assert base.t().storage().data.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    with torch.functionalize():
        base.t().add_(1)
    assert base.storage().data.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


@mindtorch_only
def test_D2_views_made_inside_and_outside_see_the_write() -> None:
    base = torch.zeros(2, 3)
    outside = base[1]
    with torch.functionalize():
        inside = base.t()
        base.add_(1)
        assert outside.tolist() == [1.0, 1.0, 1.0]
        outside.mul_(5)
        assert inside.tolist() == [[1.0, 5.0], [1.0, 5.0], [1.0, 5.0]]
        assert (inside + 1).sum().item() == 24.0
    assert base.tolist() == [[1.0, 1.0, 1.0], [5.0, 5.0, 5.0]]
    assert base._version == 2


@mindtorch_only
@pytest.mark.parametrize("device", DEVICES)
def test_D2_the_version_moves_by_one_per_call(device: str) -> None:
    base = torch.ones(2, 2, device=device)
    view = base.t()
    with torch.functionalize():
        for count, write in enumerate((view.add_, base.mul_, view[0].sub_, base.view(-1).fill_), start=1):
            write(2)
            assert base._version == view._version == count
        view[0] = 3
        assert base._version == 5


@mindtorch_only
def test_D2_a_written_view_that_overlaps_itself_raises() -> None:
    base = torch.zeros(3)
    with torch.functionalize():
        with pytest.raises(RuntimeError, match="unsupported operation: more than one element of the written-to tensor"):
            base.expand(2, 3).add_(1)
    assert base.tolist() == [0.0, 0.0, 0.0]
    assert base._version == 0


# D4 -------------------------------------------------------------------------------------------------------------------


@mindtorch_only
@pytest.mark.parametrize("name", VIEWS)
def test_D4_meta_writes_back_metadata_only(name: str) -> None:
    base = torch.empty(3, 3, device="meta")
    view = VIEWS[name](base)
    before = (tuple(base.shape), base.stride(), tuple(view.shape), view.stride(), view.storage_offset())
    with torch.functionalize():
        assert view.mul_(2) is view
    assert (tuple(base.shape), base.stride(), tuple(view.shape), view.stride(), view.storage_offset()) == before
    assert base.device.type == view.device.type == "meta"
    assert base._version == 1


@mindtorch_only
def test_D4_shape_changing_inplace_operators_on_meta() -> None:
    tensor = torch.empty(2, 3, device="meta")
    with torch.functionalize():
        tensor.t_()
        assert (tuple(tensor.shape), tensor.stride()) == ((3, 2), (1, 3))
        tensor.unsqueeze_(0)
        assert tuple(tensor.shape) == (1, 3, 2)
        tensor.squeeze_()
    assert tuple(tensor.shape) == (3, 2)


@mindtorch_only
def test_D4_no_data_appears_on_meta() -> None:
    base = torch.empty(4, device="meta")
    with torch.functionalize():
        base.view(2, 2).add_(1)
        with pytest.raises((RuntimeError, NotImplementedError), match="(?i)meta"):
            base.tolist()


# D5 -------------------------------------------------------------------------------------------------------------------

MISFITS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "add": (
        lambda t: t.add_(torch.ones(3, device=t.device)),
        "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 1",
    ),
    "broadcast": (
        lambda t: t.add_(torch.ones(3, 2, 2, device=t.device)),
        "output with shape [2, 2] doesn't match the broadcast shape [3, 2, 2]",
    ),
    "row": (
        lambda t: t[0].mul_(torch.ones(2, 2, device=t.device)),
        "output with shape [2] doesn't match the broadcast shape [2, 2]",
    ),
    "dtype": (lambda t: t.to(torch.int64).add_(1.5), "result type Float can't be cast to the desired output type Long"),
    "setitem": (
        lambda t: t.__setitem__(0, torch.ones(3, device=t.device)),
        "The expanded size of the tensor (2) must match the existing size (3) at non-singleton dimension 0.  "
        "Target sizes: [2].  Tensor sizes: [3]",
    ),
    "copy": (
        lambda t: t.copy_(torch.ones(3, device=t.device)),
        "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 1",
    ),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", MISFITS)
@pytest.mark.parametrize("functional", [False, True])
def test_D5_a_shape_that_does_not_fit_raises_before_the_write(device: str, name: str, functional: bool) -> None:
    if functional and IS_ORACLE:
        pytest.skip("torch.functionalize is mindtorch_v2's own")
    call, text = MISFITS[name]
    base = torch.zeros(4, device=device)
    view = base.view(2, 2)
    with pytest.raises(RuntimeError) as caught:
        if functional:
            with torch.functionalize():
                call(view)
        else:
            call(view)
    # PyTorch decides shapes on meta in other code, with other words; here the rule, and so the text, is the same one.
    if device == "cpu" or not IS_ORACLE:
        assert str(caught.value) == text
    assert base._version == 0
    assert tuple(base.shape) == (4,) and tuple(view.shape) == (2, 2)
    if device == "cpu":
        assert base.tolist() == [0.0, 0.0, 0.0, 0.0]


# D6 -------------------------------------------------------------------------------------------------------------------


def gradients(name: str, functional: bool) -> list[Any]:
    x = inplace.floats(torch).requires_grad_()
    y = (inplace.floats(torch).t().contiguous() + 0.3).requires_grad_()
    weight = torch.linspace(0.5, 2.5, 9, dtype=torch.float64)
    if functional:
        with torch.functionalize():
            value = REWRITES[name](x, y)
            loss = (value * weight[: value.numel()].view(value.shape)).sum()
            loss.backward()
    else:
        value = REWRITES[name](x, y)
        loss = (value * weight[: value.numel()].view(value.shape)).sum()
        loss.backward()
    return [loss.item()] + [None if leaf.grad is None else leaf.grad.tolist() for leaf in (x, y)]


@mindtorch_only
@pytest.mark.parametrize("name", REWRITES)
def test_D6_gradients_are_the_same_under_functionalize(name: str) -> None:
    assert gradients(name, functional=True) == gradients(name, functional=False)


@mindtorch_only
def test_D6_backward_may_follow_outside() -> None:
    leaf = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    with torch.functionalize():
        hidden = leaf * 2
        hidden[1:].mul_(3)
    hidden.sum().backward()
    assert leaf.grad.tolist() == [2.0, 6.0, 6.0]


@mindtorch_only
def test_D6_leaf_and_version_rules_hold_under_functionalize() -> None:
    leaf = torch.ones(3, requires_grad=True)
    with torch.functionalize():
        with pytest.raises(
            RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation."
        ):
            leaf.add_(1)
        result = leaf.exp()
        result.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            result.sum().backward()
    assert leaf.tolist() == [1.0, 1.0, 1.0]
