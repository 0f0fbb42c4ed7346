"""Marks and contexts that programs put around code for PyTorch's tracer, which is not here.

Invariant: a mark returns what it was given; what asks for a trace raises.
"""

from __future__ import annotations

import functools
from contextlib import ContextDecorator
from dataclasses import dataclass
from typing import Any, NoReturn

from .._serialization.allowed import KNOWN


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None, wrapping: bool = True) -> Any:
    """A function that the tracer leaves alone; used bare or with arguments."""
    if fn is None:
        return lambda given: disable(given, recursive, reason=reason, wrapping=wrapping)
    if not callable(fn):
        raise AssertionError(f"A callable function is expected, but {type(fn)} is provided.")
    if isinstance(fn, type) or not wrapping or not hasattr(fn, "__code__"):
        return fn

    @functools.wraps(fn)
    def _fn(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    setattr(_fn, "_torchdynamo_disable", True)
    setattr(_fn, "_torchdynamo_orig_callable", fn)
    # `functools.wraps` of somebody else copies the attribute above, but has another id.
    setattr(_fn, "_torchdynamo_wrapper_id", id(_fn))
    setattr(_fn, "_torchdynamo_disable_recursive", recursive)
    return _fn


def is_dynamo_disable_recursive(method: Any) -> bool | None:
    found: bool | None = getattr(method, "_torchdynamo_disable_recursive", None)
    return found


def run(fn: Any = None) -> Any:
    """Run without compiling anything new: as everything does here."""
    return fn if fn is not None else (lambda given: given)


def _all(title: str, fn: Any) -> Any:
    if isinstance(fn, (list, tuple)):
        return [_all(title, each) for each in fn]
    if not callable(fn):
        raise AssertionError(f"{title} expects a callable")
    return fn


def allow_in_graph(fn: Any) -> Any:
    """A function that the tracer would call without looking inside."""
    return _all("allow_in_graph", fn)


def disallow_in_graph(fn: Any) -> Any:
    return _all("disallow_in_graph", fn)


def forbid_in_graph(fn: Any) -> Any:
    if isinstance(fn, (list, tuple)):
        return [forbid_in_graph(each) for each in fn]
    if not callable(fn):
        raise AssertionError("forbid_in_graph applies only to callables")
    setattr(fn, "_dynamo_forbidden", True)
    return fn


def nonstrict_trace(traceable_fn: Any) -> Any:
    if not callable(traceable_fn):
        raise AssertionError("nonstrict_trace expects a callable")
    return traceable_fn


def assume_constant_result(fn: Any) -> Any:
    """A function whose result the tracer would compute once."""
    setattr(fn, "_dynamo_marked_constant", True)
    return fn


def substitute_in_graph(
    original_fn: Any, *, can_constant_fold_through: bool = False, skip_signature_check: bool = False, **options: Any
) -> Any:
    """A mark for the function that the tracer would look into in place of `original_fn`."""
    return lambda traceable_fn: traceable_fn


def disable_nested_graph_breaks(fn: Any = None) -> Any:
    return fn if fn is not None else (lambda given: given)


def dont_skip_tracing(fn: Any = None) -> Any:
    return fn if fn is not None else (lambda given: given)


def graph_break(msg: str = "") -> None:
    """Where a trace would end: nothing."""


skip_frame = step_unsupported = graph_break


class _Nothing(ContextDecorator):
    """A context, and decorator, of the tracer."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None


def error_on_graph_break(error_on_graph_break: bool) -> _Nothing:
    return _Nothing()


def patch_dynamo_config(arg1: Any = None, arg2: Any = None, **kwargs: Any) -> Any:
    """`torch._dynamo.config.patch`."""
    from . import config

    settings: Any = config
    return settings.patch(arg1, arg2, **kwargs)


def override_cudagraphs(fwd: bool | None = None, bwd: bool | None = None) -> _Nothing:
    return _Nothing()


class set_stance(ContextDecorator):
    """How compiled functions run; here eagerly, whatever is chosen. A function, and a context for a while."""

    def __init__(
        self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None
    ) -> None:
        if force_backend is not None and stance != "default":
            raise RuntimeError("non-default stance cannot have force_backend set")
        self.stance = stance

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None


# -- marks on tensors -----------------------------------------------------------------------------------------------
def _dims(t: Any, index: Any) -> list[int]:
    return [int(index)] if isinstance(index, int) else [int(i) for i in index]


def mark_dynamic(
    t: Any,
    index: Any,
    *,
    hint_override: int | None = None,
    min: int | None = None,
    max: int | None = None,
    specialize_on: Any = None,
) -> None:
    """Sizes that change from call to call: remembered on the tensor, for who asks."""
    if not hasattr(t, "_dynamo_dynamic_indices"):
        t._dynamo_dynamic_indices = set()
    t._dynamo_dynamic_indices.update(_dims(t, index))


def maybe_mark_dynamic(t: Any, index: Any) -> None:
    if not hasattr(t, "_dynamo_weak_dynamic_indices"):
        t._dynamo_weak_dynamic_indices = set()
    t._dynamo_weak_dynamic_indices.update(_dims(t, index))


def mark_static(t: Any, index: Any = None) -> None:
    """Sizes that never change; of a module's class, its attributes."""
    if isinstance(t, type):
        setattr(t, "_dynamo_marked_static", True)
        return
    if not hasattr(t, "_dynamo_static_indices"):
        t._dynamo_static_indices = set()
    t._dynamo_static_indices.update(range(t.dim()) if index is None else _dims(t, index))


def mark_static_address(t: Any, guard: bool = False) -> None:
    """A tensor whose memory stays where it is."""
    from .._tensor_base import TensorBase

    if not isinstance(t, TensorBase):
        raise TypeError(f"mark_static_address expects a tensor but received {type(t)}")
    setattr(t, "_dynamo_static_input_type", "guarded" if guard else "unguarded")


def refuse(name: str) -> Any:
    """A function that asks for a trace."""

    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            f"torch._dynamo.{name}: no Python bytecode is traced here; torch.fx.symbolic_trace records modules"
        )

    function.__name__ = function.__qualname__ = name
    return function


@dataclass(frozen=True, slots=True)
class _DimRange:
    """Bounds of a dimension that a compiler takes for dynamic; files with nested tensors hold some."""

    dim: int
    min: int | None
    max: int | None


KNOWN["torch._dynamo.decorators._DimRange"] = _DimRange
