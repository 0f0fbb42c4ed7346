"""The public face of autograd: backward, grad, hooks, modes, threads, long chains.

Invariant: everything here also holds for PyTorch (run with MINDTORCH_TEST_SUBJECT=torch), and needs no oracle.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from .._subject import subject as torch
from .._subject import submodule

autograd: Any = submodule("autograd")


def leaf(*values: float) -> Any:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


# backward -------------------------------------------------------------------------------------------------------------


def test_backward_accumulates_in_leaves_only() -> None:
    a, b = leaf(1, 2), leaf(3, 4)
    c = a * b
    c.sum().backward()
    assert a.grad.tolist() == [3, 4]
    assert b.grad.tolist() == [1, 2]
    (a * 2).sum().backward()
    assert a.grad.tolist() == [5, 6]
    assert a.grad.grad_fn is None and not a.grad.requires_grad


def test_grad_of_a_nonleaf_warns_and_is_none() -> None:
    b = leaf(1) * 2
    with pytest.warns(UserWarning, match="The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"):
        assert b.grad is None


def test_backward_with_gradient() -> None:
    a = leaf(1, 2)
    (a * a).backward(torch.tensor([1.0, 10.0], dtype=torch.float64))
    assert a.grad.tolist() == [2, 40]


def test_backward_frees_the_graph_unless_retained() -> None:
    a = leaf(1, 2)
    y = (a * a).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert a.grad.tolist() == [4, 8]
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_a_graph_without_saved_values_may_run_again() -> None:
    a = leaf(1, 2)
    y = (a + a).sum()
    y.backward()
    y.backward()
    assert a.grad.tolist() == [4, 4]


def test_backward_of_several_roots() -> None:
    a = leaf(1, 2)
    autograd.backward([a.sum(), (a * a).sum()])
    assert a.grad.tolist() == [3, 5]
    autograd.backward([a * 1, a * 2], [torch.ones(2, dtype=torch.float64), torch.ones(2, dtype=torch.float64)])
    assert a.grad.tolist() == [6, 8]


def test_backward_inputs_limits_what_is_accumulated() -> None:
    a, b = leaf(1), leaf(2)
    hidden = a * b
    (hidden * hidden).sum().backward(inputs=[b])
    assert a.grad is None
    assert b.grad.tolist() == [4]
    hidden = a * b
    hidden.retain_grad()
    (hidden * hidden).sum().backward(inputs=[hidden])
    assert a.grad is None
    assert hidden.grad.tolist() == [4]


def test_backward_through_shared_subexpression_runs_each_node_once() -> None:
    a = leaf(2)
    y = a
    for _ in range(50):
        y = y + y
    y.backward()
    assert a.grad.tolist() == [2.0**50]


def test_first_gradient_is_stolen_not_aliased_to_users_tensor() -> None:
    a = leaf(1, 2)
    gradient = torch.ones(2, dtype=torch.float64)
    a.backward(gradient)
    gradient.fill_(5)
    assert a.grad.tolist() == [1, 1]


def test_existing_grad_is_accumulated_in_place() -> None:
    a = leaf(1, 2)
    a.sum().backward()
    first = a.grad
    a.sum().backward()
    assert a.grad is first
    assert first.tolist() == [2, 2]


def test_accumulation_with_create_graph_is_out_of_place() -> None:
    a = leaf(1, 2)
    (a * a).sum().backward(create_graph=True)
    first = a.grad
    assert first.requires_grad
    (a * a).sum().backward(create_graph=True)
    assert a.grad is not first


def test_gradient_is_reduced_to_a_broadcast_input() -> None:
    a, b = leaf(1), torch.ones(3, 2, dtype=torch.float64, requires_grad=True)
    (a * b).sum().backward()
    assert a.grad.tolist() == [6]
    assert tuple(b.grad.shape) == (3, 2)


def test_gradient_takes_the_dtype_of_its_leaf() -> None:
    a = torch.ones(2, dtype=torch.float32, requires_grad=True)
    b = torch.ones(2, dtype=torch.float64)
    (a * b).sum().backward()
    assert a.grad.dtype == torch.float32


# grad -----------------------------------------------------------------------------------------------------------------


def test_grad_returns_and_does_not_accumulate() -> None:
    a, b = leaf(1, 2), leaf(3, 4)
    ga, gb = autograd.grad((a * b).sum(), [a, b])
    assert (ga.tolist(), gb.tolist()) == ([3, 4], [1, 2])
    assert a.grad is None and b.grad is None


def test_grad_takes_one_tensor_or_a_sequence() -> None:
    a = leaf(1, 2)
    (g,) = autograd.grad(a.sum(), a)
    assert g.tolist() == [1, 1]


def test_grad_outputs_and_nonscalar() -> None:
    a = leaf(1, 2)
    (g,) = autograd.grad(a * a, a, grad_outputs=torch.tensor([1.0, 10.0], dtype=torch.float64))
    assert g.tolist() == [2, 40]
    (g,) = autograd.grad([a * a, a * 3], a, grad_outputs=[torch.ones(2, dtype=torch.float64)] * 2)
    assert g.tolist() == [5, 7]


def test_grad_of_intermediate() -> None:
    a = leaf(1, 2)
    hidden = a * 2
    (g,) = autograd.grad((hidden * hidden).sum(), hidden)
    assert g.tolist() == [4, 8]


def test_grad_allow_unused_and_materialize() -> None:
    a, b = leaf(1), leaf(2, 3)
    assert autograd.grad(a.sum(), [a, b], allow_unused=True)[1] is None
    assert autograd.grad(a.sum(), [a, b], materialize_grads=True)[1].tolist() == [0, 0]


def test_grad_of_an_output_by_itself() -> None:
    a = leaf(3)
    (g,) = autograd.grad(a, a)
    assert g.tolist() == [1]


def test_create_graph_gives_higher_derivatives() -> None:
    x = leaf(2)
    y = x**4
    derivatives = []
    for _ in range(4):
        (y,) = autograd.grad(y.sum(), x, create_graph=True)
        derivatives.append(y.item())
    assert derivatives == [32, 48, 48, 24]


def test_double_backward_through_backward() -> None:
    a = leaf(1, 2)
    (g,) = autograd.grad((a.sin() * a).sum(), a, create_graph=True)
    (g * g).sum().backward()
    assert a.grad is not None and a.grad.dtype == torch.float64


def test_is_grads_batched_or_unknown_keyword_is_not_swallowed() -> None:
    a = leaf(1)
    with pytest.raises(TypeError):
        autograd.grad(a.sum(), a, retain=True)


# properties of tensors in the graph -----------------------------------------------------------------------------------


def test_is_leaf_and_grad_fn() -> None:
    a = leaf(1)
    b = a * 2
    assert a.is_leaf and a.grad_fn is None
    assert not b.is_leaf and b.requires_grad
    assert b.detach().is_leaf and not b.detach().requires_grad
    assert torch.ones(2).is_leaf
    assert not (torch.ones(2) * 2).requires_grad


NAMES: dict[str, Callable[[Any], Any]] = {
    "AddBackward0": lambda a: a + 1,
    "SubBackward0": lambda a: a - a,
    "RsubBackward1": lambda a: 1 - a,
    "MulBackward0": lambda a: a * a,
    "DivBackward0": lambda a: a / 2,
    "PowBackward0": lambda a: a**2,
    "PowBackward1": lambda a: a**a,
    "NegBackward0": lambda a: -a,
    "ExpBackward0": lambda a: a.exp(),
    "LogBackward0": lambda a: a.log(),
    "SqrtBackward0": lambda a: a.sqrt(),
    "SinBackward0": lambda a: a.sin(),
    "TanhBackward0": lambda a: a.tanh(),
    "SigmoidBackward0": lambda a: a.sigmoid(),
    "ReluBackward0": lambda a: a.relu(),
    "GeluBackward0": lambda a: torch.nn.functional.gelu(a),
    "SiluBackward0": lambda a: torch.nn.functional.silu(a),
    "AbsBackward0": lambda a: a.abs(),
    "ClampBackward1": lambda a: a.clamp(0, 1),
    "SumBackward0": lambda a: a.sum(),
    "SumBackward1": lambda a: a.sum(0),
    "MeanBackward0": lambda a: a.mean(),
    "MeanBackward1": lambda a: a.mean(0),
    "ProdBackward0": lambda a: a.prod(),
    "MaxBackward0": lambda a: a.max(0)[0],
    "MaxBackward1": lambda a: a.max(),
    "AmaxBackward0": lambda a: a.amax(0),
    "VarBackward0": lambda a: a.var(),
    "StdBackward0": lambda a: a.std(),
    "MmBackward0": lambda a: a @ a,
    "MvBackward0": lambda a: a @ a[0],
    "DotBackward0": lambda a: a[0] @ a[1],
    "BmmBackward0": lambda a: torch.bmm(a[None], a[None]),
    "AddmmBackward0": lambda a: torch.addmm(a, a, a),
    "ViewBackward0": lambda a: a.view(-1),
    "TBackward0": lambda a: a.t(),
    "TransposeBackward0": lambda a: a.transpose(0, 1),
    "PermuteBackward0": lambda a: a.permute(1, 0),
    "SelectBackward0": lambda a: a[0],
    "SliceBackward0": lambda a: a[1:],
    "UnsqueezeBackward0": lambda a: a[None],
    "SqueezeBackward0": lambda a: a[None].squeeze(),
    "ExpandBackward0": lambda a: a.expand(2, 2, 2),
    "IndexBackward0": lambda a: a[torch.tensor([0, 1])],
    "CatBackward0": lambda a: torch.cat([a, a]),
    "StackBackward0": lambda a: torch.stack([a, a]),
    "SplitBackward0": lambda a: a.split(1)[0],
    "UnbindBackward0": lambda a: a.unbind()[0],
    "DiagonalBackward0": lambda a: a.diagonal(),
    "AsStridedBackward0": lambda a: a.as_strided((2,), (1,)),
    "CloneBackward0": lambda a: a.clone(),
    "ToCopyBackward0": lambda a: a.to(torch.float32),
    "GatherBackward0": lambda a: a.gather(0, torch.zeros(1, 2, dtype=torch.int64)),
    "IndexSelectBackward0": lambda a: a.index_select(0, torch.tensor([0])),
    "WhereBackward0": lambda a: torch.where(a > 0, a, 0.0),
    "MaskedFillBackward0": lambda a: a.masked_fill(a > 5, 0.0),
    "SoftmaxBackward0": lambda a: a.softmax(0),
    "LogSoftmaxBackward0": lambda a: a.log_softmax(0),
    "NativeLayerNormBackward0": lambda a: torch.nn.functional.layer_norm(a, (2,)),
    "MseLossBackward0": lambda a: torch.nn.functional.mse_loss(a, torch.zeros_like(a)),
    "NllLossBackward0": lambda a: torch.nn.functional.cross_entropy(a, torch.tensor([0, 1])),
    "TrilBackward0": lambda a: a.tril(),
    "FlipBackward0": lambda a: a.flip(0),
    "CopySlices": lambda a: _written_through_a_view(a),
    "CopyBackwards": lambda a: (a * 1).copy_(a),
    "FillBackward2": lambda a: (a * 1).fill_(0),
    "ZeroBackward0": lambda a: (a * 1).zero_(),
}


def _written_through_a_view(a: Any) -> Any:
    b = a * 1
    b[0].mul_(2)
    return b


@pytest.mark.parametrize("name", NAMES)
def test_grad_fn_names(name: str) -> None:
    a = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64, requires_grad=True)
    node = NAMES[name](a).grad_fn
    assert type(node).__name__ == name
    # Nodes that are not made from a formula carry their namespace in PyTorch.
    assert node.name().removeprefix("torch::autograd::") == name


def test_the_graph_can_be_walked() -> None:
    a, b = leaf(1), leaf(2)
    c = a * b + 3
    ((multiply, zero),) = [edge for edge in c.grad_fn.next_functions if edge[0] is not None]
    assert zero == 0
    assert multiply.name() == "MulBackward0"
    leaves = [edge[0] for edge in multiply.next_functions]
    assert [node.name() for node in leaves] == ["torch::autograd::AccumulateGrad"] * 2
    assert leaves[0].variable is a
    assert leaves[1].variable is b


def test_next_functions_has_no_node_for_constants() -> None:
    a = leaf(1)
    edges = (a * torch.ones(1, dtype=torch.float64)).grad_fn.next_functions
    assert edges[0][0] is not None
    assert edges[1] == (None, 0)


def test_grad_fn_of_a_leaf_accumulator_is_one_object() -> None:
    a = leaf(1)
    first = (a * 2).grad_fn.next_functions[0][0]
    second = (a * 3).grad_fn.next_functions[0][0]
    assert first is second or first == second


def test_output_nr() -> None:
    a = leaf(1, 2, 3)
    parts = (a * 1).unbind()
    assert [part.output_nr for part in parts] == [0, 1, 2]


def test_requires_grad_can_be_switched_on_leaves() -> None:
    a = torch.ones(2)
    assert a.requires_grad_() is a
    assert a.requires_grad
    a.requires_grad = False
    assert not a.requires_grad


def test_detach_inplace_cuts_history() -> None:
    b = leaf(1) * 2
    assert b.detach_() is b
    assert b.is_leaf and not b.requires_grad and b.grad_fn is None


def test_data_write_is_invisible_to_autograd() -> None:
    a = leaf(1, 2)
    y = (a * a).sum()
    a.data.mul_(10)
    y.backward()
    assert a.grad.tolist() == [20, 40]


def test_grad_assignment() -> None:
    a = leaf(1, 2)
    a.grad = torch.ones(2, dtype=torch.float64)
    a.sum().backward()
    assert a.grad.tolist() == [2, 2]
    a.grad = None
    assert a.grad is None
    del a.grad
    assert a.grad is None


# hooks ----------------------------------------------------------------------------------------------------------------


def test_retain_grad() -> None:
    a = leaf(1, 2)
    hidden = a * 2
    hidden.retain_grad()
    assert hidden.retains_grad
    (hidden * hidden).sum().backward()
    assert hidden.grad.tolist() == [4, 8]
    assert not a.retains_grad


def test_tensor_hook_sees_and_replaces() -> None:
    a = leaf(1, 2)
    hidden = a * 2
    seen: list[Any] = []
    handle = hidden.register_hook(lambda g: seen.append(g.tolist()) or g * 10)
    hidden.sum().backward()
    assert seen == [[1, 1]]
    assert a.grad.tolist() == [20, 20]
    handle.remove()
    a.grad = None
    hidden2 = a * 2
    hidden2.sum().backward()
    assert a.grad.tolist() == [2, 2]
    assert len(seen) == 1


def test_leaf_hook_runs_before_accumulation_once_per_backward() -> None:
    a = leaf(1)
    calls: list[float] = []
    a.register_hook(lambda g: calls.append(g.item()))
    (a * 2 + a * 3).sum().backward()
    assert calls == [5]
    assert a.grad.tolist() == [5]


def test_hooks_run_in_order() -> None:
    a = leaf(1)
    a.register_hook(lambda g: g + 1)
    a.register_hook(lambda g: g * 10)
    a.sum().backward()
    assert a.grad.tolist() == [20]


def test_removed_hook_does_not_run() -> None:
    a = leaf(1)
    handle = a.register_hook(lambda g: g * 100)
    handle.remove()
    a.sum().backward()
    assert a.grad.tolist() == [1]


def test_post_accumulate_grad_hook() -> None:
    a = leaf(1, 2)
    seen: list[Any] = []

    def hook(tensor: Any) -> None:
        seen.append((tensor is a, tensor.grad.tolist()))
        tensor.grad = None

    handle = a.register_post_accumulate_grad_hook(hook)
    (a * 2).sum().backward()
    assert seen == [(True, [2, 2])]
    assert a.grad is None
    handle.remove()
    (a * 2).sum().backward()
    again: Any = a.grad
    assert again.tolist() == [2, 2]


def test_node_hooks() -> None:
    a = leaf(1)
    y = a * 2
    order: list[str] = []
    y.grad_fn.register_prehook(lambda outs: order.append("pre"))
    y.grad_fn.register_hook(lambda ins, outs: order.append("post"))
    y.sum().backward()
    assert order == ["pre", "post"]


# modes ----------------------------------------------------------------------------------------------------------------


def test_no_grad_as_context_and_decorator() -> None:
    a = leaf(1)
    with torch.no_grad():
        assert not torch.is_grad_enabled()
        b = a * 2
    assert torch.is_grad_enabled()
    assert not b.requires_grad

    @torch.no_grad()
    def decorated() -> Any:
        return a * 2

    @torch.no_grad
    def bare() -> Any:
        return a * 2

    assert not decorated().requires_grad
    assert not bare().requires_grad
    assert (a * 2).requires_grad


def test_enable_grad_inside_no_grad() -> None:
    a = leaf(1)
    with torch.no_grad():
        with torch.enable_grad():
            assert (a * 2).requires_grad
        assert not (a * 2).requires_grad

        @torch.enable_grad()
        def decorated() -> Any:
            return a * 2

        assert decorated().requires_grad


def test_set_grad_enabled() -> None:
    a = leaf(1)
    with torch.set_grad_enabled(False):
        assert not (a * 2).requires_grad
    assert torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    try:
        assert not (a * 2).requires_grad
    finally:
        torch.set_grad_enabled(True)

    @torch.set_grad_enabled(False)
    def decorated() -> Any:
        return a * 2

    assert not decorated().requires_grad
    assert torch.is_grad_enabled()


def test_modes_are_restored_after_an_exception() -> None:
    for mode in (torch.no_grad, torch.inference_mode):
        with pytest.raises(KeyError), mode():
            raise KeyError
        assert torch.is_grad_enabled()
        assert not torch.is_inference_mode_enabled()


def test_no_grad_decorates_generators() -> None:
    a = leaf(1)

    @torch.no_grad()
    def generate() -> Any:
        for _ in range(2):
            yield (a * 2).requires_grad

    produced = []
    for flag in generate():
        produced.append((flag, torch.is_grad_enabled()))
    assert produced == [(False, True), (False, True)]


def test_factories_under_no_grad_may_require_grad() -> None:
    with torch.no_grad():
        a = torch.ones(2, requires_grad=True)
    assert a.requires_grad


def test_inference_mode() -> None:
    a = leaf(1, 2)
    with torch.inference_mode():
        assert torch.is_inference_mode_enabled()
        assert not torch.is_grad_enabled()
        b = a * 2
        view = a[:1]
        c = torch.ones(2)
        c.add_(1)
        with torch.inference_mode(False):
            assert (a * 2).requires_grad
    assert b.is_inference() and c.is_inference()
    assert not view.is_inference()
    assert not a.is_inference()
    assert not b.requires_grad
    assert not b.clone().is_inference()
    assert (b + 1).tolist() == [3, 5]


def test_grad_mode_is_per_thread() -> None:
    seen: list[bool] = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]
