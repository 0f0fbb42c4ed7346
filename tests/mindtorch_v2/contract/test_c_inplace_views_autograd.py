"""Contract C: version counters, views, in-place operators and autograd behave as PyTorch's, on cpu, meta and npu (C7).

Invariant: every test is named after the id it proves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from .. import _npu
from .._subject import IS_ORACLE, mindtorch_only, submodule
from .._subject import subject as torch
from . import _inplace_calls as inplace
from ._rewrites import REWRITES, Program

# PyTorch itself, as the subject, has no NPU.
WITH_DATA = ["cpu"] if IS_ORACLE else ["cpu", "npu"]
DEVICES = [*WITH_DATA, "meta"]
LEAF_TEXT = "a leaf Variable that requires grad is being used in an in-place operation."
VIEW_TEXT = "a view of a leaf Variable that requires grad is being used in an in-place operation."
MODIFIED_TEXT = "one of the variables needed for gradient computation has been modified by an inplace operation"

VIEWS: dict[str, Callable[[Any], Any]] = {
    "view": lambda t: t.view(-1),
    "reshape": lambda t: t.reshape(-1),
    "transpose": lambda t: t.transpose(0, 1),
    "permute": lambda t: t.permute(1, 0),
    "t": lambda t: t.t(),
    "T": lambda t: t.T,
    "select": lambda t: t.select(0, 1),
    "int": lambda t: t[1],
    "slice": lambda t: t[1:],
    "step": lambda t: t[:, ::2],
    "none": lambda t: t[None],
    "ellipsis": lambda t: t[..., 0],
    "narrow": lambda t: t.narrow(1, 0, 2),
    "squeeze": lambda t: t.squeeze(),
    "unsqueeze": lambda t: t.unsqueeze(0),
    "expand": lambda t: t.expand(2, 3, 3),
    "diagonal": lambda t: t.diagonal(),
    "as_strided": lambda t: t.as_strided((2, 2), (3, 1)),
    "split": lambda t: t.split(2)[0],
    "chunk": lambda t: t.chunk(2)[1],
    "unbind": lambda t: t.unbind(0)[1],
    "unfold": lambda t: t.unfold(0, 2, 1),
    "movedim": lambda t: t.movedim(0, 1),
    "flatten": lambda t: t.flatten(),
    "view_as": lambda t: t.view_as(t),
    "detach": lambda t: t.detach(),
    "view_of_view": lambda t: t[1:].t()[0],
}


@pytest.fixture(autouse=True)
def emulator(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tests on `npu` have one, and are watched for breaches of the vendor's contract."""
    if "device" in request.fixturenames and request.getfixturevalue("device") == "npu":
        yield from _npu.watched(_npu.start())
    else:
        yield


def make(device: str, requires_grad: bool = False) -> Any:
    return inplace.on(inplace.floats(torch), device).requires_grad_(requires_grad)


# C1 -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("view", VIEWS)
def test_C1_view_shares_the_version_counter_of_its_base(device: str, view: str) -> None:
    base = make(device)
    made = VIEWS[view](base)
    assert made._version == base._version == 0
    base.add_(1)
    assert (base._version, made._version) == (1, 1)
    if view not in ("expand", "unfold"):
        made.mul_(2)
        assert (base._version, made._version) == (2, 2)


@mindtorch_only
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("view", VIEWS)
def test_C1_version_counter_is_one_object_with_a_value(device: str, view: str) -> None:
    base = make(device)
    made = VIEWS[view](base)
    assert base._version_counter is made._version_counter
    assert base._version_counter.value == 0
    base.zero_()
    assert base._version_counter.value == base._version == made._version_counter.value == 1
    assert base._version_counter is made._version_counter


@pytest.mark.parametrize("device", DEVICES)
def test_C1_detach_shares_the_counter_and_data_does_not(device: str) -> None:
    base = make(device, requires_grad=True) * 1
    detached, data = base.detach(), base.data
    base.mul_(2)
    assert (base._version, detached._version, data._version) == (1, 1, 0)
    detached.mul_(2)
    data.mul_(2)
    assert (base._version, detached._version, data._version) == (2, 2, 1)


@mindtorch_only
@pytest.mark.parametrize("device", WITH_DATA)
def test_C1_detach_and_data_counters_by_identity(device: str) -> None:
    base = make(device)
    assert base.detach()._version_counter is base._version_counter
    assert base.data._version_counter is not base._version_counter


@pytest.mark.parametrize("device", WITH_DATA)
def test_C1_a_copy_has_a_counter_of_its_own(device: str) -> None:
    base = make(device)
    base.add_(1)
    clone = base.clone()
    assert clone._version == 0
    clone.add_(1)
    assert (base._version, clone._version) == (1, 1)


# C2 -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("view", [name for name in VIEWS if name != "detach"])
def test_C2_view_carries_its_base(device: str, view: str) -> None:
    base = make(device)
    made = VIEWS[view](base)
    assert made._base is base
    assert made._is_view()
    assert base._base is None
    assert not base._is_view()


@pytest.mark.parametrize("device", DEVICES)
def test_C2_base_of_a_view_of_a_view_is_the_root(device: str) -> None:
    base = make(device)
    first = base[1:]
    second = first.t()
    third = second[0]
    assert second._base is base
    assert third._base is base


@pytest.mark.parametrize("device", DEVICES)
def test_C2_a_result_that_is_no_view_has_no_base(device: str) -> None:
    base = make(device)
    for made in (base + 1, base.clone(), base.detach(), base.data, base.t().contiguous(), base[[0, 1]]):
        assert made._base is None
        assert not made._is_view()


@mindtorch_only
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("view", [name for name in VIEWS if name != "detach"])
def test_C2_view_carries_view_meta(device: str, view: str) -> None:
    base = make(device)
    assert VIEWS[view](base)._view_meta is not None
    assert base._view_meta is None
    assert (base + 1)._view_meta is None


# C3 -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", [name for name in inplace.differentiable(torch) if not name.startswith("logical_")])
def test_C3_inplace_on_leaf_raises_before_write(device: str, name: str) -> None:
    call = inplace.CALLS[name]
    leaf = call.make(torch, device).requires_grad_()
    before = None if device == "meta" else leaf.tolist()
    # These write through a view that they make themselves.
    expected = VIEW_TEXT if name in ("setitem", "setitem_slice", "fill_diagonal_") else LEAF_TEXT
    with pytest.raises(RuntimeError) as caught:
        call.call(torch, leaf)
    assert str(caught.value) == expected
    assert leaf._version == 0
    assert leaf.is_leaf and leaf.requires_grad
    if before is not None:
        assert leaf.tolist() == before


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "view", [name for name in VIEWS if name not in ("detach", "expand", "unfold", "split", "chunk", "unbind")]
)
def test_C3_inplace_on_view_of_leaf_raises_before_write(device: str, view: str) -> None:
    leaf = make(device, requires_grad=True)
    before = None if device == "meta" else leaf.tolist()
    made = VIEWS[view](leaf)
    for write in (lambda: made.add_(1), lambda: made.zero_(), lambda: made.relu_(), lambda: made.copy_(made.detach())):
        with pytest.raises(RuntimeError) as caught:
            write()
        assert str(caught.value) == VIEW_TEXT
    assert leaf._version == 0
    if before is not None:
        assert leaf.tolist() == before


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", inplace.differentiable(torch))
def test_C3_inplace_on_leaf_is_allowed_under_no_grad(device: str, name: str) -> None:
    call = inplace.CALLS[name]
    leaf = call.make(torch, device).requires_grad_()
    with torch.no_grad():
        call.call(torch, leaf)
    assert leaf.is_leaf and leaf.requires_grad and leaf.grad_fn is None
    assert leaf._version == 1
    if device in WITH_DATA and name not in inplace.RANDOM:
        expected = call.make(torch, device)
        call.call(torch, expected)
        assert repr(leaf.tolist()) == repr(expected.tolist())


@pytest.mark.parametrize("device", WITH_DATA)
def test_C3_view_of_leaf_is_written_under_no_grad(device: str) -> None:
    leaf = make(device, requires_grad=True)
    with torch.no_grad():
        leaf[0].zero_()
        leaf.t()[0].fill_(5)
    assert leaf.tolist()[0] == [5.0, 0.0, 0.0]
    assert leaf._version == 2
    (leaf * leaf).sum().backward()
    assert leaf.grad.tolist() == (2 * leaf.detach()).tolist()


# C4 -------------------------------------------------------------------------------------------------------------------


def test_C4_every_inplace_method_is_in_the_table() -> None:
    missing = [name for name in inplace.inplace_methods(torch) if not inplace.covered(name)]
    assert missing == []


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", inplace.available(torch))
def test_C4_inplace_moves_the_version_by_one(device: str, name: str) -> None:
    call = inplace.CALLS[name]
    tensor = call.make(torch, device)
    result = call.call(torch, tensor)
    assert tensor._version == 1
    if not name.startswith("setitem"):
        assert result is tensor


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", [name for name in inplace.available(torch) if name not in inplace.LAYOUT])
def test_C4_inplace_through_a_view_moves_the_shared_version_by_one(device: str, name: str) -> None:
    call = inplace.CALLS[name]
    base = call.make(torch, device)
    view = base.view_as(base)
    call.call(torch, view)
    assert (base._version, view._version) == (1, 1)


@pytest.mark.parametrize("device", DEVICES)
def test_C4_operators_and_out_move_the_version_by_one(device: str) -> None:
    tensor = make(device)
    same = tensor
    for count, write in enumerate(
        (
            lambda t: t.__iadd__(1),
            lambda t: t.__isub__(1),
            lambda t: t.__imul__(2),
            lambda t: t.__itruediv__(2),
            lambda t: torch.add(t, 1, out=t),
            lambda t: torch.exp(t, out=t),
            lambda t: torch.sum(t, 1, keepdim=True, out=t[:, :1]),
        ),
        start=1,
    ):
        write(tensor)
        assert tensor._version == count
    assert tensor is same


@pytest.mark.parametrize("device", DEVICES)
def test_C4_reading_does_not_move_the_version(device: str) -> None:
    tensor = make(device)
    tensor + 1, tensor.t(), tensor.clone(), tensor.sum(), tensor[0], tensor.relu(), tensor.to(torch.float32)
    assert tensor._version == 0


@pytest.mark.parametrize("device", DEVICES)
def test_C4_augmented_assignment_to_an_item_is_two_writes(device: str) -> None:
    tensor = make(device)
    tensor[0] += 1
    assert tensor._version == 2


# C5 -------------------------------------------------------------------------------------------------------------------


@mindtorch_only
def test_C5_node_saves_values_with_their_version() -> None:
    node_module = submodule("_autograd.node")
    saved_module = submodule("_autograd.saved")
    node = (make("cpu", requires_grad=True) * 2).grad_fn
    assert isinstance(node, node_module.Node)
    value = make("cpu", requires_grad=True) * 1
    node.save_for_backward(value)
    (read,) = node.saved_tensors()
    assert torch.equal(read, value)
    assert [type(item) for item in node._saved] == [saved_module.SavedTensor]
    assert node._saved[0].saved_version == 0
    value.add_(1)
    with pytest.raises(RuntimeError, match=MODIFIED_TEXT):
        node.saved_tensors()


# operator, what is written afterwards, whether PyTorch saved it. The values are what PyTorch's derivatives save.
SAVES: list[tuple[str, Callable[[Any], Any], str, bool]] = [
    ("relu", lambda x: x.relu(), "input", False),
    ("relu", lambda x: x.relu(), "result", True),
    ("sigmoid", lambda x: x.sigmoid(), "input", False),
    ("sigmoid", lambda x: x.sigmoid(), "result", True),
    ("tanh", lambda x: x.tanh(), "input", False),
    ("tanh", lambda x: x.tanh(), "result", True),
    ("exp", lambda x: x.exp(), "input", False),
    ("exp", lambda x: x.exp(), "result", True),
    ("sqrt", lambda x: x.sqrt(), "input", False),
    ("sqrt", lambda x: x.sqrt(), "result", True),
    ("rsqrt", lambda x: x.rsqrt(), "input", False),
    ("rsqrt", lambda x: x.rsqrt(), "result", True),
    ("reciprocal", lambda x: x.reciprocal(), "input", False),
    ("reciprocal", lambda x: x.reciprocal(), "result", True),
    ("log", lambda x: x.log(), "input", True),
    ("log", lambda x: x.log(), "result", False),
    ("sin", lambda x: x.sin(), "input", True),
    ("sin", lambda x: x.sin(), "result", False),
    ("abs", lambda x: x.abs(), "input", True),
    ("abs", lambda x: x.abs(), "result", False),
    ("gelu", lambda x: torch.nn.functional.gelu(x), "input", True),
    ("gelu", lambda x: torch.nn.functional.gelu(x), "result", False),
    ("silu", lambda x: torch.nn.functional.silu(x), "input", True),
    ("silu", lambda x: torch.nn.functional.silu(x), "result", False),
    ("neg", lambda x: -x, "input", False),
    ("neg", lambda x: -x, "result", False),
    ("add", lambda x: x + x, "input", False),
    ("add", lambda x: x + x, "result", False),
    ("mul", lambda x: x * x, "input", True),
    ("mul", lambda x: x * x, "result", False),
    ("mul scalar", lambda x: x * 2, "input", False),
    ("div scalar", lambda x: x / 2, "input", False),
    ("div", lambda x: 1 / (x + 0), "input", False),
    ("pow", lambda x: x**2, "input", True),
    ("pow", lambda x: x**2, "result", False),
    ("softmax", lambda x: x.softmax(0), "input", False),
    ("softmax", lambda x: x.softmax(0), "result", True),
    ("log_softmax", lambda x: x.log_softmax(0), "input", False),
    ("log_softmax", lambda x: x.log_softmax(0), "result", True),
    ("sum", lambda x: x.sum(0), "input", False),
    ("sum", lambda x: x.sum(0), "result", False),
    ("mean", lambda x: x.mean(0), "input", False),
    ("prod", lambda x: x.prod(0), "input", True),
    ("prod", lambda x: x.prod(0), "result", True),
    ("var", lambda x: x.var(0), "input", True),
    ("var", lambda x: x.var(0), "result", False),
    ("amax", lambda x: x.amax(0), "input", True),
    ("amax", lambda x: x.amax(0), "result", True),
    ("max dim", lambda x: x.max(0)[0], "input", False),
    ("max dim", lambda x: x.max(0)[0], "result", False),
    ("mm", lambda x: x @ x, "input", True),
    ("mm", lambda x: x @ x, "result", False),
    ("view", lambda x: x.t().clone(), "input", False),
    ("clamp", lambda x: x.clamp(0.1, 0.5), "input", True),
    ("clamp", lambda x: x.clamp(0.1, 0.5), "result", False),
    ("where", lambda x: torch.where(x.detach() > 0, x, x), "input", False),
    ("masked_fill", lambda x: x.masked_fill(x.detach() > 0.3, 0), "input", False),
    ("gather", lambda x: x.gather(0, torch.zeros(1, 3, dtype=torch.int64)), "input", True),
    ("cat", lambda x: torch.cat([x, x]), "input", False),
]


@pytest.mark.parametrize(("name", "operator", "written", "saved"), SAVES, ids=[f"{s[0]}-{s[2]}" for s in SAVES])
def test_C5_the_values_that_are_saved_are_guarded(
    name: str, operator: Callable[[Any], Any], written: str, saved: bool
) -> None:
    value = make("cpu", requires_grad=True) * 1
    result = operator(value)
    with torch.no_grad():
        (value if written == "input" else result).zero_()
    if not saved:
        result.sum().backward()
        return
    with pytest.raises(RuntimeError) as caught:
        result.sum().backward()
    text = str(caught.value)
    assert text.startswith(MODIFIED_TEXT), text
    assert "is at version 1; expected version 0 instead." in text
    assert "Hint:" in text


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("saved", "node"), [("result", "Exp"), ("input", "Add")])
def test_C5_the_check_names_the_tensor_and_its_node(device: str, saved: str, node: str) -> None:
    value = torch.ones(3, device=device, requires_grad=True) * 1
    result = value.exp() if saved == "result" else value * value
    (result if saved == "result" else value).add_(1)
    with pytest.raises(RuntimeError) as caught:
        result.sum().backward()
    kind = {"cpu": "torch.FloatTensor", "meta": "MetaFloatType", "npu": "NPUFloatType"}[device]
    assert str(caught.value).startswith(
        f"{MODIFIED_TEXT}: [{kind} [3]], which is output 0 of {node}, "
        "is at version 1; expected version 0 instead. Hint: "
    )


@pytest.mark.parametrize("device", WITH_DATA)
def test_C5_second_write_is_counted_in_the_message(device: str) -> None:
    value = make(device, requires_grad=True) * 1
    value.add_(1)
    result = value * value
    value.add_(1)
    value.add_(1)
    with pytest.raises(RuntimeError, match="is at version 3; expected version 1 instead"):
        result.sum().backward()


@pytest.mark.parametrize("device", WITH_DATA)
def test_C5_write_through_any_view_is_noticed(device: str) -> None:
    for write in (lambda v: v[0].zero_(), lambda v: v.t().add_(1), lambda v: v.detach().add_(1)):
        value = make(device, requires_grad=True) * 1
        result = value * value
        write(value)
        with pytest.raises(RuntimeError, match=MODIFIED_TEXT):
            result.sum().backward()


@pytest.mark.parametrize("device", WITH_DATA)
def test_C5_write_through_data_is_not_noticed(device: str) -> None:
    value = make(device, requires_grad=True) * 1
    result = value * value
    value.data.zero_()
    result.sum().backward()


# C6 -------------------------------------------------------------------------------------------------------------------


def numeric_gradient(program: Program, x: Any, y: Any, weight: Any, position: int) -> list[float]:
    """Central differences of the weighted sum of the result, with no help from autograd."""
    step = 1e-6
    result: list[float] = []
    for flat in range(9):
        sides = []
        for sign in (1, -1):
            point = [x.clone(), y.clone()]
            point[position].view(-1)[flat] += sign * step
            value = program(*point)
            sides.append((value * weight[: value.numel()].view(value.shape)).sum().item())
        result.append((sides[0] - sides[1]) / (2 * step))
    return result


@pytest.mark.parametrize("device", WITH_DATA)
@pytest.mark.parametrize("name", REWRITES)
def test_C6_gradients_after_inplace_on_views_are_right(device: str, name: str) -> None:
    program = REWRITES[name]
    x, y = make("cpu"), make("cpu").t().contiguous() + 0.3
    weight = torch.linspace(0.5, 2.5, 9, dtype=torch.float64)
    expected = [numeric_gradient(program, x, y, weight, position) for position in (0, 1)]
    x, y, weight = (inplace.on(t, device) for t in (x, y, weight))
    x.requires_grad_()
    y.requires_grad_()
    value = program(x, y)
    (value * weight[: value.numel()].view(value.shape)).sum().backward()
    for leaf, want in zip((x, y), expected):
        got = [0.0] * 9 if leaf.grad is None else leaf.grad.reshape(-1).tolist()
        assert got == pytest.approx(want, abs=1e-6 if device == "cpu" else 1e-4)


@pytest.mark.parametrize("device", DEVICES)
def test_C6_history_of_the_base_is_rewritten(device: str) -> None:
    leaf = make(device, requires_grad=True)
    base = leaf * 1
    view = base[0]
    assert type(view.grad_fn).__name__ == "SelectBackward0"
    view.mul_(2)
    assert type(base.grad_fn).__name__ == "CopySlices"
    assert type(view.grad_fn).__name__ == "AsStridedBackward0"
    base.exp_()
    assert type(base.grad_fn).__name__ == "ExpBackward0"
    assert type(view.grad_fn).__name__ == "AsStridedBackward0"


@pytest.mark.parametrize("device", DEVICES)
def test_C6_a_base_without_history_gets_one(device: str) -> None:
    base = torch.zeros(3, device=device)
    assert not base.requires_grad
    base[1:].mul_(torch.ones(2, device=device, requires_grad=True))
    assert base.requires_grad
    assert not base.is_leaf
    assert type(base.grad_fn).__name__ == "CopySlices"


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("split", ["split", "chunk", "unbind"])
def test_C6_inplace_on_one_of_several_views_raises(device: str, split: str) -> None:
    base = make(device, requires_grad=True) * 1
    views = {"split": lambda: base.split(2), "chunk": lambda: base.chunk(2), "unbind": lambda: base.unbind()}[split]()
    with pytest.raises(RuntimeError) as caught:
        views[0].mul_(2)
    assert str(caught.value).startswith(
        f"Output 0 of {'Unbind' if split == 'unbind' else 'Split'} is a view and is being modified inplace. "
        "This view is the output of a function that returns multiple views. Such functions do not allow the output "
        "views to be modified inplace. You should replace the inplace operation by an out-of-place one."
    )


@pytest.mark.parametrize("device", DEVICES)
def test_C6_inplace_on_a_view_made_in_no_grad_raises(device: str) -> None:
    base = make(device, requires_grad=True) * 1
    with torch.no_grad():
        view = base[0]
    with pytest.raises(RuntimeError) as caught:
        view.mul_(2)
    assert str(caught.value).startswith(
        "A view was created in no_grad mode and is being modified inplace with grad mode enabled."
    )
    with torch.no_grad():
        view.mul_(2)


def test_C6_overlapping_write_raises() -> None:
    base = torch.zeros(3)
    for view in (base.expand(3, 3), base.as_strided((2, 2), (0, 1))):
        with pytest.raises(RuntimeError, match="unsupported operation: more than one element of the written-to tensor"):
            view.add_(1)
    assert base.tolist() == [0.0, 0.0, 0.0]
    assert base._version == 0


# C7 -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", WITH_DATA)
def test_C7_the_rules_hold_together(device: str) -> None:
    """One story that uses every rule."""
    weight = torch.tensor([1.0, 2.0, 3.0, 4.0], device=device, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        weight.add_(1)
    hidden = weight * 2
    matrix = hidden.view(2, 2)
    squared = matrix * matrix
    matrix[0].add_(1)
    assert hidden._version == matrix._version == 1
    with pytest.raises(RuntimeError, match=MODIFIED_TEXT):
        squared.sum().backward()
    hidden.sum().backward()
    assert weight.grad.tolist() == [2.0, 2.0, 2.0, 2.0]
    with torch.no_grad():
        weight.sub_(weight.grad)
    assert weight.tolist() == [-1.0, 0.0, 1.0, 2.0]
    assert weight._version == 1
