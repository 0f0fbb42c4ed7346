"""Unique names for the values and globals of generated code."""

from __future__ import annotations

import builtins
import keyword
import math
import re
from typing import Any, NamedTuple

from .._torch_name import PACKAGE, installed
from ._names import package


class _CustomBuiltin(NamedTuple):
    """An object that generated code always finds, because what `repr` prints of some values names it."""

    import_str: str
    obj: Any


# What no value may be called, with the only object that may.
_illegal_names: dict[str, Any] = {k: object() for k in keyword.kwlist}
_illegal_names.update(vars(builtins))
_custom_builtins: dict[str, _CustomBuiltin] = {}


def _register_custom_builtin(name: str, import_str: str, obj: Any) -> None:
    _custom_builtins[name] = _CustomBuiltin(import_str, obj)
    _illegal_names[name] = obj


def import_line(name: str) -> str:
    """The statement that imports one of those objects, from the package under the name it has in this process."""
    line = _custom_builtins[name].import_str
    if installed():
        return line
    if line == "import torch":
        return f"import {PACKAGE} as torch"
    return line.replace("import torch.", f"import {PACKAGE}.").replace("from torch ", f"from {PACKAGE} ")


def _register_all() -> None:
    from ..utils import _pytree as pytree
    from . import _pytree as fx_pytree

    torch = package()
    _register_custom_builtin("inf", "from math import inf", math.inf)
    _register_custom_builtin("nan", "from math import nan", math.nan)
    _register_custom_builtin("NoneType", "NoneType = type(None)", type(None))
    _register_custom_builtin("torch", "import torch", torch)
    _register_custom_builtin("device", "from torch import device", torch.device)
    _register_custom_builtin("fx_pytree", "import torch.fx._pytree as fx_pytree", fx_pytree)
    _register_custom_builtin("pytree", "import torch.utils._pytree as pytree", pytree)


_register_all()

_illegal_characters = re.compile("[^0-9a-zA-Z_]+")
# A name, and the number at its end.
_name_with_number = re.compile(r"^([a-zA-Z_][0-9a-zA-Z_]*?)(?:_(\d+))?$")
_lower_then_upper = re.compile(r"(?<=[a-z])([A-Z])")


def _snake_case(s: str) -> str:
    return _lower_then_upper.sub(r"_\1", s).lower()


def _is_magic(x: str) -> bool:
    return x.startswith("__") and x.endswith("__")


class _Namespace:
    """Names by object, each given once; none hides a builtin."""

    def __init__(self) -> None:
        self._obj_to_name: dict[Any, str] = {}
        self._used_names: set[str] = set()
        self._base_count: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any) -> str:
        """A name like `candidate` that nobody has; the name an object already has stays."""
        if obj is not None and obj in self._obj_to_name:
            return self._obj_to_name[obj]
        match = _name_with_number.match(candidate)
        if match is None:
            candidate = _illegal_characters.sub("_", candidate) or "_unnamed"
            if candidate[0].isdigit():
                candidate = f"_{candidate}"
            match = _name_with_number.match(candidate)
            assert match is not None, f"Name regex failed to match candidate: {candidate}"
        base, suffix = match.group(1, 2)
        if suffix is None or candidate in self._used_names:
            number = self._base_count.get(base, 0)
            if _illegal_names.get(candidate, obj) is not obj:
                number += 1
                candidate = f"{base}_{number}"
        else:
            number = int(suffix)
        while candidate in self._used_names:
            number += 1
            candidate = f"{base}_{number}"
        self._used_names.add(candidate)
        self._base_count[base] = number
        if obj is not None:
            self._obj_to_name[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Note that `obj` has this name; it must have none."""
        if self._obj_to_name.setdefault(obj, name) is not name:
            raise AssertionError("obj is already associated")

    def _rename_object(self, obj: Any, name: str) -> None:
        if obj not in self._obj_to_name:
            raise AssertionError(f"Object {obj} is not in _obj_to_name")
        self._obj_to_name[obj] = name
        self._used_names.add(name)
