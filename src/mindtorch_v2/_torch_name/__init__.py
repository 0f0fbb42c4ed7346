"""The name `torch`: makes `torch` and every `torch.X` the module of this package, in this process.

Invariants: there is one module object, `sys.modules["torch.X"] is sys.modules["mindtorch_v2.X"]`, whichever name loaded
it; what public modules define says `torch.X` in `__module__`, so that names in pickles, `repr` and annotations are
PyTorch's; nothing is loaded that was not asked for; PyTorch itself is never replaced once it has been imported.
"""

from __future__ import annotations

import os
import sys

# What `importlib.machinery` gives, without the modules that it loads besides.
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import PathFinder, SourceFileLoader
from collections.abc import Sequence
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

from .. import _compiled
from .._native import Function, Overridable
from .homes import FOLDED, HOMES, PRIVATE

PACKAGE = __name__.split(".")[0]
_OWN = PACKAGE + "."
_WRITTEN = (FunctionType, Overridable)
# A folder that holds a module `torch`, and the metadata of a distribution of that name, as `pip install` would put
# them on the path: for `importlib.metadata`, and for processes that this one starts.
FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "_torch_path")


_NAMESPACE: Any = vars(ModuleType)["__dict__"].__get__


def shown(tail: str) -> bool:
    """Whether a module of the package bears PyTorch's name: all but the package's own inside."""
    first = tail.partition(".")[0]
    return not first.startswith("_") and tail != "torch" or first in PRIVATE


def installed() -> bool:
    """Whether `torch` is this package in this process."""
    return sys.modules.get("torch") is sys.modules[PACKAGE]


def install() -> None:
    """Make `torch` this package; once is enough."""
    if installed():
        return
    other = sys.modules.get("torch")
    if other is not None and not ours(getattr(other, "__file__", None)):
        raise ImportError(
            f"PyTorch has been imported already, from {getattr(other, '__file__', None)!r}; a process cannot have two "
            f"modules named `torch`. Import {PACKAGE}.torch before anything that imports torch, or run the program "
            f"with `python -m {PACKAGE}.torch`"
        )
    if FOLDER not in sys.path:
        sys.path.insert(0, FOLDER)
    sys.meta_path.insert(0, _Finder())
    # PyTorch's package has its own name in it, which its test tools ask for (`torch.torch._scaled_mm`).
    _NAMESPACE(sys.modules[PACKAGE])["torch"] = sys.modules[PACKAGE]
    for name, module in list(sys.modules.items()):
        if name == PACKAGE:
            _bear(module, "")
        elif name.startswith(_OWN) and module is not None:
            _bear(module, name[len(_OWN) :])


def ours(file: str | None) -> bool:
    """Whether a file of a module `torch` is the few lines that lead here, and not PyTorch's."""
    if file is None:
        return False
    if os.path.getsize(file) > 2000:
        return False
    with open(file, encoding="utf-8") as text:
        return f"import {PACKAGE}.torch" in text.read()


def _bear(module: ModuleType, tail: str) -> None:
    """Give a loaded module PyTorch's name, and with it what it defines."""
    if shown(tail):
        name = f"torch.{tail}" if tail else "torch"
        sys.modules[name] = module
        module.__name__ = name
        _rename(module)
        _fold(module, tail)
    space = _NAMESPACE(module)
    for name, home in HOMES.get(tail, {}).items():
        if name in space:
            space[name].__module__ = home
        else:
            space["_homes"][name] = home  # read when the function is made


def _fold(module: ModuleType, tail: str) -> None:
    """Public functions of a part of one of PyTorch's modules say the name of the whole."""
    space = _NAMESPACE(module)
    for part, home in FOLDED:
        if tail.startswith(part):
            for name, value in list(space.items()):
                if not name.startswith("_") and isinstance(value, _WRITTEN) and value.__module__ == module.__name__:
                    value.__module__ = home


def _rename(module: ModuleType) -> None:
    # Not `vars`: a package that loads its names when asked for would load all.
    for value in list(_NAMESPACE(module).values()):
        if not isinstance(value, (type, *_WRITTEN, Function)):
            continue
        home = value.__module__
        if isinstance(home, str) and home.startswith(_OWN) and shown(home[len(_OWN) :]):
            value.__module__ = "torch." + home[len(_OWN) :]
        elif home == PACKAGE:
            value.__module__ = "torch"


class _Loader(SourceFileLoader):
    """Runs a module of the package under PyTorch's name."""

    def exec_module(self, module: ModuleType) -> None:
        tail = self.name[len(_OWN) :]
        if not shown(tail):
            super().exec_module(module)
            _bear(module, tail)
            return
        name = "torch." + tail
        code: Any = self.get_code(self.name)
        module.__name__ = name
        sys.modules[name] = module
        try:
            exec(code, _NAMESPACE(module))
        except BaseException:
            sys.modules.pop(name, None)
            raise
        _bear(module, tail)


class _CompiledLoader(_compiled.Loader):
    """Loads a compiled module of the package, which is always one of its inside."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        _bear(module, self.name[len(_OWN) :])


class _Alias:
    """Gives the module that is there under its own name."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has put the alias's spec in the place of the module's own.
        module.__spec__ = self.spec

    def get_code(self, fullname: str) -> Any:
        """For `python -m torch.X`."""
        loader: Any = None if self.spec is None else self.spec.loader
        return None if loader is None else loader.get_code(loader.name)


class _Finder:
    """Finds `torch.X`, and loads modules of the package so that they bear that name."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.startswith(_OWN):
            spec = _compiled.find(fullname) or PathFinder.find_spec(fullname, path)
            if spec is not None and type(spec.loader) is SourceFileLoader:
                tail = fullname[len(_OWN) :]
                if shown(tail) or tail in HOMES:
                    spec.loader = _Loader(spec.loader.name, spec.loader.path)
            elif spec is not None and type(spec.loader) is _compiled.Loader and fullname[len(_OWN) :] in HOMES:
                spec.loader = _CompiledLoader(spec.loader.name, spec.loader.path)
            return spec
        if not fullname.startswith("torch."):
            return None
        own = _OWN + fullname[len("torch.") :]
        try:
            module = import_module(own)
        except ModuleNotFoundError as error:
            # The module itself, or a package that it would stand in.
            if error.name is not None and f"{own}.".startswith(f"{error.name}."):
                return None
            raise
        # The import system takes a module that appears while it looks for one as found, and would load it again by the
        # spec it bears; it enters what the loader below gives.
        sys.modules.pop(fullname, None)
        loader: Any = _Alias(module)
        alias = ModuleSpec(fullname, loader, origin=getattr(module, "__file__", None))
        alias.submodule_search_locations = getattr(module, "__path__", None)
        return alias
