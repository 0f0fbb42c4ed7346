"""The same programs traced by this library and by PyTorch: text, nodes and results are the same."""

from __future__ import annotations

import copy
import inspect
import pickle
import sys
from types import ModuleType
from typing import Any

import pytest

from .._oracle import assert_same
from .._subject import subject as torch
from .._subject import submodule
from ._load import NAME, load, names

fx = submodule("fx")
FUNCTIONS = names("f_")
MODULES = names("M")
BAD = names("bad_")


def made(lib: Any, name: str) -> Any:
    """A program of a library: a function, or a module with the same values on both."""
    found = getattr(load(lib), name)
    if not name.startswith("M"):
        return found
    module = found().eval()
    with lib.no_grad():
        for i, p in enumerate([*module.parameters(), *module.buffers()]):
            if p.is_floating_point():
                p.copy_((lib.arange(p.numel(), dtype=lib.float32).reshape(p.shape) * 0.37 + i) % 1.0 - 0.4)
    return module


def pair(oracle: Any, name: str) -> tuple[Any, Any]:
    return fx.symbolic_trace(made(torch, name)), oracle.fx.symbolic_trace(made(oracle, name))


def described(gm: Any) -> list[tuple[Any, ...]]:
    """The nodes, without objects of either library."""
    return [
        (
            n.op,
            n.name,
            n.target if isinstance(n.target, str) else type(n)._pretty_print_target(n.target),
            repr(n.args).replace("mindtorch_v2.", "torch."),
            repr(n.kwargs).replace("mindtorch_v2.", "torch."),
            [u.name for u in n.users],
            [u.name for u in n.all_input_nodes],
        )
        for n in gm.graph.nodes
    ]


def same_text(ours: Any, theirs: Any) -> None:
    assert ours.code == theirs.code
    assert str(ours.graph) == str(theirs.graph)
    assert described(ours) == described(theirs)


def flat(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [v for x in value.values() for v in flat(x)]
    if isinstance(value, (tuple, list)):
        return [v for x in value for v in flat(x)]
    return [value]


def same_values(ours: Any, theirs: Any) -> None:
    left, right = flat(ours), flat(theirs)
    assert len(left) == len(right)
    for a, b in zip(left, right):
        if isinstance(b, torch.Tensor):
            assert a.dtype == b.dtype and torch.allclose(a.detach(), b.detach(), equal_nan=True)
        elif hasattr(b, "untyped_storage"):
            assert_same(a.detach(), b.detach(), rtol=1e-4, atol=1e-5)
        else:
            assert repr(a).replace("mindtorch_v2.", "torch.") == repr(b)


def inputs(lib: Any, name: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    x = lib.arange(12.0).reshape(3, 4) / 3 + 0.25
    if name == "f_varargs":
        return (x, x), {}
    return (x,), {"scale": 3} if name == "f_varkeywords" else {}


@pytest.mark.parametrize("name", FUNCTIONS + MODULES)
def test_same_text_and_results(oracle: ModuleType, name: str) -> None:
    ours, theirs = pair(oracle, name)
    same_text(ours, theirs)
    args, kwargs = inputs(torch, name)
    other_args, other_kwargs = inputs(oracle, name)
    same_values(ours(*args, **kwargs), theirs(*other_args, **other_kwargs))
    assert type(ours).__name__ == type(theirs).__name__
    assert repr(ours) == repr(theirs)
    assert str(ours) == str(theirs)


@pytest.mark.parametrize("name", FUNCTIONS + MODULES)
def test_result_is_the_programs(name: str) -> None:
    program = made(torch, name)
    args, kwargs = inputs(torch, name)
    same_values(fx.symbolic_trace(program)(*args, **kwargs), program(*args, **kwargs))


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_traced(oracle: ModuleType, name: str) -> None:
    with pytest.raises(Exception) as theirs:
        oracle.fx.symbolic_trace(made(oracle, name))
    with pytest.raises(Exception) as ours:
        fx.symbolic_trace(made(torch, name))
    assert type(ours.value).__name__ == type(theirs.value).__name__
    assert str(ours.value) == str(theirs.value)


# PyTorch cannot pickle a function that is annotated with types of `typing`.
@pytest.mark.parametrize("name", sorted({*FUNCTIONS[::3], *MODULES} - {"f_annotated_more"}))
def test_copies_and_pickles(oracle: ModuleType, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    ours, theirs = pair(oracle, name)
    same_text(copy.deepcopy(ours), copy.deepcopy(theirs))
    same_text(copy.copy(ours), copy.copy(theirs))
    monkeypatch.setitem(sys.modules, NAME, load(oracle))
    again = pickle.loads(pickle.dumps(theirs))
    monkeypatch.setitem(sys.modules, NAME, load(torch))
    mine = pickle.loads(pickle.dumps(ours))
    same_text(mine, again)
    assert list(mine.state_dict()) == list(again.state_dict())
    args, kwargs = inputs(torch, name)
    same_values(mine(*args, **kwargs), ours(*args, **kwargs))


@pytest.mark.parametrize("name", FUNCTIONS[1::3] + MODULES)
def test_traced_again_and_interpreted(oracle: ModuleType, name: str) -> None:
    ours, theirs = pair(oracle, name)
    same_text(fx.symbolic_trace(ours), oracle.fx.symbolic_trace(theirs))
    args, kwargs = inputs(torch, name)
    if not kwargs and len(args) == 1:
        same_values(fx.Interpreter(ours).run(*args), ours(*args))
    try:
        expected = oracle.fx.Transformer(theirs).transform()
    except (TypeError, IndentationError) as error:
        with pytest.raises(type(error), match=str(error)[:20]):
            fx.Transformer(ours).transform()
    else:
        same_text(fx.Transformer(ours).transform(), expected)


CONCRETE: list[tuple[str, dict[str, Any]]] = [
    ("def f(x, flag):\n    return x + 1 if flag else x - 1", {"flag": True}),
    ("def f(x, flag):\n    return x + 1 if flag else x - 1", {"flag": False}),
    ("def f(x, n=3):\n    for i in range(n):\n        x = x * i\n    return x", {"n": 2}),
    ("def f(x, mode):\n    return x.sum() if mode == 'sum' else x.mean()", {"mode": "sum"}),
    ("def f(x, y=None):\n    return x if y is None else x + y", {"y": None}),
    (
        "def f(x):\n    out = 0\n    for v in x.values():\n        out = out + v\n    return out",
        {"x": {"a": "PH", "b": "PH"}},
    ),
    ("def f(x, y):\n    return {'s': x[0] + y, 't': [x[1]['k']]}", {"x": ["PH", {"k": "PH"}]}),
    ("def f(x: int, y):\n    return x[0] * y", {"x": ("PH", 3)}),
]


def placed(lib_fx: Any, value: Any) -> Any:
    if isinstance(value, dict):
        return {k: placed(lib_fx, v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(placed(lib_fx, v) for v in value)
    return lib_fx.PH if value == "PH" else value


@pytest.mark.parametrize(("source", "concrete"), CONCRETE)
def test_concrete_args(oracle: ModuleType, source: str, concrete: dict[str, Any]) -> None:
    traced = []
    for lib in (torch, oracle):
        space: dict[str, Any] = {}
        exec(source, space)
        traced.append(lib.fx.symbolic_trace(space["f"], concrete_args=placed(lib.fx, concrete)))
    same_text(*traced)


def test_concrete_args_are_checked_when_run() -> None:
    def f(x: Any, flag: bool) -> Any:
        return x + 1 if flag else x

    traced = fx.symbolic_trace(f, concrete_args={"flag": True})
    assert traced(torch.ones(1), True).item() == 2
    with pytest.raises(AssertionError, match="flag has been specialized to have value True but got another value"):
        traced(torch.ones(1), False)


def test_structured_inputs() -> None:
    def f(x: Any) -> Any:
        return {"sum": x["a"] + x["b"][0], "list": [x["b"][1]]}

    ph = fx.PH
    traced = fx.symbolic_trace(f, concrete_args={"x": {"a": ph, "b": [ph, ph]}})
    given = {"a": torch.ones(2), "b": [torch.ones(2), torch.zeros(2)]}
    result = traced(given)
    assert result["sum"].tolist() == [2, 2] and result["list"][0].tolist() == [0, 0]
    assert fx.Interpreter(traced).run(given)["sum"].tolist() == [2, 2]


def test_module_calls_are_back_after_a_failure() -> None:
    call, attribute = torch.nn.Module.__call__, torch.nn.Module.__getattr__
    code = torch.nn.init.normal_.__code__
    with pytest.raises(fx.proxy.TraceError):
        fx.symbolic_trace(load(torch).bad_if)
    assert torch.nn.Module.__call__ is call and torch.nn.Module.__getattr__ is attribute
    if not torch.__name__ == "torch":
        assert torch.nn.init.normal_.__code__ is code


def test_code_of_traced_functions_is_shown_in_errors(capsys: pytest.CaptureFixture[str]) -> None:
    traced = fx.symbolic_trace(load(torch).f_unpack)
    with pytest.raises((ValueError, IndexError)):
        traced(torch.ones(2, 2))
    shown = capsys.readouterr().err
    assert "Call using an FX-traced Module" in shown or "unbind" in shown


@pytest.mark.parametrize("name", ["relu", "hardsigmoid", "dropout", "group_norm", "gaussian_nll_loss"])
def test_functions_of_nn_are_traced_as_one_call(oracle: Any, name: str) -> None:
    ours = fx.symbolic_trace(getattr(torch.nn.functional, name))
    theirs = oracle.fx.symbolic_trace(getattr(oracle.nn.functional, name))
    assert described(ours) == described(theirs)


def test_functions_of_nn_are_annotated_by_types() -> None:
    parameters = inspect.signature(torch.nn.functional.relu).parameters
    assert parameters["input"].annotation is torch.Tensor and parameters["inplace"].annotation is bool


def _wrapped(a: Any, b: Any) -> Any:
    return a + b


fx.wrap("_wrapped")


def _asserts(x: Any) -> Any:
    assert x.sum() > 0, "positive"
    return _wrapped(x, 3)


def test_rewritten_functions_see_wrapped_ones() -> None:
    graph = submodule("fx.experimental.rewriter").RewritingTracer().trace(_asserts)
    targets = [n.target for n in graph.nodes if n.op == "call_function"]
    assert _wrapped in targets and torch._assert in targets
