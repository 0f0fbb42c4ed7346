"""The words for a call whose arguments fit no signature: PyTorch's argument parser, run again to see where it stops.

Invariant: nothing here is reached by a call that succeeds; every function returns the exception and leaves raising it
to the caller.
"""

from __future__ import annotations

import dis
import inspect
import sys
from types import FrameType
from typing import Any

from .._dtype import dtype
from .._layout import layout, memory_format
from .._numbers import is_number
from .._tensor_base import TensorBase, requires_grad
from .binding import TYPES, has_one_out, is_element, is_index
from .op import Op, plain_name, type_name
from .schema import Arg

_ALIASES = {"dim": ("axis",), "keepdim": ("keepdims",), "input": ("x", "a", "x1"), "other": ("x2",)}
_KINDS = {
    "Tensor": "Tensor",
    "Scalar": "Number",
    "int": "int",
    "float": "float",
    "bool": "bool",
    "str": "str",
    "ScalarType": "torch.dtype",
    "Device": "torch.device",
    "Layout": "torch.layout",
    "MemoryFormat": "torch.memory_format",
    "Generator": "torch.Generator",
    "Storage": "Storage",
}
_MISSING = object()
# Lists of ints for which one int does not stand.
_SEQUENCES = frozenset({"size", "normalized_shape"})
# Where PyTorch takes a number for a tensor without having a signature for that.
_NUMBERS = frozenset("add sub mul div true_divide floor_divide divide multiply subtract copy".split())


class Parameter:
    """One parameter of a signature, by PyTorch's name of its type."""

    def __init__(self, kind: str, name: str, optional: bool, none: bool, keyword: bool) -> None:
        self.kind = kind
        self.numbers = False  # a number may stand for the tensor
        self.one = name not in _SEQUENCES  # one int may stand for a list
        self.name = name
        self.optional = optional
        self.none = none
        self.keyword = keyword

    def fits(self, value: Any) -> bool:
        """PyTorch looks at the first element of a list only; the others are looked at when it is unpacked."""
        kind = self.kind
        if kind == "tuple of ints":
            if isinstance(value, (list, tuple)):
                return not value or is_element(value[0])
            return self.one and is_element(value)
        if kind.startswith("tuple of "):
            if isinstance(value, (list, tuple)):
                return kind == "tuple of Tensors" or not value or _number_of(kind[9:-1], value[0])
            return kind != "tuple of Tensors" and _number_of(kind[9:-1], value)
        if kind == "Tensor":
            return isinstance(value, TensorBase) or (self.numbers and is_number(value))
        if kind == "bool":
            return isinstance(value, bool)
        if kind == "str":
            return isinstance(value, (str, bytes))
        if kind == "torch.dtype":
            return isinstance(value, dtype)
        if kind in ("int", "float", "Number"):
            return _number_of(kind, value)
        if kind == "torch.Storage":
            return hasattr(value, "untyped") or hasattr(value, "_raw")
        if kind == "torch.layout":
            return isinstance(value, layout)
        if kind == "torch.memory_format":
            return isinstance(value, memory_format)
        if kind == "torch.Generator":
            return isinstance(value, TYPES.generator)
        return True


def _number_of(kind: str, value: Any) -> bool:
    if kind == "int":
        return is_index(value)
    if kind == "float":
        if isinstance(value, TensorBase):
            return len(value._shape) == 0 and not value._dtype.is_complex and not requires_grad(value)
        return is_number(value) and not isinstance(value, complex)
    if isinstance(value, TensorBase):
        return len(value._shape) == 0 and not requires_grad(value)
    return is_number(value)


def read(text: str) -> list[Parameter]:
    """`Tensor input, *, Number alpha = 1` as parameters."""
    out: list[Parameter] = []
    keyword = False
    for part in text.split(", ") if text else ():
        if part == "*":
            keyword = True
            continue
        head, has_default, default = part.partition(" = ")
        kind, _, name = head.rpartition(" ")
        out.append(Parameter(kind, name, bool(has_default), default == "None", keyword))
    return out


def kind_text(a: Arg) -> str:
    if a.is_list:
        return "tuple of " + _KINDS[a.kind] + "s"
    return _KINDS[a.kind]


def row_text(op: Op, method: bool) -> str:
    """A row's schema as PyTorch prints a signature."""
    parts: list[str] = []
    star = False
    args = op.schema.args
    for i, a in enumerate(args):
        if i == 0 and method:
            continue
        if a.kwonly and not star:
            parts.append("*")
            star = True
        name = "input" if a.name == "self" and not a.is_list else a.name
        default = str(a.default).replace(", ", ",")
        parts.append(f"{kind_text(a)} {name}" + (f" = {default}" if a.has_default else ""))
    if not method and op.row is not None and op.row.public_out is not None:
        kind = "Tensor" if has_one_out(op) else "tuple of Tensors"
        parts += ([] if star else ["*"]) + [f"{kind} out = None"]
    return ", ".join(parts)


def complaint(name: str, ops: list[Op], method: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError:
    """What PyTorch says of this call. The tensor of a method is not among `args`."""
    from .._api.signatures import signatures

    texts = signatures(name, method)
    several = texts is not None or len(ops) > 1
    found = _read_all(name, texts, ops, method)
    return _told(name, texts or [row_text(op, method) for op in ops], found, several, args, kwargs)


def _read_all(name: str, texts: list[str] | None, ops: list[Op], method: bool) -> list[list[Parameter]]:
    """The signatures; those of rows know which lists one int may stand for."""
    found = [read(text) for text in texts or [row_text(op, method) for op in ops]]
    if texts is None:
        for op, parameters in zip(ops, found):
            sized = {a.name: a.size > 0 for a in op.schema.args if a.is_list}
            for p in parameters:
                p.one = sized.get(p.name, p.one)
    if name.rstrip("_") in _NUMBERS:
        for parameters in found:
            for p in parameters:
                p.numbers = True
    return found


def misfit(name: str, ops: list[Op], method: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError | None:
    """What PyTorch says of this call if its arguments fit no signature; None if they fit one, or if an argument has a
    handler of its own, which may take anything."""
    from .._api.signatures import signatures

    for value in (*args, *kwargs.values()):
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if not isinstance(item, TensorBase) and hasattr(type(item), "__torch_function__"):
                return None
    texts = signatures(name, method)
    for found in _read_all(name, texts, ops, method):
        if parse(name, found, args, kwargs) is None and unpacking(name, found, args, kwargs) is None:
            return None
    return complaint(name, ops, method, args, kwargs)


def of_signatures(
    name: str, texts: list[str], several: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> TypeError:
    """What PyTorch says of a call of a function with these signatures."""
    return _told(name, texts, [read(text) for text in texts], several, args, kwargs)


def _told(
    name: str,
    texts: list[str],
    read_texts: list[list[Parameter]],
    several: bool,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> TypeError:
    for found in read_texts:
        if parse(name, found, args, kwargs) is None:
            unpacked = unpacking(name, found, args, kwargs)
            if unpacked is not None:
                return unpacked
    if not several:
        return parse(name, read_texts[0], args, kwargs) or _combination(name, texts, args, kwargs)
    n = len(args) + len(kwargs)
    plausible = [p for p in read_texts if sum(not q.optional for q in p) <= n <= len(p)]
    one = parse(name, plausible[0], args, kwargs) if len(plausible) == 1 else None
    return one or _combination(name, texts, args, kwargs)


def parse(name: str, parameters: list[Parameter], args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError | None:
    """Where PyTorch's parser stops in this signature; None if the arguments fit it."""
    positional = sum(not p.keyword for p in parameters)
    spread = positional == 1 and parameters[0].kind == "tuple of ints" and len(args) > 0 and _number_of("int", args[0])
    if len(args) > positional and not spread:
        return _too_many(name, parameters, positional, len(args))
    used = 0
    at = 0
    for i, p in enumerate(parameters):
        by_name = at >= len(args)
        if not by_name and p.keyword:
            return _too_many(name, parameters, positional, len(args))
        value = _named(p, kwargs) if by_name else args[at]
        used += by_name and value is not _MISSING
        at += not by_name
        if (value is _MISSING and p.optional) or (value is None and p.none):
            continue
        if value is _MISSING:
            missing = [f'"{q.name}"' for q in parameters[i:] if not q.optional]
            plural = "s" if len(missing) == 1 else ""  # the wrong way round, as PyTorch has it
            return TypeError(
                f"{name}() missing {len(missing)} required positional argument{plural}: {', '.join(missing)}"
            )
        whole = spread and i == 0 and not by_name
        if p.fits(value) and not (whole and len(args) > 1 and not isinstance(value, (list, tuple))):
            continue
        if whole and p.fits(args) and not isinstance(value, (list, tuple)):
            at = len(args)
            continue
        return _refusal(name, p, value, args if whole else None, 0 if by_name else at)
    for key in kwargs if used < len(kwargs) else ():
        where = [i for i, p in enumerate(parameters) if key == p.name]
        if not where:
            return TypeError(f"{name}() got an unexpected keyword argument '{key}'")
        if where[0] < len(args):
            return TypeError(f"{name}() got multiple values for argument '{key}'")
    return None


def _named(p: Parameter, kwargs: dict[str, Any]) -> Any:
    for key in (p.name, *_ALIASES.get(p.name, ())):
        if key in kwargs:
            return kwargs[key]
    return _MISSING


def _refusal(name: str, p: Parameter, value: Any, whole: tuple[Any, ...] | None, position: int) -> TypeError:
    where = f" (position {position})" if position else ""
    if position and p.kind.startswith("tuple of "):
        items = value if isinstance(value, (list, tuple)) else whole
        if items:
            return TypeError(
                f"{name}(): argument '{p.name}'{where} must be {p.kind}, but found element of type "
                f"{plain_name(items[0])} at pos 0"
            )
    return TypeError(f"{name}(): argument '{p.name}'{where} must be {p.kind}, not {plain_name(value)}")


def _too_many(name: str, parameters: list[Parameter], positional: int, given: int) -> TypeError:
    least = sum(not p.optional for p in parameters)
    if least != positional:
        return TypeError(f"{name}() takes from {least} to {positional} positional arguments but {given} were given")
    return TypeError(
        f"{name}() takes {positional} positional argument{'s' if positional != 1 else ''} but {given} "
        f"{'was' if given == 1 else 'were'} given"
    )


def unpacking(
    name: str, parameters: list[Parameter], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> TypeError | None:
    """The arguments fit, but something inside a list does not."""
    spread = sum(not p.keyword for p in parameters) == 1 and len(args) > 1
    for i, p in enumerate(parameters):
        value = args if spread and i == 0 else args[i] if i < len(args) else _named(p, kwargs)
        if not isinstance(value, (list, tuple)):
            continue
        for at, item in enumerate(value):
            if p.kind == "tuple of Tensors" and not isinstance(item, TensorBase):
                return TypeError(f"expected Tensor as element {at} in argument {i}, but got {plain_name(item)}")
            if p.kind == "tuple of ints" and not is_element(item) and not (at and isinstance(item, bool)):
                return TypeError(
                    f"{name}(): argument '{p.name}' failed to unpack the object at pos {at + 1} with "
                    f'error "type must be tuple of ints,but got {plain_name(item)}"'
                )
    return None


def _combination(name: str, texts: list[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError:
    shown = ", ".join(plain_name(a) for a in args)
    if kwargs:
        # PyTorch keeps them in a hash table, which gives the last first.
        pairs = [f"{k}={plain_name(v)}" for k, v in reversed(list(kwargs.items()))]
        shown = shown + ", " + ", ".join(pairs) if args else ", ".join(pairs) + ", "
    head = f"{name}() received an invalid combination of arguments - got "
    if not texts:
        return TypeError(f"{head}({shown})")
    if len(texts) > 1:
        listed = "".join(f" * ({t})\n{_why(t, args, kwargs)}" for t in texts)
        return TypeError(f"{head}({shown}), but expected one of:\n{listed}")
    unknown = [k for k in kwargs if all(k != p.name for p in read(texts[0]))]
    if unknown:
        return TypeError(f"{head}unrecognized keyword arguments: {', '.join(unknown)}")
    return TypeError(f"{head}({shown}), but expected ({texts[0]})")


def _why(text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """What does not fit a signature of as many parameters as there are arguments.

    PyTorch takes its own text apart for that: `*` counts, the last word is the name and what stands before it the type,
    so that a parameter with a default never fits, and no parameters are one without a name.
    """
    expected = [part.rpartition(" ") for part in text.split(", ")]
    if len(args) + len(kwargs) != len(expected):
        return ""
    names = [name for _, _, name in expected]
    wrong = [k for k in kwargs if k not in names[len(names) - len(kwargs) :]]
    if wrong:
        return f"      didn't match because some of the keywords were incorrect: {', '.join(wrong)}\n"
    given = [*((value, "") for value in args), *((kwargs[k], f"{k}=") for k in names[len(args) :])]
    shown = []
    for (value, key), (kind, _, _) in zip(given, expected, strict=True):
        fits = plain_name(value) in (("float", "int") if kind == "float" else (kind,))
        shown.append(f"{key}{type_name(value)}" if fits else f"!{key}{type_name(value)}!")
    end = "" if args else ", "
    return f"      didn't match because some of the arguments have invalid types: ({', '.join(shown)}{end})\n"


# Factories with several signatures; the others' complaint names the keyword.
_FACTORIES = frozenset(
    "arange eye linspace logspace rand randn randint randperm normal rand_like randn_like "
    "randint_like bernoulli".split()
)


def unknown_keyword(name: str, args: tuple[Any, ...], unknown: dict[str, Any]) -> TypeError:
    """A factory, which is written by hand, got a keyword that it does not have, or what fits no signature."""
    if name in _FACTORIES:
        from .._api.signatures import signatures

        return _combination(name, signatures(name, False) or [], args, unknown)
    return TypeError(f"{name}() got an unexpected keyword argument '{next(iter(unknown))}'")


# -- what a generated function was given --------------------------------------------------------------------------
def _call_in(frame: FrameType | None) -> tuple[int, tuple[str, ...]]:
    """How many arguments the call this frame is waiting for gave by position (-1: unknown), and the other's names."""
    if frame is None:
        return -1, ()
    steps = list(dis.get_instructions(frame.f_code))
    at = max((i for i, step in enumerate(steps) if step.offset <= frame.f_lasti), default=-1)
    if at < 0 or not steps[at].opname.startswith("CALL") or steps[at].opname.startswith("CALL_FUNCTION_EX"):
        return -1, ()
    names: tuple[str, ...] = ()
    for step in steps[max(at - 2, 0) : at]:
        if step.opname == "KW_NAMES" or (step.opname == "LOAD_CONST" and steps[at].opname.endswith("_KW")):
            found = frame.f_code.co_consts[step.arg or 0]
            names = found if isinstance(found, tuple) else ()
    return (steps[at].arg or 0) - len(names), names


def of_call(name: str, otherwise: TypeError) -> TypeError:
    """The complaint about the running call of the public function `name`; `otherwise` where nobody called that.

    A generated function has named parameters, so which of them came by name is known only to its caller's code.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not frame.f_code.co_filename.startswith("<torch."):
        frame = frame.f_back
    if frame is None or frame.f_code.co_filename != f"<torch.{name}>" or "_overloads" not in frame.f_globals:
        return otherwise
    code, space, found = frame.f_code, frame.f_globals, frame.f_locals
    overloads = space["_overloads"]
    names = code.co_varnames[: code.co_argcount]
    count, by_name = _call_in(frame.f_back)
    kwargs = {k: found[k] for k in by_name if k in names} | found.get("kw", {})
    if code.co_flags & inspect.CO_VARARGS:
        spread = found[code.co_varnames[code.co_argcount + code.co_kwonlyargcount]]
        given = (*(found[n] for n in names), *(spread if isinstance(spread, tuple) else (spread,)))
        return complaint(name, overloads.ops, overloads.method, given[overloads.method :], kwargs)
    defaults = dict(zip(reversed(names), reversed(space["_written"].__defaults__ or ()), strict=False))
    changed = [n for n in names if n not in kwargs and found[n] is not defaults.get(n, _MISSING)]
    # What stands behind `_` can come by name only.
    positional = names[: names.index("_")] if "_" in names else names
    last = max((i for i, n in enumerate(positional) if n in changed), default=-1) + 1
    count = last if count < 0 or len(kwargs) < len(by_name) else min(count + overloads.method, last)
    kwargs.update({n: found[n] for n in changed if n not in positional[:count]})
    if any(n in kwargs for n in positional[:count]):
        return otherwise
    given = tuple(found[n] for n in names[:count])
    return complaint(name, overloads.ops, overloads.method, given[overloads.method :], kwargs)
