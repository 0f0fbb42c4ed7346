"""Graph modules that generate their code when somebody needs it."""

from __future__ import annotations

import importlib
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from .. import _oracle
from .._outcome import plain
from .._subject import subject

X = [0.25, -1.5]


# Annotations that are text would stand in the graph.
def _sine(x):  # type: ignore[no-untyped-def]
    return x.sin()


def _to_cosine(module: Any) -> None:
    for node in module.graph.nodes:
        if node.target == "sin":
            node.target = "cos"


def _lazy(library: Any) -> Any:
    return importlib.import_module(f"{library.__name__}.fx._lazy_graph_module")


def _calls(torch: Any, m: Any) -> Any:
    before = m._needs_recompile()
    value = m(torch.tensor(X)).tolist()
    _to_cosine(m)
    edited = m._needs_recompile(), m(torch.tensor(X)).tolist()
    noted = m.recompile(), m._needs_recompile()
    return before, value, edited, noted, m(torch.tensor(X)).tolist(), m._needs_recompile()


def _looks(torch: Any, m: Any) -> Any:
    answers = []
    for look in (lambda: m.code, lambda: str(m), lambda: m.print_readable(False), lambda: m.forward(torch.tensor(X))):
        m.recompile()
        look()
        answers.append(m._needs_recompile())
    m.recompile()
    m.real_recompile()
    m.real_recompile()
    return answers, m._needs_recompile()


def _kept_forward(torch: Any, m: Any) -> Any:
    kept = m.forward
    first = kept(torch.tensor(X)).tolist()
    generated = type(m).forward
    kept(torch.tensor(X))
    return first, type(m).forward is generated


def _retraced(torch: Any, m: Any) -> Any:
    again = torch.fx.symbolic_trace(m)
    made = importlib.import_module(f"{torch.__name__}.fx.experimental.proxy_tensor").make_fx(again)(torch.tensor(X))
    return m._needs_recompile(), again._needs_recompile(), made._needs_recompile(), made(torch.tensor(X)).tolist()


def _written(torch: Any, m: Any) -> Any:
    read = pickle.loads(pickle.dumps(m))
    _to_cosine(m)
    m.recompile()
    edited = pickle.loads(pickle.dumps(m))
    return type(read).__mro__[1].__name__, "sin" in read.code, "cos" in edited.code, edited(torch.tensor(X)).tolist()


def _packed(torch: Any, m: Any) -> Any:
    package = importlib.import_module(f"{torch.__name__}.package")
    file = io.BytesIO()
    with package.PackageExporter(file) as exporter:
        exporter.save_pickle("model", "model.pkl", m)
    file.seek(0)
    read = package.PackageImporter(file).load_pickle("model", "model.pkl")
    return type(read).__mro__[1].__name__, read(torch.tensor(X)).tolist()


def _classes(torch: Any, m: Any) -> Any:
    lazy = _lazy(torch)
    eager = lazy._make_graph_module(m, m.graph, class_name="Mine", graph_module_cls=torch.fx.GraphModule)
    with lazy._use_lazy_graph_module(False):
        plain_one = torch.fx.symbolic_trace(_sine)
    with lazy._force_skip_lazy_graph_module(), lazy._use_lazy_graph_module(True):
        skipped = torch.fx.symbolic_trace(_sine)
    made = lazy._LazyGraphModule.from_graphmodule(plain_one)
    lazy._LazyGraphModule.force_recompile(made)
    lazy._LazyGraphModule.force_recompile(plain_one)
    is_lazy = [isinstance(x, lazy._LazyGraphModule) for x in (eager, plain_one, skipped, made, m)]
    same = lazy._LazyGraphModule.from_graphmodule(m) is m
    return is_lazy, type(eager).__name__, type(m).__name__, same, made._needs_recompile()


def _hidden_from_dynamo(torch: Any, m: Any) -> Any:
    dynamo = importlib.import_module(f"{torch.__name__}._dynamo")
    inner = importlib.import_module(f"{torch.__name__}._dynamo.eval_frame").innermost_fn
    nested = dynamo.disable(dynamo.disable(_sine))
    return hasattr(inner(dynamo.disable(m.forward)), "__self__"), inner(nested) is _sine, inner(_sine) is _sine


USES = [_calls, _looks, _kept_forward, _retraced, _written, _packed, _classes, _hidden_from_dynamo]


def _run(library: Any, use: Callable[[Any, Any], Any]) -> Any:
    with _lazy(library)._use_lazy_graph_module(True):
        return plain(use(library, library.fx.symbolic_trace(_sine)))


@pytest.mark.parametrize("use", USES)
def test_what_a_lazy_module_does(use: Callable[[Any, Any], Any]) -> None:
    oracle = _oracle.load()
    expected = _run(oracle, use)
    got = _run(subject, use)
    assert _rounded(got) == _rounded(expected)


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(v) for v in value]
    return round(value, 6) if isinstance(value, float) else value
