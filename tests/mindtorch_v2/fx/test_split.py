"""Splitting modules, and what is built on tracing as libraries build it: feature extraction."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from .._subject import subject as torch
from .._subject import submodule
from .test_symbolic_trace import made, same_values

fx = submodule("fx")
CALLBACKS = ["i // 2", "i % 2", "0", "i", "1 - i // 3"]


def split(lib: Any, name: str, rule: str, **options: Any) -> tuple[Any, Any]:
    passes = __import__(f"{lib.__name__}.fx.passes.split_module", fromlist=["split_module"])
    program = made(lib, name)
    gm = lib.fx.symbolic_trace(program)
    places = {n: i for i, n in enumerate(n for n in gm.graph.nodes if n.op not in ("placeholder", "get_attr"))}
    return passes.split_module(gm, program, lambda n: eval(rule, {"i": places[n]}), **options), gm


def text(gm: Any) -> Any:
    return gm.code, {name: child.code for name, child in gm.named_children() if hasattr(child, "code")}


@pytest.mark.parametrize("options", [{}, {"keep_original_order": True}, {"tuple_return": True, "partition_affix": "p"}])
@pytest.mark.parametrize("rule", CALLBACKS)
@pytest.mark.parametrize("name", ["MLinear", "MNested", "MConvNet", "f_out_of_order"])
def test_split(oracle: ModuleType, name: str, rule: str, options: dict[str, Any]) -> None:
    try:
        theirs, _ = split(oracle, name, rule, **options)
    except (RuntimeError, KeyError) as error:
        with pytest.raises(type(error), match=str(error)[:30] if isinstance(error, RuntimeError) else None):
            split(torch, name, rule, **options)
        return
    ours, whole = split(torch, name, rule, **options)
    assert text(ours) == text(theirs)
    x = torch.ones(3, 4)
    same_values(ours(x), whole(x))


class Paths(fx.Tracer):
    """Notes the module of every node, as feature extraction does."""

    def __init__(self) -> None:
        super().__init__(param_shapes_constant=True)
        self.current = ""
        self.paths: dict[Any, str] = {}

    def call_module(self, m: Any, forward: Any, args: Any, kwargs: Any) -> Any:
        before = self.current
        self.current = self.path_of_module(m)
        try:
            if self.is_leaf_module(m, self.current):
                return self.create_proxy("call_module", self.current, args, kwargs)
            return forward(*args, **kwargs)
        finally:
            self.current = before

    def create_proxy(self, kind: str, target: Any, args: Any, kwargs: Any, *more: Any, **named: Any) -> Any:
        proxy = super().create_proxy(kind, target, args, kwargs, *more, **named)
        self.paths[proxy.node] = self.current
        return proxy


def test_feature_extraction() -> None:
    model = made(torch, "MNested")
    tracer = Paths()
    graph = tracer.trace(model)
    wanted = {"blocks.0", "blocks.1"}
    last = {
        path.split(".fc")[0]: node for node, path in tracer.paths.items() if any(path.startswith(w) for w in wanted)
    }
    found = {w: next(n for p, n in last.items() if p.startswith(w)) for w in sorted(wanted)}
    output = graph.output_node()
    with graph.inserting_after(output):
        graph.output(found)
    graph.erase_node(output)
    gm = fx.GraphModule(model, graph, "Features")
    gm.graph.eliminate_dead_code()
    gm.recompile()
    x = torch.ones(3, 4)
    assert set(gm(x)) == wanted
    assert "table.a.norm" not in gm.code
