"""What a public function looks like to a reader: its parameters with types and defaults, and the text of `help()`.

Invariant: all of it comes from the row and its schema, and from one sentence (`sentences.py`); nothing here is imported
before the first public function is made, and `inspect` not before somebody asks for a signature.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .._dispatch.op import Op
from .._dispatch.schema import Arg
from .public import spreads
from .sentences import sentence

_HINTS = {
    "Tensor": "Tensor",
    "Scalar": "Number",
    "number": "Number",
    "int": "int",
    "float": "float",
    "bool": "bool",
    "str": "str",
    "ScalarType": "dtype",
    "Device": "device | str | int",
    "Layout": "layout",
    "MemoryFormat": "memory_format",
    "Generator": "Generator",
    "Storage": "UntypedStorage",
    "QScheme": "qscheme",
}
# Rows `linalg_svd` are public as `torch.linalg.svd`.
_MODULES = ("linalg", "special", "fft")
# What parameters of these names mean wherever they occur.
_MEANINGS = {
    "keepdim": "whether reduced dimensions stay, with size 1",
    "dtype": "dtype of the result",
    "generator": "where random numbers come from; by default the device's own generator",
    "device": "where the result lives",
    "layout": "only strided",
    "pin_memory": "whether the memory is page-locked",
    "requires_grad": "whether the result starts a graph",
    "memory_format": "the order of elements in memory",
    "out": "where the result is written; resized if its shape differs",
    "correction": "what is subtracted from the number of elements in the divisor",
    "rounding_mode": "None, 'trunc' (towards zero) or 'floor' (towards minus infinity)",
    "reduction": "0 none, 1 mean, 2 sum",
    "inplace": "whether the input itself is changed",
    "descending": "whether the largest comes first",
    "stable": "whether equal elements keep their order",
    "sorted": "whether the results are in order",
    "non_blocking": "whether the call may return before the copy is done",
}


class Parameter(NamedTuple):
    """One parameter of a public function. `spread`: ints may also be given one by one."""

    name: str
    hint: str
    default: str | None
    kwonly: bool
    spread: bool

    def __str__(self) -> str:
        return ("*" if self.spread else "") + self.name + ("" if self.default is None else f"={self.default}")


def parameters(op: Op, is_method: bool) -> list[Parameter]:
    """The parameters as PyTorch shows them, in order."""
    found: list[Parameter] = []
    spread = spreads(op, is_method)
    for i, a in enumerate(op.schema.args):
        name = "input" if a.name == "self" and not is_method else a.name
        mine = spread and a.is_list and not a.kwonly
        default = _default(a) if a.has_default and not mine else None
        found.append(Parameter(name, hint(a, bool(op.numbers >> i & 1)), default, a.kwonly, mine))
    kinds = {a.kind for a in op.schema.args}
    if op.row.public_out is not None and not is_method:
        target = "Tensor" if len(op.schema.returns) == 1 else "Sequence[Tensor]"
        found.append(Parameter("out", target + " | None", "None", True, False))
    if "Layout" in kinds and "Device" in kinds:
        found.append(Parameter("requires_grad", "bool", "False", True, False))
    return found


def hint(a: Arg, number: bool = False) -> str:
    """An argument's type as an annotation."""
    text = _HINTS[a.kind]
    if a.is_list:
        text = f"{text} | Sequence[{text}]" if a.size and a.kind == "int" else f"Sequence[{text}]"
    elif number:
        text += " | Number"
    return text + (" | None" if a.optional else "")


def _default(a: Arg) -> str:
    return f"torch.{a.default}" if a.kind == "MemoryFormat" and a.default is not None else repr(a.default)


def returned(op: Op) -> str:
    """The type of the result as an annotation."""
    returns = op.schema.returns
    if len(returns) == 1:
        r = returns[0]
        text = _HINTS[r.kind]
        return f"tuple[{text}, ...]" if r.is_list else text
    return f"tuple[{', '.join(_HINTS[r.kind] for r in returns)}]" if returns else "None"


def signature(name: str, op: Op, is_method: bool) -> str:
    """`add(input, other, *, alpha=1, out=None) -> Tensor`"""
    shown: list[str] = []
    starred = False
    for p in parameters(op, is_method)[int(is_method) :]:
        if p.kwonly and not starred and not any(text.startswith("*") for text in shown):
            shown.append("*")
            starred = True
        shown.append(str(p))
    results = [r.name for r in op.schema.returns]
    gives = f"({', '.join(results)})" if op.result_type is not None else returned(op)
    return f"{name}({', '.join(shown)}) -> {gives}"


def text(name: str, ops: list[Op], is_method: bool) -> str:
    """What `help()` says about a public function."""
    said = sentence(name)
    for module in _MODULES:
        if name.startswith(module + "_") and not is_method:
            name = f"{module}.{name[len(module) + 1 :]}"
    parts = ["\n".join(dict.fromkeys(signature(name, o, is_method) for o in ops))]
    if said:
        parts.append(said)
    elif name.endswith("_"):
        parts.append(f"In place: {sentence(name[:-1])}")
    lines: dict[str, str] = {}
    for o in ops:
        for p in parameters(o, is_method)[int(is_method) :]:
            means = _MEANINGS.get(p.name)
            given = p.hint if p.default is None else f"{p.hint}, default {p.default}"
            lines.setdefault(p.name, f"    {p.name} ({given})" + (f": {means}" if means else ""))
    if lines:
        parts.append("Args:\n" + "\n".join(lines.values()))
    parts.append("Returns: " + " or ".join(dict.fromkeys(_result(o, is_method) for o in ops)))
    parts.append(_forms(name, ops, is_method))
    return "\n\n".join(parts)


def _result(op: Op, is_method: bool) -> str:
    mutated = next((a.name for a in op.schema.args if a.mutates), "")
    if mutated:
        return f"`{'input' if mutated == 'self' and not is_method else mutated}`, changed in place"
    kind = returned(op)
    if op.is_view:
        return f"{kind}, sharing memory with the input"
    if op.result_type is not None:
        return f"a named tuple ({', '.join(r.name for r in op.schema.returns)})"
    return kind


def _forms(name: str, ops: list[Op], is_method: bool) -> str:
    """Other ways to call it, and where it runs."""
    row = ops[0].row
    forms: list[str] = []
    if is_method and row.function:
        forms.append(f"torch.{name}")
    if not is_method and row.method:
        forms.append(f"Tensor.{name}")
    if any(o.row.inplace_op is not None for o in ops):
        forms.append(f"Tensor.{name}_ (in place)")
    if any(o.row.public_out is not None for o in ops):
        forms.append(f"torch.{name}(..., out=)")
    known = any(o.rule or o.is_view or o.composite or o.functional or row.fallback for o in ops)
    where = "cpu, meta, npu" if known else "cpu, npu"
    others = f"Other forms: {', '.join(forms)}\n" if forms else ""
    return f"{others}Devices: {where}; the support matrix (make docs) has the dtypes."


class LateSignature:
    """Stands for an `inspect.Signature` until somebody asks: `inspect` is slow to import."""

    def __init__(self, op: Op, is_method: bool) -> None:
        self._op, self._is_method = op, is_method

    def _made(self) -> Any:
        import inspect

        made: list[inspect.Parameter] = []
        for p in parameters(self._op, self._is_method):
            kind = (
                inspect.Parameter.VAR_POSITIONAL
                if p.spread
                else inspect.Parameter.KEYWORD_ONLY
                if p.kwonly
                else inspect.Parameter.POSITIONAL_OR_KEYWORD
            )
            default = inspect.Parameter.empty if p.default is None else Shown(p.default)
            made.append(inspect.Parameter(p.name, kind, default=default))
        return inspect.Signature(made)

    # isinstance() believes it, and `inspect` accepts no other type.
    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        import inspect

        return inspect.Signature

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made(), name)

    def __str__(self) -> str:
        return str(self._made())


class Shown:
    """A default value by its text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text
