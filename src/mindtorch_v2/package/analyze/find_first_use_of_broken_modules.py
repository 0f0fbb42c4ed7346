"""Where modules that cannot be packaged come from."""

from __future__ import annotations

from ..package_exporter import PackagingError


def find_first_use_of_broken_modules(exc: PackagingError) -> dict[str, list[str]]:
    """For each broken module of a failed export, a path to it."""
    if not isinstance(exc, PackagingError):
        raise AssertionError("exception must be a PackagingError")
    graph = exc.dependency_graph
    return {name: graph.first_path(name) for name, attrs in graph.nodes.items() if attrs.get("error")}
