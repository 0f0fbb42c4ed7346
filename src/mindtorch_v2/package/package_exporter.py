"""`PackageExporter`: writes modules, pickles and files into an archive, with what they need.

Invariant: nothing is left out silently; a module that nobody said what to do with fails the export.
"""

from __future__ import annotations

import io
import os
import pickletools
import platform
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

from .._autograd.hooks import RemovableHandle
from .._serialization.archive_writer import ArchiveWriter
from .._serialization.names import is_theirs, renamed
from .._serialization.saving import Pickled, on_host
from ._digraph import DiGraph
from ._mangling import demangle, is_mangled
from ._package_pickler import create_pickler
from ._stdlib import is_stdlib_module
from .find_file_dependencies import _ExtractModuleReferences
from .glob_group import GlobGroup, GlobPattern
from .importer import Importer, OrderedImporter, sys_importer

__all__ = ["EmptyMatchError", "PackageExporter", "PackagingError", "PackagingErrorReason"]

_gate_torchscript_serialization = True
_DISALLOWED_MODULES = ["sys", "io"]
_MOCK_IMPL = """\
from _mock import MockedObject
def __getattr__(attr: str):
    return MockedObject(__name__ + '.' + attr, _suppress_err=True)
"""
Hook = Callable[["PackageExporter", str], None]


class _ModuleProviderAction(Enum):
    """What is done with a module."""

    INTERN = 1
    EXTERN = 2
    MOCK = 3
    DENY = 4
    REPACKAGED_MOCK_MODULE = 5
    SKIP = 6


class PackagingErrorReason(Enum):
    """Why a module cannot be in an archive."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}.{self.name}>"

    IS_EXTENSION_MODULE = "Module is a C extension module. torch.package supports Python modules only."
    NO_DUNDER_FILE = "Module had no __file__ defined."
    SOURCE_FILE_NOT_FOUND = "Module had a __file__, but we could not find it in your filesystem."
    DEPENDENCY_RESOLUTION_FAILED = "Dependency resolution failed."
    NO_ACTION = "Module did not match against any action pattern. Extern, mock, or intern it."
    DENIED = "Module was denied by a pattern."
    MOCKED_BUT_STILL_USED = (
        "Module was mocked out, but is still being used in the package. Please intern or extern the mocked modules if "
        "objects are supposed to be in the package."
    )


@dataclass
class _PatternInfo:
    """What a pattern says, and whether something matched it."""

    action: _ModuleProviderAction
    allow_empty: bool
    was_matched: bool = False


class EmptyMatchError(Exception):
    """A pattern that must match something matched nothing."""


class PackagingError(Exception):
    """An archive cannot be written; the text lists the modules by reason."""

    def __init__(self, dependency_graph: DiGraph, debug: bool = False) -> None:
        broken: dict[PackagingErrorReason, list[str]] = defaultdict(list)
        for name, attrs in dependency_graph.nodes.items():
            if attrs.get("error"):
                broken[attrs["error"]].append(name)
        message = io.StringIO()
        message.write("\n")
        for reason, names in broken.items():
            message.write(f"* {reason.value}\n")
            for name in names:
                message.write(f"    {name}\n")
                context = dependency_graph.nodes[name].get("error_context")
                if context is not None:
                    message.write(f"      Context: {context}\n")
                if demangle(name).partition(".")[0] in _DISALLOWED_MODULES:
                    message.write(
                        "      Note: While we usually use modules in the python standard library from the local "
                        f"environment, `{name}` has a lot of system level access and therefore can pose a security "
                        "risk. We heavily recommend removing it from your packaged code. However, if that is not "
                        "possible, add it to the extern list by calling "
                        f'PackageExporter.extern("`{name}`")\n'
                    )
                if debug:
                    message.write(f"      A path to {name}: {' -> '.join(dependency_graph.first_path(name))}\n")
        if not debug:
            message.write(
                "\nSet debug=True when invoking PackageExporter for a visualization of where broken modules are "
                "coming from!\n"
            )
        self.dependency_graph = dependency_graph
        super().__init__(message.getvalue())


class _Storages(Pickled):
    """The storages of an archive, numbered; each is written once."""

    def persistent_id(self, obj: Any) -> Any:
        found = super().persistent_id(obj)
        return found if found is None else (*found[:2], int(found[2]), *found[3:])


class PackageExporter:
    """Writes an archive; used as a context, it is finished at the end of it."""

    def __init__(self, f: Any, importer: Any = sys_importer, debug: bool = False) -> None:
        self.debug = debug
        self._file: Any = None
        folder = "archive"
        self.buffer: Any = f
        if isinstance(f, (str, os.PathLike)):
            self.buffer = self._file = open(f, "wb")
            folder = os.path.splitext(os.path.basename(os.fspath(f)))[0] or folder
        self.zip_file = ArchiveWriter(self.buffer.write, folder, 64, True)
        self._written_files: set[str] = set()
        self._storages = _Storages()
        self._stored: set[str] = set()
        self.serialized_reduces: dict[int, Any] = {}
        self.dependency_graph = DiGraph()
        self.importer: Importer
        if isinstance(importer, Importer):
            self.importer = importer
        else:
            if not isinstance(importer, Sequence):
                raise TypeError(
                    f"importer arg should be an Importer or a sequence of Importers, got {type(importer)} instead."
                )
            self.importer = OrderedImporter(*importer)
        self.patterns: dict[GlobGroup, _PatternInfo] = {}
        self._hooks: dict[_ModuleProviderAction, Any] = {action: OrderedDict() for action in _ModuleProviderAction}
        self._unique_id = 0
        self._resource_packages: set[str] = set()
        self._mock_written = False

    # -- sources --------------------------------------------------------------------------------------------------
    def save_source_file(self, module_name: str, file_or_directory: str, dependencies: bool = True) -> None:
        """Put a file, or all Python files of a directory, into the archive."""
        path = Path(file_or_directory)
        if not path.is_dir():
            self.save_source_string(module_name, path.read_text("utf-8"), path.name == "__init__.py", dependencies)
            return
        for file in sorted(path.glob("**/*.py")):
            parts = list(file.relative_to(path).with_suffix("").parts)
            is_package = parts[-1] == "__init__"
            name = ".".join([module_name, *(parts[:-1] if is_package else parts)])
            self.save_source_string(name, file.read_text("utf-8"), is_package, dependencies)

    def get_unique_id(self) -> str:
        """A text that this exporter gives only once."""
        self._unique_id += 1
        return str(self._unique_id - 1)

    def _get_dependencies(self, src: str, module_name: str, is_package: bool) -> list[str]:
        package = module_name if is_package else module_name.rpartition(".")[0]
        found: dict[str, None] = {}
        for module, name in _ExtractModuleReferences.run(src, package):
            inner = f"{module}.{name}"
            found[inner if name is not None and self._module_exists(inner) else module] = None
        return list(found)

    def save_source_string(
        self, module_name: str, src: str, is_package: bool = False, dependencies: bool = True
    ) -> None:
        """Put source into the archive as a module."""
        self.dependency_graph.add_node(
            module_name, source=src, is_package=is_package, provided=True, action=_ModuleProviderAction.INTERN
        )
        if dependencies:
            self._follow(module_name, src, is_package)

    def _follow(self, module_name: str, src: str, is_package: bool) -> None:
        try:
            needed = self._get_dependencies(src, module_name, is_package)
        except Exception as error:
            self.dependency_graph.add_node(
                module_name, error=PackagingErrorReason.DEPENDENCY_RESOLUTION_FAILED, error_context=str(error)
            )
            return
        for name in needed:
            self.dependency_graph.add_edge(module_name, name)
            self.add_dependency(name)

    def _import_module(self, module_name: str) -> Any:
        try:
            return self.importer.import_module(module_name)
        except ModuleNotFoundError as error:
            if not is_mangled(module_name):
                raise
            raise ModuleNotFoundError(
                f"Module not found: '{module_name}'. Make sure the PackageImporter that created this module is "
                "present in `self.importer`"
            ) from error

    def _module_exists(self, module_name: str) -> bool:
        try:
            self._import_module(module_name)
        except Exception:
            return False
        return True

    def _get_source_of_module(self, module: Any) -> str | None:
        loader: Any = getattr(module, "__loader__", None)
        if hasattr(loader, "get_source"):
            try:
                found: str | None = loader.get_source(module.__name__)
                return found
            except (ImportError, OSError):
                return None
        path = Path(getattr(module, "__file__", None) or "")
        return path.read_text("utf-8") if path.suffix == ".py" and path.is_file() else None

    # -- what modules need ----------------------------------------------------------------------------------------
    def add_dependency(self, module_name: str, dependencies: bool = True) -> None:
        """Do with a module what the first pattern says that it matches."""
        graph = self.dependency_graph
        if graph.nodes.get(module_name, {}).get("provided"):
            return
        action: _ModuleProviderAction | None = None
        if module_name == "torch_package_importer":
            action = _ModuleProviderAction.SKIP
        elif module_name == "_mock":
            action = _ModuleProviderAction.REPACKAGED_MOCK_MODULE
        elif self._can_implicitly_extern(module_name):
            action = _ModuleProviderAction.EXTERN
        else:
            for pattern, info in self.patterns.items():
                if pattern.matches(module_name):
                    info.was_matched = True
                    action = info.action
                    break
        if action is None:
            graph.add_node(module_name, error=PackagingErrorReason.NO_ACTION)
        elif action is _ModuleProviderAction.INTERN:
            self._intern_module(module_name, dependencies)
        else:
            graph.add_node(module_name, action=action, provided=True)
            if action is _ModuleProviderAction.DENY:
                graph.add_node(module_name, error=PackagingErrorReason.DENIED)

    def save_module(self, module_name: str, dependencies: bool = True) -> None:
        """Put the source of a module into the archive."""
        if not isinstance(module_name, str):
            raise TypeError("save_module() expects a string input, did you perhaps mean to pass `__name__`?")
        self._intern_module(module_name, dependencies)

    def _intern_module(self, module_name: str, dependencies: bool) -> None:
        module = self._import_module(module_name)
        is_package = hasattr(module, "__path__")
        source = self._get_source_of_module(module)
        node: dict[str, Any] = {"is_package": is_package, "provided": True, "action": _ModuleProviderAction.INTERN}
        if source is None:
            filename = getattr(module, "__file__", None)
            if filename is None:
                node["error"] = PackagingErrorReason.NO_DUNDER_FILE
            elif filename.endswith(tuple(EXTENSION_SUFFIXES)):
                node["error"] = PackagingErrorReason.IS_EXTENSION_MODULE
            else:
                node["error"] = PackagingErrorReason.SOURCE_FILE_NOT_FOUND
                node["error_context"] = f"filename: {filename}"
            self.dependency_graph.add_node(module_name, **node)
            return
        self.dependency_graph.add_node(module_name, source=source, **node)
        if dependencies:
            self._follow(module_name, source, is_package)

    # -- resources ------------------------------------------------------------------------------------------------
    def save_pickle(
        self, package: str, resource: str, obj: Any, dependencies: bool = True, pickle_protocol: int = 3
    ) -> None:
        """Put an object into the archive as a pickle, and the code of its classes."""
        if pickle_protocol not in (3, 4):
            raise AssertionError("torch.package only supports pickle protocols 3 and 4")
        filename = self._filename(package, resource)
        buffer = io.BytesIO()
        pickler = create_pickler(buffer, self.importer, protocol=pickle_protocol)
        pickler.persistent_id = self._persistent_id
        pickler.dump(obj)
        data = renamed(buffer.getvalue())
        name = f"<{package}.{resource}>"
        self.dependency_graph.add_node(name, action=_ModuleProviderAction.INTERN, provided=True, is_pickle=True)
        used = _globals_in(data) if dependencies else {}
        for module, names in used.items():
            self.dependency_graph.add_edge(name, module)
            self.add_dependency(module)
            node = self.dependency_graph.nodes[module]
            if node.get("action") is _ModuleProviderAction.MOCK:
                self.dependency_graph.add_node(
                    module,
                    error=PackagingErrorReason.MOCKED_BUT_STILL_USED,
                    error_context=f"Object(s) '{names}' from module `{module}` was mocked out during packaging but is "
                    f"being used in resource - `{resource}` in package `{package}`. ",
                )
        self._write(filename, data)

    def save_text(self, package: str, resource: str, text: str) -> None:
        """Put a text into the archive."""
        self.save_binary(package, resource, text.encode("utf-8"))

    def save_binary(self, package: str, resource: str, binary: bytes) -> None:
        """Put bytes into the archive."""
        self._write(self._filename(package, resource), binary)
        self._resource_packages.add(package)

    def _persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, self._storages.kinds):
            pid = self._storages.persistent_id(obj)
            key = str(pid[2])
            if key not in self._stored:
                self._stored.add(key)
                self._write(f".data/{key}.storage", on_host(self._storages.storages[key])._bytes())
            return pid
        if hasattr(obj, "__reduce_package__") and not isinstance(obj, type):
            if self.serialized_reduces.get(id(obj)) is None:
                self.serialized_reduces[id(obj)] = ("reduce_package", id(obj), *obj.__reduce_package__(self))
            return self.serialized_reduces[id(obj)]
        return None

    # -- patterns and hooks ---------------------------------------------------------------------------------------
    def register_extern_hook(self, hook: Hook) -> RemovableHandle:
        """Call a function for each module that is left to the environment."""
        return self._hook(_ModuleProviderAction.EXTERN, hook)

    def register_mock_hook(self, hook: Hook) -> RemovableHandle:
        """Call a function for each module that is mocked."""
        return self._hook(_ModuleProviderAction.MOCK, hook)

    def register_intern_hook(self, hook: Hook) -> RemovableHandle:
        """Call a function for each module that is put into the archive."""
        return self._hook(_ModuleProviderAction.INTERN, hook)

    def _hook(self, action: _ModuleProviderAction, hook: Hook) -> RemovableHandle:
        handle = RemovableHandle(self._hooks[action])
        self._hooks[action][handle.id] = hook
        return handle

    def intern(self, include: GlobPattern, *, exclude: GlobPattern = (), allow_empty: bool = True) -> None:
        """Modules to put into the archive."""
        self._pattern(include, exclude, _ModuleProviderAction.INTERN, allow_empty)

    def mock(self, include: GlobPattern, *, exclude: GlobPattern = (), allow_empty: bool = True) -> None:
        """Modules to put an empty one in place of."""
        self._pattern(include, exclude, _ModuleProviderAction.MOCK, allow_empty)

    def extern(self, include: GlobPattern, *, exclude: GlobPattern = (), allow_empty: bool = True) -> None:
        """Modules that the environment will have."""
        self._pattern(include, exclude, _ModuleProviderAction.EXTERN, allow_empty)

    def deny(self, include: GlobPattern, *, exclude: GlobPattern = ()) -> None:
        """Modules that must not be needed."""
        self._pattern(include, exclude, _ModuleProviderAction.DENY, True)

    def _pattern(self, include: Any, exclude: Any, action: _ModuleProviderAction, allow_empty: bool) -> None:
        self.patterns[GlobGroup(include, exclude=exclude)] = _PatternInfo(action, allow_empty)

    # -- the end --------------------------------------------------------------------------------------------------
    def __enter__(self) -> PackageExporter:
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        if exc_type is not None:
            # What was raised is worth more than what this exporter would say of it.
            self._finalize_zip()
            return
        self.close()

    def _write(self, filename: str, str_or_bytes: Any) -> None:
        if filename in self._written_files:
            raise AssertionError(
                f"Tried to write file '{filename}', but it already exists in this archive. Please file a bug."
            )
        self._written_files.add(filename)
        self.zip_file.record(filename, str_or_bytes.encode("utf-8") if isinstance(str_or_bytes, str) else str_or_bytes)

    def _validate_dependency_graph(self) -> None:
        for name in self._resource_packages:
            # A package that only has resources has no code that anything must be done with.
            node = self.dependency_graph.nodes.get(name, {})
            if node.get("error") is PackagingErrorReason.NO_ACTION:
                node.update(error=None, action=_ModuleProviderAction.SKIP)
        if any(attrs.get("error") for attrs in self.dependency_graph.nodes.values()):
            raise PackagingError(self.dependency_graph, debug=self.debug)
        for pattern, info in self.patterns.items():
            if not info.allow_empty and not info.was_matched:
                raise EmptyMatchError(
                    f"Exporter did not match any modules to {pattern}, which was marked as allow_empty=False"
                )

    def _write_mock_file(self) -> None:
        if not self._mock_written:
            self._mock_written = True
            self._write_source_string("_mock", Path(__file__).with_name("_mock.py").read_text("utf-8"))

    def _write_source_string(self, module_name: str, src: str, is_package: bool = False) -> None:
        path = demangle(module_name).replace(".", "/")
        self._write(path + ("/__init__.py" if is_package else ".py"), src)

    def _execute_dependency_graph(self) -> None:
        self._validate_dependency_graph()
        externs: list[str] = []
        for name, attrs in self.dependency_graph.nodes.items():
            action = attrs["action"]
            for hook in self._hooks[action].values():
                hook(self, name)
            if action is _ModuleProviderAction.EXTERN:
                externs.append(name)
            elif action is _ModuleProviderAction.MOCK:
                self._write_mock_file()
                self._write_source_string(name, _MOCK_IMPL, hasattr(self._import_module(name), "__path__"))
            elif action is _ModuleProviderAction.REPACKAGED_MOCK_MODULE:
                self._write_mock_file()
            elif action is _ModuleProviderAction.INTERN and not attrs.get("is_pickle"):
                self._write_source_string(name, attrs["source"], attrs["is_package"])
        self._write(".data/extern_modules", "\n".join(externs) + "\n")

    def _write_python_version(self) -> None:
        self._write(".data/python_version", platform.python_version())

    def close(self) -> None:
        """Write the modules, and what ends the archive."""
        self._execute_dependency_graph()
        self._write_python_version()
        self._finalize_zip()

    def _finalize_zip(self) -> None:
        self.zip_file.record("byteorder", b"little")
        self.zip_file.finish("6\n", ".data/version")
        if self._file is not None:
            self._file.close()

    def _filename(self, package: str, resource: str) -> str:
        if os.path.split(resource)[0]:
            raise ValueError(f"{resource!r} must be only a file name")
        return f"{package.replace('.', '/')}/{resource}"

    def _can_implicitly_extern(self, module_name: str) -> bool:
        top = module_name.partition(".")[0]
        return is_theirs(top) or top == "mindtorch_v2" or top not in _DISALLOWED_MODULES and is_stdlib_module(top)

    # -- questions ------------------------------------------------------------------------------------------------
    def dependency_graph_string(self) -> str:
        """What needs what, in the language of Graphviz."""
        return self.dependency_graph.to_dot()

    def _nodes_with_action_type(self, action: _ModuleProviderAction | None) -> list[str]:
        return [
            name
            for name, attrs in self.dependency_graph.nodes.items()
            if attrs.get("action") is action and "is_pickle" not in attrs
        ]

    def externed_modules(self) -> list[str]:
        """The modules that the environment will have."""
        return self._nodes_with_action_type(_ModuleProviderAction.EXTERN)

    def interned_modules(self) -> list[str]:
        """The modules that are put into the archive."""
        return self._nodes_with_action_type(_ModuleProviderAction.INTERN)

    def mocked_modules(self) -> list[str]:
        """The modules that an empty one is put in place of."""
        return self._nodes_with_action_type(_ModuleProviderAction.MOCK)

    def denied_modules(self) -> list[str]:
        """The modules that must not be needed and are."""
        return self._nodes_with_action_type(_ModuleProviderAction.DENY)

    def get_rdeps(self, module_name: str) -> list[str]:
        """The modules that need one."""
        return list(self.dependency_graph._pred.get(module_name, {}))

    def all_paths(self, src: str, dst: str) -> str:
        """How one module needs another, in the language of Graphviz."""
        return self.dependency_graph.all_paths(src, dst)


def _globals_in(data: bytes) -> dict[str, list[str]]:
    """The globals that a pickle names, by module."""
    found: dict[str, list[str]] = {}
    texts: list[str] = []
    memo: dict[int, str] = {}
    count = 0
    argument: Any
    for opcode, argument, _ in pickletools.genops(data):
        if opcode.name == "GLOBAL":
            module, name = argument.split(" ")
            found.setdefault(module, []).append(name)
        elif opcode.name == "STACK_GLOBAL":
            found.setdefault(texts[-2], []).append(texts[-1])
        elif isinstance(argument, str):
            texts.append(argument)
        elif opcode.name in ("BINGET", "LONG_BINGET") and argument in memo:
            texts.append(memo[argument])
        if opcode.name == "MEMOIZE":
            if texts:
                memo[count] = texts[-1]
            count += 1
        elif opcode.name in ("BINPUT", "LONG_BINPUT") and texts:
            memo[argument] = texts[-1]
    return found
