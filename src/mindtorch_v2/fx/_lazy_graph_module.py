"""Graph modules that generate their code when somebody needs it, and which class traced modules get.

Invariant: the class of a lazy module has `_lazy_forward` as its `forward` exactly while its code is older than a call
of `recompile`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ._codegen import PythonCode
from ._compatibility import compatibility
from .graph_module import GraphModule, _reduced, _reduced_for_package

_use_lazy_graph_module_flag = False
_force_skip_lazy_graph_module_flag = False


@compatibility(is_backward_compatible=False)
@contextmanager
def _force_skip_lazy_graph_module() -> Iterator[None]:
    """Inside, `_use_lazy_graph_module(True)` changes nothing."""
    global _force_skip_lazy_graph_module_flag
    before = _force_skip_lazy_graph_module_flag
    _force_skip_lazy_graph_module_flag = True
    try:
        yield
    finally:
        _force_skip_lazy_graph_module_flag = before


@compatibility(is_backward_compatible=False)
@contextmanager
def _use_lazy_graph_module(should_use: bool) -> Iterator[None]:
    """Inside, traced modules are lazy, or are not."""
    global _use_lazy_graph_module_flag
    before = _use_lazy_graph_module_flag
    _use_lazy_graph_module_flag = should_use and not _force_skip_lazy_graph_module_flag
    try:
        yield
    finally:
        _use_lazy_graph_module_flag = before


@compatibility(is_backward_compatible=False)
def _get_graph_module_cls() -> type[GraphModule]:
    return _LazyGraphModule if _use_lazy_graph_module_flag else GraphModule


def _make_graph_module(*args: Any, graph_module_cls: type[GraphModule] | None = None, **kwargs: Any) -> GraphModule:
    made: GraphModule = (graph_module_cls or _get_graph_module_cls())(*args, **kwargs)
    return made


@compatibility(is_backward_compatible=False)
class _LazyGraphModule(GraphModule):
    """`recompile` only notes that the code is old; the first call, or the first look at the code, makes it new."""

    @classmethod
    def from_graphmodule(cls, gm: GraphModule) -> GraphModule:
        """The module itself if it is lazy, else a lazy one over the same graph."""
        return gm if isinstance(gm, _LazyGraphModule) else _LazyGraphModule(gm, gm.graph)

    @staticmethod
    def force_recompile(gm: Any) -> None:
        """Make the code of a lazy module new; any other module is left alone."""
        if isinstance(gm, _LazyGraphModule):
            gm.real_recompile()

    @classmethod
    def _needs_recompile(cls) -> bool:
        return cls.forward is cls._lazy_forward

    def real_recompile(self) -> None:
        """Generate the code if it is old."""
        if self._needs_recompile():
            self._real_recompile()

    def _real_recompile(self) -> PythonCode:
        return super().recompile()

    def _lazy_forward(self, *args: Any, **kwargs: Any) -> Any:
        # Whoever kept this method calls it again when the code is new.
        self.real_recompile()
        if self._needs_recompile():
            raise AssertionError("Recompilation required after real_recompile()")
        # Not `forward`: what wraps a call shows the line of an error.
        return self(*args, **kwargs)

    forward = _lazy_forward

    @classmethod
    def recompile(cls) -> None:  # type: ignore[override]
        """Note that the code is older than the graph."""
        cls.forward = cls._lazy_forward

    @property
    def code(self) -> str:
        """The source of `forward`."""
        self.real_recompile()
        return super().code

    def __str__(self) -> str:
        self.real_recompile()
        return super().__str__()

    def __reduce__(self) -> tuple[Any, ...]:
        code = self._real_recompile()
        return _reduced(self.__dict__.copy(), code)

    def __reduce_package__(self, exporter: Any) -> tuple[Any, ...]:
        code = self._real_recompile()
        return _reduced_for_package(self, self.__dict__.copy(), code, exporter)
