"""`PackageImporter`: imports modules and loads objects from an archive.

Invariant: modules of an archive see each other and what the archive names as external, and nothing else.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import inspect
import io
import linecache
import os
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import Any
from weakref import WeakValueDictionary

from .._serialization.locations import restorer
from .._serialization.reader import PyTorchFileReader
from .._serialization.reading import parsed
from .._storage import UntypedStorage
from .._typed_storage import TypedStorage
from ._directory_reader import DirectoryReader
from ._mangling import PackageMangler
from ._package_unpickler import PackageUnpickler
from ._resource_reader import _PackageResourceReader
from .file_structure_representation import Directory, _create_directory_from_file_list
from .glob_group import GlobPattern
from .importer import Importer, sys_importer

__all__ = ["PackageImporter"]

# Modules that compiled code imports by itself.
IMPLICIT_IMPORT_ALLOWLIST = ["numpy", "numpy.core", "numpy.core._multiarray_umath", "builtins"]


class _PathNode:
    """A place in the tree of modules."""


class _PackageNode(_PathNode):
    """A package, with or without code of its own."""

    def __init__(self, source_file: str | None) -> None:
        self.source_file = source_file
        self.children: dict[str, _PathNode] = {}


class _ModuleNode(_PathNode):
    """A module."""

    def __init__(self, source_file: str) -> None:
        self.source_file = source_file


class _ExternNode(_PathNode):
    """A module of the environment, with all below it."""


_package_imported_modules: WeakValueDictionary[str, ModuleType] = WeakValueDictionary()
_orig_getfile = inspect.getfile


def _patched_getfile(object: Any) -> str:
    """`inspect.getfile` that knows classes of modules from archives."""
    if inspect.isclass(object) and object.__module__ in _package_imported_modules:
        return str(_package_imported_modules[object.__module__].__file__)
    return _orig_getfile(object)


inspect.getfile = _patched_getfile


class PackageImporter(Importer):
    """The modules and resources of one archive, or of the directory that it was unpacked into."""

    def __init__(self, file_or_buffer: Any, module_allowed: Callable[[str], bool] = lambda module_name: True) -> None:
        self.zip_reader: Any
        if isinstance(file_or_buffer, PyTorchFileReader):
            self.filename = "<pytorch_file_reader>"
            self.zip_reader = file_or_buffer
        elif isinstance(file_or_buffer, (str, os.PathLike)):
            self.filename = os.fspath(file_or_buffer)
            is_directory = os.path.isdir(self.filename)
            self.zip_reader = DirectoryReader(self.filename) if is_directory else PyTorchFileReader(self.filename)
        else:
            self.filename = "<binary>"
            self.zip_reader = PyTorchFileReader(file_or_buffer)
        self.root = _PackageNode(None)
        self.modules: dict[str, Any] = {}
        self.extern_modules = self._read_extern()
        self._mangler = PackageMangler()
        for name in self.extern_modules:
            if not module_allowed(name):
                raise ImportError(
                    f"package '{file_or_buffer}' needs the external module '{name}' but that module has been disallowed"
                )
            self._add_extern(name)
        for filename in self.zip_reader.get_all_records():
            self._add_file(filename)
        self.patched_builtins = {**builtins.__dict__, "__import__": self.__import__}
        # Code in the archive can ask for the importer that loaded it.
        self.modules["torch_package_importer"] = self

    # -- what users call ------------------------------------------------------------------------------------------
    def import_module(self, module_name: str, package: str | None = None) -> Any:
        """A module of the archive, or one that it names as external."""
        return self._gcd_import(self._mangler.demangle(module_name))

    def load_binary(self, package: str, resource: str) -> bytes:
        """The bytes of a resource."""
        found: bytes = self.zip_reader.get_record(self._zipfile_path(package, resource))
        return found

    def load_text(self, package: str, resource: str, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The text of a resource."""
        return self.load_binary(package, resource).decode(encoding, errors)

    def load_pickle(self, package: str, resource: str, map_location: Any = None) -> Any:
        """The object of a pickle, with classes of the archive."""
        unpickler = PackageUnpickler(self, io.BytesIO(self.load_binary(package, resource)))
        unpickler.persistent_load = _Loading(self, restorer(map_location)).persistent_load
        return unpickler.load()

    def id(self) -> str:
        """The prefix in front of this archive's names."""
        return self._mangler.parent_name()

    def file_structure(self, *, include: GlobPattern = "**", exclude: GlobPattern = ()) -> Directory:
        """The files of the archive as a tree."""
        return _create_directory_from_file_list(self.filename, self.zip_reader.get_all_records(), include, exclude)

    def python_version(self) -> str | None:
        """The version of Python that the archive was written with, or None."""
        path = ".data/python_version"
        return self.zip_reader.get_record(path).decode("utf-8").strip() if self.zip_reader.has_record(path) else None

    def get_source(self, module_name: str) -> str:
        """The source of a module."""
        module = self.import_module(module_name)
        if module.__file__ is None:
            return ""
        return str(self.zip_reader.get_record(self._mangler.demangle(module.__file__)).decode("utf-8"))

    def get_resource_reader(self, fullname: str) -> Any:
        """What `importlib.resources` reads from, or None where there is no such package."""
        try:
            package = self._get_package(fullname)
        except ImportError:
            return None
        return _PackageResourceReader(self, fullname) if package.__loader__ is self else None

    # -- modules --------------------------------------------------------------------------------------------------
    def _read_extern(self) -> list[str]:
        text: str = self.zip_reader.get_record(".data/extern_modules").decode("utf-8")
        return text.splitlines(keepends=False)

    def _make_module(self, name: str, filename: str | None, is_package: bool, parent: str) -> ModuleType:
        mangled = self._mangler.mangle(filename) if filename else None
        spec = ModuleSpec(name, self, origin="<package_importer>", is_package=is_package)  # type: ignore[arg-type]
        module = importlib.util.module_from_spec(spec)
        self.modules[name] = module
        module.__name__ = self._mangler.mangle(name)
        space = module.__dict__
        space.update(
            __spec__=spec,
            __loader__=self,
            __file__=mangled,
            __cached__=None,
            __builtins__=self.patched_builtins,
            __torch_package__=True,
        )
        if module.__name__ in _package_imported_modules:
            raise AssertionError(f"module {module.__name__} already in _package_imported_modules")
        _package_imported_modules[module.__name__] = module
        # Parents know their children before these run, as everywhere in Python.
        self._install_on_parent(parent, name, module)
        if filename is not None and mangled is not None:
            linecache.lazycache(mangled, space)
            exec(self._compile_source(filename, mangled), space)
        return module

    def _compile_source(self, fullpath: str, mangled_filename: str) -> CodeType:
        source = self.zip_reader.get_record(fullpath).replace(b"\r\n", b"\n")
        return compile(source, mangled_filename, "exec", dont_inherit=True)

    def _node(self, name: str) -> _PathNode | None:
        """The place of a module in the tree; a module below an external one has its place."""
        node: _PathNode = self.root
        for atom in name.split("."):
            if isinstance(node, _ExternNode):
                return node
            if not isinstance(node, _PackageNode) or atom not in node.children:
                return None
            node = node.children[atom]
        return node

    def _load_module(self, name: str, parent: str) -> Any:
        node = self._node(name)
        if isinstance(node, _ExternNode) or node is None and name in IMPLICIT_IMPORT_ALLOWLIST:
            self.modules[name] = sys_importer.import_module(name)
            self._install_on_parent(parent, name, self.modules[name])
            return self.modules[name]
        if not isinstance(node, (_PackageNode, _ModuleNode)):
            raise ModuleNotFoundError(
                f'No module named "{name}" in self-contained archive "{self.filename}" and the module is also not in '
                f"the list of allowed external modules: {self.extern_modules}",
                name=name,
            )
        return self._make_module(name, node.source_file, isinstance(node, _PackageNode), parent)

    def _install_on_parent(self, parent: str, name: str, module: Any) -> None:
        if parent and getattr(self.modules[parent], "__torch_package__", False):
            setattr(self.modules[parent], name.rpartition(".")[2], module)

    def _gcd_import(self, name: str, package: str | None = None, level: int = 0) -> Any:
        if level > 0:
            name = importlib.util.resolve_name("." * level + name, package)
        if name in self.modules:
            module = self.modules[name]
            if module is None:
                raise ModuleNotFoundError(f"import of {name} halted; None in sys.modules", name=name)
            return module
        parent = name.rpartition(".")[0]
        if parent:
            above = self._gcd_import(parent)
            if name in self.modules:
                return self.modules[name]
            if not hasattr(above, "__path__") and not isinstance(self._node(name), _ExternNode):
                raise ModuleNotFoundError(f"No module named {name!r}; {parent!r} is not a package", name=name)
        module = self._load_module(name, parent)
        # Some modules of Python put another object in their place.
        if name == "os":
            self.modules["os.path"] = module.path
        elif name == "typing" and sys.version_info < (3, 13):
            self.modules["typing.io"] = getattr(module, "io", None)
            self.modules["typing.re"] = getattr(module, "re", None)
        return module

    def _handle_fromlist(self, module: Any, fromlist: Any) -> Any:
        if not hasattr(module, "__path__"):
            return module
        name = self._mangler.demangle(module.__name__)
        for wanted in fromlist:
            if wanted == "*":
                if hasattr(module, "__all__") and "*" not in module.__all__:
                    self._handle_fromlist(module, module.__all__)
            elif not hasattr(module, wanted):
                try:
                    self._gcd_import(f"{name}.{wanted}")
                except ModuleNotFoundError as error:
                    # The name may be none of a module; then the import statement says so.
                    if error.name != f"{name}.{wanted}":
                        raise
        return module

    def __import__(self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        package = (globals or {}).get("__package__") if level else None
        module = self._gcd_import(name, package, level)
        if fromlist:
            return self._handle_fromlist(module, fromlist)
        if level == 0:
            return self._gcd_import(name.partition(".")[0])
        if not name:
            return module
        cut = len(name) - len(name.partition(".")[0])
        full = self._mangler.demangle(module.__name__)
        return self.modules[full[: len(full) - cut]]

    # -- resources ------------------------------------------------------------------------------------------------
    def _get_package(self, package: Any) -> Any:
        """A package, given as a module or by its name."""
        if hasattr(package, "__spec__"):
            if package.__spec__.submodule_search_locations is None:
                raise TypeError(f"{package.__spec__.name!r} is not a package")
            return package
        module = self.import_module(package)
        if module.__spec__.submodule_search_locations is None:
            raise TypeError(f"{package!r} is not a package")
        return module

    def _zipfile_path(self, package: Any, resource: str | None = None) -> str:
        name = self._mangler.demangle(self._get_package(package).__name__).replace(".", "/")
        if resource is None:
            return name
        if os.path.split(resource)[0]:
            raise ValueError(f"{resource!r} must be only a file name")
        return f"{name}/{resource}"

    def _get_or_create_package(self, atoms: list[str]) -> _PackageNode | _ExternNode:
        node = self.root
        for atom in atoms:
            child = node.children.get(atom)
            if isinstance(child, _ExternNode):
                return child
            if not isinstance(child, _PackageNode):
                # A module that has files below it is a package with that code.
                child = node.children[atom] = _PackageNode(
                    child.source_file if isinstance(child, _ModuleNode) else None
                )
            node = child
        return node

    def _add_file(self, filename: str) -> None:
        *prefix, last = filename.split("/")
        if prefix and prefix[0] == ".data":
            return
        package = self._get_or_create_package(prefix)
        if isinstance(package, _ExternNode):
            raise ImportError(
                f"inconsistent module structure. package {'.'.join(prefix)} contains the file {last} but is external"
            )
        if last == "__init__.py":
            package.source_file = filename
        elif last.endswith(".py"):
            name = last[: -len(".py")]
            known = package.children.get(name)
            if isinstance(known, _PackageNode):
                known.source_file = known.source_file or filename
            else:
                package.children[name] = _ModuleNode(filename)

    def _add_extern(self, extern_name: str) -> None:
        *prefix, last = extern_name.split(".")
        package = self._get_or_create_package(prefix)
        if not isinstance(package, _ExternNode):
            package.children[last] = _ExternNode()


class _Loading:
    """The storages and reduced objects of one pickle."""

    def __init__(self, importer: PackageImporter, restore: Callable[[Any, str], Any]) -> None:
        self.importer = importer
        self.restore = restore
        self.storages: dict[str, TypedStorage] = {}
        self.reduced: dict[Any, Any] = {}

    def persistent_load(self, saved_id: Any) -> Any:
        """What an id in the pickle stands for."""
        if not isinstance(saved_id, tuple):
            raise AssertionError(f"saved_id must be tuple, got {type(saved_id).__name__}")
        kind = saved_id[0].decode("ascii") if isinstance(saved_id[0], bytes) else saved_id[0]
        if kind == "storage":
            return self._storage(saved_id)
        if kind == "reduce_package":
            return self._object(saved_id[1:])
        raise AssertionError(
            f"Unknown typename for persistent_load, expected 'storage' or 'reduce_package' but got '{kind}'"
        )

    def _storage(self, saved_id: tuple[Any, ...]) -> TypedStorage:
        _, key, location, count, dtype = parsed((*saved_id[:2], str(saved_id[2]), *saved_id[3:]), 5)
        if key not in self.storages:
            name = f".data/{key}.storage"
            found = self.importer.zip_reader.get_storage_from_record(name, count, dtype).untyped_storage()
            restored = self.restore(found, location)
            untyped = restored if isinstance(restored, UntypedStorage) else restored._untyped_storage
            self.storages[key] = TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True)
        return self.storages[key]

    def _object(self, data: tuple[Any, ...]) -> Any:
        # Archives of old releases have no numbers for what was reduced.
        if len(data) == 2:
            function, args = data
            return function(self.importer, *args)
        number, function, args = data
        if number not in self.reduced:
            self.reduced[number] = function(self.importer, *args)
        return self.reduced[number]
