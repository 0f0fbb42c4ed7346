"""PyTorch's schema language: `add_(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)` read into data.

Invariant: a schema is immutable; text that cannot be read fails when the table is loaded,
naming the text and the place.
"""

from __future__ import annotations

from typing import Any, Final, final

KINDS: Final = frozenset(
    {
        "Tensor",
        "Scalar",
        "int",
        "float",
        "bool",
        "str",
        "ScalarType",
        "Device",
        "Layout",
        "MemoryFormat",
        "Generator",
        "number",
        "Storage",
        "QScheme",
        "Any",
    }
)


@final
class Arg:
    """One argument or result."""

    def __init__(
        self,
        name: str,
        kind: str,
        optional: bool,
        is_list: bool,
        size: int,
        alias: str,
        mutates: bool,
        kwonly: bool,
        has_default: bool,
        default: Any,
        symbolic: bool = False,
        holes: bool = False,
    ) -> None:
        self.name: Final = name
        self.kind: Final = kind
        self.optional: Final = optional
        self.is_list: Final = is_list
        self.size: Final = size
        self.alias: Final = alias
        self.mutates: Final = mutates
        self.kwonly: Final = kwonly
        self.has_default: Final = has_default
        self.default: Final[Any] = default
        # Ints that PyTorch may trace as symbols: its parser reads them another way, and refuses tensors of bools.
        self.symbolic: Final = symbolic
        self.holes: Final = holes  # None may stand for an element
        self.is_tensor: Final = kind == "Tensor" and not is_list
        self.is_tensor_list: Final = kind == "Tensor" and is_list

    def type_text(self) -> str:
        mark = f"({self.alias}{'!' if self.mutates else ''})" if self.alias else ""
        text = self.kind + mark
        if self.is_list:
            text += f"[{self.size or ''}]"
        return text + ("?" if self.optional else "")


@final
class Schema:
    """A parsed schema."""

    def __init__(self, text: str, name: str, overload: str, args: list[Arg], returns: list[Arg]) -> None:
        self.text: Final = text
        self.name: Final = name
        self.overload: Final = overload
        self.args: Final = args
        self.returns: Final = returns
        # How many arguments may be given by position.
        self.positional: Final = len([a for a in args if not a.kwonly])

    @property
    def is_mutable(self) -> bool:
        return any([a.mutates for a in self.args])

    def index(self, name: str) -> int:
        for i, a in enumerate(self.args):
            if a.name == name:
                return i
        return -1

    def __repr__(self) -> str:
        return self.text


def split_name(text: str) -> tuple[str, str]:
    """`max.dim(...)` -> ("max", "dim")."""
    head = text.split("(", 1)[0].strip()
    if head.startswith("aten::"):
        head = head[6:]
    base, _, overload = head.partition(".")
    return base, overload


def parse(text: str) -> Schema:
    name, overload = split_name(text)
    start = text.find("(")
    end = text.rfind("->")
    if start < 0 or end < 0:
        raise ValueError(f"schema {text!r}: expected 'name(arguments) -> results'")
    close = text.rfind(")", 0, end)
    args: list[Arg] = []
    kwonly = False
    for part in _split(text[start + 1 : close]):
        if part == "*":
            kwonly = True
        else:
            args.append(_arg(part, kwonly, text))
    ret = text[end + 2 :].strip()
    inner = ret[1:-1] if ret.startswith("(") and ret.endswith(")") else ret
    returns = [_arg(p if " " in p.strip() else p + " result", False, text) for p in _split(inner)]
    return Schema(text, name, overload, args, returns)


def _split(text: str) -> list[str]:
    """Split at commas outside brackets."""
    if "," not in text:
        return [text.strip()] if text.strip() else []
    parts: list[str] = []
    held = ""
    for piece in text.split(","):
        held = f"{held},{piece}" if held else piece
        if "[" not in held or held.count("[") == held.count("]"):
            parts.append(held.strip())
            held = ""
    if held:
        parts.append(held.strip())
    return parts


def _arg(text: str, kwonly: bool, whole: str) -> Arg:
    decl, eq, default_text = text.partition("=")
    type_text, _, name = decl.strip().rpartition(" ")
    if not type_text:
        raise ValueError(f"schema {whole!r}: argument {text!r} has no type")
    optional = type_text.endswith("?")
    if optional:
        type_text = type_text[:-1]
    is_list = False
    size = 0
    if type_text.endswith("]"):
        is_list = True
        type_text, _, inside = type_text[:-1].rpartition("[")
        size = int(inside) if inside else 0
    alias = ""
    mutates = False
    if "(" in type_text:
        type_text, _, mark = type_text.partition("(")
        if mark.endswith("?"):
            type_text += "?"
        mark = mark.rstrip(")?")
        mutates = mark.endswith("!")
        alias = mark.rstrip("!")
    element_optional = type_text.endswith("?")
    kind = type_text.rstrip("?")
    symbolic = kind == "SymInt"
    if symbolic:
        kind = "int"
    elif kind == "SymBool":
        kind = "bool"
    if kind not in KINDS:
        raise ValueError(f"schema {whole!r}: unknown type {kind!r}; known: {', '.join(sorted(KINDS))}")
    if element_optional and is_list:
        kind = "Tensor"
    has_default = eq == "="
    default = _default(default_text.strip(), is_list) if has_default else None
    holes = element_optional and is_list
    return Arg(name, kind, optional, is_list, size, alias, mutates, kwonly, has_default, default, symbolic, holes)


def _default(text: str, is_list: bool) -> Any:
    if text == "None":
        return None
    if text == "True":
        return True
    if text == "False":
        return False
    if text.startswith("["):
        return tuple([_default(p.strip(), False) for p in text[1:-1].split(",") if p.strip()])
    if text[:1] in "'\"":
        return text[1:-1].replace('\\"', '"').replace("\\'", "'").replace("\\\\", "\\")
    if text == "Mean":
        return 1
    try:
        value: Any = int(text)
    except ValueError:
        try:
            value = float(text)
        except ValueError:
            return text
    return (value,) if is_list else value
