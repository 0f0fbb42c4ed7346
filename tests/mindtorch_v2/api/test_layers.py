"""Who may import whom: the rooms of the package stand in an order, and imports point down it.

Imports at the top of a module are executed when it is loaded and must all point down. An import inside a function may
point up where that is how something heavy or rarely needed stays unloaded, or how a table written with the public API
reaches it; each such pair of rooms is listed with its reason. Imports for type checkers alone are not executed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from .._subject import mindtorch_only

pytestmark = mindtorch_only

PACKAGE = "mindtorch_v2"
SOURCE = Path(__file__).parents[3] / "src" / PACKAGE

# From the bottom up. A module belongs to the room that names the longest part of its path.
ROOMS: dict[str, tuple[str, ...]] = {
    "small types": (
        *(
            "_native",
            "_dtype",
            "_dtype_names",
            "_device",
            "_layout",
            "_size",
            "_sizes",
            "_numbers",
            "_strides",
            "_promotion",
        ),
        *("_finfo", "_mypyc", "_compiled", "_version", "_warn", "_read_only", "_core_operators", "_numbered"),
    ),
    "dispatch state": ("_dispatch.keys", "_dispatch.state"),
    "graph nodes": ("_autograd.node", "_autograd.version_counter"),
    "tensor base": ("_tensor_base", "_unbound", "_attributes"),
    "dispatch": ("_dispatch", "return_types"),
    "rules": ("_ops.rules",),
    "what devices share": ("_backends.common",),
    "autograd": ("_autograd", "_backends.recorded"),
    "composites": ("_ops.composites",),
    "indexing": ("_indexing", "_nested"),
    "tables": ("_ops",),
    "creation": ("_creation", "_from_data"),
    "overrides": ("_overrides",),
    "cpu and meta": ("_backends.cpu", "_backends.meta"),
    "functions from rows": ("_api",),
    "tensor": (
        *("_tensor", "_methods", "_attach", "_storage", "_typed_storage", "_legacy", "_types", "_random", "_printing"),
        *(
            "_serialize",
            "_dlpack",
            "_operators",
            "_operator_arguments",
            "_torch_dispatch",
            "_C",
            "_lowrank",
            "_autocast",
        ),
        *("_shared_memory", "_tensor_class", "_watched"),
    ),
    "npu": ("_backends.npu", "_backends.ascend"),
    # Stubs are written from the whole package; the modules inside `_C` are PyTorch's names for public ones.
    "public modules": ("", "_api.stubs", "_C._autograd", "_C._functorch", "_C._profiler"),
}

# (importing room, imported room): why an import inside a function may point up.
LAZY: dict[tuple[str, str], str] = {
    ("small types", "dispatch state"): "`with torch.device(...)` is a state of the thread",
    ("graph nodes", "autograd"): "what users ask of nodes (hooks, saved values, calling one) is loaded by the question",
    (
        "tensor base",
        "overrides",
    ): "a method that is no operator asks the handler of a subclass, which few programs have",
    ("dispatch", "rules"): "the registry wraps a rule that was registered as a plain function",
    ("dispatch", "autograd"): "the mode that guards saved values is loaded when it is switched on",
    ("dispatch", "functions from rows"): "PyTorch's signatures are loaded by the first call that fits none",
    ("what devices share", "tables"): "what `out=` must be is decided by a table loaded with the first `out=`",
    ("autograd", "tables"): "how tangents go through operators is loaded with the first dual tensor",
    ("autograd", "public modules"): "attributes of nodes that are tensors are made by the public functions",
    ("tables", "creation"): "a table's Python function takes Python data",
    ("tables", "functions from rows"): "a row of a table that is loaded when first asked for",
    ("tables", "tensor"): "`set_` takes storages, which are made when asked for",
    ("tables", "public modules"): "formulas are written with the public functions",
    ("creation", "overrides"): "an object that is no tensor is asked before the call is refused",
    ("creation", "tensor"): "DLPack is loaded by the first capsule",
    ("overrides", "tensor"): "`__torch_dispatch__` is loaded by its first user",
    ("overrides", "public modules"): "the functions that may be overridden are listed when somebody asks",
    ("functions from rows", "tensor"): "methods are described where the class is known",
    ("functions from rows", "npu"): "the NPU's tables are loaded with the row they serve",
    ("tensor", "npu"): "streams and devices exist once an NPU is used",
    ("tensor", "public modules"): "methods that PyTorch writes in Python call its functions",
    ("npu", "public modules"): "lines made of several operators are written with the public functions",
}


class Import(NamedTuple):
    importer: str
    imported: str
    line: int
    lazy: bool

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.imported or PACKAGE}"


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(SOURCE.rglob("*.py"))}


def room_of(module: str) -> str:
    found, length = "", -1
    for room, prefixes in ROOMS.items():
        for prefix in prefixes:
            inside = not prefix or module == prefix or module.startswith(prefix + ".")
            if inside and len(prefix) > length:
                found, length = room, len(prefix)
    return found


def executed(node: ast.AST, lazy: bool = False) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child, lazy
        elif isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            yield from executed(ast.Module(child.orelse, []), lazy)
        else:
            yield from executed(child, lazy or isinstance(child, (ast.FunctionDef, ast.Lambda)))


def imports_of(module: str) -> Iterator[Import]:
    path = MODULES[module]
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    package = [part for part in package if part]
    for node, lazy in executed(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for name in node.names:
                if name.name.split(".")[0] == PACKAGE:
                    yield Import(module, name.name[len(PACKAGE) + 1 :], node.lineno, lazy)
            continue
        if node.level:
            start = package[: len(package) - (node.level - 1)]
        elif node.module and node.module.split(".")[0] == PACKAGE:
            start = []
        else:
            continue
        tail = (node.module or "").removeprefix(PACKAGE if not node.level else "").strip(".")
        target = ".".join([*start, *([tail] if tail else [])])
        for name in node.names:
            inner = f"{target}.{name.name}".lstrip(".")
            yield Import(module, inner if inner in MODULES or inner == "_native" else target, node.lineno, lazy)


IMPORTS = [found for module in MODULES for found in imports_of(module)]
ORDER = list(ROOMS)


def points_up(found: Import) -> bool:
    return ORDER.index(room_of(found.imported)) > ORDER.index(room_of(found.importer))


def test_imports_name_modules_that_exist() -> None:
    """A table that is loaded late would otherwise fail only when somebody asks for its rows."""
    assert [str(i) for i in IMPORTS if i.imported not in MODULES and i.imported != "_native"] == []


def test_no_module_imports_a_room_above_its_own() -> None:
    """With this no two rooms import each other, directly or around others."""
    assert [str(i) for i in IMPORTS if not i.lazy and points_up(i)] == []


def test_imports_inside_functions_point_up_only_for_a_reason() -> None:
    wrong = [i for i in IMPORTS if i.lazy and points_up(i) and (room_of(i.importer), room_of(i.imported)) not in LAZY]
    assert [str(i) for i in wrong] == []


@pytest.mark.parametrize(("importer", "imported"), LAZY)
def test_each_reason_is_needed(importer: str, imported: str) -> None:
    assert any(i.lazy and (room_of(i.importer), room_of(i.imported)) == (importer, imported) for i in IMPORTS)


@pytest.mark.parametrize("room", [room for room in ROOMS if room != "public modules"])
def test_each_name_in_a_room_is_a_module(room: str) -> None:
    known = {*MODULES, "_native"}
    assert [prefix for prefix in ROOMS[room] if prefix not in known] == []


def test_running_needs_nothing_of_mypy() -> None:
    assert [path.name for path in SOURCE.rglob("*.py") if "mypy_extensions" in path.read_text()] == ["_mypyc.py"]
