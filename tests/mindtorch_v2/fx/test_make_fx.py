"""`make_fx`: the operators that a program runs, as PyTorch writes them down."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from .._subject import mindtorch_only, submodule
from .._subject import subject as torch
from ._load import load, names
from .test_symbolic_trace import same_values

proxy_tensor = submodule("fx.experimental.proxy_tensor")
FILE = "_operators_run.py"
PROGRAMS = names("g_", FILE)


def inputs(lib: Any) -> tuple[Any, Any]:
    return lib.arange(6.0).reshape(2, 3) - 2, lib.ones(2, 3) * 3


def traced(lib: Any, name: str, mode: str, **options: Any) -> Any:
    make_fx = __import__(f"{lib.__name__}.fx.experimental.proxy_tensor", fromlist=["make_fx"]).make_fx
    return make_fx(getattr(load(lib, FILE), name), tracing_mode=mode, **options)(*inputs(lib))


@pytest.mark.parametrize("name", PROGRAMS)
def test_operators(oracle: ModuleType, name: str) -> None:
    ours, theirs = traced(torch, name, "real"), traced(oracle, name, "real")
    assert ours.code == theirs.code
    same_values(ours(*inputs(torch)), theirs(*inputs(oracle)))


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n != "g_constant"])
def test_operators_of_fake_tensors(oracle: ModuleType, name: str) -> None:
    assert traced(torch, name, "fake").code == traced(oracle, name, "fake").code


@pytest.mark.parametrize("name", PROGRAMS)
def test_module_does_what_the_program_does(name: str) -> None:
    same_values(traced(torch, name, "real")(*inputs(torch)), getattr(load(torch, FILE), name)(*inputs(torch)))


@pytest.mark.parametrize("name", names("bad_", FILE))
def test_values_are_not_known(oracle: ModuleType, name: str) -> None:
    with pytest.raises(RuntimeError) as theirs:
        traced(oracle, name, "real")
    with pytest.raises(RuntimeError) as ours:
        traced(torch, name, "real")
    assert str(ours.value) == str(theirs.value)


@mindtorch_only
def test_values_of_fake_tensors_are_not_known() -> None:
    # PyTorch makes a symbol of it.
    with pytest.raises(RuntimeError, match="get value out of a tracing tensor"):
        traced(torch, "bad_value", "fake")


def test_constants_stay_real_with_fake_tensors(oracle: ModuleType) -> None:
    with pytest.raises(AssertionError, match="allow_non_fake_inputs"):
        traced(torch, "g_constant", "fake")
    ours = traced(torch, "g_constant", "fake", _allow_non_fake_inputs=True)
    assert ours.code == traced(oracle, "g_constant", "fake", _allow_non_fake_inputs=True).code


def test_modules(oracle: ModuleType) -> None:
    texts = []
    for lib in (torch, oracle):
        make_fx = __import__(f"{lib.__name__}.fx.experimental.proxy_tensor", fromlist=["make_fx"]).make_fx
        net = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.ReLU(), lib.nn.Linear(4, 1))
        gm = make_fx(net)(lib.ones(2, 3))
        texts.append((gm.code, list(gm.state_dict())))
        assert gm(lib.ones(2, 3)).shape == (2, 1)
    assert texts[0] == texts[1]


def test_decompositions(oracle: ModuleType) -> None:
    texts = []
    for lib in (torch, oracle):
        aten = lib.ops.aten

        def silu(x: Any) -> Any:
            return x * x.sigmoid()

        make_fx = __import__(f"{lib.__name__}.fx.experimental.proxy_tensor", fromlist=["make_fx"]).make_fx
        gm = make_fx(lambda x: lib.nn.functional.silu(x) + 1, {aten.silu.default: silu})(lib.ones(2))  # noqa: B023
        texts.append(gm.code)
    assert texts[0] == texts[1]


@mindtorch_only
@pytest.mark.parametrize(
    "call",
    [
        "torch.addmm(b, x, y.t())",
        "torch.nn.functional.silu(x)",
        "torch.nn.functional.softmax(x, 1)",
        "torch.nn.functional.log_softmax(x, 0)",
        "torch.nn.functional.layer_norm(x, (3,), y[0], y[1])",
        "torch.addcmul(x, x, y, value=2)",
        "1 - x",
        "torch.nn.functional.leaky_relu(x, 0.2)",
    ],
)
def test_own_decompositions_give_the_same(call: str) -> None:
    decomp = submodule("_decomp")
    x, y = inputs(torch)

    def f(x: Any, y: Any) -> Any:
        return eval(call, {"torch": torch, "x": x, "y": y, "b": torch.ones(2, 2)})

    table = decomp.core_aten_decompositions()
    gm = proxy_tensor.make_fx(f, decomposition_table=table)(x, y)
    assert not [n for n in gm.graph.nodes if n.target in table]
    assert torch.allclose(gm(x, y), f(x, y), atol=1e-6)


def test_decomposed_again() -> None:
    x = torch.ones(2, 3)
    gm = proxy_tensor.make_fx(lambda x: torch.nn.functional.silu(x) + 1)(x)
    new = submodule("fx").Graph()
    silu = torch.ops.aten.silu.default
    proxy_tensor.DecompositionInterpreter(gm, new, {silu: lambda x: x * x.sigmoid()}).run(x)
    again = submodule("fx").GraphModule(gm, new)
    assert silu not in {n.target for n in new.nodes} and torch.ops.aten.sigmoid.default in {n.target for n in new.nodes}
    assert torch.allclose(again(x), gm(x))


@mindtorch_only
def test_refused_by_name() -> None:
    with pytest.raises(NotImplementedError, match="symbolic"):
        proxy_tensor.make_fx(lambda x: x, tracing_mode="symbolic")
    with pytest.raises(NotImplementedError, match="pre_dispatch"):
        proxy_tensor.make_fx(lambda x: x, pre_dispatch=True)
    with pytest.raises(RuntimeError, match="pydot"):
        submodule("fx.passes.graph_drawer").FxGraphDrawer(None, "x")
    shapes = submodule("fx.experimental.symbolic_shapes")
    assert shapes.guard_or_false(1 > 0) and shapes.statically_known_true(True) and not shapes.free_symbols(3)
    env = shapes.ShapeEnv(allow_dynamic_output_shape_ops=False)
    assert env.settings.specialize_zero_one and not env.allow_dynamic_output_shape_ops
    with pytest.raises(NotImplementedError, match="ShapeEnv.create_unbacked_symint: there are no symbolic sizes here"):
        env.create_unbacked_symint()
    mode = submodule("_subclasses.fake_tensor").FakeTensorMode(shape_env=env)
    with mode:
        assert tuple(torch.ones(2, 3).t().shape) == (3, 2)
    with pytest.raises(NotImplementedError, match="sizes are numbers here"):
        mode.from_tensor(torch.ones(2))


def test_fake_tensors_through_a_graph() -> None:
    gm = submodule("fx").symbolic_trace(lambda x: torch.relu(x @ x.t()).sum(1).unsqueeze(0).expand(2, 4))
    prop = submodule("fx.passes.fake_tensor_prop").FakeTensorProp(gm)
    prop.propagate(torch.ones(4, 3))
    assert [tuple(n.meta["val"].shape) for n in gm.graph.nodes if "val" in n.meta][-1] == (2, 4)


def test_classes_of_operators() -> None:
    ops = submodule("_ops")
    assert isinstance(torch.ops.aten.add.Tensor, ops.OpOverload)
    assert isinstance(torch.ops.aten.add, ops.OpOverloadPacket)
    assert not isinstance(torch.ops.aten.add, ops.HigherOrderOperator)
