"""Functionalization beyond the contract: whole programs, modes, threads, errors, and what the user may notice.

Invariant: a program run under `functionalize` leaves every tensor, version and gradient as it would be without.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from .._subject import mindtorch_only
from .._subject import subject as torch

pytestmark = mindtorch_only

Program = Callable[[Any], list[Any]]


def training_step(x: Any) -> list[Any]:
    weight = torch.full((3, 3), 0.5, dtype=torch.float64).requires_grad_()
    hidden = x @ weight
    hidden[:, 0].mul_(2)
    hidden.relu_()
    hidden.sum().backward()
    with torch.no_grad():
        weight.sub_(weight.grad, alpha=0.1)
    return [weight, weight.grad, hidden]


def chained_views(x: Any) -> list[Any]:
    base = x.clone()
    first = base[1:]
    second = first.t()
    third = second[0]
    third.fill_(9)
    second.add_(1)
    first[0].zero_()
    return [base, first, second, third]


def alias_reads(x: Any) -> list[Any]:
    base = x.clone()
    view = base.view(-1)
    total = base.sum()
    view.mul_(2)
    after = base.sum()
    base[0, 0] = 100.0
    return [total, after, view, base]


def out_and_copy(x: Any) -> list[Any]:
    target = torch.zeros(3, 3, dtype=torch.float64)
    torch.exp(x, out=target)
    target.t().copy_(x)
    torch.add(x, 1, out=target[:, :])
    return [target]


def index_writes(x: Any) -> list[Any]:
    base = x.clone()
    base[base > 0.5] = 0.0
    base[torch.tensor([0, 2])] += 1
    base.index_put_((torch.tensor([1]),), torch.ones(3, dtype=torch.float64), accumulate=True)
    base.scatter_(0, torch.tensor([[0, 1, 2]]), 5.0)
    base.masked_fill_(torch.eye(3, dtype=torch.bool), -1.0)
    return [base]


def metadata_writes(x: Any) -> list[Any]:
    base = x.clone()
    base.t_()
    base.unsqueeze_(0)
    base.squeeze_(0).add_(1)
    return [base]


def dtype_mix(x: Any) -> list[Any]:
    base = torch.zeros(3, 3)
    base.add_(x)
    base.mul_(2)
    base[0] = torch.tensor([1, 2, 3])
    counts = torch.zeros(3, dtype=torch.int64)
    counts.add_(torch.tensor([1, 2, 3]))
    counts[1:] -= 1
    return [base, counts]


def detached(x: Any) -> list[Any]:
    base = x.clone().requires_grad_() * 1
    base.detach()[0].zero_()
    base.data.add_(1)
    return [base]


PROGRAMS: dict[str, Program] = {
    program.__name__: program
    for program in (
        training_step,
        chained_views,
        alias_reads,
        out_and_copy,
        index_writes,
        metadata_writes,
        dtype_mix,
        detached,
    )
}


def source() -> Any:
    return torch.linspace(0.1, 0.9, 9, dtype=torch.float64).view(3, 3)


def facts(results: list[Any]) -> list[Any]:
    return [(tuple(t.shape), t.stride(), str(t.dtype), t._version, t.requires_grad, t.tolist()) for t in results]


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_unchanged_by_functionalize(name: str) -> None:
    expected = facts(PROGRAMS[name](source()))
    with torch.functionalize():
        actual = PROGRAMS[name](source())
    assert facts(actual) == expected


# The others read data or make their own tensors on the cpu.
ON_META = ["chained_views", "alias_reads", "out_and_copy", "metadata_writes", "dtype_mix"]


@pytest.mark.parametrize("name", ON_META)
def test_programs_on_meta(name: str) -> None:
    expected = [(tuple(t.shape), t.stride(), t.dtype) for t in PROGRAMS[name](source())]
    with torch.functionalize(), torch.device("meta"):
        actual = PROGRAMS[name](source().to("meta"))
    assert [(tuple(t.shape), t.stride(), t.dtype) for t in actual] == expected


def test_the_mode_is_per_thread() -> None:
    """The other thread writes as usual while this one functionalizes; both see the result."""
    shared = torch.zeros(4)
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(100):
                shared[2:].add_(1)
        except BaseException as error:  # handed to the main thread
            errors.append(error)

    with torch.functionalize():
        thread = threading.Thread(target=work)
        thread.start()
        for _ in range(100):
            shared[:2].add_(1)
        thread.join()
    assert errors == []
    assert shared.tolist() == [100.0] * 4


def test_results_are_plain_tensors() -> None:
    with torch.functionalize():
        made = torch.ones(2) + 1
        made.add_(1)
    assert type(made) is torch.Tensor
    made.add_(1)
    assert made.tolist() == [4, 4]


def test_tensors_made_before_inside_and_after_work_together() -> None:
    before = torch.ones(2, 2)
    with torch.functionalize():
        inside = before.t()
        inside.add_(1)
        made = torch.zeros(2, 2)
        made.copy_(inside)
    made.add_(before)
    assert made.tolist() == [[4, 4], [4, 4]]
    assert before._version == 1


def test_no_grad_and_inference_inside() -> None:
    leaf = torch.ones(2, requires_grad=True)
    with torch.functionalize(), torch.no_grad():
        leaf.add_(1)
    assert leaf.tolist() == [2, 2] and leaf._version == 1
    with torch.functionalize(), torch.inference_mode():
        made = torch.ones(2)
        made.add_(1)
    assert made.tolist() == [2, 2]


def test_double_backward_inside() -> None:
    x = torch.tensor([2.0], dtype=torch.float64, requires_grad=True)
    with torch.functionalize():
        y = x * x
        y.mul_(x)
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        (gg,) = torch.autograd.grad(g.sum(), x)
    assert (g.item(), gg.item()) == (12, 12)


def test_an_error_inside_leaves_eager_working() -> None:
    base = torch.zeros(2)
    with pytest.raises(RuntimeError, match="must match the size"):
        with torch.functionalize():
            base.add_(torch.ones(3))
    base.add_(1)
    assert base.tolist() == [1, 1] and base._version == 1


def test_func_functionalize_of_a_function_with_many_arguments() -> None:
    def program(x: Any, y: Any, *, scale: float) -> tuple[Any, Any]:
        z = x.clone()
        z[0].mul_(y[0])
        return z * scale, z

    x, y = source(), source() + 1
    expected = program(x, y, scale=3.0)
    actual = torch.func.functionalize(lambda x, y: program(x, y, scale=3.0))(x, y)
    assert [t.tolist() for t in actual] == [t.tolist() for t in expected]
