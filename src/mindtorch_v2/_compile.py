"""`torch.compile`."""

from __future__ import annotations

from typing import Any


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: Any = None,
) -> Any:
    """A function or module that runs as it is: there is no compiler here, which one warning says. Used bare, or as a
    decorator with arguments, which are checked as PyTorch checks them."""
    from ._dynamo.backends import registry
    from ._dynamo.eval_frame import compiled

    backend = registry.get_default_backend() if backend is None else backend
    given = {"fullgraph": fullgraph, "dynamic": dynamic, "backend": backend, "mode": mode, "options": options}

    def decorate(it: Any) -> Any:
        if it is None:
            raise RuntimeError("Model can't be None")
        return compiled(it, disable=disable, **given)

    return decorate if model is None else decorate(model)


def _disable_dynamo(fn: Any = None, recursive: bool = True) -> Any:
    """`torch._dynamo.disable`, for modules that must not load it."""
    return fn if fn is not None else (lambda given: given)
