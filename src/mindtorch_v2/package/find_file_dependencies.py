"""What a piece of Python source imports."""

from __future__ import annotations

import ast
from typing import Any


class _ExtractModuleReferences(ast.NodeVisitor):
    """Collects pairs of a module and a name from it, or None for the module itself."""

    @classmethod
    def run(cls, src: str, package: str) -> list[tuple[str, str | None]]:
        """The references of a source in a package, in their order."""
        visitor = cls(package)
        visitor.visit(ast.parse(src))
        return list(visitor.references)

    def __init__(self, package: str) -> None:
        self.package = package
        self.references: dict[tuple[str, str | None], None] = {}

    def _absmodule(self, module_name: str, level: int) -> str:
        if level <= 0:
            return module_name
        atoms = self.package.split(".")
        if len(atoms) < level:
            raise ValueError("attempted relative import beyond top-level package")
        base = ".".join(atoms[: len(atoms) - (level - 1)])
        return f"{base}.{module_name}" if module_name else base

    def visit_Import(self, node: ast.Import) -> None:
        """`import a, b`"""
        for alias in node.names:
            self.references[alias.name, None] = None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """`from a import b`"""
        name = self._absmodule(node.module or "", node.level)
        for alias in node.names:
            self.references[name, alias.name if alias.name != "*" else None] = None

    def visit_Call(self, node: ast.Call) -> None:
        """`__import__("a")` whose arguments are plain constants."""
        self.generic_visit(node)
        if not (isinstance(node.func, ast.Name) and node.func.id == "__import__"):
            return
        try:
            given: dict[str, Any] = dict(zip(("name", "globals", "locals", "fromlist", "level"), node.args))
            given.update({k.arg: k.value for k in node.keywords if k.arg is not None})
            name = ast.literal_eval(given["name"])
            level = ast.literal_eval(given["level"]) if "level" in given else 0
            names = ast.literal_eval(given["fromlist"]) if "fromlist" in given else ()
            if not isinstance(name, str) or not isinstance(level, int):
                return
            module = self._absmodule(name, level)
            for found in [n for n in names or () if n != "*"] or [None]:
                self.references[module, found] = None
        except (ValueError, KeyError, TypeError):
            # Computed arguments cannot be known before the call.
            return
