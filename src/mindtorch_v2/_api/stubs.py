"""Writes the stubs that editors and type checkers read: `python -m mindtorch_v2._api.stubs FOLDER` (run by the build).

Functions and methods that are made from rows when asked for exist for no tool that only reads source. `__init__.pyi`
and `_tensor.pyi` name them, with types from the schemas; all other modules are read as they are written.

Invariant: what is declared is what the imported package has, name by name; types come from schemas and annotations, and
where neither says anything, `Any`.
"""

from __future__ import annotations

import ast
import inspect
import keyword
import re
import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mindtorch_v2 as torch

from .._dispatch import registry
from .._dispatch.op import Op
from .._tensor_base import TensorBase
from . import describe, lazy_tables, public

# Methods and functions are called `float`, `bool`, `layout`: inside, the types go by other names.
HEAD = """# Written by the build from the operator tables (_api/stubs.py).
# mypy: disable-error-code="overload-overlap, overload-cannot-match, override, misc, assignment"
from builtins import bool as _bool, complex as _complex, float as _float, int as _int, str as _str
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias, overload

from ROOT_device import device as _Device
from ROOT_dtype import dtype as _DType
from ROOT_layout import layout as _Layout, memory_format as _MemoryFormat
from ROOT_random import Generator as _Generator
from ROOT_size import Size as _Size
from ROOT_storage import UntypedStorage as _UntypedStorage

_Number: TypeAlias = _int | _float | _complex
"""
_TYPES = {
    "int": "_int",
    "float": "_float",
    "bool": "_bool",
    "str": "_str",
    "complex": "_complex",
    "Number": "_Number",
    "dtype": "_DType",
    "DType": "_DType",
    "device": "_Device",
    "Device": "_Device",
    "layout": "_Layout",
    "Layout": "_Layout",
    "memory_format": "_MemoryFormat",
    "Generator": "_Generator",
    "Size": "_Size",
    "UntypedStorage": "_UntypedStorage",
    "Tensor": "Tensor",
    "TensorBase": "Tensor",
    "Any": "Any",
    "None": "None",
    "Sequence": "Sequence",
    "Iterable": "Iterable",
    "Iterator": "Iterator",
    "Callable": "Callable",
    "tuple": "tuple",
    "list": "list",
    "dict": "dict",
    "object": "object",
}
# Modules that show rows as functions of theirs.
FROM_ROWS = ("linalg", "special", "fft", "nn.functional")
# Written by hand with an open result type, and no row of that name: they give tensors.
_TENSORS = frozenset(
    """tensor as_tensor asarray from_numpy frombuffer from_dlpack einsum tensordot rand randn rand_like randn_like
    randint randint_like randperm normal bernoulli index_put nonzero to cpu npu pin_memory type_as float double half
    bfloat16 int long short char byte bool chalf cfloat cdouble new_tensor requires_grad_ resize_ resize_as_ set_ apply_
    uniform_ normal_ random_ exponential_ cauchy_ log_normal_ geometric_ bernoulli_ T H mT mH real imag data detach_
    __getitem__ __neg__ __pos__ __abs__ __invert__""".split()
)
_BINARY = frozenset("add sub mul truediv floordiv mod pow matmul and or xor lshift rshift eq ne lt le gt ge".split())
_NO_TENSORS = frozenset("__bool__ __hash__ __setitem__ __delitem__ __init__".split())


def head(root: str) -> str:
    return HEAD.replace("ROOT", root)


def hint(text: str) -> str:
    """An annotation in the names of the stub; `Any` where it uses others."""
    text = text.strip("'\"") or "Any"
    words = re.findall(r"[A-Za-z_][\w.]*", text)
    if any(word not in _TYPES for word in words):
        return "Any"
    return re.sub(r"[A-Za-z_]\w*", lambda found: _TYPES[found.group()], text)


# -- from rows ------------------------------------------------------------------------------------------------------
def from_row(name: str, op: Op, is_method: bool) -> str:
    shown: list[str] = []
    starred = False
    for i, p in enumerate(describe.parameters(op, is_method)):
        if keyword.iskeyword(p.name):
            first = "self, " if is_method else ""
            return f"def {name}({first}*args: Any, **kwargs: Any) -> {hint(describe.returned(op))}"
        if is_method and i == 0:
            shown.append("self")
            continue
        if p.spread:
            shown.append(f"*{p.name}: _int | Sequence[_int]")
            starred = True
            continue
        if p.kwonly and not starred:
            shown.append("*")
            starred = True
        shown.append(f"{p.name}: {hint(p.hint)}" + ("" if p.default is None else " = ..."))
    return f"def {name}({', '.join(shown)}) -> {given_back(op)}"


def given_back(op: Op) -> str:
    """The result's type; named tuples are declared in `_tensor.pyi`, by the names of their fields."""
    if op.result_type is None:
        return hint(describe.returned(op))
    return "_" + "_".join(r.name for r in op.schema.returns)


def named_tuples() -> dict[str, str]:
    made: dict[str, str] = {}
    for op in registry.ops():
        if op.row is not None and op.result_type is not None and not op.is_out:
            fields = "".join(f"    {r.name}: {hint(describe.hint(r))}\n" for r in op.schema.returns)
            made[given_back(op)] = f"class {given_back(op)}(NamedTuple):\n{fields}"
    return made


def overloads(name: str, ops: list[Op], is_method: bool) -> list[str]:
    made = list(dict.fromkeys(from_row(name, op, is_method) for op in ops))
    mark = "@overload\n" if len(made) > 1 else ""
    return [f"{mark}{one}: ..." for one in made]


# -- from functions that are written by hand ------------------------------------------------------------------------
def from_function(name: str, function: Any, is_method: bool) -> str:
    try:
        given = inspect.signature(function)
    except ValueError:  # native, and silent about its parameters
        return f"def {name}({'self, ' if is_method else ''}*args: Any, **kwargs: Any) -> {result(name, '')}: ..."
    shown: list[str] = []
    for i, p in enumerate(given.parameters.values()):
        if p.kind is p.VAR_KEYWORD and p.name == "unknown":  # it is there to be refused
            continue
        text = "" if p.annotation is p.empty else str(p.annotation)
        mark = "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""
        if p.kind is p.KEYWORD_ONLY and not any(one.startswith("*") for one in shown):
            shown.append("*")
        if is_method and i == 0 and not mark:
            shown.append("self")
            continue
        shown.append(f"{mark}{p.name}: {hint(text)}" + ("" if p.default is p.empty else " = ..."))
    gives = "" if given.return_annotation is given.empty else str(given.return_annotation)
    return f"def {name}({', '.join(shown)}) -> {result(name, gives)}: ..."


def result(name: str, annotation: str) -> str:
    """The declared type; where that is open, the row's, or a tensor for names that are known to give one."""
    found = hint(annotation)
    if found != "Any" or name in _NO_TENSORS:
        return found
    if name in _TENSORS or {name.strip("_"), name.strip("_")[1:]} & _BINARY and name.startswith("__"):
        return "Tensor"
    for op in registry.ops():
        if op.row is not None and op.title() in (name, name.removesuffix("_")):
            return given_back(op)
    return "Any"


# -- class Tensor ---------------------------------------------------------------------------------------------------
def tensor_class() -> str:
    lines = ["class Tensor(TensorBase):"]
    rows = public.by_name()
    for name in sorted({name for cls in torch.Tensor.__mro__[:-1] for name in vars(cls)}):
        found = inspect.getattr_static(torch.Tensor, name)
        if isinstance(found, public.LazyMethod):
            made = overloads(name, [op for op in rows[name] if op.row.method], True)
        elif hasattr(found, "__overloads__"):
            made = overloads(name, list(found.__overloads__.ops), True)
        else:
            made = member(name, found)
        lines += [re.sub(r"(?m)^", "    ", one) for one in made]
    return "\n".join(lines) + "\n"


def member(name: str, found: Any) -> list[str]:
    """A method or property that is written by hand; fields are declared by `TensorBase`."""
    if name == "__new__":
        return ["def __new__(cls, *args: Any, **kwargs: Any) -> Tensor: ..."]
    if isinstance(found, (staticmethod, classmethod)):
        first = "" if isinstance(found, staticmethod) else "cls, "
        return [f"@{type(found).__name__}\ndef {name}({first}*args: Any, **kwargs: Any) -> Any: ..."]
    if isinstance(found, property):
        annotation = str(getattr(found.fget, "__annotations__", {}).get("return", ""))
        gives = "Tensor | None" if name == "grad" else result(name, annotation)
        made = [f"@property\ndef {name}(self) -> {gives}: ..."]
        if found.fset is not None:
            made.append(f"@{name}.setter\ndef {name}(self, value: {gives}) -> None: ...")
        return made
    if callable(found) and not isinstance(found, type):
        made_here = from_function(name, found, True)
        return [] if made_here.endswith("-> Any: ...") and name in vars(TensorBase) else [made_here]
    return []


def tensor_module() -> str:
    """`_tensor.pyi`: the class, and the other names of the module without types."""
    from .. import _tensor

    source = ast.parse(Path(_tensor.__file__).read_text())
    others = [node.name for node in source.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    rest = "".join(f"def {name}(*args: Any, **kwargs: Any) -> Any: ...\n" for name in others if name != "Tensor")
    return (
        head(".")
        + "from ._tensor_base import TensorBase\n\n"
        + tensor_class()
        + "\n"
        + rest
        + "".join(named_tuples().values())
    )


# -- the namespace --------------------------------------------------------------------------------------------------
def namespace() -> str:
    """`__init__.pyi`: every public name of the package."""
    lines = [head("."), "from ._tensor import Tensor as Tensor", f"from ._tensor import {', '.join(named_tuples())}"]
    rows = public.by_name()
    for name in dir(torch):
        if name.startswith("_") and name != "__version__":
            continue
        if name in torch._SUBMODULES:
            if find_spec(f"mindtorch_v2.{name}") is not None:
                lines.append(f"from . import {name} as {name}")
            continue
        lines += declared(name, getattr(torch, name), rows)
    return "\n".join(lines) + "\n"


def declared(name: str, value: Any, rows: dict[str, list[Op]]) -> list[str]:
    first = torch._SAME.get(name, name)  # a second name is declared as the first
    if hasattr(value, "__overloads__"):
        return overloads(name, [op for op in rows[first] if op.row.function], False)
    kind = type(value).__name__
    if kind in ("dtype", "layout", "memory_format"):
        return [f"{name}: {hint(kind)}"]
    if name in torch._TENSOR_TYPES:
        return [f"{name}: type[Tensor]"]
    module = str(getattr(value, "__module__", None) or type(value).__module__)
    if name == "Tensor" or not module.startswith("mindtorch_v2"):
        return []
    place = home(name, module)
    if isinstance(value, type):
        return [f"from .{place} import {name} as {name}"]
    if not callable(value):
        return [f"{name}: {'_str' if isinstance(value, str) else hint(kind)}"]
    made = from_function(name, value, False)
    # An open result says no more than the source does; compiled functions say less.
    return [f"from .{place} import {first} as {name}"] if made.endswith("-> Any: ...") else [made]


# Classes that call themselves members of the package, and where they are.
_MEMBERS = {
    "Size": "_size",
    "device": "_device",
    "dtype": "_dtype",
    "finfo": "_finfo",
    "iinfo": "_finfo",
    "layout": "_layout",
    "memory_format": "_layout",
    "qscheme": "_layout",
}


def home(name: str, module: str) -> str:
    """The module a name can be imported from."""
    listed: Iterable[tuple[str, str]] = torch._LAZY.items()
    return dict(listed).get(name) or _MEMBERS.get(name) or module.removeprefix("mindtorch_v2").lstrip(".")


def submodule(name: str) -> str:
    """`linalg/__init__.pyi` and its like: functions that come from rows, under their names there, and what else is."""
    module = import_module(f"mindtorch_v2.{name}")
    root = "." * (name.count(".") + 2)
    lines = [head(root), f"from {root}_tensor import Tensor, {', '.join(named_tuples())}"]
    for public_name in dir(module):
        value = getattr(module, public_name)
        place = str(getattr(value, "__module__", ""))
        if hasattr(value, "__overloads__"):
            lines += overloads(public_name, list(value.__overloads__.ops), False)
        elif not public_name.startswith("_") and hasattr(sys.modules.get(place), public_name):
            if place == module.__name__:
                lines.append(from_function(public_name, value, False))
            elif place.startswith("mindtorch_v2."):
                lines.append(f"from {place} import {public_name} as {public_name}")
    return "\n".join(lines) + "\n"


def write(folder: Path) -> None:
    lazy_tables.load_all()
    made = {"__init__.pyi": namespace(), "_tensor.pyi": tensor_module()}
    for name in FROM_ROWS:
        made[f"{name.replace('.', '/')}/__init__.pyi"] = submodule(name)
    for name, text in made.items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
