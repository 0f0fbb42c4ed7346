"""`torch._dynamo`: PyTorch's tracer of bytecode is not here. Its marks and settings are, and change nothing."""

from __future__ import annotations

from typing import Any

from . import config as config
from .backends.registry import list_backends, lookup_backend, register_backend
from .decorators import (
    allow_in_graph,
    assume_constant_result,
    disable,
    disable_nested_graph_breaks,
    disallow_in_graph,
    dont_skip_tracing,
    error_on_graph_break,
    forbid_in_graph,
    graph_break,
    is_dynamo_disable_recursive,
    mark_dynamic,
    mark_static,
    mark_static_address,
    maybe_mark_dynamic,
    nonstrict_trace,
    override_cudagraphs,
    patch_dynamo_config,
    refuse,
    run,
    set_stance,
    skip_frame,
    step_unsupported,
    substitute_in_graph,
)
from .eval_frame import OptimizedModule, is_dynamo_supported, is_inductor_supported

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "disable_nested_graph_breaks",
    "disallow_in_graph",
    "dont_skip_tracing",
    "error_on_graph_break",
    "explain",
    "export",
    "forbid_in_graph",
    "graph_break",
    "is_compiling",
    "is_dynamo_disable_recursive",
    "is_dynamo_supported",
    "is_inductor_supported",
    "list_backends",
    "lookup_backend",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "nonstrict_trace",
    "optimize",
    "optimize_assert",
    "override_cudagraphs",
    "patch_dynamo_config",
    "register_backend",
    "replay",
    "reset",
    "reset_code_caches",
    "run",
    "set_recursion_limit",
    "set_stance",
    "skip_frame",
    "step_unsupported",
    "substitute_in_graph",
]

explain, export, replay = refuse("explain"), refuse("export"), refuse("replay")


def is_compiling() -> bool:
    """False: nothing is compiled."""
    return False


def reset() -> None:
    """Forget what was compiled: nothing."""


def reset_code_caches() -> None:
    """Forget what was compiled: nothing."""


def set_recursion_limit(limit: int) -> None:
    """The tracer's limit, which is not here."""
    int(limit)


def optimize(backend: Any = "inductor", *, nopython: bool = False, dynamic: bool | None = None, **options: Any) -> Any:
    """A decorator: `torch.compile` with that backend."""
    from .eval_frame import compiled

    return lambda model: compiled(
        model, fullgraph=nopython, dynamic=dynamic, backend=backend, mode=None, options=None, disable=False
    )


def optimize_assert(backend: Any = "inductor", **options: Any) -> Any:
    """A decorator: `torch.compile(fullgraph=True)` with that backend."""
    return optimize(backend, nopython=True, **options)


def __getattr__(name: str) -> Any:
    if name == "utils":
        from importlib import import_module

        return import_module(".utils", __name__)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
