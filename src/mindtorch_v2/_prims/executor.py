"""`torch._prims.executor`: run a function, or a graph, through the graph that tracing it gives."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import mindtorch_v2 as torch


def execute(gm: Any, *args: Any, executor: str = "aten", executor_parameters: dict[str, Any] | None = None) -> Any:
    """Run a traced module; the only executor is `aten`."""
    if executor != "aten":
        raise ValueError(f"Received unexpected value for 'executor': {executor}. Allowed values are: aten.")
    return gm.forward(*args)


def make_traced(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function that traces `fn` with what it is given, and runs the trace."""

    @wraps(fn)
    def _traced(*args: Any, executor: str = "aten", **kwargs: Any) -> Any:
        from ..fx.experimental.proxy_tensor import make_fx
        from ..utils._pytree import tree_flatten, tree_unflatten

        flat, spec = tree_flatten((args, kwargs))
        places = [i for i, x in enumerate(flat) if isinstance(x, torch.Tensor)]

        def inner(*tensors: Any) -> Any:
            full = list(flat)
            for i, x in zip(places, tensors, strict=True):
                full[i] = x
            given, named = tree_unflatten(full, spec)
            return fn(*given, **named)

        tensors = [flat[i] for i in places]
        return execute(make_fx(inner)(*tensors), *tensors, executor=executor)

    return _traced
