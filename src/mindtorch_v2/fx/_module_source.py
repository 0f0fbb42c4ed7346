"""Source of generated modules: running it so that tracebacks show its lines, and the imports it needs elsewhere."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

from ._names import is_from_torch, is_ours, public_module
from ._namespace import _custom_builtins, import_line


class _EvalCacheLoader:
    """Keeps generated source where `linecache`, and with it tracebacks and `inspect`, finds it."""

    def __init__(self) -> None:
        self.eval_cache: dict[str, str] = {}
        self.next_id = 0

    def cache(self, src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None) -> str:
        """Keep `src`; gives the name of a file that stands for it."""
        key = self._get_key()
        if co_fields and "co_filename" in co_fields:
            if "co_firstlineno" not in co_fields or "co_name" not in co_fields:
                key = co_fields["co_filename"]
            else:
                key += f" from {co_fields['co_filename']}:{co_fields['co_firstlineno']} in {co_fields['co_name']}"
        self.eval_cache[key] = src
        linecache.lazycache(key, {**globals, "__file__": key, "__name__": key, "__loader__": self})
        return key

    def get_source(self, module_name: str) -> str | None:
        return self.eval_cache.get(module_name)

    def _get_key(self) -> str:
        key = f"<eval_with_key>.{self.next_id}"
        self.next_id += 1
        return key


_loader = _EvalCacheLoader()


def _exec_with_source(src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None) -> None:
    key = _loader.cache(src, globals, co_fields)
    # Annotations of generated functions are types, not texts as in this file.
    exec(compile(src, key, "exec", dont_inherit=True), globals)


def _method_from_src(
    method_name: str, src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None
) -> Callable[..., Any]:
    space = globals.copy()
    _exec_with_source(src, space, co_fields)
    fn: Callable[..., Any] = space.pop(method_name)
    return fn


def _forward_from_src(src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None) -> Callable[..., Any]:
    return _method_from_src("forward", src, globals, co_fields)


def _format_import_statement(name: str, obj: Any, importer: Any = None) -> str:
    known = name if name in _custom_builtins else "torch" if is_from_torch(name) else None
    if known is not None:
        # Archives name PyTorch, whatever this process calls it.
        return import_line(known) if importer is None else _custom_builtins[known].import_str
    if importer is not None:
        module, attribute = importer.get_name(obj)
    else:
        module, attribute = _home(obj)
    return f"from {module} import {attribute} as {name}"


def _home(obj: Any) -> tuple[str, str]:
    """Module and name from which a global of generated code can be imported."""
    name = getattr(obj, "__qualname__", None) or getattr(obj, "__name__", None)
    module = getattr(obj, "__module__", None)
    if name is None and module is None:
        name = getattr(obj, "_name", None)
        module = "typing" if type(obj).__module__ == "typing" else None
    if name is None or module is None:
        raise RuntimeError(f"generated code uses {obj!r}, which cannot be imported by a name")
    return (public_module(module) if is_ours(module) and module.startswith("torch") else module), name


def _format_import_block(globals: dict[str, Any], importer: Any = None) -> str:
    """The import statements for the globals of generated code, in a fixed order."""
    return "\n".join(sorted({_format_import_statement(name, obj, importer) for name, obj in globals.items()}))
