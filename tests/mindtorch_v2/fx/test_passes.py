"""Passes over graphs: folding, grouping, common subexpressions, managers and rewriting, as PyTorch's do."""

from __future__ import annotations

import importlib
import operator
from typing import Any

import pytest

from .._subject import subject
from .._subject import subject as torch


def _of(library: Any, name: str) -> Any:
    return importlib.import_module(f"{library.__name__}.fx.{name}")


def _lines(module: Any) -> list[str]:
    """The nodes of a graph, each as what it calls and what it takes."""
    return [
        f"{n.op} {getattr(n.target, '__name__', n.target)} {[a.name for a in n.all_input_nodes]}"
        for n in module.graph.nodes
    ]


# -- groups -----------------------------------------------------------------------------------------------------------
def _fork(a: Any, b: Any) -> Any:
    x = a + 1
    left = x.relu()
    right = x + b
    return left + right, right + 2


def _two_ways(a: Any, b: Any) -> Any:
    b0 = a + 1.0
    c0 = a + 1.5
    b1 = b0 + c0.relu()
    return b1, b0.relu() + c0, c0 + 1.2


def _parts_of_results(a: Any, b: Any) -> Any:
    first, second = a.split(1)
    return (first + b) + (second + b)


def _grouped(library: Any, fn: Any, single: bool) -> Any:
    support = _of(library, "passes.operator_support").create_op_support(
        lambda modules, node: node.op == "call_function" and node.target in (operator.add, operator.getitem)
    )
    traced = library.fx.symbolic_trace(fn)
    partitioner = _of(library, "passes.infra.partitioner").CapabilityBasedPartitioner(traced, support, single)
    groups = partitioner.propose_partitions()
    names = [[n.name for n in group.nodes] for group in groups]
    fused = partitioner.fuse_partitions(groups)
    a, b = library.tensor([1.0, -2.0]), library.tensor([3.0, 4.0])
    values = [t.tolist() for t in library.utils._pytree.tree_leaves(fused(a, b))]
    assert values == [t.tolist() for t in library.utils._pytree.tree_leaves(fn(a, b))]
    return names, sorted(_lines(fused)), values


@pytest.mark.oracle
@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("fn", [_fork, _two_ways, _parts_of_results])
def test_groups_of_supported_nodes(fn: Any, single: bool, oracle: Any) -> None:
    ours, theirs = _grouped(subject, fn, single), _grouped(oracle, fn, single)
    assert [set(names) for names in ours[0]] == [set(names) for names in theirs[0]]
    assert ours[2] == theirs[2]


def test_a_group_around_another_node_is_refused() -> None:
    traced = subject.fx.symbolic_trace(lambda a: (a + 1).relu() + (a + 1))
    nodes = {n.name: n for n in traced.graph.nodes}
    fuse = _of(subject, "passes.utils.fuser_utils").fuse_by_partitions
    with pytest.raises(AssertionError):
        fuse(traced, [dict.fromkeys([nodes["add"], nodes["add_2"]])])


@pytest.mark.oracle
def test_support_by_a_table(oracle: Any) -> None:
    def said(library: Any) -> list[bool]:
        made = _of(library, "passes.operator_support")
        traced = library.fx.symbolic_trace(library.nn.Sequential(library.nn.Linear(2, 2), library.nn.ReLU()))
        _of(library, "passes.shape_prop").ShapeProp(traced).propagate(library.ones(1, 2))
        table: dict[str, Any] = {
            "torch.nn.modules.linear.Linear": (((library.float32,),), {}),
            "torch.nn.modules.activation.ReLU": (((library.float64,),), {}),
        }
        modules = dict(traced.named_modules())
        first = made.OperatorSupport(table)
        second = made.OpSupports.decline_if_node_in_names({"_0"})
        third = made.OpSupports.decline_if_input_dtype(library.float32)
        every = (first, second, third, made.chain(first, second), made.any_chain(first, second))
        return [
            support.is_node_supported(modules, n) for n in traced.graph.nodes for support in every if n.op != "output"
        ]

    assert said(subject) == said(oracle)


# -- common subexpressions --------------------------------------------------------------------------------------------
@pytest.mark.oracle
def test_common_subexpressions(oracle: Any) -> None:
    def run(library: Any) -> Any:
        made = _of(library, "passes.dialect.common.cse_pass")

        def fn(x: Any) -> Any:
            return x.sum(0) + x.sum(0) + x.sum((0, 1)) + library.rand_like(x) * library.rand_like(x) + x.sum([0])

        traced = _of(library, "experimental.proxy_tensor").make_fx(fn)(library.ones(2, 2))
        result = made.CSEPass(banned_ops=made.get_CSE_banned_ops())(traced)
        again = made.CSEPass(banned_ops=made.get_CSE_banned_ops())(result.graph_module)
        return result.modified, again.modified, len(result.graph_module.graph.nodes)

    assert run(subject) == run(oracle)


# -- folding ----------------------------------------------------------------------------------------------------------
@pytest.mark.oracle
@pytest.mark.parametrize("both", [True, False])
def test_what_depends_on_no_input_is_computed_once(both: bool, oracle: Any) -> None:
    def run(library: Any) -> Any:
        class Model(library.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.weight = library.nn.Parameter(library.tensor([[1.0, 2.0]]))

            def forward(self, x: Any) -> Any:
                folded = (self.weight + 1) * 2
                return x @ folded.mT + (self.weight.sum() if both else 0) + self.weight.mean() * x.sum()

        model = Model()
        made = _of(library, "experimental.const_fold").split_const_subgraphs(model)
        given = library.tensor([[3.0, 4.0]])
        value = made(given).tolist()
        assert value == model(given).tolist() and made.has_folding_been_run
        kinds = sorted(f"{n.op} {getattr(n.target, '__name__', n.target)}" for n in made.graph.nodes)
        return value, kinds, sorted(n.op for n in made.const_subgraph_module.graph.nodes)

    assert run(subject) == run(oracle)


def test_nothing_to_fold() -> None:
    made = _of(subject, "experimental.const_fold").split_const_subgraphs(subject.nn.Sequential(subject.nn.ReLU()))
    assert made.const_subgraph_module is None and made(subject.tensor([-1.0])).tolist() == [0.0]


# -- managers ---------------------------------------------------------------------------------------------------------
@pytest.mark.oracle
def test_passes_run_in_an_order_that_constraints_allow(oracle: Any) -> None:
    def run(library: Any) -> Any:
        made = _of(library, "passes.infra.pass_manager")

        def change(old: Any, new: Any) -> Any:
            def apply(gm: Any) -> Any:
                for node in gm.graph.nodes:
                    if node.target is old:
                        node.target = new

            return made.pass_result_wrapper(apply)

        first, second = change(operator.add, operator.mul), change(operator.mul, operator.sub)
        manager = made.PassManager([second, first], [made.this_before_that_pass_constraint(first, second)])
        with pytest.raises(RuntimeError) as broken:
            manager.validate_constraints()
        result = manager(library.fx.symbolic_trace(lambda x: x + 2))
        with pytest.raises(TypeError) as wrong:
            manager.add_checks(lambda a, b: None)
        with pytest.raises(Exception, match="after the following passes") as failed:
            made.PassManager([first, lambda gm: 3])(library.fx.symbolic_trace(lambda x: x))
        text = str(broken.value).partition("Expected")[0]
        return result.graph_module(library.tensor(5)).item(), result.modified, text, str(wrong.value), str(failed.value)

    assert run(subject) == run(oracle)


# -- rewriting --------------------------------------------------------------------------------------------------------
class _Checked(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        assert x.sum() > 0, "must be positive"
        y: int = x * 2
        return y


def test_assertions_are_traced_after_rewriting() -> None:
    graph = _of(torch, "experimental.rewriter").RewritingTracer().trace(_Checked())
    module = torch.fx.GraphModule(torch.nn.Module(), graph)
    assert "_assert" in [getattr(n.target, "__name__", "") for n in graph.nodes]
    assert module(torch.tensor([2.0])).tolist() == [4.0]
    with pytest.raises(AssertionError, match="must be positive"):
        module(torch.tensor([-1.0]))


# -- opaque types -----------------------------------------------------------------------------------------------------
@pytest.mark.oracle
def test_the_register_of_opaque_types(oracle: Any) -> None:
    def run(library: Any) -> list[Any]:
        made = importlib.import_module(f"{library.__name__}._library.opaque_object")
        base = importlib.import_module(f"{library.__name__}._opaque_base").OpaqueBase

        class Kept(base):
            pass

        class Other:
            pass

        said: list[Any] = []
        for call in (
            lambda: made.register_opaque_type(Other, typ="reference"),
            lambda: made.register_opaque_type(Kept, typ="neither"),
            lambda: made.register_opaque_type(Kept, typ="value"),
            lambda: made.register_opaque_type(Kept, typ="reference"),
            lambda: made.register_opaque_type(Kept, typ="reference"),
            lambda: made.register_opaque_type(library.Tensor, typ="reference"),
            lambda: (made.is_opaque_type(Kept), made.is_opaque_type(Other), made.is_opaque_value(Kept())),
            lambda: (made.is_opaque_value_type(Kept), made.is_opaque_reference_type(Kept), made.should_hoist(Kept)),
        ):
            try:
                said.append(call())
            except Exception as error:
                said.append(f"{type(error).__name__}: {error}".replace("mindtorch_v2", "torch"))
        return said

    assert run(subject) == run(oracle)
