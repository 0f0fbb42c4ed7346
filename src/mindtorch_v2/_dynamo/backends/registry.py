"""Backends of `torch.compile` by name: PyTorch's, and those that a program registers. None is called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..exc import InvalidBackend

CompilerFn = Callable[..., Any]
_TAGS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("cudagraphs", "inductor", "openxla", "tvm"), ()),
    **dict.fromkeys(("aot_eager", "aot_eager_decomp_partition", "aot_eager_default_partitioner"), ("debug",)),
    **dict.fromkeys(("eager", "eager_noexcept", "eager_debug", "pre_dispatch_eager", "aot_ts"), ("debug",)),
}
_REGISTERED: dict[str, CompilerFn] = {}
_DEFAULT: list[Any] = ["inductor"]


def list_backends(exclude_tags: Sequence[str] | None = ("debug", "experimental")) -> list[str]:
    """The names that `torch.compile(backend=...)` takes."""
    hidden = set(exclude_tags or ())
    return sorted(name for name, tags in _TAGS.items() if not hidden & set(tags))


def register_backend(compiler_fn: CompilerFn | None = None, name: str | None = None, tags: Sequence[str] = ()) -> Any:
    """Make a backend's name known."""
    if compiler_fn is None:
        return lambda fn: register_backend(fn, name, tags)
    if not callable(compiler_fn):
        raise AssertionError(f"compiler_fn must be callable, got {type(compiler_fn)}")
    title: str = name or str(getattr(compiler_fn, "__name__", compiler_fn))
    if title in _TAGS:
        raise AssertionError(f"duplicate name: {title}")
    _TAGS[title], _REGISTERED[title] = tuple(tags), compiler_fn
    return compiler_fn


def lookup_backend(compiler_fn: Any) -> CompilerFn:
    """The backend of a name."""
    if not isinstance(compiler_fn, str):
        found: CompilerFn = compiler_fn
        return found
    if compiler_fn not in _TAGS:
        raise InvalidBackend(name=compiler_fn)
    if compiler_fn not in _REGISTERED:
        raise NotImplementedError(f"the backend '{compiler_fn}' of PyTorch is not here; torch.compile runs eagerly")
    return _REGISTERED[compiler_fn]


def check(backend: Any) -> None:
    """Raise what PyTorch raises of a backend that it does not know."""
    if isinstance(backend, str) and backend not in _TAGS:
        raise InvalidBackend(name=backend)


def get_default_backend() -> Any:
    return _DEFAULT[0]


def set_default_backend(backend: Any) -> None:
    """The backend where none is named; None is PyTorch's own."""
    check(backend)
    _DEFAULT[0] = "inductor" if backend is None else backend
