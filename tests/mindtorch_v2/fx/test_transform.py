"""Changing graphs: by hand, by interpreters and transformers, by patterns. Texts are compared with PyTorch's."""

from __future__ import annotations

import operator
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from .._oracle import from_oracle
from .._subject import subject as torch
from .._subject import submodule
from ._load import load
from .test_symbolic_trace import described, made, same_text, same_values

fx = submodule("fx")


def both(oracle: Any, do: Any) -> tuple[Any, Any]:
    """What `do(lib)` gives on both libraries."""
    return do(torch), do(oracle)


def net(lib: Any) -> Any:
    return lib.fx.symbolic_trace(made(lib, "MLinear"))


# -- by hand ----------------------------------------------------------------------------------------------------------
def built(lib: Any) -> Any:
    g = lib.fx.Graph()
    x = g.placeholder("x", type_expr=lib.Tensor)
    y = g.placeholder("y", default_value=2)
    a = g.call_function(lib.add, (x, y), {"alpha": 2})
    b = g.call_method("relu", (a,))
    c = g.call_module("sub.linear", (b,))
    w = g.get_attr("sub.linear.weight")
    d = g.call_function(operator.matmul, (c, w))
    with g.inserting_before(b):
        e = g.call_function(lib.neg, (a,), name="negated")
    with g.inserting_after(c):
        g.call_function(lib.sin, (c,))
    b.args = (e,)
    g.output({"d": d, "l": [a, (b, slice(None, c, None))]})
    g.lint()
    return g


def test_graph_made_by_hand(oracle: ModuleType) -> None:
    ours, theirs = both(oracle, built)
    assert str(ours) == str(theirs)
    assert ours.python_code("self").src == theirs.python_code("self").src
    assert [n.format_node() for n in ours.nodes] == [n.format_node() for n in theirs.nodes]
    assert [n._sort_key for n in ours.nodes] == [n._sort_key for n in theirs.nodes]
    assert [n.name for n in sorted(ours.nodes, reverse=True)] == [n.name for n in sorted(theirs.nodes, reverse=True)]
    for graph, lib in ((ours, torch), (theirs, oracle)):
        root = lib.nn.Module()
        root.sub = lib.nn.Module()
        root.sub.linear = lib.nn.Linear(3, 3)
        gm = lib.fx.GraphModule(root, graph, "Mine")
        assert list(gm.state_dict()) == ["sub.linear.weight", "sub.linear.bias"]
        assert type(gm).__name__ == "Mine"
        by_dict = lib.fx.GraphModule(
            {"sub.linear": lib.nn.Linear(3, 3), "sub.linear.weight": lib.ones(3, 3)}, lib.fx.Graph()
        )
        assert list(by_dict.state_dict()) == []


def edited(lib: Any) -> list[Any]:
    gm = net(lib)
    g = gm.graph
    out: list[Any] = []
    nodes = {n.name: n for n in g.nodes}
    linear, relu = nodes["linear"], nodes["relu"]
    with g.inserting_after(linear):
        new = g.call_function(lib.tanh, (linear,))
    out.append([n.name for n in linear.replace_all_uses_with(new, lambda user: user is not new)])
    relu.insert_arg(1, 3)
    relu.update_arg(1, 4)
    relu.update_kwarg("k", [new, {"a": new}])
    out.append(relu.format_node())
    relu.args, relu.kwargs = (new,), {}
    nodes["x"].append(nodes["param"])
    new.name = "renamed"
    new._rename("again")
    out.append([n.name for n in g.find_nodes(op="call_function", target=lib.tanh)])
    out.append([n.name for n in g.find_nodes(op="get_attr")])
    out.append(g.output_node().name)
    last = g.output_node()
    dead = g.call_method("exp", (new,))
    last.prepend(dead)
    out.append(str(g))
    out.append(g.eliminate_dead_code())
    out.append(g.eliminate_dead_code())
    gm.recompile()
    out.append(gm.code)
    out.append(described(gm))
    return out


def test_edits(oracle: ModuleType) -> None:
    ours, theirs = both(oracle, edited)
    assert ours == theirs


def failures(lib: Any) -> list[Any]:
    def erased_in_use(gm: Any) -> None:
        gm.graph.erase_node(next(iter(gm.graph.nodes)))

    def foreign(gm: Any) -> None:
        other = lib.fx.Graph()
        node = other.placeholder("z")
        gm.graph.output_node().args = (node,)
        gm.graph.lint()

    def wrong_order(gm: Any) -> None:
        last = gm.graph.output_node()
        next(iter(gm.graph.nodes)).prepend(last)
        gm.graph.lint()

    def missing_target(gm: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gm.graph.get_attr("nowhere")
        gm.graph.lint()

    def not_a_module(gm: Any) -> None:
        gm.graph.create_node("call_module", "param")
        gm.graph.lint()

    def mutated(gm: Any) -> None:
        node = gm.graph.call_function(lib.cat, ([gm.graph.output_node()],))
        node.args[0].append(1)

    def mutated_dict(gm: Any) -> None:
        gm.graph.output_node().kwargs["a"] = 1

    def no_function(gm: Any) -> None:
        gm.graph.call_function("add")

    def unknown(gm: Any) -> None:
        gm.graph.create_node("call", "x")

    def other_graph(gm: Any) -> None:
        gm.graph.inserting_before(lib.fx.Graph().placeholder("q"))

    def bad_root(gm: Any) -> None:
        lib.fx.GraphModule({}, gm.graph)

    def odd_root(gm: Any) -> None:
        lib.fx.GraphModule(3, gm.graph)

    def no_graph(gm: Any) -> None:
        gm.graph = 3

    def missing_input(gm: Any) -> None:
        lib.fx.Interpreter(gm).run()

    def bad_pattern(gm: Any) -> None:
        lib.fx.passes.utils.matcher_utils.SubgraphMatcher(lib.fx.Graph())

    def wrap_in_function(gm: Any) -> None:
        lib.fx.wrap("x")

    def wrap_a_number(gm: Any) -> None:
        lib.fx.wrap(3)

    found = []
    for name, fn in list(locals().items()):
        if callable(fn) and name not in ("lib",):
            try:
                fn(net(lib))
            except Exception as error:
                found.append((name, type(error).__name__, str(error)))
            else:
                found.append((name, None, None))
    return found


def test_wrong_edits(oracle: ModuleType) -> None:
    import torch.fx.passes.utils.matcher_utils  # noqa: F401

    submodule("fx.passes.utils.matcher_utils")
    ours, theirs = both(oracle, failures)
    assert len(ours) > 15
    for left, right in zip(ours, theirs):
        assert left == right


def submodules(lib: Any) -> list[Any]:
    gm = lib.fx.symbolic_trace(made(lib, "MNested"))
    out: list[Any] = [
        gm.add_submodule("extra.deep.act", lib.nn.ReLU()),
        gm.add_submodule("blocks.0.fc.weight.no", lib.nn.ReLU()),
        gm.delete_submodule("nowhere"),
        gm.delete_submodule("blocks.0.fc.weight"),
        [n for n, _ in gm.named_modules()],
    ]
    gm.delete_all_unused_submodules()
    out.append([n for n, _ in gm.named_modules()])
    out.append(gm.delete_submodule("blocks.0"))
    return out


def test_submodules(oracle: ModuleType) -> None:
    ours, theirs = both(oracle, submodules)
    assert ours == theirs


def test_code_transformers(oracle: ModuleType) -> None:
    texts = []
    for lib in (torch, oracle):
        gm = net(lib)
        with gm.graph.on_generate_code(lambda before: lambda body: ["first = 1\n", *body]):
            gm.recompile()
            texts.append(gm.code)
        gm.recompile()
        texts.append(gm.code)
        gm.graph.set_codegen(lib.fx.graph._BoxedCodeGen())
        gm.recompile()
        texts.append(gm.code)
        texts.append(gm.print_readable(print_output=False))
        texts.append(gm.print_readable(print_output=False, colored=True, expanded_def=True))
    assert texts[:5] == texts[5:]


def hooks(lib: Any) -> list[Any]:
    gm = net(lib)
    seen: list[Any] = []
    gm._register_create_node_hook(lambda n: seen.append(("create", n.name)))
    gm._register_erase_node_hook(lambda n: seen.append(("erase", n.name)))
    with gm._set_replace_hook(lambda old, new, user: seen.append((old.name, new, user.name))):
        nodes = {n.name: n for n in gm.graph.nodes}
        with gm.graph.inserting_after(nodes["relu"]):
            new = gm.graph.call_method("abs", (nodes["linear"],))
        nodes["relu"].replace_all_uses_with(new)
        gm.graph.erase_node(nodes["relu"])
        new.name = "magnitude"
    return seen


def test_hooks(oracle: ModuleType) -> None:
    ours, theirs = both(oracle, hooks)
    assert ours == theirs


# -- interpreters -----------------------------------------------------------------------------------------------------
def test_interpreter_subclass() -> None:
    seen = []

    class Doubling(fx.Interpreter):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            seen.append(target)
            return super().call_function(torch.sub if target is operator.add else target, args, kwargs)

        def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
            seen.append(target)
            return super().call_method(target, args, kwargs)

    def f(x: Any) -> Any:
        return (x + 1).relu() * 2

    assert Doubling(fx.symbolic_trace(f)).run(torch.tensor([3.0])).item() == 4.0
    assert seen == [operator.add, "relu", operator.mul]


def test_interpreter_keeps_what_it_is_told_to() -> None:
    gm = fx.symbolic_trace(load(torch).f_methods)
    x = torch.ones(3, 4)
    keeping = fx.Interpreter(gm, garbage_collect_values=False)
    keeping.run(x)
    assert len(keeping.env) == len(gm.graph.nodes)
    dropping = fx.Interpreter(gm)
    dropping.run(x)
    assert len(dropping.env) == 1
    given = [x]
    assert dropping.boxed_run(given).shape == (1, 3) and given == []


def test_interpreter_errors_name_the_node(oracle: ModuleType) -> None:
    texts = []
    for lib in (torch, oracle):
        gm = lib.fx.symbolic_trace(load(lib).f_unpack)
        with pytest.raises(IndexError) as raised:
            lib.fx.Interpreter(gm).run(lib.ones(2, 2))
        texts.append(str(raised.value).split("\n\n", 1)[1])
    assert texts[0] == texts[1]


def transformed(lib: Any) -> Any:
    class Swap(lib.fx.Transformer):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            if target is operator.add:
                return lib.mul(args[0], other=args[1]) + lib.nn.functional.relu(args[0])
            return super().call_function(target, args, kwargs)

        def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
            return args[0].tanh(*args[1:], **kwargs) if target == "relu" else super().call_method(target, args, kwargs)

        def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
            return super().call_module(target, args, kwargs) / 2

    return Swap(net(lib)).transform()


def test_transformer_subclass(oracle: ModuleType) -> None:
    ours, theirs = both(oracle, transformed)
    same_text(ours, theirs)
    x = oracle.arange(12.0).reshape(3, 4)
    same_values(ours(from_oracle(x)), theirs(x))


def test_proxies_made_by_hand(oracle: ModuleType) -> None:
    texts = []
    for lib in (torch, oracle):
        g = lib.fx.Graph()
        x = lib.fx.Proxy(g.placeholder("x"))
        y = lib.nn.functional.relu(x + 1) * lib.sigmoid(x).sum(1)
        y = lib.nn.functional.dropout(y, 0.3)
        g.output(y.node)
        texts.append(str(g))
    assert texts[0] == texts[1]


# -- patterns ---------------------------------------------------------------------------------------------------------
PATTERNS: list[tuple[str, str, str]] = [
    (
        "lambda x, w1, w2: torch.stack([torch.cat([w1, w2]).sum(), torch.cat([w1, w2]).sum()]) + x.max()",
        "lambda a, b: torch.cat([a, b]).sum()",
        "lambda a, b: torch.stack([a, b])",
    ),
    ("lambda x: torch.relu(x + 1) * 2 + torch.relu(x + 1)", "lambda y: torch.relu(y + 1)", "lambda y: torch.tanh(y)"),
    ("lambda x: x.relu().sum().relu()", "lambda y: y.relu()", "lambda y: y.tanh() + 1"),
    ("lambda x: (x.sin() + x.cos(), x.sin())", "lambda y: (y.sin(), y.cos())", "lambda y: (y.exp(), y.log())"),
    (
        "lambda x, y: torch.add(torch.mul(x, y), y)",
        "lambda a, b, c: torch.add(torch.mul(a, b), c)",
        "lambda a, b, c: torch.addcmul(c, a, b)",
    ),
    ("lambda x: torch.sigmoid(torch.sigmoid(x))", "lambda x: torch.sigmoid(x)", "lambda x: torch.exp(x)"),
    ("lambda x: x + 1 + 2 + 3", "lambda x: x + 2", "lambda x: x - 2"),
    (
        "lambda x: torch.sum(x, dim=1) + torch.sum(x, 1)",
        "lambda x: torch.sum(x, dim=1)",
        "lambda x: torch.mean(x, dim=1)",
    ),
]


def functions(lib: Any, sources: tuple[str, ...]) -> list[Any]:
    return [eval(source, {"torch": lib}) for source in sources]


@pytest.mark.parametrize("sources", PATTERNS)
def test_patterns(oracle: ModuleType, sources: tuple[str, str, str]) -> None:
    results = []
    for lib in (torch, oracle):
        program, pattern, replacement = functions(lib, sources)
        gm = lib.fx.symbolic_trace(program)
        found = lib.fx.replace_pattern(gm, pattern, replacement)
        gm.graph.lint()
        results.append(
            (
                gm.code,
                str(gm.graph),
                [(m.anchor.name, {k.name: getattr(v, "name", v) for k, v in m.nodes_map.items()}) for m in found],
            )
        )
    assert results[0] == results[1]


def test_patterns_with_filters(oracle: ModuleType) -> None:
    results = []
    for lib in (torch, oracle):
        rewriter = lib.fx.subgraph_rewriter

        def literal(match: Any, graph: Any, pattern: Any) -> bool:
            return all(getattr(n, "name", "") != "add_1" for n in match.nodes_map.values())

        gm = lib.fx.symbolic_trace(lambda x: (x + 1).relu() + (x + 2).relu())
        found = rewriter.replace_pattern_with_filters(
            gm, lambda x: (x + 5).relu(), lambda x: x.exp(), [literal], ignore_literals=True
        )
        results.append((gm.code, [[n.name for n in r.replacements] for r in found]))
    assert results[0] == results[1]


class Bigger:
    """A module as replacement brings its own parameters."""

    @staticmethod
    def made(lib: Any) -> Any:
        class Replacement(lib.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.extra = lib.nn.Linear(4, 4)

            def forward(self, x: Any) -> Any:
                return self.extra(x)

        return lib.fx.symbolic_trace(Replacement())


def test_module_as_replacement(oracle: ModuleType) -> None:
    results = []
    for lib in (torch, oracle):
        gm = lib.fx.symbolic_trace(lambda x: (x + 1).relu())
        lib.fx.replace_pattern(gm, lambda x: x.relu(), Bigger.made(lib))
        results.append((gm.code, list(gm.state_dict()), gm(lib.ones(2, 4)).shape == (2, 4)))
    assert results[0] == results[1]


# -- files, arguments, shapes -----------------------------------------------------------------------------------------
def test_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gm = net(torch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gm.to_folder(tmp_path / "written_module", "Written")
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        import written_module  # type: ignore[import-not-found]

        again = written_module.Written()
        x = torch.ones(3, 4)
        same_values(again(x), gm(x))
    finally:
        for name in [n for n in sys.modules if n.startswith("written_module")]:
            del sys.modules[name]


def normalized(lib: Any) -> list[Any]:
    import importlib

    schemas = importlib.import_module(f"{lib.__name__}.fx.operator_schemas")
    gm = lib.fx.symbolic_trace(made(lib, "MConvNet"))
    out: list[Any] = []
    for only in (False, True):
        for n in gm.graph.nodes:
            found = n.normalized_arguments(gm, normalize_to_only_use_kwargs=only)
            out.append(repr(found))
        out.append(repr(schemas.normalize_function(lib.relu, (1,), normalize_to_only_use_kwargs=only)))
        out.append(repr(schemas.normalize_function(lib.nn.functional.relu, (1,), {}, None, None, only)))
    out.append(schemas.create_type_hint([int, bool]))
    out.append(schemas.create_type_hint((int, str)))
    out.append(schemas.type_matches(int, bool))
    return out


def test_normalized_arguments(oracle: ModuleType) -> None:
    ours, theirs = both(oracle, normalized)
    assert ours == theirs


def test_shapes(oracle: ModuleType) -> None:
    notes = []
    for lib in (torch, oracle):
        prop: Any = __import__(f"{lib.__name__}.fx.passes.shape_prop", fromlist=["ShapeProp"])
        gm = lib.fx.symbolic_trace(made(lib, "MConvNet"))
        prop.ShapeProp(gm).propagate(lib.ones(3, 4))
        notes.append([repr(n.meta.get("tensor_meta")).replace("mindtorch_v2.", "torch.") for n in gm.graph.nodes])
        notes.append(gm.print_readable(print_output=False))
        fakes: Any = __import__(f"{lib.__name__}._subclasses.fake_tensor", fromlist=["FakeTensorMode"])
        gm = lib.fx.symbolic_trace(made(lib, "MConvNet"))
        prop.ShapeProp(gm, fakes.FakeTensorMode()).propagate(lib.ones(3, 4))
        notes.append([repr(n.meta.get("tensor_meta")).replace("mindtorch_v2.", "torch.") for n in gm.graph.nodes])
    assert notes[:3] == notes[3:]


def test_leaf_choice(oracle: ModuleType) -> None:
    texts = []
    for lib in (torch, oracle):

        class Inner(lib.fx.Tracer):
            proxy_buffer_attributes = True

            def is_leaf_module(self, m: Any, name: str) -> bool:
                return type(m).__name__ == "Block" and name.endswith("0")

        tracer = Inner()
        graph = tracer.trace(made(lib, "MNested"))
        texts.append(str(graph))
        texts.append([str(n.meta.get("nn_module_stack", {}).keys()) for n in graph.nodes])
        assert tracer.root.training is False
    assert texts[:2] == texts[2:]


def sized(lib: Any) -> str:
    class Sized(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.param = lib.nn.Parameter(lib.ones(3, 2))

        def forward(self, x: Any) -> Any:
            assert self.param.shape[0] == 3 and self.param.dim() == 2 and self.param.numel() == 6
            return x + self.param if self.param.size()[1] == 2 else x

    return str(lib.fx.Tracer(param_shapes_constant=True).trace(Sized()))


def test_sizes_of_parameters_are_known(oracle: ModuleType) -> None:
    ours, theirs = both(oracle, sized)
    assert ours == theirs
