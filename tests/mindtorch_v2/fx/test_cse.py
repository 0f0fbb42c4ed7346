"""`torch._functorch.compile_utils`: a graph in which nothing is computed twice."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from .._subject import subject as torch


def tools() -> Any:
    return import_module(f"{torch.__name__}._functorch.compile_utils")


def traced(fn: Callable[..., Any], *args: Any) -> Any:
    return import_module(f"{torch.__name__}.fx.experimental.proxy_tensor").make_fx(fn)(*args)


def kwargs_and_lists(x: Any) -> Any:
    return x.sum(dim=[0, 1]) + x.sum(dim=[0, 1]) + x.sum(dim=1, keepdim=True) + x.sum(dim=1, keepdim=True)


CASES: list[tuple[Callable[[Any], Any], int]] = [
    (lambda x: (x + 1) * (x + 1) + x.cos() * x.cos(), 2),
    (lambda x: ((x + 1).sin() + (x + 1).sin()).exp(), 2),
    (lambda x: (x * 1) * (x * 1.0), 0),
    (lambda x: x + x.sin() - x.cos(), 0),
    (kwargs_and_lists, 2),
    (lambda x: torch.rand_like(x) + torch.rand_like(x), 0),
    (lambda x: torch.randn(2) + torch.randn(2), 0),
    (lambda x: None, 0),
]


@pytest.mark.parametrize(("fn", "fewer"), CASES)
def test_what_is_computed_twice(fn: Callable[[Any], Any], fewer: int) -> None:
    x = torch.arange(4.0).reshape(2, 2)
    module = traced(fn, x)
    graph = tools().fx_graph_cse(module.graph)
    assert len(module.graph.nodes) - len(graph.nodes) == fewer
    assert len(tools().fx_graph_cse(graph).nodes) == len(graph.nodes)
    torch.manual_seed(0)
    expected = module(x)
    torch.manual_seed(0)
    got = torch.fx.GraphModule(module, graph)(x)
    assert (got is None and expected is None) or torch.equal(got, expected)


def test_what_is_written_in_between() -> None:
    def fn(x: Any) -> Any:
        x = x.clone()
        first = x.sin()
        x.add_(1)
        return first + x.sin()

    x = torch.ones(2)
    module = traced(fn, x)
    graph = tools().fx_graph_cse(module.graph)
    assert torch.equal(torch.fx.GraphModule(module, graph)(x), fn(x))


def test_parts_of_a_graph() -> None:
    module = traced(lambda x, y: [x + y, {"a": x}], torch.ones(2), torch.ones(2))
    assert [n.op for n in tools().get_placeholders(module.graph)] == ["placeholder"] * 2
    assert [n.op for n in tools().get_outputs(module.graph)] == ["call_function", "placeholder"]
    tools().strip_overloads(module)
    added = tools().get_outputs(module.graph)[0]
    assert added.target == torch.ops.aten.add and tools().get_aten_target(added) == torch.ops.aten.add
    with pytest.raises(AssertionError, match="No output node found"):
        tools().get_outputs(torch.fx.Graph())
